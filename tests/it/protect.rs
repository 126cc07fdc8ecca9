//! `bc integrity protect` as a user meets it, and healing from parity.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use bc_testkit::{TestTree, left_out, tool};
use serde_json::Value;

use crate::common::Bc;

const BLOCK: usize = 65_536;

/// Bytes that differ by the seed.
pub fn bytes(len: usize, seed: u64) -> Vec<u8> {
    bc_testkit::Rng::new(seed).bytes(len)
}

pub const FILES: [(&str, usize); 5] = [
    ("r/a/one", 200_000),
    ("r/a/two", 70),
    ("r/large", 900_000),
    ("r/linked", 5000),
    ("r/z", 65_536),
];

/// Records the tree `r` in `m.jsonl`, and protects it with these options.
pub fn record(t: &TestTree, options: &str) {
    for line in [
        "integrity manifest --algorithm=blake3 --output=m.jsonl r",
        &format!("integrity protect {options} r m.jsonl"),
    ] {
        t.bc_line(line).go().code(0);
    }
}

/// A tree `r` that is recorded in `m.jsonl` and protected by `m.parity`.
pub fn protected() -> TestTree {
    let t = TestTree::new();
    for (seed, (path, len)) in FILES.iter().enumerate() {
        t.write(path, bytes(*len, seed as u64));
    }
    t.hard_link("r/linked", "r/a/name");
    for (path, _) in FILES {
        t.mtime(path, 1_000_000, 5);
    }
    t.bc_line("integrity manifest --output=m.jsonl r")
        .go()
        .code(0);
    t.bc_line(PROTECT).go().code(0);
    t
}

pub const PROTECT: &str = "integrity protect --redundancy=20% r m.jsonl";

/// Flips a byte of a file, which keeps its time.
pub fn rot(t: &TestTree, path: &str, offset: u64) {
    let path = t.join(path);
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let meta = file.metadata().unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[!byte[0]], offset).unwrap();
    file.set_modified(meta.modified().unwrap()).unwrap();
}

/// All files are as they were recorded.
#[track_caller]
pub fn is_whole(t: &TestTree) {
    for (seed, (path, len)) in FILES.iter().enumerate() {
        assert!(t.read(path) == bytes(*len, seed as u64), "{path}");
    }
    t.bc_line("integrity verify --mode=content r m.jsonl").go();
}

#[test]
fn damage_truncation_and_deletion_are_healed_without_a_copy() {
    let t = protected();
    rot(&t, "r/large", 100);
    t.remove("r/a/two").remove("r/linked").remove("r/a/name");
    let out = t.bc_line("integrity restore --dry-run r m.jsonl").go();
    out.code(0)
        .stderr_has("dry run: nothing is written: 4 restored");
    assert!(!t.exists("r/linked"));
    let out = t.bc_line("integrity restore r m.jsonl").go();
    out.code(0)
        .stdout_has("+ large: from m.parity/000001.bcp; previous file kept as large.damaged-")
        .stdout_has("+ a/two: from m.parity/000001.bcp\n")
        .stdout_has("linked to a/name")
        .stderr_has("4 restored");
    is_whole(&t);
    let one = std::fs::metadata(t.join("r/linked")).unwrap();
    assert_eq!((one.nlink(), one.mtime()), (2, 1_000_000));
    // Cut short, as an edit looks: brought back only if that is asked for.
    let z = t.join("r/z");
    std::fs::File::options()
        .write(true)
        .open(&z)
        .unwrap()
        .set_len(60_000)
        .unwrap();
    t.bc_line("integrity restore r m.jsonl")
        .go()
        .stderr_has("nothing to restore");
    t.bc_line("integrity restore --only=modified r m.jsonl")
        .go()
        .code(0);
    is_whole(&t);
}

#[test]
fn json_names_the_volume() {
    let t = protected();
    rot(&t, "r/z", 0);
    let out = t.bc_line("integrity restore --format=json r m.jsonl").go();
    out.code(0);
    let lines: Vec<Value> = out
        .lines()
        .iter()
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[1]["type"], &lines[1]["from"]),
        (&"repaired".into(), &"m.parity/000001.bcp".into())
    );
}

#[test]
fn what_is_beyond_parity_is_named_and_nothing_is_touched() {
    let t = protected();
    // 19 blocks have 4 of parity: five are too many.
    for block in 0..5 {
        rot(&t, "r/large", (block * BLOCK) as u64);
    }
    let damaged = t.read("r/large");
    let out = t.bc_line("integrity restore r m.jsonl").go();
    out.code(1)
        .stdout_has("!! large: damaged: no copy holds it, and its parity is short of 1 block\n");
    assert!(t.read("r/large") == damaged);
    let out = t.bc_line("integrity restore --partial r m.jsonl").go();
    out.code(1)
        .stderr_has("large: what could be restored of it is large.partial-");
    let mut names = std::fs::read_dir(t.join("r"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let part = names
        .find(|name| name.starts_with("large.partial-"))
        .unwrap();
    let (part, good) = (t.read(Path::new("r").join(part)), bytes(900_000, 2));
    assert_eq!(part.len(), good.len());
    assert!(part[6 * BLOCK..] == good[6 * BLOCK..]);
    assert!(t.read("r/large") == damaged);
    // Without parity it says as before.
    let out = t.bc_line("integrity restore --parity=none r m.jsonl").go();
    out.code(2).stderr_has("none: open directory: No such file");
    // The part is not written a second time.
    t.bc_line("integrity restore --partial r m.jsonl")
        .go()
        .code(1)
        .stderr_has("File exists");
    std::fs::rename(t.join("m.parity"), t.join("elsewhere")).unwrap();
    t.bc_line("integrity restore r m.jsonl")
        .go()
        .code(1)
        .stdout_has("!! large: damaged: no copy holds it\n");
    t.bc_line("integrity restore --parity=elsewhere r m.jsonl")
        .go()
        .code(1)
        .stdout_has("short of 1 block");
}

#[test]
fn an_update_protects_what_is_new_and_keeps_what_may_heal() {
    let t = protected();
    t.write("r/a/new", bytes(100_000, 77));
    t.write("r/a/two", bytes(80, 78));
    t.bc_line("integrity update r m.jsonl")
        .go()
        .code(0)
        .stderr_has("the parity in m.parity does not have all of it");
    t.bc_line("integrity verify r m.jsonl")
        .go()
        .code(0)
        .stderr_has("does not have all of it");
    let out = t.bc_line("integrity protect --check r m.jsonl").go();
    out.code(1)
        .stdout_has("000001.bcp: ")
        .stdout_has("1 stale")
        .stderr_has("2 contents without parity");
    t.bc_line("integrity update --protect r m.jsonl")
        .go()
        .code(0)
        .stderr_has("1 volume written");
    let out = t.bc_line("integrity verify r m.jsonl").go();
    assert!(!out.error_text().contains("does not have all"), "{out}");
    t.bc_line("integrity protect --check r m.jsonl")
        .go()
        .code(0)
        .stderr_has("2 volumes");
    // Damage, and an edit in the same volume, then an update: the damage is still healed.
    rot(&t, "r/large", 70_000);
    t.write("r/z", bytes(65_536, 79));
    t.bc_line("integrity update --protect r m.jsonl")
        .go()
        .code(3);
    t.bc_line("integrity restore r m.jsonl")
        .go()
        .code(0)
        .stdout_has("+ large: from m.parity/000001.bcp");
    assert!(t.read("r/large") == bytes(900_000, 2));
    assert!(t.read("r/z") == bytes(65_536, 79));
    std::fs::remove_file(t.join("r/a/new")).unwrap();
    t.bc_line("integrity restore r m.jsonl").go().code(0);
    assert!(t.read("r/a/new") == bytes(100_000, 77));
    // Stopped by a mass change, it writes no parity.
    let before = listed(&t);
    for (path, _) in FILES {
        t.write(path, "other");
    }
    t.bc_line("integrity update --protect --max-changed=1 r m.jsonl")
        .go()
        .code(1);
    assert_eq!(listed(&t), before);
}

fn listed(t: &TestTree) -> Vec<(String, u64)> {
    let all = std::fs::read_dir(t.join("m.parity")).unwrap();
    let mut all: Vec<(String, u64)> = all
        .map(|entry| {
            let entry = entry.unwrap();
            (
                entry.file_name().into_string().unwrap(),
                entry.metadata().unwrap().len(),
            )
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_renamed_file_keeps_its_parity() {
    let t = protected();
    std::fs::rename(t.join("r/large"), t.join("r/a/renamed")).unwrap();
    // Before an update: it is found where it went, and serves for its neighbours.
    t.remove("r/z");
    t.bc_line("integrity restore r m.jsonl")
        .go()
        .code(0)
        .stdout_has("+ z: from m.parity");
    t.bc_line("integrity update --protect r m.jsonl")
        .go()
        .code(0)
        .stderr_has("no new content");
    rot(&t, "r/a/renamed", 5);
    t.bc_line("integrity restore r m.jsonl")
        .go()
        .code(0)
        .stdout_has("+ a/renamed: from m.parity");
    assert!(t.read("r/a/renamed") == bytes(900_000, 2));
}

#[test]
fn parity_in_the_tree_is_no_part_of_it() {
    let t = TestTree::new();
    t.write("r/a", bytes(70_000, 1)).write("r/b", "other");
    let manifest = "integrity manifest --output=r/m.jsonl r";
    t.bc_line(manifest).go().code(0);
    t.bc_line("integrity protect r r/m.jsonl").go().code(0);
    t.bc_line("integrity verify --ignore=mtime,ctime,dir-size,dir-nlink r r/m.jsonl")
        .go()
        .code(0)
        .stdout_is("");
    t.bc_line("integrity update r r/m.jsonl").go().code(0);
    t.remove("r/a");
    t.bc_line("integrity restore r r/m.jsonl")
        .go()
        .code(0)
        .stdout_has("+ a: from r/m.parity");
    std::fs::remove_file(t.join("r/m.jsonl")).unwrap();
    t.bc_line(manifest).go().code(0);
    assert!(
        !String::from_utf8(t.read("r/m.jsonl"))
            .unwrap()
            .contains("parity/")
    );
}

#[test]
fn what_does_not_fit_the_manifest_is_named() {
    let t = TestTree::new();
    t.write("r/a", "1").write("r/b", "2").write("r/c", "3");
    t.bc_line("integrity manifest --output=m.jsonl r")
        .go()
        .code(0);
    t.write("r/a", "X").remove("r/b");
    let out = t.bc_line("integrity protect --dry-run r m.jsonl").go();
    out.code(0).stderr_has("would be written");
    assert!(!t.exists("m.parity"));
    let out = t.bc_line("integrity protect r m.jsonl").go();
    out.code(1)
        .stderr_has("r/a: protect: is not as the manifest says: not protected")
        .stderr_has("r/b: stat: No such file or directory")
        .stderr_has("2 contents without new parity");
}

#[test]
fn bad_requests_are_refused() {
    let t = protected();
    for (line, text) in [
        (
            "integrity protect --redundancy=0% r m.jsonl",
            "no share from 0.001% to 100%",
        ),
        (
            "integrity protect --redundancy=5 r m.jsonl",
            "no share from",
        ),
        (
            "integrity protect --keep-removed=5 r m.jsonl",
            "no span of time",
        ),
        (
            "integrity protect --volume=4G r m.jsonl",
            "from 128 KiB to 2 GiB",
        ),
        (
            "integrity protect missing m.jsonl",
            "missing: stat: No such file",
        ),
        ("integrity protect r missing", "missing: open: No such file"),
        ("integrity protect r -", "--parity=DIR"),
    ] {
        t.bc_line(line).stdin("").go().code(2).stderr_has(text);
    }
    t.bc_line("integrity manifest --algorithm=xxh64 --output=x.jsonl r")
        .go()
        .code(0);
    t.bc_line("integrity protect r x.jsonl")
        .go()
        .code(2)
        .stderr_has("shorter than 128 bits");
    t.bc_line("integrity manifest --algorithm=blake3 --output=b.jsonl r")
        .go()
        .code(0);
    t.bc_line("integrity protect --adopt --parity=m.parity r b.jsonl")
        .go()
        .code(2)
        .stderr_has("use another parity directory");
    t.bc_line("integrity protect --parity=. r b.jsonl")
        .go()
        .code(2)
        .stderr_has("other files in it and no parity");
    t.bc_line("integrity protect --parity=r/p r b.jsonl")
        .go()
        .code(2)
        .stderr_has("is inside the tree");
    // A manifest that was altered.
    let text = String::from_utf8(t.read("m.jsonl"))
        .unwrap()
        .replace("a/two", "a/six");
    t.write("m.jsonl", text);
    t.bc_line(PROTECT).go().code(2).stderr_has("altered");
}

#[test]
fn a_small_budget_of_memory_suffices() {
    let t = TestTree::new();
    let content = bytes(20_000_000, 3);
    t.write("r/a", &content);
    for number in 0..2000 {
        t.write(format!("r/b/{number}"), bytes(100, number));
    }
    t.bc_line("integrity manifest --output=m.jsonl r")
        .go()
        .code(0);
    let holds = || {
        let metrics: Value = serde_json::from_slice(&t.read("metrics.json")).unwrap();
        let peak = metrics["peak_memory_bytes"].as_u64().unwrap();
        assert!(peak <= 64 << 20, "{metrics}");
    };
    t.bc_line(
        "integrity protect --redundancy=50% --memory-budget=64M --metrics=metrics.json r m.jsonl",
    )
    .go()
    .code(0);
    holds();
    let small = t.read("m.parity/000001.bcp");
    std::fs::remove_dir_all(t.join("m.parity")).unwrap();
    t.bc_line("integrity protect --redundancy=50% r m.jsonl")
        .go()
        .code(0);
    let large = t.read("m.parity/000001.bcp");
    // But for the time that it was written at, which is in the header.
    assert_eq!(small.len() / BLOCK, large.len() / BLOCK);
    for block in 0..100 {
        rot(&t, "r/a", block * 2 * BLOCK as u64);
    }
    t.bc_line("integrity restore --memory-budget=64M --metrics=metrics.json r m.jsonl")
        .go()
        .code(0);
    holds();
    assert!(t.read("r/a") == content);
}

#[test]
fn manifests_with_one_stem_have_parity_of_their_own() {
    let t = TestTree::new();
    for year in ["2019", "2020"] {
        t.write(
            format!("{year}/a"),
            bytes(70_000, year.len() as u64 + year.as_bytes()[3] as u64),
        );
        t.bc_line(&format!(
            "integrity manifest --output=photos.{year}.jsonl {year}"
        ))
        .go()
        .code(0);
        t.bc_line(&format!("integrity protect {year} photos.{year}.jsonl"))
            .go()
            .code(0);
        assert!(t.exists(format!("photos.{year}.parity/000001.bcp")));
    }
    let before = t.read("photos.2019.parity/000001.bcp");
    t.bc_line("integrity protect --parity=photos.2019.parity 2020 photos.2020.jsonl")
        .go()
        .code(2)
        .stderr_has("photos.2019.parity: is the parity of 'photos.2019.jsonl' of ")
        .stderr_has("/2019, not of 'photos.2020.jsonl' of ");
    assert!(t.read("photos.2019.parity/000001.bcp") == before);
    // A manifest that is made again keeps its parity.
    t.bc_line("integrity manifest --output=photos.2019.jsonl 2019")
        .go()
        .code(0);
    t.bc_line("integrity protect 2019 photos.2019.jsonl")
        .go()
        .code(0)
        .stderr_has("no new content");
}

#[test]
fn a_directory_that_only_has_the_name_is_no_parity() {
    let t = TestTree::new();
    t.write("r/m.parity/letter", "mine").write("r/a", "content");
    t.bc_line("integrity manifest --output=r/m.jsonl r")
        .go()
        .code(0);
    let list = String::from_utf8(t.read("r/m.jsonl")).unwrap();
    assert!(list.contains("m.parity/letter"), "{list}");
    t.remove("r/a");
    t.bc_line("integrity restore r r/m.jsonl")
        .go()
        .code(1)
        .stdout_has("!! a: removed: no copy holds it\n");
    t.bc_line("integrity protect r r/m.jsonl")
        .go()
        .code(2)
        .stderr_has("other files in it and no parity");
    assert_eq!(t.read("r/m.parity/letter"), b"mine");
}

/// A copy that has all of it needs no parity, whatever became of that.
#[test]
fn parity_that_is_of_no_use_stops_no_restore_from_a_copy() {
    let t = protected();
    t.bc_line("copy --manifest=none r copy").go().code(0);
    rot(&t, "r/large", 100);
    rot(&t, "m.parity/000001.bcp", 3);
    t.write("m.parity/lock", "")
        .write("m.parity/index.jsonl", "x");
    t.bc_line("integrity restore --from=copy r m.jsonl")
        .go()
        .code(0);
    is_whole(&t);
}

/// A program that was written by the page of the format alone.
#[test]
fn a_reader_in_python_heals_a_file() {
    if tool("python3").is_none() || tool("zstd").is_none() {
        left_out("python3 or zstd is not installed");
        return;
    }
    let t = TestTree::new();
    let content = bytes(3 * BLOCK + 5000, 1);
    t.write("r/a", bytes(30_000, 2))
        .write("r/b", &content)
        .write("r/c", bytes(BLOCK, 3));
    t.bc_line("integrity manifest --output=m.jsonl r")
        .go()
        .code(0);
    t.bc_line("integrity protect --redundancy=40% r m.jsonl")
        .go()
        .code(0);
    rot(&t, "r/b", 40_000);
    rot(&t, "r/b", 3 * BLOCK as u64);
    // Both ends of the volume are damaged, too.
    rot(&t, "m.parity/000001.bcp", 3);
    let end = std::fs::metadata(t.join("m.parity/000001.bcp"))
        .unwrap()
        .len()
        - 5;
    rot(&t, "m.parity/000001.bcp", end);
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/parity/reader.py");
    let reader = reader.to_str().unwrap();
    let healed = t
        .run("python3")
        .args([reader, "m.parity/000001.bcp", "r", "b", "healed"])
        .go();
    healed.code(0);
    assert!(t.read("healed") == content);
    // Twice the same, from parity and files that are as they were.
    let all = [("r/b", 0), ("r/b", 2 * BLOCK as u64), ("r/c", 60_000)];
    all.iter().for_each(|(path, offset)| rot(&t, path, *offset));
    let refused = t
        .run("python3")
        .args([reader, "m.parity/000001.bcp", "r", "b", "healed"])
        .go();
    refused.code(1).stderr_has("blocks are lost");
}
