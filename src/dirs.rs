//! Directories of this program's own files, as the XDG base directory specification has it.

use std::ffi::OsString;
use std::path::PathBuf;

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
