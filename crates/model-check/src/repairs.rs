//! Nodes that repair: the machine of `srdma_repair` beside the aggregation, driven as a node drives it.

use crate::machines::{Machine, Output, Sent};
use crate::queue::Data;
use crate::record::{Child, Place};
use srdma_aggregation::{Acknowledgements, BranchIndex, Origin, Response, Rules};
use srdma_repair::{BranchKind, Repair, RepairRules, Request};
use srdma_wire::{Instant, Psn};
use std::fmt;
use std::time::Duration;

/// Which nodes repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repairers {
    /// None: aggregation alone.
    Nobody,
    /// Every node.
    All,
    /// Nodes with receivers.
    Edges,
    /// The root.
    Root,
    /// The root, and nodes with receivers: not those between them.
    RootAndEdges,
    /// Every node but the root.
    BelowRoot,
}

/// Repair in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repairs {
    /// Which nodes repair.
    pub by: Repairers,
    /// Packets that a buffer holds, rounded up to a power of two.
    pub buffer: u8,
    /// Nodes wait for receivers that are not ready; else the source is sent their RNR NAKs.
    pub waits: bool,
    /// The source's timer never ends, and its own link has no faults: everything has to be repaired below it, and the
    /// source must not notice.
    pub alone: bool,
}

impl Repairs {
    /// No node repairs.
    pub const NONE: Repairs = Repairs { by: Repairers::Nobody, buffer: 0, waits: true, alone: false };

    /// Whether any node repairs.
    pub(crate) fn repairs(&self) -> bool {
        self.by != Repairers::Nobody
    }

    /// Whether a node repairs.
    pub(crate) fn at(&self, node: usize, place: &Place) -> bool {
        match self.by {
            Repairers::Nobody => false,
            Repairers::All => true,
            Repairers::Edges => is_edge(place),
            Repairers::Root => node == 0,
            Repairers::RootAndEdges => node == 0 || is_edge(place),
            Repairers::BelowRoot => node != 0,
        }
    }

    /// The rules of a node, and its branches' kinds.
    pub(crate) fn of(&self, node: usize, places: &[Place]) -> Option<(RepairRules, Vec<BranchKind>)> {
        let place = places.get(node).filter(|place| self.at(node, place))?;
        let repairs = |node: usize| self.at(node, &places[node]);
        let kind = |child: Child| match child {
            Child::Node(child) if repairs(child) => BranchKind::Repairs,
            Child::Node(_) | Child::Receiver(_) => BranchKind::Plain,
        };
        let rules = RepairRules {
            capacity: u32::from(self.buffer),
            parent_repairs: place.parent.is_some_and(repairs),
            gap_hold: Duration::from_micros(1),
            initial_round_trip: Duration::from_micros(1),
            // A quarter of it is more than the 10 us that receivers ask for, or less.
            ack_timeout: if self.waits { Duration::from_millis(1) } else { Duration::from_micros(8) },
        };
        Some((rules, place.branches.iter().map(|branch| kind(branch.child)).collect()))
    }
}

impl fmt::Display for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            Repairers::Nobody => return Ok(()),
            Repairers::All => "all nodes",
            Repairers::Edges => "edges",
            Repairers::Root => "the root",
            Repairers::RootAndEdges => "the root and edges",
            Repairers::BelowRoot => "all but the root",
        };
        let waits = if self.waits { "" } else { ", RNR NAKs go up" };
        let alone = if self.alone { ", without the source" } else { "" };
        write!(f, "repair by {by}, buffer {}{waits}{alone}; ", self.buffer)
    }
}

fn is_edge(place: &Place) -> bool {
    place.branches.iter().any(|branch| matches!(branch.child, Child::Receiver(_)))
}

/// What is overdue when the timer of a node ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    /// Requests, and receivers that were not ready.
    Requests,
    /// Everything.
    All,
}

/// The repair of a node, with the branches that wait for room on their link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeRepair {
    /// It keeps of a packet whether it requests an ACK.
    repair: Repair<bool>,
    branches: u16,
    /// One bit each.
    waiting: u16,
}

impl NodeRepair {
    pub(crate) fn new(rules: RepairRules, kinds: &[BranchKind], origins: &[Origin]) -> Self {
        let branches: Vec<_> = kinds.iter().copied().zip(origins.iter().copied()).collect();
        let mut repair = Repair::new(rules, &branches);
        repair.without_time(Instant::ZERO);
        NodeRepair { repair, branches: branches.len() as u16, waiting: 0 }
    }

    /// Whether a timer runs.
    pub(crate) fn is_armed(&self) -> bool {
        self.repair.next_deadline().is_some()
    }

    /// Whether a branch may have packets to be sent.
    pub(crate) fn is_waiting(&self, branch: usize) -> bool {
        self.waiting >> branch & 1 == 1
    }

    /// After an event at `now`.
    fn settle(&mut self, now: Instant, out: &mut Output) {
        for branch in out.effects.ready.drain(..) {
            self.waiting |= 1 << branch.index();
        }
        self.repair.without_time(now);
    }
}

impl Machine {
    /// A data packet has come.
    pub(crate) fn data(&mut self, psn: Psn, data: Data, out: &mut Output) {
        let now = Instant::ZERO;
        self.acks.data(now, psn, data.ack_request, &mut out.responses);
        let Some(node) = &mut self.repair else { return };
        let arrival = node.repair.arrive(now, psn, data.ack_request, &self.acks);
        let wants = |branch: &u16| arrival.is_for_all || node.repair.wants(&arrival, BranchIndex(*branch), &self.acks);
        out.down.extend((0..node.branches).filter(wants).map(|branch| Sent {
            branch,
            code: data.code(),
            goes_ahead: false,
        }));
        node.repair.store(now, arrival, data.ack_request, &self.acks, &mut out.effects);
        node.settle(now, out);
    }

    /// A response of a branch. A rejected one changes nothing.
    pub(crate) fn response(&mut self, branch: u16, response: Response, out: &mut Output) {
        let (now, branch) = (Instant::ZERO, BranchIndex(branch));
        let Machine { acks, repair } = self;
        let Some(node) = repair else {
            let _rejected = acks.response(now, branch, response, &mut out.responses);
            return;
        };
        let _rejected = node.repair.response(now, branch, response, acks, &mut out.responses, &mut out.effects);
        node.settle(now, out);
    }

    /// A child requests packets.
    pub(crate) fn request(&mut self, branch: u16, request: Request, out: &mut Output) {
        let Some(node) = &mut self.repair else { return };
        let _refused = node.repair.requested(Instant::ZERO, BranchIndex(branch), request, &self.acks, &mut out.effects);
        node.settle(Instant::ZERO, out);
    }

    /// The timer of repair.
    pub(crate) fn tick(&mut self, due: Due, out: &mut Output) {
        let Some(node) = &mut self.repair else { return };
        let now = match due {
            Due::Requests => Instant::from_ns(1),
            Due::All => Instant::ZERO + node.repair.rules().ack_timeout / 2,
        };
        node.repair.tick(now, &self.acks, &mut out.responses, &mut out.effects);
        node.settle(now, out);
    }

    /// The link of a branch has room.
    pub(crate) fn poll(&mut self, branch: u16, initial: Psn, out: &mut Output) {
        let Some(node) = &mut self.repair else { return };
        match node.repair.poll(Instant::ZERO, BranchIndex(branch), &mut self.acks) {
            Some(sending) => {
                let packet = u8::try_from(sending.psn.distance_from(initial)).unwrap_or(Data::TOO_HIGH);
                let kept = node.repair.packet(sending.psn).copied().unwrap_or_default();
                let data = Data { packet: packet.min(Data::TOO_HIGH), ack_request: sending.ack_request || kept };
                out.down.push(Sent { branch, code: data.code(), goes_ahead: sending.goes_ahead });
            }
            None => node.waiting &= !(1 << branch),
        }
        node.settle(Instant::ZERO, out);
    }

    /// The next packet of the buffer proves damaged when it is to be sent again to a branch; if it is not sent again,
    /// nothing happens.
    pub(crate) fn damage(&mut self, branch: u16, out: &mut Output) {
        let before = self.clone();
        let Some(node) = &mut self.repair else { return };
        match node.repair.poll(Instant::ZERO, BranchIndex(branch), &mut self.acks) {
            Some(sending) if sending.is_again => {
                node.repair.discard(Instant::ZERO, sending.psn, &mut out.effects);
                node.settle(Instant::ZERO, out);
            }
            Some(_) | None => *self = before,
        }
    }

    /// The next epoch of a node that stays in the tree.
    pub(crate) fn succeed(
        &mut self,
        rules: &Rules,
        origins: &[Origin],
        forgets: bool,
        of_repair: Option<(RepairRules, Vec<BranchKind>)>,
        out: &mut Output,
    ) {
        self.acks.succeed(rules, origins, forgets, &mut out.responses);
        let (Some(node), Some((rules, kinds))) = (&mut self.repair, of_repair) else { return };
        let branches: Vec<_> = kinds.into_iter().zip(origins.iter().copied()).collect();
        node.repair.succeed(rules, &branches, &self.acks, &mut out.effects);
        (node.branches, node.waiting) = (branches.len() as u16, 0);
        node.settle(Instant::ZERO, out);
    }

    /// A machine without learned state but for the origins.
    pub(crate) fn new(rules: &Rules, origins: &[Origin], of_repair: Option<(RepairRules, Vec<BranchKind>)>) -> Self {
        let repair = of_repair.map(|(rules, kinds)| Box::new(NodeRepair::new(rules, &kinds, origins)));
        Machine { acks: Acknowledgements::of_branches(rules, origins), repair }
    }
}
