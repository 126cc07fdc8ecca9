//! `bc dup prune` and `bc dup undo`: the words around the engine's steps, the
//! question before them and the totals after.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use bc_dup::Subtrees;
use bc_dup::prune::{
    Event, Force, Group, Journal, Keep, Mode, ORIGINAL, Options, Outcome as StepOutcome, Owners,
    Roots, Rules, Summary, UndoOutcome,
};

use crate::exit::Exit;
use crate::output::Output;
use crate::progress::size;
use crate::run::{Outcome, Session};

use super::args::{PruneArgs, UndoArgs};
use super::{journals, question, references, saved};

pub fn run(args: &PruneArgs) -> Outcome<Exit> {
    let mut read = args.walk.inputs();
    read.extend(args.from.as_deref().map(Path::as_os_str));
    read.extend(args.search.cache.as_deref());
    let session = Session::start("dup", "prune", &args.common, &read, args.journal.as_deref())?;
    // Before anything is searched, asked or changed: steps that cannot be told are not begun.
    Output::open(None).map_err(|text| session.fatal(&text))?;
    let mode = if args.dry_run {
        Mode::DryRun
    } else {
        Mode::Execute
    };
    let asks = mode == Mode::Execute && args.action.needs_confirmation() && !args.yes;
    // Where the question would not be seen, nobody can answer it.
    let on_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if asks && !on_terminal {
        let name = args.action.name();
        return Err(session.fatal(&format!(
            "--action={name} asks on a terminal first; without one it needs --yes"
        )));
    }
    let keep = args.keep.iter().map(|rule| rule.parse());
    let keep: Vec<Keep> = keep
        .collect::<Result<_, _>>()
        .map_err(|error| session.fatal(&format!("--keep: {error}")))?;
    let (groups, references) = groups(&session, args)?;
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    let options = Options {
        rules: Rules {
            keep,
            roots: if args.search.across_roots {
                Roots::Across
            } else {
                Roots::Any
            },
        },
        mode,
        metadata: if args.ignore_metadata {
            Owners::Ignore
        } else {
            Owners::Refuse
        },
        force: if args.force { Force::Yes } else { Force::No },
        max_links: args.max_links,
        earlier: journals::earlier(args),
        references,
        ..Options::new(args.action.clone())
    };
    if asks && !confirmed(&session, &groups, &options) {
        if !session.cancel.is_cancelled() {
            session.report.summary("nothing was changed");
        }
        return Ok(session.end(Exit::Done));
    }
    let mut journal = match mode {
        Mode::Execute if !groups.is_empty() => match journals::open(&session, args, &groups)? {
            None => return Ok(session.end(Exit::Done)),
            opened => opened,
        },
        _ => None,
    };
    let path = journal.as_ref().map(|journal| journal.path().to_owned());
    let summary = act(&session, groups, &options, journal.as_mut())?;
    for text in options.rules.keep.iter().filter_map(Keep::unmatched) {
        // Without duplicates there was nothing that could have matched.
        if summary.groups > 0 {
            let text = bc_fs::escape(text.as_bytes()).into_owned();
            let words = format!("--keep={text}: none of the duplicates matches");
            session.report.warning(&words);
        }
    }
    say_totals(&session, &summary, mode, path.as_deref());
    let exit = match session.report.exit() {
        Exit::Done if !summary.is_clean() => Exit::Differs,
        exit => exit,
    };
    Ok(finish(session, &summary, exit))
}

fn finish(mut session: Session, summary: &Summary, exit: Exit) -> Exit {
    session
        .metrics
        .set("changed", "Files changed.", summary.changed as f64);
    session
        .metrics
        .set("freed_bytes", "Disk space freed.", summary.freed as f64);
    session.metrics.set(
        "used_bytes",
        "Disk space taken by copying files up from a lower layer, beyond what was freed.",
        summary.used as f64,
    );
    session.metrics.set(
        "layers_unknown",
        "Files changed that may lie in a lower layer or not: the worst is assumed.",
        summary.layers_unknown as f64,
    );
    session.metrics.set(
        "freed_unknown",
        "Files that are gone of which it is not known what they took.",
        summary.untold as f64,
    );
    session.end(exit)
}

/// What to act on, and what to keep off: found by a search, or read from a report.
fn groups(session: &Session, args: &PruneArgs) -> Outcome<(Vec<Group>, Arc<Subtrees>)> {
    let mut named = references::bytes(&args.search.reference);
    let Some(report) = &args.from else {
        // Before the search, which may take hours.
        references::check_destination(session, &args.action, &references::open(session, &named)?)?;
        let found = super::search(session, &args.paths, &args.search, &args.walk, None)?;
        // Once more: now it is known which file systems are mounted below them.
        references::check_destination(session, &args.action, &found.references)?;
        for path in found.report().originals() {
            let path = bc_fs::escape(&path);
            session.report.problem(&format!("{path}: {ORIGINAL}"));
        }
        return Ok((found.report().groups().collect(), found.references));
    };
    if !args.paths.is_empty() {
        return Err(session.fatal("--from names the files; give no PATH beside it"));
    }
    let saved = session.while_reading(report.as_os_str(), || {
        saved::read(session, report, &args.walk)
    })?;
    named.extend(saved.references);
    let mut references = references::open(session, &named)?;
    references::survey(session, &mut references, &args.walk)?;
    for error in references.errors() {
        session.report.failure(error);
    }
    references::check_destination(session, &args.action, &references)?;
    Ok((saved.groups, Arc::new(references)))
}

/// Asks, where there is something to ask about.
fn confirmed(session: &Session, groups: &[Group], options: &Options) -> bool {
    let stake = bc_dup::prune::at_stake(groups, options, &session.cancel);
    let references = !options.references.is_empty()
        || groups
            .iter()
            .any(|group| group.files.iter().any(|file| file.protected));
    !session.cancel.is_cancelled()
        && (stake.files == 0 || question::asked(session, options, &stake, references))
}

/// Runs the engine; a line to stdout for each step, failures to stderr.
fn act(
    session: &Session,
    groups: Vec<Group>,
    options: &Options,
    journal: Option<&mut Journal>,
) -> Outcome<Summary> {
    let mut output = Output::open(None).map_err(|text| session.fatal(&text))?;
    let mut printed = Ok(());
    let quiet = session.common.quiet;
    let verbose = session.report.shows(1);
    let summary =
        bc_dup::prune::prune(
            groups,
            options,
            journal,
            &session.cancel,
            &mut |event| match event {
                Event::Step(step, StepOutcome::Skipped(skip)) => {
                    if skip.is_error() {
                        session.report.problem(&format!("{step}: skipped: {skip}"));
                    } else if verbose {
                        session.report.note(1, &format!("{step}: skipped: {skip}"));
                    }
                }
                Event::Step(
                    step,
                    done @ (StepOutcome::Done { .. } | StepOutcome::Would { .. }),
                ) => {
                    if let StepOutcome::Done { lost, .. } = done
                        && !lost.is_empty()
                    {
                        let lost = lost.join("; ");
                        session.report.warning(&format!("{step}: without {lost}"));
                    }
                    // A reader that left must not stop work that was asked for.
                    if !quiet && printed.is_ok() {
                        printed = writeln!(output, "{step}");
                    }
                }
                Event::Unusable(path, skip) => {
                    session
                        .report
                        .problem(&format!("{}: cannot be kept: {skip}", bc_fs::escape(path)));
                }
                Event::Unwatched(path, errno) => session.report.note(
                    0,
                    &format!(
                        "{}: no read lease: {}; of this file and others like it, writes through \
                         descriptors that were open before go unnoticed",
                        bc_fs::escape(path),
                        std::io::Error::from_raw_os_error(errno)
                    ),
                ),
                Event::Unasked(path) => session.report.note(
                    0,
                    &format!(
                        "{}: where else its directory is seen is found out by the run itself, \
                         which makes a file there for a moment; a dry run does not",
                        bc_fs::escape(path)
                    ),
                ),
                Event::Stuck(path, errno) => session.report.problem(&format!(
                    "{}: made to find out where else its directory is seen, and could not be \
                     removed: {}; no other is made there, and no file changed that may be a \
                     reference's",
                    bc_fs::escape(path),
                    std::io::Error::from_raw_os_error(errno)
                )),
                Event::Journal(skip) => session.report.problem(&skip.to_string()),
            },
        );
    if let Err(text) = output.finish(printed) {
        session.report.unwritten(&text);
    }
    Ok(summary)
}

fn say_totals(session: &Session, summary: &Summary, mode: Mode, journal: Option<&Path>) {
    let would = if mode == Mode::DryRun {
        "would be "
    } else {
        ""
    };
    let mut text = if summary.changed == 0 && summary.is_clean() {
        "nothing to do".to_owned()
    } else {
        let (bytes, word) = match summary.used {
            0 => (summary.freed, "freed"),
            used => (used, "used to copy files up"),
        };
        format!(
            "{} file{} {would}changed, {} {would}{word}",
            summary.changed,
            if summary.changed == 1 { "" } else { "s" },
            size(bytes)
        )
    };
    if summary.layers_unknown > 0 {
        text += &format!(
            " at worst, as the layers of {} are not known",
            summary.layers_unknown
        );
    }
    if summary.untold > 0 {
        let untold = summary.untold;
        text += &format!(", not counting {untold} of which the file system does not tell");
    }
    for (reason, count) in &summary.skipped {
        text += &format!("; {count} skipped: {reason}");
    }
    if summary.incomplete > 0 {
        text += &format!("; {} of them not with all they had", summary.incomplete);
    }
    text += &tidied(summary.leftovers, would);
    session.report.summary(&text);
    if let (Some(journal), true) = (journal, summary.changed > 0) {
        session.report.summary(&format!(
            "journal: {}; 'bc dup undo' takes it back",
            bc_fs::escape(journal.as_os_str().as_encoded_bytes())
        ));
    }
}

/// What is said of temporaries that were removed, if any were.
fn tidied(count: u64, would: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!("; 1 temporary of a killed run {would}removed"),
        _ => format!("; {count} temporaries of a killed run {would}removed"),
    }
}

pub fn undo(args: &UndoArgs) -> Outcome<Exit> {
    let session = Session::start("dup", "undo", &args.common, &[], args.journal.as_deref())?;
    let journal = match &args.journal {
        Some(path) => path.clone(),
        None => journals::newest(&session)?,
    };
    session.spare(&[journal.as_os_str()], None)?;
    let mut output = Output::open(None).map_err(|text| session.fatal(&text))?;
    let mode = if args.dry_run {
        Mode::DryRun
    } else {
        Mode::Execute
    };
    let mut printed = Ok(());
    let undone = bc_dup::prune::undo(&journal, mode, &session.cancel, &mut |event| {
        let path = bc_fs::escape(event.path);
        let words = match event.outcome {
            UndoOutcome::Restored { lost } if lost.is_empty() => {
                format!("restored {path} ({})", event.action)
            }
            UndoOutcome::Restored { lost } => {
                session
                    .report
                    .problem(&format!("{path}: restored without {}", lost.join("; ")));
                format!("restored {path} ({}), incomplete", event.action)
            }
            UndoOutcome::Would => format!("restore {path} ({})", event.action),
            UndoOutcome::Unneeded => {
                return session.report.note(1, &format!("{path}: nothing to undo"));
            }
            UndoOutcome::Failed(skip) => {
                return session
                    .report
                    .problem(&format!("{path}: not restored: {skip}"));
            }
        };
        if !session.common.quiet && printed.is_ok() {
            printed = writeln!(output, "{words}");
        }
    });
    let summary = undone.map_err(|error| session.fatal(&error.to_string()))?;
    if let Err(text) = output.finish(printed) {
        session.report.unwritten(&text);
    }
    for line in &summary.damaged {
        let journal = bc_fs::escape(journal.as_os_str().as_encoded_bytes());
        session.report.problem(&format!(
            "{journal}: line {line} is damaged; a step that it told of is not undone"
        ));
    }
    let would = match mode {
        Mode::DryRun => "would be ",
        Mode::Execute => "",
    };
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
    session.report.summary(&text);
    session
        .report
        .note(1, &format!("undo: {:.3} s in all", session.elapsed()));
    let exit = session.report.exit();
    Ok(session.end(exit))
}
