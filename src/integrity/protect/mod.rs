//! `bc integrity protect`, and the parity of other commands: where it lies, and if it is of today.

mod args;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use bc_fs::{PathError, Size, escape};
use bc_integrity::{ManifestFile, Work};
use bc_parity::{ParityCheck, ProtectEvent, ProtectOptions, Protected, VolumeCheck, default_dir};
use bc_walk::OwnFile;

use super::job::{WorkError, algorithm_of, open, opened, start, stopped, working};
use crate::files::overlap::Given;
use crate::parse::args::{Common, is_dash};
use crate::report::Exit;
use crate::session::progress::{counted, size, thousands};
use crate::session::{Outcome, Session, now};

pub use args::ProtectArgs;

/// Runs `bc integrity protect` from its arguments to its exit code.
pub fn protect(args: &ProtectArgs) -> Outcome<Exit> {
    let given = Given::inputs([args.manifest.as_os_str()]).operands([&args.root]);
    let mut session = start("protect", &args.common, &given, None)?;
    if is_dash(args.manifest.as_os_str()) && args.parity.is_none() {
        return Err(session.fatal("a manifest from standard input has no place of its own: name the parity by --parity=DIR"));
    }
    let manifest = open(&session, &args.manifest)?;
    let algorithm = algorithm_of(&session, &manifest)?;
    crate::session::signals::watch();
    let options = plan(args, &manifest);
    if args.check {
        return check(session, &options);
    }
    let done = working(&session, Some(algorithm), "protect", |work| {
        Ok(protect_reported(&session, &options, work)?)
    })?;
    if let Some(done) = done {
        conclude(&mut session, &options, &done);
    }
    let exit = session.report.exit();
    Ok(session.end(exit))
}

/// Returns the engine's options for these arguments.
fn plan<'a>(args: &'a ProtectArgs, manifest: &'a ManifestFile) -> ProtectOptions<'a> {
    let mut options = ProtectOptions::new(&args.root, manifest, now())
        .volume(args.volume.0)
        .keep_removed_ns(args.keep_removed.ns())
        .dry_run(args.dry_run)
        .memory(memory(&args.common));
    options.redundancy = args.redundancy;
    if let Some(dir) = &args.parity {
        options.dir.clone_from(dir);
    }
    options
}

/// Bytes of a memory budget that the program itself takes, its lists aside.
const OWN_MEMORY: u64 = 16 << 20;

/// Returns the bytes of memory that parity may use, if there is a limit.
pub fn memory(common: &Common) -> Option<u64> {
    let budget = common.memory_budget.as_ref();
    budget.map(|Size(bytes)| bytes.saturating_sub(OWN_MEMORY))
}

/// Protects a tree, and reports each event.
pub fn protect_reported(
    session: &Session,
    options: &ProtectOptions<'_>,
    work: &Work<'_>,
) -> Result<Protected, bc_walk::job::Error> {
    let report = &session.report;
    bc_parity::protect(options, work, &mut |event| match event {
        ProtectEvent::Unprotected(error) => report.problem(error),
        ProtectEvent::Unreadable(error) => report.problem(error),
        ProtectEvent::Held {
            volume,
            why,
            removed,
        } => {
            let removed = removed.map(|path| format!(": {}", escape(path)));
            let why = why.to_owned() + &removed.unwrap_or_default();
            report.problem(&PathError::with_reason(volume, "protect", None, why));
        }
        ProtectEvent::Written { volume, bytes, len } => report.note(format_args!(
            "{}: written, {} of parity for {}",
            escape(volume.as_os_str().as_encoded_bytes()),
            size(len),
            size(bytes),
        )),
        ProtectEvent::Removed { volume } => report.note(format_args!(
            "{}: removed, its content is in others",
            escape(volume.as_os_str().as_encoded_bytes())
        )),
        _ => {}
    })
}

/// Reports the totals.
pub fn conclude(session: &mut Session, options: &ProtectOptions<'_>, done: &Protected) {
    session.metrics.counts([
        ("volumes", "Volumes of parity.", done.volumes),
        ("volumes_written", "Volumes written.", done.written),
        ("volumes_removed", "Volumes removed.", done.removed),
        (
            "volumes_held",
            "Volumes to be written again that stay.",
            done.held,
        ),
        ("unprotected", "Contents without parity.", done.unprotected),
        ("written_bytes", "Bytes written.", done.parity_bytes),
    ]);
    let elapsed = session.elapsed();
    let report = &session.report;
    report.note(format_args!(
        "protect: {} volumes, {elapsed:.3} s",
        done.volumes
    ));
    let volumes = |count| counted(count, "volume", "volumes");
    let would = if options.dry_run { "would be " } else { "" };
    let mut text = match done.written {
        0 => "no new content".to_owned(),
        count => format!(
            "parity for {}: {} {would}written",
            size(done.bytes),
            volumes(count)
        ),
    };
    if done.parity_bytes > 0 {
        text += &format!(" ({})", size(done.parity_bytes));
    }
    if done.removed > 0 {
        text += &format!(", {} {would}removed", thousands(done.removed));
    }
    let dir = escape(options.dir.as_os_str().as_encoded_bytes());
    text += &format!("; {} in {dir}", volumes(done.volumes));
    if done.unprotected > 0 {
        let files = counted(done.unprotected, "content", "contents");
        text += &format!("; {files} without parity");
    }
    session.report.summary(text);
}

fn check(session: Session, options: &ProtectOptions<'_>) -> Outcome<Exit> {
    let mut output = opened(&session, None)?;
    let checked = working(&session, None, "check", |work| {
        Ok(bc_parity::check(options, work)?)
    })?;
    let Some(checked) = checked else {
        return Ok(session.end(Exit::Done));
    };
    let written = checked.volumes.iter().try_for_each(|volume| {
        let line = volume_line(volume);
        writeln!(output, "{line}")
    });
    checked
        .unreadable
        .iter()
        .for_each(|error| session.report.problem(error));
    session.report.summary(check_text(&checked));
    let exit = match checked.is_good() {
        true => session.report.exit(),
        false => Exit::Differs,
    };
    let finished = session.finished(output, written);
    Ok(session.end(exit.worst(finished)))
}

fn volume_line(volume: &VolumeCheck) -> String {
    let VolumeCheck {
        id,
        bytes,
        blocks,
        parity,
        damaged,
        stale,
        spare,
        written_ns,
        ..
    } = volume;
    let worn = if volume.is_worn() {
        "; less than half is left"
    } else {
        ""
    };
    let written = bc_manifest::time::describe(*written_ns);
    format!(
        "{id:06}.bcp: {} in {blocks} blocks, {parity} of parity, {damaged} of them damaged; {stale} stale; {spare} may still be lost; written {written}{worn}",
        size(*bytes)
    )
}

fn check_text(checked: &ParityCheck) -> String {
    let volumes = counted(checked.volumes.len() as u64, "volume", "volumes");
    let oldest = checked.volumes.iter().map(|volume| volume.written_ns).min();
    let oldest = oldest.map(|ns| format!(", the oldest of {}", bc_manifest::time::describe(ns)));
    let mut text = volumes + &oldest.unwrap_or_default();
    let worn = checked
        .volumes
        .iter()
        .filter(|volume| volume.is_worn())
        .count();
    if worn > 0 {
        text += &format!("; {worn} with less than half of the parity left");
    }
    if checked.unprotected > 0 {
        let contents = counted(checked.unprotected, "content", "contents");
        text += &format!(
            "; {contents} without parity ({})",
            size(checked.unprotected_bytes)
        );
    }
    text
}

/// Returns the parity directory beside a manifest, if there is one, for walks to leave out.
pub fn own_dir(manifest: &Path) -> Option<OwnFile> {
    OwnFile::at(beside(manifest)?).ok()
}

/// Returns the parity directory beside a manifest, if there is one.
pub fn beside(manifest: &Path) -> Option<PathBuf> {
    let dir = Some(manifest)
        .filter(|manifest| !is_dash(manifest.as_os_str()))
        .map(default_dir)?;
    dir.is_dir().then_some(dir)
}

/// Says that the parity beside a manifest is of an earlier one.
pub fn report_stale(session: &Session, manifest: &Path) {
    let Some(dir) = beside(manifest) else {
        return;
    };
    // A manifest that cannot be read again was reported before.
    let opened = ManifestFile::open(manifest);
    if opened
        .and_then(|manifest| bc_parity::is_stale(&dir, &manifest))
        .unwrap_or(false)
    {
        let dir = escape(dir.as_os_str().as_encoded_bytes()).into_owned();
        let text = format!(
            "the parity in {dir} is of an earlier manifest: 'bc integrity protect' brings it up to date"
        );
        session.report.summary(text);
    }
}

/// Protects what an update has recorded, and returns the exit code of that.
pub fn protect_updated(
    session: &mut Session,
    root: &OsStr,
    path: &Path,
    memory: Option<u64>,
) -> Outcome<Exit> {
    let manifest =
        ManifestFile::open(path).map_err(|error| stopped(session, &WorkError::Engine(error)))?;
    let manifest = manifest.cancelled_by(&session.cancel);
    let algorithm = algorithm_of(session, &manifest)?;
    let options = ProtectOptions::new(root, &manifest, now()).memory(memory);
    let done = working(session, Some(algorithm), "protect", |work| {
        Ok(protect_reported(session, &options, work)?)
    })?;
    let Some(done) = done else {
        return Ok(Exit::Done);
    };
    conclude(session, &options, &done);
    Ok(match done.is_complete() {
        true => Exit::Done,
        false => Exit::Differs,
    })
}
