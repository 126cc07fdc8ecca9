//! Nightly updates of a tree that is worked on at random, against a model that knows of each
//! content whether a program wrote it or a disk corrupted it. No damage is ever recorded as right,
//! nothing that was written is called damaged, and whatever is read and damaged is reported.
//!
//! `BC_TEST_CASES=1000` plays as many histories; a failure names its seed, which `BC_TEST_SEED`
//! plays again.

mod deeds;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use bc_digest::Algorithm;
use bc_fs::mount::{Inodes, traits_or_unknown};
use bc_integrity::change::{Change, Class};
use bc_integrity::{Conclusion, Damaged, ManifestFile, Reread, VerifyOptions, update, verify};
use bc_testkit::{Rng, TestTree, left_out};
use rustix::fs::{AtFlags, CWD, StatxFlags};

use crate::support::{THEN, an_update, lines, manifest_of, with_work};
use crate::unreadable::done_as_nobody;

/// Histories of the everyday run.
const EVERYDAY: usize = 28;

#[test]
fn no_night_takes_damage_for_right_or_work_for_damage() {
    let tree = TestTree::new();
    let dir = fs::File::open(tree.path()).unwrap();
    let traits = traits_or_unknown(&dir, tree.path().metadata().unwrap().dev());
    tree.write("trial", "");
    if traits.inodes != Inodes::Stable || born(&tree.join("trial")).is_none() {
        return left_out("a file system with lasting inode numbers and times of birth");
    }
    if let Ok(seed) = std::env::var("BC_TEST_SEED") {
        return History::new(seed.parse().expect("a number")).play();
    }
    for seed in 0..bc_testkit::cases(EVERYDAY) as u64 {
        let played = std::panic::catch_unwind(|| {
            History::new(seed).play();
        });
        assert!(played.is_ok(), "failed, see above: BC_TEST_SEED={seed}");
    }
}

/// Root reads closed files: as root the histories are played once more as nobody, whose deeds
/// include closing files.
#[test]
fn nor_does_a_user_who_cannot_read_every_file() {
    done_as_nobody("nights::no_night_takes_damage_for_right_or_work_for_damage");
}

fn born(path: &std::path::Path) -> Option<(i64, u32)> {
    let found = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    let known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    known.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec))
}

/// A file, under any number of names.
#[derive(Clone, Debug)]
struct Node {
    content: Vec<u8>,
    /// True if no program wrote its content.
    bad: bool,
    /// True if an update has reported that.
    known: bool,
    /// True if the last update saw this content and this time, and they were right.
    recorded: bool,
    /// True if not even the ctime shows that it is bad.
    silent: bool,
    /// Content when it was recorded, and its time then.
    was: (Vec<u8>, u64),
    mtime: u64,
    closed: bool,
}

/// A random history: the files, and the truth about each.
struct History {
    seed: u64,
    rng: Rng,
    tree: TestTree,
    manifest: PathBuf,
    nodes: Vec<Node>,
    files: BTreeMap<String, usize>,
    /// Paths of everything but files.
    others: BTreeSet<String>,
    contents: u64,
    clock: u64,
    night: i64,
    log: String,
}

impl History {
    fn new(seed: u64) -> History {
        let tree = TestTree::new();
        tree.dir("d").dir("e");
        let manifest = tree.scratch("m.jsonl");
        History {
            seed,
            rng: Rng::new(seed),
            manifest,
            tree,
            nodes: Vec::new(),
            files: BTreeMap::new(),
            others: BTreeSet::new(),
            contents: 0,
            clock: 2_000_000,
            night: 0,
            log: String::new(),
        }
    }

    fn play(&mut self) {
        for _ in 0..4 + self.rng.below(6) {
            self.create();
        }
        fs::write(&self.manifest, manifest_of(self.tree.path())).unwrap();
        self.all_recorded();
        for _ in 0..3 + self.rng.below(6) {
            self.night += 1;
            let _ = writeln!(self.log, "night {}", self.night);
            self.tick();
            for _ in 0..self.rng.below(3) {
                self.rot_silently();
            }
            for _ in 0..1 + self.rng.below(6) {
                self.step();
            }
            self.tell_apart();
            self.update();
            self.verify();
        }
    }

    fn entries(&self) -> BTreeMap<String, serde_json::Value> {
        let bytes = fs::read(&self.manifest).unwrap();
        let entries = lines(&bytes).into_iter();
        entries
            .filter(|line| line["type"] == "entry")
            .map(|line| (line["path"].as_str().unwrap().to_owned(), line))
            .collect()
    }

    /// A new file under a recorded name, of the recorded size and time, is damage by that alone: no
    /// time of birth distinguishes a new version from a damaged copy that was put in its place.
    fn tell_apart(&mut self) {
        let entries = self.entries();
        for (path, node) in self.files.clone() {
            let (was, is) = (entries.get(&path), &self.nodes[node]);
            let alike = was.is_some_and(|was| {
                was["size"] == is.content.len()
                    && was["mtime_ns"] == is.mtime * 1_000_000_000
                    && was["digest"] != History::digest(&is.content)[..]
            });
            if alike && !is.bad && !is.recorded && !is.closed {
                self.note(format!("touch {path}, which is new"));
                self.clock += 1;
                self.set_time(&path, self.clock);
                self.nodes[node].mtime = self.clock;
            }
        }
    }

    /// Waits until files are born later than what was recorded: the clock of the kernel has ticks.
    fn tick(&self) {
        let path = self.tree.scratch("tick");
        let time = |path: &PathBuf| {
            fs::write(path, "x").unwrap();
            let meta = path.metadata().unwrap();
            (meta.ctime(), meta.ctime_nsec())
        };
        let before = time(&path);
        while time(&path) == before {}
    }

    fn say(&self) -> String {
        format!("seed {}\n{}", self.seed, self.log)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.tree.join(path)
    }

    fn note(&mut self, text: String) {
        self.log.push_str("  ");
        self.log.push_str(&text);
        self.log.push('\n');
    }

    fn all_recorded(&mut self) {
        for node in self
            .nodes
            .iter_mut()
            .filter(|node| !node.closed && !node.bad)
        {
            node.recorded = true;
            node.was = (node.content.clone(), node.mtime);
        }
    }

    fn digest(content: &[u8]) -> String {
        bc_digest::hash(Algorithm::Sha256, content).to_string()
    }

    fn update(&mut self) {
        let reread = match self.rng.below(3) {
            0 => Reread::Fraction(1.0),
            1 => Reread::Fraction(0.3),
            _ => Reread::None,
        };
        let accepts = self.rng.below(12) == 0;
        let damaged = if accepts {
            Damaged::Accept
        } else {
            Damaged::Keep
        };
        self.note(format!("update {reread:?} {damaged:?}"));
        let what = an_update(self.tree.path().as_os_str(), &self.manifest)
            .reread(reread)
            .damaged(damaged)
            // Random work may leave nothing of what was.
            .root_check(bc_integrity::RootCheck::Forced)
            .now(THEN + self.night * 1_000_000_000);
        let mut changes: Vec<Change> = Vec::new();
        let done = with_work(2, |work| {
            update(&what, work, &mut |change| {
                changes.push(change.clone());
                Ok(())
            })
        });
        let done = done.unwrap_or_else(|error| panic!("{error}: {}", self.say()));
        let summary = done.summary;
        assert!(summary.reconciles(), "{summary:?}: {}", self.say());
        let damaged = self.damaged_of(&changes);
        for change in &changes {
            let _ = writeln!(self.log, "    {}", reported(change));
        }
        assert_eq!(summary.undecided, 0, "{}", self.say());
        let is_damaged = summary.conclusion() == Conclusion::Damaged;
        assert_eq!(is_damaged, !damaged.is_empty(), "{}", self.say());
        let entries = self.entries();
        let mut unread = 0;
        for (path, node) in &self.files {
            let node = &self.nodes[*node];
            let say = || format!("{path}: {}", self.say());
            let entry = entries.get(path).unwrap_or_else(|| panic!("{}", say()));
            let digest = History::digest(&node.content);
            let recorded = entry["digest"] == digest[..];
            if node.closed {
                unread += 1;
                assert!(!(node.bad && recorded), "recorded: {}", say());
                continue;
            }
            if !node.bad {
                assert!(!damaged.contains(path), "no damage: {}", say());
                assert!(recorded && entry["found"].is_null(), "{entry}: {}", say());
                continue;
            }
            let is_read = !node.silent || node.known || reread == Reread::Fraction(1.0);
            assert!(damaged.contains(path) || !is_read, "unreported: {}", say());
            let kept = !(accepts && damaged.contains(path));
            assert!(!recorded || !kept, "recorded: {}", say());
        }
        assert_eq!(summary.unread() > 0, unread > 0, "{}", self.say());
        for path in damaged {
            let node = &mut self.nodes[self.files[&path]];
            (node.known, node.bad) = (!accepts, !accepts);
        }
        self.all_recorded();
    }

    /// Paths that are reported as damaged, where they lie now.
    fn damaged_of(&self, changes: &[Change]) -> BTreeSet<String> {
        let damaged = changes
            .iter()
            .filter(|change| change.class == Class::Damaged);
        damaged
            .map(|change| String::from_utf8(change.now_at().to_vec()).unwrap())
            .collect()
    }

    /// Right after an update nothing differs but what is damaged, of which all is read.
    fn verify(&mut self) {
        let manifest = ManifestFile::open(&self.manifest).unwrap();
        let what = VerifyOptions::new(self.tree.path(), &manifest)
            .root_check(bc_integrity::RootCheck::Forced);
        let mut changes: Vec<Change> = Vec::new();
        let done = with_work(2, |work| {
            verify(&what, work, &mut |change| {
                changes.push(change.clone());
                Ok(())
            })
        });
        let done = done.unwrap_or_else(|error| panic!("{error}: {}", self.say()));
        assert!(done.summary.reconciles(), "{}", self.say());
        let text: Vec<String> = changes.iter().map(reported).collect();
        let say = || format!("{text:#?}: {}", self.say());
        let damaged = self.damaged_of(&changes);
        let bad: BTreeSet<String> = self
            .files
            .iter()
            .filter(|(_, node)| self.nodes[**node].bad && !self.nodes[**node].closed)
            .map(|(path, _)| path.clone())
            .collect();
        assert_eq!(damaged, bad, "verify: {}", say());
        let closed = |path: &[u8]| {
            let path = std::str::from_utf8(path).unwrap();
            self.files
                .get(path)
                .is_some_and(|node| self.nodes[*node].closed)
        };
        for change in &changes {
            let expected = change.class == Class::Damaged || closed(change.now_at());
            assert!(expected, "verify: {}", say());
        }
    }
}

fn reported(change: &Change) -> String {
    let to = change.to.as_deref().map(String::from_utf8_lossy);
    let path = String::from_utf8_lossy(&change.path);
    format!("{} {path} {to:?} {:?}", change.class.name(), change.reason)
}
