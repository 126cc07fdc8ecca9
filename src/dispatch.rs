//! Multicall dispatch: the applet is chosen by the name the program was called by, else by the
//! first argument; the other arguments are parsed and run.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::applet::{APPLETS, Applet, by_name, by_program};
use crate::exit::Exit;
use crate::habits::{self, Meant};
use crate::help;
use crate::names::Names;
use crate::report;
use crate::usage;

/// Runs the command line.
pub fn run(argv: Vec<OsString>) -> Exit {
    report::style_of(&argv);
    let program = argv.first().cloned().unwrap_or_else(|| "bc".into());
    let base = Path::new(&program).file_name().unwrap_or(&program);
    // As help and messages name the program.
    let called = bc_fs::escape(base.as_bytes());
    if let Some(applet) = by_program(base.as_bytes()) {
        if crate::generate::is_asked(argv.get(1)) {
            return crate::generate::run(&crate::generate::names(&called), &argv[1..]);
        }
        let names = Names::beside_the_calculator("bitcrafts").with_applet(applet.name, &called);
        return start(applet, &called, &names, &argv[1..]);
    }
    if let Some(program) = crate::gnu::by_program(base.as_bytes()) {
        let exit = crate::gnu::run(program, &argv);
        // There may be tens of thousands, which the end of the process frees at once.
        std::mem::forget(argv);
        return exit;
    }
    let names = Names::called(&called);
    let is_bc = base == "bc";
    let Some(first) = argv.get(1) else {
        return nothing(is_bc, &called);
    };
    if let Some(applet) = by_name(first) {
        let name = format!("{called} {}", applet.name);
        return start(applet, &name, &names, &argv[2..]);
    }
    match first.to_str() {
        Some("--list") => list(),
        Some("--version" | "-V") => version(&called),
        Some("--help" | "-h") => overview(&called),
        Some("help") => match argv.get(2).and_then(|name| by_name(name)) {
            Some(applet) => {
                let name = format!("{called} {}", applet.name);
                start(applet, &name, &names, &["--help".into()])
            }
            None => overview(&called),
        },
        Some("--describe") => crate::describe::print(&crate::commands::whole()),
        Some(_) if crate::generate::is_asked(Some(first)) => {
            crate::generate::run(&crate::generate::names(&called), &argv[1..])
        }
        Some("install") => crate::install::run(&argv[1..], &names),
        _ if is_bc && is_calculator_call(first) => calculator(),
        _ => unknown(first),
    }
}

/// Puts the subcommand first, layers configuration below the command line,
/// parses and runs.
fn start(applet: &Applet, called: &str, names: &Names, rest: &[OsString]) -> Exit {
    if let Some(matches) = plain(applet, called, rest) {
        return (applet.run)(matches);
    }
    let command = (applet.command)()
        .name(called.to_owned())
        .bin_name(called.to_owned());
    if rest
        .iter()
        .take_while(|a| *a != "--")
        .any(|a| a == "--describe")
    {
        return crate::describe::print(&command);
    }
    let meant = habits::meant(applet, &command, called, rest);
    let rest = match &meant {
        Meant::AsTyped => rest,
        Meant::Same(words) => words,
        Meant::Refused(text) => return report::fatal(&format!("bc {}", applet.name), text),
    };
    if let Some(option) = help::asked(&command, rest) {
        let shown = help::laid_out(help::front_page(command, applet, called), names);
        let given = shown.try_get_matches_from([called, option]);
        return given.map_or_else(usage::print, |_| Exit::Done);
    }
    let command = match help::may_be_asked(rest) {
        true => help::laid_out(command, names),
        false => command,
    };
    if !applet.alone
        && let Some((written, meant)) = crate::args::misspelt(&command, rest)
    {
        let text = format!(
            "'{}' is neither a path nor a subcommand; did you mean '{called} {meant}'?",
            bc_fs::escape(written.as_bytes())
        );
        return report::fatal(&format!("bc {}", applet.name), &text);
    }
    let args = match applet.alone {
        true => applet
            .default
            .iter()
            .map(OsString::from)
            .chain(rest.iter().cloned())
            .collect(),
        false => crate::args::subcommand_first(&command, applet.default, rest),
    };
    let command = match applet.default.filter(|_| args.len() > rest.len()) {
        // It was left out, so a message about it does not show it.
        Some(default) => command.mut_subcommand(default, |meant| {
            meant.override_usage(format!("{called} [OPTIONS] {}", help::operands(applet)))
        }),
        None => command,
    };
    let argv = std::iter::once(OsString::from(called)).chain(args);
    match crate::config::parse(command, applet.name, argv.collect()) {
        Ok(matches) => (applet.run)(matches),
        Err(exit) => exit,
    }
}

/// Parses an everyday command line with the one subcommand that it names, or means by an existing
/// path: the options of all the others would be half of the work of hashing one small file. `None`
/// for anything out of the ordinary (help, mistakes, settings in lower layers), which the whole
/// tree then sees.
fn plain(applet: &Applet, called: &str, rest: &[OsString]) -> Option<clap::ArgMatches> {
    let first = rest.first()?;
    let is_odd = first.as_bytes().starts_with(b"-") || first == "help";
    if is_odd || habits::has_mark(rest) || crate::config::may_apply() {
        return None;
    }
    let name = first.to_str().unwrap_or_default();
    let (subcommand, default) = match ((applet.only)(name), applet.default) {
        (_, Some(default)) if applet.alone => ((applet.only)(default)?, Some(default)),
        (Some(subcommand), _) => (subcommand, None),
        (None, Some(default)) if Path::new(first).symlink_metadata().is_ok() => {
            ((applet.only)(default)?, Some(default))
        }
        (None, _) => return None,
    };
    let mut command = clap::Command::new(called.to_owned())
        .disable_help_subcommand(true)
        .subcommand(subcommand);
    let argv = [called]
        .into_iter()
        .chain(default)
        .map(OsString::from)
        .chain(rest.iter().cloned());
    let matches = command.try_get_matches_from_mut(argv).ok()?;
    let (_, given) = matches.subcommand()?;
    let is_plain = !given.get_flag("describe") && given.get_one::<PathBuf>("config").is_none();
    // Freeing hundreds of small strings takes time too.
    std::mem::forget(command);
    is_plain.then_some(matches)
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

/// Returns true if a user who wanted the calculator would have typed this.
fn is_calculator_call(first: &OsStr) -> bool {
    const OPTIONS: &[&str] = &[
        "-l",
        "-q",
        "-s",
        "-w",
        "-i",
        "-c",
        "-e",
        "-f",
        "-",
        "-lq",
        "-ql",
        "--mathlib",
        "--quiet",
        "--standard",
        "--warn",
        "--interactive",
        "--expression",
        "--file",
        "--compile",
    ];
    OPTIONS.iter().any(|o| first == *o) || Path::new(first).is_file()
}

fn calculator() -> Exit {
    report::fatal(
        "bc",
        "this is bit-crafts, not the calculator (/usr/bin/bc); see 'bc --help'",
    )
}

fn unknown(first: &OsStr) -> Exit {
    let shown = bc_fs::escape(first.as_bytes()).into_owned();
    let near = |name: &str| crate::args::is_near(&shown, name);
    let option = ["--list", "--version", "--help", "--describe"]
        .into_iter()
        .find(|option| near(option));
    let applet = APPLETS
        .iter()
        .map(|a| a.name)
        .chain(["install"])
        .find(|name| near(name));
    let known = first.to_str().and_then(habits::applet_of);
    let meant = match (option, applet) {
        (Some(option), _) if shown.starts_with('-') => Some(format!("bc {option}")),
        (_, applet) => known.or_else(|| Some(format!("bc {}", applet?))),
    };
    let kind = if shown.starts_with('-') {
        "option"
    } else {
        "applet"
    };
    let text = match meant {
        Some(meant) => format!("unknown {kind} '{shown}'; did you mean '{meant}'?"),
        None => {
            format!("unknown {kind} '{shown}'; 'bc --list' names the applets, 'bc --help' explains")
        }
    };
    report::fatal("bc", &text)
}
