//! The command line of `bc dup unique`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use crate::parse::args::{CommandLineOnly, Common, Configurable, WalkArgs};

/// Format of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UniqueFormat {
    /// A name a line.
    Text,
    /// One document.
    Json,
    /// A line for each content.
    Jsonl,
    /// A record for each name.
    Csv,
}

impl UniqueFormat {
    pub fn is_json(self) -> bool {
        matches!(self, UniqueFormat::Json | UniqueFormat::Jsonl)
    }
}

/// Arguments of `bc dup unique`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc dup unique /media/card --reference=/srv/photos   exit code 0: safe to wipe
  bc dup unique /media/card --reference=disk1.jsonl   against an offline disk
  bc dup unique -0 DIR --reference=/srv | rsync -a -0 --files-from=- / /srv/new/
  bc dup unique DIR                                   files without a duplicate

Files left out by --exclude are only counted.

Exit codes: 0 all contents are in a reference, 1 some are not, or a file was not examined or could not be read, \
2 no answer.")]
pub struct UniqueArgs {
    /// Output format: text, json, jsonl or csv
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        hide_possible_values = true
    )]
    pub format: UniqueFormat,
    /// Archive to compare with: a directory, or the manifest of an offline disk (repeatable)
    ///
    /// A manifest is written by bc integrity, compressed or not, or is a checksum list of sha256sum,
    /// md5sum, b3sum and similar programs, of the BSDs, or of hashdeep. It counts if it is complete and its
    /// digests have at least 128 bits; answers based on MD5, SHA-1 or XXH128 are marked. Files of a
    /// directory that are below a PATH do not count, even if a link or mount leads there.
    ///
    /// `-` reads a manifest from standard input. A list that does not record which tree it describes, such
    /// as one of sha256sum, does not count where it has the names of the files in question: it was probably
    /// made from them.
    #[arg(long, value_name = "DIR|MANIFEST")]
    pub reference: Vec<OsString>,
    /// Accept lists of unknown origin even where they have the names of the files in question
    #[arg(long)]
    pub trust_list: bool,
    /// Also compare byte for byte with the files of references
    #[arg(add = Configurable, long)]
    pub verify_bytes: bool,
    /// Files and directories
    #[arg(value_name = "PATH")]
    pub paths: Vec<OsString>,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub common: Common,
}

/// Filters that no configuration sets, since a file that is not looked at cannot be called safe.
/// Lists of files, of which only the names are known, are not offered.
const FILTERS: [&str; 10] = [
    "no_hidden",
    "hidden",
    "include",
    "exclude",
    "min_size",
    "max_size",
    "ignore_files",
    "max_depth",
    "follow_symlinks",
    "one_file_system",
];

/// Returns the subcommand with the options that are offered.
pub fn as_command(unique: clap::Command) -> clap::Command {
    let unique = unique
        .mut_arg("files_from", |arg| arg.hide(true).conflicts_with("paths"))
        .mut_arg("null", |arg| {
            arg.help("Names end with NUL instead of a newline")
        });
    FILTERS.iter().fold(unique, |unique, name| {
        unique.mut_arg(*name, |arg| arg.add(CommandLineOnly))
    })
}
