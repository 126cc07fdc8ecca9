//! What each file of a group takes on disk for itself: its blocks, without
//! extents that it shares with other files where the file system can share.

use std::collections::HashMap;

use bc_walk::Listing;

use super::groups::Found;
use super::pass::Context;

/// File systems that share extents, by `statfs(2)` magic: btrfs, XFS,
/// bcachefs, OCFS2. Elsewhere asking would only cost an open per file.
const SHARING: [u64; 4] = [0x9123_683e, 0x5846_5342, 0xca45_1a4e, 0x7461_636f];

/// Subtracts shared extents from the blocks of the groups' members, but for
/// `known` ones (sorted), whose numbers came from the cache already so.
pub(crate) fn settle(context: &Context<'_>, found: &Found, known: &[u32]) {
    let mut shares: HashMap<u64, bool> = HashMap::new();
    for one in &found.members {
        if known.binary_search(one).is_ok() || context.cancel.is_cancelled() {
            continue;
        }
        let entry = context.candidates.entry(*one);
        let Some(meta) = context.listing.meta(entry) else {
            continue;
        };
        let asks = *shares
            .entry(meta.id.dev)
            .or_insert_with(|| can_share(context.listing, entry));
        if !asks {
            continue;
        }
        if let Ok((file, stat)) = bc_read::open_checked(context.listing, entry)
            && let Ok(extents) = bc_read::extents::extents(&file)
        {
            let shared: u64 = extents
                .iter()
                .filter(|extent| extent.shared)
                .map(|extent| extent.length)
                .sum();
            let own = stat.blocks.saturating_sub(shared / 512);
            context.table.set_blocks(context.table.row(*one), own);
        }
    }
}

#[allow(clippy::unnecessary_cast)] // The field's width differs between architectures.
fn can_share(listing: &Listing, entry: bc_walk::EntryId) -> bool {
    listing
        .open_dir(listing.dir(entry))
        .ok()
        .and_then(|dir| rustix::fs::fstatfs(dir).ok())
        .is_some_and(|found| SHARING.contains(&(found.f_type as u64 & 0xffff_ffff)))
}
