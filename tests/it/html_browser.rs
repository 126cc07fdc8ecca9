//! Pages in a real browser, where there is one: no name runs, order and filters work, decisions are
//! saved as prune obeys them, both colour schemes are there.

use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;
use crate::html::{between, groups, hostile_pairs};
use crate::html_integrity::damaged;

/// A browser that has proved to run.
struct Browser<'a> {
    tree: &'a TestTree,
    program: PathBuf,
}

impl<'a> Browser<'a> {
    fn find(tree: &'a TestTree) -> Option<Browser<'a>> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let Some(program) = names.iter().find_map(|name| tool(name)) else {
            left_out("no Chromium is installed");
            return None;
        };
        let browser = Browser { tree, program };
        let probe = tree.scratch("probe.html");
        std::fs::write(
            &probe,
            "<p>it runs<script>document.title = 'so do scripts'</script>",
        )
        .unwrap();
        let dom = browser.open(&probe, "", &[]);
        if dom.contains("it runs") && dom.contains("<title>so do scripts") {
            return Some(browser);
        }
        left_out("Chromium is installed but does not run here");
        None
    }

    /// The document after its scripts ran.
    fn open(&self, page: &Path, fragment: &str, flags: &[&str]) -> String {
        let profile = tempfile::tempdir().unwrap();
        let out = self
            .tree
            .run(&self.program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--virtual-time-budget=5000",
                "--dump-dom",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(flags)
            .arg(format!("file://{}{fragment}", page.display()))
            .go();
        out.text()
    }
}

/// A copy of the page with more markup before its end; without its policy if
/// the markup is ours to run.
fn with(page: &Path, more: &str, policy: bool) -> PathBuf {
    let mut text = std::fs::read_to_string(page).unwrap();
    if !policy {
        let tag = between(&text, "<meta http-equiv", ">").to_owned();
        text = text.replace(&format!("<meta http-equiv{tag}>"), "");
    }
    let copy = page.with_extension("copy.html");
    std::fs::write(&copy, text.replace("</body>", &format!("{more}</body>"))).unwrap();
    copy
}

/// A script that runs once the list is there.
fn listed(script: &str) -> String {
    format!(
        "<pre id=out></pre><script>const wait = setInterval(() => {{\
         if (!document.getElementById('loading').hidden) return; clearInterval(wait);\
         const $ = (s) => document.querySelector(s), $$ = (s) => [...document.querySelectorAll(s)];\
         const out = (text) => {{ $('#out').textContent += text + '\\n'; }};\
         {script} }}, 5);</script>"
    )
}

/// Lines that such a script wrote.
fn out(dom: &str) -> String {
    let text = between(dom, "<pre id=\"out\">", "</pre>");
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&nbsp;", "\u{a0}").replace("&amp;", "&")
}

/// Groups of files as the browser lists them.
fn dom_groups(dom: &str) -> Vec<&str> {
    let list = between(dom, "<ol id=\"groups\"", "</ol>");
    list.split("data-group=").skip(1).collect()
}

#[test]
fn no_name_runs() {
    let t = TestTree::new();
    let Some(browser) = Browser::find(&t) else {
        return;
    };
    hostile_pairs(&t);
    let page = t.scratch("dup.html");
    t.bc_line("dup --format=html h -o").arg(&page).go().code(0);
    let dom = browser.open(&page, "", &[]);
    assert!(
        dom.contains("<title>Duplicate files</title>"),
        "{dom:.2000}"
    );
    let text = std::fs::read_to_string(&page).unwrap();
    assert_eq!(groups(&text).len(), 65);
    // The rest is a click away.
    assert_eq!(dom_groups(&dom).len(), 50);
    assert!(!dom.contains("<img") && dom.matches("<script").count() == 4);
    // Our own script did run.
    assert!(dom.contains("name=\"theme-color\""));
    // Nor would a script that found its way into the page.
    let copy = with(
        &page,
        "<script>document.title='owned'</script><p onclick=x id=last>",
        true,
    );
    assert!(
        browser
            .open(&copy, "", &[])
            .contains("<title>Duplicate files</title>")
    );
    let copy = with(&page, "<script>document.title='owned'</script>", false);
    assert!(
        browser
            .open(&copy, "", &[])
            .contains("<title>owned</title>")
    );
}

#[test]
fn order_and_filters() {
    let t = TestTree::new();
    let Some(browser) = Browser::find(&t) else {
        return;
    };
    for (name, size, copies) in [
        ("x/a", 9000, 2),
        ("x y/b", 20_000, 3),
        ("z/c", 100, 4),
        ("z/d", 60_000, 2),
    ] {
        for copy in 0..copies {
            let letter = name.as_bytes()[name.len() - 1];
            t.write(format!("{name}{copy}"), vec![letter; size]);
        }
    }
    let page = t.scratch("dup.html");
    t.bc_line("dup --format=html . -o").arg(&page).go().code(0);
    let letters = |dom: &str| -> String {
        let groups = dom_groups(dom).into_iter();
        groups
            .map(|group| &between(group, "</span>", "<")[..1])
            .collect()
    };
    let order = |fragment: &str| letters(&browser.open(&page, fragment, &[]));
    assert_eq!(order(""), "dbac");
    assert_eq!(order("#sort=size"), "dbac");
    assert_eq!(order("#sort=files"), "bacd");
    assert_eq!(order("#sort=copies"), "cbda");
    assert_eq!(order("#sort=nonsense"), "dbac");
    assert_eq!(order("#under=./z"), "dc");
    assert_eq!(order("#under=./x"), "a");
    assert_eq!(order("#in=./x%20y"), "b");
    assert_eq!(order("#q=B1"), "b");
    assert_eq!(order("#q=x/A"), "a");
    assert_eq!(order("#q=nothing"), "");
    assert_eq!(order("#kind=picture"), "");
    assert_eq!(order("#state=decided"), "");
    // A cell of the map is a filter, and says so.
    let find = "$('a[href=\"#under=./z\"]').click();";
    let copy = with(&page, &listed(find), false);
    let dom = browser.open(&copy, "", &[]);
    assert_eq!(letters(&dom), "dc");
    assert!(dom.contains("2 of 4 groups") && dom.contains("aria-current=\"true\""));
}

/// What a click does, and a key; of each group one file stays whatever is clicked.
#[test]
fn of_each_group_a_file_stays() {
    let t = TestTree::new();
    let Some(browser) = Browser::find(&t) else {
        return;
    };
    for (nth, name) in ["a", "b", "c"].into_iter().enumerate() {
        t.write(name, vec![b'x'; 9000]);
        t.mtime(name, 1_000_000_000 + nth as i64 * 1000, 0);
    }
    t.write("ref/d", vec![b'x'; 9000])
        .write("e", "other")
        .write("f", "other");
    let page = t.scratch("dup.html");
    let script = "\
        const boxes = () => $$('.group input').map((b) => Number(b.checked)).join('');\
        const button = (text) => $$('.group[data-group=\"0\"] button').find((b) => b.textContent === text);\
        const key = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));\
        out(boxes() + ' ' + $('#save').disabled);\
        for (const box of $$('.group input')) box.click();\
        out(boxes() + ' ' + $('#marked').textContent + ' ' + $('#said').textContent);\
        button('Keep newest').click(); out(boxes());\
        button('Keep oldest').click(); out(boxes());\
        $('#undo').click(); out(boxes());\
        $('.group input').focus(); key('2'); out(boxes());\
        key('a'); out(boxes()); key('n'); out(boxes()); key('u'); out(boxes());\
        key('j'); key('1'); out(boxes() + ' ' + document.activeElement.closest('.group').dataset.group);\
        $('#keep-oldest').click(); out(boxes()); $('#keep-all').click(); out(boxes() + $('#save').disabled);";
    t.bc_line("dup --format=html a b c e f -o")
        .arg(&page)
        .go()
        .code(0);
    let dom = browser.open(&with(&page, &listed(script), false), "", &[]);
    let expected = "00000 true\n\
        11010 3 files to prune in 2 groups: 28.0 KiB One file of each group is kept, and this is the last one.\n\
        11010\n01110\n11010\n10110\n00010\n11010\n00010\n00001 1\n";
    let seen = out(&dom);
    assert!(seen.starts_with(expected), "{seen}\n{expected}");
    assert_eq!(seen.lines().count(), 12, "{seen}");
    assert!(seen.ends_with("00000true\n"), "{seen}");
    // With a reference all others may go.
    t.bc_line("dup --format=html --reference=ref a b c -o")
        .arg(&page)
        .go()
        .code(0);
    let script = "for (const box of $$('.group input')) box.click();\
        out($$('.group input').map((b) => Number(b.checked)).join('') + ' ' + $('#marked').textContent);";
    let dom = browser.open(&with(&page, &listed(script), false), "", &[]);
    assert_eq!(out(&dom), "111 3 files to prune in 1 group: 36.0 KiB\n");
}

/// From the page to the disk and back: a folder is kept by one click, a file by another; what is saved
/// is what prune does, and undo takes it back.
#[test]
fn decisions_of_a_page_are_obeyed_by_prune() {
    use std::os::unix::ffi::OsStrExt;
    let t = TestTree::new();
    let Some(browser) = Browser::find(&t) else {
        return;
    };
    // The smallest picture there is.
    let picture =
        bc_manifest::base64::decode(b"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
            .unwrap();
    let odd = |dir: &str| {
        let name = std::ffi::OsStr::from_bytes(b"\xff\n<b>\\ \xe2\x80\xae\"'.gif");
        t.path().join(dir).join(name)
    };
    for dir in ["photos", "backup/photos"] {
        std::fs::create_dir_all(t.join(dir)).unwrap();
        std::fs::write(odd(dir), &picture).unwrap();
        t.write(format!("{dir}/sea"), vec![b's'; 9000]);
        t.write(format!("{dir}/</script>"), "harmless");
    }
    t.write("loose", vec![b'x'; 70_000])
        .write("tight", vec![b'x'; 70_000]);
    t.mtime("loose", 2_000_000_000, 0);
    let page = t.scratch("dup.html");
    t.bc_line("dup --format=html . -o").arg(&page).go().code(0);
    let script = "\
        let saved; window.Blob = function (parts) { saved = parts.join(''); };\
        URL.createObjectURL = () => '#'; URL.revokeObjectURL = () => {};\
        out($$('.picture img').length);\
        $$('.folder .file').find((row) => row.textContent.includes('./backup/photos')).querySelector('button').click();\
        out($('#marked').textContent);\
        $$('.group[data-group=\"0\"] button').find((b) => b.textContent === 'Keep newest').click();\
        out($('#marked').textContent);\
        $('#save').click();\
        out(btoa(Array.from(new TextEncoder().encode(saved), (b) => String.fromCharCode(b)).join('')));";
    let dom = browser.open(&with(&page, &listed(script), false), "", &[]);
    assert!(dom.contains("src=\"file:///"), "no pictures");
    let seen = out(&dom);
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[0].parse::<u32>().unwrap() > 0, "{seen}");
    assert!(
        lines[1].starts_with("3 files to prune in 3 groups: "),
        "{seen}"
    );
    assert!(
        lines[2].starts_with("4 files to prune in 4 groups: "),
        "{seen}"
    );
    let decisions = bc_manifest::base64::decode(lines[3].as_bytes()).unwrap();
    t.write("../decisions.json", &decisions);
    let goes = |is_there: bool| {
        for name in ["photos/sea", "photos/</script>", "tight"] {
            assert_eq!(t.exists(name), is_there, "{name}");
        }
        assert_eq!(odd("photos").exists(), is_there);
        assert!(
            odd("backup/photos").exists() && t.exists("backup/photos/sea") && t.exists("loose")
        );
    };
    goes(true);
    // The paths are whole: it may be obeyed from anywhere.
    let elsewhere = TestTree::new();
    let from = t.join("../decisions.json");
    let line = "dup prune --action=delete --yes --journal=j --from";
    let dry = elsewhere
        .bc_line("dup prune --action=delete --dry-run --from")
        .arg(&from)
        .go();
    assert_eq!(dry.code(0).lines().len(), 4, "{}", dry.text());
    goes(true);
    let real = elsewhere.bc_line(line).arg(&from).go();
    assert_eq!(real.code(0).lines().len(), 4, "{}", real.text());
    goes(false);
    elsewhere.bc_line("dup undo j").go().code(0);
    goes(true);
    assert_eq!(std::fs::read(odd("photos")).unwrap(), picture);
}

/// Thousands of differences are few elements until they are unfolded.
#[test]
fn a_page_unfolds_what_is_asked_for() {
    let t = TestTree::new();
    let Some(browser) = Browser::find(&t) else {
        return;
    };
    let list = |prefix: &str, digit: char| -> String {
        let digest = digit.to_string().repeat(64);
        let line = |n: usize| format!("{digest}  d{}/{prefix}{n:05}\n", n % 990);
        (0..9500).map(line).collect()
    };
    t.write("old.sums", list("old", '0'))
        .write("new.sums", list("new", '1'));
    for which in ["old", "new"] {
        t.bc_line(&format!(
            "integrity import {which}.sums -o ../{which}.jsonl"
        ))
        .go()
        .code(0);
    }
    let page = t.scratch("diff.html");
    t.bc_line("integrity diff --format=html ../old.jsonl ../new.jsonl -o")
        .arg(&page)
        .go()
        .code(1);
    assert!(std::fs::metadata(&page).unwrap().len() < 1_000_000);
    let dom = browser.open(&page, "", &[]);
    let elements = dom.matches('<').count() - dom.matches("</").count();
    assert!(elements < 5000, "{elements}");
    assert!(
        dom.contains("9,500 removed") || dom.contains(">9,500<"),
        "{dom:.3000}"
    );
    let script = "\
        out($$('.change').length); const first = $('.drow details'); first.open = true;\
        first.dispatchEvent(new Event('toggle')); out($$('.change').length);\
        $('#more').click(); out($$('.drow').length); location.hash = '#class=added&q=new00001';\
        setTimeout(() => out($$('.drow').length + ' ' + $$('.change').length), 50);";
    let dom = browser.open(&with(&page, &listed(script), false), "", &[]);
    let seen = out(&dom);
    let lines: Vec<&str> = seen.lines().collect();
    let count = |nth: usize| lines[nth].parse::<usize>().unwrap();
    assert!(count(1) >= count(0) && count(2) == 200, "{seen}");
    assert_eq!(lines[3], "1 1", "{seen}");
}

#[test]
fn arrows_move_in_the_map() {
    let t = TestTree::new();
    let Some(browser) = Browser::find(&t) else {
        return;
    };
    for (number, dir) in ["a", "b", "c", "d", "e", "f", "g", "h"].iter().enumerate() {
        // Enough for a map that is not a small one.
        for copy in 0..4 {
            t.write(format!("{dir}/{copy}"), vec![number as u8; 9000]);
        }
    }
    let page = t.scratch("dup.html");
    t.bc_line("dup --format=html . -o").arg(&page).go().code(0);
    let script = "const map = document.getElementById('map');\
        const key = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));\
        const stops = [...map.children].filter((c) => c.tabIndex === 0).length;\
        map.children[0].focus(); const seen = [stops, document.activeElement.id];\
        for (const k of ['ArrowRight', 'ArrowDown', 'ArrowLeft', 'ArrowUp', 'ArrowUp', 'End', 'Home']) {\
          key(k); seen.push(document.activeElement.id); }\
        document.title = seen.join(' ');";
    let dom = browser.open(
        &with(&page, &format!("<script>{script}</script>"), false),
        "",
        &[],
    );
    assert_eq!(between(&dom, "<title>", "<"), "1 m0 m2 m3 m1 m0 m0 m7 m0");
}

#[test]
fn light_and_dark() {
    let t = TestTree::new();
    let Some(browser) = Browser::find(&t) else {
        return;
    };
    let manifest = damaged(&t);
    let page = t.scratch("verify.html");
    t.bc_line(&format!("integrity verify --format=html . {manifest} -o"))
        .arg(&page)
        .go()
        .code(3);
    let background = |fragment: &str, flags: &[&str]| {
        let dom = browser.open(&page, fragment, flags);
        between(&dom, "name=\"theme-color\" content=\"", "\"").to_owned()
    };
    let light = background("#theme=light", &[]);
    let dark = background("#theme=dark", &[]);
    assert_ne!(light, dark);
    // As the system says, unless the address says otherwise.
    let system = |scheme: u8| format!("--blink-settings=preferredColorScheme={scheme}");
    assert_eq!(background("", &[&system(1)]), light);
    assert_eq!(background("", &[&system(0)]), dark);
    assert_eq!(background("#theme=light", &[&system(0)]), light);
    let dom = browser.open(&page, "#class=damaged", &[]);
    let left: Vec<&str> = dom.split("<li class=\"change ").skip(1).collect();
    assert_eq!(left.len(), 1);
    assert!(left[0].starts_with("k-row-damaged") && left[0].contains("rotten"));
}
