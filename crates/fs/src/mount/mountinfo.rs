//! Mounts and their mount points, as `/proc/self/mountinfo` lists them (proc_pid_mountinfo(5)); and
//! directories that are seen through bind mounts, with the places where they are when those are gone.

use crate::path::{self, join};

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

/// Mounts of this process that show the same directories as another one of them.
#[derive(Clone, Debug, Default)]
pub struct BindMounts {
    all: Vec<MountEntry>,
    /// Indices, for each mount, of the mounts that show the same directories, the likeliest first.
    shown_by: Vec<Vec<usize>>,
}

impl BindMounts {
    /// Reads the present mounts; none without `/proc`.
    pub fn read() -> BindMounts {
        BindMounts::of(entries().unwrap_or_default())
    }

    /// Takes the mounts from a table.
    pub(crate) fn of(all: Vec<MountEntry>) -> BindMounts {
        let shown_by = (0..all.len()).map(|at| shown_by(&all, at)).collect();
        BindMounts { all, shown_by }
    }

    /// Returns other paths of a directory, by which it is found even when the mount goes that it is
    /// seen through, the likeliest first. Empty where it is seen at its own place. The path is
    /// absolute and without links; a mount may cover a place, so the caller looks before using it.
    pub fn places(&self, path: &[u8]) -> Vec<Vec<u8>> {
        self.places_by(path, |_, _| true)
    }

    /// Returns those of the [places](BindMounts::places) where the files have the same owners as at this
    /// path, and where they can be changed.
    pub fn places_to_change(&self, path: &[u8]) -> Vec<Vec<u8>> {
        // Two maps need not be the same one.
        self.places_by(path, |mount, other| {
            !mount.id_mapped && !other.id_mapped && !other.read_only
        })
    }

    fn places_by(
        &self,
        path: &[u8],
        fits: impl Fn(&MountEntry, &MountEntry) -> bool,
    ) -> Vec<Vec<u8>> {
        // The later of two at one point covers the earlier.
        let mounts = self.all.iter().enumerate();
        let on = mounts.filter_map(|(at, mount)| Some((at, below(path, &mount.point)?)));
        let Some((at, rest)) = on.min_by_key(|(at, rest)| (rest.len(), usize::MAX - at)) else {
            return Vec::new();
        };
        let within = join(&self.all[at].root_bytes, rest);
        let others = self.shown_by[at].iter().map(|other| &self.all[*other]);
        let others = others.filter(|other| fits(&self.all[at], other));
        let places: Vec<Vec<u8>> = others
            .filter_map(|other| Some(join(&other.point, below(&within, &other.root_bytes)?)))
            .collect();
        // Where the mount goes, the same path still leads there.
        match places.iter().any(|place| place == path) {
            true => Vec::new(),
            false => places,
        }
    }

    /// Returns the mount points of mounts that show the same as another one.
    pub fn points(&self) -> impl Iterator<Item = &[u8]> {
        let all = self.all.iter().zip(&self.shown_by);
        all.filter(|(_, others)| !others.is_empty())
            .map(|(mount, _)| mount.point.as_slice())
    }
}

/// Returns the mounts of the same file system that show all that this one does and are not made of
/// it.
fn shown_by(all: &[MountEntry], at: usize) -> Vec<usize> {
    let mount = &all[at];
    let shows = |(nth, other): &(usize, &MountEntry)| {
        let is_other = *nth != at && other.dev == mount.dev && other.kind == mount.kind;
        is_other
            && below(&mount.root_bytes, &other.root_bytes).is_some()
            && match other.root_bytes == mount.root_bytes {
                // A bind mount is younger than what it shows.
                true => *nth < at,
                false => !is_whole(mount),
            }
    };
    let mut found: Vec<usize> = (all.iter().enumerate().filter(shows))
        .map(|(nth, _)| nth)
        .collect();
    // The whole of a file system, or the innermost of its subvolumes, before a part of it.
    found.sort_by_key(|nth| {
        let other = &all[*nth];
        let len = other.root_bytes.len();
        match is_whole(other) {
            true => (0, usize::MAX - len, *nth),
            false => (1, len, *nth),
        }
    });
    found
}

/// True if a mount is of a file system or a subvolume, and of no directory in one.
fn is_whole(mount: &MountEntry) -> bool {
    mount.root_bytes == b"/" || mount.subvolume.as_deref() == Some(&mount.root_bytes)
}

/// Returns the rest of `path` below `top`, both absolute; empty for `top` itself.
fn below<'p>(path: &'p [u8], top: &[u8]) -> Option<&'p [u8]> {
    match path == top {
        true => Some(b""),
        false => path::below(path, top),
    }
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

    #[track_caller]
    fn check(table: &str, path: &str, expected: &[&str]) {
        let binds = BindMounts::of(entries_of(table.as_bytes()));
        let places = binds.places(path.as_bytes());
        let places: Vec<String> = places
            .into_iter()
            .map(|path| String::from_utf8(path).unwrap())
            .collect();
        assert_eq!(places, expected, "{path}");
    }

    #[test]
    fn a_bind_mount_leads_back_to_what_it_shows() {
        let table = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /data rw - ext4 /dev/b rw\n\
            3 1 8:2 /real /view rw - ext4 /dev/b rw\n4 1 8:1 /srv/x\\040y /ftp rw - ext4 /dev/a rw\n\
            5 4 8:1 /srv/x\\040y/in /in rw - ext4 /dev/a rw\n6 1 8:2 / /again rw - ext4 /dev/b rw\n\
            7 1 0:9 /real /other rw - tmpfs t rw\n8 2 8:2 /self /data/self rw - ext4 /dev/b rw\n";
        check(table, "/view/sub", &["/data/real/sub", "/again/real/sub"]);
        check(table, "/view", &["/data/real", "/again/real"]);
        check(table, "/viewer", &[]);
        check(table, "/ftp/d", &["/srv/x y/d"]);
        check(table, "/in", &["/srv/x y/in", "/ftp/in"]);
        check(table, "/again/real/sub", &["/data/real/sub"]);
        for own in [
            "/",
            "/data/real/sub",
            "/srv/x y/in",
            "/other/x",
            "/data/self/x",
        ] {
            check(table, own, &[]);
        }
    }

    #[test]
    fn a_subvolume_is_at_its_own_place() {
        let table = "1 0 0:20 /@ / rw - btrfs /dev/a rw,subvolid=256,subvol=/@\n\
            2 1 0:20 /@people /people rw - btrfs /dev/a rw,subvolid=257,subvol=/@people\n\
            3 1 0:20 / /mnt/top rw - btrfs /dev/a rw,subvolid=5,subvol=/\n\
            4 1 0:20 /@people/u /view rw - btrfs /dev/a rw,subvolid=257,subvol=/@people\n";
        check(table, "/people/u/t", &[]);
        check(table, "/srv", &[]);
        check(table, "/view/t", &["/people/u/t", "/mnt/top/@people/u/t"]);
    }

    #[test]
    fn a_place_to_change_files_at_shows_their_owners_and_is_writable() {
        let table = "1 0 8:1 / / rw,relatime - ext4 /dev/a rw\n\
            2 1 8:1 /t /idmapped rw,relatime,idmapped shared:1 - ext4 /dev/a rw\n\
            3 1 8:1 /t /bind rw - ext4 /dev/a rw\n4 1 8:2 / /ro ro - ext4 /dev/b rw\n\
            5 1 8:2 /t /rw rw - ext4 /dev/b rw\n";
        let binds = BindMounts::of(entries_of(table.as_bytes()));
        let none: [&[u8]; 0] = [];
        for (path, places, to_change) in [
            ("/idmapped/x", &[&b"/t/x"[..]][..], &none[..]),
            ("/bind/x", &[b"/t/x", b"/idmapped/x"], &[b"/t/x"]),
            ("/rw/x", &[b"/ro/t/x"], &none),
        ] {
            assert_eq!(binds.places(path.as_bytes()), places, "{path}");
            assert_eq!(binds.places_to_change(path.as_bytes()), to_change, "{path}");
        }
    }

    #[test]
    fn a_later_mount_covers_an_earlier_one() {
        let table = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:1 /a /m rw - ext4 /dev/a rw\n\
            3 2 8:1 /b /m rw - ext4 /dev/a rw\n";
        check(table, "/m/x", &["/b/x"]);
    }
}
