//! Options that all applets share, and their parsers.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use bc_fs::Size;
use bc_pool::Threads;
use bc_read::Choice as Reader;
use bc_walk::Shard;
use clap::builder::{ArgExt, OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, ValueEnum};

use crate::parse::time::TimeBound;

/// The mark of an option that a file or the environment may set.
#[derive(Clone, Copy, Debug)]
pub struct Configurable;

impl ArgExt for Configurable {}

/// The mark of an option that one subcommand takes from the command line alone, although others let
/// it be set.
#[derive(Clone, Copy, Debug)]
pub struct CommandLineOnly;

impl ArgExt for CommandLineOnly {}

/// Returns true if a file or the environment may set the option.
pub fn is_configurable(arg: &Arg) -> bool {
    arg.get::<Configurable>().is_some() && arg.get::<CommandLineOnly>().is_none()
}

/// A three-way switch whose `auto` looks at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// Only on a terminal
    Auto,
    /// Also in pipes and files
    Always,
    /// Never
    Never,
}

/// Format of diagnostics on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object per line
    Json,
}

/// Options that every subcommand understands.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// Threads: auto, mono (one), compute (one per core), io (one per logical CPU) or a number up to 1024
    ///
    /// auto starts with as many threads as the known work needs and adds more as files and bytes turn up:
    /// at most one per logical CPU, or up to 128 while threads wait, as long as more threads get more done.
    /// The latter applies to walks, to copy and prune, and to small files on a file system that does not
    /// report in advance that a call will wait (FUSE, overlays). Results never depend on the number of
    /// threads. Affinity masks and CPU quotas are respected.
    #[arg(
        add = Configurable,
        short = 'j',
        long,
        alias = "jobs",
        value_name = "N",
        default_value = "auto"
    )]
    pub threads: Threads,
    /// Method for reading files: auto, sync (plain calls) or uring (io_uring)
    ///
    /// auto uses plain calls for cached files and io_uring for all others. uring is an error if the kernel
    /// refuses it. File systems that cannot report which files are cached (FUSE, overlays) are read by
    /// plain calls in any case.
    #[arg(
        add = Configurable,
        long,
        value_name = "WHICH",
        default_value = "auto",
        value_parser = one_of(Reader::ALL, Reader::name),
        hide_possible_values = true
    )]
    pub io: Reader,
    /// Limit on memory for buffers and per-file state, e.g. 256M
    ///
    /// A job that does not fit is refused before anything is changed or printed, and the message states the
    /// smallest budget that works.
    #[arg(add = Configurable, long, value_name = "SIZE")]
    pub memory_budget: Option<Size>,
    /// Limit on bytes per second read, or written by a copy, e.g. 20M: keeps the disk usable for others
    ///
    /// The limit applies to all threads together, averaged over pieces of files. The bytes of a copy count
    /// as they are written, once per destination.
    #[arg(add = Configurable, long, value_name = "SIZE")]
    pub rate: Option<Size>,
    /// Status line on stderr: auto (on a terminal only), always or never
    ///
    /// With --log-format=json every line is an object, and no status line is shown.
    #[arg(
        add = Configurable,
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub progress: Choice,
    /// Colours: auto (on a terminal only), always or never
    #[arg(
        add = Configurable,
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub color: Choice,
    /// Print only results and errors
    #[arg(add = Configurable, short, long)]
    pub quiet: bool,
    /// Print more: phases with counts and times (-v), decisions with their reasons (-vv)
    ///
    /// -vv also prints where settings come from, which instruction sets and readers are used, how the
    /// number of threads was chosen, which properties of each file system are assumed, and each path that
    /// was left out, with the reason.
    #[arg(add = Configurable, short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Format of messages on stderr: text, or json with one object per line
    #[arg(
        add = Configurable,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true
    )]
    pub log_format: LogFormat,
    /// Write run metrics to FILE at the end: Prometheus text if it ends in .prom, else JSON
    #[arg(add = Configurable, long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Configuration file instead of $XDG_CONFIG_HOME/bc/config.toml
    ///
    /// Its keys are the names of options; a table such as `[hash]` contains those of one command.
    /// Environment variables such as BC_THREADS override the file, and the command line overrides both.
    /// Options that say what to do, change the meaning of a check or weaken a safeguard can only be given
    /// on the command line.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print this command tree as JSON and exit
    #[arg(long)]
    pub describe: bool,
}

/// Options that choose which files are visited.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Which files")]
pub struct WalkArgs {
    /// Skip names that start with a dot
    #[arg(add = Configurable, long, overrides_with = "hidden")]
    pub no_hidden: bool,
    /// Include hidden names (the default)
    #[arg(add = Configurable, long, overrides_with = "no_hidden")]
    pub hidden: bool,
    /// Only files that match GLOB (repeatable); with '/', matched against the path below the root
    ///
    /// '*.jpg' matches names anywhere, 'raw/*.jpg' only in the directory raw at the top, '**/raw/*' in any
    /// directory raw, 'raw/' only directories; [a-z], [!a-z], {one,two} and \ work as in a shell.
    /// Directories are entered regardless of their names.
    #[arg(add = Configurable, long, value_name = "GLOB", value_parser = pattern())]
    pub include: Vec<OsString>,
    /// Leave out files and entire directories that match GLOB (repeatable); overrides --include
    ///
    /// Patterns work as for --include. A directory that matches is not even read.
    #[arg(add = Configurable, long, value_name = "GLOB", value_parser = pattern())]
    pub exclude: Vec<OsString>,
    /// Only files of at least SIZE
    #[arg(add = Configurable, long, value_name = "SIZE")]
    pub min_size: Option<Size>,
    /// Only files of at most SIZE
    #[arg(add = Configurable, long, value_name = "SIZE")]
    pub max_size: Option<Size>,
    /// Only files modified after TIME: a date, a time or an age (2d, 12h, 30m)
    ///
    /// 2024-05-31 means the start of that day in UTC; 2024-05-31T18:00:00+02:00 has a time and an offset;
    /// @N is N seconds since 1970, so --newer=@$(stat -c %.9Y FILE) means modified after FILE. Directories
    /// and links are not filtered.
    #[arg(long, value_name = "TIME", alias = "changed-within")]
    pub newer: Option<TimeBound>,
    /// Only files modified before TIME, written as for --newer
    #[arg(long, value_name = "TIME", alias = "changed-before")]
    pub older: Option<TimeBound>,
    /// Honour .gitignore and .ignore files
    ///
    /// Their lines mean the same as in git. An invalid line is ignored and reported, and counts as a
    /// failure, as it may have been intended to leave out more.
    #[arg(add = Configurable, long)]
    pub ignore_files: bool,
    /// Only entries at most N levels below a root, like find -maxdepth: 1 means those directly in it
    ///
    /// 0 means only the paths given on the command line. Paths from --files-from are taken at any depth.
    #[arg(add = Configurable, long, value_name = "N")]
    pub max_depth: Option<u32>,
    /// Take exactly the paths listed in FILE, one per line ('-' is stdin), without a walk
    ///
    /// A path that is listed twice counts once.
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,
    /// Paths in the list of --files-from are separated by NUL bytes
    #[arg(short = '0', long = "null", requires = "files_from")]
    pub null: bool,
    /// Follow symbolic links; each directory is visited once
    #[arg(add = Configurable, long)]
    pub follow_symlinks: bool,
    /// Stay on the file system of each root
    ///
    /// /proc, /sys and similar file systems are never entered unless given as a PATH.
    #[arg(add = Configurable, short = 'x', long)]
    pub one_file_system: bool,
    /// Accepted as other programs have it: every walk goes into directories
    #[arg(
        short = 'r',
        short_alias = 'R',
        long,
        alias = "recurse",
        hide = true,
        action = clap::ArgAction::Count
    )]
    pub recursive: u8,
}

impl WalkArgs {
    /// Returns the files that list the paths to take.
    pub fn inputs(&self) -> Vec<&OsStr> {
        let list = self.files_from.as_deref().map(Path::as_os_str);
        list.into_iter().collect()
    }

    /// Checks that the parts of a tree are chosen by the same files, whenever each is made.
    ///
    /// # Errors
    /// A time that is reckoned from the start of each run.
    pub fn check_shard(&self, shard: Option<Shard>) -> Result<(), String> {
        let bounds = [("--newer", &self.newer), ("--older", &self.older)];
        let span = |(name, bound): (&'static str, &Option<TimeBound>)| {
            bound.as_ref()?.is_span().then_some(name)
        };
        match (shard, bounds.into_iter().find_map(span)) {
            (Some(_), Some(name)) => Err(format!(
                "{name}: how long ago differs from one part of --shard to the next; give a date or a time"
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the index of the first argument that is neither an option nor an option's value.
pub fn first_positional(command: &clap::Command, args: &[OsString]) -> Option<usize> {
    let takes_value = |test: &dyn Fn(&Arg) -> bool| {
        command
            .get_subcommands()
            .flat_map(|c| c.get_arguments())
            .any(|a| test(a) && a.get_action().takes_values() && !takes_equals_only(a))
    };
    let mut at = 0;
    while at < args.len() {
        let bytes = args[at].as_encoded_bytes();
        if bytes == b"--" {
            return None; // what follows are paths, never a subcommand
        }
        if let Some(long) = bytes.strip_prefix(b"--") {
            if !long.contains(&b'=')
                && takes_value(&|a| {
                    let also = a.get_all_aliases().unwrap_or_default();
                    let mut names = a.get_long().into_iter().chain(also);
                    names.any(|name| name.as_bytes() == long)
                })
            {
                at += 1;
            }
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            // In a cluster of short options only the last can have its value in the next argument.
            let last = char::from(bytes[bytes.len() - 1]);
            let first_with_value = bytes[1..].iter().position(|b| {
                let short = char::from(*b);
                takes_value(&|a| a.get_short() == Some(short))
            });
            let is_last = first_with_value == Some(bytes.len() - 2);
            if is_last && takes_value(&|a| a.get_short() == Some(last)) {
                at += 1;
            }
        } else {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Returns true if the option's value is optional, and so is only taken as `--name=VALUE`.
fn takes_equals_only(arg: &Arg) -> bool {
    arg.is_require_equals_set()
}

/// Returns the glob options as the walk wants them.
pub fn globs(patterns: &[OsString]) -> Result<bc_walk::Globs, String> {
    let raw: Vec<Vec<u8>> = patterns
        .iter()
        .map(|p| p.as_encoded_bytes().to_vec())
        .collect();
    bc_walk::Globs::new(&raw).map_err(|error| error.to_string())
}

/// Parser of a glob; a wrong one is reported to the source that gave it: the command line, a line
/// of the configuration or a variable.
fn pattern() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|pattern| {
        bc_walk::Globs::new(&[pattern.as_encoded_bytes().to_vec()]).map(|_| pattern.clone())
    })
}

/// Parser of one of the values that an engine has a name for.
pub fn one_of<T, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.map(name)).try_map(move |given| {
        let found = all.into_iter().find(|one| name(*one) == given);
        found.ok_or("no such value")
    })
}

/// Returns true if this path argument is the standard stream.
pub fn is_dash(path: &OsStr) -> bool {
    path == "-"
}
