//! Contents that a manifest records, each once, in 29 bytes: a million files fit into a budget of 64 MiB.
//! Paths are not kept: callers that need them read the manifest again.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use bc_digest::{Algorithm, Digest};
use bc_integrity::{ManifestFile, Trust};
use bc_manifest::integrity::{Entry, Header, Kind, ROOT, UNSEEN_AT};
use bc_manifest::time::parse_rfc3339;
use bc_walk::job::{Error, ErrorKind, path_of};

use crate::file::check_algorithm;
use crate::format::VolumeHeader;

/// Number of a content in the table.
pub(crate) type ContentId = u32;

/// Number of a volume in a run, for [`ContentTable::cover`].
pub(crate) type VolumeIndex = u32;

/// A content: the first 128 bits of its digest, and its size with one bit behind it, which is set where
/// no file is known that has it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct ContentKey {
    digest: [u8; 16],
    size: u64,
}

impl ContentKey {
    fn new(digest: &Digest, size: u64, is_suspect: bool) -> ContentKey {
        let mut key = ContentKey {
            digest: [0; 16],
            size: size << 1 | u64::from(is_suspect),
        };
        key.digest.copy_from_slice(&digest.as_bytes()[..16]);
        key
    }

    fn is_same(&self, other: &ContentKey) -> bool {
        (self.digest, self.size >> 1) == (other.digest, other.size >> 1)
    }
}

/// State of a content in a run, in one byte.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ContentState(u8);

impl ContentState {
    const SHARED: u8 = 1;
    const TAKEN: u8 = 2;
    const FAILED: u8 = 4;

    /// True if several files have it.
    pub(crate) fn is_shared(self) -> bool {
        self.0 & ContentState::SHARED != 0
    }

    /// True if it is in a volume that is being written.
    pub(crate) fn is_taken(self) -> bool {
        self.0 & ContentState::TAKEN != 0
    }

    /// True if it could not be proven, and has no other file.
    pub(crate) fn has_failed(self) -> bool {
        self.0 & ContentState::FAILED != 0
    }

    /// Notes that it is in a volume that is being written, or no longer.
    pub(crate) fn set_taken(&mut self, is_taken: bool) {
        self.0 &= !ContentState::TAKEN;
        self.0 |= u8::from(is_taken) * ContentState::TAKEN;
    }

    /// Notes that it could not be proven, and has no other file.
    pub(crate) fn fail(&mut self) {
        self.0 |= ContentState::FAILED;
    }
}

/// A part of a content that a volume has.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct CoveredRange {
    content: ContentId,
    from: u64,
    end: u64,
    volume: VolumeIndex,
}

/// A part of a content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ContentPiece {
    /// The content.
    pub content: ContentId,
    /// Its first byte.
    pub from: u64,
    /// Number of its bytes.
    pub len: u64,
}

/// Nothing covers the whole of a content.
const UNCOVERED: VolumeIndex = VolumeIndex::MAX;

/// All contents of a manifest.
#[derive(Debug)]
pub(crate) struct ContentTable {
    /// Algorithm of the digests.
    pub algorithm: Algorithm,
    /// SHA-256 in the trailer.
    pub trailer: [u8; 32],
    /// Header of the manifest.
    pub header: Header,
    /// Files that may have content, and have no digest.
    pub without_digest: u64,
    /// Entries of which it is not known what they hold.
    unread: UnreadEntries,
    /// Bytes of the paths of all files with content.
    pub path_bytes: u64,
    /// In order.
    keys: Vec<ContentKey>,
    states: Vec<ContentState>,
    /// Volumes that have all of a content.
    cover: Vec<VolumeIndex>,
    /// Parts that volumes have, in order.
    ranges: Vec<CoveredRange>,
}

/// Bytes of memory for a file with content.
pub(crate) const PER_FILE: u64 =
    (size_of::<ContentKey>() + size_of::<ContentState>() + size_of::<VolumeIndex>()) as u64;

/// Bytes of memory for an entry of which it is not known what it holds.
const PER_UNREAD: u64 = 2 * size_of::<u64>() as u64;

/// True if a file is there with its recorded content, as far as the last update knows.
fn is_sound(entry: &Entry) -> bool {
    entry.found.is_none() && entry.error.is_none() && !entry.extra.contains_key(UNSEEN_AT)
}

/// Returns digest and size of the content of an entry; `None` for empty files, and those that have
/// no digest.
pub(crate) fn content_of(entry: &Entry) -> Option<(Digest, u64)> {
    let size = entry
        .size()
        .filter(|size| (1..=i64::MAX as u64).contains(size))?;
    Some((entry.digest?, size))
}

/// True if a file may have content that nothing identifies.
pub(crate) fn is_without_digest(entry: &Entry) -> bool {
    entry.kind == Kind::File && content_of(entry).is_none() && entry.size() != Some(0)
}

/// Operation that is recorded where only the extended attributes could not be read.
const READS_ATTRIBUTES: &str = "getxattr";

/// True if an entry was there when the manifest was made, and neither its content nor, of a directory,
/// what is below it could be read.
fn is_unread(entry: &Entry) -> bool {
    let is_unlisted = entry.kind == Kind::Dir
        && entry
            .error
            .as_ref()
            .is_some_and(|error| error.op != READS_ATTRIBUTES);
    is_unlisted || is_without_digest(entry)
}

/// Entries of which the manifest does not know what they hold: content that it does not list may be
/// theirs. Hashes of their paths, and their sizes: one that was renamed has another path by now.
#[derive(Debug, Default)]
struct UnreadEntries {
    paths: Vec<u64>,
    sizes: Vec<u64>,
}

impl UnreadEntries {
    fn hash(path: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(path);
        hasher.finish()
    }

    fn add(&mut self, entry: &Entry) {
        self.paths.push(UnreadEntries::hash(&entry.path));
        let size = entry.size().filter(|_| entry.kind == Kind::File);
        self.sizes.extend(size);
    }

    fn finish(&mut self) {
        for list in [&mut self.paths, &mut self.sizes] {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
    }

    fn has(&self, path: &[u8]) -> bool {
        self.paths.binary_search(&UnreadEntries::hash(path)).is_ok()
    }

    /// True if content of this size that had this path may be that of one of them.
    fn may_have(&self, path: &[u8], size: u64) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        // A path that is too long for a header is not known.
        let mut slashes = (0..path.len()).filter(|at| path[*at] == b'/');
        path.is_empty()
            || self.sizes.binary_search(&size).is_ok()
            || self.has(path)
            || self.has(ROOT)
            || slashes.any(|at| self.has(&path[..at]))
    }
}

impl ContentTable {
    /// Reads a manifest.
    ///
    /// # Errors
    /// If it is not sound to its end, its digests are too short, or it takes more than so many bytes of
    /// memory.
    pub(crate) fn of(manifest: &ManifestFile, memory: u64) -> Result<ContentTable, Error> {
        manifest.check()?;
        let mut reader = manifest.reader(Trust::Checked)?;
        let algorithm = manifest.algorithm_of(reader.header())?;
        check_algorithm(algorithm, Path::new(&path_of(manifest.name())))?;
        let mut table = ContentTable::empty(algorithm, reader.header().clone());
        let (mut files, mut needed) = (0_u64, 0_u64);
        while let Some(entry) = reader.read().map_err(|error| manifest.refused(&error))? {
            if is_unread(&entry) {
                needed += PER_UNREAD;
            }
            if entry.kind == Kind::File && content_of(&entry).is_some() {
                files += 1;
                needed += PER_FILE;
            }
            // All are counted, so that the error says how much is needed.
            if needed <= memory {
                table.add(&entry);
            }
        }
        if needed > memory {
            let text = format!(
                "the list of its {files} files takes {needed} bytes of memory, and the memory budget leaves \
                 {memory}: {} more are needed",
                needed - memory
            );
            let path = path_of(manifest.name());
            return Err(Error::at(ErrorKind::Usage, &path, text));
        }
        table.trailer = reader.counts().sha256;
        table.finish();
        Ok(table)
    }

    fn empty(algorithm: Algorithm, header: Header) -> ContentTable {
        ContentTable {
            algorithm,
            trailer: [0; 32],
            header,
            without_digest: 0,
            unread: UnreadEntries::default(),
            path_bytes: 0,
            keys: Vec::new(),
            states: Vec::new(),
            cover: Vec::new(),
            ranges: Vec::new(),
        }
    }

    fn add(&mut self, entry: &Entry) {
        self.without_digest += u64::from(is_without_digest(entry));
        if is_unread(entry) {
            self.unread.add(entry);
        }
        let Some((digest, size)) = content_of(entry).filter(|_| entry.kind == Kind::File) else {
            return;
        };
        // A list that doubles would take twice as much for a moment.
        if self.keys.len() == self.keys.capacity() {
            let more = (self.keys.len() / 8).max(1024);
            self.keys.reserve_exact(more);
        }
        self.keys
            .push(ContentKey::new(&digest, size, !is_sound(entry)));
        self.path_bytes += entry.path.len() as u64;
    }

    /// Sorts what was read.
    fn finish(&mut self) {
        self.unread.finish();
        self.keys.sort_unstable();
        self.states = Vec::with_capacity(self.keys.len());
        for at in 0..self.keys.len() {
            let key = self.keys[at];
            let count = self.states.len();
            match self.states.last_mut() {
                // The first of equal ones has no bit set if any has none.
                Some(state) if self.keys[count - 1].is_same(&key) => {
                    state.0 |= ContentState::SHARED;
                }
                _ => {
                    self.keys[count] = key;
                    self.states.push(ContentState::default());
                }
            }
        }
        self.keys.truncate(self.states.len());
        self.cover = vec![UNCOVERED; self.keys.len()];
    }

    /// Makes the contents of these files, for tests.
    #[cfg(test)]
    pub(crate) fn of_files(files: &[(&str, &[u8])]) -> ContentTable {
        let header = Header::new("sha256", "0");
        let mut table = ContentTable::empty(Algorithm::Sha256, header);
        for (path, bytes) in files {
            let mut entry = Entry::new(path.as_bytes().to_vec(), Kind::File);
            entry.digest = Some(bc_digest::hash(Algorithm::Sha256, bytes));
            entry.size_alone = Some(bytes.len() as u64);
            table.add(&entry);
        }
        table.finish();
        table
    }

    /// Returns the number of contents.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns all contents.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ContentId> + use<> {
        0..self.keys.len() as ContentId
    }

    /// Returns the size of a content.
    pub(crate) fn size(&self, content: ContentId) -> u64 {
        self.keys[content as usize].size >> 1
    }

    /// True if no file is known that has the content: all are damaged, unreadable or not to be seen, as
    /// the last update says.
    pub(crate) fn is_suspect(&self, content: ContentId) -> bool {
        self.keys[content as usize].size & 1 == 1
    }

    /// Returns the number of the content with this digest and size.
    pub(crate) fn find(&self, digest: &Digest, size: u64) -> Option<ContentId> {
        if digest.as_bytes().len() != self.algorithm.digest_len() || size > i64::MAX as u64 {
            return None;
        }
        let wanted = ContentKey::new(digest, size, false);
        let at = self.keys.partition_point(|key| *key < wanted);
        let is_it = self.keys.get(at).is_some_and(|key| key.is_same(&wanted));
        is_it.then_some(at as ContentId)
    }

    /// True if content that is not listed may be that of a file which could not be read when the manifest
    /// was made: it had this path and size.
    pub(crate) fn may_be_unread(&self, path: &[u8], size: u64) -> bool {
        self.unread.may_have(path, size)
    }

    /// Returns the state of a content.
    pub(crate) fn state(&self, content: ContentId) -> ContentState {
        self.states[content as usize]
    }

    /// Returns the state of a content, to be changed.
    pub(crate) fn state_mut(&mut self, content: ContentId) -> &mut ContentState {
        &mut self.states[content as usize]
    }

    /// Forgets what is in volumes that are not complete.
    pub(crate) fn forget_taken(&mut self) {
        self.states
            .iter_mut()
            .for_each(|state| state.set_taken(false));
    }

    /// Notes that a volume has a part of a content; false if others have it already.
    pub(crate) fn cover(&mut self, piece: ContentPiece, volume: VolumeIndex) -> bool {
        if self.missing_of(piece).is_none() {
            return false;
        }
        let (from, end) = (piece.from, piece.from + piece.len);
        if from == 0 && end == self.size(piece.content) {
            self.cover[piece.content as usize] = volume;
            return true;
        }
        let range = CoveredRange {
            content: piece.content,
            from,
            end,
            volume,
        };
        let at = self.ranges.partition_point(|other| *other < range);
        self.ranges.insert(at, range);
        true
    }

    /// Forgets what volumes have.
    pub(crate) fn forget_cover(&mut self) {
        self.cover.fill(UNCOVERED);
        self.ranges.clear();
    }

    /// Returns the part of a content that no volume has, from its first such byte to its last.
    pub(crate) fn missing(&self, content: ContentId) -> Option<ContentPiece> {
        self.missing_of(ContentPiece {
            content,
            from: 0,
            len: self.size(content),
        })
    }

    /// Returns the part of a piece that no volume has, from its first such byte to its last.
    pub(crate) fn missing_of(&self, piece: ContentPiece) -> Option<ContentPiece> {
        if self.cover[piece.content as usize] != UNCOVERED {
            return None;
        }
        let ranges = self.ranges_of(piece.content);
        let (mut from, mut end) = (piece.from, piece.from + piece.len);
        for range in ranges {
            if range.from <= from {
                from = from.max(range.end);
            }
        }
        // A range that does not reach up to the end begins behind each end that comes after it.
        for range in ranges.iter().rev() {
            if range.from < end && range.end >= end {
                end = range.from;
            }
        }
        (from < end).then(|| ContentPiece {
            content: piece.content,
            from,
            len: end - from,
        })
    }

    fn ranges_of(&self, content: ContentId) -> &[CoveredRange] {
        let start = self.ranges.partition_point(|range| range.content < content);
        let len = self.ranges[start..].partition_point(|range| range.content == content);
        &self.ranges[start..start + len]
    }

    /// Returns the volumes that have a part of a content.
    pub(crate) fn volumes_of(&self, piece: ContentPiece) -> impl Iterator<Item = VolumeIndex> {
        let end = piece.from + piece.len;
        let whole = Some(self.cover[piece.content as usize]).filter(|cover| *cover != UNCOVERED);
        let ranges = self.ranges_of(piece.content).iter();
        let ranges = ranges.filter(move |range| range.from < end && range.end > piece.from);
        whole.into_iter().chain(ranges.map(|range| range.volume))
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) fn memory(&self) -> u64 {
        let ranges = self.ranges.capacity() * size_of::<CoveredRange>();
        PER_FILE * self.keys.capacity() as u64 + ranges as u64
    }

    /// Returns the time when the manifest was made or last updated, in nanoseconds since 1970; 0 if it
    /// does not say.
    pub(crate) fn made_ns(&self) -> i64 {
        let created = self.header.created_at.as_deref();
        let updated = self.header.extra.get("updated_at");
        let updated = updated.and_then(|updated| updated.as_str());
        let times = [created, updated].into_iter().flatten();
        times.filter_map(parse_rfc3339).max().unwrap_or(0)
    }
}

/// Pieces of a content that follow each other in a volume.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PieceRun {
    /// Number of the first piece in the header.
    pub first: usize,
    /// Number of pieces.
    pub count: usize,
    /// First byte in the content.
    pub from: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Returns the pieces of a volume, those together that are one range of a content.
pub(crate) fn piece_runs(header: &VolumeHeader) -> Vec<PieceRun> {
    let mut runs: Vec<PieceRun> = Vec::new();
    for (number, piece) in header.pieces.iter().enumerate() {
        if let Some(run) = runs.last_mut() {
            let before = &header.pieces[run.first];
            let is_same = (before.digest, before.size) == (piece.digest, piece.size);
            if is_same && run.from + run.len == piece.from {
                run.count += 1;
                run.len += piece.len;
                continue;
            }
        }
        runs.push(PieceRun {
            first: number,
            count: 1,
            from: piece.from,
            len: piece.len,
        });
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ContentTable {
        ContentTable::of_files(&[
            ("a", b"aaaa"),
            ("b", &[7; 50]),
            ("c", b"cccc"),
            ("d", b"aaaa"),
            ("e", b""),
        ])
    }

    fn id(table: &ContentTable, bytes: &[u8]) -> ContentId {
        let digest = bc_digest::hash(Algorithm::Sha256, bytes);
        table.find(&digest, bytes.len() as u64).unwrap()
    }

    #[test]
    fn contents_are_each_recorded_once() {
        let table = table();
        assert_eq!(table.len(), 3);
        let a = id(&table, b"aaaa");
        assert_eq!((table.size(a), table.is_suspect(a)), (4, false));
        let digest = bc_digest::hash(Algorithm::Sha256, b"aaaa");
        assert_eq!(table.find(&digest, 5), None);
        assert_eq!(table.find(&digest, u64::MAX), None);
        assert_eq!(table.find(&Digest::new(&digest.as_bytes()[..16]), 4), None);
    }

    #[test]
    fn a_content_is_suspect_if_no_file_has_it() {
        let header = Header::new("sha256", "0");
        let mut table = ContentTable::empty(Algorithm::Sha256, header);
        let mut entry = Entry::new(b"a".to_vec(), Kind::File);
        entry.digest = Some(bc_digest::hash(Algorithm::Sha256, b"x"));
        entry.size_alone = Some(1);
        entry.found = Some(bc_manifest::integrity::ContentFault::Damaged);
        table.add(&entry);
        table.finish();
        let x = id(&table, b"x");
        assert!(table.is_suspect(x));
        let mut again = ContentTable::empty(Algorithm::Sha256, Header::new("sha256", "0"));
        again.add(&entry);
        (entry.path, entry.found) = (b"b".to_vec(), None);
        again.add(&entry);
        entry.digest = None;
        again.add(&entry);
        again.finish();
        assert_eq!((again.len(), again.without_digest), (1, 1));
        assert!(!again.is_suspect(id(&again, b"x")));
    }

    /// A gap is what it is by its definition, whatever the ranges are.
    #[test]
    fn gaps_are_those_of_the_bytes() {
        let mut state = 1_u64;
        let mut below = |most: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % most
        };
        for _ in 0..500 {
            let mut table = table();
            let content = id(&table, &[7; 50]);
            let mut has = [false; 50];
            for _ in 0..below(8) {
                let from = below(49);
                let len = 1 + below(49 - from);
                table.cover(ContentPiece { content, from, len }, 1);
                has[from as usize..(from + len) as usize].fill(true);
            }
            let from = below(49);
            let len = 1 + below(50 - from);
            let missing = table.missing_of(ContentPiece { content, from, len });
            let mut lacking = (from..from + len).filter(|at| !has[*at as usize]);
            let first = lacking.next();
            let last = lacking.next_back().or(first);
            let found = missing.map(|piece| (piece.from, piece.from + piece.len - 1));
            assert_eq!(found, first.zip(last), "{from} {len} {has:?}");
        }
    }

    #[test]
    fn what_is_not_known_may_be_anywhere_below() {
        let mut table = table();
        let mut dir = Entry::new(b"d/e".to_vec(), Kind::Dir);
        dir.error = Some(bc_manifest::Failure {
            op: "open directory".into(),
            errno: Some(13),
            message: String::new(),
        });
        assert!(!table.may_be_unread(b"d/e/f", 5));
        table.add(&dir);
        let mut file = Entry::new(b"g".to_vec(), Kind::File);
        file.size_alone = Some(77);
        table.add(&file);
        table.finish();
        for (path, size, may) in [
            (&b"d/e/f"[..], 5, true),
            (b"d/e", 5, true),
            (b"d/ef", 5, false),
            (b"d/e/f/g", 5, true),
            (b"d", 5, false),
            (b"g", 5, true),
            (b"h", 77, true),
            (b"h", 78, false),
            (b"", 78, true),
        ] {
            assert_eq!(table.may_be_unread(path, size), may, "{path:?} {size}");
        }
    }

    #[test]
    fn gaps_are_found_between_pieces_that_overlap() {
        let mut table = table();
        let content = id(&table, &[7; 50]);
        for (from, len) in [(0, 10), (5, 10), (30, 10), (25, 10), (20, 2)] {
            assert!(table.cover(ContentPiece { content, from, len }, 3));
        }
        let missing = |table: &ContentTable, from, len| {
            let piece = table.missing_of(ContentPiece { content, from, len });
            piece.map(|piece| (piece.from, piece.len))
        };
        assert_eq!(missing(&table, 0, 40), Some((15, 10)));
        assert_eq!(missing(&table, 0, 15), None);
        assert_eq!(missing(&table, 15, 5), Some((15, 5)));
        assert_eq!(missing(&table, 0, 50), Some((15, 35)));
        let part = ContentPiece {
            content,
            from: 4,
            len: 2,
        };
        assert!(!table.cover(part, 4));
        assert_eq!(table.volumes_of(part).collect::<Vec<_>>(), [3, 3]);
        let whole = ContentPiece {
            from: 0,
            len: 50,
            ..part
        };
        assert!(table.cover(whole, 5) && table.missing(content).is_none());
    }
}
