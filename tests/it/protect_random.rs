//! Random damage: flips, holes, truncations, swapped blocks, deleted and renamed files, damaged parity
//! and headers, and runs that are killed between. All that is within the limit is healed exactly, all
//! beyond is refused and named, and nothing that was good is touched. `BC_TEST_CASES` sets the number of
//! rounds, `BC_TEST_SEED` the first of them.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bc_testkit::{TestTree, cases};

use crate::common::Bc;
use crate::protect::bytes;

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

/// A run that is killed after a while, if it takes so long.
fn killed(t: &TestTree, line: &str, random: &mut Random) {
    let mut child = t
        .bc_line(line)
        .command()
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_micros(random.below(8000)));
    let _ = child.kill();
    child.wait().unwrap();
}

/// Damages one file, or the parity.
fn damage(t: &TestTree, good: &Contents, random: &mut Random) {
    let names: Vec<&String> = good.keys().collect();
    let name = names[random.below(names.len() as u64) as usize].clone();
    let size = good[&name].len() as u64;
    let is_there = t.exists(Path::new("r").join(&name));
    match random.below(8) {
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
        good.insert(
            format!("f{number}"),
            bytes(len as usize, seed * 1000 + number),
        );
    }
    for (name, content) in &good {
        t.write(Path::new("r").join(name), content);
    }
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
            killed(&t, "integrity update --protect r m.jsonl", &mut random);
        }
        t.bc_line("integrity update r m.jsonl").go();
        t.bc_line(protect).go();
    }
    for _ in 0..random.below(9) {
        damage(&t, &good, &mut random);
    }
    let before = contents(&t);
    if random.below(3) == 0 {
        killed(&t, "integrity restore r m.jsonl", &mut random);
    }
    let out = t.bc_line("integrity restore r m.jsonl").go();
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
    // What was there is there, under its name or another one.
    for (name, content) in &before {
        let is_kept = after.values().any(|now| now == content);
        assert!(is_kept, "seed {seed}: {name}: {out}");
    }
    (good.len() as u64 - bad, bad)
}

#[test]
fn whatever_is_within_the_limit_is_healed() {
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
