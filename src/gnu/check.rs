//! `-c`: checks the lines of files, as `cksum` and the programs of one digest do.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

use bc_manifest::base64;

use super::args::{Args, Saying};
use super::family::{FamilyResult, Sum};
use super::line::{CheckedLine, ChecksumLines, base64_length};
use super::order::{self, FileJob, InOrder, RunStop};
use super::quote;
use super::setup::Setup;
use super::stdio::{self, Lost, Out};
use crate::hash::warnings;

/// Lines of a regular file that are looked at together, in bytes.
const MUCH: usize = 8 << 20;
/// Bytes of a pipe: lines that have come are checked before more is waited for.
const AS_IT_COMES: usize = 64 << 10;

/// Checks the lines of each file; returns true if all is well.
pub fn run(args: &Args, setup: &Setup, out: &mut Out) -> Result<bool, RunStop> {
    let mut well = true;
    // GNU remembers the style of lines and their digest from file to file.
    let mut lines = ChecksumLines::new(args.is_cksum, args.is_named, args.family, args.bits);
    if args.operands.is_empty() {
        return one(args, b"-", &mut lines, setup, out);
    }
    for operand in &args.operands {
        well &= one(args, operand.as_bytes(), &mut lines, setup, out)?;
    }
    Ok(well)
}

/// Checks the lines of one file.
fn one(
    args: &Args,
    file: &[u8],
    lines: &mut ChecksumLines,
    setup: &Setup,
    out: &mut Out,
) -> Result<bool, RunStop> {
    let is_stdin = file == b"-";
    let shown = match is_stdin {
        true => quote::name(b"standard input"),
        false => quote::name(file),
    };
    let opened = match is_stdin {
        true => stdio::stdin(),
        false => File::open(std::ffi::OsStr::from_bytes(file)),
    };
    let opened = match opened {
        Ok(opened) => opened,
        // A standard input that is closed is there, and cannot be read.
        Err(_) if is_stdin => {
            out.say([&shown, b": read error".as_slice()].concat());
            return Ok(false);
        }
        Err(error) => {
            out.say_of(&shown, &error);
            return Ok(false);
        }
    };
    let mut check = ListCheck {
        args,
        shown,
        is_stdin,
        out,
        number: 0,
        counts: Counts::default(),
    };
    let mut batches = LineBatches::new(opened);
    while let Some(text) = batches.next() {
        let Ok(text) = text else {
            check.say(b": read error");
            return Ok(false);
        };
        check.batch(text, lines, setup)?;
    }
    Ok(check.finish())
}

/// Numbers of lines by result.
#[derive(Default)]
struct Counts {
    improper: u64,
    mismatched: u64,
    unreadable: u64,
    matched: u64,
    proper: u64,
}

struct ListCheck<'a> {
    args: &'a Args,
    /// The name of the file of lines, quoted.
    shown: Vec<u8>,
    is_stdin: bool,
    out: &'a mut Out,
    /// Number of the line read last.
    number: u64,
    counts: Counts,
}

impl ListCheck<'_> {
    fn say(&mut self, text: &[u8]) {
        self.out.say([self.shown.as_slice(), text].concat());
    }

    /// Checks whole lines.
    fn batch(
        &mut self,
        text: &[u8],
        lines: &mut ChecksumLines,
        setup: &Setup,
    ) -> Result<(), RunStop> {
        let mut found = Vec::new();
        let mut jobs = Vec::new();
        let mut warnings = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            self.number += 1;
            if line[0] == b'#' {
                continue;
            }
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let parsed = lines.parse(line);
            match parsed.filter(|line| !(self.is_stdin && line.name == b"-")) {
                Some(line) => {
                    self.counts.proper += 1;
                    jobs.push(FileJob {
                        path: line.name.clone(),
                        sum: Sum::new(line.family, line.bits),
                    });
                    found.push(line);
                }
                None => {
                    self.counts.improper += 1;
                    if self.args.saying == Saying::Warn {
                        warnings.push((found.len(), self.warning(lines.tag())));
                    }
                }
            }
        }
        let mut verdicts = Verdicts {
            args: self.args,
            lines: &found,
            warnings: warnings.into_iter().peekable(),
            out: self.out,
            counts: &mut self.counts,
        };
        order::run(&jobs, setup, &mut verdicts)?;
        verdicts.warn_before(usize::MAX);
        Ok(self.out.flush()?)
    }

    fn warning(&self, tag: &str) -> Vec<u8> {
        let text = format!(
            ": {}: improperly formatted {tag} checksum line",
            self.number
        );
        [self.shown.as_slice(), text.as_bytes()].concat()
    }

    /// Sums up; whether all is well.
    fn finish(mut self) -> bool {
        if self.counts.proper == 0 {
            self.say(b": no properly formatted checksum lines found");
            return false;
        }
        if self.args.saying != Saying::Status {
            self.sum_up();
        }
        let Counts {
            improper,
            mismatched,
            unreadable,
            matched,
            ..
        } = self.counts;
        let strict = self.args.strict && improper > 0;
        matched > 0 && mismatched == 0 && unreadable == 0 && !strict
    }

    fn sum_up(&mut self) {
        let counts = &self.counts;
        for text in warnings(counts.improper, counts.unreadable, counts.mismatched) {
            self.out.say(format!("WARNING: {text}"));
        }
        if self.args.ignore_missing && self.counts.matched == 0 {
            self.say(b": no file was verified");
        }
    }
}

/// Turns results into verdicts.
struct Verdicts<'a, W: Iterator<Item = (usize, Vec<u8>)>> {
    args: &'a Args,
    lines: &'a [CheckedLine],
    /// Warnings, each printed before the result with its index.
    warnings: std::iter::Peekable<W>,
    out: &'a mut Out,
    counts: &'a mut Counts,
}

impl<W: Iterator<Item = (usize, Vec<u8>)>> Verdicts<'_, W> {
    fn warn_before(&mut self, index: usize) {
        while let Some((_, text)) = self.warnings.next_if(|(before, _)| *before <= index) {
            self.out.say(text);
        }
    }
}

impl<W: Iterator<Item = (usize, Vec<u8>)> + Send> InOrder for Verdicts<'_, W> {
    fn result(&mut self, index: usize, result: io::Result<FamilyResult>) -> Result<(), Lost> {
        self.warn_before(index);
        let line = &self.lines[index];
        let verdict: &[u8] = match result {
            Ok(hashed) if matches(self.args.is_cksum, line, &hashed) => {
                self.counts.matched += 1;
                if self.args.saying == Saying::Quiet {
                    return Ok(());
                }
                b": OK\n"
            }
            Ok(_) => {
                self.counts.mismatched += 1;
                b": FAILED\n"
            }
            Err(error) => {
                if self.args.ignore_missing && error.kind() == io::ErrorKind::NotFound {
                    return Ok(());
                }
                self.counts.unreadable += 1;
                self.out.say_of(&quote::name(&line.name), &error);
                b": FAILED open or read\n"
            }
        };
        if self.args.saying == Saying::Status {
            return Ok(());
        }
        self.out.text(&[&quote::name(&line.name), verdict].concat())
    }

    fn pause(&mut self) -> Result<(), Lost> {
        self.out.flush()
    }
}

fn matches(is_cksum: bool, line: &CheckedLine, hashed: &FamilyResult) -> bool {
    let mut text = Vec::new();
    if is_cksum && line.digest.len() == base64_length(line.bits / 8) {
        base64::encode(&mut text, hashed.digest.as_bytes());
        return text == line.digest;
    }
    hashed.digest.write_hex(&mut text);
    text.eq_ignore_ascii_case(&line.digest)
}

/// A file in pieces of whole lines.
struct LineBatches {
    file: File,
    /// At most so many bytes at once, unless one line has more.
    most: usize,
    text: Vec<u8>,
    /// Bytes of it that were given out.
    given: usize,
    ended: bool,
}

impl LineBatches {
    fn new(file: File) -> LineBatches {
        let size = file.metadata().ok().filter(|meta| meta.is_file());
        let most = match size {
            Some(meta) => MUCH.min(meta.len() as usize + 1),
            None => AS_IT_COMES,
        };
        LineBatches {
            file,
            most: most.max(4096),
            text: Vec::new(),
            given: 0,
            ended: false,
        }
    }

    /// Returns the next lines. Text read before an error comes before it.
    fn next(&mut self) -> Option<io::Result<&[u8]>> {
        self.text.drain(..self.given);
        self.given = 0;
        while !self.ended {
            let had = self.text.len();
            self.text.resize(had + self.most, 0);
            let read = self.file.read(&mut self.text[had..]);
            self.text.truncate(had + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.ended = true,
                Ok(_) => {
                    if let Some(end) = self.text[had..].iter().rposition(|byte| *byte == b'\n') {
                        self.given = had + end + 1;
                        return Some(Ok(&self.text[..self.given]));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.text.clear();
                    return Some(Err(error));
                }
            }
        }
        self.given = self.text.len();
        match self.given {
            0 => None,
            _ => Some(Ok(&self.text)),
        }
    }
}
