//! bc integrity: writing a manifest and verifying it.

use anyhow::Result;

use super::measure::{Cache, Pair};
use super::{Bench, Target};
use Target::{AtLeast, AtMost};

/// What mtree records to hold the same facts as our manifest.
const MTREE: &str = "mtree -c -k type,size,mode,uid,gid,time,nlink,link,sha256 -p $TREE";

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    let sha256 = "bc integrity manifest --algorithm=sha256 --output=$SCRATCH/manifest $TREE";
    bench.compare(&Pair {
        job: "manifest, SHA-256".to_owned(),
        ours: sha256,
        theirs: "hashdeep -r -l -j$N -c sha256 $TREE",
        tool: &["hashdeep"],
        targets: &[(AtLeast(8.0), "")],
        cache: Cache::Warm,
        pairs: 0,
    });
    bench.compare(&Pair {
        job: "manifest, SHA-256".to_owned(),
        ours: sha256,
        theirs: MTREE,
        tool: &["mtree", "mtree-netbsd", "bmtree"],
        targets: &[(AtLeast(13.0), "")],
        cache: Cache::Warm,
        pairs: 0,
    });
    bench.compare(&Pair {
        job: "manifest, XXH128".to_owned(),
        ours: "bc integrity manifest --algorithm=xxh128 --output=$SCRATCH/manifest $TREE",
        theirs: "xtask floor statx $TREE $N && xtask floor read $TREE $LIST $N",
        tool: &["xtask"],
        targets: &[(
            AtMost(1.4),
            "both floors: statx walk, then open, read, close",
        )],
        cache: Cache::Warm,
        pairs: 9,
    });
    let write = "bc integrity manifest --algorithm=sha256 --output=$SCRATCH/verified $TREE";
    let verify = "bc integrity verify $TREE $SCRATCH/verified";
    if bench.wanted("verify, SHA-256") {
        if let Err(error) = bench.time(write) {
            bench.left_out("verify, SHA-256", &format!("{error:#}"));
            return Ok(());
        }
        bench.compare(&Pair {
            job: "verify, SHA-256, against writing the manifest".to_owned(),
            ours: verify,
            theirs: sha256,
            tool: &["bc"],
            targets: &[],
            cache: Cache::Warm,
            pairs: 0,
        });
        bench.compare(&Pair {
            job: "update of an unchanged tree".to_owned(),
            ours: "bc integrity update $TREE $SCRATCH/verified",
            theirs: "xtask walk stat $TREE $N",
            tool: &["xtask"],
            targets: &[],
            cache: Cache::Warm,
            pairs: 0,
        });
    }
    Ok(())
}
