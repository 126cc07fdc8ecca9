//! The checks, one column or a few each. They leave the tree as they found it; where one could not,
//! it is laid again.

mod calls;
mod copy;
mod damage;
mod dup;
mod hash;
mod manifest;
mod prune;
mod space;

use anyhow::{Result, bail};

use super::kinds::Kind;
use super::place::{self, Place};
use super::sheet::Row;
use super::snapshot::shown;
use super::tools::Lab;
use super::tree;

/// Runs every check on one kind.
pub(super) fn all(lab: &Lab, kind: &'static Kind, quick: bool, row: &mut Row) {
    let mut place = match Place::new(lab, kind, &tree::checked) {
        Ok(place) => place,
        Err(error) => {
            row.skip_all(&format!("cannot be had: {error:#}"));
            if let Err(error) = place::clear(&lab.scratch.join(kind.name)) {
                eprintln!("xtask: {}: {error:#}", kind.name);
            }
            return;
        }
    };
    row.set("hash", hash::check(&place));
    row.set("dup", dup::check(&place));
    row.set("cache", dup::cache(&mut place));
    prune::check(&mut place, row);
    row.set("manifest", manifest::check(&mut place));
    row.set("update", manifest::update(&mut place));
    row.set("rewrite", damage::rewrite(&mut place));
    // How often a cold file is not there yet depends on how busy the machine is: not for CI.
    let states: &[&str] = if quick { &["warm"] } else { &["cold", "warm"] };
    row.set("calls", calls::check(&mut place, states));
    row.set("copy", copy::check(&place));
    // Last: damage stays.
    row.set("damage", damage::damage(&mut place));
    if let Err(error) = place.close() {
        eprintln!("xtask: {}: {error:#}", kind.name);
        let _ = place::clear(&lab.scratch.join(kind.name));
    }
}

/// Faults that one check found; all of it is looked at before it fails.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    /// Notes a fault unless `holds`.
    fn unless(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(what());
        }
    }

    /// Notes the differences, if there are any.
    fn differences(&mut self, when: &str, reported: &[String]) {
        self.unless(reported.is_empty(), || {
            format!("{when}: {}", shown(reported))
        });
    }

    /// Returns an error of all faults, if there are any.
    fn result(self) -> Result<()> {
        if !self.0.is_empty() {
            bail!("{}", self.0.join("; "));
        }
        Ok(())
    }
}

/// Returns a number of a run's metrics.
fn metric(file: &std::path::Path, name: &str) -> Result<u64> {
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(file)?)?;
    match json[name]
        .as_u64()
        .or_else(|| json[name].as_f64().map(|n| n as u64))
    {
        Some(number) => Ok(number),
        None => bail!("the metrics hold no {name}"),
    }
}
