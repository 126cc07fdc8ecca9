//! Copies that may hold a lost content: at the same path, or at any, by size and digest.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bc_digest::{Algorithm, CpuFeatures, Digest};
use bc_fs::dirfd;
use bc_fs::meta::Stamp;
use bc_fs::path::split;
use bc_hash::{DigestSink, HashOptions, HashProgress, hash_with};
use bc_integrity::Reading;
use bc_parity::RebuiltContent;
use bc_pool::Cancel;
use bc_walk::job::Error;
use bc_walk::{EntryId, FileKind, FileStat, Identity, Listing, Metadata, WalkOptions, Workers};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::destination::dir_and_name;
use crate::error::{system_error, usage_at};
use crate::meta::{stat, stat_at};
use crate::sources::shown_below;

/// A tree, or a single file, as it was named.
pub(super) struct Backup {
    /// Directory: the tree, or the directory of the file.
    fd: OwnedFd,
    pub(super) path: OsString,
    /// Name of the file, if it is a single one.
    name: Option<Vec<u8>>,
}

/// A file that may hold the wanted content, or that content as parity gives it.
pub(super) struct Candidate<'c> {
    pub(super) bytes: CandidateBytes<'c>,
    pub(super) stat: FileStat,
    /// Its path as it is shown.
    pub(super) shown: Vec<u8>,
}

/// Bytes of a candidate.
pub(super) enum CandidateBytes<'c> {
    /// An open file.
    File(OwnedFd),
    /// A content that lies in several places.
    Computed(&'c RebuiltContent<'c>),
}

impl<'c> Candidate<'c> {
    /// Makes a candidate of a content that parity gives. Only its owner may read it, unless a record
    /// permits more.
    pub(super) fn computed(content: &'c RebuiltContent<'c>) -> Candidate<'c> {
        let stat = FileStat {
            id: Identity { dev: 0, ino: 0 },
            stamp: Stamp {
                size: content.size(),
                mtime_ns: 0,
                ctime_ns: 0,
            },
            mode: FileType::RegularFile.as_raw_mode() | 0o600,
            uid: 0,
            gid: 0,
            nlink: 0,
            rdev: 0,
            blocks: 0,
        };
        Candidate {
            bytes: CandidateBytes::Computed(content),
            stat,
            shown: content.volume().as_os_str().as_bytes().to_vec(),
        }
    }

    /// Returns the open file, if it is one.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        match &self.bytes {
            CandidateBytes::File(file) => Some(file.as_fd()),
            CandidateBytes::Computed(_) => None,
        }
    }
}

impl Backup {
    /// Opens a tree or file given by the user.
    pub(super) fn open(path: &OsStr) -> Result<Backup, Error> {
        let bytes = path.as_bytes();
        let failed = |op| move |errno: Errno| system_error(bytes, op, errno);
        let stat = rustix::fs::statat(CWD, path, AtFlags::empty()).map_err(failed("stat"))?;
        let kind = FileStat::from(&stat).kind();
        if kind == FileKind::Dir {
            return Ok(Backup {
                fd: dirfd::open_root(bytes)
                    .map_err(Errno::from)
                    .map_err(failed("open"))?,
                path: path.to_owned(),
                name: None,
            });
        }
        if kind != FileKind::File {
            return Err(usage_at(bytes, "is neither a directory nor a file"));
        }
        // Below what was named no link is followed; what was named may be one.
        let real = std::fs::canonicalize(path);
        let real = real.map_or_else(|_| path.to_owned(), PathBuf::into_os_string);
        let (dir, name) = dir_and_name(real.as_bytes());
        Ok(Backup {
            fd: dirfd::open_root(dir)
                .map_err(Errno::from)
                .map_err(failed("open"))?,
            name: name.map(<[u8]>::to_vec),
            path: path.to_owned(),
        })
    }

    /// True if it is a directory with nothing in it, as an unmounted disk looks.
    pub(super) fn is_empty(&self) -> bool {
        let own = self.name.is_none();
        own && std::fs::read_dir(&self.path).is_ok_and(|mut entries| entries.next().is_none())
    }

    /// Opens the file at a path below the tree, if there is one.
    pub(super) fn at(&self, path: &[u8]) -> Result<Option<Candidate<'static>>, bc_walk::Error> {
        if self.name.is_some() {
            return Ok(None);
        }
        let shown = shown_below(self.path.as_bytes(), path);
        open_regular(self.fd.as_fd(), path, shown)
    }

    /// Opens an entry of the listing that was walked.
    fn entry(
        &self,
        listing: &Listing,
        id: EntryId,
    ) -> Result<Option<Candidate<'static>>, bc_walk::Error> {
        let shown = listing.path(id);
        let mut path = Vec::new();
        match &self.name {
            Some(name) => path.extend_from_slice(name),
            None => listing.write_relative(id, &mut path),
        }
        open_regular(self.fd.as_fd(), &path, shown)
    }

    /// Opens the directory at a path below the tree, if there is one.
    pub(super) fn dir(&self, path: &[u8]) -> Option<OwnedFd> {
        let dir = dirfd::open_below(self.fd.as_fd(), path).ok()?;
        self.name.is_none().then_some(dir)
    }

    /// Returns the target of the link at a path, if there is one.
    pub(super) fn link(&self, path: &[u8]) -> Option<Vec<u8>> {
        let (dir, name) = split(path);
        let dir = dirfd::open_below(self.fd.as_fd(), dir).ok()?;
        let target = rustix::fs::readlinkat(dir, name, Vec::new()).ok()?;
        self.name.is_none().then(|| target.into_bytes())
    }
}

/// Opens a regular file below a directory; no link is followed, and no other kind of file is
/// opened.
pub(super) fn open_regular(
    top: BorrowedFd<'_>,
    path: &[u8],
    shown: Vec<u8>,
) -> Result<Option<Candidate<'static>>, bc_walk::Error> {
    let try_open = || {
        let (dir, name) = split(path);
        let dir = dirfd::open_below(top, dir).map_err(Errno::from)?;
        if stat_at(&dir, name)?.kind() != FileKind::File {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = flags | OFlags::NOCTTY;
        let file = retry_on_intr(|| rustix::fs::openat(&dir, name, flags, Mode::empty()))?;
        let stat = stat(&file)?;
        Ok((stat.kind() == FileKind::File).then_some((file, stat)))
    };
    match try_open() {
        Ok(Some((file, stat))) => Ok(Some(Candidate {
            bytes: CandidateBytes::File(file),
            stat,
            shown,
        })),
        Ok(None) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
        Err(errno) => Err(bc_walk::Error::new(shown, "open", errno)),
    }
}

/// Contents that are searched for everywhere.
#[derive(Default)]
pub(super) struct WantedContents {
    pub(super) digests: HashSet<Digest>,
    pub(super) sizes: HashSet<u64>,
    /// True if a size is not known, so that any will do.
    pub(super) any_size: bool,
}

impl WantedContents {
    /// Adds a content.
    pub(super) fn add(&mut self, digest: Digest, size: Option<u64>) {
        self.digests.insert(digest);
        match size {
            Some(size) => drop(self.sizes.insert(size)),
            None => self.any_size = true,
        }
    }
}

/// Means by which files are read and hashed.
pub(super) struct SearchMeans<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) cpu: CpuFeatures,
    pub(super) reading: Reading,
    pub(super) walk_workers: Workers,
    pub(super) cancel: &'a Cancel,
    pub(super) progress: &'a HashProgress,
}

/// Files of the trees that hold each of the contents.
pub(super) struct SourceIndex {
    listing: Listing,
    found: HashMap<Digest, Vec<EntryId>>,
}

/// Notes the files whose content is wanted.
struct Sink<'a> {
    wanted: &'a HashSet<Digest>,
    found: Vec<(EntryId, Digest)>,
    errors: Vec<bc_walk::Error>,
}

impl DigestSink for Sink<'_> {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), bc_walk::Error>) {
        match result {
            Ok((_, digests)) => {
                let wanted = digests.iter().find(|digest| self.wanted.contains(*digest));
                self.found.extend(wanted.map(|digest| (entry, *digest)));
            }
            Err(error) => self.errors.push(error),
        }
    }
}

impl SourceIndex {
    /// Searches the trees: hashes the files that have a wanted size. Returns the files that could
    /// not be read as well. `begins` is called with the number of files and bytes.
    pub(super) fn of(
        from: &[Backup],
        wanted: &WantedContents,
        means: SearchMeans<'_>,
        begins: impl FnOnce(u64, u64),
    ) -> Result<(SourceIndex, Vec<bc_walk::Error>), Error> {
        let roots: Vec<OsString> = from.iter().map(|from| from.path.clone()).collect();
        let walk = WalkOptions::default().metadata(Metadata::Basic);
        let listing = bc_walk::walk(&roots, &walk, means.walk_workers, means.cancel)?;
        let has_size = |id: &EntryId| {
            wanted.any_size
                || listing
                    .size(*id)
                    .is_none_or(|size| wanted.sizes.contains(&size))
        };
        let is_file = |id: &EntryId| listing.kind(*id) == FileKind::File;
        let entries: Vec<EntryId> = listing.ids().filter(is_file).filter(has_size).collect();
        let bytes = entries.iter().filter_map(|id| listing.size(*id)).sum();
        begins(entries.len() as u64, bytes);
        let options = HashOptions::new(vec![means.algorithm])
            .cpu(means.cpu)
            .read(means.reading.read)
            .workers(means.reading.workers.max(1))
            .start(means.reading.start);
        let plan = bc_read::order::plan(&listing, entries, options.workers, means.cancel);
        let sink = |_| Sink {
            wanted: &wanted.digests,
            found: Vec::new(),
            errors: Vec::new(),
        };
        let (cancel, progress) = (means.cancel, means.progress);
        let (sinks, _) = hash_with(&listing, &plan, &options, cancel, progress, sink)?;
        let mut errors = listing.errors().to_vec();
        let mut all = Vec::new();
        for sink in sinks {
            all.extend(sink.found);
            errors.extend(sink.errors);
        }
        errors.sort_by(|a, b| a.path().cmp(b.path()));
        // The same one is taken, whichever worker found it.
        all.sort_unstable_by_key(|(id, _)| id.0);
        let mut found: HashMap<Digest, Vec<EntryId>> = HashMap::new();
        for (id, digest) in all {
            found.entry(digest).or_default().push(id);
        }
        Ok((SourceIndex { listing, found }, errors))
    }

    /// Returns the files that held a content when they were looked at.
    pub(super) fn holders(&self, digest: &Digest) -> &[EntryId] {
        self.found.get(digest).map_or(&[], |found| &found[..])
    }

    /// Opens one of them.
    pub(super) fn open(
        &self,
        from: &[Backup],
        id: EntryId,
    ) -> Result<Option<Candidate<'static>>, bc_walk::Error> {
        match from.get(self.listing.root(id)) {
            Some(from) => from.entry(&self.listing, id),
            None => Ok(None),
        }
    }
}
