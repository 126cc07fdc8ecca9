//! Whether all parts are there.

use crate::error::{Error, ErrorKind};

/// How many numbers of missing parts a message names.
const NAMED: usize = 10;

/// The inputs by their parts, if there are all.
pub(super) fn complete(places: &[Option<usize>]) -> Result<Vec<usize>, Error> {
    let of = places.len();
    let missing: Vec<String> = (1..=of)
        .filter(|index| places[index - 1].is_none())
        .map(|index| format!("{index}/{of}"))
        .collect();
    if missing.is_empty() {
        return Ok(places.iter().flatten().copied().collect());
    }
    let more = match missing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = missing[..missing.len().min(NAMED)].join(", ");
    let text = format!("missing: part {names}{more}");
    Err(Error::new(ErrorKind::Manifest, text))
}
