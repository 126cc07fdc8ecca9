//! Layer of an overlay that a file is in.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};

/// `struct file_handle` of `linux/fcntl.h` with as many bytes as there can be (`MAX_HANDLE_SZ`).
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    data: [u8; 128],
}

/// `AT_HANDLE_FID` (Linux 6.6): a handle that names the file and need not open it.
const FID: libc::c_int = 0x200;

/// `OVL_FH_MAGIC` of `fs/overlayfs/overlayfs.h`, after three bytes that align the handle and one
/// of its version.
const MAGIC: (usize, u8) = (4, 0xfb);
/// Offset of the flags in the handle, and `OVL_FH_FLAG_PATH_UPPER` in them.
const UPPER: (usize, u8) = (6, 1 << 2);

/// Layer that contains the content of a file on an overlay.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Layer {
    /// In the layer that is written to: it is removed with the file.
    Upper,
    /// In a lower layer, where it stays whatever is done to the file; or it was copied up from
    /// there, and the overlay still names it by its origin.
    Lower,
    /// Not reported: by the kernel for an overlay before Linux 6.6, by a FUSE file system at all
    /// times.
    Unknown,
}

/// Returns the layer of `file`, which is on a file system that copies files up.
pub fn layer_of(file: impl AsFd) -> Layer {
    let mut handle = Handle {
        bytes: 128,
        kind: 0,
        data: [0; 128],
    };
    let mut mount: libc::c_int = 0;
    // SAFETY: the call reads the empty path, which ends in a zero byte, and writes at most
    // `bytes` bytes after the two numbers of the handle, which is that long, and one `int`; the
    // descriptor is borrowed for the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            file.as_fd().as_raw_fd(),
            c"".as_ptr(),
            &raw mut handle,
            &raw mut mount,
            FID | libc::AT_EMPTY_PATH,
        )
    };
    match done == 0 && handle.data[MAGIC.0] == MAGIC.1 {
        false => Layer::Unknown,
        true if handle.data[UPPER.0] & UPPER.1 != 0 => Layer::Upper,
        true => Layer::Lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_overlay_has_no_layers() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(layer_of(&file), Layer::Unknown);
    }
}
