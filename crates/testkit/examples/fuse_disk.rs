//! Runs a shell command beside a file system where every request takes so many microseconds:
//! `cargo run -p bc-testkit --example fuse_disk -- 2000 'cp -r tree $SHOWN && time bc hash $DISK'`.
//! `$SHOWN` is the directory that `$DISK` shows, where nothing waits. As root.
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "a program of its own, which reports")]

use std::process::{Command, ExitCode};
use std::time::Duration;

use bc_testkit::{Behaviour, fuse_disk};

fn main() -> Result<ExitCode, String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [latency, command] = &words[..] else {
        return Err("needs microseconds and a command".to_owned());
    };
    let latency = latency.parse().map_err(|e| format!("{latency}: {e}"))?;
    let disk = fuse_disk(Behaviour {
        latency: Duration::from_micros(latency),
        records: true,
        ..Behaviour::default()
    })?;
    let mut shell = Command::new("sh");
    let status = shell
        .args(["-c", command])
        .env("DISK", disk.path())
        .env("SHOWN", disk.shown())
        .status();
    let status = status.map_err(|e| format!("sh: {e}"))?;
    let counts = disk.take_counts();
    eprintln!(
        "{} requests, at most {} at a time",
        counts.requests, counts.most_in_flight
    );
    let mut kinds: Vec<(String, u64)> = Vec::new();
    for request in disk.take_record() {
        let kind = format!("{:?}", request.kind);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    for (kind, count) in kinds {
        eprintln!("{count:9} {kind}");
    }
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
