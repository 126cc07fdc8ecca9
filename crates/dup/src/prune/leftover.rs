//! Temporary names of runs that were killed: distinguished from those of living runs, and removed
//! only where that cannot lose a content.
//!
//! `.tmp` may be the last name of a file (the moment between setting it aside
//! and removing it), so a regular file of that name goes only through the same
//! proofs as a duplicate that is deleted; a symbolic link holds nothing and
//! goes at once. `.part` is a copy being written, whose source is still there.
//! `.probe` is an empty file that only shows where its directory is seen.
//!
//! A move to another file system marks both with the file on the other side,
//! `.bc-dup.PID.START.N.DEV-INO-BORN.tmp`: the original that was set
//! aside says which file is its copy, and the copy, as long as it has the
//! temporary name too, which file it was made of.
//!
//! A living run holds a lock on the directory ([`claim`]); where locks cannot be relied on,
//! everything stays but probes: a run that made one and finds it gone has no answer and does
//! nothing.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use bc_edit::entry;
use bc_edit::names::PRUNE;
use bc_fs::call;
use bc_fs::meta;
use bc_walk::{FileKind, FileStat, Identity};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::process::getpid;

use super::claim;

pub(crate) const NAME: &str = ".tmp";
pub(crate) const PART: &str = ".part";
pub(crate) const PROBE: &str = ".probe";

/// Everything but the number and the suffix, for this process.
pub(crate) fn own_prefix() -> String {
    let pid = getpid().as_raw_nonzero().get();
    format!("{PRUNE}{pid}.{}.", start_time(pid).unwrap_or(0))
}

/// Returns the start of the process, in clock ticks since the boot: field 22 of `/proc/PID/stat`.
/// `None` if there is no such process, or no /proc.
fn start_time(pid: i32) -> Option<u64> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the command in parentheses, may hold anything.
    let after = &text[text.iter().rposition(|byte| *byte == b')')? + 1..];
    let field = after.split(|byte| *byte == b' ').nth(20)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Suffix {
    Name,
    Part,
    Probe,
}

/// Parts of a name that a run of prune made.
struct LeftoverName {
    pid: i32,
    start: u64,
    suffix: Suffix,
    /// The file on the other side of a move.
    mark: Option<Mark>,
}

/// Mark of a file for a later run: numbers alone are another file's as well when other disks are
/// mounted in turn, so the time of birth distinguishes them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Mark {
    pub(crate) id: Identity,
    /// Nanoseconds since 1970; `None` where the file system does not report it.
    pub(crate) born_ns: Option<u64>,
}

impl Mark {
    /// Returns the mark of an open file that was found to be this one.
    pub(crate) fn of(file: &OwnedFd, id: Identity) -> Mark {
        let born_ns = meta::born_ns(file);
        Mark { id, born_ns }
    }

    /// Returns true if the two are surely marks of one file.
    pub(crate) fn proves(&self, other: &Mark) -> bool {
        self.born_ns.is_some() && self == other
    }

    /// Returns true if the two are surely marks of one file, even if the device has another number
    /// since it was mounted again.
    pub(crate) fn proves_mounted(&self, other: &Mark) -> bool {
        let born = self.born_ns.is_some() && self.born_ns == other.born_ns;
        born && self.id.ino == other.id.ino
    }

    fn parse(text: &str) -> Option<Mark> {
        let (dev, rest) = text.split_once('-')?;
        // The first versions left out the birth.
        let (ino, born) = match rest.split_once('-') {
            Some((ino, born)) => (ino, Some(born)),
            None => (rest, None),
        };
        let id = Identity {
            dev: dev.parse().ok()?,
            ino: ino.parse().ok()?,
        };
        let born_ns = born.map(str::parse).transpose().ok()?;
        Some(Mark { id, born_ns })
    }
}

/// Formats the part before the suffix of a name that is [marked](aside_for).
impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ".{}-{}", self.id.dev, self.id.ino)?;
        match self.born_ns {
            Some(born) => write!(f, "-{born}"),
            None => Ok(()),
        }
    }
}

fn parse(name: &[u8]) -> Option<LeftoverName> {
    let rest = std::str::from_utf8(name.strip_prefix(PRUNE.as_bytes())?).ok()?;
    let suffixes = [
        (NAME, Suffix::Name),
        (PART, Suffix::Part),
        (PROBE, Suffix::Probe),
    ];
    let (rest, suffix) = suffixes
        .into_iter()
        .find_map(|(text, suffix)| Some((rest.strip_suffix(text)?, suffix)))?;
    let mut fields = rest.split('.');
    let pid = fields.next()?.parse().ok()?;
    let start = fields.next()?.parse().ok()?;
    fields.next()?.parse::<u64>().ok()?;
    let mark = match fields.next() {
        None => None,
        Some(text) => Some(Mark::parse(text)?),
    };
    fields.next().is_none().then_some(LeftoverName {
        pid,
        start,
        suffix,
        mark,
    })
}

/// Returns the mark of the copy of the file with this name, if the name is that of the original of
/// a move, set aside to be removed.
pub(crate) fn aside_for(name: &[u8]) -> Option<Mark> {
    parse(name)
        .filter(|parsed| parsed.suffix == Suffix::Name)?
        .mark
}

/// Returns true if the name is that of the original of a move whose run was killed.
pub(crate) fn is_original(name: &[u8]) -> bool {
    aside_for(name).is_some() && !is_seen(name)
}

/// Copies in `dir` that a killed run had given their names: which file each was
/// made of, and which file it is.
pub(crate) fn traces(dir: &OwnedFd) -> Vec<(Mark, Identity)> {
    let parts = of_others(dir, |suffix, stat| {
        suffix == Suffix::Part && stat.kind() == FileKind::File
    });
    let of = |name: &CString| {
        let stat = meta::stat_at(dir, name).ok()?;
        Some((parse(name.to_bytes())?.mark?, stat.id))
    };
    parts.iter().filter_map(of).collect()
}

/// Returns true if the name is one of ours, of a living run or a dead one.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    parse(name).is_some()
}

/// Returns true if a process that could have made the name is visible: then it stays, locked or
/// not, as versions before the locks held none. False proves nothing: it may live in another PID
/// namespace.
pub(crate) fn is_seen(name: &[u8]) -> bool {
    parse(name).is_some_and(|name| start_time(name.pid).unwrap_or(0) == name.start)
}

/// Returns the names in `dir` that hold nothing by themselves: runs' symbolic links, copies in the
/// making, and probes. If their runs are over is known by [`claim::alone`], but for probes.
pub(crate) fn disposable(dir: &OwnedFd) -> Vec<CString> {
    of_others(dir, |suffix, stat| match (suffix, stat.kind()) {
        (Suffix::Name, FileKind::Symlink) | (Suffix::Part, FileKind::File) => true,
        (Suffix::Probe, FileKind::File) => stat.stamp.size == 0,
        _ => false,
    })
}

/// Returns the symbolic links in `dir` that finished runs had set aside.
pub(crate) fn links(dir: &OwnedFd) -> Vec<CString> {
    of_others(dir, |suffix, stat| {
        suffix == Suffix::Name && stat.kind() == FileKind::Symlink
    })
}

pub(crate) fn is_probe(name: &CStr) -> bool {
    parse(name.to_bytes()).is_some_and(|name| name.suffix == Suffix::Probe)
}

/// Names in `dir` that may be the last ones of their files.
pub(crate) fn files(dir: &OwnedFd) -> Vec<CString> {
    of_others(dir, |suffix, stat| {
        suffix == Suffix::Name && stat.kind() == FileKind::File
    })
}

/// A regular file of this number in `dir`, under a name that is not of ours.
pub(crate) fn with_number(dir: &OwnedFd, ino: u64) -> Option<CString> {
    let name = |entry: rustix::fs::DirEntry| entry.file_name().to_owned();
    let mut names = entries(dir).into_iter().flatten().map(name);
    names.find(|name| {
        !is_ours(name.to_bytes())
            && meta::stat_at(dir, name)
                .is_ok_and(|stat| stat.id.ino == ino && stat.kind() == FileKind::File)
    })
}

/// Returns the entries of a directory; `None` where it cannot be listed.
pub(crate) fn entries(dir: &OwnedFd) -> Option<impl Iterator<Item = rustix::fs::DirEntry>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listing = rustix::fs::openat(dir, c".", flags, Mode::empty()).ok()?;
    Some(Dir::new(listing).ok()?.filter_map(Result::ok))
}

fn of_others(dir: &OwnedFd, wanted: impl Fn(Suffix, &FileStat) -> bool) -> Vec<CString> {
    let mut found: Vec<CString> = entries(dir)
        .into_iter()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_bytes();
            is_ours(name) && !is_seen(name)
        })
        .map(|entry| entry.file_name().to_owned())
        .filter(|name| {
            let Some(parsed) = parse(name.to_bytes()) else {
                return false;
            };
            meta::stat_at(dir, name).is_ok_and(|stat| wanted(parsed.suffix, &stat))
        })
        .collect();
    found.sort();
    found
}

/// Removes probes, and names that are [`disposable`] while no run is at work in `dir`; with
/// `remove` `false` only lists them. Names that are `protected` stay. Returns each name with the
/// result.
pub(crate) fn clear(
    dir: &OwnedFd,
    remove: bool,
    mut protected: impl FnMut(&CStr, Identity) -> bool,
) -> Vec<(CString, call::Result<()>)> {
    let cleared = |name: CString| {
        let done = match remove {
            true => entry::unlink(dir, &name),
            false => Ok(()),
        };
        (name, done)
    };
    let found = disposable(dir).into_iter();
    let (probes, rest): (Vec<_>, Vec<_>) = found.partition(|name| is_probe(name));
    let mut done: Vec<_> = probes.into_iter().map(cleared).collect();
    if rest.is_empty() {
        return done;
    }
    let Some(_claim) = claim::alone(dir) else {
        return done;
    };
    // Listed again: now no run can make one.
    let rest = disposable(dir).into_iter().filter(|name| {
        !is_probe(name) && meta::stat_at(dir, name).is_ok_and(|stat| !protected(name, stat.id))
    });
    done.extend(rest.map(cleared));
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let own = own_prefix();
        assert!(is_ours(format!("{own}0.tmp").as_bytes()));
        assert!(is_seen(format!("{own}0.tmp").as_bytes()));
        // The same number, started at another time: another process.
        let pid = getpid().as_raw_nonzero();
        assert!(!is_seen(format!(".bc-dup.{pid}.1.7.tmp").as_bytes()));
        let other = Identity { dev: 64, ino: 12 };
        for born_ns in [None, Some(7)] {
            let other = Mark { id: other, born_ns };
            let marked = format!(".bc-dup.{pid}.1.7{other}.tmp");
            assert_eq!(aside_for(marked.as_bytes()), Some(other));
            assert!(is_ours(marked.as_bytes()) && is_original(marked.as_bytes()));
            // Numbers alone prove nothing.
            assert_eq!(other.proves(&other), born_ns.is_some());
        }
        assert_eq!(aside_for(b".bc-dup.1.2.3.tmp"), None);
        assert_eq!(aside_for(b".bc-dup.1.2.3.4-5.part"), None);
        for foreign in [
            ".bc-dup.1.2.3.4-5.6.tmp",
            ".bc-dup.1.2.3.4-.tmp",
            ".bc-dup.1.2.3.4-5-.tmp",
            ".bc-dup.1.2.3.4-5-6-7.tmp",
            ".bc-dup.tmp",
            ".bc-dup.1.2.tmp",
            ".bc-dup.1.2.3.4.tmp",
            ".bc-dup.1.2.x.tmp",
            ".bc-dup.1.2.3.txt",
            "bc-dup.1.2.3.tmp",
        ] {
            assert!(!is_ours(foreign.as_bytes()), "{foreign}");
        }
    }
}
