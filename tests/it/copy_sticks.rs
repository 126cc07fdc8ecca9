//! `bc copy` to what sticks and cameras are formatted with: no owners, no attributes, no links, one
//! case, coarse times.

use bc_testkit::{Outcome, TestTree, left_out};

use crate::file_systems::{missing, script};

/// Ways to mount such a file system, each with the tools it takes.
const MOUNTS: [(&str, &str, &[&str]); 3] = [
    (
        "vfat",
        "mkfs.vfat img >/dev/null; mount -t vfat -o loop img $M",
        &["mkfs.vfat", "losetup"],
    ),
    (
        "exfat",
        "mkfs.exfat img >/dev/null; mount -t exfat -o loop img $M",
        &["mkfs.exfat", "losetup"],
    ),
    (
        "exfat by FUSE",
        "mkfs.exfat img >/dev/null; device=$(losetup -f --show img)
        mount.exfat-fuse $device $M >/dev/null || { losetup -d $device; false; }
        losetup -d $device",
        &["mkfs.exfat", "losetup", "mount.exfat-fuse"],
    ),
];

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("r/a/file", "content")
        .write("r/a/large", vec![7; 300_000])
        .write(format!("r/{}", "n".repeat(200)), "long")
        .write("r/program", "x")
        .mode("r/program", 0o755)
        .hard_link("r/a/large", "r/second")
        .mtime("r/a/file", 1_000_000_001, 123_456_789);
    t
}

/// The script on each that there is.
pub fn on_each(make: fn() -> TestTree, text: &str, check: impl Fn(&str, Outcome)) {
    for (name, mount, tools) in MOUNTS {
        if let Some(reason) = missing(tools) {
            left_out(&format!("{name}: {reason}"));
            continue;
        }
        let t = make();
        let mounted = format!(
            "truncate -s 64M img; {{ {mount}; }} 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}\n"
        );
        if let Some(outcome) = script(&t, &format!("{mounted}{text}")) {
            check(name, outcome);
        }
    }
}

#[test]
fn all_that_can_be_kept_is_kept() {
    let text = "
        $BC copy r $M/to || echo code $?
        cmp r/a/file $M/to/a/file; cmp r/a/large $M/to/a/large; cmp r/second $M/to/second
        cmp r/program $M/to/program; cmp r/nnn* $M/to/nnn*
        $BC integrity verify $M/to $M/to/.bc-copy-manifest.jsonl || echo verify $?
        $BC copy -T --on-conflict=update r $M/to || echo code $?
        ls -a $M/to | grep part || echo clean
        umount $M";
    on_each(tree, text, |name, outcome| {
        outcome.code(0).stdout_has("clean");
        let text = outcome.text();
        assert!(
            !text.contains("code") && !text.contains("verify"),
            "{name}: {outcome}"
        );
        // Times are cut off there, which makes no copy older than its source.
        outcome.stderr_has("0 B written");
    });
}

#[test]
fn links_and_pipes_are_named_and_the_rest_is_copied() {
    let make = || {
        let t = tree();
        t.symlink("a/file", "r/link").fifo("r/pipe");
        t
    };
    let text = "
        $BC copy r $M/to || echo code $?
        cmp r/a/file $M/to/a/file; cmp r/a/large $M/to/a/large
        rm r/link r/pipe
        $BC copy r $M/to || echo again $?
        ls -a $M/to | grep part || echo clean
        umount $M";
    on_each(make, text, |name, outcome| {
        outcome.code(0).stdout_has("code 1").stdout_has("clean");
        let text = outcome.error_text();
        for path in ["to/link: ", "to/pipe: "] {
            assert_eq!(text.matches(path).count(), 1, "{name}: {outcome}");
        }
        // What was done before is done.
        assert!(!outcome.text().contains("again"), "{name}: {outcome}");
        outcome.stderr_has("by an earlier run");
    });
}

#[test]
fn names_that_differ_in_case_do_not_replace_each_other() {
    let make = || {
        let t = TestTree::new();
        t.write("r/file", "lower").write("r/FILE", "upper");
        t.write("r/dir/one", "1").write("r/DIR/two", "2");
        t
    };
    let text = "
        $BC copy r $M/to || echo code $?
        cat $M/to/file
        umount $M";
    on_each(make, text, |name, outcome| {
        outcome.code(0).stdout_has("code 1");
        let text = outcome.text();
        let whole = text.ends_with("lower") || text.ends_with("upper");
        assert!(whole, "{name}: {outcome}");
        outcome.stderr_has("File exists");
    });
}
