//! Trees that are damaged and repaired, compared with a slow, complete look.

mod cases;
mod hostile;
mod leftovers;
mod linked;
mod mounts;
mod property;
mod renamed;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bc_digest::Algorithm;
use bc_hash::HashProgress;
use bc_integrity::{CreateOptions, ManifestFile, Reading, TreeOptions, Work, XattrPolicy};
use bc_pool::Cancel;
use bc_testkit::Seen;

use super::{RestoreEvent, RestoreOptions, Restored, restore};

/// A tree called `root`, and its neighbours.
pub(super) struct Ground {
    dir: tempfile::TempDir,
}

impl Ground {
    pub(super) fn new() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        Ground { dir }
    }

    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn text(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(fs::read(self.at(path)).unwrap()).unwrap()
    }

    /// Other content behind the same size and time.
    pub(super) fn damage(&self, path: &str) {
        let path = self.at(path);
        let meta = fs::metadata(&path).unwrap();
        let mut content = fs::read(&path).unwrap();
        let at = content.len() / 2;
        content[at] ^= 1;
        // In place: it stays the same file.
        let file = fs::File::options().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &content, 0).unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
    }

    pub(super) fn copy(&self, from: &str, to: &str) {
        let done = std::process::Command::new("cp")
            .args(["-a", "--"])
            .args([self.at(from), self.at(to)])
            .status();
        assert!(done.unwrap().success());
    }

    /// Records `root`, by default.
    pub(super) fn record(&self) {
        self.record_by(Algorithm::Blake3, XattrPolicy::Skip);
    }

    pub(super) fn record_by(&self, algorithm: Algorithm, xattrs: XattrPolicy) {
        let root = self.at("root");
        let what = CreateOptions::new(root.as_os_str(), algorithm)
            .tree(TreeOptions::default().xattrs(xattrs))
            .created_at(1_700_000_000_000_000_000);
        let bytes = with_work(&Cancel::new(), |work| {
            bc_integrity::create(&what, work, Vec::new(), &mut |_, _| {})
        });
        self.manifest(&bytes.unwrap().0);
    }

    /// Makes these bytes the manifest, which only its owner may write.
    pub(super) fn manifest(&self, bytes: &[u8]) {
        fs::write(self.at("m"), bytes).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(self.at("m"), mode).unwrap();
    }

    /// Restores from these, with what `change` makes of the options.
    pub(super) fn try_heal(
        &self,
        from: &[&str],
        change: impl FnOnce(&mut RestoreOptions<'_>),
    ) -> (Result<Restored, bc_walk::job::Error>, Told) {
        let manifest = ManifestFile::open(self.at("m")).unwrap();
        let root = self.at("root");
        let mut options = RestoreOptions::new(root.as_os_str(), &manifest);
        options.from = from
            .iter()
            .map(|path| OsString::from(self.at(path)))
            .collect();
        change(&mut options);
        let reported = Mutex::new(Told::new());
        let paths = Mutex::new(Vec::new());
        let report = |event: RestoreEvent<'_>| {
            paths.lock().unwrap().extend(settled_by(&event));
            reported.lock().unwrap().extend(words(event));
        };
        let done = with_work(&Cancel::new(), |work| restore(&options, work, &report));
        let mut reported = reported.into_inner().unwrap();
        let paths = paths.into_inner().unwrap();
        assert!(paths.is_sorted(), "order of paths: {reported:#?}");
        reported.sort();
        (done, reported)
    }

    /// Restores without errors: all counts are of paths that were reported.
    #[track_caller]
    pub(super) fn heal(
        &self,
        from: &[&str],
        change: impl FnOnce(&mut RestoreOptions<'_>),
    ) -> (Restored, Told) {
        let (done, reported) = self.try_heal(from, change);
        let done = done.unwrap();
        let sum = done.repaired + done.missing + done.failed + done.left;
        assert_eq!(done.wanted, sum, "{done:?} {reported:#?}");
        let lines = reported
            .iter()
            .filter(|line| line.starts_with(['+', '!', 'x']));
        assert_eq!(lines.count() as u64, sum, "{done:?} {reported:#?}");
        assert!(self.litter().is_empty(), "{:?}", self.litter());
        (done, reported)
    }

    /// Stages that were left.
    fn litter(&self) -> Vec<PathBuf> {
        let paths = self.seen("").into_keys();
        paths
            .filter(|path| crate::stage::is_named_so(path.as_os_str().as_encoded_bytes()))
            .collect()
    }

    pub(super) fn seen(&self, path: &str) -> BTreeMap<PathBuf, Seen> {
        bc_testkit::seen(&self.at(path), "none").unwrap()
    }

    pub(super) fn inode(&self, path: &str) -> u64 {
        self.at(path).symlink_metadata().unwrap().ino()
    }
}

/// Lines of the reported events, sorted.
pub(super) type Told = Vec<String>;

/// Path whose outcome an event is.
fn settled_by(event: &RestoreEvent<'_>) -> Option<Vec<u8>> {
    match event {
        RestoreEvent::Repaired(repaired) => Some(repaired.path.to_vec()),
        RestoreEvent::Missing { path, .. } | RestoreEvent::Failed { path, .. } => {
            Some(path.to_vec())
        }
        _ => None,
    }
}

fn words(event: RestoreEvent<'_>) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(match event {
        RestoreEvent::Repaired(repaired) => {
            let part = |what: &str, path: Option<&[u8]>| {
                path.map_or_else(String::new, |path| {
                    let name = text(path);
                    format!(" {what} {}", name.rsplit('/').next().unwrap_or_default())
                })
            };
            format!(
                "+ {}{}{}{}",
                text(repaired.path),
                part("from", repaired.from),
                part("linked", repaired.linked),
                part("kept", repaired.kept)
            )
        }
        RestoreEvent::Missing { path, why, .. } => format!("! {}: {why}", text(path)),
        RestoreEvent::Failed { path, error, .. } => {
            format!("x {}: {}: {}", text(path), error.op(), error.message())
        }
        RestoreEvent::Partial { path, part } => format!("~ {}: {}", text(path), text(part)),
        RestoreEvent::Unread(error) => format!("u {error}"),
        RestoreEvent::Incomplete(error) => format!("? {error}"),
        RestoreEvent::Unreadable(error) => format!("# {error}"),
        RestoreEvent::Warning { path, why, .. } => format!("# {}: {why}", text(path)),
        RestoreEvent::Begins { .. } => return None,
    })
}

fn with_work<T>(cancel: &Cancel, f: impl FnOnce(&Work<'_>) -> T) -> T {
    let progress = HashProgress::default();
    let reading = |_| Ok(Reading::new(2));
    f(&Work::new(1.into(), &reading, cancel, &progress))
}
