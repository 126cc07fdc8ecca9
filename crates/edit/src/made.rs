//! Links, FIFOs, sockets and devices: no call makes one and opens it, so another user who may write
//! to the directory can give the name to another file between the two. An inode that is held here
//! is proven to be the one that was made.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use bc_fs::call;
use bc_fs::known::{self, file_clock};
use bc_fs::meta::nanoseconds;
use bc_fs::mount::{Shows, basic_traits};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatxFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;

use crate::entry;

/// File without content of its own.
#[derive(Clone, Copy, Debug)]
pub enum Thing<'a> {
    /// A symbolic link with this text.
    Link(&'a [u8]),
    /// A FIFO, a socket or a device: kind and device number.
    Node(FileType, u64),
}

/// Makes `thing` under that name, a node for its owner alone.
///
/// # Errors
/// Errors of `symlinkat` and `mknodat`: `EXIST` if the name is taken.
pub fn make(dir: impl AsFd, name: impl Arg + Copy, thing: Thing<'_>) -> call::Result<()> {
    match thing {
        Thing::Link(text) => entry::symlink(text, dir, name),
        Thing::Node(kind, device) => entry::make_node(dir, name, kind, device),
    }
}

/// Opens, with `O_PATH`, the inode that [`make`] made under that name no earlier than `since` by
/// [`file_clock`]. `None` if the name leads to another file by now. A link is any link of the same
/// text with no other name, which can be given nothing that the made one could not.
///
/// # Errors
/// Errors of opening it and of looking at it.
pub fn hold(
    dir: impl AsFd,
    name: impl Arg + Copy,
    thing: Thing<'_>,
    since: i64,
) -> Result<Option<OwnedFd>, Errno> {
    let Some((held, stat)) = open_place(dir, name)? else {
        return Ok(None);
    };
    let is_it = is_alike(&held, &stat, thing)? && is_ours(&held, &stat, thing, since)?;
    Ok(is_it.then_some(held))
}

/// Opens whatever has a name as a place alone; `None` if nothing has.
fn open_place(dir: impl AsFd, name: impl Arg + Copy) -> Result<Option<(OwnedFd, Stat)>, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = match retry_on_intr(|| rustix::fs::openat(&dir, name, flags, Mode::empty())) {
        Err(Errno::NOENT) => return Ok(None),
        held => held?,
    };
    let stat = retry_on_intr(|| rustix::fs::fstat(&held))?;
    Ok(Some((held, stat)))
}

// The fields' widths differ between architectures.
#[allow(clippy::unnecessary_cast)]
fn is_alike(held: &OwnedFd, stat: &Stat, thing: Thing<'_>) -> Result<bool, Errno> {
    let found = FileType::from_raw_mode(stat.st_mode);
    Ok(stat.st_nlink == 1
        && match thing {
            Thing::Link(text) => {
                found == FileType::Symlink
                    && rustix::fs::readlinkat(held, c"", Vec::new())?.to_bytes() == text
            }
            Thing::Node(kind, device) => {
                let has_number = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
                found == kind && (!has_number || stat.st_rdev as u64 == device)
            }
        })
}

/// Makes a symbolic link and holds it with `O_PATH`: `None` if its name was given to another file
/// before that, which is left as it is.
///
/// # Errors
/// Those of making and of opening it.
pub fn make_link(text: &[u8], dir: impl AsFd, name: &CStr) -> call::Result<Option<OwnedFd>> {
    let since = file_clock();
    entry::symlink(text, &dir, name)?;
    let link = Thing::Link(text);
    call::call("open", || hold(&dir, name, link, since))
}

/// Opens, as [`hold`] does, a directory that `mkdirat` made with that name.
///
/// # Errors
/// As of [`hold`].
pub fn hold_dir(
    dir: impl AsFd,
    name: impl Arg + Copy,
    since: i64,
) -> Result<Option<OwnedFd>, Errno> {
    let Some((held, stat)) = open_place(dir, name)? else {
        return Ok(None);
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(None);
    }
    let own = stat.st_uid == rustix::process::geteuid().as_raw();
    let is_ours = basic_traits(&held)?.shows == Shows::Others || own && is_new(&held, since)?;
    Ok(is_ours.then_some(held))
}

/// True if it belongs to this user, is open to nobody else and was made since, as far as its file
/// system says so by itself and by our clock.
#[allow(clippy::unnecessary_cast)]
fn is_ours(held: &OwnedFd, stat: &Stat, thing: Thing<'_>, since: i64) -> Result<bool, Errno> {
    let is_link = matches!(thing, Thing::Link(_));
    let own = stat.st_uid == rustix::process::geteuid().as_raw();
    if is_link && own {
        return Ok(true);
    }
    if basic_traits(held)?.shows == Shows::Others {
        // Servers give owners of their own choice.
        return Ok(true);
    }
    let is_private = is_link || stat.st_mode as u32 & 0o7077 == 0;
    Ok(own && is_private && (is_link || is_new(held, since)?))
}

fn is_new(held: &OwnedFd, since: i64) -> Result<bool, Errno> {
    let found = rustix::fs::statx(held, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME);
    let found = match found {
        // Some filters do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => return Ok(true),
        found => found?,
    };
    if found.stx_mask & StatxFlags::BTIME.bits() == 0 {
        return Ok(true);
    }
    let born = nanoseconds(found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
    Ok(!known::is_before(born, since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    const PIPE: Thing<'_> = Thing::Node(FileType::Fifo, 0);

    struct Ground {
        dir: tempfile::TempDir,
        fd: OwnedFd,
    }

    impl Ground {
        fn new() -> Ground {
            let dir = tempfile::tempdir().unwrap();
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let fd = rustix::fs::open(dir.path(), flags, Mode::empty()).unwrap();
            Ground { dir, fd }
        }

        fn at(&self, name: &str) -> std::path::PathBuf {
            self.dir.path().join(name)
        }

        /// Makes a thing, has a neighbour do something, and then looks whether it is held.
        fn is_held(&self, thing: Thing<'_>, neighbour: impl FnOnce(&Path)) -> bool {
            let _ = std::fs::remove_file(self.at("made"));
            let since = file_clock();
            make(&self.fd, c"made", thing).unwrap();
            neighbour(&self.at("made"));
            hold(&self.fd, c"made", thing, since).unwrap().is_some()
        }
    }

    #[test]
    fn only_what_was_made_is_held() {
        let ground = Ground::new();
        let link = Thing::Link(b"text");
        assert!(ground.is_held(PIPE, |_| {}));
        assert!(ground.is_held(link, |_| {}));
        assert!(ground.is_held(Thing::Node(FileType::Socket, 0), |_| {}));
        let victim = ground.at("victim");
        type Maker<'a> = &'a dyn Fn(&Path);
        let pipe = |path: &Path| make(&ground.fd, path, PIPE).unwrap();
        let victims: [(&str, Maker<'_>); 4] = [
            ("a file", &|path| std::fs::write(path, "secret").unwrap()),
            ("a directory", &|path| std::fs::create_dir(path).unwrap()),
            ("a link elsewhere", &|path| symlink("made", path).unwrap()),
            ("a pipe that others may open", &|path| {
                pipe(path);
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
            }),
        ];
        for (what, make) in victims {
            make(&victim);
            for thing in [PIPE, link] {
                let swap = |made: &Path| {
                    std::fs::remove_file(made).unwrap();
                    std::fs::rename(&victim, made).unwrap();
                };
                assert!(!ground.is_held(thing, swap), "{what}");
                std::fs::rename(ground.at("made"), &victim).unwrap();
            }
            let _ = std::fs::remove_file(&victim).or_else(|_| std::fs::remove_dir(&victim));
        }
        // A further name of something else that is alike.
        let linked = |made: &Path| std::fs::hard_link(made, ground.at("second")).unwrap();
        assert!(!ground.is_held(PIPE, linked));
        let gone = |made: &Path| std::fs::remove_file(made).unwrap();
        assert!(!ground.is_held(PIPE, gone));
    }

    #[test]
    fn only_a_directory_that_was_made_is_held() {
        let ground = Ground::new();
        std::fs::create_dir(ground.at("before")).unwrap();
        let found = rustix::fs::statx(
            &ground.fd,
            c"before",
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::BTIME,
        );
        let tells = found.unwrap().stx_mask & StatxFlags::BTIME.bits() != 0;
        let held = |name, since| hold_dir(&ground.fd, name, since).unwrap().is_some();
        let later = file_clock() + 3_600_000_000_000;
        assert_eq!(held(c"before", later), !tells);
        let since = file_clock();
        std::fs::create_dir(ground.at("made")).unwrap();
        assert!(held(c"made", since));
        symlink("made", ground.at("link")).unwrap();
        assert!(!held(c"link", since) && !held(c"none", since));
        if !bc_testkit::is_root() {
            return bc_testkit::left_out("another user's files need root");
        }
        std::os::unix::fs::chown(ground.at("made"), Some(12), None).unwrap();
        assert!(!held(c"made", since));
    }

    #[test]
    fn a_node_of_another_user_or_from_before_is_not_held() {
        let ground = Ground::new();
        let since = file_clock() + 3_600_000_000_000;
        make(&ground.fd, c"made", PIPE).unwrap();
        let held = hold(&ground.fd, c"made", PIPE, since).unwrap();
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statx(&ground.fd, c"made", flags, StatxFlags::BTIME).unwrap();
        let tells = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        assert_eq!(held.is_none(), tells);
        if !bc_testkit::is_root() {
            return bc_testkit::left_out("another user's files need root");
        }
        for thing in [
            PIPE,
            Thing::Link(b"text"),
            Thing::Node(FileType::CharacterDevice, 0x103),
        ] {
            let given = |made: &Path| std::os::unix::fs::lchown(made, Some(12), None).unwrap();
            assert!(!ground.is_held(thing, given), "{thing:?}");
            assert!(ground.is_held(thing, |_| {}), "{thing:?}");
        }
    }
}
