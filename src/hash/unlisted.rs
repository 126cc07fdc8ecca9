//! Files that no manifest lists, for `bc hash check --unlisted`.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bc_walk::Metadata;

use super::args::CheckArgs;
use crate::parse::args::WalkArgs;
use crate::session::{Outcome, Session};

/// Returns the files below the base, or below the directories of the listed files, that no manifest
/// lists.
pub fn find(
    args: &CheckArgs,
    session: &Session,
    listed: &HashSet<Vec<u8>>,
) -> Outcome<Vec<Vec<u8>>> {
    let roots = match &args.base {
        Some(base) => vec![base.clone().into_os_string()],
        None => {
            let mut tops = top_directories(listed);
            // One that is gone holds none; its listed files are missed where they are looked for.
            tops.retain(|dir| !is_missing(Path::new(dir)));
            tops
        }
    };
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let mut options = session.walk_options(&WalkArgs::default(), Metadata::None, None)?;
    let manifests = args.manifests.iter();
    options
        .leave_out
        .extend(manifests.filter_map(|name| crate::files::output::replaced(Some(Path::new(name)))));
    let listing = session.listing(&roots, &WalkArgs::default(), &options)?;
    let mut found: Vec<Vec<u8>> = listing
        .ids()
        .map(|id| listing.path(id))
        .filter(|path| !listed.contains(normal(path)))
        .collect();
    if !found.is_empty() {
        // One name has many spellings: through `..`, through links, from the root.
        let mut places = AskedDirs::default();
        let listed: HashSet<Place> = listed.iter().filter_map(|path| places.of(path)).collect();
        found.retain(|path| places.of(path).is_none_or(|place| !listed.contains(&place)));
    }
    Ok(found)
}

fn is_missing(path: &Path) -> bool {
    let found = path.metadata();
    found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// A name in a directory without links: the same however it is written. Numbers of devices and
/// inodes would not do: a view of two disks may show both by one.
type Place = (Arc<Path>, Vec<u8>);

/// The directories asked for so far, as they were written.
#[derive(Default)]
struct AskedDirs(HashMap<Vec<u8>, Option<Arc<Path>>>);

impl AskedDirs {
    /// Returns the real directory of a path, and its name; `None` where the directory is gone, or
    /// the path ends in none.
    fn of(&mut self, path: &[u8]) -> Option<Place> {
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        if matches!(name, b"" | b"." | b"..") {
            return None;
        }
        let dir = self.0.entry(parent(path)).or_insert_with_key(|dir| {
            let real = Path::new(OsStr::from_bytes(dir)).canonicalize();
            real.ok().map(Arc::from)
        });
        Some((dir.clone()?, name.to_vec()))
    }
}

/// Returns the directory of a path, as the path spells it.
fn parent(path: &[u8]) -> Vec<u8> {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => b"/".to_vec(),
        Some(at) => path[..at].to_vec(),
        None => b".".to_vec(),
    }
}

/// Returns the directories of `paths`, without those below another one.
fn top_directories(paths: &HashSet<Vec<u8>>) -> Vec<OsString> {
    let mut all: Vec<Vec<u8>> = paths.iter().map(|path| parent(path)).collect();
    all.sort();
    all.dedup();
    let below = |inner: &[u8], outer: &[u8]| {
        inner != outer
            && !inner.split(|byte| *byte == b'/').any(|part| part == b"..")
            && match outer {
                b"." => !inner.starts_with(b"/"),
                b"/" => inner.starts_with(b"/"),
                _ => inner.starts_with(outer) && inner.get(outer.len()) == Some(&b'/'),
            }
    };
    let tops: Vec<&Vec<u8>> = all
        .iter()
        .filter(|inner| !all.iter().any(|outer| below(inner, outer)))
        .collect();
    // The others may be written in different ways, and lie within one another all the same.
    let real = |path: &&Vec<u8>| Path::new(OsStr::from_bytes(path)).canonicalize().ok();
    let real: Vec<Option<PathBuf>> = match tops.len() {
        1 => vec![None],
        _ => tops.iter().map(real).collect(),
    };
    let is_within = |inner: usize, outer: usize| match (&real[inner], &real[outer]) {
        (Some(a), Some(b)) if a == b => outer < inner,
        (Some(a), Some(b)) => a.starts_with(b),
        _ => false,
    };
    let alone = (0..tops.len()).filter(|&at| !(0..tops.len()).any(|outer| is_within(at, outer)));
    alone
        .map(|at| OsString::from_vec(tops[at].clone()))
        .collect()
}

/// Returns the path without `./` at its start, and the slashes after that.
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
        // Neither is below the other as it is written.
        assert_eq!(top(&["x", "../y"]), "..");
        assert_eq!(top(&["x", "src/../y"]), ".");
    }

    #[test]
    fn same_name_written_differently() {
        assert_eq!(normal(b"./a/b"), b"a/b");
        assert_eq!(normal(b".//./a"), b"a");
        assert_eq!(normal(b".hidden"), b".hidden");
        assert_eq!(normal(b"../a"), b"../a");
    }
}
