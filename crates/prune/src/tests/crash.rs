//! The process is killed before every system call of every action that changes something. The tests
//! run themselves again as the process to be killed.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use super::super::undo;
use super::*;

const TREE: &str = "BC_DUP_TEST_TREE";
const ACTION: &str = "BC_DUP_TEST_ACTION";
const UNDO: &str = "BC_DUP_TEST_UNDO";
const POINT: &str = "BC_DUP_TEST_POINT";
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

#[test]
fn trash() {
    every_kill("trash");
}

/// The process that dies. Run without its variables, it checks that the kill
/// point is reached at all: a child that is killed at once must not succeed.
#[test]
fn child() {
    let Some(root) = std::env::var_os(TREE) else {
        let tree = quick_sample();
        let first = Point::first("open directory");
        let status = spawn(&tree, "hardlink", &first).wait().unwrap();
        assert_eq!(status.signal(), Some(9));
        return;
    };
    let root = PathBuf::from(root);
    let action = std::env::var_os(ACTION).unwrap();
    let action = parse_action(&root, action.as_encoded_bytes());
    let point: Point = std::env::var(POINT).unwrap().parse().unwrap();
    let groups = groups(&root);
    let journal_path = root.with_file_name("journal");
    if std::env::var_os(UNDO).is_some() {
        faults::arm(point, faults::Fault::Kill);
        let undone = undo::undo(&journal_path, RunMode::Execute, &Cancel::new(), &mut |_| {});
        undone.unwrap();
        return survived(&root, &faults::disarm().calls);
    }
    let mut journal = Journal::create(&journal_path, &action, &groups, &Cancel::new()).unwrap();
    if let Ok(workers) = std::env::var(WORKERS) {
        faults::arm_threads(point);
        let options = options(action).workers(workers.parse().unwrap());
        run_groups(groups, &options, Some(&mut journal));
        return survived(&root, &faults::disarm_threads());
    }
    faults::arm(point, faults::Fault::Kill);
    run_groups(groups, &options(action), Some(&mut journal));
    survived(&root, &faults::disarm().calls);
}

/// Writes down the calls of a run that did not come to its point, for the sweep.
pub(super) fn survived(root: &Path, calls: &[&str]) {
    fs::write(root.with_file_name("calls"), calls.join("\n")).unwrap();
}

/// Waits for a process that was to die at the sweep's point; whether it did.
#[track_caller]
pub(super) fn died(sweep: &mut Sweep, tree: &TestTree, mut child: Child) -> bool {
    let status = child.wait().unwrap();
    let died = status.signal() == Some(9);
    assert!(died || status.success(), "{status:?}");
    let calls = fs::read_to_string(tree.scratch("calls")).unwrap_or_default();
    sweep.ran(died, calls.lines());
    died
}

/// Runs that action in a process that dies at a system call.
#[track_caller]
pub(super) fn kill(tree: &TestTree, action: &str, point: &Point) {
    let status = spawn(tree, action, point).wait().unwrap();
    assert_eq!(status.signal(), Some(9), "{point}");
}

/// Points at which being killed differs.
pub(super) fn kills(many: usize) -> Sweep {
    Sweep::new(many).but(&faults::PURE)
}

/// Starts a process that dies at a system call.
pub(super) fn spawn(tree: &TestTree, action: &str, point: &Point) -> Child {
    let action = match action {
        "move" => format!("move:{}", tree.scratch("moved").display()),
        action => action.to_owned(),
    };
    command(tree, &action, point).spawn().unwrap()
}

/// Starts the undo of that action, to be killed at `point`.
pub(super) fn spawn_undo(tree: &TestTree, action: &str, point: &Point) -> Child {
    let mut command = command(tree, action, point);
    command.env(UNDO, "1").spawn().unwrap()
}

/// Starts it with so many threads, to be killed at a system call of any of them.
pub(super) fn spawn_crew(tree: &TestTree, action: &str, workers: usize, point: &Point) -> Child {
    let mut command = command(tree, action, point);
    command.env(WORKERS, workers.to_string()).spawn().unwrap()
}

fn command(tree: &TestTree, action: &str, point: &Point) -> Command {
    let mut command = bc_testkit::own_program();
    command
        .args(["--exact", "tests::crash::child", "--nocapture"])
        .env(TREE, tree.path())
        .env(ACTION, action)
        .env(POINT, point.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn every_kill(name: &str) {
    let mut sweep = kills(EVERY);
    while let Some(point) = sweep.next() {
        let tree = quick_sample();
        let action = match name {
            "move" => actions(&tree)[3].clone(),
            name => parse_action(tree.path(), name.as_bytes()),
        };
        let before = snapshot(tree.path());
        let died = died(&mut sweep, &tree, spawn(&tree, name, &point));
        let context = format!("{name} killed at {point}");
        check_invariant(&tree, &before, &action, &context);
        if !died {
            continue;
        }

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
    assert!(sweep.reached() >= 4, "{name}: {}", sweep.reached());
}
