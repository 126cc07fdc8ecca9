//! `update --reread` under clocks that are wrong: each file has its turn whatever the time is,
//! since runs are counted.

use bc_integrity::Reread;
use bc_testkit::TestTree;

use crate::scrubbing::edit;
use crate::support::{THEN, an_update, entry, record, updated};

const DAY: i64 = 86_400_000_000_000;
const FILES: usize = 6;

/// Time of the clock in a night, the first being 1.
type Clock = fn(i64) -> i64;

const CLOCKS: [(&str, Clock); 12] = [
    ("right", |night| night * DAY),
    ("stuck", |_| DAY),
    ("stuck in the past", |_| -7300 * DAY),
    ("as old as the manifest", |_| 0),
    ("backwards", |night| -night * DAY / 10),
    ("backwards from the future", |night| (400 - night) * DAY),
    ("behind every other night", |night| {
        (night - 400 * (night % 2)) * DAY
    }),
    ("decades behind every other night", |night| {
        (night - 7300 * (night % 2)) * DAY
    }),
    ("ahead every other night", |night| {
        (night + 400 * (night % 2)) * DAY
    }),
    ("ahead once", |night| {
        (night + 7300 * i64::from(night == 1)) * DAY
    }),
    ("anew with each boot", |night| (night % 3) * DAY / 7),
    ("to and fro", |night| (night * night % 7 - 3) * 100 * DAY),
];

/// A tree of equal files, of which those with the numbers in `bad` are damaged as a failing disk
/// does: no time says so.
fn sample(bad: &[usize]) -> (TestTree, std::path::PathBuf) {
    let tree = TestTree::new();
    for nth in 0..FILES {
        tree.write(format!("{nth}"), format!("{nth}").repeat(1000));
    }
    let manifest = record(&tree);
    for nth in bad {
        edit(&manifest, &nth.to_string(), |entry| {
            entry["digest"] = "0".repeat(64).into();
        });
    }
    (tree, manifest)
}

fn night(tree: &TestTree, manifest: &std::path::Path, reread: Reread, now: i64) -> String {
    let what = an_update(tree.path().as_os_str(), manifest)
        .reread(reread)
        .now(now);
    updated(&what).unwrap().0
}

/// With damaged files in front of it as many as the budget reads, in one round.
#[test]
fn damage_is_found_in_one_round_whatever_the_clock_says() {
    for (name, clock) in CLOCKS {
        for budget in [1_usize, 2] {
            let front: Vec<usize> = (0..budget).collect();
            let bad = [&front[..], &[FILES - 1]].concat();
            let (tree, manifest) = sample(&bad);
            let reread = Reread::Bytes(budget as u64 * 1000);
            let nights = FILES.div_ceil(budget) as i64;
            let mut said = String::new();
            for nth in 1..=nights {
                said = night(&tree, &manifest, reread, THEN + clock(nth));
            }
            for nth in bad {
                let line = format!("!! {nth}: ");
                assert!(said.contains(&line), "{name}, {budget} a night: {said}");
            }
        }
    }
}

/// Files that are read since they are new, edited or renamed are behind in the line from then on.
#[test]
fn news_of_every_night_keep_no_file_from_its_turn() {
    for (name, clock) in CLOCKS {
        let (tree, manifest) = sample(&[FILES - 1]);
        let mut said = String::new();
        for nth in 1..=FILES as i64 {
            tree.write(format!("!new{nth}"), "new".repeat(400));
            tree.write(format!("!again{}", nth % 2), nth.to_string().repeat(1000));
            // Updates that read nothing again are runs as well.
            night(&tree, &manifest, Reread::None, THEN + clock(nth));
            said = night(&tree, &manifest, Reread::Bytes(1000), THEN + clock(nth));
        }
        let line = format!("!! {}: ", FILES - 1);
        assert!(said.contains(&line), "{name}: {said}");
    }
}

/// Manifests of earlier versions count no runs: there the times decide, until each had its turn.
#[test]
fn manifests_without_counts_gain_them() {
    let (tree, manifest) = sample(&[]);
    for nth in 0..FILES {
        edit(&manifest, &nth.to_string(), |entry| {
            let time = THEN + (FILES - nth) as i64 * DAY;
            entry["verified_at"] = bc_manifest::time::format_rfc3339(time).into();
        });
    }
    let order = |round: i64| {
        let read: Vec<usize> = (0..FILES as i64)
            .map(|nth| {
                let before = std::fs::read(&manifest).unwrap();
                // The clock stands still from here.
                night(&tree, &manifest, Reread::Bytes(1), THEN + 50 * DAY);
                let now = std::fs::read(&manifest).unwrap();
                let tried = |bytes: &[u8], file: usize| {
                    entry(bytes, &file.to_string())["tried_run"].clone()
                };
                let changed: Vec<usize> = (0..FILES)
                    .filter(|file| tried(&before, *file) != tried(&now, *file))
                    .collect();
                assert_eq!(changed.len(), 1, "{changed:?}");
                let run = round * FILES as i64 + nth + 1;
                assert_eq!(tried(&now, changed[0]), run);
                changed[0]
            })
            .collect();
        read
    };
    let oldest_first: Vec<usize> = (0..FILES).rev().collect();
    assert_eq!(order(0), oldest_first);
    assert_eq!(order(1), oldest_first);
}
