//! The state machines of the nodes, those of `srdma_aggregation`; each distinct state is stored once.
//!
//! The many million states of the tree contain few distinct states of a node. A state of the tree therefore has a
//! fingerprint for each node, and a transition is computed once for each state and event of a machine.

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

/// Event of a machine. The time is 0 until a T_hold ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    Data(u8),
    Response {
        branch: u16,
        code: u8,
    },
    HoldEnds,
    /// The group entry of a record takes effect at this node; the J of joining receivers.
    Commit {
        record: usize,
        node: usize,
        joined_at: u8,
    },
}

/// Transition: the next state, and up to four responses sent upstream in order, 0 for none.
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

/// All reached states of machines.
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

    /// Stores a machine.
    pub(crate) fn store(&self, mut machine: Acknowledgements) -> Fingerprint {
        // Counters do not influence transitions.
        machine.take_counters();
        let mut hasher = DefaultHasher::new();
        machine.hash(&mut hasher);
        let fingerprint = Fingerprint(hasher.finish().max(1));
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let stored = tables.machines.entry(fingerprint).or_insert_with(|| machine.clone());
        assert!(*stored == machine, "two states of a machine have one fingerprint");
        fingerprint
    }

    /// A stored machine.
    pub(crate) fn machine(&self, fingerprint: Fingerprint) -> Acknowledgements {
        self.read(fingerprint, Acknowledgements::clone)
    }

    /// Calls `read` with a stored machine.
    pub(crate) fn read<T>(&self, fingerprint: Fingerprint, read: impl FnOnce(&Acknowledgements) -> T) -> T {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        read(&tables.machines[&fingerprint])
    }

    /// Number of distinct states.
    pub(crate) fn len(&self) -> usize {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).machines.len()
    }

    /// The transition of an event, computed by `apply` unless it is known.
    pub(crate) fn step(
        &self,
        from: Fingerprint,
        event: Event,
        apply: impl FnOnce(&mut Acknowledgements, &mut Vec<UpstreamResponse>),
    ) -> Step {
        let known = {
            let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
            tables.steps.get(&(from, event)).copied()
        };
        known.unwrap_or_else(|| {
            let mut machine = self.machine(from);
            let mut out = Vec::new();
            apply(&mut machine, &mut out);
            assert!(out.len() <= 4, "more than four responses at once: {out:?}");
            let mut sent = [0; 4];
            for (place, forwarded) in sent.iter_mut().zip(out) {
                *place = Message::from_response(forwarded.response, self.initial_psn).code();
            }
            let step = Step { next: self.store(machine), sent };
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            tables.steps.insert((from, event), step);
            step
        })
    }

    /// A data packet is forwarded.
    pub(crate) fn data(&self, from: Fingerprint, data: Data) -> Step {
        let psn = self.initial_psn.plus(u32::from(data.packet));
        self.step(from, Event::Data(data.code()), |machine, out| {
            machine.data(Instant::ZERO, psn, data.ack_request, out);
        })
    }

    /// A branch has sent a response. The machine does not depend on its epoch.
    pub(crate) fn response(&self, from: Fingerprint, branch: u16, message: Message) -> Step {
        let event = Event::Response { branch, code: Message { epoch: 0, ..message }.code() };
        self.step(from, event, |machine, out| {
            // A rejected response changes nothing.
            let _rejected =
                machine.response(Instant::ZERO, BranchIndex(branch), message.response(self.initial_psn), out);
        })
    }

    /// T_hold of all held NAKs ends.
    pub(crate) fn hold_ends(&self, from: Fingerprint) -> Step {
        self.step(from, Event::HoldEnds, |machine, out| machine.tick(self.hold_ends_at, out))
    }
}
