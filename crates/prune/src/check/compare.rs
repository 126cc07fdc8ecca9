//! Two open files: proven to be two, and compared byte for byte.

use std::os::fd::{AsFd, OwnedFd};

use bc_digest::{Algorithm, Digest, Hasher};
use bc_find::views::may_be_one;
use bc_fs::compare::SideBySide;
use bc_fs::meta;
use bc_fs::mount::{Shows, basic_traits};

use crate::check::open_file::OpenFile;
use crate::check::pace::ReadPace;
use crate::skip::Skip;

/// Compares two open files byte for byte over `size` bytes and proves that both end there. Returns
/// the XXH128 of the content, for the journal.
pub(crate) fn compare(
    one: &OwnedFd,
    other: &OwnedFd,
    size: u64,
    pace: ReadPace<'_>,
) -> Result<Digest, Skip> {
    compare_while(one, other, size, pace, || Ok(()))
}

/// Compares as [`compare`] does, as long as `proof` holds, which is called before each piece but
/// the first.
pub(crate) fn compare_while(
    one: &OwnedFd,
    other: &OwnedFd,
    size: u64,
    pace: ReadPace<'_>,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<Digest, Skip> {
    let mut hasher = Hasher::new(Algorithm::Xxh128);
    let mut buffers = Default::default();
    let mut sides = SideBySide::new([one.as_fd(), other.as_fd()], size, &mut buffers);
    while !sides.is_over() {
        pace.check()?;
        if sides.offset() > 0 {
            proof()?;
        }
        let [here, there] = sides.read().map_err(|unread| unread.call)?;
        if here != there {
            return Err(Skip::ContentDiffers);
        }
        hasher.update(here);
        pace.spend_while(here.len() + there.len(), || proof().is_ok());
    }
    if sides.offset() == size {
        Ok(hasher.finalize())
    } else {
        Err(Skip::Changed)
    }
}

/// Returns true if the first `size` bytes of `file` are all of `beginning`, which has that size.
pub(crate) fn is_beginning(
    beginning: &OwnedFd,
    file: &OwnedFd,
    size: u64,
    pace: ReadPace<'_>,
) -> Result<bool, Skip> {
    let mut buffers = Default::default();
    let mut sides = SideBySide::new([beginning.as_fd(), file.as_fd()], size, &mut buffers);
    while !sides.is_over() {
        pace.check()?;
        let [here, there] = sides.read().map_err(|unread| unread.call)?;
        if !there.starts_with(here) {
            return Ok(false);
        }
        pace.spend(here.len() + there.len());
    }
    Ok(sides.offset() == size)
}

/// Proves that two files with different identities are two files, as far as the file systems can be
/// relied on for that.
pub(crate) fn check_distinct(one: &OpenFile, other: &OpenFile) -> Result<(), Skip> {
    let shows = [
        basic_traits(&one.file)?.shows,
        basic_traits(&other.file)?.shows,
    ];
    // Each layer of one overlay has files of its own, and a device number.
    let layers = shows == [Shows::Layers; 2] && is_one_mount(&one.dir, &other.dir);
    let (one_id, other_id) = (one.stat.id, other.stat.id);
    let across = one_id.dev != other_id.dev && !layers;
    if may_be_one(shows, across) {
        return Err(Skip::UnstableInodes);
    }
    let same_number = across && one_id.ino == other_id.ino;
    match same_number && bc_fs::volume::may_be_one_file_system(&one.file, &other.file) {
        true => Err(Skip::SameVolume),
        false => Ok(()),
    }
}

/// Returns true if two directories are in one mount, or in two of one file system. The files of an
/// overlay have the device numbers of its layers, its directories have one.
pub(crate) fn is_one_mount(one: &OwnedFd, other: &OwnedFd) -> bool {
    let dev = |dir| meta::stat(dir).map(|stat| stat.id.dev);
    matches!((dev(one), dev(other)), (Ok(one), Ok(other)) if one == other)
}

/// True if two mounts are known to be two.
pub(crate) fn mounts_differ(one: Option<u64>, other: Option<u64>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use bc_pool::Cancel;

    use super::*;

    #[test]
    fn a_beginning_is_all_of_a_file_and_some_of_another() {
        let file = |content: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(content).unwrap();
            OwnedFd::from(file)
        };
        let cancel = Cancel::new();
        let pace = ReadPace::new(&cancel, None);
        let long: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        for length in [0, 1, 100, 262_143, 262_144, 262_145, 600_000, long.len()] {
            let is = |content: &[u8], size: usize| {
                let of = [file(content), file(&long)];
                is_beginning(&of[0], &of[1], size as u64, pace).unwrap()
            };
            assert!(is(&long[..length], length), "{length}");
            if length > 0 {
                let mut other = long[..length].to_vec();
                other[length - 1] ^= 1;
                assert!(!is(&other, length), "{length}");
                // It has changed meanwhile.
                assert!(!is(&long[..length], length - 1), "{length}");
            }
        }
        assert!(!is_beginning(&file(b"ab"), &file(b"a"), 2, pace).unwrap());
    }
}
