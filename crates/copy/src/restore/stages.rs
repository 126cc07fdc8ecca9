//! The stages of this run, in a journal in the user's state directory: leftovers of a killed run
//! are removed by the next one of the same tree, before it is verified.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};

use bc_digest::{Algorithm, hash};
use bc_edit::journal::{Claim, FoundJournal, Journal, Key, push};
use bc_fs::known::file_clock;
use bc_fs::place::Place;
use bc_walk::OwnFile;
use bc_walk::job::{Error, ErrorKind};

use super::make::Present;
use super::options::{RestoreEvent, RestoreObserver, RestoreOptions};
use super::start::RestoreRoot;
use crate::destination::file_system;
use crate::lock;
use crate::meta;
use crate::resume::journal::{self, Log};
use crate::resume::orphans::{self, after_restore};
use crate::resume::record::{self, JobRecord, LONGEST_PATH, Made};
use crate::stage::JobId;

/// Journal of the stages.
pub(super) struct Stages<'a> {
    site: Option<StageSite>,
    /// The journal, once there is something to record.
    log: OnceLock<Log>,
    observer: &'a RestoreObserver<'a>,
}

struct StageSite {
    state: PathBuf,
    file: PathBuf,
    job: JobRecord,
    top: Vec<u8>,
    /// Place of the journal, held against other runs of the same tree from before it is verified;
    /// or why it cannot be.
    claim: Mutex<Option<std::io::Result<Claim>>>,
}

impl<'a> Stages<'a> {
    /// Removes leftovers of an earlier run, and keeps other ones out of the tree until this is
    /// dropped: each would take the other's stages for damaged files.
    ///
    /// # Errors
    /// Fails if another run is at work in the same tree.
    pub(super) fn begin(
        options: &RestoreOptions<'_>,
        top: &RestoreRoot,
        id: JobId,
        observer: &'a RestoreObserver<'a>,
    ) -> Result<Stages<'a>, Error> {
        let mut stages = Stages::none(observer);
        let state = options.state.as_ref().filter(|_| !options.dry_run);
        let (Some(state), Ok(stat)) = (state, meta::stat(&top.fd)) else {
            return Ok(stages);
        };
        let job = JobRecord {
            id: id.0,
            began_ns: file_clock(),
            into: false,
            top: stat.id,
            algorithm: String::new(),
            file_system: file_system(&top.path, stat.id.dev),
        };
        let file = journal::path(state, &name(options.root, &job));
        let site = StageSite {
            state: state.clone(),
            file,
            job,
            top: top.path.clone(),
            claim: Mutex::new(None),
        };
        if site.clear(observer)? {
            site.hold()?;
            stages.site = Some(site);
        }
        Ok(stages)
    }

    /// Returns the file that holds the place of the journal, which is no part of the tree.
    pub(super) fn own_file(&self) -> Option<OwnFile> {
        let held = self.site.as_ref()?.claim();
        let claim = held.as_ref()?.as_ref().ok()?;
        OwnFile::of(claim.file()?).ok()
    }

    /// Records nothing.
    pub(super) fn none(observer: &'a RestoreObserver<'a>) -> Stages<'a> {
        Stages {
            site: None,
            log: OnceLock::new(),
            observer,
        }
    }

    /// Records the path that gets a stage, before the stage is made.
    pub(super) fn begun(&self, path: &[u8]) {
        self.append(path, |piece| record::push_begun(piece, path));
    }

    /// Records the inode of the stage.
    pub(super) fn made(&self, path: &[u8], stage: impl AsFd) {
        if let Ok(stat) = meta::stat(stage) {
            let made = Made {
                ino: stat.id.ino,
                stamp: None,
            };
            self.append(path, |piece| record::push_made(piece, path, made));
        }
    }

    /// Records the file that is not to be kept, before it is replaced.
    pub(super) fn given_up(&self, path: &[u8], present: &Present) {
        let stamp = present.stat.stamp;
        let made = Made {
            ino: present.stat.id.ino,
            stamp: Some((stamp.size, stamp.mtime_ns)),
        };
        self.append(path, |piece| record::push_made(piece, path, made));
    }

    /// Ends the use of stages: any that is left, since it could not be removed at once, is removed
    /// now or reported.
    pub(super) fn end(&self) {
        if let Some(journal) = self.log.get().and_then(Log::take) {
            let left = |path: &[u8], why: &str| left_alone(self.observer, path, why);
            // Without the tree the journal stays for the next run.
            let _ = after_restore(journal, &left);
        }
    }

    fn append(&self, path: &[u8], push: impl FnOnce(&mut Vec<u8>)) {
        let Some(site) = self.site.as_ref().filter(|_| path.len() <= LONGEST_PATH) else {
            return;
        };
        let log = self.log.get_or_init(|| {
            let made = site.create();
            Log::new(made.map_err(|error| self.without(site, &error)).ok())
        });
        let mut piece = Vec::new();
        push(&mut piece);
        if let Err(error) = log.append(&mut piece) {
            self.without(site, &error);
        }
    }

    fn without(&self, site: &StageSite, error: &std::io::Error) {
        let text = format!(
            "the journal cannot be written: {error}; should this run be killed, what it leaves stays"
        );
        (self.observer)(RestoreEvent::Warning {
            path: site.file.as_os_str().as_bytes(),
            operation: "write",
            why: &text,
        });
    }
}

impl StageSite {
    /// Removes the leftovers of an earlier run; returns true if a journal may be made then.
    fn clear(&self, observer: &RestoreObserver<'_>) -> Result<bool, Error> {
        if self.file.symlink_metadata().is_err() {
            return Ok(true);
        }
        let (Ok(key), Ok(place)) = (Key::kept_in(&self.state), Place::find(&self.file)) else {
            return Ok(false);
        };
        let warn = |path: &[u8], why: &str| left_alone(observer, path, why);
        let shown = self.file.as_os_str().as_bytes();
        match Journal::open(&place, &key) {
            Ok(FoundJournal::Nothing) => Ok(true),
            Ok(FoundJournal::Journal(journal)) => Ok(after_restore(journal, &warn).is_ok()),
            Ok(FoundJournal::Busy) => Err(busy()),
            Ok(FoundJournal::Foreign(why)) => {
                warn(shown, &why);
                Ok(false)
            }
            Err(error) => {
                warn(shown, &error.to_string());
                Ok(false)
            }
        }
    }

    fn claim(&self) -> MutexGuard<'_, Option<std::io::Result<Claim>>> {
        lock(&self.claim)
    }

    /// Holds the place. The reason for which it cannot be held matters only to a run that makes
    /// stages.
    fn hold(&self) -> Result<(), Error> {
        let place = journal::make_directory(&self.state).and_then(|()| Place::find(&self.file));
        let held = place.and_then(journal::hold);
        *self.claim() = Some(match held {
            Ok(claim) => Ok(claim.ok_or_else(busy)?),
            Err(error) => Err(error),
        });
        Ok(())
    }

    fn create(&self) -> std::io::Result<Journal> {
        let held = self.claim().take();
        let claim = held.unwrap_or_else(|| Err(std::io::ErrorKind::NotFound.into()))?;
        let key = Key::kept_in(&self.state)?;
        let mut piece = Vec::new();
        record::push_job(&mut piece, &self.job);
        orphans::push_top(&mut piece, &self.top);
        push(&mut piece, record::RESTORES, |_| {});
        claim.begin(&key, &mut piece)
    }
}

fn busy() -> Error {
    Error::new(
        ErrorKind::Busy,
        "another restore of the same tree is at work",
    )
}

fn left_alone(observer: &RestoreObserver<'_>, path: &[u8], why: &str) {
    observer(RestoreEvent::Warning {
        path,
        operation: "unlink",
        why: &format!("{why}: left alone"),
    });
}

/// Returns the journal's name: a digest of the path, however it is spelt, and of the directory that
/// is there now.
fn name(root: &OsStr, job: &JobRecord) -> String {
    let real = std::fs::canonicalize(root);
    let real = real.unwrap_or_else(|_| Path::new(root).to_owned());
    let mut text = b"restore\0".to_vec();
    text.extend_from_slice(real.as_os_str().as_bytes());
    text.push(0);
    text.extend_from_slice(job.file_system.as_bytes());
    text.extend_from_slice(&job.top.ino.to_le_bytes());
    let mut name = hash(Algorithm::Blake3, &text).to_string();
    name.truncate(32);
    name
}
