//! Under the names of other checksum programs the program is those: GNU coreutils' to the letter
//! (9.11, messages in English), b3sum and xxhsum as they are commonly used. What is gained is that
//! many files are hashed at once.

mod args;
mod b3sum;
mod check;
mod family;
mod getopt;
mod help;
mod line;
mod listed;
mod names;
mod order;
mod quote;
mod setup;
mod stdio;
mod sums;
mod xxhsum;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

pub use names::{PROGRAMS, Program, by_program};

use crate::report::Exit;
use args::NotStarted;
use b3sum::Early;
use family::Family;
use names::ProgramKind;
use setup::Setup;
use stdio::Out;

/// GNU's programs know one failure, 1.
const FAILURE: Exit = Exit::Differs;

/// Runs as that program.
pub fn run(program: &'static Program, argv: &[OsString]) -> Exit {
    match program.kind {
        ProgramKind::Sum(family) => coreutils(program, Some(family), argv),
        ProgramKind::Cksum => coreutils(program, None, argv),
        // Its arguments are clap's affair, which ends with 2.
        ProgramKind::B3sum => other(program, argv, b3sum::HELP, Exit::Fatal, b3sum::run),
        ProgramKind::Xxhsum(usual) => other(program, argv, xxhsum::HELP, FAILURE, |argv, out| {
            xxhsum::run(usual, argv, out)
        }),
    }
}

/// Runs one that is not of coreutils. `misused`: exit code where the arguments are wrong.
fn other(
    program: &Program,
    argv: &[OsString],
    help: &str,
    misused: Exit,
    run: impl FnOnce(&[OsString], &mut Out) -> Result<Result<bool, order::RunStop>, Early>,
) -> Exit {
    let mut out = Out::new(program.name.as_bytes(), b'\n');
    let text = match run(argv.get(1..).unwrap_or_default(), &mut out) {
        Ok(done) => return ended(done, out),
        Err(Early::Help) => help.to_owned(),
        Err(Early::Version) => help::version_of(program.name),
        Err(Early::Wrong(text)) => {
            out.say(text);
            out.say("see --help");
            return misused;
        }
        Err(Early::Failed(text)) => {
            out.say(text);
            return FAILURE;
        }
    };
    match out.text(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Exit::Done,
        Err(_) => FAILURE,
    }
}

/// Returns the exit code of a run.
fn ended(done: Result<bool, order::RunStop>, mut out: Out) -> Exit {
    let well = match done {
        Ok(well) => well && out.flush().is_ok(),
        Err(order::RunStop::Lost) => false,
        Err(order::RunStop::Fatal(text)) => {
            out.say(text);
            false
        }
    };
    if well { Exit::Done } else { FAILURE }
}

fn coreutils(program: &Program, family: Option<Family>, argv: &[OsString]) -> Exit {
    let (called, rest) = match argv.split_first() {
        Some((called, rest)) => (called.as_bytes(), rest),
        None => (program.name.as_bytes(), argv),
    };
    let mut out = Out::new(called, b'\n');
    let args = match args::parse(family, rest) {
        Ok(args) => args,
        Err(stop) => return stopped(stop, program, out),
    };
    if args.zero {
        out = Out::new(called, 0);
    }
    let setup = match Setup::load() {
        Ok(setup) => setup,
        Err(text) => {
            out.say(text);
            return FAILURE;
        }
    };
    let done = match args.check {
        true => check::run(&args, &setup, &mut out),
        false => sums::run(&args, &setup, &mut out),
    };
    if let Err(error) = stdio::closing_stdin() {
        out.say_of(b"standard input", &error);
        return FAILURE;
    }
    // The operands: the end of the process frees them at once.
    std::mem::forget(args);
    match ended(done, out) {
        Exit::Done if stdio::is_unsaid() => FAILURE,
        exit => exit,
    }
}

/// Prints help or version, or the errors in the arguments.
fn stopped(stop: NotStarted, program: &Program, mut out: Out) -> Exit {
    let called = String::from_utf8_lossy(out.name()).into_owned();
    let text = match stop {
        NotStarted::Help => help::text(program, &called),
        NotStarted::Version => help::version(program.name),
        NotStarted::Wrong {
            lines,
            list,
            try_help,
        } => {
            for line in lines {
                out.say(line);
            }
            stdio::raw_message(&list);
            if try_help {
                let hint = [b"Try '", out.name(), b" --help' for more information.\n"].concat();
                stdio::raw_message(&hint);
            }
            return FAILURE;
        }
    };
    match out.text(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Exit::Done,
        Err(_) => FAILURE,
    }
}
