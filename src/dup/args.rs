//! The command line of `bc dup`.

pub mod search;

use std::ffi::OsString;
use std::path::PathBuf;

use bc_find::report::ReportFormat;
use bc_fs::Size;
use bc_prune::Action;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

use self::search::SearchArgs;
use super::dirs::args::DirsArgs;
use super::unique::UniqueArgs;
use crate::parse::args::{Common, Configurable, WalkArgs};

const AFTER: &str = "\
Examples:
  bc dup DIR                                         groups of equal files, largest waste first
  bc dup summary DIR                                 how much could be freed
  bc dup dirs DIR                                    which directories are copies of each other
  bc dup unique /media/card --reference=/srv/photos  may I wipe this card?
  bc dup prune --action=hardlink --dry-run DIR       what would be done
  bc dup prune --action=hardlink DIR                 do it
  bc dup scan --format=json --output=r.json DIR && bc dup prune --action=delete --from r.json

The subcommand may be left out: `bc dup DIR` means `bc dup scan DIR`.
Before a file is touched, both files are opened, checked against the scan and compared byte for \
byte. Each step is journalled; `bc dup undo --last` reverts the steps as far as the action allows.

Exit codes: 0 all done (duplicates or not), 1 some file could not be read or was skipped for an error (unique: \
or has no copy), 2 the request could not be carried out, 130 or 143 ended by SIGINT or SIGTERM.";

/// Find duplicate files and reclaim their space safely
#[derive(Parser)]
#[command(name = "dup", version, after_long_help = AFTER, after_help = "The command may be left out: 'bc dup DIR' means 'bc dup scan DIR'.", max_term_width = 100)]
pub struct DupCli {
    /// Subcommand
    #[command(subcommand)]
    pub command: DupCommand,
}

/// Subcommands.
#[derive(Subcommand)]
pub enum DupCommand {
    /// Print groups of equal files (the default)
    Scan(Box<ScanArgs>),
    /// Print counts, wasted bytes and the largest groups
    Summary(Box<SummaryArgs>),
    /// Print directories that are copies of each other, contained in others, or similar
    Dirs(Box<DirsArgs>),
    /// Print files that are nowhere else: may I wipe this card?
    Unique(Box<UniqueArgs>),
    /// Replace, move or delete duplicates
    Prune(Box<PruneArgs>),
    /// Undo the steps of a journal
    Undo(Box<UndoArgs>),
}

/// Report formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanFormat {
    /// One of the engine's.
    Report(ReportFormat),
    /// A page to decide on in a browser: figures, treemap, folders, groups.
    Html,
}

fn format() -> impl TypedValueParser<Value = ScanFormat> {
    let names = ReportFormat::ALL.map(ReportFormat::name).into_iter();
    PossibleValuesParser::new(names.chain(["html"]))
        .map(|name| ReportFormat::named(&name).map_or(ScanFormat::Html, ScanFormat::Report))
}

/// Arguments of `bc dup scan`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc dup scan ~/Pictures /mnt/backup/Pictures
  bc dup scan --reference=/srv/master --format=csv /srv/inbox /srv/master
  bc dup scan --cache /srv                           the second run opens only what changed
  bc dup scan --format=json --output=report.json /srv
  bc dup scan --format=html --output=report.html /srv")]
pub struct ScanArgs {
    /// text, json, jsonl, csv, fdupes, script or html
    #[arg(
        add = Configurable,
        long,
        value_parser = format(),
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true
    )]
    pub format: ScanFormat,
    /// Write to FILE, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Files and directories
    #[arg(value_name = "PATH")]
    pub paths: Vec<OsString>,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc dup summary`.
#[derive(Args)]
#[command(after_long_help = "Example:\n  bc dup summary --min-size=1M /srv")]
pub struct SummaryArgs {
    /// Files and directories
    #[arg(value_name = "PATH")]
    pub paths: Vec<OsString>,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc dup prune`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc dup prune --action=hardlink --dry-run DIR       the steps, as the real run prints them
  bc dup prune --action=delete --keep=oldest --yes DIR
  bc dup prune --action=delete --across-roots --reference=/srv/master /srv/inbox
  bc dup prune --action=trash ~/Downloads            the desktop can restore them, and so can undo
  bc dup prune --action=move:/srv/trash --from report.json
  bc dup prune --action=trash --from decisions.json  decisions made on a page of 'bc dup --format=html'
  bc dup prune --dirs --action=delete --keep=path:archive /mnt/disk1 /mnt/archive
  bc dup prune --interactive --action=delete ~/Pictures

The file to keep in each group is chosen by --reference, then each --keep in turn, then most hard links, then \
first path. hardlink and reflink run without asking; delete, symlink, trash and move ask first. Files below the DIR \
of move:DIR are neither moved nor kept instead of others, so a second run changes nothing (with --dirs it may: \
a directory that stayed for one group may be a copy by itself). Only hardlink and reflink act on files in a \
trash or keep them instead of others.")]
pub struct PruneArgs {
    /// hardlink, reflink, symlink, delete, trash or move:DIR
    ///
    /// hardlink: one file with several names; reflink: separate files that share their space (btrfs, XFS; not
    /// the smallest files on btrfs, which use no data blocks); symlink: relative links to the kept file;
    /// delete: the other names are deleted; trash: they are moved to the trash of their file system, from
    /// which the desktop can restore them, too; move: they are moved to DIR, with their directories. A step
    /// that cannot be done is skipped with the reason, and never replaced by another action.
    #[arg(long, value_name = "ACTION", value_parser = action())]
    pub action: Action,
    /// Delete, trash or move whole directories that are copies of another one, and no single files
    ///
    /// Before anything in a directory is removed, each file, link and directory in it is compared with its
    /// twin in the directory that stays. A directory is left alone if it contains anything more than its
    /// twin, or a mount, a reference or the journal, or if filters leave out something in it.
    #[arg(long, conflicts_with_all = WHOLE)]
    pub dirs: bool,
    /// Show one group at a time and ask what to keep; the plan is confirmed once, at the end
    #[arg(long, conflicts_with = "yes")]
    pub interactive: bool,
    /// Which file of a group stays: first, last, newest, oldest, shortest-path, longest-path, most-links, path:GLOB, name:GLOB (repeatable)
    #[arg(long, value_name = "RULE")]
    pub keep: Vec<OsString>,
    /// Keep at least N copies of each content: files of their own, each compared with the kept one
    ///
    /// --keep decides which copies. Names of one file count as one copy, and so do files that share all their
    /// blocks. If fewer than N can be proven, nothing is removed.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with = "interactive"
    )]
    pub keep_copies: u32,
    /// Print the steps, change nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Delete, move and make symbolic links on file systems without stable inode numbers too
    ///
    /// Hard links are then made of files in a lower layer of an overlay as well, which copies them up and
    /// takes space, and of files that may lie in one.
    #[arg(long)]
    pub force: bool,
    /// Link files although owner, mode, ACL, attributes or chattr's flags differ
    ///
    /// All names then get the kept file's metadata. A move to another file system reports metadata that
    /// cannot be stored there, and continues.
    #[arg(long)]
    pub ignore_metadata: bool,
    /// Give a kept file at most N names
    #[arg(add = Configurable, long, value_name = "N")]
    pub max_links: Option<u64>,
    /// File to record the steps in, instead of a new one in $XDG_STATE_HOME/bc
    ///
    /// An existing journal is continued if it is yours and no other user may write it.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Act on the groups of a JSON report, or on decisions that a page saved, instead of scanning; everything is checked again
    ///
    /// Decisions say of each file whether it stays (`bc dup --format=html` makes the page); they cannot be
    /// combined with --keep or --keep-copies. --reference, --across-roots, --min-size, --max-size, --include,
    /// --exclude and --no-hidden hold for its files as well, and so do the references that it was made with.
    #[arg(long, value_name = "REPORT.json", conflicts_with_all = SEARCHES)]
    pub from: Option<PathBuf>,
    /// Files and directories
    #[arg(value_name = "PATH")]
    pub paths: Vec<OsString>,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `bc dup undo`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc dup undo --last                                 the last run that changed something
  bc dup undo --dry-run steps.jsonl

A journal is refused if another user owns it or may write it, or if it names a file outside of the \
directories that its run worked in. Metadata that cannot be restored is reported, and the exit code is 1.")]
#[command(group = clap::ArgGroup::new("which").required(true).args(["journal", "last"]))]
pub struct UndoArgs {
    /// Print what would be restored, change nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Take the journal of the last prune without --journal that changed something, from $XDG_STATE_HOME/bc
    #[arg(long)]
    pub last: bool,
    /// The journal that prune wrote
    #[arg(value_name = "JOURNAL")]
    pub journal: Option<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

/// Smallest size scanned when `--min-size` is not given: empty files are all equal and waste nothing.
pub const LEAST: Size = Size(1);

/// Options that make no sense for whole directories.
const WHOLE: [&str; 7] = [
    "keep_copies",
    "from",
    "match_hardlinks",
    "follow_symlinks",
    "files_from",
    "null",
    "max_links",
];

/// Options that only a search can answer: refused beside a report.
const SEARCHES: [&str; 10] = [
    "algorithm",
    "verify_bytes",
    "match_hardlinks",
    "cache",
    "ignore_files",
    "max_depth",
    "files_from",
    "null",
    "follow_symlinks",
    "one_file_system",
];

/// Parser of an action; it takes bytes, as the name of a directory need not be UTF-8.
fn action() -> impl TypedValueParser<Value = Action> {
    OsStringValueParser::new().try_map(|text| {
        Action::parse(text.as_encoded_bytes())
            .ok_or("expected hardlink, reflink, symlink, delete, trash or move:DIR")
    })
}
