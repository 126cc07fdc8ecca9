//! `bc integrity verify --format=html`: damage first, then all that differs.

use bc_fs::PathError;
use bc_fs::path::split;
use bc_integrity::change::{Change, Class, Ctime, Value};
use bc_integrity::fields::Field;
use bc_integrity::report::ReportHeader;
use bc_integrity::{ComparisonSummary, Conclusion};
use bc_manifest::integrity::{Header, Kind};
use serde_json::{Value as Json, json};

use super::words::sampled;
use crate::html::data::{Column, DirColumns, packed};
use crate::html::dirs::{Amount, Cell, Dirs, parent};
use crate::html::escape::{Path, Text, shown};
use crate::html::provenance::{absolute_input, moment, on_host};
use crate::html::{CHANGED, CHANGES, Page, Tile, map, notes, nothing, tiles};
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

/// Entries of each class that are listed, and those of them that have their values on the page; more
/// of one class must not push the others off it.
const LISTED: usize = 100_000;
const DETAILED: usize = 1000;

/// Entries of one class, as the page's script reads them (`changes.js`).
#[derive(Default)]
struct ListedChanges {
    count: usize,
    /// The step from the directory before.
    dir: Column,
    name: Column,
    kind: Column,
    /// New path of what was moved, and the entries that moved along.
    to: Column,
    entries: Column,
    last_dir: i64,
    details: Vec<Json>,
}

impl ListedChanges {
    fn add(&mut self, change: &Change, dirs: &mut DirColumns) {
        let dir = dirs.id(&change.path);
        self.dir.word(dir - self.last_dir);
        self.last_dir = dir;
        self.name.line(shown(split(&change.path).1));
        self.kind.word(change.kind.name());
        self.to
            .line(change.to.as_deref().map(shown).unwrap_or_default());
        let entries = change.entries.map(|entries| entries.to_string());
        self.entries.word(entries.unwrap_or_default());
        if self.count < DETAILED {
            self.details.push(details(change));
        }
        self.count += 1;
    }
}

/// Differences found so far. Memory is the entries that the page lists.
#[derive(Default)]
pub struct Differences<'a> {
    /// Header of the comparison.
    pub header: Option<ReportHeader<'a>>,
    /// Headers of the old manifest and, where two are compared, of the new one.
    pub manifests: Vec<Header>,
    listed: [ListedChanges; GRAVEST.len()],
    /// Directories of the listed entries.
    homes: DirColumns,
    /// Entries of the renamed directories among these that are not listed themselves.
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
        if self.listed[rank].count < LISTED {
            self.listed[rank].add(change, &mut self.homes);
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
    pub fn page(mut self, summary: &ComparisonSummary, problems: &[PathError]) -> Page {
        let header = self.header.take();
        let header = header.as_ref();
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
        if let Some(text) = sampled(summary) {
            page.body += &format!("<p class=note>{}.</p>\n", Text(&text));
        }
        let problems: Vec<String> = problems
            .iter()
            .map(|problem| Text(&problem.to_string()).to_string())
            .collect();
        page.body += &notes("The manifest itself", "alarm", &problems);
        let damaged = summary.count(Class::Damaged) > 0;
        // Damage is wanted at once; its place can wait.
        let map_before = page.body.len();
        self.map(&mut page);
        let list = self.list(&mut page, summary);
        match damaged {
            true => page.body.insert_str(map_before, &list),
            false => page.body += &list,
        }
        if !summary.any() {
            page.body += &nothing(
                "Every entry is unchanged",
                &format!("{} entries were compared.", thousands(summary.new)),
            );
        }
        page
    }

    fn map(&self, page: &mut Page) {
        let class = |cell: &Cell| GRAVEST[GRAVEST.len() - usize::from(cell.amount.mark)];
        let words = map::Words {
            heading: "Differences by directory",
            caption: "Area: number of entries in a directory that differ. Colour: the most serious \
                      difference.",
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

    /// Returns the list of differences, HTML, with its data in the page.
    fn list(self, page: &mut Page, summary: &ComparisonSummary) -> String {
        if self.listed.iter().all(|listed| listed.count == 0) {
            return String::new();
        }
        let missing = GRAVEST
            .iter()
            .zip(&self.listed)
            .filter_map(|(class, listed)| {
                let along = match class {
                    Class::Moved => self.moved_along,
                    _ => 0,
                };
                let missing = summary.count(*class) - listed.count as u64 - along;
                let is_some = listed.count > 0 && missing > 0;
                is_some.then(|| format!("{} {}", thousands(missing), class.name()))
            });
        let missing: Vec<String> = missing.collect();
        let places = match page.command {
            "integrity diff" => "OLD NEW",
            _ => "ROOT MANIFEST",
        };
        let all = format!(
            "<code>bc {} --format=json {places}</code> lists all.",
            page.command
        );
        let status = if !missing.is_empty() {
            format!(
                "The first {} of each class are on this page; {} more are not. {all}",
                thousands(LISTED as u64),
                missing.join(", ")
            )
        } else if self.listed.iter().any(|listed| listed.count > DETAILED) {
            format!(
                "The first {} of each class have their values on this page; {all}",
                thousands(DETAILED as u64)
            )
        } else {
            String::new()
        };
        let classes = GRAVEST.into_iter().zip(self.listed).map(|(class, listed)| {
            json!({
                "class": class.name(),
                "dir": Json::from(listed.dir),
                "name": Json::from(listed.name),
                "kind": Json::from(listed.kind),
                "to": Json::from(listed.to),
                "entries": Json::from(listed.entries),
                "details": listed.details,
            })
        });
        let classes: Vec<Json> = classes.collect();
        page.data = packed(&json!({ "dirs": Json::from(self.homes.dirs), "classes": classes }));
        page.script = Some(CHANGES);
        CHANGED.replace("{status}", &status)
    }
}

/// Returns the heading and its explanation. Content that was not compared is not called undamaged.
fn verdict(summary: &ComparisonSummary, content: bool) -> (&'static str, String) {
    let unread = summary.count(Class::Unreadable) > 0;
    let (title, words) = match (summary.conclusion(), content) {
        (Conclusion::Damaged, _) => (
            "Damage suspected",
            "A file counts as damaged if its content differs while its size and modification time \
             do not: the disk or the way to it changed the file, or a program wrote to it and \
             reset the time. Restore such files from a copy that verifies.",
        ),
        (Conclusion::Different, true) if unread => (
            "Differences, some unreadable",
            "No damage was found; unreadable files may be damaged.",
        ),
        (Conclusion::Different, true) if summary.sampled_of.is_some() => {
            ("Differences, no damage in the sample", "")
        }
        (Conclusion::Different, true) if summary.complete => (
            "Differences, no damage",
            "Every file with different content also has another size or modification time, as \
             after an edit.",
        ),
        (Conclusion::Different, _) => ("Differences", ""),
        // The page says so where it would list differences.
        (Conclusion::Same, _) => ("Nothing differs", ""),
    };
    let unknown = "Content was not compared, so this page cannot report damage.";
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
        Path(&absolute_input(header.new)),
        made(manifests.get(1)),
        Path(&absolute_input(header.old)),
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
        None => ", which does not record when it was made".to_owned(),
    }
}

fn figures(summary: &ComparisonSummary, words: &str, content: bool) -> String {
    let mut all = Vec::new();
    let is_whole = summary.complete && summary.sampled_of.is_none();
    for class in GRAVEST {
        let count = summary.count(class);
        let first = class == Class::Damaged;
        // Where nothing differs, a row of zeros says no more than that.
        if count == 0 && !summary.any() && !first && class != Class::Ok {
            continue;
        }
        let mut tile = Tile::count(label(class), count, "");
        tile.class = match (class, count) {
            (Class::Damaged, 0) if content && is_whole => "hero good",
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
            " {} are below directories that could not be read, so their state is unknown.",
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

/// Returns remarks on a change, and the values that differ.
fn details(change: &Change) -> Json {
    let mut remarks = Vec::new();
    if let Some(reason) = &change.reason {
        remarks.push(shown(reason.as_bytes()).into_owned());
    }
    // Times of entries that were damaged before are not compared.
    if change.class == Class::Damaged && (change.ctime.is_some() || change.reason.is_none()) {
        remarks.push(ctime(change.ctime).to_owned());
    }
    let fields = change.differences.iter().map(|difference| {
        let name = difference.field.name();
        // An entry on one side only has one value.
        match change.class {
            Class::Added => json!([name, value(&difference.new)]),
            Class::Removed => json!([name, value(&difference.old)]),
            _ => json!([name, value(&difference.old), value(&difference.new)]),
        }
    });
    let fields: Vec<Json> = fields.collect();
    json!({ "remarks": remarks, "fields": fields })
}

fn ctime(ctime: Option<Ctime>) -> &'static str {
    match ctime {
        Some(Ctime::Same) => "ctime unchanged: points to bitrot",
        Some(Ctime::Other) => "ctime changed: probably a rewrite with its mtime reset",
        Some(Ctime::Mute) => "ctime proves nothing here: bitrot, or a rewrite with its mtime reset",
        _ => "ctime not recorded: bitrot, or a rewrite with its mtime reset",
    }
}

/// Returns a value as text, or as an object with a path.
fn value(value: &Value) -> Json {
    let text = match value {
        Value::None => "unknown".to_owned(),
        Value::Bytes(bytes) => return json!({ "path": shown(bytes) }),
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
    text.into()
}
