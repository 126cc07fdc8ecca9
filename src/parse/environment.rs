//! Context in which a command line is read: variables, configuration files, and which paths there are.
//! As data and two questions, so that parsing is a pure function.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most bytes of a configuration file, which is a page or two; a larger file is not one.
const MOST_BYTES: u64 = 1 << 20;

/// Kind of what a path leads to; a link counts as what it leads to, or as `Other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else that is there.
    Other,
}

/// Context in which a command line is read.
pub struct Environment<'a> {
    /// Variables whose names begin with `BC_`.
    pub variables: Vec<(OsString, OsString)>,
    /// Configuration file where none is named, if there can be one.
    pub config_file: Option<PathBuf>,
    /// Reads a configuration file.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    /// Looks at a path; `None` if there is nothing.
    pub look: &'a dyn Fn(&Path) -> Option<PathKind>,
}

impl Environment<'_> {
    /// Returns the environment of this process.
    pub fn of_process() -> Environment<'static> {
        let is_ours = |(name, _): &(OsString, OsString)| name.as_bytes().starts_with(b"BC_");
        Environment {
            variables: std::env::vars_os().filter(is_ours).collect(),
            config_file: crate::parse::environment::config_file(),
            read: &read,
            look: &look,
        }
    }

    /// Returns the value of a variable, if it is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| &**value)
            .filter(|value| !value.is_empty())
    }

    /// Returns true if there is something of this name.
    pub fn has(&self, path: &OsStr) -> bool {
        (self.look)(Path::new(path)).is_some()
    }
}

fn look(path: &Path) -> Option<PathKind> {
    let found = path.symlink_metadata().ok()?;
    let found = match found.is_symlink() {
        true => path.metadata().unwrap_or(found),
        false => found,
    };
    Some(match found {
        found if found.is_file() => PathKind::File,
        found if found.is_dir() => PathKind::Directory,
        _ => PathKind::Other,
    })
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // A device or a pipe may never end.
    let read = std::fs::File::open(path)?
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)?;
    if read as u64 > MOST_BYTES {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    Ok(text)
}

/// Returns the configuration file: `$XDG_CONFIG_HOME/bc/config.toml`, else
/// `~/.config/bc/config.toml`.
pub fn config_file() -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config")?.join("config.toml"))
}

/// Returns the configuration file if it is there, and the variables that set options, sorted.
pub fn settings() -> (Option<PathBuf>, Vec<(OsString, OsString)>) {
    let variables = std::env::vars_os();
    let mut variables: Vec<(OsString, OsString)> = variables
        .filter(|(name, _)| name.as_encoded_bytes().starts_with(b"BC_"))
        .collect();
    variables.sort();
    (config_file().filter(|path| path.is_file()), variables)
}

/// Returns the directory of files that can be made again: `$XDG_CACHE_HOME/bc`, else `~/.cache/bc`.
pub fn cache_dir() -> Option<PathBuf> {
    base("XDG_CACHE_HOME", ".cache")
}

/// Returns the directory of files that must outlast a cleaned cache, as the journals of prune:
/// `$XDG_STATE_HOME/bc`, else `~/.local/state/bc`.
pub fn state_dir() -> Option<PathBuf> {
    base("XDG_STATE_HOME", ".local/state")
}

fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    let base = named(variable)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(named("HOME")?.join(below_home)))?;
    Some(base.join("bc"))
}

/// Returns the path that an environment variable contains, if it is set.
pub fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}
