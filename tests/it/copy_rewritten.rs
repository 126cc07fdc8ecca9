//! `bc copy`, killed at any moment: what was copied by then is not copied again but for 64 MiB for
//! each worker, by the bytes that the kernel counted. `BC_TEST_POINTS=50` kills it as often in each
//! way.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bc_testkit::{Rng, TestTree};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::common::Bc;
use crate::copy_trees::{
    complete, figures, is_over, nothing_is_half_done, pattern, points, rich, spread,
};

/// What may be written again by each worker.
const BOUND: u64 = 64 << 20;

/// Records that are written twice, and the manifest.
const BESIDE: u64 = 1 << 20;

/// Small files, larger ones, and a huge one that belongs to somebody else: together more than may
/// be written again.
fn tree() -> TestTree {
    let t = rich();
    for number in 0..300_usize {
        let name = format!("r/many/{}/{number}", number % 12);
        t.write(name, pattern(number * 37 % 9000 + 1));
    }
    for number in 0..16_usize {
        t.write(format!("r/medium/{number}"), pattern((5 << 20) + number));
    }
    t.write("r/full", pattern(90 << 20)).mode("r/full", 0o664);
    if bc_testkit::is_root() {
        std::os::unix::fs::chown(t.join("r/full"), Some(12), Some(34)).unwrap();
    }
    // What was written to a moment ago is not gone on from.
    std::thread::sleep(Duration::from_millis(300));
    t
}

/// A run, and what the kernel counts of it.
struct Counted {
    run: Child,
    counts: File,
}

impl Counted {
    fn spawn(t: &TestTree, line: &str) -> Counted {
        let mut command = t.bc_line(line).command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let run = command.spawn().unwrap();
        // Once it has ended only root could open it.
        let counts = File::open(format!("/proc/{}/io", run.id())).unwrap();
        Counted { run, counts }
    }

    /// Waits for its end, and gives what it has written.
    fn written(mut self) -> (ExitStatus, u64) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.run)), options).unwrap();
        let mut text = String::new();
        self.counts.read_to_string(&mut text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        let bytes = line.unwrap().parse().unwrap();
        (self.run.wait().unwrap(), bytes)
    }
}

/// Kills a run in the middle; the next one completes the copy.
#[track_caller]
fn killed_once(t: &TestTree, line: &str, wait: Duration, whole: u64, bound: u64) -> Option<u64> {
    let mut first = Counted::spawn(t, line);
    std::thread::sleep(wait);
    let _ = first.run.kill();
    let (status, before) = first.written();
    let context = format!("{line}: killed after {wait:?} and {before} bytes");
    nothing_is_half_done(t, "to", &context);
    if status.signal() != Some(9) || is_over(t, "to") {
        t.remove("to");
        return None;
    }
    let (status, after) = Counted::spawn(t, line).written();
    assert_eq!(status.code(), Some(0), "{context}");
    complete(t, "to", &context);
    let again = (before + after).saturating_sub(whole);
    assert!(again <= bound + BESIDE, "{context}: {again} bytes again");
    t.remove("to");
    Some(again)
}

#[test]
fn little_is_written_again_after_a_kill() {
    let t = tree();
    let mut rng = Rng::new(64);
    let ways: Vec<String> = ["none", "end", "batch", "file"]
        .iter()
        .flat_map(|sync| ["mono", "2"].map(|n| format!("copy --sync={sync} --threads={n} r to")))
        .collect();
    // One of each kind, or all of them.
    let many = points(1);
    let ways = if many > 1 { ways } else { spread(&ways, 3) };
    for line in ways {
        let begun = Instant::now();
        let (status, whole) = Counted::spawn(&t, &line).written();
        let length = begun.elapsed().as_micros() as u64;
        assert_eq!(status.code(), Some(0), "{line}");
        t.remove("to");
        let workers = if line.contains("mono") { 1 } else { 2 };
        let (mut most, mut kills) = (0, 0);
        for _ in 0..many {
            let wait = Duration::from_micros(length / 10 + rng.next_u64() % length);
            if let Some(again) = killed_once(&t, &line, wait, whole, BOUND * workers) {
                most = most.max(again);
                kills += 1;
            }
        }
        figures(&format!(
            "{line}: killed {kills} times, at most {most} bytes of {whole} written again"
        ));
    }
}

/// A huge file has its owner, mode and times already when the run is killed, just before it would
/// get its name.
#[test]
fn nothing_of_what_was_complete_is_written_again() {
    if !crate::strace::is_able() {
        return;
    }
    for (sync, call, nth) in [
        ("none", "utimensat", 1),
        ("none", "renameat2", 1),
        ("batch", "syncfs", 1),
    ] {
        let t = TestTree::new();
        t.write("r/full", pattern(80 << 20)).mode("r/full", 0o664);
        if bc_testkit::is_root() {
            std::os::unix::fs::chown(t.join("r/full"), Some(12), Some(34)).unwrap();
        }
        // The key of all journals is made before that.
        t.write("other", "")
            .bc_line("copy other copied")
            .go()
            .code(0);
        std::thread::sleep(Duration::from_millis(300));
        let line = format!("copy --sync={sync} r to");
        let context = format!("{line}: killed at {call}");
        let out = crate::strace::injected(&t, call, "signal=KILL", nth, &line);
        assert_eq!(out.status.signal(), Some(9), "{context}: {out}");
        let (status, again) = Counted::spawn(&t, &line).written();
        assert_eq!(status.code(), Some(0), "{context}");
        complete(&t, "to", &context);
        assert!(again < BESIDE, "{context}: {again} bytes again");
    }
}
