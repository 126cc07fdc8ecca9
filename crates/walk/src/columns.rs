//! Metadata of many entries, one array per field: as compact as asked for, and moved into
//! path order one array at a time, so that this never needs twice the memory.

use crate::{FileStat, Identity, Kind, Meta, Metadata, Stamp};

/// In place of a device's number: the entry was not looked at.
const UNKNOWN: u32 = u32::MAX;

/// One array per field; those that are not asked for stay empty.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    // Basic: 32 bytes an entry, the inode number being in the entry itself.
    /// Of device nodes, which have none, the device they stand for, if all is asked for.
    size: Vec<u64>,
    mtime_ns: Vec<i64>,
    ctime_ns: Vec<i64>,
    nlink: Vec<u32>,
    dev: Vec<u32>,
    // Full: 12 bytes more.
    mode: Vec<u32>,
    uid: Vec<u32>,
    gid: Vec<u32>,
}

/// A run of entries of one part, in the order in which the whole is put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) part: u32,
    pub(crate) len: u32,
    pub(crate) start: u64,
}

impl Columns {
    /// Adds an entry; `dev` is the number under which its device is known.
    pub(crate) fn push(&mut self, level: Metadata, stat: &FileStat, dev: u32) {
        if level >= Metadata::Basic {
            self.size.push(match level {
                Metadata::Full if is_device(stat.mode) => stat.rdev,
                _ => stat.stamp.size,
            });
            self.mtime_ns.push(stat.stamp.mtime_ns);
            self.ctime_ns.push(stat.stamp.ctime_ns);
            // The kernel's own field (`stx_nlink`) has 32 bits.
            self.nlink
                .push(u32::try_from(stat.nlink).unwrap_or(u32::MAX));
            self.dev.push(dev);
        }
        if level >= Metadata::Full {
            self.mode.push(stat.mode);
            self.uid.push(stat.uid);
            self.gid.push(stat.gid);
        }
    }

    /// Bytes of memory that the arrays hold.
    pub(crate) fn memory(&self) -> u64 {
        let words = self.size.capacity() + self.mtime_ns.capacity() + self.ctime_ns.capacity();
        let halves = self.nlink.capacity()
            + self.dev.capacity()
            + self.mode.capacity()
            + self.uid.capacity()
            + self.gid.capacity();
        (8 * words + 4 * halves) as u64
    }

    /// Adds an entry of which nothing is known.
    pub(crate) fn push_blank(&mut self, level: Metadata) {
        let stat = FileStat {
            id: Identity { dev: 0, ino: 0 },
            stamp: Stamp {
                size: 0,
                mtime_ns: 0,
                ctime_ns: 0,
            },
            mode: 0,
            uid: 0,
            gid: 0,
            nlink: 0,
            rdev: 0,
            blocks: 0,
        };
        self.push(level, &stat, UNKNOWN);
    }

    pub(crate) fn size(&self, index: usize) -> Option<u64> {
        if *self.dev.get(index)? == UNKNOWN {
            return None;
        }
        Some(match self.mode.get(index) {
            Some(&mode) if is_device(mode) => 0,
            _ => self.size[index],
        })
    }

    pub(crate) fn dev(&self, index: usize, devs: &[u64]) -> Option<u64> {
        // None for `UNKNOWN`.
        devs.get(*self.dev.get(index)? as usize).copied()
    }

    pub(crate) fn meta(&self, index: usize, ino: u64, devs: &[u64]) -> Option<Meta> {
        let dev = self.dev(index, devs)?;
        Some(Meta {
            id: Identity { dev, ino },
            stamp: Stamp {
                size: self.size(index)?,
                mtime_ns: self.mtime_ns[index],
                ctime_ns: self.ctime_ns[index],
            },
            nlink: u64::from(self.nlink[index]),
        })
    }

    pub(crate) fn stat(&self, index: usize, ino: u64, devs: &[u64]) -> Option<FileStat> {
        let mode = *self.mode.get(index)?;
        let meta = self.meta(index, ino, devs)?;
        Some(FileStat {
            id: meta.id,
            stamp: meta.stamp,
            mode,
            uid: self.uid[index],
            gid: self.gid[index],
            nlink: meta.nlink,
            rdev: match is_device(mode) {
                true => self.size[index],
                false => 0,
            },
            blocks: 0,
        })
    }

    /// Puts the parts together in the order of `runs`.
    pub(crate) fn gather(mut parts: Vec<Columns>, runs: &[Run]) -> Columns {
        Columns {
            size: gather(&mut parts, runs, |part| &mut part.size),
            mtime_ns: gather(&mut parts, runs, |part| &mut part.mtime_ns),
            ctime_ns: gather(&mut parts, runs, |part| &mut part.ctime_ns),
            nlink: gather(&mut parts, runs, |part| &mut part.nlink),
            dev: gather(&mut parts, runs, |part| &mut part.dev),
            mode: gather(&mut parts, runs, |part| &mut part.mode),
            uid: gather(&mut parts, runs, |part| &mut part.uid),
            gid: gather(&mut parts, runs, |part| &mut part.gid),
        }
    }
}

fn is_device(mode: u32) -> bool {
    matches!(Kind::from_mode(mode), Kind::Block | Kind::Char)
}

/// Takes one array out of all parts and frees it there when it is copied.
fn gather<T: Copy>(
    parts: &mut [Columns],
    runs: &[Run],
    column: impl Fn(&mut Columns) -> &mut Vec<T>,
) -> Vec<T> {
    let sources: Vec<Vec<T>> = parts
        .iter_mut()
        .map(|part| std::mem::take(column(part)))
        .collect();
    if sources.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let len = runs.iter().map(|run| run.len as usize).sum();
    let mut gathered = Vec::with_capacity(len);
    for run in runs {
        let start = run.start as usize;
        gathered.extend_from_slice(&sources[run.part as usize][start..start + run.len as usize]);
    }
    gathered
}
