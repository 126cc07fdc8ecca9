//! The command line of `bc integrity protect`.

use std::ffi::OsString;
use std::path::PathBuf;

use bc_fs::Size;
use bc_parity::Redundancy;
use clap::Args;

use crate::parse::args::{Common, Configurable};
use crate::parse::time::TimeSpan;

/// Arguments of `bc integrity protect`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity manifest --output=srv.jsonl /srv && bc integrity protect /srv srv.jsonl
  bc integrity restore /srv srv.jsonl                what was damaged is computed from srv.parity
  bc integrity update --protect /srv srv.jsonl       each night: what is new or edited gets parity, too
  bc integrity protect --check /srv srv.jsonl        what is the parity still worth?

Files are read once and compared with the manifest: what does not fit gets no parity, and is named. Their contents
are cut into blocks of 64 KiB and put together to volumes of up to 256 MiB (4,096 blocks), each with 5% of parity.
As many blocks of a volume as it has parity blocks may be damaged or lost, in the files and in the parity alike.

That heals rot, bad sectors, files that were cut short, and deleted ones, up to 5% of each 256 MiB. A lost disk needs a
copy. Parity lies best on another disk.

Exit codes: 0 everything has parity; 1 some has not, or, with --check, a volume has less than half of its parity left;
2 refused or impossible; 130 or 143 ended by SIGINT or SIGTERM: volumes that were complete stay.")]
pub struct ProtectArgs {
    /// Share of parity in new volumes
    #[arg(add = Configurable, long, value_name = "P%", default_value = "5%")]
    pub redundancy: Redundancy,
    /// Directory of the volumes [default: MANIFEST without its extensions, and '.parity']
    #[arg(long, value_name = "DIR")]
    pub parity: Option<PathBuf>,
    /// Most content in a volume, from 128K to 2G
    ///
    /// Damage in one place is better absorbed by large volumes; an edit makes parity of its whole volume a little
    /// less worth, and a volume is written again once that is more than half.
    #[arg(add = Configurable, long, value_name = "SIZE", default_value = "256M")]
    pub volume: Size,
    /// Time for which parity of deleted files is kept, e.g. 2w
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub keep_removed: TimeSpan,
    /// Only look at the parity, and say how much of it is left; nothing of ROOT is read
    #[arg(long, conflicts_with = "dry_run")]
    pub check: bool,
    /// Only tell what would be done; nothing is written, nor read of ROOT
    #[arg(long)]
    pub dry_run: bool,
    /// The directory to protect
    #[arg(value_name = "ROOT")]
    pub root: OsString,
    /// Its manifest, which has to be whole and unaltered
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    #[command(flatten)]
    pub common: Common,
}
