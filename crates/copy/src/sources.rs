//! Sources as they were given, each looked at and walked once, however many destinations there are;
//! and the place of each of their entries below a destination.

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use bc_fs::path::split;
use bc_fs::{Escaped, dirfd};
use bc_pool::Cancel;
use bc_walk::job::{Error, Setting};
use bc_walk::{
    DirId, Entries, EntryId, FileKind, FileStat, FileStats, FileSystems, Identity, Listing,
    Metadata, OwnFile,
};

use crate::destination::{self, Source, Top};
use crate::error::usage_at;
use crate::event::{Event, Observer};
use crate::meta::stat_at;
use crate::options::CopyOptions;

/// Bytes reserved for a path.
pub(crate) const USUAL: usize = 128;

/// A source and its content.
pub(crate) struct Walked {
    pub(crate) source: Source,
    pub(crate) content: Arc<SourceContent>,
}

/// A source at a destination.
pub(crate) struct Root {
    pub(crate) source: Source,
    /// Its name below the top; empty if it is the top.
    pub(crate) name: Vec<u8>,
    /// Its first entry among those of all roots.
    pub(crate) base: u32,
    /// Content of the source, shared by all destinations.
    pub(crate) content: Arc<SourceContent>,
}

/// Entries of a source, by the way in which they were found.
pub(crate) enum SourceContent {
    /// Found by a walk.
    Listing(Box<Listing>),
    /// A single link or special file, in this directory.
    Alone(OwnedFd, CString),
    /// It could not be looked at.
    Nothing,
}

impl Root {
    fn len(&self) -> u32 {
        match &*self.content {
            SourceContent::Listing(listing) => listing.len() as u32,
            SourceContent::Alone(..) => 1,
            SourceContent::Nothing => 0,
        }
    }
}

/// All sources.
pub(crate) struct SourceTree {
    pub(crate) roots: Vec<Root>,
}

/// A directory as the walk has found it.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct WalkedDir {
    /// Number of the root that it is below.
    pub(crate) root: usize,
    pub(crate) id: DirId,
}

/// An entry of any of the roots: in order of the roots, and in path order within one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct RootItem(pub(crate) u32);

impl SourceTree {
    /// Numbers the entries of sources that have these names at a destination.
    pub(crate) fn new(walked: &[Walked], names: &[Vec<u8>]) -> SourceTree {
        let mut roots = Vec::with_capacity(walked.len());
        let mut base = 0;
        for (walked, name) in walked.iter().zip(names) {
            let root = Root {
                source: walked.source.clone(),
                name: name.clone(),
                base,
                content: Arc::clone(&walked.content),
            };
            base += root.len();
            roots.push(root);
        }
        SourceTree { roots }
    }

    /// Returns the number of entries of all roots.
    pub(crate) fn len(&self) -> u32 {
        self.roots.last().map_or(0, |last| last.base + last.len())
    }

    /// Returns all entries.
    pub(crate) fn items(&self) -> impl Iterator<Item = RootItem> + use<> {
        (0..self.len()).map(RootItem)
    }

    /// Returns the entries of a root.
    pub(crate) fn items_of(&self, root: usize) -> Range<u32> {
        let root = &self.roots[root];
        root.base..root.base + root.len()
    }

    /// Returns the root of an entry, and its number.
    pub(crate) fn root(&self, item: RootItem) -> (usize, &Root) {
        let at = self.roots.partition_point(|root| root.base <= item.0) - 1;
        // Roots without entries have the number of the next.
        (at, &self.roots[at])
    }

    /// Returns the listing that has an entry, unless the source is a single one.
    pub(crate) fn entry(&self, item: RootItem) -> Option<(&Listing, EntryId)> {
        let root = self.root(item).1;
        match &*root.content {
            SourceContent::Listing(listing) => Some((listing, EntryId(item.0 - root.base))),
            _ => None,
        }
    }

    /// True if no part of the sources was missed.
    pub(crate) fn is_all_read(&self) -> bool {
        self.roots.iter().all(|root| match &*root.content {
            SourceContent::Listing(listing) => listing.errors().is_empty(),
            SourceContent::Alone(..) => true,
            SourceContent::Nothing => false,
        })
    }

    /// Returns the `stat` of an entry, as the walk found it.
    pub(crate) fn stat(&self, item: RootItem) -> Option<FileStat> {
        let (listing, id) = self.entry(item)?;
        listing.stat(id)
    }

    pub(crate) fn kind(&self, item: RootItem) -> FileKind {
        match self.entry(item) {
            Some((listing, id)) => listing.kind(id),
            None => self.root(item).1.source.stat.kind(),
        }
    }

    /// Returns the size of a file in bytes, as the walk found it.
    pub(crate) fn size(&self, item: RootItem) -> u64 {
        let size = self.entry(item).and_then(|(listing, id)| listing.size(id));
        size.unwrap_or(0)
    }

    /// Replaces `path` by the target of an entry, below the top: empty for the top itself.
    pub(crate) fn write_target(&self, item: RootItem, path: &mut Vec<u8>) {
        path.clear();
        let root = self.root(item).1;
        path.extend_from_slice(&root.name);
        let Some((listing, id)) = self.entry(item) else {
            return;
        };
        let is_root_itself = root.source.stat.kind() != FileKind::Dir;
        if is_root_itself || listing.name(id).to_bytes() == b"." {
            return;
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        listing.write_relative(id, path);
    }

    /// True if this is the target of an entry.
    pub(crate) fn has_target(&self, item: RootItem, target: &[u8]) -> bool {
        let (root, name) = (self.root(item).1, split(target).1);
        let is_called = self
            .entry(item)
            .is_some_and(|(listing, id)| listing.name(id).to_bytes() == name);
        // Most have another name.
        if !is_called && root.name != name {
            return false;
        }
        let mut own = Vec::new();
        self.write_target(item, &mut own);
        own == target
    }

    /// Returns the name of an entry at its source, and its path below that of its root; `None` for
    /// what was not read.
    pub(crate) fn named_below(&self, item: RootItem, root: &[u8]) -> Option<(&CStr, Vec<u8>)> {
        let (_, of) = self.root(item);
        match (&*of.content, self.entry(item)) {
            (SourceContent::Alone(_, name), _) => Some((name.as_c_str(), root.to_vec())),
            (_, Some((listing, id))) => {
                let mut below = Vec::new();
                if of.source.stat.kind() == FileKind::Dir {
                    listing.write_relative(id, &mut below);
                }
                Some((listing.name(id), shown_below(root, &below)))
            }
            _ => None,
        }
    }

    /// Returns the path of an entry's source, as it is shown.
    pub(crate) fn source_path(&self, item: RootItem) -> Vec<u8> {
        match self.entry(item) {
            Some((listing, id)) => listing.path(id),
            None => self.root(item).1.source.path.as_bytes().to_vec(),
        }
    }
}

/// Returns a path below another, as it is shown.
pub(crate) fn shown_below(top: &[u8], target: &[u8]) -> Vec<u8> {
    let mut path = top.to_vec();
    if !path.is_empty() && !path.ends_with(b"/") && !target.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(target);
    path
}

/// Returns the existing sources, and the number of missing ones.
pub(crate) fn look(
    options: &CopyOptions,
    observer: &Observer<'_>,
) -> Result<(Vec<Source>, u64), Error> {
    let mut sources = Vec::new();
    for (number, path) in options.sources.iter().enumerate() {
        match destination::look(number, path) {
            Ok(source) => sources.push(source),
            // A failure of the only one is the copy's own.
            Err(error) if options.sources.len() == 1 => return Err(Error::from(error)),
            Err(error) => observer(Event::Failed(&error)),
        }
    }
    if sources.is_empty() {
        return Err(Error::usage("none of the sources can be copied"));
    }
    let missing = options.sources.len() - sources.len();
    Ok((sources, missing as u64))
}

/// Lists what is to be copied of a source, except for the journals.
pub(crate) fn list(
    options: &CopyOptions,
    source: &Source,
    journals: &[OwnFile],
    cancel: &Cancel,
) -> Result<Listing, Error> {
    let mut walk = options.walk.clone();
    walk.entries = Entries::All;
    walk.metadata = Metadata::Full;
    walk.file_stats = FileStats::Walked;
    // The state directory is part of a home directory, and grows meanwhile.
    walk.leave_out.extend_from_slice(journals);
    let path = [source.path.clone()];
    Ok(bc_walk::walk(&path, &walk, options.walk_workers, cancel)?)
}

/// Walks each source, except for the journals.
pub(crate) fn walk(
    options: &CopyOptions,
    sources: Vec<Source>,
    journals: &[OwnFile],
    cancel: &Cancel,
    observer: &Observer<'_>,
) -> Result<Vec<Walked>, Error> {
    let mut walked = Vec::with_capacity(sources.len());
    for source in sources {
        let kind = source.stat.kind();
        let content = match kind {
            FileKind::Dir | FileKind::File => {
                let listing = list(options, &source, journals, cancel)?;
                for error in listing.errors().iter().chain(listing.absent()) {
                    observer(Event::Failed(error));
                }
                SourceContent::Listing(Box::new(listing))
            }
            _ => match alone(&source) {
                Ok((dir, name)) => SourceContent::Alone(dir, name),
                Err(error) => {
                    observer(Event::Failed(&error));
                    SourceContent::Nothing
                }
            },
        };
        walked.push(Walked {
            source,
            content: Arc::new(content),
        });
    }
    Ok(walked)
}

fn alone(source: &Source) -> Result<(OwnedFd, std::ffi::CString), bc_walk::Error> {
    let path = source.path.as_bytes();
    let failed = |errno: rustix::io::Errno| bc_walk::Error::new(path, "open", errno);
    let (dir, name) = destination::dir_and_name(path);
    let name = name.ok_or(rustix::io::Errno::INVAL).map_err(failed)?;
    let name = std::ffi::CString::new(name).map_err(|_| failed(rustix::io::Errno::INVAL))?;
    Ok((
        dirfd::open_root(dir).map_err(|refused| failed(refused.errno))?,
        name,
    ))
}

/// Returns the number of sources, and of paths that were asked for below them, that have no entry;
/// they were reported already. The manifest does not list them.
pub(crate) fn unopened(walked: &[Walked]) -> u64 {
    let missing = |one: &Walked| match &*one.content {
        SourceContent::Nothing => 1,
        SourceContent::Listing(listing) => listing.absent().len() as u64,
        SourceContent::Alone(..) => 0,
    };
    walked.iter().map(missing).sum()
}

/// Refuses to copy a source that holds the destination by another path than its ancestors: where a
/// directory is mounted a second time. Only the walk finds that.
pub(crate) fn refuse_within(
    options: &CopyOptions,
    top: &Top,
    walked: &[Walked],
) -> Result<(), Error> {
    let mut own = vec![top.id];
    for name in top.names.iter().filter(|name| !name.is_empty()) {
        let there = stat_at(&top.fd, &name[..]);
        own.extend(there.ok().map(|there| there.id));
    }
    for one in walked {
        let SourceContent::Listing(listing) = &*one.content else {
            continue;
        };
        let mut dirs = listing
            .ids()
            .filter(|id| listing.kind(*id) == FileKind::Dir);
        // File systems mounted there are not entered then.
        let stays = options.walk.file_systems == FileSystems::One;
        let is_entered = |id: Identity| !stays || id.dev == one.source.stat.id.dev;
        let is_own = |id: &EntryId| {
            let meta = listing.meta(*id);
            meta.is_some_and(|meta| own.contains(&meta.id) && is_entered(meta.id))
        };
        if let Some(inner) = dirs.find(is_own) {
            let text = format!(
                "cannot be copied into itself: {} is the destination",
                Escaped(&listing.path(inner))
            );
            let error = usage_at(one.source.path.as_bytes(), text);
            return Err(error.unless(Some(Setting::Exclude)));
        }
    }
    Ok(())
}
