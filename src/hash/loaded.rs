//! A manifest as `bc hash check` reads it: the digests to verify, and the entries without one.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use bc_digest::Algorithm;
use bc_fs::Size;
use bc_hash::check::line_memory;
use bc_hash::lines::Hint;
use bc_hash::{ExpectedDigests, FileDigests};

use super::args::CheckArgs;
use super::manifest::{self, LineMeaning};
use crate::report::Exit;
use crate::report::diagnostic::Diagnostic;
use crate::session::{Outcome, Session};

/// Contents of one manifest.
#[derive(Default)]
pub struct Loaded {
    pub wanted: ExpectedDigests,
    /// Lines whose algorithm is not named.
    pub guessed: Vec<u32>,
    /// Algorithms of the lines, as far as they are known.
    pub algorithms: BTreeSet<Algorithm>,
    /// Bytes of memory that checking the lines takes, these included.
    pub memory: u64,
    /// True if `memory` is more than the memory budget: lines are counted, and no longer kept.
    pub too_large: bool,
    budget: Option<u64>,
    pub improper: u64,
    /// Paths of files without a digest.
    pub unread: Vec<Vec<u8>>,
    /// Files without a digest, or an end that is missing: there is more than can be verified.
    pub incomplete: bool,
}

/// Reads a manifest, and reports its errors.
pub fn load(args: &CheckArgs, session: &Session, name: &OsStr) -> Outcome<Loaded> {
    let shown = bc_fs::escape(name.as_bytes()).into_owned();
    let hint = Hint::new(args.algorithm, Path::new(name));
    let mut loaded = Loaded {
        budget: args.common.memory_budget.map(|Size(bytes)| bytes),
        ..Loaded::default()
    };
    let lines =
        manifest::open(name, args.zero, &session.cancel).map_err(|what| fail(session, what))?;
    for line in lines {
        let line = line.map_err(|text| fail(session, format!("{shown}: {text}")))?;
        loaded.add(manifest::resolve(line, hint), args, session, &shown);
    }
    Ok(loaded)
}

impl Loaded {
    fn add(&mut self, line: LineMeaning, args: &CheckArgs, session: &Session, shown: &str) {
        let report = &session.report;
        match line {
            LineMeaning::Wanted(wanted) => self.want(wanted, args.base.as_deref()),
            LineMeaning::Guessed(wanted) => {
                if !self.too_large {
                    self.guessed.push(self.wanted.len() as u32);
                }
                self.want(wanted, args.base.as_deref());
            }
            LineMeaning::Nothing => {}
            LineMeaning::Unread(path, reason) => {
                self.incomplete = true;
                report.problem(manifest::unread(shown, &path, &reason));
                self.unread.push(based(path, args.base.as_deref()));
            }
            LineMeaning::CutShort => {
                self.incomplete = true;
                report.problem(manifest::cut_short(shown));
            }
            LineMeaning::Improper(number) => {
                self.improper += 1;
                if args.warn {
                    report.warning(format_args!(
                        "{shown}: {number}: improperly formatted checksum line"
                    ));
                }
            }
        }
    }

    fn want(&mut self, wanted: FileDigests, base: Option<&Path>) {
        let path = based(wanted.path, base);
        let digests: usize = wanted
            .digests
            .iter()
            .map(|(_, digest)| digest.as_bytes().len())
            .sum();
        self.algorithms
            .extend(wanted.digests.iter().map(|(algorithm, _)| *algorithm));
        self.memory += line_memory(&path) + (path.len() + digests) as u64;
        if !self.too_large {
            self.wanted.push(&path, &wanted.digests);
        }
        // Lines that do not fit are not gathered first.
        if self.budget.is_some_and(|budget| self.memory > budget) && !self.too_large {
            self.too_large = true;
            (self.wanted, self.guessed) = Default::default();
        }
    }
}

/// Returns a listed path as it is opened.
fn based(path: Vec<u8>, base: Option<&Path>) -> Vec<u8> {
    match base {
        Some(base) => {
            let path = base.join(OsStr::from_bytes(&path));
            path.into_os_string().into_vec()
        }
        None => path,
    }
}

/// Reports an unreadable manifest: it is unusable input, but the other manifests are still done.
fn fail(session: &Session, what: impl Into<Diagnostic>) -> Exit {
    if session.cancel.is_cancelled() {
        return session.fatal(what);
    }
    session.report.problem(what);
    Exit::Fatal
}
