//! Conditions for more workers, and their number.

use std::cell::Cell;
use std::sync::Barrier;

use super::*;

const MS: Duration = Duration::from_millis(1);

/// Time at work, of which so much was running, for a file each millisecond.
fn reported(busy: u32, running: u32) -> BusyTime {
    BusyTime {
        busy: busy * MS,
        running: running * MS,
        work: busy.into(),
    }
}

/// Reports from workers, each a time at work and how much of it they ran, in milliseconds; returns
/// the number of workers after each report, where the system has threads for `limit` in all.
fn after_each(bounds: Workers, limit: usize, left: usize, reports: &[(u32, u32)]) -> Vec<usize> {
    let left = || left;
    let growth = Growth::new(bounds).left(&left, 1);
    let started = Cell::new(bounds.usual());
    let spawn = || {
        let may_start = started.get() < limit;
        started.set(started.get() + usize::from(may_start));
        may_start
    };
    let after = reports.iter().map(|&(busy, running)| {
        let changes = growth.changes.load(Ordering::Relaxed);
        growth.note(reported(busy, running), changes, &spawn);
        assert_eq!(growth.workers(), started.get());
        started.get()
    });
    after.collect()
}

#[test]
fn a_few_at_once_then_twice_as_many_and_more_where_they_only_wait() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let waited = [(1000, 300); 5];
    let (one, two) = (Workers::adaptive(1), Workers::adaptive(2));
    assert_eq!(after_each(one, 256, 256, &waited), [4, 8, 8, 16, 16]);
    assert_eq!(after_each(two, 256, 256, &waited), [8, 16, 16, 32, 32]);
    let only = [(1000, 100); 5];
    assert_eq!(after_each(two, 256, 256, &only), [8, 32, 64, 64, 128]);
    let eight = Workers::up_to(3, 8);
    assert_eq!(after_each(eight, 256, 256, &waited), [8, 8, 8, 8, 8]);
    let bound = Workers::from(3);
    assert_eq!(after_each(bound, 64, 64, &waited), [3; 5]);
}

#[test]
fn no_more_than_find_something_to_do() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let two = Workers::adaptive(2);
    assert_eq!(after_each(two, 64, 1, &[(1000, 0); 5]), [3, 3, 4, 4, 5]);
    assert_eq!(after_each(two, 64, 0, &[(1000, 0); 3]), [2, 2, 2]);
}

#[test]
fn a_refused_thread_is_not_asked_for_again() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let two = Workers::adaptive(2);
    assert_eq!(after_each(two, 3, 64, &[(1000, 0); 3]), [3, 3, 3]);
    let (calls, left) = (Cell::new(0), || 64);
    let growth = Growth::new(two).left(&left, 1);
    for _ in 0..3 {
        growth.note(reported(1000, 0), 0, &|| {
            calls.set(calls.get() + 1);
            false
        });
    }
    assert_eq!((calls.get(), growth.workers()), (1, 2));
}

#[test]
fn waiting_for_an_eighth_of_the_time_is_too_much() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let two = Workers::adaptive(2);
    assert_eq!(after_each(two, 64, 64, &[(1000, 875); 3]), [2, 2, 2]);
    assert_eq!(after_each(two, 64, 64, &[(1000, 874)]), [8]);
    // Wanting the CPU before there was anything to do is no more than running all the time.
    assert_eq!(
        after_each(two, 64, 64, &[(1000, 5000), (1000, 700)]),
        [2, 8]
    );
}

#[test]
fn a_decision_takes_two_windows_of_each_worker() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let two = Workers::adaptive(2);
    let first = [(2, 1), (2, 1), (2, 1), (2, 1)];
    assert_eq!(after_each(two, 64, 64, &first), [2, 2, 2, 8]);
    // Eight take twelve windows more, and what was before does not count any longer.
    let more = [(29, 0), (1, 0), (1, 0), (1, 0)];
    let waited = [&first[..], &more].concat();
    assert_eq!(after_each(two, 64, 64, &waited)[4..], [8, 8, 8, 32]);
}

#[test]
fn half_of_the_descriptors_are_for_others() {
    assert_eq!(affordable_below(None, 16), usize::MAX);
    assert_eq!(affordable_below(Some(1024), 16), 32);
    assert_eq!(affordable_below(Some(255), 16), 7);
    assert_eq!(affordable_below(Some(20), 16), 0);
}

/// Begins files, none of which takes any time; returns the numbers of files after which there were
/// more workers, with those numbers of workers.
fn growth(files: usize, bytes: u64, most: usize) -> Vec<(usize, usize)> {
    let begun = AtomicUsize::new(0);
    let left = || files - begun.load(Ordering::Relaxed);
    let seen = Mutex::new(Vec::new());
    let changed = |workers| {
        let begun = begun.load(Ordering::Relaxed);
        seen.lock().unwrap().push((begun, workers));
    };
    let growth = Growth::new(most).first(1).left(&left, 1).changed(&changed);
    let mut worker = growth.alone(&|| true);
    for _ in 0..files {
        begun.fetch_add(1, Ordering::Relaxed);
        worker.begin(bytes);
    }
    drop(worker);
    seen.into_inner().unwrap()
}

#[test]
fn a_handful_of_small_files_is_read_by_one() {
    for files in 0..40 {
        assert_eq!(growth(files, 4000, 64), []);
    }
    assert_eq!(growth(1, 1 << 40, 64), [], "nothing is left for another");
}

#[test]
fn large_files_call_for_others_when_they_are_opened() {
    assert_eq!(growth(6, 200_000_000, 64)[0].0, 1);
    assert_eq!(growth(6, 200_000_000, 6)[0], (1, 6));
    assert_eq!(growth(60, 20_000_000, 16)[0], (1, 16));
    assert_eq!(growth(1000, 1_000_000, 16)[0], (1, 16));
    assert_eq!(growth(3000, 300_000, 2)[0], (3, 2));
}

#[test]
fn many_small_files_call_for_others_by_their_number() {
    let (after, workers) = growth(20_000, 4000, 64)[0];
    assert!(after <= 32 && workers > 16, "{workers} after {after}");
}

#[test]
fn who_joins_takes_part() {
    let left = || 1000;
    let growth = Growth::new(5).first(1).left(&left, 1);
    // The number of one that ends is given to another who joins later.
    let all = Barrier::new(5);
    let ran = growth.run(|mut worker| {
        worker.begin(1 << 40);
        all.wait();
        worker.number()
    });
    assert_eq!(ran.unwrap(), [0, 1, 2, 3, 4]);
}

/// A thread by itself, with files of which the first calls for others: the number of those that it
/// gets.
fn begun_alone(growth: &Growth<'_>, limit: usize) -> usize {
    let started = Cell::new(0);
    let spawn = || {
        let may_start = started.get() < limit;
        started.set(started.get() + usize::from(may_start));
        may_start
    };
    growth.alone(&spawn).begin(1 << 40);
    started.get()
}

#[test]
fn a_named_number_is_kept_and_a_refusal_accepted() {
    let left = || 1000;
    let named = Growth::new(2).left(&left, 1);
    assert_eq!((begun_alone(&named, 64), named.workers()), (0, 2));
    let refused = Growth::new(64).first(1).left(&left, 1);
    assert_eq!((begun_alone(&refused, 2), refused.workers()), (2, 3));
}

/// Checks that the two reasons count the same workers.
#[test]
fn who_joined_for_waiting_is_not_paid_for_again() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let left = || 1000;
    let growth = Growth::new(Workers::up_to(4, 8)).first(1).left(&left, 1);
    for (changes, workers) in [(0, 2), (1, 4), (2, 8)] {
        growth.note(reported(1000, 300), changes, &|| true);
        assert_eq!(growth.workers(), workers);
    }
    assert_eq!((begun_alone(&growth, 64), growth.workers()), (0, 8));
}

#[test]
fn a_first_number_is_within_bounds() {
    let first = |bounds: Workers, first| {
        let growth = Growth::new(bounds).first(first);
        growth.run(|worker| worker.number()).unwrap()
    };
    assert_eq!(first(Workers::from(3), 0), [0]);
    assert_eq!(first(Workers::from(3), 2), [0, 1]);
    assert_eq!(first(Workers::up_to(2, 8), 9), [0, 1]);
}

/// Notes a second in which hardly anything ran and so much was done; returns the number of workers
/// after it.
fn after_work(growth: &Growth<'_>, work: u64) -> usize {
    let changes = growth.changes.load(Ordering::Relaxed);
    let time = BusyTime {
        work,
        ..reported(1000, 10)
    };
    growth.note(time, changes, &|| true);
    growth.workers()
}

/// A run whose workers wait one for the other: those that brought nothing end, and the others finish.
#[test]
fn who_is_no_help_ends() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let left = || 1000;
    let growth = Growth::new(Workers::up_to(1, 8)).left(&left, 1);
    let after = |work| after_work(&growth, work);
    let handle = |number| WorkerHandle::new(&growth, number, &|| false);
    assert_eq!([1000, 1000, 500, 500].map(after), [4, 8, 8, 4]);
    // As long as the others are still at work, that is no measure of four.
    assert_eq!([1000, 9000].map(after), [4, 4]);
    assert!(!handle(0).ends(), "the caller's own thread");
    assert!((1..=3).all(|number| handle(number).ends()));
    let before = growth.changes.load(Ordering::Relaxed);
    assert!(handle(4).ends() && !handle(5).ends());
    growth.note(reported(9000, 10), before, &|| true);
    assert_eq!(growth.workers(), 4, "begun beside the last that ended");
    assert_eq!(after(780), 4);
    assert_eq!(growth.surplus.load(Ordering::Relaxed), 0);
}

/// Checks that the number falls to the usual at once where most of the workers need no help, and that
/// what a trial has shown before does not count where they wait again.
#[test]
fn where_others_are_no_help_they_end_at_once() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let left = || 1000;
    let growth = Growth::new(Workers::up_to(1, 8)).left(&left, 1);
    let after = |work| after_work(&growth, work);
    let handle = |number| WorkerHandle::new(&growth, number, &|| false);
    assert_eq!([1000, 1000, 500, 500].map(after), [4, 8, 8, 4]);
    assert!((1..=4).all(|number| handle(number).ends()));
    assert_eq!([780, 780].map(after), [4, 4], "a pause after the trial");
    let mut handles = [0, 1, 2, 3].map(handle);
    for handle in &mut handles[..2] {
        handle.waiting(Waiting::NoHelp);
        handle.waiting(Waiting::NoHelp);
    }
    handles[0].waiting(Waiting::Begins);
    handles[2].waiting(Waiting::NoHelp);
    assert_eq!(growth.workers(), 4, "two wait");
    handles[3].waiting(Waiting::NoHelp);
    assert_eq!(growth.workers(), 1);
    assert!(handles[1..].iter_mut().all(WorkerHandle::ends));
    assert_eq!(growth.surplus.load(Ordering::Relaxed), 0);
    handles[0].waiting(Waiting::NoHelp);
    assert_eq!(growth.workers(), 1, "the usual number");
    assert_eq!(after(1000), 4, "a new search");
}

#[test]
fn who_is_to_end_measures_nothing() {
    let growth = Growth::new(Workers::up_to(2, 8));
    growth.grow(8, &|| true);
    growth.shrink(4);
    let mut handle = WorkerHandle::new(&growth, 1, &|| false);
    assert!(handle.may_grow());
    assert!(handle.ends() && !handle.may_grow());
}

/// Checks that work is counted only with the time that it took: files that take more than one call are
/// not timed.
#[test]
fn work_of_unknown_time_is_no_measure() {
    let left = || 1000;
    let metering = Metering {
        window: Duration::ZERO,
        pretend: Some(Box::new(|busy| busy)),
    };
    let growth = Growth::new(Workers::up_to(2, 8)).left(&left, 1);
    let growth = growth.metering(&metering);
    // More than usual: these measure until each may have finished something.
    growth.grow(3, &|| true);
    let mut handle = growth.alone(&|| false);
    handle.begin(300 << 20);
    handle.waiting(Waiting::Begins);
    handle.begin(1000);
    handle.waiting(Waiting::GoesOn);
    assert_eq!(growth.lock().sum.work, 1);
}

#[test]
fn who_was_to_end_is_asked_to_stay_before_another_is_started() {
    let reported = Mutex::new(Vec::new());
    let changed = |workers| reported.lock().unwrap().push(workers);
    let growth = Growth::new(Workers::up_to(2, 8)).changed(&changed);
    // Those that come first must not take what is the others' share.
    let is_said_before = || reported.lock().unwrap().as_slice() == [8];
    assert!(growth.grow(8, &is_said_before));
    growth.shrink(4);
    assert!(growth.grow(7, &|| unreachable!()));
    assert_eq!(growth.surplus.load(Ordering::Relaxed), 1);
    assert!(
        !growth.grow(9, &|| false),
        "one stays, the other is refused"
    );
    assert_eq!(
        (growth.workers(), growth.surplus.load(Ordering::Relaxed)),
        (8, 0)
    );
    assert_eq!(*reported.lock().unwrap(), [8, 8, 4, 7, 7, 9, 8]);
}

#[test]
fn a_run_begins_with_the_workers_of_the_one_before() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let last = LastRun::default();
    let begun = |bounds: Workers, files: usize| {
        let left = || files;
        let growth = Growth::new(bounds).first(1).left(&left, 8).after(&last);
        let all = growth.run(|worker| worker.workers()).unwrap();
        all[0]
    };
    let (two, four) = (Workers::adaptive(2), Workers::from(4));
    assert_eq!(begun(two, 10_000), 1);
    last.workers.store(32, Ordering::Relaxed);
    assert_eq!([begun(two, 10_000), begun(four, 10_000)], [32, 1]);
    assert_eq!(
        [begun(two, 40), begun(two, 7)],
        [7, 1],
        "as many as have work"
    );
    last.is_slow.store(true, Ordering::Relaxed);
    assert_eq!(
        [begun(two, 10_000), begun(two, 7)],
        [32, 9],
        "each file is worth a worker where it waits long"
    );
    // What is measured counts for the next.
    let left = || 10_000;
    let growth = Growth::new(two).left(&left, 8).after(&last);
    growth.note(reported(1000, 990), 0, &|| unreachable!());
    assert_eq!(last.workers.load(Ordering::Relaxed), 2);
    assert_eq!(begun(two, 10_000), 1);
}

/// Checks that workers that the system has refused are not counted: to have as many end would leave
/// the caller's own thread alone.
#[test]
fn a_run_counts_the_workers_that_it_got() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let last = LastRun::default();
    last.workers.store(32, Ordering::Relaxed);
    let left = || 10_000;
    let growth = Growth::new(2).left(&left, 8).after(&last);
    growth.join_as_before(&|| unreachable!("a bound that is kept"));
    let started = Cell::new(0);
    let spawn = || {
        started.set(started.get() + 1);
        started.get() <= 3
    };
    let growth = Growth::new(Workers::adaptive(2)).left(&left, 8);
    let growth = growth.after(&last);
    growth.join_as_before(&spawn);
    assert_eq!(
        (growth.workers(), last.workers.load(Ordering::Relaxed)),
        (5, 5)
    );
    growth.note(reported(1000, 990), 1, &|| unreachable!("refused before"));
    assert_eq!(growth.workers(), 5);
    // What a trial gets counts, too.
    started.set(0);
    let growth = Growth::new(Workers::adaptive(2)).left(&left, 8);
    let growth = growth.after(&last);
    growth.note(reported(1000, 0), 0, &spawn);
    assert_eq!(
        (growth.workers(), last.workers.load(Ordering::Relaxed)),
        (5, 5)
    );
}

#[test]
fn a_few_that_finish_nothing_call_for_others_and_many_do_not() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let left = || 1000;
    let growth = Growth::new(Workers::adaptive(2)).left(&left, 1);
    let nothing = BusyTime {
        work: 0,
        ..reported(1000, 0)
    };
    growth.note(nothing, 0, &|| true);
    assert_eq!(growth.workers(), 32);
    growth.note(nothing, 1, &|| unreachable!());
    assert_eq!(growth.workers(), 32);
}

/// Checks that what reads on in a directory, and finishes nothing, is not counted as if it did.
#[test]
fn time_without_finished_work_counts_as_time_alone() {
    let left = || 1000;
    let metering = Metering {
        window: Duration::ZERO,
        pretend: Some(Box::new(|busy| busy)),
    };
    let growth = Growth::new(Workers::up_to(2, 8)).left(&left, 1);
    let growth = growth.metering(&metering);
    // More than usual: these measure until each may have finished something.
    growth.grow(3, &|| true);
    let mut handle = growth.alone(&|| false);
    handle.waiting(Waiting::Begins);
    for _ in 0..3 {
        handle.waiting(Waiting::GoesOn);
    }
    let measured = growth.lock();
    assert!(measured.sum.busy > Duration::ZERO);
    assert_eq!(measured.sum.work, 0);
}

#[test]
fn a_report_from_before_a_change_is_no_measure() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let left = || 1000;
    let growth = Growth::new(Workers::adaptive(2)).left(&left, 1);
    growth.note(reported(1000, 0), 0, &|| true);
    assert_eq!(growth.workers(), 8);
    growth.note(reported(9000, 0), 0, &|| unreachable!());
    assert_eq!(growth.workers(), 8);
}
