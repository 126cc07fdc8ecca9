//! Digests of a tree's files, delivered in path order while the rest is still
//! being read.
//!
//! Entries are cut into windows. All workers read from one plan that runs
//! through the windows in order, without a barrier between them; the caller's
//! thread takes each window when its last file is done. So lanes stay full,
//! a huge file holds back results but not reading, and memory is a digest per
//! file that was read ahead, and its stat where that differs from the walk's
//! or the walk left it to the reading.
//!
//! This is not [`bc_pool::ordered`], which gives all results at once when the last is made, by
//! workers of its own: here each window is taken while later ones are read, and the workers are
//! those of the pump, which fill lanes across windows.

use std::ops::{ControlFlow, Range};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use bc_digest::Digest;
use bc_pool::Cancel;
use bc_read::Plan;
use bc_read::order::ReadOrder;
use bc_walk::job::{Error, ErrorKind};
use bc_walk::{EntryId, FileStat, Listing};

use crate::engine::hash_with;
use crate::options::{DigestSink, HashOptions, HashProgress, Totals};

/// Entries in a window: few enough that little is left to merge when the last file is read, and
/// enough small ones for a large file to be read beside.
pub(crate) const WINDOW: u32 = 8192;

/// Files from this size on come first in their window, so that none of them
/// is left for the end.
const LARGE: u64 = 256 << 10;

/// Up to this many files, which are one window as a rule, are read and then written: a thread of
/// its own for them would cost more than their results take to write.
const FEW: usize = 64;

/// Interval between the checks for a cancellation of a caller that waits.
const GLANCE: Duration = Duration::from_millis(20);

/// The results of one window's files.
#[derive(Debug)]
pub struct HashedWindow {
    start: u32,
    stride: usize,
    left: usize,
    /// Results by entry. Empty before the first result, as the digests are.
    have: Vec<Have>,
    digests: Vec<u8>,
    /// Metadata by entry. Empty before the first one that is not the walked one.
    stats: Vec<FileStat>,
    errors: Vec<(EntryId, bc_walk::Error)>,
}

/// Results that a window has of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Have {
    Nothing,
    /// The digest; the walk's stat is right.
    Digest,
    /// Digest and stat.
    Both,
}

/// Result of one file.
#[derive(Debug)]
pub enum HashOutcome<'a> {
    /// The bytes of the digests, one after the other in the order of the algorithms, and the stat of
    /// the descriptor read if it is not the walked one.
    Digest(&'a [u8], Option<&'a FileStat>),
    /// The file could not be read.
    Failed(&'a bc_walk::Error),
    /// The entry is none of those that were wanted.
    NotRead,
}

impl HashedWindow {
    fn new(range: &Range<u32>, stride: usize, left: usize) -> HashedWindow {
        HashedWindow {
            start: range.start,
            stride,
            left,
            have: Vec::new(),
            digests: Vec::new(),
            stats: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Returns the result of an entry of the window.
    pub fn outcome(&self, entry: EntryId) -> HashOutcome<'_> {
        let at = (entry.0 - self.start) as usize;
        let have = self.have.get(at).copied().unwrap_or(Have::Nothing);
        if have != Have::Nothing {
            let stat = (have == Have::Both).then(|| &self.stats[at]);
            return HashOutcome::Digest(&self.digests[at * self.stride..][..self.stride], stat);
        }
        match self
            .errors
            .binary_search_by_key(&entry, |(entry, _)| *entry)
        {
            Ok(found) => HashOutcome::Failed(&self.errors[found].1),
            Err(_) => HashOutcome::NotRead,
        }
    }

    /// Adds the digests of a file; `newer` is the stat if it is not the walked one.
    fn put(&mut self, entry: EntryId, len: usize, digests: &[u8], newer: Option<&FileStat>) {
        if self.have.is_empty() {
            self.have = vec![Have::Nothing; len];
            self.digests = vec![0; len * self.stride];
        }
        let at = (entry.0 - self.start) as usize;
        self.have[at] = Have::Digest;
        self.digests[at * self.stride..][..self.stride].copy_from_slice(digests);
        if let Some(stat) = newer {
            if self.stats.is_empty() {
                self.stats = vec![stat.clone(); len];
            }
            self.have[at] = Have::Both;
            self.stats[at] = stat.clone();
        }
    }

    fn sort(&mut self) {
        self.errors.sort_unstable_by_key(|(entry, _)| *entry);
    }
}

/// Results of files that were read before the windows are, by one algorithm: a time limit orders
/// those in its own way.
#[derive(Debug, Default)]
pub struct EarlierResults(Vec<(EntryId, EarlierResult)>);

/// As a window has it, in less memory where the stat is the walked one, as it nearly always is.
type EarlierResult = Result<(Digest, Option<Box<FileStat>>), bc_walk::Error>;

impl EarlierResults {
    /// Reads the files of `plan`, by the first algorithm of the options.
    ///
    /// # Errors
    /// As of [`hash_with`].
    pub fn read(
        &mut self,
        listing: &Listing,
        plan: &Plan,
        options: &HashOptions,
        cancel: &Cancel,
        progress: &HashProgress,
    ) -> Result<Totals, Error> {
        let sink = |_| ToEarlier {
            listing,
            read: EarlierResults::default(),
        };
        let (sinks, totals) = hash_with(listing, plan, options, cancel, progress, sink)?;
        self.0
            .extend(sinks.into_iter().flat_map(|sink| sink.read.0));
        Ok(totals)
    }

    /// Returns the files that were read.
    pub fn ids(&self) -> impl Iterator<Item = EntryId> {
        self.0.iter().map(|(entry, _)| *entry)
    }
}

/// A worker's way to the earlier results.
struct ToEarlier<'a> {
    listing: &'a Listing,
    read: EarlierResults,
}

impl DigestSink for ToEarlier<'_> {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), bc_walk::Error>) {
        let result = match result {
            // One algorithm was asked for.
            Ok((stat, digests)) => match digests.first() {
                Some(digest) => {
                    let newer = newer(self.listing, entry, stat);
                    Ok((*digest, newer.cloned().map(Box::new)))
                }
                None => return,
            },
            Err(error) => Err(error),
        };
        self.read.0.push((entry, result));
    }
}

/// Returns the stat of the descriptor that was read, if it is not the walked one.
fn newer<'s>(listing: &Listing, entry: EntryId, stat: &'s FileStat) -> Option<&'s FileStat> {
    // A listing does not keep the blocks.
    let blocks = stat.blocks;
    let walked = listing.stat(entry);
    let is_walked = walked.is_some_and(|walked| FileStat { blocks, ..walked } == *stat);
    (!is_walked).then_some(stat)
}

/// Results of all windows, shared by the workers and the thread that waits.
struct ReorderBuffer<'a> {
    listing: &'a Listing,
    /// Bytes of the digests of a file.
    stride: usize,
    state: Mutex<Windows>,
    ready: Condvar,
}

struct Windows {
    windows: Vec<HashedWindow>,
    /// True once no more results will come.
    over: bool,
}

impl ReorderBuffer<'_> {
    /// Takes the results that a worker has gathered, and leaves it with none.
    fn take(&self, gathered: &mut Gathered) {
        if gathered.files.is_empty() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut complete = false;
        let mut digests = &gathered.digests[..];
        for (entry, result) in gathered.files.drain(..) {
            let nth = (entry.0 / WINDOW) as usize;
            let window = &mut state.windows[nth];
            match result {
                Ok(newer) => {
                    let len = range_of(nth, self.listing.len()).len();
                    let own;
                    (own, digests) = digests.split_at(self.stride);
                    window.put(entry, len, own, newer.as_ref());
                }
                Err(error) => window.errors.push((entry, error)),
            }
            window.left -= 1;
            if window.left == 0 {
                window.sort();
                complete = true;
            }
        }
        drop(state);
        gathered.digests.clear();
        if complete {
            self.ready.notify_one();
        }
    }
}

impl ReorderBuffer<'_> {
    /// Runs `fill`, which fills the reorder buffer. However it ends, by a panic too, the waiting
    /// thread learns that no more results come.
    fn filled_by<T>(&self, fill: impl FnOnce() -> T) -> T {
        struct Ending<'a, 'b>(&'a ReorderBuffer<'b>);
        impl Drop for Ending<'_, '_> {
            fn drop(&mut self) {
                let state = &self.0.state;
                state.lock().unwrap_or_else(PoisonError::into_inner).over = true;
                self.0.ready.notify_one();
            }
        }
        let _ending = Ending(self);
        fill()
    }
}

struct StopOnDrop<'a>(&'a Cancel);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel(1);
    }
}

/// Files whose results a worker shares with the others at once, or fewer if they have so many
/// bytes: with a lock for each small file, many workers would wait.
const TOGETHER: usize = 64;
const TOGETHER_BYTES: u64 = 8 << 20;

/// Results that a worker has not shared yet: of each file its stat, if that is not the walked one; and
/// the bytes of all digests.
#[derive(Default)]
struct Gathered {
    files: Vec<(EntryId, Result<Option<FileStat>, bc_walk::Error>)>,
    digests: Vec<u8>,
}

/// A worker's access to the reorder buffer.
struct ToReorderBuffer<'a> {
    buffer: &'a ReorderBuffer<'a>,
    gathered: Gathered,
    bytes: u64,
}

impl<'a> ToReorderBuffer<'a> {
    fn new(buffer: &'a ReorderBuffer<'a>) -> ToReorderBuffer<'a> {
        ToReorderBuffer {
            buffer,
            gathered: Gathered {
                files: Vec::with_capacity(TOGETHER),
                digests: Vec::with_capacity(TOGETHER * buffer.stride),
            },
            bytes: 0,
        }
    }
}

impl DigestSink for ToReorderBuffer<'_> {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), bc_walk::Error>) {
        let Gathered { files, digests } = &mut self.gathered;
        let result = result.map(|(stat, all)| {
            self.bytes = self.bytes.saturating_add(stat.stamp.size);
            for digest in all {
                digests.extend_from_slice(digest.as_bytes());
            }
            newer(self.buffer.listing, entry, stat).cloned()
        });
        files.push((entry, result));
        if files.len() >= TOGETHER || self.bytes >= TOGETHER_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        self.bytes = 0;
        self.buffer.take(&mut self.gathered);
    }
}

fn range_of(nth: usize, len: usize) -> Range<u32> {
    let start = nth as u32 * WINDOW;
    start..(start + WINDOW).min(len as u32)
}

/// Reads the files of `listing` for which `wanted` holds and passes the windows to `take`, in order
/// and each exactly once, until it returns [`ControlFlow::Break`]. Windows without any wanted file come
/// too.
///
/// # Errors
/// Of `take`; if it was cancelled; as of [`hash_with`].
pub fn hash_in_order(
    listing: &Listing,
    wanted: impl Fn(EntryId) -> bool,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
    take: impl FnMut(Range<u32>, &HashedWindow) -> Result<ControlFlow<()>, Error>,
) -> Result<Totals, Error> {
    let earlier = EarlierResults::default();
    hash_in_order_after(earlier, listing, wanted, options, cancel, progress, take)
}

/// As [`hash_in_order`], with the results of what was read before, which is not read again.
///
/// # Errors
/// As of `hash_in_order`.
pub fn hash_in_order_after(
    earlier: EarlierResults,
    listing: &Listing,
    wanted: impl Fn(EntryId) -> bool,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
    mut take: impl FnMut(Range<u32>, &HashedWindow) -> Result<ControlFlow<()>, Error>,
) -> Result<Totals, Error> {
    read_windows(
        earlier, listing, &wanted, options, cancel, progress, &mut take,
    )
}

/// Recipient of the windows, which ends the reading by [`ControlFlow::Break`].
type TakeWindow<'a> = dyn FnMut(Range<u32>, &HashedWindow) -> Result<ControlFlow<()>, Error> + 'a;

/// Reads for [`hash_in_order_after`]; compiled once, and not for the closures of each caller.
fn read_windows(
    EarlierResults(mut earlier): EarlierResults,
    listing: &Listing,
    wanted: &dyn Fn(EntryId) -> bool,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
    take: &mut TakeWindow<'_>,
) -> Result<Totals, Error> {
    earlier.sort_unstable_by_key(|(entry, _)| *entry);
    let is_read = |id: &EntryId| {
        earlier
            .binary_search_by_key(id, |(entry, _)| *entry)
            .is_ok()
    };
    let lengths = options.algorithms.iter().map(|one| one.digest_len());
    let stride = lengths.sum();
    let count = listing.len().div_ceil(WINDOW as usize);
    let mut order = Vec::new();
    let mut ends = Vec::with_capacity(count);
    let mut windows = Vec::with_capacity(count);
    let mut seeks = false;
    for nth in 0..count {
        let range = range_of(nth, listing.len());
        let begun = order.len();
        let files = range.clone().map(EntryId).filter(|&id| wanted(id));
        order.extend(files.filter(|id| !is_read(id)));
        match bc_read::order::for_disk(listing, &mut order[begun..], cancel) {
            // No thread may be left with a large file at the end.
            ReadOrder::Paths => large_first(listing, &mut order[begun..]),
            ReadOrder::Inodes => {}
            ReadOrder::Places => seeks = true,
        }
        windows.push(HashedWindow::new(&range, stride, order.len() - begun));
        ends.push(order.len());
    }
    let mut earlier = earlier.into_iter().peekable();
    let mut take = |range: Range<u32>, mut window: HashedWindow| {
        while let Some((entry, result)) = earlier.next_if(|(entry, _)| entry.0 < range.end) {
            match result {
                Ok((digest, newer)) => {
                    window.put(entry, range.len(), digest.as_bytes(), newer.as_deref());
                }
                Err(error) => window.errors.push((entry, error)),
            }
        }
        window.sort();
        take(range, &window)
    };
    let buffer = ReorderBuffer {
        listing,
        stride,
        state: Mutex::new(Windows {
            windows,
            over: false,
        }),
        ready: Condvar::new(),
    };
    if options.workers <= 1 || order.len() <= FEW {
        return alone(&buffer, order, &ends, options, cancel, progress, take);
    }
    let stop = Cancel::new();
    let plan = match seeks {
        true => Plan::in_turn(order, options.workers),
        false => Plan::new(order, options.workers),
    };
    std::thread::scope(|scope| {
        let (buffer, stop) = (&buffer, &stop);
        let reading = std::thread::Builder::new()
            .name("read".into())
            .spawn_scoped(scope, move || {
                buffer.filled_by(|| {
                    hash_with(listing, &plan, options, stop, progress, |_| {
                        ToReorderBuffer::new(buffer)
                    })
                })
            });
        let reading = reading
            .map_err(|error| Error::new(ErrorKind::Io, format!("starting a thread: {error}")))?;
        // Any end of this thread's part, a panic too, ends the reading, which is waited for.
        let reading_ends = StopOnDrop(stop);
        let mut result = Ok(());
        for nth in 0..count {
            let taken = wait_for(buffer, nth, cancel, stop)
                .and_then(|window| take(range_of(nth, listing.len()), window));
            match taken {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        drop(reading_ends);
        match reading.join() {
            Ok(totals) => {
                let (_, totals) = totals?;
                result.map(|()| totals)
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Blocks until all files of window `nth` are done.
fn wait_for(
    buffer: &ReorderBuffer<'_>,
    nth: usize,
    cancel: &Cancel,
    stop: &Cancel,
) -> Result<HashedWindow, Error> {
    let cancelled = || Error::cancelled();
    let mut state = buffer.state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(reason) = cancel.reason() {
            stop.cancel(reason);
            return Err(cancelled());
        }
        if state.windows[nth].left == 0 {
            let empty = HashedWindow::new(&(0..0), 0, 0);
            return Ok(std::mem::replace(&mut state.windows[nth], empty));
        }
        if state.over {
            // A worker panicked: the join reports it.
            return Err(cancelled());
        }
        let waited = buffer.ready.wait_timeout(state, GLANCE);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Works without a second thread: a window is read, then taken.
fn alone(
    buffer: &ReorderBuffer<'_>,
    order: Vec<EntryId>,
    ends: &[usize],
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
    mut take: impl FnMut(Range<u32>, HashedWindow) -> Result<ControlFlow<()>, Error>,
) -> Result<Totals, Error> {
    let mut totals = Totals::default();
    let mut begun = 0;
    for (nth, &end) in ends.iter().enumerate() {
        if begun < end {
            let plan = Plan::new(order[begun..end].to_vec(), options.workers);
            let sink = |_| ToReorderBuffer::new(buffer);
            let (_, read) = hash_with(buffer.listing, &plan, options, cancel, progress, sink)?;
            totals.merge(read);
            begun = end;
        }
        let window = wait_for(buffer, nth, cancel, &Cancel::new())?;
        if take(range_of(nth, buffer.listing.len()), window)?.is_break() {
            break;
        }
    }
    Ok(totals)
}

/// Puts large files first, largest first, then the others as they are. Where the walk left the
/// sizes to the reading, all stay as they are: a call for each would cost more than the lanes that
/// may run empty at the end.
fn large_first(listing: &Listing, order: &mut [EntryId]) {
    if order.first().is_none_or(|&id| listing.meta(id).is_none()) {
        return;
    }
    let size = |id: &EntryId| listing.meta(*id).map_or(0, |meta| meta.stamp.size);
    order.sort_by_cached_key(|id| {
        let size = size(id);
        std::cmp::Reverse(if size >= LARGE { size } else { 0 })
    });
}

#[cfg(test)]
mod tests {
    use bc_digest::Algorithm;

    use super::*;

    fn listing() -> (bc_testkit::TestTree, Listing) {
        let tree = bc_testkit::TestTree::new();
        for name in ["a", "b", "c"] {
            tree.write(name, name);
        }
        let roots = [tree.path().as_os_str().to_owned()];
        let options = bc_walk::WalkOptions::default();
        let listing = bc_walk::walk(&roots, &options, 1, &Cancel::new()).unwrap();
        (tree, listing)
    }

    fn caught<T>(job: impl FnOnce() -> T) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_err()
    }

    /// A worker takes the lock for many small files together, but does not make others wait for a
    /// large one.
    #[test]
    fn results_are_shared_in_batches() {
        let tree = bc_testkit::TestTree::new();
        for i in 0..100 {
            tree.write(format!("{i:02}"), "x");
        }
        let roots = [tree.path().as_os_str().to_owned()];
        let options = bc_walk::WalkOptions::default().metadata(bc_walk::Metadata::Full);
        let listing = bc_walk::walk(&roots, &options, 1, &Cancel::new()).unwrap();
        let buffer = ReorderBuffer {
            listing: &listing,
            stride: 8,
            state: Mutex::new(Windows {
                windows: vec![HashedWindow::new(&(0..100), 8, 100)],
                over: false,
            }),
            ready: Condvar::new(),
        };
        let left = || buffer.state.lock().unwrap().windows[0].left;
        let digest = bc_digest::hash(Algorithm::Xxh3, b"x");
        let mut sink = ToReorderBuffer::new(&buffer);
        let mut put = |entry, size| {
            let mut stat = listing.stat(EntryId(entry)).unwrap();
            stat.stamp.size = size;
            sink.file(EntryId(entry), Ok((&stat, &[digest])));
        };
        (0..63).for_each(|entry| put(entry, 1));
        assert_eq!(left(), 100);
        put(63, 1);
        assert_eq!(left(), 36);
        put(64, TOGETHER_BYTES);
        assert_eq!(left(), 35);
        (65..100).for_each(|entry| put(entry, 1));
        assert_eq!(left(), 35);
        sink.hand_over();
        sink.hand_over();
        let window = &buffer.state.lock().unwrap().windows[0];
        assert_eq!(window.left, 0);
        let outcomes = (0..100).map(|entry| window.outcome(EntryId(entry)));
        for outcome in outcomes {
            assert!(matches!(outcome, HashOutcome::Digest(bytes, _) if bytes == digest.as_bytes()));
        }
    }

    #[test]
    fn a_panic_of_the_reading_side_is_no_hang() {
        let (_tree, listing) = listing();
        let buffer = ReorderBuffer {
            listing: &listing,
            stride: 1,
            state: Mutex::new(Windows {
                windows: vec![HashedWindow::new(&(0..3), 1, 3)],
                over: false,
            }),
            ready: Condvar::new(),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| caught(|| buffer.filled_by(|| panic!("as a test"))));
            let waited = wait_for(&buffer, 0, &Cancel::new(), &Cancel::new());
            assert!(waited.is_err());
        });
    }

    #[test]
    fn a_panic_of_the_taking_side_ends_the_reading() {
        let (_tree, listing) = listing();
        let options = HashOptions::new(vec![Algorithm::Sha256]).workers(2);
        let (cancel, progress) = (Cancel::new(), HashProgress::default());
        let taken = |_: Range<u32>, _: &HashedWindow| panic!("as a test");
        let job =
            || hash_in_order(&listing, |_| true, &options, &cancel, &progress, taken).map(drop);
        assert!(caught(job));
    }
}
