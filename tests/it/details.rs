//! What `-vv` says: what was decided and why, what each file system is taken for, and what was left
//! out for which reason.

use bc_testkit::{Outcome, TestTree};

use crate::common::Bc;

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("r/a", "alike")
        .write("r/b", "alike")
        .write("r/.hidden/c", "hidden")
        .write("r/x.tmp", "excluded")
        .write("r/large", "x".repeat(1000))
        .symlink("a", "r/link\nname")
        .fifo("r/pipe");
    t.bc_line("hash r/a r/b -o sums").go().code(0);
    t.bc_line("integrity manifest r -o m").go().code(0);
    t
}

/// The lines of stderr that have `part` in them.
fn lines(out: &Outcome, part: &str) -> Vec<String> {
    let text = out.error_text();
    let found = text.lines().filter(|line| line.contains(part));
    found.map(str::to_owned).collect()
}

const FILTERS: &str = "--no-hidden --exclude=*.tmp --max-size=500";

/// Each path that a filter takes, with the filter; none of it with `-v`.
#[test]
fn what_is_left_out_is_named() {
    let t = tree();
    for (applet, command, links) in [
        ("hash", "hash", true),
        ("dup", "dup", true),
        ("integrity", "integrity manifest", false),
    ] {
        let out = t.bc_line(&format!("{command} -vv {FILTERS} r")).go();
        let mut expected = vec![
            "r/.hidden: left out: hidden (--no-hidden)",
            "r/large: left out: too large (--max-size)",
            "r/x.tmp: left out: excluded (--exclude)",
        ];
        if links {
            expected.insert(2, "r/link\\nname: left out: a symbolic link");
            expected.insert(3, "r/pipe: left out: a device, FIFO or socket");
        }
        let expected = expected.iter().map(|line| format!("bc {applet}: {line}"));
        let expected: Vec<String> = expected.collect();
        let named = lines(out.code(0), ": left out: ");
        let named: Vec<_> = named
            .into_iter()
            .filter(|l| !l.contains("walk: "))
            .collect();
        assert_eq!(named, expected, "{out}");
        let counted = t.bc_line(&format!("{command} -v {FILTERS} r")).go();
        let walk = lines(counted.code(0), "walk: ");
        assert_eq!(walk.len(), 1, "{counted}");
        assert!(
            walk[0].contains("1 hidden, 1 excluded, 1 too large"),
            "{walk:?}"
        );
        assert_eq!(lines(&counted, "left out: hidden"), [""; 0], "{counted}");
    }
}

/// Whoever lists or checks files learns what their file system is taken for, once.
#[test]
fn each_file_system_is_described_once() {
    let t = tree();
    for line in [
        "hash r",
        "hash check sums",
        "dup r",
        "dup summary r",
        "dup prune --action=hardlink --dry-run r",
        "integrity manifest r",
        "integrity verify r m",
        "integrity update r m",
    ] {
        let out = t.bc_line(line).arg("-vv").go();
        let reported = lines(out.code(0), "file system of r: ");
        assert_eq!(reported.len(), 1, "{out}");
        for word in ["inode numbers ", "change times are ", "shared extents: "] {
            assert!(reported[0].contains(word), "{out}");
        }
        assert_eq!(
            lines(&t.bc_line(line).arg("-v").go(), "file system of"),
            [""; 0]
        );
    }
}

#[test]
fn decisions_have_their_reasons() {
    let t = tree();
    let reads = |line: &str, why: &str| {
        let out = t.bc_line(line).arg("-vv").go();
        let reported = lines(out.code(0), "threads: ");
        assert!(
            reported.iter().any(|line| line.ends_with(why)),
            "{why}{out}"
        );
    };
    reads("hash r/a", "at most 1 thread: more would not pay");
    reads("hash r --threads=3", "at most 3 threads: as --threads says");
    reads("dup r --threads=3", "at most 3 threads: as --threads says");
    reads(
        "integrity verify r m --threads=3",
        "at most 3 threads: as --threads says",
    );
    let settings = |run: bc_testkit::Run| lines(run.go().code(0), "settings: ");
    let line = "bc hash: settings: the command line alone";
    let alone = t
        .bc_line("hash r -vv")
        .env("XDG_CONFIG_HOME", t.join("none"));
    assert_eq!(settings(alone), [line]);
    t.write("config", "io = \"sync\"\n");
    let run = t.bc_line("hash r -vv --config=config");
    let run = run.env("BC_THREADS", "1").env("BC_COLOR", "never");
    let line = "bc hash: settings: config, BC_COLOR, BC_THREADS";
    assert_eq!(settings(run), [line]);
    let out = t.bc_line("hash r -vv --io=sync").go();
    assert_eq!(
        lines(&out, "reader: plain calls, as --io says").len(),
        1,
        "{out}"
    );
    let out = t.bc_line("integrity verify r m -vv --mode=content").go();
    assert_eq!(
        lines(&out, "compare: mode content, ignored: ").len(),
        1,
        "{out}"
    );
}
