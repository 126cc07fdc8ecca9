//! Destinations of results: stdout, or a file that appears whole or not at all.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, IoSlice, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bc_edit::atomic::AtomicFile;
use bc_edit::output::{OutputFile, descriptor, takes_at_once};
use bc_fs::PathError;
use bc_fs::place::Place;
use bc_fs::safe::{SafeWriter, Style};
use bc_fs::streams::{self, Stream};
use bc_walk::OwnFile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::parse::args::{Choice, is_dash};
use crate::report::diagnostic::Diagnostic;
use crate::report::style::{Meaning, OFF, colored};
use crate::session::progress::Shared;

/// A destination for results. A terminal obeys nothing in them, in any format: control characters
/// and the like come out as escapes.
pub struct Output {
    to: SafeWriter<BufWriter<Box<dyn Write + Send>>>,
    /// The file to end when all is written: one that appears whole, or one whose close may fail.
    file: Option<OutputFile>,
    /// The file that is written, or is behind stdout, where a walk may find it.
    own: Option<OwnFile>,
    terminal: bool,
    color: bool,
    /// Name of the destination as it was given.
    name: OsString,
}

impl Output {
    /// Opens FILE, or stdout without one. Errors contain operation and reason; a stdout that is
    /// closed is one, before any work is done whose results would be lost.
    pub fn open(target: Option<&Path>) -> Result<Output, Diagnostic> {
        let Some(target) = target.filter(|t| t.as_os_str() != "-") else {
            return Output::stream(Stream::Output, OsStr::new("stdout"));
        };
        let name = target.as_os_str();
        if let Some(number) = descriptor(target) {
            // The file behind it, a log perhaps, is the caller's: never replaced.
            return match number {
                1 => Output::stream(Stream::Output, name),
                2 => Output::stream(Stream::Error, name),
                0 if streams::was_closed(Stream::Input) => {
                    let error = io::Error::from(Errno::BADF);
                    Err(nameless(name, &error))
                }
                _ => Output::file(target),
            };
        }
        Output::file(target)
    }

    fn file(target: &Path) -> Result<Output, Diagnostic> {
        let name = target.as_os_str();
        let is_cancelled = || crate::session::signals::interrupted().is_some();
        let opened = OutputFile::create(target, is_cancelled)
            .map_err(|not| Diagnostic::failed(name, not.operation, &not.error))?;
        let file = opened.file().try_clone();
        let file = file.map_err(|error| Diagnostic::failed(name, "dup", &error))?;
        let mut output = Output::plain(file, name);
        output.file = Some(opened);
        Ok(output)
    }

    fn pending(&self) -> Option<&AtomicFile> {
        self.file.as_ref().and_then(OutputFile::pending)
    }

    /// Makes the file readable as usual, but writable by its owner only, regardless of the umask:
    /// others are to believe it because only its owner can have written it.
    pub fn only_owner_writes(self) -> Output {
        if let Some(pending) = self.pending() {
            pending.only_owner_writes();
        }
        self
    }

    /// Returns an output that discards results.
    pub fn nowhere() -> Output {
        Output {
            to: buffered(Box::new(io::sink()), Style::Exact),
            file: None,
            own: None,
            terminal: false,
            color: false,
            name: OsString::new(),
        }
    }

    /// Returns the file being written, or the one behind stdout, for the walk to leave out; the
    /// file that it will replace is another, see [`replaced`].
    pub fn own_file(&self) -> Option<OwnFile> {
        self.own.clone()
    }

    /// Returns the place of the journal of a run that writes a file, beside that file:
    /// `FILE.partial`. `None` for an output that is written as it comes.
    pub fn partial(&self) -> Option<io::Result<Place>> {
        let pending = self.pending()?;
        Some(pending.place().beside(".partial"))
    }

    /// Returns the name of that journal, as messages show it.
    pub fn partial_name(&self) -> String {
        let mut name = self.name.clone();
        name.push(".partial");
        bc_fs::escape(name.as_encoded_bytes()).into_owned()
    }

    /// Sets the format to JSON: anything that a terminal could obey is escaped as JSON has it, on
    /// every destination.
    #[must_use]
    pub fn json(mut self) -> Output {
        self.to.set_style(Style::Json);
        self
    }

    /// Sets the format to JSON whose bytes are fixed: escaped on a terminal only.
    #[must_use]
    pub fn fixed_json(self) -> Output {
        if self.terminal { self.json() } else { self }
    }

    /// Sets the format to records that end with NUL.
    #[must_use]
    pub fn records(mut self) -> Output {
        if self.terminal {
            self.to.set_style(Style::Nul);
        }
        self
    }

    /// Turns colours on, if they are wanted; a file has none unless the option says `always`.
    #[must_use]
    pub fn colors(mut self, choice: Choice) -> Output {
        let is_file = self.pending().is_some();
        self.color = match choice {
            Choice::Auto if is_file => false,
            choice => colored(choice, self.terminal),
        };
        self
    }

    /// Writes a piece of a line in the colour of its meaning.
    pub fn paint(&mut self, meaning: Meaning, text: &[u8]) -> io::Result<()> {
        if !self.color || meaning == Meaning::Plain || text.is_empty() {
            return self.write_all(text);
        }
        self.obeyed(meaning.on())?;
        self.write_all(text)?;
        self.obeyed(OFF)
    }

    /// Returns a path as this output has it in a format that quotes paths by itself: escaped for a
    /// person, byte for byte for a program.
    pub fn shown<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        match self.terminal {
            true => escaped(path),
            false => Cow::Borrowed(path),
        }
    }

    /// Writes a line with the name of a file, escaped wherever it goes: no name ends the line.
    pub fn name_line(&mut self, path: &[u8]) -> io::Result<()> {
        self.path(&escaped(path))?;
        self.write_all(b"\n")
    }

    /// Writes a path: its directory is dim, so that names stand out.
    pub fn path(&mut self, path: &[u8]) -> io::Result<()> {
        let name = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
        let (directory, name) = path.split_at(name);
        self.paint(Meaning::Dim, directory)?;
        self.write_all(name)
    }

    /// Writes a sequence of ours that the terminal is to obey.
    fn obeyed(&mut self, sequence: &str) -> io::Result<()> {
        let written = self.to.stream().write_all(sequence.as_bytes());
        written.map_err(|error| named(&self.name, error))
    }

    /// Returns true if a person will read this. Then newlines in names are to be escaped by the
    /// format, which alone can distinguish them from its own.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    fn stream(stream: Stream, name: &OsStr) -> Result<Output, Diagnostic> {
        let file = streams::open(stream).map_err(|error| nameless(name, &error))?;
        Ok(Output::plain(file, name))
    }

    fn plain(file: File, name: &OsStr) -> Output {
        let terminal = file.is_terminal();
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file);
        let own = meta.and_then(|_| OwnFile::of(&file).ok());
        // Closing a pipe or a terminal never fails for output that it has taken.
        let ended = own.as_ref().and_then(|_| file.try_clone().ok());
        let to = if terminal {
            buffered(Box::new(Shared(file)), Style::Text)
        } else {
            buffered(interruptible(file), Style::Exact)
        };
        Output {
            to,
            file: ended.map(OutputFile::from),
            own,
            terminal,
            color: false,
            name: name.to_owned(),
        }
    }

    /// Flushes the output; a file is synced and renamed into place. Without this call a file leaves
    /// no trace. If the reader of a pipe went away, which is its right, that is no failure.
    pub fn finish(mut self, result: io::Result<()>) -> Result<(), Diagnostic> {
        let written = result.and_then(|()| self.to.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(());
            }
            Err(error) => {
                let named = error.get_ref().and_then(|e| e.downcast_ref::<PathError>());
                let failed = || Diagnostic::failed(&self.name, "write", &error);
                return Err(named.map_or_else(failed, Diagnostic::from));
            }
        }
        if let Some(file) = self.file.take() {
            file.end(AtomicFile::commit)
                .map_err(|not| Diagnostic::failed(&self.name, not.operation, &not.error))?;
        }
        Ok(())
    }
}

fn escaped(path: &[u8]) -> Cow<'_, [u8]> {
    match bc_fs::escape(path) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// Lines of results as they come, from any thread. The first failure of writing ends them, and is
/// returned at the end: a reader that left must not stop work that was asked for.
pub struct OutputLines(Mutex<(Output, io::Result<()>)>);

impl OutputLines {
    /// Returns the lines of an output.
    pub fn new(output: Output) -> OutputLines {
        OutputLines(Mutex::new((output, Ok(()))))
    }

    /// Writes a line, whole, unless an earlier one failed.
    pub fn write(&self, write: impl FnOnce(&mut Output) -> io::Result<()>) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (output, result) = &mut *lines;
        if result.is_ok() {
            *result = write(output);
        }
    }

    /// Ends the output.
    pub fn finish(self) -> Result<(), Diagnostic> {
        let lines = self.0.into_inner();
        let (output, result) = lines.unwrap_or_else(PoisonError::into_inner);
        output.finish(result)
    }
}

/// Returns the error of a standard stream that cannot be had: no operation failed, it was never
/// there.
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
        to.write(bytes).map_err(|error| named(name, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let Output { to, name, .. } = self;
        to.flush().map_err(|error| named(name, error))
    }
}

/// Returns a failed write with the name of the output, for code that has only the error.
fn named(name: &OsStr, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), PathError::new(name, "write", error))
}

/// Returns true if what was written to a target can be read there again: standard output, pipes and
/// terminals have passed it on.
pub fn is_readable_again(target: &Path) -> bool {
    !is_dash(target.as_os_str()) && !takes_at_once(target)
}

/// Writes a small file atomically (metrics).
pub fn write_whole(target: &Path, contents: &[u8]) -> Result<(), Diagnostic> {
    let mut output = Output::open(Some(target))?;
    let result = output.write_all(contents);
    output.finish(result)
}

/// Returns the file behind stdout, if it is one: the shell made it before the walk began, and it
/// grows while it is written.
pub fn behind_stdout() -> Option<OwnFile> {
    let stat = rustix::fs::fstat(rustix::stdio::stdout()).ok()?;
    let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
    let own = || OwnFile::of(rustix::stdio::stdout()).ok();
    is_file.then(own).flatten()
}

/// Returns the file that FILE replaces, so that the walk can leave it out. `-` is standard output,
/// though a file may have that name.
pub fn replaced(target: Option<&Path>) -> Option<OwnFile> {
    let file = target.filter(|target| !crate::parse::args::is_dash(target.as_os_str()));
    OwnFile::at(file?).ok()
}

/// Bytes that a pipe takes without waiting once it can be written to.
const PIPE_BUF: usize = 4096;

/// Time after which a writer that waits looks for a signal, if that came to another thread.
const GLANCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// A writer that does not wait for ever once a signal came: nor do the workers that wait for it, which
/// have files to leave as they should be.
struct InterruptibleWriter {
    to: File,
    /// True unless the system was found to know no writes that do not wait, as before Linux 6.4.
    can_refuse: bool,
}

/// Makes a writer interruptible, where it is a pipe or a socket.
fn interruptible(to: File) -> Box<dyn Write + Send> {
    let kind = rustix::fs::fstat(&to).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::Fifo | FileType::Socket) => Box::new(InterruptibleWriter {
            to,
            can_refuse: true,
        }),
        _ => Box::new(to),
    }
}

impl InterruptibleWriter {
    /// Writes what there is room for; `None` if there is no room.
    fn write_at_once(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        if self.can_refuse {
            // At the present position, as a pipe has no others.
            let written = pwritev2(
                &self.to,
                &[IoSlice::new(bytes)],
                u64::MAX,
                ReadWriteFlags::NOWAIT,
            );
            match written {
                Ok(count) => return Ok(Some(count)),
                Err(Errno::AGAIN) => return Ok(None),
                // The other call below knows.
                Err(_) => self.can_refuse = false,
            }
        }
        if !self.has_room(&Timespec::default()) {
            return Ok(None);
        }
        match rustix::io::write(&self.to, &bytes[..bytes.len().min(PIPE_BUF)]) {
            Err(Errno::AGAIN) => Ok(None),
            written => Ok(Some(written?)),
        }
    }

    /// Waits until there is room, at most for so long.
    fn has_room(&self, wait: &Timespec) -> bool {
        let mut fds = [PollFd::new(&self.to, PollFlags::OUT)];
        poll(&mut fds, Some(wait)).is_ok_and(|ready| ready > 0)
    }
}

impl Write for InterruptibleWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(count) = self.write_at_once(bytes)? {
                return Ok(count);
            }
            if crate::session::signals::interrupted().is_some() {
                // Output that would have to wait is dropped.
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.has_room(&GLANCE);
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_the_first_failure() {
        let lines = OutputLines::new(Output::nowhere());
        lines.write(|to| to.write_all(b"one\n"));
        lines.write(|_| Err(io::Error::other("full")));
        lines.write(|_| panic!("after a failure"));
        let failed = lines.finish().unwrap_err();
        assert!(failed.text().ends_with("write: full"), "{failed}");
        let left = OutputLines::new(Output::nowhere());
        left.write(|_| Err(io::ErrorKind::BrokenPipe.into()));
        assert!(left.finish().is_ok());
    }
}
