//! bc integrity: writing a manifest and verifying it.

use anyhow::Result;

use super::Bench;
use super::measure::{Cache, Pair};

/// Command by which mtree records the same facts as our manifest.
const MTREE: &str = "mtree -c -k type,size,mode,uid,gid,time,nlink,link,sha256 -p $TREE";

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "integrity";
    let sha256 = "bc integrity manifest --algorithm=sha256 --output=$SCRATCH/manifest $TREE";
    bench.compare(&Pair {
        job: "manifest, SHA-256".to_owned(),
        ours: sha256,
        theirs: "hashdeep -r -l -j$N -c sha256 $TREE",
        tool: &["hashdeep"],
        cache: Cache::Warm,
        pairs: 0,
    })?;
    bench.compare(&Pair {
        job: "manifest, SHA-256".to_owned(),
        ours: sha256,
        theirs: MTREE,
        tool: &["mtree", "mtree-netbsd", "bmtree"],
        cache: Cache::Warm,
        pairs: 0,
    })?;
    bench.compare(&Pair {
        job: "manifest, XXH128".to_owned(),
        ours: "bc integrity manifest --algorithm=xxh128 --output=$SCRATCH/manifest $TREE",
        theirs: "xtask floor statx-all $TREE $N && xtask floor read $TREE $LIST $N",
        tool: &["xtask"],
        cache: Cache::Warm,
        pairs: 9,
    })?;
    let write = "bc integrity manifest --algorithm=sha256 --output=$SCRATCH/verified $TREE";
    let verify = "bc integrity verify $TREE $SCRATCH/verified";
    // The rows below need it.
    if let Err(error) = bench.time(write) {
        return bench.left_out("verify and update", &format!("{error:#}"));
    }
    bench.compare(&Pair {
        job: "verify, SHA-256, against writing the manifest".to_owned(),
        ours: verify,
        theirs: sha256,
        tool: &["bc"],
        cache: Cache::Warm,
        pairs: 0,
    })?;
    let jobs = [
        (
            "verify --mode=meta of an unchanged tree",
            "bc integrity verify --mode=meta $TREE $SCRATCH/verified",
        ),
        (
            "update of an unchanged tree",
            "bc integrity update $TREE $SCRATCH/verified",
        ),
    ];
    for (job, ours) in jobs {
        bench.compare(&Pair {
            job: job.to_owned(),
            ours,
            theirs: "xtask floor statx-all $TREE $N",
            tool: &["xtask"],
            cache: Cache::Warm,
            pairs: 9,
        })?;
    }
    Ok(())
}
