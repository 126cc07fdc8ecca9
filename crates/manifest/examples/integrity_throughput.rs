//! Writes and reads an integrity manifest in memory, compares its lines with the expected entries,
//! and prints entries per second:
//! `cargo run --release -p bc-manifest --example integrity_throughput [ENTRIES]`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::time::Instant;

use bc_manifest::Digest;
use bc_manifest::integrity::{
    Entry, Expected, Header, Kind, Matcher, Meta, Policy, Reader, Writer,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |text| text.parse())?;
    let mut entry = Entry::new(Vec::new(), Kind::File);
    entry.digest = Digest::from_slice(&[0x5a; 32]);
    let started = Instant::now();
    let header = Header::new("sha256", "0.1.0");
    let mut writer = Writer::new(Vec::new(), &header)?;
    for index in 0..count {
        entry.path = [dir(index), name(index)].concat().into_bytes();
        entry.meta = Some(meta(index));
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

    let names: Vec<String> = (0..count).map(name).collect();
    let started = Instant::now();
    let mut matcher = Matcher::new(&header);
    let mut rest = &bytes[bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0) + 1..];
    for (index, name) in (0..).zip(&names) {
        if index % DIR == 0 {
            matcher.enter(dir(index).as_bytes());
        }
        let expected = Expected {
            name: name.as_bytes(),
            kind: Kind::File,
            meta: meta(index),
        };
        let found = matcher
            .line(rest, &expected)
            .ok_or("a line says something else")?;
        rest = &rest[found.len..];
    }
    println!(
        "matched {count} entries: {:.2} M entries/s",
        count as f64 / started.elapsed().as_secs_f64() / 1e6
    );
    Ok(())
}

/// Files of a directory.
const DIR: u64 = 20_000;

fn dir(index: u64) -> String {
    format!("usr/share/some/package/{:03}/", index / DIR)
}

fn name(index: u64) -> String {
    format!("file-{index:09}.txt")
}

fn meta(index: u64) -> Meta {
    Meta {
        size: index % 70_000,
        mode: 0o100_644,
        uid: 1000,
        gid: 1000,
        mtime_ns: 1_795_229_497_123_456_789 + index as i64,
        ctime_ns: 1_795_229_497_123_456_789 + index as i64,
        ino: 10_000_000 + index,
        nlink: 1,
    }
}
