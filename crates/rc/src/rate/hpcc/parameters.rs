//! HPCC++'s parameters.

use crate::rate::{RateError, require, require_at_least, require_min_rate};

/// Growth of the window without traces.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Without a trace or a notice for so long, the window grows, and again for each such time.
    pub interval_ns: u64,
    pub step_octets: u64,
}

/// Parameters of a sender.
#[derive(Clone, Debug, PartialEq)]
pub struct HpccParameters {
    /// The port's rate.
    pub line_rate_bits_per_s: u64,
    /// T: the longest round trip in the network while nothing waits in it. Line rate times T is the largest window.
    pub base_rtt_ns: u64,
    /// η, the utilisation aimed at: above 0, at most 1.
    pub eta: f64,
    /// Round trips in which the window may grow by steps before it is scaled: maxStage.
    pub max_stage: u32,
    /// The step: W_AI.
    pub additive_increase_octets: u64,
    /// The least rate, at least 1.
    pub min_rate_bits_per_s: u64,
    /// The utilisation assumed for a notification without a trace; at least η.
    pub notified_utilisation: f64,
    /// Recovery without traces; `None`: the window stays.
    pub recovery: Option<Recovery>,
    /// The IOAM namespace of the traces to use.
    pub namespace_id: u16,
}

impl HpccParameters {
    /// As published: η = 0.95, maxStage = 5, and W_AI for a hundred flows at a link, line rate · T · (1 − η) / 100
    /// (SIGCOMM 2019, section 3.3 and section 5.1; draft-miao-ccwg-hpcc). The rest is ours: at least a thousandth of
    /// the line rate, a notice halves the window or does worse, and a lost sender is back after 200 round trips.
    pub fn published(line_rate_bits_per_s: u64, base_rtt_ns: u64, namespace_id: u16) -> Self {
        let window = u128::from(line_rate_bits_per_s) * u128::from(base_rtt_ns) / 8_000_000_000;
        let window = u64::try_from(window).unwrap_or(u64::MAX);
        HpccParameters {
            line_rate_bits_per_s,
            base_rtt_ns,
            eta: 0.95,
            max_stage: 5,
            additive_increase_octets: (window / 2000).max(1),
            min_rate_bits_per_s: (line_rate_bits_per_s / 1000).max(1),
            notified_utilisation: 2.0,
            recovery: Some(Recovery { interval_ns: base_rtt_ns.saturating_mul(10), step_octets: (window / 20).max(1) }),
            namespace_id,
        }
    }

    pub(super) fn max_window_octets(&self) -> f64 {
        self.line_rate_bits_per_s as f64 * self.base_rtt_ns as f64 / 8e9
    }

    pub(super) fn min_window_octets(&self) -> f64 {
        self.min_rate_bits_per_s as f64 * self.base_rtt_ns as f64 / 8e9
    }

    pub(super) fn validate(&self) -> Result<(), RateError> {
        require_at_least("line_rate_bits_per_s", self.line_rate_bits_per_s, 1)?;
        require_at_least("base_rtt_ns", self.base_rtt_ns, 100)?;
        require("eta", self.eta, self.eta > 0.0 && self.eta <= 1.0, "above 0 and at most 1")?;
        require_at_least("additive_increase_octets", self.additive_increase_octets, 1)?;
        require_min_rate(self.min_rate_bits_per_s, self.line_rate_bits_per_s)?;
        let notified = self.notified_utilisation;
        require("notified_utilisation", notified, notified >= self.eta && notified.is_finite(), "at least eta")?;
        let recovery = self.recovery.unwrap_or(Recovery { interval_ns: 1000, step_octets: 1 });
        require_at_least("recovery.interval_ns", recovery.interval_ns, 1000)?;
        require_at_least("recovery.step_octets", recovery.step_octets, 1)
    }
}
