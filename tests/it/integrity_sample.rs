//! `bc integrity verify --sample`: a random part of the contents, and all metadata.

use bc_testkit::{Outcome, TestTree};
use serde_json::Value;

use crate::common::Bc;
use crate::integrity_update::{record, rename};

fn verify(t: &TestTree, m: &str, options: &str) -> Outcome {
    t.bc_line(&format!("integrity verify {options} . {m}")).go()
}

/// The summary of a verification with these options.
fn summary(t: &TestTree, m: &str, options: &str) -> Value {
    let text = verify(t, m, &format!("--format=json {options}")).text();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn number(summary: &Value, key: &str) -> u64 {
    summary[key].as_u64().unwrap()
}

#[test]
fn a_part_is_read_and_all_is_counted() {
    let t = TestTree::new();
    for file in 0..200 {
        t.write(format!("d{}/{file}", file % 7), vec![b'x'; 999]);
    }
    t.hard_link("d0/0", "again");
    let m = record(&t);
    for _ in 0..8 {
        let found = summary(&t, &m, "--sample=10%");
        // One has two names.
        assert_eq!(number(&found, "sampled_of_files"), 201);
        assert_eq!(number(&found, "sampled_of_bytes"), 199_800);
        let files = number(&found, "bytes_read") / 999;
        assert!((20..=21).contains(&files), "{found}");
        assert!(
            (files..=files + 1).contains(&number(&found, "files_read")),
            "{found}"
        );
        assert_eq!(number(&found, "ok"), found["new_entries"].as_u64().unwrap());
        assert_eq!(found["result"], "same");
    }
    let text = verify(&t, &m, "--sample=10%").error_text();
    assert!(
        text.contains(" of 201 files read, ") && text.contains(" of 195.1 KiB: a random sample"),
        "{text}"
    );
    verify(&t, &m, "--sample=10% --quiet").code(0).stderr_is("");
    let whole = summary(&t, &m, "");
    assert!(whole["sampled_of_files"].is_null());
    let all = summary(&t, &m, "--sample=100%");
    assert_eq!(number(&all, "files_read"), number(&whole, "files_read"));
    assert_eq!(number(&all, "files_read"), 201);
}

/// What the metadata show is found whatever the sample, and judged by its content.
#[test]
fn what_looks_changed_is_read_in_any_case() {
    let t = TestTree::new();
    for name in ["edited", "moved", "gone", "mode", "turned", "d/1", "d/2"] {
        t.write(name, format!("content of {name}"));
    }
    let m = record(&t);
    t.write("edited", "other")
        .write("new", "new")
        .remove("gone");
    rename(&t, "moved", "d/moved");
    rename(&t, "d", "e");
    t.mode("mode", 0o600);
    t.remove("turned").symlink("edited", "turned");
    // So little that by chance nothing else is read.
    let sampled = verify(&t, &m, "--sample=0.000001%").code(1).text();
    assert_eq!(sampled, verify(&t, &m, "").text());
}

/// Damage without a trace in the metadata is found where it is read, and only there.
#[test]
fn damage_is_found_where_it_is_read() {
    let t = TestTree::new();
    t.write("a", "first").write("b", "other");
    let m = record(&t);
    // A record of other content: as if the disk had changed the file.
    let sum = |text: &str| t.bc_line("hash -").stdin(text).go().text()[..64].to_owned();
    let text = std::fs::read_to_string(&m).unwrap();
    let changed = text.replace(&sum("first"), &sum("as it was"));
    std::fs::write(&m, crate::integrity_parts::sealed(&changed)).unwrap();
    verify(&t, &m, "--sample=100%").code(3).stdout_has("!! a: ");
    let mut codes = std::collections::BTreeSet::new();
    while codes.len() < 2 {
        codes.insert(verify(&t, &m, "--sample=50%").status.code());
    }
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), [Some(0), Some(3)]);
    // An update notes it: from then on it is read each time.
    t.bc_line(&format!("integrity update --reread=100% . {m}"))
        .go()
        .code(3);
    for _ in 0..5 {
        verify(&t, &m, "--sample=0.000001%")
            .code(3)
            .stdout_has("!! a: ");
    }
}

/// One file has nearly all bytes: it is read as a whole or not at all.
#[test]
fn one_huge_file() {
    let t = TestTree::new();
    let huge = std::fs::File::create(t.join("huge")).unwrap();
    huge.set_len(64 << 20).unwrap();
    for file in 0..20 {
        t.write(format!("{file}"), "small");
    }
    let m = record(&t);
    let mut seen = [0, 0];
    // Each of both comes with a probability of a half.
    for _ in 0..200 {
        let found = summary(&t, &m, "--sample=50%");
        let bytes = number(&found, "bytes_read");
        let has_huge = bytes >= 64 << 20;
        assert!(has_huge || bytes <= 100, "{found}");
        seen[usize::from(has_huge)] += 1;
        if seen.iter().all(|count| *count > 0) {
            return;
        }
    }
    panic!("always the same: {seen:?}");
}

#[test]
fn parts_that_are_none_are_refused() {
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    for (part, why) in [
        ("0%", "nothing would be read"),
        ("0.0", "nothing would be read"),
        ("101%", "is no part of all files"),
        ("-5%", "is no part of all files"),
        ("5", "is no part of all files"),
        ("20G", "is no part of all files"),
        ("x%", "is no part of all files"),
        ("", "is no part of all files"),
    ] {
        verify(&t, &m, &format!("--sample={part}"))
            .code(2)
            .stdout_is("")
            .stderr_has(why);
    }
    verify(&t, &m, "--sample=5% --mode=meta")
        .code(2)
        .stderr_has("--sample: --mode=meta reads no content\n");
    verify(&t, &m, "--sample=100% --mode=content").code(0);
    let page = verify(&t, &m, "--sample=100% --format=html").text();
    assert!(page.contains("a random sample"), "{page}");
    let whole = verify(&t, &m, "--format=html").text();
    assert!(!whole.contains("a random sample"));
}
