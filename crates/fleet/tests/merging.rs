//! Headers that claim more parts than there can be, and no part at all.
#![forbid(unsafe_code)]

use bc_fleet::{ListFile, MergeOptions, merge, merge_lists};
use bc_integrity::ManifestFile;
use bc_manifest::integrity::{Header, ShardHeader, Writer};
use bc_pool::Cancel;

const MOST: u32 = u32::MAX;

/// Memory for each of them would be 64 GiB.
#[test]
fn parts_take_no_memory_before_they_are_there() {
    let shard = ShardHeader { index: 2, of: MOST };
    let mut shard = shard.to_value();
    shard["job"] = serde_json::json!([["root", "/srv"]]);
    let list = format!(
        "{{\"type\":\"header\",\"schema\":1,\"tool\":\"bc hash\",\"version\":\"0\",\
         \"algorithms\":[\"sha256\"],\"shard\":{shard}}}\n"
    );
    let file = ManifestFile::from_reader(b"list", list.as_bytes());
    // A list is no manifest: from a pipe it is refused.
    assert!(file.is_err());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list");
    std::fs::write(&path, &list).unwrap();
    let file = ManifestFile::open(&path).unwrap();
    let lists = [ListFile::of(&file).unwrap().unwrap()];
    let error = merge_lists(&lists, &Cancel::new(), &mut Vec::new()).unwrap_err();
    assert!(says_missing(&error.to_string()), "{error}");

    let mut header = Header::new("sha256", "0");
    header.shard = ShardHeader { index: 2, of: MOST }.to_value();
    let (bytes, _) = Writer::new(Vec::new(), &header).unwrap().finish().unwrap();
    let parts = [ManifestFile::from_reader(b"part", &bytes[..]).unwrap()];
    let cancel = Cancel::new();
    let what = MergeOptions::new(&parts, 1, &cancel);
    let error = merge(&what, Vec::new()).unwrap_err().to_string();
    assert!(error.contains("too many"), "{error}");
}

fn says_missing(text: &str) -> bool {
    text.contains("missing: part 1/4294967295, 3/4294967295, ")
        && text.ends_with(" and 4294967284 more")
}

#[test]
fn nothing_at_all_is_an_error() {
    let cancel = Cancel::new();
    let error = merge_lists(&[], &cancel, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("no lists"), "{error}");
    let what = MergeOptions::new(&[], 1, &cancel);
    let error = merge(&what, Vec::new()).unwrap_err();
    assert!(error.to_string().contains("no manifests"), "{error}");
}
