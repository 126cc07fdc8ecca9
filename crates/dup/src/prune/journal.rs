//! The journal: one JSON line before each step with all that undo needs, one
//! after it with how it went.
//!
//! A line is one `write`, so a killed process loses none. It is forced to the
//! disk once a second and at the end, not for every step: after a power cut
//! the last second's lines may be missing, which costs the metadata of those
//! names, never a content (that is the kept file's, made durable before).

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

use bc_digest::Digest;
use bc_manifest::base64;
use bc_manifest::time::format_rfc3339;
use bc_walk::{Identity, Stamp};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::fail::point;
use super::guard::Held;
use super::meta::Metadata;
use super::step::{Action, Skip};
use crate::json::{JsonPath, encode};
use bc_fs::Escaped;

/// What the first line says it is.
const MAGIC: &str = "bc dup prune";

/// How often the lines are forced to the disk.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The journal cannot be written, or is not one.
#[derive(Debug)]
pub struct JournalError {
    path: PathBuf,
    message: String,
}

impl JournalError {
    fn new(path: &Path, op: &str, error: impl fmt::Display) -> JournalError {
        JournalError {
            path: path.to_owned(),
            message: format!("{op}: {error}"),
        }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = Escaped(self.path.as_os_str().as_encoded_bytes());
        write!(f, "{path}: {}", self.message)
    }
}

impl std::error::Error for JournalError {}

#[derive(Deserialize, Serialize)]
struct Header {
    journal: String,
    schema: u32,
    action: String,
    started_at: String,
}

/// A file as it was right before a step.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Recorded {
    #[serde(flatten)]
    path: JsonPath,
    dev: u64,
    ino: u64,
    size: u64,
    mtime_ns: i64,
    ctime_ns: i64,
    nlink: u64,
    mode: u32,
    uid: u32,
    gid: u32,
    atime_ns: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    xattrs: Vec<Attribute>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Attribute {
    name_b64: String,
    value_b64: String,
}

/// One step as the journal has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    step: u64,
    pub(crate) action: String,
    pub(crate) target: Recorded,
    pub(crate) keeper: Recorded,
    /// XXH128 of the content.
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination: Option<JsonPath>,
    #[serde(skip)]
    pub(crate) took_effect: Option<bool>,
}

#[derive(Deserialize, Serialize)]
struct End {
    step: u64,
    done: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Recorded {
    pub(crate) fn new(held: &Held) -> Result<Recorded, Skip> {
        let metadata = held.metadata()?;
        let path = held.real_path().unwrap_or_else(|| absolute(&held.path));
        let stamp = held.stat.stamp;
        Ok(Recorded {
            path: JsonPath::new(&path),
            dev: held.stat.id.dev,
            ino: held.stat.id.ino,
            size: stamp.size,
            mtime_ns: stamp.mtime_ns,
            ctime_ns: stamp.ctime_ns,
            nlink: held.stat.nlink,
            mode: metadata.mode,
            uid: metadata.uid,
            gid: metadata.gid,
            atime_ns: metadata.atime_ns,
            xattrs: metadata
                .xattrs
                .iter()
                .map(|(name, value)| Attribute {
                    name_b64: encode(name),
                    value_b64: encode(value),
                })
                .collect(),
        })
    }

    pub(crate) fn path(&self) -> Option<Vec<u8>> {
        self.path.bytes().filter(|path| path.starts_with(b"/"))
    }

    pub(crate) fn id(&self) -> Identity {
        Identity {
            dev: self.dev,
            ino: self.ino,
        }
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            size: self.size,
            mtime_ns: self.mtime_ns,
            ctime_ns: self.ctime_ns,
        }
    }

    /// `None` if an attribute is not base64.
    pub(crate) fn metadata(&self) -> Option<Metadata> {
        let decode = |text: &str| base64::decode(text.as_bytes());
        Some(Metadata {
            mode: self.mode & 0o7777,
            uid: self.uid,
            gid: self.gid,
            atime_ns: self.atime_ns,
            mtime_ns: self.mtime_ns,
            xattrs: self
                .xattrs
                .iter()
                .map(|one| Some((decode(&one.name_b64)?, decode(&one.value_b64)?)))
                .collect::<Option<Vec<_>>>()?,
        })
    }
}

impl Entry {
    pub(crate) fn digest(&self) -> Option<Digest> {
        Digest::from_hex(self.digest.as_bytes())
    }

    pub(crate) fn destination(&self) -> Option<Vec<u8>> {
        let bytes = self.destination.as_ref()?.bytes()?;
        bytes.starts_with(b"/").then_some(bytes)
    }
}

/// The absolute form of a path, by the working directory.
pub(crate) fn absolute(path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    let here = std::env::current_dir().unwrap_or_default();
    let mut whole = here.into_os_string().into_encoded_bytes();
    whole.push(b'/');
    whole.extend_from_slice(path);
    whole
}

/// A journal being written, locked against other runs.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
    step: u64,
    synced: Instant,
}

impl Journal {
    /// Opens or creates the journal at `path` and starts a run in it. A file
    /// that is not a journal is refused, as is one that another run is writing.
    ///
    /// # Errors
    /// Names the path, the operation and the reason.
    pub fn create(path: &Path, action: &Action) -> Result<Journal, JournalError> {
        let fail = |op: &'static str| move |error: io::Error| JournalError::new(path, op, error);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            // A FIFO or a device must not hold the run up; it is refused below.
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .map_err(fail("open"))?;
        if !file.metadata().map_err(fail("stat"))?.is_file() {
            return Err(JournalError::new(path, "open", "not a regular file"));
        }
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
            match errno {
                rustix::io::Errno::WOULDBLOCK => {
                    JournalError::new(path, "lock", "another run is writing it")
                }
                errno => JournalError::new(path, "lock", io::Error::from(errno)),
            }
        })?;
        let mut before = Vec::new();
        file.read_to_end(&mut before).map_err(fail("read"))?;
        if !before.is_empty() {
            parse(&before).map_err(|message| JournalError::new(path, "read", message))?;
        }
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            length: before.len() as u64,
            step: 0,
            synced: Instant::now(),
        };
        if !before.is_empty() && !before.ends_with(b"\n") {
            // Half a line of a run that was cut off: never to be completed.
            let whole = before.iter().rposition(|byte| *byte == b'\n');
            journal.length = whole.map_or(0, |at| at as u64 + 1);
            journal
                .file
                .set_len(journal.length)
                .map_err(fail("truncate"))?;
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i64);
        journal
            .line(&Header {
                journal: MAGIC.to_owned(),
                schema: 1,
                action: action.name().to_owned(),
                started_at: format_rfc3339(now),
            })
            .and_then(|()| journal.file.sync_all())
            .map_err(fail("write"))?;
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            && let Ok(dir) = File::open(parent)
        {
            // Where directories cannot be synced there is nothing to do.
            let _ = dir.sync_all();
        }
        Ok(journal)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        let written = point("journal")
            .map_err(io::Error::from)
            .and_then(|()| self.file.write_all_at(&line, self.length));
        match written {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Not half a line.
                let _ = self.file.set_len(self.length);
                Err(error)
            }
        }
    }

    /// Records what is about to happen.
    pub(crate) fn begin(
        &mut self,
        action: &'static str,
        target: &Held,
        keeper: &Held,
        digest: &Digest,
        destination: Option<&[u8]>,
    ) -> Result<u64, Skip> {
        self.step += 1;
        let entry = Entry {
            step: self.step,
            action: action.to_owned(),
            target: Recorded::new(target)?,
            keeper: Recorded::new(keeper)?,
            digest: digest.to_string(),
            destination: destination.map(|path| JsonPath::new(&absolute(path))),
            took_effect: None,
        };
        self.line(&entry).map_err(unwritable)?;
        if self.synced.elapsed() >= SYNC_EVERY {
            self.sync()?;
        }
        Ok(self.step)
    }

    /// Records how it went.
    pub(crate) fn end(&mut self, step: u64, result: &Result<(), Skip>) -> Result<(), Skip> {
        let end = End {
            step,
            done: match result {
                Ok(()) => true,
                Err(skip) => skip.took_effect(),
            },
            reason: result.as_ref().err().map(ToString::to_string),
        };
        self.line(&end).map_err(unwritable)
    }

    /// Forces what was written to the disk.
    pub(crate) fn sync(&mut self) -> Result<(), Skip> {
        self.synced = Instant::now();
        rustix::fs::fdatasync(self.file.as_fd()).map_err(|errno| unwritable(errno.into()))
    }
}

fn unwritable(error: io::Error) -> Skip {
    Skip::Journal(
        error
            .raw_os_error()
            .unwrap_or(rustix::io::Errno::IO.raw_os_error()),
    )
}

/// Reads a journal: its steps in the order they were made. Half a line at the
/// end, from a run that was cut off, is left out: that step never began.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut run_starts = 0;
    let mut started = false;
    for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let bad = |message: &str| format!("line {}: {message}", index + 1);
        let Some(line) = line.strip_suffix(b"\n") else {
            break;
        };
        if let Ok(header) = serde_json::from_slice::<Header>(line) {
            if header.journal != MAGIC || header.schema != 1 {
                return Err(bad("written by another program or version"));
            }
            started = true;
            run_starts = entries.len();
        } else if !started {
            return Err(bad("not a journal of bc dup"));
        } else if let Ok(end) = serde_json::from_slice::<End>(line) {
            let found = entries[run_starts..]
                .iter_mut()
                .find(|entry| entry.step == end.step)
                .ok_or_else(|| bad("ends a step that never began"))?;
            found.took_effect = Some(end.done);
        } else {
            let entry: Entry =
                serde_json::from_slice(line).map_err(|error| bad(&error.to_string()))?;
            let complete = entry.target.path().is_some()
                && entry.keeper.path().is_some()
                && entry.target.metadata().is_some()
                && entry.digest().is_some();
            if !complete {
                return Err(bad("a step without absolute paths, metadata and digest"));
            }
            entries.push(entry);
        }
    }
    if started {
        Ok(entries)
    } else {
        Err("not a journal of bc dup".to_owned())
    }
}

/// Reads the journal at `path`.
pub(crate) fn read(path: &Path) -> Result<Vec<Entry>, JournalError> {
    let text = std::fs::read(path).map_err(|error| JournalError::new(path, "open", error))?;
    parse(&text).map_err(|message| JournalError::new(path, "read", message))
}
