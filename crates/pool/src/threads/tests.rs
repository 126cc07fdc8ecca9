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
fn nobody_is_no_number_of_workers() {
    for effort in [Effort::default(), Effort::of(u64::MAX, 0)] {
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
        assert_eq!(Start::Together.workers(9, Effort::default()), 9);
    }
    assert_eq!(Threads::Auto.start(), Start::AsItPays);
}
