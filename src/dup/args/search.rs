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
    /// Digest: xxh128, xxh3, blake3 or sha256
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
    /// Compare the members of every group byte for byte as well
    #[arg(add = Configurable, long)]
    pub verify_bytes: bool,
    /// Report hard links to one file as duplicates of each other
    #[arg(add = Configurable, long)]
    pub match_hardlinks: bool,
    /// Never change DIR or a file below it, by whichever path it is reached; such files are kept (repeatable)
    ///
    /// DIR may be a file as well. It is searched even if it is not a PATH, its files are listed first, and
    /// a group needs another file. A DIR that cannot be opened is an error before anything is read.
    /// A manifest stands for a disk that is not here: scan, summary and dirs list its files, prune refuses it.
    /// Write `--reference ~/DIR` with a blank: shells leave the `~` after `=` alone.
    #[arg(long, value_name = "DIR")]
    pub reference: Vec<OsString>,
    /// Only duplicates that lie under different PATHs
    #[arg(add = Configurable, long)]
    pub across_roots: bool,
    /// Keep digests for the next run, in FILE or below $XDG_CACHE_HOME/bc; they never authorise a change
    ///
    /// A record counts only for a file whose device, inode, size and times are unchanged. The cache is not
    /// used where these do not prove the content: FUSE, network file systems, FAT, images. An existing FILE
    /// that is not a cache of yours is refused and left unchanged.
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
