//! Options of a tree, and the means of working through it.

use bc_digest::CpuFeatures;
use bc_pool::{Cancel, Start};
use bc_walk::job::{Error, ErrorKind};
use bc_walk::{Entries, FileSystems, Globs, Hidden, IgnoreFiles, Metadata, Symlinks, Workers};
use serde_json::{Map, Value, json};

/// Recording of extended attributes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum XattrPolicy {
    /// None are recorded.
    #[default]
    Skip,
    /// All that can be seen: user attributes, ACLs, capabilities, labels.
    Record,
}

/// Check of a root that looks like an unmounted disk.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RootCheck {
    /// An empty root, or one on another device where nothing matches, is refused.
    #[default]
    Careful,
    /// Any root is accepted.
    Forced,
}

/// Treatment of a file system, or a file, that was mounted below the root when it was recorded and
/// is missing at a verification, or of another one there of which nothing matches. The [check of
/// the root](RootCheck) can be set to ignore them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MissingMounts {
    /// They are reported, and all else is compared.
    #[default]
    Report,
    /// The verification is refused, as that of a root that looks unmounted is: for callers that
    /// write where files are missing.
    Refuse,
}

/// Selection of the entries of a manifest: recorded in it, so that every later command looks at the
/// same ones.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TreeOptions {
    /// Names that start with a dot.
    pub hidden: Hidden,
    /// Symbolic links below the root.
    pub symlinks: Symlinks,
    /// Other file systems.
    pub file_systems: FileSystems,
    /// Levels below the root.
    pub max_depth: Option<u32>,
    /// Globs of files to list.
    pub include: Vec<Vec<u8>>,
    /// Globs of entries to leave out.
    pub exclude: Vec<Vec<u8>>,
    /// Smallest file, in bytes.
    pub min_size: u64,
    /// Largest file, in bytes.
    pub max_size: Option<u64>,
    /// Time that files were modified after, in nanoseconds since 1970.
    pub newer: Option<i64>,
    /// Time that files were modified before, in nanoseconds since 1970.
    pub older: Option<i64>,
    /// `.gitignore` and `.ignore` files.
    pub ignore_files: IgnoreFiles,
    /// Files only (as imported manifests have it), or everything.
    pub entries: Entries,
    /// Extended attributes.
    pub xattrs: XattrPolicy,
}

bc_fs::setters! {
    TreeOptions:
    hidden: Hidden,
    symlinks: Symlinks,
    file_systems: FileSystems,
    max_depth: Option<u32>,
    include: Vec<Vec<u8>>,
    exclude: Vec<Vec<u8>>,
    min_size: u64,
    max_size: Option<u64>,
    newer: Option<i64>,
    older: Option<i64>,
    ignore_files: IgnoreFiles,
    entries: Entries,
    xattrs: XattrPolicy,
}

impl Default for TreeOptions {
    fn default() -> TreeOptions {
        TreeOptions {
            hidden: Hidden::Include,
            symlinks: Symlinks::Skip,
            file_systems: FileSystems::Cross,
            max_depth: None,
            include: Vec::new(),
            exclude: Vec::new(),
            min_size: 0,
            max_size: None,
            newer: None,
            older: None,
            ignore_files: IgnoreFiles::Off,
            entries: Entries::All,
            xattrs: XattrPolicy::Skip,
        }
    }
}

impl TreeOptions {
    /// Takes the selection of a walk with these options, with all kinds of entries.
    pub fn of_walk(walk: &bc_walk::WalkOptions) -> TreeOptions {
        TreeOptions {
            hidden: walk.hidden,
            symlinks: walk.symlinks,
            file_systems: walk.file_systems,
            max_depth: walk.max_depth,
            include: walk.include.patterns().to_vec(),
            exclude: walk.exclude.patterns().to_vec(),
            min_size: walk.min_size,
            max_size: walk.max_size,
            newer: walk.newer,
            older: walk.older,
            ignore_files: walk.ignore_files,
            ..TreeOptions::default()
        }
    }

    /// Converts the options for the walk.
    ///
    /// # Errors
    /// Fails if a glob cannot be parsed.
    pub(crate) fn to_walk(&self) -> Result<bc_walk::WalkOptions, Error> {
        let globs = |patterns: &[Vec<u8>]| {
            Globs::new(patterns).map_err(|error| Error::usage(error.to_string()))
        };
        Ok(bc_walk::WalkOptions::default()
            .hidden(self.hidden)
            .symlinks(self.symlinks)
            .file_systems(self.file_systems)
            .max_depth(self.max_depth)
            .include(globs(&self.include)?)
            .exclude(globs(&self.exclude)?)
            .min_size(self.min_size)
            .max_size(self.max_size)
            .newer(self.newer)
            .older(self.older)
            .ignore_files(self.ignore_files)
            .metadata(Metadata::Full)
            .entries(self.entries))
    }

    /// Returns every option as the header keeps it, so that a later change of a default does not
    /// change the meaning of a manifest.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let texts = |patterns: &[Vec<u8>]| -> Vec<String> {
            // Patterns are UTF-8, or they would not have compiled.
            patterns
                .iter()
                .map(|p| String::from_utf8_lossy(p).into_owned())
                .collect()
        };
        let options = json!({
            "hidden": self.hidden == Hidden::Include,
            "follow_symlinks": self.symlinks == Symlinks::Follow,
            "one_file_system": self.file_systems == FileSystems::One,
            "max_depth": self.max_depth,
            "include": texts(&self.include),
            "exclude": texts(&self.exclude),
            "min_size": self.min_size,
            "max_size": self.max_size,
            "ignore_files": self.ignore_files == IgnoreFiles::Honour,
            "entries": if self.entries == Entries::All { "all" } else { "files" },
            "xattrs": self.xattrs == XattrPolicy::Record,
        });
        let mut options = match options {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        // Versions that do not know them read the manifests without them.
        for (key, time) in [("newer", self.newer), ("older", self.older)] {
            if let Some(time) = time {
                options.insert(key.to_owned(), json!(time));
            }
        }
        options
    }

    /// Reads the options that [`to_json`](Self::to_json) wrote. Absent options have their defaults;
    /// options that this version does not know, since they may change the set of entries, and
    /// values of another type are errors.
    pub(crate) fn from_json(map: &Map<String, Value>) -> Result<TreeOptions, Error> {
        let mut options = TreeOptions::default();
        for (key, value) in map {
            let known = options.set(key, value);
            if known.is_none() {
                let text =
                    format!("the manifest was made with an option unknown here: {key}={value}");
                return Err(Error::new(ErrorKind::Manifest, text));
            }
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &Value) -> Option<()> {
        fn pick<T>(value: &Value, yes: T, no: T) -> Option<T> {
            Some(if value.as_bool()? { yes } else { no })
        }
        fn optional(value: &Value) -> Option<Option<u64>> {
            if value.is_null() {
                Some(None)
            } else {
                value.as_u64().map(Some)
            }
        }
        fn patterns(value: &Value) -> Option<Vec<Vec<u8>>> {
            let texts = value.as_array()?.iter();
            texts
                .map(|text| Some(text.as_str()?.as_bytes().to_vec()))
                .collect()
        }
        match key {
            "hidden" => self.hidden = pick(value, Hidden::Include, Hidden::Skip)?,
            "follow_symlinks" => self.symlinks = pick(value, Symlinks::Follow, Symlinks::Skip)?,
            "one_file_system" => {
                self.file_systems = pick(value, FileSystems::One, FileSystems::Cross)?;
            }
            "max_depth" => {
                self.max_depth = match optional(value)? {
                    Some(depth) => Some(u32::try_from(depth).ok()?),
                    None => None,
                };
            }
            "include" => self.include = patterns(value)?,
            "exclude" => self.exclude = patterns(value)?,
            "min_size" => self.min_size = value.as_u64()?,
            "max_size" => self.max_size = optional(value)?,
            "newer" => self.newer = Some(value.as_i64()?),
            "older" => self.older = Some(value.as_i64()?),
            "ignore_files" => {
                self.ignore_files = pick(value, IgnoreFiles::Honour, IgnoreFiles::Off)?;
            }
            "entries" => {
                self.entries = match value.as_str()? {
                    "all" => Entries::All,
                    "files" => Entries::Files,
                    _ => return None,
                };
            }
            "xattrs" => self.xattrs = pick(value, XattrPolicy::Record, XattrPolicy::Skip)?,
            _ => return None,
        }
        Some(())
    }
}

/// Amount of data to read, known once the tree is walked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Job {
    /// Number of files.
    pub files: u64,
    /// Bytes of the files, if the walk determined them.
    pub bytes: Option<u64>,
    /// Bytes of memory that the state of the tree's entries takes meanwhile.
    pub memory: u64,
}

impl Job {
    /// Makes the amount of a job that walks no tree.
    pub fn new(files: u64, bytes: u64, memory: u64) -> Job {
        Job {
            files,
            bytes: Some(bytes),
            memory,
        }
    }
}

/// Way of reading.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reading {
    /// Threads that read and hash, at least 1.
    pub workers: usize,
    /// Start of the threads: at once or when they are needed.
    pub start: Start,
    /// Options of reading a file.
    pub read: bc_read::ReadOptions,
}

impl Reading {
    /// Reads with so many threads, at least 1; all else by default.
    pub fn new(workers: usize) -> Reading {
        Reading {
            workers,
            start: Start::default(),
            read: bc_read::ReadOptions::default(),
        }
    }
}

bc_fs::setters! {
    Reading:
    start: Start,
    read: bc_read::ReadOptions,
}

/// The means for working through a tree.
#[non_exhaustive]
pub struct Work<'a> {
    /// Threads that the walk may use.
    pub walk_workers: Workers,
    /// Called at most once a command, after the walk and before anything is read or written. A job
    /// that it refuses, with a reason, is not done.
    pub reading: &'a dyn Fn(Job) -> Result<Reading, String>,
    /// Instruction sets to use.
    pub cpu: CpuFeatures,
    /// Ends the work early.
    pub cancel: &'a Cancel,
    /// True if the bytes of a [`Job`] are worth a call for each of a few files, since the progress
    /// of reading is shown.
    pub shows_bytes: bool,
    /// Counts files and bytes as they are read.
    pub progress: &'a bc_hash::HashProgress,
    /// Observer of the finished walk.
    pub observer: Option<WalkObserver<'a>>,
}

impl<'a> Work<'a> {
    /// Makes the means with these values, all available instruction sets, and no observer.
    pub fn new(
        walk_workers: Workers,
        reading: &'a dyn Fn(Job) -> Result<Reading, String>,
        cancel: &'a Cancel,
        progress: &'a bc_hash::HashProgress,
    ) -> Work<'a> {
        Work {
            walk_workers,
            reading,
            cpu: CpuFeatures::detect(),
            cancel,
            shows_bytes: false,
            progress,
            observer: None,
        }
    }
}

bc_fs::setters! {
    Work<'a>:
    cpu: CpuFeatures,
    shows_bytes: bool,
    observer: Option<WalkObserver<'a>>,
}

/// Looks at a finished walk, before anything is read.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct WalkObserver<'a> {
    /// Detail that the walk keeps of entries that it leaves out.
    pub skipped: bc_walk::SkippedDetail,
    /// Called with the listing of the walk.
    pub walked: &'a dyn Fn(&bc_walk::Listing),
}

impl<'a> WalkObserver<'a> {
    /// Makes an observer of the two.
    pub fn new(
        skipped: bc_walk::SkippedDetail,
        walked: &'a dyn Fn(&bc_walk::Listing),
    ) -> WalkObserver<'a> {
        WalkObserver { skipped, walked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_the_header() {
        let options = TreeOptions {
            hidden: Hidden::Skip,
            symlinks: Symlinks::Follow,
            file_systems: FileSystems::One,
            max_depth: Some(3),
            include: vec![b"*.c".to_vec()],
            exclude: vec![b"\xc3\xa9/**".to_vec(), b"x".to_vec()],
            min_size: 1,
            max_size: Some(u64::MAX),
            newer: Some(-1),
            older: Some(i64::MAX),
            ignore_files: IgnoreFiles::Honour,
            entries: Entries::Files,
            xattrs: XattrPolicy::Record,
        };
        assert_eq!(TreeOptions::from_json(&options.to_json()).unwrap(), options);
        let default = TreeOptions::default();
        assert_eq!(TreeOptions::from_json(&default.to_json()).unwrap(), default);
        assert_eq!(TreeOptions::from_json(&Map::new()).unwrap(), default);
    }

    #[test]
    fn unknown_options_and_types_are_refused() {
        for (key, value) in [
            ("sparse", json!(true)),
            ("hidden", json!(1)),
            ("max_depth", json!(-1)),
            ("include", json!("*.c")),
            ("entries", json!("some")),
        ] {
            let map = Map::from_iter([(key.to_string(), value)]);
            let error = TreeOptions::from_json(&map).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}
