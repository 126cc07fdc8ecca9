//! `bc dup unique`: may I wipe this card?

use bc_testkit::TestTree;
use serde_json::Value;

use crate::common::Bc;
use crate::dup_reference::where_it_may_mount;

/// A card all of which is in the archive, under other names.
fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("card/a.jpg", "a photo")
        .write("card/sub/b.jpg", "another")
        .write("card/sub/empty", "")
        .write("archive/2026/x.jpg", "a photo")
        .write("archive/y.jpg", "another")
        .write("archive/z.jpg", "not on the card");
    t
}

fn json(out: &bc_testkit::Outcome) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}{out}"))
}

#[test]
fn nothing_is_printed_if_all_of_it_is_in_the_archive() {
    let t = tree();
    t.symlink("a.jpg", "card/link")
        .dir("card/none")
        .fifo("card/fifo");
    for options in ["", "--verify-bytes", "-0", "--threads=1"] {
        let line = format!("dup unique card --reference=archive {options}");
        t.bc_line(&line)
            .go()
            .code(0)
            .stdout_is("")
            .stderr_has("all of 2 files, 14 B, are elsewhere")
            .stderr_has(
                "1 empty files; not files: 1 links, 1 FIFOs and sockets, 1 empty directories",
            );
    }
    // The other way round something is missing.
    t.bc_line("dup unique archive --reference=card")
        .go()
        .code(1)
        .stdout_is("archive/z.jpg\n")
        .stderr_has("1 of 3 files, 15 B, are nowhere else");
}

#[test]
fn each_content_comes_with_all_its_names() {
    let t = tree();
    t.write("card/new", "only here")
        .write("card/sub/again", "only here")
        .hard_link("card/new", "card/linked");
    t.bc_line("dup unique card --reference=archive")
        .go()
        .code(1)
        .stdout_is("card/linked\ncard/new\ncard/sub/again\n")
        .stderr_has("2 of 4 files, 18 B, are nowhere else");
    let names = t.bc_line("dup unique -0 card --reference=archive").go();
    names.stdout_is("card/linked\0card/new\0card/sub/again\0");
    let table = t
        .bc_line("dup unique --format=csv card --reference=archive")
        .go();
    table.code(1).stdout_is(
        "content,size,path,path_b64\r\n1,9,card/linked,\r\n1,9,card/new,\r\n1,9,card/sub/again,\r\n",
    );
    let report = json(
        &t.bc_line("dup unique --format=json card --reference=archive")
            .go(),
    );
    assert_eq!(report["unique"].as_array().unwrap().len(), 1);
    assert_eq!(report["unique"][0]["files"].as_array().unwrap().len(), 3);
    assert_eq!(report["unique"][0]["inodes"], 2);
    assert_eq!(report["stats"]["all_present"], false);
    assert_eq!(report["stats"]["complete"], true);
    let lines = t
        .bc_line("dup unique --format=jsonl card --reference=archive")
        .go();
    let types: Vec<String> = lines
        .lines()
        .iter()
        .map(|line| serde_json::from_slice::<Value>(line).unwrap()["type"].to_string())
        .collect();
    assert_eq!(
        types,
        [
            "\"header\"",
            "\"present\"",
            "\"unique\"",
            "\"present\"",
            "\"summary\""
        ]
    );
}

#[test]
fn json_says_which_reference_has_a_content() {
    let t = tree();
    t.write("card/c", "third").write("other/c", "third");
    let line = "dup unique --format=json card --reference=archive --reference=other";
    let report = json(t.bc_line(line).go().code(0));
    let of = |name: &str| {
        let all = report["present"].as_array().unwrap().iter();
        let mut found = all.filter(|content| content["files"][0]["path"] == name);
        found.next().unwrap()["reference"].as_u64()
    };
    assert_eq!((of("card/a.jpg"), of("card/c")), (Some(0), Some(1)));
    assert_eq!(report["references"][1]["path"], "other");
    assert_eq!(report["stats"]["all_present"], true);
}

#[test]
fn without_references_files_without_an_equal_are_unique() {
    let t = tree();
    t.hard_link("card/a.jpg", "card/linked");
    t.bc_line("dup unique card")
        .go()
        .code(1)
        .stdout_is("card/a.jpg\ncard/linked\ncard/sub/b.jpg\n");
    t.bc_line("dup unique card archive")
        .go()
        .code(1)
        .stdout_is("archive/z.jpg\n");
    t.remove("archive/z.jpg");
    t.bc_line("dup unique card archive")
        .go()
        .code(0)
        .stdout_is("")
        .stderr_has("each of 4 files has an equal among them");
}

#[test]
fn what_is_not_looked_at_is_never_safe() {
    let t = tree();
    t.write("card/.hidden", "a photo")
        .write("card/.ignore", "a.jpg\n");
    t.write("archive/ignore", "a.jpg\n");
    let run = |options: &str| {
        t.bc_line(&format!("dup unique card --reference=archive {options}"))
            .go()
    };
    run("").code(0);
    for (filter, said) in [
        ("--no-hidden", "not looked at: 2 hidden"),
        ("--include=*.jpg", "3 not included"),
        ("--min-size=7", "2 too small"),
        ("--max-size=6", "too large"),
        ("--max-depth=1", "not looked at: 1 too deep"),
        ("--ignore-files", "not looked at: 1 ignored"),
    ] {
        run(filter).code(1).stdout_is("").stderr_has(said);
    }
    // What the user leaves out is the user's affair.
    run("--exclude=sub")
        .code(0)
        .stdout_is("")
        .stderr_has("left out by --exclude: 1");
    // Nobody else's: no configuration takes a file from the question.
    t.write(
        "config.toml",
        "exclude = [\"new\"]\nmin-size = \"1M\"\n[dup]\nno-hidden = true\n",
    );
    t.write("card/new", "only here");
    run("--config=config.toml").code(1).stdout_is("card/new\n");
    t.bc_line("dup unique card --reference=archive")
        .env("BC_EXCLUDE", "new")
        .go()
        .code(1)
        .stdout_is("card/new\n");
}

#[test]
fn what_cannot_be_read_is_never_safe() {
    let t = tree();
    t.mode("card/a.jpg", 0);
    let run = || {
        t.bc_line("dup unique card --reference=archive")
            .as_nobody()
            .go()
    };
    run()
        .code(1)
        .stdout_is("")
        .stderr_has("card/a.jpg: open: Permission denied")
        .stderr_has("0 of 2 files, 0 B, are nowhere else; 1 more could not be read");
    t.mode("card/a.jpg", 0o644).mode("card/sub", 0);
    run()
        .code(1)
        .stderr_has("card/sub: open: Permission denied");
    t.mode("card/sub", 0o755).mode("archive/2026", 0);
    run()
        .code(1)
        .stdout_is("card/a.jpg\n")
        .stderr_has("archive/2026: open: Permission denied");
    t.mode("archive/2026", 0o755).mode("archive/z.jpg", 0);
    // Nobody had to read it.
    run().code(0);
    t.mode("archive/z.jpg", 0o644).mode("archive/y.jpg", 0);
    run()
        .code(1)
        .stdout_is("card/sub/b.jpg\n")
        .stderr_has("archive/y.jpg: open: Permission denied");
    t.mode("archive/y.jpg", 0o644);
    t.bc_line("dup unique card nothing --reference=archive")
        .go()
        .code(1)
        .stdout_is("")
        .stderr_has("nothing: stat: No such file");
}

#[test]
fn the_cards_own_files_are_no_witnesses() {
    let t = tree();
    let all = "card/a.jpg\ncard/sub/b.jpg\n";
    for reference in ["card", "card/", "./card/../card", "card/.", "link"] {
        let t = tree();
        t.symlink("card", "link").write("card/more", "a photo");
        t.bc_line("dup unique card --reference")
            .arg(reference)
            .go()
            .code(1)
            .stdout_is("card/a.jpg\ncard/more\ncard/sub/b.jpg\n")
            .stderr_has("is inside a PATH: its files are not copies");
    }
    // Inside: another copy on the card goes with it.
    t.write("card/backup/a", "a photo")
        .write("card/backup/b", "another");
    let inside = "card/a.jpg\ncard/backup/a\ncard/backup/b\ncard/sub/b.jpg\n";
    let listed = |out: &bc_testkit::Outcome| {
        let mut names: Vec<String> = out.text().lines().map(str::to_owned).collect();
        names.sort();
        names.join("\n") + "\n"
    };
    let out = t.bc_line("dup unique card --reference=card/backup").go();
    out.stderr_has("--reference=card/backup: is inside a PATH");
    assert_eq!(listed(out.code(1)), inside);
    t.remove("card/backup");
    // Around: only what is not below the card counts.
    t.bc_line("dup unique card --reference=.").go().code(0);
    t.remove("archive");
    t.bc_line("dup unique card --reference=.")
        .go()
        .code(1)
        .stdout_is(all);
    // Other names of the same files.
    t.hard_link("card/a.jpg", "links/a")
        .write("links/b", "another");
    t.bc_line("dup unique card --reference=links")
        .go()
        .code(1)
        .stdout_is("card/a.jpg\n");
    // Also of files that a filter takes from the question.
    t.write("card/sub/keep/a", "a photo")
        .hard_link("card/sub/keep/a", "elsewhere/a");
    t.bc_line("dup unique card --exclude=keep --reference=elsewhere --reference=links")
        .go()
        .code(1)
        .stdout_is("card/a.jpg\n")
        .stderr_has("count for nothing");
    t.bc_line("dup unique card --exclude=keep --reference=card/sub/keep --reference=links")
        .go()
        .code(1)
        .stdout_is("card/a.jpg\n");
}

#[test]
fn temporaries_of_killed_runs_are_no_witnesses() {
    for name in [
        ".bc-dup.1.2.3.tmp",
        ".bc-dup.1.2.3.part",
        ".bc-copy.0123456789abcdef.part",
    ] {
        let t = TestTree::new();
        t.write("card/a", "a photo")
            .write(format!("archive/{name}"), "a photo");
        t.bc_line("dup unique card --reference=archive")
            .go()
            .code(1)
            .stdout_is("card/a\n");
        // On the card it is a file like any other.
        t.write("archive/a", "a photo")
            .write(format!("card/{name}"), "half");
        t.bc_line("dup unique card --reference=archive")
            .go()
            .code(1)
            .stdout_is(format!("card/{name}\n"));
    }
}

#[test]
fn references_that_cannot_be_opened_end_the_run() {
    let t = tree();
    t.fifo("fifo")
        .write("notes", "some notes\n")
        .write("none", "");
    for (reference, said) in [
        ("archve", "archve: open: No such file"),
        ("~/archive", "write --reference ~/DIR"),
        ("fifo", "not a regular file"),
        (
            "notes",
            "--reference=notes: neither a directory nor a manifest",
        ),
        (
            "none",
            "--reference=none: neither a directory nor a manifest",
        ),
        ("archive/z.jpg", "neither a directory nor a manifest"),
    ] {
        t.bc_line("dup unique card --reference")
            .arg(reference)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(said);
    }
    t.bc_line("dup unique")
        .go()
        .code(2)
        .stderr_has("no PATH given");
    t.bc_line("dup unique --files-from=notes").go().code(2);
    t.bc_line("dup unique card --format=html").go().code(2);
}

#[test]
fn mounts_make_no_witnesses_and_hide_files() {
    for (mount, line, expected) in [
        (
            "mount --bind card m",
            "card --reference=m",
            "card/a.jpg\ncard/sub/b.jpg\n",
        ),
        (
            "mount --bind card m",
            "m --reference=card",
            "m/a.jpg\nm/sub/b.jpg\n",
        ),
        (
            "mount --bind card/sub m",
            "card --reference=m --reference=archive/2026",
            "card/sub/b.jpg\n",
        ),
        (
            "mount --bind card/sub m",
            "card --exclude=sub --reference=m",
            "card/a.jpg\n",
        ),
        // The archive's own directory, seen on the card, goes with it.
        (
            "mount --bind archive card/none",
            "card --reference=archive",
            "card/a.jpg\ncard/none/2026/x.jpg\ncard/none/y.jpg\ncard/none/z.jpg\ncard/sub/b.jpg\n",
        ),
        // What is mounted here covers what nobody sees.
        (
            "mount --bind archive/2026 card/sub",
            "card --reference=archive",
            "",
        ),
        (
            "mount -t tmpfs none card/none",
            "card --reference=archive",
            "",
        ),
        (
            "mount -t tmpfs none card/none",
            "-x card --reference=archive",
            "",
        ),
    ] {
        let t = tree();
        t.dir("m").dir("card/none");
        let script = format!("{mount}; code=0; \"$BC\" dup unique {line} || code=$?; echo $code");
        let Some(out) = where_it_may_mount(&t, &script) else {
            return;
        };
        let out = out.code(0).text();
        let mut names: Vec<&str> = out.lines().collect();
        assert_eq!(names.pop(), Some("1"), "{script}: {out}");
        names.sort_unstable();
        let expected: Vec<&str> = expected.lines().collect();
        // With a directory of the archive's on the card, more may be listed; the card's must be.
        let listed = expected.iter().all(|name| names.contains(name));
        assert!(listed, "{script}: {out}");
    }
}

/// Through a mapping it could be changed without any time or size that changes.
#[test]
fn what_is_open_for_writing_is_never_safe() {
    let t = tree();
    let probe = std::fs::File::open(t.join("card/a.jpg")).unwrap();
    if let Err(why) = bc_fs::lease::take(&probe) {
        return bc_testkit::left_out(&format!("no leases here: {why:?}"));
    }
    drop(probe);
    for name in ["card/a.jpg", "archive/2026/x.jpg"] {
        let mut open = std::fs::OpenOptions::new();
        let open = open.append(true).open(t.join(name)).unwrap();
        for options in ["", "--verify-bytes"] {
            t.bc_line(&format!("dup unique card --reference=archive {options}"))
                .go()
                .code(1)
                .stderr_has(format!("{name}: search: is open for writing"));
        }
        drop(open);
        // A process that another test has forked meanwhile holds it until it runs its program.
        let closed = std::fs::File::open(t.join(name)).unwrap();
        while bc_fs::lease::take(&closed).is_err() {
            std::thread::yield_now();
        }
    }
    let line = "dup unique card --reference=archive";
    t.bc_line(line).go().code(0).stdout_is("");
    // An equal one beside it is witness enough.
    t.write("archive/second", "a photo");
    let mut open = std::fs::OpenOptions::new();
    let open = open.append(true).open(t.join("archive/second")).unwrap();
    t.bc_line(line).go().code(0).stdout_is("");
    drop(open);
}

#[test]
fn names_that_are_no_text_survive() {
    let t = TestTree::new();
    t.write_bytes(b"card/\xff\nx", "here")
        .write("archive/y", "there");
    let out = t.bc_line("dup unique -0 card --reference=archive").go();
    out.code(1).stdout_is(b"card/\xff\nx\0");
    let out = t
        .bc_line("dup unique --format=json card --reference=archive")
        .go();
    assert_eq!(
        json(&out)["unique"][0]["files"][0]["path_b64"],
        "Y2FyZC//Cng="
    );
}
