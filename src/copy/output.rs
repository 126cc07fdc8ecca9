//! Output of `bc copy`: a line for each path where that is asked for, and the totals.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use bc_copy::{Copied, Event};
use bc_fs::Escaped;

use crate::exit::Exit;
use crate::output::Output;
use crate::progress::line::{size, thousands};
use crate::run::Session;
use crate::style::Meaning;

/// Reporter of events, from any thread.
pub struct Teller<'a> {
    session: &'a Session,
    /// Output of the lines, and the first failure of writing them.
    lines: Option<Mutex<(Output, io::Result<()>)>>,
}

impl<'a> Teller<'a> {
    /// Returns the listener; it writes a line for each path if there is an output for it.
    pub fn new(session: &'a Session, output: Option<Output>) -> Teller<'a> {
        Teller {
            session,
            lines: output.map(|output| Mutex::new((output, Ok(())))),
        }
    }

    /// Reports one event.
    pub fn tell(&self, event: Event<'_>) {
        let report = &self.session.report;
        match event {
            Event::Made(path) | Event::Copied(path) => self.line(Meaning::Added, "+", path, None),
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

/// Reports the totals, and returns the exit code. `destination`: the one that they are of, where
/// there are several.
pub fn conclude(
    session: &Session,
    copied: &Copied,
    destination: Option<&OsStr>,
    dry_run: bool,
) -> Exit {
    let named = |text: String| match destination {
        Some(path) => format!("{}: {text}", Escaped(path.as_bytes())),
        None => text,
    };
    let report = &session.report;
    report.summary(&named(counts(copied, dry_run)));
    let directories = thousands(copied.directories);
    report.note(1, &named(format!("{directories} directories read")));
    if let Some(manifest) = &copied.manifest {
        report.note(1, &format!("{}: the manifest", Escaped(manifest)));
    }
    if copied.resumable {
        report.summary(&named("the same command goes on from here".to_owned()));
    }
    if let Some(why) = &copied.stopped {
        let missing = size(copied.bytes_left);
        let text = format!("the destination takes no more: {why}; {missing} are missing");
        return session.fatal(named(text));
    }
    match copied.failed {
        0 => report.exit(),
        _ => Exit::Differs,
    }
}

/// Returns the counts of one destination in words.
fn counts(copied: &Copied, dry_run: bool) -> String {
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
    text
}

/// Totals of all destinations together.
#[derive(Default)]
pub struct Sum([u64; 8]);

impl Sum {
    /// Names and meanings of the figures.
    const FIGURES: [(&str, &str); 8] = [
        ("copy_walked", "Entries walked."),
        ("copy_copied", "Entries copied."),
        ("copy_skipped", "Entries left as they were."),
        ("copy_failed", "Entries that failed."),
        ("copy_left", "Entries not begun."),
        ("copy_before", "Entries that an earlier run had copied."),
        ("written_bytes", "Bytes written."),
        ("copy_incomplete", "Properties that could not be given."),
    ];

    /// Adds the totals of one destination.
    pub fn add(&mut self, copied: &Copied) {
        let more = [
            copied.walked,
            copied.copied,
            copied.skipped,
            copied.failed,
            copied.left,
            copied.before,
            copied.bytes,
            copied.incomplete,
        ];
        for (sum, more) in self.0.iter_mut().zip(more) {
            *sum += more;
        }
    }

    /// Sets the figures of the run.
    pub fn set(&self, session: &mut Session) {
        for ((name, help), count) in Sum::FIGURES.into_iter().zip(self.0) {
            session.metrics.set(name, help, count as f64);
        }
    }
}
