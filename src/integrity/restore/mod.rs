//! `bc integrity restore`: files that verify finds damaged or gone are restored from copies.

mod args;
mod output;

use bc_copy::{RestoreEvent, RestoreOptions};
use bc_integrity::ManifestFile;
use bc_walk::OwnFile;
use bc_walk::job::ErrorKind;

use super::job::{WorkError, algorithm_of, open, opened, start, working_shown};
use super::output::own_files;
use super::plan::root_check;
use crate::files::overlap::Given;
use crate::parse::environment::state_dir;
use crate::report::Exit;
use crate::session::Outcome;
use output::{Reporter, conclude};

pub use args::RestoreArgs;

/// Runs `bc integrity restore` from its arguments to its exit code.
pub fn restore(args: &RestoreArgs) -> Outcome<Exit> {
    let given = Given::inputs([args.manifest.as_os_str()])
        .operands([&args.root])
        .operands(&args.from);
    let mut session = start("restore", &args.common, &given, None)?;
    let manifest = open(&session, &args.manifest)?;
    let algorithm = algorithm_of(&session, &manifest)?;
    crate::session::signals::watch();
    let output = args.format.of(opened(&session, None)?);
    let own = own_files(None, &output);
    let options = plan(args, &manifest, &own);
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
    })?;
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

/// Returns the engine's options for these arguments.
fn plan<'a>(
    args: &'a RestoreArgs,
    manifest: &'a ManifestFile,
    leave_out: &'a [OwnFile],
) -> RestoreOptions<'a> {
    let mut options = RestoreOptions::new(&args.root, manifest);
    options.from.clone_from(&args.from);
    options.only.clone_from(&args.only);
    options.discard_damaged = args.discard_damaged;
    options.trust_metadata = args.trust_metadata;
    options.dry_run = args.dry_run;
    options.state = state_dir();
    options.root_check = root_check(args.force);
    options.leave_out = leave_out;
    options
}
