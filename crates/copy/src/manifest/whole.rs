//! Copies that are done as a whole: the trailer of the manifest has one stamp of all entries, as
//! each of them has [one of its own](crate::stamp). While both ends still give that stamp, all is
//! done, and only `stat` was called for each entry.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_edit::journal::check;
use bc_fs::dirfd::{self, OpenDirs};
use bc_fs::path::split;
use bc_integrity::meta_of;
use bc_manifest::integrity::{Meta, Policy, Reader, Scope, read_seal};
use bc_pool::{Cursor, WorkerBatches};
use bc_walk::FileKind;
use rustix::io::Errno;
use serde_json::{Map, Value};

use super::About;
use super::plan::{ManifestPlan, early_plan};
use crate::event::{EntryReport, Why};
use crate::job::Job;
use crate::lock;
use crate::meta::stat_at;
use crate::results::{EntryOutcome, EntryState, Proof, Rows, Unlisted};
use crate::resume::stamp::{Lasting, Stamp, of_text, push_state};
use crate::sources::{RootItem, WalkedDir};
use crate::worker::{Worker, run_workers};

/// Key of the stamp in a trailer.
const KEY: &str = "copy_stamp";

/// Prefix that identifies the kind of stamp: another one has another meaning.
const KIND: &[u8] = b"bc copy of all 1\n";

/// Bytes at the end of a manifest that contain its last line.
const TAIL: u64 = 4096;

/// Entries that a worker looks at in one go.
const BATCH: usize = 512;

/// Directories that a worker holds open.
const KEPT: usize = 8;

/// Returns the trailer's stamp of all entries: nothing unless each of them is proven.
pub(super) fn trailer(
    worker: &mut Worker<'_>,
    plan: &ManifestPlan,
    rows: &Rows,
    unlisted: &[Unlisted],
    lasting: Lasting,
) -> Map<String, Value> {
    let job = worker.job;
    let mut extra = Map::new();
    let proven = unlisted.is_empty() && job.is_complete() && all_proven(job, rows);
    let metas: Option<Vec<Meta>> = match proven {
        true => (0..job.plan.tree.len())
            .map(|at| rows.meta(RootItem(at)))
            .collect(),
        false => None,
    };
    let session = match lasting {
        Lasting::Durable => None,
        Lasting::Mounted => match job.site.session {
            Some(session) => Some(session),
            None => return extra,
        },
    };
    if let Some(body) = metas.and_then(|metas| body(worker, plan, &metas)) {
        let stamp = of_text(KIND, session.as_ref(), body.as_bytes());
        let mut text = Vec::new();
        bc_digest::push_hex(&mut text, &stamp);
        let text = String::from_utf8_lossy(&text).into_owned();
        extra.insert(KEY.to_owned(), Value::String(text));
    }
    extra
}

/// True if each entry has all that its source had when it was walked, and a later change of the
/// source shows.
fn all_proven(job: &Job<'_>, rows: &Rows) -> bool {
    job.plan.tree.items().all(|item| {
        let is_there = matches!(rows.state(item), EntryState::Copied | EntryState::Before);
        let walked = job.plan.tree.stat(item);
        let is_file = job.plan.tree.kind(item) == FileKind::File;
        is_there
            && rows.failure(item).is_none()
            && walked.is_some_and(|walked| job.was_settled(&walked.stamp))
            && (!is_file || rows.proof(item) != Proof::None)
    })
}

/// Returns a digest over both ends of all entries; `None` where `stat` proves nothing.
fn body(worker: &mut Worker<'_>, plan: &ManifestPlan, copies: &[Meta]) -> Option<Digest> {
    const PIECE: usize = 64 << 10;
    let job = worker.job;
    let mut hasher = Hasher::new(Algorithm::Blake3);
    let mut text = Vec::with_capacity(PIECE + 4096);
    let push_bytes = |text: &mut Vec<u8>, bytes: &[u8]| {
        text.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        text.extend_from_slice(bytes);
    };
    let algorithm = job.plan.options.algorithm?;
    push_bytes(&mut text, algorithm.name().as_bytes());
    text.extend_from_slice(&job.plan.order.given.to_le_bytes());
    push_bytes(&mut text, &plan.below);
    for root in &job.plan.tree.roots {
        push_bytes(&mut text, &root.name);
    }
    let mut dev = None;
    let mut path = Vec::new();
    for (at, copy) in copies.iter().enumerate() {
        let item = RootItem(at as u32);
        let (listing, id) = job.plan.tree.entry(item)?;
        let source = listing.stat(id)?;
        let name = worker.proving(item, source.id, copy.ino)?;
        if dev != Some(source.id.dev) {
            dev = Some(source.id.dev);
            push_bytes(&mut text, name.as_bytes());
        }
        let mut copy = *copy;
        if listing.name(id).to_bytes() == b"." {
            job.plan.tree.write_target(item, &mut path);
            if path == plan.below {
                // The manifest has got its name in it since.
                (copy.ctime_ns, copy.size) = (0, 0);
                if !job.plan.options.preserve.times {
                    copy.mtime_ns = 0;
                }
            }
        }
        push_state(&mut text, &meta_of(&source));
        push_state(&mut text, &copy);
        if text.len() >= PIECE {
            hasher.update(&text);
            text.clear();
        }
    }
    hasher.update(&text);
    Some(hasher.finalize())
}

/// True if the copy is done as a whole; records that of each entry then.
fn all_is_done(job: &Job<'_>, plan: &ManifestPlan) -> bool {
    let is_asked = job.plan.options.on_conflict.is_to_have_all()
        && !job.plan.options.restart
        && job.plan.went_on.is_none()
        && job.has_manifest()
        && job.plan.tree.is_all_read();
    let Some(stamp) = is_asked.then(|| at_the_end(plan)).flatten() else {
        return false;
    };
    let is_sealed = || is_sealed(job, plan, &stamp);
    let found = std::thread::scope(|scope| {
        let several = job.plan.options.workers > 1;
        let seal = several.then(|| Builder::new().spawn_scoped(scope, is_sealed).ok());
        let found = look_at_all(job)?;
        let is_sealed = match seal.flatten() {
            Some(seal) => seal.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // With one thread, or where the system refuses another one.
            None => is_sealed(),
        };
        is_sealed.then_some(found)
    });
    let Some(found) = found else {
        return false;
    };
    let mut worker = Worker::new(job);
    let Some(body) = body(&mut worker, plan, &found) else {
        return false;
    };
    let is_stamp = |session| of_text(KIND, session, body.as_bytes()) == stamp;
    let session = job.site.session.as_ref();
    let is_same = is_stamp(None) || session.is_some_and(|session| is_stamp(Some(session)));
    if !is_same || !worker.root_has_xattrs(&plan.below) || job.is_over() {
        return false;
    }
    take_down(job, found);
    true
}

/// Reads the stamp in the last line of a manifest, whatever is before it.
fn at_the_end(plan: &ManifestPlan) -> Option<Stamp> {
    let mut file = open(plan)?;
    let end = file.seek(SeekFrom::End(0)).ok()?;
    file.seek(SeekFrom::Start(end.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    let tail = tail.strip_suffix(b"\n")?;
    let start = tail.iter().rposition(|byte| *byte == b'\n')?;
    stamp_of(&serde_json::from_slice(&tail[start + 1..]).ok()?)
}

fn stamp_of(keys: &Map<String, Value>) -> Option<Stamp> {
    let digest = Digest::from_hex(keys.get(KEY)?.as_str()?.as_bytes())?;
    digest.as_bytes().try_into().ok()
}

fn open(plan: &ManifestPlan) -> Option<File> {
    let file = plan.open().ok()??;
    // A file that another user may have written proves nothing.
    matches!(check(&file), Ok(Ok(_))).then_some(file)
}

/// True if the manifest is whole, and is the one that this copy would write.
fn is_sealed(job: &Job<'_>, plan: &ManifestPlan, stamp: &Stamp) -> bool {
    let header = open(plan).and_then(|file| {
        let reader = Reader::new(BufReader::new(file), Policy::Strict).ok()?;
        Some(reader.header().clone())
    });
    let sealed = open(plan).and_then(|file| {
        let keys = read_seal(BufReader::with_capacity(1 << 18, file)).ok()?;
        stamp_of(&keys)
    });
    let Some(header) = header.filter(|_| sealed == Some(*stamp)) else {
        return false;
    };
    let scope = match header.scope.is_null() {
        true => None,
        false => match Scope::from_json(&header.scope) {
            Some(scope) => Some(scope),
            None => return false,
        },
    };
    let ours = About {
        job,
        plan,
        rows: &Rows::default(),
        unlisted: &[],
        beside: &[],
    }
    .header(Some(&scope))
    .0;
    (&ours.scope, &ours.root, &ours.algorithm) == (&header.scope, &header.root, &header.algorithm)
}

/// Calls `stat` on all entries at the destination; `None` if any is missing, or on another file
/// system.
fn look_at_all(job: &Job<'_>) -> Option<Vec<Meta>> {
    let entries = job.plan.tree.len() as usize;
    let all = Mutex::new(vec![Meta::default(); entries]);
    let missing = Mutex::new(false);
    let workers = job.plan.options.workers.min(entries.div_ceil(BATCH)).max(1);
    let cursor = Cursor::with_batch(entries, workers, BATCH, BATCH);
    let ran = run_workers([job], workers, &|| cursor.remaining(), |handle| {
        let mut look = DestinationLook::new(job);
        let mut metas = Vec::with_capacity(BATCH);
        let mut batches = WorkerBatches::new(handle);
        while let Some(batch) = batches.next(&cursor) {
            metas.clear();
            for at in batch.clone() {
                let is_missing = || *lock(&missing);
                match look.at(RootItem(at as u32)) {
                    Ok(Some(meta)) => metas.push(meta),
                    _ => *lock(&missing) = true,
                }
                if job.is_over() || (at == batch.start && is_missing()) {
                    return;
                }
            }
            if metas.len() == batch.len() {
                let mut all = lock(&all);
                all[batch].copy_from_slice(&metas);
            }
        }
    });
    let is_missing = missing.into_inner().unwrap_or_else(PoisonError::into_inner);
    let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    (ran.is_ok() && !is_missing && !job.is_over()).then_some(all)
}

/// One worker's directories at the destination.
struct DestinationLook<'a, 'j> {
    job: &'a Job<'j>,
    path: Vec<u8>,
    dirs: OpenDirs<WalkedDir, Rc<OwnedFd>>,
}

impl<'a, 'j> DestinationLook<'a, 'j> {
    fn new(job: &'a Job<'j>) -> DestinationLook<'a, 'j> {
        DestinationLook {
            job,
            path: Vec::new(),
            dirs: OpenDirs::new(KEPT),
        }
    }

    /// Returns the metadata of an entry there; `None` where it is on another file system than the
    /// top.
    fn at(&mut self, item: RootItem) -> Result<Option<Meta>, Errno> {
        let tree = &self.job.plan.tree;
        let (nth, root) = tree.root(item);
        let (listing, id) = tree.entry(item).ok_or(Errno::INVAL)?;
        let name = listing.name(id);
        let top = &self.job.plan.top.fd;
        let is_root = name.to_bytes() == b"." || root.source.stat.kind() != FileKind::Dir;
        let now = if is_root {
            tree.write_target(item, &mut self.path);
            match split(&self.path) {
                (b"", b"") => stat_at(top, c".")?,
                (dir, name) => {
                    let dir = dirfd::open_below(top.as_fd(), dir).map_err(Errno::from)?;
                    stat_at(&dir, name)?
                }
            }
        } else {
            let (root, id) = (nth, listing.dir(id));
            let dir = self.dir(WalkedDir { root, id }, item)?;
            stat_at(&dir, name)?
        };
        Ok((now.id.dev == self.job.plan.top.id.dev).then(|| meta_of(&now)))
    }

    fn dir(&mut self, walked: WalkedDir, item: RootItem) -> Result<Rc<OwnedFd>, Errno> {
        if let Some(dir) = self.dirs.find(|known| *known == walked) {
            return Ok(Rc::clone(dir));
        }
        let (job, path, dirs) = (self.job, &mut self.path, &mut self.dirs);
        job.plan.tree.write_target(item, path);
        let open =
            || dirfd::open_below(job.plan.top.fd.as_fd(), split(path).0).map_err(Errno::from);
        let let_go = || {
            dirs.clear();
        };
        let dir = Rc::new(job.open_waiting(open, let_go)?);
        self.dirs.keep(walked, None, Rc::clone(&dir));
        Ok(dir)
    }
}

/// Records all entries as done by an earlier run.
fn take_down(job: &Job<'_>, found: Vec<Meta>) {
    let items = || job.plan.tree.items();
    let mut bytes = 0;
    for item in items() {
        match job.plan.tree.kind(item) {
            FileKind::Dir => continue,
            FileKind::File => bytes += job.plan.tree.size(item),
            _ => {}
        }
        job.report(item, EntryReport::Skipped(Why::Done));
    }
    job.means.progress.bytes.fetch_add(bytes, Relaxed);
    let outcomes = items().zip(found).map(|(item, meta)| EntryOutcome {
        item,
        state: EntryState::Before,
        meta: Some(meta),
        digest: None,
        proof: Proof::Kept,
    });
    job.done(outcomes.collect());
}

/// True if an earlier run has done all of it; nothing else is reported then.
pub(crate) fn is_done(job: &Job<'_>) -> bool {
    if job.plan.known.len() > 0 {
        // The work of an interrupted run may be in no manifest.
        return false;
    }
    let first = job.plan.tree.roots.first().map(|root| &root.source);
    let plan = first.and_then(|first| early_plan(job.plan.options, &job.plan.top, first));
    let is_done = plan.is_some_and(|plan| all_is_done(job, &plan));
    job.site.was_done.store(is_done, Relaxed);
    is_done
}
