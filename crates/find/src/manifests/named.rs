//! Names in lists that do not say where they were made: one that fits a file that is asked about may
//! be that file's own, written down where its directory was mounted before, from within, from above,
//! or on a system that writes paths in another way.

use bc_fs::dirfd;
use bc_fs::path::split;
use bc_walk::{EntryId, Listing};

use crate::report::root_len;
use crate::subtrees::Subtrees;

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
        let name = Name::of(name);
        files.iter().any(|file| self.may_be(&name, *file))
    }

    fn may_be(&mut self, name: &Name, file: EntryId) -> bool {
        let path = self.listing.path(file);
        let Some(absolute) = self.absolute(&path) else {
            return true;
        };
        let absolute = Name::of(&absolute);
        // From within: `cd card/DCIM; sha256sum 100/*`.
        if name.is_tail_of(&Name::of(&path)) || name.is_tail_of(&absolute) {
            return true;
        }
        // From above, when it was mounted elsewhere.
        if name.ends_like(&absolute) {
            return true;
        }
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
struct Name {
    parts: Vec<Vec<u8>>,
    is_absolute: bool,
}

impl Name {
    /// Of a path as Unix or Windows writes it. A name that has a `\` itself is taken apart on both
    /// sides of a comparison.
    fn of(path: &[u8]) -> Name {
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
        Name {
            parts: kept,
            is_absolute: matches!(path, [b'/' | b'\\', ..]),
        }
    }

    fn is_tail_of(&self, other: &Name) -> bool {
        other.parts.ends_with(&self.parts)
    }

    /// True if the last two names are equal: above them each may have been called anything.
    fn ends_like(&self, other: &Name) -> bool {
        let last = |name: &Name| {
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
        for tail in ["B/C", "b\\c", "E:\\b\\c", "e:/c"] {
            assert!(is(tail, "/a/b/c"), "{tail}");
        }
        for other in ["bc", "a/c", "x/a/b/c", "c/d", "b/c2"] {
            assert!(!is(other, "/a/b/c"), "{other}");
        }
    }

    #[test]
    fn names_from_above_end_alike() {
        let is = |name: &str| Name::of(name.as_bytes()).ends_like(&Name::of(b"/mnt/x/\xc3\x84/c"));
        for name in ["SD/\u{c4}/c", "E:\\\u{e4}\\C", "/y/\u{c4}/c", "\u{c4}/c"] {
            assert!(is(name), "{name}");
        }
        for name in ["c", "/c", "x/c", "\u{c4}/x/c", "\u{c4}/c/d"] {
            assert!(!is(name), "{name}");
        }
    }
}
