//! Where results go: stdout, or a file that appears whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use bc_fs::atomic::AtomicFile;
use bc_fs::place::Place;
use bc_fs::safe::{SafeWriter, Style};
use bc_fs::streams::{self, Stream};
use bc_walk::OwnFile;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::args::Choice;
use crate::diagnostic::Diagnostic;
use crate::patient::patient;
use crate::progress::Shared;
use crate::style::{Meaning, OFF, colored};

/// A destination for results. On a terminal nothing in them is obeyed, whatever format they are
/// in: control characters and the like come out as escapes.
pub struct Output {
    to: SafeWriter<BufWriter<Box<dyn Write + Send>>>,
    pending: Option<AtomicFile>,
    /// What is written as it comes, once more, where a close may say that it could not be stored.
    closes: Option<File>,
    /// The file that is written, or stands behind stdout, where a walk may come upon it.
    own: Option<OwnFile>,
    terminal: bool,
    color: bool,
    /// As it was given.
    name: OsString,
}

/// How writing ended.
pub enum Written {
    /// Everything is where it was asked to be.
    Whole,
    /// The reader of the pipe went away, which is its right.
    ReaderLeft,
}

impl Output {
    /// To FILE, or to stdout without one. Errors say operation and reason; a stdout that is
    /// closed is one, before anything is done whose results would be lost.
    pub fn open(target: Option<&Path>) -> Result<Output, Diagnostic> {
        let Some(target) = target.filter(|t| t.as_os_str() != "-") else {
            return Output::stream(Stream::Output, OsStr::new("stdout"));
        };
        let name = target.as_os_str();
        let failed = |operation: &'static str| {
            move |error: io::Error| Diagnostic::failed(name, operation, &error)
        };
        if let Some(number) = descriptor(target) {
            // What is behind it, a log perhaps, is the caller's: never replaced.
            return match number {
                1 => Output::stream(Stream::Output, name),
                2 => Output::stream(Stream::Error, name),
                0 if streams::was_closed(Stream::Input) => {
                    let error = io::Error::from(Errno::BADF);
                    Err(nameless(name, &error))
                }
                _ => File::options()
                    .append(true)
                    .open(target)
                    .map(|file| Output::as_it_comes(file, name))
                    .map_err(failed("open")),
            };
        }
        let place = Place::find(target).map_err(failed("create"))?;
        let existing = place.existing().map_err(failed("create"))?;
        match existing.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            None | Some(FileType::RegularFile) => {}
            Some(FileType::Directory) => return Err(failed("open")(Errno::ISDIR.into())),
            // A FIFO, /dev/full: nothing to replace, written as it comes.
            Some(_) => {
                let file = open_special(&place).map_err(failed("open"))?;
                let mut output = Output::plain(file.try_clone().map_err(failed("dup"))?, name);
                output.closes = Some(file);
                return Ok(output);
            }
        }
        let pending = AtomicFile::create_at(place).map_err(failed("create"))?;
        let file = pending.file().try_clone().map_err(failed("dup"))?;
        let mut output = Output::plain(file, name);
        output.pending = Some(pending);
        Ok(output)
    }

    /// A file that others are to believe because only its owner can have written it: it gets no
    /// right to write for anybody else, whatever the umask says.
    pub fn only_owner_writes(self) -> Output {
        if let Some(pending) = &self.pending {
            pending.only_owner_writes();
        }
        self
    }

    /// For results that nobody wants.
    pub fn nowhere() -> Output {
        Output {
            to: buffered(Box::new(io::sink()), Style::Exact),
            pending: None,
            closes: None,
            own: None,
            terminal: false,
            color: false,
            name: OsString::new(),
        }
    }

    /// The file being written, or the one behind stdout, for the walk to leave out; the file that
    /// it will replace is another, see [`replaced`].
    pub fn own_file(&self) -> Option<OwnFile> {
        self.own.clone()
    }

    /// Where the journal of a run that writes a file is, beside that file: `FILE.partial`. `None` for
    /// what is written as it comes.
    pub fn partial(&self) -> Option<io::Result<Place>> {
        let pending = self.pending.as_ref()?;
        Some(pending.place().beside(".partial"))
    }

    /// The name of that, as it is shown.
    pub fn partial_name(&self) -> String {
        let mut name = self.name.clone();
        name.push(".partial");
        bc_fs::escape(name.as_encoded_bytes()).into_owned()
    }

    /// What follows is JSON: what a terminal could obey is escaped as JSON has it, wherever it
    /// goes to.
    #[must_use]
    pub fn json(mut self) -> Output {
        self.to.set_style(Style::Json);
        self
    }

    /// What follows is JSON whose bytes are fixed: escaped on a terminal only.
    #[must_use]
    pub fn fixed_json(self) -> Output {
        if self.terminal { self.json() } else { self }
    }

    /// What follows are records that end with NUL.
    #[must_use]
    pub fn records(mut self) -> Output {
        if self.terminal {
            self.to.set_style(Style::Nul);
        }
        self
    }

    /// With colours, if they are wanted; a file has none unless that is said.
    #[must_use]
    pub fn colors(mut self, choice: Choice) -> Output {
        let is_file = self.pending.is_some();
        self.color = match choice {
            Choice::Auto if is_file => false,
            choice => colored(choice, self.terminal),
        };
        self
    }

    /// Writes a piece of a line in the colour of what it means.
    pub fn paint(&mut self, meaning: Meaning, text: &[u8]) -> io::Result<()> {
        if !self.color || meaning == Meaning::Plain || text.is_empty() {
            return self.write_all(text);
        }
        self.obeyed(meaning.on())?;
        self.write_all(text)?;
        self.obeyed(OFF)
    }

    /// Writes a path: its directory is dim, so that names stand out.
    pub fn path(&mut self, path: &[u8]) -> io::Result<()> {
        let name = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
        let (directory, name) = path.split_at(name);
        self.paint(Meaning::Dim, directory)?;
        self.write_all(name)
    }

    /// What is ours, and meant for the terminal itself.
    fn obeyed(&mut self, sequence: &str) -> io::Result<()> {
        let written = self.to.stream().write_all(sequence.as_bytes());
        written.map_err(|error| Named::wrap(&self.name, error))
    }

    /// Will a person read this? Then newlines in names are to be escaped by the format, which
    /// alone can tell them from its own.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    fn stream(stream: Stream, name: &OsStr) -> Result<Output, Diagnostic> {
        let file = streams::open(stream).map_err(|error| nameless(name, &error))?;
        Ok(Output::as_it_comes(file, name))
    }

    /// Where nothing is replaced: a file that the caller has opened, a terminal, a pipe.
    fn as_it_comes(file: File, name: &OsStr) -> Output {
        let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
        let closes = is_file.then(|| file.try_clone().ok()).flatten();
        Output {
            closes,
            ..Output::plain(file, name)
        }
    }

    fn plain(file: File, name: &OsStr) -> Output {
        let terminal = file.is_terminal();
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file);
        let own = meta.and_then(|_| OwnFile::of(&file).ok());
        let to = if terminal {
            buffered(Box::new(Shared(file)), Style::Text)
        } else {
            buffered(patient(file), Style::Exact)
        };
        Output {
            to,
            pending: None,
            closes: None,
            own,
            terminal,
            color: false,
            name: name.to_owned(),
        }
    }

    /// Flushes; a file is synced and renamed into place. Without this call a
    /// file leaves no trace.
    pub fn finish(mut self, result: io::Result<()>) -> Result<Written, Diagnostic> {
        let written = result.and_then(|()| self.to.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(Written::ReaderLeft);
            }
            Err(error) => {
                let named = error.get_ref().and_then(|e| e.downcast_ref::<Named>());
                let reason = named.map_or(&error, |named| &named.error);
                return Err(Diagnostic::failed(&self.name, "write", reason));
            }
        }
        if let Some(file) = self.closes.take()
            && let Err(errno) = bc_fs::close(file)
        {
            return Err(Diagnostic::failed(&self.name, "close", &errno.into()));
        }
        if let Some(pending) = self.pending.take() {
            pending
                .commit()
                .map_err(|not| Diagnostic::failed(&self.name, not.operation, &not.error))?;
        }
        Ok(Written::Whole)
    }
}

/// A standard stream that cannot be had: no operation failed, it was never there.
fn nameless(name: &OsStr, error: &io::Error) -> Diagnostic {
    format!("{}: {error}", bc_fs::escape(name.as_encoded_bytes())).into()
}

fn buffered(
    to: Box<dyn Write + Send>,
    style: Style,
) -> SafeWriter<BufWriter<Box<dyn Write + Send>>> {
    SafeWriter::new(BufWriter::with_capacity(64 << 10, to), style)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Output { to, name, .. } = self;
        to.write(bytes).map_err(|error| Named::wrap(name, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let Output { to, name, .. } = self;
        to.flush().map_err(|error| Named::wrap(name, error))
    }
}

/// A failed write with the name of the output, for those who see the error alone.
#[derive(Debug)]
struct Named {
    name: String,
    error: io::Error,
}

impl Named {
    fn wrap(name: &OsStr, error: io::Error) -> io::Error {
        let name = bc_fs::escape(name.as_encoded_bytes()).into_owned();
        io::Error::new(error.kind(), Named { name, error })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.error)
    }
}

impl std::error::Error for Named {}

/// Opens what is no regular file. A FIFO is waited for until somebody reads it, or a signal comes.
fn open_special(place: &Place) -> io::Result<File> {
    let fd = loop {
        // Without waiting in the kernel, where no signal would be noticed.
        match place.open(place.name(), OFlags::WRONLY | OFlags::NOCTTY) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                if crate::signals::interrupted().is_some() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            opened => break opened?,
        }
    };
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    rustix::fs::fcntl_setfl(&fd, flags - OFlags::NONBLOCK)?;
    Ok(File::from(fd))
}

/// The number of this process's descriptor that a path means, as `/dev/stdout` does, through any
/// links: resolved step by step, since the last one leads to a file, or to the name that a deleted
/// file once had.
pub fn descriptor(target: &Path) -> Option<u32> {
    let mut path = target.to_path_buf();
    // As many links as the kernel follows.
    for _ in 0..40 {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.canonicalize().ok()?,
            Some(_) => Path::new(".").canonicalize().ok()?,
            None => return None,
        };
        let own = Path::new("/proc/self/fd").canonicalize().ok()?;
        if folder == own {
            return path.file_name()?.to_str()?.parse().ok();
        }
        let next = std::fs::read_link(&path).ok()?;
        path = folder.join(next);
    }
    None
}

/// Writes a small file atomically (metrics).
pub fn write_whole(target: &Path, contents: &[u8]) -> Result<(), Diagnostic> {
    let mut output = Output::open(Some(target))?;
    let result = output.write_all(contents);
    output.finish(result).map(|_| ())
}

/// The file behind stdout, if it is one: the shell made it before the walk began, and it grows
/// while it is written.
pub fn behind_stdout() -> Option<OwnFile> {
    let stat = rustix::fs::fstat(rustix::stdio::stdout()).ok()?;
    let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
    let own = || OwnFile::of(rustix::stdio::stdout()).ok();
    is_file.then(own).flatten()
}

/// The file that FILE replaces, so that the walk can leave it out. `-` is none, though a file may
/// have that name.
pub fn replaced(target: Option<&Path>) -> Option<OwnFile> {
    let file = target.filter(|target| !crate::args::is_dash(target.as_os_str()));
    OwnFile::at(file?).ok()
}
