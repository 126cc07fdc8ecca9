//! `bc move` to disks that lose what was written, or cannot be read: no source goes for such a copy.

use bc_testkit::{
    Behaviour, DiskLoss, FAILING, FuseDisk, Point, RequestKind, Sweep, TestTree, UNSTORABLE,
    fuse_disk, left_out, seen,
};
use rustix::io::Errno;

use crate::common::Bc;
use crate::copy_trees::{MANIFEST, figures, litter_below, tree};
use crate::move_across::{all_is_copied, nothing_is_lost};

pub fn disk(behaviour: Behaviour) -> Option<FuseDisk> {
    fuse_disk(behaviour)
        .inspect_err(|reason| left_out(reason))
        .ok()
}

#[test]
fn what_is_lost_at_its_close_keeps_its_source() {
    let Some(disk) = disk(Behaviour {
        close_error: Some(Errno::IO),
        ..Behaviour::default()
    }) else {
        return;
    };
    let t = TestTree::new();
    t.write("r/a", "a").write("r/lost", UNSTORABLE);
    let line = format!("move r {}", disk.path().join("to").display());
    let out = t.bc_line(&line).go();
    out.code(1)
        .stderr_has("/to/lost: close: ")
        .stderr_has("1 moved, 1 left at the source, 1 failed of 3");
    assert_eq!(t.read("r/lost"), UNSTORABLE.as_bytes());
    assert!(!t.exists("r/a"));
    assert_eq!(std::fs::read(disk.shown().join("to/a")).unwrap(), b"a");
}

#[test]
fn a_copy_that_cannot_be_read_back_keeps_its_source() {
    for verify in ["media", "read", "none"] {
        let Some(disk) = disk(Behaviour {
            read_error: Some(Errno::IO),
            ..Behaviour::default()
        }) else {
            return;
        };
        let t = TestTree::new();
        let name = format!("r/{FAILING}");
        t.write("r/a", "a").write(&name, vec![7; 200_000]);
        let to = disk.path().join("to");
        let line = format!("move --verify={verify} r {}", to.display());
        let out = t.bc_line(&line).go();
        out.code(1)
            .stderr_has(format!("{name}: read back: "))
            .stderr_has("1 moved, 2 left at the source of 3");
        assert_eq!(t.read(&name), vec![7; 200_000]);
        assert!(!t.exists("r/a"));
    }
}

/// A bit that a disk has turned shows in what is read back.
#[test]
fn a_copy_with_other_bytes_keeps_its_source() {
    let Some(disk) = disk(Behaviour::default()) else {
        return;
    };
    let t = TestTree::new();
    t.write("r/file", "content").hard_link("r/file", "outside");
    let to = disk.path().join("to");
    let line = format!("move r {}", to.display());
    // Its other name keeps the source at first.
    t.bc_line(&line).go().code(1);
    let shown = disk.shown().join("to/file");
    let time = shown.metadata().unwrap().modified().unwrap();
    std::fs::write(&shown, "c0ntent").unwrap();
    let file = std::fs::File::options().write(true).open(&shown).unwrap();
    file.set_modified(time).unwrap();
    t.remove("outside");
    let out = t.bc_line(&line).go();
    assert_eq!(t.read("r/file"), b"content", "{out}");
    out.code(1);
}

/// Kinds of requests at which a disk is unplugged, with the names that a sweep has for them.
const KINDS: [(&str, RequestKind); 9] = [
    ("lookup", RequestKind::Lookup),
    ("attributes", RequestKind::Attributes),
    ("change", RequestKind::Change),
    ("open", RequestKind::Open),
    ("read", RequestKind::Read),
    ("write", RequestKind::Write),
    ("close", RequestKind::Close),
    ("sync", RequestKind::Sync),
    ("list", RequestKind::List),
];

/// Runs with the disk lost at a point, and gives it back; true if it was lost.
pub fn lost_at<T>(
    disk: &mut FuseDisk,
    sweep: &mut Sweep,
    point: &Point,
    loss: DiskLoss,
    run: impl FnOnce() -> T,
) -> (T, bool) {
    let kind = KINDS.iter().find(|(name, _)| *name == point.call);
    if let Some((_, kind)) = kind {
        disk.lose_at(*kind, point.nth, loss);
    }
    disk.take_record();
    let out = run();
    let requests = disk.take_record();
    let names = requests.iter().filter_map(|one| {
        let known = KINDS.iter().find(|(_, kind)| *kind == one.kind);
        known.map(|(name, _)| *name)
    });
    let is_lost = disk.regain().unwrap();
    sweep.ran(is_lost, names.collect::<Vec<_>>());
    (out, is_lost)
}

/// Moves or copies a tree from or to a disk that is unplugged in the middle, and again once it is
/// back.
fn unplugged(is_source: bool, command: &str) {
    let ways = [DiskLoss::Gone, DiskLoss::Errors(Errno::IO)];
    let mut sweep = Sweep::new(2).ways(ways.len());
    while let Some(point) = sweep.next() {
        let Some(mut disk) = disk(Behaviour {
            records: true,
            ..Behaviour::default()
        }) else {
            return;
        };
        let t = tree();
        let before = seen(&t.join("r"), MANIFEST).unwrap();
        let (on_disk, shown) = (disk.path().to_owned(), disk.shown().to_owned());
        let (from, to, real_from, real_to) = match is_source {
            false => (
                t.join("r"),
                on_disk.join("to"),
                t.join("r"),
                shown.join("to"),
            ),
            true => {
                if std::fs::rename(t.join("r"), shown.join("r")).is_err() {
                    return left_out("the disk shows a directory of another file system");
                }
                (
                    on_disk.join("r"),
                    t.join("to"),
                    shown.join("r"),
                    t.join("to"),
                )
            }
        };
        let line = format!("{command} {} {}", from.display(), to.display());
        let loss = ways[sweep.way()];
        let (out, is_lost) = lost_at(&mut disk, &mut sweep, &point, loss, || {
            t.bc_line(&line).go()
        });
        let context = format!("{line}: {loss:?} at {point}: {out}");
        nothing_is_lost(&real_from, &real_to, &before, &context);
        let code = out.status.code();
        match is_lost {
            false => assert_eq!(code, Some(0), "{context}"),
            true => assert!(matches!(code, Some(0..=2)), "{context}"),
        }
        if code != Some(0) {
            assert!(out.error_text().contains("bc "), "{context}");
        }
        let moves = command.starts_with("move");
        let is_journal = || litter_below(&t.scratch("home")).next().is_some();
        // A removal that may be lost with the power is a warning, and leaves a journal.
        let is_done = match moves {
            true => !real_from.exists(),
            false => !is_journal(),
        };
        assert!(code != Some(0) || is_done, "{context}");
        // A source that was lost at the first look left none.
        if !is_done || is_journal() || code != Some(0) {
            let again = t.bc_line(&line).go();
            assert_eq!(again.status.code(), Some(0), "{context}: again: {again}");
        }
        // The time of a directory that was lost to its copy was a warning.
        if moves || !out.error_text().contains("could not be given") {
            all_is_copied(&t, &to, &before, &context);
        }
        match moves {
            true => assert!(!real_from.exists(), "{context}"),
            false => assert_eq!(seen(&real_from, MANIFEST).unwrap(), before, "{context}"),
        }
        assert_eq!(litter_below(&real_from).next(), None, "{context}");
    }
    assert!(sweep.reached() > 0, "{command}");
    let reached = sweep.reached();
    figures(&format!("{command}: unplugged at {reached} requests"));
}

#[test]
fn a_destination_that_is_unplugged_loses_nothing() {
    unplugged(false, "move");
    unplugged(false, "move --sync=file");
    unplugged(false, "copy");
}

#[test]
fn a_source_that_is_unplugged_loses_nothing() {
    unplugged(true, "move");
    unplugged(true, "copy");
}
