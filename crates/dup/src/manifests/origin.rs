//! Where the files of a manifest's entries were: entries of the very files that are asked about are
//! no witnesses.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Manifest;
use super::entries::Witness;
use super::systems::Systems;
use crate::aliases::Aliases;
use crate::path::split;
use crate::prune::sys;
use crate::subtrees::Subtrees;

/// What is known of that.
pub(super) struct Origin<'m, 't> {
    /// Of integrity manifests.
    systems: Option<Systems>,
    /// Where the paths may begin.
    bases: Vec<PathBuf>,
    trees: &'t Subtrees,
    aliases: &'m mut Aliases<'t>,
}

impl<'m, 't> Origin<'m, 't> {
    pub(super) fn new(
        manifest: &Manifest,
        systems: Systems,
        trees: &'t Subtrees,
        aliases: &'m mut Aliases<'t>,
    ) -> Origin<'m, 't> {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let (systems, bases) = match &manifest.header {
            Some(header) => {
                let root = header.root.as_deref().map(path);
                (Some(systems), root.into_iter().collect())
            }
            // A list does not say where it was made: what its path leads to, from here, from beside
            // the list, or from above what is asked about, is what it was made of as far as anybody
            // can tell.
            None => {
                let beside = path(split(&manifest.path).0);
                let mut bases = vec![PathBuf::new(), beside];
                bases.extend(systems.base().map(Path::to_owned));
                for top in trees.paths() {
                    let real = path(top).canonicalize();
                    let above = real.iter().flat_map(|real| real.ancestors());
                    bases.extend(above.map(Path::to_owned));
                }
                (None, bases)
            }
        };
        Origin {
            systems,
            bases,
            trees,
            aliases,
        }
    }

    /// Whether an entry may be of one of the files that are asked about.
    pub(super) fn may_be_own(&mut self, witness: &Witness<'_>) -> bool {
        let told = self.systems.as_ref();
        if told.is_some_and(|systems| systems.may_have(witness, self.trees)) {
            return true;
        }
        let path = Path::new(OsStr::from_bytes(witness.path));
        let bases = match path.is_absolute() {
            true => &self.bases[..1],
            false => &self.bases[..],
        };
        let (trees, aliases) = (self.trees, &mut self.aliases);
        bases
            .iter()
            .any(|base| leads_to_own(&base.join(path), trees, aliases))
    }
}

/// Whether what a path leads to now is one of the trees' files, or may be.
fn leads_to_own(path: &Path, trees: &Subtrees, aliases: &mut Aliases<'_>) -> bool {
    // Whatever is no file any more was one, perhaps, and tells nothing.
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    let (parent, name) = split(real.as_os_str().as_bytes());
    let Ok(dir) = sys::open_root(parent) else {
        return false;
    };
    let Ok(name) = sys::name(name) else {
        return false;
    };
    let (Ok(file), Ok(above)) = (sys::stat_at(&dir, &name), sys::stat(&dir)) else {
        return false;
    };
    if trees.has_dir(file.id) || trees.has_file(file.id) || trees.has_dir(above.id) {
        return true;
    }
    let open = || sys::open_root(parent).ok();
    let file = (file.id, file.stamp, name.as_c_str());
    aliases.may_be_own(file, above.id.dev, open)
}
