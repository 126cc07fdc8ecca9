//! The guide's recipe for an inbox, run as it is written there; only its paths are made ones of a
//! temporary tree.

use std::path::Path;

use bc_testkit::TestTree;

use crate::common::BC;

/// The commands of the recipe.
fn recipe() -> Vec<String> {
    let guide = include_str!("../../src/guide/recipes.md");
    let mut text = guide.split("## Empty an inbox of files that the archive already has");
    let block = text.nth(1).unwrap().split("```").nth(1).unwrap();
    let lines = block.lines().skip(1).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.starts_with("bc dup")));
    lines
}

fn run(t: &TestTree, line: &str) -> std::process::Output {
    let bin = Path::new(BC).parent().unwrap().display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let line = line.replace("/srv/", &format!("{}/", t.path().display()));
    t.run("sh")
        .args(["-c", &line])
        .env("PATH", path)
        .command()
        .output()
        .unwrap()
}

#[test]
fn the_inbox_loses_what_the_archive_has_and_nothing_else() {
    let t = TestTree::new();
    t.write("archive/2019/photo", "in both")
        .write("archive/twice/photo", "in both")
        .write("archive/one", "twice in the archive alone")
        .write("archive/two", "twice in the archive alone")
        .write("inbox/photo", "in both")
        .write("inbox/again/photo", "in both")
        // All that there is of these is in the inbox.
        .write("inbox/new", "only the inbox has this")
        .write("inbox/new copy", "only the inbox has this")
        .write("inbox/lone", "once");
    let lines = recipe();
    let dry = run(&t, &lines[0]);
    let steps = String::from_utf8(dry.stdout).unwrap();
    assert!(
        dry.status.success(),
        "{:?}",
        String::from_utf8_lossy(&dry.stderr)
    );
    assert_eq!(steps.lines().count(), 2, "{steps}");
    for step in steps.lines() {
        assert!(step.contains("/inbox/") && step.contains("photo"), "{step}");
        let kept = step.split(" (kept: ").nth(1).unwrap();
        assert!(
            kept.contains("/archive/") && kept.ends_with(", reference)"),
            "{step}"
        );
    }
    assert!(t.exists("inbox/photo"));
    for line in &lines[1..] {
        let done = run(&t, line);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{line}: {said}");
        for name in [
            "archive/2019/photo",
            "archive/twice/photo",
            "archive/one",
            "archive/two",
            "inbox/new",
            "inbox/new copy",
            "inbox/lone",
        ] {
            assert!(t.exists(name), "{line}: {name}: {said}");
        }
        assert!(
            !t.exists("inbox/photo") && !t.exists("inbox/again/photo"),
            "{line}: {said}"
        );
    }
}
