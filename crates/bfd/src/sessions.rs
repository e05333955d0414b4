//! All sessions of a system: which one a packet is for (RFC 5880 section 6.3, RFC 5881 section 3, RFC 5883 section
//! 4), and when each is due.

use crate::config::Config;
use crate::control::{Control, ControlPacket, Discriminator};
use crate::diagnostic::Diagnostic;
use crate::refusal::{Refusal, Refusals};
use crate::session::{Event, Session};
use crate::udp;
use srdma_random::Stream;
use srdma_wire::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// The greatest number of sessions: each has a UDP source port of its own.
pub const MOST_SESSIONS: usize = 1 << 14;

const PORTS: u16 = MOST_SESSIONS as u16;

/// What is between the two systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hops {
    /// One link (RFC 5881, UDP port 3784).
    Single {
        /// Index of the interface.
        interface: u32,
    },
    /// Any path (RFC 5883, UDP port 4784).
    Multi,
}

/// The two ends of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// What is between them.
    pub hops: Hops,
    /// The peer's address.
    pub remote: Ipv6Addr,
    /// Ours.
    pub local: Ipv6Addr,
}

impl Peer {
    /// What a packet without Your Discriminator is recognized by: the interface or our address, and the peer's.
    fn key(&self) -> (Hops, Ipv6Addr, Option<Ipv6Addr>) {
        let local = match self.hops {
            Hops::Single { .. } => None,
            Hops::Multi => Some(self.local),
        };
        (self.hops, self.remote, local)
    }
}

/// How a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// By which UDP port, and which interface.
    pub hops: Hops,
    /// Source of the packet.
    pub source: Ipv6Addr,
    /// Destination of the packet.
    pub destination: Ipv6Addr,
    /// Hop limit of the packet.
    pub hop_limit: u8,
}

/// Why a session is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// There are as many as there may be.
    #[error("the table of BFD sessions is full")]
    Full,
    /// There is one with this peer.
    #[error("BFD session {0} is with this peer")]
    PeerTaken(Discriminator),
}

/// What a session wants when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Its path has changed.
    Event(Discriminator, Event),
    /// A packet is to be sent.
    Packet {
        /// From here to there.
        peer: Peer,
        /// From this UDP port, to that of [`Peer::hops`].
        source_port: u16,
        /// The packet.
        control: Control,
    },
}

#[derive(Clone, Debug)]
struct Entry {
    session: Session,
    peer: Peer,
    source_port: u16,
    /// Its place in the schedule.
    deadline: Option<Instant>,
}

/// The sessions of a system.
#[derive(Clone, Debug)]
pub struct Sessions {
    limit: usize,
    seed: u64,
    random: Stream,
    entries: BTreeMap<Discriminator, Entry>,
    by_peer: BTreeMap<(Hops, Ipv6Addr, Option<Ipv6Addr>), Discriminator>,
    ports: BTreeSet<u16>,
    schedule: BTreeSet<(Instant, Discriminator)>,
    refusals: Refusals,
}

impl Sessions {
    /// No sessions, of which there will be `limit` at most, and [`MOST_SESSIONS`]. Discriminators, ports and jitter
    /// follow from the seed, which must not be guessable where attackers can reach the ports (D92).
    pub fn new(limit: usize, seed: u64) -> Self {
        Sessions {
            limit: limit.min(MOST_SESSIONS),
            seed,
            random: Stream::new(seed, "bfd"),
            entries: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            ports: BTreeSet::new(),
            schedule: BTreeSet::new(),
            refusals: Refusals::default(),
        }
    }

    /// Adds a session, which sends its first packet at once.
    ///
    /// # Errors
    ///
    /// If the table is full, or there is a session with the peer.
    pub fn add(&mut self, peer: Peer, config: Config, now: Instant) -> Result<Discriminator, AddError> {
        if let Some(present) = self.by_peer.get(&peer.key()) {
            return Err(AddError::PeerTaken(*present));
        }
        if self.entries.len() >= self.limit {
            return Err(AddError::Full);
        }
        let discriminator = self.free_discriminator().ok_or(AddError::Full)?;
        let source_port = self.free_port().ok_or(AddError::Full)?;
        let random = Stream::new(self.seed, &format!("bfd {discriminator}"));
        let session = Session::new(config, discriminator, random, now);
        self.entries.insert(discriminator, Entry { session, peer, source_port, deadline: None });
        self.by_peer.insert(peer.key(), discriminator);
        self.ports.insert(source_port);
        self.schedule(discriminator);
        Ok(discriminator)
    }

    /// Removes a session. The peer detects a failure then, unless the session was disabled and has sent a packet since.
    pub fn remove(&mut self, discriminator: Discriminator) -> Option<Session> {
        let entry = self.entries.remove(&discriminator)?;
        self.by_peer.remove(&entry.peer.key());
        self.ports.remove(&entry.source_port);
        if let Some(deadline) = entry.deadline {
            self.schedule.remove(&(deadline, discriminator));
        }
        Some(entry.session)
    }

    /// A session.
    pub fn get(&self, discriminator: Discriminator) -> Option<&Session> {
        self.entries.get(&discriminator).map(|entry| &entry.session)
    }

    /// All sessions, with their peers.
    pub fn iter(&self) -> impl Iterator<Item = (&Peer, &Session)> {
        self.entries.values().map(|entry| (&entry.peer, &entry.session))
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What was refused so far.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Changes the configuration of a session; `false` if there is none.
    pub fn configure(&mut self, discriminator: Discriminator, config: Config) -> bool {
        self.with(discriminator, |session| session.configure(config)).is_some()
    }

    /// Disables a session.
    pub fn disable(&mut self, discriminator: Discriminator, diagnostic: Diagnostic) -> Option<Event> {
        self.with(discriminator, |session| session.disable(diagnostic)).flatten()
    }

    /// Enables a session; `false` if there is none.
    pub fn enable(&mut self, discriminator: Discriminator) -> bool {
        self.with(discriminator, Session::enable).is_some()
    }

    /// Takes a payload of UDP. At a time, receive what has come before [`poll`](Sessions::poll): so a driver that runs
    /// late does not take its own delay for a peer's silence.
    ///
    /// # Errors
    ///
    /// If the packet is refused, which is counted.
    pub fn receive(
        &mut self,
        arrival: &Arrival,
        payload: &[u8],
        now: Instant,
    ) -> Result<(Discriminator, Option<Event>), Refusal> {
        let taken = self.take(arrival, payload, now);
        if let Err(reason) = taken {
            self.refusals.count(reason);
        }
        taken
    }

    /// Takes an IPv6 packet that came by an interface, as [`receive`](Sessions::receive) takes its payload.
    ///
    /// # Errors
    ///
    /// If the packet is refused, which is counted.
    pub fn receive_packet(
        &mut self,
        interface: u32,
        octets: &[u8],
        now: Instant,
    ) -> Result<(Discriminator, Option<Event>), Refusal> {
        let taken = udp::parse(octets, interface).and_then(|(arrival, payload)| self.take(&arrival, payload, now));
        if let Err(reason) = taken {
            self.refusals.count(reason);
        }
        taken
    }

    fn take(
        &mut self,
        arrival: &Arrival,
        payload: &[u8],
        now: Instant,
    ) -> Result<(Discriminator, Option<Event>), Refusal> {
        let least_hop_limit = match arrival.hops {
            Hops::Single { .. } => udp::HOP_LIMIT,
            Hops::Multi => 0,
        };
        if arrival.hop_limit < least_hop_limit {
            return Err(Refusal::HopLimit);
        }
        let packet = ControlPacket::parse(payload)?;
        let key = Peer { hops: arrival.hops, remote: arrival.source, local: arrival.destination }.key();
        let discriminator = match packet.control.your_discriminator {
            None => *self.by_peer.get(&key).ok_or(Refusal::UnknownPeer)?,
            Some(yours) => yours,
        };
        let entry = self.entries.get(&discriminator).ok_or(Refusal::UnknownDiscriminator)?;
        if entry.peer.key() != key {
            return Err(Refusal::OtherPeer);
        }
        let taken = self.with(discriminator, |session| session.receive(&packet, now));
        taken.unwrap_or(Err(Refusal::UnknownDiscriminator)).map(|event| (discriminator, event))
    }

    /// The next event or packet that is due; call until there is none.
    pub fn poll(&mut self, now: Instant) -> Option<Output> {
        while let Some((_, discriminator)) = self.schedule.first().copied().filter(|(at, _)| *at <= now) {
            let due = self.with(discriminator, |session| match session.tick(now) {
                Some(event) => (Some(event), None),
                None => (None, session.poll(now)),
            });
            let entry = self.entries.get(&discriminator)?;
            match due? {
                (Some(event), _) => return Some(Output::Event(discriminator, event)),
                (None, Some(control)) => {
                    return Some(Output::Packet { peer: entry.peer, source_port: entry.source_port, control });
                }
                (None, None) => {}
            }
        }
        None
    }

    /// Time of the next [`poll`](Sessions::poll); one that has passed means at once.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.schedule.first().map(|(at, _)| *at)
    }

    fn with<T>(&mut self, discriminator: Discriminator, change: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let result = change(&mut self.entries.get_mut(&discriminator)?.session);
        self.schedule(discriminator);
        Some(result)
    }

    fn schedule(&mut self, discriminator: Discriminator) {
        let Some(entry) = self.entries.get_mut(&discriminator) else { return };
        let deadline = entry.session.next_deadline();
        let before = std::mem::replace(&mut entry.deadline, deadline);
        if before != deadline {
            before.map(|at| self.schedule.remove(&(at, discriminator)));
            deadline.map(|at| self.schedule.insert((at, discriminator)));
        }
    }

    /// A random discriminator that no session has (D92).
    fn free_discriminator(&mut self) -> Option<Discriminator> {
        let first = self.random.below(1 << 32) as u32;
        let mut numbers = (0..=self.entries.len() as u32 + 1).map(|step| first.wrapping_add(step));
        numbers.find_map(|number| Discriminator::new(number).filter(|free| !self.entries.contains_key(free)))
    }

    fn free_port(&mut self) -> Option<u16> {
        let first = self.random.below(u64::from(PORTS)) as u16;
        let mut ports = (0..PORTS).map(|step| udp::FIRST_SOURCE_PORT + (first + step) % PORTS);
        ports.find(|port| !self.ports.contains(port))
    }
}
