//! symlink: the target's name becomes a relative symbolic link to the kept file.

use rustix::io::Errno;

use super::open_file::OpenFile;
use super::skip::Skip;
use super::sys;
use super::temp::{Temps, discard, replace};

/// The operation that fails where a link is made and does not lead to the kept file.
pub(crate) const FOLLOW: &str = "follow link";

/// Whether a link's text leads out of its directory.
pub(crate) fn leads_up(text: &[u8]) -> bool {
    text.starts_with(b"../")
}

pub(crate) fn act(keeper: &OpenFile, target: &OpenFile, temps: &Temps) -> Result<(), Skip> {
    let text = text(keeper, target)?;
    let temp = temps.name(|temp| sys::symlink(&text, &target.dir, temp))?;
    let made = match sys::stat_at(&target.dir, &temp) {
        Ok(stat) => stat.id,
        // Without knowing which inode it is it cannot be removed safely; as a
        // symbolic link it holds nothing, and the next run removes it.
        Err(failed) => return Err(failed.into()),
    };
    // Whatever the path looks like, this is what it leads to.
    let why = match sys::stat_through(&target.dir, &temp) {
        Ok(stat) if stat.id == keeper.stat.id => None,
        Ok(_) => Some(Skip::KeeperChanged),
        Err(failed) if failed.errno == Errno::NOENT => Some(Skip::KeeperChanged),
        // The server of an sshfs may refuse to say where a link leads.
        Err(failed) => Some(Skip::System {
            op: FOLLOW,
            errno: failed.errno.raw_os_error(),
        }),
    };
    if let Some(why) = why {
        return Err(discard(target, &temp, made, why));
    }
    replace(target, &temp, made, || keeper.outlives(target))
}

/// The link's text: from the target's directory to the keeper, both as the
/// kernel names them, so that no link on the way can bend it.
pub(crate) fn text(keeper: &OpenFile, target: &OpenFile) -> Result<Vec<u8>, Skip> {
    let unknown = Skip::System {
        op: "read link",
        errno: rustix::io::Errno::NOENT.raw_os_error(),
    };
    match (sys::real_path(&target.dir), keeper.real_path()) {
        (Some(from), Some(to)) => Ok(relative(&from, &to)),
        _ => Err(unknown),
    }
}

/// The path that leads from the directory `from` to `to`, both absolute.
fn relative(from: &[u8], to: &[u8]) -> Vec<u8> {
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
