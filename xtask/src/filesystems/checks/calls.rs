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

/// Failing calls for a hundred files.
const PER_HUNDRED: usize = 1;

pub(super) fn check(place: &mut Place<'_>, states: &[&str]) -> Result<Verdict> {
    if !sh::has("strace") {
        return Ok(Verdict::Skip(
            "not installed: strace (package strace)".to_owned(),
        ));
    }
    let mut faults = Faults::default();
    let mut told = Vec::new();
    for words in [&["hash", "--type=sha256"][..], &["dup", "scan"]] {
        for &state in states {
            // Starting and learning what the file system answers costs some calls as well:
            // those are in both.
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
            let sum: usize = more.iter().map(|(_, count)| count).sum();
            let most = more.iter().max_by_key(|(_, count)| *count);
            let most = most.map_or_else(String::new, |(call, count)| format!(" ({count} {call})"));
            faults.unless(sum * 100 <= (MANY - FEW) * PER_HUNDRED, || {
                format!(
                    "{} {state}: {sum} calls more fail on {MANY} files than on {FEW}{most}",
                    words[0]
                )
            });
            told.push(format!(
                "{} {state} {}",
                words[0],
                many.values().sum::<usize>()
            ));
        }
    }
    faults.result()?;
    Ok(Verdict::Ok(format!("of {MANY} files: {}", told.join(", "))))
}

/// Failing calls of a run over a directory beside the tree, by name.
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

/// The errors column of `strace -c`. A futex that somebody else changed first has not failed.
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
