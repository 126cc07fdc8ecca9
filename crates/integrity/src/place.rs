//! Place of a tree: the fields of a manifest's header beyond the name of the host.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_fs::volume::uuid_at;
use bc_manifest::integrity::Header;

use crate::mounts::Mounts;
use crate::tree::Tree;

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
    if matches!((header.root_dev, now), (Some(then), Some(now)) if then != now) {
        return true;
    }
    let Some(then) = header.fs_uuid.as_ref() else {
        return false;
    };
    let source = tree.real.as_ref().zip(tree.mounts.as_ref());
    let source = source.and_then(|(real, mounts): (_, &Mounts)| mounts.of(real));
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
