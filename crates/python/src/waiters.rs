//! The Python objects that wait for the calls of a task.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

pub(crate) enum Waiters {
    One(Py<PyAny>),
    Many(Vec<Py<PyAny>>),
}

impl Waiters {
    pub(crate) fn as_slice(&self) -> &[Py<PyAny>] {
        match self {
            Self::One(waiter) => std::slice::from_ref(waiter),
            Self::Many(waiters) => waiters,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub(crate) fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.as_slice())
    }
}
