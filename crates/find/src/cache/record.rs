//! Records of single files, and their packing into pages: those of neighbouring inode numbers
//! together, so that a tree's records are read in a few hundred lookups and not one by one.

use bc_digest::{Algorithm, Digest};
use bc_walk::{Identity, Stamp};

/// Set of digests that a record holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Scope(u8);

impl Scope {
    pub(crate) fn new(fast: bool, whole: bool) -> Scope {
        Scope(u8::from(fast) | u8::from(whole) << 1)
    }

    pub(crate) fn has_fast(self) -> bool {
        self.0 & 1 != 0
    }

    pub(crate) fn has_whole(self) -> bool {
        self.0 & 2 != 0
    }

    pub(crate) fn is_nothing(self) -> bool {
        self.0 == 0
    }
}

/// A file to look up, and its candidate number.
pub(crate) type CacheLookup = (Identity, u32);

/// One file in one state.
#[derive(Clone, Debug)]
pub(crate) struct CacheRecord {
    pub(crate) id: Identity,
    pub(crate) stamp: Stamp,
    pub(crate) scope: Scope,
    pub(crate) blocks: u32,
    pub(crate) fast: u64,
    pub(crate) digest: [u8; 32],
}

impl CacheRecord {
    pub(crate) fn new(id: Identity, stamp: Stamp) -> CacheRecord {
        CacheRecord {
            id,
            stamp,
            scope: Scope(0),
            blocks: 0,
            fast: 0,
            digest: [0; 32],
        }
    }
}

/// Inode numbers of one page.
const PAGE_BITS: u32 = 10;

/// Page of the store: the files of one device whose inode numbers differ in their last bits alone.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct PageId {
    pub(crate) dev: u64,
    /// The leading bits of the inode numbers.
    pub(crate) number: u64,
}

/// Returns the page that a file's record is in.
pub(crate) fn page_of(id: Identity) -> PageId {
    PageId {
        dev: id.dev,
        number: id.ino >> PAGE_BITS,
    }
}

/// The key of a page in the store: algorithm, device, number.
pub(crate) fn key(algorithm: Algorithm, dev: u64, number: u64) -> Vec<u8> {
    let mut key = algorithm.name().as_bytes().to_vec();
    key.push(0);
    key.extend_from_slice(&dev.to_be_bytes());
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// Bytes of a packed record without its digest.
const FIXED: usize = 2 + 1 + 4 + 4 * 8;

/// Packs records of one page, sorted by inode number.
pub(crate) fn pack<'r>(
    algorithm: Algorithm,
    records: impl Iterator<Item = &'r CacheRecord>,
) -> Vec<u8> {
    let mut page = Vec::new();
    for record in records {
        let low = (record.id.ino & ((1 << PAGE_BITS) - 1)) as u16;
        page.extend_from_slice(&low.to_le_bytes());
        page.push(record.scope.0);
        page.extend_from_slice(&record.blocks.to_le_bytes());
        page.extend_from_slice(&record.stamp.size.to_le_bytes());
        page.extend_from_slice(&record.stamp.mtime_ns.to_le_bytes());
        page.extend_from_slice(&record.stamp.ctime_ns.to_le_bytes());
        page.extend_from_slice(&record.fast.to_le_bytes());
        page.extend_from_slice(&record.digest[..algorithm.digest_len()]);
    }
    let sum = bc_digest::hash(Algorithm::Xxh3, &page);
    page.extend_from_slice(sum.as_bytes());
    page
}

/// The packed records of a page without their checksum; `None` if that or the
/// length is wrong.
pub(crate) fn check(algorithm: Algorithm, packed: &[u8]) -> Option<&[u8]> {
    let (records, sum) = packed.split_at_checked(packed.len().checked_sub(8)?)?;
    let sound = bc_digest::hash(Algorithm::Xxh3, records).as_bytes() == sum
        && records.len() % (FIXED + algorithm.digest_len()) == 0;
    sound.then_some(records)
}

/// The records of a page that was [checked](check), by inode number.
pub(crate) fn unpack(
    algorithm: Algorithm,
    page: PageId,
    records: &[u8],
) -> impl Iterator<Item = CacheRecord> {
    let size = FIXED + algorithm.digest_len();
    records.chunks_exact(size).filter_map(move |record| {
        let word = |at: usize| Some(u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let low = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let id = Identity {
            dev: page.dev,
            ino: page.number << PAGE_BITS | u64::from(low),
        };
        let stamp = Stamp {
            size: word(7)?,
            mtime_ns: word(15)? as i64,
            ctime_ns: word(23)? as i64,
        };
        let mut found = CacheRecord::new(id, stamp);
        found.scope = Scope(record[2] & 3);
        found.blocks = u32::from_le_bytes(record.get(3..7)?.try_into().ok()?);
        found.fast = word(31)?;
        found.digest[..size - FIXED].copy_from_slice(&record[FIXED..]);
        Some(found)
    })
}

/// Packs the digests of a large file's stages.
pub(crate) fn pack_prefixes(stamp: &Stamp, known: &[Digest]) -> Vec<u8> {
    let mut packed = Vec::new();
    packed.extend_from_slice(&stamp.size.to_le_bytes());
    packed.extend_from_slice(&stamp.mtime_ns.to_le_bytes());
    packed.extend_from_slice(&stamp.ctime_ns.to_le_bytes());
    for digest in known {
        packed.extend_from_slice(digest.as_bytes());
    }
    let sum = bc_digest::hash(Algorithm::Xxh3, &packed);
    packed.extend_from_slice(sum.as_bytes());
    packed
}

/// The reverse; `None` if it is damaged.
pub(crate) fn unpack_prefixes(algorithm: Algorithm, packed: &[u8]) -> Option<(Stamp, Vec<Digest>)> {
    let (body, sum) = packed.split_at_checked(packed.len().checked_sub(8)?)?;
    let (head, digests) = body.split_at_checked(24)?;
    let len = algorithm.digest_len();
    if bc_digest::hash(Algorithm::Xxh3, body).as_bytes() != sum || digests.len() % len != 0 {
        return None;
    }
    let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    let stamp = Stamp {
        size: word(0)?,
        mtime_ns: word(8)? as i64,
        ctime_ns: word(16)? as i64,
    };
    Some((stamp, digests.chunks_exact(len).map(Digest::new).collect()))
}

/// Records that a search adds to the store.
pub(crate) struct CacheUpdates<'n> {
    pub(crate) algorithm: Algorithm,
    /// Sorted by identity.
    pub(crate) records: &'n [CacheRecord],
    pub(crate) prefixes: &'n [(Identity, Stamp, &'n [Digest])],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ino: u64) -> CacheRecord {
        let stamp = Stamp {
            size: 7,
            mtime_ns: -5,
            ctime_ns: i64::MAX,
        };
        let mut record = CacheRecord::new(Identity { dev: 9, ino }, stamp);
        record.scope = Scope::new(true, true);
        record.blocks = 8;
        record.fast = 0x1234;
        record.digest = [0xab; 32];
        record
    }

    #[test]
    fn pages_come_back() {
        for algorithm in crate::scan::ALGORITHMS {
            let records = [record(1024), record(1025), record(2047)];
            let page = page_of(records[0].id);
            assert_eq!(page_of(records[2].id), page);
            let packed = pack(algorithm, records.iter());
            let checked = check(algorithm, &packed).unwrap();
            let back: Vec<CacheRecord> = unpack(algorithm, page, checked).collect();
            assert_eq!(back.len(), 3);
            for (one, other) in records.iter().zip(&back) {
                assert_eq!(
                    (one.id, one.stamp, one.fast),
                    (other.id, other.stamp, other.fast)
                );
                assert_eq!((one.scope, one.blocks), (other.scope, other.blocks));
                let len = algorithm.digest_len();
                assert_eq!(one.digest[..len], other.digest[..len]);
            }
            for at in 0..packed.len() {
                let mut damaged = packed.clone();
                damaged[at] ^= 4;
                assert!(check(algorithm, &damaged).is_none(), "{at}");
                assert!(check(algorithm, &packed[..at]).is_none(), "{at}");
            }
        }
    }

    #[test]
    fn keys_tell_algorithms_and_pages_apart() {
        let keys = [
            key(Algorithm::Xxh3, 1, 2),
            key(Algorithm::Xxh128, 1, 2),
            key(Algorithm::Xxh3, 2, 2),
            key(Algorithm::Xxh3, 1, 3),
        ];
        for (index, one) in keys.iter().enumerate() {
            assert!(keys[index + 1..].iter().all(|other| other != one));
        }
    }
}
