//! BFD sessions with neighbours of IS-IS (RFC 5882, D110).

use super::circuit::Circuit;
use srdma_bfd::Config;
use srdma_dataplane::{BfdPeer, BfdSession};
use srdma_isis::{CircuitId, Speaker, SystemId};
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
            .flat_map(|(number, circuit)| sessions(speaker, CircuitId(number), circuit))
            .map(|(_, session)| (session.peer, session))
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

/// The neighbour that is a peer, and its circuit, while their adjacency is up.
pub(super) fn neighbour_at(peer: BfdPeer, speaker: &Speaker, circuits: &[Circuit]) -> Option<(CircuitId, SystemId)> {
    circuits.iter().enumerate().find_map(|(number, circuit)| {
        let id = CircuitId(number);
        let (neighbour, _) = sessions(speaker, id, circuit).find(|(_, session)| session.peer == peer)?;
        Some((id, neighbour))
    })
}

/// The sessions of a circuit, with each neighbour whose adjacency is up.
fn sessions(speaker: &Speaker, id: CircuitId, circuit: &Circuit) -> impl Iterator<Item = (SystemId, BfdSession)> {
    let link = &circuit.link;
    let ends = link.has_bfd.then_some(link.id).zip(link.addresses.first().copied());
    // A neighbour at both levels has one session.
    let levels = speaker.levels().as_slice().iter();
    let up = levels.flat_map(move |level| speaker.adjacencies(*level, id)).filter(|adjacency| adjacency.is_up());
    up.filter_map(move |adjacency| {
        let (port, local) = ends?;
        let address = adjacency.addresses.iter().copied().find(Ipv6Addr::is_unicast_link_local)?;
        let peer = BfdPeer { port: Some(port), address };
        let session = BfdSession { peer, local, config: Config::default(), is_enabled: true };
        Some((adjacency.neighbour, session))
    })
}
