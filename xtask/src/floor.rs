//! The floor program: the time of the bare system calls, with nothing done to the data. It runs as
//! a process of its own so that whole processes are compared, and as a release build. The calls
//! that each job cannot do without are listed beside the targets of `bench/targets.rs`.

mod content;
mod copying;

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use anyhow::{Context, Result, bail};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags, openat, statx};

use crate::args::Args;

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let words = args.all();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [job @ ("read" | "dup" | "link"), root, list, threads] => {
            let list = std::fs::read(list).with_context(|| list.to_owned())?;
            std::env::set_current_dir(root).with_context(|| root.to_owned())?;
            let (list, threads) = (content::paths(&list)?, threads.parse()?);
            match job {
                "read" => content::read_all(&list, threads)?,
                "dup" => content::read_where_sizes_repeat(&list, threads)?,
                _ => content::link_pairs(&list, threads)?,
            }
        }
        ["copy", root, list, to, threads] => {
            let list = std::fs::read(list).with_context(|| list.to_owned())?;
            std::env::set_current_dir(root).with_context(|| root.to_owned())?;
            copying::copy(&content::paths(&list)?, to, threads.parse()?)?;
        }
        ["lanes", algorithm, bytes, threads] => {
            content::lanes(algorithm, bytes.parse()?, threads.parse()?)?;
        }
        ["walk", root, threads] => {
            std::env::set_current_dir(root).with_context(|| root.to_owned())?;
            walk(threads.parse()?, Stat::Skip)?;
        }
        ["statx", root, threads] => {
            std::env::set_current_dir(root).with_context(|| root.to_owned())?;
            walk(threads.parse()?, Stat::Files)?;
        }
        ["statx-all", root, threads] => {
            std::env::set_current_dir(root).with_context(|| root.to_owned())?;
            walk(threads.parse()?, Stat::All)?;
        }
        ["peak", file, program, ref arguments @ ..] => return peak(file, program, arguments),
        _ => bail!(
            "floor: read|dup|link ROOT LIST THREADS | copy ROOT LIST TO THREADS | walk|statx|statx-all ROOT THREADS | lanes \
             ALG BYTES THREADS | peak FILE COMMAND"
        ),
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stat {
    Skip,
    /// Everything but directories.
    Files,
    /// Directories, too, whose metadata a manifest records.
    All,
}

/// Directories found and not yet read; a thread shares its own only when another has none.
struct SharedDirs {
    directories: Mutex<Vec<CString>>,
    wake: Condvar,
    outstanding: AtomicUsize,
    hungry: AtomicUsize,
}

/// Reads every directory below the current one with getdents64, and takes statx of the entries that are
/// asked for.
fn walk(threads: usize, stat: Stat) -> Result<()> {
    let shared = SharedDirs {
        directories: Mutex::new(vec![c".".to_owned()]),
        wake: Condvar::new(),
        outstanding: AtomicUsize::new(1),
        hungry: AtomicUsize::new(0),
    };
    in_threads(threads, || {
        let mut own: Vec<CString> = Vec::new();
        let mut buffer = vec![MaybeUninit::<u8>::uninit(); 64 * 1024];
        loop {
            let directory = match own.pop() {
                Some(directory) => directory,
                None => match take(&shared) {
                    Some(directory) => directory,
                    None => return Ok(()),
                },
            };
            let result = read_directory(&directory, stat, &mut buffer, &mut own, &shared);
            if shared.outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
                let _guard = shared.directories.lock();
                shared.wake.notify_all();
            }
            result?;
            if own.len() > 1 && shared.hungry.load(Ordering::Relaxed) > 0 {
                let half = own.len() / 2;
                let mut directories = shared.directories.lock().expect("no thread panics");
                directories.extend(own.drain(..half));
                shared.wake.notify_all();
            }
        }
    })
}

fn take(shared: &SharedDirs) -> Option<CString> {
    let mut directories = shared.directories.lock().expect("no thread panics");
    loop {
        if let Some(directory) = directories.pop() {
            return Some(directory);
        }
        if shared.outstanding.load(Ordering::Acquire) == 0 {
            return None;
        }
        shared.hungry.fetch_add(1, Ordering::Relaxed);
        directories = shared.wake.wait(directories).expect("no thread panics");
        shared.hungry.fetch_sub(1, Ordering::Relaxed);
    }
}

fn read_directory(
    directory: &CStr,
    stat: Stat,
    buffer: &mut [MaybeUninit<u8>],
    own: &mut Vec<CString>,
    shared: &SharedDirs,
) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd: OwnedFd = openat(CWD, directory, flags, Mode::empty())?;
    let mut entries = RawDir::new(&fd, buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let is_directory = entry.file_type() == FileType::Directory;
        if is_directory {
            let mut path = directory.to_bytes().to_vec();
            path.push(b'/');
            path.extend_from_slice(name.to_bytes());
            own.push(CString::new(path).expect("names hold no NUL"));
            shared.outstanding.fetch_add(1, Ordering::Relaxed);
        }
        if stat == Stat::All || stat == Stat::Files && !is_directory {
            statx(
                &fd,
                name,
                AtFlags::SYMLINK_NOFOLLOW,
                StatxFlags::BASIC_STATS,
            )?;
        }
    }
    Ok(())
}

/// Runs `work` in `threads` threads, this one among them.
fn in_threads(threads: usize, work: impl Fn() -> rustix::io::Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        let mut result = work();
        for other in others {
            result = result.and(other.join().expect("no thread panics"));
        }
        Ok(result?)
    })
}

/// Runs a command and writes its peak resident memory in KiB to `file`. A process of its own,
/// because a child's peak starts from that of the process that started it.
fn peak(file: &str, program: &str, arguments: &[&str]) -> Result<ExitCode> {
    use wait4::Wait4;
    let mut command = Command::new(program);
    let mut child = command
        .args(arguments)
        .stdin(Stdio::null())
        .spawn()
        .context("spawn")?;
    let used = child.wait4().context("wait4")?;
    std::fs::write(file, format!("{}\n", used.rusage.maxrss / 1024))?;
    let code = used.status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(255)))
}
