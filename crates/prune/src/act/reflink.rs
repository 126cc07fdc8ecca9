//! reflink: the target shares the kept file's blocks. The kernel compares the
//! two under its own lock; the names, the metadata and the times stay.

use std::io;

use bc_edit::content::{Deduped, dedupe_range};
use bc_fs::call::FailedCall;
use bc_fs::dirfd::{self, Access};
use bc_fs::meta;
use bc_pool::Cancel;
use bc_read::extents::{Dirty, Extent, extents};
use rustix::io::Errno;

use crate::check::compare::compare;
use crate::check::meta::give_times;
use crate::check::open_file::OpenFile;
use crate::check::pace::ReadPace;
use crate::skip::Skip;

/// Bytes asked for at a time: the most that btrfs does in one call, and all file systems keep the
/// range locked meanwhile.
const RANGE: u64 = 16 << 20;

pub(crate) fn act(kept_file: &OpenFile, target: &OpenFile, cancel: &Cancel) -> Result<(), Skip> {
    // The owner may dedupe through a read-only descriptor: files that are
    // being executed, and snapshots that are read-only to writers.
    let file = match dirfd::open_file(&target.dir, &target.name, Access::Write) {
        Ok(file) => {
            let opened = meta::stat(&file)?;
            if opened.id != target.stat.id {
                return Err(Skip::Changed);
            }
            Some(file)
        }
        Err(_) => None,
    };
    let file = file.as_ref().unwrap_or(&target.file);
    let metadata = target.metadata()?;
    let size = target.stat.stamp.size;
    let mut at = 0;
    while at < size {
        if cancel.is_cancelled() {
            return Err(Skip::Cancelled);
        }
        let length = RANGE.min(size - at);
        let deduped = dedupe_range(&kept_file.file, file, at, length)?;
        match deduped {
            Deduped::Differs => return Err(Skip::ContentDiffers),
            // Nothing done and nothing wrong: the tail is not shareable.
            Deduped::Bytes(0) => {
                return Err(FailedCall {
                    op: "dedupe",
                    errno: Errno::INVAL,
                }
                .into());
            }
            Deduped::Bytes(bytes) => at += bytes,
        }
    }
    let now = meta::stat(file)?;
    // What another process has written to a part that was shared already keeps its time. Not ended by
    // a signal: the blocks are shared by now, and the time is given back with them.
    let never = Cancel::new();
    let unbounded = ReadPace::new(&never, None);
    let is_unwritten = || {
        compare(&kept_file.file, &target.file, size, unbounded)?;
        Ok::<_, Skip>(meta::stat(file)?.stamp == now.stamp)
    };
    if now.stamp.mtime_ns != target.stat.stamp.mtime_ns
        && now.stamp.size == size
        && is_unwritten().is_ok_and(|is| is)
    {
        give_times(&metadata, file).map_err(|errno| FailedCall {
            op: "utimens",
            errno,
        })?;
    }
    Ok(())
}

/// Proves that there are blocks to share, and that the two files do not share them already.
pub(crate) fn check(kept_file: &OpenFile, target: &OpenFile) -> Result<(), Skip> {
    let (one, other) = (listed(kept_file), listed(target));
    if other.as_ref().is_ok_and(Vec::is_empty) && target.stat.blocks == 0 {
        return Err(Skip::NotShareable("it has no blocks"));
    }
    match are_shared(one, other) {
        true => Err(Skip::AlreadyShared),
        false => Ok(()),
    }
}

/// Returns true if both files use the same blocks for everything, as far as their file systems report
/// that.
pub(crate) fn share_all(one: &OpenFile, other: &OpenFile) -> bool {
    one.stat.id.dev == other.stat.id.dev && are_shared(listed(one), listed(other))
}

fn listed(file: &OpenFile) -> io::Result<Vec<Extent>> {
    extents(&file.file, Dirty::Leave)
}

/// Whether both files use the same blocks for everything.
fn are_shared(one: io::Result<Vec<Extent>>, other: io::Result<Vec<Extent>>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            let whole = |list: &[Extent]| list.iter().all(|extent| extent.physical.is_some());
            let places = |list: &[Extent]| -> Vec<(u64, Option<u64>, u64)> {
                list.iter()
                    .map(|extent| (extent.logical, extent.physical, extent.length))
                    .collect()
            };
            !one.is_empty() && whole(&one) && places(&one) == places(&other)
        }
        _ => false,
    }
}
