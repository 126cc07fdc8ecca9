//! `--verify-bytes`: the members of every group compared byte for byte, so
//! that not even a crafted collision of the digest makes two files equal.

use std::os::fd::{AsFd, OwnedFd};

use bc_fs::call::FailedCall;
use bc_fs::compare::{PIECE, SideBySide};
use bc_fs::meta;
use bc_pool::{Cursor, Effort, WorkerPanic};
use bc_read::Opener;
use bc_walk::{Error, ErrorKind, FileStat};

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

/// Files with one content, as far as was compared, and one of them open.
struct EqualFiles {
    /// The first of the members.
    open: OwnedFd,
    members: Vec<u32>,
}

/// Reason for which two files were not compared to their end.
enum Uncompared {
    /// The file at hand, or the run.
    This(Error),
    /// The file it was compared with.
    Other(FailedCall),
}

impl VerifyWorker<'_> {
    /// Sorts the members by content: each is compared with one of each kind.
    fn partition(&mut self, group: &[u32]) -> Vec<Vec<u32>> {
        let mut kinds: Vec<EqualFiles> = Vec::new();
        for one in group {
            if let Err(error) = self.place(*one, &mut kinds) {
                if error.kind() == ErrorKind::Cancelled {
                    break;
                }
                self.fail(*one, error);
            }
        }
        kinds.into_iter().map(|kind| kind.members).collect()
    }

    fn fail(&mut self, one: u32, error: Error) {
        let table = &self.context.table;
        table.fail(table.row(one));
        let entry = self.context.candidates.entry(one);
        self.done.failures.push((entry, error));
    }

    /// Opens a file that is as it was listed.
    fn open(&mut self, one: u32) -> Result<(OwnedFd, FileStat), Error> {
        let entry = self.context.candidates.entry(one);
        let (file, stat) = self.opener.open_checked(entry)?;
        let listed = self.context.listing.meta(entry).map(|meta| meta.stamp);
        match listed == Some(stat.stamp) {
            true => Ok((file, stat)),
            false => Err(self.changed(one)),
        }
    }

    fn changed(&self, one: u32) -> Error {
        let entry = self.context.candidates.entry(one);
        Error::of_kind(self.context.listing.path(entry), "read", ErrorKind::Changed)
    }

    fn place(&mut self, one: u32, kinds: &mut Vec<EqualFiles>) -> Result<(), Error> {
        let path = |context: &Context<'_>| context.listing.path(context.candidates.entry(one));
        let (file, stat) = self.open(one)?;
        let mut at = 0;
        let mut found = None;
        while at < kinds.len() {
            match self.equal(&file, &kinds[at].open, one, stat.stamp.size) {
                Ok(true) => {
                    found = Some(at);
                    break;
                }
                Ok(false) => at += 1,
                Err(Uncompared::This(error)) => return Err(error),
                // Another of its kind stands for it now, if there is one.
                Err(Uncompared::Other(call)) => self.leave(kinds, at, call),
            }
        }
        let now =
            meta::stat(&file).map_err(|why| Error::new(path(self.context), why.op, why.errno))?;
        if now.stamp != stat.stamp {
            return Err(self.changed(one));
        }
        match found {
            Some(at) => kinds[at].members.push(one),
            None => kinds.push(EqualFiles {
                open: file,
                members: vec![one],
            }),
        }
        Ok(())
    }

    /// Takes the open file, which cannot be read, out of its kind, and the kind out of all if no
    /// other of its members can be opened.
    fn leave(&mut self, kinds: &mut Vec<EqualFiles>, at: usize, call: FailedCall) {
        let unread = kinds[at].members.remove(0);
        let path = self
            .context
            .listing
            .path(self.context.candidates.entry(unread));
        self.fail(unread, Error::new(path, call.op, call.errno));
        while let Some(next) = kinds[at].members.first().copied() {
            match self.open(next) {
                Ok((file, _)) => {
                    kinds[at].open = file;
                    return;
                }
                Err(error) => {
                    kinds[at].members.remove(0);
                    self.fail(next, error);
                }
            }
        }
        kinds.remove(at);
    }

    fn equal(
        &mut self,
        file: &OwnedFd,
        other: &OwnedFd,
        one: u32,
        size: u64,
    ) -> Result<bool, Uncompared> {
        let path = || {
            let entry = self.context.candidates.entry(one);
            self.context.listing.path(entry)
        };
        let mut sides = SideBySide::new([file.as_fd(), other.as_fd()], size, &mut self.buffers);
        while !sides.is_over() {
            if self.context.cancel.is_cancelled() {
                let cancelled = Error::of_kind(path(), "read", ErrorKind::Cancelled);
                return Err(Uncompared::This(cancelled));
            }
            let [here, there] = sides.read().map_err(|unread| match unread.file {
                0 => Uncompared::This(Error::new(path(), unread.call.op, unread.call.errno)),
                _ => Uncompared::Other(unread.call),
            })?;
            let bytes = (here.len() + there.len()) as u64;
            self.done.read.bytes += bytes;
            let context = self.context;
            context.options.read.pay(bytes, context.cancel);
            if here != there {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
