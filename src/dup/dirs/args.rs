//! The command line of `bc dup dirs`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::dup::args::search::SearchArgs;
use crate::parse::args::{Common, Configurable, WalkArgs};

/// Report formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DirsFormat {
    /// Paths and sentences.
    Text,
    /// One document.
    Json,
    /// A header, a line per group, a summary.
    Jsonl,
    /// A page to read in a browser.
    Html,
}

/// Arguments of `bc dup dirs`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc dup dirs /mnt/disk1 /mnt/disk2 /mnt/disk3
  bc dup dirs --similar=90 --min-files=10 ~/Pictures
  bc dup dirs --ignore-names --format=json ~/Music
  bc dup dirs --format=html --output=dirs.html /srv

Equal directories have the same files, links and empty directories at the same paths. Empty files count; owners, \
modes and times do not. Only the largest are listed: groups that follow from their equality are left out. Then come \
directories whose contents are all in another one, and then groups of files that no group of directories covers. \
A directory that could not be read completely, that changed during the search, or in which something is mounted is \
listed but not compared; nor are the directories above it.")]
pub struct DirsArgs {
    /// Compare directories by their contents, regardless of names and subdirectories
    #[arg(add = Configurable, long)]
    pub ignore_names: bool,
    /// Also print directories that have at least PERCENT of the larger one's bytes in common
    #[arg(
        add = Configurable,
        long,
        value_name = "PERCENT",
        value_parser = clap::value_parser!(u8).range(1..=100)
    )]
    pub similar: Option<u8>,
    /// Only directories with at least N files below them
    #[arg(add = Configurable, long, value_name = "N", default_value_t = 1)]
    pub min_files: u64,
    /// Output format: text, json, jsonl or html
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true
    )]
    pub format: DirsFormat,
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
