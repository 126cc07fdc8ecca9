//! `--verify-bytes`: the members of every group compared byte for byte, so
//! that not even a crafted collision of the digest makes two files equal.

use std::os::fd::{AsFd, OwnedFd};

use bc_fs::compare::{PIECE, SideBySide, UnreadSide};
use bc_fs::meta;
use bc_pool::{Cursor, Effort, WorkerPanic};
use bc_read::Opener;
use bc_walk::{Error, ErrorKind};

use super::Context;
use super::groups::{CandidateGroups, worth};
use super::pass::PassResult;

/// Compares the members of each group and splits it by their bytes. Files that cannot be read leave
/// it.
pub(crate) fn compare(
    context: &Context<'_>,
    found: &mut CandidateGroups,
) -> Result<PassResult, WorkerPanic> {
    let groups: Vec<&[u32]> = found.lists().collect();
    let most = context.options.workers.clamp(1, groups.len().max(1));
    let members = || groups.iter().flat_map(|group| group.iter());
    let bytes = members().map(|one| context.size(*one)).sum();
    let effort = Effort::of(members().count() as u64, bytes);
    let workers = context.options.start.workers(most, effort);
    let cursor = Cursor::with_batch(groups.len(), workers, 1, 16);
    // One directory after the other.
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|index| groups[*index].first());
    let results = bc_pool::run(workers, |_| {
        let mut worker = VerifyWorker {
            context,
            opener: Opener::new(context.listing, context.cancel),
            done: PassResult::default(),
            buffers: [vec![0; PIECE], vec![0; PIECE]],
        };
        let mut mine = Vec::new();
        while let Some(range) = cursor.next() {
            for &index in &order[range] {
                if context.cancel.is_cancelled() {
                    return (mine, worker.done);
                }
                mine.push((index, worker.partition(groups[index])));
            }
        }
        (mine, worker.done)
    })?;
    let mut done = PassResult::default();
    let mut parts = Vec::new();
    for (mine, counts) in results {
        parts.extend(mine);
        done.merge(counts);
    }
    parts.sort_unstable_by_key(|(index, _)| *index);
    let mut verified = CandidateGroups::default();
    for group in parts.iter().flat_map(|(_, groups)| groups) {
        if worth(context, group) {
            verified.push(group);
        }
    }
    *found = verified;
    Ok(done)
}

struct VerifyWorker<'a> {
    context: &'a Context<'a>,
    opener: Opener<'a>,
    done: PassResult,
    buffers: [Vec<u8>; 2],
}

impl VerifyWorker<'_> {
    /// Sorts the members by content: each is compared with one of each kind.
    fn partition(&mut self, group: &[u32]) -> Vec<Vec<u32>> {
        let mut kinds: Vec<(OwnedFd, Vec<u32>)> = Vec::new();
        for one in group {
            if let Err(error) = self.place(*one, &mut kinds) {
                if error.kind() == ErrorKind::Cancelled {
                    break;
                }
                let table = &self.context.table;
                table.fail(table.row(*one));
                let entry = self.context.candidates.entry(*one);
                self.done.failures.push((entry, error));
            }
        }
        kinds.into_iter().map(|(_, members)| members).collect()
    }

    fn place(&mut self, one: u32, kinds: &mut Vec<(OwnedFd, Vec<u32>)>) -> Result<(), Error> {
        let context = self.context;
        let entry = context.candidates.entry(one);
        let (file, stat) = self.opener.open_checked(entry)?;
        let changed = || Error::of_kind(context.listing.path(entry), "read", ErrorKind::Changed);
        let listed = context.listing.meta(entry).map(|meta| meta.stamp);
        if listed != Some(stat.stamp) {
            return Err(changed());
        }
        let mut found = None;
        for (index, (other, _)) in kinds.iter().enumerate() {
            if self.equal(&file, other, entry, stat.stamp.size)? {
                found = Some(index);
                break;
            }
        }
        let now = meta::stat(&file)
            .map_err(|why| Error::new(context.listing.path(entry), why.op, why.errno))?;
        if now.stamp != stat.stamp {
            return Err(changed());
        }
        match found {
            Some(index) => kinds[index].1.push(one),
            None => kinds.push((file, vec![one])),
        }
        Ok(())
    }

    fn equal(
        &mut self,
        file: &OwnedFd,
        other: &OwnedFd,
        entry: bc_walk::EntryId,
        size: u64,
    ) -> Result<bool, Error> {
        let listing = self.context.listing;
        let mut sides = SideBySide::new([file.as_fd(), other.as_fd()], size, &mut self.buffers);
        while !sides.is_over() {
            if self.context.cancel.is_cancelled() {
                return Err(Error::of_kind(
                    listing.path(entry),
                    "read",
                    ErrorKind::Cancelled,
                ));
            }
            let [here, there] = sides.read().map_err(|UnreadSide { call, .. }| {
                Error::new(listing.path(entry), call.op, call.errno)
            })?;
            self.done.read.bytes += (here.len() + there.len()) as u64;
            if here != there {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
