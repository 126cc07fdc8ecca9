//! The one home of colours: their meanings, and the sequences that turn them on.
//!
//! A colour says what a word says already, so nothing is lost without it.

use crate::parse::args::Choice;

/// Meaning of a piece of text for its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing in particular.
    Plain,
    /// Damage, a failure.
    Bad,
    /// An edit, a warning, a path that could not be read.
    Changed,
    /// An entry that is new.
    Added,
    /// Orientation only: directories, headings of groups.
    Dim,
    /// Headings, and text to be typed.
    Strong,
}

/// Back to plain text.
pub const OFF: &str = "\x1b[0m";

impl Meaning {
    /// Returns the sequence that turns it on; [`OFF`] ends it.
    pub const fn on(self) -> &'static str {
        match self {
            Meaning::Plain => "",
            Meaning::Bad => "\x1b[31m",
            Meaning::Changed => "\x1b[33m",
            Meaning::Added => "\x1b[32m",
            Meaning::Dim => "\x1b[2m",
            Meaning::Strong => "\x1b[1m",
        }
    }
}

/// Returns a piece of our own text in a line that is made of strings.
pub fn painted(color: bool, meaning: Meaning, text: &str) -> String {
    if !color || meaning == Meaning::Plain {
        return text.to_owned();
    }
    format!("{}{text}{OFF}", meaning.on())
}

/// Returns true if this stream should be coloured. `NO_COLOR` and `CLICOLOR_FORCE` are read by
/// their conventions (<https://no-color.org>, <https://bixense.com/clicolors>); a terminal that is
/// `dumb`, or has no name, does not know the sequences.
pub fn colored(choice: Choice, terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty() && v != "0");
    match choice {
        Choice::Always => true,
        Choice::Never => false,
        Choice::Auto if std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) => false,
        Choice::Auto => set("CLICOLOR_FORCE") || (terminal && has_colors()),
    }
}

/// Returns true if the terminal has a name, and another than `dumb`.
fn has_colors() -> bool {
    std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}
