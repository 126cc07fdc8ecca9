//! Messages of the FUSE protocol, as far as a small server needs them (`linux/fuse.h`, 7.31).

use rustix::io::Errno;

/// A request: its header was read, the arguments come one after the other. Missing ones are zero.
pub(crate) struct Input<'a> {
    pub(crate) operation: u32,
    pub(crate) unique: u64,
    /// Number of the node that it is about.
    pub(crate) node: u64,
    /// User and group of the caller.
    pub(crate) owner: (u32, u32),
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn of(request: &'a [u8]) -> Option<Input<'a>> {
        let mut input = Input {
            operation: 0,
            unique: 0,
            node: 0,
            owner: (0, 0),
            rest: request.get(4..)?,
        };
        input.operation = input.u32();
        input.unique = input.u64();
        input.node = input.u64();
        input.owner = (input.u32(), input.u32());
        // Process, length of extensions.
        input.skip(8);
        Some(input)
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (bytes, rest) = self.rest.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.rest = rest;
        *bytes
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    pub(crate) fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Takes a name, which ends with NUL.
    pub(crate) fn name(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| *byte == 0);
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.get(1..).unwrap_or_default();
        name
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// Answer to the kernel.
pub(crate) enum FuseReply {
    Bytes(Vec<u8>),
    Error(Errno),
    /// No answer, as the kernel does not wait for one.
    Nothing,
}

/// Returns an answer with its header.
pub(crate) fn message(unique: u64, answer: FuseReply) -> Option<Vec<u8>> {
    let (error, bytes) = match answer {
        FuseReply::Bytes(bytes) => (0, bytes),
        FuseReply::Error(errno) => (-errno.raw_os_error(), Vec::new()),
        FuseReply::Nothing => return None,
    };
    let mut message = Vec::with_capacity(16 + bytes.len());
    message.extend_from_slice(&(16 + bytes.len() as u32).to_ne_bytes());
    message.extend_from_slice(&error.to_ne_bytes());
    message.extend_from_slice(&unique.to_ne_bytes());
    message.extend_from_slice(&bytes);
    Some(message)
}

/// Returns version and limits.
pub(crate) fn init_out() -> Vec<u8> {
    const MAX_WRITE: u32 = 128 << 10;
    let mut out = Vec::with_capacity(64);
    // Version, read-ahead, features, queue, largest write, grain of times.
    for word in [7, 31, MAX_WRITE, 0, 0, MAX_WRITE, 1] {
        out.extend_from_slice(&u32::to_ne_bytes(word));
    }
    out.resize(64, 0);
    out
}

/// Returns number, size and blocks; times; mode, links, user, group and device.
pub(crate) fn attr(head: [u64; 3], times: [(u64, u32); 3], tail: [u32; 5]) -> Vec<u8> {
    let mut out = Vec::with_capacity(88);
    for word in head.into_iter().chain(times.map(|(seconds, _)| seconds)) {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    for word in times
        .map(|(_, nanoseconds)| nanoseconds)
        .into_iter()
        .chain(tail)
    {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    // Size of a block, flags.
    out.extend_from_slice(&4096_u32.to_ne_bytes());
    out.resize(88, 0);
    out
}

/// Returns attributes that the kernel is not to cache.
pub(crate) fn attr_out(attr: &[u8]) -> Vec<u8> {
    [&[0; 16][..], attr].concat()
}

/// Returns a name that the kernel is not to cache, and the node that it leads to.
pub(crate) fn entry_out(node: u64, attr: &[u8]) -> Vec<u8> {
    [&node.to_ne_bytes()[..], &[0; 32], attr].concat()
}

/// Returns unlimited space and files.
pub(crate) fn statfs_out() -> Vec<u8> {
    let mut out = Vec::with_capacity(80);
    for _ in 0..5 {
        out.extend_from_slice(&(1_u64 << 30).to_ne_bytes());
    }
    for word in [4096_u32, 255, 4096] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.resize(80, 0);
    out
}

/// Appends an entry of a directory: number, offset of the next one, kind and name. True if there
/// was room.
pub(crate) fn push_entry(
    out: &mut Vec<u8>,
    room: usize,
    (number, next): (u64, u64),
    kind: u32,
    name: &[u8],
) -> bool {
    let length = (24 + name.len()).next_multiple_of(8);
    if out.len() + length > room {
        return false;
    }
    let end = out.len() + length;
    out.extend_from_slice(&number.to_ne_bytes());
    out.extend_from_slice(&next.to_ne_bytes());
    out.extend_from_slice(&(name.len() as u32).to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(name);
    out.resize(end, 0);
    true
}
