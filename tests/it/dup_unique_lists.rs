//! Lists that do not say where they were made, as references of `bc dup unique`: probably of the card
//! itself. And manifests from a pipe.

use bc_testkit::{TestTree, tool};

use crate::common::{BC, Bc};

fn card() -> TestTree {
    let t = TestTree::new();
    t.write("now/card/DCIM/100/a", "a photo")
        .write("now/card/DCIM/100/b", "another")
        .write("now/card/top", "flat")
        // The same content under two names.
        .write("now/card/z/twin", "a photo");
    t
}

fn sum(content: &str) -> bc_digest::Digest {
    bc_digest::hash(bc_digest::Algorithm::Sha256, content.as_bytes())
}

fn list(t: &TestTree, names: [&str; 3]) {
    let contents = ["a photo", "another", "flat"];
    let lines = contents.iter().zip(names);
    let lines: String = lines
        .map(|(content, name)| format!("{}  {name}\n", sum(content)))
        .collect();
    t.write("elsewhere/list", lines);
}

#[test]
fn a_list_made_on_the_card_is_no_copy() {
    let t = card();
    let here = std::fs::canonicalize(t.path()).unwrap();
    let here = here.display();
    let absolute =
        |at: &str| ["DCIM/100/a", "DCIM/100/b", "top"].map(|name| format!("{at}/{name}"));
    let lists = [
        // In a subdirectory, at the top, from above.
        ["100/a", "100/b", "top"].map(str::to_owned),
        ["./100/a", "./100/b", "./top"].map(str::to_owned),
        ["a", "b", "top"].map(str::to_owned),
        ["DCIM/100/a", "DCIM/100/b", "top"].map(str::to_owned),
        absolute("card"),
        absolute("now/card"),
        // With absolute names, of now and of an earlier mount.
        absolute(&format!("{here}/now/card")),
        absolute("/media/bob/CARD"),
        absolute("/run/media/bob/0123-ABCD"),
        // One that the card has under another name too.
        ["z/twin", "100/b", "top"].map(str::to_owned),
        ["/mnt/z/twin", "/mnt/DCIM/100/b", "/mnt/top"].map(str::to_owned),
    ];
    for names in lists {
        list(&t, [&names[0], &names[1], &names[2]]);
        for path in [
            "now/card",
            "./now/../now/card/",
            "now/card/DCIM now/card/top now/card/z",
        ] {
            let line = format!("dup unique {path} --reference=elsewhere/list");
            let out = t.bc_line(&line).go();
            assert_eq!(out.code(1).lines().len(), 4, "{names:?}: {out}");
            // Where it names the very files it is never believed.
            let is_here = names[0].starts_with(&format!("{here}/now/card"));
            out.stderr_has("count for nothing");
            t.bc_line(&format!("{line} --trust-list"))
                .go()
                .code(i32::from(is_here));
        }
    }
    // From above, where it had another name, of Windows, and in other letters.
    for names in [
        ["SD/DCIM/100/a", "SD/DCIM/100/b", "SD/top"],
        ["E:\\DCIM\\100\\a", "E:\\DCIM\\100\\b", "E:\\top"],
        ["dcim/100/A", "DCIM/100/B", "TOP"],
    ] {
        list(&t, names);
        let out = t
            .bc_line("dup unique now/card/DCIM --reference=elsewhere/list")
            .go();
        assert_eq!(out.code(1).lines().len(), 2, "{names:?}: {out}");
    }
    // Where no name leads to the card's files from here, only the names tell.
    list(&t, ["100/a", "100/b", "/media/bob/CARD/top"]);
    t.bc_line("dup unique now/card --reference=elsewhere/list")
        .go()
        .code(1)
        .stderr_has("elsewhere/list: list of unknown origin: 3 of its entries");
}

#[test]
fn a_list_of_other_names_is_one_of_copies() {
    let t = card();
    for names in [
        ["archive/1.jpg", "archive/2.jpg", "archive/3"],
        ["/srv/1", "/srv/2", "/srv/3"],
        // Names of other contents, and names that only end alike.
        ["100/b", "100/a", "DCIM/flat"],
        ["xa", "x100/b", "/srv/xtop"],
    ] {
        list(&t, names);
        let line = "dup unique now/card --reference=elsewhere/list";
        t.bc_line(line).go().code(0).stdout_is("");
    }
}

#[test]
fn the_library_believes_it_when_it_is_told_to() {
    let t = card();
    list(&t, ["100/a", "100/b", "top"]);
    let search = bit_crafts::Search::new([t.join("now/card")]);
    let search = search.references([t.join("elsewhere/list")]);
    let ask = |trust| {
        let options = bit_crafts::UniqueOptions::new().trust_lists(trust);
        search.unique(&options, &bit_crafts::Means::new()).unwrap()
    };
    let found = ask(false);
    assert_eq!((found.nowhere().count(), found.not_counted), (3, 3));
    assert_eq!(ask(true).nowhere().count(), 0);
}

#[test]
fn a_manifest_may_come_from_a_pipe() {
    let t = card();
    t.write("srv/1", "a photo")
        .write("srv/2", "another")
        .write("srv/3", "flat");
    let sh = |script: &str| t.run("sh").args(["-c", script]).env("BC", BC).go();
    for make in [
        "integrity manifest srv",
        "hash srv",
        "hash --format=jsonl srv",
    ] {
        for to in ["-", "/dev/stdin", "/proc/self/fd/0"] {
            let script = format!("\"$BC\" {make} | \"$BC\" dup unique now/card --reference={to}");
            sh(&script)
                .code(0)
                .stdout_is("")
                .stderr_has("all of 4 files");
        }
        if tool("bash").is_some() {
            let script = format!("\"$BC\" dup unique now/card --reference=<(\"$BC\" {make}; true)");
            let run = t.run("bash").args(["-c", &script]).env("BC", BC);
            run.go().code(0).stdout_is("");
        }
        let script = format!("\"$BC\" {make} > m; \"$BC\" dup unique now/card --reference=- < m");
        sh(&script).code(0).stdout_is("");
        let script = format!("\"$BC\" {make} | \"$BC\" dup scan now/card --reference=-");
        sh(&script).code(0).stdout_has("-: ");
    }
    for what in ["echo a letter", "true", "yes"] {
        let script = format!("{what} | \"$BC\" dup unique now/card --reference=-");
        sh(&script)
            .code(2)
            .stdout_is("")
            .stderr_has("not a manifest");
    }
    for pair in ["- -", "- /dev/stdin", "/proc/self/fd/0 -"] {
        let references = format!(" {pair}").replace(' ', " --reference=");
        for command in ["unique", "scan"] {
            let script = format!("\"$BC\" hash srv | \"$BC\" dup {command} now/card {references}");
            let run = sh(&script);
            run.code(2)
                .stdout_is("")
                .stderr_has("standard input is named twice");
        }
    }
    // Half of one is none.
    let script =
        "\"$BC\" integrity manifest srv | head -n 2 | \"$BC\" dup unique now/card --reference=-";
    sh(script).code(2).stdout_is("");
    let script =
        "\"$BC\" hash srv | \"$BC\" dup prune --action=delete --yes now/card --reference=-";
    sh(script)
        .code(2)
        .stdout_is("")
        .stderr_has("never authorises");
}

#[test]
fn a_list_on_the_card_is_refused_by_whatever_name_it_comes() {
    let t = card();
    t.write("now/card/SUMS", format!("{}  archive/1\n", sum("a photo")));
    for reference in ["now/card/SUMS", "-", "/dev/stdin"] {
        let script = format!("\"$BC\" dup unique now/card --reference={reference} < now/card/SUMS");
        let run = t.run("sh").args(["-c", &script]).env("BC", BC);
        run.go().code(2).stderr_has("is inside a PATH");
    }
}

#[test]
fn each_of_the_lists_in_one_file_has_to_be_whole() {
    let t = card();
    t.write("srv/1", "a photo")
        .write("srv/2", "another")
        .write("srv/3", "flat");
    t.bc_line("hash --format=jsonl --output=whole srv")
        .go()
        .code(0);
    let whole = String::from_utf8(t.read("whole")).unwrap();
    let (cut, _) = whole.trim_end().rsplit_once('\n').unwrap();
    let lists = [
        (format!("{whole}{whole}"), 0),
        (format!("{whole}{cut}\n"), 2),
        (format!("{cut}\n{whole}"), 2),
    ];
    for (text, code) in lists {
        t.write("lists", text);
        t.bc_line("dup unique now/card --reference=lists")
            .go()
            .code(code);
    }
}
