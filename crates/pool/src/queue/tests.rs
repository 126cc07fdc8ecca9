//! The queue must end exactly when everything is done, whatever the sizes and accidents.

use super::*;
use crate::run::run_in;
use crate::{Tables, run};
use std::sync::Barrier;
use std::time::Instant;

/// Counts the nodes of a tree with `fan` children per node and `depth` levels below the root.
fn count_tree(workers: usize, capacity: usize, fan: u32, depth: u32) -> u64 {
    let queue = WorkQueue::new(capacity);
    queue.push(0_u32);
    let cancel = Cancel::new();
    let counts = run(workers, |_| {
        let mut count = 0_u64;
        queue.work(&cancel, |level, local| {
            count += 1;
            if level < depth {
                (0..fan).for_each(|_| local.push(level + 1));
            }
        });
        count
    })
    .unwrap();
    assert_eq!(queue.outstanding.load(Ordering::SeqCst), 0);
    assert_eq!(queue.idle.load(Ordering::SeqCst), 0);
    counts.into_iter().sum()
}

#[test]
fn every_shape_ends_with_everything_done() {
    for workers in [1, 2, 3, 8] {
        for capacity in [1, 2, 7, 64] {
            assert_eq!(count_tree(workers, capacity, 0, 0), 1);
            assert_eq!(count_tree(workers, capacity, 1, 500), 501);
            assert_eq!(count_tree(workers, capacity, 300, 1), 301);
            assert_eq!(count_tree(workers, capacity, 3, 7), 3280);
        }
    }
}

#[test]
fn tiny_jobs_over_and_over() {
    for round in 0..2000 {
        let fan = round % 4;
        assert_eq!(count_tree(3, 1, fan, 1), u64::from(fan) + 1);
    }
}

/// Checks that a worker's own items cost it no write that others wait for.
#[test]
fn own_items_are_not_counted() {
    let queue = WorkQueue::new(2);
    queue.push(0_u32);
    let mut counts = Vec::new();
    queue.work(&Cancel::new(), |level, local| {
        if level == 0 {
            (0..10).for_each(|_| local.push(1));
        }
        counts.push(queue.outstanding.load(Ordering::SeqCst));
    });
    // This worker, and two items in the queue, which come last.
    assert_eq!(counts, [3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 1]);
    assert_eq!(queue.outstanding.load(Ordering::SeqCst), 0);
}

#[test]
fn nothing_to_do_returns_at_once() {
    let queue = WorkQueue::<u8>::new(4);
    run(4, |_| queue.work(&Cancel::new(), |_, _| unreachable!())).unwrap();
}

#[test]
fn more_seeds_than_room() {
    let queue = WorkQueue::new(2);
    (0..100_u64).for_each(|n| queue.push(n));
    let cancel = Cancel::new();
    let sums = run(3, |_| {
        let mut sum = 0;
        queue.work(&cancel, |n, _| sum += n);
        sum
    })
    .unwrap();
    assert_eq!(sums.into_iter().sum::<u64>(), 4950);
}

#[test]
fn deep_chains_do_not_recurse() {
    assert_eq!(count_tree(2, 1, 1, 300_000), 300_001);
}

#[test]
fn a_panicking_worker_does_not_hang_the_others() {
    for round in 0..200_u32 {
        let queue = WorkQueue::new(2);
        (0..20).for_each(|n| queue.push(n));
        let cancel = Cancel::new();
        let result = run(4, |_| {
            queue.work(&cancel, |n, local| {
                if n == round % 20 {
                    panic!("item {n}");
                }
                // Leaves work behind on the panicking worker's stack in some rounds.
                if n < 20 {
                    (0..5).for_each(|k| local.push(100 + k));
                }
            });
        });
        assert_eq!(result.unwrap_err().message, format!("item {}", round % 20));
    }
}

#[test]
fn cancellation_wakes_parked_workers() {
    let queue = WorkQueue::new(4);
    queue.push(());
    let cancel = Cancel::new();
    let parked = Barrier::new(2);
    run(3, |worker| {
        if worker == 0 {
            // Holds the only item for as long as the others need to park; they can only
            // come back because of the cancellation.
            queue.work(&cancel, |(), _| {
                parked.wait();
                while queue.idle.load(Ordering::SeqCst) < 2 {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_millis(5));
                cancel.cancel(2);
                let asked = Instant::now();
                while queue.idle.load(Ordering::SeqCst) > 0 {
                    std::thread::yield_now();
                }
                assert!(asked.elapsed() < Duration::from_secs(60));
            });
        } else {
            // Not before worker 0 holds the item.
            if worker == 1 {
                parked.wait();
            } else {
                while queue.has_shared_work() {
                    std::thread::yield_now();
                }
            }
            queue.work(&cancel, |(), _| unreachable!());
        }
    })
    .unwrap();
    assert_eq!(cancel.reason(), Some(2));
}

#[test]
fn hoarded_work_is_shared_with_the_idle() {
    // Worker 0 takes the root and fills its stack; the queue holds one item only. The
    // others can take part only if the stack is shared out again.
    let queue = WorkQueue::new(1);
    queue.push(0_u32);
    let cancel = Cancel::new();
    let counts = run(2, |_| {
        let mut count = 0_u32;
        queue.work(&cancel, |level, local| {
            count += 1;
            if level == 0 {
                (0..64).for_each(|_| local.push(1));
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        count
    })
    .unwrap();
    assert_eq!(counts.iter().sum::<u32>(), 65);
    if counts.len() == 2 {
        assert!(counts.iter().all(|&count| count >= 2), "{counts:?}");
    }
}

#[test]
fn those_who_join_take_part() {
    let queue = WorkQueue::new(2);
    queue.push(0_u32);
    let cancel = Cancel::new();
    let counts = run_in(Tables::SHARED, &[], 1, 5, |_, spawn| {
        let mut count = 0_u32;
        queue.work(&cancel, |level, local| {
            count += 1;
            spawn();
            if level < 9 {
                (0..2).for_each(|_| local.push(level + 1));
            }
        });
        count
    })
    .unwrap();
    assert_eq!(counts.len(), 5);
    assert_eq!(counts.iter().sum::<u32>(), (1 << 10) - 1);
}

#[test]
fn what_waits_is_shared_and_has_no_taker() {
    let queue = WorkQueue::new(2);
    assert_eq!(queue.waiting(), 0);
    (0..5_u32).for_each(|n| queue.push(n));
    assert_eq!(queue.waiting(), 5, "two in the queue, three seeds");
    queue.work(&Cancel::new(), |n, local| {
        if n == 0 {
            assert_eq!(queue.waiting(), 4);
            (10..13).for_each(|n| local.push(n));
            assert_eq!(queue.waiting(), 5, "the queue has room for one");
        }
    });
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn who_ends_leaves_all_to_others() {
    let queue = WorkQueue::new(2);
    queue.push(0);
    let done = AtomicUsize::new(0);
    run(2, |worker| {
        queue.work(&Cancel::new(), |item: usize, local| {
            done.fetch_add(1, Ordering::Relaxed);
            if item == 0 {
                (1..100).for_each(|next| local.push(next));
            }
            if worker > 0 {
                local.end();
            }
        });
    })
    .unwrap();
    assert_eq!(done.into_inner(), 100);
}
