//! References and destinations that are seen under other numbers: through an overlay or a FUSE
//! file system nothing of a reference is changed either, and what was moved stays where it is.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;
use crate::dup_reference::where_it_may_mount;

/// Ways to show the directory `ref` as `m`: the tool they need and the command.
const VIEWS: [(&str, &str); 8] = [
    ("bindfs", "bindfs ref m"),
    ("bindfs", "bindfs --ctime-from-mtime ref m"),
    (
        "mount",
        "mount -t overlay overlay -o lowerdir=low,upperdir=ref,workdir=wk m",
    ),
    (
        "mount",
        "mount -t overlay overlay -o lowerdir=ref,upperdir=up,workdir=wk m",
    ),
    (
        "fuse-overlayfs",
        "fuse-overlayfs -o lowerdir=low,upperdir=ref,workdir=wk m",
    ),
    (
        "fuse-overlayfs",
        "fuse-overlayfs -o lowerdir=ref,upperdir=up,workdir=wk m",
    ),
    ("mergerfs", "mergerfs ref m"),
    ("mergerfs", "mergerfs other:ref m"),
];

const ACTIONS: [&str; 5] = ["hardlink", "delete", "symlink", "move:moved", "reflink"];

/// Two equal files of a reference, one of them with a second name elsewhere, and one more in an
/// inbox.
fn tree() -> TestTree {
    let t = TestTree::new();
    for dir in ["m", "low", "up", "wk", "other", "in/sub", "ref/none"] {
        t.dir(dir);
    }
    t.write("ref/f1", "same").write("ref/sub/f2", "same");
    t.write("in/sub/f2", "same");
    for (at, name) in ["ref/f1", "ref/sub/f2", "in/sub/f2"].iter().enumerate() {
        t.mtime(name, 1_600_000_000 + at as i64, 5);
    }
    t
}

/// Names with inode number, number of links, mtime and content; of directories the name.
fn state(dir: &Path) -> BTreeMap<PathBuf, (u64, u64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = std::fs::read(&path).unwrap_or_default();
            let seen = match meta.is_dir() {
                true => (meta.ino(), 0, 0, content),
                false => (meta.ino(), meta.nlink(), meta.mtime(), content),
            };
            if meta.is_dir() {
                pending.push(path.clone());
            }
            found.insert(path, seen);
        }
    }
    found
}

/// Runs `mount` and then `bc` with each line; expects `ref` as it was, and gives what was said.
fn reference_stays(mount: (&str, &str), lines: &[&str], codes: &[i32]) -> Option<String> {
    let (needed, mount) = mount;
    if tool(needed).is_none() {
        left_out(&format!("{needed} is not installed"));
        return None;
    }
    let t = tree();
    let before = state(&t.join("ref"));
    let mut script = format!("{mount} >&2 || exit 77\n");
    for line in lines {
        script += &format!("code=0; \"$BC\" {line} || code=$?\n");
    }
    script += "umount m || true\nexit $code\n";
    let out = where_it_may_mount(&t, &script)?;
    if out.status.code() == Some(77) {
        left_out(&format!("{mount}: {}", out.error_text()));
        return None;
    }
    let said = format!("{script}{}{}", out.text(), out.error_text());
    assert_eq!(state(&t.join("ref")), before, "{said}");
    let code = out.status.code();
    assert!(code.is_some_and(|code| codes.contains(&code)), "{said}");
    Some(said)
}

fn every_view(check: impl Fn((&str, &str))) {
    VIEWS.into_iter().for_each(check);
}

/// Each action with and without `--force`, over PATHs and from a report that knows no reference.
fn actions(view: (&str, &str), reference: &str, paths: &str) {
    // Where the view shows other times, the answer comes last and is a step that was skipped.
    let codes: &[i32] = match view.1.contains("ctime") {
        true => &[1],
        false => &[0],
    };
    for action in ACTIONS {
        for force in ["", "--force"] {
            let prune =
                format!("dup prune --yes {force} --action={action} --reference={reference}");
            // A copy-up of an overlay's lower layer is for the file system to refuse or to do.
            if action != "reflink" {
                reference_stays(view, &[&format!("{prune} {paths}")], codes);
            }
            let scan = format!("dup --format=json --output=rep.json {paths}");
            reference_stays(view, &[&scan, &format!("{prune} --from=rep.json")], codes);
        }
    }
}

#[test]
fn x() {
    every_view(|view| actions(view, "ref", "m"));
}
#[test]
fn y() {
    every_view(|view| actions(view, "m", "ref"));
}
