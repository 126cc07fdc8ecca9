//! Records of the manifest that an earlier copy left in the same place: of entries that are copied
//! again, and of files that are not copied now.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bc_digest::Digest;
use bc_edit::atomic::AsRead;
use bc_edit::journal::check;
use bc_manifest::integrity::{
    Entry, Header, Kind, Meta, Policy, ROOT, Reader, Scope, check_seal, path_order,
};
use bc_walk::{FileKind, FileStat};
use rustix::fs::CWD;

use super::plan::{ManifestPlan, early_plan, heads, push};
use crate::destination::Top;
use crate::meta::stat_at;
use crate::options::{CopyOptions, MANIFEST_NAME, ManifestPlace};
use crate::results::{EntryState, Rows};
use crate::resume::stamp::Stamp;
use crate::sources::{RootItem, SourceTree, shown_below};

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
    let file = plan.open().ok()??;
    let reader = Reader::new(BufReader::new(file), Policy::Force).ok()?;
    reader.header().root.clone()
}

/// True if a top is itself the copy of a directory: a manifest that an earlier copy left in it is
/// about all of it.
pub(crate) fn is_of_whole(top: &Top) -> bool {
    let path = shown_below(&top.path, MANIFEST_NAME.as_bytes());
    let plan = ManifestPlan {
        file: OsStr::from_bytes(&path).into(),
        root: top.path.clone(),
        below: Vec::new(),
        whole: true,
    };
    let header = || {
        let file = plan.open().ok()??;
        let reader = Reader::new(BufReader::new(file), Policy::Force).ok()?;
        Some(reader.header().scope.is_null())
    };
    header() == Some(true)
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
    match plan.open() {
        Ok(None) => ExistingManifest::Nothing,
        Ok(Some(file)) => match Earlier::of(options, plan, file, whole) {
            Ok(earlier) => ExistingManifest::Manifest(Box::new(earlier)),
            Err(why) => ExistingManifest::Other(why),
        },
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

    /// True if the file of an entry is still as the entry describes it.
    pub(super) fn still_fits(&self, entry: &Entry) -> bool {
        let Some(meta) = &entry.meta else {
            return false;
        };
        let path = match entry.path == ROOT {
            true => shown_below(self.root.as_os_str().as_bytes(), b"."),
            false => shown_below(self.root.as_os_str().as_bytes(), &entry.path),
        };
        stat_at(CWD, &path[..]).is_ok_and(|now| {
            let same = now.id.ino == meta.ino && now.mode == meta.mode;
            same && (entry.kind == Kind::Dir
                || (now.stamp.size, now.stamp.mtime_ns) == (meta.size, meta.mtime_ns))
        })
    }
}

/// Reads the manifest in the place where this copy's goes. One that is not whole yields nothing:
/// the end of the copy reports it.
fn read(options: &CopyOptions, plan: &ManifestPlan, tree: &SourceTree) -> TreeRecords {
    let stride = options.algorithm.map_or(0, |one| one.digest_len());
    let ExistingManifest::Manifest(mut earlier) = look(options, plan, Whole::Later) else {
        return TreeRecords::none();
    };
    let header = earlier.header();
    let (scope, root) = (earlier.scope.clone(), header.root.clone());
    let mut found = TreeRecords::new(tree.len(), stride, scope, root);
    let mut heads = heads(tree, plan, &[], &[]);
    let mut entry = earlier.take();
    while let (Some(head), Ok(Some(known))) = (heads.peek(), &entry) {
        let order = path_order(&known.path, &head.path);
        if order.is_eq() {
            put(&mut found, head.item(), known);
        }
        found.has_others |= order.is_lt();
        if order.is_le() {
            entry = earlier.take();
        }
        if order.is_ge()
            && let Some(head) = heads.pop()
            && let Some((item, end)) = head.item_and_end()
        {
            push(tree, plan, &mut heads, RootItem(item.0 + 1), end);
        }
    }
    found.has_others |= !matches!(entry, Ok(None));
    while let Ok(Some(_)) = entry {
        entry = earlier.take();
    }
    // Its end proves that it is whole.
    entry.map_or_else(|_| TreeRecords::none(), |_| found)
}

fn put(found: &mut TreeRecords, item: Option<RootItem>, known: &Entry) {
    if let (Some(item), Some(meta), None) = (item, known.meta, &known.error) {
        // An entry that an update has found changed is not done.
        let stamp = known.copy_stamp.filter(|_| known.found.is_none());
        found.put(item, RecordedEntry::new(meta, stamp), known.digest);
    }
}

/// Reads the records of an earlier copy to the same place, as far as they concern what is copied.
pub(crate) fn recorded(options: &CopyOptions, top: &Top, tree: &SourceTree) -> TreeRecords {
    let first = tree.roots.first().map(|root| &root.source);
    let none = TreeRecords::none;
    let Some(first) = first.filter(|_| options.algorithm.is_some()) else {
        return none();
    };
    early_plan(options, top, first).map_or_else(none, |plan| read(options, &plan, tree))
}

/// Records of a tree.
pub(crate) struct TreeRecords {
    rows: Vec<Option<RecordedEntry>>,
    digests: Vec<u8>,
    stride: usize,
    /// True if the manifest has more than the entries of the tree.
    pub(crate) has_others: bool,
    /// Scope of the manifest, if there is one: `None` in it is everything.
    scope: Option<Option<Scope>>,
    root: Option<Vec<u8>>,
}

/// Record of an entry at the destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedEntry {
    meta: Meta,
    stamp: Option<Stamp>,
}

impl RecordedEntry {
    pub(crate) fn new(meta: Meta, stamp: Option<Stamp>) -> RecordedEntry {
        RecordedEntry { meta, stamp }
    }

    /// Returns the stamp that proves that it still matches its source.
    pub(crate) fn stamp(&self) -> Option<&Stamp> {
        self.stamp.as_ref()
    }

    /// True if it describes the file that is there now.
    pub(crate) fn fits(&self, now: &FileStat) -> bool {
        let Meta {
            ino,
            size,
            mtime_ns,
            ..
        } = self.meta;
        (now.id.ino, now.stamp.size, now.stamp.mtime_ns) == (ino, size, mtime_ns)
    }

    /// True if it describes the directory that is there now, whose size and time are its file
    /// system's.
    pub(crate) fn fits_dir(&self, now: &FileStat) -> bool {
        self.meta.ino == now.id.ino && self.meta.mode == now.mode
    }

    /// True if the record equals the one to be written. A directory's changed times are not its
    /// content, and those of the root have changed with its manifest.
    fn says(&self, meta: &Meta) -> bool {
        let is_dir = FileKind::from_mode(meta.mode) == FileKind::Dir;
        let ctime_ns = if is_dir {
            self.meta.ctime_ns
        } else {
            meta.ctime_ns
        };
        let size = if is_dir { self.meta.size } else { meta.size };
        self.meta
            == Meta {
                ctime_ns,
                size,
                ..*meta
            }
    }
}

impl TreeRecords {
    /// Returns no records, where there is no manifest that is carried on.
    pub(crate) const fn none() -> TreeRecords {
        TreeRecords {
            rows: Vec::new(),
            digests: Vec::new(),
            stride: 0,
            has_others: true,
            scope: None,
            root: None,
        }
    }

    /// Returns an empty set of records, for digests of `stride` bytes.
    pub(crate) fn new(
        entries: u32,
        stride: usize,
        scope: Option<Scope>,
        root: Option<Vec<u8>>,
    ) -> TreeRecords {
        TreeRecords {
            rows: vec![None; entries as usize],
            digests: vec![0; entries as usize * stride],
            stride,
            has_others: false,
            scope: Some(scope),
            root,
        }
    }

    /// Adds the record of an entry.
    pub(crate) fn put(&mut self, item: RootItem, row: RecordedEntry, digest: Option<Digest>) {
        let at = item.0 as usize;
        self.rows[at] = Some(row);
        if let Some(digest) = digest
            && digest.as_bytes().len() == self.stride
        {
            self.digests[at * self.stride..][..self.stride].copy_from_slice(digest.as_bytes());
        }
    }

    /// Returns the scope of the manifest, if there is one.
    pub(crate) fn scope(&self) -> Option<&Option<Scope>> {
        self.scope.as_ref()
    }

    /// Returns the record of an entry, with the digest of a file.
    pub(crate) fn of(&self, item: RootItem) -> Option<(RecordedEntry, Option<Digest>)> {
        let at = item.0 as usize;
        let row = (*self.rows.get(at)?)?;
        let digest = &self.digests[at * self.stride..][..self.stride];
        let is_set = digest.iter().any(|byte| *byte != 0);
        Some((row, is_set.then(|| Digest::from_slice(digest)).flatten()))
    }

    /// True if the existing manifest says all that this copy's would.
    pub(crate) fn is_all(&self, header: &Header, tree: &SourceTree, rows: &Rows) -> bool {
        let scope = self.scope().and_then(Option::as_ref).map(Scope::to_json);
        let is_about = scope.unwrap_or_default() == header.scope && self.root == header.root;
        if self.has_others || !is_about {
            return false;
        }
        tree.items().all(|item| {
            let is_before = rows.state(item) == EntryState::Before && rows.failure(item).is_none();
            is_before
                && self.of(item).is_some_and(|(row, digest)| {
                    let says = rows.meta(item).is_some_and(|meta| row.says(&meta));
                    says && digest == rows.digest(item)
                })
        })
    }
}
