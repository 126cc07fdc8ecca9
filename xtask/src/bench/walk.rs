//! The walk alone: bc-walk as a program of its own against fd, find and the bare walks.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use bc_pool::Cancel;
use bc_walk::{Metadata, WalkOptions};

use crate::args::Args;

use super::Bench;
use super::measure::{Cache, Pair};

/// Walks take milliseconds: more pairs.
const PAIRS: usize = 15;

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "walk";
    let rows: &[(&str, &str, &[&str])] = &[
        ("names", "fd -u -t f . $TREE", &["fd", "fdfind"]),
        ("names", "find $TREE -type f", &["find"]),
        ("stat", "find $TREE -type f -size +1", &["find"]),
        ("listing", "xtask floor walk $TREE $N", &["xtask"]),
        ("stat", "xtask floor statx $TREE $N", &["xtask"]),
    ];
    for (kind, theirs, tool) in rows {
        bench.compare(&Pair {
            job: format!("walk of the tree, {kind}"),
            ours: &format!("xtask walk {kind} $TREE $N"),
            theirs,
            tool,
            cache: Cache::Warm,
            pairs: PAIRS,
        })?;
    }
    Ok(())
}

/// Runs the program: `walk names|listing|stat ROOT THREADS`. `names` prints the paths, as fd and
/// find do; `listing` and `stat`, which takes the metadata of every entry, print nothing, as the
/// floor does.
pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let words = args.all();
    let [kind, root, threads] = &words[..] else {
        bail!("walk: names|listing|stat ROOT THREADS")
    };
    let metadata = match kind.as_str() {
        "names" | "listing" => Metadata::None,
        "stat" => Metadata::Basic,
        _ => bail!("walk: names, listing or stat, not {kind}"),
    };
    let options = WalkOptions::default().metadata(metadata);
    let roots = [OsString::from(root)];
    let workers: usize = threads.parse()?;
    let listing = bc_walk::walk(&roots, &options, workers, &Cancel::new())?;
    if let Some(error) = listing.errors().first() {
        bail!("{error}");
    }
    if kind == "names" {
        let mut text = Vec::with_capacity(listing.len() * 64);
        for entry in listing.ids() {
            listing.write_path(entry, &mut text);
            text.push(b'\n');
        }
        std::io::stdout().lock().write_all(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}
