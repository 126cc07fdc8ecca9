//! The floors of jobs that read, hash and link files of a list.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, linkat, openat, renameat, statx};

use super::in_threads;

/// Paths a thread takes at a time: few enough that no thread ends late, many enough that the
/// shared counter is no matter.
const BATCH: usize = 64;

/// One read of this size takes nearly every file of a source tree whole.
const READ: usize = 128 * 1024;

/// Bytes of a message of the lanes' floor, and messages hashed together: more than there are lanes.
const MESSAGE: usize = 16 * 1024;
const MESSAGES: usize = 64;

/// Returns the paths of a NUL-separated list.
pub(super) fn paths(list: &[u8]) -> Result<Vec<&CStr>> {
    list.split_inclusive(|&b| b == 0)
        .map(CStr::from_bytes_with_nul)
        .collect::<Result<_, _>>()
        .context("the list does not end its paths with NUL")
}

/// Takes every path once, in batches, on all threads; each thread has something of its own.
pub(super) fn each<P: Sync, S>(
    paths: &[P],
    threads: usize,
    own: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &P) -> rustix::io::Result<()> + Sync,
    done: impl Fn(S) + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    in_threads(threads, || {
        let mut own = own();
        loop {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            if from >= paths.len() {
                done(own);
                return Ok(());
            }
            for path in &paths[from..paths.len().min(from + BATCH)] {
                work(&mut own, path)?;
            }
        }
    })
}

fn read(buffer: &mut [u8], path: &CStr) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = openat(CWD, path, flags, Mode::empty())?;
    // A short read of a regular file is its end.
    while rustix::io::read(&file, &mut *buffer)? == READ {}
    Ok(())
}

/// Opens, reads and closes every path.
pub(super) fn read_all(paths: &[&CStr], threads: usize) -> Result<()> {
    each(
        paths,
        threads,
        || vec![0; READ],
        |buffer, path| read(buffer, path),
        drop,
    )
}

/// Calls statx for every path; opens, reads and closes those whose size another one has, too.
pub(super) fn read_where_sizes_repeat(paths: &[&CStr], threads: usize) -> Result<()> {
    let sizes = Mutex::new(Vec::with_capacity(paths.len()));
    each(
        paths,
        threads,
        Vec::new,
        |own, path| {
            let found = statx(
                CWD,
                *path,
                AtFlags::SYMLINK_NOFOLLOW,
                StatxFlags::BASIC_STATS,
            )?;
            own.push((found.stx_size, *path));
            Ok(())
        },
        |own| sizes.lock().expect("no thread panics").extend(own),
    )?;
    let sizes = sizes.into_inner().expect("no thread panics");
    let mut counts: HashMap<u64, u32> = HashMap::new();
    for (size, _) in &sizes {
        *counts.entry(*size).or_default() += 1;
    }
    let mut repeated: Vec<&CStr> = sizes
        .into_iter()
        .filter(|(size, _)| *size > 0 && counts[size] > 1)
        .map(|(_, path)| path)
        .collect();
    // Threads have mixed them; directories are read in one go.
    repeated.sort_unstable();
    read_all(&repeated, threads)
}

/// Replaces the second path of every two by a link to the first, as a program must that never
/// leaves a name missing: linkat under a temporary name, renameat over the old one.
pub(super) fn link_pairs(paths: &[&CStr], threads: usize) -> Result<()> {
    let pairs: Vec<&[&CStr]> = paths.chunks_exact(2).collect();
    each(
        &pairs,
        threads,
        Vec::new,
        |name: &mut Vec<u8>, pair| {
            name.clear();
            name.extend_from_slice(pair[1].to_bytes());
            name.extend_from_slice(b".floor");
            linkat(CWD, pair[0], CWD, &name[..], AtFlags::empty())?;
            renameat(CWD, &name[..], CWD, pair[1])
        },
        drop,
    )
}

/// Hashes as many bytes in memory as all files have, shared out between the threads: bytes ÷ (cores
/// × the kernel's rate).
pub(super) fn lanes(algorithm: &str, bytes: usize, threads: usize) -> Result<()> {
    let algorithm: bc_digest::Algorithm = algorithm.parse().context("algorithm")?;
    let rounds = bytes / (MESSAGE * MESSAGES * threads.max(1)) + 1;
    in_threads(threads, || {
        let buffer = vec![1_u8; MESSAGE * MESSAGES];
        let messages: Vec<&[u8]> = buffer.chunks(MESSAGE).collect();
        for _ in 0..rounds {
            std::hint::black_box(bc_digest::hash_many(algorithm, &messages));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    use super::{lanes, link_pairs, read_all, read_where_sizes_repeat};

    #[test]
    fn pairs_become_one_file_each_and_everything_can_be_read() {
        let tree = bc_testkit::TestTree::new();
        let mut names = Vec::new();
        for nth in 0..10 {
            let name = tree.path().join(nth.to_string());
            std::fs::write(&name, [b'x'; 100]).unwrap();
            names.push(CString::new(name.as_os_str().as_bytes()).unwrap());
        }
        let paths: Vec<_> = names.iter().map(CString::as_c_str).collect();
        read_all(&paths, 2).unwrap();
        read_where_sizes_repeat(&paths, 2).unwrap();
        link_pairs(&paths, 2).unwrap();
        let inode = |nth: u32| tree.path().join(nth.to_string()).metadata().unwrap().ino();
        assert_eq!(inode(0), inode(1));
        assert_eq!(inode(8), inode(9));
        assert_ne!(inode(1), inode(2));
        assert_eq!(tree.path().read_dir().unwrap().count(), 10);
        lanes("sha256", 1, 2).unwrap();
        assert!(lanes("sha0", 1, 1).is_err());
    }
}
