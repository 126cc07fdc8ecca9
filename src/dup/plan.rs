//! Command line of `bc dup`, checked as far as possible without a look at the files that are
//! searched.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_find::manifests::Manifest;
use bc_find::scan::{Equality, HardLinks, ScanOptions, Span};
use bc_find::{Cache, Files, Location, Subtrees};
use bc_prune::{Action, Force, Keep, KeepRules, OnMetadataDiff, PruneOptions, Roots, RunMode};
use bc_walk::Metadata;

use super::args::search::SearchArgs;
use super::args::{LEAST, PruneArgs};
use super::references;
use crate::parse::args::WalkArgs;
use crate::session::{Outcome, Session, signals};

/// A search.
pub struct SearchPlan<'a> {
    /// Files and directories, the references among them.
    pub roots: Vec<OsString>,
    /// Indices of the roots that are references.
    pub reference_roots: Vec<usize>,
    /// References, opened; the files below them are not known yet.
    pub references: Subtrees,
    /// Facts to gather of the files there: where all names are searched that may be changed, the
    /// search finds out itself which of them are a reference's.
    pub reference_files: Files,
    /// References that are manifests of disks which are not here.
    pub manifests: Vec<Manifest>,
    /// Files to search, as they were named.
    pub walk: &'a WalkArgs,
    /// Options of the walk for these files.
    pub walk_options: bc_walk::WalkOptions,
    /// All but references, workers and how they read, which take a listing.
    pub scan: ScanOptions,
    /// Cache for digests from one search to the next.
    pub cache: Option<CacheFile>,
}

impl<'a> SearchPlan<'a> {
    /// Returns the plan of a search whose report is written to `output`.
    pub fn new(
        session: &Session,
        paths: &[OsString],
        search: &SearchArgs,
        walk: &'a WalkArgs,
        output: Option<&Path>,
    ) -> Outcome<SearchPlan<'a>> {
        SearchPlan::from_size(LEAST.0, session, paths, search, walk, output)
    }

    /// Returns the plan of a search among files of at least `least` bytes, where the user names no
    /// other size.
    pub fn from_size(
        least: u64,
        session: &Session,
        paths: &[OsString],
        search: &SearchArgs,
        walk: &'a WalkArgs,
        output: Option<&Path>,
    ) -> Outcome<SearchPlan<'a>> {
        if walk.files_from.is_some() && !search.reference.is_empty() {
            let text = "--reference needs PATHs; it does not go with --files-from";
            return Err(session.fatal(text));
        }
        let (named, mut manifests) = references::take_manifests(session, &search.reference)?;
        references::compare_homes(session, &mut manifests, paths)?;
        let references = references::open(session, &references::bytes(&named))?;
        // References are searched as well; one that is a PATH too, by whichever
        // name, is that root.
        let mut roots = paths.to_vec();
        let reference_roots = references.add_to_roots(&mut roots);
        if paths.is_empty() {
            roots.clear();
        }
        let cache = CacheFile::new(session, search)?;
        let leave_out = crate::files::output::replaced(output);
        let mut walk_options = session.walk_options(walk, Metadata::Basic, leave_out)?;
        // It is replaced at the end: no duplicate may be given up for it.
        walk_options.leave_out.extend(session.metrics_file());
        (walk_options.min_size, _) = session.sizes(walk, least)?;
        let scan = ScanOptions::default()
            .algorithm(search.algorithm)
            .min_size(walk_options.min_size)
            .hard_links(match search.match_hardlinks {
                true => HardLinks::Duplicates,
                false => HardLinks::OneFile,
            })
            .span(match search.across_roots {
                true => Span::AcrossRoots,
                false => Span::Any,
            })
            .equality(match search.verify_bytes {
                true => Equality::Bytes,
                false => Equality::Digest,
            })
            .start(session.common.threads.start());
        Ok(SearchPlan {
            roots,
            reference_roots,
            references,
            reference_files: Files::Named,
            manifests,
            walk,
            walk_options,
            scan,
            cache,
        })
    }
}

/// The file of a cache.
pub struct CacheFile {
    path: PathBuf,
    location: Location,
}

impl CacheFile {
    /// Returns the file that was asked for, or the usual one if no name was given.
    fn new(session: &Session, search: &SearchArgs) -> Outcome<Option<CacheFile>> {
        let (path, location) = match &search.cache {
            None => return Ok(None),
            Some(name) if !name.is_empty() => (name.into(), Location::Named),
            Some(_) => match crate::parse::environment::cache_dir() {
                Some(dir) => (dir.join("dup.redb"), Location::Usual),
                None => {
                    let text = "--cache: neither XDG_CACHE_HOME nor HOME is set; name a file";
                    return Err(session.fatal(text));
                }
            },
        };
        Ok(Some(CacheFile { path, location }))
    }

    pub fn open(&self, session: &Session) -> Outcome<Cache> {
        Cache::open(&self.path, self.location)
            .map_err(|refused| session.fatal(format!("--cache: {refused}; it is left as it is")))
    }
}

/// Options of a run of prune.
pub struct PrunePlan {
    /// All but the references and the earlier journals, which a search may take hours to come to.
    pub options: PruneOptions,
    /// True if the user is asked first.
    pub asks: bool,
}

impl PrunePlan {
    /// Starts the run: before any file is searched, asked about or changed it is refused if it
    /// cannot be carried out, or cannot report its steps.
    pub fn start(args: &PruneArgs) -> Outcome<(Session, PrunePlan)> {
        let mut read = args.walk.inputs();
        read.extend(args.from.as_deref().map(Path::as_os_str));
        read.extend(args.search.cache.as_deref());
        let journal = args.journal.as_deref();
        let given = references::given(read, &args.paths, &args.search.reference, &args.walk);
        // What a killed move has put there may be all that is left of a file.
        let destination = match &args.action {
            Action::Move(dir) => Some(OsStr::from_bytes(dir)),
            _ => None,
        };
        let given = given.operands(destination);
        let session = Session::start("dup", "prune", &args.common, &given, journal)?;
        signals::watch();
        references::refuse_manifests(&session, &args.search.reference)?;
        session.output(None)?;
        let plan = PrunePlan::new(&session, args)?;
        Ok((session, plan))
    }

    fn new(session: &Session, args: &PruneArgs) -> Outcome<PrunePlan> {
        let mode = mode(args.dry_run);
        let asks = mode == RunMode::Execute
            && (args.action.needs_confirmation() && !args.yes || args.interactive);
        let may_be_whole = matches!(
            args.action,
            Action::Delete | Action::Move(_) | Action::Trash(_)
        );
        if args.dirs && !may_be_whole {
            let text = "--dirs goes with --action=delete, --action=trash and --action=move:DIR";
            return Err(session.fatal(text));
        }
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if args.interactive && !is_terminal {
            return Err(session.fatal("--interactive asks on a terminal, and there is none"));
        }
        // Where the question would not be seen, there is no one to answer it.
        if asks && !is_terminal {
            return Err(session.fatal(format!(
                "--action={} asks on a terminal first; without one it needs --yes",
                args.action.name()
            )));
        }
        let keep = args
            .keep
            .iter()
            .map(|rule| Keep::parse(rule.as_encoded_bytes()));
        let keep: Vec<Keep> = keep
            .collect::<Result<_, _>>()
            .map_err(|error| session.fatal(format!("--keep: {error}")))?;
        if args.from.is_some() && !args.paths.is_empty() {
            return Err(session.fatal("--from names the files; give no PATH beside it"));
        }
        let mut options = PruneOptions::new(match &args.action {
            Action::Trash(_) => {
                let home = crate::parse::environment::home_trash();
                Action::Trash(home.map(|home| home.into_os_string().into_encoded_bytes()))
            }
            action => action.clone(),
        });
        options.mode = mode;
        if matches!(options.action, Action::Trash(_)) {
            options.utc_offset = crate::parse::environment::utc_offset();
        }
        options.workers = session.common.threads.most();
        options.rate = session.rate();
        // A budget may not allow for it, and others do not shorten what a rate has them wait.
        if session.common.memory_budget.is_none() && options.rate.is_none() {
            options.waiting = session.common.threads.workers().most();
        }
        options.max_links = args.max_links;
        options.rules = KeepRules::new(
            keep,
            match args.search.across_roots {
                true => Roots::Across,
                false => Roots::Any,
            },
        )
        .copies(args.keep_copies as usize);
        if args.ignore_metadata {
            options.on_metadata_diff = OnMetadataDiff::Ignore;
        }
        if args.force {
            options.force = Force::Yes;
        }
        Ok(PrunePlan { options, asks })
    }
}

/// Returns the mode of a run: whether anything is changed.
pub fn mode(dry_run: bool) -> RunMode {
    match dry_run {
        true => RunMode::DryRun,
        false => RunMode::Execute,
    }
}
