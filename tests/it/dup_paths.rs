//! PATHs of `prune` that lead through symbolic links: whoever owns a link chooses what is changed.

use std::os::unix::fs::lchown;

use bc_testkit::{NOBODY, TestTree, is_root, left_out};

use crate::common::{BC, Bc};

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("real/a/f", "twice").write("real/b/g", "twice");
    t.symlink("real", "own").symlink("real", "foreign");
    t
}

#[test]
fn a_path_that_is_a_link_gets_a_word() {
    let t = tree();
    for path in ["own", "own/", "./own/."] {
        let out = t
            .bc_line(&format!("dup prune --action=delete --dry-run {path}"))
            .go();
        let real = t.join("real").canonicalize().unwrap();
        let word = format!(
            "{path} is a symbolic link: changes are made in {}",
            real.display()
        );
        out.code(0).stderr_has(word);
        assert_eq!(out.lines().len(), 1, "{}", out.text());
    }
    for path in ["real", "own/a own/b", "."] {
        let line = format!("dup prune --action=delete --dry-run {path}");
        let out = t.bc_line(&line).go();
        let text = out.code(0).error_text();
        assert!(!text.contains("symbolic link"), "{path}: {text}");
    }
}

#[test]
fn another_users_link_chooses_nothing() {
    if !is_root() {
        return left_out("not root: links cannot be given to another user");
    }
    let t = tree();
    t.symlink("foreign", "to-foreign");
    lchown(t.join("foreign"), Some(NOBODY), Some(NOBODY)).unwrap();
    let refused = |line: &str| {
        for dry in ["--dry-run", "--yes"] {
            let out = t.bc_line(&format!("dup prune {dry} {line}")).go();
            out.code(2)
                .stdout_is("")
                .stderr_has("the symbolic link")
                .stderr_has(format!("belongs to user {NOBODY}"));
            assert!(t.exists("real/a/f") && t.exists("real/b/g"), "{line}");
        }
    };
    for path in [
        "foreign",
        "foreign/",
        "foreign/a real",
        "to-foreign",
        "./to-foreign/../real",
    ] {
        refused(&format!("--action=delete {path}"));
        refused(&format!("--action=hardlink {path}"));
        refused(&format!("--dirs --action=delete {path}"));
    }
    refused("--action=move:foreign/new/deep real");
    refused("--dirs --action=move:foreign real");
    t.bc_line("dup scan --format=json --output=../r.json foreign/")
        .go()
        .code(0);
    refused("--action=delete --from=../r.json");
    t.write("../list", "foreign/a/f\nreal/b/g\n");
    refused("--action=delete --files-from=../list");
    t.bc_line("dup scan --format=json --output=../r.json --files-from=../list")
        .go()
        .code(0);
    refused("--action=delete --from=../r.json");
    refused("--action=move:foreign --from=../r.json");
    // What they lead to is not theirs.
    t.bc_line("dup prune --action=delete --yes real")
        .go()
        .code(0);
    assert!(!t.exists("real/b/g"));
}

#[test]
fn the_library_refuses_it_as_well() {
    use bit_crafts::{Action, ErrorKind, Means, PruneOptions, Search};
    let t = tree();
    let planned = PruneOptions::new(Action::Delete);
    let run = |path: &str| planned.run(&Search::new([t.join(path)]), &Means::new());
    run("own").unwrap();
    if !is_root() {
        return left_out("not root: links cannot be given to another user");
    }
    lchown(t.join("foreign"), Some(NOBODY), Some(NOBODY)).unwrap();
    let refused = run("foreign").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    assert!(
        refused.to_string().contains("another user's symbolic link"),
        "{refused}"
    );
}

/// Searches change nothing: there a link is as good as what it leads to.
#[test]
fn searches_follow_any_link() {
    let t = tree();
    if is_root() {
        lchown(t.join("foreign"), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    for line in ["dup foreign", "dup summary foreign", "dup dirs foreign"] {
        t.bc_line(line).go().code(0);
    }
}

/// The working directory was removed: no journal could say where anything was.
#[test]
fn a_working_directory_that_is_gone_is_no_place_to_start_from() {
    let t = TestTree::new();
    t.write("w/a", "the same")
        .write("w/b", "the same")
        .dir("here");
    for more in ["--dry-run", "--yes"] {
        t.dir("here");
        let script =
            format!("cd here && rmdir ../here && exec {BC} dup prune --action=delete {more} ../w");
        t.run("sh")
            .args(["-c", &script])
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has("../w: getcwd: ");
    }
    assert!(t.exists("w/a") && t.exists("w/b"));
}

/// PATHs that are links of /proc, to files.
#[test]
fn a_descriptor_leads_where_it_did() {
    let t = TestTree::new();
    t.write("w/a", "the same").write("w/b", "the same");
    let script = format!("exec {BC} dup prune --action=delete --dry-run /dev/fd/7 w 7<w/a");
    let out = t.run("sh").args(["-c", &script]).go();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!said.contains("leads elsewhere"), "{said}");
}
