//! Where `bc dup unique` cannot tell whether all is elsewhere, it does not say so.

use bc_testkit::TestTree;
use serde_json::Value;

use crate::common::Bc;
use crate::dup_reference::where_it_may_mount;

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("card/a", "a photo").write("archive/b", "a photo");
    t
}

#[test]
fn a_path_without_files_may_be_a_disk_that_is_not_mounted() {
    let t = tree();
    t.dir("mnt/sub").symlink("nowhere", "mnt/link");
    for paths in ["mnt", "card mnt", "mnt/sub"] {
        t.bc_line(&format!("dup unique {paths} --reference=archive"))
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(": no files at all: is it mounted?");
    }
    t.write("mnt/empty", "");
    t.bc_line("dup unique mnt --reference=archive").go().code(0);
    // What one's own filter leaves out is there, and so is what another PATH has.
    for paths in ["card --exclude=a", "card card", "card card/a"] {
        t.bc_line(&format!("dup unique {paths} --reference=archive"))
            .go()
            .code(0);
    }
    // That is so for each by itself.
    t.dir("nothing").write("card/x.tmp", "a photo");
    for paths in ["nothing card --exclude=*.tmp", "nothing card card"] {
        t.bc_line(&format!("dup unique {paths} --reference=archive"))
            .go()
            .code(2)
            .stderr_has("nothing: no files at all: is it mounted?");
    }
}

#[test]
fn what_holds_bytes_that_are_not_looked_at_is_refused() {
    let t = tree();
    t.fifo("fifo").symlink("/dev/null", "link");
    for path in ["/dev/null", "link", "card link"] {
        t.bc_line(&format!("dup unique {path} --reference=archive"))
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has("name the directory where it is mounted");
    }
    t.bc_line("dup unique fifo --reference=archive")
        .go()
        .code(2)
        .stderr_has("fifo: neither a file nor a directory");
    // Below a PATH it is counted.
    t.fifo("card/fifo");
    t.bc_line("dup unique card --reference=archive")
        .go()
        .code(0)
        .stderr_has("not files: 1 FIFOs and sockets");
}

#[test]
fn nothing_is_safe_where_nobody_tells_what_is_mounted() {
    let t = tree();
    let script = "mount -t tmpfs none /proc; code=0
        \"$BC\" dup unique card --reference=archive >&2 || code=$?; exit $code";
    let Some(out) = where_it_may_mount(&t, script) else {
        return;
    };
    out.code(1)
        .stderr_has(
            "cannot determine which files mounts cover: /proc/self/mountinfo: open: No such file",
        )
        .stderr_has("all of 1 files that were looked at are elsewhere");
}

#[test]
fn all_is_present_only_where_all_was_looked_at() {
    let t = tree();
    t.write("card/.hidden", "nowhere else");
    let out = t
        .bc_line("dup unique card --no-hidden --format=json --reference=archive")
        .go();
    let report: Value = serde_json::from_slice(&out.code(1).stdout).unwrap();
    assert_eq!(report["stats"]["all_present"], false);
    assert_eq!(report["stats"]["complete"], false);
    out.stderr_has("all of 1 files that were looked at are elsewhere");
    t.remove("card/.hidden");
    let out = t
        .bc_line("dup unique card --format=json --reference=archive")
        .go();
    let report: Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
    assert_eq!(report["stats"]["all_present"], true);
}

#[test]
fn lists_may_begin_with_a_mark_and_json_says_what_to_do() {
    let t = tree();
    for (format, name) in [("gnu", "sums"), ("jsonl", "lines"), ("json", "document")] {
        t.bc_line(&format!("hash --format={format} --output={name} archive"))
            .go()
            .code(0);
        let marked = [&b"\xef\xbb\xbf"[..], &t.read(name)].concat();
        t.write(format!("marked-{name}"), marked);
    }
    t.remove("archive");
    let ask = |name: &str| t.bc_line("dup unique card --reference").arg(name).go();
    for name in ["sums", "lines", "marked-sums", "marked-lines"] {
        ask(name).code(0).stdout_is("");
    }
    ask("document").code(2).stderr_has(
        "neither a directory nor a manifest; of what bc hash writes, --format=jsonl can",
    );
}
