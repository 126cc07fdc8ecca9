//! Options of `bc integrity`.

use serde_json::Value;

use super::Case;
use super::ground::{output, resume};
use crate::common::ABC;

pub const CASES: &[Case] = &[
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
    ("integrity manifest", "resume", |g| {
        resume(g, "integrity manifest d");
    }),
    ("integrity manifest", "shard", |g| {
        g.bc("integrity manifest --shard=2/2 d")
            .code(0)
            .stdout_has("\"shard\":{\"hash\":\"xxh64\",\"index\":2,\"of\":2}");
    }),
    ("integrity merge", "check", |g| {
        g.cut_manifest();
        g.bc("integrity merge --check m.jsonl").code(0);
        g.bc("integrity merge --check m.jsonl cut.jsonl")
            .code(1)
            .stderr_has("truncated");
    }),
    ("integrity merge", "output", |g| {
        for index in [1, 2] {
            g.bc(&format!(
                "integrity manifest --shard={index}/2 -o part{index} d"
            ))
            .code(0);
        }
        output(g, "integrity merge part2 part1");
    }),
    ("integrity sql", "engine", |g| {
        g.bc("integrity sql m.jsonl")
            .code(0)
            .stdout_has("read_json(['m.jsonl']");
        g.bc("integrity sql --engine=spark m.jsonl")
            .code(0)
            .stdout_has("USING json OPTIONS (path 'm.jsonl')");
    }),
    ("integrity sql", "query", |g| {
        g.bc("integrity sql --query=lost m.jsonl")
            .code(0)
            .stdout_has("nowhere, as far as these manifests know");
    }),
    ("integrity sql", "param", |g| {
        g.bc("integrity sql --query=lost --param limit=7 --param=min_size=9 m.jsonl")
            .code(0)
            .stdout_has(" LIMIT 7;")
            .stdout_has("size >= 9");
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
    ("integrity verify", "sample", |g| {
        let whole = g.metric("integrity verify d m.jsonl", "read_bytes");
        let line = "integrity verify --sample=100% d m.jsonl";
        assert_eq!(g.metric(line, "read_bytes"), whole);
        g.bc("integrity verify --sample=50% d m.jsonl")
            .code(0)
            .stderr_has("a random sample");
        g.bc("integrity verify --sample=some d m.jsonl")
            .code(2)
            .stderr_has("'some' is no part");
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
    ("integrity update", "format", |g| {
        g.t.write("d/new", "abc");
        let text = g.bc("integrity update --format=json d m.jsonl").text();
        assert!(text.contains("\"class\":\"added\""), "{text}");
        g.bc("integrity update --format=html d m.jsonl").code(2);
    }),
    ("integrity update", "max-changed", |g| {
        let before = g.t.read("m.jsonl");
        g.t.write("d/a.c", "edited").write("d/new", "new");
        g.bc("integrity update --max-changed=0 d m.jsonl")
            .code(1)
            .stdout_has("~c a.c\n")
            .stderr_has("1 added, ")
            .stderr_has("entries were edited, removed or damaged")
            .stderr_has("--max-changed=100%");
        assert_eq!(g.t.read("m.jsonl"), before);
        g.bc("integrity update --max-changed=many d m.jsonl")
            .code(2)
            .stderr_has("'many' is neither");
        g.bc("integrity update --max-changed=1 d m.jsonl").code(0);
        g.bc("integrity verify d m.jsonl").code(0);
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
    ("integrity update", "protect", |g| {
        g.t.write("d/new", "new");
        g.bc("integrity update --protect d m.jsonl")
            .code(0)
            .stderr_has("1 volume written");
        g.t.remove("d/new");
        g.bc("integrity restore d m.jsonl")
            .code(0)
            .stdout_has("+ new: from m.parity/000001.bcp");
    }),
    ("integrity protect", "redundancy", |g| {
        g.t.write("d/large", vec![7; 1 << 20]);
        g.bc("integrity update d m.jsonl").code(0);
        let len = |redundancy| {
            g.bc(&format!(
                "integrity protect --redundancy={redundancy} --parity=p{redundancy} d m.jsonl"
            ))
            .code(0);
            g.t.read(format!("p{redundancy}/000001.bcp")).len()
        };
        assert!(len("50%") > 4 * len("10%"));
        g.bc("integrity protect --redundancy=101% d m.jsonl")
            .code(2)
            .stderr_has("from 0.001% to 100%");
    }),
    ("integrity protect", "parity", |g| {
        g.bc("integrity protect --parity=deep/er d m.jsonl")
            .code(2)
            .stderr_has("deep/er: open directory: No such file");
        g.bc("integrity protect --parity=other d m.jsonl").code(0);
        assert!(g.t.exists("other/000001.bcp") && !g.t.exists("m.parity"));
    }),
    ("integrity protect", "adopt", |g| {
        g.bc("integrity protect d m.jsonl").code(0);
        std::fs::rename(g.t.join("m.jsonl"), g.t.join("n.jsonl")).unwrap();
        g.bc("integrity protect --parity=m.parity d n.jsonl")
            .code(2)
            .stderr_has("is the parity of 'm.jsonl' of ")
            .stderr_has("('bc integrity protect --adopt')");
        g.bc("integrity protect --adopt --parity=m.parity d n.jsonl")
            .code(0);
        g.bc("integrity protect --parity=m.parity d n.jsonl")
            .code(0);
    }),
    ("integrity update", "parity", |g| {
        g.bc("integrity update --protect --parity=p d m.jsonl")
            .code(2)
            .stderr_has("p: open directory: No such file");
        g.bc("integrity protect --parity=p d m.jsonl").code(0);
        g.t.write("d/new", "new");
        g.bc("integrity update --protect --parity=p d m.jsonl")
            .code(0)
            .stderr_has("1 volume written");
        assert!(!g.t.exists("m.parity"));
        g.bc("integrity update --parity=p d m.jsonl").code(2);
    }),
    ("integrity protect", "volume", |g| {
        g.t.write(
            "d/large",
            (0..1_u32 << 16)
                .flat_map(u32::to_le_bytes)
                .collect::<Vec<u8>>(),
        );
        g.bc("integrity update d m.jsonl").code(0);
        g.bc("integrity protect --volume=128K d m.jsonl")
            .code(2)
            .stderr_has("at least 1310720 bytes, or a larger redundancy, are needed");
        g.bc("integrity protect --volume=128K --redundancy=50% d m.jsonl")
            .code(0);
        assert!(g.t.exists("m.parity/000003.bcp"));
        g.bc("integrity protect --volume=1K d m.jsonl")
            .code(2)
            .stderr_has("from 128 KiB to 2 GiB");
    }),
    ("integrity protect", "keep-removed", |g| {
        g.t.write("d/only", "nowhere else");
        g.bc("integrity update --protect d m.jsonl").code(0);
        g.t.remove("d/only");
        g.bc("integrity update d m.jsonl").code(0);
        g.bc("integrity protect d m.jsonl")
            .code(0)
            .stderr_has("no longer recorded, such as that of only");
        assert!(g.t.exists("m.parity/000001.bcp"));
        g.bc("integrity protect --keep-removed=0d d m.jsonl")
            .code(0);
        assert!(!g.t.exists("m.parity/000001.bcp"));
        g.bc("integrity protect --keep-removed=long d m.jsonl")
            .code(2)
            .stderr_has("'long' is no span of time");
    }),
    ("integrity protect", "check", |g| {
        g.bc("integrity protect --check d m.jsonl")
            .code(1)
            .stderr_has("without parity");
        g.bc("integrity protect d m.jsonl").code(0);
        g.bc("integrity protect --check d m.jsonl")
            .code(0)
            .stdout_has("000001.bcp: ");
    }),
    ("integrity protect", "dry-run", |g| {
        g.bc("integrity protect --dry-run d m.jsonl")
            .code(0)
            .stderr_has("would be written");
        assert!(!g.t.exists("m.parity"));
    }),
    ("integrity restore", "parity", |g| {
        g.bc("integrity protect --parity=p d m.jsonl").code(0);
        g.damage("d/a.c");
        g.bc("integrity restore d m.jsonl").code(1);
        g.bc("integrity restore --parity=p d m.jsonl")
            .code(0)
            .stdout_has("+ a.c: from p/000001.bcp");
    }),
    ("integrity restore", "partial", |g| {
        g.bc("integrity protect d m.jsonl").code(0);
        g.damage("d/a.c");
        g.t.remove("m.parity/000001.bcp");
        // There is nothing of it.
        g.bc("integrity restore --partial d m.jsonl")
            .code(1)
            .stdout_has("!! a.c: damaged: no copy holds it, and no parity");
    }),
    ("integrity restore", "removed", |g| {
        g.t.write("d/only", "nowhere else");
        g.bc("integrity update --protect d m.jsonl").code(0);
        g.t.remove("d/only");
        g.bc("integrity update --protect d m.jsonl").code(0);
        g.bc("integrity restore d m.jsonl")
            .code(0)
            .stderr_has("nothing to restore");
        g.bc("integrity restore --removed=only d m.jsonl")
            .code(0)
            .stdout_has("+ only: from m.parity/000001.bcp");
        assert_eq!(g.t.read("d/only"), b"nowhere else");
    }),
    ("integrity accept", "format", |g| {
        g.t.write("d/a.c", "edited");
        let text = g.bc("integrity accept --format=json d m.jsonl a.c").text();
        assert!(text.contains("\"command\":\"accept\""), "{text}");
        g.bc("integrity accept --format=html d m.jsonl a.c").code(2);
    }),
    ("integrity accept", "dry-run", |g| {
        g.damage("d/a.c");
        g.bc("integrity accept --dry-run d m.jsonl a.c")
            .code(0)
            .stdout_has("would accept a.c: digest: ");
        g.bc("integrity verify d m.jsonl").code(3);
        g.bc("integrity accept d m.jsonl a.c")
            .code(0)
            .stdout_has("accepted a.c: digest: ");
        g.bc("integrity verify d m.jsonl").code(0);
    }),
    ("integrity accept", "force", |g| {
        g.t.run("cp").args(["-a", "d", "moved"]).go().code(0);
        g.bc("integrity accept moved m.jsonl a.c")
            .code(2)
            .stderr_has("--force");
        g.bc("integrity accept --force moved m.jsonl a.c").code(0);
    }),
    ("integrity restore", "from", |g| {
        g.damage("d/a.c");
        // Nothing else of the tree is a copy unless it is named.
        g.bc("integrity restore d m.jsonl").code(1);
        g.bc("integrity restore --from=d/sub --from=outside d m.jsonl")
            .code(0)
            .stdout_has("+ a.c: from d/sub/b.c");
        assert_eq!(g.text("d/a.c"), "abc");
    }),
    ("integrity restore", "only", |g| {
        g.damage("d/a.c");
        g.t.remove("d/sub/b.c").write("d/large.c", "edited");
        for (only, path) in [
            ("removed", "sub/b.c"),
            ("damaged", "a.c"),
            ("modified", "large.c"),
        ] {
            g.bc(&format!(
                "integrity restore --only={only} --from=d --from=outside d m.jsonl"
            ))
            .code(0)
            .stdout_has(format!("+ {path}: from"))
            .stderr_has("1 restored");
        }
        g.bc("integrity restore --only=none d m.jsonl")
            .code(2)
            .stderr_has("modified");
    }),
    ("integrity restore", "discard-damaged", |g| {
        for (option, kept) in [("", 1), ("--discard-damaged", 1)] {
            g.damage("d/a.c");
            g.bc(&format!(
                "integrity restore {option} --from=outside d m.jsonl"
            ))
            .code(0);
            let names = std::fs::read_dir(g.t.join("d")).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let found = names.filter(|name| name.contains(".damaged-")).count();
            assert_eq!(found, kept, "{option}");
        }
    }),
    ("integrity restore", "trust-metadata", |g| {
        g.t.mode("d/a.c", 0o741);
        g.bc("integrity manifest --output=of d").code(0);
        g.t.mode("of", 0o666);
        let mode = || {
            let found =
                std::os::unix::fs::MetadataExt::mode(&g.t.join("d/a.c").metadata().unwrap());
            found & 0o777
        };
        g.t.remove("d/a.c");
        g.bc("integrity restore --from=outside d of")
            .code(0)
            .stderr_has("--trust-metadata");
        assert_ne!(mode(), 0o741);
        g.t.remove("d/a.c");
        g.bc("integrity restore --trust-metadata --from=outside d of")
            .code(0);
        assert_eq!(mode(), 0o741);
    }),
    ("integrity restore", "dry-run", |g| {
        g.damage("d/a.c");
        let before = g.text("d/a.c");
        g.bc("integrity restore --dry-run --from=outside d m.jsonl")
            .code(0)
            .stdout_has("+ a.c: from outside/x.c")
            .stderr_has("nothing is written");
        assert_eq!(g.text("d/a.c"), before);
    }),
    ("integrity restore", "format", |g| {
        g.damage("d/a.c");
        let text = g
            .bc("integrity restore --format=json --from=outside d m.jsonl")
            .text();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let types: Vec<_> = lines
            .iter()
            .map(|line| line["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["header", "repaired", "summary"], "{text}");
        assert_eq!(lines[1]["from"], "outside/x.c");
        assert_eq!(lines[2]["repaired"], 1);
    }),
    ("integrity restore", "force", |g| {
        g.t.dir("empty");
        g.bc("integrity restore --from=d empty m.jsonl")
            .code(2)
            .stderr_has("not mounted?");
        g.bc("integrity restore --force --from=d empty m.jsonl")
            .code(0);
        assert_eq!(g.text("empty/a.c"), "abc");
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
];
