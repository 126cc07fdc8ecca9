//! Number of CPUs that this process may use, and of their physical cores. Control groups limit it:
//! by `cpu.max` of version 2 and the CFS quota of version 1, the smallest from our own group up to
//! the root.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, sched_getaffinity};

/// Returns the number of logical CPUs that this process may use: the affinity mask, and no more
/// than the control group's quota rounded up. At least 1.
///
/// ```
/// assert!(bc_pool::available_cpus() >= 1);
/// ```
pub fn available_cpus() -> usize {
    limited(allowed().len(), cgroup_quota())
}

/// Returns the number of physical cores among the CPUs that this process may use, and no more than
/// the control group's quota rounded up. At least 1; where `/sys` does not list cores, every CPU is
/// one.
pub(crate) fn physical_cores() -> usize {
    let allowed = allowed();
    let cores = cores_of(&allowed, Path::new("/sys/devices/system/cpu"));
    limited(cores, cgroup_quota())
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

/// Mount point of one hierarchy, and our group's directory in it.
#[derive(Debug, Eq, PartialEq)]
struct CgroupMount {
    version: CgroupVersion,
    mount: PathBuf,
    directory: PathBuf,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CgroupVersion {
    One,
    Two,
}

/// Returns the CPU time allowed, in CPUs: `Some(1.5)` is 150 ms in each 100 ms. `None`: no limit,
/// or none that can be read.
fn cgroup_quota() -> Option<f64> {
    let memberships = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    groups(&memberships, &mounts)
        .iter()
        .filter_map(smallest_on_the_way_up)
        .reduce(f64::min)
}

/// Returns the text of a file that the kernel makes up and whose size is unknown: read with one
/// call for most, because the kernel makes it up again for each.
fn read(path: &Path) -> Option<String> {
    const ROOM: usize = 16 << 10;
    let mut text = String::with_capacity(ROOM);
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    Some(text)
}

fn smallest_on_the_way_up(group: &CgroupMount) -> Option<f64> {
    let mut smallest: Option<f64> = None;
    for directory in group.directory.ancestors() {
        if let Some(quota) = quota_of(group.version, directory) {
            smallest = Some(smallest.map_or(quota, |least| least.min(quota)));
        }
        if directory == group.mount {
            break;
        }
    }
    smallest
}

fn quota_of(version: CgroupVersion, directory: &Path) -> Option<f64> {
    let read = |name: &str| read(&directory.join(name));
    match version {
        CgroupVersion::Two => parse_cpu_max(&read("cpu.max")?),
        CgroupVersion::One => parse_cfs(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
    }
}

/// Parses `cpu.max`: `QUOTA PERIOD` in microseconds, or `max PERIOD`.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota, period)
}

/// Parses `cpu.cfs_quota_us` (-1 is no limit) and `cpu.cfs_period_us`.
fn parse_cfs(quota: &str, period: &str) -> Option<f64> {
    ratio(quota.trim(), period.trim())
}

fn ratio(quota: &str, period: &str) -> Option<f64> {
    let quota: i64 = quota.parse().ok()?;
    let period: i64 = period.trim().parse().ok()?;
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

/// Returns our groups with a CPU controller, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn groups(memberships: &str, mounts: &str) -> Vec<CgroupMount> {
    memberships
        .lines()
        .filter_map(|line| {
            // `ID:CONTROLLERS:PATH`; version 2 has ID 0 and no controllers.
            let mut fields = line.splitn(3, ':');
            let id = fields.next()?;
            let controllers = fields.next()?;
            let path = fields.next()?;
            let version = match (id, controllers) {
                ("0", "") => CgroupVersion::Two,
                _ if controllers.split(',').any(|name| name == "cpu") => CgroupVersion::One,
                _ => return None,
            };
            mounts
                .lines()
                .find_map(|mount| locate(mount, version, path))
        })
        .collect()
}

/// Returns the group's directory, if this line of mountinfo mounts its hierarchy.
fn locate(mount: &str, version: CgroupVersion, path: &str) -> Option<CgroupMount> {
    // `ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS [TAGS…] - TYPE SOURCE SUPER-OPTIONS`
    let (left, right) = mount.split_once(" - ")?;
    let mut left = left.split(' ');
    let root = left.nth(3)?;
    let point = left.next()?;
    let mut right = right.split(' ');
    let fs_type = right.next()?;
    let super_options = right.nth(1).unwrap_or("");
    let matches = match version {
        CgroupVersion::Two => fs_type == "cgroup2",
        CgroupVersion::One => {
            fs_type == "cgroup" && super_options.split(',').any(|name| name == "cpu")
        }
    };
    if !matches {
        return None;
    }
    // The mount may show only a part of the hierarchy (in a container). A group outside of
    // that part cannot be seen: what is mounted is the best there is.
    let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
    let mount = PathBuf::from(point);
    Some(CgroupMount {
        version,
        directory: mount.join(below),
        mount,
    })
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

    #[test]
    fn cpu_max() {
        assert_eq!(parse_cpu_max("max 100000\n"), None);
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_cpu_max("50000 100000"), Some(0.5));
        for doubtful in [
            "", "max", "100000", "0 100000", "-5 10", "10 0", "a b", "1e9 1",
        ] {
            assert_eq!(parse_cpu_max(doubtful), None, "{doubtful:?}");
        }
    }

    #[test]
    fn cfs_quota() {
        assert_eq!(parse_cfs("-1\n", "100000\n"), None);
        assert_eq!(parse_cfs("400000\n", "100000\n"), Some(4.0));
        assert_eq!(parse_cfs("", ""), None);
    }

    #[test]
    fn unified_hierarchy() {
        let groups = groups(
            "0::/user.slice/user-1000.slice\n",
            "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        assert_eq!(
            groups,
            [CgroupMount {
                version: CgroupVersion::Two,
                mount: "/sys/fs/cgroup".into(),
                directory: "/sys/fs/cgroup/user.slice/user-1000.slice".into(),
            }]
        );
    }

    #[test]
    fn separate_hierarchies_of_version_one() {
        let groups = groups(
            "4:memory:/a\n3:cpuset:/\n2:cpu,cpuacct:/docker/0123\n0::/ignored\n",
            "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
             33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
             34 31 0:31 /docker/0123 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
        );
        assert_eq!(
            groups,
            [CgroupMount {
                version: CgroupVersion::One,
                mount: "/sys/fs/cgroup/cpu".into(),
                directory: "/sys/fs/cgroup/cpu/".into(),
            }]
        );
    }

    #[test]
    fn nonsense_is_no_limit() {
        assert!(groups("", "").is_empty());
        assert!(groups("0::/x\nfoo\n1:cpu\n", "a b c\n - \n1 2 3 - cgroup2\n").is_empty());
    }

    #[test]
    fn smallest_limit_counts() {
        let root = std::env::temp_dir().join(format!("bc-pool-cgroup-{}", std::process::id()));
        let inner = root.join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.join("outer/cpu.max"), "200000 100000\n").unwrap();
        fs::write(inner.join("cpu.max"), "max 100000\n").unwrap();
        let group = |directory: &Path| CgroupMount {
            version: CgroupVersion::Two,
            mount: root.clone(),
            directory: directory.to_owned(),
        };
        assert_eq!(smallest_on_the_way_up(&group(&inner)), Some(2.0));
        fs::write(inner.join("cpu.max"), "100000 100000\n").unwrap();
        assert_eq!(smallest_on_the_way_up(&group(&inner)), Some(1.0));
        assert_eq!(smallest_on_the_way_up(&group(&root)), None);
        fs::remove_dir_all(&root).unwrap();
    }
}
