//! Buffers of versions as Python objects, in place.
#![allow(unsafe_code, reason = "memory of Python objects")]

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::c_int;
use std::sync::Arc;

/// Exports a buffer of a version.
#[pyclass(frozen, module = "srdma")]
pub(crate) struct View {
    version: Arc<srdma::Version>,
    index: usize,
}

/// A view of a buffer of a version, which keeps the version.
pub(crate) fn view(py: Python<'_>, version: Arc<srdma::Version>, index: usize) -> PyResult<Bound<'_, PyMemoryView>> {
    PyMemoryView::from(Bound::new(py, View { version, index })?.as_any())
}

#[pymethods]
impl View {
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let Some(octets) = slf.get().version.buffer_at(slf.get().index) else {
            return Err(PyBufferError::new_err("the version has no such buffer"));
        };
        let (start, length) = (octets.as_ptr().cast_mut().cast(), octets.len() as isize);
        let read_only = 1;
        // SAFETY: the view is the interpreter's, to be filled; the octets are valid and do not change as long as the
        // object exists, to which the view gets a reference.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, read_only, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}
