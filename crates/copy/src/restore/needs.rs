//! Paths that are to be repaired: verify's findings with their records; and which of them are names
//! of one file, to be repaired together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use bc_digest::Digest;
use bc_fs::PathError;
use bc_integrity::change::{Change, Class, Value};
use bc_integrity::fields::Field;
use bc_integrity::{ManifestFile, RootCheck, is_second};
use bc_manifest::integrity::{Entry, Kind, Meta, ROOT};
use bc_walk::{FileStat, Identity};
use rustix::io::Errno;

use super::options::Loss;
use crate::stage::is_named_so;

/// A path that is to be repaired.
pub(super) struct Need {
    /// Path below the root.
    pub(super) path: Vec<u8>,
    /// Recorded path.
    pub(super) recorded_at: Vec<u8>,
    pub(super) loss: Loss,
    pub(super) seen: SeenFile,
    /// Reason for which it is left, where it may be a file that is recorded nowhere.
    pub(super) held_back: Option<&'static str>,
    /// Its record in the manifest.
    pub(super) entry: Entry,
}

impl Need {
    /// Returns the recorded digest.
    pub(super) fn digest(&self) -> Option<Digest> {
        self.entry.digest.filter(|_| self.entry.kind == Kind::File)
    }

    /// Returns the recorded identity of the file, if it had several names.
    pub(super) fn recorded_inode(&self) -> Option<RecordedInode> {
        inode_of(&self.entry)
    }
}

/// The state in which verify found the file that has the name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenFile {
    ino: Option<u64>,
    size: Option<u64>,
    mtime_ns: Option<i64>,
    ctime_ns: Option<i64>,
    /// Digest of its content, unless the medium could not give it.
    pub(super) digest: Option<Digest>,
    unread: bool,
}

impl SeenFile {
    /// Takes the current state from a change: only fields that differ from the record are in it.
    fn of(change: &Change) -> SeenFile {
        let mut seen = SeenFile {
            unread: change.class == Class::Unreadable,
            ..SeenFile::default()
        };
        for difference in &change.differences {
            match (difference.field, &difference.new) {
                (Field::Ino, Value::Number(ino)) => seen.ino = Some(*ino),
                (Field::Size, Value::Number(size)) => seen.size = Some(*size),
                (Field::Mtime, Value::Time(time)) => seen.mtime_ns = Some(*time),
                (Field::Ctime, Value::Time(time)) => seen.ctime_ns = Some(*time),
                (Field::Digest, Value::Digest(bytes)) => seen.digest = Digest::from_slice(bytes),
                _ => {}
            }
        }
        seen
    }

    fn complete(&mut self, meta: &Meta) {
        self.size.get_or_insert(meta.size);
        self.mtime_ns.get_or_insert(meta.mtime_ns);
        // No other field was compared of a file that could not be read.
        if !self.unread {
            self.ino.get_or_insert(meta.ino);
            self.ctime_ns.get_or_insert(meta.ctime_ns);
        }
    }

    /// True if a file is in that state, as far as its stamp shows.
    pub(super) fn fits(&self, now: &FileStat) -> bool {
        self.fits_but_for_ctime(now) && same(self.ctime_ns, now.stamp.ctime_ns)
    }

    /// Like [`fits`](Self::fits), for a file that this run has given names to, or taken names from:
    /// its content is to be compared.
    pub(super) fn fits_but_for_ctime(&self, now: &FileStat) -> bool {
        same(self.ino, now.id.ino)
            && same(self.size, now.stamp.size)
            && same(self.mtime_ns, now.stamp.mtime_ns)
    }

    /// True if the stamp says nothing, since none is recorded.
    pub(super) fn has_no_stamp(&self) -> bool {
        self.mtime_ns.is_none()
    }
}

fn same<T: PartialEq>(seen: Option<T>, now: T) -> bool {
    seen.is_none_or(|seen| seen == now)
}

/// Directories that were renamed, by their recorded paths: each with its path now.
#[derive(Clone, Default)]
pub(super) struct MovedDirs(HashMap<Vec<u8>, Vec<u8>>);

impl MovedDirs {
    /// Returns the path that a recorded one has by now, where its directory was renamed, or it is
    /// one that was.
    pub(super) fn now(&self, path: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        let dirs = std::iter::once(path).chain(above(path).collect::<Vec<_>>().into_iter().rev());
        let found = dirs.filter_map(|dir| Some((dir, self.0.get(dir)?))).next();
        found.map(|(dir, to)| [to, &path[dir.len()..]].concat())
    }
}

/// Files and directories that were renamed.
#[derive(Default)]
pub(super) struct RenamedPaths {
    files: HashMap<Vec<u8>, Vec<u8>>,
    dirs: MovedDirs,
}

impl RenamedPaths {
    /// Returns the path that a recorded file has now, if it was renamed.
    pub(super) fn now(&self, path: &[u8]) -> Option<Vec<u8>> {
        let file = self.files.get(path).cloned();
        file.or_else(|| self.dirs.now(path))
    }
}

/// Collects verify's changes, as far as they are asked for.
pub(super) struct Collector<'a> {
    only: &'a [Loss],
    /// True if files that may be damaged, and may be new ones, are replaced.
    forced: bool,
    found: Vec<(Change, Loss)>,
    moved: Vec<Vec<u8>>,
    moved_dirs: MovedDirs,
    /// Files that were moved, with their directories aside.
    moved_to: HashMap<Vec<u8>, Vec<u8>>,
    /// Files that were moved and repaired: verify takes the damaged ones, which are kept, for them.
    kept: Vec<Change>,
    /// Contents that were added, by the first bytes of their digests.
    added: HashSet<u64>,
    /// These contents, and those that have taken the place of others.
    came: HashSet<u64>,
    /// Stages of interrupted runs.
    pub(super) left: Vec<Vec<u8>>,
    /// Paths that could not be looked at, with the reason: each once, however much lies below it.
    pub(super) unread: BTreeMap<Vec<u8>, PathError>,
    /// Other differences.
    pub(super) others: u64,
    /// Paths whose metadata alone differs, in what a restore from a backup would bring back.
    pub(super) metadata: u64,
    /// Recorded paths of anything but directories that are gone.
    leaves_gone: u64,
}

impl<'a> Collector<'a> {
    pub(super) fn new(only: &'a [Loss], check: RootCheck) -> Collector<'a> {
        Collector {
            only,
            forced: check == RootCheck::Forced,
            found: Vec::new(),
            moved: Vec::new(),
            moved_dirs: MovedDirs::default(),
            moved_to: HashMap::new(),
            kept: Vec::new(),
            added: HashSet::new(),
            came: HashSet::new(),
            left: Vec::new(),
            unread: BTreeMap::new(),
            others: 0,
            metadata: 0,
            leaves_gone: 0,
        }
    }

    /// True if files are recorded, and none of them is there any more, under whatever name.
    /// Directories do not count: other trees have them by the same names.
    pub(super) fn lost_all(&self, manifest: &ManifestFile) -> Result<bool, bc_walk::job::Error> {
        if self.leaves_gone == 0 {
            return Ok(false);
        }
        let mut leaves = 0;
        for entry in manifest.entries()? {
            leaves += u64::from(entry?.kind != Kind::Dir);
            if leaves > self.leaves_gone {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes one change.
    pub(super) fn take(&mut self, change: &Change) {
        // A leftover of an interrupted run is no place where a file has gone.
        let left = is_named_so(change.now_at());
        self.left.extend(left.then(|| change.now_at().to_vec()));
        if left && change.class == Class::Moved {
            let mut gone = change.clone();
            (gone.class, gone.to) = (Class::Removed, None);
            gone.differences.clear();
            return self.take(&gone);
        }
        let is_gone = change.class == Class::Removed && change.kind != Kind::Dir;
        self.leaves_gone += u64::from(is_gone);
        if change.class == Class::Moved || change.to.is_some() {
            self.moved.push(change.path.clone());
        }
        if let (Some(_), Some(to)) = (change.entries, &change.to) {
            let moved = &mut self.moved_dirs.0;
            moved.insert(change.path.clone(), to.clone());
        }
        if let (None, Some(to)) = (change.entries, &change.to) {
            self.moved_to.insert(change.path.clone(), to.clone());
        }
        let seen = SeenFile::of(change).digest;
        if change.class == Class::Added {
            self.added.extend(seen.map(beginning));
        }
        if matches!(
            change.class,
            Class::Added | Class::Modified | Class::Replaced
        ) {
            self.came.extend(seen.map(beginning));
        }
        if is_elsewhere(change) && (left || is_second(change.now_at(), seen)) {
            self.kept.push(change.clone());
            self.others += 1;
            return;
        }
        if change.unproven && change.to.is_some() && !self.forced {
            // The file there stays, and the recorded one comes back beside it.
            let mut gone = change.clone();
            (gone.class, gone.to, gone.unproven) = (Class::Removed, None, false);
            gone.differences.clear();
            self.take(&gone);
        }
        let loss = match change.class {
            Class::Damaged => Some(Loss::Damaged),
            Class::Modified if change.unproven => Some(Loss::Damaged),
            Class::Unreadable if is_lost_by_medium(change) => Some(Loss::Damaged),
            Class::Unreadable => {
                self.note_unread(change);
                None
            }
            Class::Removed => Some(Loss::Removed),
            Class::Modified if change.kind == Kind::File => Some(Loss::Modified),
            // What was there is gone, whatever has its name.
            Class::Replaced => Some(Loss::Removed),
            _ => None,
        };
        match loss.filter(|loss| self.only.contains(loss)) {
            Some(loss) => self.found.push((change.clone(), loss)),
            None if matches!(change.class, Class::Ok | Class::Meta) => {
                // What was lost in a directory has changed its times, and on some file systems its size;
                // what was lost of a file's names is counted by itself.
                let counts = |field: Field| {
                    let changes_with_entries = matches!(field, Field::Mtime | Field::Size);
                    field.is_restored()
                        && field != Field::Nlink
                        && !(change.kind == Kind::Dir && changes_with_entries)
                };
                let mut fields = change.differences.iter().map(|one| one.field);
                self.metadata += u64::from(fields.any(counts));
            }
            // A directory that was renamed, and all that moved along.
            None => self.others += 1 + change.entries.unwrap_or(0),
        }
    }

    fn note_unread(&mut self, change: &Change) {
        // Content that only the record lacks can be read.
        let failed = change.failed.as_ref().filter(|_| !change.readable_now);
        if let Some(failed) = failed {
            let path = failed.path().as_os_str().as_encoded_bytes();
            if !self.unread.contains_key(path) {
                self.unread.insert(path.to_vec(), failed.clone());
            }
        }
    }

    /// Adds files that were repaired under another name, and are gone there too, as removed.
    pub(super) fn add_gone(&mut self) {
        for mut change in std::mem::take(&mut self.kept) {
            let recorded = recorded_digest(&change).and_then(Digest::from_slice);
            let is_there = recorded.is_none_or(|digest| self.added.contains(&beginning(digest)));
            if is_there || change.to.is_none() || !self.only.contains(&Loss::Removed) {
                continue;
            }
            (change.class, change.to) = (Class::Removed, None);
            change.differences.clear();
            self.found.push((change, Loss::Removed));
            self.others -= 1;
        }
    }

    /// Returns the paths that renamed files and directories have now.
    pub(super) fn renamed(&self) -> RenamedPaths {
        RenamedPaths {
            files: self.moved_to.clone(),
            dirs: self.moved_dirs.clone(),
        }
    }

    /// Returns the directories above files that were moved.
    fn left_dirs(&self) -> HashSet<Vec<u8>> {
        let dirs = self.moved.iter().flat_map(|path| above(path));
        dirs.map(<[u8]>::to_vec).collect()
    }

    /// Returns the changes without directories that went away with their content: they are not made
    /// for nothing.
    fn without_moved_dirs(
        self,
        left_dirs: &HashSet<Vec<u8>>,
        moved_dirs: &MovedDirs,
    ) -> Vec<(Change, Loss)> {
        let mut needed = HashSet::new();
        for (change, _) in self.found.iter().filter(|found| found.0.kind != Kind::Dir) {
            let now = moved_dirs.now(change.now_at());
            let now = now.as_deref().unwrap_or(change.now_at());
            needed.extend(above(now).map(<[u8]>::to_vec));
        }
        let is_made = |change: &Change| {
            change.kind != Kind::Dir
                || !left_dirs.contains(&change.path)
                || needed.contains(&change.path)
        };
        let mut found = self.found;
        found.retain(|(change, _)| is_made(change));
        found
    }
}

/// Returns true for errors by which a medium, or its checksums, report that the content is lost.
fn is_lost_by_medium(change: &Change) -> bool {
    const LOST: [Errno; 4] = [Errno::IO, Errno::UCLEAN, Errno::BADMSG, Errno::NODATA];
    change.failed.as_ref().is_some_and(|failed| {
        let errno = failed.raw_os_error().map(Errno::from_raw_os_error);
        failed.path().as_os_str().as_encoded_bytes() == change.path
            && failed.operation() == "read"
            && errno.is_some_and(|errno| LOST.contains(&errno))
    })
}

/// Returns the directories above a path, without the root.
pub(super) fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &path[..at])
}

/// Identity of a recorded file that had several names.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub(super) struct RecordedInode {
    /// The manifest's number of the device; `None` for that of the root.
    dev: Option<u32>,
    ino: u64,
    digest: Digest,
}

fn inode_of(entry: &Entry) -> Option<RecordedInode> {
    let meta = entry
        .meta
        .filter(|meta| meta.nlink > 1 && entry.kind == Kind::File)?;
    // Earlier versions wrote 0 for the root's.
    let dev = entry.dev.filter(|dev| *dev != 0);
    Some(RecordedInode {
        dev,
        ino: meta.ino,
        digest: entry.digest?,
    })
}

/// Further records of the manifest, beside those of the paths themselves.
#[derive(Default)]
pub(super) struct Records {
    /// The directories above them.
    pub(super) dirs: HashMap<Vec<u8>, Entry>,
    /// Other names of the files that had several.
    pub(super) siblings: HashMap<RecordedInode, Vec<Vec<u8>>>,
    /// Paths of which something else has the name, and whose content has another one.
    pub(super) elsewhere: u64,
}

const DOUBTFUL: &str =
    "possibly damaged, possibly a new file with the recorded one's inode number: left as it is";
const ANOTHERS: &str = "looks damaged, and holds what is recorded of another file: left as it is";
const TAKEN: &str = "something of another kind has its name, and is left as it is";
const TAKEN_THERE: &str =
    "its directory was renamed, and something else has its name there: left as it is";
const NOT_RECORDED: &str = "the manifest says something else of it by now: left as it is";

/// Joins the findings with their records. The manifest behind them was found sound to its end.
/// `is_there` is asked whether something has a path now.
pub(super) fn describe(
    manifest: &ManifestFile,
    mut collected: Collector<'_>,
    is_there: impl Fn(&[u8]) -> bool,
) -> Result<(Vec<Need>, Records), bc_walk::job::Error> {
    let restores_removed = collected.only.contains(&Loss::Removed);
    let forced = collected.forced;
    let went: HashSet<Vec<u8>> = collected.moved.iter().cloned().collect();
    let contents = collected.came.clone();
    let moved_dirs = std::mem::take(&mut collected.moved_dirs);
    let left_dirs = collected.left_dirs();
    let found = collected.without_moved_dirs(&left_dirs, &moved_dirs);
    let mut records = Records::default();
    if found.is_empty() {
        return Ok((Vec::new(), records));
    }
    // What is gone of a directory that was renamed belongs where that is now.
    let in_moved: Vec<Option<Vec<u8>>> = found
        .iter()
        .map(|(change, _)| match change.class {
            Class::Removed => moved_dirs.now(&change.path),
            _ => None,
        })
        .collect();
    let mut by_path: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let mut by_name: HashMap<&[u8], usize> = HashMap::new();
    let mut dirs: HashSet<&[u8]> = HashSet::from([ROOT]);
    for path in in_moved.iter().flatten() {
        dirs.extend(above(path).chain([&path[..]]));
    }
    for (nth, (change, _)) in found.iter().enumerate() {
        by_path.entry(change.recorded_at()).or_default().push(nth);
        if change.was_at.is_some() {
            by_name.insert(&change.path, nth);
        }
        dirs.extend(above(change.now_at()).chain(above(&change.path)));
        // It is made with nothing below it.
        dirs.extend((change.kind == Kind::Dir).then_some(change.now_at()));
    }
    let elsewhere = found.iter().filter(|(change, _)| is_elsewhere(change));
    let doubted: HashSet<Digest> = elsewhere
        .filter_map(|(change, _)| SeenFile::of(change).digest)
        .collect();
    // Records of files that are damaged under a name which another one had.
    let damaged_elsewhere: HashSet<&[u8]> = found
        .iter()
        .filter_map(|(change, _)| change.was_at.as_deref())
        .collect();
    let mut good = HashSet::new();
    let mut entries: Vec<Option<Entry>> = vec![None; found.len()];
    let mut own: HashMap<usize, Entry> = HashMap::new();
    for entry in manifest.entries()? {
        let entry = entry?;
        for nth in by_path.get(&entry.path[..]).into_iter().flatten() {
            entries[*nth] = Some(entry.clone());
        }
        if let Some(nth) = by_name.get(&entry.path[..]) {
            own.insert(*nth, entry.clone());
        }
        if entry.kind == Kind::Dir {
            let now = moved_dirs.now(&entry.path);
            let now = now.as_ref().unwrap_or(&entry.path);
            if dirs.contains(&now[..]) {
                records.dirs.insert(now.clone(), entry.clone());
            }
        }
        good.extend(entry.digest.filter(|digest| doubted.contains(digest)));
    }
    // What a name had is not what it is to have where that went away under another one.
    let is_its_own = |entry: &Entry| {
        let digest = entry.digest.filter(|_| entry.kind == Kind::File);
        let is_there = |digest| contents.contains(&beginning(digest));
        digest.is_some_and(|digest| !is_there(digest)) && !went.contains(&entry.path)
    };
    let mut came = came(&found, &good);
    let mut needs = Vec::with_capacity(found.len());
    for (nth, ((change, loss), entry)) in found.iter().zip(entries).enumerate() {
        // All that verify saw is there, unless another process writes to the manifest meanwhile.
        let Some(entry) = entry else {
            continue;
        };
        let own = own.remove(&nth);
        let seen = seen_of(change, &entry, own.as_ref());
        let mut need = Need {
            path: change.now_at().to_vec(),
            recorded_at: change.recorded_at().to_vec(),
            loss: *loss,
            seen,
            held_back: (change.unproven && !forced).then_some(DOUBTFUL),
            entry,
        };
        if let Some(own) = own.filter(is_its_own) {
            need.recorded_at.clone_from(&change.path);
            need.entry = own;
            needs.push(need);
            continue;
        }
        if !is_same(change, &need.entry) {
            need.held_back = Some(NOT_RECORDED);
        }
        if change.class == Class::Replaced {
            let digest = need.digest();
            if digest.is_some_and(|digest| contents.contains(&beginning(digest)))
                || need.entry.kind == Kind::Dir && left_dirs.contains(&need.path)
                || damaged_elsewhere.contains(&need.path[..])
            {
                records.elsewhere += 1;
                continue;
            }
            need.held_back = Some(TAKEN);
        }
        let came_back = need.digest().and_then(|digest| came.get_mut(&digest));
        if let Some(names @ 1..) = came_back.filter(|_| change.class == Class::Removed) {
            *names -= 1;
            continue;
        }
        match &in_moved[nth] {
            Some(now) if is_there(now) => need.held_back = Some(TAKEN_THERE),
            Some(now) => need.path.clone_from(now),
            None => {}
        }
        // With a number that was given to another file, this looks like the previous owner of the
        // number.
        if is_elsewhere(change) && seen.digest.is_some_and(|digest| good.contains(&digest)) {
            if change.to.is_some() && restores_removed {
                need.path.clone_from(&change.path);
                need.loss = Loss::Removed;
            } else {
                need.held_back = Some(ANOTHERS);
            }
        }
        needs.push(need);
    }
    // A file may be looked for under another name than the one that verify has reported it by.
    needs.sort_by(|a, b| a.path.cmp(&b.path));
    let inodes: HashSet<RecordedInode> = needs.iter().filter_map(Need::recorded_inode).collect();
    if !inodes.is_empty() {
        let lost: HashSet<&[u8]> = needs.iter().map(|need| &need.recorded_at[..]).collect();
        for entry in manifest.entries()? {
            let entry = entry?;
            let inode = inode_of(&entry).filter(|inode| inodes.contains(inode));
            if let Some(inode) = inode.filter(|_| !lost.contains(&entry.path[..])) {
                let names = records.siblings.entry(inode).or_default();
                names.push(moved_dirs.now(&entry.path).unwrap_or(entry.path));
            }
        }
    }
    Ok((needs, records))
}

/// The state in which verify found it. What does not differ is as in the record that the change is
/// about: of the file that is expected there, or of what the name had.
fn seen_of(change: &Change, entry: &Entry, own: Option<&Entry>) -> SeenFile {
    let mut seen = SeenFile::of(change);
    let about = match own {
        // It cannot be told which; the content can.
        Some(own) if own.digest == entry.digest => None,
        Some(own) if !is_same(change, entry) => Some(own),
        // A name that is recorded nowhere, and was compared with nothing: all that is known is that
        // its content was noted as damage of this file.
        None if change.was_at.is_some() && recorded_digest(change).is_none() => {
            seen.digest = seen.digest.or(entry.damaged_digest);
            None
        }
        _ => Some(entry),
    };
    if let Some(meta) = about.and_then(|entry| entry.meta.as_ref()) {
        seen.complete(meta);
    }
    seen
}

/// Returns contents of files that were moved, and are taken for other ones that had the same
/// number: each with the number of its names, whose recorded ones are taken for gone.
fn came(found: &[(Change, Loss)], good: &HashSet<Digest>) -> HashMap<Digest, usize> {
    let mut names = HashMap::new();
    let moved = found
        .iter()
        .filter(|(change, _)| is_elsewhere(change) && change.to.is_some());
    let contents = moved.filter_map(|(change, _)| SeenFile::of(change).digest);
    for digest in contents.filter(|digest| good.contains(digest)) {
        *names.entry(digest).or_default() += 1;
    }
    names
}

/// True if a file is taken for damaged that is recorded under another name.
fn is_elsewhere(change: &Change) -> bool {
    change.class == Class::Damaged && (change.to.is_some() || change.was_at.is_some())
}

/// True if an entry is the one that a change is about.
fn is_same(change: &Change, entry: &Entry) -> bool {
    let expected = recorded_digest(change);
    let recorded = entry.digest.as_ref().map(Digest::as_bytes);
    expected.is_none() || expected == recorded
}

/// Returns the digest that a change has on the old side, where it differs.
fn recorded_digest(change: &Change) -> Option<&[u8]> {
    let mut differences = change.differences.iter();
    differences.find_map(|difference| match (difference.field, &difference.old) {
        (Field::Digest, Value::Digest(bytes)) => Some(&bytes[..]),
        _ => None,
    })
}

fn beginning(digest: Digest) -> u64 {
    let bytes = digest.as_bytes();
    let mut first = [0; 8];
    let count = bytes.len().min(8);
    first[..count].copy_from_slice(&bytes[..count]);
    u64::from_le_bytes(first)
}

/// Names of one file, by the numbers of the needs.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct NameGroup {
    pub(super) needs: Vec<usize>,
}

/// Evidence that names are one file.
#[derive(Eq, Hash, PartialEq)]
enum SameFileKey {
    /// They had one inode when they were recorded.
    Recorded(RecordedInode),
    /// They have one inode now.
    Now(Identity, Digest),
}

/// Puts names together that are one file now or, if the record is relied on for that, were one.
pub(super) fn groups(
    needs: &[Need],
    trusts: bool,
    now: impl Fn(&Need) -> Option<Identity>,
) -> Vec<NameGroup> {
    let keys = needs.iter().enumerate().filter_map(|(nth, need)| {
        let digest = need.digest()?;
        let recorded = need
            .recorded_inode()
            .filter(|_| trusts)
            .map(SameFileKey::Recorded);
        let now = now(need).map(|id| SameFileKey::Now(id, digest));
        Some((nth, [recorded, now]))
    });
    let joined = join(keys.map(|(nth, keys)| (nth, keys.into_iter().flatten())));
    joined
        .into_iter()
        .map(|needs| NameGroup { needs })
        .collect()
}

/// Joins numbers that share a key, directly or by others, in the order of the first of each.
fn join<K: Eq + Hash>(
    all: impl Iterator<Item = (usize, impl Iterator<Item = K>)>,
) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut of_key: HashMap<K, usize> = HashMap::new();
    // Where the members of a group went that was found to be another one.
    let mut went: Vec<usize> = Vec::new();
    let last = |went: &[usize], mut group: usize| {
        while went[group] != group {
            group = went[group];
        }
        group
    };
    for (number, keys) in all {
        let mut group = groups.len();
        groups.push(vec![number]);
        went.push(group);
        for key in keys {
            let known = *of_key.entry(key).or_insert(group);
            let known = last(&went, known);
            if known == group {
                continue;
            }
            let (into, from) = (known.min(group), known.max(group));
            let members = std::mem::take(&mut groups[from]);
            groups[into].extend(members);
            went[from] = into;
            group = into;
        }
    }
    groups.retain(|group| !group.is_empty());
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn keys_join_directly_and_by_others() {
        let all = [
            vec!["a"],
            vec!["b"],
            vec![],
            vec!["a", "c"],
            vec!["c", "b"],
            vec![],
        ];
        let joined = join(all.into_iter().map(|keys| keys.into_iter()).enumerate());
        assert_eq!(joined, [vec![0, 1, 3, 4], vec![2], vec![5]]);
    }
}
