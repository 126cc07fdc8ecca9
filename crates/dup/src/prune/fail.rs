//! Fault injection for the tests of this crate: every system call of prune and
//! undo passes [`point`], which does nothing at all in any other build.

use rustix::io::Errno;

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn point(_op: &'static str) -> Result<(), Errno> {
    Ok(())
}

#[cfg(test)]
pub(crate) use armed::point;
#[cfg(test)]
pub(crate) use armed::{Fault, arm, arm_all, arm_first, disarm, kill_at};

#[cfg(test)]
mod armed {
    use super::Errno;
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicIsize, Ordering};

    /// What happens at the chosen call.
    pub(crate) enum Fault {
        /// It fails with this error and has no effect.
        Errno(Errno),
        /// The process dies before it.
        Kill,
        /// Something else happens first: another process at work.
        Run(Box<dyn FnOnce()>),
    }

    #[derive(Default)]
    struct State {
        calls: Vec<&'static str>,
        armed: Vec<(usize, Fault)>,
        first: Option<(&'static str, Fault)>,
    }

    /// Calls until the process dies, whichever thread makes them; negative: it does not.
    static LEFT: AtomicIsize = AtomicIsize::new(-1);

    /// Has the process die at the `n`th call from here of all threads together, counted from 0.
    pub(crate) fn kill_at(n: usize) {
        LEFT.store(isize::try_from(n).unwrap(), Ordering::Relaxed);
    }

    thread_local! {
        static STATE: RefCell<State> = RefCell::default();
    }

    /// Arms the `n`th call from here, counted from 0, on this thread.
    pub(crate) fn arm(n: usize, fault: Fault) {
        arm_all(vec![(n, fault)]);
    }

    /// Arms several calls.
    pub(crate) fn arm_all(armed: Vec<(usize, Fault)>) {
        STATE.with_borrow_mut(|state| {
            *state = State {
                calls: Vec::new(),
                armed,
                first: None,
            }
        });
    }

    /// Arms the first call of this name besides, wherever it comes.
    pub(crate) fn arm_first(op: &'static str, fault: Fault) {
        STATE.with_borrow_mut(|state| state.first = Some((op, fault)));
    }

    /// Ends the injection; gives the calls seen since [`arm`].
    pub(crate) fn disarm() -> Vec<&'static str> {
        STATE.with_borrow_mut(|state| std::mem::take(state).calls)
    }

    pub(crate) fn point(op: &'static str) -> Result<(), Errno> {
        if LEFT.load(Ordering::Relaxed) >= 0 && LEFT.fetch_sub(1, Ordering::Relaxed) == 0 {
            die();
        }
        let fault = STATE.with_borrow_mut(|state| {
            let now = state.calls.len();
            state.calls.push(op);
            match state.armed.iter().position(|(n, _)| *n == now) {
                Some(found) => Some(state.armed.swap_remove(found).1),
                None => state
                    .first
                    .take_if(|(first, _)| *first == op)
                    .map(|(_, fault)| fault),
            }
        });
        match fault {
            None => Ok(()),
            Some(Fault::Errno(errno)) => Err(errno),
            Some(Fault::Run(run)) => {
                run();
                Ok(())
            }
            Some(Fault::Kill) => die(),
        }
    }

    fn die() -> ! {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        unreachable!("killed")
    }
}
