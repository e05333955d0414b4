//! A wire that loses packets.

use srdma_host::{UdpWire, Wire, WireStatistics};
use std::io;
use std::time::Duration;

/// A wire that loses one packet of so many in either direction, by chance.
pub(crate) struct Lossy<'w> {
    wire: &'w mut UdpWire,
    one_of: Option<u64>,
    state: u64,
}

impl<'w> Lossy<'w> {
    pub(crate) fn new(wire: &'w mut UdpWire, one_of: Option<u64>, seed: u64) -> Self {
        Lossy { wire, one_of, state: seed }
    }
}

/// Whether the next packet is lost, by a linear congruential generator.
fn loses(state: &mut u64, one_of: Option<u64>) -> bool {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    one_of.is_some_and(|one_of| (*state >> 33).is_multiple_of(one_of))
}

impl Wire for Lossy<'_> {
    fn receive(&mut self, take: &mut dyn FnMut(&[&[u8]])) -> io::Result<usize> {
        let (state, one_of) = (&mut self.state, self.one_of);
        self.wire.receive(&mut |packet| {
            if !loses(state, one_of) {
                take(packet);
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
