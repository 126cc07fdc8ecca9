//! `--memory-budget`: at least one half is for buffers, the other for the state of the files, and
//! state that does not fit in that lies in files.

use std::path::PathBuf;

use bc_edit::spill;
use bc_fs::escape;
use bc_pool::Cancel;

/// Reason in a [`Cancel`], instead of a signal's number: a file for spilled state could not be
/// made.
pub const NO_ROOM: usize = usize::MAX;

/// The least that a slot can do with.
const LEAST_SLOT: u64 = 16 << 10;

/// Keeps the budget from here on.
pub fn begin(budget: u64, cancel: &Cancel) {
    spill::begin(kept(budget), &directories(), cancel.flag(), NO_ROOM);
}

/// Returns the bytes of arrays that stay in memory.
fn kept(budget: u64) -> u64 {
    budget.div_ceil(2)
}

/// Returns the directories where files for the others may lie, the best first: the user's choice
/// for temporary files, the place for large ones, our own, and the place for small ones. Those that
/// are in memory are passed over.
pub fn directories() -> Vec<PathBuf> {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let mut all: Vec<PathBuf> = named.into_iter().collect();
    all.push("/var/tmp".into());
    all.extend(crate::dirs::cache_dir());
    all.push("/tmp".into());
    all
}

/// Bytes of state kept for the files.
#[derive(Clone, Copy, Debug)]
pub enum Kept {
    /// In large arrays, which can lie in files.
    Arrays(u64),
    /// In many small pieces, which stay in memory.
    Pieces(u64),
}

impl Kept {
    /// Returns how many of them are in memory under that budget.
    fn in_memory(self, budget: u64) -> u64 {
        match self {
            Kept::Arrays(bytes) => bytes.min(kept(budget)),
            Kept::Pieces(bytes) => bytes,
        }
    }
}

/// Returns why the budget could not be kept, if it could not.
pub fn failure() -> Option<String> {
    let reason = spill::failure()?;
    Some(format!(
        "--memory-budget: what it has no room for could not be put in a file: {reason}"
    ))
}

/// Returns a note about how much did not fit, if anything.
pub fn reported() -> Option<String> {
    let most = spill::most();
    let directory = escape(spill::directory()?.as_os_str().as_encoded_bytes());
    let size = crate::progress::size(most);
    (most > 0).then(|| format!("memory budget: {size} in files in {directory} at most"))
}

/// Returns the bytes of the budget that are left for buffers.
fn for_buffers(budget: u64, state: Kept) -> u64 {
    budget.saturating_sub(state.in_memory(budget))
}

/// Returns the number of slots that a worker needs: twice the lanes, so that reads can overlap
/// hashing.
fn slots_needed(width: usize) -> usize {
    (2 * width).max(4)
}

/// Returns how many workers with `width` lanes have room for their buffers.
pub fn workers(budget: u64, width: usize, state: Kept) -> u64 {
    for_buffers(budget, state) / (slots_needed(width) as u64 * LEAST_SLOT)
}

/// Makes the buffers of `workers` workers fit; fails with the least budget that works if they
/// cannot.
pub fn fit(
    options: &mut bc_read::ReadOptions,
    budget: u64,
    workers: usize,
    width: usize,
    state: Kept,
) -> Result<(), String> {
    let slots = slots_needed(width).min(options.slots) as u64;
    let buffers = workers as u64 * slots * LEAST_SLOT;
    let room = for_buffers(budget, state);
    if room < buffers {
        let least = match state {
            // The half of it is enough, however much state is kept.
            Kept::Arrays(bytes) => buffers.saturating_add(bytes).min(2 * buffers),
            Kept::Pieces(bytes) => buffers.saturating_add(bytes),
        };
        return Err(format!(
            "--memory-budget: {budget} bytes are too few for {workers} threads; at least {least} are needed"
        ));
    }
    let share = room / workers as u64;
    options.slots = (share / options.slot_size as u64).clamp(slots, options.slots as u64) as usize;
    options.slot_size =
        (share / options.slots as u64).min(options.slot_size as u64) as usize & !4095;
    Ok(())
}

/// Returns the most resident memory so far, in bytes, as the kernel counts it.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least that is named works, and less does not, however much state is kept.
    #[test]
    fn the_least_is_the_least() {
        let bytes = [0, 1, 100 << 10, 1 << 20, 1 << 40];
        for state in bytes
            .map(Kept::Arrays)
            .into_iter()
            .chain(bytes.map(Kept::Pieces))
        {
            for (workers_now, width) in [(1, 1), (1, 16), (4, 8), (64, 16)] {
                let fits = |budget| {
                    let mut options = bc_read::ReadOptions::default();
                    let fitted = fit(&mut options, budget, workers_now, width, state);
                    let all = (workers_now * options.slots * options.slot_size) as u64;
                    fitted.map(|()| assert!(all + state.in_memory(budget) <= budget))
                };
                let said = fits(1000).unwrap_err();
                let (_, rest) = said.split_once("at least ").unwrap();
                let least: u64 = rest.split(' ').next().unwrap().parse().unwrap();
                fits(least).unwrap();
                fits(least - 1).unwrap_err();
                assert!(workers(least, width, state) >= workers_now as u64);
            }
        }
    }
}
