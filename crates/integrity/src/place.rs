//! Where a tree lies: what a manifest's header says of it beyond the name of the host.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_fs::uuid_at;
use bc_manifest::integrity::Header;

use crate::mounts::Mounts;
use crate::tree::Tree;

/// Who writes a manifest: for its header. What is `None` is not known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Origin {
    /// The host's name.
    pub host: Option<String>,
    /// The machine's id, as `/etc/machine-id` has it.
    pub machine: Option<String>,
}

impl Origin {
    /// Nothing is known.
    pub const UNKNOWN: Origin = Origin {
        host: None,
        machine: None,
    };

    /// This host by its name, and this machine by its id (machine-id(5)), which tells apart hosts of
    /// one name.
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

/// Records in `header` where `tree` lies and who says so; what is not known of the origin stays
/// as it was.
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

/// The UUID of the root's file system.
fn uuid(tree: &Tree, source: Option<&str>) -> Option<String> {
    let real = tree.real.as_deref()?;
    uuid_at(directory(real), tree.root().map(|stat| stat.id.dev), source)
}

/// A root that is a file is never opened for this: it may be no regular one.
fn directory(root: &Path) -> PathBuf {
    match root.parent() {
        Some(parent) if !root.is_dir() => parent.to_owned(),
        _ => root.to_owned(),
    }
}

/// Is the root on another device, or another file system, than when it was recorded? Numbers of
/// devices change from boot to boot, and may come to another disk's.
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

/// Is the root where it was recorded, on the same file system and in the same part of it? Its inode
/// number can then be compared.
pub(crate) fn is_at_home(tree: &Tree, header: &Header, elsewhere: bool) -> bool {
    let real = tree.real.as_deref().map(|real| real.as_os_str().as_bytes());
    !elsewhere
        && real.is_some()
        && header.root.as_deref() == real
        && why_suspicious(tree, header, elsewhere).is_none()
}

/// The recorded root, as messages name it.
pub(crate) fn recorded_root(header: &Header) -> String {
    match &header.root {
        Some(root) => bc_fs::escape(root).into_owned(),
        None => "what the manifest lists".to_owned(),
    }
}

/// Why the root may be another one than was recorded, so that it has to be refused if nothing in it
/// matches.
pub(crate) fn why_suspicious(
    tree: &Tree,
    header: &Header,
    elsewhere: bool,
) -> Option<&'static str> {
    if elsewhere {
        return Some("is on another device than recorded, and nothing in it matches");
    }
    // A bind mount at the same path, and what lies below it, may have one device.
    let real = tree.real.as_deref()?;
    let is = &tree.mounts.as_ref()?.of(real)?.root;
    let was = header.mount_root.as_ref()?;
    let same_path = header.root.as_deref() == Some(real.as_os_str().as_bytes());
    (same_path && was != is)
        .then_some("shows another part of the disk than recorded, and nothing in it matches")
}
