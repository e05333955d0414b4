//! The node's multicast groups.
//!
//! The machines are those of [`srdma_aggregation`]; this part keeps a set of them for each group, with the group entry
//! and prepared headers for the group's packets. It sends nothing: responses for upstream are returned.

mod buffer_memory;
mod journal;
mod learn;
mod lease;
mod list_cache;
mod membership;
mod neighbours;
mod path_trace;
mod receiver_list;
mod repair;
mod responses;
mod state;
mod upward;

pub use journal::{GroupEvent, HoldEnd, JournalEntry};
pub use lease::Lease;
pub(crate) use list_cache::Flow;
pub(crate) use membership::Owner;
pub(crate) use neighbours::tree_nodes;
pub(crate) use path_trace::PathTrace;
pub(crate) use receiver_list::{EdgeCopy, ReceiverList};
pub(crate) use repair::{behind_outer, stored_packet};
pub(crate) use responses::{Data, Outbox, Request};
pub(crate) use state::{GroupState, ResolvedCopy, ResponseMarking};

use crate::config::NodeConfig;
use crate::counters::GroupCounters;
use crate::drop::DropReason;
use crate::event::Event;
use crate::security::Security;
use crate::tables::Tables;
use crate::timers::Timers;
use journal::Journal;
use learn::Learner;
use list_cache::ListCache;
use repair::Pending;
use srdma_aggregation::{Acknowledgements, BranchIndex, CnpUp, UpstreamResponse};
use srdma_frame::PortId;
use srdma_group::{Downstream, GroupEntry, GroupId, PsnOffset};
use srdma_wire::{Instant, Psn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The node's groups and their state.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    slots: Vec<Option<GroupState>>,
    /// The node is the root of a group.
    is_root: bool,
    /// Group entries that were prepared and not yet committed (D31).
    prepared: BTreeMap<GroupId, GroupEntry>,
    /// Events for the control plane.
    events: Vec<Event>,
    journal: Option<Box<Journal>>,
    lists: ListCache,
    /// Learns groups without a record (D17).
    learner: Option<Box<Learner>>,
    /// Of the groups of a controller.
    lease: Lease,
    timers: Timers,
    /// Memory for responses to send, used again.
    responses: Vec<UpstreamResponse>,
    /// Memory for CNPs to send, used again.
    cnps: Vec<CnpUp>,
    /// Effects of repair.
    pending: Pending,
}

/// Other parts that a change of membership needs.
#[derive(Debug)]
pub(crate) struct Surroundings<'n> {
    pub(crate) config: &'n NodeConfig,
    pub(crate) tables: &'n mut Tables,
    pub(crate) security: &'n Security,
}

impl Groups {
    pub(crate) fn get(&self, group: u32) -> Option<&GroupState> {
        self.slots[group as usize].as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, group: u32) -> Option<&mut GroupState> {
        self.slots[group as usize].as_mut()
    }

    /// Whether branches wait for room at a port.
    #[inline]
    pub(crate) fn is_awaited(&self, port: PortId) -> bool {
        self.pending.is_awaited(port)
    }

    #[inline]
    pub(crate) fn pending(&mut self) -> &mut Pending {
        &mut self.pending
    }

    pub(crate) fn set_lease(&mut self, lease: Lease) {
        self.lease = lease;
    }

    /// Refuses to act for a group whose lease is over (D122).
    #[inline]
    pub(crate) fn check_lease(&self, now: Instant, group: u32) -> Result<(), DropReason> {
        let is_over = self.lease.is_over(now) && self.get(group).is_some_and(|state| state.is_leased);
        if is_over { Err(DropReason::LeaseOver) } else { Ok(()) }
    }

    pub(crate) fn find(&self, id: GroupId) -> Option<&GroupState> {
        self.slots.iter().flatten().find(|group| group.entry.id == id)
    }

    pub(crate) fn is_root(&self) -> bool {
        self.is_root
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &GroupEntry> {
        self.slots.iter().flatten().map(|group| &group.entry)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }

    pub(crate) fn counters(&self, id: GroupId) -> Option<GroupCounters> {
        self.find(id).map(|group| group.counters)
    }

    pub(crate) fn acknowledgements(&self, id: GroupId) -> Option<&Acknowledgements> {
        self.find(id).map(|group| &group.acks)
    }

    pub(crate) fn branch_cnps(&self, id: GroupId, branch: BranchIndex) -> Option<u64> {
        self.find(id)?.branch_cnps.get(branch.index()).copied()
    }

    pub(crate) fn take_events(&mut self) -> impl Iterator<Item = Event> {
        self.events.drain(..)
    }

    /// The group in which the node replicates encapsulated packets.
    pub(crate) fn transit_group(&self, id: GroupId) -> Option<u32> {
        let is_it = |state: &GroupState| state.entry.id == id && state.entry.role.replicates();
        let position = self.slots.iter().position(|state| state.as_ref().is_some_and(is_it))?;
        Some(position as u32)
    }

    /// When a group, or the search for idle ones, is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let released = (!self.pending.effects.released.is_empty()).then_some(Instant::ZERO);
        [self.timers.next(), self.next_idle_check(), released].into_iter().flatten().min()
    }

    /// The next group whose deadline has come.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<u32> {
        self.timers.take_due(now)
    }

    fn rearm(&mut self, group: u32) {
        let Some(state) = self.slots[group as usize].as_ref() else {
            return;
        };
        if !state.is_owned {
            return self.timers.arm(group, None);
        }
        let or_never = |deadline: Option<Instant>| deadline.unwrap_or(Instant::NEVER);
        let unsent = if state.unsent.is_empty() { Instant::NEVER } else { Instant::ZERO };
        let repair = state.repair.as_ref().and_then(|repair| repair.next_deadline());
        let responses = or_never(state.acks.next_deadline()).min(or_never(state.cnps.next_deadline()));
        let deadline = unsent.min(responses).min(or_never(repair));
        self.timers.arm(group, Some(deadline).filter(|deadline| *deadline != Instant::NEVER));
    }
}

/// Receiver lists and copies.
impl Groups {
    /// Lends a receiver list while packets are copied; the caller [returns](Self::return_list) it.
    #[inline]
    pub(crate) fn lend_list(&mut self, slot: usize) -> Option<Box<ReceiverList>> {
        self.lists.take(slot)
    }

    #[inline]
    pub(crate) fn return_list(&mut self, slot: usize, list: Box<ReceiverList>) {
        self.lists.put(slot, list);
    }

    /// Whether receivers' copies are considered one by one.
    #[inline]
    pub(crate) fn differs_by_branch(&self, group: u32) -> bool {
        self.get(group).is_some_and(|state| state.differs_by_branch)
    }

    /// Distance of the PSNs of a copy for a branch from the group's (D270).
    pub(crate) fn psn_offset(&self, group: u32, branch: Option<BranchIndex>) -> PsnOffset {
        self.get(group).zip(branch).map_or(PsnOffset::ZERO, |(state, branch)| state.psn_offset(branch))
    }

    /// Why a copy must not be sent to a branch.
    pub(crate) fn withholds(&self, group: u32, branch: Option<BranchIndex>, psn: Psn) -> Option<DropReason> {
        self.get(group)?.withholds(branch?, psn)
    }

    pub(crate) fn count_copies(&mut self, group: u32, copies: usize) {
        if let Some(state) = self.get_mut(group) {
            state.counters.copies += copies as u64;
        }
    }

    /// Lends a group's copies, resolved against the current tables. The caller [returns](Self::return_copies) them.
    #[inline]
    pub(crate) fn lend_copies(&mut self, group: u32, tables: &Tables, loopback: Ipv6Addr) -> Vec<ResolvedCopy> {
        match self.slots[group as usize].as_mut() {
            Some(state) if state.resolved_for == Some(tables.generation()) => std::mem::take(&mut state.copies),
            _ => self.resolve_copies(group, tables, loopback),
        }
    }

    pub(crate) fn return_copies(&mut self, group: u32, copies: Vec<ResolvedCopy>, generation: u64) {
        if let Some(state) = self.get_mut(group) {
            state.copies = copies;
            state.resolved_for = Some(generation);
        }
    }

    #[cold]
    fn resolve_copies(&self, group: u32, tables: &Tables, loopback: Ipv6Addr) -> Vec<ResolvedCopy> {
        let Some(state) = self.get(group) else {
            return Vec::new();
        };
        let (source, proxy) = (loopback.octets(), state.entry.proxy.octets());
        let mut copies = Vec::new();
        for downstream in &state.entry.downstream {
            match downstream {
                Downstream::Sid(sid) => {
                    let destination = sid.octets();
                    copies.push(ResolvedCopy { destination, adjacency: tables.resolve(&destination, &proxy) });
                }
                Downstream::Multicast(multicast) => {
                    let destination = multicast.octets();
                    let entry = tables.multicast_route(&(source, destination));
                    let adjacencies = entry.map_or(&[][..], |entry| &entry.adjacencies);
                    let of_adjacency = |adjacency: &u32| ResolvedCopy { destination, adjacency: Some(*adjacency) };
                    copies.extend(adjacencies.iter().map(of_adjacency));
                    if adjacencies.is_empty() {
                        copies.push(ResolvedCopy { destination, adjacency: None });
                    }
                }
            }
        }
        copies
    }
}
