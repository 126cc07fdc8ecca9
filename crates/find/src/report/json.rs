//! The JSON document and lines, and reading the document back.
//!
//! `{"schema":1,"command":"dup scan","version","started_at","algorithm",
//! "roots":[…],"reference_roots":[index…],"stats":{…},"errors":[{"applet","path","operation",
//! "errno","reason"}],"groups":[{"size","digest","algorithm","wasted_bytes",
//! "files":[{"path","root","reference","dev","ino","nlink","size","mtime_ns",
//! "ctime_ns"}]}]}`; a path that is not UTF-8 has its bytes as base64 in
//! `path_b64` beside a lossy `path`, a root in `b64` beside `path`.
//!
//! A page of `bc dup` saves decisions on a report, which are read as well: `{"schema":1,
//! "command":"dup decisions","version","roots":[…],"reference_roots":[index…],
//! "groups":[{"size","files":[{…,"decision":"keep" or "prune"}]}]}`, with files as in a report.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, Write};

use bc_digest::{Algorithm, Digest};
use bc_fs::path::below;
use bc_manifest::ErrorRecord;
use bc_manifest::json::{JsonPath, write_array, write_head, write_line};
use bc_walk::{EntryId, Identity, SkipReason, Stamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{ScanReport, root_len};
use crate::groups::{FileGroup, FileRef};
use crate::scan::Group;

/// Version of the format.
const SCHEMA: u64 = 1;

#[derive(Deserialize, Serialize)]
struct JsonFile {
    #[serde(flatten)]
    path: JsonPath,
    root: u32,
    reference: bool,
    dev: u64,
    ino: u64,
    nlink: u64,
    size: u64,
    mtime_ns: i64,
    ctime_ns: i64,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct JsonGroup {
    size: u64,
    digest: String,
    algorithm: String,
    wasted_bytes: u64,
    files: Vec<JsonFile>,
}

fn group(report: &ScanReport<'_>, group: Group<'_>) -> JsonGroup {
    of_names(report, group, report.names(group))
}

/// A group with these of its names.
pub(crate) fn of_names(
    report: &ScanReport<'_>,
    group: Group<'_>,
    names: Vec<EntryId>,
) -> JsonGroup {
    let file = |id: EntryId| {
        let meta = report.listing.meta(id).expect("the scan has metadata");
        JsonFile {
            path: JsonPath::new(&report.listing.path(id)),
            root: report.listing.root(id) as u32,
            reference: report.is_reference(id),
            dev: meta.id.dev,
            ino: meta.id.ino,
            nlink: meta.nlink,
            size: meta.stamp.size,
            mtime_ns: meta.stamp.mtime_ns,
            ctime_ns: meta.stamp.ctime_ns,
        }
    };
    JsonGroup {
        size: group.size,
        digest: group.digest.to_string(),
        algorithm: report.algorithm.name().to_owned(),
        wasted_bytes: group.wasted,
        files: names.into_iter().map(file).collect(),
    }
}

/// Returns the members at the beginning of a document.
pub(crate) fn head(report: &ScanReport<'_>, command: &str) -> Value {
    let roots: Vec<JsonPath> = report
        .roots
        .iter()
        .map(|root| JsonPath::new(root))
        .collect();
    json!({
        "schema": SCHEMA,
        "command": command,
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": report.started_at,
        "algorithm": report.algorithm.name(),
        "roots": roots,
        "reference_roots": report.reference_roots,
    })
}

/// The figures of the search.
pub(crate) fn stats(report: &ScanReport<'_>) -> Value {
    let stats = &report.scan.stats;
    let skipped = report.listing.skipped();
    // The outputs of this very command are no news.
    let reasons = SkipReason::ALL.into_iter();
    let reasons = reasons.filter(|reason| *reason != SkipReason::LeftOut);
    let skipped = reasons.map(|one| (one.name().to_owned(), json!(skipped.of(one))));
    let skipped: Map<String, Value> = skipped.collect();
    let seconds = |i: usize| stats.times[i].as_secs_f64();
    json!({
        "files": stats.files, "bytes": stats.bytes,
        "size_candidates": stats.size_candidates,
        "fast_hashed": stats.fast_hashed, "full_hashed": stats.full_hashed,
        "remembered": stats.remembered, "bytes_read": stats.bytes_read,
        "groups": report.scan.groups().len(),
        "duplicates": report.scan.duplicates(),
        "wasted_bytes": report.scan.wasted(),
        "errors": report.errors().len(),
        "skipped": skipped,
        "seconds": {"size": seconds(0), "fast_hash": seconds(1), "full_hash": seconds(2)},
    })
}

/// Writes one document, a line per group.
pub(super) fn document(report: &ScanReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    write_head(out, &head(report, "dup scan"), &stats(report))?;
    errors(&report.errors(), out)?;
    let groups = report.scan.groups().map(|one| group(report, one));
    write_array(out, "groups", groups)?;
    out.write_all(b"\n]}\n")
}

/// Writes the errors as a member of a document.
pub(crate) fn errors(errors: &[&bc_walk::Error], out: &mut dyn Write) -> io::Result<()> {
    let mut text = b",\n\"errors\":[".to_vec();
    for (i, error) in errors.iter().enumerate() {
        text.extend_from_slice(if i == 0 { b"\n" } else { b",\n" });
        record(error, &error.message()).write(&mut text);
    }
    text.extend_from_slice(b"\n]");
    out.write_all(&text)
}

/// Writes the errors, one line each.
pub(crate) fn error_lines(errors: &[&bc_walk::Error], out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    for error in errors {
        record(error, &error.message()).write_line(&mut text);
    }
    out.write_all(&text)
}

/// Returns a failure in the JSON form that all commands use; `reason` is its message.
fn record<'e>(error: &'e bc_walk::Error, reason: &'e str) -> ErrorRecord<'e> {
    ErrorRecord {
        applet: "dup",
        path: error.path(),
        operation: error.op(),
        errno: error.errno(),
        reason,
    }
}

/// A header, a line per group, a line per failure, a summary.
pub(super) fn lines(report: &ScanReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut first = head(report, "dup scan");
    first["type"] = json!("header");
    writeln!(out, "{first}")?;
    for one in report.scan.groups() {
        write_line(out, "group", &group(report, one))?;
    }
    error_lines(&report.errors(), out)?;
    let mut last = stats(report);
    last["type"] = json!("summary");
    writeln!(out, "{last}")
}

/// Name of the command in a document of decisions.
const DECISIONS: &str = "dup decisions";

/// Decision about one file of a group.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Keep,
    Prune,
}

#[derive(Deserialize)]
struct DecidedFile {
    #[serde(flatten)]
    file: JsonFile,
    decision: Decision,
}

#[derive(Deserialize)]
struct DecidedGroup {
    size: u64,
    files: Vec<DecidedFile>,
}

/// Reason why a report cannot be acted on.
#[derive(Debug)]
pub struct ReadError {
    message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

#[derive(Deserialize)]
struct Document<G> {
    schema: u64,
    command: String,
    roots: Vec<JsonPath>,
    /// Reports of earlier versions lack it.
    #[serde(default)]
    reference_roots: Vec<usize>,
    groups: Vec<G>,
}

/// Contents of a saved report that prune acts on.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Saved {
    /// The groups.
    pub groups: Vec<FileGroup>,
    /// The roots that were references, as they were given.
    pub references: Vec<Vec<u8>>,
    /// All roots, as they were given; none where files were listed.
    pub roots: Vec<Vec<u8>>,
    /// Paths that were chosen to go, while the others of their groups stay. `None`: nothing was
    /// chosen, and rules decide.
    pub pruned: Option<HashSet<Vec<u8>>>,
}

/// Reads a document of [`ReportFormat::Json`](super::ReportFormat::Json), or decisions on one, and
/// checks all that can be checked without looking at the files. Nothing in it is believed
/// further: prune opens, compares and checks every file again.
///
/// # Errors
/// Truncated or malformed JSON, another command's or a future document, a
/// group without a proper digest or of fewer than two files, sizes that differ
/// within a group, a path that does not lie under its root. Decisions that keep no file of a group,
/// keep and prune the same one, or prune a reference.
pub fn read(text: &[u8]) -> Result<Saved, ReadError> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| fail(format!("not a whole JSON document: {error}")))?;
    if value["schema"]
        .as_u64()
        .is_some_and(|schema| schema > SCHEMA)
    {
        return Err(fail(format!(
            "schema {} is newer than {SCHEMA}, the newest known here",
            value["schema"]
        )));
    }
    if value["command"] == DECISIONS {
        let document: Document<DecidedGroup> =
            parsed(value, DECISIONS, "decisions from a page of bc dup")?;
        let pruned = pruned(&document.groups)?;
        return saved(document, Some(pruned), |group, roots| {
            let files = group.files.iter().map(|decided| &decided.file);
            accept(group.size, files, roots)
        });
    }
    let document: Document<JsonGroup> = parsed(value, "dup scan", "a report of bc dup scan")?;
    saved(document, None, |group, roots| {
        proper_digest(group)?;
        accept(group.size, group.files.iter(), roots)
    })
}

fn fail(message: String) -> ReadError {
    ReadError { message }
}

/// Returns the document, if it is that of `command`; `what` names it to the user.
fn parsed<G: DeserializeOwned>(
    value: Value,
    command: &str,
    what: &str,
) -> Result<Document<G>, ReadError> {
    let document: Document<G> =
        serde_json::from_value(value).map_err(|error| fail(format!("not {what}: {error}")))?;
    if document.schema != SCHEMA || document.command != command {
        return Err(fail(format!("not {what}")));
    }
    Ok(document)
}

/// Returns the contents of a document, whose groups are read by `accept`.
fn saved<G>(
    document: Document<G>,
    pruned: Option<HashSet<Vec<u8>>>,
    accept: impl Fn(&G, &[Vec<u8>]) -> Result<FileGroup, String>,
) -> Result<Saved, ReadError> {
    let roots: Option<Vec<Vec<u8>>> = document.roots.iter().map(JsonPath::bytes).collect();
    let roots = roots
        .ok_or_else(|| fail("a root is empty, has a NUL byte or is not valid base64".to_owned()))?;
    let read = |(number, group): (usize, &G)| {
        accept(group, &roots).map_err(|text| fail(format!("group {}: {text}", number + 1)))
    };
    let references = document.reference_roots.iter();
    let references: Option<Vec<Vec<u8>>> =
        references.map(|index| roots.get(*index).cloned()).collect();
    Ok(Saved {
        references: references.ok_or_else(|| fail("no such root as a reference".to_owned()))?,
        groups: merged(
            document
                .groups
                .iter()
                .enumerate()
                .map(read)
                .collect::<Result<_, _>>()?,
        ),
        pruned,
        roots,
    })
}

/// Returns the paths that go. A file is decided on once, by all of its names and in all groups:
/// otherwise a group could lose its last copy to the decisions of another.
fn pruned(groups: &[DecidedGroup]) -> Result<HashSet<Vec<u8>>, ReadError> {
    let mut by_file = HashMap::new();
    let mut by_path = HashMap::new();
    for (number, group) in (1..).zip(groups) {
        if group
            .files
            .iter()
            .all(|file| file.decision == Decision::Prune)
        {
            return Err(fail(format!("group {number}: no file of it is kept")));
        }
        for DecidedFile { file, decision } in &group.files {
            // The path is checked with its group.
            let path = file.path.bytes().unwrap_or_default();
            let refuse = |why: &str| {
                let shown = bc_fs::escape(&path).into_owned();
                Err(fail(format!("group {number}: {shown}: {why}")))
            };
            if file.reference && *decision == Decision::Prune {
                return refuse("a reference, which is never pruned");
            }
            let known = by_file.insert((file.dev, file.ino), *decision);
            let named = by_path.insert(path.clone(), *decision);
            if known
                .into_iter()
                .chain(named)
                .any(|known| known != *decision)
            {
                return refuse("the same file is kept and pruned");
            }
        }
    }
    by_path.retain(|_, decision| *decision == Decision::Prune);
    Ok(by_path.into_keys().collect())
}

/// Returns the groups, with those merged that have a file in common: a report that was put together
/// of others may name it twice, and a step on it in one group would be unknown to a dry run of the
/// other.
fn merged(groups: Vec<FileGroup>) -> Vec<FileGroup> {
    let mut merged: Vec<FileGroup> = Vec::with_capacity(groups.len());
    let mut joined: HashSet<usize> = HashSet::new();
    // Which of these has a file.
    let mut homes: HashMap<(Identity, u64), usize> = HashMap::new();
    for group in groups {
        let known = |file: &FileRef| homes.get(&(file.id, file.stamp.size)).copied();
        let mut others: Vec<usize> = group.files.iter().filter_map(known).collect();
        others.sort_unstable();
        others.dedup();
        let Some((&home, others)) = others.split_first() else {
            let files = group.files.iter();
            homes.extend(files.map(|file| ((file.id, file.stamp.size), merged.len())));
            merged.push(group);
            continue;
        };
        let mut joining = group.files;
        for other in others {
            joining.append(&mut merged[*other].files);
        }
        homes.extend(
            joining
                .iter()
                .map(|file| ((file.id, file.stamp.size), home)),
        );
        merged[home].files.append(&mut joining);
        joined.insert(home);
    }
    // A file that joins two groups was in both.
    for home in joined {
        let mut known = HashSet::new();
        let files = &mut merged[home].files;
        files.retain(|file| known.insert((file.path.clone(), file.id, file.stamp)));
    }
    merged.retain(|group| !group.files.is_empty());
    merged
}

fn proper_digest(group: &JsonGroup) -> Result<(), String> {
    let algorithm: Algorithm = group
        .algorithm
        .parse()
        .map_err(|_| format!("unknown algorithm '{}'", group.algorithm))?;
    Digest::from_hex(group.digest.as_bytes())
        .filter(|digest| digest.as_bytes().len() == algorithm.digest_len())
        .ok_or("no proper digest")?;
    Ok(())
}

fn accept<'f>(
    size: u64,
    listed: impl ExactSizeIterator<Item = &'f JsonFile>,
    roots: &[Vec<u8>],
) -> Result<FileGroup, String> {
    if listed.len() < 2 {
        return Err("fewer than two files".to_owned());
    }
    let mut files = Vec::with_capacity(listed.len());
    for file in listed {
        let path = file
            .path
            .bytes()
            .ok_or("a path is empty, has a NUL byte or is not valid base64")?;
        let shown = bc_fs::escape(&path).into_owned();
        let root: &[u8] = match roots {
            // The files were listed, not found below directories.
            [] => b"",
            roots => roots
                .get(file.root as usize)
                .ok_or_else(|| format!("{shown}: no such root"))?,
        };
        if !root.is_empty() && path != root {
            let rest =
                below(&path, root).ok_or_else(|| format!("{shown}: not a path under its root"))?;
            for part in rest.split(|byte| *byte == b'/') {
                match part {
                    b".." => return Err(format!("{shown}: climbs out of its root")),
                    // Reports are written without.
                    b"" | b"." => return Err(format!("{shown}: not a path under its root")),
                    _ => {}
                }
            }
        }
        if file.size != size {
            return Err(format!("{shown}: another size than its group"));
        }
        files.push(FileRef {
            root_len: root_len(&path, root),
            path,
            root: file.root,
            id: Identity {
                dev: file.dev,
                ino: file.ino,
            },
            stamp: Stamp {
                size: file.size,
                mtime_ns: file.mtime_ns,
                ctime_ns: file.ctime_ns,
            },
            nlink: file.nlink,
            protected: file.reference,
        });
    }
    Ok(FileGroup { files })
}
