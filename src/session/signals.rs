//! Signals that end a run, and the one that did.
//!
//! The first signal sets a flag, which all work obeys between two calls; a second one ends the
//! process at once. A thread watches over the end: where a call never returns, no work can obey.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, LazyLock, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bc_pool::Cancel;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::calls::{CallWatch, LongCall};

/// The flag that signals set, for code that waits without a session.
static CANCEL: OnceLock<Cancel> = OnceLock::new();

/// Set once the next signal is to end the process at once.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Handlers that set it with the first signal, until the thread that watches does so a little later:
/// `timeout` sends its signal twice in a row, and means one.
static AT_FIRST: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

/// Takes the status line off, and prints the last message, if there is one. Given by who handles
/// signals, for messages go through files, which ask for the signal.
static LAST_WORDS: OnceLock<fn(Option<String>)> = OnceLock::new();

/// Waits that a signal may end at once, as nothing would be lost.
static IDLE: IdleWaits = IdleWaits {
    entered: AtomicU64::new(0),
    inside: AtomicUsize::new(0),
};

/// Time between two looks of the thread that watches.
const EVERY: Duration = Duration::from_millis(50);
/// Time that calls in progress get after the first signal, and that a call has to have waited since.
const GRACE: Duration = Duration::from_millis(1500);
/// Time that the last message may take, which has to wait where nobody reads stderr. A busy machine
/// needs more than 0.2 s for two writes.
const LAST: Duration = Duration::from_secs(2);

/// Bytes of a thread's stack here: limits of memory count all of it, and it is no work's.
const STACK: usize = 128 << 10;

struct IdleWaits {
    entered: AtomicU64,
    inside: AtomicUsize,
}

impl IdleWaits {
    /// Returns the number of the present wait; `None` outside of any.
    fn present(&self) -> Option<u64> {
        let entered = self.entered.load(Ordering::SeqCst);
        (self.inside.load(Ordering::SeqCst) > 0).then_some(entered)
    }
}

/// Returns the flag that signals set once they are [`heeded`].
pub fn flag() -> Cancel {
    CANCEL.get_or_init(Cancel::new).clone()
}

/// Returns the signal that asked for the end of the run, if one did.
pub fn interrupted() -> Option<i32> {
    behind(CANCEL.get()?)
}

/// Returns the signal that set this flag, if one did.
pub fn behind(cancel: &Cancel) -> Option<i32> {
    cancel.reason().map(|signal| signal as i32)
}

/// Handles signals from now on: the first one sets the flag, the second one ends the process. One
/// that ends it while a call never returns has `last_words` printed.
///
/// # Errors
/// A signal that cannot be handled, and the reason.
pub fn handle(last_words: fn(Option<String>)) -> Result<(), (i32, std::io::Error)> {
    let _ = LAST_WORDS.set(last_words);
    for signal in heeded() {
        let at_once = Arc::clone(&AT_ONCE);
        let flag = flag().flag();
        // In this order: the first signal finds the flag not set.
        let handled = signal_hook::flag::register_conditional_default(signal, at_once)
            .and_then(|_| signal_hook::flag::register_usize(signal, flag, signal as usize))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&AT_ONCE)));
        let id = handled.map_err(|error| (signal, error))?;
        at_first().push(id);
    }
    Ok(())
}

fn at_first() -> std::sync::MutexGuard<'static, Vec<SigId>> {
    AT_FIRST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns SIGINT and SIGTERM, except those that the parent process has set to be ignored: a shell
/// does so for a job in the background, which Ctrl-C is not meant for.
pub fn heeded() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM]
        .into_iter()
        .filter(|signal| !bc_fs::streams::ignores_signal(*signal))
}

/// Runs `f`, during which a signal ends the process at once if it waits: nothing has a name yet that
/// would have to be removed.
pub fn idly<T>(f: impl FnOnce() -> T) -> T {
    struct Inside;
    impl Drop for Inside {
        fn drop(&mut self) {
            IDLE.inside.fetch_sub(1, Ordering::SeqCst);
        }
    }
    watch();
    IDLE.entered.fetch_add(1, Ordering::SeqCst);
    IDLE.inside.fetch_add(1, Ordering::SeqCst);
    let _inside = Inside;
    f()
}

/// Has a thread watch for signals from now on, which takes some 50 µs: for runs that change files, have
/// many to read, wait for input or show a status line. Without it the run ends as its calls do.
pub fn watch() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let thread = std::thread::Builder::new().name("signals".into());
        if thread.stack_size(STACK).spawn(watch_over_the_end).is_ok() {
            for id in at_first().drain(..) {
                signal_hook::low_level::unregister(id);
            }
        }
    });
}

fn watch_over_the_end() {
    let pending = PendingSignals::new();
    let mut looks = 0_u32;
    let signal = loop {
        if let Some(signal) = interrupted() {
            break signal;
        }
        std::thread::sleep(EVERY);
        looks += 1;
        if looks.is_multiple_of(4) {
            pending.take();
        }
    };
    let begun = Instant::now();
    let mut calls = CallWatch::default();
    let mut idle = IDLE.present();
    loop {
        calls.look(begun.elapsed());
        std::thread::sleep(EVERY);
        AT_ONCE.store(true, Ordering::SeqCst);
        pending.take();
        let (before, now) = (idle, IDLE.present());
        if now.is_some() && now == before {
            end(signal, None);
        }
        idle = now;
        if begun.elapsed() >= GRACE {
            let now = begun.elapsed();
            calls.look(now);
            if let Some(call) = calls.long_calls(now, GRACE).next() {
                end(signal, Some(&call));
            }
        }
    }
}

/// Signals to the process that no thread has taken: the kernel gives them to the first thread, and
/// if that waits in a call that only a fatal signal interrupts, to none.
struct PendingSignals(Option<File>);

impl PendingSignals {
    fn new() -> PendingSignals {
        PendingSignals(File::open("/proc/self/status").ok())
    }

    /// Takes a signal that ends the run, if one is pending.
    fn take(&self) {
        let mask = self.mask();
        if heeded().any(|signal| mask & 1 << (signal - 1) != 0) {
            // The kernel has a thread that starts another one look for signals first.
            let _ = std::thread::Builder::new().stack_size(STACK).spawn(|| ());
        }
    }

    fn mask(&self) -> u64 {
        let mut text = [0; 4096];
        let read = self.0.as_ref().map(|status| status.read_at(&mut text, 0));
        let text = &text[..read.and_then(Result::ok).unwrap_or(0)];
        let mut lines = text.split(|byte| *byte == b'\n');
        let shared = lines.find_map(|line| line.strip_prefix(b"ShdPnd:\t"));
        let shared = shared.and_then(|mask| std::str::from_utf8(mask).ok());
        shared.map_or(0, |mask| u64::from_str_radix(mask, 16).unwrap_or(0))
    }
}

/// Ends the process by the signal. Nothing on disk is touched: that might never return either, and
/// what is there is what a killed run leaves, to be resumed, or removed by the next one.
fn end(signal: i32, waits_for: Option<&LongCall>) {
    let text = waits_for.map(|call| {
        let (place, operation) = (call.place(), call.operation);
        format!("interrupted while waiting for {place} ({operation}), which is not waited for")
    });
    let (said, is_said) = channel::<()>();
    let say = move || {
        if let Some(last_words) = LAST_WORDS.get() {
            last_words(text);
        }
        drop(said);
    };
    // Another thread may hold stderr, and wait for it.
    let thread = std::thread::Builder::new().name("last words".into());
    if thread.stack_size(STACK).spawn(say).is_ok() {
        let _: Result<(), RecvTimeoutError> = is_said.recv_timeout(LAST);
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_an_idle_wait_comes_out() {
        let caught = std::panic::catch_unwind(|| idly(|| panic!("of a test")));
        assert!(caught.is_err());
        assert_eq!(IDLE.present(), None);
        let (first, second) = (idly(|| IDLE.present()), idly(|| IDLE.present()));
        assert!(first.is_some() && second.is_some() && first != second);
        assert_eq!(idly(|| 7), 7);
    }
}
