//! Metadata of many entries, one array per field: as compact as asked for, and moved into
//! path order one array at a time, so that this never needs twice the memory.

use std::collections::HashMap;

use crate::{BasicStat, FileKind, FileStat, Identity, Metadata, Stamp};

/// Mark in place of a class: the entry was not looked at.
const UNKNOWN: u32 = u32::MAX;

/// Attributes that many entries have in common, kept once: a number for them takes 4 bytes an entry
/// instead of 20. A source tree has a handful.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct AttributeClass {
    dev: u64,
    nlink: u32,
    /// Mode; `None` where no more than the basic metadata is kept.
    mode: Option<u32>,
    uid: u32,
    gid: u32,
    is_device: bool,
}

impl AttributeClass {
    pub(crate) fn of(level: Metadata, stat: &FileStat) -> AttributeClass {
        let is_full = level >= Metadata::Full;
        AttributeClass {
            dev: stat.id.dev,
            // The kernel's own field (`stx_nlink`) has 32 bits.
            nlink: u32::try_from(stat.nlink).unwrap_or(u32::MAX),
            mode: is_full.then_some(stat.mode),
            uid: if is_full { stat.uid } else { 0 },
            gid: if is_full { stat.gid } else { 0 },
            is_device: is_full && is_device(stat.mode),
        }
    }

    /// Returns the slot of a small cache. Spreads the fields that differ in practice: owners,
    /// permissions, names.
    pub(crate) fn bucket(&self, buckets: usize) -> usize {
        let mixed =
            self.dev ^ u64::from(self.nlink) << 40 ^ u64::from(self.mode.unwrap_or(0)) << 20;
        let mixed = mixed ^ u64::from(self.uid) ^ u64::from(self.gid) << 32;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % buckets
    }
}

/// All classes met so far, each with its number.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    all: Vec<AttributeClass>,
    numbers: HashMap<AttributeClass, u32>,
}

impl Classes {
    pub(crate) fn number(&mut self, class: AttributeClass) -> u32 {
        *self.numbers.entry(class).or_insert_with(|| {
            self.all.push(class);
            // Fewer than there are entries, which are counted.
            (self.all.len() - 1) as u32
        })
    }

    /// Returns all classes by number.
    pub(crate) fn into_all(self) -> Vec<AttributeClass> {
        self.all
    }
}

/// The classes that one worker met last: most entries have one of a few.
#[derive(Debug, Default)]
pub(crate) struct Recent([Option<(AttributeClass, u32)>; Recent::LEN]);

impl Recent {
    const LEN: usize = 16;

    /// Returns the number of a class, asked for by `find` if it is not known here.
    #[inline]
    pub(crate) fn number(&mut self, class: &AttributeClass, find: impl FnOnce() -> u32) -> u32 {
        let known = &mut self.0[class.bucket(Recent::LEN)];
        match known {
            Some((same, number)) if same == class => *number,
            _ => {
                let number = find();
                *known = Some((*class, number));
                number
            }
        }
    }
}

/// One array per field, 28 bytes an entry beside the inode number, which is in the entry itself;
/// empty where no metadata is asked for.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// Sizes; of device nodes, which have none, the device they stand for, if all is asked for.
    size: Vec<u64>,
    mtime_ns: Vec<i64>,
    ctime_ns: Vec<i64>,
    /// Numbers of classes.
    class: Vec<u32>,
}

/// A run of entries of one part, in the order in which the whole is put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryRun {
    pub(crate) part: u32,
    pub(crate) len: u32,
    pub(crate) start: u64,
}

impl Columns {
    /// Adds an entry; `number` is the one under which its class is known.
    #[inline]
    pub(crate) fn push(&mut self, stat: &FileStat, class: &AttributeClass, number: u32) {
        self.size.push(match class.is_device {
            true => stat.rdev,
            false => stat.stamp.size,
        });
        self.mtime_ns.push(stat.stamp.mtime_ns);
        self.ctime_ns.push(stat.stamp.ctime_ns);
        self.class.push(number);
    }

    /// Returns the bytes of memory that the arrays hold.
    pub(crate) fn memory(&self) -> u64 {
        let words = self.size.capacity() + self.mtime_ns.capacity() + self.ctime_ns.capacity();
        (8 * words + 4 * self.class.capacity()) as u64
    }

    /// Adds an entry of which nothing is known.
    #[inline]
    pub(crate) fn push_blank(&mut self) {
        self.size.push(0);
        self.mtime_ns.push(0);
        self.ctime_ns.push(0);
        self.class.push(UNKNOWN);
    }

    /// Puts the last rows, which came as a directory was read, into the order of its entries:
    /// `order` gives for each the row it has among them. One array after the other, so that a
    /// directory of millions takes 8 bytes more for each entry and no second copy of all.
    pub(crate) fn arrange(
        &mut self,
        order: impl ExactSizeIterator<Item = u32> + Clone,
        scratch: &mut Vec<u64>,
    ) {
        arrange(&mut self.size, order.clone(), scratch);
        arrange(&mut self.mtime_ns, order.clone(), scratch);
        arrange(&mut self.ctime_ns, order.clone(), scratch);
        arrange(&mut self.class, order, scratch);
    }

    /// True if no metadata is known of any entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.class.is_empty()
    }

    /// Adds all rows of another, whose classes are numbered on from `classes`.
    pub(crate) fn append(&mut self, other: Columns, classes: usize) {
        self.size.extend(other.size);
        self.mtime_ns.extend(other.mtime_ns);
        self.ctime_ns.extend(other.ctime_ns);
        self.class
            .extend(other.class.into_iter().map(|class| match class {
                UNKNOWN => UNKNOWN,
                class => class + classes as u32,
            }));
    }

    pub(crate) fn size(&self, index: usize, classes: &[AttributeClass]) -> Option<u64> {
        Some(self.size_in(index, self.class(index, classes)?))
    }

    #[inline]
    fn size_in(&self, index: usize, class: &AttributeClass) -> u64 {
        match class.is_device {
            true => 0,
            false => self.size[index],
        }
    }

    pub(crate) fn dev(&self, index: usize, classes: &[AttributeClass]) -> Option<u64> {
        Some(self.class(index, classes)?.dev)
    }

    #[inline]
    fn class<'c>(&self, index: usize, classes: &'c [AttributeClass]) -> Option<&'c AttributeClass> {
        // None for `UNKNOWN`.
        classes.get(*self.class.get(index)? as usize)
    }

    #[inline]
    pub(crate) fn meta(
        &self,
        index: usize,
        ino: u64,
        classes: &[AttributeClass],
    ) -> Option<BasicStat> {
        let class = self.class(index, classes)?;
        Some(BasicStat {
            id: Identity {
                dev: class.dev,
                ino,
            },
            stamp: Stamp {
                size: self.size_in(index, class),
                mtime_ns: self.mtime_ns[index],
                ctime_ns: self.ctime_ns[index],
            },
            nlink: u64::from(class.nlink),
        })
    }

    /// Returns an entry's metadata; `None` if less than everything was asked for.
    #[inline]
    pub(crate) fn stat(
        &self,
        index: usize,
        ino: u64,
        classes: &[AttributeClass],
    ) -> Option<FileStat> {
        let class = self.class(index, classes)?;
        let mode = class.mode?;
        let meta = self.meta(index, ino, classes)?;
        Some(FileStat {
            id: meta.id,
            stamp: meta.stamp,
            mode,
            uid: class.uid,
            gid: class.gid,
            nlink: meta.nlink,
            rdev: match class.is_device {
                true => self.size[index],
                false => 0,
            },
            blocks: 0,
        })
    }

    /// Puts the parts together in the order of `runs`.
    pub(crate) fn gather(mut parts: Vec<Columns>, runs: &[EntryRun]) -> Columns {
        Columns {
            size: gather(&mut parts, runs, |part| &mut part.size),
            mtime_ns: gather(&mut parts, runs, |part| &mut part.mtime_ns),
            ctime_ns: gather(&mut parts, runs, |part| &mut part.ctime_ns),
            class: gather(&mut parts, runs, |part| &mut part.class),
        }
    }
}

fn is_device(mode: u32) -> bool {
    matches!(FileKind::from_mode(mode), FileKind::Block | FileKind::Char)
}

/// A field of an entry, as the word in which it waits while its array is put in order.
trait Field: Copy {
    fn word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

impl Field for u64 {
    fn word(self) -> u64 {
        self
    }

    fn from_word(word: u64) -> u64 {
        word
    }
}

impl Field for i64 {
    fn word(self) -> u64 {
        self as u64
    }

    fn from_word(word: u64) -> i64 {
        word as i64
    }
}

impl Field for u32 {
    fn word(self) -> u64 {
        u64::from(self)
    }

    fn from_word(word: u64) -> u32 {
        word as u32
    }
}

fn arrange<T: Field>(
    column: &mut [T],
    order: impl ExactSizeIterator<Item = u32>,
    scratch: &mut Vec<u64>,
) {
    let start = column.len() - order.len();
    let rows = &mut column[start..];
    scratch.clear();
    scratch.extend(order.map(|row| rows[row as usize].word()));
    for (to, from) in rows.iter_mut().zip(scratch) {
        *to = T::from_word(*from);
    }
}

/// Takes one array out of all parts and frees it there when it is copied.
fn gather<T: Copy>(
    parts: &mut [Columns],
    runs: &[EntryRun],
    column: impl Fn(&mut Columns) -> &mut Vec<T>,
) -> Vec<T> {
    let sources: Vec<Vec<T>> = parts
        .iter_mut()
        .map(|part| std::mem::take(column(part)))
        .collect();
    if sources.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    // All of one part, as of one large directory, stays where it is.
    if let ([run], Some(whole)) = (runs, sources.iter().position(|source| !source.is_empty()))
        && (run.part as usize, run.start, run.len as usize) == (whole, 0, sources[whole].len())
    {
        return sources.into_iter().nth(whole).unwrap_or_default();
    }
    let len = runs.iter().map(|run| run.len as usize).sum();
    let mut gathered = Vec::with_capacity(len);
    for run in runs {
        let start = run.start as usize;
        gathered.extend_from_slice(&sources[run.part as usize][start..start + run.len as usize]);
    }
    gathered
}
