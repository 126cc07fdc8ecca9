//! Interrupted runs that are resumed: they give the same result as a run that was not interrupted,
//! whatever happened to the files and the journal meanwhile.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bc_digest::{Algorithm, Digest};
use bc_edit::journal::push;
use bc_fs::place::Place;
use bc_read::Plan;
use bc_testkit::{Rng, TestTree, full_disk, left_out};
use bc_walk::{EntryId, Error, FileStat, Listing};

use super::*;
use crate::{DigestSink, HashOptions, HashProgress, Taken, hash_listing, hash_with};

type Digests = BTreeMap<Vec<u8>, Vec<String>>;

/// A tree, and a journal beside it.
struct Ground {
    tree: TestTree,
    algorithms: Vec<Algorithm>,
    reported: Arc<Mutex<Vec<String>>>,
}

/// Every file is recorded at once.
const AT_ONCE: Pace = Pace {
    after: Duration::ZERO,
    every: Duration::ZERO,
    piece: 0,
    early: 0,
};

impl Ground {
    fn new() -> Ground {
        Ground {
            tree: TestTree::new(),
            algorithms: vec![Algorithm::Sha256],
            reported: Arc::default(),
        }
    }

    fn journal(&self) -> PathBuf {
        self.tree.scratch("out.partial")
    }

    /// Returns options for a later run: no program can set a ctime, so that a file that was written
    /// just now has to be old for it.
    fn options(&self, earlier: Earlier) -> ResumeOptions {
        let reported = Arc::clone(&self.reported);
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        let out = Place::find(self.tree.scratch("out")).unwrap();
        ResumeOptions {
            place: out.beside(".partial").unwrap(),
            state: Some(self.tree.scratch("state")),
            job: JobInputs::default().with("root", "tree"),
            algorithms: self.algorithms.clone(),
            earlier,
            pace: AT_ONCE,
            now: (now + Duration::from_secs(10)).as_nanos() as i64,
            report: Box::new(move |why| reported.lock().unwrap().push(why.to_owned())),
        }
    }

    fn begin(&self, options: ResumeOptions) -> (Arc<Resume>, Beginning) {
        let (resume, beginning) = Resume::begin(options, &Cancel::new()).unwrap();
        (Arc::new(resume), beginning)
    }

    fn going_on(&self) -> (Arc<Resume>, Beginning) {
        self.begin(self.options(Earlier::GoOn))
    }

    fn refused(&self, options: ResumeOptions) -> String {
        let before = std::fs::read(self.journal()).unwrap();
        let why = Resume::begin(options, &Cancel::new()).unwrap_err();
        assert_eq!(std::fs::read(self.journal()).unwrap(), before);
        why.to_string()
    }

    fn listing(&self) -> Listing {
        let walk = bc_walk::WalkOptions::default();
        bc_walk::walk(&[self.tree.path()], &walk, 1, &Cancel::new()).unwrap()
    }

    fn hash_options(&self, resume: Option<&Arc<Resume>>, workers: usize) -> HashOptions {
        let mut options = HashOptions::new(self.algorithms.clone());
        (options.resume, options.workers) = (resume.cloned(), workers);
        // Whatever was written just now would be read more than once.
        options.read.changed = bc_read::Changed::Allow;
        options
    }

    /// Returns all digests, and the counts of files that were not read.
    fn hashed(&self, resume: Option<&Arc<Resume>>, workers: usize) -> (Digests, Taken) {
        let listing = self.listing();
        let options = self.hash_options(resume, workers);
        let hashes =
            hash_listing(&listing, &options, &Cancel::new(), &HashProgress::default()).unwrap();
        assert_eq!(hashes.errors().count(), 0);
        assert_eq!(hashes.totals().read.files, listing.len() as u64);
        let digests = listing.ids().map(|id| {
            let digests = hashes.digests(id).unwrap();
            let digests = digests.map(|digest| digest.to_string()).collect();
            (listing.path(id), digests)
        });
        (digests.collect(), hashes.totals().taken)
    }

    /// Runs until so many files are done.
    fn interrupted(&self, resume: &Arc<Resume>, workers: usize, after: u64) {
        struct Stop<'a>(&'a AtomicU64, u64, &'a Cancel);
        impl DigestSink for Stop<'_> {
            fn file(&mut self, _: EntryId, _: Result<(&FileStat, &[Digest]), Error>) {
                if self.0.fetch_add(1, Ordering::Relaxed) + 1 >= self.1 {
                    self.2.cancel(2);
                }
            }
        }
        let (listing, cancel, count) = (self.listing(), Cancel::new(), AtomicU64::new(0));
        let options = self.hash_options(Some(resume), workers);
        let plan = Plan::all(&listing, workers);
        let sink = |_| Stop(&count, after, &cancel);
        let progress = HashProgress::default();
        hash_with(&listing, &plan, &options, &cancel, &progress, sink).unwrap();
    }

    /// True if inode and times prove a content here.
    fn proves(&self) -> bool {
        let file = std::fs::File::open(self.tree.path()).unwrap();
        let meta = file.metadata().unwrap();
        let traits = bc_fs::mount::traits_or_unknown(&file, meta.dev());
        let proves = traits.identity_proves_content(meta.ino());
        if !proves {
            left_out(&format!("{} proves no content", traits.name));
        }
        proves
    }

    /// Waits until later changes have another ctime than earlier ones.
    fn let_the_clock_tick(&self) {
        let probe = self.tree.scratch("probe");
        let ctime = || {
            std::fs::write(&probe, "x").unwrap();
            let meta = probe.metadata().unwrap();
            (meta.ctime(), meta.ctime_nsec())
        };
        let first = ctime();
        while ctime() == first {
            std::fs::remove_file(&probe).unwrap();
        }
    }

    fn reported(&self) -> Vec<String> {
        self.reported.lock().unwrap().clone()
    }
}

fn plant(tree: &TestTree, rng: &mut Rng, files: u64) {
    for n in 0..files {
        let len = match rng.below(8) {
            0 => 0,
            1 => 100_000 + rng.below(300_000),
            _ => 1 + rng.below(3000),
        };
        let name = format!("d{}/f{n:03}", rng.below(5));
        tree.write(&name, rng.bytes(len as usize));
        if rng.below(6) == 0 {
            tree.hard_link(&name, format!("link{n}"));
        }
    }
}

/// Changes some of the files in one way or another.
fn change(tree: &TestTree, rng: &mut Rng) {
    let names: Vec<PathBuf> = (0..5)
        .flat_map(|n| {
            std::fs::read_dir(tree.join(format!("d{n}")))
                .into_iter()
                .flatten()
        })
        .map(|entry| entry.unwrap().path())
        .collect();
    for path in names {
        let len = path.metadata().unwrap().len() as usize;
        match rng.below(12) {
            0 => std::fs::write(&path, rng.bytes(len)).unwrap(),
            1 => std::fs::write(&path, rng.bytes(len + 1)).unwrap(),
            2 => std::fs::remove_file(&path).unwrap(),
            3 => {
                let new = path.with_extension("new");
                std::fs::write(&new, rng.bytes(len)).unwrap();
                let times = |path: &Path| path.metadata().unwrap().modified().unwrap();
                let file = std::fs::File::options().append(true).open(&new).unwrap();
                // With the times of the one that it replaces.
                file.set_modified(times(&path)).unwrap();
                std::fs::rename(&new, &path).unwrap();
            }
            4 => {
                let time = path.metadata().unwrap().modified().unwrap();
                std::fs::write(&path, rng.bytes(len)).unwrap();
                let file = std::fs::File::options().append(true).open(&path).unwrap();
                file.set_modified(time).unwrap();
            }
            5 => std::fs::rename(&path, path.with_extension("moved")).unwrap(),
            _ => {}
        }
    }
    tree.write("added", rng.bytes(700));
}

#[test]
fn a_resumed_run_equals_one_that_was_not_interrupted() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut ground = Ground::new();
        if !ground.proves() {
            return;
        }
        if seed % 3 == 0 {
            ground.algorithms = vec![Algorithm::Md5, Algorithm::Blake3];
        }
        plant(&ground.tree, &mut rng, 60);
        let workers = 1 + (seed % 3) as usize;
        let mut taken = 0;
        // Several times interrupted.
        for round in 0..3 {
            let (resume, beginning) = ground.going_on();
            match beginning {
                Beginning::New => assert_eq!(round, 0, "seed {seed}"),
                Beginning::GoesOn { files, .. } => assert!(files > 0, "seed {seed}"),
                other => panic!("{other:?}"),
            }
            ground.interrupted(&resume, workers, 15 + 15 * round);
            assert!(resume.is_kept());
            drop(resume);
            ground.let_the_clock_tick();
            change(&ground.tree, &mut rng);
            ground.let_the_clock_tick();
        }
        let (resume, _) = ground.going_on();
        let created = resume.created_at();
        let (found, of_earlier) = ground.hashed(Some(&resume), workers);
        taken += of_earlier.files;
        assert_eq!(found, ground.hashed(None, 1).0, "seed {seed}");
        assert!(taken > 5, "seed {seed}: {taken}");
        assert!(created <= ground.options(Earlier::GoOn).now);
        resume.done();
        assert!(!ground.journal().exists());
        assert_eq!(ground.reported(), Vec::<String>::new());
    }
}

/// Checks every state that a kill may leave: some first part of the journal.
#[test]
fn whatever_a_kill_leaves_can_be_gone_on_from() {
    let ground = Ground::new();
    plant(&ground.tree, &mut Rng::new(7), 24);
    let (resume, _) = ground.going_on();
    let expected = ground.hashed(Some(&resume), 1).0;
    drop(resume);
    let text = std::fs::read(ground.journal()).unwrap();
    let mut seen = Vec::new();
    for cut in (0..=text.len()).step_by(11).chain([text.len()]) {
        std::fs::write(ground.journal(), &text[..cut]).unwrap();
        let begun = Resume::begin(ground.options(Earlier::GoOn), &Cancel::new());
        // Without one whole record, there is nothing to resume from.
        let Ok((resume, _)) = begun else {
            assert!(cut < 200, "{cut}");
            continue;
        };
        let resume = Arc::new(resume);
        let (found, taken) = ground.hashed(Some(&resume), 1);
        assert_eq!(found, expected, "{cut}");
        seen.push(taken.files);
        drop(resume);
    }
    assert!(seen.is_sorted());
    if ground.proves() {
        assert!(*seen.last().unwrap() > 10);
    }
}

#[test]
fn damage_never_makes_a_wrong_digest() {
    let ground = Ground::new();
    plant(&ground.tree, &mut Rng::new(8), 12);
    let (resume, _) = ground.going_on();
    let expected = ground.hashed(Some(&resume), 1).0;
    drop(resume);
    let text = std::fs::read(ground.journal()).unwrap();
    let mut rng = Rng::new(9);
    let (mut refused, mut gone_on) = (0, 0);
    for round in 0..150 {
        let mut bad = text.clone();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(bad.len() as u64) as usize;
            match round % 3 {
                0 => bad[at] ^= 1 << rng.below(8),
                1 => bad[at] = rng.next_u64() as u8,
                _ => {
                    let end = (at + rng.below(200) as usize).min(bad.len());
                    let from = rng.below((bad.len() - (end - at)) as u64) as usize;
                    bad.copy_within(from..from + (end - at), at);
                }
            }
        }
        std::fs::write(ground.journal(), &bad).unwrap();
        match Resume::begin(ground.options(Earlier::GoOn), &Cancel::new()) {
            Err(_) => refused += 1,
            Ok((resume, _)) => {
                gone_on += 1;
                let found = ground.hashed(Some(&Arc::new(resume)), 1).0;
                assert_eq!(found, expected, "round {round}");
            }
        }
    }
    assert!(refused > 0 && gone_on > 50, "{refused} {gone_on}");
}

#[test]
fn another_run_does_not_go_on_from_it() {
    let ground = Ground::new();
    ground.tree.write("a", "abc");
    let (resume, _) = ground.going_on();
    ground.hashed(Some(&resume), 1);
    let busy = "another run is writing it";
    assert_eq!(ground.refused(ground.options(Earlier::GoOn)), busy);
    let (without, beginning) = ground.begin(ground.options(Earlier::SetAside));
    assert!(matches!(beginning, Beginning::Without(why) if why == busy));
    assert!(!without.is_kept());
    ground.hashed(Some(&without), 1);
    without.done();
    assert!(ground.journal().exists());
    drop(resume);
    let mut other = ground.options(Earlier::GoOn);
    other.job = JobInputs::default().with("root", "trees");
    assert_eq!(
        ground.refused(other),
        "of another run than this one: root: tree, now trees"
    );
    let mut other = ground.options(Earlier::GoOn);
    other.state = Some(ground.tree.scratch("elsewhere"));
    assert!(ground.refused(other).contains("its key is not known here"));
    let mut other = ground.options(Earlier::GoOn);
    other.state = None;
    assert!(ground.refused(other).contains("no directory for the key"));
    let (anew, beginning) = ground.begin(ground.options(Earlier::SetAside));
    assert!(matches!(beginning, Beginning::Kept { is_same: true }));
    assert!(ground.journal().exists() && anew.aside().is_none());
    anew.done();
    assert_eq!(anew.aside().unwrap(), "out.partial-1");
    assert!(ground.tree.scratch("out.partial-1").exists() && !ground.journal().exists());
    // It is not resumed from unasked, nor ignored without a message.
    let (_, beginning) = ground.going_on();
    assert!(matches!(beginning, Beginning::Anew(name) if name == "out.partial-1"));
}

#[test]
fn an_earlier_journal_stays_until_there_is_a_better_one() {
    let ground = Ground::new();
    let plant = |names: std::ops::Range<u32>| {
        for name in names {
            ground.tree.write(format!("{name:03}"), "abc");
        }
    };
    plant(0..40);
    if !ground.proves() {
        return;
    }
    let (resume, _) = ground.going_on();
    ground.hashed(Some(&resume), 1);
    drop(resume);
    let earlier = std::fs::read(ground.journal()).unwrap();
    let stays = |what: &str| {
        let now = std::fs::read(ground.journal()).unwrap();
        assert!(now == earlier, "{what}");
    };
    // Ended before it had a journal of its own: whether killed or asked to.
    for leaves in [true, false] {
        let mut options = ground.options(Earlier::SetAside);
        (options.pace.after, options.pace.early) = (Duration::from_secs(3600), 1 << 20);
        let (resume, beginning) = ground.begin(options);
        assert!(matches!(beginning, Beginning::Kept { is_same: true }));
        ground.hashed(Some(&resume), 2);
        assert!(resume.is_kept() && (!leaves || resume.leave()));
        drop(resume);
        stays("a young run");
    }
    // With one of its own, in which there is less.
    for name in 5..40 {
        ground.tree.remove(format!("{name:03}"));
    }
    let (resume, _) = ground.begin(ground.options(Earlier::SetAside));
    ground.hashed(Some(&resume), 1);
    assert!(ground.tree.scratch("out.partial-1").exists());
    stays("a short run");
    assert!(resume.leave() && !ground.tree.scratch("out.partial-1").exists());
    drop(resume);
    stays("a short run that was ended");
    // With more.
    plant(5..200);
    let (resume, _) = ground.begin(ground.options(Earlier::SetAside));
    ground.hashed(Some(&resume), 1);
    assert_eq!(resume.aside().unwrap(), "out.partial-1");
    assert!(std::fs::read(ground.journal()).unwrap().len() > earlier.len());
    assert!(std::fs::read(ground.tree.scratch("out.partial-1")).unwrap() == earlier);
    drop(resume);
    let (resume, beginning) = ground.going_on();
    assert!(matches!(
        beginning,
        Beginning::GoesOn {
            files: 200,
            lost: 0
        }
    ));
    resume.done();
    // Journals of another job do not help a run that resumes with this one.
    let mut other = ground.options(Earlier::GoOn);
    other.job = JobInputs::default().with("root", "trees");
    let (resume, _) = ground.begin(other);
    ground.hashed(Some(&resume), 1);
    drop(resume);
    let (resume, beginning) = ground.begin(ground.options(Earlier::SetAside));
    assert!(matches!(beginning, Beginning::Kept { is_same: false }));
    assert!(!resume.is_kept());
    ground.hashed(Some(&resume), 1);
    assert!(resume.is_kept() && resume.aside().is_some());
    drop(resume);
    let beginning = ground.going_on().1;
    assert!(matches!(beginning, Beginning::GoesOn { files: 200, .. }));
}

/// Checks that files whose bytes were in memory alone are read again: a power cut leaves the old
/// bytes, perhaps with the new times.
#[test]
fn another_boot_or_mount_leaves_what_was_on_the_disk() {
    let ground = Ground::new();
    if !ground.proves() {
        return;
    }
    ground.tree.write("a", "abc");
    let meta = ground.tree.join("a").metadata().unwrap();
    let file = std::fs::File::open(ground.tree.path()).unwrap();
    let mount = bc_fs::mount::mount_number(&file).unwrap_or(0);
    let stat = FileStat::from(&rustix::fs::stat(ground.tree.join("a")).unwrap());
    let digest = bc_digest::hash(Algorithm::Sha256, b"other");
    let this = Boot::this();
    if this.id == [0; 16] {
        return left_out("the kernel does not name this boot");
    }
    let ctime = meta.ctime() * 1_000_000_000 + meta.ctime_nsec();
    let (before, after) = (ctime - 60_000_000_000, ctime + 60_000_000_000);
    for (id, began_ns, mounted, taken) in [
        (this.id, before, mount, true),
        (this.id, before, mount + 1, false),
        (this.id, after, mount + 1, true),
        ([9; 16], before, mount, false),
        ([9; 16], after, mount, true),
        ([0; 16], before, mount, false),
    ] {
        let options = ground.options(Earlier::GoOn);
        let key = log::key(options.state.as_deref()).unwrap();
        let mut piece = Vec::new();
        record::push_job(&mut piece, 5, &options.job);
        record::push_session(&mut piece, &Boot { id, began_ns });
        push(&mut piece, 77, |body| body.push(1));
        record::push_device(&mut piece, stat.id.dev, mounted);
        record::push_file(&mut piece, &stat, &[digest]);
        drop(Journal::create(options.place, &key, &mut piece).unwrap());
        let (resume, _) = ground.going_on();
        assert_eq!(resume.created_at(), 5);
        let (found, of_earlier) = ground.hashed(Some(&resume), 1);
        assert_eq!(of_earlier.files == 1, taken, "{began_ns} {mounted}");
        let first = found.into_values().next().unwrap();
        assert_eq!(first[0] == digest.to_string(), of_earlier.files == 1);
        resume.done();
    }
}

/// Checks that kernels that number no mounts (before Linux 5.8) are not believed that two are one.
#[test]
fn mounts_without_numbers_are_not_known_to_be_one() {
    let ground = Ground::new();
    ground.tree.write("a", "abc");
    let stat = FileStat::from(&rustix::fs::stat(ground.tree.join("a")).unwrap());
    let this = Boot {
        id: [9; 16],
        began_ns: stat.stamp.ctime_ns - 60_000_000_000,
    };
    let digest = bc_digest::hash(Algorithm::Sha256, b"other");
    for (mount, expected) in [(3, true), (0, false)] {
        let options = ground.options(Earlier::GoOn);
        let key = log::key(options.state.as_deref()).unwrap();
        let mut piece = Vec::new();
        record::push_job(&mut piece, 5, &options.job);
        record::push_session(&mut piece, &this);
        record::push_device(&mut piece, stat.id.dev, mount);
        record::push_file(&mut piece, &stat, &[digest]);
        let journal = Journal::create(options.place, &key, &mut piece).unwrap();
        let lengths = vec![digest.as_bytes().len()];
        let loaded = known::load(&journal, lengths, this, &Cancel::new()).unwrap();
        let (mut buffer, mut digests) = (Vec::new(), Vec::new());
        let known = loaded.unwrap().known;
        let found = known.find(&stat, mount, &mut buffer, &mut digests);
        assert_eq!(found, expected, "{mount}");
        drop(journal);
        std::fs::remove_file(ground.journal()).unwrap();
    }
}

#[test]
fn what_was_written_just_now_is_neither_recorded_nor_taken() {
    let ground = Ground::new();
    ground.tree.write("a", "abc");
    let shortly = |earlier| {
        let mut options = ground.options(earlier);
        options.now -= 10_000_000_000;
        ground.begin(options).0
    };
    let resume = shortly(Earlier::GoOn);
    ground.hashed(Some(&resume), 1);
    assert!(!resume.is_kept());
    drop(resume);
    let (resume, _) = ground.going_on();
    ground.hashed(Some(&resume), 1);
    drop(resume);
    let resume = shortly(Earlier::GoOn);
    assert_eq!(ground.hashed(Some(&resume), 1).1, Taken::default());
}

#[test]
fn a_short_run_leaves_nothing_and_a_long_one_what_came_early_too() {
    let ground = Ground::new();
    plant(&ground.tree, &mut Rng::new(3), 40);
    let mut options = ground.options(Earlier::SetAside);
    (options.pace.after, options.pace.early) = (Duration::from_secs(3600), 1 << 20);
    let (resume, _) = ground.begin(options);
    ground.hashed(Some(&resume), 2);
    assert!(!resume.is_kept() && !ground.journal().exists());
    drop(resume);
    // Its time comes with the last file.
    for early in [0, 1 << 20] {
        let mut options = ground.options(Earlier::SetAside);
        options.pace.early = early;
        (options.pace.piece, options.pace.every) = (1 << 20, Duration::from_secs(3600));
        let (resume, _) = ground.begin(options);
        ground.hashed(Some(&resume), 2);
        assert_eq!(resume.is_kept(), ground.proves());
        resume.done();
        assert!(!ground.journal().exists());
    }
    assert_eq!(ground.reported(), Vec::<String>::new());
}

#[test]
fn a_run_whose_journal_cannot_be_made_goes_on_without() {
    let ground = Ground::new();
    plant(&ground.tree, &mut Rng::new(4), 20);
    if !ground.proves() {
        return;
    }
    let mut options = ground.options(Earlier::SetAside);
    options.state = None;
    let (resume, _) = ground.begin(options);
    assert_eq!(ground.hashed(Some(&resume), 2).0, ground.hashed(None, 1).0);
    assert_eq!(
        ground.reported(),
        ["create: there is no directory for the key of journals"]
    );
    assert!(!resume.is_kept());
}

#[test]
fn a_full_disk_keeps_what_was_written() {
    let disk = match full_disk(32 << 10) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let ground = Ground::new();
    if !ground.proves() {
        return;
    }
    plant(&ground.tree, &mut Rng::new(5), 600);
    let at = |mut options: ResumeOptions| {
        options.place = Place::find(disk.path().join("out.partial")).unwrap();
        ground.begin(options).0
    };
    let resume = at(ground.options(Earlier::GoOn));
    let expected = ground.hashed(Some(&resume), 2).0;
    let reported = ground.reported();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].starts_with("write: No space left on device"),
        "{reported:?}"
    );
    assert!(resume.is_kept());
    drop(resume);
    let resume = at(ground.options(Earlier::GoOn));
    let (found, taken) = ground.hashed(Some(&resume), 2);
    assert_eq!(found, expected);
    assert!(taken.files > 100, "{taken:?}");
    resume.done();
    assert!(!disk.path().join("out.partial").exists());
}
