//! Paths as bytes, taken apart and put together without a look at any file.

/// The path up to the last slash (without it, but `/` for the root), and the rest.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (b"/", &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// The rest of a path behind the directory `root` and a slash; `None` where `root` is not all of
/// the components that the path begins with, or there is no rest.
pub fn below<'p>(path: &'p [u8], root: &[u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(root).filter(|_| !root.is_empty())?;
    let rest = match root.ends_with(b"/") {
        true => rest,
        false => rest.strip_prefix(b"/")?,
    };
    Some(rest).filter(|rest| !rest.is_empty())
}

/// Another name in the directory of `path`.
pub fn sibling(path: &[u8], name: &[u8]) -> Vec<u8> {
    let base = split(path).1.len();
    [&path[..path.len() - base], name].concat()
}

/// Appends the components of `rest` to `dir`.
pub fn join(dir: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut path = dir.to_vec();
    for part in rest.split(|byte| *byte == b'/') {
        if matches!(part, b"" | b".") {
            continue;
        }
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_is_told_by_components() {
        for (path, root, rest) in [
            ("r/f", "r", Some("f")),
            ("r/ef/f", "r/", Some("ef/f")),
            ("/f", "/", Some("f")),
            ("./f", ".", Some("f")),
            ("r//f", "r", Some("/f")),
            ("ref/f", "r", None),
            ("/f", "", None),
            ("f", "", None),
            ("r", "r", None),
            ("r/", "r", None),
            ("r", "r/", None),
        ] {
            let rest = rest.map(str::as_bytes);
            assert_eq!(
                below(path.as_bytes(), root.as_bytes()),
                rest,
                "{path} {root}"
            );
        }
    }

    #[test]
    fn names_and_their_directories() {
        assert_eq!(split(b"/x"), (&b"/"[..], &b"x"[..]));
        assert_eq!(split(b"x"), (&b""[..], &b"x"[..]));
        assert_eq!(split(b"a/b/x"), (&b"a/b"[..], &b"x"[..]));
        for (path, beside) in [
            ("x", "y"),
            ("/x", "/y"),
            ("a/x", "a/y"),
            ("a/", "a/y"),
            ("", "y"),
        ] {
            assert_eq!(sibling(path.as_bytes(), b"y"), beside.as_bytes());
        }
    }
}
