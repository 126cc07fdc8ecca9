//! The digest of every directory of a listing whose files were all hashed.
//!
//! It is defined as for groups of equal directories, so that a directory has the same digest in
//! both. One that cannot be compared has none, nor has any above it.

use bc_digest::{Algorithm, Digest};
use bc_hash::Hashes;
use bc_pool::Cancel;
use bc_walk::{DirId, EntryId, Error, ErrorKind, Listing, job};

use super::Obstacle;
use super::digest::DirHasher;
use super::equal::{Contents, targets};
use super::find::Check;
use super::tree::{DirItem, DirTotals, DirTree, Sums};
use crate::scan::require_metadata;

/// Digests of all directories of a listing.
#[derive(Debug)]
pub struct DirDigests {
    /// Directories with the entries that they are named by, each before those below it.
    dirs: Vec<(DirId, EntryId)>,
    /// By directory.
    totals: Vec<DirTotals>,
    digests: Vec<Option<Box<[Digest]>>>,
    /// Failures beside those of the walk and of hashing: links and directories that could not be
    /// read, or changed meanwhile, and directories that cannot be compared for a reason of their own:
    /// neither they nor those above them have digests.
    pub errors: Vec<Error>,
}

/// A directory with its digests.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HashedDir<'a> {
    /// The directory.
    pub dir: DirId,
    /// Its entry in the listing, by which its path is written.
    pub entry: EntryId,
    /// Files below it.
    pub files: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Entries below it that filters left out.
    pub filtered: u64,
    /// A digest by each algorithm; `None` if it cannot be compared.
    pub digests: Option<&'a [Digest]>,
}

impl DirDigests {
    /// Computes the digests of all directories by `algorithms`, with which `hashes` were made of the
    /// files.
    ///
    /// The listing has to be of all [`Entries`](bc_walk::Entries), with
    /// [`Metadata`](bc_walk::Metadata) and with entries that roots
    /// [repeat](bc_walk::Repeats::List).
    ///
    /// # Errors
    /// A listing without metadata.
    pub fn new(
        listing: &Listing,
        hashes: &Hashes,
        algorithms: &[Algorithm],
        cancel: &Cancel,
    ) -> Result<DirDigests, job::Error> {
        require_metadata(listing)?;
        let mut errors = Vec::new();
        let mut tree = DirTree::new(listing);
        let mut links = Contents::default();
        targets(&mut tree, &mut links, cancel, &mut errors);
        for (entry, _) in hashes.errors() {
            tree.obstruct(listing.dir(entry), Obstacle::Unreadable);
        }
        let mut check = Check::new(&tree, cancel);
        for dir in tree.order().to_vec() {
            if tree.above(dir).is_none() {
                check.below(&mut tree, dir, &mut errors);
            }
        }
        let sums = Sums::new(&tree);
        let mut found = DirDigests {
            dirs: Vec::new(),
            totals: vec![DirTotals::default(); listing.dirs()],
            digests: vec![None; listing.dirs()],
            errors,
        };
        let mut of_files: Vec<Digest> = Vec::new();
        for &dir in tree.order().iter().rev() {
            found.totals[dir.0 as usize] = *sums.of(dir);
            if !sums.of(dir).is_known {
                continue;
            }
            let mut hashers: Vec<DirHasher> =
                algorithms.iter().map(|of| DirHasher::new(*of)).collect();
            let mut is_whole = true;
            for &entry in tree.entries(dir) {
                let name = listing.name(entry).to_bytes();
                let item = tree.item(entry);
                of_files.clear();
                let (kind, digests) = match item {
                    DirItem::File(_) | DirItem::Alone => {
                        of_files.extend(hashes.digests(entry).into_iter().flatten());
                        (b'f', Some(&of_files[..]))
                    }
                    DirItem::Dir(inner) => (b'd', found.digests[inner.0 as usize].as_deref()),
                    DirItem::Link(target) => {
                        let target = &links.targets[target as usize];
                        of_files.extend(algorithms.iter().map(|of| bc_digest::hash(*of, target)));
                        (b'l', Some(&of_files[..]))
                    }
                    DirItem::Closed => {
                        of_files.extend(algorithms.iter().map(|of| bc_digest::hash(*of, b"")));
                        (b'd', Some(&of_files[..]))
                    }
                    DirItem::Unknown => (b'f', None),
                };
                match digests.filter(|digests| digests.len() == algorithms.len()) {
                    Some(digests) => hashers
                        .iter_mut()
                        .zip(digests)
                        .for_each(|(hasher, digest)| hasher.add(kind, *digest, name)),
                    // It was cancelled, or is not known.
                    None => is_whole = false,
                }
            }
            let digests = hashers.into_iter().map(DirHasher::end).collect();
            found.digests[dir.0 as usize] = is_whole.then_some(digests);
        }
        let named = |dir: DirId| Some((dir, tree.named_by(dir)?));
        found.dirs = tree.order().iter().filter_map(|dir| named(*dir)).collect();
        let obstacle = |dir: &DirId| Some((*dir, tree.obstacle(*dir)?));
        // Those that a followed link puts below themselves are in no order.
        let mut is_ordered = vec![false; listing.dirs()];
        tree.order()
            .iter()
            .for_each(|dir| is_ordered[dir.0 as usize] = true);
        let others = tree.dirs().filter(|dir| !is_ordered[dir.0 as usize]);
        let mut obstacles: Vec<(Vec<u8>, Obstacle)> = (tree.order().iter().filter_map(obstacle))
            .chain(others.map(|dir| (dir, Obstacle::Elsewhere)))
            // Failures are among the errors already.
            .filter(|(_, why)| !why.is_failure())
            .map(|(dir, why)| (listing.dir_path(dir), why))
            .collect();
        obstacles.sort_by(|(a, _), (b, _)| a.cmp(b));
        found.errors.extend(
            obstacles
                .into_iter()
                .map(|(path, why)| Error::of_kind(path, "hash", ErrorKind::Refused(why.text()))),
        );
        Ok(found)
    }

    /// Returns all directories, each before those below it.
    pub fn iter(&self) -> impl Iterator<Item = HashedDir<'_>> {
        self.dirs.iter().map(|&(dir, entry)| {
            let totals = &self.totals[dir.0 as usize];
            HashedDir {
                dir,
                entry,
                files: totals.files,
                bytes: totals.bytes,
                filtered: totals.filtered,
                digests: self.digests[dir.0 as usize].as_deref(),
            }
        })
    }
}
