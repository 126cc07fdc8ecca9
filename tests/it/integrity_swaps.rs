//! Files of equal size and time that changed their names among themselves: nothing is damaged.

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;
use crate::integrity_update::{damage, record, rename};

fn content(of: &str) -> String {
    format!("content of {of:.<4}")
}

/// Files of one size and one time.
fn alike(names: &[&str]) -> TestTree {
    let t = TestTree::new();
    for name in names {
        t.write(name, content(name)).mtime(name, 1000, 0);
    }
    t
}

fn swap(t: &TestTree, ring: &[&str]) {
    rename(t, ring[0], "spare");
    for pair in ring.windows(2) {
        rename(t, pair[1], pair[0]);
    }
    rename(t, "spare", ring[ring.len() - 1]);
}

const VERIFY: &str = "integrity verify --ignore=mtime,ctime,dir-size,ino";

#[test]
fn names_that_were_swapped_are_moves() {
    for ring in [
        &["a", "b"][..],
        &["b", "a"],
        &["a", "b", "c"],
        &["d/a", "e", "d/b", "c"],
    ] {
        let t = alike(&["a", "b", "c", "d/a", "d/b", "e", "z"]);
        let m = record(&t);
        swap(&t, ring);
        let mut moves: Vec<String> = (0..ring.len())
            .map(|nth| format!("> {} -> {}", ring[(nth + 1) % ring.len()], ring[nth]))
            .collect();
        moves.sort();
        let moves = moves.join("\n") + "\n";
        t.bc_line(&format!("{VERIFY} . {m}"))
            .go()
            .code(1)
            .stdout_is(&moves);
        let json = t.bc_line(&format!("{VERIFY} --format=json . {m}")).go();
        json.stdout_has(format!("\"moved\":{},", ring.len()))
            .stdout_has("\"damaged\":0,");
        let after = t.scratch("after").to_str().unwrap().to_owned();
        t.bc_line(&format!("integrity manifest --output={after} ."))
            .go()
            .code(0);
        t.bc_line(&format!(
            "integrity diff --ignore=mtime,ctime,ino {m} {after}"
        ))
        .go()
        .code(1)
        .stdout_has(&moves);
        // The directories are other ones, too, and are named between.
        let done = t.bc_line(&format!("integrity update . {m}")).go();
        let text = done.code(0).text();
        assert!(moves.lines().all(|line| text.contains(line)), "{text}");
        assert!(!text.contains("!!"), "{text}");
        for line in ["verify", "update --reread=100%", "verify"] {
            t.bc_line(&format!("integrity {line} . {m}"))
                .go()
                .code(0)
                .stdout_is("");
        }
    }
}

/// What else differs of the file is said of it as of every move.
#[test]
fn swapped_files_keep_their_modes() {
    let t = alike(&["a", "b"]);
    t.mode("a", 0o600).mode("b", 0o644);
    let m = record(&t);
    swap(&t, &["a", "b"]);
    t.bc_line(&format!("{VERIFY} . {m}"))
        .go()
        .code(1)
        .stdout_is("> a -> b\n> b -> a\n");
    t.mode("a", 0o640);
    t.bc_line(&format!("{VERIFY} . {m}"))
        .go()
        .code(1)
        .stdout_is("> a -> b\n> b -> a mode: 0644 -> 0640\n");
}

/// A copy that was restored under swapped names has other inodes.
#[test]
fn swapped_copies_are_moves_too() {
    let t = alike(&["a", "b"]);
    let m = record(&t);
    for (name, other) in [("a", "b"), ("b", "a")] {
        t.write("new", content(other)).mtime("new", 1000, 0);
        rename(&t, "new", name);
    }
    t.bc_line(&format!("{VERIFY} . {m}"))
        .go()
        .code(1)
        .stdout_is("> a -> b\n> b -> a\n");
}

#[test]
fn damage_in_a_swapped_file_is_found_and_stays_known() {
    let t = alike(&["a", "b", "c"]);
    let m = record(&t);
    swap(&t, &["a", "b"]);
    damage(&t, "a", &content("b").to_uppercase());
    for line in ["verify", "update"] {
        t.bc_line(&format!("integrity {line} . {m}"))
            .go()
            .code(3)
            .stdout_has("!! a: ");
    }
    // From now on the undamaged one is at home, and the other is expected to be what it was.
    for line in ["verify", "update", "update --reread=100%", "verify"] {
        let done = t.bc_line(&format!("integrity {line} . {m}")).go();
        done.code(3).stdout_has("!! a: ");
        assert!(!done.text().contains("!! b"), "{line}: {}", done.text());
    }
    damage(&t, "a", &content("b"));
    t.bc_line(&format!("integrity update --reread=100% . {m}"))
        .go()
        .code(0);
    t.bc_line(&format!("integrity verify . {m}")).go().code(0);
}

/// One content under two names is no swap, nor are two files that both changed.
#[test]
fn damage_that_looks_like_half_a_swap() {
    let t = alike(&["a", "b"]);
    let m = record(&t);
    damage(&t, "a", &content("b"));
    t.bc_line(&format!("{VERIFY} . {m}"))
        .go()
        .code(3)
        .stdout_has("!! a: ");
    damage(&t, "a", &content("x"));
    damage(&t, "b", &content("y"));
    t.bc_line(&format!("{VERIFY} . {m}"))
        .go()
        .code(3)
        .stdout_has("!! a: ")
        .stdout_has("!! b: ");
}

/// Each file has the name that the next one had, whose content is under another name, too, or was
/// replaced: so logs are rotated. Contents tell that where inode numbers do not.
#[test]
fn files_renamed_one_after_the_other_are_not_damaged() {
    for (moves, gone) in [
        (&[("q", "r"), ("p", "q")][..], false),
        (&[("c", "d"), ("b", "c"), ("a", "b")], false),
        // The last of them is replaced.
        (&[("q", "s"), ("p", "q")], true),
    ] {
        let t = TestTree::new();
        for name in ["a", "b", "c", "k", "p", "q", "s"] {
            let name = format!("old/{name}");
            t.write(&name, content(&name)).mtime(&name, 1000, 0);
        }
        t.run("cp").args(["-a", "old", "new"]).go().code(0);
        t.bc_line("integrity manifest -o m old").go().code(0);
        let renamed = |tree: &str| {
            for (from, to) in moves {
                rename(&t, &format!("{tree}/{from}"), &format!("{tree}/{to}"));
            }
        };
        let lines = |line: &str| {
            let out = t
                .bc_line(&format!("{line} --ignore=mtime,ctime,ino,dev,dir-size"))
                .go();
            assert_eq!(out.status.code(), Some(1), "{line}: {out}");
            out.text()
        };
        renamed("new");
        let text = lines("integrity diff old new");
        let (first, last) = (moves[moves.len() - 1].0, moves[0].1);
        assert!(text.contains(&format!("- {first}\n")), "{text}");
        assert_eq!(text.contains(&format!("+ {last}\n")), !gone, "{text}");
        assert_eq!(
            text.matches("~c ").count(),
            moves.len() - usize::from(!gone),
            "{text}"
        );
        assert_eq!(lines("integrity diff m new"), text);
        assert_eq!(lines("integrity verify new m"), text);
        renamed("old");
        assert_eq!(lines("integrity verify old m"), text);
        t.bc_line("integrity update old m").go().code(0);
        t.bc_line("integrity verify old m").go().code(0);
    }
    // A content that no name has lost is damage as ever.
    let t = alike(&["old/k", "old/p", "old/q"]);
    t.run("cp").args(["-a", "old", "new"]).go().code(0);
    t.write("new/q", content("old/k")).mtime("new/q", 1000, 0);
    t.remove("new/p");
    let out = t.bc_line("integrity diff old new").go();
    out.code(3).stdout_has("!! q").stdout_has("- p\n");
}

/// Where a file system numbers its files anew, an old number says nothing of a new name.
#[test]
fn numbers_that_move_make_no_damage_of_another_file() {
    if let Some(missing) = ["bindfs", "unshare"]
        .into_iter()
        .find(|name| tool(name).is_none())
    {
        return left_out(missing);
    }
    let t = TestTree::new();
    t.dir("mnt")
        .write("disk/a", "content")
        .write("disk/k", "kept");
    let script = r#"
        bindfs disk mnt 2>/dev/null || { echo cannot; exit; }
        "$BC" integrity manifest --output="$S/m" mnt
        mv disk/a disk/b
        touch -r disk/b "$S/time"; echo CONTENT | head -c 7 >disk/b; touch -r "$S/time" disk/b
        "$BC" integrity verify --ignore=mtime,ctime,ino,dir-size mnt "$S/m"; echo "exit $?"
        umount mnt
    "#;
    let Some(outcome) = crate::integrity_mounts::mounting(&t, script) else {
        return;
    };
    if outcome.text().contains("cannot") {
        return left_out("bindfs");
    }
    crate::integrity_mounts::says(&outcome, &["- a", "+ b", "exit 1"]);
}
