//! Large files whose digest cannot be taken in parts: the digest of all bytes up to the end of each
//! block is recorded of their stages, so that a resumed run proves the stage by hashing it again,
//! and has the state of the digest at that point by the same reading.

use std::fs::File;

use bc_digest::{Algorithm, Digest, Hasher};

use crate::data::{BLOCK, DataError, PART};
use crate::decide::read_full;
use crate::known::Blocks;

/// A digest as a record of a block holds it: in pieces of 32 bytes, the last one filled with zeros.
pub(crate) fn pieces(digest: &Digest) -> Vec<[u8; 32]> {
    let piece = |bytes: &[u8]| {
        let mut piece = [0; 32];
        piece[..bytes.len()].copy_from_slice(bytes);
        piece
    };
    digest.as_bytes().chunks(32).map(piece).collect()
}

/// Returns the number of the block that ends there, if one does.
pub(crate) fn block_before(end: u64) -> Option<u64> {
    (end > 0 && end.is_multiple_of(BLOCK)).then(|| end / BLOCK - 1)
}

/// Returns the number of leading bytes of a stage, of a file of `size` bytes, that match the
/// records, and the state of their digest.
pub(crate) fn proven(
    stage: &File,
    known: Option<&Blocks>,
    algorithm: Algorithm,
    size: u64,
    buffer: &mut Vec<u8>,
    reported: &dyn Fn(u64) -> bool,
) -> Result<(u64, Hasher), DataError> {
    buffer.resize(buffer.len().max(PART), 0);
    let mut proven = (0, Hasher::new(algorithm));
    let Some(known) = known else {
        return Ok(proven);
    };
    for (block, expected) in (0..size / BLOCK).map_while(|block| Some((block, known.get(&block)?)))
    {
        let mut hasher = proven.1.clone();
        let begin = block * BLOCK;
        for at in (begin..begin + BLOCK).step_by(PART) {
            let part = &mut buffer[..PART];
            if read_full(stage, part, at).unwrap_or(0) < PART {
                return Ok(proven);
            }
            hasher.update(part);
        }
        if pieces(&hasher.finalize()) != *expected {
            break;
        }
        proven = (begin + BLOCK, hasher);
        if !reported(BLOCK) {
            return Err(DataError::Cancelled);
        }
    }
    Ok(proven)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    use bc_digest::hash;

    /// For each kind of algorithm: a block that is dirty, missing or not recorded ends the proven
    /// part.
    #[test]
    fn what_is_recorded_is_proven_and_nothing_more() {
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..2 * BLOCK + 9)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let path = dir.path().join("stage");
        for algorithm in [Algorithm::Xxh128, Algorithm::Sha1, Algorithm::Sha512] {
            std::fs::write(&path, &content).unwrap();
            let stage = File::options().read(true).write(true).open(&path).unwrap();
            let end = |block: u64| ((block + 1) * BLOCK) as usize;
            let record = |block| (block, pieces(&hash(algorithm, &content[..end(block)])));
            let mut known: Blocks = [record(0), record(1)].into();
            let size = content.len() as u64;
            let found = |known: Option<&Blocks>| {
                let buffer = &mut Vec::new();
                let found = proven(&stage, known, algorithm, size, buffer, &|_| true);
                let (at, hasher) = found.unwrap();
                assert_eq!(hasher.finalize(), hash(algorithm, &content[..at as usize]));
                at
            };
            assert_eq!((found(None), found(Some(&known))), (0, 2 * BLOCK));
            stage
                .write_all_at(&[!content[BLOCK as usize]], BLOCK)
                .unwrap();
            assert_eq!(found(Some(&known)), BLOCK);
            stage.set_len(BLOCK - 1).unwrap();
            assert_eq!(found(Some(&known)), 0);
            std::fs::write(&path, &content).unwrap();
            known.remove(&0);
            assert_eq!(found(Some(&known)), 0);
        }
    }

    #[test]
    fn blocks_end_at_their_multiples() {
        let ends = [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK].map(block_before);
        assert_eq!(ends, [None, None, Some(0), None, Some(2)]);
    }
}
