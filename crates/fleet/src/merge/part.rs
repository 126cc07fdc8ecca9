//! The manifest of one part of a tree as a stream of entries, which are checked to be of that part.

use bc_manifest::integrity::{
    Entry, Header, Kind, ROOT, Reader, ShardHeader, ShardTrailer, Trailer,
};
use bc_walk::Shard;
use bc_walk::job::Error;

use bc_integrity::{LineInput, ManifestFile, Trust};

/// One input and its current entry.
pub(super) struct Part<'a> {
    manifest: &'a ManifestFile,
    shard: Shard,
    lines: Reader<LineInput>,
    entry: Entry,
    /// Directory of the entry before, which is not checked again.
    directory: Option<Vec<u8>>,
}

impl<'a> Part<'a> {
    /// Opens a manifest whose trailer was found right.
    pub(super) fn open(manifest: &'a ManifestFile) -> Result<Part<'a>, Error> {
        let shard = part_of(manifest, &manifest.header()?)?.ok_or_else(|| not_a_part(manifest))?;
        Ok(Part {
            manifest,
            shard,
            lines: manifest.reader(Trust::Checked)?,
            entry: Entry::new(Vec::new(), Kind::File),
            directory: None,
        })
    }

    /// Advances to the next entry; returns `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool, Error> {
        let read = self.lines.read_into(&mut self.entry);
        if !read.map_err(|error| self.manifest.refused(&error))? {
            return Ok(false);
        }
        let path = &self.entry.path;
        let directory = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => &path[..slash],
            None => ROOT,
        };
        if self.directory.as_deref() == Some(directory) {
            return Ok(true);
        }
        if !self.shard.has_directory(directory) {
            let path = bc_fs::escape(path);
            let text = format!("'{path}' does not belong to part {}", self.shard);
            return Err(self.manifest.bad(text));
        }
        let known = self.directory.get_or_insert_default();
        known.clear();
        known.extend_from_slice(directory);
        Ok(true)
    }

    /// Returns the path of the current entry.
    pub(super) fn path(&self) -> &[u8] {
        &self.entry.path
    }

    /// Returns the current entry.
    pub(super) fn entry(&mut self) -> &mut Entry {
        &mut self.entry
    }

    /// Returns the counts of the trailer, at the end.
    pub(super) fn trailer(&self) -> Trailer {
        *self.lines.counts()
    }
}

pub(super) fn not_a_part(manifest: &ManifestFile) -> Error {
    manifest.bad("is of a whole tree: only those of its shards can be put together")
}

/// Reads the data of a part at the end of its manifest.
pub(super) fn end_of(manifest: &ManifestFile) -> Result<ShardTrailer, Error> {
    let fields = manifest.read_seal()?;
    ShardTrailer::of_fields(&fields)
        .ok_or_else(|| manifest.bad("its trailer does not say which directories it knows"))
}

/// Returns the part of a tree that a manifest describes, if it is not all of it.
pub(super) fn part_of(manifest: &ManifestFile, header: &Header) -> Result<Option<Shard>, Error> {
    let part =
        ShardHeader::of_header(header).map_err(|why| manifest.bad(format!("is of {why}")))?;
    let Some(part) = part else {
        return Ok(None);
    };
    match Shard::new(part.index, part.of) {
        Some(shard) => Ok(Some(shard)),
        None => Err(manifest.bad(format!(
            "is of one of {} parts, which are too many",
            part.of
        ))),
    }
}
