//! Results in Python: lists that stay here and make an object of an item when it is asked for.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PySlice, PyTuple, PyType};

/// A part of a result that becomes a Python object.
pub(crate) trait Item: Send + Sync + 'static {
    /// Makes the object.
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// A list of items, all of one type.
trait ItemList: Send + Sync {
    fn count(&self) -> usize;
    fn at<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>>;
}

impl<T: Item> ItemList for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn at<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        self[at].object(py)
    }
}

/// A class of `bit_crafts/_results.py`.
pub(crate) struct ResultClass {
    name: &'static str,
    found: PyOnceLock<Py<PyType>>,
}

impl ResultClass {
    pub(crate) const fn new(name: &'static str) -> ResultClass {
        ResultClass {
            name,
            found: PyOnceLock::new(),
        }
    }

    fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyType>> {
        self.found.import(py, "bit_crafts._results", self.name)
    }

    /// Makes a named tuple of these fields.
    pub(crate) fn tuple<'py>(
        &self,
        py: Python<'py>,
        fields: impl IntoPyObject<
            'py,
            Target = PyTuple,
            Output = Bound<'py, PyTuple>,
            Error: Into<PyErr>,
        >,
    ) -> PyResult<Bound<'py, PyAny>> {
        static NEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        // Its own `__new__` is Python code, three times as slow.
        let new = NEW.get_or_try_init(py, || {
            let new = py.get_type::<PyTuple>().getattr("__new__")?;
            Ok::<_, PyErr>(new.unbind())
        })?;
        new.bind(py)
            .call1((self.get(py)?, fields.into_pyobject(py).map_err(Into::into)?))
    }

    /// Makes a data class of these fields, which are in its order.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        fields: impl IntoPyObject<
            'py,
            Target = PyTuple,
            Output = Bound<'py, PyTuple>,
            Error: Into<PyErr>,
        >,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.get(py)?
            .call1(fields.into_pyobject(py).map_err(Into::into)?)
    }
}

/// Makes a tuple of the items.
pub(crate) fn tuple_of<'py, T: Item>(
    py: Python<'py>,
    items: &[T],
) -> PyResult<Bound<'py, PyTuple>> {
    let objects = items.iter().map(|item| item.object(py));
    PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)
}

/// A sequence of results that is not a list: an item becomes an object when it is asked for, each
/// time anew.
#[pyclass(frozen, sequence, module = "bit_crafts._native")]
pub(crate) struct Items(Box<dyn ItemList>);

impl Items {
    pub(crate) fn new<T: Item>(items: Vec<T>) -> Items {
        Items(Box::new(items))
    }

    fn all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let objects = (0..self.0.count()).map(|at| self.0.at(py, at));
        PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)
    }
}

#[pymethods]
impl Items {
    fn __len__(&self) -> usize {
        self.0.count()
    }

    fn __getitem__<'py>(&self, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, count) = (at.py(), self.0.count() as isize);
        if let Ok(slice) = at.cast::<PySlice>() {
            let part = slice.indices(count)?;
            let numbers = (0..part.slicelength as isize).map(|n| part.start + n * part.step);
            let objects = numbers.map(|at| self.0.at(py, at as usize));
            let objects = objects.collect::<PyResult<Vec<_>>>()?;
            return Ok(PyTuple::new(py, objects)?.into_any());
        }
        let asked: isize = at.extract()?;
        let at = if asked < 0 { asked + count } else { asked };
        match (0..count).contains(&at) {
            true => self.0.at(py, at as usize),
            false => Err(PyIndexError::new_err(format!("no item {asked} of {count}"))),
        }
    }

    fn __iter__(this: Py<Items>) -> ItemsIterator {
        ItemsIterator { items: this, at: 0 }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = other.py();
        if !other.is_instance_of::<Items>() && !other.is_instance_of::<PyTuple>() {
            return Ok(false);
        }
        let other = py.get_type::<PyTuple>().call1((other,))?;
        self.all(py)?.eq(other)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 8;
        let count = self.0.count();
        let shown = (0..count.min(SHOWN)).map(|at| self.0.at(py, at)?.repr()?.extract::<String>());
        let mut shown = shown.collect::<PyResult<Vec<_>>>()?;
        if count > SHOWN {
            shown.push(format!("… {count} in all"));
        }
        Ok(format!("[{}]", shown.join(", ")))
    }

    /// Returns the position of the first item that is equal.
    fn index<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.all(value.py())?.call_method1("index", (value,))
    }

    /// Returns the number of items that are equal.
    fn count<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.all(value.py())?.call_method1("count", (value,))
    }

    /// Pickled, it is a tuple.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyTuple>,))> {
        Ok((py.get_type::<PyTuple>(), (self.all(py)?,)))
    }
}

/// Iterator over a sequence of results.
#[pyclass(module = "bit_crafts._native")]
pub(crate) struct ItemsIterator {
    items: Py<Items>,
    at: usize,
}

#[pymethods]
impl ItemsIterator {
    fn __iter__(this: Py<ItemsIterator>) -> Py<ItemsIterator> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let items = &self.items.get().0;
        if self.at == items.count() {
            return Ok(None);
        }
        self.at += 1;
        items.at(py, self.at - 1).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        self.items.get().0.count() - self.at
    }
}
