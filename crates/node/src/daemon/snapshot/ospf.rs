//! OSPFv3 in a snapshot: circuits, the LSAs of all routers, and what was learnt of them (`docs/ospf.md`).

use super::isis::{IsisSidSnapshot, sids};
use crate::configuration::OspfSettings;
use crate::daemon::ospf::Known;
use serde::{Deserialize, Serialize};
use srdma_ospf::{CircuitId, OspfDrop, RouterId, Speaker};
use srdma_wire::{Instant, Prefix};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A router that runs OSPFv3.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OspfSnapshot {
    /// Its id.
    pub router: String,
    pub hostname: String,
    pub area: String,
    /// Nothing goes through it: its R-bit is clear.
    pub is_overloaded: bool,
    /// Its circuits, in the order in which they were configured.
    pub circuits: Vec<OspfCircuitSnapshot>,
    /// The database.
    pub lsas: Vec<OspfLsaSnapshot>,
    /// All routers that announce something, this one among them.
    pub nodes: Vec<OspfNodeSnapshot>,
    /// Prefixes of other routers, with their next hops.
    pub routes: Vec<OspfRouteSnapshot>,
    /// Counters, by name.
    pub counters: BTreeMap<String, u64>,
    /// Packets and LSAs that were dropped, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// A circuit, and the router at its other end.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OspfCircuitSnapshot {
    pub port: String,
    pub metric: u16,
    /// Whether packets can pass: the interface is there, up, and has a socket.
    pub is_open: bool,
    /// State of the neighbour: `down`, `init`, `exstart`, `exchange`, `loading` or `full`.
    pub state: String,
    /// Its id, after its first hello.
    pub neighbour: Option<String>,
    /// Its name, once its LSA is there.
    pub hostname: Option<String>,
    /// Its link-local address.
    pub address: Option<Ipv6Addr>,
    /// Time after which it is given up, in seconds, unless a hello comes.
    pub dead_s: Option<u64>,
    /// LSAs that it has not acknowledged.
    pub unacknowledged: usize,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OspfLsaSnapshot {
    /// The type as a number, with its scope.
    pub kind: u16,
    /// Its name; absent for types that the node only floods.
    pub name: Option<String>,
    pub id: u32,
    pub router: String,
    /// The port of an LSA that stays on its link.
    pub port: Option<String>,
    pub sequence: u32,
    pub checksum: u16,
    pub age_s: u16,
    /// Its length.
    pub octets: usize,
    pub is_own: bool,
}

/// A router, and what it announces.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OspfNodeSnapshot {
    pub router: String,
    pub hostname: Option<String>,
    /// The sum of metrics; absent for a router that cannot be reached.
    pub distance: Option<u64>,
    pub has_srv6: bool,
    /// C-flag.
    pub handles_notifications: bool,
    pub locators: Vec<String>,
    pub sids: Vec<IsisSidSnapshot>,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OspfRouteSnapshot {
    pub prefix: String,
    /// The sum of metrics.
    pub distance: u64,
    /// The neighbours by which shortest paths lead: names, or else ids.
    pub via: Vec<String>,
}

/// A port of the node that is a circuit.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct OspfPort<'n> {
    pub(in crate::daemon) name: &'n str,
    pub(in crate::daemon) metric: u16,
    pub(in crate::daemon) is_open: bool,
}

impl OspfSnapshot {
    /// State of a speaker, whose circuits are `ports`.
    pub(in crate::daemon) fn of(
        speaker: &Speaker,
        known: &Known,
        settings: &OspfSettings,
        ports: &[OspfPort<'_>],
        now: Instant,
    ) -> Self {
        let router = &settings.router;
        let shown = |id: RouterId| known.hostname(id).map_or_else(|| id.to_string(), str::to_owned);
        let circuits = ports.iter().enumerate().map(|(number, port)| {
            let neighbour = speaker.neighbour(CircuitId(number));
            OspfCircuitSnapshot {
                port: port.name.to_owned(),
                metric: port.metric,
                is_open: port.is_open,
                state: neighbour.map_or("down", |neighbour| neighbour.state.name()).to_owned(),
                neighbour: neighbour.map(|neighbour| neighbour.router.to_string()),
                hostname: neighbour.and_then(|neighbour| known.hostname(neighbour.router)).map(str::to_owned),
                address: neighbour.map(|neighbour| neighbour.address),
                dead_s: neighbour.map(|neighbour| neighbour.until().since(now).as_secs()),
                unacknowledged: neighbour.map_or(0, |neighbour| neighbour.unacknowledged()),
            }
        });
        let lsas = speaker.database().iter().map(|(place, stored)| {
            let header = stored.header(now);
            OspfLsaSnapshot {
                kind: header.kind.0,
                name: header.kind.name().map(str::to_owned),
                id: header.id,
                router: header.router.to_string(),
                port: place.circuit.and_then(|circuit| ports.get(circuit.0)).map(|port| port.name.to_owned()),
                sequence: header.sequence.cast_unsigned(),
                checksum: header.checksum,
                age_s: header.age_s,
                octets: stored.lsa().octets().len(),
                is_own: header.router == router.router,
            }
        });
        let nodes = known.nodes.iter().map(|(id, node)| {
            let distance = known.paths.router(*id).map(|reached| reached.distance);
            OspfNodeSnapshot {
                router: id.to_string(),
                hostname: node.hostname.clone(),
                distance,
                has_srv6: node.srv6.is_some(),
                handles_notifications: node.handles_notifications(),
                locators: node.locators.iter().map(Prefix::to_string).collect(),
                sids: sids(node, distance.is_some(), settings.behaviors),
            }
        });
        let routes = known.paths.prefixes.iter().map(|(prefix, reached)| OspfRouteSnapshot {
            prefix: prefix.to_string(),
            distance: reached.distance,
            via: reached.first_hops.iter().map(|hop| shown(*hop)).collect(),
        });
        OspfSnapshot {
            router: router.router.to_string(),
            hostname: router.hostname.clone(),
            area: RouterId(0).to_string(),
            is_overloaded: speaker.is_overloaded(),
            circuits: circuits.collect(),
            lsas: lsas.collect(),
            nodes: nodes.collect(),
            routes: routes.collect(),
            counters: counters(speaker),
            drops: speaker.drops().iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
        }
    }

    /// All reasons for drops with their counts, also those that never occurred.
    pub(in crate::daemon) fn all_drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |reason: &OspfDrop| self.drops.get(reason.name()).copied().unwrap_or(0);
        OspfDrop::ALL.iter().map(move |reason| (reason.name(), count(reason)))
    }
}

fn counters(speaker: &Speaker) -> BTreeMap<String, u64> {
    let srdma_ospf::Counters { received, sent, retransmitted, own_from_elsewhere, restarted_exchanges, lsa_overflows } =
        speaker.counters();
    let counters = [
        ("received", received),
        ("sent", sent),
        ("retransmitted", retransmitted),
        ("own_from_elsewhere", own_from_elsewhere),
        ("restarted_exchanges", restarted_exchanges),
        ("lsa_overflows", lsa_overflows),
    ];
    counters.map(|(name, count)| (name.to_owned(), count)).into()
}
