//! What a source or a receiver has done since it was created.

use srdma_rc::QueuePairCounters;

/// Statistics of a handle, as its thread has seen them last: at most a second ago.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Source: versions that are published. Receiver: versions that were whole.
    pub versions: u64,
    /// Octets of their buffers.
    pub octets: u64,
    /// Source: versions that have failed. Receiver: versions that were rejected.
    pub failed: u64,
    /// Source: versions that wait or are being sent. Receiver: versions whose digests are being verified.
    pub waiting: u64,
    /// Source: versions for which not every receiver had a free slot for `slow_after`.
    pub slow: u64,
    /// Receiver: writes of the source outside of the slots that were open. They had no effect.
    pub strays: u64,
    /// Packets of the queue pair; `None` for one of an RDMA device, whose counters are those of its port
    /// (`rdma statistic`). A receiver has another queue pair after [`Event::Resumed`](crate::Event::Resumed).
    pub packets: Option<PacketStatistics>,
}

/// Packets of a queue pair.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketStatistics {
    /// Request packets sent, those that were sent again included.
    pub sent: u64,
    /// Request packets that were sent again.
    pub retransmitted: u64,
    /// Request packets that all members have acknowledged.
    pub acknowledged: u64,
    /// Times that no response came for the ACK timeout.
    pub timeouts: u64,
    /// NAKs received by a source, or sent by a receiver, receiver-not-ready ones not counted.
    pub naks: u64,
    /// Receiver-not-ready NAKs received by a source, or sent by a receiver.
    pub rnr_naks: u64,
    /// CNPs received by a source, or sent by a receiver; Fast CNPs included.
    pub cnps: u64,
    /// Payload octets of request packets received in sequence.
    pub octets_received: u64,
    /// Request packets received that had been received before.
    pub duplicates: u64,
}

impl From<QueuePairCounters> for PacketStatistics {
    fn from(counters: QueuePairCounters) -> Self {
        PacketStatistics {
            sent: counters.packets_sent,
            retransmitted: counters.packets_retransmitted,
            acknowledged: counters.packets_acknowledged,
            timeouts: counters.timeouts,
            naks: counters.naks_received + counters.naks_sent,
            rnr_naks: counters.rnr_naks_received + counters.rnr_naks_sent,
            cnps: counters.cnps_received + counters.fast_cnps_received + counters.cnps_sent,
            octets_received: counters.payload_octets_received,
            duplicates: counters.duplicates_received,
        }
    }
}
