//! Charts of a record as SVG: a bar a peer, from 1 (as fast as bc) to the ratio, on a logarithmic
//! axis, with a tick where a target lies. Colours follow the reader's light or dark scheme.

use std::fmt::Write;

use super::record::{BenchRecord, Row};

/// Areas that get a chart, with its title and the meaning of the bars.
const CHARTS: &[(&str, &str, &str)] = &[
    ("walk", "Walking a tree", TIMES),
    ("hash", "Hashing a tree", TIMES),
    ("kernels", "Hashing a tree with one instruction set", TIMES),
    ("files", "One large file, few small files, start-up", TIMES),
    ("threads", "One thread against all", TIMES),
    ("dup", "Finding duplicates", TIMES),
    ("integrity", "Recording and verifying a tree", TIMES),
    ("cold", "Cold page cache", TIMES),
    (
        "memory",
        "Peak memory",
        "how many times bc's memory others take, logarithmic",
    ),
];

const TIMES: &str = "how many times as long as bc others take, logarithmic";

const WIDTH: f64 = 760.0;
/// Left and right edge of the bars' area.
const LEFT: f64 = 178.0;
const RIGHT: f64 = 560.0;
const JOB: f64 = 26.0;
const BAR: f64 = 20.0;
const HEAD: f64 = 74.0;

const STYLE: &str = "\
text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:#1f2328}\
.title{font-size:16px;font-weight:600}\
.job{font-weight:600;paint-order:stroke;stroke:#ffffff;stroke-width:4px}.soft{fill:#636c76}\
.end{text-anchor:end}.mid{text-anchor:middle}.num{font-variant-numeric:tabular-nums}\
.back{fill:#ffffff}.grid{stroke:#d8dee4}.one{stroke:#636c76}.win{fill:#2f81d6}.loss{fill:#d9822b}\
.mark{stroke:#1f2328;stroke-width:2}.halo{stroke:#ffffff;stroke-width:5}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#9198a1}.back{fill:#0d1117}.job{stroke:#0d1117}\
.grid{stroke:#2b323b}.one{stroke:#9198a1}.win{fill:#4493f8}.loss{fill:#e09b4f}.mark{stroke:#f0f6fc}\
.halo{stroke:#0d1117}}";

/// Returns the name and title of each chart that the record has rows for.
pub(crate) fn names(
    record: &BenchRecord,
) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
    let wanted = |chart: &&(&str, &str, &str)| record.rows_of(chart.0).next().is_some();
    CHARTS
        .iter()
        .filter(wanted)
        .map(|(name, title, _)| (*name, *title))
}

/// Returns the name and text of each chart.
pub(crate) fn all(record: &BenchRecord) -> Vec<(&'static str, String)> {
    let mut charts = Vec::new();
    for (name, title, meaning) in CHARTS {
        let rows: Vec<&Row> = record.rows_of(name).collect();
        if !rows.is_empty() {
            charts.push((*name, of(record, title, meaning, &rows)));
        }
    }
    charts
}

fn of(record: &BenchRecord, title: &str, meaning: &str, rows: &[&Row]) -> String {
    let below = format!("{}; {}, {}", record.tree, record.cpu, record.date);
    svg(title, meaning, &below, rows)
}

/// The axis: a power of two at each end, both sides of 1.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn around(rows: &[&Row]) -> Axis {
        let (mut low, mut high) = (-0.5_f64, 1.0_f64);
        for row in rows {
            for value in marks(row) {
                low = low.min(value.log2() - 0.15);
                high = high.max(value.log2() + 0.15);
            }
        }
        Axis { low, high }
    }

    fn x(&self, ratio: f64) -> f64 {
        LEFT + (ratio.log2() - self.low) / (self.high - self.low) * (RIGHT - LEFT)
    }

    /// Returns the powers of two within.
    fn lines(&self) -> impl Iterator<Item = f64> {
        let every = if self.high - self.low > 7.0 { 2 } else { 1 };
        let (from, to) = (self.low.ceil() as i32, self.high.floor() as i32);
        (from..=to)
            .filter(move |p| p % every == 0)
            .map(|p| f64::from(p).exp2())
    }
}

/// Returns all values of a row that has a place on the axis.
fn marks(row: &Row) -> impl Iterator<Item = f64> + '_ {
    let targets = row.target().map(super::record::Target::as_ratio);
    [row.ratio()].into_iter().chain(targets)
}

fn svg(title: &str, meaning: &str, below: &str, rows: &[&Row]) -> String {
    let mut jobs: Vec<&str> = Vec::new();
    for row in rows {
        if !jobs.contains(&row.job.as_str()) {
            jobs.push(&row.job);
        }
    }
    let axis = Axis::around(rows);
    let bottom = HEAD + jobs.len() as f64 * JOB + rows.len() as f64 * BAR + 8.0;
    let mut out = String::new();
    let _ = draw(&mut out, title, meaning, below, rows, &jobs, &axis, bottom);
    out
}

#[expect(clippy::too_many_arguments, reason = "one drawing")]
fn draw(
    out: &mut String,
    title: &str,
    meaning: &str,
    below: &str,
    rows: &[&Row],
    jobs: &[&str],
    axis: &Axis,
    bottom: f64,
) -> std::fmt::Result {
    let height = bottom + 54.0;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">",
        escaped(&format!("{title}: {meaning}"))
    )?;
    writeln!(out, "<style>{STYLE}</style>")?;
    writeln!(
        out,
        "<rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>"
    )?;
    text(out, "title", 20.0, 30.0, title)?;
    text(out, "soft", 20.0, 50.0, &format!("{meaning}; {below}"))?;
    for ratio in axis.lines() {
        let x = axis.x(ratio);
        let class = if ratio == 1.0 { "one" } else { "grid" };
        writeln!(
            out,
            "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\"/>",
            HEAD - 6.0
        )?;
        let label = if ratio == 1.0 {
            "bc".to_owned()
        } else {
            format!("{ratio}×")
        };
        text(out, "soft mid num", x, bottom + 15.0, &label)?;
    }
    text(out, "soft end", WIDTH - 20.0, HEAD + 6.0, "bc / the other")?;
    let mut y = HEAD;
    for job in jobs {
        y += JOB;
        text(out, "job", 20.0, y - 8.0, &capitalised(job))?;
        for row in rows.iter().filter(|row| row.job == *job) {
            bar(out, row, axis, y)?;
            y += BAR;
        }
    }
    legend(out, bottom + 42.0, rows)?;
    out.push_str("</svg>\n");
    Ok(())
}

fn bar(out: &mut String, row: &Row, axis: &Axis, y: f64) -> std::fmt::Result {
    let (ratio, middle) = (row.ratio(), y + 11.0);
    text(out, "end", LEFT - 10.0, middle, &shortened(&row.peer, 24))?;
    let (one, end) = (axis.x(1.0), axis.x(ratio));
    let (from, class) = if ratio < 1.0 {
        (end, "loss")
    } else {
        (one, "win")
    };
    let width = (end - one).abs().max(1.0);
    let top = y + 1.0;
    writeln!(
        out,
        "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"13\" rx=\"2\"/>"
    )?;
    let mut after = one.max(end);
    if let Some(target) = row.target() {
        let x = axis.x(target.as_ratio());
        after = if x > after && x < after + 52.0 {
            x
        } else {
            after
        };
        for class in ["halo", "mark"] {
            writeln!(
                out,
                "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                top - 2.0,
                top + 15.0
            )?;
        }
    }
    text(out, "num", after + 6.0, middle, &format!("{ratio:.2}×"))?;
    let figures = format!(
        "{} / {}",
        row.figure(row.our_median()),
        row.figure(row.their_median())
    );
    text(out, "soft end num", WIDTH - 20.0, middle, &figures)
}

/// Writes the meanings of the colours and marks that these rows have.
fn legend(out: &mut String, y: f64, rows: &[&Row]) -> std::fmt::Result {
    let mut colors = vec![("win", 20.0, "bc is faster or smaller")];
    if rows.iter().any(|row| row.ratio() < 1.0) {
        colors.push(("loss", 190.0, "bc is slower or larger"));
    }
    for (class, x, words) in colors {
        let top = y - 9.0;
        writeln!(
            out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{top:.1}\" width=\"14\" height=\"9\" rx=\"2\"/>"
        )?;
        text(out, "soft", x + 20.0, y, words)?;
    }
    if rows.iter().any(|row| row.target().is_some()) {
        let (x, top, end) = (360.0, y - 12.0, y + 3.0);
        writeln!(
            out,
            "<line class=\"mark\" x1=\"{x}\" x2=\"{x}\" y1=\"{top:.1}\" y2=\"{end:.1}\"/>"
        )?;
        text(out, "soft", x + 8.0, y, "target")?;
    }
    if rows.iter().any(|row| row.is_floor()) {
        text(
            out,
            "soft",
            430.0,
            y,
            "floor: the bare system calls, nothing hashed",
        )?;
    }
    Ok(())
}

fn text(out: &mut String, class: &str, x: f64, y: f64, words: &str) -> std::fmt::Result {
    let words = escaped(words);
    writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"
    )
}

/// Returns the text as a line of its own begins.
fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::super::record::{Row, Target};
    use super::{Axis, svg};

    fn row(job: &str, ours: f64, theirs: f64, target: Option<f64>) -> Row {
        Row {
            area: "hash".to_owned(),
            job: job.to_owned(),
            peer: "a & b <c>".to_owned(),
            ours: String::new(),
            theirs: String::new(),
            unit: "s".to_owned(),
            pairs: vec![(ours, theirs)],
            targets: target
                .map(|t| (Target::AtLeast(t), String::new()))
                .into_iter()
                .collect(),
        }
    }

    #[test]
    fn the_axis_holds_bars_and_targets() {
        let rows = [row("a", 1.0, 0.2, None), row("b", 1.0, 3.0, Some(20.0))];
        let rows: Vec<&Row> = rows.iter().collect();
        let axis = Axis::around(&rows);
        for ratio in [0.2, 1.0, 3.0, 20.0] {
            assert!(
                (super::LEFT..=super::RIGHT).contains(&axis.x(ratio)),
                "{ratio}"
            );
        }
        assert!(axis.lines().any(|ratio| ratio == 1.0));
    }

    #[test]
    fn a_bar_a_row_and_names_escaped() {
        let rows = [row("a", 1.0, 0.5, None), row("a", 1.0, 3.0, Some(2.0))];
        let rows: Vec<&Row> = rows.iter().collect();
        let text = svg("t", "m", "b", &rows);
        assert_eq!(text.matches("class=\"job\"").count(), 1);
        // One of each in the legend.
        assert_eq!(text.matches("class=\"win\"").count(), 2);
        assert_eq!(text.matches("class=\"loss\"").count(), 2);
        assert_eq!(text.matches(">target<").count(), 1);
        assert!(!text.contains(">floor:"));
        assert!(text.contains("a &amp; b &lt;c>"));
        assert!(text.contains("3.00×") && text.contains("0.50×"));
    }
}
