//! `--memory-budget`: results are what they are without one, and what has no room is refused with the
//! figure that is needed.

use bc_testkit::{Outcome, TestTree};

use crate::common::{ABC, BC, Bc, has_measured_allocator};

const FILES: usize = 5000;

/// Many files with long names, some of them equal: more than any budget here has room for.
fn many() -> TestTree {
    let t = TestTree::new();
    let long = "n".repeat(230);
    for index in 0..FILES {
        let content = format!("{:04}", index / 2 * 7 % 1000);
        t.write(format!("d/{}/{long}-{index}", index % 7), content);
    }
    t.write("one/a", "a");
    t
}

/// The commands that read trees. `OLD` is a manifest of the tree.
const LINES: [&str; 7] = [
    "hash --type=xxh128 --output=out d",
    "hash --type=xxh128,xxh3 --format=bsd --output=out d",
    "dup --output=out d",
    "integrity manifest --algorithm=xxh128 --output=out d",
    "integrity verify --output=out d OLD",
    "integrity verify --mode=meta --output=out d OLD",
    "integrity update d OLD",
];

/// One of each kind, over a single file.
const SMALL: [&str; 3] = [
    "hash --type=xxh128 --output=out one",
    "dup --output=out one",
    "integrity manifest --algorithm=xxh128 --output=out one",
];

fn one_thread(line: &str) -> String {
    format!("{line} --threads=mono --io=sync")
}

/// The figure in a refusal.
fn needed(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("at least ")?;
    rest.split(' ').next()?.parse().ok()
}

/// The least budget with which a command runs. What is needed at all is known before the walk, what
/// is needed for the files after it.
fn least(t: &TestTree, line: &str) -> u64 {
    let mut budget = 1;
    for _ in 0..2 {
        let _ = std::fs::remove_file(t.join("out"));
        let ran = t.bc_line(&format!("{line} --memory-budget={budget}")).go();
        let text = ran.error_text();
        let Some(needed) = needed(&text) else {
            break;
        };
        ran.code(2)
            .stdout_is("")
            .stderr_has(format!("--memory-budget: {budget} bytes are too few"));
        assert!(!t.exists("out"), "{line}");
        budget = needed;
    }
    let _ = std::fs::remove_file(t.join("out"));
    budget
}

/// Many files and their manifest.
fn recorded() -> TestTree {
    let t = many();
    t.bc_line("integrity manifest --algorithm=xxh128 --output=kept d")
        .go()
        .code(0);
    t
}

/// Makes `OLD` from what it was, and removes what the last command wrote.
fn afresh(t: &TestTree) {
    let _ = std::fs::remove_file(t.join("out"));
    std::fs::copy(t.join("kept"), t.join("OLD")).unwrap();
}

/// Lines of what a command has written, but for those of a manifest that hold the time: its first
/// and last, and entries that were read again.
fn results(t: &TestTree, line: &str, ran: &Outcome) -> (Vec<Vec<u8>>, Option<i32>) {
    let name = match line.contains("update") {
        true => "OLD",
        false => "out",
    };
    let bytes = t.read(name);
    let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    if line.contains("manifest") || line.contains("update") {
        lines.pop();
        lines.pop();
        lines.remove(0);
        let is_timed = |line: &[u8]| line.windows(4).any(|four| four == b"_at\"");
        lines.retain(|line| !is_timed(line));
        assert!(lines.len() >= FILES, "{} lines", lines.len());
    }
    lines.push(ran.stdout.clone());
    (lines, ran.status.code())
}

#[test]
fn results_within_the_least_budget_are_those_without_one() {
    let t = recorded();
    // Something to update, and something damaged.
    t.write(format!("d/0/{}-0", "n".repeat(230)), "edited");
    for line in LINES {
        afresh(&t);
        let ran = t.bc_line(line).go();
        let expected = results(&t, line, &ran);
        afresh(&t);
        let line = one_thread(line);
        let budget = least(&t, &line);
        afresh(&t);
        assert!(budget <= 4 << 20, "{line}: {budget}");
        let short = format!("{line} --memory-budget={}", budget - 1);
        t.bc_line(&short).go().code(2);
        afresh(&t);
        let ran = t.bc_line(&format!("{line} --memory-budget={budget}")).go();
        let got = results(&t, &line, &ran);
        let mut both = got.0.iter().zip(&expected.0);
        let differ = both.find(|(got, expected)| got != expected);
        assert!(got == expected, "{line}: {differ:?}: {}", ran.error_text());
    }
}

/// A limit that the kernel enforces (`RLIMIT_DATA`) on all memory that no file backs: what the
/// program takes over a single file, the budget, and a little for what is too small to count.
#[test]
fn a_run_needs_no_more_memory_than_its_budget() {
    if !has_measured_allocator() {
        return;
    }
    const STEP: u64 = 64 << 10;
    const LITTLE: u64 = 512 << 10;
    let t = recorded();
    let limited = |bytes: u64, line: &str| {
        let script = format!("ulimit -c 0; ulimit -d {}; exec \"$0\" \"$@\"", bytes >> 10);
        let run = t.run("sh").args(["-c", &script, BC]);
        run.args(line.split_whitespace()).go()
    };
    // What the program takes over one file, buffers and all.
    let base = SMALL.map(|line| {
        let line = one_thread(line);
        let line = format!("{line} --memory-budget={}", least(&t, &line));
        let (mut fails, mut works) = (0, 64 << 20);
        while works - fails > STEP {
            let half = (works + fails) / 2;
            match limited(half, &line).status.code() {
                Some(0) => works = half,
                _ => fails = half,
            }
        }
        works
    });
    for line in LINES {
        let kind = SMALL.iter().position(|small| small[..3] == line[..3]);
        let line = one_thread(line);
        let budget = least(&t, &line);
        let most = base[kind.unwrap()] + budget + LITTLE;
        afresh(&t);
        let ran = limited(most, &format!("{line} --memory-budget={budget}"));
        let code = ran.status.code();
        assert!(
            code < Some(2) && code.is_some(),
            "{line}: {}",
            ran.error_text()
        );
    }
}

/// Commands that compare and translate lists, of which there are `large` ones of the same tree under
/// another name each, and `small` ones of one file.
const OFFLINE: [&str; 5] = [
    "hash diff --output=out SIZE.a SIZE.b",
    "integrity diff --format=json --output=out SIZE.m SIZE.n",
    "integrity import --output=out SIZE.a",
    // It has no way to write any of them: no sizes are known.
    "integrity export --format=hashdeep --output=out SIZE.i",
    "integrity export --format=mtree --output=out SIZE.m",
];

/// Lists of so many files: 240 bytes of path and 64 of digest each, more than any budget here.
fn listed(t: &TestTree, size: &str, files: usize) {
    let long = "n".repeat(230);
    let (mut a, mut b) = (String::new(), String::new());
    for index in 0..files {
        // Not in order, and each in another place than in the other list.
        let index = index * 7919 % files;
        let digest = format!("{:064x}", index * 3 + 1);
        a += &format!("{digest}  a/{}/{long}-{index}\n", index % 7);
        b += &format!("{digest}  b/{}/{long}-{index}\n", index % 11);
    }
    t.write(format!("{size}.a"), a)
        .write(format!("{size}.b"), b);
    t.bc_line(&format!("integrity import --output={size}.i {size}.a"))
        .go()
        .code(0);
    for (list, manifest) in [("a", "m"), ("b", "n")] {
        // With sizes and times, as of a tree.
        let text = t.bc_line(&format!("integrity import {size}.{list}")).go();
        t.write(format!("{size}.{manifest}"), &text.stdout);
    }
}

/// Without a tree there is a budget as well: lists that are gathered and have no room are refused with
/// what they take, which is enough then; others are streamed.
#[test]
fn lists_need_no_more_memory_than_the_budget() {
    const BUDGET: u64 = 512 << 10;
    const STEP: u64 = 256 << 10;
    // What is too small to count; entries that are read ahead of two manifests, however many there
    // are, and changes that wait for others, are most of it.
    const LITTLE: u64 = 1 << 20;
    const AHEAD: u64 = 10 << 20;
    let t = TestTree::new();
    listed(&t, "small", 1);
    listed(&t, "large", 10_000);
    let limited = |bytes: u64, line: &str| {
        let script = format!("ulimit -c 0; ulimit -d {}; exec \"$0\" \"$@\"", bytes >> 10);
        let run = t.run("sh").args(["-c", &script, BC]);
        let _ = std::fs::remove_file(t.join("out"));
        run.args(one_thread(line).split_whitespace()).go()
    };
    for line in OFFLINE {
        let small = line.replace("SIZE", "small");
        let large = line.replace("SIZE", "large");
        let (mut fails, mut works) = (0, 16 << 20);
        while works - fails > STEP {
            let half = (works + fails) / 2;
            match limited(half, &small).status.code() {
                Some(0 | 1) => works = half,
                _ => fails = half,
            }
        }
        let _ = std::fs::remove_file(t.join("out"));
        let expected = t.bc_line(&one_thread(&large)).go();
        let code = expected.status.code();
        assert!(code < Some(2), "{line}: {}", expected.error_text());
        let wanted = t.read("out");
        let ahead = if line.contains(" SIZE.n") { AHEAD } else { 0 };
        let mut budget = BUDGET;
        if !line.contains("SIZE.m") && !line.contains("SIZE.i") {
            let tried = format!("{large} --memory-budget={budget}");
            let refused = limited(works + budget + LITTLE, &tried);
            refused.code(2).stdout_is("");
            assert!(!t.exists("out"), "{line}");
            budget = needed(&refused.error_text()).unwrap();
        }
        let most = works + budget + LITTLE + ahead;
        let ran = limited(most, &format!("{large} --memory-budget={budget}"));
        assert_eq!(ran.status.code(), code, "{line}: {}", ran.error_text());
        let got = t.read("out");
        let same = |line: &[u8]| !line.windows(12).any(|part| part == b"\"created_at\"");
        let [got, wanted] = [got, wanted].map(|bytes| {
            let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
            let mut lines: Vec<Vec<u8>> = lines.filter(|line| same(line)).collect();
            // A manifest's trailer depends on the time in its header.
            lines.retain(|line| !line.starts_with(b"{\"type\":\"trailer\""));
            lines
        });
        assert!(got == wanted, "{line}");
    }
}

/// A limit of file sizes (`ulimit -f`) is a disk without room.
#[test]
fn a_limit_of_file_sizes_is_named() {
    let t = many();
    for line in [
        "hash --type=sha512 --output=out d",
        "integrity manifest --output=out d",
    ] {
        let run = t
            .run("sh")
            .args(["-c", "ulimit -f 100; exec \"$0\" \"$@\"", BC]);
        let ran = run.args(one_thread(line).split_whitespace()).go();
        ran.code(2).stderr_has("File too large (os error 27)");
        assert!(!t.exists("out"));
    }
}

/// A list of names for which there is no room is refused with what it would take, before it is
/// gathered; and what is said to be enough is.
#[test]
fn a_list_to_check_is_refused_before_it_is_gathered() {
    if !has_measured_allocator() {
        return;
    }
    const BUDGET: u64 = 512 << 10;
    const STEP: u64 = 256 << 10;
    const LITTLE: u64 = 1 << 20;
    let t = TestTree::new();
    t.write("there", "abc");
    let mut list = format!("{ABC}  there\n");
    t.write("small", &list);
    for index in 0..40_000 {
        list += &format!("{index:064x}  a/directory/a-name-of-usual-length-{index}\n");
    }
    t.write("large", list);
    let limited = |bytes: u64, line: &str| {
        let script = format!("ulimit -c 0; ulimit -d {}; exec \"$0\" \"$@\"", bytes >> 10);
        let run = t.run("sh").args(["-c", &script, BC, "hash", "check"]);
        run.args(one_thread(line).split_whitespace()).go()
    };
    let (mut fails, mut works) = (0, 64 << 20);
    while works - fails > STEP {
        let half = (works + fails) / 2;
        match limited(half, "small").status.code() {
            Some(0) => works = half,
            _ => fails = half,
        }
    }
    let line = format!("--memory-budget={BUDGET} large");
    let refused = limited(works + BUDGET + LITTLE, &line);
    refused.code(2).stdout_is("");
    let text = refused.error_text();
    assert!(text.contains("large: --memory-budget: "), "{text}");
    let least = needed(&text).unwrap();
    assert!((40_000 * 300..40_000 * 700).contains(&least), "{least}");
    let line = format!("--status --memory-budget={least} large");
    let ran = limited(works + least + LITTLE, &line);
    ran.code(1).stderr_has("No such file or directory");
}
