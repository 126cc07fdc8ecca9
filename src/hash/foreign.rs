//! Lists that `bc hash` does not read but other programs do: recognised by their first bytes, and
//! answered with the command that reads them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_fs::quote::{shell_path, shell_word};
use serde_json::Value;

/// Returns the command that reads the list called `name` that begins with `head`; None if it may be
/// one of ours.
pub fn advice(head: &[u8], name: &OsStr) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let first = text.lines().next().unwrap_or_default();
    let list = shell_path(name.as_bytes());
    if let Ok(header) = serde_json::from_str::<Value>(first)
        && header["tool"] == "bc integrity"
    {
        let root = header["root"].as_str().unwrap_or("ROOT");
        let root = shell_path(root.as_bytes());
        return Some(format!(
            "a manifest of bc integrity; use: bc integrity verify {root} {list}"
        ));
    }
    if head.starts_with(b"\x28\xb5\x2f\xfd") {
        return Some(format!(
            "compressed; if it is a manifest of bc integrity, use: bc integrity verify ROOT {list}"
        ));
    }
    if first.starts_with("%%%% HASHDEEP") {
        return Some(hashdeep(&text, &list));
    }
    if first.starts_with(';') || (is_named_sfv(name) && ends_with_crc(first)) {
        return Some(format!("a list of CRC-32 (SFV); use: rhash --check {list}"));
    }
    let is_mtree = first.starts_with("#mtree")
        || text
            .lines()
            .take(20)
            .any(|line| line.starts_with("/set type="));
    is_mtree.then(|| format!("a specification of mtree; use: mtree -p DIR -f {list}"))
}

fn is_named_sfv(name: &OsStr) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("sfv"))
}

/// Returns true for a name, and eight hexadecimal digits after it.
fn ends_with_crc(line: &str) -> bool {
    let digits = |sum: &str| sum.len() == 8 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    line.trim_end()
        .rsplit_once(' ')
        .is_some_and(|(name, sum)| !name.is_empty() && digits(sum))
}

/// Returns the command for a list of hashdeep: its paths are absolute unless an option made them
/// relative, and lie below the directory where it was called.
fn hashdeep(text: &str, list: &str) -> String {
    let called = text
        .lines()
        .find_map(|line| line.strip_prefix("## Invoked from: "));
    let is_absolute = text
        .lines()
        .filter(|line| !line.starts_with(['%', '#']))
        .any(|line| line.contains(",/"));
    let root = shell_word(called.unwrap_or(".").as_bytes());
    let prefix = match is_absolute {
        true => format!("--strip-prefix={root} "),
        false => String::new(),
    };
    format!(
        "a list of hashdeep; use: bc integrity import {prefix}--output=list.jsonl {list} && \
         bc integrity verify --mode=content {root} list.jsonl"
    )
}
