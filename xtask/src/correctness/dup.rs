//! bc dup against jdupes, fdupes, fclones, yadf, rdfind, rmlint and dupd: the same groups. They are
//! compared as sets of inodes, so that it does not matter which name of a hard link a tool prints,
//! and the tools are set to look at the same files: hidden ones, no empty ones, no symbolic links.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Checks, Tree, expect_code, listing};
use crate::sh;

/// linux-6.12 as Debian packages it, with the groups and redundant files that every peer finds.
const LINUX: (usize, usize, usize) = (86_629, 361, 524);

/// One group: the inodes of its files.
type Group = BTreeSet<(u64, u64)>;
type Paths = Vec<Vec<Vec<u8>>>;

pub(super) fn check(checks: &mut Checks, tree: &Tree) -> Result<()> {
    let files = listing::files(&tree.path)?;
    // Most peers write one path a line and open by full path; trees that break that have jdupes -0.
    let plain = files
        .iter()
        .all(|p| listing::openable(p) && listing::plain(p));
    let mut ours = None;
    checks.check(
        format!("dup {}: json report is consistent", tree.name),
        |checks| {
            let (groups, remark) = report(checks, tree, &[])?;
            ours = Some(groups);
            Ok(remark)
        },
    );
    let Some(ours) = ours else { return Ok(()) };
    let expected = inodes(&ours)?;
    if files.len() == LINUX.0 && tree.name.starts_with("linux-") {
        checks.check(format!("dup {}: the known figures", tree.name), |_| {
            let redundant: usize = expected.iter().map(|g| g.len() - 1).sum();
            let found = (expected.len(), redundant);
            ensure!(
                found == (LINUX.1, LINUX.2),
                "{found:?}, not {:?}",
                (LINUX.1, LINUX.2)
            );
            Ok(format!("{} groups, {redundant} redundant files", found.0))
        });
    }
    for (name, words, needs_plain, parse) in PEERS {
        let name_of = format!("dup {}: groups = {}", tree.name, words.join(" "));
        if !sh::has(name) {
            checks.not_run(name_of, &format!("{name} is not installed"));
            continue;
        }
        if *needs_plain && !plain {
            checks.not_run(name_of, "its report cannot carry this tree's names");
            continue;
        }
        checks.check(name_of, |checks| {
            let theirs = parse(checks, words, &tree.path)?;
            difference(&expected, &inodes(&theirs)?)
        });
    }
    variants(checks, tree, &ours)?;
    links(checks, tree, &files)
}

type Parse = fn(&Checks, &[&str], &Path) -> Result<Paths>;

const PEERS: &[(&str, &[&str], bool, Parse)] = &[
    ("jdupes", &["jdupes", "-r", "-q", "-0"], false, nul_groups),
    ("fdupes", &["fdupes", "-r", "-q", "-n"], true, line_groups),
    (
        "fclones",
        &[
            "fclones",
            "--quiet",
            "group",
            "--hidden",
            "--no-ignore",
            "--format=fdupes",
        ],
        true,
        line_groups,
    ),
    (
        "yadf",
        &["yadf", "--no-empty", "--format=fdupes"],
        true,
        line_groups,
    ),
    ("rdfind", &["rdfind", "-dryrun", "true"], true, rdfind),
    (
        "rmlint",
        &["rmlint", "-T", "df", "--hidden", "--no-followlinks"],
        true,
        rmlint,
    ),
    (
        "dupd",
        &[
            "dupd",
            "scan",
            "--quiet",
            "--hidden",
            "--hardlink-is-unique",
        ],
        true,
        dupd,
    ),
];

/// Returns our JSON report's groups, after checking its own totals.
fn report(checks: &Checks, tree: &Tree, words: &[&str]) -> Result<(Paths, String)> {
    let mut command = checks.bc(&["dup", "scan", "--format=json"]);
    let output = sh::capture(command.args(words).arg(&tree.path))?;
    ensure!(
        matches!(output.status.code(), Some(0 | 1)),
        "bc dup: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
            .lines()
            .next()
            .unwrap_or("")
    );
    let json: Value = serde_json::from_slice(&output.stdout).context("not JSON")?;
    ensure!(json["schema"] == 1, "schema is {}", json["schema"]);
    let (mut paths, mut duplicates) = (Vec::new(), 0);
    for group in json["groups"].as_array().context("no groups")? {
        let files = group["files"].as_array().context("a group without files")?;
        ensure!(files.len() > 1, "a group of {}", files.len());
        let mut names = Vec::new();
        for file in files {
            ensure!(
                file["size"] == group["size"],
                "a file of another size: {file}"
            );
            names.push(raw_path(file)?);
        }
        duplicates += inodes(std::slice::from_ref(&names))?
            .first()
            .map_or(0, |g| g.len() - 1);
        paths.push(names);
    }
    let stats = &json["stats"];
    ensure!(
        stats["groups"] == paths.len(),
        "stats say {} groups",
        stats["groups"]
    );
    if words.is_empty() {
        ensure!(
            stats["duplicates"] == duplicates,
            "stats say {} duplicates",
            stats["duplicates"]
        );
    }
    let remark = format!("{} groups, {duplicates} redundant files", paths.len());
    Ok((paths, remark))
}

/// Returns the path of a JSON object: exact bytes in `path_b64` where `path` cannot hold them.
pub(crate) fn raw_path(object: &Value) -> Result<Vec<u8>> {
    match object["path_b64"].as_str() {
        Some(text) => base64(text).with_context(|| format!("not base64: {text:?}")),
        None => Ok(object["path"]
            .as_str()
            .context("no path")?
            .as_bytes()
            .to_vec()),
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut held, mut bytes) = (0_u32, 0, Vec::new());
    for c in text.bytes().filter(|&c| c != b'=') {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// Returns groups of paths as groups of inodes; one that is a single file under several names is
/// dropped.
fn inodes(groups: &[Vec<Vec<u8>>]) -> Result<BTreeSet<Group>> {
    let mut sets = BTreeSet::new();
    for group in groups {
        let mut set = Group::new();
        for path in group {
            let path = Path::new(OsStr::from_bytes(path));
            let meta = path
                .symlink_metadata()
                .with_context(|| path.display().to_string())?;
            set.insert((meta.dev(), meta.ino()));
        }
        if set.len() > 1 {
            sets.insert(set);
        }
    }
    Ok(sets)
}

fn difference(ours: &BTreeSet<Group>, theirs: &BTreeSet<Group>) -> Result<String> {
    let (more, less) = (
        ours.difference(theirs).count(),
        theirs.difference(ours).count(),
    );
    ensure!(
        more + less == 0,
        "{more} groups only ours, {less} only theirs"
    );
    Ok(format!("{} groups, difference 0", ours.len()))
}

fn nul_groups(_: &Checks, words: &[&str], tree: &Path) -> Result<Paths> {
    Ok(groups(&output(words, tree)?, 0))
}

fn line_groups(_: &Checks, words: &[&str], tree: &Path) -> Result<Paths> {
    Ok(groups(&output(words, tree)?, b'\n'))
}

fn output(words: &[&str], tree: &Path) -> Result<Vec<u8>> {
    let output = sh::capture(Command::new(words[0]).args(&words[1..]).arg(tree))?;
    expect_code(&output, 0, words[0])?;
    Ok(output.stdout)
}

/// Splits a text into paths ended by `end`, groups ended by an empty one.
fn groups(text: &[u8], end: u8) -> Paths {
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    for path in text.split(|&b| b == end) {
        if !path.is_empty() {
            group.push(path.to_vec());
        } else if !group.is_empty() {
            groups.push(std::mem::take(&mut group));
        }
    }
    if !group.is_empty() {
        groups.push(group);
    }
    groups
}

/// Reads rdfind's results file: `type id depth size device inode priority name`.
fn rdfind(checks: &Checks, words: &[&str], tree: &Path) -> Result<Paths> {
    let results = checks.scratch.join("rdfind.txt");
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .arg("-outputname")
        .arg(&results)
        .arg(tree);
    expect_code(&sh::capture(&mut command)?, 0, "rdfind")?;
    let mut groups: Paths = Vec::new();
    for line in std::fs::read(&results)?.split(|&b| b == b'\n') {
        let mut fields = line.splitn(8, |&b| b == b' ');
        let (kind, name) = (fields.next().unwrap_or(b""), fields.nth(6));
        let Some(name) = name.filter(|_| kind.starts_with(b"DUPTYPE_")) else {
            continue;
        };
        if kind == b"DUPTYPE_FIRST_OCCURRENCE" {
            groups.push(Vec::new());
        }
        groups
            .last_mut()
            .context("results begin in a group")?
            .push(name.to_vec());
    }
    Ok(groups)
}

/// Reads rmlint's JSON: the first of a group is the original.
fn rmlint(checks: &Checks, words: &[&str], tree: &Path) -> Result<Paths> {
    let report = checks.scratch.join("rmlint.json");
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .arg("-o")
        .arg(format!("json:{}", report.display()));
    expect_code(&sh::capture(command.arg(tree))?, 0, "rmlint")?;
    let entries: Vec<Value> = serde_json::from_slice(&std::fs::read(&report)?)?;
    let mut groups: BTreeMap<(String, u64), Vec<Vec<u8>>> = BTreeMap::new();
    for entry in entries.iter().filter(|e| e["type"] == "duplicate_file") {
        let path = entry["path"]
            .as_str()
            .context("no path")?
            .as_bytes()
            .to_vec();
        let checksum = entry["checksum"]
            .as_str()
            .context("no checksum")?
            .to_owned();
        let size = entry["size"].as_u64().context("no size")?;
        groups.entry((checksum, size)).or_default().push(path);
    }
    Ok(groups.into_values().collect())
}

/// Reads dupd's database, which its next command prints: a line of the total, then a path a line,
/// each after two blanks.
fn dupd(checks: &Checks, words: &[&str], tree: &Path) -> Result<Paths> {
    let database = checks.scratch.join("dupd.db");
    let step = |words: &[&str], tree: Option<&Path>| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("--db").arg(&database);
        command.args(tree.map(|_| "--path")).args(tree);
        let output = sh::capture(&mut command)?;
        expect_code(&output, 0, "dupd").map(|()| output.stdout)
    };
    step(words, Some(tree))?;
    let text = step(&["dupd", "report"], None)?;
    let paths = text.split(|&b| b == b'\n').filter_map(|line| match line {
        [] => Some(line),
        _ => line.strip_prefix(b"  "),
    });
    Ok(groups(&paths.collect::<Vec<_>>().join(&b'\n'), b'\n'))
}

/// Checks that every algorithm, thread count, reader and format finds the same groups, with and
/// without cache.
fn variants(checks: &mut Checks, tree: &Tree, ours: &Paths) -> Result<()> {
    let cache = format!("--cache={}", checks.scratch.join("dup-cache").display());
    let variants: &[&[&str]] = &[
        &["--algorithm=xxh3"],
        &["--algorithm=blake3"],
        &["--algorithm=sha256"],
        &["--verify-bytes"],
        &["--threads=mono"],
        &["--threads=8", "--io=sync"],
        &["--threads=io", "--io=uring"],
        &[&cache],
        &[&cache, "--threads=mono"],
    ];
    for words in variants {
        let shown = words.join(" ").replace(&cache, "--cache");
        let name = format!("dup {}: {shown} finds the same", tree.name);
        if words.contains(&"--io=uring") {
            let probe = sh::capture(checks.bc(&["dup", "--io=uring"]).arg(&tree.path))?;
            if probe.status.code() == Some(2) {
                checks.not_run(name, "io_uring is refused here");
                continue;
            }
        }
        checks.check(name, |checks| {
            let (groups, _) = report(checks, tree, words)?;
            ensure!(&groups == ours, "other groups, or in another order");
            Ok(String::new())
        });
    }
    checks.check(
        format!("dup {}: --format=fdupes and text hold the same", tree.name),
        |checks| {
            for format in ["--format=fdupes", "--format=text"] {
                let text = sh::capture(checks.bc(&["dup", format]).arg(&tree.path))?.stdout;
                // A name with a newline cannot be distinguished from two lines; the others are
                // counted.
                let lines = text
                    .split(|&b| b == b'\n')
                    .filter(|l| l.starts_with(b"/"))
                    .count();
                let paths: usize = ours.iter().map(Vec::len).sum();
                ensure!(lines >= paths, "{format}: {lines} lines for {paths} files");
            }
            Ok(String::new())
        },
    );
    Ok(())
}

/// Checks `--match-hardlinks` against `jdupes -H`: names of one inode are duplicates too.
fn links(checks: &mut Checks, tree: &Tree, files: &[Vec<u8>]) -> Result<()> {
    let name = format!("dup {}: --match-hardlinks = jdupes -r -H", tree.name);
    if !sh::has("jdupes") {
        checks.not_run(name, "jdupes is not installed");
        return Ok(());
    }
    let linked = files.iter().any(|path| {
        Path::new(OsStr::from_bytes(path))
            .symlink_metadata()
            .is_ok_and(|m| m.nlink() > 1)
    });
    if !linked {
        return Ok(());
    }
    checks.check(name, |checks| {
        let (ours, _) = report(checks, tree, &["--match-hardlinks"])?;
        let theirs = nul_groups(checks, &["jdupes", "-r", "-q", "-H", "-0"], &tree.path)?;
        let sets = |groups: &Paths| -> BTreeSet<BTreeSet<Vec<u8>>> {
            groups.iter().map(|g| g.iter().cloned().collect()).collect()
        };
        let (ours, theirs) = (sets(&ours), sets(&theirs));
        let (more, less) = (
            ours.difference(&theirs).count(),
            theirs.difference(&ours).count(),
        );
        ensure!(
            more + less == 0,
            "{more} groups only ours, {less} only theirs"
        );
        Ok(format!("{} groups", ours.len()))
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_rfc_4648_has_it() {
        let cases = [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
        ];
        for (text, bytes) in cases {
            assert_eq!(base64(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(base64("//79").unwrap(), [0xff, 0xfe, 0xfd]);
        assert_eq!(base64("a b"), None);
    }

    #[test]
    fn groups_end_at_empty_records() {
        let expected: Paths = vec![vec![b"a".to_vec(), b"b".to_vec()], vec![b"c".to_vec()]];
        assert_eq!(groups(b"a\nb\n\nc\n", b'\n'), expected);
        assert_eq!(groups(b"a\0b\0\0c\0\0", 0), expected);
    }
}
