//! The program as `b3sum`, without its keyed modes: digests here identify content, they do not
//! authenticate it.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;

use bc_digest::{Algorithm, push_hex};
use bc_manifest::{End, bsd, gnu};
use bc_pool::Threads;

use super::family::{FamilyResult, Sum};
use super::getopt::{Getopt, Opt, flag, value};
use super::listed::{self, Listed, Nul};
use super::order::{self, FileJob, InOrder, RunStop};
use super::setup::Setup;
use super::stdio::{Lost, Out};
use crate::hash::warnings;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Id {
    Check,
    DeriveKey,
    Help,
    Keyed,
    Length,
    NoMmap,
    NoNames,
    Quiet,
    Raw,
    Seek,
    Tag,
    Threads,
    Version,
}

const OPTIONS: &[Opt<Id>] = &[
    flag(Id::Check, Some(b'c'), Some("check")),
    value(Id::DeriveKey, None, Some("derive-key")),
    flag(Id::Help, Some(b'h'), Some("help")),
    flag(Id::Keyed, None, Some("keyed")),
    value(Id::Length, Some(b'l'), Some("length")),
    flag(Id::NoMmap, None, Some("no-mmap")),
    flag(Id::NoNames, None, Some("no-names")),
    value(Id::Threads, None, Some("num-threads")),
    flag(Id::Quiet, None, Some("quiet")),
    flag(Id::Raw, None, Some("raw")),
    value(Id::Seek, None, Some("seek")),
    flag(Id::Tag, None, Some("tag")),
    flag(Id::Version, Some(b'V'), Some("version")),
];

/// The help text.
pub const HELP: &str = "\
Usage: b3sum [OPTIONS] [FILE]...

Without FILE, or where FILE is -, standard input is read.

  -c, --check          read checksums from the FILEs and check them
  -l, --length LEN     bytes of the digest, at most 32
      --num-threads N  the most threads
      --no-names       digests alone
      --quiet          while checking, no line for files that match
      --raw            the bytes of the digest of one file
      --tag            BSD's lines, with the name of the digest
  -h, --help           show this help and exit
  -V, --version        show the version and exit

--no-mmap changes nothing. Keyed modes and longer output are left to BLAKE3's own b3sum.
This is bit-crafts under another program's name: many files are hashed at once.
";

/// The longest digest, which is that of every other program.
const LONGEST: usize = 32;

/// End before any file is read: an error in the arguments, help or version.
pub enum Early {
    Help,
    Version,
    /// Arguments that cannot be parsed.
    Wrong(Vec<u8>),
    /// Arguments that do not go together, or a setting that cannot be used.
    Failed(Vec<u8>),
}

/// Options and operands of one run.
struct B3sumArgs {
    check: bool,
    quiet: bool,
    length: usize,
    names: bool,
    raw: bool,
    tag: bool,
    threads: Option<usize>,
    files: Vec<OsString>,
}

fn wrong(text: impl Into<Vec<u8>>) -> Early {
    Early::Wrong(text.into())
}

fn failed(text: impl Into<Vec<u8>>) -> Early {
    Early::Failed(text.into())
}

fn number(argument: Option<OsString>, name: &str) -> Result<usize, Early> {
    let argument = argument.unwrap_or_default();
    let number = argument.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        let shown = bc_fs::escape(argument.as_bytes()).into_owned();
        wrong(format!("--{name}: '{shown}' is no number"))
    })
}

fn parse(argv: &[OsString]) -> Result<B3sumArgs, Early> {
    let mut args = B3sumArgs {
        check: false,
        quiet: false,
        length: LONGEST,
        names: true,
        raw: false,
        tag: false,
        threads: None,
        files: Vec::new(),
    };
    let mut getopt = Getopt::new(OPTIONS, argv, false);
    while let Some(met) = getopt.next() {
        let (id, argument) = met.map_err(Early::Wrong)?;
        match id {
            Id::Help => return Err(Early::Help),
            Id::Version => return Err(Early::Version),
            Id::Check => args.check = true,
            Id::Quiet => args.quiet = true,
            Id::NoMmap => {}
            Id::NoNames => args.names = false,
            Id::Raw => args.raw = true,
            Id::Tag => args.tag = true,
            Id::Threads => args.threads = Some(number(argument, "num-threads")?),
            Id::Length => args.length = number(argument, "length")?,
            Id::Seek if number(argument, "seek")? == 0 => {}
            Id::Seek => return Err(failed("--seek is left to BLAKE3's own b3sum")),
            Id::Keyed | Id::DeriveKey => {
                return Err(failed("keyed modes are left to BLAKE3's own b3sum"));
            }
        }
    }
    args.files = getopt.operands();
    if args.length > LONGEST {
        return Err(failed("more than 32 bytes are left to BLAKE3's own b3sum"));
    }
    if args.check && (args.raw || args.tag || !args.names || args.length != LONGEST) {
        return Err(wrong("--check goes with --quiet and --num-threads only"));
    }
    if args.quiet && !args.check {
        return Err(wrong("--quiet goes with --check only"));
    }
    if args.raw && args.files.len() > 1 {
        return Err(failed("Only one filename can be provided when using --raw"));
    }
    if args.files.is_empty() {
        args.files.push("-".into());
    }
    Ok(args)
}

/// Runs the program; returns true if all is well.
pub fn run(argv: &[OsString], out: &mut Out) -> Result<Result<bool, RunStop>, Early> {
    let args = parse(argv)?;
    let mut setup = Setup::load().map_err(failed)?;
    if let Some(count) = args.threads.filter(|count| *count > 0) {
        setup.threads = Threads::Exactly(count);
    }
    Ok(match args.check {
        true => check(&args, &setup, out),
        false => sums(&args, &setup, out),
    })
}

fn sums(args: &B3sumArgs, setup: &Setup, out: &mut Out) -> Result<bool, RunStop> {
    let jobs = FileJob::each(&args.files, Sum::Of(Algorithm::Blake3));
    let mut printer = B3sumPrinter {
        args,
        jobs: &jobs,
        out,
        well: true,
    };
    order::run(&jobs, setup, &mut printer)?;
    Ok(printer.well)
}

struct B3sumPrinter<'a> {
    args: &'a B3sumArgs,
    jobs: &'a [FileJob],
    out: &'a mut Out,
    well: bool,
}

impl InOrder for B3sumPrinter<'_> {
    fn result(&mut self, index: usize, result: io::Result<FamilyResult>) -> Result<(), Lost> {
        let path = &self.jobs[index].path;
        let digest = match result {
            Ok(hashed) => hashed.digest,
            Err(error) => {
                self.well = false;
                self.out.say(format!("{}: {error}", bc_fs::Escaped(path)));
                return Ok(());
            }
        };
        let bytes = &digest.as_bytes()[..self.args.length];
        if self.args.raw {
            return self.out.text(bytes);
        }
        let mut line = Vec::new();
        if !self.args.names {
            push_hex(&mut line, bytes);
            line.push(b'\n');
        } else if self.args.tag {
            bsd::write_line(&mut line, "BLAKE3", bytes, path, End::Newline);
        } else {
            gnu::write_line(&mut line, bytes, path, End::Newline);
        }
        self.out.text(&line)
    }

    fn pause(&mut self) -> Result<(), Lost> {
        self.out.flush()
    }
}

fn check(args: &B3sumArgs, setup: &Setup, out: &mut Out) -> Result<bool, RunStop> {
    let mut failed = 0_u64;
    for file in &args.files {
        let plain = |bytes| (bytes == LONGEST).then_some(Algorithm::Blake3);
        let listed = match listed::read(file.as_bytes(), Nul::Kept, plain, |a| {
            a == Algorithm::Blake3
        }) {
            Ok(listed) => listed,
            Err(error) => {
                failed += 1;
                out.say(format!("{}: {error}", bc_fs::Escaped(file.as_bytes())));
                continue;
            }
        };
        for (_, line) in &listed.improper {
            failed += 1;
            let shown = bc_fs::Escaped(file.as_bytes());
            out.say(format!("{shown}: line {line} is no BLAKE3 checksum"));
        }
        let mut verdicts = B3sumVerdicts {
            quiet: args.quiet,
            listed: &listed,
            out,
            failed: &mut failed,
        };
        order::run(&listed.jobs, setup, &mut verdicts)?;
    }
    for text in warnings(0, 0, failed) {
        out.say(format!("WARNING: {text}"));
    }
    Ok(failed == 0)
}

struct B3sumVerdicts<'a> {
    quiet: bool,
    listed: &'a Listed,
    out: &'a mut Out,
    failed: &'a mut u64,
}

impl InOrder for B3sumVerdicts<'_> {
    fn result(&mut self, index: usize, result: io::Result<FamilyResult>) -> Result<(), Lost> {
        let path = &self.listed.jobs[index].path;
        let mut line = one_line(path);
        let verdict = match result {
            Ok(hashed) if hashed.digest == self.listed.expected[index].0 => {
                if self.quiet {
                    return Ok(());
                }
                ": OK\n".to_owned()
            }
            Ok(_) => {
                *self.failed += 1;
                ": FAILED\n".to_owned()
            }
            Err(error) => {
                *self.failed += 1;
                format!(": FAILED ({error})\n")
            }
        };
        line.extend_from_slice(verdict.as_bytes());
        self.out.text(&line)
    }

    fn pause(&mut self) -> Result<(), Lost> {
        self.out.flush()
    }
}

/// Returns a name that ends with its line, with a backslash before it if it would not.
pub(super) fn one_line(path: &[u8]) -> Vec<u8> {
    if !gnu::needs_escape(path) {
        return path.to_vec();
    }
    let mut line = vec![b'\\'];
    gnu::escape_path(&mut line, path);
    line
}
