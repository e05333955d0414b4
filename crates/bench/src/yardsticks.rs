//! Yardsticks: the best that the machine can do, and the cost of End.MT by the letter.

use super::cases::WorkingSet;
use super::machine::Machine;
use super::packets::data_packet;
use super::row::Row;
use anyhow::{Context, ensure};
use srdma_wire::icrc::Computation;
use srdma_wire::rocev2::Packet;
use srdma_wire::{BthView, Ipv6View, Psn, Qpn, UdpView, View};
use std::hint::black_box;
use std::net::Ipv6Addr;
use std::time::Instant;

/// Something that is measured beside the dataplane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Yardstick {
    /// Copying 4,096 octets.
    Copy,
    /// A CRC-32 over 4,096 octets.
    Crc,
    /// End.MT for eight receivers: each gets a whole copy, its ICRC computed over all of it.
    CopyAndRecompute {
        /// RDMA payload.
        payload_octets: usize,
    },
}

const OCTETS: usize = 4096;
const COPIES: usize = 8;
/// Runs in one sample.
const RUNS: u32 = 256;

impl Yardstick {
    /// All of them.
    pub(super) const ALL: [Yardstick; 4] = [
        Yardstick::Copy,
        Yardstick::Crc,
        Yardstick::CopyAndRecompute { payload_octets: 1024 },
        Yardstick::CopyAndRecompute { payload_octets: 4096 },
    ];

    /// As the table and JSON write it.
    pub(super) fn name(self) -> String {
        match self {
            Yardstick::Copy => "yardstick: copy".to_owned(),
            Yardstick::Crc => "yardstick: crc32fast".to_owned(),
            Yardstick::CopyAndRecompute { .. } => format!("yardstick: End.MT x{COPIES} recomputed"),
        }
    }

    pub(super) fn measure(self, repetitions: u32, machine: &Machine) -> anyhow::Result<Row> {
        let source = vec![0x5A; OCTETS];
        let (octets, copies, samples) = match self {
            Yardstick::Copy => {
                let mut destination = vec![0; OCTETS];
                let copy = |destination: &mut Vec<u8>| {
                    black_box(&mut destination[..]).copy_from_slice(black_box(&source));
                    Some(())
                };
                (OCTETS, 1, samples(repetitions, &mut destination, copy, |_| Ok(())))
            }
            Yardstick::Crc => {
                let hash = |(): &mut ()| {
                    black_box(crc32fast::hash(black_box(&source)));
                    Some(())
                };
                (OCTETS, 1, samples(repetitions, &mut (), hash, |()| Ok(())))
            }
            Yardstick::CopyAndRecompute { payload_octets } => {
                let mut edge = Edge::new(payload_octets);
                (edge.packet.len(), COPIES, samples(repetitions, &mut edge, Edge::copies, Edge::check))
            }
        };
        let samples = samples.with_context(|| self.name())?;
        Ok(Row::new(self.name(), Some(octets), None, WorkingSet::InsideL2.name(), copies, samples, machine))
    }
}

/// Nanoseconds per run, once for each repetition. What the last run has left is checked after each, outside the time.
fn samples<S>(
    repetitions: u32,
    state: &mut S,
    run: impl Fn(&mut S) -> Option<()>,
    check: impl Fn(&S) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<f64>> {
    (0..repetitions)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..RUNS {
                run(state).context("the packet is no RoCEv2 packet")?;
            }
            let time_ns = begin.elapsed().as_nanos() as f64;
            check(state)?;
            Ok(time_ns / f64::from(RUNS))
        })
        .collect()
}

/// An edge by the letter of the draft.
struct Edge {
    packet: Vec<u8>,
    receivers: Vec<([u8; 16], [u8; 3])>,
    buffers: Vec<Vec<u8>>,
}

impl Edge {
    fn new(payload_octets: usize) -> Self {
        let proxy = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 1);
        let qpn = Qpn::from_octets([0, 1, 0]);
        let packet = data_packet(proxy, qpn, Psn::new(0), &vec![0x5A; payload_octets]);
        let receivers = (1..=COPIES as u8).map(|number| ([number; 16], [1, 0, number])).collect();
        let buffers = vec![packet.clone(); 4 * COPIES];
        Edge { packet, receivers, buffers }
    }

    fn copies(&mut self) -> Option<()> {
        self.buffers.rotate_left(COPIES);
        for ((address, qpn), copy) in self.receivers.iter().zip(&mut self.buffers) {
            copy.copy_from_slice(black_box(&self.packet));
            copy.copy_within(24..40, 8);
            copy[24..40].copy_from_slice(address);
            copy[53..56].copy_from_slice(qpn);
            let (covered, icrc) = copy.split_last_chunk_mut::<4>()?;
            let (ipv6, rest) = Ipv6View::split(covered).ok()?;
            let (udp, rest) = UdpView::split(rest).ok()?;
            let (bth, rest) = BthView::split(rest).ok()?;
            let mut computation = Computation::begin(ipv6, 0, udp, bth);
            computation.update(rest);
            *icrc = computation.finish().0;
        }
        Some(())
    }

    /// Checks the last copy of the latest run: the edge writes at fixed offsets, and copies that receivers drop would
    /// cost as much.
    fn check(&self) -> anyhow::Result<()> {
        let last = self.receivers.iter().zip(&self.buffers).next_back();
        let ((address, qpn), copy) = last.context("an edge without receivers")?;
        let (address, qpn) = (Ipv6Addr::from(*address), Qpn::from_octets(*qpn));
        let packet = Packet::parse(copy, copy.len())?;
        let found = (packet.ipv6.destination(), packet.bth.dest_qpn());
        ensure!(found == (address, qpn), "a copy to {found:?}, not to {address} and {qpn:?}");
        ensure!(packet.icrc([])?.is_good(), "a wrong ICRC in the copy to {address}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of an edge that changes one octet of the copy that is checked, in each run; `position` takes the length.
    fn with_wrong(position: fn(usize) -> usize) -> String {
        let mut edge = Edge::new(1024);
        let copies = |edge: &mut Edge| {
            edge.copies()?;
            let copy = &mut edge.buffers[COPIES - 1];
            let position = position(copy.len());
            copy[position] ^= 1;
            Some(())
        };
        samples(2, &mut edge, copies, Edge::check).unwrap_err().to_string()
    }

    #[test]
    fn copies_of_the_edge_are_checked_with_each_sample() {
        let right = samples(2, &mut Edge::new(4096), Edge::copies, Edge::check).unwrap();
        assert_eq!(right.len(), 2);
        let of_address = with_wrong(|_| 24);
        assert!(of_address.starts_with("a copy to (908:"), "{of_address}");
        let of_qpn = with_wrong(|_| 55);
        assert!(of_qpn.starts_with("a copy to (808:") && of_qpn.contains("not to 808:"), "{of_qpn}");
        for error in [with_wrong(|_| 100), with_wrong(|len| len - 1)] {
            assert!(error.starts_with("a wrong ICRC in the copy to 808:"), "{error}");
        }
    }

    /// With another header in front of UDP the fixed offsets are wrong, and the edge takes its usual time.
    #[test]
    fn copies_at_wrong_offsets_are_found() {
        let mut edge = Edge::new(1024);
        let udp = 40;
        edge.packet.splice(udp..udp, [17, 0, 1, 4, 0, 0, 0, 0]);
        edge.packet[6] = 60;
        let octets = edge.packet.len();
        edge.packet[4..6].copy_from_slice(&((octets - udp) as u16).to_be_bytes());
        edge.buffers = vec![edge.packet.clone(); 4 * COPIES];
        assert!(Packet::parse(&edge.packet, octets).is_ok(), "a packet with destination options");
        // The QPN is written where the UDP length is now.
        let error = samples(1, &mut edge, Edge::copies, Edge::check).unwrap_err().to_string();
        assert!(error.starts_with("UDP length "), "{error}");
    }
}
