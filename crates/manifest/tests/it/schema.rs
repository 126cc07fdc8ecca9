//! Conformity of the lines that we write with the published schemas. A checker for just the
//! keywords that those use: it refuses any other.

use bc_manifest::integrity::{
    ContentFault, Entry, Header, Kind, Meta, Mounted, ShardHeader, ShardTrailer, Writer,
};
use bc_manifest::{Digest, ErrorRecord, Failure, ListPart, ListPartEnd, jsonl};
use serde_json::Value;

fn schema(name: &str) -> Value {
    let path = format!("{}/schema/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// True if `value` conforms to `schema`, a part of `root`.
fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let object = schema.as_object().expect("a schema is an object");
    object.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "title" | "$defs" => true,
        "$ref" => {
            let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
            valid(root, &root["$defs"][name], value)
        }
        "oneOf" => {
            let fits = rule
                .as_array()
                .unwrap()
                .iter()
                .filter(|one| valid(root, one, value));
            fits.count() == 1
        }
        "const" => rule == value,
        "enum" => rule.as_array().unwrap().contains(value),
        "type" => match rule {
            Value::Array(any) => any.iter().any(|one| is_of_type(one, value)),
            one => is_of_type(one, value),
        },
        "minimum" => value.as_i64().is_none_or(|v| v >= rule.as_i64().unwrap()),
        "required" => value.as_object().is_none_or(|fields| {
            let keys = rule.as_array().unwrap().iter();
            keys.map(|key| key.as_str().unwrap())
                .all(|key| fields.contains_key(key))
        }),
        "properties" => value.as_object().is_none_or(|fields| {
            fields
                .iter()
                .all(|(key, field)| rule.get(key).is_none_or(|rule| valid(root, rule, field)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|fields| {
            let known = schema.get("properties");
            fields
                .iter()
                .filter(|(key, _)| known.is_none_or(|k| k.get(key).is_none()))
                .all(|(_, field)| match rule {
                    Value::Bool(allowed) => *allowed,
                    rule => valid(root, rule, field),
                })
        }),
        "items" => value
            .as_array()
            .unwrap()
            .iter()
            .all(|item| valid(root, rule, item)),
        "pattern" => matches(rule.as_str().unwrap(), value.as_str().unwrap_or_default()),
        other => panic!("keyword {other}"),
    })
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        other => panic!("type {other}"),
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern {
        "^([0-9a-f]{2})+$" => {
            Digest::from_hex(text.as_bytes()).is_some() && text == text.to_lowercase()
        }
        "^[0-9a-f]{32}$" => {
            let digest = Digest::from_lower_hex(text.as_bytes());
            digest.is_some_and(|digest| digest.as_bytes().len() == 16)
        }
        "^[A-Za-z0-9+/]*={0,2}$" => bc_manifest::base64::decode(text.as_bytes()).is_some(),
        other => panic!("pattern {other}"),
    }
}

fn check(name: &str, bytes: &[u8], lines: usize) {
    let schema = schema(name);
    let text = std::str::from_utf8(bytes).unwrap();
    assert_eq!(text.lines().count(), lines);
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(valid(&schema, &schema, &value), "{line}");
        let mut broken = value.clone();
        broken["type"] = "other".into();
        assert!(!valid(&schema, &schema, &broken));
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
