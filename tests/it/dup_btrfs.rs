//! What is particular to Btrfs: subvolumes are no plain directories, and files without copy-on-write
//! share no blocks with others.

use bc_testkit::{LoopDisk, Outcome, TestTree, left_out, loop_disk, tool};

use crate::common::Bc;

/// A Btrfs of its own, and a tree to run in; says why not.
fn disk() -> Option<(LoopDisk, TestTree)> {
    let missing = ["btrfs", "chattr"]
        .into_iter()
        .find(|name| tool(name).is_none());
    if let Some(missing) = missing {
        left_out(&format!("not installed: {missing}"));
        return None;
    }
    match loop_disk("btrfs", 256 << 20) {
        Ok(disk) => Some((disk, TestTree::new())),
        Err(reason) => {
            left_out(&reason);
            None
        }
    }
}

fn sh(t: &TestTree, disk: &LoopDisk, script: &str) {
    let script = format!("cd {} && {script}", disk.path().display());
    t.run("sh").args(["-ec", &script]).go().code(0);
}

fn prune(t: &TestTree, disk: &LoopDisk, options: &str) -> Outcome {
    t.bc()
        .current_dir(disk.path())
        .args(["dup", "prune", "--keep=first", "--yes"])
        .arg(format!("--journal={}", t.scratch("j").display()))
        .args(options.split_whitespace())
        .go()
}

#[test]
fn subvolumes_are_no_targets() {
    for action in ["delete", "move:D"] {
        let Some((disk, t)) = disk() else { return };
        let make = "
            mkdir a b0; echo same > a/f; echo same > b0/f
            btrfs subvolume create b; echo same > b/f
            mkdir c; btrfs subvolume create c/in; echo same > c/in/f
            mkdir d d/in; echo same > d/in/f
            btrfs subvolume snapshot . s; sync";
        sh(&t, &disk, make);
        for options in ["--dry-run", ""] {
            let run = prune(
                &t,
                &disk,
                &format!("--dirs --action={action} {options} a b b0"),
            );
            let (text, errors) = (run.text(), run.error_text());
            assert_eq!(run.status.code(), Some(1), "{action} {options}: {run}");
            let why = match action {
                "delete" => "b: it is a subvolume",
                _ => "another file system",
            };
            assert!(errors.contains(why), "{action}: {run}");
            assert!(text.contains("b0/"), "{action}: {run}");
            assert!(disk.path().join("b/f").exists(), "{action}: {run}");
        }
        // One that holds a subvolume, and in a snapshot the empty directory that stands for one.
        prune(&t, &disk, &format!("--dirs --action={action} d c"));
        assert!(disk.path().join("c/in/f").exists(), "{action}");
        sh(
            &t,
            &disk,
            "mkdir -p e/b e/c/in e/d/in; cp -a s/a s/b0 e; cp s/d/in/f e/d/in/f",
        );
        prune(&t, &disk, &format!("--dirs --action={action} e s"));
        assert!(disk.path().join("s/b").exists(), "{action}");
        assert!(disk.path().join("s/c/in").exists(), "{action}");
    }
}

#[test]
fn files_without_copy_on_write_are_foreseen() {
    let Some((disk, t)) = disk() else { return };
    let make = "
        touch c; chattr +C c
        head -c 300000 /dev/urandom > a; for copy in b c; do cat a | cat > $copy; done; sync";
    sh(&t, &disk, make);
    for (options, shared) in [("--dry-run", "reflink b from a"), ("", "reflink b from a")] {
        let run = prune(&t, &disk, &format!("--action=reflink {options} a b c"));
        assert_eq!(run.status.code(), Some(1), "{options}: {run}");
        assert!(run.text().contains(shared), "{options}: {run}");
        assert!(!run.text().contains("reflink c"), "{options}: {run}");
        assert!(run.error_text().contains("reflink c"), "{options}: {run}");
        assert!(run.error_text().contains("chattr +C"), "{options}: {run}");
    }
    // Two of the kind share.
    sh(&t, &disk, "touch d; chattr +C d; cat a | cat > d; sync");
    prune(&t, &disk, "--action=reflink c d").code(0);
}
