//! Kinds of files that are named one by one, as their directories list them: where several names
//! are in one directory, to read it costs less than a look at each of them.

use std::collections::HashMap;

use bc_fs::dirfd::open_through;
use bc_fs::mount::{Answer, basic_traits};
use bc_pool::{Cancel, Cursor, Growth, WorkerBatches, WorkerPanic};
use rustix::fs::{CWD, RawDir};

use crate::dir::BUFFER;
use crate::open::READ_DIR;
use crate::tuning::Tuning;
use crate::{FileKind, Workers};

/// Names in one directory from which on it is read.
const MANY: usize = 8;

/// Entries that are read before there have to be wanted ones among them: from then on one in two. An
/// entry costs a third of a look at a name (tmpfs: 0.3 and 0.9 µs).
const UNWANTED: usize = 64;

/// Bytes of the buffer for each name: some directories have little else, and of others no more is
/// read in vain than that.
const BYTES_A_NAME: usize = 32;

/// Bytes of the smallest buffer: room for some long names.
const LEAST: usize = 2 << 10;

/// Names for which one more thread is started at once.
const WORTH_A_THREAD: usize = 2000;

/// A path whose kind is not known: no file has this inode number.
pub(crate) const UNSEEN: u64 = u64::MAX;

/// Names in one directory.
struct NamedDir<'p> {
    path: &'p [u8],
    /// Numbers of the paths.
    names: Vec<u32>,
}

/// Returns the inode number, as its directory lists it, of each path that is seen to be a regular
/// file, and [`UNSEEN`] for all others: those have to be looked at, which also brings the reason why
/// one is missing.
pub(crate) fn regular_files(
    paths: &[&[u8]],
    workers: &dyn Fn() -> Workers,
    cancel: &Cancel,
    tuning: &Tuning,
) -> Result<Vec<u64>, WorkerPanic> {
    let mut inodes = vec![UNSEEN; paths.len()];
    let dirs = crowded(paths);
    let names: usize = dirs.iter().map(|dir| dir.names.len()).sum();
    let workers = match dirs.len() {
        0 => return Ok(inodes),
        1 => Workers::from(1),
        most => workers().within(names / WORTH_A_THREAD + 1, most),
    };
    let cursor = Cursor::new(dirs.len(), workers.usual());
    let left = || cursor.remaining();
    let growth = Growth::new(workers).left(&left, 1);
    let found = growth.metering(&tuning.metering).run(|mut worker| {
        let (mut found, mut buffer) = (Vec::new(), Vec::with_capacity(BUFFER));
        let mut batches = WorkerBatches::new(&mut worker);
        while let Some(batch) = batches.next(&cursor) {
            for dir in &dirs[batch] {
                if cancel.is_cancelled() {
                    return found;
                }
                dir.read(paths, &mut buffer, &mut found);
            }
        }
        found
    })?;
    for (number, ino) in found.into_iter().flatten() {
        inodes[number as usize] = ino;
    }
    Ok(inodes)
}

/// Returns the directories that many of the paths are in, in the order of these.
fn crowded<'p>(paths: &[&'p [u8]]) -> Vec<NamedDir<'p>> {
    if paths.len() < MANY {
        return Vec::new();
    }
    let (mut dirs, mut known) = (Vec::<NamedDir<'p>>::new(), HashMap::new());
    let mut last: Option<usize> = None;
    for (number, path) in paths.iter().enumerate() {
        let (path, name) = path.split_at(split(path));
        // It ends in a slash, and is a directory's.
        if name.is_empty() {
            continue;
        }
        let at = match last {
            Some(at) if dirs[at].path == path => at,
            _ => *known.entry(path).or_insert_with(|| {
                let names = Vec::new();
                dirs.push(NamedDir { path, names });
                dirs.len() - 1
            }),
        };
        dirs[at].names.push(number as u32);
        last = Some(at);
    }
    dirs.retain(|dir| dir.names.len() >= MANY);
    dirs
}

impl NamedDir<'_> {
    /// Adds the number and the inode of each name that is a regular file's. A directory that cannot
    /// be read, lists no kinds or has too many other entries brings none, or not all.
    fn read(&self, paths: &[&[u8]], buffer: &mut Vec<u8>, found: &mut Vec<(u32, u64)>) {
        // Its own entry is found only in a directory that may be searched: in others no name can be
        // looked at, which is an error of each.
        let path = [self.path, b"."].concat();
        let Ok(dir) = open_through(CWD, &path, READ_DIR) else {
            return;
        };
        let lists_kinds = basic_traits(&dir)
            .is_ok_and(|traits| traits.plain == Answer::Yes || traits.lists_kinds());
        if !lists_kinds {
            return;
        }
        let name = |number: &u32| &paths[*number as usize][self.path.len()..];
        let wanted: HashMap<&[u8], u32> = self.names.iter().map(|at| (name(at), *at)).collect();
        let len = (self.names.len().saturating_mul(BYTES_A_NAME)).clamp(LEAST, BUFFER);
        let mut entries = RawDir::new(&dir, &mut buffer.spare_capacity_mut()[..len]);
        let (mut unwanted, mut most) = (0, UNWANTED);
        while let Some(Ok(entry)) = entries.next() {
            if FileKind::from_type(entry.file_type()) == Some(FileKind::File)
                && let Some(number) = wanted.get(entry.file_name().to_bytes())
            {
                found.push((*number, entry.ino()));
                most += 1;
                continue;
            }
            unwanted += 1;
            if unwanted > most {
                return;
            }
        }
    }
}

/// Returns the offset of the last name; the path's end if it ends in a slash.
pub(crate) fn split(path: &[u8]) -> usize {
    path.iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1)
}
