//! Devices.

use super::layout::{
    IBV_EVENT_CQ_ERR, IBV_EVENT_QP_LAST_WQE_REACHED, ibv_async_event, ibv_context, ibv_device, ibv_device_attr,
    ibv_gid_entry, ibv_port_attr, ibv_qp,
};
use super::{Error, Library, Result, check, set_nonblocking};
use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

/// The devices of this machine, as libibverbs lists them.
struct DeviceList {
    library: &'static Library,
    array: NonNull<*mut ibv_device>,
    count: usize,
}

impl DeviceList {
    fn new(library: &'static Library) -> Result<Self> {
        let mut count: c_int = 0;
        // SAFETY: the function writes the count.
        let array = NonNull::new(unsafe { (library.get_device_list)(&raw mut count) }).ok_or_else(Error::last)?;
        Ok(DeviceList { library, array, count: usize::try_from(count).unwrap_or(0) })
    }

    fn devices(&self) -> &[*mut ibv_device] {
        // SAFETY: libibverbs has returned an array of that many pointers, which lives until it is freed.
        unsafe { std::slice::from_raw_parts(self.array.as_ptr(), self.count) }
    }

    fn name(&self, device: *mut ibv_device) -> String {
        // SAFETY: the device is one of the list; its name lives as long as the list.
        let name = unsafe { CStr::from_ptr((self.library.get_device_name)(device)) };
        name.to_string_lossy().into_owned()
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list was returned by ibv_get_device_list, and is freed once. Open devices stay valid.
        unsafe { (self.library.free_device_list)(self.array.as_ptr()) };
    }
}

/// Names of the devices of this machine.
pub(crate) fn device_names(library: &'static Library) -> Result<Vec<String>> {
    let list = DeviceList::new(library)?;
    Ok(list.devices().iter().map(|device| list.name(*device)).collect())
}

/// An asynchronous event: its type, and the number of the queue pair or port that it concerns, if it is one of those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawEvent {
    pub(crate) event_type: u32,
    pub(crate) number: u32,
}

/// An open device.
#[derive(Debug)]
pub(crate) struct Context {
    library: &'static Library,
    pointer: NonNull<ibv_context>,
    /// The process that has opened it.
    process: u32,
}

// SAFETY: libibverbs locks inside; a context may be used and closed by any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens a device; `None` if there is none of that name.
    pub(crate) fn open(library: &'static Library, name: &str) -> Result<Option<Self>> {
        let list = DeviceList::new(library)?;
        let Some(device) = list.devices().iter().find(|device| list.name(**device) == name) else { return Ok(None) };
        // SAFETY: the device is one of the list, which still exists.
        let pointer = NonNull::new(unsafe { (library.open_device)(*device) }).ok_or_else(Error::last)?;
        let context = Context { library, pointer, process: std::process::id() };
        set_nonblocking(context.async_fd())?;
        Ok(Some(context))
    }

    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    /// That this process has opened the device.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.is_of_this_process() { Ok(()) } else { Err(Error::Forked) }
    }

    pub(super) fn is_of_this_process(&self) -> bool {
        std::process::id() == self.process
    }

    /// The context for functions of libibverbs.
    pub(super) fn pointer(&self) -> *mut ibv_context {
        self.pointer.as_ptr()
    }

    /// The library's text for a status of a work completion.
    pub(crate) fn status_text(&self, status: u32) -> &'static str {
        self.library.status_text(status)
    }

    pub(crate) fn query_device(&self) -> Result<ibv_device_attr> {
        self.check_process()?;
        // SAFETY: numbers and arrays of numbers, of which zeros are values.
        let mut attributes: ibv_device_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open; the function writes a structure of this size.
        check(unsafe { (self.library.query_device)(self.pointer(), &raw mut attributes) })?;
        Ok(attributes)
    }

    pub(crate) fn query_port(&self, port: u8) -> Result<ibv_port_attr> {
        self.check_process()?;
        // SAFETY: numbers and arrays of numbers, of which zeros are values.
        let mut attributes: ibv_port_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open; the function writes less than the 128 octets that are there.
        check(unsafe { (self.library.query_port)(self.pointer(), port, &raw mut attributes) })?;
        Ok(attributes)
    }

    /// An entry of a port's GID table; `None` where the table has none.
    pub(crate) fn query_gid(&self, port: u8, index: u32) -> Result<Option<ibv_gid_entry>> {
        self.check_process()?;
        let mut entry = ibv_gid_entry::default();
        let (port, octets) = (u32::from(port), size_of::<ibv_gid_entry>());
        // SAFETY: the context is open; the function writes an entry of the length that it is given.
        let code = unsafe { (self.library.query_gid_ex)(self.pointer(), port, index, &raw mut entry, 0, octets) };
        match check(code) {
            Ok(()) => Ok(Some(entry)),
            Err(Error::System(error)) if error.raw_os_error() == Some(libc::ENODATA) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn async_fd(&self) -> c_int {
        // SAFETY: the context is open; the field never changes.
        unsafe { (*self.pointer()).async_fd }
    }

    /// The descriptor that is readable while an asynchronous event waits.
    pub(crate) fn event_descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the context.
        unsafe { BorrowedFd::borrow_raw(self.async_fd()) }
    }

    /// The next asynchronous event, if one waits.
    pub(crate) fn next_event(&self) -> Result<Option<RawEvent>> {
        self.check_process()?;
        let mut event = ibv_async_event { element: 0, event_type: 0 };
        // SAFETY: the context is open, and the descriptor does not block; the function writes the event.
        if unsafe { (self.library.get_async_event)(self.pointer(), &raw mut event) } != 0 {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(Error::System(error)),
            };
        }
        let number = if concerns_queue_pair(event.event_type) {
            let pair = event.element as *const ibv_qp;
            // SAFETY: for these types the element is a queue pair, which ibv_destroy_qp does not free before the event
            // has been acknowledged.
            unsafe { (*pair).qp_num }
        } else {
            // The port number of the union; half of a pointer for the other types, for which it is not read.
            event.element as u32
        };
        // SAFETY: the event was returned by ibv_get_async_event, and is acknowledged once.
        unsafe { (self.library.ack_async_event)(&raw mut event) };
        Ok(Some(RawEvent { event_type: event.event_type, number }))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.is_of_this_process() {
            // SAFETY: opened by ibv_open_device, closed once, after every handle that was made from it.
            unsafe { (self.library.close_device)(self.pointer()) };
        }
    }
}

/// Types 1 to 7, from `IBV_EVENT_QP_FATAL` to `IBV_EVENT_PATH_MIG_ERR`, and the last WQE (ibv_get_async_event(3)).
fn concerns_queue_pair(event_type: u32) -> bool {
    (IBV_EVENT_CQ_ERR + 1..super::layout::IBV_EVENT_DEVICE_FATAL).contains(&event_type)
        || event_type == IBV_EVENT_QP_LAST_WQE_REACHED
}

/// Whether a pointer that libibverbs returned can be used.
pub(super) fn returned<T>(pointer: *mut T) -> Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(Error::last)
}

/// No object.
pub(super) fn none<T>() -> *mut T {
    null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Buffer, Completions, Domain};
    use std::sync::Arc;

    fn is_forked<T>(result: &Result<T>) -> bool {
        matches!(result, Err(Error::Forked))
    }

    /// Nothing is called through the pointer, which is none.
    #[test]
    fn handles_fail_in_other_processes() {
        let library = Library::get().expect("libibverbs1 is installed for tests");
        let process = std::process::id().wrapping_add(1);
        let context = Arc::new(Context { library, pointer: NonNull::dangling(), process });
        assert!(is_forked(&context.query_device()));
        assert!(is_forked(&context.query_port(1)));
        assert!(is_forked(&context.query_gid(1, 0)));
        assert!(is_forked(&context.next_event()));
        assert!(is_forked(&Completions::new(&context, 16)));
        assert!(is_forked(&Domain::new(&context)));
        let domain = Arc::new(Domain::dangling(&context));
        let (memory, error) = domain.register(Buffer::new(16), None, 0).expect_err("it is of another process");
        assert!(matches!(error, Error::Forked));
        assert_eq!(crate::sys::Memory::octets(&memory), 16);
    }

    #[test]
    fn statuses_have_the_texts_of_the_library() {
        let library = Library::get().expect("libibverbs1 is installed for tests");
        assert_eq!(library.status_text(10), "remote access error");
        assert_eq!(library.status_text(12), "transport retry counter exceeded");
        assert_eq!(library.status_text(9999), "unknown");
    }

    #[test]
    fn events_of_queue_pairs_are_recognised() {
        let with_pair: Vec<u32> = (0..25).filter(|event_type| concerns_queue_pair(*event_type)).collect();
        assert_eq!(with_pair, [1, 2, 3, 4, 5, 6, 7, 16]);
    }
}
