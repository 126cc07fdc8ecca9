//! Manifests of disks that are not here in the place of `--reference`: they answer, and never
//! authorise a change.

use bc_testkit::TestTree;

use crate::common::Bc;

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("in/a", "a photo")
        .write("in/b", "another")
        .write("in/c", "another")
        .write("in/d", "twice here")
        .write("in/e", "twice here")
        .write("in/f", "only here")
        .write("disk/x", "a photo")
        .write("disk/sub/y", "another");
    t.bc_line("integrity manifest --output=m.zst disk")
        .go()
        .code(0);
    t.bc_line("hash --type=md5 --output=md5 disk").go().code(0);
    t.remove("disk");
    t
}

#[test]
fn scan_and_summary_tell_what_a_manifest_knows() {
    let t = tree();
    t.bc_line("dup in --reference=m.zst")
        .go()
        .code(0)
        .stdout_is("m.zst: sub/y\nin/b\nin/c\n\nin/d\nin/e\n\nm.zst: x\nin/a\n");
    t.bc_line("dup in --reference=md5")
        .go()
        .code(0)
        .stdout_has("md5: disk/x\nin/a\n")
        .stderr_has("of 2 contents that manifests know this rests on MD5");
    t.bc_line("dup summary in --reference=m.zst")
        .go()
        .code(0)
        .stdout_has("in manifests              3  ");
    t.bc_line("dup in --format=json --reference=m.zst")
        .go()
        .code(2)
        .stderr_has("with a manifest as reference there is text only");
}

#[test]
fn prune_is_told_to_mount_the_disk() {
    let t = tree();
    for reference in ["m.zst", "md5"] {
        for rest in ["in", "--from=none"] {
            t.bc_line(&format!(
                "dup prune --action=delete --yes --reference={reference} {rest}"
            ))
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has("mount the disk");
        }
    }
    assert!(t.exists("in/b") && t.exists("in/c"));
    // Another file is a reference as ever.
    t.bc_line("dup prune --action=delete --yes --reference=in/c in")
        .go()
        .code(0);
    assert!(t.exists("in/c") && !t.exists("in/b"));
}

#[test]
fn a_manifest_of_what_is_searched_is_refused() {
    let t = tree();
    t.bc_line("integrity manifest --output=own in").go().code(0);
    for command in ["scan", "summary"] {
        t.bc_line(&format!("dup {command} in --reference=own"))
            .go()
            .code(2)
            .stderr_has("is a manifest of");
    }
}
