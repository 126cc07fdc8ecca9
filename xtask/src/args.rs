//! The command line of an xtask command: words and `--name VALUE` (or `--name=VALUE`) options.

use anyhow::{Result, bail};

/// Rest of the command line.
pub(crate) struct Args {
    left: Vec<String>,
}

impl Args {
    /// Returns the arguments of this process, without its name.
    pub(crate) fn from_env() -> Args {
        let left = std::env::args_os().skip(1);
        Args {
            left: left.map(|a| a.to_string_lossy().into_owned()).collect(),
        }
    }

    /// Returns these words as a command line.
    pub(crate) fn from_words(words: &[String]) -> Args {
        Args {
            left: words.to_vec(),
        }
    }

    /// Takes the first word if it is not an option.
    pub(crate) fn word(&mut self) -> Option<String> {
        match self.left.first() {
            Some(first) if !first.starts_with("--") => Some(self.left.remove(0)),
            Some(first) if first == "--help" => Some(self.left.remove(0)),
            _ => None,
        }
    }

    /// Returns the words that are left.
    pub(crate) fn words(&self) -> &[String] {
        &self.left
    }

    /// Takes the first word if it is this one.
    pub(crate) fn takes(&mut self, word: &str) -> bool {
        let is_it = self.left.first().is_some_and(|first| first == word);
        if is_it {
            self.left.remove(0);
        }
        is_it
    }

    /// Takes the option `name` (given with its dashes), if it is there, and its value.
    pub(crate) fn option(&mut self, name: &str) -> Result<Option<String>> {
        for at in 0..self.left.len() {
            if let Some(value) = self.left[at]
                .strip_prefix(name)
                .and_then(|v| v.strip_prefix('='))
            {
                let value = value.to_owned();
                self.left.remove(at);
                return Ok(Some(value));
            }
            if self.left[at] == name {
                if at + 1 == self.left.len() {
                    bail!("{name} needs a value");
                }
                self.left.remove(at);
                return Ok(Some(self.left.remove(at)));
            }
        }
        Ok(None)
    }

    /// Takes an option as [`Args::option`] does, as a number.
    pub(crate) fn number(&mut self, name: &str, default: u64) -> Result<u64> {
        match self.option(name)? {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) => Ok(number),
                Err(_) => bail!("{name}: {text:?} is not a number"),
            },
        }
    }

    /// Takes the flag `name`.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.left.len();
        self.left.retain(|a| a != name);
        self.left.len() < before
    }

    /// Returns everything that is left, words as well as options.
    pub(crate) fn all(self) -> Vec<String> {
        self.left
    }

    /// Returns the words that are left; an option among them is unknown, and an error.
    pub(crate) fn rest(self) -> Result<Vec<String>> {
        if let Some(unknown) = self.left.iter().find(|a| a.starts_with("--")) {
            bail!("unknown option {unknown}");
        }
        Ok(self.left)
    }

    /// Refuses anything that is left.
    pub(crate) fn done(self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some(unknown) => bail!("unexpected argument {unknown:?}"),
        }
    }
}
