//! The walk alone: bc-walk as a program of its own against fd, find and the bare walks.

use anyhow::Result;

use super::measure::{Cache, Pair};
use super::{Bench, Target, Targets};
use Target::AtLeast;

/// Walks take milliseconds: more pairs.
const PAIRS: usize = 15;

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    let rows: &[(&str, &str, &[&str], Targets)] = &[
        (
            "names",
            "fd -u -t f . $TREE",
            &["fd", "fdfind"],
            &[(AtLeast(2.0), "")],
        ),
        (
            "names",
            "find $TREE -type f",
            &["find"],
            &[(AtLeast(2.0), "")],
        ),
        ("stat", "find $TREE -type f -size +1", &["find"], &[]),
        ("names", "xtask floor walk $TREE $N", &["xtask"], &[]),
        (
            "stat",
            "xtask floor statx $TREE $N",
            &["xtask"],
            &[(AtLeast(1.0), "getdents and statx")],
        ),
    ];
    for (kind, theirs, tool, targets) in rows {
        bench.compare(&Pair {
            job: format!("walk of the tree, {kind}"),
            ours: &format!("xtask walk {kind} $TREE $N"),
            theirs,
            tool,
            targets,
            cache: Cache::Warm,
            pairs: PAIRS,
        });
    }
    Ok(())
}
