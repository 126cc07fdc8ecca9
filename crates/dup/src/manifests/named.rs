//! Names in lists that do not say where they were made: one that fits a file that is asked about may
//! be that file's own, written down where its directory was mounted before, or from within.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use bc_walk::{EntryId, Listing};

use crate::path::split;
use crate::report::root_len;
use crate::subtrees::Subtrees;

/// Files by all that they can be called.
pub(super) struct Named<'a> {
    listing: &'a Listing,
    /// Roots as they were given, in order of the walk's roots as far as they could be opened.
    roots: Vec<&'a [u8]>,
    /// The directory that was asked for last, and where it really is.
    last: Option<(Vec<u8>, Vec<u8>)>,
}

impl<'a> Named<'a> {
    pub(super) fn new(listing: &'a Listing, own: &'a Subtrees) -> Named<'a> {
        Named {
            listing,
            roots: own.paths().collect(),
            last: None,
        }
    }

    /// Returns true if a name may be that of one of these files.
    pub(super) fn is_one_of(&mut self, name: &[u8], files: &[EntryId]) -> bool {
        let name = Name::of(name);
        files.iter().any(|file| self.may_be(&name, *file))
    }

    fn may_be(&mut self, name: &Name<'_>, file: EntryId) -> bool {
        let path = self.listing.path(file);
        let given = Name::of(&path);
        // From within: `cd card/DCIM; sha256sum 100/*`.
        if name.is_tail_of(&given) || name.is_tail_of(&Name::of(&self.absolute(&path))) {
            return true;
        }
        // From outside, when it was mounted elsewhere.
        let below = Name::of(self.below(&path));
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

    fn absolute(&mut self, path: &[u8]) -> Vec<u8> {
        let (parent, name) = split(path);
        let is_known = self.last.as_ref().is_some_and(|(known, _)| known == parent);
        if !is_known {
            let at = match parent.is_empty() {
                true => Path::new("."),
                false => Path::new(OsStr::from_bytes(parent)),
            };
            let real = at
                .canonicalize()
                .map(|real| real.into_os_string().into_vec());
            let real = real.unwrap_or_else(|_| parent.to_vec());
            self.last = Some((parent.to_vec(), real));
        }
        let real = self.last.as_ref().map_or(&[][..], |(_, real)| real);
        [real, b"/", name].concat()
    }
}

/// A path by its names.
struct Name<'p> {
    parts: Vec<&'p [u8]>,
    is_absolute: bool,
}

impl<'p> Name<'p> {
    fn of(path: &'p [u8]) -> Name<'p> {
        let parts = path.split(|byte| *byte == b'/');
        let parts = parts.filter(|part| !part.is_empty() && *part != b".");
        let mut kept: Vec<&[u8]> = Vec::new();
        for part in parts {
            // The ancestors of the directory where a list was made are unknown.
            match part {
                b".." => drop(kept.pop()),
                part => kept.push(part),
            }
        }
        Name {
            parts: kept,
            is_absolute: path.starts_with(b"/"),
        }
    }

    fn is_tail_of(&self, other: &Name<'_>) -> bool {
        other.parts.ends_with(&self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn tails_are_whole_names() {
        let is = |tail: &str, path: &str| {
            Name::of(tail.as_bytes()).is_tail_of(&Name::of(path.as_bytes()))
        };
        for tail in [
            "c", "./c", "b/c", "a/b/c", "/a/b/c", "../b/c", "x/../c", "b//c",
        ] {
            assert!(is(tail, "/a/b/c"), "{tail}");
        }
        for other in ["bc", "a/c", "x/a/b/c", "c/d", "b/c2"] {
            assert!(!is(other, "/a/b/c"), "{other}");
        }
    }
}
