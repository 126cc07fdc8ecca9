//! Random jobs of the library, of every kind, whose options make sense or make none, one after the
//! other over one tree: with all there is, with few descriptors, where calls are refused, and on small
//! stacks. Each ends with a result or with an error that says why; none panics, and none leaves a
//! descriptor or a thread behind. In a process of its own, whose limits it may change.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{Builder, scope};

use bc_testkit::{Rng, TestTree};
use bit_crafts::{
    Action, Algorithm, Cancel, ChecksumFile, CopyOptions, CreateOptions, DiffOptions, DirsOptions,
    Equality, Error, ErrorKind, Globs, HashOptions, ManifestFile, ManifestPlace, Means,
    MoveOptions, OnConflict, Overwrite, PruneOptions, ReadBack, RestoreOptions, RunMode,
    ScanOptions, Search, Symlinks, TreeOptions, UndoJob, UniqueOptions, UpdateOptions,
    VerifyOptions, WalkOptions,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::alone;
use crate::denied::without;
use crate::descriptors::hold_all_but;

/// Jobs of each of the four kinds: few, as every test run does them all. `BC_TEST_POINTS` is the
/// number for whoever wants more: 1500 makes 6,000.
fn jobs() -> u64 {
    let asked = std::env::var("BC_TEST_POINTS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// Jobs that are done under one limit.
const TOGETHER: u64 = 10;

/// Stack of a thread that does jobs. Those of a build without optimisation take most of it.
const STACK: usize = 256 << 10;

fn tree() -> TestTree {
    let t = TestTree::new();
    for name in [
        "d/a",
        "d/b",
        "d/sub/c",
        "d/sub/deep/d",
        "e/a",
        "e/x",
        "w/1",
        "w/2",
        "m/1",
    ] {
        t.write(name, "same");
    }
    t.write("d/large", vec![7; 600_000]).write("d/one", "one");
    t.write("d/empty", "").fifo("d/fifo").dir("d/none");
    t.symlink("sub", "d/link").hard_link("d/a", "d/sub/again");
    t.write_bytes(b"d/\xff\n", "odd").dir("n");
    t.write("SUMS", "no list\n").write("text", "no manifest\n");
    t
}

/// One job after the other.
struct Jobs<'t> {
    t: &'t TestTree,
    rng: Rng,
}

impl Jobs<'_> {
    fn below(&mut self, end: u64) -> u64 {
        self.rng.below(end)
    }

    /// True once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn any<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }

    fn path(&mut self) -> PathBuf {
        let some = [
            "d", "d", "d", "e", "w", "d/a", "d/link", "d/fifo", "gone", "d\0a", "text",
        ];
        let name = self.any(&some);
        self.t.join(name)
    }

    fn paths(&mut self) -> Vec<PathBuf> {
        (0..self.below(4)).map(|_| self.path()).collect()
    }

    fn list(&mut self) -> PathBuf {
        let name = self.any(&["SUMS", "m1", "m2", "m1", "text", "d/fifo", "gone", "d"]);
        self.t.join(name)
    }

    fn walk(&mut self) -> Result<WalkOptions, Error> {
        let mut walk = WalkOptions::default();
        if self.once_in(4) {
            walk = walk.include(Globs::new(&[self.any(&["*", "*a", "sub/**", "[", ""])])?);
        }
        if self.once_in(4) {
            walk = walk.min_size(self.below(5)).max_size(Some(self.below(9)));
        }
        if self.once_in(6) {
            walk = walk.symlinks(Symlinks::Follow);
        }
        if self.once_in(6) {
            walk = walk.max_depth(Some(self.below(3) as u32));
        }
        Ok(walk)
    }

    fn hashes(&mut self) -> HashOptions {
        let count = self.below(4);
        let algorithms = (0..count).map(|_| self.any(Algorithm::ALL));
        HashOptions::new(algorithms.collect())
    }

    fn copy(&mut self) -> Result<CopyOptions, Error> {
        let to = self.any(&["to", "to/in", "gone/to", "d/inside", "e"]);
        let mut copy = CopyOptions::new(self.paths(), self.t.join(to))
            .on_conflict(self.any(&[OnConflict::Fail, OnConflict::Skip, OnConflict::Update]))
            .dry_run(self.once_in(3))
            .state(self.once_in(2).then(|| self.t.join("state")))
            .walk(self.walk()?);
        if self.once_in(4) {
            copy = copy.manifest(ManifestPlace::None).read_back(ReadBack::Read);
        }
        if self.once_in(6) {
            copy = copy.paths([self.any(&["a", "sub/c", "gone", "../x", ""])])?;
        }
        Ok(copy)
    }

    fn search(&mut self) -> Result<Search, Error> {
        let equality = self.any(&[Equality::Digest, Equality::Bytes]);
        let algorithm = self.any(&[Algorithm::Xxh128, Algorithm::Blake3, Algorithm::Crc32c]);
        let scan = ScanOptions::default().equality(equality);
        let mut search = Search::new(self.paths())
            .walk(self.walk()?)
            .scan(scan.algorithm(algorithm));
        if self.once_in(3) {
            search = search.references(self.paths());
        }
        if self.once_in(4) {
            search = search.cache(self.any(&["cache", "text", "gone/c"].map(|n| self.t.join(n))));
        }
        Ok(search)
    }

    /// Does one.
    fn go(&mut self) -> Result<(), Error> {
        let (cancel, calls) = (Cancel::new(), AtomicUsize::new(0));
        let stops = self.once_in(8);
        let mut means = Means::new();
        if self.once_in(2) {
            means = means.threads(self.below(9) as usize);
        }
        if self.once_in(3) {
            means = means.cancel(&cancel).progress(|_| {
                calls.fetch_add(1, Relaxed);
                if stops {
                    cancel.stop();
                }
            });
        } else if stops {
            cancel.stop();
            means = means.cancel(&cancel);
        }
        let (t, means) = (self.t, &means);
        match self.below(18) {
            0 => self.walk()?.run(self.paths(), means).map(drop),
            1 => self
                .hashes()
                .run(self.paths(), &self.walk()?, means)
                .map(drop),
            2 => {
                let (hashes, paths, walk) = (self.hashes(), self.paths(), self.walk()?);
                let each = |_| {
                    if stops {
                        cancel.stop();
                    }
                };
                hashes.run_each(paths, &walk, means, each).map(drop)
            }
            3 => self.search()?.duplicates(means).map(drop),
            4 => self.search()?.duplicates_each(means, drop).map(drop),
            5 => self
                .search()?
                .directories(&DirsOptions::new(), means)
                .map(drop),
            6 => self
                .search()?
                .unique(&UniqueOptions::new(), means)
                .map(drop),
            7 => {
                let action = self.any(&[Action::Hardlink, Action::Reflink]);
                let mode = self.any(&[RunMode::DryRun, RunMode::Execute]);
                let prune = PruneOptions::new(action).mode(mode);
                let journal = self.once_in(2).then(|| t.join("journal"));
                let search = Search::new([t.join("w"), t.join("d")]);
                prune.journal(journal).run(&search, means).map(drop)
            }
            8 => UndoJob::new(t.join(self.any(&["journal", "text", "gone"])))
                .run(means)
                .map(drop),
            9 => {
                let (root, walk) = (self.path(), self.walk()?);
                let record = CreateOptions::new(&root, self.any(Algorithm::ALL));
                let record = record.tree(TreeOptions::of_walk(&walk));
                record.write_to(Vec::new(), means).map(drop)
            }
            10 => {
                let (root, name) = (self.path(), self.any(&["m1", "m2", "gone/m", "text"]));
                let overwrite = self.any(&[Overwrite::Never, Overwrite::Always]);
                let record = CreateOptions::new(&root, Algorithm::Blake3).overwrite(overwrite);
                record.run_to(t.join(name), means).map(drop)
            }
            11 => {
                let (root, manifest) = (self.path(), ManifestFile::open(self.list())?);
                VerifyOptions::new(&root, &manifest).run(means).map(drop)
            }
            12 => {
                let (root, manifest) = (self.path(), self.list());
                UpdateOptions::new(&root, &manifest).run(means).map(drop)
            }
            13 => {
                let [old, new] = [self.list(), self.list()].map(ManifestFile::open);
                DiffOptions::new(&old?, &new?).run(means).map(drop)
            }
            14 => {
                let list = self.any(&["SUMS", "m1", "text", "gone", "d"]);
                ChecksumFile::new(t.join(list)).run(means).map(drop)
            }
            15 => self.copy()?.run(means).map(drop),
            16 => {
                let (from, to) = self.any(&[("m/1", "n"), ("n/1", "m"), ("gone", "n")]);
                let copy = CopyOptions::new([t.join(from)], t.join(to));
                MoveOptions::new(copy.dry_run(self.once_in(3)))
                    .run(means)
                    .map(drop)
            }
            _ => {
                let (root, manifest) = (self.path(), ManifestFile::open(self.list())?);
                let restore = RestoreOptions::new(&root, &manifest).from(self.paths());
                restore.dry_run(self.once_in(2)).run(means).map(drop)
            }
        }
    }
}

/// Does jobs with these numbers.
fn done(t: &TestTree, numbers: Range<u64>) {
    for number in numbers {
        let rng = Rng::new(number);
        let mut jobs = Jobs { t, rng };
        match catch_unwind(AssertUnwindSafe(|| jobs.go())) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                assert_ne!(error.kind(), ErrorKind::Panic, "job {number}: {error}");
                assert!(!error.to_string().is_empty(), "job {number}");
            }
            Err(_) => panic!("job {number} panicked"),
        }
    }
}

/// Open descriptors and threads of this process.
fn held() -> (usize, usize) {
    let count = |dir: &str| std::fs::read_dir(dir).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

/// Calls that systems refuse, and with what.
const REFUSED: [(&[libc::c_long], i32); 16] = [
    (&[libc::SYS_openat], libc::EACCES),
    (&[libc::SYS_openat], libc::EMFILE),
    (&[libc::SYS_statx], libc::ENOSYS),
    (&[libc::SYS_getdents64], libc::EIO),
    (&[libc::SYS_read, libc::SYS_pread64], libc::EIO),
    (&[libc::SYS_fstat], libc::EOVERFLOW),
    (&[libc::SYS_io_uring_setup], libc::EPERM),
    (&[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN),
    (&[libc::SYS_fcntl], libc::EINVAL),
    (&[libc::SYS_linkat, libc::SYS_symlinkat], libc::EPERM),
    (&[libc::SYS_renameat2], libc::EINVAL),
    (&[libc::SYS_mkdirat], libc::EROFS),
    (&[libc::SYS_fsync, libc::SYS_fdatasync], libc::EIO),
    (&[libc::SYS_write, libc::SYS_pwrite64], libc::ENOSPC),
    (&[libc::SYS_fchmod, libc::SYS_utimensat], libc::EPERM),
    (&[libc::SYS_unlinkat], libc::EBUSY),
];

#[test]
fn random_jobs_end_with_a_result_or_an_error() {
    if !alone("library_random::random_jobs_end_with_a_result_or_an_error") {
        return;
    }
    let limit = Rlimit {
        current: Some(256),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let (t, count, mut rng) = (tree(), jobs(), Rng::new(0));
    let batches = |nth: u64| {
        let all = nth * count..(nth + 1) * count;
        all.step_by(TOGETHER as usize)
            .map(|first| first..first + TOGETHER)
    };
    let before = held();
    done(&t, 0..count);
    for batch in batches(1) {
        let few = hold_all_but(rng.below(40) as usize);
        done(&t, batch);
        drop(few);
    }
    for batch in batches(2) {
        let (calls, errno) = REFUSED[rng.below(REFUSED.len() as u64) as usize];
        without(calls, errno, || done(&t, batch));
    }
    for batch in batches(3) {
        let thread = Builder::new().stack_size(STACK);
        scope(|scope| {
            let thread = thread.spawn_scoped(scope, || done(&t, batch)).unwrap();
            thread.join().unwrap();
        });
    }
    // A thread that was joined may be listed for a moment.
    for _ in 0..1000 {
        if held() <= before {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!(
        "{:?} descriptors and threads, {before:?} at the start",
        held()
    );
}
