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
  bc integrity restore /srv srv.jsonl                repair damage from the parity in srv.parity
  bc integrity update --protect /srv srv.jsonl       each night: new and edited content gets parity, too
  bc integrity protect --check /srv srv.jsonl        report what the parity is still worth
  bc integrity protect --parity=/mnt/other/srv.parity /srv srv.jsonl

Files are read once and compared with the manifest; a file that differs gets no parity, and is reported. Contents \
are cut into blocks of 64 KiB and put together to volumes of up to 256 MiB (4,096 blocks), each with 5% of parity. \
As many blocks of a volume as it has parity blocks may be damaged or lost, in the files and in the parity alike.

That repairs bitrot, bad sectors, truncated files and deleted ones, up to 5% of each 256 MiB. A lost disk needs a \
copy. Parity lies best on another disk, and so does the manifest, without which nothing is repaired.

DIR remembers which tree and manifest it belongs to, and its settings: later runs, and 'update --protect', use \
them unless others are given. The parity of another tree or manifest is refused.

Exit codes: 0 everything has parity; 1 something has none or, with --check, a volume has less than half of its parity \
left; 2 refused or impossible; 130 or 143 ended by SIGINT or SIGTERM: complete volumes stay.")]
pub struct ProtectArgs {
    /// Share of parity in new volumes [default: that of the directory; 5% at first]
    #[arg(add = Configurable, long, value_name = "P%")]
    pub redundancy: Option<Redundancy>,
    /// Directory of the volumes [default: MANIFEST without '.jsonl' and '.zst', and with '.parity']
    ///
    /// It is made if it is missing, but no directory above it: a disk that is not mounted is not written to.
    #[arg(long, value_name = "DIR")]
    pub parity: Option<PathBuf>,
    /// Most content in a volume, from 128K to 2G [default: that of the directory; 256M at first]
    ///
    /// Large volumes absorb more damage in one place. Each edit wears out a little of its whole volume, whose content
    /// is protected again once that is more than half of its parity.
    #[arg(add = Configurable, long, value_name = "SIZE")]
    pub volume: Option<Size>,
    /// Time for which parity of deleted and earlier content is kept, such as 2w [default: that of the directory; 30d
    /// at first]
    #[arg(long, value_name = "TIME")]
    pub keep_removed: Option<TimeSpan>,
    /// Take over the parity of a tree or a manifest that was renamed
    #[arg(long)]
    pub adopt: bool,
    /// Only report what the parity is still worth; nothing of ROOT is read
    #[arg(long, conflicts_with = "dry_run")]
    pub check: bool,
    /// Only report what would be done; nothing is written, nor read of ROOT
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
