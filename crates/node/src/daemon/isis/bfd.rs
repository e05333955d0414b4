//! BFD sessions with neighbours of IS-IS (RFC 5882, D110).

use super::circuit::Circuit;
use srdma_bfd::Config;
use srdma_dataplane::{BfdPeer, BfdSession};
use srdma_isis::tlv::AdjacencyState;
use srdma_isis::{CircuitId, Speaker};
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Time for which a session outlives its adjacency, in nanoseconds: as long as it is down, the neighbour is avoided,
/// also by routes that are not withdrawn yet.
const LINGER_NS: u64 = 10 * NS_PER_S;

/// The sessions that are wanted.
#[derive(Debug, Default)]
pub(super) struct Neighbours(BTreeMap<BfdPeer, Wanted>);

#[derive(Clone, Copy, Debug)]
struct Wanted {
    session: BfdSession,
    /// End of a session whose adjacency is gone.
    until: Option<Instant>,
}

impl Neighbours {
    /// Follows the adjacencies.
    pub(super) fn follow(&mut self, now: Instant, speaker: &Speaker, circuits: &[Circuit]) {
        let adjacent: BTreeMap<BfdPeer, BfdSession> = circuits
            .iter()
            .enumerate()
            .filter_map(|(number, circuit)| session(speaker, CircuitId(number), circuit))
            .map(|session| (session.peer, session))
            .collect();
        self.0.retain(|peer, wanted| {
            if !adjacent.contains_key(peer) {
                wanted.until.get_or_insert(now.after_ns(LINGER_NS));
            }
            wanted.until.is_none_or(|until| now < until)
        });
        self.0.extend(adjacent.into_iter().map(|(peer, session)| (peer, Wanted { session, until: None })));
    }

    /// The sessions.
    pub(super) fn sessions(&self) -> BTreeMap<BfdPeer, BfdSession> {
        self.0.iter().map(|(peer, wanted)| (*peer, wanted.session)).collect()
    }

    /// Time of the next change without one of the adjacencies.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|wanted| wanted.until).min()
    }
}

/// The circuit that leads to a peer, while its adjacency is up.
pub(super) fn circuit_to(peer: BfdPeer, speaker: &Speaker, circuits: &[Circuit]) -> Option<CircuitId> {
    let leads_there = |(number, circuit): &(usize, &Circuit)| {
        session(speaker, CircuitId(*number), circuit).is_some_and(|session| session.peer == peer)
    };
    circuits.iter().enumerate().find(leads_there).map(|(number, _)| CircuitId(number))
}

/// The session of a circuit whose adjacency is up.
fn session(speaker: &Speaker, id: CircuitId, circuit: &Circuit) -> Option<BfdSession> {
    let port = circuit.link.bfd?;
    let adjacency = speaker.adjacency(id).filter(|adjacency| adjacency.state == AdjacencyState::Up)?;
    let address = adjacency.addresses.iter().copied().find(Ipv6Addr::is_unicast_link_local)?;
    let peer = BfdPeer { port: Some(port), address };
    Some(BfdSession { peer, local: *circuit.link.addresses.first()?, config: Config::default(), is_enabled: true })
}
