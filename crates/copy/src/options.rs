//! Options of a copy: a plain struct of sources, destination and method.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bc_digest::Algorithm;
use bc_edit::names::COPY_MANIFEST;
use bc_pool::Tables;
use bc_read::Rate;
use bc_walk::{WalkOptions, Workers};

/// Treatment of a file whose name is taken at the destination.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum OnConflict {
    /// The file is not copied, which is a failure.
    #[default]
    Fail,
    /// The file is left out.
    Skip,
    /// The file replaces the existing one.
    Replace,
    /// The file replaces the existing one if it was modified later.
    Update,
    /// The file replaces the existing one unless both have the same content.
    Verify,
}

impl OnConflict {
    /// All variants.
    pub const ALL: [OnConflict; 5] = [
        OnConflict::Fail,
        OnConflict::Skip,
        OnConflict::Replace,
        OnConflict::Update,
        OnConflict::Verify,
    ];

    /// Returns `fail`, `skip`, `replace`, `update` or `verify`.
    pub const fn name(self) -> &'static str {
        match self {
            OnConflict::Fail => "fail",
            OnConflict::Skip => "skip",
            OnConflict::Replace => "replace",
            OnConflict::Update => "update",
            OnConflict::Verify => "verify",
        }
    }

    /// True if a run ends with a copy of each source or a failure: what an earlier copy has made, and
    /// is as it was, counts as that.
    pub(crate) const fn is_to_have_all(self) -> bool {
        matches!(self, OnConflict::Fail | OnConflict::Replace)
    }
}

/// Reading back of written files before they get their names.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ReadBack {
    /// Nothing is read back.
    #[default]
    None,
    /// Files are read from wherever the kernel has them.
    Read,
    /// Files are read from the medium, once they are there.
    Media,
}

impl ReadBack {
    /// All variants.
    pub const ALL: [ReadBack; 3] = [ReadBack::None, ReadBack::Read, ReadBack::Media];

    /// Returns `none`, `read` or `media`.
    pub const fn name(self) -> &'static str {
        match self {
            ReadBack::None => "none",
            ReadBack::Read => "read",
            ReadBack::Media => "media",
        }
    }
}

/// Data that is forced to the disk, and when.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Durability {
    /// Nothing: the kernel writes when it sees fit.
    #[default]
    None,
    /// Everything, once, before the copy is called complete.
    End,
    /// The content of many files before they get their names, and the names after that.
    Batch,
    /// Each file before it gets its name, and the name after that.
    File,
}

impl Durability {
    /// All variants.
    pub const ALL: [Durability; 4] = [
        Durability::None,
        Durability::End,
        Durability::Batch,
        Durability::File,
    ];

    /// Returns `none`, `end`, `batch` or `file`.
    pub const fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::End => "end",
            Durability::Batch => "batch",
            Durability::File => "file",
        }
    }
}

/// Use of a feature that not every file system has.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum When {
    /// If it is possible.
    #[default]
    Auto,
    /// Always; where it is not possible, the file fails.
    Always,
    /// Never.
    Never,
}

impl When {
    /// All variants.
    pub const ALL: [When; 3] = [When::Auto, When::Always, When::Never];

    /// Returns `auto`, `always` or `never`.
    pub const fn name(self) -> &'static str {
        match self {
            When::Auto => "auto",
            When::Always => "always",
            When::Never => "never",
        }
    }
}

/// Metadata of a file that its copy is given, beside content and kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Preserve {
    /// Permission bits.
    pub mode: bool,
    /// Owner and group, as far as this user may.
    pub owner: bool,
    /// Times of modification and access, in nanoseconds.
    pub times: bool,
    /// Extended attributes: access control lists and capabilities among them.
    pub xattrs: bool,
    /// Hard links among the copied files.
    pub links: bool,
}

impl Preserve {
    /// All metadata.
    pub const ALL: Preserve = Preserve {
        mode: true,
        owner: true,
        times: true,
        xattrs: true,
        links: true,
    };

    /// No metadata.
    pub const NONE: Preserve = Preserve {
        mode: false,
        owner: false,
        times: false,
        xattrs: false,
        links: false,
    };

    /// Parses a list of names with commas between them: `mode`, `owner`, `times`, `xattrs`,
    /// `links`; `all` or `none` alone.
    ///
    /// # Errors
    /// Fails with a message that quotes the unknown name.
    pub fn parse(list: &str) -> Result<Preserve, String> {
        match list {
            "all" => return Ok(Preserve::ALL),
            "none" => return Ok(Preserve::NONE),
            _ => {}
        }
        let mut preserve = Preserve::NONE;
        for name in list.split(',') {
            match name {
                "mode" => preserve.mode = true,
                "owner" => preserve.owner = true,
                "times" => preserve.times = true,
                "xattrs" => preserve.xattrs = true,
                "links" => preserve.links = true,
                other => {
                    return Err(format!(
                        "unknown '{other}'; known are mode, owner, times, xattrs, links, or all or none alone"
                    ));
                }
            }
        }
        Ok(preserve)
    }
}

/// Interpretation of the destination.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Target {
    /// As `cp` does: the copy goes into it if it is a directory, else it is the copy.
    #[default]
    Cp,
    /// It is the copy, even if it is a directory.
    Exactly,
}

/// Name of the manifest in the destination: `.bc-copy-manifest.jsonl`.
pub const MANIFEST_NAME: &str = COPY_MANIFEST;

/// Place of the copy's manifest.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum ManifestPlace {
    /// To [`MANIFEST_NAME`] in the destination, if that is a directory.
    #[default]
    Destination,
    /// To this file.
    File(PathBuf),
    /// No manifest is written.
    None,
}

/// Options of a copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyOptions {
    /// Sources: files, directories, links, devices. No link among them is followed.
    pub sources: Vec<OsString>,
    /// Path of the destination.
    pub destination: OsString,
    /// Interpretation of the destination.
    pub target: Target,
    /// Treatment of names that are taken.
    pub on_conflict: OnConflict,
    /// Reading back.
    pub read_back: ReadBack,
    /// Data that must be on the disk.
    pub durability: Durability,
    /// Metadata that copies are given.
    pub preserve: Preserve,
    /// Use of shared blocks (`FICLONE`).
    pub reflink: When,
    /// Handling of holes: kept by default; `Always` makes holes of all zeros.
    pub sparse: When,
    /// The digest that is taken of each file; `None` for no digest at all.
    pub algorithm: Option<Algorithm>,
    /// Place of the manifest.
    pub manifest: ManifestPlace,
    /// True if a file in the place named for the manifest is replaced, whatever it is, except one
    /// that is copied. Without this it has to be empty or a manifest of the same destination, which
    /// is carried on. A device or FIFO is written to in any case.
    pub replace_manifest: bool,
    /// True if a file that cannot be given all metadata of its source fails.
    pub strict: bool,
    /// True if the work of an interrupted run is done again.
    pub restart: bool,
    /// True if nothing is written, only reported.
    pub dry_run: bool,
    /// Directory of journals and of the key that authenticates them; `None` for no journal, so that
    /// an interrupted copy cannot be resumed.
    pub state: Option<PathBuf>,
    /// Threads that copy, at least 1.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub workers: usize,
    /// Threads at most where these wait for either side, if that is more; 0: no more.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub waiting: usize,
    /// Bytes of memory that the state of the files may take; `None` for any number.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub most_memory: Option<u64>,
    /// Limit of bytes a second, if there is one: bytes count as they are written to a destination,
    /// those of comparisons and of reading back as they are read.
    pub rate: Option<Rate>,
    /// Tables of descriptors that copying threads use, where nothing is forced to the disk.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub tables: Tables,
    /// Threads that walk.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub walk_workers: Workers,
    /// Options of the walk: files to include, among others.
    pub walk: WalkOptions,
    /// The present, in nanoseconds since 1970, for the manifest's header.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub now: i64,
    /// Name of the host, for the manifest's header.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub host: Option<String>,
    /// The machine's id, as `/etc/machine-id` has it.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub machine: Option<String>,
    /// True if sources are removed afterwards, see [`MoveOptions`](crate::MoveOptions).
    pub(crate) moves: bool,
}

impl CopyOptions {
    /// Copies `sources` to `destination` with one thread, everything preserved, BLAKE3, and
    /// without a journal.
    pub fn new<P: AsRef<Path>>(
        sources: impl IntoIterator<Item = P>,
        destination: impl AsRef<Path>,
    ) -> CopyOptions {
        let owned = |path: &Path| path.as_os_str().to_owned();
        CopyOptions {
            sources: sources
                .into_iter()
                .map(|path| owned(path.as_ref()))
                .collect(),
            destination: owned(destination.as_ref()),
            target: Target::default(),
            on_conflict: OnConflict::default(),
            read_back: ReadBack::default(),
            durability: Durability::default(),
            preserve: Preserve::ALL,
            reflink: When::default(),
            sparse: When::default(),
            algorithm: Some(Algorithm::Blake3),
            manifest: ManifestPlace::default(),
            replace_manifest: false,
            strict: false,
            restart: false,
            dry_run: false,
            state: None,
            workers: 1,
            waiting: 0,
            most_memory: None,
            rate: None,
            tables: Tables::SHARED,
            walk_workers: 1.into(),
            walk: WalkOptions::default(),
            now: 0,
            host: None,
            machine: None,
            moves: false,
        }
    }
}
