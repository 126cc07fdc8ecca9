//! A manifest on its way to its file: one thread puts entries together, another one writes them.

use std::io::Write;
use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, sync_channel};

use bc_manifest::Error;
use bc_manifest::integrity::{Entry, Header, Writer};
use serde_json::{Map, Value};

/// Entries that are passed on at once.
const BATCH: usize = 256;

/// Batches that may wait to be written.
const WAITING: usize = 4;

/// Where entries are put, in order.
pub(super) struct Entries {
    batch: Vec<Entry>,
    sender: SyncSender<Vec<Entry>>,
    /// Whether nobody writes any more: what went wrong is known there.
    is_over: bool,
}

impl Entries {
    pub(super) fn put(&mut self, entry: Entry) {
        self.batch.push(entry);
        if self.batch.len() == BATCH {
            self.pass_on();
        }
    }

    /// Whether it is of no use to put more.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    fn pass_on(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.is_over |= self.sender.send(batch).is_err();
    }
}

/// Writes a manifest of the entries that `fill` puts; what it gives is added to the trailer.
pub(super) fn write(
    out: impl Write + Send,
    header: &Header,
    fill: impl FnOnce(&mut Entries) -> Result<Map<String, Value>, Error>,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Vec<Entry>>(WAITING);
        let writing = scope.spawn(move || {
            let mut writer = Writer::new(out, header)?;
            for batch in receiver {
                batch.iter().try_for_each(|entry| writer.write(entry))?;
            }
            Ok(writer)
        });
        let mut entries = Entries {
            batch: Vec::with_capacity(BATCH),
            sender,
            is_over: false,
        };
        let filled = fill(&mut entries);
        entries.pass_on();
        drop(entries);
        let writer = writing.join().unwrap_or_else(|panic| resume_unwind(panic));
        let extra = filled?;
        writer?.finish_with(&extra).map(drop)
    })
}
