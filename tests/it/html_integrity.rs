//! `bc integrity verify --format=html`: damage first, nothing claimed that was not looked at.

use std::os::unix::fs::FileExt;

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::html::{between, rows, stands_alone, undated};

/// A tree with one entry of each class that can be made without privileges,
/// and the path of its manifest.
pub fn damaged(t: &TestTree) -> String {
    t.write("a/rotten", "abc")
        .write("a/edited", "x")
        .write("b/gone", "gone")
        .write("b/from", "moves")
        .write("b/mode", "m")
        .write("b/kind", "k")
        .write("same", "same")
        .mode("b/from", 0o640);
    let manifest = t.scratch("m.jsonl").to_str().unwrap().to_owned();
    t.bc_line(&format!("integrity manifest --output={manifest} ."))
        .go()
        .code(0);
    let rotten = std::fs::File::options()
        .write(true)
        .open(t.join("a/rotten"))
        .unwrap();
    let mtime = rotten.metadata().unwrap().modified().unwrap();
    rotten.write_all_at(b"#", 1).unwrap();
    rotten.set_modified(mtime).unwrap();
    t.write("a/edited", "longer")
        .remove("b/gone")
        .mode("b/mode", 0o600)
        .remove("b/kind")
        .symlink("nowhere", "b/kind")
        .write("new <b>", "n");
    std::fs::rename(t.join("b/from"), t.join("b/to")).unwrap();
    t.mode("b/to", 0o4711);
    manifest
}

#[test]
fn a_page_of_damage() {
    let t = TestTree::new();
    let manifest = damaged(&t);
    let line = format!("integrity verify --format=html . {manifest}");
    let out = t.bc_line(&line).go();
    out.code(3).stderr_has("1 damaged");
    let page = out.text();
    stands_alone(&page);
    assert!(page.contains("<h1>Damage suspected</h1>"));
    // Damage is the first figure and the first row.
    let first = between(&page, "<ul class=tiles>\n<li ", "</strong>");
    assert_eq!(
        first,
        "class=\"tile hero bad\"><a href=\"#class=damaged\"><span class=label>Damaged</span> <strong>1"
    );
    let rows = rows(&page);
    let classes: Vec<&str> = rows
        .iter()
        .map(|row| between(row, "data-class=", ">"))
        .collect();
    assert_eq!(classes[..4], ["damaged", "replaced", "modified", "removed"]);
    for (class, words) in [
        ("damaged", "<span>a/</span>rotten</bdi>"),
        ("damaged", "ctime changed: points to a rewrite"),
        (
            "damaged",
            "<dt>digest<dd><span class=v>ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad</span><br><span class=arrow>",
        ),
        (
            "replaced",
            "<dt>kind<dd><span class=v>file</span> <span class=arrow>&rarr;</span> <span class=v>symlink</span>",
        ),
        (
            "modified",
            "<dt>size<dd><span class=v>1</span> <span class=arrow>&rarr;</span> <span class=v>6</span>",
        ),
        ("removed", "<span>b/</span>gone</bdi>"),
        ("added", "new &lt;b&gt;</bdi>"),
        (
            "moved",
            "<span>b/</span>from</bdi> <span class=to>&rarr;</span> <bdi class=\"p\"><span>b/</span>to</bdi>",
        ),
        (
            "moved",
            "<dt>mode<dd><span class=v>0640</span> <span class=arrow>&rarr;</span> <span class=v>4711</span>",
        ),
        ("meta", "<span class=v>0600</span>"),
    ] {
        let found = rows
            .iter()
            .zip(&classes)
            .any(|(row, c)| *c == class && row.contains(words));
        assert!(found, "{class}: {words}\n{rows:#?}");
    }
    for more in ["", " --threads=mono"] {
        let again = t.bc_line(&format!("{line}{more}")).go();
        assert_eq!(undated(&again.stdout), undated(page.as_bytes()));
    }
}

/// With damage the list comes first; without it the map does.
#[test]
fn what_is_damaged_stands_before_where_it_lies() {
    let t = TestTree::new();
    let manifest = damaged(&t);
    let line = format!("integrity verify --format=html . {manifest}");
    let page = t.bc_line(&line).go().code(3).text();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("id=list>") < at("<div class=\"map small\" id=map"));
    let legend = between(&page, "<ul class=legend>", "</ul>");
    assert!(
        legend.contains("<span class=\"dot k-damaged\"></span>damaged"),
        "{legend}"
    );
    t.write("a/rotten", "abc");
    let page = t.bc_line(&line).go().code(1).text();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("id=map") < at("id=list>"));
}

#[test]
fn a_page_says_what_was_compared_and_how_old_the_manifest_is() {
    let t = TestTree::new();
    let manifest = damaged(&t);
    let line = format!("integrity verify --format=html . {manifest}");
    let page = t.bc_line(&line).go().text();
    let subject = between(&page, "<ul class=subject>", "</ul>");
    let dir = t.path().canonicalize().unwrap();
    let (above, name) = (dir.parent().unwrap(), dir.file_name().unwrap());
    let root = format!(
        "<span>{}/</span>{}</bdi>",
        above.display(),
        name.to_str().unwrap()
    );
    assert!(subject.contains(&root), "{subject}");
    let made = between(subject, "m.jsonl</bdi>, made ", "\n");
    assert!(made.contains(" UTC on "), "{made}");
    // What was imported names no host.
    let from = t.scratch("imported.jsonl");
    t.write("sums", format!("{}  same\n", crate::common::EMPTY));
    t.bc_line("integrity import sums -o")
        .arg(&from)
        .go()
        .code(0);
    let line = format!("integrity diff --format=html {} {manifest}", from.display());
    let page = t.bc_line(&line).go().text();
    let subject = between(&page, "<ul class=subject>", "</ul>");
    let imported = between(subject, "imported.jsonl</bdi>, made ", "\n");
    assert!(imported.ends_with(" UTC"), "{imported}");
    let made = between(subject, "m.jsonl</bdi>, made ", "\n");
    assert!(made.contains(" UTC on "), "{made}");
}

#[test]
fn content_that_was_not_compared_is_not_called_undamaged() {
    let t = TestTree::new();
    let manifest = damaged(&t);
    let damage = "<span class=label>Damaged</span> <strong>unknown";
    for option in ["--mode=meta", "--ignore=digest"] {
        let line = format!("integrity verify --format=html {option} . {manifest}");
        let page = t.bc_line(&line).go().code(1).text();
        assert!(
            page.contains("<h1>Differences</h1>") && page.contains(damage),
            "{option}"
        );
        assert!(page.contains("Content was not compared: this page cannot tell of damage."));
    }
    let closed = TestTree::new();
    closed.write("a", "1");
    let manifest = closed.scratch("m.jsonl").to_str().unwrap().to_owned();
    closed
        .bc_line(&format!("integrity manifest -o {manifest} ."))
        .go()
        .code(0);
    closed.mode("a", 0);
    let line = format!("integrity verify --format=html --mode=content . {manifest}");
    let page = closed.bc_line(&line).as_nobody().go().code(1).text();
    assert!(page.contains("<h1>Differences, some unreadable</h1>"));
    assert!(rows(&page)[0].contains("open: Permission denied"), "{page}");
    let line =
        format!("integrity verify --format=html --mode=meta --ignore=mode,ctime . {manifest}");
    let page = closed.bc_line(&line).go().code(0).text();
    assert!(page.contains("<h1>Nothing differs</h1>") && page.contains(damage));
}

#[test]
fn a_page_of_no_difference_and_of_two_manifests() {
    let t = TestTree::new();
    let old = t.scratch("old.jsonl").to_str().unwrap().to_owned();
    let new = t.scratch("new.jsonl").to_str().unwrap().to_owned();
    t.write("a", "1");
    t.bc_line(&format!("integrity manifest -o {old} ."))
        .go()
        .code(0);
    let out = t
        .bc_line(&format!("integrity verify --format=html . {old}"))
        .go();
    let page = out.code(0).text();
    stands_alone(&page);
    assert!(page.contains("<h1>Nothing differs</h1>") && !page.contains("id=list"));
    let tiles = between(&page, "<ul class=tiles>", "</ul>");
    assert_eq!(tiles.matches("<li").count(), 2, "{tiles}");
    let said = "<section class=empty>\n<h2>Every entry is as it was</h2>\n\
                <p class=note>2 entries were compared.</p>";
    assert!(page.contains(said), "{page}");
    t.write("b", "2");
    t.bc_line(&format!("integrity manifest -o {new} ."))
        .go()
        .code(0);
    let out = t
        .bc_line(&format!("integrity diff --format=html {old} {new}"))
        .go();
    let page = out.code(1).text();
    stands_alone(&page);
    assert!(page.contains("<h1>Differences, no damage</h1>"));
    assert!(page.contains("<p class=kicker>bc integrity diff</p>"));
    assert!(
        rows(&page)
            .iter()
            .any(|row| row.contains("data-class=added") && row.contains(">b</bdi>"))
    );
}

#[test]
fn a_page_lists_a_thousand_of_each_class() {
    let t = TestTree::new();
    let manifest = damaged(&t);
    for number in 0..1005 {
        t.write(format!("many/{number}"), number.to_string());
    }
    let out = t
        .bc_line(&format!("integrity verify --format=html . {manifest}"))
        .go();
    let page = out.code(3).text();
    let rows = rows(&page);
    let added = rows
        .iter()
        .filter(|row| row.contains("data-class=added"))
        .count();
    assert_eq!(added, 1000);
    assert!(rows.iter().any(|row| row.contains("data-class=damaged")));
    // The directory, "new <b>" and 1,005 files are added.
    let said = "The first 1,000 of each class are on this page; 7 added more are not. \
                <code>bc integrity verify --format=json ROOT MANIFEST</code> lists all.";
    assert!(
        page.contains(said),
        "{}",
        between(&page, "id=list-title>", "<table")
    );
}
