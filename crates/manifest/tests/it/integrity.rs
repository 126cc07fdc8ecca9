//! Integrity manifests: round trips of everything an entry can hold, and rules of the format.

use bc_manifest::integrity::{
    Entry, Header, Kind, Meta, Policy, Reader, Writer, path_order, validate,
};
use bc_manifest::{Digest, Error, ErrorKind, Failure};
use proptest::prelude::*;
use serde_json::Map;

pub(crate) fn component() -> impl Strategy<Value = Vec<u8>> {
    let odd = prop::sample::select(b"\\\n\r\"\x1b\x7f\xff\xc3.".to_vec());
    let byte = prop_oneof![1u8..=255, odd].prop_filter("no slash", |&b| b != b'/');
    prop::collection::vec(byte, 1..12).prop_filter("no dots", |c| c != b"." && c != b"..")
}

pub(crate) fn path() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(component(), 1..4).prop_map(|parts| parts.join(&b'/'))
}

fn meta() -> impl Strategy<Value = Meta> {
    any::<(u64, u32, u32, u32, i64, i64, u64, u64)>().prop_map(
        |(size, mode, uid, gid, mtime_ns, ctime_ns, ino, nlink)| Meta {
            size,
            mode,
            uid,
            gid,
            mtime_ns,
            ctime_ns,
            ino,
            nlink,
        },
    )
}

fn failure() -> impl Strategy<Value = Failure> {
    (".{0,6}", any::<Option<i32>>(), ".{0,12}").prop_map(|(op, errno, message)| Failure {
        op,
        errno,
        message,
    })
}

pub(crate) fn entry() -> impl Strategy<Value = Entry> {
    let xattrs = prop::collection::btree_map(component(), any::<Vec<u8>>(), 0..3);
    let target = prop::collection::vec(1u8..=255, 0..12);
    let options = prop::option::of(xattrs);
    let parts = (
        path(),
        prop::sample::select(&Kind::ALL[..]),
        prop::option::of(meta()),
        any::<[u8; 32]>(),
        target,
    );
    let more = (
        options,
        any::<Option<u64>>(),
        any::<Option<i64>>(),
        prop::option::of(failure()),
        any::<bool>(),
    );
    (parts, more).prop_map(
        |((path, kind, meta, digest, target), (xattrs, rdev, verified_at, error, extra))| {
            let mut entry = Entry::new(path, kind);
            entry.error = match (error, meta) {
                (None, None) => Some(Failure {
                    op: "stat".into(),
                    errno: Some(5),
                    message: "bad".into(),
                }),
                (error, _) => error,
            };
            entry.meta = meta;
            entry.digest =
                Digest::from_slice(&digest).filter(|_| kind == Kind::File && entry.error.is_none());
            entry.target = (kind == Kind::Symlink).then_some(target);
            entry.rdev = rdev;
            entry.xattrs = xattrs;
            entry.verified_at = verified_at;
            if extra {
                entry
                    .extra
                    .insert("later\n".into(), serde_json::json!([1, {"a": null}]));
            }
            entry
        },
    )
}

pub(crate) fn entries() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec(entry(), 0..6).prop_map(|mut entries| {
        entries.sort_by(|a, b| path_order(&a.path, &b.path));
        entries.dedup_by(|a, b| a.path == b.path);
        entries
    })
}

pub(crate) fn written(entries: &[Entry]) -> Vec<u8> {
    let mut header = Header::new("sha256", "0.1.0");
    header.root = Some(b"tree\xff".to_vec());
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for entry in entries {
        writer.write(entry).unwrap();
    }
    writer.finish().unwrap().0
}

pub(crate) fn read(bytes: &[u8]) -> Result<(Header, Vec<Entry>), Error> {
    let mut reader = Reader::new(bytes, Policy::Strict)?;
    let entries = reader.by_ref().collect::<Result<_, _>>()?;
    Ok((reader.header().clone(), entries))
}

proptest! {
    #[test]
    fn round_trip(entries in entries()) {
        let bytes = written(&entries);
        let (header, read) = read(&bytes).unwrap();
        prop_assert_eq!(header.root.as_deref(), Some(&b"tree\xff"[..]));
        prop_assert_eq!(&read, &entries);
        // And once more: what was read is written again byte for byte.
        prop_assert_eq!(written(&read), bytes);
    }
}

#[test]
fn header_round_trip_keeps_unknown_fields() {
    let mut header = Header::new("blake3", "9.9");
    header.created_at = Some("2026-11-21T02:51:37Z".into());
    header.host = Some("höst".into());
    header.root = Some(b"/a b".to_vec());
    header.root_dev = Some(u64::MAX);
    header.options = serde_json::from_str(r#"{"hidden":true,"exclude":["*.o"]}"#).unwrap();
    header.extra = serde_json::from_str(r#"{"later":{"deep":[1,2]}}"#).unwrap();
    let bytes = Writer::new(Vec::new(), &header)
        .unwrap()
        .finish()
        .unwrap()
        .0;
    assert_eq!(read(&bytes).unwrap().0, header);
    header.extra.insert("schema".into(), 2.into());
    assert_eq!(
        Writer::new(Vec::new(), &header).err().map(|e| e.kind()),
        Some(ErrorKind::Malformed)
    );
}

#[test]
fn the_line_is_the_documented_one() {
    let mut entry = Entry::new(b"a/b".to_vec(), Kind::File);
    entry.meta = Some(Meta {
        size: 3,
        mode: 33188,
        uid: 1,
        gid: 2,
        mtime_ns: -1,
        ctime_ns: 4,
        ino: 5,
        nlink: 6,
    });
    entry.digest = Digest::from_slice(&[0xab; 32]);
    let bytes = written(&[entry]);
    let text = String::from_utf8(bytes).unwrap();
    let expected = format!(
        r#"{{"type":"entry","path":"a/b","kind":"file","size":3,"mode":33188,"uid":1,"gid":2,"mtime_ns":-1,"ctime_ns":4,"ino":5,"nlink":6,"digest":"{}"}}"#,
        "ab".repeat(32)
    );
    assert_eq!(text.lines().nth(1), Some(&*expected));
    let last = text.lines().last().unwrap();
    assert!(
        last.starts_with(
            r#"{"type":"trailer","entries":1,"files":1,"dirs":0,"bytes":3,"errors":0,"sha256":""#
        ),
        "{last}"
    );
}

#[test]
fn counts_add_up() {
    let dir = |path: &[u8]| Entry {
        meta: Some(Meta {
            size: 4096,
            ..Meta::default()
        }),
        ..Entry::new(path.to_vec(), Kind::Dir)
    };
    let mut file = Entry::new(b"f".to_vec(), Kind::File);
    file.meta = Some(Meta {
        size: 10,
        ..Meta::default()
    });
    file.digest = Digest::from_slice(&[0; 32]);
    let mut lost = Entry::new(b"g".to_vec(), Kind::File);
    lost.error = Some(Failure {
        op: "stat".into(),
        errno: Some(5),
        message: "i/o error".into(),
    });
    let trailer = validate(&written(&[dir(b"."), dir(b"-d"), file, lost])[..]).unwrap();
    let counted = (
        trailer.entries,
        trailer.files,
        trailer.dirs,
        trailer.bytes,
        trailer.errors,
    );
    assert_eq!(counted, (4, 2, 2, 10, 1));
}

#[test]
fn the_writer_refuses_what_the_reader_would() {
    let good = |path: &[u8]| Entry {
        meta: Some(Meta::default()),
        ..Entry::new(path.to_vec(), Kind::Dir)
    };
    let file = |path: &[u8]| Entry {
        kind: Kind::File,
        ..good(path)
    };
    let cases = [
        (vec![good(b"b"), good(b"a")], ErrorKind::Unsorted),
        (vec![good(b"a"), good(b"a")], ErrorKind::Unsorted),
        (vec![good(b"a"), good(b".")], ErrorKind::Unsorted),
        (vec![good(b"/a")], ErrorKind::UnsafePath),
        (vec![good(b"a/../b")], ErrorKind::UnsafePath),
        (vec![good(b"")], ErrorKind::UnsafePath),
        (vec![file(b"a")], ErrorKind::Malformed),
        (
            vec![Entry::new(b"a".to_vec(), Kind::Dir)],
            ErrorKind::Malformed,
        ),
        (
            vec![Entry {
                digest: Digest::from_slice(&[1; 20]),
                ..file(b"a")
            }],
            ErrorKind::Malformed,
        ),
        (
            vec![Entry {
                digest: Digest::from_slice(&[1; 32]),
                ..good(b"a")
            }],
            ErrorKind::Malformed,
        ),
        (
            vec![Entry {
                kind: Kind::Symlink,
                ..good(b"a")
            }],
            ErrorKind::Malformed,
        ),
        (
            vec![Entry {
                target: Some(b"x".to_vec()),
                ..good(b"a")
            }],
            ErrorKind::Malformed,
        ),
        (
            vec![Entry {
                extra: Map::from_iter([("uid".to_owned(), 1.into())]),
                ..good(b"a")
            }],
            ErrorKind::Malformed,
        ),
    ];
    for (entries, kind) in cases {
        let mut writer = Writer::new(Vec::new(), &Header::new("sha256", "0.1.0")).unwrap();
        let result = entries.iter().try_for_each(|entry| writer.write(entry));
        assert_eq!(result.unwrap_err().kind(), kind, "{entries:?}");
    }
}
