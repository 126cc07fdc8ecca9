//! Pages in a real browser, where there is one: no name runs, sorting and
//! filtering work, both colour schemes are there.

use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;
use crate::html::{between, hostile_pairs, rows};
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

/// Rows as the browser has them: whether hidden, and the text.
fn dom_rows(dom: &str) -> Vec<(bool, &str)> {
    let table = between(dom, "<table id=\"list\">", "</table>");
    let body = &table[table.find("<tbody>").unwrap()..];
    body.split("<tr")
        .skip(1)
        .map(|row| (row.split('>').next().unwrap().contains("hidden"), row))
        .collect()
}

fn numbers(dom: &str, label: &str) -> Vec<u64> {
    let value = |row: &str| {
        let cell = row
            .split("<td ")
            .find(|cell| cell.contains(&format!("data-label=\"{label}\"")));
        between(cell.unwrap(), "data-v=\"", "\"").parse().unwrap()
    };
    dom_rows(dom).iter().map(|(_, row)| value(row)).collect()
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
    assert_eq!(dom_rows(&dom).len(), rows(&text).len());
    assert!(!dom.contains("<img") && dom.matches("<script").count() == 2);
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
fn sorting_and_filtering() {
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
    let sizes = |fragment: &str| numbers(&browser.open(&page, fragment, &[]), "each");
    assert_eq!(sizes("#sort=size"), [60_000, 20_000, 9000, 100]);
    assert_eq!(sizes("#sort=size&order=asc"), [100, 9000, 20_000, 60_000]);
    assert_eq!(sizes("#sort=files"), [20_000, 9000, 100, 60_000]);
    assert_eq!(sizes("#sort=copies"), [100, 20_000, 60_000, 9000]);
    assert_eq!(sizes("#sort=nonsense")[3], 100);
    let dom = browser.open(&page, "#sort=size&order=asc", &[]);
    assert!(dom.contains("aria-sort=\"ascending\"") && !dom.contains("aria-sort=\"descending\""));

    // By clicks: once down, twice up.
    let click = |times: usize| {
        let click = "document.querySelector('[data-sort=size]').click();".repeat(times);
        let copy = with(&page, &format!("<script>{click}</script>"), false);
        browser.open(&copy, "#sort=copies", &[])
    };
    assert_eq!(numbers(&click(1), "each"), [60_000, 20_000, 9000, 100]);
    assert_eq!(numbers(&click(2), "each"), [100, 9000, 20_000, 60_000]);

    let left = |fragment: &str| -> Vec<u64> {
        let dom = browser.open(&page, fragment, &[]);
        let sizes = numbers(&dom, "each");
        let rows = dom_rows(&dom);
        let shown = rows.iter().zip(sizes).filter(|((hidden, _), _)| !hidden);
        shown.map(|(_, size)| size).collect()
    };
    assert_eq!(left("#under=./z"), [60_000, 100]);
    assert_eq!(left("#under=./x"), [9000]);
    assert_eq!(left("#in=./x%20y"), [20_000]);
    assert_eq!(left("#q=B1"), [20_000]);
    assert!(left("#q=nothing").is_empty());
    // A cell of the map is a filter, and says so.
    let find = "document.querySelector('a[href=\"#under=./z\"]').click();";
    let copy = with(&page, &format!("<script>{find}</script>"), false);
    let dom = browser.open(&copy, "", &[]);
    let hidden: Vec<bool> = dom_rows(&dom).iter().map(|(hidden, _)| *hidden).collect();
    assert_eq!(hidden.iter().filter(|hidden| !**hidden).count(), 2);
    assert!(dom.contains("2 of 4 listed rows") && dom.contains("aria-current=\"true\""));
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
    let left: Vec<&str> = dom_rows(&dom)
        .iter()
        .filter(|row| !row.0)
        .map(|row| row.1)
        .collect();
    assert_eq!(left.len(), 1);
    assert!(left[0].contains("rotten"));
}
