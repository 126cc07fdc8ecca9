//! Work of every shape, from a few large files to many small ones: how it is shared out shows in
//! nothing but the time it takes.

use bc_digest::{Algorithm, CpuFeatures, Digest};
use bc_dup::scan;
use bc_pool::Cancel;
use bc_testkit::{TestTree, left_out, tool};
use bc_walk::{EntryId, Listing, Metadata};

use crate::common::Bc;

/// Small versions of what people have: how many files, of how many bytes each. The first are large
/// enough to be worth several threads each, the next to be shared out one by one.
const SHAPES: [(usize, usize); 6] = [
    (1, 9 << 20),
    (3, 3 << 20),
    (7, 2_500_000),
    (70, 200_000),
    (400, 16_000),
    (1500, 500),
];

/// Files of that shape, every third one equal to the one before, and a few small ones beside them.
fn tree((count, bytes): (usize, usize)) -> TestTree {
    let t = TestTree::new();
    let base: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 509) as u8).collect();
    for i in 0..count {
        let mut content = base.clone();
        let number = if i % 3 == 2 { i - 1 } else { i };
        content[bytes / 2..][..4].copy_from_slice(&(number as u32).to_le_bytes());
        t.write(format!("tree/{:02}/{i:05}", i / 100), content);
    }
    for i in 0..5 {
        t.write(format!("tree/notes/{i}"), format!("note {}", i / 2));
    }
    t
}

fn readers(t: &TestTree) -> Vec<&'static str> {
    let uring = t.bc_line("hash tree/notes --io=uring").go();
    if uring.status.code() == Some(2) {
        left_out("io_uring is refused here");
        return vec!["auto", "sync"];
    }
    vec!["auto", "sync", "uring"]
}

#[test]
fn results_are_the_same_however_the_work_is_shared_out() {
    for shape in SHAPES {
        let t = tree(shape);
        let readers = readers(&t);
        for command in [
            "hash -t sha256",
            "hash -t blake3",
            "hash -t xxh128",
            "hash -t md5 -t sha512",
            "dup scan",
            "dup scan --algorithm=sha256",
            "dup scan --verify-bytes",
        ] {
            let expected = t
                .bc_line(&format!("{command} tree --threads=mono --io=sync"))
                .go();
            expected.code(0).stderr_is("");
            assert!(!expected.stdout.is_empty());
            for threads in ["auto", "2", "3", "8"] {
                for io in &readers {
                    t.bc_line(&format!("{command} tree --threads={threads} --io={io}"))
                        .go()
                        .code(0)
                        .stderr_is("")
                        .stdout_is(&expected.stdout);
                }
            }
        }
    }
}

#[test]
fn manifests_are_the_same_however_the_work_is_shared_out() {
    for shape in SHAPES {
        let t = tree(shape);
        let entries = |name: &str| -> Vec<Vec<u8>> {
            let all = t.read(format!("../{name}"));
            // The header has the time in it, the trailer a digest of it all.
            let lines = all.split(|byte| *byte == b'\n');
            lines
                .skip(1)
                .take_while(|line| !line.starts_with(b"{\"end\""))
                .map(<[u8]>::to_vec)
                .collect()
        };
        t.bc_line("integrity manifest tree -o ../mono --threads=mono")
            .go()
            .code(0);
        for threads in ["auto", "2", "16"] {
            let line = format!("integrity manifest tree -o ../other --threads={threads}");
            t.bc_line(&line).go().code(0);
            assert!(entries("mono").len() > shape.0);
            let (mono, other) = (entries("mono"), entries("other"));
            let same = mono.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!(
                same + 1 >= mono.len() && mono.len() == other.len(),
                "{shape:?}"
            );
            let line = format!("integrity verify tree ../mono --threads={threads}");
            t.bc_line(&line).go().code(0);
            t.bc_line("hash tree -o ../sums").go().code(0);
            t.bc_line(&format!("hash check ../sums --threads={threads} --status"))
                .go()
                .code(0);
        }
    }
}

/// Every combination of threads, readers and instruction sets that this machine has, asked of the
/// engines themselves: the program always takes the best instructions.
#[test]
fn engines_agree_on_every_shape_whatever_they_run_on() {
    let mut readers = vec![bc_read::Choice::Sync, bc_read::Choice::Auto];
    match bc_read::uring_available() {
        Ok(()) => readers.push(bc_read::Choice::Uring),
        Err(error) => left_out(&error.to_string()),
    }
    let mut ways = Vec::new();
    for cpu in CpuFeatures::available() {
        for workers in [1, 2, 3, 8] {
            ways.extend(readers.iter().map(|backend| (cpu, workers, *backend)));
        }
    }
    let algorithms: [&[Algorithm]; 4] = [
        &[Algorithm::Sha256],
        &[Algorithm::Xxh128],
        &[Algorithm::Blake3],
        &[Algorithm::Md5, Algorithm::Sha512],
    ];
    for shape in [(1, 2_500_000), (3, 300_000), (40, 20_000), (300, 600)] {
        let t = tree(shape);
        let listing = walked(&t);
        for algorithms in algorithms {
            let results = ways.iter().map(|way| digests(&listing, algorithms, *way));
            assert_alike(&ways, results, &format!("{algorithms:?} of {shape:?}"));
        }
        for algorithm in [Algorithm::Xxh128, Algorithm::Sha256] {
            let results = ways.iter().map(|way| duplicates(&listing, algorithm, *way));
            assert_alike(&ways, results, &format!("{algorithm} of {shape:?}"));
        }
    }
}

type Way = (CpuFeatures, usize, bc_read::Choice);

fn assert_alike<T: PartialEq>(ways: &[Way], results: impl Iterator<Item = T>, what: &str) {
    let mut results = ways.iter().zip(results);
    let (_, first) = results.next().unwrap();
    for (way, result) in results {
        assert!(result == first, "{what}: {way:?}");
    }
}

fn walked(t: &TestTree) -> Listing {
    let options = bc_walk::Options {
        metadata: Metadata::Basic,
        ..bc_walk::Options::default()
    };
    let root = t.join("tree").into_os_string();
    bc_walk::walk(&[root], &options, 1, &Cancel::new()).unwrap()
}

fn read_options(backend: bc_read::Choice) -> bc_read::Options {
    bc_read::Options {
        backend,
        ..bc_read::Options::default()
    }
}

fn digests(listing: &Listing, algorithms: &[Algorithm], way: Way) -> Vec<Vec<Digest>> {
    let mut options = bc_hash::Options::new(algorithms.to_vec());
    (options.cpu, options.workers) = (way.0, way.1);
    options.read = read_options(way.2);
    let progress = bc_hash::Progress::default();
    let hashes = bc_hash::hash_listing(listing, &options, &Cancel::new(), &progress).unwrap();
    let of = |entry| hashes.digests(entry).unwrap().collect();
    listing.ids().map(of).collect()
}

/// Of each group its digest and its files, in the order of the report.
fn duplicates(
    listing: &Listing,
    algorithm: Algorithm,
    way: Way,
) -> Vec<(Digest, Vec<Vec<EntryId>>)> {
    let options = scan::Options {
        algorithm,
        cpu: way.0,
        workers: way.1,
        read: read_options(way.2),
        ..scan::Options::default()
    };
    let progress = scan::Progress::default();
    let found = scan::scan(listing, &options, None, &Cancel::new(), &progress).unwrap();
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    let files = |group: scan::Group<'_>| group.files().map(|file| file.names.to_vec()).collect();
    found
        .groups()
        .map(|group| (group.digest, files(group)))
        .collect()
}

/// The automatic number follows the work: one thread for a few small files, more for large ones
/// although there are no more of them; a named number is kept.
#[test]
fn threads_follow_the_work() {
    let t = TestTree::new();
    for i in 0..20 {
        t.write(format!("small/{i}"), "x");
        t.write(format!("large/{i}"), vec![i as u8; 1 << 20]);
    }
    let threads = |line: &str| {
        t.bc_line(line).arg("--metrics=../m.json").go().code(0);
        let metrics: serde_json::Value = serde_json::from_slice(&t.read("../m.json")).unwrap();
        metrics["threads"].as_u64().unwrap()
    };
    assert_eq!(threads("hash small"), 1);
    assert_eq!(threads("hash small --threads=3"), 3);
    let cpus = bc_pool::available_cpus().min(20) as u64;
    let large = threads("hash large");
    assert!(large > 1 || cpus == 1, "{large} threads on {cpus} CPUs");
    assert!(large <= cpus);
    assert_eq!(threads("hash large --threads=mono"), 1);
    assert_eq!(threads("hash large --threads=4"), 4);
}

/// A budget that is too small for all CPUs is kept with fewer threads, if nobody named a number.
#[test]
fn automatic_threads_fit_the_memory_budget() {
    let t = TestTree::new();
    for i in 0..20 {
        t.write(format!("large/{i}"), vec![i as u8; 1 << 20]);
    }
    // Enough for one thread, as `mono` shows.
    let expected = t
        .bc_line("hash large --threads=mono --memory-budget=1M")
        .go();
    expected.code(0);
    t.bc_line("hash large --memory-budget=1M")
        .go()
        .code(0)
        .stdout_is(&expected.stdout);
    t.bc_line("hash large --memory-budget=1M --threads=64")
        .go()
        .code(2)
        .stderr_has("64 threads");
}

/// Nothing is asked of a file beforehand that its descriptor tells when it is open.
#[test]
fn small_files_are_looked_at_once() {
    let Some(strace) = tool("strace") else {
        return left_out("strace is not installed");
    };
    const FILES: usize = 60;
    let t = TestTree::new();
    for i in 0..FILES {
        t.write(format!("tree/f{i}"), "some content");
    }
    let log = t.scratch("strace.log");
    let out = t
        .run(strace)
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=stat,lstat,fstat,newfstatat,statx",
            "-o",
        ])
        .arg(&log)
        .args([crate::common::BC, "hash", "tree"])
        .go();
    if out.status.code() != Some(0) {
        return left_out(&format!("strace cannot trace here: {}", out.error_text()));
    }
    let calls = std::fs::read_to_string(log).unwrap();
    // A call that another thread interrupts has two lines, and the loader looks for libraries.
    let counts = |line: &&str| !line.contains("resumed>") && !line.contains("AT_FDCWD");
    let stats = calls.lines().filter(counts).count();
    // Those of the process, the root and the terminal do not grow with the files.
    assert!(stats < FILES + FILES / 2, "{stats} stats for {FILES} files");
}
