//! Context in which a command line is read: variables, configuration files, and which paths there are.
//! As data and two questions, so that parsing is a pure function.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_setfl};

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

/// Reads a configuration file. A pipe is read to its end; one that no process writes to is an error,
/// where opening it would wait for a writer.
fn read(path: &Path) -> io::Result<String> {
    let mut options = File::options();
    let flags = OFlags::NONBLOCK.bits() as i32;
    let opened = options.read(true).custom_flags(flags).open(path);
    let file = match opened {
        // Another process holds a lease.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => File::open(path)?,
        opened => opened?,
    };
    let mut text = Vec::new();
    // A device or a pipe may never end.
    let mut input = (&file).take(MOST_BYTES + 1);
    match input.read_to_end(&mut text) {
        // The pipe's writer has not come to it yet.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            fcntl_setfl(&file, OFlags::empty())?;
            input.read_to_end(&mut text)?;
        }
        read => {
            read?;
        }
    }
    if text.is_empty() && file.metadata()?.file_type().is_fifo() {
        return Err(io::Error::other("a pipe that no process writes to"));
    }
    if text.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    String::from_utf8(text).map_err(|_| {
        let why = "stream did not contain valid UTF-8";
        io::Error::new(io::ErrorKind::InvalidData, why)
    })
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

/// Returns the trash of the user's home: `$XDG_DATA_HOME/Trash`, else `~/.local/share/Trash`.
pub fn home_trash() -> Option<PathBuf> {
    let base = base_of_all("XDG_DATA_HOME", ".local/share")?;
    base.is_absolute().then(|| base.join("Trash"))
}

/// Returns the seconds by which the user's time is ahead of UTC now, by `TZ` or the system's zone; 0
/// where neither can be read.
pub fn utc_offset() -> i32 {
    let zone = match std::env::var("TZ") {
        Ok(name) if !name.is_empty() => tz::TimeZone::from_posix_tz(&name),
        _ => tz::TimeZone::local(),
    };
    let zone = zone.unwrap_or_else(|_| tz::TimeZone::utc());
    let now = zone.find_current_local_time_type();
    now.map_or(0, |local| local.ut_offset())
}

fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    Some(base_of_all(variable, below_home)?.join("bc"))
}

/// Returns the directory that programs have their own ones in.
fn base_of_all(variable: &str, below_home: &str) -> Option<PathBuf> {
    named(variable)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(named("HOME")?.join(below_home)))
}

/// Returns the path that an environment variable contains, if it is set.
pub fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}
