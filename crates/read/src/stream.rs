//! One huge file: read by several threads ahead of one that consumes in order,
//! or cut into chunks that several threads work on independently.

mod readers;

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bc_fs::dirfd;
use bc_pool::Cancel;
use bc_walk::{Error, ErrorKind, FileStat};
use rustix::fs::Advice;
use rustix::io::{Errno, retry_on_intr};

use self::readers::{ReadBy, ReaderChoice};
use crate::buffer::Buffer;

/// Bytes a thread reads at a time: half of the L2 cache of a current core, and
/// some 25 µs of copying for each hand-over between threads. With 256 KiB the
/// hand-overs cost 5 % more, with 128 KiB 20 %.
const CHUNK: usize = 512 << 10;
/// Chunks between the fastest reader and the consumer, for each worker.
const AHEAD: usize = 3;
/// Chunks of a round that are timed, after as many as the window has: some 2 ms of SHA-256.
const TIMED: u64 = 8;

/// Bytes of memory that [`stream`] takes for each of its workers.
pub const STREAM_MEMORY: usize = AHEAD * CHUNK;

/// Verifies that the open `file` still has the stamp it was opened with.
///
/// # Errors
/// Kind `Changed`, or `stat` as the system gives it; the path is empty.
pub fn unchanged(file: impl AsFd, opened: &FileStat) -> Result<(), Error> {
    let now = retry_on_intr(|| rustix::fs::fstat(file.as_fd()))
        .map_err(|errno| Error::new(Vec::new(), "stat", errno))?;
    if FileStat::from(&now).stamp == opened.stamp {
        Ok(())
    } else {
        Err(Error::of_kind(Vec::new(), "read", ErrorKind::Changed))
    }
}

/// Reads the first `size` bytes of one file with up to `workers` threads and
/// hands them to `f`, on the caller's thread, in order and in pieces of up to
/// 512 KiB, so that reading and hashing overlap; where that turns out slower,
/// the caller's thread reads alone. Returns the bytes handed on: fewer than
/// `size` if the file has become shorter. The caller compares with
/// [`unchanged`].
///
/// Memory: three pieces for each worker. A cancellation is noticed with each
/// piece.
///
/// # Errors
/// `read` as the system gives it, or kind `Cancelled`; the path is empty, for
/// a descriptor has none.
///
/// # Panics
/// If `f` panics.
pub fn stream(
    file: impl AsFd,
    size: u64,
    workers: usize,
    cancel: &Cancel,
    mut f: impl FnMut(&[u8]),
) -> Result<u64, Error> {
    let file = file.as_fd();
    let total = size.div_ceil(CHUNK as u64);
    let workers = workers.clamp(1, usize::try_from(total).unwrap_or(usize::MAX).max(1));
    // Best effort: a larger read-ahead window.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Sequential);
    let ahead = if workers == 1 { 1 } else { AHEAD * workers };
    let relay = Relay::new(file, size, total, ahead).map_err(failed)?;
    std::thread::scope(|scope| {
        // Whatever happens to the consumer, the readers end.
        let _stop = StopOnDrop(&relay);
        for worker in 1..workers {
            let spawned = std::thread::Builder::new()
                .name(format!("bc-read-{worker}"))
                .spawn_scoped(scope, || relay.read_ahead());
            if spawned.is_err() {
                break;
            }
        }
        relay.consume(cancel, &mut f)
    })
}

fn failed(errno: Errno) -> Error {
    Error::new(Vec::new(), "read", errno)
}

/// Chunks on their way from the readers to the consumer.
struct Relay<'f> {
    file: BorrowedFd<'f>,
    size: u64,
    total: u64,
    state: Mutex<Window>,
    /// Signalled when a chunk has been read.
    filled: Condvar,
    /// Signalled when a buffer has become free, when all are to read again, or at the end.
    freed: Condvar,
}

struct Window {
    /// Next chunk that no thread reads yet.
    next: u64,
    /// Last in, first out: a consumer that reads alone has one, which stays in its cache.
    free: Vec<Buffer>,
    /// Chunk i, once it was read, is in place i modulo their number. There are as many as buffers,
    /// and each chunk from the consumed ones up to `next` has one of those.
    places: Vec<Option<ReadChunk>>,
    by: ReadBy,
    stop: bool,
}

struct ReadChunk {
    buffer: Buffer,
    result: Result<usize, Errno>,
}

impl<'f> Relay<'f> {
    fn new(file: BorrowedFd<'f>, size: u64, total: u64, ahead: usize) -> Result<Self, Errno> {
        let free = (0..ahead)
            .map(|_| Buffer::new(CHUNK))
            .collect::<Result<_, _>>()?;
        Ok(Relay {
            file,
            size,
            total,
            state: Mutex::new(Window {
                next: 0,
                free,
                places: std::iter::repeat_with(|| None).take(ahead).collect(),
                by: ReadBy::All,
                stop: false,
            }),
            filled: Condvar::new(),
            freed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, chunk: u64, buffer: &mut Buffer) -> Result<usize, Errno> {
        let start = chunk * CHUNK as u64;
        let len = (self.size - start).min(CHUNK as u64) as usize;
        Ok(dirfd::read_at(self.file, &mut buffer[..len], start)?)
    }

    /// Runs a reader until the end of the file.
    fn read_ahead(&self) {
        let mut state = self.lock();
        loop {
            let claimed = match state.by {
                ReadBy::All => state.claim(self.total),
                ReadBy::Consumer => None,
            };
            if let Some((chunk, mut buffer)) = claimed {
                drop(state);
                let result = self.read(chunk, &mut buffer);
                state = self.lock();
                *state.place(chunk) = Some(ReadChunk { buffer, result });
                self.filled.notify_one();
            } else if state.stop || state.next >= self.total {
                return;
            } else {
                state = self
                    .freed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Runs the consumer: takes the chunks in order, and reads when the next one is not there yet.
    fn consume(&self, cancel: &Cancel, f: &mut impl FnMut(&[u8])) -> Result<u64, Error> {
        let mut bytes = 0;
        let mut rounds = Rounds::new(self.lock().places.len());
        for chunk in 0..self.total {
            if let Some(by) = rounds.begin(chunk, Instant::now) {
                self.lock().by = by;
                self.freed.notify_all();
            }
            if cancel.is_cancelled() {
                return Err(Error::of_kind(Vec::new(), "read", ErrorKind::Cancelled));
            }
            let mut is_late = false;
            let ReadChunk { buffer, result } = self.get(chunk, &mut is_late);
            rounds.late += u64::from(is_late);
            let n = result.map_err(failed)?;
            f(&buffer[..n]);
            bytes += n as u64;
            self.lock().free.push(buffer);
            self.freed.notify_one();
            if n < CHUNK && bytes < self.size {
                break;
            }
        }
        Ok(bytes)
    }

    /// Returns a chunk, `is_late` if it was not there yet.
    fn get(&self, chunk: u64, is_late: &mut bool) -> ReadChunk {
        let mut state = self.lock();
        loop {
            if let Some(read) = state.place(chunk).take() {
                return read;
            }
            *is_late = true;
            if let Some((claimed, mut buffer)) = state.claim(self.total) {
                drop(state);
                let result = self.read(claimed, &mut buffer);
                let read = ReadChunk { buffer, result };
                if claimed == chunk {
                    return read;
                }
                state = self.lock();
                *state.place(claimed) = Some(read);
            } else {
                state = self
                    .filled
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Window {
    fn place(&mut self, chunk: u64) -> &mut Option<ReadChunk> {
        let places = self.places.len() as u64;
        &mut self.places[(chunk % places) as usize]
    }

    /// Claims the next chunk to read, if there is a buffer for it.
    fn claim(&mut self, total: u64) -> Option<(u64, Buffer)> {
        let chunk = self.next;
        if self.stop || chunk >= total {
            return None;
        }
        let buffer = self.free.pop()?;
        self.next += 1;
        Some((chunk, buffer))
    }
}

/// Rounds of chunks, each of which is timed once those in the window, which were read in the way of
/// the round before, are consumed.
struct Rounds {
    window: u64,
    choice: ReaderChoice,
    since: Option<Instant>,
    /// Chunks of the round that were not there when they were wanted.
    late: u64,
}

impl Rounds {
    fn new(window: usize) -> Rounds {
        Rounds {
            window: window as u64,
            choice: ReaderChoice::new(),
            since: None,
            late: 0,
        }
    }

    /// Notes that a chunk is next. If it is the first of another round, returns who reads from here
    /// on.
    fn begin(&mut self, chunk: u64, mut now: impl FnMut() -> Instant) -> Option<ReadBy> {
        let at = chunk % (self.window + TIMED);
        if at == self.window {
            self.since = Some(now());
            self.late = 0;
        }
        if at > 0 {
            return None;
        }
        let since = self.since.take()?;
        let is_late = self.late * 4 > TIMED;
        Some(self.choice.round(now() - since, is_late))
    }
}

/// Ends the readers when dropped.
struct StopOnDrop<'r, 'f>(&'r Relay<'f>);

impl Drop for StopOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().stop = true;
        self.0.freed.notify_all();
    }
}

/// Cuts `range` of a file into chunks of `chunk` bytes (the last one may be
/// shorter), calls `f(offset, bytes)` for each on one of up to `workers`
/// threads, and returns the results in the order of the chunks. For trees of
/// digests, and for comparing files piece by piece.
///
/// Memory: one chunk for each worker.
///
/// # Errors
/// `read` as the system gives it; kind `Changed` if the file ends before
/// `range` does; kind `Cancelled`. The path is empty.
///
/// # Panics
/// If `chunk` is 0 or `f` panics.
pub fn map_chunks<T: Send>(
    file: impl AsFd,
    range: Range<u64>,
    chunk: usize,
    workers: usize,
    cancel: &Cancel,
    f: impl Fn(u64, &[u8]) -> T + Sync,
) -> Result<Vec<T>, Error> {
    assert!(chunk > 0, "chunks have to hold something");
    let file = file.as_fd();
    let len = range.end.saturating_sub(range.start);
    let total = len.div_ceil(chunk as u64);
    let workers = workers.clamp(1, usize::try_from(total).unwrap_or(usize::MAX).max(1));
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let work = || -> Result<Vec<(u64, T)>, Error> {
        let mut results = Vec::new();
        let mut buffer =
            Buffer::new(chunk.min(usize::try_from(len).unwrap_or(chunk))).map_err(self::failed)?;
        loop {
            // Relaxed: chunks are independent, the results travel by join.
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= total || failed.load(Ordering::Relaxed) {
                return Ok(results);
            }
            if cancel.is_cancelled() {
                return Err(Error::of_kind(Vec::new(), "read", ErrorKind::Cancelled));
            }
            let start = range.start + index * chunk as u64;
            let bytes = &mut buffer[..(range.end - start).min(chunk as u64) as usize];
            let result =
                dirfd::read_at(file, bytes, start).map_err(|read| self::failed(read.errno));
            match result {
                Ok(n) if n == bytes.len() => results.push((index, f(start, bytes))),
                result => {
                    failed.store(true, Ordering::Relaxed);
                    result?;
                    return Err(Error::of_kind(Vec::new(), "read", ErrorKind::Changed));
                }
            }
        }
    };
    let mut results = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..workers)
            .map_while(|worker| {
                std::thread::Builder::new()
                    .name(format!("bc-read-{worker}"))
                    .spawn_scoped(scope, work)
                    .ok()
            })
            .collect();
        let mut results = work()?;
        for helper in helpers {
            match helper.join() {
                Ok(more) => results.extend(more?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, Error>(results)
    })?;
    results.sort_unstable_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_of(len: usize) -> (std::fs::File, Vec<u8>) {
        let bytes: Vec<u8> = (0..len).map(|i| (i * 31 + i / 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        (file, bytes)
    }

    #[test]
    fn streams_in_order_whatever_the_workers() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 20 * CHUNK + 77] {
            let (file, bytes) = file_of(len);
            for workers in [1, 2, 5] {
                let mut seen = Vec::new();
                let n = stream(&file, len as u64, workers, &Cancel::new(), |piece| {
                    seen.extend_from_slice(piece);
                });
                assert_eq!(n.unwrap(), len as u64);
                assert!(seen == bytes, "{len} bytes with {workers} workers");
            }
        }
    }

    /// Checks several rounds, in one of which at least the readers rest.
    #[test]
    fn streams_in_order_whoever_reads() {
        let len = 120 * CHUNK + 5;
        let (file, bytes) = file_of(len);
        for workers in [1, 2, 5] {
            let mut at = 0;
            let n = stream(&file, len as u64, workers, &Cancel::new(), |piece| {
                // Byte by byte: slower than reading.
                let is_equal = piece.iter().zip(&bytes[at..]).all(|(a, b)| a == b);
                assert!(is_equal, "{workers} at {at}");
                at += piece.len();
            });
            assert_eq!((n.unwrap(), at), (len as u64, len));
        }
    }

    #[test]
    fn rounds_are_timed_without_what_was_read_before_them() {
        use std::cell::Cell;
        use std::time::Duration;
        let start = Instant::now();
        let seconds = Cell::new(0);
        let mut rounds = Rounds::new(6);
        let mut asked = Vec::new();
        let mut decided = Vec::new();
        for chunk in 0..44 {
            let now = || {
                asked.push(chunk);
                seconds.set(seconds.get() + 1);
                start + Duration::from_secs(seconds.get())
            };
            decided.extend(rounds.begin(chunk, now).map(|by| (chunk, by)));
        }
        assert_eq!(asked, [6, 14, 20, 28, 34, 42]);
        let expected = [(14, ReadBy::All), (28, ReadBy::Consumer), (42, ReadBy::All)];
        assert_eq!(decided, expected);
    }

    #[test]
    fn a_shorter_file_gives_what_there_is() {
        let (file, bytes) = file_of(5 * CHUNK + 9);
        for workers in [1, 3] {
            let mut seen = Vec::new();
            let size = 9 * CHUNK as u64;
            let n = stream(&file, size, workers, &Cancel::new(), |piece| {
                seen.extend_from_slice(piece);
            });
            assert_eq!(n.unwrap(), bytes.len() as u64);
            assert!(seen == bytes);
        }
    }

    #[test]
    fn errors_and_cancellation_end_the_stream() {
        let dir = tempfile::tempdir().unwrap();
        let dir = std::fs::File::open(dir.path()).unwrap();
        for workers in [1, 4] {
            let error = stream(&dir, 9 << 20, workers, &Cancel::new(), |_| {}).unwrap_err();
            assert_eq!(
                (error.op(), error.errno()),
                ("read", Some(Errno::ISDIR.raw_os_error()))
            );
            let (file, bytes) = file_of(8 * CHUNK);
            let cancel = Cancel::new();
            let mut pieces = 0;
            let error = stream(&file, bytes.len() as u64, workers, &cancel, |_| {
                pieces += 1;
                cancel.cancel(1);
            });
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
            assert_eq!(pieces, 1);
        }
    }

    #[test]
    fn a_panicking_consumer_does_not_hang_the_readers() {
        let (file, bytes) = file_of(16 * CHUNK);
        let outcome = std::panic::catch_unwind(|| {
            let _ = stream(&file, bytes.len() as u64, 3, &Cancel::new(), |_| {
                panic!("oh")
            });
        });
        assert!(outcome.is_err());
    }

    #[test]
    fn chunks_are_mapped_in_order() {
        let (file, bytes) = file_of(100_003);
        for workers in [1, 2, 7] {
            for chunk in [1000, 4096, 100_003, 1 << 20] {
                let range = 3..bytes.len() as u64;
                let parts = map_chunks(&file, range, chunk, workers, &Cancel::new(), |at, part| {
                    (at, part.to_vec())
                })
                .unwrap();
                assert!(parts.iter().map(|(at, _)| *at).is_sorted());
                assert_eq!(parts.len(), 100_000_usize.div_ceil(chunk));
                let joined: Vec<u8> = parts.into_iter().flat_map(|(_, part)| part).collect();
                assert!(joined == bytes[3..]);
            }
        }
    }

    #[test]
    fn mapping_past_the_end_is_a_change() {
        let (file, bytes) = file_of(10_000);
        for workers in [1, 3] {
            let range = 0..bytes.len() as u64 + 1;
            let error = map_chunks(&file, range, 4096, workers, &Cancel::new(), |_, _| ());
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Changed);
            let cancel = Cancel::new();
            cancel.cancel(2);
            let error = map_chunks(&file, 0..10_000, 4096, workers, &cancel, |_, _| ());
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
        }
        let none = map_chunks(&file, 5..5, 4096, 2, &Cancel::new(), |_, _| ()).unwrap();
        assert!(none.is_empty());
    }

    #[test]
    fn a_changed_file_is_noticed() {
        let (mut file, _) = file_of(10);
        let stat = FileStat::from(&rustix::fs::fstat(&file).unwrap());
        unchanged(&file, &stat).unwrap();
        file.write_all(b"x").unwrap();
        let error = unchanged(&file, &stat).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed);
    }
}
