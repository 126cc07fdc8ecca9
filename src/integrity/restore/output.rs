//! Output of `bc integrity restore`: a line for each path, in words or JSON, and the totals.

use std::ffi::OsStr;
use std::io::{self, Write};

use bc_copy::{Loss, Repaired, RestoreEvent, RestoreOptions, Restored};
use bc_digest::Algorithm;
use bc_fs::escape;
use bc_manifest::json::{JsonPath, insert_bytes};
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::copy::{not_given, takes_no_more, written};
use crate::files::output::{Output, OutputLines};
use crate::report::Exit;
use crate::report::diagnostic::Diagnostic;
use crate::report::style::Meaning;
use crate::session::progress::{nonzero, thousands};
use crate::session::{Outcome, Session};

/// Format of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RestoreFormat {
    /// A line for each.
    Text,
    /// JSON lines: header, paths, summary.
    Json,
}

impl RestoreFormat {
    /// Returns the output, set to escape as this format needs.
    pub fn of(self, output: Output) -> Output {
        match self {
            RestoreFormat::Json => output.json(),
            RestoreFormat::Text => output,
        }
    }
}

/// Reporter of events, from any thread.
pub struct Reporter<'a> {
    session: &'a Session,
    format: RestoreFormat,
    lines: OutputLines,
}

impl<'a> Reporter<'a> {
    pub fn new(session: &'a Session, output: Output, format: RestoreFormat) -> Reporter<'a> {
        Reporter {
            session,
            format,
            lines: OutputLines::new(output),
        }
    }

    fn object(&self, object: &Map<String, Value>) {
        self.lines.write(|output| {
            serde_json::to_writer(&mut *output, object)?;
            output.write_all(b"\n")
        });
    }

    /// Writes the header in JSON, with manifest, root, copies and parity; the text format has none.
    pub fn begin(&self, options: &RestoreOptions<'_>, algorithm: Algorithm) {
        if self.format != RestoreFormat::Json {
            return;
        }
        let mut header = object("header");
        header.insert("schema".into(), 1.into());
        header.insert("command".into(), "restore".into());
        insert_bytes(&mut header, "manifest", options.manifest.name());
        insert_bytes(&mut header, "root", options.root.as_encoded_bytes());
        let shown = |path: &OsStr| json!(JsonPath::new(path.as_encoded_bytes()));
        let from = options.from.iter().map(|path| shown(path));
        header.insert("from".into(), from.collect());
        if let Some(parity) = &options.parity {
            let dir = parity.dir().as_os_str().as_encoded_bytes();
            insert_bytes(&mut header, "parity", dir);
        }
        if let Some(removed) = &options.removed {
            let removed = removed.iter().map(|path| shown(path.as_os_str()));
            header.insert("removed".into(), removed.collect());
        }
        header.insert("algorithm".into(), algorithm.name().into());
        header.insert("dry_run".into(), options.dry_run.into());
        self.object(&header);
    }

    /// Reports one event.
    pub fn report(&self, event: RestoreEvent<'_>) {
        let report = &self.session.report;
        match (event, self.format) {
            (RestoreEvent::Repaired(repaired), RestoreFormat::Text) => {
                self.lines.write(|to| repaired_line(to, repaired));
            }
            (RestoreEvent::Repaired(repaired), RestoreFormat::Json) => {
                self.object(&repaired_object(repaired));
            }
            (RestoreEvent::Missing { path, loss, why }, RestoreFormat::Text) => {
                self.lines.write(|to| {
                    to.paint(Meaning::Bad, b"!!")?;
                    writeln!(to, " {}: {}: {why}", escape(path), loss.name())
                })
            }
            (RestoreEvent::Missing { path, loss, why }, RestoreFormat::Json) => {
                let mut object = of_path("missing", path, loss);
                object.insert("reason".into(), why.into());
                self.object(&object);
            }
            (RestoreEvent::Failed { path, loss, error }, format) => {
                report.problem(error);
                if format == RestoreFormat::Json {
                    let mut object = of_path("failed", path, loss);
                    let error = Diagnostic::from(error).fields("integrity");
                    object.insert("error".into(), error.into());
                    self.object(&object);
                }
            }
            (RestoreEvent::Partial { path, part }, RestoreFormat::Text) => {
                let (path, part) = (escape(path), escape(part));
                report.warning(format!("{path}: what could be restored of it is {part}"));
            }
            (RestoreEvent::Partial { path, part }, RestoreFormat::Json) => {
                let mut object = object("partial");
                insert_bytes(&mut object, "path", path);
                insert_bytes(&mut object, "part", part);
                self.object(&object);
            }
            (RestoreEvent::Unread(error), _) => report.problem(error),
            (RestoreEvent::Incomplete(error) | RestoreEvent::Unreadable(error), _) => {
                report.warning(error);
            }
            (
                RestoreEvent::Warning {
                    path,
                    operation,
                    why,
                },
                _,
            ) => {
                let text = format!("{}: {why}", escape(path));
                report.warning(Diagnostic::from(text).about(path, operation, None, why));
            }
            _ => {}
        }
    }

    /// Ends the lines, with the totals if it came to an end.
    pub fn finish(self, restored: Option<&Restored>) -> Outcome<()> {
        if let (Some(restored), RestoreFormat::Json) = (restored, self.format) {
            self.object(&summary(restored));
        }
        let finished = self.lines.finish();
        finished.map_err(|what| self.session.fatal(what))
    }
}

fn repaired_line(output: &mut Output, repaired: &Repaired<'_>) -> io::Result<()> {
    output.paint(Meaning::Added, b"+")?;
    write!(output, " {}", escape(repaired.path))?;
    if let Some(from) = repaired.from {
        write!(output, ": from {}", escape(from))?;
    }
    if let Some(linked) = repaired.linked {
        write!(output, ": linked to {}", escape(linked))?;
    }
    if let Some(kept) = repaired.kept {
        write!(output, "; previous file kept as {}", escape(kept))?;
    }
    output.write_all(b"\n")
}

fn repaired_object(repaired: &Repaired<'_>) -> Map<String, Value> {
    let mut object = of_path("repaired", repaired.path, repaired.loss);
    for (key, path) in [
        ("from", repaired.from),
        ("linked", repaired.linked),
        ("kept", repaired.kept),
    ] {
        if let Some(path) = path {
            insert_bytes(&mut object, key, path);
        }
    }
    object
}

fn object(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from(kind))])
}

fn of_path(kind: &str, path: &[u8], loss: Loss) -> Map<String, Value> {
    let mut object = object(kind);
    insert_bytes(&mut object, "path", path);
    object.insert("loss".into(), loss.name().into());
    object
}

fn summary(restored: &Restored) -> Map<String, Value> {
    let value = json!({
        "type": "summary",
        "wanted": restored.wanted,
        "repaired": restored.repaired,
        "missing": restored.missing,
        "withheld": restored.withheld,
        "failed": restored.failed,
        "left": restored.left,
        "others": restored.others,
        "metadata": restored.metadata,
        "incomplete": restored.incomplete,
        "bytes_written": restored.bytes,
        "bytes_left": restored.bytes_left,
        "stopped": restored.stopped,
    });
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Reports the totals, and returns the exit code.
pub fn conclude(session: &mut Session, restored: &Restored, dry_run: bool) -> Exit {
    let read = &restored.verified.read;
    session.metrics.counts([
        ("files", "Files processed.", read.files),
        ("read_bytes", "Bytes read.", read.bytes),
        ("restore_wanted", "Paths to be repaired.", restored.wanted),
        (
            "restore_repaired",
            "Paths that were repaired.",
            restored.repaired,
        ),
        (
            "restore_missing",
            "Paths that no copy could restore.",
            restored.missing,
        ),
        ("restore_failed", "Paths that failed.", restored.failed),
        ("restore_left", "Paths not started.", restored.left),
        ("written_bytes", "Bytes written.", restored.bytes),
    ]);
    let parts = nonzero([
        (restored.repaired, "restored"),
        (restored.missing - restored.withheld, "that no copy holds"),
        (restored.withheld, "left for another reason"),
        (restored.failed, "failed"),
        (restored.left, "not started"),
    ]);
    let text = match parts.is_empty() {
        true => "nothing to restore".to_owned(),
        false => parts.join(", "),
    };
    let bytes = Some(restored.bytes).filter(|bytes| *bytes > 0);
    let mut text = written(text, bytes, dry_run);
    if restored.others > 0 {
        let count = thousands(restored.others);
        text += &format!("; other differences, left as they are: {count}");
    }
    if restored.metadata > 0 {
        let count = thousands(restored.metadata);
        text += &format!("; other metadata, left as it is: {count}");
    }
    text += &not_given(restored.incomplete);
    session.report.summary(text);
    if let Some(why) = &restored.stopped {
        return session.fatal(takes_no_more("the tree", why, restored.bytes_left));
    }
    match restored.missing {
        0 => session.report.exit(),
        _ => Exit::Differs.worst(session.report.exit()),
    }
}
