//! The library as its users meet it: misuse is an error that names the mistake, and what is missing
//! in a result is said.

use std::error::Error as StdError;
use std::path::Path;

use bc_digest::Algorithm;
use bc_find::scan::{ScanOptions, ScanProgress, scan};
use bc_hash::{DigestSink, HashOptions, HashProgress, hash_listing, hash_with};
use bc_read::Plan;
use bc_testkit::{TestTree, is_root};
use bc_walk::{EntryId, FileStat, Listing, Metadata, WalkOptions, walk};
use bit_crafts::{
    Cancel, ChecksumFile, ContentPlace, CopyOptions, CreateOptions, ErrorKind, Globs, ManifestFile,
    Means, Search, Symlinks, UniqueOptions, VerifyOptions,
};

use crate::common::ABC;

fn listing(root: &Path, metadata: Metadata, cancel: &Cancel) -> Listing {
    let options = WalkOptions::default().metadata(metadata);
    walk(&[root], &options, 2, cancel).unwrap()
}

/// Errors can be sent to other threads, kept, and put into `Box<dyn Error>`.
#[test]
fn errors_are_errors() {
    fn is<T: StdError + Send + Sync + 'static>() {}
    is::<bit_crafts::Error>();
    is::<bit_crafts::PathError>();
    is::<bc_digest::InvalidDigest>();
    is::<bc_digest::UnknownAlgorithm>();
    is::<bc_pool::WorkerPanic>();
    is::<bc_walk::Error>();
    is::<bc_walk::GlobError>();
    is::<bc_manifest::Error>();
}

#[test]
fn a_search_without_metadata_says_what_it_lacks() {
    let t = TestTree::new();
    t.write("d/a", "same").write("d/b", "same");
    let cancel = Cancel::new();
    let (options, progress) = (ScanOptions::default(), ScanProgress::default());
    let bare = listing(&t.join("d"), Metadata::None, &cancel);
    let error = scan(&bare, &options, None, &cancel, &progress).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("metadata"), "{error}");

    let whole = listing(&t.join("d"), Metadata::Basic, &cancel);
    let found = scan(&whole, &options, None, &cancel, &progress).unwrap();
    assert_eq!(found.groups().len(), 1);
    let (dirs, hashed) = (bc_find::dirs::DirsOptions::new(), HashProgress::default());
    let error = bc_find::dirs::find(&bare, &found, &dirs, &cancel, &hashed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    t.write("d/c", "more");
    let other = listing(&t.join("d"), Metadata::Basic, &cancel);
    let error = bc_find::dirs::find(&other, &found, &dirs, &cancel, &hashed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn a_search_by_an_algorithm_that_it_cannot_use_says_which_it_can() {
    let t = TestTree::new();
    t.write("d/a", "same").write("d/b", "same");
    let search = Search::new([t.join("d")]);
    let search = search.scan(ScanOptions::default().algorithm(Algorithm::Crc32c));
    let error = search.duplicates(&Means::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(
        error.to_string().contains("crc32c is none of xxh128"),
        "{error}"
    );
}

#[test]
fn hashing_with_no_algorithm_or_foreign_entries_is_an_error() {
    struct Nothing;
    impl DigestSink for Nothing {
        fn file(
            &mut self,
            _: EntryId,
            _: Result<(&FileStat, &[bc_digest::Digest]), bc_walk::Error>,
        ) {
        }
    }
    let t = TestTree::new();
    t.write("d/a", "one");
    let (cancel, progress) = (Cancel::new(), HashProgress::default());
    let files = listing(&t.join("d"), Metadata::None, &cancel);
    let none = HashOptions::new(Vec::new());
    let error = hash_listing(&files, &none, &cancel, &progress)
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);

    let some = HashOptions::new(vec![Algorithm::Md5]);
    let plan = Plan::new(vec![EntryId(0), EntryId(1)], 1);
    let done = hash_with(&files, &plan, &some, &cancel, &progress, |_| Nothing);
    let error = done.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("entry 1 is not"), "{error}");
    assert!(files.contains(EntryId(0)) && !files.contains(EntryId(1)));
    let hashes = hash_listing(&files, &some, &cancel, &progress).unwrap();
    assert!(hashes.is_complete() && hashes.get(EntryId(1)).is_none());

    let error = none
        .run([t.join("d")], &WalkOptions::default(), &Means::new())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.to_string(), "no algorithm to hash with");
    let line = bc_hash::FileDigests {
        path: b"x\n".to_vec(),
        digests: Vec::new(),
    };
    let error = bc_hash::check::check(&[line], &some, &cancel, &progress).unwrap_err();
    assert_eq!(error.to_string(), "x\\n: no digest to check it by");
}

#[test]
fn what_was_cancelled_says_so() {
    let t = TestTree::new();
    for name in ["d/a", "d/b", "e/c"] {
        t.write(name, "same");
    }
    let cancel = Cancel::new();
    cancel.stop();
    let files = listing(&t.join("d"), Metadata::Basic, &cancel);
    assert!(files.is_cancelled());
    let whole = listing(&t.join("d"), Metadata::Basic, &Cancel::new());
    assert!(!whole.is_cancelled());
    let (options, progress) = (ScanOptions::default(), ScanProgress::default());
    let found = scan(&whole, &options, None, &cancel, &progress).unwrap();
    assert!(found.is_cancelled() && found.groups().len() == 0);
}

/// A run that is cancelled once the first file is done reads no more than is in flight.
#[test]
fn cancellation_takes_no_longer_than_what_is_in_flight() {
    struct First<'a>(&'a Cancel, usize);
    impl DigestSink for First<'_> {
        fn file(
            &mut self,
            _: EntryId,
            _: Result<(&FileStat, &[bc_digest::Digest]), bc_walk::Error>,
        ) {
            self.0.stop();
            self.1 += 1;
        }
    }
    let t = TestTree::new();
    for number in 0..600 {
        t.write(format!("d/{number}"), [7; 100]);
    }
    let large = std::fs::File::create(t.join("d/z")).unwrap();
    large.set_len(1 << 36).unwrap();
    let cancel = Cancel::new();
    let files = listing(&t.join("d"), Metadata::None, &Cancel::new());
    for algorithms in [
        vec![Algorithm::Sha256],
        vec![Algorithm::Blake3, Algorithm::Md5],
    ] {
        let options = HashOptions::new(algorithms);
        let plan = Plan::all(&files, 1);
        let sink = |_| First(&cancel, 0);
        let progress = HashProgress::default();
        let (sinks, totals) = hash_with(&files, &plan, &options, &cancel, &progress, sink).unwrap();
        let done: usize = sinks.iter().map(|sink| sink.1).sum();
        assert!(done <= 64, "{done} files after the cancellation");
        assert!(totals.read.bytes < 64 << 20, "{} bytes", totals.read.bytes);
    }
}

#[test]
fn what_cannot_be_read_is_told_and_stops_nothing() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/b", "abc").fifo("fifo");
    let roots = [t.join("d"), t.join("fifo")];
    let hashed = HashOptions::new(vec![Algorithm::Sha256])
        .run(&roots, &WalkOptions::default(), &Means::new())
        .unwrap();
    assert_eq!(hashed.files.len(), 2);
    assert_eq!(hashed.files[0].digest().to_string(), ABC);
    assert_eq!(hashed.errors[0].path(), t.join("fifo"));
    let error = hashed.complete().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert_eq!(error.path(), Some(t.join("fifo").as_path()));
    assert!(error.source().is_some(), "{error}");
    if !is_root() {
        t.mode("d/b", 0);
        let found = Search::new([t.join("d")]).duplicates(&Means::new());
        let found = found.unwrap();
        assert!(found.groups.is_empty() && !found.is_complete());
        assert_eq!(found.errors[0].raw_os_error(), Some(13));
    }
}

#[test]
fn filters_that_make_no_sense_are_refused() {
    let t = TestTree::new();
    t.write("d/a", "abc");
    for wrong in ["[", ""] {
        let error = bit_crafts::Error::from(Globs::new(&[wrong]).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
    let (none, means) = (
        WalkOptions::default().min_size(2).max_size(Some(1)),
        Means::new(),
    );
    let root = t.join("d");
    let walked = none.run([&root], &means);
    assert_eq!(walked.unwrap_err().kind(), ErrorKind::Usage);
    let made = CreateOptions::new(&root, Algorithm::Blake3);
    let made = made.tree(bit_crafts::TreeOptions::of_walk(&none));
    let made = made.write_to(Vec::new(), &means);
    assert_eq!(made.unwrap_err().kind(), ErrorKind::Usage);
    let copied = CopyOptions::new([&root], t.join("e")).walk(none);
    assert_eq!(copied.run(&means).unwrap_err().kind(), ErrorKind::Usage);
    let links = WalkOptions::default().symlinks(Symlinks::Follow);
    let copied = CopyOptions::new([&root], t.join("e")).walk(links);
    assert_eq!(copied.run(&means).unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn an_archive_may_be_a_directory_or_a_manifest_and_nothing_else() {
    let t = TestTree::new();
    t.write("card/1", "old")
        .write("card/2", "new")
        .write("card/3", "old");
    t.write("archive/x", "old").write("other", "text");
    let of = |card: &str, archive: &str| {
        let search = Search::new([t.join(card)]).references([t.join(archive)]);
        search.unique(&UniqueOptions::new(), &Means::new())
    };
    let unique = |archive: &str| of("card", archive);
    let found = unique("archive").unwrap();
    let places: Vec<_> = found
        .contents
        .iter()
        .map(|one| (&one.paths[..], &one.place))
        .collect();
    let (old, new) = ([t.join("card/1"), t.join("card/3")], [t.join("card/2")]);
    let archive = ContentPlace::Archive(t.join("archive"));
    assert_eq!(
        places,
        [(&old[..], &archive), (&new[..], &ContentPlace::Nowhere)]
    );
    assert!(!found.all_is_elsewhere() && found.is_complete());
    assert_eq!(unique("other").unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(unique("none").unwrap_err().kind(), ErrorKind::NotFound);
    t.remove("card/2");
    assert!(unique("archive").unwrap().all_is_elsewhere());
    t.dir("empty");
    let empty = of("empty", "archive");
    assert_eq!(empty.unwrap_err().kind(), ErrorKind::Refused);
    let none: [&Path; 0] = [];
    let none = Search::new(none).unique(&UniqueOptions::new(), &Means::new());
    assert_eq!(none.unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn a_checksum_file_is_checked_whatever_made_it() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/b", "else");
    let check = |name: &str, text: String| {
        t.write(name, text);
        ChecksumFile::new(t.join(name)).run(&Means::new())
    };
    let line = |algorithm, path: &str, text: &[u8]| {
        format!("{}  {path}\n", bc_digest::hash(algorithm, text))
    };
    // Nothing but its length tells the algorithm, and that is not the usual one.
    let rivals = line(Algorithm::Blake3, "d/a", b"abc") + &line(Algorithm::Blake3, "d/b", b"ELSE");
    let checked = check("list", rivals).unwrap();
    let failed: Vec<_> = checked.failed().map(|file| &file.path).collect();
    assert_eq!(failed, [&t.join("d/b")]);
    assert!(!checked.is_ok() && checked.is_complete());
    let tagged = format!("SHA256 ({}) = {ABC}\n# comment\n", t.join("d/a").display());
    assert!(check("tagged", tagged).unwrap().is_ok());
    let odd = check("odd", format!("{ABC}  d/a\nnonsense\n")).unwrap();
    assert!(!odd.is_ok() && odd.improper_lines == 1 && odd.complete().is_err());
    let missing = check("missing", format!("{ABC}  none\n")).unwrap();
    assert!(missing.failed().count() == 1 && !missing.is_ok());
    assert_eq!(
        check("empty", String::new()).unwrap_err().kind(),
        ErrorKind::Manifest
    );
    let elsewhere = ChecksumFile::new(t.join("list")).base(t.join("d"));
    let elsewhere = elsewhere.run(&Means::new()).unwrap();
    assert_eq!(elsewhere.failed().count(), 2);
}

#[test]
fn a_manifest_is_whole_or_an_error() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/sub/b", "b");
    let file = t.join("d/m.jsonl");
    let (root, means) = (t.join("d"), Means::new());
    let written = CreateOptions::new(&root, Algorithm::Blake3).run_to(&file, &means);
    let written = written.unwrap();
    assert_eq!((written.files, written.is_complete()), (2, true));
    let paths = || {
        let tree = ManifestFile::open(&file)?;
        tree.check()?;
        let entries = tree.entries()?.map(|entry| Ok(entry?.path));
        entries.collect::<Result<Vec<_>, bit_crafts::Error>>()
    };
    let verify = || {
        let manifest = ManifestFile::open(&file)?;
        VerifyOptions::new(&root, &manifest).run(&means)
    };
    let listed: Vec<Vec<u8>> = [".", "a", "sub", "sub/b"].map(Into::into).to_vec();
    assert_eq!(paths().unwrap(), listed);
    let verified = verify().unwrap();
    assert!(verified.is_same() && verified.is_complete());
    let text = std::fs::read_to_string(&file).unwrap();
    for damaged in [
        text.replace("\"size\":3", "\"size\":4"),
        text[..text.len() / 2].to_owned(),
    ] {
        std::fs::write(&file, damaged).unwrap();
        assert_eq!(paths().unwrap_err().kind(), ErrorKind::Manifest);
        let error = verify().unwrap_err();
        assert_eq!(
            (error.kind(), error.path()),
            (ErrorKind::Manifest, Some(file.as_path()))
        );
    }
}

#[test]
fn a_copy_tells_what_failed_and_loses_nothing() {
    let t = TestTree::new();
    t.write("d/a", "new").write("to/d/a", "old");
    let (copy, means) = (CopyOptions::new([t.join("d")], t.join("to")), Means::new());
    let copied = copy.run(&means).unwrap();
    assert_eq!(t.read("to/d/a"), b"old");
    assert_eq!((copied.counts.failed, copied.errors.len()), (1, 1));
    assert!(copied.complete().is_err());
    let replaced = copy.on_conflict(bit_crafts::OnConflict::Replace);
    let replaced = replaced.run(&means).unwrap();
    assert!(replaced.is_complete() && replaced.counts.manifest.is_some());
    assert_eq!(t.read("to/d/a"), b"new");
    let into_itself = CopyOptions::new([t.join("d")], t.join("d/inside")).run(&means);
    assert_eq!(into_itself.unwrap_err().kind(), ErrorKind::Usage);
}

/// References take part, stay, and come first.
#[test]
fn references_and_reports_of_progress() {
    let t = TestTree::new();
    t.write("d/a", "same")
        .write("d/b", "same")
        .write("ref/z", "same");
    let mut last = bit_crafts::Progress::default();
    let found = Search::new([t.join("d")])
        .references([t.join("ref")])
        .scan(ScanOptions::default().equality(bit_crafts::Equality::Bytes))
        .duplicates(&Means::new().threads(2).progress(|now| last = now))
        .unwrap();
    let group = &found.groups[0];
    assert!(group.files[0].is_reference && !group.files[1].is_reference);
    assert_eq!(
        group.paths().collect::<Vec<_>>(),
        ["ref/z", "d/a", "d/b"].map(|p| t.join(p))
    );
    assert!(last.files >= 3 && last.bytes > 0, "{last:?}");
}
