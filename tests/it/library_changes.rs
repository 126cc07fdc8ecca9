//! Jobs of the library that change files, and take that back.

use std::fs;

use bc_testkit::TestTree;
use bit_crafts::{Class, ErrorKind, Filter, Keep, Loss, PruneAction, PruneOutcome, Reread};

fn names(t: &TestTree, names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| t.exists(name)).collect()
}

#[test]
fn duplicates_go_and_come_back() {
    let t = TestTree::new();
    t.write("d/a", "same")
        .write("d/b", "same")
        .write("d/c", "else");
    let journal = t.join("journal.jsonl");
    let prune = || bit_crafts::prune([t.join("d")], PruneAction::Delete);
    let error = prune().run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("journal"), "{error}");

    let planned = prune().dry_run().run().unwrap();
    assert!(planned.dry_run && planned.journal.is_none());
    assert_eq!((planned.changed, planned.steps.len()), (1, 1));
    let step = &planned.steps[0];
    assert_eq!((&step.path, &step.kept), (&t.join("d/b"), &t.join("d/a")));
    assert!(matches!(step.outcome, PruneOutcome::Would { .. }));
    assert_eq!(
        names(&t, &["d/a", "d/b", "journal.jsonl"]),
        [true, true, false]
    );

    let pruned = prune().journal(&journal).run().unwrap().complete().unwrap();
    assert!(matches!(pruned.steps[0].outcome, PruneOutcome::Done { .. }));
    assert_eq!(pruned.journal.as_deref(), Some(journal.as_path()));
    assert_eq!(names(&t, &["d/a", "d/b", "d/c"]), [true, false, true]);
    let planned = bit_crafts::undo(&journal).dry_run().run().unwrap();
    assert_eq!((planned.restored, t.exists("d/b")), (1, false));
    let undone = bit_crafts::undo(&journal)
        .run()
        .unwrap()
        .complete()
        .unwrap();
    assert_eq!(
        undone.files[0].path,
        fs::canonicalize(t.join("d/b")).unwrap()
    );
    assert_eq!(t.read("d/b"), b"same");
    let again = bit_crafts::undo(&journal).run().unwrap();
    assert_eq!((again.restored, again.unneeded), (0, 1));
    t.write("no-journal", "text");
    let error = bit_crafts::undo(t.join("no-journal")).run().unwrap_err();
    assert_eq!(error.path(), Some(t.join("no-journal").as_path()));
}

#[test]
fn rules_filters_and_references_say_what_goes() {
    let t = TestTree::new();
    t.write("d/a.jpg", "same").write("d/keep/b.jpg", "same");
    t.write("d/c.txt", "same").write("ref/z", "same");
    let planned = |job: bit_crafts::PruneJob<'_>| {
        let planned = job.dry_run().run().unwrap();
        let paths = planned.steps.iter().map(|step| {
            let path = step.path.strip_prefix(t.path()).unwrap();
            path.to_str().unwrap().to_owned()
        });
        let mut paths: Vec<String> = paths.collect();
        paths.sort();
        paths
    };
    let prune = || bit_crafts::prune([t.join("d")], PruneAction::Hardlink);
    assert_eq!(planned(prune()), ["d/c.txt", "d/keep/b.jpg"]);
    let keep: Keep = "path:keep".parse().unwrap();
    assert_eq!(planned(prune().keep(keep)), ["d/a.jpg", "d/c.txt"]);
    let pictures = Filter::new().include("*.jpg");
    assert_eq!(planned(prune().filter(pictures)), ["d/keep/b.jpg"]);
    let all = ["d/a.jpg", "d/c.txt", "d/keep/b.jpg"];
    assert_eq!(planned(prune().references([t.join("ref")])), all);
    let moved = bit_crafts::prune([t.join("d")], PruneAction::Move(t.join("ref/in")));
    let moved = moved.references([t.join("ref")]).dry_run().run();
    let error = moved.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.path(), Some(t.join("ref/in").as_path()));
    let moved = bit_crafts::prune([t.join("d")], PruneAction::Move(t.join("out")));
    let moved = moved.journal(t.join("journal")).run().unwrap();
    let to = moved.steps[0].moved_to.as_ref().unwrap();
    assert!(to.starts_with(t.join("out")) && to.exists(), "{to:?}");
}

#[test]
fn a_manifest_is_brought_up_to_date_and_keeps_what_is_damaged() {
    let t = TestTree::new();
    t.write("d/a", "right").write("d/b", "b");
    let (d, m) = (t.join("d"), t.join("m.jsonl"));
    bit_crafts::manifest(&d).write(&m).unwrap();
    let old = t.join("old.jsonl");
    fs::copy(&m, &old).unwrap();
    t.write("d/c", "new").remove("d/b");
    let updated = bit_crafts::update(&d, &m)
        .run()
        .unwrap()
        .complete()
        .unwrap();
    assert!(updated.is_written && !updated.is_damaged());
    let classes = |changes: &[bit_crafts::PathChange]| {
        let all = changes
            .iter()
            .map(|change| (change.class, change.path.clone()));
        all.collect::<Vec<_>>()
    };
    let both = [(Class::Removed, "b".into()), (Class::Added, "c".into())];
    let of_files = |changes: &[bit_crafts::PathChange]| {
        let mut all = classes(changes);
        all.retain(|(class, _)| *class != Class::Meta);
        all
    };
    assert_eq!(of_files(&updated.changes), both);
    assert!(bit_crafts::verify(&d, &m).run().unwrap().is_same());
    let differences = bit_crafts::diff(&old, &m).run().unwrap();
    assert_eq!(of_files(&differences.changes), both);
    assert!(!differences.is_same() && differences.is_complete());
    assert!(bit_crafts::diff(&m, &m).run().unwrap().is_same());

    let time = fs::metadata(d.join("a")).unwrap().modified().unwrap();
    t.write("d/a", "wrong");
    let file = fs::File::options().write(true).open(d.join("a")).unwrap();
    file.set_modified(time).unwrap();
    let all = || bit_crafts::update(&d, &m).reread(Reread::Fraction(1.0));
    assert!(all().run().unwrap().is_damaged());
    assert!(all().run().unwrap().is_damaged(), "nothing was laundered");
    all().accept_damaged().run().unwrap();
    assert!(bit_crafts::verify(&d, &m).run().unwrap().is_same());
}

#[test]
fn a_tree_is_healed_from_its_copies() {
    let t = TestTree::new();
    t.write("d/a", "right")
        .write("d/sub/b", "b")
        .write("d/only", "x");
    let (d, m, backup) = (t.join("d"), t.join("m.jsonl"), t.join("backup"));
    bit_crafts::manifest(&d).write(&m).unwrap();
    bit_crafts::copy(&d, &backup).run().unwrap();
    t.remove("backup/only").remove("d/only").remove("d/sub/b");
    let restore = || bit_crafts::restore(&d, &m).from([&backup]);
    let planned = restore().dry_run().run().unwrap();
    assert!(planned.dry_run && !t.exists("d/sub/b"));
    assert_eq!(planned.repaired.len(), 1);
    let restored = restore().run().unwrap();
    let repaired = &restored.repaired[0];
    assert_eq!(
        (&repaired.path, repaired.loss),
        (&t.join("d/sub/b"), Loss::Removed)
    );
    assert_eq!(
        repaired.from.as_deref(),
        Some(t.join("backup/sub/b").as_path())
    );
    assert_eq!(t.read("d/sub/b"), b"b");
    assert_eq!(restored.missing[0].path, t.join("d/only"));
    let error = restored.complete().unwrap_err();
    assert_eq!(error.path(), Some(t.join("d/only").as_path()));
    let none = restore().only(Loss::Damaged).run().unwrap();
    assert!(none.is_complete() && none.repaired.is_empty());
}

/// What is asked for by name is copied, whatever its bytes are, and nothing beside it.
#[test]
fn a_list_of_paths_is_copied_by_its_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let t = TestTree::new();
    t.write("card/100/a[1].jpg", "a")
        .write("card/100/a1.jpg", "b");
    t.write("card/dir/x", "x").write("card/empty/other", "y");
    t.symlink("a1.jpg", "card/100/link").fifo("card/100/fifo");
    let odd = OsStr::from_bytes(b"100/\xff.jpg");
    fs::write(t.join("card").join(odd), "odd").unwrap();
    let copy = |to: &str| bit_crafts::copy(t.join("card"), t.join(to));
    let list = [OsStr::new("./100//a[1].jpg"), odd, OsStr::new("dir")];
    let copied = copy("to").paths(list).run().unwrap().complete().unwrap();
    // Three files, two directories, and the top.
    assert_eq!((copied.copied, copied.failed), (6, 0));
    assert_eq!(names(&t, &["to/100/a[1].jpg", "to/dir/x"]), [true, true]);
    assert!(t.join("to").join(odd).exists());
    let others = ["to/100/a1.jpg", "to/100/link", "to/100/fifo", "to/empty"];
    assert_eq!(names(&t, &others), [false; 4]);

    let none = copy("none").paths([""; 0]).run().unwrap().complete();
    assert_eq!((none.unwrap().copied, t.exists("none")), (0, false));
    let some = copy("some").paths(["gone", "dir/x"]).run().unwrap();
    assert_eq!((some.failed, t.exists("some/dir/x")), (1, true));
    assert_eq!(some.errors[0].path(), t.join("card/gone"));
    assert!(!some.is_complete());
    let twice = ["./gone", "100//a1.jpg", "gone"];
    let twice = copy("twice").paths(twice).run().unwrap();
    assert_eq!((twice.failed, twice.errors.len(), twice.copied), (1, 1, 3));
    // What is there of a list that is wholly gone is the top, and the proof of that.
    let all = copy("all").paths(["gone", "dir/gone"]).run().unwrap();
    let paths: Vec<_> = all.errors.iter().map(|error| error.path()).collect();
    assert_eq!(paths, [t.join("card/dir/gone"), t.join("card/gone")]);
    assert_eq!((all.copied, all.failed), (2, 2));
    let manifest = all.manifest.as_deref().unwrap();
    assert_eq!(manifest, t.join("all").join(bit_crafts::MANIFEST_NAME));
    let verified = bit_crafts::verify(t.join("all"), manifest).run().unwrap();
    assert!(verified.is_same(), "{verified:?}");
    let error = all.complete().unwrap_err();
    assert_eq!(error.path(), Some(t.join("card/dir/gone").as_path()));
    // What was there before keeps its proof, and what had none gets none.
    t.write("plain/other", "other");
    for (to, files) in [("to", 3), ("plain", 0)] {
        let again = copy(to).paths(["gone"]).run().unwrap();
        assert_eq!((again.copied, again.failed), (1, 1), "{to}");
        let manifest = again.manifest.unwrap();
        let verified = bit_crafts::verify(t.join(to), &manifest).run().unwrap();
        assert!(verified.is_same(), "{to}: {verified:?}");
        let files_in = fs::read_to_string(&manifest).unwrap();
        assert_eq!(
            files_in.matches("\"digest\"").count(),
            files,
            "{to}: {files_in}"
        );
    }
    for bad in ["../x", "/etc/passwd", "", "."] {
        let error = copy("bad").paths([bad]).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{bad}: {error}");
    }
    assert!(!t.exists("bad"));
}

#[test]
fn several_sources_are_copied_side_by_side() {
    let t = TestTree::new();
    t.write("a/1", "1").write("b/2", "2").write("to/there", "x");
    let copy = || bit_crafts::copy(t.join("a"), t.join("to")).and_sources([t.join("b")]);
    copy().run().unwrap().complete().unwrap();
    assert_eq!(names(&t, &["to/a/1", "to/b/2"]), [true, true]);
    let error = copy().paths(["1"]).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

/// A card with nothing on it is either empty or not mounted: who knows which says so.
#[test]
fn an_empty_tree_is_asked_about_if_that_is_meant() {
    let t = TestTree::new();
    t.dir("card").write("archive/a", "a");
    let ask = || bit_crafts::unique([t.join("card")]).archives([t.join("archive")]);
    let error = ask().run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.setting(), Some(bit_crafts::Setting::Force));
    let found = ask().force().run().unwrap();
    assert!(found.contents.is_empty() && found.is_complete());
}

/// What becomes of each file of an import, and why one could not be copied.
#[test]
fn a_copy_tells_what_becomes_of_each_file() {
    use bit_crafts::CopyOutcome::{Before, Copied, Exists};
    let t = TestTree::new();
    t.write("card/a", "a")
        .write("card/b", "b")
        .write("to/b", "taken");
    let copy = |on_conflict| {
        let reported = std::sync::Mutex::new(Vec::new());
        let report = bit_crafts::copy(t.join("card"), t.join("to"))
            .exactly()
            .on_conflict(on_conflict)
            .each(|step| {
                let name = step.path.file_name().unwrap().to_owned();
                reported.lock().unwrap().push((name, step.outcome));
            })
            .run()
            .unwrap();
        let mut reported = reported.into_inner().unwrap();
        reported.sort_by(|a, b| a.0.cmp(&b.0));
        let reported: Vec<_> = reported.into_iter().map(|(_, outcome)| outcome).collect();
        (report, reported)
    };
    let (report, reported) = copy(bit_crafts::OnConflict::Fail);
    assert_eq!((report.files, reported), (1, vec![Copied]));
    let kind = report.errors[0].io_kind();
    assert_eq!(kind, Some(std::io::ErrorKind::AlreadyExists));
    let (report, reported) = copy(bit_crafts::OnConflict::Fail);
    assert_eq!((report.files, reported), (1, vec![Before]));
    let (report, reported) = copy(bit_crafts::OnConflict::Skip);
    assert_eq!((report.files, report.skipped), (0, 2), "{report:?}");
    assert_eq!(reported, [Exists, Exists]);
}

#[test]
fn errors_cross_threads_and_panics() {
    fn does<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    does::<bit_crafts::Error>();
    does::<bit_crafts::PathError>();
}

/// What a callback does is the caller's: the copy ends, and the callback is left alone.
#[test]
fn a_callback_that_panics_ends_the_copy() {
    let t = TestTree::new();
    for n in 0..500 {
        t.write(format!("card/{n}"), "x");
    }
    let heard = std::sync::atomic::AtomicUsize::new(0);
    let error = bit_crafts::copy(t.join("card"), t.join("to"))
        .threads(2)
        .each(|_| {
            heard.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            panic!("of a test");
        })
        .run()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panic, "{error}");
    assert_eq!(heard.into_inner(), 1);
}
