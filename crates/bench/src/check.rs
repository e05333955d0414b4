//! Checks of the frames that leave: a benchmark of dropped packets would be fast.

use super::fixture::{EGRESS_PORTS, Expected, Fixture, INGRESS};
use super::packets::ETHERNET;
use anyhow::{Context, ensure};
use srdma_frame::{Element, Pool, PortId};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Instant, Ipv6};

/// Sends the first frames one by one, and compares each frame that leaves with what is expected.
pub(super) fn check(fixture: &mut Fixture, frames: usize, pool: &mut Pool) -> anyhow::Result<()> {
    for number in 0..frames {
        let frame = fixture.frame(number, pool)?;
        let mut expected = fixture.expected()?;
        fixture.node.receive(Instant::ZERO, INGRESS, &mut vec![frame], pool);
        for port in (1..=EGRESS_PORTS).map(PortId) {
            while let Some(frame) = fixture.node.dequeue(Instant::ZERO, port, pool) {
                let octets = frame.to_vec(pool);
                frame.release(pool);
                let found = found(port, &octets)?;
                let position = expected.iter().position(|expected| agree(expected, &found));
                expected.swap_remove(position.with_context(|| format!("frame {number}: {found:?}, not {expected:?}"))?);
            }
        }
        let drops = fixture.node.port_counters(INGRESS).map(|counters| counters.drops.iter().collect::<Vec<_>>());
        ensure!(expected.is_empty(), "frame {number}: {expected:?} did not leave, drops {drops:?}");
    }
    Ok(())
}

/// Only where a queue pair is expected does the one found count.
fn agree(expected: &Expected, found: &Expected) -> bool {
    let qpn = expected.qpn.and(found.qpn);
    *expected == Expected { qpn, ..*found }
}

fn found(port: PortId, frame: &[u8]) -> anyhow::Result<Expected> {
    let packet = frame.get(ETHERNET..).context("a frame without a packet")?;
    ensure!(frame[..6] == [2, 0, 0, 0, 1, port.0 as u8], "port {} sends to MAC address {:02x?}", port.0, &frame[..6]);
    let (ipv6, _) = Ipv6::parse(packet)?;
    ensure!(usize::from(ipv6.payload_length) + Ipv6::LEN == packet.len(), "a wrong Payload Length: {ipv6:?}");
    let qpn = match Packet::parse(packet, packet.len()) {
        Ok(packet) => {
            ensure!(packet.icrc([])?.is_good(), "a wrong ICRC in a copy to {}", ipv6.destination);
            Some(packet.bth.dest_qpn())
        }
        Err(_) => None,
    };
    Ok(Expected { port, octets: frame.len(), destination: ipv6.destination, hop_limit: ipv6.hop_limit, qpn })
}
