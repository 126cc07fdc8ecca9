//! State of a slot between an entry's begin and its finish.

use std::os::fd::OwnedFd;

use bc_fs::mount::{Answer, basic_traits};
use bc_walk::{EntryId, Error, ErrorKind, FileStat, Listing};
use rustix::io::{Errno, retry_on_intr};

use super::cursor::{ReadCursor, Step};
use crate::buffer::Buffer;
use crate::open::verify;
use crate::plan::Length;
use crate::steady::Watch;
use crate::types::{Feed, Opened, SizeTrust, Want};
use crate::waits::Residency;

/// A slot is one buffer's worth of a file, or waiting for it.
pub(crate) enum Slot {
    Free,
    /// The ring is opening the entry.
    Opening {
        entry: EntryId,
        want: Want,
    },
    /// Opened, but all buffers of its size are in use.
    Starved(Active),
    /// Reading, which may be in flight, or ready for the consumer.
    Active(Active),
}

/// An opened file in a slot. While a read is in flight, the ring has `file` and
/// `buffer`.
pub(crate) struct Active {
    pub(crate) opened: Opened,
    /// True if an `fstat` has verified `file`.
    pub(crate) verified: bool,
    /// True if it is read by plain calls, whatever they wait for.
    pub(crate) plain: bool,
    /// True if it takes one more at the end; see [`VerifyWhen::AtEnd`](crate::VerifyWhen::AtEnd).
    pub(crate) confirm: bool,
    pub(crate) cursor: ReadCursor,
    pub(crate) file: Option<OwnedFd>,
    pub(crate) buffer: Option<Buffer>,
    pub(crate) filled: usize,
    /// Bytes that the read in flight asked for.
    pub(crate) asked: usize,
    /// True if the buffer's content is the last of it.
    pub(crate) end: bool,
    pub(crate) seek: Seek,
    pub(crate) length: Length,
    pub(crate) want: Want,
    pub(crate) watch: Watch,
    /// Bytes read so far.
    pub(crate) bytes: u64,
}

/// Call by which a file is read: with an offset or without.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Seek {
    /// `pread`.
    Offset,
    /// `read`: some pseudo files have no positions.
    Stream,
}

/// Result of a plain read that does not wait.
pub(crate) enum PlainRead {
    Read(usize),
    /// Needs to wait for the disk.
    Miss,
    /// Unknown: the file system does not report it.
    Unknown,
    /// Unsupported by the file system or the kernel; see [`Silent`].
    Unsupported,
}

impl Active {
    pub(crate) fn new(
        opened: Opened,
        verified: bool,
        want: Want,
        cursor: ReadCursor,
        file: OwnedFd,
    ) -> Active {
        Active {
            opened,
            verified,
            plain: false,
            confirm: false,
            want,
            watch: Watch::Off,
            bytes: 0,
            cursor,
            file: Some(file),
            buffer: None,
            filled: 0,
            asked: 0,
            end: false,
            seek: Seek::Offset,
            length: Length::Short,
        }
    }

    /// Returns the descriptor; only while no read is in flight.
    pub(crate) fn file(&self) -> &OwnedFd {
        self.file.as_ref().expect("no read in flight")
    }

    fn buffer(&self) -> &Buffer {
        self.buffer.as_ref().expect("no read in flight")
    }

    /// Sets how many bytes to ask for next.
    pub(crate) fn ask(&mut self, chunk: usize) {
        let len = self.buffer().len();
        self.asked = self.cursor.ask(len - self.filled, len, chunk);
    }

    /// Reads the bytes asked for, waiting for the disk.
    pub(crate) fn read(&mut self) -> Result<usize, Errno> {
        let file = self.file.as_ref().expect("no read in flight");
        let buffer = self.buffer.as_mut().expect("no read in flight");
        let room = &mut buffer[self.filled..self.filled + self.asked];
        loop {
            let result = match self.seek {
                Seek::Offset => rustix::io::pread(file, &mut *room, self.cursor.pos()),
                Seek::Stream => rustix::io::read(file, &mut *room),
            };
            match result {
                Err(Errno::INTR) => {}
                // This would take the bytes of a FIFO that took the file's place.
                Err(Errno::SPIPE)
                    if self.verified && self.seek == Seek::Offset && self.cursor.pos() == 0 =>
                {
                    self.seek = Seek::Stream;
                }
                result => return result,
            }
        }
    }

    /// Reads the bytes asked for as far as they are resident.
    pub(crate) fn read_cached(&mut self) -> Result<PlainRead, Errno> {
        #[cfg(test)]
        if crate::tests::pretends_unknown() {
            return Ok(PlainRead::Unknown);
        }
        use rustix::io::ReadWriteFlags;
        let file = self.file.as_ref().expect("no read in flight");
        let buffer = self.buffer.as_mut().expect("no read in flight");
        let room = &mut buffer[self.filled..self.filled + self.asked];
        let mut rooms = [std::io::IoSliceMut::new(room)];
        let result = retry_on_intr(|| {
            rustix::io::preadv2(file, &mut rooms, self.cursor.pos(), ReadWriteFlags::NOWAIT)
        });
        match result {
            Ok(n) => Ok(PlainRead::Read(n)),
            Err(Errno::AGAIN) => Ok(PlainRead::Miss),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(PlainRead::Unsupported),
            Err(Errno::INVAL | Errno::SPIPE | Errno::PERM) => Ok(PlainRead::Unknown),
            Err(errno) => Err(errno),
        }
    }

    /// Takes out the descriptor and the buffer, which the ring has to own while a read is in
    /// flight.
    pub(crate) fn lend(&mut self) -> (OwnedFd, Buffer) {
        (
            self.file.take().expect("no read in flight"),
            self.buffer.take().expect("no read in flight"),
        )
    }

    /// Takes back the descriptor and the buffer that [`lend`](Active::lend) gave away.
    pub(crate) fn give_back(&mut self, file: OwnedFd, buffer: Buffer) {
        self.file = Some(file);
        self.buffer = Some(buffer);
    }

    /// Takes note of `n` bytes read as asked.
    pub(crate) fn took(&mut self, n: usize) -> Step {
        let len = self.buffer().len();
        let before = self.filled;
        self.filled += n;
        self.bytes += n as u64;
        if let Watch::Sum(summed) = &mut self.watch {
            let buffer = self.buffer.as_ref().expect("no read in flight");
            summed.sum.update(&buffer[before..self.filled]);
        }
        self.cursor.took(n, self.asked, len - self.filled)
    }

    /// Verifies that the file did not change between the first read and now.
    pub(crate) fn unchanged(&self, listing: &Listing, trust: SizeTrust) -> Result<(), Error> {
        let path = || listing.path(self.opened.entry);
        let now = retry_on_intr(|| rustix::fs::fstat(self.file()))
            .map_err(|errno| Error::new(path(), "stat", errno))?;
        let same = FileStat::from(&now).stamp == self.opened.stat.stamp;
        if same && self.enough(trust) {
            Ok(())
        } else {
            Err(Error::of_kind(path(), "read", ErrorKind::Changed))
        }
    }

    /// Verifies, after the last read, that the file is the one that was listed, in the state that
    /// was listed.
    pub(crate) fn confirm(&mut self, listing: &Listing, trust: SizeTrust) -> Result<(), Error> {
        let entry = self.opened.entry;
        let now = verify(listing, entry, self.file())?;
        if now.stamp != self.opened.stat.stamp || !self.enough(trust) {
            return Err(Error::of_kind(
                listing.path(entry),
                "read",
                ErrorKind::Changed,
            ));
        }
        self.opened.stat = now;
        self.verified = true;
        self.confirm = false;
        Ok(())
    }

    /// True if more has come of a file that the kernel makes up than any reader can want.
    pub(crate) fn is_endless(&self) -> bool {
        self.cursor.is_whole()
            && self.cursor.pos() > ENDLESS.max(self.opened.stat.stamp.size)
            && is_made_up(self.file())
    }

    /// True if as much was read as the size had promised: less from an unchanged file is right only
    /// where sizes are made up.
    pub(crate) fn enough(&self, trust: SizeTrust) -> bool {
        trust == SizeTrust::Untrusted || self.cursor.complete() || makes_up_sizes(self.file())
    }

    /// True if its descriptor may have a lease, for which a writer would wait.
    pub(crate) fn is_leased(&self) -> bool {
        // With the last piece the descriptor was closed.
        matches!(self.watch, Watch::Lease(_)) && !self.end
    }

    /// Returns the piece to show the consumer.
    pub(crate) fn feed(&self, slot: usize) -> Feed<'_> {
        Feed {
            slot,
            data: &self.buffer()[..self.filled],
            end: self.end,
        }
    }
}

/// File systems that cannot report what is resident (`RWF_NOWAIT`): FUSE, tmpfs, overlays, images.
/// Each is asked once, not with every file. They are learned instead of looked up because the
/// kernel's version decides as well.
///
/// The ring reads on none of them: its bytes would be wrong. When a read returns less than it was
/// asked for, `io_uring` asks for the rest by itself, at the position in its own record. A file
/// system has to move that position on, and FUSE does not for direct reads (`FOPEN_DIRECT_IO`): the
/// same bytes come again, until the buffer is full, or the file as long as its size says. Neither
/// the number of bytes nor a second `fstat` shows that, and an overlay or a union above such a
/// server inherits it. Asking for fewer bytes does not help, since a server may return less than any
/// number, nor does a descriptor without `O_NONBLOCK` (tried on 6.18: FUSE files can be polled, and
/// are always ready). So the kernel's own mark decides (`FMODE_NOWAIT`, without which it refuses
/// `RWF_NOWAIT`): file systems that have it read through the page cache, which moves the position
/// on.
#[derive(Debug)]
pub(crate) struct Silent {
    devs: Vec<u64>,
    /// Devices that report what is resident, as far as one was asked.
    reporting: Vec<u64>,
    residency: Residency,
}

impl Silent {
    /// Starts with the devices learned up to now.
    pub(crate) fn new(residency: &Residency) -> Silent {
        Silent {
            devs: residency.silent().clone(),
            reporting: Vec::new(),
            residency: residency.clone(),
        }
    }

    /// Leaves the bytes asked for to the ring (`Miss`) where it may read, which the first file of a
    /// device is asked for.
    pub(crate) fn leave(&mut self, active: &mut Active) -> Result<PlainRead, Errno> {
        if self.reporting.contains(&active.opened.stat.id.dev) {
            return Ok(PlainRead::Miss);
        }
        self.read(active)
    }

    /// Reads the bytes asked for as far as they are resident.
    pub(crate) fn read(&mut self, active: &mut Active) -> Result<PlainRead, Errno> {
        let dev = active.opened.stat.id.dev;
        if self.devs.contains(&dev) {
            return Ok(PlainRead::Unknown);
        }
        let plain = active.read_cached()?;
        if matches!(plain, PlainRead::Unsupported) {
            self.devs.push(dev);
            let mut all = self.residency.silent();
            if !all.contains(&dev) {
                all.push(dev);
            }
            return Ok(PlainRead::Unknown);
        }
        // A file that is not verified may be another device's.
        if matches!(plain, PlainRead::Read(_) | PlainRead::Miss) && active.verified {
            self.note_reporting(dev);
        }
        Ok(plain)
    }

    /// Notes that a verified file of this device reported what of it is resident.
    pub(crate) fn note_reporting(&mut self, dev: u64) {
        if !self.reporting.contains(&dev) {
            self.reporting.push(dev);
        }
    }
}

/// Bytes that a file that the kernel makes up may have beyond its size: tables of symbols and of a
/// tracer's events have some 20 MB, while the page map of a process extends over 256 GB.
const ENDLESS: u64 = 64 << 20;

/// True if the file's system, or its server, may not know sizes.
fn makes_up_sizes(file: &OwnedFd) -> bool {
    basic_traits(file).is_ok_and(|traits| traits.sizes != Answer::Yes)
}

/// True if the kernel makes up the file's content when it is asked.
pub(crate) fn is_made_up(file: &OwnedFd) -> bool {
    basic_traits(file).is_ok_and(|traits| traits.pseudo)
}
