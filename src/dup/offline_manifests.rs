//! Offline disks: their manifests, the contents that those list, and the digests that this rests
//! on.

use bc_find::manifests::{Manifest, is_weak, tag};
use bc_find::unique::Offline;

use crate::report::Exit;
use crate::session::Session;
use crate::session::progress::thousands;

/// Manifests, and the contents that they list.
pub struct OfflineManifests {
    pub manifests: Vec<Manifest>,
    pub offline: Offline,
}

impl OfflineManifests {
    /// Returns the paths of the manifests.
    pub fn paths(&self) -> Vec<&[u8]> {
        self.manifests.iter().map(Manifest::path).collect()
    }
}

/// Returns `of 3 contents this rests on MD5, fine against accidents only`.
pub fn rests_on(offline: &Offline) -> Option<String> {
    let weak = offline
        .contents
        .iter()
        .map(|content| content.answer.algorithm);
    let weak: Vec<_> = weak.filter(|algorithm| is_weak(*algorithm)).collect();
    let mut names: Vec<&str> = weak.iter().map(|algorithm| tag(*algorithm)).collect();
    names.sort_unstable();
    names.dedup();
    (!weak.is_empty()).then(|| {
        format!(
            "of {} contents that manifests know this rests on {}, fine against accidents only",
            thousands(weak.len() as u64),
            names.join(" and ")
        )
    })
}

/// Reports why manifests did not answer.
pub fn unanswered(session: &Session, why: &bc_walk::job::Error) -> Exit {
    match why.path() {
        Some(_) => session.fatal(format!("--reference={why}")),
        None => session.defect(why),
    }
}
