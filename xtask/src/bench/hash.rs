//! bc hash: trees per algorithm, one thread against all.

use anyhow::Result;
use bc_digest::Algorithm;

use super::Bench;
use super::measure::{Cache, Pair};

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "hash";
    tree(bench)?;
    bench.area = "threads";
    threads(bench)
}

/// Returns an algorithm's name in a table.
pub(crate) fn title(algorithm: &str) -> String {
    let known = Algorithm::from_name(algorithm);
    let tag = known.map_or(algorithm, |a| a.tag());
    let families = ["SHA", "CRC"];
    let numbered = families
        .iter()
        .find_map(|f| Some((f, tag.strip_prefix(f)?)));
    match numbered {
        Some((family, number))
            if number.starts_with(|c: char| c.is_ascii_digit()) && !number.contains('-') =>
        {
            format!("{family}-{number}")
        }
        _ => tag.to_owned(),
    }
}

/// Returns the command that hashes the tree with a tool that knows files only.
pub(crate) fn xargs(tool: &str) -> String {
    format!("find \"$TREE\" -type f -print0 | xargs -0 -P$N {tool}")
}

fn tree(bench: &mut Bench) -> Result<()> {
    let floor = "xtask floor read $TREE $LIST $N";
    bench.compare(&Pair {
        job: "XXH128 of the tree".to_owned(),
        ours: "bc hash --type=xxh128 $TREE",
        theirs: floor,
        tool: &["xtask"],
        cache: Cache::Warm,
        pairs: 9,
    })?;
    let rows: &[(&str, &str, &str)] = &[
        ("xxh128", "xxhsum", "xxhsum -H2"),
        ("sha256", "sha256sum", "sha256sum"),
        ("sha256", "openssl", "openssl dgst -sha256"),
        ("md5", "md5sum", "md5sum"),
        ("sha1", "sha1sum", "sha1sum"),
        ("sha512", "sha512sum", "sha512sum"),
        ("blake2b", "b2sum", "b2sum"),
        ("blake3", "b3sum", "b3sum"),
        ("xxh3", "xxhsum", "xxhsum -H3"),
        ("xxh64", "xxhsum", "xxhsum -H1"),
        ("sha224", "sha224sum", "sha224sum"),
        ("sha384", "sha384sum", "sha384sum"),
        ("sha512-256", "openssl", "openssl dgst -sha512-256"),
        ("crc32c", "rhash", "rhash --crc32c --simple"),
    ];
    for (algorithm, tool, command) in rows {
        bench.compare(&Pair {
            job: format!("{} of the tree", title(algorithm)),
            ours: &format!("bc hash --type={algorithm} $TREE"),
            theirs: &xargs(command),
            tool: &[tool],
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    bench.compare(&Pair {
        job: "SHA-256 of the tree".to_owned(),
        ours: "bc hash --type=sha256 $TREE",
        theirs: "hashdeep -r -l -j$N -c sha256 $TREE",
        tool: &["hashdeep"],
        cache: Cache::Warm,
        pairs: 0,
    })?;
    bench.compare(&Pair {
        job: "SHA-256 of the tree".to_owned(),
        ours: "bc hash --type=sha256 $TREE",
        theirs: "xtask floor read $TREE $LIST $N && xtask floor lanes sha256 $BYTES $N",
        tool: &["xtask"],
        cache: Cache::Warm,
        pairs: 0,
    })?;
    // As many arguments as the system lets one command have, which is more than xargs gives by itself.
    let arguments = "cd \"$TREE\" && xargs -0 -a \"$LIST\" -s 1900000 -n 100000";
    bench.compare(&Pair {
        job: "sha256sum by its name, files as arguments".to_owned(),
        ours: &format!("{arguments} \"$SCRATCH/gnu/sha256sum\""),
        theirs: &format!("{arguments} sha256sum"),
        tool: &["sha256sum"],
        cache: Cache::Warm,
        pairs: 0,
    })?;
    bench.compare(&Pair {
        job: "SHA-256, reader io_uring against sync".to_owned(),
        ours: "bc hash --type=sha256 --io=uring $TREE",
        theirs: "bc hash --type=sha256 --io=sync $TREE",
        tool: &["bc"],
        cache: Cache::Warm,
        pairs: 0,
    })
}

/// Compares one thread with all. The floor scales as the machine lets it, which is the reference.
fn threads(bench: &mut Bench) -> Result<()> {
    if bench.threads < 2 {
        return bench.left_out("1 to N threads", "one CPU");
    }
    for algorithm in ["sha256", "xxh128", "blake3"] {
        bench.compare(&Pair {
            job: format!("{}, N threads against 1", title(algorithm)),
            ours: &format!("bc hash --type={algorithm} --threads=$N $TREE"),
            theirs: &format!("bc hash --type={algorithm} --threads=1 $TREE"),
            tool: &["bc"],
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    bench.compare(&Pair {
        job: "the floor, N threads against 1".to_owned(),
        ours: "xtask floor read $TREE $LIST $N",
        theirs: "xtask floor read $TREE $LIST 1",
        tool: &["xtask"],
        cache: Cache::Warm,
        pairs: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::title;

    #[test]
    fn algorithms_are_called_as_in_their_standards() {
        for (name, expected) in [
            ("sha256", "SHA-256"),
            ("sha512-256", "SHA-512/256"),
            ("sha3-256", "SHA3-256"),
            ("crc32c", "CRC-32C"),
            ("blake2b", "BLAKE2b"),
        ] {
            assert_eq!(title(name), expected);
        }
    }
}
