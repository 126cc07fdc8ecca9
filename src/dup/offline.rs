//! Disks in drawers: what their manifests know of the files that were searched.

use std::io::{self, Write};

use bc_dup::manifests::{Unanswered, is_weak, tag};
use bc_dup::unique::{KnownContent, Offline};
use bc_walk::EntryId;

use super::search::{Drawer, Found};
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::thousands;
use crate::run::Session;

/// The groups as ever, but what a manifest knows has a first line for it, `MANIFEST: PATH`; behind
/// them come contents that one file here has and a manifest knows.
pub fn text(found: &Found, output: &mut Output) -> io::Result<()> {
    let Some(drawer) = &found.drawer else {
        return Ok(());
    };
    let report = found.report();
    let known = drawer.offline.by_group(found.scan.groups().len());
    let mut first = true;
    for (group, known) in found.scan.groups().zip(known) {
        write_group(
            found,
            drawer,
            known,
            &report.names(group),
            &mut first,
            output,
        )?;
    }
    for known in drawer.offline.singles() {
        write_group(found, drawer, Some(known), &known.names, &mut first, output)?;
    }
    Ok(())
}

fn write_group(
    found: &Found,
    drawer: &Drawer,
    known: Option<&KnownContent>,
    names: &[EntryId],
    first: &mut bool,
    output: &mut Output,
) -> io::Result<()> {
    if !std::mem::take(first) {
        output.write_all(b"\n")?;
    }
    let terminal = output.is_terminal();
    let mut line = |path: &[u8]| match terminal {
        true => writeln!(output, "{}", bc_fs::escape(path)),
        false => {
            output.write_all(path)?;
            output.write_all(b"\n")
        }
    };
    if let Some(known) = known {
        let manifest = drawer.manifests[known.answer.manifest].path();
        line(&[manifest, b": ", &known.detail.path].concat())?;
    }
    for name in names {
        line(&found.listing.path(*name))?;
    }
    Ok(())
}

/// `of 3 contents this rests on MD5, fine against accidents only`.
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

/// Why manifests did not answer.
pub fn unanswered(session: &Session, why: Unanswered) -> Exit {
    match why {
        Unanswered::Manifest(error) => session.fatal(&format!("--reference={error}")),
        Unanswered::Panic(panic) => session.defect(&panic),
        _ => Exit::Fatal,
    }
}
