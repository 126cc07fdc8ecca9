//! Places where every call waits: a file system whose requests take 0.2, 2 or 10 ms each. The number
//! of calls in flight has to follow by itself: the automatic number of threads against the best of some
//! that are named, and against 64 processes side by side.
//!
//! Each named number is tried once, and the best of them is measured in alternating pairs. A number
//! that would take longer than [`HOPELESS`] is not tried.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use bc_testkit::{Behaviour, Rng, fuse_disk};

use super::measure::{Cache, Pair};
use super::targets::{WAITING_PEER, WAITING_THREADS};
use super::{Bench, shapes};

/// Files of a tree and the latency of the requests for them. Fewer where each takes longer.
struct WaitingPlace {
    name: &'static str,
    latency: Duration,
    files: u64,
}

/// Numbers of threads that are named.
const THREADS: &[u32] = &[1, 8, 32, 64, 128];

/// A number of threads with which the requests alone would take so long is not tried, if each file
/// has [`REQUESTS`]: it cannot be the best.
const HOPELESS: Duration = Duration::from_secs(8);
const REQUESTS: u32 = 4;

impl WaitingPlace {
    fn threads(&self) -> impl Iterator<Item = u32> {
        let all = self.latency * REQUESTS * self.files as u32;
        let hopes = move |threads: &&u32| all / **threads <= HOPELESS;
        THREADS.iter().filter(hopes).copied()
    }
}

const PLACES: &[WaitingPlace] = &[
    WaitingPlace {
        name: "0.2 ms a request",
        latency: Duration::from_micros(200),
        files: 3_000,
    },
    WaitingPlace {
        name: "2 ms a request",
        latency: Duration::from_millis(2),
        files: 3_000,
    },
    WaitingPlace {
        name: "10 ms a request",
        latency: Duration::from_millis(10),
        files: 1_000,
    },
];

const MANIFEST: &str = "$SCRATCH/waiting.manifest";

/// Commands with a place for `--threads`, and what has to be done before each run.
fn jobs(shown: &str) -> Vec<(&'static str, String, Option<String>)> {
    let gone = Some("rm -rf $SCRATCH/waiting.out".to_owned());
    vec![
        ("hash", "bc hash --quiet$T $SHAPE/tree".to_owned(), None),
        ("dup", "bc dup$T $SHAPE/tree".to_owned(), None),
        (
            "manifest",
            format!("bc integrity manifest$T --output={MANIFEST}.new $SHAPE/tree"),
            None,
        ),
        (
            "verify by metadata",
            format!("bc integrity verify --quiet --mode=meta$T $SHAPE/tree {MANIFEST}"),
            None,
        ),
        (
            "verify",
            format!("bc integrity verify --quiet$T $SHAPE/tree {MANIFEST}"),
            None,
        ),
        (
            "update, unchanged",
            format!("bc integrity update --quiet$T $SHAPE/tree {MANIFEST}"),
            None,
        ),
        (
            "copy from it",
            "bc copy --quiet$T $SHAPE/tree $SCRATCH/waiting.out".to_owned(),
            gone,
        ),
        (
            "copy to it",
            "bc copy --quiet$T $SCRATCH/waiting.tree $SHAPE/out".to_owned(),
            Some(format!("rm -rf {shown}/out")),
        ),
    ]
}

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "waiting";
    for place in PLACES {
        if !bench.wanted_job(place.name) {
            continue;
        }
        let behaviour = Behaviour {
            latency: place.latency,
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
        let done = measure(bench, place, disk.shown());
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

fn measure(bench: &mut Bench, place: &WaitingPlace, shown: &Path) -> Result<()> {
    let name = place.name;
    lay(&bench.scratch.join("waiting.tree"), place.files)?;
    bench.time(&format!(
        "bc integrity manifest --threads=64 --output={MANIFEST} $SHAPE/tree"
    ))?;
    for (job, command, prepare) in jobs(&shown.display().to_string()) {
        let title = format!("{name}, {job}");
        if !bench.wanted_job(&title) {
            continue;
        }
        bench.prepare = prepare;
        let ours = command.replace("$T", "");
        let mut best: Option<(f64, String)> = None;
        for threads in place.threads() {
            let named = command.replace("$T", &format!(" --threads={threads}"));
            let seconds = bench.time(&named)?;
            if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
                best = Some((seconds, named));
            }
        }
        let (_, best) = best.context("every number of threads is hopeless")?;
        bench.compare_to(
            &Pair {
                job: title.clone(),
                ours: &ours,
                theirs: &best,
                tool: &["bc"],
                cache: Cache::Warm,
                pairs: 0,
            },
            &[(WAITING_THREADS, "")],
        )?;
        let peer = match job {
            "hash" => "find $SHAPE/tree -type f -print0 | xargs -0 -P64 -n8 xxhsum -H2",
            "copy from it" => "cp -a $SHAPE/tree $SCRATCH/waiting.out",
            "copy to it" => "cp -a $SCRATCH/waiting.tree $SHAPE/out",
            _ => continue,
        };
        bench.compare_to(
            &Pair {
                job: title,
                ours: &ours,
                theirs: peer,
                tool: &[if job == "hash" { "xxhsum" } else { "cp" }],
                cache: Cache::Warm,
                pairs: 0,
            },
            &[(WAITING_PEER, "")],
        )?;
    }
    bench.prepare = None;
    Ok(())
}

/// Lays files of 512 bytes to 300 KB, most of them small, 50 in a directory; one in ten is a copy of
/// the one before it.
fn lay(root: &Path, files: u64) -> Result<()> {
    let mut rng = Rng::new(files);
    let mut size = 0;
    for nth in 0..files {
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
    fn one_thread_is_not_tried_where_requests_are_slow() {
        let threads = |place: &WaitingPlace| place.threads().collect::<Vec<_>>();
        let all: Vec<_> = PLACES.iter().map(threads).collect();
        assert_eq!(
            all,
            [
                &[1, 8, 32, 64, 128][..],
                &[8, 32, 64, 128],
                &[8, 32, 64, 128]
            ]
        );
    }
}
