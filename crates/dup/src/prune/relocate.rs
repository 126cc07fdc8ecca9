//! move: the target goes below a directory, under its own path, by renaming
//! or, to another file system, as a proven and durable copy.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_pool::Cancel;
use rustix::fs::{CWD, FileType};
use rustix::io::Errno;

use super::copy::copy;
use super::guard::{Held, identity_at};
use super::plan::split;
use super::step::Skip;
use super::sys::{self, Failed};
use super::temp::{Temps, remove};

/// The path below `dir` that `path` is moved to: all of it but `.`, `..` and
/// the leading slash, so that no two files meet.
pub(crate) fn destination(dir: &[u8], path: &[u8]) -> Vec<u8> {
    let mut to = dir.to_vec();
    let parts = path.split(|byte| *byte == b'/');
    for part in parts.filter(|part| !part.is_empty() && *part != b"." && *part != b"..") {
        if to.last() != Some(&b'/') {
            to.push(b'/');
        }
        to.extend_from_slice(part);
    }
    to
}

/// Opens the directory of `to`, which lies below `dir`, creating what is
/// missing. New directories get the permissions of the source's directories.
fn open_parent(dir: &[u8], to: &[u8], source: &[u8]) -> Result<(OwnedFd, CString), Skip> {
    let mut at = match sys::open_root(dir) {
        Err(Failed {
            errno: Errno::NOENT,
            ..
        }) => {
            create_all(dir)?;
            sys::open_root(dir)?
        }
        opened => opened?,
    };
    let below = to.get(dir.len()..).unwrap_or_default();
    let (parents, name) = split(below);
    let mut prefix = Vec::with_capacity(source.len());
    if source.first() == Some(&b'/') {
        prefix.push(b'/');
    }
    let mut originals = source.split(|byte| *byte == b'/');
    for part in parents
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
    {
        for original in originals.by_ref() {
            prefix.extend_from_slice(original);
            prefix.push(b'/');
            if original == part {
                break;
            }
        }
        let component = sys::name(part)?;
        let mode = rustix::fs::statat(CWD, prefix.as_slice(), rustix::fs::AtFlags::empty())
            .ok()
            .filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
            .map_or(0o700, |stat| stat.st_mode & 0o777 | 0o700);
        match sys::make_dir(&at, &component, mode) {
            Ok(())
            | Err(Failed {
                errno: Errno::EXIST,
                ..
            }) => {}
            Err(failed) => return Err(failed.into()),
        }
        at = sys::open_below(at, part)?;
    }
    Ok((at, sys::name(name)?))
}

fn create_all(dir: &[u8]) -> Result<(), Skip> {
    let mut done: Vec<u8> = Vec::new();
    for (index, part) in dir.split(|byte| *byte == b'/').enumerate() {
        if index > 0 {
            done.push(b'/');
        }
        done.extend_from_slice(part);
        if part.is_empty() {
            continue;
        }
        match sys::make_dir(CWD, &sys::name(&done)?, 0o700) {
            Ok(())
            | Err(Failed {
                errno: Errno::EXIST,
                ..
            }) => {}
            Err(failed) => return Err(failed.into()),
        }
    }
    Ok(())
}

/// What a copy may lose.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Loss {
    Refuse,
    Accept,
}

/// Moves `target` to `to` below `dir` while `proof` holds. What a copy could
/// not be given is in the result.
pub(crate) fn act(
    target: &Held,
    dir: &[u8],
    to: &[u8],
    loss: Loss,
    temps: &mut Temps,
    cancel: &Cancel,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<Vec<String>, Skip> {
    let (to_dir, name) = open_parent(dir, to, &target.path)?;
    place(target, &to_dir, &name, to, loss, temps, cancel, proof)
}

/// Moves `target` to a name of an open directory.
#[allow(clippy::too_many_arguments)] // Each is one fact about one move.
pub(crate) fn place(
    target: &Held,
    to_dir: &OwnedFd,
    name: &CString,
    to: &[u8],
    loss: Loss,
    temps: &mut Temps,
    cancel: &Cancel,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<Vec<String>, Skip> {
    match sys::rename_new(&target.dir, &target.name, to_dir, name) {
        Ok(()) => {
            let moved = match identity_at(to_dir, name) {
                Ok(Some(id)) if id == target.stat.id => {
                    target.check_content().and_then(|()| proof())
                }
                Ok(_) => Err(Skip::Changed),
                Err(skip) => Err(skip),
            };
            moved.map_err(|why| {
                match sys::rename_new(to_dir, name, &target.dir, &target.name) {
                    Ok(()) => why,
                    Err(_) => Skip::Displaced(to.to_vec()),
                }
            })?;
            Ok(Vec::new())
        }
        Err(Failed {
            errno: Errno::XDEV, ..
        }) => across(target, to_dir, name, loss, temps, cancel, proof),
        Err(Failed {
            errno: Errno::EXIST,
            ..
        }) => Err(Skip::DestinationExists),
        Err(failed) => Err(failed.into()),
    }
}

fn across(
    target: &Held,
    to_dir: &OwnedFd,
    name: &CString,
    loss: Loss,
    temps: &mut Temps,
    cancel: &Cancel,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<Vec<String>, Skip> {
    if identity_at(to_dir, name)?.is_some() {
        return Err(Skip::DestinationExists);
    }
    let metadata = target.metadata()?;
    let size = target.stat.stamp.size;
    let copied = copy(&target.file, size, &metadata, to_dir, temps, cancel)?;
    let named = match copied.refused.first() {
        Some(refused) if loss == Loss::Refuse => Err(Skip::MetadataLost(refused.clone())),
        _ => target.check().and_then(|()| {
            sys::rename_new(to_dir, &copied.name, to_dir, name).map_err(|failed| {
                if failed.errno == Errno::EXIST {
                    Skip::DestinationExists
                } else {
                    failed.into()
                }
            })
        }),
    };
    if let Err(why) = named {
        withdraw(to_dir, &copied.name, copied.id);
        return Err(why);
    }
    // The copy and its name must be on the disk before the original goes.
    let removed = sys::sync_dir(to_dir).map_err(Skip::from).and_then(|()| {
        remove(target, temps, || {
            proof()?;
            match identity_at(to_dir, name)? {
                Some(id) if id == copied.id => Ok(()),
                _ => Err(Skip::Changed),
            }
        })
    });
    match removed {
        Ok(()) => Ok(copied.refused),
        Err(why) => {
            if !why.took_effect() {
                withdraw(to_dir, name, copied.id);
            }
            Err(why)
        }
    }
}

/// Removes a copy whose original stays.
fn withdraw(dir: &OwnedFd, name: &CString, ours: bc_walk::Identity) {
    if let Ok(Some(id)) = identity_at(dir, name)
        && id == ours
    {
        let _ = sys::unlink(dir, name);
    }
}

#[cfg(test)]
mod tests {
    use super::destination;

    #[test]
    fn destinations_keep_the_tree() {
        for (path, expected) in [
            ("a/b/x", "d/a/b/x"),
            ("/a//b/x", "d/a/b/x"),
            ("./../a/x", "d/a/x"),
        ] {
            assert_eq!(destination(b"d", path.as_bytes()), expected.as_bytes());
        }
        assert_eq!(destination(b"/", b"x"), b"/x");
    }
}
