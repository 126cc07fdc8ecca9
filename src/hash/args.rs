//! The command line of `bc hash`.

use std::ffi::OsString;
use std::path::PathBuf;

use bc_digest::Algorithm;
use bc_walk::Shard;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::parse::args::{Common, Configurable, WalkArgs};

/// Examples and exit codes, and the algorithms as bc-digest's table has them.
fn after() -> String {
    let names: Vec<&str> = Algorithm::ALL.iter().map(|a| a.name()).collect();
    AFTER.replace("ALGORITHMS", &names.join(" "))
}

const AFTER: &str = "\
Examples:
  bc hash DIR                                   SHA-256 of all files, sorted
  bc hash --type=xxh128 --output=tree.xxh128 DIR
  bc hash check tree.xxh128
  bc hash diff old.sha256 new.sha256

The subcommand is optional: `bc hash DIR` means `bc hash hash DIR`.
Algorithms: ALGORITHMS. md5 and sha1 are no longer secure; xxHash, the CRCs, bsd and sysv never were.

Exit codes: 0 success and nothing differs, 1 something differs or could not be read, 2 usage error or the \
request could not be carried out, 130 or 143 ended by SIGINT or SIGTERM.";

/// Hash trees, check manifests, compare manifests
#[derive(Parser)]
#[command(name = "hash", version, after_long_help = after(), after_help = "The subcommand is optional: 'bc hash DIR' means 'bc hash hash DIR'.", max_term_width = 100)]
pub struct HashCli {
    /// Subcommand
    #[command(subcommand)]
    pub command: HashCommand,
}

impl HashCli {
    /// Takes standard input where nothing is named, if there is one, as all programs of the kind
    /// do.
    pub fn take_stdin(&mut self, is_there: fn() -> bool) {
        let named = match &mut self.command {
            HashCommand::Hash(args) if args.walk.files_from.is_none() => &mut args.paths,
            HashCommand::Check(args) => &mut args.manifests,
            _ => return,
        };
        if named.is_empty() && is_there() {
            named.push("-".into());
        }
    }
}

/// Subcommands.
#[derive(Subcommand)]
pub enum HashCommand {
    /// Print digests of files and trees, sorted by path (the default)
    Hash(Box<HashArgs>),
    /// Read manifests and verify the files they list
    Check(Box<CheckArgs>),
    /// Compare two manifests without reading any file
    Diff(Box<DiffArgs>),
}

/// Manifest formats that `hash` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HashFormat {
    /// As sha256sum prints
    Gnu,
    /// SHA256 (path) = hex
    Bsd,
    /// One JSON document
    Json,
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values
    Csv,
}

/// Arguments of `bc hash hash`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc hash /srv/archive > archive.sha256
  bc hash --type=sha256,md5 --format=bsd a.iso b.iso
  find . -newer stamp -type f -print0 | bc hash --files-from=- -0
  bc hash --relative --output=SUMS DIR && (cd DIR && sha256sum -c ../SUMS)
  bc hash --dirs --relative /srv | head -n 1   to compare a tree across hosts")]
pub struct HashArgs {
    /// Algorithms, separated by commas; each file is read only once
    ///
    /// Lists can be checked by each algorithm's usual program: xxhsum reads xxh128 lists since version 0.8.0, and
    /// xxh3 lists since 0.8.3 (since 0.8.1 with --format=bsd).
    #[arg(
        add = Configurable,
        short = 't',
        long = "type",
        alias = "algorithm",
        value_name = "ALG[,ALG...]",
        value_delimiter = ',',
        default_value = "sha256"
    )]
    pub algorithms: Vec<Algorithm>,
    /// Output format: gnu, bsd, json, jsonl or csv [default: gnu, or bsd with several algorithms]
    #[arg(add = Configurable, long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    pub format: Option<HashFormat>,
    /// End records with NUL and do not escape names
    #[arg(add = Configurable, short = 'z', long)]
    pub zero: bool,
    /// Print one digest per directory instead of one per file: a single line compares a tree across hosts
    ///
    /// A directory's digest depends on the kinds, names and contents of its entries; 'bc dup dirs' computes
    /// the same one. It covers one record per entry, in bytewise order of the names: f, l or d for a file,
    /// link or directory, the entry's digest in hex, its name and a NUL byte. A directory has no digest if
    /// it cannot be read completely, if something is mounted in it, or if it contains a FIFO, a socket or a
    /// device; nor does any directory above it. These directories are reported, and the exit code is 1.
    #[arg(long, conflicts_with_all = ["shard", "resume", "allow_changed", "files_from"])]
    pub dirs: bool,
    /// Print paths relative to their root
    #[arg(add = Configurable, long)]
    pub relative: bool,
    /// Hash only part I of N of each tree, e.g. 2/8, to divide the work among N hosts
    ///
    /// Each directory belongs to one part, chosen by a hash of its path below the root. Each run reads all
    /// names, but opens only the files of its own part. Merge lists made with --format=jsonl by 'bc
    /// integrity merge', and those made with -z by LC_ALL=C sort -z -m -t ' ' -k 3.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Print a digest even for files that change while they are being read
    ///
    /// Without this option, such a file is reported and the exit code is 1, because its digest would
    /// describe a state that never existed.
    #[arg(long)]
    pub allow_changed: bool,
    /// Write to FILE, which appears complete or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Resume an interrupted run with the same --output
    ///
    /// A run with --output=FILE that lasts 10 seconds or more keeps a journal, FILE.partial, until it is
    /// done. The journal contains the digests of the files read so far; files that have not changed since
    /// (inode, size, mtime, ctime) are not read again. Paths and options must be the same. Without
    /// --resume, an existing journal stays until the new run has recorded more or is done; then it is
    /// renamed.
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Files and directories; '-' is standard input (the default, unless it is a terminal)
    #[arg(value_name = "PATH")]
    pub paths: Vec<OsString>,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc hash check`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc hash check SHA256SUMS
  bc hash check --base=/mnt/backup --quiet archive.sha256
  bc hash check --unlisted --base=DIR DIR.sha256   also report unlisted files
  ssh host cat SHA256SUMS | bc hash check -")]
pub struct CheckArgs {
    /// Algorithm of lines without a tag
    ///
    /// By default, the manifest's name determines the algorithm (SHA256SUMS, tree.xxh128). Otherwise,
    /// algorithms with the digest's length are tried until a file matches; if none does, the most common
    /// one is used.
    #[arg(short = 't', long = "type", alias = "algorithm", value_name = "ALG")]
    pub algorithm: Option<Algorithm>,
    /// Ignore missing files instead of reporting them
    #[arg(long)]
    pub ignore_missing: bool,
    /// Print nothing; the exit code is the answer
    #[arg(long)]
    pub status: bool,
    /// Exit with 1 if a line is improperly formatted
    #[arg(add = Configurable, long)]
    pub strict: bool,
    /// Warn about each improperly formatted line
    #[arg(add = Configurable, short = 'w', long)]
    pub warn: bool,
    /// Also report files below --base (or below the listed directories) that no manifest lists
    #[arg(long)]
    pub unlisted: bool,
    /// Look for the listed files below DIR
    #[arg(long, value_name = "DIR")]
    pub base: Option<PathBuf>,
    /// Records end with NUL
    #[arg(short = 'z', long)]
    pub zero: bool,
    /// Manifests; '-' is standard input (the default, unless it is a terminal)
    #[arg(value_name = "MANIFEST")]
    pub manifests: Vec<OsString>,
    #[command(flatten)]
    pub common: Common,
}

/// Output of `bc hash diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// ADDED path, REMOVED path, MODIFIED path, MOVED old -> new
    Text,
    /// One JSON document
    Json,
}

/// Arguments of `bc hash diff`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc hash diff monday.sha256 tuesday.sha256
  bc hash diff --format=json old.jsonl new.sha256 | jq '.changes[].path'

REMOVED and ADDED mean content that the other manifest does not have under any name. Content that it has under \
another name is MOVED, even if the number of copies differs; several lines then have the same path.

Exit codes: 0 identical, 1 different, 2 a manifest is unreadable or they have no algorithm in common.")]
pub struct DiffArgs {
    /// Output format: text or json
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true
    )]
    pub format: DiffFormat,
    /// Algorithm of lines without a tag
    #[arg(short = 't', long = "type", alias = "algorithm", value_name = "ALG")]
    pub algorithm: Option<Algorithm>,
    /// Records end with NUL
    #[arg(short = 'z', long)]
    pub zero: bool,
    /// Write to FILE, which appears complete or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Old manifest
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// New manifest
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    #[command(flatten)]
    pub common: Common,
}
