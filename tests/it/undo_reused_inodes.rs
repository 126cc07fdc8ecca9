//! A file system gives the inode numbers of files that are gone to new ones. A journal that was
//! continued may name two files by one number, and undo must not take them for one.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_testkit::{TestTree, left_out};

use crate::common::Bc;

/// Two runs write one journal. The file that the second takes away has the number that the first
/// made free: the journal is edited to say so, because who gets a number cannot be told.
fn undone(action: &str) {
    let t = TestTree::new();
    let prune = || {
        t.bc()
            .args(["dup", "prune", &format!("--action={action}"), "--yes"])
            .args(["--keep=first", "--journal=../j", "."])
            .go()
            .code(0);
    };
    let number = |name: &str| t.join(name).symlink_metadata().unwrap().ino();
    t.write("a", "old").write("b", "old");
    let before = number("b");
    // Nobody else gets the number meanwhile: that a kept file has it cannot be.
    let _held = std::fs::File::open(t.join("b")).unwrap();
    prune();
    t.write("c", "new content").write("d", "new content");
    // Of the same length as the first and the same time, but for the content.
    t.write("e", "fur").write("f", "fur");
    let after = [number("d"), number("f")];
    prune();
    let journal = t.scratch("j");
    let mut text = std::fs::read_to_string(&journal).unwrap();
    for number in after {
        text = text.replace(&format!("\"ino\":{number},"), &format!("\"ino\":{before},"));
    }
    std::fs::write(&journal, text).unwrap();
    let undone = t.bc_line("dup undo ../j").go();
    let apart = ["b", "d", "f"].map(|name| t.join(name).metadata().map(|meta| meta.nlink()).ok());
    assert_eq!(apart, [Some(1); 3], "{action}: {undone:?}");
    for (name, content) in [("b", "old"), ("d", "new content"), ("f", "fur")] {
        assert_eq!(t.read(name), content.as_bytes(), "{action}: {name}");
    }
}

#[test]
fn files_that_had_one_number_after_another_stay_two() {
    for action in ["hardlink", "symlink", "delete"] {
        undone(action);
    }
    let memory = Path::new("/dev/shm");
    match tempfile::tempdir_in(memory) {
        Ok(to) => undone(&format!("move:{}", to.path().display())),
        Err(_) => left_out("no /dev/shm"),
    }
}

#[test]
fn a_new_file_with_the_number_of_the_old_one_is_not_taken_for_it() {
    for action in ["hardlink", "symlink", "delete"] {
        let t = TestTree::new();
        t.write("a", "old").write("b", "old");
        t.mtime("b", 1_000_000_000, 7);
        t.bc()
            .args(["dup", "prune", &format!("--action={action}"), "--yes"])
            .args(["--keep=first", "--journal=../j", "."])
            .go()
            .code(0);
        t.remove("b").write("b", "somebody's work since");
        // As above: the journal has the number that the new file was given, or was not.
        let text = std::fs::read_to_string(t.scratch("j")).unwrap();
        let target = text.find("\"target\"").unwrap();
        let start = target + text[target..].find("\"ino\":").unwrap() + 6;
        let end = start + text[start..].find(',').unwrap();
        let now = t.join("b").metadata().unwrap().ino();
        let text = format!("{}{now}{}", &text[..start], &text[end..]);
        std::fs::write(t.scratch("j"), text).unwrap();
        t.bc_line("dup undo ../j")
            .go()
            .code(1)
            .stderr_has("/b: not restored")
            .stderr_has("1 not restored");
        assert_eq!(t.read("b"), b"somebody's work since", "{action}");
        // Equal content is not all of it, but a file that has all is in place, whoever put it there.
        t.write("b", "old");
        t.bc_line("dup undo ../j")
            .go()
            .code(1)
            .stderr_has("without its recorded modification time");
        t.mtime("b", 1_000_000_000, 7);
        t.bc_line("dup undo ../j")
            .go()
            .code(0)
            .stderr_has("1 in place already");
    }
}
