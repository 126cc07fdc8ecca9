//! SHA-256 of a tree with one instruction set at a time, through the example of bc-hash that can
//! choose: the times that other CPUs would have.

use anyhow::Result;

use super::hash::xargs;
use super::measure::{Cache, Pair};
use super::{Bench, machine};

/// OpenSSL's own switch: bit 29 of the second word of CPU capabilities is SHA-NI.
const MASKED: &str = "OPENSSL_ia32cap=:~0x20000000";

pub(crate) fn rows(bench: &mut Bench) -> Result<()> {
    bench.area = "kernels";
    let openssl = xargs("openssl dgst -sha256");
    let masked = openssl.replace("| xargs", &format!("| {MASKED} xargs"));
    let sha256sum = xargs("sha256sum");
    let rows: &[(&str, &str, &str, &str, &str)] = &[
        (
            "SHA-256, AVX2 only",
            "avx2",
            "avx2",
            &sha256sum,
            "sha256sum",
        ),
        (
            "SHA-256, SHA-NI only",
            "sha_ni",
            "sha-ni",
            "hash_tree stream sha256 $TREE",
            "hash_tree",
        ),
        (
            "SHA-256, SHA-NI only",
            "sha_ni",
            "sha-ni",
            &openssl,
            "openssl",
        ),
        (
            "SHA-256, AVX-512 without SHA-NI, openssl without SHA-NI",
            "avx512f",
            "avx512",
            &masked,
            "openssl",
        ),
        (
            "SHA-256, AVX-512 without SHA-NI",
            "avx512f",
            "avx512",
            &sha256sum,
            "sha256sum",
        ),
    ];
    for (job, flag, kernels, theirs, tool) in rows {
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
            cache: Cache::Warm,
            pairs: 0,
        })?;
    }
    Ok(())
}
