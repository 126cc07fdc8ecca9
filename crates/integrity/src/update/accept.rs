//! `accept`: single entries recorded as they are now, after a person judged that they are right. The
//! lines of all others stay as they are, byte for byte.
//!
//! Two passes over the old manifest, as of an update. The first looks the paths up; then only they
//! and the directories on the way to them are looked at. The second writes the new manifest beside
//! the old one.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_fs::PathError;
use bc_hash::{Totals, hash_in_order};
use bc_manifest::integrity::{Entry, Kind, ROOT, UNSEEN_AT};
use bc_walk::job::{Error, ErrorKind};
use bc_walk::{EntryId, ExactPaths, OwnFile};

use super::locked::LockedManifest;
use super::output::Output;
use crate::absence::{Absence, Unmounted, why_lost};
use crate::change::{Change, Difference};
use crate::compare::pending::ALL_RECORDED;
use crate::entry_ref::EntryRef;
use crate::error::write_failed;
use crate::fields::{CompareMode, CompareRules, Field, Fields};
use crate::input::lines::LineInput;
use crate::input::{ManifestFile, Trust};
use crate::judge::judge;
use crate::options::{RootCheck, Work};
use crate::place::{refuse_root, refuse_unrecorded_root, tree_options};
use crate::sides::{Pair, Receiver, Sides};
use crate::tree::Tree;
use crate::tree::hashing::{hash_options, is_read};
use crate::tree::loader::{EntryLoader, LoadedEntry};
use crate::tree::recording::{Devices, to_entry};

/// Options of accepting entries as they are now.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let photos = dir.path().join("photos");
/// # std::fs::create_dir(&photos)?;
/// # std::fs::write(photos.join("a.jpg"), "picture")?;
/// # let file = dir.path().join("photos.jsonl");
/// use bc_integrity::{AcceptOptions, Class, CreateOptions};
/// use bc_walk::job::Means;
///
/// CreateOptions::new(&photos, bc_digest::Algorithm::Blake3).run_to(&file, &Means::new())?;
/// std::fs::write(photos.join("a.jpg"), "edited by intent")?;
/// let accepted = AcceptOptions::new(&photos, &file, ["a.jpg"]).run(&Means::new())?;
/// assert_eq!(accepted.accepted[0].class, Class::Modified);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AcceptOptions<'a> {
    /// The root directory.
    pub root: &'a OsStr,
    /// Its manifest, which is replaced.
    pub manifest: &'a Path,
    /// Paths of the entries, relative to the root, as a verification reports them.
    pub paths: Vec<Vec<u8>>,
    /// True if everything is looked at and nothing is written.
    pub dry_run: bool,
    /// Treatment of a root that is not the one that the manifest was made of.
    pub root_check: RootCheck,
    /// The time now, in nanoseconds since 1970: recorded as `verified_at`.
    pub now: i64,
    /// Files that are not entries, beside the manifest: those that the caller writes to.
    pub leave_out: &'a [OwnFile],
}

impl<'a> AcceptOptions<'a> {
    /// Accepts the entries at these paths, relative to `root`. The time is the beginning of 1970:
    /// [`run`](AcceptOptions::run) has the present then.
    pub fn new<R, M, P>(
        root: &'a R,
        manifest: &'a M,
        paths: impl IntoIterator<Item = P>,
    ) -> AcceptOptions<'a>
    where
        R: AsRef<Path> + ?Sized,
        M: AsRef<Path> + ?Sized,
        P: AsRef<Path>,
    {
        let bytes = |path: P| path.as_ref().as_os_str().as_bytes().to_vec();
        AcceptOptions {
            root: root.as_ref().as_os_str(),
            manifest: manifest.as_ref(),
            paths: paths.into_iter().map(bytes).collect(),
            dry_run: false,
            root_check: RootCheck::default(),
            now: 0,
            leave_out: &[],
        }
    }
}

bc_fs::setters! {
    AcceptOptions<'a>:
    dry_run: bool,
    root_check: RootCheck,
    now: i64,
    leave_out: &'a [OwnFile],
}

/// Result of accepting entries.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Acceptance {
    /// Entries that were accepted, in order of paths, each with all that changes in its record. The
    /// class is that of a verification that ignores no field.
    pub accepted: Vec<Change>,
    /// Paths that were not, each with the reason, in order of paths.
    pub refused: Vec<PathError>,
    /// Entries of further names (hard links) of accepted files, which keep their records.
    pub other_names: Vec<Vec<u8>>,
    /// True if the manifest was replaced.
    pub is_written: bool,
    /// Files read to their end.
    pub files_read: u64,
    /// Bytes read.
    pub bytes_read: u64,
}

impl Acceptance {
    fn refuse(&mut self, path: &[u8], why: impl Into<String>) {
        let path = OsStr::from_bytes(path);
        self.refused
            .push(PathError::with_reason(path, "accept", None, why));
    }

    fn sort(&mut self) {
        let path = |error: &PathError| error.path().as_os_str().as_bytes().to_vec();
        self.refused.sort_by_key(path);
    }
}

/// Every field, so that all that changes in a record is reported.
const ALL_FIELDS: CompareRules = CompareRules {
    mode: CompareMode::Strict,
    ignore: Fields::NONE,
};

/// Records single entries as they are now and leaves all others as they are. `report` is called with
/// the result before the manifest is replaced, which an error prevents: the old digests are in no
/// file after that.
///
/// # Errors
/// If there is no path; if the manifest cannot be read, is cut short or altered, or cannot be
/// replaced; if another run replaces it; if the root is not there or not the recorded one; if it was
/// cancelled. The manifest is then as it was. A path that cannot be accepted is no error, but
/// [refused](Acceptance::refused).
pub fn accept_reported(
    what: &AcceptOptions<'_>,
    work: &Work<'_>,
    report: &mut dyn FnMut(&Acceptance) -> std::io::Result<()>,
) -> Result<Acceptance, Error> {
    if what.paths.is_empty() {
        return Err(Error::usage("no path to accept"));
    }
    let mut done = Acceptance::default();
    let mut wanted = BTreeSet::new();
    for path in &what.paths {
        match below_root(path) {
            Some(path) => {
                wanted.insert(path);
            }
            None => done.refuse(path, "is not a path relative to the root"),
        }
    }
    // A dry run needs no lock, and removes nothing that a killed run has left.
    let locked = match what.dry_run {
        true => None,
        false => Some(LockedManifest::open(what.manifest, work)?),
    };
    let opened;
    let manifest = match &locked {
        Some(locked) => &locked.file,
        None => {
            opened = ManifestFile::open_to_replace(what.manifest)?.cancelled_by(work.cancel);
            &opened
        }
    };
    // Of a part of a tree its trailer says more.
    let seal = manifest.read_seal()?;
    let header = manifest.header()?;
    let algorithm = manifest.algorithm_of(&header)?;
    let options = tree_options(&header, Trust::Checked)?;
    let recorded = Recorded::find(manifest, wanted, &mut done)?;
    let own: Vec<OwnFile> = manifest.own_file().into_iter().collect();
    let leave_out = [&own[..], what.leave_out].concat();
    let only = ExactPaths::new(recorded.wanted.iter().cloned());
    let tree = Tree::walk_only(what.root, &options, only, &leave_out, work)?;
    refuse_root(&tree, manifest, what.root, RootCheck::Forced)?;
    refuse_unrecorded_root(&tree, &header, what.root, what.root_check)?;
    if recorded.wanted.is_empty() {
        done.sort();
        report(&done).map_err(|error| write_failed(&error))?;
        return Ok(done);
    }

    let ids = recorded.wanted.iter().filter_map(|path| tree.find(path));
    let read: BTreeSet<EntryId> = ids.filter(|id| is_read(&tree, *id)).collect();
    let hash = hash_options(&tree, |id| read.contains(&id), algorithm, work)?;
    let output = match &locked {
        Some(locked) => Output::create(what.manifest, locked, &header)?,
        None => Output::nothing(),
    };
    let mut lines = manifest.lines()?;
    let mut line = Vec::new();
    // The header's.
    next_line(manifest, &mut lines, &mut line)?;
    let mut pass = AcceptPass {
        manifest,
        now: what.now,
        recorded,
        output,
        lines,
        line,
        done,
    };
    let unmounted = Unmounted::new(RootCheck::Careful);
    let mut sides = Sides::of_tree(manifest.again(Trust::Checked)?, &tree, unmounted);
    let mut loader = EntryLoader::new(&tree, options.xattrs, manifest.directory(), work);
    let totals = hash_in_order(
        &tree.listing,
        |id| read.contains(&id),
        &hash,
        work.cancel,
        work.progress,
        |range, window| loader.each(range, Some(window), |new| sides.up_to(new, &mut pass)),
    )?;
    sides.rest(&mut pass)?;
    let AcceptPass {
        mut done, output, ..
    } = pass;
    done.sort();
    let Totals { read, .. } = totals;
    (done.files_read, done.bytes_read) = (read.files, read.bytes);
    let output = match done.accepted.is_empty() {
        true => None,
        false => Some(output.end_with(&seal)?),
    };
    done.is_written = output.is_some() && !what.dry_run;
    report(&done).map_err(|error| write_failed(&error))?;
    output.map_or(Ok(None), |output| output.commit())?;
    Ok(done)
}

/// Returns a path as manifests have it; `None` if it is absolute, leads out of the root, or is empty.
fn below_root(path: &[u8]) -> Option<Vec<u8>> {
    if path.is_empty() || path.starts_with(b"/") {
        return None;
    }
    let names = path.split(|byte| *byte == b'/');
    let names: Vec<&[u8]> = names
        .filter(|name| !name.is_empty() && *name != b".")
        .collect();
    match &names[..] {
        [] => Some(ROOT.to_vec()),
        names if names.contains(&&b".."[..]) => None,
        names => Some(names.join(&b'/')),
    }
}

/// A file by its numbers in the manifest.
type RecordedInode = (Option<u32>, u64);

fn inode_of_several_names(entry: &Entry) -> Option<RecordedInode> {
    let meta = entry.meta.as_ref().filter(|meta| meta.nlink > 1)?;
    (entry.kind == Kind::File).then_some((entry.dev, meta.ino))
}

/// Results of the first pass.
struct Recorded {
    /// The paths to accept that the manifest has, none of them a directory.
    wanted: BTreeSet<Vec<u8>>,
    /// Those of them that have more names.
    linked: HashSet<RecordedInode>,
    /// The latest run.
    last_run: u32,
}

impl Recorded {
    /// Looks the paths up, and refuses those that are not there and directories.
    fn find(
        manifest: &ManifestFile,
        mut missing: BTreeSet<Vec<u8>>,
        done: &mut Acceptance,
    ) -> Result<Recorded, Error> {
        let mut recorded = Recorded {
            wanted: BTreeSet::new(),
            linked: HashSet::new(),
            last_run: 0,
        };
        let mut old = manifest.again(Trust::Checked)?;
        while let Some(entry) = old.take()? {
            recorded.last_run = recorded.last_run.max(entry.tried_run.unwrap_or(0));
            if !missing.remove(&entry.path) {
                continue;
            }
            if entry.kind == Kind::Dir {
                done.refuse(&entry.path, DIRECTORY);
                continue;
            }
            recorded.linked.extend(inode_of_several_names(entry));
            recorded.wanted.insert(entry.path.clone());
        }
        for path in missing {
            done.refuse(&path, "is not in the manifest");
        }
        Ok(recorded)
    }
}

const DIRECTORY: &str = "is a directory; only single files and links are accepted";

/// State of the second pass.
struct AcceptPass<'a> {
    manifest: &'a ManifestFile,
    now: i64,
    recorded: Recorded,
    output: Output,
    /// Lines of the old manifest, beside the entries made of them.
    lines: LineInput,
    line: Vec<u8>,
    done: Acceptance,
}

/// Reads the next line, without its end.
fn next_line(
    manifest: &ManifestFile,
    lines: &mut LineInput,
    line: &mut Vec<u8>,
) -> Result<(), Error> {
    line.clear();
    // It was read before, so that it is no longer than lines may be.
    let read = lines.read_until(b'\n', line);
    read.map_err(|error| manifest.unreadable(&error))?;
    match line.pop() {
        Some(b'\n') => Ok(()),
        _ => Err(Error::at(
            ErrorKind::Manifest,
            Path::new(OsStr::from_bytes(manifest.name())),
            "changed while it was read",
        )),
    }
}

impl AcceptPass<'_> {
    /// Accepts an entry that is in the tree; returns its new record, or refuses it.
    fn accept(
        &mut self,
        entry: &Entry,
        old: &EntryRef<'_>,
        new: &LoadedEntry<'_>,
    ) -> Option<Entry> {
        if let Some(error) = new.view.error {
            let path = OsStr::from_bytes(&entry.path);
            let failed = PathError::with_reason(path, &*error.op, error.errno, &*error.message);
            self.done.refused.push(failed);
            return None;
        }
        if new.view.kind == Kind::Dir {
            self.done.refuse(&entry.path, DIRECTORY);
            return None;
        }
        let mut fresh = to_entry(new, &mut Devices::default());
        // Its device has the number that it has in the other entries.
        fresh.dev = entry.dev;
        fresh.verified_at = fresh.digest.map(|_| self.now);
        fresh.tried_run =
            (fresh.kind == Kind::File).then(|| self.recorded.last_run.saturating_add(1));
        fresh.extra.clone_from(&entry.extra);
        fresh.extra.remove(UNSEEN_AT);
        let class = judge(old, &new.view, ALL_FIELDS);
        let mut change = Change::new(class, &entry.path, new.view.kind);
        // Fields that one side does not have as well: they come or go.
        let fields = [Field::Kind].into_iter().chain(ALL_RECORDED.iter());
        let changed = fields.filter_map(|field| {
            let (old, new) = (old.value(field), new.view.value(field));
            (old != new).then_some(Difference { field, old, new })
        });
        change.differences = changed.collect();
        self.done.accepted.push(change);
        Some(fresh)
    }

    /// Takes the next entry of the manifest, with its new record if it has one.
    fn put(&mut self, entry: &Entry, fresh: Option<&Entry>) -> Result<(), Error> {
        next_line(self.manifest, &mut self.lines, &mut self.line)?;
        match fresh {
            Some(fresh) => self.output.put(fresh),
            None => self.output.keep(entry, &self.line),
        }
    }

    /// True if the entry is one to accept. Other names of those are noted.
    fn is_wanted(&mut self, entry: &Entry) -> bool {
        if self.recorded.wanted.contains(&entry.path) {
            return true;
        }
        let inode = inode_of_several_names(entry);
        if inode.is_some_and(|inode| self.recorded.linked.contains(&inode)) {
            self.done.other_names.push(entry.path.clone());
        }
        false
    }
}

impl Receiver for AcceptPass<'_> {
    fn pair(&mut self, pair: Pair<'_>) -> Result<ControlFlow<()>, Error> {
        match pair {
            Pair::Both { entry, old, new } => {
                let fresh = match self.is_wanted(entry) {
                    true => self.accept(entry, &old, new),
                    false => None,
                };
                self.put(entry, fresh.as_ref())?;
            }
            Pair::Gone(entry, why) => {
                if self.is_wanted(entry) {
                    let reason = match why {
                        Absence::Removed | Absence::LeftOut => "is not in the tree".to_owned(),
                        Absence::Unread(above) => above.reason(),
                        Absence::Unmounted(lost, _) => why_lost(entry, lost)
                            .unwrap_or_else(|| "is on a disk that is not mounted".to_owned()),
                    };
                    self.done.refuse(&entry.path, reason);
                }
                self.put(entry, None)?;
            }
            Pair::Added { .. } => {}
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_as_manifests_have_them() {
        for (given, path) in [
            (&b"a"[..], Some(&b"a"[..])),
            (b"./a//b/", Some(b"a/b")),
            (b"a/./b", Some(b"a/b")),
            (b"\xff/b", Some(b"\xff/b")),
            (b"..a/b..", Some(b"..a/b..")),
            (b".", Some(b".")),
            (b"./", Some(b".")),
            (b"", None),
            (b"/a", None),
            (b"a/../b", None),
            (b"..", None),
        ] {
            assert_eq!(below_root(given).as_deref(), path, "{given:?}");
        }
    }
}
