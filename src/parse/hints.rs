//! Hints for what people type who know other tools: one table of typed words, each with the command
//! to type here. It is read only after a command line was refused, and changes nothing: what is
//! typed for another tool is never run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_fs::quote::shell_word;
use clap::{Arg, ArgAction, Command};

use crate::parse::applet::AppletCall;
use crate::parse::config::accepts;
use crate::parse::environment::{Environment, PathKind};

mod table;

use table::{HintRow, rows};

/// Returns the hint for a line that was refused.
pub fn of_line(call: &AppletCall<'_>, env: &Environment<'_>) -> Option<String> {
    let command = (call.applet.command)();
    let mut line = TypedLine {
        rows: rows(call.applet.name),
        command: &command,
        current: call.applet.default.unwrap_or_default(),
        named: None,
        found: Vec::new(),
        kept: Vec::new(),
        operands: Vec::new(),
    };
    let end = call.rest.iter().position(|arg| arg == "--");
    let (words, behind) = call.rest.split_at(end.unwrap_or(call.rest.len()));
    line.read(words, env);
    // The first row of several that hold counts.
    line.found.sort_by_key(|found| found.at);
    line.answer(call, behind, env)
}

/// Returns the hint for a line that parses, although a word in it is sure to mean something else
/// than it says here.
pub fn of_misread(call: &AppletCall<'_>, env: &Environment<'_>) -> Option<String> {
    let end = call.rest.iter().position(|arg| arg == "--");
    let words = &call.rest[..end.unwrap_or(call.rest.len())];
    match call.applet.name {
        // rmlint sets originals apart by it. As a path it would be all files of the machine.
        "dup" if call.rest.iter().any(|arg| arg == "//") => Some(format!(
            "'//' is the whole machine here; use: {} --reference=ORIGINALS DIR",
            call.called
        )),
        // Its value can be left out, so it is not the word that follows.
        "copy" | "move" => words.windows(2).find_map(|pair| {
            let value = pair[1].to_str().filter(|_| pair[0] == "--sync")?;
            let is_value = bc_copy::Durability::ALL
                .map(|one| one.name())
                .contains(&value);
            let meant = (is_value && !env.has(&pair[1])).then_some(value)?;
            Some(format!(
                "its value follows '=': use: {} --sync={meant} SOURCE... DESTINATION",
                call.called
            ))
        }),
        _ => None,
    }
}

/// Returns the answer to a first word that is no applet: another program's name, an algorithm, a
/// subcommand without its applet, a path.
pub fn of_first_word(word: &OsStr, env: &Environment<'_>) -> Option<String> {
    let text = word.to_str()?;
    let mut known = table::FIRST_WORDS.iter();
    let meant = match known.find(|(words, _)| words.split(' ').any(|word| word == text)) {
        Some((_, command)) => (*command).to_owned(),
        None => {
            let algorithm = text.strip_suffix("sum").unwrap_or(text);
            match algorithm.parse::<bc_digest::Algorithm>() {
                Ok(algorithm) => format!("bc hash --type={algorithm}"),
                Err(_) if (env.look)(Path::new(word)) == Some(PathKind::Directory) => {
                    format!("bc hash {0}' or 'bc dup {0}", shell_word(word.as_bytes()))
                }
                Err(_) => return None,
            }
        }
    };
    Some(format!("did you mean '{meant}'?"))
}

/// A command line, taken apart by the table.
struct TypedLine<'a> {
    rows: Vec<HintRow>,
    command: &'a Command,
    /// The subcommand that is named, else the one that is meant without a name.
    current: &'a str,
    named: Option<&'a str>,
    found: Vec<Found>,
    /// Options of ours, and those that nobody knows.
    kept: Vec<OsString>,
    operands: Vec<OsString>,
}

/// A word of the table that was typed.
struct Found {
    /// Place in the table.
    at: usize,
    row: HintRow,
    /// The word without its dashes.
    name: String,
    value: OsString,
}

/// Part of the line that an option took.
enum Taken {
    Word,
    /// Its value is in the same argument.
    Attached,
    /// Its value is the next argument.
    Next,
}

impl TypedLine<'_> {
    fn read(&mut self, words: &[OsString], env: &Environment<'_>) {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            let next = words.get(at).filter(|next| !is_option(next));
            let text = word.to_str().filter(|_| is_option(word));
            let taken = match text {
                None => {
                    self.operand(word, env);
                    continue;
                }
                Some(text) if text.starts_with("--") => match text.split_once('=') {
                    Some((name, value)) => self.option(name, Some(value), None),
                    None => self.option(text, None, next),
                },
                Some(text) if text.len() == 2 || self.rows.iter().any(|row| row.has(text)) => {
                    self.option(text, None, next)
                }
                Some(text) => self.letters(text, next),
            };
            match taken {
                Some(Taken::Next) => at += 1,
                Some(Taken::Word | Taken::Attached) => {}
                None => self.kept.push(word.clone()),
            }
        }
    }

    fn operand(&mut self, word: &OsString, env: &Environment<'_>) {
        let is_first = self.operands.is_empty() && self.named.is_none();
        let text = word.to_str().unwrap_or_default();
        if is_first && let Some(sub) = self.command.find_subcommand(text) {
            // The tree outlives the line.
            self.named = Some(sub.get_name());
            self.current = sub.get_name();
            return;
        }
        let mut rows = self.rows.iter().copied().enumerate();
        let found = rows.find(|(_, row)| row.has(text));
        match found.filter(|_| is_first && !env.has(word)) {
            Some(found) => {
                self.named = Some("");
                self.push(found, text, OsString::new());
            }
            None => self.operands.push(word.clone()),
        }
    }

    /// Reads short options after one dash.
    fn letters(&mut self, text: &str, next: Option<&OsString>) -> Option<Taken> {
        for (at, letter) in text.char_indices().skip(1) {
            let end = at + letter.len_utf8();
            let rest = Some(&text[end..]).filter(|rest| !rest.is_empty());
            let next = next.filter(|_| rest.is_none());
            match self.option(&format!("-{letter}"), rest, next) {
                Some(Taken::Word) => {}
                Some(taken) => return Some(taken),
                None => self.kept.push(format!("-{letter}").into()),
            }
        }
        Some(Taken::Word)
    }

    /// Reads one option, ours before those of the table; `None` if it is neither.
    fn option(
        &mut self,
        name: &str,
        attached: Option<&str>,
        next: Option<&OsString>,
    ) -> Option<Taken> {
        let value = attached.map(OsString::from).or_else(|| next.cloned());
        let with_value = || match attached {
            Some(_) => Taken::Attached,
            None => Taken::Next,
        };
        if let Some(arg) = self.option_of(self.current, name) {
            let takes = arg.get_action().takes_values();
            let follows = attached.is_some() || !arg.is_require_equals_set();
            let (words, taken) = match value.clone().filter(|_| takes && follows) {
                Some(value) => (vec![joined(name, &value)], with_value()),
                None => (vec![name.into()], Taken::Word),
            };
            if self.takes(self.current, &words) {
                self.kept.extend(words);
                return Some(taken);
            }
        }
        let text = value.as_ref().map(|value| value.to_string_lossy());
        for (at, row) in self.rows.clone().into_iter().enumerate() {
            for pattern in row.patterns(name) {
                let Some(pattern) = pattern.strip_prefix('=') else {
                    // A letter may have others behind it.
                    if attached.is_none() || !name.starts_with("--") {
                        self.push((at, row), name, OsString::new());
                        return Some(Taken::Word);
                    }
                    continue;
                };
                let part = text
                    .as_deref()
                    .and_then(|text| table::matched(pattern, text));
                if let Some(part) = part.filter(|part| self.fits(&row, name, part)) {
                    self.push((at, row), name, part.into());
                    return Some(with_value());
                }
            }
        }
        None
    }

    fn push(&mut self, found: (usize, HintRow), name: &str, value: OsString) {
        let (at, row) = found;
        if let Some(sub) = row.subcommand().filter(|_| self.current.is_empty()) {
            self.current = sub;
        }
        let name = name.trim_start_matches('-').to_owned();
        self.found.push(Found {
            at,
            row,
            name,
            value,
        });
    }

    /// Returns true if the command that is meant, or any if the row names none, takes the value.
    fn fits(&self, row: &HintRow, name: &str, value: &str) -> bool {
        let words = row.words(name.trim_start_matches('-'), OsStr::new(value));
        let options: Vec<OsString> = words.filter(|word| is_option(word)).collect();
        options.is_empty()
            || match row.subcommand() {
                Some(sub) => self.takes(sub, &options),
                None => self.is_known(&options),
            }
    }

    /// Returns true if any subcommand takes these options.
    fn is_known(&self, options: &[OsString]) -> bool {
        let mut subs = self.command.get_subcommands().map(Command::get_name);
        subs.any(|sub| self.takes(sub, options))
    }

    /// Returns true if a subcommand takes these options.
    fn takes(&self, sub: &str, options: &[OsString]) -> bool {
        let command = self.command.find_subcommand(sub);
        command.is_some_and(|command| accepts(command, options).is_ok())
    }

    /// Returns an option of a subcommand.
    fn option_of(&self, sub: &str, name: &str) -> Option<&Arg> {
        let is = |arg: &&Arg| match name.strip_prefix("--") {
            Some(long) => {
                let also = arg.get_all_aliases().unwrap_or_default();
                arg.get_long() == Some(long) || also.contains(&long)
            }
            None => {
                let letter = name.chars().nth(1);
                let also = arg.get_all_short_aliases().unwrap_or_default();
                arg.get_short() == letter || letter.is_some_and(|letter| also.contains(&letter))
            }
        };
        let command = self.command.find_subcommand(sub)?;
        command
            .get_arguments()
            .filter(|arg| !arg.is_positional())
            .find(is)
    }

    /// Returns the hint: the first sentence that there is, and the command to type.
    fn answer(
        mut self,
        call: &AppletCall<'_>,
        behind: &[OsString],
        env: &Environment<'_>,
    ) -> Option<String> {
        if let Some(found) = self.found.iter().find(|found| found.row.command.is_none()) {
            let value = shell_word(found.value.as_bytes());
            return Some(call.names.text(found.row.why).replace("{}", &value));
        }
        let Some(first) = self.found.first() else {
            return self.without_a_subcommand(call, env);
        };
        // One that is not simply another name does most.
        let with_sub = || {
            self.found
                .iter()
                .filter(|found| found.row.subcommand().is_some())
        };
        let telling = with_sub().find(|found| !found.row.why.is_empty());
        let sub = telling
            .or_else(|| with_sub().next())
            .and_then(|found| found.row.subcommand());
        let meant = sub.or(self.named.filter(|name| !name.is_empty()));
        let target = meant.unwrap_or(call.applet.default.unwrap_or_default());
        let why = telling.unwrap_or(first).row.why;
        let mut options: Vec<OsString> = Vec::new();
        let mut suffix = String::new();
        for found in &self.found {
            for word in found.row.words(&found.name, &found.value) {
                if !is_option(&word) {
                    self.operands.push(word);
                } else if !options.contains(&word)
                    && self.takes(target, std::slice::from_ref(&word))
                {
                    self.put(target, &mut options, word);
                }
            }
            suffix.push_str(found.row.suffix());
        }
        // What nobody knows stays to be seen; what only another subcommand knows is of no use.
        for word in std::mem::take(&mut self.kept) {
            let word = [word];
            if self.takes(target, &word) || !self.is_known(&word) {
                options.extend(word);
            }
        }
        self.operands.extend_from_slice(behind);
        let missing = self.missing(target, &options);
        let words = meant.map(OsString::from).into_iter().chain(options);
        let words = words.chain(self.operands).chain(missing);
        let command = words.fold(call.called.to_owned(), |command, word| {
            command + " " + &shell_word(word.as_bytes())
        });
        let separator = if why.is_empty() { "" } else { "; " };
        Some(format!("{why}{separator}use: {command}{suffix}"))
    }

    /// Adds an option, in place of one that can be given only once.
    fn put(&self, target: &str, options: &mut Vec<OsString>, word: OsString) {
        let name = |word: &OsString| {
            let text = word.to_string_lossy();
            text.split('=').next().unwrap_or_default().to_owned()
        };
        let option = self.option_of(target, &name(&word));
        if option.is_some_and(|arg| matches!(arg.get_action(), ArgAction::Set)) {
            options.retain(|other| name(other) != name(&word));
        }
        options.push(word);
    }

    /// Returns names for the operands that a command needs and the line lacks.
    fn missing(&self, target: &str, options: &[OsString]) -> Vec<OsString> {
        let Some(command) = self.command.find_subcommand(target) else {
            return Vec::new();
        };
        let is_list = |word: &OsString| {
            word.as_bytes().starts_with(b"--from=") || word.as_bytes().starts_with(b"--files-from=")
        };
        // A search needs a path unless there is a list; hashing reads standard input.
        let is_search = command
            .get_arguments()
            .any(|arg| arg.get_id() == "across_roots");
        let needs_paths = is_search && !options.iter().any(is_list);
        let operands = command.get_positionals().skip(self.operands.len());
        operands
            .filter(|arg| arg.is_required_set() || (needs_paths && arg.get_id() == "paths"))
            .filter_map(|arg| arg.get_value_names()?.first())
            .map(|name| OsString::from(name.as_str()))
            .collect()
    }

    /// Returns the hint for paths without a subcommand: they do not say which command is meant, if
    /// the applet has several.
    fn without_a_subcommand(&self, call: &AppletCall<'_>, env: &Environment<'_>) -> Option<String> {
        let is_undecided = call.applet.default.is_none() && self.named.is_none();
        let there = self
            .operands
            .first()
            .filter(|path| is_undecided && env.has(path));
        let root = shell_word(there?.as_bytes());
        let manifest = self.operands.get(1).map(|path| shell_word(path.as_bytes()));
        let called = call.called;
        Some(match manifest {
            Some(manifest) => format!("use: {called} verify {root} {manifest}"),
            None => format!("use: {called} manifest --output=MANIFEST {root}"),
        })
    }
}

/// Returns an option with its value in one word.
fn joined(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(name);
    if name.starts_with("--") {
        word.push("=");
    }
    word.push(value);
    word
}

fn is_option(word: &OsStr) -> bool {
    word.len() > 1 && word.as_bytes()[0] == b'-'
}
