//! Two open files compared byte for byte.

use std::os::fd::OwnedFd;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_fs::dirfd;
use bc_pool::Cancel;

use super::skip::Skip;

/// Bytes read at a time, per file.
const PIECE: u64 = 256 << 10;

/// Returns the number of bytes to read at a time of a file that should have `size` bytes: one byte
/// more than it has, so that a longer file is noticed. Never 0.
pub(crate) fn piece(size: u64) -> usize {
    size.saturating_add(1).min(PIECE) as usize
}

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
    let piece = piece(size);
    let (mut a, mut b) = (vec![0; piece], vec![0; piece]);
    let mut hasher = Hasher::new(Algorithm::Xxh128);
    let mut offset = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(Skip::Cancelled);
        }
        if offset > 0 {
            proof()?;
        }
        let left = size.saturating_sub(offset);
        // A file that is one byte longer shows in the same call.
        let enough = usize::try_from(left).map_or(piece, |left| left.clamp(1, piece));
        let read = dirfd::read_at_least(one, &mut a, offset, enough)?;
        let other = dirfd::read_at_least(other, &mut b, offset, enough)?;
        if read != other || a[..read] != b[..other] {
            return Err(Skip::ContentDiffers);
        }
        hasher.update(&a[..read]);
        offset += read as u64;
        if read < piece {
            break;
        }
    }
    if offset == size {
        Ok(hasher.finalize())
    } else {
        Err(Skip::Changed)
    }
}
