//! Tensors by DLPack, versions 0 and 1 of its structures.
#![allow(unsafe_code, reason = "memory of Python objects")]

use super::buffer::not_contiguous;
use crate::errors::{exception, name};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use srdma::Buffer;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// Memory of the host, and pinned memory of it.
const DEVICES_OF_HOST: [i32; 2] = [1, 3];
const OLD: &CStr = c"dltensor";
const OLD_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";
/// Most dimensions that are looked at.
const MAX_DIMENSIONS: usize = 64;

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_number: i32,
    dimensions: i32,
    type_code: u8,
    type_bits: u8,
    type_lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// A tensor that was taken from its capsule, and is returned when it is dropped.
enum Taken {
    Old(NonNull<Managed>),
    Versioned(NonNull<ManagedVersioned>),
}

// SAFETY: the structure is only read, and its deleter may be called by any thread that is attached.
unsafe impl Send for Taken {}
// SAFETY: nothing writes it.
unsafe impl Sync for Taken {}

impl Taken {
    fn tensor(&self) -> &Tensor {
        match self {
            // SAFETY: the producer keeps the structure until its deleter is called.
            Taken::Old(managed) => unsafe { &managed.as_ref().tensor },
            // SAFETY: as above.
            Taken::Versioned(managed) => unsafe { &managed.as_ref().tensor },
        }
    }

    fn delete(&self) {
        match self {
            Taken::Old(managed) => {
                // SAFETY: the structure is valid until its deleter is called, here and once.
                unsafe { managed.as_ref().deleter.inspect(|deleter| deleter(managed.as_ptr())) };
            }
            Taken::Versioned(managed) => {
                // SAFETY: as above.
                unsafe { managed.as_ref().deleter.inspect(|deleter| deleter(managed.as_ptr())) };
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A deleter may free Python objects. While the interpreter ends there is no way to call it, and the memory
        // stays.
        let _ = Python::try_attach(|_| self.delete());
    }
}

/// A buffer with the memory of a tensor.
pub(crate) fn buffer(buffer_name: String, object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
    let py = object.py();
    let device: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    if !DEVICES_OF_HOST.contains(&device.0) {
        let text = format!(
            "buffer {buffer_name:?} is memory of a GPU or of another device (DLPack device {} {}), which this version \
             does not read: copy it to memory of the host, as by .cpu()",
            device.0, device.1
        );
        return Err(exception(py, name::DeviceMemory, &text));
    }
    let taken = take(&export(object, &buffer_name)?)?;
    let length = length_octets(taken.tensor()).map_err(|problem| match problem {
        Problem::NotContiguous => not_contiguous(py, &buffer_name),
        Problem::Invalid => PyValueError::new_err(format!("buffer {buffer_name:?}: its DLPack structure is invalid")),
    })?;
    let tensor = taken.tensor();
    let first = (tensor.data as usize).checked_add(tensor.byte_offset as usize).map(|first| first as *mut u8);
    let Some(base) = first.and_then(NonNull::new).filter(|_| length > 0) else {
        return Ok(Buffer::new(buffer_name, []));
    };
    // SAFETY: the producer keeps the memory until the deleter is called, when the owner is dropped.
    Ok(unsafe { Buffer::with_owner(buffer_name, base, length, taken) })
}

/// Asks for version 1, and for the earlier one of a producer that knows no versions.
fn export<'py>(object: &Bound<'py, PyAny>, buffer_name: &str) -> PyResult<Bound<'py, PyAny>> {
    let options = PyDict::new(object.py());
    options.set_item("max_version", (1, 0))?;
    let exported = match object.call_method("__dlpack__", (), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => object.call_method0("__dlpack__"),
        other => other,
    };
    exported.map_err(|error| {
        // As for a tensor that requires a gradient, whose message says what to do.
        PyBufferError::new_err(format!("buffer {buffer_name:?}: {}", error.value(object.py())))
    })
}

fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Taken> {
    let pointer = capsule.as_ptr();
    let of = |name: &CStr| {
        // SAFETY: the interpreter is attached; the name is compared, and the object may be any.
        let is_valid = unsafe { ffi::PyCapsule_IsValid(pointer, name.as_ptr()) } != 0;
        // SAFETY: the capsule is valid and has this name.
        is_valid.then(|| unsafe { ffi::PyCapsule_GetPointer(pointer, name.as_ptr()) })
    };
    // A capsule whose name says that it is used does not call the deleter.
    let used = |name: &'static CStr| {
        // SAFETY: the capsule is valid; the name lives for ever.
        unsafe { ffi::PyCapsule_SetName(pointer, name.as_ptr()) };
    };
    if let Some(managed) = of(VERSIONED).and_then(|managed| NonNull::new(managed.cast::<ManagedVersioned>())) {
        // SAFETY: what the capsule of this name has.
        let major = unsafe { managed.as_ref().major };
        if major != 1 {
            return Err(PyBufferError::new_err(format!("DLPack version {major} is not known")));
        }
        used(VERSIONED_USED);
        return Ok(Taken::Versioned(managed));
    }
    if let Some(managed) = of(OLD).and_then(|managed| NonNull::new(managed.cast::<Managed>())) {
        used(OLD_USED);
        return Ok(Taken::Old(managed));
    }
    Err(PyTypeError::new_err("__dlpack__ has returned no capsule of a tensor that was not used"))
}

enum Problem {
    NotContiguous,
    Invalid,
}

/// Octets of a tensor whose elements are one behind the other in the order of its indices.
fn length_octets(tensor: &Tensor) -> Result<usize, Problem> {
    let dimensions = usize::try_from(tensor.dimensions).map_err(|_| Problem::Invalid)?;
    if dimensions > MAX_DIMENSIONS || (dimensions > 0 && tensor.shape.is_null()) {
        return Err(Problem::Invalid);
    }
    let element_bits = usize::from(tensor.type_bits) * usize::from(tensor.type_lanes);
    let mut elements = 1_usize;
    let mut is_contiguous = true;
    for dimension in (0..dimensions).rev() {
        // SAFETY: shape, and strides if there are some, have as many elements as there are dimensions.
        let length = usize::try_from(unsafe { tensor.shape.add(dimension).read() }).map_err(|_| Problem::Invalid)?;
        if !tensor.strides.is_null() && length > 1 {
            // SAFETY: as above.
            let stride = unsafe { tensor.strides.add(dimension).read() };
            is_contiguous &= usize::try_from(stride).is_ok_and(|stride| stride == elements);
        }
        elements = elements.checked_mul(length).ok_or(Problem::Invalid)?;
    }
    // Without elements there is nothing that could lie apart.
    if elements > 0 && !is_contiguous {
        return Err(Problem::NotContiguous);
    }
    elements.checked_mul(element_bits).map(|bits| bits.div_ceil(8)).ok_or(Problem::Invalid)
}
