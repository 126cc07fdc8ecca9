//! What `bc copy` is asked for, checked before anything is looked at.

use bc_copy::{CopyOptions, ManifestPlace, OnConflict, Target};
use bc_walk::Metadata;

use super::args::CopyArgs;
use crate::dirs::state_dir;
use crate::run::{Outcome, Session, now};

/// The engine's options.
pub fn plan(session: &Session, args: &CopyArgs) -> Outcome<CopyOptions> {
    if let Some(text) = args.other.refusal() {
        return Err(session.fatal(text));
    }
    if args.walk.files_from.is_some() || args.walk.null {
        return Err(session.fatal("--files-from: name what is to be copied"));
    }
    if args.walk.follow_symlinks {
        return Err(session.fatal("--follow-symlinks: links are copied as links"));
    }
    let Some((destination, sources)) = args.paths.split_last().filter(|(_, rest)| !rest.is_empty())
    else {
        let text = "give at least one source, and behind it the destination; see --help";
        return Err(session.fatal(text));
    };
    if args.exactly && sources.len() > 1 {
        return Err(session.fatal("-T: one source, which becomes the destination"));
    }
    let mut options = CopyOptions::new(sources.to_vec(), destination.clone());
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
        Some(file) => ManifestPlace::File(file.into()),
    };
    options.restart = args.restart;
    options.dry_run = args.dry_run;
    options.state = state_dir();
    options.workers = session.most_workers();
    options.walk_workers = session.walk_workers();
    options.walk = session.walk_options(&args.walk, Metadata::Full, None)?;
    options.now = now();
    let origin = crate::integrity::origin();
    (options.host, options.machine) = (origin.host, origin.machine);
    Ok(options)
}
