//! `protect`: brings a parity directory up to date with a manifest.
//!
//! Order of things: headers and index are read, `plan` decides, `encode` writes new volumes, and only
//! then, all of them being durable, the volumes go whose content they have. Killed anywhere, the older
//! volumes serve; what the next run finds twice is only parity too much.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use bc_fs::{PathError, dirfd};
use bc_integrity::{Job, ManifestFile, Reading, Work};
use bc_walk::job::{Error, ErrorKind};

use crate::code::{BLOCK, MOST_BLOCKS, Redundancy};
use crate::contents::{ContentId, RecordedContents};
use crate::encode::{EncodeEnd, EncodeMeans, Encoding};
use crate::file::{DirUse, ParityDir, default_dir, is_forgeable};
use crate::index::{self, IndexLine};
use crate::plan::{HeldBack, PlanRules, ProtectPlan, VolumeState, plan, replaceable};

/// Bytes of memory for encoding where no budget is given.
const MEMORY: u64 = 256 << 20;

/// Bytes of memory that encoding cannot do without: a window, and the code in its narrowest form.
const LEAST_MEMORY: u64 = 8 << 20;

const SECOND: i64 = 1_000_000_000;

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
    /// Share of parity in new volumes.
    pub redundancy: Redundancy,
    /// Bytes of content in a full volume.
    pub volume: u64,
    /// Time for which content that is gone is kept, in nanoseconds.
    pub keep_removed_ns: i64,
    /// True if nothing is written, nor read of the tree: what would be done is reported.
    pub dry_run: bool,
    /// Now, in nanoseconds since 1970.
    pub now_ns: i64,
    /// Bytes of memory that may be used, if there is a limit.
    pub memory: Option<u64>,
}

impl<'a> ProtectOptions<'a> {
    /// Protects the tree at `root` as its manifest says, with 5 % of parity beside the manifest.
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
            redundancy: Redundancy::default(),
            volume: 256 << 20,
            keep_removed_ns: 30 * 86_400 * SECOND,
            dry_run: false,
            now_ns,
            memory: None,
        }
    }
}

bc_fs::setters! {
    ProtectOptions<'a>:
    dir: PathBuf,
    redundancy: Redundancy,
    volume: u64,
    keep_removed_ns: i64,
    dry_run: bool,
    memory: Option<u64>,
}

/// Event of protecting.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ProtectEvent<'a> {
    /// A file whose content could not be proven, so that it has no parity.
    Unprotected(&'a PathError),
    /// A volume that should be written again and stays.
    Held {
        /// Its path.
        volume: &'a Path,
        /// Reason, in words.
        why: &'static str,
        /// Path of the content that was removed last, if that is the reason.
        removed: Option<&'a [u8]>,
    },
    /// A file in the directory that is no sound volume.
    Unreadable(&'a Error),
    /// A volume was written.
    Written {
        /// Its path.
        volume: &'a Path,
        /// Bytes of content in it.
        bytes: u64,
        /// Bytes of its file.
        len: u64,
    },
    /// A volume was removed, since others have its content, or nothing of it is recorded any more.
    Removed {
        /// Its path.
        volume: &'a Path,
    },
}

/// Receiver of events.
pub type ProtectObserver<'a> = dyn FnMut(ProtectEvent<'_>) + 'a;

/// Result of protecting.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Protected {
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
    /// Contents without parity, since they could not be proven.
    pub unprotected: u64,
    /// Volumes that should be written again and stay.
    pub held: u64,
    /// Files in the directory that are no sound volumes.
    pub unreadable: u64,
}

impl Protected {
    /// True if all that is recorded has parity, and all volumes are as they should be.
    pub fn is_complete(&self) -> bool {
        self.unprotected == 0 && self.held == 0 && self.unreadable == 0
    }
}

/// Volumes of a directory, judged by a manifest.
#[derive(Default)]
pub(crate) struct Survey {
    pub(crate) volumes: Vec<VolumeState>,
    /// Files that are no sound volumes.
    pub(crate) unreadable: Vec<Error>,
    /// Greatest number of a volume, sound or not.
    pub(crate) last: u64,
}

/// Reads all headers of a directory.
///
/// # Errors
/// If the directory cannot be listed, or a volume has digests of another algorithm.
pub(crate) fn survey(
    dir: &ParityDir,
    contents: &RecordedContents,
    now: i64,
) -> Result<Survey, Error> {
    let index = index::read(dir);
    let is_strict = is_forgeable(contents.algorithm);
    if is_strict {
        dir.refuse_others()?;
    }
    let mut survey = Survey {
        volumes: Vec::new(),
        unreadable: Vec::new(),
        last: 0,
    };
    for id in dir.volumes()? {
        survey.last = id;
        let read = dir.read(id).and_then(|file| match is_strict {
            true => dir.refuse_volume_of_others(&file).map(|()| file),
            false => Ok(file),
        });
        match read {
            Ok(file) if file.header.algorithm != contents.algorithm => {
                let (of, for_) = (file.header.algorithm.name(), contents.algorithm.name());
                let text = format!(
                    "has digests of {of}, and the manifest of {for_}: use another parity directory"
                );
                return Err(Error::at(ErrorKind::Usage, &dir.volume_path(id), text));
            }
            Ok(file) => {
                let state =
                    VolumeState::of(&file.header, file.present(), contents, index.get(&id), now);
                survey.volumes.push(state);
            }
            Err(error) => survey.unreadable.push(error),
        }
    }
    Ok(survey)
}

/// Makes the index of these volumes.
fn lines(volumes: &[VolumeState], contents: &RecordedContents) -> Vec<IndexLine> {
    let manifest = IndexLine::trailer(&contents.trailer);
    let line = |volume: &VolumeState| IndexLine {
        volume: volume.id,
        bytes: volume.bytes,
        blocks: volume.data as u64,
        parity: volume.parity as u64,
        stale: volume.stale as u64,
        written_at: IndexLine::time(volume.written_ns),
        manifest: manifest.clone(),
        removed: volume.removed.clone(),
    };
    volumes.iter().map(line).collect()
}

/// Opens the directory that recorded paths are below.
pub(crate) fn open_top(root: &OsStr) -> Result<(OwnedFd, Vec<u8>), Error> {
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
    if meta.is_dir() {
        let mut entries =
            std::fs::read_dir(path).map_err(|error| Error::io(path, "read directory", &error))?;
        if entries.next().is_none() {
            return Err(Error::at(
                ErrorKind::Refused,
                path,
                "is empty: not mounted?",
            ));
        }
    }
    Ok((fd, bytes.to_vec()))
}

/// Brings the parity of a tree up to date with its manifest.
///
/// # Errors
/// If the manifest is not sound or its digests are too short, the root is missing or empty, another
/// run is at work, or a volume cannot be written; if it was cancelled. Volumes that were written
/// until then stay.
pub fn protect(
    options: &ProtectOptions<'_>,
    work: &Work<'_>,
    observer: &mut ProtectObserver<'_>,
) -> Result<Protected, Error> {
    let capacity = options.volume - options.volume % BLOCK as u64;
    if !(BLOCK as u64 * 2..=(BLOCK * MOST_BLOCKS) as u64).contains(&capacity) {
        let text = format!(
            "a volume has from 128 KiB to 2 GiB, not {} bytes",
            options.volume
        );
        return Err(Error::usage(text));
    }
    let contents = RecordedContents::of(options.manifest)?;
    let (top, top_path) = open_top(options.root)?;
    let used = match options.dry_run {
        true => DirUse::Read,
        false => DirUse::Write,
    };
    let Some(dir) = ParityDir::open(&options.dir, used)? else {
        return Ok(foresee(options, &contents, capacity));
    };
    let now = options.now_ns.div_euclid(SECOND);
    let Survey {
        mut volumes,
        unreadable,
        last,
    } = survey(&dir, &contents, now)?;
    unreadable
        .iter()
        .for_each(|error| observer(ProtectEvent::Unreadable(error)));
    let rules = PlanRules {
        capacity,
        now,
        keep_removed: options.keep_removed_ns / SECOND,
    };
    let is_suspect = |content: ContentId| contents.get(content).is_suspect;
    let planned = plan(&contents, &volumes, rules, is_suspect);
    let mut done = Protected {
        unreadable: unreadable.len() as u64,
        ..Protected::default()
    };
    if options.dry_run {
        done = foreseen(&planned, &contents, capacity, done);
        done.volumes = volumes.len() as u64 - done.removed + done.written;
        report_held(&planned.held, &dir, &volumes, observer, &mut done);
        return Ok(done);
    }
    let Reading { workers, read, .. } = reading(&planned, &contents, work)?;
    let means = EncodeMeans {
        dir: &dir,
        top: top.as_fd(),
        top_path: &top_path,
        contents: &contents,
        redundancy: options.redundancy,
        capacity,
        memory: memory(options, &contents)?,
        workers: workers.max(1),
        cpu: work.cpu,
        cancel: work.cancel,
        progress: work.progress,
        rate: read.rate.clone(),
        now_ns: options.now_ns,
    };
    let mut encoding = Encoding::new(&means, last + 1);
    let mut first = planned;
    let mut step = first.clone();
    let encoded = loop {
        let before = encoding.written.len();
        let end = if step.wanted.is_empty() {
            Ok(EncodeEnd::Complete)
        } else {
            encoding.run(&step.wanted)
        };
        for (volume, len) in &encoding.written[before..] {
            volumes.push(volume.clone());
            observer(ProtectEvent::Written {
                volume: &dir.volume_path(volume.id),
                bytes: volume.bytes,
                len: *len,
            });
            (done.written, done.bytes) = (done.written + 1, done.bytes + volume.bytes);
            done.parity_bytes += len;
        }
        match end {
            // The volumes that go are those that were decided on: what this run has written is
            // neither worn nor merged.
            Ok(EncodeEnd::Again) => {
                let is_unproven = |content: ContentId| encoding.unproven.contains_key(&content);
                step = first.again(&contents, &volumes, is_unproven);
            }
            end => break end,
        }
    };
    let mut unproven: Vec<&PathError> = encoding.unproven.values().collect();
    unproven.sort_unstable_by_key(|error| error.path());
    unproven
        .iter()
        .for_each(|error| observer(ProtectEvent::Unprotected(error)));
    done.unprotected = unproven.len() as u64;
    let (go, stay) = replaceable(&first, &volumes);
    // After an error, or a signal, nothing goes.
    if encoded.is_ok() {
        for id in go {
            dir.remove(id)?;
            observer(ProtectEvent::Removed {
                volume: &dir.volume_path(id),
            });
            volumes.retain(|volume| volume.id != id);
            done.removed += 1;
        }
        if done.removed > 0 {
            dir.sync()?;
        }
        first
            .held
            .extend(stay.into_iter().map(|id| (id, HeldBack::Damaged)));
        report_held(&first.held, &dir, &volumes, observer, &mut done);
    }
    done.volumes = volumes.len() as u64;
    let lines = lines(&volumes, &contents);
    if lines != kept(&dir, &lines) {
        index::write(&dir, &lines)?;
    }
    encoded.map(|_| done)
}

/// Returns the lines that the index has now, in the order of these.
fn kept(dir: &ParityDir, lines: &[IndexLine]) -> Vec<IndexLine> {
    let mut index: HashMap<u64, IndexLine> = index::read(dir);
    let mut kept: Vec<IndexLine> = lines
        .iter()
        .filter_map(|line| index.remove(&line.volume))
        .collect();
    kept.extend(index.into_values());
    kept
}

/// Reports the worn volumes that stay.
fn report_held(
    held: &[(u64, HeldBack)],
    dir: &ParityDir,
    volumes: &[VolumeState],
    observer: &mut ProtectObserver<'_>,
    done: &mut Protected,
) {
    for &(id, held) in held {
        let volume = volumes.iter().find(|volume| volume.id == id);
        let removed = volume.and_then(|volume| volume.last_removed.as_deref());
        done.held += 1;
        observer(ProtectEvent::Held {
            volume: &dir.volume_path(id),
            why: match held {
                HeldBack::Removed => {
                    "not written again: it holds content that was removed not long ago"
                }
                HeldBack::Damaged => {
                    "not written again: it holds content that is damaged or cannot be read"
                }
            },
            removed: removed.filter(|_| held == HeldBack::Removed),
        });
    }
}

/// Returns the number of workers, and the limits that the caller sets.
fn reading(
    plan: &ProtectPlan,
    contents: &RecordedContents,
    work: &Work<'_>,
) -> Result<Reading, Error> {
    let bytes = plan.wanted.iter().map(|piece| piece.len).sum();
    let job = Job::new(plan.wanted.len() as u64, bytes, contents.memory());
    (work.reading)(job).map_err(Error::usage)
}

/// Returns the bytes of memory for encoding.
///
/// # Errors
/// If the lists leave too little.
fn memory(options: &ProtectOptions<'_>, contents: &RecordedContents) -> Result<u64, Error> {
    let Some(limit) = options.memory else {
        return Ok(MEMORY);
    };
    let lists = contents.memory();
    match limit.saturating_sub(lists) {
        left if left >= LEAST_MEMORY => Ok(left.min(MEMORY)),
        _ => {
            let text = format!(
                "the names and digests of the manifest take {lists} bytes, and encoding {LEAST_MEMORY}: more than the \
                 {limit} that the memory budget leaves"
            );
            Err(Error::usage(text))
        }
    }
}

/// Foresees a run that has no directory yet.
fn foresee(options: &ProtectOptions<'_>, contents: &RecordedContents, capacity: u64) -> Protected {
    let rules = PlanRules {
        capacity,
        now: options.now_ns.div_euclid(SECOND),
        keep_removed: 0,
    };
    let planned = plan(contents, &[], rules, |_| false);
    let done = foreseen(&planned, contents, capacity, Protected::default());
    Protected {
        volumes: done.written,
        ..done
    }
}

fn foreseen(
    plan: &ProtectPlan,
    contents: &RecordedContents,
    capacity: u64,
    done: Protected,
) -> Protected {
    let is_suspect = |content: ContentId| contents.get(content).is_suspect;
    let bytes = plan
        .wanted
        .iter()
        .filter(|piece| !is_suspect(piece.content))
        .map(|piece| piece.len)
        .sum::<u64>();
    Protected {
        bytes,
        written: bytes.div_ceil(capacity),
        removed: plan.replaced.len() as u64,
        unprotected: plan
            .wanted
            .iter()
            .filter(|piece| is_suspect(piece.content))
            .count() as u64,
        ..done
    }
}
