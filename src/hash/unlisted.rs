//! Files that no manifest lists, for `bc hash check --unlisted`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use bc_walk::Metadata;

use super::args::CheckArgs;
use crate::args::WalkArgs;
use crate::run::{Outcome, Session};

/// Files below the base, or below the directories of the listed files, that no manifest lists.
pub fn find(
    args: &CheckArgs,
    session: &Session,
    listed: &HashSet<Vec<u8>>,
) -> Outcome<Vec<Vec<u8>>> {
    let roots = match &args.base {
        Some(base) => vec![base.clone().into_os_string()],
        None => top_directories(listed),
    };
    let mut options = session.walk_options(&WalkArgs::default(), Metadata::None, None)?;
    let manifests = args.manifests.iter();
    options
        .leave_out
        .extend(manifests.filter_map(|name| crate::output::replaced(Some(Path::new(name)))));
    let listing = session.listing(&roots, &WalkArgs::default(), &options)?;
    Ok(listing
        .ids()
        .map(|id| listing.path(id))
        .filter(|path| !listed.contains(normal(path)))
        .collect())
}

/// The directories of `paths`, without those below another one.
fn top_directories(paths: &HashSet<Vec<u8>>) -> Vec<OsString> {
    let parent = |path: &Vec<u8>| match path.iter().rposition(|b| *b == b'/') {
        Some(0) => b"/".to_vec(),
        Some(at) => path[..at].to_vec(),
        None => b".".to_vec(),
    };
    let mut all: Vec<Vec<u8>> = paths.iter().map(parent).collect();
    all.sort();
    all.dedup();
    let below = |inner: &[u8], outer: &[u8]| {
        inner != outer
            && match outer {
                b"." => !inner.starts_with(b"/"),
                b"/" => inner.starts_with(b"/"),
                _ => inner.starts_with(outer) && inner.get(outer.len()) == Some(&b'/'),
            }
    };
    all.iter()
        .filter(|inner| !all.iter().any(|outer| below(inner, outer)))
        .map(|path| OsString::from_vec(path.clone()))
        .collect()
}

/// `./a//b` and `a/b` are one name.
pub fn normal(path: &[u8]) -> &[u8] {
    let mut path = path;
    while let Some(rest) = path.strip_prefix(b"./") {
        path = rest;
        while let Some(rest) = path.strip_prefix(b"/") {
            path = rest;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_to_search_for_unlisted_files() {
        let top = |paths: &[&str]| {
            let set = paths.iter().map(|p| p.as_bytes().to_vec()).collect();
            let found: Vec<String> = top_directories(&set)
                .iter()
                .map(|d| d.to_string_lossy().into_owned())
                .collect();
            found.join(" ")
        };
        assert_eq!(top(&["a/b/c", "a/d", "e/f", "a-b/x"]), "a a-b e");
        assert_eq!(top(&["x", "a/b"]), ".");
        assert_eq!(top(&["/x", "/a/b"]), "/");
        assert_eq!(top(&["../x", "/a/b"]), ".. /a");
    }

    #[test]
    fn same_name_written_differently() {
        assert_eq!(normal(b"./a/b"), b"a/b");
        assert_eq!(normal(b".//./a"), b"a");
        assert_eq!(normal(b".hidden"), b".hidden");
        assert_eq!(normal(b"../a"), b"../a");
    }
}
