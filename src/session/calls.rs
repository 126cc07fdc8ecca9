//! System calls in which threads of this process wait, as `/proc` shows them: no work has to report
//! its calls, and none is slower for it.
//!
//! A thread that stands in the same call with the same arguments and was not switched to in the
//! meantime has waited there all the time.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use bc_fs::dirfd::OWN_DESCRIPTORS;

/// Call that has not returned for some time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LongCall {
    /// Name of the operation, as errors have it.
    pub operation: &'static str,
    /// Path that it is about, as far as that can be found.
    pub path: Option<PathBuf>,
    /// Time since it was first seen.
    pub waited: Duration,
}

impl LongCall {
    /// True if it is about a file, and not about a terminal, a pipe or the like.
    pub fn is_about_a_file(&self) -> bool {
        let path = self.path.as_deref();
        path.is_some_and(|path| path.is_absolute() && !path.starts_with("/dev"))
    }

    /// Returns the path as messages show it.
    pub fn place(&self) -> String {
        match &self.path {
            Some(path) => bc_fs::escape(path.as_os_str().as_bytes()).into_owned(),
            None => "a system call".to_owned(),
        }
    }
}

/// Calls in which threads wait, as seen from one look to the next.
#[derive(Debug, Default)]
pub struct CallWatch {
    /// By the number of the thread.
    waits: HashMap<String, SeenCall>,
}

#[derive(Debug)]
struct SeenCall {
    /// Number, arguments and place of the call.
    call: String,
    switches: u64,
    since: Duration,
}

impl CallWatch {
    /// Looks at all threads, `now` by the caller's clock.
    pub fn look(&mut self, now: Duration) {
        let mut before = std::mem::take(&mut self.waits);
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
        for task in tasks.flatten() {
            let Ok(thread) = task.file_name().into_string() else {
                continue;
            };
            let Some((call, switches)) = present_call(&thread) else {
                continue;
            };
            let seen = before
                .remove(&thread)
                .filter(|seen| seen.call == call && seen.switches == switches);
            let since = seen.map_or(now, |seen| seen.since);
            let seen = SeenCall {
                call,
                switches,
                since,
            };
            self.waits.insert(thread, seen);
        }
    }

    /// Returns the calls that have been seen for at least `least` at `now`, the longest first.
    pub fn long_calls(&self, now: Duration, least: Duration) -> impl Iterator<Item = LongCall> {
        let waited = move |seen: &SeenCall| now.saturating_sub(seen.since);
        let mut long: Vec<_> = self.waits.iter().collect();
        long.retain(|(_, seen)| waited(seen) >= least);
        long.sort_by_key(|(_, seen)| seen.since);
        long.into_iter().filter_map(move |(thread, seen)| {
            let call = FileCall::parse(&seen.call)?;
            let path = call.path(thread);
            // The arguments are those of that call only as long as it lasts.
            let still = present_call(thread) == Some((seen.call.clone(), seen.switches));
            still.then(|| LongCall {
                operation: call.operation.name,
                path,
                waited: waited(seen),
            })
        })
    }
}

/// Returns the call about a file in which a thread waits, and how often it was switched to.
fn present_call(thread: &str) -> Option<(String, u64)> {
    let read = |file| std::fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok();
    let call = read("syscall")?;
    FileCall::parse(&call)?;
    let status = read("status")?;
    let switches = status.lines().filter_map(|line| {
        let (_, count) = line.split_once("ctxt_switches:")?;
        count.trim().parse::<u64>().ok()
    });
    Some((call, switches.sum()))
}

/// A system call about a file.
struct Operation {
    number: libc::c_long,
    name: &'static str,
    operand: Operand,
}

/// Arguments that say what a call is about.
#[derive(Clone, Copy)]
enum Operand {
    /// A descriptor is the first.
    Descriptor,
    /// A directory's descriptor is the first, a name the second.
    Entry,
    /// A directory's descriptor is the second, a name the third.
    SecondEntry,
    /// A path is the first.
    Path,
    /// Requests that were handed over before.
    Ring,
}

macro_rules! operations {
    ($($(#[$attribute:meta])? $call:ident $name:literal $operand:ident,)*) => {
        &[$(
            $(#[$attribute])?
            Operation { number: libc::$call, name: $name, operand: Operand::$operand },
        )*]
    };
}

const OPERATIONS: &[Operation] = operations! {
    SYS_read "read" Descriptor,
    SYS_pread64 "read" Descriptor,
    SYS_readv "read" Descriptor,
    SYS_preadv "read" Descriptor,
    SYS_preadv2 "read" Descriptor,
    SYS_write "write" Descriptor,
    SYS_pwrite64 "write" Descriptor,
    SYS_writev "write" Descriptor,
    SYS_pwritev "write" Descriptor,
    SYS_sendfile "copy" Descriptor,
    SYS_copy_file_range "copy" Descriptor,
    SYS_ioctl "ioctl" Descriptor,
    #[cfg(target_arch = "x86_64")]
    SYS_open "open" Path,
    SYS_openat "open" Entry,
    SYS_openat2 "open" Entry,
    SYS_close "close" Descriptor,
    SYS_fstat "stat" Descriptor,
    SYS_statx "stat" Entry,
    SYS_newfstatat "stat" Entry,
    SYS_faccessat "access" Entry,
    SYS_faccessat2 "access" Entry,
    #[cfg(target_arch = "x86_64")]
    SYS_readlink "readlink" Path,
    SYS_readlinkat "readlink" Entry,
    SYS_statfs "statfs" Path,
    SYS_fstatfs "statfs" Descriptor,
    SYS_getdents64 "read" Descriptor,
    SYS_lseek "seek" Descriptor,
    SYS_fadvise64 "fadvise" Descriptor,
    SYS_flock "lock" Descriptor,
    SYS_fsync "sync" Descriptor,
    SYS_fdatasync "sync" Descriptor,
    SYS_syncfs "sync" Descriptor,
    SYS_fallocate "allocate" Descriptor,
    SYS_ftruncate "truncate" Descriptor,
    SYS_mkdirat "mkdir" Entry,
    SYS_mknodat "mknod" Entry,
    SYS_linkat "link" Entry,
    SYS_symlinkat "symlink" SecondEntry,
    SYS_unlinkat "unlink" Entry,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    SYS_renameat "rename" Entry,
    SYS_renameat2 "rename" Entry,
    SYS_utimensat "utimes" Entry,
    SYS_fchmod "chmod" Descriptor,
    SYS_fchmodat "chmod" Entry,
    SYS_fchown "chown" Descriptor,
    SYS_fchownat "chown" Entry,
    SYS_getxattr "getxattr" Path,
    SYS_lgetxattr "getxattr" Path,
    SYS_fgetxattr "getxattr" Descriptor,
    SYS_listxattr "listxattr" Path,
    SYS_llistxattr "listxattr" Path,
    SYS_flistxattr "listxattr" Descriptor,
    SYS_setxattr "setxattr" Path,
    SYS_lsetxattr "setxattr" Path,
    SYS_fsetxattr "setxattr" Descriptor,
    SYS_removexattr "removexattr" Path,
    SYS_lremovexattr "removexattr" Path,
    SYS_fremovexattr "removexattr" Descriptor,
    SYS_name_to_handle_at "stat" Entry,
    SYS_io_uring_enter "io_uring" Ring,
};

/// A call with its arguments.
struct FileCall {
    operation: &'static Operation,
    arguments: [u64; 3],
}

impl FileCall {
    /// Parses `/proc/PID/syscall`: the number, then six arguments. `None` for calls that are not
    /// about a file, and threads that run.
    fn parse(text: &str) -> Option<FileCall> {
        let mut fields = text.split_whitespace();
        let number: libc::c_long = fields.next()?.parse().ok()?;
        let operation = OPERATIONS.iter().find(|one| one.number == number)?;
        let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
        let arguments = [argument()?, argument()?, argument()?];
        // A thread of the kernel's, as the ring has, shows the call that it was made in, and no stack.
        let stack = fields.nth(3)?;
        if stack == "0x0" {
            return None;
        }
        Some(FileCall {
            operation,
            arguments,
        })
    }

    /// Returns the path that the call of this thread is about.
    fn path(&self, thread: &str) -> Option<PathBuf> {
        let [first, second, third] = self.arguments;
        let path = match self.operation.operand {
            Operand::Descriptor => return behind(thread, first),
            Operand::Entry => name(second).map(|name| (Some(first), name)),
            Operand::SecondEntry => name(third).map(|name| (Some(second), name)),
            Operand::Path => name(first).map(|name| (None, name)),
            Operand::Ring => None,
        };
        let (directory, path) = path?;
        // A descriptor of the thread's own, spelled as a path.
        if let Some(rest) = path.strip_prefix(OWN_DESCRIPTORS).ok()
            && let Some(number) = rest.components().next()
            && let Ok(number) = number.as_os_str().to_str()?.parse()
        {
            let below: PathBuf = rest.components().skip(1).collect();
            let directory = behind(thread, number)?;
            return Some(match below.as_os_str().is_empty() {
                true => directory,
                false => directory.join(below),
            });
        }
        match directory {
            Some(directory) if path.as_os_str().is_empty() => behind(thread, directory),
            // AT_FDCWD, and other wrong ones.
            Some(directory) if path.is_relative() && (directory as i32) >= 0 => {
                Some(behind(thread, directory)?.join(path))
            }
            _ => Some(path),
        }
    }
}

/// Returns the path of a thread's descriptor.
fn behind(thread: &str, descriptor: u64) -> Option<PathBuf> {
    let link = format!("/proc/self/task/{thread}/fd/{descriptor}");
    std::fs::read_link(link).ok()
}

/// Reads a name that a waiting call was given.
fn name(address: u64) -> Option<PathBuf> {
    /// Parts of a page are there or not together.
    const PART: usize = 256;
    let memory = File::open("/proc/self/mem").ok()?;
    let mut name = Vec::new();
    while name.len() < 4096 {
        let at = address + name.len() as u64;
        let mut part = [0; PART];
        let length = PART - (at % PART as u64) as usize;
        let read = memory.read_at(&mut part[..length], at).ok()?;
        match part[..read].iter().position(|byte| *byte == 0) {
            Some(end) => {
                name.extend_from_slice(&part[..end]);
                let name = std::ffi::OsString::from_vec(name);
                return Some(PathBuf::from(name));
            }
            None if read == length => name.extend_from_slice(&part[..read]),
            None => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, openat};
    use std::io::{Read, Write};

    /// Looks until a call of the operation about this path has been seen more than once.
    fn see(operation: &str, path: &std::path::Path) {
        let mut watch = CallWatch::default();
        for now in (1..).map(Duration::from_secs) {
            watch.look(now);
            let mut long = watch.long_calls(now, Duration::from_secs(1));
            if long.any(|call| call.operation == operation && call.path.as_deref() == Some(path)) {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// A pipe without a writer holds its opening, and one without content its reading.
    #[test]
    fn what_a_thread_waits_for_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let path = dir.join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let at = File::open(&dir).unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let pipe = openat(&at, "pipe", OFlags::RDONLY, Mode::empty()).unwrap();
                let mut read = Vec::new();
                File::from(pipe).read_to_end(&mut read).unwrap();
                read
            });
            see("open", &path);
            let mut writer = File::options().write(true).open(&path).unwrap();
            see("read", &path);
            writer.write_all(b"end").unwrap();
            drop(writer);
            assert_eq!(reader.join().unwrap(), b"end");
        });
    }

    #[test]
    fn threads_that_run_and_other_calls_are_none() {
        assert!(FileCall::parse("running\n").is_none());
        let sleeps = format!("{} 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0", libc::SYS_nanosleep);
        assert!(FileCall::parse(&sleeps).is_none());
        let reads = |stack: &str| {
            let call = libc::SYS_pread64;
            FileCall::parse(&format!("{call} 0x5 0x0 0xff 0x0 0x0 0x0 {stack} 0x0"))
        };
        assert!(reads("0x0").is_none());
        let call = reads("0x7ffd0").unwrap();
        assert_eq!((call.operation.name, call.arguments), ("read", [5, 0, 255]));
        let place = |path: Option<&str>| {
            let call = LongCall {
                operation: "read",
                path: path.map(PathBuf::from),
                waited: Duration::ZERO,
            };
            call.place()
        };
        assert_eq!(place(Some("a\n")), r"a\n");
        assert_eq!(place(None), "a system call");
    }
}
