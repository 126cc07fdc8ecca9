//! The interleavings of two workers on a few items: no worker hangs, nothing is lost.

use super::*;
use loom::sync::Arc;
use loom::thread;

fn explore(capacity: usize, seeds: u32, children: u32) {
    let mut model = loom::model::Builder::new();
    // More switches than these away from a running thread find nothing new in practice, and
    // the number of interleavings explodes.
    model.preemption_bound = Some(3);
    model.check(move || {
        let queue = Arc::new(WorkQueue::new(capacity));
        (0..seeds).for_each(|_| queue.push(0_u32));
        let work = move |queue: &WorkQueue<u32>| {
            let mut count = 0;
            queue.work(&Cancel::new(), |level, local| {
                count += 1;
                if level == 0 {
                    (0..children).for_each(|_| local.push(1));
                }
            });
            count
        };
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || work(&queue))
        };
        let count = work(&queue) + other.join().unwrap();
        assert_eq!(count, seeds * (1 + children));
        assert_eq!(queue.outstanding.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn loom_one_item() {
    explore(1, 1, 0);
}

#[test]
fn loom_two_items() {
    explore(2, 2, 0);
}

#[test]
fn loom_child() {
    explore(1, 1, 1);
}

#[test]
fn loom_more_children_than_room() {
    explore(1, 1, 2);
}

/// Checks a stack that is shared with the other worker while the queue has room for a part of it.
#[test]
fn loom_a_shared_stack() {
    explore(1, 1, 4);
}

#[test]
fn loom_joined_late() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let queue = Arc::new(WorkQueue::new(1));
        queue.push(0_u32);
        let mut joined = None;
        let mut count = 0;
        queue.work(&Cancel::new(), |level, local| {
            count += 1;
            if level == 0 {
                (0..2).for_each(|_| local.push(1));
                let queue = Arc::clone(&queue);
                joined = Some(thread::spawn(move || {
                    let mut count = 0;
                    queue.work(&Cancel::new(), |_, _| count += 1);
                    count
                }));
            }
        });
        let count = count + joined.unwrap().join().unwrap();
        assert_eq!(count, 3);
        assert_eq!(queue.outstanding.load(Ordering::SeqCst), 0);
    });
}
