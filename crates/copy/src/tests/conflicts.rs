//! Random histories of a copy that does not come to its end, of edits at both ends, of restarts,
//! remounts, power cuts and lost records in between, against a model that knows which bytes may be
//! replaced. `BC_TEST_CASES=10000` makes as many.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bc_digest::Algorithm;
use bc_fs::known::file_clock;
use bc_pool::Cancel;
use bc_testkit::Rng;

use super::{Ground, journal, rewrite_journal};
use crate::resume::record;
use crate::{
    CopyOptions, CopyProgress, Durability, Event, ManifestPlace, OnConflict, Target, copy,
};

/// Histories of an ordinary run.
const FEW: usize = 60;

/// Files of the source; the last two are one.
const NAMES: [&str; 7] = ["a", "b", "c", "d/e", "d/f", "g", "d/h"];
const LINKED: [&str; 2] = ["g", "d/h"];

/// Bytes by path.
type Files = BTreeMap<String, Vec<u8>>;

struct History {
    ground: Ground,
    rng: Rng,
    options: CopyOptions,
    /// Contents that the copy has left under each name since its journal was begun.
    ours: BTreeMap<String, BTreeSet<Vec<u8>>>,
    /// Seconds since 1970 of the last change of a source: each has a time of its own.
    clock: u64,
    story: Vec<String>,
}

impl History {
    fn new(seed: u64) -> History {
        let ground = Ground::new();
        let mut rng = Rng::new(seed);
        let mut options = ground.options(&["from"], "to");
        options.target = Target::Exactly;
        options.algorithm = [
            Some(Algorithm::Blake3),
            None,
            Algorithm::from_name("xxh128"),
        ][rng.below(3) as usize];
        options.durability = Durability::ALL[rng.below(4) as usize];
        options.workers = 1 + rng.below(2) as usize;
        if rng.below(4) == 0 {
            options.manifest = ManifestPlace::None;
        }
        options.preserve.times = rng.below(5) != 0;
        options.preserve.links = rng.below(3) != 0;
        let mut history = History {
            ground,
            rng,
            options,
            ours: BTreeMap::new(),
            clock: 1_000_000_000,
            story: vec![format!("seed {seed}")],
        };
        for name in NAMES {
            history.change_source(name);
        }
        if history.rng.below(5) != 0 {
            // A conflict, for which the journal stays.
            let name = history.name();
            history
                .ground
                .write(&format!("to/{name}"), b"of the user from the start");
        }
        history
    }

    fn report(&mut self, text: impl Into<String>) {
        self.story.push(text.into());
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.rng.below(NAMES.len() as u64) as usize]
    }

    /// Short contents of few kinds, so that they meet, and those of several pieces.
    fn content(&mut self) -> Vec<u8> {
        let length = [1, 9, 9, 5000, 300_000][self.rng.below(5) as usize];
        let byte = 1 + self.rng.below(3) as u8;
        let mut content = vec![byte; length];
        content[length - 1] = 1 + self.rng.below(3) as u8;
        content
    }

    fn change_source(&mut self, name: &'static str) {
        let content = self.content();
        self.clock += 10;
        let path = self.ground.at("from").join(name);
        self.ground.write(&format!("from/{name}"), &content);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.clock);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
        if name == LINKED[1] {
            std::fs::remove_file(&path).unwrap();
            std::fs::hard_link(self.ground.at("from").join(LINKED[0]), &path).unwrap();
        }
    }

    fn files(&self, root: &str) -> Files {
        let mut all = Files::new();
        for name in NAMES {
            let path = self.ground.at(root).join(name);
            all.extend(
                std::fs::read(path)
                    .ok()
                    .map(|content| (name.to_owned(), content)),
            );
        }
        all
    }

    fn modified(&self, root: &str, name: &str) -> Option<SystemTime> {
        self.ground
            .at(root)
            .join(name)
            .metadata()
            .ok()?
            .modified()
            .ok()
    }

    /// Changes the destination as people, or other programs, do.
    fn change_destination(&mut self) {
        let name = self.name();
        let path = self.ground.at("to").join(name);
        let kind = self.rng.below(11);
        self.report(format!("{name}: change {kind}"));
        // An edit in the moment of the renaming looks like none.
        let begun = file_clock();
        while file_clock() == begun {
            std::thread::yield_now();
        }
        let Ok(content) = std::fs::read(&path) else {
            let content = self.content();
            return self.ground.write(&format!("to/{name}"), &content);
        };
        let file = File::options().write(true).open(&path).unwrap();
        let time = file.metadata().unwrap().modified().unwrap();
        let at = self.rng.below(content.len().max(1) as u64);
        match kind {
            0 => file.write_all_at(b"\x09", at).unwrap(),
            1 => {
                file.write_all_at(b"\x09", at).unwrap();
                file.set_modified(time).unwrap();
            }
            2 => file.write_all_at(b"more", content.len() as u64).unwrap(),
            3 => file.set_len(at).unwrap(),
            4 => file
                .write_all_at(&vec![0; content.len().saturating_sub(at as usize)], at)
                .unwrap(),
            5 => {
                let own = self.content();
                self.ground.write("to/own", &own);
                std::fs::rename(self.ground.at("to/own"), &path).unwrap();
            }
            6 => std::fs::remove_file(&path).unwrap(),
            7 => file.set_modified(SystemTime::now()).unwrap(),
            8 => {
                let mut permissions = file.metadata().unwrap().permissions();
                std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o640);
                file.set_permissions(permissions).unwrap();
            }
            9 => {
                // The same bytes in another file, with the same time.
                std::fs::remove_file(&path).unwrap();
                std::fs::write(&path, &content).unwrap();
                let file = File::options().write(true).open(&path).unwrap();
                file.set_modified(time).unwrap();
            }
            _ => {
                // Through another name, which it keeps.
                let other = self.ground.at("other");
                let _ = std::fs::remove_file(&other);
                std::fs::hard_link(&path, &other).unwrap();
                file.write_all_at(b"\x07", at).unwrap();
                file.set_modified(time).unwrap();
            }
        }
    }

    /// Changes the journal as may happen between two runs.
    fn change_journal(&mut self) {
        if journal(&self.ground).is_none() {
            return;
        }
        let kind = self.rng.below(5);
        let cut = self.rng.below(12);
        self.report(format!("journal: change {kind}, {cut}"));
        let (mut nth, mut settled) = (0, self.rng.below(2) == 0);
        if self.options.durability == Durability::None && kind == 3 {
            settled = false;
        }
        rewrite_journal(&self.ground, |sort, body| {
            nth += 1;
            match (kind, sort) {
                (0, record::SESSION) => body[0] ^= 1,
                (1, record::SESSION) => body[16] ^= 1,
                (2, record::PLACED) => return false,
                (3, record::DONE | record::PLACED | record::BEGUN | record::DURABLE) => {
                    return nth < cut;
                }
                (3, record::SESSION) => body[0] ^= 1,
                _ => {}
            }
            if let (record::DONE, true) = (sort, settled) {
                // As if the source had been written long ago.
                body[56] = 1;
            }
            true
        });
    }

    /// Simulates a restart: blocks that had not come to the disk are zeros, or missing.
    fn tear(&mut self) {
        let name = self.name();
        let path = self.ground.at("to").join(name);
        let known = self.ours.get(name).cloned().unwrap_or_default();
        let Some(content) = std::fs::read(&path)
            .ok()
            .filter(|content| known.contains(content))
        else {
            return;
        };
        self.report(format!("{name}: torn"));
        let file = File::options().write(true).open(&path).unwrap();
        let time = file.metadata().unwrap().modified().unwrap();
        let at = self.rng.below(content.len().max(1) as u64);
        match self.rng.below(2) {
            0 => file.set_len(at).unwrap(),
            _ => file
                .write_all_at(&vec![0; content.len().saturating_sub(at as usize)], at)
                .unwrap(),
        }
        file.set_modified(time).unwrap();
    }

    /// Runs the copy and checks its effects against the rule.
    fn run(&mut self, policy: OnConflict) {
        let (source, before) = (self.files("from"), self.files("to"));
        let newer: BTreeSet<&str> = NAMES
            .into_iter()
            .filter(|name| self.modified("from", name) > self.modified("to", name))
            .collect();
        self.options.on_conflict = policy;
        self.options.restart = self.rng.below(8) == 0;
        let stop = match self.rng.below(3) {
            0 => self.rng.below(6) as usize,
            _ => usize::MAX,
        };
        self.report(format!("run: {policy:?} {} {stop}", self.options.restart));
        let (cancel, count, reported) =
            (Cancel::new(), AtomicUsize::new(0), Mutex::new(Vec::new()));
        let observer = |event: Event<'_>| {
            let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
            reported.lock().unwrap().push(match event {
                Event::Made(path) | Event::Copied(path) => format!("+ {}", shown(path)),
                Event::Replaced(path) => format!("~ {}", shown(path)),
                Event::Skipped(path, why) => format!("= {}: {}", shown(path), why.text()),
                Event::Failed(error) => format!("! {error}"),
                Event::Incomplete(error) => format!("? {error}"),
                Event::Nested(path) => format!("> {}", shown(path)),
                Event::Note(text) | Event::Warning(text) => format!("# {text}"),
            });
            if matches!(event, Event::Copied(_) | Event::Replaced(_))
                && count.fetch_add(1, Ordering::Relaxed) == stop
            {
                cancel.cancel(2);
            }
        };
        let copied = copy(&self.options, &cancel, &CopyProgress::default(), &observer).unwrap();
        let reported = reported.into_inner().unwrap();
        let after = self.files("to");
        let context = |name: &str| format!("{name}: {:#?}\n{reported:#?}\n{copied:?}", self.story);
        for (name, was) in &before {
            let now = after.get(name);
            let from = source.get(name);
            if now == Some(was) {
                continue;
            }
            assert_eq!(now, from, "{}", context(name));
            let is_ours = self.ours.get(name).is_some_and(|ours| ours.contains(was));
            let is_less = from.is_some_and(|from| {
                let mut pairs = was.iter().zip(from);
                was.len() <= from.len() && pairs.all(|(was, from)| was == from || *was == 0)
            });
            let is_said = match policy {
                OnConflict::Fail | OnConflict::Skip => false,
                OnConflict::Replace | OnConflict::Verify => true,
                OnConflict::Update => newer.contains(&name[..]),
            };
            assert!(is_ours || is_less || is_said, "replaced: {}", context(name));
        }
        if !cancel.is_cancelled() {
            for (name, from) in &source {
                let path = format!("to/{name}");
                let is_reported = |line: &String| {
                    let is_it = line.contains(&path) && !line.ends_with("done by an earlier run");
                    is_it && (line.starts_with("! ") || line.starts_with("= "))
                };
                let is_right = after.get(name) == Some(from) || reported.iter().any(is_reported);
                assert!(is_right, "unsaid: {}", context(name));
            }
        }
        match journal(&self.ground) {
            None => self.ours.clear(),
            Some(_) => {
                for (name, now) in &after {
                    let path = format!("to/{name}");
                    let is_given = |line: &String| {
                        (line.starts_with("+ ") || line.starts_with("~ ")) && line.ends_with(&path)
                    };
                    // An equal file is as good as copied.
                    if reported.iter().any(is_given) || source.get(name) == Some(now) {
                        self.ours
                            .entry(name.clone())
                            .or_default()
                            .insert(now.clone());
                    }
                }
            }
        }
    }

    fn end(mut self) {
        self.options.restart = false;
        self.options.on_conflict = OnConflict::Verify;
        let (copied, reported) = super::run(&self.options);
        let context = format!("{:#?}\n{reported:#?}", self.story);
        assert_eq!(copied.unwrap().failed, 0, "{context}");
        assert_eq!(self.files("to"), self.files("from"), "{context}");
        assert_eq!(self.ground.litter(), Vec::<PathBuf>::new(), "{context}");
    }
}

fn history(seed: u64) {
    let mut history = History::new(seed);
    for _ in 0..2 + history.rng.below(3) {
        let policy = match history.rng.below(2) {
            0 => OnConflict::Fail,
            _ => OnConflict::ALL[history.rng.below(5) as usize],
        };
        history.run(policy);
        for _ in 0..history.rng.below(4) {
            match history.rng.below(6) {
                0 | 1 => history.change_destination(),
                2 => {
                    let name = history.name();
                    history.change_source(name);
                    history.report(format!("{name}: other source"));
                }
                3 | 4 => history.change_journal(),
                _ => history.tear(),
            }
        }
    }
    history.end();
}

#[test]
fn nothing_of_the_users_is_replaced_unasked() {
    for seed in 0..bc_testkit::cases(FEW) as u64 {
        history(seed);
    }
}
