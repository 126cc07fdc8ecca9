//! `bc integrity restore` from parity: what it needs, what it writes, and what it says where parity does
//! not suffice.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bc_testkit::{TestTree, conforms};
use serde_json::Value;

use crate::common::{BC, Bc};
use crate::protect::{FILES, bytes, is_whole, protected, record, rot};
use crate::schemas::schema;

const BLOCK: usize = 65_536;
const RESTORE: &str = "integrity restore r m.jsonl";

/// Names in the tree, in order.
fn names(t: &TestTree) -> Vec<String> {
    let all = std::fs::read_dir(t.join("r")).unwrap();
    let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn parity_that_cannot_be_relied_on_stops_no_copy() {
    let t = TestTree::new();
    t.write("r/a", bytes(70_000, 1))
        .write("r/b", bytes(5000, 2))
        .write("r/stays", "here");
    t.write("backup/a", bytes(70_000, 1));
    t.bc_line("integrity manifest --algorithm=md5 --output=m.jsonl r")
        .go()
        .code(0);
    t.bc_line("integrity protect r m.jsonl").go().code(0);
    // Others may write to it, and MD5 can be forged.
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(t.join("m.parity"), mode).unwrap();
    t.remove("r/a");
    let out = t.bc_line("integrity restore --from=backup r m.jsonl").go();
    out.code(0).stdout_has("+ a: from backup/a");
    assert!(!out.error_text().contains("parity"), "{out}");
    t.remove("r/a").remove("r/b");
    let out = t.bc_line("integrity restore --from=backup r m.jsonl").go();
    out.code(1)
        .stdout_has("+ a: from backup/a")
        .stdout_has("!! b: removed: no copy holds it\n")
        .stderr_has("m.parity: belongs to another user, or others may write to it");
    // Whoever names it relies on it.
    t.remove("r/a");
    t.bc_line("integrity restore --from=backup --parity=m.parity r m.jsonl")
        .go()
        .code(2);
    assert!(!t.exists("r/a"));
}

#[test]
fn a_dry_run_writes_nothing_and_foresees_the_same() {
    let t = protected();
    for block in 0..4 {
        rot(&t, "r/large", (block * BLOCK) as u64);
    }
    let before = names(&t);
    let out = t.bc_line("integrity restore --dry-run r m.jsonl").go();
    out.code(0)
        .stdout_has("+ large: from m.parity/000001.bcp\n");
    assert_eq!(names(&t), before);
    rot(&t, "r/large", 10 * BLOCK as u64);
    for line in ["integrity restore --dry-run r m.jsonl", RESTORE] {
        let short = "!! large: damaged: no copy holds it, and its parity is short of 1 block\n";
        t.bc_line(line).go().code(1).stdout_is(short);
        assert_eq!(names(&t), before);
    }
}

#[test]
fn a_part_that_cannot_be_put_is_named() {
    let t = protected();
    for block in 0..5 {
        rot(&t, "r/large", (block * BLOCK) as u64);
    }
    let line = "integrity restore --partial r m.jsonl";
    t.bc_line(line)
        .go()
        .code(1)
        .stderr_has("large: what could be restored of it is large.partial-");
    let out = t
        .bc_line("integrity restore --partial --dry-run --format=json r m.jsonl")
        .go();
    let schema = schema("restore");
    let lines = out.lines();
    let values = lines
        .iter()
        .map(|line| serde_json::from_slice(line).unwrap());
    let values: Vec<Value> = values.collect();
    assert!(values.iter().all(|value| conforms(&schema, value)), "{out}");
    assert!(
        values.iter().any(|value| value["type"] == "partial"),
        "{out}"
    );
    let before = names(&t);
    let part = before.iter().find(|name| name.contains("partial")).unwrap();
    t.bc_line(line)
        .go()
        .code(1)
        .stderr_has(format!("r/{part}: rename: File exists"));
    assert_eq!(names(&t), before);
    // Bytes of lost blocks are zero, and no others are.
    let (part, good) = (t.read(Path::new("r").join(part)), bytes(FILES[2].1, 2));
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let differs: Vec<usize> = (0..part.len())
        .filter(|at| part[*at] != good[*at])
        .collect();
    assert!(differs.iter().all(|at| part[*at] == 0));
    // The blocks of the volume lie across those of the file.
    let lost = part.chunks(1000).filter(|piece| is_zero(piece)).count();
    assert!(
        (5 * BLOCK / 1000 - 12..=6 * BLOCK / 1000).contains(&lost),
        "{lost}"
    );
}

#[test]
fn removed_files_come_back_from_what_parity_keeps() {
    let t = protected();
    t.remove("r/z").remove("r/a/two");
    t.bc_line("integrity update --protect r m.jsonl").go();
    t.bc_line(RESTORE)
        .go()
        .code(0)
        .stderr_has("nothing to restore");
    let line = "integrity restore --removed=./z/ --dry-run r m.jsonl";
    let out = t.bc_line(line).go();
    out.code(0).stdout_is("+ z: from m.parity/000001.bcp\n");
    assert!(!t.exists("r/z"));
    t.bc_line("integrity restore --removed=z r m.jsonl")
        .go()
        .code(0);
    assert!(t.read("r/z") == bytes(FILES[4].1, 4) && !t.exists("r/a/two"));
    // Something else has the place of one that was removed.
    t.write("r/a/two", "other");
    let out = t.bc_line("integrity restore --removed r m.jsonl").go();
    out.code(0).stderr_has("nothing to restore");
    t.remove("r/a/two");
    t.bc_line("integrity restore --removed=a r m.jsonl")
        .go()
        .code(0)
        .stdout_has("+ a/two: from m.parity");
    assert!(t.read("r/a/two") == bytes(FILES[1].1, 1));
    let mode = std::fs::metadata(t.join("r/a/two")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    t.bc_line("integrity restore --removed=../x r m.jsonl")
        .go()
        .code(2)
        .stderr_has("is no path below the root");
    t.remove("r/a/two");
    std::fs::rename(t.join("m.parity"), t.join("elsewhere")).unwrap();
    t.bc_line("integrity restore --removed r m.jsonl")
        .go()
        .code(2)
        .stderr_has("removed files are known by parity alone");
}

#[test]
fn few_descriptors_suffice_for_many_files() {
    let t = TestTree::new();
    for number in 0..300 {
        t.write(format!("r/{number}"), bytes(2000, number));
    }
    t.write("r/stays", bytes(20 * BLOCK, 1000));
    t.bc_line("integrity manifest --output=m.jsonl r")
        .go()
        .code(0);
    t.bc_line("integrity protect --redundancy=50% r m.jsonl")
        .go()
        .code(0);
    for number in 0..300 {
        t.remove(format!("r/{number}"));
    }
    let limited = format!("ulimit -n 64 && exec \"$0\" {RESTORE}");
    let out = t.run("sh").args(["-c", &limited, BC]).go();
    out.code(0).stderr_has("300 restored");
    for number in 0..300 {
        assert!(
            t.read(format!("r/{number}")) == bytes(2000, number),
            "{number}"
        );
    }
}

#[test]
fn a_damaged_manifest_has_a_copy() {
    let t = protected();
    rot(&t, "r/large", 100);
    rot(&t, "m.jsonl", 700);
    let line = "integrity restore --parity=m.parity r m.parity/manifest.jsonl.zst";
    t.bc_line(RESTORE)
        .go()
        .code(2)
        .stderr_has("its parity has a copy of the manifest of 2")
        .stderr_has(format!(" that is sound: 'bc {line}'"));
    t.bc_line(line).go().code(0);
    std::fs::remove_file(t.join("m.jsonl")).unwrap();
    rot(&t, "r/z", 100);
    t.bc_line(RESTORE)
        .go()
        .code(2)
        .stderr_has(format!("'bc {line}'"));
    t.bc_line(line).go().code(0);
    t.write("m.jsonl", t.read("m.parity/manifest.jsonl.zst"));
    is_whole(&t);
}

/// Checks that a file that was asked for by its name does not stay away in silence.
#[test]
fn a_removed_file_whose_path_is_taken_is_reported() {
    let t = TestTree::new();
    t.write("r/1", bytes(150_000, 1))
        .write("r/2", bytes(150_000, 2));
    record(&t, "--redundancy=100%");
    t.remove("r/1");
    t.bc_line("integrity update --protect r m.jsonl")
        .go()
        .code(0);
    t.write("r/1/other", "");
    t.bc_line("integrity restore --removed=1 r m.jsonl")
        .go()
        .code(1)
        .stdout_has("1: removed: something else has its path now, which is left alone\n");
    std::fs::remove_dir_all(t.join("r/1")).unwrap();
    for _ in 0..2 {
        t.bc_line("integrity restore --removed=1 r m.jsonl")
            .go()
            .code(0);
        assert_eq!(t.read("r/1"), bytes(150_000, 1));
    }
}

/// Checks that bytes that nothing proves are no promise: of two volumes with parts of a file one is gone,
/// whose part of the file is damaged, too.
#[test]
fn a_dry_run_promises_nothing_where_a_volume_is_gone() {
    let t = TestTree::new();
    t.write("r/a", bytes(250_000, 1));
    record(&t, "--redundancy=100% --volume=128K");
    t.remove("m.parity/000001.bcp");
    rot(&t, "r/a", 9);
    rot(&t, "r/a", 200_000);
    for line in ["integrity restore --dry-run r m.jsonl", RESTORE] {
        t.bc_line(line)
            .go()
            .code(1)
            .stdout_has("have no parity that can be read");
    }
}

#[test]
fn a_part_of_nothing_is_not_saved() {
    let t = TestTree::new();
    for seed in 1..=3 {
        t.write(format!("r/{seed}"), bytes(300_000, seed));
    }
    record(&t, "");
    t.remove("r/1");
    for _ in 0..2 {
        let out = t.bc_line("integrity restore --partial r m.jsonl").go();
        out.code(1).stdout_has("!! 1: removed: ");
        assert!(!out.error_text().contains("File exists"), "{out}");
        assert_eq!(names(&t), ["2", "3"]);
    }
}

#[test]
fn a_budget_that_is_too_small_for_parity_is_refused_with_the_least() {
    let t = protected();
    t.write("r/new", "new");
    t.bc_line("integrity update r m.jsonl").go().code(0);
    for (budget, code) in [("1M", 2), ("36M", 2), ("40M", 0)] {
        let line = format!("integrity protect --memory-budget={budget} r m.jsonl");
        let out = t.bc_line(&line).go();
        out.code(code);
        let names_least = out.error_text().contains("at least 41943040 are needed");
        assert_eq!(names_least, code == 2, "{out}");
    }
}

/// Checks that what is beyond its parity is not written on trial, for which a disk may have no room.
#[test]
fn nothing_is_written_of_what_is_beyond_its_parity() {
    let t = TestTree::new();
    for seed in 1..=7 {
        t.write(format!("r/{seed}"), bytes(300_000, seed));
    }
    record(&t, "--redundancy=20%");
    t.remove("r/1").remove("r/2");
    rot(&t, "r/7", 9);
    let out = t.bc_line(RESTORE).go();
    out.code(1).stderr_has("3 that no copy holds");
    assert!(!out.error_text().contains("written"), "{out}");
    assert_eq!(names(&t), ["3", "4", "5", "6", "7"]);
}

#[test]
fn of_two_volumes_the_one_that_lacks_less_is_named() {
    let t = TestTree::new();
    for seed in 1..=4 {
        t.write(format!("r/{seed}"), bytes(190_000, seed));
    }
    record(&t, "");
    t.remove("r/1");
    t.bc_line("integrity update --protect r m.jsonl")
        .go()
        .code(0);
    [9, 70_000, 140_000]
        .iter()
        .for_each(|offset| rot(&t, "r/4", *offset));
    t.bc_line(RESTORE)
        .go()
        .code(1)
        .stdout_has("its parity is short of 1 block\n");
}

/// The last file that had a name comes first, and the one before it once that one is recorded.
#[test]
fn removed_files_of_one_name_come_back_one_after_the_other() {
    let t = TestTree::new();
    let first = bytes(150_000, 1);
    t.write("r/1", &first).write("r/2", bytes(1000, 2));
    record(&t, "--redundancy=100%");
    let update = "integrity update --protect r m.jsonl";
    t.remove("r/1");
    t.bc_line(update).go().code(0);
    t.write("r/1", "second");
    t.bc_line(update).go().code(0);
    t.remove("r/1");
    t.bc_line(update).go().code(0);
    let restore = "integrity restore --removed=1 r m.jsonl";
    t.bc_line(restore).go().code(0);
    assert_eq!(t.read("r/1"), b"second");
    std::fs::rename(t.join("r/1"), t.join("r/1.second")).unwrap();
    t.bc_line(update).go().code(0);
    t.bc_line(restore).go().code(0);
    assert_eq!(t.read("r/1"), first);
}
