//! Output of `bc copy`: a line for each path where that is asked for, and the totals.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_copy::{Copied, Event, Moved};
use bc_fs::Escaped;
use bc_fs::quote::shell_path;

use crate::files::output::{Output, OutputLines, is_readable_again};
use crate::report::Exit;
use crate::report::style::Meaning;
use crate::session::Session;
use crate::session::progress::{counted, nonzero, size, thousands};

/// Reports an event, from any thread; with `lines` there is one for each path.
pub fn report(event: Event<'_>, session: &Session, lines: Option<&OutputLines>) {
    let report = &session.report;
    let line = |meaning, mark, path, why| {
        if let Some(lines) = lines {
            lines.write(|output| write(output, meaning, mark, path, why));
        }
    };
    match event {
        Event::Made(path) | Event::Copied(path) => line(Meaning::Added, "+", path, None),
        Event::Replaced(path) => line(Meaning::Changed, "~", path, None),
        Event::Skipped(path, why) => {
            line(Meaning::Plain, "=", path, Some(why.text()));
            report.detail(|| format!("{}: left: {}", Escaped(path), why.text()));
        }
        Event::Failed(error) => report.problem(error),
        Event::Incomplete(error) => report.warning(error),
        Event::Nested(path) => report.summary(nested(path)),
        Event::Note(text) => report.summary(text),
        Event::Warning(text) => report.warning(text),
        _ => {}
    }
}

/// Returns the message that a copy gets this path within another one, and how it is repeated there.
fn nested(path: &[u8]) -> String {
    let copy = Path::new(OsStr::from_bytes(path)).parent();
    let copy = copy.unwrap_or(Path::new("")).as_os_str().as_bytes();
    format!(
        "{} is a copy already: this one is made in it, as {}; with -T that copy would be made again",
        Escaped(copy),
        Escaped(path)
    )
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
    output.write_all(bc_fs::escape(path).as_bytes())?;
    if let Some(why) = why {
        write!(output, ": {why}")?;
    }
    output.write_all(b"\n")
}

/// Prints the command that compares a copy in `place` with its manifest, unless that went to a stream.
fn how_to_verify(session: &Session, place: &OsStr, manifest: &[u8]) {
    if !is_readable_again(Path::new(OsStr::from_bytes(manifest))) {
        return;
    }
    session.report.closing(|| {
        // Of one file that has a name of its own the manifest is that of the directory.
        let place = Path::new(place);
        let root = match place.parent().filter(|_| !place.is_dir()) {
            Some(above) if above.as_os_str().is_empty() => Path::new("."),
            Some(above) => above,
            None => place,
        };
        let root = shell_path(root.as_os_str().as_bytes());
        let manifest = shell_path(manifest);
        format!("'bc integrity verify {root} {manifest}' compares the copy with its manifest")
    });
}

/// Reports the totals of a copy to `place`, and returns the exit code. `destination`: the one that
/// they are of, where there are several.
pub fn conclude(
    session: &Session,
    copied: &Copied,
    place: &OsStr,
    destination: Option<&OsStr>,
    dry_run: bool,
) -> Exit {
    let named = |text: String| match destination {
        Some(path) => format!("{}: {text}", Escaped(path.as_bytes())),
        None => text,
    };
    let report = &session.report;
    report.summary(named(counts(copied, dry_run)));
    let directories = thousands(copied.directories);
    report.note(named(format!("{directories} directories read")));
    if let Some(manifest) = &copied.manifest {
        report.note(format_args!("{}: the manifest", Escaped(manifest)));
    }
    if let Some(manifest) = copied.manifest.as_ref().filter(|_| copied.failed == 0) {
        how_to_verify(session, place, manifest);
    }
    if copied.resumable {
        report.summary(named("run the same command again to resume".to_owned()));
    }
    if let Some(why) = &copied.stopped {
        let text = takes_no_more("the destination", why, copied.bytes_left);
        return session.fatal(named(text));
    }
    match copied.failed {
        0 => report.exit(),
        _ => Exit::Differs,
    }
}

/// Reports the totals of a move, and returns the exit code.
pub fn conclude_move(session: &Session, moved: &Moved, place: &OsStr, dry_run: bool) -> Exit {
    let report = &session.report;
    let mut parts = vec![format!("{} moved", thousands(moved.moved))];
    parts.extend(nonzero([
        (moved.kept, "left at the source"),
        (moved.failed, "failed"),
        (moved.left, "not started"),
    ]));
    let mut text = format!("{} of {}", parts.join(", "), thousands(moved.walked));
    text = written(text, Some(moved.copied.bytes), dry_run);
    if moved.before > 0 {
        text += &format!("; {} of them by an earlier run", thousands(moved.before));
    }
    report.summary(text + &not_given(moved.copied.incomplete));
    if moved.renamed > 0 {
        report.note(format_args!("{} by renaming", thousands(moved.renamed)));
    }
    if let Some(manifest) = &moved.copied.manifest {
        report.note(format_args!("{}: the manifest", Escaped(manifest)));
    }
    let is_whole = moved.failed == 0;
    if let Some(manifest) = moved.copied.manifest.as_ref().filter(|_| is_whole) {
        how_to_verify(session, place, manifest);
    }
    if moved.resumable {
        report.summary("run the same command again to resume");
    }
    if let Some(why) = &moved.copied.stopped {
        return session.fatal(takes_no_more(
            "the destination",
            why,
            moved.copied.bytes_left,
        ));
    }
    match moved.failed + moved.kept {
        0 => report.exit(),
        _ => Exit::Differs,
    }
}

/// Sets the figures of a move.
pub fn move_figures(session: &mut Session, moved: &Moved) {
    session.metrics.counts([
        ("move_walked", "Entries met.", moved.walked),
        ("move_moved", "Entries moved.", moved.moved),
        ("move_renamed", "Entries moved by renaming.", moved.renamed),
        ("move_kept", "Entries left at the source.", moved.kept),
        ("move_failed", "Entries that failed.", moved.failed),
        ("move_left", "Entries not started.", moved.left),
        ("written_bytes", "Bytes written.", moved.copied.bytes),
        (
            "move_incomplete",
            "Properties that could not be given.",
            moved.copied.incomplete,
        ),
    ]);
}

/// Returns the counts of one destination in words.
fn counts(copied: &Copied, dry_run: bool) -> String {
    let mut parts = vec![format!("{} copied", thousands(copied.copied))];
    parts.extend(nonzero([
        (copied.skipped, "left as they were"),
        (copied.failed, "failed"),
        (copied.left, "not started"),
    ]));
    let mut text = format!("{} of {}", parts.join(", "), thousands(copied.walked));
    text = written(text, Some(copied.bytes), dry_run);
    if copied.before > 0 {
        text += &format!("; {} of them by an earlier run", thousands(copied.before));
    }
    text + &not_given(copied.incomplete)
}

/// Sets the figures of the run: the totals of all destinations together.
pub fn figures(session: &mut Session, all: &[&Copied]) {
    let sum = |of: fn(&Copied) -> u64| all.iter().map(|copied| of(copied)).sum();
    session.metrics.counts([
        ("copy_walked", "Entries walked.", sum(|one| one.walked)),
        ("copy_copied", "Entries copied.", sum(|one| one.copied)),
        (
            "copy_skipped",
            "Entries left as they were.",
            sum(|one| one.skipped),
        ),
        ("copy_failed", "Entries that failed.", sum(|one| one.failed)),
        ("copy_left", "Entries not started.", sum(|one| one.left)),
        (
            "copy_before",
            "Entries that an earlier run had copied.",
            sum(|one| one.before),
        ),
        ("written_bytes", "Bytes written.", sum(|one| one.bytes)),
        (
            "copy_incomplete",
            "Properties that could not be given.",
            sum(|one| one.incomplete),
        ),
    ]);
}

/// Returns the counts of a run with the `bytes` that it wrote, or with the words for a dry run.
pub fn written(counts: String, bytes: Option<u64>, dry_run: bool) -> String {
    match (dry_run, bytes) {
        (true, _) => format!("dry run: nothing is written: {counts}"),
        (false, Some(bytes)) => format!("{counts}; {} written", size(bytes)),
        (false, None) => counts,
    }
}

/// Returns words for so many properties that files did not get; none for none.
pub fn not_given(count: u64) -> String {
    match count {
        0 => String::new(),
        _ => format!(
            "; {} could not be given",
            counted(count, "property", "properties")
        ),
    }
}

/// Returns the message that a file system is full, or takes no more for another reason.
pub fn takes_no_more(what: &str, why: &str, bytes_left: u64) -> String {
    let missing = size(bytes_left);
    format!("{what} takes no more: {why}; {missing} are still to be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_say_what_was_written_and_what_was_not() {
        let counts = || "2 copied".to_owned();
        let dry = "dry run: nothing is written: 2 copied";
        assert_eq!(written(counts(), Some(9), true), dry);
        assert_eq!(written(counts(), Some(9), false), "2 copied; 9 B written");
        assert_eq!(written(counts(), None, false), "2 copied");
        assert_eq!(not_given(0), "");
        assert_eq!(not_given(1000), "; 1,000 properties could not be given");
        let text = takes_no_more("the tree", "no space", 5);
        assert_eq!(
            text,
            "the tree takes no more: no space; 5 B are still to be written"
        );
    }
}
