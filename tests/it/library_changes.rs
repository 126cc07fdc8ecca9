//! Jobs of the library that change files, and take that back.

use std::fs;
use std::path::Path;

use bc_testkit::TestTree;
use bit_crafts::{
    Action, Algorithm, Change, Class, CopyOptions, CopyReport, CreateOptions, Damaged, DiffOptions,
    Error, ErrorKind, Event, Globs, Keep, KeepRules, Loss, MANIFEST_NAME, ManifestFile, Means,
    PruneOptions, Pruned, Reread, RestoreOptions, Roots, RunMode, Search, StepKind, StepOutcome,
    Target, UndoJob, UniqueOptions, UpdateOptions, Verification, VerifyOptions, WalkOptions, Why,
    path_of,
};

fn names(t: &TestTree, names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| t.exists(name)).collect()
}

fn record(root: &Path, file: &Path) {
    let record = CreateOptions::new(root, Algorithm::Blake3);
    record.run_to(file, &Means::new()).unwrap();
}

fn verify(root: &Path, file: &Path) -> Verification {
    let manifest = ManifestFile::open(file).unwrap();
    VerifyOptions::new(root, &manifest)
        .run(&Means::new())
        .unwrap()
}

fn diff(old: &Path, new: &Path) -> Verification {
    let [old, new] = [old, new].map(|file| ManifestFile::open(file).unwrap());
    DiffOptions::new(&old, &new).run(&Means::new()).unwrap()
}

#[test]
fn duplicates_go_and_come_back() {
    let t = TestTree::new();
    t.write("d/a", "same")
        .write("d/b", "same")
        .write("d/c", "else");
    let journal = t.join("journal.jsonl");
    let (search, means) = (Search::new([t.join("d")]), Means::new());
    let prune = |mode| PruneOptions::new(Action::Delete).mode(mode);
    let error = prune(RunMode::Execute).run(&search, &means).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("journal"), "{error}");

    let planned = prune(RunMode::DryRun).run(&search, &means).unwrap();
    let mut heard = Vec::new();
    let each = |step| heard.push(step);
    let passed = prune(RunMode::DryRun).run_each(&search, &means, each);
    assert!(passed.unwrap().steps.is_empty() && heard == planned.steps);
    assert!(planned.dry_run && planned.journal.is_none());
    assert_eq!((planned.changed, planned.steps.len()), (1, 1));
    let step = &planned.steps[0].step;
    let paths = (path_of(&step.target), path_of(&step.kept_file));
    assert_eq!(paths, (t.join("d/b"), t.join("d/a")));
    let outcome = &planned.steps[0].outcome;
    assert!(matches!(outcome, StepOutcome::Would { .. }));
    assert_eq!(
        names(&t, &["d/a", "d/b", "journal.jsonl"]),
        [true, true, false]
    );

    let delete = prune(RunMode::Execute).journal(Some(journal.clone()));
    // A step counts as a further file.
    let mut searched = bit_crafts::Progress::default();
    let counted = Means::new().progress(|now| searched = now);
    search.duplicates(&counted).unwrap();
    drop(counted);
    let mut last = bit_crafts::Progress::default();
    let counted = Means::new().progress(|now| last = now);
    let pruned = delete.run(&search, &counted).unwrap().complete().unwrap();
    drop(counted);
    assert_eq!(last.files, searched.files + 1);
    assert_eq!(last.files_total, Some(last.files));
    let outcome = &pruned.steps[0].outcome;
    assert!(matches!(outcome, StepOutcome::Done { .. }));
    assert_eq!(pruned.journal.as_deref(), Some(journal.as_path()));
    assert_eq!(names(&t, &["d/a", "d/b", "d/c"]), [true, false, true]);
    let undo = UndoJob::new(&journal);
    let planned = undo.clone().mode(RunMode::DryRun).run(&means).unwrap();
    assert_eq!((planned.restored, t.exists("d/b")), (1, false));
    let undone = undo.run(&means).unwrap().complete().unwrap();
    assert_eq!(
        undone.files[0].path,
        fs::canonicalize(t.join("d/b")).unwrap()
    );
    assert_eq!(t.read("d/b"), b"same");
    let again = undo.run(&means).unwrap();
    assert_eq!((again.restored, again.unneeded), (0, 1));
    t.write("no-journal", "text");
    let error = UndoJob::new(t.join("no-journal")).run(&means).unwrap_err();
    assert_eq!(error.path(), Some(t.join("no-journal").as_path()));
}

#[test]
fn rules_filters_and_references_say_what_goes() {
    let t = TestTree::new();
    t.write("d/a.jpg", "same").write("d/keep/b.jpg", "same");
    t.write("d/c.txt", "same").write("ref/z", "same");
    let means = Means::new();
    let planned = |rules: KeepRules, search: &Search| {
        let link = PruneOptions::new(Action::Hardlink).rules(rules);
        let planned: Pruned = link.run(search, &means).unwrap();
        let paths = planned.steps.iter().map(|planned| {
            let path = path_of(&planned.step.target);
            let path = path.strip_prefix(t.path()).unwrap();
            path.to_str().unwrap().to_owned()
        });
        let mut paths: Vec<String> = paths.collect();
        paths.sort();
        paths
    };
    let (any, search) = (KeepRules::default(), Search::new([t.join("d")]));
    assert_eq!(planned(any.clone(), &search), ["d/c.txt", "d/keep/b.jpg"]);
    let keep: Keep = "path:keep".parse().unwrap();
    let keep = KeepRules::new(vec![keep], Roots::Any);
    assert_eq!(planned(keep, &search), ["d/a.jpg", "d/c.txt"]);
    let pictures = WalkOptions::default().include(Globs::new(&["*.jpg"]).unwrap());
    let pictures = search.clone().walk(pictures);
    assert_eq!(planned(any.clone(), &pictures), ["d/keep/b.jpg"]);
    let all = ["d/a.jpg", "d/c.txt", "d/keep/b.jpg"];
    let beside = search.clone().references([t.join("ref")]);
    assert_eq!(planned(any, &beside), all);
    let into = |name: &str| {
        let path = t.join(name).into_os_string().into_encoded_bytes();
        PruneOptions::new(Action::Move(path))
    };
    let error = into("ref/in").run(&beside, &means).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.path(), Some(t.join("ref/in").as_path()));
    let moved = into("out").mode(RunMode::Execute);
    let moved = moved.journal(Some(t.join("journal")));
    let moved = moved.run(&search, &means).unwrap();
    let StepKind::Move(to) = &moved.steps[0].step.kind else {
        panic!("{moved:?}");
    };
    let to = path_of(to);
    assert!(to.starts_with(t.join("out")) && to.exists(), "{to:?}");
}

#[test]
fn a_manifest_is_brought_up_to_date_and_keeps_what_is_damaged() {
    let t = TestTree::new();
    t.write("d/a", "right").write("d/b", "b");
    let (d, m, means) = (t.join("d"), t.join("m.jsonl"), Means::new());
    let update = || UpdateOptions::new(&d, &m);
    record(&d, &m);
    let old = t.join("old.jsonl");
    fs::copy(&m, &old).unwrap();
    t.write("d/c", "new").remove("d/b");
    let updated = update().run(&means).unwrap().complete().unwrap();
    assert!(updated.is_written && !updated.is_damaged());
    let both = [(Class::Removed, &b"b"[..]), (Class::Added, &b"c"[..])];
    fn of_files(changes: &[Change]) -> Vec<(Class, &[u8])> {
        let all = changes.iter().map(|change| (change.class, &*change.path));
        all.filter(|(class, _)| *class != Class::Meta).collect()
    }
    assert_eq!(of_files(&updated.changes), both);
    assert!(verify(&d, &m).is_same());
    let differences = diff(&old, &m);
    assert_eq!(of_files(&differences.changes), both);
    assert!(!differences.is_same() && differences.is_complete());
    assert!(diff(&m, &m).is_same());

    let time = fs::metadata(d.join("a")).unwrap().modified().unwrap();
    t.write("d/a", "wrong");
    let file = fs::File::options().write(true).open(d.join("a")).unwrap();
    file.set_modified(time).unwrap();
    let all = || update().reread(Reread::Fraction(1.0));
    assert!(all().run(&means).unwrap().is_damaged());
    let again = all().run(&means).unwrap();
    assert!(again.is_damaged(), "nothing was laundered");
    all().damaged(Damaged::Accept).run(&means).unwrap();
    assert!(verify(&d, &m).is_same());
}

#[test]
fn a_tree_is_healed_from_its_copies() {
    let t = TestTree::new();
    t.write("d/a", "right")
        .write("d/sub/b", "b")
        .write("d/only", "x");
    let (d, m, backup) = (t.join("d"), t.join("m.jsonl"), t.join("backup"));
    let means = Means::new();
    record(&d, &m);
    CopyOptions::new([&d], &backup).run(&means).unwrap();
    t.remove("backup/only").remove("d/only").remove("d/sub/b");
    let manifest = ManifestFile::open(&m).unwrap();
    let restore = || RestoreOptions::new(&d, &manifest).from([&backup]);
    let planned = restore().dry_run(true).run(&means).unwrap();
    assert!(planned.dry_run && !t.exists("d/sub/b"));
    assert_eq!(planned.repaired.len(), 1);
    let restored = restore().run(&means).unwrap();
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
    let none = restore().only(vec![Loss::Damaged]).run(&means).unwrap();
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
    fn copy<P: AsRef<Path>>(t: &TestTree, to: &str, paths: &[P]) -> Result<CopyReport, Error> {
        let copy = CopyOptions::new([t.join("card")], t.join(to)).paths(paths)?;
        copy.run(&Means::new())
    }
    let list = [OsStr::new("./100//a[1].jpg"), odd, OsStr::new("dir")];
    let copied = copy(&t, "to", &list).unwrap().complete().unwrap();
    // Three files, two directories, and the top.
    assert_eq!((copied.counts.copied, copied.counts.failed), (6, 0));
    assert_eq!(names(&t, &["to/100/a[1].jpg", "to/dir/x"]), [true, true]);
    assert!(t.join("to").join(odd).exists());
    let others = ["to/100/a1.jpg", "to/100/link", "to/100/fifo", "to/empty"];
    assert_eq!(names(&t, &others), [false; 4]);

    let none = copy(&t, "none", &[""; 0]).unwrap().complete();
    assert_eq!((none.unwrap().counts.copied, t.exists("none")), (0, false));
    let some = copy(&t, "some", &["gone", "dir/x"]).unwrap();
    assert_eq!((some.counts.failed, t.exists("some/dir/x")), (1, true));
    assert_eq!(some.errors[0].path(), t.join("card/gone"));
    assert!(!some.is_complete());
    let twice = ["./gone", "100//a1.jpg", "gone"];
    let twice = copy(&t, "twice", &twice).unwrap();
    let counts = (twice.counts.failed, twice.counts.copied);
    assert_eq!((counts, twice.errors.len()), ((1, 3), 1));
    // What is there of a list that is wholly gone is the top, and the proof of that.
    let all = copy(&t, "all", &["gone", "dir/gone"]).unwrap();
    let paths: Vec<_> = all.errors.iter().map(|error| error.path()).collect();
    assert_eq!(paths, [t.join("card/dir/gone"), t.join("card/gone")]);
    assert_eq!((all.counts.copied, all.counts.failed), (2, 2));
    let manifest = path_of(all.counts.manifest.as_deref().unwrap());
    assert_eq!(manifest, t.join("all").join(bit_crafts::MANIFEST_NAME));
    let verified = verify(&t.join("all"), &manifest);
    assert!(verified.is_same(), "{verified:?}");
    let error = all.complete().unwrap_err();
    assert_eq!(error.path(), Some(t.join("card/dir/gone").as_path()));
    // What was there before keeps its proof, and what had none gets none.
    t.write("plain/other", "other");
    for (to, files) in [("to", 3), ("plain", 0)] {
        let again = copy(&t, to, &["gone"]).unwrap().counts;
        assert_eq!((again.copied, again.failed), (1, 1), "{to}");
        let manifest = path_of(&again.manifest.unwrap());
        let verified = verify(&t.join(to), &manifest);
        assert!(verified.is_same(), "{to}: {verified:?}");
        let files_in = fs::read_to_string(&manifest).unwrap();
        assert_eq!(
            files_in.matches("\"digest\"").count(),
            files,
            "{to}: {files_in}"
        );
    }
    for bad in ["../x", "/etc/passwd", "", "."] {
        let error = copy(&t, "bad", &[bad]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{bad}: {error}");
    }
    assert!(!t.exists("bad"));
}

#[test]
fn several_sources_are_copied_side_by_side() {
    let t = TestTree::new();
    t.write("a/1", "1").write("b/2", "2").write("to/there", "x");
    let copy = CopyOptions::new([t.join("a"), t.join("b")], t.join("to"));
    copy.run(&Means::new()).unwrap().complete().unwrap();
    assert_eq!(names(&t, &["to/a/1", "to/b/2"]), [true, true]);
    let error = copy.paths(["1"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

/// A card with nothing on it is either empty or not mounted: who knows which says so.
#[test]
fn an_empty_tree_is_asked_about_if_that_is_meant() {
    let t = TestTree::new();
    t.dir("card").write("archive/a", "a");
    let search = Search::new([t.join("card")]).references([t.join("archive")]);
    let ask = |options: UniqueOptions| search.unique(&options, &Means::new());
    let error = ask(UniqueOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.setting(), Some(bit_crafts::Setting::Force));
    let found = ask(UniqueOptions::new().force(true)).unwrap();
    assert!(found.contents.is_empty() && found.is_complete());
}

/// What becomes of each file of an import, and why one could not be copied.
#[test]
fn a_copy_tells_what_becomes_of_each_file() {
    let t = TestTree::new();
    t.write("card/a", "a")
        .write("card/b", "b")
        .write("to/b", "taken");
    let copy = |on_conflict| {
        let reported = std::sync::Mutex::new(Vec::new());
        let copy = CopyOptions::new([t.join("card")], t.join("to"));
        let copy = copy.target(Target::Exactly).on_conflict(on_conflict);
        let each = |event: Event<'_>| {
            let (path, why) = match event {
                Event::Copied(path) => (path, None),
                Event::Skipped(path, why) => (path, Some(why)),
                _ => return,
            };
            reported.lock().unwrap().push((path.to_owned(), why));
        };
        let report = copy.run_each(&Means::new(), each).unwrap();
        let mut reported = reported.into_inner().unwrap();
        reported.sort_by(|a, b| a.0.cmp(&b.0));
        let reported: Vec<_> = reported.into_iter().map(|(_, outcome)| outcome).collect();
        (report, reported)
    };
    let (report, reported) = copy(bit_crafts::OnConflict::Fail);
    assert_eq!((report.counts.files, reported), (1, vec![None]));
    let kind = report.errors[0].io_kind();
    assert_eq!(kind, Some(std::io::ErrorKind::AlreadyExists));
    let (report, reported) = copy(bit_crafts::OnConflict::Fail);
    assert_eq!((report.counts.files, reported), (1, vec![Some(Why::Done)]));
    let (report, reported) = copy(bit_crafts::OnConflict::Skip);
    let counts = (report.counts.files, report.counts.skipped);
    assert_eq!(counts, (0, 2), "{report:?}");
    assert_eq!(reported, [Some(Why::Exists); 2]);
}

#[test]
fn errors_cross_threads_and_panics() {
    fn does<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    does::<bit_crafts::Error>();
    does::<bit_crafts::PathError>();
}

/// What a callback does is the caller's: it is left alone, the copy is whole, and the panic goes on.
#[test]
fn a_callback_that_panics_leaves_a_whole_copy() {
    let t = TestTree::new();
    for n in 0..500 {
        t.write(format!("card/{n}"), "x");
    }
    let heard = std::sync::atomic::AtomicUsize::new(0);
    let each = |_: Event<'_>| {
        heard.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        panic!("of a test");
    };
    let copy = CopyOptions::new([t.join("card")], t.join("to"));
    let means = Means::new().threads(2);
    let run = std::panic::AssertUnwindSafe(|| copy.run_each(&means, each));
    let panic = std::panic::catch_unwind(run).unwrap_err();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "of a test");
    assert_eq!(heard.into_inner(), 1);
    let manifest = ManifestFile::open(t.join("to").join(MANIFEST_NAME)).unwrap();
    manifest.check().unwrap();
    assert_eq!(manifest.entries().unwrap().count(), 501);
}
