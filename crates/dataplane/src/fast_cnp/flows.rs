//! Flows that were notified of congestion, with the time of the last notification (D45). A table of fixed size: no
//! octet from the network makes it grow.
//!
//! ```text
//! flow → 64-bit key → set of 4 entries: key, time of its notification
//! ```
//!
//! An entry of a flow that was notified within the interval is not replaced, so that the limit holds whatever flows
//! come; when all four are of that kind, a fifth flow is refused.

use super::Fields;
use srdma_wire::{Instant, Qpn};

const SETS: usize = 1024;
const WAYS: usize = 4;

/// A flow by its sender, destination and Destination QP. Two flows with one key, once in 2^64, are limited as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey(u64);

impl FlowKey {
    pub(crate) fn of(fields: &Fields<'_>) -> Self {
        Self::new(fields.source, fields.destination, fields.dest_qpn)
    }

    #[inline]
    pub(crate) fn new(source: &[u8; 16], destination: &[u8; 16], qpn: Qpn) -> Self {
        let [a, b] = halves(source);
        let [c, d] = halves(destination);
        let sides = fold(a ^ 0x9E37_79B9_7F4A_7C15, b ^ 0xD6E8_FEB8_6659_FD93)
            ^ fold(c ^ 0xA076_1D64_78BD_642F, d ^ 0xE703_7ED1_A0B4_28DB).rotate_left(23);
        // Zero is the key of an empty entry.
        FlowKey(fold(sides ^ u64::from(qpn.get()), 0x8EBC_6AF0_9C88_C6E3) | 1)
    }
}

impl FlowKey {
    /// A number below `count`, which is a power of two, by which flows are spread.
    pub(crate) fn below(self, count: usize) -> usize {
        (self.0 >> 40) as usize & (count - 1)
    }
}

fn halves(address: &[u8; 16]) -> [u64; 2] {
    let address = u128::from_be_bytes(*address);
    [(address >> 64) as u64, address as u64]
}

/// Multiplied to 128 bits, both halves together: every bit of the result depends on every bit of both.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: u64,
    notified_at: Instant,
}

#[derive(Debug)]
pub(crate) struct Flows {
    sets: Box<[[Entry; WAYS]]>,
    interval_ns: u64,
}

/// The entry for a flow that may be notified now.
#[derive(Debug)]
pub(crate) struct Vacancy<'f> {
    entry: &'f mut Entry,
    notified: Entry,
}

impl Vacancy<'_> {
    /// Records the notification of the flow.
    pub(crate) fn fill(self) {
        *self.entry = self.notified;
    }
}

impl Flows {
    pub(crate) fn new(interval_ns: u64) -> Self {
        Flows { sets: vec![[Entry::default(); WAYS]; SETS].into_boxed_slice(), interval_ns }
    }

    /// The entry of a flow, or a free one, if it was not notified within the interval.
    #[inline]
    pub(crate) fn vacancy(&mut self, now: Instant, key: FlowKey) -> Option<Vacancy<'_>> {
        let interval_ns = self.interval_ns;
        let set = &mut self.sets[Self::set_of(key)];
        let place = set.iter().position(|entry| entry.key == key.0);
        let place = place.or_else(|| (0..WAYS).min_by_key(|way| (set[*way].key != 0, set[*way].notified_at)))?;
        let entry = &mut set[place];
        let is_free = entry.key == 0 || now.as_ns().saturating_sub(entry.notified_at.as_ns()) >= interval_ns;
        is_free.then_some(Vacancy { entry, notified: Entry { key: key.0, notified_at: now } })
    }

    /// Whether a flow was notified, and has not been replaced by others since.
    pub(crate) fn was_notified(&self, key: FlowKey) -> bool {
        self.sets[Self::set_of(key)].iter().any(|entry| entry.key == key.0)
    }

    fn set_of(key: FlowKey) -> usize {
        (key.0 >> 54) as usize % SETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const INTERVAL_NS: u64 = 50_000;

    fn key(number: u32) -> FlowKey {
        let address = u128::from(number).to_be_bytes();
        FlowKey::new(&address, &[1; 16], Qpn::new(number & 0xFF).unwrap())
    }

    fn notify(flows: &mut Flows, ns: u64, key: FlowKey) -> bool {
        flows.vacancy(Instant::from_ns(ns), key).map(Vacancy::fill).is_some()
    }

    #[test]
    fn a_flow_is_notified_once_in_the_interval() {
        let mut flows = Flows::new(INTERVAL_NS);
        let notified: Vec<u64> =
            (0..200).map(|step| step * 1000).filter(|ns| notify(&mut flows, *ns, key(7))).collect();
        assert_eq!(notified, [0, 50_000, 100_000, 150_000]);
        assert!(flows.was_notified(key(7)) && !flows.was_notified(key(8)));
    }

    /// A refused flow leaves no trace.
    #[test]
    fn a_vacancy_that_is_not_filled_changes_nothing() {
        let mut flows = Flows::new(INTERVAL_NS);
        assert!(flows.vacancy(Instant::from_ns(5), key(1)).is_some());
        assert!(!flows.was_notified(key(1)) && notify(&mut flows, 6, key(1)));
    }

    /// More flows than entries: some are refused, but none is notified twice within the interval, and nothing grows.
    #[test]
    fn the_limit_holds_for_any_number_of_flows() {
        let mut flows = Flows::new(INTERVAL_NS);
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        let mut notified = 0;
        for step in 0..200_000_u64 {
            let (flow, ns) = ((step.wrapping_mul(0x9E37_79B9) >> 7) as u32 % 20_000, step * 10);
            if notify(&mut flows, ns, key(flow)) {
                notified += 1;
                assert!(last.insert(flow, ns).is_none_or(|before| ns - before >= INTERVAL_NS), "flow {flow} at {ns}");
            }
        }
        assert!(notified > 20_000, "{notified}");
        assert_eq!(flows.sets.len() * WAYS, 4096);
    }

    /// Flows that differ in a little are spread over the table: a few thousand of one rack do not crowd each other out.
    #[test]
    fn neighbouring_flows_are_spread() {
        let mut flows = Flows::new(INTERVAL_NS);
        let notified = (0..1024).filter(|number| notify(&mut flows, 1, key(*number))).count();
        assert!(notified > 1000, "{notified} of 1024");
    }
}
