//! Several destinations at once.

use std::ffi::OsString;

use bc_digest::Algorithm;
use bc_pool::Cancel;

use super::resume::interrupted_with;
use super::{Ground, proof::verify, seen};
use crate::{Copied, CopyOptions, CopyProgress, Event, MANIFEST_NAME, fan_out};

/// Copies to the destination of `options` and to the others, where nothing goes wrong.
#[track_caller]
fn fan(ground: &Ground, options: &CopyOptions, others: &[&str]) -> Vec<Copied> {
    let others: Vec<OsString> = others.iter().map(|to| ground.at(to).into()).collect();
    let progress = CopyProgress::default();
    let observer = |event: Event<'_>| {
        if let Event::Failed(error) = event {
            panic!("{error}");
        }
    };
    let all = fan_out(options, &others, &Cancel::new(), &progress, &observer).unwrap();
    let all: Vec<Copied> = all.into_iter().map(Result::unwrap).collect();
    for one in &all {
        assert_eq!((one.failed, one.left), (0, 0), "{one:?}");
        assert_eq!(one.walked, one.copied + one.skipped, "{one:?}");
    }
    all
}

/// One has a part of a large file already, the other nothing: it is read from the beginning, and
/// each is written what it lacks.
#[test]
fn one_goes_on_while_another_begins() {
    let content = super::content(70);
    for algorithm in ["blake3", "xxh128", "none"] {
        let ground = Ground::new();
        ground.write("from/huge", &content);
        let options = interrupted_with(&ground, Algorithm::from_name(algorithm));
        let all = fan(&ground, &options, &["second"]);
        // Interrupted behind 20 MiB, of which the two workers had not finished a block each.
        assert!(all[0].bytes <= 58 << 20, "{algorithm}: {all:?}");
        assert!(all[1].bytes >= 70 << 20, "{algorithm}: {all:?}");
        for to in ["to", "second"] {
            assert!(std::fs::read(ground.at(to).join("huge")).unwrap() == content);
            if algorithm != "none" {
                let manifest = ground.at(to).join(MANIFEST_NAME);
                assert_eq!(verify(&ground.at(to), &manifest), [""; 0], "{algorithm}");
            }
        }
        assert!(ground.litter().is_empty(), "{:?}", ground.litter());
    }
}

/// The manifest of an earlier copy is left where that of this one goes, and copied elsewhere.
#[test]
fn what_gives_way_at_one_is_a_file_at_another() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    super::done(&ground.options(&["from"], "to"));
    std::fs::create_dir(ground.at("into")).unwrap();
    let all = fan(&ground, &ground.options(&["to"], "again"), &["into"]);
    assert_eq!((all[0].skipped, all[1].skipped), (1, 0), "{all:?}");
    for (root, expected) in [("again", 3), ("into", 5)] {
        let manifest = ground.at(root).join(MANIFEST_NAME);
        assert_eq!(verify(&ground.at(root), &manifest), [""; 0], "{root}");
        let text = std::fs::read_to_string(&manifest).unwrap();
        // Header, root where it is meant as a whole, entries, trailer.
        assert!(text.lines().count() >= expected, "{text}");
    }
    assert!(ground.at("into/to").join(MANIFEST_NAME).exists());
    let trees = ["from", "again"].map(|root| seen(&ground.at(root)));
    assert_eq!(trees[0], trees[1]);
}
