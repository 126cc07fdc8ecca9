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
    /// Whether nothing can be changed by this way, whatever the file system itself allows.
    pub read_only: bool,
    /// Whether files have other owners here than where the file system is mounted as it is.
    pub id_mapped: bool,
    /// The file system's type.
    pub kind: Vec<u8>,
    /// Mounted source: a device, `server:/export`, or a name of no meaning.
    pub source: String,
    /// Number of the subvolume, of Btrfs.
    pub subvolid: Option<u64>,
    /// Path of the subvolume within the file system, of Btrfs: raw bytes.
    pub subvolume: Option<Vec<u8>>,
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
pub(super) fn unescaped(field: &[u8]) -> Vec<u8> {
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
