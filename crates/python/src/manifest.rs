//! Records of trees, read: their header, their entries one by one, and columns of many entries in
//! the layout of Arrow.

use bit_crafts::{Entry, Header, Kind, ManifestFile};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::hash::digest_object;
use crate::items::{Item, ResultClass};
use crate::job::{Call, Each, Job, Outcome};
use crate::paths::{PathArg, bytes_object};

/// Starts the reading of a header.
#[pyfunction]
pub(crate) fn header(file: PathArg, call: Call) -> PyResult<Job> {
    Job::start(&call, move |means, _| {
        ManifestFile::open_until(&file.0, means.cancelled_by())?.header()
    })
}

/// Starts the reading of all entries.
#[pyfunction]
pub(crate) fn entries(file: PathArg, call: Call) -> PyResult<Job> {
    Job::start(&call, move |means, each| {
        let manifest = ManifestFile::open_until(&file.0, means.cancelled_by())?;
        for entry in manifest.entries()? {
            each.give(entry?);
        }
        Ok(AllRead)
    })
}

/// Starts the reading of all entries as columns of so many rows.
#[pyfunction]
pub(crate) fn columns(file: PathArg, rows: usize, call: Call) -> PyResult<Job> {
    Job::start(&call, move |means, each| {
        let manifest = ManifestFile::open_until(&file.0, means.cancelled_by())?;
        let mut columns = Columns::default();
        for entry in manifest.entries()? {
            columns.push(&entry?);
            if columns.rows == rows.max(1) || columns.is_full() {
                give(std::mem::take(&mut columns), each);
            }
        }
        if columns.rows > 0 {
            give(columns, each);
        }
        Ok(AllRead)
    })
}

/// A batch is large: the next one is made while one waits.
fn give(columns: Columns, each: &Each) {
    each.give_few(columns, 2);
}

/// End of a manifest that was read to it.
#[derive(Clone)]
struct AllRead;

impl Outcome for AllRead {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(py.None().into_bound(py))
    }
}

impl Outcome for Header {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Header");
        let root = self.root.as_ref().map(|root| bytes_object(py, root));
        CLASS.make(
            py,
            (
                self.tool,
                self.version,
                self.algorithm,
                self.created_at,
                self.host,
                self.machine,
                root.transpose()?,
                self.fs_uuid,
            ),
        )
    }
}

impl Item for Entry {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Entry");
        let target = self.target.as_ref().map(|path| bytes_object(py, path));
        let meta = self.meta.as_ref();
        let error = failure_of(self);
        let digest = self.digest.as_ref().map(|digest| digest_object(py, digest));
        let times = (
            meta.map(|meta| meta.mtime_ns),
            meta.map(|meta| meta.ctime_ns),
        );
        let fields = [
            bytes_object(py, &self.path)?,
            self.kind.name().into_pyobject(py)?.into_any(),
            self.size().into_pyobject(py)?,
            digest.into_pyobject(py)?,
            meta.map(|meta| meta.mode).into_pyobject(py)?,
            meta.map(|meta| meta.uid).into_pyobject(py)?,
            meta.map(|meta| meta.gid).into_pyobject(py)?,
            times.0.into_pyobject(py)?,
            times.1.into_pyobject(py)?,
            meta.map(|meta| meta.ino).into_pyobject(py)?,
            meta.map(|meta| meta.nlink).into_pyobject(py)?,
            target.transpose()?.into_pyobject(py)?,
            self.verified_at.into_pyobject(py)?,
            self.found.map(|fault| fault.name()).into_pyobject(py)?,
            error.into_pyobject(py)?,
        ];
        CLASS.tuple(py, PyTuple::new(py, fields)?)
    }
}

/// Returns the operation and the reason of what could not be read.
fn failure_of(entry: &Entry) -> Option<String> {
    let failure = entry.error.as_ref()?;
    Some(format!("{}: {}", failure.op, failure.message))
}

/// Columns of some entries, as they are called in the lines of a manifest.
#[derive(Default)]
struct Columns {
    rows: usize,
    path: Texts,
    path_b64: Texts,
    kind: Texts,
    size: Numbers<u64>,
    digest: Texts,
    mode: Numbers<u32>,
    uid: Numbers<u32>,
    gid: Numbers<u32>,
    mtime_ns: Numbers<i64>,
    ctime_ns: Numbers<i64>,
    ino: Numbers<u64>,
    nlink: Numbers<u64>,
    target: Texts,
    target_b64: Texts,
    verified_at: Numbers<i64>,
    found: Texts,
    error: Texts,
}

impl Columns {
    /// True if a text column is so long that the batch ends, however few rows it has: a batch must not
    /// fill the memory, nor a column be longer than its offsets can count (2 GiB). Lines, and so
    /// entries, have 16 MiB at most.
    fn is_full(&self) -> bool {
        const MOST: usize = 32 << 20;
        let texts = [
            &self.path,
            &self.path_b64,
            &self.kind,
            &self.digest,
            &self.target,
            &self.target_b64,
            &self.found,
            &self.error,
        ];
        texts.iter().any(|column| column.text.len() >= MOST)
    }

    fn push(&mut self, entry: &Entry) {
        self.rows += 1;
        let meta = entry.meta.as_ref();
        push_path([&mut self.path, &mut self.path_b64], Some(&entry.path));
        let target = entry.target.as_deref();
        push_path([&mut self.target, &mut self.target_b64], target);
        self.kind.push(Some(Kind::name(entry.kind)));
        self.size.push(entry.size());
        let digest = entry.digest.map(|digest| digest.to_string());
        self.digest.push(digest.as_deref());
        self.mode.push(meta.map(|meta| meta.mode));
        self.uid.push(meta.map(|meta| meta.uid));
        self.gid.push(meta.map(|meta| meta.gid));
        self.mtime_ns.push(meta.map(|meta| meta.mtime_ns));
        self.ctime_ns.push(meta.map(|meta| meta.ctime_ns));
        self.ino.push(meta.map(|meta| meta.ino));
        self.nlink.push(meta.map(|meta| meta.nlink));
        self.verified_at.push(entry.verified_at);
        self.found.push(entry.found.map(|fault| fault.name()));
        let error = failure_of(entry);
        self.error.push(error.as_deref());
    }
}

/// Appends a path to two columns: what can be shown of it, and base64 of bytes that are no text.
fn push_path([text, base64]: [&mut Texts; 2], path: Option<&[u8]>) {
    text.push(path.map(String::from_utf8_lossy).as_deref());
    let bytes = path.filter(|path| std::str::from_utf8(path).is_err());
    base64.push(bytes.map(in_base64).as_deref());
}

/// Returns the bytes in base64 with padding, as manifests have them.
fn in_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let at = |n: usize| u32::from(part.get(n).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            let shown = digit <= part.len();
            text.push(if shown {
                char::from(DIGITS[value as usize])
            } else {
                '='
            });
        }
    }
    text
}

impl Item for Columns {
    /// Returns the number of rows, and for each column its name and its buffers.
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let columns = [
            ("path", self.path.buffers(py)?),
            ("path_b64", self.path_b64.buffers(py)?),
            ("kind", self.kind.buffers(py)?),
            ("size", self.size.buffers(py)?),
            ("digest", self.digest.buffers(py)?),
            ("mode", self.mode.buffers(py)?),
            ("uid", self.uid.buffers(py)?),
            ("gid", self.gid.buffers(py)?),
            ("mtime_ns", self.mtime_ns.buffers(py)?),
            ("ctime_ns", self.ctime_ns.buffers(py)?),
            ("ino", self.ino.buffers(py)?),
            ("nlink", self.nlink.buffers(py)?),
            ("target", self.target.buffers(py)?),
            ("target_b64", self.target_b64.buffers(py)?),
            ("verified_at", self.verified_at.buffers(py)?),
            ("found", self.found.buffers(py)?),
            ("error", self.error.buffers(py)?),
        ];
        Ok((self.rows, columns.to_vec()).into_pyobject(py)?.into_any())
    }
}

/// Bits that say which rows have a value.
#[derive(Default)]
struct Validity {
    bits: Vec<u8>,
    rows: usize,
}

impl Validity {
    fn push(&mut self, is_valid: bool) {
        if self.rows.is_multiple_of(8) {
            self.bits.push(0);
        }
        let last = self.bits.len() - 1;
        self.bits[last] |= u8::from(is_valid) << (self.rows % 8);
        self.rows += 1;
    }
}

/// A column of text: where each ends, and all of it.
struct Texts {
    validity: Validity,
    ends: Vec<i32>,
    text: Vec<u8>,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts {
            validity: Validity::default(),
            ends: vec![0],
            text: Vec::new(),
        }
    }
}

impl Texts {
    fn push(&mut self, text: Option<&str>) {
        self.validity.push(text.is_some());
        self.text.extend_from_slice(text.unwrap_or("").as_bytes());
        // A batch ends before that: see `Columns::is_full`.
        self.ends
            .push(i32::try_from(self.text.len()).unwrap_or(i32::MAX));
    }

    fn buffers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ends: Vec<u8> = self.ends.iter().flat_map(|end| end.to_ne_bytes()).collect();
        let parts = [&self.validity.bits, &ends, &self.text];
        PyTuple::new(py, parts.map(|part| PyBytes::new(py, part)))
    }
}

/// A column of numbers.
#[derive(Default)]
struct Numbers<T> {
    validity: Validity,
    values: Vec<T>,
}

impl<T: Number> Numbers<T> {
    fn push(&mut self, value: Option<T>) {
        self.validity.push(value.is_some());
        self.values.push(value.unwrap_or_default());
    }

    fn buffers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut bytes = Vec::with_capacity(self.values.len() * size_of::<T>());
        self.values.iter().for_each(|value| value.write(&mut bytes));
        let parts = [&self.validity.bits, &bytes];
        PyTuple::new(py, parts.map(|part| PyBytes::new(py, part)))
    }
}

/// A number in the layout of this machine.
trait Number: Copy + Default {
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

numbers! { u32 u64 i64 }
