//! Whole copies, compared with their sources by a slow, complete look.

mod again;
mod basics;
mod conflicts;
mod edits;
mod fan_out;
mod flips;
mod links;
mod listed;
mod moving;
mod orphans;
mod proof;
mod properties;
mod reports;
pub(crate) mod resume;
mod waits;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bc_pool::Cancel;
use bc_testkit::Seen;
use bc_walk::job::Error;

use crate::{Copied, CopyOptions, CopyProgress, Event, copy};

/// A tree by path, without the manifest.
pub(super) fn seen(root: &Path) -> BTreeMap<PathBuf, Seen> {
    bc_testkit::seen(root, crate::MANIFEST_NAME).unwrap()
}

/// So many MiB without zeros, each of them different.
pub(super) fn content(mib: u32) -> Vec<u8> {
    let mut piece: Vec<u8> = (0..1_u32 << 20)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 | 1)
        .collect();
    let mut content = Vec::with_capacity((mib as usize) << 20);
    for number in 1..=mib {
        piece[..4].copy_from_slice(&number.to_le_bytes());
        content.extend_from_slice(&piece);
    }
    content
}

/// A place for sources, destinations and journals.
pub(super) struct Ground {
    pub(super) dir: tempfile::TempDir,
}

impl Ground {
    pub(super) fn new() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("from")).unwrap();
        Ground { dir }
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(super) fn write(&self, path: &str, content: &[u8]) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(super) fn options(&self, sources: &[&str], to: &str) -> CopyOptions {
        let sources = sources.iter().map(|path| OsString::from(self.at(path)));
        let mut options = CopyOptions::new(sources, self.at(to));
        options.state = Some(self.at("state"));
        options.workers = 2;
        options.now = 1_700_000_000_000_000_000;
        options
    }

    /// Files that no copy leaves behind.
    pub(super) fn litter(&self) -> Vec<PathBuf> {
        let all = seen(self.dir.path());
        let is_litter = |path: &&PathBuf| {
            let text = path.to_string_lossy();
            text.contains(".part") || text.contains(".journal") || text.contains(".tmp")
        };
        let all = all.into_keys().collect::<Vec<_>>();
        all.iter().filter(is_litter).cloned().collect()
    }
}

/// Rewrites the journal that is left: `keep` changes the body of a record, given its kind, and
/// returns false to drop it.
pub(super) fn rewrite_journal(ground: &Ground, mut keep: impl FnMut(u8, &mut Vec<u8>) -> bool) {
    use bc_edit::journal::{FoundJournal, Journal, Key, push};
    use bc_fs::place::Place;
    let state = ground.at("state");
    let key = Key::kept_in(&state).unwrap();
    let path = journal(ground).unwrap();
    let place = || Place::find(&path).unwrap();
    let FoundJournal::Journal(journal) = Journal::open(&place(), &key).unwrap() else {
        panic!("no journal");
    };
    let mut piece = Vec::new();
    let mut records = journal.records();
    while let Some(found) = records.next_record().unwrap() {
        let (kind, mut body) = (found.kind, found.body.to_vec());
        if keep(kind, &mut body) {
            push(&mut piece, kind, |out| out.extend_from_slice(&body));
        }
    }
    journal.remove();
    drop(Journal::create(place(), &key, &mut piece).unwrap());
}

/// The journal that is left, if there is one.
pub(super) fn journal(ground: &Ground) -> Option<PathBuf> {
    let names = std::fs::read_dir(ground.at("state/copy")).ok()?;
    let mut paths = names.map(|name| name.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|end| end == "journal"))
}

/// Lines of the reported events.
pub(super) type Told = Vec<String>;

/// Copies, and returns the reported events.
pub(super) fn run(options: &CopyOptions) -> (Result<Copied, Error>, Told) {
    let reported = Mutex::new(Told::new());
    let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let observer = |event: Event<'_>| {
        let text = match event {
            Event::Made(path) | Event::Copied(path) => format!("+ {}", shown(path)),
            Event::Replaced(path) => format!("~ {}", shown(path)),
            Event::Skipped(path, why) => format!("= {}: {}", shown(path), why.text()),
            Event::Failed(error) => format!("! {error}"),
            Event::Incomplete(error) => format!("? {error}"),
            Event::Nested(path) => format!("> {}", shown(path)),
            Event::Note(text) | Event::Warning(text) => format!("# {text}"),
        };
        reported.lock().unwrap().push(text);
    };
    let done = copy(options, &Cancel::new(), &CopyProgress::default(), &observer);
    (done, reported.into_inner().unwrap())
}

/// Copies without errors.
#[track_caller]
pub(super) fn done(options: &CopyOptions) -> Copied {
    let (done, reported) = run(options);
    let done = done.unwrap();
    assert_eq!((done.failed, done.left), (0, 0), "{reported:#?}");
    assert_eq!(done.walked, done.copied + done.skipped, "{done:?}");
    done
}
