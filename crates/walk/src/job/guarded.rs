//! Callbacks that are called while a job is at work, which their panics must not end half done.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A callback of the caller's, called by a job with one item after the other. After a panic in it it
/// is not called again: the job ends as ever, and then the panic goes on out of
/// [`end`](Guarded::end).
pub struct Guarded<F>(Result<F, Box<dyn Any + Send>>);

impl<F> Guarded<F> {
    /// Guards this callback.
    pub fn new(callback: F) -> Guarded<F> {
        Guarded(Ok(callback))
    }

    /// Calls it, unless it has panicked.
    pub fn call<T>(&mut self, item: T)
    where
        F: FnMut(T),
    {
        if let Ok(callback) = &mut self.0
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback(item)))
        {
            self.0 = Err(panic);
        }
    }

    /// Ends the calls: its panic goes on now.
    pub fn end(self) {
        if let Err(panic) = self.0 {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_waits_for_the_end() {
        let mut heard = Vec::new();
        let mut guarded = Guarded::new(|item| {
            heard.push(item);
            assert!(item < 2, "of a test");
        });
        (1..5).for_each(|item| guarded.call(item));
        let ended = catch_unwind(AssertUnwindSafe(|| guarded.end()));
        assert_eq!(*ended.unwrap_err().downcast::<&str>().unwrap(), "of a test");
        assert_eq!(heard, [1, 2]);
    }
}
