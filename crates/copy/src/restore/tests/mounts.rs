//! Mounts that appear or disappear in the tree while it is restored.

use std::fs;
use std::process::Command;

use bc_hash::HashProgress;
use bc_integrity::{ManifestFile, Reading, Work};
use bc_pool::Cancel;

use super::super::options::{RestoreEvent, RestoreOptions};
use super::{Ground, Told, restore, words};
use crate::Restored;

const INSIDE: &str = "BC_RESTORE_TEST_MOUNTS";

/// Runs the test of that name again where it may mount things; `false` where it does so.
fn is_outside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return false;
    }
    for flags in ["-m", "-rm"] {
        let may_mount = Command::new("unshare")
            .args([flags, "mount", "-t", "tmpfs", "none", "/tmp"])
            .output();
        if !may_mount.is_ok_and(|output| output.status.success()) {
            continue;
        }
        let output = Command::new("unshare")
            .arg(flags)
            .args(bc_testkit::own_words())
            .args(["--exact", &format!("restore::tests::mounts::{test}")])
            .arg("--nocapture")
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let passed = output.status.success() && text.contains("1 passed");
        assert!(passed, "{text}{errors}");
        return true;
    }
    bc_testkit::left_out("this user may not mount anything");
    true
}

fn run(ground: &Ground, line: &str) {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    let done = command.args(words).current_dir(ground.at("")).status();
    assert!(done.unwrap().success(), "{line}");
}

/// A tree with a disk, and files that are gone on both.
fn ground() -> Ground {
    let ground = Ground::new();
    fs::create_dir(ground.at("root/disk")).unwrap();
    run(&ground, "mount -t tmpfs -o size=64k one root/disk");
    for path in ["root/a", "root/d/x", "root/disk/d/f", "root/disk/d/g"] {
        ground.write(path, path);
    }
    fs::create_dir(ground.at("other")).unwrap();
    ground.record();
    ground.copy("root", "copy");
    for path in ["root/a", "root/disk/d/f"] {
        fs::remove_file(ground.at(path)).unwrap();
    }
    ground
}

/// What is mounted on cannot be removed.
fn unmount(ground: &Ground) {
    for at in ["root/disk", "root/disk", "root/d", "other"] {
        let mut command = Command::new("umount");
        // Not everything is mounted in every case.
        let _ = command.args(["-q", "-l"]).arg(ground.at(at)).output();
    }
}

/// Restores; `line` runs when the tree is walked and not yet read, or when it is verified.
fn heal(
    ground: &Ground,
    (line, early): (&str, bool),
) -> (Result<Restored, bc_walk::job::Error>, Told) {
    let manifest = ManifestFile::open(ground.at("m")).unwrap();
    let root = ground.at("root");
    let mut options = RestoreOptions::new(root.as_os_str(), &manifest);
    options.from = vec![ground.at("copy").into()];
    let reported = std::sync::Mutex::new(Told::new());
    let once = std::sync::Once::new();
    let report = |event: RestoreEvent<'_>| {
        if let RestoreEvent::Begins {
            what: "restore", ..
        } = event
            && !early
        {
            once.call_once(|| run(ground, line));
        }
        reported.lock().unwrap().extend(words(event));
    };
    let reading = |_| {
        if early {
            run(ground, line);
        }
        Ok(Reading::new(1))
    };
    let (cancel, progress) = (Cancel::new(), HashProgress::default());
    let work = Work::new(1.into(), &reading, &cancel, &progress);
    let done = restore(&options, &work, &report);
    (done, reported.into_inner().unwrap())
}

#[test]
fn nothing_is_written_to_another_file_system() {
    if is_outside("nothing_is_written_to_another_file_system") {
        return;
    }
    let over = "mount -t tmpfs two root/d";
    for line in ["umount -l root/disk", over, "mount -t tmpfs two root/disk"] {
        for early in [true, false] {
            let ground = ground();
            let (done, reported) = heal(&ground, (line, early));
            match early {
                true => {
                    let refused = done.unwrap_err().to_string();
                    assert!(refused.contains("mounted or unmounted"), "{refused}");
                }
                false => {
                    let failed = done.unwrap().failed;
                    assert_eq!(failed, 2, "{line}: {reported:#?}");
                    let named = reported.iter().filter(|line| line.contains("unmounted"));
                    assert_eq!(named.count(), 2, "{line}: {reported:#?}");
                }
            }
            assert!(!ground.at("root/a").exists() && !ground.at("root/disk/d/f").exists());
            if line != over {
                assert_eq!(fs::read_dir(ground.at("root/disk")).unwrap().count(), 0);
            }
            unmount(&ground);
        }
    }
    // What is mounted elsewhere is of no concern.
    for early in [true, false] {
        let ground = ground();
        let (done, reported) = heal(&ground, ("mount -t tmpfs two other", early));
        assert_eq!(done.unwrap().repaired, 2, "{reported:#?}");
        unmount(&ground);
    }
}

/// A disk that takes no more keeps nothing from the others.
#[test]
fn a_full_disk_stops_what_is_on_it() {
    if is_outside("a_full_disk_stops_what_is_on_it") {
        return;
    }
    for (full, line) in [
        (false, "mount -o remount,bind,ro root/disk"),
        (true, "true"),
    ] {
        let ground = ground();
        for path in ["root/disk/d/h", "root/z"] {
            ground.write(path, path);
        }
        ground.record();
        ground.copy("root/.", "copy");
        for path in ["root/z", "root/disk/d/g", "root/disk/d/h"] {
            fs::remove_file(ground.at(path)).unwrap();
        }
        if full {
            assert!(fs::write(ground.at("root/disk/filler"), vec![1; 1 << 20]).is_err());
        }
        let (done, reported) = heal(&ground, (line, false));
        let done = done.unwrap();
        assert!(done.stopped.is_some(), "{reported:#?}");
        // Those on the disk come first, and the second of them is not begun.
        let counts = (done.failed, done.left, done.repaired);
        assert_eq!(counts, (1, 1, 1), "{reported:#?}");
        assert!(ground.at("root/z").exists(), "{reported:#?}");
        unmount(&ground);
    }
}
