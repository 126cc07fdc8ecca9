//! Options of `bc copy`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::Case;
use super::ground::Ground;

pub const CASES: &[Case] = &[
    ("copy", "on-conflict", |g| {
        g.t.write("to/a.c", "mine");
        g.bc("copy -T d to")
            .code(1)
            .stderr_has("to/a.c: create: File exists");
        assert_eq!(g.text("to/a.c"), "mine");
        for (policy, content) in [("skip", "mine"), ("update", "mine"), ("verify", "abc")] {
            g.t.write("to/a.c", "mine");
            let line = format!("copy -T --on-conflict={policy} d to");
            g.bc(&line).code(0);
            assert_eq!(g.text("to/a.c"), content, "{policy}");
        }
        g.t.write("to/a.c", "mine");
        g.bc("copy -T --on-conflict=replace d to").code(0);
        assert_eq!(g.text("to/a.c"), "abc");
    }),
    ("copy", "verify", |g| {
        g.bc("copy --verify=read d to").code(0);
        g.bc("copy --verify=media d to3").code(0);
        assert_eq!(g.text("to3/a.c"), "abc");
        g.bc("copy --verify=read --algorithm=none d to2")
            .code(2)
            .stderr_has("digest");
    }),
    ("copy", "sync", |g| {
        for when in ["none", "end", "batch", "file"] {
            g.bc(&format!("copy --sync={when} d to-{when}")).code(0);
            assert_eq!(g.text(&format!("to-{when}/a.c")), "abc");
        }
    }),
    ("copy", "preserve", |g| {
        let mode = |name: &str| g.t.join(name).metadata().unwrap().mode() & 0o777;
        let time = |name: &str| g.t.join(name).metadata().unwrap().mtime();
        std::fs::set_permissions(g.t.join("d/a.c"), PermissionsExt::from_mode(0o741)).unwrap();
        g.t.mtime("d/a.c", 1_000_000_000, 0);
        g.bc("copy d all").code(0);
        assert_eq!((mode("all/a.c"), time("all/a.c")), (0o741, 1_000_000_000));
        g.bc("copy --preserve=times d times").code(0);
        assert_eq!(time("times/a.c"), 1_000_000_000);
        g.bc("copy --preserve=none d none").code(0);
        assert_ne!(time("none/a.c"), 1_000_000_000);
        g.bc("copy --preserve=colour d x")
            .code(2)
            .stderr_has("xattrs");
    }),
    ("copy", "strict-metadata", |g| {
        // What cannot be given is hard to come by everywhere: what can be is no failure.
        g.bc("copy --strict-metadata d to").code(0);
    }),
    ("copy", "reflink", |g| {
        g.bc("copy --reflink=never d to").code(0);
        let out = g.bc("copy --reflink=always d to2");
        assert!(matches!(out.status.code(), Some(0 | 1)), "{out}");
        if out.status.code() == Some(1) {
            out.stderr_has(": clone: ");
        }
    }),
    ("copy", "sparse", |g| {
        g.t.write("zeros", vec![0; 1 << 20]);
        let blocks = |name: &str| g.t.join(name).metadata().unwrap().blocks();
        g.bc("copy --sparse=always zeros always").code(0);
        g.bc("copy --sparse=never always never").code(0);
        assert_eq!(g.t.read("always"), g.t.read("never"));
        assert!(blocks("always") < blocks("never"));
    }),
    ("copy", "algorithm", |g| {
        g.bc("copy --algorithm=md5 d to").code(0);
        let manifest = g.text("to/.bc-copy-manifest.jsonl");
        assert!(manifest.contains("900150983cd24fb0d6963f7d28e17f72"));
        g.bc("copy --algorithm=none d to2").code(0);
        assert!(!g.t.join("to2/.bc-copy-manifest.jsonl").exists());
    }),
    ("copy", "manifest", |g| {
        g.bc("copy --manifest=list.jsonl d to").code(0);
        assert!(!g.t.join("to/.bc-copy-manifest.jsonl").exists());
        g.bc("integrity verify to list.jsonl").code(0).stdout_is("");
        g.bc("copy --manifest=none d to2").code(0);
        assert!(!g.t.join("to2/.bc-copy-manifest.jsonl").exists());
    }),
    ("copy", "restart", |g| {
        g.t.write("to/a.c", "mine");
        g.bc("copy -T d to").code(1);
        let again = |option: &str| {
            g.metric(
                &format!("copy -T {option} --on-conflict=skip d to"),
                "copy_before",
            )
        };
        // The second is over: nothing is left to go on from.
        assert!(again("") > 0);
        g.t.write("other/a.c", "mine");
        g.bc("copy -T d other").code(1);
        let line = "copy -T --restart --on-conflict=skip d other";
        assert_eq!(g.metric(line, "copy_before"), 0);
    }),
    ("copy", "to", |g| {
        g.bc("copy d one --to=two --to=three").code(0);
        g.bc("copy d --to=four").code(0);
        for to in ["one", "two", "three", "four"] {
            assert_eq!(g.text(&format!("{to}/a.c")), "abc");
        }
    }),
    ("copy", "no-target-directory", |g| {
        g.t.dir("to").dir("to2");
        g.bc("copy d to").code(0);
        assert_eq!(g.text("to/d/a.c"), "abc");
        g.bc("copy --no-target-directory d to2").code(0);
        assert_eq!(g.text("to2/a.c"), "abc");
    }),
    ("copy", "dry-run", |g| {
        g.bc("copy --dry-run d to").code(0).stdout_has("+ to/a.c\n");
        assert!(!g.t.join("to").exists());
    }),
    ("copy", "itemize", |g| {
        g.t.write("to/a.c", "mine");
        g.bc("copy -T --itemize --on-conflict=replace d to")
            .code(0)
            .stdout_has("~ to/a.c\n")
            .stdout_has("+ to/sub/b.c\n");
        g.bc("copy -T --itemize --on-conflict=skip d to")
            .code(0)
            .stdout_has("= to/a.c: exists\n");
    }),
];

/// Letters of cp that mean something else are answered with the option that does it.
#[test]
fn letters_of_cp() {
    let g = Ground::new();
    for (letter, answer) in [
        ("-n", "--on-conflict=skip"),
        ("-i", "--on-conflict"),
        ("-u", "--on-conflict=update"),
        ("-b", "--on-conflict"),
        ("-l", "--reflink"),
        ("-s", "ln -s"),
    ] {
        g.bc(&format!("copy {letter} d to"))
            .code(2)
            .stderr_has(answer);
        assert!(!g.t.join("to").exists());
    }
    g.bc("copy -aRrpdvx d to").code(0);
    g.bc("copy -f -T d to").code(0);
}
