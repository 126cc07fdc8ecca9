//! Every kernel against xxhash-rust, at every length and any split.

use proptest::prelude::*;

use super::kernel::Kernel;
use super::*;

fn bytes(len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        })
        .collect()
}

#[track_caller]
fn check(cpu: CpuFeatures, data: &[u8]) {
    let expected64 = xxhash_rust::xxh3::xxh3_64(data);
    let expected128 = xxhash_rust::xxh3::xxh3_128(data);
    assert_eq!(xxh3_64(cpu, data), expected64, "{cpu:?} {}", data.len());
    assert_eq!(xxh3_128(cpu, data), expected128, "{cpu:?} {}", data.len());
    let mut streaming = Xxh3::new(cpu);
    streaming.update(data);
    assert_eq!(streaming.digest64(), expected64, "{cpu:?} {}", data.len());
    assert_eq!(streaming.digest128(), expected128, "{cpu:?} {}", data.len());
}

#[test]
fn every_length() {
    let data = bytes(3100);
    for cpu in CpuFeatures::available() {
        for len in 0..=3000 {
            // From an odd address as well.
            check(cpu, &data[len % 67..][..len]);
        }
    }
}

#[test]
fn around_blocks_and_far_beyond() {
    let data = bytes((1 << 20) + 3);
    for cpu in CpuFeatures::available() {
        for blocks in [3, 4, 5, 16, 64, 255] {
            for len in blocks * 1024 - 66..=blocks * 1024 + 66 {
                check(cpu, &data[1..][..len]);
            }
        }
        check(cpu, &data);
    }
}

#[test]
fn scalar_equals_the_others() {
    let data = bytes(64 * 100);
    for phase in 0..BLOCK_STRIPES {
        for stripes in [0, 1, 5, 15, 16, 17, 31, 33, 99] {
            let mut expected = START;
            let end = scalar::accumulate(&mut expected, &data[..64 * stripes], phase);
            for cpu in CpuFeatures::available() {
                let mut acc = START;
                let kernel = Kernel::select(cpu);
                assert_eq!(
                    kernel.accumulate(&mut acc, &data[..64 * stripes], phase),
                    end
                );
                assert_eq!(
                    acc.0, expected.0,
                    "{kernel:?} phase {phase}, {stripes} stripes"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn any_split(mut cuts in proptest::collection::vec(0usize..20_000, 1..12)) {
        cuts.sort_unstable();
        let len = *cuts.last().unwrap();
        let data = bytes(len);
        for cpu in CpuFeatures::available() {
            let mut streaming = Xxh3::new(cpu);
            let mut from = 0;
            for &to in &cuts {
                streaming.update(&data[from..to]);
                prop_assert_eq!(streaming.digest64(), xxhash_rust::xxh3::xxh3_64(&data[..to]));
                from = to;
            }
            prop_assert_eq!(streaming.digest128(), xxhash_rust::xxh3::xxh3_128(&data));
            streaming.reset();
            streaming.update(&data[..len / 2]);
            prop_assert_eq!(streaming.digest128(), xxhash_rust::xxh3::xxh3_128(&data[..len / 2]));
        }
    }

    #[test]
    fn small_pieces(pieces in proptest::collection::vec(0usize..130, 1..40)) {
        let data = bytes(pieces.iter().sum());
        for cpu in CpuFeatures::available() {
            let mut streaming = Xxh3::new(cpu);
            let mut from = 0;
            for piece in &pieces {
                streaming.update(&data[from..from + piece]);
                from += piece;
                prop_assert_eq!(streaming.digest128(), xxhash_rust::xxh3::xxh3_128(&data[..from]));
            }
        }
    }
}
