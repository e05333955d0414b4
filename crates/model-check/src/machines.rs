//! The machines of the nodes, those of `srdma_aggregation` themselves, each state of one kept once.
//!
//! A node is in few different situations in many million states of the tree. So a state of the tree holds a fingerprint
//! for each node, and a machine's reaction is computed once for each of its states and events.

use crate::queue::{Data, Message};
use srdma_aggregation::{Acknowledgements, BranchIndex, UpstreamResponse};
use srdma_wire::{Instant, Psn};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{PoisonError, RwLock};

/// A state of a node's machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// The node is not in the tree.
    pub(crate) const ABSENT: Fingerprint = Fingerprint(0);
}

/// Event at a machine. The time is always 0, until a T_hold expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    Data(u8),
    Response {
        branch: u16,
        code: u8,
    },
    HoldEnds,
    /// The group entry takes effect, at this position; with the J of those who join.
    Commit {
        record: usize,
        node: usize,
        joined_at: u8,
    },
}

/// Reaction: at most four responses to the parent, the first in the low bits, 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) next: Fingerprint,
    pub(crate) sent: [u8; 4],
}

#[derive(Debug, Default)]
struct Tables {
    machines: HashMap<Fingerprint, Acknowledgements>,
    steps: HashMap<(Fingerprint, Event), Step>,
}

/// All states of machines that were reached.
#[derive(Debug)]
pub(crate) struct Machines {
    initial_psn: Psn,
    hold_ends_at: Instant,
    tables: RwLock<Tables>,
}

impl Machines {
    pub(crate) fn new(initial_psn: Psn, hold_ends_at: Instant) -> Self {
        Machines { initial_psn, hold_ends_at, tables: RwLock::default() }
    }

    pub(crate) fn keep(&self, mut machine: Acknowledgements) -> Fingerprint {
        // Counters do not affect later reactions.
        machine.take_counters();
        let mut hasher = DefaultHasher::new();
        machine.hash(&mut hasher);
        let fingerprint = Fingerprint(hasher.finish().max(1));
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let kept = tables.machines.entry(fingerprint).or_insert_with(|| machine.clone());
        assert!(*kept == machine, "two states of a machine have one fingerprint");
        fingerprint
    }

    /// A machine that was kept.
    pub(crate) fn machine(&self, fingerprint: Fingerprint) -> Acknowledgements {
        self.look(fingerprint, Acknowledgements::clone)
    }

    /// Looks at a machine that was kept.
    pub(crate) fn look<T>(&self, fingerprint: Fingerprint, look: impl FnOnce(&Acknowledgements) -> T) -> T {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        look(&tables.machines[&fingerprint])
    }

    /// Number of states of machines.
    pub(crate) fn len(&self) -> usize {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).machines.len()
    }

    /// The reaction of a machine to an event: computed by `happen` unless it is known already.
    pub(crate) fn step(
        &self,
        from: Fingerprint,
        event: Event,
        happen: impl FnOnce(&mut Acknowledgements, &mut Vec<UpstreamResponse>),
    ) -> Step {
        let known = {
            let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
            tables.steps.get(&(from, event)).copied()
        };
        known.unwrap_or_else(|| {
            let mut machine = self.machine(from);
            let mut out = Vec::new();
            happen(&mut machine, &mut out);
            assert!(out.len() <= 4, "a machine says more at once than there is room for: {out:?}");
            let mut sent = [0; 4];
            for (place, statement) in sent.iter_mut().zip(out) {
                *place = Message::from_response(statement.response, self.initial_psn).code();
            }
            let step = Step { next: self.keep(machine), sent };
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            tables.steps.insert((from, event), step);
            step
        })
    }

    /// A data packet arrives from above.
    pub(crate) fn data(&self, from: Fingerprint, data: Data) -> Step {
        let psn = self.initial_psn.plus(u32::from(data.packet));
        self.step(from, Event::Data(data.code()), |machine, out| {
            machine.data(Instant::ZERO, psn, data.ack_request, out);
        })
    }

    /// A branch has sent a response. The machine does not check its epoch.
    pub(crate) fn response(&self, from: Fingerprint, branch: u16, message: Message) -> Step {
        let event = Event::Response { branch, code: Message { epoch: 0, ..message }.code() };
        self.step(from, event, |machine, out| {
            // A refusal changes nothing; only the responses count.
            let _refused =
                machine.response(Instant::ZERO, BranchIndex(branch), message.response(self.initial_psn), out);
        })
    }

    /// All that is held has been held for T_hold.
    pub(crate) fn hold_ends(&self, from: Fingerprint) -> Step {
        self.step(from, Event::HoldEnds, |machine, out| machine.tick(self.hold_ends_at, out))
    }
}
