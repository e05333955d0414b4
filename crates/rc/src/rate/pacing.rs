//! Pacing: turns a rate into departure times of packets.
//!
//! A packet of n octets that is sent at rate R makes the next one due n / R later. When the rate changes while a packet
//! waits, the rest of its wait is scaled with it, so that a cut acts on the very next packet, and a slow sender
//! recovers without sleeping. A packet that the port delays by up to its own time does not delay later ones; a longer
//! delay is not caught up, so that a queue pair that was idle sends no burst.

use super::{Event, RateControl, RateLimits};
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::collections::VecDeque;

/// Departures that are kept of packets whose ACK has not come; further ones are not measured.
const MAX_DEPARTURES: usize = 64;

/// Whether a packet may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// The next data packet.
    Now,
    /// Nothing before this time.
    At(Instant),
    /// Nothing until the peer acknowledges, or until this time.
    Acknowledged(Option<Instant>),
}

/// The rate control of a queue pair, and when its next packet is due.
#[derive(Debug)]
pub(crate) struct Pacer {
    control: Box<dyn RateControl>,
    limits: RateLimits,
    link_overhead_octets: u32,
    due: Instant,
    /// The remainder of the last division, in parts of a nanosecond: numerator, with the rate as denominator.
    remainder: u64,
    /// Packets that have requested an ACK, and when they were sent; `None`: not measured.
    departures: Option<VecDeque<(u64, Instant)>>,
}

impl Pacer {
    pub(crate) fn new(control: Box<dyn RateControl>, link_overhead_octets: u16) -> Self {
        let limits = RateLimits { rate_bits_per_s: control.rate_bits_per_s(), window_octets: control.window_octets() };
        let departures = control.takes_round_trips().then(|| VecDeque::with_capacity(MAX_DEPARTURES));
        let link_overhead_octets = link_overhead_octets.into();
        Pacer { control, limits, link_overhead_octets, due: Instant::ZERO, remainder: 0, departures }
    }

    pub(crate) fn limits(&self) -> RateLimits {
        self.limits
    }

    /// Octets of a packet on the link.
    pub(crate) fn link_octets(&self, packet_octets: u32) -> u32 {
        packet_octets + self.link_overhead_octets
    }

    /// Something has happened.
    pub(crate) fn on(&mut self, now: Instant, event: Event<'_>) {
        if let (Event::Lost, Some(departures)) = (event, &mut self.departures) {
            // The ACK of a packet that was sent twice may be that of either.
            departures.clear();
        }
        self.control.on(now, event);
        self.limits.window_octets = self.control.window_octets();
        let rate = self.control.rate_bits_per_s().map(|rate| rate.max(1));
        if rate == self.limits.rate_bits_per_s {
            return;
        }
        let left_ns = self.due.since(now).as_nanos() as u64;
        if left_ns > 0 {
            self.due = now.after_ns(match (self.limits.rate_bits_per_s, rate) {
                (Some(old), Some(new)) => scale(left_ns, old, new),
                (None, _) | (_, None) => 0,
            });
        }
        self.remainder = 0;
        self.limits.rate_bits_per_s = rate;
    }

    /// Lets the rate control catch up, if its time has come.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.control.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.on(now, Event::Timer);
        }
    }

    /// Whether a READ response may be sent: it is not acknowledged, so no window applies.
    pub(crate) fn response_permit(&self, now: Instant) -> Permit {
        if self.due <= now { Permit::Now } else { Permit::At(self.earliest(now)) }
    }

    /// Whether a request may be sent, with so many octets in flight. `awaits_ack`: the peer has been requested to
    /// acknowledge them.
    pub(crate) fn request_permit(&self, now: Instant, in_flight_octets: u64, awaits_ack: bool) -> Permit {
        let is_full = self.limits.window_octets.is_some_and(|window| in_flight_octets >= window.max(1));
        if is_full && awaits_ack {
            return Permit::Acknowledged(self.next_deadline(now));
        }
        self.response_permit(now)
    }

    /// Whether a packet that leaves so many octets in flight must request an acknowledgement: it fills the window, or a
    /// sixteenth of it was sent without a request.
    pub(crate) fn wants_ack(&self, in_flight_octets: u64, octets_without_ack: u64) -> bool {
        self.limits
            .window_octets
            .is_some_and(|window| in_flight_octets >= window || octets_without_ack.saturating_mul(16) >= window)
    }

    /// A data packet was sent.
    pub(crate) fn sent(&mut self, now: Instant, packet_octets: u32) {
        let octets = self.link_octets(packet_octets);
        self.on(now, Event::Sent { octets });
        let Some(rate) = self.limits.rate_bits_per_s else { return };
        let time = u64::from(octets) * 8 * NS_PER_S + self.remainder;
        self.remainder = time % rate;
        let time_ns = time / rate;
        let not_before = Instant::from_ns(now.as_ns().saturating_sub(time_ns));
        self.due = self.due.max(not_before).after_ns(time_ns);
    }

    /// A packet that requests an ACK is sent for the first time.
    pub(crate) fn departs(&mut self, now: Instant, number: u64) {
        if let Some(departures) = self.departures.as_mut().filter(|departures| departures.len() < MAX_DEPARTURES) {
            departures.push_back((number, now));
        }
    }

    /// An ACK of packet `number` has come.
    pub(crate) fn arrives(&mut self, now: Instant, number: u64, is_marked: bool) {
        let Some(departures) = &mut self.departures else { return };
        while departures.front().is_some_and(|(first, _)| *first < number) {
            departures.pop_front();
        }
        if let Some((_, sent)) = departures.pop_front_if(|(first, _)| *first == number) {
            self.on(now, Event::RoundTrip { ns: now.since(sent).as_nanos() as u64, is_marked });
        }
    }

    /// When the next packet is due, or the rate may change before.
    fn earliest(&self, now: Instant) -> Instant {
        self.next_deadline(now).map_or(self.due, |deadline| deadline.min(self.due))
    }

    /// A rate control whose deadline does not move must not stop time.
    fn next_deadline(&self, now: Instant) -> Option<Instant> {
        self.control.next_deadline().map(|deadline| deadline.max(now.after_ns(1)))
    }
}

/// `ns` at the rate `old`, as long as it takes at the rate `new`.
fn scale(ns: u64, old: u64, new: u64) -> u64 {
    let scaled = u128::from(ns) * u128::from(old) / u128::from(new);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::{FixedRate, RateError};

    /// A rate that each CNP halves, and each timer doubles.
    #[derive(Debug)]
    struct Steps {
        rate: Option<u64>,
        window: Option<u64>,
        timer: Option<Instant>,
    }

    impl RateControl for Steps {
        fn on(&mut self, now: Instant, event: Event<'_>) {
            match event {
                Event::Cnp => self.rate = self.rate.map_or(Some(1_000_000_000), |rate| Some(rate / 2)),
                Event::Timer => {
                    self.rate = self.rate.map(|rate| rate * 2);
                    self.timer = Some(now);
                }
                Event::Sent { .. }
                | Event::Acknowledged { .. }
                | Event::RoundTrip { .. }
                | Event::Incast { .. }
                | Event::FastCnp { .. }
                | Event::Lost => {}
            }
        }
        fn rate_bits_per_s(&self) -> Option<u64> {
            self.rate
        }
        fn window_octets(&self) -> Option<u64> {
            self.window
        }
        fn next_deadline(&self) -> Option<Instant> {
            self.timer
        }
    }

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    fn fixed(bits_per_s: u64) -> Result<Pacer, RateError> {
        Ok(Pacer::new(Box::new(FixedRate::new(bits_per_s)?), 38))
    }

    #[test]
    fn packets_are_sent_at_the_rate() -> Result<(), RateError> {
        // 4,200 octets on the link at 400 Gbit/s take 84 ns exactly, at 300 Gbit/s 112.
        for (rate, packets_end_ns) in
            [(400_000_000_000, 84_000), (300_000_000_000, 112_000), (7_000_000_000, 4_800_000)]
        {
            let mut pacer = fixed(rate)?;
            let mut now = Instant::ZERO;
            for _ in 0..1000 {
                assert_eq!(pacer.response_permit(now), Permit::Now);
                pacer.sent(now, 4162);
                if let Permit::At(due) = pacer.response_permit(now) {
                    now = due;
                }
            }
            assert_eq!(now.as_ns(), packets_end_ns, "no fraction of a nanosecond is lost, at {rate}");
        }
        Ok(())
    }

    #[test]
    fn a_delay_of_at_most_one_packet_is_caught_up() -> Result<(), RateError> {
        let mut pacer = fixed(8_000_000_000)?;
        pacer.sent(at(0), 962);
        assert_eq!(pacer.response_permit(at(0)), Permit::At(at(1000)));
        pacer.sent(at(1600), 962);
        assert_eq!(pacer.response_permit(at(1600)), Permit::At(at(2000)), "it was 600 late");
        pacer.sent(at(1_000_000), 962);
        assert_eq!(pacer.response_permit(at(1_000_000)), Permit::Now, "one more at once");
        pacer.sent(at(1_000_000), 962);
        assert_eq!(pacer.response_permit(at(1_000_000)), Permit::At(at(1_001_000)), "then at the rate");
        Ok(())
    }

    #[test]
    fn a_new_rate_acts_on_the_packet_that_waits() {
        let steps = Steps { rate: Some(8_000_000_000), window: None, timer: None };
        let mut pacer = Pacer::new(Box::new(steps), 0);
        pacer.sent(at(0), 1000);
        assert_eq!(pacer.response_permit(at(0)), Permit::At(at(1000)));
        pacer.on(at(400), Event::Cnp);
        assert_eq!(pacer.response_permit(at(400)), Permit::At(at(1600)), "600 left, at half the rate");
        pacer.on(at(1600), Event::Cnp);
        assert_eq!(pacer.response_permit(at(1600)), Permit::Now, "what is due stays due");
        pacer.sent(at(1600), 1000);
        assert_eq!(pacer.response_permit(at(1600)), Permit::At(at(5600)));
        pacer.on(at(3600), Event::Timer);
        assert_eq!(pacer.response_permit(at(3600)), Permit::At(at(3601)), "a deadline that does not move");
        assert_eq!(pacer.response_permit(at(4600)), Permit::Now, "2,000 left, at twice the rate");
    }

    #[test]
    fn a_full_window_waits_for_an_acknowledgement_that_was_asked_for() {
        let steps = Steps { rate: None, window: Some(10_000), timer: None };
        let mut pacer = Pacer::new(Box::new(steps), 0);
        assert_eq!(pacer.request_permit(at(0), 9_999, true), Permit::Now);
        assert_eq!(pacer.request_permit(at(0), 10_000, true), Permit::Acknowledged(None));
        assert_eq!(pacer.request_permit(at(0), 10_000, false), Permit::Now, "else it would wait for ever");
        assert!(pacer.wants_ack(10_000, 0) && pacer.wants_ack(0, 625) && !pacer.wants_ack(9_999, 624));
        pacer.on(at(0), Event::Cnp);
        assert_eq!(pacer.request_permit(at(0), 0, true), Permit::Now, "a rate where there was none");
    }
}
