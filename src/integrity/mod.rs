//! `bc integrity`: record trees, verify them, tell decay from edits.

mod args;
mod foreign;
mod html;
mod job;
mod manifest;
mod output;
mod update;
mod verdict;

use bc_integrity::compare::Detail;
use bc_integrity::fields::{CompareMode, CompareRules, Fields};
use bc_integrity::report::ReportHeader;
use bc_integrity::{DiffOptions, VerifyOptions};
use clap::{Args as _, CommandFactory, FromArgMatches};

use crate::exit::Exit;
use crate::output::Output;
use crate::run::{Outcome, Session};
use args::{DiffArgs, Format, IntegrityCli, IntegrityCommand, Mode, VerifyArgs};
use job::{Stop, done_or, open, stopped, trust, until_cancelled, working};
use manifest::manifest;
use output::Changes;
use update::update;
use verdict::conclude;

/// The command tree of the applet.
pub fn command() -> clap::Command {
    IntegrityCli::command().mut_subcommand("manifest", without_lists)
}

/// A manifest records whole trees, never lists of files: that is said when asked for, not offered.
fn without_lists(manifest: clap::Command) -> clap::Command {
    manifest
        .mut_arg("files_from", |arg| arg.hide(true))
        .mut_arg("null", |arg| arg.hide(true))
}

/// One subcommand alone.
pub fn only(name: &str) -> Option<clap::Command> {
    let command = clap::Command::new(name.to_owned());
    Some(match name {
        "manifest" => without_lists(args::ManifestArgs::augment_args(command)),
        "verify" => args::VerifyArgs::augment_args(command),
        "diff" => args::DiffArgs::augment_args(command),
        "update" => args::UpdateArgs::augment_args(command),
        "export" => args::ExportArgs::augment_args(command),
        "import" => args::ImportArgs::augment_args(command),
        _ => return None,
    })
}

/// Runs a parsed command line.
pub fn run(mut matches: clap::ArgMatches) -> Exit {
    let cli = match IntegrityCli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => return crate::report::usage(error),
    };
    let exit = match &cli.command {
        IntegrityCommand::Manifest(args) => manifest(args),
        IntegrityCommand::Verify(args) => verify(args),
        IntegrityCommand::Diff(args) => diff(args),
        IntegrityCommand::Update(args) => update(args),
        IntegrityCommand::Export(args) => foreign::export(args),
        IntegrityCommand::Import(args) => foreign::import(args),
    };
    exit.unwrap_or_else(|fatal| fatal)
}

fn verify(args: &VerifyArgs) -> Outcome<Exit> {
    let mut session = Session::start(
        "integrity",
        "verify",
        &args.common,
        &[args.manifest.as_os_str()],
        args.output.as_deref(),
    )?;
    let manifest = open(&session, &args.manifest)?;
    let rules = CompareRules {
        mode: mode(args.mode),
        ignore: ignored(&session, &args.ignore)?,
    };
    let algorithm = manifest
        .algorithm()
        .map_err(|error| stopped(&session, &Stop::Engine(error)))?;
    let output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    let mut output = in_format(output, args.format);
    let replaced = crate::output::replaced(args.output.as_deref());
    let leave_out: Vec<_> = replaced.into_iter().chain(output.own_file()).collect();
    let mut report = Changes::new(&mut output, args.format);
    let detail = match (args.fail_fast, session.report.shows(1)) {
        (true, _) => Detail::First,
        (_, true) => Detail::All,
        _ => Detail::Changes,
    };
    let (trust, root_check) = trust(args.force);
    let header = ReportHeader {
        command: "verify",
        old: manifest.name(),
        new: args.root.as_encoded_bytes(),
        rules,
        algorithm: algorithm.name(),
    };
    let what = VerifyOptions {
        root: &args.root,
        manifest: &manifest,
        rules,
        detail,
        trust,
        root_check,
        leave_out: &leave_out,
    };
    let verified = working(&session, Some(algorithm), "verify", |work| {
        report.begin(&header).map_err(Stop::Write)?;
        let verified = bc_integrity::verify(
            &what,
            work,
            &mut until_cancelled(&session, |change| report.change(change)),
        )?;
        report
            .end(&verified.summary, &verified.problems)
            .map_err(Stop::Write)?;
        Ok(verified)
    })?;
    let Some(verified) = verified else {
        return Ok(session.end(Exit::Done));
    };
    for problem in &verified.problems {
        session.report.warning(problem);
    }
    session
        .metrics
        .set("files", "Files read.", verified.totals.read.files as f64);
    session.metrics.set(
        "read_bytes",
        "Bytes read.",
        verified.totals.read.bytes as f64,
    );
    Ok(conclude(session, output, &verified.summary))
}

fn diff(args: &DiffArgs) -> Outcome<Exit> {
    let session = Session::start(
        "integrity",
        "diff",
        &args.common,
        &[args.old.as_os_str(), args.new.as_os_str()],
        args.output.as_deref(),
    )?;
    let old = open(&session, &args.old)?;
    let new = open(&session, &args.new)?;
    let rules = CompareRules {
        mode: CompareMode::Strict,
        ignore: ignored(&session, &args.ignore)?,
    };
    let algorithm = new
        .algorithm()
        .map_err(|error| stopped(&session, &Stop::Engine(error)))?;
    let output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    let mut output = in_format(output, args.format);
    let mut report = Changes::new(&mut output, args.format);
    let detail = if session.report.shows(1) {
        Detail::All
    } else {
        Detail::Changes
    };
    let header = ReportHeader {
        command: "diff",
        old: old.name(),
        new: new.name(),
        rules,
        algorithm: algorithm.name(),
    };
    let what = DiffOptions {
        old: &old,
        new: &new,
        rules,
        detail,
        trust: trust(args.force).0,
    };
    let compared = (|| {
        report.begin(&header).map_err(Stop::Write)?;
        let diffed = bc_integrity::diff(
            &what,
            &mut until_cancelled(&session, |change| report.change(change)),
        )?;
        report
            .end(&diffed.summary, &diffed.problems)
            .map_err(Stop::Write)?;
        Ok(diffed)
    })();
    let diffed = match compared {
        Ok(diffed) => diffed,
        Err(stop) => return done_or(session, stop),
    };
    for problem in &diffed.problems {
        session.report.warning(problem);
    }
    Ok(conclude(session, output, &diffed.summary))
}

fn in_format(output: Output, format: Format) -> Output {
    match format {
        Format::Json => output.json(),
        Format::Text | Format::Html => output,
    }
}

fn mode(mode: Mode) -> CompareMode {
    match mode {
        Mode::Strict => CompareMode::Strict,
        Mode::Content => CompareMode::Content,
        Mode::Meta => CompareMode::Meta,
    }
}

/// Without `--ignore`, what cannot survive a restore.
fn ignored(session: &Session, names: &[String]) -> Outcome<Fields> {
    if names.is_empty() {
        return Ok(Fields::NOT_RESTORED);
    }
    names
        .join(",")
        .parse()
        .map_err(|error| session.fatal(&format!("--ignore: {error}")))
}
