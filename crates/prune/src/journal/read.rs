//! Reading a journal: one pass that checks every line and remembers the position of each step, so
//! that undo, which begins at the end, holds one step at a time. A line is looked at once, however
//! many there are.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use bc_edit::metadata::FileMetadata;
use bc_edit::names::prune::Mark;
use bc_fs::PathError;
use bc_manifest::json::JsonPath;
use bc_manifest::time::parse_rfc3339;
use bc_pool::Cancel;
use bc_walk::Identity;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::record::{Copied, End, JournalStep, MAGIC, RunHeader, SCHEMA, TreeAction};
use super::trust::Locked;
use super::{refused, trust};
use crate::journal::record::CopyOrigin;
use crate::options::RunMode;

/// Bytes of the longest line. Attributes make a step long: two files with a
/// list of 64 KiB of names and as much for each value stay below this.
const LONGEST: u64 = 64 << 20;

/// Position of a step's line, and its outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepPosition {
    offset: u64,
    length: u32,
    /// Number of the run in the journal that made it: an inode number means one file within a run
    /// only, the next may find it given again.
    pub(crate) run: u64,
    pub(crate) took_effect: Option<bool>,
}

/// The copy that a move to another file system left at its destination.
#[derive(Clone, Debug)]
pub(crate) struct RecordedCopy {
    pub(crate) id: Identity,
    /// Mark of the file, as in the temporary name of its original.
    pub(crate) mark: Mark,
    pub(crate) origin: CopyOrigin,
    /// FileMetadata that it was given; `None` if the journal does not say.
    pub(crate) made: Option<FileMetadata>,
}

/// Position of the line about a copy, with the fields that are needed for all steps.
#[derive(Clone, Copy, Debug)]
struct CopyAt {
    mark: Mark,
    origin: CopyOrigin,
    offset: u64,
    length: u32,
}

/// All steps of a journal, in the order they were made.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) places: Vec<StepPosition>,
    /// The directories from which names went, with the number of the run.
    pub(crate) emptied: Vec<(u64, Vec<u8>)>,
    /// Start of each run, in nanoseconds since 1970.
    pub(crate) started_ns: Vec<i64>,
    /// True if some file had several names.
    pub(crate) linked: bool,
    /// The volumes of the steps' files, by run and device.
    pub(crate) volumes: HashMap<(u64, u64), String>,
    /// The copies that steps made or found, by place.
    copies: HashMap<usize, CopyAt>,
    /// Where files were moved to, as hashes of the paths, with the places of the steps.
    destinations: BTreeSet<(u64, usize)>,
    /// Bytes of complete lines: what follows was cut off.
    pub(super) complete: u64,
    /// The numbers of lines before that which cannot be read.
    pub(crate) damaged: Vec<u64>,
    /// True if it is empty, or begins as a journal of ours.
    pub(super) is_ours: bool,
    /// Start of the current line.
    at: u64,
}

/// Reason why a line is not accepted.
enum Flaw {
    /// It is not even JSON: cut off, or written over.
    Damaged,
    /// It records a step that no run of prune makes.
    Refused(String),
}

impl From<String> for Flaw {
    fn from(message: String) -> Flaw {
        Flaw::Refused(message)
    }
}

/// Tells the kinds of lines apart.
#[derive(Deserialize)]
struct Probe {
    journal: Option<IgnoredAny>,
    done: Option<IgnoredAny>,
    copied: Option<IgnoredAny>,
}

/// Reason why reading ended early.
pub(super) enum ReadEnd {
    Cancelled,
    Io(io::Error),
    /// It is not a journal, or not a whole one.
    Refused(String),
}

/// The run whose lines are being read.
#[derive(Default)]
struct JournalRun {
    /// Its number; 0 while none has started.
    number: u64,
    roots: Option<HashSet<Vec<u8>>>,
    /// The places of its steps that have started and not ended, by number.
    open: HashMap<u64, usize>,
    /// True if a line of it is damaged, which may be that of a step's start.
    gap: bool,
}

/// Checks every line. Half a line at the end, from a run that was cut off, is left out: that step
/// never began. A whole line that cannot be read is damaged: its step is unknown, the others are
/// not.
pub(super) fn scan(input: impl Read, cancel: &Cancel) -> Result<Index, ReadEnd> {
    let mut input = BufReader::with_capacity(256 << 10, input);
    let mut index = Index::default();
    let mut run = JournalRun::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        if cancel.is_cancelled() {
            return Err(ReadEnd::Cancelled);
        }
        line.clear();
        let read = Read::take(&mut input, LONGEST).read_until(b'\n', &mut line);
        let length = read.map_err(ReadEnd::Io)?;
        let bad = |message: String| ReadEnd::Refused(format!("line {number}: {message}"));
        let Some(text) = line.strip_suffix(b"\n") else {
            if length as u64 == LONGEST {
                return Err(bad("longer than a journal's".to_owned()));
            }
            break;
        };
        let taken = index.line(text, &mut run);
        index.at += length as u64;
        match taken {
            Ok(()) => {}
            Err(Flaw::Damaged) => {
                run.gap = true;
                index.damaged.push(number);
            }
            Err(Flaw::Refused(message)) => return Err(bad(message)),
        }
        index.complete = index.at;
    }
    // A run that was killed before its first line was whole has done nothing.
    if run.number > 0 || is_torn(&line) {
        index.is_ours = run.number > 0 || line.is_empty() || line.starts_with(NAME.as_bytes());
        Ok(index)
    } else {
        Err(ReadEnd::Refused(NOT_ONE.to_owned()))
    }
}

/// Returns true if the first line, which has no end, may be one of ours: that of an empty file is.
fn is_torn(line: &[u8]) -> bool {
    let length = line.len().min(HEADER.len());
    line[..length] == HEADER.as_bytes()[..length]
}

/// First bytes that no other program's files have.
const NAME: &str = "{\"journal\":\"bc dup prune\"";

/// First bytes of every run's first line.
const HEADER: &str = "{\"journal\":\"bc dup prune\",\"schema\":";

const NOT_ONE: &str = "not a journal of bc dup";

impl Index {
    fn line(&mut self, text: &[u8], run: &mut JournalRun) -> Result<(), Flaw> {
        let json = |error: serde_json::Error| error.to_string();
        let probe: Probe = match serde_json::from_slice(text) {
            Ok(probe) => probe,
            Err(_) if run.number == 0 => return Err(NOT_ONE.to_owned().into()),
            Err(_) => return Err(Flaw::Damaged),
        };
        if probe.journal.is_some() {
            let header: RunHeader = serde_json::from_slice(text).map_err(json)?;
            *run = begin(&header, run.number + 1)?;
            let started_ns = parse_rfc3339(&header.started_at);
            self.started_ns.push(started_ns.unwrap_or(i64::MIN));
            return Ok(());
        }
        if run.number == 0 {
            return Err(NOT_ONE.to_owned().into());
        }
        if probe.done.is_some() {
            let end: End = serde_json::from_slice(text).map_err(json)?;
            if let Some(at) = run.open(end.step)? {
                run.open.remove(&end.step);
                self.places[at].took_effect = Some(end.done);
            }
        } else if probe.copied.is_some() {
            let line: Copied = serde_json::from_slice(text).map_err(json)?;
            let Copied { step, copied, .. } = line;
            let Some(at) = run.open(step)? else {
                return Ok(());
            };
            let id = Identity {
                dev: copied.dev,
                ino: copied.ino,
            };
            let origin = match line.found {
                true => CopyOrigin::Found,
                false => CopyOrigin::Made,
            };
            let born_ns = copied.born_ns;
            let copy = CopyAt {
                mark: Mark { id, born_ns },
                origin,
                offset: self.at,
                // At most LONGEST.
                length: text.len() as u32,
            };
            self.copies.insert(at, copy);
        } else {
            let entry: JournalStep = serde_json::from_slice(text).map_err(json)?;
            if let Some(flaw) = entry.flaw(run.roots.as_ref()) {
                return Err(flaw.into());
            }
            if let Some(volume) = entry.volume.clone() {
                let device = (run.number, entry.target.id().dev);
                self.volumes.entry(device).or_insert(volume);
            }
            match (entry.tree_action(), entry.target.path()) {
                (Some(TreeAction::Empty), Some(path)) => self.emptied.push((run.number, path)),
                (None, _) => self.linked |= entry.target.nlink() > 1,
                _ => {}
            }
            if let (None, Some(to)) = (entry.tree_action(), entry.destination()) {
                self.destinations.insert((hash(&to), self.places.len()));
            }
            run.open.insert(entry.step, self.places.len());
            self.places.push(StepPosition {
                offset: self.at,
                // At most LONGEST.
                length: text.len() as u32,
                run: run.number,
                took_effect: None,
            });
        }
        Ok(())
    }

    fn entry(&self, file: &File, at: usize) -> io::Result<JournalStep> {
        let place = self.places[at];
        read_line(file, place.offset, place.length)
    }

    fn copy(&self, file: &File, at: usize) -> io::Result<Option<RecordedCopy>> {
        let Some(copy) = self.copies.get(&at) else {
            return Ok(None);
        };
        let line: Copied = read_line(file, copy.offset, copy.length)?;
        Ok(Some(RecordedCopy {
            id: copy.mark.id,
            mark: copy.mark,
            origin: copy.origin,
            made: line.made.and_then(|made| made.metadata()),
        }))
    }
}

/// Of a path.
fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

impl JournalRun {
    /// The place of the step that a line about `step` belongs to; `None` if its begin may be among
    /// the damaged lines.
    fn open(&self, step: u64) -> Result<Option<usize>, String> {
        match self.open.get(&step) {
            Some(at) => Ok(Some(*at)),
            None if self.gap => Ok(None),
            None => Err("is about a step that has not begun, or has ended".to_owned()),
        }
    }
}

fn read_line<T: DeserializeOwned>(file: &File, offset: u64, length: u32) -> io::Result<T> {
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, offset)?;
    Ok(serde_json::from_slice(&text)?)
}

fn begin(header: &RunHeader, number: u64) -> Result<JournalRun, String> {
    if header.journal != MAGIC || !(1..=SCHEMA).contains(&header.schema) {
        return Err("written by another program or version".to_owned());
    }
    let roots: Option<HashSet<Vec<u8>>> = header.roots.iter().map(JsonPath::bytes).collect();
    let roots = roots
        .filter(|roots| roots.iter().all(|root| root.starts_with(b"/")))
        .ok_or("a root that is no absolute path")?;
    Ok(JournalRun {
        number,
        roots: (header.schema > 1).then_some(roots),
        open: HashMap::new(),
        gap: false,
    })
}

/// A journal that was read, and is held so that no run writes it meanwhile.
pub(crate) struct Steps {
    file: Locked,
    pub(crate) index: Index,
}

impl Steps {
    /// Reads the journal at `path`; `None` if cancelled.
    pub(crate) fn read(
        path: &Path,
        mode: RunMode,
        cancel: &Cancel,
    ) -> Result<Option<Steps>, PathError> {
        let file = trust::lock(trust::open(path)?, path, mode)?;
        Ok(indexed(&file, path, cancel)?.map(|index| Steps { file, index }))
    }

    /// Returns true if the step with this place in the index made a copy.
    pub(crate) fn made_copy(&self, at: usize) -> bool {
        let copy = self.index.copies.get(&at);
        copy.is_some_and(|copy| copy.origin == CopyOrigin::Made)
    }

    /// Returns true if the step with this place in the index was refused, and left nothing.
    pub(crate) fn never_was(&self, at: usize) -> bool {
        // A copy that was not withdrawn may still exist.
        self.index.places[at].took_effect == Some(false) && !self.made_copy(at)
    }

    /// The last step before the one with this place that moved a file to `path`, and its place; not
    /// one that found its copy there.
    pub(crate) fn moved_to(&self, path: &[u8], before: usize) -> Option<(usize, JournalStep)> {
        let hash = hash(path);
        let places = self.index.destinations.range((hash, 0)..(hash, before));
        places.rev().find_map(|(_, at)| {
            let (entry, copy) = self.entry(*at).ok()?;
            let is_it = self.index.places[*at].took_effect != Some(false)
                && copy.is_none_or(|copy| copy.origin == CopyOrigin::Made)
                && entry.destination().as_deref() == Some(path);
            is_it.then_some((*at, entry))
        })
    }

    /// The step with this place in the index, and its copy.
    pub(crate) fn entry(&self, at: usize) -> io::Result<(JournalStep, Option<RecordedCopy>)> {
        let entry = self.index.entry(&self.file, at)?;
        Ok((entry, self.index.copy(&self.file, at)?))
    }
}

/// Returns the index that [`scan`] makes of the open journal; `None` if cancelled.
pub(super) fn indexed(
    file: &File,
    path: &Path,
    cancel: &Cancel,
) -> Result<Option<Index>, PathError> {
    match scan(file, cancel) {
        Ok(index) => Ok(Some(index)),
        Err(ReadEnd::Cancelled) => Ok(None),
        Err(ReadEnd::Io(error)) => Err(PathError::new(path, "read", error)),
        Err(ReadEnd::Refused(message)) => Err(refused(path, "read", message)),
    }
}

/// The copies of moves that did not come to an end: their places, which files
/// they are, and of which.
type Unfinished = HashMap<Vec<u8>, (Mark, Mark)>;

/// The copies of files that had several names, by the file: where they are and
/// which files.
type Linked = HashMap<Mark, (Vec<u8>, Mark)>;

/// Returns the copies in the journals of earlier runs. A journal that cannot be relied on is left
/// out.
pub(crate) fn earlier_copies(
    paths: &[std::path::PathBuf],
    cancel: &Cancel,
) -> (Unfinished, Linked) {
    let mut found = (HashMap::new(), HashMap::new());
    for path in paths {
        let Ok(file) = trust::open(path) else {
            continue;
        };
        let Ok(Some(index)) = indexed(&file, path, cancel) else {
            continue;
        };
        for (&at, copy) in &index.copies {
            if copy.origin == CopyOrigin::Made
                && let Ok(entry) = index.entry(&file, at)
                && let Some(destination) = entry.destination()
            {
                let original = entry.target.mark();
                if entry.target.nlink() > 1 {
                    found.1.insert(original, (destination.clone(), copy.mark));
                }
                // Killed, or failed and not withdrawn.
                if index.places[at].took_effect != Some(true) {
                    found.0.insert(destination, (copy.mark, original));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
