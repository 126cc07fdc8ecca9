//! Names that other files take: swapped, moved on as rotated logs are, replaced by links. What
//! is damaged must not pass for an edit there.

use std::os::unix::fs::{MetadataExt, symlink};

use bc_testkit::TestTree;

use crate::common::Bc;

/// Three files of other sizes, recorded.
fn recorded() -> (TestTree, String) {
    let t = TestTree::new();
    t.write("a", "one...").mtime("a", 1000, 0);
    t.write("b", "second file").mtime("b", 2000, 0);
    t.write("d/c", "the third of the files")
        .mtime("d/c", 3000, 0);
    let m = t.scratch("m.jsonl").to_str().unwrap().to_owned();
    t.bc_line(&format!("integrity manifest --output={m} ."))
        .go()
        .code(0);
    (t, m)
}

fn rename(t: &TestTree, from: &str, to: &str) {
    std::fs::rename(t.join(from), t.join(to)).unwrap();
}

/// Other bytes in place, the time put back.
fn damage(t: &TestTree, path: &str) {
    let before = std::fs::metadata(t.join(path)).unwrap();
    let mut content = std::fs::read(t.join(path)).unwrap();
    content[1] ^= 1;
    std::fs::write(t.join(path), content).unwrap();
    let file = std::fs::File::options().write(true).open(t.join(path));
    file.unwrap()
        .set_modified(before.modified().unwrap())
        .unwrap();
    let after = std::fs::metadata(t.join(path)).unwrap();
    assert_eq!((before.ino(), before.size()), (after.ino(), after.size()));
}

/// How names came to other files, where `a` is then, and what is said of its old name.
type Taken = (&'static str, fn(&TestTree), &'static str, &'static str);

const TAKEN: [Taken; 5] = [
    (
        "swapped",
        |t| {
            rename(t, "a", "x");
            rename(t, "b", "a");
            rename(t, "x", "b");
        },
        "b",
        "~c a",
    ),
    ("over another", |t| rename(t, "a", "b"), "b", "- a"),
    (
        "rotated",
        |t| {
            rename(t, "b", "d/c");
            rename(t, "a", "b");
            t.write("a", "a new log");
        },
        "b",
        "~c a",
    ),
    (
        "made anew",
        |t| {
            rename(t, "a", "z");
            t.write("a", "a new one");
        },
        "z",
        "~c a",
    ),
    (
        "a link in its place",
        |t| {
            rename(t, "a", "z");
            symlink("z", t.join("a")).unwrap();
        },
        "z",
        "~t a file -> symlink",
    ),
];

#[test]
fn damage_is_found_where_names_were_taken() {
    for (case, take, to, said) in TAKEN {
        // The undamaged: nothing is suspected, and nothing is left to say after an update.
        let (t, m) = recorded();
        take(&t);
        let verify = format!("integrity verify . {m}");
        let text = t.bc_line(&verify).go().code(1).text();
        assert!(!text.contains("!!"), "{case}: {text}");
        t.bc_line(&format!("integrity update . {m}")).go().code(0);
        t.bc_line(&verify).go().code(0).stdout_is("");

        let (t, m) = recorded();
        let before = t.scratch("before.jsonl").to_str().unwrap().to_owned();
        std::fs::copy(&m, &before).unwrap();
        take(&t);
        damage(&t, to);
        let expected = format!(
            "!! {to}: ctime changed, probably a rewrite with its mtime reset: renamed from a\n"
        );
        let after = t.scratch("after.jsonl").to_str().unwrap().to_owned();
        t.bc_line(&format!("integrity manifest --output={after} ."))
            .go()
            .code(0);
        for line in [
            format!("integrity verify . {m}"),
            format!("integrity verify --mode=content . {m}"),
            format!("integrity update --quiet . {m}"),
        ] {
            let text = t.bc_line(&line).go().code(3).text();
            assert!(text.contains(&expected), "{case}, {line}: {text}");
            let old = text.contains(&format!("{said}\n"));
            assert!(old || line.contains("--quiet"), "{case}, {line}: {text}");
        }
        // Two manifests have no time of birth.
        t.bc_line(&format!("integrity diff {before} {after}"))
            .go()
            .code(1)
            .stdout_has(format!(
                "~c {to}: renamed from a: possibly moved and damaged; "
            ));
        // It stays known, and what is said of its cause stays the same.
        for line in [
            format!("integrity update --quiet . {m}"),
            format!("integrity update --quiet --reread=100% . {m}"),
            format!("integrity verify . {m}"),
        ] {
            let text = t.bc_line(&line).go().code(3).text();
            let expected = format!("!! {to}: ctime changed, ");
            assert!(text.contains(&expected), "{case}, {line}: {text}");
        }
        t.bc_line(&format!("integrity update --accept-damaged . {m}"))
            .go()
            .code(3);
        t.bc_line(&format!("integrity verify . {m}")).go().code(0);
    }
}

#[test]
fn what_is_replaced_by_a_file_is_read() {
    type Make = fn(&TestTree);
    let kinds: [(&str, Make); 4] = [
        ("dir", |t| std::fs::create_dir(t.join("x")).unwrap()),
        ("fifo", |t| {
            t.fifo("x");
        }),
        ("symlink", |t| symlink("a", t.join("x")).unwrap()),
        ("file", |t| {
            t.write("x", "");
        }),
    ];
    for (kind, make) in kinds {
        let (t, m) = recorded();
        make(&t);
        t.bc_line(&format!("integrity update . {m}")).go().code(0);
        match kind {
            "dir" => std::fs::remove_dir(t.join("x")).unwrap(),
            _ => std::fs::remove_file(t.join("x")).unwrap(),
        }
        t.write("x", "content").mtime("x", 4000, 0);
        t.bc_line(&format!("integrity update . {m}"))
            .go()
            .code(0)
            .stdout_has(match kind {
                "file" => "~c x\n".to_owned(),
                _ => format!("~t x {kind} -> file\n"),
            });
        t.bc_line(&format!("integrity verify . {m}")).go().code(0);
        damage(&t, "x");
        t.bc_line(&format!("integrity update . {m}"))
            .go()
            .code(3)
            .stdout_has("!! x: ");
    }
}

#[test]
fn a_manifest_below_a_path_of_any_length_is_updated() {
    let (t, _) = recorded();
    let script = "n=$(printf 'd%.0s' $(seq 250)); \
        for i in $(seq 18); do mkdir $n && cd -P ./$n || exit 9; done; \
        \"$0\" integrity manifest --output=m \"$1\" && echo x > \"$1/new\" && \
        exec \"$0\" integrity update \"$1\" m";
    t.dir("deep");
    let deep = t.run("bash").current_dir(t.join("deep"));
    let root = t.join("d");
    deep.args(["-c", script, crate::common::BC, root.to_str().unwrap()])
        .go()
        .code(0)
        .stdout_has("+ new\n");
}
