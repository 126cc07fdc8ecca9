//! How many system calls a file costs, by kind: what a search or a digest does not need is not
//! asked for, on every file system that is here and for every shape of work.

use std::collections::BTreeMap;
use std::ops::Sub;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bc_testkit::{TestTree, left_out, tool};

use crate::common::{ABC, BC};

/// Files are told apart at once, or follow each other in threes of one content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Content {
    Different,
    Threes,
}

/// How many files of how many bytes; the length of each is `step` more than that of the one before,
/// in turns of as many as in [`SIZES`].
struct Shape {
    name: &'static str,
    files: usize,
    bytes: usize,
    step: usize,
    content: Content,
}

/// Different sizes, where there are several.
const SIZES: usize = 30;
/// Directories of a shape.
const DIRS: usize = 6;

const fn shape(name: &'static str, files: usize, bytes: usize, content: Content) -> Shape {
    Shape {
        name,
        files,
        bytes,
        step: 0,
        content,
    }
}

static SHAPES: [Shape; 7] = [
    shape("few tiny triplets", 60, 800, Content::Threes),
    shape("tiny triplets", 300, 800, Content::Threes),
    shape("tiny, told apart", 300, 800, Content::Different),
    shape("16 KB triplets", 300, 16_000, Content::Threes),
    shape("300 KB triplets", 30, 300_000, Content::Threes),
    shape("300 KB, told apart", 30, 300_000, Content::Different),
    Shape {
        name: "as a source tree",
        files: 300,
        bytes: 3000,
        step: 501,
        content: Content::Different,
    },
];

impl Shape {
    fn write(&self, tree: &TestTree) {
        for i in 0..self.files {
            let number = match self.content {
                Content::Different => i,
                Content::Threes => i / 3 * 3,
            };
            let mut content = vec![b'x'; self.bytes + number / 3 % SIZES * self.step];
            content[..4].copy_from_slice(&(number as u32).to_le_bytes());
            tree.write(format!("{}/{}/{i}", self.name, i % DIRS), content);
        }
    }
}

/// Calls of a process by their names.
#[derive(Clone, Debug, Default)]
struct Calls(BTreeMap<String, usize>);

impl Calls {
    /// Of calls whose names begin so.
    fn of(&self, kinds: &[&str]) -> usize {
        let of_kind = |name: &str| kinds.iter().any(|kind| name.starts_with(kind));
        let calls = self.0.iter().filter(|(name, _)| of_kind(name));
        calls.map(|(_, count)| count).sum()
    }
}

impl Sub for &Calls {
    type Output = Calls;

    fn sub(self, other: &Calls) -> Calls {
        let count = |name: &String| other.0.get(name).copied().unwrap_or(0);
        let left = self.0.iter();
        Calls(
            left.map(|(name, calls)| (name.clone(), calls.saturating_sub(count(name))))
                .collect(),
        )
    }
}

const OPENS: &[&str] = &["open"];
const READS: &[&str] = &["read", "pread"];
const STATS: &[&str] = &["fstat", "newfstatat", "statx", "stat", "lstat"];
const CLOSES: &[&str] = &["close"];
const LEASES: &[&str] = &["fcntl"];

/// Runs `bc` with these words and counts. `None` where nothing may be traced.
fn count(strace: &Path, words: &str, paths: &[PathBuf]) -> Option<Calls> {
    let t = TestTree::new();
    let log = t.scratch("calls");
    let traced = t
        .run(strace)
        .args(["-f", "-c", "-o"])
        .arg(&log)
        .arg(BC)
        // What is traced is slow, which must not be taken for the file system's fault.
        .args(words.split_whitespace().chain(["--io=sync"]))
        .args(paths)
        .go();
    if traced.error_text().contains("ptrace") {
        left_out("strace may not trace here");
        return None;
    }
    traced.code(0);
    let table = std::fs::read_to_string(log).unwrap();
    // Share, seconds, microseconds a call, calls, errors if there are any, name.
    let rows = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let calls = fields.get(3)?.parse().ok()?;
        fields[0].parse::<f64>().ok()?;
        Some((fields.last()?.to_string(), calls))
    });
    Some(Calls(rows.filter(|(name, _)| name != "total").collect()))
}

/// The most that each file may cost: opens, reads, stats, closes, and what is asked about leases.
struct Limit {
    opens: usize,
    reads: usize,
    stats: usize,
    leases: usize,
}

/// Files that are asked whether they are cached, to know whether a disk has to seek for them; a
/// search reads twice.
const PROBES: usize = 2 * 24;

/// What a job may cost. A directory is opened by the walk and by the reader of its files.
fn check(what: &str, calls: &Calls, shape: &Shape, limit: &Limit, sampled: usize) {
    let (files, dirs) = (shape.files, DIRS + 1);
    let opens = limit.opens * files + sampled + 8 * dirs + PROBES;
    let most = [
        ("opens", OPENS, opens),
        ("closes", CLOSES, opens + 8),
        ("reads", READS, limit.reads * files + 2 * sampled + PROBES),
        ("stats", STATS, limit.stats * files + 2 * sampled + 8 * dirs),
        ("leases", LEASES, limit.leases * files + 8 * dirs + 16),
    ];
    for (kind, names, most) in most {
        let made = calls.of(names);
        assert!(
            made <= most,
            "{what}: {made} {kind} for {files} files, {most} at most; {calls:?}"
        );
    }
}

fn places() -> Vec<TestTree> {
    let memory = Path::new("/dev/shm");
    let mut places = vec![TestTree::new()];
    let is_there = std::fs::File::open(memory)
        .ok()
        .and_then(|dir| bc_fs::mount::basic_traits(dir).ok())
        .is_some_and(|traits| traits.name == "tmpfs" && !traits.read_only);
    match is_there {
        true => places.push(TestTree::new_in(memory)),
        false => left_out("/dev/shm is no tmpfs"),
    }
    places
}

/// Waits until the files that were written before are at rest: nobody can set a ctime.
fn let_rest() {
    let place = TestTree::new();
    place.write("last", "");
    let last = place.join("last").metadata().unwrap().modified().unwrap();
    while SystemTime::now() < last + Duration::from_millis(2100) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What the jobs cost for a shape, and for nothing.
struct Counted<'a> {
    shape: &'a Shape,
    what: String,
    hash: Calls,
    dup: Calls,
}

impl Counted<'_> {
    /// Looks whether each file costs what it needs, and `leases` calls about those.
    fn check(&self, leases: usize) {
        let shape = self.shape;
        // What is larger than a buffer takes more reads, and a look before and after.
        let whole = shape.bytes.div_ceil(32 << 10);
        let long = usize::from(shape.bytes > 100_000);
        let limit = Limit {
            opens: 1,
            reads: whole + long,
            stats: 1 + long,
            leases,
        };
        check(
            &format!("hash, {}", self.what),
            &self.hash,
            shape,
            &limit,
            0,
        );
        // The walk's stat, and one that proves what is read whole.
        let survivors = usize::from(shape.content == Content::Threes);
        let limit = Limit {
            opens: 1 + survivors * long,
            reads: match (survivors, long) {
                (1, 1) => whole + long + 2,
                (0, 1) => 2,
                _ => 1,
            },
            stats: 1 + survivors,
            leases,
        };
        // What is read as a sample is proven, and where it is long perhaps read again.
        let sampled = match shape.files {
            _ if survivors == 1 && long == 0 => 0,
            0..256 => shape.files,
            _ => shape.files / 8 + 50,
        };
        check(
            &format!("dup, {}", self.what),
            &self.dup,
            shape,
            &limit,
            sampled,
        );
    }
}

#[test]
fn every_file_costs_the_calls_it_needs_and_no_more() {
    let Some(strace) = tool("strace") else {
        return left_out("strace is not installed");
    };
    let places = places();
    let jobs = ["hash --threads=2", "dup --threads=2"];
    let empty = TestTree::new();
    let [Some(no_hash), Some(no_dup)] = jobs.map(|job| count(&strace, job, &[empty.path().into()]))
    else {
        return;
    };
    let counted = |shape: &'static Shape, place: &TestTree| {
        let [hash, dup] = jobs.map(|job| count(&strace, job, &[place.join(shape.name)]));
        Some(Counted {
            shape,
            what: format!("{} in {:?}", shape.name, place.path()),
            hash: &hash? - &no_hash,
            dup: &dup? - &no_dup,
        })
    };
    for place in &places {
        // Fresh, as far as the machine is quick enough.
        let shape = &SHAPES[0];
        shape.write(place);
        counted(shape, place).unwrap().check(2);
        SHAPES.iter().skip(1).for_each(|shape| shape.write(place));
    }
    let_rest();
    for place in &places {
        for shape in &SHAPES {
            counted(shape, place).unwrap().check(0);
        }
    }
}

/// What is named may be anything, a FIFO too, so that it takes a look before it is opened as well as
/// the one that proves what was opened; and no other, whether there are few of them or many.
#[test]
fn a_named_file_is_looked_at_before_and_after_it_is_opened() {
    let Some(strace) = tool("strace") else {
        return left_out("strace is not installed");
    };
    let place = TestTree::new();
    let file = |i: usize| {
        let name = format!("{i:02}");
        place.write(&name, &name);
        place.join(name)
    };
    let files: Vec<PathBuf> = (0..40).map(file).collect();
    for job in ["hash", "hash --threads=2", "dup"] {
        for (few, many) in [(2, 8), (8, 9), (20, 40)] {
            let counts = [few, many].map(|count_of| count(&strace, job, &files[..count_of]));
            let [Some(few_calls), Some(many_calls)] = counts else {
                return;
            };
            let more = &many_calls - &few_calls;
            let stats = more.of(STATS);
            // Whoever starts threads asks for the CPUs, which is read in some files; a third look at
            // each of 20 files were 20 more.
            let most = 2 * (many - few) + 12;
            assert!(stats <= most, "{job}, {few} to {many}: {stats}; {more:?}");
        }
    }
}

/// The kinds of files that a list names are learned from their directories, where there are several
/// in each: a checked file costs what a hashed one does.
#[test]
fn a_listed_file_is_looked_at_once() {
    let Some(strace) = tool("strace") else {
        return left_out("strace is not installed");
    };
    let place = TestTree::new();
    let list = |name: &str, files: usize| {
        let mut list = String::new();
        for i in 0..files {
            let file = format!("{name}/{}/{i}", i % DIRS);
            place.write(&file, "abc");
            list += &format!("{ABC}  {}\n", place.join(file).display());
        }
        let name = format!("{name} listed");
        place.write(&name, list);
        place.join(name)
    };
    let (few, many) = (list("few", 60), list("many", 360));
    let_rest();
    for threads in [1, 2] {
        let job = format!("hash check --threads={threads}");
        let counts = [&few, &many].map(|list| count(&strace, &job, std::slice::from_ref(list)));
        let [Some(few), Some(many)] = counts else {
            return;
        };
        let more = &many - &few;
        // A thread that starts reads some files.
        let most = 300 + PROBES + 24;
        for kinds in [OPENS, READS, STATS, CLOSES] {
            let made = more.of(kinds);
            assert!(made <= most, "{job}: {made} of {kinds:?}; {more:?}");
        }
    }
}

/// One small file costs a few milliseconds at most, so that what the start reads counts: the map of
/// its memory, by Rust's runtime, and no other file than the one that was asked for.
#[test]
fn a_start_reads_little() {
    let Some(strace) = tool("strace") else {
        return left_out("strace is not installed");
    };
    let place = TestTree::new();
    place.write("file", "abc");
    for job in ["hash", "hash --type=xxh3"] {
        let Some(calls) = count(&strace, job, &[place.join("file")]) else {
            return;
        };
        // A file that was written to a moment ago may be read until it is at rest.
        let (reads, opens) = (calls.of(READS), calls.of(OPENS));
        assert!(reads <= 5 && opens <= 5, "{job}: {calls:?}");
    }
}
