//! Fast CNP at a switch (draft-xiao-rtgwg-rocev2-fast-cnp, D40–D48): notifies the sender of a packet that meets
//! congestion, keeps Fast CNPs inside their domain, translates them for hosts behind the node, and counts them for the
//! branches of a group.
//!
//! ```text
//! a packet meets congestion
//!   │ no RoCEv2 packet, not RC or UC data, or not from a sender to notify ──→ marked or not, as without Fast CNP
//!   │ the sender has reported that it does not know Fast CNP (D47) ─────────→ the same
//!   │ it is in a tunnel, and its ingress PE is not known (D63) ─────────────→ mark CE
//!   │ notified less than 50 us ago, or no token, frame or route (D45) ──────→ mark CE
//!   ├ the sender supports Fast CNP (FC-4-6) ────────────────────────────────→ Fast CNP
//!   └ not known whether it does (FC-4-5) ───────────────────────────────────→ Fast CNP, mark CE
//! ```
//!
//! For a packet in a tunnel the Fast CNP goes to the END.E of the ingress PE, if that is known (CN-4.2-2). [`Notifier`]
//! decides; `FastCnp` is the node's part around it.

mod borders;
mod capability;
mod config;
mod connections;
mod counters;
mod data;
mod fields;
mod first_hop;
mod flows;
mod notifier;
mod option;
mod rates;
mod tree;
mod unsupported;

pub use config::{Connection, FastCnpConfig};
pub use counters::FastCnpCounters;
pub use fields::Fields;
pub use notifier::{Decision, Notice, Notifier};

pub(crate) use connections::{Connections, Lookup};
pub(crate) use first_hop::FirstHop;
pub(crate) use option::has_option;

use crate::backpressure::Backpressure;
use crate::config::NodeConfig;
use crate::drop::DropReason;
use crate::egress::{CongestionPoint, Egress};
use crate::groups::Groups;
use crate::headers::IPV6;
use crate::ioam::{IoamTraces, MAX_TRACED_HEADER};
use crate::tables::Tables;
use srdma_aggregation::BranchIndex;
use srdma_frame::PortId;
use srdma_wire::fast_cnp::{FastCnpError, MAX_FAST_CNP_LEN};
use srdma_wire::{CnpView, Instant, Qpn};
use std::net::Ipv6Addr;

/// Fast CNP at the node, if it is on (FC-5-4).
#[derive(Debug, Default)]
pub(crate) struct FastCnp {
    notifier: Option<Box<Notifier>>,
}

/// How the congestion that a packet meets is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notified {
    /// Not by Fast CNP: the queue's depth alone decides on a mark.
    None,
    /// Mark the packet, so that its receiver learns of the congestion, whether a Fast CNP was sent or not.
    Marking,
    /// By Fast CNP; the packet is not to be marked.
    Sender,
}

/// Actions for a notice.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) message: Message,
    /// The packet is marked as well.
    pub(crate) and_mark: bool,
    /// The Fast CNP, behind room for its Ethernet header.
    pub(crate) octets: [u8; IPV6 + MAX_FAST_CNP_LEN],
    /// The ingress PE whose END.E it goes to, if the packet is in a tunnel.
    pub(crate) end_e: Option<u32>,
}

/// How a notice is delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// As a Fast CNP of so many octets.
    Packet(usize),
    /// As a CNP of this branch of a group.
    Count(u32, BranchIndex),
    /// Not at all.
    None,
}

/// The parts that a notice is prepared from.
#[derive(Debug)]
pub(crate) struct NoticeSources<'n> {
    pub(crate) config: &'n NodeConfig,
    pub(crate) tables: &'n Tables,
    pub(crate) groups: &'n Groups,
    pub(crate) backpressure: &'n Backpressure,
    pub(crate) egress: &'n Egress,
    pub(crate) ioam: &'n mut IoamTraces,
}

/// Configuration and counters.
impl FastCnp {
    pub(crate) fn set(&mut self, config: FastCnpConfig) {
        self.notifier = Some(match self.notifier.take() {
            Some(before) => Box::new(before.reconfigured(config)),
            None => Box::new(Notifier::new(config)),
        });
    }

    pub(crate) fn remove(&mut self) {
        self.notifier = None;
    }

    /// Returns whether Fast CNP is on.
    pub(crate) fn add_connection(&mut self, connection: Connection) -> bool {
        let Some(notifier) = &mut self.notifier else { return false };
        notifier.connections.provision(connection);
        true
    }

    /// Returns whether the connection was known.
    pub(crate) fn remove_connection(&mut self, host: Ipv6Addr, peer: Ipv6Addr, peer_qpn: Qpn) -> bool {
        self.notifier.as_mut().is_some_and(|notifier| notifier.connections.withdraw(host, peer, peer_qpn))
    }

    pub(crate) fn config(&self) -> Option<&FastCnpConfig> {
        self.notifier.as_ref().map(|notifier| notifier.config())
    }

    pub(crate) fn counters(&self) -> FastCnpCounters {
        self.notifier.as_ref().map_or_else(FastCnpCounters::default, |notifier| notifier.counters)
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.notifier.is_some()
    }

    /// Whether a host is known to process Fast CNPs (FC-4-6).
    pub(crate) fn is_capable(&self, host: Ipv6Addr) -> bool {
        self.notifier.as_ref().is_some_and(|notifier| notifier.is_capable(&host.octets()))
    }

    pub(crate) fn count(&mut self, count: impl FnOnce(&mut FastCnpCounters)) {
        if let Some(notifier) = self.notifier.as_mut() {
            count(&mut notifier.counters);
        }
    }
}

/// A packet meets congestion.
impl FastCnp {
    /// Whether flows of queues are counted, for the rates that Fast CNPs carry (D240).
    #[inline]
    pub(crate) fn counts_flows(&self) -> bool {
        self.notifier.as_ref().is_some_and(|notifier| notifier.rates.is_some())
    }

    /// A packet is about to enter a queue whose flows are notified.
    #[inline(never)]
    pub(crate) fn count_flow(&mut self, now: Instant, port: PortId, head: &[u8]) {
        if let Some(rates) = self.notifier.as_mut().and_then(|notifier| notifier.rates.as_mut()) {
            rates.count(now, port, head);
        }
    }

    #[inline]
    pub(crate) fn decide<'h>(&mut self, now: Instant, head: &'h [u8], backpressure: &Backpressure) -> Decision<'h> {
        match self.notifier.as_deref_mut() {
            Some(notifier) => notifier.decide_where(now, head, |fields| backpressure.leads_back(fields.outer_source)),
            None => Decision::None,
        }
    }

    /// The actions for a notice. A copy that this edge has made is counted here: its Fast CNP would come back to the
    /// edge itself (D46).
    #[inline(never)]
    pub(crate) fn prepare(
        &mut self,
        notice: Notice<'_>,
        head: &[u8],
        at: Option<&CongestionPoint>,
        from: NoticeSources<'_>,
    ) -> Prepared {
        let mut prepared = Prepared {
            message: Message::None,
            and_mark: notice.and_mark,
            octets: [0; IPV6 + MAX_FAST_CNP_LEN],
            end_e: notice.fields.outer_source.and_then(|source| from.backpressure.find_end_e(source)),
        };
        if let Some(group) = from.tables.group_of(notice.fields.source) {
            prepared.and_mark = false;
            let (receiver, qpn) = (notice.fields.destination, notice.fields.dest_qpn);
            if let Some(branch) = from.groups.branch_of_copy(group, receiver, qpn) {
                prepared.message = Message::Count(group, branch);
            }
            return prepared;
        }
        let mut fields = notice.fields;
        let mut header;
        if let (Some(at), Some(_)) = (at, fields.trace) {
            header = [0; MAX_TRACED_HEADER];
            fields.trace = from.ioam.trace_with_own_data(at, head, from.egress, &mut header).or(fields.trace);
        }
        let (loopback, types) = (from.config.loopback, from.config.fast_cnp_types);
        let place = prepared.octets.get_mut(IPV6..).unwrap_or(&mut []);
        let written = self.notifier.as_mut().and_then(|notifier| {
            // What is translated for other hosts is a standard CNP, whose payload is zero.
            let rates = notifier.rates.as_ref().filter(|_| notifier.is_capable(fields.source));
            let rate = at.zip(rates).and_then(|(at, rates)| rates.of(at, from.egress));
            let payload = CnpView::with_rate(rate.unwrap_or(0));
            notifier.write(&fields, loopback, types, &payload, place)
        });
        prepared.message = written.map_or(Message::None, Message::Packet);
        prepared
    }
}

/// The drop reason of a malformed Fast CNP.
pub(crate) fn drop_of(error: FastCnpError) -> DropReason {
    match error {
        FastCnpError::Overrun(_) | FastCnpError::TooLong { .. } => DropReason::FastCnpTooLong,
        FastCnpError::TooShort { .. } => DropReason::FastCnpTooShort,
        FastCnpError::Twice { .. } => DropReason::FastCnpTwice,
        FastCnpError::WrongPlace { .. } => DropReason::FastCnpWrongPlace,
        FastCnpError::Trace(_) => DropReason::FastCnpBadTrace,
        FastCnpError::UnknownOption(_) => DropReason::FastCnpUnknownOption,
        FastCnpError::NotACnp(_) => DropReason::FastCnpNotACnp,
    }
}
