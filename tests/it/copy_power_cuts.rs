//! `bc copy` to a disk whose power is cut: file systems on loop devices are shut down without a
//! flush (`FS_IOC_SHUTDOWN`) at calls of the copy that change something, and mounted again. The same
//! command completes the copy, whatever `--sync` says; with `batch` and `file` no name that survives
//! the cut has wrong bytes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bc_testkit::{LoopDisk, Point, Sweep, TestTree, left_out, loop_disk, remove_tree};

use crate::common::Bc;
use crate::copy_trees::{complete, figures, half_done, litter, pattern, rich};
use crate::file_systems::{missing, script};
use crate::strace::{self, KILL};

/// Calls for each file system and mode, where nobody asks for more.
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
    /// Runs it to the sweep's point, where the power goes.
    fn run(&self, sweep: &mut Sweep, point: &Point) -> Result<(), String> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| others_sync(self.disk.path(), &over));
            // The call itself is not made any more, and none after it.
            strace::disturbed(sweep, self.t, point, KILL, &self.line);
            let cut = self.disk.cut();
            over.store(true, Ordering::Relaxed);
            cut
        })?;
        self.disk.mount_again()
    }

    /// The same, and a look at what is left. Whether there is something to go on with.
    fn after(&mut self, sweep: &mut Sweep, point: &Point, context: &str) -> Result<bool, String> {
        self.run(sweep, point)?;
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

    /// Cuts the power once, or twice, and completes the copy.
    fn point(&mut self, sweep: &mut Sweep, point: &Point, context: &str) -> Result<(), String> {
        self.clear();
        let twice = sweep.way() == 0;
        if self.after(sweep, point, context)?
            && (!twice || self.after(&mut Sweep::new(1), point, context)?)
        {
            let out = self.t.bc_line(&self.line).go();
            assert_eq!(out.status.code(), Some(0), "{context}: {out}");
            complete(self.t, &self.shown(), context);
        }
        Ok(())
    }
}

fn cut_at_points(kind: &str, sync: &str) {
    if !strace::is_able() {
        return;
    }
    let disk = match loop_disk(kind, 512 << 20) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let t = tree();
    let to = disk.path().join("to");
    let line = format!("copy --sync={sync} r {}", to.display());
    let mut cut = Cut {
        t: &t,
        disk: &disk,
        sync,
        to,
        line,
        torn: (0, 0),
    };
    // Every fourth run that goes on meets with the same fate.
    let mut sweep = strace::kills(1).few_names(FEW).ways(4);
    while let Some(point) = sweep.next() {
        let context = format!("{kind} --sync={sync}: cut at {point}");
        if let Err(reason) = cut.point(&mut sweep, &point, &context) {
            return left_out(&reason);
        }
    }
    let (cuts, names) = cut.torn;
    figures(&format!(
        "{kind} --sync={sync}: {} points; after {cuts} cuts {names} names had wrong bytes",
        sweep.reached()
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
