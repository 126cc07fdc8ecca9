//! The guide's page before real formatters. What the program writes itself is tested with it.

use bc_testkit::{TestTree, left_out, tool};

use super::guide;

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
