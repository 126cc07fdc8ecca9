//! `bc integrity restore`: files that verify finds damaged or gone are restored from copies or parity.

mod args;
mod output;

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use bc_copy::{Loss, ParityPlace, RestoreEvent, RestoreOptions};
use bc_fs::escape;
use bc_fs::quote::shell_path;
use bc_integrity::ManifestFile;
use bc_manifest::time::{describe, parse_rfc3339};
use bc_parity::manifest_copy;
use bc_walk::OwnFile;
use bc_walk::job::ErrorKind;

use super::job::{WorkError, algorithm_of, open, opened, start, working_shown};
use super::output::own_files;
use super::plan::root_check;
use super::protect::{beside, memory, own_dir, present_dir, report_misplaced};
use crate::files::overlap::Given;
use crate::parse::environment::state_dir;
use crate::report::Exit;
use crate::session::{Outcome, Session};
use output::{Reporter, conclude};

pub use args::RestoreArgs;

/// Losses that are restored by default.
const DEFAULT_LOSSES: [Loss; 2] = [Loss::Damaged, Loss::Removed];

/// Runs `bc integrity restore` from its arguments to its exit code.
pub fn restore(args: &RestoreArgs) -> Outcome<Exit> {
    let parity = present_dir(args.parity.as_deref(), &args.manifest);
    let given = Given::inputs([args.manifest.as_os_str()])
        .operands([&args.root])
        .operands(&args.from)
        .operands(&parity);
    let mut session = start("restore", &args.common, &given, None)?;
    let manifest = open(&session, &args.manifest).inspect_err(|_| report_copy(&session, args))?;
    let algorithm =
        algorithm_of(&session, &manifest).inspect_err(|_| report_copy(&session, args))?;
    crate::session::signals::watch();
    let output = args.format.of(opened(&session, None)?);
    let mut own = own_files(None, &output);
    let named = args.parity.clone().map(ParityPlace::Named);
    let parity = named.or_else(|| beside(&args.manifest).map(ParityPlace::Beside));
    if parity.is_none() {
        report_misplaced(&session, &args.manifest);
    }
    own.extend(own_dir(&args.manifest));
    let named = args.parity.as_ref();
    own.extend(named.and_then(|dir| OwnFile::at(dir).ok()));
    let mut options = plan(args, &manifest, &own);
    options.parity = parity;
    options.removed = removed(&args.removed).map_err(|what| session.fatal(what))?;
    let reporter = Reporter::new(&session, output, args.format);
    reporter.begin(&options, algorithm);
    let restored = working_shown(&session, Some(algorithm), "verify", |work, display| {
        let reported = |event: RestoreEvent<'_>| match event {
            RestoreEvent::Begins { what, files, bytes } => display.phase(what, files, bytes),
            event => reporter.report(event),
        };
        match bc_copy::restore(&options, work, &reported) {
            // It was reported when it happened.
            Err(error) if error.kind() == ErrorKind::Panic => Ok(Err(Exit::Fatal)),
            restored => restored.map(Ok).map_err(WorkError::Engine),
        }
    })
    .inspect_err(|_| report_copy(&session, args))?;
    let Some(restored) = restored else {
        reporter.finish(None)?;
        return Ok(session.end(Exit::Done));
    };
    let restored = restored?;
    reporter.finish(Some(&restored))?;
    if restored.wanted > 0 && options.manifest.is_of_others() && !options.trust_metadata {
        let text = "--trust-metadata also restores owners, modes and links from such a manifest";
        session.report.summary(text);
    }
    let exit = conclude(&mut session, &restored, args.dry_run);
    Ok(session.end(exit))
}

/// Prints which copy of the manifest to use, if the manifest is damaged or gone.
fn report_copy(session: &Session, args: &RestoreArgs) {
    let named = args.parity.clone();
    let Some(dir) = named.or_else(|| beside(&args.manifest)) else {
        return;
    };
    let opened = ManifestFile::open(&args.manifest);
    if opened.and_then(|manifest| manifest.check()).is_ok() {
        return;
    }
    if let Some(copy) = manifest_copy(&dir) {
        let of = recorded_at(&copy).map(|ns| format!(" of {}", describe(ns)));
        session.report.summary(format!(
            "its parity has a copy of the manifest{} that is sound: '{}'",
            of.unwrap_or_default(),
            command_with(args, &dir, &copy)
        ));
    }
}

/// Returns the time when a manifest was made or last updated, in nanoseconds since 1970.
fn recorded_at(manifest: &Path) -> Option<i64> {
    let header = ManifestFile::open(manifest).and_then(|manifest| manifest.header());
    let header = header.ok()?;
    let updated = header
        .extra
        .get("updated_at")
        .and_then(|time| time.as_str());
    updated
        .or(header.created_at.as_deref())
        .and_then(parse_rfc3339)
}

/// Returns the same command with another manifest, to be typed.
fn command_with(args: &RestoreArgs, parity: &Path, manifest: &Path) -> String {
    let shown = |path: &OsStr| shell_path(path.as_encoded_bytes()).into_owned();
    let mut command = "bc integrity restore".to_owned();
    for from in &args.from {
        command += &format!(" --from={}", shown(from));
    }
    command += &format!(" --parity={}", shown(parity.as_os_str()));
    for removed in &args.removed {
        command += " --removed";
        if !removed.is_empty() {
            command += &format!("={}", shown(removed));
        }
    }
    if args.only[..] != DEFAULT_LOSSES {
        let only: Vec<&str> = args.only.iter().map(|loss| loss.name()).collect();
        command += &format!(" --only={}", only.join(","));
    }
    let flags = [
        (args.partial, "partial"),
        (args.discard_damaged, "discard-damaged"),
        (args.trust_metadata, "trust-metadata"),
        (args.dry_run, "dry-run"),
        (args.force, "force"),
    ];
    for (_, flag) in flags.iter().filter(|(is_given, _)| *is_given) {
        command += &format!(" --{flag}");
    }
    let (root, manifest) = (shown(&args.root), shown(manifest.as_os_str()));
    format!("{command} {root} {manifest}")
}

/// Returns the paths at or below which removed files are restored: none of them stands for all.
fn removed(asked: &[OsString]) -> Result<Option<Vec<PathBuf>>, String> {
    let mut paths = Vec::new();
    for path in asked {
        let mut cleaned = PathBuf::new();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(name) => cleaned.push(name),
                Component::CurDir => {}
                _ => {
                    let shown = escape(path.as_encoded_bytes());
                    return Err(format!("--removed={shown}: is no path below the root"));
                }
            }
        }
        if cleaned.as_os_str().is_empty() {
            return Ok(Some(Vec::new()));
        }
        paths.push(cleaned);
    }
    Ok(Some(paths).filter(|paths| !paths.is_empty()))
}

/// Returns the engine's options for these arguments.
fn plan<'a>(
    args: &'a RestoreArgs,
    manifest: &'a ManifestFile,
    leave_out: &'a [OwnFile],
) -> RestoreOptions<'a> {
    let mut options = RestoreOptions::new(&args.root, manifest);
    options.from.clone_from(&args.from);
    options.only.clone_from(&args.only);
    options.partial = args.partial;
    options.memory = memory(&args.common);
    options.discard_damaged = args.discard_damaged;
    options.trust_metadata = args.trust_metadata;
    options.dry_run = args.dry_run;
    options.state = state_dir();
    options.root_check = root_check(args.force);
    options.leave_out = leave_out;
    options
}
