//! Stands in for the records of a run where the feature `resume` is off: nothing is recorded.

use std::marker::PhantomData;

use bc_digest::Digest;
use bc_walk::{EntryId, FileStat, Listing};

use crate::options::{HashOptions, Taken};

pub(crate) struct WorkerRecords<'a> {
    pub(crate) taken: Taken,
    listing: PhantomData<&'a Listing>,
}

impl<'a> WorkerRecords<'a> {
    pub(crate) fn new(_: &'a HashOptions, _: &'a Listing) -> WorkerRecords<'a> {
        WorkerRecords {
            taken: Taken::default(),
            listing: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn knows(&mut self, _: EntryId, _: &FileStat, _: &mut Vec<Digest>) -> bool {
        false
    }

    #[inline]
    pub(crate) fn keep(&mut self, _: EntryId, _: &FileStat, _: &[Digest]) {}

    pub(crate) fn hand_over(&mut self) {}
}
