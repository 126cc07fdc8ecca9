//! Places of prune's journals: one file a run in `$XDG_STATE_HOME/bc`, unless the user names
//! another.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bc_find::groups::FileGroup;
use bc_manifest::time::{format_rfc3339, parse_rfc3339};
use bc_prune::{Action, Journal};

use super::args::PruneArgs;
use crate::parse::environment::state_dir;
use crate::report::diagnostic::Diagnostic;
use crate::session::{Outcome, Session};

const NOWHERE: &str = "neither XDG_STATE_HOME nor HOME is set";

/// Starts the journal asked for, or a new one in the default place. `None` if a
/// signal came while an existing one was read.
pub fn open(
    session: &Session,
    named: Option<&Path>,
    action: &Action,
    groups: &[FileGroup],
) -> Outcome<Option<Journal>> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => {
            let Some(dir) = state_dir() else {
                return Err(session.fatal(format!(
                    "no place for the journal: {NOWHERE}; name one with --journal"
                )));
            };
            // Its contents, the places of files, are no other user's business.
            let made = std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&dir);
            if let Err(error) = made {
                let what = Diagnostic::failed(&dir, "mkdir", &error);
                let text = format!("{what}; choose another place with --journal");
                return Err(session.fatal(what.worded(text)));
            }
            let name = new_name(&dir);
            dir.join(name)
        }
    };
    match Journal::create(&path, action, groups, &session.cancel) {
        Ok(journal) => Ok(Some(journal)),
        Err(_) if session.cancel.is_cancelled() => Ok(None),
        Err(error) => Err(session.fatal(&error)),
    }
}

/// Returns the path of this run's journal, as far as there is a place for one.
pub fn place(args: &PruneArgs) -> Option<PathBuf> {
    let usual = || state_dir().map(|dir| dir.join(new_name(&dir)));
    args.journal.clone().or_else(usual)
}

/// Returns the journals that may contain an unfinished step.
pub fn earlier(named: Option<&Path>) -> Vec<PathBuf> {
    let mut found = state_dir()
        .and_then(|dir| all(&dir).ok())
        .unwrap_or_default();
    found.sort();
    let mut paths: Vec<PathBuf> = found.into_iter().map(|(_, path)| path).collect();
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // It may be one of those.
    paths.extend(named.map(Path::to_owned));
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(real(path)));
    paths
}

/// Returns the journal of the run that began last, of those that changed something; where none did,
/// of the last one. A journal that cannot be read may be of one that did.
pub fn newest(session: &Session) -> Outcome<PathBuf> {
    let Some(dir) = state_dir() else {
        return Err(session.fatal(format!("--last: {NOWHERE}; name the journal")));
    };
    let mut found = match all(&dir) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(session.fatal(Diagnostic::failed(&dir, "list", &error))),
    };
    let mut first = None;
    let mut newer = 0_u64;
    while let Some(path) = latest(session, &found)? {
        if Journal::records_changes(&path, &session.cancel).unwrap_or(true) {
            let others = match newer {
                0 => String::new(),
                1 => "; the run of the newer one changed nothing".to_owned(),
                _ => format!("; the runs of the {newer} newer ones changed nothing"),
            };
            session
                .report
                .summary(format_args!("journal: {}{others}", shown(&path)));
            return Ok(path);
        }
        newer += 1;
        found.retain(|(_, other)| *other != path);
        first.get_or_insert(path);
    }
    first.ok_or_else(|| session.fatal(format!("{}: there is no journal", shown(&dir))))
}

/// Returns the journal of the run that began last. Its name tells: a clock that was set back makes
/// what was written before look younger.
fn latest(session: &Session, found: &[(SystemTime, PathBuf)]) -> Outcome<Option<PathBuf>> {
    let named = found
        .iter()
        .filter_map(|(written, path)| Some((began_ns(path)?, written, path)))
        .max();
    let Some((_, path)) = found.iter().max() else {
        return Ok(None);
    };
    match named {
        Some((_, _, latest)) if latest != path && began_ns(path).is_some() => {
            // Unless somebody had a later run go on with an earlier journal.
            let runs = runs_in(path)
                .map_err(|error| session.fatal(Diagnostic::failed(path, "read", &error)))?;
            if runs > 1 {
                return Err(session.fatal(format!(
                    "--last: which was written last is not certain, {} or {}; name the journal",
                    shown(latest),
                    shown(path)
                )));
            }
            Ok(Some(latest.clone()))
        }
        _ => Ok(Some(path.clone())),
    }
}

/// Returns the number of runs that a journal records.
fn runs_in(path: &Path) -> io::Result<usize> {
    let mut runs = 0;
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        runs += usize::from(line?.starts_with(b"{\"journal\":"));
    }
    Ok(runs)
}

/// The time in a name that [`new_name`] gave.
fn began_ns(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?.strip_prefix("prune-")?;
    let (time, _) = name.split_once("Z-")?;
    let (date, time) = time.split_once('T')?;
    if !date.is_ascii() || !time.is_ascii() || date.len() != 8 || time.len() != 6 {
        return None;
    }
    let [year, month, day] = [&date[..4], &date[4..6], &date[6..]];
    let [hour, minute, second] = [&time[..2], &time[2..4], &time[4..]];
    parse_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

/// Returns the files that have a name as [`new_name`] gives it, with the times of their last write.
fn all(dir: &Path) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(b"prune-") && name.ends_with(b".jsonl") {
            let written = entry.metadata().and_then(|meta| meta.modified())?;
            found.push((written, entry.path()));
        }
    }
    Ok(found)
}

/// The name of a new journal: with the time, or the second after the latest there is, should the
/// clock have been set back.
fn new_name(dir: &Path) -> PathBuf {
    const SECOND: i64 = 1_000_000_000;
    let now = parse_rfc3339(&crate::session::metrics::now()).unwrap_or_default();
    let earlier = all(dir).unwrap_or_default();
    let latest = earlier.iter().filter_map(|(_, path)| began_ns(path)).max();
    let after = latest.map_or(now, |latest| now.max(latest.saturating_add(SECOND)));
    let time: String = format_rfc3339(after)
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .take(15)
        .collect();
    format!("prune-{time}Z-{}.jsonl", std::process::id()).into()
}

fn shown(path: &Path) -> String {
    bc_fs::escape(path.as_os_str().as_encoded_bytes()).into_owned()
}
