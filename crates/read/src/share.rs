//! Division of long files among workers, and how many of them one reads at once. Pure arithmetic:
//! no system calls, no clock.

/// Returns how many of `all` long files, begun or not, one of `workers` may have in hand: never
/// more than its share, or others would have nothing to do.
pub(crate) fn share(all: usize, workers: usize) -> usize {
    all.div_ceil(workers.max(1)).max(1)
}

/// Number of rounds from which on an idle part of the last one does not matter.
const MANY: usize = 64;

/// Returns how many files of its share a worker is to have in hand together that hashes `width`
/// together: all, and if that is twice the width or more, a part of them, so that the last round is
/// as full as the others.
///
/// So it is up to twice the width less one, which take turns. With 25 files for 16 lanes and four
/// that wait, 20 and then 5 take 2.25 times as long as 16 do, 13 and 12 take twice as long, and 25
/// in turns 1.56 times.
pub(crate) fn at_once(all: usize, workers: usize, width: usize) -> usize {
    let (mine, width) = (share(all, workers), width.max(1));
    if mine < 2 * width {
        return if width == 1 { 1 } else { mine };
    }
    let most = mine / width;
    if most > MANY {
        return mine.div_ceil(most);
    }
    let least = mine.div_ceil(2 * width - 1).min(most);
    let places = |rounds: usize| rounds * share(all, workers * rounds) * workers;
    let rounds = (least..=most).rev().min_by_key(|&rounds| places(rounds));
    rounds.map_or(width, |rounds| mine.div_ceil(rounds))
}

#[cfg(test)]
mod tests;
