//! What may be where a disk or a file was mounted when the tree was recorded: every state against
//! every command that reads the tree.

use bc_testkit::{TestTree, left_out};

use crate::integrity_mounts::{mounting, mounting_says, says};

/// What a state is taken for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum As {
    /// What was recorded: nothing to say.
    Recorded,
    /// Missing: `??` by every command, and the records stay.
    Missing,
    /// Another file system: verify compares what is there, update keeps the records.
    Other,
}

/// The state, how to come to it from the mounted one, and what it is taken for. `$A` is what was
/// mounted, `$B` another one on the same file system, `$P` the place.
type State = (&'static str, &'static str, As);

const DIRECTORIES: [State; 10] = [
    ("mounted", "", As::Recorded),
    ("mounted again", "umount $P; bind $A", As::Recorded),
    ("mounted twice", "bind $A", As::Recorded),
    ("read-only", "mount -o remount,bind,ro $P", As::Recorded),
    ("unmounted", "umount $P", As::Missing),
    ("lazy-unmounted", "umount -l $P", As::Missing),
    (
        "another disk",
        "umount $P; mount -t tmpfs new $P; echo 1 >$P/a; echo 2 >$P/c",
        As::Other,
    ),
    (
        "another directory of the disk",
        "umount $P; bind $B",
        As::Other,
    ),
    (
        "an empty disk",
        "umount $P; mount -t tmpfs new $P",
        As::Missing,
    ),
    ("a plain directory", "umount $P; cp -a $A/. $P", As::Missing),
];

const FILES: [State; 7] = [
    ("mounted", "", As::Recorded),
    ("mounted again", "umount $P; bind $A", As::Recorded),
    ("read-only", "mount -o remount,bind,ro $P", As::Recorded),
    ("unmounted", "umount $P", As::Missing),
    ("lazy-unmounted", "umount -l $P", As::Missing),
    ("another file of the disk", "umount $P; bind $B", As::Other),
    (
        "a file of another disk",
        "umount $P; mkdir $S/new; mount -t tmpfs new $S/new; echo longer-than-it-was >$S/new/f; bind $S/new/f",
        As::Other,
    ),
];

/// Says exit code and how many lines are about the place, of verify, update, another manifest,
/// and an update back in the recorded state; between them how many records there are.
const ROW: &str = r#"
    bind() { mount --bind "$1" "$P"; }
    said() {
        out=$("$BC" integrity "$@"); code=$?
        echo "$1: $code $(printf '%s\n' "$out" | grep -c "^?? $P: ")"
    }
    echo x >kept
    bind "$A"
    "$BC" integrity manifest --output="$M" . || echo "not recorded"
    grep -c '"mount":' "$M"
"#;

fn row(place: &str, base: &str, (name, change, taken): State) -> bool {
    let t = TestTree::new();
    let script = format!(
        r#"
        echo {name:?}
        P={place}
        {base}
        {ROW}
        {change}
        before=$(count $P)
        said verify . "$M"
        said update . "$M"
        [ $(count $P) = $before ] && echo kept
        said update . "$M"
        said manifest --output="$S/again" .
        umount $P 2>/dev/null
        [ {name:?} = "a plain directory" ] && rm -r $P/*
        bind "$A"
        said update . "$M"
        said verify . "$M"
        "#
    );
    let Some(outcome) = mounting(&t, &script) else {
        return false;
    };
    let (verify, update) = match taken {
        As::Recorded => ("verify: 0 0", "update: 0 0"),
        As::Missing => ("verify: 1 1", "update: 1 1"),
        As::Other => ("verify: 1 *", "update: 1 1"),
    };
    says(
        &outcome,
        &[
            name,
            "1",
            verify,
            update,
            "kept",
            update,
            "manifest: 0 0",
            "update: 0 0",
            "verify: 0 0",
        ],
    );
    true
}

#[test]
fn every_state_of_a_mounted_directory() {
    for base in [
        r#"A="$S/one"; B="$S/other""#,
        r#"A="$S/two/a"; B="$S/two/b""#,
    ] {
        let base = format!(
            r#"{base}; fill "$A"; mkdir -p "$B" disk; echo else >"$B/a"; echo more >"$B/d""#
        );
        for state in DIRECTORIES {
            if !row("disk", &base, state) {
                return;
            }
        }
    }
}

#[test]
fn every_state_of_a_mounted_file() {
    let base = r#"A="$S/one/f"; B="$S/one/g"; echo first >"$A"; echo 2nd >"$B"
        echo below >file; touch -d @1000 file"#;
    for state in FILES {
        if !row("file", base, state) {
            return;
        }
    }
}

/// A file of the same size and time below it is neither damaged nor what was recorded.
#[test]
fn what_a_mounted_file_hid_is_not_damaged() {
    let t = TestTree::new();
    let script = r#"
        fill "$S/one"
        echo FIRST >a
        touch -d @1000 a "$S/one/a"
        mount --bind "$S/one/a" a
        bc manifest --output="$M" .
        umount a
        bc verify --quiet . "$M"
        bc update --quiet . "$M"
        bc update --quiet --reread=100% . "$M"
        bc update --quiet --force --accept-damaged . "$M"
        bc verify . "$M"
    "#;
    let Some(outcome) = mounting(&t, script) else {
        return;
    };
    let lost = "?? a: a file (*";
    says(
        &outcome,
        &[
            "exit 0", lost, "exit 1", lost, "exit 1", lost, "exit 1", "!! a: *", "exit 3", "exit 0",
        ],
    );
}

/// Nor is a file that is mounted over a recorded one.
#[test]
fn a_file_that_hides_another_takes_no_record() {
    let t = TestTree::new();
    let script = r#"
        fill "$S/one"
        echo plain >a
        bc manifest --output="$M" .
        mount --bind "$S/one/sub/b" a
        bc update --quiet . "$M"
        umount a
        bc verify . "$M"
        mount --bind "$S/one/sub/b" a
        bc update --quiet --force . "$M"
        bc verify . "$M"
    "#;
    mounting_says(
        &t,
        script,
        &[
            "exit 0",
            "?? a: another file is mounted here now*",
            "exit 1",
            "exit 0",
            "exit 0",
            "exit 0",
        ],
    );
}

/// Where the file system is known, files that both directories have change nothing: a snapshot,
/// or yesterday's backup, is not today's.
#[test]
fn another_directory_of_the_disk_with_the_same_files() {
    let t = TestTree::new();
    t.dir("disk");
    let script = r#"
        fill "$S/one"; cp -a "$S/one" "$S/other"; echo later >"$S/other/c"; rm "$S/other/sub/b"
        up one disk
        bc manifest --output="$M" .
        grep -q '"fs_uuid":null,"mount_source":"[^/]*",' "$M" && echo "no name"
        umount disk
        up other disk
        bc verify . "$M"
        bc update --quiet . "$M"
        count disk/
        bc update --quiet --force . "$M"
        count disk/
        bc update . "$M"
        # Renamed while it is mounted it is the same one.
        mv "$S/other" "$S/renamed"
        bc update . "$M"
        bc verify . "$M"
    "#;
    let Some(outcome) = mounting(&t, script) else {
        return;
    };
    if outcome.text().contains("no name") {
        return left_out("a file system without a name");
    }
    says(
        &outcome,
        &[
            "exit 0",
            "?? disk: *",
            "+ disk/c",
            "exit 1",
            "?? disk: *",
            "exit 1",
            "3",
            "exit 0",
            "3",
            "exit 0",
            "exit 0",
            "exit 0",
        ],
    );
}

/// The root itself may be such a mount: where nothing matches, it is refused as another disk is.
#[test]
fn another_directory_of_the_disk_at_the_root() {
    let t = TestTree::new();
    t.dir("disk").write("disk/hidden", "below the mount");
    let script = r#"
        fill "$S/one"; mkdir "$S/other"; echo else >"$S/other/a"; echo d >"$S/other/d"
        up one disk
        bc manifest --output="$M" disk
        umount disk
        for state in below other; do
            bc verify disk "$M" 2>&1
            bc update disk "$M" 2>&1
            up other disk
        done
        umount disk
        up one disk
        bc update disk "$M"
        bc verify disk "$M"
        umount disk
        bc update --quiet --force disk "$M"
        bc verify disk "$M" 2>&1
    "#;
    let Some(outcome) = mounting(&t, script) else {
        return;
    };
    let refused = "bc integrity: disk: shows another part of the disk than recorded*";
    says(
        &outcome,
        &[
            "exit 0", refused, "exit 2", refused, "exit 2", refused, "exit 2", refused, "exit 2",
            "exit 0", "exit 0", "exit 0", "exit 0",
        ],
    );
}

/// A snapshot in the place of its subvolume, also under the subvolume's name.
#[test]
fn a_btrfs_snapshot_is_not_its_subvolume() {
    let t = TestTree::new();
    t.dir("disk");
    if let Some(missing) = ["mkfs.btrfs", "btrfs", "truncate"]
        .into_iter()
        .find(|name| bc_testkit::tool(name).is_none())
    {
        return left_out(missing);
    }
    let script = r#"
        truncate -s 128M "$S/image"
        mkfs.btrfs -q "$S/image" >/dev/null
        part() { mount -o loop,subvol=$1 "$S/image" disk; }
        mount -o loop "$S/image" "$S/one" 2>/dev/null || { echo cannot; exit; }
        btrfs -q subvolume create "$S/one/now"
        fill "$S/one/now"
        btrfs -q subvolume snapshot "$S/one/now" "$S/one/then"
        part now
        bc manifest --output="$M" .
        umount disk; part then
        bc update --quiet . "$M"
        umount disk; part now
        bc update --quiet . "$M"
        umount disk
        mv "$S/one/now" "$S/one/old"; mv "$S/one/then" "$S/one/now"
        part now
        bc update --quiet . "$M"
        bc update --quiet --force . "$M"
        bc verify . "$M"
    "#;
    let Some(outcome) = mounting(&t, script) else {
        return;
    };
    if outcome.text().contains("cannot") {
        return left_out("mounting btrfs");
    }
    says(
        &outcome,
        &[
            "exit 0",
            "?? disk: *",
            "exit 1",
            "exit 0",
            "?? disk: *",
            "exit 1",
            "exit 0",
            "exit 0",
        ],
    );
}

/// The layers of an overlay have no name of their own; their files tell.
#[test]
fn an_overlay_with_other_layers() {
    let t = TestTree::new();
    t.dir("disk");
    let script = r#"
        fill "$S/two/a"; mkdir "$S/two/b"; echo else >"$S/two/b/a"; echo d >"$S/two/b/d"
        cp -a "$S/two/a" "$S/two/c"; mkdir "$S/two/e"
        over() { mount -t overlay overlay -o lowerdir="$S/two/$1:$S/two/e" disk; }
        over a 2>/dev/null || { echo cannot; exit; }
        bc manifest --output="$M" .
        for layer in a b c a; do
            umount disk; over $layer
            bc update --quiet . "$M"
        done
        bc verify . "$M"
    "#;
    let Some(outcome) = mounting(&t, script) else {
        return;
    };
    if outcome.text().contains("cannot") {
        return left_out("mounting an overlay");
    }
    says(
        &outcome,
        &[
            "exit 0",
            "exit 0",
            "?? disk: *",
            "exit 1",
            "exit 0",
            "exit 0",
            "exit 0",
        ],
    );
}
