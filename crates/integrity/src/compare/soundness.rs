//! Soundness of a manifest: every line is valid and in its place, which is checked before the first
//! difference is reported: a path whose line stands too late would be reported as added. A
//! comparison without differences pays nothing for it.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;

use bc_walk::job::Error;

use crate::change::Change;
use crate::compare::Sink;
use crate::input::passing::{LineRun, Passing};
use crate::input::stream::{LinesEnd, fill};
use crate::input::{ManifestFile, Trust};

/// Check of one manifest, whose SHA-256 was found right.
pub(crate) struct Soundness<'a> {
    manifest: &'a ManifestFile,
    /// Lines that are known to be sound.
    known: RefCell<Arc<[LineRun]>>,
    is_proven: Cell<bool>,
}

impl<'a> Soundness<'a> {
    /// Begins unproven. [`Trust::Forced`] leaves out lines that are not sound, and needs no proof.
    pub(crate) fn of(manifest: &'a ManifestFile, trust: Trust) -> Soundness<'a> {
        Soundness {
            manifest,
            known: RefCell::default(),
            is_proven: Cell::new(trust == Trust::Forced),
        }
    }

    /// Notes that these lines describe entries, which are in order, as the walk has found them.
    pub(crate) fn know(&self, runs: &Arc<[LineRun]>) {
        *self.known.borrow_mut() = Arc::clone(runs);
    }

    /// Reads all lines that are not known, once.
    fn prove(&self) -> Result<(), Error> {
        if self.is_proven.get() {
            return Ok(());
        }
        let mut lines = self.manifest.reader(Trust::Checked)?;
        let mut passing = Passing::over(&self.known.borrow());
        let mut entry = Vec::new();
        loop {
            match fill(&mut lines, &mut passing, &mut entry, 1).1 {
                LinesEnd::No => {}
                LinesEnd::Yes => break,
                LinesEnd::Failed(error) => return Err(self.manifest.refused(&error)),
            }
        }
        self.is_proven.set(true);
        Ok(())
    }
}

/// Passes changes to `sink` only after the manifests were found sound.
pub(crate) fn reported_of_sound<'s>(
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
