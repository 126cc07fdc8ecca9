//! bc integrity against hashdeep, mtree and find: digests and metadata of every entry, and other
//! tools' readings of the manifest.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::dup::raw_path;
use super::{Checks, Tree, expect_code, exports, listing, same, sorted};
use crate::sh;

/// One entry's fields by the names of the manifest.
type Entries = BTreeMap<Vec<u8>, Value>;

pub(super) fn check(checks: &mut Checks, tree: &Tree) -> Result<()> {
    let manifest = checks.scratch.join("manifest.jsonl");
    let mut read = None;
    checks.check(
        format!("integrity {}: manifest, header and trailer", tree.name),
        |checks| {
            let output = format!("--output={}", manifest.display());
            let mut command = checks.bc(&["integrity", "manifest", "--algorithm=sha256", &output]);
            let ran = sh::capture(command.arg(&tree.path))?;
            ensure!(matches!(ran.status.code(), Some(0 | 1)), "{}", ran.status);
            let text = std::fs::read(&manifest)?;
            let (entries, remark) = parse(&text)?;
            read = Some((text, entries));
            Ok(remark)
        },
    );
    let Some((text, entries)) = read else {
        return Ok(());
    };
    trailer_digest(checks, tree, &text);
    metadata(checks, tree, &entries);
    hashdeep(checks, tree, &entries);
    mtree(checks, tree, &entries);
    sha256sum(checks, tree, &manifest);
    verify(checks, tree, &manifest);
    exports::check(checks, tree, &manifest)?;
    variants(checks, tree, &entries)
}

/// Returns the entries, after checking that the lines are in path order and add up to the trailer.
fn parse(text: &[u8]) -> Result<(Entries, String)> {
    let mut lines = Vec::new();
    for line in text.split(|&b| b == b'\n').filter(|l| !l.is_empty()) {
        lines.push(serde_json::from_slice::<Value>(line).context("a line is not JSON")?);
    }
    ensure!(lines.len() > 2, "{} lines", lines.len());
    let (header, trailer) = (&lines[0], &lines[lines.len() - 1]);
    ensure!(
        header["type"] == "header" && header["schema"] == 1,
        "header is {header}"
    );
    ensure!(trailer["type"] == "trailer", "trailer is {trailer}");
    let mut entries = Entries::new();
    let (mut last, mut files, mut dirs, mut bytes, mut errors) = (Vec::new(), 0, 0, 0, 0);
    for entry in &lines[1..lines.len() - 1] {
        ensure!(entry["type"] == "entry", "not an entry: {entry}");
        let path = raw_path(entry)?;
        ensure!(entries.is_empty() || path > last, "out of order: {entry}");
        match entry["kind"].as_str() {
            Some("file") => {
                files += 1;
                bytes += entry["size"].as_u64().unwrap_or(0);
                errors += u64::from(entry.get("error").is_some());
            }
            Some("dir") => dirs += 1,
            _ => {}
        }
        last.clone_from(&path);
        entries.insert(path, entry.clone());
    }
    ensure!(entries.contains_key(&b"."[..]), "no entry for the root");
    for (name, count) in [
        ("files", files),
        ("dirs", dirs),
        ("bytes", bytes),
        ("errors", errors),
    ] {
        ensure!(
            trailer[name] == count,
            "trailer says {name} {}, not {count}",
            trailer[name]
        );
    }
    ensure!(
        trailer["entries"] == entries.len(),
        "trailer says {} entries",
        trailer["entries"]
    );
    Ok((entries, format!("{} entries", lines.len() - 2)))
}

/// Checks that the trailer's sha256 is that of all bytes before it.
fn trailer_digest(checks: &mut Checks, tree: &Tree, text: &[u8]) {
    let name = format!(
        "integrity {}: trailer = sha256sum of what precedes",
        tree.name
    );
    checks.check(name, |_| {
        let body = text.strip_suffix(b"\n").context("no newline at the end")?;
        let at = body.iter().rposition(|&b| b == b'\n').context("one line")? + 1;
        let trailer: Value = serde_json::from_slice(&body[at..])?;
        let sum = sh::feed(&mut Command::new("sha256sum"), &text[..at])?.stdout;
        let sum = String::from_utf8_lossy(&sum);
        let sum = sum.split(' ').next().unwrap_or("");
        ensure!(
            trailer["sha256"] == sum,
            "{} is not {sum}",
            trailer["sha256"]
        );
        Ok(String::new())
    });
}

/// Checks every field against `find -printf`.
fn metadata(checks: &mut Checks, tree: &Tree, entries: &Entries) {
    checks.check(
        format!("integrity {}: entries and metadata = find", tree.name),
        |_| {
            // The path comes last: it alone may hold anything but NUL.
            let format = "%y %s %m %U %G %i %n %T@ %C@ %P\\0";
            let mut find = Command::new("find");
            let text = sh::stdout(
                find.env("LC_ALL", "C")
                    .arg(&tree.path)
                    .args(["-printf", format]),
            )?;
            let mut count = 0;
            for record in text.split(|&b| b == 0).filter(|r| !r.is_empty()) {
                let fields: Vec<&[u8]> = record.splitn(10, |&b| b == b' ').collect();
                ensure!(fields.len() == 10, "find printed a short record");
                let path = if fields[9].is_empty() {
                    b"."
                } else {
                    fields[9]
                };
                let shown = String::from_utf8_lossy(path).into_owned();
                let entry = entries
                    .get(path)
                    .with_context(|| format!("{shown:?} is missing"))?;
                let text = |at: usize| String::from_utf8_lossy(fields[at]).into_owned();
                let kind = match fields[0] {
                    b"f" => "file",
                    b"d" => "dir",
                    b"l" => "symlink",
                    b"p" => "fifo",
                    b"s" => "socket",
                    b"b" => "block",
                    _ => "char",
                };
                let mode = entry["mode"].as_u64().map(|m| format!("{:o}", m & 0o7777));
                let found = [
                    entry["kind"].as_str().unwrap_or("").to_owned(),
                    entry["size"].to_string(),
                    mode.unwrap_or_default(),
                    entry["uid"].to_string(),
                    entry["gid"].to_string(),
                    entry["ino"].to_string(),
                    entry["nlink"].to_string(),
                    entry["mtime_ns"].to_string(),
                    entry["ctime_ns"].to_string(),
                ];
                let wanted = [
                    kind.to_owned(),
                    text(1),
                    text(2),
                    text(3),
                    text(4),
                    text(5),
                    text(6),
                    nanoseconds(&text(7))?,
                    nanoseconds(&text(8))?,
                ];
                // The size of a device or a pipe means nothing; find says 0.
                let same = found.iter().zip(&wanted).enumerate().all(|(at, (a, b))| {
                    a == b || (at == 1 && !matches!(kind, "file" | "symlink" | "dir"))
                });
                ensure!(same, "{shown:?}: {found:?}, find says {wanted:?}");
                count += 1;
            }
            ensure!(
                count == entries.len(),
                "{} entries, find lists {count}",
                entries.len()
            );
            Ok(format!("{count} entries"))
        },
    );
}

/// Returns find's `seconds.fraction` as whole nanoseconds. Before 1970 it writes the floor of the
/// seconds and a positive fraction, with the sign on the seconds alone.
fn nanoseconds(text: &str) -> Result<String> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let nanos: i128 = format!("{fraction:0<9}")[..9].parse()?;
    Ok((seconds.parse::<i128>()? * 1_000_000_000 + nanos).to_string())
}

/// Returns our digests as `hex path` records, of files whose names every tool writes alike.
fn digests(entries: &Entries) -> Vec<Vec<u8>> {
    let records = entries.iter().filter(|(path, _)| listing::plain(path));
    let records = records.filter_map(|(path, entry)| {
        Some([entry["digest"].as_str()?.as_bytes(), b" ", path.as_slice()].concat())
    });
    let mut records: Vec<Vec<u8>> = records.collect();
    records.sort_unstable();
    records
}

fn hashdeep(checks: &mut Checks, tree: &Tree, entries: &Entries) {
    let name = format!("integrity {}: digests = hashdeep -r", tree.name);
    if !sh::has("hashdeep") {
        checks.not_run(name, "hashdeep is not installed");
        return;
    }
    checks.check(name, |_| {
        // From a list of plain files: of itself it hangs on pipes.
        let files = listing::files(&tree.path)?;
        let root = [tree.path.as_os_str().as_bytes(), b"/"].concat();
        let relative = |path: &[u8]| path.strip_prefix(root.as_slice()).unwrap_or(path).to_vec();
        let plain: Vec<&Vec<u8>> = files
            .iter()
            .filter(|p| listing::openable(p) && listing::plain(&relative(p)))
            .collect();
        let text = listing::over(&["hashdeep", "-l", "-c", "sha256"], &plain)?;
        let mut theirs = Vec::new();
        for line in sorted(&text, b'\n') {
            if line.starts_with(b"%%%%") || line.starts_with(b"##") {
                continue;
            }
            let mut fields = line.splitn(3, |&b| b == b',').skip(1);
            let (hex, path) = (fields.next().unwrap_or(b""), fields.next().unwrap_or(b""));
            theirs.push([hex, b" ", &relative(path)].concat());
        }
        theirs.sort_unstable();
        ensure!(!theirs.is_empty(), "hashdeep printed nothing");
        let mut ours = digests(entries);
        // A record is 64 digits, a space and the path below the root.
        ours.retain(|r| listing::openable(&[&root[..], &r[65..]].concat()));
        same(&ours, &theirs)
    });
}

fn mtree(checks: &mut Checks, tree: &Tree, entries: &Entries) {
    let name = format!("integrity {}: digests = mtree -k sha256", tree.name);
    let Some(mtree) = sh::find_tool(&["mtree", "mtree-netbsd", "bmtree"]) else {
        checks.not_run(name, "mtree is not installed");
        return;
    };
    let tool = |words: &[&str]| {
        let mut command = Command::new(&mtree);
        command.env("LC_ALL", "C").args(words);
        command
    };
    let spec = sh::capture(tool(&["-c", "-k", "type,sha256", "-p"]).arg(&tree.path));
    let flat = spec.and_then(|s| sh::feed(&mut tool(&["-C", "-k", "type,sha256"]), &s.stdout));
    let odd_names = entries.keys().any(|path| !listing::plain(path));
    if odd_names && flat.as_ref().is_ok_and(|f| !f.status.success()) {
        checks.not_run(
            name,
            "mtree cannot read its own specification of this tree's names",
        );
        return;
    }
    checks.check(name, |_| {
        let flat = flat?.stdout;
        let mut theirs = Vec::new();
        for line in sorted(&flat, b'\n') {
            let text = String::from_utf8_lossy(&line).into_owned();
            let mut words = text.split(' ');
            let Some(path) = words.next().and_then(|p| p.strip_prefix("./")) else {
                continue;
            };
            let Some(hex) = words.find_map(|w| w.strip_prefix("sha256=")) else {
                continue;
            };
            let Some(path) = unvis(path) else { continue };
            if listing::plain(&path) {
                theirs.push([hex.as_bytes(), b" ", &path].concat());
            }
        }
        theirs.sort_unstable();
        ensure!(!theirs.is_empty(), "mtree printed nothing");
        same(&digests(entries), &theirs)
    });
}

/// Undoes vis(3)'s escapes: `\s`, `\#`, `\\`, `\M-x`, `\M^x`, `\^x`, `\ooo`.
fn unvis(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        plain.push(match bytes.next()? {
            b's' => b' ',
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'^' => bytes.next()? ^ 0x40,
            b'M' => match bytes.next()? {
                b'-' => bytes.next()? | 0x80,
                _ => (bytes.next()? ^ 0x40) | 0x80,
            },
            first @ b'0'..=b'3' => {
                let (second, third) = (bytes.next()?, bytes.next()?);
                (first - b'0') << 6 | (second - b'0') << 3 | (third - b'0')
            }
            other => other,
        });
    }
    Some(plain)
}

/// Checks the manifest through jq into `sha256sum -c`, as a user without bc would.
fn sha256sum(checks: &mut Checks, tree: &Tree, manifest: &std::path::Path) {
    let name = format!("integrity {}: jq | sha256sum -c", tree.name);
    if !sh::has("jq") {
        checks.not_run(name, "jq is not installed");
        return;
    }
    checks.check(name, |_| {
        let filter = r#"select(.type == "entry" and .kind == "file" and .digest and (.path_b64|not)
            and (.path|test("[\\\\\n\r]")|not) and (.path|utf8bytelength < 4096))
            | .digest + "  " + .path"#;
        let lines = sh::stdout(Command::new("jq").args(["-r", filter]).arg(manifest))?;
        let mut sum = Command::new("sha256sum");
        sum.current_dir(&tree.path)
            .args(["-c", "--quiet", "--strict"]);
        expect_code(&sh::feed(&mut sum, &lines)?, 0, "sha256sum")?;
        Ok(format!(
            "{} files",
            lines.split(|&b| b == b'\n').count() - 1
        ))
    });
}

/// Checks that an unchanged tree verifies silently, and that a diff of the manifest with itself is
/// empty.
fn verify(checks: &mut Checks, tree: &Tree, manifest: &std::path::Path) {
    for mode in ["strict", "content", "meta"] {
        checks.check(
            format!("integrity {}: verify --mode={mode}", tree.name),
            |checks| {
                let words = ["integrity", "verify", &format!("--mode={mode}")];
                let output = sh::capture(checks.bc(&words).arg(&tree.path).arg(manifest))?;
                same(&sorted(&output.stdout, b'\n'), &[])?;
                expect_code(&output, 0, "bc integrity verify")?;
                Ok(String::new())
            },
        );
    }
    checks.check(
        format!("integrity {}: diff with itself", tree.name),
        |checks| {
            let output = sh::capture(checks.bc(&["integrity", "diff"]).args([manifest, manifest]))?;
            same(&sorted(&output.stdout, b'\n'), &[])?;
            expect_code(&output, 0, "bc integrity diff")?;
            Ok(String::new())
        },
    );
}

/// Checks that threads, readers and compression change no entry.
fn variants(checks: &mut Checks, tree: &Tree, entries: &Entries) -> Result<()> {
    for words in [
        &["--threads=mono", "--io=sync"][..],
        &["--threads=8"],
        &["--io=uring"],
    ] {
        let name = format!("integrity {}: {} = the same", tree.name, words.join(" "));
        let mut command = checks.bc(&["integrity", "manifest", "--algorithm=sha256"]);
        let output = sh::capture(command.args(words).arg(&tree.path))?;
        if output.status.code() == Some(2) && words.contains(&"--io=uring") {
            checks.not_run(name, "io_uring is refused here");
            continue;
        }
        checks.check(name, |_| {
            let (other, remark) = parse(&output.stdout)?;
            ensure!(&other == entries, "other entries");
            Ok(remark)
        });
    }
    let name = format!("integrity {}: .zst through zstd = the same", tree.name);
    if !sh::has("zstd") {
        checks.not_run(name, "zstd is not installed");
        return Ok(());
    }
    checks.check(name, |checks| {
        let file = checks.scratch.join("manifest.jsonl.zst");
        let output = format!("--output={}", file.display());
        let mut command = checks.bc(&["integrity", "manifest", "--algorithm=sha256", &output]);
        sh::capture(command.arg(OsStr::from_bytes(tree.path.as_os_str().as_bytes())))?;
        let (other, remark) = parse(&sh::stdout(Command::new("zstd").arg("-dcq").arg(&file))?)?;
        ensure!(&other == entries, "other entries");
        Ok(remark)
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vis_escapes_are_undone() {
        let plain = unvis(r"a\sb\#\\\M-C\M-)\M^@\^A\012.").unwrap();
        assert_eq!(plain, b"a b#\\\xc3\xa9\x80\x01\n.");
        assert_eq!(unvis("cut\\"), None);
    }

    #[test]
    fn find_times_in_nanoseconds() {
        assert_eq!(nanoseconds("12.3456789010").unwrap(), "12345678901");
        assert_eq!(nanoseconds("-2.5000000000").unwrap(), "-1500000000");
        assert_eq!(nanoseconds("7").unwrap(), "7000000000");
    }
}
