//! `bc integrity restore` from its arguments to its exit code.

use bc_copy::RestoreEvent;
use bc_walk::job::ErrorKind;

use super::args::RestoreArgs;
use super::output::{Reporter, conclude};
use super::plan::plan;
use crate::files::overlap::Given;
use crate::integrity::job::{Stop, algorithm_of, open, working_shown};
use crate::integrity::output::own_files;
use crate::integrity::run::{opened, start};
use crate::report::Exit;
use crate::session::Outcome;

pub fn restore(args: &RestoreArgs) -> Outcome<Exit> {
    let given = Given::inputs([args.manifest.as_os_str()])
        .operands([&args.root])
        .operands(&args.from);
    let mut session = start("restore", &args.common, &given, None)?;
    let manifest = open(&session, &args.manifest)?;
    let algorithm = algorithm_of(&session, &manifest)?;
    // The first signal lets the work in progress finish.
    crate::session::signals::end_at_the_second();
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
            restored => restored.map(Ok).map_err(Stop::Engine),
        }
    })?;
    let Some(restored) = restored else {
        reporter.finish(None)?;
        return Ok(session.end(Exit::Done));
    };
    let restored = restored?;
    reporter.finish(Some(&restored))?;
    if restored.wanted > 0 && options.manifest.is_of_others() && !options.trust_metadata {
        let text =
            "--trust-metadata gives what such a manifest says of owners, modes and links, too";
        session.report.summary(text);
    }
    let exit = conclude(&mut session, &restored, args.dry_run);
    Ok(session.end(exit))
}
