//! `bc hash diff`: two manifests of any format, compared without reading files.

use std::cell::Cell;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_fs::Size;
use bc_fs::quote::shell_path;
use bc_hash::FileDigests;
use bc_hash::diff::{DiffEntry, Differences};
use bc_hash::lines::Hint;
use bc_manifest::json::insert_bytes;
use serde_json::json;

use super::args::{DiffArgs, DiffFormat};
use super::manifest::{self, LineMeaning};
use crate::files::input;
use crate::files::output::Output;
use crate::files::overlap::Given;
use crate::report::Exit;
use crate::report::style::Meaning;
use crate::session::{Outcome, Session};

pub fn run(args: &DiffArgs) -> Outcome<Exit> {
    let read = [args.old.as_os_str(), args.new.as_os_str()];
    let session = Session::start(
        "hash",
        "diff",
        &args.common,
        &Given::inputs(read),
        args.output.as_deref(),
    )?;
    if let Some(text) = of_directories(args) {
        return Err(session.fatal(&text));
    }
    if read.iter().all(|side| input::is_stdin(side)) {
        return Err(session.fatal("both manifests are standard input, which can be read once only"));
    }
    let output = session.output(args.output.as_deref())?;
    let mut output = match args.format {
        DiffFormat::Text => output.colors(args.common.color),
        DiffFormat::Json => output.json(),
    };
    let [old, new] = read;
    let compare = || session.while_reading(new, || compare(args, &session));
    let differences = session.while_reading(old, compare)?;
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    let counts = counts(&differences);
    let result = match args.format {
        DiffFormat::Text => write_text(&mut output, &differences),
        DiffFormat::Json => write_document(&mut output, &differences, counts),
    };
    let exit = match session.finished(output, result) {
        Exit::Done if differences.changes().len() > 0 => Exit::Differs,
        exit => exit,
    };
    session.report.summary(format_args!(
        "{} added, {} removed, {} modified, {} moved, {} the same",
        counts[0],
        counts[1],
        counts[2],
        counts[3],
        differences.same()
    ));
    session
        .report
        .note(format_args!("diff: {:.3} s in all", session.elapsed()));
    Ok(session.end(exit))
}

/// Returns the commands for directories, which have no manifest yet.
fn of_directories(args: &DiffArgs) -> Option<String> {
    let sides = [&args.old, &args.new];
    let directory = sides.into_iter().find(|side| side.is_dir())?;
    let mut made = String::new();
    let names = ["old.sha256", "new.sha256"].map(String::from);
    let [old, new] = [0, 1].map(|at: usize| {
        let shown = shell_path(sides[at].as_os_str().as_bytes());
        if !sides[at].is_dir() {
            return shown.into_owned();
        }
        made += &format!("bc hash --relative --output={} {shown} && ", names[at]);
        names[at].clone()
    });
    Some(format!(
        "{}: is a directory, and diff compares manifests; use: {made}bc hash diff {old} {new}",
        crate::files::input::shown(directory)
    ))
}

fn compare(args: &DiffArgs, session: &Session) -> Outcome<Differences> {
    let memory = ListMemory {
        budget: session.common.memory_budget.map(|Size(bytes)| bytes),
        needed: Cell::new(0),
    };
    let mut old = Items::open(args, session, &args.old, &memory)?;
    let mut new = Items::open(args, session, &args.new, &memory)?;
    let compared = bc_hash::diff::diff_digests(&mut old, &mut new);
    memory.verdict().map_err(|text| session.fatal(text))?;
    old.verdict(session)?;
    new.verdict(session)?;
    compared.map_err(|error| {
        let path = bc_fs::escape(&error.path).into_owned();
        session.fatal(format!(
            "{path}: the two manifests have no algorithm in common"
        ))
    })
}

/// Memory that the lines of both manifests take. Those that have no room are counted, and not kept.
struct ListMemory {
    budget: Option<u64>,
    needed: Cell<u64>,
}

impl ListMemory {
    /// Counts a line; returns true if it has room.
    fn has_room(&self, file: &FileDigests) -> bool {
        let needed = self.needed.get() + bc_hash::diff::line_memory(file);
        self.needed.set(needed);
        self.budget.is_none_or(|budget| needed <= budget)
    }

    fn verdict(&self) -> Result<(), String> {
        let needed = self.needed.get();
        match self.budget {
            Some(budget) if needed > budget => Err(format!(
                "--memory-budget: {budget} bytes are too few for these lists; at least {needed} are needed"
            )),
            _ => Ok(()),
        }
    }
}

/// Stream of the items of one manifest, with counts of its errors.
struct Items<'a> {
    lines: manifest::ManifestLines,
    hint: Hint,
    name: String,
    good: u64,
    improper: u64,
    /// Paths whose digests the manifest does not have, in lines: one text, however many there are.
    missing: String,
    error: Option<String>,
    memory: &'a ListMemory,
    cancel: &'a bc_pool::Cancel,
}

impl<'a> Items<'a> {
    fn open(
        args: &DiffArgs,
        session: &'a Session,
        path: &Path,
        memory: &'a ListMemory,
    ) -> Outcome<Items<'a>> {
        let lines = manifest::open(path.as_os_str(), args.zero, &session.cancel)
            .map_err(|text| session.fatal(&text))?;
        Ok(Items {
            lines,
            hint: Hint::new(args.algorithm, path),
            name: bc_fs::escape(path.as_os_str().as_encoded_bytes()).into_owned(),
            good: 0,
            improper: 0,
            missing: String::new(),
            error: None,
            memory,
            cancel: &session.cancel,
        })
    }

    /// Notes a missing digest; `text` is escaped.
    fn miss(&mut self, text: &str) {
        self.missing.push_str(text);
        self.missing.push('\n');
    }

    /// Reports the errors at the end: an unreadable manifest or one without a proper line is fatal.
    fn verdict(&self, session: &Session) -> Outcome<()> {
        session.report.detail(|| {
            let Items {
                name,
                good,
                improper,
                ..
            } = self;
            format!("{name}: {good} digests, {improper} lines that are none")
        });
        if let Some(error) = &self.error {
            return Err(session.fatal(format!("{}: {error}", self.name)));
        }
        for text in self.missing.lines() {
            session.report.problem(text);
        }
        if self.good == 0 && self.improper > 0 {
            let text = format!("{}: no properly formatted checksum lines found", self.name);
            return Err(session.fatal(&text));
        }
        if self.improper > 0 {
            session.report.warning(format_args!(
                "{}: {} improperly formatted lines",
                self.name, self.improper
            ));
        }
        Ok(())
    }
}

impl Iterator for &mut Items<'_> {
    type Item = FileDigests;

    fn next(&mut self) -> Option<FileDigests> {
        while !self.cancel.is_cancelled() {
            let line = match self.lines.next()? {
                Ok(line) => line,
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            };
            match manifest::resolve(line, self.hint) {
                LineMeaning::Wanted(file) | LineMeaning::Guessed(file) => {
                    self.good += 1;
                    if self.memory.has_room(&file) {
                        return Some(file);
                    }
                }
                LineMeaning::Nothing => {}
                LineMeaning::Unread(path, reason) => {
                    self.miss(&manifest::unread(&self.name, &path, &reason));
                    let digests = Vec::new();
                    return Some(FileDigests { path, digests });
                }
                LineMeaning::CutShort => self.miss(&manifest::cut_short(&self.name)),
                LineMeaning::Improper(_) => self.improper += 1,
            }
        }
        None
    }
}

/// Returns the counts of added, removed, modified and moved files.
fn counts(differences: &Differences) -> [u64; 4] {
    let mut counts = [0; 4];
    for change in differences.changes() {
        counts[match change {
            DiffEntry::Added(_) => 0,
            DiffEntry::Removed(_) => 1,
            DiffEntry::Modified(_) => 2,
            DiffEntry::Moved { .. } => 3,
        }] += 1;
    }
    counts
}

fn write_text(output: &mut Output, differences: &Differences) -> io::Result<()> {
    let mut line = Vec::new();
    for change in differences.changes() {
        line.clear();
        let (meaning, word, path, to) = match change {
            DiffEntry::Added(path) => (Meaning::Added, "ADDED", path, None),
            DiffEntry::Removed(path) => (Meaning::Plain, "REMOVED", path, None),
            DiffEntry::Modified(path) => (Meaning::Changed, "MODIFIED", path, None),
            DiffEntry::Moved { from, to } => (Meaning::Plain, "MOVED", from, Some(to)),
        };
        output.paint(meaning, word.as_bytes())?;
        output.write_all(b" ")?;
        manifest::push_name(&mut line, path);
        output.path(&line)?;
        if let Some(to) = to {
            line.clear();
            manifest::push_name(&mut line, to);
            output.write_all(b" -> ")?;
            output.path(&line)?;
        }
        output.write_all(b"\n")?;
    }
    Ok(())
}

fn write_document(
    output: &mut Output,
    differences: &Differences,
    counts: [u64; 4],
) -> io::Result<()> {
    writeln!(
        output,
        "{{\n  \"schema\": 1,\n  \"command\": \"hash diff\",\n  \"changes\": ["
    )?;
    for (i, change) in differences.changes().enumerate() {
        let mut object = serde_json::Map::new();
        let (word, path) = match change {
            DiffEntry::Added(path) => ("ADDED", path),
            DiffEntry::Removed(path) => ("REMOVED", path),
            DiffEntry::Modified(path) => ("MODIFIED", path),
            DiffEntry::Moved { from, .. } => ("MOVED", from),
        };
        object.insert("change".into(), json!(word));
        insert_bytes(&mut object, "path", path);
        if let DiffEntry::Moved { to, .. } = change {
            insert_bytes(&mut object, "to", to);
        }
        let comma = if i + 1 < differences.changes().len() {
            ","
        } else {
            ""
        };
        writeln!(output, "    {}{comma}", serde_json::Value::Object(object))?;
    }
    let summary = json!({
        "added": counts[0], "removed": counts[1], "modified": counts[2], "moved": counts[3],
        "same": differences.same(),
    });
    writeln!(output, "  ],\n  \"summary\": {summary}\n}}")
}
