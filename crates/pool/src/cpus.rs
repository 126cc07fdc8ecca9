//! Number of CPUs that this process may use, and of their physical cores.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::cgroup;

/// Returns the number of logical CPUs that this process may use: the affinity mask, and no more
/// than the control group's quota rounded up. At least 1.
///
/// ```
/// assert!(bc_pool::available_cpus() >= 1);
/// ```
pub fn available_cpus() -> usize {
    limited(allowed().len(), cgroup::quota())
}

/// Returns the number of physical cores among the CPUs that this process may use, and no more than
/// the control group's quota rounded up. At least 1; where `/sys` does not list cores, every CPU is
/// one.
pub(crate) fn physical_cores() -> usize {
    let allowed = allowed();
    let cores = cores_of(&allowed, Path::new("/sys/devices/system/cpu"));
    limited(cores, cgroup::quota())
}

fn limited(cpus: usize, quota: Option<f64>) -> usize {
    // A cast from floating point saturates, so an absurd quota is just no limit.
    let quota = quota.map_or(usize::MAX, |quota| quota.ceil() as usize);
    cpus.min(quota).max(1)
}

/// Numbers of the CPUs in the affinity mask. Where the mask cannot be read (more CPUs than it has
/// room for), those that the standard library counts.
fn allowed() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(mask) if mask.count() > 0 => (0..CpuSet::MAX_CPU)
            .filter(|&cpu| mask.is_set(cpu))
            .collect(),
        _ => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

/// Returns the number of distinct cores: CPUs with the same list of siblings are threads of one
/// core.
fn cores_of(cpus: &[usize], sys: &Path) -> usize {
    let mut cores = HashSet::new();
    for cpu in cpus {
        let topology = sys.join(format!("cpu{cpu}/topology"));
        let siblings = fs::read_to_string(topology.join("core_cpus_list"))
            .or_else(|_| fs::read_to_string(topology.join("thread_siblings_list")));
        match siblings {
            Ok(list) if !list.trim().is_empty() => cores.insert(list.trim().to_owned()),
            _ => return cpus.len(),
        };
    }
    cores.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_limits_but_never_to_zero() {
        assert_eq!(limited(8, None), 8);
        assert_eq!(limited(8, Some(1.5)), 2);
        assert_eq!(limited(8, Some(0.1)), 1);
        assert_eq!(limited(8, Some(1e300)), 8);
        assert_eq!(limited(8, Some(f64::NAN)), 1);
        assert_eq!(limited(0, None), 1);
    }

    #[test]
    fn siblings_make_one_core() {
        let sys = std::env::temp_dir().join(format!("bc-pool-topology-{}", std::process::id()));
        let siblings = ["0,2", "1,3", "0,2", "1,3"];
        for (cpu, list) in siblings.iter().enumerate() {
            let topology = sys.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("core_cpus_list"), format!("{list}\n")).unwrap();
        }
        assert_eq!(cores_of(&[0, 1, 2, 3], &sys), 2);
        assert_eq!(cores_of(&[0, 2], &sys), 1);
        assert_eq!(cores_of(&[0, 1], &sys), 2);
        // CPU 7 has no entry: nothing is known, every CPU counts.
        assert_eq!(cores_of(&[0, 2, 7], &sys), 3);
        fs::remove_dir_all(&sys).unwrap();
    }

    #[test]
    fn this_machine() {
        let mask = sched_getaffinity(None).unwrap().count() as usize;
        assert!((1..=mask).contains(&available_cpus()));
        assert!((1..=available_cpus()).contains(&physical_cores()));
    }
}
