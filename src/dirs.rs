//! Where this program keeps files of its own, as the XDG base directory specification has it.

use std::path::PathBuf;

/// The configuration file: `$XDG_CONFIG_HOME/bc/config.toml`, else `~/.config/bc/config.toml`.
pub fn config_file() -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config")?.join("config.toml"))
}

/// What can be made again: `$XDG_CACHE_HOME/bc`, else `~/.cache/bc`.
pub fn cache_dir() -> Option<PathBuf> {
    base("XDG_CACHE_HOME", ".cache")
}

/// What must outlast a cleaned cache, as the journals of prune: `$XDG_STATE_HOME/bc`, else
/// `~/.local/state/bc`.
pub fn state_dir() -> Option<PathBuf> {
    base("XDG_STATE_HOME", ".local/state")
}

fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    let base = named(variable)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(named("HOME")?.join(below_home)))?;
    Some(base.join("bc"))
}

/// The path that an environment variable names, if it names one.
pub fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}
