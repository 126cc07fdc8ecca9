//! The options of coreutils' checksum programs, and which of them go together.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::family::{Family, SHA_BITS};
use super::getopt::{Getopt, Opt, flag, value};
use super::quote;

/// An option.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Id {
    Algorithm,
    Base64,
    Binary,
    Check,
    Debug,
    Help,
    IgnoreMissing,
    Length,
    Quiet,
    Raw,
    Status,
    Strict,
    Tag,
    Text,
    Untagged,
    Version,
    Warn,
    Zero,
}

/// Options of all of them. The order is that in which ambiguous ones are listed.
const COMMON: &[Opt<Id>] = &[
    flag(Id::Check, Some(b'c'), Some("check")),
    flag(Id::IgnoreMissing, None, Some("ignore-missing")),
    flag(Id::Quiet, None, Some("quiet")),
    flag(Id::Status, None, Some("status")),
    flag(Id::Warn, Some(b'w'), Some("warn")),
    flag(Id::Strict, None, Some("strict")),
    flag(Id::Tag, None, Some("tag")),
    flag(Id::Zero, Some(b'z'), Some("zero")),
];
const OF_CKSUM: &[Opt<Id>] = &[
    value(Id::Algorithm, Some(b'a'), Some("algorithm")),
    flag(Id::Base64, None, Some("base64")),
    flag(Id::Debug, None, Some("debug")),
    flag(Id::Raw, None, Some("raw")),
    flag(Id::Untagged, None, Some("untagged")),
];
const LENGTH: Opt<Id> = value(Id::Length, Some(b'l'), Some("length"));
const LAST: &[Opt<Id>] = &[
    flag(Id::Binary, Some(b'b'), Some("binary")),
    flag(Id::Text, Some(b't'), Some("text")),
    flag(Id::Help, None, Some("help")),
    flag(Id::Version, None, Some("version")),
];

/// Amount of output of `-c`. The last option that sets it decides.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Saying {
    /// A line for each file, and sums at the end.
    #[default]
    All,
    /// `--quiet`: nothing of files that match.
    Quiet,
    /// `--warn`: each improper line, too.
    Warn,
    /// `--status`: nothing.
    Status,
}

/// Format of digests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Writing {
    Hex,
    Base64,
    Raw,
}

/// Options and operands of one run.
#[derive(Clone, Debug)]
pub struct Args {
    /// True for `cksum`, under any name: `-a`, base64, tags by default.
    pub is_cksum: bool,
    /// The digest.
    pub family: Family,
    /// True if the digest was named: then tags of others are not looked for.
    pub is_named: bool,
    /// Its length in bits.
    pub bits: usize,
    /// Check lines instead of writing them.
    pub check: bool,
    /// Amount of output while checking.
    pub saying: Saying,
    /// A missing file is no failure.
    pub ignore_missing: bool,
    /// An improper line is a failure.
    pub strict: bool,
    /// Write the algorithm's name in front.
    pub tagged: bool,
    /// Write a star before the name.
    pub star: bool,
    /// NUL after each line, and no escapes.
    pub zero: bool,
    /// Format of digests.
    pub writing: Writing,
    /// Report the instructions that compute them.
    pub debug: bool,
    /// The files; empty for standard input.
    pub operands: Vec<OsString>,
}

/// Reasons not to start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NotStarted {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// Something is wrong. Each line goes behind the program's name.
    Wrong {
        lines: Vec<Vec<u8>>,
        /// List of valid arguments, printed below the lines without the program's name.
        list: Vec<u8>,
        /// True if `--help` is mentioned.
        try_help: bool,
    },
}

fn wrong(text: impl Into<Vec<u8>>) -> NotStarted {
    NotStarted::Wrong {
        lines: vec![text.into()],
        list: Vec::new(),
        try_help: true,
    }
}

/// Returns the error without the hint at `--help`.
fn refused(lines: impl IntoIterator<Item = Vec<u8>>) -> NotStarted {
    NotStarted::Wrong {
        lines: lines.into_iter().collect(),
        list: Vec::new(),
        try_help: false,
    }
}

/// Options as given, before they are checked together.
#[derive(Default)]
struct GivenOptions {
    family: Option<Family>,
    length: Option<(usize, OsString)>,
    check: bool,
    saying: Saying,
    ignore_missing: bool,
    strict: bool,
    tagged: Option<bool>,
    binary: Option<bool>,
    zero: bool,
    base64: bool,
    raw: bool,
    debug: bool,
}

/// Reads the arguments that follow the program's name; `family` is its one digest, if it is not
/// `cksum`.
pub fn parse(family: Option<Family>, argv: &[OsString]) -> Result<Args, NotStarted> {
    let is_cksum = family.is_none();
    let mut options = Vec::new();
    if is_cksum || family == Some(Family::Blake2b) {
        options.push(LENGTH);
    }
    options.extend_from_slice(COMMON);
    if is_cksum {
        options.extend_from_slice(OF_CKSUM);
    }
    options.extend_from_slice(LAST);
    let posixly = std::env::var_os("POSIXLY_CORRECT").is_some();
    let mut getopt = Getopt::new(&options, argv, posixly);
    let mut given = GivenOptions::default();
    while let Some(met) = getopt.next() {
        let (id, argument) = met.map_err(wrong)?;
        given.take(id, argument.unwrap_or_default())?;
    }
    let operands = getopt.operands();
    given.plan(family, operands)
}

impl GivenOptions {
    fn take(&mut self, id: Id, argument: OsString) -> Result<(), NotStarted> {
        match id {
            Id::Help => return Err(NotStarted::Help),
            Id::Version => return Err(NotStarted::Version),
            Id::Algorithm => {
                let name = argument.as_bytes();
                self.family = Some(Family::from_name(name).ok_or_else(|| unknown(name))?);
            }
            Id::Length => self.length = Some((length(&argument)?, argument)),
            Id::Check => self.check = true,
            Id::IgnoreMissing => self.ignore_missing = true,
            Id::Quiet => self.saying = Saying::Quiet,
            Id::Status => self.saying = Saying::Status,
            Id::Warn => self.saying = Saying::Warn,
            Id::Strict => self.strict = true,
            Id::Tag => self.tagged = Some(true),
            Id::Untagged => self.tagged = Some(false),
            Id::Zero => self.zero = true,
            Id::Binary => self.binary = Some(true),
            Id::Text => self.binary = Some(false),
            Id::Base64 => self.base64 = true,
            Id::Raw => self.raw = true,
            Id::Debug => self.debug = true,
        }
        Ok(())
    }

    /// Checks that the options go together, in the order in which GNU checks.
    fn plan(self, own: Option<Family>, operands: Vec<OsString>) -> Result<Args, NotStarted> {
        let is_cksum = own.is_none();
        let family = own.or(self.family).unwrap_or(Family::Crc);
        let bits = self.bits(family)?;
        let is_named = own.is_some() || self.family.is_some();
        if is_cksum && self.check && is_named && family.is_old() {
            let text = "--check is not supported with --algorithm={bsd,sysv,crc,crc32b}";
            return Err(refused([text.into()]));
        }
        if self.base64 && self.raw {
            return Err(wrong("--base64 and --raw are mutually exclusive"));
        }
        self.of_checking()?;
        let tagged = self.tagged.unwrap_or(is_cksum);
        if tagged && self.binary == Some(false) {
            return Err(wrong(match is_cksum {
                true => "--text mode is only supported with --untagged",
                false => "--tag does not support --text mode",
            }));
        }
        if self.raw && operands.len() > 1 {
            let text = "the --raw option is not supported with multiple files";
            return Err(refused([text.into()]));
        }
        Ok(Args {
            is_cksum,
            family,
            is_named,
            bits,
            check: self.check,
            saying: self.saying,
            ignore_missing: self.ignore_missing,
            strict: self.strict,
            tagged,
            star: self.binary == Some(true),
            zero: self.zero,
            writing: match (self.raw, self.base64) {
                (true, _) => Writing::Raw,
                (_, true) => Writing::Base64,
                _ => Writing::Hex,
            },
            debug: self.debug,
            operands,
        })
    }

    /// Returns the length in bits that was asked for, or the family's longest.
    fn bits(&self, family: Family) -> Result<usize, NotStarted> {
        let (bits, text) = match &self.length {
            Some((bits, text)) => (*bits, text.as_bytes()),
            None => (0, &b""[..]),
        };
        if bits > 0 && !family.has_lengths() {
            let text = "--length is only supported with --algorithm blake2b, sha2, or sha3";
            return Err(refused([text.into()]));
        }
        let invalid = || [b"invalid length: ".to_vec(), quote::argument(text)].concat();
        let tag =
            || String::from_utf8_lossy(&quote::argument(family.tag().as_bytes())).into_owned();
        if matches!(family, Family::Sha2 | Family::Sha3) {
            if bits == 0 && text.is_empty() && !self.check {
                let text = format!(
                    "--algorithm={} requires specifying --length 224, 256, 384, or 512",
                    family.name()
                );
                return Err(refused([text.into()]));
            }
            if (!self.check || !text.is_empty()) && !SHA_BITS.contains(&bits) {
                let text = format!("digest length for {} must be 224, 256, 384, or 512", tag());
                return Err(refused([invalid(), text.into()]));
            }
        } else if bits > 512 {
            let text = format!("maximum digest length for {} is 512 bits", tag());
            return Err(refused([invalid(), text.into()]));
        } else if bits % 8 != 0 {
            return Err(refused([invalid(), "length is not a multiple of 8".into()]));
        }
        Ok(match bits {
            0 => family.bits(),
            bits => bits,
        })
    }

    /// Refuses options that only checking has, or that it does not have.
    fn of_checking(&self) -> Result<(), NotStarted> {
        let verifying = "verifying checksums";
        if self.check {
            return match self {
                _ if self.zero => Err(wrong(format!(
                    "the --zero option is not supported when {verifying}"
                ))),
                _ if self.tagged == Some(true) => Err(wrong(format!(
                    "the --tag option is meaningless when {verifying}"
                ))),
                _ if self.binary.is_some() => Err(wrong(format!(
                    "the --binary and --text options are meaningless when {verifying}"
                ))),
                _ => Ok(()),
            };
        }
        let needless = [
            (self.ignore_missing, "ignore-missing"),
            (self.saying == Saying::Status, "status"),
            (self.saying == Saying::Warn, "warn"),
            (self.saying == Saying::Quiet, "quiet"),
            (self.strict, "strict"),
        ];
        match needless.iter().find(|(given, _)| *given) {
            Some((_, name)) => Err(wrong(format!(
                "the --{name} option is meaningful only when {verifying}"
            ))),
            None => Ok(()),
        }
    }
}

/// Reads a number of bits; one that is too large for a number counts as large.
fn length(argument: &OsString) -> Result<usize, NotStarted> {
    let text = argument.as_bytes();
    let invalid = |why: &[u8]| {
        let quoted = quote::argument(text);
        refused([[b"invalid length: ", quoted.as_slice(), why].concat()])
    };
    let digits = text.trim_ascii_start();
    let (negative, digits) = match digits {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid(b""));
    }
    let number = digits.iter().fold(0_usize, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(usize::from(digit - b'0'))
    });
    if negative && number > 0 {
        return Err(invalid(b": Value too large for defined data type"));
    }
    Ok(number)
}

fn unknown(name: &[u8]) -> NotStarted {
    let quoted = quote::argument(name);
    let mut list = b"Valid arguments are:".to_vec();
    for family in Family::all() {
        list.extend_from_slice(format!("\n  - '{}'", family.name()).as_bytes());
    }
    list.push(b'\n');
    NotStarted::Wrong {
        lines: vec![
            [
                b"invalid argument ",
                quoted.as_slice(),
                b" for '--algorithm'",
            ]
            .concat(),
        ],
        list,
        try_help: true,
    }
}
