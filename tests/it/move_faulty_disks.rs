//! `bc move` to disks that lose what was written, or cannot be read: no source goes for such a copy.

use bc_testkit::{Behaviour, FAILING, FuseDisk, TestTree, UNSTORABLE, fuse_disk, left_out};
use rustix::io::Errno;

use crate::common::Bc;

fn disk(behaviour: Behaviour) -> Option<FuseDisk> {
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
