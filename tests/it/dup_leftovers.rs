//! What killed runs left is removed where a run comes by, but nothing of a reference's is, nothing to
//! which only a link within the destination leads, and nothing for its name alone.

use bc_testkit::TestTree;
use rustix::io::Errno;

use crate::common::Bc;

/// A name as a run gives it; no process has that number.
const PART: &str = ".bc-dup.4194305.7.0.part";

#[test]
fn nothing_of_a_reference_is_cleared_away() {
    for (reference, link) in [("ref", true), ("ref", false), ("in/PART", false)] {
        let t = TestTree::new();
        t.write("ref/a", "same").write("in/x", "same");
        let left = match reference {
            "ref" => format!("ref/in/{PART}"),
            _ => format!("in/{PART}"),
        };
        t.write(&left, "sam").dir("D");
        match link {
            true => t.symlink("../ref/in", "D/in"),
            false => t.dir("D/in"),
        };
        let reference = format!("--reference={}", reference.replace("PART", PART));
        for action in ["move:D", "delete"] {
            for dry in ["--dry-run", "--yes"] {
                let action = format!("--action={action}");
                let run = t
                    .bc()
                    .args(["dup", "prune", &action, dry, &reference, "--journal=../j"])
                    .args(["in", "ref/a"])
                    .go();
                assert!(!run.text().contains("remove "), "{action} {dry}: {run:?}");
                assert_eq!(t.read(&left), b"sam", "{action} {dry}");
            }
        }
    }
}

#[test]
fn links_within_the_destination_lead_nowhere() {
    let t = TestTree::new();
    t.write("a", "same").write("in/x", "same").dir("D");
    t.write(format!("else/{PART}"), "sam")
        .symlink("../else", "D/in");
    t.bc_line("dup prune --action=move:D --keep=first --yes --journal=../j a in")
        .go()
        .code(1)
        .stderr_has(Errno::LOOP.to_string());
    assert!(t.exists("in/x"));
    assert_eq!(t.read(format!("else/{PART}")), b"sam");
    // What lies where the move goes is removed.
    t.remove("D/in").write(format!("D/in/{PART}"), "sam");
    t.bc_line("dup prune --action=move:D --keep=first --yes --journal=../j a in")
        .go()
        .code(0)
        .stdout_has("remove ");
    assert!(!t.exists(format!("D/in/{PART}")) && t.exists("D/in/x"));
}

#[test]
fn nothing_goes_for_its_name() {
    let t = TestTree::new();
    t.write("in/a", "same").write("in/x", "same");
    t.write(format!("in/{PART}"), "mine");
    let warning = format!("{PART}, left over by a run that was killed: skipped: kept because");
    for dry in ["--dry-run", "--yes"] {
        t.bc_line(&format!(
            "dup prune --action=delete --keep=first {dry} --journal=../j in"
        ))
        .go()
        .code(0)
        .stderr_has(&warning);
        assert_eq!(t.read(format!("in/{PART}")), b"mine");
    }
    for dry in ["--dry-run", ""] {
        t.bc_line(&format!("dup undo {dry} ../j"))
            .go()
            .code(0)
            .stderr_has(format!("{PART}: kept because"));
        assert_eq!(t.read(format!("in/{PART}")), b"mine");
    }
}

/// Another process had put them in the place of a file right before a run set that aside and was
/// killed.
#[test]
fn what_is_not_a_run_s_stays_and_is_named() {
    const LINK: &str = ".bc-dup.4194305.7.0.tmp";
    const FILE: &str = ".bc-dup.4194305.7.1.tmp";
    let t = TestTree::new();
    t.write("in/a", "same").write("in/x", "same");
    t.symlink("else/where", format!("in/{LINK}"));
    t.write(format!("in/{FILE}"), "their newest save");
    let prune = "dup prune --action=delete --keep=first --journal=../j in";
    for line in [
        &format!("{prune} --dry-run"),
        &format!("{prune} --yes"),
        "dup undo --dry-run ../j",
        "dup undo ../j",
    ] {
        let run = t.bc_line(line).go();
        run.code(0);
        for name in [LINK, FILE] {
            let named = String::from_utf8_lossy(&run.stderr).matches(name).count();
            assert_eq!(named, 1, "{line}: {run:?}");
        }
        run.stderr_has("kept because another process may have put it");
        assert_eq!(t.read(format!("in/{FILE}")), b"their newest save");
        let text = std::fs::read_link(t.join(format!("in/{LINK}"))).unwrap();
        assert_eq!(text.to_str(), Some("else/where"), "{line}");
    }
}
