//! Every pair of entries that has a judgement of its own.

use super::*;
use crate::fields::{CompareMode, Fields};
use std::sync::LazyLock;

static NO: LazyLock<Failure> = LazyLock::new(|| Failure {
    op: "open".into(),
    errno: Some(13),
    message: "no".into(),
});

fn file() -> EntryRef<'static> {
    EntryRef {
        size: Some(3),
        mode: Some(0o100_644),
        uid: Some(1),
        gid: Some(1),
        mtime_ns: Some(-5),
        ctime_ns: Some(7),
        ino: Some(9),
        nlink: Some(1),
        digest: Some(b"aaaa"),
        ..EntryRef::new(Kind::File)
    }
}

fn link() -> EntryRef<'static> {
    EntryRef {
        target: Some(b"t"),
        mode: Some(0o120_777),
        ..EntryRef::new(Kind::Symlink)
    }
}

fn dir() -> EntryRef<'static> {
    EntryRef {
        size: Some(4096),
        nlink: Some(2),
        ..EntryRef::new(Kind::Dir)
    }
}

#[test]
fn every_class_in_every_mode() {
    use Class::*;
    let cases: &[(&str, EntryRef<'_>, EntryRef<'_>, [Class; 3])] = &[
        ("same", file(), file(), [Ok, Ok, Ok]),
        (
            "mode",
            file(),
            EntryRef {
                mode: Some(0o100_600),
                ..file()
            },
            [Meta, Ok, Meta],
        ),
        (
            "owner",
            file(),
            EntryRef {
                uid: Some(2),
                ..file()
            },
            [Meta, Ok, Meta],
        ),
        (
            "mtime only",
            file(),
            EntryRef {
                mtime_ns: Some(0),
                ..file()
            },
            [Meta, Ok, Meta],
        ),
        (
            "links",
            file(),
            EntryRef {
                nlink: Some(2),
                ..file()
            },
            [Meta, Ok, Meta],
        ),
        (
            "inode",
            file(),
            EntryRef {
                ino: Some(2),
                ctime_ns: Some(0),
                ..file()
            },
            [Ok, Ok, Ok],
        ),
        (
            "edit",
            file(),
            EntryRef {
                digest: Some(b"bbbb"),
                mtime_ns: Some(0),
                ..file()
            },
            [Modified, Modified, Meta],
        ),
        (
            "edit that changed the size and kept the time",
            file(),
            EntryRef {
                digest: Some(b"bbbb"),
                size: Some(4),
                ..file()
            },
            [Modified, Modified, Modified],
        ),
        (
            "bitrot",
            file(),
            EntryRef {
                digest: Some(b"bbbb"),
                ..file()
            },
            [Damaged, Damaged, Ok],
        ),
        (
            "rewrite",
            file(),
            EntryRef {
                digest: Some(b"bbbb"),
                ctime_ns: Some(0),
                ..file()
            },
            [Damaged, Damaged, Ok],
        ),
        (
            "other content, nothing recorded to tell an edit from damage",
            EntryRef {
                mtime_ns: None,
                ..file()
            },
            EntryRef {
                digest: Some(b"bbbb"),
                ..file()
            },
            [Modified, Modified, Ok],
        ),
        (
            "unreadable now",
            file(),
            EntryRef {
                digest: None,
                error: Some(&NO),
                ..file()
            },
            [Unreadable, Unreadable, Ok],
        ),
        (
            "unreadable then",
            EntryRef {
                digest: None,
                error: Some(&NO),
                ..file()
            },
            file(),
            [Unreadable, Unreadable, Ok],
        ),
        ("replaced", file(), link(), [Replaced; 3]),
        ("replaced by a directory", file(), dir(), [Replaced; 3]),
        ("link", link(), link(), [Ok; 3]),
        (
            "retargeted",
            link(),
            EntryRef {
                target: Some(b"u"),
                ..link()
            },
            [Modified; 3],
        ),
        (
            "unreadable link",
            link(),
            EntryRef {
                target: None,
                error: Some(&NO),
                ..link()
            },
            [Unreadable; 3],
        ),
        (
            "directory",
            dir(),
            EntryRef {
                size: Some(1),
                nlink: Some(9),
                ..dir()
            },
            [Ok; 3],
        ),
        (
            "unreadable directory",
            dir(),
            EntryRef {
                error: Some(&NO),
                ..dir()
            },
            [Unreadable; 3],
        ),
    ];
    for (name, old, new, expected) in cases {
        for (mode, expected) in [CompareMode::Strict, CompareMode::Content, CompareMode::Meta]
            .iter()
            .zip(expected)
        {
            let rules = CompareRules {
                mode: *mode,
                ..CompareRules::default()
            };
            let class = judge(old, new, rules);
            assert_eq!(class, *expected, "{name}, {mode:?}");
            let differences = differences(old, new, rules);
            match class {
                Ok => assert!(differences.is_empty(), "{name}, {mode:?}: {differences:?}"),
                Unreadable => {}
                _ => assert!(!differences.is_empty(), "{name}, {mode:?}"),
            }
        }
    }
}

#[test]
fn ignored_fields_do_not_count_but_still_tell_damage_from_edits() {
    let rules = CompareRules {
        mode: CompareMode::Strict,
        ignore: "mtime,ctime,ino".parse().unwrap(),
    };
    let touched = EntryRef {
        mtime_ns: Some(0),
        ..file()
    };
    assert_eq!(judge(&file(), &touched, rules), Class::Ok);
    let edited = EntryRef {
        digest: Some(b"bbbb"),
        ..touched
    };
    assert_eq!(judge(&file(), &edited, rules), Class::Modified);
    let all = CompareRules {
        mode: CompareMode::Strict,
        ignore: Fields::NONE,
    };
    assert_eq!(
        judge(
            &file(),
            &EntryRef {
                ino: Some(1),
                ..file()
            },
            all
        ),
        Class::Meta
    );
    assert_eq!(
        judge(
            &dir(),
            &EntryRef {
                size: Some(1),
                ..dir()
            },
            all
        ),
        Class::Meta
    );
    let digest = CompareRules {
        mode: CompareMode::Strict,
        ignore: "digest".parse().unwrap(),
    };
    let unread = EntryRef {
        digest: None,
        error: Some(&NO),
        ..file()
    };
    assert_eq!(judge(&file(), &unread, digest), Class::Ok);
}

#[test]
fn reasons_name_the_side() {
    let unread = EntryRef {
        digest: None,
        error: Some(&NO),
        ..file()
    };
    assert_eq!(reason(&file(), &unread), "open: no");
    assert_eq!(reason(&unread, &file()), "no content recorded: open: no");
}

/// What may have been edited as it was recorded is neither damaged for certain nor edited.
#[test]
fn an_edit_that_leaves_no_trace_is_undecided() {
    let old = EntryRef {
        unsteady: true,
        ..file()
    };
    let other = EntryRef {
        digest: Some(b"bbbb"),
        ..file()
    };
    let rules = CompareRules::default();
    assert_eq!(judge(&old, &other, rules), Class::Modified);
    assert_eq!(undecided(&old, &other), Some(UNSTEADY));
    // Unless that content is known.
    let known = EntryRef {
        damaged: Some(b"bbbb"),
        ..old
    };
    assert_eq!(judge(&known, &other, rules), Class::Damaged);
    // Another time is an edit.
    let later = EntryRef {
        mtime_ns: Some(8),
        ..other
    };
    assert_eq!(judge(&old, &later, rules), Class::Modified);
    assert_eq!(undecided(&old, &later), None);
}
