//! Manifests and trees that mean harm.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use bc_digest::{Algorithm, hash};
use bc_manifest::integrity::{Entry, Header, Kind, Meta, Writer};
use bc_walk::job::ErrorKind;

use super::Ground;

/// A record of a file that holds `content`.
fn entry(path: &[u8], content: &str) -> Entry {
    let mut entry = Entry::new(path.to_vec(), Kind::File);
    entry.digest = Some(hash(Algorithm::Blake3, content.as_bytes()));
    entry.meta = Some(Meta {
        size: content.len() as u64,
        mode: 0o100_644,
        nlink: 1,
        ..Meta::default()
    });
    entry
}

/// A manifest of these, with a trailer that fits, however bad they are.
fn forged(entries: &[Entry]) -> Vec<u8> {
    let mut lines = Vec::new();
    for entry in entries {
        // A path that the writer refuses is written under another name.
        let mut harmless = entry.clone();
        harmless.path = b"PATH".to_vec();
        let mut writer = Writer::new(Vec::new(), &Header::new("blake3", "0.1.0")).unwrap();
        writer.write(&harmless).unwrap();
        let (bytes, _) = writer.finish().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let line = text.lines().nth(1).unwrap();
        let path = String::from_utf8_lossy(&entry.path).replace('\0', "\\u0000");
        lines.push(line.replace("PATH", &path));
    }
    let writer = Writer::new(Vec::new(), &Header::new("blake3", "0.1.0")).unwrap();
    let (bytes, _) = writer.finish().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let header = text.lines().next().unwrap();
    let mut all = format!("{header}\n");
    lines.iter().for_each(|line| all += &format!("{line}\n"));
    let digest = hash(Algorithm::Sha256, all.as_bytes());
    let count = lines.len();
    let bytes: u64 = entries.iter().filter_map(Entry::size).sum();
    all += &format!(
        "{{\"type\":\"trailer\",\"entries\":{count},\"files\":{count},\"dirs\":0,\"bytes\":{bytes},\
         \"errors\":0,\"sha256\":\"{digest}\"}}\n"
    );
    all.into_bytes()
}

#[test]
fn paths_that_lead_elsewhere_are_refused_before_anything_is_done() {
    let bad: [&[&[u8]]; 9] = [
        &[b"/etc/x"],
        &[b"../x"],
        &[b"a/../../x"],
        &[b"a//x"],
        &[b"a/./x"],
        &[b""],
        &[b"a\0x"],
        &[b"a", b"a"],
        &[b"b", b"a"],
    ];
    for paths in bad {
        let ground = Ground::new();
        ground.write("root/keep", "kept");
        // A file that would be repaired, if it came to that.
        ground.write("from/x", "content");
        ground.write("from/first", "content");
        let mut entries = vec![entry(b"Afirst", "content"), entry(b"keep", "kept")];
        entries.splice(1..1, paths.iter().map(|path| entry(path, "content")));
        ground.manifest(&forged(&entries));
        let before = ground.seen("");
        let (done, reported) = ground.try_heal(&["from"], |_| {});
        let shown = String::from_utf8_lossy(paths[0]).into_owned();
        assert!(
            done.is_err_and(|error| error.kind() == ErrorKind::Manifest),
            "{shown:?}: {reported:#?}"
        );
        assert_eq!(ground.seen(""), before, "{shown:?}");
    }
    // The way they are forged is not why.
    let ground = Ground::new();
    ground.write("root/keep", "kept");
    ground.write("from/x", "content");
    ground.manifest(&forged(&[
        entry(b"first", "content"),
        entry(b"keep", "kept"),
    ]));
    let (done, reported) = ground.heal(&["from"], |_| {});
    assert_eq!(done.repaired, 1, "{reported:#?}");
}

#[test]
fn a_manifest_that_was_cut_or_altered_is_refused() {
    let ground = Ground::new();
    ground.write("root/a", "content");
    ground.record();
    ground.copy("root", "copy");
    let whole = fs::read(ground.at("m")).unwrap();
    ground.damage("root/a");
    let before = ground.seen("root");
    let text = String::from_utf8(whole.clone()).unwrap();
    let altered = text.replace("\"size\":7", "\"size\":8");
    assert_ne!(text, altered);
    for bytes in [&whole[..whole.len() - 9], altered.as_bytes()] {
        ground.manifest(bytes);
        let (done, reported) = ground.try_heal(&["copy"], |_| {});
        assert!(
            done.is_err_and(|error| error.kind() == ErrorKind::Manifest),
            "{reported:#?}"
        );
        assert_eq!(ground.seen("root"), before);
    }
}

/// A link in the tree, where the manifest has a directory, leads nowhere.
#[test]
fn nothing_is_written_through_links() {
    let ground = Ground::new();
    ground.write("root/d/one", "content");
    ground.write("root/other", "other");
    ground.record();
    ground.copy("root", "copy");
    fs::remove_dir_all(ground.at("root/d")).unwrap();
    fs::create_dir(ground.at("outside")).unwrap();
    symlink("../outside", ground.at("root/d")).unwrap();
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.repaired, done.failed), (0, 1), "{reported:#?}");
    assert_eq!(fs::read_dir(ground.at("outside")).unwrap().count(), 0);
    // Nor is anything read through them.
    let ground = Ground::new();
    ground.write("root/d/one", "content");
    ground.write("root/other", "other");
    ground.record();
    ground.write("secret/one", "content");
    fs::create_dir(ground.at("from")).unwrap();
    symlink("../secret", ground.at("from/d")).unwrap();
    fs::remove_file(ground.at("root/d/one")).unwrap();
    let (done, reported) = ground.heal(&["from"], |_| {});
    assert_eq!(done.missing, 1, "{reported:#?}");
}

/// A file with a second name's name is never replaced, nor is one with the name of a directory.
#[test]
fn names_that_are_taken() {
    let ground = Ground::new();
    ground.write("root/d/one", "content");
    ground.write("root/e", "e");
    ground.record();
    ground.copy("root", "copy");
    fs::remove_dir_all(ground.at("root/d")).unwrap();
    ground.write("root/d", "a file now");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!(done.failed, 1, "{reported:#?}");
    assert_eq!(ground.text("root/d"), "a file now");
}

/// A number that has come to another file makes it look like one that had it before, with other
/// content: it is right, and stays as it is.
#[test]
fn an_inode_number_that_was_given_again() {
    let ground = Ground::new();
    ground.write("root/keep", "kept");
    ground.write("root/moved", "content");
    ground.write("from/x", "another");
    let meta = fs::metadata(ground.at("root/moved")).unwrap();
    let mut gone = entry(b"gone", "another");
    gone.meta = gone.meta.map(|recorded| Meta {
        ino: meta.ino(),
        mtime_ns: meta.mtime() * 1_000_000_000 + meta.mtime_nsec(),
        ..recorded
    });
    let entries = [gone, entry(b"keep", "kept"), entry(b"old", "content")];
    ground.manifest(&forged(&entries));
    let (done, reported) = ground.heal(&["from"], |_| {});
    assert_eq!(done.repaired, 1, "{reported:#?}");
    assert_eq!(ground.text("root/gone"), "another");
    assert_eq!(ground.text("root/moved"), "content");
    assert_eq!(ground.seen("root").len(), 4);
}
