//! A tree as it is: every name with its kind, content and times, read plainly.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result};
use bc_testkit::reference::{self, Found};
use rustix::fs::FileType;

type SnapshotName = Vec<u8>;

/// A tree at one moment.
pub(super) struct Snapshot {
    entries: BTreeMap<SnapshotName, (Found, Vec<u8>)>,
}

impl Snapshot {
    /// Reads everything below `root`.
    pub(super) fn of(root: &Path) -> Result<Snapshot> {
        let mut entries = BTreeMap::new();
        for found in reference::listing(root).with_context(|| root.display().to_string())? {
            let content = match found.kind() {
                FileType::RegularFile => reference::read(root, &found.path)
                    .with_context(|| found.path.escape_ascii().to_string())?,
                _ => found.target.clone().unwrap_or_default(),
            };
            entries.insert(found.path.clone(), (found, content));
        }
        Ok(Snapshot { entries })
    }

    /// Returns the regular files with their contents.
    pub(super) fn files(&self) -> impl Iterator<Item = (&SnapshotName, &Found, &Vec<u8>)> {
        self.entries
            .iter()
            .filter(|(_, (found, _))| found.kind() == FileType::RegularFile)
            .map(|(name, (found, content))| (name, found, content))
    }

    /// Contents that some regular file has.
    pub(super) fn contents(&self) -> BTreeSet<&[u8]> {
        self.files().map(|(_, _, content)| &content[..]).collect()
    }

    /// Returns the differences now, name by name: kind, content, link target, mode, owner, mtime,
    /// and the sets of names that are one file.
    pub(super) fn differences(&self, now: &Snapshot) -> Vec<String> {
        let mut reported = Vec::new();
        for name in self
            .entries
            .keys()
            .chain(now.entries.keys())
            .collect::<BTreeSet<_>>()
        {
            let shown = name.escape_ascii();
            match (self.entries.get(name), now.entries.get(name)) {
                (Some(_), None) => reported.push(format!("{shown} is gone")),
                (None, Some(_)) => reported.push(format!("{shown} is new")),
                (Some(old), Some(new)) => {
                    if let Some(what) = difference(old, new) {
                        reported.push(format!("{shown} has another {what}"));
                    }
                }
                (None, None) => {}
            }
        }
        let (old, new) = (self.partition(), now.partition());
        if let Some(names) = old.symmetric_difference(&new).next() {
            let first = names.first().map(|n| n.escape_ascii().to_string());
            reported.push(format!(
                "other names are one file: {}",
                first.unwrap_or_default()
            ));
        }
        reported
    }

    /// Returns the number of directories that have another mtime now.
    pub(super) fn other_times(&self, now: &Snapshot) -> usize {
        let directories = self
            .entries
            .iter()
            .filter(|(_, (found, _))| found.kind() == FileType::Directory);
        let time = |found: &Found| (found.stat.st_mtime, found.stat.st_mtime_nsec);
        directories
            .filter(|(name, (found, _))| {
                now.entries
                    .get(*name)
                    .is_some_and(|(other, _)| time(found) != time(other))
            })
            .count()
    }

    /// Returns the sets of names that are one inode.
    fn partition(&self) -> BTreeSet<Vec<&SnapshotName>> {
        let mut sets: HashMap<(u64, u64), Vec<&SnapshotName>> = HashMap::new();
        for (name, found, _) in self.files() {
            sets.entry(found.identity()).or_default().push(name);
        }
        sets.into_values().filter(|names| names.len() > 1).collect()
    }

    /// Returns true if a file has more names than are found under its inode number, although all
    /// its names are in the tree: the names have different numbers.
    pub(super) fn numbers_names_apart(&self) -> bool {
        // As wide as the counts of the system, which differ from machine to machine.
        let mut names: HashMap<_, _> = HashMap::new();
        for (_, found, _) in self.files() {
            *names.entry(found.identity()).or_insert(0) += 1;
        }
        self.files()
            .any(|(_, found, _)| found.stat.st_nlink > names[&found.identity()])
    }

    /// Returns the names that no longer lead to the same content, symbolic links followed; those
    /// that lead nowhere come second.
    pub(super) fn misled(&self, root: &Path) -> (Vec<String>, Vec<String>) {
        let (mut other, mut gone) = (Vec::new(), Vec::new());
        for (name, _, content) in self.files() {
            match std::fs::read(root.join(OsStr::from_bytes(name))) {
                Ok(now) if now == *content => {}
                Ok(_) => other.push(name.escape_ascii().to_string()),
                Err(_) => gone.push(name.escape_ascii().to_string()),
            }
        }
        (other, gone)
    }
}

fn difference(old: &(Found, Vec<u8>), new: &(Found, Vec<u8>)) -> Option<&'static str> {
    let (a, b) = (&old.0.stat, &new.0.stat);
    let is_file = old.0.kind() == FileType::RegularFile;
    if old.0.kind() != new.0.kind() {
        Some("kind")
    } else if old.1 != new.1 {
        Some(if is_file { "content" } else { "target" })
    } else if a.st_mode != b.st_mode {
        Some("mode")
    } else if (a.st_uid, a.st_gid) != (b.st_uid, b.st_gid) {
        Some("owner")
    } else if is_file && (a.st_mtime, a.st_mtime_nsec) != (b.st_mtime, b.st_mtime_nsec) {
        Some("mtime")
    } else {
        None
    }
}

/// Returns the first of some findings, and how many there are.
pub(super) fn shown(reported: &[String]) -> String {
    match reported {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first, ..] => format!("{first}; {} in all", reported.len()),
    }
}
