//! The groups of a report or of decisions on one, for `bc dup prune --from`: those that the options
//! beside it leave.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_find::groups::{FileGroup, FileRef};
use bc_find::report::Saved;
use bc_walk::Globs;

use super::args::PruneArgs;
use super::interactive::Pick;
use crate::files::input::Input;
use crate::files::overlap::Given;
use crate::parse::args::WalkArgs;
use crate::report::diagnostic::Diagnostic;
use crate::session::{Outcome, Session};

/// Reads a report and leaves out the files that the options do. A file counts as in a search: by
/// sizes, times, `--include`, `--exclude` and `--no-hidden`, each path below the root that it was found
/// under. Options that a report cannot answer are refused with the command line.
pub fn read(session: &Session, report: &Path, walk: &WalkArgs) -> Outcome<Saved> {
    let shown = bc_fs::escape(report.as_os_str().as_encoded_bytes()).into_owned();
    let filter = Filter::new(session, walk)?;
    let input =
        Input::open(report.as_os_str(), &session.cancel).map_err(|text| session.fatal(&text))?;
    let text = input
        .read_whole()
        .map_err(|error| session.fatal(Diagnostic::failed(report, "read", &error)))?;
    let mut saved =
        bc_find::report::read(&text).map_err(|error| session.fatal(format!("{shown}: {error}")))?;
    let files = saved.groups.iter().flat_map(|group| &group.files);
    session.spare_listed(files.map(|file| file.path.as_slice()))?;
    let references = saved.references.iter().map(|path| OsStr::from_bytes(path));
    session.spare(&Given::default().operands(references), None)?;
    // As in a search: it is replaced at the end.
    let metrics = session.metrics_file();
    let is_replaced = |file: &FileRef| {
        let path = OsStr::from_bytes(&file.path);
        metrics.as_ref().is_some_and(|metrics| metrics.is_at(path))
    };
    for group in &mut saved.groups {
        group
            .files
            .retain(|file| filter.takes(file) && !is_replaced(file));
    }
    saved
        .groups
        .retain(|group: &FileGroup| group.files.len() > 1);
    Ok(saved)
}

/// Leaves of each group what was decided on, as the rules of an interactive run take it; returns
/// false for a report, in which nothing was.
///
/// # Errors
/// Options that decide, too.
pub fn choose(
    session: &Session,
    saved: &mut Saved,
    report: &Path,
    args: &PruneArgs,
) -> Outcome<bool> {
    let Some(pruned) = saved.pruned.take() else {
        return Ok(false);
    };
    for (is_given, option) in [
        (!args.keep.is_empty(), "--keep"),
        (args.keep_copies > 1, "--keep-copies"),
        (args.interactive, "--interactive"),
    ] {
        if is_given {
            let shown = bc_fs::escape(report.as_os_str().as_encoded_bytes());
            let text = format!("{option}: {shown} says which files stay");
            return Err(session.fatal(text));
        }
    }
    for group in &mut saved.groups {
        let all = 0..group.files.len();
        let (targets, kept_file): (Vec<usize>, Vec<usize>) =
            all.partition(|at| pruned.contains(&group.files[*at].path));
        let is_across = |target: &usize| {
            let root = group.files[*target].root;
            kept_file.iter().any(|kept| group.files[*kept].root != root)
        };
        let targets = targets.into_iter();
        let targets = targets.filter(|target| !args.search.across_roots || is_across(target));
        let targets = targets.collect();
        *group = Pick { kept_file, targets }.of(group);
    }
    Ok(true)
}

struct Filter {
    include: Globs,
    exclude: Globs,
    no_hidden: bool,
    least: u64,
    most: u64,
    newer: Option<i64>,
    older: Option<i64>,
}

impl Filter {
    fn new(session: &Session, walk: &WalkArgs) -> Outcome<Filter> {
        let globs = |which: &str, patterns: &[OsString]| {
            crate::parse::args::globs(patterns)
                .map_err(|text| session.fatal(format!("{which}: {text}")))
        };
        let (least, most) = session.sizes(walk, 0)?;
        let (newer, older) = session.times(walk)?;
        Ok(Filter {
            include: globs("--include", &walk.include)?,
            exclude: globs("--exclude", &walk.exclude)?,
            no_hidden: walk.no_hidden,
            least,
            most: most.unwrap_or(u64::MAX),
            newer,
            older,
        })
    }

    fn takes(&self, file: &FileRef) -> bool {
        let size = file.stamp.size;
        if size < self.least || size > self.most {
            return false;
        }
        let modified = file.stamp.mtime_ns;
        if self.newer.is_some_and(|bound| modified <= bound)
            || self.older.is_some_and(|bound| modified >= bound)
        {
            return false;
        }
        let path = file.relative();
        // A root that is the file itself is never hidden: it was named.
        let below = file.root_len < file.path.len();
        if self.no_hidden && below && path.split(|byte| *byte == b'/').any(is_hidden) {
            return false;
        }
        let mut above = (0..path.len()).filter(|at| path[*at] == b'/');
        let excluded = self.exclude.matches_file(path)
            || above.any(|at| {
                self.exclude.matches_directory(&path[..at])
                    || self.exclude.matches_contents(&path[..at])
            });
        !excluded && (self.include.is_empty() || self.include.matches_file(path))
    }
}

fn is_hidden(name: &[u8]) -> bool {
    name.first() == Some(&b'.')
}
