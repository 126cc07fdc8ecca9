//! The wording of steps and reasons.

use bc_fs::call::FailedCall;
use rustix::io::Errno;

use super::*;

#[test]
fn steps_read_as_sentences() {
    let mut step = Step {
        kind: StepKind::Hardlink,
        target: b"b/x\n".to_vec(),
        kept_file: b"a/x".to_vec(),
        reference: false,
        size: 3,
    };
    assert_eq!(step.to_string(), "hardlink b/x\\n to a/x");
    step.kind = StepKind::Move(b"d/b/x".to_vec());
    assert_eq!(step.to_string(), "move b/x\\n to d/b/x (kept: a/x)");
    step.kind = StepKind::Leftover;
    assert_eq!(
        step.to_string(),
        "remove b/x\\n, left over by a run that was killed (kept: a/x)"
    );
    step.reference = true;
    for (kind, text) in [
        (StepKind::Hardlink, "hardlink b/x\\n to a/x (reference)"),
        (StepKind::Reflink, "reflink b/x\\n from a/x (reference)"),
        (
            StepKind::Symlink(Vec::new()),
            "symlink b/x\\n to a/x (reference)",
        ),
        (StepKind::Delete, "delete b/x\\n (kept: a/x, reference)"),
        (
            StepKind::Move(b"d/x".to_vec()),
            "move b/x\\n to d/x (kept: a/x, reference)",
        ),
        (
            StepKind::Trash(b"/t/files/x".to_vec()),
            "trash b/x\\n (kept: a/x, reference)",
        ),
    ] {
        step.kind = kind;
        assert_eq!(step.to_string(), text);
    }
}

#[test]
fn actions_parse() {
    assert_eq!(Action::parse(b"move:d"), Some(Action::Move(b"d".to_vec())));
    assert_eq!(Action::parse(b"move:"), None);
    assert_eq!(Action::parse(b"destroy"), None);
    for action in [
        Action::Hardlink,
        Action::Reflink,
        Action::Symlink,
        Action::Delete,
        Action::Trash(None),
    ] {
        assert_eq!(Action::parse(action.name().as_bytes()), Some(action));
    }
}

#[test]
fn reasons_count_by_kind() {
    let mut summary = PruneSummary::default();
    summary.skip(&Skip::AlreadyLinked);
    assert!(summary.is_clean());
    summary.skip(&Skip::System {
        op: "link",
        errno: Errno::XDEV.raw_os_error(),
    });
    assert!(!summary.is_clean());
    assert_eq!(summary.skipped["other file system"], 1);
}

/// A name that another process removed is distinguished from a failing system.
#[test]
fn a_name_that_vanished_is_gone() {
    for op in ["open", "stat", "rename", "exchange", "unlink"] {
        let errno = Errno::NOENT;
        assert_eq!(Skip::from(FailedCall { op, errno }), Skip::Gone, "{op}");
        let errno = Errno::IO;
        assert_ne!(Skip::from(FailedCall { op, errno }), Skip::Gone, "{op}");
    }
}

#[test]
fn events_are_reported_in_one_line_and_failures_with_their_operation() {
    let step = Step {
        kind: StepKind::Delete,
        target: b"a\nb".to_vec(),
        kept_file: b"k".to_vec(),
        size: 1,
        reference: false,
    };
    let skipped = |skip| PruneEvent::Step(step.clone(), StepOutcome::Skipped(skip));
    let done = PruneEvent::Step(step.clone(), StepOutcome::done(1));
    assert_eq!(done.to_string(), r"delete a\nb (kept: k)");
    assert_eq!(done.failure(), None);
    assert_eq!(skipped(Skip::AlreadyLinked).failure(), None);
    let failed = skipped(Skip::System {
        op: "open",
        errno: 13,
    });
    let reason = "Permission denied (os error 13)";
    let text = format!(r"delete a\nb (kept: k): skipped: open: {reason}");
    assert_eq!(failed.to_string(), text);
    let failure = failed.failure().unwrap();
    assert_eq!(failure.to_string(), format!(r"a\nb: open: {reason}"));
    assert_eq!(failure.raw_os_error(), Some(13));
}

#[test]
fn destinations_keep_the_tree() {
    for (path, expected) in [
        ("a/b/x", "d/a/b/x"),
        ("/a//b/x", "d/a/b/x"),
        ("./../a/x", "d/a/x"),
    ] {
        assert_eq!(path_below(b"d", path.as_bytes()), expected.as_bytes());
    }
    assert_eq!(path_below(b"/", b"x"), b"/x");
}

#[test]
fn trashes_are_known_by_their_names() {
    for (path, expected) in [
        ("/mnt/.Trash-0/files", true),
        ("/mnt/.Trash/1000/files/a", true),
        ("/srv/a/Trash/files", false),
        ("/mnt/.Trash-old/a", false),
        ("/mnt/.Trash-/a", false),
        ("/mnt/.Trashes", false),
    ] {
        assert_eq!(lies_in_trash(path.as_bytes()), expected, "{path}");
    }
}
