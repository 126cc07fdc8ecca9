//! Closing that says what went wrong: NFS, CIFS, FUSE and quotas report some failed writes only then.
#![allow(unsafe_code, reason = "std and rustix throw the result of close away")]

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};

/// Closes a file that was written to.
///
/// # Errors
/// Whatever the file system has kept until now: then what was written may be missing.
pub fn close(file: impl Into<OwnedFd>) -> io::Result<()> {
    let fd = file.into().into_raw_fd();
    // SAFETY: the descriptor was owned, and nothing owns it from here on.
    match unsafe { libc::close(fd) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_open_closes() {
        super::close(tempfile::tempfile().unwrap()).unwrap();
    }
}
