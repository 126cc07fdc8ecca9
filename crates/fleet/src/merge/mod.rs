//! `merge`: the manifests of the parts of a tree put together, as if one had read all of it. All
//! inputs are streamed; nothing grows with their lengths but a file without a name.

mod devices;
mod lists;
mod moved;
mod parts;

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use bc_integrity::{ManifestFile, Trust, manifest_write_failed};
use bc_manifest::Failure;
use bc_manifest::integrity::{Entry, Header, Kind, Trailer, Writer};
use bc_manifest::time::parse_rfc3339;
use bc_pool::Cancel;
use bc_walk::Shard;
use bc_walk::job::{Error, ErrorKind};

use self::devices::MergedDevices;
pub use self::lists::{ListFile, MergedLists, merge_lists};
use self::moved::Inodes;
use self::parts::{Directories, Part, Parts, part_of};

/// Number of unreadable entries that are returned with their paths.
const MOST_UNREAD: usize = 10_000;

/// Options of a merge.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MergeOptions<'a> {
    /// The manifests of all parts of one tree, in any order.
    pub manifests: &'a [ManifestFile],
    /// Threads that may check the trailers, at least 1.
    pub workers: usize,
    /// Ends the run.
    pub cancel: &'a Cancel,
}

impl<'a> MergeOptions<'a> {
    /// Merges these, with so many threads.
    pub fn new(
        manifests: &'a [ManifestFile],
        workers: usize,
        cancel: &'a Cancel,
    ) -> MergeOptions<'a> {
        MergeOptions {
            manifests,
            workers,
            cancel,
        }
    }
}

/// Result of a merge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Merged {
    /// Trailer of the result.
    pub trailer: Trailer,
    /// Files of one name that are in more than one place: they were moved while parts were read.
    /// Each with the paths that it was found under.
    pub moved: Vec<Vec<Vec<u8>>>,
    /// Entries that could not be read when the parts were made, with the reasons; of very many the
    /// first.
    pub unread: Vec<(Vec<u8>, Failure)>,
}

/// Puts the manifests of all parts of a tree together and writes the result to `out`, which is
/// returned flushed. It is what one run would have written, but for the header's time, host,
/// machine, device number and part, and the trailer's digest.
///
/// Nothing is written before every input was found whole and its trailer right. Other errors are
/// found on the way: after one, the output must not be used.
///
/// # Errors
/// Fails if reading or writing fails; if an input is no part, or not of the same tree, options and
/// algorithm; if a part is missing or comes twice; if an entry is not of its part; if a directory
/// is unknown to the part it belongs to; if the run is cancelled.
pub fn merge<W: Write>(what: &MergeOptions<'_>, out: W) -> Result<(W, Merged), Error> {
    if what.manifests.is_empty() {
        return Err(Error::usage("no manifests"));
    }
    let parts = Parts::open(what)?;
    let mut writer = Writer::new(out, &parts.header).map_err(manifest_write_failed)?;
    let seen = Seen {
        devices: MergedDevices::new(&parts),
        inodes: Inodes::default(),
        known: parts.directories(),
        follows: parts.header.options.get("follow_symlinks") == Some(&true.into()),
        unread: Vec::new(),
    };
    let write = |entry: &Entry| writer.write(entry).map_err(manifest_write_failed);
    let mut seen = read_ahead(&parts, what.cancel, seen, Seen::see, write)?;
    seen.known.compare(&parts, what.cancel)?;
    let repeated = seen.inodes.repeated().map_err(|error| spilling(&error))?;
    let moved = moved::find(&parts, what.cancel, &mut seen.devices, &repeated)?;
    let (out, trailer) = writer.finish().map_err(manifest_write_failed)?;
    let unread = seen.unread;
    Ok((
        out,
        Merged {
            trailer,
            moved,
            unread,
        },
    ))
}

/// Data collected of the entries so far.
struct Seen<'a> {
    devices: MergedDevices<'a>,
    inodes: Inodes,
    known: Directories,
    /// True if links were followed: a file of one name may be under several paths.
    follows: bool,
    unread: Vec<(Vec<u8>, Failure)>,
}

impl Seen<'_> {
    /// Records an entry and gives it the device number of the whole.
    fn see(&mut self, part: usize, entry: &mut Entry) -> Result<(), Error> {
        entry.dev = self.devices.index(part, entry)?;
        if let Some(failure) = &entry.error
            && self.unread.len() < MOST_UNREAD
        {
            self.unread.push((entry.path.clone(), failure.clone()));
        }
        if entry.kind == Kind::Dir && is_read(entry) {
            self.known.see(&entry.path);
        }
        if let Some(key) = moved::key(entry).filter(|_| !self.follows) {
            self.inodes.see(key);
        }
        Ok(())
    }
}

/// Checks a manifest of a whole tree, or of a part of one, by itself: its trailer and every line.
///
/// # Errors
/// Fails with the first error found; if the run is cancelled.
pub fn check_manifest(manifest: &ManifestFile, cancel: &Cancel) -> Result<Trailer, Error> {
    let header = manifest.header()?;
    manifest.check()?;
    check_header(manifest, &header)?;
    if shard_of(manifest)?.is_some() {
        let mut part = Part::open(manifest)?;
        while part.advance()? {
            stop_if(cancel)?;
        }
        return Ok(part.trailer());
    }
    let mut lines = manifest.reader(Trust::Checked)?;
    let mut entry = Entry::new(Vec::new(), Kind::File);
    while lines
        .read_into(&mut entry)
        .map_err(|error| manifest.refused(&error))?
    {
        stop_if(cancel)?;
    }
    Ok(*lines.counts())
}

/// Checks time and algorithm: queries over many manifests order them by these times and compare
/// their digests.
fn check_header(manifest: &ManifestFile, header: &Header) -> Result<(), Error> {
    manifest.algorithm_of(header)?;
    let updated_at = header.extra.get("updated_at").map(|time| time.as_str());
    let times = [
        ("created_at", header.created_at.as_deref().map(Some)),
        ("updated_at", updated_at),
    ];
    for (key, time) in times {
        if let Some(time) = time
            && time.and_then(parse_rfc3339).is_none()
        {
            let time = bc_fs::escape(time.unwrap_or("no text").as_bytes());
            return Err(manifest.bad(format!("{key} is no time in UTC: {time}")));
        }
    }
    Ok(())
}

/// Returns the part of a tree that a manifest describes; `None` for all of it.
///
/// # Errors
/// Fails if it is no manifest, or of an unknown part.
pub fn shard_of(manifest: &ManifestFile) -> Result<Option<Shard>, Error> {
    part_of(manifest, &manifest.header()?)
}

/// True if the names in this directory were read, as far as its entry shows. Other errors are about
/// the directory itself.
fn is_read(entry: &Entry) -> bool {
    let failed = entry.error.as_ref().map(|failure| failure.op.as_str());
    !matches!(failed, Some("open" | "read directory"))
}

fn stop_if(cancel: &Cancel) -> Result<(), Error> {
    match cancel.is_cancelled() {
        true => Err(Error::cancelled()),
        false => Ok(()),
    }
}

fn spilling(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("temporary file: {error}"))
}

/// Entries that are handed over at once.
const BATCH: usize = 512;

/// Batches that may wait.
const BATCHES: usize = 4;

/// Passes the entries of all parts in path order first to `see`, on another thread and with the
/// number of their part, and then to `take`; returns `see`'s state. There is one producer, since the
/// parts are merged by their paths, and it may not run far ahead.
fn read_ahead<S: Send>(
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
