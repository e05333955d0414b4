//! The shared library and its functions.

use super::layout::{
    ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr, ibv_gid_entry, ibv_mr, ibv_pd,
    ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_init_attr,
};
use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// Name by which the dynamic linker finds it.
pub(crate) const LIBRARY_NAME: &str = "libibverbs.so.1";

/// Why the library cannot be used.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The dynamic linker's reason.
    Missing(String),
    /// A function that it does not have.
    Symbol(&'static str),
}

macro_rules! functions {
    ($($field:ident: $symbol:literal = $type:ty;)*) => {
        /// Functions by their names without `ibv_`.
        #[derive(Debug)]
        pub(crate) struct Library {
            $(pub(super) $field: $type,)*
            /// Since rdma-core 34.
            pub(super) reg_dmabuf_mr: Option<RegDmabufMr>,
        }

        impl Library {
            /// Finds the functions in a library. It is never unloaded, so that they stay valid.
            fn of(library: &'static libloading::Library) -> Result<Self, LoadError> {
                Ok(Library {
                    // SAFETY: the types are those of infiniband/verbs.h; dlsym(3) returns the default version of a
                    // symbol, which is the one that programs are linked to.
                    $($field: *unsafe { library.get::<$type>($symbol) }.map_err(|_| LoadError::Symbol($symbol))?,)*
                    // SAFETY: as above.
                    reg_dmabuf_mr: unsafe { library.get::<RegDmabufMr>("ibv_reg_dmabuf_mr") }.ok().map(|found| *found),
                })
            }
        }
    };
}

type RegDmabufMr = unsafe extern "C" fn(*mut ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ibv_mr;

functions! {
    get_device_list: "ibv_get_device_list" = unsafe extern "C" fn(*mut c_int) -> *mut *mut ibv_device;
    free_device_list: "ibv_free_device_list" = unsafe extern "C" fn(*mut *mut ibv_device);
    get_device_name: "ibv_get_device_name" = unsafe extern "C" fn(*mut ibv_device) -> *const c_char;
    open_device: "ibv_open_device" = unsafe extern "C" fn(*mut ibv_device) -> *mut ibv_context;
    close_device: "ibv_close_device" = unsafe extern "C" fn(*mut ibv_context) -> c_int;
    query_device: "ibv_query_device" = unsafe extern "C" fn(*mut ibv_context, *mut ibv_device_attr) -> c_int;
    query_port: "ibv_query_port" = unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int;
    query_gid_ex: "_ibv_query_gid_ex" =
        unsafe extern "C" fn(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32, usize) -> c_int;
    get_async_event: "ibv_get_async_event" = unsafe extern "C" fn(*mut ibv_context, *mut ibv_async_event) -> c_int;
    ack_async_event: "ibv_ack_async_event" = unsafe extern "C" fn(*mut ibv_async_event);
    alloc_pd: "ibv_alloc_pd" = unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd;
    dealloc_pd: "ibv_dealloc_pd" = unsafe extern "C" fn(*mut ibv_pd) -> c_int;
    reg_mr: "ibv_reg_mr" = unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
    reg_mr_iova2: "ibv_reg_mr_iova2" =
        unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, u64, c_uint) -> *mut ibv_mr;
    dereg_mr: "ibv_dereg_mr" = unsafe extern "C" fn(*mut ibv_mr) -> c_int;
    create_comp_channel: "ibv_create_comp_channel" = unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_comp_channel;
    destroy_comp_channel: "ibv_destroy_comp_channel" = unsafe extern "C" fn(*mut ibv_comp_channel) -> c_int;
    create_cq: "ibv_create_cq" =
        unsafe extern "C" fn(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
    destroy_cq: "ibv_destroy_cq" = unsafe extern "C" fn(*mut ibv_cq) -> c_int;
    get_cq_event: "ibv_get_cq_event" =
        unsafe extern "C" fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
    ack_cq_events: "ibv_ack_cq_events" = unsafe extern "C" fn(*mut ibv_cq, c_uint);
    create_qp: "ibv_create_qp" = unsafe extern "C" fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
    modify_qp: "ibv_modify_qp" = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
    destroy_qp: "ibv_destroy_qp" = unsafe extern "C" fn(*mut ibv_qp) -> c_int;
    wc_status_str: "ibv_wc_status_str" = unsafe extern "C" fn(c_uint) -> *const c_char;
}

impl Library {
    /// The library of the system, loaded at the first call that succeeds.
    pub(crate) fn get() -> Result<&'static Self, LoadError> {
        static LOADED: OnceLock<Library> = OnceLock::new();
        match LOADED.get() {
            Some(library) => Ok(library),
            None => {
                let library = Self::load(LIBRARY_NAME)?;
                Ok(LOADED.get_or_init(|| library))
            }
        }
    }

    /// Loads a library by the dynamic linker's rules.
    pub(crate) fn load(name: &str) -> Result<Self, LoadError> {
        // SAFETY: initialisation of libibverbs has no preconditions: it sets up tables and a mutex.
        let library = unsafe { libloading::Library::new(name) };
        let library = library.map_err(|error| {
            // The dynamic linker's text is the source of the error.
            LoadError::Missing(error.source().map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        Self::of(Box::leak(Box::new(library)))
    }

    /// The library's text for a status of a work completion.
    pub(crate) fn status_text(&self, status: u32) -> &'static str {
        // SAFETY: the function takes any number, and returns a constant string: "unknown" for numbers that it does not
        // know.
        let text = unsafe { CStr::from_ptr((self.wc_status_str)(status)) };
        text.to_str().unwrap_or("unknown")
    }
}
