//! A dry run of undo says what undo then does, and what is missing is named.

use std::os::unix::fs::PermissionsExt;

use bc_testkit::{Outcome, TestTree, is_root};

use crate::common::Bc;

/// As an ordinary user, whom permissions hold.
fn undo(t: &TestTree, options: &str) -> Outcome {
    let line = format!("dup undo {options} ../j");
    t.bc_line(&line).as_nobody().go()
}

/// What becomes of each name, without the reasons: these may name other operations.
fn reported(t: &TestTree, options: &str) -> (Vec<String>, Option<i32>) {
    let run = undo(t, options);
    let text = run.text().replace("restore ", "restored ");
    let restored = text.lines().map(str::to_owned);
    let errors = run.error_text();
    let failed = errors
        .lines()
        .filter_map(|line| Some(line.split_once(": not restored")?.0));
    let all = restored.chain(failed.map(str::to_owned)).collect();
    (all, run.status.code())
}

/// Three files of which two were pruned.
fn pruned(action: &str) -> TestTree {
    let t = TestTree::new();
    t.write("in/a", "same")
        .write("in/b", "same")
        .write("in/sub/c", "same");
    for dir in [t.path().parent().unwrap(), t.path()] {
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o777)).unwrap();
    }
    if is_root() {
        t.run("chown")
            .args(["-R", "65534:65534", "in"])
            .go()
            .code(0);
    }
    t.bc_line(&format!(
        "dup prune --action={action} --keep=first --yes --quiet --journal=../j in"
    ))
    .as_nobody()
    .go()
    .code(0);
    t
}

#[test]
fn what_undo_refuses_its_dry_run_refuses() {
    type State<'a> = (&'a str, &'a dyn Fn(&TestTree));
    let states: [State<'_>; 6] = [
        ("nothing", &|_| {}),
        ("the kept file is edited", &|t| {
            std::fs::write(t.join("in/a"), "else").unwrap();
        }),
        ("the kept file is gone", &|t| {
            t.remove("in/a");
        }),
        ("a directory is closed", &|t| {
            t.mode("in/sub", 0o555);
        }),
        ("a directory is gone", &|t| {
            std::fs::remove_dir_all(t.join("in/sub")).unwrap();
        }),
        ("what was moved is gone", &|t| {
            let _ = std::fs::remove_dir_all(t.join("D"));
        }),
    ];
    for action in ["hardlink", "symlink", "delete", "move:D"] {
        for (state, change) in states {
            let t = pruned(action);
            change(&t);
            let [dry, done] = ["--dry-run", ""].map(|options| reported(&t, options));
            assert_eq!(dry, done, "{action}, {state}");
            let all = dry.0.iter().all(|line| line.starts_with("restored "));
            assert_eq!(all, done.1 == Some(0), "{action}, {state}: {done:?}");
            assert_eq!(done.0.len(), 2, "{action}, {state}");
            if t.exists("in/sub") {
                t.mode("in/sub", 0o755);
            }
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    for action in ["delete", "move:D"] {
        let t = pruned(action);
        // Emptied by the run, and then cleared away.
        std::fs::remove_dir_all(t.join("in/sub")).unwrap();
        let sub = t.path().canonicalize().unwrap().join("in/sub");
        let sub = sub.display();
        undo(&t, "")
            .code(1)
            .stdout_has("in/b (")
            .stderr_has(format!("{sub}/c: not restored: {sub} is no longer there"));
        t.dir("in/sub").mode("in/sub", 0o777);
        undo(&t, "").code(0).stdout_has("in/sub/c (");
        assert_eq!(t.read("in/sub/c"), b"same");
    }
    let t = pruned("move:D");
    t.remove("D/in/b");
    let root = t.path().canonicalize().unwrap();
    let (was, is) = (root.join("in/b"), root.join("D/in/b"));
    undo(&t, "").code(1).stderr_has(format!(
        "{}: not restored: {} is no longer there",
        was.display(),
        is.display()
    ));
}

/// The kept file of one run is what the next one removed: undo gives it back first, and a dry run
/// knows that.
#[test]
fn runs_that_follow_one_another() {
    for (first, second) in [
        ("delete", "delete"),
        ("delete", "move:E"),
        ("move:D", "delete"),
        ("move:D", "move:E"),
    ] {
        let t = TestTree::new();
        t.write("in/a", "same")
            .write("in/b", "same")
            .write("z", "same");
        for (action, paths) in [(first, "in"), (second, "--reference=z z in")] {
            t.bc_line(&format!(
                "dup prune --action={action} --keep=first --yes --quiet --journal=../j {paths}"
            ))
            .go()
            .code(0);
        }
        assert!(!t.exists("in/a") && !t.exists("in/b"), "{first} {second}");
        let [dry, done] = ["--dry-run", ""].map(|options| {
            let run = t.bc_line(&format!("dup undo {options} ../j")).go();
            run.code(0).text().replace("restore ", "restored ")
        });
        assert_eq!(dry, done, "{first} {second}");
        assert!(t.exists("in/a") && t.exists("in/b"), "{first} {second}");
    }
    // What the next run took out of the directory that the first had moved to.
    let t = TestTree::new();
    t.write("in/a", "same")
        .write("in/b", "same")
        .write("z", "same");
    for line in ["--action=move:D in", "--action=delete --reference=z z in D"] {
        t.bc_line(&format!(
            "dup prune {line} --keep=first --yes --quiet --journal=../j"
        ))
        .go()
        .code(0);
    }
    t.bc_line("dup undo --dry-run ../j")
        .go()
        .code(0)
        .stderr_has("3 would be restored");
    t.bc_line("dup undo ../j")
        .go()
        .code(0)
        .stderr_has("3 restored");
    assert_eq!(t.read("in/b"), b"same");
}

/// What comes back incomplete is said before: another owner, attributes that only root may give, names
/// that are elsewhere, what somebody changed of what was moved.
#[test]
fn what_comes_back_incomplete_is_foreseen() {
    type State<'a> = (&'a str, &'a str, &'a dyn Fn(&TestTree));
    let prepare: [State<'_>; 5] = [
        ("delete", "another owner", &|t| chown(t, "12:34")),
        ("symlink", "another owner", &|t| chown(t, "12:34")),
        ("hardlink", "another owner", &|t| chown(t, "12:34")),
        ("move:D", "names elsewhere", &|t| {
            t.hard_link("in/b", "out");
        }),
        ("delete", "names elsewhere", &|t| {
            t.hard_link("in/b", "out");
        }),
    ];
    for dirs in ["", "--dirs "] {
        for (action, what, change) in prepare {
            if !is_root() || !dirs.is_empty() && action.contains("link") {
                continue;
            }
            let t = TestTree::new();
            for name in ["in/b", "in/sub/c"] {
                t.write(name, "same");
            }
            t.write("keep/b", "same").write("keep/sub/c", "same");
            t.symlink("b", "in/l").symlink("b", "keep/l");
            change(&t);
            let line = format!(
                "dup prune {dirs}--action={action} --keep=path:keep --ignore-metadata --yes \
                 --quiet --journal=../j keep in"
            );
            t.bc_line(&line).go().code(0);
            // Nobody finds the name that stays.
            if t.exists("out") {
                t.remove("out");
            }
            for (path, mode) in [("..", 0o777), (".", 0o777)] {
                t.mode(path, mode);
            }
            t.run("chown")
                .args(["-R", "65534:65534", ".", "../j"])
                .go()
                .code(0);
            let [dry, done] = ["--dry-run", ""].map(|options| {
                let run = undo(&t, options);
                let said = run.error_text().replace("would be restored", "restored");
                let lines = said.lines().filter(|line| !line.contains("kept"));
                let mut lines: Vec<String> = lines.map(str::to_owned).collect();
                lines.sort();
                let names = run.text().replace("restore ", "restored ");
                (run.status.code(), names, lines)
            });
            assert_eq!(dry, done, "{dirs}{action}, {what}");
            let whole = action == "move:D";
            assert_eq!(
                done.0,
                Some(i32::from(!whole)),
                "{dirs}{action}, {what}: {done:?}"
            );
        }
    }
}

fn chown(t: &TestTree, owner: &str) {
    t.run("chown").args(["-hR", owner, "in"]).go().code(0);
}
