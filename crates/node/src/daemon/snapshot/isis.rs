//! IS-IS in a snapshot: circuits, the LSPs of all systems, and what was learnt of them (`docs/isis.md`).

use crate::configuration::IsisSettings;
use crate::daemon::isis::Known;
use serde::{Deserialize, Serialize};
use srdma_isis::tlv::{AdjacencyState, EndSid, SidStructure, TopologyId};
use srdma_isis::{
    Adjacency, Behaviors, CircuitId, CircuitType, IsisDrop, Key, LearnedNode, Level, NodeId, Overload, Speaker,
    SystemId,
};
use srdma_wire::codepoints::behavior;
use srdma_wire::{Instant, Prefix};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A system that runs IS-IS.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsisSnapshot {
    /// Its id.
    pub system: String,
    pub hostname: String,
    pub area: String,
    /// Its levels: 1, 2 or both.
    #[serde(default)]
    pub levels: Vec<u8>,
    /// Whether its LSPs at level 1 have the attached bit: it leads out of its area.
    #[serde(default)]
    pub is_attached: bool,
    /// The id of the topology of its paths and announcements: 0, the standard one, or 2, that of IPv6 (RFC 5120).
    #[serde(default)]
    pub topology: u16,
    /// Algorithm by which PDUs are signed, as in the configuration; `none` without a key.
    #[serde(default)]
    pub authentication: String,
    /// Nothing goes through it.
    pub is_overloaded: bool,
    /// Cause of its overload bit, while it is set.
    #[serde(default)]
    pub overload: Option<String>,
    /// Its circuits, in the order in which they were configured: each is there once for each level and neighbour.
    pub circuits: Vec<IsisCircuitSnapshot>,
    /// The database, by the ids of LSPs.
    pub lsps: Vec<LspSnapshot>,
    /// All systems that announce something, this one among them.
    pub nodes: Vec<IsisNodeSnapshot>,
    /// Prefixes of other systems, with their next hops.
    pub routes: Vec<IsisRouteSnapshot>,
    /// Ways around the neighbours that prefixes are reached by.
    #[serde(default)]
    pub backups: Vec<IsisBackupSnapshot>,
    /// Counters, by name.
    pub counters: BTreeMap<String, u64>,
    /// Frames that were dropped, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// A circuit, and a system at another end of it.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsisCircuitSnapshot {
    pub port: String,
    /// `point-to-point` or `broadcast`.
    #[serde(default)]
    pub kind: String,
    /// The level of the adjacency.
    #[serde(default)]
    pub level: u8,
    /// The pseudonode of a LAN, with the id of its designated system, once that is elected.
    #[serde(default)]
    pub designated: Option<String>,
    /// Metric of the link.
    pub metric: u32,
    /// Whether frames can pass: the interface is there, up, and has a socket.
    pub is_open: bool,
    /// State of the handshake.
    pub state: IsisState,
    /// Whether the neighbour is in this system's topology: paths lead to no other.
    #[serde(default)]
    pub is_in_topology: bool,
    /// System at the other end, after its first hello.
    pub neighbour: Option<String>,
    /// Its name, once its LSP is there.
    pub hostname: Option<String>,
    /// Its addresses on the link.
    pub addresses: Vec<Ipv6Addr>,
    /// Rest of the holding time of its last hello, in seconds.
    pub holds_s: Option<u64>,
}

/// States of the handshake of a circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IsisState {
    /// No hellos arrive.
    #[default]
    Down,
    /// Hellos arrive that do not list this system yet.
    Initializing,
    /// The adjacency is up in both directions.
    Up,
}

impl IsisState {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            IsisState::Down => "down",
            IsisState::Initializing => "initializing",
            IsisState::Up => "up",
        }
    }
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LspSnapshot {
    /// The level of the database in which it is.
    #[serde(default)]
    pub level: u8,
    pub id: String,
    /// Host name of its system, if that is known.
    pub hostname: Option<String>,
    pub sequence: u32,
    pub checksum: u16,
    /// Remaining lifetime, in seconds.
    pub lifetime_s: u16,
    /// Its length.
    pub octets: usize,
    /// Nothing goes through its system.
    pub is_overloaded: bool,
    /// Its system leads out of the area.
    #[serde(default)]
    pub is_attached: bool,
    /// It is our own.
    pub is_own: bool,
    /// The system that has generated this purge, and the neighbour that has caused it, as far as both are known (RFC
    /// 6232); empty for other LSPs.
    #[serde(default)]
    pub purged_by: Vec<String>,
}

/// Announcements of a system.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsisNodeSnapshot {
    /// Its id.
    pub system: String,
    /// Host name, if its LSP has one.
    pub hostname: Option<String>,
    /// Cost of the path to it; absent without a path.
    pub distance: Option<u64>,
    /// Whether it supports SRv6.
    pub has_srv6: bool,
    /// The C-flag: it handles congestion notifications.
    pub handles_notifications: bool,
    pub locators: Vec<String>,
    pub sids: Vec<IsisSidSnapshot>,
}

/// A SID that a system announces.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsisSidSnapshot {
    pub sid: Ipv6Addr,
    /// The code point of its behaviour.
    pub behavior: u16,
    /// The behaviour's name, if it is a known one.
    pub name: Option<String>,
    /// Bits of block, node, function and argument, if announced.
    pub structure: Option<[u8; 4]>,
    /// Whether notifications go there: never, where the C-flag is missing (D65), or the system is out of reach.
    pub is_used: bool,
}

/// The way to a prefix.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsisRouteSnapshot {
    pub prefix: String,
    /// The level of the path.
    #[serde(default)]
    pub level: u8,
    /// `up`; `down` for a prefix that has come from level 2 down; `out of area`.
    #[serde(default)]
    pub kind: String,
    /// Metric.
    pub distance: u64,
    /// The neighbours that it begins with.
    pub via: Vec<String>,
}

/// A way around a neighbour to a prefix, which packets take when the neighbour is lost.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsisBackupSnapshot {
    pub prefix: String,
    /// The level of the path.
    pub level: u8,
    /// The neighbour that the prefix is reached by.
    pub neighbour: String,
    /// What the way avoids: `link and node`, `link`, `node`, or on a LAN only the `adjacency`.
    pub protects: String,
    /// The neighbour that packets are sent to instead, and the port.
    pub via: String,
    pub port: String,
    /// The SIDs by which they are encapsulated; none: they are sent as they are.
    pub segments: Vec<Ipv6Addr>,
}

/// The port of a circuit.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct IsisPort<'a> {
    pub(in crate::daemon) name: &'a str,
    /// Metric of the link.
    pub(in crate::daemon) metric: u32,
    /// Whether it has a socket.
    pub(in crate::daemon) is_open: bool,
}

impl IsisSnapshot {
    /// State of a speaker and the results of it. `ports` are those of its circuits.
    pub(in crate::daemon) fn of(
        speaker: &Speaker,
        known: &Known,
        settings: &IsisSettings,
        ports: &[IsisPort<'_>],
        now: Instant,
    ) -> Self {
        let system = &settings.system;
        let paths = &known.paths;
        let name = |id: &SystemId| known.hostname(*id).map(str::to_owned);
        let levels = speaker.levels().as_slice();
        let circuits = ports.iter().enumerate().flat_map(|(number, port)| {
            let id = CircuitId(number);
            let mut rows: Vec<(Level, Option<&Adjacency>)> = Vec::new();
            for level in levels {
                rows.extend(speaker.adjacencies(*level, id).map(|adjacency| (*level, Some(adjacency))));
            }
            if rows.is_empty() {
                rows.extend(levels.first().map(|level| (*level, None)));
            }
            let row = |(level, adjacency)| circuit(speaker, (id, level), *port, adjacency, system.topology, now, name);
            rows.into_iter().map(row).collect::<Vec<_>>()
        });
        let lsps = levels.iter().flat_map(|level| speaker.database(*level).iter().map(move |lsp| (level, lsp)));
        let lsps = lsps.map(|(level, (id, stored))| LspSnapshot {
            level: level.number(),
            id: id.to_string(),
            hostname: name(&id.node.system),
            sequence: stored.lsp().entry.sequence,
            checksum: stored.lsp().entry.checksum,
            lifetime_s: stored.lifetime_s(now),
            octets: stored.lsp().octets().len(),
            is_overloaded: stored.lsp().flags.is_overloaded,
            is_attached: stored.lsp().flags.is_attached,
            is_own: id.node.system == system.system,
            purged_by: stored.lsp().purge_originator().map_or_else(Vec::new, |purge| {
                std::iter::once(purge.system).chain(purge.received_from).map(|id| id.to_string()).collect()
            }),
        });
        let nodes = known.nodes.iter().map(|(id, learned)| {
            let distance = paths.nodes.get(&NodeId::of(*id)).map(|reached| reached.distance);
            node(*id, learned, distance, settings.behaviors)
        });
        let text = |prefix: &Prefix| prefix.to_string();
        let shown = |id: &NodeId| name(&id.system).unwrap_or_else(|| id.system.to_string());
        let routes = paths.prefixes.iter().map(|(prefix, reached)| IsisRouteSnapshot {
            prefix: text(prefix),
            level: reached.level.number(),
            kind: reached.kind.name().to_owned(),
            distance: reached.distance,
            via: reached.first_hops.iter().map(shown).collect(),
        });
        IsisSnapshot {
            system: system.system.to_string(),
            hostname: system.hostname.clone(),
            area: system.areas.first().map(|area| area_text(area)).unwrap_or_default(),
            levels: levels.iter().map(|level| level.number()).collect(),
            is_attached: speaker.is_attached(),
            topology: system.topology.id(),
            authentication: authentication(system.key.as_ref()).to_owned(),
            is_overloaded: speaker.overload().is_some(),
            overload: speaker.overload().map(|cause| cause.name().to_owned()),
            circuits: circuits.collect(),
            lsps: lsps.collect(),
            nodes: nodes.collect(),
            routes: routes.collect(),
            backups: Vec::new(),
            counters: counters(speaker),
            drops: speaker.drops().iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
        }
    }

    /// All causes of an overload bit, and whether each is the present one.
    pub(in crate::daemon) fn all_overload_causes(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let present = self.overload.as_deref();
        Overload::ALL.iter().map(move |cause| (cause.name(), present == Some(cause.name())))
    }

    /// All reasons for drops with their counts, also those that never occurred.
    pub(in crate::daemon) fn all_drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |reason: &IsisDrop| self.drops.get(reason.name()).copied().unwrap_or(0);
        IsisDrop::ALL.iter().map(move |reason| (reason.name(), count(reason)))
    }
}

fn circuit(
    speaker: &Speaker,
    (id, level): (CircuitId, Level),
    port: IsisPort<'_>,
    adjacency: Option<&Adjacency>,
    topology: TopologyId,
    now: Instant,
    name: impl Fn(&SystemId) -> Option<String>,
) -> IsisCircuitSnapshot {
    IsisCircuitSnapshot {
        port: port.name.to_owned(),
        kind: match speaker.circuit_type(id) {
            None | Some(CircuitType::PointToPoint) => "point-to-point".to_owned(),
            Some(CircuitType::Broadcast { .. }) => "broadcast".to_owned(),
        },
        level: level.number(),
        designated: speaker.designated(level, id).map(|pseudonode| pseudonode.to_string()),
        metric: port.metric,
        is_open: port.is_open,
        state: match adjacency.map(|adjacency| adjacency.state) {
            None | Some(AdjacencyState::Down) => IsisState::Down,
            Some(AdjacencyState::Initializing) => IsisState::Initializing,
            Some(AdjacencyState::Up) => IsisState::Up,
        },
        is_in_topology: adjacency.is_some_and(|adjacency| adjacency.topologies.contains(topology)),
        neighbour: adjacency.map(|adjacency| adjacency.neighbour.to_string()),
        hostname: adjacency.and_then(|adjacency| name(&adjacency.neighbour)),
        addresses: adjacency.map(|adjacency| adjacency.addresses.clone()).unwrap_or_default(),
        holds_s: adjacency.map(|adjacency| adjacency.until().since(now).as_secs()),
    }
}

fn node(id: SystemId, node: &LearnedNode, distance: Option<u64>, behaviors: Behaviors) -> IsisNodeSnapshot {
    IsisNodeSnapshot {
        system: id.to_string(),
        hostname: node.hostname.clone(),
        distance,
        has_srv6: node.srv6.is_some(),
        handles_notifications: node.handles_notifications(),
        locators: node.locators.iter().map(Prefix::to_string).collect(),
        sids: sids(node, distance.is_some(), behaviors),
    }
}

/// The SIDs of a node, which is in reach or not.
pub(super) fn sids(node: &LearnedNode, is_reached: bool, behaviors: Behaviors) -> Vec<IsisSidSnapshot> {
    let used = [behaviors.end_c, behaviors.end_e].map(|behavior| node.notification_sid(behavior));
    let sid = |sid: &EndSid| IsisSidSnapshot {
        sid: sid.sid,
        behavior: sid.behavior,
        name: behavior_name(sid.behavior, behaviors).map(str::to_owned),
        structure: sid
            .structure
            .map(|SidStructure { block, node, function, argument }| [block, node, function, argument]),
        is_used: is_reached && used.contains(&Some(sid.sid)),
    };
    node.sids.iter().map(sid).collect()
}

fn counters(speaker: &Speaker) -> BTreeMap<String, u64> {
    let srdma_isis::Counters { received, sent, own_from_elsewhere, confusions, lsp_overflows, neighbours_lost } =
        speaker.counters();
    let counters = [
        ("received", received),
        ("sent", sent),
        ("own_from_elsewhere", own_from_elsewhere),
        ("confusions", confusions),
        ("neighbours_lost", neighbours_lost),
        ("lsp_overflows", lsp_overflows),
    ];
    counters.map(|(name, count)| (name.to_owned(), count)).into()
}

/// The algorithm of a key as `node.toml` names it.
fn authentication(key: Option<&Key>) -> &'static str {
    match key {
        None => "none",
        Some(Key::Md5 { .. }) => "hmac-md5",
        Some(Key::Sha256 { .. }) => "hmac-sha256",
    }
}

/// A behaviour as `node.toml` names it.
fn behavior_name(code_point: u16, behaviors: Behaviors) -> Option<&'static str> {
    match code_point {
        // RFC 8986 section 10.2 and RFC 9800 section 13.1: each with its flavors.
        behavior::UN => Some("uN"),
        behavior::UA => Some("uA"),
        1..=4 | 28..=31 | 43..=50 => Some("End"),
        5..=8 | 32..=35 | 52..=59 => Some("End.X"),
        behavior::END_DT6 => Some("End.DT6"),
        behavior::END_REPLICATE => Some("End.Replicate"),
        behavior::END_MT => Some("End.MT"),
        code_point if code_point == behaviors.end_c => Some("END.C"),
        code_point if code_point == behaviors.end_e => Some("END.E"),
        _ => None,
    }
}

/// 49.0001: one octet, and the others by two.
fn area_text(area: &[u8]) -> String {
    let Some((first, rest)) = area.split_first() else { return String::new() };
    let octets = std::iter::once(std::slice::from_ref(first)).chain(rest.chunks(2));
    octets.map(hex::encode).collect::<Vec<_>>().join(".")
}
