//! Copies of paths that are asked for one by one.

use std::sync::{Arc, Mutex};

use bc_pool::Cancel;
use bc_walk::ExactPaths;

use super::{Ground, done, run};
use crate::options::Target;
use crate::target::job_name;
use crate::{CopyOptions, CopyProgress, Event, MANIFEST_NAME, copy};

fn listed(ground: &Ground, to: &str, paths: &[&str]) -> CopyOptions {
    let paths = paths.iter().map(|path| path.as_bytes().to_vec());
    let mut options = ground.options(&["from"], to);
    options.target = Target::Exactly;
    options.walk.only = Some(Arc::new(ExactPaths::new(paths)));
    options
}

/// The failures among what was told, without the place.
fn failures(ground: &Ground, told: &[String]) -> Vec<String> {
    let from = format!("! {}/", ground.at("from").display());
    let failures = told.iter().filter_map(|text| text.strip_prefix(&from));
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
        let (copied, told) = run(&options);
        let copied = copied.unwrap();
        assert_eq!(failures(&ground, &told), [format!("gone: {GONE}")]);
        // The top, and what is there of the list.
        let there = if list.len() == 1 { 1 } else { 2 };
        assert_eq!((copied.copied, copied.failed), (there, 1), "{copied:?}");
        assert_eq!(copied.walked, there + 1);
        let manifest = std::fs::read_to_string(ground.at(&to).join(MANIFEST_NAME)).unwrap();
        assert!(!manifest.contains("gone"), "{manifest}");
        assert_eq!(ground.at(&to).join("a").exists(), there == 2);
        let mut dry = listed(&ground, "dry", list);
        dry.dry_run = true;
        let (copied, told) = run(&dry);
        assert_eq!(
            (copied.unwrap().failed, told.len()),
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

#[test]
fn journals_are_of_one_list() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    ground.write("from/b", b"b");
    let name = |list: &[&str]| job_name(&listed(&ground, "to", list));
    assert_eq!(name(&["a", "b"]), name(&["b", "a", "b"]));
    let mut all = ground.options(&["from"], "to");
    all.target = Target::Exactly;
    let mut names = vec![job_name(&all)];
    names.extend([&["a"][..], &["b"], &["a", "b"], &["a/b"], &["ab"]].map(name));
    for (at, name) in names.iter().enumerate() {
        assert!(!names[..at].contains(name), "{at}");
    }

    let first = listed(&ground, "to", &["a", "gone"]);
    let (copied, _) = run(&first);
    assert!(copied.unwrap().resumable);
    let went_on = |told: &[String]| told.iter().any(|text| text.starts_with("# goes on from"));
    let (copied, told) = run(&listed(&ground, "to", &["b"]));
    assert_eq!(copied.unwrap().failed, 0);
    assert!(!went_on(&told), "{told:?}");
    // The journal of the first list is still there.
    ground.write("from/gone", b"back");
    let (copied, told) = run(&first);
    assert!(went_on(&told), "{told:?}");
    assert_eq!(copied.unwrap().failed, 0);
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
    done(&listed(&ground, "else", &["a", "gone"]));
}
