//! `bc copy`, killed at each system call that changes something: no name ever leads to half a file,
//! and the same command completes the copy and leaves nothing behind.

use std::os::unix::process::ExitStatusExt;

use bc_testkit::{Rng, TestTree};

use crate::common::Bc;
use crate::copy_trees::{
    complete, is_over, litter, nothing_is_half_done, points, rich, spread, tree,
};
use crate::strace;

/// At moments that nobody has chosen, again and again into the same destination.
#[test]
fn killed_at_random_moments_it_comes_to_its_end() {
    let mut rng = Rng::new(17);
    for round in 0..3 {
        let t = tree();
        for number in 0..400_u32 {
            let content = vec![number as u8; (number as usize * 37) % 9000];
            t.write(format!("r/many/{}/{number}", number % 13), content);
        }
        let line = format!("copy --sync={} r to", ["none", "batch", "file"][round]);
        let mut kills = 0;
        let done = loop {
            let mut run = t.bc_line(&line).command().spawn().unwrap();
            let wait = 1 + rng.next_u64() % (10 + kills * 10);
            std::thread::sleep(std::time::Duration::from_millis(wait));
            let _ = run.kill();
            let status = run.wait().unwrap();
            nothing_is_half_done(&t, "to", &format!("{line}: {kills}"));
            // Killed behind its end, when nothing but a message was left, it is over too.
            if status.signal() != Some(9) || is_over(&t, "to") {
                break status;
            }
            kills += 1;
        };
        let code = done.code().unwrap_or(0);
        assert_eq!(code, 0, "{line}: {kills}");
        complete(&t, "to", &format!("{line}: {kills}"));
    }
}

/// Calls that change nothing: to be killed there is to be killed at the next one that does.
const PURE: &str = "
    access arch_prctl brk clock_gettime clock_nanosleep clone clone3 close dup
    epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 execve exit exit_group
    fadvise64 fcntl fgetxattr flistxattr flock fstat fstatfs futex getcwd getdents64
    getegid geteuid getgid getpid getrandom gettid getuid getxattr lgetxattr
    llistxattr lseek madvise mmap mprotect mremap munmap newfstatat openat2 pipe2
    poll prctl pread64 prlimit64 read readlink readlinkat rseq rt_sigaction
    rt_sigprocmask sched_getaffinity set_robust_list set_tid_address sigaltstack
    statx";

/// The calls of a run that may change something, each with its number among those of its name.
pub fn changing(t: &TestTree, line: &str) -> Vec<(String, usize)> {
    let mut counts = std::collections::HashMap::new();
    let mut found = Vec::new();
    for (call, text) in strace::all_calls(t, line) {
        let nth = counts.entry(call.clone()).or_insert(0);
        *nth += 1;
        let opens = call == "openat" && !text.contains("O_CREAT") && !text.contains("O_TMPFILE");
        if !opens && !PURE.split_whitespace().any(|pure| pure == call) {
            found.push((call, *nth));
        }
    }
    found
}

/// Kills a copy of such a tree at `few` of the calls that change something, or at as many as
/// `BC_TEST_POINTS` says.
fn killed_at_calls(make: fn() -> TestTree, few: usize, line: &str) {
    if !strace::is_able() {
        return;
    }
    let all = changing(&make(), line);
    assert!(all.len() >= 40, "{all:?}");
    let some = spread(&all, points(few));
    let mut kills = 0;
    for (call, nth) in &some {
        let context = format!("{line}: killed at {call} {nth}");
        // Threads and timers differ from run to run: not every call comes as often each time.
        let killed = (0..3).find_map(|_| {
            let t = make();
            let status = strace::injected(&t, call, "signal=KILL", *nth, line).status;
            let is_killed = status.signal() == Some(9);
            assert!(is_killed || status.code() == Some(0), "{context}: {status}");
            is_killed.then_some(t)
        });
        let Some(t) = killed else {
            continue;
        };
        kills += 1;
        nothing_is_half_done(&t, "to", &context);
        if is_over(&t, "to") && litter(&t).is_empty() {
            continue;
        }
        let out = t.bc_line(line).go();
        assert_eq!(out.status.code(), Some(0), "{context}: {out}");
        complete(&t, "to", &context);
    }
    assert!(kills * 10 >= some.len() * 9, "{kills} of {}", some.len());
    crate::copy_trees::figures(&format!("{line}: killed at {kills} of {} calls", all.len()));
}

#[test]
fn killed_at_every_call_the_same_command_completes_the_copy() {
    killed_at_calls(tree, 60, "copy r to");
}

#[test]
fn killed_at_every_call_of_a_copy_of_everything() {
    for (sync, few) in [("none", 6), ("end", 1), ("batch", 4), ("file", 3)] {
        killed_at_calls(rich, few, &format!("copy --sync={sync} r to"));
    }
}
