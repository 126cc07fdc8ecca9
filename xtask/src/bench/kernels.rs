//! SHA-256 of a tree with one instruction set at a time, through the example of bc-hash that can
//! choose: what other CPUs would see, and what the targets set on other CPUs compare with.

use anyhow::Result;

use super::hash::xargs;
use super::measure::{Cache, Pair};
use super::{Bench, Target, Targets, machine};
use Target::AtLeast;

/// OpenSSL's own switch: bit 29 of the second word of CPU capabilities is SHA-NI.
const MASKED: &str = "OPENSSL_ia32cap=:~0x20000000";

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "kernels";
    let openssl = xargs("openssl dgst -sha256");
    let masked = openssl.replace("| xargs", &format!("| {MASKED} xargs"));
    let sha256sum = xargs("sha256sum");
    let rows: &[(&str, &str, &str, &str, &str, Targets)] = &[
        (
            "SHA-256, AVX2 only",
            "avx2",
            "avx2",
            &sha256sum,
            "sha256sum",
            &[(AtLeast(4.0), "AVX2")],
        ),
        (
            "SHA-256, SHA-NI only",
            "sha_ni",
            "sha-ni",
            "hash_tree stream sha256 $TREE",
            "hash_tree",
            &[(AtLeast(1.4), "one SHA-NI stream a thread, same reader")],
        ),
        (
            "SHA-256, SHA-NI only",
            "sha_ni",
            "sha-ni",
            &openssl,
            "openssl",
            &[(AtLeast(1.4), "one SHA-NI stream a process")],
        ),
        (
            "SHA-256, AVX-512 without SHA-NI, openssl without SHA-NI",
            "avx512f",
            "avx512",
            &masked,
            "openssl",
            &[(AtLeast(5.5), "as the target was set")],
        ),
        (
            "SHA-256, AVX-512 without SHA-NI",
            "avx512f",
            "avx512",
            &sha256sum,
            "sha256sum",
            &[(AtLeast(9.0), "AVX-512"), (AtLeast(12.0), "stretch")],
        ),
    ];
    for (job, flag, kernels, theirs, tool, targets) in rows {
        if !machine::has_flag(flag) {
            if bench.wanted(job) {
                bench.left_out(job, &format!("this CPU has no {flag}"))?;
            }
            continue;
        }
        bench.compare(&Pair {
            job: (*job).to_owned(),
            ours: &format!("hash_tree {kernels} sha256 $TREE"),
            theirs,
            tool: &[tool],
            targets,
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    Ok(())
}
