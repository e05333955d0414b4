//! Python objects as buffers that are published, in place.
#![allow(unsafe_code, reason = "memory of Python objects")]

use super::dlpack;
use crate::errors::{exception, name};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use srdma::Buffer;
use std::ptr::NonNull;

/// A buffer with the memory of an object: one with the buffer protocol, such as `bytes` or a numpy array, or one with
/// `__dlpack__`, such as a torch tensor.
pub(crate) fn of(name: String, object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
    // A tensor that is not in memory of the host has no buffer protocol either.
    if let Ok(export) = PyUntypedBuffer::get(object) {
        return exported(name, object, export);
    }
    if object.hasattr("__dlpack__")? {
        return dlpack::buffer(name, object);
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!("buffer {name:?}: {kind} has neither the buffer protocol nor __dlpack__")))
}

fn exported(name: String, object: &Bound<'_, PyAny>, export: PyUntypedBuffer) -> PyResult<Buffer> {
    if !export.is_c_contiguous() {
        return Err(not_contiguous(object.py(), &name));
    }
    let length = export.len_bytes();
    let Some(base) = NonNull::new(export.buf_ptr().cast()).filter(|_| length > 0) else {
        return Ok(Buffer::new(name, []));
    };
    // SAFETY: the export keeps the memory at its place until it is dropped.
    Ok(unsafe { Buffer::with_owner(name, base, length, export) })
}

pub(crate) fn not_contiguous(py: Python<'_>, name: &str) -> PyErr {
    let text =
        format!("buffer {name:?} is not contiguous: make a copy of it, as by numpy.ascontiguousarray or .contiguous()");
    exception(py, name::NotContiguous, &text)
}
