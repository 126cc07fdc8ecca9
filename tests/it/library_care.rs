//! What a user of the library could take for an answer by accident: half a search, a tree that is not
//! there, a manifest in place of another, an archive that is the card.

use std::any::Any;
use std::fs;
use std::path::Path;

use bc_testkit::{TestTree, is_root};
use bit_crafts::{
    Action, Algorithm, Cancel, Checked, ChecksumFile, ContentPlace, CopyOptions, CopyReport,
    CreateOptions, DiffOptions, DirsOptions, Duplicates, Error, ErrorKind, FileKind, FoundUnique,
    HashOptions, Hashed, Hidden, Listing, ManifestFile, ManifestPlace, Means, Overwrite,
    PruneOptions, Pruned, RestoreOptions, RestoreReport, RunMode, Search, Target, UndoJob, Undone,
    UniqueOptions, UpdateOptions, Verification, VerifyOptions, WalkOptions, WrittenManifest,
};

use crate::common::ABC;

/// A tree with its manifest, a checksum file and a journal.
fn tree() -> TestTree {
    let t = TestTree::new();
    for name in ["d/a", "d/b", "e/c"] {
        t.write(name, "same");
    }
    t.write("SUMS", format!("{ABC}  d/a\n"));
    let (manifest, journal) = (t.join("m.jsonl"), t.join("journal.jsonl"));
    record(&t.join("d"), &manifest, Overwrite::Never).unwrap();
    let search = Search::new([t.join("e"), t.join("d")]);
    let delete = PruneOptions::new(Action::Delete).mode(RunMode::Execute);
    let delete = delete.journal(Some(journal.clone()));
    delete.run(&search, &Means::new()).unwrap();
    UndoJob::new(&journal).run(&Means::new()).unwrap();
    t
}

fn record(root: &Path, file: &Path, overwrite: Overwrite) -> Result<WrittenManifest, Error> {
    let record = CreateOptions::new(root, Algorithm::Blake3).overwrite(overwrite);
    record.run_to(file, &Means::new())
}

fn verify(root: &Path, file: &Path, means: &Means<'_>) -> Result<Verification, Error> {
    VerifyOptions::new(root, &ManifestFile::open(file)?).run(means)
}

fn update(root: &Path, file: &Path, means: &Means<'_>) -> Result<Verification, Error> {
    UpdateOptions::new(root, file).run(means)
}

fn diff(old: &Path, new: &Path, means: &Means<'_>) -> Result<Verification, Error> {
    let (old, new) = (ManifestFile::open(old)?, ManifestFile::open(new)?);
    DiffOptions::new(&old, &new).run(means)
}

fn restore(root: &Path, file: &Path, from: &Path, means: &Means<'_>) -> Result<(), Error> {
    let manifest = ManifestFile::open(file)?;
    let restored = RestoreOptions::new(root, &manifest).from([from]).run(means);
    restored.map(drop)
}

fn unique(paths: &Path, archive: &Path, means: &Means<'_>) -> Result<FoundUnique, Error> {
    let search = Search::new([paths]).references([archive]);
    search.unique(&UniqueOptions::new(), means)
}

fn cancelled<T: std::fmt::Debug>(result: Result<T, Error>) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    error
}

/// What was cancelled with something of it to be had.
fn partial<T: Any + std::fmt::Debug + Clone>(result: Result<T, Error>) -> T {
    let error = cancelled(result);
    error.partial::<T>().expect("what there was").clone()
}

/// One rule for all: an error, so that nobody takes half of it for the whole.
#[test]
fn every_job_that_is_cancelled_is_an_error() {
    let t = tree();
    let cancel = Cancel::new();
    cancel.stop();
    let (d, e, m) = (t.join("d"), t.join("e"), t.join("m.jsonl"));
    let (roots, all, means) = (
        [&d, &e],
        WalkOptions::default(),
        Means::new().cancel(&cancel),
    );
    let search = Search::new(roots);

    let blake3 = HashOptions::new(vec![Algorithm::Blake3]);
    let hashed: Hashed = partial(blake3.run(roots, &all, &means));
    assert!(hashed.cancelled && hashed.files.is_empty());
    assert_eq!(hashed.complete().unwrap_err().kind(), ErrorKind::Incomplete);
    let walked = cancelled(all.run(roots, &means));
    assert!(walked.partial::<Listing>().unwrap().is_cancelled());
    assert!(walked.partial::<Hashed>().is_none());
    let found: Duplicates = partial(search.duplicates(&means));
    assert!(found.cancelled && found.groups.is_empty());
    let checked: Checked = partial(ChecksumFile::new(t.join("SUMS")).run(&means));
    assert!(checked.cancelled && !checked.is_ok());
    let copied: CopyReport = partial(CopyOptions::new([&d], t.join("copy")).run(&means));
    assert!(!t.exists("copy/a") && copied.complete().is_err());

    cancelled(search.directories(&DirsOptions::new(), &means));
    cancelled(unique(&d, &e, &means));
    cancelled(unique(&e, &m, &means));
    let made = CreateOptions::new(&d, Algorithm::Blake3);
    cancelled(made.run_to(t.join("new.jsonl"), &means));
    assert!(!t.exists("new.jsonl"));
    cancelled(verify(&d, &m, &means));
    cancelled(diff(&m, &m, &means));
    cancelled(update(&d, &m, &means));
    cancelled(restore(&d, &m, &e, &means));
    cancelled(PruneOptions::new(Action::Delete).run(&search, &means));
    cancelled(UndoJob::new(t.join("journal.jsonl")).run(&means));
    assert!(t.exists("d/a") && t.exists("d/b") && t.exists("e/c"));
}

/// What is reported of a run that changed something before it was cancelled.
#[test]
fn what_was_done_until_a_cancellation_is_in_the_error() {
    fn is<T: Any + Send + Sync>() {}
    is::<Pruned>();
    is::<Undone>();
    is::<RestoreReport>();
    let t = TestTree::new();
    for number in 0..2000 {
        t.write(format!("d/{number}"), number.to_string());
    }
    let cancel = Cancel::new();
    let ends = cancel.clone();
    let means = Means::new().threads(1).cancel(&cancel);
    let means = means.progress(move |now| {
        if now.files > 0 {
            ends.stop();
        }
    });
    // The last call of all stops nothing any more.
    match CopyOptions::new([t.join("d")], t.join("copy")).run(&means) {
        Ok(report) => assert!(report.is_complete()),
        Err(error) => {
            let report: &CopyReport = error.partial().unwrap();
            let counts = &report.counts;
            assert!(counts.copied > 0 && counts.left > 0, "{report:?}");
        }
    }
}

/// What was named and is not there has no answer, and no empty one.
#[test]
fn every_job_without_its_tree_is_an_error() {
    let t = tree();
    let (d, m, none) = (t.join("d"), t.join("m.jsonl"), t.join("none"));
    let missing = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert_eq!(error.path(), Some(none.as_path()), "{error}");
        assert_eq!(error.raw_os_error(), Some(2), "{error}");
        assert!(
            ["stat", "open"].contains(&error.operation().unwrap()),
            "{error}"
        );
        assert!(error.to_string().starts_with(none.to_str().unwrap()));
    };
    let (all, means) = (WalkOptions::default(), Means::new());
    let blake3 = HashOptions::new(vec![Algorithm::Blake3]);
    missing(blake3.run([&d, &none], &all, &means).map(drop));
    missing(all.run([&d, &none], &means).map(drop));
    missing(Search::new([&d, &none]).duplicates(&means).map(drop));
    let found = Search::new([&d]).references([&none]);
    missing(found.duplicates(&means).map(drop));
    let search = Search::new([&none]);
    missing(search.directories(&DirsOptions::new(), &means).map(drop));
    missing(unique(&none, &d, &means).map(drop));
    missing(unique(&d, &none, &means).map(drop));
    let pruned = PruneOptions::new(Action::Delete).run(&search, &means);
    missing(pruned.map(drop));
    missing(UndoJob::new(&none).run(&means).map(drop));
    missing(record(&none, &t.join("new.jsonl"), Overwrite::Never).map(drop));
    let made = CreateOptions::new(&none, Algorithm::Blake3);
    missing(made.write_to(Vec::new(), &means).map(drop));
    missing(verify(&none, &m, &means).map(drop));
    missing(verify(&d, &none, &means).map(drop));
    missing(diff(&none, &m, &means).map(drop));
    missing(diff(&m, &none, &means).map(drop));
    missing(update(&none, &m, &means).map(drop));
    missing(update(&d, &none, &means).map(drop));
    missing(restore(&none, &m, &d, &means));
    missing(restore(&d, &m, &none, &means));
    missing(ChecksumFile::new(&none).run(&means).map(drop));
    missing(
        CopyOptions::new([&none], t.join("copy"))
            .run(&means)
            .map(drop),
    );
    assert!(!t.exists("copy") && !t.exists("new.jsonl"));
}

/// The engine's own error of a source that is not there any more has its path as well.
#[test]
fn a_copy_without_its_source_names_it() {
    let t = TestTree::new();
    let options = bc_copy::CopyOptions::new([t.join("none")], t.join("to"));
    let error = bc_copy::copy(&options, &Cancel::new(), &Default::default(), &|_| ()).unwrap_err();
    assert_eq!(error.path(), Some(&*t.join("none")));
    let failed = (error.operation(), error.raw_os_error());
    assert_eq!(failed, (Some("stat"), Some(2)));
    assert!(
        error
            .to_string()
            .ends_with("none: stat: No such file or directory (os error 2)")
    );
}

/// An earlier manifest of the tree is the only witness of what the files were.
#[test]
fn a_manifest_replaces_nothing_unasked() {
    let t = TestTree::new();
    t.write("d/a", "right").write("other/x", "x");
    let (d, m, means) = (t.join("d"), t.join("m.jsonl"), Means::new());
    record(&d, &m, Overwrite::Never).unwrap();
    // Damage: other bytes, and the time is as it was.
    let time = fs::metadata(d.join("a")).unwrap().modified().unwrap();
    t.write("d/a", "wrong");
    let file = fs::File::options().write(true).open(d.join("a")).unwrap();
    file.set_modified(time).unwrap();

    let before = t.read("m.jsonl");
    let refused = |root: &Path, file: &str| {
        let error = record(root, &t.join(file), Overwrite::Never).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert_eq!(error.path(), Some(t.join(file).as_path()));
        error.to_string()
    };
    let text = refused(&d, "m.jsonl");
    assert!(text.contains("`update`"), "{text}");
    let text = refused(&t.join("other"), "m.jsonl");
    assert!(text.contains("another tree"), "{text}");
    t.write("letter", "dear friend");
    let text = refused(&d, "letter");
    assert!(text.contains("no manifest"), "{text}");
    assert_eq!(t.read("m.jsonl"), before);
    assert_eq!(t.read("letter"), b"dear friend");
    assert!(verify(&d, &m, &means).unwrap().is_damaged());

    // What is told to use keeps the damage in sight.
    let updated = update(&d, &m, &means).unwrap();
    assert!(!updated.is_written || updated.is_damaged());
    assert!(verify(&d, &m, &means).unwrap().is_damaged());
    // An empty file holds nothing that could be lost.
    t.write("empty", "");
    record(&d, &t.join("empty"), Overwrite::Never).unwrap();
    record(&d, &m, Overwrite::Always).unwrap();
    assert!(verify(&d, &m, &means).unwrap().is_same());
}

/// Nor is one replaced that somebody writes while the tree is read.
#[test]
fn a_manifest_that_appears_meanwhile_is_left_alone() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("other/b", "else");
    let (d, m) = (t.join("d"), t.join("m.jsonl"));
    let others = t.join("others.jsonl");
    record(&t.join("other"), &others, Overwrite::Never).unwrap();
    let disturbed = |overwrite| {
        let means = Means::new().progress(|_| {
            std::fs::copy(&others, &m).unwrap();
        });
        let record = CreateOptions::new(&d, Algorithm::Blake3).overwrite(overwrite);
        record.run_to(&m, &means)
    };
    let error = disturbed(Overwrite::Never).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(error.setting(), Some(bit_crafts::Setting::Overwrite));
    assert_eq!(t.read("m.jsonl"), t.read("others.jsonl"));
    disturbed(Overwrite::Always).unwrap();
    assert!(verify(&d, &m, &Means::new()).unwrap().is_same());
    // Where a link leads to nothing yet, the manifest is there.
    t.symlink("d/new.jsonl", "link");
    record(&d, &t.join("link"), Overwrite::Never).unwrap();
    t.remove("link");
    let new = verify(&d, &t.join("d/new.jsonl"), &Means::new());
    assert!(new.unwrap().is_same());
    let left = std::fs::read_dir(t.path()).unwrap().count();
    assert_eq!(left, 4, "temporary files stay");
}

#[test]
fn the_manifest_of_a_copy_replaces_nothing_unasked() {
    let t = TestTree::new();
    t.write("a/1", "one")
        .write("b/2", "two")
        .write("letter", "x");
    let (m, means) = (t.join("m.jsonl"), Means::new());
    let copy = |from: &str, to: &str, file: &Path| {
        let copy = CopyOptions::new([t.join(from)], t.join(to)).target(Target::Exactly);
        copy.manifest(ManifestPlace::File(file.to_owned()))
    };
    let same = |root: &str| verify(&t.join(root), &m, &Means::new()).unwrap().is_same();
    copy("a", "to-a", &m)
        .run(&means)
        .unwrap()
        .complete()
        .unwrap();
    let before = t.read("m.jsonl");
    for file in [&m, &t.join("letter")] {
        let error = copy("b", "to-b", file).run(&means).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert_eq!(error.path(), Some(file.as_path()));
        assert!(!t.exists("to-b"), "nothing is copied before");
    }
    assert_eq!(t.read("m.jsonl"), before);
    assert_eq!(t.read("letter"), b"x");

    // The same destination carries it on.
    t.write("a/3", "three");
    let again = copy("a", "to-a", &m).on_conflict(bit_crafts::OnConflict::Update);
    again.run(&means).unwrap().complete().unwrap();
    assert!(same("to-a"));
    t.write("empty", "");
    copy("b", "to-empty", &t.join("empty")).run(&means).unwrap();
    ManifestFile::open(t.join("empty"))
        .unwrap()
        .check()
        .unwrap();
    let asked = copy("b", "to-b", &m).replace_manifest(true);
    asked.run(&means).unwrap().complete().unwrap();
    assert!(same("to-b"));
    assert_eq!(bit_crafts::MANIFEST_NAME, ".bc-copy-manifest.jsonl");
}

/// A file of the card is never a copy of itself, wherever the archive lies.
#[test]
fn an_archive_that_is_the_card_proves_nothing() {
    let t = TestTree::new();
    t.write("disk/card/1", "one")
        .write("disk/card/inside/1", "one")
        .write("disk/card/2", "two")
        .symlink("card", "disk/link");
    let unique =
        |archive: &str| unique(&t.join("disk/card"), &t.join(archive), &Means::new()).unwrap();
    for archive in ["disk/card", "disk/card/inside", "disk/link"] {
        let found = unique(archive);
        assert_eq!(found.nowhere().count(), 2, "{archive}: {found:?}");
        assert_eq!(found.own_archives, [t.join(archive)]);
        assert!(!found.all_is_elsewhere() && !found.is_complete());
        let error = found.complete().unwrap_err();
        assert_eq!(error.path(), Some(t.join(archive).as_path()));
        assert!(error.message().contains("is inside a PATH"));
    }
    let found = unique("disk");
    assert_eq!(found.nowhere().count(), 2, "{found:?}");
    assert!(!found.all_is_elsewhere() && found.is_complete());
    // Around the card: what else is there counts.
    t.write("disk/other/x", "one").write("disk/other/y", "two");
    let found = unique("disk");
    assert!(found.all_is_elsewhere());
    let found = unique("disk/other");
    assert!(found.all_is_elsewhere());
}

#[test]
fn what_has_no_content_is_named() {
    let t = TestTree::new();
    t.write("card/a", "text").write("archive/a", "text");
    t.symlink("/elsewhere/film", "card/link").fifo("card/fifo");
    let found = unique(&t.join("card"), &t.join("archive"), &Means::new());
    let found = found.unwrap();
    let named = found
        .not_files
        .iter()
        .map(|one| (one.path.clone(), one.kind));
    assert_eq!(
        named.collect::<Vec<_>>(),
        [
            (t.join("card/fifo"), FileKind::Fifo),
            (t.join("card/link"), FileKind::Symlink)
        ]
    );
    assert_eq!((found.unseen, found.all_is_elsewhere()), (0, true));
    t.write("card/.hidden", "secret");
    let search = Search::new([t.join("card")]).references([t.join("archive")]);
    let search = search.walk(WalkOptions::default().hidden(Hidden::Skip));
    let found = search.unique(&UniqueOptions::new(), &Means::new()).unwrap();
    assert_eq!((found.unseen, found.skipped.hidden), (1, 1));
    assert!(!found.all_is_elsewhere());
}

/// By its size alone a file may be proven to be nowhere else, and is not opened for that.
#[test]
fn what_cannot_be_read_is_unknown_unless_its_size_says_all() {
    if is_root() {
        bc_testkit::left_out("files that cannot be read: root reads them");
        return;
    }
    let t = TestTree::new();
    t.write("card/as-long", "abcd")
        .write("card/longer", "abcdefgh");
    t.write("archive/x", "wxyz");
    t.mode("card/as-long", 0).mode("card/longer", 0);
    let found = unique(&t.join("card"), &t.join("archive"), &Means::new());
    let found = found.unwrap();
    let places: Vec<_> = found.contents.iter().map(|one| &one.place).collect();
    assert_eq!(places, [&ContentPlace::Unknown, &ContentPlace::Nowhere]);
    assert!(!found.is_complete() && !found.all_is_elsewhere());
    assert_eq!(found.errors.len(), 1);
    assert_eq!(found.errors[0].path(), t.join("card/as-long"));
}

/// Whoever follows an example of what is re-exported finds all that it uses beside it.
#[test]
fn examples_of_what_is_re_exported_use_what_is_there_too() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let uses = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let (_, uses) = uses.split_once("#![forbid(unsafe_code)]").unwrap();
    let is_exported = |name: &str| {
        let mut words = uses.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == name)
    };
    let mut looked_at = 0;
    for line in uses
        .split(';')
        .filter_map(|item| item.split("pub use bc_").nth(1))
    {
        let (package, items) = line.split_once("::").unwrap();
        let items = items.split_once('{').map_or(items, |(_, items)| items);
        let directory = root.join("crates").join(package).join("src");
        if !directory.is_dir() {
            bc_testkit::left_out("docs of other crates: this is the packed one");
            return;
        }
        let sources = sources(&directory);
        for item in items
            .split([',', '}', '\n', ' '])
            .filter(|item| !item.is_empty())
        {
            let item = item.rsplit("::").next().unwrap();
            let docs = docs_of(&sources, item);
            // The one that a table of fields makes.
            assert!(!docs.is_empty() || item == "Field", "{item} has no docs");
            for doc in docs {
                let used = doc.trim_start().strip_prefix("use bc_").unwrap_or_default();
                let mut words = used.split(|c: char| !c.is_alphanumeric());
                let types = words.find(|word| {
                    word.starts_with(|c: char| c.is_uppercase()) && !is_exported(word)
                });
                assert_eq!(types, None, "{item}: {doc}");
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 20, "{looked_at}");
}

fn sources(directory: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(fs::read_to_string(path).unwrap());
        }
    }
    all
}

/// The lines of documentation of an item, and of what is in the blocks that begin with its name.
fn docs_of(sources: &[String], item: &str) -> Vec<String> {
    let begins = |line: &str| {
        let line = line.trim_start();
        let declared = ["pub struct ", "pub enum ", "pub fn ", "pub const "];
        let rest = declared.iter().find_map(|word| line.strip_prefix(word));
        let rest = rest.or_else(|| line.strip_prefix("impl "));
        let rest = rest.and_then(|rest| rest.strip_prefix(item));
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let mut docs = Vec::new();
    for source in sources {
        let (mut before, mut is_inside) = (Vec::new(), false);
        for line in source.lines() {
            let doc = line.trim_start().strip_prefix("///").map(str::to_owned);
            if line.starts_with('}') {
                is_inside = false;
            }
            if begins(line) && !line.starts_with(' ') {
                docs.append(&mut before);
                is_inside = line.ends_with('{');
            }
            match doc {
                Some(doc) if is_inside => docs.push(doc),
                Some(doc) => before.push(doc),
                None if line.starts_with("#[") => {}
                None => before.clear(),
            }
        }
    }
    docs
}
