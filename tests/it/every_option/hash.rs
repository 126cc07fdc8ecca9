//! Options of `bc hash`.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Case;
use super::ground::{Ground, json, output, resume};
use crate::common::ABC;

pub const CASES: &[Case] = &[
    ("hash hash", "type", |g| {
        g.bc("hash hash --type=md5 d/a.c")
            .code(0)
            .stdout_is("900150983cd24fb0d6963f7d28e17f72  d/a.c\n");
    }),
    ("hash hash", "format", |g| {
        g.bc("hash hash --format=bsd d/a.c")
            .code(0)
            .stdout_is(format!("SHA256 (d/a.c) = {ABC}\n"));
    }),
    ("hash hash", "zero", |g| {
        g.bc("hash hash --zero d/a.c")
            .code(0)
            .stdout_is(format!("{ABC}  d/a.c\0"));
    }),
    ("hash hash", "relative", |g| {
        g.bc("hash hash --relative --include=a.c d")
            .code(0)
            .stdout_is(format!("{ABC}  a.c\n"));
    }),
    ("hash hash", "dirs", |g| {
        let out = g.bc("hash hash --dirs --relative d");
        assert!(out.code(0).text().lines().next().unwrap().ends_with("  ./"));
    }),
    ("hash hash", "allow-changed", allow_changed),
    ("hash hash", "output", |g| output(g, "hash hash d")),
    ("hash hash", "resume", |g| resume(g, "hash hash d")),
    ("hash hash", "shard", |g| {
        let parts = [1, 2, 3].map(|index| g.bc(&format!("hash hash --shard={index}/3 d")));
        let lines = parts.iter().map(|part| part.code(0).lines().len());
        assert_eq!(lines.sum::<usize>(), 8);
        g.bc("hash hash --shard=4/3 d")
            .code(2)
            .stderr_has("not I/N");
    }),
    ("hash check", "type", |g| {
        g.bc("hash check sums").code(0);
        g.bc("hash check --type=blake3 sums")
            .code(1)
            .stdout_has("d/a.c: FAILED\n");
    }),
    ("hash check", "ignore-missing", |g| {
        std::fs::remove_file(g.t.join("d/a.c")).unwrap();
        g.bc("hash check sums")
            .code(1)
            .stdout_has("d/a.c: FAILED open or read");
        let out = g.bc("hash check --ignore-missing sums");
        assert!(!out.code(0).text().contains("a.c"), "{out}");
    }),
    ("hash check", "status", |g| {
        g.bc("hash check --status sums").code(0).stdout_is("");
        g.t.write("d/a.c", "other");
        g.bc("hash check --status sums")
            .code(1)
            .stdout_is("")
            .stderr_is("");
    }),
    ("hash check", "strict", |g| {
        g.t.write("sums", g.text("sums") + "nonsense\n");
        g.bc("hash check sums").code(0);
        g.bc("hash check --strict sums").code(1);
    }),
    ("hash check", "warn", |g| {
        g.t.write("sums", g.text("sums") + "nonsense\n");
        let quiet = g.bc("hash check sums");
        assert!(!quiet.error_text().contains("sums:9"), "{quiet}");
        g.bc("hash check --warn sums")
            .stderr_has("9: improperly formatted");
    }),
    ("hash check", "unlisted", |g| {
        g.t.write("d/new", "");
        g.bc("hash check sums").code(0);
        g.bc("hash check --unlisted sums")
            .code(1)
            .stdout_has("d/new: UNLISTED\n");
    }),
    ("hash check", "base", |g| {
        g.bc("hash --relative --output=relative d").code(0);
        g.bc("hash check relative").code(1);
        g.bc("hash check --base=d relative")
            .code(0)
            .stdout_has("a.c: OK\n");
    }),
    ("hash check", "zero", |g| {
        g.t.write_bytes(b"d/new\nline", "abc");
        g.bc("hash --zero --output=zeros d").code(0);
        g.bc("hash check --zero zeros").code(0);
        // Taken as one record, lines are none.
        g.bc("hash check --zero sums").code(1);
    }),
    ("hash diff", "format", |g| {
        let changes = json(&g.bc("hash diff --format=json sums fewer"));
        assert_eq!(changes["changes"].as_array().unwrap().len(), 2);
        // Its content is there under other names.
        assert_eq!(changes["changes"][0]["change"], "MOVED");
    }),
    ("hash diff", "type", |g| {
        g.bc("hash --type=blake3 --output=plain d").code(0);
        g.bc("hash --type=blake3 --format=bsd --output=tagged d")
            .code(0);
        g.bc("hash diff plain tagged").code(2);
        g.bc("hash diff --type=blake3 plain tagged").code(0);
    }),
    ("hash diff", "zero", |g| {
        g.bc("hash --zero --output=zeros d").code(0);
        g.bc("hash --zero --exclude=a.c --output=less d").code(0);
        g.bc("hash diff --zero zeros less")
            .code(1)
            .stdout_is("MOVED d/a.c -> d/.h.c\n");
    }),
    ("hash diff", "output", |g| output(g, "hash diff sums fewer")),
];

/// A file whose time changes all the while it is read.
fn allow_changed(g: &Ground) {
    let file = std::fs::File::create(g.t.join("busy")).unwrap();
    file.set_len(64 << 20).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seconds = 1_000_000_000;
            while !done.load(Ordering::Relaxed) {
                g.t.mtime("busy", seconds, 0);
                seconds += 1;
            }
        });
        let refused = g.bc("hash --type=xxh3 busy");
        let allowed = g.bc("hash --type=xxh3 --allow-changed busy");
        done.store(true, Ordering::Relaxed);
        refused
            .code(1)
            .stdout_is("")
            .stderr_has("busy: read: changed while reading");
        allowed.code(0).stdout_has("  busy\n");
    });
}
