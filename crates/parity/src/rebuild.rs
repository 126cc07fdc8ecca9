//! Lost contents, computed again from what is left of their volumes.
//!
//! Of a volume with bytes of a lost content each block is read where its contents are now, and judged
//! by its digest: a wrong guess, an edit and damage all are an erasure. If there are as many parity
//! blocks as erasures, the lost blocks are computed from the very bytes that were judged, and compared
//! with their digests. A content is put together from blocks of the tree, computed blocks and, where no
//! volume has it, what its damaged file says; the caller proves it as a whole by the manifest's digest
//! while it copies it, and refuses what is not it, after which other volumes are tried.
//!
//! Nothing of the tree is written. Computed blocks lie in files without a name, in the parity directory
//! where that can be. What goes wrong with one content, or one volume, is no matter to the others.

mod content;
mod scratch;
mod volume;

#[cfg(test)]
pub(crate) mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::BorrowedFd;
use std::path::Path;

use bc_digest::Digest;
use bc_integrity::{ManifestFile, Trust};
use bc_manifest::integrity::Kind;
use bc_pool::Cancel;
use bc_read::Rate;
use bc_walk::job::{Error, ErrorKind, path_of};

use crate::contents::{ContentTable, content_of};
use crate::file::{DirUse, FORGEABLE, ParityDir, ParityFile, check_algorithm, is_forgeable, spent};
use crate::format::PieceBytes;
use crate::index::{self, ProtectedTree};
use crate::protect::description;
use content::KnownPart;
use scratch::Scratch;
use volume::OpenVolume;

pub use content::RebuiltContent;

/// Pieces of volumes that are worked on together: their names are looked for in the manifest at once.
const PIECES_TOGETHER: usize = 1 << 15;

/// Bytes of a budget of memory for each of them: names of snapshots are long, and there are as many as are
/// looked for.
const PER_PIECE: u64 = 4096;

fn pieces_together(memory: Option<u64>) -> usize {
    memory.map_or(PIECES_TOGETHER, |memory| {
        PIECES_TOGETHER.min((memory / PER_PIECE) as usize)
    })
}

/// Volumes that are held open together.
const VOLUMES_TOGETHER: usize = 8;

/// Files by which a content is looked for at most.
const MOST_NAMES: usize = 8;

/// Times that a content is tried: a file may change after it was judged.
const MOST_ROUNDS: usize = 3;

/// A content that is to be computed again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LostContent {
    /// Its digest.
    pub digest: Digest,
    /// Its size.
    pub size: u64,
    /// Path of the file that lost it, below the root, whatever is there now.
    pub path: Vec<u8>,
}

/// Places where contents are now.
#[derive(Clone, Copy)]
pub struct ContentPlaces<'a> {
    /// Directory that the paths are below.
    pub top: BorrowedFd<'a>,
    /// Path of that directory.
    pub top_path: &'a Path,
    /// Returns the path that a recorded file has now, if it was renamed.
    pub renamed: &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync),
    /// True for a path whose file does not have its content.
    pub is_lost: &'a (dyn Fn(&[u8]) -> bool + Sync),
}

/// Means of computing.
#[derive(Clone)]
pub struct RebuildMeans<'a> {
    /// Workers.
    pub workers: usize,
    /// Bytes of memory that may be used, if there is a limit.
    pub memory: Option<u64>,
    /// True if nothing is computed or written: what could be computed is foreseen.
    pub dry_run: bool,
    /// Ends the work early.
    pub cancel: &'a Cancel,
    /// Limit of bytes a second, if there is one.
    pub rate: Option<Rate>,
}

impl RebuildMeans<'_> {
    /// Waits until bytes that were read are paid for; false if the work was cancelled.
    fn spent(&self, bytes: u64) -> bool {
        spent(bytes, self.rate.as_ref(), self.cancel)
    }
}

/// Outcome for a lost content.
#[derive(Debug)]
pub enum Rebuilt<'a> {
    /// All of it is there, unless its digest says otherwise.
    Whole(&'a RebuiltContent<'a>),
    /// All of it could be computed, with blocks of this volume: the outcome of a dry run.
    Foreseen(&'a Path),
    /// More is lost than there is parity for.
    Short {
        /// Number of blocks that are missing: parity, or data.
        blocks: u64,
        /// Bytes that no volume has.
        uncovered: u64,
        /// The bytes that are proven. Others are zero.
        partial: &'a RebuiltContent<'a>,
    },
    /// It could not be computed, for this reason.
    Failed(&'a Error),
    /// No volume has any of it.
    Unprotected,
}

/// Receiver of an outcome, with the number of the content. Returns false for a whole content that is
/// another than the wanted one.
pub type OnRebuilt<'a> = dyn FnMut(usize, Rebuilt<'_>) -> Result<bool, Error> + 'a;

/// A content of volumes that the manifest does not list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RemovedContent {
    /// Path that it had.
    pub path: Vec<u8>,
    /// Its digest.
    pub digest: Digest,
    /// Its size.
    pub size: u64,
    /// Time when its volume was written, in nanoseconds since 1970.
    pub written_ns: i64,
}

/// The last content of a path, as far as is known.
struct LastRemoved {
    /// Seconds for which it has been gone, and the number of its volume, of which the greater one is the
    /// newer.
    age: (i64, Reverse<u64>),
    content: RemovedContent,
}

/// Bytes of memory for a removed content in the lists of [`ParityRestore::removed`], its path aside.
const PER_REMOVED: u64 = (2 * size_of::<LastRemoved>() + 2 * size_of::<Vec<u8>>()) as u64;

/// A parity directory as a source of contents.
pub struct ParityRestore<'m> {
    dir: ParityDir,
    manifest: &'m ManifestFile,
    /// Files in the directory that are no sound volumes, each once.
    pub unreadable: Vec<Error>,
}

impl<'m> ParityRestore<'m> {
    /// Opens the parity directory of a manifest that was found sound; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read, the digests of the manifest are too short, or they can be forged and others
    /// may have written to the directory.
    pub fn open(
        dir: &Path,
        manifest: &'m ManifestFile,
    ) -> Result<Option<ParityRestore<'m>>, Error> {
        let Some(dir) = ParityDir::open(dir, DirUse::Read)? else {
            return Ok(None);
        };
        let algorithm = manifest.algorithm()?;
        check_algorithm(algorithm, &path_of(manifest.name()))?;
        if is_forgeable(algorithm) {
            dir.refuse_others(FORGEABLE)?;
        }
        Ok(Some(ParityRestore {
            dir,
            manifest,
            unreadable: Vec::new(),
        }))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// True if the directory has no parity.
    pub fn is_empty(&self) -> bool {
        self.dir.is_empty()
    }

    /// Computes contents again, and gives each to `each` once all of its volumes were looked at.
    ///
    /// # Errors
    /// Those of `each`; if the manifest cannot be read; if it was cancelled.
    pub fn rebuild(
        &mut self,
        lost: &[LostContent],
        places: ContentPlaces<'_>,
        means: &RebuildMeans<'_>,
        each: &mut OnRebuilt<'_>,
    ) -> Result<(), Error> {
        let mut open: Vec<usize> = (0..lost.len()).collect();
        let mut may_gain = lost.len() > 1;
        for round in 1.. {
            if self.dir.is_written()
                && let Err(error) = self.dir.list_again()
            {
                self.note(error);
            }
            let is_last = round >= MOST_ROUNDS;
            let is_written = self.dir.is_written() && !is_last;
            let mut rebuild = Rebuild {
                restore: self,
                lost,
                wanted: open
                    .iter()
                    .map(|number| (content_key(&lost[*number]), *number))
                    .collect(),
                places,
                means,
                is_last,
                is_written,
                may_gain: (may_gain || is_written) && !means.dry_run,
                computed: Scratch::default(),
                parts: HashMap::new(),
                has_healed: false,
                open: Vec::new(),
            };
            rebuild.run(each)?;
            may_gain = rebuild.has_healed;
            open = rebuild.open;
            if open.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the contents that the manifest does not list any more, with the paths that they had: in
    /// the order of the paths, the last of each. Something else may have a path by now.
    ///
    /// No manifest proves these contents: volumes count that were made for this directory, and this tree,
    /// and that no other user can have written.
    ///
    /// # Errors
    /// If the manifest cannot be read, lists take more memory than this, the directory is that of another
    /// tree, or others may have written to it.
    pub fn removed(&mut self, memory: Option<u64>) -> Result<Vec<RemovedContent>, Error> {
        (self.dir).refuse_others("no manifest proves what was removed")?;
        let memory = memory.unwrap_or(u64::MAX);
        let table = ContentTable::of(self.manifest, memory)?;
        let index = index::read(&self.dir);
        let description = description(&self.dir, &index);
        if let Some(description) = &description {
            let of = ProtectedTree::of(self.manifest, &table.header);
            description.check_tree(&of, self.dir.path())?;
        }
        let id = description.map(|description| description.id());
        let mut removed: BTreeMap<Vec<u8>, LastRemoved> = BTreeMap::new();
        let mut bytes = table.memory();
        for number in self.dir.volumes().to_vec() {
            let Some(file) = self.read(number) else {
                continue;
            };
            let is_ours = file.refuse_other_dir(id);
            if let Err(error) = is_ours.and_then(|()| self.dir.refuse_volume_of_others(&file)) {
                self.note(error);
                continue;
            }
            let id = file.header.id;
            let line = index.lines.get(&id.number);
            let line = line.filter(|line| line.is_of(&file.header));
            for (number, piece) in file.header.pieces.into_iter().enumerate() {
                let is_listed = table.find(&piece.digest, piece.size).is_some();
                if piece.path.is_empty() || is_listed {
                    continue;
                }
                // What no run has seen gone was there longer than all others.
                let gone_for = line.and_then(|line| line.gone_for(number as u32));
                let age = (gone_for.unwrap_or(-1), Reverse(id.number));
                match removed.get(&piece.path) {
                    Some(known) if known.age < age => continue,
                    Some(_) => {}
                    None => bytes += PER_REMOVED + 2 * piece.path.len() as u64,
                }
                if bytes > memory {
                    let text = format!(
                        "has removed files whose list takes more than the {memory} bytes of memory that \
                         the memory budget leaves"
                    );
                    return Err(Error::at(ErrorKind::Usage, self.dir.path(), text));
                }
                let content = RemovedContent {
                    path: Vec::new(),
                    digest: piece.digest,
                    size: piece.size,
                    written_ns: id.written_ns,
                };
                removed.insert(piece.path, LastRemoved { age, content });
            }
        }
        let with_path = |(path, last): (Vec<u8>, LastRemoved)| RemovedContent {
            path,
            ..last.content
        };
        Ok(removed.into_iter().map(with_path).collect())
    }

    /// Reads a volume; notes the reason for which it cannot be used.
    fn read(&mut self, number: u64) -> Option<ParityFile> {
        match self.checked(number) {
            Ok(file) => Some(file),
            // The run at work has removed it.
            Err(error) if error.kind() == ErrorKind::NotFound && self.dir.is_written() => None,
            Err(error) => {
                self.note(error);
                None
            }
        }
    }

    fn note(&mut self, error: Error) {
        let is_noted = |noted: &Error| noted.path() == error.path();
        if !self.unreadable.iter().any(is_noted) {
            self.unreadable.push(error);
        }
    }

    fn checked(&self, number: u64) -> Result<ParityFile, Error> {
        let file = self.dir.read_named(number)?;
        let algorithm = self.manifest.algorithm()?;
        if file.header.algorithm != algorithm {
            let text = "has digests of another algorithm than the manifest";
            return Err(Error::at(ErrorKind::Manifest, &file.path, text));
        }
        if is_forgeable(algorithm) {
            self.dir.refuse_volume_of_others(&file)?;
        }
        Ok(file)
    }
}

/// Digest and size of a content.
type ContentKey = (Digest, u64);

fn content_key(lost: &LostContent) -> ContentKey {
    (lost.digest, lost.size)
}

/// One look at all volumes.
struct Rebuild<'r, 'm, 'a> {
    restore: &'r mut ParityRestore<'m>,
    lost: &'a [LostContent],
    /// Numbers of the contents that are wanted.
    wanted: HashMap<ContentKey, usize>,
    places: ContentPlaces<'a>,
    means: &'a RebuildMeans<'a>,
    /// True if what is refused is not tried again.
    is_last: bool,
    /// True if another run is at work in the directory, so that a volume may be gone whose content another
    /// one has by now.
    is_written: bool,
    /// True if there may be more parity in the next round: contents that come back are what others are
    /// short of.
    may_gain: bool,
    /// Bytes of lost blocks that were computed.
    computed: Scratch,
    /// Known parts of each content that is not done.
    parts: HashMap<usize, Vec<KnownPart>>,
    /// True if a content came back.
    has_healed: bool,
    /// Contents that are tried again.
    open: Vec<usize>,
}

/// Volumes with wanted contents.
#[derive(Default)]
struct ConcernedVolumes {
    /// Numbers of the volumes, with their pieces.
    volumes: Vec<(u64, usize)>,
    /// Contents whose last volume it is.
    last: HashMap<u64, Vec<usize>>,
}

impl Rebuild<'_, '_, '_> {
    fn run(&mut self, each: &mut OnRebuilt<'_>) -> Result<(), Error> {
        let mut concerned = self.concerned()?;
        let mut rest = &concerned.volumes[..];
        while !rest.is_empty() {
            let mut pieces = 0;
            let most = pieces_together(self.means.memory);
            let fits = |(_, count): &&(u64, usize)| {
                pieces += count;
                pieces <= most
            };
            let count = rest.iter().take(VOLUMES_TOGETHER).take_while(fits).count();
            let (batch, behind) = rest.split_at(count.max(1));
            rest = behind;
            let read = batch.iter().map(|(number, _)| self.restore.read(*number));
            let mut files: Vec<Option<ParityFile>> = read.collect();
            let names = self.names(files.iter().flatten())?;
            for ((number, _), file) in batch.iter().zip(&mut files) {
                self.check()?;
                if let Some(file) = file.take() {
                    self.add(&file, &names)?;
                }
                for content in concerned.last.remove(number).unwrap_or_default() {
                    self.finish(content, each)?;
                }
                if self.parts.is_empty() {
                    self.computed = Scratch::default();
                }
            }
        }
        // No volume has these.
        let mut nowhere: Vec<usize> = concerned.last.into_values().flatten().collect();
        nowhere.sort_unstable();
        nowhere
            .into_iter()
            .try_for_each(|content| self.finish(content, each))
    }

    fn check(&self) -> Result<(), Error> {
        match self.means.cancel.is_cancelled() {
            true => Err(Error::cancelled()),
            false => Ok(()),
        }
    }

    /// Reads all headers. Contents that no volume has are reported.
    fn concerned(&mut self) -> Result<ConcernedVolumes, Error> {
        let mut last: HashMap<usize, u64> = HashMap::new();
        let mut concerned = ConcernedVolumes::default();
        for number in self.restore.dir.volumes().to_vec() {
            self.check()?;
            let Some(file) = self.restore.read(number) else {
                continue;
            };
            let mut has_any = false;
            for piece in &file.header.pieces {
                if let Some(content) = self.wanted.get(&(piece.digest, piece.size)) {
                    last.insert(*content, number);
                    has_any = true;
                }
            }
            let pieces = file.header.pieces.len();
            concerned
                .volumes
                .extend(has_any.then_some((number, pieces)));
        }
        let mut contents: Vec<usize> = self.wanted.values().copied().collect();
        contents.sort_unstable();
        for content in contents {
            // No volume has the number 0.
            let number = last.get(&content).copied().unwrap_or(0);
            concerned.last.entry(number).or_default().push(content);
        }
        Ok(concerned)
    }

    /// Returns the paths of the files that may have the contents of volumes.
    fn names<'f>(
        &self,
        files: impl Iterator<Item = &'f ParityFile> + Clone,
    ) -> Result<ContentNames, Error> {
        let mut names = ContentNames::default();
        let pieces = files.flat_map(|file| &file.header.pieces);
        for piece in pieces.clone() {
            if piece.bytes != PieceBytes::Zeros {
                names.of.entry(beginning(&piece.digest)).or_default();
            }
        }
        let manifest = self.restore.manifest;
        // It was found sound to its end.
        let mut reader = manifest.reader(Trust::Checked)?;
        while let Some(entry) = reader.read().map_err(|error| manifest.refused(&error))? {
            let content = content_of(&entry).filter(|_| entry.kind == Kind::File);
            if let Some((digest, _)) = content {
                names.add(&digest, &entry.path, false, self.places);
            }
        }
        for lost in self.wanted.values().map(|number| &self.lost[*number]) {
            names.add(&lost.digest, &lost.path, false, self.places);
        }
        for piece in pieces.filter(|piece| !piece.path.is_empty()) {
            names.add(&piece.digest, &piece.path, true, self.places);
        }
        Ok(names)
    }

    /// Adds what a volume has of the wanted contents.
    fn add(&mut self, file: &ParityFile, names: &ContentNames) -> Result<(), Error> {
        let needed: Vec<(usize, usize)> = file
            .header
            .pieces
            .iter()
            .enumerate()
            .filter_map(|(piece, stored)| {
                let number = self.wanted.get(&(stored.digest, stored.size))?;
                Some((piece, *number))
            })
            .collect();
        let dir = &self.restore.dir;
        let volume = OpenVolume::new(dir, file, names, &needed, self.places, self.means);
        let blocks = volume.blocks()?;
        let mut parts: BTreeMap<usize, KnownPart> = BTreeMap::new();
        for (piece, number) in needed {
            let part = parts.entry(number).or_insert_with(|| {
                KnownPart::new(volume.path(), volume.bases(piece), blocks.shortage())
            });
            volume.add_piece(piece, part, &blocks, &mut self.computed);
        }
        for (number, part) in parts {
            self.parts.entry(number).or_default().push(part);
        }
        Ok(())
    }

    /// Reports a content, all volumes of which were looked at.
    fn finish(&mut self, number: usize, each: &mut OnRebuilt<'_>) -> Result<(), Error> {
        let Some(parts) = self.parts.remove(&number) else {
            if self.is_written {
                self.open.push(number);
                return Ok(());
            }
            return each(number, Rebuilt::Unprotected).map(drop);
        };
        let size = self.lost[number].size;
        let content = |runs, is_partial| {
            RebuiltContent::new(size, runs, &parts, &self.computed, self.places, is_partial)
        };
        let orders = content::orders(&parts);
        let bases = content::bases(&parts);
        let mut failed = None;
        let natural = content::composed(&parts.iter().collect::<Vec<_>>());
        let has_gaps = content::missing(&natural, size) > 0;
        for runs in orders
            .iter()
            .flat_map(|order| content::filled(order, &bases, size))
        {
            if let Some(from) = content::foreseen(&runs, &parts) {
                // Bytes that nothing proves are right or wrong with the others, which are not computed.
                if has_gaps {
                    continue;
                }
                return each(number, Rebuilt::Foreseen(from)).map(drop);
            }
            let whole = content(runs, false);
            // A guess is proven before anything is written: many are wrong, and the disk may be full.
            if has_gaps {
                let digest = &self.lost[number].digest;
                if !whole.has(self.restore.manifest.algorithm()?, digest, || self.check())? {
                    failed = failed.or(whole.take_failed());
                    continue;
                }
            }
            if each(number, Rebuilt::Whole(&whole))? {
                self.has_healed = true;
                return Ok(());
            }
            failed = failed.or(whole.take_failed());
        }
        let runs = natural;
        let missing = content::missing(&runs, size);
        if missing == 0 {
            // A file has changed since it was judged, or parity is of something else.
            if !self.is_last && !self.means.dry_run {
                self.open.push(number);
                return Ok(());
            }
            let text = "a file changed while it was read, or the parity is not that of its files";
            let error =
                failed.unwrap_or_else(|| Error::at(ErrorKind::Manifest, &parts[0].volume, text));
            return each(number, Rebuilt::Failed(&error)).map(drop);
        }
        if self.may_gain {
            self.open.push(number);
            return Ok(());
        }
        if let Some(error) = parts.iter().find_map(|part| part.failed.as_ref()) {
            return each(number, Rebuilt::Failed(error)).map(drop);
        }
        let lost: u64 = parts.iter().map(|part| part.lost).sum();
        let partial = content(runs, true);
        // Any volume that has all of it would do; else each has to give its part.
        let alone = parts.iter().filter(|part| part.covered() >= size);
        let blocks = alone.map(|part| part.short).min();
        let blocks = blocks.unwrap_or_else(|| parts.iter().map(|part| part.short).sum());
        let short = Rebuilt::Short {
            blocks,
            uncovered: missing.saturating_sub(lost),
            partial: &partial,
        };
        each(number, short).map(drop)
    }
}

/// A file that may have a content.
struct CandidateName {
    path: Box<[u8]>,
    /// True if only a header says so.
    is_hint: bool,
}

/// Paths of files that may have contents, the most likely first, by the first bytes of the digests.
/// Those of another content among them are wrong guesses.
#[derive(Default)]
struct ContentNames {
    of: HashMap<u64, Vec<CandidateName>>,
}

impl ContentNames {
    fn add(&mut self, digest: &Digest, path: &[u8], is_hint: bool, places: ContentPlaces<'_>) {
        let Some(names) = self.of.get_mut(&beginning(digest)) else {
            return;
        };
        let renamed = (places.renamed)(path);
        for path in renamed.as_deref().into_iter().chain([path]) {
            let is_good = !is_hint && !(places.is_lost)(path);
            let is_full = names.len() >= MOST_NAMES;
            if is_full && !is_good || names.iter().any(|name| *name.path == *path) {
                continue;
            }
            let good = |name: &CandidateName| !name.is_hint && !(places.is_lost)(&name.path);
            let at = match is_good {
                true => names.iter().position(|name| !good(name)),
                false => None,
            };
            let at = at.unwrap_or(names.len());
            if at < MOST_NAMES {
                let name = CandidateName {
                    path: path.into(),
                    is_hint,
                };
                names.insert(at, name);
                names.truncate(MOST_NAMES);
            }
        }
    }

    fn get(&self, digest: &Digest) -> &[CandidateName] {
        self.of.get(&beginning(digest)).map_or(&[], |names| names)
    }

    /// Returns the bytes of memory that the names of some pieces take at most.
    fn memory(&self) -> u64 {
        let each = |names: &Vec<CandidateName>| {
            let paths: usize = names.iter().map(|name| name.path.len()).sum();
            (paths + names.capacity() * size_of::<CandidateName>() + 48) as u64
        };
        self.of.values().map(each).sum()
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
