//! Entries of a manifest of any form, as far as they can be reference copies.

use bc_digest::{Algorithm, Digest};
use bc_edit::names::{is_stage, lasts};
use bc_fs::path::split;
use bc_manifest::integrity::{Entry, Kind, Meta, Mounted, Policy, Reader, UNSEEN_AT};
use bc_manifest::{Item, Name, Options, Record, hashdeep};
use bc_pool::Cancel;
use bc_walk::job::Error;

use super::{Form, Manifest, strength};

/// Content of one file as a manifest records it.
pub(super) struct ReferenceCopy<'a> {
    pub(super) path: &'a [u8],
    /// Bytes, if recorded.
    pub(super) size: Option<u64>,
    /// The file's inode number and state, if recorded.
    pub(super) meta: Option<Meta>,
    /// The digest, by each of the algorithms that it can be of.
    pub(super) digest: Digest,
    pub(super) algorithms: &'a [Algorithm],
}

/// An entry.
pub(super) enum ManifestItem<'a> {
    ReferenceCopy(ReferenceCopy<'a>),
    /// A file whose content is unknown or uncertain.
    Without,
    /// The directory that all paths are relative to, and its number.
    Root(u64),
    /// Something was mounted here: entries at or below this path are of that file system.
    Mounted(&'a [u8], &'a Mounted),
    /// Directory in which a list was made and to which its paths are relative.
    MadeIn(&'a [u8]),
}

impl Manifest {
    /// Calls `found` with every entry of a file. Its results count only once this has returned: the
    /// manifest may turn out to be cut off or altered at its end.
    pub(super) fn each(
        &self,
        cancel: &Cancel,
        found: &mut dyn FnMut(ManifestItem<'_>),
    ) -> Result<(), Error> {
        self.is_unchanged()?;
        match self.form {
            Form::Integrity => self.each_entry(cancel, found)?,
            Form::Hashdeep => self.each_of_hashdeep(cancel, found)?,
            Form::Checksums => self.each_record(cancel, found)?,
        }
        self.is_unchanged()
    }

    fn each_entry(
        &self,
        cancel: &Cancel,
        found: &mut dyn FnMut(ManifestItem<'_>),
    ) -> Result<(), Error> {
        let refused = |error: bc_manifest::Error| self.refused(&error.to_string());
        let mut reader = Reader::new(self.lines(cancel)?, Policy::Strict).map_err(refused)?;
        let algorithm: Algorithm = match reader.header().algorithm.parse() {
            Ok(algorithm) => algorithm,
            Err(error) => return Err(self.refused(&format!("{error}"))),
        };
        let algorithms = [algorithm];
        let mut entry = Entry::new(Vec::new(), Kind::File);
        while reader.read_into(&mut entry).map_err(refused)? {
            if let (b".", Some(meta)) = (&entry.path[..], &entry.meta) {
                found(ManifestItem::Root(meta.ino));
            }
            if let Some(mounted) = &entry.mount {
                found(ManifestItem::Mounted(&entry.path, mounted));
            }
            if entry.kind != Kind::File {
                continue;
            }
            let digest = entry.digest.filter(|digest| {
                is_certain(&entry)
                    && is_lasting(&entry.path, entry.meta.map_or(1, |meta| meta.nlink))
                    && digest.as_bytes().len() == algorithm.digest_len()
            });
            found(match digest {
                None => ManifestItem::Without,
                Some(digest) => ManifestItem::ReferenceCopy(ReferenceCopy {
                    path: &entry.path,
                    size: entry.size(),
                    meta: entry.meta,
                    digest: Digest::new(digest.as_bytes()),
                    algorithms: &algorithms,
                }),
            });
        }
        Ok(())
    }

    fn each_of_hashdeep(
        &self,
        cancel: &Cancel,
        found: &mut dyn FnMut(ManifestItem<'_>),
    ) -> Result<(), Error> {
        let refused = |error: bc_manifest::Error| self.refused(&error.to_string());
        let mut reader = hashdeep::HashdeepReader::new(self.lines(cancel)?);
        let mut any = false;
        while let Some(record) = reader.read().map_err(refused)? {
            if let (false, Some(dir)) = (any, reader.invoked_from()) {
                found(ManifestItem::MadeIn(dir));
            }
            any = true;
            self.record(&record, found)?;
        }
        match any {
            true => Ok(()),
            false => Err(self.refused("no lines of files: cut off?")),
        }
    }

    fn each_record(
        &self,
        cancel: &Cancel,
        found: &mut dyn FnMut(ManifestItem<'_>),
    ) -> Result<(), Error> {
        let refused = |error: bc_manifest::Error| self.refused(&error.to_string());
        let lines = self.lines(cancel)?;
        let mut reader = bc_manifest::Reader::new(lines, Options::default()).map_err(refused)?;
        // Of a list that is several, put behind each other, each has to be whole.
        let mut is_open = false;
        while let Some(item) = reader.read().map_err(refused)? {
            match item {
                Item::Record(record) => self.record(&record, found)?,
                Item::Malformed { line, why } => {
                    return Err(self.refused(&format!("line {line}: {why}")));
                }
                Item::Header(_) if is_open => break,
                Item::Header(_) => is_open = true,
                Item::Summary(_) => is_open = false,
                _ => {}
            }
        }
        match is_open {
            false => Ok(()),
            true => Err(self.refused("truncated: no summary")),
        }
    }

    /// A line of another tool's.
    fn record(
        &self,
        record: &Record,
        found: &mut dyn FnMut(ManifestItem<'_>),
    ) -> Result<(), Error> {
        let at = |text: &str| self.refused(&format!("line {}: {text}", record.line));
        let fleeting = !is_lasting(&record.path, 1);
        if record.error.is_some() || record.digests.is_empty() || fleeting {
            found(ManifestItem::Without);
            return Ok(());
        }
        let mut best: Option<(Digest, Vec<Algorithm>)> = None;
        let mut short = None;
        for (name, digest) in &record.digests {
            let algorithms = algorithms_of(name.as_ref(), digest.as_bytes().len());
            let bits = 8 * digest.as_bytes().len();
            if strength::too_short(digest.as_bytes().len()) {
                short = Some(bits);
            }
            let Some(first) = algorithms.first() else {
                continue;
            };
            if strength::check(*first).is_err() {
                short = Some(bits);
                continue;
            }
            let rank =
                |algorithm: Algorithm| (!strength::is_weak(algorithm), algorithm.digest_len());
            if best
                .as_ref()
                .is_none_or(|(_, other)| rank(other[0]) < rank(*first))
            {
                best = Some((Digest::new(digest.as_bytes()), algorithms));
            }
        }
        let Some((digest, algorithms)) = best else {
            return Err(match short {
                Some(bits) => at(&format!(
                    "a digest of {bits} bits, too few to tell that nothing is lost: 128 are the least"
                )),
                None => at("a digest of no algorithm that is known here"),
            });
        };
        found(ManifestItem::ReferenceCopy(ReferenceCopy {
            path: &record.path,
            size: record.size,
            meta: None,
            digest,
            algorithms: &algorithms,
        }));
        Ok(())
    }
}

/// True if the last attempt at the content found the digest, and the last update the file: what
/// was not mounted, or in a directory that could not be read, is no copy of anything.
fn is_certain(entry: &Entry) -> bool {
    let failed_since = match (entry.tried_at, entry.verified_at) {
        (Some(tried), Some(verified)) => tried > verified,
        (Some(_), None) => true,
        (None, _) => false,
    };
    let is_unseen = entry.extra.contains_key(UNSEEN_AT);
    entry.error.is_none() && entry.found.is_none() && !failed_since && !is_unseen
}

/// Returns true if the file was neither deleted nor temporary when it was recorded.
fn is_lasting(path: &[u8], links: u64) -> bool {
    let name = split(path).1;
    lasts(name, links) && !is_stage(name)
}

/// Returns the algorithms that a digest of this length and, if recorded, this name can be of.
fn algorithms_of(name: Option<&Name>, length: usize) -> Vec<Algorithm> {
    match name {
        Some(name) => {
            let known = name.parse::<Algorithm>().ok();
            let fits = known.filter(|known| known.digest_len() == length);
            fits.into_iter().collect()
        }
        None => strength::usual(length).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_manifest::Failure;
    use bc_manifest::integrity::ContentFault as Finding;

    #[test]
    fn what_was_not_found_last_is_not_certain() {
        let with = |change: &dyn Fn(&mut Entry)| {
            let mut entry = Entry::new(b"a".to_vec(), Kind::File);
            change(&mut entry);
            is_certain(&entry)
        };
        assert!(with(&|_| ()));
        assert!(with(&|entry| entry.verified_at = Some(5)));
        assert!(with(&|entry| {
            (entry.tried_at, entry.verified_at) = (Some(5), Some(5));
        }));
        assert!(!with(&|entry| {
            (entry.tried_at, entry.verified_at) = (Some(6), Some(5));
        }));
        assert!(!with(&|entry| entry.tried_at = Some(1)));
        assert!(!with(&|entry| entry.found = Some(Finding::Damaged)));
        assert!(!with(&|entry| {
            let since = "2026-01-02T03:04:05Z".into();
            entry.extra.insert(UNSEEN_AT.to_owned(), since);
        }));
        assert!(!with(&|entry| {
            entry.error = Some(Failure {
                op: "read".to_owned(),
                errno: Some(5),
                message: "x".to_owned(),
            });
        }));
    }
}
