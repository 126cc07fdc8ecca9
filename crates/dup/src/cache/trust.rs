//! On which file systems a record can stand for a file: where the inode number
//! is the file's for good and the ctime moves with every change. Elsewhere
//! another mount may show other content under the same numbers and times.

use bc_fs::mount::Mounts;

use super::meta;
use crate::scan::Context;

/// What is known of the devices of one search.
#[derive(Debug, Default)]
pub(super) struct Trust {
    mounts: Mounts,
    /// Names of the file systems that records cannot stand for.
    refused: Vec<&'static str>,
    #[cfg(test)]
    pub(super) nothing: bool,
}

impl Trust {
    /// Whether a record of this candidate is worth having.
    pub(super) fn holds(&mut self, context: &Context<'_>, candidate: u32) -> bool {
        let Some(meta) = meta(context, candidate) else {
            return false;
        };
        let dir = context.listing.dir(context.candidates.entry(candidate));
        let open = || context.listing.open_dir(dir).ok();
        let traits = self.mounts.of(meta.id.dev, open);
        let holds = traits.identity_proves_content(meta.id.ino);
        #[cfg(test)]
        let holds = holds && !self.nothing;
        if !holds && !self.refused.contains(&traits.name) {
            self.refused.push(traits.name);
        }
        holds
    }

    /// What there is to tell, once.
    pub(super) fn message(&mut self) -> Option<String> {
        let refused = std::mem::take(&mut self.refused);
        (!refused.is_empty()).then(|| {
            format!(
                "not used on {}: inode numbers or ctimes there do not say for sure what a file holds",
                refused.join(", ")
            )
        })
    }
}
