//! Strength of digests of other tools.

use bc_digest::{Algorithm, Plain};

/// Bytes of the shortest digest that distinguishes contents: of fewer, two of some million files
/// are equal by chance.
const LEAST: usize = 16;

/// Returns true if equal digests mean equal contents against accidents only, as collisions are made
/// at will.
pub fn is_weak(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::Md5 | Algorithm::Sha1 | Algorithm::Xxh128
    )
}

/// Returns the usual spelling of the algorithm's name: `MD5`, `SHA-1`, `XXH128`.
pub fn tag(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Sha1 => "SHA-1",
        other => other.tag(),
    }
}

/// Refuses digests that are too short.
pub(super) fn check(algorithm: Algorithm) -> Result<(), String> {
    let bits = 8 * algorithm.digest_len();
    match algorithm.digest_len() < LEAST {
        false => Ok(()),
        true => Err(format!(
            "{} has {bits} bits, too few to tell that nothing is lost: {} are the least",
            tag(algorithm),
            8 * LEAST
        )),
    }
}

/// Returns the algorithms that a digest of so many bytes without a name can be of: the usual ones
/// of that length. All of them are tried, since a wrong guess would find nothing.
pub(super) fn usual(length: usize) -> &'static [Algorithm] {
    match length {
        16 => &[Algorithm::Md5, Algorithm::Xxh128],
        20 => &[Algorithm::Sha1],
        28 => &[Algorithm::Sha224],
        32 => &[Algorithm::Sha256, Algorithm::Blake3],
        48 => &[Algorithm::Sha384],
        64 => &[Algorithm::Sha512, Algorithm::Blake2b],
        _ => &[],
    }
}

/// The bits of the shortest digest without a name that is one of something.
pub(super) fn too_short(length: usize) -> bool {
    let is_known = |known: &&Algorithm| known.plain() == Plain::Hex;
    let mut all = Algorithm::ALL.iter().filter(is_known);
    length < LEAST && all.any(|known| known.digest_len() == length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_refused_weak_or_strong() {
        for algorithm in Algorithm::ALL {
            let refused = check(*algorithm).is_err();
            assert_eq!(refused, algorithm.digest_len() < 16, "{algorithm}");
            assert!(!(refused && is_weak(*algorithm)), "{algorithm}");
            let broken = algorithm.digest_len() < 28 && !refused;
            assert_eq!(is_weak(*algorithm), broken, "{algorithm}");
        }
        for length in 0..70 {
            for algorithm in usual(length) {
                assert_eq!(algorithm.digest_len(), length);
            }
        }
        assert!(too_short(8) && !too_short(16) && !too_short(5));
    }
}
