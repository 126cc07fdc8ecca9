//! Manifests that are truncated, altered, made up or from the future: refused,
//! or read without panic and without believing them.

use bc_integrity::compare::Detail;
use bc_integrity::fields::{CompareMode, CompareRules, Fields};
use bc_integrity::report::ChangeFormat;
use bc_integrity::{ManifestFile, Trust};
use bc_testkit::TestTree;
use bc_walk::job::{Error, ErrorKind};
use proptest::prelude::*;

use crate::support::{
    How, an_update, diffed, entry, manifest_of, resealed, updated, verified, verify_with,
};

fn sample() -> (TestTree, Vec<u8>) {
    let tree = TestTree::new();
    tree.write("a", "1")
        .write("b/c", "22")
        .write("b/d", "333")
        .symlink("a", "l");
    let manifest = manifest_of(tree.path());
    (tree, manifest)
}

#[track_caller]
fn refused(tree: &TestTree, manifest: &[u8], why: &str) {
    let path = tree.scratch("bad.jsonl");
    std::fs::write(&path, manifest).unwrap();
    let (_, result) = verify_with(tree.path(), &path, How::default(), ChangeFormat::Text);
    let error = result.expect_err(why);
    assert_eq!(error.kind(), ErrorKind::Manifest, "{error}");
    assert!(
        error.to_string().contains(why),
        "{error} does not say: {why}"
    );
    let error = updated(&an_update(tree.path().as_os_str(), &path)).expect_err(why);
    assert_eq!(error.kind(), ErrorKind::Manifest, "{error}");
    assert_eq!(
        std::fs::read(&path).unwrap(),
        manifest,
        "an update left it alone"
    );
}

/// Nothing could end the wait for its writer.
#[test]
fn a_pipe_is_no_file() {
    let tree = TestTree::new();
    tree.fifo("pipe");
    let error = ManifestFile::open(tree.join("pipe")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(
        error.to_string().ends_with("is a pipe, not a file"),
        "{error}"
    );
}

#[test]
fn cut_off_anywhere() {
    let (tree, manifest) = sample();
    for keep in 0..manifest.len() {
        let file = ManifestFile::from_reader(b"m", &manifest[..keep]);
        assert!(file.and_then(|file| file.check()).is_err(), "cut at {keep}");
    }
    refused(&tree, &manifest[..manifest.len() / 2], "truncated");
    refused(&tree, b"", "empty");
    let lines: Vec<&[u8]> = manifest.split_inclusive(|&byte| byte == b'\n').collect();
    refused(&tree, &lines[..lines.len() - 1].concat(), "truncated");
    // One answer, whatever is asked first.
    let path = tree.scratch("bad.jsonl");
    for (text, why) in [("", "empty file"), ("hello\n", "no header")] {
        std::fs::write(&path, text).unwrap();
        let file = ManifestFile::open(&path).unwrap();
        let entries = file.entries().map(|entries| entries.count());
        for error in [
            file.header().map(drop).unwrap_err(),
            file.check().unwrap_err(),
            file.read_seal().map(drop).unwrap_err(),
            entries.map(drop).unwrap_err(),
        ] {
            assert!(error.to_string().ends_with(why), "{error}");
        }
    }
    let without_one = [&lines[..2], &lines[3..]].concat().concat();
    refused(&tree, &without_one, "altered");
    refused(&tree, &[&manifest[..], b"more\n"].concat(), "truncated");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_flipped_bit_in_any_line_is_found(at: prop::sample::Index, bit in 0..8_u32) {
        let (_tree, manifest) = sample();
        let mut flipped = manifest.clone();
        let at = at.index(flipped.len());
        flipped[at] ^= 1 << bit;
        // The trailer's own counts are compared when the entries are read.
        let read = ManifestFile::from_reader(b"m", &flipped[..])
            .and_then(|file| file.check().and_then(|()| drain(&file)));
        prop_assert!(read.is_err(), "byte {at}");
    }

    /// A change of a line and of the trailer with it is found by the content of the line.
    #[test]
    fn a_changed_byte_under_a_right_trailer_is_refused_or_reported(
        line in 1..6_usize,
        at: prop::sample::Index,
        byte: u8,
    ) {
        static SAMPLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let manifest = SAMPLE.get_or_init(|| sample().1);
        let mut changed = String::new();
        let altered = resealed(manifest, |lines| {
            let mut bytes = lines[line].clone().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            // Manifests are UTF-8; other bytes are the test's above.
            if let Ok(text) = String::from_utf8(bytes) {
                changed.clone_from(&text);
                if text != lines[line] {
                    lines[line] = text;
                    return;
                }
            }
            changed.clear();
        });
        prop_assume!(!changed.is_empty() && byte != b'\n');
        let rules = CompareRules::new(CompareMode::Strict, Fields::NONE);
        if let Ok((text, _)) = diffed(manifest, &altered, rules) {
            prop_assert!(!text.is_empty(), "{changed}");
        }
    }

    #[test]
    fn garbage_never_panics(bytes: Vec<u8>) {
        prop_assert!(ManifestFile::from_reader(b"m", &bytes[..]).is_err());
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("m"), &bytes).unwrap();
        let file = ManifestFile::open(dir.path().join("m")).unwrap();
        prop_assert!(file.check().is_err());
        prop_assert!(file.header().is_err());
    }
}

/// Reads all of a manifest by comparing it with itself.
fn drain(file: &ManifestFile) -> Result<(), Error> {
    let what = bc_integrity::DiffOptions::new(file, file).trust(Trust::Checked);
    bc_integrity::diff(&what, &mut |_| Ok(())).map(drop)
}

#[test]
fn made_up_lines_under_a_right_trailer() {
    let (tree, manifest) = sample();
    let with = |why: &str, change: &dyn Fn(&mut Vec<String>)| {
        refused(&tree, &resealed(&manifest, |lines| change(lines)), why);
    };
    with("repeated", &|lines| lines.insert(3, lines[2].clone()));
    with("order", &|lines| lines.swap(2, 3));
    let rename = |to: &'static str| {
        move |lines: &mut Vec<String>| {
            lines[2] = lines[2].replace("\"path\":\"a\"", &format!("\"path\":\"{to}\""));
        }
    };
    with("absolute", &rename("/etc/passwd"));
    with("..", &rename("../a"));
    with("..", &rename("a/../../b"));
    with("component", &rename("a//b"));
    with("kind", &|lines| {
        lines[2] = lines[2].replace("\"file\"", "\"door\"")
    });
    with("digest", &|lines| {
        lines[2] = lines[2].replace("\"digest\":\"", "\"digest\":\"00")
    });
    with("JSON", &|lines| lines[2].push('}'));
    with("type", &|lines| lines[2] = "{\"type\":\"other\"}".into());
}

/// Every file of a tree is in the manifest, but some lines stand too late: none of them is reported
/// as added, or in any other class, before that is known.
#[test]
fn nothing_is_said_of_a_manifest_out_of_order() {
    let tree = TestTree::new();
    for name in ["a", "b/c", "b/d", "b/e", "f", "g", "h", "i"] {
        tree.write(name, name);
    }
    let manifest = manifest_of(tree.path());
    tree.mode("a", 0o600);
    let entries = manifest.split(|byte| *byte == b'\n').count() - 3;
    let path = tree.scratch("m.jsonl");
    for (from, to) in [(2, entries), (3, 6), (4, 5), (entries, 2), (6, 3)] {
        let shuffled = resealed(&manifest, |lines| {
            let line = lines.remove(from);
            lines.insert(to, line);
        });
        std::fs::write(&path, &shuffled).unwrap();
        for detail in [Detail::First, Detail::Changes, Detail::All] {
            for mode in CompareMode::ALL {
                let how = How {
                    rules: CompareRules::new(mode, Fields::NOT_RESTORED),
                    detail,
                    ..How::default()
                };
                let (text, result) = verify_with(tree.path(), &path, how, ChangeFormat::Text);
                assert_eq!(text, "", "{from} {to} {detail:?} {mode:?}");
                assert_eq!(result.unwrap_err().kind(), ErrorKind::Manifest);
            }
            let now = manifest_of(tree.path());
            for (old, new) in [(&shuffled, &now), (&now, &shuffled)] {
                let [old, new] =
                    [old, new].map(|bytes| ManifestFile::from_reader(b"m", &bytes[..]).unwrap());
                let what = bc_integrity::DiffOptions::new(&old, &new)
                    .rules(CompareRules::default())
                    .detail(detail)
                    .trust(Trust::Checked);
                let mut reported = 0;
                let compared = bc_integrity::diff(&what, &mut |_| {
                    reported += 1;
                    Ok(())
                });
                assert_eq!(compared.unwrap_err().kind(), ErrorKind::Manifest);
                assert_eq!(reported, 0, "{from} {to} {detail:?}");
            }
        }
    }
}

#[test]
fn headers_that_are_not_ours() {
    let (tree, manifest) = sample();
    let with = |why: &str, from: &str, to: &str| {
        let changed = resealed(&manifest, |lines| lines[0] = lines[0].replace(from, to));
        refused(&tree, &changed, why);
    };
    with("schema 2", "\"schema\":1", "\"schema\":2");
    with("no header", "\"type\":\"header\"", "\"type\":\"hat\"");
    with(
        "whirlpool",
        "\"algorithm\":\"sha256\"",
        "\"algorithm\":\"whirlpool\"",
    );
    with(
        "digest",
        "\"algorithm\":\"sha256\"",
        "\"algorithm\":\"sha1\"",
    );
    with("sparse", "\"options\":{", "\"options\":{\"sparse\":true,");
}

#[test]
fn fields_of_a_later_version_are_kept() {
    let (tree, manifest) = sample();
    let path = tree.scratch("m.jsonl");
    let extended = resealed(&manifest, |lines| {
        lines[2].pop();
        lines[2].push_str(",\"mood\":{\"of\":[\"day\"]}}");
    });
    std::fs::write(&path, &extended).unwrap();
    let (text, _) = verified(tree.path(), &path, How::default());
    assert_eq!(text, "");
    tree.mode("a", 0o600).mtime("b/c", 5, 5);
    updated(&an_update(tree.path().as_os_str(), &path)).unwrap();
    let now = std::fs::read(&path).unwrap();
    assert_ne!(now, extended);
    assert_eq!(entry(&now, "a")["mood"]["of"][0], "day");
    assert_eq!(entry(&now, "a")["mode"], 0o100_600);
}

#[test]
fn compressed_garbage_and_a_compressed_manifest() {
    let (tree, manifest) = sample();
    let mut frame = Vec::new();
    let mut out = bc_manifest::compress::Compressor::new(&mut frame).unwrap();
    std::io::Write::write_all(&mut out, &manifest).unwrap();
    out.finish().unwrap();
    let path = tree.scratch("m.zst");
    std::fs::write(&path, &frame).unwrap();
    let (text, _) = verified(tree.path(), &path, How::default());
    assert_eq!(text, "");
    refused(&tree, &frame[..frame.len() / 2], "not readable");
    let mut flipped = frame.clone();
    flipped[frame.len() / 2] ^= 0x10;
    refused(&tree, &flipped, "");
    refused(&tree, &[&frame[..4], &[0x5a; 100]].concat(), "not readable");
    // An update keeps it compressed.
    tree.write("new", "new");
    updated(&an_update(tree.path().as_os_str(), &path)).unwrap();
    assert!(std::fs::read(&path).unwrap().starts_with(&frame[..4]));
    let (text, _) = verified(tree.path(), &path, How::default());
    assert_eq!(text, "");
}

#[test]
fn a_manifest_from_a_pipe() {
    let (_tree, manifest) = sample();
    let file = ManifestFile::from_reader(b"-", &manifest[..]).unwrap();
    assert_eq!(file.header().unwrap().algorithm, "sha256");
    assert_eq!(file.own_file(), None);
    drain(&file).unwrap();
}
