//! Finds the reference tools that differential tests compare with.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The executable `name` in `PATH`, or `None` where it is not installed.
pub fn tool(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| {
            path.metadata()
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
}

#[cfg(test)]
mod tests {
    #[test]
    fn finds_what_is_there() {
        assert!(super::tool("sh").is_some());
        assert_eq!(super::tool("no-such-tool-anywhere"), None);
    }
}
