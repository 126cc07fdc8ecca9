//! Leftovers of interrupted copies that no run resumes: after a week their journals are removed,
//! and the stages recorded in these.
//!
//! A stage is found by the journal of its job alone, which knows its name; files that only look
//! like one are never searched for. A stage is removed only if no other user can have made it and
//! no process works with it; the others are reported and left. A time that is yet to come proves no
//! age.
//!
//! The names of a restore's stages may lead to files that it made, which are of no use, but also to
//! the original files, between an exchange of names and the next call. A file is removed only if it
//! is known to be the former, or to have another name.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;

use bc_edit::journal::{Claim, FLAGS, FoundJournal, Journal, Key, check, push};
use bc_edit::{Sweep, entry, remove_unheld};
use bc_fs::path::split;
use bc_fs::place::Place;
use bc_fs::{Escaped, dirfd};
use bc_manifest::time::format_rfc3339;
use bc_walk::FileKind;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::destination::file_system;
use crate::event::{Event, Observer};
use crate::meta::{stat, stat_at};
use crate::place::DestDir;
use crate::resume::aside;
use crate::resume::journal::{JournalContent, load};
use crate::resume::known::KnownWork;
use crate::resume::record::{self, JobRecord, Made};
use crate::sources::shown_below;
use crate::stage::{JobId, is_stage};

/// Age up to which a journal or stage may be resumed from, in nanoseconds.
const KEPT_NS: i64 = 7 * 24 * 3600 * 1_000_000_000;

/// Outcome for a stage that is an orphan by its name.
enum Orphan {
    /// It is not there.
    None,
    Removed,
    /// It is too young.
    Young,
    /// It is not ours, with the reason.
    Left(String),
}

/// Records the path of the top.
pub(crate) fn push_top(piece: &mut Vec<u8>, top: &[u8]) {
    let path = match top.is_empty() {
        true => Path::new("."),
        false => Path::new(OsStr::from_bytes(top)),
    };
    if let Ok(real) = std::fs::canonicalize(path) {
        push(piece, record::TOP, |out| {
            out.extend_from_slice(real.as_os_str().as_bytes());
        });
    }
}

/// Removes leftovers of copies that were interrupted more than a week before `now` (nanoseconds
/// since 1970), as far as their destinations are there.
pub(crate) fn sweep(state: &Path, now: i64, observer: &Observer<'_>) {
    let (Ok(key), Ok(all)) = (Key::kept_in(state), std::fs::read_dir(state.join("copy"))) else {
        return;
    };
    for entry in all.flatten() {
        let path = entry.path();
        let is_old = |meta: std::fs::Metadata| is_old(meta.mtime(), meta.mtime_nsec(), now);
        let is_journal = path.extension().is_some_and(|end| end == "journal");
        if is_journal && path.symlink_metadata().is_ok_and(is_old) {
            journal(&path, &key, now, observer);
        }
    }
}

/// True if no run resumes from what was last changed at this time.
pub(crate) fn is_old(seconds: i64, nanoseconds: i64, now: i64) -> bool {
    let time = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds);
    time.saturating_add(KEPT_NS) < now
}

/// Looks at one old journal.
fn journal(path: &Path, key: &Key, now: i64, observer: &Observer<'_>) {
    let shown = Escaped(path.as_os_str().as_bytes());
    let warn = |text: &str| observer(Event::Warning(&format!("{shown}: {text}: left alone")));
    let Ok(place) = Place::find(path) else {
        return;
    };
    let journal = match Journal::open(&place, key) {
        Ok(FoundJournal::Journal(journal)) => journal,
        Ok(FoundJournal::Foreign(why)) => return warn(&why),
        // A run that was killed before it recorded anything has held the place by that.
        Ok(FoundJournal::Nothing) => return drop(Claim::new(place)),
        Ok(FoundJournal::Busy) => return,
        Err(error) => return warn(&error.to_string()),
    };
    let Some((job, at)) = about(&journal) else {
        return;
    };
    let Some(top) = top(&job, &at) else {
        return;
    };
    // It does not matter here whether anything was forced to the disk.
    let Ok(Some(JournalContent { known, .. })) = load(&journal, &[0; 16]) else {
        return;
    };
    if known.is_restore {
        let left = |path: &[u8], why: &str| {
            let text = format!("{}: {why}: left alone", Escaped(path));
            observer(Event::Warning(&text));
        };
        remove_left(&job, &at, &known, &left);
        return journal.remove();
    }
    // Those that cannot be looked for now are known by the journal alone.
    if !aside::put_back(&known, true, observer).is_empty() {
        return;
    }
    let mut removed = 0;
    for stage in stages(&job, &known, &top, &at) {
        match orphan(&stage.dir, &stage.name, now) {
            Orphan::None => {}
            Orphan::Removed => removed += 1,
            // Another process uses it; a later run tries again.
            Orphan::Young => return,
            Orphan::Left(why) => {
                let text = format!("{}: {why}: left alone", Escaped(&stage.shown));
                observer(Event::Warning(&text));
            }
        }
    }
    journal.remove();
    let text = format!(
        "nobody has gone on with the copy to {} that began at {}: its journal and {removed} stages \
         are removed",
        Escaped(&at),
        format_rfc3339(job.began_ns)
    );
    observer(Event::Note(&text));
}

/// Removes the leftovers of a killed restore of a tree, for the next one. Returns the journal where
/// the tree is missing.
pub(crate) fn after_restore(journal: Journal, left: &dyn Fn(&[u8], &str)) -> Result<(), Journal> {
    let about = about(&journal);
    let Some(JournalContent { known, .. }) = load(&journal, &[0; 16]).ok().flatten() else {
        // Killed while its first record was written.
        journal.remove();
        return Ok(());
    };
    match about.filter(|(job, at)| remove_left(job, at, &known, left)) {
        Some(_) => {
            journal.remove();
            Ok(())
        }
        None => Err(journal),
    }
}

/// Reads the job and the path of its top: the first records only, since the journal may be long.
fn about(journal: &Journal) -> Option<(JobRecord, Vec<u8>)> {
    let mut records = journal.records();
    let first = records.next_record().ok()??;
    let job = record::job((first.kind == record::JOB).then_some(first.body)?)?;
    let second = records.next_record().ok()??;
    let top = (second.kind == record::TOP).then_some(second.body)?;
    Some((job, top.to_vec()))
}

/// Opens the directory that the job wrote below, if it is still there.
fn top(job: &JobRecord, at: &[u8]) -> Option<DestDir> {
    let fd = dirfd::open_root(at).ok()?;
    let id = stat(&fd).ok()?.id;
    let now = file_system(at, id.dev);
    let same = match (&job.file_system[..], &now[..]) {
        ("", _) | (_, "") => id.dev == job.top.dev,
        (then, now) => then == now,
    };
    (same && id.ino == job.top.ino)
        .then_some(fd)
        .and_then(|fd| DestDir::of(fd).ok())
}

/// A stage that a job may have left.
struct LeftStage {
    dir: Rc<DestDir>,
    name: String,
    /// Its path as it is shown.
    shown: Vec<u8>,
}

/// Returns the stages that a job may have left below its top, whose path is `at`.
fn stages<'a>(
    job: &'a JobRecord,
    known: &'a KnownWork,
    top: &'a DestDir,
    at: &'a [u8],
) -> impl Iterator<Item = LeftStage> {
    let mut last: Option<(&[u8], Rc<DestDir>)> = None;
    let named = known
        .stages
        .iter()
        .filter(|(name, _)| is_stage(name.as_bytes()));
    let named = named.map(|(name, path)| (&path[..], Some(name)));
    let all = named.chain(known.unseen().map(|path| (path, None)));
    all.filter_map(move |(path, stage)| {
        let below = split(path).0;
        let dir = match &last {
            Some((at, dir)) if *at == below => dir.clone(),
            _ => Rc::new(DestDir::open(top.fd.as_fd(), below).ok()?),
        };
        last = Some((below, dir.clone()));
        let name = stage.cloned();
        let name = name.unwrap_or_else(|| JobId(job.id).stage(&dir, path, None));
        let shown = shown_below(&shown_below(at, below), name.as_bytes());
        Some(LeftStage { dir, name, shown })
    })
}

/// Removes a stage if it is old and no other user's.
fn orphan(dir: &DestDir, name: &str, now: i64) -> Orphan {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | FLAGS;
    let file = match rustix::fs::openat(&dir.fd, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Orphan::None,
        Err(errno) => return Orphan::Left(errno.to_string()),
    };
    let meta = match file.metadata() {
        Ok(meta) => meta,
        Err(error) => return Orphan::Left(error.to_string()),
    };
    match check(&file) {
        Ok(Ok(())) => {}
        Ok(Err(why)) => return Orphan::Left(why.to_string()),
        Err(error) => return Orphan::Left(error.to_string()),
    }
    if meta.nlink() != 1 {
        return Orphan::Left("has several names".to_owned());
    }
    // Its other time may be that of its source.
    if !is_old(meta.ctime(), meta.ctime_nsec(), now) {
        return Orphan::Young;
    }
    match remove_unheld(&dir.fd, name, file) {
        Sweep::Removed => Orphan::Removed,
        Sweep::Held => Orphan::Left("somebody holds it".to_owned()),
        Sweep::Renamed => Orphan::Left("is something else now".to_owned()),
    }
}

/// Removes them, and reports files that are left alone. Returns `false` if the tree is missing.
pub(crate) fn remove_left(
    job: &JobRecord,
    at: &[u8],
    known: &KnownWork,
    left: &dyn Fn(&[u8], &str),
) -> bool {
    let Some(top) = top(job, at) else {
        return false;
    };
    for path in &known.begun {
        let (below, name) = split(path);
        let Ok(dir) = DestDir::open(top.fd.as_fd(), below) else {
            continue;
        };
        let stage = JobId(job.id).stage(&dir, path, None);
        let made = known.made.get(path).map_or(&[][..], |made| &made[..]);
        if let Orphan::Left(why) = remove_unless_original(&dir, &stage, made) {
            let shown = shown_below(&shown_below(at, below), stage.as_bytes());
            left(&shown, &format!("{why} (for {})", Escaped(name)));
        }
    }
    true
}

fn remove_unless_original(dir: &DestDir, stage: &str, made: &[Made]) -> Orphan {
    let stat = match stat_at(&dir.fd, stage) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Orphan::None,
        Err(errno) => return Orphan::Left(errno.to_string()),
    };
    let is_made = |made: &Made| {
        let stamp = (stat.stamp.size, stat.stamp.mtime_ns);
        made.ino == stat.id.ino && made.stamp.is_none_or(|made| made == stamp)
    };
    let is_empty = made.is_empty() && stat.stamp.size == 0;
    match stat.kind() {
        // Where it leads is in the manifest.
        FileKind::Symlink => {}
        // Another name of the repaired file, or of a file that has a second name by now.
        FileKind::File if stat.nlink > 1 => {}
        FileKind::File if is_empty || made.iter().any(is_made) => {}
        FileKind::File => return Orphan::Left("may be what was there before a restore".to_owned()),
        _ => return Orphan::Left("not a regular file".to_owned()),
    }
    let own = rustix::process::geteuid();
    if stat.uid != own.as_raw() && !own.is_root() && stat.nlink == 1 {
        return Orphan::Left("belongs to another user".to_owned());
    }
    match entry::unlink(&dir.fd, stage) {
        Ok(()) => Orphan::Removed,
        Err(failed) => Orphan::Left(failed.errno.to_string()),
    }
}
