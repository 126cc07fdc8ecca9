//! `bc move`: the command line of a copy, and sources that are removed in the end.

use clap::{Arg, ArgAction, Args as _, CommandFactory, FromArgMatches};

use super::args::{MoveArgs, MoveCli, MoveCommand, as_move_command};
use crate::report::Exit;

/// Returns the command tree of the applet: one command, whose name is never written.
pub fn command() -> clap::Command {
    let version = Arg::new("version")
        .long("version")
        .action(ArgAction::Version)
        .help("Print version");
    MoveCli::command()
        .disable_version_flag(true)
        .arg(version)
        .mut_subcommand("move", |command| as_move_command(command).hide(true))
}

/// Returns the command alone; `None` for any other name.
pub fn only(name: &str) -> Option<clap::Command> {
    let command = clap::Command::new(name.to_owned());
    (name == "move").then(|| as_move_command(MoveArgs::augment_args(command)))
}

/// Runs a parsed command line.
pub fn run(mut matches: clap::ArgMatches) -> Exit {
    let cli = match MoveCli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => return crate::report::usage::print(error),
    };
    let MoveCommand::Move(args) = &cli.command;
    super::run::move_files(args).unwrap_or_else(|fatal| fatal)
}
