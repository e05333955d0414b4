//! Memory of GPUs, which the processor cannot read: it is refused by name (D203).
#![allow(unsafe_code, reason = "a function of the CUDA driver")]

use libloading::os::unix::{Library, RTLD_LAZY};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

/// `cuPointerGetAttribute` of the CUDA driver: writes an attribute of an address.
type PointerGetAttribute = unsafe extern "C" fn(data: *mut c_void, attribute: c_int, address: u64) -> c_int;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`, an `unsigned int`, and its value for memory of a device.
const MEMORY_TYPE: c_int = 2;
const MEMORY_TYPE_DEVICE: u32 = 2;
/// `CU_POINTER_ATTRIBUTE_IS_MANAGED`, a `bool`: the processor can read it, too.
const IS_MANAGED: c_int = 8;
/// Of `dlopen`: only a library that the process has already.
const RTLD_NOLOAD: c_int = 4;

/// Whether an address is that of memory of a CUDA device, which the processor cannot read. Without the CUDA driver in
/// the process there is none.
pub(crate) fn is_device_memory(base: NonNull<u8>) -> bool {
    let Some(get_attribute) = driver() else { return false };
    let mut memory_type = 0_u32;
    let mut is_managed = 0_u32;
    let address = base.as_ptr() as u64;
    // SAFETY: the driver takes any address; the results have room for the attributes, of four octets and of one.
    let results = unsafe {
        [
            get_attribute((&raw mut memory_type).cast(), MEMORY_TYPE, address),
            get_attribute((&raw mut is_managed).cast(), IS_MANAGED, address),
        ]
    };
    // An address that the driver does not know is an error there.
    results[0] == 0 && memory_type == MEMORY_TYPE_DEVICE && !(results[1] == 0 && is_managed != 0)
}

/// The driver's function, once the process has the driver.
fn driver() -> Option<PointerGetAttribute> {
    static FOUND: OnceLock<PointerGetAttribute> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Some(*found);
    }
    // SAFETY: nothing is loaded, so that no initialisation runs.
    let library = unsafe { Library::open(Some("libcuda.so.1"), RTLD_NOLOAD | RTLD_LAZY) }.ok()?;
    // SAFETY: the type is that of cuda.h.
    let function = *unsafe { library.get::<PointerGetAttribute>("cuPointerGetAttribute") }.ok()?;
    // The driver stays loaded.
    std::mem::forget(library);
    Some(*FOUND.get_or_init(|| function))
}
