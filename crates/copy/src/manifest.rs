//! The manifest of a copy, which `bc integrity verify` accepts at once: what was copied, with the
//! digests that were taken on the way, and what an earlier manifest there says of the rest.

mod earlier;
mod plan;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_digest::Digest;
use bc_fs::atomic::AtomicFile;
use bc_fs::place::Place;
use bc_manifest::integrity::{Entry, Header, Kind, ROOT, Scope, Writer, path_order};
use bc_manifest::time::format_rfc3339;
use bc_walk::{FileKind, FileStat};
use rustix::io::Errno;

use crate::decide::{digest_of, open_there};
use crate::error::Error;
use crate::event::Event;
use crate::job::Job;
use crate::options::ManifestPlace;
use crate::results::{Rows, State};
use crate::tree::Item;
use crate::worker::Worker;
use earlier::{Earlier, Found};
pub(crate) use plan::Plan;

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
    let earlier = match earlier::look(job, plan) {
        Found::Nothing => None,
        Found::Manifest(earlier) => Some(*earlier),
        Found::Other(why) => {
            set_aside(job, plan, &why)?;
            None
        }
    };
    let new = AtomicFile::create(&plan.file).map_err(|error| failed("create", error))?;
    let scope = scope(job, plan, earlier.as_ref());
    let header = header(job, plan, scope.as_ref());
    let out = BufWriter::with_capacity(1 << 20, new.file());
    let written = fill(job, plan, rows, (&header, scope.is_some()), earlier, out);
    written.map_err(|error| match error.io_error() {
        Some(io) => {
            let errno = io.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
            Error::system(&shown, "write", Errno::from_raw_os_error(errno))
        }
        None => Error::usage(format!("{}: write: {error}", bc_fs::Escaped(&shown))),
    })?;
    new.commit()
        .map_err(|not| failed(not.operation, not.error))?;
    Ok(shown)
}

/// What cannot be carried on is not lost for that: it gets another name, unless the user has named
/// the file, which is then replaced as every output is.
fn set_aside(job: &Job<'_>, plan: &Plan, why: &str) -> Result<(), Error> {
    /// How many may lie there.
    const MOST: u32 = 1000;
    if job.options.manifest != ManifestPlace::Destination {
        return Ok(());
    }
    let shown = plan.file.as_os_str().as_bytes();
    let place = Place::find(&plan.file);
    let place = place.map_err(|error| Error::system(shown, "rename", error))?;
    for attempt in 1..=MOST {
        let mut name = place.name().to_owned();
        name.push(format!("-{attempt}"));
        match place.rename_to_new(&name) {
            Ok(()) => {
                let text = format!(
                    "{}: {why}: what it says is not carried on, and its name is {} now",
                    bc_fs::Escaped(shown),
                    bc_fs::Escaped(name.as_bytes())
                );
                (job.observer)(Event::Warning(&text));
                return Ok(());
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::system(shown, "rename", errno)),
        }
    }
    Err(Error::system(shown, "rename", Errno::EXIST))
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
    if rows.state(item) == State::Left || job.is_manifest(item) {
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
    match kind {
        Kind::File => {
            let known = known.filter(|known| known.meta == meta);
            let digest = rows.digest(item).or(known.and_then(|known| known.digest));
            entry.digest = digest.or_else(|| digest_there(worker, item));
            entry.digest?;
        }
        Kind::Symlink => {
            let place = worker.place(item).ok()?;
            let read = rustix::fs::readlinkat(&place.dir.fd, place.name(), Vec::new());
            entry.target = Some(read.ok()?.into_bytes());
        }
        Kind::Block | Kind::Char => {
            let place = worker.place(item).ok()?;
            let stat = worker.there(&place).ok()??;
            entry.rdev = Some(FileStat::from(&stat).rdev);
        }
        _ => {}
    }
    Some(entry)
}

/// Of what was left at the destination, and of which nothing is known.
fn digest_there(worker: &mut Worker<'_>, item: Item) -> Option<Digest> {
    let job = worker.job;
    let place = worker.place(item).ok()?;
    let file = open_there(&place).ok()?;
    let go_on = || !job.cancel.is_cancelled();
    digest_of(&file, job.options.algorithm?, &mut Vec::new(), &go_on).ok()?
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
    header.tool = "bc copy".to_owned();
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
