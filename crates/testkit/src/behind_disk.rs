//! File system in memory that misbehaves as servers do: it takes every write, and reports only when
//! a file is closed that some of it could not be stored.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{FileType, RawMode};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use crate::fuse::{FuseReply, Input, attr, attr_out, entry_out, message, push_entry};
use crate::loop_disk::apart;

/// Content that no close stores: files that contain these bytes lose all their content.
pub const UNSTORABLE: &str = "UNSTORABLE";

/// Way in which such a file system fails.
#[derive(Clone, Copy, Debug)]
pub enum Misbehaviour {
    /// Failing close: that of a file that was written to and contains [`UNSTORABLE`] fails with
    /// this error. `fsync` reports nothing.
    Close(Errno),
    /// Directories list FIFOs, sockets and devices as regular files.
    Kinds,
}

/// Such a file system, mounted through FUSE; unmounted on drop.
#[derive(Debug)]
pub struct BehindDisk {
    dir: TempDir,
}

impl BehindDisk {
    /// Returns its mount point.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for BehindDisk {
    fn drop(&mut self) {
        // Its server ends with it.
        let _ = unmount(self.dir.path(), UnmountFlags::DETACH);
    }
}

/// Mounts such a file system where the calling thread and the programs that it starts from then on
/// can see it, and no others.
///
/// # Errors
/// The reason why this machine cannot: not root, or no FUSE.
pub fn behind_disk(how: Misbehaviour) -> Result<BehindDisk, String> {
    if !crate::is_root() {
        return Err("mounting through FUSE needs root".to_owned());
    }
    let mut device = File::options();
    let device = device.read(true).write(true).open("/dev/fuse");
    let device = device.map_err(|e| format!("/dev/fuse: {e}"))?;
    apart()?;
    let dir = TempDir::new().map_err(|e| format!("temporary directory: {e}"))?;
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions\0",
        device.as_raw_fd()
    );
    let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes());
    let options = options.map_err(|e| e.to_string())?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("bc-testkit", dir.path(), "fuse", flags, Some(options))
        .map_err(|e| format!("mount: {e}"))?;
    let mut server = Server::new(how);
    std::thread::spawn(move || server.serve(device));
    Ok(BehindDisk { dir })
}

/// Nodes count from 1, which is the root; none is given up before the end.
struct Server {
    nodes: Vec<Node>,
    how: Misbehaviour,
}

struct Node {
    mode: RawMode,
    owner: (u32, u32),
    rdev: u32,
    links: u32,
    /// Access, modification and change: seconds and nanoseconds.
    times: [(u64, u32); 3],
    content: Vec<u8>,
    names: BTreeMap<Vec<u8>, u64>,
    /// True if it was written to since it was closed last.
    is_unstored: bool,
}

impl Node {
    fn new(mode: RawMode, owner: (u32, u32)) -> Node {
        Node {
            mode,
            owner,
            rdev: 0,
            links: 1,
            times: [now(); 3],
            content: Vec::new(),
            names: BTreeMap::new(),
            is_unstored: false,
        }
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }
}

fn now() -> (u64, u32) {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or((0, 0), |since| (since.as_secs(), since.subsec_nanos()))
}

impl Server {
    fn new(how: Misbehaviour) -> Server {
        let root = Node::new(FileType::Directory.as_raw_mode() | 0o755, (0, 0));
        Server {
            nodes: vec![root],
            how,
        }
    }

    fn serve(&mut self, mut device: File) {
        let mut request = vec![0; 1 << 20];
        loop {
            let length = match device.read(&mut request) {
                Ok(length) => length,
                Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => return,
                // It was interrupted, or given up by the caller.
                Err(_) => continue,
            };
            let Some(mut input) = Input::of(&request[..length]) else {
                continue;
            };
            let answer = self.answer(&mut input);
            if let Some(message) = message(input.unique, answer) {
                // No process waits for the answer any more.
                let _ = device.write_all(&message);
            }
        }
    }

    fn node(&mut self, number: u64) -> Result<&mut Node, Errno> {
        let at = (number as usize).wrapping_sub(1);
        self.nodes.get_mut(at).ok_or(Errno::STALE)
    }

    fn attr(&mut self, number: u64) -> Result<Vec<u8>, Errno> {
        let node = self.node(number)?;
        let size = node.content.len() as u64;
        let head = [number, size, size.div_ceil(512)];
        let (uid, gid) = node.owner;
        Ok(attr(
            head,
            node.times,
            [node.mode, node.links, uid, gid, node.rdev],
        ))
    }

    fn entry(&mut self, number: u64) -> Result<Vec<u8>, Errno> {
        Ok(entry_out(number, &self.attr(number)?))
    }

    fn find(&mut self, dir: u64, name: &[u8]) -> Result<u64, Errno> {
        self.node(dir)?.names.get(name).copied().ok_or(Errno::NOENT)
    }

    /// Makes a new node under a name that is free.
    fn make(&mut self, dir: u64, name: &[u8], node: Node) -> Result<u64, Errno> {
        if self.find(dir, name).is_ok() {
            return Err(Errno::EXIST);
        }
        self.nodes.push(node);
        let number = self.nodes.len() as u64;
        self.name(dir, name, number)?;
        Ok(number)
    }

    fn name(&mut self, dir: u64, name: &[u8], number: u64) -> Result<(), Errno> {
        let dir = self.node(dir)?;
        dir.names.insert(name.to_vec(), number);
        dir.times[1] = now();
        dir.times[2] = now();
        Ok(())
    }

    fn unname(&mut self, dir: u64, name: &[u8]) -> Result<u64, Errno> {
        let number = self.find(dir, name)?;
        if !self.node(number)?.names.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        let dir = self.node(dir)?;
        dir.names.remove(name);
        dir.times[1] = now();
        let node = self.node(number)?;
        node.links = node.links.saturating_sub(1);
        node.times[2] = now();
        Ok(number)
    }

    fn rename(&mut self, from: u64, to: u64, flags: u32, names: [&[u8]; 2]) -> Result<(), Errno> {
        const NOREPLACE: u32 = 1;
        const EXCHANGE: u32 = 2;
        let number = self.find(from, names[0])?;
        let other = self.find(to, names[1]);
        match flags {
            EXCHANGE => {
                self.name(from, names[0], other?)?;
                self.name(to, names[1], number)?;
            }
            NOREPLACE if other.is_ok() => return Err(Errno::EXIST),
            _ => {
                if other.is_ok_and(|other| other != number) {
                    self.unname(to, names[1])?;
                }
                self.node(from)?.names.remove(names[0]);
                self.name(to, names[1], number)?;
            }
        }
        self.node(number)?.times[2] = now();
        Ok(())
    }

    /// Closes one of a node's descriptors.
    fn flush(&mut self, number: u64) -> Result<(), Errno> {
        let how = self.how;
        let node = self.node(number)?;
        let marker = UNSTORABLE.as_bytes();
        let is_unstored = std::mem::take(&mut node.is_unstored);
        match how {
            Misbehaviour::Close(errno)
                if is_unstored && node.content.windows(marker.len()).any(|at| at == marker) =>
            {
                node.content.clear();
                Err(errno)
            }
            _ => Ok(()),
        }
    }

    fn list(&mut self, number: u64, from: u64, room: usize) -> Result<Vec<u8>, Errno> {
        let lies = matches!(self.how, Misbehaviour::Kinds);
        let names = self.node(number)?.names.clone();
        let dots = [(b".".to_vec(), number), (b"..".to_vec(), number)];
        let mut out = Vec::new();
        for (at, (name, number)) in dots
            .into_iter()
            .chain(names)
            .enumerate()
            .skip(from as usize)
        {
            let kind = match self.node(number)?.kind() {
                FileType::Fifo | FileType::Socket | FileType::CharacterDevice if lies => {
                    FileType::RegularFile
                }
                kind => kind,
            };
            let kind = kind.as_raw_mode() >> 12;
            if !push_entry(&mut out, room, (number, at as u64 + 1), kind, &name) {
                break;
            }
        }
        Ok(out)
    }

    /// Changes the attributes that are asked for (`FATTR_*` in `linux/fuse.h`).
    fn set(&mut self, input: &mut Input<'_>) -> Result<Vec<u8>, Errno> {
        let number = input.node;
        let valid = input.u32();
        input.skip(12);
        let size = input.u64();
        input.skip(8);
        let seconds = [input.u64(), input.u64(), input.u64()];
        let nanoseconds = [input.u32(), input.u32(), input.u32()];
        let mode = input.u32();
        input.skip(4);
        let owner = (input.u32(), input.u32());
        let node = self.node(number)?;
        let has = |bit: u32| valid & 1 << bit != 0;
        node.times[2] = now();
        if has(0) {
            node.mode = node.mode & !0o7777 | mode & 0o7777;
        }
        if has(1) {
            node.owner.0 = owner.0;
        }
        if has(2) {
            node.owner.1 = owner.1;
        }
        if has(3) {
            node.content.resize(size as usize, 0);
            node.is_unstored = true;
            node.times[1] = now();
        }
        for (time, (set, set_now)) in [(4, 7), (5, 8)].into_iter().enumerate() {
            if has(set) {
                node.times[time] = match has(set_now) {
                    true => now(),
                    false => (seconds[time], nanoseconds[time]),
                };
            }
        }
        Ok(attr_out(&self.attr(number)?))
    }

    fn write(&mut self, input: &mut Input<'_>) -> Result<Vec<u8>, Errno> {
        input.skip(8);
        let (at, length) = (input.u64() as usize, input.u32() as usize);
        input.skip(20);
        let bytes = input.rest();
        let node = self.node(input.node)?;
        let end = at + length;
        node.content.resize(node.content.len().max(end), 0);
        node.content[at..end].copy_from_slice(bytes.get(..length).ok_or(Errno::INVAL)?);
        node.is_unstored = true;
        node.times[1] = now();
        node.times[2] = now();
        Ok([(length as u32).to_ne_bytes(), [0; 4]].concat())
    }

    /// Answers an operation by its number in `linux/fuse.h`.
    fn answer(&mut self, input: &mut Input<'_>) -> FuseReply {
        const OPENED: [u8; 16] = [0; 16];
        let (number, owner) = (input.node, input.owner);
        let out = match input.operation {
            // FORGET, INTERRUPT, BATCH_FORGET: no process waits.
            2 | 36 | 42 => return FuseReply::Nothing,
            // INIT
            26 => return FuseReply::Bytes(crate::fuse::init_out()),
            // LOOKUP
            1 => {
                let name = input.name();
                self.find(number, name).and_then(|found| self.entry(found))
            }
            // GETATTR
            3 => self.attr(number).map(|attr| attr_out(&attr)),
            4 => self.set(input),
            // READLINK
            5 => self.node(number).map(|node| node.content.clone()),
            // SYMLINK
            6 => {
                let (name, target) = (input.name(), input.name());
                let mut node = Node::new(FileType::Symlink.as_raw_mode() | 0o777, owner);
                node.content = target.to_vec();
                self.make(number, name, node)
                    .and_then(|made| self.entry(made))
            }
            // MKNOD
            8 => {
                let (mode, rdev, umask) = (input.u32(), input.u32(), input.u32());
                input.skip(4);
                let node = Node {
                    rdev,
                    ..Node::new(mode & !umask, owner)
                };
                self.make(number, input.name(), node)
                    .and_then(|made| self.entry(made))
            }
            // MKDIR
            9 => {
                let (mode, umask) = (input.u32(), input.u32());
                let mode = FileType::Directory.as_raw_mode() | mode & !umask & 0o7777;
                let made = self.make(number, input.name(), Node::new(mode, owner));
                made.and_then(|made| self.entry(made))
            }
            // UNLINK, RMDIR
            10 | 11 => self.unname(number, input.name()).map(|_| Vec::new()),
            // RENAME, RENAME2
            12 | 45 => {
                let to = input.u64();
                let flags = if input.operation == 45 {
                    input.u64() as u32
                } else {
                    0
                };
                let names = [input.name(), input.name()];
                self.rename(number, to, flags, names).map(|()| Vec::new())
            }
            // LINK
            13 => {
                let linked = input.u64();
                let name = input.name();
                match self.find(number, name) {
                    Ok(_) => Err(Errno::EXIST),
                    Err(_) => self.name(number, name, linked).and_then(|()| {
                        self.node(linked)?.links += 1;
                        self.entry(linked)
                    }),
                }
            }
            // OPEN, OPENDIR
            14 | 27 => Ok(OPENED.to_vec()),
            // READ
            15 => {
                input.skip(8);
                let (at, length) = (input.u64() as usize, input.u32() as usize);
                self.node(number).map(|node| {
                    let bytes = node.content.get(at..).unwrap_or_default();
                    bytes[..bytes.len().min(length)].to_vec()
                })
            }
            16 => self.write(input),
            // STATFS: room for everything, and names of 255 bytes.
            17 => Ok(crate::fuse::statfs_out()),
            // RELEASE, FSYNC, RELEASEDIR, FSYNCDIR, ACCESS, DESTROY
            18 | 20 | 29 | 30 | 34 | 38 => Ok(Vec::new()),
            // FLUSH
            25 => self.flush(number).map(|()| Vec::new()),
            // READDIR
            28 => {
                input.skip(8);
                let (from, room) = (input.u64(), input.u32() as usize);
                self.list(number, from, room)
            }
            // CREATE
            35 => {
                input.skip(4);
                let (mode, umask) = (input.u32(), input.u32());
                input.skip(4);
                let mode = FileType::RegularFile.as_raw_mode() | mode & !umask & 0o7777;
                let made = self.make(number, input.name(), Node::new(mode, owner));
                made.and_then(|made| Ok([self.entry(made)?, OPENED.to_vec()].concat()))
            }
            _ => Err(Errno::NOSYS),
        };
        out.map_or_else(FuseReply::Error, FuseReply::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_says_what_no_write_said() {
        let disk = match behind_disk(Misbehaviour::Close(Errno::DQUOT)) {
            Ok(disk) => disk,
            Err(reason) => return crate::left_out(&reason),
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
        let disk = match behind_disk(Misbehaviour::Kinds) {
            Ok(disk) => disk,
            Err(reason) => return crate::left_out(&reason),
        };
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let pipe = disk.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        let listed = std::fs::read_dir(disk.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        assert!(listed.file_type().unwrap().is_file());
        assert!(!pipe.symlink_metadata().unwrap().is_file());
    }
}
