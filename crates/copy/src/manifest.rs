//! The manifest of a copy, which `bc integrity verify` accepts at once: what was copied, with the
//! digests that were taken on the way, and what an earlier manifest there says of the rest.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_digest::Digest;
use bc_fs::atomic::AtomicFile;
use bc_manifest::integrity::{
    Entry, Header, Kind, Policy, ROOT, Reader, Scope, Writer, check_seal, path_order,
};
use bc_manifest::time::format_rfc3339;
use bc_walk::{FileKind, FileStat};
use rustix::fs::AtFlags;

use crate::decide::{digest_of, open_there};
use crate::error::Error;
use crate::event::Event;
use crate::job::{Job, shown_below};
use crate::results::{Rows, State};
use crate::tree::Item;
use crate::worker::Worker;

/// What the manifest is called in the destination.
pub const MANIFEST_NAME: &str = ".bc-copy-manifest.jsonl";

/// Where a manifest goes, and what it is about.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The file.
    pub(crate) file: PathBuf,
    /// The directory that its paths are relative to, as it is shown.
    pub(crate) root: Vec<u8>,
    /// That directory below the top: empty for the top itself.
    pub(crate) below: Vec<u8>,
    /// Whether the directory holds nothing but what was copied, so that all of it is meant.
    pub(crate) whole: bool,
}

/// An entry on its way into the manifest: ordered by path, the first at the top of a heap.
struct Head {
    path: Vec<u8>,
    item: Item,
    end: u32,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        path_order(&other.path, &self.path)
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// Writes the manifest; gives its path as it is shown.
pub(crate) fn write(job: &Job<'_>, plan: &Plan, rows: &Rows) -> Result<Vec<u8>, Error> {
    let shown = plan.file.as_os_str().as_bytes().to_vec();
    let failed = |op: &'static str, error: std::io::Error| Error::system(&shown, op, error);
    let earlier = Earlier::open(job, plan);
    let new = AtomicFile::create(&plan.file).map_err(|error| failed("create", error))?;
    let scope = scope(job, plan, earlier.as_ref());
    let header = header(job, plan, scope.as_ref());
    let out = BufWriter::with_capacity(1 << 20, new.file());
    let written = fill(job, plan, rows, (&header, scope.is_some()), earlier, out);
    written.map_err(|error| match error.io_error() {
        Some(io) => Error::system(&shown, "write", std::io::Error::from(io.kind())),
        None => Error::usage(format!("{}: write: {error}", bc_fs::Escaped(&shown))),
    })?;
    new.commit()
        .map_err(|not| failed(not.operation, not.error))?;
    Ok(shown)
}

/// Merges what was copied with what an earlier manifest says.
fn fill(
    job: &Job<'_>,
    plan: &Plan,
    rows: &Rows,
    (header, is_part): (&Header, bool),
    mut earlier: Option<Earlier>,
    out: impl Write,
) -> Result<(), bc_manifest::Error> {
    let mut writer = Writer::new(out, header)?;
    let mut worker = Worker::new(job);
    let mut heads = heads(job, plan);
    while let Some(Head { path, item, end }) = heads.pop() {
        let mut known = None;
        if let Some(earlier) = &mut earlier {
            while let Some(entry) = earlier.take_before(&path)? {
                if earlier.still_fits(&entry) {
                    writer.write(&entry)?;
                }
            }
            known = earlier.take_at(&path)?;
        }
        let is_root = path == ROOT;
        if let Some(entry) = entry(&mut worker, rows, item, path, known)
            && !(is_root && is_part)
        {
            writer.write(&entry)?;
        }
        push(job, plan, &mut heads, Item(item.0 + 1), end);
    }
    if let Some(earlier) = &mut earlier {
        while let Some(entry) = earlier.take()? {
            if earlier.still_fits(&entry) {
                writer.write(&entry)?;
            }
        }
    }
    writer.finish().map(drop)
}

fn heads(job: &Job<'_>, plan: &Plan) -> BinaryHeap<Head> {
    let mut heads = BinaryHeap::new();
    for root in 0..job.tree.roots.len() {
        let items = job.tree.items_of(root);
        push(job, plan, &mut heads, Item(items.start), items.end);
    }
    heads
}

fn push(job: &Job<'_>, plan: &Plan, heads: &mut BinaryHeap<Head>, item: Item, end: u32) {
    if item.0 < end {
        let path = path_in(job, plan, item);
        heads.push(Head { path, item, end });
    }
}

/// The path of an entry in the manifest.
fn path_in(job: &Job<'_>, plan: &Plan, item: Item) -> Vec<u8> {
    let mut path = Vec::new();
    job.tree.write_target(item, &mut path);
    if !plan.below.is_empty() {
        path.drain(..(plan.below.len() + 1).min(path.len()));
    }
    match path.is_empty() {
        true => ROOT.to_vec(),
        false => path,
    }
}

/// What the manifest says of an entry.
fn entry(
    worker: &mut Worker<'_>,
    rows: &Rows,
    item: Item,
    path: Vec<u8>,
    known: Option<Entry>,
) -> Option<Entry> {
    let job = worker.job;
    if rows.state(item) == State::Left {
        return None;
    }
    let meta = rows.meta(item);
    let kind = match meta {
        Some(meta) => kind(FileKind::from_mode(meta.mode)),
        None => kind(job.tree.kind(item)),
    };
    let mut entry = Entry::new(path, kind);
    entry.meta = meta;
    if let Some(failure) = rows.failure(item) {
        // What is there, if anything is, is not what was to be.
        entry.error = Some(failure.clone());
        return Some(entry);
    }
    let place = worker.place(item).ok()?;
    match kind {
        Kind::File => {
            let known = known
                .filter(|known| known.meta == meta)
                .and_then(|known| known.digest);
            let algorithm = job.options.algorithm?;
            let read = || -> Option<Digest> {
                let file = open_there(&place).ok()?;
                let go_on = || !job.cancel.is_cancelled();
                digest_of(&file, algorithm, &mut Vec::new(), &go_on).ok()?
            };
            entry.digest = rows.digest(item).or(known).or_else(read);
            entry.digest?;
        }
        Kind::Symlink => {
            let read = rustix::fs::readlinkat(&place.dir.fd, place.name(), Vec::new());
            entry.target = Some(read.ok()?.into_bytes());
        }
        Kind::Block | Kind::Char => {
            let stat = worker.there(&place).ok()??;
            entry.rdev = Some(FileStat::from(&stat).rdev);
        }
        _ => {}
    }
    Some(entry)
}

fn kind(kind: FileKind) -> Kind {
    match kind {
        FileKind::File => Kind::File,
        FileKind::Dir => Kind::Dir,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Fifo => Kind::Fifo,
        FileKind::Socket => Kind::Socket,
        FileKind::Block => Kind::Block,
        FileKind::Char => Kind::Char,
    }
}

/// What the manifest is about, if not about all that is below its root.
fn scope(job: &Job<'_>, plan: &Plan, earlier: Option<&Earlier>) -> Option<Scope> {
    if plan.whole {
        return None;
    }
    let mut paths = Vec::new();
    for root in 0..job.tree.roots.len() {
        let name = &job.tree.roots[root].name;
        match plan.below.is_empty() && !name.is_empty() {
            true => paths.push(name.clone()),
            // The content of a directory that was there: what is directly in it.
            false => {
                let items = job
                    .tree
                    .items_of(root)
                    .map(|item| path_in(job, plan, Item(item)));
                paths.extend(items.filter(|path| path != ROOT && !path.contains(&b'/')));
            }
        }
    }
    match earlier.map(|earlier| &earlier.scope) {
        // It was about everything.
        Some(None) => return None,
        Some(Some(scope)) => paths.extend_from_slice(scope.paths()),
        None => {}
    }
    Some(Scope::of(paths))
}

fn header(job: &Job<'_>, plan: &Plan, scope: Option<&Scope>) -> Header {
    let options = job.options;
    let algorithm = options.algorithm.map_or("", |algorithm| algorithm.name());
    let mut header = Header::new(algorithm, env!("CARGO_PKG_VERSION"));
    header.created_at = Some(format_rfc3339(options.now));
    header.host.clone_from(&options.host);
    header.machine.clone_from(&options.machine);
    let root = match plan.root.is_empty() {
        true => Path::new("."),
        false => Path::new(OsStr::from_bytes(&plan.root)),
    };
    let real = std::fs::canonicalize(root);
    header.root = Some(real.map_or_else(
        |_| plan.root.clone(),
        |real| real.into_os_string().into_encoded_bytes(),
    ));
    let found = rustix::fs::stat(root).ok();
    header.root_dev = found.map(|stat| FileStat::from(&stat).id.dev);
    if let Some(scope) = scope {
        header.scope = scope.to_json();
    }
    header
}

/// The manifest that is there already.
struct Earlier {
    reader: Reader<BufReader<File>>,
    scope: Option<Scope>,
    next: Option<Entry>,
    root: PathBuf,
}

impl Earlier {
    /// `None` where there is none that can be carried on.
    fn open(job: &Job<'_>, plan: &Plan) -> Option<Earlier> {
        let file = File::open(&plan.file).ok()?;
        let tell = |why: &str| {
            let text = format!(
                "{}: {why}: what it says of files that were not copied now is not carried on",
                bc_fs::Escaped(plan.file.as_os_str().as_bytes())
            );
            (job.observer)(Event::Warning(&text));
        };
        if let Err(error) = check_seal(BufReader::new(file)) {
            tell(&error.to_string());
            return None;
        }
        let file = BufReader::with_capacity(1 << 18, File::open(&plan.file).ok()?);
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

    fn take(&mut self) -> Result<Option<Entry>, bc_manifest::Error> {
        let next = self.reader.read()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn take_before(&mut self, path: &[u8]) -> Result<Option<Entry>, bc_manifest::Error> {
        let is_before = |entry: &Entry| path_order(&entry.path, path).is_lt();
        match self.next.as_ref().is_some_and(is_before) {
            true => self.take(),
            false => Ok(None),
        }
    }

    fn take_at(&mut self, path: &[u8]) -> Result<Option<Entry>, bc_manifest::Error> {
        match self.next.as_ref().is_some_and(|entry| entry.path == path) {
            true => self.take(),
            false => Ok(None),
        }
    }

    /// Whether an entry that this copy has nothing to do with is still what it says.
    fn still_fits(&self, entry: &Entry) -> bool {
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
