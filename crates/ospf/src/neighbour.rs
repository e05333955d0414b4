//! The router at the other end of a circuit (RFC 2328 section 10).
//!
//! ```text
//!            hello without us                 hello with us         initial description
//! (none) ──────────────────────▶ Init ──────────────────────▶ ExStart ──────▶ Exchange
//!    ▲                            ▲                              ▲               │ last description
//!    └── no hello for dead_s ──┐  └── hello without us ──┐       │               ▼
//!                              any state                 ExStart … Full ◀── Loading
//!                                              wrong number, ───┘       nothing left to request
//!                                              unknown request
//! ```

use crate::database::Place;
use crate::id::RouterId;
use crate::lsa::{LsaHeader, LsaKey};
use crate::packet::Description;
use srdma_wire::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

/// State of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NeighbourState {
    /// Its hellos do not list this router.
    Init,
    /// Which of the two is the master is negotiated.
    ExStart,
    /// Descriptions of the databases are exchanged.
    Exchange,
    /// LSAs that the neighbour has described are requested.
    Loading,
    /// The databases are equal: the link is announced.
    Full,
}

impl NeighbourState {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            NeighbourState::Init => "init",
            NeighbourState::ExStart => "exstart",
            NeighbourState::Exchange => "exchange",
            NeighbourState::Loading => "loading",
            NeighbourState::Full => "full",
        }
    }
}

/// The neighbour of a circuit.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Its id.
    pub router: RouterId,
    /// Its link-local address, the next hop.
    pub address: Ipv6Addr,
    /// Its number of the circuit.
    pub interface: u32,
    /// State of the adjacency.
    pub state: NeighbourState,
    pub(crate) until: Instant,
    pub(crate) exchange: Exchange,
    /// LSAs to request, and those of them that are requested.
    pub(crate) requests: BTreeMap<LsaKey, LsaHeader>,
    pub(crate) requested: usize,
    pub(crate) request_at: Option<Instant>,
    /// LSAs that the neighbour has not acknowledged, and when each is sent again.
    pub(crate) retransmissions: BTreeMap<Place, Instant>,
    /// None of them is due before.
    pub(crate) retransmit_at: Option<Instant>,
}

/// The exchange of descriptions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchange {
    /// Whether this router is the master.
    pub(crate) is_master: bool,
    pub(crate) sequence: u32,
    /// The LSAs that are to be described, from those of the description that was sent last on.
    pub(crate) summary: VecDeque<LsaHeader>,
    /// How many of them were sent last.
    pub(crate) in_flight: usize,
    /// The description that was sent last.
    pub(crate) sent: Option<Description>,
    /// The description that was taken last, without its headers: another one like it is a repetition.
    pub(crate) taken: Option<Description>,
    /// Time at which the last description is sent again.
    pub(crate) resend_at: Option<Instant>,
}

impl Neighbour {
    pub(crate) fn new(router: RouterId, address: Ipv6Addr, interface: u32, until: Instant) -> Self {
        Neighbour {
            router,
            address,
            interface,
            state: NeighbourState::Init,
            until,
            exchange: Exchange::default(),
            requests: BTreeMap::new(),
            requested: 0,
            request_at: None,
            retransmissions: BTreeMap::new(),
            retransmit_at: None,
        }
    }

    /// The time at which it is given up, unless a hello comes.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Whether the databases are equal.
    pub fn is_full(&self) -> bool {
        self.state == NeighbourState::Full
    }

    /// Number of LSAs that it has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.retransmissions.len()
    }

    /// Whether LSAs are flooded to it.
    pub(crate) fn takes_lsas(&self) -> bool {
        self.state >= NeighbourState::Exchange
    }

    /// Whether LSAs at MaxAge have to be kept for it.
    pub(crate) fn is_exchanging(&self) -> bool {
        matches!(self.state, NeighbourState::Exchange | NeighbourState::Loading)
    }

    /// Forgets what is to be sent, in another state.
    pub(crate) fn restart(&mut self, state: NeighbourState) {
        self.state = state;
        // Numbers go on, so that old descriptions are told apart.
        self.exchange = Exchange { sequence: self.exchange.sequence, ..Exchange::default() };
        self.requests.clear();
        (self.requested, self.request_at) = (0, None);
        self.retransmissions.clear();
        self.retransmit_at = None;
    }

    /// An LSA has to be acknowledged, or is sent again at a time.
    pub(crate) fn expect_acknowledgment(&mut self, place: Place, at: Instant) {
        self.retransmissions.insert(place, at);
        self.retransmit_at = Some(self.retransmit_at.map_or(at, |before| before.min(at)));
    }

    /// The LSAs that are to be sent again now, and again at another time.
    pub(crate) fn due(&mut self, now: Instant, next: Instant) -> Vec<Place> {
        if self.retransmit_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let mut due = Vec::new();
        for (place, at) in self.retransmissions.iter_mut().filter(|(_, at)| **at <= now) {
            due.push(*place);
            *at = next;
        }
        self.retransmit_at = self.retransmissions.values().copied().min();
        due
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let times = [Some(self.until), self.exchange.resend_at, self.request_at, self.retransmit_at];
        times.into_iter().flatten().min()
    }
}
