//! The record of one bench run as Markdown, and its summary on the terminal.

use std::fmt::Write;

use anyhow::Result;

use super::{Bench, Row, Target, machine};
use crate::sh;

/// The whole record.
pub(crate) fn text(bench: &Bench, area: &str) -> String {
    let mut out = String::new();
    let _ = write(&mut out, bench, area);
    out
}

fn write(out: &mut String, bench: &Bench, area: &str) -> std::fmt::Result {
    let tree = bench.tree_name();
    writeln!(out, "# {} on {}\n", machine::date(), machine::cpu())?;
    writeln!(out, "Written by `cargo xtask bench {area}`; not edited.\n")?;
    writeln!(out, "| | |\n|---|---|")?;
    for (name, value) in machine::facts(&bench.tree) {
        writeln!(out, "| {name} | {value} |")?;
    }
    writeln!(
        out,
        "| load before, after | {}, {} |",
        bench.load_before,
        machine::load()
    )?;
    writeln!(out, "| `$TREE` | {tree}: {} files |", bench.tree_files)?;
    writeln!(out, "| `$COPIES` | four copies of {tree} |")?;
    writeln!(
        out,
        "| `$LIST`, `$N` | its files in path order; the CPUs allowed |"
    )?;
    writeln!(
        out,
        "| `$BIG`, `$SMALL` | a file of 1 GiB; a file of 100 bytes |\n"
    )?;
    writeln!(
        out,
        "Whole processes, their output to /dev/null, timed in alternating pairs (ours, theirs, \
         ours, theirs, …) after one warm-up each. The ratio is that of the medians, then the \
         median of the pairs' ratios; `×` is how many times as long the other takes, `of` the \
         share of the other's time (or memory) that we take.\n"
    )?;
    writeln!(
        out,
        "| # | job | against | ours | theirs | ratio | pairs | target | |"
    )?;
    writeln!(out, "|--:|---|---|--:|--:|--:|--:|---|---|")?;
    for (at, row) in bench.rows.iter().enumerate() {
        for (line, target) in lines(row) {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {line} | {} | {target} |",
                at + 1,
                row.job,
                row.peer(),
                row.figure(row.our_median),
                row.figure(row.their_median),
                row.pairs
            )?;
        }
    }
    if !bench.not_run.is_empty() {
        writeln!(out, "\n## Not run\n")?;
        for line in &bench.not_run {
            writeln!(out, "- {}", hide_paths(line, bench))?;
        }
    }
    writeln!(out, "\n## Commands\n")?;
    for (at, row) in bench.rows.iter().enumerate() {
        writeln!(out, "{}. `{}` against `{}`", at + 1, row.ours, row.theirs)?;
    }
    writeln!(out, "\n## Versions\n")?;
    for (name, version) in &bench.tools {
        writeln!(out, "- {name}: {version}")?;
    }
    Ok(())
}

impl Row {
    /// What a row is measured against, in a word or two.
    fn peer(&self) -> String {
        let both: Vec<String> = self.theirs.split(" && ").map(peer).collect();
        both.join(" + ")
    }

    fn figure(&self, value: f64) -> String {
        match self.unit {
            "s" if value < 0.1 => format!("{:.2} ms", value * 1000.0),
            "s" => format!("{value:.3} s"),
            unit => format!("{value:.1} {unit}"),
        }
    }

    fn ratio(&self) -> f64 {
        self.their_median / self.our_median
    }
}

/// What a command measures, in a word or two.
fn peer(command: &str) -> String {
    let last = command.rsplit("| ").next().unwrap_or(command);
    let mut words = last.split(' ');
    match words.next() {
        Some("xargs") => {
            let tool = words.find(|w| !w.starts_with('-') && !w.starts_with('$'));
            format!("xargs {}", tool.unwrap_or(""))
        }
        Some("xtask") => last
            .split(' ')
            .skip(1)
            .take(2)
            .collect::<Vec<_>>()
            .join(" "),
        Some(program) => program.to_owned(),
        None => String::new(),
    }
}

impl Target {
    fn met(self, ratio: f64) -> bool {
        match self {
            Target::AtLeast(times) => ratio >= times,
            Target::AtMost(share) => 1.0 / ratio <= share,
        }
    }
}

/// The ratio and the target columns of a row, one line a target.
fn lines(row: &Row) -> Vec<(String, String)> {
    let (ratio, pairs) = (row.ratio(), row.median_of_ratios);
    let times = format!("{ratio:.2}×, {pairs:.2}×");
    let share = format!("{:.2} of, {:.2} of", 1.0 / ratio, 1.0 / pairs);
    if row.targets.is_empty() {
        return vec![(times, " |".to_owned())];
    }
    let line = |(target, note): &(Target, &str)| {
        let met = if target.met(ratio) {
            "met"
        } else {
            "**missed**"
        };
        let note = if note.is_empty() {
            String::new()
        } else {
            format!(" ({note})")
        };
        match target {
            Target::AtLeast(x) => (times.clone(), format!("≥ {x}×{note} | {met}")),
            Target::AtMost(x) => (share.clone(), format!("≤ {x} of{note} | {met}")),
        }
    };
    row.targets.iter().map(line).collect()
}

/// A failed command's message may name where things lie.
fn hide_paths(line: &str, bench: &Bench) -> String {
    line.replace(&bench.tree.display().to_string(), "$TREE")
        .replace(&bench.scratch.display().to_string(), "$SCRATCH")
        .replace(&sh::root().display().to_string(), ".")
}

/// Writes the record and returns its path in the repository.
pub(crate) fn write_file(text: &str, area: &str) -> Result<String> {
    let slug: String = machine::cpu()
        .to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .take(6)
        .collect::<Vec<_>>()
        .join("-");
    let part = if area == "all" {
        String::new()
    } else {
        format!("-{area}")
    };
    let path = format!("benches/record/{}-{slug}{part}.md", machine::date());
    std::fs::create_dir_all(sh::root().join("benches/record"))?;
    std::fs::write(sh::root().join(&path), text)?;
    Ok(path)
}

/// The targets met and missed.
pub(crate) fn summary(bench: &Bench) {
    let (mut met, mut all) = (0, 0);
    println!();
    for row in &bench.rows {
        for (target, (ratio, shown)) in row.targets.iter().zip(lines(row)) {
            all += 1;
            if target.0.met(row.ratio()) {
                met += 1;
            } else {
                println!(
                    "missed: {} / {}: {ratio}, {}",
                    row.job,
                    row.peer(),
                    shown.replace('*', "")
                );
            }
        }
    }
    println!(
        "{met} of {all} targets met, {} rows not run",
        bench.not_run.len()
    );
}
