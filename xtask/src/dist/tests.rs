//! The guide's page before real formatters, and packages of the files that the program writes
//! itself.

use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out, tool};

use super::machine::Machine;
use super::{NAMES, deb, deb_check, guide, size_agrees, symbols};

/// Returns the program beside this test; a test of this package alone builds it.
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

fn here() -> Machine {
    Machine::of(None).unwrap()
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

/// Checks that the package has no `bc` of ours.
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

/// Checks that everything in the package is for its four names, and all of them are served.
#[test]
fn the_package_serves_its_own_names_and_no_other() {
    let t = TestTree::new();
    deb::lay(&here(), &binary(), t.path()).unwrap();
    let share = |path: &str| t.join("usr/share").join(path);
    let man = std::fs::read_dir(share("man/man1")).unwrap();
    let pages: Vec<PathBuf> = man.map(|entry| entry.unwrap().path()).collect();
    for name in NAMES {
        let page = share(&format!("man/man1/{name}.1"));
        assert!(pages.contains(&page), "{name}");
        let bash = share(&format!("bash-completion/completions/{name}"));
        assert!(bash.is_file(), "{name}");
        let fish = share(&format!("fish/vendor_completions.d/{name}.fish"));
        assert!(fish.is_file(), "{name}");
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
    let bash = share("bash-completion/completions/bitcrafts");
    let bash = std::fs::read_to_string(bash).unwrap();
    let served = bash.lines().last().unwrap();
    assert!(served.starts_with("complete -F _bc bitcrafts "), "{served}");
    let zsh = share("zsh/vendor-completions/_bitcrafts");
    let zsh = std::fs::read_to_string(zsh).unwrap();
    assert!(zsh.starts_with("#compdef bitcrafts bchash "));
    for name in NAMES {
        assert!(served.split(' ').any(|word| word == name), "{name}");
        assert!(zsh.lines().next().unwrap().contains(name), "{name}");
    }
}

/// Checks that the package has all schemas, whose titles do not say the calculator's name.
#[test]
fn schemas_are_in_the_package() {
    let t = TestTree::new();
    deb::lay(&here(), &binary(), t.path()).unwrap();
    let folder = t.join("usr/share/doc/bit-crafts/schemas");
    let names = std::fs::read_dir(&folder).unwrap();
    let names: Vec<PathBuf> = names.map(|entry| entry.unwrap().path()).collect();
    for name in ["accept", "changes", "hash", "integrity", "log", "metrics"] {
        let path = folder.join(format!("{name}-v1.schema.json"));
        assert!(names.contains(&path), "{path:?}");
    }
    for path in &names {
        let schema: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert!(schema["title"].as_str().unwrap().ends_with("schema 1"));
    }
    deb_check::check(t.path()).unwrap();
}

/// Checks that the check finds names that must not be there.
#[test]
fn a_package_that_takes_the_calculators_name_is_refused() {
    let t = TestTree::new();
    deb::lay(&here(), &binary(), t.path()).unwrap();
    let again = |path: &str, text: &str| {
        t.write(path, text);
        let checked = deb_check::check(t.path()).map_err(|error| error.to_string());
        std::fs::remove_file(t.join(path)).unwrap();
        checked
    };
    again("usr/share/doc/bit-crafts/note", "see bchash\n").unwrap();
    for (path, text, complaint) in [
        ("usr/bin/bc", "", "holds bc, the calculator's"),
        ("usr/share/man/man1/bc.1", "", "holds bc.1"),
        (
            "usr/share/doc/bit-crafts/note",
            "use bc hash\n",
            "note:1: says bc",
        ),
    ] {
        let error = again(path, text).unwrap_err();
        assert!(error.contains(complaint), "{error}");
    }
    std::fs::remove_file(t.join("usr/bin/bcdup")).unwrap();
    let error = deb_check::check(t.path()).unwrap_err().to_string();
    assert!(error.contains("holds no usr/bin/bcdup"), "{error}");
}

#[test]
fn symbols_are_put_apart_and_names_stay() {
    for needed in ["objcopy", "nm", "cc"] {
        if tool(needed).is_none() {
            return left_out(&format!("{needed} is not installed"));
        }
    }
    let t = TestTree::new();
    t.write(
        "a.c",
        "int of_a_function(void) { return 7; } int main(void) { return of_a_function(); }",
    );
    let compile = t.run("cc").args(["-g", "-O0", "-o", "whole", "a.c"]);
    compile.go().code(0);
    let tables = t.join("bc.debug");
    symbols::split(&here(), &t.join("whole"), &t.join("bc"), &tables).unwrap();
    let sections = |name: &str| t.run("objdump").args(["-h", name]).go().code(0).text();
    assert!(!sections("bc").contains(".debug_line"));
    assert!(sections("bc").contains(".gnu_debuglink"));
    assert!(sections("bc.debug").contains(".debug_line"));
    t.run("nm")
        .arg("bc")
        .go()
        .code(0)
        .stdout_has(" of_a_function\n");
    t.run(t.join("bc")).go().code(7);
}

#[test]
fn a_size_in_readme_that_is_out_of_date_is_refused() {
    let readme = "`cargo install` installs a single 16 MB file |";
    assert!(size_agrees(readme, 16_172_544).is_ok());
    assert!(size_agrees(readme, 17_100_000).is_err());
    assert!(size_agrees(readme, 9_900_000).is_err());
    assert!(size_agrees("no figure", 16_000_000).is_err());
}

/// Checks that actions of others are taken by commit, and that the guide verifies the certificate
/// by which the workflow signs.
#[test]
fn the_release_workflow_is_pinned_and_signs_as_the_guide_says() {
    let read = |path: &str| std::fs::read_to_string(crate::sh::root().join(path)).unwrap();
    let mut actions = 0;
    for workflow in ["ci.yml", "release.yml"] {
        for line in read(&format!(".github/workflows/{workflow}")).lines() {
            let Some((_, action)) = line.split_once("uses: ") else {
                continue;
            };
            let commit = action.split(['@', ' ']).nth(1).unwrap_or("");
            let is_hex = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(commit.len() == 40 && is_hex, "{workflow}: {action}");
            actions += 1;
        }
    }
    assert!(actions > 4, "{actions} actions");
    let (guide, workflow) = (
        read("src/guide/rules.md"),
        read(".github/workflows/release.yml"),
    );
    assert!(workflow.contains("id-token: write"));
    let same = [
        "--bundle SHA256SUMS.sigstore.json",
        "--certificate-oidc-issuer https://token.actions.githubusercontent.com SHA256SUMS",
    ];
    for words in same {
        assert!(guide.contains(words) && workflow.contains(words), "{words}");
    }
    let file = "/.github/workflows/release.yml@";
    assert!(guide.contains(&format!("/$repository{file}refs/tags/$tag\"")));
    assert!(workflow.contains(&format!("/$GITHUB_REPOSITORY{file}$GITHUB_REF\"")));
}
