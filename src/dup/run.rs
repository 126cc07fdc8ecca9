//! The subcommands: each from its plan to its exit code.

use std::io::Write;
use std::sync::Arc;

use bc_find::groups::FileGroup;
use bc_find::report::ReportFormat;
use bc_find::{Files, Subtrees};
use bc_prune::{Journal, ORIGINAL, PruneOptions, PruneSummary, RunMode, UndoOptions};

use super::args::{PruneArgs, ScanArgs, ScanFormat, SummaryArgs, UndoArgs};
use super::output;
use super::plan::{PrunePlan, SearchPlan, mode};
use super::search::{SearchResult, search};
use super::{
    dirs, html, interactive, journals, offline, paths, question, references, saved, summary,
    terminal,
};
use crate::files::lists::ListKind;
use crate::files::output::Output;
use crate::files::overlap::Given;
use crate::report::Exit;
use crate::session::{Outcome, Session, signals};

pub fn scan(args: &ScanArgs) -> Outcome<Exit> {
    let mut read = args.walk.inputs();
    read.extend(args.search.cache.as_deref());
    // Among many paths the file that is written is left out; alone it was meant to be read.
    if let [only] = &*args.paths {
        read.push(only);
    }
    let target = args.output.as_deref();
    let given = references::given(read, &args.paths, &args.search.reference, &args.walk)
        .writes(ListKind::Duplicates);
    let session = Session::start("dup", "scan", &args.common, &given, target)?;
    let output = session.output(target)?;
    let output = match args.format {
        ScanFormat::Report(format) if format.is_json() => output.json(),
        _ => output.colors(args.common.color),
    };
    let mut plan = SearchPlan::new(&session, &args.paths, &args.search, &args.walk, target)?;
    // A page shows whole directories first; a list of files has none.
    let has_dirs = args.format == ScanFormat::Html && args.walk.files_from.is_none();
    if has_dirs {
        plan.walk_options = dirs::search::of_directories(plan.walk_options);
    }
    if !plan.manifests.is_empty() && args.format != ScanFormat::Report(ReportFormat::Text) {
        let text =
            "with a manifest as reference there is text only; 'bc dup unique' has JSON and CSV";
        return Err(session.fatal(text));
    }
    let span = plan.scan.span;
    let found = search(&session, plan)?;
    let directories = match has_dirs && !session.cancel.is_cancelled() {
        true => {
            let options = dirs::search::of_search(&session, &found, span)?;
            Some(dirs::search::look(&session, &found, &options)?)
        }
        false => None,
    };
    let closing = terminal::closing(&found, &args.paths, "");
    let is_more_said = !closing.is_empty() && !args.common.quiet;
    end_search(session, &found, output, closing, |output| {
        match args.format {
            _ if found.offline.is_some() => offline::text(&found, output),
            ScanFormat::Report(ReportFormat::Text) if output.is_terminal() => {
                terminal::groups(&found, output, is_more_said)
            }
            ScanFormat::Report(format) => output::report(&found.report(), format, output),
            ScanFormat::Html => html::page(&found.report(), directories.as_ref()).write(output),
        }
    })
}

pub fn summary(args: &SummaryArgs) -> Outcome<Exit> {
    let mut read = args.walk.inputs();
    read.extend(args.search.cache.as_deref());
    let given = references::given(read, &args.paths, &args.search.reference, &args.walk);
    let session = Session::start("dup", "summary", &args.common, &given, None)?;
    let output = session.output(None)?;
    let plan = SearchPlan::new(&session, &args.paths, &args.search, &args.walk, None)?;
    let found = search(&session, plan)?;
    end_search(session, &found, output, Vec::new(), |output| {
        output.write_all(summary::text(&found).as_bytes())
    })
}

/// Writes the result, and prints `closing`, unless a signal ended the search.
pub fn end_search(
    session: Session,
    found: &SearchResult,
    mut output: Output,
    closing: Vec<String>,
    write: impl FnOnce(&mut Output) -> std::io::Result<()>,
) -> Outcome<Exit> {
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    let result = write(&mut output);
    let exit = session.finished(output, result);
    for line in closing {
        session.report.summary(line);
    }
    Ok(output::end_search(session, &found.scan, exit))
}

pub fn prune(args: &PruneArgs) -> Outcome<Exit> {
    let (session, PrunePlan { mut options, asks }) = PrunePlan::start(args)?;
    let GroupsToPrune {
        mut groups,
        references,
        is_chosen,
    } = found_or_saved(&session, args)?;
    options.references = references;
    if is_chosen {
        options.rules = interactive::rules();
    }
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    options.earlier = journals::earlier(args.journal.as_deref());
    session.report.detail(|| {
        let (count, action) = (groups.len(), args.action.name());
        let earlier = options.earlier.len();
        format!("prune: {action} in {count} groups; {earlier} journals are looked at for steps that were cut off")
    });
    let is_agreed = match args.interactive {
        true => {
            let chosen = interactive::files(&session, &groups, &mut options, asks);
            let is_agreed = chosen.is_some();
            groups = chosen.unwrap_or_default();
            is_agreed
        }
        false => !asks || confirmed(&session, &groups, &options, is_chosen),
    };
    if !is_agreed {
        if !session.cancel.is_cancelled() {
            session.report.summary("nothing was changed");
        }
        let exit = session.report.exit();
        return Ok(session.end(exit));
    }
    let mut journal = match options.mode {
        RunMode::Execute if !groups.is_empty() => {
            let named = args.journal.as_deref();
            match journals::open(&session, named, &options.action, &groups)? {
                None => return Ok(session.end(Exit::Done)),
                opened => opened,
            }
        }
        _ => None,
    };
    let path = journal.as_ref().map(|journal| journal.path().to_owned());
    let summary = act(&session, groups, &options, journal.as_mut())?;
    output::unmatched(&session, &options.rules, &summary);
    output::totals(&session, &summary, options.mode, path.as_deref());
    Ok(output::end_prune(session, &summary))
}

/// Groups to act on.
struct GroupsToPrune {
    groups: Vec<FileGroup>,
    /// Trees to leave alone.
    references: Arc<Subtrees>,
    /// True if the user chose which files go, and no rule decides.
    is_chosen: bool,
}

/// Returns the groups to act on: found by a search, or read from a report or from decisions on one.
fn found_or_saved(session: &Session, args: &PruneArgs) -> Outcome<GroupsToPrune> {
    let Some(report) = &args.from else {
        let plan = SearchPlan::new(session, &args.paths, &args.search, &args.walk, None)?;
        // Before the search, which may take hours.
        let named = paths::Named::open(session, &args.paths, &args.action)?;
        references::check_destination(session, &args.action, &plan.references)?;
        let found = search(session, plan)?;
        named.check(session, &found.listing)?;
        // Once more: now it is known which file systems are mounted below them.
        references::check_destination(session, &args.action, &found.references)?;
        output::originals(session, &found.report().originals(), ORIGINAL);
        let groups: Vec<FileGroup> = found.report().groups().collect();
        paths::refuse_foreign(session, &[], &groups)?;
        return Ok(GroupsToPrune {
            groups,
            references: found.references,
            is_chosen: false,
        });
    };
    paths::Named::open(session, &[], &args.action)?;
    let mut saved = session.while_reading(report.as_os_str(), || {
        saved::read(session, report, &args.walk)
    })?;
    let is_chosen = saved::choose(session, &mut saved, report, args)?;
    paths::refuse_foreign(session, &saved.roots, &saved.groups)?;
    let mut named = references::bytes(&args.search.reference);
    named.extend(saved.references);
    let mut references = references::open(session, &named)?;
    // No search says which of the report's files have another name there.
    references::survey(session, &mut references, Files::All, &args.walk)?;
    for error in references.errors() {
        session.report.problem(error);
    }
    references::check_destination(session, &args.action, &references)?;
    Ok(GroupsToPrune {
        groups: saved.groups,
        references: Arc::new(references),
        is_chosen,
    })
}

/// Asks, where files would be given up; returns true if the run may proceed.
fn confirmed(
    session: &Session,
    groups: &[FileGroup],
    options: &PruneOptions,
    is_chosen: bool,
) -> bool {
    let planned = bc_prune::at_stake(groups, options, &session.cancel);
    if is_chosen && planned.files > 0 && !session.cancel.is_cancelled() {
        return interactive::confirmed(session, options, &planned, 0);
    }
    let references = !options.references.is_empty()
        || groups
            .iter()
            .any(|group| group.files.iter().any(|file| file.protected));
    !session.cancel.is_cancelled()
        && (planned.files == 0 || question::asked(session, options, &planned, 0, references))
}

/// Runs the engine; a line to stdout for each step, failures to stderr.
fn act(
    session: &Session,
    groups: Vec<FileGroup>,
    options: &PruneOptions,
    journal: Option<&mut Journal>,
) -> Outcome<PruneSummary> {
    let steps = output::steps(session)?;
    let summary = bc_prune::prune(groups, options, journal, &session.cancel, &mut |event| {
        output::prune_event(&event, session, &steps);
    });
    output::end_steps(session, steps);
    Ok(summary)
}

pub fn undo(args: &UndoArgs) -> Outcome<Exit> {
    let session = Session::start(
        "dup",
        "undo",
        &args.common,
        &Given::default(),
        args.journal.as_deref(),
    )?;
    signals::watch();
    let journal = match &args.journal {
        Some(path) => path.clone(),
        None => journals::newest(&session)?,
    };
    session.spare(&Given::inputs([journal.as_os_str()]), None)?;
    session.spare_whatever()?;
    let mode = mode(args.dry_run);
    let steps = output::steps(&session)?;
    let options = UndoOptions::from(mode).rate(session.rate());
    let undone = bc_prune::undo(&journal, options, &session.cancel, &mut |event| {
        output::undo_event(event, &session, &steps);
    });
    let summary = undone.map_err(|error| session.fatal(&error))?;
    output::end_steps(&session, steps);
    output::undo_totals(&session, &summary, mode, &journal);
    let exit = session.report.exit();
    Ok(session.end(exit))
}
