//! Multicall dispatch: acts on what [`crate::parse`] makes of the command line.

use std::ffi::OsString;
use std::io::IsTerminal;

use crate::parse::applet::APPLETS;
use crate::parse::environment::Environment;
use crate::parse::{ParseError, ParseResult, Special, overview, parse};
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
        Special::Overview(called) => overview(&overview::long(&called)),
        Special::ShortOverview(called) => overview(&overview::short(&called)),
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

/// Prints a page of help of the program itself.
fn overview(text: &str) -> Exit {
    usage::print_help(&format!(
        "{text}This is not the calculator bc; that is usually /usr/bin/bc (package bc).\n"
    ))
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
    usage::say_help(&overview::short(called));
    Exit::Fatal
}

fn calculator() -> Exit {
    report::fatal(
        "bc",
        "this is bit-crafts, not the calculator (/usr/bin/bc); see 'bc --help'",
    )
}
