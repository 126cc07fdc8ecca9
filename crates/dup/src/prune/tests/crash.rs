//! The process is killed before every system call of every action. The tests
//! run themselves again as the process to be killed.

use super::super::undo;
use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

const TREE: &str = "BC_DUP_TEST_TREE";
const ACTION: &str = "BC_DUP_TEST_ACTION";
const UNDO: &str = "BC_DUP_TEST_UNDO";
const KILL_AT: &str = "BC_DUP_TEST_KILL_AT";
const WORKERS: &str = "BC_DUP_TEST_WORKERS";

#[test]
fn hardlink() {
    every_kill("hardlink");
}

#[test]
fn symlink() {
    every_kill("symlink");
}

#[test]
fn delete() {
    every_kill("delete");
}

#[test]
fn move_() {
    every_kill("move");
}

/// The process that dies. Run without its variables, it checks that the kill
/// point is reached at all: a child that is killed at once must not succeed.
#[test]
fn child() {
    let Some(root) = std::env::var_os(TREE) else {
        let tree = quick_sample();
        let status = spawn(&tree, "hardlink", 0).wait().unwrap();
        assert_eq!(status.signal(), Some(9));
        return;
    };
    let root = PathBuf::from(root);
    let action = std::env::var_os(ACTION).unwrap();
    let action = Action::parse(action.as_encoded_bytes()).unwrap();
    let kill_at = std::env::var(KILL_AT).unwrap().parse().unwrap();
    let groups = groups(&root);
    let journal_path = root.with_file_name("journal");
    if std::env::var_os(UNDO).is_some() {
        fail::arm(kill_at, fail::Fault::Kill);
        let undone = undo::undo(&journal_path, RunMode::Execute, &Cancel::new(), &mut |_| {});
        undone.unwrap();
        fail::disarm();
        return;
    }
    let mut journal = Journal::create(&journal_path, &action, &groups, &Cancel::new()).unwrap();
    if let Ok(workers) = std::env::var(WORKERS) {
        fail::kill_at(kill_at);
        let options = options(action).workers(workers.parse().unwrap());
        run_groups(groups, &options, Some(&mut journal));
        return;
    }
    fail::arm(kill_at, fail::Fault::Kill);
    run_groups(groups, &options(action), Some(&mut journal));
    fail::disarm();
}

/// Starts a process that dies at its `kill_at`th system call.
pub(super) fn spawn(tree: &TestTree, action: &str, kill_at: usize) -> std::process::Child {
    let action = match action {
        "move" => format!("move:{}", tree.scratch("moved").display()),
        action => action.to_owned(),
    };
    command(tree, &action, kill_at).spawn().unwrap()
}

/// The same of undoing that action.
pub(super) fn spawn_undo(tree: &TestTree, action: &str, kill_at: usize) -> std::process::Child {
    command(tree, action, kill_at)
        .env(UNDO, "1")
        .spawn()
        .unwrap()
}

/// The same of so many threads, at the `kill_at`th system call of all of them.
pub(super) fn spawn_crew(
    tree: &TestTree,
    action: &str,
    workers: usize,
    kill_at: usize,
) -> std::process::Child {
    command(tree, action, kill_at)
        .env(WORKERS, workers.to_string())
        .spawn()
        .unwrap()
}

fn command(tree: &TestTree, action: &str, kill_at: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "prune::tests::crash::child", "--nocapture"])
        .env(TREE, tree.path())
        .env(ACTION, action)
        .env(KILL_AT, kill_at.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn every_kill(name: &str) {
    for kill_at in 0.. {
        let tree = quick_sample();
        let action = match name {
            "move" => actions(&tree)[3].clone(),
            name => Action::parse(name.as_bytes()).unwrap(),
        };
        let before = snapshot(tree.path());
        let status = spawn(&tree, name, kill_at).wait().unwrap();
        let context = format!("{name} killed at {kill_at}");
        check_invariant(&tree, &before, &action, &context);
        if status.success() {
            // Past the last call.
            assert!(kill_at > 20, "{context}");
            break;
        }
        assert_eq!(status.signal(), Some(9), "{context}");

        // The next run finishes the work and clears up.
        let (summary, lines) = run(&tree, &options(action.clone()));
        let context = format!("{context}, then {lines:?}");
        assert!(summary.is_clean(), "{context}");
        check_invariant(&tree, &before, &action, &context);
        let after = snapshot(tree.path());
        for name in after.keys() {
            assert!(before.contains_key(name), "{context}: {name:?} stayed");
        }
        let (third, lines) = run(&tree, &options(action.clone()));
        assert_eq!(third.changed, 0, "{context}, then {lines:?}");

        // And undo finds a journal that it can use.
        let undone = super::super::undo(
            tree.scratch("journal"),
            RunMode::Execute,
            &Cancel::new(),
            &mut |_| {},
        );
        assert!(undone.is_ok(), "{context}: {undone:?}");
        check_invariant(&tree, &before, &action, &context);
    }
}
