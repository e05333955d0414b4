//! Results of what was learnt: routes, and the destinations of notifications.

use super::Plan;
use super::circuit::Circuit;
use srdma_dataplane::{BackupRoute, BfdPeer, BfdSession, NextHop};
use srdma_frame::PortId;
use srdma_io::netlink::KernelNextHop;
use srdma_isis::{Behaviors, LearnedNode, Level, NodeId, NotificationSids, ShortestPaths, Speaker, SystemId};
use srdma_wire::{Instant, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Results of the last change of the database.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Known {
    /// Announcements of all systems, this one among them.
    pub(in crate::daemon) nodes: BTreeMap<SystemId, LearnedNode>,
    pub(in crate::daemon) paths: ShortestPaths,
}

impl Known {
    /// Content of a speaker's database.
    pub(super) fn of(speaker: &Speaker, now: Instant) -> Self {
        Known { nodes: speaker.learned(now), paths: speaker.shortest_paths(now) }
    }

    /// Host name of a system, if its LSP has one.
    pub(in crate::daemon) fn hostname(&self, id: SystemId) -> Option<&str> {
        self.nodes.get(&id)?.hostname.as_deref()
    }
}

/// Results from all other systems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::daemon) struct Learnt {
    /// Routes to their prefixes and locators.
    pub(in crate::daemon) routes: BTreeMap<Prefix, Vec<KernelNextHop>>,
    /// END.C and END.E of the nodes that handle notifications (D63, D65).
    pub(in crate::daemon) sids: NotificationSids,
    /// The nodes that announce END.C or END.E, and that they do not handle notifications: by their names.
    pub(in crate::daemon) silent: BTreeSet<String>,
    /// BFD sessions with neighbours.
    pub(in crate::daemon) bfd: BTreeMap<BfdPeer, BfdSession>,
    /// Ways around neighbours (D266).
    pub(in crate::daemon) backups: BTreeMap<NextHop, Vec<BackupRoute>>,
}

impl Learnt {
    /// Results of the present content of the database.
    pub(super) fn of(known: &Known, speaker: &Speaker, plan: &Plan, circuits: &[Circuit]) -> Self {
        let own = plan.settings.system.system;
        let behaviors = plan.settings.behaviors;
        // The LSPs of a system that is gone stay in the database until their lifetime is over.
        let is_there = |id: &SystemId| *id != own && known.paths.nodes.contains_key(&NodeId::of(*id));
        let nodes = || known.nodes.iter().filter(|(id, _)| is_there(id));
        let silent = nodes().filter(|(_, node)| is_silent(node, behaviors)).map(|(id, node)| name(*id, node));
        Learnt {
            routes: routes(speaker, plan, circuits, &known.paths),
            sids: NotificationSids::new(nodes().map(|(_, node)| node), behaviors),
            silent: silent.collect(),
            bfd: BTreeMap::new(),
            backups: BTreeMap::new(),
        }
    }

    /// Whether there are ways around a peer.
    pub(super) fn has_backups(&self, peer: BfdPeer) -> bool {
        let of_peer = peer.port.and_then(|port| self.backups.get(&NextHop { port, address: peer.address }));
        of_peer.is_some_and(|routes| !routes.is_empty())
    }

    /// Whether there are ways around a neighbour at a port.
    pub(super) fn has_backups_at(&self, port: PortId) -> bool {
        self.backups.iter().any(|(next_hop, routes)| next_hop.port == port && !routes.is_empty())
    }
}

/// Host name of a system, or else its identifier.
fn name(id: SystemId, node: &LearnedNode) -> String {
    node.hostname.clone().unwrap_or_else(|| id.to_string())
}

/// D65: SIDs without the C-flag do not count.
pub(in crate::daemon) fn is_silent(node: &LearnedNode, behaviors: Behaviors) -> bool {
    let announces = node.sids.iter().any(|sid| [behaviors.end_c, behaviors.end_e].contains(&sid.behavior));
    announces && !node.handles_notifications()
}

/// A prefix that this system announces itself is no route of its own.
fn routes(
    speaker: &Speaker,
    plan: &Plan,
    circuits: &[Circuit],
    paths: &ShortestPaths,
) -> BTreeMap<Prefix, Vec<KernelNextHop>> {
    let own: BTreeSet<Prefix> = plan.settings.system.prefixes.iter().map(|reachable| reachable.prefix).collect();
    let mut by_hop: BTreeMap<(Level, NodeId), Vec<KernelNextHop>> = BTreeMap::new();
    let reached = paths.prefixes.iter().filter(|(prefix, _)| !own.contains(prefix));
    let routes = reached.map(|(prefix, reached)| {
        let mut hops = Vec::new();
        for hop in &reached.first_hops {
            let found = by_hop.entry((reached.level, *hop));
            hops.extend_from_slice(found.or_insert_with(|| next_hops(speaker, circuits, reached.level, hop.system)));
        }
        (*prefix, hops)
    });
    routes.filter(|(_, hops)| !hops.is_empty()).collect()
}

/// The neighbour's address on each of the cheapest circuits that lead there.
fn next_hops(speaker: &Speaker, circuits: &[Circuit], level: Level, neighbour: SystemId) -> Vec<KernelNextHop> {
    let there = || {
        let all = speaker.circuits_to(level, neighbour);
        all.filter_map(|(id, adjacency)| Some((circuits.get(id.0)?, adjacency)))
    };
    let least = there().map(|(circuit, _)| circuit.metric).min();
    there()
        .filter(|(circuit, _)| Some(circuit.metric) == least)
        .filter_map(|(circuit, adjacency)| {
            let index = circuit.index()?;
            let gateway = adjacency.addresses.iter().copied().find(Ipv6Addr::is_unicast_link_local)?;
            Some(KernelNextHop { index, gateway: Some(gateway) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::IsisSettings;
    use srdma_capture::Reader;
    use srdma_isis::tlv::{AdjacencyState, ThreeWay, Topologies};
    use srdma_isis::{CircuitConfig, Config, Hello, frame};
    use srdma_wire::MacAddress;
    use std::path::Path;

    const OWN: SystemId = SystemId([0, 0, 0, 0, 0, 1]);
    const OTHER: SystemId = SystemId([0, 0, 0, 0, 0, 9]);
    const BEHAVIORS: Behaviors = Behaviors { end_c: 0x8001, end_e: 0x8002 };

    /// System 9 is a neighbour, and scapy's LSP of it has SIDs; but the LSP lists no neighbour, so that there is no
    /// path to the SIDs.
    #[test]
    fn sids_out_of_reach_are_not_learnt() {
        let now = Instant::from_ns(1_000_000_000);
        let system = Config::new(OWN, vec![vec![0x49, 0, 1]], "own");
        let mut speaker = Speaker::new(system.clone(), 1, 1);
        let circuit = speaker.add_circuit(now, CircuitConfig::new(MacAddress([2, 0, 0, 0, 0, 1])));
        let hello = Hello {
            levels: vec![Level::Two],
            source: OTHER,
            holding_time_s: 30,
            circuit: 0,
            areas: Vec::new(),
            addresses: Vec::new(),
            three_way: Some(ThreeWay { state: AdjacencyState::Up, circuit: Some(9), neighbour: Some((OWN, 1)) }),
            topologies: Topologies::default(),
        };
        let octets = frame::wrap(MacAddress([2, 0, 0, 0, 0, 9]), &hello.emit(&[])).expect("short");
        speaker.receive(now, circuit, &octets);
        speaker.tick(now);
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/scapy_08_isis.pcap");
        let lsp = Reader::open(&file).expect("a capture").next().expect("a packet").expect("a packet").octets;
        speaker.receive(now, circuit, &lsp);
        speaker.tick(now);

        let known = Known::of(&speaker, now);
        assert!(known.nodes[&OTHER].notification_sid(BEHAVIORS.end_e).is_some());
        assert_eq!(speaker.circuits_to(Level::Two, OTHER).count(), 1);
        let settings =
            IsisSettings { system, circuits: Vec::new(), behaviors: BEHAVIORS, ti_lfa: false, node_protection: true };
        let learnt = Learnt::of(&known, &speaker, &Plan { settings, links: Vec::new() }, &[]);
        assert_eq!(learnt, Learnt::default());
    }
}
