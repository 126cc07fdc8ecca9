//! Contents that a manifest notes as damaged: found in place of a recorded one, they stay damaged
//! under any name and time, until they are accepted or the recorded content is back; or a restore
//! has given the damaged file a second name, which no later look at the tree takes for new damage.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, ErrorKind};

use bc_digest::Digest;
use bc_manifest::integrity::Entry;
use memchr::memmem;

use crate::compare::moves::{Candidate, FileAndContent, Numbers, Side};
use crate::entry_ref::EntryRef;
use crate::input::{ManifestFile, Trust};

/// Key of the field that notes a damaged content, as it is written.
const NOTE: &[u8] = b"\"damaged_digest\"";

/// Recorded entry of a path where a damaged content was found.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    /// Its path.
    pub(crate) path: Vec<u8>,
    /// The content that should be there.
    pub(crate) digest: Digest,
    pub(crate) verified_at: Option<i64>,
}

/// The damaged contents of a manifest, searched for at the first question: nearly always there is
/// none, and a comparison without changes never asks.
pub(crate) struct KnownDamage<'a> {
    manifest: &'a ManifestFile,
    trust: Trust,
    all: OnceCell<HashMap<Digest, Expected>>,
    /// Damaged contents that were found since.
    learnt: OnceCell<HashMap<Digest, Expected>>,
}

impl<'a> KnownDamage<'a> {
    pub(crate) fn of(manifest: &'a ManifestFile, trust: Trust) -> KnownDamage<'a> {
        KnownDamage {
            manifest,
            trust,
            all: OnceCell::new(),
            learnt: OnceCell::new(),
        }
    }

    /// Returns the recorded entry in place of this content at `path`, if the content is known to be
    /// damaged. A file that a restore has set aside is no longer damage.
    pub(crate) fn get(&self, path: &[u8], digest: Option<&[u8]>) -> Option<&Expected> {
        let digest = Digest::from_slice(digest?)?;
        let learnt = || self.learnt.get()?.get(&digest);
        let found = self.all.get_or_init(|| self.find()).get(&digest);
        let found = found.or_else(learnt)?;
        (!is_second(path, Some(digest))).then_some(found)
    }

    /// Adds contents that a look at all files has found damaged, once.
    pub(crate) fn learn(&self, found: HashMap<Digest, Expected>) {
        if !found.is_empty() {
            let _ = self.learnt.set(self.without_sound(found));
        }
    }

    /// True if anything was found that the manifest does not note.
    pub(crate) fn has_learnt(&self) -> bool {
        self.learnt.get().is_some_and(|learnt| !learnt.is_empty())
    }

    /// Returns those of these files that are recorded with the same content, under any names: the
    /// manifest is read once more for them.
    pub(crate) fn sound(&self, files: &HashSet<FileAndContent>) -> HashSet<FileAndContent> {
        let mut found = HashSet::new();
        if files.is_empty() {
            return found;
        }
        self.each(|entry| {
            let view = EntryRef::from(entry);
            let side = Candidate::new(Side::Removed, &entry.path, &view, Numbers::Stable, 0);
            let file = side.and_then(|side| side.file_and_content());
            found.extend(file.filter(|file| files.contains(file)));
        });
        found
    }

    /// Reads all notes; a manifest that cannot be read is refused where its entries are read, not
    /// here.
    fn find(&self) -> HashMap<Digest, Expected> {
        let mut all = HashMap::new();
        if !self.has_notes() {
            return all;
        }
        self.each(|entry| {
            if let (Some(damaged), Some(digest)) = (entry.damaged_digest, entry.digest)
                && !entry.unproven
            {
                all.entry(damaged).or_insert_with(|| Expected {
                    path: entry.path.clone(),
                    digest,
                    verified_at: entry.verified_at,
                });
            }
        });
        self.without_sound(all)
    }

    /// A write that went to the wrong file leaves the sound content of another one.
    fn without_sound(&self, mut all: HashMap<Digest, Expected>) -> HashMap<Digest, Expected> {
        let mut sound = HashSet::new();
        self.each(|entry| {
            sound.extend(entry.digest.filter(|digest| all.contains_key(digest)));
        });
        all.retain(|digest, _| !sound.contains(digest));
        all
    }

    fn each(&self, mut see: impl FnMut(&Entry)) {
        let Ok(mut entries) = self.manifest.again(self.trust) else {
            return;
        };
        while let Ok(Some(entry)) = entries.take() {
            see(entry);
        }
    }

    /// True if the text has such a field at all, which is found without parsing its lines.
    fn has_notes(&self) -> bool {
        let Ok(mut lines) = self.manifest.lines() else {
            return false;
        };
        let finder = memmem::Finder::new(NOTE);
        // The end of the previous bytes, which may contain the beginning of one.
        let mut seam: Vec<u8> = Vec::new();
        loop {
            let text = match lines.fill_buf() {
                Ok([]) => return false,
                Ok(text) => text,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            seam.extend_from_slice(&text[..text.len().min(NOTE.len() - 1)]);
            if finder.find(&seam).is_some() || finder.find(text).is_some() {
                return true;
            }
            if text.len() >= NOTE.len() {
                seam.clear();
                seam.extend_from_slice(&text[text.len() - (NOTE.len() - 1)..]);
            } else {
                let left = seam.len().saturating_sub(NOTE.len() - 1);
                seam.drain(..left);
            }
            let read = text.len();
            lines.consume(read);
        }
    }
}

/// Returns the ending of the second name of a damaged file with this digest, `None` where it could
/// not be read.
pub fn second_ending(digest: Option<Digest>) -> String {
    let digest = digest.map_or_else(|| "unread".to_owned(), |digest| digest.to_string());
    format!(".damaged-{}", &digest[..digest.len().min(8)])
}

/// True if a path looks like the second name of a damaged file with this digest.
pub fn is_second(path: &[u8], digest: Option<Digest>) -> bool {
    let end = second_ending(digest);
    let number = path.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let numbered = path[..path.len() - number.count()].strip_suffix(b"-");
    path.ends_with(end.as_bytes()) || numbered.is_some_and(|path| path.ends_with(end.as_bytes()))
}
