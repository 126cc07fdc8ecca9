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
    let calibration = Calibration::default();
    for (files, bytes) in [(0, 0), (1, 0), (10, 40_000), (50, 200_000)] {
        let job = Job {
            files,
            bytes: Some(bytes),
            throughput: None,
        };
        assert_eq!(
            best(&calibration, &job, 64),
            1,
            "{files} files, {bytes} bytes"
        );
    }
}

#[test]
fn large_jobs_take_all() {
    let calibration = Calibration::default();
    let many = Job {
        files: 86_629,
        bytes: Some(1_490_000_000),
        throughput: None,
    };
    assert_eq!(best(&calibration, &many, 2), 2);
    assert_eq!(best(&calibration, &many, 16), 16);
    let huge = Job {
        files: 2,
        bytes: Some(1 << 40),
        throughput: Some(1e9),
    };
    assert_eq!(best(&calibration, &huge, 64), 64);
}

#[test]
fn break_even_grows_smoothly() {
    let calibration = Calibration::default();
    let mut last = 1;
    for files in (0..20_000).step_by(50) {
        let job = Job {
            files,
            bytes: Some(files as u64 * 8192),
            throughput: None,
        };
        let now = best(&calibration, &job, 64);
        assert!(now >= last, "{files} files: {now} after {last}");
        last = now;
    }
    assert!(last > 2);
}

#[test]
fn slow_throughput_makes_threads_pay_sooner() {
    let calibration = Calibration::default();
    let job = |throughput| Job {
        files: 2,
        bytes: Some(1_000_000),
        throughput: Some(throughput),
    };
    assert_eq!(best(&calibration, &job(20e9), 8), 1);
    assert!(best(&calibration, &job(0.2e9), 8) > 1);
}

#[test]
fn nonsense_is_harmless() {
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        0.0,
        1e300,
        1e-300,
        f64::MIN_POSITIVE,
    ];
    for &per_file in &odd {
        for &thread_start in &odd {
            for &memory_bandwidth in &odd {
                let calibration = Calibration {
                    per_file,
                    thread_start,
                    memory_bandwidth,
                    ..Calibration::default()
                };
                for files in [0, 1, 1000, usize::MAX] {
                    for bytes in [None, Some(0), Some(u64::MAX)] {
                        for throughput in [None, Some(f64::NAN), Some(-0.0), Some(1e300)] {
                            let job = Job {
                                files,
                                bytes,
                                throughput,
                            };
                            assert!((1..=8).contains(&best(&calibration, &job, 8)));
                            let decided = workers_for(Threads::Auto, &calibration, &job);
                            assert!((1..=available_cpus()).contains(&decided));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn explicit_requests_are_honoured() {
    let calibration = Calibration::default();
    assert_eq!(workers(Threads::Mono, &calibration, usize::MAX, None), 1);
    assert_eq!(workers(Threads::Exactly(64), &calibration, 0, None), 64);
    assert_eq!(workers(Threads::Exactly(0), &calibration, 0, None), 1);
    assert_eq!(
        workers(Threads::Exactly(usize::MAX), &calibration, 0, None),
        1024
    );
    assert_eq!(
        workers(Threads::Io, &calibration, 0, None),
        available_cpus()
    );
    assert_eq!(
        workers(Threads::Compute, &calibration, 0, None),
        physical_cores()
    );
}
