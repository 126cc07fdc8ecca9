//! Input and output of the pump: options, the consumer's side of the contract, and the counts at
//! the end.

use std::os::fd::BorrowedFd;

use bc_pool::{Cancel, Tables, Waiting};
use bc_walk::{EntryId, Error, FileStat};

use crate::rate::Rate;
use crate::waits::Residency;

/// Backend that the bytes come through.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Choice {
    /// Plain calls for resident data, `io_uring` for all other, decided file by file; plain calls
    /// alone where the kernel refuses `io_uring`.
    #[default]
    Auto,
    /// Plain calls only.
    Sync,
    /// `io_uring` for every open, and for every read where the file system reports what is resident:
    /// elsewhere short reads of the ring can repeat bytes, and plain calls read. Ask [`uring_available`](crate::uring_available)
    /// first: a worker that cannot have a ring continues with plain calls and reports that in
    /// [`ReadStats::refused`].
    Uring,
}

impl Choice {
    /// All choices.
    pub const ALL: [Choice; 3] = [Choice::Auto, Choice::Sync, Choice::Uring];

    /// Returns `auto`, `sync` or `uring`.
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Sync => "sync",
            Choice::Uring => "uring",
        }
    }
}

/// Treatment of a file that changes while it is being read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Changed {
    /// Refused: it ends in an [`Error`] of kind `Changed`. Files that need more than one read call
    /// compare size, mtime and ctime before and after. Files written to within the last two seconds
    /// are read under a lease, or until two readings in a row agree.
    #[default]
    Refuse,
    /// Accepted: the bytes that were read count.
    Allow,
}

/// Reliability of `st_size` as the number of bytes to read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SizeTrust {
    /// Yes, as on any disk file system. Files of pseudo file systems, which
    /// claim to be empty or a page long, are recognised when their size turns
    /// out wrong.
    #[default]
    Trusted,
    /// Unreliable: every file is read until a read returns nothing.
    Untrusted,
}

/// Time at which an open file is verified to be the regular file that was walked, in the state in
/// which it was walked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum VerifyWhen {
    /// Now: with an `fstat` of each file before its first byte, and another where it took more than
    /// one call to read.
    #[default]
    Now,
    /// Later: the consumer only wants to know which files may matter, and reads those again, with
    /// [`VerifyWhen::Now`]. [`Opened::stat`] has the walk's metadata, and only files without
    /// positions (FIFOs, sockets, terminals), directories, and files that turn out to be of another
    /// length than listed are refused: a part may be read, and finished without error, of a file
    /// that has grown or taken the place of the one listed. Entries without metadata are verified
    /// now, and so are files that plain calls cannot read: `io_uring` reads from anything.
    ///
    /// A search that throws nearly all files away saves 7 % of its CPU time (linux 6.12 tree).
    Later,
    /// At the end: with one `fstat`, of the very descriptor, after its last byte was read, which
    /// has to show the file and the stamp that were listed. So no write goes unnoticed that began
    /// after the listing and before the end. Until then it is as with [`VerifyWhen::Later`]: the
    /// pieces of a file that is refused in the end are void, and [`Opened::stat`] has the walk's
    /// metadata at [`begin`](Consumer::begin), and those of `fstat` at
    /// [`finish`](Consumer::finish).
    ///
    /// Files that were listed as written to within the last two seconds are verified now, and so
    /// are entries without metadata, and all files where changes are allowed.
    AtEnd,
}

/// Options for reading.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The backend.
    pub backend: Choice,
    /// Bytes of a slot's buffer; files below this size take one read call.
    /// Rounded up to whole pages, at least one.
    pub slot_size: usize,
    /// Files in flight at most when `io_uring` is used. Plain calls use as
    /// many slots as the consumer is wide.
    pub slots: usize,
    /// Treatment of files that change meanwhile.
    pub changed: Changed,
    /// Reliability of sizes.
    pub sizes: SizeTrust,
    /// Experience with residency; clones of these options share it.
    pub residency: Residency,
    /// Threads at most that an engine reads with where they wait and a ring is no help, if that is
    /// more than it has otherwise; see [`Workers`](bc_pool::Workers). 0: no more.
    pub waiting: usize,
    /// Tables of descriptors for the threads of an engine that read with these options.
    pub tables: Tables,
    /// Limit of bytes a second, if there is one; clones of these options share it. Large files that a
    /// consumer [takes over](Consumer::take_over) are its own to [pay](ReadOptions::pay) for.
    pub rate: Option<Rate>,
}

impl ReadOptions {
    /// Notes that so many bytes were read, and waits as long as the limit demands.
    pub fn pay(&self, bytes: u64, cancel: &Cancel) {
        self.pay_while(bytes, cancel, || true);
    }

    /// Does the same as [`pay`](Self::pay) as long as `go_on` holds; see [`Rate::spend_while`].
    pub fn pay_while(&self, bytes: u64, cancel: &Cancel, go_on: impl FnMut() -> bool) {
        if let Some(rate) = &self.rate {
            rate.spend_while(bytes, cancel, go_on);
        }
    }
}

bc_fs::setters! {
    ReadOptions:
    backend: Choice,
    slot_size: usize,
    slots: usize,
    changed: Changed,
    sizes: SizeTrust,
    residency: Residency,
    waiting: usize,
    tables: Tables,
    rate: Option<Rate>,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            backend: Choice::Auto,
            slot_size: 128 << 10,
            slots: 128,
            changed: Changed::Refuse,
            sizes: SizeTrust::Trusted,
            residency: Residency::default(),
            waiting: 0,
            tables: Tables::SHARED,
            rate: None,
        }
    }
}

/// The part of a file that a consumer wants to see.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Want {
    /// The whole file.
    Whole,
    /// Range of at most `len` bytes from `offset`; less where the file ends earlier.
    Range {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// The first `len` bytes and then the last `len`, where the file has at
    /// least twice that; all of a smaller file, with no seam. The first part
    /// of two ends with its own piece (`end == false`).
    Ends {
        /// Bytes of each end.
        len: u32,
    },
}

/// A file that was opened and found to be the regular file meant.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The entry it belongs to.
    pub entry: EntryId,
    /// `fstat` of the very descriptor that is read, from before the first read. With
    /// [`VerifyWhen::Later`], and [`VerifyWhen::AtEnd`] until the end, the listing's metadata:
    /// identity, stamp and links, nothing else.
    pub stat: FileStat,
}

/// The next unconsumed piece of a file.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    /// The slot, as given to [`Consumer::begin`].
    pub slot: usize,
    /// The bytes; may be empty when `end` is set.
    pub data: &'a [u8],
    /// True if this piece is the last.
    pub end: bool,
}

/// Recipient of a pump's files. For each entry taken from the plan, in this order:
/// [`want`](Consumer::want); [`begin`](Consumer::begin) if it could be opened; pieces through
/// [`advance`](Consumer::advance); and [`finish`](Consumer::finish), exactly once, unless the run
/// is cancelled or the consumer [`knows`](Consumer::knows) the file.
pub trait Consumer {
    /// Returns the number of slots that should hold data before `advance` pays: the number of
    /// lanes. Asked again on every turn; 0 counts as 1.
    fn width(&self) -> usize;

    /// Makes room for slots. Called once before the first `begin`: slots are numbered below
    /// `slots`.
    fn reserve(&mut self, slots: usize) {
        let _ = slots;
    }

    /// Returns the part of this entry to read.
    fn want(&mut self, entry: EntryId) -> Want {
        let _ = entry;
        Want::Whole
    }

    /// Returns when the content of this entry has to be verified. Asked once for each time it is
    /// opened.
    fn verify(&self, entry: EntryId) -> VerifyWhen {
        let _ = entry;
        VerifyWhen::Now
    }

    /// Offers a file of at least [`HUGE`](crate::HUGE) bytes, opened and verified, while the pump
    /// has no other such in hand, and no lease of a file. A consumer that knows a better way for it
    /// than the pump's, say with the help of other threads, reads it here and returns `true`; then
    /// neither pieces nor [`finish`](Consumer::finish) follow, and it is not in the pump's
    /// [`ReadStats`]. One that [`is_fresh`](crate::is_fresh) it reads as
    /// [`read_fresh`](crate::read_fresh) does.
    fn take_over(&mut self, opened: &Opened) -> bool {
        let _ = opened;
        false
    }

    /// Notes a run of files that one call each reads, where the file system does not report whether
    /// that call will wait: called before the first of them and after some more. To be passed on to
    /// the worker's [handle](bc_pool::WorkerHandle::waiting), so that others join.
    fn waiting(&mut self, progress: Waiting) {
        let _ = progress;
    }

    /// True if the worker is to end, asked after [`waiting`](Self::waiting): it finishes its
    /// batch, and leaves the others of the plan to other workers. To be answered by the
    /// worker's [handle](bc_pool::WorkerHandle::ends).
    fn ends(&mut self) -> bool {
        false
    }

    /// True if the content of a file that was just opened, as `file`, is known, or will be, from
    /// another name or another file: then it is not read, the consumer has taken care of it, and
    /// neither `begin` nor `finish` follows.
    fn knows(&mut self, opened: &Opened, file: BorrowedFd<'_>) -> bool {
        let _ = (opened, file);
        false
    }

    /// Begins a file that was opened in `slot`; its pieces follow. An entry may begin again before
    /// it is [finished](Consumer::finish), in this slot or another, after others were there:
    /// another process wrote to the file, or may have, and its pieces so far are void.
    fn begin(&mut self, slot: usize, opened: &Opened);

    /// Works on the pieces until at least one of them is used up, and pushes
    /// the slots of those that are to `consumed`. A piece that is not used up
    /// is presented again, unchanged, on a later call. `feeds` holds at least
    /// one piece, at most `width`, and each slot at most once.
    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>);

    /// Ends an entry: its last piece was consumed and the file was read to its end unchanged, or
    /// something failed. After an error before `begin`, no file is in `slot`.
    fn finish(&mut self, slot: usize, result: Result<Opened, Error>, entry: EntryId);
}

/// Counts of one worker's pump.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadStats {
    /// Files finished without error.
    pub files: u64,
    /// Entries finished with an error.
    pub errors: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Read calls and completed ring reads.
    pub reads: u64,
    /// Opens and reads that went through `io_uring`.
    pub queued: u64,
    /// Backend that was used.
    pub backend: Backend,
    /// Error of `io_uring`, if it was asked for and refused.
    pub refused: Option<Error>,
}

impl ReadStats {
    /// Adds another worker's counts.
    pub fn merge(&mut self, other: ReadStats) {
        self.files += other.files;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.reads += other.reads;
        self.queued += other.queued;
        self.backend = self.backend.max(other.backend);
        if self.refused.is_none() {
            self.refused = other.refused;
        }
    }
}

/// The backend that did the reading.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Backend {
    /// Plain calls only.
    #[default]
    Sync,
    /// Plain calls, and `io_uring` for data that were not resident.
    Mixed,
    /// `io_uring` only.
    Uring,
}

impl Backend {
    /// Returns `sync`, `mixed` or `uring`.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Sync => "sync",
            Backend::Mixed => "mixed",
            Backend::Uring => "uring",
        }
    }
}
