//! Results of a WAN scenario.

use serde::{Deserialize, Serialize};

/// Everything that was run of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct WanResults {
    pub title: String,
    pub description: String,
    /// Every run: variant by variant as the study has them, in each the lengths, buffers and seeds in their order.
    pub runs: Vec<WanRun>,
}

/// One variant at one length of the path with one size of the congested queue and one seed.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WanRun {
    pub variant: String,
    pub seed: u64,
    /// Kilometres between the PEs.
    pub total_km: f64,
    /// f: the congested node's share of the path between the gateways.
    pub share: f64,
    /// The bottleneck's rate times the round trip between the gateways, in octets.
    pub path_octets: u64,
    /// Size of the congested queue, in these.
    pub buffer: f64,
    /// From the first packet of a flow that met the queue above the threshold to the first CNP that its sender got: the
    /// median of the flows, in nanoseconds.
    pub notified_ns: Option<f64>,
    /// The same, the longest.
    pub notified_last_ns: Option<f64>,
    /// From the moment at which the queue first held more than the threshold to the gateway's first pause.
    pub paused_ns: Option<f64>,
    /// Packets that found no room in the congested queue.
    pub dropped: u64,
    /// The most octets that ever waited there.
    pub peak_octets: u64,
    /// The least that has waited there since it first held more than the threshold.
    pub min_octets: Option<u64>,
    /// XOFF and XON of END.C.
    pub xoff_octets: Option<u64>,
    /// XON of END.C.
    pub xon_octets: Option<u64>,
    /// Notifications of END.C that the congested node has sent.
    pub notifications: u64,
    /// Utilisation of the bottleneck: from the first pause of the gateway, or where there is none
    /// from the first moment above the threshold, to the end.
    pub utilisation: Option<f64>,
    /// Payload that receivers in the other data centre have taken.
    pub delivered_octets: u64,
    /// Packets that were sent there more than once.
    pub retransmitted: u64,
    /// Slowdown of flows that stay in the first data centre, the median.
    pub local_slowdown_p50: Option<f64>,
    /// The same, the 99th percentile.
    pub local_slowdown_p99: Option<f64>,
    /// Such flows that had not ended with the run.
    pub local_unfinished: u64,
    /// Frames received by any element.
    pub packet_hops: u64,
    /// Frames dropped for lack of simulator memory. Must be 0.
    pub lost_by_simulator: u64,
    /// Nanoseconds from point to point of `queue`.
    pub step_ns: u64,
    /// Maximum length of the congested queue within each interval, in octets.
    pub queue: Vec<f64>,
}

/// Minimum utilisation with which a buffer counts as sufficient.
pub const ENOUGH: f64 = 0.99;

impl WanRun {
    /// Whether nothing was lost, and next to nothing of the bottleneck either.
    pub fn is_enough(&self) -> bool {
        self.dropped == 0 && self.utilisation.is_some_and(|utilisation| utilisation >= ENOUGH)
    }
}

impl WanResults {
    /// The runs of a variant at a length and with a buffer, one for each seed.
    pub fn at<'a>(&'a self, variant: &'a str, total_km: f64, buffer: f64) -> impl Iterator<Item = &'a WanRun> {
        self.runs.iter().filter(move |run| run.variant == variant && run.total_km == total_km && run.buffer == buffer)
    }

    /// The sizes of the queue, in rising order.
    pub fn buffers(&self) -> Vec<f64> {
        distinct(self.runs.iter().map(|run| run.buffer))
    }

    /// The lengths of the path, in rising order.
    pub fn lengths(&self) -> Vec<f64> {
        distinct(self.runs.iter().map(|run| run.total_km))
    }

    /// The least queue from which on all that were tried are enough with every seed; `None` if the largest is not.
    pub fn needed(&self, variant: &str, total_km: f64) -> Option<f64> {
        self.least(variant, total_km, WanRun::is_enough)
    }

    /// The least queue from which on nothing was lost with any of those that were tried, whatever was idle.
    pub fn lossless(&self, variant: &str, total_km: f64) -> Option<f64> {
        self.least(variant, total_km, |run| run.dropped == 0)
    }

    fn least(&self, variant: &str, total_km: f64, is_well: impl Fn(&WanRun) -> bool) -> Option<f64> {
        let mut least = None;
        for buffer in self.buffers().into_iter().rev() {
            let mut runs = self.at(variant, total_km, buffer).peekable();
            if runs.peek().is_none() || !runs.all(&is_well) {
                break;
            }
            least = Some(buffer);
        }
        least
    }
}

fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(buffer: f64, seed: u64, dropped: u64, utilisation: f64) -> WanRun {
        WanRun {
            variant: "a".to_owned(),
            seed,
            total_km: 100.0,
            share: 0.05,
            path_octets: 1,
            buffer,
            notified_ns: None,
            notified_last_ns: None,
            paused_ns: None,
            dropped,
            peak_octets: 0,
            min_octets: None,
            xoff_octets: None,
            xon_octets: None,
            notifications: 0,
            utilisation: Some(utilisation),
            delivered_octets: 0,
            retransmitted: 0,
            local_slowdown_p50: None,
            local_slowdown_p99: None,
            local_unfinished: 0,
            packet_hops: 0,
            lost_by_simulator: 0,
            step_ns: 1,
            queue: Vec::new(),
        }
    }

    #[test]
    fn a_buffer_is_needed_from_which_on_every_seed_is_well() {
        let results = |runs| WanResults { title: String::new(), description: String::new(), runs };
        let mut runs = vec![run(0.1, 1, 0, 1.0), run(0.2, 1, 0, 0.98), run(0.5, 1, 0, 0.99), run(1.0, 1, 0, 1.0)];
        assert_eq!(results(runs.clone()).needed("a", 100.0), Some(0.5), "0.2 idles, whatever 0.1 does");
        runs.push(run(0.5, 2, 1, 1.0));
        assert_eq!(results(runs.clone()).needed("a", 100.0), Some(1.0), "the second seed loses");
        runs.push(run(1.0, 2, 0, 0.5));
        assert_eq!(results(runs.clone()).needed("a", 100.0), None);
        assert_eq!(results(runs).lossless("a", 100.0), Some(1.0));
    }
}
