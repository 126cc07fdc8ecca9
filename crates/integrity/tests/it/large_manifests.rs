//! Manifests so large that unchanged entries are found by all threads at once, and only counted:
//! this affects nothing but time. A manifest that is read by force goes the long way, and so does
//! one whose files are read.

use std::path::PathBuf;

use bc_integrity::Trust;
use bc_integrity::compare::Detail;
use bc_integrity::fields::CompareMode;
use bc_integrity::report::ChangeFormat;
use bc_testkit::{Rng, TestTree};

use crate::support::{How, an_update, manifest_of, mode, resealed, updated, verified, verify_with};

const DIRS: u64 = 13;
const FILES: u64 = 220;

/// Long names make few files a large manifest.
fn name(dir: u64, file: u64) -> String {
    let below = if file.is_multiple_of(9) {
        "deep/er/"
    } else {
        ""
    };
    format!("d{dir}/{below}{file:03}{}", "n".repeat(240))
}

/// Files, and here and there something else, with names of every kind.
fn large() -> (TestTree, Vec<u8>) {
    let tree = TestTree::new();
    for dir in 0..DIRS {
        for file in 0..FILES {
            tree.write(name(dir, file), file.to_string());
        }
    }
    for odd in [
        &b"d1/back\\slash"[..],
        b"d1/new\nline",
        b"d1/quo\"te",
        b"d1/\xff",
        "d1/\u{e9}t\u{e9}".as_bytes(),
        b"d1/.hidden",
        b"d1-",
        b"d1.x",
        b"d10",
        b"d5/deep-",
    ] {
        let taken = tree.join_bytes(odd).exists();
        if !taken {
            tree.write_bytes(odd, "odd");
        }
    }
    tree.symlink("nowhere", "d3/link")
        .symlink("d1", "d3/000-link")
        .fifo("d4/000-pipe")
        .dir("d6/empty")
        .mode(name(7, 5), 0o600);
    let manifest = manifest_of(tree.path());
    assert!(manifest.len() > 9 << 17, "{} bytes", manifest.len());
    (tree, manifest)
}

/// Does something to the tree, here and there.
fn meddle(tree: &TestTree, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..rng.below(40) {
        let at = name(rng.below(DIRS), rng.below(FILES));
        if !tree.exists(&at) {
            continue;
        }
        match rng.below(7) {
            0 => drop(tree.write(&at, "something else")),
            1 => drop(tree.mtime(&at, 5, 5)),
            2 => drop(tree.mode(&at, 0o640)),
            3 => drop(tree.remove(&at)),
            4 => drop(tree.write(format!("{at}-new"), "new")),
            5 => drop(tree.remove(&at).dir(&at)),
            _ => std::fs::rename(tree.join(&at), tree.join(format!("{at}-moved"))).unwrap(),
        }
    }
}

/// Something that a manifest of the tree may say as well.
fn altered(manifest: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    resealed(manifest, |lines| {
        let mut some = |lines: &[String], part: &str| {
            let from = rng.below(lines.len() as u64) as usize;
            let mut all = (from..lines.len()).chain(1..from);
            all.find(|at| lines[*at].contains(part)).unwrap()
        };
        // As another program may write it, with a field of a later version, as an update leaves it.
        let at = some(lines, "\"kind\":\"file\"");
        lines[at] = lines[at].replace(",\"kind\"", ", \"kind\"");
        let at = some(lines, "\"kind\":\"file\"");
        lines[at] = lines[at].replace("\"}", "\",\"mood\":\"good\"}");
        for _ in 0..9 {
            let at = some(lines, "\"}");
            let more = "\",\"verified_at\":\"2023-11-14T22:13:20.5Z\",\"tried_run\":3}";
            lines[at] = lines[at].replace("\"}", more);
        }
        // A disk that is not mounted: nothing below is looked at.
        if seed.is_multiple_of(3) {
            let at = some(lines, "\"path\":\"d5\"");
            lines[at] = lines[at].replace('}', ",\"mount\":\"tank/d5\",\"mount_root\":\"/\"}");
        }
        // Entries of which there are none any more.
        let at = some(lines, "\"kind\":\"file\"");
        let end = (at + rng.below(300) as usize).min(lines.len());
        if seed.is_multiple_of(2) {
            lines.drain(at..end);
        }
    })
}

fn manifest_at(tree: &TestTree, name: &str, manifest: &[u8]) -> PathBuf {
    let path = tree.scratch(name);
    std::fs::write(&path, manifest).unwrap();
    path
}

fn meta(trust: Trust, detail: Detail, workers: usize) -> How {
    How {
        trust,
        detail,
        workers,
        ..mode(CompareMode::Meta)
    }
}

#[test]
fn what_is_only_counted_makes_no_difference() {
    let (tree, manifest) = large();
    for seed in 0..4 {
        if seed > 0 {
            meddle(&tree, seed);
        }
        let manifest = match seed {
            0 => manifest.clone(),
            seed => altered(&manifest, seed),
        };
        let path = manifest_at(&tree, "m", &manifest);
        for detail in [Detail::Changes, Detail::First, Detail::All] {
            let expected = verified(tree.path(), &path, meta(Trust::Forced, detail, 2));
            assert_eq!(expected.0.is_empty(), seed == 0 && detail != Detail::All);
            for workers in [1, 3] {
                let how = meta(Trust::Checked, detail, workers);
                let found = verified(tree.path(), &path, how);
                assert!(found == expected, "{seed} {detail:?} {workers}: {found:?}");
            }
        }
        // And for an update, which may write.
        let written = [Trust::Forced, Trust::Checked].map(|trust| {
            let path = manifest_at(&tree, "u", &manifest);
            let what = an_update(tree.path().as_os_str(), &path).trust(trust);
            let (text, done) = updated(&what).unwrap();
            assert_eq!(done.written.is_none(), seed == 0);
            (text, done.summary, std::fs::read(&path).unwrap())
        });
        assert!(written[0] == written[1], "{seed}: {}", written[1].0);
    }
}

#[test]
fn an_empty_side_and_another_tree() {
    let (tree, manifest) = large();
    let path = manifest_at(&tree, "m", &manifest);
    let other = TestTree::new();
    other.write("z", "z");
    let [expected, found] = [Trust::Forced, Trust::Checked]
        .map(|trust| verified(other.path(), &path, meta(trust, Detail::Changes, 2)));
    assert_eq!(found, expected);
    let path = manifest_at(&tree, "other", &manifest_of(other.path()));
    let [expected, found] = [Trust::Forced, Trust::Checked]
        .map(|trust| verified(tree.path(), &path, meta(trust, Detail::Changes, 2)));
    assert_eq!(found, expected);
}

/// Errors are found among unchanged lines as well, with the number of the line.
#[test]
fn what_is_wrong_is_named_as_ever() {
    let (tree, manifest) = large();
    // Something differs in the first lines.
    tree.write("d0/0", "new");
    let many = manifest.split(|byte| *byte == b'\n').count() - 3;
    let line = |lines: &[String], part: usize| {
        let from = many * part / 4;
        let mut files = from..lines.len();
        files
            .find(|at| lines[*at].contains("\"kind\":\"file\""))
            .unwrap()
    };
    let refused = |why: &str, manifest: &[u8]| {
        let path = manifest_at(&tree, "bad", manifest);
        let error = |how| {
            let (text, result) = verify_with(tree.path(), &path, how, ChangeFormat::Text);
            assert_eq!(text, "", "nothing is said of it: {why}");
            result.expect_err(why).to_string()
        };
        // This one reads the files.
        let expected = error(How::default());
        assert!(expected.contains(why), "{expected} does not say: {why}");
        for (workers, detail) in [
            (1, Detail::Changes),
            (3, Detail::Changes),
            (3, Detail::First),
        ] {
            assert_eq!(error(meta(Trust::Checked, detail, workers)), expected);
        }
        let what = an_update(tree.path().as_os_str(), &path);
        assert_eq!(updated(&what).expect_err(why).to_string(), expected);
    };
    let mut part = 0;
    let mut with = |why: &str, change: &dyn Fn(&mut Vec<String>, usize)| {
        // Each in another place.
        part = (part + 1) % 4;
        let changed = resealed(&manifest, |lines| {
            let at = line(lines, part);
            change(lines, at);
        });
        refused(why, &changed);
    };
    with("path repeated", &|lines, at| {
        lines.insert(at + 1, lines[at].clone())
    });
    with("path out of order", &|lines, at| lines.swap(at, at + 1));
    with("path out of order", &|lines, at| {
        let some: Vec<String> = lines.drain(at..at + 100).collect();
        lines.extend(some);
    });
    with("path out of order", &|lines, at| {
        let some = lines[at..at + 100].to_vec();
        lines.splice(at + 200..at + 200, some);
    });
    with("not valid JSON", &|lines, at| lines[at].push('}'));
    with("wrong length of digest", &|lines, at| {
        lines[at] = lines[at].replace("\"digest\":\"", "\"digest\":\"00");
    });
    with("not a digest", &|lines, at| {
        let (before, digest) = lines[at].split_once("\"digest\":").unwrap();
        lines[at] = format!(
            "{before}\"digest\":{}",
            digest.replace(char::is_numeric, "A")
        );
    });
    with("verified_at is not a time", &|lines, at| {
        lines[at] = lines[at].replace("\"}", "\",\"verified_at\":\"2023-11-14\"}");
    });
    let (before, after) = (
        format!("\"entries\":{many}"),
        format!("\"entries\":{}", many + 1),
    );
    let text = String::from_utf8(manifest.clone()).unwrap();
    assert!(text.contains(&before));
    refused(
        "the counts in the trailer do not match",
        text.replace(&before, &after).as_bytes(),
    );
}
