//! What goes when it is closed: names under which file systems keep what was deleted while it is open,
//! and files without a link. Neither is kept for another file, or counts as another copy.

use std::fs::File;

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::dup_reference::where_it_may_mount;

/// Names that sort before all others.
const NAMES: [&str; 5] = [
    ".fuse_hidden0000002a00000001",
    ".nfs000000000001869f00000001",
    ".__afs0B0C",
    ".__smb0B0C",
    ".bc-copy.0123456789abcdef.part",
];

const ACTIONS: [&str; 5] = ["delete", "hardlink", "symlink", "reflink", "move:../D"];

#[test]
fn nothing_goes_for_a_name_that_goes() {
    for name in NAMES {
        let hidden = format!("in/{name}");
        for action in ACTIONS {
            for options in ["in", "--keep=first in", "--keep=name:.* in"] {
                let t = TestTree::new();
                t.write(&hidden, "same").write("in/report.doc", "same");
                let line = format!("dup prune --action={action} --yes --journal=../j {options}");
                let out = t.bc_line(&line).go();
                let context = format!("{line}: {out}");
                assert_eq!(out.status.code(), Some(0), "{context}");
                assert_eq!(out.text(), "", "{context}");
                assert!(
                    t.join("in/report.doc")
                        .symlink_metadata()
                        .unwrap()
                        .is_file()
                );
                assert!(t.exists(&hidden), "{context}");
            }
        }
        // Among others it is neither kept nor taken.
        let t = TestTree::new();
        t.write(&hidden, "same")
            .write("in/report.doc", "same")
            .write("in/z", "same");
        t.bc_line("dup prune --action=delete --yes --journal=../j in")
            .go()
            .code(0)
            .stdout_has("delete in/z (kept: in/report.doc)")
            .stderr_has("1 skipped: temporary");
        assert!(t.exists(&hidden) && t.exists("in/report.doc") && !t.exists("in/z"));
    }
}

#[test]
fn nothing_goes_for_such_a_name_of_a_reference_or_a_report() {
    for name in NAMES.into_iter().chain([".bc-dup.4194305.7.0.part"]) {
        let t = TestTree::new();
        t.write(format!("ref/{name}"), "same")
            .write("in/report.doc", "same");
        t.bc_line("dup prune --action=delete --yes --reference=ref --journal=../j in")
            .go()
            .code(0);
        assert!(t.exists("in/report.doc"), "{name}");
        let report = t.bc_line("dup scan --format=json ref in").go();
        t.write("../report.json", report.text());
        t.bc_line(
            "dup prune --action=delete --yes --keep=first --from=../report.json --journal=../j",
        )
        .go();
        assert!(t.exists("in/report.doc"), "{name}");
        // Shown, but not first.
        if !name.starts_with(".bc-dup.") {
            let shown = t.bc_line("dup scan ref in").go().code(0).text();
            assert_eq!(shown.lines().next(), Some("in/report.doc"), "{name}");
        }
    }
}

#[test]
fn no_directory_goes_for_one_with_such_a_file() {
    for name in NAMES {
        let t = TestTree::new();
        for dir in ["a", "b"] {
            t.write(format!("in/{dir}/{name}"), "same")
                .write(format!("in/{dir}/two"), "other");
        }
        for action in ["delete", "move:../D"] {
            let line =
                format!("dup prune --dirs --action={action} --keep=first --yes --journal=../j in");
            t.bc_line(&line).go();
            assert!(t.exists(format!("in/a/{name}")) && t.exists(format!("in/b/{name}")));
        }
    }
}

#[test]
fn such_a_name_is_no_other_copy() {
    for name in NAMES {
        let t = TestTree::new();
        t.write(format!("archive/{name}"), "a photo")
            .write("card/a.jpg", "a photo");
        let missing = |line: &str| {
            t.bc_line(line).go().code(1).stdout_is("card/a.jpg\n");
        };
        missing("dup unique card --reference=archive");
        t.bc_line("integrity manifest -o ../m --algorithm=blake3 archive")
            .go()
            .code(0);
        missing("dup unique card --reference=../m");
        let list = t
            .bc_line("hash --algorithm=sha256 archive")
            .go()
            .code(0)
            .text();
        t.write("../list", list);
        missing("dup unique card --reference=../list");
        // Without references another file of the trees would do.
        let both = t.bc_line("dup unique card archive").go().code(1).text();
        assert!(both.contains("card/a.jpg"), "{name}: {both}");
        // A second name that stays does.
        t.hard_link(format!("archive/{name}"), "archive/kept.jpg");
        t.bc_line("dup unique card --reference=archive")
            .go()
            .code(0);
    }
}

#[test]
fn a_file_without_links_is_no_other_copy() {
    let t = TestTree::new();
    t.write("card/a.jpg", "a photo")
        .write("gone/a.jpg", "a photo");
    let open = File::open(t.join("gone/a.jpg")).unwrap();
    t.remove("gone/a.jpg");
    let line = format!(
        "dup unique card --follow-symlinks --reference=/proc/{}/fd",
        std::process::id()
    );
    t.bc_line(&line).go().code(1).stdout_has("card/a.jpg\n");
    drop(open);
}

/// The source of a bind mount was replaced: what the mount shows has no name.
#[test]
fn what_only_a_mount_shows_is_not_kept() {
    for action in ACTIONS {
        let t = TestTree::new();
        t.write("m/a", "")
            .write("from", "same")
            .write("in/b", "same");
        let script = format!(
            "mount --bind from m/a; rm from
             code=0
             $BC dup prune --action={action} --keep=first --yes --journal=../j m in || code=$?
             cat in/b; test -f in/b; test ! -L in/b
             $BC dup unique --reference=m in && exit 9
             exit $code"
        );
        let Some(out) = where_it_may_mount(&t, &script) else {
            return;
        };
        assert_eq!(out.status.code(), Some(1), "{action}: {out}");
        assert!(
            out.error_text().contains("1 skipped: deleted already"),
            "{action}: {out}"
        );
        assert_eq!(t.read("in/b"), b"same", "{action}");
    }
}
