//! Times before 1677 and after 2262, which a manifest cannot hold, and some file systems can.

use std::path::Path;

use bc_testkit::{TestTree, left_out};

use crate::common::Bc;

/// Trees on file systems that keep such times.
fn trees() -> Vec<TestTree> {
    let trees = [Path::new("/dev/shm"), &std::env::temp_dir()].map(|parent| {
        let t = TestTree::new_in(parent);
        t.write("probe", "");
        touch(&t, "2300-01-01", "probe");
        let out = t.run("stat").args(["-c", "%Y", "probe"]).go();
        let keeps = out
            .text()
            .trim()
            .parse::<i64>()
            .is_ok_and(|s| s > 10_000_000_000);
        t.remove("probe");
        keeps.then_some(t)
    });
    let trees: Vec<TestTree> = trees.into_iter().flatten().collect();
    if trees.is_empty() {
        left_out("no file system here keeps times after 2262");
    }
    trees
}

fn touch(t: &TestTree, day: &str, path: &str) {
    t.run("touch").args(["-d", day, path]).go().code(0);
}

#[test]
fn an_edit_is_no_damage() {
    for t in trees() {
        t.write("f", "good").write("g", "same").write("h", "once");
        touch(&t, "2300-01-01", "f");
        touch(&t, "2300-01-01", "g");
        touch(&t, "2300-01-01", "h");
        let m = t.scratch("m");
        let m = m.to_str().unwrap();
        t.bc_line(&format!("integrity manifest -o {m} ."))
            .go()
            .code(0);
        let line = |command: &str| t.bc_line(&format!("integrity {command} . {m}"));
        line("verify").go().code(0).stdout_is("");
        line("update").go().code(0).stdout_is("");
        // A restored file has another time, which is reported.
        let copy = t.scratch("copy");
        t.run("cp").args(["-a", "."]).arg(&copy).go().code(0);
        t.remove("f");
        line(&format!("restore --from={}", copy.display()))
            .go()
            .code(0)
            .stdout_has("+ f: from ")
            .stderr_has("f: utimens: its time was before 1677-09-22 or after 2262-04-11");
        t.write("f", "edit");
        touch(&t, "2400-01-01", "f");
        touch(&t, "2400-01-01", "g");
        t.write("h", "then");
        touch(&t, "2020-01-01", "h");
        let out = line("verify").go();
        out.code(1)
            .stdout_has(
                "~c f: content differs; nothing tells an edit from damage, for no manifest records",
            )
            .stdout_has("~c h\n")
            .stdout_has("~m g mtime: after 2262-04-11 -> after 2262-04-11\n");
        assert!(!out.text().contains("!!"), "{}", out.text());
        // Nothing tells: the old record stays until it is said what to think of it.
        line("update -q").go().code(1).stdout_has("~c f");
        line("update -q --accept-damaged").go().code(0);
        line("verify").go().code(0).stdout_is("");
        t.bc_line(&format!("integrity export --format=mtree {m}"))
            .go()
            .code(0);
    }
}

/// Seconds of the last modification, as `stat` has them.
fn second(t: &TestTree, path: &str) -> String {
    let out = t.run("stat").args(["-c", "%Y", path]).go();
    out.code(0).text().trim().to_owned()
}

#[test]
fn undo_gives_them_back() {
    for t in trees() {
        for day in ["2300-01-01", "1600-01-01"] {
            for options in [
                "--action=delete",
                "--action=hardlink",
                "--action=symlink",
                "--action=move:../D",
                "--dirs --action=delete",
            ] {
                for dir in ["in/a", "in/b"] {
                    t.write(format!("{dir}/f"), "same");
                    t.symlink("f", format!("{dir}/l"));
                    for name in ["f", "l", ""] {
                        let path = format!("{dir}/{name}");
                        t.run("touch").args(["-h", "-d", day, &path]).go().code(0);
                    }
                }
                let paths = ["in/b/f", "in/b/l", "in/b"];
                let paths = &paths[..if options.contains("--dirs") { 3 } else { 1 }];
                let before: Vec<String> = paths.iter().map(|path| second(&t, path)).collect();
                if before[0].parse::<i64>().unwrap().abs() < 9_300_000_000 {
                    // A file system that keeps none of that age.
                    t.run("rm").args(["-r", "in"]).go().code(0);
                    continue;
                }
                let prune = format!("dup prune {options} --keep=first --yes --journal=../j in");
                t.bc_line(&prune).go().code(0);
                t.bc_line("dup undo --dry-run ../j").go().code(0);
                t.bc_line("dup undo ../j").go().code(0);
                let after: Vec<String> = paths.iter().map(|path| second(&t, path)).collect();
                assert_eq!(after, before, "{day} {options}");
                // Earlier versions recorded the last time that there is.
                std::fs::remove_file(t.scratch("j")).unwrap();
                t.bc_line(&prune).go().code(0);
                let journal = std::fs::read_to_string(t.scratch("j")).unwrap();
                let mut old = String::new();
                for piece in journal.split(",\"far\":{") {
                    let rest = piece.split_once('}').map_or("", |(_, rest)| rest);
                    old += if old.is_empty() { piece } else { rest };
                }
                assert!(old.len() < journal.len(), "{journal}");
                std::fs::write(t.scratch("j"), old).unwrap();
                if !options.contains("move") {
                    for mode in ["--dry-run", ""] {
                        t.bc_line(&format!("dup undo {mode} ../j"))
                            .go()
                            .code(1)
                            .stderr_has("times: Value too large");
                    }
                }
                t.run("rm").args(["-rf", "in", "../D", "../j"]).go().code(0);
            }
        }
    }
}

/// Both are as late as 64 bits of nanoseconds can say.
#[test]
fn the_newest_of_files_is_kept() {
    for t in trees() {
        for (file, day) in [
            ("d/a", "2300-01-01"),
            ("d/b", "2400-01-01"),
            ("d/c", "2350-01-01"),
        ] {
            t.write(file, "the same");
            touch(&t, day, file);
        }
        let line = "dup prune --dry-run --action=delete d";
        let kept = |rule: &str, name: &str| {
            let out = t.bc_line(&format!("{line} --keep={rule}")).go();
            out.code(0).stdout_has(format!("(kept: {name})\n"));
        };
        kept("newest", "d/b");
        kept("oldest", "d/a");
    }
}
