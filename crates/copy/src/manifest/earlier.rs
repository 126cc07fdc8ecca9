//! Records of the existing manifest about files that are not copied now.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bc_edit::atomic::AsRead;
use bc_edit::journal::{FLAGS, check};
use bc_edit::output::takes_at_once;
use bc_fs::place::Place;
use bc_manifest::integrity::{
    Entry, Header, Kind, Policy, ROOT, Reader, Scope, check_seal, path_order,
};
use bc_walk::FileStat;
use rustix::fs::{AtFlags, OFlags};

use super::plan::ManifestPlan;
use crate::job::shown_below;
use crate::options::{CopyOptions, ManifestPlace};

/// The existing manifest.
pub(super) struct Earlier {
    reader: Reader<BufReader<File>>,
    /// Its file once more, as it was before it was read: while it is open, no other file can be
    /// taken for it.
    pub(super) file: AsRead,
    pub(super) scope: Option<Scope>,
    next: Option<Entry>,
    root: PathBuf,
    /// True if it is about this destination: it lies there, wherever that was moved to, or says so.
    is_of_destination: bool,
}

impl Earlier {
    /// Returns the root of its tree as the header records it.
    pub(super) fn recorded_root(&self) -> Option<&[u8]> {
        self.reader.header().root.as_deref()
    }
}

/// Returns the recorded root of a manifest that cannot be carried on, if the existing file is one.
pub(super) fn root_of_other(plan: &ManifestPlan) -> Option<Vec<u8>> {
    let place = Place::find(&plan.file).ok()?;
    let file = place.open(place.name(), OFlags::RDONLY | FLAGS).ok()?;
    let reader = Reader::new(BufReader::new(File::from(file)), Policy::Force).ok()?;
    reader.header().root.clone()
}

/// File found in the manifest's place.
pub(super) enum ExistingManifest {
    Nothing,
    /// A manifest that is carried on.
    Manifest(Box<Earlier>),
    /// Another file, with the reason for which it is not carried on.
    Other(String),
}

/// Time at which a manifest is read to its end, which proves that it is whole, relative to the use
/// of its entries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Whole {
    Proven,
    /// The caller reads it to its end, and relies on nothing before that.
    Later,
}

/// Looks at the file in the manifest's place.
pub(super) fn look(options: &CopyOptions, plan: &ManifestPlan, whole: Whole) -> ExistingManifest {
    let Ok(place) = Place::find(&plan.file) else {
        return ExistingManifest::Nothing;
    };
    if takes_at_once(&plan.file) {
        return ExistingManifest::Nothing;
    }
    match place.open(place.name(), OFlags::RDONLY | FLAGS) {
        Ok(file) => match Earlier::of(options, plan, File::from(file), whole) {
            Ok(earlier) => ExistingManifest::Manifest(Box::new(earlier)),
            Err(why) => ExistingManifest::Other(why),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => ExistingManifest::Nothing,
        Err(error) => ExistingManifest::Other(error.to_string()),
    }
}

impl Earlier {
    fn of(
        options: &CopyOptions,
        plan: &ManifestPlan,
        mut file: File,
        whole: Whole,
    ) -> Result<Earlier, String> {
        let system = |error: std::io::Error| error.to_string();
        let as_read = file.try_clone().and_then(AsRead::new).map_err(system)?;
        // Records that another user may have written would be carried on as if proven here.
        check(&file)
            .map_err(system)?
            .map_err(|why| why.to_string())?;
        if whole == Whole::Proven {
            let sealed = check_seal(BufReader::with_capacity(1 << 18, &file));
            sealed.map_err(|error| error.to_string())?;
            file.rewind().map_err(system)?;
        }
        let input = BufReader::with_capacity(1 << 18, file.try_clone().map_err(system)?);
        let reader = match whole {
            Whole::Proven => Reader::new(input, Policy::Force).map(Reader::proven),
            Whole::Later => Reader::new(input, Policy::Strict),
        };
        let reader = reader.map_err(|error| error.to_string())?;
        let algorithm = options.algorithm;
        let wanted = algorithm.map_or("", |algorithm| algorithm.name());
        if reader.header().algorithm != wanted {
            return Err("its digests are of another algorithm".to_owned());
        }
        let scope = &reader.header().scope;
        let unknown = || "what it is about is not known here".to_owned();
        let scope = match scope.is_null() {
            true => None,
            false => Some(Scope::from_json(scope).ok_or_else(unknown)?),
        };
        let mut earlier = Earlier {
            reader,
            file: as_read,
            scope,
            next: None,
            root: PathBuf::from(OsStr::from_bytes(&plan.root)),
            is_of_destination: options.manifest == ManifestPlace::Destination,
        };
        earlier.is_of_destination |= earlier.recorded_root() == Some(&plan.real_root()[..]);
        let first = earlier.reader.read();
        earlier.next = first.map_err(|error| error.to_string())?;
        Ok(earlier)
    }

    pub(super) fn header(&self) -> &Header {
        self.reader.header()
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

    /// True if an entry of a file that this copy did not make belongs into the new manifest: all of
    /// this destination, as their files are for `verify` to look at, and of another one those that
    /// hold here as well.
    pub(super) fn stays(&self, entry: &Entry) -> bool {
        self.is_of_destination || self.still_fits(entry)
    }

    /// Whether what an entry is about is still what it says.
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
