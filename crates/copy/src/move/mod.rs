//! `bc move`: renamed within a file system; across two copied, proven, and only then removed.
//!
//! # States
//! A source goes through them in this order; a later run finds which one it is in.
//!
//! | state of a file | complete under | after a kill or a power cut, the next run |
//! |---|---|---|
//! | untouched | source | renames or copies it |
//! | linked to its new name, where no rename refuses to replace | both | takes the first name away, as the journal says |
//! | renamed | destination | finds the source gone: it is done |
//! | stage in the making | source | resumes as a copy does |
//! | copied, named | both | proves the copy by its record, or by its bytes, and goes on |
//! | on the disk, with the manifest and all records | both | the same |
//! | set aside: the source has its private name, which was on the disk in the journal before | both | gives the name back, and goes on from the row above |
//! | removed | destination | finds the source gone: it is done |
//!
//! A directory is renamed with everything in it where its name is free at the destination. Else its
//! entries go one by one, and it is removed, the deepest first, once it is empty; what is new in it
//! keeps it. Until then it exists on both sides, and holds nothing that is not in one of the rows
//! above.
//!
//! # What authorises a removal
//! [`plan`] decides. The copy was made by this job, never found; its bytes were read back, past what
//! the kernel keeps in memory, and have the digest of the bytes that were read from the source. The
//! source is the file that was walked, unchanged, open for writing nowhere, and has no other name
//! than those that are removed with it. It has its private name when it is looked at for the last
//! time, by its descriptor, and so has its copy, by its name.
//!
//! The order: [`rename`] takes what can be renamed; the engine of the copy does the rest, conflicts
//! included, forces it to the disk and writes the manifest; [`remove`] ends it.

mod link;
mod plan;
mod remove;
mod rename;
mod run;
#[cfg(test)]
mod tests;

pub use run::MoveReport;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::slice;

use bc_fs::Escaped;
use bc_fs::dirfd;
use bc_fs::path::split;
use bc_pool::Cancel;
use bc_walk::job::{Error, ErrorKind, Setting};
use bc_walk::{FileKind, OwnFile};
use rustix::io::Errno;

use crate::destination::{self, Source, dir_and_name, place_of};
use crate::engine;
use crate::error::usage_at;
use crate::event::{Copied, CopyProgress, Event, Observer, Relay};
use crate::job::{Begun, DestinationObserver, Job};
use crate::manifest::{
    manifest_target, refuse_copied_manifest, refuse_foreign_manifest, refuse_odd_manifest,
};
use crate::meta::stat_at;
use crate::options::{CopyOptions, Durability, ManifestPlace, Preserve, ReadBack};
use crate::resume::journal::{Log, may_be_made};
use crate::resume::known::{KnownWork, VolumeNow};
use crate::resume::record::{self, SiteRecord};
use crate::resume::{self, aside};
use crate::sources::{SourceTree, Walked, refuse_within, shown_below, unopened, walk};

/// Options of a move.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MoveOptions {
    /// Sources, destination, and the way of copying where nothing can be renamed.
    pub copy: CopyOptions,
    /// True if a source is removed even though its copy lacks metadata.
    pub allow_lossy: bool,
}

impl MoveOptions {
    /// Moves what these options would copy. Copies are forced to the disk in batches, and read back
    /// from the medium, before their sources go; another way of either is set on
    /// [`copy`](MoveOptions::copy) afterwards.
    pub fn new(mut copy: CopyOptions) -> MoveOptions {
        copy.moves = true;
        copy.durability = Durability::Batch;
        copy.read_back = ReadBack::Media;
        MoveOptions {
            copy,
            allow_lossy: false,
        }
    }
}

/// Result of a move.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Moved {
    /// Entries: the sum of the next four. Directories that stay for what was left out of them are
    /// none.
    pub walked: u64,
    /// At the destination and at the source no more. A directory that is renamed counts as one.
    pub moved: u64,
    /// Left at the source, whether they were copied or not.
    pub kept: u64,
    /// Failed.
    pub failed: u64,
    /// Not started: the destination is full, or the run was interrupted.
    pub left: u64,
    /// Number of those moved that were renamed.
    pub renamed: u64,
    /// Number of those moved that an earlier run had moved, as far as it can be known.
    pub before: u64,
    /// Counts of the part that was copied.
    pub copied: Copied,
    /// True if a journal is left, so that the same command can resume.
    pub resumable: bool,
}

impl Moved {
    fn add_renames(&mut self, renamer: &rename::Renamer<'_>) {
        self.renamed += renamer.renamed;
        self.moved += renamer.renamed;
        self.failed += renamer.failed;
        self.kept += renamer.kept;
        self.walked += renamer.renamed + renamer.failed + renamer.kept;
    }

    /// Ends a move that cannot be continued after others were renamed: the `left` entries at hand
    /// failed.
    ///
    /// # Errors
    /// Fails with `error` if nothing was renamed.
    fn end_after(
        mut self,
        error: Error,
        left: u64,
        observer: &Observer<'_>,
    ) -> Result<Moved, Error> {
        if self.renamed == 0 {
            return Err(error);
        }
        let text = format!("{error}: what could not be renamed stays");
        observer(Event::Warning(&text));
        self.walked += left;
        self.failed += left;
        Ok(self)
    }
}

/// Moves to the destination of the options. Events are those of a copy: the name of a source that is
/// renamed is [`Copied`](Event::Copied) to; a source that stays although it was to go is a
/// [`Failed`](Event::Failed) removal.
///
/// # Errors
/// Fails before anything is changed if the move as a whole cannot be done; and where what was copied
/// cannot be forced to the disk, in which case no source is removed.
pub fn move_files(
    options: &MoveOptions,
    cancel: &Cancel,
    progress: &CopyProgress,
    observer: &Observer<'_>,
) -> Result<Moved, Error> {
    check(options)?;
    refuse_nested(&options.copy)?;
    let relay = Relay::new(observer);
    let observer: &Observer<'_> = &|event| relay.report(event);
    let copy = &options.copy;
    let earlier = aside::settle(copy, observer)?;
    let found = NamedSources::look(copy, earlier.moved.is_some())?;
    let mut moved = Moved::default();
    // They keep their journal.
    for error in &earlier.unsettled {
        moved.walked += 1;
        moved.failed += 1;
        observer(Event::Failed(error));
    }
    if let ([], [missing], Some(run)) = (&found.sources[..], &found.missing[..], &earlier.moved) {
        if !missing.has_moved(copy, &run.known, run.job.into) {
            return Err(Error::from(missing.error.clone()));
        }
        moved.walked += 1;
        (moved.moved, moved.before) = (1, 1);
        moved.resumable = moved.failed > 0;
        // The last thing that its run had to do was to remove the journal.
        if let Some(run) = earlier.moved.filter(|_| moved.failed == 0 && !copy.dry_run) {
            run.journal.remove();
        }
        return Ok(moved);
    }
    let is_new = !earlier.exists;
    drop(earlier);
    let (mut sources, mut asked, mut needs_journal) = (found.sources, None, false);
    let mut refused = HashSet::new();
    if is_new && sources.len() == 1 && !matches!(copy.manifest, ManifestPlace::File(_)) {
        // Renaming takes neither journal nor manifest, unless it takes a link.
        let top = destination::find(copy, &sources, None)?;
        destination::refuse_itself(copy, &top, &sources, &HashSet::new())?;
        let mut renamer = rename::Renamer::new(copy, &top, cancel, progress, observer);
        sources = renamer.go(sources, None)?.sources;
        moved.add_renames(&renamer);
        if sources.is_empty() {
            return Ok(moved);
        }
        needs_journal = renamer.needs_journal;
        refused = std::mem::take(&mut renamer.refused);
        // What a dry run has foreseen once is not foreseen again.
        asked = copy.dry_run.then_some((renamer.crosses, renamer.foreseen));
    }
    let mut begun = match resume::begin(copy, &sources, observer) {
        Ok(begun) => begun,
        Err(error) => return moved.end_after(error, sources.len() as u64, observer),
    };
    // With a named manifest nothing is renamed.
    refuse_foreign_manifest(copy, &begun.top, &sources)?;
    for missing in found.missing {
        moved.walked += 1;
        match missing.has_moved(copy, &begun.known, begun.top.into) {
            true => {
                moved.moved += 1;
                moved.before += 1;
            }
            false => {
                moved.failed += 1;
                observer(Event::Failed(&missing.error));
            }
        }
    }
    // One that is renamed as a whole needs none.
    if sources.len() > 1 || needs_journal {
        resume::start(&mut begun, copy, observer);
    }
    let mut renamer = rename::Renamer::new(copy, &begun.top, cancel, progress, observer);
    renamer.refused = refused;
    let rest = match asked {
        Some((crosses, foreseen)) => {
            (renamer.crosses, renamer.foreseen) = (crosses, foreseen);
            let names = begun.top.names.clone();
            rename::NotRenamed { sources, names }
        }
        None => renamer.go(sources, Some(&begun.log))?,
    };
    let (crosses, foreseen) = (renamer.crosses, std::mem::take(&mut renamer.foreseen));
    moved.add_renames(&renamer);
    if rest.sources.is_empty() {
        if !copy.dry_run && moved.failed == 0 {
            begun.log.remove();
        }
        moved.resumable = begun.log.is_kept();
        return Ok(moved);
    }
    begun.top.names = rest.names;
    let mut copy = copy.clone();
    if !crosses && copy.manifest == ManifestPlace::Destination {
        copy.manifest = ManifestPlace::None;
    }
    if let Err(error) = refuse_odd_manifest(&copy, &begun.top, &rest.sources[0]) {
        if moved.renamed == 0 && begun.went_on.is_none() {
            begun.log.remove();
        }
        moved.resumable = begun.log.is_kept();
        return moved.end_after(error, rest.sources.len() as u64, observer);
    }
    let journals: Vec<OwnFile> = begun.own_file().into_iter().collect();
    let walked = walk(&copy, rest.sources, &journals, cancel, observer)?;
    let missing = unopened(&walked);
    if cancel.is_cancelled() {
        moved.walked += missing;
        moved.failed += missing;
        moved.resumable = begun.log.is_kept();
        return Ok(moved);
    }
    if let Some(manifest) = taken_along(&copy, &begun, &walked) {
        copy.manifest = ManifestPlace::None;
        let text = format!(
            "{}: is moved as any other file: this move writes no manifest of its own",
            Escaped(&shown_below(&begun.top.path, &manifest))
        );
        observer(Event::Note(&text));
    }
    let checked = engine::refuse_too_many(&copy, 1, &walked)
        .and_then(|()| refuse_within(&copy, &begun.top, &walked))
        .and_then(|()| refuse_copied_manifest(&copy, &begun.top, &walked))
        .and_then(|stuck| stuck.map_or(Ok(()), Err));
    if let Err(error) = checked {
        moved.resumable = begun.log.is_kept();
        return moved.end_after(error, missing + walked.len() as u64, observer);
    }
    resume::start(&mut begun, &copy, observer);
    record_sites(&begun.log, walked.iter().map(|walked| &walked.source));
    let is_listed = matches!(copy.manifest, ManifestPlace::File(_));
    let goes_singly = crosses || copy.walk.leaves_out() || is_listed;
    let is_journal = match copy.dry_run {
        false => begun.log.is_kept(),
        true => begun.went_on.is_some() || copy.state.as_deref().is_some_and(may_be_made),
    };
    if goes_singly && !is_journal {
        let text = "there is no journal, without which no source is removed: nothing is copied";
        return Err(Error::new(ErrorKind::Refused, text));
    }
    if crosses && copy.preserve != Preserve::ALL && !options.allow_lossy {
        let text = "metadata that copies do not take over would be lost with the sources: nothing is \
                    copied";
        return Err(Error::new(ErrorKind::Refused, text).unless(Some(Setting::AllowLossy)));
    }
    let tops = [begun.top.id.dev];
    let reported = DestinationObserver {
        observer,
        relay: &relay,
        streams: true,
    };
    let mut job = engine::start(&copy, begun, &walked, &tops, progress, reported, cancel);
    job.leave_renamed(&foreseen);
    across(options, job, missing, moved)
}

/// Returns the path below the top of the manifest that an earlier copy left among the sources, if it
/// is to have the place of the manifest of this move: that place is free, or an earlier run of this
/// job has moved it there.
fn taken_along(options: &CopyOptions, begun: &Begun, walked: &[Walked]) -> Option<Vec<u8>> {
    let tree = SourceTree::new(walked, &begun.top.names);
    let target = manifest_target(options, &begun.top, &tree)?;
    let is_free = || {
        let (dir, name) = split(&target);
        let dir = dirfd::open_below(begun.top.fd.as_fd(), dir).map_err(Errno::from);
        let there = dir.and_then(|dir| stat_at(dir, name));
        there.is_err_and(|errno| errno == Errno::NOENT)
    };
    let is_there = || {
        let mut items = tree.items();
        items.any(|item| tree.has_target(item, &target))
    };
    (begun.known.names(&target) || is_there() && is_free()).then_some(target)
}

/// Copies what cannot be renamed, and removes the sources of what was copied.
fn across(
    options: &MoveOptions,
    job: Job<'_>,
    missing: u64,
    mut moved: Moved,
) -> Result<Moved, Error> {
    match options.copy.dry_run {
        true => crate::dry::run(&job, 1),
        false => engine::run(slice::from_ref(&job))?,
    }
    let (mut copied, rows) = engine::conclude(&job, missing)?;
    let mut removed = remove::Removed::default();
    if !job.is_over() {
        removed = remove::remove_sources(&job, &rows, options.allow_lossy)?;
    }
    // Those were counted when they were renamed.
    let renamed = job.outcomes.renamed.len() as u64;
    moved.walked += copied.walked.saturating_sub(removed.left_out + renamed);
    moved.failed += copied.failed;
    moved.left += copied.left.saturating_sub(renamed);
    moved.moved += removed.gone;
    // All others stay, where a signal came before their turn as well.
    let seen = copied.failed + copied.left + removed.gone + removed.left_out;
    moved.kept += copied.walked.saturating_sub(seen);
    let is_complete = moved.failed == 0
        && moved.left == 0
        && removed.retried == 0
        && (removed.left_there == 0 || means_the_same(&options.copy, job.plan.top.into))
        && removed.is_synced
        && !job.is_over();
    if !options.copy.dry_run {
        engine::release(job, &mut copied, is_complete);
    }
    moved.resumable = copied.resumable;
    moved.copied = copied;
    Ok(moved)
}

/// True if the same command means the same once there is no journal: all sources are there, and they
/// would go where they went. `into`: true if they went into the destination.
fn means_the_same(copy: &CopyOptions, into: bool) -> bool {
    let is_there = |path| destination::look(0, path).is_ok();
    destination::goes_into(copy) == into && copy.sources.iter().all(|path| is_there(path))
}

fn check(options: &MoveOptions) -> Result<(), Error> {
    let copy = &options.copy;
    engine::check(copy)?;
    if copy.algorithm.is_none() {
        return Err(Error::usage(
            "a source is removed only if its copy has its digest: name an algorithm",
        ));
    }
    if matches!(copy.durability, Durability::None) {
        return Err(Error::usage(
            "a source is removed only once its copy is on the disk: sync at the end, in batches or \
             each file",
        ));
    }
    for source in &copy.sources {
        let path = source.as_bytes();
        if !path.is_empty() && dir_and_name(path).1.is_none() {
            return Err(usage_at(
                path,
                "has no name of its own there, so it cannot be moved",
            ));
        }
    }
    Ok(())
}

/// Refuses a source that another one holds: it would be gone, or be taken for changed, once that one
/// is moved.
fn refuse_nested(options: &CopyOptions) -> Result<(), Error> {
    if options.sources.len() < 2 {
        return Ok(());
    }
    let mut dirs = HashMap::new();
    let named = || options.sources.iter().enumerate();
    for (number, source) in named() {
        let there = stat_at(rustix::fs::CWD, source).ok();
        dirs.extend(
            there
                .filter(|there| there.kind() == FileKind::Dir)
                .map(|there| (there.id, number)),
        );
    }
    let mut above = HashMap::new();
    for (number, source) in named() {
        let path = source.as_bytes();
        let parent = dir_and_name(path).0;
        let holders = above.entry(parent).or_insert_with(|| {
            // What cannot be opened is reported when its turn has come.
            let parent = bc_fs::dirfd::open_root(parent).ok();
            parent.and_then(|parent| destination::ancestors(&parent).ok())
        });
        let own = stat_at(rustix::fs::CWD, source).ok().map(|own| own.id);
        let all = holders.iter().flatten().chain(&own);
        let mut holders = all.filter_map(|id| dirs.get(id));
        if let Some(holder) = holders.find(|holder| **holder != number) {
            let text = format!(
                "is in another source, {}: name one of them",
                bc_fs::Escaped(options.sources[*holder].as_bytes())
            );
            return Err(usage_at(path, text));
        }
    }
    Ok(())
}

/// A source that is not there.
struct MissingSource {
    number: u64,
    name: Vec<u8>,
    error: bc_walk::Error,
}

impl MissingSource {
    /// True if an earlier run has moved it, by its journal: what it became is there, and so is the
    /// volume that it was on. Whatever else keeps it from being looked at is an error.
    fn has_moved(&self, options: &CopyOptions, known: &KnownWork, into: bool) -> bool {
        if self.error.errno() != Some(Errno::NOENT.raw_os_error()) {
            return false;
        }
        let (dir, name) = target(options, &self.name, into);
        let Ok(dir) = bc_fs::dirfd::open_root(dir) else {
            return false;
        };
        let there = match name {
            b"" => crate::meta::stat(&dir),
            name => stat_at(&dir, name),
        };
        let Ok(there) = there else {
            return false;
        };
        let place = place_of(&options.sources[self.number as usize]);
        let is_its_volume = match VolumeNow::of_place(&place) {
            Ok(now) => known.is_its_volume(self.number, &now),
            Err(_) => Some(false),
        };
        let is_renamed = known.renamed.get(&self.number).is_some_and(|then| {
            let is_whole = is_its_volume.is_none() || then.dev == there.id.dev;
            is_whole && then.ino == there.id.ino
        });
        let is_removed = || known.removes && known.has_target(self.number, name);
        is_renamed || is_its_volume == Some(true) && is_removed()
    }
}

/// Returns the directory and the name, empty for the directory itself, that a source of this name
/// has at the destination.
fn target<'o>(options: &'o CopyOptions, name: &'o [u8], into: bool) -> (&'o [u8], &'o [u8]) {
    let path = options.destination.as_bytes();
    match dir_and_name(path) {
        _ if into => (path, name),
        (dir, Some(name)) => (dir, name),
        (dir, None) => (dir, b""),
    }
}

/// Records the volumes of sources that are not renamed as a whole.
fn record_sites<'s>(log: &Log, sources: impl Iterator<Item = &'s Source>) {
    let mut piece = Vec::new();
    for Source { number, path, stat } in sources {
        let place = place_of(path);
        let dir = match stat.kind() {
            FileKind::Dir => &place[..],
            _ => dir_and_name(&place).0,
        };
        let volume = bc_fs::volume::volume_at(OsStr::from_bytes(dir));
        let site = SiteRecord {
            source: *number as u64,
            dev: stat.id.dev,
            volume: volume.unwrap_or_default(),
        };
        record::push_site(&mut piece, &site);
    }
    // Without a record a later run takes the source for one that is missing.
    let _ = log.append(&mut piece);
}

/// Sources, as they are found.
struct NamedSources {
    sources: Vec<Source>,
    missing: Vec<MissingSource>,
}

impl NamedSources {
    /// Looks at all sources. `goes_on`: an earlier run may have moved those that are missing.
    fn look(options: &CopyOptions, goes_on: bool) -> Result<NamedSources, Error> {
        let (mut sources, mut missing) = (Vec::new(), Vec::new());
        for (number, path) in options.sources.iter().enumerate() {
            let looked = destination::look(number, path).and_then(is_named);
            match looked {
                Ok(source) => sources.push(source),
                Err(error) => missing.push(MissingSource {
                    number: number as u64,
                    name: dir_and_name(path.as_bytes()).1.unwrap_or_default().to_vec(),
                    error,
                }),
            }
        }
        match missing.first() {
            Some(first) if sources.is_empty() && !goes_on => Err(Error::from(first.error.clone())),
            _ => Ok(NamedSources { sources, missing }),
        }
    }
}

/// Refuses a link that only a slash behind it leads through: it is the link that has the name.
fn is_named(source: Source) -> Result<Source, bc_walk::Error> {
    let path = source.path.as_bytes();
    if path.ends_with(b"/") && source.stat.kind() == FileKind::Dir {
        let end = path
            .iter()
            .rposition(|byte| *byte != b'/')
            .map_or(0, |at| at + 1);
        let own = stat_at(rustix::fs::CWD, &path[..end]);
        if own.is_ok_and(|own| own.id != source.stat.id) {
            let text = "is a symbolic link: without the slash it is moved itself";
            return Err(bc_walk::Error::with_message(path, "move", text));
        }
    }
    Ok(source)
}
