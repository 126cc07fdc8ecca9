//! The beginning of a copy: its journal is looked for before its destination is, since that may
//! exist only because an interrupted run made it.

pub(crate) mod aside;
pub(crate) mod journal;
pub(crate) mod known;
pub(crate) mod orphans;
pub(crate) mod record;
pub(crate) mod stamp;

use std::path::Path;

use bc_fs::Escaped;
use bc_fs::known::{boot_id, file_clock};
use bc_fs::mount::mount_number;
use bc_walk::job::{Error, ErrorKind};

use crate::destination::{self, Source, Top};
use crate::error::system_error;
use crate::event::{Event, Observer};
use crate::job::Begun;
use crate::meta::stat_at;
use crate::options::CopyOptions;
use crate::resume::journal::{EarlierRuns, Free, Log, Site};
use crate::resume::known::KnownWork;
use crate::resume::record::{JobRecord, SessionRecord};
use crate::resume::stamp::given;
use crate::stage::JobId;

/// Finds journal and destination, and refuses combinations that make no sense.
pub(crate) fn begin(
    options: &CopyOptions,
    sources: &[Source],
    observer: &Observer<'_>,
) -> Result<Begun, Error> {
    let begun = match find_journal(options, sources, observer)? {
        JournalSearch::Earlier(found, top) => gone_on(options, *found, top)?,
        JournalSearch::New(free) => anew(destination::find(options, sources, None)?, free)?,
    };
    destination::refuse_itself(options, &begun.top, sources, &begun.known.begun)?;
    if let Some(began) = begun.went_on {
        let text = format!(
            "resuming the run of {}: {} files were recorded",
            bc_manifest::time::format_rfc3339(began),
            begun.known.len()
        );
        observer(Event::Note(&text));
    }
    Ok(begun)
}

/// Begins a copy that resumes an unfinished one.
fn gone_on(options: &CopyOptions, found: EarlierRuns, top: Top) -> Result<Begun, Error> {
    let mut known = found.known;
    known.keep_digests_of(algorithm(options));
    if options.restart {
        known.begin_anew();
    }
    known.mounted(mount_number(&top.fd).unwrap_or(0));
    Ok(Begun {
        top,
        id: JobId(found.job.id),
        spare: JobId(random()?),
        known,
        went_on: Some(found.job.began_ns),
        began: file_clock(),
        log: Log::new(Some(found.journal).filter(|_| !options.dry_run)),
        free: None,
    })
}

/// Begins a new copy.
fn anew(top: Top, free: Option<Free>) -> Result<Begun, Error> {
    Ok(Begun {
        top,
        id: JobId(random()?),
        spare: JobId(random()?),
        known: KnownWork::default(),
        went_on: None,
        began: file_clock(),
        log: Log::default(),
        free,
    })
}

/// Journals of one name: the first, and those of further destinations at the same place.
pub(crate) const MOST_JOURNALS: usize = 8;

/// Result of the search for a journal.
enum JournalSearch {
    /// An unfinished run, and its destination.
    Earlier(Box<EarlierRuns>, Top),
    /// No journal that fits, and the place in which one is to be made, if any.
    New(Option<Free>),
}

fn find_journal(
    options: &CopyOptions,
    sources: &[Source],
    observer: &Observer<'_>,
) -> Result<JournalSearch, Error> {
    let Some(state) = &options.state else {
        return Ok(JournalSearch::New(None));
    };
    let names = destination::JobNames::of(options);
    // One that does not fit may be about another volume: it stays.
    if let Some(name) = &names.without_volume
        && journal::path(state, name).exists()
        && let Some(Site::Earlier(found)) = look(state, name, false, observer)?
        && let Some(top) = still_fits(options, sources, &found, false)
    {
        return Ok(JournalSearch::Earlier(found, top));
    }
    // A journal whose destination is another one now, or is away, is still what its stages are known
    // by: it stays, and others join.
    let is_of_volume = names.without_volume.is_some();
    let mut free = None;
    for nth in 0..MOST_JOURNALS {
        let name = match nth {
            0 => names.own.clone(),
            nth => format!("{}-{nth}", names.own),
        };
        // A run that writes nothing makes no key either.
        if !journal::path(state, &name).exists() {
            free.get_or_insert(name);
            continue;
        }
        match look(state, &name, false, observer)? {
            Some(Site::Earlier(found)) => {
                if let Some(top) = still_fits(options, sources, &found, is_of_volume) {
                    return Ok(JournalSearch::Earlier(found, top));
                }
            }
            Some(_) => drop(free.get_or_insert(name)),
            None => return Ok(JournalSearch::New(None)),
        }
    }
    if options.dry_run {
        return Ok(JournalSearch::New(None));
    }
    let Some(name) = free else {
        let text = format!(
            "{MOST_JOURNALS} copies from there to other destinations at the same place were \
             interrupted; if this copy is, too, it cannot be resumed"
        );
        observer(Event::Warning(&text));
        return Ok(JournalSearch::New(None));
    };
    Ok(JournalSearch::New(
        match look(state, &name, true, observer)? {
            Some(Site::Free(free)) => free,
            _ => None,
        },
    ))
}

/// Looks for the journal of that name. `claim`: claims its place if there is none.
pub(crate) fn look(
    state: &Path,
    name: &str,
    claim: bool,
    observer: &Observer<'_>,
) -> Result<Option<Site>, Error> {
    let without = |why: &str| {
        let text = format!("{why}; if this copy is interrupted, it cannot be resumed");
        observer(Event::Warning(&text));
    };
    match journal::look(state, name, &boot_id(), claim) {
        Ok(Site::Busy) => {
            let text = "another run of the same copy is at work";
            Err(Error::new(ErrorKind::Busy, text))
        }
        Ok(Site::Foreign(why)) => {
            let shown = Escaped(state.as_os_str().as_encoded_bytes());
            without(&format!(
                "{shown}: the journal of this copy is not ours: {why}"
            ));
            Ok(None)
        }
        Ok(site) => Ok(Some(site)),
        Err(error) => {
            without(&error.to_string());
            Ok(None)
        }
    }
}

/// Returns the destination as an unfinished run had it, if it is still the same one.
/// `is_of_volume`: the journal's name identifies the volume.
fn still_fits(
    options: &CopyOptions,
    sources: &[Source],
    EarlierRuns { job, known, .. }: &EarlierRuns,
    is_of_volume: bool,
) -> Option<Top> {
    let top = destination::find(options, sources, Some(job.into)).ok()?;
    // Another disk may be mounted there, and its root have the same number.
    let file_system = destination::file_system(&top.path, top.id.dev);
    let same = match (&job.file_system[..], &file_system[..]) {
        ("", _) | (_, "") => is_of_volume || top.id.dev == job.top.dev,
        (then, now) => then == now,
    };
    if !same || top.id.ino != job.top.ino {
        return None;
    }
    let fits = known.roots.iter().all(|record| {
        // A source that is not there now says nothing against it.
        let is_its = |source: &Source| source.number as u64 == record.root;
        let at = sources.iter().position(is_its);
        let name = at.and_then(|at| top.names.get(at));
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return true;
        };
        let there = stat_at(&top.fd, &name[..]);
        record.id.ino == 0 || there.map_or(true, |there| there.id.ino == record.id.ino)
    });
    fits.then_some(top)
}

/// Begins the journal, or the part of this run in it.
pub(crate) fn start(begun: &mut Begun, options: &CopyOptions, observer: &Observer<'_>) {
    if options.dry_run {
        return;
    }
    let mut piece = Vec::new();
    let session = SessionRecord {
        boot: boot_id(),
        mount: mount_number(&begun.top.fd).unwrap_or(0),
        algorithm: algorithm(options).to_owned(),
    };
    let begin = match begun.free.take() {
        Some(Free { claim, key }) => {
            let job = JobRecord {
                id: begun.id.0,
                // By the clock that stamps files: none of this run's is older.
                began_ns: file_clock(),
                into: begun.top.into,
                top: begun.top.id,
                algorithm: algorithm(options).to_owned(),
                file_system: destination::file_system(&begun.top.path, begun.top.id.dev),
            };
            record::push_job(&mut piece, &job);
            orphans::push_top(&mut piece, &begun.top.path);
            record::push_session(&mut piece, &session);
            record::push_given(&mut piece, given(options.preserve));
            claim.begin(&key, &mut piece).map(|journal| {
                begun.log = Log::new(Some(journal));
            })
        }
        None => {
            record::push_session(&mut piece, &session);
            record::push_given(&mut piece, given(options.preserve));
            begun.log.append(&mut piece)
        }
    };
    if let Err(error) = begin {
        let text = format!(
            "the journal cannot be written: {error}; if this copy is interrupted, it cannot \
             be resumed"
        );
        observer(Event::Warning(&text));
    }
    if let Some(state) = &options.state {
        orphans::sweep(state, options.now, observer);
    }
}

fn algorithm(options: &CopyOptions) -> &'static str {
    options.algorithm.map_or("", |algorithm| algorithm.name())
}

/// Returns 128 random bits, which cannot be guessed.
pub(crate) fn random() -> Result<[u8; 16], Error> {
    bc_edit::journal::random().map_err(|error| system_error(b"/dev/urandom", "read", error))
}
