//! Programs built for the tests' own target, which another machine starts by way of an emulator.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Returns the command that starts the running test program once more.
///
/// # Panics
/// If the system does not say which program that is.
pub fn own_program() -> Command {
    let mut words = own_words().into_iter();
    let mut command = Command::new(words.next().expect("a program is a word"));
    command.args(words);
    command
}

/// Returns the words that start the running test program once more, for a program that starts
/// another one.
///
/// # Panics
/// If the system does not say which program that is.
pub fn own_words() -> Vec<OsString> {
    words_of(env::current_exe().expect("a running program has a path"))
}

/// Returns the words that start a program of the tests' target: those of its [`runner`], then the
/// path.
pub fn words_of(program: impl Into<PathBuf>) -> Vec<OsString> {
    let mut words = runner(&own_target());
    words.push(program.into().into_os_string());
    words
}

/// Returns the words before programs of a target that start them here, an emulator and its options:
/// cargo's own variable for that target has them. None where programs start by themselves.
pub fn runner(target: &str) -> Vec<OsString> {
    let words = env::var(runner_variable(target)).unwrap_or_default();
    words.split_whitespace().map(OsString::from).collect()
}

fn runner_variable(target: &str) -> String {
    let target = target.to_uppercase().replace('-', "_");
    format!("CARGO_TARGET_{target}_RUNNER")
}

fn own_target() -> String {
    let library = match cfg!(target_env = "musl") {
        true => "musl",
        false => "gnu",
    };
    format!("{}-unknown-linux-{library}", env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{own_target, own_words, runner_variable, words_of};
    use crate::TestTree;

    /// Checks it in a process of its own: the environment is that of all tests.
    #[test]
    fn a_runner_comes_before_the_program() {
        const NAME: &str = "program::tests::a_runner_comes_before_the_program";
        if std::env::var_os("OF_A_RUNNER").is_some() {
            assert_eq!(words_of("/p"), ["/usr/bin/env", "A=b", "/p"]);
            return;
        }
        let words = own_words();
        let mut child = Command::new(&words[0]);
        child.args(&words[1..]).args(["--exact", NAME]);
        child.env("OF_A_RUNNER", "1");
        child.env(runner_variable(&own_target()), "/usr/bin/env A=b");
        let said = child.output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("1 passed"), "{said}");
    }

    #[test]
    fn the_same_program_is_started() {
        let tree = TestTree::new();
        let words = own_words();
        let list = tree.run(&words[0]).args(&words[1..]).arg("--list").go();
        list.code(0)
            .stdout_has("program::tests::the_same_program_is_started: test");
    }
}
