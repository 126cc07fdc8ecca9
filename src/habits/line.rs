//! Reads a command line by a table of habits, and writes it as ours.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap::{Arg, Command};

use super::Meant;
use super::rows::{Habit, Place, Takes};

/// A command line, taken apart.
pub struct Line<'a> {
    table: &'a [Habit],
    command: &'a Command,
    /// The subcommand that is named, else the one that is meant without a name.
    current: &'a str,
    named: Option<&'a str>,
    args: &'a [OsString],
    /// Options of ours.
    kept: Vec<OsString>,
    /// Options that nobody knows; clap has something to say about them.
    unknown: Vec<OsString>,
    paths: Vec<OsString>,
    /// The end of options and what stands behind it.
    behind: &'a [OsString],
    found: Vec<Found<'a>>,
}

/// A habit that was typed.
struct Found<'a> {
    habit: &'a Habit,
    typed: &'a str,
    value: Option<OsString>,
}

/// How much of the line a word took.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Took {
    Word,
    /// The value is in the same argument.
    Attached,
    /// The value is the next argument.
    Next,
}

impl<'a> Line<'a> {
    pub fn new(
        table: &'a [Habit],
        command: &'a Command,
        default: &'a str,
        args: &'a [OsString],
    ) -> Line<'a> {
        let end = args.iter().position(|a| a == "--").unwrap_or(args.len());
        let (args, behind) = args.split_at(end);
        Line {
            table,
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

    /// Takes the arguments apart.
    pub fn read(&mut self) {
        let mut at = 0;
        while let Some(arg) = self.args.get(at) {
            let next = self.args.get(at + 1).map(OsString::as_os_str);
            at += 1;
            let Some(text) = arg.to_str().filter(|t| t.len() > 1 && t.starts_with('-')) else {
                self.positional(arg);
                continue;
            };
            let took = if let Some((name, value)) = text
                .split_once('=')
                .filter(|(name, _)| name.starts_with("--"))
            {
                self.option(name, Some(value.as_ref()), None)
            } else if text.starts_with("--") || self.is_typed_whole(text) {
                self.option(text, None, next)
            } else {
                self.cluster(text, next)
            };
            match took {
                Some(Took::Next) => at += 1,
                Some(_) => {}
                None => self.unknown.push(arg.clone()),
            }
        }
    }

    /// rdfind's options are long ones behind a single dash.
    fn is_typed_whole(&self, text: &str) -> bool {
        text.len() > 2 && self.table.iter().any(|habit| habit.typed.contains(&text))
    }

    /// Short options behind one dash.
    fn cluster(&mut self, text: &'a str, next: Option<&'a OsStr>) -> Option<Took> {
        for (at, letter) in text.char_indices().skip(1) {
            let end = at + letter.len_utf8();
            let attached = Some(&text[end..]).filter(|rest| !rest.is_empty());
            let next = next.filter(|_| attached.is_none());
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

    /// The letter with its dash, as the table has it; the empty name if it has not.
    fn letter(&self, letter: &'a str) -> &'a str {
        let names = self.table.iter().flat_map(|habit| habit.typed);
        let is = |name: &&&'static str| name.strip_prefix('-') == Some(letter);
        names.copied().find(|name| is(&name)).unwrap_or(letter)
    }

    /// One option; None if nobody knows it. A name without a dash is a letter of ours alone.
    fn option(
        &mut self,
        name: &'a str,
        attached: Option<&OsStr>,
        next: Option<&'a OsStr>,
    ) -> Option<Took> {
        let habit = |line: &Self, choosy| {
            let mut rows = line.table.iter();
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
        let (took, value) = match (habit.takes, attached) {
            (Takes::Nothing | Takes::NothingBeforePath, _) => (Took::Word, None),
            (Takes::One(_), Some(value)) => (Took::Attached, Some(value.to_owned())),
            (Takes::One(_), None) => (Took::Next, next.map(OsStr::to_owned)),
        };
        let typed = name;
        self.found.push(Found {
            habit,
            typed,
            value,
        });
        Some(took)
    }

    /// Does this row speak about what is typed?
    fn holds(
        &self,
        row: &Habit,
        name: &str,
        attached: Option<&OsStr>,
        next: Option<&OsStr>,
    ) -> bool {
        let is_long = name.starts_with("--");
        let value = attached.or(next);
        let fits = match row.takes {
            Takes::Nothing => !is_long || attached.is_none(),
            Takes::NothingBeforePath => match (attached, next) {
                (Some(letters), _) => !is_long && self.are_flags(letters),
                (None, Some(next)) => is_option(next) || Path::new(next).symlink_metadata().is_ok(),
                (None, None) => true,
            },
            Takes::One(kind) => value.is_some_and(|value| kind.fits(value)),
        };
        let typed = |names: &[&str]| names.iter().any(|name| self.has(name));
        let beside = row.beside.is_empty() || typed(row.beside);
        row.typed.contains(&name) && fits && beside && !typed(row.without)
    }

    /// Letters of a cluster that the table or the applet knows.
    fn are_flags(&self, letters: &OsStr) -> bool {
        let known = |letter: char| {
            let name = format!("-{letter}");
            self.table.iter().any(|row| row.typed.contains(&&*name))
        };
        letters
            .to_str()
            .is_some_and(|letters| letters.len() <= 4 && letters.chars().all(known))
    }

    /// Is this option typed anywhere, a letter perhaps among others?
    fn has(&self, name: &str) -> bool {
        let letter = name.strip_prefix('-').filter(|rest| rest.len() == 1);
        self.args.iter().filter_map(|arg| arg.to_str()).any(|arg| {
            let long = arg.split('=').next() == Some(name);
            let cluster = arg.starts_with('-') && !arg.starts_with("--");
            long || (cluster && letter.is_some_and(|letter| arg[1..].contains(letter)))
        })
    }

    /// An option of the current subcommand, or of any other.
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
        next: Option<&OsStr>,
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
            self.kept.extend(next.map(OsStr::to_owned));
            return Some(Took::Next);
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
        let row = self
            .table
            .iter()
            .find(|row| self.holds(row, word, None, None));
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

    /// What all of it means.
    pub fn meaning(mut self, called: &str) -> Meant {
        if self.found.is_empty() {
            return self.without_a_subcommand(called);
        }
        let sub = self.subcommand();
        let mut words: Vec<OsString> = Vec::new();
        words.extend((!sub.is_empty()).then(|| sub.into()));
        for found in &self.found {
            if found.habit.within.is_empty() || found.habit.within == sub {
                for word in found.words() {
                    if !words.contains(&word) && !self.kept.contains(&word) {
                        words.push(word);
                    }
                }
            }
        }
        let guessed = super::hash::join_length(&mut words, &mut self.kept);
        let needs: &[&str] = self
            .found
            .iter()
            .map(|found| found.habit.needs)
            .find(|needs| !needs.is_empty())
            .unwrap_or_default();
        self.place_values();
        let short = needs.len() > self.paths.len() + self.behind.len().saturating_sub(1);
        let mut says = self.found.iter().filter_map(|found| found.habit.says);
        match (says.next(), short || guessed) {
            (None, false) => {
                words.append(&mut self.kept);
                words.append(&mut self.unknown);
                words.append(&mut self.paths);
                words.extend_from_slice(self.behind);
                Meant::Same(words)
            }
            (why, _) => Meant::Refused(self.refusal(why.unwrap_or(""), called, words, needs)),
        }
    }

    /// Paths alone do not say what an applet is to do with them, if it can do several things.
    fn without_a_subcommand(&self, called: &str) -> Meant {
        let is_path = |path: &&OsString| Path::new(path).symlink_metadata().is_ok();
        let first = self.paths.first().filter(is_path);
        let Some(first) = first.filter(|_| self.current.is_empty()) else {
            return Meant::AsTyped;
        };
        let root = quoted(first);
        Meant::Refused(match self.paths.get(1) {
            Some(manifest) => format!("use: {called} verify {root} {}", quoted(manifest)),
            None => format!("use: {called} manifest --output=MANIFEST {root}"),
        })
    }

    /// Of several the one whose habit is not just done: it does most.
    fn subcommand(&self) -> &'a str {
        let mut subs: Vec<&Found<'_>> = self
            .found
            .iter()
            .filter(|f| !f.habit.sub.is_empty())
            .collect();
        subs.sort_by_key(|found| found.habit.says.is_none());
        let Some(first) = subs.first() else {
            return self.named.unwrap_or("");
        };
        let times = subs.iter().filter(|f| f.typed == first.typed).count();
        match first.habit.twice {
            "" => first.habit.sub,
            twice if times > 1 => twice,
            _ => first.habit.sub,
        }
    }

    /// Values that are paths join the others.
    fn place_values(&mut self) {
        for found in &mut self.found {
            match (found.habit.path, found.value.take()) {
                (Some(Place::First), Some(value)) => self.paths.insert(0, value),
                (Some(Place::Last), Some(value)) => self.paths.push(value),
                (_, value) => found.value = value,
            }
        }
    }

    fn refusal(
        &mut self,
        why: &str,
        called: &str,
        mut words: Vec<OsString>,
        needs: &[&str],
    ) -> String {
        let (dropped, program, then) = {
            let mut habits = self.found.iter().map(|found| found.habit);
            let dropped = habits.clone().any(|habit| habit.drops_paths);
            let program = habits.clone().find(|habit| !habit.instead.is_empty());
            let then = habits.find(|habit| !habit.then.is_empty());
            (
                dropped,
                program.map(|habit| habit.instead),
                then.map_or("", |habit| habit.then),
            )
        };
        if program.is_none() {
            words.append(&mut self.kept);
        }
        if !dropped {
            let there = self.paths.len();
            words.append(&mut self.paths);
            words.extend(needs.iter().skip(there).map(OsString::from));
            words.extend_from_slice(self.behind);
        }
        let mut command = program.unwrap_or(called).to_owned();
        for word in &words {
            command.push(' ');
            command.push_str(&quoted(word));
        }
        match why {
            "" => format!("use: {command}{then}"),
            why => format!("{why}; use: {command}{then}"),
        }
    }
}

impl Found<'_> {
    /// The words that stand for it.
    fn words(&self) -> Vec<OsString> {
        let value = self.value.as_deref().unwrap_or_default();
        let text = value.to_string_lossy();
        let fill = |word: &str| -> OsString {
            if let Some((before, after)) = word.split_once("{}") {
                let mut filled = OsString::from(before);
                filled.push(value);
                filled.push(after);
                return filled;
            }
            let after = text.split_once(':').map_or("", |(_, after)| after);
            word.replace("{lower}", &text.to_lowercase())
                .replace("{after}", after)
                .replace("{name}", self.typed.trim_start_matches('-'))
                .into()
        };
        self.habit.puts.split_whitespace().map(fill).collect()
    }
}

fn is_option(word: &OsStr) -> bool {
    word.len() > 1 && word.as_bytes()[0] == b'-'
}

/// A word as a shell reads it; only quoted where it must be.
pub fn quoted(word: &OsStr) -> Cow<'_, str> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_=+./,:%@~".contains(byte);
    let text = word.to_string_lossy();
    if !word.is_empty() && word.as_bytes().iter().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''")).into()
}
