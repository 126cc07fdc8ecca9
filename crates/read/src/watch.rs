//! How the pump knows that nobody writes to a file while it is read (see `steady`).

use bc_walk::EntryId;
use xxhash_rust::xxh3::Xxh3;

use crate::steady::Readings;
use crate::types::Want;

/// What is done about writers of an open file.
pub(crate) enum Watch {
    /// Nothing: it is old, or they do not matter.
    Off,
    /// Its descriptor has a read lease. With the readings that came to nothing before.
    Lease(Readings<u128>),
    /// There is no lease: it is read until two readings in a row agree.
    Sum(Box<Summed>),
}

/// A file that is read more than once.
pub(crate) struct Summed {
    pub(crate) readings: Readings<u128>,
    /// Of the reading that is under way. Nobody gains by two contents with one sum: whoever can
    /// write to the file can as well write what he wants to be read.
    pub(crate) sum: Xxh3,
}

/// A file that was written to while it was read, or may have been, and waits to be read again.
pub(crate) struct Unsettled {
    pub(crate) entry: EntryId,
    pub(crate) want: Want,
    /// So far.
    pub(crate) readings: Readings<u128>,
}
