//! Whether all parts are there.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind};

/// How many numbers of missing parts a message names.
const NAMED: usize = 10;

/// The inputs by the number of their part, from 1. A header may claim any number of parts: only
/// those that are there take memory.
pub(super) struct Places {
    of: u32,
    inputs: BTreeMap<u32, usize>,
}

impl Places {
    /// None of so many.
    pub(super) fn of(of: u32) -> Places {
        Places {
            of,
            inputs: BTreeMap::new(),
        }
    }

    /// Puts an input in its place, and returns the one that was there.
    pub(super) fn put(&mut self, index: u32, input: usize) -> Option<usize> {
        self.inputs.insert(index, input)
    }

    /// The inputs in order of their parts, if there are all.
    pub(super) fn complete(&self) -> Result<Vec<usize>, Error> {
        let missing = self.of as usize - self.inputs.len();
        if missing == 0 {
            return Ok(self.inputs.values().copied().collect());
        }
        let numbers = (1..=self.of).filter(|index| !self.inputs.contains_key(index));
        let names: Vec<String> = numbers
            .take(NAMED)
            .map(|index| format!("{index}/{}", self.of))
            .collect();
        let more = match missing.saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!("missing: part {}{more}", names.join(", "));
        Err(Error::new(ErrorKind::Manifest, text))
    }
}
