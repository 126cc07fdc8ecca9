//! `bc hash`: digests of trees, and their checks and comparisons.

mod args;
mod check;
mod diff;
mod foreign;
mod loaded;
mod manifest;
mod output;
mod plan;
mod run;
mod stdin;
mod unlisted;
mod verdicts;

use clap::{Args as _, CommandFactory, FromArgMatches};

use crate::report::Exit;
use args::{HashCli, HashCommand};

pub use verdicts::warnings;

/// Returns the command tree of the applet.
pub fn command() -> clap::Command {
    HashCli::command()
}

/// Returns one subcommand alone; `None` if there is none of that name.
pub fn only(name: &str) -> Option<clap::Command> {
    let command = clap::Command::new(name.to_owned());
    Some(match name {
        "hash" => args::HashArgs::augment_args(command),
        "check" => args::CheckArgs::augment_args(command),
        "diff" => args::DiffArgs::augment_args(command),
        _ => return None,
    })
}

/// Runs a parsed command line.
pub fn run(mut matches: clap::ArgMatches) -> Exit {
    let mut cli = match HashCli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => return crate::report::usage::print(error),
    };
    cli.take_stdin(crate::files::input::is_fed);
    let exit = match &cli.command {
        HashCommand::Hash(args) => run::run(args),
        HashCommand::Check(args) => check::run(args),
        HashCommand::Diff(args) => diff::run(args),
    };
    exit.unwrap_or_else(|fatal| fatal)
}
