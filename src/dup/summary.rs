//! `bc dup summary`: the space that could be reclaimed, and the directories with most of it.

use crate::session::progress::{size, thousands};

use super::search::SearchResult;

/// Groups shown.
const LARGEST: usize = 10;

/// Returns the figures of a search, and the groups that waste most.
pub fn text(found: &SearchResult) -> String {
    let (scan, stats) = (&found.scan, &found.scan.stats);
    let mut text = format!(
        "could be freed     {:>12}\ngroups             {:>12}\nduplicates         {:>12}\n\
         files searched     {:>12}  {}\nfiles of same size {:>12}\nfiles read         {:>12}  {}\n\
         files unreadable   {:>12}\n",
        size(scan.wasted()),
        thousands(scan.groups().len() as u64),
        thousands(scan.duplicates()),
        thousands(stats.files),
        size(stats.bytes),
        thousands(stats.size_candidates),
        thousands(stats.fast_hashed),
        size(stats.bytes_read),
        thousands(scan.errors.len() as u64 + found.listing.errors().len() as u64),
    );
    let seconds = stats.times.map(|time| time.as_secs_f64());
    text += &format!(
        "time               {:>12}  sizes {:.3}, first bytes {:.3}, whole {:.3}\n",
        format!("{:.3} s", seconds.iter().sum::<f64>()),
        seconds[0],
        seconds[1],
        seconds[2],
    );
    if let Some(offline) = &found.offline {
        let files: usize = offline
            .offline
            .contents
            .iter()
            .map(|one| one.names.len())
            .sum();
        let bytes = offline.offline.contents.iter().map(|one| one.size).sum();
        text += &format!(
            "in manifests   {:>12}  {}\n",
            thousands(files as u64),
            size(bytes)
        );
    }
    if scan.groups().len() > 0 {
        text += "\nlargest waste\n";
    }
    for group in scan.groups().take(LARGEST) {
        let names = group.files().flat_map(|file| file.names).next();
        let first = names.map_or_else(Vec::new, |name| found.listing.path(*name));
        text += &format!(
            "{:>12}  {} files of {}: {}\n",
            size(group.wasted),
            thousands(group.files().len() as u64),
            size(group.size),
            bc_fs::escape(&first),
        );
    }
    text
}
