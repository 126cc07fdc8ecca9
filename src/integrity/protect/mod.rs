//! `bc integrity protect`, and the parity of other commands: where it lies, and if it is of today.

mod args;

use std::io::Write;
use std::path::{Path, PathBuf};

use bc_fs::{PathError, Size, escape};
use bc_integrity::{ManifestFile, Work};
use bc_parity::{
    ParityCheck, ProtectEvent, ProtectOptions, Protected, VolumeCheck, default_dir, why_no_parity,
};
use bc_walk::OwnFile;

use super::args::UpdateArgs;
use super::job::{WorkError, algorithm_of, open, opened, start, stopped, working};
use crate::files::overlap::Given;
use crate::parse::args::{Common, is_dash};
use crate::parse::time::TimeSpan;
use crate::report::Exit;
use crate::session::progress::{counted, size, thousands};
use crate::session::{Outcome, Session, now};

pub use args::ProtectArgs;

/// Runs `bc integrity protect` from its arguments to its exit code.
pub fn protect(args: &ProtectArgs) -> Outcome<Exit> {
    let parity = present_dir(args.parity.as_deref(), &args.manifest);
    let given = Given::inputs([args.manifest.as_os_str()])
        .operands([&args.root])
        .operands(&parity);
    let mut session = start("protect", &args.common, &given, None)?;
    if args.parity.is_none() && !has_place(&args.manifest) {
        return Err(session.fatal(
            "a manifest that is no file has no place of its own: name the parity by --parity=DIR",
        ));
    }
    let manifest = open(&session, &args.manifest)?;
    let algorithm = algorithm_of(&session, &manifest)?;
    crate::session::signals::watch();
    let options = plan(args, &manifest);
    if args.check {
        return check(session, &options);
    }
    refuse_small_budget(&session, &args.common)?;
    let done = working(&session, Some(algorithm), "protect", |work| {
        Ok(protect_reported(&session, &options, work)?)
    })?;
    let mut exit = Exit::Done;
    if let Some(done) = done {
        conclude(&mut session, &options, &done);
        exit = exit_of(&done);
    }
    let exit = exit.worst(session.report.exit());
    Ok(session.end(exit))
}

/// Returns the parity directory that a command reads or writes, if there is one, for outputs not to
/// replace its files.
pub fn present_dir(named: Option<&Path>, manifest: &Path) -> Option<PathBuf> {
    let dir = match named {
        Some(dir) => dir.to_owned(),
        None => Some(manifest)
            .filter(|manifest| has_place(manifest))
            .map(default_dir)?,
    };
    dir.is_dir().then_some(dir)
}

/// True for a manifest that is a file; others are left to whoever opens them.
fn has_place(manifest: &Path) -> bool {
    !is_dash(manifest.as_os_str())
        && std::fs::metadata(manifest).map_or(true, |meta| meta.is_file() || meta.is_dir())
}

/// Returns the engine's options for these arguments.
fn plan<'a>(args: &'a ProtectArgs, manifest: &'a ManifestFile) -> ProtectOptions<'a> {
    let options = ProtectOptions::new(&args.root, manifest, now())
        .redundancy(args.redundancy)
        .volume(args.volume.map(|Size(bytes)| bytes))
        .keep_removed_ns(args.keep_removed.map(TimeSpan::ns))
        .adopt(args.adopt)
        .dry_run(args.dry_run)
        .memory(memory(&args.common));
    match &args.parity {
        Some(dir) => options.dir(dir.clone()),
        None => options,
    }
}

/// Bytes of a memory budget that the program itself takes, its lists aside: code, the tables of the code
/// for parity (8 MiB), and what unpacks a manifest.
const OWN_MEMORY: u64 = 24 << 20;

/// Smallest budget with which parity is written: what the program takes, and blocks and code of one worker.
const LEAST_BUDGET: u64 = 40 << 20;

/// Refuses a budget that is too small for any tree.
fn refuse_small_budget(session: &Session, common: &Common) -> Outcome<()> {
    match common.memory_budget {
        Some(Size(bytes)) if bytes < LEAST_BUDGET => Err(session.fatal(format!(
            "--memory-budget: {bytes} bytes are too few for parity; at least {LEAST_BUDGET} are needed"
        ))),
        _ => Ok(()),
    }
}

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
    bc_parity::protect(options, work, &mut |event| {
        match event {
        ProtectEvent::Unprotected(error) => report.problem(error),
        ProtectEvent::Unreadable(error) => report.problem(error),
        ProtectEvent::Held { volume } => {
            let why = "is worn, and stays: some of its content is damaged, changed or unreadable";
            report.problem(&PathError::with_reason(volume, "protect", None, why));
        }
        ProtectEvent::Kept { volume, removed } => report.summary(format!(
            "{} is worn, and kept for content that is no longer recorded, such as that of {}; others have the rest",
            escape(volume.as_os_str().as_encoded_bytes()),
            escape(removed)
        )),
        ProtectEvent::NotRemoving(why) => {
            let why = format!("no volume is removed: {why}");
            report.problem(&PathError::with_reason(&options.dir, "protect", None, why));
        }
        ProtectEvent::IndexLost { keep_removed_ns } => report.summary(format!(
            "the index in {} is missing or damaged: the settings are those of its newest volume (--keep-removed={})",
            escape(options.dir.as_os_str().as_encoded_bytes()),
            span(keep_removed_ns)
        )),
        ProtectEvent::Written { volume, bytes, len } => report.note(format_args!(
            "{}: written, {} of parity for {}",
            escape(volume.as_os_str().as_encoded_bytes()),
            size(len),
            size(bytes),
        )),
        ProtectEvent::Removed {
            volume,
            has_content,
        } => report.note(format_args!(
            "{}: removed, {}",
            escape(volume.as_os_str().as_encoded_bytes()),
            match has_content {
                true => "other volumes have its content",
                false => "its content is no longer recorded",
            }
        )),
        _ => {}
    }
    })
}

/// Returns a span of time as the option takes it.
fn span(ns: i64) -> String {
    let seconds = ns / 1_000_000_000;
    let units = [(86_400, 'd'), (3600, 'h'), (60, 'm')];
    let whole = units.into_iter().find(|(unit, _)| seconds % unit == 0);
    let (unit, letter) = whole.unwrap_or((1, 's'));
    format!("{}{letter}", seconds / unit)
}

/// Returns the exit code of a run.
fn exit_of(done: &Protected) -> Exit {
    match done.is_complete() {
        true => Exit::Done,
        false => Exit::Differs,
    }
}

/// Reports the totals.
pub fn conclude(session: &mut Session, options: &ProtectOptions<'_>, done: &Protected) {
    session.metrics.counts([
        ("volumes", "Volumes of parity.", done.volumes),
        ("volumes_written", "Volumes written.", done.written),
        ("volumes_removed", "Volumes removed.", done.removed),
        (
            "volumes_held",
            "Worn volumes that stay, since others do not have all of their content.",
            done.held,
        ),
        (
            "volumes_kept",
            "Worn volumes that stay for content that is no longer recorded.",
            done.kept,
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
        0 if done.wanted == 0 => "no new content".to_owned(),
        0 => "nothing written".to_owned(),
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
    if !options.dry_run {
        text += &format!("; {} in {dir}", volumes(done.volumes));
    }
    if done.unprotected > 0 {
        let files = counted(done.unprotected, "content", "contents");
        text += &format!("; {files} without new parity");
    }
    if done.has_new_settings {
        text += match options.dry_run {
            true => "; new settings would be stored",
            false => "; new settings from now on",
        };
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
    let is_quiet = session.common.quiet;
    let shown = |volume: &&VolumeCheck| !is_quiet || volume.is_failing();
    let written = checked.volumes.iter().filter(shown).try_for_each(|volume| {
        let line = volume_line(volume);
        writeln!(output, "{line}")
    });
    checked
        .unreadable
        .iter()
        .for_each(|error| session.report.problem(error));
    session.report.summary(check_text(&checked, &options.dir));
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
        lost,
        spare,
        serves,
        is_replaced,
        written_ns,
        ..
    } = volume;
    let worn = match (serves, is_replaced, volume.is_worn()) {
        (false, true, true) => "; worn, other volumes have its recorded content",
        (false, true, false) => "; other volumes have its recorded content",
        (false, false, _) if *lost > 0 => {
            "; worn, and needed: nothing else repairs what is damaged or unreadable"
        }
        (false, false, _) => "; worn, its content needs other parity",
        (true, _, true) => "; less than half is left",
        (true, _, false) => "",
    };
    let written = bc_manifest::time::describe(*written_ns);
    format!(
        "{id:06}.bcp: {} in {blocks} blocks, {parity} of parity, {damaged} of them damaged; {stale} stale, {lost} damaged or unreadable; {spare} may still be lost; written {written}{worn}",
        size(*bytes)
    )
}

fn check_text(checked: &ParityCheck, dir: &Path) -> String {
    let dir = escape(dir.as_os_str().as_encoded_bytes());
    let volumes = match checked.volumes.len() as u64 {
        0 => format!("no volume in {dir}"),
        count => counted(count, "volume", "volumes"),
    };
    let oldest = checked.volumes.iter().map(|volume| volume.written_ns).min();
    let oldest = oldest.map(|ns| format!(", the oldest of {}", bc_manifest::time::describe(ns)));
    let mut text = volumes + &oldest.unwrap_or_default();
    let worn = checked
        .volumes
        .iter()
        .filter(|volume| volume.serves && volume.is_worn())
        .count();
    if worn > 0 {
        text += &format!("; {worn} with less than half of the parity left");
    }
    let replaced = checked.volumes.iter().filter(|volume| volume.is_replaced);
    let replaced = replaced.count();
    if replaced > 0 {
        text += &format!("; {replaced} whose recorded content others have");
    }
    if checked.unprotected > 0 {
        let contents = counted(checked.unprotected, "content", "contents");
        text += &format!(
            "; {contents} without parity ({})",
            size(checked.unprotected_bytes)
        );
    }
    if checked.without_digest > 0 {
        let files = counted(checked.without_digest, "file", "files");
        text += &format!("; {files} without a digest");
    }
    text
}

/// Returns the parity directory beside a manifest, if there is one, for walks to leave out.
pub fn own_dir(manifest: &Path) -> Option<OwnFile> {
    let dir = present_dir(None, manifest).filter(|dir| bc_parity::is_parity_dir(dir));
    OwnFile::at(dir?).ok()
}

/// Returns the parity directory beside a manifest, if there is one, or the system does not let that be
/// seen. A directory that only has its name is none.
pub fn beside(manifest: &Path) -> Option<PathBuf> {
    let dir = present_dir(None, manifest)?;
    bc_parity::may_be_parity_dir(&dir).then_some(dir)
}

/// Warns of something that has the place of the parity beside a manifest and is none.
pub fn report_misplaced(session: &Session, manifest: &Path) {
    let place = Some(manifest).filter(|manifest| has_place(manifest));
    if let Some(why) = place.and_then(|manifest| why_no_parity(&default_dir(manifest))) {
        session.report.warning(&why);
    }
}

/// Reports that the parity beside a manifest does not cover all of it, or cannot be looked at.
pub fn report_stale(session: &Session, manifest: &Path) {
    let Some(dir) = beside(manifest) else {
        return report_misplaced(session, manifest);
    };
    // A manifest that cannot be read again was reported before.
    let Ok(manifest) = ManifestFile::open(manifest) else {
        return;
    };
    match bc_parity::is_stale(&dir, &manifest) {
        Ok(false) => {}
        Ok(true) => {
            let dir = escape(dir.as_os_str().as_encoded_bytes()).into_owned();
            session.report.summary(format!(
                "the parity in {dir} does not have all of it: 'bc integrity protect' brings it up to date, or reports \
                 why it cannot"
            ));
        }
        Err(error) if error.path() == Some(dir.as_path()) => session.report.warning(&error),
        Err(_) => {}
    }
}

/// Protects what an update has recorded, and returns the exit code of that. A directory that is named, or
/// that a link leads to, gets no first parity: its disk may not be mounted.
pub fn protect_updated(session: &mut Session, args: &UpdateArgs) -> Outcome<Exit> {
    let manifest = ManifestFile::open(&args.manifest)
        .map_err(|error| stopped(session, &WorkError::Engine(error)))?;
    let manifest = manifest.cancelled_by(&session.cancel);
    let algorithm = algorithm_of(session, &manifest)?;
    let mut options =
        ProtectOptions::new(&args.root, &manifest, now()).memory(memory(&args.common));
    if let Some(dir) = &args.parity {
        options = options.dir(dir.clone()).creates(false);
    } else if options.dir.is_symlink() {
        options = options.creates(false);
    }
    refuse_small_budget(session, &args.common)?;
    let done = working(session, Some(algorithm), "protect", |work| {
        Ok(protect_reported(session, &options, work)?)
    })?;
    let Some(done) = done else {
        return Ok(Exit::Done);
    };
    conclude(session, &options, &done);
    Ok(exit_of(&done))
}
