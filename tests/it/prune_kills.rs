//! Random trees, pruned and undone by processes that are killed at random system calls, one after the
//! other: every content stands under a name, no name is missing but those that were to go, nothing of
//! a reference is touched, and undo gives back all of it. `BC_TEST_CASES=5000` makes as many kills.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use bc_testkit::{Rng, TestTree};

use crate::common::Bc;
use crate::copy_trees::figures;
use crate::strace;

/// Calls that change something.
const CALLS: [&str; 14] = [
    "renameat2",
    "linkat",
    "symlinkat",
    "unlinkat",
    "mkdirat",
    "mknodat",
    "pwrite64",
    "ftruncate",
    "fsync",
    "fdatasync",
    "fchmod",
    "fchownat",
    "utimensat",
    "ioctl",
];

/// Calls that runs of an action make often: to wait for others is mostly in vain.
const OFTEN: [(&str, &[&str]); 4] = [
    ("=hardlink", &["renameat2", "linkat", "unlinkat"]),
    ("=symlink", &["renameat2", "symlinkat", "unlinkat"]),
    ("=delete", &["renameat2", "unlinkat"]),
    (
        "=move",
        &["renameat2", "mkdirat", "unlinkat", "fchmod", "utimensat"],
    ),
];

/// Calls that prune makes, whatever the action.
const ALWAYS: [&str; 3] = ["pwrite64", "fsync", "ioctl"];

/// Calls that undo makes.
const UNDO: [&str; 8] = [
    "renameat2",
    "linkat",
    "unlinkat",
    "fsync",
    "ioctl",
    "fchmod",
    "utimensat",
    "mkdirat",
];

fn upto(rng: &mut Rng, n: u64) -> u64 {
    rng.below(n)
}

fn one_in(rng: &mut Rng, n: u64) -> bool {
    upto(rng, n) == 0
}

/// Some of a few contents under many names, several of them hard links, and copies of directories.
fn tree(rng: &mut Rng, place: &Path) -> TestTree {
    let t = TestTree::new_in(place);
    let content = |nth: u64| vec![b'a' + nth as u8; 1 + (nth as usize * 4099) % 21_000];
    let mut names: Vec<String> = Vec::new();
    for nth in 0..4 + upto(rng, 14) {
        let dirs = ["in", "in/x", "in/x/y", "in/z", "also", "ref"];
        let name = format!("{}/f{nth}", dirs[upto(rng, 6) as usize]);
        // A name that no search comes to is found by nobody.
        let top = |name: &str| name.split('/').next().map(str::to_owned);
        let alike = names.iter().filter(|other| top(other) == top(&name));
        let alike: Vec<String> = alike.cloned().collect();
        match alike.len() as u64 {
            count if count > 0 && one_in(rng, 3) => {
                t.hard_link(&alike[upto(rng, count) as usize], &name);
            }
            _ => {
                t.write(&name, content(upto(rng, 4)));
                t.mode(&name, [0o644, 0o644, 0o644, 0o600][upto(rng, 4) as usize]);
                t.mtime(&name, 1_000_000_000 + upto(rng, 2) as i64, 7);
            }
        }
        names.push(name);
    }
    for nth in 0..1 + upto(rng, 5) {
        let name = format!("in/copy1/{}/g{nth}", nth % 2);
        t.write(&name, content(upto(rng, 6)));
        // What was written just now is waited for.
        t.mtime(&name, 1_100_000_000 + nth as i64, 3);
    }
    if one_in(rng, 2) {
        t.hard_link("in/copy1/0/g0", "in/copy1/link");
    }
    t.symlink("0/g0", "in/copy1/symbolic")
        .dir("in/copy1/void")
        .dir("in/deep/copy2");
    t.run("cp")
        .args(["-a", "in/copy1/.", "in/deep/copy2"])
        .go()
        .code(0);
    t.dir("ref").dir("also").dir("in");
    t
}

/// The arguments of a run.
fn line(rng: &mut Rng, other: Option<&Path>) -> String {
    let elsewhere = other.map_or("move:../moved".to_owned(), |other| {
        format!("move:{}", other.display())
    });
    let dirs = one_in(rng, 3);
    let actions = match dirs {
        true => vec!["delete".to_owned(), "move:../moved".to_owned()],
        false => vec![
            "delete".to_owned(),
            "hardlink".to_owned(),
            "hardlink --ignore-metadata".to_owned(),
            "symlink --ignore-metadata".to_owned(),
            "move:../moved".to_owned(),
            elsewhere,
        ],
    };
    let action = &actions[upto(rng, actions.len() as u64) as usize];
    let keep = ["first", "last", "most-links", "longest-path"][upto(rng, 4) as usize];
    let paths = ["in also", "in", ".", "--reference=ref in also"][upto(rng, 4) as usize];
    let dirs = if dirs { "--dirs " } else { "" };
    format!("dup prune {dirs}--action={action} --keep={keep} {paths}")
}

/// What a name is: kind, mode, time and content or text; which names are one file.
type Names = BTreeMap<PathBuf, String>;

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b".bc-dup.")
}

/// All below `root` but directories' times.
fn names(root: &Path) -> Names {
    let mut found = Names::new();
    let mut first: HashMap<u64, PathBuf> = HashMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        let mut inner: Vec<PathBuf> = std::fs::read_dir(&dir)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        inner.sort();
        for path in inner {
            let meta = path.symlink_metadata().unwrap();
            let below = path.strip_prefix(root).unwrap().to_owned();
            let what = if meta.is_dir() {
                pending.push(path);
                format!("{:o}", meta.mode())
            } else if meta.is_symlink() {
                format!("link to {:?}", std::fs::read_link(&path).unwrap())
            } else {
                let content = std::fs::read(&path).unwrap();
                let time = (meta.mtime(), meta.mtime_nsec());
                let byte = content.first().copied().unwrap_or(0);
                let alike = content.iter().all(|other| *other == byte);
                let one = first.entry(meta.ino()).or_insert_with(|| below.clone());
                let (mode, size, one) = (meta.mode(), content.len(), one.display());
                format!("{mode:o} {time:?} {size} × {byte} {alike} as {one}")
            };
            found.insert(below, what);
        }
    }
    found
}

/// Contents of regular files, by what [`names`] says of them.
fn contents<'n>(names: impl IntoIterator<Item = &'n Names>) -> BTreeSet<String> {
    let all = names.into_iter().flat_map(Names::values);
    let of = |what: &String| Some(what.split(") ").nth(1)?.split(" as ").next()?.to_owned());
    all.filter_map(of).collect()
}

/// The same without the other names that a file has.
fn plain(what: &str) -> &str {
    what.split(" as ").next().unwrap_or(what)
}

/// A tree in the hands of runs that are killed.
struct Case {
    t: TestTree,
    moved: Vec<PathBuf>,
    before: Names,
    /// Names that a dry run says would go, and all below them.
    promised: Vec<PathBuf>,
    /// How many there are.
    runs: usize,
    context: String,
}

impl Case {
    fn new(seed: u64, rng: &mut Rng, place: &Path, other: Option<&Path>) -> (Case, String) {
        let t = tree(rng, place);
        let line = line(rng, other);
        let dry = t.bc_line(&format!("{line} --dry-run")).go();
        let goes = line.contains("=delete") || line.contains("=move:");
        let promised = dry.text();
        let promised = promised.lines().filter(|_| goes).filter_map(|line| {
            let (_, rest) = line.split_once(' ')?;
            let end = [" to ", " with ", " (kept"];
            let end = end.iter().filter_map(|end| rest.find(end)).min()?;
            let path = rest[..end].trim_end_matches('/');
            Some(PathBuf::from(path.strip_prefix("./").unwrap_or(path)))
        });
        let promised = promised.collect();
        let moved = [Some(t.scratch("moved")), other.map(Path::to_owned)];
        let before = names(t.path());
        let context = format!("seed {seed}: {line}");
        let moved = moved.into_iter().flatten().collect();
        let case = Case {
            t,
            moved,
            before,
            promised,
            runs: 1 + upto(rng, 3) as usize,
            context,
        };
        (case, line)
    }

    /// The contract, whatever was killed.
    #[track_caller]
    fn check(&self, when: &str) {
        let context = format!("{}; {when}", self.context);
        let now = names(self.t.path());
        let moved: Vec<Names> = self.moved.iter().map(|root| names(root)).collect();
        let stands = contents([&now].into_iter().chain(&moved));
        for content in contents([&self.before]) {
            assert!(
                stands.contains(&content),
                "{context}: {content} is gone: {now:?}"
            );
        }
        for (path, what) in &self.before {
            let goes = self.promised.iter().any(|gone| path.starts_with(gone));
            let stands = now.get(path);
            let promised = &self.promised;
            assert!(
                goes || stands.is_some(),
                "{context}: {path:?} is gone; {promised:?}"
            );
            let reference = self.context.contains("--reference") && path.starts_with("ref");
            if reference {
                assert_eq!(
                    stands.map(|what| plain(what)),
                    Some(plain(what)),
                    "{context}: {path:?}"
                );
            }
        }
    }

    /// Runs it until call `n`, or to its end; whether it was killed.
    fn kill(&self, rng: &mut Rng, line: &str) -> (bool, String) {
        let often = OFTEN.iter().find(|(action, _)| line.contains(action));
        let calls: Vec<&str> = match often {
            _ if one_in(rng, 8) => CALLS.to_vec(),
            Some((_, calls)) => [calls, &ALWAYS[..]].concat(),
            None => UNDO.to_vec(),
        };
        let call = calls[upto(rng, calls.len() as u64) as usize];
        let most = if one_in(rng, 3) { 24 } else { 6 };
        let most = 1 + upto(rng, most);
        let n = 1 + upto(rng, most) as usize;
        let status = strace::killed(&self.t, call, n, line);
        let killed = status.signal() == Some(9);
        (killed, format!("{line} at {call} {n}: {status}"))
    }

    #[track_caller]
    fn undo(&self, rng: &mut Rng, journal: &str, when: &mut String) -> usize {
        let mut kills = 0;
        if !self.t.scratch(journal).exists() {
            return kills;
        }
        let line = format!("dup undo ../{journal}");
        for _ in 0..upto(rng, 4) {
            let (killed, what) = self.kill(rng, &line);
            *when += &format!("; {what}");
            kills += usize::from(killed);
            self.check(when);
        }
        let dry = self.t.bc_line(&format!("{line} --dry-run")).go();
        let out = self.t.bc_line(&line).go();
        *when += &format!("; {line}: {out}");
        let context = format!("{}; {when}", self.context);
        // Names of one file that different runs took come back as different files.
        let errors = out.error_text();
        let parted = self.runs > 1 && errors.contains("without hard links");
        let only = |line: &str| !line.contains("restored without") || line.contains("hard links:");
        assert!(errors.lines().all(only), "{context}");
        // Of another run that was killed: the undo of its own journal gives that back.
        let another = "an undo of that run's journal gives the name back";
        let of_another = self.runs > 1 && errors.contains(another);
        let code = i32::from(parted || of_another);
        assert_eq!(out.status.code(), Some(code), "{context}");
        let reported = |text: String| text.replace("restore ", "restored ");
        assert_eq!(reported(dry.text()), reported(out.text()), "{context}");
        // What is missing, and the totals.
        let foreseen = dry.error_text().replace("would be ", "");
        assert_eq!(foreseen, errors, "{context}");
        assert_eq!(dry.status.code(), out.status.code(), "{context}: {dry}");
        kills
    }

    /// As if nothing had been.
    #[track_caller]
    fn is_back(&self, when: &str) {
        let context = format!("{}; {when}", self.context);
        let now = names(self.t.path());
        for (path, what) in &self.before {
            match self.runs {
                1 => assert_eq!(now.get(path), Some(what), "{context}: {path:?}"),
                _ => assert_eq!(
                    now.get(path).map(|what| plain(what)),
                    Some(plain(what)),
                    "{context}: {path:?}"
                ),
            }
        }
        for path in now.keys() {
            assert!(self.before.contains_key(path), "{context}: {path:?}");
        }
        for root in &self.moved {
            let mut left = names(root);
            left.retain(|path, what| what.contains(" as ") || is_ours(path));
            assert!(left.is_empty(), "{context}: {left:?}");
        }
    }
}

fn one(seed: u64) -> usize {
    let mut rng = Rng::new(seed);
    // Most trees are in memory, where nothing waits for a disk: a kill takes nothing back that was
    // written. A disk gives numbers of files again.
    let memory = Path::new("/dev/shm");
    let disk = std::env::temp_dir();
    let (place, beside) = match memory.is_dir() && !seed.is_multiple_of(4) {
        true => (memory, &*disk),
        false => (&*disk, memory),
    };
    let other = tempfile::tempdir_in(beside).ok();
    let other = other.as_ref().map(tempfile::TempDir::path);
    let (case, line) = Case::new(seed, &mut rng, place, other);
    let mut kills = 0;
    let mut when = String::new();
    let journals = ["j1", "j2", "j3"];
    for journal in &journals[..case.runs] {
        let line = format!("{line} --yes --journal=../{journal}");
        let (killed, what) = case.kill(&mut rng, &line);
        when += &format!("; {what}");
        kills += usize::from(killed);
        case.check(&when);
    }
    for journal in journals[..case.runs].iter().rev() {
        kills += case.undo(&mut rng, journal, &mut when);
        case.check(&when);
    }
    case.is_back(&when);
    kills
}

#[test]
fn killed_again_and_again_nothing_is_lost() {
    if !strace::is_able() {
        return;
    }
    let wanted = bc_testkit::cases(25);
    let from = std::env::var("BC_TEST_SEED").ok();
    let mut seed = from.map_or(1, |seed| seed.parse().expect("BC_TEST_SEED is a number"));
    let (mut kills, first) = (0, seed);
    while kills < wanted {
        kills += one(seed);
        seed += 1;
        let trees = (seed - first) as usize;
        assert!(
            trees < 100 + 20 * wanted,
            "{kills} kills over {trees} trees"
        );
    }
    figures(&format!("{kills} kills over {} trees", seed - first));
}
