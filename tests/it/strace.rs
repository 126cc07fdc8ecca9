//! Runs of `bc` in which one system call is the last, or fails. It is addressed by its name and its
//! number among those of that name: how many others come before it differs with the speed of the
//! machine.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bc_testkit::{Outcome, Point, Run, Sweep, TestTree, left_out, tool};
use rustix::process::{Pid, Signal, kill_process};

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
        .args((!line.contains("--threads=")).then_some("--threads=mono"))
}

/// `bc LINE`, whose `n`th `call` meets `fate`: `signal=KILL` or `error=EIO`; `3+` are the third and
/// all later ones.
pub fn injected(
    t: &TestTree,
    call: &str,
    fate: &str,
    n: impl std::fmt::Display,
    line: &str,
) -> Outcome {
    // A version that does not know a call traces none.
    let trace = format!("trace=?{call}");
    let inject = format!("inject=?{call}:{fate}:when={n}");
    traced(t, &["-e", &trace, "-e", &inject], line).go()
}

/// Runs `bc LINE` until its `n`th `call`, at which it is killed; returns the status.
///
/// Only calls of that name stop the process, as a filter picks them: to have each call looked at
/// takes three times as long. With a filter `strace` sends no signals, so it only holds the call
/// back.
pub fn killed(t: &TestTree, call: &str, n: usize, line: &str) -> ExitStatus {
    let trace = format!("trace=?{call}");
    let hold = format!("inject=?{call}:delay_enter=600000000:when={n}");
    let log = t.scratch("log");
    let _ = std::fs::remove_file(&log);
    let options = ["-D", "--seccomp-bpf", "-e", &trace, "-e", &hold];
    let mut command = traced(t, &options, line).command();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if has_begun(&log, call, n) {
            let tracer = tracer(child.id());
            child.kill().unwrap();
            // It would hold the dead one back.
            if let Some(tracer) = tracer {
                let _ = kill_process(tracer, Signal::KILL);
            }
            return child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Whether a thread has begun its `n`th `call`.
fn has_begun(log: &Path, call: &str, n: usize) -> bool {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.lines() {
        let Some((thread, begun)) = line.split_once(' ') else {
            continue;
        };
        if begun.trim_start().split_once('(').map(|(name, _)| name) == Some(call) {
            *counts.entry(thread).or_default() += 1;
        }
    }
    counts.into_values().any(|count| count >= n)
}

fn tracer(process: u32) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))?;
    Pid::from_raw(tracer.trim().parse().ok()?)
}

/// Runs `bc LINE`, in which the call at a sweep's point meets `fate`, and hands the sweep on; whether
/// the run came to the point.
pub fn disturbed(
    sweep: &mut Sweep,
    t: &TestTree,
    point: &Point,
    fate: &str,
    line: &str,
) -> (Outcome, bool) {
    let out = match point.nth {
        0 => traced(t, &[], line).go(),
        nth => injected(t, &point.call, fate, nth, line),
    };
    let log = std::fs::read_to_string(t.scratch("log")).unwrap_or_default();
    let reached = match fate {
        KILL => out.status.signal() == Some(9),
        _ => log.contains("(INJECTED)"),
    };
    sweep.ran(reached, calls(&log));
    (out, reached)
}

/// The same, for tests that hold the process themselves: it is started by them and traced by another
/// one.
pub fn beside(t: &TestTree, point: &Point, fate: &str, line: &str) -> Run {
    let Point { call, nth } = point;
    let trace = format!("trace=?{call}");
    let inject = format!("inject=?{call}:{fate}:when={nth}");
    traced(t, &["-D", "-e", &trace, "-e", &inject], line)
}

/// Ends the process before the call.
pub const KILL: &str = "signal=KILL";

/// Points at which being killed differs.
pub fn kills(many: usize) -> Sweep {
    let pure: Vec<&str> = PURE.split_whitespace().collect();
    Sweep::new(many).but(&pure)
}

/// Calls, and the errors that each may fail with.
pub type Faults = [(&'static str, &'static [&'static str])];

/// Points at which such calls fail; by turns with each of their errors.
pub fn faults(faults: &Faults, many: usize) -> Sweep {
    let calls: Vec<&str> = faults.iter().map(|(call, _)| *call).collect();
    let errors = faults.iter().map(|(_, errors)| errors.len()).max();
    Sweep::new(many).of(&calls).ways(errors.unwrap_or(1))
}

/// How the call at a sweep's point fails.
pub fn error(faults: &Faults, point: &Point, sweep: &Sweep) -> String {
    let errors = faults.iter().find(|(call, _)| *call == point.call);
    let error = errors.map_or("EIO", |(_, errors)| errors[sweep.way() % errors.len()]);
    format!("error={error}")
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

/// Names of the calls in a log, each as often as the thread made it that made it most often: that is
/// how they are counted.
fn calls(log: &str) -> Vec<&str> {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for line in log.lines() {
        let Some((thread, begun)) = line.split_once(' ') else {
            continue;
        };
        let Some((name, _)) = begun.trim_start().split_once('(') else {
            continue;
        };
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if name.bytes().all(is_name) {
            *counts.entry(name).or_default().entry(thread).or_default() += 1;
        }
    }
    let most =
        |(name, of): (_, BTreeMap<_, usize>)| vec![name; of.into_values().max().unwrap_or(0)];
    counts.into_iter().flat_map(most).collect()
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
    let of = |call: &str| {
        let arguments = call.split_once('(').map_or("", |(_, rest)| rest);
        // The file that is read comes first.
        let first = arguments.split_once('>').map_or("", |(first, _)| first);
        first.contains(part)
    };
    let bytes = |line: &str| line.rsplit_once("= ")?.1.trim().parse::<u64>().ok();
    // By thread: the call that another one's came between, and that goes on in a line of its own.
    let mut begun = BTreeMap::new();
    let mut read = 0;
    for line in log.lines() {
        let (thread, call) = line.split_once(' ').unwrap_or(("", line));
        let is_of = match call.trim_start().starts_with("<... ") {
            true => begun.remove(thread).unwrap_or(false),
            false => of(call),
        };
        if call.ends_with("<unfinished ...>") {
            begun.insert(thread, is_of);
        } else if is_of {
            read += bytes(line).unwrap_or(0);
        }
    }
    read
}
