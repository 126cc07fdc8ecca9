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
    /// True if an overlay may fold numbers of several file systems into its own (`xino`): those of
    /// an image that is exchanged would look the same.
    pub(super) fn mixes_inodes(&self) -> bool {
        let mut options = self.options.split(|&byte| byte == b',');
        match options.find_map(|option| option.strip_prefix(b"xino=")) {
            Some(xino) => xino != b"off",
            // Not listed where it is the kernel's default.
            None => std::fs::read("/sys/module/overlay/parameters/xino_auto")
                .map_or(true, |auto| auto.first() != Some(&b'N')),
        }
    }
}

impl Mount {
    /// Returns the directories whose entries an overlay shows, as they were named when it was
    /// mounted: relative names are relative to the working directory of that `mount`. Empty if it
    /// is no overlay.
    pub(super) fn layers(&self) -> Vec<Vec<u8>> {
        const MANY: [&[u8]; 2] = [b"lowerdir=", b"upperdir="];
        const ONE: [&[u8]; 2] = [b"lowerdir+=", b"datadir+="];
        let mut layers = Vec::new();
        if self.kind != b"overlay" {
            return layers;
        }
        for option in self.options.split(|&byte| byte == b',') {
            let value =
                |names: [&[u8]; 2]| names.iter().find_map(|name| option.strip_prefix(*name));
            // A comma in a name is written as an octal number; a colon has a backslash before it.
            if let Some(list) = value(MANY) {
                let list = super::entries::unescaped(list);
                for name in split_at_colons(&list).filter(|name| !name.is_empty()) {
                    push_meanings(name, &mut layers);
                }
            }
            if let Some(name) = value(ONE) {
                push_meanings(&super::entries::unescaped(name), &mut layers);
            }
        }
        layers
    }
}

/// The parts of a list between colons without a backslash before them.
fn split_at_colons(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_escaped = false;
    list.split(move |&byte| {
        let ends = byte == b':' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// Adds what a name may mean: whether the kernel shows the backslashes of whoever mounted the overlay,
/// or has taken them away already, depends on its version and on the option.
fn push_meanings(name: &[u8], layers: &mut Vec<Vec<u8>>) {
    layers.push(name.to_vec());
    if !name.contains(&b'\\') {
        return;
    }
    let mut is_escaped = false;
    let mut plain = name.to_vec();
    plain.retain(|&byte| {
        is_escaped = byte == b'\\' && !is_escaped;
        !is_escaped
    });
    layers.push(plain);
}

/// The mount with this number in the process's name space.
pub(super) fn mount(id: u64) -> Option<Mount> {
    let table = std::fs::read(super::TABLE).ok()?;
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
    fn layers_are_found() {
        let line = b"9 1 0:4 / /m rw - overlay o rw,lowerdir=/a\\040b:/c::/d,upperdir=u,workdir=w\n\
            8 1 0:5 / /n rw - overlay o rw,lowerdir+=/x,datadir+=/y\n7 1 0:6 / /o rw - ext4 /d rw\n";
        let layers = |id| find(line, id).unwrap().layers();
        assert_eq!(layers(9), [&b"/a b"[..], b"/c", b"/d", b"u"]);
        assert_eq!(layers(8), [b"/x", b"/y"]);
        // `lowerdir=/my\\,card:/b\\:c` and `upperdir=/u,v`.
        let line = b"9 1 0:4 / /m rw - overlay o rw,lowerdir=/my\\134\\054card:/b\\134:c,upperdir=/u\\054v\n";
        let layers = find(line, 9).unwrap().layers();
        let expected: [&[u8]; 5] = [b"/my\\,card", b"/my,card", b"/b\\:c", b"/b:c", b"/u,v"];
        assert_eq!(layers, expected);
        let line = b"7 1 0:6 / /o rw - ext4 /d rw\n";
        let layers = |id| find(line, id).unwrap().layers();
        assert!(layers(7).is_empty());
    }

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
