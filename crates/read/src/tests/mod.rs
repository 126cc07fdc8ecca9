//! The pump against files: one consumer that checks the contract, and every
//! backend through the same tests.

mod contents;
mod contract;
mod fresh;
mod hostile;
mod refused;
mod seeks;
mod shares;
mod short_reads;
mod verify;

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bc_pool::{Cancel, Waiting};
use bc_testkit::{TestTree, left_out};
use bc_walk::{EntryId, Error, Listing, Metadata};

use crate::{
    Choice, Consumer, Feed, Opened, Plan, ReadOptions, ReadStats, VerifyWhen, Want, pump,
    uring_available,
};

/// Pretended residency for `Choice::Auto` on this thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pretend {
    /// No pretence.
    Nothing,
    /// Nothing is resident.
    Cold,
    /// Every other file or chunk is not resident.
    Mixed,
    /// The file system cannot report residency, and is fast.
    Unknown,
    /// The file system cannot report residency, and is slow.
    UnknownSlow,
    /// The file system cannot report residency, and is slow because it decompresses.
    Decompresses,
}

thread_local! {
    static CLOCK_AHEAD_NS: Cell<i64> = const { Cell::new(0) };
    static NO_LEASE: Cell<bool> = const { Cell::new(false) };
    static PRETEND: Cell<(Pretend, u32)> = const { Cell::new((Pretend::Nothing, 0)) };
}

/// Returns the answer for the queue before it tries what is resident.
pub(crate) fn pretends_miss() -> bool {
    let (pretend, asked) = PRETEND.get();
    PRETEND.set((pretend, asked.wrapping_add(1)));
    match pretend {
        Pretend::Nothing | Pretend::Unknown | Pretend::UnknownSlow | Pretend::Decompresses => false,
        Pretend::Cold => true,
        Pretend::Mixed => asked % 2 == 1,
    }
}

/// Returns the answer for a read that would not wait.
pub(crate) fn pretends_unknown() -> bool {
    matches!(
        PRETEND.get().0,
        Pretend::Unknown | Pretend::UnknownSlow | Pretend::Decompresses
    )
}

/// Returns the answer for the question what a file system waits for.
pub(crate) fn pretends_decompression() -> bool {
    PRETEND.get().0 == Pretend::Decompresses
}

/// Returns the time that is added to plain reads.
pub(crate) fn pretended_latency() -> Duration {
    match PRETEND.get().0 {
        Pretend::UnknownSlow | Pretend::Decompresses => Duration::from_millis(5),
        _ => Duration::ZERO,
    }
}

/// Returns the nanoseconds by which the clock for fresh files is ahead on this thread.
pub(crate) fn clock_ahead_ns() -> i64 {
    CLOCK_AHEAD_NS.get()
}

/// True if the system gives no leases on this thread.
pub(crate) fn pretends_no_lease() -> bool {
    NO_LEASE.get()
}

fn pretend(pretend: Pretend) {
    PRETEND.set((pretend, 0));
}

/// Runs a test with every way of reading that this system has.
fn each_backend(mut test: impl FnMut(Choice)) {
    test(Choice::Sync);
    for what in [
        Pretend::Nothing,
        Pretend::Cold,
        Pretend::Mixed,
        Pretend::Unknown,
        Pretend::UnknownSlow,
        Pretend::Decompresses,
    ] {
        pretend(what);
        test(Choice::Auto);
    }
    pretend(Pretend::Nothing);
    match uring_available() {
        Ok(()) => test(Choice::Uring),
        Err(error) => left_out(&error.to_string()),
    }
}

fn options(backend: Choice) -> ReadOptions {
    ReadOptions {
        backend,
        ..ReadOptions::default()
    }
}

/// Returns a listing of exactly these files.
fn list(paths: &[PathBuf], metadata: Metadata) -> Listing {
    use std::os::unix::ffi::OsStrExt;
    let paths: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| path.as_os_str().as_bytes().to_vec())
        .collect();
    let options = bc_walk::WalkOptions::default().metadata(metadata);
    let listing = bc_walk::list_files(&paths, &options, 1, &Cancel::new()).unwrap();
    assert!(listing.errors().is_empty(), "{:?}", listing.errors());
    listing
}

/// Walks `root`.
fn walk(root: &Path, metadata: Metadata) -> Listing {
    let options = bc_walk::WalkOptions::default().metadata(metadata);
    let root = root.as_os_str().to_owned();
    let listing = bc_walk::walk(&[root], &options, 1, &Cancel::new()).unwrap();
    assert!(listing.errors().is_empty(), "{:?}", listing.errors());
    listing
}

/// Reads all of a listing with one worker.
fn read_all(listing: &Listing, options: &ReadOptions, recorder: &mut Recorder) -> ReadStats {
    let plan = Plan::all(listing, 1);
    pump(listing, &plan, options, &Cancel::new(), recorder)
}

/// Action of a [`Recorder`]'s hook when a file's first piece is there.
type Hook<'a> = Box<dyn FnMut(&[u8]) + 'a>;

/// A consumer that keeps the bytes it is given and checks that the pump keeps its word.
struct Recorder<'a> {
    width: usize,
    want: Want,
    verify: VerifyWhen,
    slots: usize,
    /// Files as they were begun last.
    begun: HashMap<EntryId, Opened>,
    /// Files being read, by slot.
    open: HashMap<usize, Reading>,
    done: HashMap<EntryId, Result<(Opened, Vec<u8>), Error>>,
    /// Files in the order of their ends.
    order: Vec<EntryId>,
    /// Pieces of each finished file.
    pieces: HashMap<EntryId, Vec<usize>>,
    turns: usize,
    widest: usize,
    /// Reports of files that may have waited.
    waiting: Vec<Waiting>,
    /// Called with the first piece of each file before it is consumed.
    hook: Hook<'a>,
}

struct Reading {
    entry: EntryId,
    bytes: Vec<u8>,
    pieces: Vec<usize>,
    /// Presented, and not consumed: must come back the same.
    pending: Option<(Vec<u8>, bool)>,
    ended: bool,
}

impl<'a> Recorder<'a> {
    fn new(width: usize) -> Recorder<'a> {
        Recorder {
            width,
            want: Want::Whole,
            verify: VerifyWhen::Now,
            slots: 0,
            begun: HashMap::new(),
            open: HashMap::new(),
            done: HashMap::new(),
            order: Vec::new(),
            pieces: HashMap::new(),
            turns: 0,
            widest: 0,
            waiting: Vec::new(),
            hook: Box::new(|_| {}),
        }
    }

    fn with_hook(mut self, hook: impl FnMut(&[u8]) + 'a) -> Recorder<'a> {
        self.hook = Box::new(hook);
        self
    }

    /// Returns the content of each entry, all of which must have been read.
    fn contents(&self, listing: &Listing) -> Vec<Vec<u8>> {
        assert!(self.open.is_empty());
        assert_eq!(self.done.len(), listing.len());
        listing
            .ids()
            .map(|entry| match &self.done[&entry] {
                Ok((_, bytes)) => bytes.clone(),
                Err(error) => panic!("{error}"),
            })
            .collect()
    }

    fn error(&self, entry: u32) -> &Error {
        match &self.done[&EntryId(entry)] {
            Ok((_, bytes)) => panic!("{} bytes read where an error was due", bytes.len()),
            Err(error) => error,
        }
    }
}

impl Consumer for Recorder<'_> {
    fn width(&self) -> usize {
        self.width
    }

    fn reserve(&mut self, slots: usize) {
        assert_eq!(self.slots, 0, "reserved twice");
        self.slots = slots;
    }

    fn want(&mut self, _: EntryId) -> Want {
        self.want
    }

    fn verify(&self, _: EntryId) -> VerifyWhen {
        self.verify
    }

    fn waiting(&mut self, progress: Waiting) {
        self.waiting.push(progress);
    }

    fn begin(&mut self, slot: usize, opened: &Opened) {
        assert!(slot < self.slots);
        self.begun.insert(opened.entry, opened.clone());
        let reading = Reading {
            entry: opened.entry,
            bytes: Vec::new(),
            pieces: Vec::new(),
            pending: None,
            ended: false,
        };
        // Remains of files that will begin, or have begun, again.
        self.open.retain(|_, before| before.entry != opened.entry);
        let before = self.open.insert(slot, reading);
        assert!(before.is_none_or(|before| !before.ended), "slot in use");
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        assert!(!feeds.is_empty() && consumed.is_empty());
        assert!(feeds.len() <= self.width);
        self.widest = self.widest.max(feeds.len());
        for (at, feed) in feeds.iter().enumerate() {
            assert!(feeds[..at].iter().all(|other| other.slot != feed.slot));
            let reading = self.open.get_mut(&feed.slot).expect("begun");
            assert!(!reading.ended, "data after the end");
            assert!(feed.end || !feed.data.is_empty(), "an empty piece");
            match &reading.pending {
                Some((bytes, end)) => assert!(bytes == feed.data && *end == feed.end),
                None => {
                    if reading.pieces.is_empty() {
                        (self.hook)(feed.data);
                    }
                    reading.pending = Some((feed.data.to_vec(), feed.end));
                }
            }
        }
        // Not always the oldest, and not always one.
        self.turns += 1;
        let count = 1 + self.turns % feeds.len().min(3);
        for at in 0..count {
            let slot = feeds[(self.turns + at) % feeds.len()].slot;
            let reading = self.open.get_mut(&slot).expect("begun");
            let (bytes, end) = reading.pending.take().expect("presented");
            reading.pieces.push(bytes.len());
            reading.bytes.extend(bytes);
            reading.ended = end;
            consumed.push(slot);
        }
    }

    fn finish(&mut self, slot: usize, result: Result<Opened, Error>, entry: EntryId) {
        let begun = self.open.get(&slot).is_some_and(|r| r.entry == entry);
        let result = if begun {
            let reading = self.open.remove(&slot).expect("begun");
            self.pieces.insert(entry, reading.pieces);
            assert!(result.is_err() || reading.ended, "finished before its end");
            result.map(|opened| {
                assert_eq!(opened.entry, entry);
                (opened, reading.bytes)
            })
        } else {
            Err(result.expect_err("finished without begin"))
        };
        self.order.push(entry);
        assert!(self.done.insert(entry, result).is_none(), "finished twice");
    }
}

/// Returns bytes that differ everywhere, and between files.
fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 977) >> 13) as u8)
        .collect()
}

/// Makes a tree with one file of each length, in path order.
fn files(lengths: &[usize]) -> (TestTree, Vec<PathBuf>, Vec<Vec<u8>>) {
    let tree = TestTree::new();
    let mut paths = Vec::new();
    let mut contents = Vec::new();
    for (at, &len) in lengths.iter().enumerate() {
        let name = format!("{at:04}");
        let content = bytes(len, at);
        tree.write(&name, &content);
        paths.push(tree.join(&name));
        contents.push(content);
    }
    (tree, paths, contents)
}

/// Makes a file look old, so that any change shows in its times however coarse the clock of the
/// file system is. No program can set a ctime: the clock of this thread goes ahead.
fn age(path: &Path) {
    CLOCK_AHEAD_NS.set(3_600_000_000_000);
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.set_modified(long_ago).unwrap();
}
