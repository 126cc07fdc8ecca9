//! Manifests in the place of references: an offline disk is represented by its manifest. They can
//! answer, and never authorise a change.
//!
//! - Integrity manifests (compressed or not) are read to their trailer before any of their entries
//!   counts; lists of sha256sum, of the BSDs, of hashdeep and of `bc hash` to their end.
//! - An entry with an error, or whose last attempt failed, is no reference copy, nor is an entry
//!   that may be of the very files that are asked about.
//! - Only a manifest's answers about the files in question are kept: memory grows
//!   with those, however long it is. It is read twice for that, and has to be the same both times.

mod answers;
mod entries;
mod home;
mod origin;
mod strength;

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt;

use bc_digest::Algorithm;
use bc_manifest::integrity::{Header, Policy, Reader};
use bc_manifest::{Item, Options, hashdeep};
use bc_pool::Cancel;
use bc_walk::job::{Error, ErrorKind, path_of};
use bc_walk::{FileStat, Identity, Stamp};
use home::Home;

pub use answers::{Answer, Answers, Detail, Question, ask};
pub use strength::{is_weak, tag};

/// The forms that a manifest can have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Form {
    /// A manifest of `bc integrity`.
    Integrity,
    /// A manifest of hashdeep.
    Hashdeep,
    /// A list of sha256sum and its kin, of the BSDs, or of `bc hash`.
    Checksums,
}

impl Form {
    /// `integrity`, `hashdeep` or `checksums`.
    pub fn name(self) -> &'static str {
        match self {
            Form::Integrity => "integrity",
            Form::Hashdeep => "hashdeep",
            Form::Checksums => "checksums",
        }
    }
}

/// A manifest that stands for the tree that it was made of.
#[derive(Debug)]
pub struct Manifest {
    path: Vec<u8>,
    file: File,
    id: Identity,
    stamp: Stamp,
    form: Form,
    /// Header, of integrity manifests only.
    header: Option<Box<Header>>,
    /// Relation of its tree to the PATHs.
    home: Home,
    /// Counts of the first reading.
    tally: Tally,
    /// True if it counts although its files' location is unknown.
    is_trusted: bool,
}

/// Counts of a manifest's entries, complete once it was read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Tally {
    /// Entries that can be reference copies.
    pub reference_copies: u64,
    /// Entries of files with an error, without a digest, or whose last attempt failed.
    pub without: u64,
    /// The algorithms of its digests.
    pub algorithms: Vec<Algorithm>,
    /// Entries of a list of unknown location that have the names and the contents of files in
    /// question. They count for nothing.
    pub unknown_origin: u64,
}

impl Manifest {
    /// Opens a regular file that a reference names; `None` if it does not begin like a manifest.
    ///
    /// # Errors
    /// If it cannot be opened or read; if it begins like a manifest of an unknown kind, such as one
    /// of a later schema.
    pub fn open(path: &[u8], cancel: &Cancel) -> Result<Option<Manifest>, Error> {
        let name = path_of(path);
        let file = bc_fs::input::open(&name, || cancel.is_cancelled());
        let file = file.map_err(|error| Error::io(&name, "open", &error))?;
        Manifest::of_file(path, file, cancel)
    }

    /// Reads the head of an open file, which may have no name, such as a copy of a pipe's data.
    /// `path` is its name in messages. `None` if it does not begin like a manifest.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn of_file(path: &[u8], file: File, cancel: &Cancel) -> Result<Option<Manifest>, Error> {
        let failed = |op, error: std::io::Error| Error::io(&path_of(path), op, &error);
        let stat = rustix::fs::fstat(&file).map_err(|errno| failed("stat", errno.into()))?;
        let stat = FileStat::from(&stat);
        let mut manifest = Manifest {
            path: path.to_vec(),
            file,
            id: stat.id,
            stamp: stat.stamp,
            form: Form::Checksums,
            header: None,
            home: Home::default(),
            tally: Tally::default(),
            is_trusted: false,
        };
        let form = {
            let mut lines = manifest.lines(cancel)?;
            let head = lines.fill_buf().map_err(|error| failed("read", error))?;
            form(head)
        };
        let Some(form) = form else {
            return Ok(None);
        };
        manifest.form = form;
        if form == Form::Integrity {
            let header = {
                let lines = manifest.lines(cancel)?;
                let reader = Reader::new(lines, Policy::Strict);
                let reader = reader.map_err(|error| manifest.refused(&error.to_string()))?;
                reader.header().clone()
            };
            let known = header.algorithm.parse::<Algorithm>();
            let algorithm = known.map_err(|error| manifest.refused(&error.to_string()))?;
            strength::check(algorithm).map_err(|text| manifest.refused(&text))?;
            manifest.header = Some(Box::new(header));
        }
        Ok(Some(manifest))
    }

    /// Its path as it was given.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Says which file its bytes were copied from: one that lies in what is asked about is refused
    /// under whatever name.
    pub fn copied_from(&mut self, file: Identity) {
        self.id = file;
    }

    /// How it is written.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Counts a list as one of other files than those in question, whatever names it has: its user
    /// knows where it was made.
    pub fn trust(&mut self) {
        self.is_trusted = true;
    }

    /// Returns the counts of its entries, after a [question](ask).
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Determines the relation of the tree that it was made of to `roots`, the trees in question.
    ///
    /// # Errors
    /// If that is one of them, or lies in one, or may: by the file system's UUID or the source of
    /// the mount, else by the path.
    pub fn compare_home<'p>(&mut self, roots: impl Iterator<Item = &'p [u8]>) -> Result<(), Error> {
        if let Some(header) = &self.header {
            let home = Home::of(header, roots);
            self.home = home.map_err(|text| self.refused(&text))?;
        }
        Ok(())
    }

    fn refused(&self, message: &str) -> Error {
        Error::at(ErrorKind::Manifest, &path_of(&self.path), message)
    }

    /// Its lines from the first on, unpacked.
    fn lines(&self, cancel: &Cancel) -> Result<Box<dyn BufRead + Send + '_>, Error> {
        let bytes = Bytes::new(&self.file, cancel);
        let read = |error| self.refused(&format!("read: {error}"));
        let mut lines = bc_manifest::compress::decompress(bytes).map_err(read)?;
        // Some editors begin a text like that.
        if lines.fill_buf().map_err(read)?.starts_with(b"\xef\xbb\xbf") {
            lines.consume(3);
        }
        Ok(lines)
    }

    /// Proves that it is the file that was opened and has not been written to since.
    fn is_unchanged(&self) -> Result<(), Error> {
        let stat = rustix::fs::fstat(&self.file);
        let stat = stat.map_err(|errno| self.refused(&format!("stat: {errno}")))?;
        match FileStat::from(&stat).stamp == self.stamp {
            true => Ok(()),
            false => Err(self.refused("changed while it was read")),
        }
    }
}

/// Returns the format of a file with these first bytes; `None` if it is no manifest.
fn form(head: &[u8]) -> Option<Form> {
    if hashdeep::begins(head) {
        return Some(Form::Hashdeep);
    }
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
    if first.trim_ascii_start().starts_with(b"{") {
        let says = |what: &[u8]| first.windows(what.len()).any(|part| part == what);
        // Those of `bc hash` have several.
        return match (says(b"\"type\":\"header\""), says(b"\"algorithms\":")) {
            (true, true) => Some(Form::Checksums),
            (true, false) => Some(Form::Integrity),
            (false, _) => None,
        };
    }
    let mut reader = bc_manifest::Reader::new(head, Options::default()).ok()?;
    loop {
        match reader.read() {
            Ok(Some(Item::Record(_))) => return Some(Form::Checksums),
            Ok(Some(Item::Comment { .. } | Item::Header(_))) => {}
            _ => return None,
        }
    }
}

/// Reads them; no offset is moved.
pub(super) struct Bytes<'f> {
    file: &'f File,
    offset: u64,
    cancel: Cancel,
}

impl<'f> Bytes<'f> {
    pub(super) fn new(file: &'f File, cancel: &Cancel) -> Bytes<'f> {
        Bytes {
            file,
            offset: 0,
            cancel: cancel.clone(),
        }
    }
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, form};

    #[test]
    fn forms_are_told_by_how_they_begin() {
        let md5 = "d41d8cd98f00b204e9800998ecf8427e";
        for (head, expected) in [
            ("%%%% HASHDEEP-1.0\n", Some(Form::Hashdeep)),
            (
                "{\"type\":\"header\",\"schema\":1,\"algorithm\":\"x\"}\n",
                Some(Form::Integrity),
            ),
            (
                "{\"type\":\"header\",\"schema\":9,\"tool\":\"x\"}\n",
                Some(Form::Integrity),
            ),
            (
                "{\"type\":\"header\",\"schema\":1,\"algorithms\":[]}\n",
                Some(Form::Checksums),
            ),
            ("{\"type\":\"entry\"}\n", None),
            (&format!("# made today\n{md5}  a\n"), Some(Form::Checksums)),
            (&format!("MD5 (a) = {md5}\n"), Some(Form::Checksums)),
            (&format!("path,md5\na,{md5}\n"), Some(Form::Checksums)),
            (&format!("{}  a\n", &md5[..31]), None),
            ("some notes\n", None),
            ("", None),
        ] {
            assert_eq!(form(head.as_bytes()), expected, "{head}");
        }
    }
}
