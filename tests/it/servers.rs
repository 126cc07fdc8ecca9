//! File systems behind a server (FUSE): what it cannot do or tell is known, or said to be unknown,
//! and it is not asked in vain for each file.

use bc_testkit::{Outcome, TestTree, left_out};

use crate::common::BC;
use crate::file_systems::{missing, script};
use crate::strace;

/// A server ends with its mount, however the script ends.
const LEAVE: &str = "trap 'umount $M 2>/dev/null || true' EXIT;";

/// A server of one's own files, without a network: what `sshfs` says to `ssh` goes to a program.
const SFTP: &str = "/usr/lib/openssh/sftp-server";
const SSHFS: &str =
    "printf '#!/bin/sh\\nexec /usr/lib/openssh/sftp-server\\n' >server; chmod +x server
    sshfs -o ssh_command=$PWD/server here:$PWD/low $M";

/// Runs a script with `mount` at `$M`; `None` where that cannot be had, which is said.
fn behind(tree: &TestTree, (mount, tools): (&str, &[&str]), text: &str) -> Option<Outcome> {
    let absent = mount.contains(SFTP) && !std::path::Path::new(SFTP).exists();
    let absent = absent.then(|| format!("not installed: {SFTP}"));
    if let Some(reason) = missing(tools).or(absent) {
        left_out(&format!("{mount}: {reason}"));
        return None;
    }
    script(
        tree,
        &format!(
            "{LEAVE}
            {{ {mount}; }} 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
            {text}"
        ),
    )
}

const SSH: (&str, &[&str]) = (SSHFS, &["sshfs"]);

/// Three files of one content, one of them in a directory below the others.
fn three() -> TestTree {
    let tree = TestTree::new();
    for name in ["a", "b", "sub/c"] {
        tree.write(format!("low/{name}"), [b'x'; 20_000]);
        tree.mtime(format!("low/{name}"), 1_500_000_000, 0);
    }
    tree
}

/// Whether links work on sshfs depends on its options and its server: the dry run does not know,
/// and says so; the run finds out, and says it once.
#[test]
fn a_dry_run_promises_no_symbolic_links_where_they_may_be_refused() {
    let prune = |more: &str| {
        format!("$BC dup prune --yes --force --keep=name:a --action=symlink {more} $M 2>&1 || true")
    };
    let text = format!(
        "{}; echo --; {}; echo --; ls -l $M $M/sub | grep -c ^l || true",
        prune("--dry-run"),
        prune("")
    );
    let Some(outcome) = behind(&three(), SSH, &text) else {
        return;
    };
    let reported = outcome.text();
    let parts: Vec<&str> = reported.split("--\n").collect();
    let [dry, real, links] = parts[..] else {
        panic!("{reported}{}", outcome.error_text());
    };
    let unknown = "whether symbolic links work on sshfs shows when it is tried; said once";
    assert_eq!(dry.matches(unknown).count(), 1, "{reported}");
    assert!(dry.contains("0 files would be changed"), "{reported}");
    // An older one follows them all.
    let (refused, made) = match real.contains("1 skipped: not supported by the file system") {
        true => (true, "1\n"),
        false => (false, "2\n"),
    };
    let why = "sshfs follows no symbolic links out of their directory";
    assert_eq!(real.contains(why), refused, "{reported}");
    assert_eq!(links, made, "{reported}");
}

/// SFTP has no calls for the space that a file takes.
#[test]
fn what_is_freed_is_unknown_where_files_do_not_say_what_they_take() {
    let text = "run() { $BC dup prune --yes --force --keep=name:a --action=delete $1 $M 2>&1; }
        run --dry-run; run --metrics=$PWD/metrics.json; cat metrics.json";
    let Some(outcome) = behind(&three(), SSH, text) else {
        return;
    };
    let reported = outcome.text();
    let unknown = "freed, not counting 2 of which the file system does not tell";
    assert_eq!(reported.matches(unknown).count(), 2, "{reported}");
    assert!(reported.contains("\"freed_bytes\": 0"), "{reported}");
    assert!(reported.contains("\"freed_unknown\": 2"), "{reported}");
}

/// A server that keeps a removed file under a name of its own while it is open counts that one as
/// a link; the space is the file system's all the same.
#[test]
fn the_last_name_of_a_file_frees_what_the_dry_run_said() {
    let mounts: [(&str, &[&str]); 3] = [
        ("bindfs low $M", &["bindfs"]),
        (
            "truncate -s 8M disk; mkntfs -F -Q -q disk >/dev/null 2>&1; ntfs-3g disk $M; cp -a low/. $M; umount $M; ntfs-3g disk $M",
            &["mkntfs", "ntfs-3g"],
        ),
        ("mount --bind low $M", &[]),
    ];
    for mount in mounts {
        for action in ["delete", "symlink"] {
            let tree = three();
            tree.hard_link("low/b", "low/b2");
            let text = format!(
                "run() {{ $BC dup prune --yes --force --keep=name:a --action={action} --metrics=$PWD/$1 ${{2:-}} $M >&2; }}
                for step in dry real; do
                    run $step $([ $step = real ] || echo --dry-run) || true
                    grep -e freed_bytes -e changed $step | tr -d '\\n'; echo
                done"
            );
            let Some(outcome) = behind(&tree, mount, &text) else {
                continue;
            };
            let reported = format!("{}: {}{}", mount.0, outcome.text(), outcome.error_text());
            let text = outcome.text();
            let (dry, real) = text.split_once('\n').expect(&reported);
            if reported.contains("shows when it is tried") {
                left_out(&reported);
                continue;
            }
            assert_eq!(dry, real.trim_end(), "{reported}");
            assert!(dry.contains("\"changed\": 3"), "{reported}");
            assert!(!dry.contains("\"freed_bytes\": 0"), "{reported}");
        }
    }
}

/// What the kernel keeps of a file is out of date for a moment where a move has given it its name by a
/// link: undo asks the server.
#[test]
fn what_was_moved_comes_back_at_once() {
    let text =
        "$BC dup prune --yes --force --keep=name:a --action=move:$M/dest --journal=$PWD/j $M >&2
        $BC dup undo $PWD/j 2>&1 || true";
    let tree = three();
    tree.hard_link("low/b", "low/b2");
    let Some(outcome) = behind(&tree, ("bindfs low $M", &["bindfs"]), text) else {
        return;
    };
    let reported = format!("{}{}", outcome.text(), outcome.error_text());
    assert!(reported.contains("3 restored"), "{reported}");
    assert!(!reported.contains("not restored"), "{reported}");
}

/// No rename refuses to replace here: a file has both names for a moment, and keeps them where the run
/// is killed between the two calls. The same command ends it.
#[test]
fn a_rename_that_is_a_link_is_ended_by_the_same_command() {
    if !strace::is_able() {
        return;
    }
    for (line, to) in [
        ("move $M/a $M/to", "to/a"),
        ("move -T $M/sub $M/other", "other/c"),
        ("move $M/a $M/b $M/to", "to/a"),
    ] {
        let tree = three();
        tree.dir("low/to").dir("low/other");
        let text = format!(
            "strace -f -qq -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=1 -o log {BC} {line} >&2 || true
            stat -c %h low/{to}
            $BC {line} 2>&1; stat -c %h low/{to}; find low -type f | sort | tr '\\n' ' '"
        );
        let Some(outcome) = behind(&tree, ("bindfs low $M", &["bindfs"]), &text) else {
            return;
        };
        let reported = format!("{line}: {}{}", outcome.text(), outcome.error_text());
        let expected = match line.contains("-T") {
            true => "low/a low/b low/other/c ",
            false if line.contains("/b ") => "low/sub/c low/to/a low/to/b ",
            false => "low/b low/sub/c low/to/a ",
        };
        assert!(outcome.text().starts_with("2\n"), "{reported}");
        assert!(
            outcome.text().ends_with(&format!("\n1\n{expected}")),
            "{reported}"
        );
    }
}

/// A view gets another device number with each mount; the ctimes that it passes on are real, and
/// show that it is no copy, wherever in the tree there is one that did not change.
#[test]
fn a_rewrite_with_its_time_put_back_is_found_under_another_device_number() {
    for also in ["", "touch $M;", "touch $M; mv $M/b $M/0;"] {
        let tree = three();
        let text = format!(
            "$BC integrity manifest --quiet --output=$PWD/record $M
            umount $M; mkdir other; mount -t tmpfs none other; bindfs other $M
            trap 'umount $M $M other 2>/dev/null || true' EXIT
            bindfs low $M
            echo $(stat -c %d low $M) >devices
            {also}
            printf y | dd of=$M/a conv=notrunc status=none; touch -d @1500000000 $M/a
            $BC integrity update $M $PWD/record 2>&1 || echo exit $?"
        );
        let Some(outcome) = behind(&tree, ("bindfs low $M", &["bindfs"]), &text) else {
            return;
        };
        let reported = format!("{also} {}{}", outcome.text(), outcome.error_text());
        assert!(reported.contains("!! a"), "{reported}");
        assert!(reported.contains("exit 3"), "{reported}");
    }
}

/// A copy has other ctimes throughout, and is not read again for that.
#[test]
fn a_copy_on_a_view_is_not_read_again() {
    let text = "$BC integrity manifest --quiet --output=$PWD/record $M
        mkdir copy copied; cp -a low/. copy; bindfs copy copied
        trap 'umount $M copied 2>/dev/null || true' EXIT
        $BC integrity update --metrics=$PWD/metrics.json copied $PWD/record 2>&1
        grep '\"files\"' metrics.json";
    let Some(outcome) = behind(&three(), ("bindfs low $M", &["bindfs"]), text) else {
        return;
    };
    let reported = outcome.text();
    assert!(
        reported.contains("3 files taken as unchanged by path"),
        "{reported}"
    );
    assert!(reported.contains("\"files\": 0"), "{reported}");
}

/// That a name is known says nothing where each open asks the server.
#[test]
fn a_server_is_not_asked_whether_names_are_known() {
    if !strace::is_able() {
        return;
    }
    let tree = TestTree::new();
    for name in 0..100 {
        tree.write(format!("low/{name}"), "x");
    }
    let text = format!(
        "strace -f -qq -e trace=openat2,preadv2 -o log {BC} hash --threads=2 $M >/dev/null
        grep -c RESOLVE_CACHED log || true; grep -c RWF_NOWAIT log || true"
    );
    let Some(outcome) = behind(&tree, ("bindfs low $M", &["bindfs"]), &text) else {
        return;
    };
    let counts: Vec<u32> = outcome
        .text()
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    assert!(counts.iter().all(|count| *count <= 4), "{counts:?}");
}

/// A disk whose files are not in memory is asked for a few of them.
#[test]
fn cold_files_are_asked_for_seldom() {
    if !strace::is_able() {
        return;
    }
    const FILES: usize = 400;
    let tree = TestTree::new();
    for name in 0..FILES {
        let path = tree
            .write(format!("cold/{name}"), "x")
            .join(format!("cold/{name}"));
        let file = std::fs::File::open(path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
    let outcome = tree
        .run("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=preadv2,io_uring_setup",
            "-o",
            "../log",
        ])
        .args([BC, "hash", "--threads=2", "cold"])
        .go();
    outcome.code(0);
    let log = std::fs::read_to_string(tree.scratch("log")).unwrap();
    let missed = log.lines().filter(|line| line.contains("EAGAIN")).count();
    if missed == 0 {
        return left_out("nothing is cold on this file system");
    }
    assert!(missed <= 10, "{missed} of {FILES}");
}
