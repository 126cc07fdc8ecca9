//! Place of a tree, recorded in the header of its manifest, and evidence that a tree, or a file
//! system below it, is the recorded one. Roots that cannot be are refused.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_fs::volume::uuid_at;
use bc_manifest::integrity::{Header, Kind, ROOT};
use bc_walk::job::{Error, ErrorKind, Setting, path_of};

use crate::entry_ref::EntryRef;
use crate::input::stream::ManifestStream;
use crate::input::{ManifestFile, Trust};
use crate::options::{RootCheck, TreeOptions};
use crate::tree::Tree;
use crate::tree::mounts::MountTable;

/// Host and machine that write a manifest, for its header. Unknown ones are `None`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Origin {
    /// Name of the host.
    pub host: Option<String>,
    /// The machine's id, as `/etc/machine-id` has it.
    pub machine: Option<String>,
}

impl Origin {
    /// Neither is known.
    pub const UNKNOWN: Origin = Origin {
        host: None,
        machine: None,
    };

    /// Returns the name of this host and the id of this machine (machine-id(5)), which
    /// distinguishes hosts of one name.
    pub fn of_this_machine() -> Origin {
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let machine = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
            .iter()
            .find_map(|path| std::fs::read_to_string(path).ok())
            .map(|id| id.trim().to_owned())
            .filter(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        Origin {
            host: Some(host),
            machine,
        }
    }
}

/// Records in `header` the place of `tree` and the origin; unknown parts of the origin stay as they
/// were.
pub(crate) fn record(header: &mut Header, tree: &Tree, root: &OsStr, origin: &Origin) {
    if origin.host.is_some() || origin.machine.is_some() {
        header.host.clone_from(&origin.host);
        header.machine.clone_from(&origin.machine);
    }
    header.root_dev = tree.root().map(|stat| stat.id.dev).or(header.root_dev);
    header.root = Some(match &tree.real {
        Some(real) => real.as_os_str().as_bytes().to_vec(),
        None => root.as_bytes().to_vec(),
    });
    let mount = tree.real.as_deref().zip(tree.mounts.as_ref());
    let mount = mount.and_then(|(real, mounts)| mounts.of(real));
    header.mount_source = mount.map(|mount| mount.source.clone());
    header.mount_root = mount.map(|mount| mount.root.clone());
    header.fs_uuid = uuid(tree, header.mount_source.as_deref());
}

/// Returns the UUID of the root's file system.
fn uuid(tree: &Tree, source: Option<&str>) -> Option<String> {
    let real = tree.real.as_deref()?;
    uuid_at(directory(real), tree.root().map(|stat| stat.id.dev), source)
}

/// Returns the directory of a root: a root that is a file is never opened for this, since it may be
/// no regular one.
fn directory(root: &Path) -> PathBuf {
    match root.parent() {
        Some(parent) if !root.is_dir() => parent.to_owned(),
        _ => root.to_owned(),
    }
}

/// True if the root is on another device, or another file system, than when it was recorded.
/// Numbers of devices change from boot to boot, and may come to another disk's.
pub(crate) fn is_elsewhere(tree: &Tree, header: &Header) -> bool {
    let now = tree.root().map(|stat| stat.id.dev);
    let is_other = matches!((header.root_dev, now), (Some(then), Some(now)) if then != now);
    is_other || has_other_uuid(tree, header)
}

/// True if the root is on another file system than when it was recorded, by its UUID.
fn has_other_uuid(tree: &Tree, header: &Header) -> bool {
    let Some(then) = header.fs_uuid.as_ref() else {
        return false;
    };
    let source = tree.real.as_ref().zip(tree.mounts.as_ref());
    let source = source.and_then(|(real, mounts): (_, &MountTable)| mounts.of(real));
    uuid(tree, source.map(|mount| &mount.source[..])).is_some_and(|now| now != *then)
}

/// True if the root is where it was recorded, on the same file system and in the same part of it.
/// Its inode number can then be compared.
pub(crate) fn is_at_home(tree: &Tree, header: &Header, elsewhere: bool) -> bool {
    let real = tree.real.as_deref().map(|real| real.as_os_str().as_bytes());
    !elsewhere
        && real.is_some()
        && header.root.as_deref() == real
        && why_suspicious(tree, header, elsewhere).is_none()
}

/// Returns the recorded root for messages.
pub(crate) fn recorded_root(header: &Header) -> String {
    match &header.root {
        Some(root) => bc_fs::escape(root).into_owned(),
        None => "what the manifest lists".to_owned(),
    }
}

/// Returns the reason for which the root may be another one than was recorded, so that it has to be
/// refused if nothing in it matches.
pub(crate) fn why_suspicious(
    tree: &Tree,
    header: &Header,
    elsewhere: bool,
) -> Option<&'static str> {
    if elsewhere {
        return Some("is on another device than recorded, and nothing in it matches");
    }
    // A bind mount at the same path, and a directory below it, may have one device.
    let real = tree.real.as_deref()?;
    let is = &tree.mounts.as_ref()?.of(real)?.root;
    let was = header.mount_root.as_ref()?;
    let same_path = header.root.as_deref() == Some(real.as_os_str().as_bytes());
    (same_path && was != is)
        .then_some("shows another part of the disk than recorded, and nothing in it matches")
}

/// Refuses a root that is not the recorded one by its path, its file system or the part of it: for
/// runs that look at few entries, which are no evidence. Device numbers do not count; they change
/// from boot to boot.
pub(crate) fn refuse_unrecorded_root(
    tree: &Tree,
    header: &Header,
    root: &OsStr,
    check: RootCheck,
) -> Result<(), Error> {
    let real = tree.real.as_deref().map(|real| real.as_os_str().as_bytes());
    let same_path = header.root.is_none() || header.root.as_deref() == real;
    let is_recorded =
        same_path && !has_other_uuid(tree, header) && why_suspicious(tree, header, false).is_none();
    if is_recorded || check == RootCheck::Forced {
        return Ok(());
    }
    let message = format!(
        "is another directory or disk than the manifest was made of, {}",
        recorded_root(header)
    );
    let error = Error::at(ErrorKind::Refused, Path::new(root), message);
    Err(error.unless(Some(Setting::Force)))
}

/// Returns the walk options that a manifest was made with.
pub(crate) fn tree_options(header: &Header, trust: Trust) -> Result<TreeOptions, Error> {
    match (TreeOptions::from_json(&header.options), trust) {
        (Err(_), Trust::Forced) => Ok(TreeOptions::default()),
        (options, _) => options,
    }
}

impl TreeOptions {
    /// Takes the selection that a manifest was made with, to compare another tree with it. The
    /// manifest's SHA-256 is checked before, unless `trust` forces its use.
    ///
    /// # Errors
    /// If the manifest cannot be read, is cut short or altered, describes a part of a tree only, or
    /// was made with options that are not known here.
    pub fn of_manifest(manifest: &ManifestFile, trust: Trust) -> Result<TreeOptions, Error> {
        let header = manifest.header()?;
        refuse_part(manifest, &header)?;
        if trust == Trust::Checked {
            manifest.check()?;
        }
        tree_options(&header, trust)
    }
}

/// Refuses the manifest of a part of a tree: paths missing from it are not known to be gone.
pub(crate) fn refuse_part(manifest: &ManifestFile, header: &Header) -> Result<(), Error> {
    for (key, value) in [("scope", &header.scope), ("shard", &header.shard)] {
        if !value.is_null() {
            let message = format!("holds a part of a tree only ({key}: {value})");
            return Err(Error::at(
                ErrorKind::Usage,
                &path_of(manifest.name()),
                message,
            ));
        }
    }
    Ok(())
}

/// Refuses roots that cannot be the tree. One of another kind than recorded is not it, whatever is
/// forced. An empty root where entries should be looks like a disk that is not mounted.
pub(crate) fn refuse_root(
    tree: &Tree,
    manifest: &ManifestFile,
    root: &OsStr,
    check: RootCheck,
) -> Result<(), Error> {
    let mut old = manifest.again(Trust::Forced)?;
    let recorded = match old.header().scope.is_null() {
        true => recorded_shape(&mut old)?,
        // It says nothing of the root itself.
        false => None,
    };
    let shape = match tree.is_directory() {
        true => "a directory",
        false => "no directory",
    };
    if let Some(recorded) = recorded.filter(|recorded| *recorded != shape) {
        let message = format!("is {shape}; the root of the manifest is {recorded}");
        return Err(Error::at(ErrorKind::Refused, Path::new(root), message));
    }
    if !tree.is_empty() || check == RootCheck::Forced {
        return Ok(());
    }
    match old.peek()? {
        None => Ok(()),
        Some(_) => Err(refused(root, "is empty")),
    }
}

/// Returns the kind of the recorded root, directory or not, where it is certain, and moves past it:
/// a file that was the root is listed alone under its name. Lists of other tools may name one file
/// of a directory.
fn recorded_shape(old: &mut ManifestStream) -> Result<Option<&'static str>, Error> {
    if old.take_at(ROOT)?.is_some() {
        return Ok(Some("a directory"));
    }
    let root = old.header().root.clone();
    let name = root
        .as_deref()
        .and_then(|root| root.rsplit(|byte| *byte == b'/').next());
    let alone = matches!((name, old.peek()?), (Some(name), Some(entry)) if entry.path == name);
    Ok(alone.then_some("no directory"))
}

pub(crate) fn refused(root: &OsStr, what: &str) -> Error {
    let message = format!("{what}: not mounted?");
    Error::at(ErrorKind::Refused, Path::new(root), message).unless(Some(Setting::Force))
}

/// Weight as evidence of an entry that is as recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Weight {
    /// A link, or a file of no bytes.
    Light,
    /// A file that holds something.
    Full,
}

impl Weight {
    /// Returns the weight of a recorded entry; `None` for directories and special files.
    pub(crate) fn of(old: &EntryRef<'_>) -> Option<Weight> {
        match (old.kind, old.size) {
            (Kind::Symlink, _) | (Kind::File, Some(0)) => Some(Weight::Light),
            (Kind::File, _) => Some(Weight::Full),
            _ => None,
        }
    }
}

/// Recorded entries of one weight.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: u64,
    /// Number of entries that are as recorded.
    matching: u64,
}

/// Counts of recorded files and links, by weight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    light: Count,
    full: Count,
}

impl Evidence {
    /// Adds a recorded entry.
    pub(crate) fn add(&mut self, weight: Weight, matches: bool) {
        let count = self.count(weight);
        count.all += 1;
        count.matching += u64::from(matches);
    }

    /// Adds so many files that are as recorded, even empty ones: numbers and times are proof, too.
    pub(crate) fn add_files(&mut self, files: u64) {
        self.full.all += files;
        self.full.matching += files;
    }

    /// Takes back that an entry, which was added, is as recorded.
    pub(crate) fn withdraw(&mut self, weight: Weight) {
        self.count(weight).matching -= 1;
    }

    fn count(&mut self, weight: Weight) -> &mut Count {
        match weight {
            Weight::Light => &mut self.light,
            Weight::Full => &mut self.full,
        }
    }

    fn decisive(&self) -> Count {
        match self.full.all {
            0 => self.light,
            _ => self.full,
        }
    }

    /// True if it is the recorded one, whatever else is added.
    pub(crate) fn is_conclusive(&self) -> bool {
        self.full.matching > 0
    }

    /// True if anything that counts is as recorded.
    pub(crate) fn matches(&self) -> bool {
        self.decisive().matching > 0
    }

    /// True if nothing that counts is as recorded, though something is recorded.
    pub(crate) fn contradicts(&self) -> bool {
        let Count { all, matching } = self.decisive();
        all > 0 && matching == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_empty_files_count_where_there_is_nothing_else() {
        let mut evidence = Evidence::default();
        assert!(!evidence.matches() && !evidence.contradicts());
        evidence.add(Weight::Light, true);
        assert!(evidence.matches() && !evidence.is_conclusive());
        evidence.add(Weight::Full, false);
        assert!(!evidence.matches() && evidence.contradicts());
        evidence.add(Weight::Full, true);
        assert!(evidence.matches() && evidence.is_conclusive());
        evidence.withdraw(Weight::Full);
        assert!(!evidence.matches() && evidence.contradicts());
        evidence.add_files(1);
        assert!(evidence.matches() && !evidence.contradicts());
    }
}
