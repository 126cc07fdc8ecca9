//! Reports: a dry run has the same as the run, whatever lies at the destination.

use std::os::unix::fs::symlink;

use bc_fs::faults::{self, Fault};
use bc_pool::Cancel;
use bc_testkit::Rng;
use bc_walk::job::{ErrorKind, Means};
use rustix::io::Errno;

use super::resume::settle;
use super::{Ground, Told, done, run, seen};
use crate::{
    CopyOptions, CopyProgress, CopyReport, Event, ManifestPlace, OnConflict, Target, copy,
};

const DIRS: [&str; 3] = ["d", "d/e", "f"];
const NAMES: [&str; 8] = ["a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "f/a", "f/b"];

/// Creates random entries below a directory, links and directories among them.
fn fill(ground: &Ground, rng: &mut Rng, root: &str) {
    for dir in DIRS {
        if rng.below(3) != 0 || root == "from" {
            let path = ground.at(root).join(dir);
            if path.parent().unwrap().is_dir() {
                std::fs::create_dir(path).unwrap();
            }
        }
    }
    for name in NAMES {
        let path = ground.at(root).join(name);
        if !path.parent().unwrap().is_dir() || rng.below(3) == 0 {
            continue;
        }
        let content = [1, 2][rng.below(2) as usize];
        let first = ground.at(root).join(NAMES[rng.below(3) as usize]);
        match rng.below(8) {
            0 | 1 => symlink(["x", "y"][rng.below(2) as usize], &path).unwrap(),
            2 | 3 if first.is_file() && !first.is_symlink() => {
                std::fs::hard_link(first, &path).unwrap();
            }
            _ => std::fs::write(&path, vec![content; 9]).unwrap(),
        }
    }
}

/// Lines but for those about the run as a whole.
fn lines(reported: Told) -> Vec<String> {
    let mut lines = reported;
    lines.retain(|line| !line.starts_with('#'));
    lines
}

/// Paths of the lines.
fn paths(reported: Told) -> Vec<String> {
    let path = |line: String| {
        let path = &line[2..];
        path.split(": ").next().unwrap().to_owned()
    };
    lines(reported).into_iter().map(path).collect()
}

#[test]
fn a_dry_run_reports_what_the_run_does() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let ground = Ground::new();
        fill(&ground, &mut rng, "from");
        if seed % 4 != 0 {
            std::fs::create_dir(ground.at("to")).unwrap();
            fill(&ground, &mut rng, "to");
        }
        let mut options = ground.options(&["from"], "to");
        options.target = Target::Exactly;
        // The second time something is done already, with a journal or with a manifest.
        for turn in 0..2 {
            let policy = OnConflict::ALL[rng.below(5) as usize];
            options.on_conflict = policy;
            let there = || ground.at("to").exists().then(|| seen(&ground.at("to")));
            let before = there();
            options.dry_run = true;
            let (dry, reported_dry) = run(&options);
            assert_eq!(there(), before);
            options.dry_run = false;
            let (done, reported) = run(&options);
            let context = format!("seed {seed}, {turn}, {policy:?}");
            // That a link is lost is found when files are compared.
            let mut made = lines(reported);
            made.retain(|line| !line.contains(": link: "));
            assert_eq!(lines(reported_dry), made, "{context}");
            let counts = |copied: crate::Copied| {
                (copied.walked, copied.copied, copied.skipped, copied.failed)
            };
            assert_eq!(counts(dry.unwrap()), counts(done.unwrap()), "{context}");
        }
    }
}

/// Entries of all kinds, which are copied at different times.
fn fill_mixed(ground: &Ground, root: &str) {
    for dir in ["a", "a/x", "c", "c-d"] {
        for number in 0..40 {
            let size = [3, 200_000, 7][number % 3];
            ground.write(&format!("{root}/{dir}/{number}"), &vec![number as u8; size]);
        }
        symlink("0", ground.at(root).join(dir).join("20-link")).unwrap();
        let (first, further) = (format!("{root}/{dir}/5"), format!("{root}/{dir}/6-further"));
        std::fs::hard_link(ground.at(&first), ground.at(&further)).unwrap();
    }
    for file in ["a-b", "a.c", "c/z"] {
        ground.write(&format!("{root}/{file}"), b"beside");
    }
}

#[test]
fn reports_are_in_path_order_whatever_the_threads() {
    for workers in [1, 4] {
        let ground = Ground::new();
        fill_mixed(&ground, "from");
        let mut options = ground.options(&["from"], "to");
        options.workers = workers;
        options.target = Target::Exactly;
        let (_, reported) = run(&options);
        let found = paths(reported);
        let mut sorted = found.clone();
        sorted.sort();
        // The top and directories too.
        assert_eq!((found.len(), &found), (4 * 43 + 4, &sorted), "{workers}");
        // So are failures.
        options.manifest = ManifestPlace::None;
        options.state = None;
        options.preserve.links = false;
        std::fs::remove_file(ground.at("to").join(crate::MANIFEST_NAME)).unwrap();
        let (copied, reported) = run(&options);
        let failed = paths(reported);
        sorted.retain(|path| !ground.at("to").join(path).is_dir());
        assert_eq!(copied.unwrap().failed, 4 * 42 + 3);
        assert_eq!(failed, sorted, "{workers}");
    }
}

#[test]
fn reports_of_several_sources_and_destinations_do_not_mix() {
    let ground = Ground::new();
    for root in ["s/k-l", "s/k", "s/j"] {
        fill_mixed(&ground, root);
    }
    std::fs::create_dir(ground.at("one")).unwrap();
    std::fs::create_dir(ground.at("two")).unwrap();
    let mut options = ground.options(&["s/k-l", "s/k", "s/j"], "two");
    options.workers = 3;
    let reported = std::sync::Mutex::new(Vec::new());
    let observer = |event: Event<'_>| {
        if let Event::Made(path) | Event::Copied(path) = event {
            reported.lock().unwrap().push(path.to_vec());
        }
    };
    let (cancel, progress) = (bc_pool::Cancel::new(), CopyProgress::default());
    let done = crate::fan_out(&options, &[ground.at("one")], &cancel, &progress, &observer);
    assert!(
        done.unwrap()
            .iter()
            .all(|one| one.as_ref().unwrap().failed == 0)
    );
    let reported = reported.into_inner().unwrap();
    let (first, second) = reported.split_at(reported.len() / 2);
    assert!(first.is_sorted() && second.is_sorted());
    assert!(first[0].ends_with(b"two/j") && second[0].ends_with(b"one/j"));
    assert_eq!((first.len(), second.len()), (3 * 176, 3 * 176));
}

/// They come while the rest is copied.
#[test]
fn reports_wait_for_those_before_them_alone() {
    let ground = Ground::new();
    for name in ["a", "b", "c", "d"] {
        ground.write(&format!("from/{name}"), &[1; 200_000]);
    }
    let mut options = ground.options(&["from"], "to");
    options.workers = 1;
    let left = std::sync::atomic::AtomicUsize::new(0);
    let observer = |event: Event<'_>| {
        let missing = ["b", "c", "d"].map(|name| !ground.at("to").join(name).exists());
        if matches!(event, Event::Copied(path) if path.ends_with(b"/a")) {
            let missing = missing.into_iter().filter(|missing| *missing).count();
            left.store(missing, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let (cancel, progress) = (bc_pool::Cancel::new(), CopyProgress::default());
    let copied = crate::copy(&options, &cancel, &progress, &observer);
    assert_eq!((copied.unwrap().failed, left.into_inner()), (0, 3));
}

/// One of two sources that is not there does not make the other one the destination itself.
#[test]
fn a_source_that_cannot_be_looked_at_is_a_source() {
    let ground = Ground::new();
    ground.write("a", b"a");
    ground.write("from/inner", b"inner");
    ground.write("file", b"the user's");
    for (sources, to) in [
        (["absent", "a"], "x"),
        (["a", "absent"], "x"),
        (["absent", "from"], "x"),
        (["absent", "a"], "file"),
        (["absent", "from/."], "dir"),
    ] {
        std::fs::create_dir_all(ground.at("dir")).unwrap();
        let mut options = ground.options(&sources, to);
        options.on_conflict = OnConflict::Replace;
        for dry_run in [true, false] {
            options.dry_run = dry_run;
            let (done, _) = run(&options);
            assert_eq!(
                done.unwrap_err().kind(),
                ErrorKind::Usage,
                "{sources:?} {to}"
            );
        }
    }
    assert!(!ground.at("x").exists() && !ground.at("dir/inner").exists());
    assert_eq!(std::fs::read(ground.at("file")).unwrap(), b"the user's");
    let (done, _) = run(&ground.options(&["absent", "a"], "dir"));
    assert_eq!(done.unwrap().failed, 1);
    assert_eq!(std::fs::read(ground.at("dir/a")).unwrap(), b"a");
    assert!(super::journal(&ground).is_some());
}

/// A journal of an earlier version has a name without a volume.
#[test]
fn a_journal_that_tells_no_volume_is_gone_on_from() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    ground.write("from/b", b"b");
    ground.write("to/b", b"the user's");
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    assert_eq!(run(&options).0.unwrap().failed, 1);
    let names = crate::destination::JobNames::of(&options);
    let Some(earlier) = names.without_volume else {
        return bc_testkit::left_out("this file system has no name");
    };
    let path = super::journal(&ground).unwrap();
    assert_eq!(path.file_stem().unwrap().to_str(), Some(&names.own[..]));
    std::fs::rename(&path, path.with_file_name(format!("{earlier}.journal"))).unwrap();
    let (copied, reported) = run(&options);
    assert_eq!(copied.unwrap().before, 1, "{reported:#?}");
    options.on_conflict = OnConflict::Replace;
    assert_eq!(super::done(&options).before, 1);
    assert_eq!(super::journal(&ground), None);
}

/// Of what many entries lack alike the first in the order of paths are told, whichever source comes
/// first.
#[test]
fn the_first_entries_are_told_that_lack_the_same() {
    let ground = Ground::new();
    let mut expected = Vec::new();
    for root in ["a", "z"] {
        for number in 10..25 {
            let (first, further) = (format!("{root}/{number}a"), format!("{root}/{number}b"));
            ground.write(&first, b"content");
            std::fs::hard_link(ground.at(&first), ground.at(&further)).unwrap();
            // The copy of the first cannot be linked to it.
            ground.write(&format!("to/{further}"), b"the user's");
            expected.push(ground.at("to").join(first).display().to_string());
        }
    }
    let mut options = ground.options(&["z", "a"], "to");
    options.on_conflict = OnConflict::Skip;
    let (copied, reported) = run(&options);
    assert_eq!(copied.unwrap().incomplete, 30, "{reported:#?}");
    let mut lacking = reported;
    lacking.retain(|line| line.starts_with('?'));
    assert_eq!(paths(lacking), expected[..20]);
}

/// A cancellation that comes with the last report leaves neither a manifest nor the claim that all
/// is done.
#[test]
fn a_copy_that_ends_without_its_manifest_is_not_complete() {
    let ground = Ground::new();
    let mut options = ground.options(&["from"], "to");
    options.workers = 1;
    let cancel = Cancel::new();
    // What a directory lacks is reported last.
    faults::arm(("utimens".to_owned(), 1), Fault::Errno(Errno::IO));
    let observer = |event: Event<'_>| {
        if let Event::Incomplete(_) = event {
            cancel.stop();
        }
    };
    let copied = copy(&options, &cancel, &CopyProgress::default(), &observer).unwrap();
    assert!(faults::disarm().reached && cancel.is_cancelled());
    assert_eq!(
        (copied.left, copied.failed, &copied.manifest),
        (0, 0, &None)
    );
    assert!(copied.resumable && super::journal(&ground).is_some());
    assert!(done(&options).manifest.is_some());
    assert_eq!(super::journal(&ground), None);
}

/// Everything is copied by then, but nothing is forced to the disk.
#[test]
fn a_cancellation_before_the_manifest_is_one() {
    let ground = Ground::new();
    let cancel = Cancel::new();
    let stop = cancel.clone();
    faults::arm(
        ("utimens".to_owned(), 1),
        Fault::Run(Box::new(move || stop.stop())),
    );
    let copy = CopyOptions::new([ground.at("from")], ground.at("to"));
    let means = Means::new().threads(1).cancel(&cancel);
    let error = copy.run(&means).unwrap_err();
    assert!(faults::disarm().reached);
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let report: &CopyReport = error.partial().unwrap();
    assert!(report.cancelled && !report.is_complete());
    assert_eq!((report.counts.left, &report.counts.manifest), (0, &None));
}
