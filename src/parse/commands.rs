//! The whole command tree, for `--describe`, manual pages and completions.

use crate::parse::applet::APPLETS;

/// Examples for the program itself.
const EXAMPLES: &str = "\
Examples:
  bc hash DIR
  bc dup summary DIR
  bc integrity manifest -o DIR.jsonl DIR && bc integrity verify DIR DIR.jsonl
  bc install --mkdir ~/.local/bin
  bc --generate=man --output=$HOME/.local/share/man/man1
  bc --generate=complete-bash -o ~/.local/share/bash-completion/completions/bc";

/// Returns the whole command tree, as `bc` sees it.
pub fn whole() -> clap::Command {
    let bc = clap::Command::new("bc")
        .about("Fast and safe file inspection: hash trees, find duplicates, verify integrity")
        .subcommand_required(true)
        .version(env!("CARGO_PKG_VERSION"))
        .args(crate::generate::args::program_options())
        .after_long_help(EXAMPLES)
        .subcommand(crate::install::command());
    APPLETS.iter().fold(bc, |bc, applet| {
        bc.subcommand((applet.command)().name(applet.name))
    })
}
