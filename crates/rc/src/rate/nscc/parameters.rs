//! NSCC's parameters.

use crate::rate::{RateError, require, require_at_least};

/// The network that the published constants are for: 100 Gbit/s and a round trip of 12 µs, 150,000 octets in flight.
const REFERENCE_RTT_NS: f64 = 12_000.0;
const REFERENCE_OCTETS: f64 = 150_000.0;

/// Parameters of a sender. Octets are those on the link.
#[derive(Clone, Debug, PartialEq)]
pub struct NsccParameters {
    /// The port's rate.
    pub line_rate_bits_per_s: u64,
    /// The longest round trip in the network while nothing waits in it.
    pub base_rtt_ns: u64,
    /// A full packet: the least window.
    pub packet_octets: u64,
    /// The delay in queues that is aimed at.
    pub target_delay_ns: u64,
    /// A delay below this one counts as none.
    pub no_delay_ns: u64,
    /// The largest window, and the first one, by line rate times base round trip: at least 0.01.
    pub max_window_share: f64,
    /// What an unmarked ACK without delay adds for each window, besides the fast increase.
    pub proportional_octets: f64,
    /// What an unmarked ACK with more delay than the target adds for each window.
    pub fair_octets: f64,
    /// What is added in each base round trip, whatever the ACKs say.
    pub additive_octets: f64,
    /// What the fast increase adds, by the octets acknowledged.
    pub fast_share: f64,
    /// γ: strength of the decrease, above 0, at most 1.
    pub gamma: f64,
    /// The most that one decrease takes away, above 0, below 1.
    pub max_decrease: f64,
    /// Weight of the newest sample in the average delay, above 0, at most 1.
    pub delay_weight: f64,
    /// Additions wait until so many octets are acknowledged, or a base round trip has passed.
    pub adjust_octets: u64,
    /// The quick adaptation is for a delay above so many targets: at least 1.
    pub adapt_targets: u64,
    /// And for fewer octets acknowledged in a period than this part of the largest window, above 0, at most 1.
    pub adapt_share: f64,
}

impl NsccParameters {
    /// As the simulator that the Ultra Ethernet Consortium publishes has them (github.com/ultraethernet/uet-htsim of
    /// 2025-08-13, `initNsccParams` and `initNscc` of `uec.cpp`), for a network without trimming: constants for 100
    /// Gbit/s and 12 µs, in proportion to what is in flight at most.
    pub fn published(line_rate_bits_per_s: u64, base_rtt_ns: u64, packet_octets: u64) -> Self {
        let (packet, target_ns) = (packet_octets as f64, base_rtt_ns as f64);
        let scale = line_rate_bits_per_s as f64 * target_ns / 8e9 / REFERENCE_OCTETS;
        NsccParameters {
            line_rate_bits_per_s,
            base_rtt_ns,
            packet_octets,
            target_delay_ns: base_rtt_ns,
            no_delay_ns: 1_000,
            max_window_share: 1.5,
            proportional_octets: 4.0 * packet * scale * target_ns / REFERENCE_RTT_NS,
            fair_octets: 5.0 * packet * scale,
            additive_octets: 0.15 * packet * scale,
            fast_share: 0.25 * scale,
            gamma: 0.8,
            max_decrease: 0.5,
            delay_weight: 0.0125,
            adjust_octets: packet_octets.saturating_mul(8),
            adapt_targets: 4,
            adapt_share: 0.125,
        }
    }

    pub(super) fn min_window_octets(&self) -> f64 {
        self.packet_octets as f64
    }

    pub(super) fn max_window_octets(&self) -> f64 {
        let in_flight = self.line_rate_bits_per_s as f64 * self.base_rtt_ns as f64 / 8e9;
        (in_flight * self.max_window_share).max(self.min_window_octets())
    }

    pub(super) fn validate(&self) -> Result<(), RateError> {
        require_at_least("line_rate_bits_per_s", self.line_rate_bits_per_s, 1)?;
        require_at_least("base_rtt_ns", self.base_rtt_ns, 100)?;
        require_at_least("packet_octets", self.packet_octets, 1)?;
        require_at_least("target_delay_ns", self.target_delay_ns, 1)?;
        require_at_least("adapt_targets", self.adapt_targets, 1)?;
        let share = self.max_window_share;
        require("max_window_share", share, (0.01..=1000.0).contains(&share), "0.01 to 1000")?;
        for (name, octets) in [
            ("proportional_octets", self.proportional_octets),
            ("fair_octets", self.fair_octets),
            ("additive_octets", self.additive_octets),
            ("fast_share", self.fast_share),
        ] {
            require(name, octets, octets.is_finite() && octets >= 0.0, "0 or more")?;
        }
        let below_1 = self.max_decrease > 0.0 && self.max_decrease < 1.0;
        require("max_decrease", self.max_decrease, below_1, "above 0 and below 1")?;
        for (name, part) in
            [("gamma", self.gamma), ("delay_weight", self.delay_weight), ("adapt_share", self.adapt_share)]
        {
            require(name, part, part > 0.0 && part <= 1.0, "above 0 and at most 1")?;
        }
        Ok(())
    }
}
