//! Layout of help: the options of the subcommand that may be omitted are shown where it is omitted,
//! those that all commands share are one line of `-h`, and examples call the program by the name
//! that the user called it by.

use std::ffi::OsString;

use clap::Command;
use clap::builder::StyledStr;

use crate::parse::applet::Applet;
use crate::parse::args::first_positional;
use crate::parse::names::Names;

/// Heading of the options that all commands share.
pub const COMMON: &str = "Common options";

/// Line that stands for them in `-h`.
const POINTER: &str =
    "Common options (threads, memory, progress, colours, messages, configuration): see --help";

/// Returns the command and all below it, as help shows them.
pub fn laid_out(command: Command, names: &Names) -> Command {
    pointed(renamed(command, names))
}

/// Replaces the options that all commands share by one line in `-h`.
fn pointed(command: Command) -> Command {
    let is_common = |arg: &clap::Arg| arg.get_help_heading() == Some(COMMON);
    let has_common = command.get_arguments().any(is_common);
    let mut command = command.mut_args(|arg| {
        let hidden = is_common(&arg);
        arg.hide_short_help(hidden)
    });
    if has_common {
        let last = match command.get_after_help() {
            Some(text) => format!("{text}\n{POINTER}"),
            None => POINTER.to_owned(),
        };
        command = command.after_help(last);
    }
    command.mut_subcommands(pointed)
}

/// Returns the command as help shows it without a subcommand: with the options of the default
/// subcommand, if there is one.
pub fn front_page(command: Command, applet: &Applet, called: &str) -> Command {
    let Some(meant) = applet
        .default
        .and_then(|name| command.find_subcommand(name))
    else {
        return command;
    };
    let arguments: Vec<clap::Arg> = meant.get_arguments().cloned().collect();
    let operands = operands(applet);
    let usage = match applet.alone {
        true => format!("{called} [OPTIONS] {operands}"),
        false => format!("{called} [OPTIONS] {operands}\n       {called} COMMAND ..."),
    };
    command.args(arguments).override_usage(usage)
}

/// Returns the operands shown after the options where no subcommand is named.
pub fn operands(applet: &Applet) -> &'static str {
    match applet.alone {
        true => "SOURCE... DESTINATION",
        false => "PATH...",
    }
}

/// Returns true if one of the arguments may ask for help; if not, the layout is never shown.
pub fn may_be_asked(args: &[OsString]) -> bool {
    args.iter().any(|arg| {
        let bytes = arg.as_encoded_bytes();
        let is_short = bytes.starts_with(b"-") && !bytes.starts_with(b"--");
        arg == "help" || arg == "--help" || (is_short && bytes.contains(&b'h'))
    })
}

/// Returns the option by which help was asked for without naming a subcommand.
pub fn asked<'a>(command: &Command, args: &'a [OsString]) -> Option<&'a str> {
    if let [only] = args
        && only == "help"
    {
        return Some("--help");
    }
    let options = args.iter().take_while(|arg| *arg != "--");
    let found = options
        .filter_map(|arg| arg.to_str())
        .find(|arg| matches!(*arg, "-h" | "--help"))?;
    first_positional(command, args).is_none().then_some(found)
}

/// Returns the command and all below it, speaking of the program by the name that it has here.
pub fn renamed(command: Command, names: &Names) -> Command {
    const WRITTEN: &str = "bc bc hash bc dup bc integrity bc copy";
    if names.text(WRITTEN) == WRITTEN {
        return command;
    }
    let text = |text: Option<&StyledStr>| text.map(|text| names.text(&text.to_string()));
    let (about, after, long) = (
        text(command.get_about()),
        text(command.get_after_help()),
        text(command.get_after_long_help()),
    );
    let mut command = command.mut_args(|mut arg| {
        if let Some(help) = text(arg.get_help()) {
            arg = arg.help(help);
        }
        if let Some(help) = text(arg.get_long_help()) {
            arg = arg.long_help(help);
        }
        arg
    });
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(after) = after {
        command = command.after_help(after);
    }
    if let Some(long) = long {
        command = command.after_long_help(long);
    }
    command.mut_subcommands(|below| renamed(below, names))
}
