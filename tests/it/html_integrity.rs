//! `bc integrity verify --format=html`: damage first, nothing claimed that was not looked at.

use std::os::unix::fs::FileExt;

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::html::{between, column, data, shown_paths, stands_alone, undated};

/// An entry of a page of differences.
#[derive(Debug)]
struct PageChange {
    class: String,
    path: String,
    to: String,
    kind: String,
    /// Remarks and values, as JSON; nothing where the page has none.
    details: String,
}

/// The entries of a page of differences, gravest first.
fn changes(page: &str) -> Vec<PageChange> {
    let data = data(page);
    let mut changes = Vec::new();
    for class in data["classes"].as_array().unwrap() {
        if class["name"] == "" {
            continue;
        }
        let paths = shown_paths(&data["dirs"], class);
        let (to, kinds) = (column(class, "to", '\n'), column(class, "kind", ' '));
        for (nth, path) in paths.into_iter().enumerate() {
            let details = class["details"].get(nth);
            changes.push(PageChange {
                class: class["class"].as_str().unwrap().to_owned(),
                path,
                to: to[nth].clone(),
                kind: kinds[nth].clone(),
                details: details.map(ToString::to_string).unwrap_or_default(),
            });
        }
    }
    changes
}

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
    let changes = changes(&page);
    let classes: Vec<&str> = changes.iter().map(|change| &change.class[..]).collect();
    assert_eq!(classes[..4], ["damaged", "replaced", "modified", "removed"]);
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for (class, path, words) in [
        ("damaged", "a/rotten", "ctime changed: probably a rewrite"),
        (
            "damaged",
            "a/rotten",
            &format!("[\"digest\",\"{digest}\",\""),
        ),
        ("replaced", "b/kind", "[\"kind\",\"file\",\"symlink\"]"),
        ("modified", "a/edited", "[\"size\",\"1\",\"6\"]"),
        ("removed", "b/gone", "[\"size\",\"4\"]"),
        ("added", "new <b>", "[\"size\",\"1\"]"),
        ("moved", "b/from", "[\"mode\",\"0640\",\"4711\"]"),
        ("meta", "b/mode", "\"0600\""),
    ] {
        let is_it = |change: &&PageChange| {
            change.class == class && change.path == path && change.details.contains(words)
        };
        let found = changes.iter().find(is_it);
        let found = found.unwrap_or_else(|| panic!("{class}: {words}\n{changes:#?}"));
        assert_eq!(found.to, if class == "moved" { "b/to" } else { "" });
        assert_eq!(
            found.kind,
            if path == "b/kind" { "symlink" } else { "file" }
        );
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
    assert!(at("id=changes ") < at("<div class=\"map small\" id=map"));
    let legend = between(&page, "<ul class=legend>", "</ul>");
    assert!(
        legend.contains("<span class=\"dot k-damaged\"></span>damaged"),
        "{legend}"
    );
    t.write("a/rotten", "abc");
    let page = t.bc_line(&line).go().code(1).text();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("id=map") < at("id=changes "));
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
        assert!(page.contains("Content was not compared, so this page cannot report damage."));
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
    let first = &changes(&page)[0].details;
    assert!(first.contains("open: Permission denied"), "{first}");
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
    assert!(page.contains("<h1>Nothing differs</h1>") && !page.contains("id=changes"));
    let tiles = between(&page, "<ul class=tiles>", "</ul>");
    assert_eq!(tiles.matches("<li").count(), 2, "{tiles}");
    let said = "<section class=empty>\n<h2>Every entry is unchanged</h2>\n\
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
    let is_it = |change: &PageChange| change.class == "added" && change.path == "b";
    assert!(changes(&page).iter().any(is_it));
}

/// 19,000 differences are listed on less than a megabyte; the first of each class have their values.
#[test]
fn a_page_of_many_differences_is_small() {
    let t = TestTree::new();
    let manifest = damaged(&t);
    let (old, new) = (t.scratch("old.jsonl"), t.scratch("new.jsonl"));
    for number in 0..19_000 {
        t.write(format!("d{}/f{number:05}", number % 97), number.to_string());
    }
    let record = |to: &std::path::Path| {
        t.bc_line("integrity manifest . -o").arg(to).go().code(0);
    };
    record(&old);
    for number in 0..9000 {
        let name = format!("d{}/f{number:05}", number % 97);
        match number % 3 {
            0 => t.remove(&name),
            1 => t.write(&name, "other"),
            _ => t.mode(&name, 0o600),
        };
    }
    for number in 9000..19_000 {
        let name = format!("d{}/f{number:05}", number % 97);
        std::fs::rename(t.join(&name), t.join(format!("{name}.jpg"))).unwrap();
    }
    record(&new);
    let out = t
        .bc_line("integrity diff --format=html")
        .args([&old, &new])
        .go();
    let page = out.code(1).text();
    stands_alone(&page);
    assert!(page.len() < 1_000_000, "{}", page.len());
    let changes = changes(&page);
    let of = |class: &str| {
        changes
            .iter()
            .filter(|change| change.class == class)
            .count()
    };
    assert_eq!(
        (of("removed"), of("modified"), of("moved")),
        (3000, 3000, 10_000)
    );
    let detailed = |change: &&PageChange| change.class == "modified" && !change.details.is_empty();
    assert_eq!(changes.iter().filter(detailed).count(), 1000);
    let said = "The first 1,000 of each class have their values on this page; <code>bc integrity \
                diff --format=json OLD NEW</code> lists all.";
    assert!(page.contains(said));
    // Damage is whole.
    let line = format!("integrity verify --format=html . {manifest}");
    let page = t.bc_line(&line).go().code(3).text();
    assert!(changes_of(&page, "damaged")[0].details.contains("ctime"));
}

fn changes_of(page: &str, class: &str) -> Vec<PageChange> {
    let mut all = changes(page);
    all.retain(|change| change.class == class);
    all
}

/// A directory that was renamed is one entry.
#[test]
fn a_renamed_directory_is_one_entry_of_a_page() {
    let t = TestTree::new();
    let manifest = t.scratch("m.jsonl");
    for number in 0..40 {
        t.write(format!("old/sub/{number}"), number.to_string());
    }
    t.bc_line("integrity manifest . -o")
        .arg(&manifest)
        .go()
        .code(0);
    std::fs::rename(t.join("old"), t.join("new")).unwrap();
    let out = t
        .bc_line("integrity verify --format=html .")
        .arg(&manifest)
        .go();
    let page = out.code(1).text();
    let moved = changes_of(&page, "moved");
    assert_eq!(moved.len(), 1, "{moved:#?}");
    assert_eq!((&moved[0].path[..], &moved[0].to[..]), ("old", "new"));
    assert_eq!(data(&page)["classes"][6]["entries"], "41");
}

#[test]
fn what_a_page_of_differences_leaves_out_is_said() {
    let t = TestTree::new();
    let line = |n: usize| format!("{}  f{n:06}\n", crate::common::EMPTY);
    t.write("old.sums", line(0))
        .write("new.sums", (0..100_006).map(line).collect::<String>());
    for which in ["old", "new"] {
        t.bc_line(&format!("integrity import {which}.sums -o {which}.jsonl"))
            .go()
            .code(0);
    }
    let page = t
        .bc_line("integrity diff --format=html old.jsonl new.jsonl")
        .go()
        .code(1)
        .text();
    assert_eq!(changes(&page).len(), 100_000);
    let said = "The first 100,000 of each class are on this page; 5 added more are not. \
                <code>bc integrity diff --format=json OLD NEW</code> lists all.";
    assert!(
        page.contains(said),
        "{}",
        between(&page, "id=list-title>", "<noscript>")
    );
}
