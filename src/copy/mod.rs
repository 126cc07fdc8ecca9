//! `bc copy`: a copy that resumes, and ends with its proof.

pub mod args;
pub mod moving;
mod output;
mod plan;
mod run;

use clap::{Arg, ArgAction, Args as _, CommandFactory, FromArgMatches};

use crate::report::Exit;
use args::{CopyCli, CopyCommand};

pub use output::{not_given, takes_no_more, written};

/// Returns the command tree of the applet: one command, whose name is never written.
pub fn command() -> clap::Command {
    // Its letter is another program's for --verify, which a hint explains.
    let version = Arg::new("version")
        .long("version")
        .action(ArgAction::Version)
        .help("Print version");
    CopyCli::command()
        .disable_version_flag(true)
        .arg(version)
        .mut_subcommand("copy", |copy| args::as_command(copy).hide(true))
}

/// Returns the command alone; `None` for any other name.
pub fn only(name: &str) -> Option<clap::Command> {
    let command = clap::Command::new(name.to_owned());
    (name == "copy").then(|| args::as_command(args::CopyArgs::augment_args(command)))
}

/// Runs a parsed command line.
pub fn run(mut matches: clap::ArgMatches) -> Exit {
    let cli = match CopyCli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => return crate::report::usage::print(error),
    };
    let CopyCommand::Copy(args) = &cli.command;
    run::copy(args).unwrap_or_else(|fatal| fatal)
}
