//! Cost of a response, and of a group: the aggregation alone, and whole packets, for one group and for ten thousand.

use super::fixture::{DESIGNATED_QPN, INGRESS, MAC, PROXY, SID, entry, node, receiver_qpn};
use super::machine::Machine;
use super::packets;
use super::row::{MemoryRow, Row};
use anyhow::{Context, ensure};
use srdma_aggregation::{Acknowledgements, BranchIndex, Response, Rules, Start, Syndrome};
use srdma_dataplane::{Command, NextHop, Node, SidBehavior};
use srdma_frame::{Element, Frame, Pool};
use srdma_group::{Branch, GroupEntry, GroupId, NodeIndex, Receiver};
use srdma_wire::{Instant, MacAddress, Prefix, Psn, Syndrome as AethSyndrome};
use std::hint::black_box;
use std::net::Ipv6Addr;
use std::ops::Range;
use std::time::{Duration, Instant as Clock};

/// Subject of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregation {
    /// Look-up of the branch, update, decision: no packet. All branches acknowledge each PSN in turn.
    Machine { branches: u16 },
    /// The same where each response moves the minimum, so that each is forwarded.
    Advance { branches: u16 },
    /// ACKs of receivers from frames in memory to the ACKs of the node in the egress queue.
    Packets {
        /// Groups, whose packets take turns.
        groups: u32,
        branches: u16,
    },
    /// Data packets to all receivers of groups that take turns.
    Data {
        groups: u32,
        /// Receivers of each.
        branches: u16,
    },
    /// A NAK above the minimum in each group, which begins a T_hold.
    HoldBegins { groups: u32 },
    /// The end of T_hold in all groups at once: each sends a NAK upstream.
    HoldEnds { groups: u32 },
}

/// As many groups as one node is to serve.
const MANY: u32 = 10_000;
/// Branches of each group where there are many.
const FEW: u16 = 8;
/// Responses in one sample.
const RESPONSES: usize = 4096;
/// Frames that the driver hands over at a time.
const BATCH: usize = 64;
/// Octets of payload of a data packet.
const PAYLOAD: usize = 64;
/// Longer than T_hold.
const LONG: Duration = Duration::from_secs(1);

impl Aggregation {
    /// All of them.
    pub(super) const ALL: [Aggregation; 11] = [
        Aggregation::Machine { branches: 8 },
        Aggregation::Machine { branches: 256 },
        Aggregation::Advance { branches: 8 },
        Aggregation::Advance { branches: 256 },
        Aggregation::Packets { groups: 1, branches: FEW },
        Aggregation::Packets { groups: 1, branches: 256 },
        Aggregation::Packets { groups: MANY, branches: FEW },
        Aggregation::Data { groups: 1, branches: FEW },
        Aggregation::Data { groups: MANY, branches: FEW },
        Aggregation::HoldBegins { groups: MANY },
        Aggregation::HoldEnds { groups: MANY },
    ];

    /// As the table and JSON write it.
    pub(super) fn name(self) -> String {
        match self {
            Aggregation::Machine { branches } => format!("aggregation x{branches}"),
            Aggregation::Advance { branches } => format!("aggregation x{branches}, advancing"),
            Aggregation::Packets { groups, branches } => format!("ACK x{branches}{}", of_groups(groups)),
            Aggregation::Data { groups, branches } => format!("End.MT x{branches}{}", of_groups(groups)),
            Aggregation::HoldBegins { groups } => format!("NAK held{}", of_groups(groups)),
            Aggregation::HoldEnds { groups } => format!("T_hold ends{}", of_groups(groups)),
        }
    }

    /// Whether one repetition takes long.
    pub(super) fn is_long(self) -> bool {
        match self {
            Aggregation::Machine { .. } | Aggregation::Advance { .. } => false,
            Aggregation::Packets { groups, .. }
            | Aggregation::Data { groups, .. }
            | Aggregation::HoldBegins { groups }
            | Aggregation::HoldEnds { groups } => groups > 1,
        }
    }

    pub(super) fn measure(self, repetitions: u32, machine: &Machine) -> anyhow::Result<Row> {
        let mut samples = match self {
            Aggregation::Machine { branches } => aggregation(branches, false, repetitions)?,
            Aggregation::Advance { branches } => aggregation(branches, true, repetitions)?,
            Aggregation::Packets { groups, branches } => Edge::new(groups, branches)?.acks(repetitions)?,
            Aggregation::Data { groups, branches } => Edge::new(groups, branches)?.data(repetitions)?,
            Aggregation::HoldBegins { groups } => Edge::new(groups, FEW)?.holds(repetitions)?.0,
            Aggregation::HoldEnds { groups } => Edge::new(groups, FEW)?.holds(repetitions)?.1,
        };
        // The first one met cold caches and grew what has to grow.
        samples.remove(0);
        let (groups, copies) = match self {
            Aggregation::Machine { .. } | Aggregation::Advance { .. } => (1, 1),
            Aggregation::Packets { groups, .. }
            | Aggregation::HoldBegins { groups }
            | Aggregation::HoldEnds { groups } => (groups, 1),
            Aggregation::Data { groups, branches } => (groups, usize::from(branches)),
        };
        let working_set = if groups == 1 { "inside L2" } else { "groups" };
        Ok(Row::new(self.name(), None, None, working_set, copies, samples, machine))
    }
}

/// Octets of memory that a group takes at an edge node, everything included: state, receiver list, tables. First for
/// [`MANY`] groups with 8 branches, then for a tenth as many more with 256. It must run before everything else: memory
/// that was freed would be used again without being counted.
pub(super) fn memory() -> anyhow::Result<Vec<MemoryRow>> {
    let mut edge = Edge::new(0, 256)?;
    let mut rows = Vec::new();
    for (groups, branches) in [(0..MANY, FEW), (MANY..MANY + MANY / 10, 256)] {
        let case = format!("memory of a group x{branches}, {} groups", groups.len());
        let octets_per_group = edge.add_groups(groups, branches)?;
        rows.push(MemoryRow { case, branches, octets_per_group });
    }
    Ok(rows)
}

fn of_groups(groups: u32) -> String {
    if groups == 1 { String::new() } else { format!(", {groups} groups") }
}

/// The receiver behind a branch: a neighbour at the port that frames come in at.
pub(super) fn receiver(branch: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xd, 0, 0, 0, 1, branch)
}

/// A permutation of the branches, for they do not answer in the order of their addresses.
fn shuffled(branches: u16, round: u32) -> impl Iterator<Item = u16> {
    let stride = (1..branches).rev().find(|stride| gcd(u32::from(*stride), u32::from(branches)) == 1).unwrap_or(1);
    let stride = u32::from(stride / 2 * 2 + 1) % u32::from(branches.max(1));
    let stride = if gcd(stride, u32::from(branches)) == 1 { stride } else { 1 };
    (0..u32::from(branches)).map(move |position| ((position * stride + round * 5) % u32::from(branches)) as u16)
}

fn gcd(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Nanoseconds per response: the responder is looked up as a node does, by its address among all, sorted.
fn aggregation(branches: u16, advancing: bool, repetitions: u32) -> anyhow::Result<Vec<f64>> {
    let responders: Vec<([u8; 16], BranchIndex)> =
        (0..branches).map(|branch| (receiver(branch).octets(), BranchIndex(branch))).collect();
    let mut acknowledgements = Acknowledgements::new(&Rules::default(), branches, Start::Committed(Psn::new(0)));
    let mut out = Vec::new();
    let mut round = 0;
    let mut sample = || {
        let rounds = if advancing { RESPONSES as u32 } else { RESPONSES as u32 / u32::from(branches) };
        let last = Psn::new(round + rounds);
        acknowledgements.data(Instant::ZERO, last, false, &mut out);
        let mut responses: Vec<([u8; 16], Psn)> = Vec::new();
        if advancing {
            for branch in 1..branches {
                let far = Response { psn: last, msn: 1, syndrome: Syndrome::Ack };
                let _taken = acknowledgements.response(Instant::ZERO, BranchIndex(branch), far, &mut out);
            }
            responses.extend((round..round + rounds).map(|psn| (receiver(0).octets(), Psn::new(psn))));
        } else {
            for psn in round..round + rounds {
                responses.extend(shuffled(branches, psn).map(|branch| (receiver(branch).octets(), Psn::new(psn))));
            }
        }
        round += rounds;
        let begin = Clock::now();
        for (address, psn) in &responses {
            let position = responders.binary_search_by(|(known, _)| known.cmp(black_box(address)));
            let branch = position.map_or(BranchIndex(u16::MAX), |position| responders[position].1);
            let response = Response { psn: *psn, msn: 1, syndrome: Syndrome::Ack };
            black_box(acknowledgements.response(Instant::ZERO, branch, response, &mut out).is_ok());
            out.clear();
        }
        let time = begin.elapsed();
        let minimum = acknowledgements.minimum_psn();
        ensure!(minimum == Some(last), "the minimum is {minimum:?}, not {last:?}: responses were refused");
        Ok(time.as_nanos() as f64 / responses.len() as f64)
    };
    (0..=repetitions).map(|_| sample()).collect()
}

/// An edge node of many groups, with all receivers at the port where their responses come in.
struct Edge {
    node: Node,
    pool: Pool,
    groups: u32,
    branches: u16,
    /// The next PSN of every group.
    psn: u32,
}

impl Edge {
    fn new(groups: u32, branches: u16) -> anyhow::Result<Self> {
        let mut node = node(&[])?;
        prepare_edge(&mut node, branches)?;
        let mut edge = Edge { node, pool: Pool::new(usize::MAX), groups, branches, psn: 0 };
        edge.add_groups(0..groups, branches)?;
        Ok(edge)
    }

    /// Octets of the process's memory that each takes.
    fn add_groups(&mut self, groups: Range<u32>, branches: u16) -> anyhow::Result<f64> {
        let (before, number) = (resident_octets(), groups.len());
        for group in groups {
            self.node.apply(Command::AddGroup(Box::new(group_entry(group, branches))))?;
        }
        Ok(resident_octets().saturating_sub(before) as f64 / number as f64)
    }

    /// Nanoseconds per ACK.
    fn acks(&mut self, repetitions: u32) -> anyhow::Result<Vec<f64>> {
        let rounds = (RESPONSES / usize::from(self.branches) / self.groups as usize).max(1) as u32;
        let mut sample = || {
            self.send_data(self.psn + rounds - 1)?;
            let (mut time, mut sent) = (Duration::ZERO, 0);
            for psn in self.psn..self.psn + rounds {
                for turn in 0..u32::from(self.branches) {
                    let order: Vec<u16> = shuffled(self.branches, psn).collect();
                    let (taken, left) = self.hand_over(|group| {
                        let branch = order[turn as usize];
                        Ok(packets::response(MAC, receiver(branch), names(group), Psn::new(psn), AethSyndrome::ACK))
                    })?;
                    (time, sent) = (time + taken, sent + left);
                }
            }
            self.psn += rounds;
            let acks = rounds as usize * self.groups as usize;
            ensure!(sent == acks, "{sent} ACKs left, {acks} minima were acknowledged");
            self.check(self.psn)?;
            let responses = f64::from(rounds) * f64::from(self.branches) * f64::from(self.groups);
            Ok(time.as_nanos() as f64 / responses)
        };
        (0..=repetitions).map(|_| sample()).collect()
    }

    /// Nanoseconds per data packet.
    fn data(&mut self, repetitions: u32) -> anyhow::Result<Vec<f64>> {
        let packets = (RESPONSES as u32 / self.groups).max(1);
        let mut sample = || {
            let mut time = Duration::ZERO;
            for psn in self.psn..self.psn + packets {
                let (taken, left) = self.send_data(psn)?;
                let copies = self.groups as usize * usize::from(self.branches);
                ensure!(left == copies, "{left} copies left, {copies} were due");
                time += taken;
            }
            self.psn += packets;
            Ok(time.as_nanos() as f64 / f64::from(packets) / f64::from(self.groups))
        };
        (0..=repetitions).map(|_| sample()).collect()
    }

    /// Nanoseconds per NAK that is held, and per NAK whose T_hold has ended.
    fn holds(&mut self, repetitions: u32) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
        self.send_data(2 * repetitions + 4)?;
        let (mut begins, mut ends) = (Vec::new(), Vec::new());
        let mut now = Instant::ZERO;
        for round in 0..=repetitions {
            let psn = Psn::new(round + 2);
            let nak = AethSyndrome::SEQUENCE_ERROR;
            let (time, _) = self.hand_over(|group| Ok(packets::response(MAC, receiver(1), names(group), psn, nak)))?;
            begins.push(time.as_nanos() as f64 / f64::from(self.groups));
            now += LONG;
            ensure!(self.node.next_deadline().is_some_and(|at| at < now), "no T_hold has begun");
            let begin = Clock::now();
            self.node.tick(now, &mut self.pool);
            ends.push(begin.elapsed().as_nanos() as f64 / f64::from(self.groups));
            let sent = self.empty_queues();
            ensure!(sent == self.groups as usize, "{sent} NAKs left at the end of T_hold, in round {round}");
            // The data at the minimum are retransmitted, so that the next NAK is forwarded.
            self.send_data(0)?;
            ensure!(self.node.next_deadline().is_none_or(|at| at > now), "a T_hold goes on");
        }
        Ok((begins, ends))
    }

    /// One data packet to each group; gives the time that the node took, and the number of copies.
    fn send_data(&mut self, psn: u32) -> anyhow::Result<(Duration, usize)> {
        self.hand_over(|group| Ok(packets::multicast(MAC, SID, names(group), &[], Psn::new(psn), PAYLOAD)))
    }

    /// Hands over one frame for each group, batch by batch; gives the time that the node took, and the number of frames
    /// that left.
    fn hand_over(&mut self, frame: impl Fn(u32) -> anyhow::Result<Vec<u8>>) -> anyhow::Result<(Duration, usize)> {
        let (mut time, mut left) = (Duration::ZERO, 0);
        let mut batch = Vec::with_capacity(BATCH);
        let mut group = 0;
        while group < self.groups {
            let end = self.groups.min(group + BATCH as u32);
            for group in group..end {
                let octets = frame(group)?;
                batch.push(Frame::from_octets(&octets, &mut self.pool).context("the pool is exhausted")?);
            }
            group = end;
            let begin = Clock::now();
            self.node.receive(Instant::ZERO, INGRESS, &mut batch, &mut self.pool);
            time += begin.elapsed();
            left += self.empty_queues();
        }
        Ok((time, left))
    }

    fn empty_queues(&mut self) -> usize {
        let mut left = 0;
        for port in (0..=super::fixture::EGRESS_PORTS).map(srdma_frame::PortId) {
            while let Some(frame) = self.node.dequeue(Instant::ZERO, port, &mut self.pool) {
                frame.release(&mut self.pool);
                left += 1;
            }
        }
        left
    }

    /// Every group has confirmed everything: a benchmark of dropped packets would be fast.
    fn check(&self, psn: u32) -> anyhow::Result<()> {
        for group in [0, self.groups / 2, self.groups - 1] {
            let found = self.node.acknowledgements(GroupId(group)).context("a group is missing")?.minimum_psn();
            ensure!(found == Some(Psn::new(psn)), "group {group} stands at {found:?}, not at {psn}");
        }
        Ok(())
    }
}

/// Makes a node an edge of so many receivers, without groups.
pub(super) fn prepare_edge(node: &mut Node, branches: u16) -> anyhow::Result<()> {
    for branch in 0..branches {
        let next_hop = NextHop { port: INGRESS, address: receiver(branch) };
        node.apply(Command::AddNeighbour { next_hop, mac: MacAddress([2, 0, 0, 0, 2, branch as u8]) })?;
    }
    let behavior = SidBehavior::EndMt { require_hmac: false };
    node.apply(Command::AddSid { prefix: Prefix::host(SID), behavior })?;
    Ok(())
}

/// Proxy Address and Designated QPN of a group.
pub(super) fn names(group: u32) -> (Ipv6Addr, srdma_wire::Qpn) {
    ((u128::from(PROXY) + (u128::from(group) << 16)).into(), DESIGNATED_QPN)
}

pub(super) fn group_entry(group: u32, branches: u16) -> GroupEntry {
    let receivers = (0..branches).map(|branch| Receiver::new(receiver(branch), receiver_qpn(branch), NodeIndex(0)));
    GroupEntry {
        id: GroupId(group),
        proxy: names(group).0,
        branches: (0..branches).map(|branch| Branch::new(receiver(branch))).collect(),
        receivers: receivers.collect(),
        ..entry()
    }
}

/// Octets of memory that this process has; 0 where the kernel does not report them.
fn resident_octets() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|value| value.split_whitespace().next()?.parse::<usize>().ok()).map_or(0, |kib| kib << 10)
}
