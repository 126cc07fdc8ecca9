//! Files that the kernel protects from everyone: immutable and append-only ones.

use std::path::PathBuf;
use std::process::Command;

/// A path with a flag of `chattr`, until dropped.
#[derive(Debug)]
pub struct Marked(PathBuf, char);

impl Marked {
    /// Marks a file or a directory. `None` where there are no such flags, or this process may not
    /// set them.
    pub fn new(path: impl Into<PathBuf>, flag: char) -> Option<Marked> {
        let marked = Marked(path.into(), flag);
        marked.set('+').then_some(marked)
    }

    fn set(&self, sign: char) -> bool {
        let mut command = Command::new("chattr");
        command.arg(format!("{sign}{}", self.1)).arg(&self.0);
        command.output().is_ok_and(|out| out.status.success())
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        self.set('-');
    }
}
