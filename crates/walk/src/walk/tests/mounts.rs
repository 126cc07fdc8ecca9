//! Other file systems, pseudo file systems, and the same directory mounted twice.

use std::process::Command;

use super::*;
use crate::{ErrorKind, FileSystems};

const TREE: &str = "BC_WALK_TEST_TREE";

#[test]
fn pseudo_file_systems_are_entered_only_as_roots() {
    let options = |file_systems| WalkOptions {
        max_depth: Some(2),
        file_systems,
        ..WalkOptions::default()
    };
    // Other tests and programs may create files in / at the same time: one walk is enough.
    for opener in [Opener::new(), Opener::without_openat2()] {
        let cancel = Cancel::new();
        let list = |root: &[u8], file_systems, opener| {
            let options = options(file_systems);
            list_with(
                Given::Roots,
                &[root],
                &options,
                || 2.into(),
                (&cancel).into(),
                &at_once(),
                opener,
            )
            .unwrap()
        };
        let old_kernel = !opener.notices_mounts();
        let again = || {
            if old_kernel {
                Opener::without_openat2()
            } else {
                Opener::new()
            }
        };
        let cross = list(b"/", FileSystems::Cross, opener);
        assert!(cross.skipped().pseudo_file_system >= 1);
        assert_eq!(cross.skipped().other_file_system, 0);
        let in_proc = |listing: &Listing| {
            listing
                .ids()
                .filter(|&id| listing.path(id).starts_with(b"/proc/"))
                .count()
        };
        assert_eq!(in_proc(&cross), 0);
        let one = list(b"/", FileSystems::One, again());
        assert!(one.skipped().other_file_system >= 1);
        assert_eq!(one.skipped().pseudo_file_system, 0);
        assert_eq!(in_proc(&one), 0);
        let proc = list(b"/proc", FileSystems::Cross, again());
        assert!(in_proc(&proc) > 10);
    }
}

/// Runs one of the tests below again where it may mount things.
fn in_a_mount_namespace(tree: &Tree, script: &str, test: &str) {
    for flags in ["-m", "-rm"] {
        let may_mount = Command::new("unshare")
            .args([flags, "mount", "-t", "tmpfs", "none", "/tmp"])
            .output()
            .is_ok_and(|output| output.status.success());
        if !may_mount {
            continue;
        }
        let output = Command::new("unshare")
            .args([flags, "sh", "-ec"])
            .arg(format!("cd \"$0\"; {script}; cd /; exec \"$@\""))
            .arg(tree.0.path())
            .args(bc_testkit::own_words())
            .args(["--exact", &format!("walk::tests::mounts::{test}")])
            .arg("--nocapture")
            .env(TREE, tree.0.path())
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
        return;
    }
    #[allow(clippy::print_stderr)]
    {
        eprintln!("not tested: this user may not mount anything");
    }
}

/// Lists the tree that a test in a mount namespace was given; paths below it.
fn mounted(roots: &[&str], options: &WalkOptions) -> (Vec<String>, Listing) {
    let tree = std::env::var(TREE).unwrap();
    let roots: Vec<_> = roots
        .iter()
        .map(|root| format!("{tree}/{root}").into_bytes())
        .collect();
    let listing = in_every_way(Given::Roots, &roots, options);
    let text = |id| String::from_utf8(listing.path(id)).unwrap()[tree.len() + 1..].to_owned();
    (listing.ids().map(text).collect(), listing)
}

#[test]
fn a_directory_mounted_twice_is_visited_once() {
    if std::env::var_os(TREE).is_none() {
        let tree = Tree::with(&[
            "t/real/x",
            "t/real/sub/y",
            "t/a/",
            "t/z/",
            "t/up/",
            "t/other/",
        ]);
        let script = "mount --bind t/real/sub t/a; mount --bind t/real t/z; mount --bind t t/up; \
                      mount -t tmpfs none t/other; mkdir t/other/d t/other/e; echo > t/other/d/f; \
                      mount --bind t/other/d t/other/e";
        return in_a_mount_namespace(&tree, script, "a_directory_mounted_twice_is_visited_once");
    }
    let (names, listing) = mounted(&["t"], &WalkOptions::default());
    assert_eq!(names, ["t/other/d/f", "t/real/sub/y", "t/real/x"]);
    assert_eq!(listing.skipped().repeated, 4, "a, z, up, other/e");
    for id in listing.ids() {
        listing.open_dir(listing.dir(id)).unwrap();
    }
    let one = WalkOptions {
        file_systems: FileSystems::One,
        ..WalkOptions::default()
    };
    let (names, listing) = mounted(&["t"], &one);
    assert_eq!(names, ["t/real/sub/y", "t/real/x"]);
    assert_eq!(listing.skipped().other_file_system, 1);
    // Several roots that are the same or overlap by way of mounts.
    let (names, _) = mounted(&["t/a", "t/real", "t/z"], &WalkOptions::default());
    assert_eq!(names, ["t/a/y", "t/real/x"]);
    // The inner one first: what is mounted above it leaves it out.
    let (names, _) = mounted(&["t/real/sub", "t/z"], &WalkOptions::default());
    assert_eq!(names, ["t/real/sub/y", "t/z/x"]);
}

#[test]
fn a_mount_point_hides_what_is_below_it() {
    if std::env::var_os(TREE).is_none() {
        let tree = Tree::with(&["t/m/hidden-file", "t/x", "outside/file"]);
        let script = "mount --bind outside t/m";
        return in_a_mount_namespace(&tree, script, "a_mount_point_hides_what_is_below_it");
    }
    let (names, listing) = mounted(&["t"], &WalkOptions::default());
    assert_eq!(names, ["t/m/file", "t/x"]);
    assert_eq!(listing.skipped().repeated, 0);
    // By way of both: each file once, under the root that leads there.
    let (names, listing) = mounted(&["outside", "t"], &WalkOptions::default());
    assert_eq!(names, ["outside/file", "t/x"]);
    assert_eq!(listing.skipped().repeated, 1);
    assert!(
        listing
            .errors()
            .iter()
            .all(|error| error.kind() != ErrorKind::Changed)
    );
}
