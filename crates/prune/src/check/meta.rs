//! Metadata of the files that a step is about: compared before names are merged, given to copies,
//! and what is said of a difference.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};

use bc_edit::metadata::{
    ACCESS_ACL, CAPABILITIES, DEFAULT_ACL, FileMetadata, GivenMode, GivenParts, GivenTimes,
    MetadataPart, NotGiven, PresentAcl, SET_ID, Subject, is_given,
};
use bc_fs::caller::Caller;
use bc_fs::dirfd;
use bc_fs::meta::{self, Attributed, NoFile, XattrReader, is_clipped};
use bc_walk::{FileKind, FileStat};
use rustix::fs::{self, Mode};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use crate::skip::Skip;

/// Reads the metadata of an open file in a known state, or of a link that is held as a place alone:
/// of that without attributes, which it cannot be asked for.
pub(crate) fn read_metadata(
    file: &OwnedFd,
    stat: &FileStat,
    atime_ns: impl Into<i128>,
) -> Result<FileMetadata, Skip> {
    // Removed meanwhile, or listed but for others to read.
    let reader = || XattrReader::new(&[Errno::NODATA]);
    let atime_ns = atime_ns.into();
    Ok(match stat.kind() {
        FileKind::Symlink => FileMetadata::with_xattrs(file, stat, atime_ns, Vec::new())?,
        _ => FileMetadata::read(file, stat, atime_ns, &mut reader())?,
    })
}

/// Returns a difference that would be lost if one name were made another name of the other file.
/// Times do not count.
pub(crate) fn difference(one: &FileMetadata, other: &FileMetadata) -> Option<&'static str> {
    let acl = MetadataPart::Attribute(ACCESS_ACL);
    let mut parts = one
        .differing(other)
        .filter(|part| *part != MetadataPart::Times);
    Some(match parts.next()? {
        MetadataPart::Owner => "owner",
        MetadataPart::Mode => "mode",
        first if first == acl || parts.any(|part| part == acl) => "ACL",
        _ => "an extended attribute",
    })
}

/// Returns a part of `wanted`, other than times, that `has` lacks.
pub(crate) fn lacking(wanted: &FileMetadata, has: &FileMetadata) -> Option<&'static str> {
    wanted.differing(has).find_map(|part| match part {
        MetadataPart::Owner => Some("owner"),
        MetadataPart::Mode => Some("mode"),
        MetadataPart::Attribute(name) => wanted.xattr(name).map(|_| "attributes"),
        _ => None,
    })
}

/// Returns the part of `own` that would be lost if only a file that has `other` were left: of those
/// that `wanted` has as well, or of all if it is not given.
pub(crate) fn not_in(
    own: &FileMetadata,
    other: &FileMetadata,
    wanted: Option<&FileMetadata>,
) -> Option<String> {
    let has = |part: &MetadataPart<'_>| match part {
        MetadataPart::Attribute(name) => own.xattr(name).is_some(),
        _ => true,
    };
    let is_wanted = |part: &MetadataPart<'_>| {
        wanted.is_none_or(|wanted| own.differing(wanted).all(|differs| differs != *part))
    };
    let mut parts = own.differing(other);
    let lost = parts.find(|part| has(part) && is_wanted(part))?;
    Some(match lost {
        MetadataPart::Times => "modification time".to_owned(),
        part => named(part),
    })
}

/// Returns the metadata for a file that comes back as a copy from where it was moved to. It has
/// `now` and was given `made` there: a part that still is as given gets its value from `before`,
/// any other stays as it is now. Without `made` it is taken to have been given everything but
/// attributes that it lacks.
pub(crate) fn carried_back(
    now: &FileMetadata,
    made: Option<&FileMetadata>,
    before: &FileMetadata,
) -> FileMetadata {
    fn pick<T: PartialEq>(now: T, made: Option<T>, before: T) -> T {
        if made.is_some_and(|made| made == now) {
            before
        } else {
            now
        }
    }
    let names = now.xattrs.iter().chain(&before.xattrs);
    let names: BTreeSet<&Vec<u8>> = names.map(|(name, _)| name).collect();
    let xattrs = names.into_iter().filter_map(|name| {
        let (has, earlier) = (now.xattr(name), before.xattr(name));
        let value = match made {
            Some(made) => pick(has, Some(made.xattr(name)), earlier),
            None => has.or(earlier),
        };
        Some((name.clone(), value?.to_vec()))
    });
    FileMetadata {
        mode: pick(now.mode, made.map(|made| made.mode), before.mode),
        uid: pick(now.uid, made.map(|made| made.uid), before.uid),
        gid: pick(now.gid, made.map(|made| made.gid), before.gid),
        atime_ns: now.atime_ns,
        mtime_ns: pick(
            now.mtime_ns,
            made.map(|made| made.mtime_ns),
            before.mtime_ns,
        ),
        xattrs: xattrs.collect(),
    }
}

/// Returns the part that a copy of `source`'s content may be given, so that no user gets content of
/// his choice run as another user, however well it matches a digest. What the source itself `has`,
/// if that is given, may be done with its content already. The second value lists what is left out.
pub(crate) fn entitled(
    mut metadata: FileMetadata,
    source: &FileStat,
    has: Option<&FileMetadata>,
) -> (FileMetadata, Vec<String>) {
    let mut left_out = Vec::new();
    let (uid, owned) = (
        metadata.uid,
        (source.uid, source.gid) == (metadata.uid, metadata.gid),
    );
    if metadata.mode & SET_ID != 0 && !owned {
        metadata.mode &= !SET_ID;
        left_out.push(named(MetadataPart::SetId));
    }
    let before = metadata.xattrs.len();
    metadata.xattrs.retain(|(name, value)| {
        let has = || has.and_then(|has| has.xattr(name)) == Some(value.as_slice());
        name != CAPABILITIES || source.uid == 0 || uid == source.uid && has()
    });
    if metadata.xattrs.len() < before {
        left_out.push("capabilities: the content is not root's".to_owned());
    }
    (metadata, left_out)
}

/// Gives all of it to a new file of our own making, or to one that has its name already. Returns the
/// parts that the system refuses; the rest is done all the same.
pub(crate) fn give_metadata(
    metadata: &FileMetadata,
    file: &OwnedFd,
    acl: PresentAcl,
) -> Vec<String> {
    let parts = GivenParts {
        acl,
        ..GivenParts::ALL
    };
    let not_given = metadata.give(&Subject::open(file.as_fd()), &parts);
    not_given.iter().map(said).collect()
}

/// Gives a symbolic link of our own making, which is held with `O_PATH`, its owner and its times.
pub(crate) fn give_link_metadata(metadata: &FileMetadata, link: &OwnedFd) -> Result<(), Errno> {
    let parts = GivenParts {
        mode: GivenMode::Kept,
        xattrs: false,
        acl: PresentAcl::Kept,
        ..GivenParts::ALL
    };
    let not_given = metadata.give(&Subject::link(link.as_fd()), &parts);
    not_given.last().map_or(Ok(()), |lost| Err(lost.errno))
}

/// Reads the metadata of the directory at a path; `None` where that cannot be seen.
pub(crate) fn read_dir_metadata(path: &[u8]) -> Option<FileMetadata> {
    let dir = dirfd::open_root(path).ok()?;
    let stat = meta::stat(&dir).ok()?;
    let path = dirfd::own_path(&dir);
    let place: Attributed<'_, NoFile> = Attributed::Through(path.as_bytes());
    let xattrs = XattrReader::new(&[]).all(place).ok()?;
    FileMetadata::with_xattrs(&dir, &stat, 0, xattrs).ok()
}

/// Gives a directory that was made for its owner alone, and is held as a place, the owner, the
/// attributes and the permissions of another one, and takes from it the lists that it inherited; its
/// owner may always use it. Where it cannot have the group, nobody else gets what that may do:
/// everybody but the owner may do what everybody might before. Without `metadata` it stays its
/// owner's alone.
///
/// # Errors
/// If its owner cannot be seen.
pub(crate) fn give_dir_metadata(metadata: Option<FileMetadata>, dir: &OwnedFd) -> Result<(), Skip> {
    let subject = Subject::place(dir.as_fd());
    let own = GivenParts {
        owner: true,
        mode: GivenMode::Kept,
        xattrs: false,
        times: GivenTimes::Kept,
        acl: PresentAcl::Kept,
    };
    if let Some(metadata) = &metadata {
        // As far as this user may.
        let _ = metadata.give(&subject, &own);
    }
    let now = meta::stat(dir)?;
    let mut wanted = match metadata {
        Some(metadata) => metadata,
        None => FileMetadata::with_xattrs(dir, &now, 0, Vec::new())?,
    };
    if now.gid != wanted.gid {
        let bits = wanted.xattr(ACCESS_ACL).map_or(wanted.mode, |list| {
            bc_edit::metadata::mode_without_acl(wanted.mode, list)
        });
        let all = bits & bits >> 3 & 0o007;
        wanted.mode = bits & 0o700 | all << 3 | all;
        wanted
            .xattrs
            .retain(|(name, _)| name != ACCESS_ACL && name != DEFAULT_ACL);
    }
    wanted.mode = wanted.mode & 0o777 | 0o700;
    let rest = GivenParts {
        owner: false,
        mode: GivenMode::Recorded,
        xattrs: true,
        acl: PresentAcl::Inherited,
        ..own
    };
    // What is refused leaves less access, never more.
    let _ = wanted.give(&subject, &rest);
    Ok(())
}

/// Gives a file both times alone.
pub(crate) fn give_times(metadata: &FileMetadata, file: &OwnedFd) -> Result<(), Errno> {
    metadata.give_times(&Subject::open(file.as_fd()), GivenTimes::Both)
}

/// Returns true if the caller may give a new file of its own an extended attribute of this name.
fn may_set(caller: &Caller, name: &[u8]) -> bool {
    let needed = match name {
        CAPABILITIES => CapabilitySet::SETFCAP,
        name if name.starts_with(b"security.") || name.starts_with(b"trusted.") => {
            CapabilitySet::SYS_ADMIN
        }
        _ => return true,
    };
    caller.has(needed)
}

/// Returns the metadata that a new file of the caller's would have once it is [given](give_metadata) this,
/// and the parts that would be listed as refused: by the rules of the kernel and by the attributes
/// that the file system `takes`, without a try.
pub(crate) fn foresee(
    metadata: &FileMetadata,
    caller: &Caller,
    takes: impl Fn(&[u8]) -> bool,
) -> (FileMetadata, Vec<String>) {
    let mut made = metadata.clone();
    let mut refused = Vec::new();
    let mut note = |part: MetadataPart<'_>, errno| refused.push(said(&NotGiven { part, errno }));
    let owned = caller.may_give(None, metadata.owner()).is_ok();
    if !owned {
        note(MetadataPart::Owner, Errno::PERM);
        // No owner, as it is not known which group the file would have.
        (made.uid, made.gid) = (u32::MAX, u32::MAX);
        made.mode &= !SET_ID;
    }
    made.xattrs.retain(|(name, _)| {
        if !is_given(name) || !owned && name == CAPABILITIES {
            return false;
        }
        let errno = match (takes(name), may_set(caller, name)) {
            (false, _) => Errno::OPNOTSUPP,
            (true, false) => Errno::PERM,
            (true, true) => return true,
        };
        note(MetadataPart::Attribute(name), errno);
        false
    });
    if [metadata.atime_ns, metadata.mtime_ns]
        .into_iter()
        .any(is_clipped)
    {
        note(MetadataPart::Times, Errno::OVERFLOW);
    }
    if made.mode != metadata.mode {
        note(MetadataPart::SetId, Errno::PERM);
    }
    if !owned && metadata.xattr(CAPABILITIES).is_some() {
        note(MetadataPart::Capabilities, Errno::PERM);
    }
    (made, refused)
}

/// Returns the message about a part that a file was not given.
fn said(lost: &NotGiven<'_>) -> String {
    let what = named(lost.part);
    match lost.part {
        // With the reason.
        MetadataPart::SetId | MetadataPart::Capabilities => what,
        _ => format!("{what}: {}", std::io::Error::from(lost.errno)),
    }
}

/// Returns the name of a part, as messages have it.
fn named(part: MetadataPart<'_>) -> String {
    let name = match part {
        MetadataPart::Owner => "owner",
        MetadataPart::InheritedAcl => "ACL of the directory",
        MetadataPart::Attribute(name) => {
            return format!("attribute {}", bc_fs::Escaped(name));
        }
        MetadataPart::Times => "times",
        MetadataPart::Mode => "mode",
        MetadataPart::SetId => "set-user-ID and set-group-ID: the owner is not the recorded one",
        MetadataPart::Capabilities => "capabilities: the owner is not the recorded one",
    };
    name.to_owned()
}

/// Returns true if the file system of a directory has attributes of this kind; it is asked for one.
pub(crate) fn takes_attribute(dir: &OwnedFd, name: &[u8]) -> bool {
    let flags = fs::OFlags::RDONLY | fs::OFlags::DIRECTORY | fs::OFlags::CLOEXEC;
    let Ok(dir) = fs::openat(dir, c".", flags, Mode::empty()) else {
        return true;
    };
    fs::fgetxattr(&dir, name, &mut [0_u8; 0][..]) != Err(Errno::OPNOTSUPP)
}
