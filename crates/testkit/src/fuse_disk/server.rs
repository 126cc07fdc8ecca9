//! The file system behind a [`FuseDisk`](super::FuseDisk): a directory of its own, shown as it is,
//! but for what its [`Dial`] makes of that.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::mount::{UnmountFlags, unmount};

use super::dial::{
    Dial, DiskLoss, FAILING, FAILING_FROM, InFlight, RequestKind, UNSTORABLE, contains, is_named,
};

/// Requests that the kernel may have in flight for its own read-ahead and writing.
const BACKGROUND: u16 = 512;

pub(super) struct Server {
    root: PathBuf,
    mount: PathBuf,
    dial: Arc<Dial>,
    nodes: Mutex<Nodes>,
    handles: Mutex<HashMap<u64, Handle>>,
    next_handle: AtomicU64,
}

/// Nodes that were looked up.
#[derive(Default)]
struct Nodes {
    /// Paths below the root by inode number: several for a file with several names.
    names: HashMap<u64, BTreeSet<PathBuf>>,
    /// Inode numbers by path: with many files, a renaming must not look at all of them.
    numbers: BTreeMap<PathBuf, u64>,
}

impl Nodes {
    fn path(&self, node: u64) -> Option<&PathBuf> {
        self.names.get(&node).and_then(BTreeSet::first)
    }

    fn add(&mut self, path: PathBuf, node: u64) {
        self.remove(&path);
        self.names.entry(node).or_default().insert(path.clone());
        self.numbers.insert(path, node);
    }

    fn remove(&mut self, path: &Path) {
        if let Some(node) = self.numbers.remove(path)
            && let Some(names) = self.names.get_mut(&node)
        {
            names.remove(path);
        }
    }

    /// Removes all names of a node.
    fn forget(&mut self, node: u64) {
        for path in self.names.remove(&node).unwrap_or_default() {
            self.numbers.remove(&path);
        }
    }

    /// Has all nodes at or below `from` known below `to`.
    fn rename(&mut self, from: &Path, to: &Path) {
        let behind = (Bound::Included(from), Bound::Unbounded);
        let behind = self.numbers.range::<Path, _>(behind);
        let moved = behind.take_while(|(path, _)| path.starts_with(from));
        let moved: Vec<_> = moved.map(|(path, node)| (path.clone(), *node)).collect();
        for (path, node) in moved {
            self.remove(&path);
            // An empty rest would leave a slash at the end.
            let rest = path.strip_prefix(from).unwrap_or(&path);
            self.add(to.components().chain(rest.components()).collect(), node);
        }
    }
}

#[derive(Clone)]
enum Handle {
    File(Arc<OpenedFile>),
    Dir(Arc<OpenedDir>),
}

struct OpenedFile {
    file: File,
    node: u64,
    path: PathBuf,
    is_unstored: AtomicBool,
}

struct OpenedDir {
    path: PathBuf,
    entries: Vec<Listed>,
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

impl Server {
    pub(super) fn new(root: &Path, mount: &Path, dial: &Arc<Dial>) -> Server {
        Server {
            root: root.to_owned(),
            mount: mount.to_owned(),
            dial: Arc::clone(dial),
            nodes: Mutex::default(),
            handles: Mutex::default(),
            next_handle: AtomicU64::new(1),
        }
    }

    /// Takes a request about a path, or about nothing that has one, and waits before it is answered.
    fn arrive(&self, kind: RequestKind, path: Answer<PathBuf>) -> InFlight<'_> {
        let path = path.unwrap_or_default();
        let below = path.strip_prefix(&self.root).unwrap_or(&path);
        let in_flight = self.dial.arrive(kind, below);
        if self.dial.lost() == Some(DiskLoss::Gone) {
            // Ends the connection: every request, this one too, fails in the kernel from now on.
            let _ = unmount(&self.mount, UnmountFlags::FORCE);
        }
        in_flight
    }

    /// Fails if the disk is lost.
    fn there(&self) -> Answer<()> {
        match self.dial.lost() {
            None => Ok(()),
            Some(DiskLoss::Errors(errno)) => Err(refused(errno)),
            Some(DiskLoss::Gone) => Err(fuser::Errno::ENOTCONN),
        }
    }

    fn arrive_open(&self, kind: RequestKind, handle: FileHandle) -> InFlight<'_> {
        self.arrive(kind, self.file(handle).map(|file| file.path.clone()))
    }

    /// Returns a path of the node, in the directory that is shown.
    fn path(&self, node: INodeNo) -> Answer<PathBuf> {
        self.there()?;
        if node == INodeNo::ROOT {
            return Ok(self.root.clone());
        }
        let nodes = lock(&self.nodes);
        nodes
            .path(node.0)
            .map(|below| self.root.join(below))
            .ok_or(fuser::Errno::ESTALE)
    }

    fn below(&self, dir: INodeNo, name: &OsStr) -> Answer<PathBuf> {
        Ok(self.path(dir)?.join(name))
    }

    fn file(&self, handle: FileHandle) -> Answer<Arc<OpenedFile>> {
        self.there()?;
        match lock(&self.handles).get(&handle.0) {
            Some(Handle::File(file)) => Ok(file.clone()),
            _ => Err(fuser::Errno::EBADF),
        }
    }

    /// Returns a file that is open and may have no name any more.
    fn opened(&self, node: INodeNo) -> Option<Arc<OpenedFile>> {
        self.there().ok()?;
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
        if found.kind == FileType::Directory || found.nlink == 1 {
            // Its number may have been that of another file, which went behind our back.
            nodes.forget(found.ino.0);
        }
        nodes.add(below, found.ino.0);
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
        lock(&self.nodes).remove(below);
    }

    /// Has all nodes at or below `from` known below `to`.
    fn move_names(&self, from: &Path, to: &Path) {
        let below = |path: &Path| path.strip_prefix(&self.root).unwrap_or(path).to_owned();
        lock(&self.nodes).rename(&below(from), &below(to));
    }

    fn open_file(&self, file: File, path: &Path) -> Answer<FileHandle> {
        let node = file.metadata().map_err(refused)?.ino();
        Ok(self.keep(Handle::File(Arc::new(OpenedFile {
            file,
            node,
            path: path.to_owned(),
            is_unstored: AtomicBool::new(false),
        }))))
    }

    fn open_flags(&self) -> FopenFlags {
        match self.dial.behaviour.short_reads {
            // Else the kernel would take a short read for the end of the file.
            Some(_) => FopenFlags::FOPEN_DIRECT_IO,
            None => FopenFlags::empty(),
        }
    }

    fn ttl(&self) -> Duration {
        self.dial.behaviour.believed_for
    }

    fn list(&self, node: INodeNo) -> Answer<OpenedDir> {
        let path = self.path(node)?;
        let mut listed: Vec<Listed> = [".", ".."]
            .map(|name| Listed {
                node: node.0,
                kind: FileType::Directory,
                name: name.into(),
            })
            .into();
        for entry in path.read_dir().map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let kind = FileType::from_std(entry.file_type().map_err(refused)?);
            let kind = match kind.ok_or(fuser::Errno::EIO)? {
                FileType::NamedPipe | FileType::Socket | FileType::CharDevice
                    if self.dial.behaviour.lists_all_as_files =>
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
        Ok(OpenedDir {
            path,
            entries: listed,
        })
    }

    /// Closes one of a file's descriptors.
    fn close(&self, file: &OpenedFile) -> Answer<()> {
        let Some(errno) = self.dial.behaviour.close_error else {
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
        let _in_flight = self.arrive(RequestKind::Lookup, self.below(dir, name));
        let entry = self.below(dir, name).and_then(|path| self.entry(&path));
        answer_entry(reply, self.ttl(), entry);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let _in_flight = self.arrive(RequestKind::Attributes, self.path(node));
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
        let _in_flight = self.arrive(RequestKind::Change, self.path(node));
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
        let _in_flight = self.arrive(RequestKind::Attributes, self.path(node));
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
        let _in_flight = self.arrive(RequestKind::Change, self.below(dir, name));
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
        let _in_flight = self.arrive(RequestKind::Change, self.below(dir, name));
        let made = self.below(dir, name).and_then(|path| {
            let mode = Mode::from_raw_mode(mode & !umask & 0o7777);
            rustix::fs::mkdir(&path, mode).map_err(refused)?;
            rustix::fs::chmodat(CWD, &path, mode, AtFlags::empty()).map_err(refused)?;
            self.made(&path, request)
        });
        answer_entry(reply, self.ttl(), made);
    }

    fn unlink(&self, _: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _in_flight = self.arrive(RequestKind::Change, self.below(dir, name));
        let gone = self.below(dir, name).and_then(|path| {
            std::fs::remove_file(&path).map_err(refused)?;
            self.forget_name(&path);
            Ok(())
        });
        answer_empty(reply, gone);
    }

    fn rmdir(&self, _: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _in_flight = self.arrive(RequestKind::Change, self.below(dir, name));
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
        let _in_flight = self.arrive(RequestKind::Change, self.below(dir, name));
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
        let _in_flight = self.arrive(RequestKind::Change, self.below(from, name));
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
        let _in_flight = self.arrive(RequestKind::Change, self.below(dir, name));
        let linked = || -> Answer<FileAttr> {
            let (from, to) = (self.path(node)?, self.below(dir, name)?);
            rustix::fs::linkat(CWD, &from, CWD, &to, AtFlags::empty()).map_err(refused)?;
            self.entry(&to)
        };
        answer_entry(reply, self.ttl(), linked());
    }

    fn open(&self, _: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let _in_flight = self.arrive(RequestKind::Open, self.path(node));
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
        let _in_flight = self.arrive(RequestKind::Open, self.below(dir, name));
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
        let _in_flight = self.arrive_open(RequestKind::Read, handle);
        let read = || -> Answer<Vec<u8>> {
            let file = self.file(handle)?;
            let most = self.dial.behaviour.short_reads.unwrap_or(usize::MAX);
            let mut bytes = vec![0; (size as usize).min(most)];
            let length = file.file.read_at(&mut bytes, offset).map_err(refused)?;
            bytes.truncate(length);
            self.dial.read(file.node, offset, length);
            match self.dial.behaviour.read_error {
                Some(errno)
                    if is_named(&file.path, FAILING) && offset + length as u64 > FAILING_FROM =>
                {
                    Err(refused(errno))
                }
                _ => Ok(bytes),
            }
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
        let _in_flight = self.arrive_open(RequestKind::Write, handle);
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
        let _in_flight = self.arrive_open(RequestKind::Close, handle);
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
        let _in_flight = self.arrive_open(RequestKind::Sync, handle);
        answer_empty(reply, self.file(handle).map(|_| ()));
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let _in_flight = self.arrive(RequestKind::List, self.path(node));
        match self.list(node) {
            Ok(dir) => {
                let handle = self.keep(Handle::Dir(Arc::new(dir)));
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
        let Some(Handle::Dir(dir)) = lock(&self.handles).get(&handle.0).cloned() else {
            return reply.error(fuser::Errno::EBADF);
        };
        let _in_flight = self.arrive(RequestKind::List, Ok(dir.path.clone()));
        if let Err(errno) = self.there() {
            return reply.error(errno);
        }
        let mut listed = &dir.entries[..];
        if let Some(errno) = self.dial.behaviour.read_error
            && is_named(&dir.path, FAILING)
        {
            listed = &listed[..listed.len() / 2];
            if offset as usize >= listed.len() {
                return reply.error(refused(errno));
            }
        }
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

    fn fsyncdir(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let _in_flight = self.arrive(RequestKind::Sync, self.path(node));
        answer_empty(reply, self.there());
    }

    fn statfs(&self, _: &Request, node: INodeNo, reply: ReplyStatfs) {
        let _in_flight = self.arrive(RequestKind::Attributes, self.path(node));
        if let Err(errno) = self.there() {
            return reply.error(errno);
        }
        // Room for everything, and names of 255 bytes.
        const MANY: u64 = 1 << 30;
        reply.statfs(MANY, MANY, MANY, MANY, MANY, 4096, 255, 4096);
    }
}
