//! `bc integrity update`, and that nothing ends it half-done.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bc_testkit::TestTree;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::Bc;

/// Records the tree beside it and gives the manifest's path.
pub fn record(t: &TestTree) -> String {
    let path = t.scratch("m.jsonl").to_str().unwrap().to_owned();
    t.bc_line(&format!("integrity manifest --output={path} ."))
        .go()
        .code(0);
    path
}

/// Rewrites a file in place with other bytes and puts its mtime back.
pub fn damage(t: &TestTree, path: &str, content: &str) {
    let before = std::fs::metadata(t.join(path)).unwrap();
    std::fs::write(t.join(path), content).unwrap();
    let file = std::fs::File::options()
        .write(true)
        .open(t.join(path))
        .unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    let after = std::fs::metadata(t.join(path)).unwrap();
    assert_eq!((before.ino(), before.size()), (after.ino(), after.size()));
}

pub fn rename(t: &TestTree, from: &str, to: &str) {
    std::fs::rename(t.join(from), t.join(to)).unwrap();
}

#[test]
fn an_update_leaves_nothing_to_verify() {
    let t = TestTree::new();
    t.write("a", "1").write("b", "22").write("c/d", "333");
    let m = record(&t);
    let before = std::fs::read(&m).unwrap();
    t.bc_line(&format!("integrity update . {m}"))
        .go()
        .code(0)
        .stdout_is("");
    assert_eq!(
        std::fs::read(&m).unwrap(),
        before,
        "nothing changed, nothing written"
    );
    t.write("a", "changed").remove("b").write("e", "new");
    t.bc_line(&format!("integrity update . {m}"))
        .go()
        .code(0)
        .stdout_has("~c a\n")
        .stdout_has("- b\n")
        .stdout_has("+ e\n");
    t.bc_line(&format!("integrity verify . {m}"))
        .go()
        .code(0)
        .stdout_is("");
}

#[test]
fn damage_needs_to_be_accepted() {
    let t = TestTree::new();
    t.write("a", "good content");
    let m = record(&t);
    damage(&t, "a", "gooX content");
    for _ in 0..2 {
        t.bc_line(&format!("integrity update . {m}"))
            .go()
            .code(3)
            .stdout_has("!! a: ");
    }
    t.bc_line(&format!("integrity verify . {m}")).go().code(3);
    t.bc_line(&format!("integrity update --accept-damaged . {m}"))
        .go()
        .code(3);
    t.bc_line(&format!("integrity verify . {m}"))
        .go()
        .code(0)
        .stdout_is("");
}

/// Names and contents of a directory.
pub fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| {
        // The tree itself lies there, too.
        let content = std::fs::read(dir.join(&name)).unwrap_or_default();
        (name, content)
    };
    names(dir).into_iter().map(read).collect()
}

#[test]
fn a_mass_change_leaves_the_manifest_as_it_is() {
    let t = TestTree::new();
    for file in 0..20 {
        t.write(format!("d/{file}"), format!("content of {file}"));
    }
    let m = record(&t);
    let dir = Path::new(&m).parent().unwrap();
    let before = contents(dir);
    for file in 0..8 {
        t.write(format!("d/{file}"), "encrypted content");
    }
    for file in 8..11 {
        t.remove(format!("d/{file}"));
    }
    damage(&t, "d/11", "CONTENT OF 11");
    rename(&t, "d/12", "d/moved");
    t.write("e/new", "new");
    // 8 edits, 3 removals and a damaged file of 22 entries.
    for limit in ["11", "50%", "0", "0%"] {
        let quiet = format!("integrity update --quiet --max-changed={limit} . {m}");
        let said = format!(
            "bc integrity: {m}: update: 12 of 22 entries were edited, removed or damaged, more than --max-changed={limit} allows: the manifest was left as it is; if that was meant, run it once with --max-changed=100%\n"
        );
        t.bc_line(&quiet).go().code(3).stderr_is(&said);
        assert_eq!(contents(dir), before, "{limit}");
    }
    // Without damage it is 1.
    damage(&t, "d/11", "content of 11");
    t.bc_line(&format!("integrity update --max-changed=10 . {m}"))
        .go()
        .code(1)
        .stdout_has("~c d/0\n")
        .stdout_has("- d/8\n")
        .stdout_has("> d/12 -> d/moved\n")
        .stderr_has("11 of 22 entries");
    assert_eq!(contents(dir), before);
    t.bc_line(&format!("integrity update --quiet --max-changed=11 . {m}"))
        .go()
        .code(0)
        .stderr_is("");
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
}

/// Links and directories have no content to be found again by; nothing of them is gone all the same.
#[test]
fn a_limit_does_not_count_what_was_renamed() {
    let t = TestTree::new();
    t.write("k", "kept").dir("old/bare").write("old/empty", "");
    t.symlink("k", "old/link").symlink("k", "alone");
    let fifo = t.run("mkfifo").arg("old/fifo").go();
    fifo.code(0);
    let m = record(&t);
    let update = |limit: u32| {
        let line = format!("integrity update --max-changed={limit} . {m}");
        t.bc_line(&line).go()
    };
    rename(&t, "old", "new");
    rename(&t, "alone", "still");
    update(0).code(0);
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
    // Another one in the place of one that is gone is no rename.
    t.remove("new/link").symlink("elsewhere", "other");
    t.remove("new/empty");
    update(1).code(1).stderr_has("2 of 8 entries");
    update(2).code(0);
}

#[test]
fn a_limit_counts_noted_damage_once() {
    let t = TestTree::new();
    t.write("a", "1").write("b", "2").write("c", "3");
    let m = record(&t);
    damage(&t, "a", "X");
    let update = |options: &str| t.bc_line(&format!("integrity update {options} . {m}")).go();
    update("--max-changed=0")
        .code(3)
        .stderr_has("1 of 4 entries");
    update("--max-changed=100%").code(3);
    t.write("new", "new");
    for options in ["", "--reread=100%"] {
        update(&format!("--max-changed=0 {options}")).code(3);
        let text = std::fs::read_to_string(&m).unwrap();
        assert!(text.contains("\"path\":\"new\""), "{options}");
        t.remove("new");
        update("--max-changed=1").code(3);
        t.write("new", "new");
    }
    update("--max-changed=0 --accept-damaged").code(3);
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
}

#[test]
fn a_scrub_reads_what_looks_unchanged() {
    let t = TestTree::new();
    t.write("a", "1").write("b", "22");
    let m = record(&t);
    t.bc_line(&format!("integrity update --reread=100% . {m}"))
        .go()
        .code(0)
        .stdout_is("");
    let text = std::fs::read_to_string(&m).unwrap();
    assert_eq!(text.matches("\"verified_at\"").count(), 2);
    t.bc_line(&format!("integrity update --reread=lots . {m}"))
        .go()
        .code(2)
        .stderr_has("lots");
}

/// Bytes that a process has read so far.
pub fn read_by(child: &std::process::Child) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
    let count = io.lines().next().and_then(|line| line.rsplit(' ').next());
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// All names beside the manifest.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn killed_at_any_moment_the_manifest_is_whole() {
    let t = TestTree::new();
    for file in 0..2000 {
        t.write(
            format!("d{}/{file}", file % 20),
            format!("{file}").repeat(50),
        );
    }
    let m = record(&t);
    let dir = Path::new(&m).parent().unwrap().to_owned();
    let others = names(&dir);
    t.write("d0/changing", "first");
    let mut round = 0;
    let line = format!("integrity update --reread=100% . {m}");
    let moments = killed(&t, &line, 30, || {
        let diff = t.bc_line(&format!("integrity diff {m} {m}")).go();
        diff.code(0).stdout_is("");
        // Something to write in every round.
        round += 1;
        t.write("d0/changing", format!("round {round}"));
    });
    assert!(moments > 0, "none of the runs was still running");
    t.bc_line(&format!("integrity update . {m}")).go().code(0);
    t.bc_line(&format!("integrity verify . {m}"))
        .go()
        .code(0)
        .stdout_is("");
    // A last rewrite, so that even the round just ended has been cleaned up after.
    t.write("d0/changing", "done");
    t.bc_line(&format!("integrity update . {m}")).go().code(0);
    assert_eq!(
        names(&dir),
        others,
        "temporaries of the killed runs are gone"
    );
}

/// Kills `bc` with this line, later in every round; returns how often it was still running.
pub fn killed(t: &TestTree, line: &str, rounds: u32, mut check: impl FnMut()) -> usize {
    let mut moments = 0;
    for round in 0..rounds {
        let mut child = t
            .bc_line(line)
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(round) * 1500));
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        moments += usize::from(child.wait().unwrap().code().is_none());
        check();
    }
    moments
}

fn killed_writers_leave_the_old_file() {
    let t = TestTree::new();
    for file in 0..1000 {
        t.write(
            format!("d{}/{file}", file % 20),
            format!("{file}").repeat(50),
        );
    }
    let m = record(&t);
    let dir = Path::new(&m).parent().unwrap().to_owned();
    let others = names(&dir);
    let line = format!("integrity manifest --output={m} .");
    let moments = killed(&t, &line, 20, || {
        let diff = t.bc_line(&format!("integrity diff {m} {m}")).go();
        diff.code(0).stdout_is("");
    });
    assert!(moments > 0, "none of the runs was still running");
    t.bc_line(&line).go().code(0);
    assert_eq!(names(&dir), others, "the next run cleans up");
    t.bc_line(&format!("integrity verify . {m}"))
        .go()
        .code(0)
        .stdout_is("");
}

#[test]
fn killed_at_any_moment_the_old_manifest_stays() {
    killed_writers_leave_the_old_file();
}

#[test]
fn killed_where_every_file_has_a_name() {
    crate::denied::without_nameless_files(killed_writers_leave_the_old_file);
}

#[test]
fn a_temporary_is_not_listed() {
    crate::denied::without_nameless_files(|| {
        let t = TestTree::new();
        t.write("a", "1");
        t.bc_line("integrity manifest --output=m.jsonl .")
            .go()
            .code(0)
            .stderr_is("");
        let manifest = String::from_utf8(t.read("m.jsonl")).unwrap();
        assert_eq!(manifest.lines().count(), 4, "{manifest}");
        t.bc_line("hash --output=sums .").go().code(0);
        assert_eq!(
            String::from_utf8(t.read("sums")).unwrap().lines().count(),
            2
        );
    });
}

#[test]
fn a_signal_leaves_the_old_manifest_and_no_temporary() {
    use std::os::unix::process::ExitStatusExt;
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    let before = std::fs::read(&m).unwrap();
    let dir = Path::new(&m).parent().unwrap().to_owned();
    let others = names(&dir);
    // Sparse: takes seconds to hash and no space.
    std::fs::File::create(t.join("huge"))
        .unwrap()
        .set_len(20 << 30)
        .unwrap();
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15)] {
        if !bc_testkit::is_heeded(signal.as_raw()) {
            continue;
        }
        let mut child = t
            .bc_line(&format!("integrity update . {m}"))
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Until it is in the middle of the file.
        while read_by(&child) < 64 << 20 {
            std::thread::sleep(Duration::from_millis(1));
            assert!(child.try_wait().unwrap().is_none(), "ended too early");
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert_eq!(std::fs::read(&m).unwrap(), before);
        assert_eq!(names(&dir), others);
    }
}

/// The lines of verify and diff, with what has become of each entry.
#[test]
fn an_update_is_reported_as_json() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/b", "abc");
    t.bc_line("integrity manifest --output=m d").go().code(0);
    t.write("d/c", "new").remove("d/b");
    let out = t.bc_line("integrity update --format=json d m").go();
    let text = out.code(0).text();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (header, summary) = (&lines[0], lines.last().unwrap());
    assert_eq!(
        (&header["type"], &header["command"]),
        (&"header".into(), &"update".into())
    );
    assert_eq!((&header["old"], &header["new"]), (&"m".into(), &"d".into()));
    let change = |path: &str| lines.iter().find(|line| line["path"] == path).unwrap();
    assert_eq!(change("c")["class"], "added");
    assert_eq!(change("b")["class"], "removed");
    assert_eq!(
        (&summary["type"], &summary["added"]),
        (&"summary".into(), &1.into())
    );
    // Nothing is left to be told, and the manifest is that of the tree.
    let again = t.bc_line("integrity update --format=json d m").go();
    assert_eq!(again.code(0).lines().len(), 2);
    t.bc_line("integrity verify d m").go().code(0);
    let text = t.bc_line("integrity update d m").go().code(0).text();
    assert_eq!(text, "");
}

/// The figures of a run with `--metrics`: when the oldest content was read, its age in seconds, the
/// share of bytes that were read lately.
fn times_of_reading(t: &TestTree, line: &str) -> (f64, f64, f64) {
    let file = t.scratch("times.prom");
    t.bc_line(&format!("integrity {line}"))
        .arg(format!("--metrics={}", file.display()))
        .go()
        .code(0);
    let text = std::fs::read_to_string(file).unwrap();
    let samples = bc_testkit::exposition::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let value = |name: &str| {
        let sample = samples.iter().find(|sample| sample.name == name);
        sample
            .unwrap_or_else(|| panic!("no {name} in {text}"))
            .value
    };
    (
        value("bc_oldest_read_timestamp_seconds"),
        value("bc_oldest_read_age_seconds"),
        value("bc_recently_read_ratio"),
    )
}

#[test]
fn metrics_have_the_times_of_reading() {
    let t = TestTree::new();
    t.write("a", vec![b'a'; 1000]).write("b", vec![b'b'; 3000]);
    t.write("empty", "").symlink("a", "link");
    let m = record(&t);
    let text = std::fs::read_to_string(&m).unwrap();
    let (head, rest) = text.split_once("\"created_at\":\"").unwrap();
    let (_, rest) = rest.split_once('"').unwrap();
    let made = format!("{head}\"created_at\":\"2020-01-01T00:00:00Z\"{rest}");
    std::fs::write(&m, crate::integrity_parts::sealed(&made)).unwrap();
    let made = 1_577_836_800.0;
    let is_old = |(oldest, age, _): (f64, f64, f64)| {
        assert_eq!(oldest, made);
        assert!(age > 6.0 * 365.0 * 86_400.0, "{age}");
    };
    // Nothing is read, by any of them.
    for line in ["update", "verify --mode=meta"] {
        let found = times_of_reading(&t, &format!("{line} . {m}"));
        is_old(found);
        assert_eq!(found.2, 0.0, "{line}");
    }
    // What verify reads counts for it, and is recorded nowhere.
    for line in ["verify", "verify --sample=100%"] {
        let (oldest, age, share) = times_of_reading(&t, &format!("{line} . {m}"));
        assert!(oldest > made && (0.0..86_400.0).contains(&age), "{line}");
        assert_eq!(share, 1.0, "{line}");
    }
    // The first in order of paths, then all.
    let found = times_of_reading(&t, &format!("update --reread=1B . {m}"));
    is_old(found);
    assert_eq!(found.2, 0.25);
    let (oldest, age, share) = times_of_reading(&t, &format!("update --reread=100% . {m}"));
    assert!(oldest > made && (0.0..86_400.0).contains(&age));
    assert_eq!(share, 1.0);
    let (.., share) = times_of_reading(&t, &format!("verify --mode=meta . {m}"));
    assert_eq!(share, 1.0);
}
