//! Cost of repair where nothing is lost: data packets to eight branches and their ACKs, with and without a
//! retransmission buffer that keeps the packets and that the ACKs empty (D150).

use super::fixture::{
    DESIGNATED_QPN, EGRESS_PORTS, GROUP, INGRESS, MAC, PROXY, SID, entry, neighbour, node, receiver_qpn,
};
use super::machine::Machine;
use super::packets;
use super::row::Row;
use anyhow::{Context, ensure};
use srdma_dataplane::{Command, Node, SidBehavior};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_group::{Branch, Downstream, GroupEntry, NodeIndex, NodeRole, Receiver, RepairEntry};
use srdma_wire::{Instant, Prefix, Psn, Syndrome};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant as Clock};

/// Subject of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repair {
    copying: Copying,
    is_on: bool,
}

const BRANCHES: u16 = 8;
/// Frames that the driver hands over at a time.
const BATCH: u32 = 64;
/// Data packets from one ACK of a branch to the next.
const ACK_INTERVAL: u32 = 8;
/// What the node does with the group's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copying {
    /// It copies to receivers.
    EndMt,
    /// It copies to nodes.
    Replicate,
}

/// Batches of data in one sample.
const BATCHES: u32 = 64;
/// The source's window: the buffer's room. As many packets are in flight when a batch begins.
const WINDOW_PACKETS: u32 = 128;
/// As in the other cases of multicast.
const PAYLOAD: usize = 64;

impl Repair {
    /// All of them.
    pub(super) const ALL: [Repair; 4] = [
        Repair { copying: Copying::EndMt, is_on: false },
        Repair { copying: Copying::EndMt, is_on: true },
        Repair { copying: Copying::Replicate, is_on: false },
        Repair { copying: Copying::Replicate, is_on: true },
    ];

    /// As the table and JSON write it.
    pub(super) fn name(self) -> String {
        let behavior = match self.copying {
            Copying::EndMt => "End.MT",
            Copying::Replicate => "End.Replicate",
        };
        let repair = if self.is_on { "on" } else { "off" };
        format!("repair {repair}: {behavior} x{BRANCHES} with ACKs")
    }

    pub(super) fn measure(self, repetitions: u32, machine: &Machine) -> anyhow::Result<Row> {
        let mut group = GroupUnderTest { node: self.node()?, pool: Pool::new(usize::MAX), next: 0 };
        let mut samples = (0..=repetitions).map(|_| group.sample()).collect::<anyhow::Result<Vec<f64>>>()?;
        // The first one met cold caches and grew what has to grow.
        samples.remove(0);
        let counters = group.node.repair_counters(GROUP);
        ensure!(counters.is_some() == self.is_on, "repair is not as asked for");
        ensure!(counters.is_none_or(|counters| counters.windows_exceeded == 0), "the buffer was too small");
        let octets = Some(data_frame(0).len());
        Ok(Row::new(self.name(), octets, None, "inside L2", usize::from(BRANCHES), samples, machine))
    }

    fn node(self) -> anyhow::Result<Node> {
        let mut node = node(&[])?;
        let branches = (1..=BRANCHES).map(|port| Branch::new(neighbour(port))).collect();
        let repair = self.is_on.then(|| RepairEntry {
            window_packets: 2 * WINDOW_PACKETS,
            parent_repairs: true,
            children: Vec::new(),
            levels: 1,
        });
        let (behavior, entry) = match self.copying {
            Copying::EndMt => {
                let receivers =
                    (1..=BRANCHES).map(|port| Receiver::new(neighbour(port), receiver_qpn(port), NodeIndex(0)));
                let entry = GroupEntry { receivers: receivers.collect(), branches, repair, ..entry() };
                (SidBehavior::EndMt { require_hmac: false }, entry)
            }
            Copying::Replicate => {
                let downstream = (1..=BRANCHES).map(|port| Downstream::Sid(neighbour(port))).collect();
                let entry = GroupEntry { role: NodeRole::Transit, downstream, branches, repair, ..entry() };
                (SidBehavior::EndReplicate(GROUP), entry)
            }
        };
        node.apply(Command::AddGroup(Box::new(entry)))?;
        node.apply(Command::AddSid { prefix: Prefix::host(SID), behavior })?;
        Ok(node)
    }
}

/// A node with its group in the middle of a transfer.
struct GroupUnderTest {
    node: Node,
    pool: Pool,
    /// The next data packet.
    next: u32,
}

impl GroupUnderTest {
    /// Nanoseconds per data packet, the ACKs of all branches for it included.
    fn sample(&mut self) -> anyhow::Result<f64> {
        let mut time = Duration::ZERO;
        for _ in 0..BATCHES {
            let data: Vec<Vec<u8>> = (self.next..self.next + BATCH).map(data_frame).collect();
            self.next += BATCH;
            let (batch_time, left) = self.hand_over(INGRESS, &data)?;
            ensure!(left == data.len() * usize::from(BRANCHES), "{left} copies of {} packets left", data.len());
            time += batch_time;
            // The ACKs of the batch before, so that one is in flight.
            let Some(last) = self.next.checked_sub(2 * BATCH) else { continue };
            for branch in 1..=BRANCHES {
                let psns = (last..last + BATCH).filter(|psn| psn % ACK_INTERVAL == ACK_INTERVAL - 1);
                let acks: Vec<Vec<u8>> = psns.map(|psn| ack_frame(branch, psn)).collect();
                time += self.hand_over(PortId(branch), &acks)?.0;
            }
        }
        let minimum = self.node.acknowledgements(GROUP).context("the group is missing")?.minimum_psn();
        ensure!(minimum == Some(Psn::new(self.next - BATCH)), "the group stands at {minimum:?}");
        Ok(time.as_nanos() as f64 / f64::from(BATCHES * BATCH))
    }

    /// Hands over a batch; returns the time that the node took, and how many frames left.
    fn hand_over(&mut self, port: PortId, octets: &[Vec<u8>]) -> anyhow::Result<(Duration, usize)> {
        let frames = octets.iter().map(|octets| Frame::from_octets(octets, &mut self.pool));
        let mut batch = frames.collect::<Option<Vec<Frame>>>().context("the pool is exhausted")?;
        let begin = Clock::now();
        self.node.receive(Instant::ZERO, port, &mut batch, &mut self.pool);
        let time = begin.elapsed();
        let mut left = 0;
        for port in (0..=EGRESS_PORTS).map(PortId) {
            while let Some(frame) = self.node.dequeue(Instant::ZERO, port, &mut self.pool) {
                frame.release(&mut self.pool);
                left += 1;
            }
        }
        Ok((time, left))
    }
}

fn data_frame(psn: u32) -> Vec<u8> {
    packets::multicast(MAC, SID, (PROXY, DESIGNATED_QPN), &[], Psn::new(psn), PAYLOAD)
}

fn ack_frame(branch: u16, psn: u32) -> Vec<u8> {
    let address: Ipv6Addr = neighbour(branch);
    let mac = [MAC[0], 0, 0, 0, 0, branch as u8];
    packets::response(mac, address, (PROXY, DESIGNATED_QPN), Psn::new(psn), Syndrome::ACK)
}
