//! The control plane of a tree: changes of membership one after another, each of them committed node by node during the
//! traffic.

use super::record::{Change, Child, Record};
use super::tree::{Event, NEVER_NS, Tree};
use srdma_aggregation::{Acknowledgements, BranchIndex, EvictionCause};
use srdma_testkit::random::Random;
use srdma_wire::Instant;
use std::collections::VecDeque;

/// State of the control plane.
pub(crate) struct Control {
    /// Chance of its own, so that a tree without changes is the same with and without it.
    random: Random,
    /// The latest record that was decided on.
    pub(crate) record: Record,
    waiting: VecDeque<Change>,
    /// Nodes whose commit is in flight, and those that commit after them.
    committing: usize,
    last: Vec<usize>,
    is_busy: bool,
}

impl Control {
    pub(crate) fn new(seed: u64) -> Self {
        let record = Record { epoch: 0, entries: Vec::new() };
        let (waiting, last) = (VecDeque::new(), Vec::new());
        let random = Random::new(seed ^ 0x5555_AAAA);
        Control { random, record, waiting, committing: 0, last, is_busy: false }
    }
}

impl Tree {
    /// Plans the changes and their times.
    pub(crate) fn plan_changes(&mut self) {
        if self.faults.death && self.nodes.len() > 1 {
            let node = self.control.random.between(1, self.nodes.len() as u64 - 1) as usize;
            let at = self.control.random.below(self.clean_at_ns);
            self.schedule(at, Event::Dies { node });
        }
        for _ in 0..self.faults.changes {
            let (nodes, receivers) = (self.nodes.len() as u64, self.receivers.len() as u64);
            let random = &mut self.control.random;
            let (kind, at, to) = (random.below(6), random.below(self.clean_at_ns), random.below(nodes) as usize);
            let receiver = random.below(receivers) as usize;
            let node = random.below(nodes) as usize;
            let change = match kind {
                0 => Change::Evict(receiver),
                1 => Change::Move { child: Child::Receiver(receiver), to },
                2 | 3 => Change::Move { child: Child::Node(node), to },
                _ => {
                    let through = (kind == 5).then(|| self.add_node(None, 20_000));
                    Change::Join { receiver: self.add_receiver(), at: to, through }
                }
            };
            self.schedule(at, Event::Requested(change));
        }
        let nodes = self.nodes.len();
        self.control.record.entries.resize_with(nodes, Default::default);
    }

    /// Some time after a node has died, its children get a living node above it as parent.
    pub(crate) fn dies(&mut self, node: usize) {
        self.nodes[node].is_dead = true;
        let later = self.now_ns + self.control.random.between(1_000, 5_000_000);
        self.schedule(later, Event::Rescue { node });
        self.clean_at_ns = self.clean_at_ns.max(later);
    }

    pub(crate) fn rescue(&mut self, node: usize) {
        let mut to = node;
        while let (true, Some(parent)) = (self.nodes[to].is_dead, self.control.record.entries[to].parent) {
            to = parent;
        }
        let orphan = self.control.record.entries[node].branches.first().copied();
        if let Some(orphan) = orphan {
            self.asked(Change::Move { child: orphan.child, to });
            self.schedule(self.now_ns + 100_000, Event::Rescue { node });
        }
    }

    /// A change is requested.
    pub(crate) fn asked(&mut self, change: Change) {
        if !self.control.waiting.contains(&change) {
            self.control.waiting.push_back(change);
            self.next_change();
        }
    }

    /// No branch moves to a dead node, and the branches of one are moved when its death is detected.
    fn is_possible(&self, change: Change) -> bool {
        match change {
            Change::Evict(_) => true,
            Change::Move { to, .. } | Change::Join { at: to, .. } => !self.is_below_the_dead(to),
        }
    }

    fn is_below_the_dead(&self, mut node: usize) -> bool {
        loop {
            if self.nodes[node].is_dead {
                return true;
            }
            match self.control.record.entries[node].parent {
                Some(parent) => node = parent,
                None => return false,
            }
        }
    }

    /// A join waits for the source, and nothing else waits for a join: the reason for the source's wait may have to be
    /// evicted first.
    fn next_change(&mut self) {
        while !self.control.is_busy {
            let joins = |change: &Change| matches!(change, Change::Join { .. });
            let waiting = &mut self.control.waiting;
            if let Some(position) = waiting.iter().position(|change| !joins(change)) {
                let change = waiting.remove(position);
                change.into_iter().for_each(|change| self.decide(change));
            } else {
                self.source.paused = !waiting.is_empty();
                return self.join_when_quiescent();
            }
        }
    }

    /// D30: a member joins only when everything that was sent is confirmed, at J, the source's next PSN.
    pub(crate) fn join_when_quiescent(&mut self) {
        if !self.control.is_busy && self.source.is_quiescent() {
            let change = self.control.waiting.pop_front();
            change.into_iter().for_each(|change| self.decide(change));
        }
    }

    fn decide(&mut self, change: Change) {
        let next_packet = self.source.fresh;
        let changed = self.control.record.changed(change, next_packet).filter(|_| self.is_possible(change));
        let Some((record, last)) = changed else {
            return self.change_is_over();
        };
        if let Change::Join { receiver, .. } = change {
            self.receivers[receiver].expected = next_packet;
            self.receivers[receiver].joined_at = Some(next_packet);
        }
        self.control.is_busy = true;
        self.control.record = record;
        self.control.last = if self.faults.disorderly { Vec::new() } else { last };
        let first: Vec<usize> = (0..self.nodes.len()).filter(|node| !self.control.last.contains(node)).collect();
        self.send_commits(&first);
    }

    fn send_commits(&mut self, nodes: &[usize]) {
        self.control.committing = nodes.len();
        for &node in nodes {
            let at = self.now_ns + self.control.random.between(1_000, 300_000);
            self.schedule(at, Event::Commit { node });
        }
    }

    /// A node takes the new record into effect.
    pub(crate) fn commit(&mut self, node: usize) {
        let entry = self.control.record.entries[node].clone();
        let mut out = Vec::new();
        let place = &mut self.nodes[node];
        let psn = |packet| self.source.psn(packet);
        if entry.branches.is_empty() {
            place.machine = None;
        } else if let Some(machine) = &mut place.machine {
            let origins = entry.origins(Some(&place.entry), false, psn);
            let forgets = (entry.renewed, entry.parent) != (place.entry.renewed, place.entry.parent);
            machine.succeed(&self.rules, &origins, forgets, &mut out);
        } else {
            place.machine = Some(Acknowledgements::of_branches(&self.rules, &entry.origins(None, false, psn)));
        }
        (place.entry, place.epoch) = (entry, self.control.record.epoch);
        if !place.is_dead {
            self.send_up(node, out);
        }
        self.control.committing -= 1;
        if self.control.committing == 0 {
            let last = std::mem::take(&mut self.control.last);
            if last.is_empty() {
                self.outcome.changes += 1;
                self.change_is_over();
            } else {
                self.send_commits(&last);
            }
        }
    }

    fn change_is_over(&mut self) {
        self.control.is_busy = false;
        self.clean_at_ns = self.clean_at_ns.max(self.now_ns);
        self.next_change();
    }

    /// D24, D25: an edge requests evictions; they are granted some time later. The data sent to a receiver determine
    /// whether it is stalled.
    pub(crate) fn take_eviction_requests(&mut self, node: usize) {
        let now = Instant::from_ns(self.now_ns);
        let Some(machine) = self.nodes[node].machine.as_mut().filter(|machine| machine.has_eviction_requests()) else {
            return;
        };
        let mut wanted: Vec<(BranchIndex, EvictionCause)> = Vec::new();
        machine.take_eviction_requests(now, |branch, cause| wanted.push((branch, cause)));
        for (branch, cause) in wanted {
            let Child::Receiver(receiver) = self.nodes[node].entry.branches[branch.index()].child else {
                continue;
            };
            self.outcome.evictions += 1;
            let is_true = match cause {
                EvictionCause::Stalled => self.is_stalled(node, branch, receiver),
                EvictionCause::Failed(_) => self.receivers[receiver].dead,
            };
            self.outcome.false_evictions += u64::from(!is_true);
            let at = self.now_ns + self.control.random.between(1_000, 2_000_000);
            self.schedule(at, Event::Requested(Change::Evict(receiver)));
        }
    }

    fn is_stalled(&self, node: usize, branch: BranchIndex, receiver: usize) -> bool {
        let (Some(machine), Some(rules)) = (&self.nodes[node].machine, self.rules.evict) else {
            return false;
        };
        let receiver = &self.receivers[receiver];
        let expected = machine.expected_psn(branch);
        let of_it = |&&(by, packet, _): &&(usize, u64, u64)| {
            by == node && expected.is_none_or(|psn| self.source.psn(packet) == psn)
        };
        let times: Vec<u64> = receiver.sendings.iter().filter(of_it).map(|&(_, _, at_ns)| at_ns).collect();
        let since_ns = times.first().copied().unwrap_or(NEVER_NS).max(receiver.progress_at_ns);
        let waited_ns = self.now_ns.saturating_sub(since_ns);
        times.len() >= usize::from(rules.sends) && waited_ns >= rules.t_stall.as_nanos() as u64
    }
}
