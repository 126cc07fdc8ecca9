//! `--format=html`: pages that hold everything, and nothing that a name put there.

use std::collections::BTreeSet;

use bc_testkit::{TestTree, hostile};
use serde_json::Value;

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

/// The data of a page, as its script unpacks it.
pub fn data(page: &str) -> Value {
    let text = between(page, "<script id=data type=text/plain>", "<");
    let small = bc_manifest::base64::decode(text.as_bytes()).unwrap();
    let json = miniz_oxide::inflate::decompress_to_vec_zlib(&small).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// Values of a column.
pub fn column(columns: &Value, name: &str, separator: char) -> Vec<String> {
    let text = columns[name].as_str().unwrap();
    text.split(separator).map(str::to_owned).collect()
}

/// The path of each name as it is shown, from the columns of directories and of names.
pub fn shown_paths(dirs: &Value, names: &Value) -> Vec<String> {
    let dirs: Vec<&str> = dirs.as_str().unwrap().split('\n').collect();
    let mut dir = 0;
    let mut last = String::new();
    let steps = column(names, "dir", ' ');
    let names = column(names, "name", '\n');
    let paths = steps.iter().zip(names).map(|(step, name)| {
        dir += step.parse::<i64>().unwrap();
        if !name.is_empty() {
            last = name;
        }
        match dirs[dir as usize] {
            "" => last.clone(),
            above if above.ends_with('/') => format!("{above}{last}"),
            above => format!("{above}/{last}"),
        }
    });
    paths.collect()
}

/// A group of a page to decide on.
#[derive(Debug)]
pub struct PageGroup {
    pub size: u64,
    /// The shown names of each file, and whether it is a reference's.
    pub files: Vec<(Vec<String>, bool)>,
}

/// The groups of a page to decide on.
pub fn groups(page: &str) -> Vec<PageGroup> {
    let data = data(page);
    let mut paths = shown_paths(&data["dirs"], &data["names"]).into_iter();
    let counts = column(&data["files"], "names", ' ');
    let references = column(&data["files"], "reference", ' ');
    let mut files = counts.into_iter().zip(references);
    let groups = &data["groups"];
    let sizes = column(groups, "size", ' ').into_iter();
    let counts = column(groups, "files", ' ').into_iter();
    let groups = sizes.zip(counts).map(|(size, count)| {
        let files = files.by_ref().take(count.parse().unwrap());
        let files = files.map(|(names, reference)| {
            let names = paths.by_ref().take(names.parse().unwrap());
            (names.collect(), reference == "1")
        });
        PageGroup {
            size: size.parse().unwrap(),
            files: files.collect(),
        }
    });
    groups.collect()
}

/// The paths of all groups as bytes.
fn paths(page: &str) -> Vec<Vec<u8>> {
    let data = data(page);
    let paths = shown_paths(&data["dirs"], &data["names"]);
    paths.iter().map(|path| bytes_of(path)).collect()
}

/// The bytes that a shown path stands for.
fn bytes_of(shown: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = shown;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at + 1..];
        let used = match escape.as_bytes()[0] {
            b'x' => {
                out.push(u8::from_str_radix(&escape[1..3], 16).unwrap());
                3
            }
            b'u' => {
                let end = escape.find('}').unwrap();
                let c = char::from_u32(u32::from_str_radix(&escape[2..end], 16).unwrap());
                out.extend_from_slice(c.unwrap().to_string().as_bytes());
                end + 1
            }
            letter => {
                let byte = match letter {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => other,
                };
                out.push(byte);
                1
            }
        };
        rest = &escape[used..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// Nothing is loaded from anywhere, whatever the names: two scripts, ours, a third where there is a
/// list, and only elements and attributes that are ours.
pub fn stands_alone(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>\n<html lang=en>"));
    assert!(page.ends_with("</html>\n"));
    let policy = between(page, "Content-Security-Policy content=\"", "\"");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    let scripts = 2 + page.matches("<script id=data type=text/plain>").count();
    assert_eq!(page.matches("<script>").count(), scripts);
    let without: String = page
        .split("<script>")
        .enumerate()
        .map(|(nth, part)| match nth {
            0 => part,
            _ => part.split_once("</script>").unwrap().1,
        })
        .collect();
    const TAGS: &str = " !DOCTYPE a b bdi body br button code dd details div dl dt em footer h1 h2 head \
        header html i input kbd label li main meta noscript ol option p script section select small span \
        strong style summary table tbody td th thead title tr ul wbr ";
    const ATTRIBUTES: &str = " aria-hidden aria-label aria-labelledby aria-sort autocomplete charset class \
        content data-b64 data-by data-class data-label data-sort data-v disabled hidden href \
        http-equiv id lang name placeholder role scope spellcheck title type value ";
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
    let groups = groups(&page);
    assert_eq!(groups.len(), 2);
    assert_eq!(groups[0].size, 50_000);
    // Most links first: what prune keeps. Names of one file stand together.
    let names: Vec<Vec<String>> = groups[0].files.iter().map(|file| file.0.clone()).collect();
    assert_eq!(
        names,
        [
            vec!["./b/big", "./b/link"],
            vec!["./a/big"],
            vec!["./b/bigger name"]
        ]
    );
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
    let group = &groups(&page)[0];
    assert_eq!(group.files[0], (vec!["master/z".to_owned()], true));
    assert!(!group.files[1].1);
}

#[test]
fn nothing_found_and_nothing_wasted_are_pages_too() {
    let t = TestTree::new();
    t.write("a", "1").write("b", "2");
    let page = t.bc_line("dup --format=html .").go().code(0).text();
    stands_alone(&page);
    assert!(page.contains("<h1>No duplicate files</h1>") && !page.contains("id=map"));
    let said = "<section class=empty>\n<h2>No identical files</h2>\n\
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
    assert!(page.contains(
        "Wasted space by directory: all of it in <bdi class=\"p\"><span>./</span>d</bdi>."
    ));
    assert!(!page.contains("id=map"));
}

/// All groups are there, and little is sent for each.
#[test]
fn a_page_has_all_groups_and_stays_small() {
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
    stands_alone(&page);
    let groups = groups(&page);
    assert_eq!(groups.len(), 1004);
    assert_eq!(groups[0].files.len(), 150);
    let data = between(&page, "<script id=data type=text/plain>", "<");
    assert!(data.len() < 1004 * 60, "{}", data.len());
}

/// Names that file systems and unfinished outputs leave for a while are nothing to decide on.
#[test]
fn names_that_do_not_last_are_not_on_the_page() {
    let t = TestTree::new();
    t.write("d/.nfs000000000000000100000001", "going")
        .write("d/.nfs000000000000000200000002", "going")
        .write("d/a", "stays")
        .write("d/b", "stays");
    let page = t.bc_line("dup --format=html d").go().code(0).text();
    let groups = groups(&page);
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0].files.len(), 2);
}

/// Folders that are copies of each other come first, and those that are in another one.
#[test]
fn whole_folders_are_on_the_page() {
    let t = TestTree::new();
    for dir in ["a/x", "b/y", "whole"] {
        t.write(format!("{dir}/1"), "one")
            .write(format!("{dir}/2"), "two");
    }
    t.write("whole/more", "three");
    let page = t.bc_line("dup --format=html a b whole").go().code(0).text();
    let folders = data(&page)["folders"].clone();
    assert_eq!(folders[0]["kind"], "equal");
    assert_eq!(
        folders[0]["paths"],
        serde_json::json!(["a/x", "b/y"]),
        "{folders}"
    );
    assert_eq!(folders[0]["files"], 2);
    // Links and what else is no file make a difference.
    t.symlink("nowhere", "b/y/link");
    let page = t.bc_line("dup --format=html a b").go().code(0).text();
    let folders = data(&page)["folders"].clone();
    assert_eq!(folders[0]["kind"], "contained", "{folders}");
    // The groups are those of the other formats.
    let json = t.bc_line("dup --format=json a b").go().code(0).text();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["groups"].as_array().unwrap().len(),
        groups(&page).len()
    );
    // A list of files has no folders.
    t.write("list", "a/x/1\nb/y/1\n");
    let page = t
        .bc_line("dup --format=html --files-from=list")
        .go()
        .code(0)
        .text();
    assert_eq!(data(&page)["folders"], serde_json::json!([]));
    assert_eq!(groups(&page).len(), 1);
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
    assert!(page.contains("<h2>Not compared</h2>"));
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
