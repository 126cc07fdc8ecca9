//! The options of the program itself, and among them the texts of `--generate`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Texts to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GeneratedText {
    /// Manual pages
    Man,
    /// Completions for bash
    CompleteBash,
    /// Completions for zsh
    CompleteZsh,
    /// Completions for fish
    CompleteFish,
}

/// Manual pages and completions
#[derive(Parser)]
#[command(
    max_term_width = 100,
    override_usage = "bc --generate=WHAT [--output=PATH] [COMMAND...]",
    after_help = "\
Examples:
  bc --generate=man hash check | man -l -
  bc --generate=man --output=$HOME/.local/share/man/man1
  bc --generate=complete-bash -o ~/.local/share/bash-completion/completions/bc
  bc --generate=complete-zsh --output=$HOME/.zfunc/_bc
  bc --generate=complete-fish --output=$HOME/.config/fish/completions/bc.fish"
)]
pub struct GenerateArgs {
    /// Write a manual page or completions: man, complete-bash, complete-zsh or complete-fish
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    pub generate: GeneratedText,
    /// With --generate: file to write or, for man, directory that gets all pages
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Command whose page to print, e.g. hash check
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Returns the options of the program itself.
pub fn program_options() -> Vec<clap::Arg> {
    let flag = |name: &'static str, help: &'static str| {
        clap::Arg::new(name)
            .long(name)
            .help(help)
            .action(clap::ArgAction::SetTrue)
    };
    let command = <GenerateArgs as clap::CommandFactory>::command();
    let own = command.get_arguments().filter(|arg| !arg.is_positional());
    [
        flag("list", "Print the names of the commands"),
        flag("describe", "Print the complete command tree as JSON"),
    ]
    .into_iter()
    .chain(own.cloned().map(|arg| arg.required(false)))
    .collect()
}
