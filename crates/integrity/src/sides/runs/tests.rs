//! Runs of small trees, in pieces of every size.

use bc_digest::{Algorithm, CpuFeatures};
use bc_manifest::integrity::{Entry, Policy, Reader};
use bc_testkit::TestTree;
use bc_walk::FileStats;

use super::*;
use crate::options::{Job, Reading, TreeOptions, Work};
use crate::{CreateOptions, create};

/// Walks `root` and finds the runs of what `change` makes of its manifest, in pieces of so many
/// bytes. Gives the entries in the tree and those of the manifest as well.
fn found(
    root: &TestTree,
    change: impl FnOnce(&mut Vec<Vec<u8>>),
    (piece, workers): (usize, usize),
) -> (Tree, Vec<Entry>, Arc<[LineRun]>) {
    let (cancel, progress) = (Cancel::new(), bc_hash::HashProgress::default());
    let reading = |_: Job| {
        Ok(Reading {
            workers: 1,
            start: Default::default(),
            read: bc_read::ReadOptions::default(),
        })
    };
    let work = Work {
        walk_workers: 1.into(),
        reading: &reading,
        cpu: CpuFeatures::detect(),
        cancel: &cancel,
        shows_bytes: false,
        progress: &progress,
        observer: None,
    };
    let what = CreateOptions {
        root: root.path().as_os_str(),
        tree: TreeOptions::default(),
        algorithm: Algorithm::Md5,
        created_at: 0,
        origin: Default::default(),
        shard: None,
        leave_out: Vec::new(),
        overwrite: Default::default(),
    };
    let (bytes, _) = create(&what, &work, Vec::new(), &mut |_, _| {}).unwrap();
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    change(&mut lines);
    let bytes = lines.concat();
    let mut reader = Reader::new(&bytes[..], Policy::Force).unwrap();
    let entries: Vec<Entry> = reader.by_ref().map(Result::unwrap).collect();
    let manifest = ManifestFile::from_reader(b"m", &bytes[..]).unwrap();
    let root = root.path().as_os_str();
    let tree = Tree::walk(root, &what.tree, FileStats::Walked, &[], &work).unwrap();
    let scale = Scale { worth: 0, piece };
    let header = reader.header();
    let runs = find_by(scale, &manifest, header, &tree, None, workers, &cancel).unwrap();
    // A run skips just the lines that it describes.
    for run in &runs[..] {
        let text = &bytes[run.bytes.start as usize..run.bytes.end as usize];
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), run.ids.len());
        let begin = lines_before(&bytes, run.bytes.start);
        let said = &entries[begin..begin + lines.len()];
        assert_eq!(said[0].path, run.first);
        assert_eq!(said[lines.len() - 1].path, run.last);
        let files = said.iter().filter(|entry| entry.kind == Kind::File);
        assert_eq!(files.clone().count() as u64, run.files);
        assert_eq!(files.filter_map(Entry::size).sum::<u64>(), run.size);
        for (id, entry) in run.ids.clone().zip(said) {
            let mut path = Vec::new();
            tree.listing.write_relative(EntryId(id), &mut path);
            assert_eq!(entry.path, path);
        }
    }
    (tree, entries, runs)
}

/// Entries before this place; the header is none.
fn lines_before(bytes: &[u8], at: u64) -> usize {
    let before = &bytes[..at as usize];
    before.iter().filter(|byte| **byte == b'\n').count() - 1
}

fn sample() -> TestTree {
    let tree = TestTree::new();
    for file in 0..150 {
        tree.write(format!("a/{}/{file:03}", file / 40), file.to_string());
    }
    tree.write("a-", "1").write("b/.c", "2").dir("b/d");
    tree
}

fn covered(runs: &[LineRun]) -> usize {
    runs.iter().map(|run| run.ids.len()).sum()
}

#[test]
fn an_unchanged_tree_is_one_run_but_for_its_root() {
    let tree = sample();
    for piece in [200, 700, 5000, 256 << 10] {
        for workers in [1, 3] {
            let (walked, entries, runs) = found(&tree, |_| {}, (piece, workers));
            assert_eq!(walked.listing.len(), entries.len());
            assert_eq!(runs.len(), 1, "{piece} {workers}");
            assert_eq!(runs[0].ids, 1..entries.len() as u32);
        }
    }
}

/// A symbolic link and a line in other words divide runs, and so do entries of one side.
#[test]
fn runs_end_where_something_else_begins() {
    let tree = sample();
    tree.symlink("x", "a/1/060-");
    let (_, entries, runs) = found(&tree, |_| {}, (900, 2));
    let all = entries.len();
    assert_eq!((runs.len(), covered(&runs)), (2, all - 2));
    let spaced = |lines: &mut Vec<Vec<u8>>| {
        let text = String::from_utf8(lines[40].clone()).unwrap();
        lines[40] = text.replace(",\"kind\"", ", \"kind\"").into_bytes();
        // Gone since, or new.
        lines.remove(100);
    };
    let (_, _, runs) = found(&tree, spaced, (900, 2));
    assert_eq!((runs.len(), covered(&runs)), (4, all - 4));
}

/// Few neighbours are not worth a run.
#[test]
fn short_runs_are_none() {
    let tree = sample();
    let every_tenth = |lines: &mut Vec<Vec<u8>>| {
        for line in lines.iter_mut().skip(1).step_by(10) {
            line.insert(1, b' ');
        }
    };
    let (_, _, runs) = found(&tree, every_tenth, (900, 2));
    assert!(runs.is_empty(), "{runs:?}");
}

#[test]
fn a_tree_that_has_nothing_of_it() {
    let (tree, other) = (sample(), TestTree::new());
    other.write("a/0/000", "other");
    let mut theirs = Vec::new();
    found(&tree, |lines| theirs.clone_from(lines), (900, 1));
    let (_, _, runs) = found(&other, |lines| *lines = theirs, (900, 2));
    assert!(runs.is_empty(), "{runs:?}");
}
