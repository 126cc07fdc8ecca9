//! `bc copy`, killed at any moment: what was copied by then is not copied again but for 64 MiB for
//! each worker, by the bytes that the kernel counted.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use bc_testkit::{Point, TestTree};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::common::Bc;
use crate::copy_trees::{complete, figures, is_over, nothing_is_half_done, pattern, rich};
use crate::strace::{self, KILL};

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
        Counted::of(t.bc_line(line).command())
    }

    /// The same, killed at a call.
    fn killed(t: &TestTree, point: &Point, line: &str) -> Counted {
        Counted::of(strace::beside(t, point, KILL, line).command())
    }

    fn of(mut command: Command) -> Counted {
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

/// Kills a run at a call; the next one completes the copy. Nothing if it did not come to the call.
#[track_caller]
fn killed_once(t: &TestTree, line: &str, point: &Point, whole: u64, bound: u64) -> Option<u64> {
    let (status, before) = Counted::killed(t, point, line).written();
    let context = format!("{line}: killed at {point} after {before} bytes");
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
    if !strace::is_able() {
        return;
    }
    let t = tree();
    // One of each kind, or all of them.
    let is_asked = bc_testkit::asked_points().is_some();
    let ways = ["none", "end", "batch", "file"]
        .into_iter()
        .flat_map(|sync| [1, 2].map(|workers| (sync, workers)))
        .filter(|way| is_asked || [("none", 2), ("batch", 1), ("file", 2)].contains(way));
    for (sync, workers) in ways {
        let threads = ["mono", "2"][workers - 1];
        let line = format!("copy --sync={sync} --threads={threads} r to");
        let (status, whole) = Counted::spawn(&t, &line).written();
        assert_eq!(status.code(), Some(0), "{line}");
        t.remove("to");
        let mut sweep = strace::kills(1).few_names(1).of(&[
            "copy_file_range",
            "pwrite64",
            "renameat2",
            "utimensat",
        ]);
        let (mut most, mut kills) = (0, 0);
        while let Some(point) = sweep.next() {
            if point.nth == 0 {
                // What calls it makes.
                strace::disturbed(&mut sweep, &t, &point, KILL, &line);
                t.remove("to");
                continue;
            }
            let again = killed_once(&t, &line, &point, whole, BOUND * workers as u64);
            sweep.ran(again.is_some(), [""; 0]);
            most = most.max(again.unwrap_or(0));
            kills += usize::from(again.is_some());
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
    if !strace::is_able() {
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
        let out = strace::injected(&t, call, KILL, nth, &line);
        assert_eq!(out.status.signal(), Some(9), "{context}: {out}");
        let (status, again) = Counted::spawn(&t, &line).written();
        assert_eq!(status.code(), Some(0), "{context}");
        complete(&t, "to", &context);
        assert!(again < BESIDE, "{context}: {again} bytes again");
    }
}
