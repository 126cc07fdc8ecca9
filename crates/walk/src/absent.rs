//! Paths that were asked for one by one and that a walk did not come upon: reported by name, since
//! no entry or error of the walk mentions them.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::AsFd as _;

use bc_fs::dirfd::PLACE;
use rustix::io::Errno;

use crate::open::stat_at;
use crate::options::slashes;
use crate::{
    Entries, EntryId, Error, ErrorKind, ExactPaths, FileKind, Listing, Metadata, SkipReason,
    Symlinks, WalkOptions,
};

/// A path that was asked for, or led to one that was, and that was left out for another reason.
#[derive(Debug)]
pub(crate) struct Declined {
    prefix: u32,
    /// Path below the prefix; empty for the root itself.
    path: Vec<u8>,
    reason: SkipReason,
}

impl Declined {
    /// True if paths that are left out for this reason may have been asked for.
    #[inline]
    pub(crate) fn may_be(options: &WalkOptions, reason: SkipReason) -> bool {
        let is_filter = reason != SkipReason::NotIncluded || !options.include.is_empty();
        options.only.is_some() && is_filter
    }

    /// Returns the path that is left out, if it was asked for or leads to one that was.
    pub(crate) fn find(
        options: &WalkOptions,
        prefix: u32,
        path: &[u8],
        reason: SkipReason,
    ) -> Option<Declined> {
        let only = options.only.as_ref()?;
        let leads_on = hides_contents(reason) && (path.is_empty() || only.leads_on(path));
        (only.names(path) || leads_on).then(|| Declined {
            prefix,
            path: path.to_vec(),
            reason,
        })
    }
}

/// True if directories are left out for this reason, with their whole contents.
fn hides_contents(reason: SkipReason) -> bool {
    !matches!(
        reason,
        SkipReason::NotIncluded
            | SkipReason::TooSmall
            | SkipReason::TooLarge
            | SkipReason::TooOld
            | SkipReason::TooNew
            | SkipReason::LeftOut
            | SkipReason::Symlink
            | SkipReason::Special
    )
}

impl Listing {
    /// Returns those of the paths asked for one by one ([`WalkOptions::only`]) that do not exist,
    /// in order and each once for each root that is a directory; with the system's error. A path
    /// that was created after its directory had been read has [`ErrorKind::Changed`]; one in a
    /// directory that could not be read has that directory's error. Paths that other options leave
    /// out are not absent, nor are those among the [`errors`](Listing::errors). Empty if the walk
    /// was cancelled, or only a [part](crate::Shard) of the tree was asked for.
    pub fn absent(&self) -> &[Error] {
        &self.absent
    }

    /// Finds them, once all else is known.
    pub(crate) fn find_absent(&mut self, options: &WalkOptions, declined: Vec<Declined>) {
        let Some(only) = &options.only else {
            return;
        };
        if self.cancelled || options.shard.is_some() {
            return;
        }
        let unseen = self.unseen(only, &declined);
        let errors: HashMap<&[u8], &Error> = self
            .errors
            .iter()
            .map(|error| (error.path(), error))
            .collect();
        let mut absent = Vec::new();
        for (prefix, paths) in unseen.into_iter().enumerate() {
            absent.extend(
                paths
                    .into_iter()
                    .filter_map(|path| self.why_unseen(prefix, path, options.entries, &errors)),
            );
        }
        absent.sort_by(|a, b| a.path().cmp(b.path()));
        self.absent = absent;
    }

    /// Returns, by prefix, the paths that were asked for and are neither listed nor left out.
    fn unseen<'o>(&self, only: &'o ExactPaths, declined: &[Declined]) -> Vec<HashSet<&'o [u8]>> {
        // Without an identity it is the directory of files that were named.
        let all = |is_dir| match is_dir {
            true => only.iter().collect(),
            false => HashSet::new(),
        };
        let dirs = self.prefixes.iter().map(|prefix| prefix.id.is_some());
        let mut unseen: Vec<HashSet<&[u8]>> = dirs.map(all).collect();
        let mut path = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            path.clear();
            self.write_relative(EntryId(at as u32), &mut path);
            let prefix = self.dirs[entry.dir as usize].prefix;
            unseen[prefix as usize].remove(&path[..]);
        }
        let mut hidden: Vec<HashSet<&[u8]>> = vec![HashSet::new(); unseen.len()];
        for declined in declined {
            let prefix = declined.prefix as usize;
            unseen[prefix].remove(&declined.path[..]);
            if hides_contents(declined.reason) {
                hidden[prefix].insert(&declined.path);
            }
        }
        for (unseen, hidden) in unseen.iter_mut().zip(hidden) {
            let is_hidden = |path: &[u8]| {
                hidden.contains(&b""[..]) || slashes(path).any(|end| hidden.contains(&path[..end]))
            };
            unseen.retain(|path| !is_hidden(path));
        }
        unseen
    }

    /// Returns the reason why a path below a prefix was not seen; `None` if that is reported
    /// already, or if it is a directory where none is listed.
    fn why_unseen(
        &self,
        prefix: usize,
        path: &[u8],
        entries: Entries,
        errors: &HashMap<&[u8], &Error>,
    ) -> Option<Error> {
        let begin = &self.prefixes[prefix];
        let shown = [&begin.printed[..], path].concat();
        if errors.contains_key(&shown[..]) {
            return None;
        }
        match self.look_below(prefix, path) {
            Err(errno) => return Some(Error::new(shown, "stat", errno)),
            Ok(FileKind::Dir) if entries == Entries::Files => return None,
            Ok(_) => {}
        }
        let above = slashes(path).map(|end| [&begin.printed[..], &path[..end]].concat());
        let above = above.chain([begin.path.clone()]);
        let reason = above.filter_map(|dir| errors.get(&dir[..]).copied()).next();
        let (op, kind) = reason.map_or(("stat", ErrorKind::Changed), |error| {
            (error.op(), error.kind())
        });
        Some(Error::of_kind(shown, op, kind))
    }

    /// Returns the present kind of the file at a path below a prefix. No link is followed that the
    /// walk did not follow.
    fn look_below(&self, prefix: usize, path: &[u8]) -> Result<FileKind, Errno> {
        let prefix = &self.prefixes[prefix];
        let from = prefix.open(PLACE)?;
        let end = path.iter().rposition(|byte| *byte == b'/');
        let (dir, name) = end.map_or((&b""[..], path), |end| (&path[..end], &path[end + 1..]));
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        let dir = self
            .open_below(from.as_fd(), dir)
            .map_err(|errno| match errno {
                // The error of a link that is not followed.
                Errno::LOOP if self.symlinks == Symlinks::Skip => Errno::NOTDIR,
                errno => errno,
            })?;
        Ok(stat_at(dir.as_fd(), &name, self.symlinks, Metadata::None)?.kind())
    }
}
