//! Directories in each other, far deeper than the system takes in one path: every command works
//! there, and what it asks of the kernel grows with the tree and not with its square.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use bc_digest::{Algorithm, hash};
use bc_testkit::{Run, TestTree, cases, left_out, tool};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, statat};

use crate::common::{BC, Bc};

/// A tree with a chain `d/d/d/…` in its directory `chain`.
struct Chain {
    tree: TestTree,
    levels: usize,
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

fn write(dir: &OwnedFd, name: &str, content: &str) {
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(dir, name, flags, Mode::RUSR | Mode::WUSR).unwrap();
    File::from(file).write_all(content.as_bytes()).unwrap();
}

impl Chain {
    /// Made step by step; `fill` is given each directory and its level, the first being 0.
    fn new(levels: usize, fill: impl Fn(&OwnedFd, usize)) -> Chain {
        let tree = TestTree::new();
        tree.dir("chain");
        let mut at = openat(CWD, tree.join("chain"), DIRECTORY, Mode::empty()).unwrap();
        for level in 0..levels {
            fill(&at, level);
            if level + 1 < levels {
                mkdirat(&at, "d", Mode::RWXU).unwrap();
                at = openat(&at, "d", DIRECTORY, Mode::empty()).unwrap();
            }
        }
        Chain { tree, levels }
    }

    /// The last directory.
    fn end(&self) -> OwnedFd {
        let root = self.tree.join("chain");
        let mut at = openat(CWD, &root, DIRECTORY, Mode::empty()).unwrap();
        for _ in 1..self.levels {
            at = openat(&at, "d", DIRECTORY, Mode::empty()).unwrap();
        }
        at
    }

    fn bc(&self, line: &str) -> Run {
        self.tree.bc_line(line)
    }
}

/// `chain/d/d/…/name`.
fn path(level: usize, name: &str) -> String {
    format!("chain/{}{name}", "d/".repeat(level))
}

/// Names that are looked up in the paths that the program hands to the kernel.
fn looked_up(chain: &Chain, line: &str) -> usize {
    let log = chain.tree.scratch("calls");
    let traced = chain
        .tree
        .run("strace")
        .args(["-f", "-qq", "-s", "100000", "-e"])
        .arg("trace=%file,?getxattr,?lgetxattr,?listxattr,?llistxattr")
        .arg("-o")
        .args([log.to_str().unwrap(), BC])
        // What is traced is slow, which must not be taken for the file system's fault.
        .args(line.split_whitespace().chain(["--io=sync"]))
        .go();
    traced.code(0);
    let log = std::fs::read_to_string(log).unwrap();
    let names = |path: &str| path.split('/').filter(|name| !name.is_empty()).count();
    // Every other part is between quotes.
    let paths = |line: &str| -> usize { line.split('"').skip(1).step_by(2).map(names).sum() };
    log.lines().map(paths).sum()
}

#[test]
fn lookups_grow_with_the_tree() {
    if !crate::strace::is_able() {
        return;
    }
    // On the way down, on the way back up, and in directories beside the chain. Each third content
    // is the first's. Threads are named: by itself each run would take the more of them, each with
    // a way of its own, the slower calls are while they are traced.
    let chain = Chain::new(500, |dir, level| {
        write(dir, "a", &format!("{:06}", level / 3));
        write(dir, "x", &format!("{:06}", level / 3));
        mkdirat(dir, "e", Mode::RWXU).unwrap();
        let beside = openat(dir, "e", DIRECTORY, Mode::empty()).unwrap();
        write(&beside, "y", &format!("{level:06}"));
    });
    chain.bc("hash chain -o ../sums").go().code(0);
    for line in [
        "hash --threads=mono chain",
        "hash --threads=3 chain",
        "hash check --threads=3 --type=sha256 --status ../sums",
        "hash --threads=3 --files-from=../list",
        "dup --threads=3 chain",
        "dup --threads=3 --verify-bytes chain",
        "integrity manifest --threads=3 chain -o ../m",
        "integrity verify --threads=3 chain ../m",
        "integrity manifest --threads=3 --xattrs chain -o ../mx",
    ] {
        if line.contains("list") {
            let list = (0..chain.levels).map(|level| path(level, "x\n"));
            chain.tree.write("../list", list.collect::<String>());
        }
        let names = looked_up(&chain, line);
        // Each directory is opened by the walk and by the reader, and back up the nearest one that
        // is held is some 16 levels away. Each from the root would
        // be some 250 of them.
        let most = 80 * 2 * chain.levels;
        assert!(names < most, "{line}: {names} names");
    }
}

#[test]
fn ten_thousand_directories() {
    const LEVELS: usize = 10_000;
    let contents = [(0, "one"), (5_000, "two"), (7_000, "one"), (9_999, "three")];
    let chain = Chain::new(LEVELS, |dir, level| {
        for (_, content) in contents.iter().filter(|(at, _)| *at == level) {
            write(dir, "f", content);
        }
    });
    let mut sums = String::new();
    for (level, content) in contents.iter().rev() {
        let digest = hash(Algorithm::Sha256, content.as_bytes());
        writeln!(sums, "{digest}  {}", path(*level, "f")).unwrap();
    }
    for line in ["hash chain", "hash --threads=3 chain"] {
        chain.bc(line).go().code(0).stderr_is("").stdout_is(&sums);
    }
    chain.tree.write("../sums", &sums);
    let check = || chain.bc("hash check --quiet ../sums").go();
    check().code(0).stdout_is("").stderr_is("");
    chain.bc("hash diff ../sums ../sums").go().code(0);

    let equal = [path(7_000, "f"), path(0, "f")].map(|path| path + "\n");
    let dup = chain.bc("dup chain").go();
    assert_eq!(dup.code(0).text().trim_end(), equal.concat().trim_end());
    chain
        .bc("dup prune --action=hardlink --yes chain")
        .go()
        .code(0);
    let first = statat(CWD, chain.tree.join("chain/f"), AtFlags::empty()).unwrap();
    assert_eq!(first.st_nlink, 2);
    check().code(0).stdout_is("");

    write(&chain.end(), "f", "other");
    let failed = format!("{}: FAILED\n", path(LEVELS - 1, "f"));
    check().code(1).stdout_is(failed);
}

#[test]
fn manifests_of_a_chain() {
    const LEVELS: usize = 2_500;
    let chain = Chain::new(LEVELS, |dir, level| {
        if level % 500 == 0 || level + 1 == LEVELS {
            write(dir, "f", &format!("content {level}"));
        }
    });
    let fine = |line: &str| {
        chain.bc(line).go().code(0).stdout_is("");
    };
    fine("integrity manifest chain -o ../old");
    fine("integrity verify --quiet chain ../old");
    fine("integrity update --quiet chain ../old");
    chain.tree.write("../new", chain.tree.read("../old"));
    write(&chain.end(), "f", "another");
    let verify = chain.bc("integrity verify chain ../old").go();
    let deepest = "d/".repeat(LEVELS - 1) + "f";
    verify.code(1).stdout_has(&deepest);
    let update = chain.bc("integrity update chain ../new").go();
    update.code(0).stdout_has(&deepest);
    fine("integrity verify --quiet chain ../new");
    let diff = chain.bc("integrity diff ../old ../new").go();
    diff.code(1).stdout_has(&deepest);
}

/// Directories are held open only as long as there are descriptors for them.
#[test]
fn few_descriptors_are_enough() {
    if tool("sh").is_none() {
        return left_out("sh is not installed");
    }
    let chain = Chain::new(300, |dir, level| write(dir, "x", &format!("{}", level / 2)));
    let lines = [
        "hash chain",
        "dup chain",
        "dup --verify-bytes chain",
        "dup dirs chain",
        "integrity manifest --xattrs chain",
        "copy chain copy",
        "copy --sync=batch chain copy",
    ];
    for line in lines {
        let go = |run: Run| {
            let _ = std::fs::remove_dir_all(chain.tree.join("copy"));
            run.go()
        };
        let without_limit = go(chain.bc(line));
        without_limit.code(0);
        // Few for many, so that those that wait for work hold what others need.
        for (limit, threads) in [(64, 8), (40, 8), (24, 8), (24, 2), (20, 1), (16, 1)] {
            // Several, as what is held depends on who comes first.
            for _ in 0..if threads == 8 { cases(1) } else { 1 } {
                let limited =
                    format!("ulimit -n {limit} && exec \"$0\" {line} --threads={threads}");
                let run = go(chain.tree.run("sh").args(["-c", &limited, BC]));
                run.code(0);
                if !line.starts_with("copy") {
                    run.stderr_is("");
                }
                if !line.contains("manifest") {
                    run.stdout_is(&without_limit.stdout);
                }
            }
        }
    }
}
