//! `bc integrity`: record trees, verify them, tell decay from edits.

mod accept;
mod args;
mod html;
mod job;
mod merge;
mod output;
mod plan;
mod protect;
mod restore;
mod run;
mod sql;
mod words;

use clap::{Args as _, CommandFactory, FromArgMatches};

use crate::report::Exit;
use args::{IntegrityCli, IntegrityCommand};
pub use job::origin;

/// Returns the command tree of the applet.
pub fn command() -> clap::Command {
    IntegrityCli::command().mut_subcommand("manifest", without_lists)
}

/// Hides lists of files, as a manifest records whole trees; a list that is given is refused.
fn without_lists(manifest: clap::Command) -> clap::Command {
    manifest
        .mut_arg("files_from", |arg| arg.hide(true))
        .mut_arg("null", |arg| arg.hide(true))
}

/// Returns one subcommand alone; `None` if there is none of that name.
pub fn only(name: &str) -> Option<clap::Command> {
    let command = clap::Command::new(name.to_owned());
    Some(match name {
        "manifest" => without_lists(args::ManifestArgs::augment_args(command)),
        "verify" => args::VerifyArgs::augment_args(command),
        "diff" => args::DiffArgs::augment_args(command),
        "update" => args::UpdateArgs::augment_args(command),
        "protect" => protect::ProtectArgs::augment_args(command),
        "accept" => args::AcceptArgs::augment_args(command),
        "restore" => restore::RestoreArgs::augment_args(command),
        "export" => args::ExportArgs::augment_args(command),
        "import" => args::ImportArgs::augment_args(command),
        "merge" => args::MergeArgs::augment_args(command),
        "sql" => args::SqlArgs::augment_args(command),
        _ => return None,
    })
}

/// Runs a parsed command line.
pub fn run(mut matches: clap::ArgMatches) -> Exit {
    let cli = match IntegrityCli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => return crate::report::usage::print(error),
    };
    let exit = match &cli.command {
        IntegrityCommand::Manifest(args) => run::manifest(args),
        IntegrityCommand::Verify(args) => run::verify(args),
        IntegrityCommand::Diff(args) => run::diff(args),
        IntegrityCommand::Update(args) => run::update(args),
        IntegrityCommand::Protect(args) => protect::protect(args),
        IntegrityCommand::Accept(args) => accept::run(args),
        IntegrityCommand::Restore(args) => restore::restore(args),
        IntegrityCommand::Export(args) => run::export(args),
        IntegrityCommand::Import(args) => run::import(args),
        IntegrityCommand::Merge(args) => merge::run(args),
        IntegrityCommand::Sql(args) => sql::run(args),
    };
    exit.unwrap_or_else(|fatal| fatal)
}
