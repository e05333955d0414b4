//! Results of end-to-end runs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All runs.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndToEndResults {
    /// The title of the file.
    pub title: String,
    pub description: String,
    /// The runs, in the order of their seeds.
    pub runs: Vec<EndToEndRun>,
}

/// A run with a seed.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndToEndRun {
    pub seed: u64,
    /// The switch that restarted, if one did.
    pub restarted: Option<String>,
    /// Octets acknowledged when it went down.
    pub acknowledged_at_restart: Option<u64>,
    /// Octets of the stream.
    pub octets: u64,
    /// Completion: time at which all octets were acknowledged, in nanoseconds.
    pub completion_ns: Option<u64>,
    /// Failure of the source, if any.
    pub failure: Option<String>,
    /// SHA-256 of the source's memory.
    pub sha256: String,
    pub receivers: Vec<ReceiverRun>,
    /// Packets of the stream.
    pub packets: u64,
    /// Packets sent by the source, including retransmissions.
    pub packets_sent: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// ACK timeouts of the source.
    pub timeouts: u64,
    /// Frames sent over the source's link.
    pub source_frames: u64,
    /// Data packets received by the headend, the gateway of the second data centre.
    pub headend_packets: u64,
    /// Copies that it sent.
    pub headend_copies: u64,
    /// Responses received by the source, all checked against the receivers' memory.
    pub responses_checked: u64,
    /// Of these, ACKs.
    pub acks_at_source: u64,
    /// Of these, NAKs of any kind.
    pub naks_at_source: u64,
    /// Standard CNPs received by the source.
    pub cnps_at_source: u64,
    /// ACKs sent by all receivers.
    pub acks_of_receivers: u64,
    /// NAKs of any kind.
    pub naks_of_receivers: u64,
    pub cnps_of_receivers: u64,
    /// Responses that acknowledged more than every receiver had.
    pub invariant_violations: u64,
    /// The first of them.
    pub first_violation: Option<String>,
    /// Frames lost on links.
    pub lost_on_links: u64,
    /// Frames dropped for full queues, by switch; only switches with such drops.
    pub dropped: BTreeMap<String, u64>,
    /// Pauses requested by the congested node by END.C, including refreshes.
    pub end_c_sent: u64,
    /// Pauses that it cancelled.
    pub end_c_resumes: u64,
    /// Pauses applied by the ingress PE.
    pub end_c_taken: u64,
    /// Pauses that ended at the end of their hold time.
    pub end_c_expired: u64,
    /// Pauses ended by the PE's watchdog.
    pub end_c_barred: u64,
    /// Fast CNPs sent by the congested node by END.E.
    pub end_e_sent: u64,
    /// Fast CNPs accepted by the source.
    pub fast_cnps_at_source: u64,
    /// Fast CNPs accepted by the other senders.
    pub fast_cnps_at_others: u64,
    /// Duration of a pause by END.C without a further notification, in nanoseconds.
    pub hold_ns: u64,
    /// The longest time from a pause at the PE to its end or the next one, in nanoseconds.
    pub longest_hold_ns: u64,
    /// Pause time of the gateway's data class, in nanoseconds.
    pub gateway_paused_ns: u64,
    /// Ports still paused at the end of the run.
    pub still_paused: Vec<String>,
    /// Frames received by any element.
    pub packet_hops: u64,
    /// Frames dropped for lack of simulator memory. Must be 0.
    pub lost_by_simulator: u64,
    /// Interval of the time series, in nanoseconds.
    pub step_ns: u64,
    /// Octets acknowledged.
    pub acknowledged: Vec<f64>,
    /// Maximum length of the congested queue within each interval, in octets.
    pub queue: Vec<f64>,
}

/// A receiver at the end of a run.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiverRun {
    pub name: String,
    /// Octets received without a gap.
    pub octets: u64,
    /// Their SHA-256.
    pub sha256: String,
    /// Whether its memory is identical to the source's data.
    pub is_identical: bool,
    /// ACKs sent.
    pub acks_sent: u64,
    /// NAKs of any kind.
    pub naks_sent: u64,
    pub cnps_sent: u64,
}
