//! README's chart and table of figures, each between two markers: figures that users ask for, a job
//! against the tool that is usual for it. The record has the rest.

use std::fmt::Write;

use anyhow::{Context, Result};

use super::chart;
use super::record::{BenchRecord, Row};

const TABLE: [&str; 2] = ["<!-- bench:begin -->", "<!-- bench:end -->"];
const CHART: [&str; 2] = ["<!-- chart:begin -->", "<!-- chart:end -->"];

/// The name of README's chart.
const NAME: &str = "readme";
const TITLE: &str = "bit-crafts beside the usual tools";

/// README's words for a row, its job and its peer.
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
        "duplicates in four copies of it",
        "duplicates in four copies",
        "fclones",
    ),
    (
        "duplicates in it, nothing cached",
        "duplicates in the tree, cold cache",
        "jdupes",
    ),
    ("35,000 pairs linked", "35,000 pairs, hard links", "rdfind"),
    (
        "a source tree recorded, SHA-256",
        "manifest, SHA-256",
        "hashdeep",
    ),
];

/// Returns README with this record's chart and table in it.
pub(crate) fn updated(readme: &str, record: &BenchRecord) -> Result<String> {
    let readme = between(readme, CHART, &chart(record))?;
    between(&readme, TABLE, &table(record))
}

/// Returns `text` with `new` between the two marks.
fn between(text: &str, [begin, end]: [&str; 2], new: &str) -> Result<String> {
    let (before, rest) = text
        .split_once(begin)
        .with_context(|| format!("README.md holds no {begin}"))?;
    let (_, after) = rest
        .split_once(end)
        .with_context(|| format!("README.md holds no {end} after {begin}"))?;
    Ok(format!("{before}{begin}\n{new}{end}{after}"))
}

fn chart(record: &BenchRecord) -> String {
    let stem = record.stem();
    format!("![{TITLE}](benches/record/{stem}-{NAME}.svg)\n")
}

/// Returns the name and text of README's chart: the rows of its table, and neither targets nor
/// floors.
pub(crate) fn drawn(record: &BenchRecord) -> Option<(&'static str, String)> {
    let rows: Vec<Row> = rows(record)
        .map(|(title, row)| Row {
            job: title.to_owned(),
            targets: Vec::new(),
            ..row.clone()
        })
        .collect();
    let rows: Vec<&Row> = rows.iter().collect();
    let is_any = !rows.is_empty();
    is_any.then(|| (NAME, chart::of_times(record, TITLE, &rows)))
}

/// Returns the rows that README has of a record, with its words for each.
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
    let fact = |name: &str| {
        let fact = record.facts.iter().find(|(key, _)| key == name);
        fact.map_or("", |(_, value)| value.as_str())
    };
    let stem = record.stem();
    writeln!(
        out,
        "{}, {} CPUs, {} ({} files), warm cache unless said; whole processes in alternating \
         pairs, medians; {}. Every row, with floors: \
         [benches/record/{stem}.md](benches/record/{stem}.md).\n",
        fact("CPU"),
        fact("CPUs allowed"),
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
    use super::{CHART, TABLE, drawn, updated};

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
        let [[chart, chart_end], [begin, end]] = [CHART, TABLE];
        let old = format!("head\n{chart}\nold\n{chart_end}\ntext\n{begin}\nold\n{end}\ntail\n");
        let new = updated(&old, &record()).unwrap();
        assert!(new.starts_with("head\n") && new.ends_with(&format!("{end}\ntail\n")));
        assert!(new.contains(&format!("{chart_end}\ntext\n{begin}")));
        assert!(!new.contains("old"));
        let line = "| SHA-256 of a source tree | 1.000 s | xargs sha256sum 5.000 s | 5.0× |\n";
        assert!(new.contains(line));
        assert!(!new.contains("bad"));
        assert!(new.contains("2026-01-02-some-cpu-readme.svg"));
        assert_eq!(updated(&new, &record()).unwrap(), new);
    }

    #[test]
    fn the_chart_has_the_rows_of_the_table_alone() {
        let (name, svg) = drawn(&record()).unwrap();
        assert_eq!(name, "readme");
        assert!(svg.contains("SHA-256 of a source tree") && svg.contains("xargs sha256sum"));
        assert!(!svg.contains(">bad<") && !svg.contains("floor") && !svg.contains("target"));
    }

    #[test]
    fn missing_markers_are_said() {
        assert!(updated("no table", &record()).is_err());
        let [begin, end] = TABLE;
        let chart = CHART.concat();
        assert!(updated(&format!("{chart}{end}{begin}"), &record()).is_err());
        assert!(updated(&format!("{begin}{end}"), &record()).is_err());
    }
}
