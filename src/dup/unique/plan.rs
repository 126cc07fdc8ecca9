//! Command line of `bc dup unique`, checked before any file is searched.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;

use bc_find::Subtrees;
use bc_find::manifests::Manifest;
use bc_find::scan::Equality;
use bc_find::unique::UniqueOptions;
use bc_walk::{Entries, Globs, Metadata, WalkOptions};

use super::args::UniqueArgs;
use crate::dup::references;
use crate::session::{Outcome, Session};

/// A search for contents that are nowhere else.
pub struct UniquePlan {
    /// Files and directories that the PATHs lead to, as far as they can be opened.
    pub own: Subtrees,
    /// References that are directories, and the index of each among the references.
    pub directories: Vec<OsString>,
    pub directory_numbers: Vec<usize>,
    /// The directories, open.
    pub opened: Subtrees,
    /// References that are manifests.
    pub manifests: Vec<Manifest>,
    pub manifest_numbers: Vec<usize>,
    /// Options of the walk of the PATHs, and of that of the references.
    pub walks: [WalkOptions; 2],
    pub options: UniqueOptions,
}

impl UniquePlan {
    pub fn new(session: &Session, args: &UniqueArgs) -> Outcome<UniquePlan> {
        if args.walk.files_from.is_some() {
            let text = "--files-from: name the PATHs that are to be looked through";
            return Err(session.fatal(text));
        }
        if args.paths.is_empty() {
            let text = "no PATH given; see --help, or try '.' for this directory";
            return Err(session.fatal(text));
        }
        refuse_devices(session, args)?;
        let paths = references::bytes(&args.paths);
        let opens = |path: &Vec<u8>| Subtrees::open([path.clone()]).is_ok();
        let own = Subtrees::open(paths.iter().filter(|path| opens(path)).cloned())
            .map_err(|error| session.fatal(error.to_string()))?;
        let named = references::split(session, &args.reference)?;
        let mut manifests = named.manifests;
        references::compare_homes(session, &mut manifests, &args.paths)?;
        if args.trust_list {
            manifests.iter_mut().for_each(Manifest::trust);
        }
        warn_of_own(session, &named.directories, &own)?;
        let mut of_paths = session.walk_options(&args.walk, Metadata::Basic, None)?;
        // The filter chooses among the PATHs' files; a reference copy may lie at any depth and have
        // any name.
        let of_references = of_paths
            .clone()
            .include(Globs::default())
            .max_depth(None)
            .min_size(0)
            .max_size(None)
            .newer(None)
            .older(None);
        of_paths.entries = Entries::All;
        let mut options = UniqueOptions::new();
        options.scan = options
            .scan
            .equality(match args.verify_bytes {
                true => Equality::Bytes,
                false => Equality::Digest,
            })
            .start(session.common.threads.start());
        Ok(UniquePlan {
            own,
            directories: named.directories,
            directory_numbers: named.directory_numbers,
            opened: named.opened,
            manifests,
            manifest_numbers: named.manifest_numbers,
            walks: [of_paths, of_references],
            options,
        })
    }
}

/// Warns of a reference that lies in the PATHs: it has no copy of their files, and nothing else
/// says why they are nowhere else.
fn warn_of_own(session: &Session, references: &[OsString], own: &Subtrees) -> Outcome<()> {
    for reference in references {
        let name = reference.as_encoded_bytes();
        let lies_in = own.contains(name);
        if lies_in.map_err(|error| session.fatal(&error))? {
            session.report.warning(format_args!(
                "--reference={}: is inside a PATH: its files are not copies",
                bc_fs::escape(name)
            ));
        }
    }
    Ok(())
}

/// Refuses devices, whose bytes are not looked at, and FIFOs and sockets, which have no content.
fn refuse_devices(session: &Session, args: &UniqueArgs) -> Outcome<()> {
    for path in &args.paths {
        let Ok(kind) = std::fs::metadata(path).map(|meta| meta.file_type()) else {
            continue;
        };
        let name = bc_fs::escape(path.as_encoded_bytes());
        if kind.is_block_device() || kind.is_char_device() {
            return Err(session.fatal(format!(
                "{name}: a device, whose bytes are not looked at: name the directory where it is \
                 mounted"
            )));
        }
        if !kind.is_file() && !kind.is_dir() {
            return Err(session.fatal(format!("{name}: neither a file nor a directory")));
        }
    }
    Ok(())
}
