//! Two endpoints, a wire between them that does its worst, and virtual time.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_rc::{Endpoint, Memory, Receive, WorkRequest};
use srdma_wire::{Instant, Qpn};
use std::collections::BTreeMap;

/// Probabilities, each from 0 to 1, per packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    pub(crate) reorder: f64,
    pub(crate) corrupt: f64,
}

/// Something that happens to an endpoint.
pub(crate) enum Event {
    Packet(Vec<u8>),
    PostSend(WorkRequest),
    PostReceive(Receive),
}

pub(crate) struct Net<M: Memory = Vec<u8>> {
    pub(crate) endpoints: [Endpoint<M>; 2],
    pub(crate) qpns: [Qpn; 2],
    pub(crate) now: Instant,
    pub(crate) rng: Pcg64Mcg,
    pub(crate) faults: Faults,
    pub(crate) packets_carried: u64,
    events: BTreeMap<(Instant, u64), (usize, Event)>,
    events_made: u64,
    wire_is_free_at: [Instant; 2],
}

const PACKET_TIME_NS: u64 = 300;
const DELAY_NS: u64 = 1_000;

impl<M: Memory> Net<M> {
    pub(crate) fn new(endpoints: [Endpoint<M>; 2], qpns: [Qpn; 2], faults: Faults, seed: u64) -> Self {
        Net {
            endpoints,
            qpns,
            now: Instant::ZERO,
            rng: Pcg64Mcg::seed_from_u64(seed),
            faults,
            packets_carried: 0,
            events: BTreeMap::new(),
            events_made: 0,
            wire_is_free_at: [Instant::ZERO; 2],
        }
    }

    pub(crate) fn at(&mut self, when: Instant, side: usize, event: Event) {
        self.events_made += 1;
        self.events.insert((when, self.events_made), (side, event));
    }

    /// Runs until nothing more can happen.
    pub(crate) fn run(&mut self) {
        loop {
            let next_event = self.events.keys().next().map(|(when, _)| *when);
            let next_deadline = self.endpoints.iter().filter_map(Endpoint::next_deadline).min();
            let Some(next) = next_event.into_iter().chain(next_deadline).min() else { break };
            assert!(next.as_ns() < 3_600_000_000_000, "an hour should be enough");
            self.now = self.now.max(next);
            for endpoint in &mut self.endpoints {
                endpoint.tick(self.now);
            }
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (side, event) = entry.remove();
                self.happen(side, event);
            }
            for side in 0..2 {
                self.transmit(side);
            }
        }
        assert!(!self.endpoints.iter().any(Endpoint::may_transmit));
    }

    fn happen(&mut self, side: usize, event: Event) {
        let qpn = self.qpns[side];
        match event {
            Event::Packet(octets) => {
                // A refusal is not an error here: the wire makes them.
                let _ = self.receive_in_pieces(side, &octets);
            }
            Event::PostSend(request) => self.endpoints[side].post_send(qpn, request).expect("posted"),
            Event::PostReceive(receive) => self.endpoints[side].post_receive(qpn, receive).expect("posted"),
        }
    }

    /// Cuts the packet anywhere behind its headers, so that payload and ICRC straddle the cuts.
    fn receive_in_pieces(&mut self, side: usize, octets: &[u8]) -> Result<(), srdma_rc::DropReason> {
        let headers = octets.len().min(80);
        let first = self.rng.random_range(headers..=octets.len());
        let second = self.rng.random_range(first..=octets.len());
        let pieces = [&octets[..first], &octets[first..second], &octets[second..]];
        self.endpoints[side].receive(self.now, &pieces)
    }

    fn transmit(&mut self, side: usize) {
        let mut buffer = [0; 4300];
        while let Some(length) = self.endpoints[side].poll_transmit(self.now, &mut buffer) {
            self.packets_carried += 1;
            let departs = self.wire_is_free_at[side].max(self.now).after_ns(PACKET_TIME_NS);
            self.wire_is_free_at[side] = departs;
            if self.rng.random_bool(self.faults.loss) {
                continue;
            }
            let copies = if self.rng.random_bool(self.faults.duplicate) { 2 } else { 1 };
            for _ in 0..copies {
                let late = self.rng.random_bool(self.faults.reorder);
                let extra_ns = if late { self.rng.random_range(0..20_000) } else { 0 };
                let mut octets = buffer[..length].to_vec();
                if self.rng.random_bool(self.faults.corrupt) {
                    let place = self.rng.random_range(0..length);
                    octets[place] ^= 1 << self.rng.random_range(0..8u32);
                }
                self.at(departs.after_ns(DELAY_NS + extra_ns), 1 - side, Event::Packet(octets));
            }
        }
    }
}
