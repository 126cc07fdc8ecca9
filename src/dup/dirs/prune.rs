//! `bc dup prune --dirs`: whole directories go, as one of their copies stays.

use std::collections::HashSet;

use bc_find::Files;
use bc_find::dirs::{Directories, DirsOptions, DirsReport};
use bc_find::groups::{FileGroup, FileRef, TreeGroup};
use bc_prune::{KeepRules, Planned, PruneOptions, RunMode};
use bc_walk::Identity;

use super::output::tell;
use super::search::{look, plan};
use crate::dup::args::PruneArgs;
use crate::dup::interactive::{self, Offer, Pick};
use crate::dup::output as reported;
use crate::dup::plan::PrunePlan;
use crate::dup::search::search;
use crate::dup::{journals, paths, question, references};
use crate::report::Exit;
use crate::session::progress::{counted, size, thousands};
use crate::session::{Outcome, Session};

/// Finds directories that are copies of each other, asks where it has to, and acts.
pub fn prune(args: &PruneArgs) -> Outcome<Exit> {
    let (session, PrunePlan { mut options, asks }) = PrunePlan::start(args)?;
    options.journal = journals::place(args);
    let mut search_plan = plan(&session, &args.paths, &args.search, &args.walk, None)?;
    // A directory that goes is known by itself, and not by the other names of its files.
    search_plan.reference_files = Files::All;
    let mut dirs_options = DirsOptions::new();
    dirs_options.contained = false;
    dirs_options.span = search_plan.scan.span;
    let named = paths::Named::open(&session, &args.paths, &args.action)?;
    references::check_destination(&session, &args.action, &search_plan.references)?;
    let found = search(&session, search_plan)?;
    named.check(&session, &found.listing)?;
    dirs_options.algorithm = found.algorithm;
    references::check_destination(&session, &args.action, &found.references)?;
    let answer = look(&session, &found, &dirs_options)?;
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    tell(&session, &found, &answer, &dirs_options);
    reported::originals(&session, &found.report().all_originals(), MOVED_BEFORE);
    options.references = found.references.clone();
    options.earlier = journals::earlier(args.journal.as_deref());
    let report = DirsReport {
        scan: found.report(),
        found: &answer,
        options: &dirs_options,
        offline: &[],
        manifests: &[],
    };
    let of_roots = |files: Vec<FileRef>| FileGroup { files };
    let roots: Vec<FileGroup> = report.tree_roots().into_iter().map(of_roots).collect();
    let Some(picks) = Picks::ask(&session, args, &answer, &roots, &mut options, asks) else {
        if !session.cancel.is_cancelled() {
            session.report.summary("nothing was changed");
        }
        let exit = session.report.exit();
        return Ok(session.end(exit));
    };
    let mut journal = match options.mode {
        RunMode::Execute if !roots.is_empty() => {
            let named = args.journal.as_deref();
            match journals::open(&session, named, &options.action, &roots)? {
                None => return Ok(session.end(Exit::Done)),
                opened => opened,
            }
        }
        _ => None,
    };
    let path = journal.as_ref().map(|journal| journal.path().to_owned());
    let steps = reported::steps(&session)?;
    let groups = report.trees().enumerate();
    let groups = groups.filter_map(|(nth, group)| picks.apply(nth, group));
    let summary = bc_prune::prune_trees(
        groups,
        &options,
        journal.as_mut(),
        &session.cancel,
        &mut |event| reported::prune_event(&event, &session, &steps),
    );
    reported::end_steps(&session, steps);
    reported::unmatched(&session, &options.rules, &summary);
    reported::totals(&session, &summary, options.mode, path.as_deref());
    Ok(reported::end_prune(session, &summary))
}

/// Message about the original of a file whose directory an earlier version was moving to another
/// file system when it was killed.
const MOVED_BEFORE: &str = "the original of a move that was killed; 'bc dup undo' of that run's \
     journal gives the name back";

/// Directories that were chosen of the groups.
enum Picks {
    /// All but one of each, by the rules.
    Rules,
    /// The directories picked from each group; `None` for a group that stays as it is.
    Chosen(Vec<Option<Pick>>),
}

impl Picks {
    /// Asks the questions that have to be asked; `None` if nothing is to be done.
    fn ask(
        session: &Session,
        args: &PruneArgs,
        answer: &Directories,
        roots: &[FileGroup],
        options: &mut PruneOptions,
        asks: bool,
    ) -> Option<Picks> {
        if args.interactive {
            let heading = |nth: usize| {
                let group = &answer.groups[nth];
                format!(
                    "{} × {}, {} in each",
                    size(group.bytes),
                    thousands(group.dirs.len() as u64),
                    counted(group.files, "file", "files")
                )
            };
            // Files that filters left out may differ: of these groups nothing goes.
            let offers = answer.groups.iter().zip(roots).enumerate();
            let offers = offers.map(|(nth, (group, roots))| Offer {
                heading: heading(nth),
                group: (group.filtered == 0).then_some(roots),
                suffix: "/",
            });
            let picks = interactive::choose(session, &offers.collect::<Vec<_>>(), options)?;
            let planned = of_picks(answer, &picks);
            if asks && !interactive::confirmed(session, options, &planned.0, planned.1) {
                return None;
            }
            options.rules = interactive::rules();
            options.kept_dirs = kept_by(roots, &picks);
            return Some(Picks::Chosen(picks));
        }
        if asks {
            // By the way: the question says which rules match nothing.
            for group in roots {
                options.rules.order(group);
            }
            let (planned, dirs) = at_stake(answer, roots, &options.rules);
            let references = !options.references.is_empty();
            if dirs > 0 && !question::asked(session, options, &planned, dirs, references) {
                return None;
            }
        }
        let kept = roots.iter().filter_map(|group| options.rules.chosen(group));
        options.kept_dirs = kept.map(|dir| dir.id).collect();
        Some(Picks::Rules)
    }

    fn apply(&self, nth: usize, mut group: TreeGroup) -> Option<TreeGroup> {
        let Picks::Chosen(picks) = self else {
            return Some(group);
        };
        let pick = picks.get(nth)?.as_ref();
        let pick = pick.filter(|pick| !pick.targets.is_empty())?;
        let mut copies: Vec<_> = std::mem::take(&mut group.copies)
            .into_iter()
            .map(Some)
            .collect();
        let taken = pick.kept_file.iter().map(|at| (0, *at));
        let taken = taken.chain(pick.targets.iter().map(|at| (1, *at)));
        group.copies = taken
            .filter_map(|(root, at)| {
                let mut copy = copies.get_mut(at)?.take()?;
                copy.dir.root = root;
                Some(copy)
            })
            .collect();
        Some(group)
    }
}

/// The directories of groups with an answer that the answer does not give up.
fn kept_by(roots: &[FileGroup], picks: &[Option<Pick>]) -> HashSet<Identity> {
    let mut kept = HashSet::new();
    for (group, pick) in roots.iter().zip(picks) {
        let Some(pick) = pick else { continue };
        let stays = |(at, _): &(usize, &FileRef)| !pick.targets.contains(at);
        let dirs = group.files.iter().enumerate().filter(stays);
        kept.extend(dirs.map(|(_, dir)| dir.id));
    }
    kept
}

/// Returns the files and the number of directories that would go by the rules, as far as they are
/// known before anything is compared again.
fn at_stake(answer: &Directories, roots: &[FileGroup], rules: &KeepRules) -> (Planned, u64) {
    let mut planned = Planned::default();
    let mut dirs = 0;
    for (group, roots) in answer.groups.iter().zip(roots) {
        let stays = roots
            .files
            .iter()
            .filter(|dir| dir.protected)
            .count()
            .max(1);
        let goes = (roots.files.len() - stays.min(roots.files.len())) as u64;
        if goes == 0 || group.filtered > 0 {
            continue;
        }
        dirs += goes;
        add(&mut planned, group, goes);
        let all = rules.order(roots).into_iter().flat_map(|dir| dir.names);
        let gone = all.skip(stays).filter(|at| !roots.files[*at].protected);
        gone.for_each(|at| planned.show(&roots.files[at].path));
    }
    (planned, dirs)
}

fn of_picks(answer: &Directories, picks: &[Option<Pick>]) -> (Planned, u64) {
    let mut planned = Planned::default();
    let mut dirs = 0;
    for (group, pick) in answer.groups.iter().zip(picks) {
        let goes = pick.as_ref().map_or(0, |pick| pick.targets.len() as u64);
        if goes > 0 {
            dirs += goes;
            add(&mut planned, group, goes);
        }
    }
    (planned, dirs)
}

fn add(planned: &mut Planned, group: &bc_find::dirs::DirGroup, goes: u64) {
    planned.groups += 1;
    planned.files += goes * group.files;
    let others = group.dirs.len() as u64 - 1;
    planned.bytes += group.wasted / others.max(1) * goes;
}
