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
  bc dup DIR                                         groups of identical files
  bc dup summary DIR                                 how much could be freed
  bc dup dirs DIR                                    directories that are copies
  bc dup unique /media/card --reference=/srv/photos  may I wipe this card?
  bc dup prune --action=hardlink --dry-run DIR       preview
  bc dup prune --action=hardlink DIR                 apply
  bc dup scan --format=json --output=r.json DIR      save a report,
  bc dup prune --action=delete --from r.json         and act on it later

The subcommand is optional: `bc dup DIR` means `bc dup scan DIR`.
Before a pair of files is changed, both are opened, checked against the scan and compared byte for byte. \
Each step is recorded in a journal; `bc dup undo --last` reverts the steps as far as the action allows.

Exit codes: 0 success, with or without duplicates, 1 a file could not be read or was skipped because of an error \
(unique: or has no copy), 2 usage error or the request could not be carried out, 130 or 143 ended by SIGINT or SIGTERM.";

/// Find duplicate files and reclaim their space safely
#[derive(Parser)]
#[command(name = "dup", version, after_long_help = AFTER, after_help = "The subcommand is optional: 'bc dup DIR' means 'bc dup scan DIR'.", max_term_width = 100)]
pub struct DupCli {
    /// Subcommand
    #[command(subcommand)]
    pub command: DupCommand,
}

/// Subcommands.
#[derive(Subcommand)]
pub enum DupCommand {
    /// Print groups of identical files (the default)
    Scan(Box<ScanArgs>),
    /// Print counts, wasted bytes and the largest groups
    Summary(Box<SummaryArgs>),
    /// Print directories that are copies of each other, contained in others, or similar
    Dirs(Box<DirsArgs>),
    /// Print files that exist nowhere else: may I wipe this card?
    Unique(Box<UniqueArgs>),
    /// Replace, move or delete duplicates
    Prune(Box<PruneArgs>),
    /// Undo the steps recorded in a journal
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
  bc dup scan --cache /srv                    later runs open only changed files
  bc dup scan --format=json --output=report.json /srv
  bc dup scan --format=html --output=report.html /srv")]
pub struct ScanArgs {
    /// Output format: text, json, jsonl, csv, fdupes, script or html
    #[arg(
        add = Configurable,
        long,
        value_parser = format(),
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true
    )]
    pub format: ScanFormat,
    /// Write to FILE, which appears complete or not at all
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
  bc dup prune --action=hardlink --dry-run DIR       preview the steps
  bc dup prune --action=delete --keep=oldest --yes DIR
  bc dup prune --action=delete --across-roots --reference=/srv/master /srv/inbox
  bc dup prune --action=trash ~/Downloads            can be restored later
  bc dup prune --action=move:/srv/trash --from report.json
  bc dup prune --action=trash --from decisions.json  saved by the web page
  bc dup prune --dirs --action=delete --keep=path:archive /mnt/old /mnt/archive
  bc dup prune --interactive --action=delete ~/Pictures

In each group, files below --reference are kept. Otherwise each --keep rule applies in turn, then the file with the \
most hard links is kept, then the first path. hardlink and reflink run without asking; delete, symlink, trash and \
move ask first. Files below the DIR of move:DIR are neither moved nor kept in place of others, so a second run \
changes nothing (with --dirs it may, since a directory that was kept for one group may itself be a copy). Only \
hardlink and reflink act on files in a trash, or keep them in place of others.")]
pub struct PruneArgs {
    /// Action: hardlink, reflink, symlink, delete, trash or move:DIR
    ///
    /// hardlink: one file with several names; reflink: separate files that share disk space (btrfs, XFS;
    /// except the smallest files on btrfs, which use no data blocks); symlink: relative links to the kept
    /// file; delete: delete the other names; trash: move them to the trash of their file system, from which
    /// the desktop can also restore them; move: move them to DIR, along with their directories. A step that
    /// cannot be carried out is skipped and the reason is reported; it is never replaced by another action.
    #[arg(long, value_name = "ACTION", value_parser = action())]
    pub action: Action,
    /// Delete, trash or move entire directories that are copies of another one, but no single files
    ///
    /// Before anything in a directory is removed, every file, link and directory in it is compared with its
    /// counterpart in the directory that stays. A directory is left alone if it contains anything that its
    /// counterpart lacks, or a mount point, a reference or the journal, or if filters leave out anything in
    /// it.
    #[arg(long, conflicts_with_all = WHOLE)]
    pub dirs: bool,
    /// Show one group at a time and ask which files to keep; confirm the plan once, at the end
    #[arg(long, conflicts_with = "yes")]
    pub interactive: bool,
    /// Rule for the file to keep: first, last, newest, oldest, shortest-path, longest-path, most-links, path:GLOB, name:GLOB (repeatable)
    #[arg(long, value_name = "RULE")]
    pub keep: Vec<OsString>,
    /// Keep at least N separate copies of each content, each compared with the kept file
    ///
    /// --keep decides which ones. Hard links to one file count as one copy, and so do files that share all
    /// their blocks. If fewer than N copies can be proven, nothing is removed.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with = "interactive"
    )]
    pub keep_copies: u32,
    /// Print the steps without changing anything
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Delete, move and make symbolic links even on file systems without stable inode numbers
    ///
    /// Hard links are then also made to files that are, or may be, in a lower layer of an overlay, which
    /// copies them up and takes space.
    #[arg(long)]
    pub force: bool,
    /// Link files even if owner, mode, ACL, attributes or chattr flags differ
    ///
    /// All names get the kept file's metadata. A move to another file system reports metadata that cannot
    /// be stored there and continues.
    #[arg(long)]
    pub ignore_metadata: bool,
    /// Give a kept file at most N names
    #[arg(add = Configurable, long, value_name = "N")]
    pub max_links: Option<u64>,
    /// Record the steps in FILE instead of a new file in $XDG_STATE_HOME/bc
    ///
    /// An existing journal is continued if it is yours and no other user may write to it.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Act on the groups of a JSON report, or on decisions saved by a web page, instead of scanning; everything is checked again
    ///
    /// Decisions state for each file whether to keep it (`bc dup --format=html` writes the page); they
    /// cannot be combined with --keep or --keep-copies. --reference, --across-roots, --min-size,
    /// --max-size, --include, --exclude and --no-hidden apply to the files of the report, too, and so do
    /// the references of the scan that wrote it.
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
  bc dup undo --last                  the last run that changed something
  bc dup undo --dry-run steps.jsonl

A journal is refused if another user owns it or may write to it, or if it lists a file outside the directories in \
which its run worked. Metadata that cannot be restored is reported, and the exit code is 1.")]
#[command(group = clap::ArgGroup::new("which").required(true).args(["journal", "last"]))]
pub struct UndoArgs {
    /// Print what would be restored without changing anything
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Use the journal of the last prune without --journal that changed something, from $XDG_STATE_HOME/bc
    #[arg(long)]
    pub last: bool,
    /// Journal written by prune
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
