//! A server that does not answer one request: what else there is to do is done, the status line says
//! what it waits for, and a signal ends the run all the same, with nothing lost.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use bc_testkit::{
    Behaviour, DiskRequest, FuseDisk, RequestKind, STALLING, TestTree, fuse_disk, is_heeded,
    left_out,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::Bc;

fn disk() -> Option<FuseDisk> {
    let behaviour = Behaviour {
        records: true,
        ..Behaviour::default()
    };
    fuse_disk(behaviour)
        .inspect_err(|reason| left_out(reason))
        .ok()
}

/// Files, of which one can be held; each has a copy, so that each is read in a search, too.
fn lay(root: &Path) {
    for nth in 0..40 {
        let path = root.join(file(nth));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{}-", nth / 2).repeat(3000)).unwrap();
    }
}

/// Number of the file that can be held.
const HELD: usize = 12;

fn file(nth: usize) -> String {
    let stalls = if nth == HELD { STALLING } else { "" };
    format!("d{}/f{nth:02}{stalls}", nth / 10)
}

fn spawn(t: &TestTree, line: &str) -> Child {
    let mut command = t.bc_line(line).command();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::piped()).spawn().unwrap()
}

fn end_of(child: &mut Child) -> (std::process::ExitStatus, String) {
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (child.wait().unwrap(), text)
}

/// Commands that read `ROOT`, of which one file is held, with the tree `plain` beside it.
const READING: &[&str] = &[
    "hash --output=list ROOT",
    "hash check CHECKLIST",
    "dup scan --output=found ROOT",
    "dup prune --action=hardlink --yes --journal=JOURNAL ROOT",
    "integrity manifest --output=made ROOT",
    "integrity verify ROOT MANIFEST",
    "integrity update --reread=100% ROOT MANIFEST",
    "copy ROOT copied",
    "integrity restore --force --from=ROOT emptied MANIFEST",
];

/// Commands that write the files of `many` below `TO`, of which one directory is held.
const WRITING: &[&str] = &[
    "copy --threads=4 many TO",
    "integrity restore --threads=4 --force --from=many TO m",
];

/// A command that waits for the read of one file.
struct HeldRun {
    disk: FuseDisk,
    t: TestTree,
    line: String,
    child: Child,
}

impl HeldRun {
    fn new(line: &str) -> Option<HeldRun> {
        let disk = disk()?;
        let t = TestTree::new();
        lay(&disk.shown().join("r"));
        lay(&t.join("plain"));
        t.dir("emptied");
        let root = disk.path().join("r");
        let line = line.replace("ROOT", &root.display().to_string());
        let line = line.replace("MANIFEST", "m").replace("CHECKLIST", "l");
        let on_root = |line: &str| t.bc_line(&format!("{line} {}", root.display())).go();
        on_root("integrity manifest --output=m").code(0);
        on_root("hash --output=l").code(0);
        forget_pages(&root);
        disk.take_record();
        disk.hold(RequestKind::Read);
        let child = spawn(
            &t,
            &format!("{line} --progress=always").replace("JOURNAL", "j"),
        );
        assert!(disk.wait_held(), "{line}: no read was held");
        Some(HeldRun {
            disk,
            t,
            line,
            child,
        })
    }

    /// Checks that nothing was lost, and that the same line does the rest.
    fn finish(&self) {
        self.t
            .bc_line(&self.line.replace("JOURNAL", "j2"))
            .go()
            .code(0);
        for nth in 0..40 {
            let file = file(nth);
            let is = std::fs::read(self.disk.path().join("r").join(&file)).unwrap();
            assert_eq!(
                is,
                self.t.read(Path::new("plain").join(&file)),
                "{}",
                self.line
            );
        }
        for copy in ["copied", "emptied"] {
            if self.line.contains(copy) {
                let same = self
                    .t
                    .run("diff")
                    .args(["-r", "-x", ".bc-*", "plain", copy])
                    .go();
                same.code(0);
            }
        }
    }
}

#[test]
fn a_signal_ends_a_run_that_waits_for_ever() {
    if !is_heeded(Signal::INT.as_raw()) {
        return;
    }
    for line in READING {
        let Some(mut run) = HeldRun::new(line) else {
            return;
        };
        kill_process(Pid::from_child(&run.child), Signal::INT).unwrap();
        let (status, text) = end_of(&mut run.child);
        assert_eq!(status.signal(), Some(2), "{line}: {status:?}: {text}");
        let named = text.contains(STALLING) && text.contains("(read)");
        assert!(named, "{line}: {text}");
        run.disk.release();
        run.finish();
    }
}

/// Files that a worker has in hand at most: as many as its lanes digest at a time. They wait with the
/// one that is held, where the worker came before the others.
const IN_HAND: usize = 16;

/// Where there are workers for them, all other files are read to their ends while one is held, but for
/// those in the same hand. Copies take small files in batches.
#[test]
fn what_else_there_is_to_do_is_done() {
    let copies = |line: &&&str| line.starts_with("copy") || line.contains("restore");
    for line in READING.iter().filter(|line| !copies(line)) {
        let Some(mut run) = HeldRun::new(&format!("{line} --threads=40")) else {
            return;
        };
        let is_closed = |record: &[DiskRequest], nth| {
            let path = Path::new("r").join(file(nth));
            let mut closed = record.iter().filter(|one| one.kind == RequestKind::Close);
            closed.any(|one| one.path == path)
        };
        let went_on = run.disk.wait_for(|record| {
            let open = (0..40).filter(|nth| !is_closed(record, *nth));
            open.count() <= IN_HAND
        });
        let record = run.disk.take_record();
        run.disk.release();
        let (status, text) = end_of(&mut run.child);
        let missing: Vec<_> = (0..40).filter(|nth| !is_closed(&record, *nth)).collect();
        assert!(went_on, "{line}: not closed: {missing:?}");
        assert!(status.success(), "{line}: {status:?}: {text}");
        run.finish();
    }
}

/// Forgets the pages of all files.
fn forget_pages(root: &Path) {
    for entry in root.read_dir().unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            forget_pages(&path);
        } else {
            let file = std::fs::File::open(path).unwrap();
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        }
    }
}

#[test]
fn the_status_line_says_what_it_waits_for() {
    let Some(disk) = disk() else { return };
    let t = TestTree::new();
    lay(&disk.shown().join("r"));
    let root = disk.path().join("r");
    disk.hold(RequestKind::Read);
    let mut child = spawn(&t, &format!("hash --progress=always {}", root.display()));
    let held = root.join(file(HELD));
    let mut stderr = child.stderr.take().unwrap();
    read_until(&mut stderr, |text| {
        text.contains(&format!("waiting for {} (read)", held.display()))
    });
    disk.release();
    std::io::copy(&mut stderr, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Reads until what was read is enough.
fn read_until(from: &mut impl Read, is_enough: impl Fn(&str) -> bool) {
    let (mut drawn, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = from.read(&mut part).unwrap();
        drawn.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&drawn);
        if is_enough(&text) {
            return;
        }
        assert!(read > 0, "{text}");
    }
}

/// A command that waits for the write of one file, the first of many.
struct HeldWrite {
    disk: FuseDisk,
    t: TestTree,
    to: PathBuf,
    line: String,
    child: Child,
}

impl HeldWrite {
    /// Number of files beside the one that is held.
    const MANY: usize = 600;

    fn new(line: &str) -> Option<HeldWrite> {
        let disk = disk()?;
        let t = TestTree::new();
        t.write(format!("many/a{STALLING}/held"), "held");
        for nth in 0..HeldWrite::MANY {
            t.write(format!("many/{}", HeldWrite::file(nth)), nth.to_string());
        }
        t.bc_line("integrity manifest --output=m many").go().code(0);
        let to = disk.path().join("to");
        std::fs::create_dir(disk.shown().join("to")).unwrap();
        let line = line.replace("TO", &to.display().to_string());
        disk.hold(RequestKind::Write);
        let child = spawn(&t, &format!("{line} --progress=always"));
        assert!(disk.wait_held(), "{line}: no write was held");
        Some(HeldWrite {
            disk,
            t,
            to,
            line,
            child,
        })
    }

    fn file(nth: usize) -> String {
        format!("d{}/f{nth:03}", nth / 100)
    }

    /// True if this file has its content on the disk under its name.
    fn has(&self, nth: usize) -> bool {
        let path = self.disk.shown().join("to/many").join(HeldWrite::file(nth));
        let path = match self.line.starts_with("copy") {
            true => path,
            false => self.disk.shown().join("to").join(HeldWrite::file(nth)),
        };
        std::fs::read(path).is_ok_and(|content| content == nth.to_string().as_bytes())
    }

    /// Checks that the same line does the rest.
    fn finish(self) {
        self.t.bc_line(&self.line).go().code(0);
        let made = match self.line.starts_with("copy") {
            true => self.to.join("many"),
            false => self.to.clone(),
        };
        let same = self.t.run("diff");
        let same = same.args(["-r", "-x", ".bc-*"]).arg("many").arg(made);
        same.go().code(0);
    }
}

#[test]
fn a_signal_ends_a_run_that_waits_to_write_for_ever() {
    if !is_heeded(Signal::INT.as_raw()) {
        return;
    }
    for line in WRITING {
        let Some(mut run) = HeldWrite::new(line) else {
            return;
        };
        kill_process(Pid::from_child(&run.child), Signal::INT).unwrap();
        let mut stderr = run.child.stderr.take().unwrap();
        read_until(&mut stderr, |text| {
            let last = text.split("interrupted while waiting for ").nth(1);
            last.is_some_and(|last| last.contains(STALLING) && last.contains("(write)"))
        });
        // It has ended, but Linux keeps a process whose request a server has taken.
        run.disk.release();
        let status = run.child.wait().unwrap();
        assert_eq!(status.signal(), Some(2), "{line}: {status:?}");
        run.finish();
    }
}

#[test]
fn the_status_line_says_what_it_waits_to_write() {
    for line in WRITING {
        let Some(mut run) = HeldWrite::new(line) else {
            return;
        };
        let mut stderr = run.child.stderr.take().unwrap();
        read_until(&mut stderr, |text| {
            let mut waits = text.split("waiting for ").skip(1);
            waits.any(|wait| {
                let path = wait.split_once(" (write) ").map(|(path, _)| path);
                path.is_some_and(|path| path.contains(&format!("a{STALLING}/")))
            })
        });
        run.disk.release();
        std::io::copy(&mut stderr, &mut std::io::sink()).unwrap();
        assert!(run.child.wait().unwrap().success(), "{line}");
        run.finish();
    }
}

/// The files of other batches than that of the one that is held get their names meanwhile.
#[test]
fn others_are_written_while_one_write_is_held() {
    for line in WRITING {
        let Some(mut run) = HeldWrite::new(line) else {
            return;
        };
        let mut stderr = run.child.stderr.take().unwrap();
        // As many as a batch has may wait with it.
        let done = |run: &HeldWrite| (0..HeldWrite::MANY).filter(|nth| run.has(*nth)).count();
        while done(&run) < HeldWrite::MANY - 128 {
            assert_eq!(run.child.try_wait().unwrap(), None, "{line}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        run.disk.release();
        std::io::copy(&mut stderr, &mut std::io::sink()).unwrap();
        assert!(run.child.wait().unwrap().success(), "{line}");
        run.finish();
    }
}
