//! The metadata of one file, read and compared.

use std::os::fd::AsFd;

use bc_fs::call::Result;
use bc_fs::meta::{self, FileStat, exact_nanoseconds, is_clipped};
use bc_fs::meta::{Attributed, XattrReader, Xattrs};
use rustix::fs::{Stat, Timespec, Timestamps};

use super::mode_without_acl;

/// Extended attribute that gives a program capabilities, whoever runs it.
pub const CAPABILITIES: &[u8] = b"security.capability";

/// Signature over an inode's metadata and number: never equal, and never to be copied.
const SIGNATURE: &[u8] = b"security.evm";

/// Prefix of the names under which XFS shows root its access control lists a second time, in a form
/// of its own.
const XFS_ACL: &[u8] = b"trusted.SGI_ACL_";

/// Nanoseconds of a second.
pub(super) const SECOND: i128 = 1_000_000_000;

/// Everything about a file that is compared, recorded and given to copies, beside its content and
/// its [flags](crate::InodeFlags).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileMetadata {
    /// Permission bits, as in `st_mode` without the type.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last access, in nanoseconds since 1970; not compared.
    pub atime_ns: i128,
    /// Last change of the content, in nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Extended attributes, sorted by name: access control lists and capabilities among them.
    pub xattrs: Xattrs,
}

/// Part of a file's metadata.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetadataPart<'m> {
    /// Owner and group.
    Owner,
    /// Access control list that the file got from its directory, and is not to have.
    InheritedAcl,
    /// Extended attribute of this name.
    Attribute(&'m [u8]),
    /// Times of the last access and the last modification; of comparisons, the modification alone.
    Times,
    /// Permission bits.
    Mode,
    /// Set-user-ID and set-group-ID, where the file has not the owner that they are of.
    SetId,
    /// Capabilities, where the file has not the owner that they were given with.
    Capabilities,
}

impl FileMetadata {
    /// Returns the metadata of a file with these attributes.
    // The fields' widths differ between architectures.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    pub fn new(stat: &Stat, xattrs: Xattrs) -> FileMetadata {
        FileMetadata {
            mode: stat.st_mode as u32 & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            atime_ns: exact_nanoseconds(stat.st_atime as i64, stat.st_atime_nsec as i64),
            mtime_ns: exact_nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            xattrs: sorted(xattrs),
        }
    }

    /// Reads the metadata of an open file with a known state, and the time of the last access before
    /// it was opened, in nanoseconds since 1970.
    ///
    /// # Errors
    /// Those of `fstat`, which is called where one of the times may have been clipped, and of the
    /// reader.
    pub fn read(
        file: impl AsFd,
        stat: &FileStat,
        atime_ns: i128,
        reader: &mut XattrReader,
    ) -> Result<FileMetadata> {
        let xattrs = reader.all(Attributed::Open(&file))?;
        FileMetadata::with_xattrs(file, stat, atime_ns, xattrs)
    }

    /// Like [`read`](FileMetadata::read), with attributes that are known: a link that is held with
    /// `O_PATH` cannot be asked for them.
    ///
    /// # Errors
    /// Those of `fstat`, which is called where one of the times may have been clipped.
    pub fn with_xattrs(
        file: impl AsFd,
        stat: &FileStat,
        atime_ns: i128,
        xattrs: Xattrs,
    ) -> Result<FileMetadata> {
        let (mut atime_ns, mut mtime_ns) = (atime_ns, i128::from(stat.stamp.mtime_ns));
        if is_clipped(atime_ns) || is_clipped(mtime_ns) {
            let now = FileMetadata::new(&meta::raw_stat(file)?, Xattrs::new());
            let exact = |known: i128, now: i128| match is_clipped(known) {
                true => now,
                false => known,
            };
            (atime_ns, mtime_ns) = (exact(atime_ns, now.atime_ns), exact(mtime_ns, now.mtime_ns));
        }
        Ok(FileMetadata {
            mode: stat.mode & 0o7777,
            uid: stat.uid,
            gid: stat.gid,
            atime_ns,
            mtime_ns,
            xattrs: sorted(xattrs),
        })
    }

    /// Returns the same without attributes, for a file that has this access control list, if any:
    /// its permission bits for the group are the list's mask, not what the group may do.
    #[must_use]
    pub fn without_acl(mut self, list: Option<&[u8]>) -> FileMetadata {
        if let Some(list) = list {
            self.mode = mode_without_acl(self.mode, list);
        }
        self
    }

    /// Returns the value of an extended attribute.
    pub fn xattr(&self, name: &[u8]) -> Option<&[u8]> {
        value(&self.xattrs, name)
    }

    /// Returns both times as the system takes them.
    pub fn times(&self) -> Timestamps {
        Timestamps {
            last_access: timespec(self.atime_ns),
            last_modification: timespec(self.mtime_ns),
        }
    }

    /// Returns the parts that differ: owner, mode, time of modification, then attributes, those of
    /// this file first. The last access does not count.
    pub fn differing<'m>(
        &'m self,
        other: &'m FileMetadata,
    ) -> impl Iterator<Item = MetadataPart<'m>> {
        let owner = |of: &FileMetadata| (of.uid, of.gid);
        let plain = [
            (MetadataPart::Owner, owner(self) != owner(other)),
            (MetadataPart::Mode, self.mode != other.mode),
            (MetadataPart::Times, self.mtime_ns != other.mtime_ns),
        ];
        let plain = plain.into_iter().filter(|(_, differs)| *differs);
        let attributes = self.differing_xattrs(&other.xattrs);
        plain
            .map(|(part, _)| part)
            .chain(attributes.map(MetadataPart::Attribute))
    }

    /// Returns the names of the attributes that a file with `found` has not, or has alone, or with
    /// another value; not of those that are [never given](is_given).
    pub fn differing_xattrs<'m>(&'m self, found: &'m Xattrs) -> impl Iterator<Item = &'m [u8]> {
        let own = self.xattrs.iter();
        let own = own.filter(|(name, own)| value(found, name) != Some(own));
        let others = found.iter();
        let others = others.filter(|(name, _)| self.xattr(name).is_none());
        let names = own.chain(others).map(|(name, _)| &name[..]);
        names.filter(|name| is_given(name))
    }

    /// True if a file has this owner and these permission bits.
    pub fn has_owner_and_mode(&self, file: &FileStat) -> bool {
        (file.uid, file.gid, file.mode & 0o7777) == (self.uid, self.gid, self.mode)
    }

    /// True if a file has this time of modification, which a listing's clipped one does not show.
    pub fn has_mtime(&self, file: &FileStat) -> bool {
        self.mtime_ns == i128::from(file.stamp.mtime_ns)
    }
}

/// True for the names of attributes that a copy is given: not for a signature over the inode, nor
/// for lists that have another name as well.
pub fn is_given(name: &[u8]) -> bool {
    name != SIGNATURE && !name.starts_with(XFS_ACL)
}

/// Returns attributes in the order of [`FileMetadata`], without lists that have another name as
/// well.
pub fn sorted(mut xattrs: Xattrs) -> Xattrs {
    xattrs.retain(|(name, _)| !name.starts_with(XFS_ACL));
    xattrs.sort_unstable();
    xattrs
}

fn value<'m>(xattrs: &'m Xattrs, name: &[u8]) -> Option<&'m [u8]> {
    let found = xattrs.iter().find(|(found, _)| found == name);
    found.map(|(_, value)| &value[..])
}

pub(super) fn timespec(ns: i128) -> Timespec {
    Timespec {
        tv_sec: ns.div_euclid(SECOND) as _,
        tv_nsec: ns.rem_euclid(SECOND) as _,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(xattrs: &[(&str, &str)]) -> FileMetadata {
        let pair =
            |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        FileMetadata {
            mode: 0o644,
            uid: 1,
            gid: 2,
            atime_ns: 3,
            mtime_ns: 4,
            xattrs: sorted(xattrs.iter().map(pair).collect()),
        }
    }

    #[test]
    fn every_part_that_differs_is_named_and_the_last_access_does_not_count() {
        let one = plain(&[("user.a", "1"), ("user.b", "2"), ("security.evm", "x")]);
        let mut other = plain(&[("user.c", "3"), ("user.b", "2"), ("security.evm", "y")]);
        let attribute = |name: &'static str| MetadataPart::Attribute(name.as_bytes());
        let parts: Vec<_> = one.differing(&other).collect();
        assert_eq!(parts, [attribute("user.a"), attribute("user.c")]);
        other.xattrs = vec![(b"user.b".to_vec(), b"3".to_vec())];
        (other.gid, other.mode, other.atime_ns, other.mtime_ns) = (3, 0o600, 5, 6);
        let parts: Vec<_> = one.differing(&other).collect();
        let expected = [
            MetadataPart::Owner,
            MetadataPart::Mode,
            MetadataPart::Times,
            attribute("user.a"),
            attribute("user.b"),
        ];
        assert_eq!(parts, expected);
        other = one.clone();
        other.atime_ns = 9;
        assert_eq!(one.differing(&other).next(), None);
    }

    #[test]
    fn lists_that_have_another_name_too_are_left_out() {
        let one = plain(&[("trusted.SGI_ACL_FILE", "x"), ("user.a", "1")]);
        assert_eq!(one, plain(&[("user.a", "1")]));
        // As earlier versions recorded it.
        let mut recorded = one.clone();
        let double = (b"trusted.SGI_ACL_FILE".to_vec(), b"x".to_vec());
        recorded.xattrs.insert(0, double);
        assert_eq!(recorded.differing(&one).next(), None);
    }

    #[test]
    fn times_of_any_length() {
        for ns in [-1, -SECOND, 1 << 70, 0, i128::from(i64::MIN)] {
            let time = timespec(ns);
            #[allow(clippy::unnecessary_cast)] // As above.
            let back = exact_nanoseconds(time.tv_sec as i64, time.tv_nsec as i64);
            assert_eq!(back, ns);
        }
    }
}
