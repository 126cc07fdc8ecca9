//! Detection of writers to a file while the pump reads it (see `steady`).

use bc_walk::EntryId;
use xxhash_rust::xxh3::Xxh3;

use crate::steady::Readings;
use crate::types::Want;

/// Measure taken against writers of an open file.
pub(crate) enum Watch {
    /// None: it is old, or its writers do not matter.
    Off,
    /// A read lease of its descriptor. With the earlier readings, which were of no use.
    Lease(Readings<u128>),
    /// Two readings, as there is no lease: it is read until two in a row agree.
    Sum(Box<Summed>),
}

/// A file that is read more than once.
pub(crate) struct Summed {
    pub(crate) readings: Readings<u128>,
    /// Checksum of the reading that is under way. An attacker gains nothing by two contents with
    /// one sum: a process that can write to the file can as well write the content that it wants to
    /// be read.
    pub(crate) sum: Xxh3,
}

/// A file that was written to while it was read, or may have been, and waits to be read again.
pub(crate) struct Unsettled {
    pub(crate) entry: EntryId,
    pub(crate) want: Want,
    /// Readings so far.
    pub(crate) readings: Readings<u128>,
}
