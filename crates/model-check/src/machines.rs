//! The state machines of the nodes, those of `srdma_aggregation` and `srdma_repair`; each distinct state is stored
//! once.
//!
//! The many million states of the tree contain few distinct states of a node. A state of the tree therefore has a
//! fingerprint for each node, and a transition is computed once for each state and event of a machine.

use crate::queue::{Data, Message, Missing, Upward};
use crate::repairs::{Due, NodeRepair};
use srdma_aggregation::{Acknowledgements, UpstreamResponse};
use srdma_repair::Effects;
use srdma_wire::{Instant, Psn};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{PoisonError, RwLock};

/// The machines of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Machine {
    pub(crate) acks: Acknowledgements,
    /// At nodes that repair.
    pub(crate) repair: Option<Box<NodeRepair>>,
}

/// Results of an event.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) responses: Vec<UpstreamResponse>,
    pub(crate) effects: Effects<bool>,
    /// Data packets of a node that repairs.
    pub(crate) down: Vec<Sent>,
}

/// A data packet that a node which repairs sends to a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) branch: u16,
    pub(crate) code: u8,
    /// It goes ahead of what is on the link.
    pub(crate) goes_ahead: bool,
}

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
    /// A response, or a request.
    Response {
        branch: u16,
        code: u8,
    },
    HoldEnds,
    /// The timer of repair.
    Tick(Due),
    /// The link of a branch has room.
    Poll(u16),
    /// It has, and the packet proves damaged.
    Damage(u16),
    /// The group entry of a record takes effect at this node; the J of joining receivers.
    Commit {
        record: usize,
        node: usize,
        joined_at: u8,
    },
}

/// Transition: the next state, up to eight responses and requests sent upstream in order, 0 for none, and the data that
/// a node which repairs sends downstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) next: Fingerprint,
    pub(crate) sent: [u8; 8],
    pub(crate) down: Box<[Sent]>,
}

#[derive(Debug, Default)]
struct Tables {
    machines: HashMap<Fingerprint, Machine>,
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
    pub(crate) fn store(&self, mut machine: Machine) -> Fingerprint {
        // Counters do not influence transitions.
        machine.acks.take_counters();
        let mut hasher = DefaultHasher::new();
        machine.hash(&mut hasher);
        let fingerprint = Fingerprint(hasher.finish().max(1));
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let stored = tables.machines.entry(fingerprint).or_insert_with(|| machine.clone());
        assert!(*stored == machine, "two states of a machine have one fingerprint");
        fingerprint
    }

    /// A stored machine.
    pub(crate) fn machine(&self, fingerprint: Fingerprint) -> Machine {
        self.read(fingerprint, Machine::clone)
    }

    /// Calls `read` with a stored machine.
    pub(crate) fn read<T>(&self, fingerprint: Fingerprint, read: impl FnOnce(&Machine) -> T) -> T {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        read(&tables.machines[&fingerprint])
    }

    /// Number of distinct states.
    pub(crate) fn len(&self) -> usize {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).machines.len()
    }

    /// The transition of an event, computed by `apply` unless it is known.
    pub(crate) fn step(&self, from: Fingerprint, event: Event, apply: impl FnOnce(&mut Machine, &mut Output)) -> Step {
        let known = {
            let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
            tables.steps.get(&(from, event)).cloned()
        };
        known.unwrap_or_else(|| {
            let mut machine = self.machine(from);
            let mut out = Output::default();
            apply(&mut machine, &mut out);
            let response =
                |sent: &UpstreamResponse| Upward::Response(Message::from_response(sent.response, self.initial_psn));
            let requests = out.effects.requests.iter();
            let requests = requests.map(|request| Upward::Request(Missing::from_request(*request, self.initial_psn)));
            let all: Vec<Upward> = out.responses.iter().map(response).chain(requests).collect();
            let mut sent = [0; 8];
            assert!(all.len() <= sent.len(), "too much at once: {all:?}");
            for (place, upward) in sent.iter_mut().zip(all) {
                *place = upward.code();
            }
            let step = Step { next: self.store(machine), sent, down: out.down.into() };
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            tables.steps.insert((from, event), step.clone());
            step
        })
    }

    /// A data packet is forwarded.
    pub(crate) fn data(&self, from: Fingerprint, data: Data) -> Step {
        let psn = self.initial_psn.plus(u32::from(data.packet));
        self.step(from, Event::Data(data.code()), |machine, out| {
            machine.data(psn, data, out);
        })
    }

    /// A branch has sent a response or a request. The machine does not depend on its epoch.
    pub(crate) fn response(&self, from: Fingerprint, branch: u16, upward: Upward) -> Step {
        let event = Event::Response { branch, code: upward.in_epoch(0).code() };
        self.step(from, event, |machine, out| match upward {
            Upward::Response(message) => machine.response(branch, message.response(self.initial_psn), out),
            Upward::Request(missing) => machine.request(branch, missing.request(self.initial_psn), out),
        })
    }

    /// T_hold of all held NAKs ends.
    pub(crate) fn hold_ends(&self, from: Fingerprint) -> Step {
        self.step(from, Event::HoldEnds, |machine, out| {
            machine.acks.tick(self.hold_ends_at, &mut out.responses);
        })
    }

    /// The timer of a node's repair ends.
    pub(crate) fn tick(&self, from: Fingerprint, due: Due) -> Step {
        self.step(from, Event::Tick(due), |machine, out| machine.tick(due, out))
    }

    /// The next packet of the buffer for a branch proves damaged.
    pub(crate) fn damage(&self, from: Fingerprint, branch: u16) -> Step {
        self.step(from, Event::Damage(branch), |machine, out| machine.damage(branch, out))
    }

    /// The link of a branch has room for a packet of the buffer.
    pub(crate) fn poll(&self, from: Fingerprint, branch: u16) -> Step {
        self.step(from, Event::Poll(branch), |machine, out| machine.poll(branch, self.initial_psn, out))
    }
}
