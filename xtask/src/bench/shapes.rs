//! Every shape of work: one huge file, a few, hundreds of large ones, thousands of small ones; and
//! duplicates to be linked. Laid one at a time in the scratch folder, and removed again.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use bc_digest::Algorithm;
use bc_testkit::Rng;

use super::hash::title;
use super::measure::{Cache, Pair};
use super::targets::{ONE_FILE_THREADS, SHAPE_FLOOR, SHAPE_PEER, SHAPE_THREADS};
use super::{Bench, Target};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Medians of at least so many pairs count.
const PAIRS: usize = 9;

/// Files of one size. One in four has the content of the one before it.
struct Shape {
    name: &'static str,
    files: u64,
    size: u64,
}

const SHAPES: &[Shape] = &[
    shape("6 × 200 MB", 6, 200 * MIB),
    shape("60 × 20 MB", 60, 20 * MIB),
    shape("70 × 20 MB", 70, 20 * MIB),
    shape("400 × 4 MB", 400, 4 * MIB),
    shape("1,000 × 1 MB", 1_000, MIB),
    shape("3,000 × 300 KB", 3_000, 300 * KIB),
    shape("5,000 × 60 KB", 5_000, 60 * KIB),
    shape("20,000 × 16 KB", 20_000, 16 * KIB),
    shape("60,000 × 1 KB", 60_000, KIB),
];

const fn shape(name: &'static str, files: u64, size: u64) -> Shape {
    Shape { name, files, size }
}

/// Commands run on a shape: its name, ours, the floor, the peers.
struct ShapeJob {
    what: String,
    ours: String,
    floor: &'static str,
    peers: Vec<(&'static str, String)>,
}

const READ: &str = "xtask floor read $SHAPE $SHAPELIST $N";
const STATX_READ: &str = "xtask floor statx $SHAPE $N && xtask floor read $SHAPE $SHAPELIST $N";
const DUP: &str = "xtask floor dup $SHAPE $SHAPELIST $N";
const SUMS: &str = "$SCRATCH/shape.sums";
const MANIFEST: &str = "$SCRATCH/shape.manifest";
const HASHDEEP: &str = "hashdeep -r -l -j$N -c sha256 $SHAPE";

fn jobs() -> Vec<ShapeJob> {
    let find = |tool: &str| format!("find \"$SHAPE\" -type f -print0 | xargs -0 -P$N -n16 {tool}");
    let mut jobs = Vec::new();
    for (algorithm, peers) in [
        ("sha256", &["sha256sum", "openssl dgst -sha256"][..]),
        ("blake3", &["b3sum"]),
        ("xxh128", &["xxhsum -H2"]),
    ] {
        let peer = |command: &&'static str| {
            let tool = command.split(' ').next().unwrap_or(command);
            (tool, find(command))
        };
        jobs.push(ShapeJob {
            what: title(algorithm),
            ours: format!("bc hash --type={algorithm} $SHAPE"),
            floor: READ,
            peers: peers.iter().map(peer).collect(),
        });
    }
    jobs.push(duplicates());
    jobs.push(ShapeJob {
        what: "manifest".to_owned(),
        ours: format!("bc integrity manifest --algorithm=sha256 --output={MANIFEST}.new $SHAPE"),
        floor: STATX_READ,
        peers: vec![("hashdeep", HASHDEEP.to_owned())],
    });
    jobs.push(ShapeJob {
        what: "check".to_owned(),
        ours: format!("bc hash check --quiet {SUMS}"),
        floor: READ,
        peers: vec![("sha256sum", format!("sha256sum -c --quiet {SUMS}"))],
    });
    jobs.push(ShapeJob {
        what: "verify".to_owned(),
        ours: format!("bc integrity verify --quiet $SHAPE {MANIFEST}"),
        floor: STATX_READ,
        peers: vec![("hashdeep", HASHDEEP.to_owned())],
    });
    jobs
}

fn duplicates() -> ShapeJob {
    let peers = super::dup::PEERS.iter();
    let fast = peers.filter(|p| ["yadf", "jdupes", "fclones"].contains(&p.tool));
    ShapeJob {
        what: "duplicates".to_owned(),
        ours: "bc dup $SHAPE".to_owned(),
        floor: DUP,
        peers: fast
            .map(|peer| (peer.tool, format!("{} $SHAPE", peer.command)))
            .collect(),
    }
}

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "shapes";
    one_large(bench)?;
    for (number, shape) in SHAPES.iter().enumerate() {
        laid(bench, shape.name, &jobs(), |root| {
            for nth in 0..shape.files {
                let same_as = if nth % 4 == 3 { nth - 1 } else { nth };
                let path = root.join(format!("{:03}/{nth:05}", nth / 100));
                file(&path, (number as u64) << 32 | same_as, shape.size)?;
            }
            Ok(())
        })?;
    }
    laid(bench, "20,000 tiny triplets", &[duplicates()], |root| {
        for nth in 0..60_000 {
            let path = root.join(format!("{:03}/{nth:05}", nth / 100));
            file(&path, nth / 3, 100)?;
        }
        Ok(())
    })?;
    links(bench)
}

/// Lays a shape, runs its jobs and removes it, unless nothing of it was asked for.
fn laid(
    bench: &mut Bench,
    name: &str,
    jobs: &[ShapeJob],
    lay: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let title = |job: &ShapeJob| format!("{name}, {}", job.what);
    // A word of the peer's name alone would ask for every shape.
    if !jobs.iter().any(|job| bench.wanted_job(&title(job))) {
        return Ok(());
    }
    let root = bench.shape.clone();
    let done = lay(&root).with_context(|| name.to_owned()).and_then(|()| {
        bench.list_files(&root, "shapelist")?;
        let writes = jobs.iter().any(|job| job.what == "verify");
        if writes {
            bench.time(&format!("bc hash --output={SUMS} $SHAPE"))?;
            bench.time(&format!(
                "bc integrity manifest --algorithm=sha256 --output={MANIFEST} $SHAPE"
            ))?;
        }
        jobs.iter().try_for_each(|job| run(bench, &title(job), job))
    });
    bc_testkit::remove_tree(&root).with_context(|| root.display().to_string())?;
    done
}

/// Compares with the floor first: a program at the floor cannot be far behind any other.
fn run(bench: &mut Bench, title: &str, job: &ShapeJob) -> Result<()> {
    let floor = compare(bench, title, &job.ours, "xtask", job.floor, &[])?;
    let at_floor = floor.is_some_and(|ratio| SHAPE_FLOOR.met(ratio));
    compare_threads(bench, title, &job.ours, SHAPE_THREADS)?;
    let wanted: &[(Target, &str)] = match at_floor {
        true => &[],
        false => &[(SHAPE_PEER, "")],
    };
    for (tool, command) in &job.peers {
        // The table may ask for more.
        compare(bench, title, &job.ours, tool, command, wanted)?;
    }
    Ok(())
}

fn compare(
    bench: &mut Bench,
    title: &str,
    ours: &str,
    tool: &str,
    theirs: &str,
    wanted: &[(Target, &str)],
) -> Result<Option<f64>> {
    let pair = Pair {
        job: title.to_owned(),
        ours,
        theirs,
        tool: &[tool],
        cache: Cache::Warm,
        pairs: PAIRS,
    };
    bench.compare_to(&pair, wanted)
}

/// Compares the number of threads that the program chooses with one of them and with all.
fn compare_threads(bench: &mut Bench, title: &str, ours: &str, target: Target) -> Result<()> {
    for threads in ["1", "$N"] {
        let theirs = match ours.split_once(" -") {
            Some((words, rest)) => format!("{words} --threads={threads} -{rest}"),
            None => ours.replacen("dup", &format!("dup --threads={threads}"), 1),
        };
        compare(bench, title, ours, "bc", &theirs, &[(target, "")])?;
    }
    Ok(())
}

/// One file of 1 GiB by every algorithm and job; a search has two of them. Peers that hash it are
/// compared among the files.
fn one_large(bench: &mut Bench) -> Result<()> {
    let titled = |what: &str| format!("1 × 1 GB, {what}");
    let jobs = one_large_jobs();
    let wanted = |(what, ..): &(String, _, _)| bench.wanted_job(&titled(what));
    if !jobs.iter().any(wanted) {
        return Ok(());
    }
    let root = bench.shape.clone();
    let done = (|| {
        for name in ["one/0", "other/0"] {
            file(&root.join(name), 0, 1024 * MIB)?;
        }
        bench.time(&format!(
            "bc integrity manifest --algorithm=sha256 --output={MANIFEST} $SHAPE/one"
        ))?;
        for (what, ours, peers) in &jobs {
            bench.prepare = (what == "copy").then(|| "rm -rf $SHAPE/out".to_owned());
            compare_threads(bench, &titled(what), ours, ONE_FILE_THREADS)?;
            for (tool, command) in peers {
                compare(bench, &titled(what), ours, tool, command, &[])?;
            }
        }
        Ok(())
    })();
    bench.prepare = None;
    bc_testkit::remove_tree(&root).with_context(|| root.display().to_string())?;
    done
}

type Peers = Vec<(&'static str, String)>;

/// Returns what each job on one large file is called, our command and the peers'.
fn one_large_jobs() -> Vec<(String, String, Peers)> {
    let hash = Algorithm::ALL.iter().map(|algorithm| {
        let name = algorithm.name();
        let ours = format!("bc hash --type={name} $SHAPE/one");
        (title(name), ours, Peers::new())
    });
    let mut jobs: Vec<_> = hash.collect();
    let hashdeep = HASHDEEP.replace("$SHAPE", "$SHAPE/one");
    let dup = duplicates();
    jobs.extend([
        (dup.what, dup.ours, dup.peers),
        (
            "manifest".to_owned(),
            format!("bc integrity manifest --algorithm=sha256 --output={MANIFEST}.new $SHAPE/one"),
            vec![("hashdeep", hashdeep.clone())],
        ),
        (
            "verify".to_owned(),
            format!("bc integrity verify --quiet $SHAPE/one {MANIFEST}"),
            vec![("hashdeep", hashdeep)],
        ),
        (
            "copy".to_owned(),
            "bc copy --quiet $SHAPE/one $SHAPE/out".to_owned(),
            vec![("cp", "cp -a $SHAPE/one $SHAPE/out".to_owned())],
        ),
    ]);
    jobs
}

/// Compares the linking of 35,000 pairs; each run gets them fresh.
fn links(bench: &mut Bench) -> Result<()> {
    let job = "35,000 pairs, hard links";
    if !bench.wanted_job(job) {
        return Ok(());
    }
    let root = bench.shape.clone();
    let done = (|| {
        for nth in 0..70_000 {
            let path = root.join(format!("laid/{:03}/{nth:05}", nth / 100));
            file(&path, nth / 2, 300)?;
        }
        bench.list_files(&root.join("laid"), "shapelist")?;
        bench.prepare = Some(
            "rm -rf $SHAPE/pairs $SCRATCH/journal && cp -a $SHAPE/laid $SHAPE/pairs".to_owned(),
        );
        for (tool, theirs) in [
            (
                "xtask",
                "xtask floor dup $SHAPE/pairs $SHAPELIST $N && xtask floor link $SHAPE/pairs $SHAPELIST $N",
            ),
            ("jdupes", "jdupes -r -q -L $SHAPE/pairs"),
            (
                "fclones",
                "fclones --quiet group --hidden --no-ignore $SHAPE/pairs | fclones --quiet link",
            ),
            (
                "rdfind",
                "rdfind -makehardlinks true -makeresultsfile false $SHAPE/pairs",
            ),
        ] {
            bench.compare(&Pair {
                job: job.to_owned(),
                ours: "bc dup prune --action=hardlink --yes --quiet --journal=$SCRATCH/journal $SHAPE/pairs",
                theirs,
                tool: &[tool],
                cache: Cache::Warm,
                pairs: PAIRS,
            })?;
        }
        Ok(())
    })();
    bench.prepare = None;
    bc_testkit::remove_tree(&root).with_context(|| root.display().to_string())?;
    done
}

/// Makes a file whose content follows from a number.
pub(crate) fn file(path: &Path, seed: u64, size: u64) -> Result<()> {
    let folder = path.parent().context("lies in a folder")?;
    if !folder.is_dir() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    let mut rng = Rng::new(seed);
    let mut block = vec![0; size.min(MIB) as usize];
    let mut left = size as usize;
    while left > 0 {
        let part = left.min(block.len());
        rng.fill(&mut block[..part]);
        file.write_all(&block[..part])?;
        left -= part;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, SHAPES, Shape, file, jobs, one_large_jobs};

    #[test]
    fn names_say_what_is_laid() {
        for Shape { name, files, size } in SHAPES {
            let (count, length) = name.split_once(" × ").unwrap();
            assert_eq!(count.replace(',', ""), files.to_string());
            let unit = if length.ends_with("MB") { 20 } else { 10 };
            let number = length.split(' ').next().unwrap();
            assert_eq!(number, (size >> unit).to_string());
        }
    }

    #[test]
    fn the_same_number_gives_the_same_content() {
        let tree = bc_testkit::TestTree::new();
        let read = |name: &str, seed, size| {
            let path = tree.path().join("d").join(name);
            file(&path, seed, size).unwrap();
            std::fs::read(path).unwrap()
        };
        let first = read("a", 1, 3000);
        assert_eq!(first.len(), 3000);
        assert_eq!(first, read("b", 1, 3000));
        assert_ne!(first, read("c", 2, 3000));
        assert!(read("d", 2, 0).is_empty());
    }

    #[test]
    fn one_large_file_meets_every_algorithm_and_job() {
        let jobs = one_large_jobs();
        assert_eq!(jobs.len(), Algorithm::ALL.len() + 4);
        for (_, ours, _) in jobs {
            assert!(ours.contains(" -") || ours == "bc dup $SHAPE", "{ours}");
        }
    }

    #[test]
    fn every_job_has_a_floor_and_a_peer() {
        let jobs = jobs();
        assert_eq!(jobs.len(), 7);
        for job in jobs {
            assert!(job.floor.starts_with("xtask floor ") && !job.peers.is_empty());
            assert!(
                job.ours.starts_with("bc ") && job.ours.contains(" -") || job.what == "duplicates"
            );
        }
    }
}
