//! The engines know settings, the program options: where an option helps, its message names it.

use bc_testkit::TestTree;

use crate::common::Bc;

#[test]
fn messages_name_the_option_that_helps() {
    let t = TestTree::new();
    t.write("r/a", "abc").dir("empty");
    t.dir("full/.bc-copy-manifest.jsonl");
    for (algorithm, file) in [("sha256", "old"), ("blake3", "new")] {
        let line = format!("integrity manifest --algorithm={algorithm} --output={file} r");
        t.bc_line(&line).go().code(0);
    }
    for (line, said) in [
        (
            "integrity verify empty old",
            "empty: is empty: not mounted? (--force to continue)",
        ),
        (
            "integrity diff old new",
            "so they cannot be compared (--ignore=digest compares the rest)",
        ),
        (
            "copy r full",
            "is no regular file, so the manifest cannot be there (--manifest=FILE names another place)",
        ),
    ] {
        t.bc_line(line).go().code(2).stderr_has(said);
    }
}

/// What is said of each path has no room for an option: it comes once, at the end.
#[test]
fn a_link_that_leads_nowhere_now() {
    let t = TestTree::new();
    t.write("disk/a", "abc").write("r/own", "own");
    t.symlink("../disk", "r/link");
    t.bc_line("integrity manifest --follow-symlinks --output=m r")
        .go()
        .code(0);
    std::fs::rename(t.join("disk"), t.join("away")).unwrap();
    let hint = "--force accepts disks that seem unmounted as they are found";
    let out = t.bc_line("integrity verify r m").go();
    out.code(1).stdout_has("leads nowhere now: not mounted?\n");
    out.stderr_has(hint);
    let out = t.bc_line("integrity verify --force r m").go();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!said.contains(hint), "{out}");
}
