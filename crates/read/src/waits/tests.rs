//! Questions that are asked, calls that are timed, and idle processors.

use super::*;

/// Returns the number of questions and that of negative answers, for `files` files whose
/// residency `is_resident` returns.
fn ask(asked: &mut CallHistory, files: u32, is_resident: impl Fn(u32) -> bool) -> (u32, u32) {
    let (mut questions, mut failed) = (0, 0);
    for file in 0..files {
        if !asked.is_due() {
            asked.pass();
            continue;
        }
        questions += 1;
        if is_resident(file) {
            asked.hit();
        } else {
            failed += 1;
            asked.miss();
        }
    }
    (questions, failed)
}

#[test]
fn what_is_cold_is_seldom_asked() {
    let residency = Residency::default();
    let (_, failed) = ask(&mut residency.asked(Call::Read), 1_000, |_| false);
    assert!((2..=5).contains(&failed), "{failed}");
    // Other workers, and later passes, ask less at their beginning.
    let (_, failed) = ask(&mut residency.asked(Call::Read), 1_000, |_| false);
    assert!((1..=3).contains(&failed), "{failed}");
    // Names are known, or not, apart from contents.
    assert!(residency.asked(Call::Open).is_due());
}

#[test]
fn any_part_that_is_cold_costs_few_questions() {
    for one_of in [2, 3, 5, 10, 50] {
        let mut rng = bc_testkit::Rng::new(one_of);
        let resident: Vec<bool> = (0..100_000).map(|_| rng.below(one_of) == 0).collect();
        let mut asked = Residency::default().asked(Call::Read);
        let (_, failed) = ask(&mut asked, 100_000, |file| resident[file as usize]);
        assert!(failed <= 2_000, "1 of {one_of} resident: {failed}");
    }
}

#[test]
fn what_is_resident_is_asked_at_once_and_again_after_a_miss() {
    let residency = Residency::default();
    assert_eq!(
        ask(&mut residency.asked(Call::Read), 1_000, |_| true),
        (1_000, 0)
    );
    let mut asked = residency.asked(Call::Read);
    let (questions, failed) = ask(&mut asked, 1_000, |file| file % 100 != 0);
    assert_eq!(failed, 10);
    assert!(questions >= 900, "{questions}");
    ask(&mut asked, 10_000, |_| false);
    let (questions, _) = ask(&mut asked, 1_000, |_| true);
    assert!(questions > 400, "{questions}");
    // And so is it by a worker that knows of a cold disk.
    ask(&mut asked, 10_000, |_| false);
    let (questions, _) = ask(&mut residency.asked(Call::Read), 1_000, |_| true);
    assert!(questions > 900, "{questions}");
}

const FAST: Duration = Duration::from_micros(5);
const WAIT: Duration = Duration::from_millis(3);

#[test]
fn a_few_slow_opens_change_nothing() {
    let mut latency = Latency::default();
    for turn in 0..100 {
        assert!(!latency.queues());
        latency.note(if turn % 2 == 0 { WAIT } else { FAST });
    }
}

#[test]
fn slow_opens_are_queued_until_probes_are_fast() {
    let mut latency = Latency::default();
    for _ in 0..ENOUGH {
        assert!(!latency.queues());
        latency.note(WAIT);
    }
    let mut probes = 0;
    for _ in 0..160 {
        if !latency.queues() {
            probes += 1;
            latency.note(WAIT);
        }
    }
    assert_eq!(probes, 10);
    let mut probes = 0;
    while latency.score >= ENOUGH {
        if !latency.queues() {
            probes += 1;
            latency.note(FAST);
        }
    }
    assert_eq!(probes, 2, "one fast probe is not enough");
    assert!(!latency.queues());
}

#[test]
fn the_first_line_is_read() {
    let text = "cpu  100 2 30 400 50 6 7 8 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 5\n";
    let times = ProcessorTimes::parse(text);
    assert_eq!(
        times,
        Some(ProcessorTimes {
            idle: 450,
            all: 603
        })
    );
    let old = ProcessorTimes::parse("cpu 1 2 3 4\n");
    assert_eq!(old, Some(ProcessorTimes { idle: 4, all: 10 }));
    for bad in ["", "cpu\n", "cpu 1 2 3\n", "cpu0 1 2 3 4 5\n", "cpu a\n"] {
        assert_eq!(ProcessorTimes::parse(bad), None, "{bad:?}");
    }
}

#[test]
fn a_fifth_idle_is_idle() {
    let before = ProcessorTimes {
        idle: 100,
        all: 1000,
    };
    let after = |idle: u64, all: u64| {
        ProcessorTimes {
            idle: 100 + idle,
            all: 1000 + all,
        }
        .is_idle_since(before)
    };
    assert!(after(2, 8) && after(2, 10) && after(8, 8));
    assert!(!after(1, 8) && !after(0, 8) && !after(0, 0));
    assert!(
        !ProcessorTimes {
            idle: 90,
            all: 1010
        }
        .is_idle_since(before)
    );
}

#[test]
fn the_system_tells() {
    let text = std::fs::read_to_string("/proc/stat").expect("/proc is mounted");
    let times = ProcessorTimes::parse(&text).expect("a line of all processors");
    assert!(times.all > times.idle, "{times:?}");
    let mut idle = IdleProcessors::default();
    assert!(!idle.look() && idle.last.is_some());
    assert!(!idle.look(), "too early to tell");
}
