//! Disks and servers that return less than they were asked for, or fail in the middle of a file or of
//! a directory: results are those of a sound disk, or an error names the file; nothing is lost.

use std::path::Path;

use bc_testkit::{Behaviour, FAILING, FAILING_FROM, FuseDisk, TestTree, fuse_disk, left_out};
use rustix::io::Errno;

use crate::common::Bc;

fn disk(behaviour: Behaviour) -> Option<FuseDisk> {
    fuse_disk(behaviour)
        .inspect_err(|reason| left_out(reason))
        .ok()
}

/// Files of some sizes, each of them twice.
fn lay(root: &Path) {
    for (name, size) in [
        ("empty", 0),
        ("small", 100),
        ("page", 4096),
        ("large", 300_000),
    ] {
        let content: Vec<u8> = (0..size).map(|at| (at * 31 + at / 251) as u8).collect();
        for dir in ["a", "b"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
            std::fs::write(root.join(dir).join(name), &content).unwrap();
        }
    }
}

fn same_files(t: &TestTree, one: impl AsRef<Path>, other: impl AsRef<Path>) {
    let (one, other) = (one.as_ref().as_os_str(), other.as_ref().as_os_str());
    let flags = ["-r", "-x", ".bc-*"].map(std::ffi::OsStr::new);
    t.run("diff").args(flags).args([one, other]).go().code(0);
}

/// Every read returns three kilobytes at most: no result is another one.
#[test]
fn short_reads_change_no_result() {
    let behaviour = Behaviour {
        short_reads: Some(3000),
        ..Behaviour::default()
    };
    let Some(disk) = disk(behaviour) else { return };
    let t = TestTree::new();
    lay(&t.join("r"));
    lay(&disk.shown().join("r"));
    let there = disk.path();
    let both = |line: &str| {
        let [here, away] = ["r".to_owned(), there.join("r").display().to_string()]
            .map(|root| t.bc_line(&line.replace("ROOT", &root)).go());
        (here, away)
    };
    for options in ["", " --io=sync", " --io=uring", " --threads=4"] {
        for line in [
            "hash ROOT",
            "hash --type=blake3 ROOT",
            "dup scan ROOT",
            "dup dirs ROOT",
        ] {
            let (here, away) = both(&format!("{line}{options}"));
            if options == " --io=uring" && here.status.code() == Some(2) {
                continue;
            }
            let (here, away) = (here.code(0).text(), away.code(0).text());
            let away = away.replace(&format!("{}/", there.display()), "");
            assert_eq!(here, away, "{line}{options}");
        }
    }
    let shown = disk.shown().join("r").display().to_string();
    t.bc_line(&format!("integrity manifest --output=m {shown}"))
        .go()
        .code(0);
    let root = there.join("r").display().to_string();
    t.bc_line(&format!("hash --output={root}/../l {root}"))
        .go()
        .code(0);
    let ring = t.bc_line("hash --io=uring r").go().status.code() != Some(2);
    for io in ["auto", "sync", "uring"] {
        if io == "uring" && !ring {
            left_out("no io_uring here");
            continue;
        }
        for line in [
            format!("integrity verify {root} m"),
            format!("hash check {root}/../l"),
            format!("copy --verify=read {root} copied-{io}"),
        ] {
            t.bc_line(&format!("{line} --io={io}")).go().code(0);
        }
        same_files(&t, "r", format!("copied-{io}"));
    }
    let large = disk.shown().join("r/a/large");
    std::fs::write(&large, std::fs::read(&large).unwrap()).unwrap();
    t.bc_line(&format!("integrity update --force {root} m"))
        .go()
        .code(0);
    t.bc_line(&format!("copy --verify=read r {}/to", there.display()))
        .go()
        .code(0);
    same_files(&t, "r", disk.shown().join("to"));
    t.dir("restored");
    let line = format!("integrity restore --force --from={root} restored m");
    t.bc_line(&line).go().code(0);
    same_files(&t, "r", "restored");
    let line = format!("dup prune --action=hardlink --yes --journal=j {root}");
    t.bc_line(&line).go().code(0);
    same_files(&t, "r", disk.shown().join("r"));
    use std::os::unix::fs::MetadataExt;
    let inode = |name: &str| disk.shown().join(name).metadata().unwrap().ino();
    assert_eq!(inode("r/a/large"), inode("r/b/large"));
}

/// One file and one directory fail in the middle.
struct FailingDisk {
    disk: FuseDisk,
    t: TestTree,
}

impl FailingDisk {
    fn new() -> Option<FailingDisk> {
        let behaviour = Behaviour {
            read_error: Some(Errno::IO),
            ..Behaviour::default()
        };
        let failing = FailingDisk {
            disk: disk(behaviour)?,
            t: TestTree::new(),
        };
        failing.lay(&failing.disk.shown().join("r"));
        failing.lay(&failing.t.join("plain"));
        Some(failing)
    }

    fn lay(&self, root: &Path) {
        lay(root);
        for (name, byte) in [(FAILING, 7), ("sound", 9)] {
            let long = vec![byte; 3 * FAILING_FROM as usize];
            std::fs::write(root.join(format!("a/{name}-x")), long).unwrap();
        }
    }

    fn root(&self) -> String {
        self.disk.path().join("r").display().to_string()
    }

    /// Runs a line whose failure names the file, the operation and the reason.
    fn fails(&self, line: &str, code: i32) -> bc_testkit::Outcome {
        let out = self.t.bc_line(line).go();
        out.code(code);
        let text = out.error_text() + &out.text();
        let reason = Errno::IO.to_string();
        let named = text
            .lines()
            .any(|line| line.contains(FAILING) && line.contains("read") && line.contains(&reason));
        assert!(named, "{line}: {out}");
        assert!(
            self.disk.shown().join(format!("r/a/{FAILING}-x")).exists(),
            "{line}"
        );
        out
    }
}

#[test]
fn a_file_that_fails_in_the_middle_has_an_error_and_no_result() {
    let Some(failing) = FailingDisk::new() else {
        return;
    };
    let (root, t) = (failing.root(), &failing.t);
    let name = format!("{FAILING}-x");
    for options in ["", " --io=sync", " --threads=4"] {
        let out = failing.fails(&format!("hash {root}{options}"), 1);
        assert!(!out.text().contains(&name), "{out}");
        assert!(out.text().contains("sound-x"), "{out}");
        let out = failing.fails(&format!("dup scan {root}{options}"), 1);
        assert!(!out.text().contains(&name), "{out}");
        assert!(out.text().contains("b/large"), "{out}");
    }
    t.bc_line("hash --output=sums plain").go().code(0);
    let sums = String::from_utf8(t.read("sums")).unwrap();
    t.write("l", sums.replace("plain/", &format!("{root}/")));
    failing.fails("hash check l", 1);
    let line = format!("dup prune --action=hardlink --yes --journal=j {root}");
    failing.fails(&line, 1);
    same_files(t, "plain", failing.disk.shown().join("r"));
}

#[test]
fn no_manifest_records_what_could_not_be_read() {
    let Some(failing) = FailingDisk::new() else {
        return;
    };
    let (root, t) = (failing.root(), &failing.t);
    failing.fails(&format!("integrity manifest --output=made {root}"), 1);
    t.bc_line("integrity manifest --output=m plain")
        .go()
        .code(0);
    let before = t.read("m");
    failing.fails(&format!("integrity verify {root} m"), 1);
    assert_eq!(t.read("m"), before);
    let rewritten = failing.disk.shown().join(format!("r/a/{FAILING}-x"));
    std::fs::write(&rewritten, vec![8; 3 * FAILING_FROM as usize]).unwrap();
    failing.fails(&format!("integrity update --force {root} m"), 1);
    // What was recorded of it stays; that it was tried is added.
    let entry = |manifest: &[u8]| -> serde_json::Value {
        let text = String::from_utf8(manifest.to_vec()).unwrap();
        let line = text.lines().find(|line| line.contains(FAILING)).unwrap();
        serde_json::from_str(line).unwrap()
    };
    let (old, mut new) = (entry(&before), entry(&t.read("m")));
    let fields = new.as_object_mut().unwrap();
    assert_eq!(fields.remove("found"), Some("unreadable".into()));
    assert!(fields.remove("tried_run").is_some() && fields.remove("tried_at").is_some());
    assert_eq!(new, old);
}

#[test]
fn a_copy_of_what_cannot_be_read_is_none() {
    let Some(failing) = FailingDisk::new() else {
        return;
    };
    let (root, t) = (failing.root(), &failing.t);
    for options in ["", " --algorithm=none"] {
        let to = format!("copied{}", options.len());
        failing.fails(&format!("copy {root} {to}{options}"), 1);
        assert!(!t.join(&to).join(format!("a/{FAILING}-x")).exists());
        assert_eq!(t.read(format!("{to}/a/sound-x")), t.read("plain/a/sound-x"));
    }
    t.bc_line("integrity manifest --output=m plain")
        .go()
        .code(0);
    t.write("restored/x", "");
    failing.fails(
        &format!("integrity restore --force --from={root} restored m"),
        1,
    );
    assert!(!t.join(format!("restored/a/{FAILING}-x")).exists());
    assert_eq!(t.read("restored/a/sound-x"), t.read("plain/a/sound-x"));
    // What is damaged stays, too, where its repair cannot be read.
    let name = format!("a/{FAILING}-x");
    let damaged = vec![6; 3 * FAILING_FROM as usize];
    t.write(format!("restored/{name}"), &damaged);
    let recorded = t.join("plain").join(&name).metadata().unwrap();
    let file = std::fs::File::options()
        .append(true)
        .open(t.join("restored").join(&name))
        .unwrap();
    file.set_modified(recorded.modified().unwrap()).unwrap();
    failing.fails(
        &format!("integrity restore --force --from={root} restored m"),
        1,
    );
    assert_eq!(t.read(format!("restored/{name}")), damaged);
}

/// What a directory does not list is neither taken for removed nor for all that there is.
#[test]
fn a_directory_that_fails_in_the_middle_is_named() {
    let Some(failing) = FailingDisk::new() else {
        return;
    };
    let t = &failing.t;
    let root = failing.disk.path().join("dirs").display().to_string();
    for at in [failing.disk.shown().join("dirs"), t.join("dirs")] {
        let dir = at.join(format!("{FAILING}-dir"));
        std::fs::create_dir_all(&dir).unwrap();
        for nth in 0..10 {
            std::fs::write(dir.join(nth.to_string()), format!("content {nth}")).unwrap();
        }
        std::fs::write(at.join("fine"), "fine").unwrap();
    }
    t.bc_line("integrity manifest --output=m dirs").go().code(0);
    let before = t.read("m");
    failing.fails(&format!("hash {root}"), 1);
    failing.fails(&format!("dup scan {root}"), 1);
    failing.fails(&format!("dup unique {root}"), 1);
    failing.fails(&format!("integrity manifest --output=made {root}"), 1);
    let out = failing.fails(&format!("integrity verify {root} m"), 1);
    assert!(!out.text().contains("REMOVED"), "{out}");
    failing.fails(&format!("integrity update --force {root} m"), 1);
    let entries = |manifest: &[u8]| {
        let text = String::from_utf8(manifest.to_vec()).unwrap();
        text.lines().filter(|line| line.contains(FAILING)).count()
    };
    assert_eq!(entries(&t.read("m")), entries(&before));
    failing.fails(&format!("copy {root} copied"), 1);
    assert_eq!(t.read("copied/fine"), b"fine");
}
