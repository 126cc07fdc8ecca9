//! bc hash: trees per algorithm, one large file, threads, start-up, cold cache.

use std::io::Write;

use anyhow::{Context, Result};

use super::measure::{Cache, Pair};
use super::{Bench, Target, Targets, machine};
use crate::sh;
use Target::{AtLeast, AtMost};

/// Size of the large file in bytes.
const BIG: u64 = 1 << 30;

/// Start-up takes a millisecond: many pairs.
const START_UPS: usize = 200;

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    tree(bench);
    threads(bench);
    large(bench)?;
    start_up(bench)?;
    cold(bench);
    Ok(())
}

fn xargs(tool: &str) -> String {
    format!("find \"$TREE\" -type f -print0 | xargs -0 -P$N {tool}")
}

fn tree(bench: &mut Bench) {
    let floor = "xtask floor read $TREE $LIST $N";
    bench.compare(&Pair {
        job: "XXH128 of the tree".to_owned(),
        ours: "bc hash --type=xxh128 $TREE",
        theirs: floor,
        tool: &["xtask"],
        targets: &[
            (AtMost(1.3), "the floor: open, read, close"),
            (AtMost(1.15), "stretch"),
        ],
        cache: Cache::Warm,
        pairs: 9,
    });
    let sha_ni = machine::has_flag("sha_ni");
    let openssl: Targets = match (machine::has_flag("avx512f"), sha_ni) {
        (true, true) => &[
            (AtLeast(1.4), "SHA-NI stream a thread"),
            (AtLeast(5.5), "set without SHA-NI"),
        ],
        (true, false) => &[(AtLeast(5.5), "AVX-512")],
        (false, true) => &[(AtLeast(1.4), "SHA-NI stream a thread")],
        (false, false) => &[],
    };
    let sha256sum: Targets = if machine::has_flag("avx512f") {
        &[(AtLeast(9.0), "AVX-512"), (AtLeast(12.0), "stretch")]
    } else {
        &[(AtLeast(4.0), "AVX2")]
    };
    let hashdeep: Targets = if machine::has_flag("avx512f") {
        &[(AtLeast(8.0), "AVX-512")]
    } else {
        &[]
    };
    let none: Targets = &[];
    let rows: &[(&str, &str, &str, Targets)] = &[
        ("xxh128", "xxhsum", "xxhsum -H2", &[(AtLeast(2.4), "")]),
        ("sha256", "sha256sum", "sha256sum", sha256sum),
        ("sha256", "openssl", "openssl dgst -sha256", openssl),
        ("md5", "md5sum", "md5sum", &[(AtLeast(4.0), "")]),
        ("sha1", "sha1sum", "sha1sum", &[(AtLeast(4.0), "")]),
        ("sha512", "sha512sum", "sha512sum", &[(AtLeast(3.0), "")]),
        ("blake2b", "b2sum", "b2sum", &[(AtLeast(1.5), "")]),
        ("blake3", "b3sum", "b3sum", none),
        ("xxh3", "xxhsum", "xxhsum -H3", none),
        ("xxh64", "xxhsum", "xxhsum -H1", none),
        ("sha224", "sha224sum", "sha224sum", none),
        ("sha384", "sha384sum", "sha384sum", none),
        ("sha512-256", "openssl", "openssl dgst -sha512-256", none),
        ("crc32c", "rhash", "rhash --crc32c --simple", none),
    ];
    for (algorithm, tool, command, targets) in rows {
        bench.compare(&Pair {
            job: format!("{algorithm} of the tree"),
            ours: &format!("bc hash --type={algorithm} $TREE"),
            theirs: &xargs(command),
            tool: &[tool],
            targets,
            cache: Cache::Warm,
            pairs: 0,
        });
    }
    bench.compare(&Pair {
        job: "sha256 of the tree".to_owned(),
        ours: "bc hash --type=sha256 $TREE",
        theirs: "hashdeep -r -l -j$N -c sha256 $TREE",
        tool: &["hashdeep"],
        targets: hashdeep,
        cache: Cache::Warm,
        pairs: 0,
    });
    bench.compare(&Pair {
        job: "sha256 of the tree".to_owned(),
        ours: "bc hash --type=sha256 $TREE",
        theirs: "xtask floor read $TREE $LIST $N",
        tool: &["xtask"],
        targets: &[],
        cache: Cache::Warm,
        pairs: 0,
    });
    bench.compare(&Pair {
        job: "sha256, reader io_uring against sync".to_owned(),
        ours: "bc hash --type=sha256 --io=uring $TREE",
        theirs: "bc hash --type=sha256 --io=sync $TREE",
        tool: &["bc"],
        targets: &[],
        cache: Cache::Warm,
        pairs: 0,
    });
}

/// One thread against all. The floor scales as the machine lets it, which is the reference.
fn threads(bench: &mut Bench) {
    if bench.threads < 2 {
        bench.left_out("1 to N threads", "one CPU");
        return;
    }
    let wanted = 0.9 * bench.threads as f64;
    for algorithm in ["sha256", "xxh128", "blake3"] {
        bench.compare(&Pair {
            job: format!("{algorithm}, N threads against 1"),
            ours: &format!("bc hash --type={algorithm} --threads=$N $TREE"),
            theirs: &format!("bc hash --type={algorithm} --threads=1 $TREE"),
            tool: &["bc"],
            targets: &[(AtLeast(wanted), "")],
            cache: Cache::Warm,
            pairs: 0,
        });
    }
    bench.compare(&Pair {
        job: "the floor, N threads against 1".to_owned(),
        ours: "xtask floor read $TREE $LIST $N",
        theirs: "xtask floor read $TREE $LIST 1",
        tool: &["xtask"],
        targets: &[],
        cache: Cache::Warm,
        pairs: 0,
    });
}

fn large(bench: &mut Bench) -> Result<()> {
    let rows: &[(&str, &str, &str, Targets)] = &[
        (
            "sha256",
            "openssl",
            "openssl dgst -sha256 $BIG",
            &[(AtLeast(1.0), "")],
        ),
        ("sha256", "sha256sum", "sha256sum $BIG", &[]),
        ("xxh128", "cat", "cat $BIG", &[(AtMost(1.15), "cat")]),
        ("xxh128", "xxhsum", "xxhsum -H2 $BIG", &[]),
        ("blake3", "b3sum", "b3sum $BIG", &[(AtLeast(1.0), "")]),
        ("blake2b", "b2sum", "b2sum $BIG", &[]),
        ("md5", "openssl", "openssl dgst -md5 $BIG", &[]),
        ("sha1", "openssl", "openssl dgst -sha1 $BIG", &[]),
        ("sha512", "openssl", "openssl dgst -sha512 $BIG", &[]),
    ];
    if !rows
        .iter()
        .any(|(algorithm, tool, ..)| bench.wanted(&format!("{algorithm} of a 1 GiB file / {tool}")))
    {
        return Ok(());
    }
    let path = sh::dataset("big");
    if path.metadata().map_or(0, |m| m.len()) != BIG {
        std::fs::create_dir_all(path.parent().expect("lies in a folder"))?;
        let mut file = std::fs::File::create(&path).context("the large file")?;
        let (mut rng, mut block) = (bc_testkit::Rng::new(1), vec![0; 1 << 20]);
        for _ in 0..BIG >> 20 {
            rng.fill(&mut block);
            file.write_all(&block)?;
        }
        file.sync_all()?;
    }
    for (algorithm, tool, command, targets) in rows {
        bench.compare(&Pair {
            job: format!("{algorithm} of a 1 GiB file"),
            ours: &format!("bc hash --type={algorithm} $BIG"),
            theirs: command,
            tool: &[tool],
            targets,
            cache: Cache::Warm,
            pairs: 0,
        });
    }
    Ok(())
}

fn start_up(bench: &mut Bench) -> Result<()> {
    std::fs::write(bench.scratch.join("small"), [b'x'; 100])?;
    bench.compare(&Pair {
        job: "start-up, one small file".to_owned(),
        ours: "bc hash $SMALL",
        theirs: "sha256sum $SMALL",
        tool: &["sha256sum"],
        targets: &[(AtMost(1.5), "")],
        cache: Cache::Warm,
        pairs: START_UPS,
    });
    Ok(())
}

fn cold(bench: &mut Bench) {
    bench.compare(&Pair {
        job: "xxh128 of the tree, cold cache".to_owned(),
        ours: "bc hash --type=xxh128 $TREE",
        theirs: "find \"$TREE\" -type f -print0 | xargs -0 -P16 -n256 xxhsum -H2",
        tool: &["xxhsum"],
        targets: &[(AtLeast(1.8), "")],
        cache: Cache::Cold,
        pairs: 0,
    });
}
