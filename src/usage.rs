//! Help and wrong usage, as a terminal shows them.

use std::io::{IsTerminal, Write};
use std::path::Path;

use bc_fs::safe;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::LogFormat;
use crate::exit::Exit;
use crate::report::{fatal, print_by, style, write_stderr};
use crate::style::{Meaning, painted};

/// Prints clap's message: help and version to stdout (0), errors to stderr (2).
pub fn print(mut error: clap::Error) -> Exit {
    without_dashes(&mut error);
    let mut text = error.render().to_string();
    if !error.use_stderr() {
        // Between options clap puts lines of blanks.
        let lines = text.lines().map(|line| format!("{}\n", line.trim_end()));
        return print_help(&lines.collect::<String>());
    }
    // The message has lines of its own; those in an argument must not look like them.
    for (_, value) in error.context() {
        let arguments = match value {
            ContextValue::String(argument) => std::slice::from_ref(argument),
            ContextValue::Strings(arguments) => arguments,
            _ => &[],
        };
        for argument in arguments.iter().filter(|a| a.contains('\n')) {
            text = text.replace(argument, &safe::line(argument));
        }
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (format, color) = style();
    if format == LogFormat::Json {
        return fatal("bc", text.trim_end());
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // What there is to choose from is no error message.
        say_help(&safe::lines(text));
        return Exit::Fatal;
    }
    let text = match std::io::stderr().is_terminal() {
        true => wrapped(
            &safe::lines(text),
            "error: ".len(),
            crate::progress::width(),
        ),
        false => safe::lines(text),
    };
    let error = painted(color, Meaning::Bad, "error:");
    write_stderr(&format!("{error} {text}"));
    Exit::Fatal
}

/// An option that nobody knows is a slip, and hardly ever a path: clap's advice to write `--`
/// before it is only good where there is such a path.
fn without_dashes(error: &mut clap::Error) {
    let path = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => Path::new(argument),
        _ => return,
    };
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    if is_unknown && path.symlink_metadata().is_err() {
        error.remove(ContextKind::Suggested);
    }
}

/// Prints a help text to stderr.
pub fn say_help(text: &str) {
    let (_, color) = style();
    let shown = text.lines().map(|line| {
        let (indent, strong, plain) = help_line(line);
        format!(
            "{indent}{}{plain}\n",
            painted(color && !strong.is_empty(), Meaning::Strong, strong)
        )
    });
    write_stderr(&shown.collect::<String>());
}

/// The text in lines of at most `width` columns, broken at blanks; its first line begins in column
/// `begun`.
fn wrapped(text: &str, begun: usize, width: usize) -> String {
    let mut wrapped = String::new();
    for (nth, line) in text.lines().enumerate() {
        let mut column = if nth == 0 { begun } else { 0 };
        for (nth, word) in line.split(' ').enumerate() {
            let length = word.chars().count();
            let breaks = nth > 0 && column + 1 + length > width;
            wrapped.push_str(match (nth, breaks) {
                (0, _) => "",
                (_, true) => "\n  ",
                (_, false) => " ",
            });
            wrapped.push_str(word);
            column = length
                + match (nth, breaks) {
                    (_, true) => 2,
                    (0, _) => column,
                    _ => column + 1,
                };
        }
        wrapped.push('\n');
    }
    wrapped
}

/// Prints a help text to stdout, what can be typed in another weight than what explains it.
pub fn print_help(text: &str) -> Exit {
    print_by(|out| {
        text.lines().try_for_each(|line| {
            let (indent, strong, plain) = help_line(line);
            out.write_all(indent.as_bytes())?;
            out.paint(Meaning::Strong, strong.as_bytes())?;
            out.write_all(plain.as_bytes())?;
            out.write_all(b"\n")
        })
    })
}

/// The line's indentation, what stands out in it, and the rest.
fn help_line(line: &str) -> (&str, &str, &str) {
    let indent = line.len() - line.trim_start().len();
    let rest = &line[indent..];
    let is_heading = indent == 0 && rest.ends_with(':');
    // An explanation stands in its own column, or on a line of its own.
    let is_typed = rest.starts_with('-') || (indent == 2 && rest.contains("  "));
    let strong = if is_heading {
        rest.len()
    } else if line.starts_with("Usage:") {
        "Usage:".len()
    } else if is_typed && (2..10).contains(&indent) {
        rest.find("  ").unwrap_or(rest.len())
    } else {
        0
    };
    let (strong, plain) = rest.split_at(strong);
    (&line[..indent], strong, plain)
}
