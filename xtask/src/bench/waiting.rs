//! Places where every call waits: a file system whose requests take 0.2, 2 or 10 ms each. The number
//! of calls in flight has to follow by itself: the automatic number of threads against the best of some
//! that are named, and against 64 processes side by side.
//!
//! All that do one job run in turn, round after round. Each finds nothing cached: bytes are asked for
//! with every open, and what the kernel may believe of names and attributes is out of date before the
//! next one starts. The first round counts for those only that are not run again, as they are hopeless.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bc_testkit::{Behaviour, FuseDisk, Rng, fuse_disk};

use super::record::{Row, Target};
use super::targets::{WAITING_PEER, WAITING_THREADS};
use super::{Bench, shapes};
use crate::median::median;

/// A file system, by the time that each request takes.
struct WaitingPlace {
    name: &'static str,
    latency: Duration,
    /// Files of its tree: so many that with the best number of threads every job but a look at
    /// metadata takes a second or two. In less than that a search for the number has no end, and
    /// what it costs no measure.
    files: u32,
}

/// Numbers of threads that are named.
const THREADS: &[u32] = &[1, 8, 32, 64, 128];

/// A number of threads with which the requests alone would take so long is not tried, if each file
/// has [`REQUESTS`]: it cannot be the best. Nor is the number for other programs that run alone.
const HOPELESS: Duration = Duration::from_secs(8);
const REQUESTS: u32 = 4;

/// A named number that took so many times as long as the best one in the first round is not run
/// again, nor is another program that took so many times as long as ours.
const NO_BEST: f64 = 1.4;
const NO_PEER: f64 = 2.0;

/// Rounds that count: at least so many, and more if the target is missed, while they take no longer
/// than this.
const ROUNDS: usize = 5;
const ROUNDS_AFTER_A_MISS: usize = 11;
const LONGEST: Duration = Duration::from_secs(40);

/// Time for which the kernel may believe names and attributes, in requests. Without any it asks for
/// the attributes of a file and of its directory before each call: seven requests for each file that
/// is read instead of one.
const BELIEVED: u32 = 25;

/// Time after which files that were laid are at rest: those written to a moment ago are read twice.
const REST: Duration = Duration::from_secs(5);

const PLACES: &[WaitingPlace] = &[
    WaitingPlace {
        name: "200 µs a request",
        latency: Duration::from_micros(200),
        files: 20_000,
    },
    WaitingPlace {
        name: "2 ms a request",
        latency: Duration::from_millis(2),
        files: 3_000,
    },
    WaitingPlace {
        name: "10 ms a request",
        latency: Duration::from_millis(10),
        files: 3_000,
    },
];

/// Place whose tree the programs copy that have one request in flight.
const SLOW_PEERS: Duration = Duration::from_millis(2);

const MANIFEST: &str = "$SCRATCH/waiting.manifest";

/// Work that bc and other programs do.
struct WaitingJob {
    name: &'static str,
    /// Command of ours, with a place for `--threads`.
    ours: String,
    /// Command before each run, which is not timed.
    prepare: Option<String>,
    peers: Vec<WaitingPeer>,
}

struct WaitingPeer {
    tool: &'static str,
    command: String,
    prepare: Option<String>,
    target: Option<Target>,
}

impl WaitingPlace {
    fn believed_for(&self) -> Duration {
        self.latency * BELIEVED
    }

    fn threads(&self) -> impl Iterator<Item = u32> {
        let all = self.latency * REQUESTS * self.files;
        let hopes = move |threads: &&u32| all / **threads <= HOPELESS;
        THREADS.iter().filter(hopes).copied()
    }

    fn jobs(&self, shown: &str) -> Vec<WaitingJob> {
        let job = |name, ours: &str| WaitingJob {
            name,
            ours: ours.to_owned(),
            prepare: None,
            peers: Vec::new(),
        };
        vec![
            WaitingJob {
                peers: vec![WaitingPeer {
                    tool: "xxhsum",
                    command: "find $SHAPE/tree -type f -print0 | xargs -0 -P64 -n16 xxhsum -H2"
                        .to_owned(),
                    prepare: None,
                    target: Some(WAITING_PEER),
                }],
                ..job("XXH128", "bc hash --quiet --type=xxh128$T $SHAPE/tree")
            },
            WaitingJob {
                peers: vec![WaitingPeer {
                    tool: "sha256sum",
                    command: "find $SHAPE/tree -type f -print0 | xargs -0 -P64 -n16 sha256sum"
                        .to_owned(),
                    prepare: None,
                    target: Some(WAITING_PEER),
                }],
                ..job("SHA-256", "bc hash --quiet --type=sha256$T $SHAPE/tree")
            },
            job("dup", "bc dup$T $SHAPE/tree"),
            job(
                "manifest",
                &format!("bc integrity manifest$T --output={MANIFEST}.new $SHAPE/tree"),
            ),
            job(
                "verify by metadata",
                &format!("bc integrity verify --quiet --mode=meta$T $SHAPE/tree {MANIFEST}"),
            ),
            job(
                "verify",
                &format!("bc integrity verify --quiet$T $SHAPE/tree {MANIFEST}"),
            ),
            job(
                "update, unchanged",
                &format!("bc integrity update --quiet$T $SHAPE/tree {MANIFEST}"),
            ),
            self.copy("copy from it", "$SHAPE/tree", "$SCRATCH/waiting.out", shown),
            self.copy("copy to it", "$SCRATCH/waiting.tree", "$SHAPE/out", shown),
        ]
    }

    fn copy(&self, name: &'static str, from: &str, to: &str, shown: &str) -> WaitingJob {
        // What is removed and made before a run does not wait.
        let unseen = to.replace("$SHAPE", shown);
        let gone = format!("rm -rf {unseen}");
        let dirs = format!(
            "{gone} && mkdir {unseen} && cd $SCRATCH/waiting.tree && find . -type d -print0 | (cd {unseen} && xargs -0 mkdir -p)"
        );
        let peer = |tool, command: String, prepare: &str, target| WaitingPeer {
            tool,
            command,
            prepare: Some(prepare.to_owned()),
            target,
        };
        // A directory each, of which there are as many, with modes, owners and times as ours.
        let side_by_side = format!(
            "cd {from} && find . -mindepth 1 -type d -printf '%P\\0' | xargs -0 -P64 -I{{}} cp -rp -T {{}} {to}/{{}}"
        );
        let mut peers = vec![peer("cp", side_by_side, &dirs, Some(WAITING_PEER))];
        if self.latency == SLOW_PEERS {
            let rclone = format!("rclone copy --transfers=64 --checkers=64 {from} {to}");
            peers.push(peer("rclone", rclone, &gone, None));
            peers.push(peer("cp", format!("cp -a {from} {to}"), &gone, None));
        }
        WaitingJob {
            name,
            ours: format!("bc copy --quiet$T {from} {to}"),
            prepare: Some(gone),
            peers,
        }
    }
}

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "waiting";
    for place in PLACES {
        let jobs = place.jobs("");
        if !jobs.iter().any(|job| bench.wanted(&title(place, job.name)))
            && !bench.wanted(&title(place, MEMORY))
        {
            continue;
        }
        let behaviour = Behaviour {
            latency: place.latency,
            believed_for: place.believed_for(),
            ..Behaviour::default()
        };
        let disk = match fuse_disk(behaviour) {
            Ok(disk) => disk,
            Err(reason) => {
                bench.left_out(place.name, &reason)?;
                continue;
            }
        };
        lay(&disk.shown().join("tree"), place.files)?;
        let shape = std::mem::replace(&mut bench.shape, disk.path().to_owned());
        let done = measure(bench, place, &disk);
        bench.shape = shape;
        bench.prepare = None;
        for name in ["waiting.tree", "waiting.out"] {
            let path = bench.scratch.join(name);
            if path.exists() {
                bc_testkit::remove_tree(&path).with_context(|| path.display().to_string())?;
            }
        }
        done?;
    }
    Ok(())
}

fn title(place: &WaitingPlace, job: &str) -> String {
    format!("{}, {job}", place.name)
}

fn measure(bench: &mut Bench, place: &WaitingPlace, disk: &FuseDisk) -> Result<()> {
    lay(&bench.scratch.join("waiting.tree"), place.files)?;
    std::thread::sleep(REST);
    bench.time(&format!(
        "bc integrity manifest --threads=64 --output={MANIFEST} $SHAPE/tree"
    ))?;
    for job in place.jobs(&disk.shown().display().to_string()) {
        let title = title(place, job.name);
        if !bench.wanted(&title) {
            continue;
        }
        if bench.takes_over(&title)? {
            continue;
        }
        if let Err(error) = race(bench, place, &job, &title, disk) {
            bench.left_out(&title, &format!("{error:#}"))?;
        }
    }
    bench.prepare = None;
    memory(bench, place)
}

const MEMORY: &str = "memory of 64 readers";

/// Bytes that 64 workers which all wait may take beyond what one takes, in MiB.
const MOST_MEMORY: f64 = 32.0;

fn memory(bench: &mut Bench, place: &WaitingPlace) -> Result<()> {
    let job = title(place, MEMORY);
    if place.latency != SLOW_PEERS || !bench.wanted(&job) || bench.takes_over(&job)? {
        return Ok(());
    }
    // As many lanes as there are, which each need a buffer.
    let of = |n: u32| format!("bc hash --quiet --type=sha256 --threads={n} $SHAPE/tree");
    let more = bench.peak(&of(64))? - bench.peak(&of(1))?;
    println!("{job}: {more:.1} MiB more than one, {MOST_MEMORY} MiB at most");
    let area = bench.area.to_owned();
    bench.push(Row {
        area,
        job,
        peer: "the budget".to_owned(),
        ours: format!("{}, less with --threads=1", of(64)),
        theirs: format!("{MOST_MEMORY} MiB"),
        unit: "MiB".to_owned(),
        pairs: vec![((more * 100.0).round() / 100.0, MOST_MEMORY)],
        targets: vec![(Target::AtMost(1.0), String::new())],
    })
}

/// A command in the race for one job, and the seconds of its runs.
struct Runner {
    command: String,
    prepare: Option<String>,
    first: f64,
    seconds: Vec<f64>,
    is_hopeless: bool,
    requests: u64,
    in_flight: usize,
}

impl Runner {
    fn new(command: String, prepare: Option<String>) -> Runner {
        Runner {
            command,
            prepare,
            first: 0.0,
            seconds: Vec::new(),
            is_hopeless: false,
            requests: 0,
            in_flight: 0,
        }
    }

    fn run(&mut self, bench: &mut Bench, place: &WaitingPlace, disk: &FuseDisk) -> Result<f64> {
        bench.prepare.clone_from(&self.prepare);
        std::thread::sleep(place.believed_for());
        disk.take_counts();
        let seconds = bench.time(&self.command)?;
        let counts = disk.take_counts();
        (self.requests, self.in_flight) = (counts.requests, counts.most_in_flight);
        Ok(seconds)
    }

    fn median(&self) -> f64 {
        match self.seconds.is_empty() {
            true => self.first,
            false => median(self.seconds.iter().copied()),
        }
    }
}

/// Runs ours with an automatic number of threads, with each that is named, and the peers, in turn.
fn race(
    bench: &mut Bench,
    place: &WaitingPlace,
    job: &WaitingJob,
    title: &str,
    disk: &FuseDisk,
) -> Result<()> {
    let with = |option: &str| Runner::new(job.ours.replace("$T", option), job.prepare.clone());
    let mut runners = vec![with("")];
    let named = place.threads().map(|n| with(&format!(" --threads={n}")));
    runners.extend(named);
    let first_peer = runners.len();
    let mut peers = Vec::new();
    for peer in &job.peers {
        if bench.find(&[peer.tool]) {
            runners.push(Runner::new(peer.command.clone(), peer.prepare.clone()));
            peers.push(peer);
        } else {
            let reason = format!("{} is not installed", peer.tool);
            bench.left_out(&format!("{title} / {}", peer.tool), &reason)?;
        }
    }
    for runner in &mut runners {
        runner.first = runner.run(bench, place, disk)?;
    }
    let least = runners[1..first_peer]
        .iter()
        .map(|named| named.first)
        .fold(f64::INFINITY, f64::min);
    let ours = runners[0].first;
    for (at, runner) in runners.iter_mut().enumerate().skip(1) {
        runner.is_hopeless = match at < first_peer {
            true => runner.first > NO_BEST * least,
            false => runner.first > NO_PEER * ours,
        };
    }
    let begun = Instant::now();
    let mut rounds = 0;
    loop {
        for runner in runners.iter_mut().filter(|runner| !runner.is_hopeless) {
            let seconds = runner.run(bench, place, disk)?;
            runner.seconds.push(seconds);
        }
        rounds += 1;
        let misses = best(&runners[1..first_peer])
            .is_some_and(|best| !WAITING_THREADS.met(best.median() / runners[0].median()));
        let wanted = if misses { ROUNDS_AFTER_A_MISS } else { ROUNDS };
        let is_long = begun.elapsed() > LONGEST && rounds >= ROUNDS;
        if rounds >= wanted || is_long {
            break;
        }
    }
    for runner in &runners {
        println!(
            "  {:7.3} s {} requests, {} at a time{}: {}",
            runner.median(),
            runner.requests,
            runner.in_flight,
            if runner.is_hopeless { ", once" } else { "" },
            runner.command
        );
    }
    let (ours, named) = (&runners[0], &runners[1..first_peer]);
    let best = best(named).context("every number of threads is hopeless")?;
    let mut push = |theirs: &Runner, target: Option<Target>| {
        let pairs = match theirs.is_hopeless {
            true => vec![(ours.first, theirs.first)],
            false => ours
                .seconds
                .iter()
                .copied()
                .zip(theirs.seconds.iter().copied())
                .collect(),
        };
        let targets: Vec<(Target, &str)> = target.map(|target| (target, "")).into_iter().collect();
        bench.push_pairs(title, (&ours.command, &theirs.command), pairs, &targets)
    };
    push(best, Some(WAITING_THREADS))?;
    for (theirs, peer) in runners[first_peer..].iter().zip(peers) {
        push(theirs, peer.target)?;
    }
    Ok(())
}

fn best(named: &[Runner]) -> Option<&Runner> {
    let running = named.iter().filter(|runner| !runner.is_hopeless);
    running.min_by(|one, other| one.median().total_cmp(&other.median()))
}

/// Lays files of 512 bytes to 75 KB, most of them small, 50 in a directory; one in ten is a copy of
/// the one before it.
fn lay(root: &Path, files: u32) -> Result<()> {
    let mut rng = Rng::new(files.into());
    let mut size = 0;
    for nth in 0..u64::from(files) {
        let is_copy = nth % 10 == 9;
        if !is_copy {
            // The square of a share of 256 makes small files frequent.
            let share = rng.below(256);
            size = 512 + share * share * 300_000 / 65_536 / 4;
        }
        let path = root.join(format!("{:03}/{nth:05}", nth / 50));
        shapes::file(&path, nth - u64::from(is_copy), size)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_threads_are_not_tried_where_requests_are_slow() {
        let threads = |place: &WaitingPlace| place.threads().collect::<Vec<_>>();
        let all: Vec<_> = PLACES.iter().map(threads).collect();
        assert_eq!(
            all,
            [&[8, 32, 64, 128][..], &[8, 32, 64, 128], &[32, 64, 128]]
        );
    }
}
