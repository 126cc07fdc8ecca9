//! A file moves to another file system while another process works with its copy: the copy goes, is
//! moved away or is changed.

use std::rc::Rc;

use super::lost::{all, edit, is_edited, pair, somewhere};
use super::moves::{action, moved};
use super::*;

type Race = (&'static str, fn(&Path) -> bool);

const RACES: [Race; 4] = [
    ("remove", |one| fs::remove_file(one).is_ok()),
    ("rename", |one| {
        fs::rename(one, one.with_extension("mine")).is_ok()
    }),
    ("remove all", |one| {
        fs::remove_dir_all(one.parent().unwrap()).is_ok()
    }),
    ("edit", edit),
];

/// Before any call up to the one that removes the original: then that stays, and no missing copy is
/// reported.
#[test]
fn the_original_stays_where_the_copy_does_not() {
    let mut sweep = Sweep::new(FEW).ways(RACES.len());
    while let Some(point) = sweep.next() {
        let (what, race) = RACES[sweep.way()];
        let Some((tree, to)) = pair() else { return };
        let one = moved(to.path(), &tree, "b/one");
        let raced = Rc::new(std::cell::Cell::new(false));
        let (there, original, note) = (one.clone(), tree.join("b/one"), Rc::clone(&raced));
        let race = move || {
            let parent = original.parent().unwrap().to_owned();
            // The original is there, under its own name or the temporary one.
            let stands = !files(&parent).is_empty();
            note.set(stands && there.exists() && race(&there));
        };
        faults::arm(point.clone(), faults::Fault::Run(Box::new(race)));
        let (summary, lines) = run(&tree, &options(action(to.path())));
        let seen = faults::disarm();
        if !saw(&mut sweep, &seen) {
            continue;
        }
        let context = format!("{what} before {point}: {lines:?}");
        // Right before the name goes, no look is possible any more.
        let removed = seen.first("unlink") == seen.at;
        // A new name moves the change time as well: a change in that moment hides behind it.
        let hidden = what == "edit" && seen.at > 0 && seen.calls[seen.at - 1] == "link";
        if !raced.get() || removed || hidden {
            continue;
        }
        let paths = all(&tree, &to);
        assert!(tree.exists("b/one"), "{context}");
        assert_eq!(tree.read("b/one"), content(), "{context}");
        assert_eq!((summary.changed, summary.errors), (0, 1), "{context}");
        assert!(what != "edit" || somewhere(&paths, is_edited), "{context}");
        let reported = lines
            .iter()
            .any(|line| line.contains("a copy of it is now"));
        assert_eq!(reported, one.exists(), "{context}");
        let left = [temporaries(tree.path()), temporaries(to.path())].concat();
        assert!(left.is_empty(), "{context}: {left:?}");
    }
    assert!(sweep.reached() >= 8, "{}", sweep.reached());
}
