//! The tools that bc hash is compared with, and how far each can be.

/// Names that a tool writes as we do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerNames {
    /// GNU's escaping.
    Any,
    /// Only names that need no escaping.
    Plain,
}

/// Format of a tool's lines, compared with ours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// Byte for byte.
    Same,
    /// `hex *path` or `TAG (path) = hex`: digest and path are compared.
    Pairs,
}

/// One algorithm and the tool to compare it with.
pub(super) struct Peer {
    pub(super) algorithm: &'static str,
    pub(super) tool: &'static [&'static str],
    pub(super) names: PeerNames,
    pub(super) lines: Lines,
    /// Words that make it write BSD tags, if it can.
    pub(super) tag: &'static [&'static str],
    /// Words that make it verify quietly, if it can.
    pub(super) check: &'static [&'static str],
}

const TAG: &[&str] = &["--tag"];
pub(super) const GNU_CHECK: &[&str] = &["--check", "--quiet", "--strict"];
const OWN_CHECK: &[&str] = &["--check", "--quiet"];

const fn gnu(algorithm: &'static str, tool: &'static [&'static str]) -> Peer {
    Peer {
        algorithm,
        tool,
        names: PeerNames::Any,
        lines: Lines::Same,
        tag: TAG,
        check: GNU_CHECK,
    }
}

const fn pairs(algorithm: &'static str, tool: &'static [&'static str]) -> Peer {
    Peer {
        algorithm,
        tool,
        names: PeerNames::Plain,
        lines: Lines::Pairs,
        tag: &[],
        check: &[],
    }
}

/// Returns a tool for old sums, whose lines have numbers, lengths and names as they are.
const fn sum(algorithm: &'static str, tool: &'static [&'static str]) -> Peer {
    Peer {
        algorithm,
        tool,
        names: PeerNames::Plain,
        lines: Lines::Same,
        tag: &[],
        check: &[],
    }
}

const fn xxh(algorithm: &'static str, tool: &'static [&'static str], lines: Lines) -> Peer {
    Peer {
        algorithm,
        tool,
        names: PeerNames::Plain,
        lines,
        tag: TAG,
        check: OWN_CHECK,
    }
}

pub(super) const PEERS: &[Peer] = &[
    gnu("md5", &["md5sum"]),
    gnu("sha1", &["sha1sum"]),
    gnu("sha224", &["sha224sum"]),
    gnu("sha256", &["sha256sum"]),
    gnu("sha384", &["sha384sum"]),
    gnu("sha512", &["sha512sum"]),
    gnu("blake2b", &["b2sum"]),
    gnu("blake2b-256", &["b2sum", "-l", "256"]),
    xxh("xxh32", &["xxhsum", "-H0"], Lines::Same),
    xxh("xxh64", &["xxhsum", "-H1"], Lines::Same),
    xxh("xxh128", &["xxhsum", "-H2"], Lines::Same),
    // Its untagged form is tagged in 0.8.1 and has a prefix later.
    xxh("xxh3", &["xxhsum", "-H3"], Lines::Pairs),
    Peer {
        algorithm: "blake3",
        tool: &["b3sum"],
        names: PeerNames::Plain,
        lines: Lines::Same,
        tag: TAG,
        check: OWN_CHECK,
    },
    pairs("sha512-256", &["openssl", "dgst", "-sha512-256", "-r"]),
    pairs("sha3-224", &["openssl", "dgst", "-sha3-224", "-r"]),
    pairs("sha3-256", &["openssl", "dgst", "-sha3-256", "-r"]),
    pairs("sha3-384", &["openssl", "dgst", "-sha3-384", "-r"]),
    pairs("sha3-512", &["openssl", "dgst", "-sha3-512", "-r"]),
    pairs("sm3", &["openssl", "dgst", "-sm3", "-r"]),
    pairs("sha256", &["openssl", "dgst", "-sha256", "-r"]),
    pairs("blake2b", &["openssl", "dgst", "-blake2b512", "-r"]),
    pairs("crc32c", &["rhash", "--crc32c", "--simple"]),
    sum("crc", &["cksum"]),
    pairs("crc32b", &["rhash", "--crc32", "--simple"]),
    sum("bsd", &["sum", "-r"]),
    sum("sysv", &["sum", "-s"]),
    pairs("sha1", &["rhash", "--sha1", "--simple"]),
    pairs("blake2b", &["rhash", "--blake2b", "--simple"]),
];

#[cfg(test)]
mod tests {
    use super::PEERS;

    #[test]
    fn every_algorithm_has_a_peer() {
        for algorithm in bc_digest::Algorithm::ALL {
            let named = |peer: &super::Peer| peer.algorithm == algorithm.name();
            assert!(PEERS.iter().any(named), "{algorithm}");
        }
        for peer in PEERS {
            assert!(bc_digest::Algorithm::from_name(peer.algorithm).is_some());
        }
    }
}
