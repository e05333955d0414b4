//! Completion queues.

use crate::device::Device;
use crate::error::Result;
use crate::sys::layout::{
    IBV_WC_BAD_RESP_ERR, IBV_WC_FATAL_ERR, IBV_WC_GENERAL_ERR, IBV_WC_LOC_ACCESS_ERR, IBV_WC_LOC_LEN_ERR,
    IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_RDMA_WRITE, IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM,
    IBV_WC_REM_ABORT_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RESP_TIMEOUT_ERR,
    IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_SEND, IBV_WC_SUCCESS, IBV_WC_WITH_IMM, IBV_WC_WR_FLUSH_ERR,
    ibv_wc,
};
use crate::sys::{Completions, Context};
use srdma_wire::Qpn;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use thiserror::Error;

/// Completions taken from the queue by one call.
const BATCH: usize = 32;

/// A completion queue with a completion channel of its own.
///
/// To wait without polling: [`request_notification`](CompletionQueue::request_notification), then
/// [`poll`](CompletionQueue::poll) until it returns nothing, then wait until the descriptor is readable, then
/// [`take_events`](CompletionQueue::take_events), and again from the beginning. A completion between the request and
/// the wait makes the descriptor readable.
#[derive(Clone, Debug)]
pub struct CompletionQueue {
    device: Device,
    completions: Arc<Completions>,
}

impl CompletionQueue {
    pub(crate) fn new(device: &Device, entries: u32) -> Result<Self> {
        let completions = Completions::new(device.context(), entries);
        let failed = |error| device.error(format!("create a completion queue of {entries} entries"), error);
        Ok(CompletionQueue { device: device.clone(), completions: Arc::new(completions.map_err(failed)?) })
    }

    /// Appends completions to `to`, at most 32; their number. 0 means that the queue is empty.
    ///
    /// # Errors
    ///
    /// If the device has failed.
    pub fn poll(&self, to: &mut Vec<Completion>) -> Result<usize> {
        let mut batch = [ibv_wc::default(); BATCH];
        let count = self.completions.poll(&mut batch);
        let count = count.map_err(|error| self.device.error("poll a completion queue", error))?;
        to.extend(batch.iter().take(count).map(|completion| Completion::of(self.device.context(), completion)));
        Ok(count)
    }

    /// Requests that the next completion makes the descriptor readable, once.
    ///
    /// # Errors
    ///
    /// If the device has failed.
    pub fn request_notification(&self) -> Result<()> {
        let result = self.completions.request_notification();
        result.map_err(|error| self.device.error("request a completion event", error))
    }

    /// Takes all events from the channel, so that the descriptor is not readable; their number. It does not block.
    ///
    /// # Errors
    ///
    /// If the device has failed.
    pub fn take_events(&self) -> Result<u32> {
        self.completions.take_events().map_err(|error| self.device.error("take completion events", error))
    }

    pub(crate) fn completions(&self) -> &Arc<Completions> {
        &self.completions
    }
}

/// The descriptor of the completion channel: readable while an event waits.
impl AsFd for CompletionQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.completions.descriptor()
    }
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Identifier that the request was posted with.
    pub id: u64,
    /// Number of the queue pair.
    pub qpn: Qpn,
    /// The result of the request. After an error the queue pair is in error: requests in its queues end by
    /// [`WorkStatus::Flushed`], and it must be made anew.
    pub result: Result<Completed, WorkError>,
}

/// A request that has ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// A SEND was acknowledged.
    Send,
    /// A WRITE, with or without immediate, was acknowledged.
    Write,
    /// A SEND was received.
    Receive {
        /// Length of the message.
        octets: u32,
        /// Immediate data, if there were some.
        immediate: Option<u32>,
    },
    /// A WRITE with immediate was received: its octets are in the region that it has named.
    ReceiveWrite {
        /// Length of the message.
        octets: u32,
        /// Immediate data.
        immediate: u32,
    },
    /// Another operation, by its number in `enum ibv_wc_opcode`.
    Other(u32),
}

/// A request that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{text} ({status:?}, vendor error {vendor_error:#x})")]
pub struct WorkError {
    /// The reason.
    pub status: WorkStatus,
    /// Its text in libibverbs.
    pub text: &'static str,
    /// A number of the device.
    pub vendor_error: u32,
}

/// Why a request has failed (`enum ibv_wc_status`, ibv_poll_cq(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStatus {
    /// The message does not fit its elements, or is longer than the device allows.
    LocalLength,
    /// The queue pair cannot do the operation in its state.
    LocalOperation,
    /// An element is in no region that allows the access.
    LocalProtection,
    /// The queue pair was in error before the request began.
    Flushed,
    /// The peer has sent an unexpected response.
    BadResponse,
    /// The device could not write received data to a region.
    LocalAccess,
    /// The peer's queue pair refused the request.
    RemoteInvalidRequest,
    /// The peer's memory region, or its rkey, does not allow the access.
    RemoteAccess,
    /// The peer could not complete the request.
    RemoteOperation,
    /// No acknowledgement came, after all retries.
    RetriesExceeded,
    /// The peer had no receive posted, after all retries.
    RnrRetriesExceeded,
    /// The peer has given up.
    RemoteAborted,
    /// The device has failed.
    Fatal,
    /// The peer did not respond in time.
    ResponseTimeout,
    /// Another error of the device.
    General,
    /// A status that this crate does not use, by its number.
    Other(u32),
}

impl WorkStatus {
    fn of(status: u32) -> Self {
        match status {
            IBV_WC_LOC_LEN_ERR => WorkStatus::LocalLength,
            IBV_WC_LOC_QP_OP_ERR => WorkStatus::LocalOperation,
            IBV_WC_LOC_PROT_ERR => WorkStatus::LocalProtection,
            IBV_WC_WR_FLUSH_ERR => WorkStatus::Flushed,
            IBV_WC_BAD_RESP_ERR => WorkStatus::BadResponse,
            IBV_WC_LOC_ACCESS_ERR => WorkStatus::LocalAccess,
            IBV_WC_REM_INV_REQ_ERR => WorkStatus::RemoteInvalidRequest,
            IBV_WC_REM_ACCESS_ERR => WorkStatus::RemoteAccess,
            IBV_WC_REM_OP_ERR => WorkStatus::RemoteOperation,
            IBV_WC_RETRY_EXC_ERR => WorkStatus::RetriesExceeded,
            IBV_WC_RNR_RETRY_EXC_ERR => WorkStatus::RnrRetriesExceeded,
            IBV_WC_REM_ABORT_ERR => WorkStatus::RemoteAborted,
            IBV_WC_FATAL_ERR => WorkStatus::Fatal,
            IBV_WC_RESP_TIMEOUT_ERR => WorkStatus::ResponseTimeout,
            IBV_WC_GENERAL_ERR => WorkStatus::General,
            other => WorkStatus::Other(other),
        }
    }
}

impl Completion {
    fn of(context: &Context, completion: &ibv_wc) -> Self {
        let result = match completion.status {
            IBV_WC_SUCCESS => Ok(Completed::of(completion)),
            status => Err(WorkError {
                status: WorkStatus::of(status),
                text: context.status_text(status),
                vendor_error: completion.vendor_err,
            }),
        };
        // A queue pair number has 24 bits.
        let [_, qpn @ ..] = completion.qp_num.to_be_bytes();
        Completion { id: completion.wr_id, qpn: Qpn::from_octets(qpn), result }
    }
}

impl Completed {
    fn of(completion: &ibv_wc) -> Self {
        let immediate = u32::from_be(completion.imm_data);
        let octets = completion.byte_len;
        let has_immediate = completion.wc_flags & IBV_WC_WITH_IMM != 0;
        match completion.opcode {
            IBV_WC_SEND => Completed::Send,
            IBV_WC_RDMA_WRITE => Completed::Write,
            IBV_WC_RECV => Completed::Receive { octets, immediate: has_immediate.then_some(immediate) },
            IBV_WC_RECV_RDMA_WITH_IMM => Completed::ReceiveWrite { octets, immediate },
            other => Completed::Other(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(opcode: u32, wc_flags: u32) -> Completed {
        // Immediate data are in network byte order.
        let imm_data = u32::from_ne_bytes([1, 2, 3, 4]);
        Completed::of(&ibv_wc { opcode, byte_len: 100, imm_data, wc_flags, ..ibv_wc::default() })
    }

    #[test]
    fn operations_are_those_of_the_header() {
        assert_eq!(completed(0, 0), Completed::Send);
        assert_eq!(completed(1, 0), Completed::Write);
        assert_eq!(completed(128, 0), Completed::Receive { octets: 100, immediate: None });
        assert_eq!(completed(128, 2), Completed::Receive { octets: 100, immediate: Some(0x0102_0304) });
        assert_eq!(completed(129, 2), Completed::ReceiveWrite { octets: 100, immediate: 0x0102_0304 });
        assert_eq!(completed(2, 0), Completed::Other(2));
    }

    #[test]
    fn a_status_is_named() {
        assert_eq!(WorkStatus::of(10), WorkStatus::RemoteAccess);
        assert_eq!(WorkStatus::of(12), WorkStatus::RetriesExceeded);
        assert_eq!(WorkStatus::of(5), WorkStatus::Flushed);
        assert_eq!(WorkStatus::of(6), WorkStatus::Other(6));
        let error = WorkError { status: WorkStatus::RemoteAccess, text: "remote access error", vendor_error: 0x88 };
        assert_eq!(error.to_string(), "remote access error (RemoteAccess, vendor error 0x88)");
    }
}
