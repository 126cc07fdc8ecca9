//! The process is killed before every system call: while a directory goes, and while it comes back.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use super::*;

const TREE: &str = "BC_DUP_TREES_TEST_TREE";
const ACTION: &str = "BC_DUP_TREES_TEST_ACTION";
const UNDO: &str = "BC_DUP_TREES_TEST_UNDO";
const KILL_AT: &str = "BC_DUP_TREES_TEST_KILL_AT";
const NO_RENAME: &str = "BC_DUP_TREES_TEST_NO_RENAME";

#[test]
fn killed_while_deleting() {
    every_kill("delete", None);
}

#[test]
fn killed_while_renaming() {
    every_kill("move", None);
}

#[test]
fn killed_while_copying() {
    every_kill("move", Some(renames("move")));
}

/// The first call that renames, which is that of the directory.
fn renames(name: &str) -> usize {
    let tree = copies();
    let calls = calls_of_trees(&tree, &action(&tree, name));
    calls.iter().position(|op| *op == "rename").unwrap()
}

/// The process that dies.
#[test]
fn child() {
    let Some(root) = std::env::var_os(TREE).map(PathBuf::from) else {
        return;
    };
    let action = std::env::var_os(ACTION).unwrap();
    let action = Action::parse(action.as_encoded_bytes()).unwrap();
    let kill_at: usize = std::env::var(KILL_AT).unwrap().parse().unwrap();
    let journal_path = root.with_file_name("journal");
    if std::env::var_os(UNDO).is_some() {
        fail::arm(kill_at, fail::Fault::Kill);
        crate::prune::undo(&journal_path, RunMode::Execute, &Cancel::new(), &mut |_| {}).unwrap();
        fail::disarm();
        return;
    }
    let groups = vec![group(&root, &["a", "b"])];
    let dirs = groups[0].copies.iter().map(|copy| copy.dir.clone());
    let dirs = FileGroup {
        files: dirs.collect(),
    };
    let mut journal = Journal::create(&journal_path, &action, &[dirs], &Cancel::new()).unwrap();
    let mut armed = vec![(kill_at, fail::Fault::Kill)];
    if let Ok(at) = std::env::var(NO_RENAME) {
        let at = at.parse().unwrap();
        armed.retain(|(kill_at, _)| *kill_at != at);
        armed.push((at, fail::Fault::Errno(Errno::XDEV)));
    }
    fail::arm_all(armed);
    run_trees(groups, &options(action), Some(&mut journal));
    fail::disarm();
}

fn spawn(tree: &TestTree, name: &str, kill_at: usize, more: &[(&str, String)]) -> Child {
    let action = match name {
        "move" => format!("move:{}", tree.scratch("moved").display()),
        name => name.to_owned(),
    };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "prune::tests::trees::kill::child", "--nocapture"])
        .env(TREE, tree.path())
        .env(ACTION, action)
        .env(KILL_AT, kill_at.to_string())
        .envs(more.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

fn every_kill(name: &str, no_rename: Option<usize>) {
    let no_rename: Vec<(&str, String)> = no_rename
        .iter()
        .map(|at| (NO_RENAME, at.to_string()))
        .collect();
    for kill_at in 0.. {
        let tree = copies();
        let before = all_of(tree.path(), false);
        let status = spawn(&tree, name, kill_at, &no_rename).wait().unwrap();
        let context = format!("{name} killed at {kill_at}");
        check_kept(&tree, &before, &context);
        let undone = undo_all(&tree);
        assert_eq!(undone.failed, 0, "{context}: {undone:?}");
        check_back(&tree, &before, &context);
        assert_eq!(temporaries(tree.path()), Vec::<PathBuf>::new(), "{context}");
        let is_over = status.success();
        if is_over && no_rename.iter().all(|(_, at)| *at != kill_at.to_string()) {
            assert!(kill_at > 20, "{context}");
            break;
        }
    }
}

#[test]
fn killed_while_undoing() {
    for name in ["delete", "move"] {
        for kill_at in 0.. {
            let tree = copies();
            let before = all_of(tree.path(), false);
            let none = spawn(&tree, name, usize::MAX, &[]).wait().unwrap();
            assert!(none.success());
            let undo = (UNDO, "1".to_owned());
            let status = spawn(&tree, name, kill_at, &[undo]).wait().unwrap();
            let context = format!("undo of {name} killed at {kill_at}");
            check_kept(&tree, &before, &context);
            let undone = undo_all(&tree);
            assert_eq!(undone.failed, 0, "{context}: {undone:?}");
            check_back(&tree, &before, &context);
            if status.success() {
                assert!(kill_at > 5, "{context}");
                break;
            }
            assert_eq!(status.signal(), Some(9), "{context}");
        }
    }
}
