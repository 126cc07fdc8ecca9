//! Every target in one table: the ratio that a job must reach, the peer, and the processors. The
//! record's rows take theirs from here, by their names.
//!
//! A **floor** is the bare loop of the system calls that a job cannot do without, on as many
//! threads: for reading open, read, close; for duplicates statx of all, then open, read, close of
//! those whose size repeats; for jobs that look at metadata only the statx walk, with directories
//! where those are recorded; for links linkat and renameat; for copies the statx walk, then for each
//! file a stage with the data, owner, mode and times, one look at its attributes, and the rename to
//! a name that is free. A processor with the SHA extensions makes others faster, too.

use super::machine;
use super::record::Target;

/// Processors on which a target holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cpu {
    Any,
    /// With the SHA extensions.
    Sha,
    /// Without them, with AVX-512.
    NoSha,
    /// With AVX-512, with or without the SHA extensions.
    Wide,
}

impl Cpu {
    fn is_this(self) -> bool {
        let (sha, wide) = (machine::has_flag("sha_ni"), machine::has_flag("avx512f"));
        match self {
            Cpu::Any => true,
            Cpu::Sha => sha,
            Cpu::NoSha => !sha && wide,
            Cpu::Wide => wide,
        }
    }
}

/// Ratio or share that a row must reach.
#[derive(Clone, Copy)]
enum Wanted {
    /// The other takes at least this many times as long.
    Times(f64),
    /// We take at most this share of the other's.
    Share(f64),
    /// Times as in [`Wanted::Times`], for each thread there is.
    TimesThreads(f64),
}
use Wanted::{Share, Times, TimesThreads};

/// Job and peer as the rows name them; a job that ends in `…` stands for all that begin so.
const TABLE: &[(&str, &str, Cpu, Wanted)] = &[
    (
        "walk of the tree, listing",
        "floor walk",
        Cpu::Any,
        Share(1.2),
    ),
    (
        "walk of the tree, stat",
        "floor statx",
        Cpu::Any,
        Share(1.1),
    ),
    (
        "copy of the tree, no digest",
        "floor statx + floor copy",
        Cpu::Any,
        Share(1.25),
    ),
    ("copy of the tree, no digest", "cpz", Cpu::Any, Share(1.4)),
    ("copy of the tree, no digest", "cp", Cpu::Any, Times(2.5)),
    ("copy of the tree", "cp", Cpu::Any, Times(2.0)),
    ("copy of the tree", "rsync", Cpu::Any, Times(2.0)),
    ("copy of the tree", "bcmr -V", Cpu::Any, Times(20.0)),
    (
        "copy of the tree again",
        "floor statx + floor statx",
        Cpu::Any,
        Share(1.5),
    ),
    ("copy of one file of 2 GiB", "cp", Cpu::Any, Share(1.3)),
    ("copy of one file of 2 GiB", "bcmr -V", Cpu::Any, Times(2.5)),
    ("XXH128 of the tree", "floor read", Cpu::Any, Share(1.25)),
    (
        "SHA-256 of the tree",
        "floor read + floor lanes",
        Cpu::Wide,
        Share(1.15),
    ),
    (
        "SHA-256 of the tree",
        "xargs sha256sum",
        Cpu::Sha,
        Times(5.5),
    ),
    (
        "SHA-256 of the tree",
        "xargs sha256sum",
        Cpu::NoSha,
        Times(9.0),
    ),
    ("SHA-256 of the tree", "xargs openssl", Cpu::Sha, Times(2.6)),
    (
        "SHA-256 of the tree",
        "xargs openssl",
        Cpu::NoSha,
        Times(5.5),
    ),
    ("SHA-256 of the tree", "hashdeep", Cpu::Wide, Times(6.5)),
    ("MD5 of the tree", "xargs md5sum", Cpu::Any, Times(4.5)),
    ("SHA-1 of the tree", "xargs sha1sum", Cpu::Any, Times(4.0)),
    (
        "SHA-512 of the tree",
        "xargs sha512sum",
        Cpu::Any,
        Times(4.0),
    ),
    ("BLAKE2b of the tree", "xargs b2sum", Cpu::Any, Times(2.8)),
    ("SHA-256 of a 1 GiB file", "openssl", Cpu::Any, Times(1.15)),
    ("XXH128 of a 1 GiB file", "cat", Cpu::Any, Share(0.95)),
    ("BLAKE3 of a 1 GiB file", "b3sum", Cpu::Any, Times(1.0)),
    (
        "start-up, one small file",
        "sha256sum",
        Cpu::Any,
        Share(1.25),
    ),
    (
        "SHA-256, N threads against 1",
        "bc --threads=1",
        Cpu::Any,
        TimesThreads(0.92),
    ),
    (
        "XXH128, N threads against 1",
        "bc --threads=1",
        Cpu::Any,
        TimesThreads(0.92),
    ),
    (
        "BLAKE3, N threads against 1",
        "bc --threads=1",
        Cpu::Any,
        TimesThreads(0.92),
    ),
    ("duplicates in the tree", "floor dup", Cpu::Any, Share(1.25)),
    ("duplicates in the tree", "yadf", Cpu::Any, Times(2.8)),
    ("duplicates in the tree", "jdupes", Cpu::Any, Times(2.9)),
    (
        "duplicates in the tree",
        "czkawka_cli",
        Cpu::Any,
        Times(3.5),
    ),
    ("duplicates in the tree", "fclones", Cpu::Any, Times(7.0)),
    ("duplicates in four copies", "yadf", Cpu::Any, Times(3.8)),
    ("duplicates in four copies", "jdupes", Cpu::Any, Times(4.5)),
    ("duplicates in four copies", "fclones", Cpu::Any, Times(6.5)),
    (
        "20,000 tiny triplets, duplicates",
        "yadf",
        Cpu::Any,
        Times(3.8),
    ),
    (
        "20,000 tiny triplets, duplicates",
        "jdupes",
        Cpu::Any,
        Times(4.5),
    ),
    (
        "20,000 tiny triplets, duplicates",
        "fclones",
        Cpu::Any,
        Times(6.5),
    ),
    (
        "duplicates in the tree, second run with --cache",
        "floor statx",
        Cpu::Any,
        Share(1.2),
    ),
    ("35,000 pairs, hard links", "jdupes", Cpu::Any, Times(4.0)),
    ("35,000 pairs, hard links", "fclones", Cpu::Any, Times(4.0)),
    ("35,000 pairs, hard links", "rdfind", Cpu::Any, Times(4.0)),
    ("manifest, SHA-256", "hashdeep", Cpu::Any, Times(6.5)),
    ("manifest, SHA-256", "mtree", Cpu::Any, Times(12.0)),
    (
        "verify --mode=meta of an unchanged tree",
        "floor statx-all",
        Cpu::Any,
        Share(1.25),
    ),
    (
        "update of an unchanged tree",
        "floor statx-all",
        Cpu::Any,
        Share(1.35),
    ),
    (
        "XXH128 of the tree, cold cache",
        "xargs xxhsum",
        Cpu::Any,
        Times(1.8),
    ),
    (
        "SHA-256 of the tree, cold cache",
        "hashdeep",
        Cpu::Any,
        Times(1.8),
    ),
    (
        "duplicates in the tree, cold cache",
        "yadf",
        Cpu::Any,
        Times(1.8),
    ),
    (
        "duplicates in the tree, cold cache",
        "jdupes",
        Cpu::Any,
        Times(1.8),
    ),
    (
        "duplicates in the tree, cold cache",
        "czkawka_cli",
        Cpu::Any,
        Times(1.8),
    ),
    (
        "duplicates in the tree, cold cache",
        "fclones",
        Cpu::Any,
        Times(1.8),
    ),
    (
        "memory a file beyond its name",
        "the budget",
        Cpu::Any,
        Share(1.0),
    ),
    ("peak memory a file, …", "the budget", Cpu::Any, Share(1.0)),
    (
        "peak memory, duplicates in four copies",
        "jdupes",
        Cpu::Any,
        Share(1.0),
    ),
];

/// Automatic threads against the better of one thread and all, on every shape of work.
pub(super) const SHAPE_THREADS: Target = Target::AtMost(1.1);
/// The same for one file of 1 GiB.
pub(super) const ONE_FILE_THREADS: Target = Target::AtMost(1.05);
/// Against the best of the peers on every shape of work, unless the floor is as near as this.
pub(super) const SHAPE_PEER: Target = Target::AtLeast(1.2);
pub(super) const SHAPE_FLOOR: Target = Target::AtMost(1.1);

/// Automatic threads against the best named number, where every call waits.
pub(super) const WAITING_THREADS: Target = Target::AtMost(1.2);
/// Against 64 processes side by side, or one copying program, where every call waits.
pub(super) const WAITING_PEER: Target = Target::AtLeast(1.0);

/// Returns the targets of a row on this processor, each with a word about it.
pub(super) fn of(job: &str, peer: &str, threads: usize) -> Vec<(Target, String)> {
    let is = |name: &str| match name.strip_suffix('…') {
        Some(begin) => job.starts_with(begin),
        None => job == name,
    };
    TABLE
        .iter()
        .filter(|line| is(line.0) && line.1 == peer && line.2.is_this())
        .map(|&(_, _, cpu, wanted)| (target(wanted, threads), note(cpu).to_owned()))
        .collect()
}

fn target(wanted: Wanted, threads: usize) -> Target {
    match wanted {
        Times(times) => Target::AtLeast(times),
        Share(share) => Target::AtMost(share),
        TimesThreads(times) => Target::AtLeast(times * threads as f64),
    }
}

fn note(cpu: Cpu) -> &'static str {
    match cpu {
        Cpu::Any => "",
        Cpu::Sha => "SHA-NI",
        Cpu::NoSha => "no SHA-NI",
        Cpu::Wide => "AVX-512",
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Target;
    use super::{TABLE, of};

    #[test]
    fn targets_are_found_by_job_and_peer() {
        assert_eq!(
            of("MD5 of the tree", "xargs md5sum", 2),
            [(Target::AtLeast(4.5), String::new())]
        );
        assert!(of("MD5 of the tree", "cat", 2).is_empty());
        assert_eq!(
            of("peak memory a file, 5 files: bc dup", "the budget", 2).len(),
            1
        );
        assert_eq!(
            of("BLAKE3, N threads against 1", "bc --threads=1", 4),
            [(Target::AtLeast(3.68), String::new())]
        );
    }

    #[test]
    fn a_row_has_one_target_on_any_processor() {
        for (at, line) in TABLE.iter().enumerate() {
            for other in &TABLE[..at] {
                let apart = line.2 != other.2 && line.2 != super::Cpu::Any;
                assert!((line.0, line.1) != (other.0, other.1) || apart);
            }
        }
    }
}
