//! Names of one file: it is read once, and each name has the result.

use std::time::Duration;

use bc_testkit::TestTree;

use crate::common::Bc;

const NAMES: u64 = 12;

/// A rotation of backups: three files, each under twelve names.
fn rotation(sizes: [usize; 3]) -> (TestTree, u64) {
    let tree = TestTree::new();
    for (file, size) in sizes.into_iter().enumerate() {
        tree.write(format!("d/00/{file}"), vec![b'a' + file as u8; size]);
        for day in 1..NAMES {
            tree.dir(format!("d/{day:02}"));
            tree.hard_link(format!("d/00/{file}"), format!("d/{day:02}/{file}"));
        }
    }
    // Two changes within a tick of the kernel's clock leave the same ctime: a file
    // is not taken for known before that is over.
    std::thread::sleep(Duration::from_millis(150));
    (tree, sizes.iter().map(|size| *size as u64).sum())
}

fn read_bytes(tree: &TestTree) -> u64 {
    let metrics = String::from_utf8(tree.read("metrics.json")).unwrap();
    let (_, value) = metrics
        .split_once("\"read_bytes\":")
        .expect("a count of bytes");
    let digits: String = value
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap()
}

#[test]
fn every_command_reads_a_file_once_whatever_its_names() {
    // In slots, in pieces, and by all threads at once.
    for sizes in [
        [10, 5_000, 100_000],
        [1, 300_000, 1_000_000],
        [7, 3_000_000, 5_000_000],
    ] {
        let (tree, bytes) = rotation(sizes);
        let each = tree
            .run("sh")
            .args(["-c", "find d -type f | sort | xargs sha256sum"])
            .go()
            .text();
        for threads in ["1", "2", "8"] {
            let line = |line: &str| {
                tree.bc_line(&format!(
                    "{line} --threads={threads} --metrics=metrics.json"
                ))
            };
            let hashed = line("hash --type=sha256 d").go();
            hashed.code(0).stdout_is(&each);
            assert_eq!(
                read_bytes(&tree),
                bytes,
                "hash, {threads} threads, {sizes:?}"
            );
            tree.write("sums", &each);
            line("hash check sums").go().code(0);
            assert_eq!(
                read_bytes(&tree),
                bytes,
                "check, {threads} threads, {sizes:?}"
            );
            line("integrity manifest --output=m d").go().code(0);
            assert_eq!(
                read_bytes(&tree),
                bytes,
                "manifest, {threads} threads, {sizes:?}"
            );
            line("integrity verify d m").go().code(0).stdout_is("");
            assert_eq!(
                read_bytes(&tree),
                bytes,
                "verify, {threads} threads, {sizes:?}"
            );
        }
    }
}

/// Few enough names, and large enough, for several threads to read one file together.
#[test]
fn what_several_threads_read_together_counts_for_all_names() {
    let tree = TestTree::new();
    tree.write("d/a", vec![b'a'; 20 << 20]);
    tree.hard_link("d/a", "d/b").hard_link("d/a", "d/c");
    std::thread::sleep(Duration::from_millis(150));
    for (algorithm, tool) in [("sha256", "sha256sum"), ("md5", "md5sum")] {
        let each = tree
            .run(tool)
            .args(["d/a", "d/b", "d/c"])
            .go()
            .code(0)
            .text();
        let line = format!("hash --type={algorithm} --threads=16 --metrics=metrics.json d");
        tree.bc_line(&line).go().code(0).stdout_is(&each);
        assert_eq!(read_bytes(&tree), 20 << 20, "{algorithm}");
    }
}

#[test]
fn an_error_stands_by_each_name() {
    let (tree, _) = rotation([10, 20, 30]);
    tree.mode("d/00/1", 0o000);
    tree.mode("d", 0o755);
    let outcome = tree.bc_line("hash d").as_nobody().go();
    outcome.code(1);
    let failed = outcome
        .error_text()
        .lines()
        .filter(|line| line.contains("/1: open: "))
        .count();
    assert_eq!(failed as u64, NAMES, "{}", outcome.error_text());
    assert_eq!(outcome.lines().len() as u64, 2 * NAMES);
}

#[test]
fn damage_is_found_under_every_name() {
    let (tree, _) = rotation([10, 20, 30]);
    tree.mtime("d/00/1", 1_500_000_000, 0);
    tree.bc_line("integrity manifest --output=m d").go().code(0);
    tree.write("d/05/1", vec![b'x'; 20]);
    tree.mtime("d/00/1", 1_500_000_000, 0);
    std::thread::sleep(Duration::from_millis(150));
    let outcome = tree.bc_line("integrity verify d m").go();
    outcome.code(3);
    let damaged = outcome
        .text()
        .lines()
        .filter(|line| line.starts_with("!! "))
        .count();
    assert_eq!(damaged as u64, NAMES, "{}", outcome.text());
}
