//! What an end of a transfer does about congestion, and what it has met.

use srdma_rc::{Endpoint, FastCnpConfig, Memory, RateAlgorithm, TraceRequest};
use srdma_wire::ipv6::Ecn;
use srdma_wire::{Instant, Qpn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// What an end of a transfer does about congestion. By default nothing, as an endpoint that knows of none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Congestion {
    /// What decides how fast data are sent; `None`: nothing but the wire.
    pub rate: Option<RateAlgorithm>,
    /// Which Fast CNPs are believed; `None`: none (FC-5-4).
    pub fast_cnp: Option<FastCnpConfig>,
    /// The IOAM trace that data packets carry.
    pub trace: Option<TraceRequest>,
    /// DSCP of data packets, 0 to 63.
    pub dscp: u8,
    /// A packet marked CE is answered with a CNP, at most one in so many nanoseconds (FC-3-2); `None`: never.
    pub cnp_interval_ns: Option<u64>,
    /// Told of congestion, the sender goes on with another UDP source port and flow label, at most once in so many
    /// nanoseconds; `None`: never (D89).
    pub detour_interval_ns: Option<u64>,
    /// A packet that was trimmed on its way is answered with a NAK at once (D88).
    pub answers_trimmed: bool,
    /// Traces are returned to the sender by Fast CNPs, at most one in so many nanoseconds; `None`: never.
    pub trace_return_interval_ns: Option<u64>,
}

impl Congestion {
    /// Traffic class of data packets. Who slows down at marks says so, by ECT(0): otherwise switches drop.
    pub(crate) fn traffic_class(&self) -> u8 {
        let slows_down = match self.rate {
            Some(RateAlgorithm::Dcqcn(_) | RateAlgorithm::Hpcc(_)) => true,
            Some(RateAlgorithm::Fixed { .. }) | None => false,
        };
        let ecn = if slows_down { Ecn::Ect0 } else { Ecn::NotEct };
        self.dscp << 2 | ecn as u8
    }
}

/// What a sender has met. The rates are those after each batch of packets that came in: all that cuts a rate comes in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// The least rate, in bits per second on the link; `None`: it was never below what the wire allows.
    pub least_bits_per_s: Option<u64>,
    /// The last one.
    pub last_bits_per_s: Option<u64>,
    /// The smallest window, in octets in flight; `None`: there was none.
    pub least_window_octets: Option<u64>,
    /// The last one.
    pub last_window_octets: Option<u64>,
    /// Fast CNPs of each congested switch (FC-4-8).
    pub switches: BTreeMap<Ipv6Addr, u64>,
    /// Those of the switches that found no room there.
    pub of_other_switches: u64,
}

/// Switches that are told apart: a prefix of the access list may hold any number of addresses.
const MAX_SWITCHES: usize = 64;

impl Met {
    /// Looks at an endpoint and takes its events of congestion.
    pub(crate) fn look<M: Memory>(&mut self, now: Instant, endpoint: &mut Endpoint<M>, qpn: Qpn) {
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
        let least = |least: Option<u64>, last: Option<u64>| least.into_iter().chain(last).min();
        self.least_bits_per_s = least(self.least_bits_per_s, limits.rate_bits_per_s);
        self.last_bits_per_s = limits.rate_bits_per_s;
        self.least_window_octets = least(self.least_window_octets, limits.window_octets);
        self.last_window_octets = limits.window_octets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_rc::rate::DcqcnParameters;

    #[test]
    fn only_who_slows_down_asks_for_marks() {
        let of = |rate| Congestion { rate, dscp: 26, ..Congestion::default() }.traffic_class();
        assert_eq!(of(None), 104);
        assert_eq!(of(Some(RateAlgorithm::Fixed { bits_per_s: 1_000_000 })), 104);
        assert_eq!(of(Some(RateAlgorithm::Dcqcn(DcqcnParameters::connectx(1_000_000_000)))), 106);
        assert_eq!(Congestion::default().traffic_class(), 0);
    }
}
