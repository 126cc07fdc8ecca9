//! Journals of prune: where they are, which are believed, what undo refuses.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

use bc_testkit::{NOBODY, TestTree, is_heeded, is_root, left_out};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::Bc;

/// Two equal files, of which one was made a link to the other; the journal is `j`.
fn pruned() -> TestTree {
    let t = TestTree::new();
    t.write("a", "same").write("b", "same").mtime("a", 1000, 0);
    t.bc_line("dup prune --action=hardlink --keep=first --journal=../j .")
        .go()
        .code(0);
    assert!(one_file(&t));
    t
}

fn one_file(t: &TestTree) -> bool {
    t.join("a").metadata().unwrap().ino() == t.join("b").metadata().unwrap().ino()
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What undo says of the journal, and prune that would continue it; neither
/// changes anything.
#[track_caller]
fn refused(t: &TestTree, reason: &str) {
    for dry in ["", "--dry-run "] {
        t.bc_line(&format!("dup undo {dry}../j"))
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(reason);
    }
    assert!(one_file(t), "{reason}");
    let before = std::fs::read(t.scratch("j")).unwrap();
    t.write("c", "same");
    t.bc_line("dup prune --action=hardlink --journal=../j .")
        .go()
        .code(2)
        .stdout_is("")
        .stderr_has(reason);
    assert_eq!(std::fs::read(t.scratch("j")).unwrap(), before, "{reason}");
    t.remove("c");
}

#[test]
fn a_journal_that_others_may_have_written_is_refused() {
    let t = pruned();
    let journal = t.scratch("j");
    for open in [0o620, 0o602, 0o666, 0o777] {
        mode(&journal, open);
        refused(&t, "others may write it");
    }
    mode(&journal, 0o644);
    if is_root() {
        std::os::unix::fs::chown(&journal, Some(NOBODY), None).unwrap();
        refused(&t, "belongs to user 65534");
        // By another name, it is the same file.
        let direct = t.scratch("direct");
        std::fs::rename(&journal, &direct).unwrap();
        std::os::unix::fs::symlink(&direct, &journal).unwrap();
        refused(&t, "belongs to user 65534");
        std::fs::remove_file(&journal).unwrap();
        std::fs::rename(&direct, &journal).unwrap();
        std::os::unix::fs::chown(&journal, Some(0), None).unwrap();
    } else {
        left_out("another user's journal: not root");
    }
    t.bc_line("dup undo ../j").go().code(0);
    assert!(!one_file(&t));
}

#[test]
fn a_journal_that_says_what_prune_never_does_is_refused() {
    let t = pruned();
    let journal = t.scratch("j");
    let good = std::fs::read_to_string(&journal).unwrap();
    let root = t.path().canonicalize().unwrap();
    let root = root.to_str().unwrap();
    for (from, to, reason) in [
        ("\"schema\":3", "\"schema\":4", "another program or version"),
        (
            "\"step\":1,\"action\":\"hardlink\"",
            "\"step\":1,\"action\":\"chmod\"",
            "unknown action 'chmod'",
        ),
        (
            &format!("\"roots\":[{{\"path\":\"{root}\"}}]"),
            "\"roots\":[{\"path\":\"/nowhere\"}]",
            "lies outside of the directories",
        ),
        (
            &format!("\"target\":{{\"path\":\"{root}/"),
            &format!("\"target\":{{\"path\":\"{root}/../"),
            "lies outside of the directories",
        ),
        (
            "\"size\":4",
            "\"size\":18446744073709551615",
            "no file can have",
        ),
    ] {
        assert!(good.contains(from), "{from} in {good}");
        std::fs::write(&journal, good.replace(from, to)).unwrap();
        refused(&t, reason);
    }
    // Larger than the file, though a size that a file can have.
    std::fs::write(
        &journal,
        good.replace("\"size\":4", "\"size\":9223372036854775807"),
    )
    .unwrap();
    t.bc_line("dup undo ../j")
        .go()
        .code(1)
        .stderr_has("not restored");
    assert!(one_file(&t));
    // Version 1 knew no roots.
    let header = good.lines().next().unwrap();
    let roots = header.find(",\"roots\"").unwrap();
    let old = format!("{}}}", &header[..roots]).replace("\"schema\":3", "\"schema\":1");
    std::fs::write(&journal, good.replace(header, &old)).unwrap();
    t.bc_line("dup undo ../j")
        .go()
        .code(0)
        .stdout_has("restored");
    assert!(!one_file(&t));
}

#[test]
fn journals_have_a_place_of_their_own_and_the_last_is_found() {
    let t = TestTree::new();
    t.write("a", "same").write("b", "same");
    t.bc_line("dup undo --last")
        .go()
        .code(2)
        .stderr_has("there is no journal");
    t.bc_line("dup undo").go().code(2).stderr_has("JOURNAL");
    t.bc_line("dup undo --last ../j").go().code(2);
    let state = t.scratch("state");
    let run = |line: &str| t.bc_line(line).env("XDG_STATE_HOME", &state).go();
    run("dup prune --action=hardlink --keep=first .").code(0);
    let dir = state.join("bc");
    assert_eq!(dir.metadata().unwrap().mode() & 0o777, 0o700);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    run("dup undo --last").code(0).stdout_has("restored");
    assert!(!one_file(&t));
    // A relative path does not count, as the standard says.
    t.bc_line("dup prune --action=hardlink .")
        .env("XDG_STATE_HOME", "state")
        .go()
        .code(0);
    assert!(t.scratch("home/.local/state/bc").exists() && !t.exists("state"));
    t.bc_line("dup undo --last").go().code(0);
    assert!(!one_file(&t));
}

/// A run that changed nothing, as where all files are open for writing, is not the one to undo.
#[test]
fn the_last_journal_is_that_of_a_run_that_changed_something() {
    let t = TestTree::new();
    t.write("one/a", "same").write("one/b", "same");
    t.write("two/a", "twin").write("two/b", "twin");
    let state = t.scratch("state");
    let run = |line: &str| t.bc_line(line).env("XDG_STATE_HOME", &state).go();
    run("dup prune --action=delete --yes --keep=first one").code(0);
    let journals = std::fs::read_dir(state.join("bc")).unwrap();
    let journals: Vec<_> = journals.map(|entry| entry.unwrap().path()).collect();
    let first = journals[0].display().to_string();
    let locked = std::fs::File::open(t.join("two/b")).unwrap();
    rustix::fs::flock(
        &locked,
        rustix::fs::FlockOperation::NonBlockingLockExclusive,
    )
    .unwrap();
    for _ in 0..2 {
        let idle = run("dup prune --action=delete --yes --keep=first two");
        idle.code(1).stderr_has("0 files changed");
    }
    assert_eq!(std::fs::read_dir(state.join("bc")).unwrap().count(), 3);
    let undone = run("dup undo --last --dry-run");
    undone
        .code(0)
        .stdout_has("one/b")
        .stderr_has(format!("journal: {first}; the runs of the 2 newer ones"));
    run("dup undo --last").code(0).stdout_has("restored");
    assert!(t.exists("one/b"));
    drop(locked);
    run("dup prune --action=delete --yes --keep=first two").code(0);
    let undone = run("dup undo --last");
    undone.code(0).stdout_has("two/b");
    assert!(!undone.error_text().contains("newer"), "{undone}");
    // Nor does one without a word about others take it back to an older run.
    run("dup undo --last")
        .code(0)
        .stderr_has("1 in place already");
}

/// The clock was an hour ahead, and is right again: what was written then looks younger.
#[test]
fn the_last_journal_is_the_last_whatever_the_clock_said() {
    let t = TestTree::new();
    for name in ["one/a", "one/b", "two/a", "two/b"] {
        t.write(name, &name[..3]);
    }
    let state = t.scratch("state");
    let run = |line: &str| t.bc_line(line).env("XDG_STATE_HOME", &state).go();
    let journals = || {
        let all = std::fs::read_dir(state.join("bc")).unwrap();
        let mut all: Vec<_> = all.map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    };
    run("dup prune --action=delete --yes --keep=first one").code(0);
    let ahead = journals()[0].with_file_name("prune-21061125T143000Z-7.jsonl");
    std::fs::rename(&journals()[0], &ahead).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(4_320_000_000);
    let set = |path: &Path| {
        let file = std::fs::File::options().append(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    };
    set(&ahead);
    run("dup prune --action=delete --yes --keep=first two").code(0);
    assert_eq!(journals()[0], ahead);
    assert!(journals()[1].to_str().unwrap().contains("21061125T143001Z"));
    for _ in 0..2 {
        run("dup undo --last").code(0);
        assert!(t.exists("two/b") && !t.exists("one/b"));
    }
    // Where a run went on with an earlier journal, nobody can tell.
    let line = format!(
        "dup prune --action=delete --yes --keep=first --journal={} two",
        ahead.display()
    );
    run(&line).code(0);
    set(&ahead);
    run("dup undo --last").code(2).stderr_has("not certain");
    assert!(!t.exists("two/b"));
}

#[test]
fn what_a_move_to_another_file_system_loses_is_said() {
    let t = TestTree::new();
    let device = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    let memory = Path::new("/dev/shm");
    let Ok(to) = tempfile::tempdir_in(memory) else {
        return left_out("no /dev/shm");
    };
    if device(memory) == device(t.path()) {
        return left_out("no second file system");
    }
    t.write("in/a", "same").write("in/b", "same");
    std::fs::hard_link(t.join("in/b"), t.join("other-name")).unwrap();
    let action = format!("--action=move:{}", to.path().display());
    t.bc()
        .args([
            "dup",
            "prune",
            &action,
            "--keep=first",
            "--yes",
            "--journal=../j",
            "in",
        ])
        .go()
        .code(0)
        .stdout_has("move in/b to ")
        .stderr_has("without hard links: 1 other name of the file did not move")
        .stderr_has("1 of them not with all they had");
    assert!(!t.exists("in/b"));
    t.bc_line("dup undo ../j")
        .go()
        .code(1)
        .stdout_has("in/b (move), incomplete")
        .stderr_has("hard links: 1 other name");
    assert_eq!(t.read("in/b"), b"same");
}

/// A run that was killed before its first line was whole has done nothing, and its journal is one
/// that can be continued where it says that it is one; a file that is not ours is neither.
#[test]
fn a_journal_that_was_cut_off_in_its_first_line_is_one_of_a_run_that_did_nothing() {
    let whole = std::fs::read(pruned().scratch("j")).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    let t = TestTree::new();
    let journal = t.scratch("j");
    for length in [0, 1, 5, 24, 25, 30, 60, first] {
        t.write("a", "same").remove("b").write("b", "same");
        let write = |bytes: &[u8]| {
            std::fs::write(&journal, bytes).unwrap();
            mode(&journal, 0o600);
        };
        write(&whole[..length]);
        for dry in ["", "--dry-run "] {
            t.bc_line(&format!("dup undo {dry}../j"))
                .go()
                .code(0)
                .stdout_is("")
                .stderr_has("changed nothing");
        }
        assert_eq!(std::fs::read(&journal).unwrap(), whole[..length]);
        let prune = t
            .bc_line("dup prune --action=hardlink --keep=first --journal=../j .")
            .go();
        // Many a file begins with a brace.
        if (1..25).contains(&length) {
            prune.code(2).stderr_has("not surely a journal");
            assert_eq!(std::fs::read(&journal).unwrap(), whole[..length]);
            assert!(!one_file(&t), "{length}");
            continue;
        }
        prune.code(0);
        assert!(one_file(&t), "{length}");
        t.bc_line("dup undo ../j").go().code(0);
        assert!(!one_file(&t), "{length}");
        // The newest one of the default place may be such a journal.
        let state = t.scratch("home/.local/state/bc");
        std::fs::create_dir_all(&state).unwrap();
        let newest = state.join("prune-20260101T000000Z-1.jsonl");
        std::fs::write(&newest, &whole[..length]).unwrap();
        mode(&newest, 0o600);
        t.bc_line("dup undo --last").go().code(0);
        if length > 0 {
            let mut foreign = whole[..length].to_vec();
            foreign[length.min(20) - 1] ^= 1;
            write(&foreign);
            t.bc_line("dup undo ../j")
                .go()
                .code(2)
                .stderr_has("not a journal");
            t.bc_line("dup prune --action=hardlink --journal=../j .")
                .go()
                .code(2);
            assert_eq!(std::fs::read(&journal).unwrap(), foreign);
        }
    }
}

/// A journal of many steps, none of which can be undone.
fn long_journal(t: &TestTree) {
    let pruned = pruned();
    let text = std::fs::read_to_string(pruned.scratch("j")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut long = format!("{}\n", lines[0]);
    for step in 1..=50_000 {
        for line in &lines[1..] {
            long += &line.replace("\"step\":1,", &format!("\"step\":{step},"));
            long += "\n";
        }
    }
    std::fs::write(t.scratch("j"), long).unwrap();
    mode(&t.scratch("j"), 0o600);
}

#[test]
fn a_signal_ends_the_reading_of_a_long_journal() {
    use std::os::unix::process::ExitStatusExt;
    let t = TestTree::new();
    t.write("a", "same").write("b", "same");
    long_journal(&t);
    for (line, signal, number) in [
        ("dup undo ../j", Signal::INT, 2),
        (
            "dup prune --action=hardlink --journal=../j .",
            Signal::TERM,
            15,
        ),
    ] {
        if !is_heeded(signal.as_raw()) {
            continue;
        }
        let mut child = t
            .bc_line(line)
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let io = format!("/proc/{}/io", child.id());
        loop {
            let text = std::fs::read_to_string(&io).unwrap_or_default();
            let read = text
                .lines()
                .next()
                .and_then(|l| l.rsplit(' ').next()?.parse().ok());
            if read.unwrap_or(0_u64) > 1 << 20 || child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "{line}: {status:?}");
        assert!(!one_file(&t), "{line}");
    }
}

/// Where names can be added but neither renamed nor removed, nothing is left.
#[test]
fn an_append_only_directory_collects_nothing() {
    if !is_root() {
        return left_out("append-only directories: not root");
    }
    let t = TestTree::new();
    t.write("keep/a", "same")
        .write("log/b", "same")
        .write("log/c", "same");
    let mark = |how: &str| t.run("chattr").arg(how).arg("log").go();
    if bc_testkit::tool("chattr").is_none() || !mark("+a").status.success() {
        return left_out("append-only directories: no chattr, or no such attribute here");
    }
    for action in ["hardlink", "symlink", "delete", "move:../moved"] {
        let line = format!("dup prune --action={action} --keep=path:keep --yes --journal=../j .");
        t.bc_line(&line).go().code(1).stderr_has("not permitted");
        let _ = std::fs::remove_file(t.scratch("j"));
    }
    let mut names: Vec<_> = std::fs::read_dir(t.join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    mark("-a").code(0);
    assert_eq!(names, ["b", "c"]);
}

/// From a sticky directory only owners take names away: a link to somebody
/// else's file would stay.
#[test]
fn a_sticky_directory_collects_nothing() {
    if !is_root() {
        return left_out("a sticky directory of somebody else: not root");
    }
    let t = TestTree::new();
    t.write("d/a", "same").write("d/b", "same");
    // Its owner is neither, and the kept file may be linked by everybody.
    mode(&t.join("d"), 0o1777);
    mode(&t.join("d/a"), 0o666);
    mode(&t.join("d/b"), 0o666);
    std::os::unix::fs::chown(t.join("d/b"), Some(NOBODY), Some(NOBODY)).unwrap();
    mode(t.path(), 0o777);
    t.bc_line("dup prune --action=hardlink --keep=first --ignore-metadata --journal=j d")
        .as_nobody()
        .go()
        .code(1)
        .stderr_has("not permitted");
    let names = std::fs::read_dir(t.join("d")).unwrap().count();
    assert_eq!(names, 2, "a link to another user's file cannot be removed");
}
