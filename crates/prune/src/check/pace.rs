//! Bounds of everything that reads the content of files: the run may be cancelled, and may read so many
//! bytes a second alone.

use bc_pool::Cancel;
use bc_read::Rate;

use crate::check::open_file::OpenFile;
use crate::skip::Skip;

/// Cancellation of a run, and its rate if it has one.
#[derive(Clone, Copy)]
pub(crate) struct ReadPace<'a> {
    pub(crate) cancel: &'a Cancel,
    pub(crate) rate: Option<&'a Rate>,
    /// File that is watched meanwhile: its writers do not wait for a rate.
    pub(crate) watched: Option<&'a OpenFile>,
}

impl<'a> ReadPace<'a> {
    pub(crate) fn new(cancel: &'a Cancel, rate: Option<&'a Rate>) -> ReadPace<'a> {
        ReadPace {
            cancel,
            rate,
            watched: None,
        }
    }

    /// Returns these bounds for what is of use only until another process writes to this file.
    pub(crate) fn watching(self, file: &'a OpenFile) -> ReadPace<'a> {
        ReadPace {
            watched: Some(file),
            ..self
        }
    }

    /// Returns an error if the run was cancelled, or a writer came to the watched file.
    pub(crate) fn check(self) -> Result<(), Skip> {
        match self.cancel.is_cancelled() {
            true => Err(Skip::Cancelled),
            false => self.watched.map_or(Ok(()), OpenFile::check_lease),
        }
    }

    /// Notes that so many bytes were read or written, and waits until they are paid for. What ends the
    /// wait is noticed by the next [check](ReadPace::check).
    pub(crate) fn spend(self, bytes: usize) {
        self.spend_while(bytes, || true);
    }

    /// Does the same as [`spend`](ReadPace::spend) as long as `go_on` holds, too.
    pub(crate) fn spend_while(self, bytes: usize, go_on: impl Fn() -> bool) {
        if let Some(rate) = self.rate {
            let go_on = || self.check().is_ok() && go_on();
            rate.spend_while(bytes as u64, self.cancel, go_on);
        }
    }
}
