//! What `bc copy` says: a line for each path where that is asked for, and what it came to.

use std::io::{self, Write};
use std::sync::Mutex;

use bc_copy::{Copied, Event};
use bc_fs::Escaped;

use crate::exit::Exit;
use crate::output::Output;
use crate::progress::line::{size, thousands};
use crate::run::Session;
use crate::style::Meaning;

/// Tells of events, from any thread.
pub struct Teller<'a> {
    session: &'a Session,
    /// Where lines go, and the first failure of writing them.
    lines: Option<Mutex<(Output, io::Result<()>)>>,
}

impl<'a> Teller<'a> {
    /// With a line for each path if there is an output for it.
    pub fn new(session: &'a Session, output: Option<Output>) -> Teller<'a> {
        Teller {
            session,
            lines: output.map(|output| Mutex::new((output, Ok(())))),
        }
    }

    /// Tells of one.
    pub fn tell(&self, event: Event<'_>) {
        let report = &self.session.report;
        match event {
            Event::Copied(path) => self.line(Meaning::Added, "+", path, None),
            Event::Replaced(path) => self.line(Meaning::Changed, "~", path, None),
            Event::Skipped(path, why) => {
                self.line(Meaning::Plain, "=", path, Some(why.text()));
                report.detail(|| format!("{}: left: {}", Escaped(path), why.text()));
            }
            Event::Failed(error) => report.failure(error),
            Event::Incomplete(error) => report.warning(&error.to_string()),
            Event::Note(text) => report.summary(text),
            Event::Warning(text) => report.warning(text),
            _ => {}
        }
    }

    fn line(&self, meaning: Meaning, mark: &str, path: &[u8], why: Option<&str>) {
        let Some(lines) = &self.lines else {
            return;
        };
        let Ok(mut lines) = lines.lock() else {
            return;
        };
        let (output, result) = &mut *lines;
        if result.is_ok() {
            *result = write(output, meaning, mark, path, why);
        }
    }

    /// Ends the lines.
    pub fn finish(self) -> Result<(), Exit> {
        let Some(lines) = self.lines else {
            return Ok(());
        };
        let (output, result) = match lines.into_inner() {
            Ok(lines) => lines,
            Err(poisoned) => poisoned.into_inner(),
        };
        let finished = output.finish(result);
        finished.map(drop).map_err(|text| self.session.fatal(&text))
    }
}

fn write(
    output: &mut Output,
    meaning: Meaning,
    mark: &str,
    path: &[u8],
    why: Option<&str>,
) -> io::Result<()> {
    output.paint(meaning, mark.as_bytes())?;
    output.write_all(b" ")?;
    let path = match output.is_terminal() {
        true => Escaped(path).to_string().into_bytes(),
        false => path.to_vec(),
    };
    output.write_all(&path)?;
    if let Some(why) = why {
        output.write_all(b": ")?;
        output.write_all(why.as_bytes())?;
    }
    output.write_all(b"\n")
}

/// Says what it came to, and gives the exit code.
pub fn conclude(session: &mut Session, copied: &Copied, dry_run: bool) -> Exit {
    figures(session, copied);
    let mut parts = vec![format!("{} copied", thousands(copied.copied))];
    for (count, what) in [
        (copied.skipped, "left as they were"),
        (copied.failed, "failed"),
        (copied.left, "not begun"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", thousands(count)));
        }
    }
    let mut text = format!("{} of {}", parts.join(", "), thousands(copied.walked));
    if dry_run {
        text = format!("dry run: nothing is written: {text}");
    } else {
        text += &format!("; {} written", size(copied.bytes));
    }
    if copied.before > 0 {
        text += &format!("; {} of them by an earlier run", thousands(copied.before));
    }
    if copied.incomplete > 0 {
        let count = thousands(copied.incomplete);
        text += &format!("; {count} properties could not be given");
    }
    session.report.summary(&text);
    let directories = thousands(copied.directories);
    session
        .report
        .note(1, &format!("{directories} directories read"));
    if let Some(manifest) = &copied.manifest {
        let text = format!("{}: the manifest", Escaped(manifest));
        session.report.note(1, &text);
    }
    if copied.resumable {
        session.report.summary("the same command goes on from here");
    }
    if let Some(why) = &copied.stopped {
        let text = format!(
            "the destination takes no more: {why}; {} are missing",
            size(copied.bytes_left)
        );
        return session.fatal(text);
    }
    match copied.failed {
        0 => session.report.exit(),
        _ => Exit::Differs,
    }
}

fn figures(session: &mut Session, copied: &Copied) {
    let metrics = &mut session.metrics;
    for (name, help, count) in [
        ("copy_walked", "Entries walked.", copied.walked),
        ("copy_copied", "Entries copied.", copied.copied),
        ("copy_skipped", "Entries left as they were.", copied.skipped),
        ("copy_failed", "Entries that failed.", copied.failed),
        ("copy_left", "Entries not begun.", copied.left),
        (
            "copy_before",
            "Entries that an earlier run had copied.",
            copied.before,
        ),
        ("written_bytes", "Bytes written.", copied.bytes),
        (
            "copy_incomplete",
            "Properties that could not be given.",
            copied.incomplete,
        ),
    ] {
        metrics.set(name, help, count as f64);
    }
}
