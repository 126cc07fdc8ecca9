//! Directories that are seen through bind mounts, and where they are when those are gone.

use super::{MountEntry, entries};
use crate::path::{self, join};

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
    pub fn of(all: Vec<MountEntry>) -> BindMounts {
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
    use crate::mount::entries_of;

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
