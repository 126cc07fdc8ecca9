//! Reads all parts on a thread of its own, while the caller writes the entries: parsing lines and
//! making them again takes about as long. Entries go in batches, whose memory goes round.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use bc_manifest::integrity::{Entry, Kind};
use bc_pool::Cancel;
use bc_walk::job::{Error, ErrorKind};

use super::parts::Parts;

/// Entries that are handed over at once.
const BATCH: usize = 512;

/// Batches that may wait.
const BATCHES: usize = 4;

/// Passes the entries of all parts in path order first to `see`, on another thread and with the
/// number of their part, and then to `take`; returns `see`'s state.
pub(super) fn read_ahead<S: Send>(
    parts: &Parts<'_>,
    cancel: &Cancel,
    state: S,
    see: impl Fn(&mut S, usize, &mut Entry) -> Result<(), Error> + Send,
    mut take: impl FnMut(&Entry) -> Result<(), Error>,
) -> Result<S, Error> {
    let (sender, batches) = sync_channel(BATCHES);
    let (back, used) = channel();
    std::thread::scope(|scope| {
        let reading = std::thread::Builder::new().name("merge".into());
        let reading = reading.spawn_scoped(scope, move || {
            let mut state = state;
            let mut batches = Batches::new(sender, used);
            parts.each(cancel, |part, entry| {
                see(&mut state, part, entry)?;
                batches.push(entry)
            })?;
            batches.send()?;
            Ok(state)
        });
        let reading = reading
            .map_err(|error| Error::new(ErrorKind::Io, format!("starting a thread: {error}")))?;
        let mut taken = Ok(());
        // If it ends early, the channel is closed, which ends the reading.
        for (batch, count) in batches {
            taken = batch[..count].iter().try_for_each(&mut take);
            if taken.is_err() {
                break;
            }
            // At the end the receiver is gone.
            let _ = back.send(batch);
        }
        let read = reading.join();
        taken?;
        read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The batch that is being filled.
struct Batches {
    batch: Vec<Entry>,
    count: usize,
    sender: SyncSender<(Vec<Entry>, usize)>,
    used: Receiver<Vec<Entry>>,
}

impl Batches {
    fn new(sender: SyncSender<(Vec<Entry>, usize)>, used: Receiver<Vec<Entry>>) -> Batches {
        Batches {
            batch: Vec::with_capacity(BATCH),
            count: 0,
            sender,
            used,
        }
    }

    /// Takes an entry and leaves another in its place, to be read into.
    fn push(&mut self, entry: &mut Entry) -> Result<(), Error> {
        if self.count == self.batch.len() {
            self.batch.push(Entry::new(Vec::new(), Kind::File));
        }
        std::mem::swap(&mut self.batch[self.count], entry);
        self.count += 1;
        match self.count < BATCH {
            true => Ok(()),
            false => self.send(),
        }
    }

    fn send(&mut self) -> Result<(), Error> {
        let next = self.used.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        let count = std::mem::take(&mut self.count);
        // The taking side has failed, and reports the reason.
        let ended = |_| Error::cancelled();
        self.sender.send((batch, count)).map_err(ended)
    }
}
