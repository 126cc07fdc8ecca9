//! What a user of the library could take for an answer by accident: half a search, a tree that is not
//! there, a manifest in place of another, an archive that is the card.

use std::any::Any;
use std::fs;
use std::path::Path;

use bc_testkit::{TestTree, is_root};
use bit_crafts::{
    Cancel, Checked, CopyReport, Error, ErrorKind, FileKind, FoundDuplicates, Hashed,
    ManifestPlace, Place, PruneAction, Pruned, RestoreReport, Undone, Walked,
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
    bit_crafts::manifest(t.join("d")).write(manifest).unwrap();
    let pruned = bit_crafts::prune([t.join("e"), t.join("d")], PruneAction::Delete);
    pruned.journal(&journal).run().unwrap();
    bit_crafts::undo(&journal).run().unwrap();
    t
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
    let (d, m) = (t.join("d"), t.join("m.jsonl"));
    let roots = || [t.join("d"), t.join("e")];

    let hashed: Hashed = partial(bit_crafts::hash(roots()).cancel(&cancel).run());
    assert!(hashed.cancelled && hashed.files.is_empty());
    assert_eq!(hashed.complete().unwrap_err().kind(), ErrorKind::Incomplete);
    let walked = cancelled(bit_crafts::walk(roots()).cancel(&cancel).run());
    assert!(walked.partial::<Walked>().unwrap().cancelled);
    assert!(walked.partial::<Hashed>().is_none());
    let found: FoundDuplicates = partial(bit_crafts::duplicates(roots()).cancel(&cancel).run());
    assert!(found.cancelled && found.groups.is_empty());
    let checked = bit_crafts::check(t.join("SUMS")).cancel(&cancel);
    let checked: Checked = partial(checked.run());
    assert!(checked.cancelled && !checked.is_ok());
    let copied = bit_crafts::copy(&d, t.join("copy")).cancel(&cancel);
    let copied: CopyReport = partial(copied.run());
    assert!(!t.exists("copy/a") && copied.complete().is_err());

    cancelled(bit_crafts::directories(roots()).cancel(&cancel).run());
    let found = bit_crafts::unique([&d]).archives([t.join("e")]);
    cancelled(found.cancel(&cancel).run());
    let found = bit_crafts::unique([t.join("e")]).archives([&m]);
    cancelled(found.cancel(&cancel).run());
    let made = bit_crafts::manifest(&d).cancel(&cancel);
    cancelled(made.write(t.join("new.jsonl")));
    assert!(!t.exists("new.jsonl"));
    cancelled(bit_crafts::verify(&d, &m).cancel(&cancel).run());
    cancelled(bit_crafts::diff(&m, &m).cancel(&cancel).run());
    cancelled(bit_crafts::update(&d, &m).cancel(&cancel).run());
    let restored = bit_crafts::restore(&d, &m).from([t.join("e")]);
    cancelled(restored.cancel(&cancel).run());
    let pruned = bit_crafts::prune(roots(), PruneAction::Delete).dry_run();
    cancelled(pruned.cancel(&cancel).run());
    let undone = bit_crafts::undo(t.join("journal.jsonl")).cancel(&cancel);
    cancelled(undone.run());
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
    let job = bit_crafts::copy(t.join("d"), t.join("copy"))
        .threads(1)
        .cancel(&cancel)
        .progress(move |now| {
            if now.files > 0 {
                ends.stop();
            }
        });
    // The last call of all stops nothing any more.
    match job.run() {
        Ok(report) => assert!(report.is_complete()),
        Err(error) => {
            let report: &CopyReport = error.partial().unwrap();
            assert!(report.copied > 0 && report.left > 0, "{report:?}");
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
    missing(bit_crafts::hash([&d, &none]).run().map(drop));
    missing(bit_crafts::walk([&d, &none]).run().map(drop));
    missing(bit_crafts::duplicates([&d, &none]).run().map(drop));
    let found = bit_crafts::duplicates([&d]).references([&none]);
    missing(found.run().map(drop));
    missing(bit_crafts::directories([&none]).run().map(drop));
    missing(bit_crafts::unique([&none]).archives([&d]).run().map(drop));
    missing(bit_crafts::unique([&d]).archives([&none]).run().map(drop));
    let pruned = bit_crafts::prune([&none], PruneAction::Delete).dry_run();
    missing(pruned.run().map(drop));
    missing(bit_crafts::undo(&none).run().map(drop));
    let made = bit_crafts::manifest(&none).write(t.join("new.jsonl"));
    missing(made.map(drop));
    missing(bit_crafts::manifest(&none).write_to(Vec::new()).map(drop));
    missing(bit_crafts::read_manifest(&none).map(drop));
    missing(bit_crafts::verify(&none, &m).run().map(drop));
    missing(bit_crafts::verify(&d, &none).run().map(drop));
    missing(bit_crafts::diff(&none, &m).run().map(drop));
    missing(bit_crafts::diff(&m, &none).run().map(drop));
    missing(bit_crafts::update(&none, &m).run().map(drop));
    missing(bit_crafts::update(&d, &none).run().map(drop));
    missing(bit_crafts::restore(&none, &m).run().map(drop));
    missing(bit_crafts::restore(&d, &m).from([&none]).run().map(drop));
    missing(bit_crafts::check(&none).run().map(drop));
    missing(bit_crafts::copy(&none, t.join("copy")).run().map(drop));
    assert!(!t.exists("copy") && !t.exists("new.jsonl"));
}

/// The engine's own error of a source that is not there any more has its path as well.
#[test]
fn a_copy_without_its_source_names_it() {
    let t = TestTree::new();
    let options = bc_copy::CopyOptions::new([t.join("none")], t.join("to"));
    let error = bc_copy::copy(&options, &Cancel::new(), &Default::default(), &|_| ()).unwrap_err();
    let failed = error.failure().expect("a path, an operation, a reason");
    assert_eq!(failed.path(), t.join("none").to_str().unwrap().as_bytes());
    assert_eq!((failed.op(), failed.errno()), ("stat", Some(2)));
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
    let (d, m) = (t.join("d"), t.join("m.jsonl"));
    bit_crafts::manifest(&d).write(&m).unwrap();
    // Damage: other bytes, and the time is as it was.
    let time = fs::metadata(d.join("a")).unwrap().modified().unwrap();
    t.write("d/a", "wrong");
    let file = fs::File::options().write(true).open(d.join("a")).unwrap();
    file.set_modified(time).unwrap();

    let before = t.read("m.jsonl");
    let refused = |root: &Path, file: &str| {
        let error = bit_crafts::manifest(root).write(t.join(file)).unwrap_err();
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
    assert!(bit_crafts::verify(&d, &m).run().unwrap().is_damaged());

    // What is told to use keeps the damage in sight.
    let updated = bit_crafts::update(&d, &m).run().unwrap();
    assert!(!updated.is_written || updated.is_damaged());
    assert!(bit_crafts::verify(&d, &m).run().unwrap().is_damaged());
    // An empty file holds nothing that could be lost.
    t.write("empty", "");
    bit_crafts::manifest(&d).write(t.join("empty")).unwrap();
    bit_crafts::manifest(&d).overwrite().write(&m).unwrap();
    assert!(bit_crafts::verify(&d, &m).run().unwrap().is_same());
}

/// Nor is one replaced that somebody writes while the tree is read.
#[test]
fn a_manifest_that_appears_meanwhile_is_left_alone() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("other/b", "else");
    let (d, m) = (t.join("d"), t.join("m.jsonl"));
    let others = t.join("others.jsonl");
    bit_crafts::manifest(t.join("other"))
        .write(&others)
        .unwrap();
    let record = |overwrites: bool| {
        let job = bit_crafts::manifest(&d).progress(|_| {
            std::fs::copy(&others, &m).unwrap();
        });
        match overwrites {
            true => job.overwrite().write(&m),
            false => job.write(&m),
        }
    };
    let error = record(false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(error.setting(), Some(bit_crafts::Setting::Overwrite));
    assert_eq!(t.read("m.jsonl"), t.read("others.jsonl"));
    record(true).unwrap();
    assert!(bit_crafts::verify(&d, &m).run().unwrap().is_same());
    // Where a link leads to nothing yet, the manifest is there.
    t.symlink("d/new.jsonl", "link");
    bit_crafts::manifest(&d).write(t.join("link")).unwrap();
    t.remove("link");
    assert!(
        bit_crafts::verify(&d, t.join("d/new.jsonl"))
            .run()
            .unwrap()
            .is_same()
    );
    let left = std::fs::read_dir(t.path()).unwrap().count();
    assert_eq!(left, 4, "temporary files stay");
}

#[test]
fn the_manifest_of_a_copy_replaces_nothing_unasked() {
    let t = TestTree::new();
    t.write("a/1", "one")
        .write("b/2", "two")
        .write("letter", "x");
    let m = t.join("m.jsonl");
    let copy = |from: &str, to: &str, file: &Path| {
        let copy = bit_crafts::copy(t.join(from), t.join(to)).exactly();
        copy.manifest(ManifestPlace::File(file.to_owned()))
    };
    copy("a", "to-a", &m).run().unwrap().complete().unwrap();
    let before = t.read("m.jsonl");
    for file in [&m, &t.join("letter")] {
        let error = copy("b", "to-b", file).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert_eq!(error.path(), Some(file.as_path()));
        assert!(!t.exists("to-b"), "nothing is copied before");
    }
    assert_eq!(t.read("m.jsonl"), before);
    assert_eq!(t.read("letter"), b"x");

    // The same destination carries it on.
    t.write("a/3", "three");
    let again = copy("a", "to-a", &m).on_conflict(bit_crafts::OnConflict::Update);
    again.run().unwrap().complete().unwrap();
    assert!(
        bit_crafts::verify(t.join("to-a"), &m)
            .run()
            .unwrap()
            .is_same()
    );
    t.write("empty", "");
    copy("b", "to-empty", &t.join("empty")).run().unwrap();
    assert!(bit_crafts::read_manifest(t.join("empty")).is_ok());
    let asked = copy("b", "to-b", &m).overwrite_manifest();
    asked.run().unwrap().complete().unwrap();
    assert!(
        bit_crafts::verify(t.join("to-b"), &m)
            .run()
            .unwrap()
            .is_same()
    );
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
    let unique = |archive: &str| {
        let found = bit_crafts::unique([t.join("disk/card")]).archives([t.join(archive)]);
        found.run().unwrap()
    };
    for archive in ["disk/card", "disk/card/inside", "disk/link"] {
        let found = unique(archive);
        assert_eq!(found.nowhere().count(), 2, "{archive}: {found:?}");
        assert_eq!(found.own_archives, [t.join(archive)]);
        assert!(!found.all_is_elsewhere() && !found.is_complete());
        let error = found.complete().unwrap_err();
        assert_eq!(error.path(), Some(t.join(archive).as_path()));
        assert!(error.message().contains("lies in what is asked about"));
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
    let found = bit_crafts::unique([t.join("card")]).archives([t.join("archive")]);
    let found = found.run().unwrap();
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
    let found = bit_crafts::unique([t.join("card")]).archives([t.join("archive")]);
    let found = found.filter(bit_crafts::Filter::new().hidden(false)).run();
    let found = found.unwrap();
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
    let found = bit_crafts::unique([t.join("card")]).archives([t.join("archive")]);
    let found = found.run().unwrap();
    let places: Vec<_> = found.contents.iter().map(|one| &one.place).collect();
    assert_eq!(places, [&Place::Unknown, &Place::Nowhere]);
    assert!(!found.is_complete() && !found.all_is_elsewhere());
    assert_eq!(found.errors.len(), 1);
    assert_eq!(found.errors[0].path(), t.join("card/as-long"));
}

/// Whoever reads what is re-exported here does not see the crates that it is from.
#[test]
fn docs_of_what_is_re_exported_name_no_other_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let uses = fs::read_to_string(root.join("src/facade/mod.rs")).unwrap();
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
                let is_hidden = doc.trim_start().starts_with("# ");
                assert!(is_hidden || !doc.contains("bc_"), "{item}: {doc}");
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
