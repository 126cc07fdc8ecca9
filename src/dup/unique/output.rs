//! The answer of `bc dup unique` in its formats.

use std::fmt::Display;
use std::io::{self, Write};

use bc_find::manifests::{Manifest, is_weak, tag};
use bc_find::unique::{Content, Presence, Unique};
use bc_manifest::csv::write_record;
use bc_manifest::json::{JsonPath, write_array, write_head};
use bc_walk::EntryId;
use serde_json::{Map, Value, json};

use super::args::{UniqueArgs, UniqueFormat};
use crate::files::output::Output;

/// Counts the entries that the walk of the PATHs passed over, except those met again, those that
/// are no files, and those left out by the user's own pattern.
pub fn unseen(found: &Unique) -> impl Iterator<Item = (u64, &'static str)> {
    let mut skipped = found.unseen.clone();
    skipped.repeated = 0;
    skipped.excluded = 0;
    let passed_over: Vec<_> = crate::report::details::passed_over(&skipped).collect();
    passed_over.into_iter()
}

/// Version of the JSON.
const SCHEMA: u64 = 1;

/// Question, and the manifests asked.
pub struct Asked<'a> {
    pub args: &'a UniqueArgs,
    pub manifests: &'a [Manifest],
    /// Index of each manifest among the references.
    pub manifest_numbers: &'a [usize],
    /// Time of the start, in RFC 3339.
    pub started_at: &'a str,
}

/// Writes it; `complete` is whether all of the PATHs was looked at.
pub fn write(
    asked: &Asked<'_>,
    found: &Unique,
    complete: bool,
    output: &mut Output,
) -> io::Result<()> {
    match asked.args.format {
        UniqueFormat::Text => text(found, asked.args.walk.null, output),
        UniqueFormat::Csv => csv(found, output),
        UniqueFormat::Json => document(asked, found, complete, output),
        UniqueFormat::Jsonl => lines(asked, found, complete, output),
    }
}

/// Writes a name a line, names of one content one after the other.
fn text(found: &Unique, null: bool, output: &mut Output) -> io::Result<()> {
    for content in found.nowhere() {
        for name in content.names {
            let path = found.listing.path(*name);
            match null {
                true => output.write_all(&[&path[..], b"\0"].concat())?,
                false => output.name_line(&path)?,
            }
        }
    }
    Ok(())
}

/// Writes `content,size,path,path_b64`, as `scan` writes CSV.
fn csv(found: &Unique, output: &mut Output) -> io::Result<()> {
    output.write_all(b"content,size,path,path_b64\r\n")?;
    for (number, content) in found.nowhere().enumerate() {
        for name in content.names {
            let path = found.listing.path(*name);
            let mut record = Vec::new();
            let fields: [&dyn Display; 2] = [&(number + 1), &content.size];
            write_record(&mut record, &fields, &output.shown(&path));
            output.write_all(&record)?;
        }
    }
    Ok(())
}

fn path_json(path: &[u8]) -> Value {
    json!(JsonPath::new(path))
}

fn content(found: &Unique, content: &Content<'_>) -> Value {
    let path = |name: &EntryId| path_json(&found.listing.path(*name));
    let mut object = json!({
        "size": content.size,
        "inodes": content.files,
        "files": content.names.iter().map(path).collect::<Vec<_>>(),
    });
    match content.presence {
        Presence::Directory { reference } => object["reference"] = reference.into(),
        Presence::Manifest {
            reference,
            algorithm,
        } => {
            object["reference"] = reference.into();
            object["algorithm"] = algorithm.name().into();
            if is_weak(algorithm) {
                object["rests_on"] = tag(algorithm).into();
            }
        }
        Presence::Another | Presence::Nowhere | Presence::Unread => {}
    }
    object
}

/// Returns the list that contains a content.
fn kind(presence: Presence) -> &'static str {
    match presence {
        Presence::Nowhere => "unique",
        Presence::Unread => "unread",
        _ => "present",
    }
}

fn head(asked: &Asked<'_>) -> Value {
    let args = asked.args;
    let roots: Vec<Value> = args
        .paths
        .iter()
        .map(|path| path_json(path.as_encoded_bytes()))
        .collect();
    let references = args.reference.iter().enumerate();
    let references: Vec<Value> = references
        .map(|(number, path)| {
            let mut object = path_json(path.as_encoded_bytes());
            let at = asked.manifest_numbers.iter().position(|at| *at == number);
            match at.map(|at| &asked.manifests[at]) {
                None => object["kind"] = "directory".into(),
                Some(manifest) => {
                    let tally = manifest.tally();
                    let names = tally.algorithms.iter().map(|algorithm| algorithm.name());
                    object["kind"] = "manifest".into();
                    object["format"] = manifest.form().name().into();
                    object["algorithms"] = names.collect::<Vec<_>>().into();
                    object["witnesses"] = tally.reference_copies.into();
                    object["without_proof"] = tally.without.into();
                    object["unknown_origin"] = tally.unknown_origin.into();
                }
            }
            object
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "command": "dup unique",
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": asked.started_at,
        "verify_bytes": args.verify_bytes,
        "roots": roots,
        "references": references,
    })
}

/// Returns the figures.
fn stats(found: &Unique, complete: bool) -> Value {
    let unseen: Map<String, Value> = unseen(found)
        .map(|(count, what)| (what.to_owned(), count.into()))
        .collect();
    let not_files = &found.not_files;
    let complete = complete && found.errors.is_empty() && found.listing.errors().is_empty();
    let mut contents = found.contents();
    json!({
        "all_present": complete && contents.all(|content| kind(content.presence) == "present"),
        "complete": complete,
        "files": found.files, "bytes": found.bytes, "empty": found.empty,
        "not_looked_at": unseen, "excluded": found.unseen.excluded,
        "not_files": {
            "links": not_files.links, "fifos": not_files.fifos, "devices": not_files.devices,
            "empty_directories": not_files.empty_directories,
        },
        "errors": found.errors.len() + found.listing.errors().len(),
        "bytes_read": found.stats.bytes_read,
    })
}

/// Writes one document, with a line for each content.
fn document(
    asked: &Asked<'_>,
    found: &Unique,
    complete: bool,
    output: &mut Output,
) -> io::Result<()> {
    write_head(output, &head(asked), &stats(found, complete))?;
    for list in ["unique", "unread", "present"] {
        let all = found.contents().filter(|one| kind(one.presence) == list);
        write_array(output, list, all.map(|one| content(found, &one)))?;
        output.write_all(b"]")?;
    }
    output.write_all(b"}\n")
}

/// Writes a header, a line for each content, a summary.
fn lines(asked: &Asked<'_>, found: &Unique, complete: bool, output: &mut Output) -> io::Result<()> {
    let mut first = head(asked);
    first["type"] = "header".into();
    writeln!(output, "{first}")?;
    for one in found.contents() {
        let mut line = content(found, &one);
        line["type"] = kind(one.presence).into();
        writeln!(output, "{line}")?;
    }
    let mut last = stats(found, complete);
    last["type"] = "summary".into();
    writeln!(output, "{last}")
}
