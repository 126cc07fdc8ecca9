//! Completeness of the parts of a tree.

use std::collections::BTreeMap;

use bc_walk::job::{Error, ErrorKind};

/// Numbers of missing parts that a message lists.
const NAMED: usize = 10;

/// The inputs by the number of their part, from 1. A header may claim any number of parts: only
/// existing inputs take memory.
pub(super) struct PartInputs {
    of: u32,
    inputs: BTreeMap<u32, usize>,
}

impl PartInputs {
    /// Makes places for so many parts, all empty.
    pub(super) fn of(of: u32) -> PartInputs {
        PartInputs {
            of,
            inputs: BTreeMap::new(),
        }
    }

    /// Puts an input in its place, and returns the one that was there.
    pub(super) fn put(&mut self, index: u32, input: usize) -> Option<usize> {
        self.inputs.insert(index, input)
    }

    /// Returns the inputs in order of their parts, if all are there.
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
