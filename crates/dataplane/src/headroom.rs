//! Headroom of a queue: the octets needed so that nothing is lost before its pause takes effect, and the link does not
//! idle before its resume does (D67): of PFC on one link, and of END.C between a WAN node and its ingress PE.
//!
//! ```text
//!   gateway ─── link ─── PE ───── WAN ───── congested node ───▶ out
//!      │ PAUSE in effect ◀─┘ ◀──── END.C ────────┘
//!      └── what was sent meanwhile still comes ─▶
//! ```

use srdma_wire::pfc;
use srdma_wire::units::NS_PER_S;

/// Light takes so long for a kilometre of fibre, in nanoseconds.
pub const NS_PER_KM: u64 = 5_000;

/// Ethernet's overhead of a packet: preamble, header, checksum and gap.
pub const AROUND_OCTETS: u64 = 8 + 14 + 4 + 12;

/// Octets that a link is busy with for a PAUSE frame: the frame, preamble, start delimiter and gap.
const PAUSE_OCTETS: u64 = 64 + 20;

/// Properties of a link on which pauses are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PausedLink {
    /// Rate of both directions, in bits a second.
    pub rate_bits_per_s: u64,
    /// Propagation in one direction, in nanoseconds.
    pub propagation_ns: u64,
    /// The largest frame of either direction, with all that Ethernet puts around it, in octets.
    pub frame_octets: u64,
    /// How long the neighbour takes to pause, in nanoseconds.
    pub response_ns: u64,
}

impl PausedLink {
    /// From the moment at which a pause is wanted to the end of what still comes, in nanoseconds: a frame of the other
    /// direction goes first, the PAUSE travels, the neighbour honours after its response time and a frame that it has
    /// begun, and what it sent last travels (IEEE 802.1Q, the annex on buffers for PFC).
    pub fn stop_ns(&self) -> u64 {
        let frames_ns = octets_ns(2 * self.frame_octets + PAUSE_OCTETS, self.rate_bits_per_s);
        frames_ns.saturating_add(self.propagation_ns.saturating_mul(2)).saturating_add(self.response_ns)
    }

    /// Octets that still come beyond XOFF.
    pub fn headroom_octets(&self) -> u64 {
        octets_in(self.stop_ns(), self.rate_bits_per_s)
    }
}

/// A WAN node that requests a pause of the gateway from an ingress PE by END.C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WanNode {
    /// The most that can come in for the congested queue, in bits a second.
    pub in_bits_per_s: u64,
    /// Rate at which the queue is sent, in bits per second.
    pub out_bits_per_s: u64,
    /// Propagation between PE and node in one direction, in nanoseconds.
    pub propagation_ns: u64,
    /// The link between gateway and PE, by which the pause is honoured.
    pub gateway: PausedLink,
}

/// Octets that a WAN node's queue needs around its thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WanHeadroom {
    /// From the notification to the end of what still comes, and from the resume to what comes then, in nanoseconds.
    pub loop_ns: u64,
    /// Beyond XOFF, until nothing comes any more.
    pub stop_octets: u64,
    /// Below XON, so that the queue does not run empty before resumed traffic arrives.
    pub restart_octets: u64,
}

impl WanHeadroom {
    /// The least queue that neither loses nor idles: XON and XOFF are `restart_octets`, and `stop_octets` are above.
    pub fn total_octets(&self) -> u64 {
        self.stop_octets.saturating_add(self.restart_octets)
    }
}

impl WanNode {
    /// The headroom of its queue.
    ///
    /// ```text
    ///   stop    = (in − out) × loop         3f of rate × round trip at 4:1, f being the node's share of the path
    ///   restart = out × loop                f
    /// ```
    pub fn headroom(&self) -> WanHeadroom {
        let loop_ns = self.gateway.stop_ns().saturating_add(self.propagation_ns.saturating_mul(2));
        let excess = self.in_bits_per_s.saturating_sub(self.out_bits_per_s);
        // A frame that is being taken in when the threshold is passed, and one that is being sent, count in full.
        let frames = 2 * self.gateway.frame_octets;
        WanHeadroom {
            loop_ns,
            stop_octets: octets_in(loop_ns, excess).saturating_add(frames),
            restart_octets: octets_in(loop_ns, self.out_bits_per_s).saturating_add(frames),
        }
    }
}

/// How long an interface of this rate may take to act on a pause, in nanoseconds: the quanta that IEEE 802.3 annex 31B
/// allows it, those of the next rate it names where it does not name this one.
pub fn response_ns(rate_bits_per_s: u64) -> u64 {
    const QUANTA: [(u64, u64); 5] =
        [(10_000_000_000, 60), (25_000_000_000, 80), (40_000_000_000, 118), (100_000_000_000, 394), (u64::MAX, 905)];
    let quanta = QUANTA.iter().find(|(rate, _)| rate_bits_per_s <= *rate).map_or(905, |(_, quanta)| *quanta);
    octets_ns(quanta * pfc::QUANTUM_BITS / 8, rate_bits_per_s)
}

/// Octets that come within a time at a rate, rounded up.
pub fn octets_in(time_ns: u64, rate_bits_per_s: u64) -> u64 {
    let bits_and_ns = u128::from(time_ns) * u128::from(rate_bits_per_s);
    u64::try_from(bits_and_ns.div_ceil(8 * u128::from(NS_PER_S))).unwrap_or(u64::MAX)
}

/// How long so many octets take at a rate, in nanoseconds, rounded up.
fn octets_ns(octets: u64, rate_bits_per_s: u64) -> u64 {
    let bits = u128::from(octets) * 8 * u128::from(NS_PER_S);
    u64::try_from(bits.div_ceil(u128::from(rate_bits_per_s.max(1)))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_wire::units::GBIT_PER_S;

    const G: u64 = GBIT_PER_S;

    fn link(rate: u64, km: u64, frame_octets: u64, response_ns: u64) -> PausedLink {
        PausedLink { rate_bits_per_s: rate * G, propagation_ns: km * NS_PER_KM, frame_octets, response_ns }
    }

    /// By hand: at 100 Gbit/s 12.5 octets a nanosecond. 10 km and back are 100 µs, 1,250,000 octets; 2 µs of response
    /// 25,000; two frames of 1,250 octets and the PAUSE of 84 take 206.72 ns, so 207, which are 2,587.5.
    #[test]
    fn headroom_of_a_link_is_that_of_a_table_by_hand() {
        let rows = [
            (link(100, 10, 1250, 2000), 1_250_000 + 25_000 + 2_588),
            // No length, no response: two frames of 9,000 and the PAUSE, 18,084 octets in 1,446.72 ns.
            (link(100, 0, 9000, 0), 18_088),
            // 400 Gbit/s: 50 octets a nanosecond; 1 km and back 10 µs; 84 octets in 1.68 ns.
            (link(400, 1, 0, 0), 500_000 + 100),
            // 10 Gbit/s: 1.25 octets a nanosecond; 100 km and back 1 ms; response 3,072 ns; 3,084 octets in 2,467.2 ns.
            (link(10, 100, 1500, 3072), 1_250_000 + 3_840 + 3_085),
        ];
        for (link, octets) in rows {
            assert_eq!(link.headroom_octets(), octets, "{link:?}");
        }
    }

    /// Nanosecond by nanosecond rather than by a formula: octets that arrive and leave until it stops.
    #[test]
    fn headroom_of_a_wan_node_equals_that_of_a_simulated_queue() {
        for (rate_in, rate_out, km) in [(400, 100, 5), (200, 100, 25), (400, 100, 20), (100, 100, 5), (100, 400, 5)] {
            let gateway = link(400, 0, 0, 0);
            let node = WanNode {
                in_bits_per_s: rate_in * G,
                out_bits_per_s: rate_out * G,
                propagation_ns: km * NS_PER_KM,
                gateway,
            };
            let found = node.headroom();
            let (mut millioctets, mut drained) = (0_i64, 0_i64);
            for _ in 0..2 * km * NS_PER_KM + gateway.stop_ns() {
                millioctets = (millioctets + (rate_in * 125) as i64 - (rate_out * 125) as i64).max(0);
                drained += (rate_out * 125) as i64;
            }
            assert_eq!(found.stop_octets as i64, millioctets / 1000, "{rate_in} in, {rate_out} out, {km} km");
            assert_eq!(found.restart_octets as i64, drained.div_euclid(1000) + i64::from(drained % 1000 > 0));
        }
    }

    /// CN-4.1-1, D67: of a path of 100 km whose congested node is 5 km away, f = 0.05: 3f of rate times round trip stop
    /// 4:1, f restarts.
    #[test]
    fn shares_of_a_path_are_those_of_the_arithmetic() {
        let node = WanNode {
            in_bits_per_s: 400 * G,
            out_bits_per_s: 100 * G,
            propagation_ns: 5 * NS_PER_KM,
            gateway: link(u64::MAX / G, 0, 0, 0),
        };
        let bdp_octets = octets_in(2 * 100 * NS_PER_KM, 100 * G) as f64;
        let found = node.headroom();
        assert!((found.stop_octets as f64 / bdp_octets - 0.15).abs() < 0.001, "{found:?}");
        assert!((found.restart_octets as f64 / bdp_octets - 0.05).abs() < 0.001, "{found:?}");
    }

    /// 394 quanta of 512 bits at 100 Gbit/s, 905 at 400 Gbit/s, 60 at 10 Gbit/s.
    #[test]
    fn responses_are_those_of_annex_31b() {
        assert_eq!([100, 400, 10].map(|rate| response_ns(rate * G)), [2018, 1159, 3072]);
        assert_eq!(response_ns(50 * G), 4035, "as 100 Gbit/s has it: 394 quanta");
    }

    #[test]
    fn nothing_overflows() {
        let link = PausedLink {
            rate_bits_per_s: u64::MAX,
            propagation_ns: u64::MAX,
            frame_octets: 1 << 40,
            response_ns: u64::MAX,
        };
        assert_eq!(link.headroom_octets(), u64::MAX);
        let node = WanNode { in_bits_per_s: u64::MAX, out_bits_per_s: 0, propagation_ns: u64::MAX, gateway: link };
        assert_eq!(node.headroom().total_octets(), u64::MAX);
    }
}
