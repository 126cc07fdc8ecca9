//! `bc hash check`: GNU's `-c`, in parallel, for every format we read.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Batch, CpuFeatures};
use bc_hash::check::{Verdict, check_lines};
use bc_hash::{ExpectedDigests, HashOptions, HashProgress, Totals, Trial};
use rustix::io::Errno;

use super::args::CheckArgs;
use super::loaded::{Loaded, load};
use super::unlisted::{self, normal};
use super::verdicts::{self, Counts};
use crate::files::output::Output;
use crate::files::overlap::Given;
use crate::report::diagnostic::Diagnostic;
use crate::report::{Exit, details};
use crate::session::progress::Display;
use crate::session::{Outcome, Session};

pub fn run(args: &CheckArgs) -> Outcome<Exit> {
    let given = Given::inputs(args.manifests.iter().map(OsString::as_os_str));
    let mut session = Session::start("hash", "check", &args.common, &given, None)?;
    if args.manifests.is_empty() {
        return Err(session.fatal("no MANIFEST given; see --help, or 'bc hash PATH' makes one"));
    }
    if let Some(base) = &args.base {
        let found = std::fs::metadata(base).and_then(|found| match found.is_dir() {
            true => Ok(()),
            false => Err(io::ErrorKind::NotADirectory.into()),
        });
        found.map_err(|error| session.fatal(Diagnostic::failed(base, "stat", &error)))?;
    }
    let progress = Arc::new(HashProgress::default());
    let display = Display::start(
        &args.common,
        "check",
        crate::session::progress::reading(&progress),
    );
    let mut check = Check {
        args,
        session: &session,
        progress: &progress,
        display: &display,
        output: match args.status {
            true => Output::nowhere(),
            false => session.output(None)?.colors(args.common.color),
        },
        listed: HashSet::new(),
        exit: Exit::Done,
    };
    let mut result = check.manifests();
    if args.unlisted && result.is_ok() && !session.cancel.is_cancelled() {
        result = check.unlisted()?;
    }
    let Check { output, exit, .. } = check;
    display.stop();
    let exit = match session.finish(output, result) {
        Ok(()) => exit,
        Err(fatal) => exit.worst(fatal),
    };
    let (files, bytes) = (progress.files.load(Relaxed), progress.bytes.load(Relaxed));
    session.metrics.counts([
        ("files", "Files processed.", files),
        ("read_bytes", "Bytes read.", bytes),
    ]);
    Ok(session.end(exit))
}

/// A run through all manifests.
struct Check<'a> {
    args: &'a CheckArgs,
    session: &'a Session,
    progress: &'a HashProgress,
    display: &'a Display,
    output: Output,
    /// Paths of all manifests, where files that are not among them are asked for.
    listed: HashSet<Vec<u8>>,
    exit: Exit,
}

impl Check<'_> {
    /// Checks the manifests one after the other. One that cannot be used is reported, and the
    /// others are checked; a failure to write ends it.
    fn manifests(&mut self) -> io::Result<()> {
        for name in &self.args.manifests {
            if self.session.cancel.is_cancelled() {
                break;
            }
            match self.manifest(name) {
                Ok(written) => written?,
                Err(fatal) => self.exit = self.exit.worst(fatal),
            }
        }
        Ok(())
    }

    /// Verifies the files of one manifest.
    fn manifest(&mut self, name: &OsStr) -> Outcome<io::Result<()>> {
        let (args, session) = (self.args, self.session);
        let shown = bc_fs::escape(name.as_encoded_bytes()).into_owned();
        let mut loaded = session.while_reading(name, || load(args, session, name))?;
        if args.unlisted {
            let unread = loaded.unread.iter().map(|path| normal(path));
            self.listed.extend(unread.map(<[u8]>::to_vec));
        }
        if loaded.too_large {
            return Err(too_large(session, &shown, &loaded));
        }
        if loaded.wanted.is_empty() {
            // GNU says so even with --status: nothing was verified at all.
            let text = format!("{shown}: no properly formatted checksum lines found");
            session.report.problem(&text);
            self.exit = self.exit.worst(Exit::Differs);
            return Ok(Ok(()));
        }
        if args.unlisted {
            let lines = 0..loaded.wanted.len();
            let paths = lines.map(|line| normal(loaded.wanted.path(line)));
            self.listed.extend(paths.map(<[u8]>::to_vec));
        }
        let lines = 0..loaded.wanted.len();
        session.spare_listed(lines.map(|line| loaded.wanted.path(line)))?;
        let mut verdicts = self.verify(&shown, &mut loaded)?;
        let of_dirs = explain(&loaded.wanted, &mut verdicts);
        if session.cancel.is_cancelled() {
            return Ok(Ok(()));
        }
        let mut counts = Counts::default();
        let (output, wanted) = (&mut self.output, &loaded.wanted);
        let written = verdicts::write(args, session, output, wanted, &verdicts, &mut counts);
        let exit = verdicts::summary(args, session, &shown, &loaded, &counts);
        if of_dirs && !args.status {
            session.report.always(format_args!(
                "{shown}: lines that end in / are digests of directories, which check does not compute; make \
                 the list again and compare both: bc hash diff {shown} NEW"
            ));
        }
        self.exit = self.exit.worst(exit);
        Ok(written)
    }

    fn verify(&self, shown: &str, loaded: &mut Loaded) -> Outcome<Vec<Verdict>> {
        // A list that does not fit is refused before a file is read.
        let options = options(self.session, loaded)?;
        let wanted = &mut loaded.wanted;
        self.display.phase("check", wanted.len() as u64, 0);
        let session = self.session;
        let totals = RefCell::new(Totals::default());
        let engine = |wanted: &ExpectedDigests, lines: &[u32]| {
            let (cancel, progress) = (&session.cancel, self.progress);
            let checked = check_lines(wanted, lines, &options, cancel, progress);
            let (verdicts, some) = checked.map_err(|panic| session.defect(&panic))?;
            totals.borrow_mut().merge(some);
            Ok(verdicts)
        };
        let trial = Trial {
            threads: session.most_workers(),
            cancel: &session.cancel,
            verify: &engine,
            attempt: &|tries: &ExpectedDigests, lines: &[u32]| attempt(session, tries, lines),
            found: &|algorithm: Algorithm, path: &[u8]| {
                let path = bc_fs::escape(path);
                session.report.note(format_args!(
                    "{shown}: no algorithm is named; {algorithm} matches {path}"
                ));
            },
        };
        let verdicts = trial.run(wanted, &loaded.guessed)?;
        let totals = totals.into_inner();
        session.report.note(format_args!(
            "{shown}: {} lines, {} files, {} bytes, {} threads",
            wanted.len(),
            totals.read.files,
            totals.read.bytes,
            totals.workers,
        ));
        details::read(&session.report, &totals.read);
        let paths = (0..wanted.len()).map(|line| wanted.path(line));
        details::file_systems(&session.report, paths);
        Ok(verdicts)
    }

    /// Reports the files that no manifest lists.
    fn unlisted(&mut self) -> Outcome<io::Result<()>> {
        let found = unlisted::find(self.args, self.session, &self.listed)?;
        let mut written = Ok(());
        for path in &found {
            if written.is_ok() && !self.args.status {
                written = verdicts::line(&mut self.output, path, "UNLISTED");
            }
        }
        if !found.is_empty() {
            self.exit = self.exit.worst(Exit::Differs);
            if !self.args.status {
                let (count, nouns) = (found.len(), ["file is", "files are"]);
                let noun = nouns[usize::from(count > 1)];
                self.session
                    .report
                    .always(format_args!("WARNING: {count} {noun} not listed"));
            }
        }
        // What could not be looked into may hold some.
        self.exit = self.exit.worst(self.session.report.exit());
        Ok(written)
    }
}

/// Explains why some lines cannot be checked: that of standard input names no file. Returns true if
/// any is of a directory.
fn explain(wanted: &ExpectedDigests, verdicts: &mut [Verdict]) -> bool {
    let mut of_dirs = false;
    for (line, verdict) in verdicts.iter_mut().enumerate() {
        let Verdict::Failed(error) = verdict else {
            continue;
        };
        let (path, errno) = (
            wanted.path(line),
            error.errno().map(Errno::from_raw_os_error),
        );
        match (path, errno) {
            (b"-", Some(Errno::NOENT)) => {
                let why =
                    "was standard input, which is not read again; './-' is a file of that name";
                **error = bc_walk::Error::with_message(path, "open", why);
            }
            (path, Some(Errno::ISDIR)) => of_dirs |= path.ends_with(b"/"),
            _ => {}
        }
    }
    of_dirs
}

/// Verifies attempts at one line of a list. The whole list fits, so the few tried of it do.
fn attempt(session: &Session, tries: &ExpectedDigests, lines: &[u32]) -> Outcome<Vec<Verdict>> {
    let cpu = CpuFeatures::detect();
    let algorithms = lines.iter().flat_map(|line| tries.digests(*line as usize));
    let algorithms: Vec<Algorithm> = algorithms.map(|(algorithm, _)| algorithm).collect();
    let width = Batch::new(&algorithms, cpu).width();
    let memory = bc_hash::check::check_memory(tries);
    let read = session.fit(1, width, memory).unwrap_or_default();
    let options = HashOptions::new(Vec::new()).read(read);
    let (cancel, progress) = (&session.cancel, HashProgress::default());
    let checked = check_lines(tries, lines, &options, cancel, &progress);
    checked
        .map(|(verdicts, _)| verdicts)
        .map_err(|panic| session.defect(&panic))
}

/// Refuses a list that the memory budget is too small for, with the budget needed.
fn too_large(session: &Session, shown: &str, loaded: &Loaded) -> Exit {
    let refused = session.fit(1, width(loaded), loaded.memory);
    let text = refused.err().unwrap_or_default();
    session.fatal(format!("{shown}: {text}"))
}

/// Returns the number of workers and the options for reading, within the memory budget.
fn options(session: &Session, loaded: &Loaded) -> Outcome<HashOptions> {
    let width = width(loaded);
    let memory = loaded.memory;
    let workers = session.workers(loaded.wanted.len(), width, memory);
    Ok(HashOptions::new(Vec::new())
        .cpu(CpuFeatures::detect())
        .read(session.read_options(workers, width, memory)?)
        .workers(workers)
        .start(session.common.threads.start()))
}

/// Returns the number of files that a worker hashes at once.
fn width(loaded: &Loaded) -> usize {
    let cpu = CpuFeatures::detect();
    let algorithms = loaded.algorithms.iter();
    let widths = algorithms.map(|algorithm| Batch::new(&[*algorithm], cpu).width());
    widths.max().unwrap_or(1)
}
