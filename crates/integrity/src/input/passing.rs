//! Runs of lines that a reader of a manifest skips, because all is known of them already.

use std::ops::Range;
use std::sync::Arc;

use bc_manifest::integrity::{Passed, Reader};

use crate::input::lines::LineInput;
use std::ops::ControlFlow;

/// Neighbouring lines of a manifest, and the entries of the tree that they describe.
#[derive(Clone, Debug)]
pub(crate) struct LineRun {
    /// Entries of the tree.
    pub(crate) ids: Range<u32>,
    /// Byte range of the lines in the manifest.
    pub(crate) bytes: Range<u64>,
    /// Path of the first, and of the last.
    pub(crate) first: Vec<u8>,
    pub(crate) last: Vec<u8>,
    /// Number of the entries that are files; the others are directories.
    pub(crate) files: u64,
    /// Bytes of the files.
    pub(crate) size: u64,
    /// The latest run that tried the content of any of them.
    pub(crate) tried_run: u32,
}

impl LineRun {
    /// Returns the number of entries, and of lines.
    pub(crate) fn entries(&self) -> u64 {
        self.ids.len() as u64
    }

    fn passed(&self) -> Passed<'_> {
        Passed {
            first: &self.first,
            last: &self.last,
            entries: self.entries(),
            files: self.files,
            dirs: self.entries() - self.files,
            bytes: self.size,
        }
    }
}

/// Lines that a reader of a manifest leaves out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passing {
    /// Runs, in order.
    runs: Arc<[LineRun]>,
    next: usize,
    /// Offset at which reading ends, if not at the end of the manifest.
    end: Option<u64>,
}

impl Passing {
    /// Skips these runs, which are in order.
    pub(crate) fn over(runs: &Arc<[LineRun]>) -> Passing {
        Passing {
            runs: Arc::clone(runs),
            ..Passing::default()
        }
    }

    /// Skips everything but the lines of `run`.
    pub(crate) fn all_but(run: &LineRun, lines: &mut Reader<LineInput>) -> Passing {
        lines.get_mut().go_to(run.bytes.start);
        Passing {
            end: Some(run.bytes.end),
            ..Passing::default()
        }
    }

    /// Moves `lines` to the next wanted one, if there is one.
    pub(crate) fn pass(
        &mut self,
        lines: &mut Reader<LineInput>,
    ) -> Result<ControlFlow<()>, bc_manifest::Error> {
        let mut at = lines.get_mut().offset();
        while let (Some(run), Some(offset)) = (self.runs.get(self.next), at)
            && run.bytes.start <= offset
        {
            if run.bytes.start < offset {
                lines.get_mut().has_changed();
                break;
            }
            lines.pass_over(&run.passed())?;
            lines.get_mut().go_to(run.bytes.end);
            self.next += 1;
            at = Some(run.bytes.end);
        }
        let over = self.end.zip(at).is_some_and(|(end, at)| at >= end);
        Ok(if over {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }
}
