//! `--cache=FILE`: what never was a cache is left as it is, a damaged one goes
//! under a new name, and neither makes anybody see a panic.

use bc_testkit::{Rng, TestTree, cases};

use crate::common::{Bc, is_cached};

/// Files that were there before the run, so that it remembers them.
fn settled() -> TestTree {
    let t = TestTree::new();
    for index in 0..12u8 {
        t.write(format!("d/{index:02}"), vec![index / 2; 5000]);
    }
    // A record of what changed within two seconds is not kept: the clock of the file system ticks.
    std::thread::sleep(std::time::Duration::from_millis(2200));
    t
}

#[test]
fn a_slip_of_the_fingers_costs_nothing() {
    let t = settled();
    t.write("photo", "a picture of a cat")
        .write("photo.damaged", "another");
    t.bc_line("dup --cache=photo d")
        .go()
        .code(2)
        .stdout_is("")
        .stderr_is("bc dup: --cache: photo: not a cache of bc dup; it is left as it is\n");
    t.bc_line("dup --cache=d d")
        .go()
        .code(2)
        .stderr_has("not a cache");
    t.bc_line("dup prune --action=hardlink --cache=photo d")
        .go()
        .code(2);
    t.bc_line("dup summary --cache=photo d").go().code(2);
    assert_eq!(t.read("photo"), b"a picture of a cat");
    assert_eq!(t.read("photo.damaged"), b"another");
}

/// A search of many files reads a sample of them further than it needs; the next one draws none.
#[test]
fn a_second_search_reads_nothing() {
    let t = TestTree::new();
    if !is_cached(&t) {
        return;
    }
    for index in 0..900u32 {
        // Three of each size, two of which are equal now and then.
        let mut content = vec![1; 3000 + index as usize / 3];
        let mark = if index % 30 == 1 { index - 1 } else { index };
        content[..4].copy_from_slice(&mark.to_le_bytes());
        t.write(format!("d/{index:03}"), content);
    }
    std::thread::sleep(std::time::Duration::from_millis(2200));
    for algorithm in ["xxh128", "sha256", "blake3"] {
        let run = || {
            t.bc_line("dup --cache=digests -v d")
                .arg("--algorithm")
                .arg(algorithm)
                .go()
        };
        let groups = run().code(0).text();
        assert_eq!(groups.lines().filter(|line| line.is_empty()).count(), 29);
        run().code(0).stdout_is(&groups).stderr_has(" 0 bytes read");
    }
}

#[test]
fn where_caches_are_nothing_stops_a_search() {
    let t = settled();
    if !is_cached(&t) {
        return;
    }
    t.write("x/bc/dup.redb", "half of one");
    let groups = t.bc_line("dup d").go().code(0).text();
    let run = || {
        t.bc_line("dup --cache d")
            .env("XDG_CACHE_HOME", t.join("x"))
            .go()
    };
    run().code(0).stdout_is(&groups).stderr_has("set aside as");
    assert_eq!(t.read("x/bc/dup.redb.damaged"), b"half of one");
    run().code(0).stdout_is(&groups).stderr_is("");
    // The second damaged one finds the first one's name taken.
    t.write("x/bc/dup.redb", "another half");
    run()
        .code(0)
        .stdout_is(&groups)
        .stderr_has("dup.redb.damaged-2");
    assert_eq!(t.read("x/bc/dup.redb.damaged"), b"half of one");
    assert_eq!(t.read("x/bc/dup.redb.damaged-2"), b"another half");
}

#[test]
fn no_mutant_makes_it_panic_or_say_so() {
    let t = settled();
    if !is_cached(&t) {
        return;
    }
    let groups = t.bc_line("dup --cache=sound d").go().code(0).text();
    let sound = t.read("sound");
    let telling: Vec<usize> = (0..sound.len()).filter(|at| sound[*at] != 0).collect();
    let mut rng = Rng::new(23);
    for round in 0..cases(60) {
        let mut mutant = sound.clone();
        let at = telling[rng.below(telling.len() as u64) as usize];
        mutant[at] ^= 1 << rng.below(8);
        t.write("c", &mutant);
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(t.join("c"), PermissionsExt::from_mode(0o600)).unwrap();
        let run = |line: &str| t.bc_line(line).env("RUST_BACKTRACE", "1").go();
        let json = run("dup --log-format=json --cache=c d");
        for line in json.error_lines() {
            let text = String::from_utf8_lossy(line);
            assert!(
                text.starts_with('{') && text.ends_with('}'),
                "round {round}, byte {at}: {text}"
            );
            assert!(
                !text.contains("panic") && !text.contains("internal"),
                "{text}"
            );
        }
        if json.error_text().contains("not a cache") {
            json.code(2);
        } else {
            json.code(0).stdout_is(&groups);
        }
        t.write("c", &mutant);
        let quiet = run("dup -q --cache=c d");
        if !quiet.error_text().contains("not a cache") {
            quiet.code(0).stdout_is(&groups).stderr_is("");
        }
    }
}
