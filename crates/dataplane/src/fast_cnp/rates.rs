//! The rate that a Fast CNP notifies: what each flow of a congested queue may send (D240).
//!
//! ```text
//!                    rate of the port − (queue − threshold) / drain time
//!   rate of a flow = ───────────────────────────────────────────────────
//!                       flows that entered the queue of late
//! ```
//!
//! Flows are counted by linear counting (Whang and others, ACM TODS 15(2), 1990): each sets one of 1,024 bits, and the
//! number of clear ones tells how many there are. Two periods of an interval each count together, so that a flow
//! counts for one interval at least and two at most. The state of a port has a fixed size.

use super::Fields;
use super::flows::FlowKey;
use crate::egress::{CongestionPoint, Egress};
use srdma_frame::PortId;
use srdma_wire::Instant;
use srdma_wire::units::MBIT_PER_S;
use std::time::Duration;

/// Bits of a period, a power of two.
const BITS: usize = 1024;
const WORDS: usize = BITS / 64;

/// However long its queue is, a port's flows may send an eighth of its rate together, so that none stops.
const LEAST_SHARE: u64 = 8;

/// Flows that entered a queue.
#[derive(Clone, Debug)]
struct FlowCount {
    /// Number of the present period.
    period: u64,
    present: [u64; WORDS],
    before: [u64; WORDS],
}

impl FlowCount {
    fn new(period: u64) -> Self {
        FlowCount { period, present: [0; WORDS], before: [0; WORDS] }
    }

    fn add(&mut self, period: u64, key: FlowKey) {
        if period != self.period {
            self.before = if period == self.period + 1 { self.present } else { [0; WORDS] };
            self.present = [0; WORDS];
            self.period = period;
        }
        let bit = key.below(BITS);
        if let Some(word) = self.present.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    /// At least 1, and at most about 7,000.
    fn flows(&self) -> u64 {
        let words = self.present.iter().zip(&self.before);
        let set: u32 = words.map(|(present, before)| (present | before).count_ones()).sum();
        let clear = (BITS as f64 - f64::from(set)).max(1.0);
        ((BITS as f64 * (BITS as f64 / clear).ln()).round() as u64).max(1)
    }
}

/// Flows of all ports, and the rates of their flows.
#[derive(Debug)]
pub(super) struct Rates {
    interval_ns: u64,
    drain_ns: u64,
    /// By port, as far as one has been counted at.
    ports: Vec<Option<Box<FlowCount>>>,
}

impl Rates {
    pub(super) fn new(interval: Duration, drain: Duration) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        Rates { interval_ns: ns(interval), drain_ns: ns(drain), ports: Vec::new() }
    }

    /// A packet enters the queue of a port.
    pub(super) fn count(&mut self, now: Instant, port: PortId, head: &[u8]) {
        let Some(fields) = Fields::of(head) else { return };
        let (period, place) = (now.as_ns() / self.interval_ns, usize::from(port.0));
        if self.ports.len() <= place {
            self.ports.resize(place + 1, None);
        }
        if let Some(count) = self.ports.get_mut(place) {
            count.get_or_insert_with(|| Box::new(FlowCount::new(period))).add(period, FlowKey::of(&fields));
        }
    }

    /// The rate of a flow in a congested queue, in Mbit/s, at least 1; `None` if its threshold or flows are not known.
    pub(super) fn of(&self, at: &CongestionPoint, egress: &Egress) -> Option<u32> {
        let port_bits_per_s = egress.config(at.port)?.rate_bits_per_s;
        let threshold_octets = egress.notify_octets(at.port, at.class)?;
        let excess_octets = egress.class_octets(at.port, at.class)?.saturating_sub(threshold_octets);
        let drain_bits_per_s = excess_octets as u128 * 8_000_000_000 / u128::from(self.drain_ns);
        let left = port_bits_per_s.saturating_sub(u64::try_from(drain_bits_per_s).unwrap_or(u64::MAX));
        let all_bits_per_s = left.max(port_bits_per_s / LEAST_SHARE);
        let flows = self.ports.get(usize::from(at.port.0))?.as_ref()?.flows();
        let mbit_per_s = all_bits_per_s / flows / MBIT_PER_S;
        Some(u32::try_from(mbit_per_s).unwrap_or(u32::MAX).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_wire::Qpn;

    fn key(number: u32) -> FlowKey {
        FlowKey::new(&u128::from(number).to_be_bytes(), &[1; 16], Qpn::new(number & 0xFF).unwrap())
    }

    fn flows(numbers: std::ops::Range<u32>) -> u64 {
        let mut count = FlowCount::new(0);
        // Each sends several packets.
        numbers.flat_map(|number| [number; 3]).for_each(|number| count.add(0, key(number)));
        count.flows()
    }

    #[test]
    fn flows_are_counted_not_packets() {
        assert_eq!(flows(0..1), 1);
        for number in [8, 32, 128, 512, 2000] {
            let found = flows(0..number);
            let error = (found as f64 / f64::from(number) - 1.0).abs();
            assert!(error < 0.1, "{found} of {number}");
        }
        assert!(flows(0..100_000) < 8000, "all bits are set");
    }

    #[test]
    fn a_flow_counts_until_the_end_of_the_next_period() {
        let mut count = FlowCount::new(7);
        (0..20).for_each(|number| count.add(7, key(number)));
        count.add(8, key(100));
        assert_eq!(count.flows(), 21);
        count.add(9, key(100));
        assert_eq!(count.flows(), 1);
        (0..20).for_each(|number| count.add(10, key(number)));
        count.add(12, key(100));
        assert_eq!(count.flows(), 1, "nothing entered in period 11");
    }
}
