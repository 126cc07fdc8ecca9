//! The little tree that the cases run in, with a file of each kind that a command takes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_testkit::{Outcome, TestTree};
use serde_json::Value;

use crate::common::Bc;

/// Eight files below `d`: five of one content, two of another, and `.gitignore`. Beside it
/// `sums` (GNU), `m.jsonl` (integrity), and a link from `d/link` to `outside`.
pub struct Ground {
    pub t: TestTree,
}

impl Ground {
    pub fn new() -> Ground {
        let t = TestTree::new();
        for name in ["a.c", ".h.c", "sub/b.c", "sub/deep/c.o", "ign.c"] {
            t.write(Path::new("d").join(name), "abc");
        }
        t.write("d/.gitignore", "ign.c\n")
            .write("d/large.c", [7; 3000])
            .write("d/large2.c", [7; 3000])
            .write("outside/x.c", "abc")
            .symlink("../outside", "d/link");
        let ground = Ground { t };
        ground.bc("hash --output=sums d").code(0);
        ground.bc("hash --output=fewer --exclude=sub d").code(0);
        ground.bc("integrity manifest --output=m.jsonl d").code(0);
        ground
    }

    /// Runs `bc` with these words.
    pub fn bc(&self, line: &str) -> Outcome {
        self.t
            .bc_line(line)
            .env("XDG_CACHE_HOME", self.t.scratch("cache"))
            .go()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.t.read(name)).unwrap()
    }

    /// Content changes, size and time do not: what decay looks like.
    pub fn damage(&self, name: &str) {
        let path = self.t.join(name);
        let before = std::fs::metadata(&path).unwrap().modified().unwrap();
        let since = before.duration_since(std::time::UNIX_EPOCH).unwrap();
        self.t.write(name, "abd");
        self.t
            .mtime(name, since.as_secs() as i64, since.subsec_nanos());
    }

    /// `m.jsonl` without its last line, as `cut.jsonl`.
    pub fn cut_manifest(&self) {
        let text = self.text("m.jsonl");
        let end = text.trim_end().rfind('\n').unwrap();
        self.t.write("cut.jsonl", &text[..=end]);
    }

    /// The number at `key` in the metrics of this run.
    pub fn metric(&self, line: &str, key: &str) -> i64 {
        let out = self.bc(&format!("{line} --metrics=metrics.json"));
        let text = self.text("metrics.json");
        let metrics: serde_json::Value = serde_json::from_str(&text).unwrap();
        metrics[key]
            .as_i64()
            .unwrap_or_else(|| panic!("no {key} in {text}{out}"))
    }
}

pub fn json(out: &bc_testkit::Outcome) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}{out}"))
}

pub fn inode(g: &Ground, name: &str) -> u64 {
    std::fs::metadata(g.t.join(name)).unwrap().ino()
}

/// `--output=FILE`: nothing on stdout, the same in the file.
pub fn output(g: &Ground, line: &str) {
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

/// What lies where the journal would be is gone on from, or the command is refused; without the
/// option it is left alone.
pub fn resume(g: &Ground, line: &str) {
    g.bc(&format!("{line} --output=new --resume")).code(0);
    g.t.write("new.partial", "no journal")
        .mode("new.partial", 0o644);
    g.bc(&format!("{line} --output=new --resume"))
        .code(2)
        .stderr_has("new.partial: --resume cannot continue it: not a journal");
    g.bc(&format!("{line} --output=new")).code(0);
    assert_eq!(g.text("new.partial"), "no journal");
}
