//! `--reference`: opened before anything is read, known by identity from then
//! on.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use bc_find::manifests::Manifest;
use bc_find::{Files, Subtrees};
use bc_prune::Action;
use bc_walk::{Identity, Symlinks};

use crate::files::input::{Input, is_stdin};
use crate::files::overlap::Given;
use crate::parse::args::{WalkArgs, is_dash};
use crate::report::diagnostic::Diagnostic;
use crate::session::{Outcome, Session};

/// Returns the paths as the engine takes them.
pub fn bytes(paths: &[OsString]) -> Vec<Vec<u8>> {
    let bytes = |path: &OsString| path.as_encoded_bytes().to_vec();
    paths.iter().map(bytes).collect()
}

/// Returns the files of a command that searches: a reference that is a file is read, and never
/// written.
pub fn given<'a>(
    read: Vec<&'a OsStr>,
    paths: &'a [OsString],
    references: &'a [OsString],
    walk: &WalkArgs,
) -> Given<'a> {
    let is_file = |name: &&OsString| std::fs::metadata(name).is_ok_and(|meta| meta.is_file());
    let files = references.iter().filter(is_file);
    Given::inputs(read)
        .and_inputs(files.map(OsString::as_os_str))
        .operands(paths)
        .operands(references)
        .walking(walk)
}

/// Opens all, or fails: a reference that is not found would not be protected.
pub fn open(session: &Session, paths: &[Vec<u8>]) -> Outcome<Subtrees> {
    Subtrees::open(paths.iter().cloned()).map_err(|error| {
        let hint = if error.path().starts_with(b"~") {
            "; shells expand '~' at the start of a word only: write --reference ~/DIR"
        } else {
            ""
        };
        let text = format!("--reference={error}{hint}");
        session.fatal(Diagnostic::from(&error).worded(text))
    })
}

/// References by kind: directories and manifests.
#[derive(Default)]
pub struct Named {
    /// Directories, and the index of each among the references.
    pub directories: Vec<OsString>,
    pub directory_numbers: Vec<usize>,
    /// Open handles of the directories.
    pub opened: Subtrees,
    /// Manifests, and the index of each among the references.
    pub manifests: Vec<Manifest>,
    pub manifest_numbers: Vec<usize>,
}

/// Refuses references that are one pipe, which can be read once only.
fn refuse_twice(session: &Session, references: &[OsString]) -> Outcome<()> {
    let piped = references.iter().filter(|reference| is_piped(reference));
    let mut numbers: Vec<_> = piped
        .map(|reference| match is_stdin(reference) {
            true => Some(0),
            false => bc_edit::output::descriptor(reference),
        })
        .collect();
    numbers.sort_unstable();
    match numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some([Some(0), _]) => {
            Err(session
                .fatal("--reference: standard input is named twice, and can be read once only"))
        }
        Some(pair) => Err(session.fatal(format!(
            "--reference: descriptor {} is named twice, and can be read once only",
            pair[0].unwrap_or_default()
        ))),
    }
}

/// Takes out the manifests, by how they begin: other files are references like directories.
pub fn take_manifests(
    session: &Session,
    references: &[OsString],
) -> Outcome<(Vec<OsString>, Vec<Manifest>)> {
    refuse_twice(session, references)?;
    let (mut others, mut manifests) = (Vec::new(), Vec::new());
    for reference in references {
        // A reference that cannot be read is protected all the same. One that is neither a file nor
        // a pipe is not opened.
        let is_file = std::fs::metadata(reference).is_ok_and(|meta| meta.is_file());
        let is_open = is_file && File::open(reference).is_ok();
        let found = match is_open || is_piped(reference) {
            true => manifest(session, reference)?,
            false => None,
        };
        match found {
            Some(manifest) => manifests.push(manifest),
            None => others.push(reference.clone()),
        }
    }
    Ok((others, manifests))
}

/// Refuses manifests, which never authorise a change.
pub fn refuse_manifests(session: &Session, references: &[OsString]) -> Outcome<()> {
    match take_manifests(session, references)?.1.first() {
        None => Ok(()),
        Some(manifest) => Err(session.fatal(format!(
            "--reference={}: a manifest can answer, and never authorises a change: mount the disk and \
             name its directory",
            bc_fs::escape(manifest.path())
        ))),
    }
}

/// Reads a manifest from standard input or another pipe, which is kept: it is read twice.
fn piped(session: &Session, reference: &OsString) -> Outcome<Option<Manifest>> {
    let path = reference.as_encoded_bytes();
    let is_stdin = is_stdin(reference);
    let name = match is_stdin {
        true => OsStr::new("-"),
        false => reference,
    };
    let origin = match is_stdin {
        true => crate::files::input::stdin()
            .map(|file| file.metadata().ok())
            .ok()
            .flatten(),
        false => None,
    };
    let origin = origin.filter(|meta| meta.is_file()).map(|meta| Identity {
        dev: meta.dev(),
        ino: meta.ino(),
    });
    let open = |file: &File| {
        let file = file
            .try_clone()
            .map_err(|error| failed_reading(path, error))?;
        Manifest::of_file(path, file, &session.cancel).map_err(|error| error.to_string())
    };
    let kept = session.while_reading(name, || {
        let input = Input::open(name, &session.cancel).map_err(|what| session.fatal(what))?;
        let is_manifest = |file: &File| {
            let found = open(file).map_err(std::io::Error::other)?;
            Ok(found.is_some())
        };
        input.keep(is_manifest).map_err(|error| {
            let text = match error.kind() {
                ErrorKind::Other if error.raw_os_error().is_none() => error.to_string(),
                _ => failed_reading(path, error),
            };
            session.fatal(format!("--reference={text}"))
        })
    })?;
    let found = kept.map(|file| open(&file)).transpose();
    match found
        .map_err(|text| session.fatal(format!("--reference={text}")))?
        .flatten()
    {
        Some(mut manifest) => {
            if let Some(file) = origin {
                manifest.copied_from(file);
            }
            Ok(Some(manifest))
        }
        None => Err(session.fatal(format!(
            "--reference={}: not a manifest",
            bc_fs::escape(path)
        ))),
    }
}

fn failed_reading(path: &[u8], error: std::io::Error) -> String {
    format!("{}: read: {error}", bc_fs::escape(path))
}

/// Returns true if a reference can be read only once.
fn is_piped(reference: &OsString) -> bool {
    if is_dash(reference) {
        return true;
    }
    // A FIFO that has a name waits for a process that writes to it, perhaps for ever.
    let Some(number) = bc_edit::output::descriptor(reference) else {
        return false;
    };
    let kind = std::fs::metadata(reference).map(|meta| meta.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || number == 0 && kind.is_socket())
}

/// Opens a reference as a manifest; `None` if it does not begin like one, or is no regular file.
fn manifest(session: &Session, reference: &OsString) -> Outcome<Option<Manifest>> {
    if is_piped(reference) {
        return piped(session, reference);
    }
    if !std::fs::metadata(reference).is_ok_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    Manifest::open(reference.as_encoded_bytes(), &session.cancel)
        .map_err(|error| session.fatal(format!("--reference={error}")))
}

/// Refuses manifests of the paths that are searched.
pub fn compare_homes(
    session: &Session,
    manifests: &mut [Manifest],
    paths: &[OsString],
) -> Outcome<()> {
    for manifest in manifests {
        let roots = paths.iter().map(|path| path.as_encoded_bytes());
        manifest
            .compare_home(roots)
            .map_err(|error| session.fatal(format!("--reference={error}")))?;
    }
    Ok(())
}

fn begins_like_json(path: &OsString) -> bool {
    let mut first = [0];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first == *b"{"
}

/// Opens directories and manifests; anything else is an error.
pub fn split(session: &Session, references: &[OsString]) -> Outcome<Named> {
    refuse_twice(session, references)?;
    let mut named = Named::default();
    for (number, reference) in references.iter().enumerate() {
        if let Some(manifest) = manifest(session, reference)? {
            named.manifests.push(manifest);
            named.manifest_numbers.push(number);
        } else if std::fs::metadata(reference).is_ok_and(|meta| meta.is_file()) {
            let path = bc_fs::escape(reference.as_encoded_bytes());
            let hint = match begins_like_json(reference) {
                true => "; of what bc hash writes, --format=jsonl can be one, and json cannot",
                false => "",
            };
            let text = format!("--reference={path}: neither a directory nor a manifest{hint}");
            return Err(session.fatal(text));
        } else {
            named.directories.push(reference.clone());
            named.directory_numbers.push(number);
        }
    }
    named.opened = open(session, &bytes(&named.directories))?;
    Ok(named)
}

/// Finds out what lies below the references, of files at least what is asked. Options that keep
/// names of a search away from it do not keep them from being protected: then every file is known
/// by itself as well, as it may have names elsewhere.
pub fn survey(
    session: &Session,
    references: &mut Subtrees,
    files: Files,
    walk: &WalkArgs,
) -> Outcome<()> {
    if references.is_empty() {
        return Ok(());
    }
    let leaves_out = walk.no_hidden
        || walk.ignore_files
        || walk.one_file_system
        || walk.follow_symlinks
        || walk.max_depth.is_some()
        || !walk.include.is_empty()
        || !walk.exclude.is_empty();
    let files = if leaves_out { Files::All } else { files };
    let symlinks = if walk.follow_symlinks {
        Symlinks::Follow
    } else {
        Symlinks::Skip
    };
    references
        .survey(symlinks, files, session.walk_workers(), &session.cancel)
        .map_err(|panic| session.defect(&panic))
}

/// Refuses to move files into a reference, where nothing is to change, or to a place where the
/// files that they equal would count as moved already.
pub fn check_destination(session: &Session, action: &Action, references: &Subtrees) -> Outcome<()> {
    let Action::Move(dir) = action else {
        return Ok(());
    };
    let refused =
        |text: &str| Err(session.fatal(format!("--action=move:{}: {text}", bc_fs::escape(dir))));
    let below = bc_prune::lies_below(dir, references, &session.cancel);
    let above = bc_prune::lies_above(dir, references);
    match (below, above) {
        (Err(error), _) | (_, Err(error)) => Err(session.fatal(&error)),
        (Ok(true), _) => refused("lies below a --reference, where nothing is changed"),
        (_, Ok(true)) => refused("a --reference lies below it, where no file is ever the kept one"),
        _ => match bc_prune::lacks_parent(dir) {
            Ok(true) => refused("the directory that it would be made in does not exist"),
            Ok(false) => Ok(()),
            Err(error) => Err(session.fatal(&error)),
        },
    }
}
