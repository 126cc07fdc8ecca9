//! Directories with everything below them, known by identity and not by any spelling of their
//! paths: the trees that `--reference` protects, and the directory that `move:` puts files into.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_fs::call::FailedCall;
use bc_fs::dirfd;
use bc_fs::dirfd::{deepest_existing, visit_ancestors};
use bc_fs::meta;
use bc_fs::path::split;
use bc_pool::{Cancel, WorkerPanic};
use bc_walk::{
    EntryId, Error, ErrorKind, FileKind, Identity, Listing, Metadata, Symlinks, WalkOptions,
    Workers, walk,
};
use rustix::io::Errno;

use crate::traces::Traces;

/// Files that a [survey](Subtrees::survey) recognises by themselves, beside all that lie in the
/// directories.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Files {
    /// The named files. Costs no call per file.
    #[default]
    Named,
    /// All of them, so that names elsewhere of the same files (hard links, followed links) are
    /// known even if the search leaves the names below the directories out.
    All,
}

/// Files and directories that were named, and everything below the directories.
#[derive(Debug, Default)]
pub struct Subtrees {
    tops: Vec<SubtreeTop>,
    dirs: HashSet<Identity>,
    files: HashSet<Identity>,
    /// Devices of the directories, each with the path of one directory on it.
    devs: HashMap<u64, Vec<u8>>,
    /// Treatment of links during the survey.
    symlinks: Symlinks,
    errors: Vec<Error>,
    /// Traces of the files, if they are to be recognised on other devices too.
    traces: Option<Traces>,
}

#[derive(Debug)]
struct SubtreeTop {
    path: Vec<u8>,
    id: Identity,
    /// Held open so that its inode number cannot be reused while identities are compared.
    fd: OwnedFd,
    kind: FileKind,
}

impl Subtrees {
    /// Opens the files and directories that the paths lead to, links followed as with any path that
    /// is named.
    ///
    /// # Errors
    /// For the first path that cannot be opened or is neither a directory nor a regular file.
    pub fn open(paths: impl IntoIterator<Item = Vec<u8>>) -> Result<Subtrees, Error> {
        let mut found = Subtrees::default();
        for path in paths {
            let top = SubtreeTop::open(path)?;
            match top.kind {
                FileKind::Dir => found.dirs.insert(top.id),
                _ => found.files.insert(top.id),
            };
            found.devs.insert(top.id.dev, top.directory().to_vec());
            found.tops.push(top);
        }
        Ok(found)
    }

    /// Returns true if the directory `dir` is one of them or lies below one, by the identity of its
    /// ancestors; views through other mounts are not considered.
    ///
    /// # Errors
    /// If the system refuses a look.
    pub fn contains(&self, dir: &[u8]) -> Result<bool, Error> {
        let failed = |failed: FailedCall| Error::new(dir, failed.op, failed.errno);
        let (existing, missing) = deepest_existing(dir).map_err(failed)?;
        let below = || visit_ancestors(&existing, |id, _| self.has_dir(id)).map_err(failed);
        Ok(missing == 0 && !self.is_empty() && below()?)
    }

    /// Finds the directories below, so that they are known wherever else they are mounted. No
    /// filter applies: entries that a search leaves out are protected as well. With
    /// [`Symlinks::Follow`] entries that links below lead to count as lying there.
    ///
    /// Directories that cannot be read are in [`errors`](Subtrees::errors).
    ///
    /// # Errors
    /// Only if a worker panics.
    pub fn survey(
        &mut self,
        symlinks: Symlinks,
        files: Files,
        workers: Workers,
        cancel: &Cancel,
    ) -> Result<(), WorkerPanic> {
        self.symlinks = symlinks;
        if self.open_dirs().next().is_none() {
            return Ok(());
        }
        let listing = self.list(files, workers, cancel)?;
        self.learn(&listing, files);
        self.errors.extend_from_slice(listing.errors());
        Ok(())
    }

    /// Recognises files by their states as well from here on, wherever else they appear: each that
    /// is known by itself ([`Files::All`]) takes some 50 bytes more.
    pub fn keep_traces(&mut self) {
        self.traces.get_or_insert_default();
    }

    /// The states of the files, if they are kept.
    pub(crate) fn traces(&self) -> Option<&Traces> {
        self.traces.as_ref()
    }

    /// Records the entries that a walk from the named paths has found, as a
    /// [survey](Subtrees::survey) would.
    pub(crate) fn learn(&mut self, listing: &Listing, files: Files) {
        for dir in (0..listing.dirs() as u32).map(bc_walk::DirId) {
            self.learn_dir(listing, dir);
        }
        if files == Files::All {
            self.files
                .extend(listing.ids().filter_map(|id| listing.identity(id)));
            if let Some(traces) = &mut self.traces {
                traces.learn(listing);
            }
        }
    }

    fn learn_dir(&mut self, listing: &Listing, dir: bc_walk::DirId) {
        let Some(id) = listing.dir_identity(dir) else {
            return;
        };
        self.dirs.insert(id);
        let path = || listing.dir_path(dir);
        self.devs.entry(id.dev).or_insert_with(path);
    }

    /// Lists everything below the directories, as a survey does.
    pub(crate) fn list(
        &self,
        files: Files,
        workers: Workers,
        cancel: &Cancel,
    ) -> Result<Listing, WorkerPanic> {
        let tops = self.tops.iter().filter(|top| top.kind == FileKind::Dir);
        let roots: Vec<OsString> = tops
            .map(|top| OsString::from_vec(top.path.clone()))
            .collect();
        let options = WalkOptions::default()
            .symlinks(self.symlinks)
            .metadata(match files {
                Files::Named => Metadata::None,
                Files::All => Metadata::Basic,
            });
        walk(&roots, &options, workers, cancel)
    }

    /// Proves that the paths still lead to the opened files. A search goes by the paths: entries
    /// that it found below another directory of the name would not be protected.
    ///
    /// # Errors
    /// For the first path that leads elsewhere or nowhere.
    pub fn check(&self) -> Result<(), Error> {
        for top in &self.tops {
            if SubtreeTop::open(top.path.clone())?.id != top.id {
                let path = top.path.clone();
                return Err(Error::of_kind(path, "open", ErrorKind::Changed));
            }
        }
        Ok(())
    }

    /// Keeps the named paths alone, which can be [checked](Subtrees::check).
    pub(crate) fn into_tops(self) -> Subtrees {
        Subtrees {
            tops: self.tops,
            ..Subtrees::default()
        }
    }

    /// Whether nothing was named.
    pub fn is_empty(&self) -> bool {
        self.tops.is_empty()
    }

    /// Adds the named paths to the roots of a search, except those already there under any name;
    /// returns the index of each.
    pub fn add_to_roots<P>(&self, roots: &mut Vec<P>) -> Vec<usize>
    where
        P: AsRef<Path> + From<OsString>,
    {
        if self.is_empty() {
            return Vec::new();
        }
        let identity = |root: &P| {
            let meta = std::fs::metadata(root.as_ref()).ok()?;
            let (dev, ino) = (meta.dev(), meta.ino());
            Some(Identity { dev, ino })
        };
        let mut known: Vec<Option<Identity>> = roots.iter().map(identity).collect();
        let mut indices = Vec::new();
        for top in &self.tops {
            let at = known.iter().position(|root| *root == Some(top.id));
            indices.push(at.unwrap_or_else(|| {
                roots.push(OsString::from_vec(top.path.clone()).into());
                known.push(Some(top.id));
                roots.len() - 1
            }));
        }
        indices
    }

    /// The paths as they were named, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.tops.iter().map(|top| top.path.as_slice())
    }

    /// Returns the errors of entries that the survey could not read.
    pub fn errors(&self) -> &[Error] {
        &self.errors
    }

    /// Returns true if this directory was named or found below a named one. One that was moved
    /// there later is found through its ancestors.
    pub fn has_dir(&self, id: Identity) -> bool {
        self.dirs.contains(&id)
    }

    /// All directories that are known.
    pub fn dirs(&self) -> impl Iterator<Item = Identity> + '_ {
        self.dirs.iter().copied()
    }

    /// Returns true if this file was named, or [found](Files::All).
    pub fn has_file(&self, id: Identity) -> bool {
        self.files.contains(&id)
    }

    /// The named directories, open.
    pub fn open_dirs(&self) -> impl Iterator<Item = &OwnedFd> {
        let dirs = self.tops.iter().filter(|top| top.kind == FileKind::Dir);
        dirs.map(|top| &top.fd)
    }

    /// The named files, open as places alone, each with its path.
    pub(crate) fn open_files(&self) -> impl Iterator<Item = (&[u8], &OwnedFd)> {
        let files = self.tops.iter().filter(|top| top.kind != FileKind::Dir);
        files.map(|top| (top.path.as_slice(), &top.fd))
    }

    /// Each device that was seen, with the path of a directory there.
    pub(crate) fn devs(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.devs.iter().map(|(dev, path)| (*dev, path.as_slice()))
    }

    /// Marks the entries of a listing that are, or lie in, one of these.
    pub(crate) fn mark(&self, listing: &Listing) -> Marks {
        if self.is_empty() {
            return Marks::default();
        }
        let mark = |dir| match listing.dir_identity(dir) {
            Some(id) => self.has_dir(id),
            // Rather too much is protected than too little.
            None => identity(listing, dir).is_none_or(|id| self.has_dir(id)),
        };
        Marks {
            dirs: (0..listing.dirs() as u32)
                .map(bc_walk::DirId)
                .map(mark)
                .collect(),
            files: self.files.clone(),
        }
    }
}

/// Returns the identity of the directory that holds a root which is a file.
fn identity(listing: &Listing, dir: bc_walk::DirId) -> Option<Identity> {
    let opened = listing.open_dir(dir).ok()?;
    Some(meta::stat(&opened).ok()?.id)
}

impl SubtreeTop {
    /// The directory itself, or the one that the file's path leads to.
    fn directory(&self) -> &[u8] {
        match self.kind {
            FileKind::Dir => &self.path,
            _ => split(&self.path).0,
        }
    }

    fn open(path: Vec<u8>) -> Result<SubtreeTop, Error> {
        let failed = |errno: Errno| Error::new(path.clone(), "open", errno);
        if path.is_empty() {
            return Err(failed(Errno::NOENT));
        }
        let opened = dirfd::open_named(&path).map_err(|why| failed(why.errno));
        let fd = opened?;
        let stat = meta::stat(&fd).map_err(|why| failed(why.errno))?;
        match stat.kind() {
            kind @ (FileKind::Dir | FileKind::File) => Ok(SubtreeTop {
                id: stat.id,
                path,
                fd,
                kind,
            }),
            _ => Err(Error::of_kind(path, "open", ErrorKind::NotRegular)),
        }
    }
}

/// The entries of one listing that lie in [`Subtrees`].
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// By directory of the listing: true if it is marked. Empty if nothing is marked.
    dirs: Vec<bool>,
    files: HashSet<Identity>,
}

impl Marks {
    /// Marks directories of a listing by number, and no files by themselves.
    pub(crate) fn of_dirs(dirs: Vec<bool>) -> Marks {
        Marks {
            dirs,
            files: HashSet::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.dirs.is_empty()
    }

    /// Returns true if the directory is marked.
    pub(crate) fn contains_dir(&self, dir: bc_walk::DirId) -> bool {
        self.dirs.get(dir.0 as usize).is_some_and(|marked| *marked)
    }

    /// Returns true if the entry or the directory that it is in is marked.
    pub(crate) fn contains(&self, listing: &Listing, entry: EntryId) -> bool {
        self.contains_dir(listing.dir(entry))
            || !self.files.is_empty()
                && listing
                    .identity(entry)
                    .is_some_and(|id| self.files.contains(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_testkit::TestTree;
    use std::os::unix::ffi::OsStrExt;

    fn bytes(tree: &TestTree, path: &str) -> Vec<u8> {
        tree.join(path).as_os_str().as_bytes().to_vec()
    }

    fn marked(tree: &TestTree, references: &[&str], files: Files, paths: &[&str]) -> Vec<String> {
        let named = references.iter().map(|path| bytes(tree, path));
        let mut found = Subtrees::open(named).unwrap();
        let cancel = Cancel::new();
        found
            .survey(Symlinks::Skip, files, 1.into(), &cancel)
            .unwrap();
        let roots: Vec<OsString> = paths
            .iter()
            .map(|path| OsString::from_vec(bytes(tree, path)))
            .collect();
        let options = WalkOptions::default().metadata(Metadata::Basic);
        let listing = walk(&roots, &options, 1, &cancel).unwrap();
        let marks = found.mark(&listing);
        let below = |path: Vec<u8>| path[tree.path().as_os_str().len() + 1..].to_vec();
        listing
            .ids()
            .filter(|id| marks.contains(&listing, *id))
            .map(|id| String::from_utf8(below(listing.path(id))).unwrap())
            .collect()
    }

    #[test]
    fn spellings_do_not_matter() {
        let tree = TestTree::new();
        tree.write("d/a", "1").write("d/sub/b", "2").write("e", "3");
        tree.symlink("d", "link").symlink("d/sub", "into");
        for reference in ["d", "d/", "./d/.", "d/sub/..", "link", "link/"] {
            for files in [Files::Named, Files::All] {
                let marked = |paths: &[&str]| marked(&tree, &[reference], files, paths);
                assert_eq!(marked(&["d", "e"]), ["d/a", "d/sub/b"]);
                assert_eq!(marked(&["d/sub", "e"]), ["d/sub/b"]);
                assert_eq!(marked(&["into"]), ["into/b"]);
                assert_eq!(marked(&["d/a", "e"]), ["d/a"]);
                assert_eq!(marked(&["link/sub/b"]), ["link/sub/b"]);
                assert_eq!(marked(&["e"]), [""; 0]);
            }
        }
    }

    #[test]
    fn files_are_known_by_themselves_and_by_other_names() {
        let tree = TestTree::new();
        tree.write("d/a", "1").write("e", "3");
        tree.hard_link("d/a", "elsewhere");
        assert_eq!(marked(&tree, &["e"], Files::Named, &["d", "e"]), ["e"]);
        assert_eq!(
            marked(&tree, &["d/a"], Files::Named, &["d", "elsewhere"]),
            ["d/a", "elsewhere"]
        );
        assert_eq!(
            marked(&tree, &["d"], Files::All, &["elsewhere"]),
            ["elsewhere"]
        );
    }

    #[test]
    fn paths_that_lead_elsewhere_meanwhile_are_noticed() {
        let tree = TestTree::new();
        tree.dir("d").dir("e").write("f", "").symlink("d", "link");
        let named = ["d", "e", "f", "link"].map(|path| bytes(&tree, path));
        let found = Subtrees::open(named).unwrap();
        found.check().unwrap();
        tree.remove("link").symlink("e", "link");
        assert!(found.check().unwrap_err().to_string().contains("link"));
        std::fs::rename(tree.join("e"), tree.join("gone")).unwrap();
        assert!(found.check().unwrap_err().to_string().contains("/e: open"));
    }

    #[test]
    fn what_cannot_be_opened_is_an_error() {
        let tree = TestTree::new();
        tree.fifo("fifo").write("f", "");
        for (path, reason) in [
            ("none", "No such file"),
            ("fifo", "not a regular file"),
            ("f/", "Not a directory"),
        ] {
            let error = Subtrees::open([bytes(&tree, path)])
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(Subtrees::open([Vec::new()]).is_err());
    }
}
