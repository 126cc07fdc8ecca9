//! Conformity of the JSON that the commands write with the published schemas (`src/schema`).

use std::path::Path;

use bc_testkit::{TestTree, conforms};
use serde_json::Value;

use crate::common::Bc;

fn schema(name: &str) -> Value {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = match name {
        "hash" | "integrity" => dir.join("crates/manifest/schema"),
        _ => dir.join("src/schema"),
    };
    let path = path.join(format!("{name}-v1.schema.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Equal files, names and directories of all kinds, an unreadable name, and what has changed since
/// the lists were made.
fn tree() -> TestTree {
    let t = TestTree::new();
    for name in [
        "d/a", "d/b", "d/x/1", "d/y/1", "ref/a", "e/one/1", "e/two/1", "e/part/1",
    ] {
        t.write(name, "abc");
    }
    for name in ["d/x/2", "d/y/2", "e/one/2", "e/two/2", "e/part/2"] {
        t.write(name, "abcd");
    }
    t.write("d/alone", "alone").write("d/lost", "lost");
    t.write("e/one/3", "e")
        .write("e/two/3", "e")
        .write("e/one/4", "4")
        .write("e/two/5", "five");
    t.write_bytes(b"d/\xff", "abc");
    t.bc_line("integrity manifest -q -o m.jsonl d").go().code(0);
    t.bc_line("integrity manifest -q -o e.jsonl e").go().code(0);
    t.bc_line("hash -q -o before d").go().code(0);
    t.write("backup/lost", "lost").write("d/b", "edited");
    t.remove("d/lost");
    std::fs::rename(t.join("d/x/2"), t.join("d/x/3")).unwrap();
    t.bc_line("hash -q -o after d").go().code(0);
    t
}

/// Checks the output of a command: one document, or a value on each line. Returns the values.
fn check(t: &TestTree, name: &str, line: &str) -> Vec<Value> {
    let text = t.bc_line(line).go().text();
    let values: Vec<Value> = match serde_json::from_str(&text) {
        Ok(document) => vec![document],
        Err(_) => text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    };
    let schema = schema(name);
    assert!(!values.is_empty(), "{line}");
    for value in &values {
        assert!(conforms(&schema, value), "{line}: {value:#}");
        // The lines of bc hash may have more members than are listed.
        if name == "hash" {
            continue;
        }
        let mut broken = value.clone();
        broken["schema"] = "other".into();
        assert!(!conforms(&schema, &broken), "{line}: {broken:#}");
    }
    values
}

#[test]
fn searches() {
    let t = tree();
    check(&t, "dup-scan", "dup --format=json d gone --reference=ref");
    check(&t, "dup-scan", "dup --format=jsonl d gone --reference=ref");
    for line in [
        "dup dirs --similar=50 --format=json e d gone",
        "dup dirs --similar=50 --format=jsonl e d gone",
    ] {
        let found = check(&t, "dup-dirs", line);
        let text = format!("{found:?}");
        for word in ["similar", "same_contents", "wasted_bytes", "errno"] {
            assert!(text.contains(word), "{line}: {word}");
        }
    }
    check(
        &t,
        "dup-unique",
        "dup unique --format=json d --reference=ref",
    );
    check(
        &t,
        "dup-unique",
        "dup unique --format=jsonl d --reference=ref",
    );
    // Disks that are not there.
    // First the new tree: it could get the inode number of the other one, and be taken for that.
    t.write("f/one/1", "abc").write("f/one/2", "abcd");
    t.remove("e");
    check(
        &t,
        "dup-dirs",
        "dup dirs --format=json f --reference=e.jsonl",
    );
    check(
        &t,
        "dup-dirs",
        "dup dirs --format=jsonl f --reference=e.jsonl",
    );
    check(
        &t,
        "dup-unique",
        "dup unique --format=json f --reference=e.jsonl",
    );
}

#[test]
fn comparisons() {
    let t = tree();
    let verified = check(&t, "changes", "integrity verify --format=json d m.jsonl");
    for class in ["removed", "moved", "modified"] {
        assert!(
            verified.iter().any(|line| line["class"] == class),
            "{class}"
        );
    }
    check(&t, "changes", "integrity diff --format=json d e");
    check(&t, "hash-diff", "hash diff --format=json before after");
    let restored = check(
        &t,
        "restore",
        "integrity restore --format=json --from=backup d m.jsonl",
    );
    assert!(restored.iter().any(|line| line["type"] == "mended"));
    let missing = check(
        &t,
        "restore",
        "integrity restore --only=modified --format=json --from=backup d m.jsonl",
    );
    assert!(missing.iter().any(|line| line["type"] == "missing"));
    let refused = check(
        &t,
        "changes",
        "integrity update --max-changed=0 --format=json d m.jsonl",
    );
    let refused = &refused.last().unwrap()["refused"];
    assert!(refused["changed"].as_u64() > Some(0), "{refused}");
    assert!(refused["recorded"].as_u64() > refused["changed"].as_u64());
    assert_eq!(refused["limit"], "0");
    let updated = check(&t, "changes", "integrity update --format=json d m.jsonl");
    assert!(updated.last().unwrap().get("refused").is_none());
}

#[test]
fn lists_and_figures() {
    let t = tree();
    check(&t, "hash", "hash --format=jsonl d gone");
    t.bc_line("hash -q --metrics=m.json d gone").go();
    t.bc_line("dup -q --metrics=m2.json d").go();
    let schema = schema("metrics");
    for name in ["m.json", "m2.json"] {
        let value: Value = serde_json::from_slice(&t.read(name)).unwrap();
        assert!(conforms(&schema, &value), "{value:#}");
    }
}
