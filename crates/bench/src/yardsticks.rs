//! Yardsticks: the best that the machine can do, and the cost of End.MT by the letter.

use super::cases::WorkingSet;
use super::machine::Machine;
use super::packets::data_packet;
use super::row::Row;
use srdma_wire::icrc::Computation;
use srdma_wire::{BthView, Ipv6View, Psn, Qpn, UdpView, View};
use std::hint::black_box;
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
        let mut destination = vec![0; OCTETS];
        let (octets, copies, samples) = match self {
            Yardstick::Copy => (
                OCTETS,
                1,
                samples(repetitions, || {
                    black_box(&mut destination[..]).copy_from_slice(black_box(&source));
                    Some(())
                }),
            ),
            Yardstick::Crc => (
                OCTETS,
                1,
                samples(repetitions, || {
                    black_box(crc32fast::hash(black_box(&source)));
                    Some(())
                }),
            ),
            Yardstick::CopyAndRecompute { payload_octets } => {
                let mut edge = Edge::new(payload_octets);
                let octets = edge.packet.len();
                (octets, COPIES, samples(repetitions, || edge.copies()))
            }
        };
        let samples = samples.ok_or_else(|| anyhow::anyhow!("{}: the packet is no RoCEv2 packet", self.name()))?;
        Ok(Row::new(self.name(), Some(octets), None, WorkingSet::InsideL2.name(), copies, samples, machine))
    }
}

/// Nanoseconds per run, once for each repetition; `None` when a run fails.
fn samples(repetitions: u32, mut run: impl FnMut() -> Option<()>) -> Option<Vec<f64>> {
    (0..repetitions)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..RUNS {
                run()?;
            }
            Some(begin.elapsed().as_nanos() as f64 / f64::from(RUNS))
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
}
