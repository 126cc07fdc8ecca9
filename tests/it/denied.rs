//! Systems that refuse system calls, as containers do, and the calls of tiny runs.

use std::collections::BTreeMap;

use bc_testkit::{TestTree, left_out, tool};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::common::Bc;

/// Runs `test` on a thread where `calls` fail with `errno`; programs it starts inherit that.
pub fn without(calls: &[libc::c_long], errno: i32, test: impl FnOnce() + Send) {
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    filtered(rules, errno, test);
}

/// Runs `test` where no file can be made without a name, as on NFS and FUSE.
pub fn without_nameless_files(test: impl FnOnce() + Send) {
    let nameless = libc::O_TMPFILE as u64;
    let asks = SeccompCmpOp::MaskedEq(nameless);
    let flags = SeccompCondition::new(2, SeccompCmpArgLen::Dword, asks, nameless).unwrap();
    let rule = SeccompRule::new(vec![flags]).unwrap();
    let rules = [(libc::SYS_openat, vec![rule])].into();
    filtered(rules, libc::EOPNOTSUPP, test);
}

/// Runs `test` where there are no leases, as on NFS and FUSE.
pub fn without_leases(test: impl FnOnce() + Send) {
    let set = libc::F_SETLEASE as u64;
    let asks = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, set).unwrap();
    let rule = SeccompRule::new(vec![asks]).unwrap();
    let rules = [(libc::SYS_fcntl, vec![rule])].into();
    filtered(rules, libc::EINVAL, test);
}

fn filtered(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32, test: impl FnOnce() + Send) {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            apply_filter(&program).unwrap();
            test();
        });
        thread.join().unwrap();
    });
}

#[test]
fn without_io_uring_the_output_is_the_same() {
    let t = TestTree::new();
    bc_testkit::Synth {
        files: 200,
        bytes: 4 << 20,
        ..bc_testkit::Synth::default()
    }
    .build(t.path())
    .unwrap();
    let expected = t.bc_line("hash . --threads=mono --io=sync").go();
    for (errno, reason) in [
        (libc::EPERM, "(os error 1)"),
        (libc::ENOSYS, "(os error 38)"),
    ] {
        without(&[libc::SYS_io_uring_setup], errno, || {
            for threads in ["mono", "2", "8"] {
                t.bc_line("hash . --threads")
                    .arg(threads)
                    .go()
                    .code(0)
                    .stderr_is("")
                    .stdout_is(&expected.stdout);
            }
            t.bc_line("hash . -v")
                .go()
                .code(0)
                .stderr_has("io_uring is not used")
                .stderr_has(reason);
            t.bc_line("hash . --io=uring")
                .go()
                .code(2)
                .stdout_is("")
                .stderr_has("--io=uring")
                .stderr_has(reason);
        });
    }
    without(
        &[libc::SYS_openat2, libc::SYS_statx, libc::SYS_preadv2],
        libc::ENOSYS,
        || {
            t.bc_line("hash .").go().code(0).stdout_is(&expected.stdout);
        },
    );
}

#[test]
fn a_small_tree_starts_no_thread_and_no_ring() {
    let Some(strace) = tool("strace") else {
        return left_out("strace is not installed");
    };
    let t = TestTree::new();
    for i in 0..10 {
        t.write(format!("f{i}"), "x");
    }
    let log = t.scratch("strace.log");
    let out = t
        .run(strace)
        .args(["-f", "-o"])
        .arg(&log)
        .arg(crate::common::BC)
        .args(["hash", "."])
        .go();
    if out.status.code() != Some(0) {
        return left_out(&format!("strace cannot trace here: {}", out.error_text()));
    }
    let calls = std::fs::read_to_string(log).unwrap();
    assert!(calls.contains("execve("), "{calls}");
    for call in ["clone(", "clone3(", "io_uring_setup("] {
        assert!(!calls.contains(call), "{call} in\n{calls}");
    }
}

/// However few descriptors there are, each file is read or reported. Where a directory took the
/// last one, the open of a file in it used to be tried again for ever.
#[test]
fn few_descriptors_take_no_file_and_no_end_away() {
    let t = TestTree::new();
    for index in 0..400 {
        t.write(format!("{:02}/{index:03}", index / 8), vec![b'x'; 60]);
    }
    let mut complete = 0;
    for left in 1..=21 {
        let limit = 3 + left;
        for options in [
            "--threads=1",
            "--threads=3",
            "--threads=1 --algorithm=sha256",
        ] {
            let line = format!("ulimit -n {limit} && exec \"$0\" dup {options} .");
            let run = std::process::Command::new("sh")
                .args(["-c", &line, crate::common::BC])
                .current_dir(t.path())
                .output()
                .unwrap();
            let found = run.stdout.iter().filter(|&&byte| byte == b'\n').count();
            let reported = String::from_utf8_lossy(&run.stderr);
            match run.status.code() {
                Some(0) => {
                    assert_eq!((found, &*reported), (400, ""), "{line}");
                    complete += 1;
                }
                // The loader and the start of the program need some, too.
                code => {
                    assert!(code.is_some_and(|code| code > 0), "{line}: {code:?}");
                    let is_said = reported.contains("oo many open files")
                        || reported.contains("too few open files are allowed");
                    assert!(is_said || left < 3, "{line}: {reported}");
                }
            }
        }
    }
    // With 12 of them or more, unless whoever started the test left some open as well.
    assert!((20..=30).contains(&complete), "{complete}");
}
