//! From keys to groups: sets of equal files, filtered by roots, in their order.

use bc_digest::Digest;
use bc_walk::{EntryId, Listing};

use super::candidates::{Candidates, Index};
use super::pass::{Key, Keys, runs};
use super::{File, Group, HardLinks, Options, Scan, Span};

/// Fills `found.groups`.
pub(super) fn collect(
    listing: &Listing,
    candidates: &Candidates,
    keys: &Keys,
    options: &Options,
    found: &mut Scan,
) {
    for class in candidates.classes() {
        let mut sets = runs(&keys.keys, class.clone().collect());
        if options.hard_links == HardLinks::Duplicates {
            let mut single: Vec<Vec<Index>> = class
                .filter(|i| keys.keys[*i] != Key::None && candidates.names(*i).len() > 1)
                .filter(|i| !sets.iter().any(|set| set.contains(i)))
                .map(|i| vec![i])
                .collect();
            sets.append(&mut single);
        }
        for set in sets {
            found
                .groups
                .extend(group(listing, candidates, keys, options, &set));
        }
    }
    let first = |group: &Group| group.files[0].names[0];
    found.groups.sort_by(|a, b| {
        b.wasted
            .cmp(&a.wasted)
            .then_with(|| first(a).cmp(&first(b)))
    });
}

fn group(
    listing: &Listing,
    candidates: &Candidates,
    keys: &Keys,
    options: &Options,
    set: &[Index],
) -> Option<Group> {
    // A set that was only seen by its ends (after a cancellation) proves nothing.
    let Key::Whole(key) = &keys.keys[set[0]] else {
        return None;
    };
    let size = super::candidates::meta(listing, candidates.entry(set[0]))
        .stamp
        .size;
    let mut files: Vec<File> = set
        .iter()
        .map(|i| File {
            names: candidates.names(*i),
            blocks: keys.blocks[*i],
        })
        .collect();
    let reference = |entry: EntryId| options.reference_roots.contains(&listing.root(entry));
    files.sort_by_key(|file| {
        (
            !file.names.iter().any(|name| reference(*name)),
            file.names[0],
        )
    });
    let names = || files.iter().flat_map(|file| &file.names);
    if names().all(|name| reference(*name)) {
        return None; // nothing in it may be changed
    }
    let root = listing.root(files[0].names[0]);
    if options.span == Span::AcrossRoots && names().all(|name| listing.root(*name) == root) {
        return None;
    }
    let blocks: u64 = files.iter().skip(1).map(|file| file.blocks).sum();
    let length = options.algorithm.digest_len();
    Some(Group {
        size,
        digest: Digest::new(&key[..length]),
        wasted: blocks * 512,
        files,
    })
}
