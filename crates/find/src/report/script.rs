//! A shell script to read and, perhaps, to run: it compares each pair again
//! and never runs twice. `bc dup prune` checks much more.

use std::io::{self, Write};

use bc_fs::quote::single_quoted;
use bc_walk::EntryId;

use super::{PathSpelling, ScanReport};

const HEAD: &str = r#"#!/bin/sh
# Makes each duplicate below a hard link to the first file of its group.
# `bc dup prune --action=hardlink` does the same and checks more; read this
# script before you run it. It runs once: delete the directory it makes beside
# itself to run it again.
set -u
case $0 in */*) self=$0 ;; *) self=./$0 ;; esac
mkdir -- "$self.started" || { echo "$self: was run already, or cannot be marked as run" >&2; exit 1; }
status=0
# link KEPT DUPLICATE
link() {
    if [ -h "$1" ] || [ -h "$2" ] || ! [ -f "$1" ] || ! [ -f "$2" ]; then
        printf '%s\n' "skipped, not two files: $2" >&2; status=1; return
    fi
    [ "$1" -ef "$2" ] && return
    if ! cmp -s -- "$1" "$2"; then
        printf '%s\n' "skipped, differs by now: $2" >&2; status=1; return
    fi
    if [ -e "$2.$$.tmp" ] || [ -h "$2.$$.tmp" ]; then
        printf '%s\n' "skipped, a file is in the way: $2.$$.tmp" >&2; status=1; return
    fi
    ln -- "$1" "$2.$$.tmp" || { status=1; return; }
    mv -f -- "$2.$$.tmp" "$2" || { rm -f -- "$2.$$.tmp"; status=1; }
}
"#;

pub(super) fn script(
    report: &ScanReport<'_>,
    how: PathSpelling,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(HEAD.as_bytes())?;
    let mut line = Vec::new();
    for group in report.scan.groups() {
        writeln!(out, "\n# {} bytes each", group.size)?;
        let names = report.names(group);
        let identity = |id: &EntryId| report.listing.identity(*id);
        // A name elsewhere of a reference's file stays too.
        let kept: Vec<_> = names
            .iter()
            .filter(|id| report.is_reference(**id))
            .map(identity)
            .collect();
        for id in &names[1..] {
            if kept.contains(&identity(id)) {
                continue;
            }
            line.clear();
            line.extend_from_slice(b"link ");
            quote(&mut line, &report.path(names[0], how));
            line.push(b' ');
            quote(&mut line, &report.path(*id, how));
            line.push(b'\n');
            out.write_all(&line)?;
        }
    }
    out.write_all(b"\nexit $status\n")
}

/// Writes a path in single quotes, where only the quote itself has a meaning; a relative path gets
/// `./` so that no name can be taken for an option.
fn quote(line: &mut Vec<u8>, path: &[u8]) {
    match path {
        [b'/', ..] | [b'.', b'/', ..] => single_quoted(line, path),
        _ => single_quoted(line, &[b"./", path].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn quoted_names_survive_a_shell() {
        for name in [
            &b"a b"[..],
            b"-rf",
            b"it's",
            b"$(touch x)`y`\\",
            b"new\nline",
            b"'",
            b"\xff\"*",
        ] {
            let mut script = b"printf %s ".to_vec();
            quote(&mut script, name);
            let output = std::process::Command::new("sh")
                .arg("-c")
                .arg(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(script))
                .output()
                .unwrap();
            assert_eq!(output.stdout, [b"./", name].concat());
        }
    }
}
