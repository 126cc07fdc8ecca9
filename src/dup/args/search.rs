//! Options of every search.

use std::ffi::OsString;

use bc_digest::Algorithm;
use bc_find::scan::ALGORITHMS;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::parse::args::Configurable;

fn algorithm() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(ALGORITHMS.map(Algorithm::name))
        .try_map(|name| name.parse::<Algorithm>())
}

/// Options of a search for duplicates.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// Digest algorithm: xxh128, xxh3, blake3 or sha256
    #[arg(
        add = Configurable,
        short = 't',
        long,
        alias = "type",
        value_parser = algorithm(),
        value_name = "ALG",
        default_value = "xxh128",
        hide_possible_values = true
    )]
    pub algorithm: Algorithm,
    /// Also compare the files of each group byte for byte
    #[arg(add = Configurable, long)]
    pub verify_bytes: bool,
    /// Report hard links to the same file as duplicates
    #[arg(add = Configurable, long)]
    pub match_hardlinks: bool,
    /// Never change DIR or a file below it, no matter which path leads there; such files are kept (repeatable)
    ///
    /// DIR may also be a file. It is searched even if it is not one of the PATHs. Its files are listed
    /// first, and a group must contain another file. If DIR cannot be opened, the run ends before anything
    /// is read. A manifest stands in for a disk that is not connected: scan, summary and dirs list its
    /// files, prune refuses it. Write `--reference ~/DIR` with a space, because shells do not expand `~`
    /// after `=`.
    #[arg(long, value_name = "DIR")]
    pub reference: Vec<OsString>,
    /// Report only duplicates under different PATHs
    #[arg(add = Configurable, long)]
    pub across_roots: bool,
    /// Save digests for the next run, in FILE or in $XDG_CACHE_HOME/bc; they never authorise a change
    ///
    /// A saved digest is used only if the file's device, inode, size and times are unchanged. The cache is
    /// not used where these do not prove the content: FUSE, network file systems, FAT, images. An existing
    /// FILE that is not a cache of yours is refused and left unchanged.
    #[arg(
        add = Configurable,
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub cache: Option<OsString>,
}
