//! Options of `bc dup`.

use std::os::unix::fs::MetadataExt;

use super::Case;
use super::ground::{Ground, inode, json, output};
use crate::common::{ABC, is_cached};

pub const CASES: &[Case] = &[
    ("dup scan", "algorithm", |g| {
        let report = json(&g.bc("dup scan --algorithm=sha256 --format=json d"));
        let groups = report["groups"].as_array().unwrap();
        assert!(
            groups.iter().any(|group| group["digest"] == ABC),
            "{groups:?}"
        );
    }),
    ("dup scan", "verify-bytes", |g| {
        let read = |options| g.metric(&format!("dup scan {options} d"), "read_bytes");
        assert!(read("--verify-bytes") > read(""));
    }),
    ("dup scan", "match-hardlinks", |g| {
        g.t.hard_link("d/a.c", "links/one")
            .hard_link("d/a.c", "links/two");
        g.bc("dup scan links").code(0).stdout_is("");
        g.bc("dup scan --match-hardlinks links")
            .code(0)
            .stdout_is("links/one\nlinks/two\n");
    }),
    ("dup scan", "reference", |g| {
        let first = |line| g.bc(line).code(0).lines()[0].to_vec();
        assert_eq!(first("dup scan d outside"), b"d/.h.c");
        assert_eq!(
            first("dup scan --reference=outside d outside"),
            b"outside/x.c"
        );
    }),
    ("dup scan", "across-roots", |g| {
        g.bc("dup scan --across-roots d").code(0).stdout_is("");
        g.bc("dup scan --across-roots d/sub outside")
            .code(0)
            .stdout_is("d/sub/b.c\nd/sub/deep/c.o\noutside/x.c\n");
    }),
    ("dup scan", "cache", |g| cache(g, "dup scan")),
    ("dup scan", "format", |g| {
        g.bc("dup scan --format=csv d")
            .code(0)
            .stdout_has("d/large2.c")
            .stdout_has(",");
    }),
    ("dup scan", "output", |g| output(g, "dup scan d")),
    ("dup unique", "reference", |g| {
        g.bc("dup unique outside --reference=d").code(0);
        g.bc("dup unique d --reference=outside")
            .code(1)
            .stdout_is("d/.gitignore\nd/large.c\nd/large2.c\n");
    }),
    ("dup unique", "trust-list", |g| {
        g.bc("hash --output=list outside").code(0);
        // As if it had been made where the directory was before.
        g.t.run("sed")
            .args(["-i", "s,  outside,  /mnt,", "list"])
            .go()
            .code(0);
        g.bc("dup unique outside --reference=list").code(1);
        g.bc("dup unique outside --reference=list --trust-list")
            .code(0);
    }),
    ("dup unique", "verify-bytes", |g| {
        let read = |options| {
            g.metric(
                &format!("dup unique {options} d --reference=outside"),
                "read_bytes",
            )
        };
        assert!(read("--verify-bytes") > read(""));
    }),
    ("dup unique", "format", |g| {
        let report = json(&g.bc("dup unique --format=json outside"));
        assert_eq!(report["unique"][0]["files"][0]["path"], "outside/x.c");
    }),
    ("dup unique", "null", |g| {
        g.bc("dup unique -0 outside")
            .code(1)
            .stdout_is("outside/x.c\0");
    }),
    ("dup summary", "algorithm", |g| {
        g.bc("dup summary --algorithm=md5 d").code(2);
        g.bc("dup summary --algorithm=blake3 d")
            .code(0)
            .stdout_has("duplicates                    5");
    }),
    ("dup summary", "verify-bytes", |g| {
        let read = |options| g.metric(&format!("dup summary {options} d"), "read_bytes");
        assert!(read("--verify-bytes") > read(""));
    }),
    ("dup summary", "match-hardlinks", |g| {
        g.t.hard_link("d/a.c", "links/one")
            .hard_link("d/a.c", "links/two");
        assert_eq!(g.metric("dup summary links", "duplicates"), 0);
        assert_eq!(
            g.metric("dup summary --match-hardlinks links", "duplicates"),
            1
        );
    }),
    ("dup summary", "reference", |g| {
        assert_eq!(g.metric("dup summary d", "files"), 8);
        assert_eq!(g.metric("dup summary --reference=outside d", "files"), 9);
    }),
    ("dup summary", "across-roots", |g| {
        assert_eq!(g.metric("dup summary d", "groups"), 2);
        assert_eq!(g.metric("dup summary --across-roots d", "groups"), 0);
    }),
    ("dup summary", "cache", |g| cache(g, "dup summary")),
    ("dup dirs", "algorithm", |g| {
        let report = json(&g.bc("dup dirs --algorithm=sha256 --format=json d"));
        assert_eq!(report["digest_algorithm"], "sha256");
    }),
    ("dup dirs", "verify-bytes", |g| {
        let read = |options| g.metric(&format!("dup dirs {options} d"), "read_bytes");
        assert!(read("--verify-bytes") > read(""));
    }),
    ("dup dirs", "match-hardlinks", |g| {
        g.t.hard_link("d/a.c", "links/one")
            .hard_link("d/a.c", "links/two");
        g.bc("dup dirs links").code(0).stdout_is("");
        g.bc("dup dirs --match-hardlinks links")
            .code(0)
            .stdout_is("links/one\nlinks/two\n");
    }),
    ("dup dirs", "reference", |g| {
        copies(g);
        let first = |line| g.bc(line).code(0).lines()[0].to_vec();
        assert_eq!(first("dup dirs one two"), b"one/");
        assert_eq!(first("dup dirs --reference=two one"), b"two/");
    }),
    ("dup dirs", "across-roots", |g| {
        copies(g);
        g.bc("dup dirs --across-roots .").code(0).stdout_is("");
        g.bc("dup dirs --across-roots one two")
            .code(0)
            .stdout_is("one/\ntwo/\n");
    }),
    ("dup dirs", "cache", |g| cache(g, "dup dirs")),
    ("dup dirs", "ignore-names", |g| {
        copies(g);
        std::fs::rename(g.t.join("two/f"), g.t.join("two/g")).unwrap();
        let both = "one/\ntwo/\n";
        let reported = |line| g.bc(line).code(0).text().contains(both);
        assert!(!reported("dup dirs one two") && reported("dup dirs --ignore-names one two"));
    }),
    ("dup dirs", "similar", |g| {
        copies(g);
        g.t.write("one/1", "1").write("two/2", "2");
        let reported = |line| g.bc(line).code(0).text().contains("in common");
        assert!(!reported("dup dirs one two") && reported("dup dirs --similar=90 one two"));
    }),
    ("dup dirs", "min-files", |g| {
        copies(g);
        g.bc("dup dirs --min-files=1 one two")
            .stdout_is("one/\ntwo/\n");
        g.bc("dup dirs --min-files=2 one two")
            .stdout_is("one/f\ntwo/f\n");
    }),
    ("dup dirs", "format", |g| {
        copies(g);
        let report = json(&g.bc("dup dirs --format=json one two"));
        assert_eq!(report["directories"][0]["bytes"], 1000);
    }),
    ("dup dirs", "output", |g| output(g, "dup dirs d")),
    ("dup prune", "algorithm", |g| {
        g.bc("dup prune --algorithm=md5 --action=hardlink d")
            .code(2);
        g.bc("dup prune --algorithm=sha256 --action=hardlink d")
            .code(0);
        assert_eq!(inode(g, "d/a.c"), inode(g, "d/sub/b.c"));
    }),
    ("dup prune", "verify-bytes", |g| {
        let line = "dup prune --verify-bytes --action=hardlink --dry-run -v d";
        g.bc(line).code(0).stderr_has("12039 bytes read");
        g.bc(&line.replace("--verify-bytes", ""))
            .code(0)
            .stderr_has("6015 bytes read");
    }),
    ("dup prune", "match-hardlinks", |g| {
        // They count as found, and two names of one file are still never acted on.
        g.t.hard_link("d/a.c", "links/one")
            .hard_link("d/a.c", "links/two");
        let line = "dup prune --action=delete --yes -v links";
        g.bc(line).code(0).stderr_has("found: 0 groups");
        g.bc(&format!("{line} --match-hardlinks"))
            .stderr_has("found: 1 groups");
        assert!(g.t.join("links/one").exists() && g.t.join("links/two").exists());
    }),
    ("dup prune", "reference", |g| {
        g.bc("dup prune --action=hardlink --dry-run --reference=outside d/sub outside")
            .code(0)
            .stdout_is(
                "hardlink d/sub/b.c to outside/x.c (reference)\nhardlink d/sub/deep/c.o to outside/x.c (reference)\n",
            );
    }),
    ("dup prune", "across-roots", |g| {
        g.bc("dup prune --action=hardlink --dry-run --across-roots d")
            .code(0)
            .stdout_is("");
    }),
    ("dup prune", "cache", |g| {
        if !is_cached(&g.t) {
            return;
        }
        settle();
        let line = "dup prune --action=hardlink --dry-run -v --cache=digests d";
        g.bc(line).code(0).stderr_has("6015 bytes read");
        g.bc(line).code(0).stderr_has(" 0 bytes read");
    }),
    ("dup prune", "action", |g| {
        g.bc("dup prune --action=symlink --yes d/large.c d/large2.c")
            .code(0);
        let target = std::fs::read_link(g.t.join("d/large2.c")).unwrap();
        assert_eq!(target, std::path::Path::new("large.c"));
    }),
    ("dup prune", "dirs", |g| {
        g.t.write("copies/a/file", "twin")
            .write("copies/b/file", "twin");
        g.bc("dup prune --dirs --action=delete --yes --keep=first copies")
            .code(0)
            .stdout_is("delete copies/b/ with 1 file (kept: copies/a/)\n");
        assert!(!g.t.join("copies/b").exists());
    }),
    ("dup prune", "interactive", |g| {
        g.bc("dup prune --interactive --action=hardlink d")
            .code(2)
            .stderr_has("on a terminal");
    }),
    ("dup prune", "keep", |g| {
        g.bc("dup prune --action=hardlink --dry-run --keep=name:ign.c d")
            .code(0)
            .stdout_has("hardlink d/.h.c to d/ign.c\n");
    }),
    ("dup prune", "dry-run", |g| {
        let steps = g.bc("dup prune --action=hardlink --dry-run d");
        assert_ne!(inode(g, "d/a.c"), inode(g, "d/.h.c"));
        g.bc("dup prune --action=hardlink d")
            .code(0)
            .stdout_is(&steps.stdout);
        assert_eq!(inode(g, "d/a.c"), inode(g, "d/.h.c"));
    }),
    ("dup prune", "yes", |g| {
        g.bc("dup prune --action=delete d")
            .code(2)
            .stderr_has("--yes");
        assert!(g.t.join("d/large2.c").exists());
        g.bc("dup prune --action=delete --yes d").code(0);
        assert!(!g.t.join("d/large2.c").exists() && g.t.join("d/large.c").exists());
    }),
    ("dup prune", "force", |g| {
        // Only network file systems and the like make a difference, which bc-find's own tests
        // stand in for. Here: it overrides no other rule.
        g.t.mode("d/large2.c", 0o600);
        g.bc("dup prune --action=hardlink --force d")
            .stderr_has("large2.c");
        assert_ne!(inode(g, "d/large.c"), inode(g, "d/large2.c"));
        assert_eq!(inode(g, "d/a.c"), inode(g, "d/.h.c"));
    }),
    ("dup prune", "ignore-metadata", |g| {
        g.t.mode("d/large2.c", 0o600);
        g.bc("dup prune --action=hardlink d");
        assert_ne!(inode(g, "d/large.c"), inode(g, "d/large2.c"));
        g.bc("dup prune --action=hardlink --ignore-metadata d")
            .code(0);
        assert_eq!(inode(g, "d/large.c"), inode(g, "d/large2.c"));
    }),
    ("dup prune", "max-links", |g| {
        g.bc("dup prune --action=hardlink --max-links=2 d").code(0);
        for name in ["a.c", ".h.c", "sub/b.c", "sub/deep/c.o", "ign.c"] {
            let meta = std::fs::metadata(g.t.join("d").join(name)).unwrap();
            assert!(meta.nlink() <= 2, "{name}: {}", meta.nlink());
        }
    }),
    ("dup prune", "keep-copies", |g| {
        // Two files are kept of each content, so one of three goes.
        g.t.write("k/1", "copies")
            .write("k/2", "copies")
            .write("k/3", "copies");
        g.t.hard_link("k/1", "k/11");
        g.bc("dup prune --action=delete --yes --keep=first --keep-copies=2 k")
            .code(0);
        let left = ["k/1", "k/11", "k/2", "k/3"].map(|name| g.t.join(name).exists());
        assert_eq!(left, [true, true, true, false]);
        g.bc("dup prune --action=delete --yes --keep-copies=0 k")
            .code(2);
        g.bc("dup prune --action=delete --yes --dirs --keep-copies=2 k")
            .code(2);
    }),
    ("dup prune", "journal", |g| {
        g.bc("dup prune --action=hardlink --journal=steps.jsonl d")
            .code(0);
        assert!(g.text("steps.jsonl").contains("large2.c"));
    }),
    ("dup prune", "from", |g| {
        g.bc("dup scan --format=json --output=report.json d")
            .code(0);
        g.bc("dup prune --action=hardlink --from=report.json")
            .code(0);
        assert_eq!(inode(g, "d/large.c"), inode(g, "d/large2.c"));
    }),
    ("dup undo", "dry-run", |g| {
        g.bc("dup prune --action=hardlink --journal=steps.jsonl d")
            .code(0);
        g.bc("dup undo --dry-run steps.jsonl")
            .code(0)
            .stdout_has("large2.c (hardlink)")
            .stderr_is("bc dup: 5 would be restored\n");
        assert_eq!(inode(g, "d/large.c"), inode(g, "d/large2.c"));
        g.bc("dup undo steps.jsonl")
            .code(0)
            .stderr_is("bc dup: 5 restored\n");
        assert_ne!(inode(g, "d/large.c"), inode(g, "d/large2.c"));
    }),
    ("dup undo", "last", |g| {
        g.bc("dup prune --action=hardlink d").code(0);
        g.bc("dup undo --last").code(0).stdout_has("large2.c");
        assert_ne!(inode(g, "d/large.c"), inode(g, "d/large2.c"));
    }),
];

/// Files that changed a moment ago are not remembered: they might change again unseen.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(2100));
}

/// With `--cache` the second run reads nothing.
fn cache(g: &Ground, command: &str) {
    if !is_cached(&g.t) {
        return;
    }
    settle();
    let line = format!("{command} --cache=digests d");
    // So few that all are read whole at once.
    assert_eq!(g.metric(&line, "read_bytes"), 6015);
    assert_eq!(g.metric(&line, "read_bytes"), 0);
    assert!(g.t.join("digests").exists());
    g.bc(&format!("{command} --cache d")).code(0);
    assert!(g.t.scratch("cache/bc/dup.redb").exists());
}

/// Two equal directories.
fn copies(g: &Ground) {
    for copy in ["one", "two"] {
        g.t.write(format!("{copy}/f"), [7; 1000]);
    }
}
