//! Rows of the tables.

use std::ffi::OsStr;
use std::path::Path;

use bc_digest::Algorithm;

/// Kind of value that a row needs to hold.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Anything.
    Any,
    /// Names of algorithms, separated by commas, and no file.
    Algorithm,
    /// A number, and no file.
    Number,
    /// A size, and no file.
    Size,
    /// One of these, in any case.
    OneOf(&'static [&'static str]),
    /// Something that begins so.
    Begins(&'static str),
    /// Something that ends so.
    Ends(&'static str),
    /// Two sizes with a dash between them.
    Range,
    /// Letters by which rmlint ranks originals, the first of them one of these, and no file.
    Rank(&'static str),
    /// A digest of as many hexadecimal digits.
    Digest(usize),
    /// A regular file that is there.
    File,
}

impl Kind {
    pub fn fits(self, value: &OsStr) -> bool {
        let Some(text) = value.to_str() else {
            return matches!(self, Kind::Any);
        };
        let is_free = || Path::new(value).symlink_metadata().is_err();
        match self {
            Kind::Any => true,
            Kind::Algorithm => text.split(',').all(|a| a.parse::<Algorithm>().is_ok()) && is_free(),
            Kind::Number => text.parse::<u64>().is_ok() && is_free(),
            Kind::Size => is_size(text) && is_free(),
            Kind::OneOf(words) => words.iter().any(|word| word.eq_ignore_ascii_case(text)),
            Kind::Begins(start) => text.starts_with(start),
            Kind::Ends(end) => text.ends_with(end),
            Kind::Range => text
                .split_once('-')
                .is_some_and(|(from, to)| is_size(from) && is_size(to)),
            Kind::Rank(first) => {
                let is_rank = |letter: char| "aAdDhHlLmMoOpPrRxX".contains(letter);
                text.starts_with(|letter: char| first.contains(letter))
                    && text.chars().all(is_rank)
                    && is_free()
            }
            Kind::Digest(digits) => {
                text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            Kind::File => Path::new(value).is_file(),
        }
    }
}

fn is_size(text: &str) -> bool {
    text.parse::<bc_fs::Size>().is_ok()
}

/// Values that a word takes.
#[derive(Clone, Copy)]
pub enum Takes {
    /// None, whichever word follows.
    Nothing,
    /// None, where a path, an option or nothing follows: an option of ours with that letter would
    /// take it for its value.
    NothingBeforePath,
    /// One, of this kind; else the row does not hold.
    One(Kind),
    /// One of this kind, and those after it that are neither options nor existing files.
    Many(Kind),
    /// One of this kind, and all that follow up to the next option.
    All(Kind),
}

/// One habit: the words that are typed, and their meaning.
#[derive(Clone, Copy)]
pub struct Habit {
    /// `-c`, `--check`, or a first word such as `group`.
    pub typed: &'static [&'static str],
    pub takes: Takes,
    /// Holds only where one of these is typed too.
    pub beside: &'static [&'static str],
    /// Holds only where none of these is typed.
    pub without: &'static [&'static str],
    /// Holds only where no path is typed at all.
    pub alone: bool,
    /// Holds only where standard input is a terminal.
    pub at_terminal: bool,
    /// The subcommand that is meant.
    pub sub: &'static str,
    /// The subcommand where the word is typed twice.
    pub twice: &'static str,
    /// Words that replace it. `{}` is the value, `{lower}` in lower case, `{after}` the text after
    /// its first colon, `{from}` and `{to}` the texts around its first dash, `{stem}` the text
    /// before its last `/**`, `{name}` the word without its dashes, `{path}` the first path.
    pub puts: &'static str,
    /// Subcommand in which alone those words count.
    pub within: &'static str,
    /// The value is a path: the first, or the last.
    pub path: Option<Place>,
    /// Paths are dropped from the command.
    pub drops_paths: bool,
    /// Words that stand for paths that are missing. With it the command is only shown.
    pub needs: &'static [&'static str],
    /// Another program that does it with the same paths.
    pub instead: &'static str,
    /// The only program that does it, whose word it is: the line is for that one.
    pub only: &'static str,
    /// Text before the command; `{}` is the value.
    pub first: &'static str,
    /// Text after the command; `{}` is the value.
    pub then: &'static str,
    /// Reason why it is not simply done; empty if the command says enough.
    pub says: Option<&'static str>,
}

/// Position of a value among the paths.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    First,
    Last,
}

/// Returns the habit of a word without a value that is harmless and asks for nothing that is not
/// done anyway.
pub const fn on(typed: &'static [&'static str]) -> Habit {
    Habit {
        typed,
        takes: Takes::Nothing,
        beside: &[],
        without: &[],
        alone: false,
        at_terminal: false,
        sub: "",
        twice: "",
        puts: "",
        within: "",
        path: None,
        drops_paths: false,
        needs: &[],
        instead: "",
        only: "",
        first: "",
        then: "",
        says: None,
    }
}

impl Habit {
    pub const fn takes(mut self, kind: Kind) -> Habit {
        self.takes = Takes::One(kind);
        self
    }

    pub const fn many(mut self, kind: Kind) -> Habit {
        self.takes = Takes::Many(kind);
        self
    }

    pub const fn all(mut self, kind: Kind) -> Habit {
        self.takes = Takes::All(kind);
        self
    }

    pub const fn before_path(mut self) -> Habit {
        self.takes = Takes::NothingBeforePath;
        self
    }

    pub const fn beside(mut self, others: &'static [&'static str]) -> Habit {
        self.beside = others;
        self
    }

    pub const fn without(mut self, others: &'static [&'static str]) -> Habit {
        self.without = others;
        self
    }

    pub const fn alone(mut self) -> Habit {
        self.alone = true;
        self
    }

    pub const fn at_terminal(mut self) -> Habit {
        self.at_terminal = true;
        self
    }

    pub const fn sub(mut self, name: &'static str) -> Habit {
        self.sub = name;
        self
    }

    pub const fn twice(mut self, name: &'static str) -> Habit {
        self.twice = name;
        self
    }

    pub const fn puts(mut self, words: &'static str) -> Habit {
        self.puts = words;
        self
    }

    pub const fn within(mut self, sub: &'static str) -> Habit {
        self.within = sub;
        self
    }

    pub const fn path(mut self, place: Place) -> Habit {
        self.path = Some(place);
        self
    }

    pub const fn drops_paths(mut self) -> Habit {
        self.drops_paths = true;
        self
    }

    pub const fn needs(mut self, names: &'static [&'static str]) -> Habit {
        self.needs = names;
        self
    }

    pub const fn instead(mut self, program: &'static str) -> Habit {
        self.instead = program;
        self
    }

    pub const fn only(mut self, program: &'static str, why: &'static str) -> Habit {
        self.only = program;
        self.says(why)
    }

    pub const fn first(mut self, text: &'static str) -> Habit {
        self.first = text;
        self
    }

    pub const fn then(mut self, text: &'static str) -> Habit {
        self.then = text;
        self
    }

    pub const fn says(mut self, why: &'static str) -> Habit {
        self.says = Some(why);
        self
    }

    pub fn takes_nothing(&self) -> bool {
        matches!(self.takes, Takes::Nothing | Takes::NothingBeforePath)
    }

    /// Returns true if the row holds even where the word is an option of ours: only if it looks at
    /// more than the word.
    pub fn is_choosy(&self) -> bool {
        let any = matches!(self.takes, Takes::Nothing | Takes::One(Kind::Any));
        let looks = self.alone || self.at_terminal;
        !any || looks || !self.beside.is_empty() || !self.without.is_empty()
    }
}
