//! A pseudo-terminal: programs run in it believe that a person sits before it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::{Screen, TestTree};

/// Time that a test waits for something to appear before it fails: only a hang takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal of a size, without a program yet.
#[derive(Debug)]
pub struct Pty {
    ours: OwnedFd,
    theirs: File,
}

/// A program that runs in a terminal.
#[derive(Debug)]
pub struct PtySession {
    ours: OwnedFd,
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    columns: u16,
}

impl Pty {
    /// Makes a terminal of `columns` by `rows`.
    #[track_caller]
    pub fn new(columns: u16, rows: u16) -> Pty {
        let make = || -> std::io::Result<Pty> {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let ours = openpt(flags)?;
            grantpt(&ours)?;
            unlockpt(&ours)?;
            resize(&ours, columns, rows)?;
            let name = ptsname(&ours, Vec::new())?;
            let theirs = rustix::fs::open(
                name,
                rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC,
                rustix::fs::Mode::empty(),
            )?;
            Ok(Pty {
                ours,
                theirs: theirs.into(),
            })
        };
        make().unwrap_or_else(|e| panic!("pseudo-terminal: {e}"))
    }

    /// Starts `command` with all its streams in the terminal.
    #[track_caller]
    pub fn start_in(self, mut command: Command) -> PtySession {
        command
            .stdin(self.stream())
            .stdout(self.stream())
            .stderr(self.stream());
        self.start(command)
    }

    /// Starts `program` in `tree` with all its streams in the terminal, whose session it leads so
    /// that Ctrl-C reaches it; `None`, with a notice, without `setsid` or where Ctrl-C is ignored.
    #[track_caller]
    pub fn lead<'a>(
        self,
        tree: &TestTree,
        program: &'a str,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Option<PtySession> {
        if crate::tool("setsid").is_none() {
            crate::left_out("setsid is not installed");
            return None;
        }
        if !crate::is_heeded(rustix::process::Signal::INT.as_raw()) {
            return None;
        }
        let leader = tree
            .run("setsid")
            .args(["--ctty", "--wait", program])
            .args(args)
            .env("TERM", "xterm");
        Some(self.start_in(leader.command()))
    }

    /// Returns the terminal as a stream of the command to come.
    #[track_caller]
    pub fn stream(&self) -> Stdio {
        self.theirs.try_clone().expect("a descriptor").into()
    }

    /// Starts `command`, whose streams the caller has set to [`stream`](Pty::stream) or others. A
    /// command that Ctrl-C is to reach is started by [`lead`](Pty::lead) instead.
    #[track_caller]
    pub fn start(self, mut command: Command) -> PtySession {
        let child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        // The command holds copies of the other side; with the last one the reader ends.
        drop((command, self.theirs));
        let shown = Arc::new(Mutex::new(Vec::new()));
        let from = self.ours.try_clone().expect("a descriptor");
        let to = Arc::clone(&shown);
        let columns = rustix::termios::tcgetwinsize(&self.ours).map_or(80, |size| size.ws_col);
        PtySession {
            ours: self.ours,
            child,
            shown,
            reader: Some(std::thread::spawn(move || collect(from.into(), &to))),
            columns,
        }
    }
}

/// Reads until no process holds the other side, which a pseudo-terminal reports by EIO.
fn collect(mut from: File, to: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        to.lock().unwrap().extend_from_slice(&buffer[..count]);
    }
}

fn resize(terminal: &OwnedFd, columns: u16, rows: u16) -> rustix::io::Result<()> {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size)
}

impl PtySession {
    /// Returns all bytes written to the terminal so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.shown.lock().unwrap().clone()
    }

    /// Returns the terminal's present screen.
    pub fn screen(&self) -> Screen {
        let mut screen = Screen::new(self.columns.into());
        screen.feed(&self.bytes());
        screen
    }

    /// Returns the program, e.g. for its standard input if that is not the terminal.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the bytes written so far pass `test`.
    ///
    /// # Panics
    /// If that never happens.
    #[track_caller]
    pub fn wait_for(&self, what: &str, test: impl Fn(&[u8]) -> bool) {
        let begun = Instant::now();
        while !test(&self.bytes()) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{what}: never seen in {:?}",
                String::from_utf8_lossy(&self.bytes())
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types `keys`; `\x03` is Ctrl-C.
    #[track_caller]
    pub fn type_keys(&self, keys: &[u8]) {
        let typed = self.ours.try_clone().map(File::from);
        typed
            .and_then(|mut file| file.write_all(keys))
            .unwrap_or_else(|e| panic!("typing: {e}"));
    }

    /// Changes the size, as a user does by dragging the window's edge.
    #[track_caller]
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.columns = columns;
        resize(&self.ours, columns, rows).unwrap_or_else(|e| panic!("resize: {e}"));
    }

    /// Waits for the end; gives how it ended and all that was written.
    #[track_caller]
    pub fn end(mut self) -> (ExitStatus, Vec<u8>) {
        let status = self.child.wait().unwrap_or_else(|e| panic!("wait: {e}"));
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        (status, self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_a_terminal_sees_one_of_that_size() {
        let pty = Pty::new(33, 7);
        let mut command = Command::new("sh");
        command.args(["-c", "test -t 0 && test -t 1 && stty size"]);
        let (status, bytes) = pty.start_in(command).end();
        assert!(status.success(), "{status}");
        assert_eq!(bytes, b"7 33\r\n");
    }

    #[test]
    fn keys_arrive() {
        let pty = Pty::new(80, 24);
        let mut command = Command::new("head");
        command.args(["-n", "1"]);
        let session = pty.start_in(command);
        session.type_keys(b"hello\n");
        let (_, bytes) = session.end();
        // Once as the terminal's echo, once from the program.
        assert_eq!(bytes, b"hello\r\nhello\r\n");
    }
}
