//! Selection of the metadata that copies are given, and what is reported of parts that a copy could
//! not be given. The order in which they are given is that of [`FileMetadata::give`].

use std::os::fd::{AsFd, BorrowedFd};

use bc_edit::metadata::{
    ACCESS_ACL, FileMetadata, GivenMode, GivenParts, GivenTimes, MetadataPart, NotGiven,
    PresentAcl, Subject, is_acl, sorted,
};
pub(crate) use bc_fs::meta::{Attributed, Xattrs};
use bc_fs::meta::{NoFile, XattrReader};
use bc_walk::FileStat;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;

use crate::options::Preserve;

/// Security label, which the policy gives.
const LABEL: &[u8] = b"security.selinux";

/// Metadata that is given to copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Giving {
    pub(crate) preserve: Preserve,
    pub(crate) times: GivenTimes,
    /// True if what users other than root cannot give counts as lost, because the source goes.
    is_strict: bool,
    umask: u32,
    /// User and group of new files.
    own: (u32, u32),
}

impl Giving {
    pub(crate) fn new(preserve: Preserve, is_strict: bool) -> Giving {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
        Giving {
            preserve,
            is_strict,
            times: match preserve.times {
                true => GivenTimes::Both,
                false => GivenTimes::Kept,
            },
            umask: mask.unwrap_or(0o077),
            own: (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
        }
    }

    /// Returns the parts that a copy is given, with the permission bits of a new file where they
    /// are not preserved. `acl` is the treatment of lists that it is not to have.
    fn parts(&self, wanted: &FileMetadata, acl: PresentAcl) -> GivenParts {
        let Preserve {
            mode,
            owner,
            xattrs,
            ..
        } = self.preserve;
        GivenParts {
            owner,
            mode: match mode {
                true => GivenMode::Recorded,
                false => GivenMode::Other(wanted.mode & 0o777 & !self.umask),
            },
            xattrs,
            times: self.times,
            // Permission bits that are those of the source mean the same only without a list
            // beside them.
            acl: match mode || xattrs {
                true => acl,
                false => PresentAcl::Kept,
            },
        }
    }

    /// Returns the permission bits with which a new file can be made, so that neither owner nor
    /// mode need be given to it afterwards; `None` where it would be open to more users, or open
    /// for writing to others, before it is complete, or where its owner could not give it its
    /// attributes any more.
    pub(crate) fn mode_from_the_start(&self, wanted: &FileMetadata, inherits: bool) -> Option<u32> {
        let Preserve { mode, owner, .. } = self.preserve;
        let bits = wanted.mode;
        let fits = mode
            && owner
            && !inherits
            && (wanted.uid, wanted.gid) == self.own
            && bits & (0o7022 | self.umask) == 0
            // The group that the directory gives it may do no more than others.
            && (bits >> 3) & !bits & 0o7 == 0
            && (wanted.xattrs.is_empty() || bits & 0o200 != 0 || self.own.0 == 0)
            && !wanted.xattrs.iter().any(|(name, _)| is_acl(name));
        fits.then_some(bits)
    }

    /// True if a file has the wanted owner, as far as this user may give one, and the wanted
    /// permission bits, where they are preserved.
    pub(crate) fn is_given(&self, wanted: &FileMetadata, file: &FileStat) -> bool {
        let Preserve { mode, owner, .. } = self.preserve;
        let is_any = !owner || !is_root() && !self.is_strict;
        (is_any || (file.uid, file.gid) == (wanted.uid, wanted.gid))
            && (!mode || file.mode & 0o7777 == wanted.mode)
    }
}

/// True if a file has these attributes and no others, except its label: the system gives labels by
/// the place.
pub(crate) fn has_xattrs(wanted: &FileMetadata, found: &Xattrs) -> bool {
    wanted.differing_xattrs(found).all(|name| name == LABEL)
}

/// Metadata that could not be given.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct LostMeta {
    /// Operation that failed.
    pub(crate) op: &'static str,
    pub(crate) errno: Errno,
}

/// Buffers for reading attributes, one for each worker.
pub(crate) struct SourceXattrs(XattrReader);

impl SourceXattrs {
    pub(crate) fn new() -> SourceXattrs {
        // Removed meanwhile, or listed but not for this user to see (trusted.*).
        SourceXattrs(XattrReader::new(&[
            Errno::NODATA,
            Errno::NOTSUP,
            Errno::PERM,
            Errno::ACCESS,
        ]))
    }

    /// Returns all attributes of an open file that this user may see, sorted by name.
    pub(crate) fn of_file(&mut self, file: BorrowedFd<'_>) -> Result<Xattrs, Errno> {
        Ok(sorted(self.0.all(Attributed::Open(file))?))
    }

    /// Returns the same of the file at `path`; a link is not followed.
    pub(crate) fn at(&mut self, path: &[u8]) -> Result<Xattrs, Errno> {
        Ok(sorted(self.0.all(Attributed::<NoFile>::At(path))?))
    }

    /// Returns the access control list of a file or directory, if it has one.
    pub(crate) fn list_of(
        &mut self,
        source: Attributed<'_, BorrowedFd<'_>>,
    ) -> Result<Option<Vec<u8>>, Errno> {
        let list = self.0.value(source, ACCESS_ACL)?;
        Ok(list.map(|list| list.to_vec()))
    }

    /// True if attributes were left out, of the last file that was asked for all of them, because
    /// this user may not read them.
    pub(crate) fn is_partial(&self) -> bool {
        self.0.is_partial()
    }

    /// Returns the metadata of a source with this `stat`, as far as copies are to have it.
    pub(crate) fn metadata(
        &mut self,
        stat: &Stat,
        source: Attributed<'_, BorrowedFd<'_>>,
        preserve: Preserve,
    ) -> Result<FileMetadata, Errno> {
        if preserve.xattrs {
            let xattrs = sorted(self.0.all(source)?);
            return Ok(FileMetadata::new(stat, xattrs));
        }
        let wanted = FileMetadata::new(stat, Vec::new());
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        match preserve.mode && !is_link {
            true => Ok(wanted.without_acl(self.0.value(source, ACCESS_ACL)?)),
            false => Ok(wanted),
        }
    }
}

/// True if this process has root's user id.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives a new file the wanted metadata; `lost` gets what could not be given. `inherits`: it may
/// have inherited an access control list from its directory.
pub(crate) fn give(
    file: &Subject<'_>,
    wanted: &FileMetadata,
    giving: &Giving,
    inherits: bool,
    lost: &mut Vec<LostMeta>,
) {
    let acl = match inherits {
        true => PresentAcl::Inherited,
        false => PresentAcl::Kept,
    };
    report(wanted.give(file, &giving.parts(wanted, acl)), giving, lost);
}

/// Gives a directory, which others may use already, the wanted metadata. `bits` are the permission bits of one that
/// was there before the copy: it keeps them where those of the source are not wanted.
pub(crate) fn give_dir(
    dir: &Subject<'_>,
    wanted: &FileMetadata,
    giving: &Giving,
    bits: Option<u32>,
    inherits: bool,
    lost: &mut Vec<LostMeta>,
) {
    let acl = match inherits || bits.is_some() {
        true => PresentAcl::InUse,
        false => PresentAcl::Kept,
    };
    let mut parts = giving.parts(wanted, acl);
    if let Some(bits) = bits.filter(|_| !giving.preserve.mode) {
        parts.acl = PresentAcl::Kept;
        parts.mode = match giving.preserve.owner {
            // A change of the owner takes some of them.
            true => GivenMode::Other(bits & 0o7777),
            false => GivenMode::Kept,
        };
    }
    report(wanted.give(dir, &parts), giving, lost);
}

/// Gives attributes and times alone.
pub(crate) fn give_rest(
    file: &Subject<'_>,
    wanted: &FileMetadata,
    giving: &Giving,
    lost: &mut Vec<LostMeta>,
) {
    let parts = GivenParts {
        owner: false,
        mode: GivenMode::Kept,
        ..giving.parts(wanted, PresentAcl::Kept)
    };
    report(wanted.give(file, &parts), giving, lost);
}

/// Adds what counts as lost. It is no failure that users other than root cannot give files away,
/// unless the source goes, nor that the policy gives another label.
fn report(not_given: Vec<NotGiven<'_>>, giving: &Giving, lost: &mut Vec<LostMeta>) {
    let is_strict = giving.is_strict;
    let has_owner = !not_given.iter().any(|one| one.part == MetadataPart::Owner);
    for NotGiven { part, errno } in not_given {
        let op = match part {
            MetadataPart::Owner if is_strict || is_root() => "chown",
            MetadataPart::Owner | MetadataPart::Attribute(LABEL) => continue,
            MetadataPart::InheritedAcl => "remove inherited ACL",
            MetadataPart::Attribute(_) | MetadataPart::Capabilities => "setxattr",
            MetadataPart::Times => "utimens",
            MetadataPart::SetId if !has_owner && !is_strict => continue,
            MetadataPart::Mode | MetadataPart::SetId => "chmod",
        };
        lost.push(LostMeta { op, errno });
    }
}

/// Changes the mode of a directory that cannot be opened; no other kind of file that took its name
/// meanwhile is changed.
pub(crate) fn chmod_dir_at(dir: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let there = retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::empty()))?;
    if FileType::from_raw_mode(fstat(&there)?.st_mode) != FileType::Directory {
        return Err(Errno::NOTDIR);
    }
    Subject::place(there.as_fd()).chmod(mode)
}

/// Returns the `stat` of what has a name in a directory; a link is a link.
pub(crate) fn stat_at(dir: impl AsFd, name: impl Arg + Copy) -> Result<FileStat, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let raw = retry_on_intr(|| rustix::fs::statat(dir.as_fd(), name, flags))?;
    Ok(FileStat::from(&raw))
}

/// Returns the `stat` of an open file.
pub(crate) fn stat(file: impl AsFd) -> Result<FileStat, Errno> {
    Ok(FileStat::from(&fstat(file)?))
}

/// Returns the `stat` of an open file as the system gives it.
pub(crate) fn fstat(file: impl AsFd) -> Result<Stat, Errno> {
    retry_on_intr(|| rustix::fs::fstat(file.as_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_count_and_order_does_not() {
        let stat = rustix::fs::stat("/").unwrap();
        let one = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
        let (a, b) = (one(b"user.a", b"1"), one(b"user.b", b"2"));
        let wanted = FileMetadata::new(&stat, vec![one(LABEL, b"x"), a.clone(), b.clone()]);
        let has_xattrs = |found| has_xattrs(&wanted, &found);
        assert!(has_xattrs(vec![b.clone(), a.clone()]));
        assert!(has_xattrs(vec![b.clone(), one(LABEL, b"y"), a.clone()]));
        assert!(!has_xattrs(vec![a.clone()]));
        assert!(!has_xattrs(vec![a.clone(), one(b"user.b", b"3")]));
        assert!(!has_xattrs(vec![a, b, one(b"user.c", b"")]));
    }

    /// An owner gives a file no attributes that its permission bits forbid it to write to.
    #[test]
    fn what_only_reads_gets_its_attributes_before_its_mode() {
        let stat = rustix::fs::stat("/").unwrap();
        let xattrs = vec![(b"user.a".to_vec(), b"1".to_vec())];
        let mut wanted = FileMetadata::new(&stat, xattrs);
        let giving = |uid| Giving {
            umask: 0o022,
            own: (uid, wanted.gid),
            ..Giving::new(Preserve::ALL, false)
        };
        let (root, user) = (giving(0), giving(1000));
        (wanted.uid, wanted.mode) = (1000, 0o444);
        assert_eq!(user.mode_from_the_start(&wanted, false), None);
        wanted.mode = 0o644;
        assert_eq!(user.mode_from_the_start(&wanted, false), Some(0o644));
        (wanted.uid, wanted.mode) = (0, 0o444);
        assert_eq!(root.mode_from_the_start(&wanted, false), Some(0o444));
        (wanted.uid, wanted.xattrs) = (1000, Vec::new());
        assert_eq!(user.mode_from_the_start(&wanted, false), Some(0o444));
    }
}
