//! `bc copy` of a large file, killed in the middle: the same command writes only what is missing,
//! whatever digest it takes.

use std::os::unix::process::ExitStatusExt;

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::copy_trees::{MANIFEST, litter};
use crate::strace;

/// Bytes that one call writes.
const PART: usize = 512 << 10;

fn tree() -> TestTree {
    let t = TestTree::new();
    let mut piece: Vec<u8> = (1..=255_u8).cycle().take(1 << 20).collect();
    let mut content = Vec::with_capacity(65 << 20);
    for number in 1..=65 {
        piece[0] = number;
        content.extend_from_slice(&piece);
    }
    t.write("r/large", content);
    // So that times prove what they say: of a file that was written to just now nothing is recorded.
    std::thread::sleep(std::time::Duration::from_millis(300));
    t
}

#[test]
fn killed_in_a_large_file_only_the_rest_is_written() {
    if !strace::is_able() {
        return;
    }
    let t = tree();
    for algorithm in ["sha256", "xxh128", "none"] {
        // Of all the calls of the program nearly all write a part of the file.
        let line = format!("copy --algorithm={algorithm} --sparse=always --reflink=never r to");
        let status = strace::injected(&t, "pwrite64", "signal=KILL", 100, &line).status;
        assert_eq!(status.signal(), Some(9), "{algorithm}");
        assert!(!t.exists("to/large"), "{algorithm}");
        let second = strace::counted(&t, &["pwrite64"], &line);
        let parts = t.join("r/large").metadata().unwrap().len() as usize / PART;
        let written = second["pwrite64"];
        assert!(
            (10..parts / 2).contains(&written),
            "{algorithm}: {written} of {parts}"
        );
        assert!(t.read("to/large") == t.read("r/large"), "{algorithm}");
        assert!(litter(&t).is_empty(), "{algorithm}: {:?}", litter(&t));
        if algorithm != "none" {
            let verify = format!("integrity verify to to/{MANIFEST}");
            t.bc_line(&verify).go().code(0);
        }
        t.remove("to");
    }
}
