//! One worker's `io_uring`: opens and reads in flight, each owning its
//! descriptor and buffer until its completion has been seen.
//!
//! Files are opened to ordinary descriptors, not direct ones: a file must first be verified by
//! `fstat` to be the regular file meant, and there is no `fstat` of a direct descriptor; `STATX` by
//! name could look at another file. A `STATX` on the ring is handed to a kernel thread and takes
//! 1.7 µs at its best, `fstat` of an open file 0.3, so that is a plain call. Buffers are not
//! registered: reads of 16 KiB from the page cache took 2.8 µs into plain and
//! 2.5 to 3.5 into registered ones, which count against `RLIMIT_MEMLOCK`.
//! (Linux 6.18, batches of 128.)
#![allow(unsafe_code)] // pushing entries that hold pointers

use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;

use bc_walk::Error;
use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::buffer::Buffer;
use crate::open::{EntryDir, Waits};

/// Kernel threads a ring may use for opens that have to wait for the disk. The
/// kernel's own limit is four for each CPU, too few to keep a disk busy on a
/// small machine.
const OPEN_THREADS: u32 = 64;

/// `user_data` of requests that belong to no slot.
const NO_SLOT: u64 = u64::MAX;

/// Succeeds if this process may use `io_uring`; otherwise returns the reason.
///
/// # Errors
/// `io_uring` with the reason: the kernel knows nothing of it (ENOSYS), it was
/// switched off by `kernel.io_uring_disabled` or a seccomp filter (EPERM), it
/// lacks an operation, or memory for a ring may not be locked (ENOMEM).
pub fn uring_available() -> Result<(), Error> {
    Ring::new(4).map(|_| ())
}

/// A ring and everything that is in flight on it.
pub(crate) struct Ring<'a> {
    ring: IoUring,
    /// Operations in flight, by slot.
    flying: Vec<Option<Op>>,
    in_flight: usize,
    /// Pushed, but not yet shown to the kernel.
    unsubmitted: usize,
    /// Names are borrowed until the kernel has copied them, at submission.
    names: PhantomData<&'a CStr>,
}

/// A request in flight, with the descriptor and buffer that the kernel uses until it completes.
enum Op {
    Open { _dir: Rc<OwnedFd> },
    Read { file: OwnedFd, buffer: Buffer },
}

/// A completed request.
pub(crate) enum Completion {
    Open(Result<OwnedFd, Errno>),
    Read {
        file: OwnedFd,
        buffer: Buffer,
        result: Result<usize, Errno>,
    },
}

impl<'a> Ring<'a> {
    /// Makes a ring for requests of slots below `slots`, shown to work.
    pub(crate) fn new(slots: usize) -> Result<Ring<'a>, Error> {
        let entries = u32::try_from(slots.max(1).next_power_of_two())
            .unwrap_or(u32::MAX)
            .min(4096);
        // The hints are newer (5.19, 6.0) than what is needed (5.6).
        let ring = IoUring::builder()
            .setup_coop_taskrun()
            .setup_single_issuer()
            .build(entries)
            .or_else(|error| match error.raw_os_error() {
                Some(code) if code == Errno::INVAL.raw_os_error() => IoUring::new(entries),
                _ => Err(error),
            })
            .map_err(refused)?;
        let mut probe = Probe::new();
        ring.submitter()
            .register_probe(&mut probe)
            .map_err(refused)?;
        if ![opcode::OpenAt::CODE, opcode::Read::CODE]
            .into_iter()
            .all(|code| probe.is_supported(code))
        {
            return Err(Error::with_message(
                Vec::new(),
                "io_uring",
                "the kernel lacks openat and read requests (Linux 5.6)",
            ));
        }
        // Best effort (5.15): fewer threads only mean less depth.
        let _ = ring
            .submitter()
            .register_iowq_max_workers(&mut [OPEN_THREADS.min(entries), 0]);
        let mut ring = Ring {
            ring,
            flying: (0..slots).map(|_| None).collect(),
            in_flight: 0,
            unsubmitted: 0,
            names: PhantomData,
        };
        ring.round_trip().map_err(refused)?;
        Ok(ring)
    }

    /// Tries one request: a filter may allow the ring and refuse its use.
    fn round_trip(&mut self) -> std::io::Result<()> {
        let nop = opcode::Nop::new().build().user_data(NO_SLOT);
        // SAFETY: a NOP refers to nothing.
        let _ = unsafe { self.ring.submission().push(&nop) };
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => break,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.ring.completion().for_each(drop);
        Ok(())
    }

    /// Returns the number of requests whose completion has not been taken yet.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Opens `name` in `place` for `slot`. A server's answer is waited for by a thread of the
    /// kernel: the request itself, which only makes sure that the name is known, would wait here.
    pub(crate) fn open(
        &mut self,
        slot: usize,
        place: EntryDir,
        name: &'a CStr,
        flags: OFlags,
    ) -> Result<(), Errno> {
        let EntryDir { dir, waits } = place;
        let mut entry = opcode::OpenAt::new(types::Fd(dir.as_raw_fd()), name.as_ptr())
            .flags(flags.bits() as i32)
            .build();
        if waits == Waits::Unsaid {
            entry = entry.flags(squeue::Flags::ASYNC);
        }
        self.push(slot, entry, Op::Open { _dir: dir })
    }

    /// Reads up to `len` bytes at `offset` into `buffer[filled..]` for `slot`.
    pub(crate) fn read(
        &mut self,
        slot: usize,
        file: OwnedFd,
        mut buffer: Buffer,
        filled: usize,
        len: usize,
        offset: u64,
    ) -> Result<(), Errno> {
        assert!(filled <= buffer.len() && len <= buffer.len() - filled);
        let start = buffer.start().wrapping_add(filled);
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), start, len)
            .offset(offset)
            .build();
        self.push(slot, entry, Op::Read { file, buffer })
    }

    fn push(&mut self, slot: usize, entry: squeue::Entry, op: Op) -> Result<(), Errno> {
        assert!(self.flying[slot].is_none(), "one request a slot");
        let entry = entry.user_data(slot as u64);
        // From here on the ring owns what the entry points to.
        self.flying[slot] = Some(op);
        self.in_flight += 1;
        self.queue(&entry)
    }

    /// Puts an entry into the queue whose descriptors and memory are in `flying`, or that has none.
    fn queue(&mut self, entry: &squeue::Entry) -> Result<(), Errno> {
        loop {
            // SAFETY: the entry's descriptors and buffer are in `flying` until
            // its completion is reaped, or leaked; the name lives for 'a.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                self.unsubmitted += 1;
                return Ok(());
            }
            self.submit(0)?;
        }
    }

    /// Asks the kernel to give up calls that it has not begun, or that wait: their completions come
    /// all the same. Calls that a device is at work on are finished.
    fn cancel(&mut self) -> Result<(), Errno> {
        for slot in 0..self.flying.len() {
            if self.flying[slot].is_some() {
                let entry = opcode::AsyncCancel::new(slot as u64).build();
                self.queue(&entry.user_data(NO_SLOT))?;
            }
        }
        self.submit(0)
    }

    /// Submits the pushed requests and waits for `wait` completions, at most until a signal comes.
    /// An error means that the ring is of no more use: see [`abandon`](Ring::abandon).
    pub(crate) fn submit(&mut self, wait: usize) -> Result<(), Errno> {
        let wait = wait.min(self.in_flight);
        if self.unsubmitted == 0 && wait == 0 {
            return Ok(());
        }
        match self.ring.submit_and_wait(wait) {
            Ok(taken) => {
                self.unsubmitted = self.unsubmitted.saturating_sub(taken);
                Ok(())
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::INTR) => Ok(()),
                // Out of memory for a request, or completions to be reaped
                // first: the entries stay in the queue for the next call.
                Some(Errno::AGAIN | Errno::BUSY) => {
                    std::thread::yield_now();
                    Ok(())
                }
                errno => Err(errno.unwrap_or(Errno::IO)),
            },
        }
    }

    /// Takes one completion, if one is there.
    pub(crate) fn reap(&mut self) -> Option<(usize, Completion)> {
        loop {
            let done: cqueue::Entry = self.ring.completion().next()?;
            let Ok(slot) = usize::try_from(done.user_data()) else {
                continue;
            };
            let Some(op) = self.flying.get_mut(slot).and_then(Option::take) else {
                continue;
            };
            self.in_flight -= 1;
            let result = match done.result() {
                code @ 0.. => Ok(code),
                code => Err(Errno::from_raw_os_error(-code)),
            };
            return Some((
                slot,
                match op {
                    Op::Open { .. } => Completion::Open(result.map(|fd| {
                        // SAFETY: a descriptor that the kernel has just opened for us, and which
                        // only this completion reports.
                        unsafe { OwnedFd::from_raw_fd(fd) }
                    })),
                    Op::Read { file, buffer } => Completion::Read {
                        file,
                        buffer,
                        result: result.map(|n| n as usize),
                    },
                },
            ));
        }
    }

    /// Gives up after a failed [`submit`](Ring::submit): returns the slots in flight. Memory that
    /// the kernel may still write to is leaked.
    pub(crate) fn abandon(&mut self) -> Vec<usize> {
        let mut slots = Vec::new();
        for (slot, op) in self.flying.iter_mut().enumerate() {
            if let Some(op) = op.take() {
                std::mem::forget(op);
                slots.push(slot);
            }
        }
        self.in_flight = 0;
        self.unsubmitted = 0;
        slots
    }
}

impl Drop for Ring<'_> {
    /// Waits for the calls in flight: the kernel writes to those buffers. Their content is not
    /// wanted any more, and a server that does not answer must not keep a run from ending.
    fn drop(&mut self) {
        if self.in_flight > 0 && self.cancel().is_err() {
            self.abandon();
        }
        while self.in_flight > 0 {
            if self.submit(1).is_err() {
                self.abandon();
            }
            while self.reap().is_some() {}
        }
    }
}

fn refused(error: std::io::Error) -> Error {
    let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let switched_off = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled")
        .is_ok_and(|value| matches!(value.trim(), "1" | "2"));
    match errno {
        Errno::PERM if switched_off => Error::with_message(
            Vec::new(),
            "io_uring",
            "switched off by kernel.io_uring_disabled (os error 1)",
        ),
        Errno::PERM => Error::with_message(
            Vec::new(),
            "io_uring",
            "not permitted, by a seccomp filter or a container's policy (os error 1)",
        ),
        errno => Error::new(Vec::new(), "io_uring", errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a request that never completes does not delay the end: a pipe without a writer
    /// stands for a server that does not answer.
    #[test]
    fn what_never_comes_is_not_waited_for_at_the_end() {
        let Ok(mut ring) = Ring::new(8) else {
            bc_testkit::left_out("no io_uring here");
            return;
        };
        let mut writers = Vec::new();
        for slot in 0..8 {
            let (reader, writer) = rustix::pipe::pipe().unwrap();
            writers.push(writer);
            let buffer = Buffer::new(4096).unwrap();
            ring.read(slot, reader, buffer, 0, 4096, u64::MAX).unwrap();
        }
        ring.submit(0).unwrap();
        assert_eq!(ring.in_flight(), 8);
        drop(ring);
    }
}
