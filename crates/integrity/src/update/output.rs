//! Output of an update: beside the old manifest, compressed if that is.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_manifest::compress::Compressor;
use bc_manifest::integrity::{Entry, Header, Trailer, Writer};

use crate::create::writing;
use crate::error::{Error, ErrorKind};
use crate::input::ManifestFile;
use bc_fs::atomic::{AtomicFile, Uncommitted};

/// The new manifest beside the old one, or nothing.
pub(super) struct Output(Option<New>);

struct New {
    writer: Writer<Encoder>,
    file: AtomicFile,
    /// The manifest that it replaces.
    old: File,
    path: Vec<u8>,
}

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
    /// Begins the successor of the manifest that is at `path`, and open as `held`, if one is
    /// wanted.
    pub(super) fn create(
        path: &Path,
        (old, held): (&ManifestFile, &File),
        header: &Header,
        wanted: bool,
    ) -> Result<Output, Error> {
        if !wanted {
            return Ok(Output(None));
        }
        let failed =
            |error: std::io::Error| Error::io(path.as_os_str().as_bytes(), "write", &error);
        let file = AtomicFile::create(path).map_err(failed)?;
        let out = BufWriter::new(file.file().try_clone().map_err(failed)?);
        let encoder = match old.is_compressed() {
            true => Encoder::Zstd(Compressor::new(out).map_err(failed)?),
            false => Encoder::Plain(out),
        };
        let path = path.as_os_str().as_bytes();
        let writer = Writer::new(encoder, header);
        Ok(Output(Some(New {
            writer: writer.map_err(|error| writing(error).about(path))?,
            file,
            old: held.try_clone().map_err(failed)?,
            path: path.to_vec(),
        })))
    }

    pub(super) fn put(&mut self, entry: &Entry) -> Result<(), Error> {
        match &mut self.0 {
            Some(new) => {
                let written = new.writer.write(entry);
                written.map_err(|error| writing(error).about(&new.path))
            }
            None => Ok(()),
        }
    }

    /// Replaces the old manifest, if it is still there: one that another program has written there
    /// meanwhile is not lost.
    pub(super) fn finish(self) -> Result<Option<Trailer>, Error> {
        let Some(New {
            writer,
            file,
            old,
            path,
        }) = self.0
        else {
            return Ok(None);
        };
        let failed = |error: std::io::Error| Error::io(&path, "write", &error);
        let (encoder, trailer) = writer
            .finish()
            .map_err(|error| writing(error).about(&path))?;
        let out = match encoder {
            Encoder::Plain(out) => out,
            Encoder::Zstd(out) => out.finish().map_err(failed)?,
        };
        let out = out.into_inner().map_err(|not| failed(not.into_error()))?;
        // A file system reports an error at a close once.
        let closed = bc_fs::close(out).map_err(std::io::Error::from);
        closed.map_err(|error| Error::io(&path, "close", &error))?;
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
