//! `--memory-budget` bounds buffers and the state of the files together, or
//! the run is refused before it reads anything, with the least that works.

use bc_testkit::TestTree;

use crate::common::Bc;

const FILES: usize = 10_000;

fn many() -> TestTree {
    let t = TestTree::new();
    for index in 0..FILES {
        t.write(
            format!("d/{}/a-name-of-usual-length-{index}", index % 50),
            "same",
        );
    }
    t
}

fn least(text: &str) -> u64 {
    let (_, rest) = text
        .split_once("at least ")
        .unwrap_or_else(|| panic!("{text}"));
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_least_is_told_before_anything_is_read_and_it_works() {
    let t = many();
    let peak = |line: &str| {
        t.bc_line(line).arg("--metrics=../m.json").go().code(0);
        let metrics: serde_json::Value = serde_json::from_slice(&t.read("../m.json")).unwrap();
        metrics["peak_memory_bytes"].as_u64().unwrap()
    };
    t.write("one/a", "a");
    t.bc_line("integrity manifest --output=m.jsonl d")
        .go()
        .code(0);
    t.bc_line("hash --output=sums d").go().code(0);
    for (line, small) in [
        ("hash --output=out d", "hash --output=out one"),
        (
            "hash --type=sha512,md5 --format=jsonl --output=out d",
            "hash --output=out one",
        ),
        ("hash check --status sums", "hash --output=out one"),
        ("dup --output=out d", "dup --output=out one"),
        (
            "integrity manifest --output=out d",
            "integrity manifest --output=out one",
        ),
        (
            "integrity verify --output=out d m.jsonl",
            "integrity manifest --output=out one",
        ),
        (
            "integrity update d m.jsonl",
            "integrity manifest --output=out one",
        ),
    ] {
        let one_thread = |line: &str| format!("{line} --threads=mono --io=sync");
        let line = one_thread(line);
        let _ = std::fs::remove_file(t.join("out"));
        let refused = t.bc_line(&format!("{line} --memory-budget=1M")).go();
        refused
            .code(2)
            .stdout_is("")
            .stderr_has("--memory-budget: 1048576 bytes are too few");
        assert!(!t.join("out").exists(), "{line}");
        let least = least(&refused.error_text());
        assert!(least > 1 << 20 && least < 64 << 20, "{line}: {least}");
        let got = peak(&format!("{line} --memory-budget={least}"));
        // What the program itself takes, and what allocators round up.
        let base = peak(&one_thread(small));
        assert!(
            got <= base + least + least / 4 + (2 << 20),
            "{line}: {got} bytes, {least} allowed, {base} without files"
        );
        let short = least * 9 / 10;
        t.bc_line(&format!("{line} --memory-budget={short}"))
            .go()
            .code(2);
    }
}
