//! Steps of every subcommand around its engine: signals, limits, options turned into plans, the
//! walk, and the end of the run.

pub mod budget;
pub mod calls;
pub mod metrics;
pub mod panics;
pub mod progress;
pub mod resume;
pub mod signals;
pub mod tables;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bc_fs::Size;
use bc_fs::streams::Stream;
use bc_manifest::time::format_rfc3339;
use bc_pool::{Cancel, Effort, Start};
use bc_read::Choice as Reader;
use bc_walk::job::ErrorKind;
use bc_walk::{Entries, Identity, Listing, Metadata, OwnFile, SkippedDetail, Workers};
use signal_hook::consts::SIGXFSZ;

use self::metrics::Metrics;
use crate::files::input::Input;
use crate::files::output::Output;
use crate::files::overlap::{Given, Precious, Refusal, of_output};
use crate::parse::args::{Common, WalkArgs};
use crate::parse::time::TimeBound;
use crate::report::diagnostic::Diagnostic;
use crate::report::{Exit, Report, details};

/// One run of one subcommand.
pub struct Session {
    /// Diagnostics.
    pub report: Report,
    /// Set by SIGINT and SIGTERM.
    pub cancel: Cancel,
    /// Shared options.
    pub common: Common,
    /// Figures for `--metrics`.
    pub metrics: Metrics,
    /// Name of the subcommand.
    command: &'static str,
    started: Instant,
    /// Asked once: the answer takes some 100 µs to find out.
    walk_workers: OnceLock<Workers>,
    /// The limit of --rate, which everything that reads or copies shares.
    rate: Option<bc_read::Rate>,
    /// Bytes of the files, if each of them was named.
    named_bytes: OnceLock<u64>,
    /// Files that outputs replace, if no list of files that is still to be read leads there.
    precious: Vec<Precious>,
    /// Set once one of those is found to be a file that the command works on.
    spared: OnceLock<()>,
    /// File that had the name of that of `--metrics` when the run began.
    metrics_before: Option<Identity>,
}

/// A fatal end that was already reported.
pub type Outcome<T> = Result<T, Exit>;

impl Session {
    /// Installs signal handlers, raises the descriptor limit, checks the reader
    /// asked for. None of the files that are `given` may be lost to an output; `written` is the
    /// file that the command itself writes.
    pub fn start(
        applet: &'static str,
        command: &'static str,
        common: &Common,
        given: &Given<'_>,
        written: Option<&Path>,
    ) -> Outcome<Session> {
        let mut session = Session {
            report: Report::new(applet, common),
            cancel: signals::flag(),
            common: common.clone(),
            metrics: Metrics::new(applet, command),
            command,
            started: Instant::now(),
            walk_workers: OnceLock::new(),
            rate: common.rate.map(|Size(bytes)| bc_read::Rate::new(bytes)),
            named_bytes: OnceLock::new(),
            precious: Vec::new(),
            spared: OnceLock::new(),
            metrics_before: common.metrics.as_deref().and_then(of_output),
        };
        if common.rate == Some(Size(0)) {
            return Err(session.fatal("--rate=0: nothing would ever be read"));
        }
        session.precious = session.spare(given, written)?;
        if let Err((signal, error)) = signals::handle(last_words) {
            session
                .report
                .warning(format_args!("signal {signal}: handler: {error}"));
        }
        // Handled, it ends nothing, and a write beyond the limit of file sizes fails with a reason.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
        bc_fs::lease::ignore_break_signal();
        bc_walk::raise_nofile_limit();
        bc_fs::shortage::check().map_err(|few| session.fatal(few.to_string()))?;
        match common.io {
            Reader::Uring => {
                if let Err(error) = bc_read::uring_available() {
                    return Err(
                        session.fatal(format!("--io=uring: io_uring_setup: {}", error.message()))
                    );
                }
            }
            Reader::Auto if session.report.shows(1) => {
                if let Err(error) = bc_read::uring_available() {
                    session
                        .report
                        .note(format_args!("io_uring is not used: {}", error.message()));
                }
            }
            _ => {}
        }
        details::begun(&session.report, &session.common);
        Ok(session)
    }

    /// Refuses to write files that are read or worked on. `start` checks those that are known from
    /// the beginning.
    pub fn spare(&self, given: &Given<'_>, written: Option<&Path>) -> Outcome<Vec<Precious>> {
        let config = self.common.config.as_deref().map(Path::as_os_str);
        let given = given.clone().and_inputs(config);
        let (metrics, workers) = (self.common.metrics.as_deref(), || self.walk_workers());
        let checked = crate::files::overlap::check(&given, written, metrics, workers);
        checked.map_err(|Refusal { text, say_on }| match say_on {
            Some(Stream::Error) => self.fatal(&text),
            Some(_) => crate::report::fatal_on_stdout(self.report.applet(), &text),
            None => Exit::Fatal,
        })
    }

    /// Refuses the same for files that a list names, which was read meanwhile.
    pub fn spare_listed<'p>(&self, paths: impl IntoIterator<Item = &'p [u8]>) -> Outcome<()> {
        if self.precious.is_empty() {
            return Ok(());
        }
        let mut paths = paths.into_iter();
        let leads_to = |path: &'p [u8]| self.precious.iter().find(|one| one.is_at(path));
        match paths.find_map(leads_to) {
            Some(one) => {
                let _ = self.spared.set(());
                Err(self.fatal(one.refusal()))
            }
            None => Ok(()),
        }
    }

    /// Refuses any output that would replace something else than a list: only the work itself shows
    /// which files are worked on.
    pub fn spare_whatever(&self) -> Outcome<()> {
        match self.precious.first() {
            Some(one) => {
                let _ = self.spared.set(());
                Err(self.fatal(one.refusal_unasked()))
            }
            None => Ok(()),
        }
    }

    /// The file that `--metrics` replaces at the end, so that a search can leave it out.
    pub fn metrics_file(&self) -> Option<OwnFile> {
        let file = self.common.metrics.as_deref();
        crate::files::output::replaced(file.filter(|path| of_output(path).is_some()))
    }

    /// Writes the metrics, unless that would replace a file which came there during the run: a step
    /// of the run itself may have put it there.
    fn write_metrics(&self, file: &Path) -> Result<(), Diagnostic> {
        match of_output(file) {
            Some(found) if Some(found) != self.metrics_before => {
                let path = bc_fs::escape(file.as_os_str().as_encoded_bytes());
                let text = format!(
                    "--metrics={path}: a file came there while this command ran, and would be \
                     replaced; it is left, and no metrics are written"
                );
                Err(text.into())
            }
            _ => self.metrics.write(file),
        }
    }

    /// Reports a fatal failure. After a signal that is the end, and what fails then, such as an
    /// input that gives no more, fails because of it.
    pub fn fatal(&self, what: impl Into<Diagnostic>) -> Exit {
        if let Some(signal) = self.signal() {
            return Exit::Signal(signal);
        }
        crate::report::fatal(&format!("bc {}", self.report.applet()), what)
    }

    /// Opens FILE for results, or stdout without one; a failure is fatal.
    pub fn output(&self, target: Option<&Path>) -> Outcome<Output> {
        Output::open(target).map_err(|what| self.fatal(what))
    }

    /// Ends an output whose writing gave `result`; a failure is fatal.
    pub fn finish(&self, output: Output, result: std::io::Result<()>) -> Outcome<()> {
        output.finish(result).map_err(|what| self.fatal(what))
    }

    /// Ends an output as [`finish`](Session::finish) does, and returns the exit code.
    pub fn finished(&self, output: Output, result: std::io::Result<()>) -> Exit {
        match self.finish(output, result) {
            Ok(()) => self.report.exit(),
            Err(exit) => exit,
        }
    }

    /// Returns the signal that asked for the end of this run, if one did.
    pub fn signal(&self) -> Option<i32> {
        signals::behind(&self.cancel)
    }

    /// Reports a defect of ours. If a worker panicked, that was reported when it happened.
    pub fn defect(&self, error: &(dyn std::error::Error + 'static)) -> Exit {
        let job = error.downcast_ref::<bc_walk::job::Error>();
        let was_told = error.is::<bc_pool::WorkerPanic>()
            || job.is_some_and(|error| error.kind() == ErrorKind::Panic);
        match was_told {
            true => Exit::Fatal,
            false => self.fatal(error.to_string()),
        }
    }

    /// Turns the options that choose files into the walk's.
    pub fn walk_options(
        &self,
        args: &WalkArgs,
        metadata: Metadata,
        leave_out: Option<OwnFile>,
    ) -> Outcome<bc_walk::WalkOptions> {
        let globs = |which: &str, patterns: &[OsString]| {
            crate::parse::args::globs(patterns)
                .map_err(|text| self.fatal(format!("{which}: {text}")))
        };
        let (min_size, max_size) = self.sizes(args, 0)?;
        let (newer, older) = self.times(args)?;
        Ok(bc_walk::WalkOptions::default()
            .hidden(if args.no_hidden {
                bc_walk::Hidden::Skip
            } else {
                bc_walk::Hidden::Include
            })
            .symlinks(if args.follow_symlinks {
                bc_walk::Symlinks::Follow
            } else {
                bc_walk::Symlinks::Skip
            })
            .file_systems(if args.one_file_system {
                bc_walk::FileSystems::One
            } else {
                bc_walk::FileSystems::Cross
            })
            .max_depth(args.max_depth)
            .include(globs("--include", &args.include)?)
            .exclude(globs("--exclude", &args.exclude)?)
            .min_size(min_size)
            .max_size(max_size)
            .newer(newer)
            .older(older)
            .ignore_files(if args.ignore_files {
                bc_walk::IgnoreFiles::Honour
            } else {
                bc_walk::IgnoreFiles::Off
            })
            .metadata(metadata)
            .leave_out(
                leave_out
                    .into_iter()
                    .chain(crate::files::output::behind_stdout())
                    .collect(),
            )
            .skipped(self.skipped_detail()))
    }

    /// Returns the detail that a walk keeps of entries that it leaves out.
    pub fn skipped_detail(&self) -> SkippedDetail {
        match self.report.shows(2) {
            true => SkippedDetail::Paths,
            false => SkippedDetail::Counts,
        }
    }

    /// Returns the least and the largest size wanted; `least` is the least where the user names
    /// none. A least size above the largest is refused, instead of finding no files without a word.
    pub fn sizes(&self, args: &WalkArgs, least: u64) -> Outcome<(u64, Option<u64>)> {
        let most = args.max_size.map(|size| size.0);
        let wanted = args.min_size.map_or(least, |size| size.0);
        match (args.min_size, most) {
            (Some(_), Some(most)) if wanted > most => Err(self.fatal(format!(
                "--min-size is {wanted} bytes, --max-size {most}: no file can be both"
            ))),
            (None, Some(most)) if wanted > most => Err(self.fatal(format!(
                "--max-size is {most} bytes, but smaller files than {wanted} take part only with \
                 --min-size={most}"
            ))),
            _ => Ok((wanted, most)),
        }
    }

    /// Returns the times that a file is to be newer and older than. Two between which there is none
    /// are refused.
    pub fn times(&self, args: &WalkArgs) -> Outcome<(Option<i64>, Option<i64>)> {
        let now = now();
        let at = |bound: &Option<TimeBound>| bound.as_ref().map(|bound| bound.at(now));
        match (at(&args.newer), at(&args.older)) {
            (Some(newer), Some(older)) if newer >= older => Err(self.fatal(format!(
                "--newer is {}, --older {}: no file can be both",
                format_rfc3339(newer),
                format_rfc3339(older)
            ))),
            times => Ok(times),
        }
    }

    /// Walks the roots, or takes the paths of `--files-from`; reports every
    /// failure of the walk.
    pub fn listing(
        &self,
        roots: &[OsString],
        args: &WalkArgs,
        options: &bc_walk::WalkOptions,
    ) -> Outcome<Listing> {
        let begun = Instant::now();
        let listing = match &args.files_from {
            Some(_) if !roots.is_empty() => {
                return Err(self.fatal("--files-from names the files; give no PATH beside it"));
            }
            Some(from) => {
                let read = || self.read_list(from, args.null);
                let paths = self.while_reading(from.as_os_str(), read)?;
                self.spare_listed(paths.iter().map(Vec::as_slice))?;
                bc_walk::list_files(&paths, options, self.walk_workers(), &self.cancel)
            }
            None if roots.is_empty() => {
                let called = self.metrics.called();
                return Err(self.fatal(format!(
                    "no PATH given; see --help, or for this directory use: {called} ."
                )));
            }
            // To ask for the CPUs and quotas costs more than to look at a few plain files.
            None => {
                let controls = (&self.cancel).into();
                bc_walk::walk_with(roots, options, || self.walk_workers(), controls)
            }
        };
        let listing = listing.map_err(|panic| self.defect(&panic))?;
        if let Some(bytes) = listing.named_bytes() {
            let _ = self.named_bytes.set(bytes);
        }
        for error in listing.errors() {
            self.report.problem(error);
        }
        let nouns = match options.entries {
            Entries::Files => "files",
            Entries::All => "entries",
        };
        details::walked(&self.report, &listing, nouns, begun.elapsed());
        Ok(listing)
    }

    /// Ends a run of which none of the roots could be reached: what was asked cannot be done, and the
    /// result of an earlier run stays as it is. One of several that is missing is a failure like others.
    pub fn refuse_unreached(&self, listing: &Listing, roots: &[OsString]) -> Outcome<()> {
        if roots.is_empty() || !listing.is_empty() {
            return Ok(());
        }
        let missing = listing.errors().iter().filter(|error| error.op() == "stat");
        let missing: HashSet<&[u8]> = missing.map(bc_walk::Error::path).collect();
        match roots.iter().all(|root| missing.contains(root.as_bytes())) {
            true => Err(Exit::Fatal),
            false => Ok(()),
        }
    }

    fn read_list(&self, from: &std::path::Path, null: bool) -> Outcome<Vec<Vec<u8>>> {
        let end = if null { 0 } else { b'\n' };
        let input = Input::open(from.as_os_str(), &self.cancel).map_err(|what| self.fatal(what))?;
        let input = BufReader::with_capacity(64 << 10, input);
        crate::files::input::pieces(input, end)
            .map_err(|error| self.fatal(Diagnostic::failed(from, "read", &error)))
    }

    /// Returns the threads that the walk may use; it starts on one and takes the others only once
    /// the tree proves large. A number given by the user is the most.
    pub fn walk_workers(&self) -> Workers {
        *self
            .walk_workers
            .get_or_init(|| match self.common.memory_budget {
                // No others join: it does not allow for them.
                Some(_) => self.common.threads.workers().usual().into(),
                None => self.common.threads.workers(),
            })
    }

    /// Returns the number of all threads that there may be.
    pub fn most_workers(&self) -> usize {
        self.walk_workers().usual()
    }

    /// Returns the number of threads that may read and hash `files` files, `width` at once each: as
    /// many as there may be and whose buffers fit in the memory budget beside `state` bytes of the
    /// files' state; unless the files are known to be worth no more than one.
    pub fn workers(&self, files: usize, width: usize, state: u64) -> usize {
        const FEW: usize = 8;
        /// Number of files from which on a thread costs nothing beside the work.
        const MANY: usize = 1000;
        if files >= MANY {
            signals::watch();
        }
        let bytes = match files {
            0 => Some(0),
            1..=FEW => self.named_bytes.get().copied(),
            _ => None,
        };
        let worth = bytes.map(|bytes| Effort::of(files as u64, bytes).worth(2));
        let (workers, why) = if self.common.threads.start() == Start::Together {
            (self.most_workers(), "as --threads says")
        } else if worth == Some(1) {
            (1, "more would not pay")
        } else {
            let affordable = self.common.memory_budget.map_or(u64::MAX, |Size(budget)| {
                budget::workers(budget, width, state)
            });
            let most = self.most_workers();
            match usize::try_from(affordable) {
                Ok(count) if count < most => (count.max(1), "more have no room in --memory-budget"),
                _ => (most, "more of them as it pays"),
            }
        };
        details::workers(&self.report, files, workers, why);
        workers
    }

    /// Returns the limit of bytes a second, if there is one: all that have it share it.
    pub fn rate(&self) -> Option<bc_read::Rate> {
        self.rate.clone()
    }

    /// Returns the options for reading files by `workers` workers that keep `width` files open
    /// each, within the rest of the memory budget.
    pub fn read_options(
        &self,
        workers: usize,
        width: usize,
        state: u64,
    ) -> Outcome<bc_read::ReadOptions> {
        self.fit(workers, width, state)
            .map_err(|text| self.fatal(&text))
    }

    /// Returns the same options; the caller reports the error.
    pub fn fit(
        &self,
        workers: usize,
        width: usize,
        state: u64,
    ) -> Result<bc_read::ReadOptions, String> {
        let mut options = bc_read::ReadOptions::default()
            .backend(self.common.io)
            .rate(self.rate())
            .tables(tables::of_workers());
        match self.common.memory_budget {
            Some(Size(budget)) => budget::fit(&mut options, budget, workers, width, state)
                .map_err(|text| text + self.way_out(state))?,
            // A budget may not allow for it; nor do a few small files, for which the number of CPUs
            // was never determined.
            None if self.walk_workers.get().is_none() => {}
            // Waiting for the rate is no wait that others shorten.
            None if self.rate().is_some() => {}
            None => options.waiting = self.walk_workers().most(),
        }
        Ok(options)
    }

    /// Returns what makes a run with less memory possible, to be added to a refusal.
    fn way_out(&self, state: u64) -> &'static str {
        match (self.report.applet(), self.command) {
            ("hash", "hash") | ("integrity", "manifest") if state > 0 => {
                ", or a part of the tree at a time (--shard)"
            }
            _ => "",
        }
    }

    /// Runs `f`, which reads `path` before anything is changed. If that is a
    /// pipe or a terminal, where a read can wait for ever, a signal ends the
    /// process at once: nothing has a name yet that would have to be removed.
    pub fn while_reading<T>(&self, path: &std::ffi::OsStr, f: impl FnOnce() -> T) -> T {
        let plain = !crate::parse::args::is_dash(path)
            && std::fs::metadata(path).map_or(true, |meta| meta.is_file() || meta.is_dir());
        if plain {
            return f();
        }
        signals::idly(f)
    }

    /// Writes the metrics and turns an interruption into its exit.
    pub fn end(mut self, exit: Exit) -> Exit {
        let mut exit = match self.signal() {
            Some(signal) => exit.worst(Exit::Signal(signal)),
            None => exit,
        };
        details::ended(&self.report, self.started.elapsed());
        let metrics = self.common.metrics.clone();
        if let Some(file) = metrics.filter(|_| self.spared.get().is_none()) {
            let metrics = &mut self.metrics;
            metrics.counts([
                ("exit_code", "Exit code of the run.", exit.code().into()),
                ("errors", "Failures reported.", self.report.failures()),
            ]);
            let seconds = self.started.elapsed().as_secs_f64();
            metrics.set("duration_seconds", "Wall time of the run.", seconds);
            if let Some(peak) = budget::peak_memory() {
                let help = "Most resident memory at any time.";
                metrics.count("peak_memory_bytes", help, peak);
            }
            if let Err(text) = self.write_metrics(&file) {
                exit = exit.worst(self.fatal(&text));
            }
        }
        exit
    }

    /// Returns the seconds since the run began.
    pub fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// Takes the status line off for good, and prints the reason why a run ends without its summary.
fn last_words(text: Option<String>) {
    progress::clear_for_good();
    if let Some(text) = text {
        crate::report::fatal("bc", Diagnostic::from(text));
    }
}

/// Returns the nanoseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns a path below `root`, as it is shown.
pub fn below(root: &std::ffi::OsStr, path: &[u8]) -> Vec<u8> {
    let mut full = root.as_encoded_bytes().to_vec();
    if path != b"." {
        if full.last() != Some(&b'/') {
            full.push(b'/');
        }
        full.extend_from_slice(path);
    }
    full
}
