//! Groups of a search beside the contents that manifests of offline disks list.

use std::io::{self, Write};

use bc_find::unique::KnownContent;
use bc_walk::EntryId;

use super::search::{OfflineManifests, SearchResult};
use super::terminal::GroupWriter;
use crate::files::output::Output;

/// Writes the groups as usual, but one whose content a manifest lists has a first line for it,
/// `MANIFEST: PATH`; after them come contents that one file here has and a manifest lists.
pub fn text(found: &SearchResult, output: &mut Output) -> io::Result<()> {
    let Some(offline) = &found.offline else {
        return Ok(());
    };
    let report = found.report();
    let known = offline.offline.by_group(found.scan.groups().len());
    let mut groups = GroupWriter::new(output);
    for (group, known) in found.scan.groups().zip(known) {
        write_group(found, offline, known, &report.names(group), &mut groups)?;
    }
    for known in offline.offline.singles() {
        write_group(found, offline, Some(known), &known.names, &mut groups)?;
    }
    Ok(())
}

fn write_group(
    found: &SearchResult,
    offline: &OfflineManifests,
    known: Option<&KnownContent>,
    names: &[EntryId],
    groups: &mut GroupWriter<'_>,
) -> io::Result<()> {
    groups.begin()?;
    let mut line = |path: &[u8]| {
        let shown = bc_fs::escape(path);
        groups.output.write_all(&[shown.as_bytes(), b"\n"].concat())
    };
    if let Some(known) = known {
        let manifest = offline.manifests[known.answer.manifest].path();
        line(&[manifest, b": ", &known.detail.path].concat())?;
    }
    for name in names {
        line(&found.listing.path(*name))?;
    }
    Ok(())
}
