//! Options as `getopt_long` of glibc reads them: clustered letters, long names abbreviated as far
//! as they are unambiguous, options and operands mixed unless POSIXLY_CORRECT is set, and its
//! messages.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// One option; a letter, a name, or both.
#[derive(Clone, Copy, Debug)]
pub struct Opt<O> {
    /// Identity of the option.
    pub id: O,
    /// Its letter.
    pub short: Option<u8>,
    /// Its name, without the dashes.
    pub long: Option<&'static str>,
    /// True if it takes an argument.
    pub takes: bool,
}

/// Returns an option without an argument.
pub const fn flag<O>(id: O, short: Option<u8>, long: Option<&'static str>) -> Opt<O> {
    Opt {
        id,
        short,
        long,
        takes: false,
    }
}

/// Returns an option with an argument.
pub const fn value<O>(id: O, short: Option<u8>, long: Option<&'static str>) -> Opt<O> {
    Opt {
        id,
        short,
        long,
        takes: true,
    }
}

/// Reads arguments one by one.
#[derive(Debug)]
pub struct Getopt<'a, O> {
    options: &'a [Opt<O>],
    arguments: std::slice::Iter<'a, OsString>,
    /// Rest of a cluster of letters.
    cluster: &'a [u8],
    /// True if operands end the options.
    posixly: bool,
    operands: Vec<OsString>,
}

/// An option as it was met, and its argument.
pub type Met<O> = (O, Option<OsString>);

impl<'a, O: Copy + PartialEq> Getopt<'a, O> {
    /// Returns the parser of these arguments, those after the program's name.
    pub fn new(options: &'a [Opt<O>], arguments: &'a [OsString], posixly: bool) -> Self {
        Getopt {
            options,
            arguments: arguments.iter(),
            cluster: &[],
            posixly,
            operands: Vec::new(),
        }
    }

    /// Returns the operands, once there are no more options.
    pub fn operands(self) -> Vec<OsString> {
        self.operands
    }

    /// Returns the next option; an error is the message to print after the program's name and a
    /// colon.
    pub fn next(&mut self) -> Option<Result<Met<O>, Vec<u8>>> {
        if let Some((&letter, rest)) = self.cluster.split_first() {
            self.cluster = rest;
            return Some(self.letter(letter));
        }
        loop {
            let argument = self.arguments.next()?;
            let bytes = argument.as_bytes();
            match bytes {
                b"--" => {
                    self.operands.extend(self.arguments.by_ref().cloned());
                    return None;
                }
                [b'-', b'-', long @ ..] => return Some(self.long(long)),
                [b'-', letter, rest @ ..] => {
                    self.cluster = rest;
                    return Some(self.letter(*letter));
                }
                _ => {
                    self.operands.push(argument.clone());
                    if self.posixly {
                        self.operands.extend(self.arguments.by_ref().cloned());
                        return None;
                    }
                }
            }
        }
    }

    fn letter(&mut self, letter: u8) -> Result<Met<O>, Vec<u8>> {
        let known = self.options.iter().find(|opt| opt.short == Some(letter));
        let Some(opt) = known else {
            return Err(with(b"invalid option -- '", &[letter], b"'"));
        };
        if !opt.takes {
            return Ok((opt.id, None));
        }
        let rest = std::mem::take(&mut self.cluster);
        if !rest.is_empty() {
            return Ok((opt.id, Some(OsString::from_vec(rest.to_vec()))));
        }
        match self.arguments.next() {
            Some(argument) => Ok((opt.id, Some(argument.clone()))),
            None => Err(with(b"option requires an argument -- '", &[letter], b"'")),
        }
    }

    fn long(&mut self, text: &'a [u8]) -> Result<Met<O>, Vec<u8>> {
        let (name, argument) = match text.iter().position(|byte| *byte == b'=') {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let named = |opt: &&&Opt<O>| opt.long.is_some_and(|long| long.as_bytes() == name);
        let begun = |opt: &&Opt<O>| {
            opt.long
                .is_some_and(|long| long.as_bytes().starts_with(name))
        };
        let candidates: Vec<&Opt<O>> = self.options.iter().filter(begun).collect();
        let opt = match candidates.iter().find(named) {
            Some(opt) => *opt,
            None => match candidates.as_slice() {
                [] => return Err(with(b"unrecognized option '--", text, b"'")),
                [only] => *only,
                [first, others @ ..] if others.iter().all(|opt| opt.id == first.id) => *first,
                several => {
                    let mut message = with(b"option '--", text, b"' is ambiguous; possibilities:");
                    for opt in several {
                        let long = opt.long.unwrap_or_default().as_bytes();
                        message.extend(with(b" '--", long, b"'"));
                    }
                    return Err(message);
                }
            },
        };
        let long = opt.long.unwrap_or_default().as_bytes();
        match (opt.takes, argument) {
            (false, None) => Ok((opt.id, None)),
            (false, Some(_)) => Err(with(b"option '--", long, b"' doesn't allow an argument")),
            (true, Some(argument)) => Ok((opt.id, Some(OsString::from_vec(argument.to_vec())))),
            (true, None) => match self.arguments.next() {
                Some(argument) => Ok((opt.id, Some(argument.clone()))),
                None => Err(with(b"option '--", long, b"' requires an argument")),
            },
        }
    }
}

fn with(before: &[u8], what: &[u8], after: &[u8]) -> Vec<u8> {
    [before, what, after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[Opt<char>] = &[
        flag('c', Some(b'c'), Some("check")),
        flag('s', None, Some("status")),
        flag('S', None, Some("strict")),
        value('l', Some(b'l'), Some("length")),
        flag('z', Some(b'z'), Some("zero")),
    ];

    /// Options as letters with their arguments, then operands or the error.
    fn read(line: &str, posixly: bool) -> String {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut getopt = Getopt::new(OPTIONS, &arguments, posixly);
        let mut out = String::new();
        while let Some(met) = getopt.next() {
            match met {
                Ok((id, argument)) => {
                    out.push(id);
                    out += argument.unwrap_or_default().to_str().unwrap();
                    out.push(' ');
                }
                Err(message) => return out + std::str::from_utf8(&message).unwrap(),
            }
        }
        let operands = getopt.operands();
        let operands: Vec<&str> = operands.iter().map(|o| o.to_str().unwrap()).collect();
        out + "| " + &operands.join(" ")
    }

    #[test]
    fn as_glibc_reads_them() {
        for (line, expected) in [
            ("-cz a", "c z | a"),
            ("a -c b - -z", "c z | a b -"),
            ("-l8 -zl 9 --length=7 --length 6", "l8 z l9 l7 l6 | "),
            ("--ch --z -- -c --x", "c z | -c --x"),
            ("--len=", "l | "),
            (
                "--st",
                "option '--st' is ambiguous; possibilities: '--status' '--strict'",
            ),
            ("-c --stat --stri", "c s S | "),
            ("--nope=3", "unrecognized option '--nope=3'"),
            ("--check=1", "option '--check' doesn't allow an argument"),
            ("--l", "option '--length' requires an argument"),
            ("-l", "option requires an argument -- 'l'"),
            ("-cx", "c invalid option -- 'x'"),
        ] {
            assert_eq!(read(line, false), expected, "{line}");
        }
        assert_eq!(read("-c a -z", true), "c | a -z");
        assert_eq!(read("a -- -z", true), "| a -- -z");
    }
}
