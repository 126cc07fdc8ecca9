//! The search for what is unique as a job.

use std::path::PathBuf;

use bc_fs::PathError;
use bc_hash::HashProgress;
use bc_walk::job::{Error, ErrorKind, Means, Setting, missing, path_of, require};
use bc_walk::{Entries, FileKind, Globs, Listing, Metadata, Skipped, Symlinks, WalkOptions};

use super::{Presence, Sides, Unique, UniqueOptions, covered, unique};
use crate::job::bytes;
use crate::manifests::Manifest;
use crate::scan::ScanProgress;
use crate::{Files, Search, Subtrees};

impl Search {
    /// Finds the contents of the paths that are nowhere else: in none of the
    /// [references](Search::references), or without any, in no other file of the paths.
    ///
    /// Empty files are not listed: they have no content that could be lost but their names.
    ///
    /// It answers "may I wipe this card?", and errs on one side only: a content that is not proven
    /// to be elsewhere counts as being nowhere else, and a file of an archive that may be the tree's
    /// own proves nothing. So an archive may contain the trees. One that lies in a tree, or is one,
    /// counts for nothing, and the result is [incomplete](FoundUnique::own_archives).
    ///
    /// The walk's options choose among the trees' files; in archives every file counts, except
    /// hidden files where these are left out, and files that ignore files list where these are
    /// honoured. The comparison is that of `options`; the search's own, and its cache, play no part.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # for (name, text) in [("card/1.jpg", "old"), ("card/2.jpg", "new"), ("archive/x", "old")] {
    /// #     let path = dir.path().join(name);
    /// #     std::fs::create_dir_all(path.parent().unwrap())?;
    /// #     std::fs::write(path, text)?;
    /// # }
    /// # let (card, archive) = (dir.path().join("card"), dir.path().join("archive"));
    /// use bc_find::Search;
    /// use bc_find::unique::UniqueOptions;
    /// use bc_walk::job::Means;
    ///
    /// let search = Search::new([&card]).references([&archive]);
    /// let found = search.unique(&UniqueOptions::new(), &Means::new())?;
    /// for content in found.nowhere() {
    ///     println!("only here: {}", content.paths[0].display());
    /// }
    /// assert_eq!(found.nowhere().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If no path is given, one is not there or holds no file at all (see
    /// [`force`](UniqueOptions::force)); if an archive is not there, cannot be opened or is neither
    /// a directory nor a manifest; if it was cancelled, as half an answer is none; if a worker
    /// panicked.
    pub fn unique(&self, options: &UniqueOptions, means: &Means<'_>) -> Result<FoundUnique, Error> {
        let progress = ScanProgress::default();
        means.run(
            || progress.now(),
            || self.found_unique(options, means, &progress),
        )
    }

    fn found_unique(
        &self,
        options: &UniqueOptions,
        means: &Means<'_>,
        progress: &ScanProgress,
    ) -> Result<FoundUnique, Error> {
        require(self.paths.iter().chain(&self.references))?;
        let cancel = means.cancelled_by();
        let [walk, of_archives] = self.walks();
        let before = self.hidden(&walk);
        let mut archives = Archives::open(self, means)?;
        if options.trust_lists {
            archives.manifests.iter_mut().for_each(Manifest::trust);
        }
        let own = self.own(means)?;
        let own_archives = archives.in_trees(&own)?;
        let paths = walk.list(&self.paths, means)?;
        if !options.force {
            self.refuse_nothing(&paths)?;
        }
        let references = match archives.directories.is_empty() {
            true => bc_walk::walk(&archives.directories, &of_archives, 1, cancel)?,
            false => of_archives.list(&archives.directories, means)?,
        };
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
        let options = UniqueOptions {
            scan: options.scan.clone().with(means),
            ..*options
        };
        let mut found = unique(sides, &options, cancel, progress, &HashProgress::default())?;
        let again = walk.clone().metadata(Metadata::None);
        let again = again.list(&self.paths, means)?;
        // Contents that were not read would be reported as being nowhere else.
        if found.cancelled || again.is_cancelled() {
            return Err(Error::cancelled());
        }
        found.look_again(&again, means.workers().usual())?;
        errors.extend(found.errors.iter().map(PathError::from));
        let covered = points([before, self.hidden(&walk)], &mut errors);
        Ok(FoundUnique {
            contents: contents(&found, &self.references),
            errors,
            not_files: not_files(&found),
            unseen: found.unseen.total() - found.unseen.repeated - found.unseen.excluded,
            skipped: found.unseen.clone(),
            not_counted: found.not_counted,
            own_archives,
            covered: covered.iter().map(|point| path_of(point)).collect(),
        })
    }

    /// Returns the walks of the trees and of the archives. Filters choose among the trees' files; a
    /// reference copy in an archive may lie at any depth and have any name, size and time.
    fn walks(&self) -> [WalkOptions; 2] {
        let walk = self.walk.clone().metadata(Metadata::Basic);
        let of_archives = walk
            .clone()
            .include(Globs::default())
            .max_depth(None)
            .min_size(0)
            .max_size(None)
            .newer(None)
            .older(None);
        [walk.entries(Entries::All), of_archives]
    }

    /// Returns the places in the trees where something is mounted now.
    fn hidden(&self, walk: &WalkOptions) -> Result<Vec<Vec<u8>>, bc_walk::Error> {
        let paths = self.paths.iter();
        let paths = paths.map(|path| path.as_os_str().as_encoded_bytes());
        covered(paths, &walk.exclude)
    }

    /// Opens the trees, to recognise their files by identity; also files that the filters leave
    /// out, as those are the trees' own by whichever path an archive leads to them.
    fn own(&self, means: &Means<'_>) -> Result<Subtrees, Error> {
        let paths = self.paths.iter().map(|path| bytes(path));
        let opens = |path: &Vec<u8>| Subtrees::open([path.clone()]).is_ok();
        let mut own = Subtrees::open(paths.filter(opens))?;
        let symlinks = self.walk.symlinks;
        if self.walk.leaves_out() || symlinks != Symlinks::Skip {
            own.keep_traces();
            own.survey(symlinks, Files::All, means.workers(), means.cancelled_by())?;
        }
        Ok(own)
    }

    /// Refuses a path without any file: a disk that is not mounted looks like that, and the answer
    /// would be that all of it is elsewhere.
    fn refuse_nothing(&self, paths: &Listing) -> Result<(), Error> {
        let skipped = paths.skipped();
        let is_cut = paths.is_cancelled() || skipped.total() > 0 || !paths.errors().is_empty();
        if is_cut || self.references.is_empty() {
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

/// Archives by kind: directories and manifests.
#[derive(Default)]
struct Archives {
    /// Directories, and the index of each among the references.
    directories: Vec<PathBuf>,
    directory_numbers: Vec<usize>,
    /// Open handles of the directories.
    opened: Subtrees,
    /// Manifests, and the index of each among the references.
    manifests: Vec<Manifest>,
    manifest_numbers: Vec<usize>,
}

impl Archives {
    /// Opens directories and manifests; anything else is an error. No manifest may be of the paths.
    fn open(search: &Search, means: &Means<'_>) -> Result<Archives, Error> {
        let mut found = Archives::default();
        for (number, path) in search.references.iter().enumerate() {
            if !path.is_file() {
                found.directories.push(path.clone());
                found.directory_numbers.push(number);
                continue;
            }
            let Some(mut manifest) = Manifest::open(&bytes(path), means.cancelled_by())? else {
                let text = "neither a directory nor a manifest";
                return Err(Error::at(ErrorKind::Usage, path, text));
            };
            let roots = search.paths.iter();
            manifest.compare_home(roots.map(|path| path.as_os_str().as_encoded_bytes()))?;
            found.manifests.push(manifest);
            found.manifest_numbers.push(number);
        }
        found.opened = Subtrees::open(found.directories.iter().map(|path| bytes(path)))?;
        Ok(found)
    }

    /// Returns the archives that lie in the trees, by any link or mount.
    fn in_trees(&self, own: &Subtrees) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for archive in &self.directories {
            if own.contains(&bytes(archive))? {
                found.push(archive.clone());
            }
        }
        Ok(found)
    }
}

fn contents(found: &Unique, archives: &[PathBuf]) -> Vec<UniqueContent> {
    let archive = |at: usize| archives.get(at).cloned().unwrap_or_default();
    let path = |entry: &bc_walk::EntryId| path_of(&found.listing.path(*entry));
    let contents = found.contents().map(|content| UniqueContent {
        size: content.size,
        paths: content.names.iter().map(path).collect(),
        place: match content.presence {
            Presence::Nowhere => ContentPlace::Nowhere,
            Presence::Directory { reference } => ContentPlace::Archive(archive(reference)),
            Presence::Manifest { reference, .. } => ContentPlace::Manifest(archive(reference)),
            Presence::Another => ContentPlace::Another,
            _ => ContentPlace::Unknown,
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
    /// Returns the contents that are nowhere else: see [`ContentPlace::Nowhere`]. Contents whose place is
    /// unknown, because a file could not be read, are not among them: see [`ContentPlace::Unknown`].
    pub fn nowhere(&self) -> impl Iterator<Item = &UniqueContent> {
        let contents = self.contents.iter();
        contents.filter(|content| content.place == ContentPlace::Nowhere)
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
            matches!(
                content.place,
                ContentPlace::Archive(_) | ContentPlace::Manifest(_)
            )
        };
        self.is_complete() && self.contents.iter().all(is_safe)
    }

    /// Returns the result if nothing is missing.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](ErrorKind::Incomplete), with the first thing that is
    /// missing.
    pub fn complete(self) -> Result<FoundUnique, Error> {
        if let Some(error) = missing(&self.errors, false) {
            return Err(error);
        }
        if let Some(archive) = self.own_archives.first() {
            let text = "is inside a PATH: its files are not copies";
            return Err(Error::at(ErrorKind::Incomplete, archive, text));
        }
        let text = match (self.unseen, self.covered.first()) {
            (0, None) => return Ok(self),
            (0, Some(point)) => {
                let text = "something is mounted here; files that it covers cannot be examined";
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
    pub place: ContentPlace,
}

/// The place where else a content is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ContentPlace {
    /// Nowhere. If no other file is as long, its size alone has proven that, and it was not opened:
    /// only reading it, by a copy say, shows if it can be read at all; its dry
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
