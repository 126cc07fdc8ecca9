//! What people type who know other tools: where it is not what we have, the answer is the command to type.

mod typed;

use bc_testkit::{Pty, TestTree};

use crate::common::{ABC, Bc};
use typed::{COPY, DUP, HASH, INTEGRITY};

/// A tree in which every line of the tables means something.
fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("f", "abc")
        .write("g", "abc")
        .write("dir/a.jpg", "abc")
        .write("dir/b.iso", "abcd")
        .write("orig/a.jpg", "abc")
        .write("DIR/c", "abc")
        .write("SUMS", format!("{ABC}  f\n{ABC}  g\n"))
        .write("known", format!("{ABC}  f\n"))
        .write("listed", "f\ng\n");
    t.bc_line("integrity manifest --output=MANIFEST dir")
        .go()
        .code(0);
    t.bc_line("dup --format=json --output=report.json .")
        .go()
        .code(0);
    t
}

/// The lines of a table: what is typed, and behind the arrow the answer with which it is refused, a
/// command as a rule. Without an arrow it is done.
fn rows(table: &str) -> Vec<(&str, Option<&str>)> {
    let lines = table.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| match line.split_once(" => ") {
            Some((typed, command)) => (typed, Some(command)),
            None => (line, None),
        })
        .collect()
}

fn check(table: &str) {
    let t = tree();
    let mut failed = Vec::new();
    for (typed, meant) in rows(table) {
        let before = t.join("f").metadata().unwrap();
        let out = t.bc_line(typed).stdin(t.read("SUMS")).go();
        let said = out.error_text();
        let code = out.status.code();
        // A file that is not there is looked for by a command that arrived.
        let looked = said.contains(": stat: No such file");
        let arrived = !said.contains("error:") && code.is_some_and(|code| code != 2 || looked);
        let right = match meant {
            // A manifest of other digests does not match; the command arrives all the same.
            None => arrived,
            Some(answer) if answer.starts_with("bc ") => {
                code == Some(2) && said.contains(&format!("use: {answer}\n"))
            }
            Some(answer) => code == Some(2) && said.contains(answer),
        };
        if !right || said.contains("as a value") {
            failed.push(format!("bc {typed}: {:?}\n{said}", out.status));
        }
        assert_eq!(before.len(), 3, "{typed}");
        assert!(
            t.join("g").exists() && t.join("orig/a.jpg").exists(),
            "{typed}"
        );
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn of_hashing() {
    check(HASH);
}

#[test]
fn of_duplicates() {
    check(DUP);
}

#[test]
fn of_integrity() {
    check(INTEGRITY);
}

#[test]
fn of_copying() {
    check(COPY);
}

/// What is named is a command: it does not end as a wrong one does.
#[test]
fn the_commands_that_are_named_work() {
    let tables = [HASH, DUP, INTEGRITY, COPY].concat();
    let t = tree();
    let mut tried = 0;
    for command in rows(&tables).iter().filter_map(|row| row.1) {
        let Some(command) = command.strip_prefix("bc ") else {
            continue;
        };
        // Behind a bar other programs follow; a placeholder is for the user to fill in.
        let command = command.split(" | ").next().unwrap();
        let placeholders = [
            "ROOT",
            "OLD",
            "PATH",
            "SOURCE...",
            "ORIGINALS",
            "FILE",
            "REPORT",
            "SIZE",
        ];
        let is_placeholder = |word: &str| placeholders.iter().any(|one| word.contains(one));
        let mut words = command.split(' ');
        if words.any(|word| word == "&&" || is_placeholder(word)) {
            continue;
        }
        let words = command.replace('\'', "");
        let run = match words.contains("prune") && !words.contains("--dry-run") {
            true => t.bc_line(&words).arg("--dry-run"),
            false => t.bc_line(&words),
        };
        tried += 1;
        let out = run.go();
        let code = out.status.code();
        assert!(code.is_some_and(|code| code != 2), "{command}: {out}");
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn a_pipe_is_read_where_nothing_is_named() {
    let t = TestTree::new();
    t.write("f", "abc");
    t.bc_line("hash")
        .stdin("abc")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  -\n"));
    t.bc_line("hash check")
        .stdin(format!("{ABC}  f\n"))
        .go()
        .code(0)
        .stdout_is("f: OK\n");
    // At a terminal nobody waits for what never comes.
    for (line, said) in [
        ("hash", "no PATH given"),
        ("hash check", "no MANIFEST given"),
    ] {
        let (status, bytes) = Pty::new(80, 24).start_in(t.bc_line(line).command()).end();
        assert_eq!(status.code(), Some(2));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.contains(said), "{text}");
    }
}

/// Nothing that changes files is had for half of its name.
#[test]
fn what_deletes_is_never_abbreviated() {
    let t = tree();
    for line in [
        "dup pru --action=delete --yes .",
        "dup prune --act=delete --yes .",
        "dup prune --action=del --yes .",
        "dup prune --action=d --yes .",
        "dup prune --action=delete --ye .",
        "dup prune -d --yes .",
        "dup prune --delete -y .",
        "dup delete -y .",
        "dup rm --yes .",
        "dup -dNy .",
        "integrity update --accept dir MANIFEST",
    ] {
        t.bc_line(line).go().code(2).stdout_is("");
        assert!(t.join("f").exists() && t.join("g").exists(), "{line}");
    }
}

/// What keeps a command of ours from changing files is never taken for a word of others, wherever
/// it stands.
#[test]
fn what_holds_back_is_never_read_otherwise() {
    let t = tree();
    t.write("../conf", "threads = 1\n").dir("false");
    for line in [
        "dup -n prune --action=delete --yes .",
        "dup prune -n --action=delete --yes .",
        "dup --threads=1 -n prune --action=delete --yes .",
        "dup --config ../conf -n prune --yes --action=delete .",
        "dup --config=../conf prune --action=delete --yes -n false .",
        "dup -q prune -yn --action=delete .",
    ] {
        t.bc_line(line).go().code(0);
        assert!(t.exists("f") && t.exists("g"), "{line}");
    }
}

#[test]
fn lists_of_others_name_their_reader() {
    let t = tree();
    let root = t.join("dir").canonicalize().unwrap();
    let root = root.display();
    t.bc_line("integrity export --format=hashdeep --output=deep MANIFEST")
        .go()
        .code(0);
    t.bc_line("integrity export --format=mtree --output=spec MANIFEST")
        .go()
        .code(0);
    for (list, command) in [
        ("MANIFEST", format!("bc integrity verify {root} MANIFEST")),
        (
            "deep",
            "bc integrity import --output=list.jsonl deep && bc integrity verify --mode=content . list.jsonl"
                .to_owned(),
        ),
        ("spec", "mtree -p DIR -f spec".to_owned()),
    ] {
        let said = format!("use: {command}\n");
        for line in [format!("hash check {list}"), format!("hash diff {list} SUMS")] {
            t.bc_line(&line).go().code(2).stderr_has(&said);
        }
    }
    t.write(
        "absolute",
        "%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n## Invoked from: /srv/my files\n## \n3,00,/srv/my files/a\n",
    );
    t.bc_line("hash check absolute").go().code(2).stderr_has(
        "use: bc integrity import --strip-prefix='/srv/my files' --output=list.jsonl absolute && \
         bc integrity verify --mode=content '/srv/my files' list.jsonl",
    );
}

/// Lists of CRC-32 are told by their comments or by their name, and no list of ours is taken for one.
#[test]
fn lists_of_crc_name_their_reader() {
    let t = TestTree::new();
    t.write("f", "abc")
        .write("commented", "; by somebody\nf 352441C2\n")
        .write("plain.SFV", "f 352441c2\n")
        .write("deadbeef", "abc")
        .write("ours.sfv", format!("{ABC}  f\n"))
        .write("named", format!("{ABC}  deadbeef\n"));
    for list in ["commented", "plain.SFV"] {
        let said = format!("use: rhash --check {list}\n");
        t.bc_line(&format!("hash check {list}"))
            .go()
            .code(2)
            .stderr_has(&said);
    }
    for (list, name) in [("ours.sfv", "f"), ("named", "deadbeef")] {
        let out = t.bc_line(&format!("hash check {list}")).go();
        out.code(0).stdout_is(format!("{name}: OK\n"));
    }
}

/// The words of another program never stand for more than it would have done: what only lists is
/// not answered with a command that deletes.
#[test]
fn what_only_lists_is_never_answered_with_a_deletion() {
    let t = tree();
    for typed in [
        "dup dup -d dir -d orig -f out.txt",
        "dup image -d dir -s High -f out.txt",
        "dup big -d dir orig -e DIR -n 25 -x VIDEO -f out.txt",
        "dup empty-folders -d dir orig -f out.txt",
        "dup dup -d . -D NONE",
        "dup dup -d . -D ON",
        "dup remove -n 2",
        "dup --perms wx .",
        "dup --equal dir orig",
    ] {
        let said = t.bc_line(typed).go().error_text();
        assert!(!said.contains("delete"), "{typed}: {said}");
    }
}

/// Options of ours that share a letter with theirs are not taken away.
#[test]
fn options_of_ours_stay_ours() {
    let t = tree();
    t.write("../rules", "threads = 1\n").dir("verify");
    for typed in [
        "hash -x dir",
        "hash -x SUMS f",
        "dup --files-from=listed -0",
        "dup --exclude orig .",
        "dup -o json.txt .",
        "integrity --config=../rules verify dir MANIFEST",
        "integrity --config ../rules verify dir MANIFEST",
        "integrity verify --config=../rules dir MANIFEST",
    ] {
        let out = t.bc_line(typed).go();
        assert!(out.status.code() != Some(2), "{typed}: {out}");
    }
}

#[test]
fn a_slip_in_the_first_word_is_answered() {
    let t = tree();
    for (typed, meant) in [
        ("--lst", "'bc --list'"),
        ("--versoin", "'bc --version'"),
        ("--hlep", "'bc --help'"),
        ("version", "'bc --version'"),
        ("list", "'bc --list'"),
        ("hsah f", "'bc hash'"),
        ("check SUMS", "'bc hash check'"),
        ("scan dir", "'bc dup'"),
        ("prune dir", "'bc dup prune'"),
        ("restore dir MANIFEST", "'bc integrity restore'"),
        ("merge a b", "'bc integrity merge'"),
        ("sql MANIFEST", "'bc integrity sql'"),
        (
            "diff SUMS known",
            "'bc integrity diff' for trees or, for lists of checksums, 'bc hash diff'",
        ),
        ("backup dir to", "'bc copy'"),
        ("compare dir to", "'bc integrity diff' for trees or"),
        ("repair dir", "'bc integrity restore'"),
        ("protect dir MANIFEST", "'bc integrity protect'"),
        ("par2 create f", "'bc integrity protect'"),
        ("rsync -a dir to", "'bc copy'"),
        ("verify dir MANIFEST", "'bc integrity verify'"),
        ("sha256sum f", "'bc hash --type=sha256'"),
        ("b2sum f", "'bc hash --type=blake2b'"),
        ("md5 f", "'bc hash --type=md5'"),
        ("sum -s f", "'bc hash --type=bsd'"),
        ("cksum f", "'bc hash --type=crc'"),
        ("shasum f", "'bc hash --type=sha1'"),
        ("rhash f", "'bc hash --type=crc32b'"),
        ("hashdeep -r dir", "'bc hash --type=md5,sha256'"),
        ("jdupes dir", "'bc dup'"),
        ("aide --init", "'bc integrity'"),
        ("dir", "'bc hash dir' or 'bc dup dir'"),
    ] {
        t.bc_line(typed)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(format!("did you mean {meant}"));
    }
}

#[test]
fn the_word_of_another_program_that_moves() {
    let t = tree();
    t.bc_line("mv f to")
        .go()
        .code(2)
        .stderr_is("bc: unknown command 'mv'; did you mean 'bc move'?\n");
    assert!(t.exists("f") && !t.exists("to"));
}

/// What parses, and is sure to be meant otherwise.
#[test]
fn two_words_that_would_be_paths() {
    let t = tree();
    for line in [
        "copy --sync batch f to",
        "dup prune --action=delete --yes dir // orig",
    ] {
        t.bc_line(line)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has("use: bc ");
        assert!(t.exists("dir/a.jpg") && !t.exists("to"), "{line}");
    }
    // A file of that name is a source.
    t.write("batch", "abc").dir("to");
    t.bc_line("copy --sync batch f to").go().code(0);
    assert!(t.exists("to/batch") && t.exists("to/f"));
}

/// A person who typed nothing sees what there is; a pipe of expressions gets one line.
#[test]
fn nothing_typed_is_a_question() {
    let t = TestTree::new();
    let terminal = |name: &str| {
        let command = t.bc().arg0(name).command();
        let (status, bytes) = Pty::new(100, 40).start_in(command).end();
        assert_eq!(status.code(), Some(2));
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let shown = terminal("bc");
    let first = shown.lines().next().unwrap();
    assert!(first.contains("not the calculator"), "{shown}");
    assert!(shown.contains("Commands:"), "{shown}");
    for name in ["bitcrafts", "renamed"] {
        let shown = terminal(name);
        assert!(!shown.lines().next().unwrap().contains("calculator"));
        assert!(shown.contains("Commands:"), "{shown}");
        let out = t.bc().arg0(name).go();
        out.code(2).stdout_is("").stderr_has("Commands:");
    }
    t.bc()
        .arg0("bitcrafts")
        .arg("-l")
        .go()
        .code(2)
        .stderr_has("unknown option '-l'");
}

/// The advice to write `--` before a path is for paths.
#[test]
fn an_unknown_option_is_no_path_unless_there_is_one() {
    let t = TestTree::new();
    let out = t.bc_line("hash -Y").go();
    assert!(!out.code(2).error_text().contains("as a value"));
    t.write("-Y", "abc");
    t.bc_line("hash -Y").go().code(2).stderr_has("-- -Y");
}
