//! Options of `bc install`.

use super::Case;
use super::ground::inode;

pub const CASES: &[Case] = &[
    ("install", "symbolic", |g| {
        g.t.dir("bin");
        g.bc("install --symbolic bin").code(0);
        assert!(g.t.join("bin/bchash").is_symlink());
        g.bc("install --symbolic --hard bin").code(2);
    }),
    ("install", "hard", |g| {
        // Hard links do not cross file systems, so the program comes along.
        let program = g.t.join("bc-of-mine");
        let copied = std::process::Command::new("cp")
            .arg(crate::common::BC)
            .arg(&program)
            .status();
        assert!(copied.unwrap().success());
        g.t.dir("bin");
        let out = g.t.run(&program).args(["install", "--hard", "bin"]).go();
        out.code(0);
        assert_eq!(inode(g, "bin/bchash"), inode(g, "bc-of-mine"));
    }),
    ("install", "force", |g| {
        g.t.write("bin/bchash", "somebody's");
        g.bc("install bin").code(2);
        g.bc("install --force bin").code(0);
        assert!(g.t.join("bin/bchash").is_symlink());
    }),
    ("install", "gnu", |g| {
        g.t.dir("bin");
        g.bc("install --gnu bin")
            .code(0)
            .stdout_has("bin/sha256sum\n");
        assert!(g.t.join("bin/sha256sum").is_symlink());
        assert!(!g.t.exists("bin/bchash"));
    }),
    ("install", "remove", |g| {
        g.t.dir("bin");
        g.bc("install bin").code(0);
        g.bc("install --remove bin")
            .code(0)
            .stdout_has("bin/bchash\n");
        assert!(!g.t.join("bin/bchash").is_symlink());
        g.bc("install --remove --force bin").code(2);
    }),
    ("install", "mkdir", |g| {
        g.bc("install bin")
            .code(2)
            .stderr_has("--mkdir creates it\n");
        g.bc("install --mkdir bin").code(0).stdout_has("made bin\n");
        assert!(g.t.join("bin/bchash").is_symlink());
        g.bc("install --remove --mkdir bin").code(0);
        assert!(!g.t.exists("bin"));
    }),
];
