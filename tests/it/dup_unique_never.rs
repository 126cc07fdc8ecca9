//! `bc dup unique` never says "safe" of a card that is not: generated cases in each of which one
//! content of the card is nowhere else, or nobody can tell.

use std::os::unix::fs::FileExt;

use bc_testkit::{Outcome, Rng, TestTree, cases};

use crate::common::Bc;
use crate::dup_reference::where_it_may_mount;

/// So many cases in the everyday run.
const EVERYDAY: usize = 2 * KINDS.len();

/// What is wrong, and how the reference is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Flipped,
    Truncated,
    Lengthened,
    Missing,
    EqualEnds,
    Unreadable,
    UnreadableWitness,
    IsPath,
    Inside,
    Around,
    Bound,
    Linked,
    OwnManifest,
    Weak,
    DamagedManifest,
    ErroredEntry,
    FailedEntry,
    Filtered,
    Covered,
    Temporary,
}

const KINDS: [Kind; 20] = [
    Kind::Flipped,
    Kind::Truncated,
    Kind::Lengthened,
    Kind::Missing,
    Kind::EqualEnds,
    Kind::Unreadable,
    Kind::UnreadableWitness,
    Kind::IsPath,
    Kind::Inside,
    Kind::Around,
    Kind::Bound,
    Kind::Linked,
    Kind::OwnManifest,
    Kind::Weak,
    Kind::DamagedManifest,
    Kind::ErroredEntry,
    Kind::FailedEntry,
    Kind::Filtered,
    Kind::Covered,
    Kind::Temporary,
];

/// A card and an archive that has all of it, in another shape.
struct Case {
    t: TestTree,
    rng: Rng,
    files: Vec<Vec<u8>>,
}

impl Case {
    fn new(seed: u64) -> Case {
        let (t, mut rng) = (TestTree::new(), Rng::new(seed));
        let count = 2 + rng.below(5) as usize;
        let mut files: Vec<Vec<u8>> = Vec::new();
        for nth in 0..count {
            // Of fewer bytes two files would be equal by chance, in ten thousand cases.
            const SIZES: [usize; 9] = [8, 100, 2048, 2049, 4096, 5000, 70_000, 131_073, 140_000];
            let size = SIZES[rng.below(9) as usize];
            let mut content = rng.bytes(size);
            // Some have the size of another and differ in one byte.
            if nth > 0 && rng.below(3) == 0 {
                content = files[nth - 1].clone();
                let at = rng.below(content.len() as u64) as usize;
                // Twice at one place must not give what was there.
                content[at] = content[at].wrapping_add(0x55);
            }
            t.write(card(nth), &content).write(archive(nth), &content);
            files.push(content);
        }
        // More than the card has.
        t.write("archive/other", rng.bytes(300));
        Case { t, rng, files }
    }

    /// A file of the card.
    fn victim(&mut self) -> usize {
        self.rng.below(self.files.len() as u64) as usize
    }

    fn ask(&self, rest: &str) -> Outcome {
        self.t.bc_line(&format!("dup unique {rest}")).go()
    }

    /// Asks as nobody, for whom permissions count.
    fn ask_as_nobody(&self, rest: &str) -> Outcome {
        self.t
            .bc_line(&format!("dup unique {rest}"))
            .as_nobody()
            .go()
    }

    /// A reference to the archive: itself, or one of its manifests.
    fn reference(&mut self) -> String {
        const LINES: [&str; 5] = [
            "integrity manifest --output=../m archive",
            "integrity manifest --output=../m.zst archive",
            "hash --type=sha256 --output=../m archive",
            "hash --type=blake3 --format=bsd --output=../m archive",
            "hash --type=md5 --output=../m archive",
        ];
        let at = self.rng.below(8) as usize;
        let Some(line) = LINES.get(at) else {
            return ["--reference=archive", "--reference=archive --verify-bytes"][at % 2]
                .to_owned();
        };
        self.t.bc_line(line).go().code(0);
        match line.contains(".zst") {
            true => "--reference=../m.zst".to_owned(),
            false => "--reference=../m".to_owned(),
        }
    }

    /// A manifest of the archive, as text.
    fn manifest(&self) -> String {
        self.t
            .bc_line("integrity manifest --output=../m archive")
            .go()
            .code(0);
        std::fs::read_to_string(self.t.scratch("m")).unwrap()
    }

    fn change(&self, name: &str, change: impl FnOnce(&std::fs::File, u64)) {
        let path = self.t.join(name);
        let file = std::fs::File::options().read(true).write(true).open(path);
        let file = file.unwrap();
        let len = file.metadata().unwrap().len();
        change(&file, len);
    }

    /// Flips a bit in the middle, or wherever there is one.
    fn flip(&mut self, name: &str, at: impl FnOnce(&mut Rng, u64) -> u64) {
        let rng = &mut self.rng;
        let path = self.t.join(name);
        let file = std::fs::File::options().read(true).write(true).open(path);
        let file = file.unwrap();
        let len = file.metadata().unwrap().len();
        let at = at(rng, len);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1 << rng.below(8)], at)
            .unwrap();
    }
}

fn card(nth: usize) -> String {
    format!("card/{}/{nth}.bin", nth % 3)
}

fn archive(nth: usize) -> String {
    format!("archive/{}/by-{nth}", nth % 2)
}

/// Seals an integrity manifest again after its lines were changed.
fn sealed(text: &str) -> String {
    let (body, trailer) = text.trim_end().rsplit_once('\n').unwrap();
    let body = format!("{body}\n");
    let digest = bc_digest::hash(bc_digest::Algorithm::Sha256, body.as_bytes());
    let start = trailer.find("\"sha256\":\"").unwrap() + "\"sha256\":\"".len();
    let errors = body.matches("\"error\":").count();
    let trailer = format!("{}{digest}{}", &trailer[..start], &trailer[start + 64..]);
    let (head, tail) = trailer.split_once("\"errors\":").unwrap();
    let tail = tail.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{body}{head}\"errors\":{errors}{tail}\n")
}

/// Runs a case; gives what came out, or nothing where the machine does not allow it.
fn run(kind: Kind, seed: u64) -> Option<Outcome> {
    let mut case = Case::new(seed);
    let one = case.victim();
    let kept = archive(one);
    Some(match kind {
        Kind::Flipped => {
            let side = [card(one), kept][case.rng.below(2) as usize].clone();
            case.flip(&side, |rng, len| match rng.below(2) {
                0 => len / 2,
                _ => rng.below(len),
            });
            let reference = case.reference();
            case.ask(&format!("card {reference}"))
        }
        Kind::Truncated => {
            let mut less = 0;
            let rng = &mut case.rng;
            let len = case.files[one].len() as u64;
            less += rng.below(len.min(5000)) + 1;
            case.change(&kept, |file, len| file.set_len(len - less).unwrap());
            let reference = case.reference();
            case.ask(&format!("card {reference}"))
        }
        Kind::Lengthened => {
            case.change(&kept, |file, len| file.set_len(len + 1).unwrap());
            let reference = case.reference();
            case.ask(&format!("card {reference}"))
        }
        Kind::Missing => {
            let file = case.files[one].clone();
            for nth in 0..case.files.len() {
                if case.files[nth] == file {
                    case.t.remove(archive(nth));
                }
            }
            let reference = case.reference();
            case.ask(&format!("card {reference}"))
        }
        Kind::EqualEnds => {
            // What a first look reads of both is the same.
            let size = [5000, 131_072, 131_073, 300_000][case.rng.below(4) as usize];
            let content = case.rng.bytes(size);
            case.t
                .write("card/ends", &content)
                .write("archive/ends", &content);
            let inner = 4096.min(size as u64 / 2 - 100);
            case.flip("archive/ends", |rng, len| {
                inner + rng.below(len - 2 * inner)
            });
            let reference = case.reference();
            case.ask(&format!("card {reference}"))
        }
        Kind::Unreadable => {
            let reference = case.reference();
            let name = [card(one), format!("card/{}", one % 3)][case.rng.below(2) as usize].clone();
            case.t.mode(&name, 0);
            let out = case.ask_as_nobody(&format!("card {reference}"));
            case.t.mode(&name, 0o755);
            out
        }
        Kind::UnreadableWitness => {
            let name = [kept, format!("archive/{}", one % 2)][case.rng.below(2) as usize].clone();
            case.t.mode(&name, 0);
            let out = case.ask_as_nobody("card --reference=archive");
            case.t.mode(&name, 0o755);
            out
        }
        Kind::IsPath => {
            case.t.symlink("card", "link");
            let name = ["card", "card/", "./card", "link", "card/../card", "link/."];
            let name = name[case.rng.below(6) as usize];
            case.ask(&format!("card --reference={name}"))
        }
        Kind::Inside => {
            for (nth, content) in case.files.iter().enumerate() {
                case.t.write(format!("card/backup/{nth}"), content);
            }
            case.ask("card --reference=card/backup")
        }
        Kind::Around => {
            case.t.remove("archive");
            for (nth, content) in case.files.iter().enumerate() {
                case.t.write(format!("card/again/{nth}"), content);
            }
            case.ask("card --reference=.")
        }
        Kind::Bound => {
            case.t.dir("m");
            let what = ["card", "card/0"][case.rng.below(2) as usize];
            let (path, reference) = match case.rng.below(2) {
                0 => (what, "m"),
                _ => ("m", what),
            };
            let script = format!(
                "mount --bind {what} m; code=0; \
                 \"$BC\" dup unique {path} --reference={reference} >&2 || code=$?; exit $code"
            );
            let files = std::fs::read_dir(case.t.join("card/0")).map_or(0, Iterator::count);
            if files == 0 {
                return None;
            }
            where_it_may_mount(&case.t, &script)?
        }
        Kind::Linked => {
            let file = case.files[one].clone();
            for nth in 0..case.files.len() {
                if case.files[nth] == file {
                    case.t
                        .remove(archive(nth))
                        .hard_link(card(nth), archive(nth));
                }
            }
            let reference = case.reference();
            case.ask(&format!("card {reference}"))
        }
        Kind::OwnManifest => {
            let (line, extra) = [
                ("integrity manifest --output=../m card", ""),
                ("integrity manifest --output=../m.zst card", ".zst"),
                ("integrity manifest --output=../m .", ""),
                ("hash --type=sha256 --output=../m card", ""),
                ("hash --type=md5 --format=bsd --output=../m ./card", ""),
            ][case.rng.below(5) as usize];
            case.t.remove("archive");
            case.t.bc_line(line).go().code(0);
            case.ask(&format!("card --reference=../m{extra}"))
        }
        Kind::Weak => {
            let algorithm = ["xxh3", "xxh64", "xxh32", "crc32c"][case.rng.below(4) as usize];
            let format = ["gnu", "bsd", "jsonl"][case.rng.below(3) as usize];
            case.t
                .bc_line(&format!(
                    "hash --type={algorithm} --format={format} --output=../m archive"
                ))
                .go()
                .code(0);
            case.ask("card --reference=../m")
        }
        Kind::DamagedManifest => {
            let mut bytes = case.manifest().into_bytes();
            match case.rng.below(3) {
                0 => {
                    let keep = case.rng.below(bytes.len() as u64 - 1) as usize;
                    bytes.truncate(keep);
                }
                1 => {
                    let at = case.rng.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << case.rng.below(8);
                }
                _ => {
                    let at = case.rng.below(bytes.len() as u64) as usize;
                    let end = (at + 1 + case.rng.below(80) as usize).min(bytes.len());
                    bytes.drain(at..end);
                }
            }
            std::fs::write(case.t.scratch("m"), bytes).unwrap();
            case.ask("card --reference=../m")
        }
        Kind::ErroredEntry | Kind::FailedEntry => {
            let digest = bc_digest::hash(bc_digest::Algorithm::Sha256, &case.files[one]);
            let digest = format!("\"digest\":\"{digest}\"");
            let text = case.manifest();
            let lines: Vec<String> = text
                .lines()
                .map(|line| match (line.contains(&digest), kind) {
                    (false, _) => line.to_owned(),
                    (true, Kind::ErroredEntry) => format!(
                        "{},\"error\":{{\"op\":\"read\",\"errno\":5,\"message\":\"x\"}}}}",
                        &line[..line.len() - 1]
                    ),
                    (true, _) => format!(
                        "{},\"tried_at\":\"2999-01-01T00:00:00Z\",\"found\":\"damaged\"}}",
                        &line[..line.len() - 1]
                    ),
                })
                .collect();
            let changed = sealed(&(lines.join("\n") + "\n"));
            assert_ne!(changed, text);
            std::fs::write(case.t.scratch("m"), changed).unwrap();
            case.ask("card --reference=../m")
        }
        Kind::Filtered => {
            let hidden = case.rng.bytes(40);
            case.t
                .write("card/.only", hidden)
                .write("card/.ignore", ".only\n");
            case.t.write("archive/ignore", ".only\n");
            let filter = [
                "--no-hidden",
                "--include=*.bin",
                "--min-size=41",
                "--max-size=39",
                "--ignore-files",
                "--max-depth=0",
            ][case.rng.below(6) as usize];
            let reference = case.reference();
            case.ask(&format!("card {filter} {reference}"))
        }
        Kind::Covered => {
            case.t.write("card/deep/only", "nowhere else");
            let covering = [
                "mount -t tmpfs none card/deep",
                "mount --bind archive/0 card/deep",
            ];
            let filter = ["", "-x"][case.rng.below(2) as usize];
            let script = format!(
                "{}; code=0; \
                 \"$BC\" dup unique card {filter} --reference=archive >&2 || code=$?; exit $code",
                covering[case.rng.below(2) as usize]
            );
            where_it_may_mount(&case.t, &script)?
        }
        Kind::Temporary => {
            let file = case.files[one].clone();
            for nth in 0..case.files.len() {
                if case.files[nth] == file {
                    case.t.remove(archive(nth));
                }
            }
            let name = [".bc-dup.7.7.7.tmp", ".bc-copy.00112233445566ff.part"];
            let name = name[case.rng.below(2) as usize];
            case.t.write(format!("archive/{name}"), &file);
            case.ask("card --reference=archive")
        }
    })
}

/// How often each kind came up, where many were asked for.
#[expect(clippy::print_stderr, reason = "figures of a long run, for people")]
fn report(done: &[usize]) {
    for (kind, done) in KINDS.iter().zip(done) {
        eprintln!("{kind:?}: {done}");
    }
}

#[test]
fn not_one_false_safe() {
    let count = cases(EVERYDAY);
    let mut done = vec![0; KINDS.len()];
    for seed in 0..count as u64 {
        let at = seed as usize % KINDS.len();
        let Some(out) = run(KINDS[at], seed) else {
            continue;
        };
        let code = out.status.code();
        let reported = matches!(code, Some(1 | 2));
        assert!(reported, "seed {seed}, {:?}: a false safe{out}", KINDS[at]);
        if KINDS[at] == Kind::Weak {
            assert_eq!(code, Some(2), "seed {seed}{out}");
        }
        done[at] += 1;
    }
    if count > EVERYDAY {
        report(&done);
    }
}

/// The same cases without anything wrong are safe, or the others would prove nothing.
#[test]
fn what_is_all_there_is_safe() {
    for seed in 0..cases(EVERYDAY).div_ceil(8) as u64 {
        let mut case = Case::new(seed);
        let reference = case.reference();
        let out = case.ask(&format!("card {reference}"));
        out.code(0).stdout_is("");
    }
}
