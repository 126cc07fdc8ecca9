//! Notes beside the answer: the digests that it rests on, the files that were not looked at, and
//! the totals.

use bc_find::manifests::{is_weak, tag};
use bc_find::unique::{NotFiles, Presence, Unique};

use super::output::{Asked, unseen};
use crate::report::Exit;
use crate::session::Session;
use crate::session::progress::{nonzero, size, thousands};

/// Returns true if all of the PATHs was looked at; anything that was not is reported, and makes the
/// exit code 1.
pub fn whole(session: &Session, asked: &Asked<'_>, found: &Unique, hidden: &[Vec<u8>]) -> bool {
    let report = &session.report;
    let unseen = nonzero(unseen(found));
    if !unseen.is_empty() {
        report.problem(format!("not looked at: {}", unseen.join(", ")));
    }
    for point in hidden {
        report.problem(format!(
            "{}: something is mounted here; files that it covers cannot be examined",
            bc_fs::escape(point)
        ));
    }
    for manifest in asked.manifests {
        let tally = manifest.tally();
        if tally.without > 0 {
            let path = bc_fs::escape(manifest.path());
            report.warning(format_args!(
                "{path}: {} of its files count for nothing: unread, unseen, damaged or imported \
                 without proof",
                thousands(tally.without)
            ));
        }
    }
    unseen.is_empty() && hidden.is_empty()
}

/// Reports the totals, and the digests that the answer rests on.
pub fn summary(session: &Session, asked: &Asked<'_>, found: &Unique, complete: bool) {
    let report = &session.report;
    report.summary(figures(asked, found, complete));
    let mut also = Vec::new();
    if found.empty > 0 {
        also.push(format!("{} empty files", thousands(found.empty)));
    }
    also.extend(not_files(&found.not_files));
    if !also.is_empty() {
        report.summary(also.join("; "));
    }
    if found.unseen.excluded > 0 {
        let count = thousands(found.unseen.excluded);
        report.summary(format_args!("left out by --exclude: {count}"));
    }
    let mut own = found.not_counted;
    for manifest in asked.manifests {
        let unknown = manifest.tally().unknown_origin;
        own = own.saturating_sub(unknown);
        if unknown > 0 {
            report.warning(format_args!(
                "{}: list of unknown origin: {} of its entries have the names of files that are asked \
                 about, and count for nothing; --trust-list believes them",
                bc_fs::escape(manifest.path()),
                thousands(unknown)
            ));
        }
    }
    if own > 0 {
        report.warning(format_args!(
            "{} files or entries of references count for nothing: they lie below a PATH, or may",
            thousands(own)
        ));
    }
    if let Some(text) = rests_on(found) {
        report.always(text);
    }
}

fn figures(asked: &Asked<'_>, found: &Unique, complete: bool) -> String {
    let (mut files, mut bytes, mut unread) = (0, 0, 0);
    for content in found.contents() {
        match content.presence {
            Presence::Nowhere => {
                files += u64::from(content.files);
                bytes += content.size * u64::from(content.files);
            }
            Presence::Unread => unread += u64::from(content.files),
            _ => {}
        }
    }
    let all = thousands(found.files);
    let mut text = match (files, unread) {
        (0, 0) if asked.args.reference.is_empty() => {
            format!("each of {all} files has an equal among them")
        }
        (0, 0) if complete => format!("all of {all} files, {}, are elsewhere", size(found.bytes)),
        (0, 0) => format!("all of {all} files that were looked at are elsewhere"),
        _ => format!(
            "{} of {all} files, {}, are nowhere else",
            thousands(files),
            size(bytes)
        ),
    };
    if unread > 0 {
        text += &format!("; {} more could not be read", thousands(unread));
    }
    text
}

/// Returns `not files: 12 links, 3 empty directories`.
fn not_files(found: &NotFiles) -> Option<String> {
    let some = nonzero([
        (found.links, "links"),
        (found.fifos, "FIFOs and sockets"),
        (found.devices, "devices"),
        (found.empty_directories, "empty directories"),
    ]);
    (!some.is_empty()).then(|| format!("not files: {}", some.join(", ")))
}

/// Returns `of 3 files this rests on MD5, fine against accidents only`.
fn rests_on(found: &Unique) -> Option<String> {
    let (mut names, mut files): (Vec<&str>, u64) = (Vec::new(), 0);
    for content in found.contents() {
        if let Presence::Manifest { algorithm, .. } = content.presence
            && is_weak(algorithm)
        {
            files += u64::from(content.files);
            if !names.contains(&tag(algorithm)) {
                names.push(tag(algorithm));
            }
        }
    }
    names.sort_unstable();
    (files > 0).then(|| {
        format!(
            "of {} files this rests on {}, fine against accidents only",
            thousands(files),
            names.join(" and ")
        )
    })
}

/// Ends the run with its figures in the metrics.
pub fn end(mut session: Session, found: &Unique, exit: Exit) -> Exit {
    let nowhere = || found.nowhere();
    let files: u64 = nowhere().map(|content| u64::from(content.files)).sum();
    let bytes: u64 = nowhere()
        .map(|content| content.size * u64::from(content.files))
        .sum();
    let unseen: u64 = unseen(found).map(|(count, _)| count).sum();
    session.metrics.counts([
        ("files", "Files processed.", found.files + found.empty),
        ("read_bytes", "Bytes read.", found.stats.bytes_read),
        ("unique_files", "Files that are nowhere else.", files),
        ("unique_bytes", "Bytes of these.", bytes),
        ("unseen", "What was not looked at.", unseen),
    ]);
    session.metrics.label("reader", found.stats.backend.name());
    session.end(exit)
}
