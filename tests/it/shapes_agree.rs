//! What the engines find does not depend on what they run on: for every shape of work all numbers
//! of threads, readers and instruction sets give what a plain loop finds. The engines themselves
//! are asked, since the program always takes the best instructions.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use bc_digest::{Algorithm, CpuFeatures, Digest};
use bc_find::scan;
use bc_hash::FileDigests;
use bc_hash::check::{Verdict, check};
use bc_integrity::report::{ChangeFormat, ChangeReport};
use bc_integrity::{CreateOptions, ManifestFile, Reading, VerifyOptions, Work, create, verify};
use bc_pool::{Cancel, Start};
use bc_testkit::reference::{self, LinkCounting};
use bc_testkit::{Rng, TestTree, left_out};
use bc_walk::{Listing, Metadata};

/// What a run has to do with.
#[derive(Clone, Copy, Debug)]
struct Way {
    cpu: CpuFeatures,
    workers: usize,
    backend: bc_read::Choice,
}

/// All combinations that this machine has, the plainest first.
fn ways() -> Vec<Way> {
    let mut readers = vec![bc_read::Choice::Sync, bc_read::Choice::Auto];
    match bc_read::uring_available() {
        Ok(()) => readers.push(bc_read::Choice::Uring),
        Err(error) => left_out(&error.to_string()),
    }
    let mut ways = Vec::new();
    for cpu in CpuFeatures::available() {
        for workers in [1, 2, 3, 8] {
            ways.extend(readers.iter().map(|&backend| Way {
                cpu,
                workers,
                backend,
            }));
        }
    }
    ways
}

const ALGORITHMS: [&[Algorithm]; 4] = [
    &[Algorithm::Sha256],
    &[Algorithm::Xxh128],
    &[Algorithm::Blake3],
    &[Algorithm::Md5, Algorithm::Sha512],
];

/// A tree, and what is in it.
struct Shape {
    tree: TestTree,
    /// By path below the tree.
    contents: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Of each algorithm, those of the contents in their order.
    digests: BTreeMap<Algorithm, Vec<Digest>>,
    duplicates: Vec<Vec<Vec<u8>>>,
}

impl Shape {
    fn of(tree: TestTree) -> Shape {
        let read = |path: Vec<u8>| {
            let content = reference::read(tree.path(), &path).unwrap();
            (path, content)
        };
        let files = reference::files(tree.path()).unwrap();
        let contents: BTreeMap<Vec<u8>, Vec<u8>> = files.into_iter().map(read).collect();
        let digests = ALGORITHMS.into_iter().flatten().map(|algorithm| {
            let digest = |content: &Vec<u8>| bc_digest::hash(*algorithm, content);
            (*algorithm, contents.values().map(digest).collect())
        });
        Shape {
            digests: digests.collect(),
            duplicates: reference::duplicates(tree.path(), LinkCounting::Together).unwrap(),
            contents,
            tree,
        }
    }

    fn path(&self, below: &[u8]) -> Vec<u8> {
        let path = self.tree.join(OsStr::from_bytes(below));
        path.into_os_string().into_encoded_bytes()
    }

    fn walked(&self) -> Listing {
        let options = bc_walk::WalkOptions::default()
            .metadata(Metadata::Basic)
            .min_size(1);
        let root = self.tree.path().as_os_str().to_owned();
        bc_walk::walk(&[root], &options, 2, &Cancel::new()).unwrap()
    }

    /// Every job in every way, or in a third of them such that each two of reader, instructions and
    /// threads meet: the others are another job's.
    fn check(&self) {
        let listing = self.walked();
        let manifest = self.manifest(ways()[0]);
        self.check_manifest(&manifest);
        let damaged = self.contents.keys().next_back().unwrap().clone();
        for (at, way) in ways().into_iter().enumerate() {
            // One further with each number of threads and each set of instructions.
            let third = (at + at / 3 + at / 12) % 3;
            for algorithms in [ALGORITHMS[at % 4], ALGORITHMS[(at + at / 4 + 1) % 4]] {
                self.hash(&listing, algorithms, way);
            }
            match third {
                0 => self.duplicates(&listing, way),
                1 => self.check_sums(way),
                _ => assert!(self.manifest(way) == manifest, "manifest, {way:?}"),
            }
            if third != 1 {
                self.verify(&manifest, &[], way);
            }
        }
        // Bytes are another file's business: what has several names differs by each of them.
        let file = File::options()
            .write(true)
            .open(self.tree.join_bytes(&damaged));
        file.unwrap().write_all_at(b"damage", 0).unwrap();
        let changed = reference::files(self.tree.path()).unwrap().into_iter();
        let differs = |path: &Vec<u8>| {
            reference::read(self.tree.path(), path).unwrap() != self.contents[path]
        };
        let changed: Vec<Vec<u8>> = changed.filter(differs).collect();
        assert!(changed.contains(&damaged));
        for way in ways().into_iter().step_by(7) {
            self.verify(&manifest, &changed, way);
        }
    }

    fn hash(&self, listing: &Listing, algorithms: &[Algorithm], way: Way) {
        let options = options(algorithms, way);
        let (cancel, progress) = (Cancel::new(), bc_hash::HashProgress::default());
        let hashes = bc_hash::hash_listing(listing, &options, &cancel, &progress).unwrap();
        let paths = self.contents.iter().enumerate();
        let full = paths.filter(|(_, (_, content))| !content.is_empty());
        let mut entries = listing.ids();
        for (at, (path, _)) in full {
            let found: Vec<Digest> = hashes.digests(entries.next().unwrap()).unwrap().collect();
            let expected = algorithms
                .iter()
                .map(|algorithm| self.digests[algorithm][at]);
            let name = path.escape_ascii();
            assert!(expected.eq(found), "hash {algorithms:?}, {name}, {way:?}");
        }
        assert_eq!(entries.next(), None);
    }

    fn duplicates(&self, listing: &Listing, way: Way) {
        let options = scan::ScanOptions::default()
            .cpu(way.cpu)
            .workers(way.workers)
            .read(read_options(way));
        let (cancel, progress) = (Cancel::new(), scan::ScanProgress::default());
        let found = scan::scan(listing, &options, None, &cancel, &progress).unwrap();
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        let first = |file: scan::File<'_>| {
            let mut path = Vec::new();
            listing.write_relative(file.names[0], &mut path);
            path
        };
        let mut groups: Vec<Vec<Vec<u8>>> = found
            .groups()
            .map(|group| group.files().map(first).collect())
            .collect();
        groups.sort();
        assert_eq!(groups, self.duplicates, "dup, {way:?}");
    }

    /// One line in seven promises another content.
    fn check_sums(&self, way: Way) {
        let no = bc_digest::hash(Algorithm::Sha256, b"no");
        let line = |(at, path): (usize, &Vec<u8>)| FileDigests {
            path: self.path(path),
            digests: vec![match at % 7 {
                3 => (Algorithm::Sha256, no),
                _ => (Algorithm::Sha256, self.digests[&Algorithm::Sha256][at]),
            }],
        };
        let wanted: Vec<FileDigests> = self.contents.keys().enumerate().map(line).collect();
        let (cancel, progress) = (Cancel::new(), bc_hash::HashProgress::default());
        let (verdicts, _) = check(&wanted, &options(&[], way), &cancel, &progress).unwrap();
        for (at, verdict) in verdicts.iter().enumerate() {
            let expected = match at % 7 {
                3 => matches!(verdict, Verdict::Mismatch),
                _ => matches!(verdict, Verdict::Ok),
            };
            assert!(expected, "check, line {at}, {way:?}: {verdict:?}");
        }
    }

    fn manifest(&self, way: Way) -> Vec<u8> {
        let what = CreateOptions::new(self.tree.path().as_os_str(), Algorithm::Sha256)
            .created_at(1_700_000_000_000_000_000);
        with_work(way, |work| {
            let made = create(&what, work, Vec::new(), &mut |path, why| {
                panic!("{}: {why:?}", path.escape_ascii())
            });
            made.unwrap().0
        })
    }

    /// Each file with its digest, and nothing else.
    fn check_manifest(&self, manifest: &[u8]) {
        let mut digests = BTreeMap::new();
        for line in manifest
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let line: serde_json::Value = serde_json::from_slice(line).unwrap();
            if line["kind"] == "file" {
                let text = |name: &str| line[name].as_str().unwrap().to_owned();
                digests.insert(text("path").into_bytes(), text("digest"));
            }
        }
        let digest = self.digests[&Algorithm::Sha256]
            .iter()
            .map(Digest::to_string);
        let expected = self.contents.keys().cloned().zip(digest);
        assert_eq!(digests, expected.collect());
    }

    /// Verifies the tree, in which these files differ and no others.
    fn verify(&self, manifest: &[u8], changed: &[Vec<u8>], way: Way) {
        let manifest = ManifestFile::from_reader(b"memory", manifest).unwrap();
        let what = VerifyOptions::new(self.tree.path().as_os_str(), &manifest);
        let mut report = ChangeReport::new(Vec::new(), ChangeFormat::Text);
        let verified = with_work(way, |work| {
            verify(&what, work, &mut |change| report.change(change))
        });
        let summary = verified.unwrap().summary;
        assert_eq!(summary.files_read, self.contents.len() as u64, "{way:?}");
        let text = String::from_utf8(report.end(&summary).unwrap()).unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split(' ').nth(1))
            .collect();
        let expected: Vec<&str> = changed
            .iter()
            .map(|path| std::str::from_utf8(path).unwrap())
            .collect();
        assert_eq!(names, expected, "verify, {way:?}: {text}");
    }
}

fn read_options(way: Way) -> bc_read::ReadOptions {
    bc_read::ReadOptions::default().backend(way.backend)
}

fn options(algorithms: &[Algorithm], way: Way) -> bc_hash::HashOptions {
    let mut options = bc_hash::HashOptions::new(algorithms.to_vec());
    (options.cpu, options.workers) = (way.cpu, way.workers);
    options.read = read_options(way);
    options
}

fn with_work<T>(way: Way, job: impl FnOnce(&Work<'_>) -> T) -> T {
    let (cancel, progress) = (Cancel::new(), bc_hash::HashProgress::default());
    let reading = |_| {
        Ok(Reading::new(way.workers)
            .start(Start::Together)
            .read(read_options(way)))
    };
    job(&Work::new(way.workers.into(), &reading, &cancel, &progress).cpu(way.cpu))
}

/// Files of one size, every third one equal to the one before.
fn of_size(count: usize, bytes: usize) -> Shape {
    let tree = TestTree::new();
    let base = Rng::new(7).bytes(bytes);
    for i in 0..count {
        let mut content = base.clone();
        let number = if i % 3 == 2 { i - 1 } else { i } as u32;
        let at = (bytes / 2).min(bytes - 4);
        content[at..][..4].copy_from_slice(&number.to_le_bytes());
        tree.write(format!("{:02}/{i:04}", i / 100), content);
    }
    Shape::of(tree)
}

#[test]
fn a_few_large_files() {
    of_size(3, (2 << 20) + 5).check();
}

#[test]
fn six_files() {
    of_size(6, 300_000).check();
}

#[test]
fn seventy_files() {
    of_size(70, 35_000).check();
}

#[test]
fn hundreds_of_files() {
    of_size(400, 1500).check();
}

#[test]
fn many_tiny_files() {
    of_size(700, 40).check();
}

/// Around the lengths at which blocks, buffers and ways of reading change, each twice.
#[test]
fn mixed_sizes() {
    let tree = TestTree::new();
    let edges = [
        1,
        56,
        64,
        112,
        120,
        128,
        240,
        1024,
        4096,
        16_384,
        32_768,
        65_536,
        131_072,
        1 << 20,
    ];
    let sizes = edges
        .into_iter()
        .flat_map(|edge| [edge - 1, edge, edge + 1]);
    for (at, size) in sizes.chain([2 << 20]).enumerate() {
        let content = Rng::new(size as u64).bytes(size);
        tree.write(format!("a/{at}"), &content);
        tree.write(format!("b/{}/{at}", at % 5), &content);
    }
    Shape::of(tree).check();
}

#[test]
fn deep_directories() {
    let tree = TestTree::new();
    for level in 0..120 {
        let dir = "d/".repeat(level);
        tree.write(format!("{dir}a"), format!("{:09}", level / 2));
        tree.write(format!("{dir}x"), format!("{:09}", level / 2 + 60));
    }
    Shape::of(tree).check();
}

#[test]
fn many_links() {
    let tree = TestTree::new();
    for i in 0..60 {
        let first = format!("{}/{i}", i % 7);
        tree.write(&first, format!("{:09}", i / 2).repeat(1 + i * 40));
        for name in 0..4 {
            tree.dir(format!("links/{name}"));
            tree.hard_link(&first, format!("links/{name}/{i}"));
        }
        tree.symlink(format!("../{first}"), format!("links/s{i}"));
    }
    Shape::of(tree).check();
}

/// Files of holes, with some data between them or none.
#[test]
fn holes() {
    let tree = TestTree::new();
    for i in 0..24_u64 {
        let name = format!("{}/{i}", i % 3);
        tree.write(&name, "");
        let file = File::options().write(true).open(tree.join(&name)).unwrap();
        file.set_len(50_000 * (1 + i / 4)).unwrap();
        if i % 4 > 1 {
            file.write_all_at(b"data", 20_000 * (i / 4)).unwrap();
        }
    }
    Shape::of(tree).check();
}
