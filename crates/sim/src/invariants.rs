//! Checker of the responses that reach a source, against the data that receivers really have.
//!
//! It is independent of the aggregation of responses. The checker sees each response that reaches the source, computes
//! from the layout of the messages which octets it confirms, and compares with the memory of every receiver.

use srdma_wire::{Psn, Qpn, Syndrome};
use std::fmt;

/// Division of a stream of octets into messages and packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Octets of the stream.
    pub size_octets: u64,
    /// Octets of each message but the last.
    pub message_octets: u32,
    /// Octets of payload of each packet but a message's last.
    pub path_mtu_octets: u32,
    /// PSN of the first packet.
    pub first_psn: Psn,
}

impl Layout {
    /// Number of messages.
    pub fn messages(&self) -> u64 {
        self.size_octets.div_ceil(u64::from(self.message_octets))
    }

    /// Number of packets.
    pub fn packets(&self) -> u64 {
        self.packets_before(self.size_octets)
    }

    /// Octets in the first `packets` packets.
    fn octets_of(&self, packets: u64) -> u64 {
        let messages = packets / self.packets_of_message();
        let packets_behind = packets % self.packets_of_message();
        let octets_behind = packets_behind * u64::from(self.path_mtu_octets);
        (messages * u64::from(self.message_octets) + octets_behind).min(self.size_octets)
    }

    /// Packets of the first `octets` octets, which end where a message does.
    pub fn packets_before(&self, octets: u64) -> u64 {
        let full = octets / u64::from(self.message_octets);
        let rest = octets % u64::from(self.message_octets);
        full * self.packets_of_message() + rest.div_ceil(u64::from(self.path_mtu_octets))
    }

    fn packets_of_message(&self) -> u64 {
        u64::from(self.message_octets.div_ceil(self.path_mtu_octets))
    }
}

/// A response as the source got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Response {
    /// The queue pair that it is for.
    pub qpn: Qpn,
    pub psn: Psn,
    pub syndrome: Syndrome,
}

impl Response {
    /// Number of packets, counted from `near`, that every receiver has by the response. `near` is a number of packets
    /// that the response cannot be more than 2^23 away from.
    fn packets_acknowledged(&self, layout: &Layout, near: u64) -> i64 {
        let confirmed_by_psn = match self.syndrome {
            Syndrome::Ack(_) => 1,
            // A requester takes these for an acknowledgement of everything before (D16, D24).
            Syndrome::RnrNak(_) | Syndrome::Nak(_) | Syndrome::Reserved(_) => 0,
        };
        let psn_near = layout.first_psn.plus((near & 0xFF_FFFF) as u32);
        near as i64 + i64::from(self.psn.distance_from(psn_near)) + confirmed_by_psn
    }
}

/// Checks MT-5.3.1-1 (an ACK vouches for every packet up to its PSN, at every receiver) and MT-5.3.2-1 (a NAK for every
/// packet before its PSN).
#[derive(Clone, Debug)]
pub struct Checker {
    layout: Layout,
    /// Packets that the responses so far vouched for, rightly.
    confirmed_packets: u64,
    /// Octets that every receiver was seen to have. Memory is never emptied, so that this stays true of them.
    octets_at_all_receivers: u64,
    violations: u64,
    first: Option<Violation>,
}

/// A response that a source must never get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Time at which it arrived, in nanoseconds.
    pub time_ns: u64,
    /// The response.
    pub response: Response,
    /// Number of octets that it confirms.
    pub octets_acknowledged: u64,
    /// The position of a receiver that has fewer, and its octets; `None` when there is no receiver.
    pub receiver: Option<(usize, u64)>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.response.syndrome {
            Syndrome::Ack(_) => "ACK",
            Syndrome::RnrNak(_) => "RNR NAK",
            Syndrome::Nak(_) => "NAK",
            Syndrome::Reserved(_) => "reserved syndrome",
        };
        write!(
            f,
            "at {} ns the source received {kind} {}, which acknowledges {} octets, but ",
            self.time_ns, self.response.psn, self.octets_acknowledged
        )?;
        match self.receiver {
            Some((receiver, octets)) => write!(f, "receiver {receiver} has {octets}"),
            None => write!(f, "there is no receiver"),
        }
    }
}

impl Checker {
    /// A checker for a stream of this layout.
    pub fn new(layout: Layout) -> Self {
        Checker { layout, confirmed_packets: 0, octets_at_all_receivers: 0, violations: 0, first: None }
    }

    /// Checks a response that has just reached the source. `octets_received` yields, for each
    /// receiver, the number of octets in its memory without a gap from the start.
    pub fn check(&mut self, time_ns: u64, response: Response, octets_received: impl Iterator<Item = u64> + Clone) {
        let acknowledged = response.packets_acknowledged(&self.layout, self.confirmed_packets);
        let packets = u64::try_from(acknowledged).unwrap_or(0);
        let octets = self.layout.octets_of(packets);
        // More packets than the stream has is a lie even when all octets are there.
        let beyond_end = packets > self.layout.packets();
        if octets > self.octets_at_all_receivers {
            self.octets_at_all_receivers = octets_received.clone().min().unwrap_or(0);
        }
        let is_true = octets <= self.octets_at_all_receivers && !beyond_end;
        if is_true {
            self.confirmed_packets = self.confirmed_packets.max(packets);
            return;
        }
        let receiver = octets_received.enumerate().find(|(_, there)| *there < octets || beyond_end);
        self.violations += 1;
        self.first.get_or_insert(Violation { time_ns, response, octets_acknowledged: octets, receiver });
    }

    /// Notes that there are other receivers: what all have is to be determined again.
    pub fn change_receivers(&mut self) {
        let confirmed_octets = self.layout.octets_of(self.confirmed_packets);
        self.octets_at_all_receivers = self.octets_at_all_receivers.min(confirmed_octets);
    }

    /// Packets that the responses so far vouched for, rightly.
    pub fn confirmed_packets(&self) -> u64 {
        self.confirmed_packets
    }

    /// Number of responses that confirm more than receivers have.
    pub fn violations(&self) -> u64 {
        self.violations
    }

    /// The first of them.
    pub fn first(&self) -> Option<&Violation> {
        self.first.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 messages of 2,500 octets, in packets of 1,024: 1024 + 1024 + 452. PSNs wrap after the second packet.
    fn layout() -> Layout {
        Layout { size_octets: 25_000, message_octets: 2500, path_mtu_octets: 1024, first_psn: Psn::new(0xFF_FFFE) }
    }

    const QPN: Qpn = Qpn::new(0x100).expect("24 bits");

    fn ack(psn: u32) -> Response {
        Response { qpn: QPN, psn: Psn::new(psn), syndrome: Syndrome::ACK }
    }

    fn nak(psn: u32) -> Response {
        Response { qpn: QPN, psn: Psn::new(psn), syndrome: Syndrome::SEQUENCE_ERROR }
    }

    fn violations(response: Response, octets_received: &[u64]) -> u64 {
        let mut checker = Checker::new(layout());
        checker.check(5, response, octets_received.iter().copied());
        checker.violations()
    }

    #[test]
    fn packets_map_to_octets() {
        let layout = layout();
        assert_eq!((layout.messages(), layout.packets()), (10, 30));
        let octets: Vec<u64> = [0, 1, 2, 3, 4, 29, 30, 31].map(|packets| layout.octets_of(packets)).into();
        assert_eq!(octets, [0, 1024, 2048, 2500, 3524, 24_548, 25_000, 25_000]);
        let short = Layout { size_octets: 2600, ..layout };
        assert_eq!((short.messages(), short.packets(), short.octets_of(4)), (2, 4, 2600));
    }

    /// MT-5.3.1-1
    #[test]
    fn an_ack_vouches_for_its_own_packet() {
        assert_eq!(violations(ack(0xFF_FFFE), &[1024, 2048]), 0);
        assert_eq!(violations(ack(0xFF_FFFE), &[2048, 1023]), 1);
        assert_eq!(violations(ack(0), &[2500]), 0);
        assert_eq!(violations(ack(0), &[2499]), 1);
        assert_eq!(violations(ack(0xFF_FFFD), &[0]), 0, "an ACK of what was before the first packet");
    }

    /// MT-5.3.2-1
    #[test]
    fn a_nak_acknowledges_earlier_psns() {
        assert_eq!(violations(nak(0xFF_FFFE), &[0]), 0);
        assert_eq!(violations(nak(0xFF_FFFF), &[1024]), 0);
        assert_eq!(violations(nak(0xFF_FFFF), &[1024, 1023]), 1);
        let not_ready = Response { qpn: QPN, psn: Psn::new(1), syndrome: Syndrome::RnrNak(3) };
        assert_eq!(violations(not_ready, &[2499]), 1);
    }

    /// Without receivers there is nothing to acknowledge but what was acknowledged before.
    #[test]
    fn without_receivers_no_data_are_acknowledged() {
        assert_eq!(violations(ack(0xFF_FFFE), &[]), 1);
        assert_eq!(violations(nak(0xFF_FFFE), &[]), 0);
        let mut checker = Checker::new(layout());
        checker.check(1, ack(0), [2500].into_iter());
        checker.change_receivers();
        checker.check(2, ack(0), [].into_iter());
        assert_eq!(checker.violations(), 0);
        checker.check(3, ack(1), [].into_iter());
        let text = checker.first().unwrap().to_string();
        assert_eq!(text, "at 3 ns the source received ACK 1, which acknowledges 3524 octets, but there is no receiver");
    }

    /// A receiver that joins is asked, even if the others were seen to have the data.
    #[test]
    fn receivers_that_join_are_asked() {
        let mut checker = Checker::new(layout());
        checker.check(1, ack(0xFF_FFFE), [25_000].into_iter());
        checker.change_receivers();
        checker.check(2, ack(0), [25_000, 1024].into_iter());
        assert_eq!(checker.violations(), 1);
    }

    #[test]
    fn nothing_behind_the_last_packet_can_be_confirmed() {
        let all = [25_000];
        let mut checker = Checker::new(layout());
        checker.check(1, ack(27), all.into_iter());
        assert_eq!(checker.violations(), 0);
        checker.check(2, ack(28), all.into_iter());
        assert_eq!(checker.violations(), 1);
    }

    #[test]
    fn the_first_violation_is_described() {
        let mut checker = Checker::new(layout());
        checker.check(7, ack(0), [2500, 1024].into_iter());
        checker.check(8, ack(1), [2500, 1024].into_iter());
        assert_eq!(checker.violations(), 2);
        let text = checker.first().unwrap().to_string();
        let expected = "at 7 ns the source received ACK 0, which acknowledges 2500 octets, but receiver 1 has 1024";
        assert_eq!(text, expected);
    }

    #[test]
    fn positions_are_followed_through_many_wraps() {
        let layout = Layout { size_octets: 40 << 24, message_octets: 1, path_mtu_octets: 256, first_psn: Psn::new(9) };
        let mut checker = Checker::new(layout);
        for packets in (1..40 << 24).step_by(3_000_000) {
            let psn = Psn::new(9).plus((packets & 0xFF_FFFF) as u32).previous();
            checker.check(packets, Response { qpn: QPN, psn, syndrome: Syndrome::ACK }, [packets].into_iter());
            assert_eq!(checker.violations(), 0, "{packets} packets");
        }
        checker.check(0, Response { qpn: QPN, psn: Psn::new(9), syndrome: Syndrome::ACK }, [1].into_iter());
        assert_eq!(checker.violations(), 1, "PSN 9 has come round 39 times");
    }
}
