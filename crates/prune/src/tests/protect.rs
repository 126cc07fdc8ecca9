//! Files below a reference stay as they are, also if they came there meanwhile; files in the
//! destination are neither moved nor kept.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use super::*;

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn group(files: &[(&Path, &Path)]) -> FileGroup {
    let files = files.iter().map(|(root, path)| file_ref(root, path));
    FileGroup {
        files: files.collect(),
    }
}

/// The second directory moves below the reference between two groups, and a link takes its name.
#[test]
fn a_tree_that_comes_to_lie_below_a_reference_is_left_alone() {
    for action in [
        Action::Hardlink,
        Action::Symlink,
        Action::Delete,
        Action::Move(b"@".to_vec()),
    ] {
        let tree = sample();
        let action = match action {
            Action::Move(_) => Action::Move(bytes(&tree.scratch("moved"))),
            action => action,
        };
        tree.dir("archive")
            .write("b/three", b"3")
            .write("a/three", b"3");
        let (a, b) = (tree.join("a"), tree.join("b"));
        let groups = vec![
            group(&[(&a, &tree.join("a/keep")), (&b, &tree.join("b/one"))]),
            group(&[(&a, &tree.join("a/three")), (&b, &tree.join("b/three"))]),
        ];
        let options = PruneOptions {
            references: Arc::new(Subtrees::open([bytes(&tree.join("archive"))]).unwrap()),
            ..options(action.clone())
        };
        let before = inode(tree.join("b/three"));
        let mut lines = Vec::new();
        prune(groups, &options, None, &Cancel::new(), &mut |event| {
            let PruneEvent::Step(step, outcome) = event else {
                panic!("{event:?}");
            };
            if lines.is_empty() {
                fs::rename(&b, tree.join("archive/b")).unwrap();
                symlink("archive/b", &b).unwrap();
            }
            lines.push((step.to_string(), outcome.clone()));
        });
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(matches!(lines[0].1, StepOutcome::Done { .. }), "{lines:?}");
        assert_eq!(lines[1].1, StepOutcome::Skipped(Skip::Protected));
        assert_eq!(inode(tree.join("archive/b/three")), before);
    }
}

#[test]
fn references_count_whatever_the_groups_say() {
    for action in [Action::Hardlink, Action::Symlink, Action::Delete] {
        let tree = sample();
        tree.symlink("b", "link");
        let named = [
            bytes(&tree.join("link/../b/")),
            bytes(&tree.join("c/two-too")),
        ];
        let options = PruneOptions {
            references: Arc::new(Subtrees::open(named).unwrap()),
            ..options(action)
        };
        let before = (inode(tree.join("b/one")), inode(tree.join("b/two")));
        let (summary, lines) = run(&tree, &options);
        assert_eq!(summary.changed, 2, "{lines:?}");
        let after = (inode(tree.join("b/one")), inode(tree.join("b/two")));
        assert_eq!(after, before);
        assert_eq!(inode(tree.join("c/two-too")), before.1);
        assert!(lines.iter().all(|line| line.contains("reference")));
    }
}

#[test]
fn a_destination_below_a_reference_takes_nothing() {
    let tree = sample();
    let before = snapshot(tree.path());
    let options = PruneOptions {
        references: Arc::new(Subtrees::open([bytes(&tree.join("c"))]).unwrap()),
        ..options(Action::Move(bytes(&tree.join("none/../c/new"))))
    };
    let (summary, lines) = run(&tree, &options);
    assert!(summary.changed == 0 && !summary.is_clean(), "{lines:?}");
    assert_eq!(snapshot(tree.path()), before);
}

/// Also where the system cannot list the ancestors: then nothing is done.
#[test]
fn every_failure_on_the_way_up_stops_the_step() {
    use rustix::io::Errno;
    let mut sweep = Sweep::new(FEW);
    while let Some(point) = sweep.next() {
        let tree = sample();
        let options = below_c(&tree);
        let kept = (inode(tree.join("c/two-too")), inode(tree.join("c/other")));
        faults::arm(point.clone(), faults::Fault::Errno(Errno::ACCESS));
        run(&tree, &options);
        saw(&mut sweep, &faults::disarm());
        let now = (inode(tree.join("c/two-too")), inode(tree.join("c/other")));
        assert_eq!(now, kept, "{point}");
    }
}

fn below_c(tree: &TestTree) -> PruneOptions {
    PruneOptions {
        references: Arc::new(Subtrees::open([bytes(&tree.join("c"))]).unwrap()),
        ..options(Action::Delete)
    }
}

/// Empty files by which earlier versions asked where a directory is seen.
#[test]
fn what_earlier_versions_asked_with_is_swept() {
    let tree = sample();
    let (probe, full) = ("b/.bc-dup.1.2.3.probe", "b/.bc-dup.1.2.4.probe");
    tree.write(probe, b"").write(full, b"not a probe");
    let (summary, lines) = run(&tree, &options(Action::Hardlink));
    assert_eq!((summary.leftovers, summary.errors), (1, 0), "{lines:?}");
    assert!(!tree.join(probe).exists() && tree.join(full).exists());
}
