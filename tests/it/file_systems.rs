//! File systems that promise less than ext4 does, each mounted in a private
//! name space: what is missing on the machine is left out, and said.

use std::path::Path;

use bc_testkit::{Outcome, TestTree, is_root, left_out, tool};

use crate::common::{BC, Bc};

/// Why a script with these tools cannot be run.
pub(crate) fn missing(tools: &[&str]) -> Option<String> {
    if !is_root() {
        return Some("mounting needs root".to_owned());
    }
    let tools = ["unshare", "mount", "umount", "cmp"].iter().chain(tools);
    let absent: Vec<&str> = tools.copied().filter(|name| tool(name).is_none()).collect();
    (!absent.is_empty()).then(|| format!("not installed: {}", absent.join(", ")))
}

/// Runs a shell script with mounts of its own in the tree's directory; `$BC` is
/// the binary. A script ends with status 77 where the system cannot mount.
pub(crate) fn script(tree: &TestTree, text: &str) -> Option<Outcome> {
    let prelude = "set -eu; umask 022; M=$PWD/mnt; mkdir -p $M; ";
    let outcome = tree
        .run("unshare")
        .args(["-m", "sh", "-c", &format!("{prelude}{text}")])
        .env("BC", BC)
        .env("XDG_CACHE_HOME", tree.scratch("xdg"))
        .go();
    if outcome.error_text().contains("cannot mount") {
        left_out(&outcome.error_text());
        return None;
    }
    Some(outcome)
}

/// Two images' worth of files: the same names, sizes and times, other contents.
/// In the first all are equal in pairs, in the second none are.
pub(crate) fn two_versions() -> TestTree {
    let tree = TestTree::new();
    for index in 0..12u32 {
        let name = format!("{index:02}");
        let one = format!("pair {:04}", index / 2);
        let other = format!("sole {index:04}");
        tree.write(format!("one/{name}"), one);
        tree.write(format!("two/{name}"), other);
        tree.mtime(format!("one/{name}"), 1_500_000_000, 0);
        tree.mtime(format!("two/{name}"), 1_500_000_000, 0);
    }
    tree.write("one/last", "alone").write("two/last", "alone");
    tree.mtime("one/last", 1_500_000_000, 0);
    tree.mtime("two/last", 1_500_000_000, 0);
    for dir in ["one", "two"] {
        tree.mtime(dir, 1_500_000_000, 0);
    }
    tree
}

pub(crate) const IMAGES: &str = "
    mksquashfs one one.img -quiet -no-progress -noappend >/dev/null
    mksquashfs two two.img -quiet -no-progress -noappend >/dev/null
    ";

/// Ways to mount an image, each with the tools it takes.
const MOUNTS: [(&str, &[&str]); 2] = [
    ("squashfuse", &["mksquashfs", "squashfuse"]),
    ("mount -o loop,ro", &["mksquashfs", "losetup"]),
];

/// The script for each way to mount that there is.
fn with_images(text: &str, check: impl Fn(&str, Outcome)) {
    for (mount, tools) in MOUNTS {
        if let Some(reason) = missing(tools) {
            left_out(&format!("{mount}: {reason}"));
            continue;
        }
        let tree = two_versions();
        let mounts = format!(
            "show() {{ {mount} $1.img $M 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}; }}\n"
        );
        if let Some(outcome) = script(&tree, &format!("{IMAGES}{mounts}{text}")) {
            check(mount, outcome);
        }
    }
}

#[test]
fn a_cache_never_answers_for_another_image_at_the_same_place() {
    let text = "
        show one
        $BC dup --cache=c $M >first; umount $M
        show two
        $BC dup --cache=c $M >cached; $BC dup $M >plain; umount $M
        test -s first; cmp cached plain; cat cached";
    with_images(text, |mount, outcome| {
        outcome.code(0).stdout_is("");
        assert!(outcome.error_text().contains("not used on"), "{mount}");
    });
}

#[test]
fn an_update_after_a_remount_reads_nothing_and_says_why() {
    // Looking things up in another order numbers them differently.
    let text = "
        show one
        cat $M/05 $M/11 >/dev/null
        $BC integrity manifest --output=m $M; umount $M
        show one
        $BC integrity update --metrics=metrics.json $M m; umount $M
        cat metrics.json
        show one
        $BC integrity verify $M m; umount $M";
    with_images(text, |mount, outcome| {
        outcome.code(0);
        let text = outcome.text();
        assert!(
            text.contains("\"read_bytes\":0") || text.contains("\"read_bytes\": 0"),
            "{mount}: {text}"
        );
    });
}

#[test]
fn damage_is_not_called_bitrot_where_ctime_repeats_mtime() {
    let text = "
        show one
        $BC integrity manifest --output=m $M; umount $M
        show two
        $BC integrity verify $M m || echo $?; umount $M";
    with_images(text, |mount, outcome| {
        outcome.code(0).stdout_has("ctime proves nothing here");
        let text = outcome.text();
        assert!(!text.contains("points to"), "{mount}: {text}");
        assert!(text.ends_with("3\n"), "{mount}: {text}");
    });
}

/// A tree on a tmpfs.
fn in_memory() -> Option<TestTree> {
    let place = Path::new("/dev/shm");
    let traits = std::fs::File::open(place)
        .ok()
        .and_then(|dir| bc_fs::mount::basic_traits(dir).ok());
    if traits.is_none_or(|traits| traits.name != "tmpfs" || traits.read_only) {
        left_out("/dev/shm is no tmpfs");
        return None;
    }
    Some(TestTree::new_in(place))
}

/// Lines of a run that name a failure of one file.
fn reported(outcome: &Outcome) -> usize {
    let text = outcome.error_text();
    text.lines()
        .filter(|line| line.contains("skipped: ") && line.contains("said once"))
        .count()
}

#[test]
fn a_dry_run_does_not_promise_reflinks_where_there_are_none() {
    let Some(tree) = in_memory() else {
        return;
    };
    for index in 0..20 {
        tree.write(format!("{index}"), "the same in all");
    }
    for dry in ["--dry-run", "--quiet"] {
        let outcome = tree
            .bc_line(&format!(
                "dup prune --action=reflink {dry} --journal=../j ."
            ))
            .go();
        outcome.code(1).stdout_is("");
        assert_eq!(reported(&outcome), 1, "{}", outcome.error_text());
        outcome.stderr_has("cannot share blocks");
    }
    let outcome = tree.bc_line("dup prune --action=reflink --dry-run .").go();
    outcome.stderr_has("0 files would be changed, 0 B would be freed; 19 skipped: not supported by the file system");
}

#[test]
fn a_read_only_mount_is_said_once_by_every_action() {
    if let Some(reason) = missing(&[]) {
        return left_out(&reason);
    }
    let tree = TestTree::new();
    for index in 0..20 {
        tree.write(format!("d/{index}"), "the same in all");
    }
    let before = tree.run("sh").args(["-c", "ls -li d"]).go().text();
    for action in ["hardlink", "symlink", "delete", "move:elsewhere"] {
        for (how, would) in [("--dry-run", "would be "), ("--yes", "")] {
            let text = format!(
                "mount --bind d $M && mount -o remount,ro,bind $M || {{ echo cannot mount >&2; exit 77; }}
                $BC dup prune --action={action} {how} --journal=j-{action}{how} $M"
            );
            let Some(outcome) = script(&tree, &text) else {
                return;
            };
            outcome.code(1).stdout_is("");
            assert_eq!(
                reported(&outcome),
                1,
                "{action} {how}: {}",
                outcome.error_text()
            );
            outcome.stderr_has("is mounted read-only");
            outcome.stderr_has(format!("0 files {would}changed"));
            outcome.stderr_has("19 skipped: read-only file system");
        }
    }
    assert_eq!(tree.run("sh").args(["-c", "ls -li d"]).go().text(), before);
}

#[test]
fn xfs_is_asked_whether_it_shares_blocks() {
    if let Some(reason) = missing(&["mkfs.xfs", "losetup", "truncate"]) {
        return left_out(&reason);
    }
    for (reflink, code, said) in [
        (1, 0, "1 file would be changed"),
        (0, 1, "XFS cannot share blocks"),
    ] {
        let tree = TestTree::new();
        let text = format!(
            "truncate -s 400M img; mkfs.xfs -q -m reflink={reflink} img
            mount -o loop img $M 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
            head -c 100000 /dev/zero | tr '\\0' x >$M/a; cp --reflink=never $M/a $M/b; sync
            before=$(filefrag -v $M/a $M/b 2>/dev/null || :)
            status=0; $BC dup prune --action=reflink --dry-run $M || status=$?
            test \"$before\" = \"$(filefrag -v $M/a $M/b 2>/dev/null || :)\"
            umount $M; exit $status"
        );
        let Some(outcome) = script(&tree, &text) else {
            return;
        };
        outcome.code(code).stderr_has(said);
    }
}

#[test]
fn an_update_follows_a_copy_to_another_disk() {
    let tree = TestTree::new();
    let Some(other) = in_memory() else {
        return;
    };
    let dev = |path: &Path| std::os::unix::fs::MetadataExt::dev(&path.metadata().unwrap());
    if dev(tree.path()) == dev(other.path()) {
        return left_out("no second file system");
    }
    tree.write("d/one", "1")
        .write("d/sub/two", "22")
        .symlink("one", "d/link");
    tree.mtime("d/one", 1_500_000_000, 7)
        .mtime("d/sub/two", 1_500_000_001, 8);
    tree.bc_line("integrity manifest --output=m d").go().code(0);
    let copy = other.join("d");
    tree.run("cp").args(["-a", "d"]).arg(&copy).go().code(0);

    let update = || {
        tree.bc_line("integrity update --metrics=metrics.json")
            .arg(&copy)
            .arg("m")
            .go()
    };
    update()
        .code(0)
        .stderr_has("2 files taken as unchanged by path, size and mtime");
    let metrics = String::from_utf8(tree.read("metrics.json")).unwrap();
    assert!(
        metrics.contains("\"read_bytes\":0") || metrics.contains("\"read_bytes\": 0"),
        "{metrics}"
    );
    tree.bc_line("integrity verify")
        .arg(&copy)
        .arg("m")
        .go()
        .code(0)
        .stderr_is("");
    // Once recorded, identity counts again.
    let outcome = update();
    outcome.code(0);
    assert!(
        !outcome.error_text().contains("taken as unchanged"),
        "{}",
        outcome.error_text()
    );

    // What differs in the copy is read.
    tree.bc_line("integrity manifest --output=m2 d")
        .go()
        .code(0);
    std::fs::copy(tree.join("m2"), tree.join("m3")).unwrap();
    other.write("d/one", "9");
    other.mtime("d/one", 1_600_000_000, 0);
    let outcome = tree.bc_line("integrity update").arg(&copy).arg("m2").go();
    outcome
        .code(0)
        .stdout_has("~c one")
        .stderr_has("1 file taken as unchanged");
    // A disk that is not mounted still looks like none.
    let empty = other.join("empty");
    other.write("empty/unrelated", "x");
    tree.bc_line("integrity update")
        .arg(&empty)
        .arg("m3")
        .go()
        .code(2)
        .stderr_has("nothing in it matches");
}

#[test]
fn what_a_mount_cannot_say_is_asked_once_and_not_for_each_file() {
    if tool("strace").is_none() {
        return left_out("not installed: strace");
    }
    let Some(tree) = in_memory() else {
        return;
    };
    for index in 0..1000 {
        tree.write(format!("d/{index}"), format!("content {index}"));
    }
    let log = tree.scratch("calls");
    let traced = tree
        .run("strace")
        .args(["-f", "-e", "trace=preadv2,openat2,openat", "-o"])
        .arg(&log)
        .args([BC, "hash", "--threads=2", "d"])
        .go();
    if traced.error_text().contains("ptrace") {
        return left_out("strace may not trace here");
    }
    traced.code(0);
    let calls = std::fs::read_to_string(&log).unwrap();
    let failed = |name: &str| {
        calls
            .lines()
            .filter(|line| line.contains(name) && line.contains("= -1 E"))
            .count()
    };
    assert!(failed("preadv2(") <= 10, "{}", failed("preadv2("));
    assert!(
        calls
            .lines()
            .filter(|line| line.contains("preadv2("))
            .count()
            < 1000
            || failed("preadv2(") == 0
    );
    let opened = calls
        .lines()
        .filter(|line| line.contains("openat2(") && line.contains("EAGAIN"))
        .count();
    assert!(opened <= 10, "{opened}");
}

#[test]
fn hard_links_that_get_other_numbers_are_not_promised_and_named_as_such() {
    if let Some(reason) = missing(&["mergerfs"]) {
        return left_out(&reason);
    }
    let tree = TestTree::new();
    for index in 0..5 {
        tree.write(format!("d/{index}"), "the same in all");
    }
    for (how, said) in [
        (
            "--dry-run",
            "whether hard links work on mergerfs shows when it is tried",
        ),
        (
            "--journal=j",
            "mergerfs numbers the names of one file differently",
        ),
    ] {
        let text = format!(
            "mergerfs d $M 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
            status=0; $BC dup prune --action=hardlink {how} $M || status=$?
            umount $M; exit $status"
        );
        let Some(outcome) = script(&tree, &text) else {
            return;
        };
        // A mergerfs that keeps the numbers does it.
        if how != "--dry-run" && outcome.status.success() {
            return left_out("this mergerfs keeps inode numbers");
        }
        outcome.code(1).stdout_is("").stderr_has(said);
        assert_eq!(reported(&outcome), 1, "{}", outcome.error_text());
        assert!(!outcome.error_text().contains("kept file changed"));
    }
}

#[test]
fn a_kept_file_on_a_young_image_needs_no_writing_out() {
    if let Some(reason) = missing(&["mksquashfs", "losetup"]) {
        return left_out(&reason);
    }
    let tree = TestTree::new();
    tree.write("kept/a", "the same").write("d/b", "the same");
    let text = "mksquashfs kept img -quiet -no-progress -noappend >/dev/null
        mount -o loop,ro img $M 2>err.txt || { echo cannot mount: $(cat err.txt) >&2; exit 77; }
        status=0; $BC dup prune --action=delete --yes --journal=j --reference $M $M d || status=$?
        umount $M; exit $status";
    if let Some(outcome) = script(&tree, text) {
        outcome.code(0);
        assert!(!tree.exists("d/b"), "{}", outcome.error_text());
    }
}

#[test]
fn files_without_an_end_are_given_up() {
    let tree = TestTree::new();
    let outcome = tree.bc_line("hash --type=xxh3 /proc/self").go();
    outcome
        .code(1)
        .stderr_has("/proc/self/pagemap: read: File too large");
}

/// Containers: the cache is of use where an overlay passes on the numbers of the file
/// system that it writes to, and says where it does not.
#[test]
fn an_overlay_is_trusted_with_the_numbers_of_its_own_disk() {
    if let Some(reason) = missing(&["mksquashfs", "losetup"]) {
        return left_out(&reason);
    }
    let tree = two_versions();
    let text = format!(
        "{IMAGES}
        mkdir l work up one.d; mount -o loop,ro one.img one.d || {{ echo cannot mount >&2; exit 77; }}
        for lower in one one.d; do
            rm -rf up work; mkdir up work
            mount -t overlay overlay -o lowerdir=$lower,upperdir=up,workdir=work $M || {{ echo cannot mount >&2; exit 77; }}
            echo $lower; $BC dup --cache=c.$lower $M 2>&1 >/dev/null; umount $M
        done; umount one.d"
    );
    let Some(outcome) = script(&tree, &text) else {
        return;
    };
    outcome.code(0);
    let text = outcome.text();
    let (own, others) = text.split_once("one.d").unwrap();
    assert_eq!(own, "one\n");
    assert!(others.contains("not used on overlay"), "{text}");
}

/// Where blocks can be shared, and holes come with them.
#[test]
fn a_copy_shares_nothing_and_keeps_no_holes_where_that_was_not_to_be() {
    for kind in ["xfs", "btrfs"] {
        let mkfs = format!("mkfs.{kind}");
        if let Some(reason) = missing(&[&mkfs, "losetup", "truncate", "filefrag"]) {
            left_out(&reason);
            continue;
        }
        let tree = TestTree::new();
        let text = format!(
            "truncate -s 512M img; {mkfs} -q img >/dev/null
            mount -o loop img $M 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
            trap 'umount $M' EXIT
            mkdir $M/r; truncate -s 1M $M/r/hole; printf x >>$M/r/hole
            head -c 1000000 /dev/zero >$M/r/zeros; sync
            status=0
            for how in --algorithm=none --algorithm=blake3; do
                rm -rf $M/never $M/always $M/apart
                $BC copy $how --sparse=never $M/r $M/never
                $BC copy $how --sparse=always $M/r $M/always
                $BC copy $how --reflink=never $M/r $M/apart
                sync
                echo $how $(stat -c '%b' $M/never/hole) $(stat -c '%b' $M/always/zeros) \
                    $(filefrag -v $M/apart/zeros | grep -c shared || :)
                cmp $M/r/hole $M/never/hole; cmp $M/r/zeros $M/always/zeros
            done"
        );
        let Some(outcome) = script(&tree, &text) else {
            continue;
        };
        outcome.code(0);
        let text = outcome.text();
        assert_eq!(text.lines().count(), 2, "{kind}: {outcome}");
        for line in text.lines() {
            let numbers: Vec<u64> = line
                .split(' ')
                .filter_map(|part| part.parse().ok())
                .collect();
            let [never, always, shared] = numbers[..] else {
                panic!("{kind}: {outcome}");
            };
            assert!(
                never >= 2048 && always == 0 && shared == 0,
                "{kind}: {line}"
            );
        }
    }
}
