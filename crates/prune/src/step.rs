//! Actions, steps, events and totals of prune. A dry run and a real run print the same [`Step`]s,
//! because both build them here.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use bc_fs::{Escaped, PathError};

use crate::skip::Skip;

/// Action on a duplicate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Its name becomes another name of the kept file.
    Hardlink,
    /// It shares the kept file's blocks, where the file system can.
    Reflink,
    /// Its name becomes a relative symbolic link to the kept file.
    Symlink,
    /// Its name is removed.
    Delete,
    /// It goes below this directory, under its own path.
    Move(Vec<u8>),
    /// It goes to the trash of its own file system: the one of the user's home, which this is, if that
    /// is there, else the user's own at the top of the file system.
    Trash(Option<Vec<u8>>),
}

impl Action {
    /// `hardlink`, `reflink`, `symlink`, `delete`, `move` or `trash`.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Hardlink => "hardlink",
            Action::Reflink => "reflink",
            Action::Symlink => "symlink",
            Action::Delete => "delete",
            Action::Move(_) => "move",
            Action::Trash(_) => "trash",
        }
    }

    /// Returns true if a front end has to ask before doing this.
    pub fn needs_confirmation(&self) -> bool {
        !matches!(self, Action::Hardlink | Action::Reflink)
    }

    /// Reads `hardlink`, `reflink`, `symlink`, `delete`, `move:DIR` or `trash`, which says nothing of the
    /// user's home.
    pub fn parse(text: &[u8]) -> Option<Action> {
        Some(match text {
            b"hardlink" => Action::Hardlink,
            b"reflink" => Action::Reflink,
            b"symlink" => Action::Symlink,
            b"delete" => Action::Delete,
            b"trash" => Action::Trash(None),
            _ => match text.strip_prefix(b"move:") {
                Some(dir) if !dir.is_empty() && !dir.contains(&0) => Action::Move(dir.to_vec()),
                _ => return None,
            },
        })
    }
}

/// One change to one name. `Display` is a line without its newline.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Step {
    /// Kind of change.
    pub kind: StepKind,
    /// The name it is done to.
    pub target: Vec<u8>,
    /// The file that stays.
    pub kept_file: Vec<u8>,
    /// True if that is a reference's file.
    pub reference: bool,
    /// Bytes of the content.
    pub size: u64,
}

/// Kind of change that a [`Step`] makes.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StepKind {
    /// See [`Action::Hardlink`].
    Hardlink,
    /// See [`Action::Reflink`].
    Reflink,
    /// See [`Action::Symlink`]; with the text of the link, where it is known.
    Symlink(Vec<u8>),
    /// See [`Action::Delete`].
    Delete,
    /// See [`Action::Move`]; with the new path.
    Move(Vec<u8>),
    /// See [`Action::Trash`]; with the new path, once it has one.
    Trash(Vec<u8>),
    /// A temporary name that a killed run left behind is removed.
    Leftover,
}

impl StepKind {
    /// Returns the action in a word, as journals name it; `remove` for leftovers of a killed run.
    pub fn name(&self) -> &'static str {
        match self {
            StepKind::Hardlink => "hardlink",
            StepKind::Reflink => "reflink",
            StepKind::Symlink(_) => "symlink",
            StepKind::Delete => "delete",
            StepKind::Move(_) => "move",
            StepKind::Trash(_) => "trash",
            StepKind::Leftover => "remove",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, kept_file) = (Escaped(&self.target), Escaped(&self.kept_file));
        let (alone, beside) = match self.reference {
            true => (" (reference)", ", reference"),
            false => ("", ""),
        };
        match &self.kind {
            StepKind::Hardlink => write!(f, "hardlink {target} to {kept_file}{alone}"),
            StepKind::Reflink => write!(f, "reflink {target} from {kept_file}{alone}"),
            StepKind::Symlink(_) => write!(f, "symlink {target} to {kept_file}{alone}"),
            StepKind::Delete => write!(f, "delete {target} (kept: {kept_file}{beside})"),
            StepKind::Trash(_) => write!(f, "trash {target} (kept: {kept_file}{beside})"),
            StepKind::Move(to) => {
                let to = Escaped(to);
                write!(f, "move {target} to {to} (kept: {kept_file}{beside})")
            }
            StepKind::Leftover => {
                write!(f, "remove {target}, left over by a run that was killed")?;
                match self.kept_file.is_empty() {
                    true => Ok(()),
                    false => write!(f, " (kept: {kept_file}{beside})"),
                }
            }
        }
    }
}

/// One change to a whole directory. `Display` is a line without its newline.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TreeStep {
    /// Kind of change: it is deleted, moved or put in the trash.
    pub kind: StepKind,
    /// The directory that goes.
    pub target: Vec<u8>,
    /// The one that stays.
    pub kept_file: Vec<u8>,
    /// True if the directory that stays is a reference's.
    pub reference: bool,
    /// Files in it.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
}

impl fmt::Display for TreeStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, kept_file) = (Escaped(&self.target), Escaped(&self.kept_file));
        match &self.kind {
            StepKind::Move(to) => write!(f, "move {target}/ to {}/", Escaped(to))?,
            kind => write!(f, "{} {target}/", kind.name())?,
        }
        let (files, s) = (self.files, if self.files == 1 { "" } else { "s" });
        let beside = if self.reference { ", reference" } else { "" };
        write!(f, " with {files} file{s} (kept: {kept_file}/{beside})")
    }
}

/// Outcome of a step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StepOutcome {
    /// It was done; this many bytes of disk space were freed.
    Done {
        /// Bytes of allocated blocks that no file uses any more.
        freed: u64,
        /// Properties that the file lost, each with the reason: an owner, an attribute, its other
        /// names. Empty but for moves to another file system.
        lost: Vec<String>,
    },
    /// A dry run: it would be done now.
    Would {
        /// Bytes of allocated blocks that no file would use any more.
        freed: u64,
    },
    /// It was not done.
    Skipped(Skip),
}

impl StepOutcome {
    /// Done, with nothing lost.
    pub(crate) fn done(freed: u64) -> StepOutcome {
        let lost = Vec::new();
        StepOutcome::Done { freed, lost }
    }
}

/// Event that a run reports. Exhaustive: no front end should overlook one.
#[derive(Clone, Debug)]
pub enum PruneEvent {
    /// A step and its outcome. Steps that a file system cannot do with any of its files
    /// ([`Skip::Unable`], [`Skip::UnstableInodes`]) are reported for the first of them only.
    Step(Step, StepOutcome),
    /// A step with a whole directory and its outcome.
    Tree(TreeStep, StepOutcome),
    /// A file that should have been kept cannot be relied on; another one of
    /// its group is kept, or the group is left alone.
    Unusable(Vec<u8>, Skip),
    /// The system gives no read lease on this file, for the reason of this error number: a process
    /// that writes to it through a descriptor that was open before goes unnoticed. Reported for the
    /// first such file of a run only.
    WritersUndetected(Vec<u8>, i32),
    /// The journal could not be completed; the steps are done all the same.
    Journal(Skip),
}

impl PruneEvent {
    /// Returns the failure that the event is, if it is one with a path. Its operation is the one
    /// that the system refused, or else the step.
    pub fn failure(&self) -> Option<PathError> {
        match self {
            PruneEvent::Step(step, StepOutcome::Skipped(skip)) if skip.is_error() => {
                Some(skip.failure(&step.target, step.kind.name()))
            }
            PruneEvent::Tree(step, StepOutcome::Skipped(skip)) if skip.is_error() => {
                Some(skip.failure(&step.target, step.kind.name()))
            }
            PruneEvent::Unusable(path, skip) => Some(skip.failure(path, "keep")),
            PruneEvent::Step(..)
            | PruneEvent::Tree(..)
            | PruneEvent::WritersUndetected(..)
            | PruneEvent::Journal(_) => None,
        }
    }
}

impl fmt::Display for PruneEvent {
    /// Writes the event in one line: a step that is done, or would be, as the step itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = io::Error::from_raw_os_error;
        match self {
            PruneEvent::Step(step, StepOutcome::Skipped(skip)) => {
                write!(f, "{step}: skipped: {skip}")
            }
            PruneEvent::Tree(step, StepOutcome::Skipped(skip)) => {
                write!(f, "{step}: skipped: {skip}")
            }
            PruneEvent::Step(step, _) => write!(f, "{step}"),
            PruneEvent::Tree(step, _) => write!(f, "{step}"),
            PruneEvent::Unusable(path, skip) => {
                write!(f, "{}: cannot be kept: {skip}", Escaped(path))
            }
            PruneEvent::WritersUndetected(path, errno) => write!(
                f,
                "{}: no read lease: {}; of this file and others like it, writes through \
                 descriptors that were open before go unnoticed",
                Escaped(path),
                system(*errno)
            ),
            PruneEvent::Journal(skip) => write!(f, "{skip}"),
        }
    }
}

/// The totals of a run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PruneSummary {
    /// Groups looked at.
    pub groups: u64,
    /// Steps done, or that a dry run would do.
    pub changed: u64,
    /// Directories that were removed or moved with all that was in them, or would be.
    pub dirs: u64,
    /// Bytes of disk space freed: those of files whose last name went, less the space shared with
    /// other files, and less the space taken to copy files up.
    pub freed: u64,
    /// Bytes of disk space that copying files up from a lower layer took beyond those freed.
    pub used: u64,
    /// Files changed of which it is unknown whether they lie in a lower layer: for these the worst
    /// is assumed, and more may be freed, or less used.
    pub layers_unknown: u64,
    /// Files that are gone, or would be, whose space is unknown: their file system does not report
    /// it.
    pub unreported: u64,
    /// Number of those changed that lost something other than content.
    pub incomplete: u64,
    /// Leftovers of killed runs that were removed.
    pub leftovers: u64,
    /// Steps not done, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Number of those that were errors.
    pub errors: u64,
}

impl PruneSummary {
    /// Returns true if everything is as requested: exit code 0.
    pub fn is_clean(&self) -> bool {
        self.errors == 0
    }

    /// Adds the totals of another thread of the same run.
    pub(crate) fn add(&mut self, other: &PruneSummary) {
        let PruneSummary {
            groups,
            changed,
            dirs,
            freed,
            used,
            layers_unknown,
            unreported,
            incomplete,
            leftovers,
            skipped,
            errors,
        } = other;
        self.groups += groups;
        self.changed += changed;
        self.dirs += dirs;
        self.freed += freed;
        self.used += used;
        self.layers_unknown += layers_unknown;
        self.unreported += unreported;
        self.incomplete += incomplete;
        self.leftovers += leftovers;
        self.errors += errors;
        for (reason, count) in skipped {
            *self.skipped.entry(reason).or_default() += count;
        }
    }

    pub(crate) fn skip(&mut self, skip: &Skip) {
        *self.skipped.entry(skip.reason()).or_default() += 1;
        self.errors += u64::from(skip.is_error());
    }
}

/// Returns the path below `dir` that `path` is moved to: all of it but `.`, `..` and the leading
/// slash, so that no two files meet.
pub(crate) fn path_below(dir: &[u8], path: &[u8]) -> Vec<u8> {
    let mut to = dir.to_vec();
    let parts = path.split(|byte| *byte == b'/');
    for part in parts.filter(|part| !part.is_empty() && *part != b"." && *part != b"..") {
        if to.last() != Some(&b'/') {
            to.push(b'/');
        }
        to.extend_from_slice(part);
    }
    to
}

/// Directory at the top of a file system that its administrator made for the trashes of all users.
pub(crate) const SHARED_TRASH: &[u8] = b".Trash";

/// Names of the trash of a home, where `$XDG_DATA_HOME` says nothing else.
const HOME_TRASH: [&[u8]; 3] = [b".local", b"share", b"Trash"];

/// Beginning of the name of a user's own directory there.
pub(crate) const OWN_TRASH: &str = ".Trash-";

/// Returns true if a path leads into the trash at the top of a file system, by its names.
pub(crate) fn lies_in_trash(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| {
        let number = part.strip_prefix(OWN_TRASH.as_bytes());
        let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        part == SHARED_TRASH || number.is_some_and(is_number)
    })
}

/// Returns true if a path leads into the trash of a home, of whichever user, by its names.
pub(crate) fn lies_in_home_trash(path: &[u8]) -> bool {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    parts
        .windows(HOME_TRASH.len())
        .any(|parts| parts == HOME_TRASH)
}

#[cfg(test)]
mod tests;
