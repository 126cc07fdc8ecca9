//! Two open files compared byte for byte.

use std::os::fd::{AsFd, OwnedFd};

use bc_digest::{Algorithm, Digest, Hasher};
use bc_fs::compare::SideBySide;
use bc_pool::Cancel;

use crate::skip::Skip;

/// Compares two open files byte for byte over `size` bytes and proves that both end there. Returns
/// the XXH128 of the content, for the journal.
pub(crate) fn compare(
    one: &OwnedFd,
    other: &OwnedFd,
    size: u64,
    cancel: &Cancel,
) -> Result<Digest, Skip> {
    compare_while(one, other, size, cancel, || Ok(()))
}

/// Compares as [`compare`] does, as long as `proof` holds, which is called before each piece but
/// the first.
pub(crate) fn compare_while(
    one: &OwnedFd,
    other: &OwnedFd,
    size: u64,
    cancel: &Cancel,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<Digest, Skip> {
    let mut hasher = Hasher::new(Algorithm::Xxh128);
    let mut buffers = Default::default();
    let mut sides = SideBySide::new([one.as_fd(), other.as_fd()], size, &mut buffers);
    while !sides.is_over() {
        if cancel.is_cancelled() {
            return Err(Skip::Cancelled);
        }
        if sides.offset() > 0 {
            proof()?;
        }
        let [here, there] = sides.read().map_err(|unread| unread.call)?;
        if here != there {
            return Err(Skip::ContentDiffers);
        }
        hasher.update(here);
    }
    if sides.offset() == size {
        Ok(hasher.finalize())
    } else {
        Err(Skip::Changed)
    }
}
