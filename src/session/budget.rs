//! `--memory-budget`: bounds buffers and what is kept of each file together. What does not fit is
//! refused before anything is printed or changed, with the figure that is needed.

/// The least that a slot can do with.
const LEAST_SLOT: u64 = 16 << 10;

/// Returns the number of slots that a worker needs: twice the lanes, so that reads can overlap
/// hashing.
fn slots_needed(width: usize) -> usize {
    (2 * width).max(4)
}

/// Returns how many workers with `width` lanes have room for their buffers beside `state` bytes.
pub fn workers(budget: u64, width: usize, state: u64) -> u64 {
    budget.saturating_sub(state) / (slots_needed(width) as u64 * LEAST_SLOT)
}

/// Makes the buffers of `workers` workers fit beside `state` bytes; fails with the least budget that
/// works if they cannot.
pub fn fit(
    options: &mut bc_read::ReadOptions,
    budget: u64,
    workers: usize,
    width: usize,
    state: u64,
) -> Result<(), String> {
    let slots = slots_needed(width).min(options.slots) as u64;
    let buffers = workers as u64 * slots * LEAST_SLOT;
    let room = budget.saturating_sub(state);
    if room < buffers {
        let least = buffers.saturating_add(state);
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
        for state in bytes {
            for (workers_now, width) in [(1, 1), (1, 16), (4, 8), (64, 16)] {
                let fits = |budget| {
                    let mut options = bc_read::ReadOptions::default();
                    let fitted = fit(&mut options, budget, workers_now, width, state);
                    let all = (workers_now * options.slots * options.slot_size) as u64;
                    fitted.map(|()| assert!(all + state <= budget))
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
