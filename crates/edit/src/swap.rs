//! One file put in the place of another one, or a file taken away, without losing what somebody
//! else puts there at that moment.
//!
//! Names are changed first and looked at afterwards, because a look beforehand proves nothing about
//! the moment of the change. What turns out to be another file than the one that was to go has its
//! name again; where even that name was taken since, it keeps the temporary one, and the caller
//! reports it. In no case is it removed.

use std::os::fd::BorrowedFd;

use bc_fs::call::{FailedCall, Result, call};
use bc_fs::meta::{FileStat, Identity};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use crate::entry::{exchange, lacks_flag, rename, rename_new};

/// A file with a temporary name that is to have the name of another one in its directory.
#[derive(Clone, Copy, Debug)]
pub struct Swap<'a> {
    /// The directory of both.
    pub dir: BorrowedFd<'a>,
    /// The temporary name.
    pub staged: &'a [u8],
    /// Identity of the file that has it.
    pub ours: Identity,
    /// The name that it is to have.
    pub name: &'a [u8],
    /// Identity of the file that is to lose that name.
    pub replaced: Identity,
}

/// Reason why a file has not changed its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotDone<E> {
    /// The system refused, and nothing was changed.
    Failed(FailedCall),
    /// The caller refused; each file has the name that it had.
    Refused(E),
    /// The caller refused, and what had lost its name could not get it back: it has the temporary
    /// name. `failed` is the call that the system refused; `None` if the name leads to another file
    /// since, which keeps it.
    Displaced {
        /// Reason of the caller.
        why: E,
        /// Reason of the system.
        failed: Option<FailedCall>,
    },
}

impl Swap<'_> {
    /// Puts the staged file in the place of the other one, which has the temporary name then.
    /// `settle` looks at it there, and removes it or gives it another name; if it refuses, all is
    /// put back. Where the file system cannot exchange names (FAT, NFS), nor a filter of calls lets
    /// it, `look` is asked instead, right before a rename over what has the name: between the two
    /// another process that takes it loses.
    ///
    /// # Errors
    /// See [`NotDone`]. After [`Refused`](NotDone::Refused) the temporary name leads to the staged
    /// file, or to none.
    pub fn put_over<T, E>(
        &self,
        settle: impl FnOnce() -> std::result::Result<T, E>,
        look: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, NotDone<E>> {
        match exchange(self.dir, self.staged, self.name) {
            Ok(()) => {}
            Err(failed) if lacks_flag(failed.errno) || failed.errno == Errno::PERM => {
                let seen = look().map_err(NotDone::Refused)?;
                rename(self.dir, self.staged, self.name).map_err(NotDone::Failed)?;
                return Ok(seen);
            }
            Err(failed) => return Err(NotDone::Failed(failed)),
        }
        settle().map_err(|why| match self.put_back() {
            Ok(true) => NotDone::Refused(why),
            Ok(false) => NotDone::Displaced { why, failed: None },
            Err(failed) => NotDone::Displaced {
                why,
                failed: Some(failed),
            },
        })
    }

    /// Gives what has the temporary name its own one again. False if that leads to another file by
    /// now, or did so in the moment of the exchange: the last one who took it has it.
    fn put_back(&self) -> Result<bool> {
        let now = identity(self.dir, self.name)?;
        let staged = || identity(self.dir, self.staged);
        match now {
            // Some file systems number names, not files: then both have the numbers that they had.
            Some(now)
                if now == self.ours || now == self.replaced && staged()? == Some(self.ours) =>
            {
                exchange(self.dir, self.staged, self.name)?;
                Ok(staged()?.is_none_or(|left| left == self.ours))
            }
            Some(_) => Ok(false),
            None => match rename_new(self.dir, self.staged, self.dir, self.name) {
                Err(failed) if failed.errno == Errno::EXIST => Ok(false),
                renamed => renamed.map(|()| true),
            },
        }
    }
}

/// Settles a file whose name was taken away: renamed to a [free](rename_new) temporary one. `settle`
/// looks at it there, and removes it or moves it on; if it refuses, the file gets its name back.
///
/// # Errors
/// See [`NotDone`]; never [`Failed`](NotDone::Failed).
pub fn settle_taken<T, E>(
    dir: BorrowedFd<'_>,
    name: &[u8],
    temporary: &[u8],
    settle: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, NotDone<E>> {
    settle().map_err(|why| match rename_new(dir, temporary, dir, name) {
        Ok(()) => NotDone::Refused(why),
        Err(failed) => {
            let failed = (failed.errno != Errno::EXIST).then_some(failed);
            NotDone::Displaced { why, failed }
        }
    })
}

/// Names that are tried for a displaced file.
const MOST_KEPT: u32 = 1000;

/// Gives a displaced file, which has a temporary name, one that its owner sees: `NAME-1` or the next
/// free number. Returns it; `None` if none of them could be given.
pub fn keep_beside(dir: BorrowedFd<'_>, temporary: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    (1..=MOST_KEPT).find_map(|number| {
        let kept = [name, b"-", number.to_string().as_bytes()].concat();
        let renamed = rename_new(dir, temporary, dir, &kept[..]);
        renamed.ok().map(|()| kept)
    })
}

/// Returns the identity of the file that a name leads to; `None` if there is none.
///
/// # Errors
/// Those of `fstatat`.
pub fn identity(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Identity>> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    match call("stat", || statat(dir, name, flags)) {
        Ok(stat) => Ok(Some(FileStat::from(&stat).id)),
        Err(failed) if failed.errno == Errno::NOENT => Ok(None),
        Err(failed) => Err(failed),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::path::Path;

    use super::*;

    fn ground() -> (tempfile::TempDir, std::os::fd::OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("staged"), "new").unwrap();
        fs::write(dir.path().join("name"), "old").unwrap();
        let path = dir.path().as_os_str().as_encoded_bytes();
        let fd = bc_fs::dirfd::open_root(path).unwrap();
        (dir, fd)
    }

    fn swap(dir: &std::os::fd::OwnedFd) -> Swap<'_> {
        let id = |name: &[u8]| identity(dir.as_fd(), name).unwrap().unwrap();
        Swap {
            dir: dir.as_fd(),
            staged: b"staged",
            ours: id(b"staged"),
            name: b"name",
            replaced: id(b"name"),
        }
    }

    fn save(dir: &Path, text: &str) {
        fs::write(dir.join("saved"), text).unwrap();
        fs::rename(dir.join("saved"), dir.join("name")).unwrap();
    }

    /// Returns the contents of the name and of the temporary one.
    fn contents(dir: &Path) -> [Option<String>; 2] {
        ["name", "staged"].map(|name| fs::read_to_string(dir.join(name)).ok())
    }

    /// Who comes between and what he does; what the names hold afterwards, and whether all is back.
    type Meanwhile<'a> = (&'a str, &'a dyn Fn(&Path), [&'static str; 2], bool);

    fn some(texts: [&str; 2]) -> [Option<String>; 2] {
        texts.map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    #[test]
    fn the_replaced_file_is_settled_under_the_temporary_name() {
        let (dir, fd) = ground();
        let put = swap(&fd).put_over(
            || {
                assert_eq!(contents(dir.path()), some(["new", "old"]));
                Ok::<_, ()>(crate::entry::unlink(&fd, c"staged"))
            },
            || unreachable!("names can be exchanged here"),
        );
        assert_eq!(put, Ok(Ok(())));
        assert_eq!(contents(dir.path()), some(["new", ""]));
    }

    #[test]
    fn what_is_refused_is_as_before_whoever_comes_between() {
        let cases: [Meanwhile<'_>; 4] = [
            ("nobody", &|_| (), ["old", "new"], true),
            // The program that saved the file saves again: the last version stays, and so does
            // the one before it, under the temporary name.
            ("save", &|dir| save(dir, "saved"), ["saved", "old"], false),
            (
                "removal",
                &|dir| fs::remove_file(dir.join("name")).unwrap(),
                ["old", ""],
                true,
            ),
            (
                "other name",
                &|dir| fs::rename(dir.join("name"), dir.join("moved")).unwrap(),
                ["old", ""],
                true,
            ),
        ];
        for (who, meanwhile, expected, is_back) in cases {
            let (dir, fd) = ground();
            let refuse = || {
                meanwhile(dir.path());
                Err::<(), _>("another file")
            };
            let put = swap(&fd).put_over(refuse, || unreachable!());
            let why = "another file";
            let wanted = match is_back {
                true => NotDone::Refused(why),
                false => NotDone::Displaced { why, failed: None },
            };
            assert_eq!(put, Err(wanted), "{who}");
            assert_eq!(contents(dir.path()), some(expected), "{who}");
        }
    }

    #[test]
    fn a_name_that_is_gone_is_not_given() {
        let (dir, fd) = ground();
        let swap = swap(&fd);
        fs::remove_file(dir.path().join("name")).unwrap();
        let put = swap.put_over(|| Ok::<_, ()>(()), || Ok(()));
        let errno = Errno::NOENT;
        let op = "exchange";
        assert_eq!(put, Err(NotDone::Failed(FailedCall { op, errno })));
        assert_eq!(contents(dir.path()), some(["", "new"]));
    }

    #[test]
    fn what_is_taken_comes_back_unless_its_name_is_taken() {
        for is_taken in [false, true] {
            let (dir, fd) = ground();
            fs::remove_file(dir.path().join("staged")).unwrap();
            let refuse = || {
                assert_eq!(contents(dir.path()), some(["", "old"]));
                if is_taken {
                    save(dir.path(), "saved");
                }
                Err::<(), _>(())
            };
            fs::rename(dir.path().join("name"), dir.path().join("staged")).unwrap();
            let taken = settle_taken(fd.as_fd(), b"name", b"staged", refuse);
            let (wanted, expected) = match is_taken {
                false => (NotDone::Refused(()), ["old", ""]),
                true => {
                    let (why, failed) = ((), None);
                    (NotDone::Displaced { why, failed }, ["saved", "old"])
                }
            };
            assert_eq!(taken, Err(wanted));
            assert_eq!(contents(dir.path()), some(expected));
            if is_taken {
                let kept = keep_beside(fd.as_fd(), b"staged", b"name");
                assert_eq!(kept.as_deref(), Some(&b"name-1"[..]));
                let kept = fs::read_to_string(dir.path().join("name-1"));
                assert_eq!(kept.unwrap(), "old");
            }
        }
    }
}
