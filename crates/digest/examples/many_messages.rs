//! Hashes the lines of standard input, many at once, and prints them with their digests:
//! `many_messages [ALGORITHM]`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Read, Write};

use bc_digest::{Algorithm, CpuFeatures, hash_many};

fn main() -> Result<(), Box<dyn Error>> {
    let algorithm: Algorithm = match std::env::args().nth(1) {
        Some(name) => name.parse()?,
        None => Algorithm::Sha256,
    };
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    let lines: Vec<&[u8]> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    // One call for all: each lane of the vector registers takes a line of its own.
    let digests = hash_many(algorithm, &lines);
    let mut out = std::io::stdout().lock();
    for (line, digest) in lines.iter().zip(digests) {
        writeln!(out, "{digest}  {}", String::from_utf8_lossy(line))?;
    }
    writeln!(std::io::stderr(), "{}", CpuFeatures::detect().describe())?;
    Ok(())
}
