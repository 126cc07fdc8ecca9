//! Trees that are protected, damaged and computed again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use bc_digest::Algorithm;
use bc_fs::dirfd;
use bc_integrity::{CreateOptions, ManifestFile, Overwrite, working};
use bc_pool::Cancel;
use bc_walk::job::{Error, ErrorKind, Means};

use crate::code::BLOCK;
use crate::contents::RecordedContents;
use crate::file::{DirUse, ParityDir};
use crate::format::{HEAD, VolumeHead};
use crate::rebuild::{ContentPlaces, LostContent, ParityRestore, RebuildMeans, Rebuilt};
use crate::{ProtectEvent, ProtectOptions, Protected, check, default_dir, protect};

const DAY: i64 = 86_400_000_000_000;
const NOW: i64 = 20_000 * DAY;

/// A tree with its manifest and its parity.
struct ProtectedSite {
    dir: tempfile::TempDir,
    algorithm: Algorithm,
    volume: u64,
    redundancy: &'static str,
    memory: Option<u64>,
    now: i64,
    events: RefCell<Vec<String>>,
}

/// Bytes that no other call returns.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| next()).collect();
    bytes.truncate(len);
    bytes
}

impl ProtectedSite {
    fn new(files: &[(&str, Vec<u8>)]) -> ProtectedSite {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        let site = ProtectedSite {
            dir,
            algorithm: Algorithm::Sha256,
            volume: 1 << 20,
            redundancy: "25%",
            memory: None,
            now: NOW,
            events: RefCell::default(),
        };
        files
            .iter()
            .for_each(|(path, bytes)| site.write(path, bytes));
        site.record();
        site
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let at = self.at(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, bytes).unwrap();
    }

    fn list(&self) -> PathBuf {
        self.dir.path().join("tree.jsonl")
    }

    fn parity(&self) -> PathBuf {
        default_dir(&self.list())
    }

    fn volumes(&self) -> Vec<String> {
        let all = std::fs::read_dir(self.parity()).unwrap();
        let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".bcp")).collect();
        names.sort();
        names
    }

    fn record(&self) {
        let root = self.root();
        let options = CreateOptions::new(&root, self.algorithm).overwrite(Overwrite::Always);
        options.run_to(self.list(), &Means::new()).unwrap();
    }

    fn manifest(&self) -> ManifestFile {
        ManifestFile::open(self.list()).unwrap()
    }

    fn protect(&self) -> Result<Protected, Error> {
        let (root, manifest) = (self.root(), self.manifest());
        let mut options = ProtectOptions::new(&root, &manifest, self.now)
            .volume(self.volume)
            .memory(self.memory);
        options.redundancy = self.redundancy.parse().unwrap();
        self.events.borrow_mut().clear();
        working(&Means::new().threads(2), |work| {
            protect(&options, work, &mut |event| {
                self.events.borrow_mut().push(match event {
                    ProtectEvent::Unprotected(error) => format!("unprotected {error}"),
                    ProtectEvent::Held { volume, why, .. } => {
                        format!("held {}: {why}", volume.display())
                    }
                    ProtectEvent::Unreadable(error) => format!("unreadable {error}"),
                    ProtectEvent::Written { .. } => "written".to_owned(),
                    ProtectEvent::Removed { .. } => "removed".to_owned(),
                });
            })
        })
    }

    fn events(&self) -> String {
        self.events.borrow().join("\n")
    }

    /// Computes contents again: what became of each, with its bytes if it is whole.
    fn rebuild(&self, lost: &[LostContent], memory: Option<u64>) -> Vec<RebuildOutcome> {
        let manifest = self.manifest();
        let top = dirfd::open_root(self.root().as_os_str().as_encoded_bytes()).unwrap();
        let places = ContentPlaces {
            top: top.as_fd(),
            renamed: &|_| None,
            is_lost: &|_| false,
        };
        let means = RebuildMeans {
            workers: 2,
            memory,
            cancel: &Cancel::new(),
            rate: None,
        };
        let mut restore = ParityRestore::open(&self.parity(), &manifest)
            .unwrap()
            .unwrap();
        let mut outcomes = BTreeMap::new();
        let each = &mut |number, rebuilt| {
            let outcome = match rebuilt {
                Rebuilt::Whole(content) => {
                    let file = std::fs::File::from(content.file);
                    let mut found = vec![0; file.metadata().unwrap().len() as usize];
                    file.read_exact_at(&mut found, 0).unwrap();
                    RebuildOutcome::Whole(found)
                }
                Rebuilt::Short { blocks, .. } => RebuildOutcome::Short(blocks),
                Rebuilt::Unprotected => RebuildOutcome::Unprotected,
            };
            assert!(outcomes.insert(number, outcome).is_none());
            Ok(())
        };
        restore.rebuild(lost, places, &means, each).unwrap();
        outcomes.into_values().collect()
    }

    fn lost(&self, bytes: &[u8]) -> LostContent {
        LostContent {
            digest: bc_digest::hash(self.algorithm, bytes),
            size: bytes.len() as u64,
        }
    }

    fn heals(&self, content: &[u8]) -> bool {
        self.rebuild(&[self.lost(content)], self.memory)
            == [RebuildOutcome::Whole(content.to_vec())]
    }
}

#[derive(Debug, PartialEq)]
enum RebuildOutcome {
    Whole(Vec<u8>),
    Short(u64),
    Unprotected,
}

fn flip(path: &Path, offset: u64) {
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
    for memory in [None, Some(9 << 20)] {
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
        std::fs::File::options()
            .write(true)
            .open(site.at("e"))
            .unwrap()
            .set_len(250_000)
            .unwrap();
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

#[test]
fn columns_that_do_not_fit_into_memory_come_one_after_the_other() {
    let files = [("a", bytes(40 * BLOCK + 5, 1)), ("b", bytes(20 * BLOCK, 2))];
    let mut site = ProtectedSite::new(&files);
    (site.volume, site.redundancy) = (8 << 20, "100%");
    site.protect().unwrap();
    let name = site.volumes()[0].clone();
    let whole = std::fs::read(site.parity().join(&name)).unwrap();
    std::fs::remove_dir_all(site.parity()).unwrap();
    site.memory = Some(8_500_000);
    site.protect().unwrap();
    assert_eq!(std::fs::read(site.parity().join(&name)).unwrap(), whole);
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
    let whole = std::fs::read(&volume).unwrap();
    let head = VolumeHead::from_bytes(&whole[..HEAD]).unwrap().unwrap();
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
        assert_eq!(
            site.rebuild(&[site.lost(&content)], None),
            [RebuildOutcome::Short(1)]
        );
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
    let files: Vec<(&str, Vec<u8>)> = files
        .iter()
        .map(|(path, bytes)| (&path[..], bytes.clone()))
        .collect();
    let site = ProtectedSite::new(&files);
    site.protect().unwrap();
    let volume = site.parity().join("000001.bcp");
    let whole = std::fs::read(&volume).unwrap();
    let head = VolumeHead::from_bytes(&whole[..HEAD]).unwrap().unwrap();
    let copies = head.layout().copies();
    assert!(head.layout().copy > 2 * BLOCK as u64);
    std::fs::remove_file(site.at(files[0].0)).unwrap();
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
        "e: open: No such file",
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
    let e = std::fs::File::options().write(true).open(site.at("e"));
    e.unwrap().set_len(250_000).unwrap();
    assert!(site.heals(&files[5].1));
}

#[test]
fn content_is_taken_from_any_of_its_paths() {
    let (small, large) = (bytes(5000, 1), bytes(9_000_000, 2));
    let site = ProtectedSite::new(&[
        ("a", small.clone()),
        ("b", large.clone()),
        ("y", small.clone()),
        ("z", large.clone()),
    ]);
    flip(&site.at("a"), 0);
    flip(&site.at("b"), 8_999_999);
    let mut site = site;
    site.volume = 16 << 20;
    let done = site.protect().unwrap();
    assert!(done.is_complete(), "{}", site.events());
    assert_eq!((done.written, done.bytes), (1, 9_005_000));
    // A block that one file lost is taken from the other.
    flip(&site.at("y"), 100);
    std::fs::remove_file(site.at("z")).unwrap();
    assert!(site.heals(&large) && site.heals(&small));
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

#[test]
fn volumes_are_replaced_once_they_are_worn_and_never_while_they_may_heal() {
    let files: Vec<(String, Vec<u8>)> = (0..16)
        .map(|number| (format!("{number:02}"), bytes(BLOCK, number)))
        .collect();
    let files: Vec<(&str, Vec<u8>)> = files
        .iter()
        .map(|(path, bytes)| (&path[..], bytes.clone()))
        .collect();
    let mut site = ProtectedSite::new(&files);
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
    assert!(
        site.events()
            .contains("000001.bcp: not written again: it holds content that is damaged")
    );
    assert!(site.heals(&files[7].1));
    site.write("07", &files[7].1);
    let done = site.protect().unwrap();
    assert!(done.is_complete() && done.removed >= 1, "{}", site.events());
    assert!(!site.volumes().contains(&"000001.bcp".to_owned()));
    for (path, content) in &files[3..] {
        std::fs::remove_file(site.at(path)).unwrap();
        assert!(site.heals(content), "{path}");
        site.write(path, content);
    }
    // What was removed is kept for a month.
    for path in ["10", "11", "12"] {
        std::fs::remove_file(site.at(path)).unwrap();
    }
    site.record();
    let done = site.protect().unwrap();
    assert_eq!((done.removed, done.held), (2, 1), "{}", site.events());
    assert!(site.events().contains("removed not long ago") && site.heals(&files[11].1));
    site.now += 30 * DAY;
    let done = site.protect().unwrap();
    assert!(done.is_complete() && done.removed > 0, "{}", site.events());
    assert!(!site.heals(&files[11].1));
}

#[test]
fn a_lost_index_forgets_only_since_when_content_is_gone() {
    let files: Vec<(String, Vec<u8>)> = (0..8)
        .map(|number| (format!("{number}"), bytes(BLOCK, number)))
        .collect();
    let files: Vec<(&str, Vec<u8>)> = files
        .iter()
        .map(|(path, bytes)| (&path[..], bytes.clone()))
        .collect();
    let mut site = ProtectedSite::new(&files);
    site.protect().unwrap();
    let index = site.parity().join("index.jsonl");
    let first = std::fs::read_to_string(&index).unwrap();
    std::fs::write(&index, "{\"volume\":").unwrap();
    assert_eq!(site.protect().unwrap().written, 0);
    assert_eq!(std::fs::read_to_string(&index).unwrap(), first);
    ["1", "2"]
        .iter()
        .for_each(|path| std::fs::remove_file(site.at(path)).unwrap());
    site.record();
    assert_eq!(site.protect().unwrap().held, 1);
    std::fs::remove_file(&index).unwrap();
    site.now += 29 * DAY;
    assert_eq!(site.protect().unwrap().held, 1);
    site.now += 29 * DAY;
    assert_eq!(site.protect().unwrap().held, 1);
    site.now += DAY;
    assert!(site.protect().unwrap().is_complete());
}

#[test]
fn check_reads_parity_alone() {
    let content = bytes(16 * BLOCK, 7);
    let site = ProtectedSite::new(&[("a", content), ("b", bytes(10, 1))]);
    let checked = || {
        let (root, manifest) = (site.root(), site.manifest());
        let options = ProtectOptions::new(&root, &manifest, NOW);
        working(&Means::new(), |work| check(&options, work)).unwrap()
    };
    let before = checked();
    assert!(!before.is_good() && before.volumes.is_empty());
    assert_eq!(
        (before.unprotected, before.unprotected_bytes),
        (2, 16 * BLOCK as u64 + 10)
    );
    site.protect().unwrap();
    let volume = site.parity().join("000001.bcp");
    let whole = std::fs::read(&volume).unwrap();
    let layout = VolumeHead::from_bytes(&whole[..HEAD])
        .unwrap()
        .unwrap()
        .layout();
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
        flip(&volume, layout.parity(number) + 100);
        assert_eq!(
            of_first(checked()),
            (number as u64 + 1, 3 - number as u64, number < 2)
        );
    }
}

#[test]
fn hostile_directories_give_errors_and_touch_nothing() {
    let content = bytes(3 * BLOCK, 7);
    let site = ProtectedSite::new(&[("a", content.clone())]);
    site.protect().unwrap();
    let volume = site.parity().join("000001.bcp");
    let whole = std::fs::read(&volume).unwrap();
    let good = VolumeHead::from_bytes(&whole[..HEAD]).unwrap().unwrap();
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
        forged(24, &most[..4]),
        forged(28, &most[..4]),
        forged(28, &4_u32.to_le_bytes()),
        forged(24, &2_u32.to_le_bytes()),
        forged(32, &most),
        forged(40, &most),
        forged(40, &(1_u64 << 30).to_le_bytes()),
        forged(40, &[0; 8]),
        forged(16, &2_u64.to_le_bytes()),
        forged(8, &2_u32.to_le_bytes()),
        forged(12, &1_u32.to_le_bytes()),
        Vec::new(),
        whole[..HEAD].to_vec(),
        vec![0; 1 << 20],
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
            "{number}"
        );
        assert_eq!(&std::fs::read(&volume).unwrap(), case);
    }
    // Links lead nowhere, and a FIFO is not waited for.
    std::fs::write(site.dir.path().join("elsewhere"), &whole).unwrap();
    std::fs::remove_file(&volume).unwrap();
    symlink("../elsewhere", &volume).unwrap();
    assert_eq!(site.protect().unwrap().unreadable, 1);
    std::fs::remove_file(&volume).unwrap();
    let dir = dirfd::open_root(site.parity().as_os_str().as_encoded_bytes()).unwrap();
    bc_edit::entry::make_node(&dir, "000001.bcp", rustix::fs::FileType::Fifo, 0).unwrap();
    assert_eq!(site.protect().unwrap().unreadable, 1);
}

#[test]
fn one_run_at_a_time_and_digests_that_identify() {
    let mut site = ProtectedSite::new(&[("a", bytes(10, 1))]);
    let held = ParityDir::open(&site.parity(), DirUse::Write)
        .unwrap()
        .unwrap();
    assert_eq!(site.protect().unwrap_err().kind(), ErrorKind::Busy);
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
    std::fs::hard_link(
        site.parity().join("000001.bcp"),
        site.dir.path().join("other"),
    )
    .unwrap();
    assert_eq!(site.protect().unwrap().unreadable, 1);
    site.algorithm = Algorithm::Blake3;
    site.record();
    let error = site.protect().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

#[test]
fn an_empty_root_is_a_disk_that_is_not_mounted() {
    let site = ProtectedSite::new(&[("a", bytes(10, 1))]);
    std::fs::remove_file(site.at("a")).unwrap();
    assert_eq!(site.protect().unwrap_err().kind(), ErrorKind::Refused);
    std::fs::remove_dir(site.root()).unwrap();
    assert_eq!(site.protect().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn contents_are_each_recorded_once() {
    let contents = RecordedContents::of_files(&[("a", b"x"), ("b", b""), ("c", b"x"), ("d", b"x")]);
    assert_eq!(contents.len(), 1);
    assert_eq!(contents.paths(0).collect::<Vec<_>>(), [b"a", b"c", b"d"]);
    assert!(contents.has_path(b"b"));
    for (manifest, dir) in [
        ("a/srv.jsonl.zst", "a/srv.parity"),
        ("srv", "srv.parity"),
        (".x.jsonl", ".x.parity"),
    ] {
        assert_eq!(default_dir(Path::new(manifest)), Path::new(dir));
    }
}
