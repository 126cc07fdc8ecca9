//! Files that may be written to without a trace: a write through a mapping that was made before
//! changes neither time nor size until the page has been written to the disk once. A process that
//! can do that has the file open for writing, and the system reports it by refusing a [lease].

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bc_fs::lease::{self, Refused};
use bc_pool::{Cancel, WorkerPanic};
use bc_read::Opener;
use bc_walk::{EntryId, FileKind, Listing, Stamp};

use crate::aliases::MEMORY;

/// Pages that were written to before are on the disk by then, and a further write shows: Linux
/// writes them after 30 seconds, by `vm.dirty_expire_centisecs`, and setups that save power after
/// some minutes.
const ON_DISK: Duration = Duration::from_secs(600);

/// Files that a worker takes at once.
const PIECE: usize = 64;

/// Those of some files that another process can change unseen, in order. It is to be asked before
/// anything is read: a mapping that is made later shows its first write.
pub(crate) fn unseen_writers(
    listing: &Listing,
    files: impl Iterator<Item = EntryId>,
    workers: usize,
    cancel: &Cancel,
) -> Result<Vec<EntryId>, WorkerPanic> {
    let files = suspects(listing, files);
    let begin = || Opener::new(listing, cancel);
    let find = |opener: &mut Opener<'_>, piece: Range<usize>| -> Vec<EntryId> {
        if cancel.is_cancelled() {
            return Vec::new();
        }
        let files = files[piece].iter().copied();
        files.filter(|entry| has_writer(opener, *entry)).collect()
    };
    let found = bc_pool::ordered(workers, files.len(), PIECE, begin, find)?;
    let mut found: Vec<EntryId> = found.into_iter().flatten().collect();
    found.sort_unstable();
    Ok(found)
}

/// Files that were changed a short time ago, and all that are only in memory: nothing is ever
/// written to a disk there.
fn suspects(listing: &Listing, files: impl Iterator<Item = EntryId>) -> Vec<EntryId> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let then = now.unwrap_or_default().saturating_sub(ON_DISK).as_nanos() as i64;
    let mut in_memory: HashMap<u64, bool> = HashMap::new();
    let mut is_suspect = |entry: &EntryId| {
        let Some(meta) = listing.meta(*entry) else {
            return false;
        };
        let Stamp { size, ctime_ns, .. } = meta.stamp;
        if listing.kind(*entry) != FileKind::File || size == 0 {
            return false;
        }
        let is_in_memory = || {
            let dir = listing.open_dir(listing.dir(*entry)).ok();
            let system = dir.and_then(|dir| rustix::fs::fstatfs(dir.as_fd()).ok());
            system.is_some_and(|system| MEMORY.contains(&(system.f_type as u32)))
        };
        ctime_ns >= then || *in_memory.entry(meta.id.dev).or_insert_with(is_in_memory)
    };
    files.filter(|entry| is_suspect(entry)).collect()
}

/// Whether the system says so; of files where it tells nothing, because they are somebody else's or
/// on a file system without leases, it does not.
fn has_writer(opener: &mut Opener<'_>, entry: EntryId) -> bool {
    // Who cannot be opened is not read either.
    let Ok((file, stat)) = opener.open_checked(entry) else {
        return false;
    };
    match lease::take_when_closed(&file, stat.stamp.ctime_ns) {
        Ok(()) => {
            lease::give_up(&file);
            false
        }
        Err(refused) => refused == Refused::Writer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_testkit::TestTree;
    use bc_walk::{Metadata, WalkOptions, walk};
    use std::fs::OpenOptions;

    fn listing(t: &TestTree) -> Listing {
        let options = WalkOptions::default().metadata(Metadata::Basic);
        let root = t.path().as_os_str().to_owned();
        walk(&[root], &options, 1, &Cancel::new()).unwrap()
    }

    #[test]
    fn who_has_it_open_for_writing_is_noticed() {
        let t = TestTree::new();
        t.write("a", "1").write("b", "2").write("empty", "");
        let probe = std::fs::File::open(t.join("b")).unwrap();
        match lease::take(&probe) {
            Ok(()) => drop(probe),
            Err(why) => return bc_testkit::left_out(&format!("no leases here: {why:?}")),
        }
        let names = |found: Vec<EntryId>, listing: &Listing| -> Vec<Vec<u8>> {
            let name = |entry| listing.name(entry).to_bytes().to_vec();
            found.into_iter().map(name).collect()
        };
        let listing = listing(&t);
        let cancel = Cancel::new();
        assert!(
            unseen_writers(&listing, listing.ids(), 2, &cancel)
                .unwrap()
                .is_empty()
        );
        let open = |name| OpenOptions::new().append(true).open(t.join(name)).unwrap();
        let written = [open("a"), open("empty")];
        let found = unseen_writers(&listing, listing.ids(), 2, &cancel).unwrap();
        assert_eq!(names(found, &listing), [b"a"]);
        drop(written);
        assert!(
            unseen_writers(&listing, listing.ids(), 1, &cancel)
                .unwrap()
                .is_empty()
        );
    }
}
