//! Content of a manifest, which is the same bytes however it is made.

use std::os::unix::fs::{FileTypeExt, MetadataExt};

use bc_digest::Algorithm;
use bc_integrity::report::ChangeFormat;
use bc_integrity::{CreateOptions, ManifestFile, Overwrite, TreeOptions, XattrPolicy};
use bc_testkit::{TestTree, hostile, left_out};
use bc_walk::Hidden;
use bc_walk::job::Means;

use crate::support::{
    How, create_with, entry, lines, manifest_of, record, verified, verify_with, with_work,
};

#[test]
fn the_example_of_the_format() {
    let tree = TestTree::new();
    tree.write("a/b", "abc")
        .symlink("../gone", "a/link")
        .fifo("pipe")
        .mtime("a/b", -1, 999_999_999);
    let manifest = manifest_of(tree.path());
    let all = lines(&manifest);
    let header = &all[0];
    assert_eq!(header["type"], "header");
    assert_eq!(header["schema"], 1);
    assert_eq!(header["tool"], "bc integrity");
    assert_eq!(header["algorithm"], "sha256");
    assert_eq!(header["root"], tree.path().to_str().unwrap());
    let meta = tree.path().metadata().unwrap();
    assert_eq!(header["root_dev"], meta.dev());
    assert_eq!(header["created_at"], "2023-11-14T22:13:20Z");
    assert_eq!(header["options"]["hidden"], true);
    let paths: Vec<_> = all[1..all.len() - 1]
        .iter()
        .map(|line| &line["path"])
        .collect();
    assert_eq!(paths, [".", "a", "a/b", "a/link", "pipe"]);
    let file = entry(&manifest, "a/b");
    let meta = tree.join("a/b").metadata().unwrap();
    assert_eq!(file["kind"], "file");
    assert_eq!(file["size"], 3);
    assert_eq!(file["mode"], meta.mode());
    assert_eq!(file["uid"], meta.uid());
    assert_eq!(file["ino"], meta.ino());
    assert_eq!(file["nlink"], 1);
    assert_eq!(file["mtime_ns"], -1);
    assert_eq!(
        file["ctime_ns"],
        meta.ctime() * 1_000_000_000 + meta.ctime_nsec()
    );
    assert_eq!(
        file["digest"],
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(entry(&manifest, "a/link")["target"], "../gone");
    assert_eq!(entry(&manifest, "pipe")["kind"], "fifo");
    let trailer = all.last().unwrap();
    assert_eq!(trailer["type"], "trailer");
    assert_eq!(
        (&trailer["entries"], &trailer["files"]),
        (&5.into(), &1.into())
    );
    assert_eq!(
        (&trailer["dirs"], &trailer["bytes"]),
        (&2.into(), &3.into())
    );
}

#[test]
fn the_same_bytes_whatever_the_threads_and_readers() {
    let tree = TestTree::new();
    // More than one window of entries, with large files among them.
    for dir in 0..90 {
        for file in 0..100 {
            tree.write(
                format!("{dir:02}/{file}"),
                format!("{dir} {file}").repeat(file + 1),
            );
        }
    }
    tree.write("50/large", vec![5; 3 << 20])
        .write("large", vec![6; 1 << 20]);
    let expected = create_with(tree.path(), TreeOptions::default(), Algorithm::Sha256, 1).0;
    for workers in [2, 5] {
        let again = create_with(
            tree.path(),
            TreeOptions::default(),
            Algorithm::Sha256,
            workers,
        )
        .0;
        assert!(again == expected, "{workers} workers");
    }
    for algorithm in [Algorithm::Blake3, Algorithm::Xxh128] {
        let one = create_with(tree.path(), TreeOptions::default(), algorithm, 1).0;
        assert!(create_with(tree.path(), TreeOptions::default(), algorithm, 3).0 == one);
    }
    let path = tree.scratch("m");
    std::fs::write(&path, expected).unwrap();
    let (text, summary) = verified(tree.path(), &path, How::default());
    assert_eq!(text, "");
    assert_eq!(summary.files_read, 9002);
}

#[test]
fn a_hostile_tree_is_recorded_whole() {
    let tree = TestTree::new();
    let made = hostile::build(tree.path()).unwrap();
    for (name, why) in &made.left_out {
        left_out(&format!("{}: {why}", name.escape_ascii()));
    }
    let manifest = record(&tree);
    let bytes = std::fs::read(&manifest).unwrap();
    let trailer = lines(&bytes).pop().unwrap();
    let files = made.files.len() + made.unreadable.len();
    assert_eq!(trailer["files"], files);
    // The root is a directory as well.
    assert_eq!(trailer["dirs"], made.dirs.len() + 1);
    let others = made.symlinks.len() + made.special.len();
    assert_eq!(trailer["entries"], files + made.dirs.len() + 1 + others);
    let (text, _) = verified(tree.path(), &manifest, How::default());
    assert!(text.lines().all(|line| line.starts_with("?? ")), "{text}");
    let (json, _) = verify_with(tree.path(), &manifest, How::default(), ChangeFormat::Json);
    assert_eq!(json.lines().count(), text.lines().count());
}

#[test]
fn walk_options_are_kept_for_later_commands() {
    let tree = TestTree::new();
    tree.write("a.c", "1")
        .write("a.o", "2")
        .write(".hidden", "3")
        .write("big.c", "4444");
    let options = TreeOptions::default()
        .hidden(Hidden::Skip)
        .exclude(vec![b"*.o".to_vec()])
        .max_size(Some(3));
    let (manifest, done) = create_with(tree.path(), options, Algorithm::Sha256, 1);
    assert_eq!(
        (
            done.skipped.hidden,
            done.skipped.excluded,
            done.skipped.too_large
        ),
        (1, 1, 1)
    );
    let path = tree.scratch("m");
    std::fs::write(&path, manifest).unwrap();
    let (text, _) = verified(tree.path(), &path, How::default());
    assert_eq!(text, "");
    tree.write("b.c", "5").write("b.o", "6").mtime(".", 1, 1);
    let (text, _) = verified(tree.path(), &path, How::default());
    assert!(
        text.ends_with("+ b.c\n") && text.lines().count() == 2,
        "{text}"
    );
}

#[test]
fn extended_attributes_on_request() {
    let tree = TestTree::new();
    tree.write("a", "1")
        .write("plain", "2")
        .dir("d")
        .symlink("a", "l");
    let set = |path: &str, name: &str, value: &[u8]| {
        rustix::fs::setxattr(
            tree.join(path),
            name,
            value,
            rustix::fs::XattrFlags::empty(),
        )
    };
    if let Err(error) = set("a", "user.note", b"\xff\0") {
        left_out(&format!("extended attributes: {error}"));
        return;
    }
    set("d", "user.empty", b"").unwrap();
    // u::rw-,u:1:r--,g::r--,m::r--,o::---
    let acl = [
        &[2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255][..],
        &[2, 0, 4, 0, 1, 0, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255],
        &[
            16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
        ],
    ]
    .concat();
    let acls = set("a", "system.posix_acl_access", &acl);
    let options = TreeOptions::default().xattrs(XattrPolicy::Record);
    let (manifest, _) = create_with(tree.path(), options, Algorithm::Sha256, 2);
    assert_eq!(entry(&manifest, "a")["xattrs"]["user.note"], "/wA=");
    assert_eq!(entry(&manifest, "d")["xattrs"]["user.empty"], "");
    assert!(
        entry(&manifest, "plain")["xattrs"]
            .as_object()
            .unwrap()
            .is_empty()
    );
    match acls {
        Ok(()) => assert!(entry(&manifest, "a")["xattrs"]["system.posix_acl_access"].is_string()),
        Err(error) => left_out(&format!("ACLs: {error}")),
    }
    let path = tree.scratch("m");
    std::fs::write(&path, &manifest).unwrap();
    let (text, _) = verified(tree.path(), &path, How::default());
    assert_eq!(text, "");
    set("a", "user.note", b"other").unwrap();
    set("plain", "user.new", b"1").unwrap();
    rustix::fs::removexattr(tree.join("d"), "user.empty").unwrap();
    let (text, _) = verified(tree.path(), &path, How::default());
    let expected =
        "~m a xattrs: ~user.note\n~m d xattrs: -user.empty\n~m plain xattrs: +user.new\n";
    assert_eq!(text, expected);
    assert!(
        !String::from_utf8(manifest_of(tree.path()))
            .unwrap()
            .contains("\"xattrs\":{")
    );
}

#[test]
fn attributes_do_not_depend_on_threads() {
    let tree = TestTree::new();
    tree.dir("d").symlink("d", "l");
    // More than one thread's share, over several directories, some without any.
    for nth in 0..300 {
        let path = format!("d/{}/{nth}", nth % 7);
        tree.write(&path, "x");
        if nth % 3 > 0 {
            continue;
        }
        let set = rustix::fs::setxattr(
            tree.join(&path),
            "user.nth",
            nth.to_string().as_bytes(),
            rustix::fs::XattrFlags::empty(),
        );
        if let Err(error) = set {
            left_out(&format!("extended attributes: {error}"));
            return;
        }
    }
    let manifest = |workers, symlinks| {
        let options = TreeOptions::default()
            .xattrs(XattrPolicy::Record)
            .symlinks(symlinks);
        create_with(tree.path(), options, Algorithm::Xxh128, workers).0
    };
    for symlinks in [bc_walk::Symlinks::Skip, bc_walk::Symlinks::Follow] {
        let alone = manifest(1, symlinks);
        assert_eq!(entry(&alone, "d/6/6")["xattrs"]["user.nth"], "Ng==");
        assert_eq!(entry(&alone, "d/0/7")["xattrs"], serde_json::json!({}));
        for workers in [2, 7] {
            assert!(manifest(workers, symlinks) == alone, "{workers} threads");
        }
    }
}

#[test]
fn a_cancelled_run_leaves_no_trailer() {
    let tree = TestTree::new();
    tree.write("a", "1");
    let what = bc_integrity::CreateOptions::new(tree.path().as_os_str(), Algorithm::Sha256)
        .tree(TreeOptions::default())
        .created_at(0);
    let mut out = Vec::new();
    let result = with_work(2, |work| {
        work.cancel.cancel(2);
        bc_integrity::create(&what, work, &mut out, &mut |_, _| {}).map(drop)
    });
    assert_eq!(
        result.unwrap_err().kind(),
        bc_walk::job::ErrorKind::Cancelled
    );
    assert!(!out.windows(7).any(|part| part == b"trailer"));
}

#[test]
fn a_single_file_is_a_tree_too() {
    let tree = TestTree::new();
    tree.write("only", "abc");
    let (manifest, _) = create_with(
        &tree.join("only"),
        TreeOptions::default(),
        Algorithm::Sha256,
        1,
    );
    assert_eq!(lines(&manifest).len(), 3);
    let path = tree.scratch("m");
    std::fs::write(&path, manifest).unwrap();
    let (text, _) = verified(&tree.join("only"), &path, How::default());
    assert_eq!(text, "");
}

/// Whoever reads it gets the manifest, and it stays what it is, also where files may be replaced.
#[test]
fn a_pipe_is_written_to_and_never_replaced() {
    let tree = TestTree::new();
    tree.write("d/a", "1").fifo("pipe");
    let (root, pipe) = (tree.join("d"), tree.join("pipe"));
    for overwrite in [Overwrite::Never, Overwrite::Always] {
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        let record = CreateOptions::new(&root, Algorithm::Blake3).overwrite(overwrite);
        let written = record.run_to(&pipe, &Means::new()).unwrap();
        assert_eq!(written.files, 1);
        let kind = pipe.symlink_metadata().unwrap().file_type();
        assert!(kind.is_fifo());
        let read = reader.join().unwrap();
        let read = ManifestFile::from_reader(b"pipe", &read[..]).unwrap();
        read.check().unwrap();
    }
}
