//! What people type who know other tools: it arrives, or the answer holds the command that does it.

use bc_testkit::{Pty, TestTree};

use crate::common::{ABC, Bc};

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

/// `Some(command)`: refused, and the message holds it. None: it is done.
type Row = (&'static str, Option<&'static str>);

const HASH: &[Row] = &[
    // sha256sum and its relatives
    ("hash f g", None),
    ("hash --check SUMS", None),
    ("hash -c SUMS", None),
    ("hash -c", None),
    ("hash -c -", None),
    ("hash -c --quiet SUMS", None),
    ("hash -c --status SUMS", None),
    ("hash --check --ignore-missing SUMS", None),
    ("hash --ignore-missing -c SUMS", None),
    ("hash -c --strict -w SUMS", None),
    ("hash -cw SUMS", None),
    ("hash check -c SUMS", None),
    ("hash -b f", None),
    ("hash --binary f", None),
    ("hash --text f", None),
    ("hash -t f", Some("bc hash f")),
    ("hash -bt f", Some("bc hash f")),
    ("hash -z f", None),
    ("hash --tag f", None),
    ("hash --zero --tag f", None),
    ("hash -", None),
    ("hash", None),
    ("hash -a 256 f", None),
    ("hash -a 512 -b f", None),
    ("hash -a 256 -c SUMS", None),
    // b2sum, cksum
    ("hash -l 256 f", Some("bc hash --type=blake2b-256 f")),
    ("hash --length=256 f", Some("bc hash --type=blake2b-256 f")),
    ("hash -l 384 f", Some("bc hash --type=blake2b-256 f")),
    ("hash -a blake2b -l 256 f", None),
    ("hash -a blake2b f", None),
    ("hash -a sha256 f", None),
    ("hash --algorithm=md5 f", None),
    ("hash --algorithm sm3 f", None),
    ("hash -a sha3 -l 256 f", None),
    ("hash -a sha2 --length 512 f", None),
    ("hash -a sha3 f", Some("bc hash --type=sha3-256 f")),
    ("hash -a crc f", Some("cksum -a crc f")),
    ("hash -a bsd f", Some("cksum -a bsd f")),
    ("hash --algorithm=sysv f", Some("cksum -a sysv f")),
    ("hash -a sha256 --untagged f", None),
    ("hash -a sha256 --debug f", None),
    ("hash --check -a sha256 SUMS", None),
    (
        "hash --raw f",
        Some("bc hash f | cut -d' ' -f1 | xxd -r -p"),
    ),
    (
        "hash --base64 f",
        Some("bc hash f | cut -d' ' -f1 | xxd -r -p | base64"),
    ),
    // b3sum
    ("hash --num-threads 1 f", None),
    ("hash --num-threads=4 f", None),
    ("hash --no-mmap f", None),
    ("hash --no-names f", Some("bc hash f | cut -d' ' -f1")),
    ("hash --length 100 f", Some("bc hash f")),
    ("hash --keyed f", Some("bc hash --type=blake3 f")),
    // xxhsum
    ("hash -H0 f", None),
    ("hash -H1 f g", None),
    ("hash -H2 f", None),
    ("hash -H128 f", None),
    ("hash -H 64 f", None),
    ("hash -H3 f", None),
    ("hash -H32 -c SUMS", None),
    ("hash --filelist listed", None),
    ("hash --files-from listed", None),
    ("hash --little-endian f", Some("bc hash f")),
    ("hash -i3 f", Some("time bc hash --type=xxh64 f")),
    // hashdeep
    ("hash -r dir", None),
    ("hash -rl dir", None),
    ("hash -c md5 f", None),
    ("hash -c md5,sha1,sha256 -r dir", None),
    (
        "hash -r -a -k known dir",
        Some("bc hash check --unlisted known"),
    ),
    (
        "hash -rak known dir",
        Some("bc hash check --unlisted known"),
    ),
    (
        "hash -a -vv -k known -r dir",
        Some("bc hash check --unlisted known -v -v"),
    ),
    ("hash -m -k known f", Some("bc hash check --unlisted known")),
    (
        "hash -x -k known -r dir",
        Some("bc hash check --unlisted known"),
    ),
    ("hash -p 1m f", Some("bc hash f")),
    ("hash -s -r dir", None),
    ("hash -f listed", None),
    ("hash -j4 -r dir", None),
    ("hash -j 4 -r dir", None),
    ("hash -d -r dir", Some("bc hash --format=json dir")),
    // rhash
    ("hash --sha256 f", None),
    ("hash --md5 --sha1 f", None),
    ("hash -M f", None),
    ("hash -H f", None),
    ("hash --sha3-256 f", None),
    ("hash -r --sha256 dir", None),
    ("hash --check --skip-ok SUMS", None),
    ("hash --bsd --sha256 f", None),
    ("hash --simple --sha1 f", None),
    ("hash -C f", Some("bc hash --type=crc32c f")),
    (
        "hash --all f",
        Some("bc hash --type=md5,sha1,sha256,sha512 f"),
    ),
    ("hash -a f", Some("bc hash --type=md5,sha1,sha256,sha512 f")),
    ("hash -p %h f", Some("bc hash --format=csv f")),
    ("hash --printf=%p f", Some("bc hash --format=csv f")),
    ("hash --magnet f", Some("bc hash f")),
    ("hash -W f", Some("bc hash --type=sha256 f")),
    ("hash -u SUMS f", Some("bc hash check --unlisted SUMS")),
    ("hash --maxdepth=1 -r dir", None),
    ("hash --speed f", None),
    ("hash --percents f", None),
    // one name for one thing
    ("hash --type=md5 f", None),
    ("hash --algorithm md5 f", None),
    ("hash check --algorithm sha256 SUMS", None),
    ("hash diff -t sha256 known known", None),
    ("hash diff --algorithm=sha256 known known", None),
    (
        "hash diff dir orig",
        Some(
            "bc hash --relative --output=old.sha256 dir && bc hash --relative --output=new.sha256 orig && bc hash diff old.sha256 new.sha256",
        ),
    ),
];

const DUP: &[Row] = &[
    // jdupes, fdupes
    ("dup dir", None),
    ("dup dir orig", None),
    ("dup -r dir", None),
    ("dup -R dir orig", None),
    ("dup -r -d .", Some("bc dup prune --action=delete .")),
    ("dup -d .", Some("bc dup prune --action=delete .")),
    ("dup --delete .", Some("bc dup prune --action=delete .")),
    (
        "dup --recurse --delete .",
        Some("bc dup prune --action=delete ."),
    ),
    ("dup -rdN .", Some("bc dup prune --action=delete --yes .")),
    (
        "dup -r -d -N .",
        Some("bc dup prune --action=delete --yes ."),
    ),
    (
        "dup --delete --noprompt .",
        Some("bc dup prune --action=delete --yes ."),
    ),
    ("dup scan -d .", Some("bc dup prune --action=delete .")),
    ("dup -m dir", None),
    ("dup -rm dir", None),
    ("dup --summarize dir", None),
    ("dup -S dir", None),
    ("dup -rSm dir", None),
    ("dup --size dir", None),
    ("dup -A dir", None),
    ("dup --nohidden dir", None),
    ("dup -1 dir", Some("bc dup --one-file-system dir")),
    ("dup --one-file-system dir", None),
    ("dup --sameline dir", Some("bc dup --format=jsonl dir")),
    ("dup -n dir", None),
    (
        "dup -f dir",
        Some("bc dup --format=json dir | jq -r '.groups[].files[1:][].path'"),
    ),
    ("dup -q dir", None),
    ("dup -L .", Some("bc dup prune --action=hardlink .")),
    (
        "dup -r --linkhard .",
        Some("bc dup prune --action=hardlink ."),
    ),
    ("dup -l .", Some("bc dup prune --action=symlink .")),
    ("dup -B .", Some("bc dup prune --action=reflink .")),
    ("dup -rB .", Some("bc dup prune --action=reflink .")),
    ("dup -H dir", None),
    ("dup -s dir", None),
    ("dup -z dir", None),
    ("dup -j dir", Some("bc dup --format=json dir")),
    ("dup -rj dir", Some("bc dup --format=json dir")),
    ("dup --json dir", None),
    ("dup -j 2 dir", None),
    ("dup -j2 dir", None),
    ("dup -i -O dir", None),
    ("dup -I dir orig", Some("bc dup --across-roots dir orig")),
    ("dup --isolate dir orig", None),
    ("dup -o name dir", Some("bc dup dir")),
    ("dup --order=time dir", Some("bc dup dir")),
    ("dup -p dir", Some("bc dup --verify-bytes dir")),
    ("dup -Q dir", None),
    ("dup -T dir", Some("bc dup dir")),
    (
        "dup -u dir",
        Some("bc hash dir | sort | uniq --unique --check-chars=64"),
    ),
    ("dup -M dir", None),
    ("dup -G 1 dir", None),
    ("dup --minsize=1 dir", None),
    ("dup -X size+:10k dir", Some("bc dup '--include=*' dir")),
    ("dup -C 4096 dir", None),
    ("dup -0 dir", Some("bc dup --format=json dir")),
    // fclones
    ("dup group .", None),
    ("dup group . --min 1", None),
    ("dup group . -s 1K", None),
    ("dup group . --format json", None),
    ("dup group . -f fdupes", None),
    ("dup group . -f default", None),
    ("dup group --isolate dir orig", None),
    ("dup group . --name *.jpg", None),
    ("dup group . --hash-fn blake3", None),
    ("dup group . --threads 2 --cache=c", None),
    ("dup group . --depth 1", None),
    ("dup group . -d 1", None),
    ("dup group . --match-links --follow-links", None),
    ("dup group . --unique", Some("bc hash . | sort | uniq")),
    ("dup group . --transform cat", Some("bc dup . cat")),
    ("dup group --stdin", None),
    (
        "dup remove",
        Some("bc dup prune --action=delete --from=report.json"),
    ),
    (
        "dup remove --dry-run",
        Some("bc dup prune --action=delete --dry-run --from=report.json"),
    ),
    (
        "dup remove --priority newest",
        Some("bc dup prune --action=delete --keep=oldest --from=report.json"),
    ),
    (
        "dup remove --keep-path orig/**",
        Some("bc dup prune --action=delete '--keep=path:orig/**' --from=report.json"),
    ),
    (
        "dup link",
        Some("bc dup prune --action=hardlink --from=report.json"),
    ),
    (
        "dup link --soft",
        Some("bc dup prune --action=symlink --from=report.json"),
    ),
    (
        "dup dedupe",
        Some("bc dup prune --action=reflink --from=report.json"),
    ),
    ("dup dedupe .", Some("bc dup prune --action=reflink .")),
    (
        "dup move DIR",
        Some("bc dup prune --action=move:DIR --from=report.json"),
    ),
    // rmlint
    ("dup dir // orig", Some("bc dup --reference=orig dir")),
    (
        "dup dir // orig --keep-all-tagged",
        Some("bc dup --reference=orig dir"),
    ),
    ("dup -T df dir", None),
    ("dup -g dir", None),
    ("dup -s 1K dir", None),
    ("dup --size 1K dir", None),
    ("dup -pp dir", Some("bc dup --verify-bytes dir")),
    (
        "dup -o sh:out.sh dir",
        Some("bc dup --format=script --output=out.sh dir"),
    ),
    (
        "dup -O json:out.json dir",
        Some("bc dup --format=json --output=out.json dir"),
    ),
    (
        "dup -c sh:hardlink .",
        Some("bc dup prune --action=hardlink ."),
    ),
    ("dup --algorithm=sha256 dir", None),
    ("dup --merge-directories dir", Some("bc dup dir")),
    // rdfind
    ("dup -dryrun true dir", None),
    (
        "dup -dryrun true -makehardlinks true .",
        Some("bc dup prune --dry-run --action=hardlink ."),
    ),
    (
        "dup -makehardlinks true .",
        Some("bc dup prune --action=hardlink ."),
    ),
    (
        "dup -makesymlinks true .",
        Some("bc dup prune --action=symlink ."),
    ),
    (
        "dup -deleteduplicates true .",
        Some("bc dup prune --action=delete ."),
    ),
    ("dup -deleteduplicates false .", None),
    ("dup -minsize 1 -checksum sha256 dir", None),
    ("dup -ignoreempty true -makeresultsfile false dir", None),
    (
        "dup -n true -deleteduplicates true .",
        Some("bc dup prune --dry-run --action=delete ."),
    ),
    // czkawka
    ("dup --directories dir --directories orig", None),
    ("dup dup --directories dir", None),
    ("dup --directories dir -m 25", None),
    ("dup --minimal-file-size 25 dir", None),
    (
        "dup --excluded-directories orig .",
        Some("bc dup --exclude=orig ."),
    ),
    ("dup -s hash dir", None),
    ("dup -s name dir", Some("bc dup dir")),
    (
        "dup -D AEO .",
        Some("bc dup prune --action=delete --keep=oldest ."),
    ),
    (
        "dup --delete-method aen .",
        Some("bc dup prune --action=delete --keep=newest ."),
    ),
    (
        "dup --delete-method HARD .",
        Some("bc dup prune --action=hardlink ."),
    ),
    ("dup --file-to-save out.txt dir", None),
    ("dup --hash-type BLAKE3 dir", None),
    ("dup image dir", Some("bc dup dir")),
    ("dup empty-files dir", Some("find dir -type f -empty")),
    ("dup empty-folders dir", Some("find dir -type d -empty")),
    // one name for one thing
    ("dup --type=sha256 dir", None),
    ("dup --type blake3 dir", None),
    ("dup -t blake3 dir", None),
    ("dup -t 2 dir", None),
    ("dup --thread-number 2 dir", None),
];

const INTEGRITY: &[Row] = &[
    (
        "integrity init",
        Some("bc integrity manifest --output=MANIFEST ROOT"),
    ),
    (
        "integrity init dir",
        Some("bc integrity manifest --output=MANIFEST dir"),
    ),
    (
        "integrity add dir",
        Some("bc integrity manifest --output=MANIFEST dir"),
    ),
    ("integrity check", Some("bc integrity verify ROOT MANIFEST")),
    (
        "integrity check dir",
        Some("bc integrity verify dir MANIFEST"),
    ),
    ("integrity check dir MANIFEST", None),
    ("integrity audit dir MANIFEST", None),
    ("integrity status dir MANIFEST", None),
    (
        "integrity scrub dir MANIFEST",
        Some("bc integrity update --reread=100% dir MANIFEST"),
    ),
    ("integrity compare MANIFEST MANIFEST", None),
    // AIDE
    (
        "integrity --init",
        Some("bc integrity manifest --output=MANIFEST ROOT"),
    ),
    (
        "integrity -i",
        Some("bc integrity manifest --output=MANIFEST ROOT"),
    ),
    (
        "integrity --config=aide.conf --init",
        Some("bc integrity manifest --output=MANIFEST ROOT"),
    ),
    (
        "integrity -c aide.conf --check",
        Some("bc integrity verify ROOT MANIFEST"),
    ),
    (
        "integrity --check",
        Some("bc integrity verify ROOT MANIFEST"),
    ),
    ("integrity -C", Some("bc integrity verify ROOT MANIFEST")),
    (
        "integrity --update",
        Some("bc integrity update ROOT MANIFEST"),
    ),
    ("integrity --compare", Some("bc integrity diff OLD NEW")),
    (
        "integrity --config-check",
        Some("bc integrity manifest --describe ROOT"),
    ),
    (
        "integrity --check --limit /etc",
        Some("bc integrity verify ROOT MANIFEST"),
    ),
    // mtree
    ("integrity -c -p dir", None),
    ("integrity -c -k sha256digest -p dir", None),
    ("integrity -cp dir", None),
    ("integrity -p dir -f MANIFEST", None),
    ("integrity -f MANIFEST -p dir", None),
    ("integrity -p dir", Some("bc integrity verify dir MANIFEST")),
    ("integrity -f MANIFEST -f MANIFEST", None),
    ("integrity -e -p dir -f MANIFEST", None),
    (
        "integrity -u -p dir -f MANIFEST",
        Some("bc integrity update dir MANIFEST"),
    ),
    // one name for one thing
    ("integrity manifest --type=md5 dir", None),
    ("integrity manifest -t blake3 -j 2 dir", None),
    ("integrity manifest --algorithm=blake3 dir", None),
    ("integrity import -t sha256 SUMS", None),
];

fn check(rows: &[Row]) {
    let t = tree();
    let mut failed = Vec::new();
    for (typed, meant) in rows {
        let before = t.join("f").metadata().unwrap();
        let out = t.bc_line(typed).stdin(t.read("SUMS")).go();
        let said = out.error_text();
        let code = out.status.code();
        let arrived = !said.contains("error:") && code.is_some_and(|code| code != 2);
        let right = match meant {
            // A manifest of other digests does not match; the command arrives all the same.
            None => arrived,
            Some(command) => code == Some(2) && said.contains(&format!("use: {command}")),
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

/// What is named is a command: it does not end as a wrong one does.
#[test]
fn the_commands_that_are_named_work() {
    let rows = [HASH, DUP, INTEGRITY].concat();
    let t = tree();
    let mut tried = 0;
    for command in rows.iter().filter_map(|row| row.1) {
        let Some(command) = command.strip_prefix("bc ") else {
            continue;
        };
        // Behind a bar other programs follow; a placeholder is for the user to fill in.
        let command = command.split(" | ").next().unwrap();
        if command.contains(" ROOT") || command.contains("OLD") || command.contains("&&") {
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
    t.bc_line("hash -c")
        .stdin(format!("{ABC}  f\n"))
        .go()
        .code(0)
        .stdout_is("f: OK\n");
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

#[test]
fn lists_of_others_name_their_reader() {
    let t = tree();
    let root = t.join("dir").display().to_string();
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
        ("verify dir MANIFEST", "'bc integrity verify'"),
        ("sha256sum f", "'bc hash --type=sha256'"),
        ("b2sum f", "'bc hash --type=blake2b'"),
        ("md5 f", "'bc hash --type=md5'"),
        ("jdupes dir", "'bc dup'"),
        ("aide --init", "'bc integrity'"),
        ("dir", "'bc hash dir' or 'bc dup dir'"),
    ] {
        t.bc_line(typed)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(format!("did you mean {meant}?"));
    }
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
    assert!(shown.contains("Applets:"), "{shown}");
    for name in ["bitcrafts", "renamed"] {
        let shown = terminal(name);
        assert!(!shown.lines().next().unwrap().contains("calculator"));
        assert!(shown.contains("Applets:"), "{shown}");
        let out = t.bc().arg0(name).go();
        out.code(2).stdout_is("").stderr_has("Applets:");
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
