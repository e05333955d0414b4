//! A wire with losses and marks.

use srdma_host::{UdpWire, Wire, WireStatistics};
use std::io;
use std::time::Duration;

/// A wire that loses one packet of so many in either direction, by chance, and marks those that come in and may be
/// marked.
pub(crate) struct Lossy<'w> {
    wire: &'w mut UdpWire,
    one_of: Option<u64>,
    state: u64,
    marks: bool,
}

impl<'w> Lossy<'w> {
    pub(crate) fn new(wire: &'w mut UdpWire, one_of: Option<u64>, seed: u64, marks: bool) -> Self {
        Lossy { wire, one_of, state: seed, marks }
    }
}

/// Hands on a packet in one piece, marked CE if it is ECT(0). The ECN field is the low half of the traffic class, which
/// begins in the low half of the first octet.
fn hand_on(packet: &[&[u8]], marks: bool, take: &mut dyn FnMut(&[&[u8]])) {
    let ecn = packet[0][1] >> 4 & 3;
    if marks && ecn == 2 {
        let mut marked = packet.concat();
        marked[1] |= 3 << 4;
        take(&[&marked]);
    } else {
        take(packet);
    }
}

/// Whether the next packet is lost, by a linear congruential generator.
fn loses(state: &mut u64, one_of: Option<u64>) -> bool {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    one_of.is_some_and(|one_of| (*state >> 33).is_multiple_of(one_of))
}

impl Wire for Lossy<'_> {
    fn receive(&mut self, take: &mut dyn FnMut(&[&[u8]])) -> io::Result<usize> {
        let (state, one_of, marks) = (&mut self.state, self.one_of, self.marks);
        self.wire.receive(&mut |packet| {
            if !loses(state, one_of) {
                hand_on(packet, marks, take);
            }
        })
    }

    fn transmit(&mut self, next: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        let (state, one_of) = (&mut self.state, self.one_of);
        self.wire.transmit(&mut |packet| {
            loop {
                let len = next(packet)?;
                if !loses(state, one_of) {
                    return Some(len);
                }
            }
        })
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.wire.wait(timeout)
    }

    fn statistics(&self) -> WireStatistics {
        self.wire.statistics()
    }
}
