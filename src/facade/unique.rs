//! `unique`: contents that only some trees have.

use std::path::{Path, PathBuf};

use bc_find::manifests::Manifest;
use bc_find::scan::{Equality, ScanProgress};
use bc_find::unique::{Presence, Sides, Unique, UniqueOptions, covered, unique as search};
use bc_find::{Files, Subtrees};
use bc_fs::PathError;
use bc_hash::HashProgress;
use bc_prune::lies_in;
use bc_walk::{Entries, FileKind, Globs, Listing, Metadata, Skipped, WalkOptions};

use super::Setting;
use super::duplicates::now;
use super::error::{Error, ErrorKind, path_of};
use super::filter::{Filter, filters};
use super::outcome::missing;
use super::references::{References, bytes, paths_of};
use super::run::{Run, runs};
use super::walk::{list, refuse_missing, refuse_nothing, roots};

/// Finds the contents of these trees that are nowhere else: in none of the
/// [`archives`](UniqueJob::archives), or without any, in no other file of the trees.
///
/// Empty files are not listed: they have no content that could be lost but their names.
///
/// It answers "may I wipe this card?", and errs on one side only: a content that is not proven to
/// be elsewhere counts as being nowhere else, and a file of an archive that may be the tree's own
/// proves nothing. So an archive may contain the trees. One that lies in a tree, or is one, counts
/// for nothing, and the result is [incomplete](FoundUnique::own_archives).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # for (name, text) in [("card/1.jpg", "old"), ("card/2.jpg", "new"), ("archive/x", "old")] {
/// #     let path = dir.path().join(name);
/// #     std::fs::create_dir_all(path.parent().unwrap())?;
/// #     std::fs::write(path, text)?;
/// # }
/// # let (card, archive) = (dir.path().join("card"), dir.path().join("archive"));
/// let found = bit_crafts::unique([&card]).archives([&archive]).run()?;
/// for content in found.nowhere() {
///     println!("only here: {}", content.paths[0].display());
/// }
/// assert_eq!(found.nowhere().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn unique<'a, P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> UniqueJob<'a> {
    UniqueJob {
        paths: roots(paths),
        archives: Vec::new(),
        equality: Equality::Digest,
        trusts_lists: false,
        force: false,
        filter: Filter::default(),
        run: Run::default(),
    }
}

/// Options of a [`unique`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct UniqueJob<'a> {
    paths: Vec<PathBuf>,
    archives: Vec<PathBuf>,
    equality: Equality,
    trusts_lists: bool,
    force: bool,
    filter: Filter,
    run: Run<'a>,
}

runs!(UniqueJob);
filters!(UniqueJob);

impl UniqueJob<'_> {
    /// Adds archives, where a content may be too: directories, or manifests of disks that are
    /// offline.
    pub fn archives<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.archives.extend(roots(paths));
        self
    }

    /// Accepts lists of unknown origin. Those of `sha256sum`, say, do not record their tree:
    /// without this, a list that has the names of the trees' own files counts for nothing there, as
    /// it was probably made from them.
    pub fn trust_lists(mut self) -> Self {
        self.trusts_lists = true;
        self
    }

    /// Compares files byte for byte, and not only by BLAKE3.
    pub fn verify_bytes(mut self) -> Self {
        self.equality = Equality::Bytes;
        self
    }

    /// Accepts trees without any file: by default they are refused, because a disk that is not
    /// mounted looks like that.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Runs the job. The filter is for the trees; in archives every file counts, except hidden
    /// files where these are left out, and files that ignore files list where these are honoured.
    ///
    /// # Errors
    /// If no path is given, one is not there or holds no file at all (see [`force`](UniqueJob::force)) or
    /// a pattern is wrong; if an archive is not there or cannot be opened; if it was cancelled, as half an
    /// answer is none; if a worker panicked.
    pub fn run(mut self) -> Result<FoundUnique, Error> {
        Run::begin()?;
        let progress = ScanProgress::default();
        let mut report = self.run.report.take();
        let found = Run::watched(&mut report, || now(&progress), || self.search(&progress));
        Run::came_to(&self.run.cancel, found)
    }

    fn search(&self, progress: &ScanProgress) -> Result<FoundUnique, Error> {
        refuse_nothing(&self.paths)?;
        refuse_missing(self.paths.iter().chain(&self.archives))?;
        let (cancel, run) = (&self.run.cancel, &self.run);
        let [walk, of_archives] = self.walks()?;
        let before = self.hidden(&walk);
        let mut archives = References::open(&self.archives, &self.paths, cancel)?;
        if self.trusts_lists {
            archives.manifests.iter_mut().for_each(Manifest::trust);
        }
        let own = self.own()?;
        let own_archives = self.own_archives(&archives.directories, &own)?;
        let paths = list(&self.paths, &walk, run)?;
        self.refuse_nothing(&paths)?;
        let references = list(&archives.directories, &of_archives, run)?;
        archives.opened.check()?;
        own.check()?;
        let mut errors: Vec<_> = paths.errors().iter().map(PathError::from).collect();
        errors.extend(references.errors().iter().map(PathError::from));
        let sides = Sides {
            paths,
            path_roots: self.paths.len(),
            own,
            references,
            reference_roots: &archives.directory_numbers,
            manifests: &mut archives.manifests,
            manifest_numbers: &archives.manifest_numbers,
        };
        let options = self.options();
        let mut found = search(sides, &options, cancel, progress, &HashProgress::default())?;
        let names = walk.clone().metadata(Metadata::None);
        let again = list(&self.paths, &names, run)?;
        // Contents that were not read would be reported as being nowhere else.
        if found.cancelled || again.is_cancelled() {
            return Err(Error::cancelled());
        }
        found.look_again(&again, run.workers())?;
        errors.extend(found.errors.iter().map(PathError::from));
        let covered = points([before, self.hidden(&walk)], &mut errors);
        Ok(FoundUnique {
            contents: contents(&found, &self.archives),
            errors,
            not_files: not_files(&found),
            unseen: found.unseen.total() - found.unseen.repeated - found.unseen.excluded,
            skipped: found.unseen.clone(),
            not_counted: found.not_counted,
            own_archives,
            covered: paths_of(covered),
        })
    }

    /// Returns the walks of the trees and of the archives. The filter chooses among the trees'
    /// files; a reference copy in an archive may lie at any depth and have any name and size.
    fn walks(&self) -> Result<[WalkOptions; 2], Error> {
        let mut walk = self.filter.to_walk(Metadata::Basic)?;
        let of_archives = walk
            .clone()
            .include(Globs::default())
            .max_depth(None)
            .min_size(0)
            .max_size(None);
        walk.entries = Entries::All;
        Ok([walk, of_archives])
    }

    fn options(&self) -> UniqueOptions {
        let mut options = UniqueOptions::new();
        options.scan.equality = self.equality;
        options.scan.workers = self.run.workers();
        options.scan.read = self.run.reading();
        options.scan.start = self.run.start();
        options
    }

    /// Returns the places in the trees where something is mounted now.
    fn hidden(&self, walk: &WalkOptions) -> Result<Vec<Vec<u8>>, bc_walk::Error> {
        let paths = self
            .paths
            .iter()
            .map(|path| path.as_os_str().as_encoded_bytes());
        covered(paths, &walk.exclude)
    }

    /// Opens the trees, to recognise their files by identity; also files that the filter leaves
    /// out, as those are the trees' own by whichever path an archive leads to them.
    fn own(&self) -> Result<Subtrees, Error> {
        let paths = self.paths.iter().map(|path| bytes(path));
        let opens = |path: &Vec<u8>| Subtrees::open([path.clone()]).is_ok();
        let mut own = Subtrees::open(paths.filter(opens))?;
        if self.filter.leaves_out() || self.filter.options.symlinks != bc_walk::Symlinks::Skip {
            own.keep_traces();
            let symlinks = self.filter.options.symlinks;
            own.survey(symlinks, Files::All, self.run.walkers(), &self.run.cancel)?;
        }
        Ok(own)
    }

    /// Returns the archives that lie in the trees, by any link or mount.
    fn own_archives(&self, archives: &[PathBuf], own: &Subtrees) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for archive in archives {
            if lies_in(&bytes(archive), own)? {
                found.push(archive.clone());
            }
        }
        Ok(found)
    }

    /// Refuses a path without any file: a disk that is not mounted looks like that, and the answer
    /// would be that all of it is elsewhere.
    fn refuse_nothing(&self, paths: &Listing) -> Result<(), Error> {
        let skipped = paths.skipped();
        let is_cut = paths.is_cancelled() || skipped.total() > 0 || !paths.errors().is_empty();
        if is_cut || self.force || self.archives.is_empty() {
            return Ok(());
        }
        let mut filled = vec![false; self.paths.len()];
        for entry in paths.ids() {
            filled[paths.root(entry)] |= paths.kind(entry) == FileKind::File;
        }
        match self.paths.iter().zip(filled).find(|(_, filled)| !filled) {
            None => Ok(()),
            Some((path, _)) => {
                let text = "no files at all: is it mounted?";
                let error = Error::at(ErrorKind::Refused, path, text);
                Err(error.unless(Some(Setting::Force)))
            }
        }
    }
}

fn contents(found: &Unique, archives: &[PathBuf]) -> Vec<UniqueContent> {
    let archive = |at: usize| archives.get(at).cloned().unwrap_or_default();
    let path = |entry: &bc_walk::EntryId| path_of(&found.listing.path(*entry));
    let contents = found.contents().map(|content| UniqueContent {
        size: content.size,
        paths: content.names.iter().map(path).collect(),
        place: match content.presence {
            Presence::Nowhere => Place::Nowhere,
            Presence::Directory { reference } => Place::Archive(archive(reference)),
            Presence::Manifest { reference, .. } => Place::Manifest(archive(reference)),
            Presence::Another => Place::Another,
            _ => Place::Unknown,
        },
    });
    contents.collect()
}

/// Returns the points that any of the looks found, each once; a path that could not be looked at is
/// an error.
fn points(
    looks: [Result<Vec<Vec<u8>>, bc_walk::Error>; 2],
    errors: &mut Vec<PathError>,
) -> Vec<Vec<u8>> {
    let mut points = Vec::new();
    for look in looks {
        match look {
            Ok(found) => points.extend(found),
            Err(error) => errors.push(PathError::from(&error)),
        }
    }
    points.sort();
    points.dedup();
    points
}

/// Lists the trees' entries that are neither files nor directories.
fn not_files(found: &Unique) -> Vec<NotFile> {
    let own = found.listing.ids().take(found.own_entries);
    let others = own.filter_map(|entry| match found.listing.kind(entry) {
        FileKind::File | FileKind::Dir => None,
        kind => Some(NotFile {
            path: path_of(&found.listing.path(entry)),
            kind,
        }),
    });
    others.collect()
}

/// The contents of the trees, and the place where else each is.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FoundUnique {
    /// Every content of the trees but the empty one, in order of its first path.
    pub contents: Vec<UniqueContent>,
    /// Paths that could not be read, or changed meanwhile.
    pub errors: Vec<PathError>,
    /// Symbolic links, FIFOs, sockets and devices of the trees, in order of their paths. They have
    /// no content that could be compared, so [`is_complete`](FoundUnique::is_complete) and
    /// [`all_is_elsewhere`](FoundUnique::all_is_elsewhere) ignore them: the target of a link is
    /// lost with it. A link that was followed is not among them, but its target's content is.
    pub not_files: Vec<NotFile>,
    /// Entries of the trees that were not looked at: left out by the filter (but for those that are
    /// excluded), or on other file systems. [`not_files`](FoundUnique::not_files) do not count.
    pub unseen: u64,
    /// Numbers of skipped entries by reason, including those that were excluded or met again.
    pub skipped: Skipped,
    /// Files of archives, and entries of manifests, that have a content of the trees and count for
    /// nothing, because they may be the trees' own files by another path: files that lie in a tree,
    /// and entries of a manifest that was taken of one. More than 0 is no failure; it explains why
    /// a content is nowhere else although an archive seems to have a copy.
    pub not_counted: u64,
    /// Archives that lie in one of the trees, or are one, by any path: a mistake, as all their
    /// files are the trees' own, and no copies.
    pub own_archives: Vec<PathBuf>,
    /// Places in the trees where something is mounted: the files below it are covered and cannot be
    /// looked at.
    pub covered: Vec<PathBuf>,
}

impl FoundUnique {
    /// Returns the contents that are nowhere else: see [`Place::Nowhere`]. Contents whose place is
    /// unknown, because a file could not be read, are not among them: see [`Place::Unknown`].
    pub fn nowhere(&self) -> impl Iterator<Item = &UniqueContent> {
        let contents = self.contents.iter();
        contents.filter(|content| content.place == Place::Nowhere)
    }

    /// Returns true if the trees were seen completely, everything could be read, and every archive
    /// could be one.
    pub fn is_complete(&self) -> bool {
        let is_whole = self.errors.is_empty() && self.unseen == 0;
        is_whole && self.covered.is_empty() && self.own_archives.is_empty()
    }

    /// Returns true if the trees can go: they were seen completely, and each content is elsewhere.
    pub fn all_is_elsewhere(&self) -> bool {
        let is_safe = |content: &UniqueContent| {
            matches!(content.place, Place::Archive(_) | Place::Manifest(_))
        };
        self.is_complete() && self.contents.iter().all(is_safe)
    }

    /// Returns the result if nothing is missing.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](crate::ErrorKind::Incomplete), with the first thing that is
    /// missing.
    pub fn complete(self) -> Result<FoundUnique, Error> {
        if let Some(error) = missing(&self.errors, false) {
            return Err(error);
        }
        if let Some(archive) = self.own_archives.first() {
            let text = "lies in what is asked about: what it has is no copy of that";
            return Err(Error::at(ErrorKind::Incomplete, archive, text));
        }
        let text = match (self.unseen, self.covered.first()) {
            (0, None) => return Ok(self),
            (0, Some(point)) => {
                let text = "something is mounted here; what it covers cannot be looked at";
                return Err(Error::at(ErrorKind::Incomplete, point, text));
            }
            (count, _) => format!("{count} entries were not looked at"),
        };
        Err(Error::incomplete(text, None))
    }
}

/// An entry of the trees that has no content.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NotFile {
    /// The path: as it was named, or below a directory as that was named.
    pub path: PathBuf,
    /// Kind of the entry.
    pub kind: FileKind,
}

/// A content of the trees.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct UniqueContent {
    /// Size in bytes.
    pub size: u64,
    /// Paths of all its names in the trees, in order; at least one.
    pub paths: Vec<PathBuf>,
    /// The place where else it is.
    pub place: Place,
}

/// The place where else a content is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Place {
    /// Nowhere. If no other file is as long, its size alone has proven that, and it was not opened:
    /// only reading it, by a [`copy`](crate::copy()) say, shows if it can be read at all; its dry
    /// run opens nothing either.
    Nowhere,
    /// In a file of this archive, a directory.
    Archive(PathBuf),
    /// In this archive, a manifest.
    Manifest(PathBuf),
    /// Without archives: in another file of the trees.
    Another,
    /// Unknown: another file is as long, and one of the two could not be read, or changed
    /// meanwhile. [`FoundUnique::errors`] has the reason.
    Unknown,
}
