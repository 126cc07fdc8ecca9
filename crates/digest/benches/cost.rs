//! Runs one kernel once, for an emulator that counts its instructions (`cargo xtask isa`):
//! `cost` lists the kernels and their lanes, `cost KERNEL BYTES` has so many bytes in each lane, up
//! to a megabyte.

#![forbid(unsafe_code)]

use std::io::{self, Write};

use bc_digest::raw::{RawKernel, kernels};
use bc_digest::{Algorithm, CpuFeatures, Hasher};

/// Algorithms with kernels that take one message of any length.
const WHOLE: [Algorithm; 5] = [
    Algorithm::Xxh128,
    Algorithm::Crc,
    Algorithm::Crc32b,
    Algorithm::Crc32c,
    Algorithm::Blake3,
];

/// Message of every lane: bytes that no instruction has to make.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [kernel, bytes] => run(kernel, bytes.parse().expect("a number of bytes")),
        _ => list(),
    }
}

fn list() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for RawKernel { name, lanes, .. } in kernels() {
        writeln!(out, "{lanes} {name}")?;
    }
    for (name, ..) in whole() {
        writeln!(out, "1 {name}")?;
    }
    Ok(())
}

fn run(name: &str, bytes: usize) -> io::Result<()> {
    let kernel = kernels().into_iter().find(|kernel| kernel.name == name);
    let data = &ZEROS[..bytes];
    let mut last = 0;
    match kernel {
        Some(mut kernel) => kernel.compress(&vec![data; kernel.lanes]),
        None => {
            let (_, algorithm, cpu) = whole()
                .find(|(other, ..)| other == name)
                .expect("a kernel from the list");
            let mut hasher = Hasher::with_cpu(algorithm, cpu);
            hasher.update(data);
            last = hasher.finalize().as_bytes()[0];
        }
    }
    writeln!(io::stdout(), "{last}")
}

/// Returns those algorithms with each set of features that this machine can have.
fn whole() -> impl Iterator<Item = (String, Algorithm, CpuFeatures)> {
    CpuFeatures::available().into_iter().flat_map(|cpu| {
        WHOLE.map(|algorithm| (format!("{algorithm}/{}", cpu.describe()), algorithm, cpu))
    })
}
