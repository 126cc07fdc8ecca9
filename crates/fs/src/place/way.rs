//! Directories and links that a path leads through: the owner of a link chooses where a program
//! arrives that follows the path.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{MOST_LINKS, WayStep, components, descend, is_link, own_user, start, step};

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
                Entered::Place(found) => found,
                Entered::Link(link) => {
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
                    let text = text(&link)?;
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

enum Entered {
    Place(OwnedFd),
    Link(OwnedFd),
}

/// Opens a component: a directory, a link, or anything else as a place.
fn enter(directory: &OwnedFd, name: &OsStr) -> io::Result<Entered> {
    match step(directory, name) {
        Ok(WayStep::Directory(next)) => Ok(Entered::Place(next)),
        Ok(WayStep::Link(link)) => Ok(Entered::Link(link)),
        Err(error) if error.raw_os_error() == Some(Errno::NOTDIR.raw_os_error()) => {
            let found = descend(directory, name, OFlags::NOFOLLOW)?;
            // A link in /proc, to a file: as with directories, its text need not be the way there.
            match is_link(&rustix::fs::fstat(&found)?) {
                true => Ok(Entered::Place(descend(directory, name, OFlags::empty())?)),
                false => Ok(Entered::Place(found)),
            }
        }
        Err(error) => Err(error),
    }
}

fn text(link: &OwnedFd) -> io::Result<OsString> {
    use std::os::unix::ffi::OsStringExt;
    let text = rustix::fs::readlinkat(link, "", Vec::new())?.into_bytes();
    match text.is_empty() {
        true => Err(Errno::NOENT.into()),
        false => Ok(OsString::from_vec(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

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
