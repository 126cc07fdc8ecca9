//! Runs that resume where another was interrupted.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};

use bc_fs::mount::mount_number;
use bc_pool::Cancel;
use bc_walk::job::ErrorKind;

use super::{Ground, done, rewrite_journal, run, seen};
use crate::{CopyProgress, Durability, Event, OnConflict, copy};

/// Waits so that times are proof.
pub(crate) fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(250));
}

#[test]
fn the_same_command_goes_on_and_its_destination_stays() {
    let ground = Ground::new();
    for number in 0..300 {
        ground.write(
            &format!("from/{}/{number}", number % 7),
            format!("{number}").as_bytes(),
        );
    }
    settle();
    let options = ground.options(&["from"], "to");
    let (cancel, count) = (Cancel::new(), AtomicU32::new(0));
    let observer = |event: Event<'_>| {
        if matches!(event, Event::Copied(_)) && count.fetch_add(1, Ordering::Relaxed) == 100 {
            cancel.cancel(2);
        }
    };
    let first = copy(&options, &cancel, &CopyProgress::default(), &observer).unwrap();
    assert!(first.left > 0 && first.resumable, "{first:?}");
    assert_eq!(first.walked, first.copied + first.left);
    let inodes = |path: &str| {
        std::fs::metadata(ground.at(path))
            .map(|meta| meta.ino())
            .ok()
    };
    let before = (0..300)
        .filter(|n| inodes(&format!("to/{}/{n}", n % 7)).is_some())
        .count();
    let second = done(&options);
    assert_eq!(second.before, before as u64, "{second:?}");
    // Not into it, now that it exists.
    assert!(!ground.at("to/from").exists());
    assert_eq!(seen(&ground.at("from")), seen(&ground.at("to")));
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
    // It is over: the rule holds again.
    done(&options);
    assert!(ground.at("to/from").exists());
}

#[test]
fn a_huge_file_goes_on_from_its_blocks() {
    let ground = Ground::new();
    let content = super::content(70);
    ground.write("from/huge", &content);
    let algorithm = ground.options(&["from"], "to").algorithm;
    let options = interrupted_with(&ground, algorithm);
    assert!(!ground.at("to/huge").exists());
    let second = done(&options);
    assert!(second.bytes < 60 << 20, "{second:?}");
    assert!(std::fs::read(ground.at("to/huge")).unwrap() == content);
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
}

/// With any digest, or none: the part that is there is proven, and only the rest is written. In
/// between another digest may be taken, whose records prove nothing to the others.
#[test]
fn a_large_file_goes_on_with_any_digest() {
    use bc_digest::Algorithm;
    let ground = Ground::new();
    let content = super::content(70);
    ground.write("from/huge", &content);
    ground.write("from/small", b"small");
    for (algorithms, is_dirty) in [
        (["xxh128", "xxh128"], false),
        (["xxh128", "xxh128"], true),
        (["none", "none"], true),
        (["xxh128", "none"], false),
        (["blake3", "xxh128"], false),
    ] {
        let mut options = interrupted_with(&ground, Algorithm::from_name(algorithms[0]));
        let stage = stages(&ground.at("to")).remove(0);
        let file = std::fs::File::options().write(true).open(&stage).unwrap();
        if is_dirty {
            for at in [9 << 20, 90 << 20] {
                std::os::unix::fs::FileExt::write_all_at(&file, b"dirt", at).unwrap();
            }
        }
        options.algorithm = Algorithm::from_name(algorithms[1]);
        let second = done(&options);
        let written = second.bytes >> 20;
        // 20 MiB were there, and what is of use of them is what comes before dirt.
        let expected = match (algorithms, is_dirty) {
            (_, true) => 60..66,
            (["blake3", _], false) => 70..71,
            (_, false) => 1..51,
        };
        assert!(expected.contains(&written), "{algorithms:?}: {second:?}");
        assert!(std::fs::read(ground.at("to/huge")).unwrap() == content);
        assert!(ground.litter().is_empty(), "{:?}", ground.litter());
        if options.algorithm.is_some() {
            let manifest = ground.at("to").join(crate::MANIFEST_NAME);
            assert_eq!(super::proof::verify(&ground.at("to"), &manifest), [""; 0]);
        }
        std::fs::remove_dir_all(ground.at("to")).unwrap();
    }
}

/// Digests of one length that are of different kinds.
#[test]
fn a_run_with_another_digest_in_between() {
    use bc_digest::Algorithm;
    let ground = Ground::new();
    ground.write("from/a", b"first");
    ground.write("to/b", b"in the way");
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = crate::Target::Exactly;
    for (name, algorithm) in [("b", "blake3"), ("c", "sha256"), ("d", "blake3")] {
        ground.write(&format!("from/{name}"), name.as_bytes());
        settle();
        options.algorithm = Algorithm::from_name(algorithm);
        assert_eq!(run(&options).0.unwrap().failed, 1);
    }
    options.on_conflict = OnConflict::Replace;
    assert_eq!(done(&options).before, 3);
    let manifest = ground.at("to").join(crate::MANIFEST_NAME);
    assert_eq!(super::proof::verify(&ground.at("to"), &manifest), [""; 0]);
}

#[test]
fn what_changed_meanwhile_is_copied_anew_and_what_was_in_the_way_stays() {
    let ground = Ground::new();
    ground.write("from/a", b"first");
    ground.write("from/b", b"second");
    ground.write("to/b", b"mine");
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = crate::Target::Exactly;
    let (first, reported) = run(&options);
    let first = first.unwrap();
    assert_eq!((first.failed, first.resumable), (1, true), "{reported:?}");
    std::fs::write(ground.at("from/a"), b"edited").unwrap();
    let (second, reported) = run(&options);
    assert_eq!(second.unwrap().failed, 1, "{reported:?}");
    assert_eq!(std::fs::read(ground.at("to/a")).unwrap(), b"edited");
    assert_eq!(std::fs::read(ground.at("to/b")).unwrap(), b"mine");
    options.on_conflict = OnConflict::Replace;
    assert_eq!(done(&options).before, 1);
    assert_eq!(std::fs::read(ground.at("to/b")).unwrap(), b"second");
    assert_eq!(std::fs::read(ground.at("to/a")).unwrap(), b"edited");
}

#[test]
fn a_living_run_of_the_same_copy_is_not_disturbed() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    let options = ground.options(&["from"], "to");
    let inner = AtomicU32::new(0);
    let observer = |event: Event<'_>| {
        if matches!(event, Event::Copied(_)) {
            let (second, _) = run(&options);
            assert_eq!(second.unwrap_err().kind(), ErrorKind::Busy);
            inner.fetch_add(1, Ordering::Relaxed);
        }
    };
    copy(
        &options,
        &Cancel::new(),
        &CopyProgress::default(),
        &observer,
    )
    .unwrap();
    assert!(inner.load(Ordering::Relaxed) > 0);
}

/// Two runs that begin at once, of which the second is there before the first has written anything.
#[test]
fn a_run_that_begins_at_the_same_time_is_refused() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    let mut options = ground.options(&["from"], "to");
    options.walk.only = Some(std::sync::Arc::new(bc_walk::ExactPaths::new(
        ["a", "absent"].map(|path| path.as_bytes().to_vec()),
    )));
    let inner = AtomicU32::new(0);
    // Missing sources are reported before the journal is begun.
    let observer = |event: Event<'_>| {
        if matches!(event, Event::Failed(_)) && inner.fetch_add(1, Ordering::Relaxed) == 0 {
            assert!(!ground.at("to").exists());
            let (second, _) = run(&options);
            assert_eq!(second.unwrap_err().kind(), ErrorKind::Busy);
        }
    };
    let progress = CopyProgress::default();
    let first = copy(&options, &Cancel::new(), &progress, &observer).unwrap();
    assert_eq!((first.failed, inner.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(std::fs::read(ground.at("to/a")).unwrap(), b"a");
}

/// A run that is refused, or a dry one, leaves nothing in the state directory but the key.
#[test]
fn a_run_that_is_refused_leaves_no_journal() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    for (to, dry_run) in [("from/within", false), ("absent/to", false), ("to", true)] {
        let mut options = ground.options(&["from"], to);
        options.dry_run = dry_run;
        assert_eq!(run(&options).0.is_ok(), dry_run, "{to}");
        assert_eq!(super::journal(&ground), None, "{to}");
    }
}

/// Makes the journal that is left one of another boot, without the records of `but`.
fn as_of_another_boot(ground: &Ground, but: &[&[u8]]) {
    rewrite_journal(ground, |kind, body| {
        if kind == crate::resume::record::SESSION {
            body[0] ^= 1;
        }
        kind != crate::resume::record::DONE || !but.iter().any(|end| body.ends_with(end))
    });
}

#[test]
fn after_a_power_cut_what_is_there_is_read_first() {
    let ground = Ground::new();
    ground.write("to/mine", b"somebody's");
    if ground.at("to/mine").metadata().unwrap().created().is_err() {
        return bc_testkit::left_out("files have no time of birth here");
    }
    settle();
    for name in ["mine", "whole", "lost", "unrecorded", "unrecorded-lost"] {
        ground.write(&format!("from/{name}"), name.as_bytes());
    }
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = crate::Target::Exactly;
    assert_eq!(run(&options).0.unwrap().failed, 1);
    // The blocks of some never came to the disk; their sizes and times did.
    for name in ["lost", "unrecorded-lost"] {
        let path = ground.at("to").join(name);
        let time = path.metadata().unwrap().modified().unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4], 0).unwrap();
        file.set_modified(time).unwrap();
    }
    as_of_another_boot(&ground, &[b"unrecorded", b"unrecorded-lost"]);
    let (second, reported) = run(&options);
    let second = second.unwrap();
    assert_eq!((second.failed, second.before), (1, 2), "{reported:#?}");
    for name in ["whole", "lost", "unrecorded", "unrecorded-lost"] {
        let found = std::fs::read(ground.at("to").join(name)).unwrap();
        assert_eq!(found, name.as_bytes(), "{reported:#?}");
    }
    // A file from before the copy belongs to another process.
    assert_eq!(std::fs::read(ground.at("to/mine")).unwrap(), b"somebody's");
}

/// A file that another process has made since the last run is not the copy's, whatever was
/// restarted meanwhile.
#[test]
fn what_came_since_the_last_run_stays() {
    let ground = Ground::new();
    for name in ["mine", "later"] {
        ground.write(&format!("from/{name}"), name.as_bytes());
    }
    ground.write("to/mine", b"somebody's");
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = crate::Target::Exactly;
    assert_eq!(run(&options).0.unwrap().failed, 1);
    as_of_another_boot(&ground, &[b"later"]);
    // The last run was an hour ago.
    let journals = std::fs::read_dir(ground.at("state/copy")).unwrap();
    for journal in journals {
        let path = journal.unwrap().path();
        let file = std::fs::File::options().append(true).open(path).unwrap();
        let hour = std::time::Duration::from_secs(3600);
        file.set_modified(std::time::SystemTime::now() - hour)
            .unwrap();
    }
    std::fs::remove_file(ground.at("to/later")).unwrap();
    ground.write("to/later", b"not of any run");
    let (second, reported) = run(&options);
    assert_eq!(second.unwrap().failed, 2, "{reported:#?}");
    let later = std::fs::read(ground.at("to/later")).unwrap();
    assert_eq!(later, b"not of any run", "{reported:#?}");
}

/// With `batch` and `file` a power cut is no reason to read files in the recorded state: bytes that
/// have silently changed by now are for the manifest to find.
#[test]
fn what_was_forced_to_the_disk_is_not_read_again() {
    for (durability, is_cut) in [
        (Durability::Batch, true),
        (Durability::File, true),
        (Durability::End, true),
        (Durability::None, false),
    ] {
        let ground = Ground::new();
        let folder = std::fs::File::open(ground.at("")).unwrap();
        if !is_cut && mount_number(&folder).unwrap_or(0) == 0 {
            bc_testkit::left_out("without a power cut: the system gives mounts no numbers");
            continue;
        }
        ground.write("from/a", b"content");
        ground.write("from/b", b"other");
        ground.write("to/b", b"mine");
        settle();
        let mut options = ground.options(&["from"], "to");
        options.target = crate::Target::Exactly;
        options.durability = durability;
        assert_eq!(run(&options).0.unwrap().failed, 1);
        if is_cut {
            as_of_another_boot(&ground, &[]);
        }
        // A program that reads the file finds out that it has another digest.
        rewrite_journal(&ground, |kind, body| {
            // Before the path, `to/a`.
            if let (crate::resume::record::DONE, [.., byte, _, _, _, _]) = (kind, &mut body[..]) {
                *byte ^= 1;
            }
            true
        });
        assert_eq!(run(&options).0.unwrap().failed, 1);
        let manifest = ground.at("to").join(crate::MANIFEST_NAME);
        let found = super::proof::verify(&ground.at("to"), &manifest);
        let was_read = found.iter().all(|one| one.ends_with(" b"));
        assert_eq!(
            was_read,
            durability == Durability::End,
            "{durability:?}: {found:?}"
        );
    }
}

#[test]
fn a_home_directory_is_copied_with_the_state_that_grows_in_it() {
    let ground = Ground::new();
    ground.write("from/file", b"content");
    ground.write("to/file", b"mine");
    let mut options = ground.options(&["from"], "to");
    options.target = crate::Target::Exactly;
    options.state = Some(ground.at("from/state"));
    assert_eq!(run(&options).0.unwrap().failed, 1);
    options.on_conflict = OnConflict::Replace;
    let copied = done(&options);
    assert_eq!(copied.failed, 0);
    assert!(ground.at("to/state/journal.key").exists());
    assert_eq!(
        std::fs::read_dir(ground.at("to/state/copy"))
            .unwrap()
            .count(),
        0
    );
}

/// The stages below a directory.
pub(super) fn stages(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|end| end == "part"))
        .collect()
}

/// Interrupts a copy of `from/huge` in the middle.
pub(super) fn interrupted(ground: &Ground) -> crate::CopyOptions {
    interrupted_with(ground, Some(bc_digest::Algorithm::Blake3))
}

pub(super) fn interrupted_with(
    ground: &Ground,
    algorithm: Option<bc_digest::Algorithm>,
) -> crate::CopyOptions {
    settle();
    let mut options = ground.options(&["from"], "to");
    options.algorithm = algorithm;
    interrupt(ground, &mut options);
    options
}

/// Interrupts that copy in the middle of its large file.
pub(super) fn interrupt(ground: &Ground, options: &mut crate::CopyOptions) {
    // A copy within the kernel is done too soon.
    options.sparse = crate::When::Always;
    // On a busy machine it may come to its end before it is interrupted.
    while !is_interrupted(ground, options) {
        std::fs::remove_dir_all(ground.at("to")).unwrap();
    }
    options.sparse = crate::When::Auto;
}

/// True if a copy could be interrupted in the middle of its large file.
fn is_interrupted(ground: &Ground, options: &crate::CopyOptions) -> bool {
    let (cancel, progress) = (Cancel::new(), CopyProgress::default());
    let first = std::thread::scope(|scope| {
        scope.spawn(|| {
            while progress.bytes.load(Ordering::Relaxed) < 20 << 20 && !cancel.is_cancelled() {
                std::thread::yield_now();
            }
            cancel.cancel(2);
        });
        let first = copy(options, &cancel, &progress, &|_| {}).unwrap();
        cancel.cancel(2);
        first
    });
    let copied = progress.bytes.load(Ordering::Relaxed);
    first.left > 0 && copied < 50 << 20 && stages(&ground.at("to")).len() == 1
}

#[test]
fn what_is_dirty_in_a_stage_does_not_stay() {
    use std::os::unix::fs::FileExt;
    let ground = Ground::new();
    let huge = std::fs::File::create(ground.at("from/huge")).unwrap();
    for at in (0..66_u64).step_by(3) {
        huge.write_all_at(&vec![at as u8 + 1; 1 << 20], at << 20)
            .unwrap();
    }
    huge.set_len(80 << 20).unwrap();
    drop(huge);
    let options = interrupted(&ground);
    let stage = stages(&ground.at("to")).remove(0);
    let file = std::fs::File::options().write(true).open(&stage).unwrap();
    // In a hole, in data that was proven, and behind the end.
    for at in [1 << 20, 3 << 20, 64 << 20, 90 << 20] {
        file.write_all_at(b"dirt", at).unwrap();
    }
    drop(file);
    let second = done(&options);
    assert!(second.bytes < 80 << 20, "{second:?}");
    let [from, to] = ["from/huge", "to/huge"].map(|path| std::fs::read(ground.at(path)).unwrap());
    assert!(from == to);
    let blocks = |path: &str| std::fs::metadata(ground.at(path)).unwrap().blocks();
    assert!(
        blocks("to/huge") < (60 << 20) / 512,
        "{}",
        blocks("to/huge")
    );
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
}

#[test]
fn a_source_that_changed_leaves_no_old_stage() {
    let ground = Ground::new();
    ground.write("from/huge", &vec![5; 70 << 20]);
    let options = interrupted(&ground);
    let mut more = std::fs::File::options()
        .append(true)
        .open(ground.at("from/huge"))
        .unwrap();
    std::io::Write::write_all(&mut more, b"more").unwrap();
    drop(more);
    done(&options);
    let [from, to] = ["from/huge", "to/huge"].map(|path| std::fs::read(ground.at(path)).unwrap());
    assert!(from == to);
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
}
