//! `bc integrity update`: bring a manifest up to date.

use bc_integrity::change::{Change, Class};
use bc_integrity::compare::Detail;
use bc_integrity::report::{ChangeFormat, ChangeReport};
use bc_integrity::{Damaged, ManifestFile, Reread, UpdateOptions};

use crate::exit::Exit;
use crate::output::Output;
use crate::run::{Outcome, Session};

use super::args::UpdateArgs;
use super::job::{Stop, now, origin, stopped, trust, until_cancelled, working};
use super::verdict::conclude_with;

pub fn update(args: &UpdateArgs) -> Outcome<Exit> {
    let mut session = Session::start(
        "integrity",
        "update",
        &args.common,
        &[],
        Some(&args.manifest),
    )?;
    // Its own replacing is what was asked for; what stdout appends would spoil it before.
    session.spare(&[args.manifest.as_os_str()], None)?;
    let reread = match &args.reread {
        Some(text) => text
            .parse::<Reread>()
            .map_err(|error| session.fatal(&format!("--reread: {error}")))?,
        None => Reread::None,
    };
    let algorithm = ManifestFile::open_to_replace(&args.manifest)
        .and_then(|manifest| manifest.algorithm())
        .map_err(|error| stopped(&session, &Stop::Engine(error)))?;
    let mut output = Output::open(None).map_err(|text| session.fatal(&text))?;
    let leave_out: Vec<_> = output.own_file().into_iter().collect();
    let mut report = ChangeReport::new(&mut output, ChangeFormat::Text);
    let (trust, root_check) = trust(args.force);
    let origin = origin();
    let what = UpdateOptions {
        root: &args.root,
        manifest: &args.manifest,
        reread,
        damaged: if args.accept_damaged {
            Damaged::Accept
        } else {
            Damaged::Keep
        },
        detail: if session.report.shows(1) {
            Detail::All
        } else {
            Detail::Changes
        },
        trust,
        root_check,
        now: now(),
        origin: &origin,
        leave_out: &leave_out,
    };
    // What was edited is in the new manifest; quiet leaves what is wrong.
    let quiet = session.common.quiet;
    let wrong = |class| matches!(class, Class::Damaged | Class::Unreadable);
    let updated = working(&session, Some(algorithm), "update", |work| {
        let told = |change: &Change| {
            // New and unread, or perhaps no edit.
            let unclear = change.reason.is_some();
            if quiet && !wrong(change.class) && !unclear {
                return Ok(());
            }
            report.change(change)
        };
        Ok(bc_integrity::update(
            &what,
            work,
            &mut until_cancelled(&session, told),
        )?)
    })?;
    let Some(updated) = updated else {
        return Ok(session.end(Exit::Done));
    };
    for problem in &updated.problems {
        session.report.warning(problem);
    }
    if updated.by_name > 0 {
        let (count, s) = (updated.by_name, if updated.by_name == 1 { "" } else { "s" });
        session.report.summary(&format!(
            "{count} file{s} taken as unchanged by path, size and mtime: inode numbers cannot be compared with the recorded ones"
        ));
    }
    session.report.note(
        1,
        match updated.written {
            Some(_) => "the manifest was rewritten",
            None => "nothing changed; the manifest was left as it is",
        },
    );
    session
        .metrics
        .set("files", "Files read.", updated.totals.read.files as f64);
    session.metrics.set(
        "read_bytes",
        "Bytes read.",
        updated.totals.read.bytes as f64,
    );
    // Bringing a manifest up to date is what was asked for: only damage, what may be
    // damage and what could not be read are worth an exit code.
    let summary = &updated.summary;
    let kept = if args.accept_damaged {
        0
    } else {
        summary.undecided
    };
    let exit = conclude_with(&mut session, output, summary);
    let exit = if exit == Exit::Differs && summary.unread() == 0 && kept == 0 {
        Exit::Done
    } else {
        exit
    };
    Ok(session.end(exit))
}
