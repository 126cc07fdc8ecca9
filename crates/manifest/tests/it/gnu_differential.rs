//! Comparison with coreutils: it accepts the lines that we write, and we accept and refuse the same
//! lines as it.

use std::collections::BTreeMap;

use bc_manifest::{End, Item, Options, Reader, Separator, bsd, gnu};
use bc_testkit::{Rng, TestTree, left_out, tool};

const HI: &str = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4";
/// Names without `/` that a file can have anywhere.
const NAMES: [&[u8]; 9] = [
    b"a",
    b"back\\slash",
    b"new\nline",
    b"car\rriage",
    b"*star",
    b" blank",
    b"x) = y",
    b"\\n",
    b"a\\",
];

fn digest() -> Vec<u8> {
    (0..32)
        .map(|i| u8::from_str_radix(&HI[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

#[test]
fn written_lines_are_those_of_sha256sum() {
    let Some(sha256sum) = tool("sha256sum") else {
        return left_out("sha256sum is not installed");
    };
    let tree = TestTree::new();
    let (mut plain, mut tagged, mut zero) = (Vec::new(), Vec::new(), Vec::new());
    for name in NAMES {
        tree.write_bytes(name, "hi\n");
        gnu::write_line(&mut plain, &digest(), name, End::Newline);
        bsd::write_line(&mut tagged, "SHA256", &digest(), name, End::Newline);
        gnu::write_line(&mut zero, &digest(), name, End::Nul);
    }
    let names = || {
        NAMES
            .map(std::os::unix::ffi::OsStrExt::from_bytes)
            .map(std::ffi::OsStr::to_owned)
    };
    tree.run(&sha256sum)
        .arg("--")
        .args(names())
        .go()
        .code(0)
        .stdout_is(&plain);
    tree.run(&sha256sum)
        .args(["--tag", "--"])
        .args(names())
        .go()
        .code(0)
        .stdout_is(&tagged);
    tree.run(&sha256sum)
        .args(["-z", "--"])
        .args(names())
        .go()
        .code(0)
        .stdout_is(&zero);
}

/// Checks mutated lines, each alone in a manifest: `sha256sum --check` and our reader must agree on
/// whether it is properly formatted, and on the path.
#[test]
fn mutated_lines_are_judged_as_by_sha256sum() {
    let Some(sha256sum) = tool("sha256sum") else {
        return left_out("sha256sum is not installed");
    };
    let tree = TestTree::new();
    for name in NAMES {
        tree.write_bytes(name, "hi\n");
    }
    let mut rng = Rng::new(7);
    let mut cases: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for index in 0..400u64 {
        let mut line = Vec::new();
        let name = NAMES[rng.below(NAMES.len() as u64) as usize];
        match index % 2 {
            0 => gnu::write_line(&mut line, &digest(), name, End::Newline),
            _ => bsd::write_line(&mut line, "SHA256", &digest(), name, End::Newline),
        }
        for _ in 0..rng.below(3) {
            let at = rng.below(line.len() as u64) as usize;
            let byte = b" *\\\tA0()=#\r\nng"[rng.below(14) as usize];
            match rng.below(3) {
                0 => line[at] = byte,
                1 => line.insert(at, byte),
                _ => drop(line.remove(at)),
            }
            if line.is_empty() {
                line.push(b'\n');
            }
        }
        if line.iter().filter(|&&b| b == b'\n').count() == 1 && line.last() == Some(&b'\n') {
            cases.insert(format!("case-{index:03}"), line);
        }
    }
    assert!(cases.len() > 200);
    for (name, line) in &cases {
        std::fs::write(tree.scratch(name), line).unwrap();
    }
    // `;` comments are ours alone, so no case begins with one.
    for (name, line) in &cases {
        let outcome = tree
            .run(&sha256sum)
            .args(["--check", "--warn"])
            .arg(tree.scratch(name))
            .go();
        let refused = outcome.error_text().contains("improperly formatted");
        let options = Options::default()
            .separator(Separator::Newline)
            .lengths(vec![32]);
        let item = Reader::new(&line[..], options).unwrap().read().unwrap();
        let shown = line.escape_ascii();
        match item {
            Some(Item::Malformed { .. }) => assert!(refused, "we refuse {shown}{outcome}"),
            Some(Item::Record(record)) => {
                assert!(!refused, "we accept {shown}{outcome}");
                let there = NAMES.contains(&&record.path[..]);
                let read = !outcome.error_text().contains("FAILED open or read")
                    && !outcome.text().contains("FAILED open or read");
                assert_eq!(
                    there,
                    read,
                    "{shown}: path {}{outcome}",
                    record.path.escape_ascii()
                );
            }
            Some(Item::Comment { .. }) | None => assert!(!refused, "we pass over {shown}{outcome}"),
            Some(other) => panic!("{shown}: {other:?}"),
        }
    }
}

#[test]
fn other_tools_accept_what_we_write() {
    let tree = TestTree::new();
    tree.write("a", "hi\n");
    let xxh3 = [0xb3, 0x4d, 0x1a, 0x3a, 0xb2, 0xbe, 0xce, 0x70];
    let mut manifest = Vec::new();
    bsd::write_line(&mut manifest, "XXH3", &xxh3, b"a", End::Newline);
    match tool("xxhsum") {
        Some(xxhsum) => drop(
            tree.run(xxhsum)
                .arg("-c")
                .arg("-")
                .stdin(manifest)
                .go()
                .code(0),
        ),
        None => left_out("xxhsum is not installed"),
    }
    match tool("openssl") {
        Some(openssl) => {
            let output = tree.run(openssl).args(["dgst", "-sha256", "a"]).go();
            let item = Reader::new(&output.stdout[..], Options::default())
                .unwrap()
                .read()
                .unwrap();
            let Some(Item::Record(record)) = item else {
                panic!("{output}")
            };
            assert_eq!(
                (record.path, record.digests[0].1.to_string()),
                (b"a".to_vec(), HI.to_owned())
            );
        }
        None => left_out("openssl is not installed"),
    }
}
