//! File system over FUSE that shows a directory of its own, and makes its callers wait or fail as
//! servers, disks and unions do: latency, a cap of requests, one decompressor, the arm of a disk,
//! stalls, short reads, errors at a close, kinds that are not those that are there.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, SessionACL, TimeOrNow, WriteFlags,
};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::loop_disk::apart;

/// Content that no close stores: files that contain these bytes lose all their content.
pub const UNSTORABLE: &str = "UNSTORABLE";

/// Part of the names of files whose reads stall.
pub const STALLING: &str = "STALLING";

/// Requests that are served at the same time. Programs under test have up to 128 in flight.
const THREADS: usize = 160;

/// Requests that the kernel may have in flight for its own read-ahead and writing.
const BACKGROUND: u16 = 512;

/// Ways in which a [`FuseDisk`] makes its callers wait or fail. By default it does neither.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// Time that each request takes, however many are in flight.
    pub latency: Duration,
    /// Greatest random addition to the latency.
    pub jitter: Duration,
    /// Greatest number of requests answered in a second.
    pub requests_per_second: Option<u32>,
    /// Time of the one decompressor for each read: reads wait for each other.
    pub decompressor: Option<Duration>,
    /// Arm of a disk that all reads share.
    pub arm: Option<DiskArm>,
    /// Time that the first read of a file takes whose name contains [`STALLING`].
    pub stall: Option<Duration>,
    /// Greatest number of bytes that a read returns, unless it is at the end of the file.
    pub short_reads: Option<usize>,
    /// Error of the close of a file that was written to and contains [`UNSTORABLE`]; `fsync`
    /// reports nothing.
    pub close_error: Option<Errno>,
    /// Directories list FIFOs, sockets and devices as regular files.
    pub lists_all_as_files: bool,
    /// Time for which the kernel may believe names and attributes.
    pub believed_for: Duration,
}

/// Arm of a disk on which files lie in the order of their inode numbers.
#[derive(Clone, Copy, Debug)]
pub struct DiskArm {
    /// Time to read what follows the last read, for each MiB.
    pub transfer: Duration,
    /// Time for a way of one file, and at most of `furthest`.
    pub step: Duration,
    /// Time for the longest way.
    pub furthest: Duration,
}

/// A file system with a [`Behaviour`], mounted through FUSE; unmounted on drop.
#[derive(Debug)]
pub struct FuseDisk {
    mount: TempDir,
    shown: TempDir,
    counts: Arc<Counts>,
    // Dropped last: its end unmounts.
    session: Option<BackgroundSession>,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
}

impl FuseDisk {
    /// Returns its mount point.
    pub fn path(&self) -> &Path {
        self.mount.path()
    }

    /// Returns the directory that it shows, where nothing waits or fails.
    pub fn shown(&self) -> &Path {
        self.shown.path()
    }

    /// Returns the number of requests since the last call, and the greatest number that were in
    /// flight at one time since then.
    pub fn take_counts(&self) -> RequestCounts {
        RequestCounts {
            requests: self.counts.requests.swap(0, Relaxed),
            most_in_flight: self.counts.most_in_flight.swap(0, Relaxed),
        }
    }
}

/// Requests that a [`FuseDisk`] has answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestCounts {
    /// Number of requests.
    pub requests: u64,
    /// Greatest number of them at one time.
    pub most_in_flight: usize,
}

impl Drop for FuseDisk {
    fn drop(&mut self) {
        // Detached even if busy: a mount left behind would outlive the test run.
        let _ = rustix::mount::unmount(self.mount.path(), rustix::mount::UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

/// Mounts such a file system where the calling thread and the programs that it starts from then on
/// can see it, and no others.
///
/// # Errors
/// The reason why this machine cannot: not root, or no FUSE.
pub fn fuse_disk(behaviour: Behaviour) -> Result<FuseDisk, String> {
    if !crate::is_root() {
        return Err("mounting through FUSE needs root".to_owned());
    }
    if !Path::new("/dev/fuse").exists() {
        return Err("there is no /dev/fuse".to_owned());
    }
    apart()?;
    let temporary = || TempDir::new().map_err(|e| format!("temporary directory: {e}"));
    let (mount, shown) = (temporary()?, temporary()?);
    let counts = Arc::<Counts>::default();
    let server = Server {
        root: shown.path().to_owned(),
        behaviour,
        counts: counts.clone(),
        nodes: Mutex::default(),
        handles: Mutex::default(),
        next_handle: AtomicU64::new(1),
        rate: Mutex::new(Instant::now()),
        decompressor: Mutex::new(Instant::now()),
        arm: Mutex::new(ArmState {
            free_at: Instant::now(),
            position: 0,
        }),
        seed: AtomicU64::new(1),
    };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("bc-testkit".to_owned()),
        MountOption::DefaultPermissions,
    ];
    config.acl = SessionACL::All;
    config.n_threads = Some(THREADS);
    let session = fuser::spawn_mount(server, mount.path(), &config);
    let session = session.map_err(|e| format!("mount through FUSE: {e}"))?;
    Ok(FuseDisk {
        mount,
        shown,
        counts,
        session: Some(session),
    })
}

struct Server {
    root: PathBuf,
    behaviour: Behaviour,
    counts: Arc<Counts>,
    /// Paths below the root of the nodes that were looked up, by inode number: several for a file
    /// with several names.
    nodes: Mutex<HashMap<u64, BTreeSet<PathBuf>>>,
    handles: Mutex<HashMap<u64, Handle>>,
    next_handle: AtomicU64,
    /// Time when the next request may be answered, the decompressor and the arm are free.
    rate: Mutex<Instant>,
    decompressor: Mutex<Instant>,
    arm: Mutex<ArmState>,
    seed: AtomicU64,
}

struct ArmState {
    free_at: Instant,
    /// Address behind the last read.
    position: u64,
}

#[derive(Clone)]
enum Handle {
    File(Arc<OpenedFile>),
    Dir(Arc<Vec<Listed>>),
}

struct OpenedFile {
    file: File,
    node: u64,
    is_unstored: AtomicBool,
    stalls: AtomicBool,
}

struct Listed {
    node: u64,
    kind: FileType,
    name: OsString,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Answer<T> = Result<T, fuser::Errno>;

fn refused(error: impl Into<std::io::Error>) -> fuser::Errno {
    fuser::Errno::from_i32(error.into().raw_os_error().unwrap_or(5))
}

/// Takes `cost` of a resource that serves one after the other; returns the time when it is done.
fn occupy(free_at: &mut Instant, cost: Duration) -> Instant {
    *free_at = (*free_at).max(Instant::now()) + cost;
    *free_at
}

fn sleep_until(then: Instant) {
    let left = then.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        std::thread::sleep(left);
    }
}

/// Request in flight, from its arrival on.
struct InFlight<'s>(&'s Counts);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl Server {
    /// Waits as long as a request takes before it is answered.
    fn arrive(&self) -> InFlight<'_> {
        let now = Instant::now();
        self.counts.requests.fetch_add(1, Relaxed);
        let in_flight = self.counts.in_flight.fetch_add(1, Relaxed) + 1;
        self.counts.most_in_flight.fetch_max(in_flight, Relaxed);
        let guard = InFlight(&self.counts);
        if let Some(most) = self.behaviour.requests_per_second {
            sleep_until(occupy(
                &mut lock(&self.rate),
                Duration::from_secs(1) / most.max(1),
            ));
        }
        let jitter = match self.behaviour.jitter {
            Duration::ZERO => Duration::ZERO,
            jitter => jitter.mul_f64(self.random()),
        };
        sleep_until(now + self.behaviour.latency + jitter);
        guard
    }

    /// Returns a number from 0 to 1 that looks random: SplitMix64 (Steele, Lea, Flood 2014).
    fn random(&self) -> f64 {
        let mut z = self.seed.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) as f64 / u64::MAX as f64
    }

    /// Waits for what a read of `length` bytes at `offset` of the file needs.
    fn wait_to_read(&self, file: &OpenedFile, offset: u64, length: usize) {
        if let Some(stall) = self.behaviour.stall
            && file.stalls.swap(false, Relaxed)
        {
            std::thread::sleep(stall);
        }
        if let Some(cost) = self.behaviour.decompressor {
            sleep_until(occupy(&mut lock(&self.decompressor), cost));
        }
        if let Some(arm) = self.behaviour.arm {
            /// Files lie so far apart; those that are larger reach into the next ones.
            const SPACING: u64 = 1 << 20;
            let address = file.node * SPACING + offset;
            let mut state = lock(&self.arm);
            let files = state.position.abs_diff(address).div_ceil(SPACING) as u32;
            let way = match state.position == address {
                true => Duration::ZERO,
                false => arm.step.saturating_mul(files).min(arm.furthest),
            };
            let transfer = arm.transfer.mul_f64(length as f64 / f64::from(1 << 20));
            state.position = address + length as u64;
            let done = occupy(&mut state.free_at, way + transfer);
            drop(state);
            sleep_until(done);
        }
    }

    /// Returns a path of the node, in the directory that is shown.
    fn path(&self, node: INodeNo) -> Answer<PathBuf> {
        if node == INodeNo::ROOT {
            return Ok(self.root.clone());
        }
        let nodes = lock(&self.nodes);
        let below = nodes.get(&node.0).and_then(BTreeSet::first);
        below
            .map(|below| self.root.join(below))
            .ok_or(fuser::Errno::ESTALE)
    }

    fn below(&self, dir: INodeNo, name: &OsStr) -> Answer<PathBuf> {
        Ok(self.path(dir)?.join(name))
    }

    fn file(&self, handle: FileHandle) -> Answer<Arc<OpenedFile>> {
        match lock(&self.handles).get(&handle.0) {
            Some(Handle::File(file)) => Ok(file.clone()),
            _ => Err(fuser::Errno::EBADF),
        }
    }

    /// Returns a file that is open and may have no name any more.
    fn opened(&self, node: INodeNo) -> Option<Arc<OpenedFile>> {
        lock(&self.handles)
            .values()
            .find_map(|handle| match handle {
                Handle::File(file) if file.node == node.0 => Some(file.clone()),
                _ => None,
            })
    }

    fn keep(&self, handle: Handle) -> FileHandle {
        let number = self.next_handle.fetch_add(1, Relaxed);
        lock(&self.handles).insert(number, handle);
        FileHandle(number)
    }

    /// Returns attributes of the node at `path`, from now on known by its number.
    fn entry(&self, path: &Path) -> Answer<FileAttr> {
        let found = attr(&path.symlink_metadata().map_err(refused)?)?;
        let below = path.strip_prefix(&self.root).unwrap_or(path).to_owned();
        let mut nodes = lock(&self.nodes);
        let names = nodes.entry(found.ino.0).or_default();
        if found.kind == FileType::Directory || found.nlink == 1 {
            // Its number may have been that of another file, which went behind our back.
            names.clear();
        }
        names.insert(below);
        Ok(found)
    }

    fn attr(&self, node: INodeNo) -> Answer<FileAttr> {
        let metadata = match self.path(node) {
            Ok(path) => path.symlink_metadata(),
            Err(gone) => self.opened(node).ok_or(gone)?.file.metadata(),
        };
        let mut attr = attr(&metadata.map_err(refused)?)?;
        attr.ino = node;
        Ok(attr)
    }

    /// Gives what was made to the caller, as the kernel would.
    fn made(&self, path: &Path, request: &Request) -> Answer<FileAttr> {
        let (uid, gid) = (Uid::from_raw(request.uid()), Gid::from_raw(request.gid()));
        rustix::fs::chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(refused)?;
        self.entry(path)
    }

    fn forget_name(&self, path: &Path) {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        for names in lock(&self.nodes).values_mut() {
            names.remove(below);
        }
    }

    /// Has all nodes at or below `from` known below `to`.
    fn move_names(&self, from: &Path, to: &Path) {
        let below = |path: &Path| path.strip_prefix(&self.root).unwrap_or(path).to_owned();
        let (from, to) = (below(from), below(to));
        for names in lock(&self.nodes).values_mut() {
            let moved: Vec<PathBuf> = names
                .iter()
                .filter(|name| name.starts_with(&from))
                .cloned()
                .collect();
            for name in moved {
                names.remove(&name);
                // An empty rest would leave a slash at the end.
                let rest = name.strip_prefix(&from).unwrap_or(&name);
                names.insert(to.components().chain(rest.components()).collect());
            }
        }
    }

    fn open_file(&self, file: File, path: &Path) -> Answer<FileHandle> {
        let node = file.metadata().map_err(refused)?.ino();
        let name = path.file_name().unwrap_or_default().as_bytes();
        let stalls = contains(name, STALLING.as_bytes());
        Ok(self.keep(Handle::File(Arc::new(OpenedFile {
            file,
            node,
            is_unstored: AtomicBool::new(false),
            stalls: AtomicBool::new(stalls),
        }))))
    }

    fn open_flags(&self) -> FopenFlags {
        match self.behaviour.short_reads {
            // Else the kernel would take a short read for the end of the file.
            Some(_) => FopenFlags::FOPEN_DIRECT_IO,
            None => FopenFlags::empty(),
        }
    }

    fn ttl(&self) -> Duration {
        self.behaviour.believed_for
    }

    fn list(&self, node: INodeNo) -> Answer<Vec<Listed>> {
        let mut listed: Vec<Listed> = [".", ".."]
            .map(|name| Listed {
                node: node.0,
                kind: FileType::Directory,
                name: name.into(),
            })
            .into();
        for entry in self.path(node)?.read_dir().map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let kind = FileType::from_std(entry.file_type().map_err(refused)?);
            let kind = match kind.ok_or(fuser::Errno::EIO)? {
                FileType::NamedPipe | FileType::Socket | FileType::CharDevice
                    if self.behaviour.lists_all_as_files =>
                {
                    FileType::RegularFile
                }
                kind => kind,
            };
            let metadata = std::fs::symlink_metadata(entry.path()).map_err(refused)?;
            listed.push(Listed {
                node: metadata.ino(),
                kind,
                name: entry.file_name(),
            });
        }
        Ok(listed)
    }

    /// Closes one of a file's descriptors.
    fn close(&self, file: &OpenedFile) -> Answer<()> {
        let Some(errno) = self.behaviour.close_error else {
            return Ok(());
        };
        if !file.is_unstored.swap(false, Relaxed) {
            return Ok(());
        }
        let mut content = vec![0; file.file.metadata().map_err(refused)?.len() as usize];
        file.file.read_exact_at(&mut content, 0).map_err(refused)?;
        if !contains(&content, UNSTORABLE.as_bytes()) {
            return Ok(());
        }
        file.file.set_len(0).map_err(refused)?;
        Err(refused(errno))
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let part = Duration::from_nanos(nanoseconds.unsigned_abs());
    match u64::try_from(seconds) {
        Ok(seconds) => UNIX_EPOCH + Duration::from_secs(seconds) + part,
        Err(_) => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()) + part,
    }
}

fn attr(metadata: &std::fs::Metadata) -> Answer<FileAttr> {
    Ok(FileAttr {
        ino: INodeNo(metadata.ino()),
        size: metadata.len(),
        blocks: metadata.blocks(),
        atime: time(metadata.atime(), metadata.atime_nsec()),
        mtime: time(metadata.mtime(), metadata.mtime_nsec()),
        ctime: time(metadata.ctime(), metadata.ctime_nsec()),
        crtime: UNIX_EPOCH,
        kind: FileType::from_std(metadata.file_type()).ok_or(fuser::Errno::EIO)?,
        perm: (metadata.mode() & 0o7777) as u16,
        nlink: metadata.nlink() as u32,
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: metadata.rdev() as u32,
        blksize: 4096,
        flags: 0,
    })
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let then = match time {
        Some(TimeOrNow::SpecificTime(then)) => then,
        Some(TimeOrNow::Now) => SystemTime::now(),
        None => {
            return Timespec {
                tv_sec: 0,
                tv_nsec: rustix::fs::UTIME_OMIT,
            };
        }
    };
    match then.duration_since(UNIX_EPOCH) {
        Ok(after) => Timespec {
            tv_sec: after.as_secs() as i64,
            tv_nsec: i64::from(after.subsec_nanos()),
        },
        Err(before) => {
            let before = before.duration();
            let borrowed = i64::from(before.subsec_nanos() > 0);
            Timespec {
                tv_sec: -(before.as_secs() as i64) - borrowed,
                tv_nsec: borrowed * 1_000_000_000 - i64::from(before.subsec_nanos()),
            }
        }
    }
}

fn answer_entry(reply: ReplyEntry, ttl: Duration, entry: Answer<FileAttr>) {
    match entry {
        Ok(attr) => reply.entry(&ttl, &attr, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn answer_empty(reply: ReplyEmpty, done: Answer<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn answer_data<T: AsRef<[u8]>>(reply: ReplyData, data: Answer<T>) {
    match data {
        Ok(data) => reply.data(data.as_ref()),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Without it the kernel asks for one name of a directory after the other.
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _in_flight = self.arrive();
        let entry = self.below(dir, name).and_then(|path| self.entry(&path));
        answer_entry(reply, self.ttl(), entry);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let _in_flight = self.arrive();
        match self.attr(node) {
            Ok(attr) => reply.attr(&self.ttl(), &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let _in_flight = self.arrive();
        let set = || -> Answer<FileAttr> {
            // A name follows no link; a file without a name is reached by what has it open.
            let path = match self.path(node) {
                Ok(path) => path,
                Err(gone) => {
                    use std::os::fd::AsRawFd;
                    let opened = self.opened(node).ok_or(gone)?;
                    PathBuf::from(format!("/proc/self/fd/{}", opened.file.as_raw_fd()))
                }
            };
            if uid.is_some() || gid.is_some() {
                let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(CWD, &path, uid, gid, flags).map_err(refused)?;
            }
            if let Some(mode) = mode {
                let mode = Mode::from_raw_mode(mode & 0o7777);
                rustix::fs::chmodat(CWD, &path, mode, AtFlags::empty()).map_err(refused)?;
            }
            if let Some(size) = size {
                let file = File::options().write(true).open(&path).map_err(refused)?;
                file.set_len(size).map_err(refused)?;
            }
            if atime.is_some() || mtime.is_some() {
                let times = Timestamps {
                    last_access: timespec(atime),
                    last_modification: timespec(mtime),
                };
                rustix::fs::utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(refused)?;
            }
            self.attr(node)
        };
        match set() {
            Ok(attr) => reply.attr(&self.ttl(), &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        let _in_flight = self.arrive();
        let target = self
            .path(node)
            .and_then(|path| path.read_link().map_err(refused));
        answer_data(reply, target.map(|t| t.as_os_str().as_bytes().to_vec()));
    }

    fn mknod(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let _in_flight = self.arrive();
        let made = self.below(dir, name).and_then(|path| {
            let kind = rustix::fs::FileType::from_raw_mode(mode);
            let mode = Mode::from_raw_mode(mode & !umask & 0o7777);
            rustix::fs::mknodat(CWD, &path, kind, mode, rdev.into()).map_err(refused)?;
            rustix::fs::chmodat(CWD, &path, mode, AtFlags::empty()).map_err(refused)?;
            self.made(&path, request)
        });
        answer_entry(reply, self.ttl(), made);
    }

    fn mkdir(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let _in_flight = self.arrive();
        let made = self.below(dir, name).and_then(|path| {
            let mode = Mode::from_raw_mode(mode & !umask & 0o7777);
            rustix::fs::mkdir(&path, mode).map_err(refused)?;
            rustix::fs::chmodat(CWD, &path, mode, AtFlags::empty()).map_err(refused)?;
            self.made(&path, request)
        });
        answer_entry(reply, self.ttl(), made);
    }

    fn unlink(&self, _: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _in_flight = self.arrive();
        let gone = self.below(dir, name).and_then(|path| {
            std::fs::remove_file(&path).map_err(refused)?;
            self.forget_name(&path);
            Ok(())
        });
        answer_empty(reply, gone);
    }

    fn rmdir(&self, _: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _in_flight = self.arrive();
        let gone = self.below(dir, name).and_then(|path| {
            std::fs::remove_dir(&path).map_err(refused)?;
            self.forget_name(&path);
            Ok(())
        });
        answer_empty(reply, gone);
    }

    fn symlink(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let _in_flight = self.arrive();
        let made = self.below(dir, name).and_then(|path| {
            std::os::unix::fs::symlink(target, &path).map_err(refused)?;
            self.made(&path, request)
        });
        answer_entry(reply, self.ttl(), made);
    }

    fn rename(
        &self,
        _: &Request,
        from: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let _in_flight = self.arrive();
        let rename = || -> Answer<()> {
            let (from, to) = (self.below(from, name)?, self.below(to, new_name)?);
            let with = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            rustix::fs::renameat_with(CWD, &from, CWD, &to, with).map_err(refused)?;
            if flags.contains(RenameFlags::RENAME_EXCHANGE) {
                let between = self.root.join("\u{1}exchanged");
                self.move_names(&to, &between);
                self.move_names(&from, &to);
                self.move_names(&between, &from);
            } else {
                self.forget_name(&to);
                self.move_names(&from, &to);
            }
            Ok(())
        };
        answer_empty(reply, rename());
    }

    fn link(&self, _: &Request, node: INodeNo, dir: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _in_flight = self.arrive();
        let linked = || -> Answer<FileAttr> {
            let (from, to) = (self.path(node)?, self.below(dir, name)?);
            rustix::fs::linkat(CWD, &from, CWD, &to, AtFlags::empty()).map_err(refused)?;
            self.entry(&to)
        };
        answer_entry(reply, self.ttl(), linked());
    }

    fn open(&self, _: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let _in_flight = self.arrive();
        let open = || -> Answer<FileHandle> {
            let path = self.path(node)?;
            // What is asked of names was done by the kernel; it may write where it only appends.
            let kept = OFlags::ACCMODE | OFlags::TRUNC;
            let mut flags = OFlags::from_bits_retain(flags.0 as u32) & kept;
            if flags & OFlags::ACCMODE == OFlags::WRONLY {
                flags = flags & !OFlags::ACCMODE | OFlags::RDWR;
            }
            let flags = flags | OFlags::CLOEXEC;
            let file = rustix::fs::open(&path, flags, Mode::empty()).map_err(refused)?;
            self.open_file(file.into(), &path)
        };
        match open() {
            Ok(handle) => reply.opened(handle, self.open_flags()),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let _in_flight = self.arrive();
        let create = || -> Answer<(FileAttr, FileHandle)> {
            let path = self.below(dir, name)?;
            let asked = OFlags::from_bits_retain(flags as u32);
            let flags = asked & (OFlags::EXCL | OFlags::TRUNC)
                | OFlags::CREATE
                | OFlags::RDWR
                | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(mode & !umask & 0o7777);
            let file = File::from(rustix::fs::open(&path, flags, mode).map_err(refused)?);
            rustix::fs::fchmod(&file, mode).map_err(refused)?;
            let attr = self.made(&path, request)?;
            Ok((attr, self.open_file(file, &path)?))
        };
        match create() {
            Ok((attr, handle)) => {
                reply.created(&self.ttl(), &attr, Generation(0), handle, self.open_flags())
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let _in_flight = self.arrive();
        let read = || -> Answer<Vec<u8>> {
            let file = self.file(handle)?;
            let most = self.behaviour.short_reads.unwrap_or(usize::MAX);
            let mut bytes = vec![0; (size as usize).min(most)];
            let length = file.file.read_at(&mut bytes, offset).map_err(refused)?;
            bytes.truncate(length);
            self.wait_to_read(&file, offset, length);
            Ok(bytes)
        };
        answer_data(reply, read());
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let _in_flight = self.arrive();
        let write = || -> Answer<()> {
            let file = self.file(handle)?;
            file.is_unstored.store(true, Relaxed);
            file.file.write_all_at(data, offset).map_err(refused)
        };
        match write() {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        let _in_flight = self.arrive();
        let closed = self.file(handle).and_then(|file| self.close(&file));
        answer_empty(reply, closed);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        // No process waits for it.
        lock(&self.handles).remove(&handle.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let _in_flight = self.arrive();
        answer_empty(reply, self.file(handle).map(|_| ()));
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let _in_flight = self.arrive();
        match self.list(node) {
            Ok(listed) => {
                let handle = self.keep(Handle::Dir(Arc::new(listed)));
                reply.opened(handle, FopenFlags::empty());
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let _in_flight = self.arrive();
        let Some(Handle::Dir(listed)) = lock(&self.handles).get(&handle.0).cloned() else {
            return reply.error(fuser::Errno::EBADF);
        };
        for (at, entry) in listed.iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(entry.node), at as u64 + 1, entry.kind, &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        lock(&self.handles).remove(&handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let _in_flight = self.arrive();
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let _in_flight = self.arrive();
        // Room for everything, and names of 255 bytes.
        const MANY: u64 = 1 << 30;
        reply.statfs(MANY, MANY, MANY, MANY, MANY, 4096, 255, 4096);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn disk(behaviour: Behaviour) -> Option<FuseDisk> {
        fuse_disk(behaviour)
            .inspect_err(|reason| crate::left_out(reason))
            .ok()
    }

    #[test]
    fn a_close_says_what_no_write_said() {
        let Some(disk) = disk(Behaviour {
            close_error: Some(Errno::DQUOT),
            ..Behaviour::default()
        }) else {
            return;
        };
        let at = |name: &str| disk.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/good"), "stored").unwrap();
        std::fs::rename(at("d/good"), at("kept")).unwrap();
        let bad = File::create(at("d/bad")).unwrap();
        let second = bad.try_clone().unwrap();
        (&bad).write_all(UNSTORABLE.as_bytes()).unwrap();
        bad.sync_all().unwrap();
        drop((bad, second));
        assert_eq!(std::fs::read(at("kept")).unwrap(), b"stored");
        assert_eq!(std::fs::read(at("d/bad")).unwrap(), b"");
        let names: Vec<_> = std::fs::read_dir(at("d")).unwrap().flatten().collect();
        assert_eq!(names.len(), 1);
        std::fs::remove_file(at("d/bad")).unwrap();
        std::fs::remove_dir(at("d")).unwrap();
        assert!(!at("d").exists());
    }

    #[test]
    fn kinds_that_are_listed_are_not_those_that_are_there() {
        let Some(disk) = disk(Behaviour {
            lists_all_as_files: true,
            ..Behaviour::default()
        }) else {
            return;
        };
        let mode = Mode::from_raw_mode(0o600);
        let pipe = disk.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let listed = std::fs::read_dir(disk.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        assert!(listed.file_type().unwrap().is_file());
        assert!(!pipe.symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn it_keeps_what_a_file_system_keeps() {
        let Some(disk) = disk(Behaviour::default()) else {
            return;
        };
        let at = |name: &str| disk.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/one"), "1").unwrap();
        std::fs::hard_link(at("a/b/one"), at("two")).unwrap();
        std::fs::rename(at("a"), at("moved")).unwrap();
        assert_eq!(at("two").metadata().unwrap().nlink(), 2);
        std::fs::remove_file(at("moved/b/one")).unwrap();
        assert_eq!(std::fs::read(at("two")).unwrap(), b"1");
        std::fs::write(at("x"), "x").unwrap();
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(CWD, at("x"), CWD, at("two"), flags).unwrap();
        assert_eq!(std::fs::read(at("two")).unwrap(), b"x");
        assert_eq!(std::fs::read(at("x")).unwrap(), b"1");
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        let taken = rustix::fs::renameat_with(CWD, at("x"), CWD, at("two"), flags);
        assert_eq!(taken, Err(Errno::EXIST));
        let open = File::options()
            .read(true)
            .write(true)
            .open(at("x"))
            .unwrap();
        std::fs::remove_file(at("x")).unwrap();
        open.write_all_at(b"still", 0).unwrap();
        assert_eq!(open.metadata().unwrap().len(), 5);
        open.set_len(2).unwrap();
        assert_eq!(open.metadata().unwrap().len(), 2);
        // Before 1970 the crate takes parts of a second for parts to the other side.
        let then = UNIX_EPOCH - Duration::from_secs(2);
        let two = File::options().write(true).open(at("two")).unwrap();
        two.set_modified(then).unwrap();
        assert_eq!(at("two").metadata().unwrap().modified().unwrap(), then);
        std::os::unix::fs::symlink("two", at("link")).unwrap();
        assert_eq!(std::fs::read_link(at("link")).unwrap(), Path::new("two"));
    }

    #[test]
    fn what_waits_is_counted_and_reads_may_be_short() {
        let Some(disk) = disk(Behaviour {
            latency: Duration::from_millis(5),
            short_reads: Some(3),
            ..Behaviour::default()
        }) else {
            return;
        };
        for name in 0..8 {
            std::fs::write(disk.shown().join(name.to_string()), "longer than three").unwrap();
        }
        disk.take_counts();
        let started = Instant::now();
        std::thread::scope(|scope| {
            for name in 0..8 {
                let path = disk.path().join(name.to_string());
                scope.spawn(move || {
                    let file = File::open(path).unwrap();
                    let mut bytes = [0; 100];
                    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 3);
                });
            }
        });
        let counts = disk.take_counts();
        // Name, open, read and close of each.
        assert!(counts.requests >= 32, "{counts:?}");
        assert!(counts.most_in_flight > 1, "{counts:?}");
        assert!(started.elapsed() >= Duration::from_millis(20));
    }
}
