//! An existing target: a file that has the destination's name already and is the copy that a move
//! would make: its run was killed before the original went. It counts as made if a journal, or the
//! temporary name that it has as well, says that it is the copy of this very file: one that is
//! merely equal may be all that is left of another. It gets every proof that a fresh copy gets and
//! those that a fresh copy does not need: it may be the original itself under another mount, or
//! another process may be using it. [`Copies`] knows those that a run may meet.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use bc_edit::content;
use bc_edit::metadata::FileMetadata;
use bc_edit::names::prune::Mark;
use bc_find::Subtrees;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::{join, split};
use bc_pool::Cancel;
use bc_walk::{FileKind, Identity};

use crate::check::compare::{check_distinct, compare_while};
use crate::check::dir::Dir;
use crate::check::meta::difference;
use crate::check::open_file::{self, OpenFile, Watched};
use crate::check::pace::ReadPace;
use crate::journal;
use crate::journal::record::CopyOrigin;
use crate::leftovers;
use crate::options::{Force, OnMetadataDiff, PruneOptions};
use crate::skip::Skip;
use crate::step::Action;

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
        pace: ReadPace<'_>,
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
            let apart =
                check_distinct(target, &held).and_then(|()| check_distinct(self.kept_file, &held));
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
        compare_while(&target.file, &held.file, size, pace, || held.check_lease())
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

/// Another name of the file that is moved, where it has arrived already.
pub(crate) struct Arrived {
    pub(crate) dir: Rc<Dir>,
    pub(crate) name: CString,
    pub(crate) id: Identity,
}

/// The copies that earlier runs were killed over.
pub(crate) struct Unfinished {
    /// Copies by the path in a journal: the mark of each, and that of its original.
    copies: HashMap<Vec<u8>, (Mark, Mark)>,
    /// Files with several names: the path where one arrived, and the copy's mark there.
    linked: HashMap<Mark, (Vec<u8>, Mark)>,
    /// The directory that files are moved to, as given and as journals have it.
    given: Vec<u8>,
    real: Option<Vec<u8>>,
}

impl Unfinished {
    /// The copy of `target` that is at `to`.
    fn at(&self, to: &[u8], target: &OpenFile) -> Option<Mark> {
        let below = to.strip_prefix(self.given.as_slice())?;
        let path = join(self.real.as_ref()?, below);
        let (copy, original) = self.copies.get(&path)?;
        original.proves(&target.mark()).then_some(*copy)
    }
}

/// Copies that exist already, as far as a run knows them.
#[derive(Default)]
pub(crate) struct Copies {
    /// Copies that earlier runs were killed over, once the journals were read.
    unfinished: Option<Unfinished>,
    /// Copies that were found to have their temporary names too, after the file that each was made
    /// of.
    pub(crate) traces: HashSet<(Mark, Identity)>,
    /// Files that this run has placed, each with the file that it was before: a copy is another
    /// one.
    pub(crate) placed: HashMap<Identity, Identity>,
    /// Paths that files and directories were moved to, or would be.
    pub(crate) taken: HashSet<Vec<u8>>,
}

impl Copies {
    /// Returns the conditions under which a file named `to` counts as a copy of `target`.
    pub(crate) fn acceptable<'a>(
        &'a self,
        options: &'a PruneOptions,
        kept_file: &'a OpenFile,
        target: &OpenFile,
        to: &[u8],
    ) -> Acceptable<'a> {
        let unfinished = self.unfinished.as_ref();
        Acceptable {
            known: unfinished.and_then(|known| known.at(to, target)),
            traces: &self.traces,
            kept_file,
            references: &options.references,
            placed: &self.placed,
            force: options.force,
            on_metadata_diff: options.on_metadata_diff,
        }
    }

    /// Reads from the journals of earlier runs the copies that these were killed over, once.
    pub(crate) fn read_journals(&mut self, options: &PruneOptions, cancel: &Cancel) {
        let Action::Move(given) = &options.action else {
            return;
        };
        self.unfinished.get_or_insert_with(|| {
            let (copies, linked) = journal::earlier_copies(&options.earlier, cancel);
            Unfinished {
                copies,
                linked,
                given: given.clone(),
                real: dirfd::open_root(given)
                    .ok()
                    .and_then(|dir| dirfd::real_path(&dir)),
            }
        });
    }

    /// The copy that an earlier run made of `target` under another one of its names
    /// before it was killed, if that has all that the file has.
    pub(crate) fn earlier_copy(&self, target: &OpenFile, to_dir: &OwnedFd) -> Option<Arrived> {
        let mark = target.mark();
        mark.born_ns?;
        let traced = self.traces.iter().find(|(of, _)| *of == mark);
        let traced = traced.and_then(|(_, copy)| {
            let name = leftovers::with_number(to_dir, copy.ino)?;
            OpenFile::find(to_dir, &name, b"").ok()
        });
        let recorded = || {
            let (path, copy) = self.unfinished.as_ref()?.linked.get(&mark)?;
            let (parent, name) = split(path);
            let root = dirfd::open_root(b"/").ok()?;
            let dir = dirfd::open_below(root, parent.strip_prefix(b"/")?).ok()?;
            let held = OpenFile::find(&dir, &dirfd::name(name).ok()?, path).ok()?;
            copy.proves(&held.mark()).then_some(held)
        };
        let held = traced.or_else(recorded)?;
        let (own, there) = (target.metadata().ok()?, held.metadata().ok()?);
        let same = difference(&own, &there).is_none() && own.mtime_ns == there.mtime_ns;
        let (dir, name, id) = (held.dir, held.name, held.stat.id);
        same.then_some(Arrived { dir, name, id })
    }
}
