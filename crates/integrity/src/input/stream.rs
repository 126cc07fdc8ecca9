//! The entries of a manifest, streamed beside another sorted side.
//!
//! Entries lie in batches whose memory goes round: a batch that was looked at
//! goes back to the thread that parses, so that nothing is allocated for an
//! entry. Few batches wait, which keeps them in the cache: parsing further
//! ahead costs more in page faults than it gains, since a walk beside it has
//! every CPU busy anyway.

use std::cmp::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;

use bc_manifest::integrity::{Entry, Header, Kind, Reader, path_order};
use bc_walk::job::{Error, ErrorKind};

use crate::input::lines::LineInput;
use crate::input::passing::{LineRun, Passing};
use crate::options::Work;
use std::ops::ControlFlow;

/// Use of a thread of its own for reading a manifest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Prefetch {
    Thread,
    Off,
}

impl Prefetch {
    /// Chooses a thread if the walk beside it may have several as well.
    pub(crate) fn beside(work: &Work<'_>) -> Prefetch {
        match work.walk_workers.usual() {
            0 | 1 => Prefetch::Off,
            _ => Prefetch::Thread,
        }
    }
}

/// Entries that a thread hands over at once.
pub(crate) const BATCH: usize = 512;

/// Batches that may wait: about 1 MB.
pub(crate) const BATCHES: usize = 4;

/// A batch with this many bytes of paths is full, however few its entries are: those of deep trees
/// have 20 KB each.
const BATCH_BYTES: usize = 128 << 10;

/// Lines of a manifest, from any source.
pub(crate) type ManifestLines = Reader<LineInput>;

/// Message of the thread that reads a manifest.
pub(crate) enum Message {
    /// The SHA-256 was found right, with the number of entries, or is not to be checked.
    Proven(Option<u64>),
    /// Entries, and the number of those that count.
    Batch(Vec<Entry>, usize),
    /// The end, with the problems that were skipped.
    Done(Vec<String>),
    Failed(Error),
}

/// End of the lines.
pub(crate) enum LinesEnd {
    No,
    Yes,
    Failed(bc_manifest::Error),
}

/// Reads up to `most` entries into `batch`, reusing the entries in it; returns how many were read.
/// Entries to be skipped are not among them.
pub(crate) fn fill(
    lines: &mut ManifestLines,
    passing: &mut Passing,
    batch: &mut Vec<Entry>,
    most: usize,
) -> (usize, LinesEnd) {
    let mut bytes = 0;
    for count in 0..most {
        if bytes >= BATCH_BYTES {
            return (count, LinesEnd::No);
        }
        match passing.pass(lines) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return (count, LinesEnd::Yes),
            Err(error) => return (count, LinesEnd::Failed(error)),
        }
        if count == batch.len() {
            batch.push(Entry::new(Vec::new(), Kind::File));
        }
        let entry = &mut batch[count];
        match lines.read_into(entry) {
            Ok(true) => bytes += entry.path.len(),
            Ok(false) => return (count, LinesEnd::Yes),
            Err(error) => return (count, LinesEnd::Failed(error)),
        }
    }
    (most, LinesEnd::No)
}

/// Position of an entry relative to a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Position {
    /// Before the path.
    Before,
    /// At the path.
    At,
}

/// Streams a manifest's entries beside another sorted side.
pub(crate) struct ManifestStream {
    header: Header,
    source: LineStream,
    batch: Vec<Entry>,
    /// Number of entries of the batch that count, and of those that are taken.
    count: usize,
    taken: usize,
    over: bool,
    problems: Vec<String>,
}

/// Conversion of an error of reading, which adds the manifest that it is about.
pub(crate) type Blame = Box<dyn Fn(&bc_manifest::Error) -> Error>;

enum LineStream {
    Direct(Box<(ManifestLines, Passing)>, Blame),
    Prefetched {
        receiver: Receiver<Message>,
        back: Sender<Vec<Entry>>,
        /// Releases the thread, which waits for it behind the proof.
        go: Option<Sender<Passing>>,
        /// Last, so that the thread finds the channels closed while it is waited for.
        _thread: Joined,
    },
}

/// A thread that is joined when it is dropped, so that it holds no file of a run that is over.
struct Joined(Option<JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        // A panic was reported as a reader that stopped.
        let _ = self.0.take().map(JoinHandle::join);
    }
}

impl ManifestStream {
    /// Reads in the caller's thread, an entry at a time.
    pub(crate) fn direct(lines: ManifestLines, blame: Blame) -> ManifestStream {
        let header = lines.header().clone();
        let direct = Box::new((lines, Passing::default()));
        ManifestStream::new(header, LineStream::Direct(direct, blame))
    }

    /// Takes the batches that a thread sends, and sends them back.
    pub(crate) fn prefetched(
        header: Header,
        receiver: Receiver<Message>,
        back: Sender<Vec<Entry>>,
        go: Sender<Passing>,
        thread: JoinHandle<()>,
    ) -> ManifestStream {
        let source = LineStream::Prefetched {
            receiver,
            back,
            go: Some(go),
            _thread: Joined(Some(thread)),
        };
        ManifestStream::new(header, source)
    }

    /// Leaves entries out, before the first is taken.
    pub(crate) fn leave_out(&mut self, what: Passing) {
        match &mut self.source {
            LineStream::Direct(direct, _) => direct.1 = what,
            LineStream::Prefetched { go, .. } => {
                // If the thread has ended, it reports the reason.
                let _ = go.take().map(|go| go.send(what));
            }
        }
    }

    /// Restricts a stream that reads in the caller's thread to the entries of `run`, before the
    /// first is taken.
    pub(crate) fn only(mut self, run: &LineRun) -> ManifestStream {
        if let LineStream::Direct(direct, _) = &mut self.source {
            let (lines, passing) = &mut **direct;
            *passing = Passing::all_but(run, lines);
        }
        self
    }

    fn new(header: Header, source: LineStream) -> ManifestStream {
        ManifestStream {
            header,
            source,
            batch: Vec::new(),
            count: 0,
            taken: 0,
            over: false,
            problems: Vec::new(),
        }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Waits until the manifest has been found unaltered. Returns the number of its entries, where
    /// that is known.
    pub(crate) fn prove(&mut self) -> Result<Option<u64>, Error> {
        let LineStream::Prefetched { receiver, .. } = &self.source else {
            return Ok(None);
        };
        match receiver.recv() {
            Ok(Message::Failed(error)) => Err(error),
            Ok(Message::Proven(entries)) => Ok(entries),
            Ok(_) => Ok(None),
            Err(_) => Err(stopped()),
        }
    }

    /// Makes the next entry the one at `taken`, unless there is none.
    fn fill(&mut self) -> Result<(), Error> {
        if let LineStream::Prefetched { go, .. } = &mut self.source {
            // Nothing is left out, unless it was said before.
            *go = None;
        }
        while self.taken == self.count && !self.over {
            self.taken = 0;
            self.count = 0;
            match &mut self.source {
                LineStream::Direct(direct, blame) => {
                    let (lines, passing) = &mut **direct;
                    let (count, end) = fill(lines, passing, &mut self.batch, 1);
                    self.count = count;
                    match end {
                        LinesEnd::No => {}
                        LinesEnd::Yes => {
                            self.over = true;
                            self.problems = problems(lines);
                        }
                        LinesEnd::Failed(error) => return Err(blame(&error)),
                    }
                }
                LineStream::Prefetched { receiver, back, .. } => match receiver.recv() {
                    Ok(Message::Proven(_)) => {}
                    Ok(Message::Batch(batch, count)) => {
                        let used = std::mem::replace(&mut self.batch, batch);
                        self.count = count;
                        // The thread may have ended.
                        let _ = back.send(used);
                    }
                    Ok(Message::Done(problems)) => {
                        self.over = true;
                        self.problems = problems;
                    }
                    Ok(Message::Failed(error)) => return Err(error),
                    Err(_) => return Err(stopped()),
                },
            }
        }
        Ok(())
    }

    /// Returns the next entry, without taking it.
    pub(crate) fn peek(&mut self) -> Result<Option<&Entry>, Error> {
        self.fill()?;
        Ok(self.batch[..self.count].get(self.taken))
    }

    /// Returns the next entry.
    pub(crate) fn take(&mut self) -> Result<Option<&Entry>, Error> {
        self.take_if(|_| true)
    }

    /// Returns the next entry unless its path comes after `path`, and its position.
    pub(crate) fn take_up_to(&mut self, path: &[u8]) -> Result<Option<(Position, &Entry)>, Error> {
        self.fill()?;
        let next = self.batch[..self.count].get(self.taken);
        let position = match next.map(|entry| path_order(&entry.path, path)) {
            Some(Ordering::Less) => Position::Before,
            Some(Ordering::Equal) => Position::At,
            Some(Ordering::Greater) | None => return Ok(None),
        };
        self.taken += 1;
        Ok(next.map(|entry| (position, entry)))
    }

    /// Returns the next entry if its path comes before `path`.
    pub(crate) fn take_before(&mut self, path: &[u8]) -> Result<Option<&Entry>, Error> {
        self.take_if(|entry| path_order(&entry.path, path).is_lt())
    }

    /// Returns the next entry if it has this path.
    pub(crate) fn take_at(&mut self, path: &[u8]) -> Result<Option<&Entry>, Error> {
        self.take_if(|entry| entry.path == path)
    }

    fn take_if(&mut self, wanted: impl Fn(&Entry) -> bool) -> Result<Option<&Entry>, Error> {
        self.fill()?;
        let next = self.batch[..self.count].get(self.taken);
        let next = next.filter(|entry| wanted(entry));
        self.taken += usize::from(next.is_some());
        Ok(next)
    }

    /// Returns the problems that were skipped, in words; complete at the end.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }
}

fn stopped() -> Error {
    Error::new(
        ErrorKind::Panic,
        "the thread that reads the manifest stopped",
    )
}

/// Returns the problems that a reader skipped, in words.
pub(crate) fn problems(lines: &ManifestLines) -> Vec<String> {
    let mut all: Vec<String> = lines.problems().iter().map(ToString::to_string).collect();
    let more = lines.problem_count() - all.len() as u64;
    if more > 0 {
        all.push(format!("{more} more problems"));
    }
    all
}

#[cfg(test)]
mod tests {
    use bc_manifest::integrity::{Meta, Writer};

    use super::*;
    use crate::input::{ManifestFile, Trust};

    /// A manifest of directories at these paths.
    fn manifest(paths: &[Vec<u8>]) -> ManifestFile {
        let mut writer = Writer::new(Vec::new(), &Header::new("sha256", "0.1.0")).unwrap();
        for path in paths {
            let mut entry = Entry::new(path.clone(), Kind::Dir);
            entry.meta = Some(Meta::default());
            writer.write(&entry).unwrap();
        }
        let (bytes, _) = writer.finish().unwrap();
        ManifestFile::from_reader(b"memory", &bytes[..]).unwrap()
    }

    /// Short paths, then those of a deep tree, then short ones.
    fn paths() -> Vec<Vec<u8>> {
        let short = |letter: char| (0..700).map(move |number| format!("{letter}{number:03}"));
        let deep = (1..400).map(|depth| "m/".repeat(depth * 40) + "m");
        let all = short('a').chain(deep).chain(short('z'));
        all.map(String::into_bytes).collect()
    }

    #[test]
    fn batches_end_at_bytes_as_well() {
        let paths = paths();
        let mut lines = manifest(&paths).reader(Trust::Checked).unwrap();
        let (mut batch, mut counts, mut seen) = (Vec::new(), Vec::new(), 0);
        loop {
            let (count, end) = fill(&mut lines, &mut Passing::default(), &mut batch, BATCH);
            let bytes: usize = batch[..count].iter().map(|entry| entry.path.len()).sum();
            let last = batch[..count].last().map_or(0, |entry| entry.path.len());
            assert!(bytes - last < BATCH_BYTES);
            let found = batch[..count].iter().map(|entry| &entry.path);
            assert!(found.eq(&paths[seen..seen + count]));
            seen += count;
            counts.push(count);
            match end {
                LinesEnd::No => assert!(count == BATCH || bytes >= BATCH_BYTES),
                LinesEnd::Yes => break,
                LinesEnd::Failed(error) => panic!("{error}"),
            }
        }
        assert_eq!(seen, paths.len());
        assert!(counts.contains(&BATCH) && counts.iter().any(|&count| count < 9));
    }

    #[test]
    fn positions_of_entries_with_and_without_a_thread() {
        let all = paths();
        let file = manifest(&all);
        for prefetch in [Prefetch::Off, Prefetch::Thread] {
            let mut old = file.stream(Trust::Checked, prefetch).unwrap();
            old.prove().unwrap();
            let mut found = Vec::new();
            // Every third is looked for.
            for path in all.iter().step_by(3) {
                while let Some((position, entry)) = old.take_up_to(path).unwrap() {
                    let expected = match entry.path == *path {
                        true => Position::At,
                        false => Position::Before,
                    };
                    assert_eq!(position, expected);
                    found.push(entry.path.clone());
                }
                assert_eq!(found.last(), Some(path));
                assert!(old.take_at(path).unwrap().is_none());
            }
            while let Some(entry) = old.take().unwrap() {
                found.push(entry.path.clone());
            }
            assert_eq!(found, all, "{prefetch:?}");
        }
    }
}
