//! The command line of `bc integrity`.

use std::ffi::OsString;
use std::path::PathBuf;

use bc_digest::Algorithm;
use bc_fleet::sql::{Engine, Query};
use bc_integrity::fields::CompareMode;
use bc_integrity::report::ChangeFormat;
use bc_integrity::{ChangeLimit, Foreign, Sample};
use bc_walk::Shard;
use clap::{Args, Parser, Subcommand};

use super::output::DifferencesFormat;
use super::restore::RestoreArgs;
use crate::parse::args::{Common, Configurable, WalkArgs, one_of};

const AFTER: &str = "\
Examples:
  bc integrity manifest --output=/var/lib/bc/srv.jsonl.zst /srv
  bc integrity verify /srv /var/lib/bc/srv.jsonl.zst
  bc integrity update --reread=5% /srv /var/lib/bc/srv.jsonl.zst
  bc integrity diff monday.jsonl friday.jsonl
  bc integrity restore --from=/mnt/backup /srv /var/lib/bc/srv.jsonl.zst

Exit codes: 0 same, 1 something differs or could not be read, 2 refused or impossible, 3 damage \
suspected (content changed while size and time did not), 130 or 143 ended by a signal.";

/// Record trees, verify them, tell bitrot from edits
#[derive(Parser)]
#[command(name = "integrity", version, after_long_help = AFTER, after_help = "Example: bc integrity manifest --output=srv.jsonl /srv && bc integrity verify /srv srv.jsonl", max_term_width = 100)]
pub struct IntegrityCli {
    /// Subcommand
    #[command(subcommand)]
    pub command: IntegrityCommand,
}

/// Subcommands.
#[derive(Subcommand)]
pub enum IntegrityCommand {
    /// Record a tree: one JSON line per entry
    Manifest(Box<ManifestArgs>),
    /// Compare a tree with its manifest
    Verify(Box<VerifyArgs>),
    /// Compare two manifests, two directories, or one of each
    Diff(Box<DiffArgs>),
    /// Refresh a manifest in place, reading only what changed
    Update(Box<UpdateArgs>),
    /// Record single files as they are now, after you judged them right
    Accept(Box<AcceptArgs>),
    /// Write a manifest in the format of another tool
    Export(Box<ExportArgs>),
    /// Make a manifest from the file of another tool
    Import(Box<ImportArgs>),
    /// Repair a tree from copies of it
    Restore(Box<RestoreArgs>),
    /// Merge the manifests of the parts made with --shard
    Merge(Box<MergeArgs>),
    /// Print SQL queries over many manifests, for DuckDB or Spark
    Sql(Box<SqlArgs>),
}

/// Arguments of `bc integrity manifest`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity manifest /srv > srv.jsonl
  bc integrity manifest --algorithm=blake3 --xattrs -o srv.jsonl.zst /srv")]
pub struct ManifestArgs {
    /// Digest of the files
    #[arg(add = Configurable, short = 't', long, alias = "type", value_name = "ALG", default_value = "sha256")]
    pub algorithm: Algorithm,
    /// Record extended attributes, ACLs and capabilities too
    #[arg(add = Configurable, long)]
    pub xattrs: bool,
    /// Write to FILE, which appears whole or not at all; a name in .zst is compressed
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only part I of N of the tree, e.g. 2/8, for N hosts that read one tree together
    ///
    /// Every directory belongs to one part, by a hash of its path. Each run reads all names, but looks
    /// only at the files of its own part. 'bc integrity merge' puts the N manifests together.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Continue an interrupted run with the same --output
    ///
    /// A run with --output=FILE that lasts 10 seconds keeps a journal, FILE.partial, until it is done. It
    /// holds the digests of the files read so far; those unchanged since (inode, size, mtime, ctime) are not
    /// read again. ROOT and options have to be the same. Without --resume an existing journal stays until the
    /// new run has recorded more itself or is done, and is then renamed.
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// The directory to record
    #[arg(value_name = "ROOT")]
    pub root: OsString,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity verify`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity verify /srv srv.jsonl                 silent if nothing differs
  bc integrity verify --mode=meta /srv srv.jsonl     quick: reads no content
  bc integrity verify --sample=5% /srv srv.jsonl     reads a random twentieth, and compares all metadata
  bc integrity verify --ignore=uid,gid /mnt/restored srv.jsonl
  bc integrity verify --format=html --output=srv.html /srv srv.jsonl

Lines: + added, - removed, > moved (a renamed directory is one), ~m metadata, ~c modified, !! damaged, \
?? unreadable or not mounted, ~t replaced by another kind.")]
pub struct VerifyArgs {
    /// strict, content or meta
    ///
    /// strict: content and all fields but those that a restore cannot keep; content: kind, content and
    /// link targets; meta: everything but content, which is not read.
    #[arg(
        long,
        value_name = "MODE",
        default_value = "strict",
        value_parser = one_of(CompareMode::ALL, CompareMode::name),
        hide_possible_values = true
    )]
    pub mode: CompareMode,
    /// text, json or html
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        hide_possible_values = true
    )]
    pub format: DifferencesFormat,
    /// Fields that may differ, separated by commas (e.g. uid,gid,mtime); given, it replaces the default
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Read a random part of the files only, by bytes: 5% or 0.05
    ///
    /// Each run reads another part. Files that look changed are read in any case, and so are those that the
    /// manifest notes as damaged or unreadable; all others are compared by metadata only. A large file is read as
    /// a whole or not at all, and no oftener than others: several runs have the part on average.
    #[arg(long, value_name = "PART")]
    pub sample: Option<Sample>,
    /// Stop at the first difference
    #[arg(long)]
    pub fail_fast: bool,
    /// Accept a truncated manifest, or continue where the root or a disk below it looks unmounted
    #[arg(long)]
    pub force: bool,
    /// Write to FILE, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The directory
    #[arg(value_name = "ROOT")]
    pub root: OsString,
    /// Its manifest; '-' is standard input
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity diff`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity diff --format=json old.jsonl.zst new.jsonl.zst
  bc integrity diff /srv /mnt/backup/srv             are these two directories the same?
  bc integrity diff srv.jsonl /mnt/backup/srv

A directory is read as 'bc integrity manifest' reads it, with the algorithm and the filters of the manifest on \
the other side.")]
pub struct DiffArgs {
    /// text, json or html
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        hide_possible_values = true
    )]
    pub format: DifferencesFormat,
    /// Fields that may differ, separated by commas; given, it replaces the default
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Read truncated or altered manifests with a warning
    #[arg(long)]
    pub force: bool,
    /// Write to FILE, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Manifest of before, or a directory; '-' is standard input, for one of the two
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// Manifest of after, or a directory
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity update`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity update /srv srv.jsonl
  bc integrity update --reread=10m /srv srv.jsonl    also re-read the least recently verified files, for 10 minutes
  bc integrity update --reread=20G /srv srv.jsonl    ... or 20 GiB of it, or 5% of it
  bc integrity update -q --reread=30m --max-changed=10% /srv srv.jsonl
                                                     for timers: prints only damaged or unreadable entries,
                                                     records nothing if a tenth has changed")]
pub struct UpdateArgs {
    /// text or json: lines as of verify and diff
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_parser = one_of(ChangeFormat::ALL, ChangeFormat::name),
        hide_possible_values = true
    )]
    pub format: ChangeFormat,
    /// Also read again the least recently verified part: 5%, 20G, 30m or 2h
    ///
    /// Files whose size, times and inode are unchanged are otherwise not read. Reading a part each night
    /// covers the whole tree in time: files tried longest ago come first, and so do those that failed. Every
    /// update reports damage until the file is found intact, and never records it as correct by itself. A
    /// bare number is bytes, from 4096 on: 20 is refused, as it could mean 20% or 20B.
    #[arg(add = Configurable, long, value_name = "PART")]
    pub reread: Option<String>,
    /// Leave the manifest as it is if more than N of its entries, or P% of them, have changed
    ///
    /// Edited, removed, newly damaged and replaced entries count; new files, moves and metadata do not. An update
    /// that finds more prints what it found and how many, replaces nothing, and exits with 1, or 3 if any is
    /// damaged: ransomware and a mistaken 'rm -r' look like this. If the changes were meant, run it once with
    /// --max-changed=100%.
    #[arg(add = Configurable, long, value_name = "N|P%")]
    pub max_changed: Option<ChangeLimit>,
    /// Record the present content of damaged and possibly damaged files as correct
    ///
    /// 'bc integrity accept' does so for single files.
    #[arg(long)]
    pub accept_damaged: bool,
    /// Accept a truncated manifest, or continue where the root or a disk below it looks unmounted or is
    /// another one
    #[arg(long)]
    pub force: bool,
    /// The directory
    #[arg(value_name = "ROOT")]
    pub root: OsString,
    /// Its manifest, rewritten atomically
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity accept`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity accept --dry-run /srv srv.jsonl mail/inbox      what would be recorded
  bc integrity accept /srv srv.jsonl mail/inbox 'a file.txt'

For files that verify reports as damaged and that are right as they are: edits with the old time, damage that \
you accept. Digest and metadata of exactly these files and links are recorded as they are now; the lines of all other \
entries stay byte for byte. Old and new values are printed before the manifest is replaced.

Exit codes: 0 all were accepted; 1 some were not: they are not in the manifest or not in the tree, are directories, or \
could not be read; 2 refused or impossible; 130 or 143 ended by SIGINT or SIGTERM.")]
pub struct AcceptArgs {
    /// text or json
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_parser = one_of(ChangeFormat::ALL, ChangeFormat::name),
        hide_possible_values = true
    )]
    pub format: ChangeFormat,
    /// Only report what would be recorded: the files are read, nothing is written
    #[arg(long)]
    pub dry_run: bool,
    /// Continue where ROOT is another directory or disk than the manifest was made of
    #[arg(long)]
    pub force: bool,
    /// The directory
    #[arg(value_name = "ROOT")]
    pub root: OsString,
    /// Its manifest, rewritten atomically
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    /// Files and links to accept, relative to ROOT, as verify prints them
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<OsString>,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity export`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity export --format=gnu srv.jsonl > SHA256SUMS; cd /srv && sha256sum -c ~/SHA256SUMS
  bc integrity export --format=mtree srv.jsonl > srv.mtree; mtree -p /srv -f srv.mtree")]
pub struct ExportArgs {
    /// gnu, hashdeep or mtree
    #[arg(
        long,
        value_name = "FORMAT",
        value_parser = one_of(Foreign::ALL, Foreign::name),
        hide_possible_values = true
    )]
    pub format: Foreign,
    /// Read a truncated or altered manifest with a warning
    #[arg(long)]
    pub force: bool,
    /// Write to FILE, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The manifest
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity import`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity import --output=srv.jsonl SHA256SUMS; bc integrity verify --mode=content /srv srv.jsonl
  bc integrity import --strip-prefix=/srv --output=srv.jsonl.zst hashdeep.txt")]
pub struct ImportArgs {
    /// Algorithm of the digests, where the lines name none or several
    #[arg(short = 't', long, alias = "type", value_name = "ALG")]
    pub algorithm: Option<Algorithm>,
    /// Directory that all paths lie in, taken off their front
    #[arg(
        long,
        value_name = "DIR",
        default_value = "",
        hide_default_value = true
    )]
    pub strip_prefix: OsString,
    /// Write to FILE, which appears whole or not at all; a name in .zst is compressed
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A GNU, BSD-tagged or hashdeep file; '-' is standard input. At most 1 GiB from a pipe
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity merge`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity manifest --shard=1/2 -o srv.1 /srv    on one host, and on another --shard=2/2 -o srv.2
  bc integrity merge -o srv.jsonl.zst srv.1 srv.2
  bc integrity merge --check incoming/*.jsonl.zst    is each of them whole and unaltered?

A part that is missing, occurs twice, belongs to another tree or was made with other options is refused, and so \
is one that did not read a directory which the others list. A file that was moved meanwhile and is in two \
parts is reported, and the exit code is 1. Lists of 'bc hash --shard=I/N --format=jsonl' are put together too.")]
pub struct MergeArgs {
    /// Check the manifests, those of whole trees too, and write nothing
    #[arg(long, conflicts_with = "output")]
    pub check: bool,
    /// Write to FILE, which appears whole or not at all; a name in .zst is compressed
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The manifests of all parts, in any order
    #[arg(value_name = "MANIFEST", required = true)]
    pub manifests: Vec<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity sql`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity sql --query=duplicates 'fleet/*.jsonl.zst' | duckdb
  bc integrity sql --query=unprotected --param backups='backup/*.jsonl.zst' 'fleet/*.jsonl.zst' | duckdb
  bc integrity sql --query=growth --param from=2026-01-01 --param to=2026-02-01 'fleet/*.jsonl' | duckdb
  bc integrity sql --engine=spark 'hdfs:///fleet/*.jsonl' > views.sql

Queries and their parameters (all have limit and algorithm):
  duplicates   content in more than one place               min_size
  unprotected  content in one place only, or in no backup   min_size, backups
  lost         content of older manifests that is gone      min_size, backups
  decayed      other content, same place, path, size, time; damage that updates found
  moved        content under another path than before
  waste        bytes in copies within a place, by directory min_size
  growth       files and bytes more than at an earlier time from, to
  find         where a digest or a path is                  digest, path

For each root of a machine, and place, the newest complete manifest counts; an update has the date of the \
update. Entries that it records as damaged, unreadable or not mounted do not count as copies. A table of the \
entries that no answer contains comes first (from duckdb, on standard error); duckdb shows whole tables with \
-csv. from=DATE means the start of that day, to=DATE its end. Manifests are claims of the hosts that made \
them: check those that arrive with 'bc integrity merge --check'.")]
pub struct SqlArgs {
    /// duckdb or spark
    #[arg(
        long,
        value_name = "ENGINE",
        default_value = "duckdb",
        value_parser = one_of(Engine::ALL, Engine::name),
        hide_possible_values = true
    )]
    pub engine: Engine,
    /// Query to ask [default: none, only the views]
    #[arg(
        long,
        value_name = "NAME",
        value_parser = one_of(Query::ALL, Query::name),
        hide_possible_values = true
    )]
    pub query: Option<Query>,
    /// Parameter of the query (repeatable)
    #[arg(long = "param", value_name = "KEY=VALUE")]
    pub params: Vec<OsString>,
    /// Files, or patterns in the engine's syntax; bc does not open them
    #[arg(value_name = "MANIFEST", required = true)]
    pub manifests: Vec<OsString>,
    #[command(flatten)]
    pub common: Common,
}
