//! One file, opened when its turn comes and read to its end: a FIFO is waited for, a directory is
//! refused by the system, a link is followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use bc_digest::CpuFeatures;
use bc_fs::streams::{self, Stream};

use super::family::{FamilyResult, Sum};

/// Bytes read at once.
const BUFFER: usize = 128 << 10;

/// True if standard input was among the files.
static READ_STDIN: AtomicBool = AtomicBool::new(false);

/// Hashes standard input if the path is `-`, else the file.
pub fn hash(path: &[u8], sum: Sum, cpu: CpuFeatures) -> io::Result<FamilyResult> {
    match path {
        b"-" => hash_file(stdin()?, sum, cpu),
        _ => hash_file(File::open(OsStr::from_bytes(path))?, sum, cpu),
    }
}

/// Opens standard input, and notes that it was read.
pub fn stdin() -> io::Result<File> {
    READ_STDIN.store(true, Ordering::Relaxed);
    streams::open(Stream::Input)
}

/// Fails as closing standard input at the end does, if it was read.
pub fn closing_stdin() -> io::Result<()> {
    match READ_STDIN.load(Ordering::Relaxed) && streams::was_closed(Stream::Input) {
        true => Err(io::Error::from(rustix::io::Errno::BADF)),
        false => Ok(()),
    }
}

/// Hashes the rest of an open file.
pub fn hash_file(mut file: File, sum: Sum, cpu: CpuFeatures) -> io::Result<FamilyResult> {
    let mut hasher = sum.hasher(cpu);
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(FamilyResult {
        digest: hasher.finalize(),
        bytes,
    })
}

/// Returns the system's reason as GNU prints it, without the number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            let number = format!(" (os error {number})");
            text.strip_suffix(&number).unwrap_or(&text).to_owned()
        }
        None => text,
    }
}
