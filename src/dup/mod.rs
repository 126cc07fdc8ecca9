//! `bc dup`: find duplicate files, report the space that they waste, reclaim it safely.

mod args;
mod dirs;
mod html;
mod interactive;
mod journals;
mod offline;
mod output;
mod paths;
mod plan;
mod question;
mod references;
mod run;
mod saved;
mod search;
mod summary;
mod terminal;
mod unique;

use clap::{Args as _, CommandFactory, FromArgMatches};

use crate::report::Exit;
use args::{DupCli, DupCommand};

/// Returns the command tree of the applet. Commands for whole directories take no list of files.
pub fn command() -> clap::Command {
    DupCli::command()
        .mut_subcommand("dirs", whole_directories)
        .mut_subcommand("unique", unique::as_command)
}

fn whole_directories(command: clap::Command) -> clap::Command {
    command
        .mut_arg("files_from", |arg| arg.hide(true))
        .mut_arg("null", |arg| arg.hide(true))
}

/// Returns one subcommand alone; `None` if there is none of that name.
pub fn only(name: &str) -> Option<clap::Command> {
    let command = clap::Command::new(name.to_owned());
    Some(match name {
        "scan" => args::ScanArgs::augment_args(command),
        "summary" => args::SummaryArgs::augment_args(command),
        "dirs" => whole_directories(dirs::args::DirsArgs::augment_args(command)),
        "unique" => unique::as_command(unique::UniqueArgs::augment_args(command)),
        "prune" => args::PruneArgs::augment_args(command),
        "undo" => args::UndoArgs::augment_args(command),
        _ => return None,
    })
}

/// Runs a parsed command line.
pub fn run(mut matches: clap::ArgMatches) -> Exit {
    let cli = match DupCli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => return crate::report::usage::print(error),
    };
    let exit = match &cli.command {
        DupCommand::Scan(args) => run::scan(args),
        DupCommand::Summary(args) => run::summary(args),
        DupCommand::Dirs(args) => dirs::run::dirs(args),
        DupCommand::Unique(args) => unique::unique(args),
        DupCommand::Prune(args) if args.dirs => dirs::prune::prune(args),
        DupCommand::Prune(args) => run::prune(args),
        DupCommand::Undo(args) => run::undo(args),
    };
    exit.unwrap_or_else(|fatal| fatal)
}
