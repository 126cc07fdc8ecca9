//! Files of a search that manifests contain: contents on offline disks.

use bc_hash::{HashOptions, HashProgress};
use bc_pool::Cancel;
use bc_walk::{EntryId, Error, Listing, job};

use super::contents::{Contents, Presence};
use crate::manifests::{Answer, Detail, Manifest, Question, ask};
use crate::scan::Scan;
use crate::subtrees::{Files, Subtrees};

/// A content that a manifest knows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KnownContent {
    /// Bytes.
    pub size: u64,
    /// Its names here, in path order.
    pub names: Vec<EntryId>,
    /// Index of its group in the search; `None` if no other file of the search has it.
    pub group: Option<usize>,
    /// Manifest that contains it.
    pub answer: Answer,
    /// Entry of that manifest.
    pub detail: Detail,
}

/// All that manifests know.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Offline {
    /// Contents in order of first names.
    pub contents: Vec<KnownContent>,
    /// Files that could not be read.
    pub errors: Vec<Error>,
    /// Bytes read.
    pub bytes_read: u64,
}

impl Offline {
    /// Returns the known content of each of so many groups of the search; `None` where no manifest
    /// has it.
    pub fn by_group(&self, groups: usize) -> Vec<Option<&KnownContent>> {
        let mut found = vec![None; groups];
        for content in &self.contents {
            if let Some(group) = content.group {
                found[group] = Some(content);
            }
        }
        found
    }

    /// Returns the known contents that no other file of the search has.
    pub fn singles(&self) -> impl Iterator<Item = &KnownContent> {
        self.contents
            .iter()
            .filter(|content| content.group.is_none())
    }
}

/// Asks manifests about every content of a search: those of its groups, and those that one file
/// has.
///
/// # Errors
/// A manifest that cannot be believed, or a worker that panicked.
pub fn offline(
    listing: &Listing,
    scan: &Scan,
    manifests: &mut [Manifest],
    hash: HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<Offline, job::Error> {
    let mut own = Subtrees::default();
    own.keep_traces();
    own.learn(listing, Files::All);
    let contents = Contents::of(listing, listing.len(), scan);
    let entries = contents.open_questions();
    let question = Question {
        listing,
        entries: &entries,
        names: &[],
        own: &own,
        hash,
        details: true,
    };
    let answers = ask(&question, manifests, cancel, progress)?;
    let mut found = Offline {
        bytes_read: answers.bytes_read,
        ..Offline::default()
    };
    for content in contents.iter() {
        debug_assert_eq!(content.presence, Presence::Nowhere);
        let at = entries.binary_search(&content.names[0]).ok();
        let known = at.and_then(|at| answers.known[at].zip(answers.details[at].as_deref()));
        if let Some((answer, detail)) = known {
            found.contents.push(KnownContent {
                size: content.size,
                names: content.names.to_vec(),
                group: content.group,
                answer,
                detail: detail.clone(),
            });
        }
    }
    found
        .contents
        .sort_unstable_by_key(|content| content.names[0]);
    found.errors = answers.errors.into_iter().map(|(_, error)| error).collect();
    Ok(found)
}
