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
        t.write("f", "edit");
        touch(&t, "2400-01-01", "f");
        touch(&t, "2400-01-01", "g");
        t.write("h", "then");
        touch(&t, "2020-01-01", "h");
        let out = line("verify").go();
        out.code(1)
            .stdout_has("~c f")
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
