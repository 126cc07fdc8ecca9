//! README's chart and the guide's table of figures, each between two markers: figures that users ask
//! for, a job against the tool that is usual for it. The record has the rest.
//!
//! The chart is text: an image would need an address of its own on a registry's page, and is no
//! part of the package.

use std::fmt::Write;

use anyhow::{Context, Result};

use super::record::{BenchRecord, Row};

/// Page of the guide that has the table.
pub(crate) const PAGE: &str = "src/guide/compare.md";

const TABLE: [&str; 2] = ["<!-- bench:begin -->", "<!-- bench:end -->"];
const CHART: [&str; 2] = ["<!-- chart:begin -->", "<!-- chart:end -->"];

/// Characters of the chart's longest bar.
const BAR: f64 = 24.0;

/// Words of the chart and the table for a row, its job and its peer.
const ROWS: &[(&str, &str, &str)] = &[
    (
        "SHA-256 of a source tree",
        "SHA-256 of the tree",
        "xargs sha256sum",
    ),
    (
        "XXH128 of a source tree",
        "XXH128 of the tree",
        "xargs xxhsum",
    ),
    (
        "SHA-256 of one large file",
        "SHA-256 of a 1 GiB file",
        "sha256sum",
    ),
    (
        "SHA-256 of one small file",
        "start-up, one small file",
        "sha256sum",
    ),
    (
        "duplicates in a source tree",
        "duplicates in the tree",
        "jdupes",
    ),
    (
        "duplicates in 4 copies of a tree",
        "duplicates in four copies",
        "fclones",
    ),
    (
        "duplicates in a tree, not cached",
        "duplicates in the tree, cold cache",
        "jdupes",
    ),
    (
        "hard-linking 35,000 pairs",
        "35,000 pairs, hard links",
        "rdfind",
    ),
    (
        "recording a source tree, SHA-256",
        "manifest, SHA-256",
        "hashdeep",
    ),
];

/// Returns README with this record's chart in it.
pub(crate) fn with_chart(readme: &str, record: &BenchRecord) -> Result<String> {
    between(readme, CHART, &chart(record)).context("README.md")
}

/// Returns the guide's page with this record's table in it.
pub(crate) fn with_table(page: &str, record: &BenchRecord) -> Result<String> {
    between(page, TABLE, &table(record)).context(PAGE)
}

/// Returns `text` with `new` between the two marks.
fn between(text: &str, [begin, end]: [&str; 2], new: &str) -> Result<String> {
    let (before, rest) = text
        .split_once(begin)
        .with_context(|| format!("there is no {begin}"))?;
    let (_, after) = rest
        .split_once(end)
        .with_context(|| format!("there is no {end} after {begin}"))?;
    Ok(format!("{before}{begin}\n{new}{end}{after}"))
}

fn chart(record: &BenchRecord) -> String {
    let rows: Vec<(&str, &Row)> = rows(record).collect();
    let ratios = rows.iter().map(|(_, row)| row.ratio());
    let most = ratios.fold(f64::MIN_POSITIVE, f64::max);
    let mut out = format!(
        "```text\nTime taken by the usual tool, as a multiple of bc's time ({}, {} CPUs, {}):\n\n",
        record.tree,
        fact(record, "CPUs allowed"),
        record.date
    );
    for (title, row) in rows {
        let (bar, ratio) = (bar(row.ratio() / most), row.ratio());
        let _ = writeln!(out, "{title:<32}  {:<15}  {bar} {ratio:.1}×", row.peer);
    }
    out.push_str("```\n");
    out
}

/// Returns a bar of this share of the longest one, to an eighth of a character.
fn bar(share: f64) -> String {
    let eighths = (share * BAR * 8.0).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}

fn fact<'a>(record: &'a BenchRecord, name: &str) -> &'a str {
    let fact = record.facts.iter().find(|(key, _)| key == name);
    fact.map_or("", |(_, value)| value.as_str())
}

/// Returns the rows that both have of a record, with the words for each.
fn rows(record: &BenchRecord) -> impl Iterator<Item = (&'static str, &Row)> {
    ROWS.iter().filter_map(|(title, job, peer)| {
        let mut rows = record.rows.iter();
        let row = rows.find(|row| row.job == *job && row.peer == *peer)?;
        Some((*title, row))
    })
}

fn table(record: &BenchRecord) -> String {
    let mut out = String::new();
    let _ = write(&mut out, record);
    out
}

fn write(out: &mut String, record: &BenchRecord) -> std::fmt::Result {
    let stem = record.stem();
    writeln!(
        out,
        "{}, {} CPUs, {} ({} files), warm cache unless stated; entire processes in alternating \
         pairs, medians; {}. Every row, with floors: \
         [benches/record/{stem}.md](../../benches/record/{stem}.md).\n",
        fact(record, "CPU"),
        fact(record, "CPUs allowed"),
        record.tree,
        record.tree_files,
        record.date
    )?;
    writeln!(out, "| job | bc | the usual tool | |")?;
    writeln!(out, "|---|--:|--:|--:|")?;
    for (title, row) in rows(record) {
        writeln!(
            out,
            "| {title} | {} | {} {} | {:.1}× |",
            row.figure(row.our_median()),
            row.peer,
            row.figure(row.their_median()),
            row.ratio()
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::{BenchRecord, Row, STRETCH, Target};
    use super::{BAR, CHART, TABLE, bar, with_chart, with_table};

    fn record() -> BenchRecord {
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
        BenchRecord {
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
                row("xargs sha256sum", 5.0, Target::AtLeast(4.0)),
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
        let [begin, end] = TABLE;
        let old = format!("head\n{begin}\nold\n{end}\ntail\n");
        let new = with_table(&old, &record()).unwrap();
        assert!(new.starts_with(&format!("head\n{begin}")));
        assert!(new.ends_with(&format!("{end}\ntail\n")) && !new.contains("old"));
        let line = "| SHA-256 of a source tree | 1.000 s | xargs sha256sum 5.000 s | 5.0× |\n";
        assert!(new.contains(line) && !new.contains("bad"));
        assert!(new.contains("](../../benches/record/2026-01-02-some-cpu.md)"));
        assert_eq!(with_table(&new, &record()).unwrap(), new);
    }

    #[test]
    fn the_chart_has_the_rows_of_the_table_alone() {
        let [begin, end] = CHART;
        let new = with_chart(&format!("{begin}\n{end}\n"), &record()).unwrap();
        let longest = "█".repeat(BAR as usize);
        let line = format!("SHA-256 of a source tree          xargs sha256sum  {longest} 5.0×\n");
        assert!(new.contains(&line), "{new}");
        assert!(!new.contains("bad") && !new.contains("floor"));
        assert_eq!(with_chart(&new, &record()).unwrap(), new);
    }

    #[test]
    fn bars_end_at_an_eighth_of_a_character() {
        assert_eq!(bar(0.5), "█".repeat(12));
        assert_eq!(bar(1.0 / BAR), "█");
        assert_eq!(bar(1.0 / (8.0 * BAR)), "▏");
    }

    #[test]
    fn missing_markers_are_said() {
        assert!(with_chart("no chart", &record()).is_err());
        let [begin, end] = TABLE;
        assert!(with_table(&format!("{end}{begin}"), &record()).is_err());
        assert!(with_table(begin, &record()).is_err());
    }
}
