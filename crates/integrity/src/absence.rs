//! Recorded entries that the new side does not have, and why: gone, unread, left out, or on a mount
//! that is missing.
//!
//! Directories and files that were mount points when they were recorded and are none now, or over
//! which another file system lies, or another part of the same one, are missing mounts. Files
//! recorded there are offline, not gone; files that lie there instead are others. Callers that
//! write where files are missing are refused the whole, as for a root that looks unmounted.
//!
//! A mount is identified by its file system (the UUID, else the source, where that names one) and
//! by the part of it that is mounted. Another part of the same file system is never taken for the
//! one that was recorded. Another file system may be a copy on a new disk: it is taken for the
//! old one if any file in it is as recorded (see [`Evidence`]).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bc_manifest::integrity::{Entry, Header, Kind, Mounted, ROOT};
use bc_walk::job::{Error, ErrorKind, Setting, path_of};

use crate::change::Class;
use crate::entry_ref::EntryRef;
use crate::judge::is_untouched;
use crate::options::{MissingMounts, RootCheck};
use crate::place::{Evidence, Weight};
use crate::tree::loader::LoadedEntry;
use crate::tree::unread::UnreadDir;
use crate::tree::{Link, Tree};

/// Reason for which the new side does not have a recorded entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absence<'p> {
    /// It is gone.
    Removed,
    /// It could not be looked for: a directory above it could not be read.
    Unread(UnreadDir<'p>),
    /// It was not to be looked at.
    LeftOut,
    /// It is on a file system that is not mounted any more.
    Unmounted(MissingMount, Here),
}

/// Content of a path where another file system was mounted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Here {
    Nothing,
    /// A file that is not the recorded one.
    Other,
}

/// The mount points missed so far; entries come in path order.
#[derive(Debug)]
pub(crate) struct Unmounted {
    check: RootCheck,
    /// Their paths with a closing slash, in order; none is below another.
    below: Vec<Vec<u8>>,
    /// Mount points where another file system is mounted than was recorded, and nothing in it
    /// matches.
    foreign: Vec<Vec<u8>>,
}

/// Relation of an entry of the manifest to the missing mount points.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MissingMount {
    /// None.
    No,
    /// It is a missing mount point.
    Here,
    /// It is below a missing mount point.
    Below,
    /// It was the target of a link that leads nowhere now.
    Nowhere,
}

impl Unmounted {
    pub(crate) fn new(check: RootCheck) -> Unmounted {
        Unmounted {
            check,
            below: Vec::new(),
            foreign: Vec::new(),
        }
    }

    /// Begins with those of `replaced` in which nothing matches.
    pub(crate) fn with(check: RootCheck, replaced: &Replaced) -> Unmounted {
        let foreign = replaced.0.iter().filter(|one| one.evidence.contradicts());
        Unmounted {
            foreign: foreign.map(|one| one.path.clone()).collect(),
            ..Unmounted::new(check)
        }
    }

    /// Looks at the next entry of the manifest and at the entry at its path now.
    pub(crate) fn see(&mut self, old: &Entry, new: Option<&LoadedEntry<'_>>) -> MissingMount {
        if self.covers(&old.path) {
            return MissingMount::Below;
        }
        // A directory that cannot be listed is an error of its own, which keeps the entries below
        // as well.
        let mounted = new.is_some_and(|new| new.mount.is_some() || new.view.error.is_some())
            && !self.foreign.contains(&old.path);
        let hidden = self.foreign.contains(&old.path);
        let was = old.mount.as_deref();
        let other = new
            .and_then(|new| new.mount)
            .zip(was)
            .is_some_and(|(is, was)| {
                let ino = new.and_then(|new| new.view.ino);
                compare(was, is, is_inode(old, ino)) == Sameness::OtherPart
            });
        // The target of a broken link was not looked at, whatever the reason: it is not gone.
        let nowhere = new.is_some_and(|new| new.link == Link::Broken) && old.kind != Kind::Symlink;
        let missed = (was.is_some() && !mounted || hidden || other || nowhere) && old.path != ROOT;
        if !missed || self.check == RootCheck::Forced {
            return MissingMount::No;
        }
        let mut below = old.path.clone();
        below.push(b'/');
        let at = self.below.partition_point(|known| *known < below);
        self.below.insert(at, below);
        match nowhere {
            true => MissingMount::Nowhere,
            false => MissingMount::Here,
        }
    }

    /// True if there is any so far.
    pub(crate) fn any(&self) -> bool {
        !self.below.is_empty() || !self.foreign.is_empty()
    }

    /// True if `path` lies below one of them.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        // Since none is below another, only the last one before it can cover it.
        let at = self.below.partition_point(|below| &below[..] <= path);
        at > 0 && path.starts_with(&self.below[at - 1])
    }
}

/// Mount points where another file system may be mounted than was recorded, if there was one, with
/// the results of comparing names and times in them.
#[derive(Debug, Default)]
pub(crate) struct Replaced(Vec<ReplacedMount>);

#[derive(Debug)]
struct ReplacedMount {
    path: Vec<u8>,
    evidence: Evidence,
    /// Old files that are not there.
    lost: u64,
}

impl ReplacedMount {
    fn covers(&self, path: &[u8]) -> bool {
        let below = path.strip_prefix(&self.path[..]);
        below.is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
    }
}

impl Replaced {
    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a path of both sides, in path order. `mount`: the file system mounted on it now.
    pub(crate) fn see(
        &mut self,
        old: &Entry,
        new: &LoadedEntry<'_>,
        mount: Option<&Mounted>,
        knows: Knows,
    ) {
        let Some(is) = mount.filter(|_| old.path != ROOT) else {
            return;
        };
        // The file at the end of a link is one of many of its file system: an edit of it proves
        // nothing. Earlier versions did not record mounts there.
        let led_to_file = new.link == Link::Followed && old.kind != Kind::Dir;
        let replaced = match (old.mount.as_deref(), knows) {
            (Some(was), _) => match compare(was, is, is_inode(old, new.view.ino)) {
                Sameness::Other => true,
                Sameness::Unknown => !led_to_file,
                Sameness::Same | Sameness::OtherPart => false,
            },
            (None, Knows::Nothing) => old.dev.is_some() && old.kind == Kind::Dir,
            (None, Knows::All) => !led_to_file || old.dev.is_none(),
        };
        if replaced {
            self.0.push(ReplacedMount {
                path: old.path.clone(),
                evidence: Evidence::default(),
                lost: 0,
            });
        }
    }

    /// Counts a file or link of the manifest.
    pub(crate) fn leaf(&mut self, path: &[u8], weight: Weight, matches: bool) {
        for place in &mut self.0 {
            if place.covers(path) {
                place.evidence.add(weight, matches);
            }
        }
    }

    /// Counts a file of the manifest that is missing; returns true if it lies in one of them.
    pub(crate) fn lost(&mut self, path: &[u8]) -> bool {
        let place = self.0.iter_mut().find(|place| place.covers(path));
        place.map(|place| place.lost += 1).is_some()
    }

    /// Returns the number of such files in places that are taken for the recorded ones: where
    /// nothing matches, the records stay.
    pub(crate) fn really_lost(&self) -> u64 {
        let known = self.0.iter().filter(|place| place.evidence.matches());
        known.map(|place| place.lost).sum()
    }

    /// True if there is one in which nothing matches.
    pub(crate) fn any(&self) -> bool {
        self.first().is_some()
    }

    /// Returns the first one in which nothing matches.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        let mut unmatched = self.0.iter().filter(|one| one.evidence.contradicts());
        unmatched.next().map(|one| &one.path[..])
    }
}

/// Mounts that a manifest records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Knows {
    /// All of them.
    All,
    /// Mounts of directories, or none at all: an earlier version wrote it.
    Nothing,
}

/// Relation of two mounts at one place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sameness {
    /// One mount, as far as it is recorded.
    Same,
    /// Two parts of one file system.
    OtherPart,
    /// Two file systems, or two parts of possibly one.
    Other,
    /// Undecided.
    Unknown,
}

/// Compares two mounts. `same_inode`: true if the mounted directory has the same number. A
/// directory may be renamed while it is mounted, and its number may have come to another one, so
/// its files have to decide.
fn compare(was: &Mounted, is: &Mounted, same_inode: bool) -> Sameness {
    let same_system = match (&was.fs_uuid, &is.fs_uuid) {
        (Some(was), Some(is)) => Some(was == is),
        _ if was.source == is.source => names_one_disk(&is.source).then_some(true),
        // Names of devices change from boot to boot; an earlier version may have recorded none.
        _ => [was, is]
            .iter()
            .all(|mount| !mount.source.is_empty() && !mount.source.starts_with('/'))
            .then_some(false),
    };
    let other_volume = matches!((was.subvolid, is.subvolid), (Some(was), Some(is)) if was != is);
    let other_root = matches!((&was.root, &is.root), (Some(was), Some(is)) if was != is);
    match (same_system, other_volume) {
        (None, _) if other_root => Sameness::Other,
        (None, _) => Sameness::Unknown,
        (Some(false), _) => Sameness::Other,
        (Some(true), true) => Sameness::OtherPart,
        (Some(true), false) if !other_root => Sameness::Same,
        (Some(true), false) if same_inode => Sameness::Unknown,
        (Some(true), false) => Sameness::OtherPart,
    }
}

fn is_inode(old: &Entry, ino: Option<u64>) -> bool {
    let was = old.meta.map(|meta| meta.ino);
    was.is_some() && was == ino
}

/// True if this is the source of one file system only. That of every tmpfs may be `none`.
fn names_one_disk(source: &str) -> bool {
    source.starts_with('/') || source.contains(':')
}

/// Returns the reason for which an entry is not visible, for the one that is missing itself.
pub(crate) fn why_lost(entry: &Entry, lost: MissingMount) -> Option<String> {
    match lost {
        MissingMount::Here => Some(reason(entry)),
        MissingMount::Nowhere => Some(nowhere(entry)),
        MissingMount::No | MissingMount::Below => None,
    }
}

/// Returns the reason for the target of a broken link.
fn nowhere(old: &Entry) -> String {
    let kind = old.kind.name();
    let source = old.mount.as_ref().map(|mount| &mount.source[..]);
    let on = source.filter(|source| !source.is_empty());
    let on = on.map_or_else(String::new, |source| format!(" on {source}"));
    format!("a link that led to a {kind}{on} leads nowhere now: not mounted?")
}

/// Returns the reason for a missing mount point.
fn reason(old: &Entry) -> String {
    let is_file = old.kind != Kind::Dir;
    let source = match old.mount.as_deref() {
        None if is_file => {
            return "another file is mounted here now and hides the recorded one".to_owned();
        }
        None => {
            return "another file system is mounted here now and hides the files".to_owned();
        }
        Some(mount) if mount.source.is_empty() => String::new(),
        Some(mount) => match mount.root.as_deref() {
            None | Some("/") => format!(" ({})", mount.source),
            Some(root) => format!(" ({root} of {})", mount.source),
        },
    };
    match is_file {
        true => {
            format!("a file{source} was mounted here, now none is, or another one: not mounted?")
        }
        false => format!(
            "a file system{source} with files was mounted here, now none is, or an empty or another one: not mounted?"
        ),
    }
}

/// State of the mounts below a root, as found so far.
pub(crate) struct MountGuard<'a> {
    root: &'a OsStr,
    refuses: bool,
    replaced: Replaced,
    knows: Knows,
}

impl<'a> MountGuard<'a> {
    pub(crate) fn new(
        root: &'a OsStr,
        missing: MissingMounts,
        check: RootCheck,
        header: &Header,
    ) -> MountGuard<'a> {
        MountGuard {
            root,
            refuses: missing == MissingMounts::Refuse && check == RootCheck::Careful,
            replaced: Replaced::default(),
            knows: match header.mount_root {
                Some(_) => Knows::All,
                None => Knows::Nothing,
            },
        }
    }

    /// True if entries have to come one by one.
    pub(crate) fn needs_each(&self) -> bool {
        self.refuses && !self.replaced.is_empty()
    }

    /// Takes a path of both sides, before it is judged.
    pub(crate) fn see(&mut self, tree: &Tree, old: &Entry, new: &LoadedEntry<'_>) {
        if self.refuses {
            let mount = new.id.and_then(|id| tree.any_mount(id));
            self.replaced.see(old, new, mount, self.knows);
        }
    }

    /// Takes the class of a path of both sides.
    pub(crate) fn judged(&mut self, old: &Entry, new: &EntryRef<'_>, class: Class) {
        let view = EntryRef::from(old);
        if let Some(weight) = Weight::of(&view).filter(|_| self.needs_each()) {
            // A copy that kept the times is at home wherever it is mounted.
            let copied = is_untouched(&view, new);
            let matches = matches!(class, Class::Ok | Class::Meta) || copied;
            self.replaced.leaf(&old.path, weight, matches);
        }
    }

    /// Takes a path that the tree does not have. Refuses one on a file system that is not mounted,
    /// unless missing mounts are only reported.
    pub(crate) fn gone(&mut self, old: &Entry, why: Absence<'_>) -> Result<(), Error> {
        match why {
            Absence::Removed if self.needs_each() => {
                if let Some(weight) = Weight::of(&EntryRef::from(old)) {
                    self.replaced.leaf(&old.path, weight, false);
                }
            }
            Absence::Unmounted(lost, _) if self.refuses => {
                if let Some(why) = why_lost(old, lost) {
                    return Err(self.refused(&old.path, why));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses another file system in place of a recorded one if nothing in it matches.
    pub(crate) fn conclude(&self) -> Result<(), Error> {
        match self.replaced.first().filter(|_| self.refuses) {
            Some(path) => {
                let why = "another file system is mounted here than was recorded, and nothing in \
                           it matches";
                Err(self.refused(path, why.to_owned()))
            }
            None => Ok(()),
        }
    }

    fn refused(&self, path: &[u8], why: String) -> Error {
        let mut shown = self.root.as_bytes().to_vec();
        if !shown.ends_with(b"/") {
            shown.push(b'/');
        }
        shown.extend_from_slice(path);
        Error::at(ErrorKind::Refused, &path_of(&shown), why).unless(Some(Setting::Force))
    }
}

#[cfg(test)]
mod tests {
    use bc_manifest::integrity::Kind;

    use super::*;

    #[test]
    fn what_lies_below_is_known() {
        let mut unmounted = Unmounted::new(RootCheck::Careful);
        let entry = |path: &str, mount: Option<&str>| Entry {
            mount: mount.map(|source| {
                Box::new(Mounted {
                    source: source.to_owned(),
                    ..Mounted::default()
                })
            }),
            ..Entry::new(path.into(), Kind::Dir)
        };
        for (path, mount, expected) in [
            (".", Some("/dev/sda"), MissingMount::No),
            ("a", Some(""), MissingMount::Here),
            ("a-b", Some("/dev/sdb"), MissingMount::Here),
            ("a-b/c", Some("/dev/sdb"), MissingMount::Below),
            ("a-c", None, MissingMount::No),
            ("a/b", None, MissingMount::Below),
            ("a/b/c", Some("x"), MissingMount::Below),
            ("a0", None, MissingMount::No),
            ("b", Some("x"), MissingMount::Here),
        ] {
            assert_eq!(unmounted.see(&entry(path, mount), None), expected, "{path}");
        }
        assert!(unmounted.covers(b"b/new") && !unmounted.covers(b"b"));
        let mut forced = Unmounted::new(RootCheck::Forced);
        assert_eq!(forced.see(&entry("a", Some("x")), None), MissingMount::No);
        assert!(!forced.covers(b"a/b"));
    }

    #[test]
    fn file_system_and_part_of_it_are_what_is_mounted() {
        // Source, UUID, root, subvolume.
        type Of<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<u64>);
        let mounted = |(source, uuid, root, subvolid): Of<'_>| Mounted {
            source: source.to_owned(),
            root: root.map(str::to_owned),
            fs_uuid: uuid.map(str::to_owned),
            subvolid,
        };
        let disk: Of<'_> = ("/dev/sda1", Some("u"), Some("/a"), None);
        let volume: Of<'_> = ("/dev/sda1", Some("u"), Some("/@"), Some(256));
        let (same, part, unknown) = (Sameness::Same, Sameness::OtherPart, Sameness::Unknown);
        let other = Sameness::Other;
        for (was, is, expected) in [
            (disk, disk, same),
            (disk, ("/dev/sdb1", disk.1, disk.2, None), same),
            (disk, (disk.0, disk.1, Some("/b"), None), part),
            (disk, ("/dev/sdb1", disk.1, Some("/b"), None), part),
            (disk, (disk.0, Some("v"), disk.2, None), other),
            // Without permission to read the UUID the source decides.
            (disk, (disk.0, None, disk.2, None), same),
            (disk, (disk.0, None, Some("/b"), None), part),
            (disk, ("/dev/sdb1", None, disk.2, None), unknown),
            // An earlier version recorded the source alone.
            ((disk.0, None, None, None), disk, same),
            // A snapshot beside its subvolume, and one that took its place.
            (volume, (volume.0, volume.1, Some("/snap"), Some(257)), part),
            (volume, (volume.0, volume.1, volume.2, Some(257)), part),
            (volume, volume, same),
            // Two without a device cannot be distinguished.
            (
                ("none", None, Some("/"), None),
                ("none", None, Some("/"), None),
                unknown,
            ),
            (
                ("overlay", None, Some("/"), None),
                ("overlay", None, Some("/"), None),
                unknown,
            ),
            (
                ("box:/e", None, Some("/"), None),
                ("box:/e", None, Some("/"), None),
                same,
            ),
            (
                ("box:/e", None, Some("/"), None),
                ("box:/e", None, Some("/f"), None),
                part,
            ),
            (
                ("box:/e", None, Some("/"), None),
                ("box:/f", None, Some("/"), None),
                other,
            ),
            (
                ("tank/a", None, Some("/"), None),
                ("tank/b", None, Some("/"), None),
                other,
            ),
        ] {
            let found = compare(&mounted(was), &mounted(is), false);
            assert_eq!(found, expected, "{was:?} {is:?}");
        }
        // Renamed while it was mounted, or its number came to another one.
        let renamed = mounted((disk.0, disk.1, Some("/b"), None));
        assert_eq!(compare(&mounted(disk), &renamed, true), unknown);
        // The roots of all subvolumes have one number.
        let snapshot = mounted((volume.0, volume.1, Some("/snap"), Some(257)));
        assert_eq!(compare(&mounted(volume), &snapshot, true), part);
    }
}
