//! symlink: the target's name becomes a relative symbolic link to the kept file.

use std::os::fd::OwnedFd;

use bc_edit::entry;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::join;
use rustix::io::Errno;

use crate::act::temp::{Temps, discard, replace};
use crate::check::dir::RealPlaces;
use crate::check::open_file::OpenFile;
use crate::skip::Skip;

/// The operation that fails where a link is made and does not lead to the kept file.
pub(crate) const FOLLOW: &str = "follow link";

/// Returns true if a link's text leads out of its directory.
pub(crate) fn leads_up(text: &[u8]) -> bool {
    text.starts_with(b"../")
}

/// Puts a link with this [text] in the target's place.
pub(crate) fn act(
    kept_file: &OpenFile,
    target: &OpenFile,
    text: &[u8],
    temps: &Temps,
) -> Result<(), Skip> {
    let temp = temps.name(|temp| entry::symlink(text, &target.dir, temp))?;
    let made = match meta::stat_at(&target.dir, &temp) {
        Ok(stat) => stat.id,
        // Without knowing which inode it is it cannot be removed safely; the next run removes it,
        // as it leads to the kept file.
        Err(failed) => return Err(failed.into()),
    };
    // The file that the path really leads to, whatever it looks like.
    let why = match meta::stat_through(&target.dir, &temp) {
        Ok(stat) if stat.id == kept_file.stat.id => None,
        Ok(_) => Some(Skip::KeptFileChanged),
        Err(failed) if failed.errno == Errno::NOENT => Some(Skip::KeptFileChanged),
        // The server of an sshfs may refuse to say where a link leads.
        Err(failed) => Some(Skip::System {
            op: FOLLOW,
            errno: failed.errno.raw_os_error(),
        }),
    };
    if let Some(why) = why {
        return Err(discard(target, &temp, made, why));
    }
    replace(target, &temp, made, || kept_file.outlives(target))
}

/// Returns the link's text: from the target's directory to the kept file, both as the kernel names
/// them, so that no link on the way can bend it. A file that is seen through a bind mount is named
/// by its own place, so that the link still leads there without the mount.
pub(crate) fn text(
    kept_file: &OpenFile,
    target: &OpenFile,
    places: &RealPlaces,
) -> Result<Vec<u8>, Skip> {
    let unknown = Skip::System {
        op: "read link",
        errno: rustix::io::Errno::NOENT.raw_os_error(),
    };
    if kept_file.is_mounted() {
        return Err(Skip::BindMount);
    }
    let (Some(from), Some(to)) = (
        dirfd::real_path(&target.dir),
        dirfd::real_path(&kept_file.dir),
    ) else {
        return Err(unknown);
    };
    let real = (
        places.of(&target.dir, &from),
        places.of(&kept_file.dir, &to),
    );
    let text = |from: &[u8], dir: &[u8]| relative(from, &join(dir, kept_file.name.as_bytes()));
    let (from_real, to_real) = match &real {
        (None, None) => return Ok(text(&from, &to)),
        (from_real, to_real) => (
            from_real.as_ref().map_or(&from, |(path, _)| path),
            to_real.as_ref().map_or(&to, |(path, _)| path),
        ),
    };
    let text = text(from_real, to_real);
    // Along the way that the link will be followed, so that it leads there with the mount and
    // without.
    let leads = |dir: &OwnedFd| {
        let name = dirfd::name(&text)?;
        meta::stat_through(dir, &name).map(|found| found.id == kept_file.stat.id)
    };
    let everywhere = [Some(&**target.dir), real.0.as_ref().map(|(_, dir)| dir)];
    match everywhere
        .into_iter()
        .flatten()
        .all(|dir| leads(dir) == Ok(true))
    {
        true => Ok(text),
        false => Err(Skip::BindMount),
    }
}

/// The path that leads from the directory `from` to `to`, both absolute.
pub(crate) fn relative(from: &[u8], to: &[u8]) -> Vec<u8> {
    let components = |path| -> Vec<&[u8]> {
        <[u8]>::split(path, |byte| *byte == b'/')
            .filter(|part| !part.is_empty())
            .collect()
    };
    let (from, to) = (components(from), components(to));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n(&b".."[..], from.len() - common);
    let parts: Vec<&[u8]> = up.chain(to[common..].iter().copied()).collect();
    parts.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::relative;

    #[test]
    fn relative_paths() {
        for (from, to, expected) in [
            ("/a/b", "/a/b/x", "x"),
            ("/a/b", "/a/x", "../x"),
            ("/a/b/c", "/d/x", "../../../d/x"),
            ("/", "/d/x", "d/x"),
            ("/a", "/ab/x", "../ab/x"),
        ] {
            assert_eq!(
                relative(from.as_bytes(), to.as_bytes()),
                expected.as_bytes()
            );
        }
    }
}
