//! `bc dup dirs`: which directories are copies of each other, as a user meets it.

use bc_testkit::{TestTree, is_root, left_out, tool};
use serde_json::Value;

use crate::common::{BC, Bc};

/// Two copies with a few files each, one of them once more, and something that is like both.
fn tree() -> TestTree {
    let t = TestTree::new();
    for copy in ["photos", "backup/photos"] {
        t.write(format!("{copy}/2024/sunset"), vec![1; 9000])
            .write(format!("{copy}/2024/empty"), "")
            .write(format!("{copy}/harbour"), vec![2; 5000])
            .symlink("harbour", format!("{copy}/latest"))
            .dir(format!("{copy}/new"));
    }
    t.write("inbox/a", vec![1; 9000])
        .write("inbox/b", vec![2; 5000]);
    t.write("trip/x", vec![1; 9000])
        .write("trip/y", vec![2; 5000])
        .write("trip/own", vec![3; 1000]);
    t
}

fn report(t: &TestTree, line: &str) -> Value {
    let out = t.bc_line(line).go();
    serde_json::from_slice(&out.code(0).stdout).unwrap_or_else(|e| panic!("{e}{out}"))
}

#[test]
fn directories_come_first_then_files() {
    let t = tree();
    t.bc_line("dup dirs .")
        .go()
        .code(0)
        .stderr_is("")
        .stdout_is(
            "./backup/photos/\n./photos/\n\n\
             ./inbox/ is contained in ./backup/photos/\n\n\
             ./backup/photos/2024/sunset\n./inbox/a\n./photos/2024/sunset\n./trip/x\n\n\
             ./backup/photos/harbour\n./inbox/b\n./photos/harbour\n./trip/y\n",
        );
    t.bc_line("dup dirs --similar=90 .")
        .go()
        .code(0)
        .stdout_has("./backup/photos/ and ./trip/: 93 % in common\n");
    let files = "./backup/photos/2024/sunset\n./inbox/a\n./photos/2024/sunset\n./trip/x\n\n\
                 ./backup/photos/harbour\n./inbox/b\n./photos/harbour\n./trip/y\n\n\
                 ./backup/photos/2024/empty\n./photos/2024/empty\n";
    t.bc_line("dup dirs --min-files=4 .")
        .go()
        .code(0)
        .stdout_is(files);
}

#[test]
fn the_document_has_all_of_it() {
    let t = tree();
    let json = report(&t, "dup dirs --similar=90 --format=json --exclude=latest .");
    assert_eq!(
        (&json["schema"], &json["command"]),
        (&1.into(), &"dup dirs".into())
    );
    assert_eq!(json["digest_algorithm"], "blake3");
    let group = &json["directories"][0];
    assert_eq!(
        (&group["files"], &group["bytes"]),
        (&3.into(), &14000.into())
    );
    assert_eq!(group["filtered"], 2);
    let paths = [&group["paths"][0]["path"], &group["paths"][1]["path"]];
    assert_eq!(paths, ["./backup/photos", "./photos"]);
    let line = &json["contained"][0];
    assert_eq!(
        (&line["path"], &line["in"]),
        (&"./inbox".into(), &"./backup/photos".into())
    );
    assert_eq!((&line["files"], &line["bytes"]), (&2.into(), &14000.into()));
    assert_eq!(json["similar"][0]["shared_bytes"], 14000);
    assert_eq!(json["groups"].as_array().unwrap().len(), 2);
    assert_eq!(json["stats"]["not_comparable"], 0);
    // The same in lines.
    let out = t
        .bc_line("dup dirs --similar=90 --format=jsonl --exclude=latest .")
        .go();
    let kinds: Vec<Value> = out
        .code(0)
        .text()
        .lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).unwrap();
            value["type"].clone()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "header",
            "directories",
            "contained",
            "similar",
            "group",
            "group",
            "summary"
        ]
    );
}

/// As the guide defines it, by other programs.
#[test]
fn the_digest_can_be_computed_by_others() {
    let Some(sha256sum) = tool("sha256sum") else {
        return left_out("sha256sum is not installed");
    };
    let t = tree();
    t.remove("photos/latest")
        .remove("backup/photos/latest")
        .remove("photos/new");
    t.remove("backup/photos/new");
    let json = report(&t, "dup dirs --algorithm=sha256 --format=json .");
    let script = format!(
        "sum() {{ {} | cut -c1-64; }}\n\
         file() {{ printf 'f%s%s\\0' \"$(sum < \"$1\")\" \"${{1##*/}}\"; }}\n\
         cd photos\n\
         inner=$({{ file 2024/empty; file 2024/sunset; }} | sum)\n\
         {{ printf 'd%s2024\\0' \"$inner\"; file harbour; }} | sum\n",
        sha256sum.display()
    );
    let out = t.run("sh").args(["-c", &script]).go();
    let digest = out.code(0).text();
    assert_eq!(json["directories"][0]["digest"], digest.trim());
}

#[test]
fn the_page_shows_directories_first() {
    let t = tree();
    t.bc_line("dup dirs --similar=90 --format=html --output=page.html .")
        .go()
        .code(0)
        .stderr_is("");
    let page = String::from_utf8(t.read("page.html")).unwrap();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    let table = at("<ol id=folders ");
    assert!(table < at("<ol id=groups "));
    let folders = crate::html::data(&page)["folders"].clone();
    assert_eq!(folders[0]["kind"], "equal");
    let paths = folders[0]["paths"].to_string();
    assert!(paths.contains("photos"), "{folders}");
    let is_contained = |folder: &serde_json::Value| folder["kind"] == "contained";
    assert!(folders.as_array().unwrap().iter().any(is_contained));
    assert!(at("Similar") > table);
}

#[test]
fn references_come_first_and_are_no_group_by_themselves() {
    let t = tree();
    t.bc_line("dup dirs --reference=photos backup")
        .go()
        .code(0)
        .stdout_has("photos/\nbackup/photos/\n");
    t.bc_line("dup dirs --reference=photos --reference=backup inbox")
        .go()
        .code(0)
        .stdout_has("inbox/ is contained in ");
    t.bc_line("dup dirs --across-roots photos backup/photos")
        .go()
        .code(0)
        .stdout_has("photos/");
    t.bc_line("dup dirs --across-roots .")
        .go()
        .code(0)
        .stdout_is("");
}

#[test]
fn what_is_wrong_is_said() {
    let t = tree();
    for (line, text) in [
        ("dup dirs", "no PATH given"),
        (
            "dup dirs --files-from=list",
            "whole directories are compared",
        ),
        ("dup dirs --similar=0 .", "0 is not in 1..=100"),
        ("dup dirs --similar=101 .", "101 is not in 1..=100"),
        ("dup dirs --format=csv .", "invalid value 'csv'"),
    ] {
        t.bc_line(line).go().code(2).stderr_has(text).stdout_is("");
    }
    t.bc_line("dup dirs photos none")
        .go()
        .code(1)
        .stderr_has("none: ");
    let out = t.bc_line("dup dirs --format=json photos none").go();
    let json: Value = serde_json::from_slice(&out.code(1).stdout).unwrap();
    let error = &json["errors"][0];
    assert_eq!(error["path"], "none");
    assert_eq!(error["errno"], 2);
    assert_eq!(json["stats"]["errors"], 1);
}

#[test]
fn manifests_tell_of_disks_that_are_not_here() {
    let t = tree();
    t.write("away/one", vec![1; 9000])
        .write("away/two", vec![2; 5000]);
    for (line, list) in [
        ("hash --output=list away", "list"),
        (
            "integrity manifest --algorithm=sha256 --output=drawer.jsonl away",
            "drawer.jsonl",
        ),
    ] {
        t.bc_line(line).go().code(0);
        let here = "photos inbox trip";
        t.bc_line(&format!("dup dirs --reference={list} {here}"))
            .go()
            .code(0)
            .stdout_has(format!(
                "\nphotos/: all 3 files are in {list}\ninbox/: all 2 files are in {list}\n"
            ));
        let json = report(
            &t,
            &format!("dup dirs --format=json --reference={list} {here}"),
        );
        let offline = json["offline"].as_array().unwrap();
        assert_eq!(offline.len(), 2, "{json}");
        assert_eq!(offline[0]["path"], "photos");
        assert_eq!(offline[0]["files"], 3);
        assert_eq!(offline[0]["manifests"][0]["path"], list);
    }
    let line = "dup prune --dirs --action=delete --yes --reference=list photos backup";
    t.bc_line(line).go().code(2).stderr_has("mount the disk");
}

#[test]
fn unreadable_directories_are_not_compared() {
    let t = tree();
    t.mode("photos/2024", 0);
    let out = t.bc_line("dup dirs .").as_nobody().go();
    out.code(1)
        .stderr_has("./photos/2024: open: Permission denied")
        .stderr_has("2 directories were not compared");
    assert!(!out.text().contains("./photos/\n"), "{out}");
    let t = tree();
    t.fifo("photos/pipe");
    let out = t.bc_line("dup dirs .").go();
    out.code(0)
        .stderr_has("./photos: not compared: it has a FIFO, a socket or a device")
        .stderr_has("2 directories were not compared")
        .stdout_has("./backup/photos/2024/\n./photos/2024/\n");
    assert!(!out.text().contains("./photos/\n"), "{out}");
}

/// Runs `bc` on a tree after `mounts`, in a mount namespace of its own.
pub fn mounted(t: &TestTree, mounts: &str, line: &str) -> Option<(String, String)> {
    for needed in ["unshare", "mount"] {
        if tool(needed).is_none() {
            left_out(&format!("{needed} is not installed"));
            return None;
        }
    }
    let script = format!("{{ {mounts}; }} || exit 77\n{BC} {line}");
    let mut run = t.run("unshare");
    if !is_root() {
        run = run.arg("-r");
    }
    let out = run.args(["-m", "sh", "-c", &script]).go();
    if out.status.code() != Some(0) {
        left_out(&format!("cannot mount: {}", out.error_text()));
        return None;
    }
    Some((out.text(), out.error_text()))
}

#[test]
fn a_mount_in_a_directory_keeps_it_from_being_compared() {
    let t = tree();
    t.write("elsewhere/new/f", "f");
    for (mount, line) in [
        ("mount --bind elsewhere/new photos/new", "dup dirs ."),
        ("mount --bind elsewhere/new photos/new", "dup dirs -x ."),
        (
            "mount --bind backup/photos/new photos/new",
            "dup dirs photos backup",
        ),
        ("mount -t tmpfs none photos/new", "dup dirs ."),
        ("mount -t tmpfs none photos/new", "dup dirs -x ."),
        (
            "mount --bind elsewhere/new photos/new",
            "dup dirs . photos/new",
        ),
        (
            "mount --bind elsewhere/new photos/new",
            "dup dirs . elsewhere/new",
        ),
    ] {
        let Some((out, errors)) = mounted(&t, mount, line) else {
            return;
        };
        let is_reported = out
            .lines()
            .any(|line| matches!(line, "./photos/" | "photos/"));
        assert!(!is_reported, "{mount}; {line}: {out}");
        let reported = errors.contains("photos: not compared: something is mounted in it");
        assert!(reported, "{mount}; {line}: {errors}");
    }
}

#[test]
fn a_directory_that_is_seen_twice_is_one() {
    let t = tree();
    t.dir("again");
    let mount = "mount --bind photos again";
    let Some((out, errors)) = mounted(&t, mount, "dup dirs photos again backup") else {
        return;
    };
    assert!(
        out.contains("backup/photos/\n") && errors.is_empty(),
        "{out}{errors}"
    );
    let names = ["again/\n", "\nphotos/\n"].map(|name| format!("\n{out}").contains(name));
    assert_eq!(names.iter().filter(|there| **there).count(), 1, "{out}");
    // A root that lies in another one by a bind mount of it.
    let Some((out, _)) = mounted(
        &t,
        "mount --bind photos/2024 again",
        "dup dirs again photos backup",
    ) else {
        return;
    };
    assert!(out.starts_with("backup/photos/\nphotos/\n"), "{out}");
}
