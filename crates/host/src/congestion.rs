//! Congestion control of one end of a transfer, and its counters.

use crate::open::WireError;
use srdma_rc::{Endpoint, FastCnpConfig, Memory, RateAlgorithm, TraceRequest};
use srdma_wire::ipv6::Ecn;
use srdma_wire::{Instant, Qpn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Congestion control of one end of a transfer; none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Congestion {
    /// Rate control; `None`: as fast as the wire.
    pub rate: Option<RateAlgorithm>,
    /// Accepted Fast CNPs; `None`: none (FC-5-4).
    pub fast_cnp: Option<FastCnpConfig>,
    /// The IOAM trace that data packets carry.
    pub trace: Option<TraceRequest>,
    /// DSCP of data packets, 0 to 63.
    pub dscp: u8,
    /// Minimum interval between the CNPs for packets marked CE (FC-3-2); `None`: no CNPs.
    pub cnp_interval_ns: Option<u64>,
    /// Minimum interval between changes of UDP source port and flow label upon congestion (D89); `None`: no changes.
    pub detour_interval_ns: Option<u64>,
    /// Trimmed packets are answered with a NAK at once (D88).
    pub answers_trimmed: bool,
    /// Minimum interval between Fast CNPs that return traces to the sender; `None`: traces are not returned.
    pub trace_return_interval_ns: Option<u64>,
}

impl Congestion {
    /// Checks that it needs no extension headers, or the address is one of IPv6.
    ///
    /// # Errors
    ///
    /// If IPv4 does not carry what is demanded.
    pub fn check(&self, address: Ipv6Addr) -> Result<(), WireError> {
        let demanded = [
            (self.fast_cnp.is_some(), "--fast-cnp"),
            (self.trace.is_some(), "a trace"),
            (self.trace_return_interval_ns.is_some(), "--return-traces"),
        ];
        match demanded.into_iter().find(|(is_demanded, _)| *is_demanded) {
            Some((_, what)) if address.to_ipv4_mapped().is_some() => Err(WireError::NeedsIpv6(what)),
            Some(_) | None => Ok(()),
        }
    }

    /// Traffic class of data packets. ECT(0) only with rate control: otherwise switches must drop instead of mark.
    pub(crate) fn traffic_class(&self) -> u8 {
        let slows_down = match self.rate {
            Some(RateAlgorithm::Dcqcn(_) | RateAlgorithm::Hpcc(_) | RateAlgorithm::Nscc(_)) => true,
            Some(RateAlgorithm::Fixed { .. }) | None => false,
        };
        let ecn = if slows_down { Ecn::Ect0 } else { Ecn::NotEct };
        self.dscp << 2 | ecn as u8
    }
}

/// Rates and Fast CNPs of a sender. Rates are sampled after each received batch: only received packets reduce a rate.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CongestionStats {
    /// The lowest rate, in bits per second on the link; `None`: no rate limit applied.
    pub least_bits_per_s: Option<u64>,
    /// The last rate.
    pub last_bits_per_s: Option<u64>,
    /// The smallest window, in octets in flight; `None`: no window applied.
    pub least_window_octets: Option<u64>,
    pub last_window_octets: Option<u64>,
    /// Fast CNPs of each congested switch (FC-4-8).
    pub switches: BTreeMap<Ipv6Addr, u64>,
    /// Fast CNPs of switches beyond `MAX_SWITCHES`.
    pub of_other_switches: u64,
}

/// Switches that are counted separately: a prefix of the access list may hold any number of addresses.
const MAX_SWITCHES: usize = 64;

impl CongestionStats {
    /// Takes the endpoint's congestion events and samples its rate.
    pub(crate) fn update<M: Memory>(&mut self, now: Instant, endpoint: &mut Endpoint<M>, qpn: Qpn) {
        while let Some(event) = endpoint.poll_congestion() {
            let has_room = self.switches.len() < MAX_SWITCHES;
            match self.switches.get_mut(&event.switch) {
                Some(count) => *count += 1,
                None if has_room => {
                    self.switches.insert(event.switch, 1);
                }
                None => self.of_other_switches += 1,
            }
        }
        let Some(limits) = endpoint.rate_limits(now, qpn) else { return };
        let lowest = |lowest: Option<u64>, last: Option<u64>| lowest.into_iter().chain(last).min();
        self.least_bits_per_s = lowest(self.least_bits_per_s, limits.rate_bits_per_s);
        self.last_bits_per_s = limits.rate_bits_per_s;
        self.least_window_octets = lowest(self.least_window_octets, limits.window_octets);
        self.last_window_octets = limits.window_octets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_rc::rate::DcqcnParameters;

    #[test]
    fn only_senders_with_rate_control_ask_for_marks() {
        let of = |rate| Congestion { rate, dscp: 26, ..Congestion::default() }.traffic_class();
        assert_eq!(of(None), 104);
        assert_eq!(of(Some(RateAlgorithm::Fixed { bits_per_s: 1_000_000 })), 104);
        assert_eq!(of(Some(RateAlgorithm::Dcqcn(DcqcnParameters::connectx(1_000_000_000)))), 106);
        assert_eq!(Congestion::default().traffic_class(), 0);
    }
}
