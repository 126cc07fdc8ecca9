//! What to copy, where to, and how: a plain struct.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bc_digest::Algorithm;
use bc_pool::Tables;
use bc_walk::{WalkOptions, Workers};

/// What is done with a file whose name is taken at the destination.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum OnConflict {
    /// It is not copied, which is a failure.
    #[default]
    Fail,
    /// It is left out.
    Skip,
    /// It takes the name.
    Replace,
    /// It takes the name if it was modified later than what has it.
    Update,
    /// It takes the name unless both have the same content.
    Verify,
}

impl OnConflict {
    /// All of them.
    pub const ALL: [OnConflict; 5] = [
        OnConflict::Fail,
        OnConflict::Skip,
        OnConflict::Replace,
        OnConflict::Update,
        OnConflict::Verify,
    ];

    /// `fail`, `skip`, `replace`, `update` or `verify`.
    pub const fn name(self) -> &'static str {
        match self {
            OnConflict::Fail => "fail",
            OnConflict::Skip => "skip",
            OnConflict::Replace => "replace",
            OnConflict::Update => "update",
            OnConflict::Verify => "verify",
        }
    }
}

/// Whether what was written is read back before it gets its name.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ReadBack {
    /// No.
    #[default]
    None,
    /// Yes, from wherever the kernel has it.
    Read,
    /// Yes, from the medium, once it is there.
    Media,
}

impl ReadBack {
    /// All of them.
    pub const ALL: [ReadBack; 3] = [ReadBack::None, ReadBack::Read, ReadBack::Media];

    /// `none`, `read` or `media`.
    pub const fn name(self) -> &'static str {
        match self {
            ReadBack::None => "none",
            ReadBack::Read => "read",
            ReadBack::Media => "media",
        }
    }
}

/// What is forced to the disk, and when.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Durability {
    /// Nothing: the kernel writes when it sees fit.
    #[default]
    None,
    /// Everything, once, before the copy is called complete.
    End,
    /// What many files are made of before they get their names, and these after that.
    Batch,
    /// Each file before it gets its name, and the name after that.
    File,
}

impl Durability {
    /// All of them.
    pub const ALL: [Durability; 4] = [
        Durability::None,
        Durability::End,
        Durability::Batch,
        Durability::File,
    ];

    /// `none`, `end`, `batch` or `file`.
    pub const fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::End => "end",
            Durability::Batch => "batch",
            Durability::File => "file",
        }
    }
}

/// When something that not every file system can do is done.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum When {
    /// Where it can be.
    #[default]
    Auto,
    /// Always; where it cannot be, the file fails.
    Always,
    /// Never.
    Never,
}

impl When {
    /// All of them.
    pub const ALL: [When; 3] = [When::Auto, When::Always, When::Never];

    /// `auto`, `always` or `never`.
    pub const fn name(self) -> &'static str {
        match self {
            When::Auto => "auto",
            When::Always => "always",
            When::Never => "never",
        }
    }
}

/// Which of a file's properties are given to its copy, beside content and kind.
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
    /// That several names are one file.
    pub links: bool,
}

impl Preserve {
    /// Everything.
    pub const ALL: Preserve = Preserve {
        mode: true,
        owner: true,
        times: true,
        xattrs: true,
        links: true,
    };

    /// Nothing.
    pub const NONE: Preserve = Preserve {
        mode: false,
        owner: false,
        times: false,
        xattrs: false,
        links: false,
    };

    /// What a list of names with commas between them says: `mode`, `owner`, `times`, `xattrs`,
    /// `links`; `all` or `none` alone.
    ///
    /// # Errors
    /// The name that is none of these.
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

/// How the destination is understood.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Target {
    /// As `cp` does: into it if it is a directory, else it is the copy.
    #[default]
    Cp,
    /// It is the copy, whatever is there.
    Exactly,
}

/// What the manifest is called in the destination: `.bc-copy-manifest.jsonl`.
pub const MANIFEST_NAME: &str = ".bc-copy-manifest.jsonl";

/// Where the manifest of the copy goes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum ManifestPlace {
    /// To [`MANIFEST_NAME`] in the destination, if that is a directory.
    #[default]
    Destination,
    /// To this file.
    File(PathBuf),
    /// There is none.
    None,
}

/// A copy that is asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyOptions {
    /// What to copy: files, directories, links, devices. None of them is followed.
    pub sources: Vec<OsString>,
    /// Where to.
    pub destination: OsString,
    /// How that is understood.
    pub target: Target,
    /// Names that are taken.
    pub on_conflict: OnConflict,
    /// Reading back.
    pub read_back: ReadBack,
    /// What must be on the disk.
    pub durability: Durability,
    /// What is given to the copies beside their content.
    pub preserve: Preserve,
    /// Whether the sharing of blocks (`FICLONE`) is tried.
    pub reflink: When,
    /// Whether holes stay holes; always: whether whatever is zero becomes one.
    pub sparse: When,
    /// The digest that is taken of each file; `None` for no digest at all.
    pub algorithm: Option<Algorithm>,
    /// Where the manifest goes.
    pub manifest: ManifestPlace,
    /// Whether a file that is named for the manifest is replaced, whatever it is, but for one that is
    /// copied. Without this it has to be empty or a manifest of the same destination, which is carried
    /// on. A device or FIFO is written to.
    pub replace_manifest: bool,
    /// Whether a file that cannot be given all that its source has fails.
    pub strict: bool,
    /// Whether what an interrupted run has done is done again.
    pub restart: bool,
    /// Whether nothing is written, only told.
    pub dry_run: bool,
    /// Where journals and the key that they are known by are kept; `None`: nowhere, and an
    /// interrupted copy cannot be gone on from.
    pub state: Option<PathBuf>,
    /// Threads that copy, at least 1.
    pub workers: usize,
    /// Which tables of descriptors the threads use that copy, where nothing is forced to the disk.
    pub tables: Tables,
    /// Threads that walk.
    pub walk_workers: Workers,
    /// Which files.
    pub walk: WalkOptions,
    /// The present, in nanoseconds since 1970, for the manifest's header.
    pub now: i64,
    /// For the manifest's header: the host's name, and the machine's id.
    pub host: Option<String>,
    /// The machine's id, as `/etc/machine-id` has it.
    pub machine: Option<String>,
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
            tables: Tables::SHARED,
            walk_workers: 1.into(),
            walk: WalkOptions::default(),
            now: 0,
            host: None,
            machine: None,
        }
    }
}
