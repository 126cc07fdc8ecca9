//! What `protect`, `verify`, `update` and `restore` report of parity, and the exit codes that go with it.

use bc_testkit::{TestTree, conforms};
use serde_json::Value;

use crate::common::Bc;
use crate::protect::{FILES, bytes, is_whole, protected, record, rot};
use crate::schemas::schema;

const CHECK: &str = "integrity protect --check r m.jsonl";
const VERIFY: &str = "integrity verify r m.jsonl";
const STALE: &str = "the parity in m.parity does not have all of it: 'bc integrity protect' brings it \
                     up to date, or reports why it cannot";

/// Damages three of the four parity blocks of the volume: the middle copy of the header lies between the
/// second and the third.
fn wear_out(t: &TestTree) {
    [20_000, 90_000, 160_000]
        .iter()
        .for_each(|offset| rot(t, "m.parity/000001.bcp", *offset));
}

/// Metrics of a run, by their names.
fn metrics(t: &TestTree, file: &str) -> Value {
    serde_json::from_slice(&t.read(file)).unwrap()
}

#[test]
fn metrics_of_an_update_are_written_whatever_becomes_of_parity() {
    let t = protected();
    t.write("r/new", "new");
    t.bc_line("integrity update --protect --parity=missing --metrics=x.json r m.jsonl")
        .go()
        .code(2)
        .stderr_has("missing: open directory: No such file");
    let all = metrics(&t, "x.json");
    assert_eq!(all["exit_code"], 2, "{all}");
    assert!(all["files"].as_u64().is_some(), "{all}");
    // The update itself is done.
    t.bc_line(VERIFY).go().code(0).stderr_has(STALE);
    t.bc_line("integrity update --protect --metrics=x.json r m.jsonl")
        .go()
        .code(0);
    assert_eq!(metrics(&t, "x.json")["exit_code"], 0);
}

#[test]
fn a_volume_that_is_gone_is_noticed() {
    let t = protected();
    let verify = t.bc_line(VERIFY).go();
    assert!(!verify.code(0).error_text().contains("parity"), "{verify}");
    t.remove("m.parity/000001.bcp");
    t.bc_line(VERIFY).go().code(0).stderr_has(STALE);
    t.bc_line("integrity update r m.jsonl")
        .go()
        .code(0)
        .stderr_has(STALE);
    t.bc_line("integrity protect r m.jsonl")
        .go()
        .code(0)
        .stderr_has("1 volume written");
    let verify = t.bc_line(VERIFY).go();
    assert!(!verify.code(0).error_text().contains("parity"), "{verify}");
}

#[test]
fn damage_that_a_check_finds_is_remembered() {
    for has_index in [true, false] {
        let t = protected();
        wear_out(&t);
        if !has_index {
            t.remove("m.parity/index.jsonl");
        }
        t.bc_line(CHECK)
            .go()
            .code(1)
            .stdout_has("3 of them damaged")
            .stdout_has("; worn, its content needs other parity\n")
            .stderr_has("contents without parity");
        assert!(t.exists("m.parity/index.jsonl"));
        t.bc_line(VERIFY).go().code(0).stderr_has(STALE);
        t.bc_line("integrity protect r m.jsonl")
            .go()
            .code(0)
            .stderr_has("1 volume written");
        let verify = t.bc_line(VERIFY).go();
        assert!(!verify.code(0).error_text().contains("parity"), "{verify}");
        t.bc_line(CHECK).go().code(0);
    }
}

/// Removed content keeps a worn volume for a month, which is no failure: there is nothing to be done.
#[test]
fn a_check_passes_over_volumes_that_others_have_replaced() {
    let t = protected();
    t.remove("r/a/one");
    t.bc_line("integrity update r m.jsonl").go().code(0);
    t.bc_line(CHECK)
        .go()
        .code(1)
        .stdout_has("; worn, its content needs other parity\n");
    t.bc_line("integrity protect r m.jsonl")
        .go()
        .code(0)
        .stderr_has(
            "is worn, and kept for content that is no longer recorded, such as that of a/one",
        );
    let out = t.bc_line(CHECK).go();
    out.code(0)
        .stdout_has("; worn, other volumes have its recorded content\n")
        .stderr_has("; 1 whose recorded content others have");
    assert!(!out.text().contains("needs other parity"), "{out}");
    let verify = t.bc_line(VERIFY).go();
    assert!(!verify.code(0).error_text().contains("parity"), "{verify}");
}

#[test]
fn a_check_takes_no_settings() {
    let t = protected();
    for setting in [
        "--redundancy=50%",
        "--volume=1M",
        "--keep-removed=1d",
        "--dry-run",
    ] {
        t.bc_line(&format!("{CHECK} {setting}"))
            .go()
            .code(2)
            .stderr_has("cannot be used with");
    }
}

#[test]
fn a_dry_run_foresees_removals_and_stores_no_settings() {
    let t = protected();
    t.remove("r/a/one");
    t.bc_line("integrity update r m.jsonl").go().code(0);
    let before = t.read("m.parity/index.jsonl");
    let out = t
        .bc_line("integrity protect --dry-run --keep-removed=0d r m.jsonl")
        .go();
    out.code(0)
        .stderr_has("1 volume would be written")
        .stderr_has("1 would be removed")
        .stderr_has("; new settings would be stored");
    assert!(!out.error_text().contains("from now on"), "{out}");
    assert!(t.read("m.parity/index.jsonl") == before);
    t.bc_line("integrity protect --keep-removed=0d r m.jsonl")
        .go()
        .code(0)
        .stderr_has("1 volume written")
        .stderr_has("1 removed")
        .stderr_has("; new settings from now on");
    let out = t.bc_line("integrity protect --dry-run r m.jsonl").go();
    assert!(!out.code(0).error_text().contains("settings"), "{out}");
}

#[test]
fn a_removed_file_that_parity_does_not_know_is_reported() {
    let t = protected();
    t.remove("r/z");
    t.bc_line("integrity update --protect r m.jsonl").go();
    let unknown = "parity has no removed file that had this path";
    t.bc_line("integrity restore --removed=typo --removed=z/below r m.jsonl")
        .go()
        .code(1)
        .stdout_is(format!(
            "!! typo: removed: {unknown}\n!! z/below: removed: {unknown}\n"
        ));
    let out = t
        .bc_line("integrity restore --format=json --removed=typo --removed=z r m.jsonl")
        .go();
    let schema = schema("restore");
    let lines = out.code(1).lines();
    let lines = lines.iter().map(|line| serde_json::from_slice(line));
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().unwrap();
    assert!(lines.iter().all(|line| conforms(&schema, line)), "{out}");
    assert_eq!(lines[0]["parity"], "m.parity");
    assert_eq!(
        lines[0]["removed"],
        serde_json::json!([{"path": "typo"}, {"path": "z"}])
    );
    assert_eq!(
        (&lines[1]["type"], &lines[1]["reason"]),
        (&"missing".into(), &unknown.into())
    );
    assert_eq!(lines[2]["type"], "repaired");
    assert!(t.read("r/z") == bytes(FILES[4].1, 4));
    // What is back is not asked for in vain, and a directory has what it has.
    for line in [
        "integrity restore --removed=z r m.jsonl",
        "integrity restore --removed=a r m.jsonl",
    ] {
        t.bc_line(line)
            .go()
            .code(0)
            .stderr_has("nothing to restore");
    }
    // What is only lost, and still recorded, comes back all the same.
    t.remove("r/a/two");
    t.bc_line("integrity restore --removed=a/two r m.jsonl")
        .go()
        .code(0)
        .stdout_has("+ a/two: from m.parity/000001.bcp");
}

#[test]
fn a_file_that_was_renamed_and_deleted_is_known_by_its_first_path() {
    let t = protected();
    let update = "integrity update --protect r m.jsonl";
    std::fs::rename(t.join("r/z"), t.join("r/renamed")).unwrap();
    t.bc_line(update).go().code(0).stderr_has("no new content");
    t.remove("r/renamed");
    t.bc_line(update).go().code(0);
    t.bc_line("integrity restore --removed=renamed r m.jsonl")
        .go()
        .code(1)
        .stdout_has("!! renamed: removed: parity has no removed file");
    t.bc_line("integrity restore --removed=z r m.jsonl")
        .go()
        .code(0)
        .stdout_is("+ z: from m.parity/000001.bcp\n");
    assert!(t.read("r/z") == bytes(FILES[4].1, 4));
}

#[test]
fn the_copy_of_a_manifest_is_offered_with_its_age_and_the_same_options() {
    let t = protected();
    t.dir("some copy");
    t.write("some copy/other", "1");
    rot(&t, "r/large", 100);
    rot(&t, "m.jsonl", 700);
    let restore = |options: &[&str]| {
        let line = ["integrity", "restore"].iter().chain(options);
        t.bc().args(line).args(["r", "m.jsonl"]).go()
    };
    let options = ["--from=some copy", "--only=damaged,modified", "--dry-run"];
    let out = restore(&options);
    let today = "its parity has a copy of the manifest of 2";
    out.code(2).stderr_has(today).stderr_has(
        " that is sound: 'bc integrity restore --from='some copy' --parity=m.parity \
         --only=damaged,modified --dry-run r m.parity/manifest.jsonl.zst'",
    );
    restore(&["--removed=z", "--removed", "--force", "--partial"])
        .code(2)
        .stderr_has(
            "restore --parity=m.parity --removed=z --removed --partial --force r m.parity/manifest.jsonl.zst'",
        );
    t.bc_line("integrity restore --parity=m.parity r m.parity/manifest.jsonl.zst")
        .go()
        .code(0);
    t.write("m.jsonl", t.read("m.parity/manifest.jsonl.zst"));
    is_whole(&t);
}

/// Checks that no volume is called replaced that alone repairs what is damaged.
#[test]
fn a_check_names_the_volume_that_damage_needs() {
    let t = TestTree::new();
    t.write("r/a", bytes(200_000, 1))
        .write("r/b", bytes(200_000, 2));
    record(&t, "");
    rot(&t, "r/a", 10);
    rot(&t, "r/a", 70_000);
    t.bc_line("integrity update --protect r m.jsonl")
        .go()
        .code(3);
    let out = t.bc_line(CHECK).go();
    out.code(1)
        .stdout_has("; worn, and needed: nothing else repairs what is damaged or unreadable\n");
    assert!(
        !out.error_text().contains("whose recorded content"),
        "{out}"
    );
    t.bc_line("integrity restore r m.jsonl").go().code(0);
    t.bc_line("integrity update --protect r m.jsonl")
        .go()
        .code(0);
    let out = t.bc_line(CHECK).go();
    assert!(!out.code(0).text().contains("worn"), "{out}");
}

#[test]
fn a_check_looks_at_the_copy_of_the_manifest() {
    let t = protected();
    t.bc_line(CHECK).go().code(0);
    let quiet = "integrity protect --check --quiet r m.jsonl";
    t.bc_line(quiet).go().code(0).stdout_is("").stderr_is("");
    rot(&t, "m.parity/manifest.jsonl.zst", 50);
    let named = "m.parity/manifest.jsonl.zst: ";
    t.bc_line(quiet)
        .go()
        .code(1)
        .stdout_is("")
        .stderr_has(named);
    t.remove("m.parity/manifest.jsonl.zst");
    t.bc_line(CHECK).go().code(1).stderr_has(named);
    t.bc_line(crate::protect::PROTECT).go().code(0);
    t.bc_line(CHECK).go().code(0);
}
