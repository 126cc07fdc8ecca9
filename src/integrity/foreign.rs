//! `bc integrity export` and `import`: the formats of other tools.

use std::io::BufReader;

use bc_integrity::Import;
use bc_manifest::compress::Compressor;

use crate::exit::Exit;
use crate::input::Input;
use crate::output::{Output, Written};
use crate::run::{Outcome, Session};

use super::args::{ExportArgs, Foreign, ImportArgs};
use super::job::{Stop, done_or, is_compressed, now, open as open_manifest, trust};

pub fn export(args: &ExportArgs) -> Outcome<Exit> {
    let session = Session::start(
        "integrity",
        "export",
        &args.common,
        &[args.manifest.as_os_str()],
        args.output.as_deref(),
    )?;
    let manifest = open_manifest(&session, &args.manifest)?;
    let mut output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    let format = match args.format {
        Foreign::Gnu => bc_integrity::Foreign::Gnu,
        Foreign::Hashdeep => bc_integrity::Foreign::Hashdeep,
        Foreign::Mtree => bc_integrity::Foreign::Mtree,
    };
    let mut inexpressible = |path: &[u8]| {
        let path = bc_fs::escape(path);
        session.report.problem(&format!(
            "{path}: export: the format has no way to write this name"
        ));
    };
    let trust = trust(args.force).0;
    let exported = bc_integrity::export(&manifest, format, trust, &mut output, &mut inexpressible);
    let exported = match exported {
        Ok((_, exported)) => exported,
        Err(error) => return done_or(session, Stop::Engine(error)),
    };
    session
        .report
        .note(1, &format!("export: {:.3} s in all", session.elapsed()));
    for problem in &exported.problems {
        session.report.warning(problem);
    }
    if exported.without_digest > 0 {
        session.report.problem(&format!(
            "{} files have no digest in the manifest",
            exported.without_digest
        ));
    }
    let exit = match output.finish(Ok(())) {
        Ok(Written::Whole | Written::ReaderLeft) => session.report.exit(),
        Err(text) => session.fatal(&text),
    };
    Ok(session.end(exit))
}

/// Most bytes that are imported from a pipe: all paths are held in memory, and a pipe may never end.
const MOST: u64 = 1 << 30;

pub fn import(args: &ImportArgs) -> Outcome<Exit> {
    let session = Session::start(
        "integrity",
        "import",
        &args.common,
        &[args.file.as_os_str()],
        args.output.as_deref(),
    )?;
    // A FIFO that nobody writes to waits here.
    let name = args.file.as_os_str();
    let opened = session.while_reading(name, || Input::open_no_device(name, &session.cancel));
    let input = opened.map_err(|text| session.fatal(&text))?;
    let input = BufReader::with_capacity(256 << 10, input.within(MOST));
    let what = Import {
        name: args.file.as_os_str().as_encoded_bytes(),
        algorithm: args.algorithm,
        strip_prefix: args.strip_prefix.as_encoded_bytes(),
        created_at: now(),
    };
    let output = Output::open(args.output.as_deref()).map_err(|text| session.fatal(&text))?;
    let mut output = output.fixed_json();
    let imported = (|| {
        if is_compressed(args.output.as_deref()) {
            let to = Compressor::new(&mut output).map_err(Stop::Write)?;
            let (to, trailer) = bc_integrity::import(&what, input, to)?;
            to.finish().map_err(Stop::Write)?;
            Ok(trailer)
        } else {
            Ok(bc_integrity::import(&what, input, &mut output)?.1)
        }
    })();
    let trailer = match imported {
        Ok(trailer) => trailer,
        Err(stop) => return done_or(session, stop),
    };
    session
        .report
        .note(1, &format!("imported {} entries", trailer.entries));
    let exit = match output.finish(Ok(())) {
        Ok(Written::Whole | Written::ReaderLeft) => Exit::Done,
        Err(text) => session.fatal(&text),
    };
    Ok(session.end(exit))
}
