//! Timers and windows that fit a path: the round-trip time determines timeouts and windows.

use crate::link::LinkModel;
use srdma_rc::Habits;
use srdma_wire::PathMtu;
use std::time::Duration;

/// Octets of headers around the payload, at most, where no receiver list is carried: Ethernet, outer IPv6 and SRH,
/// inner IPv6, UDP, BTH, RETH, ICRC.
const HEADER_OCTETS: usize = 14 + 40 + 24 + 40 + 8 + 12 + 20 + 4;

/// Octets of the frame of an ACK.
const ACK_FRAME_OCTETS: usize = 14 + 40 + 8 + 12 + 4 + 4;

/// Interval of packets between requests for an ACK. A small number lets the nodes of a tree see soon how far each
/// branch has come, so that a NAK of one need not send the source back to what all others have.
const ACK_REQUEST_INTERVAL: u32 = 8;

/// The ACK timeout is at least this multiple of the longest expected response time.
const TIMEOUT_FACTOR: u64 = 2;

/// The sum of T_hold over a tree is this fraction of the ACK timeout: less than a quarter (D20).
const HOLD_DIVISOR: u64 = 5;

/// Minimum and maximum number of outstanding packets.
const WINDOW_LIMITS: (u64, u64) = (32, 1 << 20);

/// Timers and window of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Round trip of a full packet and its ACK, without queueing, in nanoseconds.
    pub round_trip_ns: u64,
    /// The longest expected response time: the same with what may wait before it in a queue.
    pub longest_response_ns: u64,
    /// Packets that may be outstanding.
    pub window_packets: u32,
    /// ACK timeout in the encoding of queue pairs: 4.096 µs · 2^t.
    pub ack_timeout: u8,
    /// T_hold of each node of a tree: all levels together stay below a quarter of the ACK timeout (D20).
    pub t_hold: Duration,
}

impl Timing {
    /// For a tree: a path of `hops` links, `levels` of whose nodes aggregate responses.
    pub fn new(link: &LinkModel, hops: usize, levels: usize, path_mtu: PathMtu) -> Self {
        Timing::with_window(link, hops, levels, path_mtu, None)
    }

    /// The same with another window than the path's.
    pub fn with_window(
        link: &LinkModel,
        hops: usize,
        levels: usize,
        path_mtu: PathMtu,
        window_packets: Option<u32>,
    ) -> Self {
        let path = Path::new(link, hops, path_mtu);
        let window = window_packets.map_or(path.window(), u64::from);
        // At worst the whole window waits in one queue.
        let longest_response_ns = path.round_trip_ns + window * path.packet_ps / 1000;
        let ack_timeout = timeout_code(TIMEOUT_FACTOR * longest_response_ns);
        let t_hold = Duration::from_nanos((4096_u64 << ack_timeout) / (HOLD_DIVISOR * levels.max(1) as u64));
        let (round_trip_ns, window_packets) = (path.round_trip_ns, window as u32);
        Timing { round_trip_ns, longest_response_ns, window_packets, ack_timeout, t_hold }
    }

    /// For a plain connection over `hops` links, one of `connections` that take turns at their host; with the path's
    /// window or another one.
    pub fn unicast(
        link: &LinkModel,
        hops: usize,
        connections: usize,
        path_mtu: PathMtu,
        window_packets: Option<u32>,
    ) -> Self {
        let path = Path::new(link, hops, path_mtu);
        let window = window_packets.map_or(path.window(), u64::from);
        let waiting = u64::from(ACK_REQUEST_INTERVAL).max(window_packets.map_or(0, u64::from));
        let waiting_ps = waiting * connections as u64 * path.packet_ps;
        let longest_response_ns = path.round_trip_ns + waiting_ps / 1000;
        let ack_timeout = timeout_code(TIMEOUT_FACTOR * longest_response_ns);
        let (round_trip_ns, window_packets) = (path.round_trip_ns, window as u32);
        Timing { round_trip_ns, longest_response_ns, window_packets, ack_timeout, t_hold: Duration::ZERO }
    }

    /// A strict endpoint's habits with this window.
    pub fn habits(&self) -> Habits {
        Habits {
            max_outstanding_psns: self.window_packets,
            ack_request_interval: ACK_REQUEST_INTERVAL,
            ..Habits::strict()
        }
    }
}

/// Delays of packets on a path.
struct Path {
    packet_ps: u64,
    round_trip_ns: u64,
}

impl Path {
    fn new(link: &LinkModel, hops: usize, path_mtu: PathMtu) -> Self {
        let packet_ps = link.transmission_ps(path_mtu.octets() as usize + HEADER_OCTETS);
        let ack_ps = link.transmission_ps(ACK_FRAME_OCTETS);
        Path { packet_ps, round_trip_ns: hops as u64 * (2 * link.delay_ns + (packet_ps + ack_ps) / 1000) }
    }

    /// Packets that the path holds, and those until the next request for an ACK. More would only be sent again after a
    /// loss.
    fn window(&self) -> u64 {
        let in_flight = (self.round_trip_ns * 1000).div_ceil(self.packet_ps) + u64::from(ACK_REQUEST_INTERVAL);
        in_flight.clamp(WINDOW_LIMITS.0, WINDOW_LIMITS.1)
    }
}

/// The code of the shortest ACK timeout that is not below `least_ns`.
fn timeout_code(least_ns: u64) -> u8 {
    (1..31).find(|code| 4096_u64 << code >= least_ns).unwrap_or(31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: u64 = 100_000_000_000;

    #[test]
    fn the_window_covers_the_bandwidth_delay_product() {
        let timing = Timing::new(&LinkModel::perfect(FAST, 1000), 4, 3, PathMtu::Octets4096);
        // Four links: twice 1 µs, 4,282 octets in 342 ns, 106 octets in 8 ns.
        assert_eq!(timing.round_trip_ns, 4 * (2000 + 351));
        assert_eq!(timing.window_packets, 28 + 8);
        let timing = Timing::new(&LinkModel::perfect(FAST, 1_000_000), 4, 3, PathMtu::Octets4096);
        assert!(timing.window_packets > 23_000, "{timing:?}");
        assert_eq!(Timing::new(&LinkModel::perfect(1_000_000, 0), 1, 1, PathMtu::Octets256).window_packets, 32);
    }

    /// D20
    #[test]
    fn held_naks_leave_in_good_time_before_the_source_gives_up_waiting() {
        for delay_ns in [0, 1, 1000, 50_000, 10_000_000] {
            for levels in 1..6 {
                let timing = Timing::new(&LinkModel::perfect(FAST, delay_ns), levels + 1, levels, PathMtu::Octets1024);
                let timeout = Duration::from_nanos(4096 << timing.ack_timeout);
                assert!(timing.t_hold * levels as u32 * 4 < timeout, "{timing:?}");
                assert!(timeout.as_nanos() as u64 >= 2 * timing.round_trip_ns, "{timing:?}");
            }
        }
    }
}
