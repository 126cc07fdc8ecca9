//! `bc dup unique` when the only other copy is the card itself, met again: in a manifest of the tree
//! that it was mounted in, as another device, at another place, through a view. Each script asks in
//! ways that may never be answered with 0.

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;
use crate::dup_reference::where_it_may_mount;

/// What a script has to begin with: a card of some file system with two files whose content is
/// nowhere else, and `ask`, which writes the exit code and the line.
const BEGIN: &str = r#"
    S=$(dirname "$PWD"); cd "$S"; mkdir top top/mp mp2 mp3 b
    none() { echo "$*" >&2; exit 77; }
    release() { set +e; for at in mp2 mp3 b top/mp; do umount $at 2>/dev/null; done; for one in $LOOPS; do losetup -d $one; done; true; }
    LOOPS=; trap release EXIT
    device() { losetup -f --show "$S/img" || none no loop device; }
    files() { printf 'a photo' > "$1/x"; mkdir "$1/sub"; printf 'another' > "$1/sub/y"; touch -d 2020-02-02T02:02:02 "$1/x"; }
    ask() { code=0; "$BC" dup unique "$@" >&2 || code=$?; echo "$code $*"; }
    manifest() { "$BC" integrity manifest "$@" >&2 || none no manifest; }
"#;

/// Runs it, and expects that no question was answered with "safe".
fn never_safe(needed: &[&str], script: &str) {
    answers(needed, script, |code| matches!(code, "1" | "2"));
}

fn answers(needed: &[&str], script: &str, expected: impl Fn(&str) -> bool) {
    let needed = ["unshare", "mount"].iter().chain(needed);
    for needed in needed {
        if tool(needed).is_none() {
            return left_out(&format!("{needed} is not installed"));
        }
    }
    let t = TestTree::new();
    let Some(out) = where_it_may_mount(&t, &format!("{BEGIN}\n{script}")) else {
        return;
    };
    if out.status.code() == Some(77) {
        return left_out(&out.error_text());
    }
    let text = out.text();
    assert!(!text.is_empty(), "{out}");
    for line in text.lines() {
        let code = line.split(' ').next().unwrap_or_default();
        assert!(expected(code), "{line}\n{out}");
    }
}

const EXT4: &str = r#"
    truncate -s 4M img; mkfs.ext4 -q -O ^has_journal img; L=$(device) || exit 77; LOOPS="$L"
    mount $L top/mp || none cannot mount; files top/mp
"#;

#[test]
fn a_manifest_of_the_tree_that_the_card_was_mounted_in() {
    never_safe(
        &["mkfs.ext4", "losetup"],
        &format!(
            "{EXT4}
            manifest -o top.jsonl top
            mv top/mp/x top/mp/x9; ask top/mp --reference=top.jsonl --exclude=y
            ask top/mp/x9 --reference=top.jsonl
            umount top/mp; mount $L mp2
            ask mp2 --reference=top.jsonl
            mkdir mp2/new; mv mp2/x9 mp2/sub/y mp2/new
            ask mp2 --reference=top.jsonl
            mount --bind mp2/new mp3
            ask mp3 --reference=top.jsonl"
        ),
    );
}

#[test]
fn another_disk_that_was_mounted_there_still_counts() {
    answers(
        &["mkfs.ext4", "losetup"],
        &format!(
            "{EXT4}
            manifest -o top.jsonl top
            mv img other; truncate -s 4M img; mkfs.ext4 -q img; K=$(device) || exit 77; LOOPS=\"$L $K\"
            mount $K mp2 || none cannot mount; rm -rf mp2/lost+found top/mp/lost+found
            cp -pr top/mp/sub top/mp/x mp2
            ask mp2 --reference=top/mp
            umount top/mp
            ask mp2 --reference=top.jsonl"
        ),
        |code| code == "0",
    );
}

/// A manifest of a card of a file system whose UUID is not known, which is another device at another
/// place when it comes back.
fn comes_back(make: &str, needed: &[&str], mount: &str) {
    never_safe(
        needed,
        &format!(
            "truncate -s 8M img; {make} img >&2 || none cannot make it
            L=$(device) || exit 77; K=$(device) || exit 77; LOOPS=\"$L $K\"
            mkdir t; mount -t tmpfs none /dev/disk 2>/dev/null || true
            {mount} $L top/mp || none cannot mount; files top/mp
            manifest -o m.jsonl top/mp; manifest -o top.jsonl top
            sed -E 's/\"fs_uuid\":\"[^\"]*\"/\"fs_uuid\":null/' m.jsonl > n
            umount top/mp; {mount} $K mp2 || none cannot mount
            ask mp2 --reference=m.jsonl
            ask mp2 --reference=top.jsonl
            mv mp2/x mp2/sub; ask mp2/sub --exclude=y --reference=m.jsonl"
        ),
    );
}

#[test]
fn cards_whose_uuid_nobody_knows() {
    for make in ["mkfs.exfat", "mkfs.vfat"] {
        comes_back(make, &[make, "losetup"], "mount");
    }
}

#[test]
fn cards_that_a_fuse_program_reads() {
    comes_back(
        "mkfs.ntfs -q -F",
        &["mkfs.ntfs", "losetup", "ntfs-3g"],
        "ntfs-3g",
    );
}

#[test]
fn an_image_on_two_devices() {
    never_safe(
        &["mkfs.ext4", "losetup"],
        &format!(
            "{EXT4}
            sync; K=$(device) || exit 77; LOOPS=\"$L $K\"; mount -o ro $K mp2 || none no second
            ask top/mp --reference=mp2
            ask top/mp --reference=mp2 --verify-bytes
            ask mp2 --reference=top/mp
            ask top/mp --exclude=y --reference=mp2
            (cd mp2 && sha256sum x sub/y) > list; ask top/mp --reference=list
            sha256sum mp2/x mp2/sub/y > list; ask top/mp --reference=list"
        ),
    );
    never_safe(
        &["mkfs.ext4", "losetup", "fuse2fs"],
        &format!(
            "{EXT4}
            sync; fuse2fs -o ro img mp2 >&2 || none no second
            ask top/mp --reference=mp2
            ask mp2 --reference=top/mp"
        ),
    );
}

#[test]
fn manifests_and_lists_of_a_view() {
    for view in [
        "bindfs top/mp b",
        "bindfs --ctime-from-mtime top/mp b",
        "mkdir low; mount -t overlay overlay -o lowerdir=low:top/mp b",
    ] {
        let needed = view.split(' ').next().filter(|tool| *tool == "bindfs");
        let needed: Vec<&str> = ["mkfs.ext4", "losetup"].into_iter().chain(needed).collect();
        never_safe(
            &needed,
            &format!(
                "{EXT4}
                {view} >&2 || none no view
                manifest -o m.jsonl b
                sha256sum $PWD/b/x $PWD/b/sub/y > list
                ask top/mp --reference=m.jsonl
                ask top/mp --reference=list
                ask top/mp --reference=b
                umount b
                ask top/mp --reference=m.jsonl
                umount top/mp; mount $L mp2
                ask mp2 --reference=m.jsonl"
            ),
        );
    }
}

#[test]
fn views_that_change_names() {
    never_safe(
        &["mkfs.ext4", "losetup", "bindfs"],
        &format!(
            "{EXT4}
            mkdir links; ln -s $PWD/top/mp/x links/one; ln -s $PWD/top/mp/sub/y links/two
            bindfs --resolve-symlinks links b >&2 || none no view
            ask top/mp --reference=b"
        ),
    );
    never_safe(
        &["mkfs.ext4", "losetup"],
        &format!(
            "{EXT4}
            mkdir u; mount -t tmpfs none u; mkdir u/up u/wk
            mount -t overlay overlay -o metacopy=on,redirect_dir=on,lowerdir=top/mp,upperdir=u/up,workdir=u/wk b || none no overlay
            chmod 600 b/x; mv b/x b/other; mv b/sub b/elsewhere; touch b/elsewhere/y
            ask top/mp --reference=b; umount b
            mount -t overlay overlay -o metacopy=on,redirect_dir=on,lowerdir=$PWD/top/mp,upperdir=$PWD/u/up,workdir=$PWD/u/wk b || none no overlay
            ask top/mp --reference=b; ask top/mp/x --reference=b; umount b"
        ),
    );
}

#[test]
fn hashdeep_tells_where_it_was_made() {
    let t = TestTree::new();
    t.write("card/sub/a", "a photo");
    let digest = bc_digest::hash(bc_digest::Algorithm::Sha256, b"a photo");
    let here = std::fs::canonicalize(t.path()).unwrap();
    let text = format!(
        "%%%% HASHDEEP-1.0\n%%%% size,sha256,filename\n## Invoked from: {}/card/sub\n## $ hashdeep a\n## \n7,{digest},./a\n",
        here.display()
    );
    t.write("made/list", text);
    let ask = |list: &str| {
        t.bc_line(&format!("dup unique card --reference={list}"))
            .go()
    };
    ask("made/list").code(1).stdout_is("card/sub/a\n");
    // Relative to a PATH, or to what is above it.
    for name in ["sub/a", "./sub/a", "card/sub/a"] {
        t.write("made/sums", format!("{digest}  {name}\n"));
        ask("made/sums").code(1).stdout_is("card/sub/a\n");
    }
    t.write("made/sums", format!("{digest}  other/a\n"));
    ask("made/sums").code(0);
}

#[test]
fn views_by_ssh_of_files_with_odd_times() {
    never_safe(
        &["mkfs.ext4", "losetup", "sshfs"],
        &format!(
            "{EXT4}
            [ -x /usr/lib/openssh/sftp-server ] || none no sftp-server
            printf '#!/bin/sh\\nexec /usr/lib/openssh/sftp-server\\n' > serve; chmod +x serve
            touch -d 1960-02-02T02:02:02 top/mp/x; touch -d 2200-02-02T02:02:02.123456789 top/mp/sub/y
            sshfs -o ssh_command=$PWD/serve localhost:$PWD/top/mp b >&2 || none no sshfs
            ask top/mp --reference=b
            ask top/mp/x --reference=b
            ask top/mp --exclude=x --reference=b
            manifest -o m.jsonl b
            ask top/mp --reference=m.jsonl"
        ),
    );
}

#[test]
fn images_without_uuid_and_without_times_of_change() {
    never_safe(
        &["mksquashfs", "losetup"],
        "files b; touch b/sub; mksquashfs b img -quiet -no-progress >&2 || none no image
        rm -rf b/*
        L=$(device) || exit 77; K=$(device) || exit 77; LOOPS=\"$L $K\"
        mount -r $L top/mp || none cannot mount; mount -r $K mp2
        manifest -o m.jsonl top/mp; manifest -o top.jsonl top
        ask mp2 --reference=top/mp
        ask mp2 --reference=m.jsonl
        umount top/mp
        ask mp2 --reference=m.jsonl
        ask mp2 --reference=top.jsonl
        ask mp2/sub --reference=m.jsonl",
    );
}

/// Copies of a card on another disk and on a server's count, names and times kept.
#[test]
fn copies_on_other_disks_count() {
    answers(
        &["mkfs.ext4", "losetup"],
        &format!(
            "{EXT4}
            rm -rf top/mp/lost+found; mkdir archive; cp -pr top/mp/sub top/mp/x archive
            manifest -o m.jsonl archive
            ask top/mp --reference=archive
            ask top/mp --reference=archive --verify-bytes
            mount -t tmpfs none mp3; cp -pr top/mp/sub top/mp/x mp3
            ask top/mp --reference=mp3"
        ),
        |code| code == "0",
    );
    answers(
        &["mkfs.ext4", "losetup", "sshfs"],
        &format!(
            "{EXT4}
            [ -x /usr/lib/openssh/sftp-server ] || none no sftp-server
            printf '#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n' > serve; chmod +x serve
            mkdir archive; cp -pr top/mp/sub top/mp/x archive
            sshfs -o ssh_command=$PWD/serve localhost:$PWD/archive b >&2 || none no sshfs
            ask top/mp --reference=b"
        ),
        |code| code == "0",
    );
}

#[test]
fn what_a_mount_covers_below_a_path_that_is_too_long() {
    never_safe(
        &[],
        r#"
        n=$(printf 'd%.0s' $(seq 200)); mkdir deep; cd deep
        for i in $(seq 22); do mkdir $n; cd -P $n; done
        mkdir card card/sub; printf 'a photo' > card/a; printf 'only here' > card/sub/x
        mount -t tmpfs none card/sub || none cannot mount
        printf 'a photo' > "$S/b/a"; touch -d '1 hour ago' card/a "$S/b/a"
        ask card --reference="$S/b"
        umount card/sub; cd "$S"
        "#,
    );
}

#[test]
fn a_manifest_of_an_overlay_whose_layer_it_is() {
    never_safe(
        &[],
        r#"
        mkdir up; mount -t tmpfs none up; mkdir up/u up/w
        mount -t tmpfs none top/mp; files top/mp
        mount -t overlay ov -o "lowerdir=$PWD/top/mp,upperdir=$PWD/up/u,workdir=$PWD/up/w" b || none no overlay
        manifest -o ov.jsonl b; umount b; umount up
        ask top/mp --reference=ov.jsonl
        chmod 600 top/mp/x; ask top/mp --exclude=y --reference=ov.jsonl
        mv top/mp/x top/mp/z; ask top/mp --exclude=y --reference=ov.jsonl
        "#,
    );
}

#[test]
fn an_overlay_of_a_layer_with_a_comma_in_its_name() {
    never_safe(
        &["mkfs.ext4", "losetup"],
        &format!(
            r#"{EXT4}
            umount top/mp; mkdir 'my,card' up; mount $L 'my,card'; ln 'my,card/x' 'my,card/z'
            mount -t tmpfs none up; mkdir up/u up/w
            mount -t overlay ov -o "lowerdir=$PWD/my\,card,upperdir=$PWD/up/u,workdir=$PWD/up/w,metacopy=on" b || {{ umount 'my,card'; none no overlay; }}
            chmod 600 b/x b/z
            ask 'my,card' --exclude=y --reference=b
            umount b up; umount 'my,card'
            "#
        ),
    );
}

#[test]
fn a_pattern_of_directories_is_none_of_a_file_that_is_covered() {
    never_safe(
        &[],
        r#"
        printf 'only here' > top/mp/f; printf 'a photo' > top/mp/a; printf 'a photo' > b/a
        printf 'known' > b/k; cp b/k known
        touch -d '1 hour ago' top/mp/f top/mp/a b/a b/k known
        mount --bind known top/mp/f || none cannot mount
        ask top/mp --exclude=f/ --reference=b
        umount top/mp/f
        "#,
    );
}
