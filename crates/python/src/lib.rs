//! The compiled half of the Python package `bit_crafts`: functions that start the jobs of the library. The
//! functions that users call are in `bit_crafts/__init__.py`.
//!
//! # Invariants
//!
//! - A job runs on a separate thread, which never touches the interpreter. The thread that waits for its
//!   result does not hold the interpreter lock meanwhile, and wakes up to check for signals.
//! - Paths are bytes; Python gets them as from its standard functions (`os.fsencode`, `os.fsdecode`).
//! - Nothing is converted before it is requested: results stay here, and their items become Python objects
//!   one by one.

#![forbid(unsafe_code)]

mod copy;
mod errors;
mod find;
mod hash;
mod hasher;
mod integrity;
mod items;
mod job;
mod manifest;
mod options;
mod paths;
mod prune;

#[pyo3::pymodule]
mod _native {
    use std::sync::OnceLock;

    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;

    /// Refuses every interpreter of the process but the first that imports it: what is kept here
    /// would be of another one, and its objects must never meet.
    #[pymodule_init]
    fn belong_to_one_interpreter(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        static HOME: OnceLock<usize> = OnceLock::new();
        let sys = module.py().import("sys")?.as_ptr() as usize;
        match *HOME.get_or_init(|| sys) == sys {
            true => Ok(()),
            false => Err(PyImportError::new_err(
                "bit_crafts is for one interpreter of a process, and another one has imported it",
            )),
        }
    }

    #[pymodule_export]
    use crate::copy::{copy, move_files, restore};
    #[pymodule_export]
    use crate::find::{directories, duplicates, unique};
    #[pymodule_export]
    use crate::hash::{check, hash};
    #[pymodule_export]
    use crate::hasher::{Hasher, algorithms};
    #[pymodule_export]
    use crate::integrity::{accept, diff, manifest, update, verify};
    #[pymodule_export]
    use crate::items::{Items, ItemsIterator};
    #[pymodule_export]
    use crate::job::{CancelToken, Job};
    #[cfg(debug_assertions)]
    #[pymodule_export]
    use crate::job::{deaf, panic};
    #[pymodule_export]
    use crate::manifest::{columns, entries, header};
    #[pymodule_export]
    use crate::prune::{prune, undo};
}
