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
    /// Octets that were acknowledged when it went down.
    pub acknowledged_at_restart: Option<u64>,
    /// Octets of the stream.
    pub octets: u64,
    /// Time at which all of it was acknowledged, in nanoseconds.
    pub completion_ns: Option<u64>,
    /// Reason for which the source has failed, if it has.
    pub failure: Option<String>,
    /// SHA-256 of the source's memory.
    pub sha256: String,
    pub receivers: Vec<ReceiverRun>,
    /// Packets of the stream.
    pub packets: u64,
    /// Packets that the source's endpoint has sent, those sent again included.
    pub packets_sent: u64,
    /// Of these, those that had been sent before.
    pub retransmitted: u64,
    /// Number of times that the source's ACK timer ran out.
    pub timeouts: u64,
    /// Frames that the source's link has carried away from it.
    pub source_frames: u64,
    /// Data packets that came to the headend, the gateway of the second data centre.
    pub headend_packets: u64,
    /// Copies that it has sent on.
    pub headend_copies: u64,
    /// Responses that reached the source, all of them compared with the receivers' memory.
    pub responses_checked: u64,
    /// Of these, ACKs.
    pub acks_at_source: u64,
    /// Of these, NAKs of any kind.
    pub naks_at_source: u64,
    /// Standard CNPs that reached it.
    pub cnps_at_source: u64,
    /// ACKs that all receivers have sent.
    pub acks_of_receivers: u64,
    /// NAKs of any kind.
    pub naks_of_receivers: u64,
    pub cnps_of_receivers: u64,
    /// Responses that acknowledged more than every receiver had.
    pub invariant_violations: u64,
    /// The first of them.
    pub first_violation: Option<String>,
    /// Frames that were lost on links.
    pub lost_on_links: u64,
    /// Frames for which there was no room, by the switch's name; only switches where there was none for some.
    pub dropped: BTreeMap<String, u64>,
    /// Pauses that the congested node has requested by END.C, including refreshes.
    pub end_c_sent: u64,
    /// Pauses that it has taken back.
    pub end_c_resumes: u64,
    /// Pauses that the ingress PE has taken.
    pub end_c_taken: u64,
    /// Pauses that ended because their hold time was over.
    pub end_c_expired: u64,
    /// Pauses that the PE's watchdog has ended.
    pub end_c_barred: u64,
    /// Fast CNPs that the congested node has sent by END.E.
    pub end_e_sent: u64,
    /// Fast CNPs that the source has taken.
    pub fast_cnps_at_source: u64,
    /// Fast CNPs that the other senders have taken.
    pub fast_cnps_at_others: u64,
    /// Duration of a pause by END.C without a further notification, in nanoseconds.
    pub hold_ns: u64,
    /// The longest time from a pause that the PE took to its end, or to the next one, in nanoseconds.
    pub longest_hold_ns: u64,
    /// How long the gateway's data were paused, in nanoseconds.
    pub gateway_paused_ns: u64,
    /// Ports still paused at the end of the run.
    pub still_paused: Vec<String>,
    /// Frames that have arrived anywhere.
    pub packet_hops: u64,
    /// Frames lost for want of the simulator's memory. Nothing but a defect makes them.
    pub lost_by_simulator: u64,
    /// Nanoseconds from point to point of the time series.
    pub step_ns: u64,
    /// Octets acknowledged.
    pub acknowledged: Vec<f64>,
    /// The most that waited in the congested queue within each such time, in octets.
    pub queue: Vec<f64>,
}

/// A receiver at the end of a run.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiverRun {
    pub name: String,
    /// Octets that it has without a gap.
    pub octets: u64,
    /// Their SHA-256.
    pub sha256: String,
    /// Whether its memory holds the source's data, all of them and nothing else.
    pub is_faithful: bool,
    /// ACKs that it has sent.
    pub acks_sent: u64,
    /// NAKs of any kind.
    pub naks_sent: u64,
    pub cnps_sent: u64,
}
