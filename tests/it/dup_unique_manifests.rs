//! `bc dup unique` against disks that are not here: their manifests answer.

use bc_testkit::TestTree;
use serde_json::Value;

use crate::common::Bc;

/// A card, an archive that has all of it but `new`, and manifests of the archive in every form; the
/// archive itself is gone.
fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("card/a.jpg", "a photo")
        .write("card/sub/b.jpg", "another")
        .write("card/new", "only here")
        .write("archive/x.jpg", "a photo")
        .write("archive/y.jpg", "another");
    for line in [
        "integrity manifest --output=m.jsonl archive",
        "integrity manifest --output=m.jsonl.zst archive",
        "integrity manifest --type=blake3 --output=blake3.jsonl archive",
        "integrity manifest --type=md5 --output=md5.jsonl archive",
        "hash --type=sha256 --output=gnu archive",
        "hash --type=blake3 --output=b3 archive",
        "hash --type=sha512 --output=sha512 archive",
        "hash --type=blake2b --output=b2 archive",
        "hash --type=sha1 --output=sha1 archive",
        "hash --type=md5 --output=md5 archive",
        "hash --type=xxh128 --output=xxh128 archive",
        "hash --type=md5,sha256 --format=bsd --output=bsd archive",
        "hash --type=sha256 --format=jsonl --output=hash.jsonl archive",
        "hash --type=sha256 --format=csv --output=hash.csv archive",
        "hash --type=xxh3 --output=xxh3 archive",
        "hash --type=crc32c --format=bsd --output=crc archive",
        "integrity export m.jsonl --format=hashdeep --output=deep",
    ] {
        t.bc_line(line).go().code(0);
    }
    t.remove("archive");
    t
}

fn ask(t: &TestTree, reference: &str) -> bc_testkit::Outcome {
    t.bc_line("dup unique card --reference").arg(reference).go()
}

fn json(out: &bc_testkit::Outcome) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}{out}"))
}

#[test]
fn every_form_answers() {
    let t = tree();
    for form in [
        "m.jsonl",
        "m.jsonl.zst",
        "blake3.jsonl",
        "gnu",
        "b3",
        "sha512",
        "b2",
        "bsd",
        "hash.jsonl",
        "hash.csv",
        "deep",
    ] {
        let out = ask(&t, form);
        out.code(1).stdout_is("card/new\n");
        assert!(!out.error_text().contains("rests on"), "{form}: {out}");
    }
    for (form, rests_on) in [
        (
            "md5",
            "of 2 files this rests on MD5, fine against accidents only",
        ),
        ("md5.jsonl", "rests on MD5, fine against accidents only"),
        ("sha1", "rests on SHA-1, fine against accidents only"),
        ("xxh128", "rests on XXH128, fine against accidents only"),
    ] {
        ask(&t, form)
            .code(1)
            .stdout_is("card/new\n")
            .stderr_has(rests_on);
    }
    t.remove("card/new");
    for form in ["m.jsonl", "m.jsonl.zst", "gnu", "deep", "bsd", "b3"] {
        ask(&t, form).code(0).stdout_is("");
    }
    ask(&t, "md5")
        .code(0)
        .stdout_is("")
        .stderr_has("rests on MD5");
}

#[test]
fn short_digests_are_refused() {
    let t = tree();
    for (form, bits) in [("xxh3", "64 bits"), ("crc", "32 bits")] {
        ask(&t, form).code(2).stdout_is("").stderr_has(bits);
    }
    t.bc_line("integrity manifest --type=xxh3 --output=short.jsonl card")
        .go();
    t.write("elsewhere/a", "x");
    let made = t
        .bc_line("integrity manifest --type=xxh3 --output=short.jsonl elsewhere")
        .go();
    if made.status.success() {
        ask(&t, "short.jsonl")
            .code(2)
            .stderr_has("XXH3 has 64 bits");
    }
}

#[test]
fn several_references_answer_together_and_strong_ones_first() {
    let t = tree();
    t.write("other/n", "only here");
    let line =
        "dup unique card --format=json --reference=md5 --reference=other --reference=m.jsonl";
    let out = t.bc_line(line).go();
    let report = json(out.code(0));
    let of = |name: &str| {
        let all = report["present"].as_array().unwrap().iter();
        let mut found = all.filter(|content| content["files"][0]["path"] == name);
        found.next().unwrap().clone()
    };
    assert_eq!(of("card/new")["reference"], 1);
    assert_eq!(of("card/a.jpg")["reference"], 2);
    assert_eq!(of("card/a.jpg")["algorithm"], "sha256");
    assert_eq!(of("card/a.jpg")["rests_on"], Value::Null);
    assert_eq!(report["references"][0]["kind"], "manifest");
    assert_eq!(report["references"][0]["algorithms"][0], "md5");
    assert_eq!(report["references"][1]["kind"], "directory");
    assert!(!out.error_text().contains("rests on"));
}

#[test]
fn damaged_and_unknown_manifests_are_refused() {
    let t = tree();
    let text = String::from_utf8(t.read("m.jsonl")).unwrap();
    let cut = text.trim_end().rfind('\n').unwrap();
    t.write("cut.jsonl", &text[..=cut]);
    t.write("half.jsonl", &text[..text.len() / 2]);
    t.write(
        "later.jsonl",
        text.replacen("\"schema\":1", "\"schema\":2", 1),
    );
    t.write("altered.jsonl", text.replacen("x.jpg", "z.jpg", 1));
    t.write("hash-cut.jsonl", {
        let text = String::from_utf8(t.read("hash.jsonl")).unwrap();
        let cut = text.trim_end().rfind('\n').unwrap();
        text[..=cut].to_owned()
    });
    let packed = t.read("m.jsonl.zst");
    t.write("cut.zst", &packed[..packed.len() - 3]);
    let gnu = String::from_utf8(t.read("gnu")).unwrap();
    t.write("odd", format!("{gnu}not a line\n"));
    for (name, said) in [
        ("cut.jsonl", "truncated"),
        ("half.jsonl", "truncated"),
        ("later.jsonl", "schema 2 is not known here"),
        ("altered.jsonl", "altered"),
        ("hash-cut.jsonl", "truncated: no summary"),
        ("cut.zst", "cut.zst: "),
        ("odd", "odd: line 3: "),
    ] {
        ask(&t, name).code(2).stdout_is("").stderr_has(said);
    }
}

#[test]
fn entries_that_failed_are_no_witnesses() {
    let t = TestTree::new();
    t.write("card/a", "a photo").write("card/b", "another");
    t.write("archive/a", "a photo")
        .write("archive/b", "another");
    t.bc_line("integrity manifest --output=m archive")
        .go()
        .code(0);
    // Damage: other content behind the same size and time.
    let before = std::fs::metadata(t.join("archive/a"))
        .unwrap()
        .modified()
        .unwrap();
    let since = before.duration_since(std::time::UNIX_EPOCH).unwrap();
    t.write("archive/a", "a phoTo");
    t.mtime("archive/a", since.as_secs() as i64, since.subsec_nanos());
    t.bc_line("integrity update --reread=100% archive m")
        .go()
        .code(3);
    ask(&t, "m")
        .code(1)
        .stdout_is("card/a\n")
        .stderr_has("1 of its files count for nothing");
    // A list that was imported has no proof of its own.
    t.bc_line("hash --output=sums archive/b").go().code(0);
    t.bc_line("integrity import sums --output=i").go().code(0);
    ask(&t, "i").code(1).stdout_is("card/a\ncard/b\n");
}

#[test]
fn a_manifest_of_the_card_itself_says_nothing() {
    let t = TestTree::new();
    t.write("card/a", "a photo").write("card/sub/b", "another");
    t.bc_line("integrity manifest --output=m card").go().code(0);
    t.bc_line("integrity manifest --output=sub card/sub")
        .go()
        .code(0);
    t.bc_line("integrity manifest --output=all .").go().code(0);
    for (manifest, said) in [("m", "is a manifest of"), ("sub", "is a manifest of")] {
        ask(&t, manifest).code(2).stdout_is("").stderr_has(said);
    }
    // Around: what is recorded below the card is the card's own.
    ask(&t, "all").code(1).stdout_is("card/a\ncard/sub/b\n");
    t.write("else/a", "a photo").write("else/b", "another");
    t.bc_line("integrity manifest --output=all --exclude=all .")
        .go()
        .code(0);
    ask(&t, "all").code(0);
    // Of lists only the paths tell.
    t.bc_line("hash --output=sums card").go().code(0);
    ask(&t, "sums").code(1).stdout_is("card/a\ncard/sub/b\n");
    let inner = t
        .bc_line("hash --output=../sums2 .")
        .current_dir(t.join("card"))
        .go();
    inner.code(0);
    let from = |dir: &str, path: &str, list: &str| {
        t.bc_line("dup unique")
            .arg(path)
            .arg(format!("--reference={list}"))
            .current_dir(t.join(dir))
            .go()
    };
    from("card", ".", "../sums2").code(1);
    t.bc_line("hash --output=card/own card/a card/sub/b")
        .go()
        .code(0);
    ask(&t, "card/own").code(2).stderr_has("is inside a PATH");
}
