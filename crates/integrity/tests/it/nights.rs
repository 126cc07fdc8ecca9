//! Nightly updates of a tree that is worked on at random, against a model that knows of each content
//! whether somebody wrote it or a disk made it up. No damage is ever recorded as right, nothing that
//! was written is called damaged, and whatever is read and damaged is reported.
//!
//! `BC_TEST_POINTS=1000` plays as many histories; a failure names its seed, which `BC_TEST_SEED`
//! plays again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use bc_digest::Algorithm;
use bc_fs::mount::{Inodes, traits_or_unknown};
use bc_integrity::change::{Change, Class};
use bc_integrity::{Conclusion, Damaged, ManifestFile, Reread, VerifyOptions, update, verify};
use bc_testkit::{Rng, TestTree, is_root, left_out};
use rustix::fs::{AtFlags, CWD, StatxFlags};

use crate::support::{THEN, an_update, lines, manifest_of, resealed, with_work};

/// Those that found something once.
const SEEDS: [u64; 4] = [0, 1, 2, 3];

/// Histories that are played beside them.
fn histories() -> u64 {
    std::env::var("BC_TEST_POINTS").map_or(24, |count| count.parse().expect("a number"))
}

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
    let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
    let fresh = now.unwrap().as_nanos() as u64;
    let mut updates = 0;
    for seed in SEEDS
        .into_iter()
        .chain((0..histories()).map(|nth| fresh + nth))
    {
        let played = std::panic::catch_unwind(|| {
            let mut history = History::new(seed);
            history.play();
            history.reused
        });
        match played {
            Ok(reused) => updates += reused,
            Err(_) => panic!("failed, see above: BC_TEST_SEED={seed}"),
        }
    }
    eprintln!("{updates} new files had the inode number of a deleted one");
}

fn born(path: &std::path::Path) -> Option<(i64, u32)> {
    let found = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    let known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    known.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec))
}

/// A file, whatever names it has.
#[derive(Clone, Debug)]
struct Node {
    content: Vec<u8>,
    /// Nobody wrote it.
    bad: bool,
    /// An update has reported that.
    known: bool,
    /// The last update saw this content and this time, and they were right.
    recorded: bool,
    /// Not even the ctime tells that it is bad.
    silent: bool,
    /// What it held when it was recorded, and its time then.
    was: (Vec<u8>, u64),
    mtime: u64,
    closed: bool,
}

/// A random history: what is there, and what is true of it.
struct History {
    seed: u64,
    rng: Rng,
    tree: TestTree,
    manifest: PathBuf,
    nodes: Vec<Node>,
    files: BTreeMap<String, usize>,
    /// What is no file.
    others: BTreeSet<String>,
    contents: u64,
    clock: u64,
    night: i64,
    log: String,
    /// New files with the number of a deleted one.
    reused: u64,
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
            reused: 0,
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
    /// time of birth tells a new version from a damaged copy that was put in its place.
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

    /// A path where nothing is.
    fn free(&mut self) -> Option<String> {
        let dirs = ["", "d/", "e/"];
        let path = format!("{}n{}", dirs[self.rng.below(3) as usize], self.rng.below(6));
        let taken = self.files.contains_key(&path) || self.others.contains(&path);
        (!taken).then_some(path)
    }

    fn any(&mut self, test: impl Fn(&Node) -> bool) -> Option<(String, usize)> {
        let fitting: Vec<(String, usize)> = self
            .files
            .iter()
            .filter(|(_, node)| test(&self.nodes[**node]))
            .map(|(path, node)| (path.clone(), *node))
            .collect();
        let count = fitting.len() as u64;
        (count > 0).then(|| fitting[self.rng.below(count) as usize].clone())
    }

    /// Few sizes, so that files look alike.
    fn content(&mut self) -> Vec<u8> {
        self.contents += 1;
        let mut content = format!("{:08}", self.contents).into_bytes();
        content.resize([16, 16, 24][self.rng.below(3) as usize], b'.');
        content
    }

    /// Few times as well, as packages have them; or one of its own.
    fn time(&mut self) -> u64 {
        self.clock += 1;
        match self.rng.below(3) {
            0 => self.clock,
            _ => 1_000_000 + self.rng.below(2),
        }
    }

    fn put(&mut self, path: &str, content: &[u8], mtime: u64) -> usize {
        fs::write(self.at(path), content).unwrap();
        self.set_time(path, mtime);
        self.nodes.push(Node {
            content: content.to_vec(),
            bad: false,
            known: false,
            recorded: false,
            silent: false,
            was: (content.to_vec(), mtime),
            mtime,
            closed: false,
        });
        self.files.insert(path.to_owned(), self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn set_time(&self, path: &str, mtime: u64) {
        let time = UNIX_EPOCH + Duration::from_secs(mtime);
        let file = fs::File::options().write(true).open(self.at(path)).unwrap();
        file.set_modified(time).unwrap();
    }

    /// Other content in place, and the time put back.
    fn overwrite(&self, path: &str, content: &[u8], mtime: u64) {
        let file = fs::File::options().write(true).open(self.at(path)).unwrap();
        file.write_all_at(content, 0).unwrap();
        file.set_len(content.len() as u64).unwrap();
        self.set_time(path, mtime);
    }

    fn create(&mut self) {
        if let Some(path) = self.free() {
            let (content, mtime) = (self.content(), self.time());
            self.note(format!("create {path} {}", content.len()));
            self.put(&path, &content, mtime);
        }
    }

    fn step(&mut self) {
        match self.rng.below(18) {
            0 => self.create(),
            1 | 2 => self.edit(),
            3 | 4 => self.rename(),
            5 => self.rename_over(),
            6 | 7 => self.swap(),
            8 => self.link(),
            9 => self.touch(),
            10 | 11 => self.rot(),
            12 => self.delete(),
            13 | 14 => self.create_alike(),
            15 => self.change_kind(),
            16 => match self.rng.below(3) {
                0 => self.heal(),
                1 => self.put_aside(),
                _ => self.copy_known(),
            },
            _ => self.close_or_open(),
        }
    }

    fn edit(&mut self) {
        let Some((path, node)) = self.any(|node| !node.closed) else {
            return;
        };
        let content = self.content();
        self.clock += 1;
        let mtime = self.clock;
        if self.rng.below(2) == 0 {
            self.note(format!("edit {path}"));
            self.overwrite(&path, &content, mtime);
            let node = &mut self.nodes[node];
            (node.content, node.mtime) = (content, mtime);
            (node.bad, node.known, node.recorded) = (false, false, false);
            node.silent = false;
        } else {
            self.note(format!("replace {path}"));
            let spare = self.at("spare");
            fs::write(&spare, &content).unwrap();
            fs::rename(&spare, self.at(&path)).unwrap();
            self.put(&path, &content, mtime);
        }
    }

    fn move_to(&mut self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
        let node = self.files.remove(from).unwrap();
        self.files.insert(to.to_owned(), node);
    }

    fn rename(&mut self) {
        if let (Some((from, _)), Some(to)) = (self.any(|_| true), self.free()) {
            self.note(format!("mv {from} {to}"));
            self.move_to(&from, &to);
        }
    }

    fn rename_over(&mut self) {
        if let (Some((from, one)), Some((to, other))) = (self.any(|_| true), self.any(|_| true))
            && one != other
        {
            self.note(format!("mv {from} over {to}"));
            self.move_to(&from, &to);
        }
    }

    fn swap(&mut self) {
        if let (Some((a, one)), Some((b, other))) = (self.any(|_| true), self.any(|_| true))
            && one != other
        {
            self.note(format!("swap {a} {b}"));
            self.move_to(&a, "spare");
            self.move_to(&b, &a);
            self.move_to("spare", &b);
        }
    }

    fn link(&mut self) {
        if let (Some((from, node)), Some(to)) = (self.any(|_| true), self.free()) {
            self.note(format!("ln {from} {to}"));
            fs::hard_link(self.at(&from), self.at(&to)).unwrap();
            self.files.insert(to, node);
        }
    }

    /// What is damaged and not known to be looks like an edit from then on.
    fn touch(&mut self) {
        let Some((path, node)) = self.any(|node| !node.closed) else {
            return;
        };
        self.note(format!("touch {path}"));
        self.clock += 1;
        self.set_time(&path, self.clock);
        let node = &mut self.nodes[node];
        (node.mtime, node.recorded) = (self.clock, false);
        node.bad &= node.known;
    }

    fn rotten(&mut self, content: &[u8]) -> Vec<u8> {
        self.contents += 1;
        let mut rotten = content.to_vec();
        rotten[..8].copy_from_slice(format!("{:08}", self.contents).as_bytes());
        rotten[8] = b'!';
        rotten
    }

    fn spoil(&mut self, path: &str, node: usize) {
        let (content, mtime) = (self.nodes[node].content.clone(), self.nodes[node].mtime);
        let rotten = self.rotten(&content);
        self.overwrite(path, &rotten, mtime);
        let node = &mut self.nodes[node];
        node.was = (content, mtime);
        (node.content, node.bad, node.recorded) = (rotten, true, false);
    }

    fn rot(&mut self) {
        if let Some((path, node)) = self.any(|node| node.recorded && !node.closed) {
            self.note(format!("rot {path}"));
            self.spoil(&path, node);
        }
    }

    /// As a disk does it: the manifest, made to say so, has the ctime of now.
    fn rot_silently(&mut self) {
        let found = self.any(|node| node.recorded && !node.closed);
        let Some((path, node)) = found else { return };
        self.note(format!("rot {path}, unseen"));
        self.spoil(&path, node);
        self.nodes[node].silent = true;
        let meta = self.at(&path).metadata().unwrap();
        let ctime = meta.ctime() * 1_000_000_000 + meta.ctime_nsec();
        let bytes = fs::read(&self.manifest).unwrap();
        let names: Vec<&String> = self
            .files
            .iter()
            .filter(|f| *f.1 == node)
            .map(|f| f.0)
            .collect();
        let changed = resealed(&bytes, |lines| {
            for line in lines {
                let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
                let is = |path: &&&String| entry["path"] == ***path;
                if names.iter().any(|path| is(&path)) {
                    entry["ctime_ns"] = ctime.into();
                    *line = entry.to_string();
                }
            }
        });
        fs::write(&self.manifest, changed).unwrap();
    }

    fn delete(&mut self) {
        if let Some((path, _)) = self.any(|_| true) {
            self.note(format!("rm {path}"));
            fs::remove_file(self.at(&path)).unwrap();
            self.files.remove(&path);
        }
    }

    /// A new file in place of a deleted one, of its size and time and perhaps with its number.
    fn create_alike(&mut self) {
        let (Some((old, node)), Some(path)) = (self.any(|_| true), self.free()) else {
            return;
        };
        let (mtime, size) = (self.nodes[node].mtime, self.nodes[node].content.len());
        let ino = self.at(&old).metadata().unwrap().ino();
        fs::remove_file(self.at(&old)).unwrap();
        self.files.remove(&old);
        let mut content = self.content();
        content.resize(size, b'.');
        self.put(&path, &content, mtime);
        let same = self.at(&path).metadata().unwrap().ino() == ino;
        self.reused += u64::from(same);
        self.note(format!(
            "rm {old}, create {path} alike, same number: {same}"
        ));
    }

    fn change_kind(&mut self) {
        let other = self.others.iter().next().cloned();
        match other.filter(|_| self.rng.below(2) == 0) {
            Some(path) => {
                self.note(format!("{path} becomes a file"));
                let at = self.at(&path);
                fs::remove_dir(&at)
                    .or_else(|_| fs::remove_file(&at))
                    .unwrap();
                self.others.remove(&path);
                let (content, mtime) = (self.content(), self.time());
                self.put(&path, &content, mtime);
            }
            None => {
                let Some((path, _)) = self.any(|_| true) else {
                    return;
                };
                self.note(format!("{path} becomes another kind"));
                fs::remove_file(self.at(&path)).unwrap();
                self.files.remove(&path);
                match self.rng.below(2) {
                    0 => fs::create_dir(self.at(&path)).unwrap(),
                    _ => std::os::unix::fs::symlink("nowhere", self.at(&path)).unwrap(),
                }
                self.others.insert(path);
            }
        }
    }

    /// The content that was recorded is put back.
    fn heal(&mut self) {
        if let Some((path, node)) = self.any(|node| node.bad && !node.closed) {
            self.note(format!("heal {path}"));
            let (content, mtime) = self.nodes[node].was.clone();
            self.overwrite(&path, &content, mtime);
            let node = &mut self.nodes[node];
            (node.content, node.mtime) = (content, mtime);
            (node.bad, node.known, node.silent) = (false, false, false);
        }
    }

    /// What is known to be damaged gets another name, and a good copy its own.
    fn put_aside(&mut self) {
        if let (Some((path, node)), Some(to)) = (self.any(|node| node.known), self.free()) {
            self.note(format!("mv {path} {to}, good copy in its place"));
            self.move_to(&path, &to);
            let (content, mtime) = self.nodes[node].was.clone();
            let mtime = match self.rng.below(2) {
                0 => mtime,
                _ => self.time(),
            };
            self.put(&path, &content, mtime);
        }
    }

    fn copy_known(&mut self) {
        if let (Some((path, node)), Some(to)) = (self.any(|n| n.known && !n.closed), self.free()) {
            self.note(format!("cp {path} {to}"));
            let content = self.nodes[node].content.clone();
            let mtime = self.time();
            let copy = self.put(&to, &content, mtime);
            (self.nodes[copy].bad, self.nodes[copy].known) = (true, true);
            self.nodes[copy].was = self.nodes[node].was.clone();
        }
    }

    fn close_or_open(&mut self) {
        if is_root() {
            return;
        }
        if let Some((path, node)) = self.any(|_| true) {
            let closed = !self.nodes[node].closed;
            self.note(format!("chmod {path} {}", if closed { "0" } else { "644" }));
            let mode = fs::Permissions::from_mode(if closed { 0 } else { 0o644 });
            fs::set_permissions(self.at(&path), mode).unwrap();
            self.nodes[node].closed = closed;
        }
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
            let _ = writeln!(self.log, "    {}", told(change));
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
        let text: Vec<String> = changes.iter().map(told).collect();
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

fn told(change: &Change) -> String {
    let to = change.to.as_deref().map(String::from_utf8_lossy);
    let path = String::from_utf8_lossy(&change.path);
    format!("{} {path} {to:?} {:?}", change.class.name(), change.reason)
}
