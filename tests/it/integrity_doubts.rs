//! What may be the recorded file, and may be another one: on a file system that keeps no times of
//! birth, and past a disk that is not mounted.

use bc_testkit::{TestTree, left_out};

use crate::integrity_mounts::{mounting, mounting_says, says};

/// Inodes of 128 bytes have no room for the time of birth.
#[test]
fn without_a_time_of_birth_a_renamed_file_is_possibly_damaged() {
    let t = TestTree::new();
    t.dir("disk")
        .write("good/a", "old")
        .mtime("good/a", 1000, 0);
    let script = r#"
        { truncate -s 8M "$S/img" && mke2fs -q -t ext4 -I 128 "$S/img" &&
          mount -o loop "$S/img" disk; } >/dev/null 2>&1 || { echo cannot; exit; }
        at() { touch -d @1000 "$1"; }
        printf old >disk/a; at disk/a; echo kept >disk/k
        bc manifest --output="$M" disk
        mv disk/a disk/b
        printf BAD | dd of=disk/b conv=notrunc status=none; at disk/b
        heal() { bc restore "$@" --discard-damaged --from=good disk "$M" 2>/dev/null; }
        bc verify --ignore=mtime,ctime,ino,dir-size,dir-nlink disk "$M" 2>/dev/null
        heal
        cat disk/a disk/b; echo
        rm disk/a
        bc update --quiet disk "$M"
        bc update --quiet disk "$M"
        bc verify --ignore=mtime,ctime,ino,dir-size,dir-nlink disk "$M" 2>/dev/null
        heal
        cat disk/b; echo
        heal --force
        cat disk/b; echo
        bc update --quiet disk "$M"
        umount disk
    "#;
    let Some(outcome) = mounting(&t, script) else {
        return;
    };
    if outcome.text().contains("cannot") {
        return left_out("a loop device with ext4 of small inodes");
    }
    says(
        &outcome,
        &[
            "exit 0",
            "~c a -> b: possibly moved and damaged; *",
            "exit 1",
            "+ a: from good/a",
            "!! b: damaged: possibly damaged, possibly a new file *",
            "exit 1",
            "oldBAD",
            "~c a -> b: possibly moved and damaged; *",
            "exit 1",
            "~c b: possibly moved and damaged; *",
            "exit 1",
            "~c b: possibly moved and damaged; *",
            "exit 1",
            "!! b: damaged: possibly damaged, possibly a new file *",
            "exit 1",
            "BAD",
            "+ b: from good/a",
            "exit 0",
            "old",
            "exit 0",
        ],
    );
}

/// The guards of a restore are those of verify, at the root and below it.
#[test]
fn nothing_is_restored_past_a_disk_that_is_not_mounted() {
    for disk in ["one", "two"] {
        let t = TestTree::new();
        t.write("kept", "x").dir("a/disk");
        let script = format!(
            r#"
            fill "$S/{disk}"
            up {disk} a/disk
            bc manifest --output="$M" .
            cp -a . "$S/copy"
            heal() {{ bc restore --from="$S/copy" "$@" "$M" 2>"$S/said"; }}
            why() {{ grep -c "$1.*(--force" "$S/said"; }}
            umount a/disk
            heal .; why "a/disk: a file system .*not mounted"
            ls a/disk
            mkdir "$S/else" && echo own >"$S/else/own"
            heal "$S/else"; why "else/a/disk: a file system .*not mounted"
            ls "$S/else"
            mkdir "$S/three" && mount -t tmpfs three "$S/three" && echo z >"$S/three/z"
            up three a/disk
            heal .; why "a/disk: another file system is mounted here"
            ls a/disk
            umount a/disk
            up {disk} a/disk
            rm a/disk/a
            heal .
            umount a/disk
            heal --force --dry-run .
            "#
        );
        mounting_says(
            &t,
            &script,
            &[
                "exit 0",
                "exit 2",
                "1",
                "exit 2",
                "1",
                "own",
                "exit 2",
                "1",
                "z",
                "+ a/disk/a: from *",
                "exit 0",
                "+ a/disk/a: from *",
                "+ a/disk/sub",
                "+ a/disk/sub/b: from *",
                "exit 0",
            ],
        );
    }
}
