//! Parts of a tree: the manifest of each as a stream of entries, which are checked to be of that
//! part; all of them, with checks that they belong together, and that each knows its directories.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bc_integrity::{LineInput, ManifestFile, Trust};
use bc_manifest::Value;
use bc_manifest::integrity::{
    Entry, Header, Kind, ROOT, Reader, ShardHeader, ShardTrailer, Trailer, path_order,
};
use bc_pool::Cancel;
use bc_walk::job::{Error, ErrorKind};
use bc_walk::{DirectorySet, Shard};

use super::{MergeOptions, stop_if};

/// One input and its current entry.
pub(super) struct Part<'a> {
    manifest: &'a ManifestFile,
    shard: Shard,
    lines: Reader<LineInput>,
    entry: Entry,
    /// Directory of the entry before, which is not checked again.
    directory: Option<Vec<u8>>,
}

impl<'a> Part<'a> {
    /// Opens a manifest whose trailer was found right.
    pub(super) fn open(manifest: &'a ManifestFile) -> Result<Part<'a>, Error> {
        let shard = part_of(manifest, &manifest.header()?)?.ok_or_else(|| not_a_part(manifest))?;
        Ok(Part {
            manifest,
            shard,
            lines: manifest.reader(Trust::Checked)?,
            entry: Entry::new(Vec::new(), Kind::File),
            directory: None,
        })
    }

    /// Advances to the next entry; returns `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool, Error> {
        let read = self.lines.read_into(&mut self.entry);
        if !read.map_err(|error| self.manifest.refused(&error))? {
            return Ok(false);
        }
        let path = &self.entry.path;
        let directory = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => &path[..slash],
            None => ROOT,
        };
        if self.directory.as_deref() == Some(directory) {
            return Ok(true);
        }
        if !self.shard.has_directory(directory) {
            let path = bc_fs::escape(path);
            let text = format!("'{path}' does not belong to part {}", self.shard);
            return Err(self.manifest.bad(text));
        }
        let known = self.directory.get_or_insert_default();
        known.clear();
        known.extend_from_slice(directory);
        Ok(true)
    }

    /// Returns the path of the current entry.
    pub(super) fn path(&self) -> &[u8] {
        &self.entry.path
    }

    /// Returns the current entry.
    pub(super) fn entry(&mut self) -> &mut Entry {
        &mut self.entry
    }

    /// Returns the counts of the trailer, at the end.
    pub(super) fn trailer(&self) -> Trailer {
        *self.lines.counts()
    }
}

pub(super) fn not_a_part(manifest: &ManifestFile) -> Error {
    manifest.bad("is of a whole tree: only those of its shards can be put together")
}

/// Reads the data of a part at the end of its manifest.
pub(super) fn end_of(manifest: &ManifestFile) -> Result<ShardTrailer, Error> {
    let fields = manifest.read_seal()?;
    ShardTrailer::of_fields(&fields)
        .ok_or_else(|| manifest.bad("its trailer does not say which directories it knows"))
}

/// Returns the part of a tree that a manifest describes, if it is not all of it.
pub(super) fn part_of(manifest: &ManifestFile, header: &Header) -> Result<Option<Shard>, Error> {
    let part =
        ShardHeader::of_header(header).map_err(|why| manifest.bad(format!("is of {why}")))?;
    let Some(part) = part else {
        return Ok(None);
    };
    match Shard::new(part.index, part.of) {
        Some(shard) => Ok(Some(shard)),
        None => Err(manifest.bad(format!(
            "is of one of {} parts, which are too many",
            part.of
        ))),
    }
}

/// Numbers of missing parts that a message lists.
const NAMED: usize = 10;

/// The inputs by the number of their part, from 1. A header may claim any number of parts: only
/// existing inputs take memory.
pub(super) struct PartInputs {
    of: u32,
    inputs: BTreeMap<u32, usize>,
}

impl PartInputs {
    /// Makes places for so many parts, all empty.
    pub(super) fn of(of: u32) -> PartInputs {
        PartInputs {
            of,
            inputs: BTreeMap::new(),
        }
    }

    /// Puts an input in its place, and returns the one that was there.
    pub(super) fn put(&mut self, index: u32, input: usize) -> Option<usize> {
        self.inputs.insert(index, input)
    }

    /// Returns the inputs in order of their parts, if all are there.
    pub(super) fn complete(&self) -> Result<Vec<usize>, Error> {
        let missing = self.of as usize - self.inputs.len();
        if missing == 0 {
            return Ok(self.inputs.values().copied().collect());
        }
        let numbers = (1..=self.of).filter(|index| !self.inputs.contains_key(index));
        let names: Vec<String> = numbers
            .take(NAMED)
            .map(|index| format!("{index}/{}", self.of))
            .collect();
        let more = match missing.saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!("missing: part {}{more}", names.join(", "));
        Err(Error::new(ErrorKind::Manifest, text))
    }
}

/// The parts of a tree, each once.
pub(super) struct Parts<'a> {
    /// Manifests by the number of the part.
    pub(super) manifests: Vec<&'a ManifestFile>,
    /// Data of the parts in their trailers.
    pub(super) ends: Vec<ShardTrailer>,
    /// True if one machine has made them all: numbers of devices can be compared then.
    pub(super) one_machine: bool,
    /// True if several machines are known to have made them.
    several_machines: bool,
    /// Header of the whole.
    pub(super) header: Header,
}

impl<'a> Parts<'a> {
    /// Looks at all headers and checks all trailers.
    pub(super) fn open(what: &MergeOptions<'a>) -> Result<Parts<'a>, Error> {
        let mut headers = Vec::with_capacity(what.manifests.len());
        for manifest in what.manifests {
            headers.push(manifest.header()?);
        }
        let mut places = PartInputs::of(0);
        for (nth, (manifest, header)) in what.manifests.iter().zip(&headers).enumerate() {
            let shard = part_of(manifest, header)?.ok_or_else(|| not_a_part(manifest))?;
            if nth == 0 {
                places = PartInputs::of(shard.of());
            } else if let Some(why) = differs(&headers[0], header) {
                let first = bc_fs::escape(what.manifests[0].name());
                return Err(manifest.bad(format!("{why}, unlike {first}")));
            }
            if let Some(other) = places.put(shard.index(), nth) {
                let other = bc_fs::escape(what.manifests[other].name());
                return Err(manifest.bad(format!("is part {shard} again, as {other} is")));
            }
        }
        let order = places.complete()?;
        let ends = ends_of(what, &order)?;
        let parts = Parts {
            manifests: order.iter().map(|&nth| &what.manifests[nth]).collect(),
            one_machine: headers
                .iter()
                .all(|header| header.machine.is_some() && header.machine == headers[0].machine),
            several_machines: {
                let known = headers.iter().filter_map(|header| header.machine.as_ref());
                known.collect::<BTreeSet<_>>().len() > 1
            },
            header: whole(&headers),
            ends,
        };
        parts.compare_mounts()?;
        parts.compare_roots(&headers[order[0]])?;
        Ok(parts)
    }

    /// Passes the entries of all parts, in path order, with the number of the part.
    pub(super) fn each(
        &self,
        cancel: &Cancel,
        mut take: impl FnMut(usize, &mut Entry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut open: Vec<Part<'_>> = Vec::with_capacity(self.manifests.len());
        for manifest in &self.manifests {
            open.push(Part::open(manifest)?);
        }
        // Parts with more entries, the one with the first path last.
        let mut order = Vec::with_capacity(open.len());
        for (nth, part) in open.iter_mut().enumerate() {
            if part.advance()? {
                order.push(nth);
            }
        }
        order.sort_by(|&a, &b| path_order(open[b].path(), open[a].path()));
        while let Some(nth) = order.pop() {
            stop_if(cancel)?;
            // The next entry is mostly of the same directory and so of the same part.
            loop {
                take(nth, open[nth].entry())?;
                if !open[nth].advance()? {
                    break;
                }
                let comes_after =
                    |other: &usize| path_order(open[*other].path(), open[nth].path()).is_lt();
                if order.last().is_some_and(comes_after) {
                    let comes_later =
                        |other: &usize| path_order(open[*other].path(), open[nth].path()).is_gt();
                    let at = order.partition_point(comes_later);
                    order.insert(at, nth);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns an empty set of directories for each part.
    pub(super) fn directories(&self) -> Directories {
        Directories(vec![DirectorySet::default(); self.manifests.len()])
    }

    /// Compares the roots: parts of several machines can be of trees that only look alike.
    fn compare_roots(&self, header: &Header) -> Result<(), Error> {
        let first = bc_fs::escape(self.manifests[0].name());
        let number = |end: &ShardTrailer| end.root_ino;
        for (end, manifest) in self.ends.iter().zip(&self.manifests) {
            if let Some((one, other)) = number(&self.ends[0]).zip(number(end))
                && one != other
            {
                let text = format!(
                    "has a root with inode number {other}, {first} with {one}: another directory"
                );
                return Err(manifest.bad(text));
            }
        }
        let source = header.mount_source.as_deref().unwrap_or_default();
        if self.several_machines && header.fs_uuid.is_none() && is_local(source) {
            let text = format!(
                "is of another machine than others: nothing tells that {} is one file system there",
                bc_fs::escape(source.as_bytes())
            );
            return Err(self.manifests[0].bad(text));
        }
        Ok(())
    }

    /// Compares devices: parts that came to other devices have read other trees.
    fn compare_mounts(&self) -> Result<(), Error> {
        let shared = self.ends[0].shared_devices;
        match self
            .ends
            .iter()
            .position(|end| end.shared_devices != shared)
        {
            None => Ok(()),
            Some(nth) => {
                let first = bc_fs::escape(self.manifests[0].name());
                let text = format!(
                    "came to {} file systems, {first} to {shared}: not the same was mounted",
                    self.ends[nth].shared_devices
                );
                Err(self.manifests[nth].bad(text))
            }
        }
    }
}

/// True if the source of a mount may mean another file system on each machine, as devices do and
/// datasets of a pool. Servers and clusters have addresses: `server:/export`, `//server/share`,
/// `user@fsid.name=/path`.
fn is_local(source: &str) -> bool {
    match source.starts_with('/') {
        true => !source.starts_with("//"),
        false => !source.contains([':', '=', '@']),
    }
}

/// Directories that each part should know, by the entries of all.
pub(super) struct Directories(Vec<DirectorySet>);

impl Directories {
    /// Records a directory whose names were read.
    pub(super) fn see(&mut self, path: &[u8]) {
        let of = self.0.len() as u32;
        if let Some(shard) = Shard::containing(path, of) {
            self.0[shard.index() as usize - 1].insert(path);
        }
    }

    /// Compares them with the trailers.
    pub(super) fn compare(&self, parts: &Parts<'_>, cancel: &Cancel) -> Result<(), Error> {
        for ((expected, end), manifest) in self.0.iter().zip(&parts.ends).zip(&parts.manifests) {
            let found = DirectorySet::of_parts(end.directories, end.sum);
            if found == *expected {
                continue;
            }
            if let Some(path) = missing(parts, *expected, found, cancel)? {
                let text = format!("did not read the directory '{}'", bc_fs::escape(&path));
                return Err(manifest.bad(format!("{text}, which the others list")));
            }
            let (found, expected) = (found.count(), expected.count());
            let text = match found.cmp(&expected) {
                std::cmp::Ordering::Less => format!(
                    "read {found} directories where the other parts list {expected} for it: what \
                     is in the others is missing"
                ),
                _ => format!(
                    "read {found} directories, not the {expected} that the other parts list for it"
                ),
            };
            let text = format!("{text}; the tree changed meanwhile, or could not be read");
            return Err(manifest.bad(text));
        }
        Ok(())
    }
}

/// Returns the directory that is in one set and not in the other, if it is only one.
fn missing(
    parts: &Parts<'_>,
    expected: DirectorySet,
    found: DirectorySet,
    cancel: &Cancel,
) -> Result<Option<Vec<u8>>, Error> {
    if expected.count() != found.count() + 1 {
        return Ok(None);
    }
    let sum = expected.sum().wrapping_sub(found.sum());
    let mut path = None;
    parts.each(cancel, |_, entry| {
        let mut one = DirectorySet::default();
        one.insert(&entry.path);
        if entry.kind == Kind::Dir && one.sum() == sum {
            path = Some(entry.path.clone());
        }
        Ok(())
    })?;
    Ok(path)
}

/// Returns the first difference of two headers that must agree, in words.
fn differs(first: &Header, other: &Header) -> Option<String> {
    let of = |header: &Header| header.shard["of"].clone();
    if of(first) != of(other) {
        return Some(format!("is one of {} parts", of(other)));
    }
    if first.algorithm != other.algorithm {
        return Some(format!("has {} digests", other.algorithm));
    }
    let keys = first.options.keys().chain(other.options.keys());
    let absent = Value::Null;
    let option = |header: &Header, key: &String| header.options.get(key).unwrap_or(&absent).clone();
    for key in keys {
        if option(first, key) != option(other, key) {
            let value = option(other, key);
            return Some(format!("was made with the option {key}={value}"));
        }
    }
    let text = |text: &Option<String>| text.as_deref().unwrap_or("none").to_owned();
    if first.root != other.root {
        let root = other.root.as_deref().unwrap_or_default();
        return Some(format!("has the root {}", bc_fs::escape(root)));
    }
    for (name, one, two) in [
        ("file system", &first.fs_uuid, &other.fs_uuid),
        ("mount", &first.mount_source, &other.mount_source),
        (
            "part of the file system",
            &first.mount_root,
            &other.mount_root,
        ),
    ] {
        if one != two {
            let two = text(two);
            return Some(format!("has the {name} {}", bc_fs::escape(two.as_bytes())));
        }
    }
    (first.scope != other.scope).then(|| format!("has the scope {}", other.scope))
}

/// Returns the header of the whole: as old as the oldest part, and with the host that has made all
/// parts, if one has.
fn whole(headers: &[Header]) -> Header {
    let mut whole = headers[0].clone();
    let times = headers.iter().map(|header| &header.created_at);
    whole.created_at = times.min().cloned().flatten();
    if headers.iter().any(|header| header.host != whole.host) {
        whole.host = None;
    }
    if headers.iter().any(|header| header.machine != whole.machine) {
        whole.machine = None;
    }
    if headers
        .iter()
        .any(|header| header.root_dev != whole.root_dev)
        || whole.machine.is_none()
    {
        whole.root_dev = None;
    }
    whole.version = env!("CARGO_PKG_VERSION").to_owned();
    whole.shard = Value::Null;
    whole
}

/// Checks the trailers of all inputs, several at a time, and returns their data.
fn ends_of(what: &MergeOptions<'_>, order: &[usize]) -> Result<Vec<ShardTrailer>, Error> {
    let end = |(): &mut (), nth: Range<usize>| {
        stop_if(what.cancel)?;
        end_of(&what.manifests[order[nth.start]])
    };
    let ends = bc_pool::ordered(what.workers, order.len(), 1, || (), end)?;
    stop_if(what.cancel)?;
    ends.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn addresses_alone_are_one_file_system_on_every_machine() {
        for source in [
            "nas:/export",
            "//nas/share",
            "user@fsid.name=/path",
            "host@tcp:/lustre",
        ] {
            assert!(!is_local(source), "{source}");
        }
        for source in ["/dev/sda1", "tank/data", "overlay", "tmpfs", ""] {
            assert!(is_local(source), "{source}");
        }
    }
}
