//! Random small trees, every algorithm, threads and backend, against the
//! reference.

use super::*;
use bc_testkit::Rng;
use bc_testkit::reference::{LinkCounting, duplicates};
use proptest::prelude::*;

/// One file: a size at which the reads change, a content and where it differs.
#[derive(Clone, Debug)]
struct Plan {
    size: usize,
    content: u8,
    flip: Option<f64>,
    dir: u8,
    linked: bool,
}

/// Around the lengths of a start and of an end, its double, a slot of the reader and the stages.
const SIZES: [usize; 20] = [
    0, 1, 2, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8192, 8193, 12_288, 65_536, 131_071,
    131_072, 131_073, 262_144, 1_048_576, 1_048_577,
];

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let plan = (
        prop::sample::select(&SIZES[..]),
        0..3u8,
        prop::option::of(0.0..1.0f64),
        0..4u8,
        prop::bool::weighted(0.15),
    )
        .prop_map(|(size, content, flip, dir, linked)| Plan {
            size,
            content,
            flip,
            dir,
            linked,
        });
    prop::collection::vec(plan, 2..24)
}

fn bytes(plan: &Plan) -> Vec<u8> {
    let mut bytes = match plan.content {
        0 => Rng::new(1).bytes(plan.size),
        // Both halves equal: a hash that combines its ends by XOR sees nothing.
        1 => {
            let half = Rng::new(2).bytes(plan.size.div_ceil(2));
            [half.clone(), half].concat()[..plan.size].to_vec()
        }
        _ => vec![0; plan.size],
    };
    if let Some(at) = plan.flip
        && plan.size > 0
    {
        // Few places, so that equal flips happen as well: the first, the last
        // and three between.
        let at = ((at * 5.0) as usize * (plan.size - 1)) / 4;
        bytes[at.min(plan.size - 1)] ^= 0x40;
    }
    bytes
}

fn build(plans: &[Plan]) -> TestTree {
    let tree = TestTree::new();
    for (index, plan) in plans.iter().enumerate() {
        let name = format!("{}/{index:02}", plan.dir);
        match index.checked_sub(1) {
            Some(before) if plan.linked => {
                tree.hard_link(format!("{}/{before:02}", plans[before].dir), name);
            }
            _ => {
                tree.write(&name, bytes(plan));
                if plan.content == 2 && plan.size > 8192 {
                    // The same bytes as a hole.
                    let file = fs::File::options()
                        .write(true)
                        .open(tree.join(&name))
                        .unwrap();
                    if plan.flip.is_none() && index % 2 == 0 {
                        file.set_len(0).unwrap();
                        file.set_len(plan.size as u64).unwrap();
                    }
                }
            }
        }
    }
    tree
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn finds_what_comparing_bytes_finds(
        plans in plans(),
        algorithm in prop::sample::select(&ALGORITHMS[..]),
        workers in 1..4usize,
        apart in any::<bool>(),
        verify in any::<bool>(),
        backend in prop::sample::select(vec![bc_read::Choice::Auto, bc_read::Choice::Sync]),
    ) {
        let tree = build(&plans);
        // The links of a chain name one file, whatever their directories.
        let options = ScanOptions {
            algorithm,
            workers,
            hard_links: if apart { HardLinks::Duplicates } else { HardLinks::OneFile },
            equality: if verify { Equality::Bytes } else { Equality::Digest },
            read: bc_read::ReadOptions::default()
.backend(backend),
            ..ScanOptions::default()
        };
        let listing = list(tree.path());
        let scan = search(&listing, &options);
        prop_assert!(scan.errors.is_empty());
        let links = if apart { LinkCounting::Apart } else { LinkCounting::Together };
        let expected = duplicates(tree.path(), links).unwrap();
        prop_assert_eq!(paths(&listing, &scan, &options), expected);
    }
}

/// Enough files for a sample: `equal` in ten have an equal, the others differ
/// at their start, or where the fast hash of files of this size does not look.
fn many(equal: usize) -> TestTree {
    let shm = Path::new("/dev/shm");
    let parent = match tempfile::Builder::new().tempfile_in(shm) {
        Ok(_) => shm.to_owned(),
        Err(_) => std::env::temp_dir(),
    };
    let tree = TestTree::new_in(&parent);
    for index in 0..3000usize {
        let size = 20_000 + (index / 10) * 7;
        let mut bytes = vec![(size % 251) as u8; size];
        if index % 10 >= equal {
            let place = match index % 10 {
                9 => [size / 2, size - 1][index / 10 % 2],
                _ => 0,
            };
            bytes[place] = bytes[place].wrapping_add(1 + (index % 10) as u8);
        }
        tree.write(format!("{:02}/{index:04}", index % 37), bytes);
    }
    tree
}

#[test]
fn sampling_changes_nothing_but_how_much_is_read() {
    for equal in [0, 1, 9] {
        let tree = many(equal);
        let expected = duplicates(tree.path(), LinkCounting::Together).unwrap();
        for algorithm in ALGORITHMS {
            for workers in [1, 3] {
                let options = ScanOptions {
                    algorithm,
                    workers,
                    ..ScanOptions::default()
                };
                let listing = list(tree.path());
                let scan = search(&listing, &options);
                assert_eq!(
                    paths(&listing, &scan, &options),
                    expected,
                    "{equal} of ten, {algorithm}"
                );
                // Where nearly all are equal most are read once, and whole.
                let twice = scan.stats.full_hashed;
                match equal {
                    9 => assert!(twice < 1000, "{:?}", scan.stats),
                    _ => assert!(scan.stats.bytes_read < 3000 * 15_000, "{:?}", scan.stats),
                }
            }
        }
    }
}

#[test]
fn differing_middles_are_no_duplicates_whatever_the_threads() {
    // The results of the C original when it chose one thread.
    let tree = TestTree::new();
    let mut bytes = vec![7; 100_000];
    tree.write("a", &bytes);
    bytes[50_000] = 8;
    tree.write("b", &bytes);
    for workers in 1..4 {
        let options = ScanOptions {
            workers,
            ..ScanOptions::default()
        };
        assert!(found(tree.path(), &options).is_empty());
    }
}
