//! README's table of figures, between two markers: every row with a target, a line a job.

use std::fmt::Write;

use anyhow::{Context, Result};

use super::chart;
use super::record::{Record, Row, Target};

const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";

/// Charts that README shows; the record shows all.
const SHOWN: &[&str] = &["hash", "dup", "integrity"];

/// README with this record's table in it.
pub(crate) fn updated(readme: &str, record: &Record) -> Result<String> {
    let (before, rest) = readme
        .split_once(BEGIN)
        .with_context(|| format!("README.md holds no {BEGIN}"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("README.md holds no {END} after {BEGIN}"))?;
    Ok(format!("{before}{BEGIN}\n{}{END}{after}", table(record)))
}

fn table(record: &Record) -> String {
    let mut out = String::new();
    let _ = write(&mut out, record);
    out
}

fn write(out: &mut String, record: &Record) -> std::fmt::Result {
    let fact = |name: &str| {
        let fact = record.facts.iter().find(|(key, _)| key == name);
        fact.map_or("", |(_, value)| value.as_str())
    };
    let stem = record.stem();
    writeln!(
        out,
        "{}, {} CPUs, {} ({} files), warm cache unless said; whole processes in alternating \
         pairs, medians; {}. {}; every row with its pairs and commands: \
         [benches/record/{stem}.md](benches/record/{stem}.md).\n",
        fact("CPU"),
        fact("CPUs allowed"),
        record.tree,
        record.tree_files,
        record.date,
        record.score()
    )?;
    for (name, title) in chart::names(record).filter(|(name, _)| SHOWN.contains(name)) {
        writeln!(out, "![{title}](benches/record/{stem}-{name}.svg)\n")?;
    }
    writeln!(
        out,
        "| job | bc | others, and how many times as much they take (target in parentheses) |"
    )?;
    writeln!(out, "|---|--:|---|")?;
    let rows: Vec<&Row> = record
        .rows
        .iter()
        .filter(|r| !r.targets.is_empty())
        .collect();
    let mut jobs: Vec<&str> = Vec::new();
    for row in &rows {
        if !jobs.contains(&row.job.as_str()) {
            jobs.push(&row.job);
        }
    }
    for job in jobs {
        let of_job: Vec<&Row> = rows.iter().copied().filter(|r| r.job == job).collect();
        let ours = of_job[0].figure(of_job[0].our_median());
        let others: Vec<String> = of_job.iter().map(|row| other(row)).collect();
        writeln!(out, "| {job} | {ours} | {} |", others.join("<br>"))?;
    }
    if let Some(found) = &record.correctness {
        let total = found.passed + found.failed.len();
        writeln!(
            out,
            "\nCross-validation against the standard tools in the same run: {}/{total} checks pass.",
            found.passed
        )?;
    }
    Ok(())
}

fn other(row: &Row) -> String {
    let ratio = row.ratio();
    let targets: Vec<String> = row
        .targets
        .iter()
        .enumerate()
        .map(|(at, (target, note))| {
            // The first is the target; what the others are must be said.
            let note = if at == 0 || note.is_empty() {
                String::new()
            } else {
                format!("{note} ")
            };
            let missed = if target.met(ratio) {
                ""
            } else {
                ", **missed**"
            };
            let wanted = match target {
                Target::AtLeast(times) => format!("≥ {times}×"),
                Target::AtMost(share) => format!("≤ {share}×"),
            };
            format!("{note}{wanted}{missed}")
        })
        .collect();
    let ratio = match row.target() {
        Some(Target::AtMost(_)) => format!("bc takes {:.2}× as much", 1.0 / ratio),
        _ => format!("{ratio:.2}×"),
    };
    format!(
        "{} {}: {ratio} ({})",
        row.peer,
        row.figure(row.their_median()),
        targets.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::record::{Record, Row, STRETCH, Target};
    use super::{BEGIN, END, updated};

    fn record() -> Record {
        let row = |peer: &str, theirs: f64, target: Target| Row {
            area: "hash".to_owned(),
            job: "SHA-256 of the tree".to_owned(),
            peer: peer.to_owned(),
            ours: String::new(),
            theirs: String::new(),
            unit: "s".to_owned(),
            pairs: vec![(1.0, theirs)],
            targets: vec![
                (target, String::new()),
                (Target::AtLeast(9.0), STRETCH.to_owned()),
            ],
        };
        Record {
            area: "all".to_owned(),
            date: "2026-01-02".to_owned(),
            cpu: "Some CPU".to_owned(),
            commit: String::new(),
            facts: Vec::new(),
            load_before: String::new(),
            load_after: String::new(),
            tree: "t".to_owned(),
            tree_files: 1,
            runs: 5,
            rows: vec![
                row("good", 5.0, Target::AtLeast(4.0)),
                row("bad", 2.0, Target::AtLeast(4.0)),
                row("floor", 0.5, Target::AtMost(1.5)),
            ],
            not_run: Vec::new(),
            tools: Vec::new(),
            correctness: None,
            finished: true,
        }
    }

    #[test]
    fn only_what_lies_between_the_markers_changes() {
        let old = format!("head\n{BEGIN}\nold\n{END}\ntail\n");
        let new = updated(&old, &record()).unwrap();
        assert!(new.starts_with("head\n") && new.ends_with(&format!("{END}\ntail\n")));
        assert!(!new.contains("old"));
        assert!(new.contains("1 of 3 targets met, 0 of 3 stretch targets"));
        assert!(new.contains("good 5.000 s: 5.00× (≥ 4×; stretch ≥ 9×, **missed**)"));
        assert!(new.contains("bad 2.000 s: 2.00× (≥ 4×, **missed**; "));
        assert!(new.contains("floor 0.500 s: bc takes 2.00× as much (≤ 1.5×, **missed**; "));
        assert!(new.contains("2026-01-02-some-cpu-hash.svg"));
        assert_eq!(updated(&new, &record()).unwrap(), new);
    }

    #[test]
    fn missing_markers_are_said() {
        assert!(updated("no table", &record()).is_err());
        assert!(updated(&format!("{END}{BEGIN}"), &record()).is_err());
    }
}
