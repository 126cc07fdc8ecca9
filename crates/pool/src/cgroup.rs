//! Number of CPUs that the control groups of this process allow: `cpu.max` of version 2 and the CFS
//! quota of version 1, the smallest from our own group up to the root.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Mount point of one hierarchy, and our group's directory in it.
#[derive(Debug, Eq, PartialEq)]
struct CgroupMount {
    version: Version,
    mount: PathBuf,
    directory: PathBuf,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Version {
    One,
    Two,
}

/// Returns the CPU time allowed, in CPUs: `Some(1.5)` is 150 ms in each 100 ms. `None`: no limit,
/// or none that can be read.
pub(crate) fn quota() -> Option<f64> {
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

fn quota_of(version: Version, directory: &Path) -> Option<f64> {
    let read = |name: &str| read(&directory.join(name));
    match version {
        Version::Two => parse_cpu_max(&read("cpu.max")?),
        Version::One => parse_cfs(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
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
                ("0", "") => Version::Two,
                _ if controllers.split(',').any(|name| name == "cpu") => Version::One,
                _ => return None,
            };
            mounts
                .lines()
                .find_map(|mount| locate(mount, version, path))
        })
        .collect()
}

/// Returns the group's directory, if this line of mountinfo mounts its hierarchy.
fn locate(mount: &str, version: Version, path: &str) -> Option<CgroupMount> {
    // `ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS [TAGS…] - TYPE SOURCE SUPER-OPTIONS`
    let (left, right) = mount.split_once(" - ")?;
    let mut left = left.split(' ');
    let root = left.nth(3)?;
    let point = left.next()?;
    let mut right = right.split(' ');
    let fs_type = right.next()?;
    let super_options = right.nth(1).unwrap_or("");
    let matches = match version {
        Version::Two => fs_type == "cgroup2",
        Version::One => fs_type == "cgroup" && super_options.split(',').any(|name| name == "cpu"),
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
    use std::fs;

    use super::*;

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
                version: Version::Two,
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
                version: Version::One,
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
            version: Version::Two,
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
