//! prune where the names of one file have times of their own, and where nothing can be written
//! though the mount does not say so.

use bc_testkit::{TestTree, left_out};

use crate::file_systems::{IMAGES, missing, script, two_versions};

/// A server ends with its mount, however the script ends.
const LEAVE: &str = "trap 'umount $M 2>/dev/null || true' EXIT;";

/// Ways to show `low` at `$M`, each with the tools it takes.
const VIEWS: [(&str, &[&str]); 3] = [
    ("bindfs low $M", &["bindfs"]),
    (
        "truncate -s 8M disk; mkntfs -F -Q -q disk >/dev/null 2>&1; ntfs-3g disk $M; cp -a low/. $M; umount $M; ntfs-3g disk $M",
        &["mkntfs", "ntfs-3g"],
    ),
    ("mount --bind low $M", &[]),
];

/// Every name of a copy goes in the first run: that the names before it went is no change of
/// somebody else.
#[test]
fn all_names_of_a_copy_are_dealt_with_at_once() {
    for (mount, tools) in VIEWS {
        if let Some(reason) = missing(tools) {
            left_out(&format!("{mount}: {reason}"));
            continue;
        }
        for action in ["delete", "symlink", "hardlink", "move:moved"] {
            let tree = TestTree::new();
            for (name, more) in [("a", None), ("b", Some("b2")), ("c", None)] {
                tree.write(format!("low/{name}"), "one content, several names");
                tree.mtime(format!("low/{name}"), 1_500_000_000, 0);
                if let Some(more) = more {
                    tree.hard_link(format!("low/{name}"), format!("low/{more}"));
                }
            }
            let text = format!(
                "{LEAVE}
                {{ {mount}; }} 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
                run() {{ $BC dup prune --yes --force --keep=name:a --journal=$1 --action={action} $M; }}
                run one >done; run two >more
                echo $(wc -l <done) done, $(wc -l <more) more"
            );
            let Some(outcome) = script(&tree, &text) else {
                continue;
            };
            let reported = format!("{mount}: {action}: {}", outcome.error_text());
            if reported.contains("numbers the names of one file differently") {
                left_out(&reported);
                continue;
            }
            assert_eq!(outcome.status.code(), Some(0), "{reported}");
            assert_eq!(outcome.text(), "3 done, 0 more\n", "{reported}");
        }
    }
}

/// A server without calls for writing refuses with `ENOSYS`, each file anew; the dry run knows.
#[test]
fn a_dry_run_on_an_image_behind_fuse_promises_nothing() {
    let makers: [(&str, &[&str]); 2] = [
        ("squashfuse one.img $M", &["mksquashfs", "squashfuse"]),
        (
            "genisoimage -quiet -R -o one.iso one; fuseiso one.iso $M",
            &["mksquashfs", "genisoimage", "fuseiso"],
        ),
    ];
    for (mount, tools) in makers {
        if let Some(reason) = missing(tools) {
            left_out(&format!("{mount}: {reason}"));
            continue;
        }
        for action in ["delete", "symlink", "hardlink", "reflink", "move:moved"] {
            let text = format!(
                "{LEAVE} {IMAGES}
                {{ {mount}; }} 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
                run() {{ $BC dup prune --yes --force --action={action} $1 $M 2>told; }}
                run --dry-run || echo $?; cat told; run --quiet || echo $?; cat told"
            );
            let Some(outcome) = script(&two_versions(), &text) else {
                continue;
            };
            let reported = format!("{mount}: {action}: {}", outcome.text());
            outcome.code(0);
            assert!(reported.contains("0 files would be changed"), "{reported}");
            assert!(!reported.contains("os error 38"), "{reported}");
            let lacks = ["is mounted read-only", "cannot share blocks"];
            assert!(
                lacks.iter().any(|lack| reported.contains(lack)),
                "{reported}"
            );
        }
    }
}
