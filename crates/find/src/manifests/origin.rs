//! Original location of the files of a manifest's entries: entries of the very files in question
//! are no reference copies.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::split;
use bc_walk::{FileKind, FileStat, Identity};

use super::Manifest;
use super::entries::ReferenceCopy;
use super::systems::Systems;
use crate::aliases::Aliases;
use crate::subtrees::Subtrees;

/// Candidates for the location of a manifest's files.
pub(super) struct ManifestOrigin<'m, 't> {
    /// File systems recorded in an integrity manifest.
    systems: Option<Systems>,
    /// Directories that the paths may be relative to.
    bases: Vec<PathBuf>,
    /// For each base the directory of the last path below it: lists go from directory to directory.
    last: Vec<Option<Parent>>,
    trees: &'t Subtrees,
    aliases: &'m mut Aliases<'t>,
}

/// A directory as paths name it, and the directory that the name leads to; `None` if there is none.
struct Parent {
    path: Vec<u8>,
    dir: Option<(OwnedFd, Identity)>,
}

impl Parent {
    fn open(path: &[u8]) -> Parent {
        let dir = dirfd::open_root(path).ok();
        let dir = dir.and_then(|dir| meta::stat(&dir).ok().map(|stat| (dir, stat.id)));
        Parent {
            path: path.to_vec(),
            dir,
        }
    }
}

impl<'m, 't> ManifestOrigin<'m, 't> {
    pub(super) fn new(
        manifest: &Manifest,
        systems: Systems,
        trees: &'t Subtrees,
        aliases: &'m mut Aliases<'t>,
    ) -> ManifestOrigin<'m, 't> {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let (systems, bases) = match &manifest.header {
            Some(header) => {
                let root = header.root.as_deref().map(path);
                (Some(systems), root.into_iter().collect())
            }
            // A list does not say where it was made: the files that its paths lead to, from the
            // working directory, from beside the list, or from above the trees in question, may be
            // those that it was made of.
            None => {
                let beside = path(split(&manifest.path).0);
                let mut bases = vec![PathBuf::new(), beside];
                bases.extend(systems.base().map(Path::to_owned));
                // Where the system does not tell a place, names decide.
                let files = trees.open_files().map(|(_, file)| file);
                for top in trees.open_dirs().chain(files) {
                    let real = dirfd::real_path(top).map(|real| path(&real));
                    let above = real.iter().flat_map(|real| real.ancestors());
                    bases.extend(above.map(Path::to_owned));
                }
                (None, bases)
            }
        };
        ManifestOrigin {
            systems,
            last: bases.iter().map(|_| None).collect(),
            bases,
            trees,
            aliases,
        }
    }

    /// Returns true if an entry may be of one of the files in question.
    pub(super) fn may_be_own(&mut self, reference_copy: &ReferenceCopy<'_>) -> bool {
        let reported = self.systems.as_ref();
        if reported.is_some_and(|systems| systems.may_have(reference_copy, self.trees)) {
            return true;
        }
        let path = Path::new(OsStr::from_bytes(reference_copy.path));
        let bases = match path.is_absolute() {
            true => 1,
            false => self.bases.len(),
        };
        (0..bases.min(self.bases.len())).any(|nth| {
            let path = self.bases[nth].join(path);
            self.leads_to_own(nth, path.as_os_str().as_bytes())
        })
    }

    /// Returns true if a path below a base now leads to one of the trees' files, or may. False for
    /// a path that leads to no file: it proves nothing.
    fn leads_to_own(&mut self, base: usize, path: &[u8]) -> bool {
        let (parent, name) = split(path);
        let last = &mut self.last[base];
        let is_known = last.as_ref().is_some_and(|last| last.path == parent);
        if !is_known {
            *last = Some(Parent::open(parent));
        }
        let Some((dir, above)) = last.as_ref().and_then(|last| last.dir.as_ref()) else {
            return false;
        };
        let found = dirfd::name(name).ok();
        let found = found.and_then(|name| Some((meta::stat_at(dir, &name).ok()?, name)));
        match found {
            Some((file, name)) if file.kind() == FileKind::File => {
                let (trees, aliases) = (self.trees, &mut self.aliases);
                is_own(trees, aliases, &file, &name, *above, || {
                    dirfd::open_root(parent).ok()
                })
            }
            // A link leads on; `..` and the like are no names.
            _ => resolved_is_own(path, self.trees, self.aliases),
        }
    }
}

/// Returns true if a path leads to one of the trees' files, or may, with links followed in every
/// component.
fn resolved_is_own(path: &[u8], trees: &Subtrees, aliases: &mut Aliases<'_>) -> bool {
    let Ok(real) = Path::new(OsStr::from_bytes(path)).canonicalize() else {
        return false;
    };
    let (parent, name) = split(real.as_os_str().as_bytes());
    let Ok(dir) = dirfd::open_root(parent) else {
        return false;
    };
    let Ok(name) = dirfd::name(name) else {
        return false;
    };
    let (Ok(file), Ok(above)) = (meta::stat_at(&dir, &name), meta::stat(&dir)) else {
        return false;
    };
    is_own(trees, aliases, &file, &name, above.id, || {
        dirfd::open_root(parent).ok()
    })
}

fn is_own(
    trees: &Subtrees,
    aliases: &mut Aliases<'_>,
    file: &FileStat,
    name: &CStr,
    above: Identity,
    open: impl Fn() -> Option<OwnedFd>,
) -> bool {
    if trees.has_dir(file.id) || trees.has_file(file.id) || trees.has_dir(above) {
        return true;
    }
    aliases.may_be_own(file.id, file.stamp, name, above.dev, open)
}
