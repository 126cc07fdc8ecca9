//! The command line of `bc copy`.

use std::ffi::OsString;

use bc_copy::{Durability, OnConflict, Preserve, ReadBack, When};
use bc_digest::Algorithm;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

use crate::parse::args::{CommandLineOnly, Common, Configurable, WalkArgs, one_of};

const AFTER: &str = "\
Examples:
  bc copy photos /media/disk            to /media/disk/photos, as cp -a does
  bc copy -T photos /media/disk/2024    to /media/disk/2024, even if it exists
  bc copy photos /media/disk            again, to resume after a power cut
  bc integrity verify /media/disk /media/disk/.bc-copy-manifest.jsonl
  bc copy -T --on-conflict=update photos /media/disk/2024
  bc copy photos /media/one --to=/media/two   to both, reading photos once

To resume an interrupted copy, run the same command again; it repeats nothing that is done. Once a copy to a new \
name is complete, that name is a directory to copy into, as with cp: add -T to repeat the copy in place. Nothing is \
ever removed, and a file whose name already exists fails unless --on-conflict says otherwise. A file gets its final \
name only once it is complete. Links are copied as links: --follow-symlinks is refused, because each directory is \
visited only once. --files-from is refused because listed paths have no place below a destination; use --include \
and --exclude instead.

Exit codes: 0 everything was copied, or left as requested, 1 something failed, 2 the request could not be carried \
out, or the destination is full, 130 or 143 ended by SIGINT or SIGTERM.";

/// Copy trees; resume interrupted copies; write a manifest to verify them with
#[derive(Parser)]
#[command(name = "copy", version, after_long_help = AFTER, max_term_width = 100)]
pub struct CopyCli {
    /// Subcommand
    #[command(subcommand)]
    pub command: CopyCommand,
}

/// The one command.
#[derive(Subcommand)]
pub enum CopyCommand {
    /// Copy files and trees with all their metadata
    Copy(Box<CopyArgs>),
}

const AFTER_MOVE: &str = "\
Examples:
  bc move photos /media/disk            to /media/disk/photos, as mv does
  bc move -T photos /media/disk/2024    to /media/disk/2024, merging directories
  bc move photos /media/disk            again, to resume after a power cut
  bc move --dry-run photos /media/disk  preview: what moves, what stays

Within a file system, a source is renamed, never over an existing file. Across file systems, it is copied as by \
bc copy, and the copy is flushed to the disk and read back; then the source is set aside, checked once more and \
removed. Only a copy made by this move permits that. A source stays and is reported if its name exists at the \
destination, if it was changed in the meantime or is open for writing, if it has other hard links, or if its copy \
lacks metadata. To resume an interrupted move, run the same command again.

Exit codes: 0 everything was moved, 1 something stayed or failed, 2 the request could not be carried out, or the \
destination is full, 130 or 143 ended by SIGINT or SIGTERM.";

/// Move files and trees: rename, or copy, verify, and only then remove the source
#[derive(Parser)]
#[command(name = "move", version, after_long_help = AFTER_MOVE, max_term_width = 100)]
pub struct MoveCli {
    /// Subcommand
    #[command(subcommand)]
    pub command: MoveCommand,
}

/// The one command.
#[derive(Subcommand)]
pub enum MoveCommand {
    /// Move files and trees with all their metadata
    Move(Box<MoveArgs>),
}

/// Arguments of `bc move`.
#[derive(Args)]
pub struct MoveArgs {
    #[command(flatten)]
    pub copy: CopyArgs,
    /// Remove a source even if its copy lacks some of its metadata
    #[arg(long, help_heading = None)]
    pub allow_lossy: bool,
}

/// Returns the command with what a move says of the options that it shares with a copy.
pub fn as_move_command(command: clap::Command) -> clap::Command {
    as_command(command)
        .after_long_help(AFTER_MOVE)
        .mut_arg("to", |arg| arg.hide(true))
        .mut_arg("dry_run", |arg| {
            arg.help("Only report what would be moved and what would stay")
        })
        .mut_arg("on_conflict", |arg| {
            arg.long_help(
                "If a file's name already exists: fail, skip, replace, update (replace if the source is newer) or \
                 verify (replace if content differs)\n\nDirectories are merged. A source that is left out, or is \
                 already at the destination, stays.",
            )
        })
        .mut_arg("verify", |arg| {
            arg.default_value("media")
                                .help("Read each copy back and compare before its source is removed: none, read or media")
                .long_help(
                    "Read each copy back and compare before its source is removed: none, read or media\n\nmedia \
                     bypasses the page cache where the file system can; with the others, the kernel may answer \
                     from memory.",
                )
        })
        .mut_arg("sync", |arg| {
            arg.default_value("batch")
                                .help("Flush copies to the disk: end (once), batch (many files before their names) or file (each)")
                .long_help(
                    "Flush copies to the disk: end (once), batch (many files before their names) or file \
                     (each)\n\nNo source is removed before that, nor before the manifest and the journal are on \
                     the disk. --sync alone means file.",
                )
        })
}

/// Algorithm of the copy's digests, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digesting(pub Option<Algorithm>);

/// Arguments of `bc copy`.
#[derive(Args)]
#[command(after_long_help = AFTER)]
pub struct CopyArgs {
    /// If a file's name already exists: fail, skip, replace, update (replace if the source is newer) or verify (replace if content differs)
    ///
    /// Directories are merged. Files from an interrupted run of the same command do not count as existing.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "fail",
        value_parser = one_of(OnConflict::ALL, OnConflict::name),
        hide_possible_values = true
    )]
    pub on_conflict: OnConflict,
    /// Read each copy back and compare before it gets its name: none, read or media
    ///
    /// read may be answered from memory; media first writes the copy to the medium and then reads it back
    /// from there, bypassing the page cache where the file system can.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "none",
        value_parser = one_of(ReadBack::ALL, ReadBack::name),
        hide_possible_values = true
    )]
    pub verify: ReadBack,
    /// Flush to the disk: none, end (once), batch (many files before their names) or file (each)
    ///
    /// Even with none, the copy can be resumed however the program is killed. batch and file also cover
    /// power cuts: without them, files copied before a power cut are read and compared when the copy
    /// resumes. --sync alone means file.
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_value = "none",
        default_missing_value = "file",
        value_parser = one_of(Durability::ALL, Durability::name),
        hide_possible_values = true
    )]
    pub sync: Durability,
    /// Metadata to preserve: mode, owner, times, xattrs, links; all or none
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = Preserve::parse)]
    pub preserve: Preserve,
    /// Fail a file whose metadata cannot be fully preserved, instead of warning
    #[arg(long)]
    pub strict_metadata: bool,
    /// Share blocks with the source where the file system can (reflink): auto, always or never
    #[arg(
        add = Configurable,
        long,
        value_name = "WHEN",
        default_value = "auto",
        value_parser = reflink(),
        hide_possible_values = true
    )]
    pub reflink: When,
    /// Holes: auto preserves them, always also makes holes of zeros, never fills them
    #[arg(
        add = Configurable,
        long,
        value_name = "WHEN",
        default_value = "auto",
        value_parser = one_of(When::ALL, When::name),
        hide_possible_values = true
    )]
    pub sparse: When,
    /// Digest computed during the copy, or none
    #[arg(short = 't', long = "algorithm", alias = "type", value_name = "ALG", default_value = "blake3", value_parser = algorithm)]
    pub algorithm: Digesting,
    /// Manifest file, - (stdout) or none [default: .bc-copy-manifest.jsonl in the destination directory]
    #[arg(long, value_name = "FILE|none")]
    pub manifest: Option<OsString>,
    /// Start an interrupted copy again from the beginning
    #[arg(long)]
    pub restart: bool,
    /// Additional destination, treated like DESTINATION (repeatable)
    ///
    /// Sources are read once and written to all destinations. Each destination has its own journal and
    /// manifest, and one that fails does not stop the others. If only one path is given besides --to, it is
    /// a source.
    #[arg(long, value_name = "DIR")]
    pub to: Vec<OsString>,
    /// Treat DESTINATION as the copy itself, even if it is a directory
    #[arg(short = 'T', long = "no-target-directory")]
    pub exactly: bool,
    /// Only report what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Print a line per path: + copied or created, ~ replaced, = left, with the reason
    #[arg(long)]
    pub itemize: bool,
    /// Accepted as cp has them: what they ask for is the default
    #[arg(
        short = 'a',
        long = "archive",
        short_aliases = ['p', 'd'],
        alias = "no-dereference",
        hide = true,
        action = clap::ArgAction::Count
    )]
    pub as_always: u8,
    /// As --on-conflict=replace
    #[arg(short = 'f', long, hide = true, conflicts_with = "on_conflict")]
    pub force: bool,
    /// Sources, and the destination
    #[arg(value_name = "SOURCE... DESTINATION")]
    pub paths: Vec<OsString>,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub common: Common,
}

/// Parser of `--reflink`, which also takes the words that other copy programs have for it.
fn reflink() -> impl TypedValueParser<Value = When> {
    let others = [(When::Always, "force"), (When::Never, "disable")];
    let values = When::ALL.map(|when| {
        let also = others.into_iter().filter(move |(one, _)| *one == when);
        PossibleValue::new(when.name()).aliases(also.map(|(_, word)| word))
    });
    PossibleValuesParser::new(values).try_map(move |given| {
        let also = others.into_iter().find(|(_, word)| *word == given);
        let named = || When::ALL.into_iter().find(|when| when.name() == given);
        also.map(|(when, _)| when)
            .or_else(named)
            .ok_or("no such value")
    })
}

fn algorithm(name: &str) -> Result<Digesting, String> {
    if name == "none" {
        return Ok(Digesting(None));
    }
    let found = name.parse::<Algorithm>();
    found
        .map(|algorithm| Digesting(Some(algorithm)))
        .map_err(|error| format!("{error}, none"))
}

/// Filters that no configuration sets, since they decide which files there are. Lists of files,
/// which have no place below a destination, and following links are not offered.
const FILTERS: [&str; 9] = [
    "no_hidden",
    "hidden",
    "include",
    "exclude",
    "min_size",
    "max_size",
    "ignore_files",
    "max_depth",
    "one_file_system",
];

/// Returns the command with the options that are offered.
pub fn as_command(copy: clap::Command) -> clap::Command {
    let hidden = ["files_from", "null", "follow_symlinks"];
    let copy = hidden
        .iter()
        .fold(copy, |copy, name| copy.mut_arg(*name, |arg| arg.hide(true)));
    FILTERS.iter().fold(copy, |copy, name| {
        copy.mut_arg(*name, |arg| arg.add(CommandLineOnly))
    })
}
