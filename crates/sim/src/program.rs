//! Programs of a host: sending a stream as messages, receiving messages, and relaying.

use crate::replica::Replica;
use srdma_rc::{
    CompletedOperation, Completion, Endpoint, LocalRange, MemoryKey, Operation, Receive, RemoteAddress, WorkRequest,
};
use srdma_wire::{Instant, Qpn};

/// RDMA operation of the messages of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOperation {
    /// SEND: the peer posts a receive for each message.
    Send,
    /// RDMA WRITE: the peer's program is not notified.
    Write {
        /// Address of the peer's region.
        remote: RemoteAddress,
    },
    /// RDMA WRITE to regions of the peer in turn: message n goes to region n modulo `regions`, at the place that it has
    /// in the whole stream.
    WriteInTurn {
        /// Address of the first region.
        remote: RemoteAddress,
        /// Number of them, more than 0.
        regions: u32,
        /// From one region to the next: virtual addresses, and keys.
        stride: (u64, u32),
    },
    /// RDMA WRITE with immediate data: the peer posts a receive for each message and is notified.
    WriteImmediate {
        /// Address of the peer's region.
        remote: RemoteAddress,
    },
}

/// A stream to one peer: a region of the host, sent message by message.
#[derive(Clone, Debug)]
pub struct SendStream {
    stream: Stream,
    operation: MessageOperation,
    acknowledged_octets: u64,
    completed_at: Option<Instant>,
    /// No further message is posted.
    is_paused: bool,
}

/// A region that is sent or received as consecutive messages.
#[derive(Clone, Copy, Debug)]
struct Stream {
    qpn: Qpn,
    region: MemoryKey,
    size_octets: u64,
    message_octets: u32,
    posted_octets: u64,
}

impl Stream {
    fn next_message(&self) -> Option<LocalRange> {
        let left = self.size_octets - self.posted_octets;
        let length_octets = u64::from(self.message_octets).min(left) as u32;
        let range = LocalRange { key: self.region, offset: self.posted_octets, length_octets };
        (left > 0).then_some(range)
    }
}

impl SendStream {
    /// The first `size_octets` of `region`, in messages of `message_octets`, to the peer of queue pair `qpn`.
    pub fn new(
        qpn: Qpn,
        region: MemoryKey,
        size_octets: u64,
        message_octets: u32,
        operation: MessageOperation,
    ) -> Self {
        SendStream {
            stream: Stream { qpn, region, size_octets, message_octets, posted_octets: 0 },
            operation,
            acknowledged_octets: 0,
            completed_at: None,
            is_paused: false,
        }
    }

    /// The same stream, paused from the start.
    pub fn paused(self) -> Self {
        SendStream { is_paused: true, ..self }
    }

    /// The queue pair.
    pub fn qpn(&self) -> Qpn {
        self.stream.qpn
    }

    /// Octets of messages that the peer has acknowledged.
    pub fn acknowledged_octets(&self) -> u64 {
        self.acknowledged_octets
    }

    /// Time at which the peer had acknowledged everything.
    pub fn completed_at(&self) -> Option<Instant> {
        self.completed_at
    }

    /// Octets of messages that were posted.
    pub fn posted_octets(&self) -> u64 {
        self.stream.posted_octets
    }

    /// Octets of the whole stream.
    pub fn size_octets(&self) -> u64 {
        self.stream.size_octets
    }

    /// Whether everything that was posted is acknowledged.
    pub fn is_quiescent(&self) -> bool {
        self.acknowledged_octets == self.stream.posted_octets
    }

    /// Posts no further message until it is resumed; those that were posted go on (D30).
    pub(crate) fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    pub(crate) fn complete(&mut self, completion: &Completion, now: Instant) {
        self.acknowledged_octets += u64::from(completion.length_octets);
        if self.acknowledged_octets == self.stream.size_octets {
            self.completed_at = Some(now);
        }
    }

    /// Posts the messages that the queue has room for. A relay posts those that it has `received_octets` of.
    pub(crate) fn post(&mut self, endpoint: &mut Endpoint<Replica>, received_octets: Option<u64>) {
        while !self.is_paused
            && let Some(message) = self.stream.next_message()
        {
            let end = message.offset + u64::from(message.length_octets);
            if received_octets.is_some_and(|received| received < end) {
                return;
            }
            let request = WorkRequest {
                wr_id: message.offset,
                operation: self.operation_at(message.offset),
                local: message,
                signalled: true,
            };
            if endpoint.post_send(self.stream.qpn, request).is_err() {
                return;
            }
            self.stream.posted_octets = end;
        }
    }

    fn operation_at(&self, offset: u64) -> Operation {
        let at = |base: RemoteAddress| RemoteAddress { virtual_address: base.virtual_address + offset, ..base };
        match self.operation {
            MessageOperation::Send => Operation::Send { immediate: None },
            MessageOperation::Write { remote } => Operation::Write { remote: at(remote), immediate: None },
            MessageOperation::WriteInTurn { remote, regions, stride } => {
                let region = (offset / u64::from(self.stream.message_octets) % u64::from(regions.max(1))) as u32;
                let virtual_address = remote.virtual_address + u64::from(region) * stride.0;
                let rkey = MemoryKey(remote.rkey.0 + region * stride.1);
                Operation::Write { remote: at(RemoteAddress { virtual_address, rkey }), immediate: None }
            }
            MessageOperation::WriteImmediate { remote } => {
                Operation::Write { remote: at(remote), immediate: Some([0; 4]) }
            }
        }
    }
}

/// Receives posted for the messages of a stream.
#[derive(Clone, Debug)]
pub struct ReceiveStream {
    stream: Stream,
    received_octets: u64,
}

impl ReceiveStream {
    /// A receive for each message of `message_octets` that the peer of queue pair `qpn` sends, `size_octets` in all.
    /// They fill `region` from its start, whether by SEND or by WRITE with immediate data.
    pub fn new(qpn: Qpn, region: MemoryKey, size_octets: u64, message_octets: u32) -> Self {
        let stream = Stream { qpn, region, size_octets, message_octets, posted_octets: 0 };
        ReceiveStream { stream, received_octets: 0 }
    }

    /// The same for a peer that begins at `offset` of the stream, where a message does.
    pub fn beginning_at(mut self, offset: u64) -> Self {
        self.stream.posted_octets = offset;
        self
    }

    /// The queue pair.
    pub fn qpn(&self) -> Qpn {
        self.stream.qpn
    }

    /// Octets of the messages that have come completely.
    pub fn received_octets(&self) -> u64 {
        self.received_octets
    }

    pub(crate) fn complete(&mut self, completion: &Completion) {
        match completion.operation {
            CompletedOperation::Receive | CompletedOperation::ReceiveWriteImmediate => {
                self.received_octets += u64::from(completion.length_octets);
            }
            CompletedOperation::Send | CompletedOperation::Write | CompletedOperation::Read => {}
        }
    }

    pub(crate) fn post(&mut self, endpoint: &mut Endpoint<Replica>) {
        while let Some(message) = self.stream.next_message() {
            let receive = Receive { wr_id: message.offset, local: message };
            if endpoint.post_receive(self.stream.qpn, receive).is_err() {
                return;
            }
            self.stream.posted_octets = message.offset + u64::from(message.length_octets);
        }
    }
}
