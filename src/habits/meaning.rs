//! Writes a command line that was taken apart as ours, or the command to type instead.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_fs::quote::shell_word;

use super::Meant;
use super::hash::Length;
use super::line::{CommandLine, Found};
use super::rows::{Habit, Place};

impl<'a> CommandLine<'a> {
    /// Returns the meaning of the whole line.
    pub fn meaning(mut self, called: &str) -> Meant {
        if self.found.is_empty() {
            return self.without_a_subcommand(called);
        }
        let mut only = self.found.iter().map(|found| found.habit);
        if let Some(habit) = only.find(|habit| !habit.only.is_empty()) {
            return Meant::Refused(self.as_typed(habit.only, habit.says.unwrap_or_default()));
        }
        let sub = self.subcommand();
        let mut words = self.words(sub);
        let length = super::hash::join_length(&mut words, &mut self.kept);
        if let Length::Only(program) = length {
            return Meant::Refused(self.as_typed(program, "digests have one length here"));
        }
        let needs: &[&str] = self
            .found
            .iter()
            .map(|found| found.habit.needs)
            .find(|needs| !needs.is_empty())
            .unwrap_or_default();
        self.place_values();
        let short = needs.len() > self.paths.len() + self.behind.len().saturating_sub(1);
        let here = self.lacks_a_path(&words, needs);
        let mut says = self.found.iter().filter_map(|found| found.habit.says);
        match (says.next(), short || here || length == Length::Guessed) {
            (None, false) => {
                words.extend((!sub.is_empty()).then(|| sub.into()));
                words.rotate_right(usize::from(!sub.is_empty()));
                self.below_the_roots(&mut words);
                words.append(&mut self.kept);
                words.append(&mut self.unknown);
                words.append(&mut self.paths);
                words.extend_from_slice(self.behind);
                Meant::Same(words)
            }
            (why, _) => {
                if here {
                    let is_deletion = words.iter().any(|word| word == "--action=delete");
                    let path = if is_deletion { "DIR" } else { "." };
                    self.paths.push(path.into());
                }
                Meant::Refused(self.refusal(why.unwrap_or(""), called, sub, words, needs))
            }
        }
    }

    /// Returns the words that replace those typed, in the subcommand that is meant.
    fn words(&self, sub: &str) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let first = self
            .paths
            .first()
            .map_or("DIR".as_ref(), OsString::as_os_str);
        let counts = |found: &&Found<'_>| {
            let within = found.habit.within;
            within.is_empty() || within == sub
        };
        for found in self.found.iter().filter(counts) {
            for word in found.words(first) {
                if !words.contains(&word) && !self.kept.contains(&word) {
                    words.push(word);
                }
            }
        }
        words
    }

    /// Returns true if a search needs a path: other programs search this directory where none is
    /// named.
    fn lacks_a_path(&self, words: &[OsString], needs: &[&str]) -> bool {
        let is_list = |word: &OsString| {
            let word = word.as_bytes();
            word.starts_with(b"--files-from") || word == b"--from" || word.starts_with(b"--from=")
        };
        let is_named = !self.paths.is_empty() || !self.behind.is_empty() || !needs.is_empty();
        let is_search = self.current == "scan" || self.current == "summary";
        let listed = words.iter().chain(&self.kept).any(is_list);
        is_search && !is_named && !listed
    }

    /// Turns excluded paths, which other programs name with their root, into paths below it.
    fn below_the_roots(&self, words: &mut [OsString]) {
        for word in words {
            let Some(left_out) = word.as_bytes().strip_prefix(b"--exclude=") else {
                continue;
            };
            let left_out = Path::new(OsStr::from_bytes(left_out));
            let mut below = self
                .paths
                .iter()
                .filter_map(|root| left_out.strip_prefix(root).ok());
            if let Some(below) = below.find(|below| !below.as_os_str().is_empty()) {
                let mut pattern = OsString::from("--exclude=/");
                pattern.push(below);
                *word = pattern;
            }
        }
    }

    /// Returns the line as it is, for the only program that does it.
    fn as_typed(&self, program: &str, why: &str) -> String {
        let words = self.args.iter().chain(self.behind);
        let command = words.fold(program.to_owned(), |command, word| {
            command + " " + &shell_word(word.as_bytes())
        });
        format!("{why}; use: {command}")
    }

    /// Handles paths without a subcommand: they do not say which command is meant, if the applet
    /// has several.
    fn without_a_subcommand(&self, called: &str) -> Meant {
        let is_path = |path: &&OsString| Path::new(path).symlink_metadata().is_ok();
        let first = self.paths.first().filter(is_path);
        let Some(first) = first.filter(|_| self.current.is_empty()) else {
            return Meant::AsTyped;
        };
        let root = shell_word(first.as_bytes());
        Meant::Refused(match self.paths.get(1) {
            Some(manifest) => format!(
                "use: {called} verify {root} {}",
                shell_word(manifest.as_bytes())
            ),
            None => format!("use: {called} manifest --output=MANIFEST {root}"),
        })
    }

    /// Returns the subcommand; of several, that of the first habit that is not simply done: it does
    /// most.
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
        sub: &str,
        mut words: Vec<OsString>,
        needs: &[&str],
    ) -> String {
        let mut habits = self.found.iter().map(|found| found.habit);
        let dropped = habits.clone().any(|habit| habit.drops_paths);
        let program = habits.find(|habit| !habit.instead.is_empty());
        let around = |text: fn(&Habit) -> &'static str| {
            let mut found = self.found.iter();
            let found = found.find(|found| !text(found.habit).is_empty());
            found.map_or(String::new(), |found| {
                text(found.habit).replace(
                    "{}",
                    &shell_word(found.value.as_deref().unwrap_or_default().as_bytes()),
                )
            })
        };
        let (first, mut then) = (around(|habit| habit.first), around(|habit| habit.then));
        let mut paths = std::mem::take(&mut self.paths);
        if dropped {
            paths.clear();
        } else {
            let there = paths.len();
            paths.extend(needs.iter().skip(there).map(OsString::from));
            paths.extend_from_slice(self.behind);
        }
        let mut command = format!("{first}{}", program.map_or(called, |habit| habit.instead));
        if program.is_some_and(|habit| habit.instead == "find") {
            paths.extend(for_find(&words, &mut then));
            words.clear();
        } else if program.is_some() {
            words.retain(is_of_every_walk);
        } else {
            words.extend((!sub.is_empty()).then(|| sub.into()));
            words.rotate_right(usize::from(!sub.is_empty()));
            self.paths = std::mem::take(&mut paths);
            self.below_the_roots(&mut words);
            paths = std::mem::take(&mut self.paths);
            words.append(&mut self.kept);
        }
        for word in words.iter().chain(&paths) {
            command.push(' ');
            command.push_str(&shell_word(word.as_bytes()));
        }
        match why {
            "" => format!("use: {command}{then}"),
            why => format!("{why}; use: {command}{then}"),
        }
    }
}

/// Returns true for options of walks, which all programs of ours have.
fn is_of_every_walk(word: &OsString) -> bool {
    const WALK: [&[u8]; 6] = [
        b"--include=",
        b"--exclude=",
        b"--min-size=",
        b"--max-size=",
        b"--max-depth=",
        b"--follow-symlinks",
    ];
    WALK.iter()
        .any(|option| word.as_bytes().starts_with(option))
}

/// Returns the same for find; the file that its lines go to is put at the end.
fn for_find(words: &[OsString], then: &mut String) -> Vec<OsString> {
    let mut tests = Vec::new();
    for word in words {
        let text = word.to_string_lossy();
        let (option, value) = text.split_once('=').unwrap_or((&*text, ""));
        match option {
            "--max-depth" => tests
                .splice(0..0, ["-maxdepth".into(), value.into()])
                .for_each(drop),
            "--exclude" => {
                tests.extend(["-not", "-path", value, "-not", "-path"].map(OsString::from));
                tests.push(format!("{value}/*").into());
            }
            "--output" => then.push_str(&format!(" > {}", shell_word(value.as_bytes()))),
            _ => {}
        }
    }
    tests
}

impl Found<'_> {
    /// Returns the words that stand for it; `path` is the first one that was typed.
    fn words(&self, path: &OsStr) -> Vec<OsString> {
        let value = self.value.as_deref().unwrap_or_default();
        let text = value.to_string_lossy();
        let fill = |word: &str| -> OsString {
            for (mark, with) in [("{}", value), ("{path}", path)] {
                if let Some((before, after)) = word.split_once(mark) {
                    let mut filled = OsString::from(before);
                    filled.push(with);
                    filled.push(after);
                    return filled;
                }
            }
            let after = text.split_once(':').map_or("", |(_, after)| after);
            let (from, to) = text.split_once('-').unwrap_or(("", ""));
            word.replace("{lower}", &text.to_lowercase())
                .replace("{after}", after)
                .replace("{from}", from)
                .replace("{to}", to)
                .replace("{stem}", text.strip_suffix("/**").unwrap_or(&text))
                .replace("{name}", self.typed.trim_start_matches('-'))
                .into()
        };
        self.habit.puts.split_whitespace().map(fill).collect()
    }
}
