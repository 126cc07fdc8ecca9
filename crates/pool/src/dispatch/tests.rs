//! The decision must be sensible for sensible numbers and harmless for all others.

use super::*;

#[test]
fn threads_parse_and_print() {
    for (text, threads) in [
        ("auto", Threads::Auto),
        ("mono", Threads::Mono),
        ("compute", Threads::Compute),
        ("io", Threads::Io),
        ("1", Threads::Exactly(1)),
        ("1024", Threads::Exactly(1024)),
    ] {
        assert_eq!(text.parse(), Ok(threads));
        assert_eq!(threads.to_string(), text);
    }
    assert_eq!("0".parse(), Ok(Threads::Mono));
    for wrong in [
        "",
        "Auto",
        "1025",
        "-1",
        "+4",
        "4 ",
        "1e2",
        "99999999999999999999",
        "four",
    ] {
        let error = wrong.parse::<Threads>().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{wrong:?} is none of auto")),
            "{error}"
        );
    }
}

#[test]
fn small_jobs_stay_on_one_thread() {
    for (files, bytes) in [(0, 0), (1, 0), (10, 40_000), (40, 200_000), (1, 1_000_000)] {
        let effort = Effort::of(files, bytes);
        assert_eq!(effort.worth(64), 1, "{files} files, {bytes} bytes");
    }
}

#[test]
fn large_jobs_take_all() {
    let tree = Effort::of(86_629, 1_490_000_000);
    assert_eq!([2, 16].map(|most| tree.worth(most)), [2, 16]);
    assert_eq!(Effort::of(2, 1 << 40).worth(64), 64);
    assert_eq!(
        Effort::of(u64::MAX, u64::MAX).worth(usize::MAX),
        MAX_WORKERS
    );
}

/// Compares the number with the sum that it is meant to minimise.
#[test]
fn no_other_number_is_over_sooner() {
    for starts in 0..1000 {
        let effort = Effort(starts * Effort::START.0);
        let time = |n: u64| (n - 1) * Effort::START.0 * n * n + effort.0 * n;
        // Compared as n times the time, to stay with whole numbers: a/n < b/m.
        let sooner = |n: u64, m: u64| time(n) * m * m < time(m) * n * n;
        let n = effort.worth(64) as u64;
        assert!((1..=64).all(|m| !sooner(m, n)), "{starts}: {n}");
        assert!((1..n).all(|m| sooner(n, m)), "{starts}: {n}");
    }
}

#[test]
fn nobody_is_no_number_of_workers() {
    for effort in [Effort(0), Effort::START, Effort(u64::MAX)] {
        assert_eq!(effort.worth(0), 1);
        assert_eq!(Start::AsItPays.workers(0, effort), 1);
        assert_eq!(Start::Together.workers(0, effort), 1);
    }
}

#[test]
fn explicit_requests_are_honoured() {
    assert_eq!(Threads::Mono.most(), 1);
    assert_eq!(Threads::Exactly(64).most(), 64);
    assert_eq!(Threads::Exactly(0).most(), 1);
    assert_eq!(Threads::Exactly(usize::MAX).most(), 1024);
    assert_eq!(Threads::Io.most(), available_cpus());
    assert_eq!(Threads::Compute.most(), physical_cores());
    for threads in [
        Threads::Mono,
        Threads::Io,
        Threads::Compute,
        Threads::Exactly(9),
    ] {
        assert_eq!(threads.start(), Start::Together);
        assert_eq!(Start::Together.workers(9, Effort(0)), 9);
    }
    assert_eq!(Threads::Auto.start(), Start::AsItPays);
}
