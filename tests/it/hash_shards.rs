//! Lists of digests that several readers of one tree have made, each of its part, put together.

use serde_json::Value;

use crate::common::Bc;
use crate::integrity_shards::{file, merge, rich};

/// Lists that parts of a tree give are those of the whole, put together as the help says.
#[test]
fn hashes_of_parts_are_sorted_together() {
    let t = rich();
    let whole = t.bc_line("hash -z .").go();
    whole.code(0);
    for of in [1, 2, 7] {
        let lists = (1..=of).map(|index| {
            let path = file(&t, &format!("list-{index}"));
            t.bc_line(&format!("hash -z --shard={index}/{of} -o {path} ."))
                .go()
                .code(0);
            path
        });
        let lists: Vec<String> = lists.collect();
        let sorted = t
            .run("sort")
            .args(["-z", "-m", "-t", " ", "-k", "3"])
            .args(&lists)
            .go();
        sorted.code(0).stdout_is(&whole.stdout);
    }
    for more in ["-", "--files-from=-"] {
        t.bc_line(&format!("hash --shard=1/2 {more}"))
            .go()
            .code(2)
            .stderr_has("--shard shares out trees");
    }
}

/// A list's lines, without what differs between runs.
fn list_lines(list: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(list.to_vec()).unwrap();
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let summary = lines.last_mut().unwrap().as_object_mut().unwrap();
    for key in ["wall_ns", "threads", "reader", "bytes"] {
        assert!(summary.remove(key).is_some(), "{key}");
    }
    lines
}

#[test]
fn json_lists_of_parts_are_merged() {
    let t = rich();
    t.write("unread", "secret").mode("unread", 0o000);
    let list = |options: &str| {
        let out = t
            .bc_line(&format!("hash --format=jsonl {options}"))
            .as_nobody()
            .go();
        assert!(out.status.code().is_some_and(|code| code < 2), "{out}");
        out.stdout
    };
    for options in [".", "--type=md5,xxh3 x b", "--relative --no-hidden x b"] {
        let whole = list(options);
        for of in [1, 2, 5] {
            let parts = (1..=of).map(|index| {
                let path = file(&t, &format!("list-{index}-of-{of}"));
                std::fs::write(&path, list(&format!("--shard={index}/{of} {options}"))).unwrap();
                path
            });
            let parts: Vec<String> = parts.collect();
            let merged = merge(&t, &parts);
            // What nobody could read is named.
            let code = i32::from(options == ".");
            let named = merged.code(code).error_text().lines().count();
            assert_eq!(named, usize::from(options == "."), "{merged}");
            assert_eq!(
                list_lines(&merged.stdout),
                list_lines(&whole),
                "{of} {options}"
            );
            let check = t.bc_line("integrity merge --check").args(&parts).go();
            check.code(code).stdout_is("");
        }
    }
}

#[test]
fn json_lists_that_do_not_belong_together_are_refused() {
    let t = rich();
    let list = |name: &str, options: &str| {
        let path = file(&t, name);
        t.bc_line(&format!("hash --format=jsonl -o {path} {options}"))
            .go()
            .code(0);
        path
    };
    let one = list("one", "--shard=1/2 .");
    let two = list("two", "--shard=2/2 .");
    let refused = |parts: &[&String], why: &str| {
        let out = t.bc_line("integrity merge").args(parts).go();
        out.code(2).stdout_is("").stderr_has(why);
        let out = t.bc_line("integrity merge --check").args(parts).go();
        out.code(1).stdout_is("").stderr_has(why);
    };
    refused(&[&one], "missing: part 2/2");
    refused(&[&one, &two, &one], "is part 1/2 again, as ");
    refused(
        &[&one, &list("md5", "--type=md5 --shard=2/2 .")],
        "has md5 digests, unlike ",
    );
    let others = list("others", "--exclude=nothing --shard=2/2 .");
    refused(
        &[&one, &others],
        "is of other files, or was made with other options, unlike ",
    );
    refused(
        &[&one, &list("third", "--shard=2/3 .")],
        "is one of 3 parts, unlike ",
    );
    refused(&[&list("whole", "."), &two], "is of a whole tree");
    let text = std::fs::read_to_string(&two).unwrap();
    let cut = file(&t, "cut");
    for end in [
        text.len() - 1,
        text.len() - 30,
        text.trim_end().rfind('\n').unwrap() + 1,
    ] {
        std::fs::write(&cut, &text[..end]).unwrap();
        refused(&[&one, &cut], "truncated: no summary at the end");
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    std::fs::write(&cut, [&lines[..1], &lines[2..]].concat().concat()).unwrap();
    refused(
        &[&one, &cut],
        "altered: the counts in the summary do not match",
    );
    t.write("new/dir/f", "1")
        .write("new2/f", "2")
        .write("new3/f", "3");
    let later = list("later", "--shard=2/2 .");
    refused(
        &[&one, &later],
        "the tree changed meanwhile, or could not be read",
    );
}

#[test]
fn what_lists_of_parts_could_not_read_is_named() {
    let t = rich();
    let lists = [1, 2].map(|index| {
        let path = file(&t, &format!("list-{index}"));
        t.bc_line(&format!(
            "hash --format=jsonl --shard={index}/2 -o {path} . nowhere"
        ))
        .go()
        .code(1);
        path
    });
    for how in ["-o merged", "--check"] {
        t.bc_line(&format!("integrity merge {how} {} {}", lists[0], lists[1]))
            .go()
            .code(1)
            .stderr_has("nowhere: stat: No such file or directory");
    }
    assert!(t.exists("merged"));
}

/// How long ago is reckoned from the start of each run: a file between could be in no part.
#[test]
fn parts_of_a_tree_have_a_time_and_no_span() {
    let t = rich();
    for command in ["hash --format=jsonl", "integrity manifest"] {
        for (bound, code) in [
            ("--newer=2d", 2),
            ("--older=30m", 2),
            ("--newer=1999-01-01", 0),
        ] {
            let line = format!("{command} --shard=1/2 {bound} .");
            let out = t.bc_line(&line).go();
            let out = out.code(code);
            if code == 2 {
                let option = bound.split('=').next().unwrap();
                out.stderr_has(format!("{option}: how long ago differs"));
            }
        }
    }
}
