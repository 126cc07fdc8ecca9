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
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedContent {
    /// Its digest.
    pub(crate) digest: Digest,
    /// Its size.
    pub(crate) size: u64,
    /// True if no file is known that has it, as the last update says: all are damaged or cannot be
    /// read.
    pub(crate) is_suspect: bool,
}

/// A content as it is kept: there may be many. Its digest is with those of the others.
#[derive(Debug)]
struct KeptContent {
    size: u64,
    /// First of its names.
    first: u32,
    /// Content before it whose digest begins alike.
    alike: Option<ContentId>,
    is_suspect: bool,
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
    all: Vec<KeptContent>,
    digests: Vec<u8>,
    /// The last content whose digest begins so.
    of: HashMap<u64, ContentId>,
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
            digests: Vec::new(),
            of: HashMap::new(),
        }
    }

    fn add(&mut self, entry: &Entry, last: &mut HashMap<ContentId, u32>) {
        let (number, path) = (self.names.len() as u32, &entry.path);
        let key = entry.digest.zip(entry.size().filter(|size| *size > 0));
        let content = key.map(|(digest, size)| {
            self.find(&digest, size).unwrap_or_else(|| {
                let content = self.all.len() as u32;
                self.digests.extend_from_slice(digest.as_bytes());
                self.all.push(KeptContent {
                    size,
                    first: number,
                    alike: self.of.insert(beginning(&digest), content),
                    is_suspect: true,
                });
                content
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

    /// Returns the number of contents.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns a content.
    pub(crate) fn get(&self, content: ContentId) -> RecordedContent {
        let kept = &self.all[content as usize];
        RecordedContent {
            digest: self.digest(content),
            size: kept.size,
            is_suspect: kept.is_suspect,
        }
    }

    fn digest(&self, content: ContentId) -> Digest {
        let len = self.algorithm.digest_len();
        Digest::new(&self.digests[content as usize * len..][..len])
    }

    /// Returns the number of the content with this digest and size.
    pub(crate) fn find(&self, digest: &Digest, size: u64) -> Option<ContentId> {
        let mut next = self.of.get(&beginning(digest)).copied();
        while let Some(content) = next {
            let kept = &self.all[content as usize];
            if kept.size == size && self.digest(content) == *digest {
                return Some(content);
            }
            next = kept.alike;
        }
        None
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
        let text = self.text.capacity() + self.digests.capacity();
        let names = self.names.capacity() * size_of::<RecordedName>();
        let of = self.of.capacity() * (size_of::<(u64, ContentId)>() + 1);
        (text + names + of + self.all.capacity() * size_of::<KeptContent>()) as u64
    }
}

/// Returns the first bytes of a digest.
fn beginning(digest: &Digest) -> u64 {
    let mut first = [0; 8];
    let bytes = digest.as_bytes();
    let count = bytes.len().min(8);
    first[..count].copy_from_slice(&bytes[..count]);
    u64::from_le_bytes(first)
}
