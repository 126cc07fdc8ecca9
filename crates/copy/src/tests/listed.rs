//! Copies of paths that are asked for one by one.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bc_digest::Algorithm;
use bc_manifest::integrity::{Policy, Reader};
use bc_pool::Cancel;
use bc_walk::ExactPaths;

use super::resume::settle;
use super::{Ground, done, resume, run, seen};
use crate::destination::JobNames;
use crate::options::Target;
use crate::{Copied, CopyOptions, CopyProgress, Event, MANIFEST_NAME, copy};

fn listed(ground: &Ground, to: &str, paths: &[&str]) -> CopyOptions {
    let paths = paths.iter().map(|path| path.as_bytes().to_vec());
    let mut options = ground.options(&["from"], to);
    options.target = Target::Exactly;
    options.walk.only = Some(Arc::new(ExactPaths::new(paths)));
    options
}

/// Returns the reported failures, without the place.
fn failures(ground: &Ground, reported: &[String]) -> Vec<String> {
    let from = format!("! {}/", ground.at("from").display());
    let failures = reported.iter().filter_map(|text| text.strip_prefix(&from));
    failures.map(str::to_owned).collect()
}

const GONE: &str = "stat: No such file or directory (os error 2)";

#[test]
fn what_is_not_there_fails_once() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    ground.write("from/b", b"b");
    for list in [&["a", "gone", "gone"][..], &["gone"]] {
        let to = format!("to{}", list.len());
        let options = listed(&ground, &to, list);
        let (copied, reported) = run(&options);
        let copied = copied.unwrap();
        assert_eq!(failures(&ground, &reported), [format!("gone: {GONE}")]);
        // The top, and what is there of the list.
        let there = if list.len() == 1 { 1 } else { 2 };
        assert_eq!((copied.copied, copied.failed), (there, 1), "{copied:?}");
        assert_eq!(copied.walked, there + 1);
        let manifest = std::fs::read_to_string(ground.at(&to).join(MANIFEST_NAME)).unwrap();
        assert!(!manifest.contains("gone"), "{manifest}");
        assert_eq!(ground.at(&to).join("a").exists(), there == 2);
        let mut dry = listed(&ground, "dry", list);
        dry.dry_run = true;
        let (copied, reported) = run(&dry);
        assert_eq!(
            (copied.unwrap().failed, reported.len()),
            (1, 1 + there as usize)
        );
    }
}

#[test]
fn what_vanishes_before_its_directory_is_read_fails() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    ground.write("from/b", b"b");
    let mut options = listed(&ground, "to", &["a", "b"]);
    // No directory: it is warned of that before anything is read.
    ground.write("no-state", b"");
    options.state = Some(ground.at("no-state"));
    let failed = Mutex::new(Vec::new());
    let observer = |event: Event<'_>| match event {
        Event::Warning(_) => {
            let _ = std::fs::remove_file(ground.at("from/b"));
        }
        Event::Failed(error) => failed.lock().unwrap().push(error.to_string()),
        _ => {}
    };
    let copied = copy(
        &options,
        &Cancel::new(),
        &CopyProgress::default(),
        &observer,
    )
    .unwrap();
    let b = ground.at("from/b");
    let failed = failed.into_inner().unwrap();
    assert_eq!(failed, [format!("{}: {GONE}", b.display())]);
    assert_eq!((copied.copied, copied.failed), (2, 1), "{copied:?}");
}

/// Returns files at the destination that the manifest does not list or has with other content.
/// Nothing is lost with a directory that an interrupted copy had put nothing into yet.
fn unproven(ground: &Ground, to: &str) -> Vec<PathBuf> {
    let manifest = ground.at(to).join(MANIFEST_NAME);
    let file = BufReader::new(File::open(manifest).unwrap());
    let mut reader = Reader::new(file, Policy::Strict).unwrap();
    let mut reported = HashMap::new();
    while let Some(entry) = reader.read().unwrap() {
        assert!(
            reported.insert(entry.path.clone(), entry).is_none(),
            "an entry comes twice"
        );
    }
    let mut unproven = Vec::new();
    for path in seen(&ground.at(to)).into_keys() {
        let entry = reported.get(path.as_os_str().as_encoded_bytes());
        let whole = ground.at(to).join(&path);
        let is_proven = entry.is_some_and(|entry| {
            let content = || bc_digest::hash(Algorithm::Blake3, &std::fs::read(&whole).unwrap());
            let is_link = whole.is_symlink() && entry.target.is_some();
            entry.meta.is_some() && (is_link || whole.is_dir() || entry.digest == Some(content()))
        });
        let is_empty = || whole.read_dir().is_ok_and(|mut all| all.next().is_none());
        if !is_proven && !is_empty() && !path.as_os_str().is_empty() {
            unproven.push(path);
        }
    }
    unproven
}

/// Copies a list until an entry whose path ends so is done, and is then cancelled.
fn cancelled_at(options: &CopyOptions, end: &[u8]) -> Copied {
    let cancel = Cancel::new();
    let observer = |event: Event<'_>| {
        if matches!(event, Event::Copied(path) if path.ends_with(end)) {
            cancel.cancel(2);
        }
    };
    copy(options, &cancel, &CopyProgress::default(), &observer).unwrap()
}

#[test]
fn lists_of_one_source_have_one_journal() {
    let ground = Ground::new();
    let name = |list: &[&str]| JobNames::of(&listed(&ground, "to", list)).own;
    let mut all = ground.options(&["from"], "to");
    all.target = Target::Exactly;
    assert_eq!(name(&["a"]), name(&["b/c", "d"]));
    assert_eq!(name(&["a"]), JobNames::of(&all).own);
    assert_ne!(
        name(&["a"]),
        JobNames::of(&listed(&ground, "else", &["a"])).own
    );
}

/// The next import asks for other files than the one that was killed.
#[test]
fn another_list_goes_on_and_loses_nothing() {
    let ground = Ground::new();
    if ground.at("from").metadata().unwrap().created().is_err() {
        return bc_testkit::left_out("files have no time of birth here");
    }
    let files: Vec<String> = (0..400)
        .map(|n| format!("{}/{n}", ["d", "d/e"][n % 2]))
        .collect();
    for file in &files {
        ground.write(&format!("from/{file}"), file.as_bytes());
    }
    ground.write("from/huge", &super::content(70));
    ground.write("from/late/x", b"late");
    std::os::unix::fs::symlink("nowhere", ground.at("from/d/link")).unwrap();
    settle();
    let mut first: Vec<&str> = files.iter().map(String::as_str).collect();
    first.push("d/link");
    // A stage of a large file that the next list does not ask for.
    resume::interrupt(&ground, &mut listed(&ground, "to", &["huge"]));
    let before = cancelled_at(&listed(&ground, "to", &first), b"");
    assert!(before.resumable && before.files > 0, "{before:?}");
    assert!(!ground.at("to").join(MANIFEST_NAME).exists());
    let there = seen(&ground.at("to")).len();

    let (copied, reported) = run(&listed(&ground, "to", &["late"]));
    let copied = copied.unwrap();
    assert_eq!((copied.failed, copied.left), (0, 0), "{reported:?}");
    assert!(
        reported
            .iter()
            .any(|text| text.starts_with("# resuming the run of")),
        "{reported:?}"
    );
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
    assert!(seen(&ground.at("to")).len() >= there);
    assert_eq!(unproven(&ground, "to"), [""; 0].map(PathBuf::from));
    // The first list again: what it had done is known.
    first.push("huge");
    let again = done(&listed(&ground, "to", &first));
    assert!(again.before >= before.files, "{again:?}");
    assert_eq!(again.files, 401);
    assert_eq!(unproven(&ground, "to"), [""; 0].map(PathBuf::from));
}

/// The further names of a file, which are given last.
#[test]
fn names_that_an_interrupted_copy_has_given_are_recorded() {
    let ground = Ground::new();
    if ground.at("from").metadata().unwrap().created().is_err() {
        return bc_testkit::left_out("files have no time of birth here");
    }
    ground.write("from/a", b"content");
    ground.write("from/other", b"other");
    std::os::unix::fs::symlink("nowhere", ground.at("from/link")).unwrap();
    for name in ["b", "c", "d"] {
        std::fs::hard_link(ground.at("from/a"), ground.at("from").join(name)).unwrap();
    }
    std::fs::hard_link(ground.at("from/link"), ground.at("from/link-too")).unwrap();
    settle();
    let all = listed(&ground, "to", &["a", "b", "c", "d", "link", "link-too"]);
    cancelled_at(&all, b"c");
    assert!(ground.at("to/c").exists() && !ground.at("to").join(MANIFEST_NAME).exists());
    done(&listed(&ground, "to", &["other"]));
    assert_eq!(unproven(&ground, "to"), [""; 0].map(PathBuf::from));
    done(&all);
}

/// A file that was changed since it was copied is no longer the proven one.
#[test]
fn what_is_something_else_now_is_not_recorded() {
    let ground = Ground::new();
    if ground.at("from").metadata().unwrap().created().is_err() {
        return bc_testkit::left_out("files have no time of birth here");
    }
    for name in ["a", "b", "c"] {
        ground.write(&format!("from/{name}"), name.as_bytes());
    }
    settle();
    std::os::unix::fs::symlink("nowhere", ground.at("from/link")).unwrap();
    let options = listed(&ground, "to", &["a", "b", "link"]);
    let before = cancelled_at(&options, b"link");
    assert!(before.resumable, "{before:?}");
    std::fs::write(ground.at("to/a"), "else").unwrap();
    // The time distinguishes another process's link from the copy's.
    settle();
    let _ = std::fs::remove_file(ground.at("to/link"));
    std::os::unix::fs::symlink("mine", ground.at("to/link")).unwrap();
    let (copied, reported) = run(&listed(&ground, "to", &["c"]));
    assert_eq!(copied.unwrap().failed, 0, "{reported:?}");
    assert_eq!(unproven(&ground, "to"), ["a", "link"].map(PathBuf::from));
}

/// Two copies to one destination that come to their ends at the same time.
#[test]
fn copies_at_the_same_time_lose_nothing_of_each_others_manifests() {
    let ground = Ground::new();
    for n in 0..60 {
        ground.write(&format!("from/a{n}"), b"a");
        ground.write(&format!("other/b{n}"), b"b");
    }
    for round in 0..20 {
        let to = format!("to{round}");
        std::fs::create_dir(ground.at(&to)).unwrap();
        let from = |source: &str| {
            let mut options = ground.options(&[source], &to);
            options.target = Target::Exactly;
            options
        };
        let both = [from("from"), from("other")];
        std::thread::scope(|scope| {
            for options in &both {
                scope.spawn(|| done(options));
            }
        });
        assert_eq!(
            unproven(&ground, &to),
            [""; 0].map(PathBuf::from),
            "{round}"
        );
    }
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
}
