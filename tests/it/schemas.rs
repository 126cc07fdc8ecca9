//! Conformity of the JSON that the commands write with the published schemas (`src/schema`).

use std::path::Path;

use bc_testkit::{TestTree, conforms};
use serde_json::Value;

use crate::common::Bc;

pub fn schema(name: &str) -> Value {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["crates/manifest/schema", "src/schema"];
    let paths = places.map(|place| dir.join(place).join(format!("{name}-v1.schema.json")));
    let path = paths.iter().find(|path| path.exists()).unwrap();
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
    assert!(restored.iter().any(|line| line["type"] == "repaired"));
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
    let sampled = check(
        &t,
        "changes",
        "integrity verify --sample=100% --format=json d m.jsonl",
    );
    assert!(sampled.last().unwrap()["sampled_of_files"].is_u64());
}

#[test]
fn acceptance() {
    let t = tree();
    t.remove("d/a").symlink("b", "d/a");
    let line = "integrity accept --format=json d m.jsonl a alone gone x none/\u{1}";
    let accepted = check(&t, "accept", line);
    for of in ["header", "change", "refused", "summary"] {
        assert!(accepted.iter().any(|line| line["type"] == of), "{of}");
    }
    check(
        &t,
        "accept",
        "integrity accept --dry-run --format=json d m.jsonl b",
    );
}

#[test]
fn lists_and_figures() {
    let t = tree();
    check(&t, "hash", "hash --format=jsonl d gone");
    let dirs = check(&t, "hash", "hash --dirs --format=jsonl d gone");
    assert!(dirs.iter().any(|line| line["type"] == "dir"));
    for line in [
        "hash --format=json d gone",
        "hash --type=md5,crc32c --format=json d",
        "hash --dirs --format=json d gone",
    ] {
        check(&t, "hash-document", line);
    }
    check(&t, "describe", "--describe");
    t.bc_line("hash -q --metrics=m.json d gone").go();
    t.bc_line("dup -q --metrics=m2.json d").go();
    t.bc_line("integrity update -q --metrics=m3.json d m.jsonl")
        .go();
    t.bc_line("integrity verify -q --metrics=m4.json d m.jsonl")
        .go();
    let schema = schema("metrics");
    for name in ["m.json", "m2.json", "m3.json", "m4.json"] {
        let value: Value = serde_json::from_slice(&t.read(name)).unwrap();
        assert!(conforms(&schema, &value), "{value:#}");
    }
}

#[test]
fn messages() {
    let t = tree();
    let schema = schema("log");
    let mut levels = std::collections::BTreeSet::new();
    for line in [
        "hash -vv --format=json d gone",
        "copy d to gone",
        "move gone away",
        "dup prune --action=hardlink --journal=j gone",
        "integrity accept d m.jsonl a none",
        "integrity verify d none",
        "dup undo none",
        "hash --none",
    ] {
        let text = t.bc_line(&format!("{line} --log-format=json")).go();
        for line in text.error_text().lines() {
            let value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            assert!(conforms(&schema, &value), "{line}");
            levels.insert(value["level"].as_str().unwrap().to_owned());
        }
    }
    assert!(levels.len() > 1, "{levels:?}");
}

/// Each command that writes JSON, with the schema that a test above checks it with.
const WRITERS: &[(&str, &str)] = &[
    ("dup dirs", "dup-dirs"),
    ("dup scan", "dup-scan"),
    ("dup unique", "dup-unique"),
    ("hash diff", "hash-diff"),
    ("hash hash", "hash-document"),
    ("integrity accept", "accept"),
    ("integrity diff", "changes"),
    ("integrity restore", "restore"),
    ("integrity update", "changes"),
    ("integrity verify", "changes"),
];

#[test]
fn every_command_that_writes_json_has_a_schema() {
    let mut found = Vec::new();
    for (name, command) in crate::commands::described() {
        let arguments = command["arguments"].as_array().unwrap();
        let format = arguments.iter().find(|arg| arg["long"] == "format");
        let allowed = format.and_then(|format| format["allowed"].as_array());
        if allowed.is_some_and(|allowed| allowed.contains(&"json".into())) {
            found.push(name);
        }
    }
    found.sort();
    let known: Vec<&str> = WRITERS.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, known);
    for (_, name) in WRITERS {
        assert!(schema(name)["title"].is_string());
    }
}
