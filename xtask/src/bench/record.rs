//! Results of one bench run: raw times, from which the Markdown, the charts and README's table are
//! made.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::machine;
use crate::correctness::Totals;
use crate::median::median;

/// The note of a target beyond the one that is asked for, in records of 2026-11-21 and before.
pub(crate) const STRETCH: &str = "stretch";

/// Ratio that a figure must reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Target {
    /// The peer takes at least this many times as long as we do.
    AtLeast(f64),
    /// We take at most this many times as much as the other.
    AtMost(f64),
}

impl Target {
    pub(crate) fn met(self, ratio: f64) -> bool {
        ratio >= self.as_ratio()
    }

    /// Returns the ratio, theirs to ours, that meets it.
    pub(crate) fn as_ratio(self) -> f64 {
        match self {
            Target::AtLeast(times) => times,
            Target::AtMost(share) => 1.0 / share,
        }
    }
}

/// One figure against another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) area: String,
    pub(crate) job: String,
    /// Peer that it is measured against, in a word or two.
    pub(crate) peer: String,
    pub(crate) ours: String,
    pub(crate) theirs: String,
    /// `s`, `MiB` or `B`.
    pub(crate) unit: String,
    /// Ours and theirs, pair by pair.
    pub(crate) pairs: Vec<(f64, f64)>,
    pub(crate) targets: Vec<(Target, String)>,
}

impl Row {
    pub(crate) fn our_median(&self) -> f64 {
        median(self.pairs.iter().map(|p| p.0))
    }

    pub(crate) fn their_median(&self) -> f64 {
        median(self.pairs.iter().map(|p| p.1))
    }

    /// Returns true if it is against the bare system calls.
    pub(crate) fn is_floor(&self) -> bool {
        self.peer.starts_with("floor")
    }

    /// Returns the ratio of the medians, theirs to ours.
    pub(crate) fn ratio(&self) -> f64 {
        self.their_median() / self.our_median()
    }

    pub(crate) fn median_of_ratios(&self) -> f64 {
        median(self.pairs.iter().map(|p| p.1 / p.0))
    }

    /// Returns the target that counts: the first one, where others are stretches or notes.
    pub(crate) fn target(&self) -> Option<Target> {
        self.targets.first().map(|t| t.0)
    }

    pub(crate) fn figure(&self, value: f64) -> String {
        match self.unit.as_str() {
            "s" if value < 0.1 => format!("{:.2} ms", value * 1000.0),
            "s" => format!("{value:.3} s"),
            unit => format!("{value:.1} {unit}"),
        }
    }
}

/// Results of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BenchRecord {
    pub(crate) area: String,
    pub(crate) date: String,
    pub(crate) cpu: String,
    pub(crate) commit: String,
    /// Facts about the machine, by name.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) load_before: String,
    pub(crate) load_after: String,
    pub(crate) tree: String,
    pub(crate) tree_files: usize,
    pub(crate) runs: usize,
    pub(crate) rows: Vec<Row>,
    /// Jobs that were not measured, with the reason.
    pub(crate) not_run: Vec<(String, String)>,
    /// Versions of the peers.
    pub(crate) tools: Vec<(String, String)>,
    pub(crate) correctness: Option<Totals>,
    pub(crate) finished: bool,
}

impl BenchRecord {
    /// Returns the name without an ending: `2026-11-21-amd-epyc`, and the area unless it is all.
    pub(crate) fn stem(&self) -> String {
        let cpu = self.cpu.to_lowercase();
        let words = cpu.split(|c: char| !c.is_ascii_alphanumeric());
        let mut words: Vec<&str> = words.filter(|w| !w.is_empty()).take(6).collect();
        words.insert(0, &self.date);
        if self.area != "all" {
            words.push(&self.area);
        }
        words.join("-")
    }

    /// Returns `5 of 8 targets met, 1 of 2 stretch targets`.
    pub(crate) fn score(&self) -> String {
        let count = |stretch: bool| {
            let targets = self.rows.iter().flat_map(|row| {
                let wanted = row.targets.iter().filter(|t| (t.1 == STRETCH) == stretch);
                wanted.map(|t| t.0.met(row.ratio()))
            });
            targets.fold((0, 0), |(met, all), ok| (met + usize::from(ok), all + 1))
        };
        let ((met, all), (far, furthest)) = (count(false), count(true));
        match furthest {
            0 => format!("{met} of {all} targets met"),
            _ => format!("{met} of {all} targets met, {far} of {furthest} stretch targets"),
        }
    }

    /// Returns the seconds that the floor of a row's job takes, if that was measured.
    pub(crate) fn floor_of(&self, row: &Row) -> Option<f64> {
        let of_job = |other: &&Row| other.job == row.job && other.is_floor();
        let floor = self.rows.iter().find(of_job).filter(|_| !row.is_floor());
        floor.map(Row::their_median)
    }

    /// Returns the rows of an area.
    pub(crate) fn rows_of<'a>(&'a self, area: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.area == area)
    }

    pub(crate) fn load(path: &Path) -> Result<BenchRecord> {
        let text = std::fs::read(path).with_context(|| path.display().to_string())?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    }
}

/// Returns a record of the day and the machine, with nothing measured yet.
pub(crate) fn begin(area: &str, runs: usize, tree: &Path, tree_files: usize) -> BenchRecord {
    let facts = machine::facts(tree);
    BenchRecord {
        area: area.to_owned(),
        date: machine::date(),
        cpu: machine::cpu(),
        commit: machine::commit(),
        facts: facts.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
        load_before: String::new(),
        load_after: String::new(),
        tree: crate::datasets::name(tree),
        tree_files,
        runs,
        rows: Vec::new(),
        not_run: Vec::new(),
        tools: Vec::new(),
        correctness: None,
        finished: false,
    }
}
