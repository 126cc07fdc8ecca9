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
use super::protect::ProtectArgs;
use super::restore::RestoreArgs;
use crate::parse::args::{Common, Configurable, WalkArgs, one_of};

const AFTER: &str = "\
Examples:
  bc integrity manifest --output=/var/lib/bc/srv.jsonl.zst /srv
  bc integrity verify /srv /var/lib/bc/srv.jsonl.zst
  bc integrity update --reread=5% /srv /var/lib/bc/srv.jsonl.zst
  bc integrity diff monday.jsonl friday.jsonl
  bc integrity protect /srv /var/lib/bc/srv.jsonl.zst
  bc integrity restore --from=/mnt/backup /srv /var/lib/bc/srv.jsonl.zst

Exit codes: 0 nothing differs, 1 something differs or could not be read, 2 usage error or the request was refused \
or could not be carried out, 3 damage suspected (content changed while size and time did not), 130 or 143 ended by \
a signal.";

/// Record trees, verify them, tell bitrot from edits
#[derive(Parser)]
#[command(name = "integrity", version, after_long_help = AFTER, after_help = "Example: bc integrity manifest -o a.jsonl DIR && bc integrity verify DIR a.jsonl", max_term_width = 100)]
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
    /// Update a manifest in place, reading only changed files
    Update(Box<UpdateArgs>),
    /// Record single files as they are now, once you know that they are correct
    Accept(Box<AcceptArgs>),
    /// Write a manifest in the format of another tool
    Export(Box<ExportArgs>),
    /// Create a manifest from a file of another tool
    Import(Box<ImportArgs>),
    /// Make parity, from which damage is repaired without a copy
    Protect(Box<ProtectArgs>),
    /// Repair a tree from copies of it, or from its parity
    Restore(Box<RestoreArgs>),
    /// Merge the partial manifests made with --shard
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
    /// Digest algorithm
    #[arg(add = Configurable, short = 't', long, alias = "type", value_name = "ALG", default_value = "sha256")]
    pub algorithm: Algorithm,
    /// Also record extended attributes, ACLs and capabilities
    #[arg(add = Configurable, long)]
    pub xattrs: bool,
    /// Write to FILE, which appears complete or not at all, and is compressed if its name ends in .zst
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Record only part I of N of the tree, e.g. 2/8, to divide the work among N hosts
    ///
    /// Each directory belongs to one part, chosen by a hash of its path. Each run reads all names, but
    /// looks only at the files of its own part. 'bc integrity merge' merges the N manifests.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Resume an interrupted run with the same --output
    ///
    /// A run with --output=FILE that lasts 10 seconds or more keeps a journal, FILE.partial, until it is
    /// done. The journal contains the digests of the files read so far; files that have not changed since
    /// (inode, size, mtime, ctime) are not read again. ROOT and options must be the same. Without --resume,
    /// an existing journal stays until the new run has recorded more or is done; then it is renamed.
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Directory to record
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
  bc integrity verify --mode=meta /srv srv.jsonl     fast: reads no content
  bc integrity verify --sample=5% /srv srv.jsonl     reads a random 5%, and compares all metadata
  bc integrity verify --ignore=uid,gid /mnt/restored srv.jsonl
  bc integrity verify --format=html --output=srv.html /srv srv.jsonl

Lines: + added, - removed, > moved (one line per renamed directory), ~m metadata, ~c modified, !! damaged, \
?? unreadable or not mounted, ~t replaced by another kind of file.")]
pub struct VerifyArgs {
    /// Extent of the comparison: strict, content or meta
    ///
    /// strict: content and all fields except those that a restore cannot preserve; content: kind, content
    /// and link targets; meta: everything except content, which is not read.
    #[arg(
        long,
        value_name = "MODE",
        default_value = "strict",
        value_parser = one_of(CompareMode::ALL, CompareMode::name),
        hide_possible_values = true
    )]
    pub mode: CompareMode,
    /// Output format: text, json or html
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        hide_possible_values = true
    )]
    pub format: DifferencesFormat,
    /// Fields that may differ, separated by commas (e.g. uid,gid,mtime), instead of the default ones
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Read only a random sample of the files, by bytes: 5% or 0.05
    ///
    /// Each run reads a different sample. Files that look changed are always read, and so are those that the
    /// manifest lists as damaged or unreadable; all others are compared by metadata only. A large file is read
    /// completely or not at all, as often as any other: several runs reach the share on average.
    #[arg(long, value_name = "PART")]
    pub sample: Option<Sample>,
    /// Stop at the first difference
    #[arg(long)]
    pub fail_fast: bool,
    /// Accept a truncated manifest, and continue if the root or a disk below it seems to be unmounted
    #[arg(long)]
    pub force: bool,
    /// Write to FILE, which appears complete or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Directory that the manifest describes
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
  bc integrity diff /srv /mnt/backup/srv   are these two directories the same?
  bc integrity diff srv.jsonl /mnt/backup/srv

A directory is read as by 'bc integrity manifest', with the algorithm and the filters of the manifest on the other \
side, if there is one.")]
pub struct DiffArgs {
    /// Output format: text, json or html
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        hide_possible_values = true
    )]
    pub format: DifferencesFormat,
    /// Fields that may differ, separated by commas, instead of the default ones
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Accept truncated or altered manifests, with a warning
    #[arg(long)]
    pub force: bool,
    /// Write to FILE, which appears complete or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Old manifest, or a directory; '-' is standard input (for one of the two)
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// New manifest, or a directory
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
  bc integrity update --reread=10m /srv srv.jsonl    also re-read for 10 minutes
  bc integrity update --reread=20G /srv srv.jsonl    or 20 GiB, or 5%
  bc integrity update -q --reread=30m --max-changed=10% /srv srv.jsonl
  bc integrity update --protect /srv srv.jsonl       also create parity

The example with -q is for timers: it prints only damaged and unreadable entries, and records nothing if more than a \
tenth of the entries changed.")]
pub struct UpdateArgs {
    /// Output format: text or json, as for verify and diff
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_parser = one_of(ChangeFormat::ALL, ChangeFormat::name),
        hide_possible_values = true
    )]
    pub format: ChangeFormat,
    /// Also re-read the least recently verified part: 5%, 20G, 30m or 2h
    ///
    /// Otherwise, files whose size, times and inode are unchanged are not read. Re-reading a part each
    /// night covers the entire tree over time: files tried longest ago come first, whether or not they
    /// could be read. Every update reports damage until the file is found intact, and never records it as
    /// correct by itself. A bare number is in bytes and at least 4096: 20 is refused, as it could mean 20%
    /// or 20B.
    #[arg(add = Configurable, long, value_name = "PART")]
    pub reread: Option<String>,
    /// Leave the manifest unchanged if more than N entries, or P% of them, have changed
    ///
    /// Edited, removed, newly damaged and replaced entries count; new files, moves and metadata do not. An
    /// update that finds more prints the changes and their number, records nothing, and exits with 1, or
    /// with 3 if any entry is damaged: ransomware and a mistaken 'rm -r' look like this. If the changes
    /// were intended, run it once with --max-changed=100%.
    #[arg(add = Configurable, long, value_name = "N|P%")]
    pub max_changed: Option<ChangeLimit>,
    /// Record the present content of damaged and possibly damaged files as correct
    ///
    /// 'bc integrity accept' does so for single files.
    #[arg(long)]
    pub accept_damaged: bool,
    /// Create parity for new and edited content, as 'bc integrity protect' does, once it is recorded
    ///
    /// An update that --max-changed stops creates none. Parity that could still repair something stays.
    #[arg(long)]
    pub protect: bool,
    /// Directory of that parity, which must already contain some [default: that of 'bc integrity protect']
    #[arg(long, value_name = "DIR", requires = "protect")]
    pub parity: Option<PathBuf>,
    /// Accept a truncated manifest, and continue if the root or a disk below it seems to be unmounted or
    /// replaced by another one
    #[arg(long)]
    pub force: bool,
    /// Directory that the manifest describes
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

For files that verify reports as damaged although they are correct: edits that kept the old time, or damage that you \
accept. The current digest and metadata of exactly these files and links are recorded; the lines of all other entries \
stay byte for byte the same. Old and new values are printed before the manifest is replaced.

Exit codes: 0 all were accepted, 1 some were not (missing from the manifest or the tree, directories, unreadable), \
2 refused or impossible, 130 or 143 ended by SIGINT or SIGTERM.")]
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
    /// Continue even if ROOT is not the directory or disk that the manifest was made from
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
  bc integrity export --format=gnu srv.jsonl > srv.sha256
  (cd /srv && sha256sum -c) < srv.sha256
  bc integrity export --format=mtree srv.jsonl > srv.mtree
  mtree -p /srv -f srv.mtree")]
pub struct ExportArgs {
    /// Output format: gnu, hashdeep or mtree
    #[arg(
        long,
        value_name = "FORMAT",
        value_parser = one_of(Foreign::ALL, Foreign::name),
        hide_possible_values = true
    )]
    pub format: Foreign,
    /// Accept a truncated or altered manifest, with a warning
    #[arg(long)]
    pub force: bool,
    /// Write to FILE, which appears complete or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Manifest to export
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity import`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity import --output=srv.jsonl SHA256SUMS
  bc integrity verify --mode=content /srv srv.jsonl
  bc integrity import --strip-prefix=/srv --output=srv.jsonl.zst hashdeep.txt")]
pub struct ImportArgs {
    /// Algorithm of the digests, if the lines specify none or several
    #[arg(short = 't', long, alias = "type", value_name = "ALG")]
    pub algorithm: Option<Algorithm>,
    /// Strip DIR, which must contain all paths, from their front
    #[arg(
        long,
        value_name = "DIR",
        default_value = "",
        hide_default_value = true
    )]
    pub strip_prefix: OsString,
    /// Write to FILE, which appears complete or not at all, and is compressed if its name ends in .zst
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// GNU, BSD-tagged or hashdeep file; '-' is standard input (at most 1 GiB from a pipe)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc integrity merge`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity manifest --shard=1/2 -o srv.1 /srv    on one host
  bc integrity manifest --shard=2/2 -o srv.2 /srv    on another host
  bc integrity merge -o srv.jsonl.zst srv.1 srv.2
  bc integrity merge --check incoming/*.jsonl.zst    complete and unaltered?

Parts that are missing, occur twice, belong to another tree or were made with other options are refused, and so is \
a part that did not read a directory which the others list. A file that was moved between the runs and is in two \
parts is reported, and the exit code is 1. Lists of 'bc hash --shard=I/N --format=jsonl' can be merged, too.")]
pub struct MergeArgs {
    /// Check the manifests, which may also be those of complete trees, and write nothing
    #[arg(long, conflicts_with = "output")]
    pub check: bool,
    /// Write to FILE, which appears complete or not at all, and is compressed if its name ends in .zst
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Manifests of all parts, in any order
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
  bc integrity sql --query=unprotected --param backups='old/*' 'new/*' | duckdb
  bc integrity sql --query=growth --param from=2026-01-01 'fleet/*' | duckdb
  bc integrity sql --engine=spark 'hdfs:///fleet/*.jsonl' > views.sql

Queries and their parameters (all have limit and algorithm):
  duplicates   content in more than one place               min_size
  unprotected  content in one place only, or in no backup   min_size, backups
  lost         content found only in older manifests        min_size, backups
  decayed      changed content behind the same path, size and mtime
  moved        content under another path than before
  waste        bytes in copies within a place, by directory min_size
  growth       files and bytes gained since an earlier time from, to
  find         places of a digest or a path                 digest, path

For each machine, root and place, the newest complete manifest counts; an updated manifest has the date of its \
update. Entries recorded as damaged, unreadable or not mounted do not count as copies. A table of the entries that \
no answer contains comes first (from duckdb, on standard error); duckdb prints complete tables with -csv. from=DATE \
means the start of that day, to=DATE its end. A manifest is a claim of the host that made it: check incoming ones \
with 'bc integrity merge --check'.")]
pub struct SqlArgs {
    /// SQL engine: duckdb or spark
    #[arg(
        long,
        value_name = "ENGINE",
        default_value = "duckdb",
        value_parser = one_of(Engine::ALL, Engine::name),
        hide_possible_values = true
    )]
    pub engine: Engine,
    /// Query to print [default: none, only the views]
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
