//! Standard input as something to hash: a third source beside the pump and the large files.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_hash::HashProgress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::session::Session;

/// Longest time that a signal waits for a pipe that gives nothing: it does not interrupt a read
/// that restarts.
const GLANCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Standard input's part of the output; no digests after a failure.
pub struct Stdin {
    pub size: u64,
    pub digests: Vec<Digest>,
    pub error: Option<bc_walk::Error>,
}

/// Reads to the end. A failure is reported.
pub fn hash(
    mut input: File,
    algorithms: &[Algorithm],
    session: &Session,
    progress: &HashProgress,
) -> Stdin {
    let mut hashers: Vec<Hasher> = algorithms.iter().map(|a| Hasher::new(*a)).collect();
    let mut buffer = vec![0; 128 << 10];
    let (mut size, mut failed) = (0, None);
    while !session.cancel.is_cancelled() {
        if !is_readable(&input) {
            continue;
        }
        match input.read(&mut buffer) {
            Ok(0) => {
                let digests = hashers.iter().map(Hasher::finalize).collect();
                return Stdin {
                    size,
                    digests,
                    error: None,
                };
            }
            Ok(n) => {
                size += n as u64;
                progress.bytes.fetch_add(n as u64, Relaxed);
                if let Some(rate) = session.rate() {
                    rate.spend(n as u64, &session.cancel);
                }
                for hasher in &mut hashers {
                    hasher.update(&buffer[..n]);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                let error = bc_walk::Error::new(b"-".to_vec(), "read", errno);
                session.report.problem(&error);
                failed = Some(error);
                break;
            }
        }
    }
    Stdin {
        size,
        digests: Vec::new(),
        error: failed,
    }
}

fn is_readable(input: &File) -> bool {
    let mut fds = [PollFd::new(input, PollFlags::IN)];
    // Errors and hang-ups are for read() to report.
    !matches!(poll(&mut fds, Some(&GLANCE)), Ok(0) | Err(Errno::INTR))
}
