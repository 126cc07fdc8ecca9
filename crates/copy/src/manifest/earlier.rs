//! What a manifest that is there already says of what is not copied now.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bc_fs::journal::{FLAGS, check};
use bc_fs::place::Place;
use bc_manifest::integrity::{Entry, Kind, Policy, ROOT, Reader, Scope, check_seal, path_order};
use bc_walk::FileStat;
use rustix::fs::{AtFlags, OFlags};

use super::plan::Plan;
use crate::event::Event;
use crate::job::{Job, shown_below};

/// The manifest that is there already.
pub(super) struct Earlier {
    reader: Reader<BufReader<File>>,
    pub(super) scope: Option<Scope>,
    next: Option<Entry>,
    root: PathBuf,
}

impl Earlier {
    /// `None` where there is none that can be carried on.
    pub(super) fn open(job: &Job<'_>, plan: &Plan) -> Option<Earlier> {
        let place = Place::find(&plan.file).ok()?;
        let file = place.open(place.name(), OFlags::RDONLY | FLAGS).ok()?;
        let mut file = File::from(file);
        let tell = |why: &str| {
            let text = format!(
                "{}: {why}: what it says of files that were not copied now is not carried on",
                bc_fs::Escaped(plan.file.as_os_str().as_bytes())
            );
            (job.observer)(Event::Warning(&text));
        };
        // What somebody else may have written would be carried on as if it had been proven here.
        if let Err(why) = check(&file).ok()? {
            tell(&why.to_string());
            return None;
        }
        if let Err(error) = check_seal(BufReader::with_capacity(1 << 18, &file)) {
            tell(&error.to_string());
            return None;
        }
        file.rewind().ok()?;
        let file = BufReader::with_capacity(1 << 18, file);
        let reader = match Reader::new(file, Policy::Force) {
            Ok(reader) => reader,
            Err(error) => {
                tell(&error.to_string());
                return None;
            }
        };
        let wanted = job
            .options
            .algorithm
            .map_or("", |algorithm| algorithm.name());
        if reader.header().algorithm != wanted {
            tell("its digests are of another algorithm");
            return None;
        }
        let scope = &reader.header().scope;
        let scope = match scope.is_null() {
            true => None,
            false => Some(Scope::from_json(scope)?),
        };
        let mut earlier = Earlier {
            reader,
            scope,
            next: None,
            root: PathBuf::from(OsStr::from_bytes(&plan.root)),
        };
        earlier.next = earlier.reader.read().ok()?;
        Some(earlier)
    }

    pub(super) fn take(&mut self) -> Result<Option<Entry>, bc_manifest::Error> {
        let next = self.reader.read()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    pub(super) fn take_before(&mut self, path: &[u8]) -> Result<Option<Entry>, bc_manifest::Error> {
        let is_before = |entry: &Entry| path_order(&entry.path, path).is_lt();
        match self.next.as_ref().is_some_and(is_before) {
            true => self.take(),
            false => Ok(None),
        }
    }

    pub(super) fn take_at(&mut self, path: &[u8]) -> Result<Option<Entry>, bc_manifest::Error> {
        match self.next.as_ref().is_some_and(|entry| entry.path == path) {
            true => self.take(),
            false => Ok(None),
        }
    }

    /// Whether an entry that this copy has nothing to do with is still what it says.
    pub(super) fn still_fits(&self, entry: &Entry) -> bool {
        let Some(meta) = &entry.meta else {
            return false;
        };
        let path = match entry.path == ROOT {
            true => shown_below(self.root.as_os_str().as_bytes(), b"."),
            false => shown_below(self.root.as_os_str().as_bytes(), &entry.path),
        };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statat(rustix::fs::CWD, &path[..], flags);
        found.is_ok_and(|found| {
            let now = FileStat::from(&found);
            let same = now.id.ino == meta.ino && now.mode == meta.mode;
            same && (entry.kind == Kind::Dir
                || (now.stamp.size, now.stamp.mtime_ns) == (meta.size, meta.mtime_ns))
        })
    }
}
