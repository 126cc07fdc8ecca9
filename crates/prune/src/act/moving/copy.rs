//! Copies that are proven before they are given a name: for moving to another
//! file system and for undo.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_edit::InodeFlags;
use bc_edit::content;
use bc_edit::metadata::{FileMetadata, PresentAcl};
use bc_edit::names::prune::Mark;
use bc_fs::compare::piece;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_walk::Identity;
use rustix::io::Errno;

use crate::act::temp::{Temps, withdraw};
use crate::check::compare::compare;
use crate::check::meta::{give_metadata, give_times, read_metadata};
use crate::check::pace::ReadPace;
use crate::skip::Skip;

/// A finished copy under a temporary name of its directory. All that is done
/// to it is done through the descriptor it was created with: a name may be
/// given to another file at any time.
pub(crate) struct ProvenCopy {
    pub(crate) name: CString,
    pub(crate) id: Identity,
    pub(crate) file: OwnedFd,
    /// FileMetadata that it was given.
    pub(crate) made: FileMetadata,
    /// Digest of the bytes that were copied.
    pub(crate) digest: Digest,
    /// Parts of the metadata that the system refused to set.
    pub(crate) refused: Vec<String>,
}

/// Owner of a copy's blocks.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Blocks {
    /// The source's where the file system can share them: for a source that goes when the copy is
    /// made, as between the subvolumes of a Btrfs, where no rename leads. So no further space is
    /// taken, and blocks shared with other files stay shared.
    Shared,
    /// Its own: the source stays.
    Own,
}

/// File that is copied.
pub(crate) struct CopiedFile<'a> {
    pub(crate) file: &'a OwnedFd,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) blocks: Blocks,
    /// File that the name of the copy records as its original, if it does.
    pub(crate) original: Option<Mark>,
}

/// Copies all of a source into `dir`: written, given the metadata and flags, made durable, read
/// again and compared. Nothing stays behind on failure.
pub(crate) fn copy(
    source: CopiedFile<'_>,
    metadata: &FileMetadata,
    flags: Option<&InodeFlags>,
    dir: &OwnedFd,
    temps: &Temps,
    pace: ReadPace<'_>,
) -> Result<ProvenCopy, Skip> {
    let CopiedFile {
        file: source,
        size,
        blocks,
        original,
    } = source;
    let mut created = None;
    let make = |name: &CStr| {
        created = Some(content::create(dir, name, 0o600)?);
        Ok(())
    };
    let name = match original {
        Some(mark) => temps.part_of(mark, make)?,
        None => temps.part(make)?,
    };
    // Set whenever `part` succeeds.
    let file = created.ok_or(Skip::Changed)?;
    // Flags first: some say how content is stored.
    let written = given(flags, &file).and_then(|mut refused| {
        if blocks == Blocks::Own || content::clone(source, &file).is_err() {
            write(source, size, &file, pace)?;
        }
        refused.extend(give_metadata(metadata, &file, PresentAcl::Inherited));
        content::sync(&file)?;
        content::flush(&file)?;
        // From the disk, as far as the kernel lets go of the pages.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        compare(source, &file, size, pace)?;
        let digest = digest(&file, size, pace)?;
        // Reading changed the access time.
        let _ = give_times(metadata, &file);
        let stat = meta::stat(&file)?;
        let made = read_metadata(&file, &stat, metadata.atime_ns)?;
        Ok((stat.id, made, digest, refused))
    });
    match written {
        Ok((id, made, digest, refused)) => Ok(ProvenCopy {
            name,
            id,
            file,
            made,
            digest,
            refused,
        }),
        Err(why) => {
            if let Ok(ours) = meta::stat(&file) {
                let _ = withdraw(dir, &name, ours.id);
            }
            Err(why)
        }
    }
}

/// Gives a new file or directory these flags; those that it does not get.
pub(crate) fn given(flags: Option<&InodeFlags>, file: &OwnedFd) -> Result<Vec<String>, Skip> {
    let plain = InodeFlags::default();
    let Some(flags) = flags.filter(|flags| flags.missing_from(&plain).is_some()) else {
        return Ok(Vec::new());
    };
    let refused = flags.give(file)?;
    let said = |(name, errno): (&str, Errno)| {
        let name = name.strip_prefix("the ").unwrap_or(name);
        format!("{name}: {}", std::io::Error::from(errno))
    };
    Ok(refused.into_iter().map(said).collect())
}

/// A piece of zeros is left a hole.
fn write(source: &OwnedFd, size: u64, file: &OwnedFd, pace: ReadPace<'_>) -> Result<(), Skip> {
    let mut buffer = vec![0; piece(size)];
    let mut offset = 0;
    loop {
        pace.check()?;
        let read = dirfd::read_at(source, &mut buffer, offset)?;
        let piece = &buffer[..read];
        if piece.iter().any(|byte| *byte != 0) {
            content::write_all_at(file, piece, offset)?;
        }
        offset += read as u64;
        pace.spend(read);
        if read < buffer.len() {
            break;
        }
    }
    if offset != size {
        return Err(Skip::Changed);
    }
    Ok(content::truncate(file, size)?)
}

/// The XXH128 of a file's `size` bytes, as the journal records it.
pub(crate) fn digest(file: &OwnedFd, size: u64, pace: ReadPace<'_>) -> Result<Digest, Skip> {
    // Before a byte is read: the size may be a lie.
    if meta::stat(file)?.stamp.size != size {
        return Err(Skip::Changed);
    }
    let mut hasher = Hasher::new(Algorithm::Xxh128);
    let mut buffer = vec![0; piece(size)];
    let mut offset = 0;
    loop {
        pace.check()?;
        let read = dirfd::read_at(file, &mut buffer, offset)?;
        hasher.update(&buffer[..read]);
        offset += read as u64;
        pace.spend(read);
        if read < buffer.len() {
            break;
        }
    }
    if offset == size {
        Ok(hasher.finalize())
    } else {
        Err(Skip::Changed)
    }
}
