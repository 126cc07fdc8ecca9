//! Original location of the files of a manifest's entries: entries of the very files in question are
//! no reference copies. They are recognised by where their paths lead, and in lists that do not say
//! where they were made by their names: one that fits a file that is asked about may be that file's
//! own, written down where its directory was mounted before, from within, from above, or on a system
//! that writes paths in another way.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_fs::path::split;
use bc_fs::{dirfd, meta};
use bc_walk::{EntryId, FileKind, FileStat, Identity, Listing};

use super::Manifest;
use super::entries::ReferenceCopy;
use super::home::Systems;
use crate::aliases::Aliases;
use crate::report::root_len;
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

/// Files by all that they can be called.
pub(super) struct NamedFiles<'a> {
    listing: &'a Listing,
    /// Roots as they were given, in order of the walk's roots as far as they could be opened.
    roots: Vec<&'a [u8]>,
    /// The directory that was asked for last, and where it really is, if the system tells.
    last: Option<(Vec<u8>, Option<Vec<u8>>)>,
}

impl<'a> NamedFiles<'a> {
    pub(super) fn new(listing: &'a Listing, own: &'a Subtrees) -> NamedFiles<'a> {
        NamedFiles {
            listing,
            roots: own.paths().collect(),
            last: None,
        }
    }

    /// Returns true if a name may be that of one of these files.
    pub(super) fn is_one_of(&mut self, name: &[u8], files: &[EntryId]) -> bool {
        let name = FoldedPath::of(name);
        files.iter().any(|file| self.may_be(&name, *file))
    }

    fn may_be(&mut self, name: &FoldedPath, file: EntryId) -> bool {
        let path = self.listing.path(file);
        let Some(absolute) = self.absolute(&path) else {
            return true;
        };
        let absolute = FoldedPath::of(&absolute);
        // From within: `cd card/DCIM; sha256sum 100/*`.
        if name.is_tail_of(&FoldedPath::of(&path)) || name.is_tail_of(&absolute) {
            return true;
        }
        // From above, when it was mounted elsewhere.
        if name.ends_like(&absolute) {
            return true;
        }
        let below = FoldedPath::of(self.below(&path));
        let tells = name.is_absolute || below.parts.len() > 1;
        tells && !below.parts.is_empty() && below.is_tail_of(name)
    }

    /// The path below the root that it was found under.
    fn below<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        let is_root = |root: &&&[u8]| root_len(path, root) < path.len();
        let longest = self.roots.iter().filter(is_root).map(|root| root.len());
        match longest.max() {
            Some(len) => &path[len..],
            None => split(path).1,
        }
    }

    /// The path without links; `None` where the system does not tell it.
    fn absolute(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        let (parent, name) = split(path);
        let is_known = self.last.as_ref().is_some_and(|(known, _)| known == parent);
        if !is_known {
            let real = dirfd::open_root(parent).ok().and_then(dirfd::real_path);
            self.last = Some((parent.to_vec(), real));
        }
        let (_, real) = self.last.as_ref()?;
        Some([real.as_deref()?, b"/", name].concat())
    }
}

/// A path by its names, small letters for capital ones: FAT and Windows keep the one and find the
/// other.
struct FoldedPath {
    parts: Vec<Vec<u8>>,
    is_absolute: bool,
}

impl FoldedPath {
    /// Of a path as Unix or Windows writes it. A name that has a `\` itself is taken apart on both
    /// sides of a comparison.
    fn of(path: &[u8]) -> FoldedPath {
        let path = match path {
            [letter, b':', rest @ ..]
                if letter.is_ascii_alphabetic() && matches!(rest, [] | [b'/' | b'\\', ..]) =>
            {
                rest
            }
            path => path,
        };
        let parts = path.split(|byte| matches!(byte, b'/' | b'\\'));
        let parts = parts.filter(|part| !part.is_empty() && *part != b".");
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for part in parts {
            // The ancestors of the directory where a list was made are unknown.
            match part {
                b".." => drop(kept.pop()),
                part => kept.push(folded(part)),
            }
        }
        FoldedPath {
            parts: kept,
            is_absolute: matches!(path, [b'/' | b'\\', ..]),
        }
    }

    fn is_tail_of(&self, other: &FoldedPath) -> bool {
        other.parts.ends_with(&self.parts)
    }

    /// True if the last two names are equal: above them each may have been called anything.
    fn ends_like(&self, other: &FoldedPath) -> bool {
        let last = |name: &FoldedPath| {
            let from = name.parts.len().checked_sub(2)?;
            Some(name.parts[from..].to_vec())
        };
        last(self).is_some_and(|two| last(other) == Some(two))
    }
}

fn folded(name: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_lowercase().into_bytes(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod named_tests {
    use super::FoldedPath;

    #[test]
    fn tails_are_whole_names() {
        let is = |tail: &str, path: &str| {
            FoldedPath::of(tail.as_bytes()).is_tail_of(&FoldedPath::of(path.as_bytes()))
        };
        for tail in [
            "c", "./c", "b/c", "a/b/c", "/a/b/c", "../b/c", "x/../c", "b//c",
        ] {
            assert!(is(tail, "/a/b/c"), "{tail}");
        }
        for tail in ["B/C", "b\\c", "E:\\b\\c", "e:/c"] {
            assert!(is(tail, "/a/b/c"), "{tail}");
        }
        for other in ["bc", "a/c", "x/a/b/c", "c/d", "b/c2"] {
            assert!(!is(other, "/a/b/c"), "{other}");
        }
    }

    #[test]
    fn names_from_above_end_alike() {
        let is = |name: &str| {
            FoldedPath::of(name.as_bytes()).ends_like(&FoldedPath::of(b"/mnt/x/\xc3\x84/c"))
        };
        for name in ["SD/\u{c4}/c", "E:\\\u{e4}\\C", "/y/\u{c4}/c", "\u{c4}/c"] {
            assert!(is(name), "{name}");
        }
        for name in ["c", "/c", "x/c", "\u{c4}/x/c", "\u{c4}/c/d"] {
            assert!(!is(name), "{name}");
        }
    }
}
