//! The lines of a journal, as JSON has them.

use std::borrow::Cow;
use std::collections::HashSet;

use bc_digest::Digest;
use bc_edit::InodeFlags;
use bc_edit::metadata::FileMetadata;
use bc_edit::names::prune::Mark;
use bc_fs::meta::{clipped, exact_nanoseconds};
use bc_manifest::base64;
use bc_manifest::json::{JsonPath, base64_text};
use bc_walk::{FileKind, Identity, Stamp};
use serde::{Deserialize, Serialize};

use crate::check::open_file::OpenFile;
use crate::skip::Skip;
use crate::step::StepKind;

/// Format name in the first line.
pub(super) const MAGIC: &str = "bc dup prune";

/// The version written. Version 1 had no roots; until version 2 a step ended before the next began.
pub(super) const SCHEMA: u32 = 3;

/// The first line of a run.
#[derive(Deserialize, Serialize)]
pub(super) struct RunHeader {
    pub(super) journal: String,
    pub(super) schema: u32,
    pub(super) action: String,
    pub(super) started_at: String,
    /// The directories that all its paths lie in, as the kernel names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) roots: Vec<JsonPath>,
}

/// Run that made the copy under the destination's name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CopyOrigin {
    /// A run's that left its word for it in a journal: undo may remove it.
    Made,
    /// Another run's: undo leaves it alone.
    Found,
}

/// A file as it was right before a step.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Recorded {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    dev: u64,
    ino: u64,
    size: u64,
    mtime_ns: i64,
    ctime_ns: i64,
    nlink: u64,
    mode: u32,
    uid: u32,
    gid: u32,
    atime_ns: i64,
    /// Both times where one lies before 1677 or after 2262. Not recorded by the first versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    far: Option<Far>,
    /// Time of birth, where that is known. Not recorded by the first versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    xattrs: Vec<Attribute>,
    /// The flags of `chattr` of a file or a directory. Not recorded by the first versions.
    #[serde(default, skip_serializing_if = "is_none")]
    flags: u32,
}

/// Seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Far {
    mtime: (i64, u32),
    atime: (i64, u32),
}

impl Far {
    fn of(metadata: &FileMetadata) -> Option<Far> {
        const SECOND: i128 = 1_000_000_000;
        let both = [metadata.mtime_ns, metadata.atime_ns];
        if both.iter().all(|ns| i64::try_from(*ns).is_ok()) {
            return None;
        }
        let pair = |ns: i128| {
            let seconds = i64::try_from(ns.div_euclid(SECOND)).ok()?;
            // Less than a second.
            Some((seconds, ns.rem_euclid(SECOND) as u32))
        };
        Some(Far {
            mtime: pair(both[0])?,
            atime: pair(both[1])?,
        })
    }
}

fn is_none(flags: &u32) -> bool {
    *flags == 0
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Attribute {
    name_b64: String,
    value_b64: String,
}

/// One step in a journal.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct JournalStep {
    pub(super) step: u64,
    pub(crate) action: String,
    pub(crate) target: Recorded,
    #[serde(rename = "keeper")]
    pub(crate) kept_file: Recorded,
    /// XXH128 of the content.
    pub(super) digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) destination: Option<JsonPath>,
    /// Target of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<JsonPath>,
    /// Another name of the target, in another directory. Not recorded by the first versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) other: Option<JsonPath>,
    /// The volume that the target is on, in the first step of a run about its device.
    /// Not recorded by the first versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) volume: Option<String>,
}

/// Outcome of a step.
#[derive(Deserialize, Serialize)]
pub(super) struct End {
    pub(super) step: u64,
    pub(super) done: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// The copy that a move to another file system is about to give its name, or
/// has found under it.
#[derive(Deserialize, Serialize)]
pub(super) struct Copied {
    pub(super) step: u64,
    pub(super) copied: Inode,
    /// True if it existed before the step; then it stays when that is undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) found: bool,
    /// FileMetadata that it was given. Not recorded by the first versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made: Option<Made>,
}

/// FileMetadata that a copy was given, or the part of it that its file system took.
#[derive(Deserialize, Serialize)]
pub(super) struct Made {
    mtime_ns: i64,
    mode: u32,
    uid: u32,
    gid: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    xattrs: Vec<Attribute>,
}

impl Made {
    pub(super) fn new(metadata: &FileMetadata) -> Made {
        Made {
            mtime_ns: clipped(metadata.mtime_ns),
            mode: metadata.mode,
            uid: metadata.uid,
            gid: metadata.gid,
            xattrs: attributes(metadata),
        }
    }

    /// `None` if an attribute is not base64.
    pub(super) fn metadata(&self) -> Option<FileMetadata> {
        Some(FileMetadata {
            mode: self.mode & 0o7777,
            uid: self.uid,
            gid: self.gid,
            atime_ns: 0,
            mtime_ns: self.mtime_ns.into(),
            xattrs: decoded(&self.xattrs)?,
        })
    }
}

fn attributes(metadata: &FileMetadata) -> Vec<Attribute> {
    let encoded = metadata.xattrs.iter().map(|(name, value)| Attribute {
        name_b64: base64_text(name),
        value_b64: base64_text(value),
    });
    encoded.collect()
}

fn decoded(attributes: &[Attribute]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let decode = |text: &str| base64::decode(text.as_bytes());
    attributes
        .iter()
        .map(|one| Some((decode(&one.name_b64)?, decode(&one.value_b64)?)))
        .collect()
}

#[derive(Deserialize, Serialize)]
pub(super) struct Inode {
    pub(super) dev: u64,
    pub(super) ino: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) born_ns: Option<u64>,
}

impl Recorded {
    /// Records the file with its metadata, which is read if not `known`.
    pub(super) fn new(
        held: &OpenFile,
        path: &[u8],
        known: Option<&FileMetadata>,
    ) -> Result<Recorded, Skip> {
        let metadata = match known {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(held.metadata()?),
        };
        let stamp = held.stat.stamp;
        let (path, path_b64) = JsonPath::new(path).into_parts();
        Ok(Recorded {
            path,
            path_b64,
            dev: held.stat.id.dev,
            ino: held.stat.id.ino,
            size: stamp.size,
            mtime_ns: stamp.mtime_ns,
            ctime_ns: stamp.ctime_ns,
            nlink: held.links,
            mode: metadata.mode,
            uid: metadata.uid,
            gid: metadata.gid,
            atime_ns: clipped(metadata.atime_ns),
            far: Far::of(&metadata),
            born_ns: held.born_ns,
            xattrs: attributes(&metadata),
            flags: 0,
        })
    }

    /// Records the file with its flags of `chattr` too, which a step would lose.
    pub(super) fn with_flags(
        held: &OpenFile,
        path: &[u8],
        known: Option<&FileMetadata>,
    ) -> Result<Recorded, Skip> {
        let flags = match held.stat.kind() {
            FileKind::File | FileKind::Dir => held.flags()?.chattr(),
            // A link has none.
            _ => 0,
        };
        Ok(Recorded {
            flags,
            ..Recorded::new(held, path, known)?
        })
    }

    /// The flags of `chattr`.
    pub(crate) fn flags(&self) -> InodeFlags {
        InodeFlags::with_chattr(self.flags)
    }

    /// Returns the absolute path; `None` if it is not absolute.
    pub(crate) fn path(&self) -> Option<Vec<u8>> {
        JsonPath::from_parts(self.path.clone(), self.path_b64.clone())
            .bytes()
            .filter(|path| path.starts_with(b"/"))
    }

    pub(crate) fn id(&self) -> Identity {
        Identity {
            dev: self.dev,
            ino: self.ino,
        }
    }

    /// Returns the mark by which a later run can recognise the file.
    pub(crate) fn mark(&self) -> Mark {
        let born_ns = self.born_ns;
        Mark {
            id: self.id(),
            born_ns,
        }
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            size: self.size,
            mtime_ns: self.mtime_ns,
            ctime_ns: self.ctime_ns,
        }
    }

    /// Returns the number of names that the file had.
    pub(crate) fn nlink(&self) -> u64 {
        self.nlink
    }

    /// `None` if an attribute is not base64.
    pub(crate) fn metadata(&self) -> Option<FileMetadata> {
        let (atime_ns, mtime_ns) = match self.far {
            Some(Far { mtime, atime }) => (
                exact_nanoseconds(atime.0, atime.1),
                exact_nanoseconds(mtime.0, mtime.1),
            ),
            None => (self.atime_ns.into(), self.mtime_ns.into()),
        };
        Some(FileMetadata {
            mode: self.mode & 0o7777,
            uid: self.uid,
            gid: self.gid,
            atime_ns,
            mtime_ns,
            xattrs: decoded(&self.xattrs)?,
        })
    }
}

impl JournalStep {
    pub(crate) fn digest(&self) -> Option<Digest> {
        Digest::from_hex(self.digest.as_bytes())
    }

    pub(crate) fn destination(&self) -> Option<Vec<u8>> {
        let bytes = self.destination.as_ref()?.bytes()?;
        bytes.starts_with(b"/").then_some(bytes)
    }

    /// Another name that the file had, which may be there still.
    pub(crate) fn other(&self) -> Option<Vec<u8>> {
        let bytes = self.other.as_ref()?.bytes()?;
        bytes.starts_with(b"/").then_some(bytes)
    }

    /// Returns the change that was made to a file, as it was printed, but for the text of a link;
    /// `None` for directories and links in them.
    pub(crate) fn kind(&self) -> Option<StepKind> {
        Some(match self.action.as_str() {
            "hardlink" => StepKind::Hardlink,
            "reflink" => StepKind::Reflink,
            "symlink" => StepKind::Symlink(Vec::new()),
            "delete" => StepKind::Delete,
            "move" => StepKind::Move(self.destination().unwrap_or_default()),
            "trash" => StepKind::Trash(self.destination().unwrap_or_default()),
            _ => return None,
        })
    }

    /// Returns the action on a directory or a link; `None` for files.
    pub(crate) fn tree_action(&self) -> Option<TreeAction> {
        let mut all = TreeAction::ALL.into_iter();
        all.find(|action| action.name() == self.action)
    }

    /// Returns true if it put a file or a directory in a trash.
    pub(crate) fn is_trash(&self) -> bool {
        let of_directory = || self.tree_action() == Some(TreeAction::TrashDirectory);
        matches!(self.kind(), Some(StepKind::Trash(_))) || of_directory()
    }

    /// Returns the target of the removed link; `None` if it is not recorded or is no possible
    /// target.
    pub(crate) fn text(&self) -> Option<Vec<u8>> {
        let text = self.text.as_ref()?.bytes()?;
        (!text.is_empty() && !text.contains(&0)).then_some(text)
    }

    /// Returns true if it has all that undo needs.
    fn is_complete(&self) -> bool {
        let has = match self.tree_action() {
            None => {
                let is_move = matches!(self.kind(), Some(StepKind::Move(_) | StepKind::Trash(_)));
                self.digest().is_some() && (!is_move || self.destination().is_some())
            }
            Some(TreeAction::RemoveLink) => self.text().is_some(),
            Some(TreeAction::MoveDirectory | TreeAction::TrashDirectory) => {
                self.destination().is_some()
            }
            Some(TreeAction::Empty | TreeAction::RemoveDirectory) => true,
        };
        has && self.target.metadata().is_some()
    }

    /// Returns the reason to refuse it, if there is one: undo acts on nothing that this accepts
    /// unless every path lies in one of `roots`. A journal of version 1 has none recorded.
    pub(super) fn flaw(&self, roots: Option<&HashSet<Vec<u8>>>) -> Option<String> {
        if self.kind().is_none() && self.tree_action().is_none() {
            let action = bc_fs::escape(self.action.as_bytes()).into_owned();
            return Some(format!("unknown action '{action}'"));
        }
        let destination = self.destination();
        let (Some(target), Some(kept_file), true) = (
            self.target.path(),
            self.kept_file.path(),
            self.is_complete(),
        ) else {
            return Some("a step without absolute paths, metadata and digest".to_owned());
        };
        // No file is larger: offsets are signed.
        if [&self.target, &self.kept_file]
            .iter()
            .any(|file| i64::try_from(file.size).is_err())
        {
            return Some("a size that no file can have".to_owned());
        }
        let roots = roots?;
        let in_trash = |path: &Vec<u8>| self.is_trash() && super::roots::is_in_trash(path);
        let destination = destination.filter(|path| !in_trash(path));
        [Some(target), Some(kept_file), destination, self.other()]
            .into_iter()
            .flatten()
            .find(|path| !super::roots::contain(roots, path))
            .map(|path| {
                let path = bc_fs::escape(&path).into_owned();
                format!("{path} lies outside of the directories of its run")
            })
    }
}

/// Action on a directory, or on a link in one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TreeAction {
    /// Names in a directory are about to go: records its state before that. With a destination, the
    /// directory is made there.
    Empty,
    /// An empty directory is removed.
    RemoveDirectory,
    /// A symbolic link is removed, or made at the destination and removed.
    RemoveLink,
    /// A directory is renamed with all that is in it.
    MoveDirectory,
    /// A directory is put in a trash with all that is in it.
    TrashDirectory,
}

impl TreeAction {
    const ALL: [TreeAction; 5] = [
        TreeAction::Empty,
        TreeAction::RemoveDirectory,
        TreeAction::RemoveLink,
        TreeAction::MoveDirectory,
        TreeAction::TrashDirectory,
    ];

    /// Returns the action's name in journals.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TreeAction::Empty => "empty-directory",
            TreeAction::RemoveDirectory => "remove-directory",
            TreeAction::RemoveLink => "remove-link",
            TreeAction::MoveDirectory => "move-directory",
            TreeAction::TrashDirectory => "trash-directory",
        }
    }
}
