//! Conformity of the lines that we write with the published schemas.

use bc_manifest::integrity::{
    ContentFault, Entry, Header, Kind, Meta, Mounted, ShardHeader, ShardTrailer, Writer,
};
use bc_manifest::{Digest, ErrorRecord, Failure, ListPart, ListPartEnd, jsonl};
use bc_testkit::conforms;
use serde_json::Value;

fn schema(name: &str) -> Value {
    let path = format!("{}/schema/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn check(name: &str, bytes: &[u8], lines: usize) {
    let schema = schema(name);
    let text = std::str::from_utf8(bytes).unwrap();
    assert_eq!(text.lines().count(), lines);
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(conforms(&schema, &value), "{line}");
        let mut broken = value.clone();
        broken["type"] = "other".into();
        assert!(!conforms(&schema, &broken));
    }
}

fn failure() -> Failure {
    Failure {
        op: "open".into(),
        errno: Some(13),
        message: "no \"way\"\n".into(),
    }
}

#[test]
fn integrity_lines() {
    let mut header = Header::new("sha256", "0.1.0");
    header.created_at = Some(bc_manifest::time::format_rfc3339(0));
    header.host = Some("box".into());
    header.root = Some(b"/r\xff".to_vec());
    header.root_dev = Some(66_305);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        let mut entry = Entry::new(format!("{index}").into_bytes(), kind);
        entry.meta = Some(Meta {
            mtime_ns: -1,
            ..Meta::default()
        });
        entry.digest = Digest::from_slice(&[1; 32]).filter(|_| kind == Kind::File);
        entry.target = (kind == Kind::Symlink).then(|| b"\xfe".to_vec());
        entry.rdev = (kind == Kind::Block).then_some(7);
        entry.xattrs = (kind == Kind::Dir).then(|| {
            [
                (b"user.a".to_vec(), vec![]),
                (b"user.\xff".to_vec(), vec![1, 2]),
            ]
            .into_iter()
            .collect()
        });
        entry.verified_at = (kind == Kind::File).then_some(-5);
        entry.tried_run = (kind == Kind::File).then_some(3);
        entry.copy_stamp = (kind == Kind::File).then_some([0xa5; 16]);
        entry.tried_at = (kind == Kind::File).then_some(7);
        entry.found = (kind == Kind::File).then_some(ContentFault::Damaged);
        entry.damaged_digest = entry.found.and(entry.digest);
        entry.unproven = kind == Kind::File;
        entry.dev = Some(0);
        entry.mount = (kind == Kind::Dir).then(|| {
            Box::new(Mounted {
                source: "server:/export".into(),
                root: Some("/part".into()),
                fs_uuid: Some("6a3fe1a0-1f6a-4b6e-9d9a-0d2f3a6b7c8d".into()),
                subvolid: Some(256),
            })
        });
        writer.write(&entry).unwrap();
    }
    let mut entry = Entry::new(b"8\xff".to_vec(), Kind::File);
    entry.error = Some(failure());
    entry.size_alone = Some(7);
    writer.write(&entry).unwrap();
    let stamp = ("copy_stamp".to_owned(), Value::from("a5".repeat(16)));
    let extra = [stamp].into_iter().collect();
    let (bytes, _) = writer.finish_with(&extra).unwrap();
    check("integrity-v1.schema.json", &bytes, 10);
}

#[test]
fn lines_of_a_part() {
    let shard = ShardHeader { index: 2, of: 3 };
    let mut header = Header::new("sha256", "0.1.0");
    header.shard = shard.to_value();
    let writer = Writer::new(Vec::new(), &header).unwrap();
    let end = ShardTrailer {
        devices: vec![7],
        ..ShardTrailer::default()
    };
    let (bytes, _) = writer.finish_with(&end.to_fields()).unwrap();
    check("integrity-v1.schema.json", &bytes, 2);
    let part = ListPart {
        shard,
        job: Vec::new(),
    };
    let mut out = Vec::new();
    let header = jsonl::Header {
        schema: jsonl::SCHEMA,
        tool: "bc hash".into(),
        version: "0.1.0".into(),
        algorithms: vec!["md5".into()],
        extra: part.to_fields(),
    };
    jsonl::write_header(&mut out, &header);
    let summary = jsonl::Summary {
        files: 0,
        errors: 0,
        bytes: 0,
        wall_ns: 0,
        threads: 1,
        reader: "sync".into(),
        extra: ListPartEnd::default().to_fields(),
    };
    jsonl::write_summary(&mut out, &summary);
    check("hash-v1.schema.json", &out, 2);
}

#[test]
fn hash_lines() {
    let mut out = Vec::new();
    let header = jsonl::Header {
        schema: jsonl::SCHEMA,
        tool: "bc hash".into(),
        version: "0.1.0".into(),
        algorithms: vec!["md5".into(), "xxh3".into()],
        extra: Default::default(),
    };
    jsonl::write_header(&mut out, &header);
    jsonl::write_file(
        &mut out,
        b"a\n\xff",
        3,
        [("md5", &[1; 16][..]), ("xxh3", &[2; 8])],
    );
    jsonl::write_error(&mut out, b"b", None, &failure());
    jsonl::write_error(
        &mut out,
        b"b",
        Some(3),
        &Failure {
            errno: None,
            ..failure()
        },
    );
    for errno in [Some(13), None] {
        let failed = ErrorRecord {
            applet: "hash",
            path: b"c\xff",
            operation: "open",
            errno,
            reason: "no \"way\"\n",
        };
        failed.write_line(&mut out);
    }
    let summary = jsonl::Summary {
        files: 1,
        errors: 2,
        bytes: 3,
        wall_ns: 4,
        threads: 5,
        reader: "uring".into(),
        extra: Default::default(),
    };
    jsonl::write_summary(&mut out, &summary);
    check("hash-v1.schema.json", &out, 7);
}
