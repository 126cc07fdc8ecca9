//! Contents that a manifest records: each once, with the paths that have it.

use std::collections::HashMap;
use std::path::Path;

use bc_digest::{Algorithm, Digest};
use bc_integrity::{ManifestFile, Trust};
use bc_manifest::integrity::{Entry, Kind, path_order};
use bc_walk::job::{Error, path_of};

use crate::file::check_algorithm;

/// Number of a content: contents are in the order of their first paths.
pub(crate) type ContentId = u32;

/// One content.
#[derive(Clone, Debug)]
pub(crate) struct RecordedContent {
    /// Its digest.
    pub digest: Digest,
    /// Its size.
    pub size: u64,
    /// True if no file is known that has it, as the last update says: all are damaged or cannot be
    /// read.
    pub is_suspect: bool,
    /// First of its names.
    first: u32,
}

/// Name of a recorded file.
#[derive(Clone, Copy, Debug)]
struct RecordedName {
    start: u64,
    len: u32,
    /// Next name of the same content.
    next: Option<u32>,
}

/// All contents of a manifest.
#[derive(Debug)]
pub(crate) struct RecordedContents {
    /// Algorithm of the digests.
    pub algorithm: Algorithm,
    /// SHA-256 in the trailer.
    pub trailer: [u8; 32],
    text: Vec<u8>,
    /// In the order of the manifest.
    names: Vec<RecordedName>,
    all: Vec<RecordedContent>,
    of: HashMap<(Digest, u64), ContentId>,
}

impl RecordedContents {
    /// Reads a manifest. Empty files, and files without a digest or a size, have no content.
    ///
    /// # Errors
    /// If it is not sound to its end, or its digests are too short.
    pub(crate) fn of(manifest: &ManifestFile) -> Result<RecordedContents, Error> {
        manifest.check()?;
        let mut reader = manifest.reader(Trust::Checked)?;
        let algorithm = manifest.algorithm_of(reader.header())?;
        check_algorithm(algorithm, Path::new(&path_of(manifest.name())))?;
        let mut contents = RecordedContents::empty(algorithm);
        let mut last: HashMap<ContentId, u32> = HashMap::new();
        while let Some(entry) = reader.read().map_err(|error| manifest.refused(&error))? {
            if entry.kind == Kind::File {
                contents.add(&entry, &mut last);
            }
        }
        contents.trailer = reader.counts().sha256;
        Ok(contents)
    }

    fn empty(algorithm: Algorithm) -> RecordedContents {
        RecordedContents {
            algorithm,
            trailer: [0; 32],
            text: Vec::new(),
            names: Vec::new(),
            all: Vec::new(),
            of: HashMap::new(),
        }
    }

    fn add(&mut self, entry: &Entry, last: &mut HashMap<ContentId, u32>) {
        let (number, path) = (self.names.len() as u32, &entry.path);
        let key = entry.digest.zip(entry.size().filter(|size| *size > 0));
        let content = key.map(|(digest, size)| {
            *self.of.entry((digest, size)).or_insert_with(|| {
                self.all.push(RecordedContent {
                    digest,
                    size,
                    is_suspect: true,
                    first: number,
                });
                self.all.len() as u32 - 1
            })
        });
        self.names.push(RecordedName {
            start: self.text.len() as u64,
            len: path.len() as u32,
            next: None,
        });
        self.text.extend_from_slice(path);
        if let Some(content) = content {
            self.all[content as usize].is_suspect &= entry.found.is_some();
            if self.all[content as usize].first != number {
                let before = last
                    .get(&content)
                    .copied()
                    .unwrap_or(self.all[content as usize].first);
                self.names[before as usize].next = Some(number);
                last.insert(content, number);
            }
        }
    }

    /// Makes the contents of these files, for tests.
    #[cfg(test)]
    pub(crate) fn of_files(files: &[(&str, &[u8])]) -> RecordedContents {
        let mut contents = RecordedContents::empty(Algorithm::Sha256);
        let mut last = HashMap::new();
        for (path, bytes) in files {
            let mut entry = Entry::new(path.as_bytes().to_vec(), Kind::File);
            entry.digest = Some(bc_digest::hash(Algorithm::Sha256, bytes));
            entry.size_alone = Some(bytes.len() as u64);
            contents.add(&entry, &mut last);
        }
        contents
    }

    /// Returns all contents.
    pub(crate) fn all(&self) -> &[RecordedContent] {
        &self.all
    }

    /// Returns the number of the content with this digest and size.
    pub(crate) fn find(&self, digest: &Digest, size: u64) -> Option<ContentId> {
        self.of.get(&(*digest, size)).copied()
    }

    /// Returns the paths of a content.
    pub(crate) fn paths(&self, content: ContentId) -> impl Iterator<Item = &[u8]> {
        let mut next = Some(self.all[content as usize].first);
        std::iter::from_fn(move || {
            let name = &self.names[next? as usize];
            next = name.next;
            Some(self.path(name))
        })
    }

    fn path(&self, name: &RecordedName) -> &[u8] {
        &self.text[name.start as usize..][..name.len as usize]
    }

    /// True if a file of this path is recorded, whatever its content.
    pub(crate) fn has_path(&self, path: &[u8]) -> bool {
        let found = self
            .names
            .binary_search_by(|name| path_order(self.path(name), path));
        found.is_ok()
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) fn memory(&self) -> u64 {
        let text = self.text.capacity();
        let names = self.names.capacity() * size_of::<RecordedName>();
        let of = self.of.capacity() * (size_of::<(Digest, u64)>() + 8);
        (text + names + of + self.all.capacity() * size_of::<RecordedContent>()) as u64
    }
}
