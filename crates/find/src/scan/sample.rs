//! Choice of the part of each file that is read first.
//!
//! If few files have an equal, as in a source tree, it is cheapest to read the start of each and to
//! come back, and verify, for the few that are left. If most have one, as in mirrors, opening them
//! twice costs more than it saves: they are read whole and verified in one go. This is unknown
//! beforehand, so a sample is read first, and decides by size: small files are more often repeated,
//! and less is lost if they are not.

use std::ops::Range;

use bc_digest::Algorithm;

use super::Context;
use super::groups::worth;
use super::prefix_stages::LARGE;

/// Candidates whose fast hashes decide how the others are read. Their whole
/// size groups are taken, evenly over all sizes. They lie all over the tree,
/// so each costs the opening of a directory as well: no more than it takes.
const SAMPLE: usize = 512;

/// Factor for size groups that are too large to be taken whole: this many times the square root of
/// the number of their files are taken. If each of these has one equal, eight pairs are expected
/// among them.
const ROOTS: usize = 4;

/// Fewer candidates are all read as a sample is: that takes less than a millisecond.
const FEW: usize = 256;

/// Some of the candidates.
#[derive(Debug)]
pub(super) struct Sample {
    /// Size groups that were taken whole.
    whole: Vec<Range<u32>>,
    /// Size groups that are too large for that, and the files that were taken from them.
    parts: Vec<(Range<u32>, Vec<u32>)>,
    /// Size groups of which nothing was taken.
    others: Vec<Range<u32>>,
}

impl Sample {
    pub(super) fn draw(groups: Vec<Range<u32>>) -> Sample {
        let count: usize = groups.iter().map(ExactSizeIterator::len).sum();
        let (mut whole, mut parts, mut others) = (Vec::new(), Vec::new(), groups);
        if count >= FEW {
            let wanted = SAMPLE.min(count / 8);
            let stride = count / wanted;
            let (mut taken, mut seen) = (0, 0);
            for group in std::mem::take(&mut others) {
                if group.len() > wanted {
                    let members = some_of(&group);
                    parts.push((group, members));
                    continue;
                }
                seen += group.len();
                if taken * stride < seen && taken + group.len() <= 2 * wanted {
                    taken += group.len();
                    whole.push(group);
                } else {
                    others.push(group);
                }
            }
        }
        Sample {
            whole,
            parts,
            others,
        }
    }

    /// The size groups that were taken whole.
    pub(super) fn groups(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.whole.iter().cloned()
    }

    /// The others of which some members were taken.
    pub(super) fn parts(&self) -> &[(Range<u32>, Vec<u32>)] {
        &self.parts
    }

    /// The size groups that were not taken, or not whole.
    pub(super) fn rest(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        let parts = self.parts.iter().map(|(group, _)| group);
        self.others.iter().chain(parts).cloned()
    }

    /// Up to which size the sample is read whole, without knowing whether that pays.
    pub(super) fn limit(algorithm: Algorithm) -> u64 {
        // The cost in vain is less than the second open that it may save.
        (reopening(algorithm) / 3.0) as u64
    }

    /// Returns the number of files in the sample that are read again if files of up to `limit`
    /// bytes are read whole: the ends of some cannot be compared with all of others.
    pub(super) fn repeated(&self, context: &Context<'_>, limit: u64) -> u64 {
        let table = &context.table;
        let parts = self.parts.iter();
        let repeated = parts.filter(|(group, _)| context.size(group.start) <= limit);
        repeated
            .flat_map(|(_, members)| members)
            .filter(|one| !table.has_whole(**one) && !table.failed(**one))
            .count() as u64
    }

    /// Returns the size up to which files are best read whole at once, by the digests of the
    /// sample.
    pub(super) fn whole_up_to(&self, context: &Context<'_>) -> u64 {
        if self.whole.is_empty() && self.parts.is_empty() {
            return Sample::limit(context.options.algorithm);
        }
        let mut strata = Vec::new();
        let taken: usize = self.whole.iter().map(ExactSizeIterator::len).sum();
        let others: usize = self.others.iter().map(ExactSizeIterator::len).sum();
        for group in &self.whole {
            let (read, classes) = classes(context, group.clone());
            let equal: usize = classes.iter().sum();
            strata.push(Stratum {
                size: context.size(group.start),
                files: group.len() as f64 * others as f64 / taken as f64,
                share: equal as f64 / read.max(1) as f64,
            });
        }
        for (group, members) in &self.parts {
            let (read, classes) = classes(context, members.iter().copied());
            // A content that is there a thousand times counts once: it says nothing of the others.
            let equal = classes.iter().filter(|len| **len > 1).count();
            let pairs = (read * read.saturating_sub(1) / 2).max(1);
            strata.push(Stratum {
                size: context.size(group.start),
                files: group.len() as f64,
                share: ((equal * group.len()) as f64 / pairs as f64).min(1.0),
            });
        }
        best(strata, reopening(context.options.algorithm)).min(LARGE)
    }
}

/// A few members, none of them for where it is: copies lie at even distances.
fn some_of(group: &Range<u32>) -> Vec<u32> {
    let len = group.len() as u64;
    let wanted = ROOTS as u64 * len.isqrt();
    let chosen = |one: &u32| (mix(*one) * len) >> 32 < wanted;
    group.clone().filter(chosen).collect()
}

/// A number below 2^32 that has nothing to do with this one (SplitMix64).
fn mix(number: u32) -> u64 {
    let mut mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) >> 32
}

/// Returns the number of these files of one size that were read, and the sizes of the groups among
/// them by their digests so far.
fn classes(context: &Context<'_>, members: impl Iterator<Item = u32>) -> (usize, Vec<usize>) {
    let table = &context.table;
    let mut read: Vec<([u64; 4], u32)> = members
        .filter(|one| !table.failed(*one))
        .map(|one| match table.has_whole(one) {
            true => (table.whole(one), one),
            false => ([table.fast(one), 0, 0, 0], one),
        })
        .collect();
    read.sort_unstable();
    let classes = read.chunk_by(|a, b| a.0 == b.0).filter_map(|class| {
        let members: Vec<u32> = class.iter().map(|(_, one)| *one).collect();
        worth(context, &members).then_some(members.len())
    });
    (read.len(), classes.collect())
}

/// Files of one size.
#[derive(Clone, Copy, Debug)]
struct Stratum {
    size: u64,
    files: f64,
    /// Fraction of them that have an equal, 0 to 1.
    share: f64,
}

/// Returns the cost of opening a file a second time, in bytes that could be read and hashed
/// instead: some three times the average size of files in a source tree, where hashing is
/// negligible.
fn reopening(algorithm: Algorithm) -> f64 {
    const CHEAP: f64 = 48.0 * 1024.0;
    match algorithm {
        Algorithm::Xxh3 | Algorithm::Xxh128 => CHEAP,
        Algorithm::Blake3 => CHEAP / 2.0,
        _ => CHEAP / 4.0,
    }
}

/// The size up to which it saves most to read files whole: those that have an equal are opened once,
/// the others are read further than they need, and verified.
fn best(mut strata: Vec<Stratum>, reopening: f64) -> u64 {
    let verifying = reopening / 12.0;
    strata.sort_unstable_by_key(|stratum| stratum.size);
    let (mut saved, mut most, mut limit) = (0.0, 0.0, 0);
    for size in strata.chunk_by(|a, b| a.size == b.size) {
        for one in size {
            let lost = (1.0 - one.share) * (one.size as f64 + verifying);
            saved += one.files * (one.share * reopening - lost);
        }
        if saved > most {
            (most, limit) = (saved, size[0].size);
        }
    }
    limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strata(of: &[(u64, f64, f64)]) -> Vec<Stratum> {
        of.iter()
            .map(|&(size, files, share)| Stratum { size, files, share })
            .collect()
    }

    fn limit(of: &[(u64, f64, f64)]) -> u64 {
        best(strata(of), reopening(Algorithm::Xxh128))
    }

    #[test]
    fn files_are_read_whole_where_that_saves_opening_them_again() {
        assert_eq!(limit(&[]), 0);
        assert_eq!(limit(&[(1000, 1e5, 0.0), (100_000, 1e5, 0.0)]), 0);
        assert_eq!(limit(&[(1000, 1e5, 1.0), (100_000, 1e5, 1.0)]), 100_000);
        // Verifying is lost on a small file that has no equal, the reading on a large one.
        assert_eq!(limit(&[(1000, 1.0, 0.05)]), 0);
        assert_eq!(limit(&[(1000, 1.0, 0.2)]), 1000);
        assert_eq!(limit(&[(100_000, 1.0, 0.5)]), 0);
        assert_eq!(limit(&[(100_000, 1.0, 0.8)]), 100_000);
        // Small ones repeated beside large ones that are not, and a few of these between them.
        let mixed = [
            (500_000, 100.0, 0.1),
            (4000, 10.0, 0.0),
            (300, 1000.0, 0.9),
            (9000, 1000.0, 0.9),
        ];
        assert_eq!(limit(&mixed), 9000);
        let dear = best(strata(&[(30_000, 1.0, 0.6)]), reopening(Algorithm::Sha256));
        assert_eq!((dear, limit(&[(30_000, 1.0, 0.6)])), (0, 30_000));
    }

    #[test]
    fn a_sample_is_a_small_part_of_what_there_is() {
        let of = |sizes: &[u32]| {
            let mut start = 0;
            let groups = sizes.iter().map(|len| {
                let group = start..start + len;
                start = group.end;
                group
            });
            Sample::draw(groups.collect())
        };
        for (sizes, least, most) in [
            (vec![2; 100], 0, 0),
            (vec![3; 200], 70, 150),
            (vec![7; 10_000], 512, 1024),
            (vec![900], 60, 180),
            (vec![60_000], 700, 1200),
            (vec![1_000_000, 2, 2], 3000, 5000),
        ] {
            let sample = of(&sizes);
            let parts = sample.parts().iter().flat_map(|(_, members)| members);
            let taken: Vec<u32> = sample.groups().flatten().chain(parts.copied()).collect();
            let count = taken.len();
            assert!((least..=most).contains(&count), "{count} of {sizes:?}");
            // Each candidate is in the sample, in the rest, or as part of a large group in both.
            let all: u32 = sizes.iter().sum();
            let mut seen: Vec<u32> = sample.rest().flatten().chain(taken).collect();
            seen.sort_unstable();
            seen.dedup();
            assert!(seen.into_iter().eq(0..all), "{sizes:?}");
        }
    }

    /// Copies that follow each other, and such that lie a third of the whole apart.
    #[test]
    fn equal_files_of_one_size_meet_in_a_sample_wherever_they_are() {
        for count in [900, 20_001, 60_000] {
            let members = some_of(&(0..count));
            let meet = |key: &dyn Fn(u32) -> u32| {
                let mut keys: Vec<u32> = members.iter().map(|one| key(*one)).collect();
                keys.sort_unstable();
                keys.chunk_by(|a, b| a == b)
                    .filter(|run| run.len() > 1)
                    .count()
            };
            assert!(meet(&|one| one / 3) >= 5, "{count}");
            assert!(meet(&|one| one % (count / 3)) >= 5, "{count}");
            assert!(meet(&|one| one % (count / 2)) >= 3, "{count}");
            assert_eq!(meet(&|one| one), 0);
        }
    }
}
