//! Few descriptors: a command does its work as with many, or says how many it needs and ends; and so
//! does the library in a program that holds all but a few.

use std::fs::File;

use bc_testkit::TestTree;
use bit_crafts::{
    Algorithm, Cancel, ChecksumFile, CopyOptions, DiffOptions, ErrorKind, HashOptions,
    ManifestFile, Means, RestoreOptions, Search, VerifyOptions, WalkOptions,
};

use crate::common::{BC, Bc, alone};

/// Fewest that a command has to find free.
const LEAST: usize = 12;

/// Each command, over copies of one tree: `w` is made afresh for those that change it.
const LINES: [&str; 17] = [
    "hash t",
    "hash --output=out t",
    "hash check sums",
    "hash check --unlisted sums",
    "hash diff sums sums",
    "dup t",
    "dup dirs t u",
    "dup unique t --reference=u",
    "dup prune --yes --action=hardlink --journal=j w",
    "dup prune --yes --action=delete --journal=j w",
    "integrity manifest --output=out t",
    "integrity verify t m",
    "integrity update w wm",
    "integrity diff m m",
    "integrity restore w m --from=t",
    "copy t copied",
    "copy --sync=batch --manifest=out t copied",
];

fn tree() -> TestTree {
    let t = TestTree::new();
    for top in ["t", "u", "w"] {
        fill(&t, top);
    }
    t.bc_line("hash --output=sums t").go().code(0);
    t.bc_line("integrity manifest --output=m t").go().code(0);
    t
}

/// Duplicates in deep and in shallow directories.
fn fill(t: &TestTree, top: &str) {
    for number in 0..12 {
        let content = vec![b'a' + number as u8; 3000];
        for dir in ["a", "d", "a/b/c/d/e/f/g"] {
            let name = format!("{top}/{dir}/{number}");
            t.write(&name, &content).mtime(&name, 1_600_000_000, 0);
        }
    }
    t.write(format!("{top}/one"), "one");
}

#[test]
fn a_command_says_how_many_it_needs() {
    let t = tree();
    let afresh = || {
        for made in ["out", "j", "copied", "w", "wm"] {
            let path = t.join(made);
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        }
        fill(&t, "w");
        t.remove("w/a/3").write("wm", t.read("m"));
    };
    for line in LINES {
        afresh();
        let expected = t.bc_line(line).go();
        let code = expected.status.code();
        assert!(code < Some(2), "{line}: {expected}");
        for limit in (6..=20).chain([40]) {
            afresh();
            let limited = format!("ulimit -n {limit} && exec \"$0\" {line} --threads=mono");
            let ran = t.run("sh").args(["-c", &limited, BC]).go();
            let text = ran.error_text();
            // Whoever started the test may have left some open as well.
            if let Some((_, figures)) = text.split_once("too few open files are allowed: ") {
                let left: usize = figures.split(' ').next().unwrap().parse().unwrap();
                assert!(left < LEAST && limit < 40, "{line}: {ran}");
                let rest = format!("{left} are left of {limit}, and {LEAST} are needed; use: ");
                ran.code(2).stdout_is("").stderr_has(rest);
                assert!(
                    !t.exists("out") && !t.exists("copied") && !t.exists("j"),
                    "{line}"
                );
            } else {
                assert!(limit >= LEAST + 3, "{limit} {line}: {ran}");
                assert_eq!(ran.status.code(), code, "{limit} {line}: {ran}");
                if !line.contains(['u', 'j']) {
                    ran.stdout_is(&expected.stdout);
                }
            }
        }
    }
}

/// Holds all descriptors but so many.
pub fn hold_all_but(left: usize) -> Vec<File> {
    let held = std::iter::from_fn(|| File::open("/dev/null").ok());
    let mut held: Vec<File> = held.collect();
    held.truncate(held.len() - left);
    held
}

/// A verb of the library, run.
type Verb<'a> = &'a dyn Fn() -> Result<(), bit_crafts::Error>;

#[test]
fn the_library_says_how_many_it_needs() {
    if !alone("descriptors::the_library_says_how_many_it_needs") {
        return;
    }
    let t = tree();
    let (root, all, means) = (t.join("t"), WalkOptions::default(), Means::new());
    let blake3 = HashOptions::new(vec![Algorithm::Blake3]);
    let manifest = ManifestFile::open(t.join("m")).unwrap();
    let verbs: [(&str, Verb<'_>); 8] = [
        ("hash", &|| blake3.run([&root], &all, &means).map(drop)),
        ("duplicates", &|| {
            Search::new([&root]).duplicates(&means).map(drop)
        }),
        ("check", &|| {
            ChecksumFile::new(t.join("sums")).run(&means).map(drop)
        }),
        ("verify", &|| {
            VerifyOptions::new(&root, &manifest).run(&means).map(drop)
        }),
        ("diff", &|| {
            DiffOptions::new(&manifest, &manifest).run(&means).map(drop)
        }),
        ("restore", &|| {
            let job = RestoreOptions::new(&root, &manifest).from([t.join("u")]);
            job.run(&means).map(drop)
        }),
        ("copy", &|| {
            let job = CopyOptions::new([&root], t.join("copied"));
            job.run(&means).map(drop)
        }),
        ("walk", &|| all.run([&root], &means).map(drop)),
    ];
    for left in 0..=16 {
        let held = hold_all_but(left);
        let results: Vec<_> = verbs.iter().map(|(name, verb)| (name, verb())).collect();
        drop(held);
        for (name, result) in results {
            match result {
                Ok(()) => assert!(left >= LEAST, "{name}, {left} left"),
                Err(error) => {
                    assert!(left < LEAST, "{name}, {left} left: {error}");
                    assert_eq!(error.kind(), ErrorKind::Io, "{name}: {error}");
                    let text = error.to_string();
                    assert!(
                        text.contains(&format!(": {left} are left of ")),
                        "{name}: {text}"
                    );
                }
            }
        }
    }
}

/// What is asked to end before it begins does not wait for a FIFO's writer first.
#[test]
fn a_cancelled_job_waits_for_nobody() {
    let t = tree();
    t.fifo("pipe");
    let (pipe, cancel) = (t.join("pipe"), Cancel::new());
    cancel.stop();
    let means = Means::new().cancel(&cancel);
    let checked = ChecksumFile::new(&pipe).run(&means);
    assert_eq!(checked.unwrap_err().kind(), ErrorKind::Cancelled);
    let error = ManifestFile::open_until(&pipe, &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
