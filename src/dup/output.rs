//! Output of `bc dup`: reports, a line for each step, and the totals at the end.

use std::io::{self, Write};
use std::path::Path;

use bc_find::report::{PathSpelling, ReportFormat, ScanReport};
use bc_find::scan::Scan;
use bc_fs::quote::shell_path;
use bc_prune::{
    HALF_WAY, Keep, KeepRules, PruneEvent, PruneSummary, RunMode, Skip, StepOutcome, UndoEvent,
    UndoOutcome, UndoSummary,
};

use crate::files::output::{Output, OutputLines};
use crate::report::Exit;
use crate::report::diagnostic::Diagnostic;
use crate::session::progress::size;
use crate::session::{Outcome, Session};

/// Writes the groups found in one of the engine's formats.
pub fn report(found: &ScanReport<'_>, format: ReportFormat, output: &mut Output) -> io::Result<()> {
    let names = match output.is_terminal() {
        true => PathSpelling::OneLine,
        false => PathSpelling::Exact,
    };
    found.write(format, names, output)
}

/// Reports a finished search: the cache's messages, every file that could not be judged, and the
/// figures.
pub fn search(session: &Session, scan: &Scan, cache: &[String]) {
    let report = &session.report;
    for message in cache {
        report.warning(message);
    }
    for error in &scan.errors {
        report.problem(error);
    }
    let stats = &scan.stats;
    report.note(format_args!(
        "search: {} files, {} share their size, {} read first, {} read whole afterwards, {} bytes read, reader {}, {:.3} s in all",
        stats.files, stats.size_candidates, stats.fast_hashed, stats.full_hashed, stats.bytes_read,
        stats.backend.name(), session.elapsed(),
    ));
    report.detail(|| {
        let [size, first, second] = stats.times.map(|time| time.as_secs_f64());
        format!(
            "search: by size {size:.3} s, first read {first:.3} s, second read {second:.3} s; {} \
             digests were remembered",
            stats.remembered
        )
    });
    report.note(format_args!(
        "found: {} groups, {} duplicates, {} wasted",
        scan.groups().len(),
        scan.duplicates(),
        size(scan.wasted()),
    ));
}

/// Ends the run with the search's figures in the metrics.
pub fn end_search(mut session: Session, scan: &Scan, exit: Exit) -> Exit {
    let stats = &scan.stats;
    let metrics = &mut session.metrics;
    metrics.counts([
        ("files", "Files processed.", stats.files),
        ("read_bytes", "Bytes read.", stats.bytes_read),
        (
            "groups",
            "Groups of equal files.",
            scan.groups().len() as u64,
        ),
        (
            "duplicates",
            "Files that could be given up.",
            scan.duplicates(),
        ),
        (
            "wasted_bytes",
            "Disk space that could be freed.",
            scan.wasted(),
        ),
    ]);
    metrics.label("reader", stats.backend.name());
    session.end(exit)
}

/// Lists the originals of killed moves that a run does not come to, with `why` they are there.
pub fn originals(session: &Session, found: &[Vec<u8>], why: &str) {
    for path in found {
        let text = format!("{}: {why}", bc_fs::escape(path));
        let what = Diagnostic::from(text).about(path, "prune", None, why);
        session.report.problem(what);
    }
}

/// Opens the lines of steps on stdout; with `-q` there are none.
pub fn steps(session: &Session) -> Outcome<OutputLines> {
    let output = session.output(None)?;
    Ok(OutputLines::new(match session.common.quiet {
        true => Output::nowhere(),
        false => output,
    }))
}

/// Ends the lines of steps. The steps are done, whether they could be printed or not.
pub fn end_steps(session: &Session, steps: OutputLines) {
    if let Err(what) = steps.finish() {
        session.report.unwritten(&what);
    }
}

/// Prints an event of a run of prune.
pub fn prune_event(event: &PruneEvent, session: &Session, steps: &OutputLines) {
    let report = &session.report;
    match event {
        PruneEvent::Step(_, outcome) | PruneEvent::Tree(_, outcome) => match outcome {
            StepOutcome::Skipped(skip) if skip.is_error() => report.problem(event),
            StepOutcome::Skipped(
                Skip::Filtered(_)
                | Skip::Stays
                | Skip::HoldsChosen(_)
                | Skip::UnknownStage
                | Skip::UnknownLeftover,
            ) => {
                report.warning(event);
            }
            StepOutcome::Skipped(_) => report.note(event),
            StepOutcome::Done { lost, .. } => {
                if !lost.is_empty() {
                    report.warning(format_args!("{event}: without {}", lost.join("; ")));
                }
                steps.write(|to| writeln!(to, "{event}"));
            }
            StepOutcome::Would { .. } => steps.write(|to| writeln!(to, "{event}")),
        },
        PruneEvent::WritersUndetected(..) => {
            report.info(event);
        }
        PruneEvent::Unusable(..) | PruneEvent::Journal(_) => {
            report.problem(event);
        }
    }
}

/// Warns of patterns that no file matched: perhaps another one should have been kept.
pub fn unmatched(session: &Session, rules: &KeepRules, summary: &PruneSummary) {
    // Without duplicates there was nothing that could have matched.
    if summary.groups == 0 {
        return;
    }
    for text in unmatched_rules(rules) {
        session.report.warning(text);
    }
}

/// Returns the message for each pattern that no file matched.
pub fn unmatched_rules(rules: &KeepRules) -> impl Iterator<Item = String> {
    rules.keep.iter().filter_map(Keep::unmatched).map(|text| {
        let text = bc_fs::escape(text.as_bytes());
        format!("--keep={text}: none of the duplicates matches")
    })
}

/// Returns the words before the verbs of a dry run.
fn would(mode: RunMode) -> &'static str {
    match mode {
        RunMode::DryRun => "would be ",
        RunMode::Execute => "",
    }
}

/// Prints the totals of prune.
pub fn totals(session: &Session, summary: &PruneSummary, mode: RunMode, journal: Option<&Path>) {
    let would = would(mode);
    let mut text = if summary.changed == 0 && summary.is_clean() {
        "nothing to do".to_owned()
    } else {
        let (bytes, word) = match summary.used {
            0 => (summary.freed, "freed"),
            used => (used, "used to copy files up"),
        };
        let s = if summary.changed == 1 { "" } else { "s" };
        let bytes = size(bytes);
        let files = format!("{} file{s}", summary.changed);
        let what = match summary.dirs {
            0 => files,
            1 => format!("1 directory with {files}"),
            dirs => format!("{dirs} directories with {files}"),
        };
        format!("{what} {would}changed, {bytes} {would}{word}")
    };
    if summary.layers_unknown > 0 {
        text += &format!(
            " at worst, as the layers of {} are not known",
            summary.layers_unknown
        );
    }
    if summary.unreported > 0 {
        let unreported = summary.unreported;
        text += &format!(", not counting {unreported} of which the file system does not tell");
    }
    for (reason, count) in &summary.skipped {
        text += &format!("; {count} skipped: {reason}");
    }
    if summary.incomplete > 0 {
        text += &format!("; {} of them not with all they had", summary.incomplete);
    }
    text += &tidied(summary.leftovers, would);
    session.report.summary(text);
    // Of a directory that is half empty perhaps no file is gone yet, but a link.
    let is_stopped = summary.skipped.contains_key(HALF_WAY);
    if let Some(journal) = journal.filter(|_| summary.changed > 0 || is_stopped) {
        // By its name: the last one may be another by the time that this is typed.
        let path = journal.as_os_str().as_encoded_bytes();
        session.report.summary(format_args!(
            "journal: {}; 'bc dup undo {}' reverts it",
            bc_fs::escape(path),
            shell_path(path)
        ));
    }
}

/// Returns the note about temporaries that were removed, if any were.
fn tidied(count: u64, would: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!("; 1 temporary of a killed run {would}removed"),
        _ => format!("; {count} temporaries of a killed run {would}removed"),
    }
}

/// Ends the run with prune's figures in the metrics.
pub fn end_prune(mut session: Session, summary: &PruneSummary) -> Exit {
    session.metrics.counts([
        ("changed", "Files changed.", summary.changed),
        (
            "directories",
            "Directories removed or moved with all that was in them.",
            summary.dirs,
        ),
        ("freed_bytes", "Disk space freed.", summary.freed),
        (
            "used_bytes",
            "Disk space taken by copying files up from a lower layer, beyond what was freed.",
            summary.used,
        ),
        (
            "layers_unknown",
            "Files changed that may lie in a lower layer or not: the worst is assumed.",
            summary.layers_unknown,
        ),
        (
            "freed_unknown",
            "Removed files whose disk usage is unknown.",
            summary.unreported,
        ),
    ]);
    let exit = match session.report.exit() {
        Exit::Done if !summary.is_clean() => Exit::Differs,
        exit => exit,
    };
    session.end(exit)
}

/// Reports the outcome of one name of a journal.
pub fn undo_event(event: UndoEvent<'_>, session: &Session, steps: &OutputLines) {
    let report = &session.report;
    let (path, action) = (bc_fs::escape(event.path), event.action);
    match event.outcome {
        UndoOutcome::Restored { lost } if lost.is_empty() => {
            steps.write(|to| writeln!(to, "restored {path} ({action})"));
        }
        UndoOutcome::Restored { lost } => {
            report.problem(format!("{path}: restored without {}", lost.join("; ")));
            steps.write(|to| writeln!(to, "restored {path} ({action}), incomplete"));
        }
        UndoOutcome::Would { lost } if lost.is_empty() => {
            steps.write(|to| writeln!(to, "restore {path} ({action})"));
        }
        UndoOutcome::Would { lost } => {
            report.problem(format!(
                "{path}: would be restored without {}",
                lost.join("; ")
            ));
            steps.write(|to| writeln!(to, "restore {path} ({action}), incomplete"));
        }
        UndoOutcome::Unneeded => report.note(format_args!("{path}: nothing to undo")),
        UndoOutcome::Failed(skip @ (Skip::UnknownStage | Skip::UnknownLeftover)) => {
            report.warning(format!("{path}: {skip}"));
        }
        UndoOutcome::Failed(skip) => {
            let failed = Diagnostic::from(&skip.failure(event.path, "undo"));
            report.problem(failed.worded(format!("{path}: not restored: {skip}")));
        }
    }
}

/// Prints the totals of undo.
pub fn undo_totals(session: &Session, summary: &UndoSummary, mode: RunMode, journal: &Path) {
    let report = &session.report;
    for line in &summary.damaged {
        let journal = bc_fs::escape(journal.as_os_str().as_encoded_bytes());
        report.problem(format!(
            "{journal}: line {line} is damaged; its step is not undone"
        ));
    }
    let would = would(mode);
    let mut text = format!("{} {would}restored", summary.restored);
    for (count, what) in [
        (summary.incomplete, "of them incomplete"),
        (summary.unneeded, "in place already"),
        (summary.failed, "not restored"),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    if summary.restored + summary.unneeded + summary.failed == 0 && !session.cancel.is_cancelled() {
        text += "; the journal's run changed nothing";
    }
    text += &tidied(summary.leftovers, would);
    report.summary(text);
    report.note(format_args!("undo: {:.3} s in all", session.elapsed()));
}
