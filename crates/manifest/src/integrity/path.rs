//! Paths that an integrity manifest may contain, and their order.

use std::cmp::Ordering;

/// The path of the root's own entry.
pub const ROOT: &[u8] = b".";

/// Returns the order of entries: the root first, then bytewise by the whole path.
pub fn path_order(a: &[u8], b: &[u8]) -> Ordering {
    (a != ROOT, a).cmp(&(b != ROOT, b))
}

/// Accepts a path that stays below the root and has one spelling only.
///
/// # Errors
/// Description of the mistake.
pub fn check_path(path: &[u8]) -> Result<(), &'static str> {
    if path == ROOT || is_plain(path) {
        return Ok(());
    }
    if path.first() == Some(&b'/') {
        return Err("absolute path");
    }
    if path.contains(&0) {
        return Err("NUL in the path");
    }
    for component in path.split(|&b| b == b'/') {
        match component {
            b"" => return Err("empty component in the path"),
            b"." | b".." => return Err("`.` or `..` in the path"),
            _ => {}
        }
    }
    Ok(())
}

/// True if nothing in this path needs a closer look. Most are like that, and without early exits
/// the loops are a few vector instructions.
fn is_plain(path: &[u8]) -> bool {
    let suspect = |&byte: &u8| byte == b'/' || byte == b'.';
    if path.first().is_none_or(suspect) || path.last() == Some(&b'/') {
        return false;
    }
    let zero = path.iter().fold(false, |any, &byte| any | (byte == 0));
    let pairs = path.iter().zip(&path[1..]);
    !pairs.fold(zero, |any, (&byte, next)| {
        any | ((byte == b'/') & suspect(next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_comes_first() {
        let mut paths = [
            &b"a/b"[..],
            b"a-",
            b".",
            b"a",
            b"-",
            b"a.b",
            b"\xff",
            b"...",
            b"A",
        ];
        paths.sort_by(|a, b| path_order(a, b));
        assert_eq!(
            paths,
            [
                &b"."[..],
                b"-",
                b"...",
                b"A",
                b"a",
                b"a-",
                b"a.b",
                b"a/b",
                b"\xff"
            ]
        );
    }

    #[test]
    fn refuses_what_leaves_the_root() {
        for bad in [
            &b""[..],
            b"/",
            b"/a",
            b"..",
            b"a/..",
            b"../a",
            b"a/../b",
            b"./a",
            b"a/.",
            b"a//b",
            b"a/",
            b"a\0",
        ] {
            assert!(check_path(bad).is_err(), "{}", bad.escape_ascii());
        }
        for good in [&b"."[..], b"a", b"...", b"..a/.b", b"a\\b", b"\xff\n"] {
            assert!(check_path(good).is_ok(), "{}", good.escape_ascii());
        }
    }
}
