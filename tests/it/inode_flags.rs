//! What an inode carries beside owner, mode and attributes would be another once a name leads to
//! another inode: `chattr`'s flags, the project, the encryption.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;
use crate::file_systems::{missing, script};

#[test]
fn flags_of_chattr_are_not_lost() {
    if tool("chattr").is_none() {
        return left_out("not installed: chattr");
    }
    let mut tried = 0;
    // Those that an owner, that root, and that only some file systems set.
    for flag in ["d", "A", "S", "j", "c", "C", "i", "a"] {
        for flagged in ["a", "b"] {
            let tree = TestTree::new();
            tree.write("d/a", "the same").write("d/b", "the same");
            let name = tree.join("d").join(flagged);
            let change = |how: String| tree.run("chattr").arg(how).arg(&name).go();
            if !change(format!("+{flag}")).status.success() {
                continue;
            }
            // Some are accepted and dropped.
            let listed = tree.run("lsattr").arg(&name).go().text();
            if !listed.split(' ').next().unwrap_or("").contains(flag) {
                continue;
            }
            tried += 1;
            for action in ["hardlink", "symlink"] {
                let line = format!("dup prune --action={action} --yes --journal=j d");
                let outcome = tree.bc_line(&line).go();
                outcome.code(1).stdout_is("");
                outcome.stderr_has(format!(
                    "the flag {flag} of chattr differs from the kept file's"
                ));
                outcome.stderr_has("1 skipped: different metadata");
            }
            let line = "dup prune --action=hardlink --ignore-metadata --dry-run d";
            let forced = tree.bc_line(line).go();
            match flag {
                // Nobody may change or link these, so none is promised.
                "i" | "a" => forced
                    .code(1)
                    .stderr_has("append-only or immutable (chattr)"),
                _ => forced.code(0).stdout_has("hardlink d/b"),
            };
            change(format!("-{flag}")).code(0);
            let line = "dup prune --action=hardlink --journal=j d";
            tree.bc_line(line).go().code(0).stdout_has("hardlink d/b");
        }
    }
    if tried == 0 {
        left_out("no flag can be set here");
    }
}

/// The copy has each flag of the original, or the move does not happen, or what is lost is named.
#[test]
fn flags_go_along_to_another_file_system_or_stop_the_move() {
    if tool("chattr").is_none() {
        return left_out("not installed: chattr");
    }
    let places = [std::env::temp_dir(), "/dev/shm".into()];
    let device = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    if device(&places[0]) == device(&places[1]) || tempfile::tempfile_in(&places[1]).is_err() {
        return left_out("no second file system");
    }
    let mut tried = 0;
    for (from, to) in [(0, 1), (1, 0)] {
        for flag in ["d", "A", "S", "s", "t", "c"] {
            let (tree, there) = (
                TestTree::new_in(&places[from]),
                TestTree::new_in(&places[to]),
            );
            tree.write("d/a", "the same").write("d/b", "the same");
            let change = tree.run("chattr").arg(format!("+{flag}")).arg("d/b").go();
            let has = |path: &Path| {
                let listed = tree.run("lsattr").arg(path).go().text();
                listed.split(' ').next().unwrap_or("").contains(flag)
            };
            if !change.status.success() || !has(&tree.join("d/b")) {
                continue;
            }
            tried += 1;
            let prune = |more: &str| {
                let to = there.path().display();
                let line =
                    format!("dup prune --action=move:{to} --keep=first --yes --journal=j {more} d");
                tree.bc_line(&line).go()
            };
            let moved = there.join("d/b");
            let outcome = prune("");
            if outcome.status.success() {
                assert!(has(&moved) && !tree.exists("d/b"), "{flag}");
                tree.bc_line("dup undo j").go().code(0);
                assert!(has(&tree.join("d/b")), "{flag}");
                continue;
            }
            let lost = format!("flag {flag} of chattr: ");
            outcome
                .code(1)
                .stderr_has(&lost)
                .stderr_has("1 skipped: metadata not kept");
            assert!(has(&tree.join("d/b")) && !moved.exists(), "{flag}");
            // Nor does a copy without it, that somebody made, count as the one to be made.
            tree.run("cp")
                .args(["-pr", "d"])
                .arg(there.path())
                .go()
                .code(0);
            prune("").code(1).stderr_has("its flags of chattr differ");
            std::fs::remove_dir_all(there.join("d")).unwrap();
            prune("--ignore-metadata").code(0).stderr_has(&lost);
            assert!(moved.exists() && !tree.exists("d/b"), "{flag}");
        }
    }
    if tried == 0 {
        left_out("no flag can be set here");
    }
}

#[test]
fn a_project_is_not_lost() {
    if let Some(reason) = missing(&["mkfs.xfs", "xfs_io", "losetup", "truncate"]) {
        return left_out(&reason);
    }
    let tree = TestTree::new();
    let text = "truncate -s 400M img; mkfs.xfs -q img
        mount -o loop img $M 2>err.txt || { echo cannot mount: $(cat err.txt) >&2; exit 77; }
        echo same >$M/a; cp $M/a $M/b; xfs_io -c 'chproj 7' $M/b
        status=0; $BC dup prune --action=hardlink --journal=j $M || status=$?
        umount $M; exit $status";
    if let Some(outcome) = script(&tree, text) {
        outcome.code(1).stdout_is("");
        outcome.stderr_has("the project (quota) differs from the kept file's");
    }
}

/// Gives a directory an encryption policy (v2) of a raw key: `fscryptctl` in eight lines.
const ENCRYPT: &str = "
import fcntl, os, struct, sys
root, directory, key = sys.argv[1:]
key = struct.pack('II32sII32s', 2, 0, b'', 64, 0, b'') + key.encode() * 64
key = bytearray(key)
fcntl.ioctl(os.open(root, os.O_RDONLY), 0xc0506617, key)
policy = struct.pack('BBBBB3s16s', 2, 1, 4, 0, 0, b'', bytes(key[8:24]))
fcntl.ioctl(os.open(directory, os.O_RDONLY), 0x800c6613, policy)
";

#[test]
fn no_link_crosses_the_border_of_encryption() {
    if let Some(reason) = missing(&["mkfs.ext4", "python3", "losetup", "truncate"]) {
        return left_out(&reason);
    }
    for (keep, linked) in [("one", "one/b"), ("plain", "")] {
        let tree = TestTree::new();
        tree.write("encrypt.py", ENCRYPT);
        let text = format!(
            "truncate -s 64M img; mkfs.ext4 -q -O encrypt img
            mount -o loop img $M 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
            mkdir $M/one $M/two $M/plain
            for key in one two; do
                python3 encrypt.py $M $M/$key ${{key%??}} 2>err.txt || {{ echo cannot mount encrypted: $(cat err.txt) >&2; umount $M; exit 77; }}
            done
            for file in one/a one/b two/a plain/a; do echo same >$M/$file; done
            for action in hardlink symlink; do for more in --dry-run --ignore-metadata; do
                echo $action $more
                $BC dup prune --action=$action --yes --journal=j --keep=path:{keep} $more $M || echo $?
            done; done
            ls -l $M/*; umount $M"
        );
        let Some(outcome) = script(&tree, &text) else {
            return;
        };
        outcome.code(0);
        let text = outcome.text();
        let done: Vec<&str> = text.lines().filter(|line| line.contains(" to ")).collect();
        assert!(
            done.iter()
                .all(|line| !linked.is_empty() && line.contains(linked)),
            "{text}"
        );
        assert_eq!(
            text.lines().filter(|line| *line == "1").count(),
            4,
            "{text}"
        );
        outcome.stderr_has("encrypted otherwise than the kept file, or only one of them is");
        outcome.stderr_has("skipped: different encryption");
    }
}
