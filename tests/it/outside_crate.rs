//! A crate of somebody else's, away from the workspace, uses the library: it builds offline, has none
//! of the program's own dependencies, and does what it says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use bc_testkit::TestTree;

use crate::common::ABC;

const PROGRAM: &str = include_str!("outside/main.rs");

/// What only the program needs.
const NOT_OURS: &[&str] = &["clap", "clap_builder", "clap_mangen", "signal-hook", "toml"];

/// Makes the crate, with these features of the library, and the versions of dependencies that the
/// workspace has.
fn crate_with(t: &TestTree, features: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = format!(
        "[package]\nname = \"outside\"\nedition = \"2024\"\n\n[dependencies]\n\
         bit-crafts = {{ path = {root:?}, default-features = false, features = [{features}] }}\n\n\
         [profile.dev]\ndebug = false\nincremental = false\n\n[workspace]\n"
    );
    t.write("outside/Cargo.toml", manifest)
        .write("outside/src/main.rs", PROGRAM)
        .write(
            "outside/Cargo.lock",
            std::fs::read(root.join("Cargo.lock")).unwrap(),
        );
    t.join("outside")
}

fn cargo(folder: &Path, args: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    let tests = std::env::current_exe().unwrap();
    // Kept from one run to the next: nearly all the time goes into dependencies.
    let target = tests.ancestors().nth(3).unwrap().join("outside");
    cargo.current_dir(folder).args(args).arg("--offline");
    cargo
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTFLAGS");
    let out = cargo.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "cargo {args:?}: {errors}{text}");
    text
}

#[test]
fn somebody_elses_crate_builds_and_does_six_things() {
    if !Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates")
        .is_dir()
    {
        bc_testkit::left_out("a crate of somebody else's: the packed crates are not published yet");
        return;
    }
    let t = TestTree::new();
    let folder = crate_with(&t, r#""copy", "dup", "cache""#);
    let names = packages(&folder, "normal,build");
    assert!(names.contains("bc-walk"), "{names:?}");
    let wrong: Vec<_> = NOT_OURS
        .iter()
        .filter(|name| names.contains(**name))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?} came along");

    cargo(&folder, &["build", "--quiet"]);
    let tests = std::env::current_exe().unwrap();
    let program = tests
        .ancestors()
        .nth(3)
        .unwrap()
        .join("outside/debug/outside");
    t.write("d/a", "abc")
        .write("d/b", "abc")
        .write("d/c.txt", "else");
    t.write("SUMS", format!("{ABC}  d/a\n{ABC}  d/c.txt\n"));
    let out = t.run(program).go();
    out.code(0).stdout_is(format!(
        "{ABC} 2 true\n0 of them, Cancelled\n[\"d/a\", \"d/b\"]\n.: false\na: true\nb: true\nc.txt: true\nd/c.txt\n\
         d/c.txt: Mismatch\n900150983cd24fb0d6963f7d28e17f72\n"
    ));
}

/// Names of the packages that a crate is built of.
fn packages(folder: &Path, edges: &str) -> BTreeSet<String> {
    let edges = format!("--edges={edges}");
    let tree = cargo(folder, &["tree", "--prefix=none", &edges]);
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(String::from).collect()
}

/// A verb brings what it needs and nothing else.
#[test]
fn a_program_that_hashes_builds_nothing_of_the_other_verbs() {
    let is_whole = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates")
        .is_dir();
    if !is_whole {
        bc_testkit::left_out("a crate of somebody else's: the packed crates are not published yet");
        return;
    }
    let with = |features| packages(&crate_with(&TestTree::new(), features), "normal");
    let hash = with(r#""hash""#);
    // The crate itself is one of them.
    assert!(hash.len() <= 26, "{}: {hash:?}", hash.len());
    let others = [
        "bc-edit",
        "bc-manifest",
        "redb",
        "serde",
        "serde_json",
        "sha2",
        "zstd",
    ];
    for other in others {
        assert!(!hash.contains(other), "{other} came along");
    }
    let dup = with(r#""dup""#);
    assert!(dup.contains("bc-prune") && !dup.contains("redb") && !dup.contains("bc-copy"));
    assert!(with(r#""cache""#).contains("redb"));
    let integrity = with(r#""integrity""#);
    assert!(integrity.contains("bc-integrity") && !integrity.contains("bc-find"));
}

#[test]
fn each_of_the_six_things_takes_under_ten_lines() {
    let mut functions = 0;
    for function in PROGRAM.split("\nfn ").skip(1) {
        let body = function.lines().take_while(|line| *line != "}");
        let count = body.skip(1).count();
        assert!(count < 10, "{count} lines: {function}");
        functions += 1;
    }
    assert_eq!(functions, 7, "six and main");
}
