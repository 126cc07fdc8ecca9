//! The program as `xxhsum`, `xxh32sum`, `xxh64sum` and `xxh128sum`, without their benchmarks.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;

use bc_digest::Algorithm;
use bc_manifest::{End, bsd, gnu};

use super::family::{FamilyResult, Sum};
use super::listed::{self, Listed, Nul};
use super::order::{self, FileJob, InOrder, RunStop};
use super::setup::Setup;
use super::stdio::reason;
use super::stdio::{Lost, Out, raw_message};
use crate::hash::warnings;

pub use super::b3sum::Early;
use super::b3sum::one_line;

/// Start of the message for a file that cannot be opened.
const OPENING: &[u8] = b"Error: Could not open '";

/// The help text.
pub const HELP: &str = "\
Usage: xxhsum [OPTIONS] [FILE]...

Without FILE, or where FILE is -, standard input is read.

  -H#                 algorithm: 0 or 32, 1 or 64, 2 or 128, 3 (XXH3, 64 bits)
  -c, --check         read checksums from the FILEs and check them
      --little-endian  digests with their lowest byte first
      --tag           BSD's lines, with the name of the algorithm
  -h, --help          show this help and exit
  -V, --version       show the version and exit

While checking:
  -q, --quiet         no line for files that match
      --status        print nothing, the exit status tells
      --strict        a line that is none of checksums is a failure
  -w, --warn          name lines that are none of checksums

Benchmarks (-b, -i) are left to xxHash's own xxhsum.
This is bit-crafts under another program's name: many files are hashed at once.
";

/// Options and operands of one run.
struct XxhsumArgs {
    algorithm: Algorithm,
    check: bool,
    little_endian: bool,
    quiet: bool,
    status: bool,
    strict: bool,
    tag: bool,
    warn: bool,
    files: Vec<OsString>,
}

impl XxhsumArgs {
    /// Reads one argument's letters; a number belongs to `-H` only where it is attached.
    fn letters(&mut self, mut letters: &[u8]) -> Result<(), Early> {
        while let Some((&letter, rest)) = letters.split_first() {
            letters = rest;
            match letter {
                b'H' => {
                    let is_digit = |byte: &u8| byte.is_ascii_digit();
                    let end = letters.iter().position(|byte| !is_digit(byte));
                    let (number, rest) = letters.split_at(end.unwrap_or(letters.len()));
                    let number = if number.is_empty() { b"0" } else { number };
                    self.algorithm = algorithm(number).ok_or_else(|| {
                        let shown = bc_fs::escape(number);
                        Early::Wrong(format!("-H{shown}: no such algorithm").into())
                    })?;
                    letters = rest;
                }
                b'c' => self.check = true,
                b'h' => return Err(Early::Help),
                b'q' => self.quiet = true,
                b'V' => return Err(Early::Version),
                b'w' => self.warn = true,
                letter => {
                    let shown = bc_fs::escape(&[letter]).into_owned();
                    return Err(Early::Wrong(format!("invalid option -- '{shown}'").into()));
                }
            }
        }
        Ok(())
    }
}

/// Returns the algorithm of `-H`.
fn algorithm(number: &[u8]) -> Option<Algorithm> {
    Some(match number {
        b"0" | b"32" => Algorithm::Xxh32,
        b"1" | b"64" => Algorithm::Xxh64,
        b"2" | b"128" => Algorithm::Xxh128,
        b"3" => Algorithm::Xxh3,
        _ => return None,
    })
}

fn parse(usual: u8, argv: &[OsString]) -> Result<XxhsumArgs, Early> {
    let mut args = XxhsumArgs {
        algorithm: algorithm(&[b'0' + usual]).unwrap_or(Algorithm::Xxh64),
        check: false,
        little_endian: false,
        quiet: false,
        status: false,
        strict: false,
        tag: false,
        warn: false,
        files: Vec::new(),
    };
    let mut rest = argv.iter();
    let mut operands = None;
    for argument in rest.by_ref() {
        match argument.as_bytes() {
            b"--" => break,
            bytes if !bytes.starts_with(b"-") => {
                // All arguments after the first name are names too.
                operands = Some(argument.clone());
                break;
            }
            b"--binary" => {}
            b"--check" => args.check = true,
            b"--help" => return Err(Early::Help),
            b"--little-endian" => args.little_endian = true,
            b"--quiet" => args.quiet = true,
            b"--status" => args.status = true,
            b"--strict" => args.strict = true,
            b"--tag" => args.tag = true,
            b"--version" => return Err(Early::Version),
            b"--warn" => args.warn = true,
            letters => args.letters(&letters[1..])?,
        }
    }
    args.files = operands.into_iter().chain(rest.cloned()).collect();
    if args.files.is_empty() {
        args.files.push("-".into());
    }
    Ok(args)
}

/// Runs the program; returns true if all is well.
pub fn run(usual: u8, argv: &[OsString], out: &mut Out) -> Result<Result<bool, RunStop>, Early> {
    let args = parse(usual, argv)?;
    let setup = Setup::load().map_err(|text| Early::Failed(text.into()))?;
    Ok(match args.check {
        true => check(&args, &setup, out),
        false => sums(&args, &setup, out),
    })
}

fn sums(args: &XxhsumArgs, setup: &Setup, out: &mut Out) -> Result<bool, RunStop> {
    let jobs = FileJob::each(&args.files, Sum::Of(args.algorithm));
    let mut printer = Printer {
        args,
        jobs: &jobs,
        out,
        well: true,
    };
    order::run(&jobs, setup, &mut printer)?;
    Ok(printer.well)
}

struct Printer<'a> {
    args: &'a XxhsumArgs,
    jobs: &'a [FileJob],
    out: &'a mut Out,
    well: bool,
}

impl InOrder for Printer<'_> {
    fn result(&mut self, index: usize, result: io::Result<FamilyResult>) -> Result<(), Lost> {
        let path = &self.jobs[index].path;
        let digest = match result {
            Ok(hashed) => hashed.digest,
            Err(error) => {
                self.well = false;
                let why = reason(&error);
                if error.kind() == io::ErrorKind::IsADirectory {
                    self.out
                        .say([&one_line(path), b": Is a directory ".as_slice()].concat());
                } else {
                    self.out.flush()?;
                    let end = format!("': {why}. \n");
                    raw_message(&[OPENING, &one_line(path), end.as_bytes()].concat());
                }
                return Ok(());
            }
        };
        let mut bytes = digest.as_bytes().to_vec();
        if self.args.little_endian {
            bytes.reverse();
        }
        let path: &[u8] = if path == b"-" { b"stdin" } else { path };
        let mut line = Vec::new();
        match (self.args.tag, self.args.algorithm) {
            (true, algorithm) => {
                let order = if self.args.little_endian { "_LE" } else { "" };
                let tag = format!("{}{order}", algorithm.tag());
                bsd::write_line(&mut line, &tag, &bytes, path, End::Newline);
            }
            (false, Algorithm::Xxh3) => {
                gnu::write_xxh3_line(&mut line, &bytes, path, End::Newline);
            }
            (false, _) => gnu::write_line(&mut line, &bytes, path, End::Newline),
        }
        self.out.text(&line)
    }

    fn pause(&mut self) -> Result<(), Lost> {
        self.out.flush()
    }
}

fn is_xxh(algorithm: Algorithm) -> bool {
    use Algorithm::{Xxh3, Xxh32, Xxh64, Xxh128};
    matches!(algorithm, Xxh32 | Xxh64 | Xxh3 | Xxh128)
}

fn of_length(bytes: usize) -> Option<Algorithm> {
    Some(match bytes {
        4 => Algorithm::Xxh32,
        8 => Algorithm::Xxh64,
        16 => Algorithm::Xxh128,
        _ => return None,
    })
}

fn check(args: &XxhsumArgs, setup: &Setup, out: &mut Out) -> Result<bool, RunStop> {
    let mut well = true;
    for file in &args.files {
        let shown = file.as_bytes();
        let listed = match listed::read(shown, Nul::Ends, of_length, is_xxh) {
            Ok(listed) => listed,
            Err(error) => {
                out.flush()?;
                let end = format!("': {}\n", reason(&error));
                raw_message(&[OPENING, &one_line(shown), end.as_bytes()].concat());
                well = false;
                continue;
            }
        };
        let mut verdicts = XxhsumVerdicts {
            args,
            file: shown,
            listed: &listed,
            out,
            mismatched: 0,
            unreadable: 0,
            warned: 0,
        };
        order::run(&listed.jobs, setup, &mut verdicts)?;
        verdicts.warn_before(usize::MAX);
        well &= verdicts.sum_up()?;
    }
    Ok(well)
}

struct XxhsumVerdicts<'a> {
    args: &'a XxhsumArgs,
    file: &'a [u8],
    listed: &'a Listed,
    out: &'a mut Out,
    mismatched: u64,
    unreadable: u64,
    /// Improper lines that were named.
    warned: usize,
}

impl XxhsumVerdicts<'_> {
    fn warn_before(&mut self, index: usize) {
        while let Some((before, line)) = self.listed.improper.get(self.warned)
            && *before <= index
        {
            self.warned += 1;
            if self.args.warn {
                let _ = self.out.flush();
                let end = format!(":{line}: Error: Improperly formatted checksum line.\n");
                raw_message(&[&one_line(self.file), end.as_bytes()].concat());
            }
        }
    }

    fn sum_up(&mut self) -> Result<bool, RunStop> {
        let improper = self.listed.improper.len() as u64;
        if self.listed.jobs.is_empty() {
            self.out.flush()?;
            let end = b": no properly formatted xxHash checksum lines found\n";
            raw_message(&[&one_line(self.file), end.as_slice()].concat());
            return Ok(false);
        }
        if !self.args.status {
            for text in warnings(improper, self.unreadable, self.mismatched) {
                self.out.text(format!("{text}\n").as_bytes())?;
            }
        }
        self.out.flush()?;
        let strict = self.args.strict && improper > 0;
        Ok(self.mismatched == 0 && self.unreadable == 0 && !strict)
    }
}

impl InOrder for XxhsumVerdicts<'_> {
    fn result(&mut self, index: usize, result: io::Result<FamilyResult>) -> Result<(), Lost> {
        self.warn_before(index);
        let path = one_line(&self.listed.jobs[index].path);
        let (expected, line) = self.listed.expected[index];
        let text = match result {
            Ok(hashed) if hashed.digest == expected => {
                if self.args.quiet {
                    return Ok(());
                }
                [&path, b": OK\n".as_slice()].concat()
            }
            Ok(_) => {
                self.mismatched += 1;
                [&path, b": FAILED\n".as_slice()].concat()
            }
            Err(error) => {
                self.unreadable += 1;
                let start = format!(":{line}: Could not open or read '");
                let end = format!("': {}.\n", reason(&error));
                [
                    &one_line(self.file),
                    start.as_bytes(),
                    &path,
                    end.as_bytes(),
                ]
                .concat()
            }
        };
        match self.args.status {
            true => Ok(()),
            false => self.out.text(&text),
        }
    }

    fn pause(&mut self) -> Result<(), Lost> {
        self.out.flush()
    }
}
