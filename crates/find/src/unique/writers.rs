//! Treatment of answers that rest on files with [unseen writers](crate::writers).

use bc_walk::{EntryId, Error, Listing};

use super::contents::{Contents, Presence};

/// Marks such files as unread, as their content may have changed by the time the answer is used,
/// and returns an error for each. `refused` are reference copies among them.
pub(super) fn note(
    listing: &Listing,
    writers: &[EntryId],
    refused: &[EntryId],
    found: &mut Contents,
) -> Vec<Error> {
    let mut reported = refused.to_vec();
    for (row, names) in found.rows_mut() {
        if matches!(row.presence, Presence::Nowhere | Presence::Unread) {
            continue;
        }
        let before = reported.len();
        let written = names
            .iter()
            .filter(|name| writers.binary_search(name).is_ok());
        reported.extend(written);
        if reported.len() > before {
            row.presence = Presence::Unread;
        }
    }
    reported.sort_unstable();
    reported.dedup();
    let error = |entry| {
        let text = "is open for writing, and what is written may not show";
        Error::with_message(listing.path(entry), "search", text)
    };
    reported.into_iter().map(error).collect()
}
