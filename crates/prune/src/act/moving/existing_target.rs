//! An existing target: a file that has the destination's name already and is the copy that a move
//! would make: its run was killed before the original went. It counts as made if a journal, or the
//! temporary name that it has as well, says that it is the copy of this very file: one that is
//! merely equal may be all that is left of another. It gets every proof that a fresh copy gets and
//! those that a fresh copy does not need: it may be the original itself under another mount, or
//! another process may be using it.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::os::fd::OwnedFd;

use bc_edit::content;
use bc_edit::metadata::FileMetadata;
use bc_edit::names::prune::Mark;
use bc_find::Subtrees;
use bc_fs::meta;
use bc_pool::Cancel;
use bc_walk::{FileKind, Identity};

use crate::check::compare::compare_while;
use crate::check::distinct;
use crate::check::meta::difference;
use crate::check::open_file::{self, OpenFile, Watched};
use crate::options::{Force, OnMetadataDiff};
use crate::skip::Skip;

/// Run that made the copy under the destination's name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CopyOrigin {
    /// A run's that left its word for it in a journal: undo may remove it.
    Made,
    /// Another run's: undo leaves it alone.
    Found,
}

/// Conditions for a file to count as the copy.
#[derive(Clone, Copy)]
pub(crate) struct Acceptable<'a> {
    /// The one that an earlier run's journal says it made of this very file.
    pub(crate) known: Option<Mark>,
    /// Copies that have the temporary name too under which a killed run made
    /// them, and the file that this name says each is a copy of.
    pub(crate) traces: &'a HashSet<(Mark, Identity)>,
    /// The kept file: neither this one nor one that cannot be distinguished from it counts.
    pub(crate) kept_file: &'a OpenFile,
    /// Never one of these.
    pub(crate) references: &'a Subtrees,
    /// Files that this run has placed, each with the file that it was before: two files may have
    /// one destination, and the second is not there because the first is.
    pub(crate) placed: &'a HashMap<Identity, Identity>,
    /// Trust in a file system that cannot tell files apart.
    pub(crate) force: Force,
    /// Treatment of a copy that lacks some of the metadata.
    pub(crate) on_metadata_diff: OnMetadataDiff,
}

/// A copy that counts as made.
pub(crate) struct ExistingTarget {
    pub(crate) held: OpenFile,
    pub(crate) origin: CopyOrigin,
    /// FileMetadata that it lacks, if that was allowed.
    pub(crate) lost: Option<String>,
    /// Reason why writers of it will not be noticed, as an error number.
    pub(crate) unwatched: Option<i32>,
}

/// Makes the reason for an existing target that differs in `what`.
pub(crate) fn exists(what: &'static str) -> Skip {
    Skip::DestinationExists(Some(what))
}

const ITSELF: &str = "it is the file itself";
const CONTENT: &str = "its content differs";
const BUSY: &str = "it is being changed";

impl Acceptable<'_> {
    /// Holds the file that `name` in `dir` leads to, at the path `to`, and proves that it is the
    /// copy of `target` that a move with this metadata makes.
    ///
    /// # Errors
    /// [`Skip::DestinationExists`], with the difference.
    pub(crate) fn find(
        &self,
        dir: &OwnedFd,
        name: &CStr,
        to: &[u8],
        target: &OpenFile,
        metadata: &FileMetadata,
        cancel: &Cancel,
    ) -> Result<ExistingTarget, Skip> {
        let there = meta::stat_at(dir, name)?;
        if there.kind() != FileKind::File {
            return Err(exists("it is not a regular file"));
        }
        self.check_identity(there.id, target)?;
        if there.stamp.size != target.stat.stamp.size {
            return Err(exists(CONTENT));
        }
        let mut held =
            OpenFile::find(dir, &name.to_owned(), to).map_err(|_| exists("it cannot be read"))?;
        self.check_identity(held.stat.id, target)?;
        if self.force == Force::No {
            let apart = distinct::check(target, &held)
                .and_then(|()| distinct::check(self.kept_file, &held));
            apart.map_err(|why| match why {
                Skip::SameVolume => exists("it may be the file itself on another device"),
                _ => exists("its file system has no stable inode numbers"),
            })?;
        }
        let (origin, lost) = self.compare_metadata(&held, target, metadata)?;
        open_file::wait_for_clock(held.stat.stamp.mtime_ns);
        let unwatched = match held.watch().map_err(in_the_way)? {
            Watched::Yes => None,
            Watched::No(errno) => Some(errno),
        };
        let size = target.stat.stamp.size;
        compare_while(&target.file, &held.file, size, cancel, || {
            held.check_lease()
        })
        .and_then(|_| held.check())
        .map_err(in_the_way)?;
        Ok(ExistingTarget {
            held,
            origin,
            lost,
            unwatched,
        })
    }

    fn check_identity(&self, id: Identity, target: &OpenFile) -> Result<(), Skip> {
        let source = target.stat.id;
        if id == source {
            Err(exists(ITSELF))
        } else if id == self.kept_file.stat.id {
            Err(exists("it is the kept file"))
        } else if self.references.has_file(id) {
            Err(exists("it is a reference's file"))
        } else if self.placed.get(&id).is_some_and(|was| *was != source) {
            Err(exists("another file was moved there"))
        } else {
            Ok(())
        }
    }

    fn is_traced(&self, target: &OpenFile, held: &OpenFile) -> bool {
        let mark = target.mark();
        mark.born_ns.is_some() && self.traces.contains(&(mark, held.stat.id))
    }

    /// Returns the copy's origin, and the metadata that it lacks.
    fn compare_metadata(
        &self,
        held: &OpenFile,
        target: &OpenFile,
        metadata: &FileMetadata,
    ) -> Result<(CopyOrigin, Option<String>), Skip> {
        let flag = target.flags()?.missing_from(held.flags()?);
        let differs = difference(metadata, &held.metadata()?).or(flag);
        // A copy in a journal was given all that its file system takes.
        if self.known.is_some_and(|known| known.proves(&held.mark())) {
            return match differs {
                Some(what) if self.on_metadata_diff == OnMetadataDiff::Refuse => {
                    Err(exists(named(what)))
                }
                what => Ok((
                    CopyOrigin::Made,
                    what.map(|what| format!("{what}: differs at the destination")),
                )),
            };
        }
        match differs {
            Some(what) => Err(exists(named(what))),
            None if held.stat.stamp.mtime_ns != target.stat.stamp.mtime_ns => {
                Err(exists("its modification time differs"))
            }
            None if self.is_traced(target, held) => Ok((CopyOrigin::Found, None)),
            None => Err(exists(
                "it is equal, but not known to be a copy of this file",
            )),
        }
    }
}

impl ExistingTarget {
    /// Makes it durable, as a fresh copy is.
    pub(crate) fn settle(&mut self) -> Result<(), Skip> {
        content::sync(&self.held.file)?;
        self.held.refresh().map_err(in_the_way)?;
        self.held.wait_for_tick();
        Ok(())
    }
}

/// Proves, now that `target` was set aside, that a copy that existed is another file, and still
/// unchanged.
pub(crate) fn outlives(copy: &OpenFile, target: &OpenFile) -> Result<(), Skip> {
    copy.outlives(target).map_err(in_the_way)
}

/// A [difference] in a sentence.
fn named(what: &str) -> &'static str {
    match what {
        "owner" => "its owner differs",
        "mode" => "its mode differs",
        "ACL" => "its ACL differs",
        "an extended attribute" => "an extended attribute of it differs",
        _ => "its flags of chattr differ",
    }
}

/// Converts a failed proof into the reason why a file at the destination is in the way.
fn in_the_way(why: Skip) -> Skip {
    match why {
        Skip::ContentDiffers => exists(CONTENT),
        Skip::SameFile => exists(ITSELF),
        Skip::OpenForWriting | Skip::KeeperOpenForWriting => exists("it is open for writing"),
        Skip::Changed | Skip::Gone | Skip::KeptFileChanged => exists(BUSY),
        other => other,
    }
}
