//! Manifests as input: opened once, readable as often as needed, checked
//! against their trailer before anything is done with them.

pub(crate) mod lines;
pub(crate) mod passing;
pub(crate) mod piped;
pub(crate) mod stream;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use bc_digest::Algorithm;
use bc_fs::PathError;
use bc_fs::input::Interruptible;
use bc_manifest::compress;
use bc_manifest::integrity::{Entry, Header, Policy, Reader, Trailer, check_seal, read_seal};
use bc_manifest::{Map, Value};
use bc_pool::Cancel;
use bc_walk::job::{Error, ErrorKind, path_of};
use bc_walk::{Identity, OwnFile};

use crate::input::passing::Passing;
use crate::input::stream::{
    BATCH, BATCHES, LinesEnd, ManifestStream, Message, Prefetch, fill, problems,
};
use lines::{LineInput, Plain};

/// Treatment of a manifest whose trailer is missing or wrong.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Trust {
    /// It is refused.
    #[default]
    Checked,
    /// The readable part is used, and the problems are noted.
    Forced,
}

impl Trust {
    const fn policy(self) -> Policy {
        match self {
            Trust::Checked => Policy::Strict,
            Trust::Forced => Policy::Force,
        }
    }
}

/// An integrity manifest to read, compressed or not.
#[derive(Clone, Debug)]
pub struct ManifestFile {
    name: Vec<u8>,
    source: Source,
    /// Directory of the file, if it is a file.
    directory: Option<Identity>,
    /// True if it was made to compare a tree.
    is_unnamed: bool,
    /// Cancels reading it.
    cancel: Cancel,
}

#[derive(Clone, Debug)]
enum Source {
    File(Arc<File>),
    Memory(Arc<[u8]>),
}

/// Bytes of a manifest as stored. No offset is moved, so that several can read at once.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    source: Source,
    cancel: Cancel,
}

impl Bytes {
    /// Reads up to the length of `buffer`; returns 0 at the end.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        match &self.source {
            Source::File(file) => file.read_at(buffer, offset),
            Source::Memory(bytes) => {
                let from = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
                (&bytes[from..]).read(buffer)
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        match &self.source {
            Source::File(file) => Ok(file.metadata()?.len()),
            Source::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }
}

/// Reads the bytes from the first on.
struct FromStart {
    bytes: Bytes,
    offset: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl ManifestFile {
    /// Opens a manifest that an update will replace: only a file can be.
    ///
    /// # Errors
    /// Fails like [`open`](Self::open), or if it is a pipe or a device: those are not opened.
    pub fn open_to_replace(path: impl AsRef<Path>) -> Result<ManifestFile, Error> {
        let path = path.as_ref();
        match std::fs::metadata(path) {
            Ok(meta) if !meta.is_file() && !meta.is_dir() => Err(Error::at(
                ErrorKind::Usage,
                path,
                "not a file that could be replaced",
            )),
            _ => ManifestFile::open(path),
        }
    }

    /// Opens a manifest that is a file: nothing is waited for.
    ///
    /// # Errors
    /// Fails if opening fails; if it is a device, which is not opened, or a pipe, which
    /// [`open_until`](Self::open_until) reads.
    pub fn open(path: impl AsRef<Path>) -> Result<ManifestFile, Error> {
        ManifestFile::open_at(path.as_ref(), None)
    }

    /// Opens a manifest, which may be a pipe: that is read at once, up to 16 GiB, and kept in memory
    /// or in a file without a name in the temporary directory. `cancel` ends the wait for a FIFO's
    /// writer and for its data, and later reading of the manifest, as
    /// [`cancelled_by`](Self::cancelled_by) does.
    ///
    /// # Errors
    /// Fails if opening or reading fails; if it is a device, which is not opened; if a pipe
    /// contains no manifest; with the kind [`Cancelled`](ErrorKind::Cancelled) if it was cancelled.
    pub fn open_until(path: impl AsRef<Path>, cancel: &Cancel) -> Result<ManifestFile, Error> {
        match ManifestFile::open_at(path.as_ref(), Some(cancel)) {
            Err(_) if cancel.is_cancelled() => Err(Error::cancelled()),
            opened => opened.map(|manifest| manifest.cancelled_by(cancel)),
        }
    }

    /// Opens a manifest; pipes only where something can end the wait for them.
    fn open_at(path: &Path, cancel: Option<&Cancel>) -> Result<ManifestFile, Error> {
        let name = path.as_os_str().as_bytes();
        let failed =
            |operation: &'static str| move |error: io::Error| Error::io(path, operation, &error);
        let is_device = |meta: &std::fs::Metadata| {
            let kind = meta.file_type();
            kind.is_char_device() || kind.is_block_device()
        };
        let device = || Error::at(ErrorKind::Usage, path, "is a device, not a manifest");
        if std::fs::metadata(path).is_ok_and(|meta| is_device(&meta)) {
            return Err(device());
        }
        let is_over = || cancel.is_some_and(Cancel::is_cancelled);
        let file = bc_fs::input::open(path, is_over).map_err(failed("open"))?;
        let meta = file.metadata().map_err(failed("stat"))?;
        if is_device(&meta) {
            return Err(device());
        }
        if meta.is_dir() {
            return Err(Error::at(
                ErrorKind::Io,
                path,
                "is a directory, not a manifest",
            ));
        }
        if !meta.is_file() {
            if cancel.is_none() {
                return Err(Error::at(ErrorKind::Usage, path, "is a pipe, not a file"));
            }
            return ManifestFile::from_reader(name, Interruptible::new(file, is_over));
        }
        let real = path.canonicalize().ok();
        let beside = real
            .as_deref()
            .and_then(Path::parent)
            .and_then(|dir| dir.metadata().ok())
            .map(|meta| (meta.dev(), meta.ino()))
            // Where the way from the root is too long for a name.
            .or_else(|| {
                let place = bc_fs::place::Place::find(path).ok()?;
                let stat = rustix::fs::fstat(place.directory()).ok()?;
                Some((stat.st_dev, stat.st_ino))
            })
            .map(|(dev, ino)| Identity { dev, ino });
        Ok(ManifestFile {
            name: name.to_vec(),
            source: Source::File(Arc::new(file)),
            directory: beside,
            is_unnamed: false,
            cancel: Cancel::new(),
        })
    }

    /// Makes one of bytes that were written, under a name for messages.
    pub(crate) fn of_kept(name: &[u8], kept: piped::Kept) -> io::Result<ManifestFile> {
        Ok(ManifestFile {
            name: name.to_vec(),
            source: kept.end()?,
            directory: None,
            is_unnamed: true,
            cancel: Cancel::new(),
        })
    }

    /// A file that is open and has no name to be opened by.
    pub(crate) fn of(name: &[u8], file: File) -> ManifestFile {
        ManifestFile {
            name: name.to_vec(),
            source: Source::File(Arc::new(file)),
            directory: None,
            is_unnamed: false,
            cancel: Cancel::new(),
        }
    }

    /// Reads a manifest from a source that can be read only once, as
    /// [`open_until`](Self::open_until) does from a pipe.
    ///
    /// # Errors
    /// Fails if reading fails, if its first line is no manifest's, or if it does not end.
    pub fn from_reader(name: &[u8], input: impl Read) -> Result<ManifestFile, Error> {
        let path = path_of(name);
        let source = piped::read(input).map_err(|failed| match failed {
            piped::PipeError::Io(error) => Error::io(&path, "read", &error),
            piped::PipeError::NotOne(error) => {
                Error::at(ErrorKind::Manifest, &path, error.to_string())
            }
            piped::PipeError::TooLong(bytes) => Error::at(
                ErrorKind::Manifest,
                &path,
                format!(
                    "over {} GiB from a pipe: save it to a file first",
                    bytes >> 30
                ),
            ),
        })?;
        Ok(ManifestFile {
            name: name.to_vec(),
            source,
            directory: None,
            is_unnamed: false,
            cancel: Cancel::new(),
        })
    }

    /// Makes `cancel` end all reading of it, within a line as well.
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancel) -> ManifestFile {
        let cancel = cancel.clone();
        ManifestFile { cancel, ..self }
    }

    /// True if it was made of a tree for a comparison, and has no name of its own.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.is_unnamed
    }

    /// Returns the name by which it was opened.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns its file, if it is one: to be left out of the walk.
    pub fn own_file(&self) -> Option<OwnFile> {
        match &self.source {
            Source::File(file) => OwnFile::of(file).ok(),
            Source::Memory(_) => None,
        }
    }

    /// True if users other than this one and root can have written it: its owner, users whom its
    /// mode allows to (the group's bits are the mask of an access control list), or the writer of
    /// the pipe that it came from.
    pub fn is_of_others(&self) -> bool {
        let Source::File(file) = &self.source else {
            return true;
        };
        // Bytes from a pipe may lie in a file, too.
        self.directory.is_none()
            || file.metadata().map_or(true, |meta| {
                let own = rustix::process::geteuid().as_raw();
                ![0, own].contains(&meta.uid()) || meta.mode() & 0o022 != 0
            })
    }

    /// True if it is compressed, by its first bytes, whatever its name is.
    pub(crate) fn is_compressed(&self) -> bool {
        let mut head = [0; 4];
        match &self.source {
            Source::File(file) => {
                file.read_exact_at(&mut head, 0).is_ok() && compress::is_compressed(&head)
            }
            Source::Memory(bytes) => compress::is_compressed(bytes),
        }
    }

    /// Returns the directory that it is in.
    pub(crate) fn directory(&self) -> Option<Identity> {
        self.directory
    }

    /// Reads the header of the manifest.
    ///
    /// # Errors
    /// Fails if it is no integrity manifest, or its schema is unknown.
    pub fn header(&self) -> Result<Header, Error> {
        let reader = Reader::new(self.lines()?, Policy::Strict).map_err(|e| self.refused(&e))?;
        Ok(reader.header().clone())
    }

    /// Reads the algorithm of its digests.
    ///
    /// # Errors
    /// Fails like [`header`](Self::header), or if the algorithm is unknown.
    pub fn algorithm(&self) -> Result<Algorithm, Error> {
        self.algorithm_of(&self.header()?)
    }

    /// Reads the algorithm that a header names.
    ///
    /// # Errors
    /// Fails if the algorithm is unknown.
    pub fn algorithm_of(&self, header: &Header) -> Result<Algorithm, Error> {
        header
            .algorithm
            .parse()
            .map_err(|error| self.bad(format!("{error}")))
    }

    fn bytes(&self) -> Bytes {
        Bytes {
            source: self.source.clone(),
            cancel: self.cancel.clone(),
        }
    }

    /// Returns its bytes and their number, if the lines are not compressed.
    pub(crate) fn plain(&self) -> Option<(Bytes, u64)> {
        let bytes = self.bytes();
        let len = bytes.len().ok()?;
        (!self.is_compressed()).then_some((bytes, len))
    }

    /// Returns its lines from the first on, unpacked.
    ///
    /// # Errors
    /// Fails if it is compressed in a way that cannot be unpacked.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn lines(&self) -> Result<LineInput, Error> {
        let bytes = self.bytes();
        if !self.is_compressed() {
            return Ok(LineInput::Plain(Plain::new(bytes)));
        }
        let unpacked = compress::decompress(FromStart { bytes, offset: 0 });
        unpacked
            .map(LineInput::Unpacked)
            .map_err(|error| self.unreadable(&error))
    }

    /// Streams the entries from the first on. [`ManifestStream::prove`] must be called before the
    /// caller acts on them.
    ///
    /// With `Prefetch::Thread` the manifest is checked and taken apart by a thread
    /// of its own, so that both cost no time while the caller walks a tree.
    pub(crate) fn stream(&self, trust: Trust, prefetch: Prefetch) -> Result<ManifestStream, Error> {
        if prefetch == Prefetch::Thread
            && let Some(side) = self.stream_prefetched(trust)?
        {
            return Ok(side);
        }
        if trust == Trust::Checked {
            // A file that is no manifest at all need not be read to its end.
            self.header()?;
            self.check()?;
        }
        self.again(trust)
    }

    /// Streams the entries again, without another check of the SHA-256.
    pub(crate) fn again(&self, trust: Trust) -> Result<ManifestStream, Error> {
        let (reader, file) = (self.reader(trust)?, self.clone());
        let blame = move |error: &bc_manifest::Error| file.refused(error);
        Ok(ManifestStream::direct(reader, Box::new(blame)))
    }

    /// Returns a reader of its entries, which trusts the trailer: whoever acts on them has called
    /// [`check`](Self::check) or [`read_seal`](Self::read_seal) before.
    ///
    /// # Errors
    /// Fails if it is no integrity manifest, or its schema is unknown.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn reader(&self, trust: Trust) -> Result<Reader<LineInput>, Error> {
        let reader = Reader::new(self.lines()?, trust.policy()).map_err(|e| self.refused(&e))?;
        Ok(match trust {
            Trust::Checked => reader.proven(),
            Trust::Forced => reader,
        })
    }

    /// Starts a thread that reads; `None` where no thread is available.
    fn stream_prefetched(&self, trust: Trust) -> Result<Option<ManifestStream>, Error> {
        let header = self.header()?;
        let (sender, receiver) = sync_channel(BATCHES);
        let (back, used) = channel();
        let (go, runs) = channel();
        let file = self.clone();
        let work = move || {
            let last = match file.send_all(trust, &sender, &used, &runs) {
                Ok(problems) => Message::Done(problems),
                Err(error) => Message::Failed(error),
            };
            // The receiver is gone: the comparison ended early.
            let _ = sender.send(last);
        };
        let thread = std::thread::Builder::new().name("manifest".into());
        let Ok(thread) = thread.spawn(work) else {
            return Ok(None);
        };
        Ok(Some(ManifestStream::prefetched(
            header, receiver, back, go, thread,
        )))
    }

    fn send_all(
        &self,
        trust: Trust,
        sender: &SyncSender<Message>,
        used: &Receiver<Vec<Entry>>,
        runs: &Receiver<Passing>,
    ) -> Result<Vec<String>, Error> {
        let mut entries = None;
        if trust == Trust::Checked {
            entries = Some(self.trailer()?.entries);
        }
        let mut listens = sender.send(Message::Proven(entries)).is_ok();
        let mut reader = self.reader(trust)?;
        // Without an answer every line is wanted.
        let mut passing = runs.recv().unwrap_or_default();
        while listens {
            let mut batch = used.try_recv().unwrap_or_default();
            let (count, end) = fill(&mut reader, &mut passing, &mut batch, BATCH);
            listens = sender.send(Message::Batch(batch, count)).is_ok();
            match end {
                LinesEnd::No => {}
                LinesEnd::Yes => break,
                LinesEnd::Failed(error) => return Err(self.refused(&error)),
            }
        }
        Ok(problems(&reader))
    }

    /// Returns all entries, in order of their paths, once the manifest was found whole.
    ///
    /// # Errors
    /// Fails if it is cut short, altered or malformed, or reading fails.
    pub fn entries(&self) -> Result<impl Iterator<Item = Result<Entry, Error>> + '_, Error> {
        self.check()?;
        let mut reader = self.reader(Trust::Checked)?;
        let next = move || {
            let entry = reader.read().map_err(|error| self.refused(&error));
            entry.transpose()
        };
        Ok(std::iter::from_fn(next))
    }

    /// Compares the trailer's SHA-256 with the lines before it: finds missing or changed lines
    /// without parsing them.
    ///
    /// # Errors
    /// Fails if they do not fit, or reading fails.
    pub fn check(&self) -> Result<(), Error> {
        self.trailer().map(drop)
    }

    /// Checks like [`check`](Self::check), and returns the trailer.
    fn trailer(&self) -> Result<Trailer, Error> {
        check_seal(self.lines()?).map_err(|error| self.unsealed(&error))
    }

    /// Checks like [`check`](Self::check), and returns the keys of the trailer that the format does
    /// not know.
    ///
    /// # Errors
    /// Fails like [`check`](Self::check).
    pub fn read_seal(&self) -> Result<Map<String, Value>, Error> {
        read_seal(self.lines()?).map_err(|error| self.unsealed(&error))
    }

    /// Makes the error of a manifest without its trailer: a file that is no manifest at all is not
    /// one that was cut short.
    fn unsealed(&self, error: &bc_manifest::Error) -> Error {
        match (error.kind(), self.header()) {
            (bc_manifest::ErrorKind::Truncated, Err(no_manifest)) => no_manifest,
            _ => self.refused(error),
        }
    }

    /// Makes errors of the problems that were skipped in it.
    pub(crate) fn skipped(&self, problems: &[String]) -> Vec<PathError> {
        let path = OsStr::from_bytes(&self.name);
        let error = |why: &String| PathError::with_reason(path, "read", None, &**why);
        problems.iter().map(error).collect()
    }

    /// Makes the error of a manifest in which something is wrong.
    pub fn bad(&self, message: impl Into<String>) -> Error {
        Error::at(ErrorKind::Manifest, &path_of(&self.name), message)
    }

    /// Makes the error of a line that its reader refused or could not read.
    pub fn refused(&self, error: &bc_manifest::Error) -> Error {
        match error.io_error() {
            Some(error) => self.unreadable(error),
            None => self.bad(error.to_string()),
        }
    }

    /// Makes the error of a failed read; damaged compression looks like one.
    pub fn unreadable(&self, error: &io::Error) -> Error {
        if self.cancel.is_cancelled() {
            return Error::cancelled();
        }
        match error.raw_os_error() {
            Some(_) => Error::io(&path_of(&self.name), "read", error),
            None => self.bad(format!("not readable: {error}")),
        }
    }
}
