//! The files of a tree as `find` lists them, and tools run over such lists through `xargs`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::sh;

/// Longest path that a tool can open by name, with its NUL.
const PATH_MAX: usize = 4096;

/// Returns the paths of `find TREE -type f -print0`, in find's order.
pub(super) fn files(tree: &Path) -> Result<Vec<Vec<u8>>> {
    let text = sh::stdout(
        Command::new("find")
            .arg(tree)
            .args(["-type", "f", "-print0"]),
    )?;
    Ok(text
        .split(|&b| b == 0)
        .filter(|p| !p.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

/// Returns true if a tool can open the path by name at all.
pub(super) fn openable(path: &[u8]) -> bool {
    path.len() < PATH_MAX
}

/// Returns true if every tool writes this path as it is.
pub(super) fn plain(path: &[u8]) -> bool {
    std::str::from_utf8(path).is_ok_and(|text| !text.chars().any(|c| c == '\\' || c.is_control()))
}

/// Runs `xargs -0 tool` over the paths, one share a CPU at the same time, and joins the output on
/// stdout. A tool that cannot read some file says so with its exit code; the records show which.
pub(super) fn over(tool: &[&str], paths: &[&Vec<u8>]) -> Result<Vec<u8>> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let share = paths.len().div_ceil(cpus).max(1);
    let outputs: Vec<Result<Vec<u8>>> = std::thread::scope(|scope| {
        let running: Vec<_> = paths
            .chunks(share)
            .map(|part| scope.spawn(move || one(tool, part)))
            .collect();
        running
            .into_iter()
            .map(|r| r.join().expect("no thread panics"))
            .collect()
    });
    let mut all = Vec::new();
    for output in outputs {
        all.extend(output?);
    }
    Ok(all)
}

fn one(tool: &[&str], paths: &[&Vec<u8>]) -> Result<Vec<u8>> {
    let mut list = Vec::new();
    for path in paths {
        list.extend_from_slice(path);
        list.push(0);
    }
    let mut xargs = Command::new("xargs");
    xargs.env("LC_ALL", "C").args(["-0", "-r"]).args(tool);
    Ok(sh::feed(&mut xargs, &list).context("xargs")?.stdout)
}

/// Returns the path that a line of GNU's format names, unescaped; None for a line of another form.
pub(super) fn gnu_path(line: &[u8]) -> Option<Vec<u8>> {
    let escaped = line.first() == Some(&b'\\');
    let line = if escaped { &line[1..] } else { line };
    let at = line.iter().position(|&b| b == b' ')?;
    let path = line.get(at + 2..)?;
    if !escaped {
        return Some(path.to_vec());
    }
    let mut plain = Vec::new();
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                other => *other,
            },
            other => other,
        });
    }
    Some(plain)
}

/// Returns at most `most` of the lines, evenly spread.
pub(super) fn sample(lines: &[Vec<u8>], most: usize) -> Vec<Vec<u8>> {
    let step = lines.len().div_ceil(most).max(1);
    lines.iter().step_by(step).cloned().collect()
}

/// Returns lines as a file's text.
pub(super) fn text(lines: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_gnu_lines() {
        assert_eq!(gnu_path(b"00  a  b").unwrap(), b"a  b");
        assert_eq!(gnu_path(b"\\00  a\\\\b\\nc\\rd").unwrap(), b"a\\b\nc\rd");
        assert_eq!(gnu_path(b"nothing"), None);
    }

    #[test]
    fn a_sample_is_spread_and_small() {
        let lines: Vec<Vec<u8>> = (0..10).map(|n| vec![n]).collect();
        assert_eq!(sample(&lines, 4), [[0], [3], [6], [9]]);
        assert_eq!(sample(&lines, 100).len(), 10);
    }
}
