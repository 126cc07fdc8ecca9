//! Faults at chosen system calls: every one that `bc-fs` and `bc-edit` make passes a point, which
//! does nothing unless a test armed it. A call is addressed by its name and its number among those
//! of that name: how many others come before it differs with the speed of the machine.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Mutex;

use rustix::io::Errno;

use crate::{Point, Sweep};

/// Fault at the chosen call.
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

#[derive(Default)]
struct State {
    calls: Vec<&'static str>,
    counts: HashMap<&'static str, usize>,
    armed: Vec<(Point, Fault)>,
    /// Fault that is armed by the last of those, from which on calls are counted again from
    /// zero.
    then: Option<(Point, Fault)>,
    failing: Option<(Errno, usize)>,
    at: Option<usize>,
}

/// The calls that were made while faults were armed.
pub struct Seen {
    /// Their names.
    pub calls: Vec<&'static str>,
    /// True if the run reached every call that was armed.
    pub reached: bool,
    /// The last of those, as an index of `calls`.
    pub at: usize,
}

impl Seen {
    /// Hands a sweep on to its next point; whether the run came to this one.
    pub fn of(&self, sweep: &mut Sweep) -> bool {
        sweep.ran(self.reached, &self.calls);
        self.reached
    }

    /// Returns the index of the first call of this name; behind all of them if there is no such
    /// call.
    pub fn first(&self, op: &str) -> usize {
        let found = self.calls.iter().position(|call| *call == op);
        found.unwrap_or(self.calls.len())
    }
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Arms a call of this thread, counted from here.
pub fn arm(point: Point, fault: Fault) {
    arm_all([(point, fault)]);
}

/// Arms no call: those that are made are seen.
pub fn watch() {
    arm_all([]);
}

/// Arms several calls.
pub fn arm_all(armed: impl IntoIterator<Item = (Point, Fault)>) {
    let armed = armed.into_iter().collect();
    bc_fs::call::arm(point);
    STATE.set(State {
        armed,
        ..State::default()
    });
}

/// Arms a call, and one of those that come after it: only they are counted and seen.
pub fn arm_then(first: (Point, Fault), then: (Point, Fault)) {
    bc_fs::call::arm(point);
    STATE.set(State {
        armed: vec![first],
        then: Some(then),
        ..State::default()
    });
}

/// Ends the injection.
pub fn disarm() -> Seen {
    let state = STATE.take();
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

fn point(op: &'static str) -> Result<(), Errno> {
    of_all_threads(op);
    let fault = STATE.with_borrow_mut(|state| {
        state.calls.push(op);
        let nth = state.counts.entry(op).or_default();
        *nth += 1;
        if let Some((errno, left)) = state.failing.take() {
            state.failing = (left > 1).then_some((errno, left - 1));
            return Some(Fault::Errno(errno));
        }
        let is_now = |armed: &mut (Point, Fault)| armed.0.call == op && armed.0.nth == *nth;
        let now: Vec<_> = state.armed.extract_if(.., is_now).collect();
        let (_, fault) = now.into_iter().next()?;
        state.at = Some(state.calls.len() - 1);
        if state.armed.is_empty()
            && let Some(then) = state.then.take()
        {
            *state = State {
                armed: vec![then],
                ..State::default()
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
static THREADS: Mutex<Option<(Point, Vec<&'static str>)>> = Mutex::new(None);

/// Kills the process at a call, whichever thread makes it.
pub fn arm_threads(at: Point) {
    bc_fs::call::arm(point);
    *THREADS.lock().unwrap() = Some((at, Vec::new()));
}

/// Disarms that; returns the calls of all threads.
pub fn disarm_threads() -> Vec<&'static str> {
    let armed = THREADS.lock().unwrap().take();
    armed.map(|(_, calls)| calls).unwrap_or_default()
}

fn of_all_threads(op: &'static str) {
    let mut armed = THREADS.lock().unwrap();
    let Some((point, calls)) = armed.as_mut() else {
        return;
    };
    calls.push(op);
    if point.call == op && point.nth > 0 {
        point.nth -= 1;
        if point.nth == 0 {
            die();
        }
    }
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    unreachable!("killed")
}
