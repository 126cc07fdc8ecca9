//! `bc integrity manifest`: record a tree.

use bc_integrity::{CreateOptions, TreeOptions, XattrPolicy};
use bc_manifest::compress::Compressor;
use bc_walk::{Entries, Metadata};

use crate::args::WalkArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::run::{Outcome, Session};

use super::args::ManifestArgs;
use super::job::{Stop, is_compressed, now, origin, working};

pub fn manifest(args: &ManifestArgs) -> Outcome<Exit> {
    let mut session = Session::start(
        "integrity",
        "manifest",
        &args.common,
        &args.walk.inputs(),
        args.output.as_deref(),
    )?;
    let tree = tree_options(args, &session)?;
    let output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    // The trailer's digest is that of the bytes as they are written.
    let output = output.fixed_json();
    let leave_out = crate::output::replaced(args.output.as_deref());
    let what = CreateOptions {
        root: &args.root,
        tree,
        algorithm: args.algorithm,
        created_at: now(),
        origin: origin(),
        leave_out: leave_out.into_iter().chain(output.own_file()).collect(),
    };
    let compressed = is_compressed(args.output.as_deref());
    let mut output = output;
    let created = working(&session, Some(args.algorithm), "manifest", |work| {
        let on_failure = &mut |path: &[u8], failure: &bc_manifest::Failure| {
            let path = crate::run::below(&args.root, path);
            let text = format!(
                "{}: {}: {}",
                bc_fs::escape(&path),
                failure.op,
                failure.message
            );
            session.report.problem(&text);
        };
        if compressed {
            let to = Compressor::new(&mut output).map_err(Stop::Write)?;
            let (to, created) = bc_integrity::create(&what, work, to, on_failure)?;
            to.finish().map_err(Stop::Write)?;
            Ok(created)
        } else {
            Ok(bc_integrity::create(&what, work, &mut output, on_failure)?.1)
        }
    })?;
    let Some(created) = created else {
        return Ok(session.end(Exit::Done));
    };
    if let Err(text) = output.finish(Ok(())) {
        let exit = session.fatal(&text);
        return Ok(session.end(exit));
    }
    let trailer = &created.trailer;
    session.report.note(
        1,
        &format!(
            "manifest: {} entries, {} files, {} bytes, {} errors, {} threads, {:.3} s",
            trailer.entries,
            trailer.files,
            trailer.bytes,
            trailer.errors,
            created.totals.workers,
            session.elapsed(),
        ),
    );
    session
        .metrics
        .set("entries", "Entries recorded.", trailer.entries as f64);
    session
        .metrics
        .set("files", "Files hashed.", created.totals.read.files as f64);
    session.metrics.set(
        "read_bytes",
        "Bytes read.",
        created.totals.read.bytes as f64,
    );
    let exit = session.report.exit();
    Ok(session.end(exit))
}

fn tree_options(args: &ManifestArgs, session: &Session) -> Outcome<TreeOptions> {
    let WalkArgs {
        include, exclude, ..
    } = &args.walk;
    if args.walk.files_from.is_some() {
        return Err(session.fatal("--files-from: a manifest records a whole tree; use --include"));
    }
    // The shared translation also checks the globs.
    let walk = session.walk_options(&args.walk, Metadata::Full, None)?;
    let bytes = |patterns: &[std::ffi::OsString]| {
        patterns
            .iter()
            .map(|p| p.as_encoded_bytes().to_vec())
            .collect()
    };
    Ok(TreeOptions {
        hidden: walk.hidden,
        symlinks: walk.symlinks,
        file_systems: walk.file_systems,
        max_depth: walk.max_depth,
        include: bytes(include),
        exclude: bytes(exclude),
        min_size: walk.min_size,
        max_size: walk.max_size,
        ignore_files: walk.ignore_files,
        entries: Entries::All,
        xattrs: if args.xattrs {
            XattrPolicy::Record
        } else {
            XattrPolicy::Skip
        },
    })
}
