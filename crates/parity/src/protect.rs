//! `protect`: brings a parity directory up to date with a manifest.
//!
//! Order of things: headers and index are read, `plan` gives each volume its role, volumes that are
//! spent go, `encode` writes new ones, and only then, all of them being durable, the volumes go whose
//! content they have. Killed anywhere, the older volumes serve; what the next run finds twice goes then.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use bc_fs::meta::stat;
use bc_fs::{PathError, dirfd};
use bc_integrity::{Job, ManifestFile, Reading, Work};
use bc_pool::Cancel;
use bc_read::Rate;
use bc_walk::job::{Error, ErrorKind};

use crate::code::{BLOCK, MOST_BLOCKS, Redundancy};
use crate::contents::{ContentTable, VolumeIndex};
use crate::encode::{EncodeEvent, EncodeMeans, Encoding};
use crate::file::{DirUse, ParityDir, ParityFile, default_dir, number_after, spent};
use crate::index::{self, IndexLine, IndexRun, ParityDescription, ParityIndex, ParitySettings};
use crate::index::{ProtectedTree, trailer};
use crate::manifest_copy;
use crate::plan::{
    Survey, VolumeRole, VolumeState, cover_all, live_pieces, merge, roles, survey, uncovered,
};

/// Bytes of memory for encoding where no budget is given.
const MEMORY: u64 = 256 << 20;

/// Bytes of memory that encoding cannot do without: windows, a header in its forms, and the code in
/// its narrowest form.
const LEAST_MEMORY: u64 = 12 << 20;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Days after which the parity of a volume is read again, a part of the volumes in each run.
const JUDGED_AFTER: i64 = 30 * DAY;
const JUDGED_PART: usize = 16;

/// Settings of a new directory.
const SETTINGS: ParitySettings = ParitySettings {
    redundancy: Redundancy::FIVE,
    volume: 256 << 20,
    keep_removed: 30 * DAY,
};

/// Options of protecting a tree, or of looking at its parity.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProtectOptions<'a> {
    /// The tree.
    pub root: &'a OsStr,
    /// Its manifest, which must be sound.
    pub manifest: &'a ManifestFile,
    /// Directory of the volumes.
    pub dir: PathBuf,
    /// True if a directory that is missing, or has no parity, gets its first; an error otherwise, since
    /// its disk may not be mounted.
    pub creates: bool,
    /// True if a directory of another tree or manifest is taken over, since that was renamed, and if a
    /// manifest that is older than that of the last run is the latest all the same.
    pub adopt: bool,
    /// Share of parity in new volumes; `None` for that of the directory, 5 % at first.
    pub redundancy: Option<Redundancy>,
    /// Bytes of content in a full volume; `None` for those of the directory, 256 MiB at first.
    pub volume: Option<u64>,
    /// Time for which content that was edited or removed is kept, in nanoseconds; `None` for that of the
    /// directory, 30 days at first.
    pub keep_removed_ns: Option<i64>,
    /// True if nothing is written, nor read of the tree: what would be done is reported.
    pub dry_run: bool,
    /// Now, in nanoseconds since 1970.
    pub now_ns: i64,
    /// Bytes of memory that may be used, if there is a limit.
    pub memory: Option<u64>,
}

impl<'a> ProtectOptions<'a> {
    /// Protects the tree at `root` as its manifest says, with parity beside the manifest.
    pub fn new<P: AsRef<Path> + ?Sized>(
        root: &'a P,
        manifest: &'a ManifestFile,
        now_ns: i64,
    ) -> ProtectOptions<'a> {
        let name = bc_walk::job::path_of(manifest.name());
        ProtectOptions {
            root: root.as_ref().as_os_str(),
            manifest,
            dir: default_dir(&name),
            creates: true,
            adopt: false,
            redundancy: None,
            volume: None,
            keep_removed_ns: None,
            dry_run: false,
            now_ns,
            memory: None,
        }
    }

    /// Returns the bytes of memory that lists may take.
    pub(crate) fn lists_memory(&self) -> u64 {
        self.memory
            .map_or(u64::MAX, |memory| memory.saturating_sub(LEAST_MEMORY))
    }

    /// Returns the settings of a run.
    pub(crate) fn settings(&self, of_directory: ParitySettings) -> Result<ParitySettings, Error> {
        let settings = ParitySettings {
            redundancy: self.redundancy.unwrap_or(of_directory.redundancy),
            volume: self.volume.unwrap_or(of_directory.volume),
            keep_removed: self
                .keep_removed_ns
                .map_or(of_directory.keep_removed, |ns| ns.div_euclid(SECOND)),
        };
        let capacity = settings.volume - settings.volume % BLOCK as u64;
        if !(BLOCK as u64 * 2..=(BLOCK * MOST_BLOCKS) as u64).contains(&capacity) {
            let text = format!(
                "a volume has from 128 KiB to 2 GiB, not {} bytes",
                settings.volume
            );
            return Err(Error::usage(text));
        }
        let blocks = (capacity / BLOCK as u64) as usize;
        if settings.redundancy.is_exceeded_by(blocks) {
            let fits = |blocks: &usize| !settings.redundancy.is_exceeded_by(*blocks);
            let text = format!(
                "a volume of {} bytes has at least 2 blocks of parity, which is more than twice {} of it: {}",
                settings.volume,
                settings.redundancy,
                match (blocks..=MOST_BLOCKS).find(fits) {
                    Some(least) => format!(
                        "at least {} bytes, or a larger redundancy, are needed",
                        least * BLOCK
                    ),
                    None => "a larger redundancy is needed".to_owned(),
                }
            );
            return Err(Error::usage(text));
        }
        Ok(settings)
    }
}

bc_fs::setters! {
    ProtectOptions<'a>:
    dir: PathBuf,
    creates: bool,
    adopt: bool,
    redundancy: Option<Redundancy>,
    volume: Option<u64>,
    keep_removed_ns: Option<i64>,
    dry_run: bool,
    memory: Option<u64>,
}

/// Event of protecting.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ProtectEvent<'a> {
    /// A file whose content could not be proven, so that it has no new parity.
    Unprotected(&'a PathError),
    /// A volume that does not serve any more, and stays since no other has all of its content.
    Held {
        /// Its path.
        volume: &'a Path,
    },
    /// A volume that does not serve any more, and stays since it has content that was edited or removed
    /// not long ago.
    Kept {
        /// Its path.
        volume: &'a Path,
        /// Path that the last such content had.
        removed: &'a [u8],
    },
    /// A file in the directory that is no sound volume of it, or one that could not be removed.
    Unreadable(&'a Error),
    /// Nothing is removed in this run, for this reason.
    NotRemoving(&'static str),
    /// The index is lost: settings are those of the newest volume, and what was removed counts as removed
    /// just now.
    IndexLost {
        /// Time for which content that was edited or removed is kept, in nanoseconds.
        keep_removed_ns: i64,
    },
    /// A volume was written.
    Written {
        /// Its path.
        volume: &'a Path,
        /// Bytes of content in it.
        bytes: u64,
        /// Bytes of its file.
        len: u64,
    },
    /// A volume was removed: other volumes have all of its content that is recorded.
    Removed {
        /// Its path.
        volume: &'a Path,
        /// True if any of its content is recorded.
        has_content: bool,
    },
}

/// Receiver of events.
pub type ProtectObserver<'a> = dyn FnMut(ProtectEvent<'_>) + 'a;

/// Result of protecting.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Protected {
    /// Contents that no volume had before.
    pub wanted: u64,
    /// Volumes that were written, or would be.
    pub written: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Bytes of their files; 0 in a dry run.
    pub parity_bytes: u64,
    /// Volumes that were removed, or would be.
    pub removed: u64,
    /// Volumes that there are now.
    pub volumes: u64,
    /// Contents without new parity, since they could not be proven, or have no digest.
    pub unprotected: u64,
    /// Volumes that do not serve any more, and stay since others do not have all of their content.
    pub held: u64,
    /// Volumes that stay for content that was edited or removed.
    pub kept: u64,
    /// Files in the directory that are no sound volumes.
    pub unreadable: u64,
    /// True if volumes that should go stay, since it is not safe to remove any, or if the manifest is older
    /// than that of the last run.
    pub is_blocked: bool,
    /// True if the settings of the directory are other ones now.
    pub has_new_settings: bool,
}

impl Protected {
    /// True if all that is recorded has parity, and all volumes are as they should be.
    pub fn is_complete(&self) -> bool {
        self.unprotected == 0 && self.held == 0 && self.unreadable == 0 && !self.is_blocked
    }
}

/// A parity directory with its description, index, and volumes by the manifest of today.
pub(crate) struct Surveyed {
    pub(crate) description: ParityDescription,
    pub(crate) index: ParityIndex,
    pub(crate) survey: Survey,
    /// True if the manifest is older than the one of the last run.
    is_older: bool,
    has_new_settings: bool,
}

/// Returns the description of a directory: that of its index, if that is of its volumes, or of the
/// newest one.
pub(crate) fn description(dir: &ParityDir, index: &ParityIndex) -> Option<ParityDescription> {
    let mut newest = None;
    for number in dir.volumes().iter().rev() {
        let Ok(file) = dir.read(*number) else {
            continue;
        };
        let header = &file.header;
        if index
            .description
            .as_ref()
            .is_some_and(|of| of.id() == header.id.dir)
        {
            return index.description.clone();
        }
        let described = ParityDescription::parsed(&header.directory);
        newest = newest.or(described.filter(|of| of.id() == header.id.dir));
    }
    newest.or_else(|| index.description.clone())
}

/// Opens the description, and judges all volumes by the manifest.
///
/// # Errors
/// If the directory is that of another tree or manifest; as of [`survey`].
pub(crate) fn surveyed(
    dir: &ParityDir,
    contents: &ContentTable,
    options: &ProtectOptions<'_>,
) -> Result<Surveyed, Error> {
    let of = ProtectedTree::of(options.manifest, &contents.header);
    let index = index::read(dir);
    let mut has_new_settings = false;
    let description = match description(dir, &index) {
        Some(mut description) => {
            description.check(&of, options.adopt, dir.path())?;
            let settings = options.settings(description.settings)?;
            has_new_settings = settings != description.settings;
            description.settings = settings;
            description
        }
        None => ParityDescription::new(of, options.settings(SETTINGS)?)?,
    };
    // A clock that jumps does not make content old.
    let now = options.now_ns.div_euclid(SECOND);
    let most = description.settings.keep_removed / 2;
    let is_older = !options.adopt && contents.made_ns() < index.run.manifest_ns;
    let seconds = match is_older || index.description.is_none() {
        true => 0,
        false => now.saturating_sub(index.run.run_at).clamp(0, most.max(0)),
    };
    let survey = survey(dir, description.id(), contents, &index, seconds)?;
    Ok(Surveyed {
        description,
        index,
        survey,
        is_older,
        has_new_settings,
    })
}

/// Opens the directory that recorded paths are below.
fn open_top(root: &OsStr) -> Result<(OwnedFd, Vec<u8>), Error> {
    let path = Path::new(root);
    let meta = std::fs::metadata(path).map_err(|error| Error::io(path, "stat", &error))?;
    let top = match meta.is_dir() {
        true => path,
        false => path
            .parent()
            .filter(|dir| !dir.as_os_str().is_empty())
            .unwrap_or(Path::new(".")),
    };
    let bytes = top.as_os_str().as_encoded_bytes();
    let fd = dirfd::open_root(bytes).map_err(|call| Error::io(path, call.op, &call.into()))?;
    Ok((fd, bytes.to_vec()))
}

/// Refuses an empty root: content is recorded there.
fn refuse_empty(root: &OsStr) -> Result<(), Error> {
    let path = Path::new(root);
    let failed = |error: std::io::Error| Error::io(path, "read directory", &error);
    if path.is_dir() && std::fs::read_dir(path).map_err(failed)?.next().is_none() {
        let text = "is empty: not mounted?";
        return Err(Error::at(ErrorKind::Refused, path, text));
    }
    Ok(())
}

/// Refuses a parity directory in the tree other than the one beside the manifest, which alone is left
/// out of walks: its volumes would be recorded, and protected themselves.
fn refuse_inside(options: &ProtectOptions<'_>, top: &OwnedFd) -> Result<(), Error> {
    let path = &options.dir;
    let failed = |call: bc_fs::call::FailedCall| Error::io(path, call.op, &call.into());
    let bytes = path.as_os_str().as_encoded_bytes();
    let (dir, missing) = dirfd::deepest_existing(bytes).map_err(failed)?;
    let beside = default_dir(&bc_walk::job::path_of(options.manifest.name()));
    let is_beside = match missing {
        0 => {
            let beside = dirfd::open_root(beside.as_os_str().as_encoded_bytes()).and_then(stat);
            beside.is_ok_and(|beside| stat(&dir).is_ok_and(|dir| dir.id == beside.id))
        }
        _ => *path == beside,
    };
    if is_beside {
        return Ok(());
    }
    let top = stat(top).map_err(failed)?.id;
    let is_inside = dirfd::visit_ancestors(&dir, |id, _| id == top).map_err(failed)?;
    match is_inside {
        true => {
            let text = "is inside the tree, and manifests would record it: put it outside, or next to the \
                        manifest, where it is left out";
            Err(Error::at(ErrorKind::Refused, path, text))
        }
        false => Ok(()),
    }
}

/// Brings the parity of a tree up to date with its manifest.
///
/// # Errors
/// If the manifest is not sound or its digests are too short, the root is missing or empty, another
/// run is at work, the directory is that of another tree or has other files, or a volume cannot be
/// written; if it was cancelled. Volumes that were written until then stay.
pub fn protect(
    options: &ProtectOptions<'_>,
    work: &Work<'_>,
    observer: &mut ProtectObserver<'_>,
) -> Result<Protected, Error> {
    if !options.dir.is_dir() {
        // Before it is made.
        options.settings(SETTINGS)?;
    }
    let (top, top_path) = open_top(options.root)?;
    refuse_inside(options, &top)?;
    let mut contents = ContentTable::of(options.manifest, options.lists_memory())?;
    if contents.len() > 0 || contents.without_digest > 0 {
        refuse_empty(options.root)?;
    }
    let used = match (options.dry_run, options.creates) {
        (true, _) => DirUse::Read,
        (false, true) => DirUse::Create,
        (false, false) => DirUse::Write,
    };
    let Some(dir) = ParityDir::open(&options.dir, used)? else {
        let settings = options.settings(SETTINGS)?;
        return Ok(foreseen(&contents, settings, Protected::default()));
    };
    dir.refuse_writer()?;
    let Surveyed {
        description,
        index,
        survey,
        is_older,
        has_new_settings,
    } = surveyed(&dir, &contents, options)?;
    let settings = description.settings;
    let mut done = Protected {
        unreadable: survey.unreadable.len() as u64,
        has_new_settings,
        ..Protected::default()
    };
    survey
        .unreadable
        .iter()
        .for_each(|error| observer(ProtectEvent::Unreadable(error)));
    if index.description.is_none() && !dir.volumes().is_empty() {
        observer(ProtectEvent::IndexLost {
            keep_removed_ns: settings.keep_removed.saturating_mul(SECOND),
        });
    }
    let mut volumes = survey.volumes;
    let now = options.now_ns.div_euclid(SECOND);
    let mut roles = covered(&dir, &mut contents, &volumes, settings);
    let reading = (!options.dry_run).then(|| reading(&contents, work));
    let reading = reading.transpose()?;
    let rate = reading
        .as_ref()
        .and_then(|reading| reading.read.rate.clone());
    if reading.is_some() && judge_due(&dir, &mut volumes, now, rate.as_ref(), work.cancel)? {
        contents.forget_cover();
        roles = covered(&dir, &mut contents, &volumes, settings);
    }
    (done.wanted, _) = uncovered(&contents);
    let blocked = if is_older {
        Some(
            "the manifest is older than the one that the parity was last made for, and its copy is not \
             renewed: adopt it if it is the latest",
        )
    } else if survey.is_refused {
        Some("a volume could not be read")
    } else if !options.dry_run && !dir.is_held() {
        Some("there are no locks on this file system to keep another run out")
    } else {
        None
    };
    // The copy of the manifest is not renewed either.
    done.is_blocked = is_older;
    let Some(reading) = reading else {
        for (role, volume) in roles.iter().zip(&volumes) {
            if *role == VolumeRole::Serves {
                continue;
            }
            // What is not known to be damaged is expected to be covered by then.
            let is_covered = volume.suspect == 0;
            let keep = settings.keep_removed;
            match HeldBack::of(volume, keep, is_covered, blocked.is_some()) {
                Some(held) => held.report(volume, &dir, &mut done, observer),
                None => done.removed += 1,
            }
        }
        if let Some(why) = blocked.filter(|_| done.is_blocked) {
            observer(ProtectEvent::NotRemoving(why));
        }
        done.volumes = volumes.len() as u64 - done.removed;
        let done = foreseen(&contents, settings, done);
        return Ok(done);
    };
    let keep_copy = || match is_older {
        true => Ok(()),
        false => manifest_copy::keep(&dir, options.manifest),
    };
    let last = dir.volumes().last().copied().unwrap_or(0);
    let capacity = settings.volume - settings.volume % BLOCK as u64;
    let means = EncodeMeans {
        dir: &dir,
        id: description.id(),
        description: description.text(),
        top: top.as_fd(),
        top_path: &top_path,
        manifest: options.manifest,
        redundancy: settings.redundancy,
        capacity,
        memory: memory(options, &contents),
        workers: reading.workers.max(1),
        cpu: work.cpu,
        cancel: work.cancel,
        progress: work.progress,
        rate: rate.clone(),
        now_ns: options.now_ns,
    };
    let mut remover = Remover {
        dir: &dir,
        roles,
        judged: HashSet::new(),
        now,
        keep: settings.keep_removed,
        rate: rate.as_ref(),
        cancel: work.cancel,
        first: None,
    };
    // Room is made before more is written. What no manifest lists needs none to be repaired by; there may
    // be no room for its copy before.
    if blocked.is_none() {
        remover.remove(
            |role, volume| role == VolumeRole::Spent && !volume.is_live,
            &contents,
            &mut volumes,
            &mut done,
            observer,
        );
    }
    let is_spent =
        |(role, volume): (&VolumeRole, &VolumeState)| *role == VolumeRole::Spent && volume.is_live;
    let makes_room = blocked.is_none() && remover.roles.iter().zip(&volumes).any(is_spent);
    // Without a manifest nothing is repaired.
    let copied_first = makes_room.then(&keep_copy);
    if let Some(Ok(())) = copied_first {
        remover.remove(
            |role, _| role == VolumeRole::Spent,
            &contents,
            &mut volumes,
            &mut done,
            observer,
        );
    }
    let before = volumes.len();
    let (written, bytes, parity_bytes) =
        (&mut done.written, &mut done.bytes, &mut done.parity_bytes);
    let mut on_event = |event: EncodeEvent<'_>| match event {
        EncodeEvent::Unproven(error) => observer(ProtectEvent::Unprotected(error)),
        EncodeEvent::Written(volume, len) => {
            (*written, *bytes) = (*written + 1, *bytes + volume.line.bytes);
            *parity_bytes += len;
            observer(ProtectEvent::Written {
                volume: &dir.volume_path(volume.number),
                bytes: volume.line.bytes,
                len,
            });
        }
    };
    let next = number_after(last, dir.path())?;
    let is_idle = done.wanted == 0 && contents.without_digest == 0;
    let mut encoding = Encoding::new(&means, &mut contents, volumes, next, &mut on_event);
    let encoded = match is_idle {
        true => Ok(()),
        false => encoding.run(),
    };
    let unproven = encoding.unproven;
    let mut volumes = std::mem::take(&mut encoding.volumes);
    drop(encoding);
    done.unprotected = unproven + contents.without_digest;
    remover.roles.resize(volumes.len(), VolumeRole::Serves);
    let is_cancelled = work.cancel.is_cancelled();
    // Otherwise only now, so that compressing and encoding do not take memory at the same time, and so
    // that a directory with the copy has volumes, too.
    let copied = copied_first.unwrap_or_else(|| match is_cancelled {
        true => Ok(()),
        false => keep_copy(),
    });
    let no_copy = "the copy of the manifest could not be written";
    let blocked = blocked.or(copied.is_err().then_some(no_copy));
    remover.note(copied);
    if blocked.is_none() && !is_cancelled {
        for role in [VolumeRole::Worn, VolumeRole::Merged, VolumeRole::Spent] {
            remover.remove(
                |of, _| of == role,
                &contents,
                &mut volumes,
                &mut done,
                observer,
            );
        }
        if done.removed > 0 {
            remover.note(dir.sync());
        }
    }
    // Of a run that failed half way nothing is said of what others have.
    let is_partial = is_cancelled || encoded.is_err();
    for (at, held) in remover.held(&contents, &mut volumes, blocked.is_some() || is_partial) {
        held.report(&volumes[at], &dir, &mut done, observer);
    }
    if let Some(why) = blocked.filter(|_| done.is_blocked) {
        observer(ProtectEvent::NotRemoving(why));
    }
    volumes.retain(|volume| !remover.is_gone(volume));
    debug_assert!(volumes.len() <= before + done.written as usize);
    done.volumes = volumes.len() as u64;
    let error = encoded.err().or(remover.first);
    // After a clock that was ahead, every manifest would be an older one.
    let latest = match options.adopt {
        true => i64::MIN,
        false => index.run.manifest_ns,
    };
    let run = IndexRun {
        complete_for: (error.is_none() && done.is_complete()).then(|| trailer(&contents.trailer)),
        run_at: now,
        manifest_ns: contents.made_ns().max(latest),
    };
    let stored = store_index(&dir, &description, run, volumes, &index);
    match error {
        Some(error) => Err(error),
        None => stored.map(|()| done),
    }
}

/// Reads all parity of volumes for which that was not done for long: a part of them. True if more of it
/// is damaged than was known.
fn judge_due(
    dir: &ParityDir,
    volumes: &mut [VolumeState],
    now: i64,
    rate: Option<&Rate>,
    cancel: &Cancel,
) -> Result<bool, Error> {
    let is_due =
        |volume: &VolumeState| !(0..JUDGED_AFTER).contains(&now.saturating_sub(volume.line.judged));
    let most = volumes.len().div_ceil(JUDGED_PART);
    let mut due: Vec<&mut VolumeState> =
        volumes.iter_mut().filter(|volume| is_due(volume)).collect();
    due.sort_unstable_by_key(|volume| volume.line.judged);
    let mut is_news = false;
    for volume in due.into_iter().take(most) {
        let before = volume.line.damaged;
        judge(dir, volume, now, &mut |bytes| spent(bytes, rate, cancel))?;
        is_news |= volume.line.damaged != before;
    }
    Ok(is_news)
}

/// Reads all parity of a volume, and notes how much of it is damaged. `read` is called with the bytes
/// that were read, and returns false to end that.
///
/// # Errors
/// If it was ended.
pub(crate) fn judge(
    dir: &ParityDir,
    volume: &mut VolumeState,
    now: i64,
    read: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Error> {
    let mut is_over = false;
    let good = match dir.read(volume.number) {
        Ok(file) if file.id == volume.file => file.judge(&mut |bytes| {
            is_over = !read(bytes);
            !is_over
        }),
        // What it was judged by is gone.
        _ => Vec::new(),
    };
    if is_over {
        return Err(Error::cancelled());
    }
    let good = good.iter().filter(|good| **good).count() as u64;
    volume.line.damaged = volume.line.parity - good;
    volume.line.judged = now;
    Ok(())
}

/// Gives each volume its role, and notes the content of those that serve as protected.
fn covered(
    dir: &ParityDir,
    contents: &mut ContentTable,
    volumes: &[VolumeState],
    settings: ParitySettings,
) -> Vec<VolumeRole> {
    let mut roles = roles(volumes);
    // Those with most of their parity first, and of them the newest: these are left of a run that was
    // killed before the older ones went.
    let mut order: Vec<usize> = (0..volumes.len()).collect();
    order.sort_unstable_by_key(|at| (volumes[*at].used_up(), Reverse(*at)));
    // Those that cannot be read now could be before, and are named when they are to go.
    cover_all(dir, contents, volumes, &mut roles, &order);
    merge(volumes, &mut roles, settings.volume, settings.keep_removed);
    if roles.contains(&VolumeRole::Merged) {
        contents.forget_cover();
        cover_all(dir, contents, volumes, &mut roles, &order);
    }
    roles
}

/// Reason for which a volume that does not serve stays.
enum HeldBack {
    /// It has content that was edited or removed not long ago, and others have the rest.
    Kept,
    /// It may be the only one that repairs some of its content.
    Held,
    /// Nothing is removed in this run.
    Blocked,
}

impl HeldBack {
    /// Returns the reason for which a volume stays; `None` if it goes. `is_covered` says that others have
    /// all of its content that is recorded.
    fn of(volume: &VolumeState, keep: i64, is_covered: bool, is_blocked: bool) -> Option<HeldBack> {
        let is_needed = volume.may_repair() || !is_covered;
        match volume.keeps_removed(keep) {
            true if !is_needed => Some(HeldBack::Kept),
            _ if is_blocked => Some(HeldBack::Blocked),
            _ => is_needed.then_some(HeldBack::Held),
        }
    }

    /// Counts and reports it.
    fn report(
        &self,
        volume: &VolumeState,
        dir: &ParityDir,
        done: &mut Protected,
        observer: &mut ProtectObserver<'_>,
    ) {
        let path = dir.volume_path(volume.number);
        match self {
            HeldBack::Kept => {
                done.kept += 1;
                observer(ProtectEvent::Kept {
                    volume: &path,
                    removed: volume.last_removed.as_deref().unwrap_or_default(),
                });
            }
            HeldBack::Held => {
                done.held += 1;
                observer(ProtectEvent::Held { volume: &path });
            }
            HeldBack::Blocked => done.is_blocked = true,
        }
    }
}

/// True if others have all content of a volume that is recorded.
fn is_covered(contents: &ContentTable, file: &ParityFile) -> bool {
    live_pieces(contents, &file.header)
        .iter()
        .all(|piece| contents.missing_of(*piece).is_none())
}

/// Removes volumes of which others have all content.
struct Remover<'a> {
    dir: &'a ParityDir,
    roles: Vec<VolumeRole>,
    /// Now, in seconds since 1970.
    now: i64,
    /// Volumes whose parity was read in this run.
    judged: HashSet<VolumeIndex>,
    keep: i64,
    /// Limit of bytes a second, if there is one.
    rate: Option<&'a Rate>,
    cancel: &'a Cancel,
    /// The first error.
    first: Option<Error>,
}

/// Number of a volume that was removed.
const GONE: u64 = 0;

impl Remover<'_> {
    fn note(&mut self, done: Result<(), Error>) {
        if let Err(error) = done {
            self.first.get_or_insert(error);
        }
    }

    fn is_gone(&self, volume: &VolumeState) -> bool {
        volume.number == GONE
    }

    /// Removes the volumes that may go, of those that `is_asked` returns true for.
    fn remove(
        &mut self,
        is_asked: impl Fn(VolumeRole, &VolumeState) -> bool,
        contents: &ContentTable,
        volumes: &mut [VolumeState],
        done: &mut Protected,
        observer: &mut ProtectObserver<'_>,
    ) {
        for at in 0..volumes.len().min(self.roles.len()) {
            let volume = &volumes[at];
            if self.is_gone(volume) || !is_asked(self.roles[at], volume) {
                continue;
            }
            if volume.keeps_removed(self.keep) {
                continue;
            }
            let number = volume.number;
            match self.may_go(at, contents, volumes) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) if error.kind() == ErrorKind::Cancelled => {
                    self.first.get_or_insert(error);
                    return;
                }
                Err(error) => {
                    done.unreadable += 1;
                    observer(ProtectEvent::Unreadable(&error));
                    continue;
                }
            }
            if let Err(error) = self.dir.remove(number, volumes[at].file) {
                done.unreadable += 1;
                observer(ProtectEvent::Unreadable(&error));
                continue;
            }
            observer(ProtectEvent::Removed {
                volume: &self.dir.volume_path(number),
                has_content: volumes[at].is_live,
            });
            done.removed += 1;
            volumes[at].number = GONE;
        }
    }

    /// True if other volumes have all content of this one, and are found sound.
    fn may_go(
        &mut self,
        at: usize,
        contents: &ContentTable,
        volumes: &mut [VolumeState],
    ) -> Result<bool, Error> {
        // It may be the only one that repairs what is damaged, whatever others list.
        if volumes[at].may_repair() {
            return Ok(false);
        }
        let file = self.dir.read(volumes[at].number)?;
        if file.id != volumes[at].file || !is_covered(contents, &file) {
            return Ok(false);
        }
        let pieces = live_pieces(contents, &file.header);
        drop(file);
        let others: HashSet<VolumeIndex> = pieces
            .iter()
            .flat_map(|piece| contents.volumes_of(*piece))
            .collect();
        for other in others {
            let other_at = other as usize;
            if other_at == at || volumes[other_at].number == GONE {
                return Ok(false);
            }
            if self.judged.insert(other) {
                let (rate, cancel) = (self.rate, self.cancel);
                let read = &mut |bytes| spent(bytes, rate, cancel);
                judge(self.dir, &mut volumes[other_at], self.now, read)?;
            }
            let other = &volumes[other_at];
            if other.is_worn() || other.used_up() > volumes[at].used_up() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the volumes that do not serve and stay, and notes which could not be merged.
    fn held(
        &self,
        contents: &ContentTable,
        volumes: &mut [VolumeState],
        is_blocked: bool,
    ) -> Vec<(usize, HeldBack)> {
        let mut held = Vec::new();
        for (at, volume) in volumes.iter_mut().enumerate() {
            let role = self.roles.get(at).copied();
            if self.is_gone(volume) || role.is_none_or(|role| role == VolumeRole::Serves) {
                continue;
            }
            let file = self.dir.read(volume.number);
            let is_covered = file.is_ok_and(|file| is_covered(contents, &file));
            let why = HeldBack::of(volume, self.keep, is_covered, is_blocked);
            // If nothing else holds it back, those that have its content are worn themselves.
            let why = why.unwrap_or(HeldBack::Held);
            match (role, &why) {
                // It serves as well as before, and would stay the next time, too.
                (Some(VolumeRole::Merged), HeldBack::Held) => volume.line.unmerged = true,
                _ => held.push((at, why)),
            }
        }
        held
    }
}

/// Writes the index, if it says anything new.
fn store_index(
    dir: &ParityDir,
    description: &ParityDescription,
    run: IndexRun,
    volumes: Vec<VolumeState>,
    before: &ParityIndex,
) -> Result<(), Error> {
    let lines: Vec<IndexLine> = volumes.into_iter().map(|volume| volume.line).collect();
    let is_same = |line: &IndexLine| before.lines.get(&line.volume) == Some(line);
    let is_waiting = lines.iter().any(|line| !line.gone.is_empty());
    let is_unchanged = before.description.as_ref() == Some(description)
        && (&before.run.complete_for, before.run.manifest_ns)
            == (&run.complete_for, run.manifest_ns)
        && before.lines.len() == lines.len()
        && lines.iter().all(is_same)
        && !is_waiting;
    match is_unchanged {
        true => Ok(()),
        false => index::write(dir, description, &run, &lines),
    }
}

/// Returns the number of workers, and the limits that the caller sets.
fn reading(contents: &ContentTable, work: &Work<'_>) -> Result<Reading, Error> {
    let (count, bytes) = uncovered(contents);
    let job = Job::new(count, bytes, contents.memory());
    (work.reading)(job).map_err(Error::usage)
}

/// Returns the bytes of memory for encoding: the lists were found to leave enough.
fn memory(options: &ProtectOptions<'_>, contents: &ContentTable) -> u64 {
    let left = |limit: u64| limit.saturating_sub(contents.memory()).min(MEMORY);
    options
        .memory
        .map_or(MEMORY, left)
        .max(LEAST_MEMORY * 2 / 3)
}

/// Foresees a run: what is suspect is not expected to be proven.
fn foreseen(contents: &ContentTable, settings: ParitySettings, done: Protected) -> Protected {
    let missing = contents
        .ids()
        .filter_map(|content| contents.missing(content));
    let (mut bytes, mut suspect, mut wanted) = (0, 0, 0);
    for piece in missing {
        wanted += 1;
        match contents.is_suspect(piece.content) {
            true => suspect += 1,
            false => bytes += piece.len,
        }
    }
    let written = bytes.div_ceil(settings.volume - settings.volume % BLOCK as u64);
    Protected {
        wanted,
        bytes,
        written,
        volumes: done.volumes + written,
        unprotected: suspect + contents.without_digest,
        ..done
    }
}
