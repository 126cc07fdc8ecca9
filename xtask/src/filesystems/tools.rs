//! The program under test and the shell, with their output.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::sh;

/// Seconds after which a command has hung.
const PATIENCE: &str = "240";

/// The binary under test and the directory of this run.
pub(super) struct Lab {
    bc: PathBuf,
    pub(super) scratch: PathBuf,
}

/// Exit code and output of a command.
pub(super) struct ToolOutcome {
    /// -1 after a signal.
    pub(super) code: i32,
    pub(super) out: Vec<u8>,
    pub(super) err: String,
}

impl Lab {
    pub(super) fn new(scratch: PathBuf, bc: PathBuf) -> Result<Lab> {
        for name in ["cache", "state", "config"] {
            std::fs::create_dir_all(scratch.join(name))?;
        }
        Ok(Lab { bc, scratch })
    }

    /// Returns the binary's path.
    pub(super) fn binary(&self) -> &Path {
        &self.bc
    }

    /// Runs `bc` with these words, away from the user's own configuration and cache.
    pub(super) fn bc<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Result<ToolOutcome> {
        self.run(Command::new(&self.bc).args(words))
    }

    /// Runs any command likewise; one that hangs is ended, and fails.
    pub(super) fn run(&self, command: &mut Command) -> Result<ToolOutcome> {
        let mut bounded = Command::new("timeout");
        bounded
            .args(["--kill-after=5", PATIENCE])
            .arg(command.get_program())
            .args(command.get_args())
            .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))))
            .env("XDG_CACHE_HOME", self.scratch.join("cache"))
            .env("XDG_STATE_HOME", self.scratch.join("state"))
            .env("XDG_CONFIG_HOME", self.scratch.join("config"))
            .env("LC_ALL", "C")
            .current_dir(command.get_current_dir().unwrap_or(&self.scratch));
        let output = sh::capture(&mut bounded)?;
        let code = output.status.code().unwrap_or(-1);
        if code == 124 {
            bail!(
                "{:?} had not ended after {PATIENCE} s",
                command.get_program()
            );
        }
        Ok(ToolOutcome {
            code,
            out: output.stdout,
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

impl ToolOutcome {
    /// Returns the outcome if the exit code is `code`, else an error that quotes stderr.
    pub(super) fn expect(self, code: i32, who: &str) -> Result<ToolOutcome> {
        if self.code != code {
            bail!(
                "{who}: exit code {}, not {code}: {}",
                self.code,
                self.said()
            );
        }
        Ok(self)
    }

    /// Returns the first line on stderr, and how many follow.
    pub(super) fn said(&self) -> String {
        let mut lines = self.err.lines();
        let first = lines.next().unwrap_or("nothing on stderr");
        match lines.count() {
            0 => first.to_owned(),
            more => format!("{first} (and {more} lines more)"),
        }
    }

    /// Returns stdout by lines.
    pub(super) fn lines(&self) -> Vec<&[u8]> {
        self.out
            .split(|&b| b == b'\n')
            .filter(|l| !l.is_empty())
            .collect()
    }
}

/// Runs a shell text that has to succeed; the error is its last line on stderr.
pub(super) fn shell(text: &str, variables: &[(&str, PathBuf)]) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", PATIENCE, "sh", "-ec", text])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    for (name, value) in variables {
        command.env(name, value);
    }
    // A server that stays in the background would hold a pipe open, and us with it.
    let said = tempfile(variables)?;
    let status = command
        .stderr(std::fs::File::create(&said)?)
        .status()
        .context("sh")?;
    if !status.success() {
        let text = String::from_utf8_lossy(&std::fs::read(&said)?).into_owned();
        let last = text.lines().map(str::trim).rfind(|l| !l.is_empty());
        bail!("{}", last.unwrap_or("failed without a word"));
    }
    Ok(())
}

/// Returns the file for a shell's stderr: `$W/said`.
fn tempfile(variables: &[(&str, PathBuf)]) -> Result<PathBuf> {
    let (_, dir) = variables
        .iter()
        .find(|(name, _)| *name == "W")
        .context("a kind has $W")?;
    Ok(dir.join("said"))
}
