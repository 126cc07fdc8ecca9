//! The order in which a file is given its metadata. No part undoes another one, and at no moment
//! has anybody more access than the file gives in the end, wherever the process is killed:
//!
//! 1. The owner: changing it clears set-user-ID, set-group-ID and capabilities.
//! 2. Access control lists that the file has and is not to have go, as long as the permission bits
//!    keep others out: the bits of the group are the list's mask, which it alone restrains.
//! 3. Attributes, before the permission bits may forbid the owner to write. Access control lists
//!    come after others: bits for a group that the list keeps out must not come first. Capabilities
//!    come last.
//! 4. Times, which nothing after them changes.
//! 5. Permission bits: a directory that still lacks something can be opened once more by whoever
//!    goes on after a kill.
//!
//! A file that does not get its owner does not get the power that it had with it either.

use bc_fs::meta::{self, FileKind, FileStat, is_clipped};
use rustix::fs::{Gid, Mode, Timespec, UTIME_OMIT, Uid};
use rustix::io::Errno;

use super::{
    ACCESS_ACL, CAPABILITIES, DEFAULT_ACL, FileMetadata, MetadataPart, SECOND, Subject, is_given,
    mode_without_acl,
};

const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// Bits with which a program acts as the owner of its file, or its group.
pub const SET_ID: u32 = SET_USER | SET_GROUP;

/// Seconds since 1970 that every file system holds which has 32 bits for them.
const NEAR: std::ops::Range<i128> = 0..1 << 31;

/// Parts of its metadata that a file is given.
#[derive(Clone, Copy, Debug)]
pub struct GivenParts {
    /// Owner and group. A file that keeps the owner it has gets neither set-user-ID nor
    /// set-group-ID.
    pub owner: bool,
    /// Permission bits.
    pub mode: GivenMode,
    /// Extended attributes.
    pub xattrs: bool,
    /// Times.
    pub times: GivenTimes,
    /// Treatment of access control lists that the file has and is not to have.
    pub acl: PresentAcl,
}

impl GivenParts {
    /// All parts, for a new file that was made for its owner alone.
    pub const ALL: GivenParts = GivenParts {
        owner: true,
        mode: GivenMode::Recorded,
        xattrs: true,
        times: GivenTimes::Both,
        acl: PresentAcl::Inherited,
    };
}

/// Permission bits that a file is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GivenMode {
    /// Those of the metadata.
    Recorded,
    /// These, unless an access control list is given, which has bits of its own.
    Other(u32),
    /// None: it keeps those that it has.
    Kept,
}

/// Times that a file is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GivenTimes {
    /// Of the last access and the last modification.
    Both,
    /// Of the last modification alone.
    Modification,
    /// None.
    Kept,
}

/// Access control lists that a file may have before it is given its metadata.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PresentAcl {
    /// There are none, or they stay.
    Kept,
    /// A new file, made for its owner alone, has them from its directory: they are removed.
    Inherited,
    /// A file that others may use has them: they are removed, and nobody may do more meanwhile.
    InUse,
}

/// Part of its metadata that a file was not given, and the system's reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NotGiven<'m> {
    /// The part.
    pub part: MetadataPart<'m>,
    /// The system's reason; of what was withheld, that for which the file has another owner.
    pub errno: Errno,
}

impl FileMetadata {
    /// Gives parts of this to a file. Returns what the file was not given; the rest is done all the
    /// same.
    pub fn give(&self, file: &Subject<'_>, parts: &GivenParts) -> Vec<NotGiven<'_>> {
        let mut giving = Giving {
            metadata: self,
            file,
            parts,
            owner: Ok(()),
            withheld: SET_ID,
            is_capable: true,
            mode: self.mode & 0o7777,
            has_acl: false,
            not_given: Vec::new(),
        };
        giving.give_owner();
        giving.remove_acls();
        giving.give_xattrs();
        giving.note(MetadataPart::Times, self.give_times(file, parts.times));
        giving.give_mode();
        giving.note_withheld();
        giving.not_given
    }

    /// Gives a file the times alone.
    ///
    /// # Errors
    /// The system's; `EOVERFLOW` where the file system cannot hold a time, which it replaces by the
    /// nearest without a word, or a listing could not.
    pub fn give_times(&self, file: &Subject<'_>, given: GivenTimes) -> Result<(), Errno> {
        let mut times = self.times();
        match given {
            GivenTimes::Both => {}
            GivenTimes::Modification => {
                times.last_access = Timespec {
                    tv_sec: 0,
                    tv_nsec: UTIME_OMIT,
                };
            }
            GivenTimes::Kept => return Ok(()),
        }
        file.set_times(&times)?;
        let given = |of: &FileMetadata| match given {
            GivenTimes::Both => [of.atime_ns, of.mtime_ns],
            GivenTimes::Modification | GivenTimes::Kept => [of.mtime_ns; 2],
        };
        let second = |ns: i128| ns.div_euclid(SECOND);
        let wanted = given(self);
        if wanted.iter().all(|ns| NEAR.contains(&second(*ns))) {
            return Ok(());
        }
        let now = FileMetadata::new(&meta::raw_stat(file.fd)?, Vec::new());
        let is_kept = given(&now).map(second) == wanted.map(second);
        match is_kept && !wanted.into_iter().any(is_clipped) {
            true => Ok(()),
            false => Err(Errno::OVERFLOW),
        }
    }

    /// Returns the bits that a file must not get with the owner that it has now, and true if it may
    /// get capabilities. Where there are neither, it is not asked for its owner.
    fn withheld(&self, file: &Subject<'_>) -> (u32, bool) {
        if self.mode & SET_ID == 0 && self.xattr(CAPABILITIES).is_none() {
            return (0, true);
        }
        // The system may have taken the owner without a word, and kept another one.
        match meta::stat(file.fd) {
            Ok(now) => self.withheld_of(&now),
            Err(_) => (SET_ID, false),
        }
    }

    fn withheld_of(&self, now: &FileStat) -> (u32, bool) {
        let has_group = now.gid == self.gid;
        match now.uid == self.uid && has_group {
            true => (0, true),
            // Of a directory it says whose group new files get.
            false if has_group && now.kind() == FileKind::Dir => (SET_USER, false),
            false => (SET_ID, false),
        }
    }

    /// Returns the attributes in the order in which they are given.
    fn in_order(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let given = self.xattrs.iter().filter(|(name, _)| is_given(name));
        let of = move |wanted: u8| given.clone().filter(move |(name, _)| rank(name) == wanted);
        let all = of(0).chain(of(1)).chain(of(2));
        all.map(|(name, value)| (&name[..], &value[..]))
    }
}

/// A file that is being given its metadata, one step after the other.
struct Giving<'m, 'f> {
    metadata: &'m FileMetadata,
    file: &'f Subject<'f>,
    parts: &'f GivenParts,
    /// Result of giving the owner.
    owner: Result<(), Errno>,
    /// Bits that the file must not get with the owner that it has.
    withheld: u32,
    /// True if the file may get capabilities.
    is_capable: bool,
    /// Permission bits of the metadata; less for the group where a list was refused.
    mode: u32,
    /// True if the file was given an access control list.
    has_acl: bool,
    not_given: Vec<NotGiven<'m>>,
}

impl<'m> Giving<'m, '_> {
    fn note(&mut self, part: MetadataPart<'m>, done: Result<(), Errno>) {
        if let Err(errno) = done {
            self.not_given.push(NotGiven { part, errno });
        }
    }

    /// Gives owner and group; the group alone where this user cannot give files away.
    fn give_owner(&mut self) {
        if !self.parts.owner {
            return;
        }
        let FileMetadata { uid, gid, .. } = *self.metadata;
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        self.owner = self.file.chown(Some(uid), Some(gid)).inspect_err(|_| {
            let _ = self.file.chown(None, Some(gid));
        });
        self.note(MetadataPart::Owner, self.owner);
        (self.withheld, self.is_capable) = self.metadata.withheld(self.file);
    }

    /// Removes the access control lists that the file has and is not to have.
    fn remove_acls(&mut self) {
        let (metadata, parts) = (self.metadata, self.parts);
        let has = |list: &[u8]| parts.xattrs && metadata.xattr(list).is_some();
        let removed = match parts.acl {
            PresentAcl::Kept => Ok(()),
            PresentAcl::Inherited => self.file.remove_inherited_acls(has),
            PresentAcl::InUse => self.file.remove_acls_in_use(has),
        };
        self.note(MetadataPart::InheritedAcl, removed);
    }

    fn give_xattrs(&mut self) {
        let metadata = self.metadata;
        for (name, value) in metadata.in_order().filter(|_| self.parts.xattrs) {
            if name == CAPABILITIES && !self.is_capable {
                continue;
            }
            let set = self.file.set_xattr(name, value);
            if name == ACCESS_ACL {
                self.has_acl = set.is_ok();
            }
            if set.is_err() && is_acl(name) {
                if name == ACCESS_ACL {
                    self.mode = mode_without_acl(self.mode, value);
                }
                if self.parts.acl != PresentAcl::Kept {
                    // Else the one of its directory would be left in its place.
                    self.note(MetadataPart::InheritedAcl, self.file.remove_acl(name));
                }
            }
            self.note(MetadataPart::Attribute(name), set);
        }
    }

    fn give_mode(&mut self) {
        let bits = match self.parts.mode {
            GivenMode::Recorded => self.mode & !self.withheld,
            GivenMode::Other(bits) if !self.has_acl => bits,
            GivenMode::Other(_) | GivenMode::Kept => return,
        };
        let done = self.file.chmod(Mode::from_raw_mode(bits as _));
        self.note(MetadataPart::Mode, done);
    }

    /// Notes the power that the file did not get, as it has another owner.
    fn note_withheld(&mut self) {
        let parts = self.parts;
        let lost = Err(self.owner.err().unwrap_or(Errno::PERM));
        if parts.owner && parts.mode == GivenMode::Recorded && self.mode & self.withheld != 0 {
            self.note(MetadataPart::SetId, lost);
        }
        let capabilities = self.metadata.xattr(CAPABILITIES);
        if parts.xattrs && !self.is_capable && capabilities.is_some() {
            self.note(MetadataPart::Capabilities, lost);
        }
    }
}

/// True for the names of attributes that hold access control lists.
pub fn is_acl(name: &[u8]) -> bool {
    name == ACCESS_ACL || name == DEFAULT_ACL
}

/// Ranks attributes: access control lists come after others, and capabilities, which a change of
/// the owner or of the content takes away, last.
fn rank(name: &[u8]) -> u8 {
    match name {
        CAPABILITIES => 2,
        name if is_acl(name) => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use bc_fs::faults::{self, Fault};
    use bc_testkit::left_out;
    use rustix::fs::{OFlags, XattrFlags};

    use super::*;

    /// Returns a list in which the owner may do everything, user 1000 what the mask says, and the
    /// group and others this.
    fn list(group: u8, mask: u8) -> Vec<u8> {
        let entry = |tag: u8, permissions: u8, id: u32| {
            let id = id.to_le_bytes();
            [tag, 0, permissions, 0, id[0], id[1], id[2], id[3]]
        };
        let nobody = u32::MAX;
        let entries = [
            entry(1, 7, nobody),
            entry(2, 7, 1000),
            entry(4, group, nobody),
            entry(16, mask, nobody),
            entry(32, 0, nobody),
        ];
        [&[2, 0, 0, 0][..], &entries.concat()].concat()
    }

    fn new(path: &Path) -> OwnedFd {
        crate::content::create(rustix::fs::CWD, path, 0o600).unwrap()
    }

    fn open_dir(path: &Path) -> OwnedFd {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    fn bits(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o7777
    }

    fn of(file: &OwnedFd, mode: u32, xattrs: &[(&[u8], &[u8])]) -> FileMetadata {
        let pairs = xattrs.iter();
        let pairs = pairs.map(|(name, value)| (name.to_vec(), value.to_vec()));
        FileMetadata {
            mode,
            ..FileMetadata::new(&rustix::fs::fstat(file).unwrap(), pairs.collect())
        }
    }

    fn point(call: &str, nth: usize) -> faults::Nth {
        (call.to_owned(), nth)
    }

    fn has_lists(dir: &Path) -> bool {
        let set = rustix::fs::setxattr(dir, ACCESS_ACL, &list(7, 7), XattrFlags::empty());
        set.is_ok()
    }

    #[test]
    fn the_order_is_owner_lists_attributes_times_and_permission_bits() {
        let dir = tempfile::tempdir().unwrap();
        let file = new(&dir.path().join("file"));
        let list = list(0, 4);
        let xattrs = [
            (CAPABILITIES, &b"not one"[..]),
            (ACCESS_ACL, &list[..]),
            (b"user.a", b"1"),
            (b"security.evm", b"never"),
        ];
        let wanted = of(&file, 0o640, &xattrs);
        let names: Vec<_> = wanted.in_order().map(|(name, _)| name).collect();
        assert_eq!(names, [b"user.a", ACCESS_ACL, CAPABILITIES]);
        faults::watch();
        let wanted = of(&file, 0o640, &[(b"user.a", b"1")]);
        wanted.give(&Subject::open(file.as_fd()), &GivenParts::ALL);
        let calls = ["removexattr", "removexattr", "setxattr", "utimens", "chmod"];
        assert_eq!(faults::disarm().calls[1..], calls);
        // A plain file costs no call more than its parts.
        faults::watch();
        let parts = GivenParts {
            acl: PresentAcl::Kept,
            ..GivenParts::ALL
        };
        let wanted = of(&file, 0o640, &[]);
        assert_eq!(wanted.give(&Subject::open(file.as_fd()), &parts), []);
        assert_eq!(faults::disarm().calls, ["chown", "utimens", "chmod"]);
    }

    /// The group's permission bits of a file with a list are its mask, and would be the group's
    /// rights as soon as the list has gone, or before it is there.
    #[test]
    fn a_mask_is_at_no_moment_what_the_group_may_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dir");
        std::fs::create_dir(&path).unwrap();
        if !has_lists(&path) {
            return left_out("no access control lists on this file system");
        }
        rustix::fs::setxattr(&path, ACCESS_ACL, &list(5, 7), XattrFlags::empty()).unwrap();
        assert_eq!(bits(&path), 0o770);
        let held = open_dir(&path);
        let there = path.clone();
        let look = Fault::Run(Box::new(move || assert_eq!(bits(&there), 0o750)));
        faults::arm(point("removexattr", 1), look);
        let parts = GivenParts {
            acl: PresentAcl::InUse,
            ..GivenParts::ALL
        };
        let subject = Subject::open(held.as_fd());
        assert_eq!(of(&held, 0o700, &[]).give(&subject, &parts), []);
        assert!(faults::disarm().reached);
        assert!(!bc_testkit::has_acl(&path));
        assert_eq!(bits(&path), 0o700);

        let path = dir.path().join("file");
        let file = new(&path);
        let there = path.clone();
        let look = Fault::Run(Box::new(move || assert_eq!(bits(&there), 0o600)));
        faults::arm(point("setxattr", 1), look);
        let list = list(0, 6);
        let wanted = of(&file, 0o660, &[(ACCESS_ACL, &list)]);
        let given = wanted.give(&Subject::open(file.as_fd()), &GivenParts::ALL);
        assert_eq!(given, []);
        assert!(faults::disarm().reached && bc_testkit::has_acl(&path));
        assert_eq!(bits(&path), 0o660);
    }

    #[test]
    fn a_list_that_is_refused_leaves_none_of_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        if bc_testkit::give_default_acl(dir.path()).is_err() {
            return left_out("no access control lists on this file system");
        }
        let path = dir.path().join("file");
        let file = new(&path);
        assert!(bc_testkit::has_acl(&path));
        faults::arm(point("setxattr", 1), Fault::Errno(Errno::IO));
        let list = list(0, 6);
        let wanted = of(&file, 0o660, &[(ACCESS_ACL, &list)]);
        let given = wanted.give(&Subject::open(file.as_fd()), &GivenParts::ALL);
        assert!(faults::disarm().reached);
        let (part, errno) = (MetadataPart::Attribute(ACCESS_ACL), Errno::IO);
        assert_eq!(given, [NotGiven { part, errno }]);
        assert!(!bc_testkit::has_acl(&path));
        assert_eq!(bits(&path), 0o600);
    }

    #[test]
    fn without_its_owner_a_file_gets_no_power_of_his() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let file = new(&path);
        let another = |wanted: FileMetadata| FileMetadata {
            uid: wanted.uid + 1,
            ..wanted
        };
        let wanted = another(of(&file, 0o6755, &[(CAPABILITIES, b"any")]));
        let refuse = || faults::arm(point("chown", 1), Fault::Errno(Errno::PERM));
        refuse();
        let given = wanted.give(&Subject::open(file.as_fd()), &GivenParts::ALL);
        assert!(faults::disarm().reached);
        let errno = Errno::PERM;
        let parts = [
            MetadataPart::Owner,
            MetadataPart::SetId,
            MetadataPart::Capabilities,
        ];
        assert_eq!(given, parts.map(|part| NotGiven { part, errno }));
        assert_eq!(bits(&path), 0o755);
        // Of a directory it says whose group new files get.
        let path = dir.path().join("shared");
        std::fs::create_dir(&path).unwrap();
        let held = open_dir(&path);
        refuse();
        let wanted = another(of(&held, 0o2770, &[]));
        let given = wanted.give(&Subject::open(held.as_fd()), &GivenParts::ALL);
        assert!(faults::disarm().reached);
        let part = MetadataPart::Owner;
        assert_eq!(given, [NotGiven { part, errno }]);
        assert_eq!(bits(&path), 0o2770);
    }

    #[test]
    fn a_list_has_permission_bits_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = new(&path);
        if !has_lists(&path) {
            return left_out("no access control lists on this file system");
        }
        let parts = GivenParts {
            mode: GivenMode::Other(0o644),
            ..GivenParts::ALL
        };
        let list = list(0, 4);
        let wanted = of(&file, 0o777, &[(ACCESS_ACL, &list)]);
        assert_eq!(wanted.give(&Subject::open(file.as_fd()), &parts), []);
        assert_eq!(bits(&path), 0o740);
        let wanted = of(&file, 0o777, &[]);
        assert_eq!(wanted.give(&Subject::open(file.as_fd()), &parts), []);
        assert_eq!(bits(&path), 0o644);
    }

    #[test]
    fn a_time_that_is_replaced_by_the_nearest_is_not_given() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = new(&path);
        let mut wanted = of(&file, 0o644, &[]);
        // Later than any file system holds.
        (wanted.atime_ns, wanted.mtime_ns) = (SECOND, SECOND << 50);
        let subject = Subject::open(file.as_fd());
        let given = wanted.give_times(&subject, GivenTimes::Modification);
        let held = i128::from(path.metadata().unwrap().mtime()) * SECOND == wanted.mtime_ns;
        assert_eq!(given.is_ok(), held);
        wanted.mtime_ns = 2 * SECOND;
        let atime = File::open(&path).unwrap().metadata().unwrap().atime();
        wanted
            .give_times(&subject, GivenTimes::Modification)
            .unwrap();
        assert_eq!(path.metadata().unwrap().atime(), atime);
        wanted.give_times(&subject, GivenTimes::Both).unwrap();
        let now = path.metadata().unwrap();
        assert_eq!((now.atime(), now.mtime()), (1, 2));
    }
}
