//! Results of a fabric scenario.

use super::scenario::Level;
use serde::{Deserialize, Serialize};
use srdma_report::units::grouped;

/// Results of all runs of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FabricResults {
    pub title: String,
    pub description: String,
    /// Level of simulation.
    #[serde(default)]
    pub level: Level,
    /// The name of the variant that others are compared with.
    pub baseline: String,
    /// All runs, by variant and seed in the order of the scenario.
    pub runs: Vec<VariantResult>,
}

/// One variant with one seed.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantResult {
    pub variant: String,
    /// Title in reports.
    pub title: String,
    pub seed: u64,
    /// Virtual time of the last event, in nanoseconds.
    pub simulated_ns: u64,
    /// Frames received by any element, including the control run if there was one.
    pub packet_hops: u64,
    /// Of the virtual time that of steady states, which were skipped, in nanoseconds. Series have no points for it.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub skipped_ns: u64,
    /// Whether hosts verified the ICRC of received packets.
    pub verified_icrc: bool,
    /// All flows, in order of their start.
    pub flows: Vec<FlowResult>,
    /// All switch ports that queued more than one full packet.
    pub ports: Vec<PortResult>,
    /// Time series, ordered by kind and name.
    pub series: Vec<Series>,
    /// Congestion notifications of senders.
    pub notifications: Vec<NotificationResult>,
    /// The iterations of jobs.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub jobs: Vec<JobResult>,
    /// Loads of links in both directions, with jobs only.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub links: Vec<LinkResult>,
    /// Sums over the fabric.
    pub totals: Totals,
    /// The measures that reports compare.
    pub summary: Summary,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The iterations of a job's collectives. Each collective with a period has its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct JobResult {
    pub name: String,
    /// Nanoseconds for which the NIC that sends or receives most is busy in an iteration, at the rate of its link and
    /// without programs: none can be shorter.
    pub ideal_ns: f64,
    pub iterations: Vec<IterationResult>,
    /// The slowest pair of NICs while they had data to send.
    pub slowest: Option<SlowestResult>,
}

/// An iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationResult {
    /// Start time.
    pub started_ns: u64,
    /// Arrival of its last message; `None` if the run ended before.
    pub finished_ns: Option<u64>,
}

/// Payload from one NIC to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowestResult {
    /// The sending host.
    pub source: String,
    /// The receiving host.
    pub destination: String,
    /// Payload per busy time, in bits per second.
    pub bits_per_s: f64,
}

/// A link in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkResult {
    /// `FROM-TO`.
    pub name: String,
    /// Whether it joins two switches.
    pub in_fabric: bool,
    /// Octets that it carried, with Ethernet overhead.
    pub octets: u64,
    /// Transmission time of these octets, in nanoseconds.
    pub busy_ns: u64,
}

/// Workload of a flow.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowKind {
    /// A burst of an incast.
    Incast,
    /// Background load.
    Background,
    /// An endless stream.
    Stream,
    Permutation,
    /// A multicast stream.
    Multicast,
    /// Data of a given size to a group.
    Broadcast,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FlowResult {
    /// Its workload.
    pub kind: FlowKind,
    /// Name of a stream.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// The sending host.
    pub source: String,
    /// The receiving host, or the group's name.
    pub destination: String,
    /// Octets of the flow; of a stream the acknowledged octets.
    pub size_octets: u64,
    /// Time at which its first octet was ready.
    pub started_ns: u64,
    /// Time at which the last octet was acknowledged; `None` for unfinished and endless flows.
    pub finished_ns: Option<u64>,
    /// Completion time on an idle fabric: propagation and serialisation of the first packet over every link, of the
    /// rest over the slowest, and the return path of the acknowledgement.
    pub ideal_ns: u64,
    /// Completion time divided by the ideal one, at least 1.
    pub slowdown: Option<f64>,
    /// Number of receivers of a group.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receivers: Option<usize>,
    /// Of a broadcast: its size by the rate of the source's link, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transmission_ns: Option<u64>,
    /// Target for its completion time, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit_ns: Option<u64>,
    /// Retransmitted packets.
    pub retransmitted: u64,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortResult {
    /// `SWITCH-PEER`.
    pub name: String,
    /// Maximum queue length.
    pub peak_octets: u64,
    /// PAUSE frames sent here, without XON.
    pub pauses_sent: u64,
    /// Time for which the neighbour paused the data class, in nanoseconds.
    pub paused_ns: u64,
    /// Packets marked in this queue.
    pub marked: u64,
    /// Packets dropped because the queue was full.
    pub dropped: u64,
}

/// The measure of a time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesKind {
    /// Payload delivered, in bits per second, averaged over the step.
    Rate,
    /// Maximum queue length within the step, in octets.
    Queue,
    /// Share of the step for which a port was paused, from 0 to 1.
    Pause,
}

/// A time series with evenly spaced points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its measure.
    pub kind: SeriesKind,
    /// A stream's name, `incast`, `background`; a port as `SWITCH-PEER`.
    pub name: String,
    /// Interval of the points in nanoseconds; also the time of the first one.
    pub step_ns: u64,
    /// The points.
    pub values: Vec<f64>,
}

/// Notification of a sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotificationResult {
    /// The flow, by its position in `flows`.
    pub flow: usize,
    /// The congested port, `SWITCH-PEER`.
    pub port: String,
    /// Time at which the flow's first packet above the threshold was queued there.
    pub congested_ns: u64,
    /// Time at which the sender changed its rate, if it did.
    pub reacted_ns: Option<u64>,
    /// The return path on idle links: propagation and serialisation of the notification on each, in nanoseconds.
    pub return_path_ns: u64,
}

/// Sums over the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Data packets sent by hosts, including retransmissions.
    pub data_packets: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// Packets dropped by switches.
    pub dropped: u64,
    /// PAUSE frames, without XON.
    pub pauses: u64,
    /// Packets marked with CE.
    pub marked: u64,
    /// CNPs that hosts received from receivers.
    pub cnps: u64,
    /// Fast CNPs that switches sent.
    pub fast_cnps: u64,
    /// Octets of payload that hosts sent for the first time.
    pub octets_sent: u64,
    /// Octets of payload written to memory of receivers.
    pub octets_delivered: u64,
    /// Octets of packets whose payload differs from what was sent. Must be 0.
    pub octets_differing: u64,
    /// Frames lost because the simulator ran out of memory, or delivered to the wrong host. Must be 0.
    pub lost_by_simulator: u64,
}

/// Measures that reports compare; `None` where not applicable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Slowdown of short background flows, the median.
    pub short_slowdown_p50: Option<f64>,
    /// Slowdown of short background flows, the 99th percentile.
    pub short_slowdown_p99: Option<f64>,
    /// Slowdown of the other background flows, the median.
    pub long_slowdown_p50: Option<f64>,
    /// Slowdown of the other background flows, the 99th percentile.
    pub long_slowdown_p99: Option<f64>,
    /// Time from the start of an incast to its last octet, in nanoseconds, the median.
    pub incast_completion_p50_ns: Option<f64>,
    /// Maximum queue length at a port, in octets.
    pub peak_queue_octets: u64,
    /// PAUSE frames.
    pub pauses: u64,
    /// Minimum of the streams' rates relative to their fair rates.
    pub victim_share: Option<f64>,
    /// Minimum of the streams' delivered octets relative to the control run; `None` without `control_run`.
    #[serde(default)]
    pub victim_retained: Option<f64>,
    /// Minimum rate of delivered payload of the streams, in bits per second.
    pub victim_bits_per_s: Option<f64>,
    /// Minimum of the multicast flows' rates relative to their fair rates.
    #[serde(default)]
    pub group_share: Option<f64>,
    /// Minimum of the multicast flows' delivered octets relative to the control run; `None` without `control_run`.
    #[serde(default)]
    pub group_retained: Option<f64>,
    /// Minimum rate of payload that multicast flows delivered to every receiver, in bits per second.
    #[serde(default)]
    pub group_bits_per_s: Option<f64>,
    /// From the first packet above the threshold to the change of the rate, the median, in nanoseconds.
    pub notification_p50_ns: Option<f64>,
    /// The same, the 99th percentile.
    pub notification_p99_ns: Option<f64>,
    /// Excess over the return path on idle links, the 99th percentile, in nanoseconds.
    pub notification_excess_p99_ns: Option<f64>,
    /// Duration of an iteration of a job, the median.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub iteration_p50_ns: Option<f64>,
    /// The longest of all iterations.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub iteration_longest_ns: Option<f64>,
    /// Duration of an iteration relative to the busy time of its busiest NIC, the median.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub iteration_over_ideal: Option<f64>,
    /// Busy time of the busiest link between switches relative to the busiest NIC link.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub busiest_link: Option<f64>,
    /// Load of the busiest link between switches relative to the mean of all used ones.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link_over_mean: Option<f64>,
    /// Rate of the slowest flow of the jobs, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slowest_bits_per_s: Option<f64>,
    /// From the first failure to the end of the last iteration that took a tenth longer than the median before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recovery_ns: Option<f64>,
    /// NAKs of jobs' receivers, because of packets out of order.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub out_of_order: Option<u64>,
    /// Path changes by steering NICs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_changes: Option<u64>,
    /// Frames sent into failed links.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lost_on_links: Option<u64>,
    /// Completion time of the slowest broadcast, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub broadcast_ns: Option<f64>,
    /// Completion time of a broadcast relative to its size by the rate of the source's link, the largest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub broadcast_over_transmission: Option<f64>,
    /// Unfinished flows and iterations of jobs.
    pub unfinished: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
}

/// The `share` quantile by the nearest-rank method; `None` without values. Sorts the values.
pub fn percentile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.clamp(1, values.len().max(1)) - 1).copied()
}

impl FlowResult {
    /// Time from its first octet to the acknowledgement of its last one; `None` for unfinished and endless flows.
    pub fn completion_ns(&self) -> Option<u64> {
        self.finished_ns?.checked_sub(self.started_ns)
    }
}

impl VariantResult {
    /// The totals that must be 0 and are not, each as a sentence.
    pub(crate) fn failures(&self) -> Vec<String> {
        let Totals { octets_differing, lost_by_simulator, .. } = self.totals;
        let differing = (octets_differing > 0).then(|| format!("{} octets differ", grouped(octets_differing)));
        let lost =
            (lost_by_simulator > 0).then(|| format!("{} frames lost by the simulator", grouped(lost_by_simulator)));
        let sentence = |what: String| format!("variant {}, seed {}: {what}", self.variant, self.seed);
        differing.into_iter().chain(lost).map(sentence).collect()
    }
}

impl FabricResults {
    /// The runs of a variant.
    pub fn of_variant<'a>(&'a self, variant: &'a str) -> impl Iterator<Item = &'a VariantResult> {
        self.runs.iter().filter(move |run| run.variant == variant)
    }

    /// Minimum, median and maximum over the seeds of a variant of a value of the summary.
    pub fn spread(&self, variant: &str, value: impl Fn(&Summary) -> Option<f64>) -> Option<[f64; 3]> {
        let mut values: Vec<f64> = self.of_variant(variant).filter_map(|run| value(&run.summary)).collect();
        let median = percentile(&mut values, 0.5)?;
        Some([*values.first()?, median, *values.last()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_by_the_nearest_rank() {
        let mut values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.5), Some(100.0));
        assert_eq!(percentile(&mut values, 0.99), Some(198.0));
        assert_eq!(percentile(&mut values, 1.0), Some(200.0));
        assert_eq!(percentile(&mut [3.0], 0.99), Some(3.0));
        assert_eq!(percentile(&mut [], 0.5), None);
    }
}
