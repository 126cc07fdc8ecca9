//! Calls that fail, counted on two trees: a question that a file system never answers is not asked for each
//! file again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Result, ensure};

use super::super::place::Place;
use super::super::sheet::Verdict;
use super::super::tree::{FEW, MANY};
use super::Faults;
use crate::sh;

/// Failing calls that [`MANY`] files may have more than [`FEW`]: one for a hundred files.
const LIMIT: usize = (MANY - FEW) / 100;

/// Number of runs, of which the one with the fewest failing calls counts. A machine that
/// proactively reclaims memory (`DAMON_RECLAIM`, a balloon) had over a hundred files of a cache
/// that was warm a second ago fail in one run of three, and none in the others.
const TRIES: usize = 10;

pub(super) fn check(place: &mut Place<'_>, states: &[&str]) -> Result<Verdict> {
    if !sh::has("strace") {
        return Ok(Verdict::Skip(
            "not installed: strace (package strace)".to_owned(),
        ));
    }
    let mut faults = Faults::default();
    let mut reported = Vec::new();
    for words in [&["hash", "--type=sha256"][..], &["dup", "scan"]] {
        for &state in states {
            let (mut failed, mut tries) = (more(place, words, state)?, 1);
            // Data that the kernel has dropped from its cache in between are read again: a call
            // failed for it, and rightly so. A call that a file system never answers fails every
            // time.
            while failed.sum > LIMIT && tries < TRIES {
                let again = more(place, words, state)?;
                if again.sum < failed.sum {
                    failed = again;
                }
                tries += 1;
            }
            let More { sum, most, all } = failed;
            faults.unless(sum <= LIMIT, || {
                format!(
                    "{} {state}: {sum} calls more fail on {MANY} files than on {FEW}{most}, the \
                     least of {tries} runs",
                    words[0]
                )
            });
            reported.push(format!("{} {state} {all}", words[0]));
        }
    }
    faults.result()?;
    Ok(Verdict::Ok(format!(
        "of {MANY} files: {}",
        reported.join(", ")
    )))
}

/// Failing calls of one pair of runs.
struct More {
    /// Failing calls on the larger tree beyond those on the smaller one. Starting and probing the
    /// file system costs some as well: those are in both.
    sum: usize,
    /// The call that fails most often, in brackets.
    most: String,
    /// All failing calls on the larger tree.
    all: usize,
}

fn more(place: &mut Place<'_>, words: &[&str], state: &str) -> Result<More> {
    let mut of = |dir| {
        match state {
            "cold" => place.remount()?,
            _ => drop(failing(place, words, dir)?),
        }
        failing(place, words, dir)
    };
    let (many, few) = (of("many")?, of("few")?);
    let more: Vec<(&String, usize)> = many
        .iter()
        .map(|(call, count)| {
            (
                call,
                count.saturating_sub(few.get(call).copied().unwrap_or(0)),
            )
        })
        .collect();
    let most = more.iter().max_by_key(|(_, count)| *count);
    Ok(More {
        sum: more.iter().map(|(_, count)| count).sum(),
        most: most.map_or_else(String::new, |(call, count)| format!(" ({count} {call})")),
        all: many.values().sum(),
    })
}

/// Returns the failing calls of a run over a directory beside the tree, by name.
fn failing(place: &Place<'_>, words: &[&str], dir: &str) -> Result<BTreeMap<String, usize>> {
    let counts = place.beside("calls");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-c", "-o"])
        .arg(&counts)
        .arg(place.lab.binary())
        .args(words.iter().map(OsStr::new))
        .arg(place.mount_point().join(dir));
    let outcome = place.lab.run(&mut command)?;
    ensure!(
        outcome.code == 0,
        "strace {}: exit code {}: {}",
        words[0],
        outcome.code,
        outcome.said()
    );
    Ok(errors(&std::fs::read_to_string(&counts)?))
}

/// Returns the errors column of `strace -c`. A futex that another thread changed first has not
/// failed.
fn errors(text: &str) -> BTreeMap<String, usize> {
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, _, _, _, errors, call] = fields[..] else {
                return None;
            };
            let errors = errors.parse().ok()?;
            (!["total", "futex"].contains(&call)).then(|| (call.to_owned(), errors))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_from_the_table() {
        let text = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 40.00    0.000400           4       100        99 preadv2
 30.00    0.000300           3       100           close
 20.00    0.000200           2        10         3 futex
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000           4       210       102 total
";
        let found = errors(text);
        assert_eq!(found.len(), 1);
        assert_eq!(found["preadv2"], 99);
    }
}
