//! The index of a parity directory. Its first line says what the directory is: its id, the tree and the
//! manifest that it is of, and the settings that later runs take over. A line for each volume says what
//! no header can, which is how long content has been gone. The last line has a digest of the others.
//!
//! If the index is lost or damaged, the first line comes from the newest volume, which has it in its
//! header, and all that is gone counts as gone since now. Settings that were given after that volume was
//! written are lost.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use bc_digest::{Algorithm, Hasher, push_hex};
use bc_fs::escape;
use bc_integrity::ManifestFile;
use bc_manifest::integrity::Header;
use bc_manifest::time::format_rfc3339;
use bc_walk::job::{Error, ErrorKind, Setting, path_of};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::Redundancy;
use crate::file::{DirUse, INDEX, ParityDir};
use crate::format::{DirId, VolumeHeader, VolumeId};

/// Longest index, and longest line of it, that is read.
const MOST: u64 = 256 << 20;
const MOST_LINE: usize = 4 << 20;

/// The tree and the manifest that a parity directory is of.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ProtectedTree {
    /// Root that the manifest records, escaped.
    root: String,
    /// Name of the manifest, its directory aside, escaped.
    manifest: String,
    /// Machine that the manifest records.
    machine: Option<String>,
    /// Part of the tree that the manifest records.
    part: Value,
}

impl ProtectedTree {
    /// Returns what a manifest says of its tree.
    pub(crate) fn of(manifest: &ManifestFile, header: &Header) -> ProtectedTree {
        let name = path_of(manifest.name());
        let name = name.file_name().unwrap_or_default().as_encoded_bytes();
        ProtectedTree {
            root: escape(header.root.as_deref().unwrap_or_default()).into_owned(),
            manifest: escape(name).into_owned(),
            machine: header.machine.clone(),
            part: serde_json::json!([header.scope, header.shard]),
        }
    }

    /// True if parity of this is that of the other: content that only one of them lists would be
    /// taken for removed.
    fn is(&self, other: &ProtectedTree) -> bool {
        self.manifest == other.manifest && self.is_same_tree(other)
    }

    /// True if both are manifests of one part of one tree.
    fn is_same_tree(&self, other: &ProtectedTree) -> bool {
        let is_machine = match (&self.machine, &other.machine) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        is_machine && (&self.root, &self.part) == (&other.root, &other.part)
    }

    /// Shows it, with what makes the difference to another one of the same name.
    fn shown(&self, other: &ProtectedTree) -> String {
        let mut text = format!("'{}' of {}", self.manifest, self.root);
        if let (Some(one), Some(other)) = (&self.machine, &other.machine)
            && one != other
        {
            let beginning: String = one.chars().take(8).collect();
            text += &format!(" on machine {beginning}");
        }
        if self.part != other.part {
            let is_all = |value: &Value| {
                value
                    .as_array()
                    .is_some_and(|all| all.iter().all(Value::is_null))
            };
            text += if is_all(&self.part) {
                ", all of it"
            } else {
                ", a part of it"
            };
        }
        text
    }
}

/// Settings of a directory, which later runs take over.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ParitySettings {
    /// Share of parity in new volumes.
    #[serde(with = "share")]
    pub redundancy: Redundancy,
    /// Bytes of content in a full volume.
    pub volume: u64,
    /// Seconds for which content that is gone is kept.
    pub keep_removed: i64,
}

/// Shares of parity as text.
mod share {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::Redundancy;

    pub(super) fn serialize<S: Serializer>(
        share: &Redundancy,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(share)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Redundancy, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// First line of an index: description of the directory.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ParityDescription {
    /// Version of the format.
    parity: u32,
    /// Random bytes, as hexadecimal digits.
    id: String,
    /// Tree and manifest.
    of: ProtectedTree,
    /// Settings.
    pub settings: ParitySettings,
}

/// Version of the format.
const VERSION: u32 = 1;

impl ParityDescription {
    /// Describes a new directory.
    ///
    /// # Errors
    /// If there are no random bytes.
    pub(crate) fn new(of: ProtectedTree, settings: ParitySettings) -> Result<Self, Error> {
        let id = bc_edit::journal::random()
            .map_err(|error| Error::io(Path::new("/dev/urandom"), "read", &error))?;
        Ok(ParityDescription {
            parity: VERSION,
            id: hex(&id),
            of,
            settings,
        })
    }

    /// Reads the description in a header or an index.
    pub(crate) fn parsed(text: &[u8]) -> Option<ParityDescription> {
        let description: ParityDescription = serde_json::from_slice(text).ok()?;
        let is_known = description.parity == VERSION && description.dir_id().is_some();
        is_known.then_some(description)
    }

    /// Returns the text for headers.
    pub(crate) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn dir_id(&self) -> Option<DirId> {
        let digits = self.id.as_bytes().as_chunks::<2>();
        let mut id = DirId::default();
        if digits.0.len() != id.len() || !digits.1.is_empty() {
            return None;
        }
        for (byte, digits) in id.iter_mut().zip(digits.0) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(id)
    }

    /// Returns the id of the directory.
    pub(crate) fn id(&self) -> DirId {
        // It was looked at when it was read.
        self.dir_id().unwrap_or_default()
    }

    /// Refuses the parity of another tree or manifest, unless it is adopted.
    ///
    /// # Errors
    /// If it is that of another.
    pub(crate) fn check(
        &mut self,
        of: &ProtectedTree,
        adopt: bool,
        dir: &Path,
    ) -> Result<(), Error> {
        if self.of.is(of) || adopt {
            self.of = of.clone();
            return Ok(());
        }
        let text = format!(
            "is the parity of {}, not of {}: name another directory, or adopt it if that tree or \
             manifest was renamed, or the machine is another by now",
            self.of.shown(of),
            of.shown(&self.of)
        );
        let error = Error::at(ErrorKind::Usage, dir, text);
        Err(error.unless(Some(Setting::Adopt)))
    }

    /// Refuses the parity of another tree, whatever the name of its manifest: content that this one does not
    /// list was never in it.
    ///
    /// # Errors
    /// If it is that of another.
    pub(crate) fn check_tree(&self, of: &ProtectedTree, dir: &Path) -> Result<(), Error> {
        if self.of.is_same_tree(of) {
            return Ok(());
        }
        let text = format!(
            "is the parity of {}, not of {}: what was removed from another tree is not in this one",
            self.of.shown(of),
            of.shown(&self.of)
        );
        Err(Error::at(ErrorKind::Usage, dir, text))
    }
}

/// Pieces of a volume whose content is gone: their first number in the header, the one behind the last,
/// and the seconds for which they have been gone, as far as runs have seen them pass.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct GonePieces(pub u32, pub u32, pub i64);

/// Line of a volume.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct IndexLine {
    /// Number of the volume.
    pub volume: u64,
    /// Bytes of its contents.
    pub bytes: u64,
    /// Data blocks.
    pub blocks: u64,
    /// Parity blocks.
    pub parity: u64,
    /// Data blocks with content that the manifest no longer lists.
    pub stale: u64,
    /// Parity blocks that were damaged or missing when they were last read.
    pub damaged: u64,
    /// Time when it was written.
    pub written_at: String,
    /// The same in nanoseconds since 1970: lines are of the volume that was written then.
    written_ns: i64,
    /// Time when all of its parity was last read, in seconds since 1970.
    pub judged: i64,
    /// True if it was to be merged with others, and holds content that could not be proven then.
    pub unmerged: bool,
    /// Content that is gone, in order.
    pub gone: Vec<GonePieces>,
}

impl IndexLine {
    /// Makes the line of a volume that was just written, and has all that it should.
    pub(crate) fn new(header: &VolumeHeader) -> IndexLine {
        let VolumeId {
            number, written_ns, ..
        } = header.id;
        IndexLine {
            volume: number,
            bytes: header.bytes(),
            blocks: header.blocks.len() as u64,
            parity: header.parity as u64,
            stale: 0,
            damaged: 0,
            written_at: format_rfc3339(written_ns),
            written_ns,
            judged: written_ns.div_euclid(1_000_000_000),
            unmerged: false,
            gone: Vec::new(),
        }
    }

    /// Returns the seconds for which a piece has been gone, if it was.
    pub(crate) fn gone_for(&self, piece: u32) -> Option<i64> {
        let behind = self.gone.partition_point(|gone| gone.0 <= piece);
        let gone = self.gone.get(behind.checked_sub(1)?)?;
        (piece < gone.1).then_some(gone.2)
    }

    /// Notes pieces as gone, behind those that were noted before.
    pub(crate) fn note_gone(&mut self, pieces: std::ops::Range<usize>, seconds: i64) {
        let (first, end) = (pieces.start as u32, pieces.end as u32);
        match self.gone.last_mut() {
            Some(last) if (last.1, last.2) == (first, seconds) => last.1 = end,
            _ => self.gone.push(GonePieces(first, end, seconds)),
        }
    }

    /// True if it is about this volume, and not about an earlier one of its number.
    pub(crate) fn is_of(&self, header: &VolumeHeader) -> bool {
        (self.volume, self.written_ns) == (header.id.number, header.id.written_ns)
    }
}

/// Second line of an index: the runs that it was written by.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct IndexRun {
    /// SHA-256 in the trailer of the manifest of which all content had parity after the last run; null if
    /// some had none.
    pub complete_for: Option<String>,
    /// Time of the last run, in seconds since 1970.
    pub run_at: i64,
    /// Time of the latest manifest, in nanoseconds since 1970.
    pub manifest_ns: i64,
}

/// An index.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParityIndex {
    /// Description of the directory, if there is one.
    pub description: Option<ParityDescription>,
    /// The runs.
    pub run: IndexRun,
    /// Lines of volumes, by their numbers.
    pub lines: HashMap<u64, IndexLine>,
}

/// Last line of an index.
#[derive(Deserialize, Serialize)]
struct IndexEnd {
    /// BLAKE3 of the lines before it.
    blake3: String,
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = Vec::new();
    push_hex(&mut hex, bytes);
    String::from_utf8(hex).unwrap_or_default()
}

/// Returns the digest of a trailer in the form of the index.
pub(crate) fn trailer(sha256: &[u8; 32]) -> String {
    hex(sha256)
}

/// Reader of lines, none of them too long.
struct IndexLines {
    lines: BufReader<io::Take<File>>,
    line: Vec<u8>,
}

impl IndexLines {
    fn open(dir: &ParityDir) -> Option<IndexLines> {
        let (file, _) = dir.open_regular(INDEX).ok()?;
        Some(IndexLines {
            lines: BufReader::new(File::from(file).take(MOST)),
            line: Vec::new(),
        })
    }

    /// Reads a line, with its end; `None` at the end of the file, and where there is none to be had.
    fn next(&mut self) -> Option<&[u8]> {
        self.line.clear();
        let mut limited = (&mut self.lines).take(MOST_LINE as u64);
        limited.read_until(b'\n', &mut self.line).ok()?;
        self.line.ends_with(b"\n").then_some(&self.line)
    }
}

/// Reads the index; an empty one if there is none, or it is damaged.
pub(crate) fn read(dir: &ParityDir) -> ParityIndex {
    let Some(mut lines) = IndexLines::open(dir) else {
        return ParityIndex::default();
    };
    let mut hasher = Hasher::new(Algorithm::Blake3);
    let mut index = ParityIndex::default();
    let mut number = 0;
    while let Some(line) = lines.next() {
        let is_read = match number {
            0 => {
                index.description = ParityDescription::parsed(line);
                index.description.is_some()
            }
            1 => serde_json::from_slice(line)
                .map(|run| index.run = run)
                .is_ok(),
            _ => match serde_json::from_slice::<IndexLine>(line) {
                Ok(line) => index.lines.insert(line.volume, line).is_none(),
                Err(_) => {
                    let end: Option<IndexEnd> = serde_json::from_slice(line).ok();
                    let found = hex(hasher.finalize().as_bytes());
                    let is_whole = end.is_some_and(|end| end.blake3 == found);
                    return if is_whole {
                        index
                    } else {
                        ParityIndex::default()
                    };
                }
            },
        };
        if !is_read {
            break;
        }
        hasher.update(line);
        number += 1;
    }
    ParityIndex::default()
}

/// Writes the index. What has its name and is none gets another.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(
    dir: &ParityDir,
    description: &ParityDescription,
    run: &IndexRun,
    lines: &[IndexLine],
) -> Result<(), Error> {
    if dir.has_index() && !dir.begins_like_index() {
        dir.set_aside(INDEX)?;
    }
    let path = dir.path().join(INDEX);
    let failed = |error: io::Error| Error::io(&path, "write", &error);
    let file = dir.create(INDEX)?;
    let mut hasher = Hasher::new(Algorithm::Blake3);
    let mut output = io::BufWriter::new(file.file());
    let mut put = |line: serde_json::Result<Vec<u8>>| -> io::Result<()> {
        let mut line = line?;
        line.push(b'\n');
        hasher.update(&line);
        output.write_all(&line)
    };
    put(serde_json::to_vec(description)).map_err(failed)?;
    put(serde_json::to_vec(run)).map_err(failed)?;
    lines
        .iter()
        .try_for_each(|line| put(serde_json::to_vec(line)))
        .map_err(failed)?;
    let end = IndexEnd {
        blake3: hex(hasher.finalize().as_bytes()),
    };
    let end = serde_json::to_vec(&end).map_err(|error| failed(error.into()))?;
    output
        .write_all(&end)
        .and_then(|()| output.write_all(b"\n"))
        .and_then(|()| output.flush())
        .map_err(failed)?;
    drop(output);
    dir.commit(INDEX, file)
}

/// True if a directory is parity of an earlier manifest than this or of only some of it, lacks a volume,
/// or its index is lost. False if it is no parity directory.
///
/// # Errors
/// If directory or manifest cannot be read.
pub fn is_stale(dir: &Path, manifest: &ManifestFile) -> Result<bool, Error> {
    let Some(dir) = ParityDir::open(dir, DirUse::Look)? else {
        return Ok(false);
    };
    let mut lines = manifest.lines()?;
    let failed = |error: io::Error| manifest.unreadable(&error);
    // Only the last line is asked for, which has the trailer.
    let mut last = Vec::new();
    loop {
        let chunk = lines.fill_buf().map_err(failed)?;
        let len = chunk.len();
        let Some(end) = chunk.len().checked_sub(1) else {
            break;
        };
        match chunk[..end].iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => last = chunk[newline + 1..].to_vec(),
            None => {
                if last.last() == Some(&b'\n') {
                    last.clear();
                }
                last.extend_from_slice(chunk);
            }
        }
        lines.consume(len);
    }
    let trailer: Option<TrailerLine> = serde_json::from_slice(&last).ok();
    let ParityIndex { run, lines, .. } = read(&dir);
    let has_all = lines.len() == dir.volumes().len()
        && dir
            .volumes()
            .iter()
            .all(|number| lines.contains_key(number));
    let complete_for = run.complete_for;
    Ok(!has_all || complete_for.is_none() || trailer.map(|trailer| trailer.sha256) != complete_for)
}

/// The part of a trailer that an index records.
#[derive(Deserialize)]
struct TrailerLine {
    sha256: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_and_another_part_are_named() {
        let whole = ProtectedTree {
            root: "/srv".into(),
            manifest: "m.jsonl".into(),
            machine: Some("0123456789abcdef".into()),
            part: serde_json::json!([null, null]),
        };
        let shown = |other: &ProtectedTree| {
            assert!(!whole.is(other));
            [whole.shown(other), other.shown(&whole)]
        };
        let mut other = whole.clone();
        other.machine = Some("fedcba9876543210".into());
        assert_eq!(
            shown(&other),
            [
                "'m.jsonl' of /srv on machine 01234567",
                "'m.jsonl' of /srv on machine fedcba98"
            ]
        );
        other.machine = None;
        assert!(whole.is(&other));
        other.part = serde_json::json!([null, {"index": 1, "of": 2}]);
        assert_eq!(
            shown(&other),
            [
                "'m.jsonl' of /srv, all of it",
                "'m.jsonl' of /srv, a part of it"
            ]
        );
    }
}
