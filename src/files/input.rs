//! Inputs that the user names: lists, manifests, reports; a file, or standard input, which has to
//! exist. Inputs of any type are bounded here, and a signal is noticed between two reads.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use bc_edit::content;
use bc_fs::dirfd;
use bc_fs::input::Interruptible;
use bc_fs::streams::{self, Stream};
use bc_pool::Cancel;
use rustix::fs::MemfdFlags;

use crate::report::diagnostic::Diagnostic;

/// Bytes of a device that are read before it is taken for one without an end.
const MOST_OF_A_DEVICE: u64 = 16 << 20;
/// Bytes of a pipe, whose other end may write for ever.
const MOST_OF_A_PIPE: u64 = 64 << 30;
/// Longest line, in bytes; a longer one is an error.
const MAX_LINE: u64 = 16 << 20;
/// Most bytes of an input that is read into memory as a whole.
const MOST_IN_MEMORY: u64 = 1 << 30;

/// Bytes that identify the format of an input.
const HEAD: usize = 64 << 10;

/// An open input.
pub struct Input {
    from: Interruptible<UntilCancelled>,
    left: u64,
}

/// Returns true if a reader is to end.
type UntilCancelled = Box<dyn Fn() -> bool>;

impl Input {
    /// Opens FILE, or standard input for `-`. Errors say path, operation and reason.
    pub fn open(name: &OsStr, cancel: &Cancel) -> Result<Input, Diagnostic> {
        Input::of(open(Path::new(name), cancel)?, name, cancel)
    }

    /// Opens it as [`open`](Input::open) does, but refuses devices, before they are opened, since
    /// opening one may have effects.
    pub fn open_no_device(name: &OsStr, cancel: &Cancel) -> Result<Input, Diagnostic> {
        let path = Path::new(name);
        check(path)?;
        let device = || format!("{}: is a device", shown(path));
        if std::fs::metadata(path).is_ok_and(|meta| is_device(&meta)) {
            return Err(device().into());
        }
        let file = open(path, cancel)?;
        if file.metadata().is_ok_and(|meta| is_device(&meta)) && !rustix::termios::isatty(&file) {
            return Err(device().into());
        }
        Input::of(file, name, cancel)
    }

    fn of(file: File, name: &OsStr, cancel: &Cancel) -> Result<Input, Diagnostic> {
        let kind = file
            .metadata()
            .map_err(|error| Diagnostic::failed(name, "stat", &error))?
            .file_type();
        let left = if kind.is_file() {
            u64::MAX
        } else if kind.is_fifo() || kind.is_socket() || rustix::termios::isatty(&file) {
            MOST_OF_A_PIPE
        } else {
            MOST_OF_A_DEVICE
        };
        let cancel = cancel.clone();
        let is_over: UntilCancelled = Box::new(move || cancel.is_cancelled());
        Ok(Input {
            from: Interruptible::new(file, is_over),
            left,
        })
    }

    /// Limits it to `most` bytes, unless it is a file, which has an end.
    #[must_use]
    pub fn within(mut self, most: u64) -> Input {
        if self.left != u64::MAX {
            self.left = self.left.min(most);
        }
        self
    }

    /// Moves it into a file without a name, where it can be read more than once. Its beginning,
    /// some whole lines if there are, is shown to `is_wanted`; an input that is not wanted is read
    /// no further.
    ///
    /// # Errors
    /// Of reading and writing; `None` for an input that is not wanted.
    pub fn keep(
        mut self,
        is_wanted: impl FnOnce(&File) -> io::Result<bool>,
    ) -> io::Result<Option<File>> {
        let mut file = nameless()?;
        let mut head = Vec::new();
        while head.len() < HEAD && !head.contains(&b'\n') {
            let mut piece = [0; 4096];
            match self.read(&mut piece)? {
                0 => break,
                count => head.extend_from_slice(&piece[..count]),
            }
        }
        file.write_all(&head)?;
        if !is_wanted(&file)? {
            return Ok(None);
        }
        io::copy(&mut self, &mut file)?;
        Ok(Some(file))
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// If it is larger than an input in memory may be.
    pub fn read_whole(mut self) -> io::Result<Vec<u8>> {
        read_whole(&mut self)
    }
}

/// Opens a file without a name: on a disk where that can be, else in memory.
fn nameless() -> io::Result<File> {
    let mut opened = directories().into_iter();
    let opened = opened.find_map(|place| {
        let dir = dirfd::open_root(place.as_os_str().as_encoded_bytes()).ok()?;
        content::create_unnamed(dir, 0o600).ok()
    });
    let file = match opened {
        Some(file) => file,
        None => rustix::fs::memfd_create("bc", MemfdFlags::CLOEXEC)?,
    };
    Ok(file.into())
}

/// Returns the directories where it may be, the best first: the user's choice for temporary files,
/// the place for large ones, our own, and the place for small ones.
fn directories() -> Vec<PathBuf> {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let mut all: Vec<PathBuf> = named.into_iter().collect();
    all.push("/var/tmp".into());
    all.extend(crate::parse::environment::cache_dir());
    all.push("/tmp".into());
    all
}

fn is_device(meta: &std::fs::Metadata) -> bool {
    let kind = meta.file_type();
    kind.is_char_device() || kind.is_block_device()
}

/// Opens standard input. Errors name it.
pub fn stdin() -> Result<File, Diagnostic> {
    streams::open(Stream::Input).map_err(|error| format!("stdin: {error}").into())
}

/// Returns true if `name` means standard input, as `-` and `/dev/stdin` do.
pub fn is_stdin(name: &OsStr) -> bool {
    crate::parse::args::is_dash(name) || bc_edit::output::descriptor(name) == Some(0)
}

/// Returns true if there is a standard input, and no person at it: it is the input then where none
/// is named.
pub fn is_fed() -> bool {
    !streams::was_closed(Stream::Input) && !io::stdin().is_terminal()
}

/// Opens the file at `path`, or standard input for `-`. Errors say path, operation and reason.
fn open(path: &Path, cancel: &Cancel) -> Result<File, Diagnostic> {
    check(path)?;
    if crate::parse::args::is_dash(path.as_os_str()) {
        return stdin();
    }
    bc_fs::input::open(path, || cancel.is_cancelled())
        .map_err(|error| Diagnostic::failed(path, "open", &error))
}

/// Fails if `path` means standard input, as `-` and `/dev/stdin` do, and the process was started
/// without one: opened by its path it would be an empty file.
pub fn check(path: &Path) -> Result<(), Diagnostic> {
    if crate::parse::args::is_dash(path.as_os_str()) {
        return stdin().map(drop);
    }
    match bc_edit::output::descriptor(path) {
        Some(0) => streams::open(Stream::Input)
            .map(drop)
            .map_err(|error| format!("{}: {error}", shown(path)).into()),
        _ => Ok(()),
    }
}

/// Returns a path as messages show it.
pub fn shown(path: &Path) -> String {
    bc_fs::escape(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// Reads the rest of an input; fails if it is larger than an input in memory may be.
pub fn read_whole(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MOST_IN_MEMORY + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_IN_MEMORY {
        return Err(io::Error::other("larger than 1 GiB"));
    }
    Ok(bytes)
}

/// Returns the texts between two `end`s, without empty ones; fails for one of more than `MAX_LINE`
/// bytes.
pub fn pieces(mut input: impl BufRead, end: u8) -> io::Result<Vec<Vec<u8>>> {
    let mut pieces = Vec::new();
    loop {
        let mut piece = Vec::new();
        if input
            .by_ref()
            .take(MAX_LINE + 1)
            .read_until(end, &mut piece)?
            == 0
        {
            return Ok(pieces);
        }
        if piece.last() == Some(&end) {
            piece.pop();
        }
        if piece.len() as u64 > MAX_LINE {
            return Err(io::Error::other("a line is longer than 16 MiB"));
        }
        if !piece.is_empty() {
            piece.shrink_to_fit();
            pieces.push(piece);
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("not a regular file, and it does not end"))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_what_stands_between() {
        let of = |text: &[u8], end| pieces(text, end).unwrap();
        assert_eq!(of(b"a\n\nb\0c\n", b'\n'), [b"a".to_vec(), b"b\0c".to_vec()]);
        assert_eq!(of(b"a\nb\0\0c", 0), [b"a\nb".to_vec(), b"c".to_vec()]);
        assert!(of(b"", 0).is_empty());
        let long = io::repeat(b'x').take(MAX_LINE + 5);
        assert!(pieces(io::BufReader::new(long), b'\n').is_err());
        let longest = io::repeat(b'x').take(MAX_LINE);
        assert_eq!(pieces(io::BufReader::new(longest), 0).unwrap().len(), 1);
    }

    #[test]
    fn devices_end_and_signals_are_noticed() {
        let cancel = Cancel::new();
        let open = |name: &str| Input::open(OsStr::new(name), &cancel).unwrap();
        let error = open("/dev/zero").read_whole().unwrap_err();
        assert!(error.to_string().contains("does not end"), "{error}");
        assert_eq!(open("/dev/null").read_whole().unwrap(), b"");
        let zeros = pieces(io::BufReader::new(open("/dev/zero")), 0);
        assert!(zeros.is_err());
        cancel.cancel(2);
        assert!(open("/dev/null").read_whole().is_err());
    }
}
