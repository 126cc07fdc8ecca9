//! Trees that are protected, damaged and computed again.

use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Algorithm;
use bc_fs::dirfd;
use bc_fs::faults::{self, Fault};
use bc_integrity::{CreateOptions, ManifestFile, Overwrite, working};
use bc_manifest::integrity::{ContentFault, Entry, Header, Kind, UNSEEN_AT, Writer};
use bc_pool::Cancel;
use bc_walk::job::{Error, ErrorKind, Means};

use crate::code::BLOCK;
use crate::contents::{ContentTable, PER_FILE};
use crate::file::{DirUse, ParityDir};
use crate::format::{HEAD, VolumeHead};
use crate::rebuild::tests::{RebuildOutcome, short};
use crate::rebuild::{ContentPlaces, LostContent, ParityRestore, RebuildMeans, Rebuilt};
use crate::{
    ParityCheck, ProtectEvent, ProtectOptions, Protected, check, default_dir, manifest_copy,
    protect,
};

pub(crate) const DAY: i64 = 86_400_000_000_000;
const NOW: i64 = 20_000 * DAY;

/// A tree with its manifest and its parity.
pub(crate) struct ProtectedSite {
    dir: tempfile::TempDir,
    pub(crate) algorithm: Algorithm,
    pub(crate) volume: u64,
    pub(crate) redundancy: &'static str,
    pub(crate) memory: Option<u64>,
    pub(crate) now: i64,
    pub(crate) threads: usize,
    /// Name of the manifest.
    list: &'static str,
    pub(crate) keep_removed: Option<i64>,
    adopt: bool,
    events: RefCell<Vec<String>>,
    /// Bytes of the tree that the last run has read.
    read: Cell<u64>,
}

/// Bytes that no other call returns.
pub(crate) fn bytes(len: usize, seed: u64) -> Vec<u8> {
    bc_testkit::Rng::new(seed).bytes(len)
}

impl ProtectedSite {
    pub(crate) fn new(files: &[(&str, Vec<u8>)]) -> ProtectedSite {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        let site = ProtectedSite {
            dir,
            algorithm: Algorithm::Sha256,
            volume: 1 << 20,
            redundancy: "25%",
            memory: None,
            now: NOW,
            threads: 2,
            list: "tree.jsonl",
            keep_removed: None,
            adopt: false,
            events: RefCell::default(),
            read: Cell::new(0),
        };
        files
            .iter()
            .for_each(|(path, bytes)| site.write(path, bytes));
        site.record();
        site
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let at = self.at(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, bytes).unwrap();
    }

    fn list(&self) -> PathBuf {
        self.dir.path().join(self.list)
    }

    pub(crate) fn parity(&self) -> PathBuf {
        default_dir(&self.list())
    }

    pub(crate) fn volumes(&self) -> Vec<String> {
        let all = std::fs::read_dir(self.parity()).unwrap();
        let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".bcp")).collect();
        names.sort();
        names
    }

    pub(crate) fn record(&self) {
        let root = self.root();
        let options = CreateOptions::new(&root, self.algorithm).overwrite(Overwrite::Always);
        options.run_to(self.list(), &Means::new()).unwrap();
    }

    /// Changes entries of the manifest.
    pub(crate) fn rewrite(&self, change: impl Fn(&mut Entry)) {
        self.rewrite_all(
            |_| {},
            |entry| {
                change(entry);
                true
            },
        );
    }

    /// Changes the header and the entries of the manifest, and keeps those that `change` returns true for.
    fn rewrite_all(
        &self,
        change_header: impl Fn(&mut Header),
        change: impl Fn(&mut Entry) -> bool,
    ) {
        let manifest = self.manifest();
        let mut header = manifest.header().unwrap();
        change_header(&mut header);
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        for entry in manifest.entries().unwrap() {
            let mut entry = entry.unwrap();
            if change(&mut entry) {
                writer.write(&entry).unwrap();
            }
        }
        std::fs::write(self.list(), writer.finish().unwrap().0).unwrap();
    }

    /// Has the manifest say that these files were found damaged.
    pub(crate) fn note_damaged(&self, paths: &[&str]) {
        self.rewrite(|entry| {
            if paths.iter().any(|path| path.as_bytes() == entry.path) {
                entry.found = Some(ContentFault::Damaged);
            }
        });
    }

    pub(crate) fn check(&self) -> Result<ParityCheck, Error> {
        let (root, manifest) = (self.root(), self.manifest());
        let options = ProtectOptions::new(&root, &manifest, self.now);
        working(&Means::new(), |work| check(&options, work))
    }

    pub(crate) fn manifest(&self) -> ManifestFile {
        ManifestFile::open(self.list()).unwrap()
    }

    pub(crate) fn protect(&self) -> Result<Protected, Error> {
        self.protect_or_foresee(false)
    }

    fn protect_or_foresee(&self, dry_run: bool) -> Result<Protected, Error> {
        let (root, manifest) = (self.root(), self.manifest());
        let options = ProtectOptions::new(&root, &manifest, self.now)
            .dir(self.parity())
            .volume(Some(self.volume))
            .redundancy(Some(self.redundancy.parse().unwrap()))
            .keep_removed_ns(self.keep_removed)
            .adopt(self.adopt)
            .dry_run(dry_run)
            .memory(self.memory);
        self.protect_as(&options)
    }

    fn protect_as(&self, options: &ProtectOptions<'_>) -> Result<Protected, Error> {
        self.events.borrow_mut().clear();
        working(&Means::new().threads(self.threads), |work| {
            let done = protect(options, work, &mut |event| {
                self.events.borrow_mut().push(match event {
                    ProtectEvent::Unprotected(error) => format!("unprotected {error}"),
                    ProtectEvent::Held { volume } => format!("held {}", volume.display()),
                    ProtectEvent::Kept { volume, removed } => {
                        let removed = String::from_utf8_lossy(removed);
                        format!("kept {} for {removed}", volume.display())
                    }
                    ProtectEvent::Unreadable(error) => format!("unreadable {error}"),
                    ProtectEvent::NotRemoving(why) => format!("not removing: {why}"),
                    ProtectEvent::IndexLost { keep_removed_ns } => {
                        format!("index lost: {} days", keep_removed_ns / DAY)
                    }
                    ProtectEvent::Written { .. } => "written".to_owned(),
                    ProtectEvent::Removed { volume, .. } => {
                        format!("removed {}", volume.display())
                    }
                });
            });
            self.read.set(work.progress.bytes.load(Relaxed));
            done
        })
    }

    pub(crate) fn events(&self) -> String {
        self.events.borrow().join("\n")
    }
}

pub(crate) fn flip(path: &Path, offset: u64) {
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[!byte[0]], offset).unwrap();
}

/// Files of all sizes, in path order.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a", bytes(100, 1)),
        ("b/large", bytes(2_500_000, 2)),
        ("b/small", bytes(70_000, 3)),
        ("c", bytes(1, 4)),
        ("d/empty", Vec::new()),
        ("e", bytes(300_000, 5)),
    ]
}

#[test]
fn lost_and_damaged_contents_come_back() {
    let files = files();
    for memory in [None, Some(17 << 20)] {
        let mut site = ProtectedSite::new(&files);
        site.memory = memory;
        let done = site.protect().unwrap();
        assert!(done.is_complete(), "{}", site.events());
        let content: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!((done.bytes, done.written), (content as u64, 3));
        assert_eq!(site.volumes(), ["000001.bcp", "000002.bcp", "000003.bcp"]);
        // Deleted, truncated, damaged, in one volume and over two.
        std::fs::remove_file(site.at("a")).unwrap();
        std::fs::remove_file(site.at("c")).unwrap();
        flip(&site.at("b/large"), 0);
        flip(&site.at("b/large"), 1_500_000);
        cut(&site.at("e"), 250_000);
        for name in ["a", "c", "b/large", "b/small", "e"] {
            let content = &files.iter().find(|(path, _)| *path == name).unwrap().1;
            assert!(site.heals(content), "{name}");
        }
        let all: Vec<LostContent> = files
            .iter()
            .filter(|file| !file.1.is_empty())
            .map(|file| site.lost(&file.1))
            .collect();
        assert_eq!(site.rebuild(&all, memory).len(), 5);
        assert_eq!(
            site.rebuild(&[site.lost(b"other")], memory),
            [RebuildOutcome::Unprotected]
        );
        // Nothing is to be done again.
        files
            .iter()
            .for_each(|(path, bytes)| site.write(path, bytes));
        let again = site.protect().unwrap();
        assert_eq!((again.written, again.removed, again.volumes), (0, 0, 3));
    }
}

fn cut(path: &Path, len: u64) {
    let file = std::fs::File::options().write(true).open(path);
    file.unwrap().set_len(len).unwrap();
}

/// The volume, and where everything lies in it.
fn volume_bytes(path: &Path) -> (Vec<u8>, VolumeHead) {
    let whole = std::fs::read(path).unwrap();
    let head = VolumeHead::from_bytes(&whole[..HEAD]).unwrap().unwrap();
    (whole, head)
}

/// So many files of one block each, named by their numbers.
pub(crate) fn numbered(count: u64) -> Vec<(String, Vec<u8>)> {
    (0..count)
        .map(|number| (format!("{number:02}"), bytes(BLOCK, number)))
        .collect()
}

pub(crate) fn borrowed(files: &[(String, Vec<u8>)]) -> Vec<(&str, Vec<u8>)> {
    files
        .iter()
        .map(|(path, bytes)| (&path[..], bytes.clone()))
        .collect()
}

#[test]
fn columns_that_do_not_fit_into_memory_come_one_after_the_other() {
    let files = [
        ("a", bytes(400 * BLOCK + 5, 1)),
        ("b", bytes(20 * BLOCK, 2)),
    ];
    let mut site = ProtectedSite::new(&files);
    (site.volume, site.redundancy) = (32 << 20, "100%");
    site.protect().unwrap();
    let name = site.volumes()[0].clone();
    let (whole, head) = volume_bytes(&site.parity().join(&name));
    std::fs::remove_dir_all(site.parity()).unwrap();
    site.memory = Some(17_500_000);
    site.protect().unwrap();
    let (again, _) = volume_bytes(&site.parity().join(&name));
    // Digests are of the directory's random id, too.
    let block = |file: &[u8], number: usize| {
        let at = head.layout().parity(number) as usize + 16;
        file[at..at + BLOCK].to_vec()
    };
    assert_eq!(head.parity, 421);
    for number in [0, 1, 210, 420] {
        assert!(block(&whole, number) == block(&again, number), "{number}");
    }
    std::fs::remove_file(site.at("a")).unwrap();
    std::fs::remove_file(site.at("b")).unwrap();
    assert!(site.heals(&files[0].1) && site.heals(&files[1].1));
}

#[test]
fn as_many_blocks_as_there_is_parity_for_and_no_more() {
    let content = bytes(16 * BLOCK, 7);
    let site = ProtectedSite::new(&[("a", content.clone())]);
    site.protect().unwrap();
    let volume = site.parity().join("000001.bcp");
    let (whole, head) = volume_bytes(&volume);
    assert_eq!((head.data, head.parity), (16, 4));
    let layout = head.layout();
    // The parity, the data, and the copies of the header may be damaged alike.
    for data_lost in 0..=4 {
        site.write("a", &content);
        std::fs::write(&volume, &whole).unwrap();
        for block in 0..data_lost {
            flip(&site.at("a"), (block * 3 * BLOCK + 5) as u64);
        }
        for number in 0..4 - data_lost {
            flip(&volume, layout.parity(number) + 3);
        }
        for copy in &layout.copies()[..2] {
            flip(&volume, copy + 7);
            flip(&volume, copy + HEAD as u64 + 7);
        }
        assert!(site.heals(&content), "{data_lost}");
        flip(&site.at("a"), (15 * BLOCK) as u64);
        assert_eq!(site.rebuild(&[site.lost(&content)], None), [short(1)]);
    }
    // Blocks behind the end of a file that was cut short are lost, and its header is not.
    site.write("a", &content);
    std::fs::write(&volume, &whole[..layout.parity(2) as usize + 5]).unwrap();
    flip(&site.at("a"), 0);
    flip(&site.at("a"), BLOCK as u64);
    assert!(site.heals(&content));
    flip(&site.at("a"), 2 * BLOCK as u64);
    assert!(!site.heals(&content));
    // Two parity blocks that were exchanged are lost.
    site.write("a", &content);
    let mut swapped = whole.clone();
    let (one, other) = (layout.parity(0) as usize, layout.parity(1) as usize);
    let len = BLOCK + 16;
    swapped[one..one + len].copy_from_slice(&whole[other..other + len]);
    swapped[other..other + len].copy_from_slice(&whole[one..one + len]);
    std::fs::write(&volume, &swapped).unwrap();
    flip(&site.at("a"), 0);
    flip(&site.at("a"), BLOCK as u64);
    assert!(site.heals(&content));
    flip(&site.at("a"), 2 * BLOCK as u64);
    assert!(!site.heals(&content));
}

#[test]
fn copies_of_the_header_mend_one_another_record_by_record() {
    // Paths make the header longer than three records.
    let name = "n".repeat(200);
    let files: Vec<(String, Vec<u8>)> = (0..6000)
        .map(|number| (format!("{name}/{number}"), bytes(40, number)))
        .collect();
    let site = ProtectedSite::new(&borrowed(&files));
    site.protect().unwrap();
    let volume = site.parity().join("000001.bcp");
    let (whole, head) = volume_bytes(&volume);
    let copies = head.layout().copies();
    assert!(head.layout().copy > 2 * BLOCK as u64);
    std::fs::remove_file(site.at(&files[0].0)).unwrap();
    // Each copy has another record left, and both heads at the ends are gone.
    flip(&volume, 0);
    flip(&volume, whole.len() as u64 - 1);
    for (copy, offset) in copies.iter().enumerate() {
        for record in (0..2).filter(|record| record % 3 != copy) {
            flip(&volume, offset + (HEAD + record * BLOCK + 20) as u64);
        }
    }
    assert!(site.heals(&files[0].1));
    flip(&volume, copies[0] + (HEAD + 20) as u64);
    assert!(matches!(
        site.rebuild(&[site.lost(&files[0].1)], None)[..],
        [RebuildOutcome::Unprotected]
    ));
}

#[test]
fn small_files_fill_a_header_before_they_fill_a_volume() {
    // Some 2.6 MiB of header.
    let name = "n".repeat(240);
    let files: Vec<(String, Vec<u8>)> = (0..8500)
        .map(|number| (format!("{name}/{number}"), bytes(8, number)))
        .collect();
    let site = ProtectedSite::new(&borrowed(&files));
    let done = site.protect().unwrap();
    assert!(done.is_complete() && done.written == 2, "{done:?}");
    assert_eq!(site.protect().unwrap().written, 0);
    for number in [0, 8499] {
        std::fs::remove_file(site.at(&files[number].0)).unwrap();
        assert!(site.heals(&files[number].1));
    }
    // Thousands of lost files of one volume need no descriptor each at the same time.
    std::fs::remove_dir_all(site.root()).unwrap();
    std::fs::create_dir(site.root()).unwrap();
    let lost: Vec<LostContent> = files.iter().map(|(_, bytes)| site.lost(bytes)).collect();
    let manifest = site.manifest();
    let limit = std::fs::read_dir("/proc/self/fd").unwrap().count() + 40;
    let mut most = 0;
    let top = dirfd::open_root(site.root().as_os_str().as_encoded_bytes()).unwrap();
    let places = ContentPlaces {
        top: top.as_fd(),
        top_path: &site.root(),
        renamed: &|_| None,
        is_lost: &|_| true,
    };
    let means = RebuildMeans {
        workers: 2,
        memory: None,
        dry_run: false,
        cancel: &Cancel::new(),
        rate: None,
    };
    let restore = ParityRestore::open(&site.parity(), &manifest).unwrap();
    let mut whole = 0;
    let each = &mut |number: usize, rebuilt: Rebuilt<'_>| {
        whole += usize::from(matches!(rebuilt, Rebuilt::Whole(_)));
        if number.is_multiple_of(500) {
            most = most.max(std::fs::read_dir("/proc/self/fd").unwrap().count());
        }
        Ok(true)
    };
    restore
        .unwrap()
        .rebuild(&lost, places, &means, each)
        .unwrap();
    assert_eq!(whole, files.len());
    assert!(most > 0 && most < limit, "{most}");
}

#[test]
fn nothing_unproven_is_protected_and_what_is_around_it_is() {
    let files = files();
    let site = ProtectedSite::new(&files);
    // Edited since, of the same size; of another; gone.
    flip(&site.at("b/large"), 2_000_000);
    site.write("c", b"longer");
    std::fs::remove_file(site.at("e")).unwrap();
    let done = site.protect().unwrap();
    assert_eq!(
        (done.unprotected, done.written, done.bytes),
        (3, 1, 70_100),
        "{}",
        site.events()
    );
    for path in [
        "b/large: protect: is not as",
        "c: protect: is not as",
        "e: stat: No such file",
    ] {
        assert!(site.events().contains(path), "{path}: {}", site.events());
    }
    std::fs::remove_file(site.at("a")).unwrap();
    assert!(site.heals(&files[0].1));
    site.write("b/large", &files[1].1);
    site.write("c", &files[3].1);
    site.write("e", &files[5].1);
    site.write("a", &files[0].1);
    assert!(site.protect().unwrap().is_complete());
    cut(&site.at("e"), 250_000);
    assert!(site.heals(&files[5].1));
}

#[test]
fn content_is_taken_from_any_of_its_paths() {
    let (small, large) = (bytes(5000, 1), bytes(9_000_000, 2));
    let mut site = ProtectedSite::new(&[
        ("a", small.clone()),
        ("b", large.clone()),
        ("y", small.clone()),
        ("z", large.clone()),
    ]);
    flip(&site.at("a"), 0);
    flip(&site.at("b"), 8_999_999);
    site.volume = 16 << 20;
    let done = site.protect().unwrap();
    assert!(done.is_complete(), "{}", site.events());
    assert_eq!((done.written, done.bytes), (1, 9_005_000));
    // A block that one file lost is taken from the other.
    flip(&site.at("y"), 100);
    std::fs::remove_file(site.at("z")).unwrap();
    assert!(site.heals(&large) && site.heals(&small));
}

/// Files of a small tree are all taken before the first is found to differ: others that have the same
/// content come behind the end.
#[test]
fn another_file_is_tried_though_the_manifest_was_read_to_its_end() {
    let (one, other) = (bytes(5000, 1), bytes(100, 2));
    let site = ProtectedSite::new(&[
        ("a", one.clone()),
        ("b", other.clone()),
        ("y", one.clone()),
        ("z", other.clone()),
    ]);
    flip(&site.at("a"), 0);
    flip(&site.at("b"), 0);
    let done = site.protect().unwrap();
    assert!(done.is_complete(), "{}", site.events());
    assert_eq!((done.written, done.bytes), (1, 5100));
    // The last of eight; and none of ten.
    for (count, sound) in [(8, Some(7)), (10, None)] {
        let files: Vec<(String, Vec<u8>)> = (0..count)
            .map(|number| (format!("{number}"), one.clone()))
            .collect();
        let site = ProtectedSite::new(&borrowed(&files));
        for number in (0..count).filter(|number| Some(*number) != sound) {
            flip(&site.at(&format!("{number}")), 0);
        }
        let done = site.protect().unwrap();
        let unprotected = u64::from(sound.is_none());
        assert_eq!(
            (done.unprotected, done.written),
            (unprotected, 1 - unprotected),
            "{}",
            site.events()
        );
    }
}

/// Two pairs of equal files share a block, and the first of each pair was edited.
#[test]
fn one_block_may_need_the_second_names_of_several_contents() {
    let (one, other) = (bytes(1000, 1), bytes(2000, 2));
    let content = bytes(10 * BLOCK, 3);
    let site = ProtectedSite::new(&[
        ("a", one.clone()),
        ("b", other.clone()),
        ("c", content.clone()),
        ("y", one.clone()),
        ("z", other.clone()),
    ]);
    site.protect().unwrap();
    flip(&site.at("a"), 5);
    flip(&site.at("b"), 5);
    // As many as there is parity for, with no block to lose.
    for block in 2..5 {
        flip(&site.at("c"), (block * BLOCK) as u64);
    }
    assert!(site.heals(&content));
}

#[test]
fn holes_take_no_parity_and_come_back() {
    let mut content = bytes(BLOCK, 1);
    content.resize(200 * BLOCK, 0);
    content.extend(bytes(100, 2));
    let zeros = vec![0; 3 * BLOCK];
    let site = ProtectedSite::new(&[("a", content.clone()), ("b", zeros.clone())]);
    let done = site.protect().unwrap();
    assert!(done.is_complete(), "{}", site.events());
    assert_eq!((done.written, done.bytes), (1, (BLOCK + 100) as u64));
    assert!(
        std::fs::metadata(site.parity().join("000001.bcp"))
            .unwrap()
            .len()
            < 3 * BLOCK as u64
    );
    std::fs::remove_file(site.at("a")).unwrap();
    std::fs::remove_file(site.at("b")).unwrap();
    assert!(site.heals(&content) && site.heals(&zeros));
    let zeros_only = ProtectedSite::new(&[("z", zeros.clone())]);
    assert_eq!(zeros_only.protect().unwrap().written, 1);
    std::fs::remove_file(zeros_only.at("z")).unwrap();
    assert!(zeros_only.heals(&zeros));
}

/// What is missing of a file that was deleted or cut within zeros is known to be zero.
#[test]
fn a_lost_file_with_zeros_costs_its_volume_nothing() {
    let mut tail = bytes(BLOCK / 2, 1);
    tail.resize(BLOCK + BLOCK / 4, 0);
    let mut head = vec![0; BLOCK / 3];
    head.extend(bytes(BLOCK, 2));
    let other = bytes(12 * BLOCK, 3);
    for kind in 0..3 {
        let site = ProtectedSite::new(&[
            ("a", tail.clone()),
            ("b", head.clone()),
            ("c", other.clone()),
            ("d", vec![0; 1000]),
        ]);
        site.protect().unwrap();
        match kind {
            0 => std::fs::remove_file(site.at("d")).unwrap(),
            1 => cut(&site.at("a"), BLOCK as u64 / 2),
            _ => std::fs::remove_file(site.at("a")).unwrap(),
        }
        flip(&site.at("c"), 5 * BLOCK as u64);
        assert!(
            site.heals(&other) && site.heals(&tail) && site.heals(&head),
            "{kind}"
        );
        assert!(site.heals(&vec![0; 1000]), "{kind}");
    }
}

/// The last bytes that come are zeros alone: they are hashed all the same.
#[test]
fn a_tail_of_zeros_is_proven() {
    let mut content = bytes(8 << 20, 1);
    content.resize((8 << 20) + 3 * BLOCK, 0);
    let mut site = ProtectedSite::new(&[("a", content.clone())]);
    site.volume = 16 << 20;
    let path = site.at("a");
    flip(&path, 100);
    assert_eq!(site.protect().unwrap().unprotected, 1, "{}", site.events());
    assert_eq!(site.volumes().len(), 0);
    flip(&path, 100);
    assert!(site.protect().unwrap().is_complete());
    flip(&path, 100);
    assert!(site.heals(&content));
}

/// A large file that was edited, as its time says, is read before any of it is encoded: it costs no other
/// file a second reading.
#[test]
fn edited_large_files_do_not_have_the_others_read_again() {
    let files: Vec<(String, Vec<u8>)> = (0..10)
        .map(|number| (format!("{number}"), bytes(2_500_000, number)))
        .collect();
    let mut site = ProtectedSite::new(&borrowed(&files));
    (site.volume, site.redundancy, site.memory) = (16 << 20, "5%", Some(17 << 20));
    for number in (1..10).step_by(2) {
        let path = site.at(&format!("{number}"));
        flip(&path, 2_000_000);
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    let done = site.protect().unwrap();
    assert_eq!((done.unprotected, done.bytes), (5, 5 * 2_500_000));
    assert!(site.read.get() <= 2 * 25_000_000, "{}", site.read.get());
}

/// Where a volume is read twice, a file that changes between is left out, and no other one.
#[test]
fn files_that_change_while_they_are_protected_are_left_out_alone() {
    let mut files: Vec<(String, Vec<u8>)> = (0..100)
        .map(|number| (format!("a/{number:02}"), bytes(500, number)))
        .collect();
    files.push(("z".to_owned(), bytes(63 * BLOCK, 200)));
    let changed_at = |ordinals: &[usize]| {
        let mut site = ProtectedSite::new(&borrowed(&files));
        (site.volume, site.redundancy) = (16 << 20, "100%");
        (site.memory, site.threads) = (Some(13 << 20), 1);
        let changes: Vec<_> = ordinals
            .iter()
            .enumerate()
            .map(|(number, ordinal)| {
                let path = site.at(&format!("a/{:02}", 10 * number));
                let edit = move || std::fs::write(path, bytes(500, 300)).unwrap();
                (("open".to_owned(), *ordinal), Fault::Run(Box::new(edit)))
            })
            .collect();
        match changes.is_empty() {
            true => faults::watch(),
            false => faults::arm_all(changes),
        }
        let done = site.protect().unwrap();
        let seen = faults::disarm();
        assert!(ordinals.is_empty() || seen.reached);
        (site, done, seen)
    };
    let mut ordinals = Vec::new();
    for _ in 0..3 {
        // The header is written first, then some columns of the parity; then files are read again.
        let (_, _, seen) = changed_at(&ordinals);
        let start = if ordinals.is_empty() { 0 } else { seen.at };
        let calls = &seen.calls[start..];
        let header = start + calls.iter().position(|call| *call == "write").unwrap();
        let again = header
            + seen.calls[header..]
                .iter()
                .position(|call| *call == "open")
                .unwrap();
        let opened = seen.calls[..=again].iter().filter(|call| **call == "open");
        ordinals.push(opened.count());
    }
    let (site, done, _) = changed_at(&ordinals);
    assert_eq!(
        (done.unprotected, done.written),
        (3, 1),
        "{}",
        site.events()
    );
    for number in [11, 99] {
        std::fs::remove_file(site.at(&files[number].0)).unwrap();
        assert!(site.heals(&files[number].1), "{number}");
    }
}

#[test]
fn a_content_of_many_volumes_is_committed_part_by_part() {
    let content = bytes(70 << 20, 1);
    let mut site = ProtectedSite::new(&[("a", content.clone()), ("b", bytes(50, 2))]);
    (site.redundancy, site.volume) = ("5%", 2 << 20);
    let done = site.protect().unwrap();
    assert_eq!(
        (done.written, done.is_complete()),
        (36, true),
        "{}",
        site.events()
    );
    flip(&site.at("a"), 0);
    flip(&site.at("a"), 69 << 20);
    assert!(site.heals(&content));
    let again = ProtectedSite::new(&[("a", content), ("b", bytes(50, 2))]);
    flip(&again.at("a"), 69 << 20);
    let done = again.protect().unwrap();
    assert_eq!((done.written, done.unprotected), (1, 1));
}

/// Blocks that no volume has are taken from the damaged file itself, if the whole is right then.
#[test]
fn what_is_not_lost_of_a_content_needs_no_volume() {
    let content = bytes(3 << 20, 1);
    let site = ProtectedSite::new(&[("a", content.clone())]);
    site.protect().unwrap();
    assert_eq!(site.volumes().len(), 3);
    flip(&site.at("a"), 0);
    std::fs::remove_file(site.parity().join("000003.bcp")).unwrap();
    flip(&site.parity().join("000002.bcp"), 100);
    assert!(site.heals(&content));
    flip(&site.at("a"), (3 << 20) - 1);
    let short = RebuildOutcome::Short {
        blocks: 0,
        uncovered: 1 << 20,
    };
    assert_eq!(site.rebuild(&[site.lost(&content)], None), [short]);
}

#[test]
fn volumes_are_replaced_once_they_are_worn_and_never_while_they_may_heal() {
    let files = numbered(16);
    let mut site = ProtectedSite::new(&borrowed(&files));
    site.keep_removed = Some(0);
    site.protect().unwrap();
    // Two of four are not more than half.
    for (number, path) in ["00", "01"].iter().enumerate() {
        site.write(path, &bytes(BLOCK, 100 + number as u64));
    }
    site.record();
    let done = site.protect().unwrap();
    assert_eq!(
        (done.written, done.removed, done.bytes),
        (1, 0, 2 * BLOCK as u64)
    );
    // The old content of an edited file serves as long as it fits; another file comes back beside.
    std::fs::remove_file(site.at("05")).unwrap();
    assert!(site.heals(&files[5].1));
    site.write("05", &files[5].1);
    // A third one, and damage that no update has seen: nothing is given up.
    site.write("02", &bytes(BLOCK, 102));
    site.record();
    flip(&site.at("07"), 9);
    let done = site.protect().unwrap();
    assert_eq!(
        (done.removed, done.unprotected, done.held),
        (0, 1, 1),
        "{}",
        site.events()
    );
    assert!(site.events().contains("held") && site.events().contains("000001.bcp"));
    assert!(site.heals(&files[7].1));
    // The rest has other parity by now.
    assert_eq!(done.bytes, 13 * BLOCK as u64);
    site.write("07", &files[7].1);
    let done = site.protect().unwrap();
    assert!(done.is_complete() && done.removed >= 1, "{}", site.events());
    assert!(!site.volumes().contains(&"000001.bcp".to_owned()));
    for (path, content) in &files[3..] {
        std::fs::remove_file(site.at(path)).unwrap();
        assert!(site.heals(content), "{path}");
        site.write(path, content);
    }
    // What was removed is kept for a month, and what is left has new parity at once.
    site.keep_removed = Some(30 * DAY);
    for path in ["10", "11", "12", "13"] {
        std::fs::remove_file(site.at(path)).unwrap();
    }
    site.record();
    let kept = site.protect().unwrap();
    assert!(kept.kept == 1 && kept.is_complete(), "{}", site.events());
    assert!(site.heals(&files[11].1));
    for path in ["03", "04"] {
        std::fs::remove_file(site.at(path)).unwrap();
    }
    assert!(site.heals(&files[3].1));
    site.write("03", &files[3].1);
    site.write("04", &files[4].1);
    // A month is as long as runs have seen it: half of it at most between two of them.
    site.now += 400 * DAY;
    assert_eq!(site.protect().unwrap().kept, 1);
    site.now -= 300 * DAY;
    assert_eq!(site.protect().unwrap().kept, 1);
    site.now += 15 * DAY;
    let done = site.protect().unwrap();
    assert!(done.kept == 0 && done.removed > 0, "{}", site.events());
    assert!(!site.heals(&files[11].1));
}

/// Files that went by leave a volume that cannot heal any more: what else is in it is protected again in
/// the same run.
#[test]
fn removed_files_leave_their_neighbours_protected() {
    let files = numbered(16);
    let site = ProtectedSite::new(&borrowed(&files));
    site.protect().unwrap();
    for path in ["00", "01", "02", "03", "04", "05"] {
        std::fs::remove_file(site.at(path)).unwrap();
    }
    site.record();
    let done = site.protect().unwrap();
    assert_eq!(
        (done.bytes, done.kept),
        (10 * BLOCK as u64, 1),
        "{}",
        site.events()
    );
    for (path, content) in &files[6..8] {
        std::fs::remove_file(site.at(path)).unwrap();
        assert!(site.heals(content));
    }
    assert_eq!(site.protect().unwrap().written, 0);
}

/// A failure that a manifest records.
fn unreadable(op: &str) -> Option<bc_manifest::Failure> {
    Some(bc_manifest::Failure {
        op: op.into(),
        errno: Some(5),
        message: "I/O error".into(),
    })
}

/// A manifest made after files became unreadable does not know them: what could heal them stays, for as
/// long as they are there.
#[test]
fn a_file_that_could_not_be_recorded_keeps_its_parity() {
    let files = numbered(16);
    for keep in [None, Some(0)] {
        let mut site = ProtectedSite::new(&borrowed(&files));
        site.keep_removed = keep;
        site.protect().unwrap();
        // As a manifest has them that is made after three files became unreadable.
        site.rewrite(|entry| {
            if [&b"00"[..], b"01", b"02"].contains(&&entry.path[..]) {
                entry.digest = None;
                entry.error = unreadable("read");
            }
        });
        let done = site.protect().unwrap();
        assert_eq!((done.removed, done.held), (0, 1), "{}", site.events());
        assert_eq!(done.unprotected, 3);
        assert!(
            site.events()
                .contains("00: protect: could not be read when it was recorded")
        );
        assert!(!done.is_complete());
        for _ in 0..2 {
            site.now += 15 * DAY;
            assert_eq!(site.protect().unwrap().held, 1, "{}", site.events());
        }
        std::fs::remove_file(site.at("00")).unwrap();
        assert!(site.heals(&files[0].1));
        // Once they are gone, their time begins.
        site.rewrite_all(
            |_| {},
            |entry| entry.kind == Kind::Dir || entry.digest.is_some(),
        );
        let done = site.protect().unwrap();
        let (kept, removed) = if keep.is_none() { (1, 0) } else { (0, 1) };
        assert_eq!((done.kept, done.removed), (kept, removed));
    }
}

/// Nor does it know the files of a directory that could not be read, or a file that was renamed before.
#[test]
fn what_an_unread_directory_or_a_renamed_file_may_have_keeps_its_parity() {
    let files: Vec<(String, Vec<u8>)> = numbered(16)
        .into_iter()
        .map(|(path, bytes)| (format!("d/e/{path}"), bytes))
        .collect();
    let mut site = ProtectedSite::new(&borrowed(&files));
    site.keep_removed = Some(0);
    site.protect().unwrap();
    site.rewrite_all(
        |_| {},
        |entry| {
            if entry.path == b"d" {
                entry.error = unreadable("open directory");
            }
            !entry.path.starts_with(b"d/")
        },
    );
    let done = site.protect().unwrap();
    assert_eq!((done.removed, done.held), (0, 1), "{}", site.events());
    // Extended attributes say nothing of what is in it.
    site.rewrite(|entry| {
        if entry.path == b"d" {
            entry.error = unreadable("getxattr");
        }
    });
    let done = site.protect().unwrap();
    assert_eq!((done.removed, done.held), (1, 0), "{}", site.events());
    let site = ProtectedSite::new(&[("a", bytes(777, 1)), ("b", bytes(888, 2))]);
    site.protect().unwrap();
    std::fs::rename(site.at("a"), site.at("c")).unwrap();
    site.record();
    site.rewrite(|entry| {
        if entry.path == b"c" {
            entry.digest = None;
            entry.error = unreadable("read");
        }
    });
    let done = site.protect().unwrap();
    assert_eq!((done.removed, done.held), (0, 1), "{}", site.events());
}

/// A worn volume may be the only one that repairs a damaged file, though another one has the file, too.
#[test]
fn a_worn_volume_stays_while_files_in_it_are_damaged() {
    let files = numbered(16);
    let mut site = worn_and_damaged(&files);
    for _ in 0..2 {
        site.now += 15 * DAY;
        let done = site.protect().unwrap();
        assert!(done.held > 0 && !done.is_complete(), "{}", site.events());
    }
    assert!(site.volumes().contains(&"000001.bcp".to_owned()));
    assert!(site.heals(&files[3].1));
    // It goes once nothing is damaged any more.
    site.write("03", &files[3].1);
    for (number, path) in ["00", "01", "02"].iter().enumerate() {
        site.write(path, &bytes(BLOCK, 100 + number as u64));
    }
    site.record();
    let done = site.protect().unwrap();
    assert!(done.is_complete(), "{}", site.events());
    assert!(!site.volumes().contains(&"000001.bcp".to_owned()));
}

/// A tree of which three files were edited, so that their volume is worn; then they and a fourth one are
/// damaged, and a parity block of the volume that took over. Only the worn one repairs the fourth, and
/// only with that back the other one has parity enough for the rest.
pub(crate) fn worn_and_damaged(files: &[(String, Vec<u8>)]) -> ProtectedSite {
    let site = ProtectedSite::new(&borrowed(files));
    site.protect().unwrap();
    for (number, path) in ["00", "01", "02"].iter().enumerate() {
        site.write(path, &bytes(BLOCK, 100 + number as u64));
    }
    site.record();
    let done = site.protect().unwrap();
    assert_eq!((done.written, done.kept), (1, 1), "{}", site.events());
    let damaged = ["00", "01", "02", "03"];
    damaged.iter().for_each(|path| flip(&site.at(path), 0));
    site.note_damaged(&damaged);
    let volume = site.parity().join("000002.bcp");
    let (_, head) = volume_bytes(&volume);
    assert_eq!((head.data, head.parity), (16, 4));
    flip(&volume, head.layout().parity(0) + 50);
    site
}

/// Content that was edited keeps a volume; but if no other one has the rest, that is what is reported.
#[test]
fn a_volume_that_alone_has_a_damaged_file_is_not_kept_for_removed_ones() {
    let files = numbered(16);
    let site = ProtectedSite::new(&borrowed(&files));
    site.protect().unwrap();
    for (number, path) in ["00", "01", "02"].iter().enumerate() {
        site.write(path, &bytes(BLOCK, 100 + number as u64));
    }
    site.record();
    flip(&site.at("07"), 0);
    let done = site.protect().unwrap();
    assert_eq!(
        (done.held, done.kept, done.unprotected),
        (1, 0, 1),
        "{}",
        site.events()
    );
    // Nor if the run failed half way: then nothing is said of it.
    let site = ProtectedSite::new(&borrowed(&files));
    site.protect().unwrap();
    for (number, path) in ["00", "01", "02"].iter().enumerate() {
        site.write(path, &bytes(BLOCK, 100 + number as u64));
    }
    site.record();
    let full = Fault::Errnos(rustix::io::Errno::NOSPC, 2);
    // The first is the lock.
    faults::arm(("create".to_owned(), 2), full);
    let error = site.protect().unwrap_err();
    assert!(faults::disarm().reached);
    assert!(error.to_string().contains("No space left"), "{error}");
    assert!(!site.events().contains("kept"), "{}", site.events());
    assert!(!site.events().contains("held"), "{}", site.events());
}

/// Files that are damaged beyond repair leave the others of their volume with parity that works.
#[test]
fn neighbours_of_many_damaged_files_are_protected_again() {
    let files = numbered(16);
    let site = ProtectedSite::new(&borrowed(&files));
    site.protect().unwrap();
    let damaged = ["00", "01", "02", "03", "04"];
    damaged.iter().for_each(|path| flip(&site.at(path), 0));
    site.note_damaged(&damaged);
    let done = site.protect().unwrap();
    assert_eq!(
        (done.written, done.bytes, done.held),
        (1, 11 * BLOCK as u64, 1),
        "{}",
        site.events()
    );
    flip(&site.at("09"), 0);
    assert!(site.heals(&files[9].1));
    site.write("09", &files[9].1);
    // Once is enough; what is damaged is not tried again.
    let done = site.protect().unwrap();
    assert_eq!(
        (done.written, done.unprotected, done.held),
        (0, 0, 1),
        "{}",
        site.events()
    );
    let check = site.check().unwrap();
    assert_eq!((check.unprotected, check.is_good()), (0, false));
    // A volume of which no file is to be seen has no neighbours: a disk that is not mounted.
    let site = ProtectedSite::new(&borrowed(&files));
    site.protect().unwrap();
    site.rewrite(|entry| {
        if entry.kind == Kind::File {
            entry.extra.insert(UNSEEN_AT.to_owned(), "now".into());
        }
    });
    let done = site.protect().unwrap();
    assert_eq!((done.written, done.held, done.is_complete()), (0, 0, true));
}

#[test]
fn volumes_of_a_killed_run_are_found_and_the_older_ones_go() {
    let files = numbered(16);
    let mut site = ProtectedSite::new(&borrowed(&files));
    site.keep_removed = Some(0);
    site.protect().unwrap();
    let old = std::fs::read(site.parity().join("000001.bcp")).unwrap();
    for path in ["00", "01", "02"] {
        site.write(
            path,
            &bytes(BLOCK, 500 + path.len() as u64 + path.as_bytes()[1] as u64),
        );
    }
    site.record();
    site.protect().unwrap();
    // As it was before the last step.
    std::fs::write(site.parity().join("000001.bcp"), &old).unwrap();
    let done = site.protect().unwrap();
    assert_eq!((done.written, done.removed), (0, 1), "{}", site.events());
    // Parity of the volume that takes over has gone bad since.
    std::fs::write(site.parity().join("000001.bcp"), &old).unwrap();
    let new = site.parity().join("000002.bcp");
    let (_, head) = volume_bytes(&new);
    (0..3).for_each(|number| flip(&new, head.layout().parity(number) + 50));
    let done = site.protect().unwrap();
    assert_eq!((done.removed, done.held), (0, 1), "{}", site.events());
    // What was found is noted: the next run protects all of it again.
    let done = site.protect().unwrap();
    assert!(
        done.written >= 1 && done.removed == 2,
        "{done:?} {}",
        site.events()
    );
    std::fs::remove_file(site.at("09")).unwrap();
    assert!(site.heals(&files[9].1));
}

#[test]
fn small_volumes_are_merged_once_there_are_some() {
    let files = numbered(5);
    let site = ProtectedSite::new(&[]);
    for (number, (path, content)) in files.iter().enumerate() {
        site.write(path, content);
        site.record();
        let done = site.protect().unwrap();
        let (written, removed) = if number == 4 { (1, 4) } else { (1, 0) };
        assert_eq!((done.written, done.removed), (written, removed), "{number}");
    }
    assert_eq!(site.volumes(), ["000005.bcp"]);
    for (path, content) in &files {
        std::fs::remove_file(site.at(path)).unwrap();
        assert!(site.heals(content));
        site.write(path, content);
    }
}

#[test]
fn an_index_that_is_lost_or_altered_makes_nothing_go() {
    let files = numbered(8);
    let mut site = ProtectedSite::new(&borrowed(&files));
    site.protect().unwrap();
    let index = site.parity().join("index.jsonl");
    let first = std::fs::read_to_string(&index).unwrap();
    for path in ["1", "2", "3"] {
        std::fs::remove_file(site.at(&format!("0{path}"))).unwrap();
    }
    site.record();
    assert_eq!(site.protect().unwrap().kept, 1);
    let gone = std::fs::read_to_string(&index).unwrap();
    assert!(gone.contains("\"gone\":[[1,4,0]]"), "{gone}");
    // Older by another hand: the digest does not fit.
    std::fs::write(&index, gone.replace("[1,4,0]", "[1,4,99999999]")).unwrap();
    site.now += 15 * DAY;
    assert_eq!(site.protect().unwrap().kept, 1);
    site.now += 15 * DAY;
    assert_eq!(site.protect().unwrap().kept, 1);
    std::fs::remove_file(&index).unwrap();
    site.now += 15 * DAY;
    assert_eq!(site.protect().unwrap().kept, 1);
    // Something else has the name: it gets another one.
    std::fs::write(&index, "my own list\n").unwrap();
    assert_eq!(site.protect().unwrap().kept, 1);
    let aside = site.parity().join("index.jsonl.other-1");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "my own list\n");
    std::fs::remove_file(site.parity().join("index.jsonl.other-1")).unwrap();
    // An old index, of volumes that had the same numbers.
    std::fs::write(&index, first).unwrap();
    assert_eq!(site.protect().unwrap().kept, 1);
    site.keep_removed = Some(0);
    let done = site.protect().unwrap();
    assert!(done.is_complete() && done.removed == 1, "{}", site.events());
}

#[test]
fn an_older_manifest_removes_nothing() {
    let files = numbered(8);
    let mut site = ProtectedSite::new(&borrowed(&files));
    site.keep_removed = Some(0);
    let old = std::fs::read(site.list()).unwrap();
    for path in ["01", "02", "03"] {
        site.write(path, &bytes(BLOCK, 77 + u64::from(path.as_bytes()[1])));
    }
    site.record();
    site.protect().unwrap();
    let volumes = site.volumes();
    std::fs::write(site.list(), &old).unwrap();
    let done = site.protect().unwrap();
    assert_eq!((done.removed, done.is_complete()), (0, false));
    assert!(
        site.events()
            .contains("not removing: the manifest is older"),
        "{}",
        site.events()
    );
    assert!(volumes.iter().all(|volume| site.volumes().contains(volume)));
}

/// After a clock that ran ahead every manifest is an older one: that is reported, and has a way out.
#[test]
fn a_manifest_from_the_future_is_not_the_latest_for_ever() {
    let mut site = ProtectedSite::new(&borrowed(&numbered(4)));
    let future = |header: &mut Header| {
        let time = "2199-01-01T00:00:00Z";
        header.extra.insert("updated_at".to_owned(), time.into());
    };
    site.rewrite_all(future, |_| true);
    assert!(site.protect().unwrap().is_complete());
    site.write("new", b"new");
    site.record();
    for dry_run in [true, false] {
        let done = site.protect_or_foresee(dry_run).unwrap();
        assert!(done.is_blocked && !done.is_complete(), "{dry_run}");
        assert!(
            site.events()
                .contains("not removing: the manifest is older"),
            "{}",
            site.events()
        );
    }
    let has_new = |site: &ProtectedSite| {
        let copy = ManifestFile::open(manifest_copy(&site.parity()).unwrap()).unwrap();
        let mut entries = copy.entries().unwrap();
        entries.any(|entry| entry.unwrap().path == b"new")
    };
    assert!(!has_new(&site));
    for adopt in [true, false] {
        site.adopt = adopt;
        let done = site.protect().unwrap();
        assert!(done.is_complete(), "{}", site.events());
    }
    assert!(has_new(&site));
}

/// A full disk: volumes that no manifest lists go before its copy is written.
#[test]
fn spent_volumes_go_though_there_is_no_room_for_the_copy() {
    let files = numbered(4);
    let mut site = ProtectedSite::new(&borrowed(&files));
    site.keep_removed = Some(0);
    site.protect().unwrap();
    for (path, _) in &files {
        std::fs::remove_file(site.at(path)).unwrap();
    }
    site.write("new", b"new");
    site.record();
    // The first is the lock.
    let full = Fault::Errnos(rustix::io::Errno::NOSPC, 2);
    faults::arm(("create".to_owned(), 2), full);
    let error = site.protect().unwrap_err();
    assert!(faults::disarm().reached);
    assert!(error.to_string().contains("No space left"), "{error}");
    assert!(!site.parity().join("000001.bcp").exists());
    assert!(site.protect().unwrap().is_complete());
}

/// What the newest volume does not say is lost with the index, and that is reported.
#[test]
fn settings_that_are_lost_with_the_index_are_reported() {
    let mut site = ProtectedSite::new(&borrowed(&numbered(4)));
    site.protect().unwrap();
    assert!(!site.events().contains("index lost"));
    site.keep_removed = Some(365 * DAY);
    assert!(site.protect().unwrap().has_new_settings);
    site.keep_removed = None;
    std::fs::remove_file(site.parity().join("index.jsonl")).unwrap();
    site.protect().unwrap();
    assert!(site.events().contains("index lost: 30 days"));
    site.protect().unwrap();
    assert!(!site.events().contains("index lost"), "{}", site.events());
}

#[test]
fn a_dry_run_foresees_which_volumes_go() {
    let foretold = |site: &ProtectedSite| {
        let foreseen = site.protect_or_foresee(true).unwrap();
        let foretold = site.events();
        let done = site.protect().unwrap();
        let of = |done: &Protected| {
            let Protected {
                written,
                removed,
                volumes,
                unprotected,
                held,
                kept,
                is_blocked,
                ..
            } = done;
            let counts = [written, removed, volumes, unprotected, held, kept].map(|count| *count);
            (counts, *is_blocked)
        };
        assert_eq!(of(&foreseen), of(&done), "{foretold}\n{}", site.events());
        done
    };
    let files = numbered(8);
    let mut site = ProtectedSite::new(&borrowed(&files));
    foretold(&site);
    for (number, (path, _)) in files.iter().enumerate() {
        site.write(path, &bytes(BLOCK, 700 + number as u64));
    }
    site.record();
    assert_eq!(foretold(&site).kept, 1);
    for kept in [1, 0] {
        site.now += 15 * DAY;
        assert_eq!(foretold(&site).kept, kept);
    }
    assert_eq!(site.volumes(), ["000002.bcp"]);
    let files = numbered(16);
    let mut site = worn_and_damaged(&files);
    site.now += 15 * DAY;
    assert!(foretold(&site).held > 0);
}

#[test]
fn a_directory_is_of_one_tree_and_one_manifest() {
    let mut site = ProtectedSite::new(&[("a", bytes(100, 1))]);
    site.protect().unwrap();
    let mine = site.parity();
    // Another manifest of the same tree, with other content.
    std::fs::copy(site.list(), site.dir.path().join("other.jsonl")).unwrap();
    let (root, list) = (site.root(), site.dir.path().join("other.jsonl"));
    let other = ManifestFile::open(&list).unwrap();
    let options = ProtectOptions::new(&root, &other, NOW).dir(mine.clone());
    let error = site.protect_as(&options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(
        error
            .to_string()
            .contains("is the parity of 'tree.jsonl' of"),
        "{error}"
    );
    // Lost with its index, too, as the volumes say whose they are.
    std::fs::remove_file(mine.join("index.jsonl")).unwrap();
    assert!(site.protect_as(&options).is_err());
    // A tree that has the same name elsewhere.
    let elsewhere = ProtectedSite::new(&[("a", bytes(100, 2))]);
    let (root, manifest) = (elsewhere.root(), elsewhere.manifest());
    let theirs = ProtectOptions::new(&root, &manifest, NOW).dir(mine.clone());
    assert!(elsewhere.protect_as(&theirs).is_err());
    // Adopted, since it was renamed; then the old name is refused.
    site.protect_as(&options.clone().adopt(true)).unwrap();
    site.protect_as(&options).unwrap();
    assert!(site.protect().is_err());
    site.adopt = true;
    site.protect().unwrap();
    // Volumes of another directory serve nobody here, and stay.
    let elsewhere_dir = elsewhere.parity();
    elsewhere.protect().unwrap();
    std::fs::copy(elsewhere_dir.join("000001.bcp"), mine.join("000002.bcp")).unwrap();
    let done = site.protect().unwrap();
    assert_eq!((done.unreadable, done.removed), (1, 0), "{}", site.events());
}

#[test]
fn other_files_are_not_among_parity() {
    let site = ProtectedSite::new(&[("a", bytes(100, 1))]);
    let dir = site.parity();
    std::fs::create_dir(&dir).unwrap();
    for name in ["index.jsonl", "letter.txt"] {
        std::fs::write(dir.join(name), "mine\n").unwrap();
        let error = site.protect().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(!crate::is_parity_dir(&dir));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        std::fs::remove_file(dir.join(name)).unwrap();
    }
    site.protect().unwrap();
    assert!(crate::is_parity_dir(&dir));
    // No directory above it is made.
    let (root, manifest) = (site.root(), site.manifest());
    let missing = site.dir.path().join("no/disk");
    let options = ProtectOptions::new(&root, &manifest, NOW).dir(missing);
    let error = site.protect_as(&options).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    assert!(!site.dir.path().join("no").exists());
    let unmade = ProtectOptions::new(&root, &manifest, NOW)
        .dir(site.dir.path().join("new"))
        .creates(false);
    assert!(site.protect_as(&unmade).is_err());
    assert!(!site.dir.path().join("new").exists());
    // Nor is it in the tree, but beside the manifest.
    let inside = ProtectOptions::new(&root, &manifest, NOW).dir(site.root().join("p"));
    let error = site.protect_as(&inside).unwrap_err();
    assert!(error.to_string().contains("is inside the tree"), "{error}");
}

#[test]
fn nobody_else_reads_what_parity_gives_away() {
    use std::os::unix::fs::PermissionsExt;
    let site = ProtectedSite::new(&[("a", bytes(100, 1))]);
    site.protect().unwrap();
    for entry in std::fs::read_dir(site.parity()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}

#[test]
fn settings_are_those_of_the_directory_until_others_are_given() {
    let site = ProtectedSite::new(&borrowed(&numbered(8)));
    site.protect().unwrap();
    site.write("90", &bytes(8 * BLOCK, 90));
    site.record();
    let (root, manifest) = (site.root(), site.manifest());
    let options = ProtectOptions::new(&root, &manifest, NOW);
    site.protect_as(&options).unwrap();
    let (_, head) = volume_bytes(&site.parity().join("000002.bcp"));
    assert_eq!((head.data, head.parity), (8, 2));
    site.protect_as(&options.clone().redundancy(Some("50%".parse().unwrap())))
        .unwrap();
    site.write("91", &bytes(8 * BLOCK, 91));
    site.record();
    let manifest = site.manifest();
    site.protect_as(&ProtectOptions::new(&root, &manifest, NOW))
        .unwrap();
    let (_, head) = volume_bytes(&site.parity().join("000003.bcp"));
    assert_eq!((head.data, head.parity), (8, 4));
}

#[test]
fn check_reads_parity_alone_and_notes_what_is_damaged() {
    let content = bytes(16 * BLOCK, 7);
    let site = ProtectedSite::new(&[("a", content.clone()), ("b", bytes(10, 1))]);
    let checked = || site.check().unwrap();
    let before = checked();
    assert!(!before.is_good() && before.volumes.is_empty());
    assert_eq!(
        (before.unprotected, before.unprotected_bytes),
        (2, 16 * BLOCK as u64 + 10)
    );
    site.protect().unwrap();
    let volume = site.parity().join("000001.bcp");
    let (_, head) = volume_bytes(&volume);
    assert!(checked().is_good());
    std::fs::remove_file(site.at("a")).unwrap();
    assert!(checked().is_good());
    let of_first = |check: crate::ParityCheck| {
        (
            check.volumes[0].damaged,
            check.volumes[0].spare,
            check.is_good(),
        )
    };
    for number in 0..3 {
        flip(&volume, head.layout().parity(number) + 100);
        assert_eq!(
            of_first(checked()),
            (number as u64 + 1, 3 - number as u64, number < 2)
        );
    }
    // Protect does not read parity that was read not long ago; it knows what was found.
    site.write("a", &content);
    let done = site.protect().unwrap();
    assert_eq!((done.written, done.removed), (1, 1), "{}", site.events());
    assert!(checked().is_good());
}

#[test]
fn parity_is_read_again_after_a_month() {
    let mut site = ProtectedSite::new(&borrowed(&numbered(8)));
    site.protect().unwrap();
    let volume = site.parity().join("000001.bcp");
    let (_, head) = volume_bytes(&volume);
    (0..2).for_each(|number| flip(&volume, head.layout().parity(number) + 100));
    assert_eq!(site.protect().unwrap().written, 0);
    site.now += 31 * DAY;
    let done = site.protect().unwrap();
    assert_eq!((done.written, done.removed), (1, 1), "{}", site.events());
}

#[test]
fn hostile_directories_give_errors_and_touch_nothing() {
    let content = bytes(3 * BLOCK, 7);
    let site = ProtectedSite::new(&[("a", content.clone())]);
    site.protect().unwrap();
    let volume = site.parity().join("000001.bcp");
    let (whole, good) = volume_bytes(&volume);
    // A head with any numbers has a right digest of its own.
    let forged = |at: usize, value: &[u8]| {
        let mut file = whole.clone();
        let mut head = whole[..HEAD].to_vec();
        head[at..at + value.len()].copy_from_slice(value);
        let digest = bc_digest::hash(Algorithm::Blake3, &head[..HEAD - 32]);
        head[HEAD - 32..].copy_from_slice(digest.as_bytes());
        for offset in good
            .layout()
            .copies()
            .into_iter()
            .chain([good.layout().footer()])
        {
            file[offset as usize..offset as usize + HEAD].copy_from_slice(&head);
        }
        file
    };
    let most = u64::MAX.to_le_bytes();
    let cases = [
        forged(48, &most[..4]),
        forged(52, &most[..4]),
        forged(52, &4_u32.to_le_bytes()),
        forged(48, &2_u32.to_le_bytes()),
        forged(56, &most),
        forged(64, &most),
        forged(64, &(1_u64 << 22).to_le_bytes()),
        forged(64, &[0; 8]),
        forged(32, &2_u64.to_le_bytes()),
        forged(16, &[0; 16]),
        forged(40, &[0; 8]),
        forged(12, &1_u32.to_le_bytes()),
        Vec::new(),
        whole[..HEAD].to_vec(),
        vec![0; 1 << 20],
        whole[..HEAD].repeat(9000),
    ];
    flip(&site.at("a"), 0);
    for (number, case) in cases.iter().enumerate() {
        std::fs::write(&volume, case).unwrap();
        assert_eq!(
            site.rebuild(&[site.lost(&content)], None),
            [RebuildOutcome::Unprotected],
            "{number}"
        );
        let done = site.protect().unwrap();
        assert_eq!(
            (done.unreadable, done.unprotected, done.removed),
            (1, 1, 0),
            "{number}: {}",
            site.events()
        );
        assert_eq!(&std::fs::read(&volume).unwrap(), case);
    }
    // A later version's.
    std::fs::write(&volume, forged(8, &2_u32.to_le_bytes())).unwrap();
    assert_eq!(site.protect().unwrap_err().kind(), ErrorKind::Usage);
    // A file without end is not searched, and a number without end counts no further.
    let huge = std::fs::File::create(&volume).unwrap();
    huge.set_len(1 << 42).unwrap();
    assert_eq!(site.protect().unwrap().unreadable, 1);
    assert!(site.events().contains("longer than any volume"));
    std::fs::write(site.parity().join("18446744073709551615.bcp"), &whole).unwrap();
    std::fs::write(site.parity().join("999999999.bcp"), b"").unwrap();
    assert!(site.protect().is_err());
    std::fs::remove_file(site.parity().join("18446744073709551615.bcp")).unwrap();
    std::fs::remove_file(site.parity().join("999999999.bcp")).unwrap();
    // Links lead nowhere, and a FIFO is not waited for.
    let elsewhere = site.dir.path().join("elsewhere");
    std::fs::write(&elsewhere, &whole).unwrap();
    std::fs::remove_file(&volume).unwrap();
    symlink("../elsewhere", &volume).unwrap();
    assert_eq!(site.protect().unwrap().unreadable, 1);
    std::fs::remove_file(&volume).unwrap();
    let dir = dirfd::open_root(site.parity().as_os_str().as_encoded_bytes()).unwrap();
    bc_edit::entry::make_node(&dir, "000001.bcp", rustix::fs::FileType::Fifo, 0).unwrap();
    assert_eq!(site.protect().unwrap().unreadable, 1);
    std::fs::remove_file(&volume).unwrap();
    // Nothing is written through a link: of the index, the lock, or a volume.
    site.write("a", &content);
    let index = site.parity().join("index.jsonl");
    std::fs::remove_file(&index).unwrap();
    for name in ["index.jsonl", "lock", "000001.bcp"] {
        let path = site.parity().join(name);
        let _ = std::fs::remove_file(&path);
        symlink("../elsewhere", &path).unwrap();
        let _ = site.protect();
        assert_eq!(std::fs::read(&elsewhere).unwrap(), whole, "{name}");
        std::fs::remove_file(&path).unwrap();
    }
}

/// A volume that says that a content is its own, and has other bytes, hides none that has it.
#[test]
fn a_wrong_volume_hides_no_right_one() {
    let content = bytes(3 * BLOCK, 7);
    let site = ProtectedSite::new(&[("a", content.clone()), ("b", bytes(5, 1))]);
    site.protect().unwrap();
    let dir = ParityDir::open(&site.parity(), DirUse::Read)
        .unwrap()
        .unwrap();
    let mut header = dir.read(1).unwrap().header;
    let piece = &mut header.pieces[0];
    piece.bytes = crate::format::PieceBytes::Zeros;
    header.pieces[1].bytes = crate::format::PieceBytes::Stream(0);
    header.id.number = 2;
    (header.parity, header.blocks) = (1, vec![[0; 16]]);
    let packed = header.pack().unwrap();
    let mut file = vec![0; packed.layout.len() as usize];
    for offset in packed.layout.copies() {
        file[offset as usize..][..packed.copy.len()].copy_from_slice(&packed.copy);
    }
    std::fs::write(site.parity().join("000002.bcp"), file).unwrap();
    std::fs::remove_file(site.at("a")).unwrap();
    flip(&site.at("b"), 0);
    site.write(
        "a",
        &[&content[..BLOCK], &vec![1; BLOCK], &content[2 * BLOCK..]].concat(),
    );
    assert!(!site.heals(b"other"));
    assert!(site.heals(&content));
}

#[test]
fn one_run_at_a_time_and_digests_that_identify() {
    let mut site = ProtectedSite::new(&[("a", bytes(10, 1))]);
    let held = ParityDir::open(&site.parity(), DirUse::Create)
        .unwrap()
        .unwrap();
    assert_eq!(site.protect().unwrap_err().kind(), ErrorKind::Busy);
    // Those that only read would find volumes gone whose content others have by then.
    assert_eq!(site.check().unwrap_err().kind(), ErrorKind::Busy);
    let foreseen = site.protect_or_foresee(true);
    assert_eq!(foreseen.unwrap_err().kind(), ErrorKind::Busy);
    drop(held);
    site.algorithm = Algorithm::Xxh64;
    site.record();
    assert_eq!(site.protect().unwrap_err().kind(), ErrorKind::Usage);
    site.algorithm = Algorithm::Md5;
    site.record();
    assert!(site.protect().unwrap().is_complete());
    use std::os::unix::fs::PermissionsExt;
    let mode = |mode| {
        std::fs::set_permissions(site.parity(), std::fs::Permissions::from_mode(mode)).unwrap()
    };
    mode(0o777);
    assert_eq!(site.protect().unwrap_err().kind(), ErrorKind::Refused);
    mode(0o700);
    site.algorithm = Algorithm::Blake3;
    site.record();
    let error = site.protect().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

/// The program itself takes 24 MiB of 64.
#[test]
fn a_million_files_fit_into_a_small_budget_of_memory() {
    let site = ProtectedSite::new(&borrowed(&numbered(2)));
    let (root, manifest) = (site.root(), site.manifest());
    let options = ProtectOptions::new(&root, &manifest, NOW).memory(Some(40 << 20));
    assert!(options.lists_memory() >= 1_000_000 * PER_FILE);
    let least = ContentTable::of(&manifest, 2 * PER_FILE).unwrap();
    assert_eq!(least.len(), 2);
    let error = ContentTable::of(&manifest, 2 * PER_FILE - 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("1 more are needed"), "{error}");
}

#[test]
fn parity_is_made_in_a_directory_without_any_only_if_that_is_asked_for() {
    let site = ProtectedSite::new(&[("a", bytes(10, 1))]);
    std::fs::create_dir(site.parity()).unwrap();
    let (root, manifest) = (site.root(), site.manifest());
    let options = ProtectOptions::new(&root, &manifest, NOW);
    let error = site
        .protect_as(&options.clone().creates(false))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(std::fs::read_dir(site.parity()).unwrap().count(), 0);
    site.protect_as(&options).unwrap();
    site.protect_as(&options.clone().creates(false)).unwrap();
}

#[test]
fn an_empty_root_is_a_disk_that_is_not_mounted() {
    let site = ProtectedSite::new(&[("a", bytes(10, 1))]);
    std::fs::remove_file(site.at("a")).unwrap();
    assert_eq!(site.protect().unwrap_err().kind(), ErrorKind::Refused);
    std::fs::remove_dir(site.root()).unwrap();
    assert_eq!(site.protect().unwrap_err().kind(), ErrorKind::NotFound);
    // Unless the manifest has nothing in it either.
    let site = ProtectedSite::new(&[("a", bytes(10, 1))]);
    site.protect().unwrap();
    std::fs::remove_file(site.at("a")).unwrap();
    site.rewrite_all(|_| {}, |entry| entry.kind != Kind::File);
    assert_eq!(site.protect().unwrap().kept, 1);
}

/// Files that differ may all come first in path order.
#[test]
fn many_files_that_differ_leave_the_others_protected() {
    let files: Vec<(String, Vec<u8>)> = (0..1001)
        .map(|number| (format!("a/{number}"), bytes(9, number)))
        .chain([("b".to_owned(), bytes(9, 2000))])
        .collect();
    let site = ProtectedSite::new(&borrowed(&files));
    std::fs::remove_dir_all(site.at("a")).unwrap();
    let done = site.protect().unwrap();
    assert_eq!((done.written, done.unprotected), (1, 1001));
    // A disk that is not mounted is no sign of another tree either.
    let site = ProtectedSite::new(&borrowed(&files));
    std::fs::remove_dir_all(site.at("a")).unwrap();
    site.rewrite(|entry| {
        if entry.path.starts_with(b"a/") {
            entry.extra.insert(UNSEEN_AT.to_owned(), "now".into());
        }
    });
    flip(&site.at("b"), 0);
    let done = site.protect().unwrap();
    assert_eq!((done.written, done.unprotected), (0, 1002));
}

#[test]
fn another_tree_is_noticed() {
    let files: Vec<(String, Vec<u8>)> = (0..1001)
        .map(|number| (format!("{number}"), bytes(9, number)))
        .collect();
    let site = ProtectedSite::new(&borrowed(&files));
    for (path, _) in &files {
        std::fs::remove_file(site.at(path)).unwrap();
    }
    site.write("other", b"tree");
    let error = site.protect().unwrap_err();
    assert!(
        error.to_string().contains("is it that of another tree?"),
        "{error}"
    );
}

/// Each sector of a volume fails to be read once: its header comes from another copy, its parity
/// block is one that is lost.
#[test]
fn a_sector_that_cannot_be_read_is_damage_there_and_nowhere_else() {
    let content = bytes(5 * BLOCK, 7);
    let site = ProtectedSite::new(&[("a", content.clone())]);
    site.protect().unwrap();
    let dir = ParityDir::open(&site.parity(), DirUse::Read)
        .unwrap()
        .unwrap();
    let mut ordinal = 0;
    loop {
        ordinal += 1;
        let io = || Fault::Errno(rustix::io::Errno::IO);
        // The first head, and one of the reads after it.
        faults::arm_all([
            (("read".into(), 1), io()),
            (("read".into(), ordinal + 1), io()),
        ]);
        let read = dir.read(1);
        if !faults::disarm().reached {
            break;
        }
        assert!(read.is_ok(), "{ordinal}: {:?}", read.err());
    }
    assert!(ordinal >= 3, "{ordinal}");
    let file = dir.read(1).unwrap();
    faults::arm(("read".to_owned(), 2), Fault::Errno(rustix::io::Errno::IO));
    let good = file.judge(&mut |_| true);
    assert!(faults::disarm().reached);
    assert_eq!(good, [true, false]);
    // Where nothing can be read, the system's reason is reported.
    faults::arm(
        ("read".to_owned(), 1),
        Fault::Errnos(rustix::io::Errno::IO, 10_000),
    );
    let error = dir.read(1).err().unwrap();
    faults::disarm();
    assert!(error.to_string().contains("Input/output error"), "{error}");
    assert_ne!(error.kind(), ErrorKind::Manifest);
}

#[test]
fn the_directory_is_named_by_the_whole_manifest() {
    for (manifest, dir) in [
        ("a/srv.jsonl.zst", "a/srv.parity"),
        ("srv", "srv.parity"),
        (".x.jsonl", ".x.parity"),
        ("photos.2019.jsonl", "photos.2019.parity"),
        ("photos.2020.jsonl", "photos.2020.parity"),
        (".jsonl", ".jsonl.parity"),
    ] {
        assert_eq!(default_dir(Path::new(manifest)), Path::new(dir));
    }
    // By a link it is that of the manifest that this leads to.
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("a")).unwrap();
    std::fs::write(dir.path().join("a/real.jsonl"), "").unwrap();
    symlink("a/real.jsonl", dir.path().join("link.jsonl")).unwrap();
    let real = dir.path().canonicalize().unwrap().join("a/real.parity");
    assert_eq!(default_dir(&dir.path().join("link.jsonl")), real);
}

/// An edit may be a mistake, and so may many: the earlier content is kept as removed content is.
#[test]
fn edited_content_is_kept_as_long_as_removed_content() {
    let files = numbered(8);
    let mut site = ProtectedSite::new(&borrowed(&files));
    site.protect().unwrap();
    for (number, (path, _)) in files.iter().enumerate() {
        site.write(path, &bytes(BLOCK, 700 + number as u64));
    }
    site.record();
    let done = site.protect().unwrap();
    assert_eq!(
        (done.written, done.removed, done.kept),
        (1, 0, 1),
        "{}",
        site.events()
    );
    assert!(done.is_complete());
    for _ in 0..2 {
        site.now += 15 * DAY;
        site.protect().unwrap();
    }
    assert_eq!(site.volumes(), ["000002.bcp"]);
}
