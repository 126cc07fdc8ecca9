//! Multicall dispatch: acts on what [`crate::parse`] makes of the command line.

use std::ffi::OsString;
use std::io::IsTerminal;

use crate::parse::applet::APPLETS;
use crate::parse::environment::Environment;
use crate::parse::{ParseError, ParseResult, Special, parse};
use crate::report;
use crate::report::{Exit, usage};

/// Runs the command line.
pub fn run(argv: Vec<OsString>) -> Exit {
    report::style_of(&argv);
    match parse(&argv, &Environment::of_process()) {
        ParseResult::Ok(run) => {
            for text in run.cautions {
                report::caution(&format!("bc {}", run.applet.name), &text);
            }
            (run.applet.run)(run.matches)
        }
        ParseResult::Special(special) => show(special, argv),
        ParseResult::Err(ParseError::Clap(error)) => usage::print(*error),
        ParseResult::Err(ParseError::Message { who, text }) => report::fatal(&who, &text),
    }
}

fn show(special: Special, argv: Vec<OsString>) -> Exit {
    match special {
        Special::Nothing { is_bc, called } => nothing(is_bc, &called),
        Special::Calculator => calculator(),
        Special::Overview(called) => overview(&called),
        Special::Version(called) => version(&called),
        Special::List => list(),
        Special::Help(text) => usage::print(*text),
        Special::Describe(command) => crate::parse::describe::print(&command),
        Special::Generate(names) => crate::generate::run(&names, &argv[1..]),
        Special::Install(names) => crate::install::run(&argv[1..], &names),
        Special::Gnu(program) => {
            let exit = crate::gnu::run(program, &argv);
            // There may be tens of thousands, which the end of the process frees at once.
            std::mem::forget(argv);
            exit
        }
    }
}

fn list() -> Exit {
    let names: String = APPLETS.iter().map(|a| format!("{}\n", a.name)).collect();
    report::print(&names)
}

fn version(called: &str) -> Exit {
    let readers = match bc_read::uring_available() {
        Ok(()) => "sync, io_uring".to_owned(),
        Err(error) => format!("sync (io_uring: {})", error.message()),
    };
    report::print(&format!(
        "{called} (bit-crafts) {}\nCPU features: {}\nkernels: {}\nreaders: {readers}\n",
        env!("CARGO_PKG_VERSION"),
        bc_digest::CpuFeatures::flags().join(" "),
        bc_digest::CpuFeatures::detect().describe(),
    ))
}

fn overview(called: &str) -> Exit {
    usage::print_help(&format!(
        "{}This is not the calculator bc; that is usually /usr/bin/bc (package bc).\n",
        overview_text(called)
    ))
}

/// Returns the overview of the applets, under the name that the program was called by.
fn overview_text(called: &str) -> String {
    let mut text = format!(
        "bit-crafts: fast and safe file inspection\n\n\
         Usage: {called} APPLET [SUBCOMMAND] [OPTIONS] PATH...\n\nApplets:\n",
    );
    for applet in APPLETS {
        text += &format!("  {:<12}{}\n", applet.name, applet.about);
    }
    text += "\nAlso:\n  \
         install     Make links so that bchash, bcdup ... are commands; with --gnu,\n              \
         sha256sum and the like\n  \
         --list      Names of the applets\n  \
         --version   Version, CPU features, readers\n  \
         --describe  The whole command tree as JSON\n  \
         --generate=WHAT\n              \
         Manual pages (man) or completions (complete-bash, -zsh, -fish)\n\n";
    text + &format!("`{called} hash --help` explains an applet and gives examples.\n")
}

/// Handles a call without arguments. Called as `bc`, the user may want to calculate: input from a
/// pipe is expressions then, and one line is enough.
fn nothing(is_bc: bool, called: &str) -> Exit {
    let is_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if is_bc && !is_person {
        return calculator();
    }
    if is_bc {
        calculator();
        report::write_stderr("\n");
    }
    usage::say_help(&overview_text(called));
    Exit::Fatal
}

fn calculator() -> Exit {
    report::fatal(
        "bc",
        "this is bit-crafts, not the calculator (/usr/bin/bc); see 'bc --help'",
    )
}
