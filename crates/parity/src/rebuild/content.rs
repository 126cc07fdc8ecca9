//! Known ranges of a content, each with the place where its bytes are: put together from several volumes,
//! and read from there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_fs::call::FailedCall;
use bc_fs::dirfd::{self, Access};
use bc_fs::meta::{FileKind, Stamp, stat, stat_at};
use bc_fs::path::{join, split};
use bc_walk::job::{Error, path_of};
use rustix::io::Errno;

use super::ContentPlaces;
use super::scratch::{Scratch, ScratchPlace};

/// Bytes that are read at a time to take a digest of all.
const PIECE: usize = 256 << 10;

/// Orders of volumes that are tried where they contradict each other.
const MOST_ORDERS: usize = 8;

/// A file of the tree that bytes are taken from.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct SourceFile {
    /// Path below the top.
    pub(super) path: Box<[u8]>,
    /// State of the file when it was judged; `None` if there was none.
    pub(super) stamp: Option<Stamp>,
}

/// Place of bytes of a content.
#[derive(Clone, Debug)]
pub(super) enum ByteSource {
    /// A file that has them at the same offset. Behind its end they are zero.
    File(Arc<SourceFile>),
    /// A scratch file.
    Scratch(ScratchPlace),
    /// Nowhere: they are zero.
    Zeros,
    /// Nowhere yet: they could be computed.
    Foreseen,
}

/// Bytes of a content that follow each other, and where they are.
#[derive(Clone, Debug)]
pub(super) struct ByteRun {
    pub(super) bytes: Range<u64>,
    pub(super) source: ByteSource,
}

impl ByteRun {
    /// Returns a part of the run.
    fn part(&self, bytes: Range<u64>) -> ByteRun {
        let source = match &self.source {
            ByteSource::Scratch(place) => {
                ByteSource::Scratch(place.behind(bytes.start - self.bytes.start))
            }
            source => source.clone(),
        };
        ByteRun { bytes, source }
    }

    /// Makes the run longer, if `next` follows it; else returns that.
    fn join(&mut self, next: ByteRun) -> Option<ByteRun> {
        let len = self.bytes.end - self.bytes.start;
        let follows = self.bytes.end == next.bytes.start
            && match (&self.source, &next.source) {
                (ByteSource::File(one), ByteSource::File(other)) => one == other,
                (ByteSource::Scratch(one), ByteSource::Scratch(other)) => one.behind(len) == *other,
                (ByteSource::Zeros, ByteSource::Zeros) => true,
                (ByteSource::Foreseen, ByteSource::Foreseen) => true,
                _ => false,
            };
        if !follows {
            return Some(next);
        }
        self.bytes.end = next.bytes.end;
        None
    }
}

/// Part of a content that one volume has.
#[derive(Debug)]
pub(super) struct KnownPart {
    /// Path of the volume.
    pub(super) volume: PathBuf,
    /// Ranges that are known, in the order of the volume.
    runs: Vec<ByteRun>,
    /// Files that may have what no volume has.
    bases: Vec<Arc<SourceFile>>,
    /// Blocks for which there is no parity.
    shortage: u64,
    /// These, if bytes of the content are in a lost block.
    pub(super) short: u64,
    /// Bytes of the content in lost blocks.
    pub(super) lost: u64,
    /// Lost blocks that have bytes of no other content: each base is another content there.
    wrong: Vec<Range<u64>>,
    /// Reason for which lost blocks could not be computed or kept.
    pub(super) failed: Option<Error>,
}

impl KnownPart {
    pub(super) fn new(volume: &Path, bases: Vec<Arc<SourceFile>>, shortage: u64) -> KnownPart {
        KnownPart {
            volume: volume.to_owned(),
            runs: Vec::new(),
            bases,
            shortage,
            short: 0,
            lost: 0,
            wrong: Vec::new(),
            failed: None,
        }
    }

    /// Adds bytes that are known.
    pub(super) fn push(&mut self, bytes: Range<u64>, source: ByteSource) {
        let next = ByteRun { bytes, source };
        let rest = match self.runs.last_mut() {
            Some(last) => last.join(next),
            None => Some(next),
        };
        self.runs.extend(rest);
    }

    /// Returns the number of bytes of the content that the volume has, lost or not.
    pub(super) fn covered(&self) -> u64 {
        let known = self.runs.iter().map(|run| run.bytes.end - run.bytes.start);
        known.sum::<u64>() + self.lost
    }

    /// Notes bytes in a lost block, all of which may be of this content.
    pub(super) fn lose(&mut self, bytes: Range<u64>, is_whole_block: bool) {
        self.short = self.shortage;
        self.lost += bytes.end - bytes.start;
        self.wrong.extend(is_whole_block.then_some(bytes));
    }
}

/// Returns the orders in which parts are put together: one, unless volumes have the same bytes, and one
/// of them may be wrong.
pub(super) fn orders(parts: &[KnownPart]) -> Vec<Vec<&KnownPart>> {
    let natural: Vec<&KnownPart> = parts.iter().collect();
    let mut ranges: Vec<&Range<u64>> = parts
        .iter()
        .flat_map(|part| part.runs.iter().map(|run| &run.bytes))
        .collect();
    ranges.sort_unstable_by_key(|bytes| bytes.start);
    let overlap = ranges.windows(2).any(|pair| pair[1].start < pair[0].end);
    let mut orders = vec![natural.clone()];
    if overlap {
        // Without the first say of one, then with that of each.
        for number in 0..natural.len() {
            let mut order = natural.clone();
            let last = order.remove(number);
            order.push(last);
            orders.push(order);
        }
        for number in 1..natural.len() {
            let mut order = natural.clone();
            let first = order.remove(number);
            order.insert(0, first);
            orders.push(order);
        }
    }
    orders.truncate(MOST_ORDERS);
    orders
}

/// Puts parts together, in the order of the bytes: where several have the same, the first of them
/// counts.
pub(super) fn composed(order: &[&KnownPart]) -> Vec<ByteRun> {
    let mut known: BTreeMap<u64, ByteRun> = BTreeMap::new();
    for run in order.iter().flat_map(|part| &part.runs) {
        let mut at = run.bytes.start;
        while at < run.bytes.end {
            let before = known.range(..=at).next_back();
            if let Some((_, before)) = before.filter(|(_, before)| before.bytes.end > at) {
                at = before.bytes.end;
                continue;
            }
            let next = known.range(at..).next().map(|(start, _)| *start);
            let end = next.map_or(run.bytes.end, |next| next.min(run.bytes.end));
            known.insert(at, run.part(at..end));
            at = end;
        }
    }
    let mut runs: Vec<ByteRun> = Vec::with_capacity(known.len());
    for run in known.into_values() {
        let rest = match runs.last_mut() {
            Some(last) => last.join(run),
            None => Some(run),
        };
        runs.extend(rest);
    }
    runs
}

/// Returns the ranges that are in no run.
fn gaps(runs: &[ByteRun], size: u64) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut at = 0;
    for run in runs {
        gaps.extend((at < run.bytes.start).then_some(at..run.bytes.start));
        at = run.bytes.end;
    }
    gaps.extend((at < size).then_some(at..size));
    gaps
}

/// Returns the number of bytes that are in no run.
pub(super) fn missing(runs: &[ByteRun], size: u64) -> u64 {
    let gaps = gaps(runs, size);
    gaps.iter().map(|gap| gap.end - gap.start).sum()
}

/// Returns the files that may have what no volume has, each once.
pub(super) fn bases<'p>(parts: impl IntoIterator<Item = &'p KnownPart>) -> Vec<Arc<SourceFile>> {
    let mut bases: Vec<Arc<SourceFile>> = Vec::new();
    for base in parts.into_iter().flat_map(|part| &part.bases) {
        if !bases.contains(base) {
            bases.push(base.clone());
        }
    }
    bases
}

/// Puts parts together, and fills gaps with what one of these damaged files has there: bytes that no digest
/// of a block speaks for. There are as many results as files, and none if no file can be right.
pub(super) fn filled(
    order: &[&KnownPart],
    bases: &[Arc<SourceFile>],
    size: u64,
) -> impl Iterator<Item = Vec<ByteRun>> {
    let runs = composed(order);
    let gaps = gaps(&runs, size);
    let is_wrong = |gap: &Range<u64>| {
        let mut wrong = order.iter().flat_map(|part| &part.wrong);
        wrong.any(|wrong| wrong.start < gap.end && gap.start < wrong.end)
    };
    let whole = gaps.is_empty().then(|| runs.clone());
    let bases: &[Arc<SourceFile>] = match gaps.is_empty() || gaps.iter().any(is_wrong) {
        true => &[],
        false => bases,
    };
    let with_base = move |base: &Arc<SourceFile>| {
        let mut runs = runs.clone();
        runs.extend(gaps.iter().map(|bytes| ByteRun {
            bytes: bytes.clone(),
            source: ByteSource::File(base.clone()),
        }));
        runs.sort_unstable_by_key(|run| run.bytes.start);
        runs
    };
    whole.into_iter().chain(bases.iter().map(with_base))
}

/// Returns the volume whose blocks could be computed, if bytes are foreseen.
pub(super) fn foreseen<'p>(runs: &[ByteRun], parts: &'p [KnownPart]) -> Option<&'p Path> {
    let is_foreseen = |run: &ByteRun| matches!(run.source, ByteSource::Foreseen);
    runs.iter().any(is_foreseen).then_some(())?;
    let has_any = |part: &&KnownPart| part.runs.iter().any(is_foreseen);
    let part = parts.iter().rev().find(has_any)?;
    Some(&part.volume)
}

/// A content that is known again: its bytes are read from where they are.
pub struct RebuiltContent<'a> {
    size: u64,
    /// In order, and without gaps but in a partial content.
    runs: Vec<ByteRun>,
    volume: &'a Path,
    computed: &'a Scratch,
    places: ContentPlaces<'a>,
    /// True if bytes of files that changed meanwhile are left out.
    is_partial: bool,
    open: RefCell<Option<(Arc<SourceFile>, Option<OwnedFd>)>>,
    failed: RefCell<Option<Error>>,
}

impl fmt::Debug for RebuiltContent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RebuiltContent")
            .field("size", &self.size)
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}

impl<'a> RebuiltContent<'a> {
    /// True if none of its bytes are known.
    pub fn is_nothing(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn new(
        size: u64,
        runs: Vec<ByteRun>,
        parts: &'a [KnownPart],
        computed: &'a Scratch,
        places: ContentPlaces<'a>,
        is_partial: bool,
    ) -> RebuiltContent<'a> {
        let is_scratch = |run: &ByteRun| matches!(run.source, ByteSource::Scratch(_));
        let has_any = |part: &&KnownPart| part.runs.iter().any(is_scratch);
        let from = parts.iter().rev().find(has_any).or(parts.last());
        RebuiltContent {
            size,
            runs,
            volume: from.map_or(Path::new(""), |part| &part.volume),
            computed,
            places,
            is_partial,
            open: RefCell::new(None),
            failed: RefCell::new(None),
        }
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the path of the last volume that blocks of it were computed by, or of one that it is in.
    pub fn volume(&self) -> &Path {
        self.volume
    }

    /// Reads bytes. What cannot be read, or is in no run, is zero: the digest of the content decides.
    ///
    /// # Errors
    /// If bytes that were computed cannot be read again.
    pub fn read_at(&self, to: &mut [u8], offset: u64) -> Result<(), Error> {
        let end = offset + to.len() as u64;
        to.fill(0);
        let first = self.runs.partition_point(|run| run.bytes.end <= offset);
        let runs = self.runs[first..].iter();
        for run in runs.take_while(|run| run.bytes.start < end) {
            let (from, until) = (run.bytes.start.max(offset), run.bytes.end.min(end));
            let to = &mut to[(from - offset) as usize..(until - offset) as usize];
            match &run.source {
                ByteSource::Zeros | ByteSource::Foreseen => {}
                ByteSource::Scratch(place) => {
                    let place = place.behind(from - run.bytes.start);
                    self.computed.read(place, to)?;
                }
                ByteSource::File(source) => self.read_file(source, to, from),
            }
        }
        Ok(())
    }

    fn read_file(&self, source: &Arc<SourceFile>, to: &mut [u8], offset: u64) {
        let mut open = self.open.borrow_mut();
        if open.as_ref().is_none_or(|(open, _)| open != source) {
            let opened = open_source(self.places.top, &source.path, None);
            let file = match opened {
                Ok((_, stamp)) if self.is_partial && Some(stamp) != source.stamp => None,
                Ok((file, _)) => Some(file),
                Err(call) => {
                    self.note(source, call);
                    None
                }
            };
            *open = Some((source.clone(), file));
        }
        if let Some((_, Some(file))) = &*open
            && let Err(call) = dirfd::read_at(file, to, offset)
        {
            to.fill(0);
            self.note(source, call);
        }
    }

    fn note(&self, source: &SourceFile, call: FailedCall) {
        let path = join(
            self.places.top_path.as_os_str().as_encoded_bytes(),
            &source.path,
        );
        let error = Error::io(&path_of(&path), call.op, &call.into());
        self.failed.borrow_mut().get_or_insert(error);
    }

    /// True if the bytes have this digest.
    ///
    /// # Errors
    /// That of `go_on`, which is asked before each piece.
    pub(super) fn has(
        &self,
        algorithm: Algorithm,
        digest: &Digest,
        go_on: impl Fn() -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let mut hasher = Hasher::new(algorithm);
        let mut buffer = vec![0; PIECE];
        let mut at = 0;
        while at < self.size {
            go_on()?;
            let piece = &mut buffer[..PIECE.min(usize::try_from(self.size - at).unwrap_or(PIECE))];
            if self.read_at(piece, at).is_err() {
                return Ok(false);
            }
            hasher.update(piece);
            at += piece.len() as u64;
        }
        Ok(hasher.finalize() == *digest)
    }

    /// Returns the first error of the files that it was read from.
    pub(super) fn take_failed(&self) -> Option<Error> {
        self.failed.borrow_mut().take()
    }
}

/// Opens a regular file that is not empty; of other kinds none is opened. With `only_on`, the file has to
/// be on this device.
pub(super) fn open_source(
    top: BorrowedFd<'_>,
    path: &[u8],
    only_on: Option<u64>,
) -> bc_fs::call::Result<(OwnedFd, Stamp)> {
    let none = FailedCall {
        op: "open",
        errno: Errno::NOENT,
    };
    let (dir, name) = split(path);
    let dir = dirfd::open_below(top, dir)?;
    let name = dirfd::name(name)?;
    let found = stat_at(&dir, &name)?;
    let is_there = only_on.is_none_or(|device| found.id.dev == device);
    if found.kind() != FileKind::File || found.stamp.size == 0 || !is_there {
        return Err(none);
    }
    let file = dirfd::open_file(dir.as_fd(), &name, Access::Read)?;
    let stat = stat(&file)?;
    match stat.kind() == FileKind::File {
        true => Ok((file, stat.stamp)),
        false => Err(none),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, runs: &[(Range<u64>, &str)]) -> KnownPart {
        let mut part = KnownPart::new(Path::new(name), Vec::new(), 0);
        for (bytes, path) in runs {
            part.push(bytes.clone(), file(path));
        }
        part
    }

    fn file(path: &str) -> ByteSource {
        ByteSource::File(Arc::new(SourceFile {
            path: path.as_bytes().into(),
            stamp: None,
        }))
    }

    fn shown(runs: &[ByteRun]) -> String {
        let shown = runs.iter().map(|run| {
            let name = match &run.source {
                ByteSource::File(file) => String::from_utf8_lossy(&file.path).into_owned(),
                source => format!("{source:?}"),
            };
            format!("{name} {}-{}", run.bytes.start, run.bytes.end)
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn parts_are_put_together_and_the_first_counts() {
        let one = part("1", &[(0..10, "a"), (10..20, "a"), (40..50, "a")]);
        let two = part("2", &[(5..45, "b")]);
        assert_eq!(shown(&composed(&[&one])), "a 0-20, a 40-50");
        assert_eq!(shown(&composed(&[&one, &two])), "a 0-20, b 20-40, a 40-50");
        assert_eq!(shown(&composed(&[&two, &one])), "a 0-5, b 5-45, a 45-50");
        assert_eq!(missing(&composed(&[&one]), 60), 30);
        assert_eq!(orders(&[one, two]).len(), 4);
        let apart = [part("1", &[(0..5, "a")]), part("2", &[(5..9, "a")])];
        assert_eq!(orders(&apart).len(), 1);
    }

    #[test]
    fn gaps_are_filled_from_the_damaged_file_unless_it_is_wrong() {
        let mut one = part("1", &[(10..20, "a")]);
        assert!(ways(&[&one]).is_empty());
        let base = |path: &str| {
            Arc::new(SourceFile {
                path: path.as_bytes().into(),
                stamp: None,
            })
        };
        one.bases = vec![base("base"), base("other")];
        assert_eq!(
            ways(&[&one]),
            [
                "base 0-10, a 10-20, base 20-30",
                "other 0-10, a 10-20, other 20-30"
            ]
        );
        one.lose(20..30, true);
        assert!(ways(&[&one]).is_empty());
        // What another volume has there needs no file.
        let mut two = part("2", &[(20..30, "b")]);
        two.bases = vec![base("base")];
        assert_eq!(ways(&[&one, &two])[0], "base 0-10, a 10-20, b 20-30");
        assert_eq!(ways(&[&one, &two]).len(), 2);
        two.push(0..10, file("b"));
        assert_eq!(ways(&[&one, &two]), ["b 0-10, a 10-20, b 20-30"]);
    }

    /// Ways in which parts of 30 bytes are put together.
    fn ways(order: &[&KnownPart]) -> Vec<String> {
        let bases = bases(order.iter().copied());
        filled(order, &bases, 30).map(|runs| shown(&runs)).collect()
    }
}
