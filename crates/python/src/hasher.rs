//! `Hasher`: the interface of `hashlib` over the library's algorithms.

use std::sync::{Mutex, PoisonError, TryLockError};

use bit_crafts::{Algorithm, Hasher as Running};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};

use crate::hash::digest_object;
use crate::options::Named;

/// Bytes from which on the interpreter is released while they are hashed, as `hashlib` has it.
const LONG: usize = 2048;

/// Bytes that are copied at a time out of a buffer that others may write to.
const PIECE: isize = 1 << 20;

/// Returns the names of all algorithms.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<&'static str> {
    Algorithm::ALL.iter().map(|one| one.name()).collect()
}

/// A digest of bytes that come in pieces, with the interface of `hashlib`.
///
/// >>> from bit_crafts import Hasher
/// >>> hasher = Hasher("sha256", b"a")
/// >>> hasher.update(b"bc")
/// >>> hasher.hexdigest()[:16]
/// 'ba7816bf8f01cfea'
/// >>> hasher.name, hasher.digest_size
/// ('sha256', 32)
#[pyclass(frozen, module = "bit_crafts")]
pub(crate) struct Hasher {
    algorithm: Algorithm,
    running: Mutex<Running>,
}

impl Hasher {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Running) -> T + Send) -> T {
        match self.running.try_lock() {
            Ok(mut running) => work(&mut running),
            Err(TryLockError::Poisoned(running)) => work(&mut running.into_inner()),
            // Another thread hashes with it, without the interpreter.
            Err(TryLockError::WouldBlock) => py.detach(|| {
                let running = self.running.lock();
                work(&mut running.unwrap_or_else(PoisonError::into_inner))
            }),
        }
    }

    fn append(&self, py: Python<'_>, data: &[u8]) {
        if data.len() < LONG {
            return self.with(py, |running| running.update(data));
        }
        py.detach(|| {
            let running = self.running.lock();
            running.unwrap_or_else(PoisonError::into_inner).update(data);
        });
    }
}

#[pymethods]
impl Hasher {
    #[new]
    #[pyo3(signature = (name="blake3", data=None, *, usedforsecurity=true))]
    fn new(
        py: Python<'_>,
        name: &str,
        data: Option<&Bound<'_, PyAny>>,
        usedforsecurity: bool,
    ) -> PyResult<Hasher> {
        // Nothing here is forbidden where it is for security.
        let _ = usedforsecurity;
        let Named(algorithm) = name.into_pyobject(py)?.extract()?;
        let hasher = Hasher {
            algorithm,
            running: Mutex::new(Running::new(algorithm)),
        };
        if let Some(data) = data {
            hasher.update(data)?;
        }
        Ok(hasher)
    }

    /// Appends bytes: `bytes`, or anything else with a buffer.
    fn update(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = data.py();
        if let Ok(bytes) = data.cast::<PyBytes>() {
            self.append(py, bytes.as_bytes());
            return Ok(());
        }
        let view = PyMemoryView::from(data)?.call_method1("cast", ("B",))?;
        let len = view.len()? as isize;
        let mut at = 0;
        while at < len {
            let end = len.min(at + PIECE);
            let piece = view.get_item(PySlice::new(py, at, end, 1))?;
            let piece = piece.call_method0("tobytes")?;
            self.append(py, piece.cast::<PyBytes>()?.as_bytes());
            at = end;
        }
        Ok(())
    }

    /// Returns the digest of the bytes so far; more may follow.
    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let digest = self.with(py, |running| running.finalize());
        digest_object(py, &digest)
    }

    /// Returns the digest of the bytes so far in hexadecimal digits.
    fn hexdigest(&self, py: Python<'_>) -> String {
        self.with(py, |running| running.finalize()).to_string()
    }

    /// Returns another hasher that has seen the same bytes.
    fn copy(&self, py: Python<'_>) -> Hasher {
        Hasher {
            algorithm: self.algorithm,
            running: Mutex::new(self.with(py, |running| running.clone())),
        }
    }

    /// Name of the algorithm.
    #[getter]
    fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Bytes of the digest.
    #[getter]
    fn digest_size(&self) -> usize {
        self.algorithm.digest_len()
    }

    fn __repr__(&self) -> String {
        format!("<{} bit_crafts.Hasher>", self.algorithm.name())
    }
}
