//! A manifest on its way to its file: one thread puts entries together, another one writes them,
//! where there are two.

use std::io::Write;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Builder;

use bc_manifest::Error;
use bc_manifest::integrity::{Entry, Header, Writer};
use serde_json::{Map, Value};

use crate::lock;

/// Entries that are passed on at once.
const BATCH: usize = 256;

/// Batches that may wait to be written.
const WAITING: usize = 4;

/// Sink for entries, in order.
pub(super) struct EntrySink<'a> {
    batch: Vec<Entry>,
    /// Takes a batch; `false` where it is of no use to pass on more.
    pass_on: &'a mut dyn FnMut(Vec<Entry>) -> bool,
    is_over: bool,
}

impl EntrySink<'_> {
    pub(super) fn put(&mut self, entry: Entry) {
        self.batch.push(entry);
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    /// True if more entries are of no use: the error is known where they are written.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    fn flush(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.is_over |= !(self.pass_on)(batch);
    }
}

/// Runs `fill`, whose entries `pass_on` takes; returns what is added to the trailer.
fn filled(
    fill: impl FnOnce(&mut EntrySink<'_>) -> Result<Map<String, Value>, Error>,
    pass_on: &mut dyn FnMut(Vec<Entry>) -> bool,
) -> Result<Map<String, Value>, Error> {
    let mut entries = EntrySink {
        batch: Vec::with_capacity(BATCH),
        pass_on,
        is_over: false,
    };
    let extra = fill(&mut entries)?;
    entries.flush();
    Ok(extra)
}

/// Writes a manifest of the entries that `fill` puts; the keys that it returns are added to the
/// trailer. `workers`: with one, or where the system refuses a thread, the caller's thread does
/// all.
pub(super) fn write<W: Write + Send>(
    out: W,
    header: &Header,
    workers: usize,
    fill: impl FnOnce(&mut EntrySink<'_>) -> Result<Map<String, Value>, Error>,
) -> Result<(), Error> {
    if workers < 2 {
        return write_alone(out, header, fill);
    }
    let (sender, receiver) = sync_channel::<Vec<Entry>>(WAITING);
    // A thread that is refused leaves them here.
    let taken = Mutex::new(Some((out, receiver)));
    let take = || lock(&taken).take();
    std::thread::scope(|scope| {
        let write = || take().map(|(out, receiver)| write_all(out, header, receiver));
        let Ok(writing) = Builder::new().spawn_scoped(scope, write) else {
            return match take() {
                Some((out, _)) => write_alone(out, header, fill),
                None => unreachable!("only a thread takes it"),
            };
        };
        let extra = filled(fill, &mut |batch| sender.send(batch).is_ok());
        drop(sender);
        let writer = writing.join().unwrap_or_else(|panic| resume_unwind(panic));
        let extra = extra?;
        match writer {
            Some(writer) => writer?.finish_with(&extra).map(drop),
            None => unreachable!("the thread took it"),
        }
    })
}

fn write_all<W: Write>(
    out: W,
    header: &Header,
    batches: Receiver<Vec<Entry>>,
) -> Result<Writer<W>, Error> {
    let mut writer = Writer::new(out, header)?;
    for batch in batches {
        batch.iter().try_for_each(|entry| writer.write(entry))?;
    }
    Ok(writer)
}

fn write_alone<W: Write>(
    out: W,
    header: &Header,
    fill: impl FnOnce(&mut EntrySink<'_>) -> Result<Map<String, Value>, Error>,
) -> Result<(), Error> {
    let mut writer = Writer::new(out, header)?;
    let mut written = Ok(());
    let extra = filled(fill, &mut |batch| {
        written = batch.iter().try_for_each(|entry| writer.write(entry));
        written.is_ok()
    });
    written?;
    writer.finish_with(&extra?).map(drop)
}
