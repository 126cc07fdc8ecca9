//! Files verified against a checksum file, as a job.

use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bc_digest::Algorithm;
use bc_fs::PathError;
use bc_fs::input::Interruptible;
use bc_manifest::{Item, Options, Reader};
use bc_walk::job::{Error, ErrorKind, Guarded, Means, missing, path_of, unless_cancelled};

use crate::check::{Verdict, check_lines};
use crate::in_order::WINDOW;
use crate::lines::{Hint, Line, resolve};
use crate::trial::Trial;
use crate::{ExpectedDigests, FileDigests, HashOptions, HashProgress};

/// Verifies files against a checksum file: the output of `sha256sum`, `md5sum`, `b3sum`, `xxhsum`
/// and the like, with tags or without, or JSON lines and CSV of `bc hash`. Its algorithm is
/// determined by its lines, by [`algorithm`](ChecksumFile::algorithm), by its name, or by trying.
///
/// Relative paths count from the checksum file's directory.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # std::fs::write(dir.path().join("abc"), "abc")?;
/// # let sums = dir.path().join("MD5SUMS");
/// use bc_hash::ChecksumFile;
/// use bc_walk::job::Means;
///
/// std::fs::write(&sums, "900150983cd24fb0d6963f7d28e17f72  abc\n")?;
/// let checked = ChecksumFile::new(&sums).run(&Means::new())?;
/// for file in checked.failed() {
///     println!("{}: {:?}", file.path.display(), file.verdict);
/// }
/// assert!(checked.is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is done before `run`"]
pub struct ChecksumFile {
    file: PathBuf,
    base: Option<PathBuf>,
    algorithm: Option<Algorithm>,
}

impl ChecksumFile {
    /// Names the file.
    pub fn new(file: impl AsRef<Path>) -> ChecksumFile {
        ChecksumFile {
            file: file.as_ref().to_owned(),
            base: None,
            algorithm: None,
        }
    }

    /// Sets the algorithm of lines without a tag.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = Some(algorithm);
        self
    }

    /// Takes relative paths from this directory.
    pub fn base(mut self, directory: impl Into<PathBuf>) -> Self {
        self.base = Some(directory.into());
        self
    }

    /// Verifies the files with these means. A FIFO is read, too: its writer, and what it writes, are
    /// waited for until the job is cancelled.
    ///
    /// # Errors
    /// If the checksum file cannot be read, or has not one line that is a checksum; if it was
    /// cancelled; if a worker panicked.
    pub fn run(&self, means: &Means<'_>) -> Result<Checked, Error> {
        let mut files = Vec::new();
        let checked = self.checked(means, u32::MAX, &mut |file| files.push(file))?;
        let cancelled = checked.cancelled;
        unless_cancelled(Checked { files, ..checked }, cancelled)
    }

    /// Verifies as [`run`](ChecksumFile::run) does, and calls `each` with one file after the other, in
    /// order of the lines, once some thousands of them are read; the list in the result is empty. A
    /// file that is named by lines far apart is read again. It is called by the caller's own thread.
    /// After a panic in it, it is not called again; the job is done to its end, and then the panic goes
    /// on out of this function.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::write(dir.path().join("abc"), "abc")?;
    /// # let sums = dir.path().join("MD5SUMS");
    /// use bc_hash::{ChecksumFile, FileVerdict};
    /// use bc_walk::job::Means;
    ///
    /// std::fs::write(&sums, "900150983cd24fb0d6963f7d28e17f72  abc\n")?;
    /// let mut wrong = Vec::new();
    /// let checked = ChecksumFile::new(&sums).run_each(&Means::new(), |file| {
    ///     if file.verdict != FileVerdict::Ok {
    ///         wrong.push(file.path);
    ///     }
    /// })?;
    /// assert!(checked.is_complete() && wrong.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of `run`. After a cancellation the files are missing that were not passed on.
    pub fn run_each(
        &self,
        means: &Means<'_>,
        each: impl FnMut(CheckedFile),
    ) -> Result<Checked, Error> {
        let mut each = Guarded::new(each);
        let checked = self.checked(means, WINDOW, &mut |file| each.call(file));
        each.end();
        let checked = checked?;
        let cancelled = checked.cancelled;
        unless_cancelled(checked, cancelled)
    }

    /// Verifies `piece` lines at a time; a result of what was cancelled says so.
    fn checked(
        &self,
        means: &Means<'_>,
        piece: u32,
        each: &mut dyn FnMut(CheckedFile),
    ) -> Result<Checked, Error> {
        let cancel = means.cancelled_by();
        let (progress, total) = (HashProgress::default(), AtomicU64::new(0));
        means.run(
            || progress.with_total(total.load(Relaxed)),
            || {
                let mut read = match self.read(|| cancel.is_cancelled()) {
                    Err(_) if cancel.is_cancelled() => Read::default(),
                    read => read?,
                };
                let lines = read.wanted.len();
                total.store(lines as u64, Relaxed);
                // Which algorithms are asked for is in the lines.
                let options = HashOptions::new(vec![Algorithm::Blake3]).with(means);
                let verify = |progress: &HashProgress, list: &ExpectedDigests, lines: &[u32]| {
                    let (verdicts, _) = check_lines(list, lines, &options, cancel, progress)?;
                    Ok::<_, Error>(verdicts)
                };
                let trial = Trial {
                    threads: options.workers,
                    cancel,
                    verify: &|list, lines| verify(&progress, list, lines),
                    attempt: &|list, lines| verify(&HashProgress::default(), list, lines),
                    found: &|_, _| (),
                };
                let mut done = 0;
                trial.run_each(&mut read.wanted, &read.guessed, piece, |path, verdict| {
                    if !is_not_done(&verdict) {
                        done += 1;
                        each(CheckedFile::new(path, verdict));
                    }
                })?;
                Ok(Checked {
                    files: Vec::new(),
                    errors: read.errors,
                    improper_lines: read.improper,
                    is_cut_short: read.is_cut_short,
                    cancelled: cancel.is_cancelled() && (done < lines || lines == 0),
                })
            },
        )
    }

    fn read(&self, is_over: impl Fn() -> bool + Copy) -> Result<Read, Error> {
        let failed = |error: bc_manifest::Error| match error.io_error() {
            Some(error) => Error::io(&self.file, "read", error),
            None => Error::at(ErrorKind::Manifest, &self.file, error.to_string()),
        };
        let input = bc_fs::input::open(&self.file, is_over)
            .map_err(|e| Error::io(&self.file, "open", &e))?;
        let input = BufReader::with_capacity(256 << 10, Interruptible::new(input, is_over));
        let mut reader = Reader::new(input, Options::default()).map_err(failed)?;
        let hint = Hint::new(self.algorithm, &self.file);
        let beside = self.file.parent().unwrap_or(Path::new(""));
        let base = self.base.as_deref().unwrap_or(beside);
        let mut read = Read::default();
        // True between the header and the summary of a list that has both.
        let mut is_open = false;
        while let Some(item) = reader.read().map_err(failed)? {
            match item {
                Item::Record(record) => read.add(resolve(record, hint), base),
                Item::Malformed { .. } => read.improper += 1,
                Item::Header(_) => read.is_cut_short |= std::mem::replace(&mut is_open, true),
                Item::Summary(_) => is_open = false,
                _ => {}
            }
        }
        read.is_cut_short |= is_open;
        if read.wanted.is_empty() && read.errors.is_empty() {
            let text = "holds no line that is a checksum";
            return Err(Error::at(ErrorKind::Manifest, &self.file, text));
        }
        Ok(read)
    }
}

/// Contents of a checksum file.
#[derive(Default)]
struct Read {
    wanted: ExpectedDigests,
    /// Indices of lines whose digest length alone determines the algorithm.
    guessed: Vec<u32>,
    errors: Vec<PathError>,
    improper: u64,
    is_cut_short: bool,
}

impl Read {
    fn add(&mut self, line: Line, base: &Path) {
        let mut want = |wanted: FileDigests| {
            let path = base.join(path_of(&wanted.path));
            self.wanted
                .push(path.as_os_str().as_bytes(), &wanted.digests);
        };
        match line {
            Line::Wanted(wanted) => want(wanted),
            Line::Guessed(wanted) => {
                want(wanted);
                self.guessed.push(self.wanted.len() as u32 - 1);
            }
            Line::Unread(path, failure) => {
                let path = base.join(path_of(&path));
                let (operation, reason) = (&*failure.op, &*failure.message);
                let error = PathError::with_reason(path, operation, failure.errno, reason);
                self.errors.push(error);
            }
            Line::Improper(_) => self.improper += 1,
        }
    }
}

/// Result of verifying the files of a [`ChecksumFile`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Checked {
    /// The files, in order of the lines. Empty if they went to a callback.
    pub files: Vec<CheckedFile>,
    /// Files that could not be read when the list was made, as it says.
    pub errors: Vec<PathError>,
    /// Lines that are no checksums.
    pub improper_lines: u64,
    /// True if the end of the list is missing, in formats whose lists have one.
    pub is_cut_short: bool,
    /// True if the job was cancelled before all was done: only in the result
    /// [inside an error](Error::partial). Files that were not reached are missing then.
    pub cancelled: bool,
}

impl Checked {
    /// Returns true if every line is a checksum and every file matches it.
    pub fn is_ok(&self) -> bool {
        self.is_complete() && self.failed().next().is_none()
    }

    /// Returns the files that have another checksum or could not be read.
    pub fn failed(&self) -> impl Iterator<Item = &CheckedFile> {
        let files = self.files.iter();
        files.filter(|file| file.verdict != FileVerdict::Ok)
    }

    /// Returns true if every line was understood and its file looked at. A file that could not be
    /// read has a verdict that says so.
    pub fn is_complete(&self) -> bool {
        let is_whole = self.improper_lines == 0 && !self.is_cut_short;
        is_whole && self.errors.is_empty() && !self.cancelled
    }

    /// Returns the result if nothing is missing.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](ErrorKind::Incomplete), with the first thing that is
    /// missing.
    pub fn complete(self) -> Result<Checked, Error> {
        if let Some(error) = missing(&self.errors, self.cancelled) {
            return Err(error);
        }
        let text = match (self.is_cut_short, self.improper_lines) {
            (false, 0) => return Ok(self),
            (true, _) => "the list is cut short".to_owned(),
            (_, count) => format!("{count} lines are no checksums"),
        };
        Err(Error::incomplete(text, None))
    }
}

/// A file with its verdict.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CheckedFile {
    /// The path that was looked at.
    pub path: PathBuf,
    /// Result of the comparison with its checksum.
    pub verdict: FileVerdict,
}

impl CheckedFile {
    fn new(path: &[u8], verdict: Verdict) -> CheckedFile {
        CheckedFile {
            path: path_of(path),
            verdict: match verdict {
                Verdict::Ok => FileVerdict::Ok,
                Verdict::Failed(error) => FileVerdict::Unread(PathError::from(&*error)),
                Verdict::Mismatch | Verdict::NotDone => FileVerdict::Mismatch,
            },
        }
    }
}

fn is_not_done(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::NotDone)
}

/// Result of comparing a file with its checksum.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FileVerdict {
    /// The file has its checksum.
    Ok,
    /// The file has another checksum.
    Mismatch,
    /// The file could not be read.
    Unread(PathError),
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use bc_pool::Cancel;
    use bc_testkit::TestTree;

    use super::*;

    /// A list of more lines than are verified at a time, of three files.
    fn long_list() -> TestTree {
        let t = TestTree::new();
        t.write("a", "a").write("b", "b");
        let line = |name: &str, text: &str| {
            let digest = bc_digest::hash(Algorithm::Sha256, text.as_bytes());
            format!("{digest}  {name}\n")
        };
        let lines = line("a", "a") + &line("b", "other") + &line("gone", "");
        t.write("SUMS", lines.repeat(WINDOW as usize / 3 + 10));
        t
    }

    #[test]
    fn a_callback_hears_what_the_list_has() {
        let t = long_list();
        let (sums, means) = (ChecksumFile::new(t.join("SUMS")), Means::new().threads(2));
        let all = sums.run(&means).unwrap();
        assert!(all.files.len() > WINDOW as usize);
        let mut heard = Vec::new();
        let rest = sums.run_each(&means, |file| heard.push(file)).unwrap();
        assert!(rest.files.is_empty() && rest.is_complete());
        assert!(heard == all.files);
        let mut calls = 0;
        let run = AssertUnwindSafe(|| {
            sums.run_each(&means, |_| {
                calls += 1;
                panic!("of a test");
            })
        });
        let panic = catch_unwind(run).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "of a test");
        assert_eq!(calls, 1);
    }

    /// The lines that were read are passed on, those behind them are not begun.
    #[test]
    fn what_was_heard_before_a_cancellation_stays() {
        let t = long_list();
        let cancel = Cancel::new();
        let means = Means::new().threads(1).cancel(&cancel);
        let mut heard = 0;
        let run = ChecksumFile::new(t.join("SUMS")).run_each(&means, |_| {
            heard += 1;
            cancel.stop();
        });
        let error = run.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.partial::<Checked>().unwrap().cancelled);
        assert_eq!(heard, WINDOW);
    }
}
