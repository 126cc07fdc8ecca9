//! Reading a journal: one pass that checks every line and remembers where
//! each step stands, so that undo, which begins at the end, holds one step at
//! a time. A line is looked at once, however many there are.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use bc_pool::Cancel;
use bc_walk::Identity;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::record::{Copied, End, Entry, Header, MAGIC, SCHEMA};
use super::trust::Locked;
use super::{JournalError, trust};
use crate::json::JsonPath;
use crate::prune::options::Mode;
use crate::prune::standing::Origin;

/// Bytes of the longest line. Attributes make a step long: two files with a
/// list of 64 KiB of names and as much for each value stay below this.
const LONGEST: u64 = 64 << 20;

/// Where a step stands, and how it went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    offset: u64,
    length: u32,
    step: u64,
    /// Which of the runs that the journal tells of made it: an inode number
    /// means one file within a run only, the next may find it given again.
    pub(crate) run: u64,
    pub(crate) took_effect: Option<bool>,
}

/// The copy that a move to another file system left at its destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) id: Identity,
    pub(crate) origin: Origin,
}

/// All steps of a journal, in the order they were made.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) places: Vec<Place>,
    /// The copies that steps made or found, by place.
    copies: HashMap<usize, Copy>,
    /// Bytes of complete lines: what follows was cut off.
    pub(super) complete: u64,
}

/// Tells the kinds of lines apart.
#[derive(Deserialize)]
struct Probe {
    journal: Option<IgnoredAny>,
    done: Option<IgnoredAny>,
    copied: Option<IgnoredAny>,
}

/// Why reading ended early.
pub(super) enum Stop {
    Cancelled,
    Io(io::Error),
    /// It is not a journal, or not a whole one.
    Refused(String),
}

/// The run whose lines are being read.
#[derive(Default)]
struct Run {
    /// Which one it is; 0 while none has started.
    number: u64,
    roots: Option<HashSet<Vec<u8>>>,
    /// Whether a step of it has begun.
    any: bool,
}

/// Checks every line. Half a line at the end, from a run that was cut off, is
/// left out: that step never began.
pub(super) fn scan(input: impl Read, cancel: &Cancel) -> Result<Index, Stop> {
    let mut input = BufReader::with_capacity(256 << 10, input);
    let mut index = Index::default();
    let mut run = Run::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        if cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        line.clear();
        let read = Read::take(&mut input, LONGEST).read_until(b'\n', &mut line);
        let length = read.map_err(Stop::Io)?;
        let bad = |message: String| Stop::Refused(format!("line {number}: {message}"));
        let Some(text) = line.strip_suffix(b"\n") else {
            if length as u64 == LONGEST {
                return Err(bad("longer than a journal's".to_owned()));
            }
            break;
        };
        index.line(text, &mut run).map_err(bad)?;
        index.complete += length as u64;
    }
    // A run that was killed before its first line was whole has done nothing.
    if run.number > 0 || is_torn(&line) {
        Ok(index)
    } else {
        Err(Stop::Refused(NOT_ONE.to_owned()))
    }
}

/// Whether the first line, which has no end, may be one of ours: that of an empty file is.
fn is_torn(line: &[u8]) -> bool {
    let length = line.len().min(HEADER.len());
    line[..length] == HEADER.as_bytes()[..length]
}

/// What each first line begins with.
const HEADER: &str = "{\"journal\":\"bc dup prune\",\"schema\":";

const NOT_ONE: &str = "not a journal of bc dup";

impl Index {
    fn line(&mut self, text: &[u8], run: &mut Run) -> Result<(), String> {
        let json = |error: serde_json::Error| error.to_string();
        let probe: Probe = match serde_json::from_slice(text) {
            Ok(probe) => probe,
            Err(_) if run.number == 0 => return Err(NOT_ONE.to_owned()),
            Err(error) => return Err(json(error)),
        };
        if probe.journal.is_some() {
            let header: Header = serde_json::from_slice(text).map_err(json)?;
            *run = begin(&header, run.number + 1)?;
            return Ok(());
        }
        if run.number == 0 {
            return Err(NOT_ONE.to_owned());
        }
        if probe.done.is_some() {
            let end: End = serde_json::from_slice(text).map_err(json)?;
            self.last(end.step, run)?.1.took_effect = Some(end.done);
        } else if probe.copied.is_some() {
            let line: Copied = serde_json::from_slice(text).map_err(json)?;
            let Copied { step, copied, .. } = line;
            let (at, _) = self.last(step, run)?;
            let id = Identity {
                dev: copied.dev,
                ino: copied.ino,
            };
            let origin = match line.found {
                true => Origin::Found,
                false => Origin::Made,
            };
            self.copies.insert(at, Copy { id, origin });
        } else {
            let entry: Entry = serde_json::from_slice(text).map_err(json)?;
            if let Some(flaw) = entry.flaw(run.roots.as_ref()) {
                return Err(flaw);
            }
            self.places.push(Place {
                offset: self.complete,
                // At most LONGEST.
                length: text.len() as u32,
                step: entry.step,
                run: run.number,
                took_effect: None,
            });
            run.any = true;
        }
        Ok(())
    }

    fn entry(&self, file: &File, at: usize) -> io::Result<Entry> {
        let place = self.places[at];
        let mut text = vec![0; place.length as usize];
        file.read_exact_at(&mut text, place.offset)?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// The step that a line about `step` belongs to: a run makes one after the
    /// other, so it is the last one.
    fn last(&mut self, step: u64, run: &Run) -> Result<(usize, &mut Place), String> {
        let at = self.places.len();
        match self.places.last_mut() {
            Some(place) if run.any && place.step == step => Ok((at - 1, place)),
            _ => Err("ends a step that is not the one before it".to_owned()),
        }
    }
}

fn begin(header: &Header, number: u64) -> Result<Run, String> {
    if header.journal != MAGIC || !(1..=SCHEMA).contains(&header.schema) {
        return Err("written by another program or version".to_owned());
    }
    let roots: Option<HashSet<Vec<u8>>> = header.roots.iter().map(JsonPath::bytes).collect();
    let roots = roots
        .filter(|roots| roots.iter().all(|root| root.starts_with(b"/")))
        .ok_or("a root that is no absolute path")?;
    Ok(Run {
        number,
        roots: (header.schema > 1).then_some(roots),
        any: false,
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
        mode: Mode,
        cancel: &Cancel,
    ) -> Result<Option<Steps>, JournalError> {
        let file = trust::lock(trust::open(path)?, path, mode)?;
        Ok(indexed(&file, path, cancel)?.map(|index| Steps { file, index }))
    }

    /// Whether the step with this place in the index made a copy.
    pub(crate) fn made_copy(&self, at: usize) -> bool {
        let copy = self.index.copies.get(&at);
        copy.is_some_and(|copy| copy.origin == Origin::Made)
    }

    /// The step with this place in the index, and its copy.
    pub(crate) fn entry(&self, at: usize) -> io::Result<(Entry, Option<Copy>)> {
        let entry = self.index.entry(&self.file, at)?;
        Ok((entry, self.index.copies.get(&at).copied()))
    }
}

/// What [`scan`] found in the open journal; `None` if cancelled.
pub(super) fn indexed(
    file: &File,
    path: &Path,
    cancel: &Cancel,
) -> Result<Option<Index>, JournalError> {
    match scan(file, cancel) {
        Ok(index) => Ok(Some(index)),
        Err(Stop::Cancelled) => Ok(None),
        Err(Stop::Io(error)) => Err(JournalError::new(path, "read", error)),
        Err(Stop::Refused(message)) => Err(JournalError::new(path, "read", message)),
    }
}

/// The copies of moves that did not come to an end: their places, and which
/// files they are. A journal that cannot be relied on tells nothing.
pub(crate) fn unfinished(
    paths: &[std::path::PathBuf],
    cancel: &Cancel,
) -> HashMap<Vec<u8>, Identity> {
    let mut found = HashMap::new();
    for path in paths {
        let Ok(file) = trust::open(path) else {
            continue;
        };
        let Ok(Some(index)) = indexed(&file, path, cancel) else {
            continue;
        };
        for (&at, copy) in &index.copies {
            // Killed, or failed and not withdrawn.
            if copy.origin == Origin::Made
                && index.places[at].took_effect != Some(true)
                && let Ok(entry) = index.entry(&file, at)
                && let Some(destination) = entry.destination()
            {
                found.insert(destination, copy.id);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::prune::journal::steps_in as parse;

    fn header(schema: u32, roots: &str) -> String {
        format!(
            "{{\"journal\":\"bc dup prune\",\"schema\":{schema},\"action\":\"delete\",\
             \"started_at\":\"2025-01-01T00:00:00Z\"{roots}}}\n"
        )
    }

    fn file(path: &str, size: u64) -> String {
        format!(
            "{{\"path\":\"{path}\",\"dev\":1,\"ino\":2,\"size\":{size},\"mtime_ns\":0,\"ctime_ns\":0,\
             \"nlink\":1,\"mode\":33188,\"uid\":0,\"gid\":0,\"atime_ns\":0}}"
        )
    }

    fn step(number: u64, action: &str, path: &str, size: u64) -> String {
        format!(
            "{{\"step\":{number},\"action\":\"{action}\",\"target\":{},\"keeper\":{},\
             \"digest\":\"{:032x}\"}}\n",
            file(path, size),
            file("/a/keep", size),
            1
        )
    }

    const ROOTS: &str = ",\"roots\":[{\"path\":\"/a\"}]";

    #[test]
    fn what_is_no_step_of_ours_is_refused() {
        let good = header(2, ROOTS) + &step(1, "delete", "/a/x", 5);
        assert_eq!(parse(good.as_bytes()), Ok(1));
        // Version 1 recorded no roots.
        let old = header(1, "") + &step(1, "delete", "/b/x", 5);
        assert_eq!(parse(old.as_bytes()), Ok(1));
        for (text, message) in [
            (header(3, ROOTS), "another program or version"),
            (header(0, ROOTS), "another program or version"),
            (
                header(2, ",\"roots\":[{\"path\":\"a\"}]"),
                "no absolute path",
            ),
            (
                header(2, ROOTS) + &step(1, "chmod", "/a/x", 5),
                "unknown action 'chmod'",
            ),
            (
                header(1, "") + &step(1, "chmod", "/a/x", 5),
                "unknown action 'chmod'",
            ),
            (
                header(2, ROOTS) + &step(1, "delete", "/b/x", 5),
                "/b/x lies outside",
            ),
            (
                header(2, ROOTS) + &step(1, "delete", "/ab/x", 5),
                "lies outside",
            ),
            (
                header(2, ROOTS) + &step(1, "delete", "/a/../b", 5),
                "lies outside",
            ),
            (
                header(2, "") + &step(1, "delete", "/a/x", 5),
                "lies outside",
            ),
            (
                header(2, ROOTS) + &step(1, "delete", "a/x", 5),
                "absolute paths",
            ),
            (
                header(2, ROOTS) + &step(1, "move", "/a/x", 5),
                "absolute paths",
            ),
            (
                header(2, ROOTS) + &step(1, "delete", "/a/x", u64::MAX),
                "no file can have",
            ),
            (
                header(1, "") + &step(1, "delete", "/a/x", u64::MAX),
                "no file can have",
            ),
            (
                header(2, ROOTS) + "{\"step\":1,\"done\":true}\n",
                "not the one before",
            ),
            (step(1, "delete", "/a/x", 5), "not a journal"),
            ("notes\n".to_owned(), "not a journal"),
            ("notes".to_owned(), "not a journal"),
            ("{\"journal\":\"bc du\n".to_owned(), "not a journal"),
            ("{\"journal\":\"another".to_owned(), "not a journal"),
            (
                "{\"journal\":\"bc dup prune\",\"schema!".to_owned(),
                "not a journal",
            ),
            ("\n".to_owned(), "not a journal"),
            ("\0\0\0".to_owned(), "not a journal"),
        ] {
            let refused = parse(text.as_bytes()).unwrap_err();
            assert!(
                refused.contains(message),
                "{refused}, not {message}: {text}"
            );
        }
    }

    #[test]
    fn a_first_line_that_was_cut_off_is_a_run_that_did_nothing() {
        let whole = header(SCHEMA, ROOTS);
        for length in 0..whole.len() {
            assert_eq!(parse(&whole.as_bytes()[..length]), Ok(0), "{length}");
        }
        // As the writer makes it, whatever the order of its fields.
        let made = serde_json::to_string(&Header {
            journal: MAGIC.to_owned(),
            schema: SCHEMA,
            action: "delete".to_owned(),
            started_at: String::new(),
            roots: Vec::new(),
        });
        assert!(made.unwrap().starts_with(HEADER));
    }

    /// Counts what is read, and asks for the end after so many bytes.
    struct Counting<'a> {
        text: &'a [u8],
        read: &'a std::cell::Cell<usize>,
        cancel_at: usize,
        cancel: &'a Cancel,
    }

    impl Read for Counting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.text.read(buffer)?;
            self.read.set(self.read.get() + read);
            if self.read.get() >= self.cancel_at {
                self.cancel.cancel(15);
            }
            Ok(read)
        }
    }

    fn long() -> String {
        let mut text = header(2, ROOTS);
        for number in 1..=20_000 {
            text += &step(number, "delete", &format!("/a/{number}"), 5);
            text += &format!("{{\"step\":{number},\"done\":true}}\n");
        }
        text
    }

    #[test]
    fn every_byte_is_read_once_and_ends_look_at_one_step() {
        let text = long();
        let (read, cancel) = (std::cell::Cell::new(0), Cancel::new());
        let input = Counting {
            text: text.as_bytes(),
            read: &read,
            cancel_at: usize::MAX,
            cancel: &cancel,
        };
        let index = scan(input, &cancel).ok().unwrap();
        assert_eq!(index.places.len(), 20_000);
        assert!(
            index
                .places
                .iter()
                .all(|place| place.took_effect == Some(true))
        );
        assert_eq!(read.get(), text.len());
        // An end is never searched for: only the step before it can end.
        let late = header(2, ROOTS)
            + &step(1, "delete", "/a/1", 5)
            + &step(2, "delete", "/a/2", 5)
            + "{\"step\":1,\"done\":true}\n";
        assert!(parse(late.as_bytes()).is_err());
    }

    #[test]
    fn a_signal_ends_the_reading_at_once() {
        let text = long();
        let (read, cancel) = (std::cell::Cell::new(0), Cancel::new());
        let input = Counting {
            text: text.as_bytes(),
            read: &read,
            cancel_at: 1,
            cancel: &cancel,
        };
        assert!(matches!(scan(input, &cancel), Err(Stop::Cancelled)));
        assert!(read.get() <= 256 << 10, "{}", read.get());
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let endless = io::repeat(b'x');
        assert!(matches!(
            scan(endless, &Cancel::new()),
            Err(Stop::Refused(_))
        ));
    }
}
