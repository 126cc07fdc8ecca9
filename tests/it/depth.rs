//! `--max-depth` counts as `find -maxdepth` does, in every command that walks.

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;

fn tree() -> TestTree {
    let t = TestTree::new();
    for path in ["r/0", "r/a/1", "r/a/b/2", "r/a/b/c/3"] {
        t.write(path, "all alike");
    }
    t
}

fn sorted(lines: Vec<&[u8]>) -> Vec<String> {
    let text = |line: &&[u8]| String::from_utf8_lossy(line).into_owned();
    let mut lines: Vec<String> = lines.iter().map(text).collect();
    lines.retain(|line| !line.is_empty());
    lines.sort();
    lines
}

#[test]
fn levels_are_those_of_find() {
    if tool("find").is_none() {
        return left_out("find is not installed");
    }
    let t = tree();
    for depth in 0..=5 {
        let find = |roots: &str, kind: &str| {
            let line = format!("{roots} -maxdepth {depth} {kind}");
            sorted(t.run("find").args(line.split_whitespace()).go().lines())
        };
        for roots in ["r", "r/0 r/a", "r/a/b/"] {
            let files = find(roots, "-type f");
            let hashed = t.bc_line(&format!("hash --max-depth={depth} {roots}")).go();
            let hashed: Vec<&[u8]> = hashed.code(0).lines().iter().map(|l| &l[66..]).collect();
            assert_eq!(sorted(hashed), files, "hash {depth} {roots}");

            let same = t.bc_line(&format!("dup --max-depth={depth} {roots}")).go();
            let expected = if files.len() > 1 {
                files.clone()
            } else {
                Vec::new()
            };
            assert_eq!(
                sorted(same.code(0).lines()),
                expected,
                "dup {depth} {roots}"
            );
            let plan = t
                .bc_line(&format!(
                    "dup prune --action=hardlink -n --max-depth={depth} {roots}"
                ))
                .go();
            let changes = files.len().saturating_sub(1);
            assert_eq!(plan.code(0).lines().len(), changes, "prune {depth} {roots}");
        }
        let manifest = t
            .bc_line(&format!("integrity manifest --max-depth={depth} r"))
            .go();
        let entries = manifest.code(0).text().lines().count() - 2;
        assert_eq!(entries, find("r", "").len(), "integrity {depth}");
        // A manifest's walk options are its own: nothing deeper is new.
        t.write("m", &manifest.stdout);
        t.bc_line("integrity verify r m").go().code(0).stdout_is("");
    }
}

#[test]
fn a_list_is_no_walk() {
    let t = tree();
    for depth in ["0", "1"] {
        t.bc_line("hash --files-from=- --max-depth")
            .arg(depth)
            .stdin("r/a/b/c/3\n")
            .go()
            .code(0)
            .stdout_has("r/a/b/c/3\n");
    }
}

#[test]
fn the_help_counts_as_the_program_does() {
    let t = tree();
    for command in ["hash hash", "dup scan", "dup prune", "integrity manifest"] {
        t.bc_line(command)
            .arg("--help")
            .go()
            .code(0)
            .stdout_has("like find -maxdepth");
    }
}
