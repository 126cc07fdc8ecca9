//! `bc integrity verify --format=html`: damage first, then all that differs.

use std::fmt::Write;

use bc_fs::PathError;
use bc_integrity::change::{Change, Class, Ctime, Difference, Value};
use bc_integrity::fields::Field;
use bc_integrity::report::ReportHeader;
use bc_integrity::{ComparisonSummary, Conclusion};
use bc_manifest::integrity::{Header, Kind};

use crate::html::dirs::{Amount, Cell, Dirs, parent};
use crate::html::escape::{Path, Text, shown};
use crate::html::provenance::{absolute, moment, on_host};
use crate::html::table::{PageCell, PageColumn, PageRow, PageTable};
use crate::html::{Page, Tile, map, notes, nothing, tiles};
use crate::session::progress::{counted, size, thousands};

/// Gravest first: the order of figures and rows.
const GRAVEST: [Class; 9] = [
    Class::Damaged,
    Class::Unreadable,
    Class::Replaced,
    Class::Modified,
    Class::Removed,
    Class::Added,
    Class::Moved,
    Class::Meta,
    Class::Ok,
];

/// Rows of each class; more of one must not push the others off the page.
const LISTED: usize = 1000;

/// Differences found so far. Memory is the rows that the page lists.
#[derive(Default)]
pub struct Differences<'a> {
    /// Header of the comparison.
    pub header: Option<ReportHeader<'a>>,
    /// Headers of the old manifest and, where two are compared, of the new one.
    pub manifests: Vec<Header>,
    rows: [Vec<Change>; GRAVEST.len()],
    /// Entries of the renamed directories among these rows that have no row of their own.
    moved_along: u64,
    dirs: Dirs,
}

fn rank(class: Class) -> usize {
    let found = GRAVEST.iter().position(|one| *one == class);
    found.unwrap_or(GRAVEST.len() - 1)
}

impl Differences<'_> {
    /// Takes a change; they come in path order.
    pub fn add(&mut self, change: &Change) {
        let rank = rank(change.class);
        if self.rows[rank].len() < LISTED {
            self.rows[rank].push(change.clone());
            self.moved_along += change.entries.unwrap_or(0);
        }
        if change.class != Class::Ok {
            let entries = 1 + change.entries.unwrap_or(0);
            let mark = (GRAVEST.len() - rank) as u8;
            self.dirs.add(
                parent(&change.path),
                Amount {
                    value: entries,
                    count: entries,
                    mark,
                },
            );
        }
    }

    /// Returns the page.
    pub fn page(&self, summary: &ComparisonSummary, problems: &[PathError]) -> Page {
        let header = self.header.as_ref();
        let content = header.is_none_or(|header| header.rules.compares(Field::Digest, Kind::File));
        let (title, words) = verdict(summary, content);
        let command = match header.map(|header| header.command) {
            Some("diff") => "integrity diff",
            _ => "integrity verify",
        };
        let mut page = Page {
            command,
            title: title.to_owned(),
            subject: header
                .map(|header| subject(header, &self.manifests))
                .unwrap_or_default(),
            body: figures(summary, &words, content),
            ..Page::default()
        };
        if !summary.complete {
            page.body += "<p class=note>It stopped at the first difference (<code>--fail-fast</code>): \
                          what comes behind was not compared.</p>\n";
        }
        let problems: Vec<String> = problems
            .iter()
            .map(|problem| Text(&problem.to_string()).to_string())
            .collect();
        page.body += &notes("The manifest itself", "alarm", &problems);
        let damaged = summary.count(Class::Damaged) > 0;
        // Damage is wanted at once; its place can wait.
        if damaged {
            self.table(&mut page, summary);
        }
        self.map(&mut page);
        if !damaged {
            self.table(&mut page, summary);
        }
        if !summary.any() {
            page.body += &nothing(
                "Every entry is as it was",
                &format!("{} entries were compared.", thousands(summary.new)),
            );
        }
        page
    }

    fn map(&self, page: &mut Page) {
        let class = |cell: &Cell| GRAVEST[GRAVEST.len() - usize::from(cell.amount.mark)];
        let words = map::Words {
            heading: "Where the differences are",
            caption: "An area is the number of entries of a directory that differ; its colour \
                      is that of the gravest.",
            value: None,
            count: "Entries",
            short: &|amount| thousands(amount.value),
            full: &|amount| counted(amount.value, "entry", "entries"),
            class: &|cell| format!("k-{}", class(cell).name()),
            meaning: &|cells| match cells {
                [first, ..] => label(class(first)).to_lowercase(),
                [] => String::new(),
            },
        };
        page.map(&self.dirs, &words);
    }

    fn table(&self, page: &mut Page, summary: &ComparisonSummary) {
        if self.rows.iter().all(Vec::is_empty) {
            return;
        }
        let missing = GRAVEST.iter().zip(&self.rows).filter_map(|(class, rows)| {
            let along = match class {
                Class::Moved => self.moved_along,
                _ => 0,
            };
            let missing = summary.count(*class) - rows.len() as u64 - along;
            let is_some = !rows.is_empty() && missing > 0;
            is_some.then(|| format!("{} {}", thousands(missing), class.name()))
        });
        let missing: Vec<String> = missing.collect();
        let command = page.command;
        let elsewhere = if missing.is_empty() {
            String::new()
        } else {
            let places = if command == "integrity diff" {
                "OLD NEW"
            } else {
                "ROOT MANIFEST"
            };
            format!(
                "The first {} of each class are on this page; {} more are not. \
                 <code>bc {command} --format=json {places}</code> lists all.",
                thousands(LISTED as u64),
                missing.join(", ")
            )
        };
        let rows = self.rows.iter().enumerate();
        let table = PageTable {
            title: "Entries",
            status: format!("Gravest first, then by path. {elsewhere}"),
            placeholder: "part of a path or value",
            columns: [
                PageColumn::ranks("Class"),
                PageColumn::text("Path"),
                PageColumn::text("Kind"),
                PageColumn::unsorted("What differs"),
            ],
            rows: rows
                .flat_map(|(rank, rows)| rows.iter().map(move |change| row(rank, change)))
                .collect(),
            elsewhere,
        };
        page.body += &table.html();
    }
}

/// Returns the heading and its explanation. Content that was not compared is not called undamaged.
fn verdict(summary: &ComparisonSummary, content: bool) -> (&'static str, String) {
    let unread = summary.count(Class::Unreadable) > 0;
    let (title, words) = match (summary.conclusion(), content) {
        (Conclusion::Damaged, _) => (
            "Damage suspected",
            "Damaged are files whose content differs while size and modification time do not: \
             the disk or the way to it changed them, or a program wrote to them and put the time \
             back. Restore them from a copy that verifies.",
        ),
        (Conclusion::Different, true) if unread => (
            "Differences, some unreadable",
            "No damage was seen; what could not be read may hide some.",
        ),
        (Conclusion::Different, true) if summary.complete => (
            "Differences, no damage",
            "Every file that has other content shows it in its size or modification time, as an \
             edit does.",
        ),
        (Conclusion::Different, _) => ("Differences", ""),
        // The page says so where it would list differences.
        (Conclusion::Same, _) => ("Nothing differs", ""),
    };
    let unknown = "Content was not compared: this page cannot tell of damage.";
    let words = match (content, words) {
        (true, words) => words.to_owned(),
        (false, "") => unknown.to_owned(),
        (false, words) => format!("{words} {unknown}"),
    };
    (title, words)
}

fn subject(header: &ReportHeader<'_>, manifests: &[Header]) -> String {
    let (new, old) = match header.command {
        "diff" => ("new", "old"),
        _ => ("tree", "manifest"),
    };
    let ignored: Vec<&str> = header
        .rules
        .ignore
        .iter()
        .map(|field| field.name())
        .collect();
    let ignored = if ignored.is_empty() {
        "nothing".to_owned()
    } else {
        ignored.join(", ")
    };
    format!(
        "<ul class=subject>\n<li>{new} {}{}\n<li>{old} {}{}\n<li>mode {}, digests {}, ignored: {}\n</ul>\n",
        Path(&absolute(header.new)),
        made(manifests.get(1)),
        Path(&absolute(header.old)),
        made(manifests.first()),
        Text(header.rules.mode.name()),
        Text(header.algorithm),
        Text(&ignored),
    )
}

/// Returns the time and host that a manifest records as its origin.
fn made(header: Option<&Header>) -> String {
    let Some(header) = header else {
        return String::new();
    };
    match &header.created_at {
        Some(time) => format!(
            ", made {}{}",
            Text(&shown(moment(time).as_bytes())),
            on_host(header.host.as_deref())
        ),
        None => ", which does not say when it was made".to_owned(),
    }
}

fn figures(summary: &ComparisonSummary, words: &str, content: bool) -> String {
    let mut all = Vec::new();
    for class in GRAVEST {
        let count = summary.count(class);
        let first = class == Class::Damaged;
        // Where nothing differs, a row of zeros says no more than that.
        if count == 0 && !summary.any() && !first && class != Class::Ok {
            continue;
        }
        let mut tile = Tile::count(label(class), count, "");
        tile.class = match (class, count) {
            (Class::Damaged, 0) if content && summary.complete => "hero good",
            (Class::Damaged, 0) => "hero zero",
            (Class::Damaged, _) => "hero bad",
            (_, 0) => "zero",
            _ => "",
        };
        if first {
            tile.more = "content differs, size and time do not".to_owned();
            if !content {
                tile.value = "unknown".to_owned();
            }
        } else {
            tile.color = Some(format!("k-{}", class.name()));
        }
        tile.link = (count > 0 && class != Class::Ok).then(|| format!("class={}", class.name()));
        all.push(tile);
    }
    let more = if summary.files_read > 0 {
        format!(
            "{} in {} read",
            size(summary.bytes_read),
            counted(summary.files_read, "file", "files")
        )
    } else {
        "no content was read".to_owned()
    };
    if let Some(last) = all.last_mut() {
        last.more = more;
    }
    let mut html = tiles(&all);
    if words.is_empty() && !summary.any() && summary.unseen == 0 {
        return html;
    }
    html += &format!(
        "<p class=note>{words} {} entries before, {} now.",
        thousands(summary.old),
        thousands(summary.new)
    );
    if summary.unseen > 0 {
        html += &format!(
            " {} are below directories that could not be read, so nobody knows.",
            thousands(summary.unseen)
        );
    }
    if summary.unrecorded > 0 {
        html += &format!(
            " {} are below directories that could not be read before, so they may not be new.",
            thousands(summary.unrecorded)
        );
    }
    html + "</p>\n"
}

fn label(class: Class) -> &'static str {
    match class {
        Class::Ok => "Unchanged",
        Class::Added => "Added",
        Class::Removed => "Removed",
        Class::Moved => "Moved",
        Class::Meta => "Metadata only",
        Class::Modified => "Modified",
        Class::Damaged => "Damaged",
        Class::Unreadable => "Unreadable",
        Class::Replaced => "Other kind",
    }
}

fn row(rank: usize, change: &Change) -> PageRow {
    let name = change.class.name();
    let mut paths = Path(&change.path).to_string();
    if let Some(to) = &change.to {
        paths += &format!(" <span class=to>&rarr;</span> {}", Path(to));
    }
    let mut details = String::new();
    if let Some(entries) = change.entries {
        let entries = counted(entries, "entry", "entries");
        details += &format!("<p>renamed, with {entries} in it</p>");
    }
    if let Some(reason) = &change.reason {
        details += &format!("<p>{}</p>", Text(&shown(reason.as_bytes())));
    }
    // Times of entries that were damaged before are not compared.
    if change.class == Class::Damaged && (change.ctime.is_some() || change.reason.is_none()) {
        details += &format!("<p>{}</p>", ctime(change.ctime));
    }
    differences(&mut details, change);
    PageRow {
        class: Some(name),
        cells: [
            PageCell::Class { name, rank },
            PageCell::Half(paths),
            PageCell::Text(change.kind.name()),
            PageCell::Half(details),
        ],
    }
}

fn ctime(ctime: Option<Ctime>) -> &'static str {
    match ctime {
        Some(Ctime::Same) => "ctime unchanged: points to bitrot",
        Some(Ctime::Other) => "ctime changed: points to a rewrite with the time put back",
        Some(Ctime::Mute) => {
            "ctime tells nothing here: bitrot, or a rewrite with the time put back"
        }
        _ => "ctime not recorded: bitrot, or a rewrite with the time put back",
    }
}

/// Writes old and new of each field; for an entry on one side only, folded.
fn differences(body: &mut String, change: &Change) {
    if change.differences.is_empty() {
        return;
    }
    let side: Option<fn(&Difference) -> &Value> = match change.class {
        Class::Added => Some(|d| &d.new),
        Class::Removed => Some(|d| &d.old),
        _ => None,
    };
    if side.is_some() {
        let _ = write!(
            body,
            "<details><summary>{} fields</summary>",
            change.differences.len()
        );
    }
    body.push_str("<dl class=diff>");
    for difference in &change.differences {
        let _ = write!(body, "<dt>{}<dd>", Text(difference.field.name()));
        match side {
            Some(side) => value(body, side(difference)),
            None => {
                value(body, &difference.old);
                // Two digests do not fit a line.
                let long = matches!(difference.old, Value::Digest(_));
                body.push_str(if long { "<br>" } else { " " });
                body.push_str("<span class=arrow>&rarr;</span> ");
                value(body, &difference.new);
            }
        }
    }
    body.push_str("</dl>");
    if side.is_some() {
        body.push_str("</details>");
    }
}

fn value(body: &mut String, value: &Value) {
    let text = match value {
        Value::None => "unknown".to_owned(),
        Value::Bytes(bytes) => {
            body.push_str(&Path(bytes).to_string());
            return;
        }
        Value::Xattrs(all) => {
            let pairs: Vec<String> = all
                .iter()
                .map(|(name, value)| {
                    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
                    format!("{}=0x{hex}", shown(name))
                })
                .collect();
            if pairs.is_empty() {
                "none".to_owned()
            } else {
                pairs.join(" ")
            }
        }
        other => other.to_string(),
    };
    let _ = write!(body, "<span class=v>{}</span>", Text(&text));
}
