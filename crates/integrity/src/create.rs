//! `manifest`: records a tree.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use bc_digest::Algorithm;
use bc_hash::resume::Resume;
use bc_hash::{Totals, hash_in_order};
use bc_manifest::Failure;
use bc_manifest::integrity::{Header, ROOT, ShardHeader, ShardTrailer, Trailer, Writer};
use bc_manifest::time::format_rfc3339;
use bc_walk::job::Error;
use bc_walk::{FileStats, OwnFile, Shard, Skipped};
use serde_json::Value;

use crate::error::{manifest_write_failed, write_failed};
use crate::input::ManifestFile;
use crate::input::piped::Kept;
use crate::options::{TreeOptions, Work};
use crate::place::{self, Origin};
use crate::tree::Tree;
use crate::tree::hashing::hash_options_beside;
use crate::tree::loader::{EntryLoader, LoadedEntry};
use crate::tree::recording::{Devices, to_entry};
use std::ops::ControlFlow;

/// Treatment of an existing file at the place of a manifest.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Overwrite {
    /// It is left, unless it is empty: an earlier manifest of the tree is the only record of what
    /// the files were.
    #[default]
    Never,
    /// It is replaced, whatever it is, unless it is a file of the tree that is recorded and is no
    /// manifest.
    ///
    /// Not a way to keep a manifest up to date: all files get the digests that they have now, also
    /// those that were damaged since, and no later run would report it. An
    /// [update](crate::UpdateOptions) is for that.
    Always,
}

/// Options of a new manifest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CreateOptions<'a> {
    /// The root directory (or a single file).
    pub root: &'a OsStr,
    /// Selection of entries, and of their recorded fields.
    pub tree: TreeOptions,
    /// Digest of the files.
    pub algorithm: Algorithm,
    /// Time for the header, in nanoseconds since 1970.
    pub created_at: i64,
    /// Origin for the header: the host that writes it.
    pub origin: Origin,
    /// Part of the tree, if several readers share it.
    pub shard: Option<Shard>,
    /// Files that are not listed: the manifest itself.
    pub leave_out: Vec<OwnFile>,
    /// Treatment of an existing file where the manifest is [written](CreateOptions::run_to).
    pub overwrite: Overwrite,
}

impl<'a> CreateOptions<'a> {
    /// Records all of the tree at `root`, by digests of this algorithm; the header has the
    /// beginning of 1970 and no origin.
    pub fn new<P: AsRef<Path> + ?Sized>(root: &'a P, algorithm: Algorithm) -> CreateOptions<'a> {
        CreateOptions {
            root: root.as_ref().as_os_str(),
            tree: TreeOptions::default(),
            algorithm,
            created_at: 0,
            origin: Origin::default(),
            shard: None,
            leave_out: Vec::new(),
            overwrite: Overwrite::Never,
        }
    }
}

bc_fs::setters! {
    CreateOptions<'a>:
    tree: TreeOptions,
    created_at: i64,
    origin: Origin,
    shard: Option<Shard>,
    leave_out: Vec<OwnFile>,
    overwrite: Overwrite,
}

/// Result of writing a manifest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Created {
    /// Trailer, with the counts.
    pub trailer: Trailer,
    /// Entries that filters left out.
    pub skipped: Skipped,
    /// Directories read.
    pub directories: u64,
    /// Totals of the files that were read.
    pub totals: Totals,
}

/// Receiver of each entry that could not be read: its path below the root and the reason. The
/// manifest contains the same.
pub type OnFailure<'a> = dyn FnMut(&[u8], &Failure) + 'a;

/// Walks and reads a tree and writes its manifest to `out`; returns `out` flushed. The same tree
/// gives the same bytes, but for the header's time.
///
/// # Errors
/// Fails if the root is missing, a write fails or the run is cancelled: `out` then holds half a
/// manifest, which has no trailer.
pub fn create<W: Write>(
    what: &CreateOptions<'_>,
    work: &Work<'_>,
    out: W,
    on_failure: &mut OnFailure<'_>,
) -> Result<(W, Created), Error> {
    create_recorded(what, None, work, out, on_failure)
}

/// Records a tree in a manifest that is only kept to be compared, in memory or in a file without a
/// name; its name in messages is the root's.
///
/// # Errors
/// Fails like [`create`]; also if the manifest takes more than 16 GiB.
pub fn record_unnamed(
    what: &CreateOptions<'_>,
    work: &Work<'_>,
    on_failure: &mut OnFailure<'_>,
) -> Result<(ManifestFile, Created), Error> {
    let (kept, created) = create(what, work, Kept::default(), on_failure)?;
    let manifest = ManifestFile::of_kept(what.root.as_bytes(), kept);
    let manifest = manifest.map_err(|error| write_failed(&error))?;
    Ok((manifest.cancelled_by(work.cancel), created))
}

/// Like [`create`], recorded in a journal, so that an interrupted run can be resumed, and with the
/// digests that an earlier run has read. The manifest is as old as the first of the runs, and
/// otherwise equal to that of one that was not interrupted.
///
/// # Errors
/// Fails like [`create`].
pub fn create_recorded<W: Write>(
    what: &CreateOptions<'_>,
    resume: Option<&Arc<Resume>>,
    work: &Work<'_>,
    out: W,
    on_failure: &mut OnFailure<'_>,
) -> Result<(W, Created), Error> {
    // Every file is opened and looked at then: a stat of the walk would be one
    // call more for each, a tenth of all the work on a source tree.
    let left = FileStats::Left;
    let tree = Tree::walk_part(
        what.root,
        &what.tree,
        what.shard,
        left,
        &what.leave_out,
        work,
    )?;
    let mut header = Header::new(what.algorithm.name(), env!("CARGO_PKG_VERSION"));
    let created_at = resume.map_or(what.created_at, |resume| resume.created_at());
    header.created_at = Some(format_rfc3339(created_at));
    place::record(&mut header, &tree, what.root, &what.origin);
    header.options = what.tree.to_json();
    header.shard = what
        .shard
        .map_or(Value::Null, |shard| shard_header(shard).to_value());
    let is_file = |id| tree.listing.kind(id) == bc_walk::FileKind::File;
    let more = resume.map_or(0, |resume| resume.memory());
    let mut options = hash_options_beside(more, &tree, is_file, what.algorithm, work)?;
    options.resume = resume.cloned();
    let mut writer = Writer::new(out, &header).map_err(manifest_write_failed)?;
    let mut devices = Devices::new(tree.root_dev());
    if what.shard.is_some() {
        devices.share(tree.listing.devices());
    }
    let mut loader = EntryLoader::new(&tree, what.tree.xattrs, None, work);
    let totals = hash_in_order(
        &tree.listing,
        is_file,
        &options,
        work.cancel,
        work.progress,
        |range, window| {
            loader.each(range, Some(window), |present| {
                if let Some(failure) = present.view.error {
                    on_failure(present.path, failure);
                }
                // An entry of another part is only reported here as unreadable.
                if !is_in(what.shard, present) {
                    return Ok(ControlFlow::Continue(()));
                }
                let entry = to_entry(present, &mut devices);
                writer.write(&entry).map_err(manifest_write_failed)?;
                Ok(ControlFlow::Continue(()))
            })
        },
    )?;
    let end = what
        .shard
        .map(|_| shard_trailer(&tree, &devices).to_fields());
    let end = end.unwrap_or_default();
    let (out, trailer) = writer.finish_with(&end).map_err(manifest_write_failed)?;
    let skipped = tree.listing.skipped().clone();
    Ok((
        out,
        Created {
            trailer,
            skipped,
            directories: tree.listing.directories(),
            totals,
        },
    ))
}

/// Returns the part of the tree for the header.
fn shard_header(shard: Shard) -> ShardHeader {
    ShardHeader {
        index: shard.index(),
        of: shard.of(),
    }
}

/// Returns the data that are needed to put the parts together.
fn shard_trailer(tree: &Tree, devices: &Devices) -> ShardTrailer {
    let settled = tree.listing.settled();
    ShardTrailer {
        directories: settled.count(),
        sum: settled.sum(),
        devices: devices.numbers(),
        shared_devices: devices.shared(),
        root_ino: tree.root().map(|stat| stat.id.ino),
    }
}

/// True if the entry is in the part that is asked for. The root is listed in every part, and what
/// could not be read may be of any.
fn is_in(shard: Option<Shard>, present: &LoadedEntry<'_>) -> bool {
    let may_be_of_another = present.id.is_none() || present.path == ROOT;
    shard.is_none_or(|shard| !may_be_of_another || shard.has_entry(present.path))
}
