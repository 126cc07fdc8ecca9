//! Lists that a command has written before: the files among its own operands that its output may
//! replace. Recognised by how they begin, and by the lists that the command in question writes: a
//! checksum list is no report of duplicates, and an earlier manifest no list of digests.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_manifest::{Item, Options, Reader};
use serde_json::Value;

/// Bytes that are looked at.
const HEAD: u64 = 64 << 10;

/// Groups of lists by the command that writes them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListKind {
    /// Checksum lists, of `bc hash`.
    Digests,
    /// Reports of `bc dup`.
    Duplicates,
    /// Manifests of `bc integrity`, and of `bc copy`.
    Manifest,
    /// Reports of comparisons.
    Changes,
    /// Figures of `--metrics`.
    Metrics,
}

/// Returns true if a file is empty, or a list of this kind. `operands` are those of the command
/// now: the lines of a report without a header begin with one of them.
pub fn is_list(file: File, kind: ListKind, operands: &[&OsStr]) -> bool {
    let Ok(head) = head(file) else {
        return false;
    };
    if head.is_empty() {
        return true;
    }
    match first_object(&head) {
        Some(object) => is_header(&object, kind),
        None if head.starts_with(b"{") => false,
        None => is_text(&head, kind, operands),
    }
}

/// Reads the first [`HEAD`] bytes of a file, decompressed.
fn head(file: File) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head)?;
    if bc_manifest::compress::is_compressed(&head) {
        let mut inner = bc_manifest::compress::decompress(&head[..])?;
        let mut text = Vec::new();
        // Of a frame that is cut off here the beginning is known all the same.
        while text.len() < HEAD as usize {
            let Ok(piece) = inner.fill_buf() else { break };
            if piece.is_empty() {
                break;
            }
            let len = piece.len();
            text.extend_from_slice(piece);
            inner.consume(len);
        }
        // The frame contains nothing, or cannot be decompressed this far.
        return Ok(if text.is_empty() { b"?".to_vec() } else { text });
    }
    Ok(head)
}

/// Returns the object that JSON begins with, as far as it is closed: on its line, or after one or
/// some lines of members with the rest to follow.
fn first_object(head: &[u8]) -> Option<Value> {
    let text = head.strip_prefix(b"{").map(|_| head)?;
    let lines = |count: usize| {
        let mut ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let end = ends.nth(count - 1).map_or(text.len(), |(at, _)| at);
        text[..end].trim_ascii_end()
    };
    let whole = |text: &[u8]| serde_json::from_slice(text).ok();
    let cut = |text: &[u8]| {
        let members = text.strip_suffix(b",")?;
        whole(&[members, b"}"].concat())
    };
    let (one, three) = (lines(1), lines(3));
    let found: [Option<Value>; 4] = [
        whole(one),
        cut(one),
        cut(three),
        whole(text.trim_ascii_end()),
    ];
    let has_schema = |object: &Value| object["schema"].is_u64();
    found.into_iter().flatten().find(has_schema)
}

fn is_header(object: &Value, kind: ListKind) -> bool {
    let (tool, command) = (object["tool"].as_str(), object["command"].as_str());
    let is_of = |commands: &[&str]| command.is_some_and(|command| commands.contains(&command));
    let is_metrics = object["applet"].is_string();
    match kind {
        ListKind::Metrics => is_metrics && command.is_some(),
        _ if is_metrics => false,
        ListKind::Digests => tool == Some("bc hash") || is_of(&["hash"]),
        ListKind::Duplicates => is_of(&["dup scan", "dup dirs"]),
        ListKind::Manifest => tool == Some("bc integrity"),
        ListKind::Changes => is_of(&["verify", "diff", "hash diff"]),
    }
}

fn is_text(head: &[u8], kind: ListKind, operands: &[&OsStr]) -> bool {
    let is_page = || {
        let generator = b"<meta name=generator content=\"bit-crafts ";
        let has = |part: &[u8]| head.windows(part.len()).any(|some| some == part);
        head.starts_with(b"<!DOCTYPE html>") && has(generator)
    };
    match kind {
        ListKind::Digests => is_digests(head),
        ListKind::Duplicates => is_duplicates(head, operands) || is_page(),
        ListKind::Manifest => false,
        ListKind::Changes => is_changes(head) || is_page(),
        ListKind::Metrics => head.starts_with(b"# HELP bc_"),
    }
}

/// Returns true if all lines are those of a checksum list; the last one may be cut off.
fn is_digests(head: &[u8]) -> bool {
    // A line that long holds no name.
    let last = head.iter().rposition(|byte| matches!(byte, b'\n' | b'\0'));
    let is_cut = head.len() as u64 == HEAD && last.is_some_and(|at| at > head.len() / 2);
    let Ok(mut reader) = Reader::new(head, Options::default()) else {
        return false;
    };
    let mut records = 0;
    loop {
        match reader.read() {
            Ok(Some(Item::Record(_))) => records += 1,
            Ok(Some(Item::Malformed { .. })) => {
                return is_cut && records > 0 && matches!(reader.read(), Ok(None));
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(_) => return false,
        }
    }
    // The header of a list of no files.
    records > 0 || head.starts_with(b"path,size,")
}

fn is_duplicates(head: &[u8], operands: &[&OsStr]) -> bool {
    let is_below = |line: &[u8]| {
        operands.iter().any(|operand| {
            let operand = operand.as_encoded_bytes();
            let rest = line.strip_prefix(operand);
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(b"/") || operand.ends_with(b"/")
            })
        })
    };
    head.starts_with(b"group,size,digest,reference,path,path_b64\r\n")
        || head.starts_with(b"#!/bin/sh\n# Makes each duplicate below a hard link to the first")
        || all_lines(head, |line| line.is_empty() || is_below(line))
        || are_groups_of_names(head)
}

/// Returns true if all lines are names of existing files, in groups of several: the output of a
/// search that was given other paths, or the same ones in other words.
fn are_groups_of_names(head: &[u8]) -> bool {
    let mut group = 0;
    let is_one = |line: &[u8]| {
        if line.is_empty() {
            return std::mem::take(&mut group) > 1;
        }
        group += 1;
        let path = Path::new(OsStr::from_bytes(line));
        path.symlink_metadata().is_ok()
    };
    // The last group may be cut off, and the reports of fdupes end with a blank line.
    all_lines(head, is_one) && (group != 1 || head.len() as u64 == HEAD)
}

fn is_changes(head: &[u8]) -> bool {
    const MARKS: [&[u8]; 6] = [b"!! ", b"?? ", b"~c ", b"~m ", b"~t ", b"ok "];
    // Alone, these are the bullets of any list.
    const BULLETS: [&[u8]; 3] = [b"+ ", b"- ", b"> "];
    let has = |line: &[u8], marks: &[&[u8]]| marks.iter().any(|mark| line.starts_with(mark));
    let mut lines = head.split(|byte| *byte == b'\n');
    let is_one = |line: &[u8]| has(line, &MARKS) || has(line, &BULLETS);
    all_lines(head, is_one) && lines.any(|line| has(line, &MARKS))
}

/// Returns true if there are lines and `is_one` holds for all; the last one may be cut off.
fn all_lines(head: &[u8], is_one: impl FnMut(&[u8]) -> bool) -> bool {
    let whole = match head.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => &head[..at],
        None => return false,
    };
    whole.split(|byte| *byte == b'\n').all(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn is(text: &[u8], kind: ListKind) -> bool {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        file.rewind().unwrap();
        is_list(file, kind, &[OsStr::new("d")])
    }

    #[test]
    fn each_kind_knows_its_own_only() {
        const KINDS: [ListKind; 5] = [
            ListKind::Digests,
            ListKind::Duplicates,
            ListKind::Manifest,
            ListKind::Changes,
            ListKind::Metrics,
        ];
        let sum = "d41d8cd98f00b204e9800998ecf8427e";
        for (text, kind) in [
            (format!("{sum}  d/a\n"), ListKind::Digests),
            (format!("\\{sum}  d/a\\nb\n"), ListKind::Digests),
            (format!("{sum}  d/a\0{sum}  d/b\0"), ListKind::Digests),
            (format!("MD5 (d/a) = {sum}\n"), ListKind::Digests),
            (
                format!("path,size,md5,error\nd/a,0,{sum},\n"),
                ListKind::Digests,
            ),
            (
                "{\"type\":\"header\",\"schema\":1,\"tool\":\"bc hash\"}\n{\"type\":".into(),
                ListKind::Digests,
            ),
            (
                "{\n  \"schema\": 1,\n  \"command\": \"hash\",\n  \"files\": [".into(),
                ListKind::Digests,
            ),
            ("d/a\nd/b\n\nd/c\nd/d\n".into(), ListKind::Duplicates),
            (
                "group,size,digest,reference,path,path_b64\r\n".into(),
                ListKind::Duplicates,
            ),
            (
                "{\"command\":\"dup scan\",\"schema\":1,\n\"stats\":{".into(),
                ListKind::Duplicates,
            ),
            (
                "{\"type\":\"header\",\"schema\":1,\"command\":\"dup dirs\"}\n".into(),
                ListKind::Duplicates,
            ),
            (
                "{\"type\":\"header\",\"schema\":1,\"tool\":\"bc integrity\"}\n{".into(),
                ListKind::Manifest,
            ),
            ("~m .\n+ new\n".into(), ListKind::Changes),
            (
                "{\"type\":\"header\",\"schema\":1,\"command\":\"verify\"}\n".into(),
                ListKind::Changes,
            ),
            (
                "# HELP bc_files Files processed.\n".into(),
                ListKind::Metrics,
            ),
            (
                "{\n  \"applet\": \"hash\",\n  \"command\": \"hash\",\n  \"schema\": 1\n}\n".into(),
                ListKind::Metrics,
            ),
        ] {
            for other in KINDS {
                assert_eq!(
                    is(text.as_bytes(), other),
                    other == kind,
                    "{other:?}: {text}"
                );
            }
        }
        for text in [
            "abc",
            "abc\n",
            "a letter\n",
            "- milk\n- eggs\n",
            "{\"schema\": 1}",
            "{\"a\": [",
            "{",
            "<!DOCTYPE html>\n<html>\n",
            "\0\0\0\n",
            "d41d8cd98f00b204e9800998ecf8427e  a\nand a note\n",
        ] {
            for kind in KINDS {
                assert!(!is(text.as_bytes(), kind), "{kind:?}: {text}");
            }
        }
        assert!(KINDS.iter().all(|kind| is(b"", *kind)));
    }

    #[test]
    fn a_list_longer_than_what_is_looked_at_is_one() {
        let line = b"d41d8cd98f00b204e9800998ecf8427e  d/some/name/that/is/not/too/short\n";
        assert!(is(&line.repeat(3000), ListKind::Digests));
        assert!(is(
            &b"d/some/name/that/is/not/too/short\n".repeat(3000),
            ListKind::Duplicates
        ));
        assert!(!is(
            &[&line.repeat(10)[..], &[b'x'; 200_000]].concat(),
            ListKind::Digests
        ));
    }
}
