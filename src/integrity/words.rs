//! Words that lines and pages have in common.

use bc_integrity::ComparisonSummary;

use crate::session::progress::{counted, size, thousands};

/// Returns the amount read, and of how much, if only a sample was.
pub fn sampled(summary: &ComparisonSummary) -> Option<String> {
    let of = summary.sampled_of?;
    Some(format!(
        "{} of {} read, {} of {}: a random sample, and what looked changed; the others were compared by \
         metadata only",
        thousands(summary.files_read),
        counted(of.files, "file", "files"),
        size(summary.bytes_read),
        size(of.bytes),
    ))
}
