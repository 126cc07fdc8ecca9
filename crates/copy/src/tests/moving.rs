//! Sources that change between the walk and their turn: each is copied in one state or named as
//! failed, and nothing but sources is ever read.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use bc_pool::Cancel;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::Ground;
use crate::{Copied, CopyProgress, Event, copy};

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// Copies a file, and others that `change` is made to as soon as the first has its name.
fn changed(change: &(dyn Fn(&Ground) + Sync)) -> (Ground, Copied) {
    let ground = Ground::new();
    ground.write("from/1", &[1; 300_000]);
    ground.write("from/medium", &[2; 300_000]);
    ground.write("from/small", &[3; 3000]);
    ground.write("from/d/below", &[4; 3000]);
    symlink("target", ground.at("from/link")).unwrap();
    fifo(&ground.at("from/pipe"));
    ground.write("secret", b"secret");
    let mut options = ground.options(&["from"], "to");
    options.workers = 1;
    let once = AtomicBool::new(false);
    let observer = |event: Event<'_>| {
        // All are walked, and nothing is copied yet.
        if matches!(event, Event::Made(_)) && !once.swap(true, Ordering::Relaxed) {
            change(&ground);
        }
    };
    let copied = copy(
        &options,
        &Cancel::new(),
        &CopyProgress::default(),
        &observer,
    )
    .unwrap();
    let all = copied.copied + copied.skipped + copied.failed + copied.left;
    assert_eq!((copied.walked, all), (8, 8), "{copied:?}");
    assert_eq!(std::fs::read(ground.at("to/1")).unwrap(), [1; 300_000]);
    (ground, copied)
}

const FILES: [&str; 3] = ["medium", "small", "d/below"];

#[test]
fn gone() {
    for name in FILES.into_iter().chain(["link", "pipe"]) {
        let (ground, copied) =
            changed(&|ground| std::fs::remove_file(ground.at("from").join(name)).unwrap());
        assert_eq!(copied.failed, 1, "{name}");
        assert!(!ground.at("to").join(name).exists(), "{name}");
    }
    let (ground, copied) = changed(&|ground| {
        std::fs::rename(ground.at("from/d"), ground.at("elsewhere")).unwrap();
    });
    assert!(copied.failed >= 1, "{copied:?}");
    assert!(!ground.at("to/d/below").exists());
}

#[test]
fn something_else_in_their_place() {
    type Put = fn(&Path);
    let puts: [(&str, Put); 4] = [
        ("pipe", |path| fifo(path)),
        ("link", |path| symlink("../secret", path).unwrap()),
        ("far link", |path| symlink("../../secret", path).unwrap()),
        ("directory", |path| std::fs::create_dir(path).unwrap()),
    ];
    for name in FILES {
        for (what, put) in puts {
            let (ground, copied) = changed(&|ground| {
                let path = ground.at("from").join(name);
                std::fs::remove_file(&path).unwrap();
                put(&path);
            });
            assert_eq!(copied.failed, 1, "{name}: {what}");
            let there = ground.at("to").join(name).symlink_metadata();
            assert!(there.is_err(), "{name}: {what}: {there:?}");
        }
    }
    // Not a file when it was walked, and would be an empty one.
    for name in ["link", "pipe"] {
        let (ground, copied) = changed(&|ground| {
            std::fs::remove_file(ground.at("from").join(name)).unwrap();
            ground.write(&format!("from/{name}"), b"content");
        });
        let there = std::fs::read(ground.at("to").join(name)).ok();
        let whole = there.as_deref() == Some(b"content");
        assert!(
            whole || (there.is_none() && copied.failed == 1),
            "{name}: {there:?}"
        );
    }
}

#[test]
fn longer_and_shorter() {
    for name in FILES {
        for length in [0, 1, 2999, 200_000, 500_000] {
            let (ground, copied) = changed(&|ground| {
                std::fs::write(ground.at("from").join(name), vec![9; length]).unwrap();
            });
            match std::fs::read(ground.at("to").join(name)) {
                Ok(there) => assert!(there == vec![9; length], "{name}: {length}"),
                Err(_) => assert_eq!(copied.failed, 1, "{name}: {length}"),
            }
        }
    }
}

/// A link or a pipe that was made again since is the same, at another time.
#[test]
fn what_has_no_content_gets_the_times_of_now() {
    let ground = super::Ground::new();
    ground.write("from/conflict", b"theirs");
    ground.write("to/conflict", b"mine");
    let link = |seconds: i64| {
        let path = ground.at("from/link");
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink("conflict", &path).unwrap();
        let time = rustix::fs::Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        let times = rustix::fs::Timestamps {
            last_access: time,
            last_modification: time,
        };
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(rustix::fs::CWD, &path, &times, flags).unwrap();
    };
    link(1_000_000_000);
    super::resume::settle();
    let mut options = ground.options(&["from"], "to");
    options.target = crate::Target::Exactly;
    assert_eq!(super::run(&options).0.unwrap().failed, 1);
    link(1_100_000_000);
    options.on_conflict = crate::OnConflict::Replace;
    let second = super::done(&options);
    assert_eq!(second.before, 0, "{second:?}");
    assert_eq!(
        super::seen(&ground.at("from")),
        super::seen(&ground.at("to"))
    );
}
