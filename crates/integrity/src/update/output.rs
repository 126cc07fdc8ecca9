//! Where an update writes: beside the old manifest, compressed if that is.

use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_manifest::compress::Compressor;
use bc_manifest::integrity::{Entry, Header, Trailer, Writer};

use crate::create::writing;
use crate::error::Error;
use crate::input::ManifestFile;
use bc_fs::atomic::AtomicFile;

/// The new manifest beside the old one, or nothing.
pub(super) struct Output(Option<(Writer<Encoder>, AtomicFile, Vec<u8>)>);

enum Encoder {
    Plain(BufWriter<std::fs::File>),
    Zstd(Compressor<BufWriter<std::fs::File>>),
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
    /// Begins the successor of `old`, which is at `path`, if one is wanted.
    pub(super) fn create(
        path: &Path,
        old: &ManifestFile,
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
        Ok(Output(Some((
            Writer::new(encoder, header)
                .map_err(|error| writing(error).about(path.as_os_str().as_bytes()))?,
            file,
            path.as_os_str().as_bytes().to_vec(),
        ))))
    }

    pub(super) fn put(&mut self, entry: &Entry) -> Result<(), Error> {
        match &mut self.0 {
            Some((writer, _, path)) => writer
                .write(entry)
                .map_err(|error| writing(error).about(path)),
            None => Ok(()),
        }
    }

    pub(super) fn finish(self, path: &Path) -> Result<Option<Trailer>, Error> {
        let Some((writer, file, name)) = self.0 else {
            return Ok(None);
        };
        let failed =
            |error: std::io::Error| Error::io(path.as_os_str().as_bytes(), "write", &error);
        let (encoder, trailer) = writer
            .finish()
            .map_err(|error| writing(error).about(&name))?;
        match encoder {
            Encoder::Plain(mut out) => out.flush().map_err(failed)?,
            Encoder::Zstd(out) => out
                .finish()
                .and_then(|mut out| out.flush())
                .map_err(failed)?,
        }
        let uncommitted = |not: bc_fs::atomic::Uncommitted| {
            Error::io(path.as_os_str().as_bytes(), not.operation, &not.error)
        };
        file.commit().map_err(uncommitted)?;
        Ok(Some(trailer))
    }
}
