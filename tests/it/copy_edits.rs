//! `bc copy` of which a conflict has left a journal: what the user has edited of it since is his in
//! another mount name space and after a remount, and two disks that are used in turn at one mount
//! point have a journal each.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bc_testkit::{TestTree, left_out, loop_disk};

use crate::common::Bc;
use crate::file_systems::{missing, script};

fn tree() -> TestTree {
    let t = TestTree::new();
    for name in ["edited", "secret", "kept", "mine"] {
        let path = format!("r/{name}");
        t.write(&path, format!("of the source: {name}"))
            .mtime(path, 5, 1000);
    }
    t
}

/// Writes into a file as it is, with its size and time.
fn edit_in_secret(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"MY", 0).unwrap();
    file.set_modified(time).unwrap();
}

/// The one in the way, and two that are edited.
fn edited_meanwhile(t: &TestTree, to: &Path, again: impl FnOnce() -> Option<i32>) {
    std::fs::create_dir(to).unwrap();
    std::fs::write(to.join("mine"), "the user's").unwrap();
    t.bc_line(&format!("copy -T r {}", to.display()))
        .go()
        .code(1);
    std::fs::write(to.join("edited"), "my own words").unwrap();
    edit_in_secret(&to.join("secret"));
    let Some(code) = again() else {
        return;
    };
    assert_eq!(code, 1);
    let read = |name: &str| std::fs::read_to_string(to.join(name)).unwrap();
    assert_eq!(read("mine"), "the user's");
    assert_eq!(read("edited"), "my own words");
    assert_eq!(read("secret"), "MY the source: secret");
    assert_eq!(read("kept"), "of the source: kept");
}

#[test]
fn in_another_mount_name_space() {
    if let Some(reason) = missing(&[]) {
        return left_out(&reason);
    }
    let t = tree();
    edited_meanwhile(&t, &t.join("to"), || {
        script(&t, "exec $BC copy -T r to")?.status.code()
    });
}

#[test]
fn after_a_remount() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let t = tree();
        let disk = match loop_disk(kind, 512 << 20) {
            Ok(disk) => disk,
            Err(reason) => {
                left_out(&reason);
                continue;
            }
        };
        let to = disk.path().join("to");
        edited_meanwhile(&t, &to, || {
            disk.mount_again().unwrap();
            t.bc_line(&format!("copy -T r {}", to.display()))
                .go()
                .status
                .code()
        });
    }
}

#[test]
fn two_disks_in_turn_at_one_mount_point() {
    if let Some(reason) = missing(&["mkfs.ext4"]) {
        return left_out(&reason);
    }
    let t = tree();
    let text = "
        for n in 1 2; do
            truncate -s 32M disk$n; mkfs.ext4 -q disk$n
            mount -o loop disk$n $M || { echo cannot mount >&2; exit 77; }
            mkdir $M/to; echo mine > $M/to/mine; umount $M
        done
        for n in 1 2 1 2; do
            mount -o loop disk$n $M
            $BC copy -T --manifest=none r $M/to > said 2>&1 && exit 1
            grep -c File.exists said
            umount $M
        done
        for n in 1 2; do
            mount -o loop disk$n $M
            $BC copy -T --manifest=none --on-conflict=replace r $M/to 2> said
            grep -o '[0-9] of them.*' said
            umount $M
        done
        ls $XDG_STATE_HOME/bc/copy | wc -l";
    let text = format!("export XDG_STATE_HOME=$PWD/state; {text}");
    let Some(outcome) = script(&t, &text) else {
        return;
    };
    outcome
        .code(0)
        .stdout_is("1\n1\n1\n1\n3 of them by an earlier run\n3 of them by an earlier run\n0\n");
}
