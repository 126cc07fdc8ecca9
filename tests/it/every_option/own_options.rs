//! Options of single commands: one small run each, and what is to be seen.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::Check;
use super::ground::Ground;
use crate::common::ABC;

fn json(out: &bc_testkit::Outcome) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}{out}"))
}

fn inode(g: &Ground, name: &str) -> u64 {
    std::fs::metadata(g.t.join(name)).unwrap().ino()
}

/// `--output=FILE`: nothing on stdout, the same in the file.
fn output(g: &Ground, line: &str) {
    let shown = g.bc(line);
    let code = shown.status.code().unwrap();
    g.bc(&format!("{line} --output=result"))
        .code(code)
        .stdout_is("");
    let file = g.t.read("result");
    assert!(!file.is_empty());
    // Two runs differ in times only.
    let lines = |bytes: &[u8]| bytes.iter().filter(|b| **b == b'\n').count();
    assert_eq!(lines(&file), lines(&shown.stdout));
}

pub const CASES: &[(&str, &str, Check)] = &[
    // bc hash
    ("hash hash", "type", |g| {
        g.bc("hash hash --type=md5 d/a.c")
            .code(0)
            .stdout_is("900150983cd24fb0d6963f7d28e17f72  d/a.c\n");
    }),
    ("hash hash", "format", |g| {
        g.bc("hash hash --format=bsd d/a.c")
            .code(0)
            .stdout_is(format!("SHA256 (d/a.c) = {ABC}\n"));
    }),
    ("hash hash", "zero", |g| {
        g.bc("hash hash --zero d/a.c")
            .code(0)
            .stdout_is(format!("{ABC}  d/a.c\0"));
    }),
    ("hash hash", "relative", |g| {
        g.bc("hash hash --relative --include=a.c d")
            .code(0)
            .stdout_is(format!("{ABC}  a.c\n"));
    }),
    ("hash hash", "allow-changed", allow_changed),
    ("hash hash", "output", |g| output(g, "hash hash d")),
    ("hash check", "type", |g| {
        g.bc("hash check sums").code(0);
        g.bc("hash check --type=blake3 sums")
            .code(1)
            .stdout_has("d/a.c: FAILED\n");
    }),
    ("hash check", "ignore-missing", |g| {
        std::fs::remove_file(g.t.join("d/a.c")).unwrap();
        g.bc("hash check sums")
            .code(1)
            .stdout_has("d/a.c: FAILED open or read");
        let out = g.bc("hash check --ignore-missing sums");
        assert!(!out.code(0).text().contains("a.c"), "{out}");
    }),
    ("hash check", "status", |g| {
        g.bc("hash check --status sums").code(0).stdout_is("");
        g.t.write("d/a.c", "other");
        g.bc("hash check --status sums")
            .code(1)
            .stdout_is("")
            .stderr_is("");
    }),
    ("hash check", "strict", |g| {
        g.t.write("sums", g.text("sums") + "nonsense\n");
        g.bc("hash check sums").code(0);
        g.bc("hash check --strict sums").code(1);
    }),
    ("hash check", "warn", |g| {
        g.t.write("sums", g.text("sums") + "nonsense\n");
        let quiet = g.bc("hash check sums");
        assert!(!quiet.error_text().contains("sums:9"), "{quiet}");
        g.bc("hash check --warn sums")
            .stderr_has("9: improperly formatted");
    }),
    ("hash check", "unlisted", |g| {
        g.t.write("d/new", "");
        g.bc("hash check sums").code(0);
        g.bc("hash check --unlisted sums")
            .code(1)
            .stdout_has("d/new: UNLISTED\n");
    }),
    ("hash check", "base", |g| {
        g.bc("hash --relative --output=relative d").code(0);
        g.bc("hash check relative").code(1);
        g.bc("hash check --base=d relative")
            .code(0)
            .stdout_has("a.c: OK\n");
    }),
    ("hash check", "zero", |g| {
        g.t.write_bytes(b"d/new\nline", "abc");
        g.bc("hash --zero --output=zeros d").code(0);
        g.bc("hash check --zero zeros").code(0);
        // Taken as one record, lines are none.
        g.bc("hash check --zero sums").code(1);
    }),
    ("hash diff", "format", |g| {
        let changes = json(&g.bc("hash diff --format=json sums fewer"));
        assert_eq!(changes["changes"].as_array().unwrap().len(), 2);
        assert_eq!(changes["changes"][0]["change"], "REMOVED");
    }),
    ("hash diff", "type", |g| {
        g.bc("hash --type=blake3 --output=plain d").code(0);
        g.bc("hash --type=blake3 --format=bsd --output=tagged d")
            .code(0);
        g.bc("hash diff plain tagged").code(2);
        g.bc("hash diff --type=blake3 plain tagged").code(0);
    }),
    ("hash diff", "zero", |g| {
        g.bc("hash --zero --output=zeros d").code(0);
        g.bc("hash --zero --exclude=a.c --output=less d").code(0);
        g.bc("hash diff --zero zeros less")
            .code(1)
            .stdout_is("REMOVED d/a.c\n");
    }),
    ("hash diff", "output", |g| output(g, "hash diff sums fewer")),
    // bc dup
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
    ("dup summary", "algorithm", |g| {
        g.bc("dup summary --algorithm=md5 d").code(2);
        g.bc("dup summary --algorithm=blake3 d")
            .code(0)
            .stdout_has("duplicates                5");
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
                "hardlink d/sub/b.c to outside/x.c\nhardlink d/sub/deep/c.o to outside/x.c\n",
            );
    }),
    ("dup prune", "across-roots", |g| {
        g.bc("dup prune --action=hardlink --dry-run --across-roots d")
            .code(0)
            .stdout_is("");
    }),
    ("dup prune", "cache", |g| {
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
        // Only network file systems and the like make a difference, which bc-dup's own tests
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
    // bc integrity
    ("integrity manifest", "algorithm", |g| {
        g.bc("integrity manifest --algorithm=md5 d")
            .code(0)
            .stdout_has("\"algorithm\":\"md5\"")
            .stdout_has("900150983cd24fb0d6963f7d28e17f72");
    }),
    ("integrity manifest", "xattrs", |g| {
        let set = rustix::fs::setxattr(
            g.t.join("d/a.c"),
            "user.bc-test",
            b"value",
            rustix::fs::XattrFlags::empty(),
        );
        if let Err(error) = set {
            return bc_testkit::left_out(&format!("extended attributes: {error}"));
        }
        let plain = g.bc("integrity manifest d").text();
        assert!(!plain.contains("user.bc-test"));
        g.bc("integrity manifest --xattrs d")
            .code(0)
            .stdout_has("\"user.bc-test\":\"dmFsdWU=\"");
    }),
    ("integrity manifest", "output", |g| {
        output(g, "integrity manifest d");
        g.bc("integrity manifest --output=m.jsonl.zst d").code(0);
        assert_eq!(g.t.read("m.jsonl.zst")[..4], [0x28, 0xb5, 0x2f, 0xfd]);
    }),
    ("integrity verify", "mode", |g| {
        g.damage("d/a.c");
        g.bc("integrity verify d m.jsonl")
            .code(3)
            .stdout_has("!! a.c");
        g.bc("integrity verify --mode=meta d m.jsonl").code(0);
    }),
    ("integrity verify", "format", |g| {
        g.t.write("d/new", "");
        let out = g.bc("integrity verify --format=json --mode=content d m.jsonl");
        let types = out.code(1).lines().into_iter().map(|line| {
            let object: Value = serde_json::from_slice(line).unwrap();
            object["type"].as_str().unwrap().to_owned()
        });
        assert_eq!(types.collect::<Vec<_>>(), ["header", "change", "summary"]);
    }),
    ("integrity verify", "ignore", |g| {
        g.t.mtime("d/a.c", 1_000_000_000, 0);
        g.bc("integrity verify d m.jsonl")
            .code(1)
            .stdout_has("~m a.c mtime: ");
        g.bc("integrity verify --ignore=mtime,ctime d m.jsonl")
            .code(0);
        g.bc("integrity verify --ignore=colour d m.jsonl")
            .code(2)
            .stderr_has("colour");
    }),
    ("integrity verify", "fail-fast", |g| {
        g.t.write("d/new1", "").write("d/new2", "");
        let lines = |line| g.bc(line).code(1).lines().len();
        assert_eq!(lines("integrity verify --mode=content d m.jsonl"), 2);
        assert_eq!(
            lines("integrity verify --mode=content --fail-fast d m.jsonl"),
            1
        );
    }),
    ("integrity verify", "force", |g| {
        g.cut_manifest();
        g.bc("integrity verify d cut.jsonl").code(2);
        g.bc("integrity verify --force d cut.jsonl")
            .code(0)
            .stderr_has("truncated");
    }),
    ("integrity verify", "output", |g| {
        g.t.write("d/new", "");
        output(g, "integrity verify d m.jsonl");
    }),
    ("integrity diff", "format", |g| {
        let out = g.bc("integrity diff --format=json m.jsonl m.jsonl");
        assert_eq!(out.code(0).lines().len(), 2, "{out}");
        out.stdout_has("{\"type\":\"summary\"");
    }),
    ("integrity diff", "ignore", |g| {
        g.t.mtime("d/a.c", 1_000_000_000, 0);
        g.bc("integrity manifest --output=later.jsonl d").code(0);
        g.bc("integrity diff m.jsonl later.jsonl").code(1);
        g.bc("integrity diff --ignore=mtime,ctime m.jsonl later.jsonl")
            .code(0);
    }),
    ("integrity diff", "force", |g| {
        g.cut_manifest();
        g.bc("integrity diff m.jsonl cut.jsonl").code(2);
        g.bc("integrity diff --force m.jsonl cut.jsonl")
            .code(0)
            .stderr_has("truncated");
    }),
    ("integrity diff", "output", |g| {
        g.t.write("d/new", "");
        g.bc("integrity manifest --output=later.jsonl d").code(0);
        output(g, "integrity diff m.jsonl later.jsonl");
    }),
    ("integrity update", "reread", |g| {
        let read = |options| {
            let line = format!("integrity update {options} d m.jsonl");
            g.metric(&line, "read_bytes")
        };
        assert_eq!(read(""), 0);
        assert_eq!(read("--reread=100%"), 6021);
        g.bc("integrity update --reread=some d m.jsonl")
            .code(2)
            .stderr_has("some");
    }),
    ("integrity update", "accept-damaged", |g| {
        g.damage("d/a.c");
        g.bc("integrity update d m.jsonl").code(3);
        g.bc("integrity verify d m.jsonl").code(3);
        g.bc("integrity update --accept-damaged d m.jsonl");
        g.bc("integrity verify d m.jsonl").code(0);
    }),
    ("integrity update", "force", |g| {
        g.cut_manifest();
        g.bc("integrity update d cut.jsonl").code(2);
        g.bc("integrity update --force d cut.jsonl")
            .code(0)
            .stderr_has("truncated");
    }),
    ("integrity export", "format", |g| {
        g.bc("integrity export --format=hashdeep m.jsonl")
            .code(0)
            .stdout_has("%%%% HASHDEEP-1.0");
        g.bc("integrity export --format=gnu m.jsonl")
            .code(0)
            .stdout_has(format!("{ABC}  a.c\n"));
    }),
    ("integrity export", "force", |g| {
        g.cut_manifest();
        g.bc("integrity export --format=gnu cut.jsonl").code(2);
        g.bc("integrity export --format=gnu --force cut.jsonl")
            .code(0)
            .stderr_has("truncated")
            .stdout_has("a.c");
    }),
    ("integrity export", "output", |g| {
        output(g, "integrity export --format=gnu m.jsonl");
    }),
    ("integrity import", "algorithm", |g| {
        g.t.write("plain", format!("{ABC}  a.c\n"));
        g.bc("integrity import plain")
            .code(0)
            .stdout_has("\"algorithm\":\"sha256\"");
        g.bc("integrity import --algorithm=blake3 plain")
            .code(0)
            .stdout_has("\"algorithm\":\"blake3\"");
    }),
    ("integrity import", "strip-prefix", |g| {
        g.bc("integrity import sums")
            .code(0)
            .stdout_has("\"path\":\"d/a.c\"");
        g.bc("integrity import --strip-prefix=d sums")
            .code(0)
            .stdout_has("\"path\":\"a.c\"");
    }),
    ("integrity import", "output", |g| {
        output(g, "integrity import sums");
    }),
    // bc install
    ("install", "symbolic", |g| {
        g.t.dir("bin");
        g.bc("install --symbolic bin").code(0);
        assert!(g.t.join("bin/bchash").is_symlink());
        g.bc("install --symbolic --hard bin").code(2);
    }),
    ("install", "hard", |g| {
        // Hard links do not cross file systems, so the program comes along.
        let program = g.t.join("bc-copy");
        let copied = std::process::Command::new("cp")
            .arg(crate::common::BC)
            .arg(&program)
            .status();
        assert!(copied.unwrap().success());
        g.t.dir("bin");
        let out = g.t.run(&program).args(["install", "--hard", "bin"]).go();
        out.code(0);
        assert_eq!(inode(g, "bin/bchash"), inode(g, "bc-copy"));
    }),
    ("install", "force", |g| {
        g.t.write("bin/bchash", "somebody's");
        g.bc("install bin").code(2);
        g.bc("install --force bin").code(0);
        assert!(g.t.join("bin/bchash").is_symlink());
    }),
];

/// Files that changed a moment ago are not remembered: they might change again unseen.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(2100));
}

/// With `--cache` the second run reads nothing.
fn cache(g: &Ground, command: &str) {
    settle();
    let line = format!("{command} --cache=digests d");
    assert_eq!(g.metric(&line, "read_bytes"), 6015);
    assert_eq!(g.metric(&line, "read_bytes"), 0);
    assert!(g.t.join("digests").exists());
    g.bc(&format!("{command} --cache d")).code(0);
    assert!(g.t.scratch("cache/bc/dup.redb").exists());
}

/// A file whose time changes all the while it is read.
fn allow_changed(g: &Ground) {
    let file = std::fs::File::create(g.t.join("busy")).unwrap();
    file.set_len(64 << 20).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seconds = 1_000_000_000;
            while !done.load(Ordering::Relaxed) {
                g.t.mtime("busy", seconds, 0);
                seconds += 1;
            }
        });
        let refused = g.bc("hash --type=xxh3 busy");
        let allowed = g.bc("hash --type=xxh3 --allow-changed busy");
        done.store(true, Ordering::Relaxed);
        refused
            .code(1)
            .stdout_is("")
            .stderr_has("busy: read: changed while reading");
        allowed.code(0).stdout_has("  busy\n");
    });
}
