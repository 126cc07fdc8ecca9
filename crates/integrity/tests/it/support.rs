//! Runs the commands with the least ceremony.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use bc_digest::Algorithm;
use bc_integrity::compare::Detail;
use bc_integrity::fields::{CompareMode, CompareRules};
use bc_integrity::report::{ChangeFormat, ChangeReport};
use bc_integrity::{
    ComparisonSummary, CreateOptions, Created, DiffOptions, Job, ManifestFile, Reading, RootCheck,
    TreeOptions, Trust, UpdateOptions, Updated, Verified, VerifyOptions, Work, create, diff,
    update, verify,
};
use bc_pool::Cancel;
use bc_testkit::TestTree;
use bc_walk::job::Error;

/// A moment in 2023, so that manifests are the same bytes on every run.
pub const THEN: i64 = 1_700_000_000_000_000_000;

/// Calls `job` with the means for `workers` threads.
pub fn with_work<T>(workers: usize, job: impl FnOnce(&Work<'_>) -> T) -> T {
    let (cancel, progress) = (Cancel::new(), bc_hash::HashProgress::default());
    let reading = |_: Job| Ok(Reading::new(workers));
    job(&Work::new(workers.into(), &reading, &cancel, &progress))
}

pub fn create_with(
    root: &Path,
    tree: TreeOptions,
    algorithm: Algorithm,
    workers: usize,
) -> (Vec<u8>, Created) {
    let what = CreateOptions::new(root.as_os_str(), algorithm)
        .tree(tree)
        .created_at(THEN);
    with_work(workers, |work| {
        create(&what, work, Vec::new(), &mut |_, _| {})
    })
    .unwrap()
}

/// The manifest of a tree, SHA-256.
pub fn manifest_of(root: &Path) -> Vec<u8> {
    create_with(root, TreeOptions::default(), Algorithm::Sha256, 2).0
}

/// Writes the manifest of `tree` beside it.
pub fn record(tree: &TestTree) -> PathBuf {
    let path = tree.scratch("manifest.jsonl");
    std::fs::write(&path, manifest_of(tree.path())).unwrap();
    path
}

/// Options of a verification.
#[derive(Clone, Copy)]
pub struct How {
    pub rules: CompareRules,
    pub detail: Detail,
    pub trust: Trust,
    pub root_check: RootCheck,
    pub workers: usize,
}

impl Default for How {
    fn default() -> How {
        How {
            rules: CompareRules::default(),
            detail: Detail::Changes,
            trust: Trust::Checked,
            root_check: RootCheck::Careful,
            workers: 2,
        }
    }
}

pub fn mode(mode: CompareMode) -> How {
    How {
        rules: CompareRules::new(mode, bc_integrity::fields::Fields::NOT_RESTORED),
        ..How::default()
    }
}

/// Returns the report of a verification, and its result.
pub fn verify_with(
    root: &Path,
    manifest: &Path,
    how: How,
    format: ChangeFormat,
) -> (String, Result<Verified, Error>) {
    let manifest = match ManifestFile::open(manifest) {
        Ok(manifest) => manifest,
        Err(error) => return (String::new(), Err(error)),
    };
    let what = VerifyOptions::new(root.as_os_str(), &manifest)
        .rules(how.rules)
        .detail(how.detail)
        .trust(how.trust)
        .root_check(how.root_check);
    let mut out = Vec::new();
    let mut report = ChangeReport::new(&mut out, format);
    let result = with_work(how.workers, |work| {
        verify(&what, work, &mut |change| report.change(change))
    });
    if let Ok(verified) = &result {
        assert!(verified.summary.reconciles(), "{:?}", verified.summary);
    }
    (String::from_utf8(out).unwrap(), result)
}

/// Returns the text report and the summary of a verification that goes well.
pub fn verified(root: &Path, manifest: &Path, how: How) -> (String, ComparisonSummary) {
    let (text, result) = verify_with(root, manifest, how, ChangeFormat::Text);
    (text, result.unwrap().summary)
}

/// The text report and the summary of comparing two manifests.
pub fn diffed(
    old: &[u8],
    new: &[u8],
    rules: CompareRules,
) -> Result<(String, ComparisonSummary), Error> {
    let old = ManifestFile::from_reader(b"old", old)?;
    let new = ManifestFile::from_reader(b"new", new)?;
    let what = DiffOptions::new(&old, &new)
        .rules(rules)
        .detail(Detail::Changes)
        .trust(Trust::Checked);
    let mut out = Vec::new();
    let mut report = ChangeReport::new(&mut out, ChangeFormat::Text);
    let done = diff(&what, &mut |change| report.change(change))?;
    assert!(done.summary.reconciles(), "{:?}", done.summary);
    Ok((String::from_utf8(out).unwrap(), done.summary))
}

/// An update with the defaults.
pub fn an_update<'a>(root: &'a OsStr, manifest: &'a Path) -> UpdateOptions<'a> {
    let origin = &bc_integrity::Origin::UNKNOWN;
    UpdateOptions::new(root, manifest)
        .now(THEN + 1_000_000_000)
        .origin(origin)
}

/// Runs an update of a manifest that no other process updates. A test that starts a program beside
/// this one hands it the lock for the moment before it runs.
pub fn updated(what: &UpdateOptions<'_>) -> Result<(String, Updated), Error> {
    loop {
        match updated_once(what) {
            Err(error) if error.to_string().contains("another update") => std::thread::yield_now(),
            done => return done,
        }
    }
}

pub fn updated_once(what: &UpdateOptions<'_>) -> Result<(String, Updated), Error> {
    updated_by(what, &|| {})
}

/// An update during which `meanwhile` is done, after the walk and before anything is read.
pub fn updated_meanwhile(what: &UpdateOptions<'_>, meanwhile: &dyn Fn()) -> (String, Updated) {
    loop {
        match updated_by(what, meanwhile) {
            Err(error) if error.to_string().contains("another update") => std::thread::yield_now(),
            done => return done.unwrap(),
        }
    }
}

fn updated_by(what: &UpdateOptions<'_>, meanwhile: &dyn Fn()) -> Result<(String, Updated), Error> {
    let (cancel, progress) = (Cancel::new(), bc_hash::HashProgress::default());
    let reading = |_: Job| {
        meanwhile();
        Ok(Reading::new(2))
    };
    let work = Work::new(2.into(), &reading, &cancel, &progress);
    let mut out = Vec::new();
    let mut report = ChangeReport::new(&mut out, ChangeFormat::Text);
    let done = update(what, &work, &mut |change| report.change(change))?;
    assert!(done.summary.reconciles(), "{:?}", done.summary);
    Ok((String::from_utf8(out).unwrap(), done))
}

/// The parsed lines of a manifest.
pub fn lines(manifest: &[u8]) -> Vec<serde_json::Value> {
    manifest
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// The line of one path.
pub fn entry(manifest: &[u8], path: &str) -> serde_json::Value {
    lines(manifest)
        .into_iter()
        .find(|line| line["path"] == path)
        .unwrap()
}

/// Returns the line of one path without the fields that a failed attempt at its content leaves
/// there.
pub fn recorded(manifest: &[u8], path: &str) -> serde_json::Value {
    let mut entry = entry(manifest, path);
    let fields = entry.as_object_mut().unwrap();
    for key in ["tried_run", "tried_at", "found", "damaged_digest"] {
        fields.remove(key);
    }
    entry
}

/// A manifest with its entry lines changed by `change` and a new, right trailer.
pub fn resealed(manifest: &[u8], change: impl FnOnce(&mut Vec<String>)) -> Vec<u8> {
    let text = std::str::from_utf8(manifest).unwrap();
    let mut all: Vec<String> = text.lines().map(str::to_string).collect();
    all.pop();
    change(&mut all);
    let body = all.join("\n") + "\n";
    let count = |test: &dyn Fn(&serde_json::Value) -> bool| {
        let lines = all
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines.filter(test).count()
    };
    let entries = count(&|line| line["type"] == "entry");
    let files = count(&|line| line["kind"] == "file");
    let dirs = count(&|line| line["kind"] == "dir");
    let errors = count(&|line| line["error"].is_object());
    let bytes: u64 = all
        .iter()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|line| line["kind"] == "file")
        .filter_map(|line| line["size"].as_u64())
        .sum();
    let sha256 = bc_digest::hash(Algorithm::Sha256, body.as_bytes());
    format!(
        "{body}{{\"type\":\"trailer\",\"entries\":{entries},\"files\":{files},\"dirs\":{dirs},\
         \"bytes\":{bytes},\"errors\":{errors},\"sha256\":\"{sha256}\"}}\n"
    )
    .into_bytes()
}

/// Overwrites bytes of a file in place and puts its mtime back.
pub fn rot(tree: &TestTree, path: &str, at: u64, byte: u8) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(tree.join(path))
        .unwrap();
    let mtime = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(&[byte], at).unwrap();
    file.set_modified(mtime).unwrap();
}
