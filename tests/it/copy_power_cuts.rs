//! `bc copy` to a disk whose power is cut: file systems on loop devices are shut down without a
//! flush (`FS_IOC_SHUTDOWN`) at points spread over the copy, and mounted again. The same command
//! completes the copy, whatever `--sync` says; with `batch` and `file` no name that survives the
//! cut has wrong bytes. `BC_TEST_POINTS=50` tries as many points for each of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bc_testkit::{LoopDisk, TestTree, left_out, loop_disk, remove_tree};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::Bc;
use crate::copy_trees::{complete, figures, half_done, litter, pattern, points, rich};
use crate::file_systems::{missing, script};

/// Points for each file system and mode, where nobody asks for more.
const FEW: usize = 2;

/// What is copied: enough that it takes a while.
fn tree() -> TestTree {
    let t = rich();
    for number in 0..240_usize {
        let name = format!("r/many/{}/{number}", number % 12);
        t.write(name, pattern(number * 37 % 9000 + 1));
    }
    for number in 0..4_usize {
        t.write(format!("r/medium/{number}"), pattern((2 << 20) + number));
    }
    t
}

/// What other programs do: every few moments something of theirs is forced to the disk, and with it
/// what the file system knows of names and sizes by then.
fn others_sync(root: &Path, over: &AtomicBool) {
    let Ok(file) = File::create(root.join("others")) else {
        return;
    };
    for nth in 0_u64.. {
        use std::os::unix::fs::FileExt;
        let written = file.write_all_at(&nth.to_le_bytes(), 0);
        if over.load(Ordering::Relaxed) || written.and_then(|()| file.sync_all()).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// Has no thread of it begin another system call: what the cut finds it at is its last. One that
/// waits for the disk is cut off there.
fn stop(run: &Child) {
    let _ = kill_process(Pid::from_child(run), Signal::STOP);
    let tasks = format!("/proc/{}/task", run.id());
    let runs = |stat: String| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('R'))
    };
    loop {
        let all = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        let stat = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("stat")).ok();
        if !all.filter_map(stat).any(runs) {
            return;
        }
        std::thread::yield_now();
    }
}

/// A copy that is under way when the power goes.
struct Cut<'a> {
    t: &'a TestTree,
    disk: &'a LoopDisk,
    sync: &'a str,
    /// Where the copy goes.
    to: PathBuf,
    line: String,
    /// How often names had wrong bytes afterwards, and how many.
    torn: (usize, usize),
}

impl Cut<'_> {
    /// Runs it for so long.
    fn run(&self, wait: Duration) -> Result<(), String> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| others_sync(self.disk.path(), &over));
            let mut command = self.t.bc_line(&self.line).command();
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut run = command.spawn().unwrap();
            std::thread::sleep(wait);
            stop(&run);
            let cut = self.disk.cut();
            let _ = run.kill();
            let _ = run.wait();
            over.store(true, Ordering::Relaxed);
            cut
        })?;
        self.disk.mount_again()
    }

    /// Runs it for so long, and looks at what is left. Whether there is something to go on with.
    fn after(&mut self, wait: Duration, context: &str) -> Result<bool, String> {
        self.run(wait)?;
        let wrong = half_done(&self.t.join("r"), &self.to);
        self.torn.0 += usize::from(!wrong.is_empty());
        self.torn.1 += wrong.len();
        let is_promised = matches!(self.sync, "batch" | "file");
        assert!(!is_promised || wrong.is_empty(), "{context}: {wrong:?}");
        // What it records is on another disk.
        let is_journal = |path: &PathBuf| path.extension().is_some_and(|end| end == "journal");
        let unfinished = !self.to.exists() || litter(self.t).iter().any(is_journal);
        if !unfinished && self.sync != "none" {
            // It had come to its end, and was to be forced to the disk by then.
            complete(self.t, &self.shown(), context);
        }
        Ok(unfinished)
    }

    fn shown(&self) -> String {
        self.to.display().to_string()
    }

    fn clear(&self) {
        remove_tree(&self.to).unwrap();
        rustix::fs::syncfs(File::open(self.disk.path()).unwrap()).unwrap();
    }

    /// Cuts the power once, or twice, and completes the copy. Whether it was cut before its end.
    fn point(&mut self, wait: Duration, twice: bool, context: &str) -> Result<bool, String> {
        self.clear();
        if !self.after(wait, context)? {
            return Ok(false);
        }
        if !twice || self.after(wait / 2, context)? {
            let out = self.t.bc_line(&self.line).go();
            assert_eq!(out.status.code(), Some(0), "{context}: {out}");
            complete(self.t, &self.shown(), context);
        }
        Ok(true)
    }
}

fn cut_at_points(kind: &str, sync: &str) {
    let disk = match loop_disk(kind, 512 << 20) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let t = tree();
    let to = disk.path().join("to");
    let line = format!("copy --sync={sync} r {}", to.display());
    let begun = Instant::now();
    t.bc_line(&line).go().code(0);
    let whole = begun.elapsed();
    let mut cut = Cut {
        t: &t,
        disk: &disk,
        sync,
        to,
        line,
        torn: (0, 0),
    };
    let (many, mut ended) = (points(FEW), 0);
    for point in 0..many {
        let context = format!("{kind} --sync={sync}: point {point} of {many}");
        let wait = whole * (2 * point as u32 + 1) / (2 * many as u32);
        // Every fourth run that goes on meets with the same fate. On a machine with other things to
        // do it is not as quick each time: one that came to its end is cut off sooner.
        let attempts = [wait, wait * 2 / 3, wait / 3];
        let cuts = attempts
            .into_iter()
            .map(|wait| cut.point(wait, point % 4 == 3, &context));
        match cuts.into_iter().find(|cut| !matches!(cut, Ok(false))) {
            Some(Ok(_)) => {}
            Some(Err(reason)) => return left_out(&reason),
            None => ended += 1,
        }
    }
    let (cuts, names) = cut.torn;
    figures(&format!(
        "{kind} --sync={sync}: {many} points, {ended} of them behind the end; after {cuts} cuts \
         {names} names had wrong bytes"
    ));
}

#[test]
fn what_is_mounted_below_the_destination_is_forced_to_its_disk_too() {
    if let Some(reason) = missing(&["strace"]) {
        return left_out(&reason);
    }
    for sync in ["end", "batch"] {
        let t = TestTree::new();
        t.write("r/sub/file", "content").dir("to/sub");
        let text = format!(
            "mount -t tmpfs none to/sub || {{ echo cannot mount >&2; exit 77; }}
            strace -f -qq -e trace=syncfs -o log $BC copy --sync={sync} -T r to
            test -s to/sub/file; umount to/sub; cat log | grep -c 'syncfs('"
        );
        let Some(outcome) = script(&t, &text) else {
            return;
        };
        let calls: usize = outcome.code(0).text().trim().parse().unwrap();
        assert!(calls >= 2 && calls.is_multiple_of(2), "{sync}: {outcome}");
    }
}

#[test]
fn ext4_none() {
    cut_at_points("ext4", "none");
}

#[test]
fn ext4_end() {
    cut_at_points("ext4", "end");
}

#[test]
fn ext4_batch() {
    cut_at_points("ext4", "batch");
}

#[test]
fn ext4_file() {
    cut_at_points("ext4", "file");
}

#[test]
fn xfs_none() {
    cut_at_points("xfs", "none");
}

#[test]
fn xfs_end() {
    cut_at_points("xfs", "end");
}

#[test]
fn xfs_batch() {
    cut_at_points("xfs", "batch");
}

#[test]
fn xfs_file() {
    cut_at_points("xfs", "file");
}
