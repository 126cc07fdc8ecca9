//! Conditions for more workers, and their number.

use super::*;
use crate::run_growing;

const MS: Duration = Duration::from_millis(1);

/// Reports from workers, with two threads' work, each a time at work and how much of it they ran,
/// in milliseconds; returns the number of workers after each report.
fn after_each(
    workers: Workers,
    limit: usize,
    waiting: usize,
    reports: &[(u32, u32)],
) -> Vec<usize> {
    let waiting = || waiting;
    let pace = Pace::default();
    let adaptive = AdaptiveWorkers::new(workers, &pace, &waiting);
    let counts = run_growing(workers.usual(), limit, |worker, spawner| {
        let mut counts = Vec::new();
        if worker == 0 {
            for &(busy, running) in reports {
                let (busy, running) = (busy * MS, running * MS);
                adaptive.note(Spent { busy, running }, &|| spawner.spawn());
                counts.push(adaptive.state.lock().unwrap().workers);
            }
        }
        counts
    })
    .unwrap();
    assert_eq!(counts.len(), counts[0].last().copied().unwrap());
    counts.into_iter().next().unwrap()
}

#[test]
fn twice_as_many_each_time_up_to_eight() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let waited = [(1000, 300); 5];
    let (one, two) = (Workers::adaptive(1), Workers::adaptive(2));
    assert_eq!(after_each(one, 64, 64, &waited), [2, 4, 8, 8, 8]);
    assert_eq!(after_each(two, 64, 64, &waited), [4, 8, 8, 8, 8]);
    let three = Workers::adaptive(3);
    assert_eq!(after_each(three, 64, 64, &waited), [6, 8, 8, 8, 8]);
    let bound = Workers::from(3);
    assert_eq!(after_each(bound, 64, 64, &waited), [3; 5]);
}

#[test]
fn no_more_than_find_something_to_do() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let two = Workers::adaptive(2);
    assert_eq!(after_each(two, 64, 1, &[(1000, 0); 3]), [3, 4, 5]);
    assert_eq!(after_each(two, 64, 0, &[(1000, 0); 3]), [2, 2, 2]);
}

#[test]
fn a_refused_thread_is_not_asked_for_again() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let two = Workers::adaptive(2);
    assert_eq!(after_each(two, 3, 64, &[(1000, 0); 3]), [3, 3, 3]);
}

#[test]
fn waiting_for_an_eighth_of_the_time_is_too_much() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let two = Workers::adaptive(2);
    assert_eq!(after_each(two, 64, 64, &[(1000, 875); 3]), [2, 2, 2]);
    assert_eq!(after_each(two, 64, 64, &[(1000, 874)]), [4]);
    // Wanting the CPU before there was anything to do is no more than running all the time.
    assert_eq!(
        after_each(two, 64, 64, &[(1000, 5000), (1000, 700)]),
        [2, 4]
    );
}

#[test]
fn a_decision_takes_two_windows_of_each_worker() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let two = Workers::adaptive(2);
    let first = [(2, 0), (2, 0), (2, 0), (2, 0)];
    assert_eq!(after_each(two, 64, 64, &first), [2, 2, 2, 4]);
    // Four take four windows more, and what was before does not count any longer.
    let waited = [&first[..], &[(14, 14), (1, 0), (1, 0)]].concat();
    assert_eq!(after_each(two, 64, 64, &waited)[4..], [4, 4, 4]);
    let waited = [&first[..], &[(13, 13), (1, 0), (1, 0), (1, 0)]].concat();
    assert_eq!(after_each(two, 64, 64, &waited)[4..], [4, 4, 4, 8]);
}

#[test]
fn half_of_the_descriptors_are_for_others() {
    assert_eq!(affordable_below(None, 16), usize::MAX);
    assert_eq!(affordable_below(Some(1024), 16), 32);
    assert_eq!(affordable_below(Some(255), 16), 7);
    assert_eq!(affordable_below(Some(20), 16), 0);
}
