//! A random part of the unchanged files, another one in each run: for verifications of trees that
//! are too large to be read as a whole each time.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

use bc_walk::EntryId;
use bc_walk::job::Error;

use super::reread::{Files, cost, other_names, parse_part};

/// Part of the unchanged files to read, by their bytes.
///
/// Each file is as likely to be chosen as the part is large, whatever its size, and all chosen ones
/// together have about that part of the bytes: as nearly as the size of one file allows.
///
/// ```
/// use bc_integrity::Sample;
///
/// assert_eq!("5%".parse(), Ok(Sample::part(0.05)));
/// assert!("5".parse::<Sample>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    part: f64,
    seed: Option<u64>,
}

impl Sample {
    /// Chooses a part from 0 to 1, by random numbers of the system: each run another one.
    pub const fn part(part: f64) -> Sample {
        Sample { part, seed: None }
    }

    /// Chooses by this number: each run over the same tree the same part.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Sample {
        Sample {
            seed: Some(seed),
            ..self
        }
    }

    /// Checks that the part is one.
    ///
    /// # Errors
    /// If it is not from 0 to 1.
    pub(crate) fn check(self) -> Result<(), Error> {
        let Sample { part, .. } = self;
        match (0.0..=1.0).contains(&part) {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "{part} of the files cannot be read: a part is from 0 to 1"
            ))),
        }
    }

    /// Returns the files to read. Names of one file are chosen together, and count once.
    ///
    /// The files lie in a random order on a circle, each as long as it has bytes; those that begin
    /// in an arc of the wanted length are chosen, and the arc begins anywhere. In a row from its
    /// beginning a file larger than all others would be read nearly always.
    pub(crate) fn choose(self, mut candidates: Vec<EntryId>, files: &impl Files) -> Vec<EntryId> {
        let seed = self.seed.unwrap_or_else(random);
        let mut others = other_names(&mut candidates, files, |id| *id);
        candidates.sort_unstable_by_key(|id| mixed(seed, u64::from(id.0)));
        let total: u128 = candidates.iter().map(|id| cost(files, *id)).sum();
        let arc = match self.part < 1.0 {
            true => (total as f64 * self.part).ceil() as u128,
            false => total,
        };
        // No entry has this number.
        let turn = mixed(seed, u64::MAX) as f64 / 2_f64.powi(64);
        let mut at = (total as f64 * turn) as u128;
        let mut chosen = Vec::new();
        for id in candidates {
            at %= total;
            if at < arc {
                chosen.push(id);
                let file = files.linked(id);
                chosen.extend(
                    file.and_then(|file| others.remove(&file))
                        .unwrap_or_default(),
                );
            }
            at += cost(files, id);
        }
        chosen
    }
}

/// Returns a number that the system has drawn.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// Returns the random number of a file (SplitMix64 by Steele, Lea and Flood).
fn mixed(seed: u64, id: u64) -> u64 {
    let mut z = seed.wrapping_add(id.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A text that is no [`Sample`], or one of nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownSample(String);

impl fmt::Display for UnknownSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        match parse_part(text) {
            Some(_) => write!(f, "'{text}': nothing would be read"),
            None => write!(f, "'{text}' is no part of all files (5%, 0.05)"),
        }
    }
}

impl std::error::Error for UnknownSample {}

impl FromStr for Sample {
    type Err = UnknownSample;

    /// Parses `5%` or `0.05`. An amount of zero is refused: a comparison of metadata is another
    /// mode.
    fn from_str(text: &str) -> Result<Sample, UnknownSample> {
        parse_part(text)
            .filter(|part| *part > 0.0)
            .map(Sample::part)
            .ok_or_else(|| UnknownSample(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use bc_walk::Identity;

    use super::*;

    struct Sizes(Vec<u64>);

    impl Files for Sizes {
        fn size(&self, entry: EntryId) -> u64 {
            self.0[entry.0 as usize]
        }

        /// Files of 7 bytes are names of one.
        fn linked(&self, entry: EntryId) -> Option<Identity> {
            (self.size(entry) == 7).then_some(Identity { dev: 1, ino: 7 })
        }
    }

    /// Returns the ids that are chosen, in order.
    fn chosen(files: &Sizes, part: f64, seed: u64) -> Vec<u32> {
        let all = (0..files.0.len() as u32).map(EntryId).collect();
        let chosen = Sample::part(part).seed(seed).choose(all, files);
        let mut ids: Vec<u32> = chosen.iter().map(|id| id.0).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn about_the_part_of_the_bytes() {
        let files = Sizes((0..1000).map(|nth| nth * 17 % 5000 + 10).collect());
        let total: u64 = files.0.iter().map(|size| size + 1).sum();
        for seed in 0..50 {
            let ids = chosen(&files, 0.05, seed);
            let bytes: u64 = ids.iter().map(|id| files.0[*id as usize] + 1).sum();
            let wanted = total / 20;
            assert!(
                bytes.abs_diff(wanted) <= 5011,
                "{seed}: {bytes} of {wanted}"
            );
        }
        assert_ne!(chosen(&files, 0.05, 1), chosen(&files, 0.05, 2));
        assert_eq!(chosen(&files, 0.05, 1), chosen(&files, 0.05, 1));
    }

    #[test]
    fn each_file_is_as_likely_as_the_part_is_large() {
        // One has 99 % of the bytes.
        let files = Sizes([vec![990_000], vec![100; 99]].concat());
        let mut counts = [0_u32; 100];
        for seed in 0..4000 {
            for id in chosen(&files, 0.1, seed) {
                counts[id as usize] += 1;
            }
        }
        // Ten standard deviations around 400.
        assert!(
            counts.iter().all(|count| (210..590).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn all_and_nothing() {
        let files = Sizes(vec![0, 5, u64::MAX, u64::MAX, 0, 9]);
        for seed in 0..20 {
            assert_eq!(chosen(&files, 1.0, seed), [0, 1, 2, 3, 4, 5]);
            assert!(chosen(&files, 0.0, seed).is_empty());
            assert!(chosen(&Sizes(Vec::new()), 0.5, seed).is_empty());
        }
        // Empty files have their turn.
        let empty = Sizes(vec![0; 1000]);
        assert_eq!(chosen(&empty, 0.1, 1).len(), 100);
    }

    #[test]
    fn names_of_one_file_are_chosen_together() {
        let files = Sizes([vec![7; 5], vec![10; 20]].concat());
        for seed in 0..50 {
            let ids = chosen(&files, 0.5, seed);
            let names = ids.iter().filter(|id| **id < 5).count();
            assert!(names == 0 || names == 5, "{ids:?}");
        }
    }

    #[test]
    fn parts_and_nothing_else() {
        for (text, part) in [("5%", 0.05), ("100%", 1.0), ("0.25", 0.25), ("1.0", 1.0)] {
            assert_eq!(text.parse(), Ok(Sample::part(part)), "{text}");
        }
        for bad in [
            "", "5", "%", "101%", "-1%", "1.5", "20G", "30m", "NaN%", "some",
        ] {
            let error = bad.parse::<Sample>().unwrap_err().to_string();
            assert!(error.contains("is no part"), "{bad}: {error}");
        }
        for nothing in ["0%", "0.0", "-0%"] {
            let error = nothing.parse::<Sample>().unwrap_err().to_string();
            assert!(
                error.contains("nothing would be read"),
                "{nothing}: {error}"
            );
        }
        for part in [f64::NAN, -0.1, 1.1] {
            assert!(Sample::part(part).check().is_err());
        }
    }
}
