//! Output of an update: beside the old manifest, compressed if that is.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_edit::atomic::{AsRead, AtomicFile, Uncommitted};
use bc_manifest::compress::Compressor;
use bc_manifest::integrity::{Entry, Header, Trailer, Writer};
use bc_manifest::{Map, Value};
use bc_walk::job::{Error, ErrorKind};

use super::locked::LockedManifest;
use crate::input::{ManifestFile, Trust};

/// The new manifest beside the old one, or nothing.
pub(super) struct Output(Option<New>);

struct New {
    writer: Writer<Encoder>,
    to: Successor,
}

/// A file that takes the place of a manifest.
struct Successor {
    file: AtomicFile,
    /// The manifest that it replaces.
    old: AsRead,
    path: PathBuf,
}

impl Successor {
    fn failed(&self) -> impl Fn(std::io::Error) -> Error + '_ {
        |error| Error::io(&self.path, "write", &error)
    }

    fn unwritten(&self, error: bc_manifest::Error) -> Error {
        match error.io_error() {
            Some(error) => Error::io(&self.path, "write", error),
            None => Error::at(ErrorKind::Io, &self.path, format!("write: {error}")),
        }
    }

    /// Begins a manifest in it.
    fn begin(self, header: &Header, compressed: bool) -> Result<New, Error> {
        let out = self.file.file().try_clone().map_err(self.failed())?;
        let out = BufWriter::new(out);
        let encoder = match compressed {
            true => Encoder::Zstd(Compressor::new(out).map_err(self.failed())?),
            false => Encoder::Plain(out),
        };
        let writer = Writer::new(encoder, header);
        Ok(New {
            writer: writer.map_err(|error| self.unwritten(error))?,
            to: self,
        })
    }
}

/// The new manifest, written to its end and not yet in the place of the old one, or nothing.
pub(super) struct Ended(Option<(Successor, Trailer)>);

enum Encoder {
    Plain(BufWriter<File>),
    Zstd(Compressor<BufWriter<File>>),
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Encoder::Plain(out) => out.write(bytes),
            Encoder::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Encoder::Plain(out) => out.flush(),
            Encoder::Zstd(out) => out.flush(),
        }
    }
}

impl Output {
    /// Drops what is written.
    pub(super) fn nothing() -> Output {
        Output(None)
    }

    /// Begins the successor of the manifest that is at `path`.
    pub(super) fn create(
        path: &Path,
        old: &LockedManifest,
        header: &Header,
    ) -> Result<Output, Error> {
        let failed = |error: std::io::Error| Error::io(path, "write", &error);
        let to = Successor {
            file: AtomicFile::create(path).map_err(failed)?,
            old: old.as_read().map_err(failed)?,
            path: path.to_owned(),
        };
        Ok(Output(Some(to.begin(header, old.file.is_compressed())?)))
    }

    pub(super) fn put(&mut self, entry: &Entry) -> Result<(), Error> {
        match &mut self.0 {
            Some(new) => {
                let written = new.writer.write(entry);
                written.map_err(|error| new.to.unwritten(error))
            }
            None => Ok(()),
        }
    }

    /// Writes an old entry by its line, which stays as it is.
    pub(super) fn keep(&mut self, entry: &Entry, line: &[u8]) -> Result<(), Error> {
        match &mut self.0 {
            Some(new) => {
                let written = new.writer.write_as_read(entry, line);
                written.map_err(|error| new.to.unwritten(error))
            }
            None => Ok(()),
        }
    }

    /// Writes it to its end.
    pub(super) fn end(self) -> Result<Ended, Error> {
        self.end_with(&Map::new())
    }

    /// Writes it to its end, with these keys in its trailer that the format itself does not know.
    pub(super) fn end_with(self, extra: &Map<String, Value>) -> Result<Ended, Error> {
        let Some(New { writer, to }) = self.0 else {
            return Ok(Ended(None));
        };
        let failed = to.failed();
        let finished = writer.finish_with(extra);
        let (encoder, trailer) = finished.map_err(|error| to.unwritten(error))?;
        let out = match encoder {
            Encoder::Plain(out) => out,
            Encoder::Zstd(out) => out.finish().map_err(&failed)?,
        };
        let out = out.into_inner().map_err(|not| failed(not.into_error()))?;
        // A file system reports an error at a close once.
        let closed = bc_fs::call::close(out).map_err(std::io::Error::from);
        closed.map_err(|error| Error::io(&to.path, "close", &error))?;
        drop(failed);
        Ok(Ended(Some((to, trailer))))
    }
}

impl Ended {
    /// Writes it once more, with what `amend` makes of its entries.
    pub(super) fn amended(self, mut amend: impl FnMut(&mut Entry)) -> Result<Ended, Error> {
        let Some((first, _)) = self.0 else {
            return Ok(self);
        };
        let file = first.file.file().try_clone().map_err(first.failed())?;
        let written = ManifestFile::of(first.path.as_os_str().as_bytes(), file);
        let mut entries = written.again(Trust::Checked)?;
        let again = Successor {
            file: AtomicFile::create(&first.path).map_err(first.failed())?,
            old: first.old.try_clone().map_err(first.failed())?,
            path: first.path.clone(),
        };
        let header = entries.header().clone();
        let mut output = Output(Some(again.begin(&header, written.is_compressed())?));
        while let Some(entry) = entries.take()? {
            let mut entry = entry.clone();
            amend(&mut entry);
            output.put(&entry)?;
        }
        output.end()
    }

    /// Replaces the old manifest, if it is still there: one that another program has written there
    /// meanwhile is not lost.
    pub(super) fn commit(self) -> Result<Option<Trailer>, Error> {
        let Some((Successor { file, old, path }, trailer)) = self.0 else {
            return Ok(None);
        };
        let uncommitted = |not: Uncommitted| match not.error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                let text = "another one was written there since this update began, and is left";
                Error::at(ErrorKind::Refused, &path, text)
            }
            _ => Error::io(&path, not.operation, &not.error),
        };
        file.commit_over(&old).map_err(uncommitted)?;
        Ok(Some(trailer))
    }
}
