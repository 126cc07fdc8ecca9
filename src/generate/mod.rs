//! `bc --generate=WHAT`: manual pages and completions, made of the same command tree as help and
//! `--describe`. So they are there wherever the program is, however it was installed.

pub mod args;
mod completions;
mod man;
mod tree;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::Parser;

use crate::files::output::Output;
use crate::parse::names::Names;
use crate::report;
use crate::report::diagnostic::Diagnostic;
use crate::report::{Exit, usage};
use args::{GenerateArgs, GeneratedText};

/// Returns true if this argument is the option.
pub fn is_asked(first: Option<&OsString>) -> bool {
    let bytes = first.map_or(&b""[..], |first| first.as_encoded_bytes());
    bytes == b"--generate" || bytes.starts_with(b"--generate=")
}

/// Returns the names that pages and completions have for a program called so. One that is not
/// called `bc` lies beside the calculator, with the links that `bc install` makes.
pub fn names(called: &str) -> Names {
    let is_applet = crate::parse::applet::by_program(called.as_bytes()).is_some();
    match called {
        "bc" => Names::called(called),
        _ if is_applet || called == "bitcrafts" => Names::beside_the_calculator("bitcrafts"),
        _ => Names::called(called),
    }
}

/// Runs it; `args` begin with the option.
pub fn run(names: &Names, args: &[OsString]) -> Exit {
    let argv = std::iter::once(names.program().into()).chain(args.iter().cloned());
    let args = match GenerateArgs::try_parse_from(argv) {
        Ok(args) => args,
        Err(error) => return usage::print(error),
    };
    let done = match args.generate {
        GeneratedText::Man => return pages(names, &args),
        _ if !args.command.is_empty() => {
            let named = args.command.join(" ");
            Err(format!("'{named}': completions are for all commands").into())
        }
        GeneratedText::CompleteBash => write(args.output.as_deref(), &completions::bash(names)),
        GeneratedText::CompleteZsh => write(args.output.as_deref(), &completions::zsh(names)),
        GeneratedText::CompleteFish => write(args.output.as_deref(), &completions::fish(names)),
    };
    ended(done)
}

/// Prints the page of a command, or writes its page and those of the commands below it.
fn pages(names: &Names, args: &GenerateArgs) -> Exit {
    let all = tree::commands(names);
    let wanted = all
        .iter()
        .filter(|one| one.words.starts_with(&args.command));
    let wanted: Vec<&tree::Command> = wanted.collect();
    let Some(first) = wanted.first().filter(|one| one.words == args.command) else {
        let named = args.command.join(" ");
        return ended(Err(format!("there is no command '{named}'").into()));
    };
    let page = |one: &tree::Command| man::page(one, &all, names).map_err(Diagnostic::from);
    let Some(dir) = &args.output else {
        return ended(page(first).and_then(|page| write(None, &page)));
    };
    if let Err(failed) = bc_edit::entry::make_dirs(dir, 0o777) {
        return ended(Err(Diagnostic::failed(dir, "mkdir", &failed.into())));
    }
    for one in wanted {
        let file = dir.join(format!("{}.1", names.page(&one.words)));
        let done = page(one).and_then(|page| write(Some(&file), &page));
        if done.is_err() {
            return ended(done);
        }
    }
    Exit::Done
}

fn write(to: Option<&Path>, text: &str) -> Result<(), Diagnostic> {
    let mut out = Output::open(to)?;
    let written = out.write_all(text.as_bytes());
    out.finish(written).map(drop)
}

fn ended(done: Result<(), Diagnostic>) -> Exit {
    match done {
        Ok(()) => Exit::Done,
        Err(what) => {
            let text = format!("--generate: {what}");
            report::fatal("bc", what.worded(text))
        }
    }
}
