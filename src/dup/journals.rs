//! Places of prune's journals: one file a run in `$XDG_STATE_HOME/bc`, unless the user names
//! another.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bc_dup::prune::{FileGroup, Journal};

use crate::diagnostic::Diagnostic;
use crate::dirs::state_dir;
use crate::run::{Outcome, Session};

use super::args::PruneArgs;

const NOWHERE: &str = "neither XDG_STATE_HOME nor HOME is set";

/// Starts the journal asked for, or a new one in the default place. `None` if a
/// signal came while an existing one was read.
pub fn open(session: &Session, args: &PruneArgs, groups: &[FileGroup]) -> Outcome<Option<Journal>> {
    let path = match &args.journal {
        Some(path) => path.clone(),
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
                let text = format!("{what}; name another place with --journal");
                return Err(session.fatal(what.worded(text)));
            }
            dir.join(new_name())
        }
    };
    match Journal::create(&path, &args.action, groups, &session.cancel) {
        Ok(journal) => Ok(Some(journal)),
        Err(_) if session.cancel.is_cancelled() => Ok(None),
        Err(error) => Err(session.fatal(&error)),
    }
}

/// Returns the path of this run's journal, as far as there is a place for one.
pub fn place(args: &PruneArgs) -> Option<PathBuf> {
    let usual = || Some(state_dir()?.join(new_name()));
    args.journal.clone().or_else(usual)
}

/// Returns the journals that may contain an unfinished step.
pub fn earlier(named: Option<&Path>) -> Vec<PathBuf> {
    let mut found = state_dir()
        .and_then(|dir| all(&dir).ok())
        .unwrap_or_default();
    found.sort();
    let mut paths: Vec<PathBuf> = found.into_iter().map(|(_, path)| path).collect();
    paths.extend(named.map(Path::to_owned));
    paths
}

/// Returns the journal that was written last.
pub fn newest(session: &Session) -> Outcome<PathBuf> {
    let Some(dir) = state_dir() else {
        return Err(session.fatal(format!("--last: {NOWHERE}; name the journal")));
    };
    let found = match all(&dir) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(session.fatal(Diagnostic::failed(&dir, "list", &error))),
    };
    match found.into_iter().max() {
        Some((_, path)) => Ok(path),
        None => Err(session.fatal(format!("{}: there is no journal", shown(&dir)))),
    }
}

/// Lists files with a name that [`new_name`] gives, with the time when they were last written.
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

fn new_name() -> PathBuf {
    let now: String = crate::metrics::now()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .take(15)
        .collect();
    format!("prune-{now}Z-{}.jsonl", std::process::id()).into()
}

fn shown(path: &Path) -> String {
    bc_fs::escape(path.as_os_str().as_encoded_bytes()).into_owned()
}
