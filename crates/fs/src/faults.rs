//! Faults at chosen system calls, for tests: every one that this crate and `bc-edit` make passes a
//! [point](crate::call::point), which does nothing unless a test armed it. Needs the feature `faults`.
//! A call is addressed by its name and its number among those of that name: how many others come before
//! it differs with the speed of the machine.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

/// A call: its name, and its number among the calls of that name, from 1.
pub type Nth = (String, usize);

/// True once a test of this process has armed anything.
static ARMED: AtomicBool = AtomicBool::new(false);

/// Fault at the chosen call.
#[allow(missing_debug_implementations)]
pub enum Fault {
    /// It fails with this error and has no effect.
    Errno(Errno),
    /// This call and those after it fail so, this many in all and of any name.
    Errnos(Errno, usize),
    /// The process dies before it.
    Kill,
    /// Something else happens first: another process at work.
    Run(Box<dyn FnOnce()>),
}

/// Faults that a thread has armed, and the calls that it has made since.
#[derive(Default)]
struct Injection {
    calls: Vec<&'static str>,
    counts: HashMap<&'static str, usize>,
    armed: Vec<(Nth, Fault)>,
    /// Fault that is armed by the last of those, from which on calls are counted again from
    /// zero.
    then: Option<(Nth, Fault)>,
    failing: Option<(Errno, usize)>,
    at: Option<usize>,
}

/// The calls that were made while faults were armed.
#[derive(Debug)]
pub struct Seen {
    /// Their names.
    pub calls: Vec<&'static str>,
    /// True if the run reached every call that was armed.
    pub reached: bool,
    /// The last of those, as an index of `calls`.
    pub at: usize,
}

impl Seen {
    /// Returns the index of the first call of this name; behind all of them if there is no such
    /// call.
    pub fn first(&self, op: &str) -> usize {
        let found = self.calls.iter().position(|call| *call == op);
        found.unwrap_or(self.calls.len())
    }
}

thread_local! {
    static INJECTION: RefCell<Injection> = RefCell::default();
}

/// Arms a call of this thread, counted from here.
pub fn arm(at: impl Into<Nth>, fault: Fault) {
    arm_all([(at, fault)]);
}

/// Arms no call: those that are made are seen.
pub fn watch() {
    arm_all::<Nth>([]);
}

/// Arms several calls.
pub fn arm_all<N: Into<Nth>>(armed: impl IntoIterator<Item = (N, Fault)>) {
    let armed = armed.into_iter().map(|(at, fault)| (at.into(), fault));
    ARMED.store(true, Ordering::SeqCst);
    INJECTION.set(Injection {
        armed: armed.collect(),
        ..Injection::default()
    });
}

/// Arms a call, and one of those that come after it: only they are counted and seen.
pub fn arm_then<N: Into<Nth>>((at, fault): (N, Fault), (then, late): (N, Fault)) {
    ARMED.store(true, Ordering::SeqCst);
    INJECTION.set(Injection {
        armed: vec![(at.into(), fault)],
        then: Some((then.into(), late)),
        ..Injection::default()
    });
}

/// Ends the injection.
pub fn disarm() -> Seen {
    let state = INJECTION.take();
    Seen {
        reached: state.armed.is_empty() && state.then.is_none(),
        at: state.at.unwrap_or(state.calls.len()),
        calls: state.calls,
    }
}

/// Calls that change nothing which another process, or the next run, sees: to die at one of them
/// is to die at the next of the others.
pub const PURE: [&str; 12] = [
    "access",
    "get flags",
    "getxattr",
    "lease",
    "listxattr",
    "open",
    "open directory",
    "read",
    "readlink",
    "stat",
    "statfs",
    "write directory",
];

pub(crate) fn point(op: &'static str) -> Result<(), Errno> {
    if !ARMED.load(Ordering::Relaxed) {
        return Ok(());
    }
    of_all_threads(op);
    let fault = INJECTION.with_borrow_mut(|state| {
        state.calls.push(op);
        let nth = state.counts.entry(op).or_default();
        *nth += 1;
        if let Some((errno, left)) = state.failing.take() {
            state.failing = (left > 1).then_some((errno, left - 1));
            return Some(Fault::Errno(errno));
        }
        let is_now = |armed: &mut (Nth, Fault)| armed.0.0 == op && armed.0.1 == *nth;
        let now: Vec<_> = state.armed.extract_if(.., is_now).collect();
        let (_, fault) = now.into_iter().next()?;
        state.at = Some(state.calls.len() - 1);
        if state.armed.is_empty()
            && let Some(then) = state.then.take()
        {
            *state = Injection {
                armed: vec![then],
                ..Injection::default()
            };
        }
        if let Fault::Errnos(errno, many) = fault {
            state.failing = (many > 1).then_some((errno, many - 1));
        }
        Some(fault)
    });
    match fault {
        None => Ok(()),
        Some(Fault::Errno(errno) | Fault::Errnos(errno, _)) => Err(errno),
        Some(Fault::Run(run)) => {
            run();
            Ok(())
        }
        Some(Fault::Kill) => die(),
    }
}

/// The call of all threads together that the process dies at, and those made so far.
static THREADS: Mutex<Option<(Nth, Vec<&'static str>)>> = Mutex::new(None);

/// Kills the process at a call, whichever thread makes it.
pub fn arm_threads(at: impl Into<Nth>) {
    ARMED.store(true, Ordering::SeqCst);
    *threads() = Some((at.into(), Vec::new()));
}

/// Disarms that; returns the calls of all threads.
pub fn disarm_threads() -> Vec<&'static str> {
    let armed = threads().take();
    armed.map(|(_, calls)| calls).unwrap_or_default()
}

fn threads() -> MutexGuard<'static, Option<(Nth, Vec<&'static str>)>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_all_threads(op: &'static str) {
    let mut armed = threads();
    let Some(((call, nth), calls)) = armed.as_mut() else {
        return;
    };
    calls.push(op);
    if call == op && *nth > 0 {
        *nth -= 1;
        if *nth == 0 {
            die();
        }
    }
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    unreachable!("killed")
}
