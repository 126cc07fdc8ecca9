//! Takes a command line apart by a table of habits.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap::{Arg, Command};

use super::rows::{Habit, Kind, Takes};

/// A command line, taken apart.
pub struct CommandLine<'a> {
    tables: &'a [&'a [Habit]],
    pub(super) command: &'a Command,
    /// The subcommand that is named, else the one that is meant without a name.
    pub(super) current: &'a str,
    pub(super) named: Option<&'a str>,
    pub(super) args: &'a [OsString],
    /// Options of ours.
    pub(super) kept: Vec<OsString>,
    /// Unknown options; clap has a message about them.
    pub(super) unknown: Vec<OsString>,
    pub(super) paths: Vec<OsString>,
    /// The end of options and the arguments after it.
    pub(super) behind: &'a [OsString],
    pub(super) found: Vec<Found<'a>>,
}

/// A habit that was typed.
pub struct Found<'a> {
    pub habit: &'a Habit,
    pub typed: &'a str,
    pub value: Option<OsString>,
}

/// Part of the line that a word took.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Took {
    Word,
    /// The value is in the same argument.
    Attached,
    /// Its values are so many of the arguments that follow.
    Next(usize),
}

impl<'a> CommandLine<'a> {
    pub fn new(
        tables: &'a [&'a [Habit]],
        command: &'a Command,
        default: &'a str,
        args: &'a [OsString],
    ) -> CommandLine<'a> {
        let end = args.iter().position(|a| a == "--").unwrap_or(args.len());
        let (args, behind) = args.split_at(end);
        CommandLine {
            tables,
            command,
            current: default,
            named: None,
            args,
            kept: Vec::new(),
            unknown: Vec::new(),
            paths: Vec::new(),
            behind,
            found: Vec::new(),
        }
    }

    fn rows(&self) -> impl Iterator<Item = &'a Habit> + use<'a> {
        self.tables.iter().copied().flatten()
    }

    /// Takes the arguments apart.
    pub fn read(&mut self) {
        let mut at = 0;
        while let Some(arg) = self.args.get(at) {
            at += 1;
            let next = &self.args[at..];
            let Some(text) = arg.to_str().filter(|t| t.len() > 1 && t.starts_with('-')) else {
                self.positional(arg);
                continue;
            };
            let took = if let Some((name, value)) = text
                .split_once('=')
                .filter(|(name, _)| name.starts_with("--"))
            {
                self.option(name, Some(value.as_ref()), &[])
            } else if text.starts_with("--") || self.is_typed_whole(text) {
                self.option(text, None, next)
            } else {
                self.cluster(text, next)
            };
            match took {
                Some(Took::Next(values)) => at += values,
                Some(_) => {}
                None => self.unknown.push(arg.clone()),
            }
        }
    }

    /// Returns true for a long option after a single dash, as rdfind has them.
    fn is_typed_whole(&self, text: &str) -> bool {
        text.len() > 2 && self.rows().any(|habit| habit.typed.contains(&text))
    }

    /// Reads short options after one dash.
    fn cluster(&mut self, text: &'a str, next: &'a [OsString]) -> Option<Took> {
        for (at, letter) in text.char_indices().skip(1) {
            let end = at + letter.len_utf8();
            let attached = Some(&text[end..]).filter(|rest| !rest.is_empty());
            let next = if attached.is_none() { next } else { &[] };
            let name = self.letter(&text[at..end]);
            match self.option(name, attached.map(OsStr::new), next) {
                Some(Took::Word) => {}
                Some(took) => return Some(took),
                None => {
                    self.unknown.push(format!("-{}", &text[at..]).into());
                    return Some(Took::Attached);
                }
            }
        }
        Some(Took::Word)
    }

    /// Returns the letter with its dash, as the table has it; the empty name if it has not.
    fn letter(&self, letter: &'a str) -> &'a str {
        let names = self.rows().flat_map(|habit| habit.typed);
        let is = |name: &&&'static str| name.strip_prefix('-') == Some(letter);
        names.copied().find(|name| is(&name)).unwrap_or(letter)
    }

    /// Reads one option; None if it is unknown. A name without a dash is a letter of ours alone.
    fn option(
        &mut self,
        name: &'a str,
        attached: Option<&OsStr>,
        next: &'a [OsString],
    ) -> Option<Took> {
        let habit = |line: &Self, choosy| {
            let mut rows = line.rows();
            rows.find(|row| row.is_choosy() == choosy && line.holds(row, name, attached, next))
        };
        let habit = match habit(self, true) {
            Some(row) => Some(row),
            None => match self.own(name, false) {
                Some(arg) => return self.keep(arg, name, attached, next),
                None => habit(self, false),
            },
        };
        let Some(habit) = habit else {
            let arg = self.own(name, true)?;
            return self.keep(arg, name, attached, next);
        };
        let behind = next.len().min(match (habit.takes, attached) {
            (Takes::Nothing | Takes::NothingBeforePath, _) | (Takes::One(_), Some(_)) => 0,
            (Takes::One(_), None) => 1,
            (takes, _) => values(takes, next, attached.is_none()),
        });
        let mut given: Vec<Option<OsString>> = Vec::new();
        if !habit.takes_nothing() {
            given.extend(attached.map(|value| Some(value.to_owned())));
            given.extend(next[..behind].iter().cloned().map(Some));
        }
        if given.is_empty() {
            given.push(None);
        }
        let took = match (habit.takes_nothing(), attached.is_some() && behind == 0) {
            (true, _) => Took::Word,
            (_, true) => Took::Attached,
            _ => Took::Next(behind),
        };
        self.found.extend(given.into_iter().map(|value| Found {
            habit,
            typed: name,
            value,
        }));
        Some(took)
    }

    /// Returns true if this row applies to the word and the arguments after it.
    fn holds(&self, row: &Habit, name: &str, attached: Option<&OsStr>, next: &[OsString]) -> bool {
        let is_long = name.starts_with("--");
        let value = attached.or(next.first().map(OsString::as_os_str));
        let fits = match row.takes {
            Takes::Nothing => !is_long || attached.is_none(),
            Takes::NothingBeforePath => match (attached, next.first()) {
                (Some(letters), _) => !is_long && self.are_flags(letters),
                (None, Some(next)) => is_option(next) || Path::new(next).symlink_metadata().is_ok(),
                (None, None) => true,
            },
            // Behind a letter there are letters, as in `-Sm`.
            Takes::One(Kind::Rank(_)) if attached.is_some() && !is_long => false,
            Takes::One(kind) | Takes::Many(kind) => value.is_some_and(|value| kind.fits(value)),
            Takes::All(kind) => {
                let given = attached.into_iter().chain(following(next));
                given.into_iter().any(|value| kind.fits(value))
            }
        };
        let typed = |names: &[&str]| names.iter().any(|name| self.has(name));
        let beside = row.beside.is_empty() || typed(row.beside);
        let names_a_path = || self.args.iter().any(|arg| !is_option(arg));
        row.typed.contains(&name)
            && fits
            && beside
            && !typed(row.without)
            && !(row.alone && names_a_path())
            && (!row.at_terminal || std::io::stdin().is_terminal())
    }

    /// Letters of a cluster that the table or the applet knows.
    fn are_flags(&self, letters: &OsStr) -> bool {
        let known = |letter: char| {
            let name = format!("-{letter}");
            self.rows().any(|row| row.typed.contains(&&*name))
        };
        letters
            .to_str()
            .is_some_and(|letters| letters.len() <= 4 && letters.chars().all(known))
    }

    /// Returns true if this option is typed anywhere, also as a letter among others, or this word,
    /// if it is no path.
    fn has(&self, name: &str) -> bool {
        if !name.starts_with('-') && name != "//" {
            let is_ours = self.command.find_subcommand(name).is_some();
            let is_word = || is_ours || Path::new(name).symlink_metadata().is_err();
            return self.args.iter().any(|arg| arg == name) && is_word();
        }
        let letter = name.strip_prefix('-').filter(|rest| rest.len() == 1);
        self.args.iter().filter_map(|arg| arg.to_str()).any(|arg| {
            let long = arg.split('=').next() == Some(name);
            let cluster = arg.starts_with('-') && !arg.starts_with("--");
            long || (cluster && letter.is_some_and(|letter| arg[1..].contains(letter)))
        })
    }

    /// Returns an option of the current subcommand, or of any other.
    fn own(&self, name: &str, any: bool) -> Option<&'a Arg> {
        let letter = name.strip_prefix('-').unwrap_or(name);
        let is = |arg: &&Arg| match name.strip_prefix("--") {
            Some(long) => {
                let also = arg.get_all_aliases().unwrap_or_default();
                arg.get_long() == Some(long) || also.contains(&long)
            }
            None => arg
                .get_short()
                .is_some_and(|short| letter.strip_prefix(short) == Some("")),
        };
        let subcommands = self.command.get_subcommands();
        subcommands
            .filter(|sub| any || sub.get_name() == self.current)
            .find_map(|sub| sub.get_arguments().find(is))
    }

    /// Takes an option of ours as it is.
    fn keep(
        &mut self,
        arg: &Arg,
        name: &str,
        attached: Option<&OsStr>,
        next: &[OsString],
    ) -> Option<Took> {
        let is_long = name.starts_with("--");
        let mut word = match name.starts_with('-') {
            true => OsString::from(name),
            false => OsString::from(format!("-{name}")),
        };
        let takes = arg.get_action().takes_values();
        match attached {
            Some(value) if is_long || takes => {
                word.push(if is_long { "=" } else { "" });
                word.push(value);
                self.kept.push(word);
                return Some(Took::Attached);
            }
            _ => self.kept.push(word),
        }
        if takes && !arg.is_require_equals_set() {
            self.kept.extend(next.first().cloned());
            return Some(Took::Next(next.len().min(1)));
        }
        Some(Took::Word)
    }

    fn positional(&mut self, arg: &'a OsString) {
        let is_first = self.paths.is_empty() && self.named.is_none();
        let word = arg.to_str().unwrap_or_default();
        if is_first && let Some(sub) = self.command.find_subcommand(word) {
            self.named = Some(sub.get_name());
            self.current = sub.get_name();
            return;
        }
        let is_free = || arg == "//" || Path::new(arg).symlink_metadata().is_err();
        let row = self.rows().find(|row| self.holds(row, word, None, &[]));
        match row.filter(|_| (is_first || word == "//") && is_free()) {
            Some(habit) => {
                if word != "//" {
                    self.named = Some("");
                }
                self.found.push(Found {
                    habit,
                    typed: word,
                    value: None,
                });
            }
            None if self.found.iter().any(|found| found.typed == "//") => {
                let mut word = OsString::from("--reference=");
                word.push(arg);
                self.kept.push(word);
            }
            None => self.paths.push(arg.clone()),
        }
    }
}

/// Returns how many of these arguments are values of an option that takes several; the first is one
/// unless that was attached to the option.
fn values(takes: Takes, next: &[OsString], is_first_here: bool) -> usize {
    let all = following(next).count();
    let is_free = |arg: &OsStr| Path::new(arg).symlink_metadata().is_err();
    let first = usize::from(is_first_here);
    match takes {
        Takes::All(_) => all,
        _ => {
            first
                + following(next)
                    .skip(first)
                    .take_while(|arg| is_free(arg))
                    .count()
        }
    }
}

/// Returns the arguments up to the next option.
fn following(next: &[OsString]) -> impl Iterator<Item = &OsStr> {
    let args = next.iter().map(OsString::as_os_str);
    args.take_while(|arg| !is_option(arg))
}

fn is_option(word: &OsStr) -> bool {
    word.len() > 1 && word.as_bytes()[0] == b'-'
}
