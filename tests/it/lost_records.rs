//! What is recorded is never lost by a slip: another root given to `update`, an output named like
//! an input.

use std::os::unix::fs::MetadataExt;

use bc_testkit::TestTree;

use crate::common::Bc;

/// `t` with files, `other` with others, and the manifest `m` of `t`.
fn recorded() -> TestTree {
    let t = TestTree::new();
    for file in ["1", "2", "sub/3"] {
        t.write(format!("t/{file}"), format!("{file} of t"));
        t.write(format!("other/{file}"), format!("another {file}"));
    }
    t.bc_line("integrity manifest -o m t").go().code(0);
    t
}

#[test]
fn update_refuses_another_directory() {
    let t = recorded();
    let before = t.read("m");
    t.symlink("other", "link");
    let root = t.join("t").canonicalize().unwrap();
    for line in [
        "integrity update other m",
        "integrity update -q other m",
        "integrity update -q --reread=100% --accept-damaged other m",
        "integrity update -q link m",
    ] {
        t.bc_line(line)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(root.to_str().unwrap())
            .stderr_has("--force");
        assert_eq!(t.read("m"), before, "{line}");
    }
    // Another one by the same name, and one whose content is gone.
    std::fs::rename(t.join("t"), t.join("away")).unwrap();
    std::fs::rename(t.join("other"), t.join("t")).unwrap();
    t.bc_line("integrity update -q t m").go().code(2);
    t.remove("t").dir("t/lost+found");
    t.bc_line("integrity update -q t m").go().code(2);
    std::fs::remove_dir_all(t.join("away/sub")).unwrap();
    t.remove("away/1").remove("away/2").dir("away/lost+found");
    t.bc_line("integrity update -q away m").go().code(2);
    assert_eq!(t.read("m"), before);
    t.bc_line("integrity update -q --force t m").go().code(0);
    assert_ne!(t.read("m"), before);
}

#[test]
fn a_root_of_another_kind_is_refused() {
    let t = recorded();
    t.bc_line("integrity manifest -o one t/1").go().code(0);
    let before = (t.read("m"), t.read("one"));
    for root in ["t/1", "m", "/dev/null", "/proc/self/status"] {
        for command in ["update -q", "update --force", "verify", "verify --force"] {
            t.bc_line(&format!("integrity {command} {root} m"))
                .go()
                .code(2)
                .stdout_is("")
                .stderr_has("no directory");
        }
    }
    for command in ["update -q", "verify"] {
        t.bc_line(&format!("integrity {command} t one"))
            .go()
            .code(2);
    }
    assert_eq!((t.read("m"), t.read("one")), before);
    t.bc_line("integrity verify t/1 one").go().code(0);
}

#[test]
fn update_goes_on_where_the_tree_is_known() {
    for change in [
        // Every file edited, by programs that replace it.
        "cd t; for f in 1 2 sub/3; do echo new > n; mv n $f; done",
        "cd t; for f in 1 2 sub/3; do echo new >> $f; done",
        "chmod -R o+x t",
        "mkdir t/below; mv t/1 t/2 t/sub t/below",
        "mv t moved; ln -s moved t",
        "cp -a t copy; rm -r t; mv copy t",
        "rm t/1 t/2; touch t/new",
    ] {
        let t = recorded();
        t.run("sh").args(["-c", change]).go().code(0);
        let updated = t.bc_line("integrity update -q t m").go();
        assert_eq!(updated.error_text(), "", "{change}");
        updated.code(0);
        t.bc_line("integrity verify t m").go().code(0);
    }
    // A single file, replaced; and a tree of no files.
    let t = recorded();
    t.dir("dirs/a").dir("dirs/b");
    t.bc_line("integrity manifest -o one t/1").go().code(0);
    t.bc_line("integrity manifest -o none dirs").go().code(0);
    t.remove("t/1").write("t/1", "new").remove("dirs/a");
    t.bc_line("integrity update -q t/1 one").go().code(0);
    t.bc_line("integrity update -q dirs none").go().code(0);
}

#[test]
fn imported_lists_are_filled_in() {
    let t = recorded();
    t.run("sh")
        .args(["-c", "cd t && sha256sum 1 2 sub/3 > ../sums"])
        .go()
        .code(0);
    t.bc_line("integrity import -o i sums").go().code(0);
    let before = t.read("i");
    t.dir("nothing/here");
    t.bc_line("integrity update -q nothing i").go().code(2);
    assert_eq!(t.read("i"), before);
    t.bc_line("integrity update -q t i").go().code(0);
    t.bc_line("integrity verify t i").go().code(0);
}

#[test]
fn an_output_is_no_input() {
    let t = recorded();
    t.write("list", "t/1\n").write("conf", "");
    t.bc_line("hash -o sums t").go().code(0);
    t.bc_line("dup scan --format=json -o report t").go().code(0);
    t.hard_link("m", "hard").symlink("m", "soft");
    let inputs = ["m", "sums", "report", "list", "conf"];
    let before = inputs.map(|name| (t.read(name), t.join(name).metadata().unwrap().ino()));
    for line in [
        "integrity verify -o m t m",
        "integrity verify -o ./t/../m t m",
        "integrity verify -o hard t m",
        "integrity verify -o m t soft",
        "integrity verify --format=html -o m t m",
        "integrity verify --metrics=m t m",
        "integrity diff -o m m m",
        "integrity diff -o m sums m",
        "integrity diff --metrics=m m sums",
        "integrity export --format=gnu -o m m",
        "integrity export --format=gnu --metrics=m m",
        "integrity import -o sums sums",
        "integrity import --metrics=sums sums",
        "integrity update --metrics=m t m",
        "integrity update --metrics=hard t m",
        "hash check --metrics=sums sums",
        "hash diff -o sums sums sums",
        "hash diff --metrics=sums sums sums",
        "hash --files-from=list -o list",
        "hash --files-from=list --metrics=list",
        "hash --config=conf -o conf t",
        "dup scan --files-from=list -o list",
        "dup summary --files-from=list --metrics=list",
        "dup prune --action=hardlink --dry-run --from report --metrics=report",
        "dup prune --action=hardlink --dry-run --from report --journal=report",
        "dup undo --dry-run --metrics=report report",
    ] {
        t.bc_line(line).go().code(2).stdout_is("");
        let after = inputs.map(|name| (t.read(name), t.join(name).metadata().unwrap().ino()));
        assert_eq!(after, before, "{line}");
    }
    for line in [
        "verify t m >> m",
        "verify -v t m 1<> m",
        "verify -o m t - < m",
        "verify t - < m >> m",
        "update t m >> m",
        "export --format=gnu m >> m",
        "verify -o /dev/fd/3 t m 3>> m",
    ] {
        let script = format!("'{}' integrity {line}", crate::common::BC);
        t.run("sh").args(["-c", &script]).go().code(2);
        assert_eq!(t.read("m"), before[0].0, "{line}");
    }
    // What is said there, be it that it is refused, would spoil it as well.
    for line in [
        "integrity verify t m 2>> m",
        "integrity verify t m 2>> hard",
        "integrity verify -v t m 2<> m",
        "integrity verify t - < m 2>> m",
        "integrity verify t m >> m 2>&1",
        "integrity verify -o new t m 2>> m",
        "integrity verify -o m t m 2>> m",
        "integrity diff m m 2>> m",
        "integrity export --format=gnu m 2>> m",
        "integrity import sums 2>> sums",
        "integrity update t m 2>> m",
        "integrity manifest -o m t 2>> m",
        "integrity manifest -o m t >> m",
        "integrity manifest --metrics=m -o new t 2>> m",
        "hash check sums 2>> sums",
        "hash diff sums sums 2>> sums",
        "hash --files-from=list 2>> list",
        "dup prune --action=hardlink --dry-run --from report 2>> report",
        "dup prune --action=hardlink --journal=report t 2>> report",
        "dup prune --action=hardlink --journal=report t >> report",
        "dup undo report 2>> report",
    ] {
        let script = format!("'{}' {line}", crate::common::BC);
        let run = t.run("sh").args(["-c", &script]).go();
        run.code(2);
        let after = inputs.map(|name| (t.read(name), t.join(name).metadata().unwrap().ino()));
        assert_eq!(after, before, "{line}");
        assert!(!t.exists("new"), "{line}");
        // It is said where it does no harm, if there is such a place.
        let said = run.text() + &run.error_text();
        assert_eq!(said.is_empty(), line.ends_with("2>&1"), "{line}");
    }
    for line in [
        "hash -o /dev/stderr t 2>> new",
        "hash -o new2 t 2>> new",
        "integrity verify t m >> new 2>> new",
    ] {
        let script = format!("'{}' {line}", crate::common::BC);
        t.run("sh").args(["-c", &script]).go().code(0);
    }
    // Another name for the same place is another file where the input is only like it.
    t.bc_line("integrity verify -o report2 t m").go().code(0);
}

#[test]
fn a_list_without_its_end_proves_little() {
    let t = TestTree::new();
    t.write("a", "1").write("b", "2");
    t.bc_line("hash --format=jsonl -o whole a b").go().code(0);
    let text = String::from_utf8(t.read("whole")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    t.write("cut", lines[..lines.len() - 1].concat());
    t.write("twice", format!("{text}{text}"));
    t.write("first-cut", format!("{}{text}", lines[..2].concat()));
    t.write("filtered", lines[1..3].concat());
    for (name, code) in [
        ("whole", 0),
        ("twice", 0),
        ("filtered", 0),
        ("cut", 1),
        ("first-cut", 1),
    ] {
        let checked = t.bc_line(&format!("hash check {name}")).go();
        checked.code(code);
        assert_eq!(
            code == 1,
            checked.error_text().contains("cut short"),
            "{name}"
        );
        let compared = t.bc_line(&format!("hash diff {name} {name}")).go();
        compared.code(code);
        assert_eq!(
            code == 1,
            compared.error_text().contains("cut short"),
            "{name}"
        );
    }
    let unread = r#"{"type":"file","path":"c","error":{"op":"open","errno":13,"message":"Permission denied"}}"#;
    t.write(
        "unread",
        format!("{}{unread}\n{}", lines[..3].concat(), lines[3]),
    );
    t.bc_line("hash check unread")
        .go()
        .code(1)
        .stdout_is("a: OK\nb: OK\n")
        .stderr_has("no digest of c")
        .stderr_has("Permission denied");
    t.bc_line("hash diff unread whole").go().code(1);
    t.write(
        "document",
        "{\n\"schema\": 1, \"files\": [".to_owned() + lines[1].trim_end() + "," + unread + "]}",
    );
    t.bc_line("hash check document")
        .go()
        .code(1)
        .stderr_has("no digest of c");
}

#[test]
fn hashdeep_cannot_hold_a_return_at_the_end() {
    let t = TestTree::new();
    t.write("t/plain", "1")
        .write("t/in\rside", "2")
        .write("t/end\r", "3");
    t.bc_line("integrity manifest -o m t").go().code(0);
    t.bc_line("integrity export --format=hashdeep -o deep m")
        .go()
        .code(1)
        .stderr_has("end\\r: export: the format has no way to write this name");
    t.bc_line("integrity import -o back deep").go().code(0);
    let back = String::from_utf8(t.read("back")).unwrap();
    assert!(
        back.contains(r#""in\rside""#) && !back.contains(r#""end"#),
        "{back}"
    );
    // The others can.
    for format in ["gnu", "mtree"] {
        t.bc_line(&format!("integrity export --format={format} m"))
            .go()
            .code(0);
    }
}
