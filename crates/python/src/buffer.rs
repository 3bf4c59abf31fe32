//! The bytes of a large result, which arrays may use without a copy.

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;

/// Bytes with the buffer protocol. Each result has its own, so they are writable.
#[pyclass(frozen, module = "midflight._native")]
pub(crate) struct Buffer {
    bytes: Bytes,
}

struct Bytes {
    start: *mut u8,
    length: usize,
    capacity: usize,
}

// SAFETY: the memory belongs to this object alone; writers in Python follow Python's rules for buffers.
unsafe impl Send for Bytes {}
// SAFETY: this crate never reads or writes the bytes; see above.
unsafe impl Sync for Bytes {}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: these are the parts of a vector, and no view is left: each holds a reference to the object.
        drop(unsafe { Vec::from_raw_parts(self.start, self.length, self.capacity) });
    }
}

impl Buffer {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut bytes = std::mem::ManuallyDrop::new(bytes);
        Self { bytes: Bytes { start: bytes.as_mut_ptr(), length: bytes.len(), capacity: bytes.capacity() } }
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.bytes.length
    }

    /// # Safety
    /// Called by Python, with a view to fill in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let Bytes { start, length, .. } = slf.get().bytes;
        let length = isize::try_from(length).map_err(|_| PyBufferError::new_err("too large"))?;
        // SAFETY: `view` is Python's; the bytes live as long as the object, to which the view holds a reference.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast(), length, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
