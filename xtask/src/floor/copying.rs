//! System calls that a copy needs which gives each file all of its metadata and its name last.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, Timespec, Timestamps, copy_file_range, fchmod, fchown,
    flistxattr, fstat, futimens, openat, renameat_with, unlinkat,
};
use rustix::io::{Errno, pread, pwrite};

use super::content::each;

/// Copies the listed files of the current directory into `to`, which is made: a stage beside each
/// place, the data, owner, mode and times on its descriptor, one look at its attributes, and the
/// rename that replaces nothing. Symbolic links are left out.
pub(crate) fn copy(list: &[&CStr], to: &str, threads: usize) -> Result<()> {
    std::fs::create_dir(to).with_context(|| to.to_owned())?;
    let mut last: &[u8] = b"";
    for path in list {
        let dir = split(path.to_bytes()).0;
        if dir != last {
            let dir = std::str::from_utf8(dir).context("a path is no UTF-8")?;
            std::fs::create_dir_all(Path::new(to).join(dir)).with_context(|| dir.to_owned())?;
            last = dir.as_bytes();
        }
    }
    let worker = || FloorWorker {
        to,
        dirs: None,
        buffer: vec![0; 128 << 10],
    };
    let copy = |worker: &mut FloorWorker<'_>, path: &&CStr| worker.file(path.to_bytes());
    each(list, threads, worker, copy, drop)
}

struct FloorWorker<'a> {
    to: &'a str,
    /// The directory that both ends are in, by its path.
    dirs: Option<(Vec<u8>, OwnedFd, OwnedFd)>,
    buffer: Vec<u8>,
}

impl FloorWorker<'_> {
    fn file(&mut self, path: &[u8]) -> rustix::io::Result<()> {
        let (dir, name) = split(path);
        if self.dirs.as_ref().is_none_or(|(known, ..)| known != dir) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let from = if dir.is_empty() { b"." } else { dir };
            let to = [self.to.as_bytes(), b"/", dir].concat();
            self.dirs = Some((
                dir.to_vec(),
                openat(CWD, from, flags, Mode::empty())?,
                openat(CWD, to, flags, Mode::empty())?,
            ));
        }
        let Some((_, from, to)) = &self.dirs else {
            return Ok(());
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let source = match openat(from, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::LOOP) => return Ok(()),
            source => source?,
        };
        let stat = fstat(&source)?;
        let stage = [b".", name, b".part"].concat();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let copy = openat(to, &stage[..], flags, Mode::RUSR | Mode::WUSR)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size < self.buffer.len() as u64 {
            let count = pread(&source, &mut self.buffer[..], 0)?;
            pwrite(&copy, &self.buffer[..count], 0)?;
        } else {
            large(&source, &copy, &mut self.buffer)?;
        }
        flistxattr(&source, &mut self.buffer[..])?;
        let (uid, gid) = (stat.st_uid, stat.st_gid);
        let owner = (
            rustix::fs::Uid::from_raw(uid),
            rustix::fs::Gid::from_raw(gid),
        );
        fchown(&copy, Some(owner.0), Some(owner.1))?;
        fchmod(&copy, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
        let time = |tv_sec, nanoseconds: u64| Timespec {
            tv_sec,
            tv_nsec: nanoseconds as _,
        };
        futimens(
            &copy,
            &Timestamps {
                last_access: time(stat.st_atime, stat.st_atime_nsec as u64),
                last_modification: time(stat.st_mtime, stat.st_mtime_nsec as u64),
            },
        )?;
        fstat(&copy)?;
        let renamed = renameat_with(to, &stage[..], to, name, RenameFlags::NOREPLACE);
        if renamed.is_err() {
            unlinkat(to, &stage[..], AtFlags::empty())?;
        }
        renamed
    }
}

/// Copies within the kernel, where it can between these file systems.
fn large(source: &OwnedFd, copy: &OwnedFd, buffer: &mut [u8]) -> rustix::io::Result<()> {
    loop {
        match copy_file_range(source, None, copy, None, 1 << 30) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::XDEV) => break,
            Err(errno) => return Err(errno),
        }
    }
    let mut at = 0;
    loop {
        let count = pread(source, &mut *buffer, at)?;
        if count == 0 {
            return Ok(());
        }
        pwrite(copy, &buffer[..count], at)?;
        at += count as u64;
    }
}

/// Returns the directory and the name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}
