//! Disks that are mounted below the root and then are not: what is recorded of them stays.

use bc_testkit::{Outcome, TestTree, left_out};

use crate::common::{BC, Bc};

/// Runs a script in the tree where it may mount what it likes, `$S` being a directory outside of
/// it; `None` where the system allows nobody that, or not us.
pub fn mounting(t: &TestTree, script: &str) -> Option<Outcome> {
    // As an ordinary user, in a user namespace too.
    let flags: &[&str] = match bc_testkit::is_root() {
        true => &["--mount"],
        false => &["--mount", "--user", "--map-root-user"],
    };
    let run = |script: &str| t.run("unshare").args(flags).args(["sh", "-c", script]);
    let mut trial = run("mount -t tmpfs none /mnt").command();
    let refused = match trial.output() {
        Ok(output) if output.status.success() => {
            let script = run(&format!("set -u\n{SETUP}\n{script}"));
            return Some(script.env("BC", BC).env("S", t.scratch("")).go());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    left_out(&format!("mounting by unshare: {refused}"));
    None
}

/// `up DISK DIR` mounts one of two disks, `one` being a part of the tree's own file system and
/// `two` another one. `bc` says its exit code on a line of its own.
const SETUP: &str = r#"
M="$S/m.jsonl"
mkdir -p "$S/one" "$S/two"
mount -t tmpfs two "$S/two"
up() { mount --bind "$S/$1" "$2"; }
bc() { "$BC" integrity "$@"; echo "exit $?"; }
fill() { mkdir -p "$1/sub"; echo first >"$1/a"; echo second >"$1/sub/b"; }
count() { grep -c "\"path\":\"$1" "$M"; }
"#;

/// Runs a script among its own mounts, and holds its lines against what is expected; nothing where
/// mounting is not allowed, which is said.
pub fn mounting_says(t: &TestTree, script: &str, expected: &[&str]) {
    if let Some(outcome) = mounting(t, script) {
        says(&outcome, expected);
    }
}

/// Holds the lines of a script against what is expected, of which `*` ends the beginning of one.
pub fn says(outcome: &Outcome, expected: &[&str]) {
    let text = outcome.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines.len(),
        expected.len(),
        "{text}\n{}",
        outcome.error_text()
    );
    for (line, expected) in lines.iter().zip(expected) {
        match expected.strip_suffix('*') {
            Some(start) => assert!(line.starts_with(start), "{line}\n{text}"),
            None => assert_eq!(line, expected, "{text}"),
        }
    }
}

/// The same device as the tree's, and another; recorded when it was another one, since numbers
/// of devices change; what is reported is one line.
#[test]
fn an_unmounted_disk_below_the_root_keeps_its_records() {
    for disk in ["one", "two"] {
        let t = TestTree::new();
        t.write("kept", "x").dir("a/disk");
        let script = format!(
            r#"
            fill "$S/{disk}"
            up {disk} a/disk
            bc manifest --output="$M" .
            umount a/disk
            bc update --quiet . "$M"
            echo new >fresh
            echo other >a/disk/a
            mkdir a/disk/junk
            echo junk >a/disk/junk/x
            bc verify --quiet . "$M"
            bc update . "$M"
            bc update --quiet . "$M"
            count a/disk/
            rm -r a/disk/a a/disk/junk
            up {disk} a/disk
            bc update . "$M"
            bc verify . "$M"
            "#
        );
        let Some(outcome) = mounting(&t, &script) else {
            return;
        };
        says(
            &outcome,
            &[
                "exit 0",
                "?? a/disk: a file system (*",
                "exit 1",
                "~m . mtime: *",
                "?? a/disk: a file system (*",
                "+ a/disk/junk",
                "+ a/disk/junk/x",
                "+ fresh",
                "exit 1",
                "~m . mtime: *",
                "?? a/disk: a file system (*",
                "+ a/disk/junk",
                "+ a/disk/junk/x",
                "+ fresh",
                "exit 1",
                "?? a/disk: a file system (*",
                "exit 1",
                "3",
                "exit 0",
                "exit 0",
            ],
        );
    }
}

#[test]
fn damage_behind_an_unmounted_disk_is_found_after_it_is_back() {
    let t = TestTree::new();
    t.dir("disk");
    let script = r#"
        fill "$S/one"; touch -d @1000 "$S/one/a"
        up one disk
        bc manifest --output="$M" .
        umount disk
        bc update --quiet . "$M"
        bc update --quiet --reread=100% . "$M"
        echo FIRST >"$S/one/a"; touch -d @1000 "$S/one/a"
        up one disk
        bc update --quiet . "$M"
    "#;
    mounting_says(
        &t,
        script,
        &[
            "exit 0",
            "?? disk: *",
            "exit 1",
            "?? disk: *",
            "exit 1",
            "!! disk/a: *",
            "exit 3",
        ],
    );
}

/// Mounts in mounts, several levels deep, and names that the kernel writes with escapes.
#[test]
fn the_outermost_missing_mount_is_named() {
    let t = TestTree::new();
    t.dir("a/b c\\d/x");
    let script = r#"
        fill "$S/one"; mkdir -p "$S/one/in/ner"; fill "$S/two"
        up one "a/b c\\d/x"; up two "a/b c\\d/x/in/ner"
        bc manifest --output="$M" .
        umount "a/b c\\d/x/in/ner"
        bc verify --quiet . "$M"
        bc update --quiet . "$M"
        umount "a/b c\\d/x"
        bc verify --quiet . "$M"
        bc update --quiet . "$M"
        up one "a/b c\\d/x"; up two "a/b c\\d/x/in/ner"
        bc update . "$M"
        bc verify . "$M"
    "#;
    mounting_says(
        &t,
        script,
        &[
            "exit 0",
            "?? a/b c\\\\d/x/in/ner: *",
            "exit 1",
            "?? a/b c\\\\d/x/in/ner: *",
            "exit 1",
            "?? a/b c\\\\d/x: *",
            "exit 1",
            "?? a/b c\\\\d/x: *",
            "exit 1",
            "exit 0",
            "exit 0",
        ],
    );
}

/// As automounters do: without its file system the directory is not there either.
#[test]
fn a_mount_point_that_vanished_and_force() {
    let t = TestTree::new();
    t.write("kept", "x").dir("net/host");
    let script = r#"
        fill "$S/two"
        up two net/host
        touch -d @1000 net
        bc manifest --output="$M" .
        umount net/host; rmdir net/host; touch -d @1000 net
        bc verify --quiet . "$M"
        bc update --quiet . "$M"
        count net/host
        # With nothing at all below the root's own files.
        bc update --quiet --force . "$M"
        count net/host
        bc verify . "$M"
    "#;
    mounting_says(
        &t,
        script,
        &[
            "exit 0",
            "?? net/host: *",
            "exit 1",
            "?? net/host: *",
            "exit 1",
            "4",
            "exit 0",
            "0",
            "exit 0",
        ],
    );
}

/// A manifest of an earlier version knows no mount points: as before, until an update records
/// them.
#[test]
fn manifests_without_mounts_gain_them() {
    let t = TestTree::new();
    t.write("kept", "x").dir("disk");
    let script = r#"
        fill "$S/one"
        up one disk
        bc manifest --output="$M" .
        grep -c '"mount":' "$M"
        sed -e 's/,"mount":"[^"]*","mount_root":"[^"]*"//' -e 's/,"mount_root":"[^"]*"//' \
            -e 's/,"fs_uuid":"[^"]*"//' -e 's/,"dev":[0-9]*//' -e '$d' "$M" >"$S/body"
        { cat "$S/body"; printf '{"type":"trailer","entries":6,"files":3,"dirs":3,"bytes":14,"errors":0,"sha256":"%s"}\n' "$(sha256sum <"$S/body" | cut -c -64)"; } >"$M"
        bc verify . "$M"
        bc update . "$M"
        grep -c '"mount":' "$M"
        umount disk
        bc update --quiet . "$M"
    "#;
    mounting_says(
        &t,
        script,
        &[
            "exit 0",
            "1",
            "exit 0",
            "exit 0",
            "1",
            "?? disk: *",
            "exit 1",
        ],
    );
}

/// An empty file system where one with files was is a missing one.
#[test]
fn an_empty_disk_in_its_place_is_a_missing_one() {
    let t = TestTree::new();
    t.dir("disk");
    let script = r#"
        fill "$S/one"
        up one disk
        bc manifest --output="$M" .
        umount disk
        up two disk
        bc update --quiet . "$M"
        count disk/
    "#;
    mounting_says(&t, script, &["exit 0", "?? disk: *", "exit 1", "3"]);
}

/// Nor do the files of another disk take the place of those that are recorded, if none is the same.
#[test]
fn another_disk_in_its_place_is_not_taken_for_it() {
    let t = TestTree::new();
    t.dir("disk");
    let script = r#"
        fill "$S/one"
        mkdir "$S/two/other"; echo 1 >"$S/two/other/x"; echo 2 >"$S/two/a"
        mount -t tmpfs this disk
        fill disk
        # Both are on many disks.
        ln -s usr/lib disk/lib; : >disk/empty; cp -a disk/empty "$S/one/empty"
        bc manifest --output="$M" .
        umount disk
        up two disk
        bc update --quiet . "$M"
        count disk/
        umount disk
        mount -t tmpfs that disk
        cp -a "$S/one/a" disk/new
        ln -s usr/lib disk/lib; cp -a "$S/one/empty" disk/empty
        bc update --quiet . "$M"
        count disk/
        bc update --quiet --force . "$M"
        count disk/
        bc verify . "$M"
    "#;
    mounting_says(
        &t,
        script,
        &[
            "exit 0",
            "?? disk: *",
            "exit 1",
            "5",
            "?? disk: *",
            "exit 1",
            "5",
            "exit 0",
            "3",
            "exit 0",
        ],
    );
}

/// Of two without a device even the sources are equal, and what is mounted over a plain directory
/// hides it; a copy of what was there is at home in either.
#[test]
fn what_hides_the_recorded_files_takes_no_record() {
    let t = TestTree::new();
    t.dir("disk").dir("plain");
    let script = r#"
        mount -t tmpfs none disk
        fill disk
        fill plain
        cp -a plain disk "$S"
        bc manifest --output="$M" .
        umount disk
        mount -t tmpfs none disk
        echo another >disk/a
        mount -t tmpfs none plain
        bc update --quiet . "$M"
        count disk/
        count plain/
        cp -a "$S/plain/." plain
        cp -a "$S/disk/." disk
        bc update --quiet . "$M"
        umount plain
        bc update --quiet --force . "$M"
        count plain/
    "#;
    mounting_says(
        &t,
        script,
        &[
            "exit 0",
            "?? disk: *",
            "?? plain: another file system is mounted here now*",
            "exit 1",
            "3",
            "3",
            "exit 0",
            "exit 0",
            "3",
        ],
    );
}

/// What `--one-file-system` or a filter kept out is not missed.
#[test]
fn mounts_without_records_are_not_missed() {
    let t = TestTree::new();
    t.write("kept", "x").dir("disk").dir("proc");
    let script = r#"
        fill "$S/two"
        up two disk
        mount -t proc proc proc 2>/dev/null
        bc manifest -x --output="$M" .
        umount disk
        umount proc 2>/dev/null
        bc update --quiet . "$M"
        bc verify --mode=content . "$M"
    "#;
    mounting_says(&t, script, &["exit 0", "exit 0", "exit 0"]);
    t.bc_line("integrity manifest .").go().code(0);
}
