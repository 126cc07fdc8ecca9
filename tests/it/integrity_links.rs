//! Manifests of trees whose links are followed: what is recorded at the end of a link is no more
//! gone than a disk that is not mounted, whatever the link shows meanwhile.

use bc_testkit::{TestTree, is_root};

use crate::integrity_mounts::{mounting, mounting_says, says};

/// What stands at the end of the links while the recorded files are away, on which disk they are
/// (`one` is a part of the tree's own file system), and how to come there from the mounted state;
/// `$A` is what was mounted at `$P`.
const AWAY: [(&str, &str, &str); 8] = [
    ("unmounted", "one", "umount $P"),
    ("unmounted", "two", "umount -l $P"),
    ("no directory", "one", "umount $P; rmdir $P"),
    (
        "a file in the way",
        "two",
        "umount $P; rmdir $P; echo file >$P",
    ),
    (
        "a loop in the way",
        "one",
        "umount $P; rmdir $P; ln -s disk $P",
    ),
    ("a plain directory", "one", OTHERS),
    ("a plain directory", "two", OTHERS),
    (
        "another directory of the disk",
        "one",
        "umount $P; mkdir -p $S/x/sub; echo 1 >$S/x/a; echo 2 >$S/x/sub/b; mount --bind $S/x $P",
    ),
];

/// Files of the same names with other contents.
const OTHERS: &str = "umount $P; cp $A/sub/b $P/a; mkdir $P/sub; cp $A/a $P/sub/b";

/// Whatever is in its place keeps the records of files and directories at the ends of links, makes
/// the exit code 1 every night, and never has damage recorded as right.
#[test]
fn what_a_link_led_to_keeps_its_records_while_it_is_away() {
    for (name, disk, away) in AWAY {
        // What is mounted there may be compared, as it is below the root.
        let verify = match name {
            "another directory of the disk" => "verify: 1 *",
            _ => "verify: 1 4",
        };
        let t = TestTree::new();
        let script = format!(
            r#"
            echo {name:?}
            A="$S/{disk}"; P="$S/disk"
            fill "$A"; mkdir "$P" t; touch -d @1000 "$A/a" "$A/sub/b"
            mount --bind "$A" "$P"
            # Relative, absolute, through another link, and to a directory.
            ln -s "$P/a" t/absolute; ln -s absolute t/chained; ln -s "$P/sub" t/dir
            ln -s "../rel/a" t/relative; ln -s "$P" rel
            echo own >t/own; touch -d @1000 t/own
            said() {{ out=$("$BC" integrity "$@"); code=$?
                echo "$1: $code $(printf '%s\n' "$out" | grep -c '^?? ')"; }}
            bc manifest --follow-symlinks --output="$M" t
            recorded() {{ grep '"type":"entry"' "$M" | grep -v '"path":"\(\.\|own\)"' | sed 's/,"dev":[0-9]*//; s/,"unseen_at":"[^"]*"//' | sha256sum; }}
            before=$(recorded)
            {away}
            said verify t "$M"
            said update --quiet t "$M"
            said update --quiet --reread=100% --accept-damaged t "$M"
            [ "$(recorded)" = "$before" ] || grep '"type":"entry"' "$M"
            umount "$P" 2>/dev/null; rm -rf "$P"; mkdir "$P"; mount --bind "$A" "$P"
            said verify t "$M"
            echo FIRST >"$A/a"; touch -d @1000 "$A/a"
            bc update --quiet t "$M" | cut -d: -f1
            bc verify --quiet t "$M" | cut -d: -f1
            "#
        );
        let Some(outcome) = mounting(&t, &script) else {
            return;
        };
        says(
            &outcome,
            &[
                name,
                "exit 0",
                verify,
                "update: 1 4",
                "update: 1 4",
                "verify: 0 0",
                "!! absolute",
                "!! chained",
                "!! relative",
                "exit 3",
                "!! absolute",
                "!! chained",
                "!! relative",
                "exit 3",
            ],
        );
    }
}

/// Without any mount: the link to what was a file or a directory leads nowhere, for every reason.
#[test]
fn a_link_that_broke_keeps_the_record_until_force() {
    let away = [
        ("it is gone", "rm ../far/f; rm -r ../far/d"),
        ("its directory is gone", "mv ../far ../away"),
        ("a file is in the way", "mv ../far ../away; echo >../far"),
        ("a loop", "mv ../far ../away; ln -s far ../far"),
        (
            "the link was changed",
            "ln -sf nowhere f; ln -sfn nowhere d",
        ),
        ("no permission", "chmod 0 ../far"),
    ];
    for (name, away) in away {
        if name == "no permission" && is_root() {
            bc_testkit::left_out("a directory that root may not search");
            continue;
        }
        let t = TestTree::new();
        let script = format!(
            r#"
            mkdir -p far/d/in t; echo 1 >far/f; echo 2 >far/d/g; echo 3 >far/d/in/h; cd t; echo own >own
            ln -s ../far/f f; ln -s ../far/d d
            M=../m
            bc() {{ "$BC" integrity "$@"; echo "exit $?"; }}
            bc manifest --follow-symlinks --output=$M .
            {away}
            bc verify --quiet . $M | sed 's/:.*//'
            bc update --quiet . $M | sed 's/:.*//'
            bc update --quiet --reread=100% . $M | sed 's/:.*//'
            grep -c '"path":"[df]' $M
            "$BC" integrity update --quiet --force . $M >forced; echo "forced $?"
            chmod 700 ../far 2>/dev/null
            "#
        );
        let outcome = t
            .run("sh")
            .args(["-c", &script])
            .env("BC", crate::common::BC)
            .go();
        let text = outcome.text();
        let broken = ["?? d", "?? f", "exit 1"];
        let expected = [
            &["exit 0"][..],
            &broken[..],
            &broken[..],
            &broken[..],
            &["5"][..],
        ]
        .concat();
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with("~m ."))
            .collect();
        assert_eq!(lines[..lines.len() - 1], expected[..], "{name}: {text}");
        // What cannot be looked at is no less so by force.
        let forced = match name {
            "no permission" => "forced 1",
            _ => "forced 0",
        };
        assert_eq!(lines[lines.len() - 1], forced, "{name}");
    }
}

/// A link that leads to another file or kind by now is an edit, which is said and recorded.
#[test]
fn a_retargeted_link_is_an_edit() {
    let t = TestTree::new();
    let script = r#"
        mkdir -p far/d t; echo 1 >far/one; echo 22 >far/two; echo 3 >far/d/g; cd t
        ln -s ../far/one f; ln -s ../far/one g; echo own >own; touch -d @1000 .
        M=../m
        bc() { "$BC" integrity "$@"; echo "exit $?"; }
        bc manifest --follow-symlinks --output=$M .
        ln -sfn ../far/two f; ln -sfn ../far/d g; touch -d @1000 .
        bc verify . $M | sed 's/ [a-z]*:.*//'
        bc update --quiet . $M
        bc verify . $M
    "#;
    let outcome = t
        .run("sh")
        .args(["-c", script])
        .env("BC", crate::common::BC)
        .go();
    says(
        &outcome,
        &[
            "exit 0",
            "~c f",
            "~t g file -> dir",
            "+ g/g",
            "exit 1",
            "exit 0",
            "exit 0",
        ],
    );
}

/// Nor does an edit behind a link wait for `--force`, even where nothing names the file system.
#[test]
fn what_is_edited_at_the_end_of_a_link_is_an_edit() {
    let t = TestTree::new();
    let script = r#"
        mkdir "$S/ram" t; mount -t tmpfs none "$S/ram"
        fill "$S/ram"; ln -s "$S/ram/a" t/a; touch -d @1000 t
        bc manifest --follow-symlinks --output="$M" t
        echo edited >"$S/ram/a"
        bc update t "$M" | sed 's/ [a-z]*:.*//'
        bc verify t "$M"
    "#;
    mounting_says(&t, script, &["exit 0", "~c a", "exit 0", "exit 0"]);
}
