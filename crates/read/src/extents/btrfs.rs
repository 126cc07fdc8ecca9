//! Size on disk of compressed extents, which `FIEMAP` does not report: Btrfs does, to users who may
//! read its trees.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// `struct btrfs_ioctl_search_key` of `linux/btrfs.h`.
#[repr(C)]
struct SearchKey {
    tree: u64,
    objects: [u64; 2],
    offsets: [u64; 2],
    transactions: [u64; 2],
    types: [u32; 2],
    items: u32,
    unused: u32,
    unused_more: [u64; 4],
}

/// `struct btrfs_ioctl_search_args_v2`, without its open-ended tail.
#[repr(C)]
struct SearchHead {
    key: SearchKey,
    room: u64,
}

/// Bytes of room for the results: some 190 extents.
const ROOM: usize = 16 << 10;

#[repr(C)]
struct SearchRequest {
    head: SearchHead,
    found: [u8; ROOM],
}

/// The size in the number is that of the header alone.
const BTRFS_IOC_TREE_SEARCH_V2: Opcode = opcode::read_write::<SearchHead>(0x94, 17);

/// `BTRFS_EXTENT_DATA_KEY` of `linux/btrfs_tree.h`.
const EXTENT_DATA: u32 = 108;
/// Bytes of `struct btrfs_ioctl_search_header`.
const HEADER: usize = 32;

/// Returns the bytes that each extent of the file numbered `ino` takes, by its place.
///
/// # Errors
/// `EPERM` for any user but root; `ENOTTY` on another file system.
pub(super) fn on_disk(file: impl AsFd, ino: u64) -> Result<BTreeMap<u64, u64>, Errno> {
    let file = file.as_fd();
    let mut lengths = BTreeMap::new();
    let mut from = 0;
    let mut request = Box::new(SearchRequest {
        head: SearchHead {
            key: SearchKey {
                // The subvolume that the file is in.
                tree: 0,
                objects: [ino, ino],
                offsets: [0, u64::MAX],
                transactions: [0, u64::MAX],
                types: [EXTENT_DATA, EXTENT_DATA],
                items: 0,
                unused: 0,
                unused_more: [0; 4],
            },
            room: ROOM as u64,
        },
        found: [0; ROOM],
    });
    loop {
        request.head.key.offsets[0] = from;
        request.head.key.items = u32::MAX;
        request.head.room = ROOM as u64;
        // SAFETY: the opcode takes a pointer to a `btrfs_ioctl_search_args_v2` followed by as many
        // bytes as that says, which `Request` is, and writes only there; any bits are valid in it.
        unsafe {
            ioctl(
                file,
                Updater::<BTRFS_IOC_TREE_SEARCH_V2, SearchRequest>::new(&mut request),
            )?;
        }
        let last = read(&request.found, request.head.key.items, &mut lengths);
        match last.and_then(|last| last.checked_add(1)) {
            Some(next) if next > from => from = next,
            _ => return Ok(lengths),
        }
    }
}

/// Takes the extents out of a search's results; returns the offset in the file of the last one.
fn read(found: &[u8], items: u32, lengths: &mut BTreeMap<u64, u64>) -> Option<u64> {
    let mut rest = found;
    let mut last = None;
    for _ in 0..items {
        let (header, behind) = rest.split_at_checked(HEADER)?;
        last = Some(number(header, 16)?);
        let length = u32::from_le_bytes(header[28..32].try_into().ok()?);
        let (item, behind) = behind.split_at_checked(length as usize)?;
        rest = behind;
        // `struct btrfs_file_extent_item`: inline content takes no extent, a hole is at 0.
        let is_regular = item.get(20).is_some_and(|kind| matches!(kind, 1 | 2));
        if let (true, Some(place), Some(bytes)) = (is_regular, number(item, 21), number(item, 29))
            && place > 0
        {
            lengths.insert(place, bytes);
        }
    }
    last
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_the_kernels() {
        assert_eq!(size_of::<SearchHead>(), 112);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(BTRFS_IOC_TREE_SEARCH_V2, 0xc070_9411);
    }

    #[test]
    fn items_are_read_as_far_as_they_go() {
        let mut found = Vec::new();
        let mut add = |offset: u64, kind: u8, place: u64, bytes: u64| {
            let mut header = [0; HEADER];
            header[16..24].copy_from_slice(&offset.to_le_bytes());
            header[28] = 53;
            found.extend_from_slice(&header);
            let mut item = [0; 53];
            item[20] = kind;
            item[21..29].copy_from_slice(&place.to_le_bytes());
            item[29..37].copy_from_slice(&bytes.to_le_bytes());
            found.extend_from_slice(&item);
        };
        add(0, 1, 0x10000, 8192);
        add(131_072, 1, 0, 0);
        add(262_144, 0, 77, 77);
        add(393_216, 2, 0x20000, 4096);
        let mut lengths = BTreeMap::new();
        assert_eq!(read(&found, 4, &mut lengths), Some(393_216));
        assert_eq!(lengths, BTreeMap::from([(0x10000, 8192), (0x20000, 4096)]));
        // Whatever is cut short ends it.
        for end in 0..found.len() {
            read(&found[..end], 9, &mut BTreeMap::new());
        }
    }

    #[test]
    fn others_do_not_answer() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        assert!(on_disk(&file, 1).is_err());
    }
}
