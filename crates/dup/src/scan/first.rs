//! The first read of each candidate, and how much of it to read.
//!
//! Where few files survive (a source tree: 885 of 71,972), looking at the ends
//! and coming back for the survivors wins; where nearly all do (copies,
//! backups), reading small files whole at once does, by some 20 %: a second
//! open costs more than the bytes. Nobody knows beforehand, so a sample of
//! whole classes goes first and its survivors' share decides for the rest.

use bc_pool::WorkerPanic;

use super::candidates::Index;
use super::pass::{Key, Pass};

/// Bytes read of each end. A file of less than twice that is read whole.
pub(super) const END: u64 = 4096;

/// Files up to this size are read whole at once where survivors abound: one
/// slot of the reader.
const SLOT: u64 = 127 << 10;

/// Candidates in the sample, and the least number of candidates that is worth one.
const SAMPLE: usize = 2048;
const WORTH_SAMPLING: usize = 4 * SAMPLE;

/// Share of survivors from which whole reads win: opening again costs some
/// 2.5 µs, the rest of a mean file of 17 KB one (source trees, warm cache).
const MANY: f64 = 0.3;

/// Runs the first read.
pub(super) fn read(pass: &mut Pass<'_>) -> Result<(), WorkerPanic> {
    let ends = 2 * END - 1;
    let total = pass.candidates.len();
    if total < WORTH_SAMPLING {
        return pass.read((0..total).collect(), ends);
    }
    let (sample, rest) = split(pass);
    pass.read(sample.clone(), ends)?;
    // Only sizes about which there is a choice have a say.
    let open: Vec<Index> = sample
        .into_iter()
        .filter(|i| (2 * END..=SLOT).contains(&pass.size(*i)))
        .collect();
    let survivors: usize = pass
        .equal()
        .iter()
        .filter(|set| (2 * END..=SLOT).contains(&pass.size(set[0])))
        .map(Vec::len)
        .sum();
    let many = survivors as f64 > MANY * open.len().max(1) as f64;
    pass.read(rest, if many { SLOT } else { ends })?;
    debug_assert!(
        pass.keys
            .iter()
            .filter(|key| matches!(key, Key::Ends(_)))
            .count()
            <= total
    );
    Ok(())
}

/// Whole classes, spread evenly over all sizes, with some [`SAMPLE`] candidates; and the rest.
fn split(pass: &Pass<'_>) -> (Vec<Index>, Vec<Index>) {
    let every = pass.candidates.len().div_ceil(SAMPLE).max(1);
    let (mut sample, mut rest) = (Vec::new(), Vec::with_capacity(pass.candidates.len()));
    // A class goes into the sample when the candidates so far call for one.
    for class in pass.candidates.classes() {
        let due = (class.start / every) > sample.len();
        let to = if due && class.len() <= SAMPLE / 8 {
            &mut sample
        } else {
            &mut rest
        };
        to.extend(class);
    }
    (sample, rest)
}
