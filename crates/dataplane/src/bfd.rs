//! The node's BFD sessions (RFC 5880, RFC 5881, RFC 5883; D90-D92, D109): packets to its own addresses in, packets and
//! events out.

use crate::config::{ConfigError, NextHop};
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6};
use crate::tables::Tables;
use crate::worker::Worker;
use srdma_bfd::{AddError, Config, Diagnostic, Discriminator, Hops, Output, Peer, Refusal, Session, Sessions, udp};
use srdma_frame::PortId;
use srdma_wire::{Instant, NextHeader};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Sessions of a node, at most.
pub const MAX_BFD_SESSIONS: usize = 1024;

/// The other end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BfdPeer {
    /// The port of a single hop; `None` over any number of hops.
    pub port: Option<PortId>,
    /// Its address.
    pub address: Ipv6Addr,
}

/// A session as it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfdSession {
    /// The other end.
    pub peer: BfdPeer,
    /// The node's address.
    pub local: Ipv6Addr,
    /// Intervals.
    pub config: Config,
    /// Whether it is not administratively down.
    pub is_enabled: bool,
}

/// State of a session.
#[derive(Clone, Copy, Debug)]
pub struct BfdReport<'n> {
    /// The other end.
    pub peer: BfdPeer,
    /// The node's address.
    pub local: Ipv6Addr,
    /// State and timers.
    pub session: &'n Session,
    /// How often it was up and went down, other than by an administrator.
    pub downs: u64,
    /// It was up, has gone down other than by an administrator, and is not up again.
    pub is_lost: bool,
}

/// The node's sessions.
#[derive(Debug)]
pub(crate) struct Bfd {
    sessions: Sessions,
    /// By peer.
    entries: BTreeMap<BfdPeer, Entry>,
    peers: BTreeMap<Discriminator, BfdPeer>,
    /// The last event of each peer that was not taken.
    events: BTreeMap<BfdPeer, srdma_bfd::Event>,
    /// Frames that arrived before this time have been received (D109).
    received_until: Option<Instant>,
    /// The worker that runs the sessions; others follow what it reports.
    runs_sessions: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    discriminator: Discriminator,
    local: Ipv6Addr,
    /// Of a single hop.
    adjacency: Option<u32>,
    downs: u64,
    is_lost: bool,
}

/// A packet that is due: its octets behind an Ethernet header, and the adjacency, or else the main table sends it.
type Packet = ([u8; IPV6 + udp::LEN], Option<u32>);

impl Bfd {
    /// No sessions. Discriminators and source ports follow from the seed (D92).
    pub(crate) fn new(seed: u64, worker: Worker) -> Self {
        Bfd {
            sessions: Sessions::new(MAX_BFD_SESSIONS, seed),
            entries: BTreeMap::new(),
            peers: BTreeMap::new(),
            events: BTreeMap::new(),
            received_until: None,
            runs_sessions: worker.is_first(),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Adds a session, or changes the one with the peer. The tables hold the neighbour of a single hop.
    pub(crate) fn set(&mut self, session: &BfdSession, tables: &mut Tables) -> Result<(), ConfigError> {
        let peer = session.peer;
        if self.entries.get(&peer).is_some_and(|entry| entry.local != session.local) {
            self.remove(peer, tables)?;
        }
        let next_hop = peer.port.map(|port| NextHop { port, address: peer.address });
        let adjacency = match next_hop.filter(|_| !self.entries.contains_key(&peer)) {
            Some(next_hop) => Some(tables.hold_neighbour(next_hop)?),
            None => None,
        };
        let configured = self.configure(session, adjacency);
        if configured.is_err() {
            tables.release_neighbour(adjacency);
        } else if !session.is_enabled
            && let Some(adjacency) = self.adjacency(peer)
        {
            tables.avoid(adjacency, false);
        }
        configured
    }

    fn configure(&mut self, session: &BfdSession, adjacency: Option<u32>) -> Result<(), ConfigError> {
        let &BfdSession { peer, local, config, is_enabled } = session;
        let discriminator = match self.entries.get(&peer) {
            Some(entry) => {
                self.sessions.configure(entry.discriminator, config);
                entry.discriminator
            }
            None => {
                let hops = peer.port.map_or(Hops::Multi, |port| Hops::Single { interface: port.0.into() });
                let ends = Peer { hops, remote: peer.address, local };
                // The first packet is due at once, whatever the time is.
                let discriminator = self.sessions.add(ends, config, Instant::ZERO).map_err(|error| match error {
                    AddError::Full => ConfigError::TooManyBfdSessions(MAX_BFD_SESSIONS),
                    AddError::PeerTaken(_) => ConfigError::BfdPeerTaken(peer.address),
                })?;
                self.entries.insert(peer, Entry { discriminator, local, adjacency, downs: 0, is_lost: false });
                self.peers.insert(discriminator, peer);
                discriminator
            }
        };
        if is_enabled {
            self.sessions.enable(discriminator);
        } else {
            let event = self.sessions.disable(discriminator, Diagnostic::ADMINISTRATIVELY_DOWN);
            self.events.extend(event.map(|event| (peer, event)));
            self.entries.entry(peer).and_modify(|entry| entry.is_lost = false);
        }
        Ok(())
    }

    /// The adjacency of the session with a peer over a single hop.
    fn adjacency(&self, peer: BfdPeer) -> Option<u32> {
        self.entries.get(&peer)?.adjacency
    }

    /// Removes a session.
    pub(crate) fn remove(&mut self, peer: BfdPeer, tables: &mut Tables) -> Result<(), ConfigError> {
        let entry = self.entries.remove(&peer).ok_or(ConfigError::UnknownBfdPeer(peer.address))?;
        self.sessions.remove(entry.discriminator);
        self.peers.remove(&entry.discriminator);
        self.events.remove(&peer);
        if let Some(adjacency) = entry.adjacency {
            tables.avoid(adjacency, false);
        }
        tables.release_neighbour(entry.adjacency);
        Ok(())
    }

    /// Frames that arrived before this time have been received: sessions time out by it, not by the present time.
    pub(crate) fn set_received_until(&mut self, at: Instant) {
        self.received_until = Some(at);
    }

    /// Whether a packet to the node itself is one of BFD.
    pub(crate) fn is_for(&self, head: &[u8]) -> bool {
        let port = head.get(AFTER_IPV6 + 2..).and_then(|octets| octets.first_chunk());
        let is_bfd = |port: &[u8; 2]| [udp::SINGLE_HOP_PORT, udp::MULTI_HOP_PORT].contains(&u16::from_be_bytes(*port));
        self.is_on() && head.get(IPV6 + 6) == Some(&NextHeader::UDP.0) && port.is_some_and(is_bfd)
    }

    /// Takes a packet to the node itself. A packet out of a tunnel may come from anywhere, whatever its hop limit.
    #[cold]
    pub(crate) fn receive(
        &mut self,
        context: &PacketContext,
        head: &[u8],
        tables: &mut Tables,
    ) -> Result<(), DropReason> {
        let port = context.port.filter(|_| context.outer_source.is_none()).ok_or(DropReason::BfdHopLimit)?;
        let packet = head.get(IPV6..).unwrap_or_default();
        let taken = self.sessions.receive_packet(port.0.into(), packet, context.now);
        let (discriminator, event) = taken.map_err(drop_reason)?;
        if let Some(event) = event {
            self.note(discriminator, event, tables);
        }
        Ok(())
    }

    /// Times out silent peers, and returns the next packet that is due; call until there is none.
    pub(crate) fn poll(&mut self, now: Instant, tables: &mut Tables) -> Option<Packet> {
        if !self.runs_sessions {
            return None;
        }
        let now = self.received_until.map_or(now, |until| until.min(now));
        loop {
            match self.sessions.poll(now)? {
                Output::Event(discriminator, event) => self.note(discriminator, event, tables),
                Output::Packet { peer, source_port, control } => {
                    let adjacency = self.peers.get(&control.my_discriminator).and_then(|peer| self.adjacency(*peer));
                    let mut octets = [0; IPV6 + udp::LEN];
                    octets[IPV6..].copy_from_slice(&udp::emit(&peer, source_port, &control));
                    return Some((octets, adjacency));
                }
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.sessions.next_deadline().filter(|_| self.runs_sessions)
    }

    /// Follows an event of a session that another worker runs.
    pub(crate) fn follow(&mut self, peer: BfdPeer, event: srdma_bfd::Event, tables: &mut Tables) {
        if let Some(entry) = self.entries.get(&peer).filter(|_| !self.runs_sessions) {
            self.note(entry.discriminator, event, tables);
        }
        self.events.clear();
    }

    /// The events since the last call; of each peer the last one.
    pub(crate) fn take_events(&mut self) -> impl Iterator<Item = (BfdPeer, srdma_bfd::Event)> {
        std::mem::take(&mut self.events).into_iter()
    }

    /// The sessions.
    pub(crate) fn reports(&self) -> impl Iterator<Item = BfdReport<'_>> {
        let found = |(peer, entry): (&BfdPeer, &Entry)| {
            let session = self.sessions.get(entry.discriminator)?;
            Some(BfdReport { peer: *peer, local: entry.local, session, downs: entry.downs, is_lost: entry.is_lost })
        };
        self.entries.iter().filter_map(found)
    }

    /// Notes an event. The neighbour of a session that is down is avoided where there are others.
    fn note(&mut self, discriminator: Discriminator, event: srdma_bfd::Event, tables: &mut Tables) {
        let Some(&peer) = self.peers.get(&discriminator) else { return };
        self.events.insert(peer, event);
        let is_down = match event {
            srdma_bfd::Event::Up => false,
            // D90: a session that was disabled is not even a hint.
            srdma_bfd::Event::Down { is_administrative, .. } => !is_administrative,
        };
        let Some(entry) = self.entries.get_mut(&peer) else { return };
        entry.downs += u64::from(is_down);
        entry.is_lost = is_down;
        if let Some(adjacency) = entry.adjacency {
            tables.avoid(adjacency, is_down);
        }
    }
}

/// The drop reason of a refused packet.
fn drop_reason(refusal: Refusal) -> DropReason {
    match refusal {
        Refusal::NotIpv6 | Refusal::NotUdp | Refusal::OtherPort => DropReason::LocalDelivery,
        Refusal::DatagramLength
        | Refusal::Truncated
        | Refusal::Version
        | Refusal::LengthTooShort
        | Refusal::LengthBeyondPayload
        | Refusal::DetectMultZero
        | Refusal::Multipoint
        | Refusal::MyDiscriminatorZero
        | Refusal::YourDiscriminatorZero
        | Refusal::AuthenticationMalformed => DropReason::BfdMalformed,
        Refusal::Checksum => DropReason::BfdChecksum,
        Refusal::HopLimit => DropReason::BfdHopLimit,
        Refusal::UnknownDiscriminator | Refusal::UnknownPeer => DropReason::BfdUnknownSession,
        Refusal::OtherPeer => DropReason::BfdOtherPeer,
        Refusal::Authenticated => DropReason::BfdAuthenticated,
        Refusal::AdministrativelyDown => DropReason::BfdDisabled,
    }
}
