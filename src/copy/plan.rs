//! Command line of `bc copy`, checked before any file is looked at.

use std::ffi::OsString;

use bc_copy::{CopyOptions, ManifestPlace, OnConflict, Target};
use bc_walk::Metadata;

use super::args::CopyArgs;
use crate::parse::args::is_dash;
use crate::parse::environment::state_dir;
use crate::session::{Outcome, Session, now};

/// Bytes of the buffers of one worker: a read, a part of a larger file, attributes.
const WORKER: u64 = 3 << 20;

/// Returns the number of threads, as far as there is room for their buffers in half of the memory
/// budget; the rest is for the state of the files, and returned too.
fn workers(session: &Session) -> Outcome<(usize, Option<u64>)> {
    let most = session.most_workers();
    let Some(bc_fs::Size(budget)) = session.common.memory_budget else {
        return Ok((most, None));
    };
    match usize::try_from(budget / 2 / WORKER).unwrap_or(usize::MAX) {
        0 => Err(session.fatal(format!(
            "--memory-budget: {budget} bytes are too few for a thread; at least {} are needed",
            2 * WORKER
        ))),
        room => {
            let workers = most.min(room);
            Ok((workers, Some(budget - workers as u64 * WORKER)))
        }
    }
}

/// Checked options of one run.
pub struct CopyPlan {
    /// The engine's options, with the first destination.
    pub options: CopyOptions,
    /// The other destinations.
    pub others: Vec<OsString>,
}

impl CopyPlan {
    /// Returns all destinations, in order.
    pub fn destinations(&self) -> impl Iterator<Item = &OsString> {
        std::iter::once(&self.options.destination).chain(&self.others)
    }
}

/// Returns the sources and the destinations. The last path is a destination as always, unless there
/// is but one: so an option that names one more makes no source of it.
fn paths(args: &CopyArgs) -> Option<(&[OsString], Vec<OsString>)> {
    let (last, rest) = args.paths.split_last()?;
    let (sources, mut destinations) = match (rest, &args.to[..]) {
        ([], []) => return None,
        ([], _) => (&args.paths[..], Vec::new()),
        _ => (rest, vec![last.clone()]),
    };
    destinations.extend_from_slice(&args.to);
    Some((sources, destinations))
}

/// Returns the engine's options.
pub fn plan(session: &Session, args: &CopyArgs) -> Outcome<CopyPlan> {
    if args.walk.files_from.is_some() || args.walk.null {
        return Err(session.fatal(
            "--files-from: the paths of a list have no place below a destination; name the sources, \
             or choose with --include and --exclude",
        ));
    }
    if args.walk.follow_symlinks {
        return Err(session.fatal(
            "--follow-symlinks: links are copied as links: a walk visits each directory once, so a \
             second link to one would be copied empty",
        ));
    }
    let found = paths(args).map(|(sources, destinations)| (sources, destinations.into_iter()));
    let next = found.map(|(sources, mut others)| (sources, others.next(), others));
    let Some((sources, Some(destination), others)) = next else {
        let text = "give at least one source, and behind it the destination; see --help";
        return Err(session.fatal(text));
    };
    if args.exactly && sources.len() > 1 {
        return Err(session.fatal("-T: one source, which becomes the destination"));
    }
    let mut options = CopyOptions::new(sources, destination);
    options.target = match args.exactly {
        true => Target::Exactly,
        false => Target::Cp,
    };
    options.on_conflict = match args.force {
        true => OnConflict::Replace,
        false => args.on_conflict,
    };
    options.read_back = args.verify;
    options.durability = args.sync;
    options.preserve = args.preserve;
    options.strict = args.strict_metadata;
    options.reflink = args.reflink;
    options.sparse = args.sparse;
    options.algorithm = args.algorithm.0;
    options.manifest = match &args.manifest {
        None => ManifestPlace::Destination,
        Some(name) if name == "none" => ManifestPlace::None,
        Some(name) if is_dash(name) => {
            if args.itemize && !args.dry_run {
                let text = "--itemize and --manifest=-: both would write to standard output";
                return Err(session.fatal(text));
            }
            // One that is closed is found before anything is copied.
            drop(session.output(None)?);
            ManifestPlace::File("/dev/stdout".into())
        }
        Some(file) => ManifestPlace::File(file.into()),
    };
    options.restart = args.restart;
    options.dry_run = args.dry_run;
    options.state = state_dir();
    if options.state.is_none() && !args.dry_run {
        let text = "neither XDG_STATE_HOME nor HOME says where a journal could be; if this copy is \
                    interrupted, it cannot be resumed";
        session.report.warning(text);
    }
    (options.workers, options.most_memory) = workers(session)?;
    options.tables = crate::session::tables::of_workers();
    options.rate = session.rate();
    options.walk_workers = session.walk_workers();
    // A budget may not allow for it, and others do not shorten what a rate has them wait.
    if options.most_memory.is_none() && options.rate.is_none() {
        options.waiting = options.walk_workers.most();
    }
    options.walk = session.walk_options(&args.walk, Metadata::Full, None)?;
    options.now = now();
    let origin = crate::integrity::origin();
    (options.host, options.machine) = (origin.host, origin.machine);
    Ok(CopyPlan {
        options,
        others: others.collect(),
    })
}
