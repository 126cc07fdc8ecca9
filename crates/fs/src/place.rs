//! Place where a file is to be written: a directory held open and a name in it.
//!
//! The way there is walked once, descriptor by descriptor, so that no other process can exchange a
//! part of it between the look and the use. In a directory where others may write, links and files
//! of another user are not believed: his links are not followed and his files not replaced,
//! whatever the kernel's `fs.protected_symlinks` and `fs.protected_regular` say, whose rules these
//! are. Without them a user who may write to `/tmp` could put a link there that leads root's output
//! over `/etc/passwd`, or a file that is given what root wrote.
//!
//! A [`Way`] has the links on a path that is followed to its end, for those who decide themselves which
//! owners of links they believe.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat};
use rustix::io::Errno;

use crate::Escaped;
use crate::call::call;

/// Greatest number of links followed on one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// A directory held open and a name in it, which need not exist.
#[derive(Debug)]
pub struct Place {
    directory: OwnedFd,
    name: OsString,
}

impl Place {
    /// Finds the file that writing to `target` would create or replace: links are followed, and the
    /// last may lead to nothing.
    ///
    /// # Errors
    /// Errors of opening the directories on the way; `IsADirectory` for a path that ends in a slash
    /// or a dot; `PermissionDenied` with an explanation where another user's link, or his file at
    /// the end, is in a directory where others may write.
    pub fn find(target: impl AsRef<Path>) -> io::Result<Place> {
        Place::find_at(target.as_ref())
    }

    /// Makes the place of a name in an open directory, whatever it leads to: a link there is replaced
    /// or refused, not followed.
    ///
    /// # Errors
    /// `InvalidInput` for a name with a slash, or none at all; those of `dup`; as of
    /// [`find`](Self::find) for another user's file in a directory where others may write.
    pub fn within(directory: impl AsFd, name: impl AsRef<OsStr>) -> io::Result<Place> {
        let name = name.as_ref();
        if name.is_empty() || name.as_bytes().contains(&b'/') || name == "." || name == ".." {
            return Err(Errno::INVAL.into());
        }
        let place = Place {
            directory: directory.as_fd().try_clone_to_owned()?,
            name: name.to_owned(),
        };
        place.existing()?;
        Ok(place)
    }

    fn find_at(target: &Path) -> io::Result<Place> {
        let mut directory = start(target.as_os_str())?;
        let mut rest = components(target.as_os_str());
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            let link = if rest.is_empty() {
                let Some(link) = link_at_the_end(&directory, &name)? else {
                    let place = Place { directory, name };
                    place.existing()?;
                    return Ok(place);
                };
                link
            } else {
                match step(&directory, &name)? {
                    WayStep::Entered(next) => {
                        directory = next;
                        continue;
                    }
                    WayStep::Link(link) => link,
                }
            };
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::LOOP.into());
            }
            let text = follow(&directory, &name, &link)?;
            if text.as_bytes().starts_with(b"/") {
                directory = start(&text)?;
            }
            let mut parts = components(&text);
            parts.append(&mut rest);
            rest = parts;
        }
        Err(Errno::NOENT.into())
    }

    /// Duplicates the place: a second descriptor of the directory, the same name.
    ///
    /// # Errors
    /// Errors of `dup`: too many descriptors.
    pub fn try_clone(&self) -> io::Result<Place> {
        Ok(Place {
            directory: self.directory.try_clone()?,
            name: self.name.clone(),
        })
    }

    /// Returns the directory, open for nothing but to be started from.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the name in it.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the metadata of the existing target, if there is one; a link is not followed.
    ///
    /// # Errors
    /// Errors of [`find`](Self::find).
    pub fn existing(&self) -> io::Result<Option<Stat>> {
        let stat = match self.stat(&self.name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let directory = rustix::fs::fstat(&self.directory)?;
        if foreign(&directory, &stat) {
            return Err(refused("file", &self.name, &stat, "replaced"));
        }
        Ok(Some(stat))
    }

    /// True if a new file may be given to the owner of the `old` one that it replaces: only where
    /// no user but he, this one or root can have put it there.
    pub fn keeps_owner(&self, old: &Stat) -> bool {
        let Ok(directory) = rustix::fs::fstat(&self.directory) else {
            return false;
        };
        let trusted = [old.st_uid, own_user(), 0];
        !foreign(&directory, old) && trusted.contains(&directory.st_uid)
    }

    /// Returns the metadata of a name in the directory, no link followed.
    ///
    /// # Errors
    /// Those of `fstatat`.
    pub fn stat(&self, name: &OsStr) -> Result<Stat, Errno> {
        let look = || rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        Ok(call("stat", look)?)
    }

    /// Returns a place in the same directory, whose name is this one's with `end` behind it.
    ///
    /// # Errors
    /// Errors of `dup`: too many descriptors.
    pub fn beside(&self, end: &str) -> io::Result<Place> {
        let mut place = self.try_clone()?;
        place.name.push(end);
        Ok(place)
    }

    /// True if the name leads to that open file.
    pub fn means(&self, file: &File) -> bool {
        self.names(&self.name, file)
    }

    /// True if a name in the directory leads to that open file.
    pub fn names(&self, name: &OsStr, file: &File) -> bool {
        match (file.metadata(), self.stat(name)) {
            (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.st_dev, named.st_ino),
            _ => false,
        }
    }

    /// Opens an existing name in the directory; never waits for the other end of a FIFO.
    ///
    /// # Errors
    /// Errors of `openat`; `ELOOP` for a link.
    pub fn open(&self, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::empty();
        Ok(rustix::fs::openat(&self.directory, name, flags, mode)?)
    }
}

/// A component of a path, opened as a place alone.
enum WayStep {
    /// A directory, or the end of the path.
    Entered(OwnedFd),
    /// A symbolic link itself.
    Link(OwnedFd),
}

fn start(path: &OsStr) -> io::Result<OwnedFd> {
    let from = if path.as_bytes().starts_with(b"/") {
        "/"
    } else {
        "."
    };
    Ok(descend(CWD, OsStr::new(from), OFlags::DIRECTORY)?)
}

fn descend(from: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat(from, name, flags, Mode::empty())
}

/// Returns the names of a path. An end that can only mean a directory stays as a dot.
fn components(path: &OsStr) -> VecDeque<OsString> {
    let names = path.as_bytes().split(|byte| *byte == b'/');
    let mut names: VecDeque<OsString> = names
        .filter(|name| !name.is_empty() && *name != b".")
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect();
    let bytes = path.as_bytes();
    if bytes.ends_with(b"/") || bytes == b"." || bytes.ends_with(b"/.") {
        names.push_back(".".into());
    }
    names
}

/// Opens one component that is not the last.
fn step(directory: &OwnedFd, name: &OsStr) -> io::Result<WayStep> {
    match descend(directory, name, OFlags::DIRECTORY | OFlags::NOFOLLOW) {
        Ok(next) => return Ok(WayStep::Entered(next)),
        Err(Errno::NOTDIR | Errno::LOOP) => {}
        Err(errno) => return Err(errno.into()),
    }
    let link = descend(directory, name, OFlags::NOFOLLOW)?;
    if !is_link(&rustix::fs::fstat(&link)?) {
        return Err(Errno::NOTDIR.into());
    }
    // The text of those in /proc is not always the path of their target.
    if rustix::fs::fstatfs(directory)?.f_type == PROC_SUPER_MAGIC {
        return Ok(WayStep::Entered(descend(
            directory,
            name,
            OFlags::DIRECTORY,
        )?));
    }
    Ok(WayStep::Link(link))
}

/// Returns the last component, if it is a link.
fn link_at_the_end(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<OwnedFd>> {
    if name == "." || name == ".." {
        return Err(Errno::ISDIR.into());
    }
    match descend(directory, name, OFlags::NOFOLLOW) {
        Ok(there) => Ok(is_link(&rustix::fs::fstat(&there)?).then_some(there)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the target of the link, or an error where it may not be followed.
fn follow(directory: &OwnedFd, name: &OsStr, link: &OwnedFd) -> io::Result<OsString> {
    let stat = rustix::fs::fstat(link)?;
    if foreign(&rustix::fs::fstat(directory)?, &stat) {
        return Err(refused("symbolic link", name, &stat, "followed"));
    }
    link_text(link)
}

fn link_text(link: &OwnedFd) -> io::Result<OsString> {
    let text = rustix::fs::readlinkat(link, "", Vec::new())?.into_bytes();
    match text.is_empty() {
        true => Err(Errno::NOENT.into()),
        false => Ok(OsString::from_vec(text)),
    }
}

fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// True if the file belongs to a user who needed no permission of the directory's owner to put it
/// there.
fn foreign(directory: &Stat, thing: &Stat) -> bool {
    // Access lists show in the bits of the group.
    let open_to_others = directory.st_mode & 0o022 != 0;
    open_to_others && thing.st_uid != own_user() && thing.st_uid != directory.st_uid
}

fn refused(what: &str, name: &OsStr, stat: &Stat, done: &str) -> io::Error {
    let name = Escaped(name.as_bytes());
    let text = format!(
        "the {what} '{name}' belongs to user {} and lies in a directory where others may write: not {done}",
        stat.st_uid
    );
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// A path followed to its end, with the links on it.
#[derive(Debug)]
pub struct Way {
    /// The links on it, in order.
    pub links: Vec<Link>,
    /// True if the path itself, and not only a directory on it, is a link.
    pub is_link: bool,
    /// End of the way, open as a place alone.
    pub end: OwnedFd,
}

/// A symbolic link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Link {
    /// The path up to it, as far as it was named so; for a link that another one leads to, its name.
    pub path: PathBuf,
    /// Its owner.
    pub owner: u32,
}

impl Way {
    /// Follows a path.
    ///
    /// # Errors
    /// Errors of opening the directories on it; `ELOOP` for more links than the kernel follows.
    pub fn of(path: impl AsRef<Path>) -> io::Result<Way> {
        Way::go(path.as_ref().as_os_str(), Missing::Error)
    }

    /// Follows a path as far as it exists.
    ///
    /// # Errors
    /// Errors of [`of`](Way::of), but not where a name is missing.
    pub fn of_existing(path: impl AsRef<Path>) -> io::Result<Way> {
        Way::go(path.as_ref().as_os_str(), Missing::Stop)
    }

    fn go(path: &OsStr, missing: Missing) -> io::Result<Way> {
        let mut directory = start(path)?;
        let mut rest = components(path);
        let mut links = Vec::new();
        // As it was named, and how many of the names that follow were.
        let mut named = PathBuf::from(match path.as_bytes().starts_with(b"/") {
            true => "/",
            false => "",
        });
        let mut given = rest.len();
        let mut is_link = false;
        while let Some(name) = rest.pop_front() {
            let is_given = rest.len() < given;
            given = given.min(rest.len());
            let found = match enter(&directory, &name) {
                Err(error)
                    if missing == Missing::Stop && error.kind() == io::ErrorKind::NotFound =>
                {
                    break;
                }
                entered => entered?,
            };
            let found = match found {
                WayStep::Entered(found) => found,
                WayStep::Link(link) => {
                    let at = named.join(&name);
                    let owner = rustix::fs::fstat(&link)?.st_uid;
                    let path = if is_given {
                        at.clone()
                    } else {
                        name.clone().into()
                    };
                    links.push(Link { path, owner });
                    if links.len() > MOST_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    if is_given {
                        named = at;
                        is_link |= rest.iter().all(|name| name == ".");
                    }
                    let text = link_text(&link)?;
                    if text.as_bytes().starts_with(b"/") {
                        directory = start(&text)?;
                    }
                    let mut parts = components(&text);
                    parts.append(&mut rest);
                    rest = parts;
                    continue;
                }
            };
            if is_given {
                named.push(&name);
            }
            directory = found;
        }
        Ok(Way {
            links,
            is_link,
            end: directory,
        })
    }

    /// Returns the first link whose owner is neither this user nor root.
    pub fn foreign(&self) -> Option<&Link> {
        let trusted = [own_user(), 0];
        self.links
            .iter()
            .find(|link| !trusted.contains(&link.owner))
    }
}

/// A name that is not there.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Missing {
    Error,
    Stop,
}

/// Opens a component: a directory, a link, or anything else as a place.
fn enter(directory: &OwnedFd, name: &OsStr) -> io::Result<WayStep> {
    match step(directory, name) {
        Err(error) if error.raw_os_error() == Some(Errno::NOTDIR.raw_os_error()) => {
            let found = descend(directory, name, OFlags::NOFOLLOW)?;
            // A link in /proc, to a file: as with directories, its text need not be the way there.
            match is_link(&rustix::fs::fstat(&found)?) {
                true => Ok(WayStep::Entered(descend(directory, name, OFlags::empty())?)),
                false => Ok(WayStep::Entered(found)),
            }
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn ino(place: &Place) -> u64 {
        rustix::fs::fstat(place.directory()).unwrap().st_ino
    }

    #[test]
    fn ways_lead_where_the_kernel_goes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file"), "x").unwrap();
        symlink("a/b", at("rel")).unwrap();
        symlink(at("a"), at("abs")).unwrap();
        symlink("../../rel/../b/./file", at("a/b/round")).unwrap();
        symlink("rel/new", at("lost")).unwrap();
        let b = std::fs::metadata(at("a/b")).unwrap().ino();
        for (path, name) in [
            ("a/b/file", "file"),
            ("rel/file", "file"),
            ("abs//b/./file", "file"),
            ("abs/b/round", "file"),
            ("rel/../b/new", "new"),
            ("lost", "new"),
        ] {
            let place = Place::find(at(path)).unwrap();
            assert_eq!((ino(&place), place.name()), (b, OsStr::new(name)), "{path}");
            assert_eq!(place.existing().unwrap().is_some(), name == "file");
        }
        for path in [
            "a/",
            "a/.",
            "a/..",
            "a/b/file/",
            "a/b/file/x",
            "none/x",
            "new/",
            "",
        ] {
            assert!(Place::find(at(path)).is_err(), "{path}");
        }
        assert!(Place::find(Path::new("")).is_err());
        assert!(Place::find(Path::new("/")).is_err());
        let cwd = Place::find(Path::new("/proc/self/cwd/x")).unwrap();
        let here = std::fs::metadata(".").unwrap().ino();
        assert_eq!(ino(&cwd), here);
        assert_eq!(ino(&Place::find(Path::new("x")).unwrap()), here);
    }

    #[test]
    fn paths_of_any_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("./".repeat(5000)).join("x");
        assert_eq!(Place::find(&path).unwrap().name(), "x");
    }

    /// Needs root, as no other user can make files of others.
    #[test]
    fn what_others_laid_into_open_directories_does_not_count() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (me, other, third) = (0, 65_534, 65_533);
        let dir = tempfile::tempdir().unwrap();
        for (mode, of_directory, of_thing, fine) in [
            (0o1777, me, other, false),
            (0o777, me, other, false),
            (0o775, me, other, false),
            (0o757, me, other, false),
            (0o1777, other, third, false),
            (0o1777, other, other, true),
            (0o1777, other, me, true),
            (0o755, other, other, true),
            (0o755, other, third, true),
            (0o755, me, other, true),
        ] {
            let case = format!("{mode:o} {of_directory} {of_thing}");
            let open = dir.path().join(&case);
            std::fs::create_dir(&open).unwrap();
            std::fs::create_dir(open.join("d")).unwrap();
            std::fs::write(open.join("file"), "x").unwrap();
            symlink("file", open.join("link")).unwrap();
            symlink("d", open.join("way")).unwrap();
            for name in ["file", "link", "way"] {
                std::os::unix::fs::lchown(open.join(name), Some(of_thing), Some(of_thing)).unwrap();
            }
            std::os::unix::fs::chown(&open, Some(of_directory), None).unwrap();
            std::fs::set_permissions(&open, std::fs::Permissions::from_mode(mode)).unwrap();
            for name in ["file", "link", "way/new"] {
                let found = Place::find(open.join(name));
                assert_eq!(found.is_ok(), fine, "{case} {name}: {found:?}");
                if let Err(error) = found {
                    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                    let text = error.to_string();
                    assert!(text.contains(&format!("user {of_thing}")), "{text}");
                }
            }
            if fine {
                let place = Place::find(open.join("file")).unwrap();
                let old = place.existing().unwrap().unwrap();
                let gives = of_directory == me || of_thing == of_directory;
                assert_eq!(place.keeps_owner(&old), gives, "{case}");
            }
        }
    }

    #[test]
    fn links_are_found_wherever_they_are_on_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file"), "x").unwrap();
        symlink("a", at("one")).unwrap();
        symlink(at("one/b"), at("two")).unwrap();
        symlink("file", at("a/b/to-file")).unwrap();
        for (path, end, links, is_link) in [
            ("a/b", "a/b", &[][..], false),
            ("a/b/file", "a/b/file", &[], false),
            ("one", "a", &["one"], true),
            ("one/", "a", &["one"], true),
            ("one/.", "a", &["one"], true),
            ("./one//b/", "a/b", &["one"], false),
            ("one/../a", "a", &["one"], false),
            ("two", "a/b", &["two", "one"], true),
            ("two/file", "a/b/file", &["two", "one"], false),
            (
                "two/to-file",
                "a/b/file",
                &["two", "one", "two/to-file"],
                true,
            ),
        ] {
            let way = Way::of(at(path)).unwrap();
            let found = rustix::fs::fstat(&way.end).unwrap().st_ino;
            assert_eq!(found, std::fs::metadata(at(end)).unwrap().ino(), "{path}");
            let shown = way.links.iter().map(|link| &link.path);
            let shown: Vec<&Path> = shown
                .map(|path| path.strip_prefix(dir.path()).unwrap_or(path))
                .collect();
            let links: Vec<&Path> = links.iter().map(Path::new).collect();
            assert_eq!(shown, links, "{path}");
            assert_eq!(way.is_link, is_link, "{path}");
            assert!(way.foreign().is_none(), "{path}");
        }
        symlink("round", at("round")).unwrap();
        for path in ["round", "none", "a/none/x", "a/b/file/x", ""] {
            assert!(Way::of(at(path)).is_err() || path.is_empty(), "{path}");
        }
        // The text of a link in /proc is not always the path of its target.
        assert!(!Way::of("/proc/self/cwd").unwrap().is_link);
        let file = std::fs::File::open(at("a/b/file")).unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let found = rustix::fs::fstat(Way::of(path).unwrap().end)
            .unwrap()
            .st_ino;
        assert_eq!(found, file.metadata().unwrap().ino());
        assert!(!Way::of("/").unwrap().is_link);
        assert!(!Way::of(".").unwrap().is_link);
    }

    /// Needs root, as no other user can make links of others.
    #[test]
    fn links_of_others_are_told() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        for (name, owner) in [("own", 0), ("foreign", 65_534)] {
            symlink("a", at(name)).unwrap();
            std::os::unix::fs::lchown(at(name), Some(owner), Some(owner)).unwrap();
        }
        symlink("foreign/b", at("through")).unwrap();
        for (path, foreign) in [
            ("own/b", None),
            ("foreign", Some("foreign")),
            ("foreign/b", Some("foreign")),
            ("through", Some("foreign")),
        ] {
            for path in [at(path), at(path).join("new/deep")] {
                let way = Way::of_existing(&path).unwrap();
                let found = way.foreign().map(|link| link.path.file_name().unwrap());
                assert_eq!(found, foreign.map(OsStr::new), "{path:?}");
            }
        }
    }
}
