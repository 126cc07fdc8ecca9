//! Files made again with the content and the metadata that a step recorded.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_digest::Digest;
use bc_edit::entry;
use bc_walk::{FileKind, Identity};

use super::Undo;
use super::names::Another;
use crate::act::moving::copy::{Blocks, CopiedFile, Copy, copy, digest};
use crate::act::moving::relocate;
use crate::check::meta::entitled;
use crate::check::open_file::{OpenFile, identity_at};
use crate::journal::JournalStep;
use crate::skip::Skip;

impl Undo<'_> {
    /// Makes the file that the entry records, under a temporary name in `dir`: a copy of the
    /// content with the recorded metadata or, where [another name](Undo::another) of the same
    /// file is there, one more name of that.
    pub(super) fn make(
        &mut self,
        entry: &JournalStep,
        dir: &OwnedFd,
        there: Option<&OpenFile>,
    ) -> Result<(CString, Identity, Vec<String>), Skip> {
        if let Some(Another::There(other, _)) = self.another(entry)
            && let Some(id) = other.stat.as_ref().map(|stat| stat.id)
            && let Ok(temp) = self
                .temps
                .name(|temp| entry::link(&other.dir, &other.name, dir, temp))
        {
            if identity_at(dir, &temp)? == Some(id) {
                return Ok((temp, id, Vec::new()));
            }
            return Err(Skip::Changed);
        }
        let made = self.copy_of(entry, dir, there)?;
        // From here on it is not merely a copy in the making.
        let temp = self
            .temps
            .name(|temp| entry::rename_new(dir, &made.name, dir, temp))
            .inspect_err(|_| relocate::withdraw(dir, &made.name, made.id))?;
        Ok((temp, made.id, made.refused))
    }

    fn copy_of(
        &mut self,
        entry: &JournalStep,
        dir: &OwnedFd,
        there: Option<&OpenFile>,
    ) -> Result<Copy, Skip> {
        let expected: Digest = entry.digest().ok_or(Skip::Changed)?;
        let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
        let kept;
        let source = match there {
            Some(held) if held.stat.kind() == FileKind::File => held,
            _ => {
                kept = self.kept_file(entry)?;
                &kept
            }
        };
        let (metadata, left_out) = entitled(metadata, &source.stat, None);
        self.prove_source(entry, source)?;
        let mut made = copy(
            CopiedFile {
                file: &source.file,
                size: entry.target.stamp().size,
                blocks: Blocks::Own,
                original: None,
            },
            &metadata,
            Some(&entry.target.flags()),
            dir,
            &self.temps,
            self.cancel,
        )?;
        made.refused.extend(left_out);
        if made.digest != expected {
            let _ = entry::unlink(dir, &made.name);
            return Err(of_kept(entry, Skip::KeptFileChanged));
        }
        Ok(made)
    }

    /// Proves that a file has the content that a copy of it is to have.
    pub(super) fn prove_source(&self, entry: &JournalStep, held: &OpenFile) -> Result<(), Skip> {
        let size = entry.target.stamp().size;
        match digest(&held.file, size, self.cancel) {
            Ok(found) if Some(found) == entry.digest() => Ok(()),
            Ok(_) => Err(of_kept(entry, Skip::KeptFileChanged)),
            Err(why) => Err(of_kept(entry, why)),
        }
    }

    /// The file that was kept by the step.
    pub(super) fn kept_file(&self, entry: &JournalStep) -> Result<OpenFile, Skip> {
        let path = entry.kept_file.path().ok_or(Skip::Gone)?;
        let found = self.find(&path, &entry.kept_file);
        let is_file = |held: OpenFile| match held.stat.kind() {
            FileKind::File => Ok(held),
            _ => Err(Skip::NotRegular),
        };
        found
            .and_then(|found| found.hold(&path))
            .and_then(is_file)
            .map_err(|why| of_kept(entry, why))
    }

    /// Returns the identity of the regular file that the path of the kept one leads to by now.
    pub(super) fn kept_now(&self, entry: &JournalStep) -> Option<Identity> {
        let found = self.find(&entry.kept_file.path()?, &entry.kept_file).ok()?;
        let stat = found.stat.filter(|stat| stat.kind() == FileKind::File)?;
        Some(stat.id)
    }
}

/// Converts a failure into one of the kept file, with its path.
pub(super) fn of_kept(entry: &JournalStep, why: Skip) -> Skip {
    match (entry.kept_file.path(), why) {
        (Some(path), Skip::Gone) => Skip::Missing(path),
        (Some(path), why @ Skip::NotRegular) => why.of(&path),
        (Some(path), why) => Skip::of_kept_file(why).of(&path),
        (None, why) => Skip::of_kept_file(why),
    }
}
