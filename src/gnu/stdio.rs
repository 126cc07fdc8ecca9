//! Standard input as a file, and results on standard output: whole lines, as they come, and
//! messages between them.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use bc_fs::safe::{SafeWriter, Style};
use bc_fs::streams::{self, Stream};

/// Bytes that a pipe takes as a whole, so that the lines of several programs do not mix.
const PIPE_BUF: usize = 4096;

/// Standard output and the messages of one program.
pub struct Out {
    /// Name by which the program was called.
    name: Vec<u8>,
    /// Opened by the first line: a program that prints nothing needs none.
    to: Option<SafeWriter<File>>,
    /// Lines that were not written yet.
    waiting: Vec<u8>,
    /// End of each line.
    end: u8,
    /// True if a write failed, which was reported.
    lost: bool,
}

/// Error: results cannot be written, which was reported.
#[derive(Clone, Copy, Debug)]
pub struct Lost;

impl Out {
    /// Returns the output of a program called `name`, whose lines end with `end`.
    pub fn new(name: &[u8], end: u8) -> Out {
        Out {
            name: name.to_vec(),
            to: None,
            waiting: Vec::new(),
            end,
            lost: false,
        }
    }

    /// Returns the name by which the program was called.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Takes some text, which may be several lines or a part of one.
    pub fn text(&mut self, text: &[u8]) -> Result<(), Lost> {
        self.waiting.extend_from_slice(text);
        // Beyond a few writes nothing is gained by waiting.
        match self.waiting.len() > 4 * PIPE_BUF {
            true => self.flush(),
            false => self.check(),
        }
    }

    /// Writes the lines that wait.
    pub fn flush(&mut self) -> Result<(), Lost> {
        if self.lost || self.waiting.is_empty() {
            return self.check();
        }
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.write(&waiting);
        self.waiting = waiting;
        self.waiting.clear();
        if let Err(error) = written {
            self.lost = true;
            if error.kind() == io::ErrorKind::BrokenPipe && !streams::ignores_broken_pipes() {
                // Ends as any other program whose reader went away.
                let pipe = signal_hook::consts::SIGPIPE;
                let _ = signal_hook::low_level::emulate_default_handler(pipe);
            }
            self.say(format!("write error: {}", reason(&error)));
        }
        self.check()
    }

    fn check(&self) -> Result<(), Lost> {
        match self.lost {
            true => Err(Lost),
            false => Ok(()),
        }
    }

    fn write(&mut self, mut text: &[u8]) -> io::Result<()> {
        let to = match &mut self.to {
            Some(to) => to,
            None => {
                let file = streams::open(Stream::Output)?;
                // A name may not control a terminal.
                let style = match (file.is_terminal(), self.end) {
                    (false, _) => Style::Exact,
                    (true, 0) => Style::Nul,
                    (true, _) => Style::Text,
                };
                self.to.insert(SafeWriter::new(file, style))
            }
        };
        while !text.is_empty() {
            let (now, rest) = text.split_at(whole_lines(text, self.end));
            to.write_all(now)?;
            text = rest;
        }
        to.flush()
    }

    /// Prints a message on standard error, after the program's name. Lines before it come before
    /// it.
    pub fn say(&mut self, text: impl AsRef<[u8]>) {
        let _ = self.flush();
        let line = [&self.name, b": ".as_slice(), text.as_ref(), b"\n"].concat();
        raw_message(&line);
    }

    /// Reports a failure of a file, with the system's reason.
    pub fn say_of(&mut self, shown: &[u8], error: &io::Error) {
        self.say([shown, b": ", reason(error).as_bytes()].concat());
    }
}

/// Writes a message as it is, in one call; [`is_unsaid`] if that fails. A terminal obeys no name in
/// it.
pub fn raw_message(line: &[u8]) {
    let mut error = io::stderr();
    let style = match error.is_terminal() {
        true => Style::Text,
        false => Style::Exact,
    };
    let mut shown = SafeWriter::new(Vec::with_capacity(line.len()), style);
    let _ = shown.write_all(line).and_then(|()| shown.flush());
    if streams::was_closed(Stream::Error) || error.write_all(&shown.into_inner()).is_err() {
        UNSAID.store(true, Ordering::Relaxed);
    }
}

/// Set once a message could not be written.
static UNSAID: AtomicBool = AtomicBool::new(false);

/// Returns true if a message could not be written: GNU's programs fail then, whatever it was about.
pub fn is_unsaid() -> bool {
    UNSAID.load(Ordering::Relaxed)
}

/// Returns the number of bytes that go out at once: as many lines as a pipe takes together, or one.
fn whole_lines(text: &[u8], end: u8) -> usize {
    let most = &text[..text.len().min(PIPE_BUF)];
    if let Some(at) = most.iter().rposition(|byte| *byte == end) {
        return at + 1;
    }
    match text.iter().position(|byte| *byte == end) {
        Some(at) => at + 1,
        None => text.len(),
    }
}

/// True if standard input was among the files.
static READ_STDIN: AtomicBool = AtomicBool::new(false);

/// Opens standard input, and notes that it was read.
pub fn stdin() -> io::Result<File> {
    READ_STDIN.store(true, Ordering::Relaxed);
    streams::open(Stream::Input)
}

/// Fails as closing standard input at the end does, if it was read.
pub fn closing_stdin() -> io::Result<()> {
    match READ_STDIN.load(Ordering::Relaxed) && streams::was_closed(Stream::Input) {
        true => Err(io::Error::from(rustix::io::Errno::BADF)),
        false => Ok(()),
    }
}

/// Returns the system's reason as GNU prints it, without the number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            let number = format!(" (os error {number})");
            text.strip_suffix(&number).unwrap_or(&text).to_owned()
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_out_whole() {
        let line = [b'a'; 1500];
        let text = [&line[..], b"\n", &line[..], b"\n", &line[..], b"\n"].concat();
        assert_eq!(whole_lines(&text, b'\n'), 3002);
        assert_eq!(whole_lines(&text[3002..], b'\n'), 1501);
        let long = [&[b'a'; 5000][..], b"\0b\0"].concat();
        assert_eq!(whole_lines(&long, 0), 5001);
        assert_eq!(whole_lines(b"raw", b'\n'), 3);
    }
}
