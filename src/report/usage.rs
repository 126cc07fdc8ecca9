//! Help and wrong usage, as a terminal shows them.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use bc_fs::safe;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::parse::args::LogFormat;
use crate::report::style::{Meaning, painted};
use crate::report::{Exit, fatal, print_by, style, write_stderr};

/// Prints clap's message: help and version to stdout (0), errors to stderr (2).
pub fn print(mut error: clap::Error) -> Exit {
    without_dashes(&mut error);
    with_actions(&mut error);
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
    let style = style();
    if style.format == LogFormat::Json {
        return fatal("bc", text.trim_end());
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A list of choices is no error message.
        say_help(&safe::lines(text));
        return Exit::Fatal;
    }
    let text = match std::io::stderr().is_terminal() {
        true => wrapped(
            &safe::lines(text),
            "error: ".len(),
            crate::session::progress::width(),
        ),
        false => safe::lines(text),
    };
    let error = painted(style.is_colored, Meaning::Bad, "error:");
    write_stderr(&format!("{error} {text}"));
    Exit::Fatal
}

/// Removes clap's advice to write `--` before an unknown option, unless a path of that name exists:
/// such an option is a slip, and hardly ever a path.
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

/// Adds to the message that an action of prune is missing those that there are, and the one to try
/// first, which changes nothing.
fn with_actions(error: &mut clap::Error) {
    let is_action = |argument: &String| argument.starts_with("--action");
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(arguments)) => arguments.iter().any(is_action),
        _ => false,
    };
    if missing && error.kind() == ErrorKind::MissingRequiredArgument {
        let tips = [
            "actions are hardlink, reflink, symlink, delete, trash and move:DIR",
            "'--action=hardlink --dry-run' previews the steps and changes nothing",
        ];
        let tips = tips.map(|tip| StyledStr::from(tip.to_owned())).to_vec();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// Prints a help text to stderr.
pub fn say_help(text: &str) {
    let color = style().is_colored;
    let text = fitted(text, std::io::stderr());
    let shown = text.lines().map(|line| {
        let HelpLine {
            indent,
            strong,
            plain,
        } = help_line(line);
        format!(
            "{indent}{}{plain}\n",
            painted(color && !strong.is_empty(), Meaning::Strong, strong)
        )
    });
    write_stderr(&shown.collect::<String>());
}

/// Returns the text as it is; for a terminal, in lines that it has room for. They may fill it, as
/// clap's do, which would be broken a second time otherwise.
fn fitted(text: &str, stream: impl AsFd + IsTerminal) -> Cow<'_, str> {
    match stream.is_terminal() {
        true => wrapped(text, 0, crate::session::progress::columns(stream)).into(),
        false => text.into(),
    }
}

/// Wraps the text to lines of at most `width` columns, broken at blanks; its first line begins in
/// column `begun`.
fn wrapped(text: &str, begun: usize, width: usize) -> String {
    let mut wrapped = String::new();
    for (nth, line) in text.lines().enumerate() {
        let mut column = if nth == 0 { begun } else { 0 };
        let (further, mut blank) = (hang(line, width), true);
        for (nth, word) in line.split(' ').enumerate() {
            let length = word.chars().count();
            let breaks = !blank && length > 0 && column + 1 + length > width;
            if breaks {
                wrapped.truncate(wrapped.trim_end_matches(' ').len());
                wrapped.push('\n');
                wrapped.extend(std::iter::repeat_n(' ', further));
                column = further;
            } else if nth > 0 {
                wrapped.push(' ');
                column += 1;
            }
            wrapped.push_str(word);
            column += length;
            blank &= length == 0;
        }
        wrapped.push('\n');
    }
    wrapped
}

/// Returns the indentation of a line's continuation: below the explanation, if it has one in a
/// column.
fn hang(line: &str, width: usize) -> usize {
    let indent = line.len() - line.trim_start().len();
    let name = line[indent..].find("  ").map(|at| indent + at);
    let column = |name: usize| line.len() - line[name..].trim_start().len();
    match name.filter(|_| indent > 0) {
        // Far to the right there is no room for it.
        Some(name) if name < width / 2 && column(name) < width * 2 / 3 => column(name),
        _ => indent.max(2),
    }
}

/// Prints a help text to stdout, words to type in another weight than their explanation.
pub fn print_help(text: &str) -> Exit {
    print_by(|out| {
        fitted(text, std::io::stdout())
            .lines()
            .try_for_each(|line| {
                let line = help_line(line);
                out.write_all(line.indent.as_bytes())?;
                out.paint(Meaning::Strong, line.strong.as_bytes())?;
                out.write_all(line.plain.as_bytes())?;
                out.write_all(b"\n")
            })
    })
}

/// Parts of a line of help.
struct HelpLine<'a> {
    indent: &'a str,
    /// Part in bold.
    strong: &'a str,
    plain: &'a str,
}

fn help_line(line: &str) -> HelpLine<'_> {
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
    let indent = &line[..indent];
    HelpLine {
        indent,
        strong,
        plain,
    }
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_go_on_below_what_they_explain() {
        let text =
            "Names:\n  a     one two three\n  --a-very-long-name  what it does\nfour five six\n";
        let shown = "Names:\n  a     one two\n        three\n  --a-very-long-name\n  what it does\n\
                     four five six\n";
        assert_eq!(wrapped(text, 0, 18), shown);
        assert_eq!(
            wrapped("six words in a short line", 7, 16),
            "six words\n  in a short\n  line\n"
        );
    }
}
