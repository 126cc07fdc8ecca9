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
  bc dup unique /media/card --reference=/srv/photos     may I wipe this card? 0 and silence: yes
  bc dup unique /media/card --reference=offline.jsonl    the same of a disk in a offline, by its manifest
  bc dup unique -0 DIR --reference=/srv | rsync -a -0 --files-from=- / /srv/new/
  bc dup unique DIR                                     files that have no equal among themselves

Exit codes: 0 every content is in a reference; 1 some is not, or something was not looked at or could \
not be read; 2 no answer. Files left out by --exclude are only counted.")]
pub struct UniqueArgs {
    /// text, json, jsonl or csv
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        hide_possible_values = true
    )]
    pub format: UniqueFormat,
    /// Archive that may have the contents: a directory, or the manifest of an offline disk
    /// (repeatable)
    ///
    /// A manifest is one of bc integrity, compressed or not, or a list of sha256sum, md5sum, b3sum and their
    /// kin, of the BSDs, or of hashdeep. It counts if it is complete and its digests have 128 bits;
    /// answers by MD5, SHA-1 or XXH128 are marked. Files of a directory that lie below a PATH, whichever
    /// link or mount leads there, count for nothing.
    ///
    /// `-` reads a manifest from standard input. A list that does not say of which tree it is, as those of
    /// sha256sum, counts for nothing where it has the names of the files that are asked about: it was
    /// probably made of them.
    #[arg(long, value_name = "DIR|MANIFEST")]
    pub reference: Vec<OsString>,
    /// Believe lists of unknown origin that name the files that are asked about
    #[arg(long)]
    pub trust_list: bool,
    /// Compare with files of references byte for byte as well
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
