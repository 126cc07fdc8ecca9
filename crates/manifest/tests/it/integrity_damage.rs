//! Integrity manifests that were damaged, cut, forged or are no manifests at all.

use bc_manifest::ErrorKind;
use bc_manifest::integrity::{Policy, Reader, check_path, path_order, validate};
use proptest::prelude::*;

use super::integrity::{entries, read, written};

/// Returns a manifest of these entry lines with a right trailer, whatever their content.
fn sealed(lines: &[&str], counts: &str) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let mut bytes = Vec::from(
        &br#"{"type":"header","schema":1,"tool":"t","version":"v","algorithm":"md5","options":{}}"#
            [..],
    );
    bytes.push(b'\n');
    for line in lines {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    let hex: String = Sha256::digest(&bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    bytes.extend_from_slice(
        format!("{{\"type\":\"trailer\",{counts},\"sha256\":\"{hex}\"}}\n").as_bytes(),
    );
    bytes
}

const META: &str =
    r#""size":1,"mode":1,"uid":1,"gid":1,"mtime_ns":1,"ctime_ns":1,"ino":1,"nlink":1"#;
const MD5: &str = r#""digest":"d41d8cd98f00b204e9800998ecf8427e""#;
const ONE: &str = r#""entries":1,"files":1,"dirs":0,"bytes":1,"errors":0"#;

fn file(path: &str) -> String {
    format!(r#"{{"type":"entry","path":"{path}","kind":"file",{META},{MD5}}}"#)
}

fn kind(bytes: &[u8]) -> ErrorKind {
    validate(bytes).unwrap_err().kind()
}

proptest! {
    #[test]
    fn any_changed_byte_is_refused(entries in entries(), at: prop::sample::Index, to: u8) {
        let mut bytes = written(&entries);
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn any_missing_or_added_byte_is_refused(entries in entries(), at: prop::sample::Index, byte: u8) {
        let bytes = written(&entries);
        let at = at.index(bytes.len());
        let mut shorter = bytes.clone();
        shorter.remove(at);
        prop_assert!(read(&shorter).is_err());
        let mut longer = bytes.clone();
        longer.insert(at, byte);
        prop_assert!(read(&longer).is_err());
        prop_assert!(read(&bytes[..at]).is_err());
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn forced_reading_keeps_order_and_paths(
        entries in entries(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = written(&entries);
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        if let Ok(mut reader) = Reader::new(&bytes[..], Policy::Force) {
            let mut last: Option<Vec<u8>> = None;
            while let Some(entry) = reader.read().unwrap() {
                prop_assert!(check_path(&entry.path).is_ok());
                if let Some(last) = last {
                    prop_assert!(path_order(&last, &entry.path).is_lt());
                }
                last = Some(entry.path);
            }
            prop_assert_eq!(reader.problem_count() == 0, read(&bytes).is_ok());
        }
    }
}

#[test]
fn the_pieces_of_this_file_make_a_valid_manifest() {
    assert_eq!(
        validate(&sealed(&[&file("a")], ONE)[..]).unwrap().entries,
        1
    );
}

/// Checks that a reader whose caller vouches for the SHA-256 checks everything else.
#[test]
fn proven_bytes_are_checked_but_for_the_digest() {
    let good = sealed(&[&file("a"), &file("b")], &ONE.replace(":1", ":2"));
    let drain = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes, Policy::Strict)?.proven();
        while reader.read()?.is_some() {}
        Ok::<_, bc_manifest::Error>(*reader.counts())
    };
    assert_eq!(drain(&good).unwrap(), validate(&good[..]).unwrap());
    let text = String::from_utf8(good).unwrap();
    let altered = |from: &str, to: &str| drain(text.replace(from, to).as_bytes()).map(drop);
    altered("\"mode\":1", "\"mode\":2").unwrap();
    for (from, to) in [
        ("\"entries\":2", "\"entries\":1"),
        ("\"path\":\"b\"", "\"path\":\"a\""),
        ("\"path\":\"b\"", "\"path\":\"../b\""),
        ("\"trailer\"", "\"tailor\""),
    ] {
        assert!(altered(from, to).is_err(), "{to}");
    }
}

#[test]
fn refused_with_the_right_reason() {
    use ErrorKind::*;
    let good = sealed(&[&file("a")], ONE);
    let text = String::from_utf8(good.clone()).unwrap();
    assert_eq!(kind(b""), NotAManifest);
    assert_eq!(kind(b"{}\n"), NotAManifest);
    assert_eq!(kind(b"98ea6e4f  a\n"), NotAManifest);
    assert_eq!(
        kind(text.replace("\"header\"", "\"entry\"").as_bytes()),
        NotAManifest
    );
    assert_eq!(
        kind(text.replace("\"schema\":1", "\"schema\":2").as_bytes()),
        FutureSchema
    );
    assert_eq!(
        kind(text.replace("\"size\":1", "\"size\":2").as_bytes()),
        Altered
    );
    assert_eq!(
        kind(text.replace("\"entries\":1", "\"entries\":2").as_bytes()),
        Altered
    );
    assert_eq!(
        kind(text.replace("\"entries\":1", "\"entries\": 1").as_bytes()),
        Altered
    );
    assert_eq!(kind(&good[..good.len() - 1]), Truncated);
    assert_eq!(
        kind(
            text.rsplit_once("{\"type\":\"trailer")
                .unwrap()
                .0
                .as_bytes()
        ),
        Truncated
    );
    assert_eq!(kind(&[&good[..], b"\n"].concat()), TrailingData);
    assert_eq!(kind(&[&good[..], &good[..]].concat()), TrailingData);
}

#[test]
fn well_sealed_nonsense_is_refused_all_the_same() {
    use ErrorKind::*;
    let b64 = |path: &str, raw: &str| {
        file(path).replace(
            "\",\"kind\"",
            &format!("\",\"path_b64\":\"{raw}\",\"kind\""),
        )
    };
    for (lines, expected) in [
        (vec![file("b"), file("a")], Unsorted),
        (vec![file("a"), file("a")], Unsorted),
        (vec![file("/etc/passwd")], UnsafePath),
        (vec![file("a/../../b")], UnsafePath),
        (vec![file("..")], UnsafePath),
        (vec![file("a//b")], UnsafePath),
        (vec![file("./a")], UnsafePath),
        (vec![file("a/")], UnsafePath),
        (vec![file("")], UnsafePath),
        (vec![file("a\\u0000")], UnsafePath),
        (vec![b64("\u{fffd}", "Li4vYf8=")], Malformed), // another path than shown
        (vec![b64("a", "YQ==")], Malformed),            // encoded without need
        (vec![b64("\u{fffd}", "/x==")], Malformed),
        (vec![file("a").replace("file", "pipe")], Malformed),
        (vec![file("a").replace(r#""ino":1,"#, "")], Malformed),
        (
            vec![file("a").replace(MD5, r#""digest":"d41d""#)],
            Malformed,
        ),
        (vec![file("a").replace("d41d8", "D41D8")], Malformed),
        (vec![file("a").replace(&format!(",{MD5}"), "")], Malformed),
        (
            vec![file("a").replace(r#""uid":1"#, r#""uid":1,"uid":1"#)],
            Malformed,
        ),
        (
            vec![file("a").replace(r#""uid":1"#, r#""uid":1,"x":1,"x":1"#)],
            Malformed,
        ),
        (
            vec![file("a").replace(r#""uid":1"#, r#""uid":-1"#)],
            Malformed,
        ),
        (
            vec![file("a").replace(r#""uid":1"#, r#""uid":1.0"#)],
            Malformed,
        ),
        (
            vec![file("a").replace(r#""uid":1"#, r#""uid":null"#)],
            Malformed,
        ),
        (
            vec![file("a").replace(r#""uid":1"#, r#""uid":4294967296"#)],
            Malformed,
        ),
        (vec![file("a").replace("entry", "comment")], Malformed),
        (vec![file("a"), String::new()], Malformed),
        (vec![file("a"), "[".repeat(100_000)], Malformed),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let counts = ONE.replace("\"entries\":1", &format!("\"entries\":{}", lines.len()));
        assert_eq!(kind(&sealed(&lines, &counts)), expected, "{lines:.200?}");
    }
}

#[test]
fn force_reads_around_the_damage_and_says_so() {
    let lines = [
        &file("a"),
        "garbage",
        &file("c"),
        &file("b"),
        &file("../x"),
        &file("d"),
    ];
    let mut bytes = sealed(&lines, ONE);
    bytes.truncate(bytes.len() - 3);
    let mut reader = Reader::new(&bytes[..], Policy::Force).unwrap();
    let paths: Vec<_> = reader.by_ref().map(|entry| entry.unwrap().path).collect();
    assert_eq!(paths, [b"a", b"c", b"d"]);
    let problems: Vec<_> = reader
        .problems()
        .iter()
        .map(|e| (e.line(), e.kind()))
        .collect();
    assert_eq!(
        problems,
        [
            (3, ErrorKind::Malformed),
            (5, ErrorKind::Unsorted),
            (6, ErrorKind::UnsafePath),
            (8, ErrorKind::Truncated),
        ]
    );
    assert_eq!(reader.problem_count(), 4);
}

#[test]
fn after_a_refusal_nothing_more_comes() {
    let mut bytes = sealed(&["garbage", &file("a")], ONE);
    bytes.extend_from_slice(b"more\n");
    let mut reader = Reader::new(&bytes[..], Policy::Strict).unwrap();
    assert!(reader.read().is_err());
    assert_eq!(reader.read().unwrap(), None);
}
