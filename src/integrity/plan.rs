//! Translation of the command line to the engine's options: checked, and in the engine's own terms.
//! Files that only the run knows, those that it writes, are added by it.

use std::ffi::OsString;

use bc_digest::Algorithm;
use bc_fs::Size;
use bc_integrity::compare::{Detail, Renames};
use bc_integrity::fields::{CompareMode, CompareRules, Fields};
use bc_integrity::{
    CreateOptions, Damaged, DiffOptions, ImportOptions, ManifestFile, Origin, ReadTimes, Reread,
    RootCheck, TreeOptions, Trust, UpdateOptions, VerifyOptions, XattrPolicy,
};
use bc_walk::{Entries, Metadata};

use super::args::{DiffArgs, ImportArgs, ManifestArgs, UpdateArgs, VerifyArgs};
use super::job::{WorkError, algorithm_of, origin, stopped};
use crate::session::{Outcome, Session, now};

pub fn manifest<'a>(args: &'a ManifestArgs, session: &Session) -> Outcome<CreateOptions<'a>> {
    Ok(CreateOptions::new(&args.root, args.algorithm)
        .tree(tree(args, session)?)
        .created_at(now())
        .origin(origin())
        .shard(args.shard))
}

fn tree(args: &ManifestArgs, session: &Session) -> Outcome<TreeOptions> {
    if args.walk.files_from.is_some() {
        return Err(session.fatal("--files-from: a manifest records a whole tree; use --include"));
    }
    let shard = args.walk.check_shard(args.shard);
    shard.map_err(|text| session.fatal(text))?;
    // The shared translation also checks the globs.
    let walk = session.walk_options(&args.walk, Metadata::Full, None)?;
    let bytes = |globs: &[OsString]| {
        let globs = globs.iter().map(|glob| glob.as_encoded_bytes().to_vec());
        globs.collect()
    };
    Ok(TreeOptions::default()
        .hidden(walk.hidden)
        .symlinks(walk.symlinks)
        .file_systems(walk.file_systems)
        .max_depth(walk.max_depth)
        .include(bytes(&args.walk.include))
        .exclude(bytes(&args.walk.exclude))
        .min_size(walk.min_size)
        .max_size(walk.max_size)
        .newer(walk.newer)
        .older(walk.older)
        .ignore_files(walk.ignore_files)
        .entries(Entries::All)
        .xattrs(match args.xattrs {
            true => XattrPolicy::Record,
            false => XattrPolicy::Skip,
        }))
}

pub fn verify<'a>(
    args: &'a VerifyArgs,
    session: &Session,
    manifest: &'a ManifestFile,
) -> Outcome<VerifyOptions<'a>> {
    if args.sample.is_some() && args.mode == CompareMode::Meta {
        return Err(session.fatal("--sample: --mode=meta reads no content"));
    }
    Ok(VerifyOptions::new(&args.root, manifest)
        .rules(rules(args.mode, &args.ignore, session)?)
        .sample(args.sample)
        .read_times(read_times(session))
        .detail(match args.fail_fast {
            true => Detail::First,
            false => detail(session),
        })
        .renames(Renames::Directories)
        .trust(trust(args.force))
        .root_check(root_check(args.force)))
}

/// Days of which the metrics have the share of contents that were read.
pub const RECENT_DAYS: i64 = 30;

/// Returns the times at which contents were read that metrics count, if there are any to write.
pub fn read_times(session: &Session) -> Option<ReadTimes> {
    const DAY_NS: i64 = 86_400 * 1_000_000_000;
    session.common.metrics.as_ref()?;
    let now = now();
    Some(ReadTimes::new(
        now,
        now.saturating_sub(RECENT_DAYS * DAY_NS),
    ))
}

pub fn diff<'a>(
    args: &DiffArgs,
    session: &Session,
    old: &'a ManifestFile,
    new: &'a ManifestFile,
) -> DiffOptions<'a> {
    DiffOptions::new(old, new)
        .detail(detail(session))
        .renames(Renames::Directories)
        .trust(trust(args.force))
}

/// Returns the rules of a comparison of manifests, which are checked before anything is read.
pub fn diff_rules(args: &DiffArgs, session: &Session) -> Outcome<CompareRules> {
    rules(CompareMode::Strict, &args.ignore, session)
}

/// Returns the options with which the directories of a comparison are recorded: those of `like`, if
/// a manifest is compared with one.
pub fn recording<'a>(
    args: &'a DiffArgs,
    like: Option<&ManifestFile>,
    session: &Session,
) -> Outcome<CreateOptions<'a>> {
    let root = &args.old;
    let options = match like {
        // The fastest of those that nobody can forge a collision of.
        None => CreateOptions::new(root, Algorithm::Blake3),
        Some(manifest) => {
            let tree = TreeOptions::of_manifest(manifest, trust(args.force))
                .map_err(|error| stopped(session, &WorkError::Engine(error)))?;
            CreateOptions::new(root, algorithm_of(session, manifest)?).tree(tree)
        }
    };
    Ok(options.created_at(now()).origin(origin()))
}

pub fn update<'a>(
    args: &'a UpdateArgs,
    session: &Session,
    origin: &'a Origin,
) -> Outcome<UpdateOptions<'a>> {
    let reread = match &args.reread {
        Some(text) => text
            .parse::<Reread>()
            .map_err(|error| session.fatal(format!("--reread: {error}")))?,
        None => Reread::None,
    };
    Ok(UpdateOptions::new(&args.root, &args.manifest)
        .now(now())
        .origin(origin)
        .reread(reread)
        .max_changed(args.max_changed)
        .damaged(match args.accept_damaged {
            true => Damaged::Accept,
            false => Damaged::Keep,
        })
        .detail(detail(session))
        .renames(Renames::Directories)
        .trust(trust(args.force))
        .root_check(root_check(args.force)))
}

pub fn import(args: &ImportArgs) -> ImportOptions<'_> {
    ImportOptions::new(args.file.as_os_str().as_encoded_bytes(), now())
        .algorithm(args.algorithm)
        .strip_prefix(args.strip_prefix.as_encoded_bytes())
        .most_memory(args.common.memory_budget.map(|Size(bytes)| bytes))
}

/// Returns the rules; without `--ignore`, fields that cannot survive a restore are ignored.
fn rules(mode: CompareMode, ignore: &[String], session: &Session) -> Outcome<CompareRules> {
    let ignore = match ignore {
        [] => Ok(Fields::NOT_RESTORED),
        names => names.join(",").parse(),
    };
    let ignore = ignore.map_err(|error| session.fatal(format!("--ignore: {error}")))?;
    Ok(CompareRules::new(mode, ignore))
}

fn detail(session: &Session) -> Detail {
    match session.report.shows(1) {
        true => Detail::All,
        false => Detail::Changes,
    }
}

pub fn trust(force: bool) -> Trust {
    match force {
        true => Trust::Forced,
        false => Trust::Checked,
    }
}

pub fn root_check(force: bool) -> RootCheck {
    match force {
        true => RootCheck::Forced,
        false => RootCheck::Careful,
    }
}
