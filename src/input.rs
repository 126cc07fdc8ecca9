//! Where lists and manifests come from: a file, or standard input, which has to be there.

use std::fs::File;
use std::path::Path;

use bc_fs::streams::{self, Stream};

/// Standard input. Errors name it.
pub fn stdin() -> Result<File, String> {
    streams::open(Stream::Input).map_err(|error| format!("stdin: {error}"))
}

/// The file at `path`, or standard input for `-`. Errors say path, operation and reason.
pub fn open(path: &Path) -> Result<File, String> {
    check(path)?;
    if crate::args::is_dash(path.as_os_str()) {
        return stdin();
    }
    File::open(path).map_err(|error| format!("{}: open: {error}", shown(path)))
}

/// Fails if `path` means standard input, as `-` and `/dev/stdin` do, and the process was started
/// without one: opened by its path it would be an empty file.
pub fn check(path: &Path) -> Result<(), String> {
    if crate::args::is_dash(path.as_os_str()) {
        return stdin().map(drop);
    }
    match crate::output::descriptor(path) {
        Some(0) => streams::open(Stream::Input)
            .map(drop)
            .map_err(|error| format!("{}: {error}", shown(path))),
        _ => Ok(()),
    }
}

/// A path as messages show it.
pub fn shown(path: &Path) -> String {
    bc_fs::escape(path.as_os_str().as_encoded_bytes()).into_owned()
}
