//! `bc hash`: digests of trees, and what can be done with them afterwards.

mod args;
mod check;
mod diff;
mod guess;
mod manifest;
mod output;
mod trial;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;

use bc_digest::{CpuFeatures, Digest};
use bc_hash::{HashOptions, HashProgress};
use bc_walk::Metadata;
use clap::{Args as _, CommandFactory, FromArgMatches};

use crate::budget::Kept;
use crate::exit::Exit;
use crate::output::{Output, Written};
use crate::progress::Display;
use crate::run::{Outcome, Session};
use args::{Format, HashArgs, HashCli, HashCommand};
use output::{Hashed, Layout, Stdin};

/// The command tree of the applet.
pub fn command() -> clap::Command {
    HashCli::command()
}

/// One subcommand alone.
pub fn only(name: &str) -> Option<clap::Command> {
    let command = clap::Command::new(name.to_owned());
    Some(match name {
        "hash" => args::HashArgs::augment_args(command),
        "check" => args::CheckArgs::augment_args(command),
        "diff" => args::DiffArgs::augment_args(command),
        _ => return None,
    })
}

/// Runs a parsed command line.
pub fn run(mut matches: clap::ArgMatches) -> Exit {
    let cli = match HashCli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => return crate::config::usage(error),
    };
    let exit = match &cli.command {
        HashCommand::Hash(args) => hash(args),
        HashCommand::Check(args) => check::run(args),
        HashCommand::Diff(args) => diff::run(args),
    };
    exit.unwrap_or_else(|fatal| fatal)
}

fn hash(args: &HashArgs) -> Outcome<Exit> {
    let mut session = Session::start(
        "hash",
        "hash",
        &args.common,
        &args.walk.inputs(),
        args.output.as_deref(),
    )?;
    let layout = layout(args, &session)?;
    let output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    let output = match layout {
        Layout::Json | Layout::Jsonl => output.json(),
        Layout::GnuZero | Layout::BsdZero => output.records(),
        Layout::Gnu | Layout::Bsd | Layout::Csv => output,
    };
    let leave_out = crate::output::replaced(args.output.as_deref());
    let mut options = session.walk_options(&args.walk, Metadata::None, leave_out)?;
    options.leave_out.extend(output.own_file());
    options.spellings = bc_walk::Spellings::Each;

    let (dashes, roots): (Vec<OsString>, Vec<OsString>) = args
        .paths
        .iter()
        .cloned()
        .partition(|path| crate::args::is_dash(path));
    let stdin = match dashes.is_empty() {
        true => None,
        false => Some(crate::input::stdin().map_err(|text| session.fatal(&text))?),
    };
    let progress = std::sync::Arc::new(HashProgress::default());
    let display = Display::start(&args.common, "walk", crate::progress::reading(&progress));
    let listing = if roots.is_empty() && !dashes.is_empty() && args.walk.files_from.is_none() {
        None
    } else {
        Some(session.listing(&roots, &args.walk, &options)?)
    };
    let files = listing.as_ref().map_or(0, |l| l.len());
    let bytes = listing
        .as_ref()
        .filter(|_| display.is_shown())
        .and_then(bc_hash::bytes_if_few);
    display.phase("hash", files as u64, bytes.unwrap_or(0));

    let width = bc_digest::Batch::new(&args.algorithms, CpuFeatures::detect()).width();
    let state = listing
        .as_ref()
        .map_or(0, |l| bc_hash::memory(l, &args.algorithms));
    let state = Kept::Arrays(state);
    let workers = session.workers(files, width, state);
    let mut read = session.read_options(workers, width, state)?;
    if args.allow_changed {
        read.changed = bc_read::Changed::Allow;
    }
    let options = HashOptions {
        algorithms: args.algorithms.clone(),
        cpu: CpuFeatures::detect(),
        read,
        workers,
        start: session.common.threads.start(),
    };
    let hashes = listing
        .as_ref()
        .map(|listing| bc_hash::hash_listing(listing, &options, &session.cancel, &progress))
        .transpose()
        .map_err(|panic| session.defect(&panic))?;
    let stdin = stdin.map(|stdin| hash_stdin(stdin, args, &session, &progress));
    display.stop();
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }

    if let Some(hashes) = &hashes {
        for (_, error) in hashes.errors() {
            session.report.failure(error);
        }
        let totals = hashes.totals();
        session.report.note(
            1,
            &format!(
                "hash: {} files, {} bytes, {} threads, reader {}, {:.3} s in all",
                totals.read.files,
                totals.read.bytes,
                totals.workers,
                totals.read.backend.name(),
                session.elapsed(),
            ),
        );
        session
            .metrics
            .set("files", "Files hashed.", totals.read.files as f64);
        session
            .metrics
            .set("read_bytes", "Bytes read.", totals.read.bytes as f64);
        session
            .metrics
            .set("threads", "Worker threads used.", totals.workers as f64);
        session.metrics.label("reader", totals.read.backend.name());
    }
    let hashed = Hashed {
        algorithms: &args.algorithms,
        listing: listing.as_ref(),
        hashes: hashes.as_ref(),
        stdin,
        relative: args.relative,
        elapsed: session.elapsed(),
        roots: &args.paths,
        one_line_names: output.is_terminal(),
    };
    let mut output = output;
    let result = output::write(&mut output, layout, &hashed);
    let exit = match output.finish(result) {
        Ok(Written::Whole | Written::ReaderLeft) => session.report.exit(),
        Err(text) => session.fatal(&text),
    };
    Ok(session.end(exit))
}

fn layout(args: &HashArgs, session: &Session) -> Outcome<Layout> {
    let several = args.algorithms.len() > 1;
    for (i, algorithm) in args.algorithms.iter().enumerate() {
        if args.algorithms[..i].contains(algorithm) {
            return Err(session.fatal(&format!("--type: '{algorithm}' is named twice")));
        }
    }
    let layout = match args.format {
        Some(Format::Gnu) if several => {
            return Err(session.fatal(
                "--format=gnu holds one algorithm; use bsd, json, jsonl or csv for several",
            ));
        }
        Some(Format::Bsd) => Layout::Bsd,
        None if several => Layout::Bsd,
        None | Some(Format::Gnu) => Layout::Gnu,
        Some(Format::Json) => Layout::Json,
        Some(Format::Jsonl) => Layout::Jsonl,
        Some(Format::Csv) => Layout::Csv,
    };
    match (layout, args.zero) {
        (Layout::Gnu, true) => Ok(Layout::GnuZero),
        (Layout::Bsd, true) => Ok(Layout::BsdZero),
        (_, true) => Err(session.fatal("-z goes with the gnu and bsd formats only")),
        (layout, false) => Ok(layout),
    }
}

/// Digests of standard input; none after a reported failure.
fn hash_stdin(
    mut input: File,
    args: &HashArgs,
    session: &Session,
    progress: &HashProgress,
) -> Stdin {
    let mut hashers: Vec<_> = args
        .algorithms
        .iter()
        .map(|a| bc_digest::Hasher::new(*a))
        .collect();
    let mut buffer = vec![0; 128 << 10];
    let mut size = 0;
    loop {
        // Waits in short steps: a signal does not interrupt a read that restarts.
        if session.cancel.is_cancelled() {
            return Stdin {
                size,
                digests: Vec::new(),
            };
        }
        if !readable(&input, std::time::Duration::from_millis(100)) {
            continue;
        }
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                size += n as u64;
                progress
                    .bytes
                    .fetch_add(n as u64, std::sync::atomic::Ordering::Relaxed);
                for hasher in &mut hashers {
                    hasher.update(&buffer[..n]);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let errno =
                    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
                session
                    .report
                    .failure(&bc_walk::Error::new(b"-".to_vec(), "read", errno));
                return Stdin {
                    size,
                    digests: Vec::new(),
                };
            }
        }
    }
    let digests: Vec<Digest> = hashers.iter().map(|h| h.finalize()).collect();
    Stdin { size, digests }
}

fn readable(input: &File, wait: std::time::Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut fds = [PollFd::new(input, PollFlags::IN)];
    let timeout = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: wait.as_nanos() as i64,
    };
    // Errors and hang-ups are for read() to report.
    !matches!(
        poll(&mut fds, Some(&timeout)),
        Ok(0) | Err(rustix::io::Errno::INTR)
    )
}
