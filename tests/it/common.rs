//! Shortcuts for running `bc` in a tree.

use bc_testkit::{Run, TestTree};

/// Path of the binary under test.
pub const BC: &str = env!("CARGO_BIN_EXE_bc");

/// Adds `bc` and `bc_line` to trees.
pub trait Bc {
    /// `bc` without arguments yet.
    fn bc(&self) -> Run;
    /// `bc` with these words as arguments.
    fn bc_line(&self, line: &str) -> Run {
        self.bc().args(line.split_whitespace())
    }
}

impl Bc for TestTree {
    fn bc(&self) -> Run {
        self.run(BC)
    }
}

/// Whether a cache is used for the files of a tree; prints why not.
pub fn is_cached(t: &TestTree) -> bool {
    let traits = bc_fs::mount::basic_traits(std::fs::File::open(t.path()).unwrap());
    let is_used = traits.is_ok_and(|traits| !traits.in_memory);
    if !is_used {
        bc_testkit::left_out("no cache is used for files in memory");
    }
    is_used
}

/// True with the allocator whose memory and locks the limits of tests allow for; prints why not.
pub fn has_measured_allocator() -> bool {
    let is_measured = !cfg!(target_env = "musl");
    if !is_measured {
        let reason =
            "musl's allocator takes more memory than it is asked for, and a lock each time";
        bc_testkit::left_out(reason);
    }
    is_measured
}

/// True in a process of this test's own, which it starts: what it takes away, other tests would
/// lack as well.
pub fn alone(test: &str) -> bool {
    const CHILD: &str = "BC_TEST_ALONE";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let child = bc_testkit::own_program()
        .args(["--exact", test])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}");
    false
}

/// SHA-256 of "abc", RFC 6234.
pub const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// SHA-256 of nothing.
pub const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
