//! All parts of a tree, with checks that they belong together, and that each knows its directories.

use std::collections::BTreeSet;
use std::ops::Range;

use bc_manifest::Value;
use bc_manifest::integrity::{Header, Kind, ShardTrailer};
use bc_pool::Cancel;
use bc_walk::job::Error;
use bc_walk::{DirectorySet, Shard};

use super::complete::PartInputs;
use super::part::{end_of, not_a_part, part_of};
use super::{MergeOptions, stop_if};
use bc_integrity::ManifestFile;

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
