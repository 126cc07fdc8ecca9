//! `bc copy` to where two names of a source are one: no entry takes the place of another one that
//! the same run has copied or left as it was, whatever `--on-conflict` says.

use bc_testkit::{Outcome, TestTree};

use crate::common::Bc;
use crate::copy_sticks::on_each;
use crate::file_systems::script;

const POLICIES: [&str; 3] = ["replace", "update", "verify"];

/// Two pairs of names; the second of each pair is newer, so that any policy would take the first's
/// place.
fn pairs(one: &str, other: &str) -> TestTree {
    let t = TestTree::new();
    for (dir, seconds) in [(one, 1_500_000_000), (other, 1_600_000_000)] {
        t.write(format!("r/{dir}"), format!("content of {dir}"));
        t.write(format!("r/in {dir}/file"), format!("more of {dir}"));
        t.symlink(format!("to {dir}"), format!("r/link {dir}"));
        t.mtime(format!("r/{dir}"), seconds, 0);
        t.mtime(format!("r/in {dir}/file"), seconds, 0);
    }
    t
}

/// The first stays, the second is named, and nothing is left over.
#[track_caller]
fn the_first_stays(context: &str, out: &Outcome, first: &str, failed: usize) {
    out.code(0).stdout_has("code 1").stdout_has("clean");
    let (text, errors) = (out.text(), out.error_text());
    assert!(
        text.contains(&format!("content of {first}\n")),
        "{context}: {out}"
    );
    assert!(
        text.contains(&format!("more of {first}\n")),
        "{context}: {out}"
    );
    let named = errors.matches("another source has the same name").count();
    let reported = errors.matches("what was copied there stays").count();
    assert_eq!((named, reported), (failed, failed), "{context}: {out}");
}

/// Case does not count, and files have other numbers under other names.
#[test]
fn names_that_differ_in_case() {
    for policy in POLICIES {
        for before in [
            "",
            "mkdir -p $M/to; echo old >$M/to/File; touch -d 2001-01-01 $M/to/File",
        ] {
            for threads in ["mono", "2"] {
                let text = format!(
                    "{before}
                    rm -f r/link*
                    $BC copy -T --threads={threads} --on-conflict={policy} r $M/to || echo code $?
                    # What was looked at is remembered for a second.
                    sleep 1.2; cat $M/to/file; echo; cat \"$M/to/in file/file\"; echo
                    ls -aR $M/to | grep part || echo clean
                    umount $M"
                );
                on_each(
                    || pairs("FILE", "file"),
                    &text,
                    |name, out| {
                        let context = format!("{name}: {policy} {before}");
                        out.code(0).stdout_has("code 1").stdout_has("clean");
                        let errors = out.error_text();
                        let named = errors.matches("another source has the same name").count();
                        assert!(named == 2, "{context}: {out}");
                        let lines = out.text();
                        for (what, says) in [("content", "file"), ("more", "in file/file")] {
                            let has = |name: &str| lines.contains(&format!("{what} of {name}\n"));
                            assert!(has("FILE") != has("file"), "{context}: {out}");
                            let lost = match has("FILE") {
                                true => says.to_owned(),
                                false => says.replace("file", "FILE").replace("/FILE", "/file"),
                            };
                            assert!(
                                errors.contains(&format!("to/{lost}: ")),
                                "{context}: {lost}: {out}"
                            );
                        }
                    },
                );
            }
        }
    }
}

/// A directory that is mounted a second time: what has one name has the other one.
#[test]
fn a_directory_that_is_there_twice() {
    for policy in POLICIES {
        for before in [
            "true",
            "echo old >to/one/file; touch -d 2001-01-01 to/one/file",
        ] {
            let t = TestTree::new();
            for (dir, seconds) in [("one", 1_500_000_000), ("two", 1_600_000_000)] {
                t.write(format!("r/{dir}/file"), format!("content of {dir}"));
                t.write(format!("r/{dir}/more"), format!("more of {dir}"));
                t.symlink(format!("to {dir}"), format!("r/{dir}/link"));
                t.mtime(format!("r/{dir}/file"), seconds, 0);
                t.mtime(format!("r/{dir}/more"), seconds, 0);
            }
            t.dir("to/one").dir("to/two");
            let text = format!(
                "mount --bind to/one to/two || {{ echo cannot mount >&2; exit 77; }}
                {before}
                $BC copy -T --threads=mono --on-conflict={policy} r to || echo code $?
                cat to/one/file; echo; cat to/one/more; echo; readlink to/one/link
                ls -aR to | grep part || echo clean
                $BC integrity verify to to/.bc-copy-manifest.jsonl || echo verify $?
                umount to/two"
            );
            let Some(out) = script(&t, &text) else {
                return;
            };
            // Names of links are given first or last; of both only the first counts.
            the_first_stays(&format!("{policy} {before}"), &out, "one", 3);
            assert!(out.text().contains("to one\n"), "{out}");
        }
    }
}

/// What lies in its source by another way than by the directories above it is found by the walk.
#[test]
fn a_destination_that_is_mounted_from_the_source() {
    let t = TestTree::new();
    t.write("r/a", "a")
        .write("r/deep/b", "b")
        .dir("m")
        .dir("into/r");
    let text = "
        mount --bind r/deep m || { echo cannot mount >&2; exit 77; }
        for to in m m/new m/./; do
            $BC copy r $to && echo copied to $to
            $BC copy -T r $to && echo copied to $to
        done
        umount m
        mount --bind into/r r/deep
        $BC copy r into && echo copied into
        $BC copy --exclude=deep r into || echo code $?
        umount r/deep
        ls -A r/deep into/r";
    let Some(out) = script(&t, text) else {
        return;
    };
    out.code(0).stdout_is("into/r:\na\n\nr/deep:\nb\n");
    let refused = out.error_text().matches("into itself").count();
    assert_eq!(refused, 7, "{out}");
}

/// A disk that is mounted in the source is where a backup of the rest may go.
#[test]
fn a_destination_on_a_disk_that_is_mounted_in_the_source() {
    let t = TestTree::new();
    t.write("r/a", "a").dir("r/disk");
    let text = "
        mount -t tmpfs -o size=1M none r/disk || { echo cannot mount >&2; exit 77; }
        for to in r/disk r/disk/new; do
            $BC copy r $to || echo refused
            $BC copy -x r $to
        done
        find r/disk -type f ! -name '.*' | sort
        umount r/disk";
    let Some(out) = script(&t, text) else {
        return;
    };
    out.code(0)
        .stdout_is("refused\nrefused\nr/disk/new/a\nr/disk/r/a\n");
}

/// Names of one file are no such thing: each of them may be replaced.
#[test]
fn names_of_one_file_are_replaced_each() {
    for policy in POLICIES {
        let t = TestTree::new();
        t.write("r/a", "content of a").write("r/b", "content of b");
        t.write("to/a", "content of b").hard_link("to/a", "to/b");
        for path in ["r/a", "r/b"] {
            t.mtime(path, 1_600_000_000, 0);
        }
        t.mtime("to/a", 1_500_000_000, 0);
        t.bc_line(&format!("copy -T --on-conflict={policy} r to"))
            .go()
            .code(0);
        assert_eq!(t.read("to/a"), b"content of a", "{policy}");
        assert_eq!(t.read("to/b"), b"content of b", "{policy}");
    }
}
