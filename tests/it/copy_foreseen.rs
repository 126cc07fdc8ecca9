//! What `bc copy` says: lines whose names end no line, a manifest to standard output, links that a
//! mount parts, and refusals that a dry run foresees.

use bc_testkit::{TestTree, is_root, left_out};
use rustix::io::Errno;

use crate::common::Bc;
use crate::file_systems::script;

#[test]
fn each_line_has_one_name_wherever_it_goes() {
    let t = TestTree::new();
    t.write_bytes(b"r/new\nline", "1")
        .write_bytes(b"r/\x1b[31m\xff\\", "2");
    let lines = "+ to\n+ to/\\x1b[31m\\xff\\\\\n+ to/new\\nline\n";
    t.bc_line("copy --itemize --dry-run r to")
        .go()
        .code(0)
        .stdout_is(lines);
    t.bc_line("copy --itemize r to")
        .go()
        .code(0)
        .stdout_is(lines);
    let out = t.bc_line("dup r to").go();
    out.stdout_is("r/\\x1b[31m\\xff\\\\\nto/\\x1b[31m\\xff\\\\\n\nr/new\\nline\nto/new\\nline\n");
    t.write_bytes(b"one/new\nline", "alone");
    let unique = |more: &str| {
        t.bc_line(&format!("dup unique {more} one --reference=r"))
            .go()
    };
    unique("").stdout_is("one/new\\nline\n");
    assert_eq!(unique("-0").stdout, b"one/new\nline\0");
    let dirs = t
        .write_bytes(b"a\nb/f", "x")
        .write_bytes(b"c\nd/f", "x")
        .bc_line("dup dirs .")
        .go();
    assert!(dirs.text().contains("./a\\nb/\n./c\\nd/\n"), "{dirs}");
}

#[test]
fn a_dash_is_standard_output() {
    let t = TestTree::new();
    t.write("r/a", "abc");
    let out = t.bc_line("copy --manifest=- r to").go();
    out.code(0);
    assert!(
        !t.exists("-") && out.text().starts_with("{\"type\":\"header\""),
        "{out}"
    );
    t.write("m", out.text());
    t.bc_line("integrity verify to m").go().code(0);
    t.bc_line("copy --manifest=- --itemize r other")
        .go()
        .code(2)
        .stderr_has("--itemize");
    assert!(!t.exists("other"));
    let closed = t
        .run("sh")
        .args(["-c", "\"$0\" copy --manifest=- r other >&-"]);
    closed.arg(crate::common::BC).go().code(2);
    assert!(!t.exists("other"));
}

/// The manifest of a tree that is itself a copy is not that of the next one.
#[test]
fn a_manifest_that_is_not_copied_is_named() {
    let t = TestTree::new();
    t.write("r/a", "abc");
    t.bc_line("copy r one").go().code(0);
    for line in ["copy --dry-run one two", "copy one two"] {
        let says = "one/.bc-copy-manifest.jsonl: is not copied: the manifest of this copy";
        t.bc_line(line).go().code(0).stderr_has(says);
    }
}

#[test]
fn a_link_on_the_way_is_named() {
    let t = TestTree::new();
    t.write("r/d/e/f", "abc")
        .write("r/k/f", "abc")
        .dir("elsewhere")
        .write("to/k", "file");
    t.symlink("../elsewhere", "to/d");
    for line in ["copy -T --dry-run r to", "copy -T r to"] {
        t.bc_line(line)
            .go()
            .code(1)
            .stderr_has("to/d: mkdir: is a symbolic link there, which is not followed")
            .stderr_has(
                "to/d/e/f: open directory: to/d is a symbolic link there, which is not followed",
            )
            .stderr_has("to/k/f: open directory: to/k is no directory there");
    }
}

/// Names on each side of a mount are one file there, and that is all that can be.
#[test]
fn links_across_a_mount_are_reported() {
    let t = TestTree::new();
    t.write("r/a", "abc").dir("r/m").dir("to/m");
    for name in ["m/b", "m/c", "z"] {
        t.hard_link("r/a", format!("r/{name}"));
    }
    let text = "mount -t tmpfs none to/m || { echo cannot mount >&2; exit 77; }
        $BC copy -T r to; stat -c %h to/a to/m/b to/m/c to/z; $BC copy -T r to
        rm -r to/a to/z to/m/*; $BC copy --strict-metadata --restart -T r to || echo rc $?";
    let Some(out) = script(&t, text) else { return };
    out.stdout_is("2\n2\n2\n2\nrc 1\n")
        .stderr_has(format!("to/m/b: link: {}", Errno::XDEV))
        .stderr_has("1 property could not be given");
}

#[test]
fn a_dry_run_finds_what_would_be_refused() {
    let t = TestTree::new();
    t.write("r/a", "abc")
        .write("r/closed", "abc")
        .write("r/d/f", "abc");
    t.mode("r/closed", 0o000)
        .dir("own")
        .mode("own", 0o755)
        .dir("open")
        .mode("open", 0o777);
    if !is_root() {
        left_out("only root can act for another user");
    } else {
        let dry = |to: &str| {
            t.bc_line(&format!("copy --dry-run r {to}"))
                .as_nobody()
                .go()
        };
        let open = dry("open");
        open.code(1)
            .stderr_has("r/closed: open: Permission denied")
            .stderr_has("4 copied, 1 failed");
        let own = dry("own");
        own.code(1).stderr_has("own/r: mkdir: Permission denied");
        own.stderr_has("own/r/a: make its directory: Permission denied");
        // Nobody's directory in one that nobody has: there is no list to be removed.
        t.dir("open/r").mode("open/r", 0o777);
        let run = t.bc_line("copy -T r open/r").as_nobody().go();
        assert!(!run.error_text().contains("inherited"), "{run}");
    }
    let text = "mkdir ro small; mount -t tmpfs -o ro none ro || { echo cannot mount >&2; exit 77; }
        mount -t tmpfs -o size=64k none small; head -c 100000 /dev/zero | tr '\\0' x > r/large
        $BC copy --dry-run r ro || echo rc $?; $BC copy --dry-run r small || echo rc $?";
    let Some(out) = script(&t, text) else { return };
    let text = out.text();
    assert!(
        text.starts_with("rc 2\n+ small/r\n") && text.ends_with("/large\n"),
        "{out}"
    );
    out.stderr_has("ro/r: mkdir: Read-only file system")
        .stderr_has("small: 100009 bytes are to be copied");
}

/// A reason of ours has no number of the system's.
#[test]
fn a_manifest_that_is_not_replaced_says_why() {
    let t = TestTree::new();
    t.write("r/a", "abc").dir("to");
    if !is_root() {
        return left_out("only root can give files to others");
    }
    t.bc_line("copy r to").go().code(0);
    let manifest = t.join("to/.bc-copy-manifest.jsonl");
    std::os::unix::fs::chown(&manifest, Some(65534), None).unwrap();
    t.mode("to", 0o1777).write("r/b", "abc");
    let out = t.bc_line("copy r to").go();
    out.code(2).stderr_has("belongs to user 65534");
}
