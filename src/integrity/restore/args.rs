//! The command line of `bc integrity restore`.

use std::ffi::OsString;
use std::path::PathBuf;

use bc_copy::Loss;
use clap::Args;

use super::output::RestoreFormat;
use crate::parse::args::{Common, one_of};

/// Arguments of `bc integrity restore`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  bc integrity restore --dry-run --from=/mnt/backup /srv srv.jsonl   preview
  bc integrity restore --from=/mnt/backup --from=/mnt/old /srv srv.jsonl
  bc integrity restore --only=damaged --from=/mnt/backup /srv srv.jsonl
  bc integrity restore /srv srv.jsonl                without a copy, from the parity in srv.parity
  bc integrity restore --dry-run --removed /srv srv.jsonl            list deleted files that parity can restore

The tree is verified first. Damaged and missing files are copied from any source that has them, under the same path or \
any other name, or computed from parity, and compared with the manifest before they take their place. The damaged file \
stays beside the new one as NAME.damaged-DIGEST. Nothing is removed, and files that were moved or edited are left as \
they are.

Exit codes: 0 everything was repaired, 1 something was not, because no copy contains it or its repair failed, 2 the \
request was refused or could not be carried out, or the file system is full or read-only, 130 or 143 ended by SIGINT \
or SIGTERM.")]
pub struct RestoreArgs {
    /// Copy that may contain the lost files: a tree or a single file (repeatable)
    ///
    /// The same path is tried first in each copy, then any file with the recorded size and digest. Links
    /// are not followed. A copy may be the tree itself, contain it, or lie in it.
    #[arg(long, value_name = "DIR")]
    pub from: Vec<OsString>,
    /// Parity of the tree, for files that no copy has [default: the directory of 'bc integrity protect', if it exists]
    #[arg(long, value_name = "DIR")]
    pub parity: Option<PathBuf>,
    /// Also restore files that the manifest no longer lists, as far as their parity is still kept
    ///
    /// Only files whose path is free. Their content is restored, but no owner, mode or time. 'bc integrity protect
    /// --keep-removed' sets how long their parity is kept. PATH, below ROOT, is a file or a directory, by the path that
    /// it had when its parity was created; without PATH, all are restored. With --dry-run, they are listed.
    #[arg(
        long,
        value_name = "PATH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub removed: Vec<OsString>,
    /// If parity restores only a part of a file, save that part next to it, as NAME.partial-DIGEST
    #[arg(long)]
    pub partial: bool,
    /// Losses to restore, separated by commas: damaged, removed, modified
    ///
    /// damaged: other content behind the same size and time, or unreadable on the medium; removed: missing;
    /// modified: edited, restored only if you list it here.
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        default_value = "damaged,removed",
        value_parser = one_of(Loss::ALL, Loss::name),
        hide_possible_values = true
    )]
    pub only: Vec<Loss>,
    /// Do not keep damaged or edited files under a second name
    #[arg(long)]
    pub discard_damaged: bool,
    /// Use owner, mode, attributes and links even from a manifest that others may have written
    #[arg(long)]
    pub trust_metadata: bool,
    /// Only report what would be done: copies are read and compared, nothing is written
    #[arg(long)]
    pub dry_run: bool,
    /// Output format: text or json
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        hide_possible_values = true
    )]
    pub format: RestoreFormat,
    /// Continue if the root or a disk below it seems to be unmounted, or contains no recorded file; also
    /// repair files that are only possibly damaged
    #[arg(long)]
    pub force: bool,
    /// Directory to repair
    #[arg(value_name = "ROOT")]
    pub root: OsString,
    /// Its manifest, which must be complete and unaltered
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    #[command(flatten)]
    pub common: Common,
}
