//! That every line of a manifest is sound and in its place, found out before the first difference
//! is told: of a path whose line stands too late it would be said that it was added. Who finds no
//! difference pays nothing for it.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;

use crate::change::Change;
use crate::compare::Sink;
use crate::error::Error;
use crate::input::{ManifestFile, Trust};
use crate::manifest_stream::{End, fill};
use crate::passing::{Passing, Run};

/// Of one manifest, whose SHA-256 was found right.
pub(crate) struct Soundness<'a> {
    manifest: &'a ManifestFile,
    /// Lines that are known to be sound.
    known: RefCell<Arc<[Run]>>,
    is_proven: Cell<bool>,
}

impl<'a> Soundness<'a> {
    /// Not known yet. [`Trust::Forced`] leaves out what is not sound, and asks for no proof.
    pub(crate) fn of(manifest: &'a ManifestFile, trust: Trust) -> Soundness<'a> {
        Soundness {
            manifest,
            known: RefCell::default(),
            is_proven: Cell::new(trust == Trust::Forced),
        }
    }

    /// These lines say of entries, which are in order, what the walk has found.
    pub(crate) fn know(&self, runs: &Arc<[Run]>) {
        *self.known.borrow_mut() = Arc::clone(runs);
    }

    /// Reads all that is not known, once.
    fn prove(&self) -> Result<(), Error> {
        if self.is_proven.get() {
            return Ok(());
        }
        let mut lines = self.manifest.reader(Trust::Checked)?;
        let mut passing = Passing::over(&self.known.borrow());
        let mut entry = Vec::new();
        loop {
            match fill(&mut lines, &mut passing, &mut entry, 1).1 {
                End::No => {}
                End::Yes => break,
                End::Failed(error) => return Err(self.manifest.refused(&error)),
            }
        }
        self.is_proven.set(true);
        Ok(())
    }
}

/// Tells `sink` nothing before the manifests were found sound.
pub(crate) fn told_of_sound<'s>(
    manifests: &'s [&'s Soundness<'s>],
    sink: &'s mut Sink<'_>,
) -> impl FnMut(&Change) -> io::Result<()> + 's {
    move |change| {
        for manifest in manifests {
            manifest.prove().map_err(io::Error::other)?;
        }
        sink(change)
    }
}
