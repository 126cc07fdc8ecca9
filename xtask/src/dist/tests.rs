//! The guide's page before real formatters. What the program writes itself is tested with it.

use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out, tool};

use super::{NAMES, deb, guide};

/// The program beside this test; a test of this package alone builds it.
fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let bc = profile.join("bc");
    let mut cargo = crate::sh::cargo();
    cargo.args(["build", "--quiet", "--locked", "--package", "bit-crafts"]);
    cargo.arg("--target-dir").arg(profile.parent().unwrap());
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    if !bc.is_file() {
        assert!(cargo.status().unwrap().success());
    }
    bc
}

#[test]
fn the_guide_is_a_clean_page() {
    let t = TestTree::new();
    t.write("bc-guide.7", guide::page("bc"));
    let beside = guide::page("bitcrafts");
    t.write("bitcrafts-guide.7", beside);
    let pages = ["bc-guide.7", "bitcrafts-guide.7"];
    if tool("groff").is_some() {
        let format = t.run("groff").args(["-man", "-ww", "-Tutf8", "-z"]);
        format.args(pages).go().code(0).stderr_is("");
    } else {
        left_out("groff is not installed");
    }
    if tool("mandoc").is_some() {
        let lint = t.run("mandoc").args(["-T", "lint", "-W", "warning"]);
        lint.args(pages).go().code(0).stdout_is("");
    } else {
        left_out("mandoc is not installed");
    }
}

/// The package has no `bc` of ours.
#[test]
fn beside_the_calculator_the_guide_says_bchash() {
    let page = guide::page("bitcrafts");
    assert!(page.contains("bchash ") && page.contains("bcintegrity update"));
    for line in page.lines() {
        for call in ["bc ", "fBbc\\f", "bc\\-guide"] {
            let found = line.match_indices(call).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| (c.is_alphanumeric() && c != 'B') || c == '_')
            });
            assert!(!found, "{call}: {line}");
        }
    }
}

/// Everything in the package is for its four names, and all of them are served.
#[test]
fn the_package_serves_its_own_names_and_no_other() {
    let t = TestTree::new();
    deb::lay(&binary(), t.path()).unwrap();
    let man = std::fs::read_dir(t.join("man")).unwrap();
    let pages: Vec<PathBuf> = man.map(|entry| entry.unwrap().path()).collect();
    for name in NAMES {
        assert!(pages.contains(&t.join(format!("man/{name}.1"))), "{name}");
        assert!(t.join(format!("bash/{name}")).is_file(), "{name}");
        assert!(t.join(format!("fish/{name}.fish")).is_file(), "{name}");
    }
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        assert!(
            !page.ends_with("bc.1") && !text.contains("\nbc "),
            "{page:?}"
        );
        assert!(!text.contains(" bc ") && !text.contains("Bbc "), "{page:?}");
        assert!(text.contains("bitcrafts\\-guide\\fR(7)"), "{page:?}");
    }
    let bash = std::fs::read_to_string(t.join("bash/bitcrafts")).unwrap();
    let served = bash.lines().last().unwrap();
    assert!(served.starts_with("complete -F _bc bitcrafts "), "{served}");
    let zsh = std::fs::read_to_string(t.join("zsh/_bitcrafts")).unwrap();
    assert!(zsh.starts_with("#compdef bitcrafts bchash "));
    for name in NAMES {
        assert!(served.split(' ').any(|word| word == name), "{name}");
        assert!(zsh.lines().next().unwrap().contains(name), "{name}");
    }
}
