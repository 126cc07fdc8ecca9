//! Options for recording a run, and the way one begins; and the description of a run's work: only a
//! run with the same one resumes from its journal.

use std::ffi::OsString;
use std::fmt::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use bc_digest::Algorithm;
use bc_fs::Escaped;
use bc_fs::place::Place;

/// Called once with a message if no more can be recorded.
pub type ReportLost = Box<dyn Fn(&str) + Send + Sync>;

/// Treatment of the journal of an earlier run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Earlier {
    /// Renamed, once this run has recorded more or is done.
    #[default]
    SetAside,
    /// Resumed from by this run, which is refused if it cannot.
    GoOn,
}

/// Intervals and sizes of recording a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Pace {
    /// A run that takes less time leaves no journal. One that is to resume from an earlier one, be
    /// there one or not, is recorded from its beginning.
    pub after: Duration,
    /// Time for which a worker that finishes files keeps their records to itself: as much is lost
    /// if the process is killed.
    pub every: Duration,
    /// Bytes of records that a worker keeps to itself at most, but for one.
    pub piece: usize,
    /// Bytes of records of the time before `after`; the files beyond are read again. By
    /// default 290,000 files have room with digests of 64 bytes, 400,000 with 32.
    pub early: usize,
}

bc_fs::setters! {
    Pace:
    after: Duration,
    every: Duration,
    piece: usize,
    early: usize,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            after: Duration::from_secs(10),
            every: Duration::from_secs(1),
            piece: 64 << 10,
            early: 32 << 20,
        }
    }
}

/// Options for recording a run.
#[non_exhaustive]
pub struct ResumeOptions {
    /// Place of the journal.
    pub place: Place,
    /// The directory of the user's [key](bc_edit::journal::Key); `None` if the user has none, and then there are no
    /// journals.
    pub state: Option<PathBuf>,
    /// Description of the run's work.
    pub job: JobInputs,
    /// Digests of each file.
    pub algorithms: Vec<Algorithm>,
    /// Treatment of an earlier journal.
    pub earlier: Earlier,
    /// Intervals and sizes of recording.
    pub pace: Pace,
    /// The time now, in nanoseconds since 1970.
    pub now: i64,
    /// Called if no more can be recorded; the run continues.
    pub report: ReportLost,
}

impl ResumeOptions {
    /// Makes options for a run with this job, at this time in nanoseconds since 1970, and a
    /// function to call if no more can be recorded: without a key, and an earlier journal is set
    /// aside.
    pub fn new(
        place: Place,
        job: JobInputs,
        algorithms: Vec<Algorithm>,
        now: i64,
        report: ReportLost,
    ) -> ResumeOptions {
        ResumeOptions {
            place,
            state: None,
            job,
            algorithms,
            earlier: Earlier::default(),
            pace: Pace::default(),
            now,
            report,
        }
    }
}

bc_fs::setters! {
    ResumeOptions:
    state: Option<PathBuf>,
    earlier: Earlier,
    pace: Pace,
}

/// Beginning of a recorded run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Beginning {
    /// New: there is no earlier journal.
    New,
    /// Beside an earlier journal, which keeps its name until this run has recorded more, or is
    /// done.
    Kept {
        /// True if it is of a run with the same job, so that another run would resume from it.
        is_same: bool,
    },
    /// New: there is no journal to resume from; one that was set aside has this name.
    Anew(OsString),
    /// Not recorded: the existing file cannot be set aside, with the reason.
    Without(String),
    /// Resumed with the files that an earlier run has read.
    GoesOn {
        /// Files, in the states in which they were then.
        files: u64,
        /// Bytes at the end that are no whole records, of a run that was killed or of a damaged
        /// file.
        lost: u64,
    },
}

/// Reason why a run cannot resume from the existing journal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(String);

impl Refused {
    pub(super) fn new(why: impl Into<String>) -> Refused {
        Refused(why.into())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Names and values of all inputs that decide which files are read and what is made of them: the
/// command, roots, options, the version of the program.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct JobInputs {
    fields: Vec<(String, Vec<u8>)>,
}

/// Values up to this many bytes are shown where they differ.
const SHOWN: usize = 80;

impl JobInputs {
    /// Adds a field. Fields of one name may be repeated, as roots are.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> JobInputs {
        self.fields.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Returns the names and values, in the order in which they were given.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the names of the fields in which an `earlier` job differs, in words; `None` if there
    /// are none.
    pub(crate) fn difference(&self, earlier: &JobInputs) -> Option<String> {
        if self == earlier {
            return None;
        }
        let mut names: Vec<&String> = Vec::new();
        let all = earlier.fields.iter().chain(&self.fields);
        for (name, _) in all {
            if !names.contains(&name) && self.values(name) != earlier.values(name) {
                names.push(name);
            }
        }
        let mut text = String::new();
        for name in names {
            let gap = if text.is_empty() { "" } else { "; " };
            let (before, now) = (shown(&earlier.values(name)), shown(&self.values(name)));
            let _ = match (before.len() + now.len()) <= SHOWN {
                true => write!(text, "{gap}{name}: {before}, now {now}"),
                false => write!(text, "{gap}{name}"),
            };
        }
        // Equal fields in another order.
        Some(text)
            .filter(|text| !text.is_empty())
            .or_else(|| Some("order".to_owned()))
    }

    fn values(&self, name: &str) -> Vec<&[u8]> {
        let fields = self.fields.iter().filter(|field| field.0 == name);
        fields.map(|field| field.1.as_slice()).collect()
    }

    /// Appends it as a journal has it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for (name, value) in &self.fields {
            for text in [name.as_bytes(), value] {
                out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text);
            }
        }
    }

    /// Returns the bytes that [`encode`](Self::encode) appends.
    pub(super) fn encoded_len(&self) -> usize {
        let fields = self.fields.iter();
        fields
            .map(|(name, value)| 8 + name.len() + value.len())
            .sum()
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Option<JobInputs> {
        let mut text = || {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            let length = u32::from_le_bytes(*length) as usize;
            let text = rest.get(..length)?.to_vec();
            bytes = &rest[length..];
            Some((text, bytes.is_empty()))
        };
        let mut job = JobInputs::default();
        loop {
            let (name, _) = text()?;
            let (value, over) = text()?;
            job.fields.push((String::from_utf8(name).ok()?, value));
            if over {
                return Some(job);
            }
        }
    }
}

fn shown(values: &[&[u8]]) -> String {
    match values {
        [] => "none".to_owned(),
        values => {
            let texts = values.iter().map(|value| match value {
                [] => "none".to_owned(),
                value => Escaped(value).to_string(),
            });
            texts.collect::<Vec<_>>().join(" ")
        }
    }
}

#[cfg(test)]
mod job_tests {
    use super::*;

    fn job() -> JobInputs {
        JobInputs::default()
            .with("command", "hash")
            .with("root", b"/a\xff")
            .with("root", "/b")
            .with("exclude", "")
    }

    #[test]
    fn a_job_survives_its_journal() {
        let mut bytes = Vec::new();
        job().encode(&mut bytes);
        assert_eq!(bytes.len(), job().encoded_len());
        assert_eq!(JobInputs::decode(&bytes), Some(job()));
        assert!((0..bytes.len()).all(|len| JobInputs::decode(&bytes[..len]) != Some(job())));
    }

    #[test]
    fn what_differs_is_named() {
        assert_eq!(job().difference(&job()), None);
        let other = job().with("exclude", "*.o");
        assert_eq!(
            other.difference(&job()).unwrap(),
            "exclude: none, now none *.o"
        );
        let long = job().with("include", "x".repeat(SHOWN));
        assert_eq!(long.difference(&job()).unwrap(), "include");
        let swapped = JobInputs::default().with("b", "2").with("a", "1");
        let job = JobInputs::default().with("a", "1").with("b", "2");
        assert_eq!(swapped.difference(&job).unwrap(), "order");
    }
}
