//! The allocator in a process of its own, as a budget holds for all of one.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bc_edit::spill;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

#[global_allocator]
static ALLOCATOR: spill::Allocator = spill::Allocator;

const BUDGET: u64 = 1 << 20;

/// Returns the bytes of private memory that this process has, which no file backs.
fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.unwrap().trim().trim_end_matches("kB").trim();
    kib.parse::<u64>().unwrap() << 10
}

#[test]
fn blocks_beyond_the_budget_are_in_files_and_hold_what_is_written() {
    let before = vec![1_u8; 4 * spill::LARGE];
    let stop = Arc::new(AtomicUsize::new(0));
    let directories = [std::env::temp_dir(), "/var/tmp".into()];
    spill::begin(BUDGET, &directories, Arc::clone(&stop), 7);
    if spill::directory().is_none() {
        // All that there is here is memory: said when there is need.
        let large = vec![7_u8; 2 * BUDGET as usize];
        assert!(large.iter().all(|byte| *byte == 7));
        assert!(spill::failure().unwrap().contains("is in memory itself"));
        assert_eq!(stop.load(Ordering::SeqCst), 7);
        return;
    }
    let least = anonymous();
    let large = vec![7_u8; 64 << 20];
    assert!(anonymous() < least + (16 << 20));
    assert!(spill::most() >= 64 << 20);
    assert!(large.iter().all(|byte| *byte == 7));
    drop(large);
    drop(before);

    // Arrays that grow and shrink in any order, beside each other and in threads.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut runner = TestRunner::new(ProptestConfig::with_cases(8));
                let ran = runner.run(&steps(), |steps| {
                    arrays(&steps);
                    Ok(())
                });
                ran.unwrap();
            });
        }
    });
    assert_eq!((spill::failure(), stop.load(Ordering::SeqCst)), (None, 0));
}

/// Steps: the index of an array, and its new length in words.
fn steps() -> impl Strategy<Value = Vec<(usize, usize)>> {
    let lengths = prop_oneof![0..100_usize, 0..20_000_usize, 0..200_000_usize];
    prop::collection::vec((0..6_usize, lengths), 1..30)
}

fn arrays(steps: &[(usize, usize)]) {
    let mut arrays = vec![Vec::<u64>::new(); 6];
    for &(which, len) in steps {
        let array = &mut arrays[which];
        let from = array.len() as u64;
        match len % 3 {
            _ if len > array.len() => array.extend(from..len as u64),
            0 => array.truncate(len),
            1 => {
                array.truncate(len);
                array.shrink_to_fit();
            }
            _ => *array = (0..len as u64).collect(),
        }
        assert_eq!(array.len(), len);
        assert!((0..).zip(array.iter()).all(|(at, word)| at == *word));
        let zeros = vec![0_u64; len];
        assert!(zeros.iter().all(|word| *word == 0));
    }
    for array in &arrays {
        assert!((0..).zip(array).all(|(at, word)| at == *word));
    }
}
