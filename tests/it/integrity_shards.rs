//! One tree recorded by several readers, each its part, and what putting the parts together gives:
//! what one reader would have recorded, or a refusal that says why not.

use std::path::PathBuf;

use bc_testkit::{Outcome, TestTree};
use serde_json::Value;

use crate::common::Bc;
use crate::integrity_mounts::mounting;

fn sample() -> TestTree {
    let t = TestTree::new();
    t.write("a", "abc").write("a-", "1").write("b/c", "x");
    t
}

/// Names that sort oddly, empty directories, links of both kinds, names that are no text.
pub fn rich() -> TestTree {
    let t = TestTree::new();
    for path in [
        "a", "b/a", "b/b", "b-", "b/c/d/e", "b/c/f", "x/y/z/1", "x/y/z/2", "x/y.z",
    ] {
        t.write(path, path);
    }
    for dir in ["empty", "b/hollow/deep", "m", "n"] {
        t.dir(dir);
    }
    t.hard_link("a", "m/linked").hard_link("a", "x/y/z/linked");
    t.symlink("../a", "m/soft").symlink("nowhere", "broken");
    t.fifo("n/pipe");
    t.write_bytes(b"x/\xff\xfe", "odd")
        .write_bytes(b"x/new\nline/f", "odd");
    t
}

pub fn file(t: &TestTree, name: &str) -> String {
    t.scratch(name).to_str().unwrap().to_owned()
}

/// Records all parts of the tree, and gives the files.
fn record(t: &TestTree, of: u32, more: &str) -> Vec<String> {
    let record = |index: u32| {
        let path = file(t, &format!("part-{index}-of-{of}"));
        t.bc_line(&format!(
            "integrity manifest {more} --shard={index}/{of} -o {path} ."
        ))
        .go()
        .code(0)
        .stderr_is("");
        path
    };
    (1..=of).map(record).collect()
}

pub fn merge(t: &TestTree, parts: &[String]) -> Outcome {
    t.bc_line("integrity merge").args(parts).go()
}

/// The lines of a manifest, without what differs between runs: the header's time, and the digest in
/// the trailer, which is that of the header too.
fn lines(manifest: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(manifest.to_vec()).unwrap();
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (line, key) in [(0, "created_at"), (lines.len() - 1, "sha256")] {
        assert!(lines[line].as_object_mut().unwrap().remove(key).is_some());
    }
    lines
}

#[test]
fn parts_put_together_are_what_one_run_records() {
    let t = rich();
    for options in [
        "",
        "--algorithm=xxh128 --no-hidden --exclude=*.z --max-depth=3",
        "--follow-symlinks",
    ] {
        let whole = t.bc_line(&format!("integrity manifest {options} .")).go();
        whole.code(0);
        for of in [1, 2, 3, 7, 16] {
            let mut parts = record(&t, of, options);
            parts.rotate_left(of as usize / 2);
            let merged = merge(&t, &parts);
            merged.code(0).stderr_is("");
            assert_eq!(
                lines(&merged.stdout),
                lines(&whole.stdout),
                "{of} {options}"
            );
            // It is a manifest like any other.
            let path = file(&t, "merged.jsonl.zst");
            t.bc_line(&format!("integrity merge -o {path}"))
                .args(&parts)
                .go()
                .code(0)
                .stdout_is("");
            t.bc_line(&format!("integrity verify . {path}"))
                .go()
                .code(0)
                .stdout_is("");
            t.bc_line("integrity merge --check")
                .args(&parts)
                .arg(&path)
                .go()
                .code(0)
                .stdout_is("");
        }
    }
}

#[test]
fn each_reader_looks_at_its_own_part_only() {
    let t = rich();
    let parts = record(&t, 3, "");
    let mut paths = Vec::new();
    for part in &parts {
        let text = std::fs::read_to_string(part).unwrap();
        let of_part: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(of_part[0]["shard"]["of"], 3);
        let entries = of_part.iter().filter(|line| line["type"] == "entry");
        paths.extend(entries.map(|entry| entry["path"].to_string()));
    }
    let count = paths.len();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), count, "no entry is in two parts");
}

#[test]
fn a_part_stands_for_no_tree() {
    let t = sample();
    let parts = record(&t, 2, "");
    for command in ["verify", "update"] {
        t.bc_line(&format!("integrity {command} . {}", parts[0]))
            .go()
            .code(2)
            .stderr_has("holds a part of a tree only");
    }
}

fn rewrite(path: &str, change: impl Fn(&str) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let changed = change(&text);
    let body = changed.rfind("{\"type\":\"trailer\"").unwrap();
    // A careful liar, or a tool that writes manifests: the trailer is right.
    let mut hasher = bc_digest::Hasher::new(bc_digest::Algorithm::Sha256);
    hasher.update(&changed.as_bytes()[..body]);
    let digest = hasher.finalize();
    let trailer = &changed[body..];
    let at = trailer.find("\"sha256\":\"").unwrap() + 10;
    let sealed = format!(
        "{}{}{digest}{}",
        &changed[..body],
        &trailer[..at],
        &trailer[at + 64..]
    );
    std::fs::write(path, sealed).unwrap();
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let t = rich();
    let parts = record(&t, 3, "");
    let refused = |parts: &[&str], why: &str| {
        let path = file(&t, "never");
        for check in [vec!["-o", &path], vec![], vec!["--check"]] {
            let is_check = check == ["--check"];
            let out = t.bc_line("integrity merge").args(check).args(parts).go();
            out.code(if is_check { 1 } else { 2 })
                .stdout_is("")
                .stderr_has(why);
        }
        assert!(!PathBuf::from(&path).exists());
    };
    let [one, two, three] = [&parts[0][..], &parts[1], &parts[2]];
    refused(&[one, three], "missing: part 2/3");
    refused(&[one, two, three, two], "is part 2/3 again, as ");
    let others = record(&t, 2, "");
    refused(&[one, two, &others[0]], "is one of 2 parts, unlike ");
    let other = file(&t, "other");
    let again = |more: &str| {
        t.bc_line(&format!("integrity manifest --shard=3/3 -o {other} {more}"))
            .go()
            .code(0);
    };
    again("--algorithm=md5 .");
    refused(&[one, two, &other], "has md5 digests, unlike ");
    again("--max-depth=7 .");
    refused(
        &[one, two, &other],
        "was made with the option max_depth=7, unlike ",
    );
    again("x");
    refused(&[one, two, &other], "has the root ");
    // Altered, cut off, or no manifest at all.
    let text = std::fs::read_to_string(three).unwrap();
    std::fs::write(&other, text.replacen("\"size\":", "\"size\":1", 1)).unwrap();
    refused(&[one, two, &other], "altered");
    std::fs::write(&other, &text[..text.len() / 2]).unwrap();
    refused(&[one, two, &other], "truncated");
    std::fs::write(&other, "x\n").unwrap();
    refused(&[one, two, &other], "not an integrity manifest");
    // Another part's entries under this part's name.
    let stolen = |text: &str| text.replace("\"index\":2", "\"index\":3");
    std::fs::copy(two, &other).unwrap();
    rewrite(&other, stolen);
    refused(&[one, two, &other], "does not belong to part 3/3");
    // A directory that was not read.
    std::fs::copy(three, &other).unwrap();
    rewrite(&other, |text| {
        let at = text.rfind("\"sum\":\"").unwrap() + 7;
        let changed = if text[at..].starts_with('0') {
            "1"
        } else {
            "0"
        };
        format!("{}{changed}{}", &text[..at], &text[at + 1..])
    });
    refused(
        &[one, two, &other],
        "the tree changed meanwhile, or could not be read",
    );
}

/// Parts that several machines have made: numbers of devices say nothing then.
#[test]
fn parts_of_several_machines_are_one_tree() {
    let t = rich();
    let whole = t.bc_line("integrity manifest .").go();
    let parts = record(&t, 3, "");
    let shared = |text: &str| {
        let (before, rest) = text.split_once("\"mount_source\":").unwrap();
        let (_, after) = rest.split_once(",\"mount_root\"").unwrap();
        format!("{before}\"mount_source\":\"server:/export\",\"mount_root\"{after}")
    };
    parts.iter().for_each(|part| rewrite(part, shared));
    rewrite(&parts[1], |text| {
        let other = text.replacen("\"host\":\"", "\"host\":\"other-", 1);
        let other = other.replacen("\"machine\":\"", "\"machine\":\"f", 1);
        let other = other.replacen("\"root_dev\":", "\"root_dev\":9", 1);
        other.replacen("\"devices\":[", "\"devices\":[9", 1)
    });
    let merged = merge(&t, &parts);
    merged.code(0).stderr_is("");
    let (merged, whole) = (lines(&merged.stdout), lines(&whole.stdout));
    assert_eq!(merged[1..], whole[1..]);
    for key in ["host", "machine", "root_dev"] {
        assert!(merged[0][key].is_null(), "{key}");
    }
    assert_eq!(merged[0]["root"], whole[0]["root"]);
}

#[test]
fn whole_trees_are_not_merged_but_checked() {
    let t = sample();
    let (whole, cut) = (file(&t, "whole"), file(&t, "cut"));
    t.bc_line(&format!("integrity manifest -o {whole} ."))
        .go()
        .code(0);
    let text = std::fs::read_to_string(&whole).unwrap();
    std::fs::write(&cut, &text[..text.len() - 10]).unwrap();
    merge(&t, std::slice::from_ref(&whole))
        .code(2)
        .stderr_has("is of a whole tree");
    t.bc_line(&format!("integrity merge --check -v {whole}"))
        .go()
        .code(0)
        .stderr_has("whole, ");
    // One that is bad does not keep the others from being looked at.
    let out = t
        .bc_line(&format!("integrity merge --check -v {cut} {whole}"))
        .go();
    out.code(1).stderr_has("truncated").stderr_has("whole, ");
    let out = t
        .bc_line(&format!("integrity merge --check -v none {whole}"))
        .go();
    out.code(2).stderr_has("none: ").stderr_has("whole, ");
}

/// Between the reading of two parts a file goes from the one to the other.
#[test]
fn a_file_that_was_moved_meanwhile_is_named() {
    let t = TestTree::new();
    for n in 0..12 {
        t.write(format!("d{n}/f{n}"), format!("{n}"));
    }
    let part = |index: u32| {
        let path = file(&t, &format!("part-{index}"));
        t.bc_line(&format!("integrity manifest --shard={index}/2 -o {path} ."))
            .go()
            .code(0);
        let text = std::fs::read_to_string(&path).unwrap();
        let has = |n: &u32| text.contains(&format!("\"path\":\"d{n}/f{n}\""));
        (path, (0..12).filter(has).collect::<Vec<u32>>())
    };
    let (first, in_first) = part(1);
    let (_, in_second) = part(2);
    let (from, to) = (in_first[0], in_second[0]);
    std::fs::rename(
        t.join(format!("d{from}/f{from}")),
        t.join(format!("d{to}/moved")),
    )
    .unwrap();
    let (second, _) = part(2);
    let out = merge(&t, &[first, second]);
    let mut names = [format!("d{from}/f{from}"), format!("d{to}/moved")];
    names.sort();
    out.code(1).stderr_has(format!(
        "{}, {}: merge: moved meanwhile",
        names[0], names[1]
    ));
    out.stdout_has(format!("\"path\":\"d{to}/moved\""));
}

/// Directories that come while parts are read are in nobody's part.
#[test]
fn a_directory_that_nobody_read_is_refused() {
    let t = TestTree::new();
    t.write("a/b", "x");
    let record = |index: u32, when: &str| {
        let path = file(&t, &format!("part-{index}-{when}"));
        t.bc_line(&format!("integrity manifest --shard={index}/2 -o {path} ."))
            .go()
            .code(0);
        path
    };
    let before = [1, 2].map(|index| record(index, "before"));
    for n in 0..16 {
        t.write(format!("new{n}/f"), "y");
    }
    let after = [1, 2].map(|index| record(index, "after"));
    // The part that the root is in says which of the two has the new directories as entries.
    for parts in [[&before[0], &after[1]], [&after[0], &before[1]]] {
        let parts = parts.map(Clone::clone);
        merge(&t, &parts)
            .code(2)
            .stdout_is("")
            .stderr_has("the tree changed meanwhile");
    }
}

#[test]
fn the_directory_that_is_missing_is_named() {
    let t = TestTree::new();
    for n in 0..12 {
        t.write(format!("d{n}/f"), format!("{n}"));
    }
    let record = |index: u32| {
        let path = file(&t, &format!("part-{index}"));
        t.bc_line(&format!("integrity manifest --shard={index}/2 -o {path} ."))
            .go()
            .code(0);
        path
    };
    let parts = [1, 2].map(record);
    let has = |part: &String, n: u32| {
        let text = std::fs::read_to_string(part).unwrap();
        text.contains(&format!("\"path\":\"d{n}/f\""))
    };
    // The part that lists the directories, and one of them that it does not read itself.
    let lists = parts.iter().position(|part| {
        let text = std::fs::read_to_string(part).unwrap();
        text.contains("\"path\":\"d0\"")
    });
    let lists = lists.unwrap();
    let gone = (0..12).find(|n| !has(&parts[lists], *n)).unwrap();
    std::fs::remove_dir_all(t.join(format!("d{gone}"))).unwrap();
    record(2 - lists as u32);
    let out = merge(&t, &parts);
    out.code(2).stdout_is("");
    out.stderr_has(format!(
        "did not read the directory 'd{gone}', which the others list"
    ));
}

#[test]
fn mount_points_are_recorded_as_by_one_run() {
    let t = TestTree::new();
    t.write("a/f", "1")
        .dir("b/disk")
        .dir("c/disk")
        .write("d/e/f/g", "2");
    let script = r#"
        fill "$S/one"; fill "$S/two"
        up one b/disk; up two c/disk
        bc manifest --output="$S/whole" .
        for n in 1 2 3 5; do
            set --
            for i in $(seq $n); do
                bc manifest --shard=$i/$n --output="$S/p$i" . | grep -v 'exit 0'
                set -- "$@" "$S/p$i"
            done
            bc merge --output="$S/merged$n" "$@"
        done
    "#;
    let Some(out) = mounting(&t, script) else {
        return;
    };
    assert_eq!(out.text(), "exit 0\n".repeat(5), "{}", out.error_text());
    let whole = lines(&std::fs::read(t.scratch("whole")).unwrap());
    assert!(whole.iter().any(|line| line["mount"] == "two"));
    for of in [1, 2, 3, 5] {
        let merged = std::fs::read(t.scratch(format!("merged{of}"))).unwrap();
        assert_eq!(lines(&merged), whole, "{of}");
    }
}

/// A directory that cannot be read may hold directories of any part: every run says so, and the one
/// entry says it in the end.
#[test]
fn what_cannot_be_read_is_told_by_every_part() {
    let t = TestTree::new();
    t.write("a/closed/b/c", "x")
        .write("d", "y")
        .write("e/unread", "z");
    t.mode("e/unread", 0o000).mode("a/closed", 0o000);
    let record = |more: &str| {
        let out = t
            .bc_line(&format!("integrity manifest {more} ."))
            .as_nobody()
            .go();
        out.stderr_has("a/closed: open: Permission denied");
        out.code(1);
        out.stdout
    };
    let whole = record("");
    for of in [1, 3, 4] {
        let parts = (1..=of).map(|index| {
            let path = file(&t, &format!("seen-{index}-of-{of}"));
            std::fs::write(&path, record(&format!("--shard={index}/{of}"))).unwrap();
            path
        });
        let merged = merge(&t, &parts.collect::<Vec<_>>());
        // As the whole run ends, and as it says.
        merged
            .code(1)
            .stderr_has("a/closed: open: Permission denied");
        assert_eq!(lines(&merged.stdout), lines(&whole), "{of}");
    }
    t.mode("a/closed", 0o700);
}
