//! What the pump does about files that were written to a moment ago (see `steady`): a lease while
//! it reads them, or readings until two in a row agree, the last of which is what the consumer got.

use std::os::fd::OwnedFd;

use bc_pool::Cancel;
use rustix::io::Errno;
use xxhash_rust::xxh3::Xxh3;

use crate::progress::{Progress, Step};
use crate::slot::Active;
use crate::steady::Readings;

/// How it is known that nobody writes to a file while it is read.
pub(crate) enum Watch {
    /// It is old, or it does not matter.
    Off,
    /// The descriptor has a read lease.
    Lease,
    /// There is no lease, and nothing has been read yet.
    Due,
    /// It has been read before.
    Twice(Box<Twice>),
}

/// The readings of a file without a lease.
pub(crate) struct Twice {
    pub(crate) readings: Readings<u128>,
    /// Of the reading that is under way. Nobody gains by two contents with one sum: whoever can
    /// write to the file can as well write what he wants to be read.
    pub(crate) sum: Xxh3,
}

impl Active {
    /// Reads all that is wanted of the file, which is at its beginning, for its sum alone. `None`
    /// after a cancellation. Leaves the file at its end.
    pub(crate) fn sum(&mut self, chunk: usize, cancel: &Cancel) -> Result<Option<u128>, Errno> {
        let mut sum = Xxh3::new();
        let mut step = Step::More;
        while !self.progress.nothing() && !matches!(step, Step::Last | Step::LastIfSame) {
            if cancel.is_cancelled() {
                return Ok(None);
            }
            self.filled = 0;
            self.ask(chunk);
            let n = self.read()?;
            step = self.took(n);
            sum.update(&self.buffer()[..n]);
        }
        Ok(Some(sum.digest128()))
    }

    /// Back to the beginning, with this progress.
    pub(crate) fn rewind(&mut self, progress: Progress) {
        self.progress = progress;
        self.filled = 0;
        self.end = false;
        self.bytes = 0;
        if let Watch::Twice(twice) = &mut self.watch {
            twice.sum.reset();
        }
    }

    /// Takes the descriptor away after the last read: nobody has to wait for the consumer.
    pub(crate) fn take_file(&mut self) -> Option<OwnedFd> {
        self.file.take()
    }
}
