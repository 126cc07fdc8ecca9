//! Odd manifests in `fixtures/manifests` and damaged ones in `fixtures/corrupt`, which links in
//! `tests` lead to, with the expected result of each.

use bc_manifest::integrity::{self, Policy, Writer, validate};
use bc_manifest::{ErrorKind, Format, Item, Options, Reader, Separator};

const HI: &str = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4";

fn data(name: &str) -> Vec<u8> {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let whole = format!("{tests}/manifests/{name}");
    std::fs::read(&whole)
        .or_else(|_| std::fs::read(format!("{tests}/corrupt/{name}")))
        .unwrap_or_else(|e| panic!("{whole} or in corrupt: {e}"))
}

/// Returns the paths of the records, the malformed lines, and the number of comments.
fn read(bytes: &[u8], options: Options) -> (Vec<String>, Vec<u64>, usize) {
    let (mut paths, mut malformed, mut comments) = (Vec::new(), Vec::new(), 0);
    for item in Reader::new(bytes, options).unwrap() {
        match item.unwrap() {
            Item::Record(record) => paths.push(record.path.escape_ascii().to_string()),
            Item::Malformed { line, .. } => malformed.push(line),
            Item::Comment { .. } => comments += 1,
            other => panic!("{other:?}"),
        }
    }
    (paths, malformed, comments)
}

fn sha256(name: &str) -> (Vec<String>, Vec<u64>, usize) {
    read(&data(name), Options::default().lengths(vec![32]))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn empty() {
    assert_eq!(sha256("empty.txt"), (vec![], vec![], 0));
    assert_eq!(
        Reader::new(&b""[..], Options::default()).unwrap().format(),
        None
    );
}

#[test]
fn truncated() {
    assert_eq!(
        sha256("truncated.sha256"),
        (names(&["one", "two"]), vec![3], 0)
    );
    assert_eq!(
        sha256("no-final-newline.sha256"),
        (names(&["one", "two"]), vec![], 0)
    );
}

#[test]
fn binary() {
    let (paths, malformed, _) = sha256("binary.bin");
    assert!(paths.is_empty() && !malformed.is_empty());
}

#[test]
fn crlf_comments_and_blank_lines() {
    assert_eq!(
        sha256("crlf.sha256"),
        (names(&["one", "dir/two words"]), vec![], 1)
    );
    assert_eq!(sha256("comments.sha256"), (names(&["one"]), vec![], 2));
}

#[test]
fn mixed_algorithms() {
    let bytes = data("mixed.txt");
    let mut seen = Vec::new();
    for item in Reader::new(&bytes[..], Options::default()).unwrap() {
        let Item::Record(record) = item.unwrap() else {
            panic!()
        };
        let (name, digest) = record.digests[0].clone();
        let name = name.map_or("-".to_owned(), String::from);
        seen.push((
            record.path.escape_ascii().to_string(),
            name,
            digest.as_bytes().len(),
        ));
    }
    let expected = [
        ("one", "md5", 16),
        ("two", "-", 20),
        ("three", "sha512", 64),
        ("fo\\nur", "sha256", 32),
        ("five", "xxh3", 8),
        ("six", "blake2b-128", 16),
        ("seven", "-", 32),
    ];
    assert_eq!(
        seen,
        expected.map(|(p, n, l)| (p.to_owned(), n.to_owned(), l))
    );
}

#[test]
fn wrong_lengths_are_malformed() {
    assert_eq!(
        sha256("wrong-length.sha256"),
        (names(&["one"]), vec![2, 3, 4, 5], 0)
    );
}

#[test]
fn clearsigned_counts_its_armour() {
    let (paths, malformed, _) = sha256("clearsigned.asc");
    assert_eq!(paths, names(&["one", "two"]));
    assert_eq!(malformed, [1, 2, 6, 8, 9, 10]);
}

#[test]
fn nul_separated_is_noticed() {
    let expected = (names(&["one", "two\\nlines\\\\"]), vec![], 0);
    assert_eq!(sha256("nul-separated.sha256"), expected);
    let separator = Separator::Nul;
    let reported = read(
        &data("nul-separated.sha256"),
        Options::default().separator(separator),
    );
    assert_eq!(reported, expected);
    let separator = Separator::Newline;
    let wrong = read(
        &data("nul-separated.sha256"),
        Options::default().separator(separator),
    );
    assert_eq!(wrong, (vec![], vec![1, 2], 0));
}

#[test]
fn one_nul_in_a_text_damages_one_line() {
    let text = format!("{HI}  one\n{HI}  t\0wo\n{HI}  three\n");
    let read = read(text.as_bytes(), Options::default());
    assert_eq!(read, (names(&["one", "three"]), vec![2], 0));
}

#[test]
fn jsonl_with_every_type_of_line() {
    let bytes = data("hash.jsonl");
    let mut seen = String::new();
    for item in Reader::new(&bytes[..], Options::default()).unwrap() {
        seen.push(match item.unwrap() {
            Item::Header(_) => 'h',
            Item::Record(record) if record.error.is_some() => 'e',
            Item::Record(_) => 'r',
            Item::Comment { .. } => 'c',
            Item::Summary(_) => 's',
            _ => '?',
        });
    }
    assert_eq!(seen, "hrrecs");
}

/// Reads manifests made by another program: the format's description must be enough to write them.
#[test]
fn integrity_manifest_of_another_writer() {
    // From before machines, places and devices were recorded.
    let trailer = validate(&data("integrity.jsonl")[..]).unwrap();
    assert_eq!((trailer.entries, trailer.errors), (5, 1));
    let bytes = data("integrity-places.jsonl");
    let trailer = validate(&bytes[..]).unwrap();
    assert_eq!((trailer.entries, trailer.errors), (6, 1));
    let reader = integrity::Reader::new(&bytes[..], Policy::Strict).unwrap();
    let mut writer = Writer::new(Vec::new(), reader.header()).unwrap();
    for entry in reader {
        writer.write(&entry.unwrap()).unwrap();
    }
    assert!(writer.finish().unwrap().0 == bytes);
    let error = validate(&data("integrity-truncated.jsonl")[..]).unwrap_err();
    assert_eq!((error.kind(), error.line()), (ErrorKind::Truncated, 7));
}

/// Checks that keys of a later version are ignored in every line, the trailer's too.
#[test]
fn keys_that_are_not_known_are_passed_over() {
    let bytes = data("integrity-places.jsonl");
    let text = String::from_utf8(bytes).unwrap();
    let end = text.rfind("\"}").unwrap();
    let trailer = format!("{}\",\"directories\":[1,{{\"a\":null}}]}}\n", &text[..end]);
    assert_eq!(validate(trailer.as_bytes()).unwrap().entries, 6);
    for wrong in [
        format!("{}\",\"directories\"}}\n", &text[..end]),
        format!("{}\" }}\n", &text[..end]),
        format!("{}\",\"a\":1}} \n", &text[..end]),
        text.replace("\"entries\":6", "\"entries\":7"),
    ] {
        let error = validate(wrong.as_bytes()).unwrap_err();
        let refused = [ErrorKind::Altered, ErrorKind::Malformed];
        assert!(refused.contains(&error.kind()), "{error}: {wrong}");
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let bytes = data("future.jsonl");
    let error = Reader::new(&bytes[..], Options::default())
        .unwrap()
        .read()
        .unwrap_err();
    assert_eq!((error.kind(), error.line()), (ErrorKind::FutureSchema, 1));
}

#[test]
fn csv_with_quotes_errors_and_raw_bytes() {
    let bytes = data("hash.csv");
    let mut reader = Reader::new(&bytes[..], Options::default()).unwrap();
    let mut paths = Vec::new();
    let mut lines = Vec::new();
    let mut last = None;
    while let Some(item) = reader.read().unwrap() {
        match item {
            Item::Record(record) => {
                lines.push(record.line);
                assert_eq!(record.digests.is_empty(), record.error.is_some());
                paths.push(record.path);
            }
            other => last = Some(other),
        }
    }
    assert_eq!(reader.format(), Some(Format::Csv));
    assert_eq!(
        paths,
        [
            &b"one"[..],
            b"with \"quotes\", and\nline",
            b"closed",
            b"\xff"
        ]
    );
    assert_eq!(lines, [2, 3, 5, 6]);
    assert!(
        matches!(last, Some(Item::Malformed { line: 7, .. })),
        "{last:?}"
    );
}

#[test]
fn overlong_lines_are_skipped() {
    let mut bytes = vec![b'x'; bc_manifest::MAX_LINE + 1];
    bytes.extend_from_slice(format!("\n{HI}  one\n").as_bytes());
    assert_eq!(
        read(&bytes, Options::default()),
        (names(&["one"]), vec![1], 0)
    );
    // Exactly at the limit it is still a line.
    let path = "p".repeat(bc_manifest::MAX_LINE - HI.len() - 2);
    let (paths, malformed, _) = read(format!("{HI}  {path}\n").as_bytes(), Options::default());
    assert_eq!((paths, malformed), (vec![path], vec![]));
}
