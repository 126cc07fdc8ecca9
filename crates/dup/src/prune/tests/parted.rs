//! Names of one file whose move to another file system was killed between them.

use super::moves::{action, moved, run_journalled};
use super::*;
use std::os::unix::process::ExitStatusExt;

/// Only the file with two names, beside a kept one.
fn linked() -> Option<(TestTree, tempfile::TempDir)> {
    let (tree, to) = two_file_systems()?;
    tree.remove("b/one").remove("a/keep2");
    Some((tree, to))
}

/// The same command makes them one file again, with the journal at hand and,
/// where a temporary name tells, without it.
#[test]
fn names_that_a_killed_move_parted_arrive_as_one_file() {
    let (calls, begun) = {
        let Some((probe, to)) = linked() else { return };
        fail::arm(usize::MAX, fail::Fault::Kill);
        run_journalled(&probe, &options(action(to.path())));
        let calls = fail::disarm();
        let Some((probe, to)) = linked() else { return };
        fail::arm(usize::MAX, fail::Fault::Kill);
        create(&probe.scratch("journal"), action(to.path()), &probe).unwrap();
        (calls, fail::disarm().len())
    };
    let unlinks: Vec<usize> = (0..calls.len())
        .filter(|at| calls[*at] == "unlink")
        .collect();
    assert_eq!(unlinks.len(), 4, "{calls:?}");
    // Before the first original goes, before its copy's temporary name does, and after both.
    for at in [unlinks[0], unlinks[1], unlinks[1] + 1, unlinks[2]] {
        for journal in [true, false] {
            let Some((tree, to)) = linked() else { return };
            let name = format!("move:{}", to.path().display());
            let mut child = super::crash::spawn(&tree, &name, at - begun);
            assert_eq!(child.wait().unwrap().signal(), Some(9));
            if at > unlinks[1] && at != unlinks[2] && !journal {
                // Nothing tells of the first one any more.
                continue;
            }
            let mut options = options(action(to.path()));
            if journal {
                options.earlier = vec![tree.scratch("journal")];
            }
            let (summary, lines) = run(&tree, &options);
            let context = format!("killed at {at}, journal {journal}: {lines:?}");
            assert!(summary.is_clean(), "{context}");
            let names = ["b/two", "c/two-too"].map(|name| moved(to.path(), &tree, name));
            assert!(
                !tree.exists("b/two") && !tree.exists("c/two-too"),
                "{context}"
            );
            if journal || at == unlinks[0] {
                assert_eq!(inode(&names[0]), inode(&names[1]), "{context}");
            }
        }
    }
}
