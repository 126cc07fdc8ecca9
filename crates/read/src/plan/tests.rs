//! Batches, and the plan shared out among workers whose time is simulated, against the best that a
//! slow model finds.

use super::*;

#[test]
fn every_entry_is_handed_out_once() {
    let plan = Plan::new((0..10_007).map(EntryId).collect(), 3);
    let mut seen: Vec<u32> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    while let Some(batch) = plan.next() {
                        assert!(!batch.is_empty());
                        mine.extend(batch.iter().map(|id| id.0));
                    }
                    mine
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    seen.sort_unstable();
    assert_eq!(seen, (0..10_007).collect::<Vec<_>>());
}

#[test]
fn batches_shrink_to_single_entries() {
    let plan = Plan::new((0..1000).map(EntryId).collect(), 2);
    let sizes: Vec<usize> = std::iter::from_fn(|| plan.next().map(<[_]>::len)).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 1000);
    assert!(sizes.windows(2).all(|pair| pair[0] >= pair[1]));
    assert_eq!(sizes.last(), Some(&1));
    assert!(Plan::new(Vec::new(), 2).next().is_none());
}

#[test]
fn what_is_given_back_is_handed_out_again() {
    let plan = Plan::new((0..1000).map(EntryId).collect(), 2);
    let first = plan.next().unwrap();
    let (kept, rest) = first.split_at(5);
    let before = plan.left();
    plan.give_back(rest);
    plan.give_back(&[]);
    assert_eq!(plan.left(), before + rest.len());
    let mut left = plan.left_entries();
    let mut seen: Vec<EntryId> = std::iter::from_fn(|| plan.next())
        .flatten()
        .copied()
        .collect();
    assert_eq!(seen[..rest.len()], *rest, "first, in their order");
    left.sort_unstable();
    seen.sort_unstable();
    assert_eq!(left, seen);
    seen.extend(kept);
    seen.sort_unstable();
    assert_eq!(seen, (0..1000).map(EntryId).collect::<Vec<_>>());
    assert_eq!((plan.left(), plan.left_entries()), (0, Vec::new()));
}

/// Checks that the entries that one worker leaves of a batch of long files are taken by
/// another.
#[test]
fn a_heavy_batch_is_cut() {
    let plan = Plan::new((0..1000).map(EntryId).collect(), 2);
    let (mut one, mut other) = (Hand::new(&plan), Hand::new(&plan));
    assert_eq!(one.next(), Some(EntryId(0)));
    one.begin(HEAVY - 1, Length::Long);
    assert_eq!(one.next(), Some(EntryId(1)));
    one.begin(1, Length::Short);
    assert_eq!(other.next(), Some(EntryId(2)));
}

/// Checks that the count of long files, which all workers write, stays as it is from file to file
/// until few are left, and is exact then.
#[test]
fn long_files_are_counted_once_few_are_left() {
    let plan = Plan::new((0..100).map(EntryId).collect(), 2);
    let (mut one, mut other) = (Hand::new(&plan), Hand::new(&plan));
    let begin = |hand: &mut Hand<'_>| {
        assert!(hand.may_begin(10));
        hand.next().unwrap();
        hand.begin(LONG, Length::Long);
        (plan.long(), plan.left())
    };
    assert_eq!(begin(&mut one), (1, 88));
    assert_eq!(begin(&mut one), (2, 88));
    for _ in 0..5 {
        one.end(Length::Long);
        assert_eq!(plan.long(), 2);
        assert_eq!(begin(&mut one), (2, 88));
    }
    assert_eq!(begin(&mut other), (3, 77));
    (0..2).for_each(|_| one.end(Length::Long));
    other.end(Length::Long);
    assert!(other.may_leave());
    assert_eq!(plan.long(), 2, "one that ends leaves none behind");
    while plan.left() >= 40 {
        plan.next();
    }
    assert!(one.may_begin(10));
    assert_eq!(plan.long(), 0);
    assert_eq!(begin(&mut one).0, 1);
    one.end(Length::Long);
    assert_eq!(plan.long(), 0);
}

#[test]
fn a_batch_is_shared_with_those_that_join() {
    let plan = Plan::new((0..1000).map(EntryId).collect(), 2);
    let mut hand = Hand::new(&plan);
    assert_eq!(hand.next(), Some(EntryId(0)));
    assert_eq!(hand.batch.len(), 124);
    plan.set_workers(50);
    hand.share_with_joined();
    assert_eq!(hand.batch.len(), 4);
    let mut other = Hand::new(&plan);
    assert_eq!(other.next(), Some(EntryId(5)));
    assert_eq!(other.batch.len(), 3);
    // They have ended again.
    plan.set_workers(2);
    let mut third = Hand::new(&plan);
    third.next();
    assert!(third.batch.len() > 10, "{}", third.batch.len());
}

#[test]
fn workers_are_joined_by_those_beyond_the_usual_number() {
    let plan = Plan::new((0..1000).map(EntryId).collect(), 2);
    let hand = Hand::new(&plan);
    assert!(!hand.is_joined(), "no number is usual");
    plan.set_usual(2);
    let joined = [1, 2, 3, 2].map(|workers| {
        plan.set_workers(workers);
        hand.is_joined()
    });
    assert_eq!(joined, [false, false, true, false]);
}

/// Checks that what a worker gives back is never left to workers that have ended already.
#[test]
fn who_ends_early_leaves_nothing_behind() {
    let plan = Plan::new((0..100).map(EntryId).collect(), 1);
    let (mut one, mut other) = (Hand::new(&plan), Hand::new(&plan));
    assert_eq!(one.next(), Some(EntryId(0)));
    assert!(one.may_leave(), "others come back for the rest");
    assert_eq!((one.batch.len(), plan.left()), (0, 99));
    while plan.cursor.remaining() > 0 {
        other.batch = &[];
        other.next();
    }
    assert!(!other.may_leave(), "others may be gone");
}

/// Nanoseconds to open a file, read a slot's worth and close it.
const OPEN: f64 = 4000.0;

/// Speed of one worker with so many messages in hand, in bytes per nanosecond.
struct Speed {
    name: &'static str,
    /// Messages hashed at the same time at most; a quarter more are in hand.
    lanes: usize,
    rate: fn(usize) -> f64,
}

/// Measured with SHA-256 on a Zen 5 core; single streams alone hold for XXH3 and BLAKE3.
const SPEEDS: [Speed; 4] = [
    Speed {
        name: "SHA-NI and AVX-512",
        lanes: 16,
        rate: |live| match live {
            0 | 1 => 2.0,
            2..8 => 3.2,
            _ => 7.2 * live.min(16) as f64 / 16.0,
        },
    },
    Speed {
        name: "SHA-NI",
        lanes: 4,
        rate: |live| match live {
            0 | 1 => 2.0,
            2 | 3 => 3.2,
            _ => 3.6,
        },
    },
    Speed {
        name: "AVX2",
        lanes: 8,
        rate: |live| match live {
            0..3 => 0.72,
            _ => 2.0 * live.min(8) as f64 / 8.0,
        },
    },
    Speed {
        name: "single stream",
        lanes: 1,
        rate: |_| 8.0,
    },
];

impl Speed {
    fn width(&self) -> usize {
        match self.lanes {
            1 => 1,
            lanes => lanes + lanes.div_ceil(4),
        }
    }
}

/// A worker, up to the next end of one of its messages.
struct Worker<'p> {
    hand: Hand<'p>,
    clock: f64,
    /// Bytes left and length, of each message in hand.
    messages: Vec<(f64, Length)>,
    done: bool,
}

/// Returns the time until all files are hashed, in nanoseconds.
fn simulate(sizes: &[u64], workers: usize, speed: &Speed) -> f64 {
    let plan = Plan::new((0..sizes.len() as u32).map(EntryId).collect(), workers);
    let mut all: Vec<Worker<'_>> = (0..workers)
        .map(|_| Worker {
            hand: Hand::new(&plan),
            clock: 0.0,
            messages: Vec::new(),
            done: false,
        })
        .collect();
    let mut seen = 0;
    while let Some(worker) = all
        .iter_mut()
        .filter(|worker| !worker.done)
        .min_by(|a, b| a.clock.total_cmp(&b.clock))
    {
        worker.messages.retain(|&(left, length)| {
            if left <= 0.5 {
                worker.hand.end(length);
            }
            left > 0.5
        });
        let width = speed.width();
        while (worker.messages.len() < width || worker.hand.long() >= width)
            && worker.messages.len() < 2 * width
            && worker.hand.may_begin(width)
        {
            let Some(entry) = worker.hand.next() else {
                break;
            };
            let size = sizes[entry.0 as usize];
            let length = Length::of(size);
            worker.hand.begin(size, length);
            worker.messages.push((size as f64, length));
            worker.clock += OPEN;
            seen += 1;
        }
        let live = worker.messages.len();
        let shortest = worker.messages.iter().map(|m| m.0).fold(f64::MAX, f64::min);
        if live == 0 {
            worker.done = true;
            continue;
        }
        worker.clock += shortest * live as f64 / (speed.rate)(live);
        for message in &mut worker.messages {
            message.0 -= shortest;
        }
    }
    assert_eq!(seen, sizes.len(), "each file once");
    assert_eq!(plan.long(), 0);
    all.iter().map(|worker| worker.clock).fold(0.0, f64::max)
}

/// Returns the best time for `count` files of one size: that of the worker with the most of them,
/// in the rounds that are the fastest for that number.
fn best(count: usize, size: u64, workers: usize, speed: &Speed) -> f64 {
    let most = count.div_ceil(workers);
    let mut times = vec![0.0];
    for mine in 1..=most {
        let time = |live: usize| {
            let one = size as f64 * live as f64 / (speed.rate)(live);
            live as f64 * OPEN + one + times[mine - live]
        };
        let least = (1..=mine.min(64)).map(time).fold(f64::MAX, f64::min);
        times.push(least);
    }
    times[most]
}

const SHAPES: [(usize, u64); 9] = [
    (6, 200_000_000),
    (60, 20_000_000),
    (70, 20_000_000),
    (400, 4_000_000),
    (1000, 1_000_000),
    (3000, 300_000),
    (5000, 60_000),
    (20_000, 16_000),
    (60_000, 1000),
];

#[test]
fn every_shape_ends_within_five_percent_of_the_best() {
    let mut late = Vec::new();
    for speed in &SPEEDS {
        for workers in [1, 2, 4, 16, 64] {
            for (count, size) in SHAPES {
                let sizes = vec![size; count];
                let ratio = simulate(&sizes, workers, speed) / best(count, size, workers, speed);
                if ratio > 1.05 {
                    late.push(format!("{}, {workers} x {count}: {ratio:.3}", speed.name));
                }
            }
        }
    }
    assert!(late.is_empty(), "{late:#?}");
}

/// Checks a directory of videos in a tree of small files. Put first, they are shared out as if
/// there were nothing else. Where the sizes are unknown, a worker that meets the first of them
/// cannot know that they are all there are, and fills its lanes.
#[test]
fn a_nest_of_long_files_is_shared() {
    for speed in &SPEEDS {
        for workers in [2, 4, 16] {
            for at in [0, 5000, 8000] {
                let mut sizes = vec![10_000; 10_000];
                sizes[at..at + 160].fill(50_000_000);
                let total: u64 = sizes.iter().sum();
                let busy = 160 / workers;
                let share = total as f64 / workers as f64;
                let opens = sizes.len() as f64 * OPEN / workers as f64;
                let least = share / (speed.rate)(busy.min(speed.lanes)) + opens;
                let ratio = simulate(&sizes, workers, speed) / least;
                let bound = if at == 0 && workers <= 4 { 1.05 } else { 2.0 };
                assert!(
                    ratio <= bound,
                    "{}, {workers} at {at}: {ratio:.3}",
                    speed.name
                );
            }
        }
    }
}

#[test]
fn nobody_takes_more_than_a_share() {
    assert_eq!([1, 2, 6, 60].map(|all| at_once(all, 2, 20)), [1, 1, 3, 30]);
    assert_eq!([39, 40, 41].map(|all| at_once(all, 1, 20)), [39, 20, 21]);
    assert_eq!(
        at_once(1000, 64, 5),
        8,
        "two rounds of 8 rather than three of 6"
    );
    assert_eq!([0, 1, 2, 7].map(|all| at_once(all, 2, 1)), [1, 1, 1, 1]);
    assert_eq!(at_once(0, 0, 0), 1);
    for all in 1..500 {
        for width in 1..40 {
            assert!((1..2 * width).contains(&at_once(all, 1, width)));
        }
    }
}
