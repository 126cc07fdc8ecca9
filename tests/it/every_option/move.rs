//! Options of `bc move`.

use super::Case;

pub const CASES: &[Case] = &[
    ("move", "on-conflict", |g| {
        g.t.write("to/a.c", "mine");
        g.bc("move -T d to")
            .code(1)
            .stderr_has("to/a.c: create: File exists");
        assert_eq!(g.text("to/a.c"), "mine");
        g.bc("move -T --on-conflict=skip d to").code(1);
        assert_eq!((&*g.text("to/a.c"), &*g.text("d/a.c")), ("mine", "abc"));
        g.bc("move -T --on-conflict=replace d to").code(0);
        assert_eq!(g.text("to/a.c"), "abc");
        assert!(!g.t.exists("d"));
    }),
    ("move", "verify", |g| {
        g.bc("move --verify=read d to").code(0);
        g.bc("move --verify=none to to2").code(0);
        assert_eq!(g.text("to2/a.c"), "abc");
    }),
    ("move", "sync", |g| {
        g.bc("move --sync=end d to").code(0);
        g.bc("move --sync to to2").code(0);
        g.bc("move --sync=none to2 to3").code(2).stderr_has("disk");
        assert_eq!(g.text("to2/a.c"), "abc");
    }),
    ("move", "preserve", |g| {
        g.bc("move --preserve=mode d to").code(0);
        g.bc("move --preserve=colour to x")
            .code(2)
            .stderr_has("xattrs");
    }),
    ("move", "strict-metadata", |g| {
        g.bc("move --strict-metadata d to").code(0);
    }),
    ("move", "allow-lossy", |g| {
        g.bc("move --allow-lossy d to").code(0);
    }),
    ("move", "reflink", |g| {
        g.bc("move --reflink=never d to").code(0);
    }),
    ("move", "sparse", |g| {
        g.bc("move --sparse=always d to").code(0);
    }),
    ("move", "algorithm", |g| {
        g.bc("move --algorithm=none d to")
            .code(2)
            .stderr_has("digest");
        g.bc("move --algorithm=md5 d to").code(0);
    }),
    ("move", "manifest", |g| {
        g.bc("move --manifest=none d to").code(0);
        assert!(!g.t.exists("to/.bc-copy-manifest.jsonl"));
    }),
    ("move", "restart", |g| {
        g.bc("move --restart d to").code(0);
    }),
    ("move", "no-target-directory", |g| {
        g.t.dir("to").dir("to2");
        g.bc("move --no-target-directory d to").code(0);
        assert_eq!(g.text("to/a.c"), "abc");
        g.bc("move to to2").code(0);
        assert_eq!(g.text("to2/to/a.c"), "abc");
    }),
    ("move", "dry-run", |g| {
        g.bc("move --dry-run d to").code(0).stdout_is("+ to\n");
        assert!(!g.t.exists("to"));
    }),
    ("move", "itemize", |g| {
        g.t.write("to/a.c", "mine");
        g.bc("move -T --itemize --on-conflict=replace d to")
            .code(0)
            .stdout_has("~ to/a.c\n")
            .stdout_has("+ to/sub\n");
    }),
];
