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
  bc integrity update --protect /srv srv.jsonl       each night: create parity for new and edited content
  bc integrity protect --check /srv srv.jsonl        report how much more damage the parity can repair
  bc integrity protect --parity=/mnt/other/srv.parity /srv srv.jsonl

Files are read once and compared with the manifest; a file that differs gets no parity, and is reported. Contents \
are cut into blocks of 64 KiB and combined into volumes of up to 256 MiB (4,096 blocks), each with 5% of parity. \
As many blocks of a volume as it has parity blocks may be damaged or lost, in the files and in the parity alike.

This repairs bitrot, bad sectors, truncated files and deleted ones, up to 5% of each 256 MiB. A lost disk needs a \
copy. Store the parity, and the manifest, on another disk if you can: nothing is repaired without the manifest.

DIR records which tree and manifest it belongs to, and its settings: later runs, and 'update --protect', use \
them unless you pass others. The parity of another tree or manifest is refused.

Exit codes: 0 everything has parity; 1 some content has none, a worn volume stays because it may still repair something, \
a volume cannot be read, or it is not safe to remove any; with --check, also if a volume that protects content has less \
than half of its parity left, or the copy of the manifest is damaged or missing; 2 refused or impossible; 130 or 143 ended by SIGINT or SIGTERM: complete volumes stay.")]
pub struct ProtectArgs {
    /// Share of parity in new volumes [default: that of the directory; 5% at first]
    #[arg(add = Configurable, long, value_name = "P%")]
    pub redundancy: Option<Redundancy>,
    /// Directory of the volumes [default: MANIFEST without '.jsonl' and '.zst', and with '.parity']
    ///
    /// It is created if it is missing, but no directory above it. If it is on a disk that may not be mounted, run
    /// 'update --protect --parity=DIR' from cron: that creates no directory.
    #[arg(long, value_name = "DIR")]
    pub parity: Option<PathBuf>,
    /// Maximum content of a volume, from 128K to 2G [default: that of the directory; 256M at first]
    ///
    /// Large volumes absorb more damage in one place. Each edit wears out a little of its whole volume, whose content
    /// is protected again once that is more than half of its parity.
    #[arg(add = Configurable, long, value_name = "SIZE")]
    pub volume: Option<Size>,
    /// How long to keep the parity of deleted and earlier content, such as 2w [default: that of the directory; 30d
    /// at first]
    #[arg(long, value_name = "TIME")]
    pub keep_removed: Option<TimeSpan>,
    /// Take over the parity of a tree or a manifest that was renamed
    #[arg(long)]
    pub adopt: bool,
    /// Only report how much more damage the parity can repair; nothing of ROOT is read
    #[arg(long, conflicts_with_all = ["dry_run", "redundancy", "volume", "keep_removed"])]
    pub check: bool,
    /// Only report what would be done; nothing is written, nor read of ROOT
    #[arg(long)]
    pub dry_run: bool,
    /// The directory to protect
    #[arg(value_name = "ROOT")]
    pub root: OsString,
    /// Its manifest, which must be complete and unaltered
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    #[command(flatten)]
    pub common: Common,
}
