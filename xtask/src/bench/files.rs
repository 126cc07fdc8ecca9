//! bc hash of one large file, of ten files and of one small file.

use std::io::Write;

use anyhow::{Context, Result};

use super::Bench;
use super::hash::title;
use super::measure::{Cache, Pair};
use crate::sh;

/// Size of the large file in bytes.
const BIG: u64 = 1 << 30;

/// Start-up takes a millisecond: many pairs.
const START_UPS: usize = 200;

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "files";
    large(bench)?;
    ten(bench)?;
    start_up(bench)
}

fn large(bench: &mut Bench) -> Result<()> {
    let rows: &[(&str, &str, &str)] = &[
        ("sha256", "openssl", "openssl dgst -sha256 $BIG"),
        ("sha256", "sha256sum", "sha256sum $BIG"),
        ("xxh128", "cat", "cat $BIG"),
        ("xxh128", "xxhsum", "xxhsum -H2 $BIG"),
        ("blake3", "b3sum", "b3sum $BIG"),
        ("blake2b", "b2sum", "b2sum $BIG"),
        ("md5", "openssl", "openssl dgst -md5 $BIG"),
        ("sha1", "openssl", "openssl dgst -sha1 $BIG"),
        ("sha512", "openssl", "openssl dgst -sha512 $BIG"),
    ];
    if !rows.iter().any(|(algorithm, tool, ..)| {
        bench.wanted(&format!("{} of a 1 GiB file / {tool}", title(algorithm)))
    }) {
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
    for (algorithm, tool, command) in rows {
        bench.compare(&Pair {
            job: format!("{} of a 1 GiB file", title(algorithm)),
            ours: &format!("bc hash --type={algorithm} $BIG"),
            theirs: command,
            tool: &[tool],
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    Ok(())
}

/// Measures a tree that no thread is worth starting for, against the tool called once for all ten
/// files.
fn ten(bench: &mut Bench) -> Result<()> {
    let folder = bench.scratch.join("ten");
    std::fs::create_dir_all(&folder)?;
    let mut paths = Vec::new();
    for number in 0..10_u8 {
        std::fs::write(folder.join(number.to_string()), [number; 4096])?;
        paths.push(format!("$TEN/{number}"));
    }
    for theirs in [
        format!("sha256sum {}", paths.join(" ")),
        "for f in \"$TEN\"/*; do sha256sum \"$f\"; done".to_owned(),
    ] {
        bench.compare(&Pair {
            job: "SHA-256 of ten small files".to_owned(),
            ours: "bc hash $TEN",
            theirs: &theirs,
            tool: &["sha256sum"],
            cache: Cache::Warm,
            pairs: START_UPS,
        })?;
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
        cache: Cache::Warm,
        pairs: START_UPS,
    })
}
