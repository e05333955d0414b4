//! Completion queues with their completion channels.

use super::context::{none, returned};
use super::layout::{ibv_comp_channel, ibv_cq, ibv_wc};
use super::{Context, Error, Result, check, set_nonblocking};
use std::ffi::c_int;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

/// A completion channel.
#[derive(Debug)]
struct Channel {
    context: Arc<Context>,
    pointer: NonNull<ibv_comp_channel>,
}

impl Channel {
    fn new(context: &Arc<Context>) -> Result<Self> {
        context.check_process()?;
        // SAFETY: the context is open.
        let pointer = returned(unsafe { (context.library().create_comp_channel)(context.pointer()) })?;
        let channel = Channel { context: Arc::clone(context), pointer };
        set_nonblocking(channel.fd())?;
        Ok(channel)
    }

    fn fd(&self) -> c_int {
        // SAFETY: the channel exists; the field never changes.
        unsafe { (*self.pointer.as_ptr()).fd }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if self.context.is_of_this_process() {
            // SAFETY: made by ibv_create_comp_channel, destroyed once, after its completion queue.
            unsafe { (self.context.library().destroy_comp_channel)(self.pointer.as_ptr()) };
        }
    }
}

/// A completion queue; its channel has no other one.
#[derive(Debug)]
pub(crate) struct Completions {
    pointer: NonNull<ibv_cq>,
    /// Destroyed after the queue.
    channel: Channel,
}

// SAFETY: libibverbs locks inside; queue and channel may be used and destroyed by any thread.
unsafe impl Send for Completions {}
// SAFETY: as above.
unsafe impl Sync for Completions {}

impl Completions {
    /// A queue for at least `entries` completions.
    pub(crate) fn new(context: &Arc<Context>, entries: u32) -> Result<Self> {
        let channel = Channel::new(context)?;
        let entries = c_int::try_from(entries).unwrap_or(c_int::MAX);
        let create = context.library().create_cq;
        // SAFETY: context and channel exist; completion vector 0 always does.
        let pointer = returned(unsafe { create(context.pointer(), entries, none(), channel.pointer.as_ptr(), 0) })?;
        Ok(Completions { pointer, channel })
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.channel.context
    }

    pub(super) fn pointer(&self) -> *mut ibv_cq {
        self.pointer.as_ptr()
    }

    /// Takes completions from the queue; the number of them.
    pub(crate) fn poll(&self, completions: &mut [ibv_wc]) -> Result<usize> {
        self.context().check_process()?;
        let most = c_int::try_from(completions.len()).unwrap_or(c_int::MAX);
        // SAFETY: the queue exists, and so does its context, whose operations never change; the provider writes at most
        // `most` completions.
        let count = unsafe {
            let context = (*self.pointer()).context;
            ((*context).ops.poll_cq)(self.pointer(), most, completions.as_mut_ptr())
        };
        // A negative number is no error number, but the provider's own.
        usize::try_from(count).map_err(|_| Error::System(io::Error::from_raw_os_error(libc::EIO)))
    }

    /// Requests an event at the next completion.
    pub(crate) fn request_notification(&self) -> Result<()> {
        self.context().check_process()?;
        // SAFETY: as in `poll`.
        check(unsafe {
            let context = (*self.pointer()).context;
            ((*context).ops.req_notify_cq)(self.pointer(), 0)
        })
    }

    /// The descriptor that is readable while an event waits.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel.
        unsafe { BorrowedFd::borrow_raw(self.channel.fd()) }
    }

    /// Takes all events from the channel; the number of them.
    pub(crate) fn take_events(&self) -> Result<u32> {
        self.context().check_process()?;
        let library = self.context().library();
        let mut count = 0;
        let result = loop {
            let (mut queue, mut user) = (none(), none());
            // SAFETY: the channel exists, and its descriptor does not block; the function writes two pointers.
            if unsafe { (library.get_cq_event)(self.channel.pointer.as_ptr(), &raw mut queue, &raw mut user) } == 0 {
                count += 1;
                continue;
            }
            break match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(count),
                error => Err(Error::System(error)),
            };
        };
        if count > 0 {
            // SAFETY: the channel has this queue alone, so that the events are its own; each is acknowledged once, and
            // before the queue is destroyed, which would wait for it.
            unsafe { (library.ack_cq_events)(self.pointer(), count) };
        }
        result
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        if self.context().is_of_this_process() {
            // SAFETY: made by ibv_create_cq, destroyed once, after the queue pairs that use it.
            unsafe { (self.context().library().destroy_cq)(self.pointer()) };
        }
    }
}
