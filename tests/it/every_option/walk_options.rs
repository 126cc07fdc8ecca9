//! Options that choose files: each is worth a known number of files on the ground.

use bc_testkit::TestTree;

use super::ground::Ground;

/// A command that walks.
pub struct Walker {
    pub name: &'static str,
    /// Its line up to the root.
    line: &'static str,
    count: fn(&Ground, &str) -> i64,
}

pub const WALKERS: &[Walker] = &[
    Walker {
        name: "hash hash",
        line: "hash hash",
        count: |g, line| g.metric(line, "files"),
    },
    Walker {
        name: "dup scan",
        line: "dup scan",
        count: |g, line| g.metric(line, "files"),
    },
    Walker {
        name: "dup summary",
        line: "dup summary",
        count: |g, line| g.metric(line, "files"),
    },
    Walker {
        name: "dup dirs",
        line: "dup dirs",
        count: |g, line| g.metric(line, "files"),
    },
    Walker {
        name: "dup unique",
        line: "dup unique",
        count: |g, line| g.metric(line, "files"),
    },
    Walker {
        name: "dup prune",
        line: "dup prune --action=hardlink --dry-run",
        count: |g, line| g.bc(line).lines().len() as i64,
    },
    Walker {
        name: "copy",
        line: "copy --dry-run",
        count: |g, line| {
            // Behind what is copied stands where to.
            let text = g.bc(&format!("{line} to")).text();
            let lines = text.lines().filter_map(|line| line.strip_prefix("+ "));
            let is_file = |path: &&str| {
                let below = path
                    .strip_prefix("to/")
                    .map(|path| g.t.join("d").join(path));
                let shared = path.contains("/bc-mark-");
                below.is_some_and(|path| path.is_file() && !path.is_symlink()) || shared
            };
            lines.filter(is_file).count() as i64
        },
    },
    Walker {
        name: "move",
        // Into directories that are there, so that each file is listed.
        line: "move --dry-run -T",
        count: |g, line| {
            g.t.dir("merged/sub/deep");
            let text = g.bc(&format!("{line} merged")).text();
            let lines = text.lines().filter_map(|line| line.strip_prefix("+ "));
            let is_file = |path: &&str| {
                let below = path
                    .strip_prefix("merged/")
                    .map(|path| g.t.join("d").join(path));
                let shared = path.contains("/bc-mark-");
                below.is_some_and(|path| path.is_file() && !path.is_symlink()) || shared
            };
            lines.filter(is_file).count() as i64
        },
    },
    Walker {
        name: "integrity manifest",
        line: "integrity manifest",
        count: |g, line| {
            let text = g.bc(line).text();
            let files = text
                .lines()
                .filter(|line| line.contains("\"kind\":\"file\""));
            files.count() as i64
        },
    },
];

/// An option, as given, and what is left with it: files, and files that prune would change.
pub struct Case {
    pub option: &'static str,
    given: &'static str,
    files: i64,
    pruned: i64,
}

const fn case(option: &'static str, given: &'static str, files: i64, pruned: i64) -> Case {
    Case {
        option,
        given,
        files,
        pruned,
    }
}

/// Without any there are 8 files, and prune would change 5.
pub const CASES: &[Case] = &[
    case("no-hidden", "--no-hidden", 6, 4),
    case("hidden", "--no-hidden --hidden", 8, 5),
    case("include", "--include=*.c", 6, 4),
    case("exclude", "--exclude=sub", 6, 3),
    case("min-size", "--min-size=1K", 2, 1),
    case("max-size", "--max-size=1K", 6, 4),
    case("newer", "--newer=2d", 8, 5),
    case("newer", "--newer=2100-01-01", 0, 0),
    case("older", "--older=2100-01-01T10:00+02:00", 8, 5),
    case("older", "--changed-before=@0.5", 0, 0),
    case("ignore-files", "--ignore-files", 7, 4),
    case("max-depth", "--max-depth=1", 6, 3),
    case("files-from", "--files-from=list", 2, 1),
    case("null", "--files-from=list0 --null", 2, 1),
    // Prune refuses what only a symbolic link leads to.
    case("follow-symlinks", "--follow-symlinks", 9, 5),
    case("one-file-system", "--one-file-system", 8, 5),
];

/// A manifest records a tree, not a list; directories are compared whole; and of a list nobody can
/// say what is missing in it.
pub fn has(walker: &Walker, option: &str) -> bool {
    let trees_only = [
        "integrity manifest",
        "dup dirs",
        "dup unique",
        "copy",
        "move",
    ];
    let as_links = matches!(walker.name, "copy" | "move") && option == "follow-symlinks";
    let lists = matches!(option, "files-from" | "null");
    !(as_links || lists && trees_only.contains(&walker.name))
}

pub fn check(g: &Ground, walker: &Walker, case: &Case) {
    g.t.write("list", "d/a.c\nd/sub/b.c\n")
        .write("list0", "d/a.c\0d/sub/b.c\0");
    let prunes = walker.name == "dup prune";
    let root = if case.given.contains("--files-from") {
        ""
    } else {
        "d"
    };
    let all = (walker.count)(g, &format!("{} d", walker.line));
    assert_eq!(all, if prunes { 5 } else { 8 });
    let left = (walker.count)(g, &format!("{} {} {root}", walker.line, case.given));
    assert_eq!(left, if prunes { case.pruned } else { case.files });
    if case.option == "one-file-system" {
        crosses(g, walker);
    }
}

/// `/dev/shm` is nearly everywhere a file system of its own below another.
fn crosses(g: &Ground, walker: &Walker) {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &str| std::fs::metadata(path).map(|meta| meta.dev()).ok();
    if device("/dev/shm").is_none() || device("/dev") == device("/dev/shm") {
        return bc_testkit::left_out("/dev/shm is no file system of its own");
    }
    let there = TestTree::new_in(std::path::Path::new("/dev/shm"));
    let marks = ["one", "two"].map(|name| {
        let name = format!("bc-mark-{}-{name}", std::process::id());
        there.write(&name, "across");
        name
    });
    let includes = format!("--include={} --include={}", marks[0], marks[1]);
    let line = format!("{} {includes} /dev", walker.line);
    let across = (walker.count)(g, &line);
    let within = (walker.count)(g, &format!("{line} -x"));
    let expected = if walker.name == "dup prune" { 1 } else { 2 };
    assert_eq!((across, within), (expected, 0));
}
