//! The UUID of the file system that a file is on, as the kernel knows it (Linux 6.9 and later).

#![allow(unsafe_code)]

use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

/// `struct fsuuid2` of `linux/fs.h`.
#[repr(C)]
struct FsUuid {
    len: u8,
    uuid: [u8; 16],
}

/// `FS_IOC_GETFSUUID` of `linux/fs.h`.
const GET: Opcode = opcode::read::<FsUuid>(0x15, 0);

/// The UUID in its usual form, `6a3fe1a0-1f6a-4b6e-9d9a-0d2f3a6b7c8d`; `None` where the file
/// system has none of sixteen bytes, or the kernel does not tell. `fd` is a file or directory
/// opened for reading.
pub fn file_system_uuid(fd: impl AsFd) -> Option<String> {
    // SAFETY: the opcode's argument is a pointer to `struct fsuuid2`, which `FsUuid` lays out
    // alike, and the kernel fills it whole; every bit pattern of it is valid.
    let getter = unsafe { Getter::<GET, FsUuid>::new() };
    // SAFETY: as above. On what is no file system's the opcode is refused, or, being of a group
    // of its own, means nothing else.
    let found = unsafe { ioctl(fd, getter) }.ok()?;
    if usize::from(found.len) != found.uuid.len() || found.uuid == [0; 16] {
        return None;
    }
    let mut text = String::with_capacity(36);
    for (nth, byte) in found.uuid.iter().enumerate() {
        if matches!(nth, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_like_one_where_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::open(dir.path()).unwrap();
        if let Some(uuid) = file_system_uuid(&file) {
            assert_eq!(uuid.len(), 36, "{uuid}");
            assert_eq!(file_system_uuid(&file), Some(uuid));
        }
        let null = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(file_system_uuid(&null), None);
    }
}
