//! Fast CNPs at the host: access list, look-up of the flow, and events for path selection
//! (draft-xiao-rtgwg-rocev2-fast-cnp, sections 4 and 5).
//!
//! Off by default (FC-5-4). A packet that is dropped changes nothing but its
//! counter; one that is accepted costs one look-up, at most one reaction of the rate control, and at most one event in
//! a queue of bounded length.

use crate::counters::DropReason;
use crate::rate::Origin;
use core::net::Ipv6Addr;
use srdma_wire::fast_cnp::{FastCnpError, OptionTypes};
use srdma_wire::ioam::Trace;
use srdma_wire::{Instant, Prefix, Qpn};
use std::collections::{BTreeMap, VecDeque};

/// Configuration of Fast CNPs at an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastCnpConfig {
    /// Accepted sources, switches and receivers alike; Fast CNPs of others are dropped (FC-5-3). Empty: none.
    pub access_list: Vec<Prefix>,
    /// Types of the two options (FC-6-1).
    pub option_types: OptionTypes,
    /// The rate of a queue pair reacts to at most one Fast CNP in so many nanoseconds; the others are dropped. 1 µs
    /// lets every notice of a well-behaved switch through (one in 50 µs, D45), and the traces that receivers return.
    pub min_interval_ns: u64,
    /// Events that wait for [`Endpoint::poll_congestion`](crate::Endpoint::poll_congestion); while so many wait,
    /// further ones are counted and lost.
    pub max_events: usize,
}

impl FastCnpConfig {
    /// The usual settings, for these senders of Fast CNPs.
    pub fn new(access_list: Vec<Prefix>) -> Self {
        FastCnpConfig { access_list, option_types: OptionTypes::default(), min_interval_ns: 1_000, max_events: 64 }
    }
}

/// The content of an accepted Fast CNP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice<'a> {
    pub(crate) origin: Origin,
    pub(crate) trace: Option<Trace<'a>>,
    /// The rate that a switch notifies (D240).
    pub(crate) rate_bits_per_s: Option<u64>,
}

/// A switch reported congestion on a flow's path: an event for path selection (FC-4-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionEvent {
    /// When the Fast CNP came.
    pub at: Instant,
    /// The queue pair whose packet met congestion.
    pub qpn: Qpn,
    /// Address of the congested switch.
    pub switch: Ipv6Addr,
}

/// State of an endpoint that accepts Fast CNPs.
#[derive(Debug)]
pub(crate) struct FastCnps {
    pub(crate) config: FastCnpConfig,
    pub(crate) counters: FastCnpCounters,
    events: VecDeque<CongestionEvent>,
}

/// Counters of an endpoint's Fast CNPs. Refused ones are counted as drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastCnpCounters {
    /// Taken, from switches.
    pub from_switches: u64,
    /// Taken, from receivers.
    pub from_receivers: u64,
    /// Of all taken, those with a trace.
    pub with_trace: u64,
    /// Events that found no room.
    pub events_lost: u64,
}

impl FastCnps {
    pub(crate) fn new(config: &FastCnpConfig) -> Self {
        let events = VecDeque::with_capacity(config.max_events);
        FastCnps { config: config.clone(), counters: FastCnpCounters::default(), events }
    }

    /// Whether Fast CNPs of this source are accepted (FC-5-3).
    pub(crate) fn accepts(&self, source: Ipv6Addr) -> bool {
        self.config.access_list.iter().any(|prefix| prefix.contains(source))
    }

    pub(crate) fn push(&mut self, event: CongestionEvent) {
        if self.events.len() < self.config.max_events {
            self.events.push_back(event);
        } else {
            self.counters.events_lost += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<CongestionEvent> {
        self.events.pop_front()
    }
}

/// Finds a queue pair by what its packets carry: their destination and Destination QP (FC-4-7). Only the host's own
/// configuration puts anything in.
#[derive(Debug, Default)]
pub(crate) struct Peers(BTreeMap<(Ipv6Addr, u32), Option<usize>>);

impl Peers {
    /// Two queue pairs with the same peer cannot be distinguished: neither is found.
    pub(crate) fn insert(&mut self, peer: Ipv6Addr, remote_qpn: Qpn, slot: usize) {
        self.0.entry((peer, remote_qpn.get())).and_modify(|slot| *slot = None).or_insert(Some(slot));
    }

    /// Removes a queue pair with this peer. `others` are the remaining ones with it: checked only where there were
    /// several, in any order.
    pub(crate) fn remove(&mut self, peer: Ipv6Addr, remote_qpn: Qpn, mut others: impl Iterator<Item = usize>) {
        let key = (peer, remote_qpn.get());
        let was_alone = self.0.remove(&key).flatten().is_some();
        let left = if was_alone { None } else { others.next() };
        if let Some(slot) = left {
            self.0.insert(key, others.next().is_none().then_some(slot));
        }
    }

    /// Queue pairs have other places.
    pub(crate) fn renumber(&mut self, place_of: impl Fn(usize) -> Option<usize>) {
        self.0.values_mut().for_each(|slot| *slot = slot.and_then(&place_of));
    }

    pub(crate) fn find(&self, original_destination: Ipv6Addr, dest_qpn: Qpn) -> Option<usize> {
        self.0.get(&(original_destination, dest_qpn.get())).copied().flatten()
    }
}

/// The counter of a packet whose Fast CNP option is not as it must be.
pub(crate) fn reason(error: FastCnpError) -> DropReason {
    match error {
        FastCnpError::Overrun(_) => DropReason::OptionOverrun,
        FastCnpError::TooShort { .. } | FastCnpError::TooLong { .. } => DropReason::FastCnpLength,
        FastCnpError::WrongPlace { .. } => DropReason::FastCnpPlace,
        FastCnpError::Twice { .. } => DropReason::FastCnpTwice,
        FastCnpError::Trace(_) => DropReason::FastCnpTrace,
        FastCnpError::UnknownOption(_) => DropReason::UnknownOption,
        FastCnpError::NotACnp(_) => DropReason::FastCnpOpcode,
    }
}
