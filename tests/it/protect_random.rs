//! Random damage: flips, zeros, truncations, swapped blocks, deleted and renamed files, damaged parity,
//! headers and index, and runs that are killed between. All that is within the limit is repaired exactly,
//! all beyond is refused and named, and nothing that was good is touched. `BC_TEST_CASES` sets the number
//! of rounds, `BC_TEST_SEED` the first of them.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bc_testkit::{TestTree, cases};

use crate::common::Bc;
use crate::protect::bytes;
use crate::strace::{self, KILL};

const BLOCK: u64 = 65_536;

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most.max(1)
    }
}

/// Contents by path.
type Contents = BTreeMap<String, Vec<u8>>;

fn contents(t: &TestTree) -> Contents {
    let mut all = Contents::new();
    for entry in std::fs::read_dir(t.join("r")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        all.insert(name.clone(), t.read(Path::new("r").join(name)));
    }
    all
}

fn with_time_kept(t: &TestTree, name: &str, change: impl FnOnce(&std::fs::File)) {
    let path = t.join("r").join(name);
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    change(&file);
    file.set_modified(modified).unwrap();
}

/// Calls at which a run is killed.
const CALLS: [&str; 6] = [
    "openat",
    "pwrite64",
    "fsync",
    "linkat",
    "renameat2",
    "unlinkat",
];

/// A run that is killed at one of its calls, if it makes so many.
fn killed(t: &TestTree, line: &str, random: &mut Random) {
    let call = CALLS[random.below(CALLS.len() as u64) as usize];
    let most = if call == "openat" { 60 } else { 6 };
    let nth = random.below(most) + 1;
    if strace::is_able() {
        strace::injected(t, call, KILL, nth, line);
    }
}

/// Content with blocks of zeros in it.
fn sparse(len: usize, seed: u64, random: &mut Random) -> Vec<u8> {
    let mut content = bytes(len, seed);
    for _ in 0..2 {
        let from = random.below(len as u64);
        let zeros = random.below(6 * BLOCK).min(len as u64 - from);
        content[from as usize..(from + zeros) as usize].fill(0);
    }
    content
}

/// Damages one file, or the parity. Returns true if it is one block at most.
fn damage(t: &TestTree, good: &Contents, random: &mut Random) -> bool {
    let names: Vec<&String> = good.keys().collect();
    let name = names[random.below(names.len() as u64) as usize].clone();
    let size = good[&name].len() as u64;
    let is_there = t.exists(Path::new("r").join(&name));
    let kind = random.below(9);
    match kind {
        0..=2 if is_there => with_time_kept(t, &name, |file| {
            let offset = random.below(file.metadata().unwrap().len());
            let mut byte = [0];
            if file.read_at(&mut byte, offset).unwrap() == 1 {
                file.write_all_at(&[byte[0] ^ 1 << random.below(8)], offset)
                    .unwrap();
            }
        }),
        3 if is_there => with_time_kept(t, &name, |file| {
            let offset = random.below(size);
            file.write_all_at(
                &vec![0; random.below(BLOCK).min(size - offset) as usize],
                offset,
            )
            .unwrap();
        }),
        4 if is_there => {
            t.remove(Path::new("r").join(&name));
        }
        5 if is_there && size > 2 * BLOCK => with_time_kept(t, &name, |file| {
            let mut blocks = [vec![0; BLOCK as usize], vec![0; BLOCK as usize]];
            file.read_at(&mut blocks[0], 0).unwrap();
            file.read_at(&mut blocks[1], BLOCK).unwrap();
            file.write_all_at(&blocks[1], 0).unwrap();
            file.write_all_at(&blocks[0], BLOCK).unwrap();
        }),
        8 if is_there => with_time_kept(t, &name, |file| {
            // Its end is zeros then: one that is shorter would be an edit.
            file.set_len(random.below(size)).unwrap();
            file.set_len(size).unwrap();
        }),
        6 | 7 => {
            let mut volumes: Vec<_> = std::fs::read_dir(t.join("m.parity"))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            volumes.sort();
            let volume = &volumes[random.below(volumes.len() as u64) as usize];
            let file = std::fs::File::options()
                .read(true)
                .write(true)
                .open(volume)
                .unwrap();
            let offset = random.below(file.metadata().unwrap().len());
            let mut byte = [0];
            if file.read_at(&mut byte, offset).unwrap() == 1 {
                file.write_all_at(&[!byte[0]], offset).unwrap();
            }
        }
        _ => {}
    }
    [0, 1, 2, 6, 7].contains(&kind)
}

fn round(seed: u64) -> (u64, u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let t = TestTree::new();
    let mut good = Contents::new();
    for number in 0..3 + random.below(6) {
        let len = match random.below(3) {
            0 => random.below(5000) + 1,
            1 => random.below(3 * BLOCK) + 1,
            _ => random.below(12 * BLOCK) + 1,
        };
        let content = match random.below(3) {
            0 => sparse(len as usize, seed * 1000 + number, &mut random),
            _ => bytes(len as usize, seed * 1000 + number),
        };
        good.insert(format!("f{number}"), content);
    }
    for (name, content) in &good {
        t.write(Path::new("r").join(name), content);
    }
    // Never damaged: a root in which nothing is left seems not to be mounted.
    t.write("r/stays", "stays");
    let protect = "integrity protect --redundancy=30% --volume=1M r m.jsonl";
    t.bc_line("integrity manifest --output=m.jsonl r")
        .go()
        .code(0);
    if random.below(2) == 0 {
        killed(&t, protect, &mut random);
    }
    t.bc_line(protect).go().code(0);
    if random.below(2) == 0 {
        // An edit, and perhaps a rename, that the manifest knows.
        let name = format!("f{}", random.below(3));
        let edited = bytes(random.below(2 * BLOCK) as usize + 1, seed * 1000 + 500);
        t.write(Path::new("r").join(&name), &edited);
        good.insert(name, edited);
        if let Some(content) = good.remove("f1") {
            std::fs::rename(t.join("r/f1"), t.join("r/renamed")).unwrap();
            good.insert("renamed".into(), content);
        }
        if random.below(2) == 0 {
            // What was deleted stays so.
            t.remove("r/f2");
            good.remove("f2");
        }
        if random.below(2) == 0 {
            killed(&t, "integrity update --protect r m.jsonl", &mut random);
        }
        t.bc_line("integrity update r m.jsonl").go();
        t.bc_line(protect).go();
    }
    // Each volume that serves has parity for one block at least.
    let count = random.below(9);
    let mut is_within = count <= 1;
    for _ in 0..count {
        is_within &= damage(&t, &good, &mut random);
    }
    let before = contents(&t);
    let budget = ["", " --memory-budget=64M"][random.below(2) as usize];
    let restore = format!("integrity restore{budget} r m.jsonl");
    if random.below(2) == 0 {
        // Nothing is written to foresee what can be repaired.
        let dry_run = format!("integrity restore --dry-run{budget} r m.jsonl");
        let foreseen = t.bc_line(&dry_run).go();
        assert!(contents(&t) == before, "seed {seed}: {foreseen}");
        assert!(
            matches!(foreseen.status.code(), Some(0 | 1)),
            "seed {seed}: {foreseen}"
        );
    }
    if random.below(3) == 0 {
        killed(&t, &restore, &mut random);
    }
    let out = t.bc_line(&restore).go();
    let after = contents(&t);
    let mut bad = 0;
    for (name, content) in &good {
        let is = after.get(name);
        if is == Some(content) {
            continue;
        }
        bad += 1;
        // It was not good before, is as it was, and is named.
        assert_ne!(
            before.get(name),
            Some(content),
            "seed {seed}: {name}: {out}"
        );
        assert_eq!(is, before.get(name), "seed {seed}: {name}: {out}");
        assert!(
            out.text().contains(&format!("!! {name}: ")),
            "seed {seed}: {name}: {out}"
        );
    }
    assert_eq!(
        out.status.code(),
        Some(i32::from(bad > 0)),
        "seed {seed}: {out}"
    );
    assert!(bad == 0 || !is_within, "seed {seed}: {out}");
    // What was there is there, under its name or another one.
    for (name, content) in &before {
        let is_kept = after.values().any(|now| now == content);
        assert!(is_kept, "seed {seed}: {name}: {out}");
    }
    (good.len() as u64 - bad, bad)
}

#[test]
fn damage_within_the_limit_is_repaired() {
    let first = std::env::var("BC_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    let (mut whole, mut refused) = (0, 0);
    for seed in first..first + cases(12) as u64 {
        let (good, bad) = round(seed);
        (whole, refused) = (whole + good, refused + bad);
    }
    assert!(
        whole > refused,
        "{whole} files whole, {refused} beyond their parity"
    );
}
