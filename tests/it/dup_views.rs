//! References and destinations that are seen under other numbers: through an overlay or a FUSE
//! file system nothing of a reference is changed either, and what was moved stays where it is.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out, tool};

use crate::dup_reference::where_it_may_mount;

/// A way to show the directory `ref` as `m`: the tool it needs and the command.
pub type View = (&'static str, &'static str);

const BINDFS: View = ("bindfs", "bindfs ref m");
const LOSSY: View = ("bindfs", "bindfs --ctime-from-mtime ref m");
const UPPER: View = (
    "mount",
    "mount -t overlay overlay -o lowerdir=low,upperdir=ref,workdir=wk m",
);
const LOWER: View = (
    "mount",
    "mount -t overlay overlay -o lowerdir=ref,upperdir=up,workdir=wk m",
);
const FUSE_UPPER: View = (
    "fuse-overlayfs",
    "fuse-overlayfs -o lowerdir=low,upperdir=ref,workdir=wk m",
);
const FUSE_LOWER: View = (
    "fuse-overlayfs",
    "fuse-overlayfs -o lowerdir=ref,upperdir=up,workdir=wk m",
);
const POOL: View = ("mergerfs", "mergerfs ref m");
const POOL_OF_TWO: View = ("mergerfs", "mergerfs other:ref m");
const VIEWS: [View; 8] = [
    BINDFS,
    LOSSY,
    UPPER,
    LOWER,
    FUSE_UPPER,
    FUSE_LOWER,
    POOL,
    POOL_OF_TWO,
];

pub const ACTIONS: [&str; 5] = ["hardlink", "delete", "symlink", "move:moved", "reflink"];

/// Two equal files of a reference, one of them with a second name elsewhere, and one more in an
/// inbox.
pub fn tree() -> TestTree {
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
pub fn state(dir: &Path) -> BTreeMap<PathBuf, (u64, u64, i64, Vec<u8>)> {
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

/// Runs `mount` and then `bc` with each line; expects `ref` as it was whatever is done, and gives
/// the exit codes and what was said.
fn reference_stays(view: View, lines: &[String]) -> Option<(Vec<i32>, String)> {
    let t = tree();
    let before = state(&t.join("ref"));
    let out = run(&t, view, lines)?;
    assert_eq!(state(&t.join("ref")), before, "{}", out.1);
    Some(out)
}

/// The same without expecting anything.
pub fn run(t: &TestTree, (needed, mount): View, lines: &[String]) -> Option<(Vec<i32>, String)> {
    if tool(needed).is_none() {
        left_out(&format!("{needed} is not installed"));
        return None;
    }
    let mut script = format!("{mount} >&2 || exit 77\n");
    for line in lines {
        script += &format!("code=0; \"$BC\" {line} >&2 || code=$?; echo $code\n");
    }
    // A server of FUSE ends with its mount.
    script += "umount m\n";
    let out = where_it_may_mount(t, &script)?;
    let said = format!("{script}{}", out.error_text());
    if out.status.code() == Some(77) {
        left_out(&said);
        return None;
    }
    assert_eq!(out.status.code(), Some(0), "{said}");
    let codes = out.text();
    let codes = codes.lines().map(|code| code.parse().unwrap());
    Some((codes.collect(), said))
}

/// Each action with and without `--force`, over PATHs and from a report that knows no reference.
fn every_action(reference: &str, paths: &str) -> Vec<String> {
    let mut lines = vec![format!("dup --format=json --output=rep.json {paths}")];
    for action in ACTIONS {
        let prune = |mode: &str, from: &str| {
            format!("dup prune {mode} --action={action} --reference={reference} {from}")
        };
        lines.push(prune("--dry-run", paths));
        for mode in ["--yes", "--yes --force"] {
            lines.extend([paths, "--from=rep.json"].map(|from| prune(mode, from)));
        }
    }
    lines
}

fn references(view: View) {
    for (reference, paths) in [("ref", "m"), ("m", "ref")] {
        let Some((codes, said)) = reference_stays(view, &every_action(reference, paths)) else {
            return;
        };
        // Where the view shows other times, there is no answer: the step is skipped.
        let lossy = view == LOSSY;
        let fine = |code: &i32| *code == 0 || lossy && *code == 1;
        assert!(codes.iter().all(fine), "{codes:?} {said}");
    }
}

#[test]
fn nothing_of_a_reference_is_changed_through_bindfs() {
    references(BINDFS);
}

#[test]
fn nothing_of_a_reference_is_changed_through_a_view_with_other_times() {
    references(LOSSY);
}

#[test]
fn nothing_of_a_reference_is_changed_through_an_overlay_that_writes_to_it() {
    references(UPPER);
}

#[test]
fn nothing_of_a_reference_is_changed_through_an_overlay_above_it() {
    references(LOWER);
}

#[test]
fn nothing_of_a_reference_is_changed_through_fuse_overlayfs_that_writes_to_it() {
    references(FUSE_UPPER);
}

#[test]
fn nothing_of_a_reference_is_changed_through_fuse_overlayfs_above_it() {
    references(FUSE_LOWER);
}

#[test]
fn nothing_of_a_reference_is_changed_through_mergerfs() {
    references(POOL);
}

#[test]
fn nothing_of_a_reference_is_changed_through_mergerfs_with_another_branch() {
    references(POOL_OF_TWO);
}

/// What equals a reference's file and is none is dealt with as ever, with the same directory and
/// file names or not.
#[test]
fn other_files_are_dealt_with_where_views_are_involved() {
    for view in VIEWS {
        for (reference, paths) in [("ref", "m in"), ("m", "in")] {
            let t = tree();
            let before = state(&t.join("ref"));
            let prune = "dup prune --action=delete --force";
            let lines = ["--dry-run", "--yes"]
                .map(|mode| format!("{prune} {mode} --reference={reference} {paths}"));
            let Some((codes, said)) = run(&t, view, &lines) else {
                break;
            };
            // Files that may be a reference's are skipped.
            let code = i32::from(view == LOSSY && paths != "in");
            assert_eq!(codes, [code; 2], "{said}");
            assert_eq!(state(&t.join("ref")), before, "{said}");
            assert!(!t.exists("in/sub/f2"), "{said}");
            assert_eq!(
                std::fs::read_dir(t.join("in/sub")).unwrap().count(),
                0,
                "{said}"
            );
        }
    }
}

/// Another name of a reference's file, which the reference does not have, in a view.
#[test]
fn other_names_of_a_references_file_are_left_alone_in_a_view() {
    for mount in ["bindfs . m", "mergerfs .:other m"] {
        let t = tree();
        t.hard_link("ref/f1", "in/alias");
        let before = state(&t.join("ref"));
        let lines = ["hardlink", "delete", "symlink"].map(|action| {
            format!("dup prune --yes --force --action={action} --reference=ref m/in/alias")
        });
        let needed = mount.split(' ').next().unwrap();
        let Some((codes, said)) = run(&t, (needed, mount), &lines) else {
            continue;
        };
        assert_eq!(codes, [0; 3], "{said}");
        assert_eq!(state(&t.join("ref")), before, "{said}");
        assert!(t.exists("in/alias"));
    }
}

#[test]
fn a_reference_that_is_a_file_is_known_in_a_view() {
    for view in VIEWS {
        let t = tree();
        t.write("ref/f3", "same");
        let before = state(&t.join("ref"));
        let kept = "--reference=ref/f1 --reference=ref/f3 --reference=ref/sub/f2";
        let lines = ["hardlink", "delete"]
            .map(|action| format!("dup prune --yes --force --action={action} {kept} m"));
        let Some((codes, said)) = run(&t, view, &lines) else {
            continue;
        };
        assert!(codes == [0; 2] || view == LOSSY, "{codes:?} {said}");
        assert_eq!(state(&t.join("ref")), before, "{said}");
    }
}

/// Nor into a directory of a reference that is without anything.
#[test]
fn nothing_is_moved_into_a_reference_through_a_view() {
    for view in VIEWS {
        let writes_elsewhere = view == LOWER || view == FUSE_LOWER || view == POOL_OF_TWO;
        let targets = [
            ("m/sub", "ref"),
            ("m/sub/new/deep", "ref"),
            ("m", "ref"),
            ("m/new", "ref"),
            ("ref/sub", "m"),
            ("ref", "m"),
            ("ref/none/new", "m"),
            ("m/none", "ref"),
        ];
        let line = |mode: &'static str| {
            let of = move |(to, reference): (&str, &str)| {
                format!("dup prune {mode} --action=move:{to} --reference={reference} in")
            };
            targets.map(of)
        };
        let lines = [line("--dry-run"), line("--yes")].concat();
        let Some((codes, said)) = reference_stays(view, &lines) else {
            continue;
        };
        for ((to, _), codes) in targets
            .iter()
            .zip(codes.iter().zip(&codes[targets.len()..]))
        {
            let fine = match view == LOSSY || to.contains("none") {
                // Then all of it lies in the destination.
                true if *to == "m" || *to == "ref" => true,
                true => *codes.1 == 1 || *codes.1 == 2 || writes_elsewhere,
                false => codes == (&2, &2),
            };
            assert!(fine, "{to}: {codes:?} {said}");
        }
    }
}

#[test]
fn a_destination_around_a_reference_is_refused_in_a_view() {
    let t = tree();
    let line = "dup prune --yes --action=move:m --reference=ref/sub in".to_owned();
    let Some((codes, said)) = run(&t, BINDFS, &[line]) else {
        return;
    };
    assert_eq!(codes, [2], "{said}");
    assert!(said.contains("a --reference lies below it"), "{said}");
}

/// However the destination is reached, a second run finds nothing to do.
fn moved_once(views: &[View]) {
    for (needed, mount) in views {
        for (to, paths) in [
            ("m/dest", "ref"),
            ("m/sub/dest", "ref in"),
            ("ref/dest", "m in"),
        ] {
            let t = tree();
            t.dir("ref/dest").dir("ref/sub/dest");
            let prune = |keep: &str| {
                format!("dup prune --yes --force --action=move:{to} --keep={keep} {paths}")
            };
            let keep = [
                "shortest-path",
                "shortest-path",
                "longest-path",
                "first",
                "last",
            ];
            let Some((codes, said)) = run(&t, (*needed, *mount), &keep.map(prune)) else {
                break;
            };
            assert_eq!(codes, [0; 5], "{said}");
            assert_eq!(said.matches("nothing to do").count(), 4, "{said}");
        }
    }
}

#[test]
fn what_was_moved_is_known_in_a_view() {
    // A view that shows other times is not known: what was moved goes further down once more.
    moved_once(&[BINDFS, UPPER]);
}

#[test]
fn what_was_moved_is_known_in_a_union() {
    // Of the lower layer of an overlay nothing is moved.
    moved_once(&[FUSE_UPPER, POOL, POOL_OF_TWO]);
}

/// Where looks leave it open if a file is a reference's, a run and a dry run alike leave it alone and
/// say why; neither makes a file to find out.
#[test]
fn what_may_be_a_references_is_left_alone() {
    let t = tree();
    let times = || {
        let of = |dir: &str| std::fs::metadata(t.join(dir)).unwrap().modified().unwrap();
        ["ref", "ref/sub"].map(of)
    };
    let (before, at) = (state(&t.join("ref")), times());
    let lines = ["--dry-run", "--yes"]
        .map(|mode| format!("dup prune {mode} --force --action=delete --reference=ref m"));
    let Some((codes, said)) = run(&t, LOSSY, &lines) else {
        return;
    };
    assert_eq!(codes, [1, 1], "{said}");
    let reason = "whether a reference has it, or the destination, is not known";
    assert_eq!(said.matches(reason).count(), 4, "{said}");
    assert_eq!((state(&t.join("ref")), times()), (before, at), "{said}");
}
