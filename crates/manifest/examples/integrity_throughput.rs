//! Writes and reads an integrity manifest in memory and prints entries per second:
//! `cargo run --release -p bc-manifest --example integrity_throughput [ENTRIES]`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::time::Instant;

use bc_manifest::Digest;
use bc_manifest::integrity::{Entry, Header, Kind, Meta, Policy, Reader, Writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |text| text.parse())?;
    let mut entry = Entry::new(Vec::new(), Kind::File);
    entry.digest = Digest::new(&[0x5a; 32]);
    let started = Instant::now();
    let mut writer = Writer::new(Vec::new(), &Header::new("sha256", "0.1.0"))?;
    for index in 0..count {
        entry.path = format!(
            "usr/share/some/package/{:03}/file-{index:09}.txt",
            index / 20_000
        )
        .into_bytes();
        entry.meta = Some(Meta {
            size: index % 70_000,
            mode: 0o100_644,
            uid: 1000,
            gid: 1000,
            mtime_ns: 1_795_229_497_123_456_789 + index as i64,
            ctime_ns: 1_795_229_497_123_456_789 + index as i64,
            ino: 10_000_000 + index,
            nlink: 1,
        });
        writer.write(&entry)?;
    }
    let (bytes, _) = writer.finish()?;
    let written = started.elapsed().as_secs_f64();
    println!(
        "wrote {count} entries, {} bytes: {:.2} M entries/s",
        bytes.len(),
        count as f64 / written / 1e6
    );

    let started = Instant::now();
    let mut reader = Reader::new(&bytes[..], Policy::Strict)?;
    let mut read = 0u64;
    while reader.read()?.is_some() {
        read += 1;
    }
    println!(
        "read {read} entries: {:.2} M entries/s",
        read as f64 / started.elapsed().as_secs_f64() / 1e6
    );
    Ok(())
}
