//! Runs a program for a test, in an environment that the user's settings cannot disturb, and checks
//! its output.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::{diff, privilege};

/// A command that is not started yet. Made by [`TestTree::run`](crate::TestTree::run).
#[derive(Debug)]
pub struct Run {
    command: Command,
    program: OsString,
    arg0: Option<OsString>,
    stdin: Vec<u8>,
    scratch: PathBuf,
    nobody: bool,
}

impl Run {
    pub(crate) fn new(program: &OsStr, dir: &Path, scratch: &Path) -> Run {
        let mut run = Run {
            command: Command::new(program),
            program: program.to_owned(),
            arg0: None,
            stdin: Vec::new(),
            scratch: scratch.to_path_buf(),
            nobody: false,
        };
        run.command.current_dir(dir);
        run.clean_environment();
        run
    }

    fn clean_environment(&mut self) {
        let home = self.scratch.join("home");
        self.command.env("LC_ALL", "C").env("HOME", &home);
        self.command.env("XDG_CONFIG_HOME", home.join("config"));
        for name in [
            "NO_COLOR",
            "CLICOLOR_FORCE",
            "CLICOLOR",
            "RUST_BACKTRACE",
            "RUST_LOG",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "XDG_CACHE_HOME",
            "TZ",
            "COLUMNS",
            "POSIXLY_CORRECT",
            "SOURCE_DATE_EPOCH",
            "GLIBC_TUNABLES",
        ] {
            self.command.env_remove(name);
        }
        for (name, _) in env::vars_os().filter(|(n, _)| n.as_encoded_bytes().starts_with(b"BC_")) {
            self.command.env_remove(name);
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Run {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Run {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Run {
        self.command.env(name, value);
        self
    }

    /// Sets the program's standard input; empty if not called.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Run {
        self.stdin = bytes.into();
        self
    }

    /// Runs in `dir` instead of the tree.
    #[must_use]
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Run {
        self.command.current_dir(dir);
        self
    }

    /// Calls the program by another name (argv\[0\]).
    #[must_use]
    pub fn arg0(mut self, name: impl AsRef<OsStr>) -> Run {
        self.arg0 = Some(name.as_ref().to_owned());
        self
    }

    /// Runs as an ordinary user even if this process is root. The program is copied beside
    /// the tree first: build directories are often closed to others.
    #[must_use]
    pub fn as_nobody(mut self) -> Run {
        self.nobody = true;
        self
    }

    /// Returns the finished command, for tests that need to hold the child themselves (signals).
    /// Standard streams are left as they are.
    #[track_caller]
    pub fn command(mut self) -> Command {
        use std::os::unix::process::CommandExt;
        if self.nobody && privilege::is_root() {
            self.use_reachable_copy();
            privilege::as_nobody(&mut self.command);
        }
        if let Some(name) = &self.arg0 {
            self.command.arg0(name);
        }
        self.command
    }

    /// Runs to the end and collects the output.
    ///
    /// # Panics
    /// If the program cannot be started.
    #[track_caller]
    pub fn go(mut self) -> Outcome {
        let stdin = std::mem::take(&mut self.stdin);
        let mut command = self.command();
        let shown = format!("{command:?}");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{shown}: {e}"));
        let mut pipe = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A program that does not read its input to the end is not an error here.
                let _ = pipe.take().map(|mut p| p.write_all(&stdin));
            });
            child.wait_with_output()
        });
        let output = output.unwrap_or_else(|e| panic!("{shown}: {e}"));
        Outcome {
            status: output.status,
            stdout: output.stdout,
            stderr: output.stderr,
            shown,
        }
    }

    #[track_caller]
    fn use_reachable_copy(&mut self) {
        let program = Path::new(&self.program);
        if program.components().count() == 1 {
            return; // found through PATH, so meant for everybody
        }
        // Whoever may enter all directories may run it where it is.
        let is_open = |path: &Path| {
            let meta = fs::metadata(path);
            meta.is_ok_and(|meta| meta.permissions().mode() & 0o005 == 0o005)
        };
        if program.is_absolute() && program.ancestors().all(is_open) {
            return;
        }
        let name = program.file_name().unwrap_or(OsStr::new("program"));
        let dir = self.scratch.join("bin");
        let copy = dir.join(name);
        if !copy.exists() {
            let made = fs::create_dir_all(&dir)
                .and_then(|()| copy_program(program, &copy))
                .and_then(|()| fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)))
                .and_then(|()| fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)));
            made.unwrap_or_else(|e| panic!("copy {}: {e}", program.display()));
        }
        let mut command = Command::new(&copy);
        command.args(self.command.get_args());
        if let Some(dir) = self.command.get_current_dir() {
            command.current_dir(dir);
        }
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.command = command;
    }
}

/// Copies a program that is to be run, in a process of its own: were the copy open for writing in
/// this one, another test that forks at that moment would hold it open, and running it would fail
/// with ETXTBSY.
///
/// # Errors
///
/// `cp` cannot be started, or failed.
pub fn copy_program(from: &Path, to: &Path) -> std::io::Result<()> {
    let status = Command::new("cp").arg("--").args([from, to]).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("cp: {status}"))),
    }
}

/// Result of a finished program. The checks panic with all output and return `self`, so that they
/// can be chained.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Exit status.
    pub status: ExitStatus,
    /// All of standard output.
    pub stdout: Vec<u8>,
    /// All of standard error.
    pub stderr: Vec<u8>,
    shown: String,
}

impl Outcome {
    /// Checks that it ended by itself with this code.
    #[track_caller]
    pub fn code(&self, expected: i32) -> &Self {
        let got = self.status.code();
        assert!(
            got == Some(expected),
            "expected exit code {expected}, got {}{self}",
            self.status
        );
        self
    }

    /// Checks that it was ended by this signal.
    #[track_caller]
    pub fn signal(&self, expected: i32) -> &Self {
        let got = self.status.signal();
        assert!(
            got == Some(expected),
            "expected signal {expected}, got {}{self}",
            self.status
        );
        self
    }

    /// Checks that standard output is exactly this.
    #[track_caller]
    pub fn stdout_is(&self, expected: impl AsRef<[u8]>) -> &Self {
        let diff = diff::lines(expected.as_ref(), &self.stdout);
        assert!(diff.is_empty(), "unexpected stdout\n{diff}{self}");
        self
    }

    /// Checks that standard error is exactly this.
    #[track_caller]
    pub fn stderr_is(&self, expected: impl AsRef<[u8]>) -> &Self {
        let diff = diff::lines(expected.as_ref(), &self.stderr);
        assert!(diff.is_empty(), "unexpected stderr\n{diff}{self}");
        self
    }

    /// Checks that standard output contains this.
    #[track_caller]
    pub fn stdout_has(&self, part: impl AsRef<[u8]>) -> &Self {
        let part = part.as_ref();
        assert!(
            has(&self.stdout, part),
            "stdout lacks {:?}{self}",
            part.escape_ascii().to_string()
        );
        self
    }

    /// Checks that standard error contains this.
    #[track_caller]
    pub fn stderr_has(&self, part: impl AsRef<[u8]>) -> &Self {
        let part = part.as_ref();
        assert!(
            has(&self.stderr, part),
            "stderr lacks {:?}{self}",
            part.escape_ascii().to_string()
        );
        self
    }

    /// Returns standard output as lines without their newline.
    pub fn lines(&self) -> Vec<&[u8]> {
        lines(&self.stdout)
    }

    /// Returns standard error as lines without their newline.
    pub fn error_lines(&self) -> Vec<&[u8]> {
        lines(&self.stderr)
    }

    /// Returns standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard error as text.
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        Vec::new()
    } else {
        body.split(|&b| b == b'\n').collect()
    }
}

fn has(all: &[u8], part: &[u8]) -> bool {
    part.is_empty() || all.windows(part.len()).any(|window| window == part)
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "\ncommand: {}\nstatus: {}", self.shown, self.status)?;
        writeln!(f, "stdout:\n{}", String::from_utf8_lossy(&self.stdout))?;
        write!(f, "stderr:\n{}", String::from_utf8_lossy(&self.stderr))
    }
}

#[cfg(test)]
mod tests {
    use crate::{TestTree, is_root};
    use std::panic::catch_unwind;

    #[test]
    fn feeds_and_collects_more_than_a_pipe_holds() {
        let tree = TestTree::new();
        let big = vec![b'x'; 1 << 20];
        let outcome = tree.run("cat").stdin(big.clone()).go();
        outcome.code(0).stdout_is(&big).stderr_is("");
        tree.run("true").stdin(big).go().code(0);
    }

    #[test]
    fn environment_directory_and_name() {
        let tree = TestTree::new();
        let script = "pwd; echo $LC_ALL $X; echo bad >&2; echo ${0##*/}; exit 3";
        let outcome = tree
            .run("sh")
            .args(["-c", script])
            .env("X", "y")
            .arg0("shell")
            .go();
        outcome
            .code(3)
            .stdout_has("/tree\n")
            .stdout_has("C y\n")
            .stderr_is("bad\n");
        assert_eq!(outcome.lines().last(), Some(&&b"shell"[..]));
        assert_eq!(outcome.error_lines(), [b"bad"]);
    }

    #[test]
    fn checks_fail_when_they_should() {
        let outcome = TestTree::new().run("echo").arg("hello").go();
        for check in [
            catch_unwind(|| outcome.code(1).status),
            catch_unwind(|| outcome.stdout_is("hello").status),
            catch_unwind(|| outcome.stdout_has("help").status),
            catch_unwind(|| outcome.stderr_has("h").status),
            catch_unwind(|| outcome.signal(9).status),
        ] {
            let panic = check.unwrap_err();
            let message = panic.downcast_ref::<String>().unwrap();
            assert!(message.contains("\"echo\" \"hello\""), "{message}");
        }
    }

    #[test]
    fn as_nobody_cannot_read_what_is_closed() {
        let tree = TestTree::new();
        tree.write("closed", "secret").mode("closed", 0);
        // An absolute program goes through the reachable copy.
        let cat = crate::tool("cat").unwrap();
        let outcome = tree.run(&cat).arg("closed").as_nobody().go();
        outcome.code(1).stdout_is("").stderr_has("ermission denied");
        if is_root() {
            tree.run(&cat)
                .arg("closed")
                .go()
                .code(0)
                .stdout_is("secret");
        }
    }
}
