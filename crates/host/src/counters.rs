//! Counters of a transfer.

use crate::transfer_memory::TransferMemory;
use crate::wire::Wire;
use serde::{Serialize, Serializer};
use srdma_rc::Endpoint;
use srdma_wire::Qpn;

/// Counters of one end of a transfer.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are the JSON keys that docs/endpoints.md describes")]
pub struct TransferCounters {
    /// Request packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Request packets sent again.
    pub retransmissions: u64,
    /// Expiries of the ACK timer.
    pub timeouts: u64,
    pub acks_received: u64,
    pub naks_received: u64,
    pub rnr_naks_received: u64,
    pub cnps_received: u64,
    pub acks_sent: u64,
    pub naks_sent: u64,
    pub rnr_naks_sent: u64,
    pub cnps_sent: u64,
    /// Fast CNPs sent that return a trace.
    pub traces_returned: u64,
    /// Data packets received whose trace could not be returned.
    pub traces_not_returned: u64,
    /// Requests received whose payload a switch had trimmed.
    pub trimmed_received: u64,
    /// Changes of UDP source port and flow label.
    pub detours: u64,
    /// Requests received that had been received before.
    pub duplicates: u64,
    /// Packets that the endpoint dropped, by reason.
    #[serde(serialize_with = "by_name")]
    pub refused: Vec<(&'static str, u64)>,
    /// Packets that found the socket's buffer full.
    pub receive_overruns: u64,
    /// Packets that the kernel refused to send.
    pub send_errors: u64,
}

fn by_name<S: Serializer>(refused: &[(&'static str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(refused.iter().copied())
}

impl TransferCounters {
    /// The counters of a queue pair and its wire.
    pub fn of(endpoint: &Endpoint<TransferMemory>, qpn: Qpn, wire: &dyn Wire) -> Self {
        let counters = endpoint.counters(qpn).copied().unwrap_or_default();
        let refused = endpoint.drops().iter().filter(|(_, count)| *count > 0);
        let statistics = wire.statistics();
        TransferCounters {
            packets_sent: counters.packets_sent,
            retransmissions: counters.packets_retransmitted,
            timeouts: counters.timeouts,
            acks_received: counters.acks_received,
            naks_received: counters.naks_received,
            rnr_naks_received: counters.rnr_naks_received,
            cnps_received: counters.cnps_received,
            acks_sent: counters.acks_sent,
            naks_sent: counters.naks_sent,
            rnr_naks_sent: counters.rnr_naks_sent,
            cnps_sent: counters.cnps_sent,
            traces_returned: counters.traces_returned,
            traces_not_returned: counters.traces_not_returned,
            trimmed_received: counters.trimmed_received,
            detours: counters.detours,
            duplicates: counters.duplicates_received,
            refused: refused.map(|(reason, count)| (reason.name(), count)).collect(),
            receive_overruns: statistics.receive_overruns,
            send_errors: statistics.send_errors,
        }
    }
}
