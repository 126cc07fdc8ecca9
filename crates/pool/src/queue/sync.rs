//! The primitives of the work queue: the ordinary ones, or loom's under `--cfg loom`,
//! which tries every interleaving (`RUSTFLAGS="--cfg loom" cargo test -p bc-pool loom`).

#[cfg(not(loom))]
pub(crate) use crossbeam_queue::ArrayQueue;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex};

/// Stands in for crossbeam's queue, which loom cannot look into.
#[cfg(loom)]
pub(crate) struct ArrayQueue<T> {
    items: Mutex<std::collections::VecDeque<T>>,
    capacity: usize,
}

#[cfg(loom)]
impl<T> ArrayQueue<T> {
    pub(crate) fn new(capacity: usize) -> ArrayQueue<T> {
        ArrayQueue {
            items: Mutex::new(std::collections::VecDeque::new()),
            capacity,
        }
    }

    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let mut items = self.items.lock().unwrap();
        if items.len() == self.capacity {
            return Err(item);
        }
        items.push_back(item);
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.items.lock().unwrap().pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.lock().unwrap().len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.lock().unwrap().is_empty()
    }
}
