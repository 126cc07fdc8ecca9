//! `bc hash hash`: digests of files, trees and standard input.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use bc_digest::{Algorithm, Plain};
use bc_find::dirs::DirDigests;
use bc_fs::quote::{shell_path, shell_word};
use bc_hash::{HashOptions, HashProgress, Hashes};
use bc_manifest::End;
use bc_walk::{Entries, EntryId, FileKind, Listing, Metadata, Repeats, Spellings};

use super::args::{HashArgs, HashFormat};
use super::output::{self, Hashed};
use super::plan::HashPlan;
use super::stdin;
use crate::files::lists::ListKind;
use crate::files::output::{Output, is_readable_again};
use crate::files::overlap::Given;
use crate::report::{Exit, details};
use crate::session::progress::{Display, counted};
use crate::session::resume::{self, Recorded};
use crate::session::{Outcome, Session};

pub fn run(args: &HashArgs) -> Outcome<Exit> {
    let mut read = args.walk.inputs();
    // Among many paths the file that is written is left out; alone it was meant to be read.
    if let [only] = &*args.paths {
        read.push(only);
    }
    let given = Given::inputs(read)
        .operands(&args.paths)
        .walking(&args.walk)
        .writes(ListKind::Digests);
    let output = args.output.as_deref();
    let mut session = Session::start("hash", "hash", &args.common, &given, output)?;
    let plan = HashPlan::new(args).map_err(|text| session.fatal(&text))?;
    let mut output = open(args, &plan, &session)?;
    let recorded = record(args, &plan, &output, &session)?;
    let walk = walk_options(args, &output, recorded.as_ref(), &session)?;
    let stdin = plan.stdin.then(crate::files::input::stdin).transpose();
    let stdin = stdin.map_err(|text| session.fatal(&text))?;
    let progress = Arc::new(HashProgress::default());
    let display = Display::start(
        &args.common,
        "walk",
        crate::session::progress::reading(&progress),
    );
    let listing = match plan.is_stdin_alone() && args.walk.files_from.is_none() {
        true => None,
        false => Some(session.listing(&plan.roots, &args.walk, &walk)?),
    };
    if let Some(listing) = listing.as_ref().filter(|_| !plan.stdin)
        && let Err(exit) = session.refuse_unreached(listing, &plan.roots)
    {
        display.stop();
        recorded.iter().for_each(|recorded| recorded.left(&session));
        return Ok(session.end(exit));
    }
    let hashes = hash(
        &plan,
        listing.as_ref(),
        &session,
        recorded.as_ref(),
        &progress,
        &display,
    )?;
    let stdin = stdin.map(|file| stdin::hash(file, plan.algorithms, &session, &progress));
    display.stop();
    if session.cancel.is_cancelled() {
        recorded.iter().for_each(|recorded| recorded.left(&session));
        return Ok(session.end(Exit::Done));
    }
    if let Some(hashes) = &hashes {
        report(hashes, &mut session);
    }
    let hashed = listing.as_ref().zip(hashes.as_ref());
    let dirs = match hashed.filter(|_| plan.dirs) {
        Some((listing, hashes)) => Some(hash_dirs(&plan, listing, hashes, &session)?),
        None => None,
    };
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    let hashed = Hashed {
        plan: &plan,
        listing: listing.as_ref(),
        hashes: hashes.as_ref(),
        dirs: dirs.as_ref(),
        stdin,
        relative: args.relative,
        elapsed: session.elapsed(),
        roots: &args.paths,
    };
    let result = output::write(&mut output, &hashed);
    let exit = match session.finish(output, result) {
        Ok(()) => {
            recorded.iter().for_each(|recorded| recorded.done(&session));
            session.report.exit()
        }
        Err(exit) => {
            recorded.iter().for_each(|recorded| recorded.left(&session));
            exit
        }
    };
    let file = args
        .output
        .as_deref()
        .filter(|file| is_readable_again(file));
    if let Some(file) = file.filter(|_| exit == Exit::Done) {
        session
            .report
            .closing(|| written(file, args, &plan, hashes.as_ref()));
    }
    Ok(session.end(exit))
}

/// Returns the closing line of a list that was written to a file.
fn written(file: &Path, args: &HashArgs, plan: &HashPlan<'_>, hashes: Option<&Hashes>) -> String {
    let path = file.as_os_str().as_bytes();
    let files = hashes.map_or(0, |hashes| hashes.totals().read.files);
    let count = files + u64::from(plan.stdin);
    let files = counted(count, "file", "files");
    let base = match (args.relative, args.paths.as_slice()) {
        (false, _) => Some(String::new()),
        (true, [root]) if Path::new(root).is_dir() => {
            Some(format!("--base={} ", shell_word(root.as_bytes())))
        }
        (true, _) => None,
    };
    // What was read from a pipe is not there any more, and directories have no line in a list.
    let is_hex = |algorithm: &Algorithm| algorithm.plain() == Plain::Hex;
    let is_list = match plan.format {
        HashFormat::Gnu => plan.algorithms.iter().all(is_hex),
        HashFormat::Bsd => true,
        _ => false,
    };
    let is_checked = is_list && count > 0 && plan.end == End::Newline && !plan.stdin && !plan.dirs;
    let checks = base.filter(|_| is_checked);
    let next = checks.map_or(String::new(), |base| {
        format!("; 'bc hash check {base}{}' verifies them", shell_path(path))
    });
    format!("{}: digests of {files}{next}", bc_fs::escape(path))
}

fn open(args: &HashArgs, plan: &HashPlan<'_>, session: &Session) -> Outcome<Output> {
    let output = session.output(args.output.as_deref())?;
    Ok(match (plan.format, plan.end) {
        (HashFormat::Json | HashFormat::Jsonl, _) => output.json(),
        (_, End::Nul) => output.records(),
        (_, End::Newline) => output,
    })
}

/// Begins the journal of a run that may be interrupted, or continues one.
fn record(
    args: &HashArgs,
    plan: &HashPlan<'_>,
    output: &Output,
    session: &Session,
) -> Outcome<Option<Recorded>> {
    // Beside FILE it would change the directory that is hashed, and --resume does not go with it.
    if args.dirs {
        return Ok(None);
    }
    // Only a run that keeps a journal resolves its roots.
    let job = || {
        let job = resume::job("hash", plan.algorithms, &plan.roots, &args.walk);
        let job = resume::flag(job, "--allow-changed", args.allow_changed);
        resume::shard(job, args.shard)
    };
    resume::begin(session, output, args.resume, job, plan.algorithms)
}

/// Leaves out of the walk the files that are written.
fn walk_options(
    args: &HashArgs,
    output: &Output,
    recorded: Option<&Recorded>,
    session: &Session,
) -> Outcome<bc_walk::WalkOptions> {
    let replaced = crate::files::output::replaced(args.output.as_deref());
    let metadata = match args.dirs {
        true => Metadata::Basic,
        false => Metadata::None,
    };
    let mut options = session.walk_options(&args.walk, metadata, replaced)?;
    options.leave_out.extend(output.own_file());
    let journal = recorded.and_then(|recorded| recorded.resume.own_file());
    options.leave_out.extend(journal);
    options.spellings = Spellings::Each;
    if args.dirs {
        options.spellings = Spellings::Once;
        options.entries = Entries::All;
        options.repeats = Repeats::List;
    }
    options.shard = args.shard;
    Ok(options)
}

/// Hashes the files listed, if there are any.
fn hash(
    plan: &HashPlan<'_>,
    listing: Option<&Listing>,
    session: &Session,
    recorded: Option<&Recorded>,
    progress: &HashProgress,
    display: &Display,
) -> Outcome<Option<Hashes>> {
    let resume = recorded.map(|recorded| Arc::clone(&recorded.resume));
    let mut entries: Vec<EntryId> =
        listing.map_or_else(Vec::new, |listing| listing.ids().collect());
    if let (Some(listing), true) = (listing, plan.dirs) {
        entries.retain(|entry| listing.kind(*entry) == FileKind::File);
    }
    let files = entries.len();
    let bytes = listing.filter(|_| display.is_shown());
    let bytes = bytes.and_then(|all| bc_hash::bytes_if_few(all, entries.iter().copied()));
    let bytes = bytes.unwrap_or(0);
    display.phase("hash", files as u64, bytes);
    let state = listing.map_or(0, |listing| {
        bc_hash::hashing_memory(listing, plan.algorithms)
    });
    let of_dirs = listing
        .filter(|_| plan.dirs)
        .map_or(0, bc_find::dirs::dirs_memory);
    let state = state + of_dirs + resume.as_ref().map_or(0, |resume| resume.memory());
    let width = plan.width();
    let workers = session.workers(files, width, state);
    let mut read = session.read_options(workers, width, state)?;
    read.changed = plan.changed;
    let options = HashOptions::new(plan.algorithms.to_vec())
        .read(read)
        .workers(workers)
        .start(session.common.threads.start())
        .resume(resume);
    listing
        .map(|listing| bc_hash::hash_entries(listing, entries, &options, &session.cancel, progress))
        .transpose()
        .map_err(|panic| session.defect(&panic))
}

/// Computes the digests of directories, and reports those that have none.
fn hash_dirs(
    plan: &HashPlan<'_>,
    listing: &Listing,
    hashes: &Hashes,
    session: &Session,
) -> Outcome<DirDigests> {
    let dirs = DirDigests::new(listing, hashes, plan.algorithms, &session.cancel)
        .map_err(|error| session.fatal(&error))?;
    if session.cancel.is_cancelled() {
        return Ok(dirs);
    }
    for error in &dirs.errors {
        session.report.problem(error);
    }
    Ok(dirs)
}

fn report(hashes: &Hashes, session: &mut Session) {
    for (_, error) in hashes.errors() {
        session.report.problem(error);
    }
    let totals = hashes.totals();
    let (read, reader) = (&totals.read, totals.read.backend.name());
    session.report.note(format_args!(
        "hash: {} files, {} bytes, {} threads, reader {reader}, {:.3} s in all",
        read.files,
        read.bytes,
        totals.workers,
        session.elapsed(),
    ));
    details::read(&session.report, read);
    session.metrics.counts([
        ("files", "Files processed.", read.files),
        ("read_bytes", "Bytes read.", read.bytes),
        ("threads", "Worker threads used.", totals.workers as u64),
    ]);
    session.metrics.label("reader", reader);
}
