//! The record of one bench run as Markdown, and its summary on the terminal.

use std::fmt::Write;

use super::chart;
use super::record::{BenchRecord, Row, Target};

/// Returns the whole record.
pub(crate) fn text(record: &BenchRecord) -> String {
    let mut out = String::new();
    let _ = write(&mut out, record);
    out
}

fn write(out: &mut String, record: &BenchRecord) -> std::fmt::Result {
    writeln!(out, "# {} on {}\n", record.date, record.cpu)?;
    let stem = record.stem();
    writeln!(
        out,
        "Written by `cargo xtask bench {}`; not edited. The single times are in [{stem}.json]({stem}.json).\n",
        record.area
    )?;
    if record.finished {
        for (name, title) in chart::names(record) {
            writeln!(out, "![{title}]({stem}-{name}.svg)\n")?;
        }
    } else {
        writeln!(out, "**Not finished**: the rows measured so far.\n")?;
    }
    facts(out, record)?;
    writeln!(
        out,
        "Whole processes, their output to /dev/null, timed in alternating pairs (ours, theirs, \
         ours, theirs, …) after one warm-up each; cold rows drop the page cache before each run. \
         At least {} pairs where a run takes less than 5 s, and more until they agree on which \
         side of the target the row is; 3 above that, and where one takes more than a minute the \
         first pair alone counts. The ratio is that of the medians, then \
         the median of the pairs' ratios; `×` is how many times as long the other takes, `of` \
         the share of the other's time (or memory) that we take.\n",
        record.runs
    )?;
    writeln!(out, "{}.\n", record.score())?;
    let mut left: Vec<(usize, &Row)> = record.rows.iter().enumerate().collect();
    for (title, is_of) in SECTIONS {
        let (rows, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, row)| is_of(row));
        left = others;
        section(out, title, &rows)?;
    }
    misses(out, record)?;
    if !record.not_run.is_empty() {
        writeln!(out, "\n## Not run\n")?;
        for (job, reason) in &record.not_run {
            writeln!(out, "- {job}: {reason}")?;
        }
    }
    correctness(out, record)?;
    writeln!(out, "\n## Commands\n")?;
    for (at, row) in record.rows.iter().enumerate() {
        writeln!(out, "{}. `{}` against `{}`", at + 1, row.ours, row.theirs)?;
    }
    writeln!(out, "\n## Versions\n")?;
    for (name, version) in &record.tools {
        writeln!(out, "- {name}: {version}")?;
    }
    Ok(())
}

/// A title, and the filter of the rows below it.
type Section = (&'static str, fn(&Row) -> bool);

/// Titles by the kind of peer that a row is measured against: the first section that takes a row
/// has it. The floor comes first, as it is the best that the machine lets a program reach.
const SECTIONS: &[Section] = &[
    ("Against the floor", Row::is_floor),
    ("Against bc itself", |row| row.peer.starts_with("bc ")),
    ("Memory", |row| row.unit != "s"),
    ("Against other programs", |_| true),
];

fn section(out: &mut String, title: &str, rows: &[(usize, &Row)]) -> std::fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "## {title}\n")?;
    writeln!(
        out,
        "| # | job | against | ours | theirs | ratio | pairs | target | |"
    )?;
    writeln!(out, "|--:|---|---|--:|--:|--:|--:|---|---|")?;
    for (at, row) in rows {
        for (line, target) in lines(row) {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {line} | {} | {target} |",
                at + 1,
                row.job,
                row.peer,
                row.figure(row.our_median()),
                row.figure(row.their_median()),
                row.pairs.len()
            )?;
        }
    }
    writeln!(out)
}

/// Lists every target that was missed, with the ratio of the floor: a program that only makes the
/// system calls would reach that much.
fn misses(out: &mut String, record: &BenchRecord) -> std::fmt::Result {
    let missed: Vec<(&Row, Target)> = record
        .rows
        .iter()
        .flat_map(|row| row.targets.iter().map(move |target| (row, target.0)))
        .filter(|(row, target)| !target.met(row.ratio()))
        .collect();
    if missed.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Missed\n")?;
    writeln!(
        out,
        "| job | against | got | wanted | the floor alone |\n|---|---|--:|--:|---|"
    )?;
    for (row, target) in missed {
        let got = match target {
            Target::AtLeast(_) => format!("{:.2}×", row.ratio()),
            Target::AtMost(_) => format!("{:.2} of", 1.0 / row.ratio()),
        };
        let floor = record.floor_of(row).map_or_else(String::new, |floor| {
            let most = row.their_median() / floor;
            let verdict = if target.met(most) {
                ""
            } else {
                ": out of reach here"
            };
            format!("would get {most:.2}×{verdict}")
        });
        let wanted = shown(target);
        writeln!(
            out,
            "| {} | {} | {got} | {wanted} | {floor} |",
            row.job, row.peer
        )?;
    }
    writeln!(
        out,
        "\nReasons beyond that, and what was tried: [README.md](README.md#missed-targets).\n"
    )
}

fn facts(out: &mut String, record: &BenchRecord) -> std::fmt::Result {
    writeln!(out, "| | |\n|---|---|")?;
    for (name, value) in &record.facts {
        writeln!(out, "| {name} | {value} |")?;
    }
    writeln!(out, "| commit | {} |", record.commit)?;
    let (before, after) = (&record.load_before, &record.load_after);
    writeln!(out, "| load before, after | {before}, {after} |")?;
    let tree = &record.tree;
    writeln!(out, "| `$TREE` | {tree}: {} files |", record.tree_files)?;
    writeln!(out, "| `$COPIES` | four copies of {tree} |")?;
    writeln!(
        out,
        "| `$LIST`, `$N` | its files in path order; the CPUs allowed |"
    )?;
    writeln!(
        out,
        "| `$BIG`, `$SMALL`, `$TEN` | a file of 1 GiB; a file of 100 bytes; ten files of 4 KiB |"
    )?;
    writeln!(
        out,
        "| `$SHAPE`, `$SHAPELIST` | the shape of work that the row names; its files in path order |\n"
    )
}

fn correctness(out: &mut String, record: &BenchRecord) -> std::fmt::Result {
    let Some(found) = &record.correctness else {
        return Ok(());
    };
    let total = found.passed + found.failed.len();
    writeln!(out, "\n## Correctness\n")?;
    writeln!(
        out,
        "`cargo xtask correctness all {}`: {}/{total} checks pass, {} not run.",
        found.trees,
        found.passed,
        found.not_run.len()
    )?;
    for (what, names) in [("failed", &found.failed), ("not run", &found.not_run)] {
        if !names.is_empty() {
            writeln!(out)?;
        }
        for name in names {
            writeln!(out, "- {what}: {name}")?;
        }
    }
    Ok(())
}

/// Returns a target in the words of a table.
fn shown(target: Target) -> String {
    match target {
        Target::AtLeast(x) => format!("≥ {x}×"),
        Target::AtMost(x) => format!("≤ {x} of"),
    }
}

/// Returns the ratio and the target columns of a row, one line a target.
fn lines(row: &Row) -> Vec<(String, String)> {
    let (ratio, pairs) = (row.ratio(), row.median_of_ratios());
    let times = format!("{ratio:.2}×, {pairs:.2}×");
    let share = format!("{:.2} of, {:.2} of", 1.0 / ratio, 1.0 / pairs);
    if row.targets.is_empty() {
        let ratio = if row.is_floor() { share } else { times };
        return vec![(ratio, " |".to_owned())];
    }
    let line = |(target, note): &(Target, String)| {
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
        let ratio = match target {
            Target::AtLeast(_) => &times,
            Target::AtMost(_) => &share,
        };
        (ratio.clone(), format!("{}{note} | {met}", shown(*target)))
    };
    row.targets.iter().map(line).collect()
}

/// Prints the targets missed, and how many were met.
pub(crate) fn summary(record: &BenchRecord) {
    println!();
    for row in &record.rows {
        for (target, (ratio, shown)) in row.targets.iter().zip(lines(row)) {
            if !target.0.met(row.ratio()) {
                let shown = shown.replace('*', "");
                println!("missed: {} / {}: {ratio}, {shown}", row.job, row.peer);
            }
        }
    }
    println!("{}, {} rows not run", record.score(), record.not_run.len());
}
