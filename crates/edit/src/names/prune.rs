//! Names that runs of prune give to files for a moment: who made one, what its file is, and which
//! file on the other side it belongs to.
//!
//! `.bc-dup.PID.START.N.tmp` is a file that was set aside: perhaps the last name of its content.
//! `.part` is a copy being written, whose source is still there. `.probe` is an empty file by which
//! earlier versions asked where its directory is seen. A move to another file system marks the first two with the file
//! on the other side, `.bc-dup.PID.START.N.DEV-INO-BORN.tmp`: the original that was set aside says
//! which file is its copy, and the copy, as long as it has the temporary name too, which file it was
//! made of.

use std::os::fd::OwnedFd;

use bc_fs::meta;
use bc_fs::meta::Identity;
use rustix::process::getpid;

/// Beginning of all of them.
pub(super) const PREFIX: &str = ".bc-dup.";

/// End of the name of a file that was set aside.
pub const NAME: &str = ".tmp";
/// End of the name of a copy that is being written.
pub const PART: &str = ".part";
/// End of the name of a file that showed where its directory is seen.
const PROBE: &str = ".probe";

/// Everything but the number and the suffix, for this process.
pub fn own_prefix() -> String {
    let pid = getpid().as_raw_nonzero().get();
    format!("{PREFIX}{pid}.{}.", start_time(pid).unwrap_or(0))
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

/// Use of a file under such a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Suffix {
    /// A file that was set aside ([`NAME`]).
    Name,
    /// A copy that is being written ([`PART`]).
    Part,
    /// An empty file that an earlier version made.
    Probe,
}

/// Parts of a name that a run of prune made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PruneName {
    pid: i32,
    start: u64,
    /// Use of the file.
    pub suffix: Suffix,
    /// The file on the other side of a move.
    pub mark: Option<Mark>,
}

/// Mark of a file for a later run: numbers alone are another file's as well when other disks are
/// mounted in turn, so the time of birth distinguishes them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Mark {
    /// Identity of the file.
    pub id: Identity,
    /// Nanoseconds since 1970; `None` where the file system does not report it.
    pub born_ns: Option<u64>,
}

impl Mark {
    /// Returns the mark of an open file that was found to be this one.
    pub fn of(file: &OwnedFd, id: Identity) -> Mark {
        let born_ns = meta::born_ns(file);
        Mark { id, born_ns }
    }

    /// Returns true if the two are surely marks of one file.
    pub fn proves(&self, other: &Mark) -> bool {
        self.born_ns.is_some() && self == other
    }

    /// Returns true if the two are surely marks of one file, even if the device has another number
    /// since it was mounted again.
    pub fn proves_mounted(&self, other: &Mark) -> bool {
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

/// Takes a name apart; `None` if no run of prune made it.
pub fn parse(name: &[u8]) -> Option<PruneName> {
    let rest = std::str::from_utf8(name.strip_prefix(PREFIX.as_bytes())?).ok()?;
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
    fields.next().is_none().then_some(PruneName {
        pid,
        start,
        suffix,
        mark,
    })
}

/// Returns the mark of the copy of the file with this name, if the name is that of the original of
/// a move, set aside to be removed.
pub fn aside_for(name: &[u8]) -> Option<Mark> {
    parse(name)
        .filter(|parsed| parsed.suffix == Suffix::Name)?
        .mark
}

/// Returns true if the name is that of the original of a move whose run was killed.
pub fn is_original(name: &[u8]) -> bool {
    aside_for(name).is_some() && !is_seen(name)
}

/// Returns true if the name is one of ours, of a living run or a dead one.
pub fn is_ours(name: &[u8]) -> bool {
    parse(name).is_some()
}

/// Returns true if a process that could have made the name is visible: then it stays, locked or
/// not, as versions before the locks held none. False proves nothing: it may live in another PID
/// namespace.
pub fn is_seen(name: &[u8]) -> bool {
    parse(name).is_some_and(|name| start_time(name.pid).unwrap_or(0) == name.start)
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
