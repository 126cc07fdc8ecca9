//! Contents that are computed again under the circumstances of real trees: names that do not fit,
//! volumes that are missing or wrong, files that are cut.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;

use bc_digest::Algorithm;
use bc_fs::dirfd;
use bc_pool::Cancel;

use super::scratch::ScratchFile;
use super::*;
use crate::code::BLOCK;
use crate::file::DirUse;
use crate::format::{HEAD, SHORT, StoredPiece, VolumeHead, VolumeHeader, placed_digest};
use crate::tests::{DAY, ProtectedSite, bytes, flip, numbered, worn_and_damaged};

/// Outcome of a content, with its bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum RebuildOutcome {
    Whole(Vec<u8>),
    Foreseen,
    Short { blocks: u64, uncovered: u64 },
    Failed(String),
    Unprotected,
}

/// Outcome of a content that is short of so many blocks.
pub(crate) fn short(blocks: u64) -> RebuildOutcome {
    RebuildOutcome::Short {
        blocks,
        uncovered: 0,
    }
}

impl ProtectedSite {
    /// Computes contents again.
    pub(crate) fn rebuild(&self, lost: &[LostContent], memory: Option<u64>) -> Vec<RebuildOutcome> {
        self.rebuild_as(lost, memory, false, &mut |_| true)
    }

    /// Computes contents again; `proves` may refuse those that are whole.
    fn rebuild_as(
        &self,
        lost: &[LostContent],
        memory: Option<u64>,
        dry_run: bool,
        proves: &mut dyn FnMut(usize) -> bool,
    ) -> Vec<RebuildOutcome> {
        let manifest = self.manifest();
        let mut restore = ParityRestore::open(&self.parity(), &manifest)
            .unwrap()
            .unwrap();
        self.rebuild_with(&mut restore, lost, memory, dry_run, proves)
    }

    fn rebuild_with(
        &self,
        restore: &mut ParityRestore<'_>,
        lost: &[LostContent],
        memory: Option<u64>,
        dry_run: bool,
        proves: &mut dyn FnMut(usize) -> bool,
    ) -> Vec<RebuildOutcome> {
        let root = self.root();
        let top = dirfd::open_root(root.as_os_str().as_encoded_bytes()).unwrap();
        let places = ContentPlaces {
            top: top.as_fd(),
            top_path: &root,
            renamed: &|_| None,
            is_lost: &|_| false,
        };
        let means = RebuildMeans {
            workers: 2,
            memory,
            dry_run,
            cancel: &Cancel::new(),
            rate: None,
        };
        let mut outcomes = BTreeMap::new();
        let each = &mut |number: usize, rebuilt: Rebuilt<'_>| {
            let outcome = match rebuilt {
                Rebuilt::Whole(content) => {
                    let found = read(content);
                    let digest = bc_digest::hash(self.algorithm, &found);
                    if digest != lost[number].digest || !proves(number) {
                        return Ok(false);
                    }
                    RebuildOutcome::Whole(found)
                }
                Rebuilt::Foreseen(_) => RebuildOutcome::Foreseen,
                Rebuilt::Short {
                    blocks, uncovered, ..
                } => RebuildOutcome::Short { blocks, uncovered },
                Rebuilt::Failed(error) => RebuildOutcome::Failed(error.to_string()),
                Rebuilt::Unprotected => RebuildOutcome::Unprotected,
            };
            assert!(outcomes.insert(number, outcome).is_none());
            Ok(true)
        };
        restore.rebuild(lost, places, &means, each).unwrap();
        outcomes.into_values().collect()
    }

    pub(crate) fn lost(&self, bytes: &[u8]) -> LostContent {
        LostContent {
            digest: bc_digest::hash(self.algorithm, bytes),
            size: bytes.len() as u64,
            path: b"gone".to_vec(),
        }
    }

    /// True if parity gives this content, whose file is at none of the recorded paths.
    pub(crate) fn heals(&self, content: &[u8]) -> bool {
        self.rebuild(&[self.lost(content)], self.memory)
            == [RebuildOutcome::Whole(content.to_vec())]
    }
}

fn read(content: &RebuiltContent<'_>) -> Vec<u8> {
    // In pieces that fit nothing.
    let mut bytes = vec![0; content.size() as usize];
    for (number, piece) in bytes.chunks_mut(100_003).enumerate() {
        content.read_at(piece, number as u64 * 100_003).unwrap();
    }
    bytes
}

/// A tree of which nothing else is damaged, whose parity is 100 %.
fn site(files: &[(&str, Vec<u8>)]) -> ProtectedSite {
    let mut site = ProtectedSite::new(files);
    site.redundancy = "100%";
    let done = site.protect().unwrap();
    assert!(done.is_complete(), "{}", site.events());
    site
}

/// Damages a parity block.
fn spoil(site: &ProtectedSite, volume: &str, number: usize) {
    let path = site.parity().join(volume);
    let whole = std::fs::read(&path).unwrap();
    let head = VolumeHead::from_bytes(&whole[..HEAD]).unwrap().unwrap();
    flip(&path, head.layout().parity(number) + 100);
}

#[test]
fn what_no_volume_has_comes_from_the_damaged_file() {
    let content = bytes(40 * BLOCK, 1);
    let site = ProtectedSite::new(&[("a", content.clone())]);
    site.protect().unwrap();
    assert_eq!(site.volumes().len(), 3);
    flip(&site.at("a"), 5);
    std::fs::remove_file(site.parity().join(&site.volumes()[2])).unwrap();
    assert!(site.heals(&content));
    // Nothing has the rest once the file is gone.
    std::fs::rename(site.at("a"), site.at("b")).unwrap();
    let outcome = site.rebuild(&[site.lost(&content)], None);
    assert!(
        matches!(outcome[..], [RebuildOutcome::Short { uncovered: 1.., .. }]),
        "{outcome:?}"
    );
    // A file that went elsewhere serves, if the caller knows where.
    let lost = LostContent {
        path: b"b".to_vec(),
        ..site.lost(&content)
    };
    assert_eq!(
        site.rebuild(&[lost], None),
        [RebuildOutcome::Whole(content)]
    );
}

/// Of several damaged files of one content any may have what no volume has.
#[test]
fn what_no_volume_has_comes_from_any_file_of_the_content() {
    let content = bytes(24 * BLOCK, 1);
    let site = ProtectedSite::new(&[("a", content.clone()), ("b", content.clone())]);
    site.protect().unwrap();
    assert_eq!(site.volumes().len(), 2);
    std::fs::remove_file(site.parity().join("000001.bcp")).unwrap();
    flip(&site.at("a"), 5);
    flip(&site.at("b"), 20 * BLOCK as u64);
    assert!(site.heals(&content));
    // Bytes that both have lost are nowhere.
    flip(&site.at("b"), 5);
    let short = RebuildOutcome::Short {
        blocks: 0,
        uncovered: 16 * BLOCK as u64,
    };
    assert_eq!(site.rebuild(&[site.lost(&content)], None), [short]);
}

/// A content that one volume brings back is a block less that the next one is short of.
#[test]
fn what_comes_back_serves_for_the_rest_in_the_same_run() {
    let files = numbered(16);
    let site = worn_and_damaged(&files);
    let mut contents: Vec<Vec<u8>> = (100..103).map(|seed| bytes(BLOCK, seed)).collect();
    contents.push(files[3].1.clone());
    let lost: Vec<LostContent> = contents.iter().map(|content| site.lost(content)).collect();
    let mut put = |number: usize| {
        let path = ["00", "01", "02", "03"][number];
        site.write(path, &contents[number]);
        true
    };
    let outcomes = site.rebuild_as(&lost, None, false, &mut put);
    let whole: Vec<RebuildOutcome> = contents
        .iter()
        .cloned()
        .map(RebuildOutcome::Whole)
        .collect();
    assert!(outcomes == whole);
    // If nothing comes back, that is said.
    let content = numbered(16);
    let site = ProtectedSite::new(&crate::tests::borrowed(&content));
    site.protect().unwrap();
    (0..5).for_each(|number| flip(&site.at(&content[number].0), 0));
    let lost: Vec<LostContent> = content[..5].iter().map(|file| site.lost(&file.1)).collect();
    assert_eq!(site.rebuild(&lost, None), vec![short(1); 5]);
}

/// Volumes that were renamed heal as well: their blocks are known by their headers.
#[test]
fn volumes_serve_under_any_name() {
    let contents = [bytes(16 * BLOCK, 1), bytes(16 * BLOCK, 2)];
    let site = ProtectedSite::new(&[("a", contents[0].clone()), ("b", contents[1].clone())]);
    site.protect().unwrap();
    assert_eq!(site.volumes(), ["000001.bcp", "000002.bcp"]);
    let at = |name: &str| site.parity().join(name);
    std::fs::rename(at("000001.bcp"), at("000007.bcp")).unwrap();
    std::fs::rename(at("000002.bcp"), at("000001.bcp")).unwrap();
    std::fs::rename(at("000007.bcp"), at("000002.bcp")).unwrap();
    flip(&site.at("a"), 0);
    flip(&site.at("b"), 0);
    assert!(site.heals(&contents[0]) && site.heals(&contents[1]));
    // Nothing is removed while names and headers differ.
    let done = site.protect().unwrap();
    assert_eq!((done.unreadable, done.removed), (2, 0), "{}", site.events());
}

/// A volume may be replaced while it is looked for.
#[test]
fn a_volume_that_another_run_replaces_is_found() {
    let files = numbered(16);
    let mut site = ProtectedSite::new(&crate::tests::borrowed(&files));
    site.keep_removed = Some(0);
    site.protect().unwrap();
    let at = |site: &ProtectedSite, name: &str| site.parity().join(name);
    let old = std::fs::read(at(&site, "000001.bcp")).unwrap();
    for (number, path) in ["00", "01", "02"].iter().enumerate() {
        site.write(path, &bytes(BLOCK, 100 + number as u64));
    }
    site.record();
    site.protect().unwrap();
    assert_eq!(site.volumes(), ["000002.bcp"]);
    let aside = site.parity().with_file_name("aside");
    std::fs::rename(at(&site, "000002.bcp"), &aside).unwrap();
    std::fs::write(at(&site, "000001.bcp"), old).unwrap();
    std::fs::remove_file(site.at("03")).unwrap();
    let writer = ParityDir::open(&site.parity(), DirUse::Write).unwrap();
    let manifest = site.manifest();
    let opened = ParityRestore::open(&site.parity(), &manifest).unwrap();
    let mut restore = opened.unwrap();
    std::fs::rename(&aside, at(&site, "000002.bcp")).unwrap();
    std::fs::remove_file(at(&site, "000001.bcp")).unwrap();
    let lost = [site.lost(&files[3].1)];
    let outcome = site.rebuild_with(&mut restore, &lost, None, false, &mut |_| true);
    assert!(outcome == [RebuildOutcome::Whole(files[3].1.clone())]);
    assert!(restore.unreadable.is_empty());
    drop(writer);
}

#[test]
fn names_are_looked_for_as_memory_allows() {
    assert_eq!(pieces_together(None), PIECES_TOGETHER);
    // Eight paths of 200 bytes for each take at most half of what a budget of 64 MiB leaves.
    let most = pieces_together(Some(40 << 20)) as u64;
    assert!((1000..=(20 << 20) / (8 * 240)).contains(&most), "{most}");
}

#[test]
fn names_of_a_content_are_few_and_good_ones_come_first() {
    let digest = bc_digest::hash(Algorithm::Sha256, b"x");
    let top = dirfd::open_root(b".").unwrap();
    let places = ContentPlaces {
        top: top.as_fd(),
        top_path: Path::new("."),
        renamed: &|_| None,
        is_lost: &|path| path.starts_with(b"lost"),
    };
    let mut names = ContentNames::default();
    names.add(&digest, b"of another", false, places);
    assert!(names.get(&digest).is_empty());
    names.of.entry(beginning(&digest)).or_default();
    for number in 0..100 {
        names.add(&digest, format!("lost{number}").as_bytes(), false, places);
        names.add(
            &digest,
            format!("good{}", number / 10).as_bytes(),
            false,
            places,
        );
    }
    let shown: Vec<&[u8]> = names.get(&digest).iter().map(|name| &*name.path).collect();
    let good: Vec<String> = (0..MOST_NAMES)
        .map(|number| format!("good{number}"))
        .collect();
    assert!(
        shown
            .iter()
            .zip(&good)
            .all(|(one, other)| *one == other.as_bytes())
    );
    assert_eq!(shown.len(), MOST_NAMES);
}

#[test]
fn several_pieces_of_a_block_are_found_by_their_second_names() {
    let (lost, one, two) = (bytes(BLOCK, 1), bytes(1000, 2), bytes(2000, 3));
    let files = [
        ("a", lost.clone()),
        ("b", one.clone()),
        ("c", two.clone()),
        ("x", one.clone()),
        ("y", two.clone()),
    ];
    let site = site(&files);
    // Of two blocks with two of parity, one is lost, and so is one of parity.
    std::fs::remove_file(site.at("a")).unwrap();
    spoil(&site, "000001.bcp", 0);
    site.write("b", b"edited");
    site.write("c", &bytes(2000, 4));
    assert!(site.heals(&lost));
    // Large ones, too: of a block there are two at most.
    let (one, two) = (bytes(BLOCK + 1000, 5), bytes(3 * BLOCK, 6));
    let files = [
        ("a", lost.clone()),
        ("b", one.clone()),
        ("c", two.clone()),
        ("x", one.clone()),
        ("y", two.clone()),
    ];
    let site = self::site(&files);
    std::fs::remove_file(site.at("a")).unwrap();
    (0..5).for_each(|number| spoil(&site, "000001.bcp", number));
    site.write("b", b"edited");
    site.write("c", &bytes(3 * BLOCK, 7));
    assert!(site.heals(&lost));
}

#[test]
fn a_file_that_was_cut_in_its_zeros_is_no_loss_to_its_neighbours() {
    let mut zeros = bytes(30_000, 1);
    zeros.resize(50_000, 0);
    let other = bytes(40_000, 2);
    let site = site(&[("a", zeros.clone()), ("b", other.clone())]);
    let cut = std::fs::File::options().write(true).open(site.at("a"));
    cut.unwrap().set_len(30_000).unwrap();
    spoil(&site, "000001.bcp", 1);
    flip(&site.at("b"), 39_999);
    let lost = [site.lost(&zeros), site.lost(&other)];
    let whole = [RebuildOutcome::Whole(zeros), RebuildOutcome::Whole(other)];
    for memory in [None, Some(100_000)] {
        let outcomes = site.rebuild(&lost, memory);
        for (outcome, whole) in outcomes.iter().zip(&whole) {
            let shown = format!("{outcome:?}");
            let shown = &shown[..shown.len().min(200)];
            assert!(outcome == whole, "{memory:?}: {shown}");
        }
    }
}

#[test]
fn parity_blocks_that_are_wrong_are_done_without() {
    let content = bytes(16 * BLOCK, 7);
    let site = ProtectedSite::new(&[("a", content.clone())]);
    site.protect().unwrap();
    let path = site.parity().join("000001.bcp");
    let mut volume = std::fs::read(&path).unwrap();
    let head = VolumeHead::from_bytes(&volume[..HEAD]).unwrap().unwrap();
    // Its own digest fits.
    let at = head.layout().parity(0) as usize;
    let other = bytes(BLOCK, 8);
    volume[at..at + SHORT].copy_from_slice(&placed_digest(head.id, 0, &other));
    volume[at + SHORT..at + SHORT + BLOCK].copy_from_slice(&other);
    std::fs::write(&path, volume).unwrap();
    flip(&site.at("a"), 5);
    assert!(site.heals(&content));
    // With as many losses as there is right parity, nothing else is left to try.
    for block in 1..4 {
        flip(&site.at("a"), (block * BLOCK) as u64);
    }
    let outcome = site.rebuild(&[site.lost(&content)], None);
    let [RebuildOutcome::Failed(text)] = &outcome[..] else {
        panic!("{outcome:?}");
    };
    assert!(
        text.contains("000001.bcp: its parity is not that of its blocks"),
        "{text}"
    );
}

#[test]
fn a_wrong_volume_does_not_hide_the_right_one() {
    let (first, content) = (bytes(10, 1), bytes(5 * BLOCK, 2));
    let site = site(&[("a", first)]);
    let dir = ParityDir::open(&site.parity(), DirUse::Read).unwrap();
    let header = dir.unwrap().read(1).unwrap().header;
    site.write("b", &content);
    site.record();
    site.protect().unwrap();
    // The first claims that the content is nothing but zeros.
    let lost = site.lost(&content);
    let zeros = StoredPiece {
        digest: lost.digest,
        size: lost.size,
        from: 0,
        len: lost.size,
        bytes: PieceBytes::Zeros,
        path: b"b".to_vec(),
    };
    let pieces = header.pieces.iter().cloned().chain([zeros]).collect();
    replace_header(&site, "000001.bcp", VolumeHeader { pieces, ..header });
    std::fs::remove_file(site.at("b")).unwrap();
    assert!(site.heals(&content));
}

/// Gives a volume another header; its parity goes.
fn replace_header(site: &ProtectedSite, volume: &str, header: VolumeHeader) {
    let packed = header.pack().unwrap();
    let mut file = vec![0; packed.layout.len() as usize];
    for offset in packed.layout.copies() {
        let at = offset as usize;
        file[at..at + packed.copy.len()].copy_from_slice(&packed.copy);
    }
    let footer = packed.layout.footer() as usize;
    file[footer..].copy_from_slice(packed.footer());
    std::fs::write(site.parity().join(volume), file).unwrap();
}

#[test]
fn what_is_refused_is_tried_again_and_then_named() {
    let content = bytes(5 * BLOCK, 2);
    let site = site(&[("a", content.clone())]);
    flip(&site.at("a"), 0);
    let lost = [site.lost(&content)];
    let mut left = 2;
    let mut later = |_: usize| {
        left -= 1;
        left == 0
    };
    let outcome = site.rebuild_as(&lost, None, false, &mut later);
    assert_eq!(outcome, [RebuildOutcome::Whole(content)]);
    let outcome = site.rebuild_as(&lost, None, false, &mut |_| false);
    let [RebuildOutcome::Failed(text)] = &outcome[..] else {
        panic!("{outcome:?}");
    };
    assert!(text.contains("changed while it was read"), "{text}");
}

#[test]
fn a_dry_run_computes_nothing() {
    let content = bytes(16 * BLOCK, 2);
    let site = ProtectedSite::new(&[("a", content.clone())]);
    site.protect().unwrap();
    let lost = [site.lost(&content)];
    for block in 0..4 {
        flip(&site.at("a"), (block * BLOCK) as u64);
        let outcome = site.rebuild_as(&lost, None, true, &mut |_| true);
        assert_eq!(outcome, [RebuildOutcome::Foreseen]);
    }
    flip(&site.at("a"), 4 * BLOCK as u64);
    let outcome = site.rebuild_as(&lost, None, true, &mut |_| true);
    assert_eq!(outcome, [short(1)]);
}

#[test]
fn a_small_content_is_found_though_its_block_is_lost() {
    let (small, large) = (bytes(100, 1), bytes(4 * BLOCK, 2));
    let mut site = ProtectedSite::new(&[
        ("a", small.clone()),
        ("b", large.clone()),
        ("c", small.clone()),
    ]);
    site.volume = 8 << 20;
    site.protect().unwrap();
    site.write("a", b"edited");
    std::fs::remove_file(site.at("b")).unwrap();
    assert!(site.heals(&small) && !site.heals(&large));
}

#[test]
fn many_lost_files_come_back_one_after_the_other() {
    let files: Vec<(String, Vec<u8>)> = (0..500)
        .map(|number| (format!("{number}"), bytes(50 + number as usize, number)))
        .collect();
    let listed: Vec<(&str, Vec<u8>)> = files
        .iter()
        .map(|(path, bytes)| (&path[..], bytes.clone()))
        .collect();
    let site = site(&listed);
    let lost: Vec<LostContent> = files.iter().map(|file| site.lost(&file.1)).collect();
    for (path, _) in &files {
        std::fs::remove_file(site.at(path)).unwrap();
    }
    // Nothing but the tree, the manifest and the parity is open while they come.
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    let mut most = 0;
    let outcomes = site.rebuild_as(&lost, None, false, &mut |_| {
        most = most.max(open());
        true
    });
    assert!(most < before + 200, "{before}, then {most}");
    for (outcome, (path, bytes)) in outcomes.iter().zip(&files) {
        assert_eq!(*outcome, RebuildOutcome::Whole(bytes.clone()), "{path}");
    }
}

#[test]
fn removed_contents_are_listed_the_newest_of_each_path() {
    let mut site = ProtectedSite::new(&[
        ("a", bytes(100, 1)),
        ("b/c", bytes(100, 2)),
        ("d", bytes(100, 3)),
    ]);
    site.protect().unwrap();
    std::fs::remove_file(site.at("b/c")).unwrap();
    site.write("d", b"edited");
    std::fs::rename(site.at("a"), site.at("renamed")).unwrap();
    site.record();
    site.now += 1;
    site.protect().unwrap();
    let manifest = site.manifest();
    let mut restore = ParityRestore::open(&site.parity(), &manifest)
        .unwrap()
        .unwrap();
    let removed = restore.removed(None).unwrap();
    let paths: Vec<&[u8]> = removed.iter().map(|content| &content.path[..]).collect();
    assert_eq!(paths, [&b"b/c"[..], b"d"]);
    assert_eq!(removed[0].digest, site.lost(&bytes(100, 2)).digest);
}

fn removed(site: &ProtectedSite) -> (Vec<(Vec<u8>, Digest)>, Vec<Error>) {
    let manifest = site.manifest();
    let opened = ParityRestore::open(&site.parity(), &manifest).unwrap();
    let mut restore = opened.unwrap();
    let removed = restore.removed(None).unwrap().into_iter();
    let removed = removed.map(|content| (content.path, content.digest));
    (removed.collect(), restore.unreadable)
}

/// The last content of a path is the one that is gone for the shortest time, whatever the clock said when it
/// was written.
#[test]
fn the_last_content_of_a_removed_path_comes_back() {
    let versions: Vec<Vec<u8>> = (1..3).map(|seed| bytes(100, seed)).collect();
    let start = || {
        let site = ProtectedSite::new(&[("d", versions[0].clone()), ("e", bytes(50, 9))]);
        site.protect().unwrap();
        site
    };
    let edit = |site: &ProtectedSite, version: usize| {
        site.write("d", &versions[version]);
        site.record();
        site.protect().unwrap();
    };
    let last = |site: &ProtectedSite| {
        let (removed, _) = removed(site);
        assert_eq!(removed.len(), 1);
        assert_eq!(removed[0].0, b"d");
        let is_it = |version: &Vec<u8>| site.lost(version).digest == removed[0].1;
        versions.iter().position(is_it).unwrap()
    };
    // The clock goes back between.
    let mut site = start();
    site.now -= 10 * DAY;
    edit(&site, 1);
    std::fs::remove_file(site.at("d")).unwrap();
    site.record();
    site.protect().unwrap();
    assert_eq!(last(&site), 1);
    // An edit that was taken back; parity has seen the removal, and has not.
    for has_seen in [true, false] {
        let mut site = start();
        for version in [1, 0] {
            site.now += DAY;
            edit(&site, version);
        }
        site.now += DAY;
        std::fs::remove_file(site.at("d")).unwrap();
        site.record();
        if has_seen {
            site.protect().unwrap();
        }
        assert_eq!(last(&site), 0, "{has_seen}");
    }
}

/// No manifest proves what was removed: volumes count that are this tree's own.
#[test]
fn removed_contents_are_those_of_this_tree() {
    use std::os::unix::fs::PermissionsExt;
    let site = ProtectedSite::new(&[("a", bytes(100, 1)), ("b", bytes(100, 2))]);
    site.protect().unwrap();
    std::fs::remove_file(site.at("a")).unwrap();
    site.record();
    let own = site.lost(&bytes(100, 1)).digest;
    assert_eq!(removed(&site).0, [(b"a".to_vec(), own)]);
    // The copy of the manifest is of the same tree.
    let copy = ManifestFile::open(crate::manifest_copy(&site.parity()).unwrap()).unwrap();
    let opened = ParityRestore::open(&site.parity(), &copy).unwrap();
    assert!(opened.unwrap().removed(None).unwrap().is_empty());
    // A list takes memory.
    let manifest = site.manifest();
    let opened = ParityRestore::open(&site.parity(), &manifest).unwrap();
    let error = opened.unwrap().removed(Some(200)).unwrap_err();
    assert!(error.to_string().contains("memory budget"), "{error}");
    // Parity of another tree.
    let other = ProtectedSite::new(&[("secret", bytes(100, 3))]);
    other.protect().unwrap();
    let opened = ParityRestore::open(&other.parity(), &manifest).unwrap();
    let error = opened.unwrap().removed(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(
        error
            .to_string()
            .contains("is the parity of 'tree.jsonl' of"),
        "{error}"
    );
    // One of its volumes among the own ones, and an own one that others may have written.
    let foreign = site.parity().join("000002.bcp");
    std::fs::copy(other.parity().join("000001.bcp"), &foreign).unwrap();
    let (paths, unreadable) = removed(&site);
    assert_eq!(paths, [(b"a".to_vec(), own)]);
    let [error] = &unreadable[..] else {
        panic!("{unreadable:?}");
    };
    assert!(
        error
            .to_string()
            .contains("is a volume of another parity directory"),
        "{error}"
    );
    std::fs::remove_file(foreign).unwrap();
    let volume = site.parity().join("000001.bcp");
    std::fs::set_permissions(volume, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (paths, unreadable) = removed(&site);
    assert_eq!((paths.len(), unreadable.len()), (0, 1));
}

/// What is full need not be where the contents go.
#[test]
fn a_full_directory_is_passed_over() {
    use bc_fs::faults::{self, Fault};
    let (none, dir) = (
        dirfd::open_root(b"/proc").unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let full = dirfd::open_root(dir.path().as_os_str().as_encoded_bytes()).unwrap();
    let dirs = [
        (full.as_fd(), dir.path()),
        (none.as_fd(), Path::new("/proc")),
    ];
    let no_room = || Fault::Errno(rustix::io::Errno::NOSPC);
    faults::arm(("fallocate".to_owned(), 1), no_room());
    let file = ScratchFile::new(&dirs, 10);
    assert!(faults::disarm().reached);
    file.unwrap().write(b"bytes", 3).unwrap();
    // But if it is, no other place is filled either.
    faults::arm(("fallocate".to_owned(), 1), no_room());
    let error = ScratchFile::new(&dirs[..1], 10).unwrap_err();
    faults::disarm();
    assert!(error.to_string().contains("No space left"), "{error}");
}

#[test]
fn a_directory_without_such_files_is_passed_over() {
    let (none, dir) = (
        dirfd::open_root(b"/proc").unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let top = dirfd::open_root(dir.path().as_os_str().as_encoded_bytes()).unwrap();
    let dirs = [
        (none.as_fd(), Path::new("/proc")),
        (top.as_fd(), dir.path()),
    ];
    let file = ScratchFile::new(&dirs, 10).unwrap();
    file.write(b"bytes", 3).unwrap();
    let mut read = [0; 5];
    file.read(&mut read, 3).unwrap();
    assert_eq!(&read, b"bytes");
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
}

#[test]
fn a_file_with_the_name_of_the_copy_is_not_replaced() {
    let site = ProtectedSite::new(&[("a", bytes(100, 1))]);
    std::fs::create_dir(site.parity()).unwrap();
    let copy = site.parity().join("manifest.jsonl.zst");
    std::fs::write(&copy, "mine\n").unwrap();
    site.protect().unwrap();
    let mine = copy.with_file_name("manifest.jsonl.zst.other-1");
    assert_eq!(std::fs::read(&mine).unwrap(), b"mine\n");
    assert_eq!(crate::manifest_copy(&site.parity()).as_ref(), Some(&copy));
    // A copy that an interrupted run left alone is used again.
    std::fs::remove_file(&mine).unwrap();
    for name in ["000001.bcp", "index.jsonl"] {
        std::fs::remove_file(site.parity().join(name)).unwrap();
    }
    site.protect().unwrap();
    assert!(site.parity().join("000001.bcp").exists() && !mine.exists());
}

#[test]
fn the_manifest_has_a_copy_that_is_kept_whole() {
    let site = ProtectedSite::new(&[("a", bytes(100, 1))]);
    site.protect().unwrap();
    let copy = crate::manifest_copy(&site.parity()).unwrap();
    let whole = std::fs::read(&copy).unwrap();
    // One that has rotted is none, and is written again.
    flip(&copy, whole.len() as u64 / 2);
    assert_eq!(crate::manifest_copy(&site.parity()), None);
    site.protect().unwrap();
    assert_eq!(std::fs::read(&copy).unwrap(), whole);
    site.write("b", b"other");
    site.record();
    site.protect().unwrap();
    let newer = std::fs::read(&copy).unwrap();
    assert_ne!(newer, whole);
    site.protect().unwrap();
    assert_eq!(std::fs::read(&copy).unwrap(), newer);
    // A link is not followed.
    let elsewhere = site.parity().with_file_name("elsewhere");
    std::fs::rename(&copy, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &copy).unwrap();
    assert_eq!(crate::manifest_copy(&site.parity()), None);
    let error = site.protect().unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    assert!(copy.is_symlink() && std::fs::read(&elsewhere).unwrap() == newer);
}
