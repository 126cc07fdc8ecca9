//! Round trips of the checksum formats with any path, and any bytes at all.

use bc_manifest::{
    Digest, End, Failure, Item, Options, Reader, Record, Separator, bsd, csv, gnu, jsonl,
};
use proptest::prelude::*;

/// Returns any path that a file can have: no NUL, not empty.
fn path() -> impl Strategy<Value = Vec<u8>> {
    let odd = prop::sample::select(b"\\\n\r\"', ()=*#;{}\t \xff\xc3".to_vec());
    prop::collection::vec(prop_oneof![1u8..=255, odd], 1..40)
}

fn digest() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 32)
}

fn failure() -> impl Strategy<Value = Failure> {
    ("[a-z ]{1,8}", proptest::option::of(1..200i32), ".{0,20}").prop_map(
        |(op, errno, mut message)| {
            if let Some(errno) = errno {
                message += &format!(" (os error {errno})");
            }
            Failure { op, errno, message }
        },
    )
}

fn records(bytes: &[u8], separator: Separator) -> Vec<Record> {
    let options = Options::default().separator(separator);
    let items = Reader::new(bytes, options).unwrap().map(Result::unwrap);
    items
        .filter_map(|item| match item {
            Item::Record(record) => Some(record),
            Item::Malformed { line, why } => panic!("line {line}: {why}"),
            _ => None,
        })
        .collect()
}

fn untagged(bytes: &[u8], separator: Separator) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pair = |r: Record| (r.path, r.digests[0].1.as_bytes().to_vec());
    records(bytes, separator).into_iter().map(pair).collect()
}

proptest! {
    #[test]
    fn gnu_round_trip(files in prop::collection::vec((path(), digest()), 1..8)) {
        let mut out = Vec::new();
        for (path, digest) in &files {
            gnu::write_line(&mut out, digest, path, End::Newline);
        }
        prop_assert_eq!(untagged(&out, Separator::Auto), files.clone());
        let mut out = Vec::new();
        for (path, digest) in &files {
            gnu::write_line(&mut out, digest, path, End::Nul);
        }
        prop_assert_eq!(untagged(&out, Separator::Nul), files);
    }

    #[test]
    fn bsd_round_trip(files in prop::collection::vec((path(), digest()), 1..8)) {
        for (end, separator) in [(End::Newline, Separator::Auto), (End::Nul, Separator::Nul)] {
            let mut out = Vec::new();
            for (path, digest) in &files {
                bsd::write_line(&mut out, "SHA256", digest, path, end);
            }
            prop_assert_eq!(untagged(&out, separator), files.clone());
        }
    }

    #[test]
    fn jsonl_round_trip(
        path in path(), digest in digest(), size: u64, failure in failure(), with_size: bool,
    ) {
        let mut out = Vec::new();
        let short = &digest[..16];
        jsonl::write_file(&mut out, &path, size, [("sha256", &digest[..]), ("md5", short)]);
        let known_size = with_size.then_some(size);
        jsonl::write_error(&mut out, &path, known_size, &failure);
        let read = records(&out, Separator::Auto);
        prop_assert_eq!(&read[0].path, &path);
        prop_assert_eq!(read[0].size, Some(size));
        let digests = vec![
            (Some("sha256".into()), Digest::from_slice(&digest).unwrap()),
            (Some("md5".into()), Digest::from_slice(short).unwrap()),
        ];
        prop_assert_eq!(&read[0].digests, &digests);
        let expected =
            Record { line: 2, path, digests: vec![], size: known_size, error: Some(failure) };
        prop_assert_eq!(&read[1], &expected);
    }

    #[test]
    fn csv_round_trip(
        path in path(), digest in digest(), size: u64, failure in failure(), with_size: bool,
    ) {
        let mut out = Vec::new();
        csv::write_header(&mut out, &["sha256", "md5"]);
        csv::write_file(&mut out, &path, size, [&digest[..], &digest[..16]]);
        let known_size = with_size.then_some(size);
        csv::write_error(&mut out, &path, known_size, 2, &failure);
        let read = records(&out, Separator::Newline);
        prop_assert_eq!(read.len(), 2);
        prop_assert_eq!((&read[0].path, read[0].size), (&path, Some(size)));
        prop_assert_eq!(read[0].digests.len(), 2);
        prop_assert_eq!((&read[1].path, read[1].size), (&path, known_size));
        prop_assert_eq!(read[1].error.as_ref(), Some(&failure));
    }

    #[test]
    fn any_bytes_are_read_to_the_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for separator in [Separator::Auto, Separator::Newline, Separator::Nul] {
            let reader = Reader::new(&bytes[..], Options::default().separator(separator));
            for item in reader.unwrap() {
                let Ok(item) = item else { break };
                if let Item::Record(record) = item {
                    prop_assert!(!record.digests.is_empty() || record.error.is_some());
                }
            }
        }
    }

    /// Checks text made of the formats' elements, which gets deeper into the parsers.
    #[test]
    fn any_likely_text_is_read_to_the_end(
        parts in prop::collection::vec(prop::sample::select(vec![
            "d41d8cd98f00b204e9800998ecf8427e", "MD5 (", "MD5(", ")", " = ", "  ", " *", "\\", "\n",
            "\r\n", "a", "{\"type\":\"file\",\"path\":\"", "\"", "{\"type\":\"header\"", ",", "path,size,md5\n",
            "\"size\":1", "\"digests\":{\"md5\":\"", "}", "\0", "#", "XXH3_", "\u{feff}", "é",
        ]), 0..24),
    ) {
        let text = parts.concat();
        for item in Reader::new(text.as_bytes(), Options::default()).unwrap() {
            if item.is_err() {
                break;
            }
        }
    }

    /// Checks that one changed byte in a line never yields the same path with the same digest,
    /// unless it only changed the case of a digit, or one blank for another.
    #[test]
    fn a_changed_byte_shows(path in path(), digest in digest(), at: prop::sample::Index, to: u8) {
        let mut line = Vec::new();
        gnu::write_line(&mut line, &digest, &path, End::Newline);
        let at = at.index(line.len() - 1);
        let before = line[at];
        line[at] = to;
        prop_assume!(before != to);
        let options = Options::default().separator(Separator::Newline).lengths(vec![32]);
        for item in Reader::new(&line[..], options).unwrap() {
            if let Item::Record(read) = item.unwrap() {
                let same = read.path == path && read.digests[0].1.as_bytes() == digest;
                let marker = matches!((before, to), (b' ', b'*' | b'\t'));
                prop_assert!(!same || before.eq_ignore_ascii_case(&to) || marker);
            }
        }
    }
}

#[test]
fn jsonl_header_and_summary_round_trip() {
    let extra = serde_json::from_str(r#"{"roots":["a"],"later":{"x":[1,null]}}"#).unwrap();
    let header = jsonl::Header {
        schema: jsonl::SCHEMA,
        tool: "bc hash".into(),
        version: "0.1.0".into(),
        algorithms: vec!["sha256".into()],
        extra,
    };
    let summary = jsonl::Summary {
        files: 1,
        errors: 2,
        bytes: u64::MAX,
        wall_ns: 4,
        threads: 5,
        reader: "sync".into(),
        extra: Default::default(),
    };
    let mut out = Vec::new();
    jsonl::write_header(&mut out, &header);
    jsonl::write_summary(&mut out, &summary);
    assert!(out.starts_with(br#"{"type":"header","schema":1,"tool":"bc hash","version":"0.1.0","#));
    let items: Vec<Item> = Reader::new(&out[..], Options::default())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(items, [Item::Header(header), Item::Summary(summary)]);
}

#[test]
fn jsonl_refuses_what_could_mislead() {
    for line in [
        r#"{"type":"file","path":"a"}"#,
        r#"{"type":"file","path":"a","digests":{}}"#,
        r#"{"type":"file","digests":{"md5":"d41d8cd98f00b204e9800998ecf8427e"}}"#,
        r#"{"type":"file","path":"a","digests":{"md5":"d41d"}}"#,
        r#"{"type":"file","path":"a","digests":{"x":"d4","x":"d4"}}"#,
        r#"{"type":"file","path":"a","path":"b","digests":{"x":"d4"}}"#,
        r#"{"type":"file","path":"a\u0000","digests":{"x":"d4"}}"#,
        r#"{"type":"file","path":"a","path_b64":"!","digests":{"x":"d4"}}"#,
        r#"{"type":"file","path":"a","size":-1,"digests":{"x":"d4"}}"#,
        r#"{"path":"a","digests":{"x":"d4"}}"#,
        r#"{"#,
    ] {
        let item = Reader::new(line.as_bytes(), Options::default())
            .unwrap()
            .read()
            .unwrap();
        assert!(
            matches!(item, Some(Item::Malformed { line: 1, .. })),
            "{line}: {item:?}"
        );
    }
}
