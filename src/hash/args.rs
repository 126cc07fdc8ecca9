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
  bc hash DIR                              as find DIR -type f | xargs sha256sum, sorted, in parallel
  bc hash --type=xxh128 --output=tree.xxh128 DIR
  bc hash check tree.xxh128
  bc hash diff old.sha256 new.sha256

The subcommand may be left out: `bc hash DIR` means `bc hash hash DIR`.
Algorithms: ALGORITHMS. md5 and sha1 no longer resist an attacker; the others of 8 bytes and less never did.

Exit codes: 0 all done and the same, 1 something differs or could not be read, 2 the request could not be \
carried out, 130 or 143 ended by SIGINT or SIGTERM.";

/// Hash trees, check manifests, compare manifests
#[derive(Parser)]
#[command(name = "hash", version, after_long_help = after(), after_help = "The command may be left out: 'bc hash DIR' means 'bc hash hash DIR'.", max_term_width = 100)]
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
  bc hash --relative --output=SHA256SUMS DIR && (cd DIR && sha256sum -c ../SHA256SUMS)
  bc hash --dirs --relative /srv | head -n 1          the same on two hosts: the trees are equal")]
pub struct HashArgs {
    /// Algorithms, separated by commas; each file is read once
    ///
    /// The program of each algorithm checks the lists. xxhsum does so for xxh128 from version 0.8.0 on, and for xxh3
    /// from 0.8.3 on, or from 0.8.1 on with --format=bsd.
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
    /// gnu, bsd, json, jsonl or csv [default: gnu, or bsd with several algorithms]
    #[arg(add = Configurable, long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    pub format: Option<HashFormat>,
    /// End records with NUL and do not escape names
    #[arg(add = Configurable, short = 'z', long)]
    pub zero: bool,
    /// Print a digest for each directory instead of each file: one line is enough to compare a tree on two
    /// hosts
    ///
    /// A directory's digest depends on the kinds, names and contents of its entries, and is the one that 'bc
    /// dup dirs' computes. It covers one record for each entry, in bytewise order of the names: f, l or d for
    /// a file, link or directory, the entry's digest in hex, its name and a NUL byte. A directory has no
    /// digest if it cannot be read completely, if something is mounted in it, or if it contains a FIFO, a
    /// socket or a device; neither does any directory above it. They are reported, and the exit code is 1.
    #[arg(long, conflicts_with_all = ["shard", "resume", "allow_changed", "files_from"])]
    pub dirs: bool,
    /// Print paths relative to their root
    #[arg(add = Configurable, long)]
    pub relative: bool,
    /// Only part I of N of each tree, e.g. 2/8, for N hosts that read one tree together
    ///
    /// Every directory belongs to one part, by a hash of its path below the root. Each run reads all
    /// names, but opens only the files of its own part. Lists made with --format=jsonl are put together by
    /// 'bc integrity merge', those made with -z by LC_ALL=C sort -z -m -t ' ' -k 3.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Give a digest to files that change while they are read
    ///
    /// Without it such a file is reported and the exit code is 1: its digest would be of a state that
    /// never existed.
    #[arg(long)]
    pub allow_changed: bool,
    /// Write to FILE, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Continue an interrupted run with the same --output
    ///
    /// A run with --output=FILE that lasts 10 seconds keeps a journal, FILE.partial, until it is done. It
    /// holds the digests of the files read so far; those unchanged since (inode, size, mtime, ctime) are not
    /// read again. Paths and options have to be the same. Without --resume an existing journal stays until
    /// the new run has recorded more itself or is done, and is then renamed.
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Files and directories; '-' is standard input, which is also read if no path is given and it is not a terminal
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
  bc hash check --unlisted --base=DIR DIR.sha256      also lists files that the manifest lacks
  ssh host cat SHA256SUMS | bc hash check -")]
pub struct CheckArgs {
    /// Algorithm of lines without a tag
    ///
    /// Without it the algorithm is that of the manifest's name (SHA256SUMS, tree.xxh128), else the one for
    /// the digest's length that matches a file, else the usual one for it.
    #[arg(short = 't', long = "type", alias = "algorithm", value_name = "ALG")]
    pub algorithm: Option<Algorithm>,
    /// Do not fail or report for missing files
    #[arg(long)]
    pub ignore_missing: bool,
    /// Print nothing; use the exit code
    #[arg(long)]
    pub status: bool,
    /// Exit 1 for improperly formatted lines
    #[arg(add = Configurable, long)]
    pub strict: bool,
    /// Warn about each improperly formatted line
    #[arg(add = Configurable, short = 'w', long)]
    pub warn: bool,
    /// Report files below --base (or below the listed directories) that no manifest lists
    #[arg(long)]
    pub unlisted: bool,
    /// Look for the listed paths below DIR
    #[arg(long, value_name = "DIR")]
    pub base: Option<PathBuf>,
    /// Records end with NUL
    #[arg(short = 'z', long)]
    pub zero: bool,
    /// Manifests; '-' is standard input, which is also read if no path is given and it is not a terminal
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
  bc hash diff --format=json old.jsonl new.sha256 | jq '.changes[] | select(.change == \"MODIFIED\")'

REMOVED and ADDED mean content that the other manifest has under no name. Content under another \
name is MOVED, also where the numbers of copies differ: then several lines have the same path.

Exit codes: 0 same, 1 different, 2 unreadable, or no algorithm in common.")]
pub struct DiffArgs {
    /// text or json
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
    /// Write to FILE, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Manifest of before
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// Manifest of after
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    #[command(flatten)]
    pub common: Common,
}
