//! Translation of the command line to the engine's options.

use bc_copy::RestoreOptions;
use bc_integrity::ManifestFile;
use bc_walk::OwnFile;

use super::args::RestoreArgs;
use crate::integrity::plan::root_check;
use crate::parse::environment::state_dir;

pub fn plan<'a>(
    args: &'a RestoreArgs,
    manifest: &'a ManifestFile,
    leave_out: &'a [OwnFile],
) -> RestoreOptions<'a> {
    let mut options = RestoreOptions::new(&args.root, manifest);
    options.from.clone_from(&args.from);
    options.only.clone_from(&args.only);
    options.discard_damaged = args.discard_damaged;
    options.trust_metadata = args.trust_metadata;
    options.dry_run = args.dry_run;
    options.state = state_dir();
    options.root_check = root_check(args.force);
    options.leave_out = leave_out;
    options
}
