//! Volumes as the manifest of today finds them, and which of them serve, go or stay: decided by
//! headers, index and manifest alone, without a look at the tree.
//!
//! A volume *serves* while at most half of its parity is used up by blocks that are of no use any more,
//! or needed for content that no file has. Only content of serving volumes counts as protected; all else
//! is protected again in the same run. A volume that does not serve goes once others have all of its
//! content that is recorded, and it has none that no file has, or that was edited or removed not long ago.

use bc_fs::meta::Identity;
use bc_walk::job::{Error, ErrorKind};

use crate::code::BLOCK;
use crate::contents::{ContentId, ContentPiece, ContentTable, VolumeIndex, piece_runs};
use crate::file::{FORGEABLE, ParityDir, ParityFile, is_forgeable};
use crate::format::{DirId, FULL_RAW, NEWER, VolumeHeader};
use crate::index::{IndexLine, ParityIndex};

/// Volumes under a quarter full that there are before they are put together: with fewer, each night's
/// would be written twice.
pub(crate) const MOST_SMALL: usize = 4;

/// A volume, as the manifest of today finds it.
#[derive(Clone, Debug)]
pub(crate) struct VolumeState {
    /// Its number.
    pub number: u64,
    /// Identity of its file.
    pub file: Identity,
    /// Time when it was written, in nanoseconds since 1970.
    pub written_ns: i64,
    /// Bytes that its pieces take in the header.
    pub raw_len: u64,
    /// Data blocks with content that is recorded, but that no file is known to have.
    pub suspect: usize,
    /// True if content in it is recorded.
    pub is_live: bool,
    /// True if some of that is in a file, as far as is known.
    pub has_sound: bool,
    /// True if content in it that is not recorded may be that of a file which could not be read when the
    /// manifest was made.
    pub has_unread: bool,
    /// Path of the content that is gone for the shortest time.
    pub last_removed: Option<Vec<u8>>,
    /// Its line in the index.
    pub line: IndexLine,
}

impl VolumeState {
    /// Judges a volume by its header and its line in the index, to whose ages the seconds since then
    /// are added.
    pub(crate) fn of(
        file: &ParityFile,
        contents: &ContentTable,
        index: &ParityIndex,
        seconds: i64,
    ) -> VolumeState {
        let header = &file.header;
        let known = index.lines.get(&header.id.number);
        let known = known.filter(|line| line.is_of(header));
        let mut line = IndexLine::new(header);
        line.damaged = (header.parity - file.present()) as u64;
        if let Some(known) = known {
            line.damaged = line.damaged.max(known.damaged.min(line.parity));
            (line.judged, line.unmerged) = (known.judged, known.unmerged);
        }
        let blocks = header.blocks.len();
        let (mut stale, mut suspect) = (vec![false; blocks], vec![false; blocks]);
        let mut state = VolumeState {
            number: header.id.number,
            file: file.id,
            written_ns: header.id.written_ns,
            raw_len: header.raw_len(),
            suspect: 0,
            is_live: false,
            has_sound: false,
            has_unread: false,
            last_removed: None,
            line,
        };
        let mut least = i64::MAX;
        for run in piece_runs(header) {
            let pieces = run.first..run.first + run.count;
            let piece = &header.pieces[run.first];
            let content = contents.find(&piece.digest, piece.size);
            let marked = match content {
                Some(content) => {
                    let is_suspect = contents.is_suspect(content);
                    state.is_live = true;
                    state.has_sound |= !is_suspect;
                    is_suspect.then_some(&mut suspect)
                }
                None => Some(&mut stale),
            };
            if let Some(marked) = marked {
                for piece in pieces.clone() {
                    marked[header.pieces[piece].blocks()].fill(true);
                }
            }
            if content.is_some() {
                continue;
            }
            let is_unread = contents.may_be_unread(&piece.path, piece.size);
            state.has_unread |= is_unread;
            // Edited or removed: that makes no difference, and may be a mistake. What may be there is not
            // gone yet.
            let known = known.filter(|_| !is_unread);
            let before = known.and_then(|line| line.gone_for(run.first as u32));
            let age = before.map_or(0, |age| age.max(0).saturating_add(seconds));
            state.line.note_gone(pieces, age);
            if age < least {
                least = age;
                state.last_removed = Some(piece.path.clone());
            }
        }
        state.line.stale = stale.iter().filter(|stale| **stale).count() as u64;
        state.suspect = suspect.iter().filter(|suspect| **suspect).count();
        state
    }

    /// Returns the number of data blocks that may still be lost, as far as is known.
    pub(crate) fn spare(&self) -> u64 {
        let lost = self.line.stale + self.line.damaged + self.suspect as u64;
        self.line.parity.saturating_sub(lost)
    }

    /// True if so much of its parity is of no use any more that its content is to be protected again.
    pub(crate) fn is_worn(&self) -> bool {
        2 * (self.line.stale + self.line.damaged) > self.line.parity
    }

    /// True if so much of its parity may be needed for content that no file has that the rest is to be
    /// protected again.
    pub(crate) fn is_overrun(&self) -> bool {
        let lost = self.line.stale + self.line.damaged + self.suspect as u64;
        self.has_sound && 2 * lost > self.line.parity
    }

    /// True if it may be the only volume that repairs what is damaged or could not be read.
    pub(crate) fn may_repair(&self) -> bool {
        self.suspect > 0 || self.has_unread
    }

    /// Returns the share of its parity that is used up, in thousandths.
    pub(crate) fn used_up(&self) -> u64 {
        (self.line.stale + self.line.damaged) * 1000 / self.line.parity.max(1)
    }

    /// True if it has content that was edited or removed less than so many seconds ago, or that may be
    /// neither.
    pub(crate) fn keeps_removed(&self, keep: i64) -> bool {
        self.has_unread || self.line.gone.iter().any(|gone| gone.2 < keep)
    }

    /// True if it is under a quarter full.
    fn is_small(&self, capacity: u64) -> bool {
        self.line.bytes < capacity / 4 && self.raw_len < FULL_RAW / 4
    }
}

/// Volumes of a directory, judged by a manifest.
#[derive(Default)]
pub(crate) struct Survey {
    /// The sound ones, in the order of their numbers.
    pub(crate) volumes: Vec<VolumeState>,
    /// Files that are no sound volumes of this directory.
    pub(crate) unreadable: Vec<Error>,
    /// True if the system refused one of them, which may be sound.
    pub(crate) is_refused: bool,
}

/// Judges all volumes of a directory. `id` is that of the directory.
///
/// # Errors
/// If digests of the manifest can be forged, and others may write to the directory; if there are
/// volumes, and none has digests of the manifest's algorithm, or a later version wrote one.
pub(crate) fn survey(
    dir: &ParityDir,
    id: DirId,
    contents: &ContentTable,
    index: &ParityIndex,
    seconds: i64,
) -> Result<Survey, Error> {
    let is_strict = is_forgeable(contents.algorithm);
    if is_strict {
        dir.refuse_others(FORGEABLE)?;
    }
    let mut survey = Survey::default();
    let (mut another, mut newer) = (None, None);
    for &number in dir.volumes() {
        let checked = dir.read(number).and_then(|file| {
            file.refuse_other_dir(Some(id))?;
            if file.header.algorithm != contents.algorithm {
                let (of, for_) = (file.header.algorithm.name(), contents.algorithm.name());
                let text = format!(
                    "has digests of {of}, and the manifest of {for_}: use another parity directory"
                );
                let error = Error::at(ErrorKind::Usage, &file.path, text);
                another.get_or_insert_with(|| error.clone());
                return Err(error);
            }
            if is_strict {
                dir.refuse_volume_of_others(&file)?;
            }
            Ok(file)
        });
        match checked {
            Ok(file) => {
                let state = VolumeState::of(&file, contents, index, seconds);
                survey.volumes.push(state);
            }
            Err(error) if error.message() == NEWER.0 => {
                newer.get_or_insert(error);
            }
            Err(error) => {
                survey.is_refused |= error.kind() != ErrorKind::Manifest;
                survey.unreadable.push(error);
            }
        }
    }
    // Its content would be protected a second time.
    match newer.or(another.filter(|_| survey.volumes.is_empty())) {
        Some(error) => Err(error),
        None => Ok(survey),
    }
}

/// Role of a volume in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum VolumeRole {
    /// Its content counts as protected.
    Serves,
    /// It is worn or overrun: its content is protected again.
    Worn,
    /// It is put together with others.
    Merged,
    /// Others have all of its content that is recorded, or there is none.
    Spent,
}

/// Returns the role of each volume by its state alone.
pub(crate) fn roles(volumes: &[VolumeState]) -> Vec<VolumeRole> {
    let role = |volume: &VolumeState| match volume.is_live {
        false => VolumeRole::Spent,
        true if volume.is_worn() || volume.is_overrun() => VolumeRole::Worn,
        true => VolumeRole::Serves,
    };
    volumes.iter().map(role).collect()
}

/// Notes the content of volumes that serve as protected, in this order: one that has none which others
/// have not is spent. Of an overrun volume that content counts as protected which no file has: only this
/// one can have parity of it. Returns the errors of those that could not be read.
pub(crate) fn cover_all(
    dir: &ParityDir,
    contents: &mut ContentTable,
    volumes: &[VolumeState],
    roles: &mut [VolumeRole],
    order: &[usize],
) -> Vec<Error> {
    let mut failed = Vec::new();
    for &at in order {
        if roles[at] != VolumeRole::Serves {
            continue;
        }
        match dir.read(volumes[at].number) {
            Ok(file) if cover(contents, &file.header, at as VolumeIndex) => {}
            Ok(_) => roles[at] = VolumeRole::Spent,
            Err(error) => {
                roles[at] = VolumeRole::Worn;
                failed.push(error);
            }
        }
    }
    for &at in order {
        let volume = &volumes[at];
        if roles[at] != VolumeRole::Worn || volume.is_worn() || volume.suspect == 0 {
            continue;
        }
        // One that cannot be read is named when it is to go.
        if let Ok(file) = dir.read(volume.number) {
            let mut pieces = live_pieces(contents, &file.header);
            pieces.retain(|piece| contents.is_suspect(piece.content));
            cover_pieces(contents, pieces, at as VolumeIndex);
        }
    }
    failed
}

/// Has volumes put together that are under a quarter full, if there are some. Those stay that have
/// content which could not go into a new one, or was removed not long ago.
pub(crate) fn merge(volumes: &[VolumeState], roles: &mut [VolumeRole], capacity: u64, keep: i64) {
    let is_merged = |at: &usize| {
        let volume = &volumes[*at];
        roles[*at] == VolumeRole::Serves
            && volume.is_small(capacity)
            && volume.suspect == 0
            && !volume.line.unmerged
            && !volume.keeps_removed(keep)
    };
    let small: Vec<usize> = (0..volumes.len()).filter(is_merged).collect();
    if small.len() >= MOST_SMALL {
        small
            .into_iter()
            .for_each(|at| roles[at] = VolumeRole::Merged);
    }
}

/// Notes the content of a volume as protected by it; false if others have all of it.
pub(crate) fn cover(
    contents: &mut ContentTable,
    header: &VolumeHeader,
    volume: VolumeIndex,
) -> bool {
    let pieces = live_pieces(contents, header);
    cover_pieces(contents, pieces, volume)
}

fn cover_pieces(
    contents: &mut ContentTable,
    pieces: Vec<ContentPiece>,
    volume: VolumeIndex,
) -> bool {
    let mut is_new = false;
    for piece in pieces {
        is_new |= contents.cover(piece, volume);
    }
    is_new
}

/// Returns the content of a volume that is recorded.
pub(crate) fn live_pieces(contents: &ContentTable, header: &VolumeHeader) -> Vec<ContentPiece> {
    let live = |run: crate::contents::PieceRun| {
        let piece = &header.pieces[run.first];
        let content = contents.find(&piece.digest, piece.size)?;
        Some(ContentPiece {
            content,
            from: run.from,
            len: run.len,
        })
    };
    piece_runs(header).into_iter().filter_map(live).collect()
}

/// Returns the content that no serving volume has, but for what could not be proven: number of
/// contents, and their bytes.
pub(crate) fn uncovered(contents: &ContentTable) -> (u64, u64) {
    let missing = |content: ContentId| contents.missing(content);
    contents
        .ids()
        .filter(|content| !contents.state(*content).has_failed())
        .filter_map(missing)
        .fold((0, 0), |(count, bytes), piece| {
            (count + 1, bytes + piece.len)
        })
}

/// Returns the number of blocks of a stream of so many bytes.
pub(crate) fn blocks_of(bytes: u64) -> usize {
    bytes.div_ceil(BLOCK as u64) as usize
}

#[cfg(test)]
mod tests {
    use bc_digest::Algorithm;

    use super::*;
    use crate::format::{PieceBytes, StoredPiece, VolumeId};

    fn header(number: u64, contents: &[&[u8]]) -> VolumeHeader {
        let mut offset = 0;
        let pieces = contents.iter().map(|bytes| {
            let len = bytes.len() as u64;
            offset += len;
            StoredPiece {
                digest: bc_digest::hash(Algorithm::Sha256, bytes),
                size: len,
                from: 0,
                len,
                bytes: PieceBytes::Stream(offset - len),
                path: b"x".to_vec(),
            }
        });
        let pieces: Vec<StoredPiece> = pieces.collect();
        VolumeHeader {
            id: VolumeId {
                dir: [1; 16],
                number,
                written_ns: 0,
            },
            manifest: [0; 32],
            directory: Vec::new(),
            algorithm: Algorithm::Sha256,
            parity: 4,
            pieces,
            blocks: vec![[0; 16]; blocks_of(offset)],
        }
    }

    fn volume(number: u64, change: impl FnOnce(&mut VolumeState)) -> VolumeState {
        let mut line = IndexLine::new(&header(number, &[b"a"]));
        line.bytes = 8;
        let mut state = VolumeState {
            number,
            file: Identity {
                dev: 1,
                ino: number,
            },
            written_ns: 0,
            raw_len: 100,
            suspect: 0,
            is_live: true,
            has_sound: true,
            has_unread: false,
            last_removed: None,
            line,
        };
        change(&mut state);
        state
    }

    fn role(change: impl FnOnce(&mut VolumeState)) -> VolumeRole {
        roles(&[volume(1, change)])[0]
    }

    #[test]
    fn a_volume_serves_until_half_of_its_parity_is_used_up() {
        assert_eq!(role(|_| {}), VolumeRole::Serves);
        assert_eq!(role(|state| state.line.stale = 2), VolumeRole::Serves);
        assert_eq!(role(|state| state.line.stale = 3), VolumeRole::Worn);
        let both = |state: &mut VolumeState| (state.line.stale, state.line.damaged) = (1, 2);
        assert_eq!(role(both), VolumeRole::Worn);
        assert_eq!(role(|state| state.suspect = 2), VolumeRole::Serves);
        assert_eq!(role(|state| state.suspect = 3), VolumeRole::Worn);
        // No other volume could have any of its content.
        let all = |state: &mut VolumeState| (state.suspect, state.has_sound) = (4, false);
        assert_eq!(role(all), VolumeRole::Serves);
        assert_eq!(role(|state| state.is_live = false), VolumeRole::Spent);
    }

    #[test]
    fn small_volumes_are_merged_once_there_are_some() {
        let mut volumes: Vec<VolumeState> = (1..=4).map(|number| volume(number, |_| {})).collect();
        let merged = |volumes: &[VolumeState]| {
            let mut roles = roles(volumes);
            merge(volumes, &mut roles, 1 << 20, 100);
            roles
                .iter()
                .filter(|role| **role == VolumeRole::Merged)
                .count()
        };
        assert_eq!(merged(&volumes[..3]), 0);
        assert_eq!(merged(&volumes), 4);
        volumes[0].suspect = 1;
        assert_eq!(merged(&volumes), 0);
        volumes[0].suspect = 0;
        volumes[0].line.note_gone(0..1, 99);
        assert_eq!(merged(&volumes), 0);
        volumes[0].line.gone[0].2 = 100;
        volumes[0].line.unmerged = true;
        assert_eq!(merged(&volumes), 0);
        volumes.push(volume(5, |_| {}));
        assert_eq!(merged(&volumes), 4);
        volumes[4].raw_len = FULL_RAW;
        assert_eq!(merged(&volumes), 0);
    }

    #[test]
    fn content_is_protected_by_the_first_that_has_it() {
        let mut contents =
            ContentTable::of_files(&[("a", b"aaaa"), ("b", b"bbbb"), ("c", b"cccc")]);
        assert_eq!(uncovered(&contents), (3, 12));
        assert!(cover(&mut contents, &header(1, &[b"aaaa", b"old"]), 0));
        assert!(cover(&mut contents, &header(2, &[b"aaaa", b"cccc"]), 1));
        assert!(!cover(&mut contents, &header(3, &[b"cccc", b"other"]), 2));
        assert_eq!(uncovered(&contents), (1, 4));
    }
}
