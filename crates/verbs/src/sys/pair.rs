//! Queue pairs.

use super::context::{none, returned};
use super::layout::{
    IBV_QPT_RC, IBV_SEND_SIGNALED, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr, ibv_recv_wr, ibv_send_wr, ibv_sge,
};
use super::{Completions, Domain, Error, Result, check};
use std::ffi::c_int;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// An RC queue pair.
#[derive(Debug)]
pub(crate) struct Pair {
    pointer: NonNull<ibv_qp>,
    domain: Arc<Domain>,
    _send_completions: Arc<Completions>,
    _receive_completions: Arc<Completions>,
}

// SAFETY: libibverbs locks inside; a queue pair may be used and destroyed by any thread.
unsafe impl Send for Pair {}
// SAFETY: as above.
unsafe impl Sync for Pair {}

/// A request of the send queue.
#[derive(Debug)]
pub(crate) struct SendWork {
    pub(crate) id: u64,
    pub(crate) opcode: u32,
    pub(crate) immediate: u32,
    pub(crate) remote_address: u64,
    pub(crate) rkey: u32,
    pub(crate) is_signalled: bool,
}

impl Pair {
    /// A queue pair in state RESET; `capacity` becomes what the provider has made of it.
    pub(crate) fn new(
        domain: &Arc<Domain>,
        send: &Arc<Completions>,
        receive: &Arc<Completions>,
        capacity: &mut ibv_qp_cap,
    ) -> Result<Self> {
        let context = domain.context();
        context.check_process()?;
        if [send, receive].iter().any(|queue| !Arc::ptr_eq(queue.context(), context)) {
            return Err(Error::System(io::Error::from_raw_os_error(libc::EINVAL)));
        }
        let mut attributes = ibv_qp_init_attr {
            qp_context: none(),
            send_cq: send.pointer(),
            recv_cq: receive.pointer(),
            srq: none(),
            cap: *capacity,
            qp_type: IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: domain and queues exist, in the same context; the function reads and writes the attributes.
        let pointer = returned(unsafe { (context.library().create_qp)(domain.pointer(), &raw mut attributes) })?;
        *capacity = attributes.cap;
        Ok(Pair {
            pointer,
            domain: Arc::clone(domain),
            _send_completions: Arc::clone(send),
            _receive_completions: Arc::clone(receive),
        })
    }

    pub(crate) fn number(&self) -> u32 {
        // SAFETY: the queue pair exists; the field never changes.
        unsafe { (*self.pointer.as_ptr()).qp_num }
    }

    pub(crate) fn modify(&self, attributes: &ibv_qp_attr, mask: u32) -> Result<()> {
        let context = self.domain.context();
        context.check_process()?;
        let mut attributes = *attributes;
        // SAFETY: the queue pair exists; the kernel checks the attributes, which are numbers.
        check(unsafe { (context.library().modify_qp)(self.pointer.as_ptr(), &raw mut attributes, mask as c_int) })
    }

    /// Posts a request to the send queue. Providers copy the list.
    pub(crate) fn post_send(&self, work: &SendWork, elements: &[ibv_sge]) -> Result<()> {
        self.domain.context().check_process()?;
        let mut request = ibv_send_wr {
            wr_id: work.id,
            next: none(),
            sg_list: elements.as_ptr().cast_mut(),
            num_sge: c_int::try_from(elements.len()).unwrap_or(c_int::MAX),
            opcode: work.opcode,
            send_flags: if work.is_signalled { IBV_SEND_SIGNALED } else { 0 },
            imm_data: work.immediate.to_be(),
            remote_addr: work.remote_address,
            rkey: work.rkey,
            others: [0; 9],
        };
        let mut refused = none();
        // SAFETY: the queue pair exists, and so does its context, whose operations never change. The list is read, not
        // written, and only in this call. The device accesses memory by keys alone, since no data are inline.
        check(unsafe {
            let context = (*self.pointer.as_ptr()).context;
            ((*context).ops.post_send)(self.pointer.as_ptr(), &raw mut request, &raw mut refused)
        })
    }

    /// Posts a request to the receive queue. Providers copy the list.
    pub(crate) fn post_receive(&self, id: u64, elements: &[ibv_sge]) -> Result<()> {
        self.domain.context().check_process()?;
        let mut request = ibv_recv_wr {
            wr_id: id,
            next: none(),
            sg_list: elements.as_ptr().cast_mut(),
            num_sge: c_int::try_from(elements.len()).unwrap_or(c_int::MAX),
        };
        let mut refused = none();
        // SAFETY: as in `post_send`.
        check(unsafe {
            let context = (*self.pointer.as_ptr()).context;
            ((*context).ops.post_recv)(self.pointer.as_ptr(), &raw mut request, &raw mut refused)
        })
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let context = self.domain.context();
        if context.is_of_this_process() {
            // SAFETY: made by ibv_create_qp, destroyed once, before domain and completion queues.
            unsafe { (context.library().destroy_qp)(self.pointer.as_ptr()) };
        }
    }
}
