//! Directories and manifests that others are compared with.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use bc_find::manifests::Manifest;
use bc_find::{Files, Subtrees};
use bc_pool::Cancel;
use bc_walk::Symlinks;

use super::error::{Error, ErrorKind};
use super::filter::Filter;
use super::run::Run;

/// References by kind: directories and manifests.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// Directories, and the index of each among the references.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) directory_numbers: Vec<usize>,
    /// Open handles of the directories.
    pub(crate) opened: Subtrees,
    /// Manifests, and the index of each among the references.
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) manifest_numbers: Vec<usize>,
}

impl References {
    /// Opens directories and manifests; anything else is an error. No manifest may be of `paths`.
    pub(crate) fn open(
        named: &[PathBuf],
        paths: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<References, Error> {
        let mut found = References::default();
        for (number, path) in named.iter().enumerate() {
            if !path.is_file() {
                found.directories.push(path.clone());
                found.directory_numbers.push(number);
                continue;
            }
            let manifest = Manifest::open(path.as_os_str().as_bytes(), cancel)?;
            let Some(mut manifest) = manifest else {
                return Err(Error::at(
                    ErrorKind::Usage,
                    path,
                    "neither a directory nor a manifest",
                ));
            };
            let roots = paths.iter().map(|path| path.as_os_str().as_bytes());
            manifest.compare_home(roots)?;
            found.manifests.push(manifest);
            found.manifest_numbers.push(number);
        }
        found.opened = Subtrees::open(found.directories.iter().map(|path| bytes(path)))?;
        Ok(found)
    }
}

/// Returns the path's bytes.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Finds the files in `trees`: each file by itself if the filter could keep names of it from a
/// walk.
pub(crate) fn survey(trees: &mut Subtrees, filter: &Filter, run: &Run<'_>) -> Result<(), Error> {
    let follows = filter.options.symlinks == Symlinks::Follow;
    let files = match filter.leaves_out() || follows {
        true => Files::All,
        false => Files::Named,
    };
    let symlinks = filter.options.symlinks;
    Ok(trees.survey(symlinks, files, run.walkers(), &run.cancel)?)
}

/// Returns paths as the engine lists them.
pub(crate) fn paths_of(found: Vec<Vec<u8>>) -> Vec<PathBuf> {
    let paths = found.into_iter();
    paths.map(|path| OsString::from_vec(path).into()).collect()
}
