//! Every kernel that this machine can run, against portable code.

use super::super::portable;
use super::super::select::Selection;
use super::super::{LaneKernel, StreamKernel};
use crate::CpuFeatures;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::fmt::Debug;

/// Parameters of a compression function for a checker.
struct Function<W: 'static> {
    rows: usize,
    block: usize,
    portable: &'static StreamKernel<W>,
    select: fn(CpuFeatures) -> Option<Selection<W>>,
    random: fn(&mut TestRng) -> W,
}

/// Runs every kernel of `function` for every number of live lanes.
fn check<W: Copy + Debug + PartialEq>(function: &Function<W>) {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for cpu in CpuFeatures::available() {
        let Some(selection) = (function.select)(cpu) else {
            continue;
        };
        for kernel in [selection.lanes, selection.few].into_iter().flatten() {
            for live in 1..=kernel.lanes {
                check_lanes(function, kernel, live, &mut rng);
            }
        }
        for blocks in 0..10 {
            check_stream(function, selection.stream, blocks, &mut rng);
        }
    }
}

/// Checks `live` messages of random blocks from random states; the other lanes repeat the last one.
fn check_lanes<W: Copy + Debug + PartialEq>(
    function: &Function<W>,
    kernel: &LaneKernel<W>,
    live: usize,
    rng: &mut TestRng,
) {
    let blocks = 1 + rng.next_u32() as usize % 5;
    let messages: Vec<Vec<u8>> = (0..live)
        .map(|_| bytes(blocks * function.block, rng))
        .collect();
    let start = words(function, function.rows * kernel.lanes, rng);

    let mut state = start.clone();
    // Past an odd byte: a kernel may not ask for alignment.
    let data: Vec<*const u8> = (0..kernel.lanes)
        .map(|lane| messages[lane.min(live - 1)][1..].as_ptr())
        .collect();
    // SAFETY: the kernel was selected for this machine; rows and lanes are right; each pointer has
    // `blocks` blocks behind it.
    unsafe { (kernel.compress)(&mut state, &data, blocks) };

    for (lane, message) in messages.iter().enumerate() {
        let column = |state: &[W]| -> Vec<W> {
            (0..function.rows)
                .map(|row| state[row * kernel.lanes + lane])
                .collect()
        };
        let expected = compress(function.portable, column(&start), &message[1..]);
        assert_eq!(
            column(&state),
            expected,
            "{} lane {lane} of {live}",
            kernel.name
        );
    }
}

fn check_stream<W: Copy + Debug + PartialEq>(
    function: &Function<W>,
    kernel: &StreamKernel<W>,
    blocks: usize,
    rng: &mut TestRng,
) {
    let message = bytes(blocks * function.block, rng);
    let start = words(function, function.rows, rng);
    let expected = compress(function.portable, start.clone(), &message[1..]);
    assert_eq!(
        compress(kernel, start, &message[1..]),
        expected,
        "{} {blocks} blocks",
        kernel.name
    );
}

fn compress<W>(kernel: &StreamKernel<W>, mut state: Vec<W>, blocks: &[u8]) -> Vec<W> {
    // SAFETY: the kernel is portable or was selected for this machine; rows and length are right.
    unsafe { (kernel.compress)(&mut state, blocks) };
    state
}

/// Returns `len` random bytes after an unused first one.
fn bytes(len: usize, rng: &mut TestRng) -> Vec<u8> {
    let mut bytes = vec![0; 1 + len];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn words<W>(function: &Function<W>, count: usize, rng: &mut TestRng) -> Vec<W> {
    (0..count).map(|_| (function.random)(rng)).collect()
}

#[test]
fn md5_agrees_with_portable() {
    check(&Function {
        rows: 4,
        block: 64,
        portable: &portable::MD5,
        select: super::md5::select,
        random: TestRng::next_u32,
    });
}

#[test]
fn sha1_agrees_with_portable() {
    check(&Function {
        rows: 5,
        block: 64,
        portable: &portable::SHA1,
        select: super::sha1::select,
        random: TestRng::next_u32,
    });
}

#[test]
fn sha256_agrees_with_portable() {
    check(&Function {
        rows: 8,
        block: 64,
        portable: &portable::SHA256,
        select: super::sha256::select,
        random: TestRng::next_u32,
    });
}

#[test]
fn sha512_agrees_with_portable() {
    check(&Function {
        rows: 8,
        block: 128,
        portable: &portable::SHA512,
        select: super::sha512::select,
        random: TestRng::next_u64,
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn blake2b_agrees_with_portable() {
    check(&Function {
        rows: 10,
        block: 128,
        portable: &portable::BLAKE2B,
        select: super::blake2b::select,
        random: TestRng::next_u64,
    });
}
