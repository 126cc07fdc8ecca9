//! What each file of a group takes on disk for itself: its blocks, without
//! extents that it shares with other files where the file system can share.

use bc_fs::mount::{Answer, Mounts};
use rustix::io::Errno;

use super::groups::Found;
use super::pass::Context;

/// Subtracts shared extents from the blocks of the groups' members, but for
/// `known` ones (sorted), whose numbers came from the cache already so.
pub(crate) fn settle(context: &Context<'_>, found: &Found, known: &[u32]) {
    let mut mounts = Mounts::default();
    // Devices that have no answer: asking each file would only cost an open.
    let mut silent: Vec<u64> = Vec::new();
    for one in &found.members {
        if known.binary_search(one).is_ok() || context.cancel.is_cancelled() {
            continue;
        }
        let entry = context.candidates.entry(*one);
        let Some(meta) = context.listing.meta(entry) else {
            continue;
        };
        let dir = || context.listing.open_dir(context.listing.dir(entry)).ok();
        let dev = meta.id.dev;
        if silent.contains(&dev) || mounts.of(dev, dir).reflinks == Answer::No {
            continue;
        }
        let Ok((file, stat)) = bc_read::open_checked(context.listing, entry) else {
            continue;
        };
        match bc_read::extents::extents(&file) {
            Ok(extents) => {
                let shared: u64 = extents
                    .iter()
                    .filter(|extent| extent.shared)
                    .map(|extent| extent.length)
                    .sum();
                let own = stat.blocks.saturating_sub(shared / 512);
                context.table.set_blocks(context.table.row(*one), own);
            }
            Err(error) => {
                let errno = Errno::from_io_error(&error);
                if matches!(errno, Some(Errno::OPNOTSUPP | Errno::NOTTY)) {
                    silent.push(dev);
                }
            }
        }
    }
}
