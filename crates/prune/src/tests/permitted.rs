//! Steps that the system will refuse are refused by a dry run as well.

use bc_testkit::Marked;

use super::undo_later::undo_as_foreseen;
use super::*;

#[test]
fn what_is_immutable_or_append_only() {
    for marked in [&["a/keep"][..], &["b/one"], &["a/keep", "b/one"], &["b"]] {
        for flag in ['i', 'a'] {
            for index in 0..5 {
                let tree = sample();
                let action = actions(&tree)[index].clone();
                let marks = marked.iter().map(|path| Marked::new(tree.join(path), flag));
                let Some(_marks) = marks.collect::<Option<Vec<Marked>>>() else {
                    return bc_testkit::left_out("chattr does not work here");
                };
                let mut options = options(action.clone());
                options.on_metadata_diff = OnMetadataDiff::Ignore;
                let before = snapshot(tree.path());
                let dry = run(&tree, &options.clone().mode(RunMode::DryRun));
                let real = run(&tree, &options);
                let context = format!("{marked:?} {flag} {action:?}");
                assert_eq!(dry.1, real.1, "{context}");
                assert_eq!(dry.0.skipped, real.0.skipped, "{context}: {:?}", real.1);
                assert_eq!(dry.0.changed, real.0.changed, "{context}: {:?}", real.1);
                // A kept file that cannot be changed may stay all the same.
                let keeper_alone = marked == ["a/keep"];
                let refused = !keeper_alone || action == Action::Hardlink;
                let reported = real.0.skipped.contains_key("not permitted");
                assert_eq!(reported, refused, "{context}: {:?}", real.1);
                check_invariant(&tree, &before, &action, &context);
                assert!(temporaries(tree.path()).is_empty(), "{context}");
                let one = tree.join("b/one");
                if refused {
                    assert_eq!(
                        snapshot(tree.path()).get(&one),
                        before.get(&one),
                        "{context}"
                    );
                }
            }
        }
    }
}

/// Which an undo would have to change.
#[test]
fn what_is_immutable_or_append_only_when_it_is_to_come_back() {
    for marked in ["b", "moved", "b/one", "Trash/files", "Trash/files/one"] {
        for flag in ['i', 'a'] {
            for index in 0..5 {
                let tree = sample();
                let mut options = options(actions(&tree)[index].clone());
                options.on_metadata_diff = OnMetadataDiff::Ignore;
                super::moves::run_journalled(&tree, &options);
                let place = match marked.starts_with('b') {
                    true => tree.join(marked),
                    false => tree.scratch(marked),
                };
                if !place.exists() {
                    continue;
                }
                let Some(_mark) = Marked::new(place, flag) else {
                    return bc_testkit::left_out("chattr does not work here");
                };
                let (undone, lines) = undo_as_foreseen(&tree);
                let context = format!("{marked} {flag} {index}: {lines:?}");
                // Names can be added where nothing can be removed.
                let is_added = marked == "b" && flag == 'a' && index > 2;
                let is_above = marked == "moved";
                let refused = undone.failed + undone.incomplete;
                assert!(refused > 0 || is_added || is_above, "{context}");
                assert!(temporaries(tree.path()).is_empty(), "{context}");
            }
        }
    }
}
