//! The commit pipeline: transactions on the core in, numbered writes out, and all other output only when the writes
//! before it are durable.

use crate::core::{Core, Effects, Time};
use crate::rows::Write;
use srdma_api::{Event, NodeOrder};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;

/// Limit of orders that wait for a node: further ones are dropped, and retransmitted by their groups.
const MAX_QUEUED_ORDERS: usize = 1 << 17;

/// A core, and the output that waits for its writes.
#[derive(Clone, Debug)]
pub struct Pipeline {
    core: Core,
    /// The number of the last writes.
    last: u64,
    /// All writes up to this number are durable.
    durable: u64,
    queues: BTreeMap<Ipv6Addr, VecDeque<(u64, NodeOrder)>>,
    /// Nodes with orders, each with the number of the write before them, in order.
    queued: VecDeque<(u64, Ipv6Addr)>,
    /// Events that wait for their writes.
    waiting: VecDeque<(u64, Event)>,
    last_event: u64,
}

/// Result of a transaction.
#[derive(Debug)]
#[must_use = "the writes are to be made durable"]
pub struct Transaction<T> {
    /// The number of the writes: to be made durable in this order, each in full or not at all.
    pub number: u64,
    /// May be empty.
    pub writes: Vec<Write>,
    /// Return value of the transaction.
    pub answer: Answer<T>,
    /// Nodes whose session has ended: tasks that wait for their orders check again.
    pub ended_sessions: Vec<Ipv6Addr>,
    /// Groups whose state, or whose source's order, may have changed.
    pub changed_groups: BTreeSet<u32>,
}

/// A value that may leave when all writes up to a number are durable.
#[derive(Debug)]
pub struct Answer<T> {
    value: T,
    number: u64,
}

/// Output that may leave now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Released {
    /// In the order of their numbers.
    pub events: Vec<Event>,
    /// Nodes for which [`Pipeline::take_orders`] has more than before.
    pub nodes: BTreeSet<Ipv6Addr>,
}

impl<T> Answer<T> {
    /// The number of the last writes that have to be durable.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The value, if all writes up to its number are durable; else the answer again.
    ///
    /// # Errors
    ///
    /// Some are not.
    pub fn release(self, durable: u64) -> Result<T, Self> {
        if self.number <= durable { Ok(self.value) } else { Err(self) }
    }
}

impl Pipeline {
    /// A pipeline without output.
    pub fn new(core: Core) -> Self {
        Pipeline {
            core,
            last: 0,
            durable: 0,
            queues: BTreeMap::new(),
            queued: VecDeque::new(),
            waiting: VecDeque::new(),
            last_event: 0,
        }
    }

    /// Replaces the core by one that was restored after writes were lost. Numbers of writes begin again; waiting output
    /// is discarded.
    pub fn replace_core(&mut self, core: Core) {
        self.core = core;
        (self.last, self.durable) = (0, 0);
        self.queues.clear();
        self.queued.clear();
        self.waiting.clear();
    }

    /// Reads the core. What it returns may depend on writes that are not durable yet.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Runs a transaction.
    pub fn transact<T>(&mut self, now: Time, act: impl FnOnce(&mut Core) -> T) -> Transaction<T> {
        self.core.set_time(now);
        let value = act(&mut self.core);
        let Effects { writes, orders, events, ended_sessions, changed_groups } = self.core.take_effects();
        if !writes.is_empty() {
            self.last += 1;
        }
        let number = self.last;
        for node in &ended_sessions {
            self.queues.remove(node);
        }
        for (node, order) in orders {
            let queue = self.queues.entry(node).or_default();
            if queue.len() < MAX_QUEUED_ORDERS {
                queue.push_back((number, order));
                if self.queued.back() != Some(&(number, node)) {
                    self.queued.push_back((number, node));
                }
            }
        }
        for (tenant, kind) in events {
            self.last_event += 1;
            let event = Event { number: self.last_event, unix_ms: now.unix_ms, tenant, kind };
            self.waiting.push_back((number, event));
        }
        Transaction { number, writes, answer: Answer { value, number }, ended_sessions, changed_groups }
    }

    /// Reports that all writes up to a number are durable, and releases the output that waited for them.
    pub fn durable(&mut self, up_to: u64) -> Released {
        self.durable = self.durable.max(up_to);
        self.release()
    }

    /// Releases output that waits for no write: after a transaction, since one without writes may follow durable ones.
    pub fn release(&mut self) -> Released {
        let mut released = Released::default();
        while let Some((_, node)) = self.queued.pop_front_if(|(number, _)| *number <= self.durable) {
            released.nodes.insert(node);
        }
        while let Some((_, event)) = self.waiting.pop_front_if(|(number, _)| *number <= self.durable) {
            released.events.push(event);
        }
        released
    }

    /// The number up to which all writes are durable.
    pub fn durable_number(&self) -> u64 {
        self.durable
    }

    /// All orders that wait for a node.
    pub fn waiting_orders(&self, node: Ipv6Addr) -> impl Iterator<Item = &NodeOrder> {
        self.queues.get(&node).into_iter().flatten().map(|(_, order)| order)
    }

    /// Takes the orders of a node that may leave now.
    pub fn take_orders(&mut self, node: Ipv6Addr) -> Vec<NodeOrder> {
        let Some(queue) = self.queues.get_mut(&node) else { return Vec::new() };
        let ready = queue.iter().take_while(|(number, _)| *number <= self.durable).count();
        queue.drain(..ready).map(|(_, order)| order).collect()
    }
}
