//! Check that a file system's records can stand for files: the inode number must be the file's for
//! good and the ctime move with every change that reaches the disk. Elsewhere another mount may
//! show other content under the same numbers and times.

use bc_fs::mount::Mounts;
use bc_walk::{EntryId, Listing};

/// Devices of one search, with the reliability of records of their files.
#[derive(Debug, Default)]
pub(super) struct Trust {
    mounts: Mounts,
    /// Names of the file systems that records cannot stand for.
    refused: Vec<&'static str>,
    #[cfg(test)]
    pub(super) nothing: bool,
    /// True if file systems in memory count as disks.
    #[cfg(test)]
    pub(super) memory: bool,
}

impl Trust {
    /// Returns true if a record of this file can prove its content later: the identity does, and
    /// writes through a mapping reach a disk and change a time.
    pub(super) fn holds(&mut self, listing: &Listing, entry: EntryId) -> bool {
        let Some(id) = listing.identity(entry) else {
            return false;
        };
        let open = || listing.open_dir(listing.dir(entry)).ok();
        let traits = self.mounts.of(id.dev, open);
        // Where nothing is ever written to a disk, a mapping can be written to for ever without any
        // time being moved.
        let in_memory = traits.in_memory;
        #[cfg(test)]
        let in_memory = in_memory && !self.memory;
        let holds = traits.identity_proves_content(id.ino) && !in_memory;
        #[cfg(test)]
        let holds = holds && !self.nothing;
        if !holds && !self.refused.contains(&traits.name) {
            self.refused.push(traits.name);
        }
        holds
    }

    /// Returns a message that names the refused file systems, once.
    pub(super) fn message(&mut self) -> Option<String> {
        let refused = std::mem::take(&mut self.refused);
        (!refused.is_empty()).then(|| {
            format!(
                "not used on {}: inode numbers and times there do not say for sure what a file holds",
                refused.join(", ")
            )
        })
    }
}
