//! Files that are seen through bind mounts, and files and directories under which something is
//! mounted: a dry run foresees what the kernel refuses, and what is written holds when the mount
//! is gone.

use bc_testkit::{Outcome, TestTree, is_root, left_out, tool};
use rustix::io::Errno;

use crate::common::BC;

/// Runs a script where mounts are its own; `None`, and said, where it cannot mount.
fn mounted(t: &TestTree, mounts: &str, script: &str) -> Option<Outcome> {
    for needed in ["unshare", "mount"] {
        if tool(needed).is_none() {
            left_out(&format!("{needed} is not installed"));
            return None;
        }
    }
    let script = format!("{{ {mounts}; }} || exit 77\n{script}\n");
    let mut run = t.run("unshare");
    if !is_root() {
        run = run.arg("-r");
    }
    let outcome = run.args(["-m", "sh", "-c", &script]).go();
    if outcome.status.code() == Some(77) {
        left_out(&format!("cannot mount: {}", outcome.error_text()));
        return None;
    }
    Some(outcome)
}

/// Each step and each reason of a dry run and of the run after it, which must be the same.
fn both(t: &TestTree, mounts: &str, line: &str, after: &str) -> Option<(String, String)> {
    let script = format!(
        "{BC} dup prune {line} --dry-run >../dry 2>../dry-said; echo $? >>../dry\n\
         {BC} dup prune {line} --journal=../j >../real 2>../real-said; echo $? >>../real\n{after}"
    );
    let outcome = mounted(t, mounts, &script)?;
    assert_eq!(outcome.status.code(), Some(0), "{}", outcome.error_text());
    let read = |name: &str| String::from_utf8(t.read(format!("../{name}"))).unwrap();
    let (dry, real) = (read("dry"), read("real"));
    let said = |name: &str| {
        let text = read(name);
        let skipped = text.lines().filter(|line| line.contains(": skipped: "));
        skipped.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(dry, real, "{line}: {}", read("real-said"));
    assert_eq!(said("dry-said"), said("real-said"), "{line}");
    Some((real, read("real-said")))
}

/// `real/sub/t` is seen as `view/sub/t` as well; equal files lie beside both.
fn tree() -> TestTree {
    let t = TestTree::new();
    for name in ["real/sub/t", "real/k", "other/k", "zz"] {
        t.write(name, "the same in all").mtime(name, 1_000_000, 0);
    }
    t.dir("view");
    t
}

const BIND: &str = "mount --bind real view";

#[test]
fn hard_links_do_not_lead_from_one_mount_to_another() {
    for (paths, linked) in [
        ("other view/sub", 0),
        ("view/sub other", 0),
        ("view", 1),
        ("other view", 0),
    ] {
        let t = tree();
        let line = format!("--action=hardlink --keep=first {paths}");
        let Some((steps, said)) = both(&t, BIND, &line, "") else {
            return;
        };
        assert_eq!(
            steps.matches("hardlink").count(),
            linked,
            "{paths}: {steps}"
        );
        let refused = said.contains(&format!("link: {}", Errno::XDEV));
        assert_eq!(refused, linked == 0, "{paths}: {said}");
    }
}

#[test]
fn nothing_is_done_to_what_is_a_mount_point() {
    // A file over a file, and one that is mounted over itself.
    for mounts in ["mount --bind zz real/k", "mount --bind real/k real/k"] {
        for action in [
            "hardlink",
            "symlink --yes",
            "delete --yes",
            "move:../moved --yes",
            "delete --yes --force",
        ] {
            let t = tree();
            t.write("zz", "the same in all").mtime("zz", 1_000_000, 0);
            let line = format!("--action={action} --keep=first other real/k");
            let Some((steps, said)) = both(&t, mounts, &line, "") else {
                return;
            };
            assert_eq!(steps, "1\n", "{mounts} {action}: {said}");
            assert!(said.contains("a mount point"), "{mounts} {action}: {said}");
            for name in ["real/k", "zz", "other/k"] {
                assert_eq!(t.read(name), b"the same in all", "{mounts} {action}");
            }
        }
    }
}

/// A kept file that is one by a mount alone takes no link, by whichever path it is reached.
#[test]
fn no_link_leads_to_a_mounted_file() {
    let mounts = "mount --bind zz other/k";
    for (action, reason) in [
        ("hardlink", &format!("link: {}", Errno::XDEV)[..]),
        ("symlink --yes", "seen through a bind mount"),
    ] {
        let t = tree();
        let line = format!("--action={action} --keep=first other real/k");
        let Some((steps, said)) = both(&t, mounts, &line, "") else {
            return;
        };
        assert_eq!(steps, "1\n", "{action}: {said}");
        assert!(said.contains(reason), "{action}: {said}");
    }
}

#[test]
fn symbolic_links_lead_to_the_kept_file_with_the_mount_and_without() {
    for (mounts, paths, done) in [
        // Both in the mount.
        (BIND, "view", 1),
        (BIND, "view/k view/sub", 1),
        // The kept file seen through one, and found at its own place.
        (BIND, "view/k other", 1),
        // From the mount no relative link leads out to where it leads from the place itself.
        (
            "mkdir -p v/w/x; mount --bind real v/w/x",
            "other v/w/x/sub",
            0,
        ),
        ("mount --bind real/sub view", "other view", 0),
    ] {
        let t = tree();
        let line = format!("--action=symlink --yes --keep=first {paths}");
        let look = "for f in real/sub/t real/k other/k; do cat $f >/dev/null || exit 1; done";
        let Some((steps, said)) = both(&t, mounts, &line, look) else {
            return;
        };
        assert_eq!(
            steps.matches("symlink ").count(),
            done,
            "{paths}: {steps}{said}"
        );
        if done == 0 {
            assert!(
                said.contains("seen through a bind mount"),
                "{paths}: {said}"
            );
        }
        // The mount is gone with its namespace.
        for name in ["real/sub/t", "real/k", "other/k"] {
            assert_eq!(t.read(name), b"the same in all", "{paths}: {said}");
        }
    }
}

/// Journals have the files' own places, so that undo needs no mount.
#[test]
fn undo_works_without_the_mount() {
    for action in ["symlink", "delete", "hardlink", "move:moved"] {
        for (mounts, paths) in [
            (BIND, "view"),
            ("mkdir all all/view; mount --bind real all/view", "all"),
        ] {
            let t = tree();
            let line = format!("--action={action} --yes --keep=first {paths}");
            let Some((steps, said)) = both(&t, mounts, &line, "") else {
                return;
            };
            assert_eq!(steps.lines().count(), 2, "{action}: {steps}{said}");
            let undo = |more: &str| {
                let out = t
                    .run(BC)
                    .args(["dup", "undo", "../j"])
                    .args(more.split_whitespace());
                out.go()
            };
            undo("--dry-run").code(0).stderr_has("1 would be restored");
            undo("").code(0).stderr_has("1 restored");
            for name in ["real/sub/t", "real/k"] {
                let stat = std::fs::symlink_metadata(t.join(name)).unwrap();
                assert!(stat.is_file(), "{action} {paths}: {name}");
                assert_eq!(t.read(name), b"the same in all", "{action} {paths}: {name}");
            }
        }
    }
}
