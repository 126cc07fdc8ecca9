//! Mounts and their mount points, as `/proc/self/mountinfo` lists them (proc_pid_mountinfo(5)).

/// One mount.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MountEntry {
    /// Its number, until it is unmounted.
    pub id: u64,
    /// Device number of the file system, which its files need not have (Btrfs, overlays).
    pub dev: u64,
    /// Part of the file system that is mounted, as a path within it.
    pub root: String,
    /// [`root`](MountEntry::root) as raw bytes.
    pub root_bytes: Vec<u8>,
    /// Mount point: absolute, raw bytes.
    pub point: Vec<u8>,
    /// True if nothing can be changed by this way, whatever the file system itself allows.
    pub read_only: bool,
    /// True if files have other owners here than where the file system is mounted as it is.
    pub id_mapped: bool,
    /// The file system's type, with its subtype if it has one: `ext4`, `fuse.sshfs`.
    pub kind: Vec<u8>,
    /// Mounted source: a device, `server:/export`, or a name of no meaning.
    pub source: String,
    /// Number of the subvolume, of Btrfs.
    pub subvolid: Option<u64>,
    /// Path of the subvolume within the file system, of Btrfs: raw bytes.
    pub subvolume: Option<Vec<u8>>,
    /// Options of the file system, between commas, as the table has them.
    options: Vec<u8>,
}

impl MountEntry {
    /// True if an overlay may fold numbers of several file systems into its own (`xino`): those of
    /// an image that is exchanged would look the same.
    pub(super) fn mixes_inodes(&self) -> bool {
        match option(&self.options, b"xino=") {
            Some(xino) => xino != b"off",
            // Not listed where it is the kernel's default.
            None => std::fs::read("/sys/module/overlay/parameters/xino_auto")
                .map_or(true, |auto| auto.first() != Some(&b'N')),
        }
    }

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
                let list = unescaped(list);
                for name in split_at_colons(&list).filter(|name| !name.is_empty()) {
                    push_meanings(name, &mut layers);
                }
            }
            if let Some(name) = value(ONE) {
                push_meanings(&unescaped(name), &mut layers);
            }
        }
        layers
    }
}

/// Returns the parts of a list between colons without a backslash before them.
fn split_at_colons(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_escaped = false;
    list.split(move |&byte| {
        let ends = byte == b':' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// Adds the directories that a name may mean: it depends on the version of the kernel and on the option
/// if backslashes are shown as they were given, or have been taken away already.
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

/// Path of the kernel's table of the mounts that this process sees. A descriptor of it can be polled for
/// changes (`proc_pid_mountinfo(5)`).
pub const TABLE: &str = "/proc/self/mountinfo";

/// Returns all mounts that this process can see, in the order in which they were made; `None`
/// without `/proc`.
pub fn entries() -> Option<Vec<MountEntry>> {
    let table = std::fs::read(TABLE).ok()?;
    Some(entries_of(&table))
}

/// Returns the mount with this number in the process's name space.
pub(super) fn entry(id: u64) -> Option<MountEntry> {
    entry_in(&std::fs::read(TABLE).ok()?, id)
}

fn entry_in(table: &[u8], id: u64) -> Option<MountEntry> {
    let wanted = format!("{id} ");
    let mut lines = table.split(|&byte| byte == b'\n');
    let line = lines.find(|line| line.starts_with(wanted.as_bytes()))?;
    parse_line(line)
}

/// Parses the text of the table; lines that are no entry are passed over.
pub fn entries_of(table: &[u8]) -> Vec<MountEntry> {
    let lines = table.split(|&byte| byte == b'\n');
    lines.filter_map(parse_line).collect()
}

/// Parses `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|&byte| byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let (major, minor) = std::str::from_utf8(fields.nth(1)?).ok()?.split_once(':')?;
    let root_bytes = unescaped(fields.next()?);
    let point = unescaped(fields.next()?);
    let flags = fields.next().unwrap_or_default();
    let has = |flag: &[u8]| flags.split(|&byte| byte == b',').any(|one| one == flag);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = fields.next()?.to_vec();
    let source = unescaped(fields.next().unwrap_or_default());
    let options = fields.next().unwrap_or_default();
    Some(MountEntry {
        id,
        dev: rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?),
        root: text(root_bytes.clone()),
        root_bytes,
        point,
        read_only: has(b"ro"),
        id_mapped: has(b"idmapped"),
        kind,
        source: String::from_utf8_lossy(&source).into_owned(),
        subvolid: subvolid(options),
        subvolume: option(options, b"subvol=").map(unescaped),
        options: options.to_vec(),
    })
}

/// Converts bytes to text so that different bytes are different texts.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| crate::escape(error.as_bytes()).to_string())
}

/// Returns the subvolume's number from the options of a Btrfs,
/// `rw,space_cache,subvolid=256,subvol=/home`.
fn subvolid(options: &[u8]) -> Option<u64> {
    let id = option(options, b"subvolid=")?;
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// Returns the value of the option that begins like this.
fn option<'o>(options: &'o [u8], name: &[u8]) -> Option<&'o [u8]> {
    let mut options = options.split(|&byte| byte == b',');
    options.find_map(|option| option.strip_prefix(name))
}

/// Decodes a field: space, tab, newline and backslash are written as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let octal = tail.get(..3).and_then(|digits| {
            let text = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(text, 8).ok()
        });
        match (first, octal) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                rest = &tail[3..];
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
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
        let layers = |id| entry_in(line, id).unwrap().layers();
        assert_eq!(layers(9), [&b"/a b"[..], b"/c", b"/d", b"u"]);
        assert_eq!(layers(8), [b"/x", b"/y"]);
        // `lowerdir=/my\\,card:/b\\:c` and `upperdir=/u,v`.
        let line = b"9 1 0:4 / /m rw - overlay o rw,lowerdir=/my\\134\\054card:/b\\134:c,upperdir=/u\\054v\n";
        let layers = entry_in(line, 9).unwrap().layers();
        let expected: [&[u8]; 5] = [b"/my\\,card", b"/my,card", b"/b\\:c", b"/b:c", b"/u,v"];
        assert_eq!(layers, expected);
        let line = b"7 1 0:6 / /o rw - ext4 /d rw\n";
        let layers = |id| entry_in(line, id).unwrap().layers();
        assert!(layers(7).is_empty());
    }

    #[test]
    fn lines_are_found_by_number() {
        let disk = entry_in(TABLE, 25).unwrap();
        assert_eq!(disk.dev, rustix::fs::makedev(254, 0));
        assert_eq!(disk.kind, b"ext4");
        assert_eq!(entry_in(TABLE, 251).unwrap().kind, b"fuse.sshfs");
        assert_eq!(entry_in(TABLE, 2), None);
        assert!(entry_in(TABLE, 252).unwrap().mixes_inodes());
        assert!(!entry_in(TABLE, 253).unwrap().mixes_inodes());
        assert_eq!(entry_in(b"7 junk", 7), None);
    }
}
