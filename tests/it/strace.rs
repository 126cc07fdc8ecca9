//! Runs of `bc` in which one system call is the last, or fails.

use std::collections::BTreeMap;

use bc_testkit::{Outcome, Run, TestTree, left_out, tool};

use crate::common::BC;

/// Whether `strace` is there and may trace; says so if not.
pub fn is_able() -> bool {
    if tool("strace").is_none() {
        left_out("strace is not installed");
        return false;
    }
    let t = TestTree::new();
    let traced = t
        .run("strace")
        .args(["-f", "-qq", "-o", "../log", "true"])
        .go();
    let able = traced.status.success();
    if !able {
        left_out(&format!(
            "strace may not trace here: {}",
            traced.error_text()
        ));
    }
    able
}

fn traced(t: &TestTree, options: &[&str], line: &str) -> Run {
    t.run("strace")
        .args(["-f", "-qq", "-o", "../log"])
        .args(options)
        .args([BC])
        .args(line.split_whitespace())
        .arg("--threads=mono")
}

/// `bc LINE`, whose `n`th `call` meets `fate`: `signal=KILL` or `error=EIO`.
pub fn injected(t: &TestTree, call: &str, fate: &str, n: usize, line: &str) -> Outcome {
    // A version that does not know a call traces none.
    let trace = format!("trace=?{call}");
    let inject = format!("inject=?{call}:{fate}:when={n}");
    traced(t, &["-e", &trace, "-e", &inject], line).go()
}

/// All calls of an undisturbed `bc LINE`: name and what the log says of each.
pub fn all_calls(t: &TestTree, line: &str) -> Vec<(String, String)> {
    traced(t, &[], line).go();
    let log = std::fs::read_to_string(t.scratch("log")).unwrap();
    let call = |text: &str| {
        let begun = text.split_once(' ')?.1.trim_start();
        let name = begun.split_once('(')?.0;
        let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        is_name.then(|| (name.to_owned(), begun.to_owned()))
    };
    log.lines().filter_map(call).collect()
}

/// `bc LINE`, for which no call reads anything of the file at `path`: as from a medium that is lost.
pub fn unreadable(t: &TestTree, path: &str, line: &str) -> Outcome {
    let path = t.join(path);
    let path = path.to_str().unwrap();
    let (trace, inject) = (
        "trace=?read,?pread64,?preadv2",
        "inject=?read,?pread64,?preadv2:error=EIO",
    );
    traced(t, &["-P", path, "-e", trace, "-e", inject], line).go()
}

/// How often an undisturbed `bc LINE` makes each of these calls; those that it makes.
pub fn counted(t: &TestTree, calls: &[&'static str], line: &str) -> BTreeMap<&'static str, usize> {
    let trace = format!("trace=?{}", calls.join(",?"));
    traced(t, &["-e", &trace], line).go();
    let log = std::fs::read_to_string(t.scratch("log")).unwrap();
    let mut found = BTreeMap::new();
    for line in log.lines() {
        // A process number stands before each call.
        let call = line.split(['(', ' ']).find(|word| calls.contains(word));
        if let Some(call) = calls.iter().find(|name| Some(**name) == call) {
            *found.entry(*call).or_default() += 1;
        }
    }
    found
}

/// Bytes that `bc LINE` reads of files whose path holds `part`, by any call.
pub fn read_of(t: &TestTree, part: &str, line: &str) -> u64 {
    let calls = "trace=?read,?pread64,?readv,?preadv,?preadv2,?copy_file_range,?sendfile,?splice";
    traced(t, &["-y", "-e", calls], line).go().code(0);
    let log = std::fs::read_to_string(t.scratch("log")).unwrap();
    let of = |line: &&str| {
        let arguments = line.split_once('(').map_or("", |(_, rest)| rest);
        // The file that is read comes first.
        let first = arguments.split_once('>').map_or("", |(first, _)| first);
        first.contains(part)
    };
    let bytes = |line: &str| line.rsplit_once("= ")?.1.trim().parse::<u64>().ok();
    log.lines().filter(of).filter_map(bytes).sum()
}
