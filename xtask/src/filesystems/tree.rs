//! The tree that every kind gets: sizes around the borders at which file systems change how they
//! keep a file, holes, links, duplicates, names that not all of them take.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use bc_testkit::Rng;

/// Lays files into a directory and returns the names of those that could not be laid.
pub(super) type Lay<'a> = &'a dyn Fn(&Path) -> Result<Vec<String>>;

/// Text in the middle of [`MARKED`] and nowhere else, found again in an image.
pub(super) const MARKER: &str = "marker-6d0f1c2b9a8e47d5-of-the-file-that-is-damaged-in-its-image";
/// A file of 1 MiB that nothing repeats and that no file system compresses.
pub(super) const MARKED: &str = "alone/marked";
/// A file that nothing repeats, to be rewritten.
pub(super) const REWRITTEN: &str = "alone/rewritten";
/// Files in the directory `many`, and in `few`.
pub(super) const MANY: usize = 2000;
pub(super) const FEW: usize = 400;

/// Sizes around the limits of data kept in an inode (60, 152, 2048), of blocks, and of readahead.
const SIZES: &[usize] = &[
    1, 3, 59, 60, 61, 100, 151, 152, 153, 500, 1023, 1024, 1025, 2047, 2048, 2049, 3900, 4095,
    4096, 4097, 8191, 8193, 65_535, 65_537, 131_071, 131_073, 1_048_576,
];

/// Returns the time of every file: only content distinguishes those of one size.
fn instant() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000)
}

/// Returns access and modification time alike: FUSE 2 ignores one alone, and reports nothing.
pub(super) fn both(time: SystemTime) -> FileTimes {
    FileTimes::new().set_accessed(time).set_modified(time)
}

/// Lays the tree as `tree` in `dir`.
pub(super) fn checked(dir: &Path) -> Result<Vec<String>> {
    let tree = dir.join("tree");
    let mut rng = Rng::new(12);
    fs::create_dir_all(&tree)?;
    sizes(&tree, &mut rng)?;
    numbered(&tree, &mut rng)?;
    holes(&tree)?;
    alone(&tree, &mut rng)?;
    let mut left_out = names(&tree)?;
    left_out.extend(links(&tree)?);
    small(&dir.join("many"), MANY)?;
    small(&dir.join("few"), FEW)?;
    settle(&tree)?;
    Ok(left_out)
}

/// Makes files of each size, three times alike in different directories, and twice nearly.
fn sizes(tree: &Path, rng: &mut Rng) -> Result<()> {
    for sub in ["one", "two", "two/below", "near"] {
        fs::create_dir_all(tree.join("sizes").join(sub))?;
    }
    for (at, &size) in SIZES.iter().enumerate() {
        // Every other one can be compressed.
        let mut content = match at % 2 {
            0 => rng.bytes(size),
            _ => format!("{at} ").into_bytes().repeat(size)[..size].to_vec(),
        };
        for path in ["one", "two", "two/below"] {
            write(&tree.join(format!("sizes/{path}/{size}")), &content)?;
        }
        content[size - 1] ^= 1;
        write(&tree.join(format!("sizes/near/{size}-last")), &content)?;
        content[size - 1] ^= 1;
        content[size / 2] ^= 2;
        write(&tree.join(format!("sizes/near/{size}-middle")), &content)?;
    }
    write(&tree.join("sizes/one/empty"), b"")?;
    write(&tree.join("sizes/two/empty"), b"")
}

/// Makes files of one size and one time; a digest kept under another's number makes them equal.
fn numbered(tree: &Path, rng: &mut Rng) -> Result<()> {
    fs::create_dir(tree.join("numbered"))?;
    for index in 0..120 {
        let content = format!("{:040}", if index % 5 == 0 { 7 } else { index });
        let name = format!("{:04}", rng.below(10_000));
        write(
            &tree.join(format!("numbered/{name}-{index}")),
            content.as_bytes(),
        )?;
    }
    Ok(())
}

/// Makes files with one content, with and without holes, and one that is nothing but a hole.
fn holes(tree: &Path) -> Result<()> {
    const LENGTH: usize = 2 << 20;
    fs::create_dir(tree.join("holes"))?;
    let sparse = |name: &str, tail: &[u8]| -> Result<()> {
        let file = File::create_new(tree.join("holes").join(name))?;
        file.set_len(LENGTH as u64)?;
        file.write_all_at(tail, (LENGTH - tail.len()) as u64)?;
        Ok(())
    };
    sparse("tail", b"the tail")?;
    sparse("tail-again", b"the tail")?;
    sparse("other-tail", b"the tale")?;
    sparse("nothing", b"")?;
    let mut dense = vec![0; LENGTH];
    dense[LENGTH - 8..].copy_from_slice(b"the tail");
    write(&tree.join("holes/dense"), &dense)
}

fn alone(tree: &Path, rng: &mut Rng) -> Result<()> {
    fs::create_dir(tree.join("alone"))?;
    let mut content = rng.bytes(1 << 20);
    let at = content.len() / 2 + 64;
    content[at..at + MARKER.len()].copy_from_slice(MARKER.as_bytes());
    write(&tree.join(MARKED), &content)?;
    write(&tree.join(REWRITTEN), &rng.bytes(5000))
}

/// Makes names that some file systems refuse or fold; returns those that are refused.
fn names(tree: &Path) -> Result<Vec<String>> {
    let names: &[(&str, &[u8])] = &[
        ("names that are not UTF-8", b"latin-1 caf\xe9"),
        ("names that are not UTF-8", b"broken \xff\xfe"),
        ("newlines in names", b"new\nline"),
        ("control characters in names", b"tab\tand\x1b"),
        ("backslashes in names", b"back\\slash"),
        ("quotes in names", b"a \"quote\""),
        ("colons in names", b"12:30"),
        ("trailing blanks in names", b"blank "),
        ("composed letters in names", "e\u{301} apart".as_bytes()),
        (
            "other scripts in names",
            "\u{e9} \u{4e2d}\u{6587} \u{1f980}".as_bytes(),
        ),
        ("case", b"case"),
        ("names that differ in case", b"Case"),
        ("names that differ in case", b"CASE"),
    ];
    fs::create_dir(tree.join("names"))?;
    let mut left_out: Vec<String> = Vec::new();
    for (what, name) in names {
        let path = tree.join("names").join(OsStr::from_bytes(name));
        let kept = write(&path, b"named strangely").is_ok() && listed(&path);
        if !kept && left_out.last().is_none_or(|last| last != what) {
            left_out.push((*what).to_owned());
        }
    }
    Ok(left_out)
}

/// Returns true if a name was kept as it was given.
fn listed(path: &Path) -> bool {
    let Some(dir) = path.parent() else {
        return false;
    };
    fs::read_dir(dir).is_ok_and(|mut list| {
        list.any(|entry| entry.is_ok_and(|e| Some(e.file_name().as_os_str()) == path.file_name()))
    })
}

/// Makes two names of a file beside a copy that has two names, too; symbolic links that lead
/// somewhere and that do not.
fn links(tree: &Path) -> Result<Vec<String>> {
    let dir = tree.join("links");
    fs::create_dir(&dir)?;
    let mut left_out = Vec::new();
    for (index, size) in [40, 5000, 200_000].iter().enumerate() {
        let content = Rng::new(index as u64).bytes(*size);
        for copy in ["a", "b", "c"] {
            write(&dir.join(format!("{copy}{size}")), &content)?;
        }
        for copy in ["a", "b"] {
            let (old, new) = (
                dir.join(format!("{copy}{size}")),
                dir.join(format!("{copy}{size}-too")),
            );
            if fs::hard_link(old, new).is_err() && left_out.is_empty() {
                left_out.push("hard links".to_owned());
            }
        }
    }
    let linked = std::os::unix::fs::symlink("a40", dir.join("leads"))
        .and_then(|()| std::os::unix::fs::symlink("nowhere", dir.join("dangles")));
    if linked.is_err() {
        left_out.push("symbolic links".to_owned());
    }
    Ok(left_out)
}

/// Makes small files in pairs, all of one size, to count calls on.
fn small(dir: &Path, count: usize) -> Result<()> {
    const DIRS: usize = 10;
    for index in 0..count {
        let sub = dir.join(format!("{:02}", index % DIRS));
        if index < DIRS {
            fs::create_dir_all(&sub)?;
        }
        let content = format!("{:0600}", index / 2);
        write(&sub.join(format!("{index:04}")), content.as_bytes())?;
    }
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    let make = || -> io::Result<()> {
        let file = File::create_new(path)?;
        file.write_all_at(content, 0)
    };
    make().with_context(|| path.display().to_string())
}

/// Sets one time for all regular files, and a few modes.
fn settle(tree: &Path) -> Result<()> {
    for (index, path) in bc_testkit::reference::files(tree)?.iter().enumerate() {
        let path = tree.join(OsStr::from_bytes(path));
        if index % 9 == 0 && path.starts_with(tree.join("alone")) {
            // Not on duplicates: a link needs equal modes.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        }
        let file = File::options().write(true).open(&path)?;
        file.set_times(both(instant()))?;
    }
    Ok(())
}
