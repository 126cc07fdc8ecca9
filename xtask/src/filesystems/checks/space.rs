//! Freed bytes, as the program and as the file system tell them.

use anyhow::Result;

use super::super::sheet::Verdict;
use super::Faults;

/// What the file system's figures said of one action.
pub(super) struct Freed {
    pub(super) claimed: u64,
    pub(super) seen: i64,
    pub(super) changed: u64,
    pub(super) block: u64,
}

/// Freed bytes are what the file system has more, within a block for each file changed.
pub(super) fn check(spaces: &[(&str, Freed)]) -> Result<Verdict> {
    if spaces.is_empty() {
        return Ok(Verdict::Skip("nothing could be changed".to_owned()));
    }
    let mut faults = Faults::default();
    for (action, freed) in spaces {
        let apart = (freed.claimed as i64 - freed.seen).unsigned_abs();
        let allowed = freed.changed * freed.block;
        faults.unless(apart <= allowed, || {
            format!(
                "{action}: {} bytes said to be freed, {} seen ({} files of blocks of {})",
                freed.claimed, freed.seen, freed.changed, freed.block
            )
        });
    }
    faults.result()?;
    let told: Vec<String> = spaces
        .iter()
        .map(|(action, freed)| format!("{action} {} = {}", freed.claimed, freed.seen))
        .collect();
    Ok(Verdict::Ok(told.join(", ")))
}
