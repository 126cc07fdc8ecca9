//! One line of `/proc/self/mountinfo`, see proc(5).

/// A mounted file system.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Mount {
    /// Its device number, as `st_dev` has it.
    pub(super) dev: u64,
    /// Its type, with its subtype if it has one: `ext4`, `fuse.sshfs`.
    pub(super) kind: Vec<u8>,
    /// Options of the file system, between commas.
    options: Vec<u8>,
}

impl Mount {
    /// Whether an overlay may fold numbers of several file systems into its own
    /// (`xino`): those of an image that is exchanged would look the same.
    pub(super) fn mixes_inodes(&self) -> bool {
        let mut options = self.options.split(|&byte| byte == b',');
        match options.find_map(|option| option.strip_prefix(b"xino=")) {
            Some(xino) => xino != b"off",
            // Not told where it is the kernel's default.
            None => std::fs::read("/sys/module/overlay/parameters/xino_auto")
                .map_or(true, |auto| auto.first() != Some(&b'N')),
        }
    }
}

/// The mount with this number in the process's name space.
pub(super) fn mount(id: u64) -> Option<Mount> {
    let table = std::fs::read("/proc/self/mountinfo").ok()?;
    find(&table, id)
}

fn find(table: &[u8], id: u64) -> Option<Mount> {
    let wanted = id.to_string();
    let line = table
        .split(|&byte| byte == b'\n')
        .find(|line| line.split(|&byte| byte == b' ').next() == Some(wanted.as_bytes()))?;
    let mut fields = line.split(|&byte| byte == b' ');
    let (major, minor) = std::str::from_utf8(fields.nth(2)?).ok()?.split_once(':')?;
    let dev = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
    // Root, mount point, options, then optional fields up to a dash.
    fields.find(|field| *field == b"-")?;
    let kind = fields.next()?.to_vec();
    let options = fields.nth(1).unwrap_or_default().to_vec();
    Some(Mount { dev, kind, options })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"25 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        251 25 0:39 / /mnt/a\\040b rw master:3 propagate_from:2 - fuse.sshfs u@h:/ rw,user_id=0\n\
        252 25 0:40 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/u,xino=on\n\
        253 25 0:41 / /other rw - overlay overlay rw,lowerdir=/l,xino=off\n";

    #[test]
    fn lines_are_found_by_number() {
        let disk = find(TABLE, 25).unwrap();
        assert_eq!(disk.dev, rustix::fs::makedev(254, 0));
        assert_eq!(disk.kind, b"ext4");
        assert_eq!(find(TABLE, 251).unwrap().kind, b"fuse.sshfs");
        assert_eq!(find(TABLE, 2), None);
        assert!(find(TABLE, 252).unwrap().mixes_inodes());
        assert!(!find(TABLE, 253).unwrap().mixes_inodes());
        assert_eq!(find(b"7 junk", 7), None);
    }
}
