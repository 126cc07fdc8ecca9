//! Sources as they were given, each looked at and walked once, however many destinations there are.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use bc_fs::Escaped;
use bc_fs::dirfd;
use bc_integrity::Setting;
use bc_pool::Cancel;
use bc_walk::{
    Entries, EntryId, FileKind, FileStat, FileStats, FileSystems, Identity, Metadata, OwnFile,
};
use rustix::fs::AtFlags;

use crate::error::Error;
use crate::event::{Event, Observer};
use crate::options::CopyOptions;
use crate::target::{self, Source, Top};
use crate::tree::{SourceContent, Walked};

/// Returns the existing sources, and the number of missing ones.
pub(crate) fn look(
    options: &CopyOptions,
    observer: &Observer<'_>,
) -> Result<(Vec<Source>, u64), Error> {
    let mut sources = Vec::new();
    for (number, path) in options.sources.iter().enumerate() {
        match target::look(number, path) {
            Ok(source) => sources.push(source),
            // A failure of the only one is the copy's own.
            Err(error) if options.sources.len() == 1 => return Err(Error::of_failure(error)),
            Err(error) => observer(Event::Failed(&error)),
        }
    }
    if sources.is_empty() {
        return Err(Error::usage("none of the sources can be copied"));
    }
    let missing = options.sources.len() - sources.len();
    Ok((sources, missing as u64))
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
                let mut walk = options.walk.clone();
                walk.entries = Entries::All;
                walk.metadata = Metadata::Full;
                walk.file_stats = FileStats::Walked;
                // The state directory is part of a home directory, and grows meanwhile.
                walk.leave_out.extend_from_slice(journals);
                let path = [source.path.clone()];
                let listing = bc_walk::walk(&path, &walk, options.walk_workers, cancel)?;
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
    let (dir, name) = target::split(path);
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
        let there = rustix::fs::statat(&top.fd, &name[..], AtFlags::SYMLINK_NOFOLLOW);
        own.extend(there.ok().map(|there| FileStat::from(&there).id));
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
            let error = Error::usage_at(one.source.path.as_bytes(), text);
            return Err(error.unless(Setting::Exclude));
        }
    }
    Ok(())
}
