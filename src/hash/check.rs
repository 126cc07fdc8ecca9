//! `bc hash check`: GNU's `-c`, in parallel, for every format we read.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

use bc_digest::{Algorithm, Batch, CpuFeatures};
use bc_hash::check::{Verdict, Wanted};
use bc_hash::{HashOptions, HashProgress};
use bc_walk::Metadata;

use crate::args::WalkArgs;
use crate::budget::Kept;
use crate::exit::Exit;
use crate::output::{Output, Written};
use crate::progress::Display;
use crate::run::{Outcome, Session};

use super::args::CheckArgs;
use super::guess::{self, Hint};
use super::manifest::{self, Line};
use super::trial;

/// What one manifest held.
struct Loaded {
    wanted: Vec<Wanted>,
    /// Lines of which nothing names the algorithm.
    guessed: Vec<usize>,
    improper: u64,
    /// Files without a digest, or an end that is missing: there is more than can be verified.
    incomplete: bool,
}

/// Counts of one manifest's verdicts.
#[derive(Default)]
struct Counts {
    matched: u64,
    mismatched: u64,
    unreadable: u64,
}

pub fn run(args: &CheckArgs) -> Outcome<Exit> {
    let read: Vec<_> = args.manifests.iter().map(OsString::as_os_str).collect();
    let mut session = Session::start("hash", "check", &args.common, &read, None)?;
    let progress = Arc::new(HashProgress::default());
    let display = Display::start(&args.common, "check", crate::progress::reading(&progress));
    let mut output = match args.status {
        true => Output::nowhere(),
        false => Output::open(None).map_err(|text| session.fatal(&text))?,
    };
    let mut exit = Exit::Done;
    let mut listed = HashSet::new();
    let mut result = Ok(());
    for name in &args.manifests {
        if session.cancel.is_cancelled() || result.is_err() {
            break;
        }
        match one(
            args,
            &session,
            name,
            &progress,
            &display,
            &mut output,
            &mut listed,
        ) {
            Ok(outcome) => {
                exit = exit.worst(outcome.0);
                result = outcome.1;
            }
            Err(fatal) => exit = exit.worst(fatal),
        }
    }
    if args.unlisted && !session.cancel.is_cancelled() && result.is_ok() {
        let found = unlisted(args, &session, &listed)?;
        for path in &found {
            if result.is_ok() && !args.status {
                result = verdict_line(&mut output, path, "UNLISTED");
            }
        }
        if !found.is_empty() {
            exit = exit.worst(Exit::Differs);
            warn(
                args,
                &session,
                found.len() as u64,
                ("file is", "files are"),
                "not listed",
            );
        }
    }
    display.stop();
    exit = match output.finish(result) {
        Ok(Written::Whole | Written::ReaderLeft) => exit,
        Err(text) => exit.worst(session.fatal(&text)),
    };
    use std::sync::atomic::Ordering::Relaxed;
    session.metrics.set(
        "files",
        "Files verified.",
        progress.files.load(Relaxed) as f64,
    );
    session.metrics.set(
        "read_bytes",
        "Bytes read.",
        progress.bytes.load(Relaxed) as f64,
    );
    Ok(session.end(exit))
}

/// Verifies the files of one manifest.
fn one(
    args: &CheckArgs,
    session: &Session,
    name: &OsString,
    progress: &HashProgress,
    display: &Display,
    output: &mut Output,
    listed: &mut HashSet<Vec<u8>>,
) -> Outcome<(Exit, std::io::Result<()>)> {
    let shown = bc_fs::escape(name.as_bytes()).into_owned();
    let mut loaded = session.while_reading(name, || load(args, session, name))?;
    if loaded.wanted.is_empty() {
        // GNU says so even with --status: nothing was verified at all.
        session.report.problem(&format!(
            "{shown}: no properly formatted checksum lines found"
        ));
        return Ok((Exit::Differs, Ok(())));
    }
    if args.unlisted {
        listed.extend(loaded.wanted.iter().map(|w| normal(&w.path).to_vec()));
    }
    // Before a file is read, what does not fit is refused.
    reading(session, &loaded.wanted)?;
    trial::settle(session, &shown, &mut loaded.wanted, &loaded.guessed)?;
    display.phase("check", loaded.wanted.len() as u64, 0);
    let (workers, read) = reading(session, &loaded.wanted)?;
    let options = HashOptions {
        algorithms: Vec::new(),
        cpu: CpuFeatures::detect(),
        read,
        workers,
        start: session.common.threads.start(),
    };
    let (verdicts, totals) =
        bc_hash::check::check(&loaded.wanted, &options, &session.cancel, progress)
            .map_err(|panic| session.defect(&panic))?;
    session.report.note(
        1,
        &format!(
            "{shown}: {} lines, {} files, {} bytes, {} threads",
            loaded.wanted.len(),
            totals.read.files,
            totals.read.bytes,
            totals.workers,
        ),
    );
    if session.cancel.is_cancelled() {
        return Ok((Exit::Done, Ok(())));
    }
    let mut counts = Counts::default();
    let result = verdicts_out(
        args,
        session,
        output,
        &loaded.wanted,
        &verdicts,
        &mut counts,
    );
    // The lines before their totals.
    let result = result.and_then(|()| output.flush());
    Ok((summary(args, session, &shown, &loaded, &counts), result))
}

/// By how many workers the files are read, and how, within the memory budget.
fn reading(session: &Session, wanted: &[Wanted]) -> Outcome<(usize, bc_read::ReadOptions)> {
    let algorithms: HashSet<_> = wanted
        .iter()
        .flat_map(|w| w.expected.iter().map(|e| e.0))
        .collect();
    let width = algorithms
        .iter()
        .map(|a| Batch::new(&[*a], CpuFeatures::detect()).width())
        .max()
        .unwrap_or(1);
    let memory = Kept::Pieces(bc_hash::check::memory(wanted));
    let workers = session.workers(wanted.len(), width, memory);
    Ok((workers, session.read_options(workers, width, memory)?))
}

fn load(args: &CheckArgs, session: &Session, name: &OsStr) -> Outcome<Loaded> {
    let shown = bc_fs::escape(name.as_bytes()).into_owned();
    let hint = Hint::new(args.algorithm, Path::new(name));
    let mut loaded = Loaded {
        wanted: Vec::new(),
        guessed: Vec::new(),
        improper: 0,
        incomplete: false,
    };
    let lines =
        manifest::open(name, args.zero, &session.cancel).map_err(|text| fail(session, &text))?;
    for line in lines {
        let line = line.map_err(|text| fail(session, &format!("{shown}: {text}")))?;
        let line = manifest::resolve(line, hint);
        if matches!(line, Line::Guessed(_)) {
            loaded.guessed.push(loaded.wanted.len());
        }
        match line {
            Line::Wanted(mut wanted) | Line::Guessed(mut wanted) => {
                if let Some(base) = &args.base {
                    wanted.path = base
                        .join(OsStr::from_bytes(&wanted.path))
                        .into_os_string()
                        .into_vec();
                }
                loaded.wanted.push(wanted);
            }
            Line::Nothing => {}
            Line::Unread(path, reason) => {
                loaded.incomplete = true;
                session
                    .report
                    .problem(&manifest::unread(&shown, &path, &reason));
            }
            Line::CutShort => {
                loaded.incomplete = true;
                session.report.problem(&manifest::cut_short(&shown));
            }
            Line::Improper(number) => {
                loaded.improper += 1;
                if args.warn {
                    session.report.warning(&format!(
                        "{shown}: {number}: improperly formatted checksum line"
                    ));
                }
            }
        }
    }
    Ok(loaded)
}

/// An unreadable manifest is unusable input, but the other manifests are still done.
fn fail(session: &Session, text: &str) -> Exit {
    if session.cancel.is_cancelled() {
        return session.fatal(text);
    }
    session.report.problem(text);
    Exit::Fatal
}

fn verdicts_out(
    args: &CheckArgs,
    session: &Session,
    output: &mut Output,
    wanted: &[Wanted],
    verdicts: &[Verdict],
    counts: &mut Counts,
) -> std::io::Result<()> {
    for (wanted, verdict) in wanted.iter().zip(verdicts) {
        let word = match verdict {
            Verdict::Ok => {
                counts.matched += 1;
                if args.common.quiet {
                    continue;
                }
                "OK"
            }
            Verdict::Mismatch => {
                counts.mismatched += 1;
                "FAILED"
            }
            Verdict::Failed(error) => {
                if args.ignore_missing
                    && error.errno() == Some(rustix::io::Errno::NOENT.raw_os_error())
                {
                    continue;
                }
                counts.unreadable += 1;
                session.report.failure(error);
                "FAILED open or read"
            }
            Verdict::NotDone => continue,
        };
        if !args.status {
            verdict_line(output, &wanted.path, word)?;
        }
    }
    Ok(())
}

/// `path: OK`, escaped as GNU does: a leading backslash says that the name is.
fn verdict_line(output: &mut Output, path: &[u8], word: &str) -> std::io::Result<()> {
    let mut line = Vec::with_capacity(path.len() + 32);
    manifest::push_name(&mut line, path);
    line.extend_from_slice(format!(": {word}\n").as_bytes());
    output.write_all(&line)
}

/// The closing warnings of GNU's tools and the exit code they imply.
fn summary(
    args: &CheckArgs,
    session: &Session,
    shown: &str,
    loaded: &Loaded,
    counts: &Counts,
) -> Exit {
    warn(
        args,
        session,
        loaded.improper,
        ("line is", "lines are"),
        "improperly formatted",
    );
    warn(
        args,
        session,
        counts.unreadable,
        ("listed file", "listed files"),
        "could not be read",
    );
    warn(
        args,
        session,
        counts.mismatched,
        ("computed checksum", "computed checksums"),
        "did NOT match",
    );
    if counts.matched == 0 && counts.mismatched > 0 && !args.status {
        suggest_algorithm(session, loaded);
    }
    let nothing = args.ignore_missing && counts.matched == 0 && counts.mismatched == 0;
    if nothing {
        session
            .report
            .problem(&format!("{shown}: no file was verified"));
    }
    let improper = args.strict && loaded.improper > 0;
    if nothing || improper || loaded.incomplete || counts.unreadable > 0 || counts.mismatched > 0 {
        Exit::Differs
    } else {
        Exit::Done
    }
}

/// Nothing matched: perhaps the digests are of another kind with the same length.
fn suggest_algorithm(session: &Session, loaded: &Loaded) {
    let tried: Option<Algorithm> = loaded.wanted.first().map(|w| w.expected[0].0);
    let others: Vec<String> = tried
        .map(guess::same_length)
        .unwrap_or_default()
        .iter()
        .map(|a| a.to_string())
        .collect();
    if let (Some(tried), false) = (tried, others.is_empty()) {
        session.report.warning(&format!(
            "nothing matched as {tried}; digests of that length are also made by {}: try --type",
            others.join(", ")
        ));
    }
}

fn warn(args: &CheckArgs, session: &Session, count: u64, (one, many): (&str, &str), what: &str) {
    if count > 0 && !args.status {
        let noun = if count == 1 { one } else { many };
        session
            .report
            .always(&format!("WARNING: {count} {noun} {what}"));
    }
}

/// Files below the base, or below the directories of the listed files, that no manifest lists.
fn unlisted(
    args: &CheckArgs,
    session: &Session,
    listed: &HashSet<Vec<u8>>,
) -> Outcome<Vec<Vec<u8>>> {
    let roots = match &args.base {
        Some(base) => vec![base.clone().into_os_string()],
        None => top_directories(listed),
    };
    let mut options = session.walk_options(&WalkArgs::default(), Metadata::None, None)?;
    let manifests = args.manifests.iter();
    options
        .leave_out
        .extend(manifests.filter_map(|name| crate::output::replaced(Some(Path::new(name)))));
    let listing = session.listing(&roots, &WalkArgs::default(), &options)?;
    Ok(listing
        .ids()
        .map(|id| listing.path(id))
        .filter(|path| !listed.contains(normal(path)))
        .collect())
}

/// The directories of `paths`, without those below another one.
fn top_directories(paths: &HashSet<Vec<u8>>) -> Vec<OsString> {
    let parent = |path: &Vec<u8>| match path.iter().rposition(|b| *b == b'/') {
        Some(0) => b"/".to_vec(),
        Some(at) => path[..at].to_vec(),
        None => b".".to_vec(),
    };
    let mut all: Vec<Vec<u8>> = paths.iter().map(parent).collect();
    all.sort();
    all.dedup();
    let below = |inner: &[u8], outer: &[u8]| {
        inner != outer
            && match outer {
                b"." => !inner.starts_with(b"/"),
                b"/" => inner.starts_with(b"/"),
                _ => inner.starts_with(outer) && inner.get(outer.len()) == Some(&b'/'),
            }
    };
    all.iter()
        .filter(|inner| !all.iter().any(|outer| below(inner, outer)))
        .map(|path| OsString::from_vec(path.clone()))
        .collect()
}

/// `./a//b` and `a/b` are one name.
fn normal(path: &[u8]) -> &[u8] {
    let mut path = path;
    while let Some(rest) = path.strip_prefix(b"./") {
        path = rest;
        while let Some(rest) = path.strip_prefix(b"/") {
            path = rest;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_to_search_for_unlisted_files() {
        let top = |paths: &[&str]| {
            let set = paths.iter().map(|p| p.as_bytes().to_vec()).collect();
            let found: Vec<String> = top_directories(&set)
                .iter()
                .map(|d| d.to_string_lossy().into_owned())
                .collect();
            found.join(" ")
        };
        assert_eq!(top(&["a/b/c", "a/d", "e/f", "a-b/x"]), "a a-b e");
        assert_eq!(top(&["x", "a/b"]), ".");
        assert_eq!(top(&["/x", "/a/b"]), "/");
        assert_eq!(top(&["../x", "/a/b"]), ".. /a");
    }

    #[test]
    fn same_name_written_differently() {
        assert_eq!(normal(b"./a/b"), b"a/b");
        assert_eq!(normal(b".//./a"), b"a");
        assert_eq!(normal(b".hidden"), b".hidden");
        assert_eq!(normal(b"../a"), b"../a");
    }
}
