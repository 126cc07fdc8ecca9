//! The file behind stdout lies in the tree, since the shell made it before we began; it is no
//! file of the tree, as that of `--output` is none.

use bc_testkit::TestTree;

use crate::common::{ABC, BC, Bc};

fn sh(t: &TestTree, script: &str) {
    t.run("sh").args(["-c", script]).env("BC", BC).go().code(0);
}

fn read(t: &TestTree, path: &str) -> String {
    std::fs::read_to_string(t.join(path)).unwrap()
}

#[test]
fn a_manifest_does_not_list_itself() {
    let t = TestTree::new();
    t.write("a", "abc").dir("sub");
    let line = format!("{ABC}  ./a\n");
    for script in [
        "\"$BC\" hash . > sub/OUT",
        "\"$BC\" hash --output=/dev/stdout . > sub/OUT",
        "\"$BC\" hash --output=- . > sub/OUT",
        "\"$BC\" hash --output=/dev/fd/3 . 3> sub/OUT",
        "\"$BC\" hash . 1<> sub/OUT",
        // Under another of its names too.
        "ln -f sub/OUT other; \"$BC\" hash . > sub/OUT; rm other",
        "cd sub; \"$BC\" hash .. > OUT; sed -i s,../,./, OUT",
        "find . -type f | \"$BC\" hash --files-from=- > sub/OUT",
    ] {
        t.write("sub/OUT", "");
        sh(&t, script);
        assert_eq!(read(&t, "sub/OUT"), line, "{script}");
    }
    sh(&t, "\"$BC\" hash . >> sub/OUT");
    assert_eq!(read(&t, "sub/OUT"), format!("{line}{line}"));
    // What was left out is counted.
    t.write("sub/OUT", "");
    sh(
        &t,
        "\"$BC\" hash -v . 2>&1 > sub/OUT | grep -q '1 output files'",
    );
    for format in ["bsd", "csv", "json", "jsonl"] {
        sh(&t, &format!("\"$BC\" hash --format={format} . > sub/OUT"));
        let text = read(&t, "sub/OUT");
        assert!(text.contains("./a") && !text.contains("OUT"), "{text}");
    }
    sh(&t, "\"$BC\" integrity manifest . > sub/OUT");
    assert!(!read(&t, "sub/OUT").contains("OUT"));
}

/// `-` is stdout, whatever else is named so.
#[test]
fn a_file_named_as_stdout_is_a_file_of_the_tree() {
    let t = TestTree::new();
    t.write("-", "same").write("a", "same");
    for (line, part) in [
        ("hash -o - .", "  ./-\n"),
        ("hash .", "  ./-\n"),
        ("integrity manifest -o - .", "\"path\":\"-\""),
        ("dup -o - .", "./-\n"),
    ] {
        t.bc_line(line).go().code(0).stdout_has(part);
    }
}

#[test]
fn a_search_does_not_find_its_own_report() {
    let t = TestTree::new();
    t.write("a", "abc").write("empty", "").dir("sub");
    for line in [
        "dup --min-size=0",
        "dup --min-size=0 --format=json",
        "dup prune --action=hardlink --min-size=0 --dry-run",
    ] {
        // Empty like the other one while it is searched.
        sh(&t, &format!("\"$BC\" {line} . > sub/OUT"));
        let text = read(&t, "sub/OUT");
        assert!(
            !text.contains("OUT") && !text.contains("empty"),
            "{line}: {text}"
        );
    }
    sh(&t, "\"$BC\" dup summary --min-size=0 . > sub/OUT");
    assert!(read(&t, "sub/OUT").contains("\nfiles searched                2 "));
    sh(
        &t,
        "\"$BC\" hash a empty > sums; \"$BC\" hash check --unlisted --base=. sums > sub/OUT",
    );
    assert_eq!(read(&t, "sub/OUT"), "./a: OK\n./empty: OK\n");
}

#[test]
fn other_streams_are_files_like_any_other() {
    let t = TestTree::new();
    t.write("a", "abc").write("in", "abc");
    let line = |name: &str| format!("{ABC}  {name}\n");
    sh(&t, "\"$BC\" hash . < in > ../out; cp ../out out");
    assert_eq!(read(&t, "out"), [line("./a"), line("./in")].concat());
    t.remove("out");
    // A pipe and a device are in no tree.
    sh(&t, "\"$BC\" hash . | cat > ../out; cp ../out out");
    assert_eq!(read(&t, "out"), [line("./a"), line("./in")].concat());
}
