//! `--format=html`: pages that hold everything, and nothing that a name put there.

use std::collections::BTreeSet;

use bc_testkit::{TestTree, hostile};

use crate::common::Bc;

/// Names that mean something in HTML, beside those that break other things.
const MARKUP: &[&[u8]] = &[
    b"<script>document.title='owned'<",
    b"<img src=x onerror=document.title='owned'>",
    b"\"><img src=x onerror=document.title='owned'>",
    b"' onmouseover='document.title=1' autofocus onfocus='document.title=1",
    b"--><script>document.title='owned'",
    b"&lt;b&gt; &amp; &#60;",
    "invisible \u{200b}\u{feff}\u{2066}".as_bytes(),
];

/// Every name twice, with content of its own, in two directories.
pub fn hostile_pairs(t: &TestTree) {
    for (number, name) in hostile::NAMES.iter().chain(MARKUP).enumerate() {
        for dir in [&b"h/one"[..], b"h/<b>\n\xff&\""] {
            let dir = std::path::PathBuf::from(
                <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(dir.to_vec()),
            );
            let name =
                <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(name.to_vec());
            std::fs::create_dir_all(t.path().join(&dir)).unwrap();
            std::fs::write(t.path().join(dir).join(name), format!("content {number}")).unwrap();
        }
    }
}

/// What is between two marks, the first time.
#[track_caller]
pub fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let from = text.find(start).unwrap_or_else(|| panic!("no {start}")) + start.len();
    let len = text[from..].find(end).unwrap_or_else(|| panic!("no {end}"));
    &text[from..from + len]
}

/// The page without what tells one run from the next: when and how it was made.
pub fn undated(page: &[u8]) -> String {
    let page = std::str::from_utf8(page).unwrap();
    let made = between(page, "<p class=made>", "</p>");
    page.replacen(made, "", 1)
}

/// The rows of the main table.
pub fn rows(page: &str) -> Vec<&str> {
    let table = between(page, "id=list>", "</table>");
    let body = &table[table.find("<tbody>").unwrap()..];
    body.split("<tr").skip(1).collect()
}

/// The paths of the main table as bytes: by their base64, or as their text.
fn paths(page: &str) -> Vec<Vec<u8>> {
    let table = between(page, "id=list>", "</table>");
    table
        .split("<bdi ")
        .skip(1)
        .map(|element| {
            let (tag, rest) = element.split_once('>').unwrap();
            if tag.contains("data-b64=") {
                let encoded = between(tag, "data-b64=\"", "\"");
                return bc_manifest::base64::decode(encoded.as_bytes()).unwrap();
            }
            let html = rest.split("</bdi>").next().unwrap();
            let text: String = html
                .split('<')
                .enumerate()
                .map(|(nth, part)| {
                    if nth == 0 {
                        part
                    } else {
                        part.split_once('>').unwrap().1
                    }
                })
                .collect();
            let text = text.replace("&lt;", "<").replace("&gt;", ">");
            let text = text.replace("&quot;", "\"").replace("&#39;", "'");
            text.replace("&amp;", "&").into_bytes()
        })
        .collect()
}

/// Nothing is loaded from anywhere, whatever the names: two scripts, ours, and
/// only elements and attributes that are ours.
pub fn stands_alone(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>\n<html lang=en>"));
    assert!(page.ends_with("</html>\n"));
    let policy = between(page, "Content-Security-Policy content=\"", "\"");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert_eq!(page.matches("<script>").count(), 2);
    let without: String = page
        .split("<script>")
        .enumerate()
        .map(|(nth, part)| match nth {
            0 => part,
            _ => part.split_once("</script>").unwrap().1,
        })
        .collect();
    const TAGS: &str = " !DOCTYPE a b bdi body br button code dd details div dl dt em footer h1 h2 head \
        header html i input label li main meta p section small span strong style summary table \
        tbody td th thead title tr ul wbr ";
    const ATTRIBUTES: &str = " aria-hidden aria-labelledby aria-sort autocomplete charset class \
        content data-b64 data-by data-class data-label data-sort data-v disabled hidden href \
        http-equiv id lang name placeholder role scope spellcheck title type ";
    for tag in without.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
        let known = TAGS.contains(&format!(" {} ", name.trim_start_matches('/')));
        assert!(known, "{tag}");
        while !rest.is_empty() && name != "!DOCTYPE" {
            let end = rest.find([' ', '=']).unwrap_or(rest.len());
            let known = ATTRIBUTES.contains(&format!(" {} ", &rest[..end]));
            assert!(known, "{} in {tag}", &rest[..end]);
            rest = match rest[end..].strip_prefix('=') {
                None => &rest[end..],
                Some(value) => match value.strip_prefix('"') {
                    None => value.split_once(' ').map_or("", |(_, rest)| rest),
                    Some(value) => value.split_once('"').unwrap().1,
                },
            };
            rest = rest.trim_start();
        }
    }
    for link in page.split("href=\"").skip(1) {
        assert!(link.starts_with('#'), "{link:.80}");
    }
    for way in ["http:", "https:", "//cdn", "@import", "url(", "src="] {
        let ours = way == "src=" && without.contains("&lt;img src=x");
        assert!(ours || !without.contains(way), "{way}");
    }
}

#[test]
fn a_page_of_duplicates() {
    let t = TestTree::new();
    let big = vec![b'x'; 50_000];
    t.write("a/big", &big)
        .write("b/big", &big)
        .write("b/bigger name", &big);
    t.hard_link("b/big", "b/link");
    t.write("a/small", "same")
        .write("z", "same")
        .write("alone", "lonely");
    let out = t.bc_line("dup scan --format=html .").go();
    let page = out.code(0).stderr_is("").text();
    stands_alone(&page);
    assert_eq!(
        between(
            &page,
            "<span class=label>Redundant files</span> <strong>",
            "<"
        ),
        "3"
    );
    assert_eq!(
        between(&page, "<span class=label>Groups</span> <strong>", "<"),
        "2"
    );
    assert_eq!(
        between(
            &page,
            "<span class=label>Files scanned</span> <strong>",
            "<"
        ),
        "6"
    );
    assert!(page.contains(
        "<th scope=col class=num aria-sort=descending><button type=button disabled data-sort=wasted"
    ));
    let rows = rows(&page);
    assert_eq!(rows.len(), 2);
    // Most links first: what prune keeps.
    let kept = "<span class=tag>kept</span><bdi class=\"p\"><span>./b/</span>big</bdi>";
    assert!(rows[0].contains(kept), "{}", rows[0]);
    assert!(rows[0].contains(
        "<span class=\"tag same\">same file</span><bdi class=\"p\"><span>./b/</span>link"
    ));
    assert!(rows[0].contains("data-v=50000 data-label=each title=\"50,000 bytes\">48.8 KiB"));
    assert!(rows[0].contains("data-v=3 data-label=copies>3"));
    let dry = t.bc_line("dup prune --action=hardlink --dry-run .").go();
    dry.stdout_has("./b/big").code(0);
    let files: Vec<String> = paths(&page)
        .into_iter()
        .map(|p| String::from_utf8(p).unwrap())
        .collect();
    assert_eq!(
        files,
        [
            "./b/big",
            "./b/link",
            "./a/big",
            "./b/bigger name",
            "./a/small",
            "./z"
        ]
    );
    // The same bytes again, by other threads and into a file.
    for threads in ["mono", "3"] {
        let again = t
            .bc_line("dup scan --format=html . --threads")
            .arg(threads)
            .go();
        assert_eq!(undated(&again.stdout), undated(page.as_bytes()));
    }
    t.bc_line("dup --format=html -o ../page.html .")
        .go()
        .code(0)
        .stdout_is("");
    let written = std::fs::read(t.path().join("../page.html")).unwrap();
    assert_eq!(undated(&written), undated(page.as_bytes()));
}

#[test]
fn a_reference_is_named_and_kept() {
    let t = TestTree::new();
    t.write("in/a", "same").write("master/z", "same");
    let page = t
        .bc_line("dup --format=html --reference=master in master")
        .go()
        .text();
    let dir = t.path().canonicalize().unwrap();
    let named = format!(
        "<li><span class=tag>reference</span><bdi class=\"p\"><span>{}/</span>master</bdi>",
        dir.display()
    );
    assert!(page.contains(&named), "{page}");
    assert!(
        rows(&page)[0].contains(
            "<span class=tag>kept: reference</span><bdi class=\"p\"><span>master/</span>z"
        )
    );
}

#[test]
fn nothing_found_and_nothing_wasted_are_pages_too() {
    let t = TestTree::new();
    t.write("a", "1").write("b", "2");
    let page = t.bc_line("dup --format=html .").go().code(0).text();
    stands_alone(&page);
    assert!(page.contains("<h1>No duplicate files</h1>") && !page.contains("id=map"));
    let said = "<section class=empty>\n<h2>No two files are equal</h2>\n\
                <p class=note>2 files, 2 B in all, were compared. Nothing can be freed here.</p>";
    assert!(
        page.contains(said) && !page.contains("bc dup prune"),
        "{page}"
    );
    t.hard_link("a", "c");
    let page = t
        .bc_line("dup --format=html --match-hardlinks .")
        .go()
        .code(0)
        .text();
    assert_eq!(paths(&page), [b"./a", b"./c"]);
    // A map of one directory would show nothing.
    t.write("d/x", "same").write("d/y", "same");
    let page = t.bc_line("dup --format=html .").go().code(0).text();
    assert!(
        page.contains("Where the waste is: all of it in <bdi class=\"p\"><span>./</span>d</bdi>.")
    );
    assert!(!page.contains("id=map"));
}

#[test]
fn what_a_page_leaves_out_is_said() {
    let t = TestTree::new();
    for number in 0..1003 {
        let content = format!("content {number:04}");
        t.write(format!("a/{number:04}"), &content)
            .write(format!("b/{number:04}"), &content);
    }
    for number in 0..150 {
        t.write(format!("c/{number:04}"), "many times the same");
    }
    let page = t.bc_line("dup --format=html .").go().code(0).text();
    let rows = rows(&page);
    assert_eq!(rows.len(), 1000);
    let status = between(&page, "id=list-title>", "<table");
    assert!(status.contains("The 1,000 groups that waste most. 4 smaller groups, which waste "));
    assert!(
        status.contains(
            "not on this page; <code>bc dup scan --format=json PATH...</code> lists all."
        )
    );
    assert_eq!(
        between(&page, "<span class=label>Groups</span> <strong>", "<"),
        "1,004"
    );
    assert!(rows[0].contains("<summary>144 more</summary>"));
    assert!(rows[0].contains("<li>50 more are not on this page; <code>bc dup scan"));
}

#[test]
fn what_could_not_be_read_is_on_the_page() {
    let t = TestTree::new();
    t.write("a", "same")
        .write("b", "same")
        .write("<i>c", "same")
        .mode("<i>c", 0);
    let out = t.bc_line("dup --format=html .").as_nobody().go();
    out.code(1).stderr_has("Permission denied");
    let page = out.text();
    stands_alone(&page);
    assert!(page.contains("<h2>Not judged</h2>"));
    assert!(
        page.contains("<span>./</span>&lt;i&gt;c</bdi>: open: Permission denied"),
        "{page}"
    );
}

#[test]
fn hostile_names_are_text_and_their_bytes_can_be_had() {
    let t = TestTree::new();
    hostile_pairs(&t);
    let out = t.bc_line("dup --format=html h").go();
    let page = String::from_utf8(out.code(0).stdout.clone()).unwrap();
    stands_alone(&page);
    let json = t.bc_line("dup --format=json h").go();
    let report: serde_json::Value = serde_json::from_slice(&json.code(0).stdout).unwrap();
    let expected: BTreeSet<Vec<u8>> = report["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["files"].as_array().unwrap())
        .map(|file| match file["path_b64"].as_str() {
            Some(encoded) => bc_manifest::base64::decode(encoded.as_bytes()).unwrap(),
            None => file["path"].as_str().unwrap().as_bytes().to_vec(),
        })
        .collect();
    assert_eq!(expected.len(), 2 * (hostile::NAMES.len() + MARKUP.len()));
    assert_eq!(paths(&page).into_iter().collect::<BTreeSet<_>>(), expected);
    // What no text may hold: controls, and what turns or hides its neighbours.
    let bad = |c: &char| {
        c.is_control() && *c != '\n' || "\u{202e}\u{200b}\u{feff}\u{2066}\u{2028}".contains(*c)
    };
    assert_eq!(page.chars().find(bad), None);
}

/// A page is read elsewhere, later, by somebody else.
#[test]
fn a_page_says_when_where_and_how_it_was_made() {
    let t = TestTree::new();
    t.write("d/a <b>", "same").write("d/c", "same");
    let config = t.scratch("home/config/bc/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "").unwrap();
    let run = t
        .bc_line("dup --format=html --exclude")
        .arg("<i> &'x")
        .arg("d");
    let page = run.env("BC_THREADS", "mono").go().code(0).text();
    stands_alone(&page);
    let made = between(&page, "<p class=made>", "</p>");
    let time = between(made, "Made ", " UTC on ");
    let shape: String = time
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(shape, "0000-00-00 00:00:00");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(
        made.contains(&format!(" UTC on {} by ", host.trim())),
        "{made}"
    );
    let typed =
        "<code>bc dup --format=html --exclude &#39;&lt;i&gt; &amp;&#39;\\&#39;&#39;x&#39; d</code>";
    assert!(made.contains(typed), "{made}");
    assert!(
        made.contains(" with settings of <code>BC_THREADS=mono</code>"),
        "{made}"
    );
    assert!(made.contains("/bc/config.toml</code>"), "{made}");
}

#[test]
fn a_map_is_small_where_there_is_little_and_has_a_legend() {
    let t = TestTree::new();
    for number in 0..3 {
        t.write(format!("a/{number}"), "same")
            .write(format!("b/{number}"), "same");
    }
    let page = t.bc_line("dup --format=html .").go().code(0).text();
    stands_alone(&page);
    assert!(page.contains("<div class=\"map small\" id=map"));
    let legend = between(&page, "<ul class=legend>", "</ul>");
    for dir in ["a", "b"] {
        assert!(
            legend.contains(&format!("<span>./</span>{dir}</bdi>")),
            "{legend}"
        );
    }
    // Much in few directories is little to see as well.
    for number in 0..20 {
        t.write(format!("c/{number}"), "same");
    }
    let page = t.bc_line("dup --format=html .").go().code(0).text();
    assert!(page.contains("<div class=\"map small\" id=map"));
    for number in 0..20 {
        t.write(format!("d{}/{number}", number % 8), "same");
    }
    let page = t.bc_line("dup --format=html .").go().code(0).text();
    assert!(page.contains("<div class=\"map\" id=map"));
}
